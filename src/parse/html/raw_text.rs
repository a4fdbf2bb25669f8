//! Where comments, raw text elements and scripts end.
//!
//! Each function looks at a byte once, so an element without an end costs one pass.

use memchr::{memchr, memchr2, memmem};

use super::attributes::is_space;

/// The byte after a comment whose text begins at `start`; the end of the document if it is open.
pub(super) fn comment_end(bytes: &[u8], start: usize) -> usize {
    match bytes.get(start..) {
        Some([b'>', ..]) => return start + 1,
        Some([b'-', b'>', ..]) => return start + 2,
        Some(_) => {}
        None => return bytes.len(),
    }
    let mut at = start;
    while let Some(found) = memmem::find(bytes.get(at..).unwrap_or_default(), b"--") {
        at += found + 2;
        while bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        match bytes.get(at..) {
            Some([b'>', ..]) => return at + 1,
            Some([b'!', b'>', ..]) => return at + 2,
            Some(_) | None => {}
        }
    }
    bytes.len()
}

/// The byte after the next `>`; the end of the document if there is none.
pub(super) fn after_bracket(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    memchr(b'>', rest).map_or(bytes.len(), |found| start + found + 1)
}

/// Where the text of a raw text element ends: the `<` of its end tag, or the document's end.
pub(super) fn raw_text_end(bytes: &[u8], start: usize, name: &[u8]) -> usize {
    let mut at = start;
    while let Some(found) = memchr(b'<', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if is_tag(bytes, at, b"</", name) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Where a script's text ends. `<!--` makes a nested `<script>` hide its end tag until `-->`.
pub(super) fn script_end(bytes: &[u8], start: usize) -> usize {
    #[derive(PartialEq)]
    enum State {
        Plain,
        Escaped,
        Nested,
    }
    let mut state = State::Plain;
    let mut at = start;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let found = match state {
            State::Plain => memchr(b'<', rest),
            State::Escaped | State::Nested => memchr2(b'<', b'-', rest),
        };
        let Some(found) = found else { return bytes.len() };
        at += found;
        let here = bytes.get(at..).unwrap_or_default();
        if here.starts_with(b"-->") {
            state = State::Plain;
        } else if is_tag(bytes, at, b"</", b"script") {
            if state != State::Nested {
                return at;
            }
            state = State::Escaped;
        } else if state == State::Plain && here.starts_with(b"<!--") {
            state = State::Escaped;
            // The two dashes may already belong to the end: `<!-->`.
            at += 1;
        } else if state == State::Escaped && is_tag(bytes, at, b"<", b"script") {
            state = State::Nested;
        }
        at += 1;
    }
}

/// A tag of this name stands at `at`, complete with the byte that ends its name.
fn is_tag(bytes: &[u8], at: usize, open: &[u8], name: &[u8]) -> bool {
    let Some(rest) = bytes.get(at..).and_then(|rest| rest.strip_prefix(open)) else {
        return false;
    };
    let Some((found, after)) = rest.split_at_checked(name.len()) else { return false };
    found.eq_ignore_ascii_case(name)
        && after.first().is_some_and(|b| is_space(*b) || matches!(b, b'/' | b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_end_as_browsers_end_them() {
        for (comment, rest) in [
            (">x", "x"),
            ("->x", "x"),
            ("-->x", "x"),
            (" a -- b --->x", "x"),
            (" a --!>x", "x"),
            (" a --!-->x", "x"),
            (" a -> b --!x> -->x", "x"),
            ("-!> -->x", "x"),
            (" <!-->x", "x"),
            (" open", ""),
            ("", ""),
        ] {
            let end = comment_end(comment.as_bytes(), 0);
            assert_eq!(comment.get(end..), Some(rest), "{comment}");
        }
    }

    #[test]
    fn scripts_end_as_browsers_end_them() {
        for (script, rest) in [
            ("a</script>x", "</script>x"),
            ("a</SCRIPT >x", "</SCRIPT >x"),
            ("a</scripty></script>x", "</script>x"),
            ("<!-- <script> </script> --></script>x", "</script>x"),
            ("<!-- <script> </script> </script>x", "</script>x"),
            ("<!-- </script>x", "</script>x"),
            ("<!--><script></script>x", "</script>x"),
            ("<!-- <script> --></script>x", "</script>x"),
            ("<!-- <scripty></script>x", "</script>x"),
            ("<!-- <script> </script> open", ""),
        ] {
            let end = script_end(script.as_bytes(), 0);
            assert_eq!(script.get(end..), Some(rest), "{script}");
        }
    }

    #[test]
    fn raw_text_ends_at_its_own_end_tag() {
        let text = b"a </b> </titlex> </Title\n>";
        assert_eq!(raw_text_end(text, 0, b"title"), 17);
        assert_eq!(raw_text_end(b"</title", 0, b"title"), 7);
    }
}
