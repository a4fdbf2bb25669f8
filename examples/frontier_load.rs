//! What the frontier and its store cost: candidates, grants, disk, memory, starts. No network.
//!
//! `cargo run --release --example frontier_load -- --urls 1M --hosts 10k --seconds 30`
//!
//! Each step is a process of its own over the same data directory, so that its CPU time and memory
//! are its own, and one of them can end like a process that is killed.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};
use mehman::load::{Load, LoadOptions, Served, Space, Usage};
use mehman::types::Timestamp;
use mehman::world::{Clock as _, TokioClock};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pages made to learn what making them costs.
const MADE_ONLY: u64 = 2_000;
/// Between two lines while grants go on.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// A start that brings no grant by then has failed.
const FIRST_GRANT_WITHIN: Duration = Duration::from_secs(120);

#[derive(Clone, Debug, Parser)]
#[command(about = "Puts a frontier and its store under load; measures CPU time, disk, memory.")]
struct Arguments {
    /// New URLs (k and M are thousands and millions).
    #[arg(long, default_value = "1M", value_parser = number)]
    urls: u64,
    /// Hosts.
    #[arg(long, default_value = "10k", value_parser = number)]
    hosts: u64,
    /// Links of a page.
    #[arg(long, default_value = "50", value_parser = number)]
    links: u64,
    /// Pages with nine known links of ten, admitted after the new ones.
    #[arg(long, default_value = "20k", value_parser = number)]
    pages: u64,
    /// How long grants go on, at most.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Fetchers.
    #[arg(long, default_value = "1000", value_parser = number)]
    workers: u64,
    /// Any key of the configuration, like `frontier.shards=2`; may be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Keep the data here; it must be new or empty. Without it, a temporary directory.
    #[arg(long)]
    data: Option<PathBuf>,
    /// One step alone, over the data of the steps before.
    #[arg(long, requires = "data")]
    step: Option<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Admits the URLs; closes.
    Admit,
    /// Opens after a close, grants; ends without closing.
    Grant,
    /// Opens after that end, waits for a grant; closes.
    Reopen,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match (arguments.step, arguments.data.clone()) {
        (Some(step), Some(data)) => run(&arguments, step, &data),
        (_, Some(_)) => run_all(None),
        (_, None) => {
            let data = tempfile::tempdir().context("no temporary directory")?;
            run_all(Some(data.path()))
        }
    }
}

/// All steps, each a process; over `data`, where the arguments do not say it.
fn run_all(data: Option<&Path>) -> anyhow::Result<()> {
    for step in ["admit", "grant", "reopen"] {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).args(["--step", step]);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let status = command.status().with_context(|| format!("step {step} does not start"))?;
        let killed = step == "grant" && status.code().is_none();
        ensure!(status.success() || killed, "step {step} ended with {status}");
    }
    Ok(())
}

fn run(arguments: &Arguments, step: Step, data: &Path) -> anyhow::Result<()> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    runtime.block_on(Box::pin(async {
        match step {
            Step::Admit => admit(arguments, data).await,
            Step::Grant => grant(arguments, data).await,
            Step::Reopen => reopen(arguments, data).await,
        }
    }))
}

async fn admit(arguments: &Arguments, data: &Path) -> anyhow::Result<()> {
    let load = open(arguments, data).await?;
    // So that candidates are measured alone.
    load.pause(true).await;
    let start = Mark::now();
    let made = load.make_only(MADE_ONLY);
    start.line("candidates made only", made.try_into()?);
    let start = Mark::now();
    let new = load.admit_new(0, arguments.urls).await;
    start.line("candidates, all new", new.added + new.known + new.refused);
    let start = Mark::now();
    let mixed = load.admit_mixed(arguments.urls, arguments.pages).await;
    start.line("candidates, 9 of 10 known", mixed.added + mixed.known);
    println!("  new {new:?}\n  mixed {mixed:?}");
    let start = Mark::now();
    load.close().await?;
    start.since("close");
    space(data, new.added + mixed.added);
    memory();
    Ok(())
}

async fn grant(arguments: &Arguments, data: &Path) -> anyhow::Result<()> {
    let (load, served) = first_grant(arguments, data, "after a clean stop").await?;
    let begin = (Mark::now(), served.grants());
    let mut last = (Mark::now(), served.grants());
    let end = load.clock().now() + Duration::from_secs(arguments.seconds);
    while load.clock().now() < end {
        load.clock().sleep(REPORT_EVERY).await;
        let grants = served.grants();
        last.0.line("grants", grants - last.1);
        last = (Mark::now(), grants);
        if load.counts().await.queued == 0 {
            break;
        }
    }
    begin.0.line("grants in all", served.grants() - begin.1);
    let views = load.views().await;
    let violations: u64 = views.iter().map(|view| view.violations).sum();
    println!(
        "  robots {}, pages {}, published {}, violations {violations}, {:?}",
        served.robots(),
        served.pages(),
        served.published(),
        load.counts().await
    );
    space(data, load.counts().await.known);
    memory();
    // As a process that is killed: nothing is closed, nothing more is written.
    std::process::abort();
}

async fn reopen(arguments: &Arguments, data: &Path) -> anyhow::Result<()> {
    let (load, _) = first_grant(arguments, data, "after a kill").await?;
    let known = load.counts().await.known;
    let start = Mark::now();
    load.close().await?;
    start.since("close");
    space(data, known);
    memory();
    Ok(())
}

/// Opens the frontier and waits for its first lease.
async fn first_grant(
    arguments: &Arguments,
    data: &Path,
    how: &str,
) -> anyhow::Result<(Load, Served)> {
    let begin = Mark::now();
    let load = open(arguments, data).await?;
    begin.since(&format!("open {how}"));
    load.pause(false).await;
    let served = load.serve(usize::try_from(arguments.workers)?);
    let deadline = load.clock().now() + FIRST_GRANT_WITHIN;
    while served.grants() == 0 {
        ensure!(load.clock().now() < deadline, "no grant: {:#?}", load.views().await);
        load.clock().sleep(Duration::from_millis(1)).await;
    }
    begin.since(&format!("first grant {how}"));
    Ok((load, served))
}

async fn open(arguments: &Arguments, data: &Path) -> anyhow::Result<Load> {
    let own = [
        ("limits.memory", "1GiB".to_owned()),
        // So small that some host is always ready.
        ("politeness.min_delay", "10ms".to_owned()),
        ("politeness.per_address_min_delay", "1ms".to_owned()),
        ("fetch.workers", arguments.workers.to_string()),
    ];
    let mut set: Vec<(String, String)> =
        own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    for pair in &arguments.set {
        let (key, value) = pair.split_once('=').with_context(|| format!("no = in {pair}"))?;
        set.push((key.to_owned(), value.to_owned()));
    }
    let options =
        LoadOptions { data: data.to_owned(), hosts: arguments.hosts, links: arguments.links, set };
    Ok(Load::open(&options).await?)
}

/// A moment, in time and in CPU time.
struct Mark {
    clock: TokioClock,
    at: Timestamp,
    cpu: Duration,
}

impl Mark {
    fn now() -> Self {
        let clock = TokioClock::system();
        Self { at: clock.now(), clock, cpu: Usage::now().cpu }
    }

    /// How long something took that is done once.
    fn since(&self, what: &str) {
        let (wall, cpu) = self.spent();
        println!("{what}: {} ms, {} ms of CPU", wall.as_millis(), cpu.as_millis());
    }

    /// How much something cost that is done many times.
    fn line(&self, what: &str, count: u64) {
        let (wall, cpu) = self.spent();
        let each = cpu.as_micros() as f64 / count.max(1) as f64;
        println!(
            "{what}: {count} in {:.1} s, {:.0} per second; CPU {:.1} s, {each:.2} us each, {:.0} \
             per CPU-second",
            wall.as_secs_f64(),
            count as f64 / wall.as_secs_f64().max(1e-9),
            cpu.as_secs_f64(),
            count as f64 / cpu.as_secs_f64().max(1e-9),
        );
    }

    fn spent(&self) -> (Duration, Duration) {
        (self.clock.now().since(self.at), Usage::now().cpu.saturating_sub(self.cpu))
    }
}

fn space(data: &Path, urls: u64) {
    let Space { files, log_files, bytes } = Space::of(&data.join("shards"));
    let snapshots = Space::of(&data.join("snapshots")).bytes;
    println!(
        "disk: {} MB in {files} files, {log_files} of them log; {} bytes a URL; snapshots {} MB",
        bytes >> 20,
        bytes / urls.max(1),
        snapshots >> 20
    );
}

fn memory() {
    println!("memory: {} MB at most", Usage::now().memory_bytes_max >> 20);
}

/// `10k` is ten thousand, `1M` a million.
fn number(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is not a number"))?;
    number.checked_mul(unit).ok_or_else(|| format!("`{text}` is too large"))
}
