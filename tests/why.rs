//! B1: `mehman why` and `GET /v1/why` on a site where every answer occurs.

#![cfg(unix)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::node::{Daemon, Home, LOCAL};
use support::site::{Reply, Request, Site};
use support::until;

const FRONT: &str = "<title>front</title>\
    <a href=/closed/x>closed</a><a href=/open>o</a><a href=/asks>a</a>";

/// A page that wants to be left out and not followed.
const ASKS: &str = "<title>asks</title><meta name=robots content='noindex, nofollow'>";

fn pages(request: &Request) -> Reply {
    match request.path.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\n# ours\nDisallow: /closed\nAllow: /open\n"),
        "/" => Reply::html(FRONT),
        "/dies" => Reply::status(500),
        "/asks" => Reply::html(ASKS).header("TDM-Reservation", "1"),
        "/slow" => Reply::html("slow").after(Duration::from_secs(120)),
        path => Reply::html(format!("<title>{path}</title>page {path}")),
    }
}

struct Asker {
    home: Home,
    daemon: Daemon,
}

impl Asker {
    /// The answer of the command, which is that of the interface.
    async fn why(&self, url: &str) -> Value {
        let admin = format!("http://{}", self.daemon.address);
        let line = ["why", url, "--admin", &admin, "--json"];
        self.home.start_plain(&line).ended(60).await.expect(0).json()
    }

    /// The answer once it is this verdict.
    async fn until(&self, url: &str, verdict: &str) -> Value {
        until(&format!("{url} to be {verdict}"), 60, async || {
            let query: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
            let told = self.daemon.client.get(&format!("/v1/why?url={query}")).await.json();
            (told["verdict"] == verdict).then_some(told)
        })
        .await
    }

    async fn seed(&self, urls: &[String]) {
        let urls: Vec<Value> = urls.iter().map(|url| json!({ "url": url })).collect();
        self.daemon.client.post("/v1/seeds", &json!({ "urls": urls })).await;
    }
}

fn step<'a>(told: &'a Value, name: &str) -> &'a Value {
    let mut steps = told["trace"].as_array().into_iter().flatten();
    steps.find(|step| step["step"] == name).unwrap_or_else(|| panic!("{name}: {told}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a page asks for, with its words.
fn check_asked(told: &Value) {
    let directives = step(told, "directives");
    assert_eq!(directives["value"], "noindex, nofollow", "{told}");
    assert!(text(&directives["reason"]).contains("none of its links are followed"), "{told}");
    let steps = told["trace"].as_array().into_iter().flatten();
    let uses = steps.filter(|step| step["step"] == "use");
    let uses: Vec<Value> =
        uses.map(|step| json!([step["value"], step["result"], step["rule"]])).collect();
    let wanted = json!([
        ["search", "refuse", "noindex"],
        ["ai-train", "refuse", "tdm-reservation: 1"],
        ["ai-input", "refuse", "tdm-reservation: 1"],
    ]);
    assert_eq!(Value::from(uses), wanted, "{told}");
}

/// Fetched, refused by robots.txt, allowed by it, dead, and URLs that nobody has named.
async fn check_visited_and_unknown(asker: &Asker, site: &Site) {
    let told = asker.until(&site.url("/"), "fetched").await;
    assert!(text(&told["reason"]).contains("with status 200"), "{told}");
    let told = asker.until(&site.url("/closed/x"), "refused").await;
    let robots = step(&told, "robots");
    assert_eq!(robots["rule"], "line 3: Disallow: /closed", "{told}");
    assert_eq!((&robots["value"], &robots["result"]), (&json!("/closed/x"), &json!("refuse")));
    let told = asker.until(&site.url("/open"), "fetched").await;
    assert_eq!(step(&told, "robots")["rule"], "line 4: Allow: /open", "{told}");
    check_asked(&asker.until(&site.url("/asks"), "fetched").await);
    let told = asker.until(&site.url("/dies"), "dead").await;
    assert!(text(&told["reason"]).contains("given up after 2 attempts"), "{told}");
    let told = asker.why(&site.url("/unknown")).await;
    assert_eq!((&told["verdict"], &told["expected_at"]), (&json!("unknown"), &Value::Null));
    let told = asker.why(&site.url("/closed/unknown")).await;
    assert_eq!(
        (&told["verdict"], &step(&told, "robots")["result"]),
        (&json!("refused"), &json!("refuse"))
    );
    let told = asker.why("https://elsewhere.test/").await;
    assert_eq!(
        (&told["verdict"], &step(&told, "scope")["result"]),
        (&json!("refused"), &json!("refuse"))
    );
    let told = asker.why("mailto:someone@elsewhere.test").await;
    assert_eq!(
        (&told["verdict"], &told["normalised"]),
        (&json!("refused"), &Value::Null),
        "{told}"
    );
    assert!(text(&told["reason"]).contains("mailto"), "{told}");
}

/// Behind a request that takes long.
async fn check_queued(asker: &Asker, site: &Site) {
    // One request holds the host: those behind it stand in their order.
    asker.seed(&[site.url("/slow")]).await;
    until("the slow page", 60, async || site.paths().contains(&"/slow".to_owned()).then_some(()))
        .await;
    let told = asker.why(&site.url("/slow")).await;
    assert_eq!(told["verdict"], "queued", "{told}");
    for page in ["/a", "/b"] {
        asker.seed(&[site.url(page)]).await;
    }
    let told = asker.until(&site.url("/b"), "queued").await;
    assert_eq!(told["reason"], "one URL of its host comes first", "{told}");
    assert_eq!(step(&told, "queue_position")["value"], "1 before it", "{told}");
    assert!(told["expected_at"].is_string(), "{told}");
    let names: Vec<&str> =
        told["trace"].as_array().into_iter().flatten().map(|one| text(&one["step"])).collect();
    let wanted = [
        "normalise",
        "scope",
        "exclusion",
        "robots",
        "template",
        "pause",
        "budget",
        "retry",
        "queue_position",
        "host_clock",
        "address",
    ];
    assert_eq!(names, wanted);
}

/// Under an exclusion, whose rule is returned, and a pause.
async fn check_held(asker: &Asker, site: &Site) -> String {
    let key = site.key();
    let (_, port) = key.rsplit_once(':').expect("the site is on a port of its own");
    let rule = format!("surt:127.0.0.1,:{port})/b");
    let body = json!({ "rule": rule, "reason": "they wrote" });
    let made = asker.daemon.client.post("/v1/exclusions", &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let told = asker.until(&site.url("/b"), "refused").await;
    let exclusion = step(&told, "exclusion");
    assert_eq!((&exclusion["rule"], &exclusion["value"]), (&json!(rule), &made.json()["id"]));
    assert_eq!(exclusion["reason"], "excluded: they wrote");
    asker.daemon.client.post("/v1/pause", &json!({})).await;
    let told = asker.until(&site.url("/a"), "waiting").await;
    assert_eq!(
        (&told["reason"], &told["expected_at"]),
        (&json!("paused by an operator"), &Value::Null)
    );
    rule
}

#[tokio::test(flavor = "multi_thread")]
async fn why_explains_every_url_known_or_not() {
    let site = Site::start(pages).await;
    let config = LOCAL.replace("base = \"500ms\"", "base = \"100ms\"\nmax_attempts = 2");
    let home = Home::new(&format!("{config}\n[data]\nflush_interval = \"200ms\"\n"));
    let daemon = home.serve().await;
    let asker = Asker { home, daemon };
    asker.seed(&[site.url("/"), site.url("/dies")]).await;

    check_visited_and_unknown(&asker, &site).await;
    check_queued(&asker, &site).await;
    let rule = check_held(&asker, &site).await;

    // Without a daemon the rows say the same.
    let Asker { home, daemon } = asker;
    daemon.running.signal("-TERM");
    daemon.running.ended(60).await.expect(0);
    let offline = async |url: &str| home.run(&["why", url, "--json"], 60).await.expect(0).json();
    let told = offline(&site.url("/closed/x")).await;
    assert_eq!(step(&told, "robots")["rule"], "line 3: Disallow: /closed", "{told}");
    assert_eq!(told["verdict"], "refused", "{told}");
    let told = offline(&site.url("/b")).await;
    assert_eq!(step(&told, "exclusion")["rule"], json!(rule), "{told}");
    check_asked(&offline(&site.url("/asks")).await);
    let told = offline("https://elsewhere.test/").await;
    assert_eq!(step(&told, "scope")["result"], "refuse", "{told}");
}
