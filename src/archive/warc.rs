//! WARC/1.1 records, byte for byte (O1).
//!
//! The HTTP block is put together from what the client hands over: the status line and the headers
//! as received, in their order and spelling, one line each, and the body as received. Chunking is
//! undone by then, so `Transfer-Encoding` is kept under the name the archive world uses for that,
//! and `Content-Length` is made right. A status line that readers may not read, and that of HTTP/2,
//! which has none, is written with the usual phrase. Nothing from a server can end a line early.

use std::fmt::Write;

use bytes::Bytes;

use super::digest::sha1_of;
use crate::types::{ContentRecord, Response, Timestamp};
use crate::world::Dice;

/// Where the record that holds the payload begins and how long it is; names that other archiving
/// software used before, so that nothing has to search an index to read a revisit's body.
pub(super) const REFERS_TO_FILE: &str = "WARC-Refers-To-Filename";
/// See [`REFERS_TO_FILE`].
pub(super) const REFERS_TO_OFFSET: &str = "WARC-Refers-To-File-Offset";
/// See [`REFERS_TO_FILE`].
pub(super) const REFERS_TO_LENGTH: &str = "WARC-Refers-To-File-Length";

/// What every file name begins with.
pub(super) const FILE_PREFIX: &str = "mehman-";

const SAME_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// What a warcinfo record says about the crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrawlerInfo {
    /// Product and version: `mehman/0.1.0`.
    pub software: String,
    /// The User-Agent that is sent.
    pub user_agent: String,
    /// How to reach the operator: a URL or an address.
    pub operator: String,
}

/// One record, in the pieces it is made of.
#[derive(Debug)]
pub(super) struct WarcRecord {
    /// The WARC header with its blank line.
    head: Vec<u8>,
    /// The block up to the body.
    block: Vec<u8>,
    /// The body as received.
    body: Bytes,
    /// The body came compressed.
    pub(super) packed: bool,
}

impl WarcRecord {
    /// The whole record, one piece after the other.
    pub(super) fn parts(&self) -> [&[u8]; 4] {
        [&self.head, &self.block, &self.body, b"\r\n\r\n"]
    }
}

/// An exchange on its way into the archive.
#[derive(Debug)]
pub(super) struct ExchangeRecords<'e> {
    /// What came.
    pub(super) response: &'e Response,
    /// The digest of the payload: of the body, or, of a 304, of what it stands for.
    pub(super) payload_digest: &'e str,
    /// The record that already holds the payload (D3, H3).
    pub(super) earlier: Option<&'e ContentRecord>,
}

impl ExchangeRecords<'_> {
    /// The request, then the response or the revisit.
    pub(super) fn build(&self, dice: &dyn Dice) -> [WarcRecord; 2] {
        let (request_id, response_id) = (record_id(dice), record_id(dice));
        let response = match self.earlier {
            None => self.response(&response_id, &request_id),
            Some(earlier) => self.revisit(earlier, &response_id, &request_id),
        };
        [self.request(&request_id, &response_id), response]
    }

    fn request(&self, id: &str, response_id: &str) -> WarcRecord {
        let block = request_block(&self.response.request_head);
        let mut head = self.head("request", id);
        head.line("WARC-Concurrent-To", response_id);
        head.line("WARC-Block-Digest", &sha1_of(&[&block]));
        head.line("Content-Type", "application/http;msgtype=request");
        head.into_record(block, Bytes::new(), false)
    }

    fn response(&self, id: &str, request_id: &str) -> WarcRecord {
        let (block, body) = (response_block(self.response), self.response.body.clone());
        // A 304 that nothing in the archive stands behind holds its own, empty payload.
        let own = (self.response.status == 304).then(|| sha1_of(&[&body]));
        let digest = own.as_deref().unwrap_or(self.payload_digest);
        let mut head = self.response_head("response", digest, id, request_id);
        head.line("WARC-Block-Digest", &sha1_of(&[&block, &body]));
        if let Some(truncated) = self.response.truncated {
            head.line("WARC-Truncated", truncated.as_str());
        }
        let packed = is_packed(self.response);
        head.into_record(block, body, packed)
    }

    fn revisit(&self, earlier: &ContentRecord, id: &str, request_id: &str) -> WarcRecord {
        let block = response_block(self.response);
        let profile = if self.response.status == 304 { NOT_MODIFIED } else { SAME_PAYLOAD };
        let mut head = self.response_head("revisit", self.payload_digest, id, request_id);
        head.line("WARC-Block-Digest", &sha1_of(&[&block]));
        head.line("WARC-Profile", profile);
        head.line("WARC-Refers-To-Target-URI", earlier.url.as_str());
        head.line("WARC-Refers-To-Date", &earlier.fetched_at.to_warc_date());
        head.line(REFERS_TO_FILE, &earlier.archive.file);
        head.line(REFERS_TO_OFFSET, &earlier.archive.offset.to_string());
        head.line(REFERS_TO_LENGTH, &earlier.archive.length.to_string());
        head.into_record(block, Bytes::new(), false)
    }

    fn response_head(&self, kind: &str, digest: &str, id: &str, request_id: &str) -> Head {
        let mut head = self.head(kind, id);
        head.line("WARC-Concurrent-To", request_id);
        head.line("WARC-Payload-Digest", digest);
        head.line("Content-Type", "application/http;msgtype=response");
        head
    }

    fn head(&self, kind: &str, id: &str) -> Head {
        let response = self.response;
        let mut head = Head::new(kind, id, response.sent_at);
        head.line("WARC-Target-URI", response.lease.entry.url.as_str());
        head.line("WARC-IP-Address", &response.address.ip().to_canonical().to_string());
        head.line("WARC-Protocol", protocol(response.protocol));
        head
    }
}

/// The record a file begins with.
pub(super) fn warcinfo(
    info: &CrawlerInfo,
    file: &str,
    at: Timestamp,
    dice: &dyn Dice,
) -> WarcRecord {
    let mut fields = Head(Vec::new());
    fields.line("software", &info.software);
    fields.line("format", "WARC File Format 1.1");
    fields.line(
        "conformsTo",
        "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
    );
    fields.line("http-header-user-agent", &info.user_agent);
    fields.line("operator", &info.operator);
    fields.line("robots", "obey");
    fields.line(
        "description",
        "HTTP blocks hold status line and headers as received, in order and case, one line each: \
         chunked transfer coding is undone, lines that are no header are left out, folded ones \
         joined, HTTP/2 is shown as HTTP/1.1 with the usual reason phrase",
    );
    let block = fields.0;
    let mut head = Head::new("warcinfo", &record_id(dice), at);
    head.line("WARC-Filename", file);
    head.line("WARC-Block-Digest", &sha1_of(&[&block]));
    head.line("Content-Type", "application/warc-fields");
    head.into_record(block, Bytes::new(), false)
}

/// Header lines under construction.
struct Head(Vec<u8>);

impl Head {
    fn new(kind: &str, id: &str, at: Timestamp) -> Self {
        let mut head = Self(b"WARC/1.1\r\n".to_vec());
        head.line("WARC-Type", kind);
        head.line("WARC-Record-ID", id);
        // Whole seconds: fractions are allowed, and not every reader takes them.
        head.line("WARC-Date", &at.to_warc_date());
        head
    }

    fn line(&mut self, name: &str, value: &str) {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b": ");
        self.0.extend(value.bytes().map(without_line_end));
        self.0.extend_from_slice(b"\r\n");
    }

    fn into_record(mut self, block: Vec<u8>, body: Bytes, packed: bool) -> WarcRecord {
        self.line("Content-Length", &(block.len() + body.len()).to_string());
        self.0.extend_from_slice(b"\r\n");
        WarcRecord { head: self.0, block, body, packed }
    }
}

/// A random UUID (version 4) as a URN in angle brackets.
pub(super) fn record_id(dice: &dyn Dice) -> String {
    let high = (dice.throw() & !0xf000) | 0x4000;
    let low = (dice.throw() >> 2) | (1 << 63);
    let mut id = String::from("<urn:uuid:");
    for (place, byte) in high.to_be_bytes().into_iter().chain(low.to_be_bytes()).enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            id.push('-');
        }
        write!(id, "{byte:02x}").expect("a String takes all text");
    }
    id.push('>');
    id
}

/// The request as sent; a request line of HTTP/2 is shown as readers know it.
fn request_block(head: &[u8]) -> Vec<u8> {
    let end = memchr::memchr(b'\n', head).unwrap_or(head.len());
    let (line, rest) = head.split_at(end);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let shown = match line.iter().rposition(|byte| *byte == b' ') {
        Some(space) if line[space + 1..].starts_with(b"HTTP/") => &line[..space],
        _ => line,
    };
    let mut block = [shown, b" HTTP/1.1\r"].concat();
    if rest.is_empty() {
        block.extend_from_slice(b"\n\r\n")
    } else {
        block.extend_from_slice(rest)
    }
    block
}

fn response_block(response: &Response) -> Vec<u8> {
    let mut block = status_line(response);
    block.extend_from_slice(b"\r\n");
    let bodiless = matches!(response.status, 100..=199 | 204 | 304);
    let right_length = response.body.len().to_string();
    let mut unchunked = false;
    let mut has_length = false;
    for (name, value) in &response.headers {
        let mut value = value.as_ref();
        let mut shown: &str = name;
        if name.eq_ignore_ascii_case("transfer-encoding") {
            shown = "X-Crawler-Transfer-Encoding";
            unchunked = true;
        } else if name.eq_ignore_ascii_case("content-length") && !bodiless {
            if value != right_length.as_bytes() {
                push_header(&mut block, "X-Crawler-Content-Length", value);
                value = right_length.as_bytes();
            }
            if std::mem::replace(&mut has_length, true) {
                continue;
            }
        }
        push_header(&mut block, shown, value);
    }
    if unchunked && !has_length && !bodiless {
        push_header(&mut block, "Content-Length", right_length.as_bytes());
    }
    block.extend_from_slice(b"\r\n");
    block
}

/// As received, where it is one that every reader knows: version, status, and what it likes.
fn status_line(response: &Response) -> Vec<u8> {
    let status = response.status;
    let is_plain = |line: &[u8]| {
        let line = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "));
        let phrase = line.and_then(|line| line.strip_prefix(status.to_string().as_bytes()));
        phrase.is_some_and(|phrase| {
            (phrase.is_empty() || phrase[0] == b' ' && phrase.get(1) != Some(&b' '))
                && phrase.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
        })
    };
    if let Some(line) = response.status_line.as_ref().filter(|line| is_plain(line)) {
        return line.to_vec();
    }
    let known = hyper::StatusCode::from_u16(status).ok();
    let phrase = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
    format!("HTTP/1.1 {status} {phrase}").into_bytes()
}

fn push_header(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    let before = block.len();
    block.extend(name.bytes().filter(|byte| byte.is_ascii_graphic() && *byte != b':'));
    if block.len() == before {
        // No name is left, so no line can be made of it.
        return;
    }
    block.extend_from_slice(b": ");
    block.extend(value.iter().copied().map(without_line_end));
    block.extend_from_slice(b"\r\n");
}

fn without_line_end(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte }
}

/// Compressing it again would cost time and win nothing.
fn is_packed(response: &Response) -> bool {
    let coding = crate::types::header(&response.headers, "content-encoding");
    coding.is_some_and(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
}

fn protocol(protocol: &str) -> &'static str {
    match protocol {
        "HTTP/2" => "h2",
        "HTTP/1.0" => "http/1.0",
        _ => "http/1.1",
    }
}

#[cfg(test)]
mod tests;
