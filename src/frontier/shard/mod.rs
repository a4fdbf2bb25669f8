//! ShardActor: its store's one writer, the ready queue, resident hosts, credit, one timer.
//!
//! - S-1 No handler waits for the store, the resolver or an address: answers come as messages.
//! - S-2 One write and one flush are under way at most; what comes meanwhile goes into the next.
//! - S-3 A lease leaves the shard only when its row is durable (I7).
//! - S-4 Admissions are judged one gathered read at a time, so a URL is known exactly once (I4).
//!
//! It does not decide about a host: its HostActor does. It does not fetch, store or parse.

mod state;
mod commit;
mod recover;
mod asleep;
mod admit;
mod hosts;
mod failing;
mod queues;
mod grants;
mod ends;
mod parsing;
mod operators;
mod shown;
mod exclusions;
mod purge;
mod why;
mod closing;
mod view;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};

use crate::protocol::ShardMsg;

pub use recover::is_paused;
use state::Shard;
pub use state::ShardArgs;
pub use why::{InMemory, facts};

/// The actor of one shard.
#[derive(Debug)]
pub struct ShardActor;

type Handled = Result<(), ActorProcessingErr>;

impl Actor for ShardActor {
    type Msg = ShardMsg;
    type State = Shard;
    type Arguments = ShardArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ShardMsg>,
        args: ShardArgs,
    ) -> Result<Shard, ActorProcessingErr> {
        Ok(recover::recover(me, args).await?)
    }

    /// What the process before left behind goes on at once.
    async fn post_start(&self, _me: ActorRef<ShardMsg>, shard: &mut Shard) -> Handled {
        shard.go_on();
        Ok(())
    }

    async fn handle(&self, _me: ActorRef<ShardMsg>, msg: ShardMsg, shard: &mut Shard) -> Handled {
        shard.world.clock.step("shard");
        match msg {
            ShardMsg::Admit(batch) => shard.admit(batch),
            ShardMsg::Stepped(stepped) => shard.stepped(*stepped),
            ShardMsg::NotStarted { actor, why } => shard.host_failed(actor, &why),
            ShardMsg::Retired { host, next_wake } => shard.retired(host, next_wake),
            ShardMsg::Ended(report) => shard.ended(*report),
            ShardMsg::ParserDied { id, version } => shard.parser_died(id, version),
            ShardMsg::Published(batch) => shard.published(*batch),
            ShardMsg::Resolved { lease, answer } => shard.resolved(lease, answer),
            ShardMsg::Permitted { lease, not_before } => shard.permitted(lease, not_before),
            ShardMsg::RunErrand(errand) => shard.run_errand(errand),
            ShardMsg::ErrandEnded { for_host, completion } => {
                shard.errand_ended(&for_host, completion);
            }
            ShardMsg::Store(reply) => shard.store_replied(reply)?,
            ShardMsg::Tick => shard.tick(),
            ShardMsg::Order(order, answer) => shard.order(order, answer),
            ShardMsg::Pause(paused, answer) => shard.pause(paused, answer),
            ShardMsg::Exclude(record, answer) => shard.exclude(*record, answer),
            ShardMsg::LiftExclusion(id, answer) => shard.lift_exclusion(&id, answer),
            ShardMsg::ListExclusions(answer) => answer.send(shard.list_exclusions()),
            ShardMsg::PutPurge(record, answer) => shard.put_purge(*record, answer),
            ShardMsg::ListPurges(answer) => answer.send(shard.list_purges()),
            ShardMsg::Forget(id, answer) => shard.forget(id, answer),
            ShardMsg::RetryDead(selection, answer) => shard.retry_dead(selection, answer),
            ShardMsg::LookUpUrl(url, answer) => shard.look_up_url(url, answer),
            ShardMsg::Why(url, answer) => shard.why(url, answer),
            ShardMsg::LookUpHost(host, answer) => shard.look_up_host(host, answer),
            ShardMsg::ListSeeded(answer) => shard.list_seeded(answer),
            ShardMsg::ListHosts(filter, answer) => shard.list_hosts(filter, answer),
            ShardMsg::ListDead(after, limit, answer) => shard.list_dead(after, limit, answer),
            ShardMsg::ReadEvents(after, limit, answer) => shard.read_events(after, limit, answer),
            ShardMsg::LookUpPayload(digest, answer) => shard.look_up_payload(digest, answer),
            ShardMsg::KnowPayload(digest, record) => shard.know_payload(digest, record),
            ShardMsg::ClaimText(text, record, answer) => shard.claim_text(text, record, answer),
            ShardMsg::TextRead(text, found, record, answer) => {
                shard.text_read(text, found, record, answer);
            }
            ShardMsg::Reload => shard.reload(),
            ShardMsg::Begin => shard.waits = false,
            ShardMsg::Drain => shard.drain(),
            ShardMsg::Close(answer) => shard.close(answer),
            ShardMsg::Observe(answer) => answer.send(Box::new(shard.view())),
        }
        shard.go_on();
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ShardMsg>,
        event: SupervisionEvent,
        shard: &mut Shard,
    ) -> Handled {
        if let SupervisionEvent::ActorFailed(cell, error) = event {
            shard.host_failed(cell.get_id(), &error.to_string());
            shard.go_on();
        }
        Ok(())
    }
}
