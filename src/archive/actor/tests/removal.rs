//! R5: what a purge asks of the archive.

use super::*;
use crate::types::{ArchivePointer, Completion, CrawlUrl, PurgeRecord, Reason};

fn purging(rule: &str) -> Arc<Exclusions> {
    let order = PurgeRecord::new("1f".to_owned(), rule.to_owned(), Timestamp::from_millis(START));
    Arc::new(Exclusions::default().with_purge(order))
}

#[tokio::test(start_paused = true)]
async fn a_rotation_is_answered_when_all_that_was_given_before_is_published() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    let rotate = || {
        let (answer, rotated) = Answer::channel();
        bench.archive.send_message(ArchiveMsg::Rotate(answer)).unwrap();
        rotated
    };
    rotate().await.unwrap();
    assert!(bench.files().await.is_empty(), "there is nothing to publish");
    bench.store(page("http://a.test/", b"<p>one"));
    // One of this size waits for the word of the payload index.
    bench.store(page("http://a.test/long", &[b'x'; 5000]));
    let rotated = rotate();
    rotated.await.unwrap();
    assert_eq!(bench.files().await, [FILE, INDEX]);
    for _ in 0..2 {
        let report = bench.ended().await;
        assert!(FILE.ends_with(&*report.completion.archive.unwrap().file));
    }
    bench.store(page("http://a.test/later", b"<p>two"));
    let later = bench.ended().await.completion.archive.unwrap();
    assert!(!FILE.ends_with(&*later.file), "the work goes on in another file");
}

#[tokio::test(start_paused = true)]
async fn a_rotation_outlasts_a_disk_that_fails() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.store(page("http://a.test/", b"<p>one"));
    bench.ended().await;
    spool.set_fault(Some("disk full"));
    bench.store(page("http://a.test/two", b"<p>two"));
    let (answer, mut rotated) = Answer::channel();
    bench.archive.send_message(ArchiveMsg::Rotate(answer)).unwrap();
    tokio::time::timeout(Duration::from_secs(20), &mut rotated).await.unwrap_err();
    spool.set_fault(None);
    rotated.await.unwrap();
    let files = bench.files().await;
    assert_eq!(files.len(), 4, "two files with their indexes: {files:?}");
    assert!(files.iter().all(|file| !file.ends_with(publish::OPEN)), "{files:?}");
    assert!(bench.ended().await.completion.archive.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_being_removed_is_not_stored_and_its_shard_hears_what_the_site_asked_for() {
    let spool = Arc::new(MemorySpool::new());
    let mut bench = Bench::new(&spool, None).await;
    bench.exclusions.send_replace(purging("host:a.test"));
    let response = page("http://a.test/", b"<p>one");
    let mut report = completion(&response);
    (report.retry_after, report.sent_at) = (Some(Duration::from_secs(90)), Some(response.sent_at));
    let job = StoreJob {
        response,
        completion: report,
        shard: bench.shard.clone(),
        permit: Permit::free(),
        unheard: Unheard::default(),
    };
    bench.archive.send_message(ArchiveMsg::Store(Box::new(job))).unwrap();
    bench.store(page("http://b.test/", b"<p>two"));
    let cut = bench.ended().await;
    let Completion { outcome, reason, archive, retry_after, sent_at, .. } = cut.completion;
    assert_eq!((outcome, archive), (Outcome::Cancelled, None));
    assert_eq!(reason, Some(Reason::Excluded { id: "1f".to_owned() }));
    assert_eq!(retry_after, Some(Duration::from_secs(90)));
    assert!(sent_at.is_some() && cut.response.is_none());
    let stored = bench.ended().await;
    assert_eq!(stored.completion.url.as_str(), "http://b.test/");
    assert_eq!(bench.view().await.records, 2, "request and response of the other");
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_was_removed_is_stored_again_for_others() {
    let spool = Arc::new(MemorySpool::new());
    let archive = ArchivePointer { file: "gone.warc.gz".into(), offset: 0, length: 300 };
    let url = CrawlUrl::parse("http://a.test/").unwrap();
    let known = ContentRecord { url, fetched_at: Timestamp::from_millis(START), archive };
    let mut bench = Bench::new(&spool, Some(known)).await;
    bench.exclusions.send_replace(purging("host:a.test"));
    bench.store(page("http://b.test/", &[b'x'; 5000]));
    let report = bench.ended().await;
    assert_eq!(bench.read(&report).await.body.len(), 5000);
}
