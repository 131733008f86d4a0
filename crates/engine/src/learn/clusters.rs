//! [`Engine::cluster`]: centres of groups of similar rows.

use demur_core::Guarantee;
use demur_learn::kmeans::Plan;
use serde::{Deserialize, Serialize};

use super::lesson::{Asked, Learned, Watch, told};
use super::numbers::{Numbers, Reader, bounds};
use crate::backend::Backend;
use crate::{Engine, EngineError, Project};

/// Which clusters somebody wants.
#[derive(Clone, Debug, PartialEq)]
pub struct Clustering {
    /// The table.
    pub table: String,
    /// The columns whose values are coordinates; each is taken from 0 to 1 between its declared bounds.
    pub columns: Vec<String>,
    /// How many clusters.
    pub clusters: usize,
    /// For how many rows one unit may count.
    pub points_per_unit: u32,
    /// What it may cost.
    pub guarantee: Guarantee,
    /// Who asks.
    pub requester: String,
}

/// Centres that may be shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clusters {
    /// The names of the coordinates.
    pub columns: Vec<String>,
    /// One centre per cluster.
    pub centers: Vec<Vec<f64>>,
    /// About how many rows are nearest to each.
    pub sizes: Vec<f64>,
}

impl Clusters {
    fn read(released: &[String]) -> Result<Self, EngineError> {
        let wrong = |error: &str| {
            EngineError::new("engine.learn.clusters", format!("these are no clusters of demur: {error}"))
        };
        let [text] = released else { return Err(wrong("there is not one part")) };
        let clusters: Self = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let fit = clusters.centers.iter().all(|center| center.len() == clusters.columns.len())
            && clusters.sizes.len() == clusters.centers.len();
        if fit { Ok(clusters) } else { Err(wrong("centres and columns do not match")) }
    }
}

impl Engine {
    /// Charges, reads the rows, and finds the centres.
    pub fn cluster(
        &self,
        project: &Project,
        wanted: &Clustering,
        backend: &dyn Backend,
        watch: &mut Watch<'_>,
    ) -> Result<Learned<Clusters>, EngineError> {
        let table = project.private_table(&wanted.table, wanted.guarantee)?;
        let bounds = wanted.columns.iter().map(|name| bounds(table, name)).collect::<Result<Vec<_>, _>>()?;
        // In units of its range each column matters equally.
        let unit = vec![(0.0, 1.0); bounds.len()];
        let (adjacency, most) = (table.adjacency, wanted.points_per_unit);
        let plan = Plan::new(unit, wanted.clusters, adjacency, most, wanted.guarantee)?;
        let asked = Asked {
            project,
            table,
            requester: &wanted.requester,
            what: "clusters",
            wish: format!(
                "{:?} {most} {} {:?} {bounds:?}",
                wanted.columns, wanted.clusters, wanted.guarantee
            ),
            bounds: format!("a unit counts for at most {most} rows, each clamped to the declared bounds"),
            sensitivity: "a row adds one bounded vector to each sum",
            loss: plan.loss().clone(),
        };
        let answer = self.learn(asked, backend, || {
            let readers: Vec<_> = wanted.columns.iter().cloned().map(Reader::Number).collect();
            let mut numbers =
                Numbers::read(table, &readers, backend).map_err(|_| EngineError::after_the_charge())?;
            for row in numbers.values.chunks_mut(bounds.len()) {
                row.iter_mut()
                    .zip(&bounds)
                    .for_each(|(value, (low, high))| *value = (*value - low) / (high - low));
            }
            let points = numbers.points()?;
            Ok(move |entropy: &mut demur_noise::Entropy| {
                let found = plan.run(&points, entropy, &mut told(watch))?.into_value();
                let own = |center: &Vec<f64>| {
                    center.iter().zip(&bounds).map(|(part, (low, high))| low + part * (high - low)).collect()
                };
                let clusters = Clusters {
                    columns: wanted.columns.clone(),
                    centers: found.centers.iter().map(own).collect(),
                    sizes: found.sizes,
                };
                Ok(vec![serde_json::to_string(&clusters).map_err(|_| EngineError::after_the_charge())?])
            })
        })?;
        Learned::of(answer, Clusters::read)
    }
}
