//! R5: what is stored of an excluded site is removed, whatever ends amid it, and all else stays
//! where it was.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use mehman::archive::ArchiveReader;
use mehman::types::ArchivePointer;
use mehman::world::DirectorySpool;
use serde_json::{Value, json};
use support::node::{Daemon, Home, LOCAL};
use support::site::{Reply, Request, Site};
use support::{data, until};

/// Pages of a site behind its front page.
const PAGES: usize = 40;
/// What stands in everything that the site to be removed answers.
const MARKER: &str = "only-this-site-says-so";
/// Small files, so that there are many.
const FILES: &str = "[data]\nflush_interval = \"200ms\"\n[archive]\nmax_file_size = \"64KiB\"\n\
                     [frontier]\nshards = 2\n";

/// A site whose answers all hold these words. Two of its pages are the same.
fn pages(words: &'static str) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request: &Request| match request.path.as_str() {
        "/robots.txt" => Reply::text(format!("# {words}\nUser-agent: *\nDisallow: /closed\n")),
        "/" => {
            let links: String = (0..PAGES).map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
            Reply::html(format!("<title>front</title>{words} {links}"))
        }
        "/0" | "/1" => Reply::html(format!("<title>same</title>{}", words.repeat(200))),
        path => {
            let number: usize = path.trim_start_matches('/').parse().unwrap_or(0);
            let text: String =
                (0..number * 40).map(|n| format!("{words} {n} of {path} ")).collect();
            Reply::html(format!("<title>{path} {words}</title>{text}"))
        }
    }
}

/// A daemon that has stored and parsed everything of both sites.
async fn crawled(home: &Home, sites: &[&Site]) -> Daemon {
    let daemon = home.serve().await;
    let urls: Vec<Value> = sites.iter().map(|site| json!({ "url": site.url("/") })).collect();
    daemon.client.post("/v1/seeds", &json!({ "urls": urls })).await.json();
    until("all pages", 120, async || {
        let metrics = daemon.client.get("/v1/events?limit=1000").await.lines();
        let parsed = metrics.iter().filter(|event| event["type"] == "parsed").count();
        (parsed == sites.len() * (PAGES + 1)).then_some(())
    })
    .await;
    daemon
}

fn rule(site: &Site) -> String {
    format!("host:{}", site.key().trim_start_matches("http://"))
}

/// The listing of the one exclusion.
async fn listed(daemon: &Daemon) -> Value {
    daemon.client.get("/v1/exclusions").await.json()["items"][0].clone()
}

async fn done(daemon: &Daemon) -> Value {
    until("the end of the purge", 120, async || {
        let purge = listed(daemon).await["purge"].clone();
        (purge["state"] == "done").then_some(purge)
    })
    .await
}

async fn order(home: &Home, daemon: &Daemon, line: &[&str]) -> support::node::Ended {
    let admin = format!("http://{}", daemon.address);
    let line = [&["exclude"], line, &["--admin", &admin]].concat();
    home.start_plain(&line).ended(60).await
}

/// All that the members of an archive file hold.
fn unpacked(file: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let packed = fs::File::open(file).unwrap();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut text).unwrap();
    text
}

fn has(text: &[u8], words: &str) -> bool {
    memchr::memmem::find(text, words.as_bytes()).is_some()
}

/// Nothing of one site is in any file that others read, and all of the other is where it was.
async fn assert_purged(home: &Home, gone: &Site, kept: &Site) {
    let root = home.data();
    let [gone_key, kept_key] = [gone, kept].map(|site| format!("{}/", site.key()));
    let archives = data::files(&root.join("archive"));
    assert!(archives.len() > 3, "{archives:?}");
    for file in &archives {
        assert!(file.to_string_lossy().ends_with(".warc.gz"), "{}", file.display());
        let text = unpacked(file);
        assert!(!has(&text, MARKER), "{}", file.display());
        assert!(!has(&text, &gone_key), "{}", file.display());
    }
    let rest = [data::files(&root.join("index")), data::files(&root.join("pages"))].concat();
    for file in &rest {
        let text = fs::read(file).unwrap();
        assert!(!has(&text, MARKER) && !has(&text, &gone_key), "{}", file.display());
        assert!(!file.to_string_lossy().ends_with(".purge"), "{}", file.display());
    }
    let reader = ArchiveReader::new(Arc::new(DirectorySpool::new(&root)));
    let records = data::pages(&root);
    assert_eq!(records.len(), PAGES + 1);
    for record in records {
        let url = record["url"].as_str().unwrap();
        assert!(url.starts_with(&kept_key), "{url}");
        let pointer: ArchivePointer = serde_json::from_value(record["archive"].clone()).unwrap();
        let stored = reader.read(&pointer).await.unwrap_or_else(|why| panic!("{url}: {why}"));
        assert_eq!(stored.url.as_str(), url);
    }
    let lines = data::index(&root);
    assert_eq!(lines.len(), kept.requests().len());
    for line in lines {
        let number = |name: &str| line.fields[name].as_str().unwrap().parse().unwrap();
        let file = line.fields["filename"].as_str().unwrap().into();
        let pointer = ArchivePointer { file, offset: number("offset"), length: number("length") };
        assert_eq!(reader.read(&pointer).await.unwrap().url.as_str(), line.fields["url"]);
    }
}

/// The numbers say what was there.
fn assert_counted(purge: &Value, gone: &Site) {
    let exchanges = gone.requests().len();
    let expected = json!({
        "state": "done",
        "ordered_at": purge["ordered_at"],
        "done_at": purge["done_at"],
        "records": 2 * exchanges,
        "bytes": purge["bytes"],
        "index_lines": exchanges,
        "page_records": PAGES + 1,
        "urls": PAGES + 1,
        "unreadable": 0,
        "failure": null,
    });
    assert_eq!(purge, &expected);
    assert!(purge["done_at"].is_string() && purge["bytes"].as_u64() > Some(10_000), "{purge}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excluded_site_is_gone_from_all_files_and_the_other_stays_where_it_was() {
    let (gone, kept) = (Site::start(pages(MARKER)).await, Site::start(pages("something")).await);
    let home = Home::new(&format!("{LOCAL}\n{FILES}"));
    let daemon = crawled(&home, &[&gone, &kept]).await;
    let made = order(&home, &daemon, &[&rule(&gone), "--purge", "--reason", "they wrote"]).await;
    assert!(made.expect(0).out.contains("is being removed"));
    let purge = done(&daemon).await;
    assert_counted(&purge, &gone);
    let told = order(&home, &daemon, &["--list"]).await.expect(0).out;
    assert!(told.contains("done: 84 records, 41 pages"), "{told}");
    let events = daemon.client.get("/v1/events?limit=1000").await.lines();
    let told: Vec<&Value> = events.iter().filter(|event| event["type"] == "purged").collect();
    let [told] = told[..] else { panic!("{told:?}") };
    assert_eq!((&told["rule"], &told["records"]), (&json!(rule(&gone)), &purge["records"]));
    let metrics = daemon.client.get("/metrics").await.text;
    assert!(metrics.contains("\nmehman_purges_total 1\n"), "{metrics}");
    let url = daemon.client.get(&format!("/v1/urls?url={}", gone.url("/7"))).await.json();
    assert_eq!(
        (&url["archive"], &url["digest"], &url["status"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert!(url["reason"].as_str().unwrap().contains("was removed by exclusion"), "{url}");

    daemon.running.signal("-TERM");
    daemon.running.ended(30).await.expect(0);
    assert_purged(&home, &gone, &kept).await;
    let before = data::fingerprint(&home.data().join("archive"));

    // Over a restart it is known that it was done, and it is not done again; then it is lifted.
    let asked = gone.requests().len();
    let daemon = home.serve().await;
    let exclusion = listed(&daemon).await;
    assert_eq!(exclusion["purge"], purge);
    let id = exclusion["id"].as_str().unwrap();
    order(&home, &daemon, &["--lift", id]).await.expect(0);
    let new = json!({ "urls": [{ "url": gone.url("/new") }] });
    assert_eq!(daemon.client.post("/v1/seeds", &new).await.json()["accepted"], 1);
    until("a page after the lift", 60, async || {
        let url = daemon.client.get(&format!("/v1/urls?url={}", gone.url("/new"))).await.json();
        url["archive"].is_object().then_some(())
    })
    .await;
    assert_eq!(gone.requests().len(), asked + 2, "robots.txt and the page");
    daemon.running.signal("-TERM");
    daemon.running.ended(30).await.expect(0);
    let after = data::fingerprint(&home.data().join("archive"));
    assert!(before.iter().all(|(file, digest)| after.get(file) == Some(digest)), "{after:?}");
    assert_eq!(after.len(), before.len() + 1);
}

/// Killed when the order has just been answered, and while rows and files are being worked on.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_goes_on_over_every_kill_and_is_counted_once() {
    let (gone, kept) = (Site::start(pages(MARKER)).await, Site::start(pages("something")).await);
    let home = Home::new(&format!("{LOCAL}\n{FILES}"));
    let daemon = crawled(&home, &[&gone, &kept]).await;
    let wanted = json!({ "rule": rule(&gone), "purge": true });
    let made = daemon.client.post("/v1/exclusions", &wanted).await;
    assert_eq!((made.status, &made.json()["purge"]["state"]), (201, &json!("waiting")));
    daemon.running.kill();
    for records in [0, 1, 30] {
        let daemon = home.serve().await;
        until("a part of the purge", 120, async || {
            let purge = listed(&daemon).await["purge"].clone();
            let far = purge["records"].as_u64() >= Some(records) && purge["state"] != "waiting";
            far.then_some(())
        })
        .await;
        daemon.running.kill();
    }
    let daemon = home.serve().await;
    let purge = done(&daemon).await;
    assert_counted(&purge, &gone);
    daemon.running.signal("-TERM");
    daemon.running.ended(30).await.expect(0);
    assert_purged(&home, &gone, &kept).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exclusion_is_not_lifted_while_its_purge_is_not_done() {
    let site = Site::start(pages(MARKER)).await;
    let home = Home::new(&format!("{LOCAL}\n{FILES}"));
    let daemon = home.serve().await;
    let wanted = json!({ "rule": rule(&site), "purge": true });
    let made = daemon.client.post("/v1/exclusions", &wanted).await.json();
    let path = format!("/v1/exclusions/{}", made["id"].as_str().unwrap());
    // Whoever is first: the purge is done, or it is refused until it is.
    let lifted = until("the lift", 60, async || {
        let told = daemon.client.ask("DELETE", &path, "application/json", String::new()).await;
        (told.status != 409).then(|| (told.status, told.json()["purge"]["state"].clone()))
    })
    .await;
    assert_eq!(lifted, (200, json!("done")));
    let both = json!({ "rule": rule(&site), "purge": true, "until": "2999-01-01T00:00:00Z" });
    let told = daemon.client.post("/v1/exclusions", &both).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("until")));
    daemon.running.signal("-TERM");
    daemon.running.ended(30).await.expect(0);
    let offline = home.run(&["exclude", "host:a.test", "--purge"], 30).await;
    assert!(offline.code != Some(0) && offline.err.contains("daemon"), "{}", offline.err);
}
