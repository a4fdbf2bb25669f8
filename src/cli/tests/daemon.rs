//! Questions and orders to a daemon.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{Ended, run};
use crate::cli::failure::Exit;
use crate::cli::output::Form;

/// A request as it came.
#[derive(Clone, Debug)]
struct Asked {
    uri: String,
    body: Value,
    content_type: Option<String>,
    authorization: Option<String>,
}

/// A daemon that has its answers by heart.
struct Fake {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let kept = Arc::clone(&asked);
        let answer = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let kept = Arc::clone(&kept);
            async move {
                let header =
                    |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
                let asked = Asked {
                    uri: uri.to_string(),
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                    content_type: header("content-type"),
                    authorization: header("authorization"),
                };
                kept.lock().unwrap().push(asked.clone());
                answer(&asked)
            }
        };
        let server = axum::serve(listener, Router::new().fallback(answer));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { url, asked, task }
    }

    async fn run(&self, form: Form, line: &[&str]) -> Ended {
        let line: Vec<&str> = line.iter().copied().chain(["--admin", &self.url]).collect();
        run(form, &line).await
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(asked: &Asked) -> Response {
    let known = ["http://known.test/"];
    let answer = match asked.uri.as_str() {
        "/v1/status" => status(),
        "/v1/hosts?state=parked&limit=3" => json!({
            "items": [host("http://a.test"), host("http://b.test"), host("http://c.test")],
            "next": "1-",
        }),
        "/v1/hosts?limit=1000" => json!({ "items": [host("http://a.test")], "next": "1-aa" }),
        "/v1/hosts?limit=1000&cursor=1-aa" => {
            json!({ "items": [host("http://b.test")], "next": null })
        }
        "/v1/hosts/http:%2F%2Fa.test:81" => host("http://a.test:81"),
        "/v1/pause" | "/v1/resume" => {
            json!({ "paused": true, "host_key": asked.body.get("host") })
        }
        "/v1/dead-letters/retry" => json!({ "requeued": 2 }),
        "/v1/dead-letters?limit=100" => json!({
            "items": [{
                "url": "http://a.test/x", "reason": "given up after 5 attempts",
                "attempts": 5, "last_at": "2026-01-01T00:00:00.000Z",
            }],
            "next": null,
        }),
        "/v1/seeds" => {
            let urls = asked.body["urls"].as_array().unwrap();
            let urls: Vec<&str> = urls.iter().map(|seed| seed["url"].as_str().unwrap()).collect();
            let result = |url: &&str| match *url {
                url if known.contains(&url) => json!({ "url": url, "result": "known" }),
                url if url.contains("out") => {
                    json!({ "url": url, "result": "refused", "reason": "outside the scope" })
                }
                url => json!({ "url": url, "result": "accepted" }),
            };
            let results: Vec<Value> = urls.iter().map(result).collect();
            let count = |what| results.iter().filter(|one| one["result"] == what).count();
            json!({
                "accepted": count("accepted"), "known": count("known"),
                "refused": count("refused"), "results": results,
            })
        }
        _ => {
            let problem = json!({
                "type": "urn:x", "title": "not known here", "status": 404,
                "detail": format!("`{}` is not known", asked.uri), "key": "url",
            });
            return (StatusCode::NOT_FOUND, problem.to_string()).into_response();
        }
    };
    answer.to_string().into_response()
}

fn host(key: &str) -> Value {
    json!({
        "host_key": key, "state": "waiting", "reason": "its clock\u{1b}[2J runs", "in_flight": 0,
        "next_allowed_at": "2026-01-01T00:00:00.000Z", "queued": 1200, "pages_today": 7,
        "robots": {"state": "obey", "rules": 3, "crawl_delay": 2.0}, "delay_seconds": 1.0,
        "delay_set_by": "crawl_delay", "something": "new",
    })
}

fn status() -> Value {
    json!({
        "state": "degraded", "reasons": ["shard 1 does not answer in time"],
        "started_at": "2026-01-01T00:00:00.000Z", "version": "0.1.0", "pages": 12345,
        "pages_per_second": 2.5, "bytes": 1_572_864, "lag_seconds": 0.5, "next_wake": null,
        "urls": {
            "known": 10, "queued": 3, "in_flight": 2, "pages_in_flight": 1, "dead": 0,
            "deferred": 0, "sleeping": 2,
        },
        "hosts": {"known": 4, "resident": 0, "ready": 1, "waiting": 0, "parked": 1},
        "outcomes": {"ok": 5, "client_error": 9}, "new_field": true,
        "queues": {"fetch": {"waiting": 1, "busy": 2, "capacity": 1000}},
        "parked": [{
            "host_key": "http://a.test", "reason": "robots.txt unreachable", "until": null,
            "queued": 3,
        }],
    })
}

#[tokio::test]
async fn status_is_a_sheet_or_the_daemon_s_own_json() {
    let fake = Fake::start().await;
    let text = fake.run(Form::Text, &["status"]).await;
    for part in [
        "degraded",
        "! shard 1 does not answer in time",
        "12,345 in the life of its data, 2.5 a second now",
        "since the start  14 requests, robots.txt included: client_error 9 · ok 5",
        "1.5 MiB of bodies",
        "10 known: 3 queued, 1 in flight, 2 refused by robots.txt or an exclusion, 4 done",
        "4 known: 1 ready, 1 parked, 2 with nothing to do",
        "daemon           http://127.0.0.1:",
        "fetch 2 of 1,000 busy, 1 wait",
        "http://a.test",
    ] {
        assert!(text.results.contains(part), "{part}: {}", text.results);
    }
    let json = fake.run(Form::Json, &["status"]).await;
    assert_eq!(serde_json::from_str::<Value>(&json.results).unwrap(), status());
    assert_eq!((text.exit, json.exit), (Exit::Done, Exit::Done));
}

#[tokio::test]
async fn lists_follow_their_cursor_as_far_as_asked() {
    let fake = Fake::start().await;
    let some = fake.run(Form::Text, &["hosts", "--state", "parked", "--limit", "3"]).await;
    assert_eq!(some.results.lines().count(), 4);
    assert!(some.results.starts_with("HOST"));
    assert!(!some.results.contains('\u{1b}'), "text of sites reached the terminal");
    assert!(some.notes.contains("--all shows all"));
    let all = fake.run(Form::Json, &["hosts", "--all"]).await;
    let page: Value = serde_json::from_str(&all.results).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    assert_eq!(page["next"], Value::Null);
}

#[tokio::test]
async fn one_host_is_asked_for_by_its_key() {
    let fake = Fake::start().await;
    let found = fake.run(Form::Text, &["host", "http://a.test:81"]).await;
    assert_eq!(found.exit, Exit::Done, "{}", found.notes);
    for part in ["obeyed, 3 rules, Crawl-delay 2 s", "1 s, set by crawl delay", "waiting"] {
        assert!(found.results.contains(part), "{part}: {}", found.results);
    }
    let none = fake.run(Form::Text, &["host", "b.test"]).await;
    assert_eq!(none.exit, Exit::Failed);
    assert!(none.notes.starts_with("error: the host `b.test` is not known; a port"));
}

#[tokio::test]
async fn a_url_that_is_not_known_is_told_from_one_that_is_none() {
    let fake = Fake::start().await;
    let unknown = fake.run(Form::Text, &["urls", "http://a.test/x?y=1&z"]).await;
    assert_eq!(unknown.exit, Exit::Failed);
    assert!(unknown.notes.contains("is not known"));
    assert_eq!(fake.asked()[0].uri, "/v1/urls?url=http%3A%2F%2Fa.test%2Fx%3Fy%3D1%26z");
    let none = fake.run(Form::Text, &["urls", "nonsense"]).await;
    assert_eq!(none.exit, Exit::Wrong);
}

#[tokio::test]
async fn seeds_go_in_batches_and_every_refusal_has_its_place() {
    let fake = Fake::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("seeds.txt");
    let mut text = "# many\nhttp://known.test/\nnonsense\nhttp://out.test/\n".to_owned();
    text.extend((0..10_500).map(|n| format!("http://a.test/{n}\n")));
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let sent = fake.run(Form::Text, &["seed", "http://out.test/1", "--file", file]).await;
    assert_eq!(sent.results, "10,500 accepted, 1 known already, 3 refused\n");
    assert_eq!(sent.exit, Exit::Failed);
    assert!(sent.notes.contains("refused argument 1: http://out.test/1: outside the scope"));
    assert!(sent.notes.contains("refused line 3: nonsense: not a URL"));
    assert!(sent.notes.contains("refused line 4: http://out.test/: outside the scope"));
    let asked = fake.asked();
    let sizes: Vec<_> =
        asked.iter().map(|asked| asked.body["urls"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [10_000, 503]);
    assert_eq!(asked[0].content_type.as_deref(), Some("application/json"));
    let json = fake.run(Form::Json, &["seed", "http://out.test/1", "http://b.test/"]).await;
    let told: Value = serde_json::from_str(&json.results).unwrap();
    let expected = json!({
        "accepted": 1, "known": 0, "refused": 1,
        "results": [{
            "url": "http://out.test/1", "result": "refused", "reason": "outside the scope",
            "argument": 1,
        }],
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn orders_say_what_they_did() {
    let fake = Fake::start().await;
    let paused = fake.run(Form::Text, &["pause"]).await;
    assert_eq!(paused.results, "the crawl is paused\n");
    let resumed = fake.run(Form::Text, &["resume", "http://a.test"]).await;
    assert_eq!(resumed.results, "http://a.test is resumed\n");
    let letters = fake.run(Form::Text, &["dead", "list"]).await;
    assert!(letters.results.contains("given up after 5 attempts"), "{}", letters.results);
    let retried = fake.run(Form::Text, &["dead", "retry", "--host", "a.test"]).await;
    assert_eq!(retried.results, "2 URLs put back\n");
    let too_many = ["dead", "retry", "http://a.test/1", "http://a.test/2", "http://a.test/3"];
    let few = fake.run(Form::Text, &too_many).await;
    assert_eq!(few.exit, Exit::Failed);
    assert!(few.notes.contains("1 of the 3 URLs are no dead letters"), "{}", few.notes);
    let bodies: Vec<_> = fake.asked().into_iter().map(|asked| asked.body).collect();
    let list = Value::Null;
    let urls = json!({"urls": too_many[2..]});
    assert_eq!(
        bodies,
        [json!({}), json!({"host": "http://a.test"}), list, json!({"host": "a.test"}), urls]
    );
}

#[tokio::test]
async fn where_nobody_listens_the_way_out_is_named() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let status = run(Form::Text, &["status", "--admin", &url]).await;
    assert_eq!(status.exit, Exit::Failed);
    let expected = format!("error: no daemon answers at {url}/; start one with `mehman serve`");
    assert!(status.notes.starts_with(&expected), "{}", status.notes);
    let hosts = run(Form::Text, &["hosts", "--admin", &url]).await;
    assert!(hosts.notes.contains("`mehman serve` or give --data"), "{}", hosts.notes);
}

#[tokio::test]
async fn a_server_of_another_kind_is_named_as_such() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = axum::serve(listener, Router::new().fallback(async || "<html>"));
    let task = tokio::spawn(async move { server.await.unwrap() });
    let status = run(Form::Text, &["status", "--admin", &url]).await;
    assert_eq!(status.exit, Exit::Failed);
    assert!(status.notes.contains("is not the admin interface of mehman"), "{}", status.notes);
    task.abort();
}

#[tokio::test]
async fn the_daemon_of_a_data_directory_is_found_by_its_address() {
    let fake = Fake::start().await;
    let data = tempfile::tempdir().unwrap();
    let address = fake.url.strip_prefix("http://").unwrap();
    std::fs::write(data.path().join("admin.addr"), format!("{address}\n")).unwrap();
    let data = data.path().to_str().unwrap();
    let status = run(Form::Json, &["status", "--data", data]).await;
    assert_eq!(status.exit, Exit::Done, "{}", status.notes);
    let hosts = run(Form::Json, &["hosts", "--all", "--data", data]).await;
    assert_eq!(hosts.exit, Exit::Done, "{}", hosts.notes);
}

/// Every command finds its daemon in the same way, and says by whose word.
#[tokio::test]
async fn an_address_is_given_left_in_the_data_or_configured() {
    let fake = Fake::start().await;
    let address = fake.url.strip_prefix("http://").unwrap();
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let nobody = gone.local_addr().unwrap().to_string();
    drop(gone);
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let file = root.path().join("mehman.toml");
    let (data_word, file_word) = (data.to_str().unwrap(), file.to_str().unwrap());
    let left = format!("(by {data_word}/admin.addr)");
    let none = format!("no daemon serves {data_word}; start one with `mehman serve --data");
    // What the configuration listens at, what was left, how the data is named; who is asked.
    for (listen, written, named, wanted) in [
        (nobody.as_str(), Some(address), false, Ok(left.as_str())),
        (nobody.as_str(), Some(address), true, Ok(&left)),
        ("127.0.0.1:0", Some(address), false, Ok(&left)),
        (address, Some(nobody.as_str()), false, Ok("(by admin.listen)")),
        (address, None, false, Ok("(by admin.listen)")),
        (address, None, true, Err(none.as_str())),
        ("127.0.0.1:0", None, false, Err(&none)),
        (&nobody, None, false, Err("(by admin.listen); start one with `mehman serve`")),
    ] {
        std::fs::remove_dir_all(&data).ok();
        std::fs::create_dir(&data).unwrap();
        if let Some(written) = written {
            std::fs::write(data.join("admin.addr"), written).unwrap();
        }
        let config = format!("data.dir = {data_word:?}\nadmin.listen = {listen:?}\n");
        std::fs::write(&file, config).unwrap();
        let mut line = vec!["status", "--config", file_word];
        line.extend(if named { vec!["--data", data_word] } else { Vec::new() });
        let told = run(Form::Text, &line).await;
        match wanted {
            Ok(place) => assert!(told.results.contains(place), "{line:?}: {told:?}"),
            Err(said) => assert!(told.notes.contains(said), "{line:?}: {told:?}"),
        }
    }
    let _held = crate::storage::DataDir::open(&root.path().join("held")).unwrap();
    let held = root.path().join("held");
    let held = held.to_str().unwrap();
    for line in [["status", "--data", held], ["hosts", "--data", held]] {
        let told = run(Form::Text, &line).await;
        assert!(told.notes.contains("serves no admin interface"), "{}", told.notes);
        assert!(told.notes.contains("--admin-listen"), "{}", told.notes);
    }
}

#[tokio::test]
async fn the_token_of_the_configuration_goes_with_every_request() {
    let fake = Fake::start().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mehman.toml");
    std::fs::write(&file, "[admin]\ntoken = \"geheim\"\n").unwrap();
    let line = ["status", "--config", file.to_str().unwrap()];
    assert_eq!(fake.run(Form::Json, &line).await.exit, Exit::Done);
    assert_eq!(fake.asked()[0].authorization.as_deref(), Some("Bearer geheim"));
    fake.run(Form::Json, &["status"]).await;
    assert_eq!(fake.asked()[1].authorization, None);
}
