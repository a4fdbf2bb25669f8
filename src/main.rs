//! The binary: arguments in, exit status out.

use std::process::ExitCode;

/// Rows, messages and events are many and small: see docs/decisions/0021.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    mehman::cli::run(std::env::args_os())
}
