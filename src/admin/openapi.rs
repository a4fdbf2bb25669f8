//! `GET /openapi.json`: the table of routes as OpenAPI 3.1.

use axum::Json;
use axum::response::IntoResponse as _;
use serde_json::{Map, Value, json};

use super::auth::Access;
use super::problem::PROBLEM_JSON;
use super::router::{Call, Handled, Route, Takes, paths};
use super::routes::ROUTES;
use super::schemas::schemas;

/// `GET /openapi.json`.
pub(super) fn show(call: &Call) -> Handled {
    Ok(Json(document(&call.state.settings.version)).into_response())
}

/// The whole description.
pub(super) fn document(version: &str) -> Value {
    let described: Map<String, Value> =
        paths().into_iter().map(|path| (path.to_owned(), operations(path))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mehman, admin interface",
            "version": version,
            "description": "Times are RFC 3339 in UTC with milliseconds, durations seconds, ids \
                lower-case hexadecimal digits.",
        },
        "paths": described,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operations(path: &str) -> Value {
    let here = ROUTES.iter().filter(|route| route.path == path);
    here.map(|route| (route.verb.name().to_ascii_lowercase(), operation(route))).collect()
}

fn operation(route: &Route) -> Value {
    let mut told = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters(route),
        "security": match route.access {
            Access::Open => json!([]),
            Access::Token => json!([{ "token": [] }]),
        },
        "responses": {
            route.answers.status.to_string(): {
                "description": "all is well",
                "content": content(route.answers.media, route.answers.schema),
            },
            "default": {
                "description": "a refusal or a failure",
                "content": content(PROBLEM_JSON, "Problem"),
            },
        },
    });
    if let (Some(fields), false) = (told.as_object_mut(), route.takes.is_empty()) {
        fields.insert("requestBody".to_owned(), body(route.takes));
    }
    told
}

/// `get_v1_hosts_host_key`: unique, since no route stands twice.
fn operation_id(route: &Route) -> String {
    let words = route.path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    let verb = route.verb.name().to_ascii_lowercase();
    std::iter::once(verb.as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(route: &Route) -> Vec<Value> {
    let argument = route.path.split_once('{').map(|(_, name)| {
        json!({
            "name": name.trim_end_matches('}'),
            "in": "path",
            "required": true,
            "schema": { "type": "string" },
            "description": argument_help(name.trim_end_matches('}')),
        })
    });
    let query = route.query.iter().map(|parameter| {
        json!({
            "name": parameter.name,
            "in": "query",
            "required": parameter.required,
            "schema": { "type": parameter.kind },
            "description": parameter.help,
        })
    });
    argument.into_iter().chain(query).collect()
}

fn argument_help(name: &str) -> &'static str {
    match name {
        "host_key" => "percent-encoded; a bare host name is tried as https, then http",
        _ => "as the list gives it",
    }
}

fn body(takes: &[Takes]) -> Value {
    let content: Map<String, Value> =
        takes.iter().map(|taken| (taken.media.to_owned(), media(taken.schema))).collect();
    json!({ "content": content })
}

fn content(kind: &str, schema: &str) -> Value {
    json!({ kind: media(schema) })
}

fn media(schema: &str) -> Value {
    if schema.is_empty() {
        json!({ "schema": { "type": "string" } })
    } else {
        json!({ "schema": { "$ref": format!("#/components/schemas/{schema}") } })
    }
}
