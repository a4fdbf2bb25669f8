//! HostActor: the shell of one host's machine. It translates, and decides nothing.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tracing::debug;

use crate::policy::host::{Effects, HostEvent, HostMachine, HostSeed, HostSnapshot, OfferAnswer};
use crate::policy::robots::{FreshKind, RobotsState};
use crate::protocol::at_rest::next_request;
use crate::protocol::host::RobotsView;
use crate::protocol::shard::Stepped;
use crate::protocol::{HostMsg, HostPhase, HostView, ShardMsg};
use crate::types::{HostCounts, HostId, Reason, tally};
use crate::world::World;

/// The actor of one host that has something to do.
#[derive(Debug)]
pub struct HostActor;

/// What it is woken with.
#[derive(Debug)]
pub struct HostArgs {
    /// Its row, leases and settings; the snapshot is read here.
    pub seed: HostSeed,
    /// The world.
    pub world: World,
    /// Its shard.
    pub shard: ActorRef<ShardMsg>,
}

/// The actor's state.
#[derive(Debug)]
pub struct HostState {
    machine: HostMachine,
    id: HostId,
    world: World,
    shard: ActorRef<ShardMsg>,
}

type Handled = Result<(), ActorProcessingErr>;

impl Actor for HostActor {
    type Msg = HostMsg;
    type State = HostState;
    type Arguments = HostArgs;

    async fn pre_start(
        &self,
        _me: ActorRef<HostMsg>,
        mut args: HostArgs,
    ) -> Result<HostState, ActorProcessingErr> {
        let id = args.seed.id;
        let found = args.world.snapshots.get(id);
        args.seed.snapshot = found.and_then(|bytes| postcard::from_bytes(&bytes).ok());
        let machine = HostMachine::wake(args.seed);
        Ok(HostState { machine, id, world: args.world, shard: args.shard })
    }

    async fn post_start(&self, _me: ActorRef<HostMsg>, host: &mut HostState) -> Handled {
        host.step(HostEvent::TimerRang)
    }

    async fn handle(&self, me: ActorRef<HostMsg>, msg: HostMsg, host: &mut HostState) -> Handled {
        host.world.clock.step("host");
        match msg {
            HostMsg::Offer(lease) => host.step(HostEvent::Offered(lease)),
            HostMsg::Admitted(entries) => host.step(HostEvent::Admitted(entries)),
            HostMsg::WindowLoaded(request, rows) => {
                host.step(HostEvent::WindowLoaded { request, rows })
            }
            HostMsg::Moved { lease, not_before, expires_at } => {
                host.step(HostEvent::Moved { lease, not_before, expires_at })
            }
            HostMsg::Ended(completion) => host.step(HostEvent::Ended(completion)),
            HostMsg::RunErrand(errand) => host.step(HostEvent::ErrandCame(errand)),
            HostMsg::ErrandEnded(completion) => host.step(HostEvent::ErrandEnded(completion)),
            HostMsg::Wake => host.step(HostEvent::TimerRang),
            HostMsg::Order(overrides) => host.step(HostEvent::Ordered(overrides)),
            HostMsg::Park(reason) => host.step(HostEvent::Parked(reason)),
            HostMsg::Exclude(exclusions) => host.step(HostEvent::Excluded(exclusions)),
            HostMsg::Reload(settings) => host.reload(settings),
            HostMsg::Retire(counts) => host.retire(&me, counts),
            HostMsg::Observe(answer) => {
                answer.send(Box::new(host.view()));
                Ok(())
            }
        }
    }
}

impl HostState {
    fn step(&mut self, event: HostEvent) -> Handled {
        let effects = self.machine.step(self.world.moment(), event);
        self.report(effects)
    }

    fn report(&self, effects: Effects) -> Handled {
        let (phase, reason) = self.phase();
        let stepped = Stepped {
            host: self.id,
            effects,
            record: self.machine.record().clone(),
            next_wake: self.machine.next_wake(),
            idle: self.machine.is_idle(),
            phase,
            reason,
        };
        Ok(self.shard.send_message(ShardMsg::Stepped(Box::new(stepped)))?)
    }

    fn reload(&mut self, settings: Arc<crate::policy::host::HostSettings>) -> Handled {
        self.machine.set_settings(settings);
        self.step(HostEvent::TimerRang)
    }

    /// A host that is not idle stays, and says so by one more step.
    fn retire(&mut self, me: &ActorRef<HostMsg>, counts: HostCounts) -> Handled {
        if !self.machine.is_idle() {
            return self.step(HostEvent::TimerRang);
        }
        let snapshot: HostSnapshot = self.machine.snapshot(counts);
        match postcard::to_stdvec(&snapshot) {
            Ok(bytes) => self.world.snapshots.put(self.id, bytes),
            Err(error) => debug!(%error, host = %self.machine.key(), "snapshot left out"),
        }
        let next_wake = self.machine.next_wake();
        self.shard.send_message(ShardMsg::Retired { host: self.id, next_wake })?;
        me.stop(None);
        Ok(())
    }

    fn phase(&self) -> (HostPhase, Option<Reason>) {
        let now = self.world.clock.now();
        let record = self.machine.record();
        if let Some(reason) = record.stopped() {
            return (HostPhase::Parked, Some(reason));
        }
        if self.machine.in_flight() > 0 {
            return (HostPhase::InFlight, None);
        }
        if self.machine.next_wake().is_none() {
            return (HostPhase::Idle, None);
        }
        match self.machine.waits_beyond(now) {
            Some(reason) => (HostPhase::Waiting, Some(reason)),
            None => (HostPhase::Ready, None),
        }
    }

    fn view(&self) -> HostView {
        let (state, reason) = self.phase();
        let record = self.machine.record();
        HostView {
            host_key: record.key.clone(),
            state,
            reason: reason.map(|reason| reason.to_string()),
            next_allowed_at: next_request(record, self.machine.daily_budget()),
            delay_seconds: record.delay,
            delay_set_by: record.set_by,
            in_flight: tally(self.machine.in_flight()),
            pages_today: record.requests_today,
            budget: self.machine.daily_budget(),
            robots: robots_view(self.machine.robots()),
            backoff: record.backoff,
            allowance: record.overrides.clone(),
            window: tally(self.machine.window_len()),
            epoch: self.machine.epoch().0,
        }
    }
}

/// R2 as operators see it.
pub fn robots_view(robots: &RobotsState) -> RobotsView {
    let (state, fetched_at) = match robots {
        RobotsState::Unfetched => ("unfetched", None),
        RobotsState::Fresh { kind: FreshKind::Obey(_), fetched_at, .. } => {
            ("obey", Some(*fetched_at))
        }
        RobotsState::Fresh { kind: FreshKind::AllowAll, fetched_at, .. } => {
            ("allow_all", Some(*fetched_at))
        }
        RobotsState::Unreachable { asked_at, .. } => ("unreachable", Some(*asked_at)),
    };
    let rules = robots.rules();
    RobotsView {
        state,
        fetched_at,
        expires_at: robots.due_at(),
        rules: rules.map_or(0, |rules| tally(rules.len())),
        crawl_delay: robots.crawl_delay(),
        sitemaps: rules.map_or_else(Vec::new, |rules| rules.sitemaps().to_vec()),
    }
}

/// The offer of a step, for the shard's credit.
pub(super) fn offer_was_granted(answer: &OfferAnswer) -> bool {
    match answer {
        OfferAnswer::Granted => true,
        OfferAnswer::Withheld(_) => false,
    }
}
