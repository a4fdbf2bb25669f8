//! The ArchiveActor through its mailbox, on paused time and a disk in memory.

use ractor::ActorCell;
use tokio::sync::{mpsc, watch};

use super::super::samples::{START, completion, headers, not_modified, page, response};
use super::super::{ArchiveReader, StoredResponse};
use super::*;
use crate::protocol::shard::EndedReport;
use crate::protocol::{Credit, OutputMsg, Permit, Routes, ShardRoute, Unheard};
use crate::telemetry::Counter;
use crate::types::{Outcome, Response};
use crate::world::{MemorySpool, SeededDice, TokioClock};

mod removal;

/// A shard that tells what it hears and knows one payload.
struct FakeShard;

struct FakeShardState {
    heard: mpsc::Sender<EndedReport>,
    known: Option<ContentRecord>,
}

impl Actor for FakeShard {
    type Msg = ShardMsg;
    type State = FakeShardState;
    type Arguments = FakeShardState;

    async fn pre_start(
        &self,
        _: ActorRef<ShardMsg>,
        state: FakeShardState,
    ) -> Result<FakeShardState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<ShardMsg>,
        message: ShardMsg,
        state: &mut FakeShardState,
    ) -> Result<(), ActorProcessingErr> {
        if let ShardMsg::LookUpPayload(_, answer) = message {
            answer.send(state.known.clone().map(Box::new));
        } else if let ShardMsg::Ended(report) = message {
            state.heard.send(*report).await.unwrap();
        }
        Ok(())
    }
}

struct Bench {
    spool: Arc<MemorySpool>,
    archive: ActorRef<ArchiveMsg>,
    shard: ActorRef<ShardMsg>,
    heard: mpsc::Receiver<EndedReport>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    exclusions: watch::Sender<Arc<Exclusions>>,
}

impl Bench {
    async fn new(spool: &Arc<MemorySpool>, known: Option<ContentRecord>) -> Self {
        Self::with_file_bytes(spool, known, 1 << 30).await
    }

    async fn with_file_bytes(
        spool: &Arc<MemorySpool>,
        known: Option<ContentRecord>,
        file_bytes_max: u64,
    ) -> Self {
        let (tell, heard) = mpsc::channel(100);
        let state = FakeShardState { heard: tell, known };
        let (shard, _) = Actor::spawn(None, FakeShard, state).await.unwrap();
        // Nobody sends to the output of this route.
        let output = ActorRef::<OutputMsg>::from(ActorCell::from(shard.clone()));
        let route = ShardRoute { shard: shard.clone(), output };
        let routes = Routes { shards: vec![Some(route)], ..Routes::default() };
        let clock: Arc<dyn Clock> =
            Arc::new(TokioClock::starting_at(Timestamp::from_millis(START)));
        let metrics = Arc::new(Metrics::new());
        let exclusions = watch::Sender::new(Arc::default());
        let args = ArchiveArgs {
            spool: Arc::clone(spool) as Arc<dyn Spool>,
            clock: Arc::clone(&clock),
            dice: Arc::new(SeededDice::new(1)),
            routes: watch::channel(Arc::new(routes)).1,
            exclusions: exclusions.subscribe(),
            metrics: Arc::clone(&metrics),
            settings: ArchiveSettings {
                format: ArchiveFormat::WarcGz,
                file_bytes_max,
                file_age_max: Duration::from_secs(3600),
                index: 0,
                count: 1,
                crawler: CrawlerInfo::default(),
            },
        };
        let (archive, _) = Actor::spawn(None, ArchiveActor, args).await.unwrap();
        Self { spool: Arc::clone(spool), archive, shard, heard, clock, metrics, exclusions }
    }

    fn store(&self, response: Response) {
        self.store_with(response, Permit::free());
    }

    fn store_with(&self, response: Response, permit: Permit) {
        let completion = completion(&response);
        let job = StoreJob {
            response,
            completion,
            shard: self.shard.clone(),
            permit,
            unheard: Unheard::default(),
        };
        self.archive.send_message(ArchiveMsg::Store(Box::new(job))).unwrap();
    }

    async fn ended(&mut self) -> EndedReport {
        self.heard.recv().await.unwrap()
    }

    async fn view(&self) -> ArchiveView {
        let (answer, view) = Answer::channel();
        self.archive.send_message(ArchiveMsg::Observe(answer)).unwrap();
        view.await.unwrap()
    }

    async fn close(self) {
        let (answer, closed) = Answer::channel();
        self.archive.send_message(ArchiveMsg::Close(answer)).unwrap();
        closed.await.unwrap();
    }

    async fn read(&self, report: &EndedReport) -> StoredResponse {
        let spool = Arc::clone(&self.spool) as Arc<dyn Spool>;
        ArchiveReader::new(spool).read(report.completion.archive.as_ref().unwrap()).await.unwrap()
    }

    async fn files(&self) -> Vec<String> {
        files(&self.spool).await
    }
}

async fn files(spool: &MemorySpool) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["archive", "index"] {
        names.extend(spool.list(folder).await.unwrap().into_iter().map(|(name, _)| name));
    }
    names
}

const FILE: &str = "archive/mehman-20260101000000-00000-0.warc.gz";
const INDEX: &str = "index/mehman-20260101000000-00000-0.cdxj";

#[tokio::test(start_paused = true)]
async fn a_response_is_synced_before_its_completion_goes_out() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    let began = bench.clock.now();
    bench.store(page("http://a.test/", b"<p>one"));
    let report = bench.ended().await;
    assert!(bench.clock.now().since(began) <= GROUP_DELAY + Duration::from_millis(2));
    let pointer = report.completion.archive.as_ref().unwrap();
    assert_eq!(format!("archive/{}", pointer.file), FILE);
    let digest = report.completion.digest.clone().unwrap();
    assert!(digest.starts_with("sha1:"));
    assert_eq!(report.completion.validators.as_ref().unwrap().digest, Some(digest));
    assert!(report.response.is_some());
    let stored = bench.read(&report).await;
    assert_eq!(stored.body, "<p>one");
    assert_eq!(bench.view().await.file_bytes, pointer.offset + pointer.length);
}

#[tokio::test(start_paused = true)]
async fn responses_that_come_together_are_synced_together() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    for n in 0..20 {
        bench.store(page(&format!("http://a.test/{n}"), format!("<p>{n}").as_bytes()));
    }
    assert_eq!(bench.view().await.waiting, 20);
    for n in 0..20 {
        let report = bench.ended().await;
        assert_eq!(bench.read(&report).await.body, format!("<p>{n}"));
    }
    assert_eq!(bench.view().await.records, 40);
}

#[tokio::test(start_paused = true)]
async fn closing_publishes_the_file_and_its_index() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://b.test/", b"<p>two"));
    bench.store(response("http://a.test/x", 404, headers(&[]), b""));
    let (_, missing) = (bench.ended().await, bench.ended().await);
    let pointer = missing.completion.archive.unwrap();
    bench.close().await;
    assert_eq!(files(&spool).await, [FILE, INDEX]);
    let index = String::from_utf8(spool.content(INDEX).unwrap()).unwrap();
    let lines: Vec<&str> = index.lines().collect();
    assert_eq!(lines.len(), 2);
    let expected = format!(
        "test,a)/x 20260101000001 {{\"url\": \"http://a.test/x\", \"status\": \"404\", \
         \"digest\": \"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ\", \"length\": \"{}\", \
         \"offset\": \"{}\", \"filename\": \"{}\"}}",
        pointer.length, pointer.offset, pointer.file
    );
    assert_eq!(lines[0], expected);
    assert!(lines[1].starts_with(
        "test,b)/ 20260101000001 {\"url\": \"http://b.test/\", \"mime\": \"text/html\""
    ));
}

#[tokio::test(start_paused = true)]
async fn closing_syncs_what_still_waits() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/", &[b'x'; 5000]));
    let (answer, closed) = Answer::channel();
    bench.archive.send_message(ArchiveMsg::Close(answer)).unwrap();
    assert!(bench.ended().await.completion.archive.is_some());
    closed.await.unwrap();
    assert_eq!(files(&spool).await, [FILE, INDEX]);
}

#[tokio::test(start_paused = true)]
async fn full_and_old_files_give_way_to_the_next() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::with_file_bytes(&spool, None, 2_000).await;
    for n in 0..3 {
        bench.store(page("http://a.test/", &[b'a' + n; 10]));
        bench.ended().await;
    }
    bench.clock.sleep(Duration::from_secs(1)).await;
    let published = bench.files().await;
    assert!(published.contains(&FILE.to_owned()), "{published:?}");
    bench.clock.sleep(Duration::from_secs(3600)).await;
    let left = bench.files().await;
    assert!(!left.iter().any(|name| name.ends_with(".open")), "{left:?}");
    assert_eq!(bench.view().await.file, None);
}

#[tokio::test(start_paused = true)]
async fn a_known_payload_is_stored_as_a_revisit_and_read_back_whole() {
    let spool = Arc::new(MemorySpool::new());
    let body = vec![b'x'; 5000];
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://first.test/", &body));
    let first = bench.ended().await;
    let archive = first.completion.archive.clone().unwrap();
    let known = ContentRecord {
        url: first.response.unwrap().lease.entry.url.clone(),
        fetched_at: Timestamp::from_millis(START),
        archive: archive.clone(),
    };
    bench.close().await;

    let mut bench = Bench::new(&spool, Some(known)).await;
    bench.store(page("http://second.test/", &body));
    let second = bench.ended().await;
    assert_eq!(second.completion.digest, first.completion.digest);
    assert_ne!(second.completion.archive, Some(archive));
    let stored = bench.read(&second).await;
    assert_eq!((stored.url.as_str(), stored.status), ("http://second.test/", 200));
    assert_eq!(stored.body, body);

    let digest = first.completion.digest.unwrap();
    bench.store(not_modified("http://second.test/", &digest));
    let third = bench.ended().await;
    assert_eq!(third.completion.digest, Some(digest));
    let stored = bench.read(&third).await;
    assert_eq!((stored.status, stored.body.len()), (200, body.len()));
    bench.close().await;
    let index = spool.content("index/mehman-20260101000000-00001-0.cdxj").unwrap();
    assert_eq!(String::from_utf8(index).unwrap().matches("warc/revisit").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_payload_index_that_is_gone_costs_only_space() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    let gone = bench.shard.clone();
    let (tell, heard) = mpsc::channel(100);
    let state = FakeShardState { heard: tell, known: None };
    bench.shard = Actor::spawn(None, FakeShard, state).await.unwrap().0;
    bench.heard = heard;
    gone.stop_and_wait(None, None).await.unwrap();
    bench.store(page("http://a.test/", &[b'x'; 5000]));
    let report = bench.ended().await;
    assert_eq!(bench.read(&report).await.body.len(), 5000);
}

#[tokio::test(start_paused = true)]
async fn a_failing_disk_drops_nothing_and_holds_the_completions() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/0", b"zero"));
    bench.ended().await;
    spool.set_fault(Some("disk full"));
    let credit = Credit::new(10);
    for n in 1..4 {
        bench.store_with(page(&format!("http://a.test/{n}"), b"later"), credit.take(1).await);
        bench.clock.sleep(Duration::from_secs(40)).await;
    }
    assert!(bench.heard.try_recv().is_err());
    let view = bench.view().await;
    assert_eq!((view.waiting, view.failure.as_deref()), (3, Some("disk full")));
    assert_eq!(credit.used(), 3);
    assert!(bench.metrics.count(Counter::DiskFailures) > 2);

    spool.set_fault(None);
    for n in 1..4 {
        let report = bench.ended().await;
        assert_eq!(bench.read(&report).await.url.as_str(), format!("http://a.test/{n}"));
    }
    bench.clock.sleep(Retry::WAIT_MAX).await;
    assert_eq!(bench.view().await.failure, None);
    let zero = spool.content(FILE).unwrap();
    assert!(spool.content(&format!("{FILE}.open")).is_none(), "the first file is published");
    assert!(!zero.is_empty());
    bench.close().await;
    let left = files(&spool).await;
    assert_eq!(left.len(), 4, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_every_byte_of_the_tail_keeps_all_whole_records() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/1", b"one"));
    let first = bench.ended().await.completion.archive.unwrap();
    bench.store(page("http://a.test/2", b"two"));
    let last = bench.ended().await.completion.archive.unwrap();
    let whole = spool.content(&format!("{FILE}.open")).unwrap();
    assert_eq!(size(whole.len()), last.offset + last.length);
    let kept = usize::try_from(last.offset).unwrap();
    let first_end = usize::try_from(first.offset + first.length).unwrap();
    for length in first_end..whole.len() {
        let spool = Arc::new(MemorySpool::new());
        spool.place(&format!("{FILE}.open"), whole[..length].to_vec());
        let bench = Bench::new(&spool, None).await;
        assert_eq!(bench.files().await, [FILE, INDEX]);
        let cut = length - if length < kept { first_end } else { kept };
        assert_eq!(bench.metrics.count(Counter::ArchiveBytesCut), size(cut));
        assert_eq!(bench.metrics.count(Counter::ArchiveFilesClosed), 1);
        let content = spool.content(FILE).unwrap();
        assert_eq!(content, whole[..if length < kept { first_end } else { kept }]);
        let index = String::from_utf8(spool.content(INDEX).unwrap()).unwrap();
        assert_eq!(index.lines().count(), 1);
        let reader = ArchiveReader::new(Arc::clone(&spool) as Arc<dyn Spool>);
        assert_eq!(reader.read(&first).await.unwrap().body, "one");
        assert!(reader.read(&last).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_without_a_whole_record_is_removed_and_its_serial_not_used_again() {
    let spool = Arc::new(MemorySpool::new());
    spool.place("archive/mehman-20250101000000-00007-0.warc.gz.open", vec![0x1f, 0x8b, 8]);
    spool.place("archive/somebody-elses.warc.gz", b"x".to_vec());
    let mut bench = Bench::new(&spool, None).await;
    assert_eq!(bench.files().await, ["archive/somebody-elses.warc.gz"]);
    bench.store(page("http://a.test/", b"one"));
    let pointer = bench.ended().await.completion.archive.unwrap();
    assert_eq!(&*pointer.file, "mehman-20260101000000-00008-0.warc.gz");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_does_not_hold_what_was_written_is_put_aside() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/1", b"one"));
    bench.store(page("http://a.test/2", b"two"));
    let (first, second) = (bench.ended().await, bench.ended().await);
    let mut content = spool.content(&format!("{FILE}.open")).unwrap();
    let last = content.len() - 20;
    content[last] ^= 0xff;
    spool.place(&format!("{FILE}.open"), content);
    let reader = ArchiveReader::new(Arc::clone(&spool) as Arc<dyn Spool>);
    let metrics = Arc::clone(&bench.metrics);
    bench.close().await;
    assert_eq!(files(&spool).await, [format!("{FILE}.damaged")]);
    assert_eq!(metrics.count(Counter::ArchiveFilesClosed), 0);
    assert!(reader.read(first.completion.archive.as_ref().unwrap()).await.is_ok());
    let damaged = reader.read(second.completion.archive.as_ref().unwrap()).await;
    assert!(matches!(damaged, Err(ArchiveError::Damaged { .. })));
}

#[tokio::test(start_paused = true)]
async fn publishing_may_be_repeated() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/1", b"one"));
    let pointer = bench.ended().await.completion.archive.unwrap();
    let disk = Arc::clone(&spool) as Arc<dyn Spool>;
    let (name, bytes) = (pointer.file.to_string(), pointer.offset + pointer.length);
    let file = ClosedFile { name, bytes, members: Vec::new() };
    publish::publish(&disk, &file, &bench.metrics).await.unwrap();
    publish::publish(&disk, &file, &bench.metrics).await.unwrap();
    assert_eq!(bench.files().await, [FILE, INDEX]);
    let missing = ClosedFile { name: "mehman-1-2-0.warc.gz".to_owned(), ..file };
    assert!(publish::publish(&disk, &missing, &bench.metrics).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_dies_with_a_response_tells_what_the_site_asked_for() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    // The disk is full, so the response waits.
    spool.set_fault(Some("disk full"));
    let response = page("http://a.test/", b"busy");
    let (completion, shard) = (completion(&response), bench.shard.clone());
    let (_, routes) = watch::channel(Arc::new(Routes::default()));
    let owners = Owners { routes, clock: Arc::clone(&bench.clock) };
    let asked = Some(Duration::from_secs(3600));
    let unheard = Unheard::of(&response, asked, &shard, &owners);
    let sent_at = response.sent_at;
    let job = StoreJob { response, completion, shard, permit: Permit::free(), unheard };
    bench.archive.send_message(ArchiveMsg::Store(Box::new(job))).unwrap();
    bench.clock.sleep(Duration::from_secs(5)).await;
    assert!(bench.heard.try_recv().is_err());
    bench.archive.kill();
    let told = bench.ended().await.completion;
    assert_eq!((told.outcome, told.archive), (Outcome::Cancelled, None));
    assert_eq!((told.retry_after, told.sent_at), (asked, Some(sent_at)));
}
