//! Key layout: one kind byte, then fields in big-endian order, so that bytes sort as values do.
//!
//! | kind | key | row |
//! | --- | --- | --- |
//! | `u` | URL id | what a URL is |
//! | `v` | URL id | how its last visit went |
//! | `f` | URL id | how later visits of a known page fail |
//! | `q` | host · band · order · hash · disambiguator | the host's queue |
//! | `d` | due (ms) · URL id | retries and revisits |
//! | `s` | URL id | refused by robots rules |
//! | `k` | host | its sleepers are to be judged by new rules |
//! | `h` | host · 0, host · 1 | the host's row, and its counts beside it |
//! | `r` | host | its last robots.txt |
//! | `p` | URL id · version | waits for a parser |
//! | `x` | URL id | dead letters |
//! | `o` | number of the last event | outbox: events of a batch |
//! | `g` | latest time (ms) · batch · part | politeness ledger: halves of requests, of a batch |
//! | `c`, `t` | digest, text hash | where content lies |
//! | `e`, `y` | id | exclusions, purges |
//! | `m`, `w` | name | named values, output offsets |
//! | `z` | name | the store's own rows |

use std::fmt;
use std::ops::Range;

use super::logs::LedgerPlace;
use crate::types::{EventSeq, HostId, QueueEntry, Timestamp, UrlId, UrlVersion};

/// What a row is; its byte begins the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What a URL is.
    Url,
    /// How its last visit went.
    Visit,
    /// How later visits of a known page fail.
    Failing,
    /// A host's queue.
    Queue,
    /// Retries and revisits by time.
    Due,
    /// Refused by robots rules.
    Sleeper,
    /// A host whose sleepers are to be judged by new rules.
    Unjudged,
    /// A host's row.
    Host,
    /// A host's counts.
    Counts,
    /// A host's last robots.txt.
    Robots,
    /// Waits for its parser.
    ToParse,
    /// Given up.
    Dead,
    /// Events.
    Outbox,
    /// Halves of requests in the politeness ledger.
    Ledger,
    /// Where a payload lies.
    Payload,
    /// Which page has a text.
    Text,
    /// A rule made at runtime.
    Exclusion,
    /// The order to remove what is stored of such a rule.
    Purge,
    /// A named value of the shard.
    Meta,
    /// How far an output is committed.
    Output,
    /// The store's own: format, epoch, head.
    Own,
}

impl Kind {
    /// The first byte of its keys.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Url => b'u',
            Self::Visit => b'v',
            Self::Failing => b'f',
            Self::Queue => b'q',
            Self::Due => b'd',
            Self::Sleeper => b's',
            Self::Unjudged => b'k',
            Self::Host | Self::Counts => b'h',
            Self::Robots => b'r',
            Self::ToParse => b'p',
            Self::Dead => b'x',
            Self::Outbox => b'o',
            Self::Ledger => b'g',
            Self::Payload => b'c',
            Self::Text => b't',
            Self::Exclusion => b'e',
            Self::Purge => b'y',
            Self::Meta => b'm',
            Self::Output => b'w',
            Self::Own => b'z',
        }
    }

    /// Every key of this kind.
    pub(super) fn range(self) -> KeyRange {
        prefix_range(vec![self.byte()])
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "url",
            Self::Visit => "visit",
            Self::Failing => "failing visit",
            Self::Queue => "queue",
            Self::Due => "due",
            Self::Sleeper => "sleeper",
            Self::Unjudged => "unjudged",
            Self::Host => "host",
            Self::Counts => "host counts",
            Self::Robots => "robots",
            Self::ToParse => "to-parse",
            Self::Dead => "dead letter",
            Self::Outbox => "outbox",
            Self::Ledger => "ledger",
            Self::Payload => "payload",
            Self::Text => "text",
            Self::Exclusion => "exclusion",
            Self::Purge => "purge",
            Self::Meta => "meta",
            Self::Output => "output",
            Self::Own => "store",
        })
    }
}

/// Bytes from, up to and without.
pub(super) type KeyRange = Range<Vec<u8>>;

/// The key of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// `u`
    Url(UrlId),
    /// `v`
    Visit(UrlId),
    /// `f`
    Failing(UrlId),
    /// `q`
    Queue {
        /// Priority band, 0 first.
        band: u8,
        /// Place in the band, lowest first.
        order: u64,
        /// What waits; its host comes first in the key.
        id: UrlId,
    },
    /// `d`
    Due {
        /// When.
        due: Timestamp,
        /// What.
        id: UrlId,
    },
    /// `s`
    Sleeper(UrlId),
    /// `k`
    Unjudged(HostId),
    /// `h`, 0
    Host(HostId),
    /// `h`, 1
    Counts(HostId),
    /// `r`
    Robots(HostId),
    /// `p`
    ToParse(UrlId, UrlVersion),
    /// `x`
    Dead(UrlId),
    /// `o`
    Outbox(EventSeq),
    /// `g`
    Ledger(LedgerPlace),
    /// `c`
    Payload(String),
    /// `t`
    Text(u128),
    /// `e`
    Exclusion(String),
    /// `y`
    Purge(String),
    /// `m`
    Meta(String),
    /// `w`
    Output(String),
    /// `z`
    Own(String),
}

impl Key {
    /// The key of a queue entry.
    pub(super) fn of_entry(entry: &QueueEntry) -> Self {
        Self::Queue { band: entry.band, order: entry.order, id: entry.id }
    }

    /// What the row is.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Url(_) => Kind::Url,
            Self::Visit(_) => Kind::Visit,
            Self::Failing(_) => Kind::Failing,
            Self::Queue { .. } => Kind::Queue,
            Self::Due { .. } => Kind::Due,
            Self::Sleeper(_) => Kind::Sleeper,
            Self::Unjudged(_) => Kind::Unjudged,
            Self::Host(_) => Kind::Host,
            Self::Counts(_) => Kind::Counts,
            Self::Robots(_) => Kind::Robots,
            Self::ToParse(..) => Kind::ToParse,
            Self::Dead(_) => Kind::Dead,
            Self::Outbox(_) => Kind::Outbox,
            Self::Ledger(_) => Kind::Ledger,
            Self::Payload(_) => Kind::Payload,
            Self::Text(_) => Kind::Text,
            Self::Exclusion(_) => Kind::Exclusion,
            Self::Purge(_) => Kind::Purge,
            Self::Meta(_) => Kind::Meta,
            Self::Output(_) => Kind::Output,
            Self::Own(_) => Kind::Own,
        }
    }

    /// The bytes it is filed under.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(32);
        self.encode_into(&mut key);
        key
    }

    /// Adds the bytes it is filed under to those that are there already.
    pub(super) fn encode_into(&self, key: &mut Vec<u8>) {
        key.push(self.kind().byte());
        match self {
            Self::Url(id)
            | Self::Visit(id)
            | Self::Failing(id)
            | Self::Sleeper(id)
            | Self::Dead(id) => {
                key.extend(id.to_bytes());
            }
            Self::Queue { band, order, id } => {
                key.extend(id.host.0.to_be_bytes());
                key.push(*band);
                key.extend(order.to_be_bytes());
                key.extend(id.hash.to_be_bytes());
                key.push(id.disambiguator);
            }
            Self::Due { due, id } => {
                key.extend(millis(*due));
                key.extend(id.to_bytes());
            }
            Self::Outbox(EventSeq(number)) => key.extend(number.to_be_bytes()),
            Self::Host(host) => host_key(key, *host, 0),
            Self::Counts(host) => host_key(key, *host, 1),
            Self::Robots(host) | Self::Unjudged(host) => key.extend(host.0.to_be_bytes()),
            Self::ToParse(id, version) => {
                key.extend(id.to_bytes());
                key.extend(version.0.to_be_bytes());
            }
            Self::Ledger(LedgerPlace { until, batch, part }) => {
                key.extend(millis(*until));
                key.extend(batch.to_be_bytes());
                key.extend(part.to_be_bytes());
            }
            Self::Text(hash) => key.extend(hash.to_be_bytes()),
            Self::Payload(name)
            | Self::Exclusion(name)
            | Self::Purge(name)
            | Self::Meta(name)
            | Self::Output(name)
            | Self::Own(name) => key.extend(name.as_bytes()),
        }
    }

    /// Reads a key back; `None` when it is none of ours.
    pub(super) fn decode(key: &[u8]) -> Option<Self> {
        let (kind, mut rest) = key.split_first()?;
        let fields = &mut rest;
        let decoded = match kind {
            b'u' => Self::Url(take_id(fields)?),
            b'v' => Self::Visit(take_id(fields)?),
            b'f' => Self::Failing(take_id(fields)?),
            b'q' => take_queue(fields)?,
            b'd' => Self::Due { due: take_time(fields)?, id: take_id(fields)? },
            b's' => Self::Sleeper(take_id(fields)?),
            b'k' => Self::Unjudged(HostId(take_u64(fields)?)),
            b'h' => take_host(fields)?,
            b'r' => Self::Robots(HostId(take_u64(fields)?)),
            b'p' => {
                let id = take_id(fields)?;
                Self::ToParse(id, UrlVersion(u32::from_be_bytes(take(fields)?)))
            }
            b'x' => Self::Dead(take_id(fields)?),
            b'o' => Self::Outbox(EventSeq(take_u64(fields)?)),
            b'g' => Self::Ledger(LedgerPlace {
                until: take_time(fields)?,
                batch: take_u64(fields)?,
                part: u32::from_be_bytes(take(fields)?),
            }),
            b't' => Self::Text(u128::from_be_bytes(take(fields)?)),
            b'c' => Self::Payload(take_text(fields)?),
            b'e' => Self::Exclusion(take_text(fields)?),
            b'y' => Self::Purge(take_text(fields)?),
            b'm' => Self::Meta(take_text(fields)?),
            b'w' => Self::Output(take_text(fields)?),
            b'z' => Self::Own(take_text(fields)?),
            _ => return None,
        };
        rest.is_empty().then_some(decoded)
    }
}

/// Every key of a kind that belongs to one host (`u`, `v`, `f`, `q`, `s`, `p`, `x`).
pub(super) fn host_range(kind: Kind, host: HostId) -> KeyRange {
    let mut prefix = vec![kind.byte()];
    prefix.extend(host.0.to_be_bytes());
    prefix_range(prefix)
}

/// One band of a host's queue.
pub(super) fn band_range(host: HostId, band: u8) -> KeyRange {
    let mut prefix = vec![Kind::Queue.byte()];
    prefix.extend(host.0.to_be_bytes());
    prefix.push(band);
    prefix_range(prefix)
}

/// Due before `end`; ledger rows likewise from `start`.
pub(super) fn time_range(kind: Kind, start: Timestamp, end: Timestamp) -> KeyRange {
    let bound = |at| [&[kind.byte()][..], &millis(at)[..]].concat();
    bound(start)..bound(end)
}

/// The same range, beginning behind a key that has been seen.
pub(super) fn after(range: KeyRange, seen: Option<&Key>) -> KeyRange {
    let Some(seen) = seen else { return range };
    let mut start = seen.encode();
    start.push(0);
    start.max(range.start)..range.end
}

/// Every key that begins with `prefix`.
fn prefix_range(prefix: Vec<u8>) -> KeyRange {
    let mut end = prefix.clone();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            break;
        }
    }
    prefix..end
}

fn millis(at: Timestamp) -> [u8; 8] {
    at.as_millis().to_be_bytes()
}

fn host_key(key: &mut Vec<u8>, host: HostId, part: u8) {
    key.extend(host.0.to_be_bytes());
    key.push(part);
}

fn take<const N: usize>(fields: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = fields.split_first_chunk::<N>()?;
    *fields = rest;
    Some(*taken)
}

fn take_u64(fields: &mut &[u8]) -> Option<u64> {
    take(fields).map(u64::from_be_bytes)
}

fn take_id(fields: &mut &[u8]) -> Option<UrlId> {
    UrlId::from_bytes(&take::<17>(fields)?)
}

fn take_time(fields: &mut &[u8]) -> Option<Timestamp> {
    let millis = i64::from_be_bytes(take(fields)?);
    Some(Timestamp::from_millis(millis)).filter(|at| at.as_millis() == millis)
}

fn take_queue(fields: &mut &[u8]) -> Option<Key> {
    let host = HostId(take_u64(fields)?);
    let [band] = take(fields)?;
    let order = take_u64(fields)?;
    let hash = take_u64(fields)?;
    let [disambiguator] = take(fields)?;
    Some(Key::Queue { band, order, id: UrlId { host, hash, disambiguator } })
}

fn take_host(fields: &mut &[u8]) -> Option<Key> {
    let host = HostId(take_u64(fields)?);
    match take(fields)? {
        [0] => Some(Key::Host(host)),
        [1] => Some(Key::Counts(host)),
        _ => None,
    }
}

fn take_text(fields: &mut &[u8]) -> Option<String> {
    let text = std::str::from_utf8(fields).ok()?.to_owned();
    *fields = &[];
    Some(text)
}

#[cfg(test)]
mod tests;
