//! Points in time as values that cannot ask what time it is.
//!
//! A [`Timestamp`] is milliseconds since the Unix epoch. Only [`crate::world::Clock`] makes one
//! from the machine's clock; everything else receives it. Arithmetic saturates, so no clock jump
//! can make a wait negative.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::format_description::FormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

const RFC3339_MILLIS: &[FormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
const WARC_DATE: &[FormatItem<'static>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
const FOURTEEN_DIGITS: &[FormatItem<'static>] =
    format_description!("[year][month][day][hour][minute][second]");

/// Milliseconds since 1970-01-01T00:00:00Z. JSON shows RFC 3339 in UTC, rows hold the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The beginning of the epoch.
    pub const EPOCH: Self = Self(0);
    /// Later than anything that will be waited for.
    pub const NEVER: Self = Self(253_402_300_799_000);

    /// A timestamp from milliseconds since the epoch, clamped to the years 1970 to 9999.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, Self::NEVER.0))
    }

    /// A timestamp from whole seconds since the epoch.
    pub fn from_secs(secs: i64) -> Self {
        Self::from_millis(secs.saturating_mul(1000))
    }

    /// Milliseconds since the epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// The number of the UTC day, the unit of daily budgets.
    pub fn day(self) -> u32 {
        u32::try_from(self.0 / 86_400_000).unwrap_or(u32::MAX)
    }

    /// The first moment of the next UTC day.
    pub fn next_day(self) -> Self {
        Self::from_millis((i64::from(self.day()) + 1) * 86_400_000)
    }

    /// The form of WARC-Date: `2026-01-31T12:00:00Z`, seconds precision.
    pub fn to_warc_date(self) -> String {
        self.format(WARC_DATE)
    }

    /// The form of CDX lines: `20260131120000`.
    pub fn to_fourteen_digits(self) -> String {
        self.format(FOURTEEN_DIGITS)
    }

    /// Reads RFC 3339 in UTC, with or without milliseconds; `None` when it is something else.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let parsed = PrimitiveDateTime::parse(text, RFC3339_MILLIS)
            .or_else(|_| PrimitiveDateTime::parse(text, WARC_DATE))
            .ok()?
            .assume_utc();
        Some(Self::from_millis(i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000).ok()?))
    }

    fn format(self, form: &[FormatItem<'static>]) -> String {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|at| at.format(form).ok())
            .unwrap_or_default()
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        let millis = i64::try_from(rhs.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        let millis = i64::try_from(rhs.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(RFC3339_MILLIS))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Self::parse_rfc3339(&text)
                .ok_or_else(|| de::Error::custom(format!("`{text}` is not an RFC 3339 UTC time")))
        } else {
            i64::deserialize(deserializer).map(Self::from_millis)
        }
    }
}

/// What a decision may know of the moment it is made: the time, and one throw of the dice.
///
/// Policy asks neither a clock nor a generator; the shell that steps a machine brings both, so a
/// run repeats exactly from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of the step.
    pub at: Timestamp,
    /// Uniformly random bits, for jitter.
    pub dice: u64,
}

impl Moment {
    /// A moment with its randomness.
    pub fn new(at: Timestamp, dice: u64) -> Self {
        Self { at, dice }
    }

    /// The dice as a fraction in `[0, 1)`.
    pub fn fraction(self) -> f64 {
        let top = u32::try_from(self.dice >> 32).unwrap_or(u32::MAX);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_the_forms_of_their_formats() {
        let at = Timestamp::from_millis(1_767_225_600_123);
        assert_eq!(at.to_string(), "2026-01-01T00:00:00.123Z");
        assert_eq!(at.to_warc_date(), "2026-01-01T00:00:00Z");
        assert_eq!(at.to_fourteen_digits(), "20260101000000");
        assert_eq!(Timestamp::parse_rfc3339("2026-01-01T00:00:00.123Z"), Some(at));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::EPOCH - Duration::from_secs(5), Timestamp::EPOCH);
        assert_eq!(Timestamp::NEVER + Duration::MAX, Timestamp::NEVER);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::NEVER), Duration::ZERO);
    }

    #[test]
    fn days_are_utc_days() {
        let at = Timestamp::from_millis(86_400_000 * 3 + 1);
        assert_eq!(at.day(), 3);
        assert_eq!(at.next_day(), Timestamp::from_millis(86_400_000 * 4));
    }
}
