//! Exact answers from elsewhere: every interval must hold them, and be narrow.
//!
//! `data/reference.json` was computed with mpmath to 30 digits and by roads of its own (`route` names them), the
//! benchmark's answers are those of `bench/peers/exact.csv`.

#![expect(clippy::unwrap_used, reason = "a failing test may fail anywhere")]

use demur_accounting::{Account, Bounds};
use demur_exact::Rational;
use serde::Deserialize;

/// One line of the file: what is known besides the losses depends on `find`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    losses: String,
    find: Find,
    epsilon: Option<Rational>,
    delta: Option<Rational>,
    order: Option<Rational>,
    renyi: Option<Rational>,
    renyi_other: Option<Rational>,
    kind: Kind,
    route: String,
    /// The answers in both directions, of which the larger counts.
    remove: Option<Rational>,
    add: Option<Rational>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Find {
    Delta,
    Epsilon,
    Renyi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Closed,
    Composed,
}

/// The most an answer may be where the truth is 0.
const NOTHING: f64 = 1e-30;

impl Case {
    /// The intervals found, each with what must be in it.
    fn answers(&self) -> Vec<(Bounds, &Rational)> {
        let account = Account::of(&self.losses.parse().unwrap()).unwrap();
        let asked = self.asked().unwrap();
        match self.find {
            Find::Delta => {
                let answer = account.delta(asked).unwrap();
                vec![(answer.bounds, self.delta.as_ref().unwrap())]
            }
            Find::Epsilon => {
                let answer = account.epsilon(asked).unwrap();
                vec![(answer.bounds, self.epsilon.as_ref().unwrap())]
            }
            Find::Renyi => {
                let [here, there] = account.renyi(asked).unwrap();
                let truth = self.renyi.as_ref().unwrap();
                vec![(here, truth), (there, self.renyi_other.as_ref().unwrap_or(truth))]
            }
        }
    }

    /// How far above the truth, relatively, an upper bound may be.
    fn limit(&self) -> f64 {
        match self.kind {
            Kind::Closed => 1e-9,
            Kind::Composed => 1e-8,
        }
    }

    fn asked(&self) -> Option<&Rational> {
        match self.find {
            Find::Delta => self.epsilon.as_ref(),
            Find::Epsilon => self.delta.as_ref(),
            Find::Renyi => self.order.as_ref(),
        }
    }

    fn name(&self) -> String {
        let asked = self.asked().map(Rational::to_string).unwrap_or_default();
        format!("{:?} of {} at {asked} ({})", self.find, self.losses, self.route)
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("data/reference.json")).unwrap()
}

fn exact(value: f64) -> Rational {
    Rational::try_from(value).unwrap()
}

/// What is wrong with an interval, if anything.
fn fault(bounds: Bounds, truth: &Rational, limit: f64) -> Option<String> {
    let (lower, upper) = (exact(bounds.lower), exact(bounds.upper));
    let excess = &upper - truth;
    let loose = match truth.is_zero() {
        true => upper > exact(NOTHING),
        false => excess > truth * &exact(limit),
    };
    let word = match (lower > *truth || upper < *truth, loose) {
        (true, _) => "wrong",
        (_, true) => "loose",
        _ => return None,
    };
    Some(format!("{word}: [{:e}, {:e}], but it is {:e}", bounds.lower, bounds.upper, truth.to_f64()))
}

#[test]
fn every_reference_is_enclosed_and_tight() {
    let mut faults = vec![];
    for case in cases() {
        for (bounds, truth) in case.answers() {
            faults
                .extend(fault(bounds, truth, case.limit()).map(|fault| format!("{}: {fault}", case.name())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Few uses of Gaussian noise on a sample are known from both sides.
#[test]
fn few_sampled_gaussians_have_a_narrow_interval() {
    let few = |case: &Case| {
        let uses = case.losses.rsplit_once("))*").and_then(|(_, uses)| uses.parse::<u64>().ok());
        case.losses.starts_with("subsampled(")
            && case.losses.contains("gaussian")
            && uses.is_some_and(|n| n <= 40)
    };
    let cases: Vec<_> = cases().into_iter().filter(|case| case.find == Find::Epsilon && few(case)).collect();
    assert!(cases.len() >= 12, "{}", cases.len());
    for case in cases {
        for (bounds, _) in case.answers() {
            assert!(bounds.relative_width() < 5e-9, "{}: {bounds:?}", case.name());
        }
    }
}

#[test]
fn the_reference_file_is_complete() {
    let cases = cases();
    assert!(cases.len() >= 488, "{} cases", cases.len());
    for find in [Find::Delta, Find::Epsilon, Find::Renyi] {
        for kind in [Kind::Closed, Kind::Composed] {
            let count = cases.iter().filter(|case| case.find == find && case.kind == kind).count();
            assert!(count >= 20, "{count} cases for {find:?}, {kind:?}");
        }
    }
    for case in &cases {
        let known = [&case.epsilon, &case.delta, &case.order, &case.renyi].map(Option::is_some);
        let expected = case.find != Find::Renyi;
        assert_eq!(known, [expected, expected, !expected, !expected], "{}", case.name());
        assert!(!case.route.is_empty());
        // The file agrees with itself: the larger of both directions is the answer.
        let answer = if case.find == Find::Delta { &case.delta } else { &case.epsilon };
        let worst = [&case.remove, &case.add].into_iter().flatten().max();
        assert!(worst.is_none() || worst == answer.as_ref(), "{}", case.name());
    }
    let rare = |case: &&Case| case.losses.starts_with("subsampled(0.00") && case.find != Find::Renyi;
    assert!(cases.iter().filter(rare).count() >= 26);
}

/// The questions of `bench/peers` with their answers: ε at δ = 10⁻⁶ and at δ = 10⁻¹⁰.
fn benchmark() -> [(String, &'static str, &'static str); 6] {
    let mixed = (1..=25).map(|i| {
        format!(
            "gaussian(sigma={}) + laplace(scale={}) + subsampled(0.01, gaussian(sigma={}/25)) \
             + randomized_response(epsilon={i}/100)",
            10 + i,
            20 + i,
            25 + i,
        )
    });
    [
        ("subsampled(0.01, gaussian(sigma=1))*1000".to_owned(), "2.12451517112012128", "3.29044375089529836"),
        (
            "subsampled(0.01, gaussian(sigma=1))*10000".to_owned(),
            "6.90738449504508235",
            "9.31613852588233445",
        ),
        (
            "subsampled(0.001, gaussian(sigma=0.8))*100000".to_owned(),
            "2.91447833498853789",
            "4.06916730699626787",
        ),
        ("gaussian(sigma=5)*10000".to_owned(), "294.171786257644501", "326.358950514882699"),
        ("laplace(epsilon=0.1)*1000".to_owned(), "18.9502873675395582", "23.9444248502046177"),
        (mixed.collect::<Vec<_>>().join(" + "), "3.4301879717786832", "4.28147513302418577"),
    ]
}

#[test]
fn interval_widths_of_the_benchmark_cases() {
    for (losses, at_millionth, at_smaller) in benchmark() {
        let account = Account::of(&losses.parse().unwrap()).unwrap();
        for (delta, truth) in [("1e-6", at_millionth), ("1e-10", at_smaller)] {
            let truth: Rational = truth.parse().unwrap();
            let found = account.epsilon(&delta.parse().unwrap()).unwrap();
            let (lower, upper) = (exact(found.bounds.lower), exact(found.bounds.upper));
            // The answers have 18 digits.
            let half_a_digit = &truth * &"1e-17".parse().unwrap();
            assert!(
                lower <= &truth + &half_a_digit && &truth - &half_a_digit <= upper,
                "{losses}: {found:?}"
            );
            assert!(found.bounds.relative_width() <= 1e-9, "{losses}: {found:?}");
        }
    }
}
