//! To an OutputActor: documents whose links are durable.

use ractor::ActorRef;
use serde::Serialize;

use super::{Answer, Permit, ShardMsg};
use crate::types::{Document, Reason, ToParse};

/// The mailbox of an OutputActor; bounded by the permits that pages carry.
#[derive(Debug)]
pub enum OutputMsg {
    /// Publish this page; its row is dropped in the batch that commits the outputs' offsets.
    Publish(Box<FinishedPage>),
    /// Time to sync what was written.
    Tick,
    /// Written and synced up to here, or failed.
    Synced(Result<(), String>),
    /// The shard's batch with the offsets is written.
    Committed,
    /// Begin other files: what is in those of before is all that ever will be (R5). Answered when
    /// this shard, whose outputs they are, has committed it.
    Rotate(ActorRef<ShardMsg>, Answer<()>),
    /// Sync and commit all, then stop.
    Close(Answer<()>),
    /// Say how it stands.
    Observe(Answer<OutputView>),
}

/// A page whose links are admitted.
#[derive(Debug)]
pub struct FinishedPage {
    /// Its row.
    pub row: ToParse,
    /// The page record, if it has one.
    pub document: Option<Box<Document>>,
    /// Links handed to discovery.
    pub links: u32,
    /// Why it has no document, or not a whole one.
    pub reasons: Vec<Reason>,
    /// Who owns the row.
    pub shard: ActorRef<ShardMsg>,
    /// Its place among the pages under way.
    pub permit: Permit,
}

/// The state of an OutputActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputView {
    /// Documents written since the start.
    pub documents: u64,
    /// Pages that wait for a sync or a commit.
    pub waiting: u32,
    /// Documents left out by the purpose of an output.
    pub left_out: u64,
    /// Why it cannot write, if it cannot.
    pub failure: Option<String>,
}
