//! Why a URL waits, is refused or has ended: one closed list (B1, I8).
//!
//! A reason is a value first; its `Display` is the sentence an operator reads.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Outcome, Timestamp, span};

/// Why something was not done, or not yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    // The URL itself.
    /// The WHATWG parser refuses it.
    NotAUrl {
        /// The parser's words.
        why: String,
    },
    /// Another scheme than http or https.
    NotHttp {
        /// The scheme found.
        scheme: String,
    },
    /// A user name or password in the URL.
    Credentials,
    /// Longer than `scope.max_url_length`.
    TooLong {
        /// Its length in bytes.
        length: u32,
        /// The configured bound.
        max: u32,
    },
    // What the operator wants.
    /// `scope.mode` or `scope.include` leaves it out.
    OutOfScope {
        /// The rule that decided.
        rule: String,
    },
    /// A `scope.exclude` rule names it.
    ExcludedByScope {
        /// The rule that decided.
        rule: String,
    },
    /// An exclusion made at runtime names it (R5).
    Excluded {
        /// The id of the exclusion.
        id: String,
    },
    /// Deeper than `scope.max_depth`.
    TooDeep {
        /// Its depth.
        depth: u16,
        /// The configured bound.
        max: u16,
    },
    /// A trap rule refused it (T1).
    Trap {
        /// The rule.
        rule: String,
    },
    /// `politeness.host_max_urls` or `domain_max_urls` is reached (F11).
    UrlCap {
        /// The cap in URLs.
        max: u64,
    },
    /// `scope.max_pages` is reached.
    PageCap {
        /// The cap in pages.
        max: u64,
    },
    /// Its `rel` or the page's directives ask not to follow it (R4).
    NoFollow,
    /// A link of a kind that `scope.follow_links` leaves out.
    LinkKind,
    /// `parse.max_links` was reached on its page.
    LinkCap,
    /// The page that names it is a redirect at the end of its chain (H2).
    TooManyRedirects {
        /// `fetch.max_redirects`.
        max: u8,
    },
    /// A redirect without a usable Location.
    NoLocation,
    // What the site wants.
    /// A robots rule refuses the path (R1).
    RobotsDisallow {
        /// Line number in robots.txt, from 1.
        line: u32,
        /// The rule as written.
        rule: String,
    },
    /// robots.txt cannot be had, so everything waits (R2).
    RobotsUnreachable {
        /// Since when.
        since: Timestamp,
        /// What came instead.
        why: String,
    },
    /// robots.txt has to be fetched first.
    RobotsNeeded,
    /// The site said how long to stay away: Retry-After or Crawl-delay (F4, F7, I3).
    SiteAskedToWait {
        /// Until when.
        until: Timestamp,
    },
    // Clocks and allowances.
    /// The host was visited a moment ago (F4).
    HostClock {
        /// The next allowed time.
        until: Timestamp,
        /// What set it.
        set_by: DelaySource,
    },
    /// The registered domain was visited a moment ago.
    DomainClock {
        /// The next allowed time.
        until: Timestamp,
    },
    /// The address was visited a moment ago.
    AddressClock {
        /// The next allowed time.
        until: Timestamp,
    },
    /// As many requests in flight as the host is allowed.
    InFlight,
    /// The daily budget is used up (F11).
    DailyBudget {
        /// Pages a day.
        max: u64,
        /// When the next day begins.
        until: Timestamp,
    },
    /// Failed lately, tried again later (F8).
    Retry {
        /// When.
        until: Timestamp,
        /// How it ended last time.
        outcome: Outcome,
        /// Attempts so far.
        attempts: u8,
    },
    /// Known and fresh; its next visit is due later (C1).
    NotDue {
        /// When.
        until: Timestamp,
    },
    /// Others of the same host come first.
    Queued,
    /// Paused by an operator: the host, or the whole crawl.
    Paused,
    /// The host's actor failed too often in a row (A1).
    HostParked {
        /// Failures in a row.
        failures: u32,
    },
    /// The crawl is stopping.
    Stopping,
    // How it ended.
    /// Tried as often as allowed; a dead letter (F8).
    TriedTooOften {
        /// How it ended the last time.
        outcome: Outcome,
        /// Attempts made.
        attempts: u8,
    },
    /// Its worker died over it.
    WorkerDied,
    /// The lease ran out before an answer came (F5).
    LeaseExpired,
    /// The name does not resolve.
    Dns {
        /// The resolver's words.
        why: String,
    },
    /// No connection.
    Connect {
        /// The socket's words.
        why: String,
    },
    /// The TLS handshake failed.
    Tls {
        /// The words of the TLS library.
        why: String,
    },
    /// What came is no HTTP.
    Protocol {
        /// What was wrong.
        why: String,
    },
    /// A time limit ended it.
    TimedOut {
        /// Which limit.
        limit: TimeLimit,
        /// Its length.
        after: Duration,
    },
    /// A size limit ended it (H1).
    TooLarge {
        /// Which limit.
        limit: SizeLimit,
        /// Its size in bytes, or its ratio.
        max: u64,
    },
    /// Nobody handles this content type.
    UnwantedType {
        /// The type.
        content_type: String,
    },
    /// The content encoding could not be undone.
    Decode {
        /// What was wrong.
        why: String,
    },
    /// The address is not among those that may be connected to (H4, I6).
    EgressRefused {
        /// The address, and the range it lies in.
        address: String,
    },
    /// Parsing was stopped by a limit (P2).
    ParseLimit {
        /// Which.
        limit: String,
    },
    /// The parser died over the document.
    ParserDied,
    /// The page asks not to be stored or indexed (R4).
    NoIndex,
    /// A sitemap names a URL of a host that does not name it in its robots.txt (P3).
    ForeignEntry,
    /// Sitemaps name each other in a row that is too long (P3).
    NestedSitemaps {
        /// How many may.
        max: u8,
    },
    /// Some of what a page names was left out (P3).
    LeftOut {
        /// How many.
        count: u64,
        /// What, or why.
        what: String,
    },
    /// What was stored of it was removed with an exclusion (R5).
    Purged {
        /// The id of the exclusion.
        id: String,
    },
}

impl Reason {
    /// Whether it ends only when an operator does something.
    pub fn needs_operator(&self) -> bool {
        matches!(
            self,
            Self::Paused
                | Self::HostParked { .. }
                | Self::Excluded { .. }
                | Self::EgressRefused { .. }
        )
    }

    /// When the reason ends by itself, where it says so.
    pub fn until(&self) -> Option<Timestamp> {
        if let Self::SiteAskedToWait { until }
        | Self::HostClock { until, .. }
        | Self::DomainClock { until }
        | Self::AddressClock { until }
        | Self::DailyBudget { until, .. }
        | Self::Retry { until, .. }
        | Self::NotDue { until } = self
        {
            return Some(*until);
        }
        None
    }
}

/// What set a host's next allowed time (F4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelaySource {
    /// `politeness.min_delay` or an allowance.
    #[default]
    MinDelay,
    /// Crawl-delay in robots.txt.
    CrawlDelay,
    /// `delay_factor` times the duration of the last fetch.
    LastFetch,
    /// Retry-After.
    RetryAfter,
    /// Exponential backoff after 429 or 503 without Retry-After.
    Backoff,
    /// The start: every host counts as just visited.
    Start,
}

/// The time limits of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimit {
    /// `fetch.connect_timeout`.
    Connect,
    /// `fetch.first_byte_timeout`.
    FirstByte,
    /// `fetch.total_timeout`.
    Total,
    /// What a body may hold memory for that others wait for, of `limits.memory`.
    Memory,
}

/// The size limits of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeLimit {
    /// Header count or bytes.
    Headers,
    /// `fetch.max_body`.
    Body,
    /// `fetch.max_decoded`.
    Decoded,
    /// `fetch.max_ratio`.
    Ratio,
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one line a reason, no decision")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAUrl { why } => write!(f, "not a URL: {why}"),
            Self::NotHttp { scheme } => write!(f, "the scheme `{scheme}` is not http or https"),
            Self::Credentials => write!(f, "the URL carries a user name or password"),
            Self::TooLong { length, max } => write!(f, "{length} bytes long, {max} are allowed"),
            Self::OutOfScope { rule } => write!(f, "outside the scope: {rule}"),
            Self::ExcludedByScope { rule } => write!(f, "excluded by scope rule {rule}"),
            Self::Excluded { id } => write!(f, "excluded at runtime by exclusion {id}"),
            Self::TooDeep { depth, max } => write!(f, "depth {depth}, {max} is the deepest"),
            Self::Trap { rule } => write!(f, "looks like a trap: {rule}"),
            Self::UrlCap { max } => write!(f, "its host or domain already has {max} known URLs"),
            Self::PageCap { max } => write!(f, "the crawl's {max} pages are used up"),
            Self::NoFollow => write!(f, "the page asks not to follow the link"),
            Self::LinkKind => write!(f, "links of this kind are not followed"),
            Self::LinkCap => write!(f, "the page has more links than are taken"),
            Self::TooManyRedirects { max } => write!(f, "more than {max} redirects in a row"),
            Self::NoLocation => write!(f, "a redirect without a usable Location"),
            Self::RobotsDisallow { line, rule } => {
                write!(f, "robots.txt line {line} refuses it: {rule}")
            }
            Self::RobotsUnreachable { since, why } => {
                write!(f, "robots.txt unreachable since {since}, so nothing is fetched: {why}")
            }
            Self::RobotsNeeded => write!(f, "robots.txt has to be fetched first"),
            Self::SiteAskedToWait { until } => write!(f, "the site asked to wait until {until}"),
            Self::HostClock { until, set_by } => {
                write!(f, "the host may be asked again at {until} (set by {set_by})")
            }
            Self::DomainClock { until } => write!(f, "the domain may be asked again at {until}"),
            Self::AddressClock { until } => write!(f, "the address may be asked again at {until}"),
            Self::InFlight => write!(f, "the host has as many requests in flight as allowed"),
            Self::DailyBudget { max, until } => {
                write!(f, "today's {max} requests are used up, the next day begins at {until}")
            }
            Self::Retry { until, outcome, attempts } => {
                let tries = tries(*attempts);
                write!(f, "ended with {outcome} after {tries}, tried again at {until}")
            }
            Self::NotDue { until } => write!(f, "fresh, due again at {until}"),
            Self::Queued => write!(f, "other URLs of its host come first"),
            Self::Paused => write!(f, "paused by an operator"),
            Self::HostParked { failures } => {
                write!(f, "the host's actor failed {failures} times in a row, so it is parked")
            }
            Self::Stopping => write!(f, "the crawl is stopping"),
            Self::TriedTooOften { outcome, attempts } => {
                let tries = tries(*attempts);
                write!(f, "given up after {tries}, the last ended with {outcome}")
            }
            Self::WorkerDied => write!(f, "the worker died over it"),
            Self::LeaseExpired => write!(f, "the lease ran out before an answer came"),
            Self::Dns { why } => write!(f, "the name does not resolve: {why}"),
            Self::Connect { why } => write!(f, "no connection: {why}"),
            Self::Tls { why } => write!(f, "TLS failed: {why}"),
            Self::Protocol { why } => write!(f, "not HTTP as it should be: {why}"),
            Self::TimedOut { limit, after } => {
                write!(f, "{limit} limit of {} passed", span(*after))
            }
            Self::TooLarge { limit, max } => write!(f, "{limit} limit of {max} passed"),
            Self::UnwantedType { content_type } => write!(f, "nobody handles {content_type}"),
            Self::Decode { why } => write!(f, "the content encoding is broken: {why}"),
            Self::EgressRefused { address } => {
                write!(f, "{address} may not be connected to (fetch.allow_networks opens ranges)")
            }
            Self::ParseLimit { limit } => write!(f, "parsing stopped at {limit}"),
            Self::ParserDied => write!(f, "the parser died over the document"),
            Self::NoIndex => write!(f, "the page asks not to be indexed"),
            Self::ForeignEntry => write!(f, "a sitemap may only name URLs of its own host"),
            Self::NestedSitemaps { max } => write!(f, "more than {max} sitemaps in a row"),
            Self::LeftOut { count, what } => write!(f, "{count} left out: {what}"),
            Self::Purged { id } => write!(f, "what was stored of it was removed by exclusion {id}"),
        }
    }
}

fn tries(attempts: u8) -> String {
    if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") }
}

impl fmt::Display for DelaySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MinDelay => "the configured minimum",
            Self::CrawlDelay => "the site's Crawl-delay",
            Self::LastFetch => "the duration of the last fetch",
            Self::RetryAfter => "the site's Retry-After",
            Self::Backoff => "backoff after a refusal",
            Self::Start => "the start of this process",
        })
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "the connect",
            Self::FirstByte => "the first-byte",
            Self::Total => "the whole-exchange",
            Self::Memory => "the scarce-memory",
        })
    }
}

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Headers => "the header",
            Self::Body => "the body",
            Self::Decoded => "the decoded size",
            Self::Ratio => "the compression ratio",
        })
    }
}
