//! DiscoveryActor: judges seeds and links, asks the shards, passes pages on when all is durable.
//!
//! A page under way holds a permit, so the number of batches in the air is bounded (P4). A shard
//! that is gone is asked again when it is back; nothing is dropped (I8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;

use super::judge;
use super::settings::DiscoverySettings;
use crate::policy::scope::Scope;
use crate::policy::traps::trap;
use crate::policy::why::Judged;
use crate::protocol::discovery::{DiscoveryView, ParsedPage, Seed, SeedAnswer, SeedResult};
use crate::protocol::output::FinishedPage;
use crate::protocol::shard::{Admission, AdmitAnswer, AdmitBatch, Candidate};
use crate::protocol::{Answer, DiscoveryMsg, OutputMsg, RoutesWatch, ShardMsg};
use crate::supervise::Alarm;
use crate::types::{CrawlUrl, HostKey, Reason, ShardId, tally};
use crate::world::World;

/// A shard that is gone is asked again after this.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The actor.
#[derive(Debug)]
pub struct DiscoveryActor;

/// What it starts with.
#[derive(Debug)]
pub struct DiscoveryArgs {
    /// The settings, always the newest.
    pub settings: watch::Receiver<Arc<DiscoverySettings>>,
    /// Where the shards are.
    pub routes: RoutesWatch,
    /// The world.
    pub world: World,
    /// Hosts that had seeds in earlier runs: the scope goes on from them.
    pub seeded: BTreeSet<HostKey>,
}

/// The actor's state.
pub struct DiscoveryState {
    settings: watch::Receiver<Arc<DiscoverySettings>>,
    scope: Scope,
    seeded: BTreeSet<HostKey>,
    routes: RoutesWatch,
    world: World,
    waiting: BTreeMap<u64, Waiting>,
    next_batch: u64,
    alarm: Alarm<DiscoveryMsg>,
    view: DiscoveryView,
}

/// A page or a load of seeds whose shards have not all answered.
struct Waiting {
    /// Candidates by shard, kept until that shard has answered.
    parts: BTreeMap<ShardId, Part>,
    /// Shards that were gone.
    lost: BTreeSet<ShardId>,
    then: Then,
}

/// What one shard is asked; `places` are the positions of seeds among those given.
#[derive(Clone, Default)]
struct Part {
    candidates: Vec<Candidate>,
    places: Vec<usize>,
}

enum Then {
    Rest,
    Publish(Box<ParsedPage>, u32),
    AnswerSeeds(Vec<SeedAnswer>, Answer<Vec<SeedAnswer>>),
}

impl Actor for DiscoveryActor {
    type Msg = DiscoveryMsg;
    type State = DiscoveryState;
    type Arguments = DiscoveryArgs;

    async fn pre_start(
        &self,
        me: ActorRef<DiscoveryMsg>,
        args: DiscoveryArgs,
    ) -> Result<DiscoveryState, ActorProcessingErr> {
        let settings = Arc::clone(&args.settings.borrow());
        let scope = Scope::new(settings.scope.clone(), &roots(&args.seeded));
        let alarm = Alarm::new(Arc::clone(&args.world.clock), me, || DiscoveryMsg::Tick);
        Ok(DiscoveryState {
            settings: args.settings,
            scope,
            seeded: args.seeded,
            routes: args.routes,
            world: args.world,
            waiting: BTreeMap::new(),
            next_batch: 0,
            alarm,
            view: DiscoveryView::default(),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<DiscoveryMsg>,
        msg: DiscoveryMsg,
        state: &mut DiscoveryState,
    ) -> Result<(), ActorProcessingErr> {
        state.world.clock.step("discovery");
        match msg {
            DiscoveryMsg::Seeds(seeds, answer) => state.seeds(&me, &seeds, answer),
            DiscoveryMsg::Sitemaps(host, sitemaps) => state.sitemaps(&me, &host, &sitemaps),
            DiscoveryMsg::Page(page) => state.page(&me, page),
            DiscoveryMsg::Admitted { batch, shard, answer } => {
                state.admitted(batch, shard, answer);
            }
            DiscoveryMsg::Tick => state.ask_again(&me),
            DiscoveryMsg::Reload => state.reload()?,
            DiscoveryMsg::Judge(url, depth, answer) => answer.send(state.judge(&url, depth)),
            DiscoveryMsg::Observe(answer) => answer.send(state.observe()),
        }
        Ok(())
    }
}

impl DiscoveryState {
    fn seeds(
        &mut self,
        me: &ActorRef<DiscoveryMsg>,
        seeds: &[Seed],
        answer: Answer<Vec<SeedAnswer>>,
    ) {
        let now = self.world.clock.now();
        let settings = Arc::clone(&self.settings.borrow());
        let mut answers = Vec::with_capacity(seeds.len());
        let mut parts = BTreeMap::new();
        for (place, seed) in seeds.iter().enumerate() {
            let judged = judge::seed(seed, &mut self.scope, &settings, now);
            answers.push(seed_answer(&seed.url, judged.as_ref().err()));
            match judged {
                Ok(candidate) => {
                    self.seeded.insert(candidate.host.clone());
                    self.put(&mut parts, candidate, place);
                }
                Err(_) => self.view.refused += 1,
            }
        }
        self.view.judged += u64::try_from(seeds.len()).unwrap_or(0);
        self.ask(me, parts, Then::AnswerSeeds(answers, answer));
    }

    fn sitemaps(&mut self, me: &ActorRef<DiscoveryMsg>, host: &HostKey, sitemaps: &[String]) {
        let now = self.world.clock.now();
        let settings = Arc::clone(&self.settings.borrow());
        let mut parts = BTreeMap::new();
        for sitemap in sitemaps {
            self.view.judged += 1;
            match judge::sitemap(sitemap, host, &mut self.scope, &settings, now) {
                Ok(candidate) => {
                    self.view.offered += 1;
                    self.put(&mut parts, candidate, 0);
                }
                Err(_) => self.view.refused += 1,
            }
        }
        self.ask(me, parts, Then::Rest);
    }

    fn page(&mut self, me: &ActorRef<DiscoveryMsg>, mut page: Box<ParsedPage>) {
        let now = self.world.clock.now();
        let settings = Arc::clone(&self.settings.borrow());
        let mut parts = BTreeMap::new();
        let mut offered = 0;
        let mut left_out: BTreeMap<String, u64> = BTreeMap::new();
        for link in std::mem::take(&mut page.links) {
            self.view.judged += 1;
            match judge::link(link, &page.row, &mut self.scope, &settings, now) {
                Ok(candidate) => {
                    if candidate.is_seed {
                        self.seeded.insert(candidate.host.clone());
                    }
                    offered += 1;
                    self.put(&mut parts, candidate, 0);
                }
                Err(reason) => {
                    self.view.refused += 1;
                    // P3: what a sitemap may not name is said in its record.
                    if matches!(reason, Reason::ForeignEntry | Reason::NestedSitemaps { .. }) {
                        *left_out.entry(reason.to_string()).or_default() += 1;
                    }
                }
            }
        }
        for (what, count) in left_out {
            let reason = Reason::LeftOut { count, what };
            if let Some(document) = &mut page.document {
                document.reason.push(reason.to_string());
            }
            page.reasons.push(reason);
        }
        self.view.offered += u64::from(offered);
        self.ask(me, parts, Then::Publish(page, offered));
    }

    fn put(&self, parts: &mut BTreeMap<ShardId, Part>, candidate: Candidate, place: usize) {
        let shard = self.routes.borrow().shard_of(&candidate.host);
        let part = parts.entry(shard).or_default();
        part.candidates.push(candidate);
        part.places.push(place);
    }

    fn ask(&mut self, me: &ActorRef<DiscoveryMsg>, parts: BTreeMap<ShardId, Part>, then: Then) {
        if parts.is_empty() {
            return self.finish(then);
        }
        self.next_batch += 1;
        let batch = self.next_batch;
        for (shard, part) in &parts {
            self.send(me, batch, *shard, part);
        }
        self.waiting.insert(batch, Waiting { parts, lost: BTreeSet::new(), then });
    }

    /// One batch for one shard. A port that is dropped says that the shard is gone.
    fn send(&self, me: &ActorRef<DiscoveryMsg>, batch: u64, shard: ShardId, part: &Part) {
        let port = me.clone();
        let answer = Answer::to(move |answer| {
            port.send_message(DiscoveryMsg::Admitted { batch, shard, answer }).ok();
        });
        let asked = AdmitBatch { candidates: part.candidates.clone(), answer };
        if let Some(route) = self.routes.borrow().shard(shard) {
            // A message that cannot be sent drops its port, which answers that the shard is gone.
            route.shard.send_message(ShardMsg::Admit(asked)).ok();
        }
    }

    fn admitted(&mut self, batch: u64, shard: ShardId, answer: Option<AdmitAnswer>) {
        let Some(waiting) = self.waiting.get_mut(&batch) else { return };
        let Some(answer) = answer else {
            waiting.lost.insert(shard);
            return self.alarm.set(self.world.clock.now() + ASK_AGAIN_AFTER);
        };
        let Some(part) = waiting.parts.remove(&shard) else { return };
        if let Then::AnswerSeeds(answers, _) = &mut waiting.then {
            for (place, result) in part.places.into_iter().zip(answer.results) {
                if let Some(found) = answers.get_mut(place) {
                    note(found, result);
                }
            }
        }
        if waiting.parts.is_empty()
            && let Some(waiting) = self.waiting.remove(&batch)
        {
            self.finish(waiting.then);
        }
    }

    fn ask_again(&mut self, me: &ActorRef<DiscoveryMsg>) {
        self.alarm.rang();
        let mut lost: Vec<(u64, ShardId, Part)> = Vec::new();
        for (batch, waiting) in &mut self.waiting {
            for shard in std::mem::take(&mut waiting.lost) {
                if let Some(part) = waiting.parts.get(&shard) {
                    lost.push((*batch, shard, part.clone()));
                }
            }
        }
        for (batch, shard, part) in lost {
            self.send(me, batch, shard, &part);
        }
    }

    /// All links are durable: the page may be published (I7).
    fn finish(&self, then: Then) {
        match then {
            Then::Rest => {}
            Then::AnswerSeeds(answers, port) => port.send(answers),
            Then::Publish(page, links) => {
                let ParsedPage { row, document, reasons, shard, permit, .. } = *page;
                let routes = self.routes.borrow();
                // B6: a shard that was opened anew has given the page to a parser once more.
                let route = routes.route(&row.url.host_key());
                let route = route.filter(|route| route.shard.get_id() == shard.get_id());
                let finished = FinishedPage { row, document, links, reasons, shard, permit };
                if let Some(route) = route {
                    // Without an output the row stays, and the page is parsed again later.
                    route.output.send_message(OutputMsg::Publish(Box::new(finished))).ok();
                }
            }
        }
    }

    fn reload(&mut self) -> Result<(), ActorProcessingErr> {
        let settings = Arc::clone(&self.settings.borrow());
        self.scope = Scope::new(settings.scope.clone(), &roots(&self.seeded));
        Ok(())
    }

    /// B1: as a link or seed would be judged, kind and rel aside.
    fn judge(&self, url: &CrawlUrl, depth: u16) -> Judged {
        let traps = self.settings.borrow().traps;
        let scope = self.scope.judge(url, depth).err();
        Judged { scope, trap: trap(url, &traps), scope_by: None }
    }

    fn observe(&self) -> DiscoveryView {
        DiscoveryView { waiting: tally(self.waiting.len()), ..self.view.clone() }
    }
}

/// One URL of each seeded host is enough to make the scope again.
fn roots(seeded: &BTreeSet<HostKey>) -> Vec<CrawlUrl> {
    seeded.iter().filter_map(|host| CrawlUrl::parse(&format!("{host}/")).ok()).collect()
}

fn seed_answer(url: &str, refused: Option<&Reason>) -> SeedAnswer {
    let result = if refused.is_some() { SeedResult::Refused } else { SeedResult::Known };
    SeedAnswer { url: url.to_owned(), result, reason: refused.map(ToString::to_string) }
}

fn note(answer: &mut SeedAnswer, admission: Admission) {
    match admission {
        Admission::Added => answer.result = SeedResult::Accepted,
        Admission::Known => answer.result = SeedResult::Known,
        Admission::Refused(reason) => {
            answer.result = SeedResult::Refused;
            answer.reason = Some(reason.to_string());
        }
    }
}
