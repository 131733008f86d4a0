//! `demur account convert`: a loss in other currencies.

use std::io::Write;

use demur_accounting::{Account, Bounds, worth};
use demur_core::PrivacyLoss;
use demur_exact::Rational;
use serde::Serialize;
use serde_json::value::RawValue;

use super::figure::{Figure, unwritable};
use super::losses::{parse_or_gdp, shown};
use crate::args::account::{Convert, Form};
use crate::failure::Failure;
use crate::output::Facts;
use crate::words::up;

/// The orders at which Rényi divergences are shown.
const ORDERS: [u32; 5] = [2, 4, 8, 16, 32];

/// What a loss is worth; what has no finite value is absent.
#[derive(Serialize)]
struct Worth {
    losses: String,
    delta: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pure_epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rho: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mu: Option<f64>,
    renyi: Vec<Renyi>,
}

#[derive(Serialize)]
struct Renyi {
    order: u32,
    epsilon: f64,
}

pub(crate) fn convert(args: &Convert, out: &mut impl Write) -> Result<(), Failure> {
    let loss = parse_or_gdp(&args.losses)?;
    let delta = Figure::delta(&args.delta)?;
    let worth = Worth::of(&loss, &delta)?;
    match args.format {
        Form::Table => Ok(worth.facts(&loss, &delta).print(out)?),
        Form::Json => Ok(writeln!(out, "{}", serde_json::to_string_pretty(&worth).map_err(unwritable)?)?),
    }
}

impl Worth {
    fn of(loss: &PrivacyLoss, delta: &Figure) -> Result<Self, Failure> {
        let account = Account::of(loss)?;
        let at = |delta: &Rational| account.epsilon(delta).ok().and_then(|answer| finite(answer.bounds));
        let exact = loss.pure_epsilon().map(|epsilon| epsilon.to_f64_up());
        Ok(Self {
            losses: loss.to_string(),
            delta: delta.json()?,
            pure_epsilon: exact.or_else(|| at(&Rational::zero())),
            epsilon: at(&delta.value),
            rho: worth::rho(loss).map(|rho| rho.to_f64_up()),
            mu: worth::mu(loss),
            renyi: ORDERS.into_iter().filter_map(|order| renyi(&account, order)).collect(),
        })
    }

    fn facts(&self, loss: &PrivacyLoss, delta: &Figure) -> Facts {
        let mut facts = Facts::default();
        facts.add("losses", shown(loss));
        let mut add = |name: &str, value: Option<f64>, text: fn(String) -> String| {
            if let Some(value) = value {
                facts.add(name, text(up(value, 7)));
            }
        };
        add("pure", self.pure_epsilon, |epsilon| format!("ε = {epsilon}"));
        add("zero-concentrated", self.rho, |rho| format!("ρ = {rho}"));
        add("Gaussian", self.mu, |mu| format!("μ = {mu}"));
        if let Some(epsilon) = self.epsilon {
            facts.add("approximate", format!("ε = {} at δ = {}", up(epsilon, 7), delta.text));
        }
        for Renyi { order, epsilon } in &self.renyi {
            facts.add(format!("Rényi, order {order}"), format!("ε = {}", up(*epsilon, 7)));
        }
        facts
    }
}

/// The larger divergence of both directions.
fn renyi(account: &Account, order: u32) -> Option<Renyi> {
    let [remove, add] = account.renyi(&Rational::from(order)).ok()?;
    finite(remove.max(add)).map(|epsilon| Renyi { order, epsilon })
}

fn finite(bounds: Bounds) -> Option<f64> {
    bounds.upper.is_finite().then_some(bounds.upper)
}
