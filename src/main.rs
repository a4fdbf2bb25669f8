//! The binary: arguments in, exit status out.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    mehman::cli::run(std::env::args_os())
}
