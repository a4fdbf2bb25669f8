//! An actor that passes what it hears on to a test.

use std::marker::PhantomData;

use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use tokio::sync::mpsc;

/// Messages that a test has not looked at.
const UNHEARD_MAX: usize = 100;

struct Probe<M>(PhantomData<fn() -> M>);

impl<M: Message> Actor for Probe<M> {
    type Msg = M;
    type State = mpsc::Sender<M>;
    type Arguments = mpsc::Sender<M>;

    async fn pre_start(
        &self,
        _me: ActorRef<M>,
        heard: mpsc::Sender<M>,
    ) -> Result<mpsc::Sender<M>, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _me: ActorRef<M>,
        msg: M,
        heard: &mut mpsc::Sender<M>,
    ) -> Result<(), ActorProcessingErr> {
        // A test that has heard enough hears no more.
        heard.send(msg).await.ok();
        Ok(())
    }
}

/// An actor for any kind of message, and what it hears.
pub(crate) async fn probe<M: Message>() -> (ActorRef<M>, mpsc::Receiver<M>) {
    let (heard, hearing) = mpsc::channel(UNHEARD_MAX);
    let (actor, _) = Actor::spawn(None, Probe(PhantomData), heard).await.unwrap();
    (actor, hearing)
}
