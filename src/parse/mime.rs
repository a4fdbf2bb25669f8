//! Content types as the MIME sniffing standard reads them: parsed, extracted, sniffed.

use crate::types::Headers;

/// A content type and its charset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mime {
    /// `type/subtype`, lower case.
    pub essence: String,
    /// The first `charset` parameter, as written.
    pub charset: Option<String>,
}

impl Mime {
    /// Parses one value; `None` where it is none.
    pub fn parse(value: &str) -> Option<Self> {
        let value = value.trim_matches(is_http_space);
        let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
        let (kind, subtype) = essence.split_once('/')?;
        let subtype = subtype.trim_end_matches(is_http_space);
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let essence = format!("{kind}/{subtype}").to_ascii_lowercase();
        Some(Self { essence, charset: charset(parameters) })
    }

    /// The type of a response, from all its Content-Type headers: the last valid one, with the
    /// charset of an earlier one of the same type where it has none itself.
    pub fn of_response(headers: &Headers) -> Option<Self> {
        // Bytes beyond ASCII are Latin-1, and a quote may run over several headers.
        let values = headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case("content-type"));
        let values: Vec<String> =
            values.map(|(_, value)| value.iter().map(|byte| char::from(*byte)).collect()).collect();
        let joined = values.join(", ");
        let mut found: Option<Self> = None;
        for part in split_values(&joined) {
            let Some(mime) = Self::parse(part).filter(|mime| mime.essence != "*/*") else {
                continue;
            };
            let kept = found.take().filter(|before| before.essence == mime.essence);
            let charset = mime.charset.or(kept.and_then(|before| before.charset));
            found = Some(Self { essence: mime.essence, charset });
        }
        found
    }
}

/// Splits at commas outside quotes.
fn split_values(text: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c| {
        let was_escaped = std::mem::take(&mut escaped);
        match c {
            '\\' if quoted && !was_escaped => escaped = true,
            '"' if !was_escaped => quoted = !quoted,
            _ => {}
        }
        c == ',' && !quoted
    })
}

/// The first valid `charset` of the parameters.
fn charset(parameters: &str) -> Option<String> {
    let mut rest = parameters;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(is_http_space);
        let end = rest.find([';', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        let Some(after) = after.strip_prefix('=') else {
            rest = after.strip_prefix(';').unwrap_or_default();
            continue;
        };
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = unquote(quoted);
                (Some(value), after.split_once(';').map_or("", |(_, after)| after))
            }
            None => {
                let (value, after) = after.split_once(';').unwrap_or((after, ""));
                let value = value.trim_end_matches(is_http_space).to_owned();
                (Some(value).filter(|value| !value.is_empty()), after)
            }
        };
        rest = after;
        match value {
            Some(value) if name.eq_ignore_ascii_case("charset") && is_value(&value) => {
                return Some(value);
            }
            Some(_) | None => {}
        }
    }
    None
}

/// A quoted string after its first quote, and what follows it; an open one goes to the end.
fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => break,
            '\\' => value.push(rest.next().unwrap_or('\\')),
            _ => value.push(c),
        }
    }
    (value, rest.as_str())
}

fn is_http_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' ')
}

fn is_token(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}

fn is_value(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | ' '..='~' | '\u{80}'..='\u{ff}'))
}

/// Bytes looked at for sniffing.
const SNIFF_BYTES: usize = 1445;

/// What a body without a usable content type looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// It begins like HTML.
    Html,
    /// It begins with an XML declaration.
    Xml,
    /// No byte says that it is binary.
    Text,
    /// Anything else.
    Binary,
}

/// The standard's table for HTML; each is followed by a space or `>`.
const HTML_STARTS: [&[u8]; 16] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
];

/// Looks at the first bytes, as the standard says.
pub fn sniff(body: &[u8]) -> Sniffed {
    let head = body.get(..SNIFF_BYTES).unwrap_or(body);
    let marked = [&b"\xef\xbb\xbf"[..], b"\xfe\xff", b"\xff\xfe"]
        .into_iter()
        .find_map(|mark| head.strip_prefix(mark));
    let text = marked.unwrap_or(head).trim_ascii_start();
    let starts = |with: &[u8]| {
        text.split_at_checked(with.len()).is_some_and(|(start, rest)| {
            start.eq_ignore_ascii_case(with) && matches!(rest.first(), Some(b' ' | b'>'))
        })
    };
    if text.starts_with(b"<!--") || HTML_STARTS.iter().any(|with| starts(with)) {
        Sniffed::Html
    } else if text.starts_with(b"<?xml") {
        Sniffed::Xml
    } else if marked.is_some() || !head.iter().any(|byte| is_binary(*byte)) {
        Sniffed::Text
    } else {
        Sniffed::Binary
    }
}

fn is_binary(byte: u8) -> bool {
    matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_sniffed_by_the_table() {
        for (body, looks) in [
            ("\n <!doctype html>", Sniffed::Html),
            ("<!DOCTYPE html SYSTEM>", Sniffed::Html),
            ("\u{feff}<p>", Sniffed::Html),
            ("<!-- x", Sniffed::Html),
            ("<bold>", Sniffed::Text),
            ("<a href=x>", Sniffed::Html),
            ("<?xml version='1.0'?>", Sniffed::Xml),
            ("just words", Sniffed::Text),
            ("", Sniffed::Text),
            ("\u{1}\u{2}", Sniffed::Binary),
        ] {
            assert_eq!(sniff(body.as_bytes()), looks, "{body:?}");
        }
    }
}
