//! The command line's arguments (U5): one definition for parsing, help and completions.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use url::Url;

use super::exclude::ExcludeArgs;
use super::why::WhyArgs;
use crate::config::{ScopeMode, parse_duration};
use crate::policy::wishes::Purpose;
use crate::simulation::Fault;

/// A polite web crawler: a guest in every house it visits.
#[derive(Debug, Parser)]
#[command(name = "mehman", version, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes, before or behind its name.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Common options")]
pub(super) struct Common {
    /// Configuration file (TOML)
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) config: Option<PathBuf>,
    /// Data directory, instead of `data.dir` of the configuration
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) data: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Log more: once for what happens, twice for every URL
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub(super) verbose: u8,
    /// Show no progress and log errors only
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
}

/// Options of every command that this one has no use for: their help would promise something, and
/// who gives them is told. By the same names, so they are found before the command's name too.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Useless {
    #[arg(long, hide = true)]
    pub(super) config: Option<PathBuf>,
    #[arg(long, hide = true)]
    pub(super) data: Option<String>,
}

/// Everything mehman does.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Crawl until done or a limit, then stop; run again on the same data, it goes on
    Crawl(CrawlArgs),
    /// Run the daemon: crawls, and takes seeds and orders over HTTP
    Serve,
    /// Crawl a small web on this machine and show what comes out
    Demo(DemoArgs),
    /// Serve the small web of the demo alone
    Sandbox(SandboxArgs),
    /// Play the whole crawler on a virtual clock against a web with faults, from a seed
    Simulate(SimulateArgs),
    /// Give seeds to a daemon
    Seed(SeedArgs),
    /// Show how a daemon stands
    Status(Remote),
    /// List hosts, what they wait for and until when
    Hosts(HostsArgs),
    /// Show one host: its clock, robots.txt, budget and queue
    Host(HostArgs),
    /// Show what is known of a URL
    Urls(UrlsArgs),
    /// Say why a URL was, will be or will not be fetched
    Why(WhyArgs),
    /// Pause the crawl, or one host
    Pause(SwitchArgs),
    /// Resume the crawl, or one host
    Resume(SwitchArgs),
    /// Ask no more for a host, a domain or what lies below a SURT prefix, from now on
    Exclude(ExcludeArgs),
    /// URLs that were given up after too many tries
    #[command(subcommand)]
    Dead(DeadCommand),
    /// Write the stored page records that a purpose may have
    Export(ExportArgs),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: Shell,
        #[command(flatten)]
        useless: Useless,
    },
}

/// Crawl until done or a limit, then stop; run again on the same data, it goes on.
#[derive(Debug, Args)]
pub(super) struct CrawlArgs {
    /// URLs to begin with
    #[arg(value_name = "SEED", value_hint = ValueHint::Url)]
    pub(super) urls: Vec<String>,
    /// Page or mail address where site owners can reach you; required to crawl
    #[arg(long, value_name = "URL|EMAIL")]
    pub(super) contact: Option<String>,
    /// Which links belong to the crawl: those to the seeds' hosts, to their registered domains,
    /// none, or any
    #[arg(long, value_name = "MODE", value_parser = scope_modes())]
    pub(super) scope: Option<String>,
    /// Stop after so many pages in the life of the data directory, redirects included, robots.txt
    /// not; a crawl that stopped there goes on with a larger number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_pages: Option<u64>,
    /// Follow links so far away from a seed
    #[arg(long, value_name = "N")]
    pub(super) max_depth: Option<u16>,
    /// File of seeds, one URL a line, `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) seeds: Option<PathBuf>,
    /// Wait so long for hosts that cannot be asked yet [default: 60s, or as long as the crawl's own
    /// delays ask for]
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) patience: Option<Duration>,
    /// Serve the admin interface here while crawling; port 0 takes any free one
    #[arg(long, value_name = "ADDR")]
    pub(super) admin_listen: Option<SocketAddr>,
}

/// Crawl a small web on this machine and show what comes out.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    #[command(flatten)]
    pub(super) shape: SandboxShape,
}

/// Serve the small web of the demo alone.
#[derive(Debug, Args)]
pub(super) struct SandboxArgs {
    #[command(flatten)]
    pub(super) shape: SandboxShape,
    /// Port of the web; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(super) port: u16,
    /// Speak HTTPS, with certificates of an authority made for it
    #[arg(long)]
    pub(super) tls: bool,
    /// Where the certificate of that authority is written, to be trusted by who crawls
    #[arg(
        long, value_name = "FILE", default_value = "sandbox-ca.pem", requires = "tls",
        value_hint = ValueHint::FilePath
    )]
    pub(super) ca_file: PathBuf,
    /// Close each connection after its response
    #[arg(long)]
    pub(super) close: bool,
    #[command(flatten)]
    pub(super) useless: Useless,
}

/// What the sandbox is made from.
#[derive(Debug, Args)]
pub(super) struct SandboxShape {
    /// How many hosts
    #[arg(
        long, value_name = "N", default_value_t = 40,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(super) hosts: u16,
    /// Pages of a host on average
    #[arg(
        long, value_name = "N", default_value_t = 25,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(super) pages: u32,
    /// Number from which the web is made: the same one, the same web
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// Play the whole crawler on a virtual clock against a web with faults, from a seed.
#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// Number from which everything is made: the same one, the very same run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Many runs: seeds from A on and before B
    #[arg(long, value_name = "A..B", conflicts_with = "seed", value_parser = seed_range)]
    pub(super) seeds: Option<Range<u64>>,
    /// Virtual hours at most; a run ends when all is done
    #[arg(
        long, value_name = "H", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub(super) hours: u32,
    /// How many hosts
    #[arg(
        long, value_name = "N", default_value_t = 30,
        value_parser = clap::value_parser!(u16).range(3..)
    )]
    pub(super) hosts: u16,
    /// Faults to inject: responses that never come (lost), ends told twice (doubled), parsers that
    /// stand still (parser), an object store (store) or a disk (disk) that fails for a while, a
    /// clock that is set (clock), actors that die (panic), the whole node killed at some step
    /// (crash); or all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = fault_names())]
    pub(super) faults: Vec<WantedFaults>,
    #[command(flatten)]
    pub(super) useless: Useless,
}

/// Which daemon is asked; its token is taken from `MEHMAN_ADMIN_TOKEN`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Remote {
    /// Admin address of the daemon [default: http://127.0.0.1:8070]; a token is taken from
    /// MEHMAN_ADMIN_TOKEN
    #[arg(long, value_name = "URL", value_parser = admin_url, value_hint = ValueHint::Url)]
    pub(super) admin: Option<Url>,
}

/// Give seeds to a daemon.
#[derive(Debug, Args)]
pub(super) struct SeedArgs {
    /// URLs to begin with
    #[arg(value_name = "URL", value_hint = ValueHint::Url, required_unless_present = "file")]
    pub(super) urls: Vec<String>,
    /// File of seeds, `-` for standard input: a URL a line, or a JSON object a line
    /// (url, priority, depth)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// How much of a list is shown.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Extent {
    /// Show at most so many
    #[arg(
        long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(super) limit: u32,
    /// Show all
    #[arg(long, conflicts_with = "limit")]
    pub(super) all: bool,
}

impl Extent {
    /// The most that is shown.
    pub(super) fn max(self) -> usize {
        if self.all { usize::MAX } else { usize::try_from(self.limit).unwrap_or(usize::MAX) }
    }
}

/// List hosts, what they wait for and until when.
#[derive(Debug, Args)]
pub(super) struct HostsArgs {
    /// Only hosts in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(HOST_STATES))]
    pub(super) state: Option<String>,
    /// Only hosts of this registered domain
    #[arg(long, value_name = "DOMAIN")]
    pub(super) domain: Option<String>,
    #[command(flatten)]
    pub(super) extent: Extent,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// The states of a host, as the admin interface names them.
pub(super) const HOST_STATES: [&str; 5] = ["ready", "in_flight", "waiting", "parked", "idle"];

/// Show one host.
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    /// `https://example.org`, or `example.org`, which is tried as https, then http
    #[arg(value_name = "KEY")]
    pub(super) key: String,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// Show what is known of a URL.
#[derive(Debug, Args)]
pub(super) struct UrlsArgs {
    /// The URL
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(super) url: String,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// Pause or resume.
#[derive(Debug, Args)]
pub(super) struct SwitchArgs {
    /// Only this host
    #[arg(value_name = "HOST")]
    pub(super) host: Option<String>,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// URLs that were given up.
#[derive(Debug, Subcommand)]
pub(super) enum DeadCommand {
    /// List them with the reason
    List {
        #[command(flatten)]
        extent: Extent,
        #[command(flatten)]
        remote: Remote,
    },
    /// Put them back into their queues
    Retry(RetryArgs),
}

/// Which dead letters are tried again.
#[derive(Debug, Args)]
#[group(id = "which", required = true, multiple = false, args = ["urls", "host", "all"])]
pub(super) struct RetryArgs {
    /// These URLs
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(super) urls: Vec<String>,
    /// All of a host
    #[arg(long, value_name = "KEY")]
    pub(super) host: Option<String>,
    /// All
    #[arg(long)]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// Write the stored page records that a purpose may have.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// What they are for; pages that must not be used so are left out, and counted
    #[arg(long, value_name = "PURPOSE", value_parser = purposes())]
    pub(super) purpose: Purpose,
    /// The form of the records
    #[arg(
        long, value_name = "KIND", default_value = "jsonl",
        value_parser = PossibleValuesParser::new(["jsonl"])
    )]
    pub(super) kind: String,
    /// The output they are read from: `pages`, `pages1`, … [default: the first with the purpose
    /// `archive`, else `pages`]
    #[arg(long, value_name = "NAME")]
    pub(super) from: Option<String>,
    /// File to write, `-` for standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) out: Option<PathBuf>,
}

/// The words for purposes.
fn purposes() -> impl TypedValueParser<Value = Purpose> {
    let words = PossibleValuesParser::new(Purpose::ALL.map(Purpose::as_str));
    words.map(|word| Purpose::parse(&word).expect("only words of purposes are let through"))
}

/// Check or show the configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Say ok, or name every fault with its place and what would do
    Check {
        /// The file, instead of --config
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
        file: Option<PathBuf>,
    },
    /// Print the effective configuration, secrets masked
    Show,
}

fn scope_modes() -> PossibleValuesParser {
    let modes = [ScopeMode::Host, ScopeMode::Domain, ScopeMode::Seeds, ScopeMode::Any];
    PossibleValuesParser::new(modes.map(ScopeMode::as_str))
}

/// What one word of `--faults` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WantedFaults {
    /// Every class there is.
    All,
    /// One class.
    One(Fault),
}

impl WantedFaults {
    /// The classes.
    pub(super) fn classes(&self) -> Vec<Fault> {
        match self {
            Self::All => Fault::ALL.to_vec(),
            Self::One(fault) => vec![*fault],
        }
    }
}

fn fault_names() -> impl TypedValueParser<Value = WantedFaults> {
    let names = Fault::ALL.map(Fault::as_str).into_iter().chain(["all"]);
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(|name| match name.as_str() {
        "all" => Ok(WantedFaults::All),
        name => name.parse::<Fault>().map(WantedFaults::One),
    })
}

/// Reads `A..B`; empty where B is not above A, which would check nothing.
fn seed_range(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = text.split_once("..").ok_or("two numbers with `..` between them")?;
    let number = |text: &str| text.parse::<u64>().map_err(|why| format!("`{text}`: {why}"));
    let range = number(first)?..number(end)?;
    if range.is_empty() { Err("B is not above A".to_owned()) } else { Ok(range) }
}

/// Reads the address of a daemon; `http://` may be left out.
fn admin_url(text: &str) -> Result<Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|why| why.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(format!("the scheme `{scheme}` is not http or https")),
    }
}

#[cfg(test)]
mod tests;
