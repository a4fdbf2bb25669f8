//! The power of the machine that one life of the node runs on, and the step at which it fails.
//!
//! Everything that can be seen of a node is a step: a request, an object, a file, a snapshot, a
//! name, a message that an actor takes. The power may be set to fail at the n-th step of a kind.
//! From that step on nothing that the node does has an effect, though its tasks may run on for a
//! moment: what is under way hangs, until the life is taken away.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An actor takes a message.
    Message,
    /// A request is at the site, no answer yet.
    RequestBegun,
    /// The answer has gone out, and nobody has read it.
    RequestEnded,
    /// An object is on its way to the store.
    ObjectBegun,
    /// The object is there, and nobody was told.
    ObjectThere,
    /// Its writer is about to be told.
    ObjectEnded,
    /// Bytes are on their way to a file.
    FileBegun,
    /// They are there, and their writer is about to be told.
    FileEnded,
    /// A sleeping host has its snapshot.
    Snapshot,
    /// A name is resolved.
    Resolved,
}

impl Step {
    /// Every kind, with how many of them come at most before the power fails.
    pub(super) const ALL: [(Self, u64); 10] = [
        (Self::Message, 6000),
        (Self::RequestBegun, 60),
        (Self::RequestEnded, 60),
        (Self::ObjectBegun, 300),
        (Self::ObjectThere, 300),
        (Self::ObjectEnded, 300),
        (Self::FileBegun, 100),
        (Self::FileEnded, 100),
        (Self::Snapshot, 40),
        (Self::Resolved, 80),
    ];
}

/// The power of one life.
#[derive(Debug)]
pub(super) struct Power {
    fails: Mutex<Option<(Step, u64)>>,
    is_cut: watch::Sender<bool>,
}

impl Power {
    /// Power that fails at the n-th step of a kind; without one it stays.
    pub(super) fn new(fails: Option<(Step, u64)>) -> Self {
        Self { fails: Mutex::new(fails), is_cut: watch::Sender::new(false) }
    }

    /// From now on nothing that is under way comes to its end.
    pub(super) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(super) fn is_cut(&self) -> bool {
        *self.is_cut.borrow()
    }

    /// A step is taken; it may be the last.
    pub(super) fn step(&self, step: Step) {
        let mut fails = self.fails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kind, left)) = fails.as_mut().filter(|(kind, _)| *kind == step) else { return };
        debug_assert_eq!(*kind, step);
        *left = left.saturating_sub(1);
        if *left == 0 {
            *fails = None;
            self.cut();
        }
    }

    /// Returns at once while there is power, and never when there is none.
    pub(super) async fn needed(&self) {
        if self.is_cut() {
            std::future::pending().await
        }
    }

    /// Returns when the power is gone.
    pub(super) async fn gone(&self) {
        // It holds the other end itself, so it is never closed.
        self.is_cut.subscribe().wait_for(|cut| *cut).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn power_fails_at_the_step_it_was_set_to() {
        let power = Power::new(Some((Step::ObjectThere, 2)));
        power.step(Step::ObjectThere);
        power.step(Step::ObjectBegun);
        assert!(!power.is_cut() && power.needed().now_or_never().is_some());
        power.step(Step::ObjectThere);
        assert!(power.is_cut() && power.needed().now_or_never().is_none());
        assert!(power.gone().now_or_never().is_some());
    }
}
