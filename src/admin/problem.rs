//! Refusals and failures as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::state::Silence;

/// The media type of a problem.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// Seconds after which a request that met a shard on its way may be tried again.
const RETRY_AFTER: &str = "1";

/// What kind of problem: the closed list behind `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A query parameter nobody knows, or twice the same, or a bad value.
    BadParameter,
    /// A cursor that none of our answers gave.
    BadCursor,
    /// The body is not what the route takes.
    BadBody,
    /// The body has a media type the route does not take.
    BadMediaType,
    /// The body is longer than the route takes, or came too slowly.
    BodyTooLarge,
    /// The body came too slowly.
    BodyTooSlow,
    /// No token, or a wrong one.
    Unauthorized,
    /// A web page of somebody else sent this request.
    ForeignOrigin,
    /// No such route.
    NoRoute,
    /// The route has other methods.
    NoMethod,
    /// Not known here.
    NotFound,
    /// What the cursor points at has aged out.
    Expired,
    /// It does not go with what is under way.
    Conflict,
    /// The new configuration has faults.
    BadConfiguration,
    /// An actor that is needed is not there or does not answer.
    Unavailable,
}

impl Kind {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::BadParameter => {
                (StatusCode::BAD_REQUEST, "bad-parameter", "a query parameter is not right")
            }
            Self::BadCursor => (StatusCode::BAD_REQUEST, "bad-cursor", "the cursor is not one"),
            Self::BadBody => (StatusCode::BAD_REQUEST, "bad-body", "the body is not right"),
            Self::BadMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "bad-media-type",
                "the body has a media type that is not taken here",
            ),
            Self::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "the body is too large")
            }
            Self::BodyTooSlow => {
                (StatusCode::REQUEST_TIMEOUT, "body-too-slow", "the body came too slowly")
            }
            Self::Unauthorized => {
                (StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed here")
            }
            Self::ForeignOrigin => {
                (StatusCode::FORBIDDEN, "foreign-origin", "the request comes from elsewhere")
            }
            Self::NoRoute => (StatusCode::NOT_FOUND, "no-route", "there is no such route"),
            Self::NoMethod => {
                (StatusCode::METHOD_NOT_ALLOWED, "no-method", "the route has other methods")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "not known here"),
            Self::Expired => (StatusCode::GONE, "expired", "what the cursor points at is gone"),
            Self::Conflict => {
                (StatusCode::CONFLICT, "conflict", "something under way is in the way")
            }
            Self::BadConfiguration => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "bad-configuration",
                "the new configuration has faults",
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "a part of the crawler does not answer",
            ),
        }
    }
}

/// A refusal or a failure, with what is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    kind: Kind,
    detail: String,
    key: Option<String>,
    line: Option<u64>,
    allow: Option<String>,
}

impl Problem {
    /// A problem in one sentence.
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), key: None, line: None, allow: None }
    }

    /// A shard, an archive, the node: not there or too late.
    pub(super) fn silent(who: &str, silence: Silence) -> Self {
        Self::new(Kind::Unavailable, format!("{who} {}", silence.words()))
    }

    /// Which parameter or field is at fault.
    pub(super) fn at_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Which line is at fault, from 1.
    pub(super) fn at_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    /// Which methods there are.
    pub(super) fn allowing(mut self, methods: String) -> Self {
        self.allow = Some(methods);
        self
    }

    /// The sentence.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, slug, title) = self.kind.parts();
        let mut told = json!({
            "type": format!("urn:mehman:problem:{slug}"),
            "title": title,
            "status": status.as_u16(),
            "detail": self.detail,
        });
        if let Some(fields) = told.as_object_mut() {
            fields.extend(self.key.map(|key| ("key".to_owned(), json!(key))));
            fields.extend(self.line.map(|line| ("line".to_owned(), json!(line))));
        }
        let mut response = Response::new(Body::from(told.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        match self.kind {
            Kind::Unauthorized => {
                let offer = HeaderValue::from_static("Bearer, Basic realm=\"mehman\"");
                headers.insert(header::WWW_AUTHENTICATE, offer);
            }
            Kind::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
            }
            Kind::NoMethod
            | Kind::BadParameter
            | Kind::BadCursor
            | Kind::BadBody
            | Kind::BadMediaType
            | Kind::BodyTooLarge
            | Kind::BodyTooSlow
            | Kind::ForeignOrigin
            | Kind::NoRoute
            | Kind::NotFound
            | Kind::Expired
            | Kind::Conflict
            | Kind::BadConfiguration => {}
        }
        if let Some(allow) = self.allow.and_then(|methods| HeaderValue::from_str(&methods).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_problem_names_what_is_at_fault() {
        let problem = Problem::new(Kind::BadBody, "no").at_key("urls[2].url").at_line(7);
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        let told: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            told,
            json!({
                "type": "urn:mehman:problem:bad-body",
                "title": "the body is not right",
                "status": 400,
                "detail": "no",
                "key": "urls[2].url",
                "line": 7,
            })
        );
    }
}
