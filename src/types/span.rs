//! How a length of time reads, in sentences and tables.

use std::time::Duration;

/// `320 ms`, `1 s`, `4.5 s`, `3 min 12 s`, `2 h 3 min`, `5 d 2 h`: two units at most, and what is
/// smaller is left out.
pub fn span(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let two = |large, unit, small, below| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {below}"),
    };
    match seconds {
        0 if duration.is_zero() => "0 s".to_owned(),
        0 => format!("{} ms", millis.max(1)),
        1..60 if millis < 100 => format!("{seconds} s"),
        1..60 => format!("{seconds}.{} s", millis / 100),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_two_units_at_most() {
        for (nanos, shown) in [
            (0, "0 s"),
            (1, "1 ms"),
            (320_000_000, "320 ms"),
            (999_999_999, "999 ms"),
            (1_023_357_846, "1 s"),
            (4_560_000_000, "4.5 s"),
            (42_000_000_000, "42 s"),
            (59_999_999_999, "59.9 s"),
            (60_000_000_000, "1 min"),
            (192_000_000_000, "3 min 12 s"),
            (7_380_000_000_000, "2 h 3 min"),
            (439_200_000_000_000, "5 d 2 h"),
        ] {
            assert_eq!(span(Duration::from_nanos(nanos)), shown);
        }
    }
}
