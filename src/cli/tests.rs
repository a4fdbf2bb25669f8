//! The client commands against a server that answers as the interface says, and against the data of
//! a crawl that nobody serves.

mod daemon;
mod data;

use clap::Parser as _;

use super::arguments::Arguments;
use super::output::Form;
use super::output::capture;
use super::{dispatch, exit_of, told};
use crate::cli::failure::Exit;

/// What a command printed and how it ended.
#[derive(Debug)]
struct Ended {
    exit: Exit,
    results: String,
    notes: String,
}

/// Runs a command line within this process.
async fn run(form: Form, line: &[&str]) -> Ended {
    let words = std::iter::once("mehman").chain(line.iter().copied());
    let arguments = Arguments::try_parse_from(words).unwrap();
    let (output, results, notes) = capture::output(form);
    let exit = match Box::pin(dispatch(&arguments.command, &arguments.common, &output)).await {
        Ok(exit) => exit,
        Err(failure) => {
            output.alert(&told(&failure));
            exit_of(&failure)
        }
    };
    Ended { exit, results: results.text(), notes: notes.text() }
}
