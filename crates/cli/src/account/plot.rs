//! `demur account plot`: pictures of guarantees.

mod loss;
mod profile;
mod size;
mod steps;
mod tradeoff;

use std::io::Write;

use demur_accounting::{Account, AccountingError};
use demur_core::PrivacyLoss;
use demur_exact::Rational;

use super::losses::shown;
use crate::args::account::{Picture, Plot};
use crate::failure::Failure;
use crate::plot::Chart;

/// Above a picture there is room for so many characters.
const SUBJECT: usize = 80;

pub(crate) fn plot(args: &Plot, out: &mut impl Write) -> Result<(), Failure> {
    chart(args)?.draw(&args.out, out)
}

fn chart(args: &Plot) -> Result<Chart<'static>, Failure> {
    match args.picture {
        Picture::Profile => profile::chart(&args.losses.read()?),
        Picture::Tradeoff => tradeoff::chart(&args.losses.read()?),
        Picture::Loss => loss::chart(&args.losses.read()?),
        Picture::Steps => steps::chart(args),
        Picture::Size => size::chart(args),
    }
}

/// The losses, where they fit above a picture.
fn subject(loss: &PrivacyLoss) -> String {
    let text = shown(loss);
    match text.chars().count() > SUBJECT {
        true => format!("{} …", text.chars().take(SUBJECT).collect::<String>()),
        false => text,
    }
}

/// δ(ε) between bounds, over an even grid of ε from 0 to where δ is nearly `least`.
struct Profile {
    points: Vec<Point>,
}

struct Point {
    epsilon: f64,
    lower: f64,
    upper: f64,
}

impl Profile {
    fn of(account: &Account, least: Rational, points: u32) -> Result<Self, Failure> {
        let most = reach(account, least)?;
        let point = |index: u32| -> Result<Point, AccountingError> {
            let epsilon = most * f64::from(index) / f64::from(points);
            let bounds = account.delta(&exactly(epsilon))?.bounds;
            Ok(Point { epsilon, lower: bounds.lower, upper: bounds.upper })
        };
        let (proven, refused): (Vec<_>, Vec<_>) = (0..=points).map(point).partition(Result::is_ok);
        match refused.into_iter().next() {
            Some(Err(error)) if proven.is_empty() => Err(error.into()),
            _ => Ok(Self { points: proven.into_iter().flatten().collect() }),
        }
    }
}

/// The ε at which δ is `least`, or as near to it as can be proven.
fn reach(account: &Account, least: Rational) -> Result<f64, Failure> {
    let mut delta = least;
    loop {
        let found = account.epsilon(&delta).map(|answer| answer.bounds.upper);
        let next = &delta * &Rational::from(100u32);
        match found {
            Ok(epsilon) if epsilon.is_finite() => return Ok(if epsilon > 0.0 { epsilon } else { 1.0 }),
            found if next >= Rational::one() => return Ok(found.map(|_| 1.0)?),
            _ => delta = next,
        }
    }
}

fn exactly(value: f64) -> Rational {
    // Only finite grid points are asked for.
    Rational::try_from(value).unwrap_or_else(|_| Rational::zero())
}
