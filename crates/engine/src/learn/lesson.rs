//! [`Lesson`]: rows on their way to something that may be shown, by a plan that was paid for.
//!
//! **Paying once.** What was charged and then stopped (by a key, a crash, a lost machine) goes on under the same charge when it is asked for again: nothing is shown before it is
//! stored, so nobody saw what the first attempt would have said. One process works on a charge at a time.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use demur_core::PrivacyLoss;
use demur_ledger::Hash;
use demur_noise::Entropy;
use demur_plan::catalog::Table;

use crate::backend::Backend;
use crate::private::Private;
use crate::{Answer, Certificate, Engine, EngineError, Project, Question, Term};

/// How often work may be paid for and left unfinished.
const MOST_ATTEMPTS: u32 = 64;

/// How far a run is. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace<'a> {
    /// What is done.
    pub stage: &'a str,
    /// How many steps of it are done.
    pub step: u64,
    /// How many there will be, where that is known.
    pub steps: Option<u64>,
    /// What a training had cost when it was last stored: ε at the δ that was asked for.
    pub epsilon: Option<f64>,
    /// How good the model was on public rows then, where there are some.
    pub score: Option<super::Score>,
}

/// Hears how far a run is.
pub type Watch<'a> = dyn FnMut(&Pace<'_>) + 'a;

/// What was released, now or earlier.
pub struct Learned<T> {
    /// The thing itself.
    pub value: T,
    /// What is promised about it.
    pub certificate: Certificate,
    /// Whether it was released before, and cost nothing now.
    pub replayed: bool,
}

impl<T> Learned<T> {
    /// Reads the released texts of an answer.
    pub(crate) fn of(
        answer: Answer,
        read: impl FnOnce(&[String]) -> Result<T, EngineError>,
    ) -> Result<Self, EngineError> {
        let value = read(&answer.certificate.released)?;
        Ok(Self { value, certificate: answer.certificate, replayed: answer.replayed })
    }
}

/// See the module text.
pub(crate) struct Lesson<F> {
    loss: PrivacyLoss,
    run: F,
}

impl<F: FnOnce(&mut Entropy) -> Result<Vec<String>, EngineError>> Private for Lesson<F> {
    fn loss(&self) -> PrivacyLoss {
        self.loss.clone()
    }

    fn publish(self, entropy: &mut Entropy) -> Result<Vec<String>, EngineError> {
        (self.run)(entropy)
    }
}

/// What is learned from a table, and what it costs: all of it public.
pub(crate) struct Asked<'a> {
    pub(crate) project: &'a Project,
    pub(crate) table: &'a Table,
    pub(crate) requester: &'a str,
    /// What comes out, in words.
    pub(crate) what: &'static str,
    /// Everything that was asked for, so that equal texts mean equal wishes.
    pub(crate) wish: String,
    pub(crate) bounds: String,
    pub(crate) sensitivity: &'static str,
    pub(crate) loss: PrivacyLoss,
}

impl Engine {
    /// Charges, reads the rows, and releases what is made of them; or goes on with what was charged.
    pub(crate) fn learn<F>(
        &self,
        asked: Asked<'_>,
        backend: &dyn Backend,
        read: impl FnOnce() -> Result<F, EngineError>,
    ) -> Result<Answer, EngineError>
    where
        F: FnOnce(&mut Entropy) -> Result<Vec<String>, EngineError>,
    {
        self.learn_from(asked, backend, |_| true, |_| read())
    }

    /// The same; `may_go_on` says of a file whether an attempt that would have left it can go on, and `read` is told where to leave what is needed for that.
    pub(crate) fn learn_from<F>(
        &self,
        asked: Asked<'_>,
        backend: &dyn Backend,
        may_go_on: impl Fn(&Path) -> bool,
        read: impl FnOnce(&Path) -> Result<F, EngineError>,
    ) -> Result<Answer, EngineError>
    where
        F: FnOnce(&mut Entropy) -> Result<Vec<String>, EngineError>,
    {
        let Asked { project, table, requester, what, wish, bounds, sensitivity, loss } = asked;
        backend.check(table)?;
        let mut question = Question {
            budget: project.catalog.budget.name.clone(),
            requester: requester.to_owned(),
            id: None,
            data_version: Some(self.fingerprint(&backend.version(table)?)),
            text: format!("{what} of `{}`, as described by {}", table.name, Hash::of(wish.as_bytes())),
            adjacency: table.adjacency,
            terms: vec![Term {
                what: format!("{what} of the table `{}`", table.name),
                bounds: Some(bounds),
                sensitivity: sensitivity.to_owned(),
                mechanism: loss.clone(),
                count: 1,
            }],
            columns: Vec::new(),
        };
        let name: String = question.request().hash().to_string().chars().take(24).collect();
        let begun = |id: &str| self.folder().join(format!("{}.begun", id.replace(' ', "-")));
        let lock = self.folder().join(format!("learn-{name}.lock"));
        let held = hold(&lock)?;
        let mut left = None;
        let answer = self.ask_or_go_on(
            &mut question,
            (1..=MOST_ATTEMPTS).map(|attempt| format!("learn {name} {attempt}")),
            |id| may_go_on(&begun(id)),
            |id| {
                let begun = begun(id);
                let run = read(&begun)?;
                left = Some(begun);
                Ok::<_, EngineError>(Lesson { loss: loss.clone(), run })
            },
        );
        if answer.is_ok()
            && let Some(left) = left
        {
            let _ = std::fs::remove_file(left);
        }
        let _ = std::fs::remove_file(lock);
        drop(held);
        answer
    }
}

/// Nobody else works on the same while this is held.
fn hold(path: &Path) -> Result<File, EngineError> {
    loop {
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(|error| {
            EngineError::new("engine.learn.lock", format!("`{}` cannot be written: {error}", path.display()))
        })?;
        file.try_lock().map_err(|_| {
            let text = "another process is working on the very same; nothing was charged";
            EngineError::refused("engine.learn.running", text)
                .hint("wait for it: what it finds will cost nothing here")
        })?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether the path leads to this very file still: who held it before may have removed it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity =
        |found: std::io::Result<std::fs::Metadata>| found.map(|file| (file.dev(), file.ino())).ok();
    identity(file.metadata()) == identity(std::fs::metadata(path))
}

/// Elsewhere a file in use cannot be removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Passes progress on.
pub(crate) fn told<'a>(
    watch: &'a mut Watch<'_>,
) -> impl FnMut(&demur_learn::Progress) -> ControlFlow<()> + 'a {
    |progress| {
        let (step, steps) = (progress.step as u64, progress.steps.map(|steps| steps as u64));
        watch(&Pace { stage: progress.stage, step, steps, epsilon: None, score: None });
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use demur_core::Guarantee;
    use demur_ledger::{BudgetName, Location, Options};
    use demur_plan::Bounded;
    use demur_plan::catalog::Table;

    use super::*;
    use crate::Embedded;
    use crate::backend::{Failed, Prepared, Take};
    use crate::learn::Choosing;

    const CATALOG: &str = "[budget]\nname = \"t\"\nepsilon = 10\n[tables.t]\nfiles = \"t.csv\"\nunit = \"row\"\n\
        [tables.t.columns]\nx = { type = \"string\", values = [\"a\", \"b\"] }\n";

    /// A disk that fails so many times.
    struct Faulty(Embedded, Cell<u32>);

    impl Backend for Faulty {
        fn version(&self, table: &Table) -> Result<String, EngineError> {
            self.0.version(table)
        }

        fn check(&self, table: &Table) -> Result<(), EngineError> {
            self.0.check(table)
        }

        fn prepare(&self, plan: &Bounded) -> Result<Box<dyn Prepared + '_>, EngineError> {
            self.0.prepare(plan)
        }

        fn rows(&self, table: &Table, columns: &[&str], each: &Take<'_>) -> Result<(), Failed> {
            match self.1.get().checked_sub(1) {
                None => self.0.rows(table, columns, each),
                Some(left) => {
                    self.1.set(left);
                    Err(Failed)
                }
            }
        }
    }

    /// What failed after its charge is asked for again by the same person: it goes on under that charge. Others, and other data, are charged.
    #[test]
    fn work_that_failed_goes_on_without_paying_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::write(path.join("demur.toml"), CATALOG).unwrap();
        std::fs::write(path.join("t.csv"), format!("x\n{}", "b\n".repeat(1000))).unwrap();
        let project = Project::open(path).unwrap();
        let location = Location::Sqlite(path.join(".demur/ledger.db"));
        let engine = Engine::for_project(&project, &location, Options::default()).unwrap();
        let spent = || {
            let book = engine.ledger().book().unwrap();
            let budget = book.budget(&BudgetName::whole("t")).unwrap();
            (budget.charges, budget.releases)
        };
        let backend = Faulty(Embedded::new(path).unwrap(), Cell::new(2));
        let choose = |requester: &str| {
            let choosing = Choosing {
                table: "t".to_owned(),
                column: "x".to_owned(),
                candidates: None,
                picks: 1,
                guarantee: Guarantee::pure("1".parse().unwrap()),
                requester: requester.to_owned(),
            };
            engine.select(&project, &choosing, &backend, &mut |_| {})
        };
        assert_eq!(choose("alice").map(|_| ()).unwrap_err(), EngineError::after_the_charge());
        assert_eq!(spent(), (1, 0));
        assert_eq!(choose("bob").map(|_| ()).unwrap_err(), EngineError::after_the_charge());
        assert_eq!(spent(), (2, 0));
        let chosen = choose("alice").unwrap();
        assert_eq!((chosen.value, chosen.replayed, spent()), (vec!["b".to_owned()], false, (2, 1)));
        for requester in ["alice", "carol"] {
            assert!(choose(requester).unwrap().replayed);
        }
        assert_eq!(spent(), (2, 1));
        std::fs::write(path.join("t.csv"), format!("x\n{}", "a\n".repeat(1001))).unwrap();
        let chosen = choose("alice").unwrap();
        assert_eq!((chosen.value, chosen.replayed, spent()), (vec!["a".to_owned()], false, (3, 2)));
        let left = std::fs::read_dir(path.join(".demur")).unwrap().flatten();
        let left: Vec<_> =
            left.filter(|file| file.file_name().to_string_lossy().starts_with("learn")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
