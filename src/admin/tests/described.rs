//! The description and the interface agree: routes, answers, refusals, who may.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::Value;

use super::fakes::{Stage, exclusion, settings};
use crate::admin::auth::Access;
use crate::admin::openapi::document;
use crate::admin::router::Route;
use crate::admin::routes::ROUTES;
use crate::admin::{AdminSettings, CrawlPhase};

/// A request that a route answers when all is well.
fn example(route: &Route) -> Request<Body> {
    let path = match route.path {
        "/v1/hosts/{host_key}" => "/v1/hosts/https%3A%2F%2Fa.test".to_owned(),
        "/v1/urls" => "/v1/urls?url=https%3A%2F%2Fa.test%2F".to_owned(),
        "/v1/why" => "/v1/why?url=https%3A%2F%2Fa.test%2F".to_owned(),
        "/v1/exclusions/{id}" => format!("/v1/exclusions/{}", exclusion().id),
        path => path.to_owned(),
    };
    let (media, body) = match route.path {
        "/v1/seeds" => ("text/plain", "https://a.test/\nnothing"),
        "/v1/dead-letters/retry" => ("application/json", "{\"all\":true}"),
        "/v1/hosts/{host_key}" => ("application/json", "{\"min_delay\":2.5}"),
        "/v1/exclusions" => ("application/json", "{\"rule\":\"host:b.test\"}"),
        _ => ("application/json", "{}"),
    };
    let sent = if route.takes.is_empty() { "" } else { body };
    let request = Request::builder().method(route.verb.name()).uri(path);
    request.header(header::CONTENT_TYPE, media).body(sent.into()).unwrap()
}

async fn stage() -> Stage {
    let stage = Stage::set().await;
    stage.know(&["https://a.test", "http://b.test"]);
    stage.bury("https://a.test/dead");
    super::feed::happen(&stage, 0, 1, 10);
    stage
}

#[tokio::test(start_paused = true)]
async fn every_route_answers_as_described() {
    let described = document("0.1.0");
    for route in ROUTES {
        let told = stage().await.send(example(route)).await;
        let name = format!("{} {}: {}", route.verb.name(), route.path, told.text);
        assert_eq!(told.status, route.answers.status, "{name}");
        assert_eq!(told.media(), route.answers.media, "{name}");
        assert_eq!(told.headers[header::CACHE_CONTROL], "no-store", "{name}");
        let verb = route.verb.name().to_ascii_lowercase();
        let operation = &described["paths"][route.path][verb.as_str()];
        let answer = &operation["responses"][route.answers.status.to_string()];
        let schema = &answer["content"][route.answers.media]["schema"];
        assert!(schema.is_object(), "{name}");
        for value in values(route, &told.text) {
            fits(&described, schema, &value).unwrap_or_else(|why| panic!("{why} in {name}"));
        }
    }
}

/// What an answer holds: nothing to check in a page, a value a line in the feed.
fn values(route: &Route, text: &str) -> Vec<Value> {
    match route.answers.schema {
        "" => Vec::new(),
        "Event" => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        _ => vec![serde_json::from_str(text).unwrap()],
    }
}

/// Holds a value against a schema, and finds fields that it does not name.
fn fits(whole: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.strip_prefix('#').unwrap();
        let target = whole.pointer(pointer).ok_or_else(|| format!("no schema {reference}"))?;
        return fits(whole, target, value);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fault = choices.iter().map(|choice| fits(whole, choice, value));
        return fault.reduce(|one, other| one.or(other)).unwrap();
    }
    if let Some(names) = schema["enum"].as_array()
        && !names.contains(value)
    {
        return Err(format!("{value} is none of {names:?}"));
    }
    let kind = schema["type"].as_str().unwrap_or("any");
    let right = match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    if !right {
        return Err(format!("{value} is no {kind}"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(whole, &schema["items"], item)?;
    }
    fields_fit(whole, schema, value)
}

fn fields_fit(whole: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            return Err(format!("{name} is missing"));
        }
    }
    let others = &schema["additionalProperties"];
    let anything = schema["properties"].is_null() && others.is_null();
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(inner) => fits(whole, inner, field).map_err(|why| format!("{name}: {why}"))?,
            None if anything => {}
            None if others.is_object() => fits(whole, others, field)?,
            None => return Err(format!("{name} is not described")),
        }
    }
    Ok(())
}

#[test]
fn the_description_has_every_route_and_no_other() {
    let described = document("0.1.0");
    let mut found = Vec::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for (verb, operation) in operations.as_object().unwrap() {
            found.push((verb.to_ascii_uppercase(), path.clone()));
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{verb} {path}");
            let open = operation["security"] == serde_json::json!([]);
            let probe =
                ["/healthz", "/readyz", "/about", "/about/addresses.json"].contains(&path.as_str());
            assert_eq!(open, probe, "{verb} {path}");
        }
    }
    let mut table: Vec<(String, String)> =
        ROUTES.iter().map(|route| (route.verb.name().to_owned(), route.path.to_owned())).collect();
    found.sort();
    table.sort();
    assert_eq!(found, table);
}

#[test]
fn every_schema_that_is_named_is_there() {
    let described = document("0.1.0");
    let text = described.to_string();
    for (_, rest) in text.match_indices("#/components/schemas/").map(|(at, _)| text.split_at(at)) {
        let name = rest.split('"').next().unwrap().rsplit('/').next().unwrap();
        assert!(described["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_open_routes_answer_without_the_token() {
    let stage = Stage::with_token("secret").await;
    stage.know(&["https://a.test"]);
    for route in ROUTES {
        // One of the routes drains, and then nothing is ready.
        stage.phase.send_replace(CrawlPhase::Running);
        let told = stage.send(example(route)).await;
        if route.access == Access::Open {
            assert_eq!(told.status, 200, "{}", route.path);
            continue;
        }
        assert_eq!(told.status, 401, "{}", route.path);
        assert_eq!(told.media(), "application/problem+json", "{}", route.path);
        assert!(told.headers.contains_key(header::WWW_AUTHENTICATE), "{}", route.path);
        let mut request = example(route);
        request.headers_mut().insert(header::AUTHORIZATION, "Bearer secret".parse().unwrap());
        let told = stage.send(request).await;
        assert_eq!(told.status, route.answers.status, "{}: {}", route.path, told.text);
    }
    assert_eq!(stage.get("/v1/nothing").await.status, 401);
    let metrics = &stage.state.metrics;
    assert!(metrics.count(crate::telemetry::Counter::AdminRefusals) > 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_open_to_the_network_without_a_token() {
    let open = AdminSettings { listen: "0.0.0.0:8070".parse().unwrap(), ..settings() };
    let stage = Stage::with(open).await;
    assert_eq!(stage.get("/v1/status").await.status, 401);
    assert_eq!(stage.get("/healthz").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn what_fits_no_route_is_a_problem() {
    let stage = Stage::set().await;
    let told = stage.get("/v2/status").await;
    assert_eq!((told.status, told.media()), (404, "application/problem+json"));
    assert_eq!(told.json()["type"], "urn:mehman:problem:no-route");
    let told = stage.get("/v1/hosts/https://a.test").await;
    assert!(told.json()["detail"].as_str().unwrap().contains("percent-encoded"), "{}", told.text);
    let told = stage.get("/v1/pause").await;
    assert_eq!((told.status, told.media()), (405, "application/problem+json"));
    assert_eq!(told.headers[header::ALLOW], "POST");
    let told = stage.order("/v1/hosts/a.test", "{}").await;
    assert_eq!(told.headers[header::ALLOW], "GET, PATCH");
}

#[tokio::test(start_paused = true)]
async fn unknown_parameters_are_refused_everywhere() {
    let stage = stage().await;
    for route in ROUTES {
        let mut request = example(route);
        let path = request.uri().path().to_owned();
        *request.uri_mut() = format!("{path}?limt=1").parse().unwrap();
        let told = stage.send(request).await;
        assert_eq!(told.status, 400, "{}", route.path);
        assert_eq!(told.json()["key"], "limt", "{}", route.path);
    }
    let told = stage.get("/v1/hosts?limt=1").await.json();
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("the nearest is `limit`"), "{detail}");
}
