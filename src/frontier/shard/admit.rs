//! Admission: candidates in, new URLs queued (D2, F12, I4).
//!
//! Batches gather while one is judged. What the fingerprint cache and the filter cannot decide is
//! read in one gathered read; it begins only when the changes before it are written, so that a URL
//! is never admitted twice (S-4).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::commit::Then;
use super::recover::add;
use super::state::{Shard, fault};
use crate::policy::change::Change;
use crate::policy::exclusion;
use crate::policy::normalise;
use crate::protocol::shard::{
    Admission, AdmissionRead, AdmitAnswer, AdmitBatch, Candidate, StoreFault, StoreReply,
};
use crate::protocol::{Answer, HostMsg, ShardMsg};
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlEvent, CrawlUrl, Happening, HostCounts, HostId, HostKey, HostRecord, QueueEntry, Reason,
    Subject, UrlId, UrlRecord, UrlVersion,
};

/// Candidates judged at once.
const JUDGED_AT_ONCE: usize = 20_000;
/// URLs with the same 64-bit hash on one host that are told apart.
const DISAMBIGUATORS: u8 = 16;

/// The pipeline of admissions.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    waiting: VecDeque<AdmitBatch>,
    reading: Option<Vec<AdmitBatch>>,
    /// Table keys that the filter called absent when the read began: they need no row.
    absent: BTreeSet<UrlId>,
    /// Hosts whose rows need no read: remembered when it began, or gone to rest since.
    resting: BTreeMap<HostId, (HostRecord, HostCounts)>,
}

impl Admissions {
    /// Batches under way.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.reading.as_ref().map_or(0, Vec::len)
    }

    /// A host has gone to rest with this row; a read under way may have seen an older one.
    pub(super) fn note_retired(&mut self, id: HostId, record: &HostRecord, counts: HostCounts) {
        if self.reading.is_some() {
            self.resting.insert(id, (record.clone(), counts));
        }
    }
}

/// What one judgement gathers.
#[derive(Default)]
struct Judgement {
    changes: Vec<Change>,
    /// Rows and counts of the hosts touched.
    hosts: BTreeMap<HostId, (HostRecord, HostCounts, bool)>,
    /// For resident hosts.
    entries: BTreeMap<HostId, Vec<QueueEntry>>,
    /// URLs added by this very judgement.
    added: BTreeMap<UrlId, CrawlUrl>,
}

impl Shard {
    /// Candidates have come.
    pub(super) fn admit(&mut self, batch: AdmitBatch) {
        self.admissions.waiting.push_back(batch);
    }

    /// Starts the next read when the one before is done and written.
    pub(super) fn go_on_admitting(&mut self) {
        let admissions = &mut self.admissions;
        if admissions.waiting.is_empty() || admissions.reading.is_some() {
            return;
        }
        let mut batches = Vec::new();
        let mut candidates = 0;
        while let Some(batch) = admissions.waiting.pop_front() {
            candidates += batch.candidates.len();
            batches.push(batch);
            if candidates >= JUDGED_AT_ONCE {
                break;
            }
        }
        let mut urls: BTreeMap<UrlId, CrawlUrl> = BTreeMap::new();
        let mut hosts: BTreeSet<HostKey> = BTreeSet::new();
        let mut absent = BTreeSet::new();
        let mut resting = BTreeMap::new();
        for candidate in batches.iter().flat_map(|batch| &batch.candidates) {
            let id = UrlId {
                host: self.host_id(&candidate.host),
                hash: candidate.hash,
                disambiguator: 0,
            };
            let recognised = normalise::recognised(&candidate.record.url);
            let seen = self.fingerprints.of(&recognised);
            if self.fingerprints.contains(seen) {
                continue;
            }
            if self.filter.says_absent(&id) {
                absent.insert(id);
            } else {
                urls.insert(id, candidate.record.url.clone());
            }
            if self.residents.contains_key(&id.host) || resting.contains_key(&id.host) {
                continue;
            }
            match self.asleep.get(id.host).filter(|row| row.0.key == candidate.host) {
                Some(row) => drop(resting.insert(id.host, row.clone())),
                None => drop(hosts.insert(candidate.host.clone())),
            }
        }
        self.admissions.reading = Some(batches);
        self.admissions.absent = absent;
        self.admissions.resting = resting;
        self.read_for_admission(urls, hosts);
    }

    fn read_for_admission(&mut self, urls: BTreeMap<UrlId, CrawlUrl>, hosts: BTreeSet<HostKey>) {
        if urls.is_empty() && hosts.is_empty() {
            let nothing = Ok(Box::default());
            return self.admission_read(nothing);
        }
        let hosts: Vec<(HostId, HostKey)> =
            hosts.into_iter().map(|key| (self.host_id(&key), key)).collect();
        self.once_written(|shard| {
            shard.read(|store| async move {
                let read = gathered(&store, urls, hosts).await;
                let reply = StoreReply::AdmissionRead(read.map(Box::new).map_err(fault));
                ShardMsg::Store(reply)
            });
        });
    }

    /// The read is done: every candidate is judged, in order.
    pub(super) fn admission_read(&mut self, read: Result<Box<AdmissionRead>, StoreFault>) {
        let Some(batches) = self.admissions.reading.take() else { return };
        let resting = std::mem::take(&mut self.admissions.resting);
        let read = match read {
            Ok(read) => read,
            Err(_) => {
                // Nothing was judged: they wait at the front for the next read.
                batches
                    .into_iter()
                    .rev()
                    .for_each(|batch| self.admissions.waiting.push_front(batch));
                return;
            }
        };
        let mut judgement = Judgement::default();
        let mut answers: Vec<(Answer<AdmitAnswer>, AdmitAnswer)> = Vec::new();
        for batch in batches {
            // Whoever gave seeds waits for the answer; of links only their page does (F12).
            if batch.candidates.iter().any(|candidate| candidate.is_seed) {
                self.hurry();
            }
            let judged = batch.candidates.into_iter();
            let results = judged
                .map(|candidate| self.judge(candidate, &read, &resting, &mut judgement))
                .collect();
            answers.push((batch.answer, AdmitAnswer { results }));
        }
        self.apply(judgement);
        self.when_durable(Then::Admitted(answers));
    }

    fn judge(
        &mut self,
        candidate: Candidate,
        read: &AdmissionRead,
        resting: &BTreeMap<HostId, (HostRecord, HostCounts)>,
        judgement: &mut Judgement,
    ) -> Admission {
        if let Some(found) = self.exclusions.find(&candidate.record.url, self.now()) {
            return Admission::Refused(exclusion::reason(found));
        }
        let recognised = normalise::recognised(&candidate.record.url).into_owned();
        let fingerprint = self.fingerprints.of(&recognised);
        if self.fingerprints.contains(fingerprint) {
            return Admission::Known;
        }
        let key =
            UrlId { host: self.host_id(&candidate.host), hash: candidate.hash, disambiguator: 0 };
        if !read.urls.contains_key(&key) && !self.admissions.absent.contains(&key) {
            // The exact cache knew it when the read began, and has forgotten it since (I4).
            return Admission::Known;
        }
        let host = self.host_of(&candidate.host, read, resting, judgement);
        let Some(id) = free_id(host, candidate.hash, &recognised, read, judgement) else {
            self.fingerprints.insert(fingerprint);
            return Admission::Known;
        };
        let domain = candidate.host.domain();
        let settings = self.settings();
        let Some((_, counts, _)) = judgement.hosts.get_mut(&host) else { return Admission::Known };
        if counts.known >= settings.host_max_urls {
            return Admission::Refused(Reason::UrlCap { max: settings.host_max_urls });
        }
        let of_domain = self.domain_urls.entry(domain.into()).or_default();
        if *of_domain >= settings.domain_max_urls {
            return Admission::Refused(Reason::UrlCap { max: settings.domain_max_urls });
        }
        *of_domain += 1;
        let seeds = u64::from(candidate.is_seed);
        let more = HostCounts { known: 1, queued: 1, seeds, ..HostCounts::default() };
        add(counts, more);
        add(&mut self.totals.counts, more);
        self.fingerprints.insert(fingerprint);
        self.filter.insert(&id);
        judgement.added.insert(id, candidate.record.url.clone());
        admitted(id, candidate.record, judgement);
        Admission::Added
    }

    /// The id of a candidate's host, whose row and counts are then in the judgement.
    fn host_of(
        &mut self,
        key: &HostKey,
        read: &AdmissionRead,
        resting: &BTreeMap<HostId, (HostRecord, HostCounts)>,
        judgement: &mut Judgement,
    ) -> HostId {
        let mut id = self.host_id(key);
        loop {
            if let Some((record, ..)) = judgement.hosts.get(&id) {
                if record.key == *key {
                    return id;
                }
            } else {
                let found = match (self.residents.get(&id), resting.get(&id)) {
                    (Some(resident), _) => Some((resident.record.clone(), resident.counts)),
                    (None, Some(left)) => Some(left.clone()),
                    (None, None) => read.hosts.get(&id).cloned().flatten(),
                };
                match found {
                    Some((record, counts)) if record.key == *key => {
                        judgement.hosts.insert(id, (record, counts, false));
                        return id;
                    }
                    Some(_) => {}
                    None => {
                        let record = HostRecord::new(key.clone());
                        judgement.hosts.insert(id, (record, HostCounts::default(), true));
                        return id;
                    }
                }
            }
            // Another host has this id: the next one, remembered from now on.
            id = HostId(id.0.wrapping_add(1));
            self.aliases.insert(key.clone(), id);
        }
    }

    fn apply(&mut self, judgement: Judgement) {
        let Judgement { mut changes, hosts, entries, .. } = judgement;
        let now = self.now();
        for (id, (record, counts, is_new)) in hosts {
            let Some(entries) = entries.get(&id) else {
                continue;
            };
            if is_new {
                self.totals.hosts += 1;
                changes.push(Change::PutHost(id, Box::new(record.clone())));
            }
            changes.push(Change::PutCounts(id, counts));
            self.note_counts(id, counts);
            if let Some(resident) = self.residents.get_mut(&id) {
                resident.counts = counts;
                self.tell(id, HostMsg::Admitted(entries.clone()));
                continue;
            }
            if let Some(waking) = self.waking.get_mut(&id) {
                waking.stale = true;
            } else {
                self.ready.hasten(id, self.may_be_asked_at(&record).max(now));
            }
            self.asleep.remember(id, record, counts);
        }
        self.put(changes);
    }
}

/// The rows of a new URL.
fn admitted(id: UrlId, record: UrlRecord, judgement: &mut Judgement) {
    let entry = QueueEntry {
        id,
        version: UrlVersion(1),
        url: record.url.clone(),
        depth: record.depth,
        band: record.band,
        order: record.order,
        attempts: 0,
        redirects: record.redirects,
        validators: None,
        discovered_from: record.discovered_from.clone(),
    };
    let subject = Subject::Url { url: record.url.to_string(), url_id: id, version: UrlVersion(1) };
    let at = record.discovered_at;
    let event = CrawlEvent { at, subject, happening: Happening::Discovered };
    judgement.changes.push(Change::PutUrl(id, Box::new(record)));
    judgement.changes.push(Change::Enqueue(Box::new(entry.clone())));
    judgement.changes.push(Change::Emit(Box::new(event)));
    judgement.entries.entry(id.host).or_default().push(entry);
}

/// D2: the id of a new URL; `None` when it is known. Collisions are told apart by comparing.
fn free_id(
    host: HostId,
    hash: u64,
    recognised: &str,
    read: &AdmissionRead,
    judgement: &Judgement,
) -> Option<UrlId> {
    let same = |url: &CrawlUrl| normalise::recognised(url) == recognised;
    for disambiguator in 0..DISAMBIGUATORS {
        let id = UrlId { host, hash, disambiguator };
        let stored = read.urls.get(&id).and_then(Option::as_ref).map(|record| &record.url);
        match stored.or_else(|| judgement.added.get(&id)) {
            Some(url) if same(url) => return None,
            Some(_) => {}
            None => return Some(id),
        }
    }
    None
}

/// One gathered read: rows at the table keys, beyond collisions to the first free one, and hosts.
async fn gathered(
    store: &ShardStore,
    urls: BTreeMap<UrlId, CrawlUrl>,
    hosts: Vec<(HostId, HostKey)>,
) -> Result<AdmissionRead, StoreError> {
    let mut read = AdmissionRead::default();
    let mut open: Vec<(UrlId, CrawlUrl)> = urls.into_iter().collect();
    while !open.is_empty() {
        let ids: Vec<UrlId> = open.iter().map(|(id, _)| *id).collect();
        let rows = store.urls_many(&ids).await?;
        let mut collided = Vec::new();
        for ((id, url), row) in open.into_iter().zip(rows) {
            let other = row
                .as_ref()
                .is_some_and(|row| normalise::recognised(&row.url) != normalise::recognised(&url));
            read.urls.insert(id, row);
            if other && id.disambiguator + 1 < DISAMBIGUATORS {
                collided.push((UrlId { disambiguator: id.disambiguator + 1, ..id }, url));
            }
        }
        open = collided;
    }
    for (mut id, key) in hosts {
        loop {
            let found = store.host(id).await?;
            let other = found.as_ref().is_some_and(|(record, _)| record.key != key);
            read.hosts.insert(id, found);
            if !other {
                break;
            }
            id = HostId(id.0.wrapping_add(1));
        }
    }
    Ok(read)
}
