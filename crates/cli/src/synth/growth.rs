//! `demur synth growth`: how the error of each method falls as a table grows.

use std::io::Write;

use demur_core::Epsilon;
use demur_engine::synth::Growth;
use demur_noise::Entropy;

use crate::args::synth::Growth as Args;
use crate::failure::Failure;
use crate::plot::{Axis, Chart, Curve, INKS, Stroke};
use crate::table::{Side, Table};

const COLUMNS: [(&str, Side); 8] = [
    ("rows", Side::Right),
    ("BLR, promised", Side::Right),
    ("its records", Side::Right),
    ("BLR", Side::Right),
    ("MWEM, promised", Side::Right),
    ("MWEM", Side::Right),
    ("AIM", Side::Right),
    ("noisy histogram", Side::Right),
];

pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let epsilon =
        Epsilon::new(args.epsilon).map_err(|error| Failure::new("cli.epsilon", error.to_string()))?;
    let mut entropy = Entropy::from_os()?;
    let measure = |rows: &u64| {
        Growth::measure(*rows, epsilon, args.runs, &mut entropy)
            .map_err(|error| Failure::new(error.code(), error.to_string()))
    };
    let all = args.rows.iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    Table::new(&COLUMNS).print(out, &all.iter().map(row).collect::<Vec<_>>())?;
    match &args.plot {
        Some(path) => chart(&all, args).draw(path, out),
        None => Ok(()),
    }
}

fn row(growth: &Growth) -> Vec<String> {
    let error = |error: f64| format!("{error:.5}");
    let promised =
        growth.promised.map_or((String::new(), String::new()), |(alpha, m)| (error(alpha), m.to_string()));
    vec![
        growth.rows.to_string(),
        promised.0,
        promised.1,
        growth.blr.map(error).unwrap_or_default(),
        growth.mwem_promised.map(error).unwrap_or_default(),
        error(growth.mwem),
        error(growth.aim),
        error(growth.histogram),
    ]
}

fn chart<'a>(all: &[Growth], args: &Args) -> Chart<'a> {
    let curve = |name, ink: usize, stroke, error: &dyn Fn(&Growth) -> Option<f64>| {
        let point = |growth: &Growth| Some((growth.rows as f64, error(growth).filter(|error| *error > 0.0)?));
        Curve { name, color: INKS[ink], stroke, points: all.iter().filter_map(point).collect() }
    };
    Chart {
        title: "Largest error as a table grows".to_owned(),
        subject: format!("two yes-or-no columns, ε = {}; δ = 1e-9 for MWEM and AIM", args.epsilon),
        x: Axis::logarithmic("rows"),
        y: Axis::logarithmic("largest error of a share"),
        curves: vec![
            curve("BLR, promised", 0, Stroke::Dashed, &|growth| Some(growth.promised?.0)),
            curve("BLR", 0, Stroke::Solid, &|growth| growth.blr),
            curve("MWEM, promised", 1, Stroke::Dashed, &|growth| growth.mwem_promised),
            curve("MWEM", 1, Stroke::Solid, &|growth| Some(growth.mwem)),
            curve("AIM", 2, Stroke::Solid, &|growth| Some(growth.aim)),
            curve("noisy histogram", 3, Stroke::Solid, &|growth| Some(growth.histogram)),
        ],
    }
}
