//! Plan.
use std::ops::ControlFlow;
use demur_core::{Adjacency, Guarantee, PrivacyLoss};
use demur_noise::{Entropy, Words};
use crate::aim::Aim;
use crate::allowance::Allowance;
use crate::curator::Curator;
use crate::model::Model;
use crate::mst::Mst;
use crate::progress::Watch;
use crate::{Columns, SynthError, Table, Marginals, Zeros};

/// x
pub struct Plan { columns: Columns, adjacency: Adjacency, zeros: Zeros, loss: PrivacyLoss, method: Method }
enum Method { Mst(Mst), Aim(Aim) }
impl Plan {
    /// x
    pub fn mst(columns: &Columns, adjacency: Adjacency, guarantee: Guarantee, zeros: Zeros) -> Result<Self, SynthError> {
        let (mst, loss) = Mst::plan(columns, adjacency, guarantee)?;
        Ok(Self { columns: columns.clone(), adjacency, zeros, loss, method: Method::Mst(mst) })
    }
    /// x
    pub fn aim(columns: &Columns, adjacency: Adjacency, guarantee: Guarantee, zeros: Zeros, workload: Marginals, max_cells: u64) -> Result<Self, SynthError> {
        let (aim, loss) = Aim::plan(guarantee, workload, max_cells)?;
        Ok(Self { columns: columns.clone(), adjacency, zeros, loss, method: Method::Aim(aim) })
    }
    /// x
    pub fn loss(&self) -> &PrivacyLoss { &self.loss }
    /// x
    pub fn fit(&self, table: &Table, entropy: &mut Entropy) -> Result<Model, SynthError> {
        self.fit_with(table, entropy, &mut |_| ControlFlow::Continue(()))
    }
    fn fit_with<W: Words>(&self, table: &Table, words: &mut W, watch: &mut Watch<'_>) -> Result<Model, SynthError> {
        let allowance = match &self.method { Method::Mst(_) => Allowance::list(&self.loss), Method::Aim(aim) => Allowance::filter(aim.filter.clone()) };
        let mut curator = Curator::new(table, self.adjacency, allowance, words);
        match &self.method {
            Method::Mst(mst) => mst.run(&self.columns, &self.zeros, &mut curator, watch),
            Method::Aim(aim) => aim.run(&self.columns, &self.zeros, &mut curator, watch),
        }
    }
}
