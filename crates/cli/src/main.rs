//! `demur`: the command.

mod account;
mod amount;
mod args;
mod bounds;
mod budget;
mod certificate;
mod check;
mod failure;
mod init;
mod learn;
mod ledger;
mod limits;
mod noise;
mod output;
mod picture;
mod place;
mod plot;
mod query;
mod rewrite;
mod synth;
mod table;
mod words;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(stop));
    let arguments = Arguments::parse();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let result = run(arguments.command, &mut out).and_then(|()| out.flush().map_err(Failure::from));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(&mut io::stderr().lock()),
    }
}

/// Ends the program when it made a mistake of its own. Where that was may depend on the data, so it is not told.
fn stop(panic: &std::panic::PanicHookInfo<'_>) {
    let place = if cfg!(debug_assertions) { format!(": {panic}") } else { String::new() };
    let _ = writeln!(
        io::stderr(),
        "error[cli.bug]: demur stopped because of a mistake of its own; what was charged stays charged, and nothing more was shown{place}"
    );
    std::process::exit(2);
}

fn run(command: Command, out: &mut impl Write) -> Result<(), Failure> {
    match command {
        Command::Query(args) => query::query(&args, out),
        Command::Explain(args) => query::explain(&args, out).map_err(Failure::without_note),
        Command::Init(args) => init::run(&args, out).map_err(Failure::without_note),
        Command::Check(args) => check::run(&args, out).map_err(Failure::without_note),
        Command::Synth(command) => synth::run(command, out),
        Command::Learn(command) => learn::run(command, out),
        Command::Noise(command) => noise::run(command, out),
        Command::Account(command) => account::run(command, out).map_err(Failure::without_note),
        Command::Budget(command) => budget::run(command, out).map_err(Failure::without_note),
        Command::Ledger(command) => ledger::run(command, out).map_err(Failure::without_note),
        Command::Certificate(command) => certificate::run(command, out).map_err(Failure::without_note),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "demur", &mut script);
            Ok(out.write_all(&script)?)
        }
    }
}
