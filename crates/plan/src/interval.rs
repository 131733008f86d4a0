//! `DP_INTERVAL_LOW(alias)` and `DP_INTERVAL_HIGH(alias)`: the ends of the 95 % interval of an answer.
//!
//! They are functions in name only: the planner replaces each by a column of the released table, so they are never
//! called.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The name of the lower end.
pub(crate) const LOW: &str = "dp_interval_low";
/// The name of the upper end.
pub(crate) const HIGH: &str = "dp_interval_high";

#[derive(Debug, PartialEq, Eq, Hash)]
struct End {
    name: &'static str,
    signature: Signature,
}

pub(crate) fn low() -> Arc<ScalarUDF> {
    end(LOW)
}

pub(crate) fn high() -> Arc<ScalarUDF> {
    end(HIGH)
}

fn end(name: &'static str) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(End { name, signature: Signature::any(1, Volatility::Immutable) }))
}

impl ScalarUDFImpl for End {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("{} stands for a column and cannot be called", self.name)
    }
}
