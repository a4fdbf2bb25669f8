//! Files before and after, and with a disk that fails or a life that ends amid it.

use super::super::group::Group;
use super::super::member::{MemberWriter, size};
use super::super::publish::{ClosedFile, publish};
use super::super::samples::{START, completion, page};
use super::super::warc::{CrawlerInfo, warcinfo};
use super::super::{ArchiveReader, StoredResponse};
use super::*;
use crate::protocol::archive::StoreJob;
use crate::protocol::{Permit, ShardMsg, Unheard, probe};
use crate::telemetry::Metrics;
use crate::types::{ArchivePointer, ContentRecord};
use crate::world::{MemorySpool, SeededDice};

/// Pages of a file: two sites take turns, with bodies of many sizes.
fn urls() -> Vec<String> {
    (0..12)
        .map(|n| format!("http://{}.test/{n}", if n % 3 == 1 { "gone" } else { "kept" }))
        .collect()
}

fn body(n: usize) -> Vec<u8> {
    let secret = format!("<p>marker of {n} ");
    secret.repeat(1 + n * n * 40).into_bytes()
}

fn is_gone(url: &CrawlUrl) -> bool {
    url.host_key().host() == "gone.test"
}

struct Stage {
    spool: Arc<MemorySpool>,
    /// By URL.
    pointers: Vec<(String, ArchivePointer)>,
}

impl Stage {
    /// One published file.
    async fn new(name: &str) -> Self {
        let spool = Arc::new(MemorySpool::new());
        let format = ArchiveFormat::of_name(name).unwrap();
        let (mut writer, dice) = (MemberWriter::new(format), SeededDice::new(3));
        let (shard, _heard) = probe::probe::<ShardMsg>().await;
        let mut group = Group::default();
        let mut earlier: Option<ContentRecord> = None;
        let at = Timestamp::from_millis(START);
        let mut header = Vec::new();
        let info = warcinfo(&CrawlerInfo::default(), name, at, &dice);
        writer.write(&info.parts(), false, &mut header);
        let mut pointers = Vec::new();
        for (n, url) in urls().into_iter().enumerate() {
            // The last of the kept site has the payload of a page that goes.
            let last = n == 11;
            let response = page(&url, &if last { body(1) } else { body(n) });
            let mut done = completion(&response);
            done.digest = Some(super::super::digest::sha1_of(&[&response.body]));
            let (permit, unheard) = (Permit::free(), Unheard::default());
            let job =
                StoreJob { response, completion: done, shard: shard.clone(), permit, unheard };
            group.add(job, earlier.as_ref().filter(|_| last), &mut writer, &dice);
            let (offset, length) = group.waiting[n].place;
            let offset = offset + size(header.len());
            let archive = ArchivePointer { file: name.into(), offset, length };
            if n == 1 {
                let url = CrawlUrl::parse(&url).unwrap();
                earlier = Some(ContentRecord { url, fetched_at: at, archive: archive.clone() });
            }
            pointers.push((url, archive));
        }
        let bytes = [header, group.bytes].concat();
        let closed =
            ClosedFile { name: name.to_owned(), bytes: size(bytes.len()), ..ClosedFile::default() };
        spool.place(&format!("archive/{name}{OPEN}"), bytes);
        let disk = Arc::clone(&spool) as Arc<dyn Spool>;
        publish(&disk, &closed, &Metrics::new()).await.unwrap();
        Self { spool, pointers }
    }

    fn purge(&self) -> ArchivePurge {
        ArchivePurge {
            spool: Arc::clone(&self.spool) as Arc<dyn Spool>,
            dice: Arc::new(SeededDice::new(9)),
            exclusion: "00ff00ff00ff00ff".to_owned(),
            at: Timestamp::from_millis(START),
        }
    }

    async fn read(&self, pointer: &ArchivePointer) -> Result<StoredResponse, ArchiveError> {
        ArchiveReader::new(Arc::clone(&self.spool) as Arc<dyn Spool>).read(pointer).await
    }

    /// Every record of the file: its kind, target and block.
    async fn records(&self, file: &str) -> Vec<(String, Option<String>, String)> {
        let disk = Arc::clone(&self.spool) as Arc<dyn Spool>;
        let mut scan = Scan::new(&disk, file, format_of(file).unwrap());
        let mut records = Vec::new();
        while let Some(found) = scan.next().await.unwrap() {
            let target = found.record.field("WARC-Target-URI").map(str::to_owned);
            let block = String::from_utf8_lossy(&found.record.block).into_owned();
            records.push((found.record.kind().to_owned(), target, block));
        }
        records
    }

    /// What must hold when all is done.
    async fn is_purged(&self, file: &str, before: &[u8]) {
        assert_eq!(self.spool.content(file).unwrap().len(), before.len());
        let records = self.records(file).await;
        assert_eq!(records.len(), 25, "each has one in its place");
        assert_eq!(records.iter().filter(|(kind, ..)| kind == filler::REMOVED).count(), 8);
        for (kind, target, block) in &records {
            assert!(!target.as_ref().is_some_and(|url| url.contains("gone.test")), "{kind}");
            for n in [1, 4, 7, 10] {
                assert!(!block.contains(&format!("marker of {n} ")), "{kind} {target:?}");
            }
        }
        let index = String::from_utf8(self.spool.content(&index_path(file)).unwrap()).unwrap();
        assert_eq!(index.lines().count(), 8);
        assert!(index.lines().is_sorted() && !index.contains("gone"), "{index}");
        for (n, (url, pointer)) in self.pointers.iter().enumerate() {
            let read = self.read(pointer).await;
            match n {
                1 | 4 | 7 | 10 | 11 => {
                    let error = read.unwrap_err();
                    assert!(matches!(error, ArchiveError::Removed { .. }), "{url}: {error}");
                }
                _ => assert_eq!(read.unwrap().body, body(n), "{url}"),
            }
        }
        let drafts = self.spool.list("archive").await.unwrap();
        assert_eq!(drafts.len(), 1, "{drafts:?}");
    }
}

const FILES: [&str; 2] = ["mehman-1-00000-0.warc.gz", "mehman-1-00000-0.warc.zst"];

#[tokio::test]
async fn records_go_and_those_that_stay_are_where_they_were() {
    for name in FILES {
        let stage = Stage::new(name).await;
        let (purge, file) = (stage.purge(), format!("archive/{name}"));
        let before = stage.spool.content(&file).unwrap();
        stage.spool.place(&format!("{file}.purge"), b"left by a crash".to_vec());
        stage.spool.place(&format!("archive/other.warc.gz{OPEN}"), b"being written".to_vec());
        assert_eq!(purge.files().await.unwrap(), std::slice::from_ref(&file));
        stage.spool.remove(&format!("archive/other.warc.gz{OPEN}")).await.unwrap();
        let finds = purge.look(&file, &is_gone).await.unwrap();
        let removed = finds.removed();
        assert_eq!((removed.records, removed.index_lines, finds.unreadable), (8, 4, false));
        purge.rewrite(&file, &finds, &|| false).await.unwrap();
        stage.is_purged(&file, &before).await;
        assert!(purge.look(&file, &is_gone).await.unwrap().removed().is_none());
    }
}

#[tokio::test]
async fn a_purge_that_is_cut_anywhere_leaves_whole_files_and_is_done_by_the_next() {
    let name = FILES[0];
    let file = format!("archive/{name}");
    for cut in 0..4 {
        let stage = Stage::new(name).await;
        let purge = stage.purge();
        let before = stage.spool.content(&file).unwrap();
        let finds = purge.look(&file, &is_gone).await.unwrap();
        // The steps of a rewrite, as far as a crash lets them come.
        let index = index_path(&file);
        if cut > 0 {
            stage.spool.place(&draft_of(&file), before[..before.len() / 2].to_vec());
        }
        if cut > 1 {
            splice(&*stage.spool, &index, &finds.lines, |_| Vec::new(), &|| false).await.unwrap();
        }
        if cut > 2 {
            stage.spool.rename(&draft_of(&index), &index).await.unwrap();
        }
        assert_eq!(stage.spool.content(&file).unwrap(), before, "whole at cut {cut}");
        assert_eq!(purge.files().await.unwrap(), std::slice::from_ref(&file));
        let finds = purge.look(&file, &is_gone).await.unwrap();
        assert_eq!(finds.records.len(), 8, "found again at cut {cut}");
        purge.rewrite(&file, &finds, &|| false).await.unwrap();
        stage.is_purged(&file, &before).await;
    }
}

#[tokio::test]
async fn a_disk_that_fails_changes_nothing() {
    let name = FILES[0];
    let file = format!("archive/{name}");
    let stage = Stage::new(name).await;
    let purge = stage.purge();
    let before = stage.spool.content(&file).unwrap();
    let finds = purge.look(&file, &is_gone).await.unwrap();
    stage.spool.set_fault(Some("disk full"));
    purge.rewrite(&file, &finds, &|| false).await.unwrap_err();
    assert_eq!(stage.spool.content(&file).unwrap(), before);
    stage.spool.set_fault(None);
    purge.rewrite(&file, &finds, &|| true).await.unwrap_err();
    assert_eq!(stage.spool.content(&file).unwrap(), before);
    purge.rewrite(&file, &finds, &|| false).await.unwrap();
    stage.is_purged(&file, &before).await;
}

#[tokio::test]
async fn what_can_be_read_of_a_damaged_file_is_purged_and_the_rest_is_told() {
    let name = FILES[0];
    let stage = Stage::new(name).await;
    let (purge, file) = (stage.purge(), format!("archive/{name}"));
    let mut bytes = stage.spool.content(&file).unwrap();
    let (_, fifth) = &stage.pointers[5];
    let at = usize::try_from(fifth.offset).unwrap();
    bytes[at..at + 20].fill(0);
    stage.spool.remove(&file).await.unwrap();
    let aside = format!("{file}{DAMAGED}");
    stage.spool.place(&aside, bytes);
    assert_eq!(purge.files().await.unwrap(), std::slice::from_ref(&aside));
    let finds = purge.look(&aside, &is_gone).await.unwrap();
    assert_eq!((finds.records.len(), finds.unreadable), (4, true));
    purge.rewrite(&aside, &finds, &|| false).await.unwrap();
    assert!(stage.read(&stage.pointers[3].1).await.is_ok());
    let gone = stage.read(&stage.pointers[4].1).await.unwrap_err();
    assert!(matches!(gone, ArchiveError::Removed { .. }), "{gone}");
}
