//! Answers questions from standard input with their widths and times, to look for wide and slow corners.
//!
//! ```text
//! $ echo '{"losses":"gaussian(sigma=5)*100","delta":"1e-6"}' | cargo run --release -p demur-accounting --example probe
//! 2.8e-15  0.31ms closed  [9.997256149402938, 9.997256149402967]  {"losses":"gaussian(sigma=5)*100","delta":"1e-6"}
//! ```
//!
//! Each line is a question of `demur account batch`: losses with delta, epsilon or order,
//! perhaps a method, or something to calibrate.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::io::{BufRead, stdin};
use std::time::Instant;

use demur_accounting::calibrate::{Setting, Target, calibrate};
use demur_accounting::{Account, Bounds, Method};
use demur_exact::Rational;
use serde::Deserialize;

type Fault = Box<dyn std::error::Error>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    losses: String,
    delta: Option<Rational>,
    epsilon: Option<Rational>,
    order: Option<Rational>,
    calibrate: Option<String>,
    sensitivity: Option<Rational>,
    steps: Option<u64>,
    sampling_rate: Option<Rational>,
    sigma: Option<Rational>,
    method: Option<String>,
}

impl Asked {
    fn answer(self) -> Result<(Bounds, &'static str), Fault> {
        if let Some(unknown) = self.calibrate {
            let target = Target {
                epsilon: self.epsilon.ok_or("a calibration needs an epsilon")?,
                delta: self.delta.unwrap_or_else(Rational::zero),
            };
            let setting = Setting {
                sensitivity: self.sensitivity.unwrap_or_else(Rational::one),
                steps: self.steps.unwrap_or(1),
                rate: self.sampling_rate.unwrap_or_else(Rational::one),
                sigma: self.sigma,
            };
            let found = calibrate(unknown.parse()?, &target, &setting)?;
            let ends = [found.value, found.lower];
            let bounds = Bounds { lower: ends[0].min(ends[1]), upper: ends[0].max(ends[1]) };
            return Ok((bounds, found.parameter));
        }
        let account = Account::of(&self.losses.parse()?)?;
        let method: Option<Method> = self.method.map(|name| name.parse()).transpose()?;
        match (self.delta, self.epsilon, self.order) {
            (Some(delta), None, None) => {
                let answer = match method {
                    Some(method) => account.epsilon_by(method, &delta)?,
                    None => account.epsilon(&delta)?,
                };
                Ok((answer.bounds, answer.method.name()))
            }
            (None, Some(epsilon), None) => {
                let answer = match method {
                    Some(method) => account.delta_by(method, &epsilon)?,
                    None => account.delta(&epsilon)?,
                };
                Ok((answer.bounds, answer.method.name()))
            }
            (None, None, Some(order)) => {
                let [here, there] = account.renyi(&order)?;
                let wider = if here.relative_width() > there.relative_width() { here } else { there };
                Ok((wider, "order"))
            }
            _ => Err("give exactly one of delta, epsilon and order".into()),
        }
    }
}

fn main() -> Result<(), Fault> {
    for line in stdin().lock().lines() {
        let line = line?;
        let start = Instant::now();
        let answer = serde_json::from_str::<Asked>(&line).map_err(Fault::from).and_then(Asked::answer);
        let time = start.elapsed().as_secs_f64() * 1e3;
        match answer {
            Ok((bounds, method)) => {
                let width = if bounds.upper == 0.0 { 0.0 } else { bounds.relative_width() };
                println!(
                    "{width:.1e} {time:8.2}ms {method:9} [{:e}, {:e}] {line}",
                    bounds.lower, bounds.upper
                );
            }
            Err(error) => println!("refused {time:8.2}ms {error} {line}"),
        }
    }
    Ok(())
}
