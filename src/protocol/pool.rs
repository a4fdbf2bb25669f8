//! To a PoolActor: the supervisor of workers that pull from one bounded channel.

use serde::Serialize;

use super::Answer;

/// The mailbox of a PoolActor.
#[derive(Debug)]
pub enum PoolMsg {
    /// Have this many workers.
    Resize(u32),
    /// A chair whose worker died may be taken again; sent by itself, after a wait.
    Reseat(u32),
    /// Let workers end what they have in hand, then stop; answered when the last has stopped.
    Drain(Answer<()>),
    /// Stop at once; what workers have in hand is reported as cancelled.
    Kill(Answer<()>),
    /// Say how it stands.
    Observe(Answer<PoolView>),
}

/// The state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolView {
    /// Workers alive.
    pub workers: u32,
    /// Workers with a job in hand.
    pub busy: u32,
    /// Jobs in the channel.
    pub waiting: u32,
    /// The channel's bound.
    pub capacity: u32,
    /// Workers that came back after a panic.
    pub restarts: u64,
}
