//! Completions: what an exchange leaves behind (F6, F7, F8, R2).

use std::time::Duration;

use super::effects::{Effects, Errand};
use super::machine::{HostMachine, RobotsAsking};
use super::wishes::is_for_reservations;
use crate::policy::backoff;
use crate::policy::change::Change;
use crate::policy::exclusion;
use crate::policy::politeness::{Delay, delay_after};
use crate::policy::retry::{AfterFailure, after_failure};
use crate::policy::robots::{self, RobotsAnswer, RobotsState};
use crate::types::{
    Completion, CrawlEvent, DeadLetter, Happening, Hindrance, Lease, LeaseKind, LedgerRow, Moment,
    Outcome, Reason, RobotsRecord, Subject, Timestamp, ToParse, UrlId, UrlStatus, UrlVersion,
    VisitRecord,
};

/// The first wait after a request for robots.txt that never left us.
const UNSENT_RETRY_BASE: Duration = Duration::from_secs(1);
/// The first wait after an address that may not be connected to: the name may point elsewhere then,
/// or the operator may have allowed the network. Longer than a crawl waits for its last hosts.
const REFUSED_RETRY_BASE: Duration = Duration::from_secs(5 * 60);

impl HostMachine {
    /// F6: conditional on the lease; a second completion changes nothing.
    pub(super) fn ended(&mut self, now: Moment, completion: Completion, effects: &mut Effects) {
        let Some(lease) = self.in_flight.remove(&completion.lease).map(|lease| *lease) else {
            effects.repeated = true;
            return;
        };
        debug_assert_eq!(lease.entry.version, completion.version, "I5: the version of the lease");
        self.move_clock(now, &completion, effects);
        effects.changes.push(Change::Record {
            // Behind its grant, whatever the clocks of others say: what is in flight is read so.
            at: completion.ended_at.max(lease.granted_at),
            row: Box::new(LedgerRow::Ended {
                lease: lease.id,
                sent_at: completion.sent_at,
                ended_at: completion.ended_at,
                outcome: completion.outcome,
                address: completion.address,
            }),
        });
        let kind = lease.kind.clone();
        match kind {
            LeaseKind::Page => self.page_ended(now, lease, completion, effects),
            LeaseKind::Robots { for_host, .. } if for_host != self.record.key => {
                effects.errand_ended = Some((for_host, Box::new(completion)));
            }
            LeaseKind::Robots { hops: 0, .. } if is_for_reservations(&lease.entry.url) => {
                self.reservations_ended(now, completion, effects);
            }
            LeaseKind::Robots { hops, .. } => self.robots_ended(now, hops, completion, effects),
        }
    }

    /// F4, F7: the delay runs from the end of the exchange; a refusal makes it longer.
    fn move_clock(&mut self, now: Moment, completion: &Completion, effects: &mut Effects) {
        let politeness = self.politeness();
        let asked = self.robots.crawl_delay();
        let refused = completion.outcome == Outcome::RateLimited;
        let refusal = refused
            .then(|| backoff::refused(&mut self.record.backoff, completion.retry_after, now));
        if !refused && completion.outcome.is_exchange() {
            backoff::recovered(&mut self.record.backoff);
        }
        if completion.sent_at.is_none() {
            return;
        }
        let pace = backoff::pace(&self.record.backoff);
        let delay = delay_after(&politeness, asked, completion.took(), pace, now);
        self.record.delay = delay.wait;
        self.wait_until(completion.ended_at, delay);
        if let Some(refusal) = refusal {
            self.wait_until(completion.ended_at, refusal);
        }
        if let Some(wait) = completion.retry_after {
            let until = completion.ended_at + wait;
            self.record.site_wait_until = self.record.site_wait_until.max(Some(until));
            effects.urgent = true;
        }
    }

    /// H-5: clocks only ever move forward.
    fn wait_until(&mut self, from: Timestamp, delay: Delay) {
        let until = from + delay.wait;
        if until > self.record.next_allowed_at {
            self.record.next_allowed_at = until;
            self.record.set_by = delay.set_by;
        }
    }

    fn page_ended(
        &mut self,
        now: Moment,
        lease: Lease,
        completion: Completion,
        effects: &mut Effects,
    ) {
        if is_excluded(&completion)
            && let Some(found) = self.exclusions.find(&lease.entry.url, now.at)
        {
            // R5: cut or given up for an exclusion: no try, and it sleeps until that is gone.
            return self.put_to_sleep(lease.entry, exclusion::reason(found), effects);
        }
        effects.changes.push(Change::dequeue(&lease.entry));
        effects.dequeued += 1;
        if completion.outcome.is_retried() {
            self.page_failed(now, lease, completion, effects);
        } else {
            self.page_done(lease, completion, effects);
        }
    }

    /// F8: tried again at a time kept in the store, or given up.
    fn page_failed(
        &mut self,
        now: Moment,
        mut lease: Lease,
        completion: Completion,
        effects: &mut Effects,
    ) {
        let withdrawn = completion.reason == Some(Reason::Stopping) || is_excluded(&completion);
        if !withdrawn {
            lease.entry.attempts = lease.entry.attempts.saturating_add(1);
        }
        let attempts = lease.entry.attempts;
        match after_failure(&self.settings.retries, attempts) {
            AfterFailure::Again(wait) => {
                let asked = completion.retry_after.unwrap_or_default();
                let shake = wait.mul_f64(0.1 * now.fraction());
                let wait = if withdrawn { asked } else { (wait + shake).max(asked) };
                let due = completion.ended_at + wait;
                let visit = self.visit(&lease, &completion, UrlStatus::Retrying, Some(due));
                effects.changes.push(failed_visit(lease.entry.id, visit));
                effects.changes.push(Change::Defer { due, entry: Box::new(lease.entry) });
                effects.deferred += 1;
            }
            AfterFailure::GiveUp => {
                let reason = Reason::TriedTooOften { outcome: completion.outcome, attempts };
                let mut visit = self.visit(&lease, &completion, UrlStatus::Dead, None);
                visit.reason = Some(reason.clone());
                effects.changes.push(failed_visit(lease.entry.id, visit));
                emit(&lease, completion.ended_at, fetched(&lease, &completion), effects);
                let dead = Happening::Dead { reason: reason.to_string() };
                emit(&lease, completion.ended_at, dead, effects);
                effects.changes.push(Change::PutDead(Box::new(DeadLetter {
                    entry: lease.entry,
                    reason,
                    attempts,
                    last_at: completion.ended_at,
                })));
                effects.buried += 1;
            }
        }
    }

    fn page_done(&mut self, lease: Lease, completion: Completion, effects: &mut Effects) {
        let gone = matches!(completion.status, Some(404 | 410));
        let status = if gone { UrlStatus::Gone } else { UrlStatus::Fetched };
        let due = self.settings.revisit_after.map(|span| completion.ended_at + span);
        let visit = self.visit(&lease, &completion, status, due);
        effects.changes.push(Change::PutVisit(lease.entry.id, Box::new(visit)));
        if lease.entry.attempts > 0 && lease.entry.version > UrlVersion::FIRST {
            effects.changes.push(Change::DropFailing(lease.entry.id));
        }
        emit(&lease, completion.ended_at, fetched(&lease, &completion), effects);
        if let (true, Some(status)) = (gone, completion.status) {
            emit(&lease, completion.ended_at, Happening::Tombstone { status }, effects);
        }
        if let Some(mut row) = to_parse(&lease, &completion) {
            row.usage = self.wishes_on_use_of(&row.url);
            effects.changes.push(Change::PutToParse(Box::new(row)));
        }
        if let Some(due) = due {
            let mut entry = lease.entry;
            entry.version = UrlVersion(entry.version.0.saturating_add(1));
            entry.attempts = 0;
            entry.validators = completion.validators.or(entry.validators);
            effects.changes.push(Change::Defer { due, entry: Box::new(entry) });
            effects.deferred += 1;
        }
    }

    fn visit(
        &self,
        lease: &Lease,
        completion: &Completion,
        status: UrlStatus,
        due: Option<Timestamp>,
    ) -> VisitRecord {
        VisitRecord {
            version: lease.entry.version,
            status,
            outcome: Some(completion.outcome),
            status_code: completion.status,
            attempts: tries(lease, status),
            last_fetched_at: completion.sent_at.map(|_| completion.ended_at),
            next_fetch_at: due,
            digest: completion.digest.clone(),
            archive: completion.archive.clone(),
            validators: completion.validators.clone(),
            reason: completion.reason.clone(),
        }
    }

    /// R2: what robots.txt answered; a redirect is one more hop (H2).
    fn robots_ended(
        &mut self,
        now: Moment,
        hops: u8,
        completion: Completion,
        effects: &mut Effects,
    ) {
        self.asking = RobotsAsking::No;
        let ended_at = completion.ended_at;
        if is_ours(&completion) {
            return self.robots_hindered(now, &completion);
        }
        let answer = match completion.outcome {
            Outcome::Redirect => match self.robots_target(hops, &completion) {
                Ok(errand) => return self.follow_robots(now, errand, effects),
                Err(answer) => answer,
            },
            Outcome::Ok
            | Outcome::NotModified
            | Outcome::ClientError
            | Outcome::ServerError
            | Outcome::RateLimited
            | Outcome::Truncated => match completion.status {
                Some(code) => RobotsAnswer::Status {
                    code,
                    body: completion.robots_body,
                    max_age: completion.max_age,
                },
                None => failed(&completion),
            },
            Outcome::RobotsRefused
            | Outcome::Timeout
            | Outcome::Dns
            | Outcome::Connect
            | Outcome::Tls
            | Outcome::Protocol
            | Outcome::TooLarge
            | Outcome::UnwantedType
            | Outcome::Decode
            | Outcome::EgressRefused
            | Outcome::Cancelled => failed(&completion),
        };
        self.robots_answered(now, ended_at, answer, effects);
    }

    /// R2: we failed, not the site: its rules stay as they were and are asked for again. Where the
    /// site was bothered, or an address refused, the tries are as far apart as those of a file
    /// that is unreachable.
    pub(super) fn robots_hindered(&mut self, now: Moment, completion: &Completion) {
        let tries = self.hindrance().map_or(0, |hindrance| hindrance.tries);
        let unsent = completion.outcome == Outcome::Cancelled && completion.sent_at.is_none();
        let refused = completion.outcome == Outcome::EgressRefused;
        let base = match (refused, unsent) {
            (true, _) => REFUSED_RETRY_BASE,
            (false, true) => UNSENT_RETRY_BASE,
            (false, false) => self.settings.robots.retry_base,
        };
        self.record.hindered = Some(Box::new(Hindrance {
            retry_at: now.at + robots::retry_delay(now, tries, base),
            tries: tries.saturating_add(1),
            reason: completion.reason.clone().unwrap_or(Reason::RobotsNeeded),
        }));
    }

    /// What the host's row says of a robots.txt that cannot be had and left no good copy.
    fn robots_out_of_reach(&self) -> Option<Hindrance> {
        let retry_at = self.robots_wait()?;
        let RobotsState::Unreachable { since, why, attempts, .. } = &self.robots else {
            return None;
        };
        let reason = Reason::RobotsUnreachable { since: *since, why: why.clone() };
        Some(Hindrance { retry_at, tries: *attempts, reason })
    }

    /// R3, F4: a Crawl-delay holds from the answer that brought it, so for the first page as well.
    fn obey_crawl_delay(&mut self, now: Moment, ended_at: Timestamp) {
        let Some(asked) = self.robots.crawl_delay() else { return };
        let pace = backoff::pace(&self.record.backoff);
        let delay = delay_after(&self.politeness(), Some(asked), Duration::ZERO, pace, now);
        self.record.delay = self.record.delay.max(delay.wait);
        self.wait_until(ended_at, delay);
    }

    /// The next hop of a robots.txt redirect, or what its end means.
    fn robots_target(&self, hops: u8, completion: &Completion) -> Result<Errand, RobotsAnswer> {
        if hops >= self.settings.robots.max_redirects {
            return Err(RobotsAnswer::TooManyRedirects);
        }
        let target = completion.location.as_deref().map(|location| completion.url.join(location));
        match target {
            Some(Ok(url)) => Ok(Errand { for_host: self.record.key.clone(), url, hops: hops + 1 }),
            // Without a target that can be asked it is a status like any other.
            Some(Err(_)) | None => Err(RobotsAnswer::Status {
                code: completion.status.unwrap_or(300),
                body: None,
                max_age: completion.max_age,
            }),
        }
    }

    /// The answer of a host that was sent on an errand.
    pub(super) fn errand_ended(
        &mut self,
        now: Moment,
        completion: Completion,
        effects: &mut Effects,
    ) {
        if let RobotsAsking::Away { hops, .. } = self.asking {
            if is_excluded(&completion) {
                // R5: nobody will ask for it, so to this host it is as good as gone.
                return self.robots_failed(now, "it redirects to a host that is excluded", effects);
            }
            self.robots_ended(now, hops, completion, effects);
        }
    }

    /// The robots.txt exchange ended without an answer.
    pub(super) fn robots_failed(&mut self, now: Moment, why: &str, effects: &mut Effects) {
        self.asking = RobotsAsking::No;
        let answer = RobotsAnswer::Failed { why: why.to_owned() };
        self.robots_answered(now, now.at, answer, effects);
    }

    fn robots_answered(
        &mut self,
        now: Moment,
        ended_at: Timestamp,
        answer: RobotsAnswer,
        effects: &mut Effects,
    ) {
        self.record.hindered = None;
        self.robots_unused = true;
        let is_file = matches!(&answer, RobotsAnswer::Status { code: 200..=299, .. });
        // I2: it decides from when it came, however late we hear of it.
        let came = Moment::new(ended_at.min(now.at), now.dice);
        let answered = self.robots.answer(came, answer, &self.settings.robots);
        self.obey_crawl_delay(now, ended_at);
        // I3: a site that asks for a delay has asked.
        effects.urgent |= self.robots.crawl_delay().is_some();
        self.robots.hold_for(self.ready_at());
        self.record.hindered = self.robots_out_of_reach().map(Box::new);
        if let Some(rules) = self.robots.rules().filter(|_| is_file) {
            effects.sitemaps = rules.sitemaps().to_vec();
        }
        let record = self
            .robots
            .to_record()
            .map(|record| RobotsRecord { reservations: self.reservations.clone(), ..record });
        effects.changes.extend(record.map(|row| Change::PutRobots(self.id, Box::new(row))));
        effects.wake_sleepers = answered.rules_changed;
    }
}

/// F8: a visit that failed. That of a known page lies beside the page's row, which keeps its last
/// good state.
pub(super) fn failed_visit(id: UrlId, visit: VisitRecord) -> Change {
    if visit.version > UrlVersion::FIRST {
        Change::PutFailing(id, Box::new(visit))
    } else {
        Change::PutVisit(id, Box::new(visit))
    }
}

/// Tries in this version; a failed one is in the entry already.
fn tries(lease: &Lease, status: UrlStatus) -> u8 {
    match status {
        UrlStatus::Retrying | UrlStatus::Dead => lease.entry.attempts,
        UrlStatus::Fetched | UrlStatus::Gone | UrlStatus::Queued | UrlStatus::Sleeping => {
            lease.entry.attempts.saturating_add(1)
        }
    }
}

/// R5: an exclusion ended it.
fn is_excluded(completion: &Completion) -> bool {
    matches!(completion.reason, Some(Reason::Excluded { .. }))
}

/// Whether an exchange failed on our side: what the site would have said is not known.
pub(super) fn is_ours(completion: &Completion) -> bool {
    matches!(completion.outcome, Outcome::Cancelled | Outcome::EgressRefused)
        || completion.reason == Some(Reason::LeaseExpired)
}

fn failed(completion: &Completion) -> RobotsAnswer {
    let why = completion
        .reason
        .as_ref()
        .map_or_else(|| completion.outcome.to_string(), ToString::to_string);
    RobotsAnswer::Failed { why }
}

fn fetched(lease: &Lease, completion: &Completion) -> Happening {
    let before = lease.entry.validators.as_ref().and_then(|seen| seen.digest.as_ref());
    let changed = match (before, &completion.digest) {
        (Some(_), _) if completion.outcome == Outcome::NotModified => Some(false),
        (Some(before), Some(digest)) => Some(before != digest),
        (Some(_) | None, _) => None,
    };
    Happening::Fetched {
        status: completion.status,
        outcome: completion.outcome,
        bytes: completion.bytes,
        digest: completion.digest.clone(),
        archive: completion.archive.clone(),
        changed,
    }
}

fn emit(lease: &Lease, at: Timestamp, happening: Happening, effects: &mut Effects) {
    let subject = Subject::Url {
        url: lease.entry.url.to_string(),
        url_id: lease.entry.id,
        version: lease.entry.version,
    };
    effects.changes.push(Change::Emit(Box::new(CrawlEvent { at, subject, happening })));
}

/// P4: pages and redirects are parsed; what brought no body, or nobody's type, is not.
fn to_parse(lease: &Lease, completion: &Completion) -> Option<ToParse> {
    let parsed = match completion.outcome {
        Outcome::Ok | Outcome::Truncated | Outcome::Redirect => true,
        Outcome::NotModified
        | Outcome::ClientError
        | Outcome::ServerError
        | Outcome::RobotsRefused
        | Outcome::RateLimited
        | Outcome::Timeout
        | Outcome::Dns
        | Outcome::Connect
        | Outcome::Tls
        | Outcome::Protocol
        | Outcome::TooLarge
        | Outcome::UnwantedType
        | Outcome::Decode
        | Outcome::EgressRefused
        | Outcome::Cancelled => false,
    };
    let archive = completion.archive.clone().filter(|_| parsed)?;
    Some(ToParse {
        id: lease.entry.id,
        version: lease.entry.version,
        url: lease.entry.url.clone(),
        depth: lease.entry.depth,
        redirects: lease.entry.redirects,
        status: completion.status?,
        fetched_at: completion.sent_at.unwrap_or(completion.ended_at),
        archive,
        discovered_from: lease.entry.discovered_from.clone(),
        reason: completion.reason.clone(),
        attempts: 0,
        usage: Vec::new(),
    })
}
