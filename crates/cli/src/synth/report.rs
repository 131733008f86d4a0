//! `demur synth report`: one page that shows what a model knows, and how far it is from its table.
//!
//! The page is one file without scripts. Bars and the map of pairs are boxes whose size and colour say the number.

use std::fmt::Write as _;
use std::io::Write as _;

use demur_core::{Delta, Epsilon, Guarantee};
use demur_engine::synth::{Compared, Synthetic};
use demur_engine::{Certificate, Embedded};

use crate::args::synth::Report;
use crate::failure::Failure;
use crate::place::{self, Place};
use crate::query;
use crate::query::waiting;
use crate::words;

/// Of columns with many codes the most frequent ones are shown.
const MOST_BARS: usize = 40;

pub(super) fn run(args: &Report) -> Result<(), Failure> {
    let (synthetic, certificate) = super::model(&args.model)?;
    let compared = args.epsilon.map(|epsilon| compare(args, &synthetic, epsilon)).transpose()?;
    let page = page(&synthetic, &certificate, compared.as_ref(), args)?;
    std::fs::write(&args.output, page).map_err(|error| {
        Failure::new("cli.file", format!("`{}` cannot be written: {error}", args.output.display()))
    })?;
    let _ = writeln!(std::io::stderr(), "the report is in {}", args.output.display());
    Ok(())
}

fn compare(args: &Report, synthetic: &Synthetic, epsilon: f64) -> Result<Compared, Failure> {
    let wrong = |error: demur_core::Error| Failure::new("cli.guarantee", error.to_string());
    let project = query::project(args.project.as_deref())?;
    let delta = match args.delta {
        Some(0.0) => Delta::ZERO,
        Some(delta) => Delta::new(delta).map_err(wrong)?,
        None => project.catalog.budget.delta.unwrap_or(Delta::ZERO),
    };
    let guarantee = Guarantee::new(Epsilon::new(epsilon).map_err(wrong)?, delta);
    let target = args.guess.as_deref().map(|name| place_of(synthetic, name)).transpose()?;
    let place = Place::of_project(args.ledger.as_deref(), &project.folder)?;
    let engine = place.engine(&project)?;
    let requester = args.requester.clone().unwrap_or_else(place::user);
    let backend = Embedded::new(&project.folder)?;
    waiting::listen(backend.reading(), waiting::CHARGED)?;
    Ok(engine.compare(&project, synthetic, guarantee, target, &requester, &backend)?)
}

fn place_of(synthetic: &Synthetic, name: &str) -> Result<usize, Failure> {
    let columns = &synthetic.header.columns;
    columns.iter().position(|column| column.name == name).ok_or_else(|| {
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        Failure::new("cli.column", format!("the model has no column `{name}`"))
            .hint(format!("there are: {}", names.join(", ")))
    })
}

const STYLE: &str = "\
:root { color-scheme: light dark; --ink: #1b7fbd; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
table { border-collapse: collapse; } td, th { padding: .15rem .6rem; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1.5rem; }
.bar { display: grid; grid-template-columns: 9rem 1fr 4rem; gap: .5rem; font-size: .8rem; align-items: center; }
.bar span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.bar i { background: var(--ink); height: .7rem; display: block; min-width: 1px; }
.map td { width: 1.8rem; height: 1.5rem; padding: 0; font-size: .65rem; text-align: center; border: 1px solid var(--line); }
.map th { font-weight: normal; font-size: .75rem; } .map th.up { writing-mode: vertical-rl; }
p.note { opacity: .75; }";

fn page(
    synthetic: &Synthetic,
    certificate: &Certificate,
    compared: Option<&Compared>,
    args: &Report,
) -> Result<String, Failure> {
    let header = &synthetic.header;
    let mut page = String::new();
    let title = format!("A model of {}", escaped(&header.table));
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<style>\n{STYLE}\n</style>\n<h1>{title}</h1>\n"
    );
    facts(&mut page, synthetic, certificate);
    match compared {
        Some(compared) => distances(&mut page, synthetic, compared, args),
        None => page.push_str(
            "<p class=note>How far the model is from the table is not shown: that would be about the table. <code>demur synth report --epsilon 0.1</code> spends a little to tell it.</p>\n",
        ),
    }
    page.push_str("<h2>What the model says about each column</h2>\n<div class=columns>\n");
    for place in 0..header.columns.len() {
        bars(&mut page, synthetic, place)?;
    }
    page.push_str("</div>\n</html>\n");
    Ok(page)
}

fn facts(page: &mut String, synthetic: &Synthetic, certificate: &Certificate) {
    let header = &synthetic.header;
    let unit = match header.unit.as_str() {
        "row" => "each row".to_owned(),
        column => format!("whoever a value of <code>{}</code> names", escaped(column)),
    };
    let facts = [
        ("fitted by", header.method.clone()),
        ("rows, about", format!("{:.0}", synthetic.model.rows())),
        ("columns", header.columns.len().to_string()),
        ("numbers in the model", synthetic.model.cells().to_string()),
        (
            "cost of the model",
            format!("ε = {}, δ = {}", words::up(header.cost.0, 4), words::up(header.cost.1, 4)),
        ),
        ("whose data is hidden", unit),
        ("rows of one unit, at most", header.rows_per_unit.to_string()),
        (
            "paid by the budget",
            format!("{}, entry {}", escaped(&certificate.budget.name), certificate.charge.sequence),
        ),
    ];
    page.push_str("<table>\n");
    for (name, value) in facts {
        let _ = writeln!(page, "<tr><th>{name}<td>{value}");
    }
    page.push_str("</table>\n");
}

fn distances(page: &mut String, synthetic: &Synthetic, compared: &Compared, args: &Report) {
    page.push_str("<h2>How far the model is from the table</h2>\n<p>Total variation distance: which share of rows would have to change. ");
    let certificate = &compared.certificate;
    let paid = match compared.replayed {
        true => "it was told before, and cost nothing now".to_owned(),
        false => {
            format!(
                "paid by the budget {}, entry {}",
                escaped(&certificate.budget.name),
                certificate.charge.sequence
            )
        }
    };
    let _ = writeln!(
        page,
        "Told with noise, for ε = {}, {paid}. The standard deviation of the noise in one distance is {:.4}; where a distance is smaller than that, only its order of magnitude is known.</p>",
        args.epsilon.unwrap_or_default(),
        compared.deviation
    );
    page.push_str("<table>\n");
    let pairs: Vec<f64> = compared.pairs.iter().map(|pair| pair.1).collect();
    let triples: Vec<f64> = compared.triples.into_iter().collect();
    for (name, all) in
        [("single columns, mean", &compared.ones), ("pairs, mean", &pairs), ("triples, mean", &triples)]
    {
        if let Some((mean, deviation)) = mean(all, compared.deviation) {
            let _ = writeln!(page, "<tr><th>{name}<td class=n>{mean:.4} ± {:.4}", 2.0 * deviation);
        }
    }
    if let (Some(right), Some(deviation), Some(name)) =
        (compared.right, compared.right_deviation, &args.guess)
    {
        let _ = writeln!(
            page,
            "<tr><th>share of the table's rows whose <code>{}</code> the model guesses right<td class=n>{right:.4} ± {:.4}",
            escaped(name),
            2.0 * deviation
        );
    }
    page.push_str("</table>\n<h2>Pairs</h2>\n");
    map(page, synthetic, compared);
}

/// The mean of noisy numbers, not below 0, and its standard deviation; `None` where there are none.
fn mean(all: &[f64], deviation: f64) -> Option<(f64, f64)> {
    let many = all.len() as f64;
    (many > 0.0).then(|| ((all.iter().sum::<f64>() / many).max(0.0), deviation / many.sqrt()))
}

/// A box for each pair, the darker the further off.
fn map(page: &mut String, synthetic: &Synthetic, compared: &Compared) {
    let columns = &synthetic.header.columns;
    let most = compared.pairs.iter().map(|pair| pair.1).fold(1e-9, f64::max);
    page.push_str("<table class=map>\n<tr><th>");
    for column in columns {
        let _ = write!(page, "<th class=up>{}", escaped(&column.name));
    }
    for (row, column) in columns.iter().enumerate() {
        let _ = write!(page, "\n<tr><th>{}", escaped(&column.name));
        for other in 0..columns.len() {
            let pair = (row.min(other), row.max(other));
            let found = compared.pairs.iter().find(|(places, _)| *places == pair);
            let distance = match (row == other, found) {
                (true, _) => compared.ones.get(row).copied(),
                (false, found) => found.map(|(_, distance)| *distance),
            };
            match distance {
                Some(distance) => {
                    let distance = distance.clamp(0.0, 1.0);
                    let dark = (100.0 * distance / most).clamp(0.0, 100.0);
                    let _ = write!(
                        page,
                        "<td style=\"background: color-mix(in srgb, #d95f02 {dark:.0}%, transparent)\" title=\"{distance:.4}\">{:.0}",
                        1000.0 * distance
                    );
                }
                None => page.push_str("<td>"),
            }
        }
    }
    page.push_str("\n</table>\n<p class=note>In thousandths; single columns on the diagonal.</p>\n");
}

/// The shares of a column's codes.
fn bars(page: &mut String, synthetic: &Synthetic, place: usize) -> Result<(), Failure> {
    let column = &synthetic.header.columns[place];
    let shares = synthetic.share_of(place)?;
    let most = shares.iter().copied().fold(1e-12, f64::max);
    let mut shown: Vec<usize> = (0..shares.len()).collect();
    if shown.len() > MOST_BARS {
        shown.sort_by(|a, b| shares[*b].total_cmp(&shares[*a]));
        shown.truncate(MOST_BARS);
    }
    let _ = writeln!(page, "<section><h3>{}</h3>", escaped(&column.name));
    for code in shown {
        let (share, label) = (shares[code], column.label(code));
        let label = if label.is_empty() { "(empty)" } else { label.as_str() };
        let _ = writeln!(
            page,
            "<div class=bar><span title=\"{label}\">{label}</span><i style=\"width: {:.1}%\"></i><span>{:.2} %</span></div>",
            100.0 * share / most,
            100.0 * share,
            label = escaped(label),
        );
    }
    if shares.len() > MOST_BARS {
        let _ = writeln!(
            page,
            "<p class=note>{} of {} values, the most frequent ones</p>",
            MOST_BARS,
            shares.len()
        );
    }
    page.push_str("</section>\n");
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
