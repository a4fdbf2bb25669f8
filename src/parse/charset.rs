//! Bytes to text: the encoding as the HTML and Encoding standards find it (P1).
//!
//! Order: byte order mark, the charset of Content-Type, what the first 1,024 bytes declare, then a
//! check for UTF-8, then what later bytes declare; only what is none of these goes to a detector,
//! and of that only 4 KiB.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::memory::{Memory, grow_text};
use crate::types::Reason;

mod prescan;

pub use prescan::prescan;

/// What the detector sees.
const DETECT_BYTES: usize = 4096;
/// Bytes that are made text at once.
const RECODE_BYTES: usize = 16 << 10;

/// What decided the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Mark,
    /// The charset parameter of Content-Type.
    Header,
    /// `<meta>` or an XML declaration.
    Declared,
    /// Nothing declared, and the bytes are valid UTF-8.
    ValidUtf8,
    /// The detector's guess.
    Detected,
}

/// A body as text.
#[derive(Clone, Debug)]
pub struct Text<'b> {
    /// The text, without byte order mark, U+FFFD where bytes were wrong; borrowed where they are
    /// UTF-8 already.
    pub text: Cow<'b, str>,
    /// How it was read.
    pub encoding: &'static Encoding,
    /// Why so.
    pub source: CharsetSource,
    /// There is more of the body than was given to hold as text.
    pub is_cut: bool,
}

impl Text<'_> {
    /// The reason for a cut at that many bytes.
    pub(super) fn cut_at(&self, bytes_max: usize) -> Option<Reason> {
        self.is_cut.then(|| Memory::reason(bytes_max, "text of the body"))
    }
}

/// Decodes a body. `header_charset` is the label in Content-Type; `declares` says whether the
/// content may declare its own encoding, as markup does and plain text does not. What is not UTF-8
/// already is copied, `bytes_max` of it at most.
pub fn to_text<'b>(
    body: &'b [u8],
    header_charset: Option<&str>,
    declares: bool,
    bytes_max: usize,
) -> Text<'b> {
    let declared = declared(body, header_charset, declares);
    let rest = declared.map_or(body, |(rest, ..)| rest);
    let (encoding, source, as_it_is) = match declared {
        Some((_, encoding, source)) => (encoding, source, plain(rest, encoding)),
        None => undeclared(rest, declares),
    };
    let (text, is_cut) = match as_it_is {
        Some(text) => (Cow::Borrowed(text), false),
        None => {
            let (text, is_cut) = recode(rest, encoding, bytes_max);
            (Cow::Owned(text), is_cut)
        }
    };
    Text { text, encoding, source, is_cut }
}

/// The body without its mark, and what it or its header says it is.
fn declared<'b>(
    body: &'b [u8],
    header_charset: Option<&str>,
    declares: bool,
) -> Option<(&'b [u8], &'static Encoding, CharsetSource)> {
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        return Some((body.get(length..)?, encoding, CharsetSource::Mark));
    }
    let named = header_charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    if let Some(encoding) = named {
        return Some((body, encoding, CharsetSource::Header));
    }
    let encoding = declares.then(|| prescan(body)).flatten()?;
    Some((body, encoding, CharsetSource::Declared))
}

/// How a body that declares nothing in time is to be read, and the text where it is UTF-8.
fn undeclared(body: &[u8], declares: bool) -> (&'static Encoding, CharsetSource, Option<&str>) {
    let text = simdutf8::basic::from_utf8(body).ok();
    let may_be_another = declares && text.is_none_or(str::is_ascii);
    match (text, may_be_another.then(|| prescan::late(body)).flatten()) {
        (_, Some(encoding)) => (encoding, CharsetSource::Declared, plain(body, encoding)),
        (Some(text), None) => (UTF_8, CharsetSource::ValidUtf8, Some(text)),
        (None, None) => (detect(body), CharsetSource::Detected, None),
    }
}

/// A body that is the same in UTF-8.
fn plain<'b>(body: &'b [u8], encoding: &'static Encoding) -> Option<&'b str> {
    let is_ascii =
        || encoding.is_ascii_compatible() && Encoding::ascii_valid_up_to(body) == body.len();
    let is_same = encoding == UTF_8 || is_ascii();
    is_same.then(|| simdutf8::basic::from_utf8(body).ok()).flatten()
}

/// The text, and whether the bound cut it.
fn recode(body: &[u8], encoding: &'static Encoding, bytes_max: usize) -> (String, bool) {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::new();
    let mut rest = body;
    grow_text(&mut text, (body.len() + body.len() / 8).min(bytes_max), bytes_max);
    loop {
        let (piece, after) = rest.split_at(rest.len().min(RECODE_BYTES));
        let most = decoder.max_utf8_buffer_length(piece.len()).unwrap_or(usize::MAX);
        if most > bytes_max.saturating_sub(text.len()) {
            return (text, true);
        }
        grow_text(&mut text, most, bytes_max);
        // All of the piece is read: there is room for whatever it may become.
        let _read = decoder.decode_to_string(piece, &mut text, after.is_empty());
        if after.is_empty() {
            return (text, false);
        }
        rest = after;
    }
}

/// From the first bytes that are not ASCII on, so that a long head does not hide them.
fn detect(body: &[u8]) -> &'static Encoding {
    let first = Encoding::ascii_valid_up_to(body).saturating_sub(DETECT_BYTES / 4);
    let rest = body.get(first..).unwrap_or(body);
    let sample = rest.get(..DETECT_BYTES).unwrap_or(rest);
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    // Never the last: a body cut inside a character is still what it was.
    detector.feed(sample, false);
    detector.guess(None, Utf8Detection::Allow)
}

/// What a declaration inside the bytes cannot mean: read as ASCII, they are not UTF-16.
fn as_declared(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

#[cfg(test)]
mod tests;
