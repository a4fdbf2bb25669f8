//! Bodies of requests: bounded in size and time, refused with field and line.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::problem::{Kind, Problem};
use super::state::AdminState;

/// A body that carries an order, in bytes.
pub(super) const ORDER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A body must have come by then.
const BODY_DEADLINE: Duration = Duration::from_secs(60);

/// Reads a whole body.
pub(super) async fn read(state: &AdminState, body: Body, max: usize) -> Result<Bytes, Problem> {
    let whole = state.within(BODY_DEADLINE, Limited::new(body, max).collect()).await;
    let collected = whole.map_err(|_late| {
        let seconds = BODY_DEADLINE.as_secs();
        Problem::new(Kind::BodyTooSlow, format!("the body did not come within {seconds} s"))
    })?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(why) if why.is::<LengthLimitError>() => {
            Err(Problem::new(Kind::BodyTooLarge, format!("at most {max} bytes are taken")))
        }
        Err(why) => Err(Problem::new(Kind::BadBody, format!("the body broke off: {why}"))),
    }
}

/// Reads an order: a JSON object; none at all counts as an empty one.
pub(super) async fn order<T: DeserializeOwned>(
    state: &AdminState,
    body: Body,
) -> Result<T, Problem> {
    let bytes = read(state, body, ORDER_BYTES_MAX).await?;
    let given = if bytes.trim_ascii().is_empty() { Bytes::from_static(b"{}") } else { bytes };
    json(&given)
}

/// Reads a JSON object; what is wrong is named by field and line.
pub(super) fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be taken for an object's fields in their order.
    if let Some(found) = not_an_object(bytes) {
        let detail = format!("wanted a JSON object, `{{…}}`, found {found}");
        return Err(Problem::new(Kind::BadBody, detail).at_line(1));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|fault| {
        let path = fault.path().to_string();
        let inner = fault.into_inner();
        let problem = Problem::new(Kind::BadBody, inner.to_string());
        let problem = problem.at_line(u64::try_from(inner.line()).unwrap_or(u64::MAX).max(1));
        if path == "." || path == "?" { problem } else { problem.at_key(path) }
    })?;
    reader.end().map_err(|fault| {
        let line = u64::try_from(fault.line()).unwrap_or(u64::MAX).max(1);
        Problem::new(Kind::BadBody, fault.to_string()).at_line(line)
    })?;
    Ok(value)
}

/// What a text begins with that is JSON and no object.
fn not_an_object(bytes: &[u8]) -> Option<&'static str> {
    match bytes.trim_ascii_start().first()? {
        b'[' => Some("a list"),
        b'"' => Some("text"),
        b'-' | b'0'..=b'9' => Some("a number"),
        b't' => Some("`true`"),
        b'f' => Some("`false`"),
        b'n' => Some("`null`"),
        _ => None,
    }
}

/// The media type of a body, without parameters, in lower case.
pub(super) fn media_type(headers: &axum::http::HeaderMap) -> Option<String> {
    let text = headers.get(axum::http::header::CONTENT_TYPE)?.to_str().ok()?;
    let (kind, _) = text.split_once(';').unwrap_or((text, ""));
    Some(kind.trim().to_ascii_lowercase()).filter(|kind| !kind.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Order {
        _first: Option<bool>,
    }

    #[test]
    fn only_an_object_is_an_order() {
        for (given, found) in
            [("[]", "a list"), (" [true]", "a list"), ("true", "`true`"), ("\"x\"", "text")]
        {
            let problem =
                json::<Order>(given.as_bytes()).map(drop).unwrap_err().detail().to_owned();
            assert!(problem.contains("wanted a JSON object"), "{problem}");
            assert!(problem.contains(found), "{given}: {problem}");
        }
        assert!(json::<Order>(b" {} ").is_ok());
        assert!(json::<BTreeMap<String, u8>>(b"{\"a\": 1}").is_ok());
    }
}
