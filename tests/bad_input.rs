//! What is wrong with configuration, seeds or data directory is said clearly, with an exit status
//! that tells wrong use from failure, and nothing is touched (U1).

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::data::{files, fingerprint, page_counts};
use support::node::{Ended, Home, LOCAL};
use support::site::{Reply, Request, Site};

fn three_pages(request: &Request) -> Reply {
    match request.path.as_str() {
        "/" => Reply::html("<a href=/1>one</a> <a href=/2>two</a>"),
        "/1" | "/2" => Reply::html(format!("<title>{}</title>", request.path)),
        _ => Reply::status(404),
    }
}

#[track_caller]
fn says(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.err.contains(part), "`{part}` is not in\n{}", ended.err);
    }
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert_eq!(ended.out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_is_named_with_its_place_and_what_would_do() {
    let home = Home::new(
        "[politeness]\nmin_dely = \"1s\"\nmax_in_flight = \"two\"\n[fetch]\n\
         allow_networks = [\"127.0.0.0/33\"]\n[scop]\nmode = \"host\"\n[data]\n\
         flush_interval = \"soon\"\n",
    );
    let ended = home.run(&["crawl", "https://a.test/"], 20).await.expect(2);
    let named = [
        "mehman.toml:2:1: politeness.min_dely",
        "`politeness.min_delay`",
        "mehman.toml:3:1: politeness.max_in_flight",
        "fetch.allow_networks",
        "127.0.0.0/33",
        "scop",
        "`scope`",
        "data.flush_interval",
        "soon",
    ];
    says(&ended, &named);
    assert!(!home.data().exists());
    let ended = home.run(&["serve"], 20).await.expect(2);
    says(&ended, &named);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_is_wrong_is_named_by_its_variable() {
    let home = Home::local();
    let line = ["serve", "--config", "mehman.toml", "--data", "data"];
    let wrong = [("MEHMAN__POLITENESS__MIN_DELAY", "often"), ("MEHMAN__FETCH__WORKRS", "5")];
    let ended = home.start_with(&line, &wrong).ended(20).await.expect(2);
    says(&ended, &["MEHMAN__POLITENESS__MIN_DELAY", "often", "WORKRS", "workers"]);
    assert!(!home.data().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_that_is_no_url_is_refused_with_its_line() {
    let home = Home::local();
    let text = "https://a.test/\n\n# comment\nhttp://[::1/\nmailto:me@a.test\n";
    fs::write(home.path("seeds.txt"), text).expect("a file");
    let ended = home.run(&["crawl", "--seeds", "seeds.txt"], 20).await.expect(2);
    says(&ended, &["seeds.txt, line 4", "http://[::1/", "seeds.txt, line 5", "mailto"]);
    assert!(!home.data().exists());
    let ended = home.run(&["crawl", "--seeds", "missing.txt"], 20).await;
    assert_ne!(ended.code, Some(0));
    says(&ended, &["missing.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_crawls_without_a_contact() {
    let without = LOCAL.replace("contact_url", "# contact_url");
    let home = Home::new(&without);
    for line in [&["crawl", "https://a.test/"][..], &["serve"]] {
        let ended = home.run(line, 20).await.expect(2);
        says(&ended, &["--contact"]);
    }
    assert!(!home.data().exists());
    let ended = home.run(&["crawl", "https://a.test/", "--contact", "nobody"], 20).await.expect(2);
    says(&ended, &["nobody"]);
}

/// A data directory with a finished crawl.
async fn crawled() -> (Home, Site) {
    let site = Site::start(three_pages).await;
    let home = Home::local();
    home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    assert_eq!(page_counts(&home.data()).len(), 3);
    (home, site)
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_use_is_refused_and_its_owner_goes_on() {
    let site = Site::start(three_pages).await;
    let home = Home::local();
    let mut daemon = home.serve().await;
    daemon.client.ask("POST", "/v1/seeds", "text/plain", site.url("/")).await;
    site.asked(4, 30).await;
    let owner = format!("in use by another process ({})", daemon.running.pid());
    for line in [&["crawl", &*site.url("/")][..], &["serve"]] {
        let ended = home.run(line, 20).await.expect(1);
        says(&ended, &["data is in use by another process"]);
        assert!(ended.err.contains(&daemon.running.pid().to_string()), "{owner}: {}", ended.err);
    }
    assert!(daemon.running.is_running());
    assert_eq!(daemon.client.get("/readyz").await.status, 200);
    assert!(home.data().join("admin.addr").exists(), "the address of the owner was taken away");
    daemon.running.signal("-TERM");
    daemon.running.ended(20).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_a_newer_version_is_refused_untouched() {
    let (home, site) = crawled().await;
    for (version, said) in [("999\n", "version 999"), ("nonsense", "is not a version")] {
        fs::write(home.data().join("VERSION"), version).expect("a version");
        let before = fingerprint(&home.data());
        for line in [&["crawl", &*site.url("/")][..], &["serve"], &["hosts"]] {
            let ended = home.run(line, 20).await;
            assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
            says(&ended, &[said]);
            assert_eq!(fingerprint(&home.data()), before, "{line:?} touched it");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_somebody_else_is_refused_untouched() {
    let home = Home::local();
    fs::create_dir(home.data()).expect("a directory");
    fs::write(home.data().join("thesis.txt"), "all of it").expect("a file");
    let before = fingerprint(&home.data());
    let ended = home.run(&["crawl", "http://127.0.0.1:1/"], 20).await;
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    says(&ended, &["is not a data directory", "thesis.txt"]);
    assert_eq!(fingerprint(&home.data()), before);
}

/// The newest manifest of a shard.
fn manifest(data: &Path, shard: u16) -> PathBuf {
    let all = files(&data.join(format!("shards/{shard}/manifest")));
    all.last().expect("a manifest").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_shard_is_named_and_nothing_is_overwritten() {
    let (home, site) = crawled().await;
    for damaged in [&b"garbage that is no manifest"[..], b""] {
        let path = manifest(&home.data(), 2);
        let sound = fs::read(&path).expect("a manifest");
        fs::write(&path, damaged).expect("damage");
        let kept = |data: &Path| {
            let parts = ["archive", "index", "pages", "shards/2"];
            parts.map(|part| fingerprint(&data.join(part)))
        };
        let before = kept(&home.data());
        for line in [&["crawl", &*site.url("/")][..], &["serve"]] {
            let ended = home.run(line, 60).await.expect(1);
            says(&ended, &["failed to open shard 2", "because:"]);
            assert_eq!(kept(&home.data()), before, "{line:?} touched it");
        }
        fs::write(&path, sound).expect("repair");
        // Repaired, it goes on as if nothing had been.
        home.run(&["crawl", &site.url("/")], 60).await.expect(0);
        assert_eq!(page_counts(&home.data()).len(), 3);
    }
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_snapshots_cost_nothing_but_work() {
    let (home, site) = crawled().await;
    for file in files(&home.data().join("snapshots")).iter().filter(|file| file.is_file()) {
        fs::write(file, "garbage").expect("damage");
    }
    home.run(&["crawl", &site.url("/"), &site.url("/3")], 60).await.expect(0);
    let counts = site.counts();
    assert_eq!((counts["/"], counts["/3"]), (1, 1), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_shards_is_refused() {
    let (home, site) = crawled().await;
    home.configure(&format!("{LOCAL}\n[frontier]\nshards = 2\n"));
    let ended = home.run(&["crawl", &site.url("/")], 20).await;
    assert!(matches!(ended.code, Some(1 | 2)), "{ended:?}");
    says(&ended, &["`frontier.shards` is 2", "made with 4"]);
    home.configure(LOCAL);
    home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_is_gone_is_said_and_not_made_anew() {
    let (home, site) = crawled().await;
    let (shards, aside) = (home.data().join("shards"), home.path("aside"));
    fs::rename(shards.join("0"), &aside).expect("a folder");
    for line in [&["crawl", &*site.url("/")][..], &["serve"], &["hosts"]] {
        let ended = home.run(line, 20).await.expect(1);
        says(&ended, &["shard 0", "is not in its folder `shards`", "put back"]);
        assert!(!shards.join("0").exists(), "{line:?} made it anew");
    }
    fs::rename(&aside, shards.join("0")).expect("a folder");
    home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_of_another_store_is_said() {
    let (home, site) = crawled().await;
    let other = format!("file://{}", home.path("other").display());
    home.configure(&LOCAL.replace("[admin]", &format!("[data]\nstore = \"{other}\"\n[admin]")));
    let ended = home.run(&["crawl", &site.url("/")], 20).await.expect(1);
    says(&ended, &["made with `data.store` left out", "are not in", &other]);
    assert!(site.counts().values().all(|count| *count == 1), "{:?}", site.counts());
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_several_lists_are_told_together_in_the_order_of_the_file() {
    let home = Home::new(&format!(
        "{LOCAL}\n[scope]\ninclude = [\"regex:(\", \"regex:[\"]\nexclude = [\"file:none.txt\"]\n\
         [archive]\nurl = \"s3://bucket/warc\"\n\
         [[output]]\nkind = \"wet\"\nurl = \"s3://bucket/pages\"\n"
    ));
    let named = [
        "scope.include[0] = \"regex:(\"",
        "scope.include[1] = \"regex:[\"",
        "none.txt",
        "archive.url",
        "output[0].kind",
        "output[0].url",
    ];
    for line in [&["config", "check"][..], &["crawl", "http://127.0.0.1:1/"], &["serve"]] {
        let ended = home.run(line, 20).await.expect(2);
        says(&ended, &named);
        let places = named.map(|name| ended.err.find(name));
        assert!(places.is_sorted(), "{line:?}: {places:?} in {}", ended.err);
    }
    assert!(!home.data().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_was_moved_away_says_how_to_go_on() {
    let (home, site) = crawled().await;
    let pages = files(&home.data().join("pages"));
    let written = pages.iter().find(|file| fs::metadata(file).is_ok_and(|file| file.len() > 0));
    let (written, aside) = (written.expect("an output"), home.path("aside"));
    fs::rename(written, &aside).expect("a file");
    let ended = home.run(&["crawl", &site.url("/")], 20).await.expect(1);
    let name = written.file_name().expect("a name").to_string_lossy();
    says(&ended, &[&name, "has 0 bytes", "put it back", "a lower number may be moved"]);
    fs::rename(&aside, written).expect("a file");
    home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    assert_eq!(page_counts(&home.data()).len(), 3);
}
