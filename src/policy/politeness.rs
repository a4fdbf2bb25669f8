//! How long a host is left alone after an exchange (F4).
//!
//! The longest of what the operator asks, what the site asks and what the last exchange cost the
//! site. Of these only our own part, the cost, has a cap of ours. A Crawl-delay is obeyed as it
//! stands, however long: sums saturate. Jitter only adds.

use std::time::Duration;

use crate::types::{DelaySource, Moment};

/// The politeness in force for one host: the configuration with its allowance applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Politeness {
    /// `politeness.min_delay`.
    pub min_delay: Duration,
    /// `politeness.max_delay`: caps `delay_factor` times the duration only.
    pub max_delay: Duration,
    /// `politeness.delay_factor`.
    pub delay_factor: f64,
    /// `politeness.jitter`: the largest part of the delay that is added at random.
    pub jitter: f64,
    /// `politeness.max_in_flight`.
    pub max_in_flight: u16,
    /// `politeness.host_daily_pages`.
    pub daily_pages: u64,
}

/// The most that a factor of ours may make of a duration: a year.
const SCALED_MAX: Duration = Duration::from_secs(365 * 86_400);

/// A wait and what decided its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// From the end of the exchange to the next request.
    pub wait: Duration,
    /// What set it.
    pub set_by: DelaySource,
}

/// F4: the delay after an exchange that took `took`, on a host that asks for `crawl_delay`.
///
/// `slowdown` (at least 1) stretches the configured minimum while a host recovers from refusals.
pub fn delay_after(
    politeness: &Politeness,
    crawl_delay: Option<Duration>,
    took: Duration,
    slowdown: f32,
    now: Moment,
) -> Delay {
    let minimum = politeness.min_delay.mul_f64(f64::from(slowdown.clamp(1.0, 1000.0)));
    let ours = scale(took, politeness.delay_factor).min(politeness.max_delay);
    let asked = crawl_delay.unwrap_or(Duration::ZERO);
    let longest = minimum.max(ours).max(asked);
    let set_by = if asked == longest && !asked.is_zero() {
        DelaySource::CrawlDelay
    } else if ours == longest && ours > minimum {
        DelaySource::LastFetch
    } else {
        DelaySource::MinDelay
    };
    let jitter = scale(longest, politeness.jitter * now.fraction());
    Delay { wait: longest.saturating_add(jitter), set_by }
}

fn scale(span: Duration, factor: f64) -> Duration {
    let secs = span.as_secs_f64() * factor.max(0.0);
    Duration::try_from_secs_f64(secs).unwrap_or(SCALED_MAX).min(SCALED_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Timestamp;

    fn politeness() -> Politeness {
        Politeness {
            min_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            delay_factor: 10.0,
            jitter: 0.0,
            max_in_flight: 1,
            daily_pages: 100,
        }
    }

    fn after(crawl_delay: Option<u64>, took_ms: u64) -> Delay {
        let crawl_delay = crawl_delay.map(Duration::from_secs);
        let now = Moment::new(Timestamp::EPOCH, 0);
        delay_after(&politeness(), crawl_delay, Duration::from_millis(took_ms), 1.0, now)
    }

    #[test]
    fn the_longest_wish_decides() {
        let secs = |wait, set_by| Delay { wait: Duration::from_secs(wait), set_by };
        assert_eq!(after(None, 20), secs(1, DelaySource::MinDelay));
        assert_eq!(after(None, 500), secs(5, DelaySource::LastFetch));
        assert_eq!(after(Some(7), 500), secs(7, DelaySource::CrawlDelay));
    }

    #[test]
    fn only_our_own_part_is_capped() {
        assert_eq!(after(None, 3_600_000).wait, Duration::from_secs(60));
        let year = 365 * 86_400;
        for asked in [3600, 3 * year, 200 * year, u64::MAX] {
            assert_eq!(after(Some(asked), 1).wait, Duration::from_secs(asked));
        }
    }

    proptest! {
        #[test]
        fn jitter_only_adds(dice: u64, took in 0u64..100_000, asked in 0u64..10_000) {
            let mut shaken = politeness();
            shaken.jitter = 0.1;
            let now = Moment::new(Timestamp::EPOCH, dice);
            let asked = Some(Duration::from_secs(asked));
            let took = Duration::from_millis(took);
            let still = delay_after(&politeness(), asked, took, 1.0, now);
            let moved = delay_after(&shaken, asked, took, 1.0, now);
            prop_assert!(moved.wait >= still.wait);
            prop_assert!(moved.wait <= still.wait.mul_f64(1.11));
        }
    }
}
