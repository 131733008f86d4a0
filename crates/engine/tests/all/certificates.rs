//! Releases end to end: charged, stored, certified, checked, and found out when something was changed.

use std::path::PathBuf;

use demur_accounting::Filter;
use demur_core::{Adjacency, Epsilon};
use demur_engine::{Answer, Engine, EngineError, Key, Numbers, Question, Term, verify};
use demur_ledger::{BudgetName, Ledger, Location, Options};
use demur_noise::{Gaussian, Laplace, Mechanism};

struct House {
    folder: tempfile::TempDir,
    location: Location,
}

impl House {
    fn new(filter: Filter) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("ledger.db"));
        let ledger = Ledger::create(&location, Options::default()).unwrap();
        ledger.create_budget(BudgetName::whole("visits"), "visits", "user_id", filter, "").unwrap();
        Self { folder, location }
    }

    fn pure() -> Self {
        Self::new(Filter::pure("1".parse().unwrap()).unwrap())
    }

    fn engine(&self) -> Engine {
        Engine::open(&self.location, Options::default()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn laplace(epsilon: f64) -> Laplace {
    Laplace::integer("1".parse().unwrap(), Epsilon::new(epsilon).unwrap()).unwrap()
}

fn question(mechanism: &dyn Mechanism) -> Question {
    Question {
        budget: "visits".into(),
        requester: "analyst".into(),
        id: None,
        data_version: None,
        text: "SELECT COUNT(*) FROM visits".into(),
        adjacency: Adjacency::AddRemove,
        terms: vec![Term {
            what: "COUNT(*)".into(),
            bounds: None,
            sensitivity: "1".into(),
            mechanism: mechanism.loss(),
            count: 1,
        }],
        columns: Vec::new(),
    }
}

fn ask(engine: &Engine, question: &Question, mechanism: &dyn Mechanism) -> Result<Answer, EngineError> {
    engine.ask(question, || Ok::<_, ()>(Numbers { mechanism, steps: vec![1000], count: 1 }))
}

#[test]
fn a_release_is_charged_stored_and_certified() {
    let house = House::pure();
    let (engine, noise) = (house.engine(), laplace(0.25));
    let answer = ask(&engine, &question(&noise), &noise).unwrap();
    let certificate = &answer.certificate;
    assert_eq!((certificate.released.len(), answer.replayed), (1, false));
    assert_eq!(certificate.guarantee.epsilon, "0.25".parse().unwrap());
    let verdict = verify(certificate.text().unwrap().as_bytes(), Some(&house.location), None).unwrap();
    assert!(
        verdict.is_good() && verdict.findings.iter().all(|finding| finding.holds.is_some()),
        "{verdict:?}"
    );
    let book = engine.ledger().book().unwrap();
    let budget = book.budget(&BudgetName::whole("visits")).unwrap();
    assert_eq!((budget.charges, budget.releases), (1, 1));
}

#[test]
fn gaussian_releases_state_the_epsilon_at_the_delta_of_their_budget() {
    let house = House::new(Filter::zcdp("2".parse().unwrap(), "1e-6".parse().unwrap()).unwrap());
    let delta = demur_core::Delta::new(1e-6).unwrap();
    let noise = Gaussian::integers(
        1,
        "1".parse().unwrap(),
        Epsilon::new(0.5).unwrap(),
        delta,
        demur_noise::Calibration::Analytic,
    );
    let noise = noise.unwrap();
    let answer = ask(&house.engine(), &question(&noise), &noise).unwrap();
    let promise = &answer.certificate.guarantee;
    assert!((promise.epsilon.to_f64() - 0.5).abs() < 1e-3, "{}", promise.epsilon);
    assert_eq!(promise.delta, "1e-6".parse().unwrap());
    let text = answer.certificate.text().unwrap();
    assert!(verify(text.as_bytes(), Some(&house.location), None).unwrap().is_good());
}

#[test]
fn the_same_request_is_answered_once_and_replayed_byte_for_byte() {
    let house = House::pure();
    let (engine, noise) = (house.engine(), laplace(0.6));
    let named = Question { id: Some("monday".into()), ..question(&noise) };
    let first = ask(&engine, &named, &noise).unwrap();
    for _ in 0..5 {
        let again = ask(&house.engine(), &named, &noise).unwrap();
        assert!(again.replayed);
        assert_eq!(again.certificate.text(), first.certificate.text());
    }
    assert!(ask(&engine, &question(&noise), &noise).unwrap_err().is_refusal());
}

/// One letter changed at any place of the file is found, or the file is not a certificate any more.
#[test]
fn a_tampered_digit_anywhere_is_found() {
    let house = House::pure();
    let (engine, noise) = (house.engine(), laplace(0.25));
    let text = ask(&engine, &question(&noise), &noise).unwrap().certificate.text().unwrap();
    let mut still_certificates = 0;
    for place in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[place] = match bytes[place] {
            b'9' => b'8',
            digit @ b'0'..=b'8' => digit + 1,
            b'a' => b'b',
            other => other ^ 1,
        };
        match verify(&bytes, None, None) {
            Err(_) => {}
            Ok(verdict) => {
                still_certificates += 1;
                assert!(!verdict.is_good(), "byte {place}: {}", String::from_utf8_lossy(&bytes));
            }
        }
    }
    assert!(still_certificates > 300, "only {still_certificates} of the changes could be read at all");
}

/// Whoever has a key can sign anything; the arithmetic and the ledger do not believe it.
#[test]
fn a_promise_that_does_not_follow_is_found_even_when_it_is_signed() {
    let house = House::pure();
    let (engine, noise) = (house.engine(), laplace(0.25));
    let honest = ask(&engine, &question(&noise), &noise).unwrap().certificate;
    let mut false_promise = honest.clone();
    false_promise.guarantee.epsilon = "0.2".parse().unwrap();
    let mut false_loss = honest.clone();
    false_loss.loss = "discrete_laplace(scale=8)".parse().unwrap();
    let mut false_values = honest;
    false_values.released = vec!["1000000".into()];
    let failures = |certificate: &demur_engine::Certificate, ledger: bool| -> Vec<String> {
        let location = ledger.then_some(&house.location);
        let verdict = verify(certificate.text().unwrap().as_bytes(), location, None).unwrap();
        let wrong = verdict.findings.into_iter().filter(|finding| finding.holds == Some(false));
        wrong.map(|finding| finding.text).collect()
    };
    let said = failures(&false_promise, false);
    assert!(said.iter().any(|text| text.contains("at least ε = 0.25")), "{said:?}");
    let said = failures(&false_loss, true);
    assert!(said.iter().any(|text| text.contains("not the charge for this question")), "{said:?}");
    let said = failures(&false_values, true);
    assert!(said.iter().any(|text| text.contains("has not released this certificate")), "{said:?}");
}

#[test]
fn certificates_of_an_earlier_key_stay_good() {
    let house = House::pure();
    let noise = laplace(0.25);
    let first = ask(&house.engine(), &question(&noise), &noise).unwrap().certificate;
    let new = Key::rotate(&house.path("ledger.db.key")).unwrap();
    let second = ask(&house.engine(), &question(&noise), &noise).unwrap().certificate;
    assert_eq!(second.signature.as_ref().unwrap().key, new.public());
    assert_ne!(first.signature.as_ref().unwrap().key, new.public());
    for certificate in [first, second] {
        assert!(
            verify(certificate.text().unwrap().as_bytes(), Some(&house.location), None).unwrap().is_good()
        );
    }
}

/// The ledger and its anchor are both older copies: only the certificate's head remembers.
#[test]
fn an_older_copy_with_its_anchor_is_seen_by_a_certificate() {
    let house = House::pure();
    let noise = laplace(0.25);
    drop(house.engine());
    for name in ["ledger.db", "ledger.db.anchor"] {
        std::fs::copy(house.path(name), house.path(&format!("old-{name}"))).unwrap();
    }
    let text = ask(&house.engine(), &question(&noise), &noise).unwrap().certificate.text().unwrap();
    for name in ["ledger.db", "ledger.db.anchor"] {
        std::fs::rename(house.path(&format!("old-{name}")), house.path(name)).unwrap();
    }
    let verdict = verify(text.as_bytes(), Some(&house.location), None).unwrap();
    assert!(verdict.findings.iter().any(|finding| finding.text.contains("older copy")), "{verdict:?}");
    assert!(!verdict.is_good());
}

/// What fails after the charge says nothing about why, and the charge stands.
#[test]
fn a_failure_after_the_charge_is_one_constant_sentence() {
    let house = House::pure();
    let (engine, noise) = (house.engine(), laplace(0.25));
    let failed = engine.ask(&question(&noise), || Err::<Numbers<'_>, _>("row 7 has 31 in it")).unwrap_err();
    let other = laplace(0.5); // costs more than was charged
    let dearer = ask(&engine, &question(&noise), &other).unwrap_err();
    let two = engine
        .ask(&question(&noise), || Ok::<_, ()>(Numbers { mechanism: &noise, steps: vec![1, 2], count: 1 }));
    for error in [&failed, &dearer, &two.unwrap_err()] {
        assert_eq!(error, &failed);
        assert_eq!(error.code(), "engine.failed");
    }
    let book = engine.ledger().book().unwrap();
    let budget = book.budget(&BudgetName::whole("visits")).unwrap();
    assert_eq!((budget.charges, budget.releases), (3, 0));
}

/// Nothing is computed for a question that is not paid for.
#[test]
fn a_refused_question_is_never_executed() {
    let house = House::pure();
    let noise = laplace(1.5);
    let refused =
        house.engine().ask(&question(&noise), || -> Result<Numbers<'_>, ()> { panic!("it was executed") });
    assert!(refused.unwrap_err().is_refusal());
}
