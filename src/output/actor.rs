//! OutputActor: the outputs of one shard, written in groups.
//!
//! A group is gathered, appended and synced by a task, then committed by the shard together with
//! the end of its pages' rows; one group at a time. When the disk fails, the group is tried again.
//! When the shard is gone, nobody knows whether the group counts, so the actor stops: whoever opens
//! the shard again starts it anew from the committed state, and the rows bring the pages back.

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{Mutex, watch};
use tracing::debug;

use super::committed::Append;
use super::jsonl::{JsonLines, OutputSettings};
use crate::policy::exclusion::Exclusions;
use crate::protocol::output::{FinishedPage, OutputView};
use crate::protocol::shard::{PublishedBatch, PublishedPage};
use crate::protocol::{Answer, OutputMsg, Permit, ShardMsg};
use crate::supervise::{Alarm, Retry};
use crate::telemetry::{DiskFailed, Metrics};
use crate::types::{ShardId, Timestamp, tally};
use crate::world::{Clock, Spool};

/// A group is synced at the latest this long after its first page.
const GROUP_DELAY: Duration = Duration::from_millis(20);

/// What an OutputActor needs.
#[derive(Clone, Debug)]
pub struct OutputArgs {
    /// Whose pages these are.
    pub shard: ShardId,
    /// The disk.
    pub spool: Arc<dyn Spool>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What is being removed (R5).
    pub exclusions: watch::Receiver<Arc<Exclusions>>,
    /// The outputs.
    pub outputs: Vec<OutputSettings>,
    /// By output name, what the shard's store has committed, read after the store was opened.
    pub committed: Vec<(String, Vec<u8>)>,
    /// The node's.
    pub metrics: Arc<Metrics>,
    /// Whose turn it is to write this shard's files.
    pub turn: Turn,
}

/// Counts the OutputActors of a shard, and is held while one writes. A write may be under way when
/// its actor is replaced: it ends before the next one cuts the files, and none begins after.
pub type Turn = Arc<Mutex<u64>>;

/// The writer of a shard's outputs.
#[derive(Debug)]
pub struct OutputActor;

/// What an OutputActor knows.
pub struct OutputState {
    me: ActorRef<OutputMsg>,
    spool: Arc<dyn Spool>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    exclusions: watch::Receiver<Arc<Exclusions>>,
    outputs: Vec<JsonLines>,
    turn: Turn,
    /// The number of this actor.
    number: u64,
    gathered: Pages,
    /// When the gathered pages are to be synced.
    due: Option<Timestamp>,
    stage: Stage,
    retry: Retry,
    alarm: Alarm<OutputMsg>,
    closing: Option<Answer<()>>,
    /// Who waits for other files, and for the commit of those under way.
    rotating: Vec<(ActorRef<ShardMsg>, Answer<()>)>,
    rotated: Vec<Answer<()>>,
    documents: u64,
    left_out: u64,
}

/// Pages that share a group, and what they hold until it is committed.
#[derive(Debug, Default)]
struct Pages {
    pages: Vec<PublishedPage>,
    permits: Vec<Permit>,
    /// Whom to report to: of the newest page, should the shard have been opened anew.
    shard: Option<ActorRef<ShardMsg>>,
}

/// Pages with what is to be written for them.
#[derive(Debug)]
struct Group {
    pages: Pages,
    appends: Vec<Append>,
    states: Vec<(String, Vec<u8>)>,
}

/// Where the one group under way stands.
#[derive(Debug)]
enum Stage {
    /// There is none.
    Idle,
    /// A task writes it.
    Syncing(Group),
    /// The disk failed; tried again when `retry` says.
    Failed(Group),
    /// The shard commits it; the permits wait for that.
    Committing(Vec<Permit>),
}

impl Actor for OutputActor {
    type Msg = OutputMsg;
    type State = OutputState;
    type Arguments = OutputArgs;

    async fn pre_start(
        &self,
        me: ActorRef<OutputMsg>,
        args: OutputArgs,
    ) -> Result<OutputState, ActorProcessingErr> {
        let turn = Arc::clone(&args.turn);
        let mut number = turn.lock().await;
        *number += 1;
        let mut outputs = Vec::new();
        for settings in &args.outputs {
            let state = args.committed.iter().find(|(name, _)| *name == settings.name);
            let state = state.map(|(_, state)| state.as_slice());
            args.metrics.output_opened(&settings.name, settings.purpose);
            outputs.push(JsonLines::open(&args.spool, args.shard, settings.clone(), state).await?);
        }
        Ok(OutputState::new(me, args, outputs, *number))
    }

    async fn handle(
        &self,
        _: ActorRef<OutputMsg>,
        message: OutputMsg,
        output: &mut OutputState,
    ) -> Result<(), ActorProcessingErr> {
        output.clock.step("output");
        match message {
            OutputMsg::Publish(page) => output.gather(*page),
            OutputMsg::Tick => output.alarm.rang(),
            OutputMsg::Synced(result) => output.synced(result),
            OutputMsg::Committed => output.committed(),
            OutputMsg::Rotate(shard, answer) => output.rotating.push((shard, answer)),
            OutputMsg::Close(answer) => output.closing = Some(answer),
            OutputMsg::Observe(answer) => answer.send(output.observe()),
        }
        output.advance();
        Ok(())
    }
}

impl OutputState {
    fn new(
        me: ActorRef<OutputMsg>,
        args: OutputArgs,
        outputs: Vec<JsonLines>,
        number: u64,
    ) -> Self {
        let OutputArgs { spool, clock, metrics, exclusions, turn, .. } = args;
        let alarm = Alarm::new(Arc::clone(&clock), me.clone(), || OutputMsg::Tick);
        Self {
            me,
            spool,
            clock,
            metrics,
            exclusions,
            outputs,
            turn,
            number,
            gathered: Pages::default(),
            due: None,
            stage: Stage::Idle,
            retry: Retry::default(),
            alarm,
            closing: None,
            rotating: Vec::new(),
            rotated: Vec::new(),
            documents: 0,
            left_out: 0,
        }
    }

    fn gather(&mut self, page: FinishedPage) {
        if self.gathered.pages.is_empty() {
            self.due = Some(self.clock.now() + GROUP_DELAY);
        }
        let FinishedPage { row, document, links, shard, permit, reasons: _ } = page;
        // R5: what is being removed gets no record; its row goes all the same.
        let removed = self.exclusions.borrow().purging(&row.url).is_some();
        let document = document.filter(|_| !removed);
        if let Some(document) = &document {
            for output in &mut self.outputs {
                let left_out = output.add(document);
                if let Some(cause) = left_out {
                    let (url, output) = (&document.url, output.name());
                    debug!(%url, output, %cause, "page left out");
                }
                self.documents += u64::from(left_out.is_none());
                self.left_out += u64::from(left_out.is_some());
                let why = left_out.map(|cause| cause.scheme);
                self.metrics.output_counted(output.name(), why);
            }
        }
        let parser_version = document.as_ref().map_or(0, |document| document.parser_version);
        let duplicate_of = document.and_then(|document| document.duplicate_of);
        let page = PublishedPage { row, links, duplicate_of, parser_version };
        self.gathered.pages.push(page);
        self.gathered.permits.push(permit);
        self.gathered.shard = Some(shard);
    }

    /// Does what is due; called after every message.
    fn advance(&mut self) {
        let now = self.clock.now();
        let hurry = self.closing.is_some();
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle if self.due.is_some_and(|due| hurry || due <= now) => self.begin(),
            Stage::Idle if !self.rotating.is_empty() => self.rotate(),
            Stage::Failed(group) if self.retry.allows(now) => self.sync(group),
            stage @ (Stage::Idle | Stage::Syncing(_) | Stage::Failed(_) | Stage::Committing(_)) => {
                self.stage = stage;
            }
        }
        self.end_if_closed();
        self.arm();
    }

    fn begin(&mut self) {
        self.due = None;
        let taken = self.outputs.iter_mut().filter_map(JsonLines::take);
        let (appends, states) = taken.unzip();
        let pages = std::mem::take(&mut self.gathered);
        self.sync(Group { pages, appends, states });
    }

    /// R5: what is gathered goes to other files than what was written before.
    fn rotate(&mut self) {
        let rotating = std::mem::take(&mut self.rotating);
        let states: Vec<_> = self.outputs.iter_mut().filter_map(JsonLines::rotate).collect();
        let shard = rotating.last().map(|(shard, _)| shard.clone());
        self.rotated.extend(rotating.into_iter().map(|(_, answer)| answer));
        if states.is_empty() {
            return self.committed();
        }
        let pages = Pages { shard, ..Pages::default() };
        self.commit(Group { pages, appends: Vec::new(), states });
    }

    fn committed(&mut self) {
        self.stage = Stage::Idle;
        std::mem::take(&mut self.rotated).into_iter().for_each(|answer| answer.send(()));
    }

    /// Hands the group to a task that appends and syncs it.
    fn sync(&mut self, group: Group) {
        let (spool, me) = (Arc::clone(&self.spool), self.me.clone());
        let appends = group.appends.clone();
        self.stage = Stage::Syncing(group);
        let (turn, number) = (Arc::clone(&self.turn), self.number);
        tokio::spawn(async move {
            let turn = turn.lock().await;
            if *turn != number {
                return;
            }
            let mut result = Ok(());
            for append in appends {
                result = append.run(&*spool).await.map_err(|error| error.to_string());
                if result.is_err() {
                    break;
                }
            }
            drop(turn);
            // When the output is gone, what was written is cut at the next start.
            me.send_message(OutputMsg::Synced(result)).ok();
        });
    }

    fn synced(&mut self, result: Result<(), String>) {
        match (std::mem::replace(&mut self.stage, Stage::Idle), result) {
            (Stage::Syncing(group), Ok(())) => {
                self.retry = Retry::default();
                self.commit(group);
            }
            (Stage::Syncing(group), Err(why)) => {
                DiskFailed { what: "output", why: &why }.emit(&self.metrics);
                self.retry.failed(self.clock.now(), why);
                self.stage = Stage::Failed(group);
            }
            (stage, _) => self.stage = stage,
        }
    }

    /// B6: one message, so that rows and offsets change in one batch.
    fn commit(&mut self, group: Group) {
        let Pages { pages, permits, shard } = group.pages;
        let me = self.me.clone();
        let answer = Answer::to(move |committed: Option<()>| match committed {
            // An output that is gone has nothing left to do.
            Some(()) => drop(me.send_message(OutputMsg::Committed)),
            None => me.stop(Some("its shard is gone".to_owned())),
        });
        self.stage = Stage::Committing(permits);
        let batch = PublishedBatch { pages, outputs: group.states, answer };
        if let Some(shard) = shard {
            // A message that does not arrive drops the answer, which says so.
            shard.send_message(ShardMsg::Published(Box::new(batch))).ok();
        }
    }

    fn end_if_closed(&mut self) {
        let idle = matches!(self.stage, Stage::Idle) && self.gathered.pages.is_empty();
        if let Some(answer) = self.closing.take_if(|_| idle) {
            answer.send(());
            self.me.stop(None);
        }
    }

    fn arm(&mut self) {
        let at = match &self.stage {
            Stage::Idle => self.due,
            Stage::Failed(_) => self.retry.at(),
            Stage::Syncing(_) | Stage::Committing(_) => None,
        };
        if let Some(at) = at {
            self.alarm.set(at);
        }
    }

    fn observe(&self) -> OutputView {
        let under_way = match &self.stage {
            Stage::Idle => 0,
            Stage::Syncing(group) | Stage::Failed(group) => group.pages.pages.len(),
            Stage::Committing(permits) => permits.len(),
        };
        let waiting = under_way + self.gathered.pages.len();
        OutputView {
            documents: self.documents,
            waiting: tally(waiting),
            left_out: self.left_out,
            failure: self.retry.failure().map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests;
