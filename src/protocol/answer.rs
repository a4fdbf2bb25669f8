//! How a question is answered: once, by whoever holds the port; a port that is dropped says so.

use std::fmt;

use ractor::{ActorRef, Message};
use tokio::sync::oneshot;

type Deliver<T> = Box<dyn FnOnce(Option<T>) + Send>;

/// The port for one answer. The asker hears `None` when the port is dropped unanswered: the actor
/// that held it is gone, and the question may be asked again.
pub struct Answer<T>(Option<Deliver<T>>);

impl<T: Send + 'static> Answer<T> {
    /// A port that hands the answer to a function: usually one that sends a message.
    pub fn to(deliver: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// A port and the end that waits for it; an error there means that the port was dropped.
    pub fn channel() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        let deliver = move |answer: Option<T>| {
            if let Some(answer) = answer {
                // The asker may have stopped waiting; then nobody misses the answer.
                sender.send(answer).ok();
            }
        };
        (Self::to(deliver), receiver)
    }

    /// A port nobody listens to.
    pub fn ignored() -> Self {
        Self(None)
    }

    /// Answers.
    pub fn send(mut self, answer: T) {
        if let Some(deliver) = self.0.take() {
            deliver(Some(answer));
        }
    }
}

/// Asks an actor and waits for its answer; `None` when it is gone or drops the question.
pub async fn ask<M: Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(Answer<T>) -> M,
) -> Option<T> {
    let (answer, waiting) = Answer::channel();
    actor.send_message(question(answer)).ok()?;
    waiting.await.ok()
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(None);
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_arrives_once() {
        let (port, waiting) = Answer::channel();
        port.send(7);
        assert_eq!(waiting.await, Ok(7));
    }

    #[tokio::test]
    async fn a_dropped_port_is_noticed() {
        let (port, waiting) = Answer::<u8>::channel();
        drop(port);
        assert!(waiting.await.is_err());
        let (noticed, heard) = oneshot::channel();
        drop(Answer::<u8>::to(move |answer| noticed.send(answer).unwrap()));
        assert_eq!(heard.await, Ok(None));
    }
}
