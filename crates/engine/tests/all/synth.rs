//! Synthetic data from a file to a file, in a folder of its own.

use std::ops::ControlFlow;

use crate::folder::Folder;
use datafusion::arrow::datatypes::DataType;
use demur_core::{Delta, Epsilon, Guarantee};
use demur_engine::synth::{Made, Method, Shape, Synthetic, Wanted, Workload, write_csv, write_rows};
use demur_engine::{EngineError, Project, verify};
use demur_noise::Entropy;

const COLUMNS: &str = "who = { type = \"int64\", low = 0, high = 999 }\nsex = { type = \"string\", values = [\"f\", \"m\"] }\ncity = { type = \"string\" }\n\
    age = { type = \"int64\", low = 0, high = 99 }\nfee = { type = \"decimal(8, 2)\", low = 0, high = 10 }\n\
    day = { type = \"date\", low = \"2020-01-01\", high = \"2020-01-31\" }\nill = { type = \"boolean\" }\n";

fn folder(csv: &str, unit: &str) -> Folder {
    let catalog = format!(
        "[budget]\nname = \"t\"\nepsilon = 100000\ndelta = 0.01\n[tables.t]\nfiles = \"t.csv\"\nunit = \"{unit}\"\n[tables.t.columns]\n{COLUMNS}"
    );
    Folder::new(&catalog, csv)
}

fn fit(folder: &Folder, wanted: &Wanted) -> Result<Made, EngineError> {
    let (project, backend) = (Project::open(folder.path())?, folder.backend());
    folder.engine().synthesise(&project, wanted, &backend, &mut |_| ControlFlow::Continue(()))
}

fn wanted(method: Method, epsilon: f64) -> Wanted {
    Wanted {
        table: "t".to_owned(),
        guarantee: Guarantee::new(Epsilon::new(epsilon).unwrap(), Delta::new(1e-4).unwrap()),
        method,
        shape: Shape { bins: 8, ..Shape::default() },
        rows_per_unit: 1,
        workload: Some(Workload::Ways(2)),
        records: 16,
        impossible: Vec::new(),
        requester: "test".to_owned(),
    }
}

/// A thousand people: the old ones are ill, women live in Bern and men in Chur, every tenth fee is missing.
fn people() -> String {
    let mut csv = "who,sex,city,age,fee,day,ill\n".to_owned();
    for who in 0..1000 {
        let (sex, city) = if who % 2 == 0 { ("f", "Bern") } else { ("m", "Chur") };
        let age = who * 37 % 100;
        let fee = if who % 10 == 0 { String::new() } else { format!("{}.{:02}", who % 7, who % 100) };
        csv.push_str(&format!("{who},{sex},{city},{age},{fee},2020-01-{:02},{}\n", 1 + who % 31, age >= 50));
    }
    csv
}

fn count(synthetic: &Synthetic, condition: &str) -> f64 {
    let table = synthetic.query(&format!("SELECT COUNT(*) FROM t WHERE {condition}")).unwrap();
    table.rows[0][0].value.as_f64().unwrap_or(0.0)
}

/// At this ε noise is next to nothing, so the model knows the pairs that matter.
#[test]
fn a_model_knows_the_table_and_its_rows_look_like_it() {
    let folder = folder(&people(), "row");
    for method in [Method::Mst, Method::Aim] {
        let made = fit(&folder, &wanted(method, 3000.0)).unwrap();
        let model = &made.model;
        assert!(!made.replayed);
        assert!((model.model.rows() - 1000.0).abs() < 2.0, "{method:?}: {}", model.model.rows());
        for (condition, expected) in [
            ("sex = 'f'", 500.0),
            ("sex = 'f' AND city = 'Bern'", 500.0),
            ("sex = 'm' AND city = 'Bern'", 0.0),
            ("fee IS NULL", 100.0),
            ("ill AND age < 40", 0.0),
        ] {
            let found = count(model, condition);
            assert!((found - expected).abs() < 12.0, "{method:?}, {condition}: {found}");
        }
        let batch = model.sample(4000, &mut Entropy::from_os().unwrap()).unwrap();
        assert_eq!(batch.num_rows(), 4000);
        let kinds: Vec<_> = batch
            .schema()
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect();
        let expected = [
            ("who", DataType::Int64),
            ("sex", DataType::Utf8),
            ("city", DataType::Utf8),
            ("age", DataType::Int64),
            ("fee", DataType::Decimal128(8, 2)),
            ("day", DataType::Date32),
            ("ill", DataType::Boolean),
        ];
        let expected: Vec<_> = expected.into_iter().filter(|(name, _)| *name != "who").collect();
        assert!(
            kinds
                .iter()
                .map(|(name, kind)| (name.as_str(), kind.clone()))
                .filter(|(name, _)| *name != "who")
                .eq(expected)
        );
    }
}

#[test]
fn rows_are_written_and_read_again() {
    let folder = folder(&people(), "row");
    let mut wanted = wanted(Method::Mst, 100.0);
    wanted.shape.columns = Some(["sex", "age", "fee", "day"].map(str::to_owned).to_vec());
    let made = fit(&folder, &wanted).unwrap();
    let batch = made.model.sample(100, &mut Entropy::from_os().unwrap()).unwrap();
    let mut csv = Vec::new();
    write_csv(&batch, &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("sex,age,fee,day\n") && csv.lines().count() == 101, "{csv}");
    let path = folder.path().join("out.parquet");
    write_rows(&batch, &path).unwrap();
    let stored: Vec<_> =
        demur_engine::stored_columns(&path).unwrap().into_iter().map(|column| column.0).collect();
    assert_eq!(stored, ["sex", "age", "fee", "day"]);
    assert!(write_rows(&batch, &folder.path().join("out.txt")).is_err());
}

#[test]
fn the_same_wish_is_answered_from_the_ledger() {
    let folder = folder(&people(), "row");
    let first = fit(&folder, &wanted(Method::Mst, 1.0)).unwrap();
    // One question for the cities, one charge for the model.
    assert_eq!(folder.releases(), 2);
    let second = fit(&folder, &wanted(Method::Mst, 1.0)).unwrap();
    assert!(second.replayed && second.certificate == first.certificate);
    assert!(first.asked[0].0 == "city" && !first.asked[0].2 && second.asked[0].2);
    assert_eq!(folder.releases(), 2);
    let verdict = verify(first.certificate.text().unwrap().as_bytes(), None, None).unwrap();
    assert!(verdict.is_good(), "{verdict:?}");
    fit(&folder, &wanted(Method::Mst, 1.5)).unwrap();
    assert_eq!(folder.releases(), 4);
}

#[test]
fn a_model_that_was_tampered_with_is_refused_with_a_sentence() {
    let folder = folder(&people(), "row");
    let released = fit(&folder, &wanted(Method::Mst, 1.0)).unwrap().certificate.released;
    assert!(Synthetic::read(&released).is_ok());
    for (part, replaced) in [(0, "{}"), (0, ""), (1, ""), (1, "zz"), (1, "00ff"), (1, "f")] {
        let mut broken = released.clone();
        broken[part] = replaced.to_owned();
        let error = Synthetic::read(&broken).unwrap_err();
        assert!(!error.to_string().is_empty());
    }
    let cuts = "\"cuts\":[0,";
    for replaced in ["\"cuts\":[99999,", "\"cuts\":[-170141183460469231731687303715884105728,"] {
        assert!(released[0].contains(cuts));
        let broken = [released[0].replacen(cuts, replaced, 1), released[1].clone()];
        assert!(Synthetic::read(&broken).is_err(), "{replaced}");
    }
    for cut in [1, 10, 100, released[1].len() / 2, released[1].len() - 2] {
        let mut broken = released.clone();
        broken[1].truncate(cut);
        assert!(Synthetic::read(&broken).is_err(), "{cut}");
    }
}

#[test]
fn strange_tables_give_a_model_or_a_sentence() {
    let header = "who,sex,city,age,fee,day,ill\n";
    let all_null = header.to_owned() + &",,,,,,\n".repeat(50);
    let constant = header.to_owned() + &"1,f,Bern,7,1.00,2020-01-01,true\n".repeat(50);
    let one = header.to_owned() + "1,f,Bern,7,1.00,2020-01-01,true\n";
    for csv in [header, &all_null, &constant, &one] {
        let folder = folder(csv, "row");
        for method in [Method::Mst, Method::Aim] {
            let mut wanted = wanted(method, 1.0);
            wanted.shape.columns = Some(["sex", "city", "age", "ill"].map(str::to_owned).to_vec());
            let made = fit(&folder, &wanted).unwrap();
            let batch = made.model.sample(10, &mut Entropy::from_os().unwrap()).unwrap();
            assert_eq!(batch.num_rows(), 10);
        }
    }
}

/// Nobody's text appears that nobody else has.
#[test]
fn many_different_strings_are_others() {
    let mut csv = "who,sex,city,age,fee,day,ill\n".to_owned();
    (0..100_000).for_each(|who| csv.push_str(&format!("{who},f,place {who},1,,,\n")));
    let folder = folder(&csv, "row");
    let mut wanted = wanted(Method::Mst, 1.0);
    // Far below 1/n: with a larger one some of so many names would be told, as δ allows.
    wanted.guarantee = Guarantee::new(wanted.guarantee.epsilon, Delta::new(1e-12).unwrap());
    wanted.shape.columns = Some(["sex", "city"].map(str::to_owned).to_vec());
    let made = fit(&folder, &wanted).unwrap();
    assert!(!made.certificate.text().unwrap().contains("place 1"));
    let others = count(&made.model, "city = '(other)'");
    assert!((others - 100_000.0).abs() < 1000.0, "{others}");
}

/// A unit with a thousand rows counts for as many as it may.
#[test]
fn a_unit_counts_for_its_share() {
    let mut csv = "who,sex,city,age,fee,day,ill\n".to_owned();
    (0..1000).for_each(|_| csv.push_str("1,f,Bern,1,,,\n"));
    (2..500).for_each(|who| csv.push_str(&format!("{who},m,Bern,1,,,\n")));
    let folder = folder(&csv, "who");
    let mut wanted = wanted(Method::Mst, 2000.0);
    wanted.shape.columns = Some(vec!["sex".to_owned(), "age".to_owned()]);
    wanted.rows_per_unit = 3;
    let made = fit(&folder, &wanted).unwrap();
    let found = [count(&made.model, "sex = 'f'"), count(&made.model, "sex = 'm'")];
    assert!((found[0] - 3.0).abs() < 2.0 && (found[1] - 498.0).abs() < 5.0, "{found:?}");
    wanted.rows_per_unit = 0;
    assert!(fit(&folder, &wanted).is_err());
}

/// What everybody knows to be impossible has no weight, whatever the noise says.
#[test]
fn what_is_impossible_never_occurs() {
    let folder = folder(&people(), "row");
    for method in [Method::Mst, Method::Aim] {
        let mut wanted = wanted(method, 0.1);
        wanted.shape.columns = Some(["sex", "age", "ill"].map(str::to_owned).to_vec());
        wanted.impossible = vec!["sex = 'f' AND age < 25".to_owned(), "ill AND sex = 'm'".to_owned()];
        let made = fit(&folder, &wanted).unwrap();
        for condition in &wanted.impossible {
            assert!(count(&made.model, condition).abs() < 1e-6, "{method:?}: {condition}");
        }
        wanted.impossible = vec!["nobody = 1".to_owned()];
        assert!(fit(&folder, &wanted).is_err());
    }
}

#[test]
fn distances_are_small_for_a_good_model_and_large_for_a_bad_one() {
    let folder = folder(&people(), "row");
    let (project, backend) = (folder.project(), folder.backend());
    let distance = |epsilon: f64| {
        let made = fit(&folder, &wanted(Method::Mst, epsilon)).unwrap();
        let place = made.model.header.columns.iter().position(|column| column.name == "ill").unwrap();
        let guarantee = Guarantee::new(Epsilon::new(2000.0).unwrap(), Delta::new(1e-4).unwrap());
        let compared =
            folder.engine().compare(&project, &made.model, guarantee, Some(place), "test", &backend).unwrap();
        let pairs: f64 = compared.pairs.iter().map(|pair| pair.1).sum::<f64>() / compared.pairs.len() as f64;
        (pairs, compared.right.unwrap())
    };
    let (good, bad) = (distance(3000.0), distance(0.001));
    assert!(good.0 < 0.15 && bad.0 > 0.3, "{good:?} {bad:?}");
    assert!(good.1 > 0.95, "{good:?}");
}

/// A model is a file, and whoever brings one may have written it: the noise is that of the catalog's units, and the owner's limit holds.
#[test]
fn a_forged_model_buys_no_answer_without_noise() {
    let folder = folder(&people(), "row");
    let (project, backend) = (folder.project(), folder.backend());
    let mut wanted = wanted(Method::Mst, 1.0);
    wanted.shape.columns = Some(["sex", "ill"].map(str::to_owned).to_vec());
    let made = fit(&folder, &wanted).unwrap();
    let compare = |model: &Synthetic, epsilon: f64, project: &Project| {
        let guarantee = Guarantee::new(Epsilon::new(epsilon).unwrap(), Delta::new(1e-4).unwrap());
        folder.engine().compare(project, model, guarantee, None, "test", &backend)
    };
    for rows in [0, 2, u32::MAX] {
        let mut forged = made.model.clone();
        forged.header.rows_per_unit = rows;
        let refused = compare(&forged, 1.0, &project).err().unwrap();
        assert!(refused.to_string().contains("each row is a unit"), "{rows}: {refused}");
    }
    let mut foreign = made.model.clone();
    foreign.header.table = "elsewhere".to_owned();
    assert!(compare(&foreign, 1.0, &project).is_err());

    let catalog = folder.path().join("demur.toml");
    let text = std::fs::read_to_string(&catalog).unwrap();
    std::fs::write(&catalog, text.replace("delta = 0.01\n", "delta = 0.01\nmax_epsilon_per_question = 2\n"))
        .unwrap();
    let project = folder.project();
    let refused = compare(&made.model, 3.0, &project).err().unwrap();
    assert!(refused.to_string().contains("at most ε = 2"), "{refused}");
    assert_eq!(folder.releases(), 1);
    assert!(compare(&made.model, 2.0, &project).is_ok());
    assert_eq!(folder.releases(), 2);
}

/// BLR over two truth values: each has a code for NULL, so there are nine records. Women are half, the old half is ill.
#[test]
fn a_tiny_universe_can_be_drawn_from_exactly() {
    let folder = folder(&people(), "row");
    let mut wanted = wanted(Method::Blr, 50.0);
    wanted.shape.columns = Some(["sex", "ill"].map(str::to_owned).to_vec());
    wanted.records = 8;
    let refused = fit(&folder, &wanted).err().unwrap();
    assert!(refused.to_string().contains("public number of rows"), "{refused}");
    assert_eq!(folder.releases(), 0);

    let catalog = folder.path().join("demur.toml");
    let text = std::fs::read_to_string(&catalog).unwrap();
    std::fs::write(&catalog, text.replace("unit = \"row\"\n", "unit = \"row\"\nadjacency = \"replace\"\n"))
        .unwrap();
    let made = fit(&folder, &wanted).unwrap();
    assert_eq!(folder.releases(), 1);
    assert_eq!(made.model.model.rows(), 1000.0);
    // ε·n is so large that the best table of eight is as good as certain.
    let halves = [count(&made.model, "sex = 'f'"), count(&made.model, "ill")];
    assert_eq!(halves, [500.0, 500.0]);
    wanted.records = 1000;
    let refused = fit(&folder, &wanted).err().unwrap();
    assert!(refused.to_string().contains("use MWEM or AIM"), "{refused}");
}

/// The promise is for whole units: with three rows each, the same noise costs nine times the squared distance.
#[test]
fn units_of_several_rows_are_paid_for() {
    let folder = folder(&people(), "who");
    let variance = |rows_per_unit: u32| {
        let mut wanted = wanted(Method::Mst, 1.0);
        wanted.shape.columns = Some(vec!["sex".to_owned()]);
        wanted.rows_per_unit = rows_per_unit;
        let made = fit(&folder, &wanted).unwrap();
        match &made.certificate.terms[0].mechanism {
            demur_core::PrivacyLoss::DiscreteGaussian { variance, l2_squared, .. } => {
                (variance / l2_squared).to_f64() * f64::from(rows_per_unit).powi(2)
            }
            other => unreachable!("{other}"),
        }
    };
    let (one, three) = (variance(1), variance(3));
    assert!((three / one / 9.0 - 1.0).abs() < 0.01, "{one} {three}");
}
