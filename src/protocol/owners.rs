//! Ends of exchanges find whoever owns their host now: what a site asked for must not go with the
//! actor that had asked it (I3).

use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorRef, MessagingErr};
use tracing::warn;

use super::shard::EndedReport;
use super::{Permit, RoutesWatch, ShardMsg};
use crate::types::{Completion, Outcome, Reason, Response};
use crate::world::Clock;

/// A shard that is being opened again is looked for after this.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// So often: longer than any lease lives, after which nobody waits for its end.
const LOOKS: u32 = 5 * 60 * 30;

/// The owners of all hosts.
#[derive(Clone, Debug)]
pub struct Owners {
    /// Where the shards are.
    pub routes: RoutesWatch,
    /// For the wait until one is back.
    pub clock: Arc<dyn Clock>,
}

impl Owners {
    /// Tells the shard that granted a lease how it ended; where that one is gone, the one that is
    /// opened in its place. It has the lease in its store, and waits for its end.
    pub fn tell_end(&self, shard: &ActorRef<ShardMsg>, report: EndedReport) {
        let host = report.completion.url.host_key();
        let told = shard.send_message(ShardMsg::Ended(Box::new(report)));
        let Err(MessagingErr::SendErr(mut message)) = told else { return };
        let Self { routes, clock } = self.clone();
        // Without a runtime the process is ending, and with it everything that could be told.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            for _ in 0..LOOKS {
                clock.sleep(LOOK_AGAIN).await;
                let owner = routes.borrow().route(&host).map(|route| route.shard.clone());
                let Some(owner) = owner else { continue };
                match owner.send_message(message) {
                    Err(MessagingErr::SendErr(back)) => message = back,
                    Ok(()) | Err(_) => return,
                }
            }
            warn!(%host, "nobody is left to hear how an exchange ended");
        });
    }
}

/// An end that its shard has not heard yet. Where it is dropped like that, with an actor that died
/// for example, the shard hears that the exchange is lost, and what the site had asked for.
#[derive(Debug, Default)]
pub struct Unheard(Option<Box<(Completion, ActorRef<ShardMsg>, Owners)>>);

impl Unheard {
    /// Of a response that is on its way into the archive.
    pub fn of(
        response: &Response,
        asked: Option<Duration>,
        shard: &ActorRef<ShardMsg>,
        owners: &Owners,
    ) -> Self {
        let (lease, ended_at) = (&response.lease, response.ended_at);
        let mut lost = Completion::failed(lease, ended_at, Outcome::Cancelled, Reason::WorkerDied);
        lost.sent_at = Some(response.sent_at);
        lost.retry_after = asked;
        Self(Some(Box::new((lost, shard.clone(), owners.clone()))))
    }

    /// The shard hears of it now.
    pub fn heard(mut self) {
        self.0 = None;
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if let Some(unheard) = self.0.take() {
            let (completion, shard, owners) = *unheard;
            let report = EndedReport { completion, response: None, permit: Permit::free() };
            owners.tell_end(&shard, report);
        }
    }
}

#[cfg(test)]
mod tests;
