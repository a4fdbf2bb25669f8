//! The store against an object store in memory, and against files.

use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use proptest::prelude::*;

use super::*;
use crate::policy::change::Change;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::storage::{Filter, Remedy, block_cache};
use crate::types::{
    CrawlEvent, CrawlUrl, DeadLetter, Happening, HostCounts, HostId, HostKey, HostRecord,
    QueueEntry, Reason, Subject, UrlId, UrlRecord, UrlVersion,
};
use crate::world::TokioClock;

mod clock;
mod logs;

const DEADLINE: Duration = Duration::from_secs(30);
const NOON: i64 = 4_000_000_000;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(NOON + secs)
}

fn options(objects: &Objects) -> StoreOptions {
    StoreOptions {
        objects: objects.clone(),
        path: "0".to_owned(),
        clock: Arc::new(TokioClock::starting_at(at(0))),
        seed: 7,
        memory_bytes_max: 16 << 20,
        cache: None,
        shard: ShardId(0),
    }
}

async fn open(objects: &Objects) -> ShardStore {
    ShardStore::open(options(objects)).await.unwrap()
}

fn entry(host: u64, band: u8, order: u64) -> QueueEntry {
    QueueEntry {
        id: UrlId { host: HostId(host), hash: order.wrapping_mul(31), disambiguator: 0 },
        version: UrlVersion(1),
        url: CrawlUrl::parse(&format!("https://h{host}.example/{order}")).unwrap(),
        depth: 1,
        band,
        order,
        attempts: 0,
        redirects: 0,
        validators: None,
        discovered_from: None,
    }
}

fn known(entry: &QueueEntry) -> Change {
    let record = UrlRecord {
        url: entry.url.clone(),
        depth: entry.depth,
        band: entry.band,
        order: entry.order,
        redirects: 0,
        discovered_from: None,
        discovered_at: at(0),
    };
    Change::PutUrl(entry.id, Box::new(record))
}

fn event(entry: &QueueEntry) -> Change {
    Change::Emit(Box::new(CrawlEvent {
        at: at(0),
        subject: Subject::Url {
            url: entry.url.to_string(),
            url_id: entry.id,
            version: entry.version,
        },
        happening: Happening::Discovered,
    }))
}

async fn write(store: &ShardStore, changes: Vec<Change>) -> Written {
    store.write(Batch::from(changes)).await.unwrap()
}

async fn numbers(store: &ShardStore) -> Vec<u64> {
    let events = store.events(EventSeq(0), 1000).await.unwrap();
    events.into_iter().map(|(seq, _)| seq.0).collect()
}

#[tokio::test(start_paused = true)]
async fn what_one_batch_wrote_is_read_together() {
    let store = open(&Objects::memory()).await;
    let (one, two) = (entry(1, 0, 1), entry(1, 0, 2));
    let host = HostRecord::new(HostKey::parse("https://h1.example").unwrap());
    let counts = HostCounts { known: 2, queued: 2, ..HostCounts::default() };
    write(
        &store,
        vec![
            known(&one),
            known(&two),
            Change::Enqueue(Box::new(one.clone())),
            Change::Enqueue(Box::new(two.clone())),
            Change::PutHost(HostId(1), Box::new(host.clone())),
            Change::PutCounts(HostId(1), counts),
            Change::PutMeta("seeds", vec![1, 2]),
            Change::PutOutput { name: "pages".to_owned(), state: vec![3] },
        ],
    )
    .await;
    assert_eq!(store.url(one.id).await.unwrap().unwrap().url, one.url);
    let absent = entry(9, 0, 9).id;
    let many = store.urls_many(&[two.id, absent, one.id]).await.unwrap();
    let found: Vec<bool> = many.iter().map(Option::is_some).collect();
    assert_eq!(found, [true, false, true]);
    assert_eq!(store.host(HostId(1)).await.unwrap(), Some((host, counts)));
    assert_eq!(store.host(HostId(2)).await.unwrap(), None);
    assert_eq!(store.meta("seeds").await.unwrap(), Some(vec![1, 2]));
    assert_eq!(store.meta("format").await.unwrap(), None);
    assert_eq!(store.output("pages").await.unwrap(), Some(vec![3]));
    let urls = store.host_urls(HostId(1), Some(one.id), 10).await.unwrap();
    assert_eq!(urls.len(), 1);
    assert_eq!(store.url_ids(None, 10).await.unwrap(), [one.id, two.id]);
    write(&store, vec![Change::dequeue(&one)]).await;
    assert_eq!(store.queue_window(HostId(1), 0, None, 9).await.unwrap(), (vec![two], true));
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_read_by_windows_in_its_order() {
    let store = open(&Objects::memory()).await;
    let mut changes: Vec<Change> = Vec::new();
    for order in [5, 3, 9, 1, 7] {
        changes.push(Change::Enqueue(Box::new(entry(1, 1, order))));
    }
    changes.push(Change::Enqueue(Box::new(entry(1, 2, 0))));
    changes.push(Change::Enqueue(Box::new(entry(2, 1, 0))));
    write(&store, changes).await;
    let (mut after, mut orders, mut windows) = (None, Vec::new(), 0);
    loop {
        let (window, exhausted) = store.queue_window(HostId(1), 1, after, 2).await.unwrap();
        after = window.last().map(|last| (last.order, last.id)).or(after);
        orders.extend(window.iter().map(|entry| entry.order));
        windows += 1;
        if exhausted {
            break;
        }
    }
    assert_eq!((orders, windows), (vec![1, 3, 5, 7, 9], 3));
}

/// One scan over all bands finds what a scan of each finds, whatever is wanted and seen of it.
#[tokio::test(start_paused = true)]
async fn windows_of_all_bands_are_read_as_if_one_by_one() {
    let store = open(&Objects::memory()).await;
    let places = [(0, 1), (0, 2), (0, 3), (2, 5), (2, 6), (3, 7)];
    let own = places.map(|(band, order)| entry(1, band, order));
    let others = [entry(0, 3, 9), entry(2, 0, 0)];
    let changes = own.iter().chain(&others).map(|entry| Change::Enqueue(Box::new(entry.clone())));
    write(&store, changes.collect()).await;
    let seen = |at: usize| Some((own[at].order, own[at].id));
    let afters = [[None; 4], [seen(0), None, seen(4), None], [seen(2), None, None, seen(5)]];
    let limits = [[9; 4], [1; 4], [2, 0, 1, 3], [0, 4, 0, 4], [0, 0, 2, 0], [0; 4]];
    let limits = limits.iter().flat_map(|limit| [0, 5, 64].map(|room| (*limit, room)));
    for (after, (limit, room)) in limits.flat_map(|wanted| afters.map(|after| (after, wanted))) {
        let request = WindowRequest { after, limit, room };
        let (mut expected, mut taken) = (WindowRows::default(), 0);
        for band in (0..4).filter(|band| limit[*band] > 0) {
            let (number, rows) = (u8::try_from(band).unwrap(), request.rows_of(band, taken));
            let read = store.queue_window(HostId(1), number, after[band], rows).await.unwrap();
            taken += read.0.len();
            (expected.rows[band], expected.exhausted[band]) = read;
        }
        assert_eq!(
            store.queue_windows(HostId(1), &request).await.unwrap(),
            expected,
            "{request:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn due_rows_come_by_time_and_leave() {
    let store = open(&Objects::memory()).await;
    assert_eq!(store.next_due().await.unwrap(), None);
    let (late, soon) = (entry(1, 0, 1), entry(2, 0, 2));
    let defer =
        |secs, entry: &QueueEntry| Change::Defer { due: at(secs), entry: Box::new(entry.clone()) };
    write(&store, vec![defer(90, &late), defer(30, &soon)]).await;
    assert_eq!(store.next_due().await.unwrap(), Some(at(30)));
    assert_eq!(store.due_before(at(30), 9).await.unwrap(), []);
    assert_eq!(store.due_before(at(31), 9).await.unwrap(), [(at(30), soon.clone())]);
    write(&store, vec![Change::Undefer { due: at(30), id: soon.id }]).await;
    assert_eq!(store.next_due().await.unwrap(), Some(at(90)));
}

#[tokio::test(start_paused = true)]
async fn hosts_are_listed_with_their_counts() {
    let store = open(&Objects::memory()).await;
    let mut changes = Vec::new();
    for id in 1..=5_u64 {
        let key = HostKey::parse(&format!("https://h{id}.example")).unwrap();
        changes.push(Change::PutHost(HostId(id), Box::new(HostRecord::new(key))));
        if id != 3 {
            let counts = HostCounts { known: id, ..HostCounts::default() };
            changes.push(Change::PutCounts(HostId(id), counts));
        }
    }
    write(&store, changes).await;
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = store.hosts(after, 2).await.unwrap();
        let Some((last, ..)) = page.last() else { break };
        after = Some(*last);
        seen.extend(page.iter().map(|(id, _, counts)| (id.0, counts.known)));
    }
    assert_eq!(seen, [(1, 1), (2, 2), (3, 0), (4, 4), (5, 5)]);
}

#[tokio::test(start_paused = true)]
async fn lists_of_all_kinds_come_back() {
    let store = open(&Objects::memory()).await;
    let waiting = entry(1, 0, 1);
    let reason = Reason::Credentials;
    let dead =
        DeadLetter { entry: waiting.clone(), reason: reason.clone(), attempts: 5, last_at: at(1) };
    write(
        &store,
        vec![
            Change::Sleep { entry: Box::new(waiting.clone()), reason: reason.clone() },
            Change::PutDead(Box::new(dead.clone())),
        ],
    )
    .await;
    assert_eq!(store.sleepers(HostId(1), None, 9).await.unwrap(), [(waiting.clone(), reason)]);
    assert_eq!(store.dead(None, 9).await.unwrap(), [dead]);
    assert_eq!(store.dead(Some(waiting.id), 9).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn events_are_numbered_without_gaps_and_shown_when_durable() {
    let objects = Objects::memory();
    let store = open(&objects).await;
    let first = write(&store, vec![event(&entry(1, 0, 1)), event(&entry(1, 0, 2))]).await;
    assert_eq!(first.events, Some((EventSeq(1), EventSeq(2))));
    assert_eq!(numbers(&store).await, [0_u64; 0]);
    let row = store.db().get_key_value(Key::Outbox(EventSeq(2)).encode()).await.unwrap().unwrap();
    let ages_out = i64::try_from(OUTBOX_TTL.as_millis()).unwrap();
    assert_eq!(row.expire_ts, Some(row.create_ts + ages_out));
    store.flush(DEADLINE).await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2]);
    let none = write(&store, vec![known(&entry(1, 0, 1))]).await;
    assert_eq!((none.events, none.batch.number), (None, first.batch.number + 1));
    store.close(DEADLINE).await.unwrap();

    let store = open(&objects).await;
    let next = write(&store, vec![event(&entry(1, 0, 3))]).await;
    assert_eq!(next.events, Some((EventSeq(3), EventSeq(3))));
    store.flush(DEADLINE).await.unwrap();
    assert_eq!(numbers(&store).await, [1, 2, 3]);
    assert_eq!(store.oldest_event().await.unwrap(), Some(EventSeq(1)));
}

#[tokio::test(start_paused = true)]
async fn the_second_opener_fences_the_first() {
    let objects = Objects::memory();
    let first = open(&objects).await;
    let second = open(&objects).await;
    assert!(second.epoch() > first.epoch());
    // The first may still take the write, but can make nothing durable any more.
    let late = first.write(Batch::from(vec![event(&entry(1, 0, 1))])).await;
    let error = match late {
        Ok(_) => first.flush(DEADLINE).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Fenced), "{error:?}");
    assert_eq!(error.remedy(), Remedy::GiveUp);
    let error = first.write(Batch::from(vec![event(&entry(1, 0, 2))])).await.unwrap_err();
    assert!(matches!(error, StoreError::Fenced), "{error:?}");
    second.flush(DEADLINE).await.unwrap();
    assert_eq!(numbers(&second).await, [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn newer_and_damaged_stores_are_refused() {
    let objects = Objects::memory();
    open(&objects).await.close(DEADLINE).await.unwrap();
    overwrite(&objects, FORMAT_ROW, &(FORMAT + 1)).await;
    let error = ShardStore::open(options(&objects)).await.unwrap_err();
    assert!(matches!(error, StoreError::NewerVersion { found: 4, known: 3 }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Report);
    overwrite(&objects, FORMAT_ROW, &(FORMAT - 1)).await;
    let error = ShardStore::open(options(&objects)).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");

    let objects = Objects::memory();
    overwrite(&objects, "other", &1_u32).await;
    let error = ShardStore::open(options(&objects)).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}

async fn overwrite(objects: &Objects, name: &str, row: &u32) {
    let options = options(objects);
    let clock = SlateClock::new(Arc::clone(&options.clock), Timestamp::EPOCH);
    let db = engine(&options, Arc::new(clock)).await.unwrap();
    let mut bytes = Vec::new();
    codec::encode(Kind::Own, row, &mut bytes).unwrap();
    let row = bytes;
    db.put(Key::Own(name.to_owned()).encode(), row).await.unwrap();
    db.close().await.unwrap();
}

/// A full disk and a lost network look alike: the object store does not answer.
#[tokio::test(start_paused = true)]
async fn a_flush_that_hangs_ends_at_its_deadline() {
    let slow = Arc::new(ThrottledStore::new(InMemory::new(), ThrottleConfig::default()));
    let throttle = Arc::clone(&slow);
    let objects = Objects::from_store(slow, "slow://");
    let store = open(&objects).await;
    write(&store, vec![known(&entry(1, 0, 1))]).await;
    throttle.config_mut(|config| config.wait_put_per_call = Duration::from_secs(3_600));
    let error = store.flush(DEADLINE).await.unwrap_err();
    assert!(matches!(error, StoreError::Deadline { during: "flush", .. }), "{error:?}");
    assert_eq!(error.remedy(), Remedy::Retry);
    let error = store.close(DEADLINE).await.unwrap_err();
    assert!(matches!(error, StoreError::Deadline { during: "close", .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filter_serves_the_next_owner_only_after_a_clean_stop() {
    let objects = Objects::memory();
    let store = open(&objects).await;
    assert!(store.load_filter().await.is_none());
    let (one, two) = (entry(1, 0, 1), entry(1, 0, 2));
    let mut filter = Filter::empty(10_000_000, 7);
    filter.insert(&one.id);
    let written = write(&store, vec![known(&one)]).await;
    assert_eq!(written.batch, store.last_batch().await);
    store.save_filter(&filter, written.batch).await;
    store.close(DEADLINE).await.unwrap();

    let store = open(&objects).await;
    let filter = store.load_filter().await.unwrap();
    assert!(!filter.says_absent(&one.id) && filter.says_absent(&two.id));
    write(&store, vec![known(&two)]).await;
    store.close(DEADLINE).await.unwrap();
    assert!(open(&objects).await.load_filter().await.is_none());
}

/// Every flush is an object: their number must not grow for ever.
#[tokio::test(start_paused = true)]
async fn the_log_is_collected_in_memory_and_on_files() {
    let dir = tempfile::tempdir().unwrap();
    // Bytes that do not compress, so that memtables fill up.
    let hash = |place: u32| xxhash_rust::xxh3::xxh3_64(&place.to_be_bytes()).to_be_bytes();
    let ballast: Vec<u8> = (0..75_000).flat_map(hash).collect();
    for objects in [Objects::memory(), Objects::open_directory(dir.path()).unwrap()] {
        let store = open(&objects).await;
        for _ in 0..24 {
            write(&store, vec![Change::PutMeta("ballast", ballast.clone())]).await;
            store.flush(DEADLINE).await.unwrap();
        }
        assert!(objects_in(&objects, "0/wal").await > 20);
        options(&objects).clock.sleep(Duration::from_secs(600)).await;
        let left = objects_in(&objects, "0/wal").await;
        assert!(left < 12, "{left} left in {}", objects.name());
        store.close(DEADLINE).await.unwrap();
    }
}

async fn objects_in(objects: &Objects, place: &str) -> usize {
    let listed = objects.store().list(Some(&object_store::path::Path::from(place)));
    futures::StreamExt::count(listed).await
}

/// Runs one incarnation to its end and cuts all of its tasks off, as a kill would.
fn incarnation<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

#[test]
fn what_was_flushed_survives_a_crash_and_the_rest_is_whole_or_absent() {
    let dir = tempfile::tempdir().unwrap();
    let (flushed, unflushed) = (entry(1, 0, 1), entry(1, 0, 2));
    let cached = || {
        let objects = Objects::open_directory(dir.path()).unwrap();
        StoreOptions { cache: Some(block_cache(8 << 20)), ..options(&objects) }
    };
    let epoch = incarnation(async {
        let store = ShardStore::open(cached()).await.unwrap();
        write(&store, vec![known(&flushed), event(&flushed)]).await;
        store.flush(DEADLINE).await.unwrap();
        write(&store, vec![known(&unflushed), event(&unflushed)]).await;
        store.epoch()
    });
    incarnation(async {
        let store = ShardStore::open(cached()).await.unwrap();
        assert!(store.epoch() > epoch);
        assert!(store.url(flushed.id).await.unwrap().is_some());
        let survived = store.url(unflushed.id).await.unwrap().is_some();
        let seen = numbers(&store).await;
        assert_eq!(seen, if survived { vec![1, 2] } else { vec![1] });
        let next = write(&store, vec![event(&flushed)]).await;
        assert_eq!(next.events.map(|(first, _)| first.0), Some(1 + seen.len() as u64));
        store.close(DEADLINE).await.unwrap();
    });
}

#[test]
fn a_store_in_memory_gives_the_same_answers_twice() {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let store = open(&Objects::memory()).await;
            let mut trace = Vec::new();
            for order in 0..50 {
                let new = entry(order % 3, 0, order);
                trace.push(write(&store, vec![known(&new), event(&new)]).await);
                store.flush(DEADLINE).await.unwrap();
            }
            (trace, numbers(&store).await, store.url_ids(None, 99).await.unwrap())
        })
    };
    assert_eq!(run(), run());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn event_numbers_stay_contiguous_over_reopens(
        batches in prop::collection::vec(0..4_usize, 1..6),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let (seen, sum) = runtime.unwrap().block_on(async {
            let objects = Objects::memory();
            for count in &batches {
                let store = open(&objects).await;
                write(&store, vec![event(&entry(1, 0, 1)); *count]).await;
                store.close(DEADLINE).await.unwrap();
            }
            (numbers(&open(&objects).await).await, batches.iter().sum::<usize>() as u64)
        });
        prop_assert_eq!(seen, (1..=sum).collect::<Vec<_>>());
    }
}
