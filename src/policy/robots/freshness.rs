//! R2: for how long a site says that its robots.txt stays as it is (RFC 9309 2.4, RFC 9111).
//!
//! We are a private cache, so `s-maxage` is not for us. What says nothing usable says "no longer":
//! the bounds on both sides are the state machine's.

use std::time::Duration;

use crate::policy::retry_after::{retry_after, time_of_site};
use crate::types::{Headers, Timestamp, header};

/// What is left of the life of an answer that came at `now`; `None` where the site says nothing.
/// `no-store`, `no-cache`, a broken `max-age` and a broken `Expires` leave none.
pub fn freshness(headers: &Headers, now: Timestamp) -> Option<Duration> {
    let directives = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("cache-control"))
        .filter_map(|(_, value)| std::str::from_utf8(value).ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    let mut max_age = None;
    for directive in directives {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(Duration::ZERO),
            "max-age" => max_age = max_age.or(Some(seconds(value).unwrap_or_default())),
            _ => {}
        }
    }
    let life = max_age.or_else(|| expires(headers, now))?;
    let age = header(headers, "age").and_then(seconds).unwrap_or_default();
    Some(life.saturating_sub(age))
}

/// Counted by the site's own clock, where it says what time it is.
fn expires(headers: &Headers, now: Timestamp) -> Option<Duration> {
    let value = header(headers, "expires")?.trim();
    if value.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Some(Duration::ZERO);
    }
    let date = time_of_site(header(headers, "date"), now);
    Some(retry_after(value, date).unwrap_or_default())
}

fn seconds(value: &str) -> Option<Duration> {
    let digits = value.trim().trim_matches('"');
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Only a number too large to hold fails here.
    is_number.then(|| Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn life(headers: &[(&str, &str)]) -> Option<u64> {
        let headers: Headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Bytes::from((*value).to_owned())))
            .collect();
        let now = Timestamp::parse_rfc3339("2026-06-15T12:00:00Z").unwrap();
        freshness(&headers, now).map(|life| life.as_secs())
    }

    #[test]
    fn cache_control_says_how_long_an_answer_lasts() {
        let cache = |value| life(&[("Cache-Control", value)]);
        for (value, expected) in [
            ("max-age=600", Some(600)),
            ("public, MAX-AGE=\"600\", must-revalidate", Some(600)),
            ("max-age=600, max-age=5", Some(600)),
            ("no-store", Some(0)),
            ("max-age=600, no-cache", Some(0)),
            ("no-cache=\"set-cookie\"", Some(0)),
            ("max-age=soon", Some(0)),
            ("max-age=-1", Some(0)),
            ("max-age=99999999999999999999999", Some(u64::MAX)),
            ("s-maxage=10", None),
            ("s-maxage=10, max-age=600", Some(600)),
            ("public", None),
            ("", None),
        ] {
            assert_eq!(cache(value), expected, "{value}");
        }
        assert_eq!(life(&[("cache-control", "public"), ("Cache-Control", "max-age=7")]), Some(7));
        assert_eq!(life(&[("cache-control", "max-age=600"), ("Age", "100")]), Some(500));
        assert_eq!(life(&[("cache-control", "max-age=60"), ("Age", "100")]), Some(0));
    }

    #[test]
    fn expires_counts_where_no_max_age_does() {
        let noon = "Mon, 15 Jun 2026 12:00:00 GMT";
        let later = "Mon, 15 Jun 2026 12:10:00 GMT";
        assert_eq!(life(&[("Expires", later)]), Some(600));
        assert_eq!(
            life(&[("Expires", later), ("Date", "Mon, 15 Jun 2026 12:09:00 GMT")]),
            Some(60)
        );
        assert_eq!(life(&[("Expires", noon), ("Date", later)]), Some(0));
        assert_eq!(life(&[("Expires", later), ("Cache-Control", "max-age=5")]), Some(5));
        for broken in ["0", "-1", "soon", "", "600"] {
            assert_eq!(life(&[("Expires", broken)]), Some(0), "{broken}");
        }
        assert_eq!(life(&[]), None);
    }
}
