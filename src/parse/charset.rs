//! Bytes to text: the encoding as the HTML and Encoding standards find it (P1).
//!
//! Order: byte order mark, the charset of Content-Type, what the first 1,024 bytes declare, then a
//! check for UTF-8; only what is none of these goes to a detector, and of that only 4 KiB.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

mod prescan;

pub use prescan::prescan;

/// What the detector sees.
const DETECT_BYTES: usize = 4096;

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
}

/// Decodes a body. `header_charset` is the label in Content-Type; `declares` says whether the
/// content may declare its own encoding, as markup does and plain text does not.
pub fn to_text<'b>(body: &'b [u8], header_charset: Option<&str>, declares: bool) -> Text<'b> {
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        let rest = body.get(length..).unwrap_or_default();
        return read(rest, encoding, CharsetSource::Mark);
    }
    let named = header_charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    if let Some(encoding) = named {
        return read(body, encoding, CharsetSource::Header);
    }
    if let Some(encoding) = declares.then(|| prescan(body)).flatten() {
        return read(body, encoding, CharsetSource::Declared);
    }
    match simdutf8::basic::from_utf8(body) {
        Ok(text) => {
            let text = Cow::Borrowed(text);
            Text { text, encoding: UTF_8, source: CharsetSource::ValidUtf8 }
        }
        Err(_) => read(body, detect(body), CharsetSource::Detected),
    }
}

fn read<'b>(body: &'b [u8], encoding: &'static Encoding, source: CharsetSource) -> Text<'b> {
    if encoding == UTF_8
        && let Ok(text) = simdutf8::basic::from_utf8(body)
    {
        return Text { text: Cow::Borrowed(text), encoding, source };
    }
    let (text, _) = encoding.decode_without_bom_handling(body);
    Text { text, encoding, source }
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
