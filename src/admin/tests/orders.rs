//! Orders: seeds, pause, patches, dead letters, drain, reload.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use super::fakes::{Stage, key};
use crate::admin::{CrawlPhase, SeedsAnswer};

#[tokio::test(start_paused = true)]
async fn seeds_come_in_three_forms() {
    let stage = Stage::set().await;
    let object = r#"{"urls":[{"url":"http://a.test/"},{"url":"http://a.test/known","depth":1}]}"#;
    let told = stage.post("/v1/seeds", "application/json", object).await;
    assert_eq!(told.status, 200, "{}", told.text);
    let answer: SeedsAnswer = serde_json::from_str(&told.text).unwrap();
    assert_eq!((answer.accepted, answer.known, answer.refused), (1, 1, 0));

    let lines = "{\"url\":\"http://a.test/\",\"priority\":0.5}\n\n{\"uri\":1}\n{\"url\":\"x\"}\n";
    let told = stage.post("/v1/seeds", "application/x-ndjson", lines).await.json();
    assert_eq!(told["accepted"], 1);
    assert_eq!(told["refused"], 2);
    let reasons: Vec<&str> = told["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["reason"].as_str())
        .collect();
    assert!(reasons[0].starts_with("line 3: unknown field `uri`"), "{reasons:?}");
    assert_eq!(reasons[1], "line 4: not a URL");

    let text = "# ours\nhttp://a.test/\n\nnothing\nhttp://b.test/known";
    let told = stage.post("/v1/seeds", "text/plain; charset=utf-8", text).await.json();
    assert_eq!(
        told,
        json!({
            "accepted": 1, "known": 1, "refused": 1,
            "results": [
                { "url": "http://a.test/", "result": "accepted" },
                { "url": "nothing", "result": "refused", "reason": "line 4: not a URL" },
                { "url": "http://b.test/known", "result": "known" },
            ],
        })
    );
}

#[tokio::test(start_paused = true)]
async fn bad_seeds_are_named_by_field_and_line() {
    let stage = Stage::set().await;
    let body = "{\"urls\": [\n  {\"url\": \"http://a.test/\"},\n  {\"url\": 5}\n]}";
    let told = stage.post("/v1/seeds", "application/json", body).await;
    assert_eq!((told.status, told.media()), (400, "application/problem+json"));
    assert_eq!(told.json()["key"], "urls[1].url");
    assert_eq!(told.json()["line"], 3);
    let told = stage.post("/v1/seeds", "application/json", "{\"urls\":\n[").await;
    assert_eq!((told.status, told.json()["line"].as_u64()), (400, Some(2)));
    let told = stage.post("/v1/seeds", "text/plain", b"http://a.test/\n\xff".to_vec()).await;
    assert_eq!((told.status, told.json()["line"].as_u64()), (400, Some(2)));
    let form = "application/x-www-form-urlencoded";
    let told = stage.post("/v1/seeds", form, "http://a.test/").await;
    assert_eq!((told.status, told.json()["key"].as_str()), (415, Some("Content-Type")));
    assert!(stage.batches.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_seeds_go_in_batches() {
    let stage = Stage::set().await;
    let text: String = (0..2_500).map(|number| format!("http://a.test/{number}\n")).collect();
    let told = stage.post("/v1/seeds", "text/plain", text).await.json();
    assert_eq!(told["accepted"], 2_500);
    assert_eq!(told["results"][2_499]["url"], "http://a.test/2499");
    assert_eq!(*stage.batches.lock().unwrap(), [1000, 1000, 500]);
}

#[tokio::test(start_paused = true)]
async fn lines_that_are_no_seeds_do_not_cut_batches_short() {
    let stage = Stage::set().await;
    let line = |number| format!("{{\"url\":\"http://a.test/{number}\"}}\njunk\n");
    let text: String = (0..1_500).map(line).collect();
    let told = stage.post("/v1/seeds", "application/x-ndjson", text).await.json();
    assert_eq!((&told["accepted"], &told["refused"]), (&1_500.into(), &1_500.into()));
    assert_eq!(told["results"][2_998]["url"], "http://a.test/1499");
    assert_eq!(told["results"][2_999]["url"], "junk");
    assert_eq!(*stage.batches.lock().unwrap(), [1000, 500]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_or_too_slow_is_refused() {
    let stage = Stage::set().await;
    let told = stage.post("/v1/pause", "application/json", vec![b' '; 5 << 20]).await;
    assert_eq!(told.status, 413);
    let never = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let told = stage.post("/v1/seeds", "text/plain", Body::from_stream(never)).await;
    assert_eq!(told.status, 408);
}

#[tokio::test(start_paused = true)]
async fn the_crawl_is_paused_and_resumed() {
    let stage = Stage::set().await;
    let told = stage.order("/v1/pause", "").await;
    assert_eq!(told.json(), json!({ "paused": true, "host_key": null }));
    assert_eq!(*stage.phase.borrow(), CrawlPhase::Paused);
    assert_eq!(stage.get("/v1/status").await.json()["state"], "paused");
    let told = stage.order("/v1/resume", "{}").await;
    assert_eq!(told.json(), json!({ "paused": false, "host_key": null }));
    assert_eq!(*stage.phase.borrow(), CrawlPhase::Running);
    let told = stage.order("/v1/pause", r#"{"hosts":1}"#).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("hosts")));
}

#[tokio::test(start_paused = true)]
async fn one_host_is_paused() {
    let stage = Stage::set().await;
    stage.know(&["http://a.test"]);
    let told = stage.order("/v1/pause", r#"{"host":"a.test"}"#).await;
    assert_eq!(told.json(), json!({ "paused": true, "host_key": "http://a.test" }));
    let orders = stage.owner(&key("http://a.test")).lock().unwrap().orders.clone();
    assert_eq!(orders.len(), 1);
    assert_eq!((orders[0].paused, orders[0].min_delay), (Some(true), None));
    assert_eq!(*stage.phase.borrow(), CrawlPhase::Running);
    assert_eq!(stage.order("/v1/pause", r#"{"host":"b.test"}"#).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_patch_answers_with_the_new_state() {
    let stage = Stage::set().await;
    stage.know(&["http://a.test"]);
    let path = "/v1/hosts/a.test";
    let told = stage.patch(path, r#"{"min_delay":2.5,"daily_pages":null}"#).await.json();
    assert_eq!(told["allowance"]["min_delay"], 2.5);
    let owner = stage.owner(&key("http://a.test"));
    let orders = owner.lock().unwrap().orders.clone();
    assert_eq!(orders[0].min_delay, Some(Some(Duration::from_millis(2500))));
    assert_eq!(orders[0].daily_pages, Some(None));
    assert_eq!(orders[0].paused, None);
    let told = stage.patch(path, r#"{"min_delay":-1}"#).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("min_delay")));
    let told = stage.patch(path, r#"{"max_in_flight":"two"}"#).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("max_in_flight")));
    assert_eq!(stage.patch(path, "{}").await.status, 200);
    assert_eq!(owner.lock().unwrap().orders.len(), 1);
    assert_eq!(stage.patch("/v1/hosts/b.test", "{}").await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_listed_and_requeued() {
    let stage = Stage::set().await;
    for number in 0..7 {
        stage.bury(&format!("http://h{number}.test/"));
    }
    let (mut seen, mut cursor) = (0, String::new());
    for _page in 0..9 {
        let told = stage.get(&format!("/v1/dead-letters?limit=3&cursor={cursor}")).await.json();
        seen += told["items"].as_array().unwrap().len();
        assert!(told["items"][0]["reason"].as_str().is_none_or(|why| why.contains("given up")));
        match told["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, 7);
    let told = stage.order("/v1/dead-letters/retry", r#"{"all":true}"#).await;
    assert_eq!(told.json(), json!({ "requeued": 7 }));
    let told = stage.order("/v1/dead-letters/retry", r#"{"urls":["http://h1.test/"]}"#).await;
    assert_eq!(told.json(), json!({ "requeued": 0 }));
    for wrong in ["{}", r#"{"all":false}"#, r#"{"all":true,"host":"a.test"}"#] {
        assert_eq!(stage.order("/v1/dead-letters/retry", wrong).await.status, 400, "{wrong}");
    }
    let told = stage.order("/v1/dead-letters/retry", r#"{"urls":["x"]}"#).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("urls[0]")));
    assert_eq!(stage.get("/v1/dead-letters?cursor=0-12").await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn drain_and_reload_reach_the_node() {
    let stage = Stage::set().await;
    let told = stage.order("/v1/reload", "").await;
    assert_eq!(told.json()["applied"], json!(["politeness.min_delay"]));
    let told = stage.order("/v1/drain", "").await;
    assert_eq!((told.status, told.json()), (202, json!({ "state": "draining" })));
    assert_eq!(stage.get("/v1/status").await.json()["state"], "draining");
    assert_eq!(stage.order("/v1/drain", r#"{"now":true}"#).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_page_gives_no_orders() {
    let stage = Stage::set().await;
    let request = Request::post("/v1/drain")
        .header(header::HOST, "127.0.0.1:8070")
        .header(header::ORIGIN, "https://evil.test")
        .header(header::CONTENT_TYPE, "text/plain");
    let told = stage.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (403, Some("Origin")));
    assert_eq!(*stage.phase.borrow(), CrawlPhase::Running);
}

#[tokio::test(start_paused = true)]
async fn seeds_are_not_lost_in_silence() {
    let stage = Stage::set().await;
    stage.routes.send_modify(|routes| {
        *routes = std::sync::Arc::new(crate::protocol::Routes {
            discovery: None,
            ..crate::protocol::Routes::clone(routes)
        });
    });
    let told = stage.post("/v1/seeds", "text/plain", "http://a.test/").await;
    assert_eq!(told.status, 503);
    assert_ne!(told.json()["detail"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn exclusions_are_made_listed_and_lifted() {
    let stage = Stage::set().await;
    let body = r#"{"rule":"host:A.Test","reason":"a letter","until":"2999-01-01T00:00:00Z"}"#;
    let told = stage.order("/v1/exclusions", body).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let made = told.json();
    assert_eq!((&made["rule"], &made["reason"]), (&json!("host:a.test"), &json!("a letter")));
    assert_eq!(made["until"], "2999-01-01T00:00:00.000Z");
    let again = stage.order("/v1/exclusions", r#"{"rule":"host:a.test"}"#).await.json();
    assert_eq!((&again["reason"], &again["until"]), (&made["reason"], &Value::Null), "{again}");
    assert_eq!(stage.order("/v1/exclusions", body).await.json()["until"], made["until"]);
    let all = stage.get("/v1/exclusions").await.json();
    assert_eq!((all["items"].as_array().unwrap().len(), &all["next"]), (2, &Value::Null), "{all}");
    let first = stage.get("/v1/exclusions?limit=1").await.json();
    let cursor = first["next"].as_str().unwrap();
    let second = stage.get(&format!("/v1/exclusions?cursor={cursor}")).await.json();
    assert_eq!([&first["items"][0], &second["items"][0]], [&all["items"][0], &all["items"][1]]);
    let path = format!("/v1/exclusions/{}", made["id"].as_str().unwrap());
    let lift = |path: &str| Request::delete(path).body(Body::empty()).unwrap();
    let told = stage.send(lift(&path)).await;
    assert_eq!((told.status, told.json()), (200, made));
    let told = stage.send(lift(&path)).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (404, Some("id")));
    let told = stage.order("/v1/exclusions", r#"{"rule":"host:a.test","purge":true}"#).await;
    assert_eq!(told.status, 201, "{}", told.text);
    let made = told.json();
    assert_eq!(
        (&made["purge"]["state"], &made["purge"]["records"]),
        (&json!("waiting"), &json!(0))
    );
    let all = stage.get("/v1/exclusions").await.json();
    let all = all["items"].as_array().unwrap();
    for item in all {
        let ordered = item["rule"] == made["rule"];
        let state = if ordered { json!("running") } else { Value::Null };
        assert_eq!(item["purge"]["state"], state, "{item}");
    }
    let told = stage.send(lift(&path)).await;
    assert_eq!(
        (told.status, told.json()["type"].as_str()),
        (409, Some("urn:mehman:problem:conflict"))
    );
    let both = r#"{"rule":"host:b.test","purge":true,"until":"2999-01-01T00:00:00Z"}"#;
    let told = stage.order("/v1/exclusions", both).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("until")));
    let told = stage.order("/v1/exclusions", r#"{"rule":"a.test"}"#).await;
    assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("rule")));
}
