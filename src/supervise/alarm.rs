//! An actor's one timer: set for whatever comes first, it sends the actor a message (I8).

use std::sync::Arc;

use ractor::{ActorRef, Message};
use tokio::task::JoinHandle;

use crate::types::Timestamp;
use crate::world::Clock;

/// Wakes one actor. There is one wait under way at most; it ends with the actor's state.
pub struct Alarm<M> {
    clock: Arc<dyn Clock>,
    actor: ActorRef<M>,
    message: fn() -> M,
    waiting: Option<(Timestamp, JoinHandle<()>)>,
}

impl<M: Message> Alarm<M> {
    /// An alarm that is not set. The actor calls [`Alarm::rang`] when the message arrives.
    pub fn new(clock: Arc<dyn Clock>, actor: ActorRef<M>, message: fn() -> M) -> Self {
        Self { clock, actor, message, waiting: None }
    }

    /// Rings at `at` or before: what is set for an earlier time stays.
    pub fn set(&mut self, at: Timestamp) {
        if self.waiting.as_ref().is_some_and(|(set, _)| *set <= at) {
            return;
        }
        self.silence();
        let (clock, actor, message) = (Arc::clone(&self.clock), self.actor.clone(), self.message);
        let wait = tokio::spawn(async move {
            clock.sleep_until(at).await;
            // An actor that is gone needs no waking.
            actor.send_message(message()).ok();
        });
        self.waiting = Some((at, wait));
    }
}

impl<M> Alarm<M> {
    /// It rang, so it is no longer set. One that was replaced may have rung all the same: then the
    /// one that counts runs on.
    pub fn rang(&mut self) {
        let now = self.clock.now();
        self.waiting.take_if(|(at, wait)| *at <= now || wait.is_finished());
    }

    fn silence(&mut self) {
        if let Some((_, wait)) = self.waiting.take() {
            wait.abort();
        }
    }
}

impl<M> Drop for Alarm<M> {
    fn drop(&mut self) {
        self.silence();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ractor::{Actor, ActorProcessingErr};
    use tokio::sync::mpsc;

    use super::*;
    use crate::world::TokioClock;

    /// Passes on that it was woken.
    struct Sleeper;

    impl Actor for Sleeper {
        type Msg = ();
        type State = mpsc::Sender<()>;
        type Arguments = mpsc::Sender<()>;

        async fn pre_start(
            &self,
            _: ActorRef<()>,
            woken: mpsc::Sender<()>,
        ) -> Result<mpsc::Sender<()>, ActorProcessingErr> {
            Ok(woken)
        }

        async fn handle(
            &self,
            _: ActorRef<()>,
            (): (),
            woken: &mut mpsc::Sender<()>,
        ) -> Result<(), ActorProcessingErr> {
            Ok(woken.send(()).await?)
        }
    }

    async fn alarm() -> (Alarm<()>, Arc<dyn Clock>, mpsc::Receiver<()>) {
        let (woken, heard) = mpsc::channel(8);
        let (actor, _) = Actor::spawn(None, Sleeper, woken).await.unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
        (Alarm::new(Arc::clone(&clock), actor, || ()), clock, heard)
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_once_and_for_whatever_comes_first() {
        let (mut alarm, clock, mut heard) = alarm().await;
        let at = |seconds| Timestamp::from_secs(seconds);
        alarm.set(at(20));
        alarm.set(at(10));
        alarm.set(at(30));
        heard.recv().await.unwrap();
        assert_eq!(clock.now(), at(10));
        clock.sleep(Duration::from_secs(60)).await;
        assert!(heard.try_recv().is_err());
        alarm.rang();
        alarm.set(at(80));
        heard.recv().await.unwrap();
        assert_eq!(clock.now(), at(80));
    }

    #[tokio::test(start_paused = true)]
    async fn a_ring_of_one_that_was_replaced_changes_nothing() {
        let (mut alarm, clock, mut heard) = alarm().await;
        alarm.set(Timestamp::from_secs(1));
        alarm.rang();
        alarm.set(Timestamp::from_secs(9));
        heard.recv().await.unwrap();
        assert_eq!(clock.now(), Timestamp::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_its_owner() {
        let (mut alarm, clock, mut heard) = alarm().await;
        alarm.set(Timestamp::from_secs(1));
        drop(alarm);
        clock.sleep(Duration::from_secs(2)).await;
        assert!(heard.try_recv().is_err());
    }
}
