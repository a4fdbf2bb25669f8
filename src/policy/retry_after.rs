//! F7: how long Retry-After asks to stay away. What a site asks for is never capped (F4); sums of
//! times saturate.

use std::time::{Duration, UNIX_EPOCH};

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

use super::asked;
use crate::types::Timestamp;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The wait from `now` that the value of a Retry-After header asks for: seconds, or a date. A date
/// that has passed asks for none; `None` is no wish at all.
///
/// Beside the forms of RFC 9110 those are read that can mean one thing only: seconds with a
/// fraction or a unit, and dates as others write them.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if is_negative_number(value) {
        return Some(Duration::ZERO);
    }
    asked::wait(value).or_else(|| Some(date(value)?.since(now)))
}

/// A date in HTTP's three forms, in RFC 3339, or with what others write otherwise: a weekday that
/// is another or none, UTC or a numeric zone in place of GMT, dashes, one digit, more spaces.
/// `None` where a word of it is not understood.
fn date(text: &str) -> Option<Timestamp> {
    if let Ok(at) = httpdate::parse_http_date(text) {
        let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        return Some(Timestamp::EPOCH + since);
    }
    if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        return timestamp(at);
    }
    let mut read = Words::default();
    for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
        match numeric_zone(word) {
            Some(zone) => read.zone = Some(zone),
            None => word.split('-').try_for_each(|word| read.take(word))?,
        }
    }
    read.timestamp()
}

/// What the words of a date say.
#[derive(Default)]
struct Words {
    /// Day and year, in this order in every form.
    numbers: Vec<u16>,
    month: Option<Month>,
    time: Option<Time>,
    zone: Option<UtcOffset>,
}

impl Words {
    /// Takes one word; `None` where it is none of a date.
    fn take(&mut self, word: &str) -> Option<()> {
        let name = word.get(..3).unwrap_or(word).to_ascii_lowercase();
        let is_name = word.bytes().all(|byte| byte.is_ascii_alphabetic());
        if word.contains(':') {
            self.time = Some(time_of(word)?);
        } else if let Ok(number) = word.parse() {
            self.numbers.push(number);
        } else if ["gmt", "utc", "ut", "z"].contains(&word.to_ascii_lowercase().as_str()) {
            self.zone = Some(UtcOffset::UTC);
        } else if let Some(month) = MONTHS.iter().position(|known| is_name && *known == name) {
            self.month = Some(Month::try_from(u8::try_from(month + 1).ok()?).ok()?);
        } else if !is_name || !WEEKDAYS.contains(&name.as_str()) {
            return None;
        }
        Some(())
    }

    fn timestamp(self) -> Option<Timestamp> {
        let [day, year] = self.numbers.as_slice() else { return None };
        let year = match *year {
            0..70 => 2000 + year,
            70..100 => 1900 + year,
            _ => *year,
        };
        let day = u8::try_from(*day).ok()?;
        let date = Date::from_calendar_date(i32::from(year), self.month?, day).ok()?;
        let zone = self.zone.unwrap_or(UtcOffset::UTC);
        timestamp(date.with_time(self.time?).assume_offset(zone))
    }
}

/// `hh:mm[:ss]`, with one digit or two.
fn time_of(word: &str) -> Option<Time> {
    let mut parts = word.split(':').map(|part| part.parse::<u8>().ok());
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let seconds = parts.next().unwrap_or(Some(0))?;
    let whole = parts.next().is_none();
    Time::from_hms(hours, minutes, seconds).ok().filter(|_| whole)
}

/// `+0200`, `-05:00`.
fn numeric_zone(word: &str) -> Option<UtcOffset> {
    let (sign, digits) = match word.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2).filter(|_| digits.len() == 4)?;
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

fn timestamp(at: OffsetDateTime) -> Option<Timestamp> {
    // A part of a millisecond is rounded up: a wait is never read as less (I3).
    let millis = (at.unix_timestamp_nanos() + 999_999).div_euclid(1_000_000);
    Some(Timestamp::from_millis(i64::try_from(millis).ok()?))
}

/// What time it was for the site when it answered: as its Date header says, else ours. A date in
/// its Retry-After is meant by its own clock, and ours may have been set wrong (A4).
pub fn time_of_site(date: Option<&str>, now: Timestamp) -> Timestamp {
    let date = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok());
    let since_epoch = date.and_then(|date| date.duration_since(UNIX_EPOCH).ok());
    since_epoch.map_or(now, |since| Timestamp::EPOCH + since)
}

fn is_negative_number(value: &str) -> bool {
    value.strip_prefix('-').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::parse_rfc3339("2026-06-15T12:00:00Z").unwrap()
    }

    fn seconds(value: &str) -> Option<u64> {
        retry_after(value, now()).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_are_taken_as_they_are() {
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("31536000"), Some(31_536_000));
        assert_eq!(seconds("31536000000"), Some(31_536_000_000));
        assert_eq!(seconds("99999999999999999999999"), Some(u64::MAX));
        assert_eq!(seconds("-5"), Some(0));
    }

    #[test]
    fn all_three_forms_of_a_date_are_read() {
        for value in [
            "Mon, 15 Jun 2026 12:01:40 GMT",
            "Monday, 15-Jun-26 12:01:40 GMT",
            "Mon Jun 15 12:01:40 2026",
        ] {
            assert_eq!(seconds(value), Some(100), "{value}");
        }
        assert_eq!(seconds("Sun, 14 Jun 2026 12:00:00 GMT"), Some(0));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn a_wait_counts_from_the_millisecond() {
        let now = now() + Duration::from_millis(250);
        let wait = retry_after("Mon, 15 Jun 2026 12:00:01 GMT", now);
        assert_eq!(wait, Some(Duration::from_millis(750)));
    }

    #[test]
    fn a_date_is_counted_by_the_clock_of_the_site() {
        let asked = |date| {
            let wait = retry_after("Mon, 15 Jun 2026 12:00:40 GMT", time_of_site(date, now()));
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(asked(None), Some(40));
        assert_eq!(asked(Some("Mon, 15 Jun 2026 11:00:40 GMT")), Some(3600));
        assert_eq!(asked(Some("Mon, 15 Jun 2026 12:00:30 GMT")), Some(10));
        assert_eq!(asked(Some("120")), Some(40));
    }

    /// Each means 100 seconds from now, or so many.
    #[test]
    fn odd_forms_that_mean_one_thing_are_read() {
        for value in [
            // Another weekday, and none.
            "Sun, 15 Jun 2026 12:01:40 GMT",
            "15 Jun 2026 12:01:40 GMT",
            "Tuesday, 15-Jun-26 12:01:40 GMT",
            "Fri Jun 15 12:01:40 2026",
            // As in cache-tests, for Expires.
            "MON, 15 Jun 2026 12:01:40 GMT",
            "Mon, 15 JUN 2026 12:01:40 GMT",
            "Mon, 15 Jun 2026 12:01:40 gMT",
            "Mon, 15 Jun 2026 12:01:40 UTC",
            "Mon, 15 Jun 26 12:01:40 GMT",
            "Mon 15 Jun 2026 12:01:40 GMT",
            "Mon, 15  Jun  2026 12:01:40 GMT",
            "Mon, 15-Jun-2026 12:01:40 GMT",
            "Mon, 15 Jun 2026 14:01:40 +0200",
            "Mon, 15 June 2026 07:01:40 -05:00",
            "Mon, 15 Jun 2026 12:01:40",
            "2026-06-15T12:01:40Z",
            "2026-06-15T14:01:40+02:00",
            "100.0",
            "+100",
            "100s",
            "100 seconds",
        ] {
            assert_eq!(seconds(value), Some(100), "{value}");
        }
        let wait = |value| retry_after(value, now()).map(|wait| wait.as_millis());
        for (value, millis) in [
            ("3600.5", 3_600_500),
            ("0.0001", 1),
            ("5 minutes", 300_000),
            ("1e3", 1_000_000),
            ("2026-06-15T12:00:00.0001Z", 1),
            ("Mon, 15 Jun 2026 9:00:00 GMT", 0),
            ("Mon, 15 Jun 2026 13:5:00 GMT", 3_900_000),
        ] {
            assert_eq!(wait(value), Some(millis), "{value}");
        }
        assert_eq!(seconds("1e308"), Some(u64::MAX));
    }

    #[test]
    fn junk_is_no_wish() {
        for value in [
            "",
            "soon",
            "12 x",
            "0x10",
            "1,5",
            "120, 60",
            "Mon, 32 Jun 2026 12:00:00 GMT",
            "Mon, 15 Jun 2026 12:01:40 AEST",
            "Mon, 15 Jun 2026 12.01.40 GMT",
            "Mon, 15 Jun 2026 25:01:40 GMT",
            "Mon, 15 Jun 2026 12:01:40:00 GMT",
            "Mon, 15 Jun 2026 GMT",
            "Mon, Jun 2026 12:01:40 GMT",
            "15 16 Jun 2026 12:01:40",
            "Monsoon 15 Jun 2026 12:01:40 or so",
        ] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_value_makes_it_panic(
            value: String,
            digits in "[0-9]{1,40}",
            date in "(Mon|Mo|,|[0-9]{0,5}|Jun|[0-9:]{0,9}|GMT|[+-][0-9:é]{0,5}| |-){0,12}",
        ) {
            let later = Timestamp::NEVER;
            for value in [value, digits, date] {
                if let Some(wait) = retry_after(&value, now()) {
                    proptest::prop_assert!(now() + wait <= later);
                }
            }
        }
    }
}
