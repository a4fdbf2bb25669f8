//! F7: how long Retry-After asks to stay away. What a site asks for is never capped (F4); sums of
//! times saturate.

use std::time::{Duration, UNIX_EPOCH};

use crate::types::Timestamp;

/// The wait from `now` that the value of a Retry-After header asks for: seconds, or a date in any
/// of HTTP's three forms. A date that has passed asks for none; `None` is no wish at all.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number too large to hold fails here.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    if is_negative_number(value) {
        return Some(Duration::ZERO);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
    Some(since_epoch.saturating_sub(now))
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

    #[test]
    fn junk_is_no_wish() {
        for value in ["", "soon", "1.5", "12s", "+5", "0x10", "Mon, 32 Jun 2026 12:00:00 GMT"] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_value_makes_it_panic(value: String, digits in "[0-9]{1,40}") {
            let later = Timestamp::NEVER;
            for value in [value, digits] {
                if let Some(wait) = retry_after(&value, now()) {
                    proptest::prop_assert!(now() + wait <= later);
                }
            }
        }
    }
}
