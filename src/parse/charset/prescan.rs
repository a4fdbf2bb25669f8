//! The prescan of the HTML standard: the encoding that the first 1,024 bytes declare.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use memchr::memmem;

use super::as_declared;

/// How far the standard looks.
const PRESCAN_BYTES: usize = 1024;

/// How far a declaration may stand behind that: browsers read a page anew when they come upon one.
const LATE_BYTES: usize = 64 << 10;

/// A declaration that comes too late for [`prescan`].
pub(super) fn late(body: &[u8]) -> Option<&'static Encoding> {
    metas(body.get(..LATE_BYTES).unwrap_or(body))
}

/// The declared encoding: `<meta charset>`, `<meta http-equiv=content-type>`, or, failing these,
/// the XML declaration.
pub fn prescan(body: &[u8]) -> Option<&'static Encoding> {
    let head = body.get(..PRESCAN_BYTES).unwrap_or(body);
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    metas(head).or_else(|| xml_declaration(head))
}

fn metas(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'<', head.get(at..)?) {
        at += found;
        let here = head.get(at..)?;
        at = match here {
            [b'<', b'!', b'-', b'-', ..] => {
                // The two dashes may already belong to the end: `<!-->`.
                at + 2 + memmem::find(here.get(2..)?, b"-->")? + 3
            }
            [b'<', b'!' | b'/' | b'?', rest @ ..]
                if here.get(1) != Some(&b'/')
                    || !rest.first().is_some_and(u8::is_ascii_alphabetic) =>
            {
                at + memchr::memchr(b'>', here)? + 1
            }
            _ if is_meta(here) => {
                let mut reader = Reader { head, at: at + 5 };
                if let Some(encoding) = meta(&mut reader) {
                    return Some(encoding);
                }
                reader.at
            }
            [b'<', b'/', ..] => past_tag(head, at + 2),
            [b'<', first, ..] if first.is_ascii_alphabetic() => past_tag(head, at + 1),
            _ => at + 1,
        };
    }
    None
}

fn is_meta(here: &[u8]) -> bool {
    here.split_at_checked(5).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(b"<meta")
            && rest.first().is_some_and(|b| is_space(*b) || *b == b'/')
    })
}

/// Over a tag's name and its attributes, so that their values are not read as markup.
fn past_tag(head: &[u8], name: usize) -> usize {
    let rest = head.get(name..).unwrap_or_default();
    let length = rest.iter().position(|b| is_space(*b) || *b == b'>').unwrap_or(rest.len());
    let mut reader = Reader { head, at: name + length };
    while reader.attribute().is_some() {}
    reader.at
}

fn meta(reader: &mut Reader<'_>) -> Option<&'static Encoding> {
    let mut is_content_type = false;
    let mut from_content = None;
    let mut from_charset = None;
    let mut seen: Vec<Vec<u8>> = Vec::new();
    while let Some((name, value)) = reader.attribute() {
        if seen.contains(&name) {
            continue;
        }
        match name.as_slice() {
            b"http-equiv" => is_content_type = value == b"content-type",
            b"content" if from_content.is_none() => from_content = of_content(&value),
            b"charset" => from_charset = Some(Encoding::for_label(&value)),
            _ => {}
        }
        seen.push(name);
    }
    let found = match from_charset {
        Some(charset) => charset,
        None => from_content.filter(|_| is_content_type),
    };
    found.map(as_declared)
}

/// The encoding in a `content` attribute: what follows `charset=`.
fn of_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        let found = memmem::find(rest, b"charset")?;
        rest = rest.get(found + 7..)?;
        let after = rest.trim_ascii_start();
        let Some(value) = after.strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        let label = match value {
            [quote @ (b'"' | b'\''), inner @ ..] => {
                inner.get(..inner.iter().position(|b| b == quote)?)?
            }
            _ => {
                let end = value.iter().position(|b| is_space(*b) || *b == b';');
                value.get(..end.unwrap_or(value.len()))?
            }
        };
        return Encoding::for_label(label);
    }
}

/// `<?xml … encoding="…"`, which old documents have instead of `<meta>`.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..memchr::memchr(b'>', declaration)?)?;
    let at = memmem::find(declaration, b"encoding")?;
    let value = declaration.get(at + 8..)?.trim_ascii_start().strip_prefix(b"=")?;
    let (quote @ (b'"' | b'\''), value) = value.trim_ascii_start().split_first()? else {
        return None;
    };
    let label = value.get(..value.iter().position(|b| b == quote)?)?;
    Encoding::for_label(label).map(as_declared)
}

/// Reads attributes by the prescan's own, simpler rules.
struct Reader<'h> {
    head: &'h [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.head.get(self.at).copied()
    }

    fn skip(&mut self, passes: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&passes) {
            self.at += 1;
        }
    }

    fn lower(&self, start: usize) -> Vec<u8> {
        self.head.get(start..self.at).unwrap_or_default().to_ascii_lowercase()
    }

    /// Name and value in lower case; `None` at the end of the tag, or of what is looked at: an
    /// attribute that is cut off there counts for nothing.
    fn attribute(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.skip(|b| is_space(b) || b == b'/');
        if self.peek()? == b'>' {
            return None;
        }
        let start = self.at;
        self.at += 1;
        self.skip(|b| !is_space(b) && !b"/>=".contains(&b));
        let name = self.lower(start);
        self.skip(is_space);
        if self.peek()? != b'=' {
            return Some((name, Vec::new()));
        }
        self.at += 1;
        self.skip(is_space);
        let value = match self.peek()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let start = self.at;
                self.skip(|b| b != quote);
                let value = self.lower(start);
                self.peek()?;
                self.at += 1;
                value
            }
            b'>' => Vec::new(),
            _ => {
                let start = self.at;
                self.skip(|b| !is_space(b) && b != b'>');
                self.peek()?;
                self.lower(start)
            }
        };
        Some((name, value))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}
