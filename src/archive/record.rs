//! Records back from their bytes, checked as they are read.

use bytes::Bytes;

use super::digest::sha1_of;
use crate::types::Headers;

/// One record: its header fields and its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// In order.
    pub(super) fields: Vec<(String, String)>,
    /// As long as Content-Length says.
    pub(super) block: Bytes,
}

/// The HTTP message in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpBlock {
    /// The status code.
    pub(super) status: u16,
    /// The headers as stored.
    pub(super) headers: Headers,
    /// What follows them.
    pub(super) body: Bytes,
}

impl Record {
    /// Reads a record that takes all of the bytes.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn parse(bytes: Bytes) -> Result<Self, String> {
        let (head, rest) = split_head(&bytes).ok_or("the header has no end")?;
        let mut lines = lines_of(&head);
        if lines.next() != Some(b"WARC/1.1") {
            return Err("not WARC/1.1".to_owned());
        }
        let fields: Vec<_> =
            lines.filter_map(field_of).map(|(name, value)| (name, text(value))).collect();
        let mut record = Self { fields, block: Bytes::new() };
        let length = record.field("Content-Length").and_then(|length| length.parse::<usize>().ok());
        let length = length.ok_or("no Content-Length")?;
        if rest.len() != length.saturating_add(4) || !rest.ends_with(b"\r\n\r\n") {
            return Err(format!("{} bytes follow the header of a block of {length}", rest.len()));
        }
        record.block = rest.slice(..length);
        Ok(record)
    }

    /// The first field of this name.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// `response`, `revisit`, …
    pub(super) fn kind(&self) -> &str {
        self.field("WARC-Type").unwrap_or_default()
    }

    /// The HTTP response in the block; `None` when it holds none.
    pub(super) fn http(&self) -> Option<HttpBlock> {
        let (head, body) = split_head(&self.block)?;
        let mut lines = lines_of(&head);
        // A reason phrase may be in any encoding (RFC 9112 4).
        let line = text(lines.next()?);
        let (protocol, rest) = line.split_once(' ')?;
        let status = rest.split(' ').next()?.parse().ok()?;
        let headers = lines
            .filter_map(|line| field_of(line).map(|(name, value)| (name, head.slice_ref(value))));
        protocol.starts_with("HTTP/").then(|| HttpBlock {
            status,
            headers: headers.collect(),
            body,
        })
    }

    /// B6: the digests say what the block holds.
    ///
    /// # Errors
    /// Which one does not.
    pub(super) fn check_digests(&self) -> Result<(), String> {
        if self.field("WARC-Block-Digest") != Some(sha1_of(&[&self.block]).as_str()) {
            return Err("the block is not what its digest says".to_owned());
        }
        if self.kind() != "response" {
            return Ok(());
        }
        let http = self.http().ok_or("a response without HTTP")?;
        if self.field("WARC-Payload-Digest") == Some(sha1_of(&[&http.body]).as_str()) {
            Ok(())
        } else {
            Err("the payload is not what its digest says".to_owned())
        }
    }
}

/// The lines up to the blank one, and what follows it.
fn split_head(bytes: &Bytes) -> Option<(Bytes, Bytes)> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    Some((bytes.slice(..end), bytes.slice(end + 4..)))
}

fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn field_of(line: &[u8]) -> Option<(String, &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    Some((text(name), value[1..].trim_ascii()))
}

/// UTF-8, or else each byte its own character.
pub(super) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}
