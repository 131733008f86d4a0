//! Learning as newcomers do it, in a small project of its own.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const CATALOG: &str = r#"
[budget]
name = "house"
epsilon = 1000
delta = 0.01
delta_per_question = 1e-5
max_epsilon_per_question = 100

[tables.people]
files = "people.csv"
unit = "row"
[tables.people.columns]
age  = { type = "int64", low = 0, high = 99 }
pay  = { type = "float64", low = 0, high = 10 }
sex  = { type = "string", values = ["f", "m"] }
town = { type = "string" }
ill  = { type = "boolean" }
x    = { type = "float64", low = 0, high = 16 }
y    = { type = "float64", low = 0, high = 16 }

# Somebody forgot a value.
[tables.women]
files = "people.csv"
unit = "row"
[tables.women.columns]
age  = { type = "int64", low = 0, high = 99 }
pay  = { type = "float64", low = 0, high = 10 }
sex  = { type = "string", values = ["f"] }
town = { type = "string" }
ill  = { type = "boolean" }
x    = { type = "float64", low = 0, high = 16 }
y    = { type = "float64", low = 0, high = 16 }

[tables.friends]
files = "friends.csv"
unit = "row"
[tables.friends.columns]
a = { type = "int64" }
b = { type = "int64" }
"#;

/// Old people are ill, half of all live in one cell of the map, and two groups of 30 are friends among themselves.
fn house() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut people = "age,pay,sex,town,ill,x,y\n".to_owned();
    for i in 0..3000 {
        let age = i * 37 % 100;
        let (x, y) = if i % 2 == 0 { (3.5, 7.5) } else { (f64::from(i % 16), f64::from(i / 16 % 16)) };
        let sex = if i % 3 == 0 { "f" } else { "m" };
        writeln!(people, "{age},{},{sex},t{},{},{x},{y}", f64::from(age) / 10.0, i % 7, age >= 50).unwrap();
    }
    let mut friends = "a,b\n".to_owned();
    for a in 0..60 {
        (0..a).filter(|b| a / 30 == b / 30).for_each(|b| writeln!(friends, "{a},{b}").unwrap());
    }
    for (name, text) in [("demur.toml", CATALOG), ("people.csv", &people), ("friends.csv", &friends)] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demur"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env("USER", "analyst").env_remove("DEMUR_LEDGER").output().unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = output(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {said}");
    (String::from_utf8(output.stdout).unwrap(), said)
}

#[test]
fn a_model_is_trained_once_and_asked_for_free() {
    let house = house();
    let folder = house.path();
    for (model, hidden) in [("plain.model", &[][..]), ("deep.model", &["--hidden", "8"])] {
        let mut train = vec!["learn", "train", "people", "--label", "ill", "--rows", "3000"];
        train.extend([
            "--epsilon",
            "20",
            "--columns",
            "age,sex",
            "-o",
            model,
            "--safetensors",
            "w.safetensors",
        ]);
        train.extend(hidden);
        assert!(run(folder, &train).1.contains("charged to `house`"));
        assert!(run(folder, &train).1.contains("nothing was charged"));
        run(folder, &["certificate", "verify", model]);
        assert!(folder.join("w.safetensors").exists());
        std::fs::write(folder.join("new.csv"), "sex,age\nf,90\nm,5\n,95\n").unwrap();
        let told = run(folder, &["learn", "predict", model, "new.csv"]).0;
        let told: Vec<_> = told.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(told[..3], ["ill", "true", "false"], "{model}");
        // Nobody in the table lacks a sex, so it is open what a model makes of somebody who does; but it says something.
        assert!(["true", "false"].contains(&told[3]) && told.len() == 4, "{model}: {told:?}");
    }
}

#[test]
fn clusters_communities_places_and_choices_are_found() {
    let house = house();
    let folder = house.path();
    let told = run(
        folder,
        &[
            "learn",
            "cluster",
            "people",
            "--columns",
            "age,pay",
            "-k",
            "2",
            "--epsilon",
            "8",
            "--format",
            "csv",
        ],
    )
    .0;
    let mut ages: Vec<f64> =
        told.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    ages.sort_by(f64::total_cmp);
    assert!((ages[0] - 25.0).abs() < 8.0 && (ages[1] - 75.0).abs() < 8.0, "{ages:?}");

    let map = [
        "learn",
        "hotspots",
        "people",
        "--x",
        "x",
        "--y",
        "y",
        "--grid",
        "16",
        "--epsilon",
        "1",
        "--top",
        "1",
    ];
    let files = ["--plot", "map.png", "--geojson", "map.geojson", "--format", "csv"];
    let told = run(folder, &[&map[..], &files].concat()).0;
    assert!(told.starts_with("x,y,about,at least,at most\n3.5000,7.5000,"), "{told}");
    assert!(std::fs::read(folder.join("map.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(folder.join("map.geojson")).unwrap().contains("FeatureCollection"));

    let friends =
        ["learn", "communities", "friends", "--from", "a", "--to", "b", "--users", "60", "--epsilon", "6"];
    let told = run(folder, &[&friends[..], &["--format", "csv"]].concat()).0;
    let labels: Vec<_> = told.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(labels.len(), 60);
    assert!(labels[..30].iter().all(|label| *label == labels[0]) && labels[30] != labels[0], "{labels:?}");

    let chosen = run(folder, &["learn", "select", "people", "--column", "sex", "--epsilon", "1"]).0;
    assert_eq!(chosen, "m\n");
    std::fs::write(folder.join("towns.txt"), "t0\nt1\nnowhere\n").unwrap();
    let towns = ["learn", "select", "people", "--column", "town", "--candidates", "towns.txt", "-k", "2"];
    let chosen = run(folder, &[&towns[..], &["--epsilon", "2"]].concat()).0;
    assert!(chosen == "t0\nt1\n" || chosen == "t1\nt0\n", "{chosen}");
}

/// How many charges the ledger has.
fn charges(folder: &Path) -> usize {
    let log = run(folder, &["ledger", "log", "--format", "csv"]).0;
    log.lines().filter(|line| line.split(',').nth(2) == Some("charge")).count()
}

/// Killed in the middle, the same command goes on from its checkpoint, and is charged once.
#[test]
fn a_training_that_was_killed_goes_on_without_paying_twice() {
    let house = house();
    let folder = house.path();
    std::fs::write(folder.join("public.csv"), "age,sex,ill\n90,f,true\n5,m,false\n70,m,true\n").unwrap();
    let train = [
        "learn",
        "train",
        "people",
        "--label",
        "ill",
        "--columns",
        "age,sex",
        "--rows",
        "3000",
        "--epsilon",
        "20",
        "--hidden",
        "8",
        "--steps",
        "6000",
        "--rate",
        "0.05",
        "--public",
        "public.csv",
        "-o",
        "killed.model",
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_demur"))
        .args(train)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("USER", "analyst")
        .env_remove("DEMUR_LEDGER")
        .spawn()
        .unwrap();
    // The first checkpoint stands before a row is read, those that follow have steps.
    let step = || {
        let mut begun = std::fs::read_dir(folder.join(".demur")).ok()?.flatten().map(|entry| entry.path());
        let bytes = std::fs::read(begun.find(|path| path.extension() == Some("begun".as_ref()))?).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.split("\"step\":\"").nth(1)?.split('"').next()?.parse::<u64>().ok()
    };
    let seen = (0..6000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        step().filter(|step| *step > 0)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.is_some(), "no checkpoint was left in a minute");
    assert!(!folder.join("killed.model").exists());
    assert_eq!(charges(folder), 1);
    run(folder, &train);
    assert_eq!(charges(folder), 1);
    assert_eq!(step(), None, "what is done leaves nothing behind");
    let verified = run(folder, &["certificate", "verify", "killed.model"]).0;
    assert!(!verified.is_empty());
    let score = run(folder, &["learn", "predict", "killed.model", "public.csv", "--score"]).0;
    assert!(score.contains("told rightly: 100.00 %"), "{score}");
    assert!(run(folder, &train).1.contains("nothing was charged"));
}

#[test]
fn networks_of_any_layers_look_at_images() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let pixels: Vec<String> = (0..64).map(|pixel| format!("p{pixel}")).collect();
    let columns: String =
        pixels.iter().map(|name| format!("{name} = {{ type = \"int64\", low = 0, high = 255 }}\n")).collect();
    let catalog = format!(
        "[budget]\nname = \"house\"\nepsilon = 1000\ndelta = 0.01\ndelta_per_question = 1e-5\nmax_epsilon_per_question = 100\n\
         [tables.pictures]\nfiles = \"pictures.csv\"\nunit = \"row\"\n[tables.pictures.columns]\n\
         {columns}kind = {{ type = \"string\", values = [\"lying\", \"standing\"] }}\n"
    );
    // A bar of light, lying or standing, somewhere.
    let mut rows = format!("{},kind\n", pixels.join(","));
    for i in 0..1200 {
        let (stands, at) = (i % 2 == 1, i / 2 % 8);
        let light = |pixel: i32| if stands { pixel % 8 == at } else { pixel / 8 == at };
        let row: Vec<_> = (0..64).map(|pixel| if light(pixel) { "255" } else { "0" }).collect();
        writeln!(rows, "{},{}", row.join(","), if stands { "standing" } else { "lying" }).unwrap();
    }
    std::fs::write(folder.join("demur.toml"), catalog).unwrap();
    std::fs::write(folder.join("pictures.csv"), rows).unwrap();
    let network = "convolution(4, 3, 1, 1), tanh, pool(8, 1)";
    for more in [&["--scattering"][..], &["--network", network, "--rate", "1"]] {
        let train = [
            "learn",
            "train",
            "pictures",
            "--label",
            "kind",
            "--image",
            "8x8",
            "--rows",
            "1200",
            "--epsilon",
            "50",
            "-o",
            "kind.model",
        ];
        run(folder, &[&train[..], more].concat());
        let score = run(folder, &["learn", "predict", "kind.model", "pictures.csv", "--score"]).0;
        let right: f64 = score.split("rightly: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(right > 90.0, "{more:?}: {score}");
    }
    for (more, words) in [
        (&["--image", "9x8"][..], "64 columns of numbers"),
        (&["--image", "8"], "28x28"),
        (&["--network", "dense(4"], "no part of a network"),
        (&["--image", "8x8", "--network", "convolution(4, 9, 1, 0)"], "does not fit"),
    ] {
        let train = [
            "learn",
            "train",
            "pictures",
            "--label",
            "kind",
            "--rows",
            "1200",
            "--epsilon",
            "50",
            "-o",
            "x",
            "--hidden",
            "4",
        ];
        let train = if more.contains(&"--network") { &train[..11] } else { &train };
        let output = output(folder, &[train, more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(words), "{more:?}: {said}");
    }
}

/// One measurement serves lists of any length, and everybody who asks.
#[test]
fn a_longer_list_of_the_same_map_costs_nothing() {
    let house = house();
    let folder = house.path();
    let map = [
        "learn",
        "hotspots",
        "people",
        "--x",
        "x",
        "--y",
        "y",
        "--grid",
        "16",
        "--epsilon",
        "1",
        "--format",
        "csv",
    ];
    let short = run(folder, &[&map[..], &["--top", "1", "--certificate", "map.json"]].concat());
    assert!(short.1.contains("charged to"));
    run(folder, &["certificate", "verify", "map.json"]);
    let long = run(folder, &[&map[..], &["--top", "3", "--requester", "bob"]].concat());
    assert!(long.1.contains("nothing was charged"), "{}", long.1);
    assert!(long.0.starts_with(&short.0) && long.0.lines().count() == 4, "{}", long.0);
}

#[test]
fn mistakes_get_a_sentence_and_cost_nothing() {
    let house = house();
    let folder = house.path();
    let train = |more: &[&'static str]| {
        [&["learn", "train", "people", "--rows", "3000", "--epsilon", "1", "-o", "x.model"], more].concat()
    };
    for (arguments, code, words) in [
        (train(&["--label", "illl"]), 2, "illl"),
        (train(&["--label", "town"]), 2, "which values `town` has"),
        (train(&["--label", "ill", "--columns", "ill"]), 2, "cannot learn from it"),
        (
            vec!["learn", "train", "women", "--label", "sex", "--rows", "9", "--epsilon", "1", "-o", "x"],
            2,
            "`sex` shall be told, but the catalog declares only the value `f`",
        ),
        (train(&["--label", "ill", "--delta", "0"]), 2, "δ"),
        (
            vec!["learn", "train", "people", "--label", "ill", "--rows", "0", "--epsilon", "1", "-o", "x"],
            2,
            "rows",
        ),
        (
            vec!["learn", "train", "people", "--label", "ill", "--rows", "9", "--epsilon", "500", "-o", "x"],
            1,
            "at most",
        ),
        (
            vec!["learn", "cluster", "people", "--columns", "town", "-k", "2", "--epsilon", "1"],
            2,
            "no number",
        ),
        (vec!["learn", "cluster", "people", "--columns", "age", "-k", "0", "--epsilon", "1"], 2, "clusters"),
        (
            vec!["learn", "hotspots", "people", "--x", "x", "--y", "y", "--grid", "100", "--epsilon", "1"],
            2,
            "cells",
        ),
        (
            vec!["learn", "hotspots", "people", "--x", "x", "--y", "y", "--epsilon", "1", "--plot", "m.gif"],
            2,
            ".png",
        ),
        (
            vec![
                "learn",
                "communities",
                "friends",
                "--from",
                "a",
                "--to",
                "c",
                "--users",
                "9",
                "--epsilon",
                "1",
            ],
            2,
            "`c`",
        ),
        (
            vec![
                "learn",
                "communities",
                "friends",
                "--from",
                "a",
                "--to",
                "b",
                "--users",
                "0",
                "--epsilon",
                "1",
            ],
            2,
            "users",
        ),
        (vec!["learn", "select", "people", "--column", "town", "--epsilon", "1"], 2, "--candidates"),
        (
            vec!["learn", "select", "people", "--column", "sex", "-k", "3", "--epsilon", "1"],
            2,
            "2 candidates",
        ),
        (vec!["learn", "predict", "none.model", "people.csv"], 2, "none.model"),
    ] {
        let output = output(folder, &arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty() && said.contains(words), "{arguments:?}: {said}");
    }
    let shown = String::from_utf8(output(folder, &["ledger", "log"]).stdout).unwrap();
    assert!(!shown.contains("charge"), "{shown}");
}
