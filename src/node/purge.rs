//! PurgeActor: the one owner of orders to remove what is stored of an exclusion (R5).
//!
//! It does one step of one order at a time, in a task that says how it went; what comes next says
//! [`crate::policy::purge`]. Whatever fails is tried again. Its successor, and the next life of the
//! node, begin an order from its first step: everything may be done again.

use std::io;
use std::sync::Arc;

use futures::future::join_all;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};
use tracing::{debug, warn};

use super::error::{NodeError, failed};
use super::exclusions::tell_all;
use super::part::Part;
use super::plan::Plan;
use super::root::RootState;
use super::settings;
use crate::archive::{ArchiveFinds, ArchivePurge};
use crate::output::{PageFinds, PagePurge, is_page_file};
use crate::policy::exclusion::{covers_stored, parse_rule};
use crate::policy::purge::{PurgeRun, PurgeStep};
use crate::protocol::purge::{FileFinds, PurgeDid, PurgeView};
use crate::protocol::{
    ArchiveMsg, NodeActor, OutputMsg, PurgeMsg, RegistryMsg, Routes, ShardMsg, ask,
};
use crate::supervise::{Alarm, Retry};
use crate::telemetry::PurgeDone;
use crate::types::{CrawlUrl, PurgeRecord, ShardId, tally};

/// The shard that keeps how far an order is, and tells when it is done.
const KEEPS: ShardId = ShardId(0);

/// The actor.
#[derive(Debug)]
pub(super) struct PurgeActor;

/// The actor's state.
pub(super) struct PurgeState {
    me: ActorRef<PurgeMsg>,
    plan: Arc<Plan>,
    run: Option<PurgeRun>,
    /// What the last look found.
    finds: Arc<FileFinds>,
    is_running: bool,
    retry: Retry,
    alarm: Alarm<PurgeMsg>,
}

impl Actor for PurgeActor {
    type Msg = PurgeMsg;
    type State = PurgeState;
    type Arguments = Arc<Plan>;

    async fn pre_start(
        &self,
        me: ActorRef<PurgeMsg>,
        plan: Arc<Plan>,
    ) -> Result<PurgeState, ActorProcessingErr> {
        // What another life has left.
        me.send_message(PurgeMsg::Look)?;
        let alarm = Alarm::new(Arc::clone(&plan.world.clock), me.clone(), || PurgeMsg::Tick);
        let finds = Arc::default();
        let retry = Retry::default();
        Ok(PurgeState { me, plan, run: None, finds, is_running: false, retry, alarm })
    }

    async fn handle(
        &self,
        _: ActorRef<PurgeMsg>,
        msg: PurgeMsg,
        purge: &mut PurgeState,
    ) -> Result<(), ActorProcessingErr> {
        purge.plan.world.clock.step("purge");
        match msg {
            PurgeMsg::Look => {}
            PurgeMsg::Did(result) => purge.did(result),
            PurgeMsg::Tick => purge.alarm.rang(),
            PurgeMsg::Observe(answer) => answer.send(purge.observe()),
        }
        purge.go_on();
        Ok(())
    }
}

impl PurgeState {
    fn did(&mut self, result: Result<PurgeDid, String>) {
        self.is_running = false;
        let now = self.plan.world.clock.now();
        let Some(run) = &mut self.run else { return };
        let did = match result {
            Ok(did) => did,
            // The next life begins the order again.
            Err(_) if self.plan.is_stopping() => return,
            Err(why) => {
                let (step, rule) = (run.step(), &run.record().rule);
                warn!(rule, ?step, why, "purge does not get on, tried again");
                run.failed(now);
                return self.retry.failed(now, why);
            }
        };
        self.retry = Retry::default();
        match did {
            PurgeDid::Settled => run.settled(),
            PurgeDid::Forgotten(urls) => run.forgotten(urls),
            PurgeDid::Closed => run.closed(),
            PurgeDid::Listed(files) => run.listed(files, now),
            PurgeDid::Looked(finds) => {
                run.looked(finds.removed, finds.unreadable, now);
                self.finds = Arc::from(finds);
            }
            PurgeDid::Noted => run.noted(),
            PurgeDid::Rewritten => run.rewritten(now),
            PurgeDid::Finished => {
                PurgeDone { record: run.record() }.emit(&self.plan.metrics);
                self.run = None;
            }
        }
    }

    /// The next step of the order in hand, or of the oldest that is not done.
    fn go_on(&mut self) {
        let now = self.plan.world.clock.now();
        if self.is_running || self.plan.is_stopping() {
            return;
        }
        if let Some(at) = self.retry.at().filter(|at| *at > now) {
            return self.alarm.set(at);
        }
        let run = match self.run.take().or_else(|| self.next_order().map(PurgeRun::new)) {
            Some(run) => self.run.insert(run),
            None => return,
        };
        let (step, record) = (run.step().clone(), run.record().clone());
        debug!(rule = record.rule, ?step, "purge goes on");
        self.is_running = true;
        let work = Work { plan: Arc::clone(&self.plan), record, finds: Arc::clone(&self.finds) };
        let me = self.me.clone();
        tokio::spawn(async move {
            let did = work.carry_out(step).await;
            // A successor begins the order again.
            me.send_message(PurgeMsg::Did(did)).ok();
        });
    }

    fn next_order(&self) -> Option<PurgeRecord> {
        let exclusions = Arc::clone(&self.plan.exclusions().borrow());
        let undone = exclusions.purges().filter(|order| order.done_at.is_none());
        undone.min_by_key(|order| order.ordered_at).cloned()
    }

    fn observe(&self) -> PurgeView {
        let exclusions = Arc::clone(&self.plan.exclusions().borrow());
        let undone = exclusions.purges().filter(|order| order.done_at.is_none()).count();
        PurgeView {
            undone: tally(undone),
            current: self.run.as_ref().map(|run| run.record().clone()),
            failure: self.retry.failure().map(str::to_owned),
        }
    }
}

/// One step of an order.
struct Work {
    plan: Arc<Plan>,
    record: PurgeRecord,
    finds: Arc<FileFinds>,
}

impl Work {
    async fn carry_out(&self, step: PurgeStep) -> Result<PurgeDid, String> {
        match step {
            PurgeStep::Settle => self.settle().await,
            PurgeStep::Forget => self.forget().await,
            PurgeStep::Close => self.close().await,
            PurgeStep::List => self.list().await.map_err(|error| error.to_string()),
            PurgeStep::Look(file) => self.look(&file).await.map_err(|error| error.to_string()),
            PurgeStep::Note => self.note().await,
            PurgeStep::Rewrite(file) => {
                self.rewrite(&file).await.map_err(|error| error.to_string())
            }
            PurgeStep::Finish => self.finish().await,
        }
    }

    async fn settle(&self) -> Result<PurgeDid, String> {
        let archive = self.plan.routes.borrow().archive.clone();
        let archive = archive.ok_or("the archive is not there")?;
        let settled = ask(&archive, ArchiveMsg::Rotate).await;
        settled.map(|()| PurgeDid::Settled).ok_or_else(|| "the archive has failed".to_owned())
    }

    async fn forget(&self) -> Result<PurgeDid, String> {
        self.put_everywhere().await?;
        let routes = self.all_up()?;
        let asked = routes.all().map(|route| {
            ask(&route.shard, |answer| ShardMsg::Forget(self.record.id.clone(), answer))
        });
        let cleared: Option<Vec<u64>> = join_all(asked).await.into_iter().collect();
        let cleared = cleared.ok_or("a shard is not there")?;
        Ok(PurgeDid::Forgotten(cleared.into_iter().sum()))
    }

    /// Durable, so that no start cuts files back to a length that they no longer have: the order
    /// comes behind in the same stores, opened once.
    async fn close(&self) -> Result<PurgeDid, String> {
        let routes = self.all_up()?;
        let opened = |routes: &Routes| -> Vec<ActorId> {
            routes.all().map(|route| route.shard.get_id()).collect()
        };
        let asked = routes.all().map(|route| {
            ask(&route.output, |answer| OutputMsg::Rotate(route.shard.clone(), answer))
        });
        if join_all(asked).await.iter().any(Option::is_none) {
            return Err("an output is not there".to_owned());
        }
        self.put_everywhere().await?;
        let now = self.all_up()?;
        if opened(&routes) != opened(&now) {
            return Err("a shard was opened anew".to_owned());
        }
        Ok(PurgeDid::Closed)
    }

    /// Where the shards are, all of them.
    fn all_up(&self) -> Result<Arc<Routes>, String> {
        let routes = Arc::clone(&self.plan.routes.borrow());
        let is_down = routes.shards.iter().any(Option::is_none);
        if is_down { Err("a shard is not there".to_owned()) } else { Ok(routes) }
    }

    /// What was put before is durable too.
    async fn put_everywhere(&self) -> Result<(), String> {
        let put = |answer| ShardMsg::PutPurge(Box::new(self.record.clone()), answer);
        tell_all(&self.plan, put).await.map_err(|silent| format!("no answer of {silent}"))
    }

    async fn list(&self) -> io::Result<PurgeDid> {
        let _turn = self.plan.purge_turn.lock().await;
        let mut files = self.archive().files().await?;
        files.extend(self.pages()?.files().await?);
        Ok(PurgeDid::Listed(files))
    }

    async fn look(&self, file: &str) -> io::Result<PurgeDid> {
        let rule = parse_rule(&self.record.rule).map_err(io::Error::other)?;
        let covers = |url: &CrawlUrl| covers_stored(&rule, url);
        let _turn = self.plan.purge_turn.lock().await;
        if is_page_file(file) {
            let finds = gone_or(self.pages()?.look(file, &covers).await)?;
            let removed = finds.removed();
            let PageFinds { lines, unreadable } = finds;
            let finds = FileFinds { lines, removed, unreadable, ..FileFinds::default() };
            return Ok(PurgeDid::Looked(Box::new(finds)));
        }
        let finds = gone_or(self.archive().look(file, &covers).await)?;
        let removed = finds.removed();
        let ArchiveFinds { records, lines, unreadable } = finds;
        Ok(PurgeDid::Looked(Box::new(FileFinds { records, lines, removed, unreadable })))
    }

    async fn note(&self) -> Result<PurgeDid, String> {
        let shard = self.plan.routes.borrow().shard(KEEPS).map(|route| route.shard.clone());
        let shard = shard.ok_or("its shard is not there")?;
        let put = |answer| ShardMsg::PutPurge(Box::new(self.record.clone()), answer);
        ask(&shard, put).await.ok_or("its shard has failed")?;
        // Whoever gives the order again, or takes it up, finds it as far as it is.
        self.plan.change_exclusions(|all| all.with_purge(self.record.clone()));
        Ok(PurgeDid::Noted)
    }

    async fn rewrite(&self, file: &str) -> io::Result<PurgeDid> {
        let plan = Arc::clone(&self.plan);
        let stops = move || plan.is_stopping();
        let FileFinds { records, lines, .. } = &*self.finds;
        let lines = lines.clone();
        let _turn = self.plan.purge_turn.lock().await;
        if is_page_file(file) {
            self.pages()?.rewrite(file, &PageFinds { lines, unreadable: false }, &stops).await?;
        } else {
            let finds = ArchiveFinds { records: records.clone(), lines, unreadable: false };
            self.archive().rewrite(file, &finds, &stops).await?;
        }
        Ok(PurgeDid::Rewritten)
    }

    async fn finish(&self) -> Result<PurgeDid, String> {
        self.put_everywhere().await?;
        let done = self.record.clone();
        self.plan.change_exclusions(|exclusions| exclusions.with_purge(done));
        Ok(PurgeDid::Finished)
    }

    fn archive(&self) -> ArchivePurge {
        ArchivePurge {
            spool: Arc::clone(&self.plan.world.spool),
            dice: Arc::clone(&self.plan.world.dice),
            exclusion: self.record.id.clone(),
            at: self.record.ordered_at,
        }
    }

    fn pages(&self) -> io::Result<PagePurge> {
        let outputs = settings::outputs(&self.plan.config()).map_err(io::Error::other)?;
        Ok(PagePurge { spool: Arc::clone(&self.plan.world.spool), outputs })
    }
}

/// A file that was moved away since has nothing to lose.
fn gone_or<T: Default>(found: io::Result<T>) -> io::Result<T> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        found => found,
    }
}

impl RootState {
    pub(super) async fn start_purge(&mut self) -> Result<(), NodeError> {
        let cell = self.me.get_cell();
        let started = Actor::spawn_linked(None, PurgeActor, Arc::clone(&self.plan), cell).await;
        let (purge, _) = started.map_err(failed("purge"))?;
        self.note(Part::Purge, purge.get_cell());
        self.tell_registry(RegistryMsg::Started(NodeActor::Purge(purge)));
        Ok(())
    }
}
