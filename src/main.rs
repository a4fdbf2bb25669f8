//! The binary: arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    mehman::cli::run(std::env::args_os())
}
