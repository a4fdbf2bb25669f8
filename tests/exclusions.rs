//! R5: sites are excluded while the daemon runs: at once, over a restart, until it is lifted.

#![cfg(unix)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::http::Client;
use support::node::{Daemon, Home, LOCAL};
use support::site::{Reply, Request, Site};
use support::until;

/// Pages of a site.
const PAGES: usize = 20;

/// A page that takes long at its first visit, and others; all are linked from the front page.
fn pages(request: &Request) -> Reply {
    match request.path.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /closed\n"),
        "/slow" if request.earlier == 0 => Reply::html("slow").after(Duration::from_secs(120)),
        "/" => {
            let links: String = (0..PAGES).map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
            Reply::html(format!("<title>front</title>{links}"))
        }
        path => Reply::html(format!("<title>{path}</title>page {path}")),
    }
}

async fn seed(client: &Client, urls: &[String]) -> Value {
    let urls: Vec<Value> = urls.iter().map(|url| json!({ "url": url })).collect();
    client.post("/v1/seeds", &json!({ "urls": urls })).await.json()
}

async fn url(client: &Client, url: &str) -> Value {
    client.get(&format!("/v1/urls?url={url}")).await.json()
}

/// Waits until another site was asked this much more: in that time the first would have been, too.
async fn meanwhile(client: &Client, other: &Site, name: &str) {
    let before = other.requests().len();
    let urls: Vec<String> = (0..PAGES).map(|n| other.url(&format!("/{name}-{n}"))).collect();
    seed(client, &urls).await;
    other.asked(before + PAGES, 60).await;
}

async fn order(home: &Home, daemon: &Daemon, line: &[&str]) -> Value {
    let admin = format!("http://{}", daemon.address);
    let line = [&["exclude"], line, &["--admin", &admin, "--json"]].concat();
    home.start_plain(&line).ended(60).await.expect(0).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excluded_site_is_left_alone_at_once_over_a_restart_and_until_it_is_lifted() {
    let (site, other) = (Site::start(pages).await, Site::start(pages).await);
    let home = Home::new(&format!("{LOCAL}\n[data]\nflush_interval = \"200ms\"\n"));
    let daemon = home.serve().await;
    let slow = site.url("/slow");
    seed(&daemon.client, std::slice::from_ref(&slow)).await;
    until("the slow page", 60, async || site.paths().contains(&"/slow".to_owned()).then_some(()))
        .await;
    // Behind it: a link that is found under the exclusion is refused, so nothing hangs on those.
    let pages: Vec<String> = (0..PAGES).map(|page| site.url(&format!("/{page}"))).collect();
    seed(&daemon.client, &pages).await;

    let rule = format!("host:{}", site.key().trim_start_matches("http://"));
    order(&home, &daemon, &[&rule, "--reason", "they wrote"]).await;
    let made = order(&home, &daemon, &[&rule]).await;
    assert_eq!((&made["rule"], &made["reason"]), (&json!(rule), &json!("they wrote")), "{made}");
    let before = site.requests().len();
    let told = until("the cut", 30, async || {
        let told = url(&daemon.client, &slow).await;
        // Where the cut came before the host had heard of the exclusion, it is tried again: later.
        let cut = ["sleeping", "retrying"].iter().any(|state| told["state"] == *state);
        let reason = told["reason"].as_str().unwrap_or_default();
        (cut && reason.contains("exclusion")).then_some(told)
    })
    .await;
    assert_eq!((&told["archive"], &told["attempts"]), (&Value::Null, &json!(0)), "{told}");
    let refused = seed(&daemon.client, &[site.url("/new")]).await;
    assert_eq!(refused["refused"], 1, "{refused}");
    assert!(refused["results"][0]["reason"].as_str().unwrap().contains("exclusion"), "{refused}");
    meanwhile(&daemon.client, &other, "first").await;
    assert_eq!(site.requests().len(), before, "{:?}", site.paths());
    let shown = daemon.client.get("/v1/hosts?state=parked").await.json();
    assert_eq!(shown["items"][0]["host_key"], site.key(), "{shown}");
    let events = daemon.client.get("/v1/events?limit=1000").await.lines();
    let told: Vec<&Value> = events.iter().filter(|event| event["type"] == "excluded").collect();
    // One for each time it was made.
    assert_eq!(told.len(), 2, "{told:?}");
    for event in told {
        assert_eq!((&event["rule"], &event["exclusion"]), (&made["rule"], &made["id"]));
    }

    daemon.running.signal("-TERM");
    daemon.running.ended(30).await.expect(0);
    let daemon = home.serve().await;
    let listed = order(&home, &daemon, &["--list"]).await;
    assert_eq!(listed["items"], json!([made]), "{listed}");
    meanwhile(&daemon.client, &other, "second").await;
    assert_eq!(site.requests().len(), before, "{:?}", site.paths());

    let lifted = order(&home, &daemon, &["--lift", made["id"].as_str().unwrap()]).await;
    assert_eq!(lifted, made);
    until("all pages of the site", 60, async || {
        let counts = site.counts();
        let all = (0..PAGES).all(|page| counts.contains_key(&format!("/{page}")));
        (all && counts["/slow"] == 2).then_some(())
    })
    .await;
    let told = until("the slow page is fetched", 60, async || {
        let told = url(&daemon.client, &slow).await;
        (told["state"] == "fetched").then_some(told)
    })
    .await;
    assert_eq!(told["version"], 1, "{told}");
}
