//! `demur learn`: what a private table teaches, without telling about anyone.

mod map;

use std::io::{IsTerminal, Write};
use std::path::Path;

use demur_core::{Delta, Epsilon, Guarantee};
use demur_engine::learn::{
    Body, Choosing, Clustering, Learned, MOST_SPOTS, Mapping, Pace, Predictor, Recipe, Score, Ties, Training,
    Watch,
};
use demur_engine::synth::{write_csv, write_rows};
use demur_engine::{Backend, Certificate, Embedded, Engine, EngineError, Project};
use serde_json::json;

use crate::args::learn::{Cluster, Communities, Descent, Hotspots, House, Learn, Predict, Select, Train};
use crate::args::query::Shape;
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::query;
use crate::query::waiting;
use crate::table::{Side, Table};

pub(crate) fn run(command: Learn, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Learn::Train(args) => train(&args),
        Learn::Predict(args) => predict(&args, out).map_err(Failure::without_note),
        Learn::Cluster(args) => cluster(&args, out),
        Learn::Communities(args) => communities(&args, out),
        Learn::Hotspots(args) => hotspots(&args, out),
        Learn::Select(args) => select(&args, out),
    }
}

/// What Ctrl-C says after the charge.
const GOES_ON: &str = "this was charged and the charge stands; nothing was released. Give the same command again: it goes on at no further cost";

/// A project, what pays, and what reads.
struct Open {
    project: Project,
    engine: Engine,
    backend: Embedded,
    requester: String,
}

impl Open {
    fn at(house: &House) -> Result<Self, Failure> {
        let project = query::project(house.project.as_deref())?;
        let place = Place::of_project(house.ledger.as_deref(), &project.folder)?;
        let engine = place.engine(&project)?;
        let backend = Embedded::new(&project.folder)?;
        let requester = house.requester.clone().unwrap_or_else(place::user);
        Ok(Self { project, engine, backend, requester })
    }

    fn guarantee(&self, epsilon: f64, delta: Option<f64>) -> Result<Guarantee, Failure> {
        let delta = match delta {
            Some(0.0) => Delta::ZERO,
            Some(delta) => Delta::new(delta).map_err(wrong)?,
            None => self.project.catalog.budget.delta.unwrap_or(Delta::ZERO),
        };
        Ok(Guarantee::new(Epsilon::new(epsilon).map_err(wrong)?, delta))
    }

    /// Does the work, with a line for people at a terminal, and says what was charged.
    fn learn<T>(
        &self,
        work: impl FnOnce(&dyn Backend, &mut Watch<'_>) -> Result<Learned<T>, EngineError>,
    ) -> Result<Learned<T>, Failure> {
        waiting::listen(self.backend.reading(), GOES_ON)?;
        let mut shown = false;
        let learned = work(&self.backend, &mut |pace| shown |= show(pace));
        if shown {
            let _ = write!(std::io::stderr(), "\r{:79}\r", "");
        }
        let learned = learned?;
        told(&learned.certificate, learned.replayed);
        Ok(learned)
    }
}

fn wrong(error: demur_core::Error) -> Failure {
    Failure::new("cli.guarantee", error.to_string())
}

/// A line for people at a terminal: how far it is, what that cost, how good it is on public rows.
fn show(pace: &Pace<'_>) -> bool {
    let mut to = std::io::stderr();
    if !to.is_terminal() {
        return false;
    }
    let _ = write!(to, "\r{:79}\r{}", "", line(pace));
    let _ = to.flush();
    true
}

fn line(pace: &Pace<'_>) -> String {
    let Pace { stage, step, steps, epsilon, score } = pace;
    let mut line = match steps {
        Some(steps) => {
            let done = (20 * step / steps.max(&1)).min(20) as usize;
            format!("{stage} {}{} {step} of {steps}", "█".repeat(done), "░".repeat(20 - done))
        }
        None => format!("{stage} {step}"),
    };
    if let Some(epsilon) = epsilon {
        line += &format!(", ε {epsilon:.3}");
    }
    if let Some(Score { loss, right, .. }) = score {
        line += &format!(", public loss {loss:.4}");
        if let Some(right) = right {
            line += &format!(", right {:.1} %", 100.0 * right);
        }
    }
    line
}

fn told(certificate: &Certificate, replayed: bool) {
    let (budget, entry) = (&certificate.budget.name, certificate.charge.sequence);
    let _ = match replayed {
        true => writeln!(std::io::stderr(), "answered from the ledger, nothing was charged"),
        false => writeln!(std::io::stderr(), "charged to `{budget}`, entry {entry}"),
    };
}

/// Rows of texts in the wanted shape.
fn shown(
    columns: &[(&str, Side)],
    rows: &[Vec<String>],
    shape: Shape,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let names: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let value = |text: &String| text.parse::<f64>().map_or_else(|_| json!(text), |number| json!(number));
    let object = |row: &Vec<String>| {
        let fields = names.iter().zip(row).map(|(name, text)| ((*name).to_owned(), value(text)));
        serde_json::Value::Object(fields.collect())
    };
    match shape {
        Shape::Table => Table::new(columns).print(out, rows)?,
        Shape::Json => writeln!(out, "{:#}", json!({ "rows": rows.iter().map(object).collect::<Vec<_>>() }))?,
        Shape::Lines => rows.iter().try_for_each(|row| writeln!(out, "{}", object(row)))?,
        Shape::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            let failed = |error: csv::Error| {
                Failure::new("cli.write", format!("the answer could not be written: {error}"))
            };
            writer.write_record(&names).map_err(failed)?;
            rows.iter().try_for_each(|row| writer.write_record(row)).map_err(failed)?;
            writer.flush()?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    crate::query::target::guard(path)?;
    std::fs::write(path, bytes).map_err(|error| {
        Failure::new("cli.file", format!("`{}` cannot be written: {error}", path.display()))
            .hint("what was charged is kept in the ledger: the same command again costs nothing")
    })
}

fn train(args: &Train) -> Result<(), Failure> {
    let open = Open::at(&args.house)?;
    let wanted = Training {
        table: args.table.clone(),
        label: args.label.clone(),
        columns: args.columns.clone(),
        body: body(args),
        image: args.image.as_deref().map(image).transpose()?,
        rows: args.rows,
        guarantee: open.guarantee(args.epsilon, args.delta)?,
        public: args.public.clone(),
        requester: open.requester.clone(),
    };
    let learned = open.learn(|backend, watch| open.engine.train(&open.project, &wanted, backend, watch))?;
    write_file(&args.output, learned.certificate.text()? + "\n")?;
    if let Some(path) = &args.safetensors {
        write_file(path, learned.value.safetensors()?)?;
    }
    let (label, path) = (learned.value.label(), args.output.display());
    let _ = writeln!(
        std::io::stderr(),
        "a model that tells `{label}` is in {path}\nask it: demur learn predict {path} FILE.csv"
    );
    Ok(())
}

/// What the flags say a model is made of.
fn body(args: &Train) -> Body {
    let Descent { batch, steps, rate, momentum, clip } = args.descent;
    let usual = Recipe::usual(args.rows);
    let recipe = Recipe {
        batch: batch.unwrap_or(usual.batch),
        steps: steps.unwrap_or(usual.steps),
        rate: rate.unwrap_or(usual.rate),
        momentum: momentum.unwrap_or(usual.momentum),
        clip: clip.unwrap_or(usual.clip),
    };
    let hidden =
        || args.hidden.iter().map(|units| format!("dense({units}), tanh")).collect::<Vec<_>>().join(", ");
    match &args.network {
        _ if args.scattering => Body::Scattering(recipe),
        Some(layers) => Body::Network(layers.clone(), recipe),
        None if args.hidden.is_empty() => Body::Regression,
        None => Body::Network(hidden(), recipe),
    }
}

/// 28x28.
fn image(text: &str) -> Result<[usize; 2], Failure> {
    let sides =
        text.split_once('x').and_then(|(height, width)| Some([height.parse().ok()?, width.parse().ok()?]));
    sides.filter(|[height, width]| *height > 0 && *width > 0).ok_or_else(|| {
        Failure::new(
            "cli.image",
            format!("`{text}` is no size of an image; write height and width as in 28x28"),
        )
    })
}

fn predict(args: &Predict, out: &mut impl Write) -> Result<(), Failure> {
    let bytes = std::fs::read(&args.model).map_err(|error| {
        Failure::new("cli.read", format!("`{}` cannot be read: {error}", args.model.display()))
            .hint("a model is made by `demur learn train TABLE --label COLUMN --rows N --epsilon 1 -o FILE`")
    })?;
    let predictor = Predictor::read(&Certificate::read(&bytes)?.released)?;
    if args.score {
        return score(&predictor, &args.file, out);
    }
    let said = predictor.predict(&args.file)?;
    match args.output.as_os_str() == "-" {
        true => Ok(write_csv(&said, out)?),
        false => Ok(write_rows(&said, &args.output)?),
    }
}

/// How good a model is on public rows.
fn score(predictor: &Predictor, file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let Score { rows, loss, right, auc } = predictor.score(file)?;
    writeln!(out, "rows with `{}`: {rows}\nloss: {loss:.4}", predictor.label())?;
    if let Some(right) = right {
        writeln!(out, "told rightly: {:.2} %", 100.0 * right)?;
    }
    if let Some(auc) = auc {
        writeln!(out, "area under the curve: {auc:.4}")?;
    }
    Ok(())
}

/// Writes the certificate where it was asked for.
fn certified<T>(learned: Learned<T>, path: Option<&Path>) -> Result<T, Failure> {
    if let Some(path) = path {
        write_file(path, learned.certificate.text()? + "\n")?;
    }
    Ok(learned.value)
}

fn cluster(args: &Cluster, out: &mut impl Write) -> Result<(), Failure> {
    let open = Open::at(&args.house)?;
    let wanted = Clustering {
        table: args.table.clone(),
        columns: args.columns.clone(),
        clusters: args.clusters,
        points_per_unit: args.points_per_unit,
        guarantee: open.guarantee(args.epsilon, args.delta)?,
        requester: open.requester.clone(),
    };
    let learned = open.learn(|backend, watch| open.engine.cluster(&open.project, &wanted, backend, watch))?;
    let found = certified(learned, args.certificate.as_deref())?;
    let mut columns: Vec<(&str, Side)> =
        found.columns.iter().map(|name| (name.as_str(), Side::Right)).collect();
    columns.push(("rows, about", Side::Right));
    let row = |(center, size): (&Vec<f64>, &f64)| {
        let texts = center.iter().map(|value| four_digits(*value)).chain([format!("{:.0}", size.max(0.0))]);
        texts.collect::<Vec<_>>()
    };
    let rows: Vec<_> = found.centers.iter().zip(&found.sizes).map(row).collect();
    shown(&columns, &rows, args.format, out)
}

/// A number to four digits.
fn four_digits(value: f64) -> String {
    format!("{value:.3e}").parse::<f64>().unwrap_or(value).to_string()
}

fn communities(args: &Communities, out: &mut impl Write) -> Result<(), Failure> {
    let open = Open::at(&args.house)?;
    let wanted = Ties {
        table: args.table.clone(),
        columns: [args.from.clone(), args.to.clone()],
        users: args.users,
        max_ties: args.max_ties,
        epsilon: Epsilon::new(args.epsilon).map_err(wrong)?,
        requester: open.requester.clone(),
    };
    let learned =
        open.learn(|backend, watch| open.engine.communities(&open.project, &wanted, backend, watch))?;
    let found = certified(learned, args.certificate.as_deref())?;
    let row = |(user, label): (usize, &usize)| vec![user.to_string(), label.to_string()];
    let rows: Vec<_> = found.labels.iter().enumerate().map(row).collect();
    shown(&[("user", Side::Right), ("community", Side::Right)], &rows, args.format, out)
}

fn hotspots(args: &Hotspots, out: &mut impl Write) -> Result<(), Failure> {
    if !args.grid.is_power_of_two() || args.grid < 2 {
        let text = format!("a map has 2, 4, 8 … 2048 cells a side, not {}", args.grid);
        return Err(Failure::new("cli.grid", text));
    }
    if args.top > MOST_SPOTS {
        let text = format!("at most {MOST_SPOTS} hot spots are listed, but {} were asked for", args.top);
        return Err(Failure::new("cli.top", text));
    }
    if let Some(path) = &args.plot {
        map::check(path)?;
    }
    let open = Open::at(&args.house)?;
    let wanted = Mapping {
        table: args.table.clone(),
        columns: [args.x.clone(), args.y.clone()],
        depth: args.grid.ilog2(),
        points_per_unit: args.points_per_unit,
        epsilon: Epsilon::new(args.epsilon).map_err(wrong)?,
        requester: open.requester.clone(),
    };
    let learned = open.learn(|backend, watch| open.engine.map(&open.project, &wanted, backend, watch))?;
    let found = certified(learned, args.certificate.as_deref())?;
    let headings =
        [args.x.as_str(), args.y.as_str(), "about", "at least", "at most"].map(|name| (name, Side::Right));
    let row = |spot: &demur_engine::learn::Spot| {
        let middle = [(spot.west + spot.east) / 2.0, (spot.south + spot.north) / 2.0]
            .map(|place| format!("{place:.4}"));
        let counts = [spot.estimate, spot.low, spot.high].map(|count| format!("{count:.0}"));
        middle.into_iter().chain(counts).collect::<Vec<_>>()
    };
    let rows: Vec<_> = found.spots.iter().take(args.top).map(row).collect();
    shown(&headings, &rows, args.format, out)?;
    if let Some(path) = &args.geojson {
        write_file(path, &found.geojson)?;
    }
    match &args.plot {
        Some(path) => map::draw(&found, [&args.x, &args.y], path),
        None => Ok(()),
    }
}

fn select(args: &Select, out: &mut impl Write) -> Result<(), Failure> {
    let candidates = args.candidates.as_ref().map(|path| {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::new("cli.read", format!("`{}` cannot be read: {error}", path.display()))
        })?;
        Ok::<_, Failure>(text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect())
    });
    let open = Open::at(&args.house)?;
    let wanted = Choosing {
        table: args.table.clone(),
        column: args.column.clone(),
        candidates: candidates.transpose()?,
        picks: args.top,
        guarantee: open.guarantee(args.epsilon, Some(args.delta))?,
        requester: open.requester.clone(),
    };
    let learned = open.learn(|backend, watch| open.engine.select(&open.project, &wanted, backend, watch))?;
    let found = certified(learned, args.certificate.as_deref())?;
    found.iter().try_for_each(|name| writeln!(out, "{name}"))?;
    Ok(())
}
