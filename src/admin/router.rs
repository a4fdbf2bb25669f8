//! From the one table of routes: the router, and the answers where no route fits.
//!
//! Every request passes the same three doors before its handler: who may, which parameters, and the
//! clock that measures it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter};
use futures::future::BoxFuture;
use percent_encoding::percent_decode_str;

use super::auth::{self, Access};
use super::problem::{Kind, Problem};
use super::query::{Parameter, Query};
use super::routes::ROUTES;
use super::state::AdminState;
use crate::telemetry::{Counter, Histogram};

/// What pages may load: nothing from elsewhere, and only data from here.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
    'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// What a handler returns.
pub(super) type Handled = Result<Response, Problem>;

/// What a handler is.
pub(super) type Handler = fn(Call) -> BoxFuture<'static, Handled>;

/// The methods there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Asks; HEAD is answered, too.
    Get,
    /// Orders.
    Post,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

/// A body that a route takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takes {
    /// Its media type.
    pub(super) media: &'static str,
    /// The name of its schema; empty for plain text.
    pub(super) schema: &'static str,
}

/// What a route answers when all is well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    /// The status.
    pub(super) status: u16,
    /// The media type.
    pub(super) media: &'static str,
    /// The name of the schema; empty for text and pages.
    pub(super) schema: &'static str,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct Route {
    /// The method.
    pub(super) verb: Verb,
    /// The path; a part in braces, always the last one, is percent-decoded.
    pub(super) path: &'static str,
    /// Who may.
    pub(super) access: Access,
    /// One phrase for the description.
    pub(super) summary: &'static str,
    /// The parameters it takes.
    pub(super) query: &'static [Parameter],
    /// The bodies it takes.
    pub(super) takes: &'static [Takes],
    /// Its answer.
    pub(super) answers: Answers,
    /// What it does.
    pub(super) handler: Handler,
}

/// A request on its way to a handler.
#[derive(Debug)]
pub(super) struct Call {
    /// Whom it may ask.
    pub(super) state: AdminState,
    /// The decoded part of the path in braces.
    pub(super) argument: Option<String>,
    /// The checked parameters.
    pub(super) query: Query,
    /// The headers.
    pub(super) headers: HeaderMap,
    /// The body, not yet read.
    pub(super) body: Body,
}

impl Call {
    /// The decoded part of the path in braces.
    pub(super) fn argument(&self) -> &str {
        self.argument.as_deref().unwrap_or_default()
    }
}

impl Verb {
    /// The name in requests.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Patch => MethodFilter::PATCH,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// The router of the admin interface.
pub fn router(state: AdminState) -> Router {
    let mut router = Router::new();
    for path in paths() {
        let mut methods = MethodRouter::new().fallback(no_method);
        for route in ROUTES.iter().filter(|route| route.path == path) {
            let answer = move |State(state): State<AdminState>, request: Request| {
                answer(route, state, request)
            };
            methods = methods.on(route.verb.filter(), answer);
        }
        router = router.route(path, methods);
    }
    router.fallback(no_route).with_state(state)
}

/// Every path once, in the order of the table.
pub(super) fn paths() -> Vec<&'static str> {
    let mut paths = Vec::new();
    for route in ROUTES {
        if !paths.contains(&route.path) {
            paths.push(route.path);
        }
    }
    paths
}

async fn answer(route: &'static Route, state: AdminState, request: Request) -> Response {
    let began = state.clock.now();
    let (clock, metrics) = (Arc::clone(&state.clock), Arc::clone(&state.metrics));
    let handled = match prepare(route, state, request) {
        Ok(call) => (route.handler)(call).await,
        Err(problem) => Err(problem),
    };
    metrics.observe(Histogram::AdminRequest, clock.now().since(began));
    finish(handled)
}

/// Who may, and with which parameters.
fn prepare(route: &'static Route, state: AdminState, request: Request) -> Result<Call, Problem> {
    let (head, body) = request.into_parts();
    admit(route.access, &state, &head.method, &head.headers)?;
    let query = Query::parse(head.uri.query(), route.query)?;
    let argument = argument(route.path, head.uri.path())?;
    Ok(Call { state, argument, query, headers: head.headers, body })
}

fn admit(
    access: Access,
    state: &AdminState,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), Problem> {
    auth::admit(access, method, headers, &state.settings)
        .inspect_err(|_refused| state.metrics.add(Counter::AdminRefusals, 1))
}

/// The part of a path that the route has in braces.
fn argument(pattern: &str, path: &str) -> Result<Option<String>, Problem> {
    let Some((before, _)) = pattern.split_once('{') else { return Ok(None) };
    let encoded = path.strip_prefix(before).unwrap_or_default();
    let decoded = percent_decode_str(encoded).decode_utf8().map_err(|_not_utf8| {
        Problem::new(Kind::NotFound, format!("`{encoded}` is not UTF-8 when it is decoded"))
    })?;
    Ok(Some(decoded.into_owned()))
}

async fn no_method(State(state): State<AdminState>, request: Request) -> Response {
    let path = request.uri().path();
    let here = ROUTES.iter().filter(|route| fits(route.path, path));
    let names: Vec<&str> = here.map(|route| route.verb.name()).collect();
    let problem = Problem::new(
        Kind::NoMethod,
        format!("`{}` is not one of {}", request.method(), names.join(", ")),
    );
    refuse(&state, &request, problem.allowing(names.join(", ")))
}

async fn no_route(State(state): State<AdminState>, request: Request) -> Response {
    let path = request.uri().path();
    let detail = if path.starts_with("/v1/hosts/") {
        "a host key in a path is percent-encoded: `https%3A%2F%2Fexample.com`"
    } else {
        "the routes are described at /openapi.json"
    };
    refuse(&state, &request, Problem::new(Kind::NoRoute, detail))
}

/// Tells only those who may ask that there is nothing.
fn refuse(state: &AdminState, request: &Request, problem: Problem) -> Response {
    let admitted = admit(Access::Token, state, request.method(), request.headers());
    finish(admitted.and(Err(problem)))
}

/// Whether a path is one of a pattern's.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('{') {
        None => pattern == path,
        Some((before, _)) => path.strip_prefix(before).is_some_and(|rest| !rest.contains('/')),
    }
}

/// Headers that every answer has.
fn finish(handled: Handled) -> Response {
    let mut response = handled.unwrap_or_else(|problem| problem.into_response());
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_of_a_path_is_decoded() {
        let of = |path| argument("/v1/hosts/{host_key}", path).unwrap();
        assert_eq!(of("/v1/hosts/https%3A%2F%2Fa.test"), Some("https://a.test".to_owned()));
        assert_eq!(of("/v1/hosts/a.test:81"), Some("a.test:81".to_owned()));
        assert!(argument("/v1/hosts/{host_key}", "/v1/hosts/%ff").is_err());
        assert_eq!(argument("/v1/status", "/v1/status").unwrap(), None);
    }

    #[test]
    fn no_route_stands_twice() {
        let mut seen = Vec::new();
        for route in ROUTES {
            assert!(!seen.contains(&(route.verb.name(), route.path)), "{}", route.path);
            seen.push((route.verb.name(), route.path));
        }
    }
}
