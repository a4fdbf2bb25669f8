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
pub struct Permit(Option<OwnedSemaphorePermit>);

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

    /// Its units.
    pub fn units(&self) -> u32 {
        self.0.as_ref().map_or(0, |held| tally(held.num_permits()))
    }

    /// Units of the same credit are held with these.
    pub fn add(&mut self, more: Self) {
        match (&mut self.0, more.0) {
            (Some(held), Some(more)) => held.merge(more),
            (held @ None, more) => *held = more,
            (Some(_), None) => {}
        }
    }

    /// Gives back all but so many.
    pub fn keep(&mut self, units: u32) {
        let surplus = self.units().saturating_sub(units);
        if let Some(held) = &mut self.0 {
            drop(held.split(usize::try_from(surplus).unwrap_or(0)));
        }
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

    #[tokio::test]
    async fn a_permit_grows_and_shrinks() {
        let credit = Credit::new(9);
        let mut held = Permit::free();
        held.add(credit.take(2).await);
        held.add(credit.take(5).await);
        held.add(Permit::free());
        assert_eq!((held.units(), credit.used()), (7, 7));
        held.keep(8);
        assert_eq!((held.units(), credit.used()), (7, 7));
        held.keep(3);
        assert_eq!((held.units(), credit.used()), (3, 3));
        held.keep(0);
        drop(held);
        assert_eq!(credit.used(), 0);
    }
}
