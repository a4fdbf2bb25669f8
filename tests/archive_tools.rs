//! O1, O3: what the archive writes is read by the tools people use: warcio, FastWARC, cdxj-indexer,
//! pywb. They are Python; `scripts/python-tools` installs them, and without them this fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mehman::archive::{
    ArchiveActor, ArchiveArgs, ArchiveFormat, ArchivePurge, ArchiveSettings, CrawlerInfo,
};
use mehman::protocol::archive::StoreJob;
use mehman::protocol::{
    Answer, ArchiveMsg, OutputMsg, Permit, Routes, ShardMsg, ShardRoute, Unheard,
};
use mehman::types::{
    Completion, ContentRecord, CrawlUrl, Epoch, Headers, Lease, LeaseId, LeaseKind, Outcome,
    QueueEntry, Reason, Response, Timestamp, Truncation, UrlId, UrlVersion, Validators,
};
use mehman::world::{DirectorySpool, SeededDice, TokioClock};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};
use serde_json::Value;
use sha1::Digest;
use tokio::sync::{mpsc, watch};

const START: i64 = 1_767_225_600_000;

/// A shard with a payload index, as the archive sees it.
struct PayloadIndex;

type Payloads = BTreeMap<String, ContentRecord>;

impl Actor for PayloadIndex {
    type Msg = ShardMsg;
    type State = (Payloads, mpsc::Sender<Completion>);
    type Arguments = mpsc::Sender<Completion>;

    async fn pre_start(
        &self,
        _: ActorRef<ShardMsg>,
        heard: mpsc::Sender<Completion>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((Payloads::new(), heard))
    }

    async fn handle(
        &self,
        _: ActorRef<ShardMsg>,
        message: ShardMsg,
        (payloads, heard): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let ShardMsg::LookUpPayload(digest, answer) = message {
            answer.send(payloads.get(&digest).cloned().map(Box::new));
        } else if let ShardMsg::Ended(report) = message {
            let (completion, response) = (report.completion, report.response.unwrap());
            let record = ContentRecord {
                url: response.lease.entry.url.clone(),
                fetched_at: response.sent_at,
                archive: completion.archive.clone().unwrap(),
            };
            payloads.entry(completion.digest.clone().unwrap()).or_insert(record);
            heard.send(completion).await?;
        }
        Ok(())
    }
}

/// One exchange of the crawl that is archived.
struct Sample {
    url: &'static str,
    status: u16,
    status_line: Option<&'static [u8]>,
    headers: Vec<(&'static str, &'static [u8])>,
    body: Vec<u8>,
    protocol: &'static str,
    truncated: Option<Truncation>,
}

fn sample(
    url: &'static str,
    status: u16,
    headers: &[(&'static str, &'static str)],
    body: &[u8],
) -> Sample {
    let headers = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let body = body.to_vec();
    let protocol = "HTTP/1.1";
    Sample { url, status, status_line: None, headers, body, protocol, truncated: None }
}

const PAGE: &str =
    "<!doctype html><title>One</title><p>A page that is long enough to be told apart.";

fn page(n: u8) -> Vec<u8> {
    format!("{PAGE}{}", format!("<p>paragraph {n}").repeat(100)).into_bytes()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 65_536];
    let level = libdeflater::CompressionLvl::default();
    let length = libdeflater::Compressor::new(level).gzip_compress(bytes, &mut out).unwrap();
    out.truncate(length);
    out
}

/// Bytes that look like nothing.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn samples() -> Vec<Sample> {
    let html = ("Content-Type", "text/html; charset=utf-8");
    let mut samples = vec![
        sample("http://one.test/robots.txt", 404, &[], b""),
        sample("http://one.test/", 200, &[html], &page(1)),
        sample(
            "http://one.test/packed?b=2&a=1",
            200,
            &[html, ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")],
            &gzipped(&page(2)),
        ),
        sample("http://www.two.test:8080/Copy", 200, &[html], &page(1)),
        sample("http://one.test/", 304, &[("ETag", "\"1\"")], b""),
        sample("https://one.test/old", 301, &[("Location", "https://one.test/new")], b"moved"),
        sample("https://one.test/image", 200, &[("Content-Type", "image/png")], &noise(200_000)),
        sample("https://one.test/cut", 200, &[html, ("Content-Length", "99999")], &page(3)),
        sample("https://one.test/odd", 200, &[("X-Empty", ""), ("Content-Type", "")], b"odd"),
        sample("https://one.test/bytes", 200, &[("Content-Length", "0")], b""),
        sample("http://127.0.0.1:81/", 299, &[("Content-Type", "text/plain")], b"address"),
    ];
    samples[7].truncated = Some(Truncation::Length);
    samples[6].protocol = "HTTP/2";
    samples[8].status_line = Some(b"HTTP/1.0 200 Sch\xf6n");
    samples[8].protocol = "HTTP/1.0";
    samples[9].status_line = Some(b"HTTP/1.1 200");
    samples[10].status_line = Some(b"HTTP/1.1 299 of our own");
    samples[9].headers.push(("Content-Type", b"text/pl\xe4in \xff"));
    samples[9].headers.push(("X-Odd", b"a\xc3\xa9\t\"quoted\\\""));
    samples
}

fn job(sample: &Sample, n: usize, seen: &Seen, shard: &ActorRef<ShardMsg>) -> StoreJob {
    let url = CrawlUrl::parse(sample.url).unwrap();
    let n = i64::try_from(n).unwrap();
    let sent_at = Timestamp::from_secs(START / 1000 + n);
    let digest = seen.get(sample.url).cloned();
    let entry = QueueEntry {
        id: UrlId { host: url.host_key().id(), hash: 0, disambiguator: 0 },
        version: UrlVersion(1),
        url: url.clone(),
        depth: 0,
        band: 0,
        order: 0,
        attempts: 0,
        redirects: 0,
        validators: Some(Validators { digest, ..Validators::default() }),
        discovered_from: None,
    };
    let lease = Lease {
        id: LeaseId(1),
        kind: LeaseKind::Page,
        host: url.host_key(),
        entry,
        epoch: Epoch(1),
        granted_at: sent_at,
        not_before: sent_at,
        expires_at: Timestamp::NEVER,
        address: None,
    };
    let outcome = Outcome::of_status(sample.status).unwrap();
    let completion = Completion::failed(&lease, sent_at, outcome, Reason::Queued);
    let owned = |(name, value): &(&str, &[u8])| ((*name).to_owned(), Bytes::copy_from_slice(value));
    let headers: Headers = sample.headers.iter().map(owned).collect();
    let request = format!(
        "GET {} {}\r\nHost: {}\r\nUser-Agent: mehman/0\r\n\r\n",
        url.path_and_query(),
        sample.protocol,
        url.host_key().authority()
    );
    let response = Response {
        lease: Arc::new(lease),
        request_head: request.into(),
        protocol: sample.protocol,
        status: sample.status,
        status_line: sample.status_line.map(Bytes::from_static),
        headers,
        body: sample.body.clone().into(),
        truncated: sample.truncated,
        sent_at,
        ended_at: sent_at,
        address: "[::ffff:192.0.2.1]:80".parse().unwrap(),
    };
    StoreJob {
        response,
        completion,
        shard: shard.clone(),
        permit: Permit::free(),
        unheard: Unheard::default(),
    }
}

/// Digests by URL, for the validators of a second visit.
type Seen = BTreeMap<&'static str, String>;

/// Archives the samples one after the other and closes the archive; answers with the file's path.
async fn archive(folder: &Path, format: ArchiveFormat) -> PathBuf {
    let (tell, mut heard) = mpsc::channel(10);
    let (shard, _) = Actor::spawn(None, PayloadIndex, tell).await.unwrap();
    let output = ActorRef::<OutputMsg>::from(ActorCell::from(shard.clone()));
    let shards = vec![Some(ShardRoute { shard: shard.clone(), output })];
    let routes = Routes { shards, ..Routes::default() };
    let crawler = CrawlerInfo {
        software: "mehman/0".to_owned(),
        user_agent: "mehman/0 (+http://operator.test/)".to_owned(),
        operator: "http://operator.test/".to_owned(),
    };
    let args = ArchiveArgs {
        spool: Arc::new(DirectorySpool::new(folder)),
        clock: Arc::new(TokioClock::starting_at(Timestamp::from_millis(START))),
        dice: Arc::new(SeededDice::new(1)),
        routes: watch::channel(Arc::new(routes)).1,
        exclusions: watch::channel(Arc::default()).1,
        metrics: Arc::default(),
        settings: ArchiveSettings {
            format,
            file_bytes_max: 1 << 30,
            file_age_max: Duration::from_secs(3600),
            index: 0,
            count: 1,
            crawler,
        },
    };
    let (archive, _) = Actor::spawn(None, ArchiveActor, args).await.unwrap();
    let mut seen = Seen::new();
    let mut file = None;
    for (n, sample) in samples().iter().enumerate() {
        let job = job(sample, n, &seen, &shard);
        archive.send_message(ArchiveMsg::Store(Box::new(job))).unwrap();
        let completion = heard.recv().await.unwrap();
        seen.insert(sample.url, completion.digest.unwrap());
        file = Some(completion.archive.unwrap().file);
    }
    let (answer, closed) = Answer::channel();
    archive.send_message(ArchiveMsg::Close(answer)).unwrap();
    closed.await.unwrap();
    folder.join("archive").join(&*file.unwrap())
}

/// Runs `tests/data/warc/tools.py`.
fn tools(arguments: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("MEHMAN_TEST_PYTHON")
        .map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
    assert!(python.exists(), "{} is not there: run scripts/python-tools", python.display());
    let script = root.join("tests/data/warc/tools.py");
    let ran = Command::new(&python).arg(script).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "run scripts/python-tools if a module is missing\n{error}");
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {error}"))
}

fn sha1(bytes: &[u8]) -> String {
    let digest = sha1::Sha1::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What every reader has to find, in order.
fn expected_records() -> Vec<Value> {
    let mut records = Vec::new();
    for (n, sample) in samples().iter().enumerate() {
        let (kind, body) = match n {
            3 | 4 => ("revisit", &[][..]),
            _ => ("response", sample.body.as_slice()),
        };
        records.push(serde_json::json!({
            "type": kind,
            "url": sample.url,
            "status": sample.status.to_string(),
            "sha1": sha1(body),
        }));
    }
    records
}

fn responses(found: &Value) -> Vec<Value> {
    let all = found.as_array().unwrap();
    let kinds: Vec<_> = all.iter().map(|record| record["type"].as_str().unwrap()).collect();
    let requests = kinds.iter().filter(|kind| **kind == "request").count();
    assert_eq!((kinds[0], requests), ("warcinfo", samples().len()));
    let is_response =
        |record: &&Value| matches!(record["type"].as_str(), Some("response" | "revisit"));
    all.iter().filter(is_response).cloned().collect()
}

#[tokio::test]
async fn warcio_finds_every_record_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = archive(folder.path(), ArchiveFormat::WarcGz).await;
    let file = file.to_str().unwrap();
    let check = tools(&["check", file]);
    assert_eq!(check["status"], 0, "{check}");
    let passed = check["output"].as_str().unwrap().matches("digest pass").count();
    assert_eq!(passed, 1 + 2 * samples().len() - 2, "{check}");
    assert_eq!(responses(&tools(&["records", file])), expected_records());
}

#[tokio::test]
async fn fastwarc_finds_every_record_whole_in_both_formats() {
    for format in [ArchiveFormat::WarcGz, ArchiveFormat::WarcZst] {
        let folder = tempfile::tempdir().unwrap();
        let file = archive(folder.path(), format).await;
        assert_eq!(responses(&tools(&["fast", file.to_str().unwrap()])), expected_records());
    }
}

#[tokio::test]
async fn the_index_is_the_one_cdxj_indexer_makes() {
    let folder = tempfile::tempdir().unwrap();
    let file = archive(folder.path(), ArchiveFormat::WarcGz).await;
    let theirs = tools(&["index", file.to_str().unwrap()]);
    let name = file.file_name().unwrap().to_str().unwrap().replace(".warc.gz", ".cdxj");
    let ours = std::fs::read_to_string(folder.path().join("index").join(name)).unwrap();
    let theirs: Vec<&str> = theirs.as_str().unwrap().lines().collect();
    assert_eq!(ours.lines().collect::<Vec<_>>(), theirs);
    assert_eq!(theirs.len(), samples().len());
}

/// R5: what is left of a file after everything over HTTPS was removed is read as before, and its
/// index is still the one that the tool makes.
#[tokio::test]
async fn the_tools_read_past_what_was_removed() {
    for format in [ArchiveFormat::WarcGz, ArchiveFormat::WarcZst] {
        let folder = tempfile::tempdir().unwrap();
        let file = archive(folder.path(), format).await;
        let purge = ArchivePurge {
            spool: Arc::new(DirectorySpool::new(folder.path())),
            dice: Arc::new(SeededDice::new(2)),
            exclusion: "00ff00ff00ff00ff".to_owned(),
            at: Timestamp::from_millis(START),
        };
        let files = purge.files().await.unwrap();
        let is_gone = |url: &CrawlUrl| url.as_str().starts_with("https:");
        let finds = purge.look(&files[0], &is_gone).await.unwrap();
        assert_eq!((files.len(), finds.records.len(), finds.lines.len()), (1, 10, 5));
        purge.rewrite(&files[0], &finds, &|| false).await.unwrap();
        let file = file.to_str().unwrap();
        let found = tools(&["fast", file]);
        let kinds = found.as_array().unwrap().iter().map(|record| &record["type"]);
        assert_eq!(kinds.filter(|kind| *kind == "removed").count(), 10, "{found}");
        let kept = |records: Vec<Value>| -> Vec<Value> {
            let is_kept = |url: &Value| !url.as_str().unwrap().starts_with("https:");
            records.into_iter().filter(|record| is_kept(&record["url"])).collect()
        };
        let is_response =
            |record: &&Value| matches!(record["type"].as_str(), Some("response" | "revisit"));
        let responses = |found: &Value| -> Vec<Value> {
            found.as_array().unwrap().iter().filter(is_response).cloned().collect()
        };
        assert_eq!(responses(&found), kept(expected_records()));
        if format == ArchiveFormat::WarcGz {
            assert_eq!(tools(&["check", file])["status"], 0);
            assert_eq!(responses(&tools(&["records", file])), kept(expected_records()));
            let theirs = tools(&["index", file]);
            let name = Path::new(file).file_name().unwrap().to_str().unwrap();
            let index = folder.path().join("index").join(name.replace(".warc.gz", ".cdxj"));
            let ours = std::fs::read_to_string(index).unwrap();
            assert_eq!(ours, theirs.as_str().unwrap());
        }
    }
}

#[tokio::test]
async fn pywb_replays_the_data_directory_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    archive(folder.path(), ArchiveFormat::WarcGz).await;
    let paths = [
        "20260101000001id_/http://one.test/",
        "20260101000002id_/http://one.test/packed?b=2&a=1",
        "20260101000003id_/http://www.two.test:8080/Copy",
        "20260101000006id_/https://one.test/image",
        "20260101000007id_/https://one.test/cut",
        "20260101000000id_/http://one.test/robots.txt",
    ];
    let found = tools(&[&["replay", folder.path().to_str().unwrap()][..], &paths].concat());
    let samples = samples();
    let mut expected: Vec<_> = [1, 2, 1, 6, 7, 0].iter().map(|n| sha1(&samples[*n].body)).collect();
    // Its reader did not ask for gzip, so pywb undoes it.
    expected[1] = sha1(&page(2));
    let bodies: Vec<_> =
        found.as_array().unwrap().iter().map(|answer| answer["sha1"].as_str().unwrap()).collect();
    assert_eq!(bodies, expected, "{found}");
    let status = |n: usize| found[n]["status"].as_u64().unwrap();
    assert_eq!([0, 1, 2, 3, 4, 5].map(status), [200, 200, 200, 200, 200, 404], "{found}");
}
