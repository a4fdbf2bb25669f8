//! Questions: status, hosts, URLs, metrics, probes.

use std::time::Duration;

use serde_json::Value;

use super::fakes::Stage;
use crate::admin::{CrawlPhase, RunState, Status, collect};
use crate::types::Outcome;

#[tokio::test(start_paused = true)]
async fn the_status_is_the_sum_of_the_shards() {
    let stage = Stage::set().await;
    stage.shards[0].lock().unwrap().pages = 3;
    stage.shards[1].lock().unwrap().pages = 4;
    let status: Status = serde_json::from_str(&stage.get("/v1/status").await.text).unwrap();
    assert_eq!(status.state, RunState::Running);
    assert_eq!(status.pages, 7);
    assert_eq!(status.urls.known, 20);
    assert_eq!(status.urls.in_flight, 4);
    assert_eq!(status.outcomes[&Outcome::Ok], 7);
    assert_eq!(status.queues["fetch"].capacity, Some(8));
    assert_eq!(status.next_wake, Some(super::fakes::start() + Duration::from_secs(60)));
    assert_eq!(status.parked.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn pages_per_second_is_a_sliding_figure() {
    let stage = Stage::set().await;
    assert!(collect(&stage.state).await.pages_per_second.abs() < 1e-9);
    tokio::time::advance(Duration::from_secs(4)).await;
    stage.shards[0].lock().unwrap().pages = 20;
    assert!((collect(&stage.state).await.pages_per_second - 5.0).abs() < 0.01);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_does_not_answer_makes_it_degraded() {
    let stage = Stage::set().await;
    stage.shards[1].lock().unwrap().deaf = true;
    let before = stage.state.clock.now();
    let status = collect(&stage.state).await;
    assert_eq!(status.state, RunState::Degraded);
    assert_eq!(status.reasons, ["shard 1 does not answer in time"]);
    assert_eq!(status.urls.known, 10);
    assert!(stage.state.clock.now().since(before) <= Duration::from_millis(2_100));
    stage.lose(1);
    assert_eq!(collect(&stage.state).await.reasons, ["shard 1 is not there"]);
    stage.shards[0].lock().unwrap().degraded = vec!["the disk is full".into()];
    assert_eq!(collect(&stage.state).await.reasons[0], "shard 0: the disk is full");
}

#[tokio::test(start_paused = true)]
async fn the_phase_shows_in_the_state() {
    let stage = Stage::set().await;
    stage.phase.send_replace(CrawlPhase::Paused);
    assert_eq!(collect(&stage.state).await.state, RunState::Paused);
    stage.lose(0);
    assert_eq!(collect(&stage.state).await.state, RunState::Degraded);
    stage.phase.send_replace(CrawlPhase::Draining);
    assert_eq!(collect(&stage.state).await.state, RunState::Draining);
}

#[tokio::test(start_paused = true)]
async fn hosts_are_listed_page_by_page_over_all_shards() {
    let stage = Stage::set().await;
    let names: Vec<String> = (0..23).map(|number| format!("https://h{number}.test")).collect();
    stage.know(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(stage.shards.iter().all(|shard| !shard.lock().unwrap().hosts.is_empty()));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _page in 0..20 {
        let told = stage.get(&format!("/v1/hosts?limit=5&cursor={cursor}")).await.json();
        let items = told["items"].as_array().unwrap();
        assert!(items.len() <= 5);
        seen.extend(items.iter().map(|item| item["host_key"].as_str().unwrap().to_owned()));
        match told["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    seen.sort();
    let mut names = names;
    names.sort();
    assert_eq!(seen, names);
}

#[tokio::test(start_paused = true)]
async fn hosts_are_chosen_by_state_and_domain() {
    let stage = Stage::set().await;
    stage.know(&["https://www.a.test", "https://b.test"]);
    let count = async |query: &str| {
        let told = stage.get(&format!("/v1/hosts?{query}")).await.json();
        assert_eq!(told["next"], Value::Null);
        told["items"].as_array().unwrap().len()
    };
    assert_eq!(count("domain=A.test").await, 1);
    assert_eq!(count("domain=c.test").await, 0);
    assert_eq!(count("state=waiting").await, 2);
    assert_eq!(count("state=parked").await, 0);
    let told = stage.get("/v1/hosts?state=sleepy").await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("state")));
    for cursor in ["x", "0", "0-12", "-", "0-zzzzzzzzzzzzzzzz"] {
        let told = stage.get(&format!("/v1/hosts?cursor={cursor}")).await;
        assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("cursor")), "{cursor}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_is_found_by_key_and_by_name() {
    let stage = Stage::set().await;
    stage.know(&["https://a.test", "http://b.test:8080"]);
    for (path, key) in [
        ("/v1/hosts/https%3A%2F%2Fa.test", "https://a.test"),
        ("/v1/hosts/A.test", "https://a.test"),
        ("/v1/hosts/b.test:8080", "http://b.test:8080"),
    ] {
        let told = stage.get(path).await;
        assert_eq!(told.json()["host_key"], key, "{path}");
    }
    let told = stage.get("/v1/hosts/a.test").await.json();
    assert_eq!(told["delay_seconds"], 1.5);
    assert_eq!(told["robots"]["crawl_delay"], 2.0);
    for path in ["/v1/hosts/c.test", "/v1/hosts/http%3A%2F%2Fa.test", "/v1/hosts/a%20b"] {
        let told = stage.get(path).await;
        assert_eq!((told.status, told.json()["key"].as_str()), (404, Some("host_key")), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_away_is_told_so() {
    let stage = Stage::set().await;
    stage.lose(0);
    stage.lose(1);
    for path in ["/v1/hosts", "/v1/hosts/a.test", "/v1/urls?url=http://a.test/", "/readyz"] {
        let told = stage.get(path).await;
        assert_eq!(told.status, 503, "{path}");
        assert!(told.headers.contains_key("retry-after"), "{path}");
    }
    assert_eq!(stage.get("/healthz").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn one_url_is_shown() {
    let stage = Stage::set().await;
    stage.know(&["http://a.test"]);
    let told = stage.get("/v1/urls?url=http%3A%2F%2Fa.test%2Fx%3Fy%3D1").await.json();
    assert_eq!(told["url"], "http://a.test/x?y=1");
    assert_eq!(told["state"], "queued");
    assert_eq!(told["url_id"].as_str().unwrap().len(), 34);
    assert_eq!(stage.get("/v1/urls?url=http://b.test/").await.status, 404);
    for query in ["", "?url=", "?url=mailto:a@b.c", "?url=nothing"] {
        let told = stage.get(&format!("/v1/urls{query}")).await;
        assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("url")), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn figures_are_there_for_prometheus() {
    let stage = Stage::set().await;
    stage.shards[0].lock().unwrap().pages = 3;
    let text = stage.get("/metrics").await.text;
    for line in [
        "mehman_fetch_pages_total 3",
        "mehman_fetch_exchanges_total{outcome=\"ok\"} 3",
        "mehman_fetch_exchanges_total{outcome=\"dns\"} 0",
        "mehman_policy_violations_total 0",
        "mehman_frontier_urls{state=\"known\"} 20",
        "mehman_node_state{state=\"running\"} 1",
        "mehman_pool_workers{pool=\"fetch\",state=\"busy\"} 3",
        "mehman_archive_records_total 5",
        "mehman_build_info{version=\"0.1.0\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.starts_with("mehman_"), "{line}");
        assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_load_nothing_from_elsewhere() {
    let stage = Stage::set().await;
    for path in ["/", "/about"] {
        let told = stage.get(path).await;
        assert!(told.headers["content-security-policy"].to_str().unwrap().contains("'none'"));
        for tag in ["src=", "stylesheet", "@import", "url("] {
            assert!(!told.text.contains(tag), "{path} {tag}");
        }
    }
    let about = stage.get("/about").await.text;
    assert!(about.contains("mehman/0.1.0 (+https://crawl.example/)"), "{about}");
    assert!(about.contains("User-agent: mehman"), "{about}");
}

#[tokio::test(start_paused = true)]
async fn readiness_ends_with_a_failing_store_and_says_why() {
    let stage = Stage::set().await;
    assert_eq!(stage.get("/readyz").await.status, 200);
    stage.shards[1].lock().unwrap().degraded = vec!["no space left on device".into()];
    // Whoever may ask this without a token cannot make the node look again and again.
    stage.state.clock.sleep(Duration::from_secs(2)).await;
    let told = stage.get("/readyz").await;
    assert_eq!((told.status, told.media()), (503, "application/problem+json"));
    assert_eq!(told.json()["detail"], "degraded: shard 1: no space left on device");
    stage.shards[1].lock().unwrap().degraded.clear();
    assert_eq!(stage.get("/readyz").await.status, 503, "looked at again within the second");
    stage.state.clock.sleep(Duration::from_secs(2)).await;
    assert_eq!(stage.get("/readyz").await.status, 200);
}

#[test]
fn a_single_host_is_shown_with_exact_numbers() {
    let page = include_str!("../dashboard.html");
    let (_, detail) = page.split_once("function detail(host)").unwrap();
    let (detail, _) = detail.split_once("async function host()").unwrap();
    assert!(!detail.contains("count("), "rounded: {detail}");
    assert!(!detail.contains(": span(robots.crawl_delay)"), "rounded: {detail}");
}

#[tokio::test(start_paused = true)]
async fn readiness_ends_with_draining() {
    let stage = Stage::set().await;
    assert_eq!(stage.get("/readyz").await.status, 200);
    stage.phase.send_replace(CrawlPhase::Draining);
    assert_eq!(stage.get("/readyz").await.status, 503);
}

#[tokio::test(start_paused = true)]
async fn why_answers_for_any_url_and_for_what_is_none() {
    let stage = Stage::set().await;
    stage.know(&["https://a.test"]);
    let known = stage.get("/v1/why?url=https%3A%2F%2Fa.test%2F").await.json();
    assert_eq!(known["url"], "https://a.test/", "{known}");
    assert_eq!(known["trace"].as_array().unwrap().len(), 11, "{known}");
    let unknown = stage.get("/v1/why?url=https%3A%2F%2Fb.test%2F").await.json();
    assert_eq!((&unknown["verdict"], &unknown["expected_at"]), (&"unknown".into(), &Value::Null));
    let beyond = stage.get("/v1/why?url=https%3A%2F%2Fbeyond.test%2F").await.json();
    let [verdict, scope] = [&beyond["verdict"], &beyond["trace"][1]["result"]];
    assert_eq!((verdict, scope), (&"refused".into(), &"refuse".into()), "{beyond}");
    let told = stage.get("/v1/why?url=nonsense").await;
    assert_eq!((told.status, told.json()["verdict"].as_str()), (200, Some("refused")));
    assert!(told.json()["reason"].as_str().unwrap().contains("not a URL"), "{}", told.text);
    assert_eq!(stage.get("/v1/why").await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn owners_of_sites_see_addresses_and_what_is_asked_of_them() {
    let stage = Stage::set().await;
    stage.know(&["https://a.test"]);
    let page = stage.get("/about").await.text;
    assert!(page.contains("192.0.2.0/24") && !page.contains("Your site"), "{page}");
    let page = stage.get("/about?host=a.test").await.text;
    assert!(page.contains("<code>https://a.test</code>") && page.contains("today"), "{page}");
    let page = stage.get("/about?host=%3Cb%3E.test").await.text;
    assert!(page.contains("&lt;b&gt;.test</code> is known here"), "{page}");
    let told = stage.get("/about/addresses.json").await.json();
    let wanted = [("ipv4Prefix", "192.0.2.0/24"), ("ipv6Prefix", "2001:db8::/32")];
    let wanted: Vec<Value> = wanted.map(|(name, net)| serde_json::json!({ name: net })).into();
    assert_eq!(told["prefixes"], Value::from(wanted));
}
