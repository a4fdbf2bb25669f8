//! The binary: arguments in, exit status out.

use std::process::ExitCode;

/// Rows, messages and events are many and small: see docs/decisions/0021 and 0022.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The allocator advises huge pages for all it has, and would hold five times the memory. A
    // kernel that cannot be told so only costs that.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
    mehman::cli::run(std::env::args_os())
}
