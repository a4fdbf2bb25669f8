//! H1, O1: answers of odd servers, from the vectors of other projects in `tests/data/http`.
//!
//! Every vector is run that speaks of one exchange: a GET of ours and its answer. Where we read it
//! otherwise, it stands in `docs/http-disagreements.md` with both readings and the reason: a new
//! difference fails, and so does one that has gone.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use futures::{StreamExt, stream};
use mehman::types::{Outcome, header};
use serde_json::Value;

use wire::{Came, Then, base64, exchange, latin};

#[path = "http_corpus/wire.rs"]
mod wire;

/// Vectors run at once; most wait for nothing, some for a limit of time.
const AT_ONCE: usize = 16;
/// A longer text is cut in the list.
const CELL_BYTES_MAX: usize = 120;
const REFUSED: &str = "refused";
const DOCUMENT: &str = "docs/http-disagreements.md";

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn corpus(name: &str, list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(&file(&format!("tests/data/http/{name}"))).unwrap();
    all[list].as_array().unwrap().clone()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// A vector that was run.
struct Vector {
    id: String,
    ours: String,
    theirs: String,
}

/// As a cell of a table in Markdown: one line, no bar, no backtick.
fn cell(text: &str) -> String {
    let plain = |c: char| c != '|' && c != '`' && (c.is_ascii_graphic() || c == ' ');
    let mut shown = String::new();
    for c in text.chars() {
        if plain(c) { shown.push(c) } else { shown.extend(c.escape_unicode()) }
    }
    match shown.get(..CELL_BYTES_MAX) {
        Some(begin) if shown.len() > CELL_BYTES_MAX => format!("{begin}... ({} bytes)", text.len()),
        Some(_) | None => shown,
    }
}

/// Rows of the table under a heading of the document, without their reasons; which must be known.
fn listed(set: &str) -> BTreeSet<[String; 3]> {
    let document = file(DOCUMENT);
    let rows = document.lines().skip_while(|line| *line != format!("## {set}")).skip(1);
    let rows = rows.take_while(|line| !line.starts_with("## "));
    let cells = |row: &str| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, ours, theirs, reason] = <[&str; 4]>::try_from(cells).ok()?;
        let quoted = |cell: &str| Some(cell.strip_prefix("` ")?.strip_suffix(" `")?.to_owned());
        let row = [id.trim_matches('`').to_owned(), quoted(ours)?, quoted(theirs)?];
        assert!(document.contains(&format!("\n| {reason} | ")), "{id}: no such reason: {reason}");
        Some(row)
    };
    rows.filter_map(cells).collect()
}

/// Every difference is listed, and everything listed is one; as many were run as is said.
fn agree(set: &str, vectors: &[Vector]) {
    let differ = vectors.iter().filter(|vector| vector.ours != vector.theirs);
    let cells = |vector: &Vector| [cell(&vector.id), cell(&vector.ours), cell(&vector.theirs)];
    let found: BTreeSet<[String; 3]> = differ.map(cells).collect();
    let listed = listed(set);
    let show = |rows: Vec<&[String; 3]>| {
        let row = |[id, ours, theirs]: &[String; 3]| {
            format!("| `{id}` | ` {ours} ` | ` {theirs} ` | `` |\n")
        };
        rows.into_iter().map(row).collect::<String>()
    };
    let new = show(found.difference(&listed).collect());
    let gone = show(listed.difference(&found).collect());
    assert!(new.is_empty() && gone.is_empty(), "\n## {set}\n{new}gone:\n{gone}");
    let counted = format!("| `{set}` | {} | {} |", vectors.len(), found.len());
    assert!(file(DOCUMENT).contains(&counted), "{DOCUMENT} has to say: {counted}");
}

/// Runs them side by side, in order.
async fn run_all<F: Future<Output = Option<Vector>>>(runs: impl Iterator<Item = F>) -> Vec<Vector> {
    stream::iter(runs).buffered(AT_ONCE).filter_map(std::future::ready).collect().await
}

fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Where a head ends.
fn after_head(bytes: &[u8]) -> Option<usize> {
    let ends = [&b"\r\n\r\n"[..], b"\n\n", b"\n\r\n"];
    let at = |end: &&[u8]| memchr::memmem::find(bytes, end).map(|at| at + end.len());
    ends.iter().filter_map(at).min()
}

fn headers_of(pairs: &Value) -> String {
    let pair = |pair: &Value| {
        format!("{}: {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap().trim())
    };
    pairs
        .as_array()
        .map(|pairs| pairs.iter().map(pair).collect::<Vec<_>>().join("; "))
        .unwrap_or_default()
}

fn headers_got(came: &Came) -> String {
    let Came::Response(got, _) = came else { return REFUSED.to_owned() };
    let pair = |(name, value): &(String, bytes::Bytes)| {
        format!("{name}: {}", String::from_utf8_lossy(value))
    };
    got.headers.iter().map(pair).collect::<Vec<_>>().join("; ")
}

/// llhttp tells heads, bodies and errors as it goes on; here the first answer counts, and after an
/// error behind it whether its connection was left.
async fn llhttp(case: &Value) -> Option<Vector> {
    // An answer to HEAD.
    if case["skip_body"] == true {
        return None;
    }
    let mut bytes = match case["bytes"]["text"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => base64(text(&case["bytes"], "b64")),
    };
    // The corpus has lost the last line end of what ends with a head.
    if after_head(&bytes).is_none() && text(case, "outcome") == "ok" {
        bytes.extend_from_slice(b"\r\n");
    }
    let statuses: Vec<u64> =
        case["statuses"].as_array()?.iter().filter_map(Value::as_u64).collect();
    let last = statuses.iter().position(|status| *status >= 200).unwrap_or(0);
    let complete = case["messages_complete"].as_u64()?.min(1);
    let is_error = text(case, "outcome") == "error";
    let came = exchange(bytes, Then::Close).await;
    let theirs = match statuses.get(last) {
        Some(status) if !is_error || complete > 0 => {
            format!("{status} {}", headers_of(&case["headers_seen"]))
        }
        _ => REFUSED.to_owned(),
    };
    let ours = match &came {
        Came::Failed(_) => REFUSED.to_owned(),
        Came::Response(got, is_kept) if is_error && (*is_kept || got.truncated.is_some()) => {
            if *is_kept {
                "kept".to_owned()
            } else {
                REFUSED.to_owned()
            }
        }
        Came::Response(got, _) => format!("{} {}", got.status, headers_got(&came)),
    };
    // Of several answers the vector has all headers and bodies in one.
    let several = statuses.len() > last + 1;
    let begins = format!("{} ", statuses.get(last).unwrap_or(&0));
    let is_same = |ours: &str, theirs: &str| match ours.strip_prefix(&begins) {
        Some(headers) if last > 0 => theirs.ends_with(headers),
        _ if several => theirs.starts_with(ours),
        _ => ours == theirs,
    };
    let body = match &came {
        Came::Response(got, _) if theirs != REFUSED => escaped(&got.body),
        Came::Response(..) | Came::Failed(_) => String::new(),
    };
    let expected =
        if theirs == REFUSED { String::new() } else { escaped(text(case, "body").as_bytes()) };
    let is_whole = complete == 0 || theirs == REFUSED || came.whole().is_some();
    let agrees = is_same(&ours, &theirs) && is_same(&body, &expected) && is_whole;
    let theirs = format!("{theirs} / {expected}");
    let ours = if agrees { theirs.clone() } else { format!("{ours} / {body}") };
    Some(Vector { id: text(case, "id").to_owned(), ours, theirs })
}

/// httparse reads heads alone: strictly, or with one of its lenient options.
async fn httparse(case: &Value) -> Option<Vector> {
    let came = exchange(latin(text(case, "bytes")), Then::Close).await;
    let ours = match &came {
        Came::Response(..) if case["headers_when_ok"].is_array() => headers_got(&came),
        Came::Response(..) => "read".to_owned(),
        Came::Failed(_) => REFUSED.to_owned(),
    };
    let verdict = |key: &str| match text(case, key) {
        "" => None,
        "ok" if case["headers_when_ok"].is_array() => Some(headers_of(&case["headers_when_ok"])),
        "ok" => Some("read".to_owned()),
        _ => Some(REFUSED.to_owned()),
    };
    let verdicts = [verdict("strict"), verdict("lenient")];
    let theirs = verdicts.iter().flatten().find(|verdict| **verdict == ours);
    let theirs = theirs.or(verdicts.iter().flatten().next())?.clone();
    Some(Vector { id: text(case, "id").to_owned(), ours, theirs })
}

/// A chunk of the size that its line gives, where so much is taken.
async fn chunk_size(case: &Value) -> Option<Vector> {
    let bytes = latin(text(case, "bytes"));
    let behind = memchr::memchr(b'\n', &bytes).map_or(0, |at| bytes.len() - at - 1);
    let size = case["size"].as_u64().filter(|size| *size < 1 << 20);
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    answer.extend_from_slice(&bytes);
    if let Some(size) = size {
        answer.resize(answer.len() + usize::try_from(size).unwrap() - behind, b'x');
        answer.extend_from_slice(if size == 0 { &b"\r\n"[..] } else { b"\r\n0\r\n\r\n" });
    }
    let came = exchange(answer, Then::Close).await;
    let Came::Response(got, _) = &came else { panic!("the head is sound") };
    let why = got.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    let ours = match (size, got.truncated) {
        (Some(_), None) => got.body.len().to_string(),
        _ if why.contains("size") => "error".to_owned(),
        _ if size.is_none() && case["size"] == "incomplete" => "incomplete".to_owned(),
        _ if size.is_none() => "taken".to_owned(),
        _ => why,
    };
    let theirs = match (&case["size"], size) {
        (_, Some(size)) => size.to_string(),
        (Value::String(word), _) if word == "error" || word == "incomplete" => word.clone(),
        _ => "taken".to_owned(),
    };
    Some(Vector { id: text(case, "bytes").escape_debug().to_string(), ours, theirs })
}

/// Options after which curl does more, or less, than read one answer to a GET.
const OTHER_OPTIONS: [&str; 10] = [
    "-I",
    "--head",
    "--raw",
    "--ignore-content-length",
    "--tr-encoding",
    "--max-filesize",
    "-z",
    "-C",
    "--continue-at",
    "--http0.9",
];
/// Exit codes that speak of the answer: no HTTP, bad framing, cut short, nothing, too large.
const REFUSALS: [u64; 7] = [1, 8, 18, 52, 56, 61, 100];

/// One response of curl's test, by what curl made of the whole run.
async fn curl(case: &Value, at: usize) -> Option<Vector> {
    let options = case["options"].as_array()?;
    let has = |name: &str| options.iter().any(|option| option[0] == name);
    if OTHER_OPTIONS.iter().any(|name| has(name)) {
        return None;
    }
    let responses = case["server_responses"].as_array()?;
    let response = &responses[at];
    let bytes = bytes_of(response);
    let is_last = at + 1 == responses.len();
    let exit = case["expected"]["curl_exit"].as_u64()?;
    let is_coded = memchr::memmem::find(&bytes, b"Content-Encoding").is_some();
    let is_refused = is_last && REFUSALS.contains(&exit);
    // Refused for its target or its content coding, or by an option: none of which we ask here.
    let by_target = is_refused && (has("-L") || is_coded);
    if by_target || !is_last && has("--retry") || is_last && exit != 0 && !is_refused {
        return None;
    }
    let came = exchange(bytes.clone(), Then::Close).await;
    let received =
        match (&case["expected"]["received"], case["expected"]["received"]["text"].as_str()) {
            (Value::Null, _) => bytes.clone(),
            (_, Some(text)) => text.as_bytes().to_vec(),
            (other, None) => bytes_of(other),
        };
    let body = body_shown(&came, &received);
    // Of a redirect curl shows no body, with --compressed it shows another, into a file it shows
    // nothing.
    let is_chunked = memchr::memmem::find(&bytes, b"Transfer-Encoding: chunked").is_some();
    let is_shown = !case["expected"]["received"].is_null() || !is_chunked;
    let theirs = match (is_refused, body) {
        (true, _) => REFUSED.to_owned(),
        (false, Some(body)) if is_shown && !is_coded && responses.len() == 1 => {
            format!("whole: {}", escaped(&body))
        }
        (false, _) => "whole".to_owned(),
    };
    let ours = match came.whole() {
        None => REFUSED.to_owned(),
        Some(got) if theirs.starts_with("whole: ") => format!("whole: {}", escaped(&got.body)),
        Some(_) => "whole".to_owned(),
    };
    Some(Vector { id: format!("{}-{}", text(case, "id"), text(response, "part")), ours, theirs })
}

/// The body of the last response that curl shows. Trailers follow it, which are no part of it.
fn body_shown(came: &Came, received: &[u8]) -> Option<Vec<u8>> {
    let got = came.whole()?;
    let from = memchr::memmem::rfind(received, got.status_line.as_ref()?)?;
    let body = &received[from + after_head(&received[from..])?..];
    let rest = body.strip_prefix(got.body.as_ref()).unwrap_or_default();
    let is_trailer = |line: &[u8]| line.trim_ascii().is_empty() || line.contains(&b':');
    let has_trailers = !rest.is_empty() && rest.split(|byte| *byte == b'\n').all(is_trailer);
    Some(if has_trailers { got.body.to_vec() } else { body.to_vec() })
}

fn bytes_of(item: &Value) -> Vec<u8> {
    if let Some(text) = item["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(text) = item["b64"].as_str() {
        return base64(text);
    }
    let packed = base64(text(item, "gzip_b64"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Bytes of an oddity; `None` where they are told in words that no machine reads.
fn oddity_bytes(told: &str) -> Option<Vec<u8>> {
    let Some((begin, rest)) = told.split_once("\u{2026}(") else {
        return (!told.starts_with('(')).then(|| latin(told));
    };
    let (what, end) = rest.split_once(')')?;
    let (count, what) = what.split_once(' ')?;
    let count: usize = count.parse().ok()?;
    let middle = match what.strip_prefix("x \"") {
        Some(repeated) => repeated.trim_end_matches('"').repeat(count),
        None => (2..=count).map(|number| format!("X-{number}: v\r\n")).collect(),
    };
    Some(latin(&[begin, &middle, end].concat()))
}

fn oddity_then(bytes: &[u8], after: &str) -> Then {
    match after {
        "TCP RST" => Then::Reset,
        "repeat for ever" => Then::Repeat(bytes.to_vec()),
        "endless bytes" => Then::Repeat(vec![b'x'; 1000]),
        _ if after.contains("10000 bytes") => {
            Then::Repeat([b"2710\r\n", vec![b'x'; 10_000].as_slice(), b"\r\n"].concat())
        }
        _ if after.starts_with("send") => Then::Repeat(b"X: y\r\n".to_vec()),
        _ if after.starts_with("keep open") => Then::Hold,
        _ => Then::Close,
    }
}

/// Oddities of more than one exchange are judged by it alone: whether the answer is read whole.
async fn oddity(case: &Value) -> Option<Vector> {
    let bytes =
        oddity_bytes(text(case, "bytes")).filter(|_| text(case, "id") != "head-with-body")?;
    let then = oddity_then(&bytes, text(case, "after"));
    let came = exchange(bytes, then).await;
    let expect = &case["expect"];
    let is_of_exchange =
        ["status-line", "headers", "framing", "timing"].contains(&text(case, "group"));
    let told = text(expect, "outcome");
    let theirs = match told {
        "error" | "error-or-first" | "redirect" | "not-modified" | "retry-later"
        | "redirect-or-page"
            if !is_of_exchange || told != "error" =>
        {
            "page"
        }
        told if told.starts_with("robots") => "page",
        // Content coding is not undone here.
        _ if text(case, "group") == "encoding" => "page",
        told => told,
    };
    let mut ours = match (came.whole().map(|got| got.status), came.kind()) {
        // What fetch::classify makes of answers to what was not asked.
        (Some(206 | 304), _) => "error".to_owned(),
        (_, kind) => kind.to_owned(),
    };
    if theirs.split("-or-").any(|one| one == ours) || theirs == "truncated" && ours == "limit" {
        ours = theirs.to_owned();
    }
    if let Some(got) = came.whole() {
        let body = expect["body"].as_str().filter(|_| text(case, "group") != "encoding");
        if let Some(body) = body.filter(|body| latin(body) != got.body) {
            ours = format!("{ours} with another body than {body}: {}", escaped(&got.body));
        }
        if expect["status"].as_u64().is_some_and(|status| status != u64::from(got.status)) {
            ours = format!("{ours} {}", got.status);
        }
        for (name, value) in expect["headers"].as_object().into_iter().flatten() {
            if header(&got.headers, name) != value.as_str() {
                ours = format!("{ours} with another {name}");
            }
        }
    }
    Some(Vector { id: text(case, "id").to_owned(), ours, theirs: theirs.to_owned() })
}

#[tokio::test]
async fn answers_are_read_as_llhttp_reads_them_but_for_the_list() {
    let cases = corpus("llhttp_responses.json", "cases");
    agree("llhttp_responses.json", &run_all(cases.iter().map(llhttp)).await);
}

#[tokio::test]
async fn heads_are_read_as_httparse_reads_them_but_for_the_list() {
    let cases = corpus("httparse_responses.json", "responses");
    agree("httparse_responses.json", &run_all(cases.iter().map(httparse)).await);
    let sizes = corpus("httparse_responses.json", "chunk_sizes");
    agree("httparse_responses.json, chunk sizes", &run_all(sizes.iter().map(chunk_size)).await);
}

#[tokio::test]
async fn answers_are_read_as_curl_reads_them_but_for_the_list() {
    let cases = corpus("curl_http_vectors.json", "cases");
    let count = |case: &Value| case["server_responses"].as_array().map_or(0, Vec::len);
    let each = cases.iter().flat_map(|case| (0..count(case)).map(move |at| curl(case, at)));
    agree("curl_http_vectors.json", &run_all(each).await);
}

#[tokio::test]
async fn oddities_are_taken_as_is_asked_for_but_for_the_list() {
    let cases = corpus("oddities.json", "cases");
    agree("oddities.json", &run_all(cases.iter().map(oddity)).await);
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_no_more_than_its_limit() {
    let came = exchange(Vec::new(), Then::Hold).await;
    assert!(matches!(came, Came::Failed(Outcome::Timeout)));
}
