//! Laplace against Gaussian error by dimension.

use std::io::Write;

use demur_exact::Rational;
use demur_noise::{Calibration, Gaussian, Laplace, Mechanism};
use serde_json::json;

use crate::args::{self, Format};
use crate::failure::Failure;
use crate::output::{print_columns, short};
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};

/// The two errors for one dimension.
struct Row {
    dimensions: u64,
    laplace: f64,
    gaussian: f64,
}

pub(crate) fn compare(args: &args::Compare, out: &mut impl Write) -> Result<(), Failure> {
    let rows = args.dimensions.iter().map(|&k| row(args, k)).collect::<Result<Vec<_>, _>>()?;
    let (terminal, file) = args.plot.iter().partition::<Vec<_>, _>(|path| path.as_os_str() == "-");
    for path in file {
        chart(args, &rows).draw(path, out)?;
    }
    match args.format {
        Format::Table => table(&rows, out)?,
        Format::Lines | Format::Csv => {
            writeln!(out, "dimensions,laplace,gaussian")?;
            for row in &rows {
                writeln!(out, "{},{},{}", row.dimensions, row.laplace, row.gaussian)?;
            }
        }
        Format::Json => {
            let list: Vec<_> = rows
                .iter()
                .map(|row| json!({"dimensions": row.dimensions, "laplace": row.laplace, "gaussian": row.gaussian}))
                .collect();
            writeln!(out, "{:#}", json!(list))?;
        }
    }
    for path in terminal {
        writeln!(out)?;
        chart(args, &rows).draw(path, out)?;
    }
    Ok(())
}

/// One person changes each of k values by at most the sensitivity.
fn row(args: &args::Compare, dimensions: u64) -> Result<Row, Failure> {
    let k = Rational::from(dimensions);
    let l1 = &args.sensitivity * &k;
    let l2_squared = &args.sensitivity.square() * &k;
    let laplace = Laplace::reals(dimensions, l1, args.epsilon)?;
    let gaussian = Gaussian::reals(dimensions, l2_squared, args.epsilon, args.delta, Calibration::Analytic)?;
    Ok(Row { dimensions, laplace: laplace.error(0.05)?.joint, gaussian: gaussian.error(0.05)?.joint })
}

fn table(rows: &[Row], out: &mut impl Write) -> Result<(), Failure> {
    writeln!(out, "largest error of k values published together, in 95 of 100 cases\n")?;
    let cells = |row: &Row| {
        let better = if row.laplace <= row.gaussian { "laplace" } else { "gaussian" };
        vec![row.dimensions.to_string(), short(row.laplace), short(row.gaussian), better.to_owned()]
    };
    let rows: Vec<_> = rows.iter().map(cells).collect();
    Ok(print_columns(out, &["k", "laplace", "gaussian", "better"], &rows)?)
}

fn chart<'a>(args: &args::Compare, rows: &[Row]) -> Chart<'a> {
    let points =
        |error: fn(&Row) -> f64| rows.iter().map(|row| (row.dimensions as f64, error(row))).collect();
    let curve = |name, color, points| Curve { name, color, stroke: Stroke::Solid, points };
    Chart {
        title: format!("Error by dimension (ε = {}, δ = {})", args.epsilon.value(), args.delta.value()),
        subject: String::new(),
        x: Axis::logarithmic("values published together"),
        y: Axis::logarithmic("largest error, 95 of 100 cases"),
        curves: vec![
            curve("Laplace", INKS[1], points(|row| row.laplace)),
            curve("Gaussian", INKS[0], points(|row| row.gaussian)),
        ],
    }
}
