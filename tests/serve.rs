//! The daemon as operators and integrators meet it: address, seeds, questions, orders, events,
//! signals (U1, U2, U4, U5, O5).

#![cfg(unix)]

mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use support::http::Client;
use support::node::{CONTACT, Daemon, Ended, Home, LOCAL};
use support::site::{Reply, Request, Site, assert_gaps};
use support::{events, until};

/// Pages of the site.
const PAGES: usize = 30;

fn pages(request: &Request) -> Reply {
    let number = match request.path.as_str() {
        "/robots.txt" => return Reply::text("User-agent: *\nDisallow: /closed\n"),
        "/" => 0,
        path => path.trim_start_matches('/').parse().unwrap_or(PAGES),
    };
    if number >= PAGES {
        return Reply::status(404);
    }
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|to| *to < PAGES);
    let links: String = links.map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
    Reply::html(format!("<title>{number}</title>page {number} {links}<a href=/closed>closed</a>"))
}

/// [`LOCAL`] with a delay of its own; what happens is durable, and so visible, soon.
fn brisk(delay: &str) -> String {
    format!("{}\n[data]\nflush_interval = \"200ms\"\n", LOCAL.replace("20ms", delay))
}

async fn status(client: &Client) -> Value {
    client.get("/v1/status").await.json()
}

/// Waits until nothing is queued or in flight and every page is parsed.
async fn at_rest(client: &Client, pages: u64) -> Value {
    until("the end of the crawl", 60, async || {
        let told = status(client).await;
        let urls = &told["urls"];
        let rest = urls["queued"] == 0 && urls["in_flight"] == 0;
        let parsed = told["queues"]["to_parse"]["waiting"] == 0;
        (told["pages"].as_u64() >= Some(pages) && rest && parsed).then_some(told)
    })
    .await
}

async fn end(daemon: Daemon) -> Ended {
    daemon.running.signal("-TERM");
    daemon.running.ended(20).await.expect(0)
}

/// Runs a command that asks the daemon.
async fn ask(home: &Home, daemon: &Daemon, line: &[&str]) -> Ended {
    let admin = format!("http://{}", daemon.address);
    let line = [line, &["--admin", &admin, "--json"]].concat();
    home.start_plain(&line).ended(30).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_takes_seeds_in_every_form_and_tells_what_became_of_them() {
    let site = Site::start(pages).await;
    let home = Home::local();
    let daemon = home.serve().await;
    let client = &daemon.client;
    let left = std::fs::read_to_string(home.data().join("admin.addr")).unwrap();
    assert_eq!(left.trim(), daemon.address.to_string());

    let front = site.url("/");
    let body = json!({ "urls": [{ "url": front, "priority": 0.9, "depth": 0 }] });
    let told = client.post("/v1/seeds", &body).await.json();
    assert_eq!((&told["accepted"], &told["results"][0]["result"]), (&1.into(), &"accepted".into()));
    let again = client.post("/v1/seeds", &body).await.json();
    assert_eq!((&again["accepted"], &again["known"]), (&0.into(), &1.into()), "{again}");
    let lines = format!("{{\"url\":\"{}\"}}\n{{\"url\":\"nonsense\"}}\n", site.url("/29"));
    let told = client.ask("POST", "/v1/seeds", "application/x-ndjson", lines).await.json();
    assert_eq!((&told["refused"], &told["results"][1]["result"]), (&1.into(), &"refused".into()));
    assert!(told["results"][1]["reason"].as_str().unwrap().contains("line 2"), "{told}");
    let text = format!("{}\n# a comment\n{}\n", site.url("/28"), site.url("/27"));
    let told = client.ask("POST", "/v1/seeds", "text/plain", text).await.json();
    assert_eq!(told["results"].as_array().unwrap().len(), 2, "{told}");
    let wrong = client.ask("POST", "/v1/seeds", "image/png", "x".into()).await;
    assert_eq!((wrong.status, &*wrong.media), (415, "application/problem+json"));
    let seeded = ask(&home, &daemon, &["seed", &site.url("/26"), &front]).await.expect(0).json();
    let taken = seeded["accepted"].as_u64().unwrap() + seeded["known"].as_u64().unwrap();
    assert_eq!((taken, seeded["known"].as_u64() >= Some(1)), (2, true), "{seeded}");

    let pages = u64::try_from(PAGES).unwrap();
    let told = at_rest(client, pages).await;
    assert_eq!((&told["state"], &told["pages"]), (&"running".into(), &pages.into()), "{told}");
    assert_eq!(told["urls"]["sleeping"], 1, "/closed is refused: {told}");
    let counts = site.counts();
    assert_eq!((counts.len(), counts.values().max()), (PAGES + 1, Some(&1)), "{counts:?}");
    check_commands(&home, &daemon, &site).await;
    end(daemon).await;
    assert!(!home.data().join("admin.addr").exists());

    // The commands that can, ask the data directory when no daemon runs.
    let hosts = home.run(&["hosts", "--json"], 30).await.expect(0).json();
    assert_eq!(hosts["items"][0]["host_key"], site.key(), "{hosts}");
    let url = home.run(&["urls", &site.url("/3"), "--json"], 30).await.expect(0).json();
    assert_eq!((&url["state"], &url["status"]), (&"fetched".into(), &200.into()), "{url}");
}

/// U5: what the commands say is what the interface says.
async fn check_commands(home: &Home, daemon: &Daemon, site: &Site) {
    let told = ask(home, daemon, &["status"]).await.expect(0).json();
    assert_eq!(told["pages"], PAGES, "{told}");
    let hosts = ask(home, daemon, &["hosts"]).await.expect(0).json();
    assert_eq!(hosts["items"][0]["host_key"], site.key(), "{hosts}");
    let host = ask(home, daemon, &["host", &site.key()]).await.expect(0).json();
    assert_eq!((&host["robots"]["rules"], &host["in_flight"]), (&1.into(), &0.into()), "{host}");
    let url = ask(home, daemon, &["urls", &site.url("/7")]).await.expect(0).json();
    let facts = [&url["state"], &url["status"], &url["depth"], &url["discovered_from"]];
    assert_eq!(facts, [&json!("fetched"), &json!(200), &json!(3), &json!(site.url("/3"))], "{url}");
    let unknown = ask(home, daemon, &["urls", &site.url("/unknown")]).await;
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
    let dead = ask(home, daemon, &["dead", "list"]).await.expect(0).json();
    assert_eq!(dead["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_of_the_interface_answers_with_what_it_promises() {
    let site = Site::start(pages).await;
    let home = Home::local();
    let daemon = home.serve().await;
    let client = &daemon.client;
    client.ask("POST", "/v1/seeds", "text/plain", site.url("/")).await;
    at_rest(client, u64::try_from(PAGES).unwrap()).await;

    for (path, media, part) in [
        ("/healthz", "application/json", ""),
        ("/readyz", "application/json", ""),
        ("/about", "text/html; charset=utf-8", CONTACT),
        ("/", "text/html; charset=utf-8", "<title>"),
        ("/openapi.json", "application/json", "\"/v1/events\""),
        ("/v1/cluster", "application/json", "\"shards\""),
    ] {
        let answer = client.get(path).await;
        assert_eq!((answer.status, &*answer.media), (200, media), "{path}");
        assert!(answer.text.contains(part), "{path}: {part} not in {}", answer.text);
    }
    let missing = client.get("/v1/nothing").await;
    assert_eq!((missing.status, &*missing.media), (404, "application/problem+json"));

    let mut names = Vec::new();
    walk(&client.get("/v1/actors").await.json(), &mut names);
    for kind in ["registry", "shard", "fetch", "parse", "archive", "discovery"] {
        assert!(names.iter().any(|name| name.contains(kind)), "no {kind} in {names:?}");
    }

    let figures = prometheus(&client.get("/metrics").await.text);
    let pages = f64::from(u16::try_from(PAGES).unwrap());
    for (name, value) in [
        ("mehman_fetch_exchanges_total{outcome=\"ok\"}", pages + 1.0),
        ("mehman_fetch_pages_total", pages),
        ("mehman_frontier_urls{state=\"sleeping\"}", 1.0),
        ("mehman_node_state{state=\"running\"}", 1.0),
        ("mehman_policy_violations_total", 0.0),
    ] {
        assert_eq!(figures.get(name), Some(&value), "{name} in {figures:?}");
    }

    // An event is visible once it is durable.
    events::silence(client).await;
    let found = events::read_all(client).await;
    events::check(&found);
    for number in 1..PAGES {
        let url = site.url(&format!("/{number}"));
        for kind in ["discovered", "fetched", "parsed"] {
            assert_eq!(events::count(&found, kind, &url), 1, "{kind} {url}");
        }
    }
    let fetched = found.iter().find(|event| event["type"] == "fetched").unwrap();
    for field in ["cursor", "at", "url", "url_id", "version", "status", "outcome", "archive"] {
        assert!(fetched.get(field).is_some_and(|value| !value.is_null()), "{field} in {fetched}");
    }
    end(daemon).await;
}

fn walk(node: &Value, names: &mut Vec<String>) {
    names.push(format!("{} {}", node["name"], node["kind"]));
    for child in node["children"].as_array().into_iter().flatten() {
        walk(child, names);
    }
}

/// U4: each line is a comment or a name, labels and a number.
fn prometheus(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_of_a_site_while_the_crawl_or_the_host_is_paused() {
    let (site, other) = (Site::start(pages).await, Site::start(pages).await);
    let home = Home::new(&brisk("150ms"));
    let daemon = home.serve().await;
    let client = &daemon.client;
    let seeds = format!("{}\n{}\n", site.url("/"), other.url("/"));
    client.ask("POST", "/v1/seeds", "text/plain", seeds).await;
    site.asked(4, 30).await;

    let paused = client.post("/v1/pause", &json!({})).await;
    assert_eq!((paused.status, status(client).await["state"].clone()), (200, "paused".into()));
    let cursor = events::silence(client).await;
    let asked = (site.requests().len(), other.requests().len());
    assert!(asked.0 < PAGES && asked.1 < PAGES, "it was over before it was paused");
    let empty = client.get(&format!("/v1/events?after={cursor}&wait=2")).await;
    assert_eq!(empty.text, "");
    assert_eq!((site.requests().len(), other.requests().len()), asked);

    // One host stays paused when the crawl goes on.
    ask(&home, &daemon, &["pause", &site.key()]).await.expect(0);
    ask(&home, &daemon, &["resume"]).await.expect(0);
    let poll = client.get(&format!("/v1/events?after={cursor}&wait=30")).await;
    assert!(!poll.lines().is_empty(), "a long poll answers when something happens");
    other.asked(PAGES + 1, 60).await;
    events::silence(client).await;
    assert_eq!(site.requests().len(), asked.0, "a paused host was asked");
    let host = ask(&home, &daemon, &["host", &site.key()]).await.expect(0).json();
    assert_eq!(host["allowance"]["paused"], true, "{host}");

    client.post("/v1/resume", &json!({ "host": site.key() })).await;
    site.asked(PAGES + 1, 60).await;
    for site in [&site, &other] {
        site.assert_polite(Duration::from_millis(150));
        assert_eq!(site.counts().values().max(), Some(&1));
    }
    end(daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_host_is_paused_after_a_kill_too() {
    let site = Site::start(pages).await;
    let home = Home::new(&brisk("150ms"));
    let daemon = home.serve().await;
    daemon.client.ask("POST", "/v1/seeds", "text/plain", site.url("/")).await;
    site.asked(4, 30).await;
    let paused = daemon.client.post("/v1/pause", &json!({ "host": site.key() })).await;
    assert_eq!(paused.status, 200);
    daemon.running.kill();
    let asked = site.requests().len();
    let daemon = home.serve().await;
    events::silence(&daemon.client).await;
    assert_eq!(site.requests().len(), asked, "an order was forgotten");
    end(daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seeds_that_were_answered_survive_a_kill() {
    let home = Home::local();
    let daemon = home.serve().await;
    // Nobody listens there, so nothing but the seeds is written.
    let urls: Vec<String> =
        (0..500).map(|n| format!("http://127.0.0.{}:1/{n}", n % 9 + 1)).collect();
    let told = daemon.client.ask("POST", "/v1/seeds", "text/plain", urls.join("\n")).await.json();
    assert_eq!(told["accepted"], 500, "{told}");
    daemon.running.kill();
    let daemon = home.serve().await;
    let told = daemon.client.ask("POST", "/v1/seeds", "text/plain", urls.join("\n")).await.json();
    assert_eq!(
        (&told["known"], &told["accepted"]),
        (&500.into(), &0.into()),
        "{}",
        told["refused"]
    );
    end(daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_off_loopback_needs_a_token_and_asks_for_it() {
    let open = LOCAL.replace("127.0.0.1:0", "0.0.0.0:0");
    let home = Home::new(&open);
    let refused = home.run(&["serve"], 20).await.expect(2);
    assert!(refused.err.contains("admin.token"), "{}", refused.err);
    assert!(!home.data().exists(), "a refused start left something behind");

    home.configure(&open.replace("0.0.0.0:0\"", "0.0.0.0:0\"\ntoken = \"geheim-und-lang-genug\""));
    let running = home.start(&["serve"]);
    let address = running.address().await;
    let local = ([127, 0, 0, 1], address.port()).into();
    let stranger = Client::new(local);
    for path in ["/v1/status", "/v1/events", "/metrics", "/"] {
        assert_eq!(stranger.get(path).await.status, 401, "{path}");
    }
    assert_eq!(stranger.clone().with_token("geraten").get("/v1/status").await.status, 401);
    for path in ["/healthz", "/readyz", "/about"] {
        assert_eq!(stranger.get(path).await.status, 200, "{path}");
    }
    let ours = stranger.with_token("geheim-und-lang-genug");
    assert_eq!(ours.get("/v1/status").await.status, 200);
    assert!(!running.said().contains("geheim"), "{}", running.said());
    running.signal("-TERM");
    running.ended(20).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hang_up_reloads_the_delay_and_a_bad_file_changes_nothing() {
    let site = Site::start(pages).await;
    let home = Home::new(&LOCAL.replace("20ms", "100ms"));
    let daemon = home.serve().await;
    daemon.client.ask("POST", "/v1/seeds", "text/plain", site.url("/")).await;
    site.asked(5, 30).await;

    home.configure(&LOCAL.replace("20ms", "nonsense"));
    daemon.running.signal("-HUP");
    until("the refusal", 20, async || daemon.running.said().contains("not reloaded").then_some(()))
        .await;
    let bad = daemon.client.post("/v1/reload", &json!({})).await;
    assert_eq!((bad.status, &*bad.media), (422, "application/problem+json"), "{}", bad.text);

    home.configure(&LOCAL.replace("20ms", "600ms"));
    daemon.running.signal("-HUP");
    until("the new delay", 20, async || {
        daemon.running.said().contains("configuration reloaded").then_some(())
    })
    .await;
    let asked = site.requests().len();
    assert!(asked < PAGES, "it was over before it was reloaded");
    // One request may have been granted already.
    site.asked(asked + 5, 30).await;
    site.assert_polite(Duration::from_millis(100));
    assert_gaps(&site.requests()[asked + 1..asked + 5], Duration::from_millis(600));
    end(daemon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_ends_the_daemon_by_itself_and_loses_nothing() {
    let site = Site::start(pages).await;
    let home = Home::new(&LOCAL.replace("20ms", "100ms"));
    let daemon = home.serve().await;
    daemon.client.ask("POST", "/v1/seeds", "text/plain", site.url("/")).await;
    site.asked(8, 30).await;
    let answer = daemon.client.post("/v1/drain", &json!({})).await;
    assert_eq!((answer.status, &answer.json()["state"]), (202, &"draining".into()));
    daemon.running.ended(20).await.expect(0);
    assert!(site.requests().len() < PAGES, "it was over before it was drained");
    home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    let counts = site.counts();
    assert_eq!((counts.len(), counts.values().max()), (PAGES + 1, Some(&1)), "{counts:?}");
    site.assert_polite(Duration::from_millis(100));
}
