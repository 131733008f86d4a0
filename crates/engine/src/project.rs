//! [`Project`]: a folder with a `demur.toml`.

use std::path::{Path, PathBuf};

use demur_core::{Delta, Epsilon, Guarantee, PrivacyLoss};
use demur_plan::Catalog;
use demur_plan::catalog::{FILE, Table};

use crate::EngineError;

/// Where the catalog is, and what it says.
#[derive(Clone, Debug)]
pub struct Project {
    /// Files are named from here.
    pub folder: PathBuf,
    /// What the owner says.
    pub catalog: Catalog,
}

impl Project {
    /// The project in this folder, or in the nearest one above that has a catalog.
    pub fn find(folder: &Path) -> Result<Self, EngineError> {
        let here = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        match here.ancestors().find(|folder| folder.join(FILE).is_file()) {
            Some(found) => Self::open(found),
            None => {
                let text = format!("there is no {FILE} in `{}` or above it", here.display());
                Err(EngineError::new("engine.project", text)
                    .hint("make one with `demur init FILE`, or name its folder with --project"))
            }
        }
    }

    /// The project in this folder.
    pub fn open(folder: &Path) -> Result<Self, EngineError> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            EngineError::new("engine.project", format!("`{}` cannot be read: {error}", path.display()))
                .hint("make one with `demur init FILE`, or name its folder with --project")
        })?;
        Ok(Self { folder: folder.to_owned(), catalog: Catalog::read(&text)? })
    }

    /// The δ of questions that name none.
    pub(crate) fn delta(&self) -> Delta {
        self.catalog.budget.delta.unwrap_or(Delta::ZERO)
    }

    /// A private table whose owner allows so much for one question.
    pub(crate) fn private_table(&self, name: &str, guarantee: Guarantee) -> Result<&Table, EngineError> {
        let table = self.catalog.table(name)?;
        if table.public {
            let text = format!("the table `{name}` is public; nothing about it must be hidden");
            return Err(EngineError::new("engine.public", text));
        }
        table.unit_column()?;
        self.allows(guarantee)?;
        Ok(table)
    }

    /// Whether the owner lets one question cost so much.
    pub(crate) fn allows(&self, guarantee: Guarantee) -> Result<(), EngineError> {
        let budget = &self.catalog.budget;
        if let Some(most) = budget.most_per_question.filter(|most| guarantee.epsilon > *most) {
            return Err(too_much(guarantee.epsilon.value(), most));
        }
        // With a large δ nearly no noise has a small ε: a limit on ε would limit nothing.
        let whole = budget.opens_with.as_ref().map(|(_, delta, _)| *delta);
        match whole.filter(|whole| *whole != Delta::ZERO && guarantee.delta > *whole) {
            None => Ok(()),
            Some(whole) => {
                let (asked, whole) = (guarantee.delta.value(), whole.value());
                let text = format!("this takes δ = {asked}, but the whole budget has δ = {whole}");
                Err(EngineError::refused("engine.policy", text)
                    .hint("leave out δ, or ask with a smaller one"))
            }
        }
    }

    /// Whether it lets one question lose so much of a budget without δ, which pays for whatever can happen, however seldom.
    pub(crate) fn allows_loss(&self, loss: &PrivacyLoss) -> Result<(), EngineError> {
        let budget = &self.catalog.budget;
        let is_pure = budget.opens_with.as_ref().is_some_and(|(_, delta, _)| *delta == Delta::ZERO);
        match (budget.most_per_question, loss.pure_epsilon()) {
            (Some(most), Some(lost)) if is_pure && lost > most.exact() => {
                Err(too_much(lost.to_f64_up(), most))
            }
            _ => Ok(()),
        }
    }
}

fn too_much(asked: f64, most: Epsilon) -> EngineError {
    let most = most.value();
    let text = format!("this takes ε = {asked}, but one question may cost at most ε = {most}");
    EngineError::refused("engine.policy", text)
        .hint("the owner's limit is max_epsilon_per_question in demur.toml")
}
