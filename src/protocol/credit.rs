//! How a stage pushes back on the one before: a message that costs something carries its permit.
//!
//! ractor's mailboxes have no bound, so the bound is here: who sends takes credit first and waits
//! where there is none; who has done the work drops the permit (P4, I8).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::types::tally;

/// A bounded amount of something: pages under way, kilobytes of bodies in memory.
#[derive(Clone, Debug)]
pub struct Credit {
    free: Arc<Semaphore>,
    total: u32,
}

/// A part of a [`Credit`], given back when dropped.
#[derive(Debug, Default)]
pub struct Permit(
    #[expect(dead_code, reason = "held for its drop, which gives the units back")]
    Option<OwnedSemaphorePermit>,
);

impl Credit {
    /// A credit of `total` units.
    pub fn new(total: u32) -> Self {
        let total = total.max(1);
        Self { free: Arc::new(Semaphore::new(usize::try_from(total).unwrap_or(1))), total }
    }

    /// Waits until `units` are free. More than the whole credit counts as the whole.
    pub async fn take(&self, units: u32) -> Permit {
        let free = Arc::clone(&self.free);
        Permit(free.acquire_many_owned(units.min(self.total)).await.ok())
    }

    /// The units, if they are free now.
    pub fn try_take(&self, units: u32) -> Option<Permit> {
        let free = Arc::clone(&self.free);
        free.try_acquire_many_owned(units.min(self.total)).ok().map(|permit| Permit(Some(permit)))
    }

    /// Units in use.
    pub fn used(&self) -> u32 {
        self.total.saturating_sub(tally(self.free.available_permits()))
    }

    /// All units, free or not.
    pub fn total(&self) -> u32 {
        self.total
    }
}

impl Permit {
    /// A permit for what costs nothing.
    pub fn free() -> Self {
        Self(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn credit_is_bounded_and_comes_back() {
        let credit = Credit::new(3);
        let two = credit.take(2).await;
        assert!(credit.try_take(2).is_none());
        assert_eq!(credit.used(), 2);
        drop(two);
        assert!(credit.try_take(9).is_some());
    }
}
