//! What the whole crawler costs: the sandbox in one process, `mehman crawl` in another.
//!
//! `cargo build --release --bins --examples`, then `target/release/examples/throughput --help`.
//! Only the crawler's process is measured: its CPU time from the kernel, user and system, and the
//! most memory it had at once. The web speaks HTTPS with gzip, and its pages are ready in memory.
//! `--slow N` lets the pages of N hosts drip instead, all of them at once.
//!
//! Linux only: it reads /proc. Loopback only, in a temporary directory, bounded in time.
#![expect(clippy::print_stdout, reason = "a benchmark speaks to its reader")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, ValueEnum};
use mehman::config::parse_duration;
use mehman::sandbox::{PageSizes, Sandbox, SandboxOptions, Security};
use mehman::world::TokioClock;
use serde_json::{Value, json};

/// How often the crawler's memory is looked at; what is read is the most it ever had.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Clock ticks of a second in /proc, the same on every Linux.
const TICKS: f64 = 100.0;
/// What robots.txt, redirects, errors and hosts that run out early take of the pages there are.
const SPARE_PERCENT: u32 = 150;
/// Each host has an address of its own up to here: each takes a socket of the sandbox.
const ADDRESSES_MAX: u16 = 4000;
/// What every measured crawl has in common: the web is on loopback, and nothing but the delay
/// holds it back.
const CONFIG: &str = r#"
[identity]
contact_url = "https://operator.test/crawler"
[data]
dir = "data"
[fetch]
allow_networks = ["127.0.0.0/8"]
connect_timeout = "2m"
first_byte_timeout = "2m"
total_timeout = "10m"
[retry]
lease = "20m"
[limits]
sockets = 20000
[scope]
mode = "any"
[politeness]
delay_factor = 0.0
jitter = 0.0
per_address_min_delay = "0s"
per_address_max_in_flight = 1000
"#;

#[derive(Parser)]
#[command(about = "Measures the whole crawler against a web on loopback")]
struct Arguments {
    #[command(flatten)]
    web: Web,
    #[command(flatten)]
    crawl: Crawl,
    /// Be the web, until standard input ends
    #[arg(long, hide = true)]
    be_the_web: bool,
}

/// What is crawled.
#[derive(Args)]
struct Web {
    /// How many hosts
    #[arg(long, default_value_t = 2000)]
    hosts: u16,
    /// Stop after so many pages
    #[arg(long, default_value_t = 20_000)]
    pages: u32,
    /// How often a handshake is made
    #[arg(long, value_enum, default_value = "per-host")]
    handshake: Handshake,
    /// Let no session be resumed: every handshake is a full one
    #[arg(long)]
    no_resumption: bool,
    /// How large the pages are
    #[arg(long, value_enum, default_value = "realistic")]
    sizes: Sizes,
    /// Let so many pages drip, one of each host, all at once; instead of --hosts and --pages
    #[arg(long, value_name = "N")]
    slow: Option<u16>,
    /// The pause between two of the eight pieces of a page that drips
    #[arg(long, value_parser = parse_duration, default_value = "15s")]
    drip: Duration,
}

/// How it is crawled.
#[derive(Args)]
struct Crawl {
    /// `politeness.min_delay`
    #[arg(long, value_parser = parse_duration, default_value = "100ms")]
    delay: Duration,
    /// `fetch.workers`
    #[arg(long, default_value_t = 1000)]
    workers: u32,
    /// More configuration, `section.key=value` as in TOML; may be given again
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The crawler [default: `mehman` where cargo puts it beside this example]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// A command that runs the crawler, such as `perf record -o FILE`
    #[arg(long, default_value = "")]
    under: String,
    /// End the crawl after this time, whatever it has done
    #[arg(long, value_parser = parse_duration, default_value = "10m")]
    limit: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Handshake {
    PerHost,
    PerPage,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sizes {
    Small,
    Demo,
    Realistic,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.be_the_web { serve(&arguments.web) } else { measure(&arguments) }
}

/// The sandbox's process: says where it is, and when its input ends what it saw.
#[tokio::main]
async fn serve(web: &Web) -> anyhow::Result<()> {
    let sandbox = Sandbox::start(options(web), Arc::new(TokioClock::system())).await?;
    let told = json!({
        "dns": sandbox.dns_address(),
        "seeds": sandbox.front_pages(),
        "authority": sandbox.authority(),
    });
    println!("{told}");
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await?.context("failed to wait for the end")?;
    let handshakes = sandbox.handshakes();
    let told = json!({
        "requests": sandbox.visit_count(),
        "full": handshakes.full,
        "resumed": handshakes.resumed,
        "failed": handshakes.failed,
        "most_dripping": sandbox.most_dripping(),
    });
    println!("{told}");
    sandbox.shutdown().await;
    Ok(())
}

fn options(web: &Web) -> SandboxOptions {
    let hosts = web.slow.unwrap_or(web.hosts);
    let pages = if web.slow.is_some() { 1 } else { web.pages.div_ceil(u32::from(hosts)) };
    let defaults = SandboxOptions::default();
    SandboxOptions {
        hosts,
        pages_per_host: pages * SPARE_PERCENT / 100,
        addresses: hosts.min(ADDRESSES_MAX),
        security: Security::Tls { resumption: !web.no_resumption },
        keep_alive: web.handshake == Handshake::PerHost,
        connections_max: usize::from(u16::MAX),
        prepared: true,
        drip: if web.slow.is_some() { web.drip } else { defaults.drip },
        all_drip: web.slow.is_some(),
        sizes: match web.sizes {
            Sizes::Small => PageSizes::Small,
            Sizes::Demo => PageSizes::Demo,
            Sizes::Realistic => PageSizes::Realistic,
        },
        ..defaults
    }
}

/// A process of ours, ended when dropped.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        // One that has ended by itself cannot be ended again.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let (mut web, mut said) = start_web()?;
    let told = next(&mut said).context("the sandbox did not start")?;
    write_inputs(directory.path(), arguments, &told)?;
    let before = cpu_of_children()?;
    let (report, peak) = crawl(directory.path(), arguments)?;
    let after = cpu_of_children()?;
    drop(web.0.stdin.take());
    let seen = next(&mut said).context("the sandbox did not say what it saw")?;
    web.0.wait()?;
    let cpu = (after.0 - before.0, after.1 - before.1);
    println!("{}", table(&report, &seen, cpu, peak));
    Ok(())
}

/// This very program with the same arguments, as the sandbox.
fn start_web() -> anyhow::Result<(Ours, BufReader<ChildStdout>)> {
    let mut command = with_all_files("", &std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).arg("--be-the-web");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let said = child.stdout.take().context("the sandbox has no output")?;
    Ok((Ours(child), BufReader::new(said)))
}

/// A command that may open as many files as the system lets it.
fn with_all_files(under: &str, program: &Path) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -Sn \"$(ulimit -Hn)\"; exec {under} \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(program);
    command
}

/// The next line of the sandbox.
fn next(said: &mut BufReader<ChildStdout>) -> anyhow::Result<Value> {
    let mut line = String::new();
    said.read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))
}

/// Configuration, seeds and the authority to trust.
fn write_inputs(directory: &Path, arguments: &Arguments, told: &Value) -> anyhow::Result<()> {
    let Crawl { delay, workers, set, .. } = &arguments.crawl;
    let authority = directory.join("ca.pem");
    fs::write(&authority, told["authority"].as_str().unwrap_or_default())?;
    let seeds = told["seeds"].as_array().context("the sandbox has no seeds")?;
    let seeds: Vec<&str> = seeds.iter().filter_map(Value::as_str).collect();
    fs::write(directory.join("seeds.txt"), seeds.join("\n"))?;
    let (workers, delay) = match arguments.web.slow {
        Some(slow) => (u32::from(slow) + workers, Duration::ZERO),
        None => (*workers, *delay),
    };
    let mut config: toml::Table = toml::from_str(CONFIG)?;
    let ours = [
        format!("dns.nameservers = [{}]", told["dns"]),
        format!("fetch.extra_ca_files = [{}]", json!(authority)),
        format!("fetch.workers = {workers}"),
        format!("politeness.min_delay = \"{}ms\"", delay.as_millis()),
    ];
    for line in ours.iter().chain(set) {
        lay_over(&mut config, toml::from_str(line).with_context(|| format!("--set {line}"))?);
    }
    fs::write(directory.join("mehman.toml"), config.to_string())?;
    Ok(())
}

/// Lays one table over another, section by section.
fn lay_over(config: &mut toml::Table, over: toml::Table) {
    for (name, value) in over {
        match (config.get_mut(&name), value) {
            (Some(toml::Value::Table(here)), toml::Value::Table(over)) => lay_over(here, over),
            (_, value) => drop(config.insert(name, value)),
        }
    }
}

/// Runs the crawler to its end; answers with its report and the most memory it had, in bytes.
fn crawl(directory: &Path, arguments: &Arguments) -> anyhow::Result<(Value, u64)> {
    let own = &arguments.crawl;
    let binary = match &own.binary {
        Some(binary) => binary.clone(),
        None => std::env::current_exe()?.with_file_name("../mehman"),
    };
    anyhow::ensure!(binary.exists(), "{binary:?} is not there: cargo build --release --bins");
    let mut command = with_all_files(&own.under, &binary);
    command.args(["crawl", "--json", "-q", "--seeds", "seeds.txt", "--config", "mehman.toml"]);
    // Hosts that asked for a longer pause are not waited for: that would cost time, not work.
    command.args(["--patience", "5s"]);
    if arguments.web.slow.is_some() {
        command.args(["--max-depth", "0"]);
    } else {
        command.args(["--max-pages", &arguments.web.pages.to_string()]);
    }
    let report = directory.join("report.json");
    command.current_dir(directory).stdin(Stdio::null()).stdout(fs::File::create(&report)?);
    let mut crawler = Ours(command.spawn()?);
    let mut peak = 0;
    let mut looks = 0;
    let status = loop {
        peak = peak.max(memory_peak(crawler.0.id()).unwrap_or(0));
        if let Some(status) = crawler.0.try_wait()? {
            break status;
        }
        anyhow::ensure!(LOOK_EVERY * looks < own.limit, "not done within {:?}", own.limit);
        looks += 1;
        pause();
    };
    let report = fs::read_to_string(&report)?;
    anyhow::ensure!(status.success(), "the crawler failed: {status}\n{report}");
    Ok((serde_json::from_str(&report).context("the crawler said no JSON")?, peak))
}

#[expect(clippy::disallowed_methods, reason = "the measuring process waits in real time")]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

/// `VmHWM` of a process, in bytes; `None` once it has ended.
fn memory_peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Seconds of CPU, user and system, of our children that have ended.
fn cpu_of_children() -> anyhow::Result<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has no name")?;
    // The first field here is the third of proc(5): cutime is the 16th, cstime the 17th.
    let mut fields = fields.split_whitespace().skip(13);
    let mut seconds =
        || anyhow::Ok(fields.next().context("too few fields")?.parse::<f64>()? / TICKS);
    Ok((seconds()?, seconds()?))
}

fn table(report: &Value, seen: &Value, (user, system): (f64, f64), peak: u64) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let pages = number(&report["pages"]).max(1.0);
    let a_page = |name: &str| number(&seen[name]) / pages;
    let cpu = user + system;
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        writeln!(text, "{name:<26} {value}").expect("writing to a String cannot fail");
    };
    row("pages", format!("{pages:.0} ({})", report["ended"].as_str().unwrap_or_default()));
    row("requests", seen["requests"].to_string());
    row("CPU seconds", format!("{cpu:.2} = user {user:.2} + system {system:.2}"));
    row("pages a CPU-second", format!("{:.0}", pages / cpu));
    row("CPU microseconds a page", format!("{:.0}", 1e6 * cpu / pages));
    row("peak memory", format!("{} MB", peak / 1_000_000));
    row("bytes received a page", format!("{:.0}", number(&report["bytes"]) / pages));
    row("pages a second, by clock", format!("{:.0}", number(&report["pages_per_second"])));
    row("full handshakes a page", format!("{:.3}", a_page("full")));
    row("resumed handshakes a page", format!("{:.3}", a_page("resumed")));
    row("failed handshakes", seen["failed"].to_string());
    row("most bodies dripping", seen["most_dripping"].to_string());
    row("outcomes", report["outcomes"].to_string());
    text
}
