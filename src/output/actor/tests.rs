//! The OutputActor through its mailbox, on paused time and a disk in memory.

use tokio::sync::mpsc;

use super::super::OutputError;
use super::*;
use crate::policy::wishes::Purpose;
use crate::protocol::Credit;
use crate::telemetry::Counter;
use crate::types::{
    ArchivePointer, CrawlUrl, Document, HostId, PurgeRecord, ToParse, UrlId, UrlVersion,
};
use crate::world::{MemorySpool, TokioClock};

/// A shard that hands its batches to the test, which answers them.
struct FakeShard;

impl Actor for FakeShard {
    type Msg = ShardMsg;
    type State = mpsc::Sender<PublishedBatch>;
    type Arguments = mpsc::Sender<PublishedBatch>;

    async fn pre_start(
        &self,
        _: ActorRef<ShardMsg>,
        heard: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(heard)
    }

    async fn handle(
        &self,
        _: ActorRef<ShardMsg>,
        message: ShardMsg,
        heard: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let ShardMsg::Published(batch) = message {
            heard.send(*batch).await.unwrap();
        }
        Ok(())
    }
}

struct Bench {
    output: ActorRef<OutputMsg>,
    shard: ActorRef<ShardMsg>,
    heard: mpsc::Receiver<PublishedBatch>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    exclusions: watch::Sender<Arc<Exclusions>>,
}

type Committed = Vec<(String, Vec<u8>)>;

fn args(spool: &Arc<MemorySpool>, committed: Committed) -> OutputArgs {
    let settings = |name: &str, purpose| OutputSettings {
        name: name.to_owned(),
        purpose,
        prefix: format!("pages/{name}"),
        file_bytes_max: 1_000,
    };
    OutputArgs {
        shard: ShardId(3),
        spool: Arc::clone(spool) as Arc<dyn Spool>,
        clock: Arc::new(TokioClock::starting_at(Timestamp::EPOCH)),
        exclusions: watch::channel(Arc::default()).1,
        outputs: vec![settings("pages", Purpose::Search), settings("all", Purpose::Archive)],
        committed,
        metrics: Arc::default(),
        turn: Turn::default(),
    }
}

impl Bench {
    async fn new(spool: &Arc<MemorySpool>, committed: Committed) -> Self {
        let mut args = args(spool, committed);
        let exclusions = watch::Sender::new(Arc::default());
        args.exclusions = exclusions.subscribe();
        let (clock, metrics) = (Arc::clone(&args.clock), Arc::clone(&args.metrics));
        let (tell, heard) = mpsc::channel(10);
        let (shard, _) = Actor::spawn(None, FakeShard, tell).await.unwrap();
        let (output, _) = Actor::spawn(None, OutputActor, args).await.unwrap();
        Self { output, shard, heard, clock, metrics, exclusions }
    }

    fn publish(&self, name: &str, robots: &[&str], permit: Permit) {
        let (row, document) = page(name, robots);
        let document = Some(Box::new(document));
        self.publish_page(FinishedPage {
            row,
            document,
            links: 2,
            reasons: Vec::new(),
            shard: self.shard.clone(),
            permit,
        });
    }

    fn publish_page(&self, page: FinishedPage) {
        self.output.send_message(OutputMsg::Publish(Box::new(page))).unwrap();
    }

    async fn view(&self) -> OutputView {
        let (answer, view) = Answer::channel();
        self.output.send_message(OutputMsg::Observe(answer)).unwrap();
        view.await.unwrap()
    }
}

fn page(name: &str, robots: &[&str]) -> (ToParse, Document) {
    let url = CrawlUrl::parse(&format!("http://a.test/{name}")).unwrap();
    let id = UrlId { host: HostId(1), hash: 2, disambiguator: 0 };
    let archive = ArchivePointer { file: "a.warc.gz".into(), offset: 0, length: 1 };
    let row = ToParse {
        id,
        version: UrlVersion(1),
        url: url.clone(),
        depth: 0,
        redirects: 0,
        status: 200,
        fetched_at: Timestamp::EPOCH,
        archive: archive.clone(),
        discovered_from: None,
        reason: None,
        attempts: 0,
        usage: Vec::new(),
    };
    let document = Document {
        url,
        url_id: id,
        version: UrlVersion(1),
        fetched_at: Timestamp::EPOCH,
        status: 200,
        content_type: None,
        charset: None,
        language: None,
        title: Some("line\nend".to_owned()),
        description: None,
        canonical: None,
        text: String::new(),
        links: Vec::new(),
        digest: String::new(),
        simhash: None,
        duplicate_of: Some("http://first.test/".to_owned()),
        near_duplicate_of: None,
        reason: Vec::new(),
        usage: Vec::new(),
        robots: robots.iter().map(|word| (*word).to_owned()).collect(),
        depth: 0,
        discovered_from: None,
        parser_version: 1,
        archive,
        fields: std::collections::BTreeMap::new(),
    };
    (row, document)
}

/// The last path segments of the documents in the files of an output, in order.
async fn lines(spool: &MemorySpool, output: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (file, _) in spool.list("pages").await.unwrap() {
        if file.starts_with(&format!("pages/{output}-3-")) {
            let content = String::from_utf8(spool.content(&file).unwrap()).unwrap();
            assert!(content.is_empty() || content.ends_with('\n'), "no half line");
            for line in content.lines() {
                let document: Document = serde_json::from_str(line).unwrap();
                names.push(document.url.path_and_query().trim_start_matches('/').to_owned());
            }
        }
    }
    names
}

#[tokio::test(start_paused = true)]
async fn documents_are_on_the_disk_before_the_shard_hears_of_them() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    let credit = Credit::new(2);
    bench.publish("one", &[], credit.take(1).await);
    bench.publish("two", &["noindex"], credit.take(1).await);
    let batch = bench.heard.recv().await.unwrap();
    assert_eq!(lines(&spool, "pages").await, ["one"]);
    assert_eq!(lines(&spool, "all").await, ["one", "two"]);
    assert_eq!(batch.pages.len(), 2);
    assert_eq!(batch.pages[0].duplicate_of.as_deref(), Some("http://first.test/"));
    assert_eq!((batch.outputs.len(), batch.outputs[0].0.as_str()), (2, "pages"));
    assert_eq!(credit.used(), 2, "the pages are under way until they are committed");
    batch.answer.send(());
    let view = bench.view().await;
    assert_eq!((view.documents, view.left_out, view.waiting), (3, 1, 0));
    assert_eq!(credit.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_a_document_is_only_reported() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    let (row, _) = page("redirect", &[]);
    let shard = bench.shard.clone();
    let (reasons, permit) = (Vec::new(), Permit::free());
    let expected =
        PublishedPage { row: row.clone(), links: 1, duplicate_of: None, parser_version: 0 };
    bench.publish_page(FinishedPage { row, document: None, links: 1, reasons, shard, permit });
    let batch = bench.heard.recv().await.unwrap();
    assert_eq!(batch.pages, [expected]);
    assert!(batch.outputs.is_empty());
    assert!(spool.list("pages").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_leaves_every_document_once() {
    let spool = Arc::new(MemorySpool::new());
    let mut committed = Committed::new();
    let mut expected = Vec::new();
    for round in 0..6 {
        let mut bench = Bench::new(&spool, committed.clone()).await;
        bench.publish(&format!("{round}-kept"), &[], Permit::free());
        expected.push(format!("{round}-kept"));
        let batch = bench.heard.recv().await.unwrap();
        for (name, state) in batch.outputs {
            committed.retain(|(old, _)| *old != name);
            committed.push((name, state));
        }
        batch.answer.send(());
        // Synced, but the crash comes before the shard has committed it.
        bench.publish(&format!("{round}-lost"), &[], Permit::free());
        let _unanswered = bench.heard.recv().await.unwrap();
        assert_eq!(lines(&spool, "all").await.len(), expected.len() + 1);
        bench.output.stop_and_wait(None, None).await.unwrap();
        // Half a line, as a torn append leaves it.
        let (last, _) = spool.list("pages").await.unwrap().pop().unwrap();
        let mut content = spool.content(&last).unwrap();
        content.extend_from_slice(b"{\"url\": ");
        spool.place(&last, content);
    }
    Bench::new(&spool, committed).await;
    assert_eq!(lines(&spool, "all").await, expected);
    assert_eq!(lines(&spool, "pages").await, expected);
    assert!(spool.list("pages").await.unwrap().len() > 2, "files were changed on the way");
}

#[tokio::test(start_paused = true)]
async fn nothing_committed_means_nothing_there() {
    let spool = Arc::new(MemorySpool::new());
    spool.place("pages/pages-3-0.jsonl", b"left over\n".to_vec());
    spool.place("pages/pages-4-0.jsonl", b"of another shard\n".to_vec());
    Bench::new(&spool, Vec::new()).await;
    let left = spool.list("pages").await.unwrap();
    assert_eq!(left, [("pages/pages-4-0.jsonl".to_owned(), 17)]);
}

#[tokio::test(start_paused = true)]
async fn committed_bytes_that_are_missing_are_a_failure() {
    let spool = Arc::new(MemorySpool::new());
    let place = super::super::committed::Place { file: 0, offset: 10 };
    let committed = vec![("pages".to_owned(), postcard::to_stdvec(&place).unwrap())];
    spool.place("pages/pages-3-0.jsonl", b"short".to_vec());
    let outputs = args(&spool, Vec::new()).outputs;
    let disk = Arc::clone(&spool) as Arc<dyn Spool>;
    let state = Some(committed[0].1.as_slice());
    let opened = JsonLines::open(&disk, ShardId(3), outputs[0].clone(), state).await;
    assert!(matches!(opened, Err(OutputError::Lost { found: 5, committed: 10, .. })));
    assert!(Actor::spawn(None, OutputActor, args(&spool, committed)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_failing_disk_holds_the_pages_and_writes_them_once() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    spool.set_fault(Some("disk full"));
    bench.publish("one", &[], Permit::free());
    bench.clock.sleep(Duration::from_secs(100)).await;
    bench.publish("two", &[], Permit::free());
    bench.clock.sleep(Duration::from_secs(1)).await;
    let view = bench.view().await;
    assert_eq!((view.waiting, view.failure.as_deref()), (2, Some("disk full")));
    assert!(bench.heard.try_recv().is_err());
    assert!(bench.metrics.count(Counter::DiskFailures) > 2);
    spool.set_fault(None);
    for _ in 0..2 {
        let batch = bench.heard.recv().await.unwrap();
        assert_eq!(batch.pages.len(), 1);
        batch.answer.send(());
    }
    assert_eq!(lines(&spool, "pages").await, ["one", "two"]);
    assert_eq!(bench.view().await.failure, None);
}

#[tokio::test(start_paused = true)]
async fn closing_commits_what_waits() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    bench.publish("one", &[], Permit::free());
    let (answer, mut closed) = Answer::channel();
    bench.output.send_message(OutputMsg::Close(answer)).unwrap();
    let batch = bench.heard.recv().await.unwrap();
    assert!(closed.try_recv().is_err(), "not before it is committed");
    batch.answer.send(());
    closed.await.unwrap();
    assert_eq!(lines(&spool, "pages").await, ["one"]);
}

#[tokio::test(start_paused = true)]
async fn an_output_whose_shard_is_gone_stops() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    bench.publish("one", &[], Permit::free());
    drop(bench.heard.recv().await.unwrap());
    bench.output.wait(None).await.unwrap();
}

/// A disk whose first append takes a minute, though nobody waits for it any more.
#[derive(Debug)]
struct SlowOnce {
    files: Arc<MemorySpool>,
    clock: Arc<dyn Clock>,
    is_slow: std::sync::atomic::AtomicBool,
}

#[async_trait::async_trait]
impl Spool for SlowOnce {
    async fn append(&self, name: &str, offset: u64, bytes: bytes::Bytes) -> std::io::Result<()> {
        if self.is_slow.swap(false, std::sync::atomic::Ordering::SeqCst) {
            self.clock.sleep(Duration::from_secs(60)).await;
        }
        self.files.append(name, offset, bytes).await
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> std::io::Result<bytes::Bytes> {
        self.files.read(name, offset, length).await
    }

    async fn truncate(&self, name: &str, length: u64) -> std::io::Result<()> {
        self.files.truncate(name, length).await
    }

    async fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.files.rename(from, to).await
    }

    async fn remove(&self, name: &str) -> std::io::Result<()> {
        self.files.remove(name).await
    }

    async fn list(&self, folder: &str) -> std::io::Result<Vec<(String, u64)>> {
        self.files.list(folder).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_outlives_its_output_spoils_nothing_of_the_next_one() {
    let files = Arc::new(MemorySpool::new());
    let first = args(&files, Vec::new());
    let clock = Arc::clone(&first.clock);
    let slow =
        SlowOnce { files: Arc::clone(&files), clock: Arc::clone(&clock), is_slow: true.into() };
    let (slow, turn): (Arc<dyn Spool>, _) = (Arc::new(slow), Turn::default());
    let of_turn = || OutputArgs {
        spool: Arc::clone(&slow),
        clock: Arc::clone(&clock),
        turn: Arc::clone(&turn),
        ..args(&files, Vec::new())
    };
    let (tell, mut heard) = mpsc::channel(10);
    let (shard, _) = Actor::spawn(None, FakeShard, tell).await.unwrap();
    let publish = |output: &ActorRef<OutputMsg>, name: &str| {
        let (row, document) = page(name, &[]);
        let (document, shard) = (Some(Box::new(document)), shard.clone());
        let (links, reasons, permit) = (0, Vec::new(), Permit::free());
        let page = FinishedPage { row, document, links, reasons, shard, permit };
        output.send_message(OutputMsg::Publish(Box::new(page))).unwrap();
    };
    let (old, _) = Actor::spawn(None, OutputActor, of_turn()).await.unwrap();
    publish(&old, "old");
    clock.sleep(Duration::from_secs(1)).await;
    old.kill();
    let (new, _) = Actor::spawn(None, OutputActor, of_turn()).await.unwrap();
    publish(&new, "new-and-longer");
    heard.recv().await.unwrap().answer.send(());
    clock.sleep(Duration::from_secs(120)).await;
    assert_eq!(lines(&files, "pages").await, ["new-and-longer"]);
    assert_eq!(lines(&files, "all").await, ["new-and-longer"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_rotation_pages_go_to_other_files_also_after_a_restart() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    let rotate = |bench: &Bench| {
        let (answer, rotated) = Answer::channel();
        bench.output.send_message(OutputMsg::Rotate(bench.shard.clone(), answer)).unwrap();
        rotated
    };
    rotate(&bench).await.unwrap();
    bench.publish("one", &[], Permit::free());
    bench.heard.recv().await.unwrap().answer.send(());
    let mut rotated = rotate(&bench);
    let batch = bench.heard.recv().await.unwrap();
    assert!(batch.pages.is_empty() && rotated.try_recv().is_err(), "not before the commit");
    let committed = batch.outputs;
    batch.answer.send(());
    rotated.await.unwrap();
    bench.publish("two", &[], Permit::free());
    bench.heard.recv().await.unwrap().answer.send(());
    let file = |number: u8| spool.content(&format!("pages/pages-3-{number}.jsonl")).unwrap();
    let both = (file(0), file(1));
    assert!(String::from_utf8_lossy(&both.0).contains("/one"));
    assert!(String::from_utf8_lossy(&both.1).contains("/two"));
    // The closed file may lose lines; what was not committed is cut as ever.
    spool.place("pages/pages-3-0.jsonl", Vec::new());
    let mut bench = Bench::new(&spool, committed).await;
    bench.publish("three", &[], Permit::free());
    bench.heard.recv().await.unwrap();
    assert_eq!(lines(&spool, "pages").await, ["three"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_being_removed_gets_no_record_and_is_reported() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, Vec::new()).await;
    let rule = "surt:test,a)/one".to_owned();
    let order = PurgeRecord::new("1f".to_owned(), rule, Timestamp::EPOCH);
    bench.exclusions.send_replace(Arc::new(Exclusions::default().with_purge(order)));
    bench.publish("one", &[], Permit::free());
    bench.publish("two", &[], Permit::free());
    let batch = bench.heard.recv().await.unwrap();
    assert_eq!(batch.pages.len(), 2);
    assert_eq!(lines(&spool, "pages").await, ["two"]);
    assert_eq!(lines(&spool, "all").await, ["two"]);
}
