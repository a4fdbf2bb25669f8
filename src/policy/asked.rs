//! R3, F7: how long a site asks to be left alone, where it says so in seconds or with a unit.
//!
//! What is clearly said is never read as less (I3): fractions of a millisecond are rounded up, and
//! a number beyond all that can be counted is the longest wait there is.

use std::time::Duration;

/// Units as sites write them, in lower case, and their length in milliseconds.
const UNITS: [(&[&str], u32); 5] = [
    (&["ms", "millisecond", "milliseconds"], 1),
    (&["", "s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

/// Reads `10`, `+10`, `0.5`, `1e3`, `10s`, `5 minutes`; `None` for anything else, and for what is
/// negative.
pub fn wait(text: &str) -> Option<Duration> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = end_of_number(text);
    let (number, unit) = text.split_at_checked(end)?;
    let unit = unit.trim().to_ascii_lowercase();
    let (_, millis) = UNITS.iter().find(|(names, _)| names.contains(&unit.as_str()))?;
    if let Ok(whole) = number.parse::<u64>() {
        return Some(match u64::from(millis / 1_000) {
            0 => Duration::from_millis(whole),
            seconds => Duration::from_secs(whole.saturating_mul(seconds)),
        });
    }
    // "." alone, and two points, are no numbers.
    let seconds = number.parse::<f64>().ok()? * f64::from(*millis) / 1_000.0;
    Some(whole_millis(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

/// Digits and points, and an exponent where digits follow its letter.
fn end_of_number(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let plain = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let rest = text.get(plain..).unwrap_or_default();
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return plain };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match digits(unsigned) {
        0 => plain,
        some => plain + 1 + (exponent.len() - unsigned.len()) + some,
    }
}

/// Clocks count milliseconds, and what is left of one would be cut off.
fn whole_millis(wait: Duration) -> Duration {
    match wait.subsec_nanos() % 1_000_000 {
        0 => wait,
        some => wait.saturating_add(Duration::from_nanos(u64::from(1_000_000 - some))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_a_unit_are_read_and_rounded_up() {
        for (text, millis) in [
            ("10", 10_000),
            (" 10 ", 10_000),
            ("+10", 10_000),
            ("010", 10_000),
            (".5", 500),
            ("5.", 5_000),
            ("3600.5", 3_600_500),
            ("0.7", 700),
            ("0.0001", 1),
            ("1.0004", 1_001),
            ("0", 0),
            ("0.0", 0),
            ("1e3", 1_000_000),
            ("1E+2", 100_000),
            ("1e-3", 1),
            ("10s", 10_000),
            ("10 S", 10_000),
            ("10 seconds", 10_000),
            ("1 second", 1_000),
            ("1.5 min", 90_000),
            ("5m", 300_000),
            ("2 hours", 7_200_000),
            ("1d", 86_400_000),
            ("500ms", 500),
            ("500 ms", 500),
        ] {
            assert_eq!(wait(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_all_are_the_longest_wait() {
        for text in ["1e308", "1e999", "1e30 days", "99999999999999999999999"] {
            assert_eq!(wait(text), Some(Duration::MAX), "{text}");
        }
        assert_eq!(wait(&"9".repeat(400)), Some(Duration::MAX));
    }

    #[test]
    fn anything_else_is_no_wait() {
        for text in [
            "", " ", ".", "s", "e3", "-1", "-inf", "inf", "nan", "1.2.1", "1.a0", "10a", "1e",
            "1,5", "0x10", "1 year", "10 s s", "1h30m", "soon", "[5]", "++5",
        ] {
            assert_eq!(wait(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_whole_number_is_never_read_as_less(seconds: u64) {
            let wanted = Some(Duration::from_secs(seconds));
            proptest::prop_assert_eq!(wait(&seconds.to_string()), wanted);
        }

        #[test]
        fn no_text_makes_it_panic(text: String, number in "[-+0-9.eE]{0,12}[a-z ]{0,8}") {
            wait(&text);
            wait(&number);
        }
    }
}
