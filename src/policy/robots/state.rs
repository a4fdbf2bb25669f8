//! R2: the cache machine of one host's robots.txt.
//!
//! ```text
//! 2xx                          obey what it says
//! 4xx but 429, hopeless 3xx    unavailable: everything is allowed
//! 429, 5xx, no answer          unreachable: everything waits, or the last good copy serves on
//! ```
//!
//! No decision outlives 24 hours (I2). Unreachable files are asked for again with growing delays,
//! and never turn into "allowed" unless the operator says after how long.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Rules, Verdict};
use crate::types::{Moment, Reason, RobotsKept, RobotsRecord, Timestamp};

/// I2: no decision is used for longer, whatever was configured or sent.
const CACHE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A shorter `max-age` is not believed: it would cost a request for every few pages.
const CACHE_MIN: Duration = Duration::from_secs(300);
/// The longest delay between two tries of an unreachable file, jitter included.
const RETRY_MAX: Duration = Duration::from_secs(3600);
/// Jitter adds up to this part of a delay.
const RETRY_JITTER: f64 = 0.25;

/// What the configuration says about robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsSettings {
    /// `identity.product`, the token that groups are chosen by.
    pub product: String,
    /// `robots.cache`: how long an answer is used; never more than 24 hours.
    pub cache: Duration,
    /// `robots.max_size` in bytes: what lies beyond is not read.
    pub max_size: usize,
    /// `robots.long_unreachable`.
    pub long_unreachable: LongUnreachable,
    /// The first delay before an unreachable file is asked for again; each further one doubles.
    pub retry_base: Duration,
    /// Redirects that are followed from `/robots.txt`.
    pub max_redirects: u8,
    /// `robots.tdmrep`: `/.well-known/tdmrep.json` is asked for as well (R6).
    pub reservations: bool,
}

impl Default for RobotsSettings {
    fn default() -> Self {
        Self {
            product: "mehman".to_owned(),
            cache: CACHE_MAX,
            max_size: 1024 * 1024,
            long_unreachable: LongUnreachable::Refuse,
            retry_base: Duration::from_secs(30),
            max_redirects: 5,
            reservations: false,
        }
    }
}

/// What becomes of a host whose robots.txt stays unreachable and of which no good copy is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LongUnreachable {
    /// Everything waits, however long it takes.
    Refuse,
    /// Everything is allowed once it has been unreachable for this long.
    AllowAfter(Duration),
}

/// What came for `/robots.txt`, at the end of its redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RobotsAnswer {
    /// A response. A redirect arrives here only when it has no usable Location.
    Status {
        /// The status code.
        code: u16,
        /// The decoded body; `None` counts as empty.
        body: Option<Bytes>,
        /// Cache-Control max-age.
        max_age: Option<Duration>,
    },
    /// No response: name, connection, handshake, protocol or time.
    Failed {
        /// One phrase.
        why: String,
    },
    /// More redirects than are followed.
    TooManyRedirects,
}

/// What is known of a host's robots.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RobotsState {
    /// Never asked for.
    #[default]
    Unfetched,
    /// An answer that decides.
    Fresh {
        /// What it was.
        kind: FreshKind,
        /// When it came.
        fetched_at: Timestamp,
        /// When it ends to decide.
        until: Timestamp,
    },
    /// No usable answer.
    Unreachable {
        /// The first of the failures in a row.
        since: Timestamp,
        /// The last of them.
        asked_at: Timestamp,
        /// What came instead, one phrase.
        why: String,
        /// The last rules that were read.
        last_good: Option<Rules>,
        /// When it is asked for again.
        retry_at: Timestamp,
        /// Failures in a row.
        attempts: u16,
    },
}

/// An answer that decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FreshKind {
    /// 2xx: these rules.
    Obey(Rules),
    /// Unavailable: everything is allowed.
    AllowAll,
}

/// What an answer led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Paths may be judged otherwise than before, so sleeping URLs are judged again (R2).
    pub rules_changed: bool,
}

/// Whether a path may be requested now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allow {
        /// The line that says so, if one does.
        line: Option<u32>,
    },
    /// It may not while these rules hold.
    Refuse(Reason),
    /// robots.txt has to be asked for first.
    NeedsFetch,
    /// robots.txt is unreachable and not yet to be asked for again.
    Wait {
        /// When it is.
        until: Timestamp,
        /// Why.
        reason: Reason,
    },
}

/// What decides, whatever state it comes from.
#[derive(PartialEq)]
enum Deciding<'a> {
    Rules(&'a Rules),
    Everything,
    Nothing,
}

impl RobotsState {
    /// Takes what came for `/robots.txt`. Its caller knows the host's clock, and says by
    /// [`RobotsState::hold_for`] when the next request may go, before it writes the record.
    pub fn answer(
        &mut self,
        now: Moment,
        answer: RobotsAnswer,
        settings: &RobotsSettings,
    ) -> Answered {
        let next = match answer {
            RobotsAnswer::TooManyRedirects => fresh(now, FreshKind::AllowAll, None, settings),
            RobotsAnswer::Failed { why } => self.unreachable(now, why, settings),
            RobotsAnswer::Status { code, body, max_age } => match code {
                200..=299 => {
                    let text = within(body.unwrap_or_default(), settings.max_size);
                    let rules = Rules::parse(&text, &settings.product);
                    fresh(now, FreshKind::Obey(rules), max_age, settings)
                }
                // We ask without validators, so this answers another question; what it says of
                // the copy we hold, if we hold one, is that it still stands.
                304 => match self.deciding() {
                    Deciding::Rules(rules) => {
                        fresh(now, FreshKind::Obey(rules.clone()), max_age, settings)
                    }
                    Deciding::Everything | Deciding::Nothing => {
                        self.unreachable(now, "status 304 without a copy".to_owned(), settings)
                    }
                },
                429 => self.unreachable(now, "status 429".to_owned(), settings),
                300..=499 => fresh(now, FreshKind::AllowAll, max_age, settings),
                _ => self.unreachable(now, format!("status {code}"), settings),
            },
        };
        let after = next.deciding();
        let rules_changed = after != Deciding::Nothing && after != self.deciding();
        *self = next;
        Answered { rules_changed }
    }

    /// R2: what has just been answered decides at least the next request, which may go at `next`.
    /// Else a host that wants longer waits than an answer lasts would be asked for its robots.txt
    /// for ever, and for no page: an answer lasts some minutes beyond `next`, within its day (I2),
    /// and where a good copy serves on, the delay of the next try runs from `next`.
    /// That also goes before `robots.cache`: shorter than a host's wait, it would mean the same.
    pub fn hold_for(&mut self, next: Timestamp) {
        match self {
            Self::Fresh { fetched_at, until, .. } => {
                *until = (*until).max(next + CACHE_MIN).min(*fetched_at + CACHE_MAX);
            }
            Self::Unreachable { asked_at, retry_at, last_good: Some(_), .. } => {
                *retry_at = (*retry_at).max(next + retry_at.since(*asked_at));
            }
            Self::Unfetched | Self::Unreachable { last_good: None, .. } => {}
        }
    }

    /// Judges `/path?query` at `now`.
    pub fn decide(
        &self,
        now: Timestamp,
        path_and_query: &str,
        settings: &RobotsSettings,
    ) -> Decision {
        if self.is_due(now) {
            return Decision::NeedsFetch;
        }
        match self.deciding() {
            Deciding::Everything => return Decision::Allow { line: None },
            Deciding::Rules(rules) => {
                return match rules.verdict(path_and_query) {
                    Verdict::Allowed { line, .. } => Decision::Allow { line },
                    Verdict::Disallowed { line, rule } => {
                        Decision::Refuse(Reason::RobotsDisallow { line, rule: rule.to_owned() })
                    }
                };
            }
            Deciding::Nothing => {}
        }
        match self {
            Self::Unfetched | Self::Fresh { .. } => Decision::NeedsFetch,
            Self::Unreachable { since, why, retry_at, .. } => match settings.long_unreachable {
                LongUnreachable::AllowAfter(after) if now >= *since + after => {
                    Decision::Allow { line: None }
                }
                LongUnreachable::AllowAfter(_) | LongUnreachable::Refuse => Decision::Wait {
                    until: *retry_at,
                    reason: Reason::RobotsUnreachable { since: *since, why: why.clone() },
                },
            },
        }
    }

    /// Whether robots.txt is to be asked for before anything else. An answer from the future was
    /// dated by a clock that has been set back: nobody knows how old it is (A4, I2).
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due_at().is_none_or(|at| now >= at) || self.answered_at() > Some(now)
    }

    /// When the copy in force came; nobody remembers that of one that serves on while robots.txt
    /// is unreachable.
    pub fn said_at(&self) -> Option<Timestamp> {
        match self {
            Self::Fresh { fetched_at, .. } => Some(*fetched_at),
            Self::Unfetched | Self::Unreachable { .. } => None,
        }
    }

    /// When the last answer came, or failed to.
    fn answered_at(&self) -> Option<Timestamp> {
        match self {
            Self::Unfetched => None,
            Self::Fresh { fetched_at, .. } => Some(*fetched_at),
            Self::Unreachable { asked_at, .. } => Some(*asked_at),
        }
    }

    /// When robots.txt is to be asked for; `None` is at once.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Self::Unfetched => None,
            Self::Fresh { fetched_at, until, .. } => Some((*until).min(*fetched_at + CACHE_MAX)),
            // While it is unreachable the good copy has no age (I2); its next try has a time.
            Self::Unreachable { retry_at, last_good: Some(_), .. } => Some(*retry_at),
            Self::Unreachable { asked_at, retry_at, last_good: None, .. } => {
                Some((*retry_at).min(*asked_at + CACHE_MAX))
            }
        }
    }

    /// Why everything waits for it: it was asked for and did not come, and no good copy serves on.
    pub fn out_of_reach(&self) -> Option<Reason> {
        match self {
            Self::Unreachable { since, why, last_good: None, .. } => {
                Some(Reason::RobotsUnreachable { since: *since, why: why.clone() })
            }
            Self::Unreachable { .. } | Self::Unfetched | Self::Fresh { .. } => None,
        }
    }

    /// The rules that decide, also past their time: a wish for a delay does not end with them (I3).
    pub fn rules(&self) -> Option<&Rules> {
        match self.deciding() {
            Deciding::Rules(rules) => Some(rules),
            Deciding::Everything | Deciding::Nothing => None,
        }
    }

    /// R3: the Crawl-delay that holds.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.rules().and_then(Rules::crawl_delay)
    }

    /// The state as it was when its record was written, its text read for `product`.
    pub fn from_record(record: &RobotsRecord, product: &str) -> Self {
        let (fetched_at, until) = (record.fetched_at, record.expires_at);
        match &record.answer {
            RobotsKept::Rules(text) => {
                let kind = FreshKind::Obey(Rules::parse(text, product));
                Self::Fresh { kind, fetched_at, until }
            }
            RobotsKept::AllowAll => Self::Fresh { kind: FreshKind::AllowAll, fetched_at, until },
            RobotsKept::Unreachable { since, why, last_good, attempts } => Self::Unreachable {
                since: *since,
                asked_at: fetched_at,
                why: why.clone(),
                last_good: last_good.as_ref().map(|text| Rules::parse(text, product)),
                retry_at: until,
                attempts: *attempts,
            },
        }
    }

    /// The record of this state; `None` while robots.txt was never asked for.
    pub fn to_record(&self) -> Option<RobotsRecord> {
        Some(match self {
            Self::Unfetched => return None,
            Self::Fresh { kind, fetched_at, until } => RobotsRecord {
                fetched_at: *fetched_at,
                expires_at: *until,
                answer: match kind {
                    FreshKind::Obey(rules) => RobotsKept::Rules(rules.text().clone()),
                    FreshKind::AllowAll => RobotsKept::AllowAll,
                },
                reservations: None,
            },
            Self::Unreachable { since, asked_at, why, last_good, retry_at, attempts } => {
                RobotsRecord {
                    fetched_at: *asked_at,
                    expires_at: *retry_at,
                    answer: RobotsKept::Unreachable {
                        since: *since,
                        why: why.clone(),
                        last_good: last_good.as_ref().map(|rules| rules.text().clone()),
                        attempts: *attempts,
                    },
                    reservations: None,
                }
            }
        })
    }

    fn deciding(&self) -> Deciding<'_> {
        match self {
            Self::Fresh { kind: FreshKind::Obey(rules), .. }
            | Self::Unreachable { last_good: Some(rules), .. } => Deciding::Rules(rules),
            Self::Fresh { kind: FreshKind::AllowAll, .. } => Deciding::Everything,
            Self::Unfetched | Self::Unreachable { last_good: None, .. } => Deciding::Nothing,
        }
    }

    /// The state after one more failure. "Everything is allowed" is no copy that could serve on.
    fn unreachable(&self, now: Moment, why: String, settings: &RobotsSettings) -> Self {
        let (since, before) = match self {
            Self::Unreachable { since, attempts, .. } => (*since, *attempts),
            Self::Unfetched | Self::Fresh { .. } => (now.at, 0),
        };
        Self::Unreachable {
            since,
            asked_at: now.at,
            why,
            last_good: self.rules().cloned(),
            retry_at: now.at + retry_delay(now, before, settings.retry_base),
            attempts: before.saturating_add(1),
        }
    }
}

fn fresh(
    now: Moment,
    kind: FreshKind,
    max_age: Option<Duration>,
    settings: &RobotsSettings,
) -> RobotsState {
    let asked = max_age.map_or(CACHE_MAX, |age| age.max(CACHE_MIN));
    let life = asked.min(settings.cache).min(CACHE_MAX);
    RobotsState::Fresh { kind, fetched_at: now.at, until: now.at + life }
}

/// Doubles with every failure, jitter on top, bounded.
pub(in crate::policy) fn retry_delay(now: Moment, failures: u16, base: Duration) -> Duration {
    let grown = base.saturating_mul(2_u32.saturating_pow(u32::from(failures)));
    let ceiling = RETRY_MAX.div_f64(1.0 + RETRY_JITTER);
    grown.min(ceiling).mul_f64(1.0 + RETRY_JITTER * now.fraction())
}

/// The lines that lie within `max` bytes whole; the one that crosses the bound is not read, since
/// half a rule is another rule.
fn within(text: Bytes, max: usize) -> Bytes {
    if text.len() <= max {
        return text;
    }
    let kept = text.slice(..max);
    let (newline, carriage_return) = match *kept {
        [0xFF, 0xFE, ..] => ([b'\n', 0], [b'\r', 0]),
        [0xFE, 0xFF, ..] => ([0, b'\n'], [0, b'\r']),
        _ => {
            let end = memchr::memrchr2(b'\n', b'\r', &kept).map_or(0, |at| at + 1);
            return kept.slice(..end);
        }
    };
    // UTF-16: the same octets stand in other characters too.
    let (units, _) = kept.as_chunks::<2>();
    let last = units.iter().rposition(|unit| *unit == newline || *unit == carriage_return);
    kept.slice(..last.map_or(0, |at| 2 * (at + 1)))
}

#[cfg(test)]
mod tests;
