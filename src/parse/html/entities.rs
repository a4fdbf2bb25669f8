//! Character references, as the HTML standard reads them in text and in attribute values.
//!
//! The table of names is html5ever's; legacy names without a semicolon are read in text, and in
//! attributes only where neither a letter, a digit nor `=` follows.

use std::borrow::Cow;

use markup5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use memchr::{memchr2, memchr3};

/// The longest name in the table is 32 bytes with its semicolon.
const NAME_BYTES_MAX: usize = 33;

/// Where a reference stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In text, where NUL counts for nothing.
    Text,
    /// In `<title>`, `<textarea>`, SVG or MathML, where NUL becomes U+FFFD, as in attributes.
    Contained,
    /// In an attribute value.
    Attribute,
}

/// What a reference stands for: one character, or two.
type Characters = (char, Option<char>);

/// Replaces the references, and NUL; borrows where there are none. In attributes a line ends with
/// LF alone; in text it does not matter how it ends.
pub fn decode(raw: &str, place: Place) -> Cow<'_, str> {
    let bytes = raw.as_bytes();
    let found = match place {
        Place::Attribute => memchr3(b'&', b'\0', b'\r', bytes),
        Place::Text | Place::Contained => memchr2(b'&', b'\0', bytes),
    };
    if found.is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    decode_into(raw, place, &mut out);
    Cow::Owned(out)
}

/// Appends `raw` to `out` with its references replaced. Time is linear in the length of `raw`.
pub fn decode_into(raw: &str, place: Place, out: &mut String) {
    let mut rest = raw;
    let counts = |c: char| matches!(c, '&' | '\0') || c == '\r' && place == Place::Attribute;
    while let Some((before, after)) = rest.split_once(counts) {
        out.push_str(before);
        match rest.as_bytes().get(before.len()) {
            Some(b'\0') => {
                out.extend((place != Place::Text).then_some(char::REPLACEMENT_CHARACTER));
                rest = after;
                continue;
            }
            Some(b'\r') => {
                out.push('\n');
                rest = after.strip_prefix('\n').unwrap_or(after);
                continue;
            }
            Some(_) | None => {}
        }
        rest = match reference(after.as_bytes(), place) {
            Some(((first, second), length)) => {
                out.push(first);
                out.extend(second);
                after.get(length..).unwrap_or_default()
            }
            None => {
                out.push('&');
                after
            }
        };
    }
    out.push_str(rest);
}

/// Reads the reference whose `&` stands before `after`: its characters, and the bytes it takes.
fn reference(after: &[u8], place: Place) -> Option<(Characters, usize)> {
    match after {
        [b'#', b'x' | b'X', digits @ ..] => numeric(digits, 16).map(|(c, n)| ((c, None), n + 2)),
        [b'#', digits @ ..] => numeric(digits, 10).map(|(c, n)| ((c, None), n + 1)),
        [b'a', b'm', b'p', b';', ..] => Some((('&', None), 4)),
        [b'n', b'b', b's', b'p', b';', ..] => Some((('\u{a0}', None), 5)),
        [first, ..] if first.is_ascii_alphabetic() => named(after, place),
        _ => None,
    }
}

fn numeric(digits: &[u8], radix: u32) -> Option<(char, usize)> {
    let count = digits.iter().take_while(|b| char::from(**b).is_digit(radix)).count();
    if count == 0 {
        return None;
    }
    let code = digits.iter().take(count).fold(0_u32, |code, b| {
        let digit = char::from(*b).to_digit(radix).unwrap_or_default();
        code.saturating_mul(radix).saturating_add(digit)
    });
    let semicolon = usize::from(digits.get(count) == Some(&b';'));
    Some((character(code), count + semicolon))
}

/// The character of a number: zero, surrogates and what lies beyond Unicode become U+FFFD, the
/// C1 controls what windows-1252 has there.
fn character(code: u32) -> char {
    let c1 = code.checked_sub(0x80).and_then(|at| usize::try_from(at).ok());
    if let Some(Some(replaced)) = c1.and_then(|at| C1_REPLACEMENTS.get(at)) {
        return *replaced;
    }
    char::from_u32(code).filter(|c| *c != '\0').unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn named(after: &[u8], place: Place) -> Option<(Characters, usize)> {
    let run = after.iter().take(NAME_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric()).count();
    let with_semicolon = run + usize::from(after.get(run) == Some(&b';'));
    let (found, length) = (1..=with_semicolon.min(NAME_BYTES_MAX))
        .rev()
        .find_map(|length| Some((lookup(after.get(..length)?)?, length)))?;
    let ends = after.get(length - 1) == Some(&b';');
    let goes_on = after.get(length).is_some_and(|b| *b == b'=' || b.is_ascii_alphanumeric());
    if place == Place::Attribute && !ends && goes_on {
        return None;
    }
    Some((found, length))
}

/// The table also holds every prefix of a name, with zeros.
fn lookup(name: &[u8]) -> Option<Characters> {
    let (first, second) = NAMED_ENTITIES.get(std::str::from_utf8(name).ok()?)?;
    let first = char::from_u32(*first).filter(|c| *c != '\0')?;
    Some((first, char::from_u32(*second).filter(|c| *c != '\0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_by_their_place() {
        let text = |raw| decode(raw, Place::Text).into_owned();
        let attribute = |raw| decode(raw, Place::Attribute).into_owned();
        assert_eq!(
            text("a &amp; b &lt;&#x41;&#65 &copy &notit; &zzz; & &"),
            "a & b <AA © ¬it; &zzz; & &"
        );
        assert_eq!(attribute("?a=1&copy=2&copy;&copy &notit;"), "?a=1&copy=2©© &notit;");
        assert_eq!(
            text("&#0;&#xD800;&#x110000;&#99999999999999;&#x80;&#x81;"),
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}€\u{81}"
        );
        assert_eq!(text("&NotEqualTilde;&nbsp;&#;&#x;"), "\u{2242}\u{338}\u{a0}&#;&#x;");
    }

    #[test]
    fn nul_is_what_its_place_makes_of_it() {
        for (place, expected) in [
            (Place::Text, "ab&"),
            (Place::Contained, "a\u{fffd}b&"),
            (Place::Attribute, "a\u{fffd}b&"),
        ] {
            assert_eq!(decode("a\0b&amp;", place), expected);
        }
    }

    #[test]
    fn lines_of_an_attribute_end_with_lf_but_a_reference_says_what_it_says() {
        let value = "a\r\nb\rc\r\r\n&#13;\n";
        assert_eq!(decode(value, Place::Attribute), "a\nb\nc\n\n\r\n");
        assert_eq!(decode("a\r\n", Place::Text), "a\r\n");
    }

    #[test]
    fn text_without_references_is_not_copied() {
        assert!(matches!(decode("plain", Place::Text), Cow::Borrowed("plain")));
    }
}
