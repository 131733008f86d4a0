//! `demur account`: what losses cost together.

mod batch;
mod calibrate;
mod compose;
mod convert;
mod explain;
pub(crate) mod figure;
mod losses;
mod plot;
mod question;
mod textbook;

use std::io::{self, Write};

use crate::args::account::Account;
use crate::failure::Failure;

pub(crate) fn run(command: Account, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Account::Compose(args) => compose::compose(&args, out),
        Account::Calibrate(args) => calibrate::calibrate(&args, out),
        Account::Convert(args) => convert::convert(&args, out),
        Account::Explain(args) => explain::explain(&args, out),
        Account::Plot(args) => plot::plot(&args, out),
        Account::Batch => batch::batch(io::stdin().lock(), out),
    }
}
