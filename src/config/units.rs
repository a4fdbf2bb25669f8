//! Durations and sizes as people write them: `"1h30m"`, `"1MiB"`.
//!
//! Every value prints in a form that reads back as the same value.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// Why a text is not a duration or a size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Nothing there.
    #[error("it is empty")]
    Empty,
    /// A number was due.
    #[error("a whole number is missing before `{0}`")]
    NoNumber(String),
    /// A number stands alone.
    #[error("{0} needs a unit")]
    NoUnit(String),
    /// Letters that mean nothing here.
    #[error("`{0}` is not a unit")]
    UnknownUnit(String),
    /// `30m1h`, `1s1s`.
    #[error("`{0}` is out of order, larger units come first and each once")]
    Order(String),
    /// More than can be counted.
    #[error("it is too large")]
    TooLarge,
}

/// Units of time, the largest first, in nanoseconds.
const TIMES: [(&str, u128); 8] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Units of size, the largest first, in bytes.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads `"200ms"`, `"1s"`, `"5m"`, `"24h"`, `"30d"`, and sums of them like `"1h30m"`.
///
/// # Errors
/// The first thing that does not fit.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(UnitError::Empty);
    }
    let mut nanos: u128 = 0;
    let mut smaller_than = u128::MAX;
    while !rest.is_empty() {
        let (number, unit, behind) = split_number_and_unit(rest)?;
        let (_, size) = TIMES
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| UnitError::UnknownUnit(unit.to_owned()))?;
        if *size >= smaller_than {
            return Err(UnitError::Order(format!("{number}{unit}")));
        }
        smaller_than = *size;
        nanos = number
            .parse::<u128>()
            .ok()
            .and_then(|number| number.checked_mul(*size))
            .and_then(|part| nanos.checked_add(part))
            .ok_or(UnitError::TooLarge)?;
        rest = behind;
    }
    let secs = u64::try_from(nanos / 1_000_000_000).map_err(|_| UnitError::TooLarge)?;
    let below = u32::try_from(nanos % 1_000_000_000).map_err(|_| UnitError::TooLarge)?;
    Ok(Duration::new(secs, below))
}

/// Prints a duration as a sum of units, the largest first: `1d`, `1h30m`, `200ms`.
pub fn show_duration(duration: Duration) -> String {
    if duration.is_zero() {
        return "0s".to_owned();
    }
    let mut rest = duration.as_nanos();
    let mut text = String::new();
    for (unit, size) in TIMES.iter().filter(|(unit, _)| *unit != "w") {
        let number = rest / size;
        rest %= size;
        if number > 0 {
            write!(text, "{number}{unit}").expect("a String takes everything");
        }
    }
    text
}

/// So many days.
pub(super) const fn days(number: u64) -> Duration {
    Duration::from_secs(number * 86_400)
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// So many KiB.
    pub const fn kib(number: u64) -> Self {
        Self(number << 10)
    }

    /// So many MiB.
    pub const fn mib(number: u64) -> Self {
        Self(number << 20)
    }

    /// So many GiB.
    pub const fn gib(number: u64) -> Self {
        Self(number << 30)
    }

    /// The bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The bytes as a length in memory, at most what this machine can address.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UnitError::Empty);
        }
        let (number, unit, behind) = split_number_and_unit(text)?;
        if !behind.is_empty() {
            return Err(UnitError::UnknownUnit(format!("{unit}{behind}")));
        }
        let (_, size) = SIZES
            .iter()
            .find(|(name, _)| *name == unit || (*name == "KB" && unit == "kB"))
            .ok_or_else(|| UnitError::UnknownUnit(unit.to_owned()))?;
        let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*size));
        bytes.map(Self).ok_or(UnitError::TooLarge)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SIZES.iter().filter(|(_, size)| self.0.is_multiple_of(*size));
        let shortest = exact.map(|(unit, size)| (self.0 / size, *unit)).min_by_key(|(n, _)| *n);
        match shortest {
            Some((number, unit)) if self.0 > 0 => write!(f, "{number}{unit}"),
            _ => f.write_str("0B"),
        }
    }
}

/// `"1h30m"` → `("1", "h", "30m")`.
fn split_number_and_unit(text: &str) -> Result<(&str, &str, &str), UnitError> {
    let (number, rest) = split_while(text, |c| c.is_ascii_digit());
    if number.is_empty() {
        return Err(UnitError::NoNumber(text.to_owned()));
    }
    let (unit, rest) = split_while(rest.trim_start(), |c| !c.is_ascii_digit() && c != ' ');
    if unit.is_empty() {
        return Err(UnitError::NoUnit(number.to_owned()));
    }
    Ok((number, unit, rest.trim_start()))
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let read = |text| parse_duration(text).unwrap();
        assert_eq!(read("200ms"), Duration::from_millis(200));
        assert_eq!(read("1s"), Duration::from_secs(1));
        assert_eq!(read("5m"), Duration::from_secs(300));
        assert_eq!(read("24h"), Duration::from_secs(86_400));
        assert_eq!(read("30d"), Duration::from_secs(30 * 86_400));
        assert_eq!(read("1h30m"), Duration::from_secs(5400));
        assert_eq!(read("1h 30 m"), Duration::from_secs(5400));
        assert_eq!(read("0s"), Duration::ZERO);
    }

    #[test]
    fn durations_that_are_none_say_why() {
        let why = |text| parse_duration(text).unwrap_err().to_string();
        assert_eq!(why(""), "it is empty");
        assert_eq!(why("10"), "10 needs a unit");
        assert_eq!(why("fast"), "a whole number is missing before `fast`");
        assert_eq!(why("-1s"), "a whole number is missing before `-1s`");
        assert_eq!(why("1.5s"), "`.` is not a unit");
        assert_eq!(why("1 parsec"), "`parsec` is not a unit");
        assert_eq!(why("30m1h"), "`1h` is out of order, larger units come first and each once");
        assert_eq!(why("99999999999999999999999999d"), "it is too large");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<ByteSize>().unwrap().bytes();
        assert_eq!(read("1MiB"), 1 << 20);
        assert_eq!(read("10MB"), 10_000_000);
        assert_eq!(read("250 kB"), 250_000);
        assert_eq!(read("7B"), 7);
    }

    #[test]
    fn sizes_that_are_none_say_why() {
        let why = |text: &str| text.parse::<ByteSize>().unwrap_err().to_string();
        assert_eq!(why("10"), "10 needs a unit");
        assert_eq!(why("1mib"), "`mib` is not a unit");
        assert_eq!(why("1MiB1B"), "`MiB1B` is not a unit");
        assert_eq!(why("99999999TiB"), "it is too large");
    }

    proptest! {
        #[test]
        fn durations_read_back_what_they_print(secs: u64, nanos in 0..1_000_000_000_u32) {
            let duration = Duration::new(secs, nanos);
            prop_assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }

        #[test]
        fn sizes_read_back_what_they_print(bytes: u64, shift in 0..64_u32) {
            let size = ByteSize(bytes >> shift);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }
    }
}
