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
        let problem = Problem::new(Kind::BadBody, sentence(&inner));
        let problem = problem.at_line(u64::try_from(inner.line()).unwrap_or(u64::MAX).max(1));
        if path == "." || path == "?" { problem } else { problem.at_key(path) }
    })?;
    reader.end().map_err(|fault| {
        let line = u64::try_from(fault.line()).unwrap_or(u64::MAX).max(1);
        Problem::new(Kind::BadBody, sentence(&fault)).at_line(line)
    })?;
    Ok(value)
}

/// Names of types in the words of the deserializer, and in those of people.
const WANTED: [(&str, &str); 10] = [
    ("f64", "a number"),
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number that is not negative"),
    ("usize", "a whole number that is not negative"),
    ("a boolean", "`true` or `false`"),
    ("a string", "text"),
    ("a sequence", "a list"),
    ("a map", "an object"),
];

/// What is wrong, without the place, which the problem has as a field: what was wanted, what was
/// found. Other faults are told in the words of the deserializer.
fn sentence(fault: &serde_json::Error) -> String {
    let told = fault.to_string();
    let place = format!(" at line {} column {}", fault.line(), fault.column());
    let told = told.strip_suffix(&place).unwrap_or(&told);
    let stripped =
        told.strip_prefix("invalid type: ").or_else(|| told.strip_prefix("invalid value: "));
    let Some((found, wanted)) = stripped.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return told.to_owned();
    };
    let known = WANTED.iter().find(|(name, _)| *name == wanted).map(|(_, words)| *words);
    let wanted = match known {
        Some(words) => words,
        None if wanted.starts_with("struct ") => "an object",
        None => wanted,
    };
    let found = match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "floating", rest)) => {
            rest.trim_start_matches("point ").trim_matches('`').to_owned()
        }
        Some(("boolean", value)) => value.to_owned(),
        Some(_) | None => found.replace("sequence", "a list").replace("map", "an object"),
    };
    format!("wanted {wanted}, found {found}")
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

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "what is read is not looked at")]
    struct Fields {
        number: Option<f64>,
        whole: Option<u16>,
        is_so: Option<bool>,
        text: Option<String>,
        list: Option<Vec<String>>,
        inner: Option<Order>,
    }

    #[test]
    fn what_is_wrong_is_a_sentence_with_its_key() {
        for (given, said, key) in [
            (r#"{"number": "5s"}"#, r#"wanted a number, found the text "5s""#, Some("number")),
            (r#"{"whole": -1}"#, "wanted a whole number from 0 to 65535, found -1", Some("whole")),
            (
                r#"{"whole": 1.5}"#,
                "wanted a whole number from 0 to 65535, found 1.5",
                Some("whole"),
            ),
            (r#"{"is_so": 1}"#, "wanted `true` or `false`, found 1", Some("is_so")),
            (r#"{"text": true}"#, "wanted text, found `true`", Some("text")),
            (r#"{"list": {}}"#, "wanted a list, found an object", Some("list")),
            (r#"{"list": ["a", []]}"#, "wanted text, found a list", Some("list[1]")),
            (r#"{"inner": "x"}"#, r#"wanted an object, found the text "x""#, Some("inner")),
            (
                r#"{"other": 1}"#,
                "unknown field `other`, expected one of `number`, `whole`, `is_so`, `text`, \
                 `list`, `inner`",
                Some("other"),
            ),
            (r#"{"text": "x""#, "EOF while parsing an object", None),
            (r#"{} {}"#, "trailing characters", None),
        ] {
            let problem = json::<Fields>(given.as_bytes()).map(drop).unwrap_err();
            let expected = Problem::new(Kind::BadBody, said).at_line(1);
            let expected = match key {
                Some(key) => expected.at_key(key),
                None => expected,
            };
            assert_eq!(problem, expected, "{given}");
        }
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
