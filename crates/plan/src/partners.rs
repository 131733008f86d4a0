//! [`Partners`]: with how many public rows one row of somebody is paired.
//!
//! **Why it is limited.** A row that is paired with ten rows, and each pair with ten more, makes 10ⁿ rows where it is there, and none where it is not: how long that takes, and whether
//! memory is left, would tell of one row, whatever the noise; so would public rows that are only made where a row asks for them. So before a question is charged it is found out how many rows
//! each public side has, the inner ones first, and how many of them agree on what is compared; together they may multiply a row by [`MOST`].
//!
//! Public rows are read for this, and no others.

use datafusion::common::Column;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use crate::PlanError;
use crate::error_of;

/// By so much public rows multiply one row at most: a few milliseconds' work.
const MOST: u64 = 1 << 16;

/// The public side of a join has fewer rows than these.
const ROWS: u64 = 1 << 27;

/// How to find out with how many rows of a public side one row is paired.
#[derive(Clone, Debug)]
pub struct Partners {
    /// Gives one row of two whole numbers, or NULLs where the side is empty: the most rows that agree on what is compared, and how many rows there are.
    pub plan: LogicalPlan,
    /// Whether a row becomes as many as agree with it. Where it is only asked whether there are any, or only the first counts, they must still be found.
    pub multiplies: bool,
}

impl Partners {
    /// For these rows, compared by these keys.
    pub(crate) fn new(public: LogicalPlan, keys: &[Expr], multiplies: bool) -> Result<Self, PlanError> {
        let mut different: Vec<Expr> = Vec::new();
        for key in keys {
            if !different.contains(key) {
                different.push(key.clone());
            }
        }
        let rows = || Expr::Column(Column::new_unqualified("rows"));
        let plan = LogicalPlanBuilder::from(public)
            .limit(0, Some(ROWS as usize))
            .and_then(|builder| builder.aggregate(different, [count(lit(1i64)).alias("rows")]))
            .and_then(|builder| {
                builder.aggregate(Vec::<Expr>::new(), [max(rows()).alias("most"), sum(rows()).alias("all")])
            })
            .and_then(|builder| builder.build())
            .map_err(error_of)?;
        Ok(Self { plan, multiplies })
    }

    /// Whether a question is allowed in which these were found: by how much each join multiplies a row, and how many public rows there are.
    pub fn check(found: &[(u64, u64)]) -> Result<(), PlanError> {
        let mut times = 1u64;
        for &(most, all) in found {
            if all >= ROWS {
                let text = format!("the public side of a JOIN has {ROWS} rows or more");
                return Err(PlanError::refused("plan.partners", text).hint("join with fewer rows"));
            }
            times = times.saturating_mul(most.max(1));
        }
        if times <= MOST {
            return Ok(());
        }
        let text = format!(
            "one row would be paired with up to {times} combinations of public rows, and {MOST} are the most"
        );
        Err(PlanError::refused("plan.partners", text)
            .hint("compare the tables by columns with =, or group the public rows first"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_join_multiplies_by_counts_together() {
        let code = |found: &[(u64, u64)]| Partners::check(found).err().map(|error| error.code());
        assert_eq!(code(&[]), None);
        assert_eq!(code(&[(1, ROWS - 1), (1, 1000), (0, 0), (MOST, MOST)]), None);
        assert_eq!(code(&[(256, 256), (256, 256)]), None);
        assert_eq!(code(&[(256, 256), (257, 257)]), Some("plan.partners"));
        assert_eq!(code(&[(u64::MAX, 2), (u64::MAX, 2)]), Some("plan.partners"));
        assert_eq!(code(&[(1, ROWS)]), Some("plan.partners"));
    }
}
