//! What scope rules cost in memory: `cargo run --example scope_rules -- 1000000`.
//!
//! As many lines as asked for, host, domain and SURT in turn, are read as a `file:` rule reads
//! them, and looked up. The figures are the resident memory of this process before and after
//! (Linux).
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use anyhow::Context as _;
use mehman::policy::scope::RuleSetBuilder;
use mehman::types::CrawlUrl;

/// A field of `/proc/self/status`, in KiB.
fn memory(field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()).context("no such field")?;
    Ok(number.parse()?)
}

fn line(number: u64) -> String {
    match number % 3 {
        0 => format!("host:www.site{number}.example"),
        1 => format!("domain:site{number}.example"),
        _ => format!("surt:example,site{number},)/path/"),
    }
}

fn url(number: u64) -> String {
    match number % 3 {
        0 => format!("https://www.site{number}.example/x"),
        1 => format!("https://deep.below.site{number}.example/x"),
        _ => format!("https://site{number}.example/path/x"),
    }
}

fn main() -> anyhow::Result<()> {
    let lines: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let before = memory("VmRSS")?;
    let mut builder = RuleSetBuilder::default();
    let mut bytes = 0;
    for number in 0..lines {
        let line = line(number);
        bytes += line.len() + 1;
        builder.add_line(&line).map_err(anyhow::Error::msg)?;
    }
    let set = builder.build().map_err(anyhow::Error::msg)?;
    let after = memory("VmRSS")?;
    let mut found = 0;
    for number in (0..lines).step_by(101) {
        let url = CrawlUrl::parse(&url(number)).map_err(|reason| anyhow::anyhow!("{reason}"))?;
        found += u64::from(set.find(&url).is_some());
    }
    let asked = lines.div_ceil(101);
    println!("{lines} lines of {bytes} bytes: {} KiB resident", after.saturating_sub(before));
    println!("peak of the process {} KiB; {found} of {asked} found", memory("VmHWM")?);
    Ok(())
}
