//! When something that failed is tried again: later each time, and for ever (I8).

use std::time::Duration;

use crate::types::Timestamp;

/// The failures in a row of one thing; `default` when it last went well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    failure: Option<String>,
    wait: Duration,
    at: Option<Timestamp>,
}

impl Retry {
    /// The wait after the first failure.
    pub const WAIT_FIRST: Duration = Duration::from_secs(1);
    /// The longest wait.
    pub const WAIT_MAX: Duration = Duration::from_secs(30);

    /// It failed, and is tried again after twice the wait of last time.
    pub fn failed(&mut self, now: Timestamp, why: String) {
        self.wait = (self.wait * 2).clamp(Self::WAIT_FIRST, Self::WAIT_MAX);
        self.at = Some(now + self.wait);
        self.failure = Some(why);
    }

    /// When it is tried again; `None` when there is nothing to wait for.
    pub fn at(&self) -> Option<Timestamp> {
        self.at
    }

    /// May it be tried now?
    pub fn allows(&self, now: Timestamp) -> bool {
        self.at.is_none_or(|at| at <= now)
    }

    /// What it said last, while it has not gone well since.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut retry = Retry::default();
        let mut waits = Vec::new();
        for _ in 0..7 {
            assert!(retry.allows(Timestamp::EPOCH) == waits.is_empty());
            retry.failed(Timestamp::EPOCH, "disk full".into());
            waits.push(retry.at().unwrap().since(Timestamp::EPOCH).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retry.failure(), Some("disk full"));
        assert!(retry.allows(Timestamp::from_secs(30)));
    }
}
