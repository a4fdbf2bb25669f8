//! Bounds of the whole, retries, and robots.txt: `[limits]`, `[retry]`, `[robots]` (F8, F11, R2).

use std::time::Duration;

use super::define::section;
use super::faults::Faults;
use super::keys::{Found, Setting, Shown};
use super::reader::Checked;
use super::units::{ByteSize, days, parse_duration, show_duration};
use super::value::{shown_text, text_of};

section! {
    /// Bounds of the whole crawl and of this machine.
    pub struct Limits {
        /// Requests a day of the whole crawl; every request counts: success, 304, failure, retry,
        /// robots.txt.
        daily_fetches: Option<u64> = None, within(1..=1_000_000_000_000);
        /// Memory for stores, caches and bodies; a quarter of the machine unless given.
        memory: Option<ByteSize> = None,
            absent("auto"),
            within(ByteSize::mib(64)..=ByteSize::gib(1 << 16));
        /// Sockets open at once, idle ones included; bounds how long an idle one is kept.
        sockets: u32 = 10_000, within(16..=10_000_000);
    }
}

impl Checked for Limits {}

section! {
    /// What happens to a URL that failed (F8).
    pub struct Retry {
        /// The wait after the first failure.
        base: Duration = Duration::from_secs(30), within(Duration::from_millis(1)..=days(30));
        /// Each wait is so many times the one before.
        factor: f64 = 4.0, within(1.0..=100.0);
        /// Tries in all; then the URL is a dead letter.
        max_attempts: u8 = 5, within(1..=100);
        /// How long a lease lasts; one that is not answered by then is granted again.
        lease: Duration = Duration::from_secs(300), within(Duration::from_millis(1)..=days(1));
    }
}

impl Checked for Retry {}

section! {
    /// How robots.txt is kept (R2).
    pub struct Robots {
        /// How long a robots.txt holds; RFC 9309 allows a day at most.
        cache: Duration = days(1),
            within(Duration::from_secs(1)..=days(1));
        /// How much of it is read; RFC 9309 asks for 500 KiB at least.
        max_size: ByteSize = ByteSize::mib(1), within(ByteSize::kib(500)..=ByteSize::mib(64));
        /// When robots.txt stays unreachable: `"refuse"` never crawls the host,
        /// `"allow-after:30d"` crawls it after that time.
        long_unreachable: LongUnreachable = LongUnreachable::Refuse;
        /// Ask every host for `/.well-known/tdmrep.json`, a request more a day, for what it keeps
        /// back from text and data mining; where an output is for models unless given.
        tdmrep: Option<bool> = None, absent("auto");
    }
}

impl Checked for Robots {}

/// R2: what holds for a host whose robots.txt stays unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongUnreachable {
    /// Everything is disallowed, for ever.
    Refuse,
    /// Everything is allowed after this time.
    AllowAfter(Duration),
}

/// Less than this is a passing trouble, not a lasting one (RFC 9309, section 2.3.1.4).
const LONG: Duration = days(1);

impl Setting for LongUnreachable {
    fn wanted() -> String {
        "\"refuse\" or \"allow-after:30d\"".to_owned()
    }

    fn read(found: &Found<'_>, faults: &mut Faults) -> Option<Self> {
        let text = text_of(found, faults)?;
        if text == "refuse" {
            return Some(Self::Refuse);
        }
        let Some(after) = text.strip_prefix("allow-after:") else {
            return found.refuse_because("no such word", faults);
        };
        match parse_duration(after) {
            Ok(duration) if duration >= LONG => Some(Self::AllowAfter(duration)),
            Ok(_) => found.refuse_because("less than a day is a passing trouble", faults),
            Err(why) => found.refuse_because(why, faults),
        }
    }

    fn show(&self) -> Shown {
        match self {
            Self::Refuse => shown_text("refuse"),
            Self::AllowAfter(after) => shown_text(format!("allow-after:{}", show_duration(*after))),
        }
    }
}
