//! [`Engine::communities`]: which users of a network belong together.
//!
//! A row of the table is a tie. Where rows are units, one tie is hidden; where the unit is the column of who says so, all that one user says is.

use demur_core::{Adjacency, Epsilon, Guarantee};
use demur_learn::communities::{Hidden, Network, Plan};

use super::lesson::{Asked, Learned, Watch, told};
use super::numbers::{Numbers, Reader};
use crate::backend::Backend;
use crate::{Engine, EngineError, Project};

/// Which communities somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Ties {
    /// The table of ties.
    pub table: String,
    /// The columns of who says so and with whom: whole numbers from 0 on.
    pub columns: [String; 2],
    /// How many users there are; public.
    pub users: usize,
    /// How many ties of one user count, where users are hidden.
    pub max_ties: u32,
    /// What it may cost.
    pub epsilon: Epsilon,
    /// Who asks.
    pub requester: String,
}

/// Communities that may be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Communities {
    /// The community of each user.
    pub labels: Vec<usize>,
}

impl Engine {
    /// Charges, reads the ties, and finds the communities.
    pub fn communities(
        &self,
        project: &Project,
        wanted: &Ties,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Learned<Communities>, EngineError> {
        let table = project.private_table(&wanted.table, Guarantee::pure(wanted.epsilon))?;
        if table.adjacency == Adjacency::Replace {
            let text = format!(
                "ties of `{}` are replaced, which turns two bits for each; communities are for ties that come or go",
                table.name
            );
            return Err(EngineError::new("engine.learn.adjacency", text)
                .hint("declare adjacency = \"add-remove\" for the table"));
        }
        let [from, to] = &wanted.columns;
        for name in [from, to] {
            let kind = table.columns.get(name).map(|column| column.column_type.to_string());
            if !kind.as_deref().is_some_and(|kind| kind.contains("int")) {
                let text = format!("the table `{}` has no column `{name}` of whole numbers", table.name);
                return Err(
                    EngineError::new("engine.learn.column", text).hint("users are numbered from 0 on")
                );
            }
        }
        let hidden = match table.unit_column()? {
            None => Hidden::Tie,
            Some(name) if name == from => Hidden::User { max_ties: wanted.max_ties },
            Some(name) => {
                let text = format!(
                    "the unit of `{}` is `{name}`, which is neither a tie nor who says it",
                    table.name
                );
                return Err(EngineError::new("engine.learn.unit", text)
                    .hint(format!("declare unit = \"row\" or unit = \"{from}\"")));
            }
        };
        let plan = Plan::new(wanted.users, hidden, wanted.epsilon)?;
        let asked = Asked {
            project,
            table,
            requester: &wanted.requester,
            what: "communities of users",
            wish: format!("{:?} {} {hidden:?} {:?}", wanted.columns, wanted.users, wanted.epsilon),
            bounds: match hidden {
                Hidden::Tie => "a tie is one bit".to_owned(),
                Hidden::User { max_ties } => format!("a user counts for at most {max_ties} ties"),
            },
            sensitivity: "a tie is one bit, which is answered at random",
            loss: plan.loss(),
        };
        let answer = self.learn(asked, backend, || {
            // Who says so may be the unit itself, which is read a second time under its own name.
            let readers = [from, to].map(|name| Reader::Number(name.clone()));
            let numbers =
                Numbers::read(table, &readers, backend).map_err(|_| EngineError::after_the_charge())?;
            let user = |number: f64| {
                if number >= 0.0 && number < f64::from(u32::MAX) { number as u32 } else { u32::MAX }
            };
            let ties = numbers.values.chunks(2).map(|tie| (user(tie[0]), user(tie[1])));
            let network = Network::new(wanted.users, ties)?;
            Ok(move |entropy: &mut demur_noise::Entropy| {
                let labels = plan.run(&network, entropy, &mut told(watch))?.into_value();
                Ok(vec![serde_json::to_string(&labels).map_err(|_| EngineError::after_the_charge())?])
            })
        })?;
        Learned::of(answer, |released| {
            let labels = released.first().and_then(|text| serde_json::from_str(text).ok());
            let labels = labels.ok_or_else(|| {
                EngineError::new("engine.learn.communities", "these are no communities of demur")
            })?;
            Ok(Communities { labels })
        })
    }
}
