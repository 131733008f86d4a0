//! [`Form`]: how each loss is called, which arguments it takes, and what they make.

use PrivacyLoss::*;

use super::arguments::Arguments;
use crate::Error;
use crate::privacy_loss::PrivacyLoss;

/// The argument that is a loss.
pub(super) const LOSS: &str = "loss";

/// One loss of the language.
pub(super) struct Form {
    /// How it is to be written, for refusals.
    pub(super) usage: &'static str,
    /// What it is called; the first name is the one we write.
    names: &'static [&'static str],
    /// The arguments in the order in which they need no names.
    pub(super) places: &'static [&'static str],
    /// The arguments that need names.
    keys: &'static [&'static str],
    pub(super) build: fn(&mut Arguments<'_>) -> Result<PrivacyLoss, Error>,
}

impl Form {
    pub(super) fn called(name: &str) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.names.contains(&name))
    }

    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The argument of this name.
    pub(super) fn argument(&self, key: &str) -> Option<&'static str> {
        self.places.iter().chain(self.keys).find(|name| **name == key).copied()
    }

    /// The names of all losses, for refusals.
    pub(super) fn all() -> String {
        let mut names: Vec<_> = FORMS.iter().map(Self::name).collect();
        names.extend(["renyi", "composed"]); // which are read in ways of their own
        names.join(", ")
    }
}

const FORMS: &[Form] = &[
    Form {
        usage: "gaussian(sigma | variance, sensitivity)",
        names: &["gaussian"],
        places: &["sigma", "sensitivity"],
        keys: &["variance", "sensitivity_squared"],
        build: |given| Ok(Gaussian { variance: given.variance()?, l2_squared: given.sensitivity_squared()? }),
    },
    Form {
        usage: "laplace(scale | epsilon, sensitivity)",
        names: &["laplace"],
        places: &["scale", "sensitivity"],
        keys: &["epsilon"],
        build: |given| Ok(Laplace { scale: given.scale()?, sensitivity: given.sensitivity() }),
    },
    Form {
        usage: "discrete_laplace(scale | epsilon, sensitivity)",
        names: &["discrete_laplace"],
        places: &["scale", "sensitivity"],
        keys: &["epsilon"],
        build: |given| Ok(DiscreteLaplace { scale: given.scale()?, sensitivity: given.sensitivity() }),
    },
    Form {
        usage: "discrete_gaussian(sigma | variance, sensitivity, dimensions)",
        names: &["discrete_gaussian"],
        places: &["sigma", "sensitivity", "dimensions"],
        keys: &["variance", "sensitivity_squared"],
        build: |given| {
            Ok(DiscreteGaussian {
                variance: given.variance()?,
                l2_squared: given.sensitivity_squared()?,
                dimensions: given.whole("dimensions")?.unwrap_or(1),
            })
        },
    },
    Form {
        usage: "truncated_laplace(scale, bound, sensitivity) or truncated_laplace(epsilon=…, delta=…, sensitivity=…)",
        names: &["truncated_laplace"],
        places: &["scale", "bound", "sensitivity"],
        keys: &["epsilon", "delta"],
        build: |given| {
            let (scale, bound) = given.scale_and_bound()?;
            Ok(TruncatedLaplace { scale, bound, sensitivity: given.sensitivity() })
        },
    },
    Form {
        usage: "truncated_discrete_laplace(scale, bound, sensitivity)",
        names: &["truncated_discrete_laplace"],
        places: &["scale", "bound", "sensitivity"],
        keys: &[],
        build: |given| {
            Ok(TruncatedDiscreteLaplace {
                scale: given.required("scale")?,
                bound: given.required("bound")?,
                sensitivity: given.sensitivity(),
            })
        },
    },
    Form {
        usage: "randomized_response(epsilon, categories)",
        names: &["randomized_response"],
        places: &["epsilon", "categories"],
        keys: &[],
        build: |given| {
            Ok(RandomizedResponse {
                epsilon: given.required("epsilon")?,
                categories: given.whole("categories")?.unwrap_or(2),
            })
        },
    },
    Form {
        usage: "unary_encoding(epsilon)",
        names: &["unary_encoding"],
        places: &["epsilon"],
        keys: &[],
        build: |given| Ok(UnaryEncoding { epsilon: given.required("epsilon")? }),
    },
    Form {
        usage: "exponential(epsilon)",
        names: &["exponential"],
        places: &["epsilon"],
        keys: &[],
        build: |given| Ok(Exponential { epsilon: given.required("epsilon")? }),
    },
    Form {
        usage: "permute_and_flip(epsilon)",
        names: &["permute_and_flip"],
        places: &["epsilon"],
        keys: &[],
        build: |given| Ok(PermuteAndFlip { epsilon: given.required("epsilon")? }),
    },
    Form {
        usage: "pure(epsilon)",
        names: &["pure"],
        places: &["epsilon"],
        keys: &[],
        build: |given| Ok(Pure { epsilon: given.required("epsilon")? }),
    },
    Form {
        usage: "approx(epsilon, delta)",
        names: &["approx", "approximate"],
        places: &["epsilon", "delta"],
        keys: &[],
        build: |given| {
            Ok(Approximate { epsilon: given.required("epsilon")?, delta: given.required("delta")? })
        },
    },
    Form {
        usage: "zcdp(rho)",
        names: &["zcdp", "zero_concentrated"],
        places: &["rho"],
        keys: &[],
        build: |given| Ok(ZeroConcentrated { rho: given.required("rho")? }),
    },
    Form {
        usage: "subsampled(rate, loss)",
        names: &["subsampled"],
        places: &["rate", LOSS],
        keys: &[],
        build: |given| Ok(Subsampled { rate: given.required("rate")?, inner: given.inner()? }),
    },
    Form {
        usage: "group(size, loss)",
        names: &["group"],
        places: &["size", LOSS],
        keys: &[],
        build: |given| Ok(Group { size: given.required_whole("size")?, inner: given.inner()? }),
    },
    Form {
        usage: "threshold(delta, loss)",
        names: &["threshold"],
        places: &["delta", LOSS],
        keys: &[],
        build: |given| Ok(Threshold { delta: given.required("delta")?, inner: given.inner()? }),
    },
    Form {
        usage: "without_replacement(sample, population, loss)",
        names: &["without_replacement"],
        places: &["sample", "population", LOSS],
        keys: &[],
        build: |given| {
            Ok(WithoutReplacement {
                sample: given.required_whole("sample")?,
                population: given.required_whole("population")?,
                inner: given.inner()?,
            })
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usage_names_its_loss_and_its_arguments() {
        for form in FORMS {
            assert!(form.usage.starts_with(&format!("{}(", form.name())), "{}", form.usage);
            let shown = form.keys.iter().filter(|key| **key != "sensitivity_squared");
            for argument in form.places.iter().chain(shown) {
                assert!(form.usage.contains(argument), "{argument} in {}", form.usage);
            }
        }
    }
}
