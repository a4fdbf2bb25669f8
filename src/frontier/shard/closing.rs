//! The clean end of a shard: hosts at rest, all durable, filter and store closed.

use std::time::Duration;

use super::state::{Closing, Shard};
use crate::protocol::Answer;
use crate::storage::Filter;
use crate::types::in_full;

/// The deadline of closing the store.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);
/// How long hosts and writes may take before it.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

impl Shard {
    /// All that is under way becomes durable, then the store is closed.
    pub(super) fn close(&mut self, answer: Answer<Result<(), String>>) {
        self.draining = true;
        self.closing = Closing::Settling(answer, self.now() + SETTLE_WITHIN);
        self.flush_now();
        self.rest_all();
    }

    /// Closes the store once hosts are at rest and all is written.
    pub(super) fn go_on_closing(&mut self) {
        let Closing::Settling(_, deadline) = &self.closing else { return };
        let late = *deadline <= self.now();
        let resting = self
            .residents
            .values()
            .all(|resident| resident.outstanding == 0 && resident.retiring.is_none());
        let settled = resting && self.waking.is_empty() && self.commit.is_settled();
        if !settled && !late {
            return;
        }
        let Closing::Settling(answer, _) = std::mem::replace(&mut self.closing, Closing::Closed)
        else {
            return;
        };
        let (store, me) = (self.store.clone(), self.me.clone());
        let filter = std::mem::replace(&mut self.filter, Filter::unknown(1, 0));
        tokio::spawn(async move {
            let flushed = store.flush(CLOSE_WITHIN).await;
            let batch = store.last_batch().await;
            store.save_filter(&filter, batch).await;
            let closed = match flushed {
                Ok(()) => store.close(CLOSE_WITHIN).await,
                Err(error) => Err(error),
            };
            answer.send(closed.map_err(|error| in_full(&error)));
            me.stop(None);
        });
    }
}
