//! R6: what a host says on the use of a page that was just fetched: in its robots.txt, and in
//! `/.well-known/tdmrep.json` where the settings ask for that.
//!
//! The copies in force when the page was fetched count (aipref-attach 3.3), and later ones do not
//! change what was said. They are read once each, when the first page has come.
//!
//! The well-known file is asked for like robots.txt, by a lease of the same kind, before the next
//! page goes: at most once a day, once an hour while it fails, and never where robots.txt refuses
//! it. No redirect of it is followed, and a host that does not give it has none.

use std::time::Duration;

use bytes::Bytes;

use super::completing::is_ours;
use super::effects::{Effects, Errand};
use super::machine::{HostMachine, RobotsAsking};
use crate::policy::change::Change;
use crate::policy::robots::Decision;
use crate::policy::wishes::{Reservations, SiteWishes};
use crate::types::{
    Completion, CrawlUrl, LeaseId, Moment, Outcome, ReservationsRecord, Timestamp, UsageWish,
};

/// Where TDMRep has a host's reservations.
const WELL_KNOWN: &str = "/.well-known/tdmrep.json";
/// How long an answer is used.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// How long it is not asked for after a failure.
const FAILED_FOR: Duration = Duration::from_secs(3600);

/// What the host's files say on use, read.
#[derive(Clone, Debug)]
pub(super) struct SiteWishesRead {
    text: Bytes,
    product: String,
    wishes: SiteWishes,
    reserved: Bytes,
    reservations: Reservations,
}

/// Whether a URL is the one that reservations are asked for at.
pub(super) fn is_for_reservations(url: &CrawlUrl) -> bool {
    url.path_and_query() == WELL_KNOWN
}

impl SiteWishesRead {
    fn new(text: Bytes, product: &str, reserved: Bytes, is_cut: bool) -> Self {
        Self {
            wishes: SiteWishes::read(&text, product),
            reservations: Reservations::read(&reserved, is_cut),
            text,
            product: product.to_owned(),
            reserved,
        }
    }

    /// Compares places, not bytes: while this holds a copy no other can be where it is.
    fn is_of(&self, text: &Bytes, product: &str, reserved: &Bytes) -> bool {
        let same = |one: &Bytes, other: &Bytes| {
            one.len() == other.len() && (one.is_empty() || one.as_ptr() == other.as_ptr())
        };
        same(&self.text, text) && same(&self.reserved, reserved) && self.product == product
    }
}

impl HostMachine {
    /// What the host's files say on the use of one of its pages.
    pub(super) fn wishes_on_use_of(&mut self, url: &CrawlUrl) -> Vec<UsageWish> {
        let text = self.robots.rules().map(|rules| rules.text().clone()).unwrap_or_default();
        let kept = self.reservations.as_ref();
        let reserved = kept.map(|kept| kept.text.clone()).unwrap_or_default();
        if text.is_empty() && reserved.is_empty() {
            return Vec::new();
        }
        let is_cut = kept.is_some_and(|kept| kept.is_cut);
        let reserved_at = kept.map(|kept| kept.fetched_at);
        let product = self.settings.robots.product.as_str();
        let read = match self.site_wishes.take() {
            Some(read) if read.is_of(&text, product, &reserved) => read,
            Some(_) | None => Box::new(SiteWishesRead::new(text, product, reserved, is_cut)),
        };
        let path = url.path_and_query();
        let mut usage = read.wishes.of(path, self.robots.said_at());
        usage.extend(read.reservations.of(path, reserved_at));
        self.site_wishes = Some(read);
        usage
    }

    /// Whether reservations have to be asked for before a page departs at `at`. An answer from the
    /// future was dated by a clock that has been set back (A4).
    pub(super) fn needs_reservations(&self, at: Timestamp) -> bool {
        let settings = &self.settings.robots;
        let kept = self.reservations.as_ref();
        let is_kept = kept.is_some_and(|kept| kept.fetched_at <= at && at < kept.expires_at);
        let may_be_asked =
            || matches!(self.robots.decide(at, WELL_KNOWN, settings), Decision::Allow { .. });
        // As with robots.txt: what was answered lets at least one page go, however late.
        let is_unused = self.reservations_unused && kept.is_some_and(|kept| kept.fetched_at <= at);
        settings.reservations && !is_kept && !is_unused && may_be_asked()
    }

    /// Asks for them on the lease that was offered.
    pub(super) fn ask_for_reservations(
        &mut self,
        now: Moment,
        lease: LeaseId,
        effects: &mut Effects,
    ) {
        let url = CrawlUrl::parse(&format!("{}{WELL_KNOWN}", self.record.key));
        let url = url.expect("a host and a path are a URL");
        let errand = Errand { for_host: self.record.key.clone(), url, hops: 0 };
        self.grant_robots(now, lease, errand, effects);
    }

    /// What came. Only an answer of the site replaces the copy before: a failure leaves it in force
    /// for an hour, and one of ours says nothing at all.
    pub(super) fn reservations_ended(
        &mut self,
        now: Moment,
        completion: Completion,
        effects: &mut Effects,
    ) {
        self.asking = RobotsAsking::No;
        if is_ours(&completion) {
            return self.robots_hindered(now, &completion);
        }
        self.record.hindered = None;
        self.reservations_unused = true;
        let came = completion.ended_at.min(now.at);
        let record = match completion.outcome {
            Outcome::Ok | Outcome::Truncated => {
                let is_file = matches!(completion.status, Some(200..=299));
                let text = completion.robots_body.filter(|_| is_file).unwrap_or_default();
                let is_cut = completion.outcome == Outcome::Truncated && is_file;
                ReservationsRecord { fetched_at: came, expires_at: came + KEPT_FOR, text, is_cut }
            }
            Outcome::ClientError | Outcome::Redirect => ReservationsRecord {
                fetched_at: came,
                expires_at: came + KEPT_FOR,
                text: Bytes::new(),
                is_cut: false,
            },
            Outcome::NotModified
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
            | Outcome::Cancelled => {
                let before = self.reservations.take().map(|before| (before.text, before.is_cut));
                let (text, is_cut) = before.unwrap_or_default();
                ReservationsRecord { fetched_at: came, expires_at: came + FAILED_FOR, text, is_cut }
            }
        };
        self.reservations = Some(Box::new(record));
        if let Some(mut record) = self.robots.to_record() {
            record.reservations = self.reservations.clone();
            effects.changes.push(Change::PutRobots(self.id, Box::new(record)));
        }
    }
}
