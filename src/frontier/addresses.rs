//! AddressActor: the clocks of the addresses whose hash is its own (F4).
//!
//! One actor keeps many addresses, because a clock is a few bytes and an actor is not. When it
//! fails, the safe rule holds: its successor takes every address as just visited.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::policy::address_clock::{AddressBook, AddressRules};
use crate::protocol::address::AddressView;
use crate::protocol::{AddressMsg, Answer};
use crate::supervise::Alarm;
use crate::types::{LeaseId, Timestamp, tally};
use crate::world::World;

/// How often addresses that nobody uses are forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The actor.
#[derive(Debug)]
pub struct AddressActor;

/// What it starts with.
#[derive(Debug)]
pub struct AddressArgs {
    /// `politeness.per_address_*`.
    pub rules: AddressRules,
    /// The world.
    pub world: World,
}

/// The actor's state.
pub struct AddressState {
    book: AddressBook,
    /// Leases in line for a place.
    asking: BTreeMap<(IpAddr, LeaseId), Answer<Timestamp>>,
    /// Requests that wait for their address's clock, earliest first.
    departing: BTreeMap<(Timestamp, LeaseId), (IpAddr, Answer<Timestamp>)>,
    alarm: Alarm<AddressMsg>,
    swept_at: Timestamp,
    world: World,
}

impl Actor for AddressActor {
    type Msg = AddressMsg;
    type State = AddressState;
    type Arguments = AddressArgs;

    async fn pre_start(
        &self,
        me: ActorRef<AddressMsg>,
        args: AddressArgs,
    ) -> Result<AddressState, ActorProcessingErr> {
        let now = args.world.clock.now();
        Ok(AddressState {
            book: AddressBook::new(args.rules, now),
            asking: BTreeMap::new(),
            departing: BTreeMap::new(),
            alarm: Alarm::new(Arc::clone(&args.world.clock), me, || AddressMsg::Wake),
            swept_at: now,
            world: args.world,
        })
    }

    async fn handle(
        &self,
        _me: ActorRef<AddressMsg>,
        msg: AddressMsg,
        state: &mut AddressState,
    ) -> Result<(), ActorProcessingErr> {
        state.world.clock.step("address");
        match msg {
            AddressMsg::Ask { address, lease, not_before, answer } => {
                state.ask(address, lease, not_before, answer);
            }
            AddressMsg::Depart { address, lease, answer } => {
                state.depart(address, lease, answer);
            }
            AddressMsg::Left { address, lease, ended_at } => state.left(address, lease, ended_at),
            AddressMsg::Wake => state.wake(),
            AddressMsg::Reload(rules) => state.book.set_rules(rules),
            AddressMsg::Observe(answer) => answer.send(state.view()),
        }
        state.arm();
        Ok(())
    }
}

impl AddressState {
    fn ask(
        &mut self,
        address: IpAddr,
        lease: LeaseId,
        not_before: Timestamp,
        answer: Answer<Timestamp>,
    ) {
        match self.book.ask(address, lease) {
            Some(next) => answer.send(next.max(not_before)),
            None => drop(self.asking.insert((address, lease), answer)),
        }
    }

    fn depart(&mut self, address: IpAddr, lease: LeaseId, answer: Answer<Timestamp>) {
        let now = self.world.clock.now();
        match self.book.depart(address, now) {
            Ok(()) => answer.send(now),
            Err(until) => {
                self.departing.insert((until, lease), (address, answer));
            }
        }
    }

    fn left(&mut self, address: IpAddr, lease: LeaseId, ended_at: Option<Timestamp>) {
        self.asking.remove(&(address, lease));
        if let Some((next, at)) = self.book.left(address, lease, ended_at)
            && let Some(answer) = self.asking.remove(&(address, next))
        {
            answer.send(at);
        }
    }

    fn wake(&mut self) {
        let now = self.world.clock.now();
        self.alarm.rang();
        while let Some(entry) = self.departing.first_entry()
            && entry.key().0 <= now
        {
            let ((_, lease), (address, answer)) = entry.remove_entry();
            self.depart(address, lease, answer);
        }
        if now.since(self.swept_at) >= SWEEP_EVERY {
            self.book.sweep(now);
            self.swept_at = now;
        }
    }

    /// One timer, for the first that waits and for the next sweep.
    fn arm(&mut self) {
        let first = self.departing.first_key_value().map(|((at, _), _)| *at);
        let sweep = self.swept_at + SWEEP_EVERY;
        let at = first.map_or(sweep, |first| first.min(sweep));
        self.alarm.set(at);
    }

    fn view(&self) -> AddressView {
        let (addresses, in_flight, waiting) = self.book.counts();
        AddressView {
            addresses: tally(addresses),
            in_flight: tally(in_flight),
            waiting: tally(waiting),
        }
    }
}
