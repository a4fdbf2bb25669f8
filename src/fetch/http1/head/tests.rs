//! Heads as tables: what is read, what is refused, and that no cut of the bytes changes it.

use proptest::prelude::*;

use super::*;

/// The first head in the bytes, however they are cut, and what follows it.
fn read_all(bytes: &[u8], cuts: &[usize]) -> Result<Option<(Head, Vec<u8>)>, HeadFault> {
    let mut reader = HeadReader::default();
    let mut from = 0;
    for to in cuts.iter().map(|cut| (*cut).min(bytes.len())).chain([bytes.len()]) {
        let piece = &bytes[from.min(to)..to];
        from = from.max(to);
        if let Some(head) = reader.take(piece).map_err(|fault| same(fault, bytes))? {
            return Ok(Some((head, [reader.into_rest(), bytes[from..].to_vec()].concat())));
        }
    }
    Ok(None)
}

/// How much of a foreign protocol is shown depends on how much of it came at once.
fn same(fault: HeadFault, bytes: &[u8]) -> HeadFault {
    match &fault {
        HeadFault::Malformed(why) if why.contains("it begins with") => not_http(bytes),
        HeadFault::Malformed(_) | HeadFault::TooLarge => fault,
    }
}

fn read(text: &str) -> Result<Option<(Head, Vec<u8>)>, HeadFault> {
    let bytes: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let whole = read_all(&bytes, &[]);
    for cut in 0..bytes.len() {
        assert_eq!(read_all(&bytes, &[cut]), whole, "{text:?} at {cut}");
    }
    let each: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read_all(&bytes, &each), whole, "{text:?} byte by byte");
    whole
}

fn head(text: &str) -> Head {
    read(text).unwrap().unwrap_or_else(|| panic!("not whole: {text:?}")).0
}

fn why(text: &str) -> String {
    match read(text) {
        Err(HeadFault::Malformed(why)) => why,
        Err(HeadFault::TooLarge) => "too large".to_owned(),
        Ok(None) => "not whole".to_owned(),
        Ok(Some((head, _))) => format!("read: {head:?}"),
    }
}

fn lines(head: &Head) -> String {
    let line = |(name, value): &(String, Bytes)| format!("{name}={}", value.escape_ascii());
    head.headers.iter().map(line).collect::<Vec<_>>().join("|")
}

#[test]
fn names_values_order_and_duplicates_are_kept_as_sent() {
    let head = head(
        "HTTP/1.1 200 All \tfine\r\nX-b: 1\r\ncontent-TYPE:  Text/HTML \t\r\n\
         x-B:\r\nX-b: 1\r\n\r\n",
    );
    assert_eq!(lines(&head), "X-b=1|content-TYPE=Text/HTML|x-B=|X-b=1");
    assert_eq!((head.status, head.is_http_10, head.is_odd), (200, false, false));
    assert_eq!(head.status_line, "HTTP/1.1 200 All \tfine");
}

#[test]
fn plain_heads_leave_no_doubt() {
    for (text, status) in [
        ("HTTP/1.1 200 OK\r\n\r\n", 200),
        ("HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n", 404),
        ("HTTP/1.1 302\r\nServer:\r\n\r\n", 302),
        ("HTTP/1.1 999 No\r\n\r\n", 999),
        ("HTTP/1.1 500 N\u{99}t \u{d0}\u{bd}\r\nK: \u{eb}\u{d2}\r\n\r\n", 500),
        ("HTTP/1.1 405 405\r\n\r\n", 405),
    ] {
        let head = head(text);
        assert_eq!((head.status, head.is_odd), (status, false), "{text:?}");
    }
}

#[test]
fn what_browsers_forgive_is_read_and_marked() {
    for (text, expected) in [
        ("HTTP/1.1 200 OK\nA: b\n\n", "A=b"),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", "A=b"),
        ("\r\n\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1   200   OK\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1 200 OK\r\nA : b\r\nC\t: d\r\n\r\n", "A=b|C=d"),
        ("HTTP/1.1 200 OK\r\nA: one\r\n two\r\n\tthree \r\nB: c\r\n\r\n", "A=one two three|B=c"),
        ("HTTP/1.1 200 OK\r\nA: \r\n   \r\n hello\r\n\r\n", "A=hello"),
        ("HTTP/1.1 200 OK\r\nA:   \r\n \r\n \r\n\r\n", "A="),
        ("HTTP/1.1 200 OK\r\n Folded: first\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1 200 OK\r\nPHP Warning: no\r\nNoColon\r\n<!DOCTYPE html>\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1 200 OK\r\n: empty\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1 200 OK\r\nX-\u{c3}\u{a9}: 1\r\nA: b\r\n\r\n", "A=b"),
        ("HTTP/1.1 200 OK\r\nSet-Cookie: a=\u{1}b\r\nA: b\r\n\r\n", "A=b"),
    ] {
        let head = head(text);
        assert_eq!((lines(&head).as_str(), head.is_odd), (expected, true), "{text:?}");
    }
}

#[test]
fn what_is_no_head_is_refused_with_words() {
    for (text, expected) in [
        ("SSH-2.0-OpenSSH_9.2p1\r\n", "no HTTP/1 response, it begins with `SSH-2.0-OpenSSH_9.2p1"),
        ("<html>", "no HTTP/1 response, it begins with `<"),
        ("ICY 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("HTTP/2 200\r\n\r\n", "no HTTP/1 response"),
        ("HTTP/5.6 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("http/1.1 200 OK\r\n\r\n", "no HTTP/1 response"),
        (" HTTP/1.1 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("\rHTTP/1.1 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("\0\0\0", "no HTTP/1 response, it begins with `\\x00"),
        ("HTTP/1.2 200 OK\r\n\r\n", "the status line names neither HTTP/1.0 nor HTTP/1.1"),
        ("HTTP/1.01 200 OK\r\n\r\n", "the status line names neither"),
        ("HTTP/1.1\t200 OK\r\n\r\n", "the status line names neither"),
        ("HTTP/1.1 2 OK\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 -200 OK\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 2000 OK\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 99 200 OK\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 \r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 200 a\0b\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 200\rOK\r\n\r\n", "the status line has no status of three digits"),
        ("HTTP/1.1 000 \r\n\r\n", "000 is no status"),
        ("HTTP/1.1 099 \r\n\r\n", "099 is no status"),
        ("HTTP/1.1 200 OK\r\nX-N: a\0b\r\n\r\n", "a header value with a NUL"),
        ("HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n", "a header value with a NUL"),
        ("HTTP/1.1 200 OK\r\nX\0: a\r\n\r\n", "a header name with a NUL"),
        ("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", "the server switches protocols"),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", "not whole"),
        ("HTTP/1.1 200 OK\r\nA: b\r\n\r", "not whole"),
    ] {
        let why = why(text);
        assert!(why.starts_with(expected), "{text:?}: {why}");
    }
}

#[test]
fn a_foreign_protocol_is_known_before_its_line_ends() {
    let mut reader = HeadReader::default();
    assert_eq!(reader.take(b"HTTP"), Ok(None));
    assert!(matches!(reader.take(b"S"), Err(HeadFault::Malformed(_))));
}

#[test]
fn interim_responses_are_read_over_and_bounded() {
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let (found, rest) =
        read(&format!("{early}HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody")).unwrap().unwrap();
    assert_eq!((found.status, lines(&found).as_str(), found.is_odd), (200, "A=b", false));
    assert_eq!(rest, b"body");
    let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(INTERIM_MAX as usize);
    assert_eq!(head(&format!("{many}HTTP/1.1 200 OK\r\n\r\n")).status, 200);
    assert!(why(&format!("{many}HTTP/1.1 100 Continue\r\n\r\n")).contains("interim"));
    assert!(head("HTTP/1.1 100 \n\nHTTP/1.1 200 OK\r\n\r\n").is_odd);
}

#[test]
fn headers_are_bounded_by_number_and_bytes() {
    let of = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(read_all(of(HEADERS_MAX).as_bytes(), &[]).unwrap().unwrap().0.headers.len(), 256);
    assert_eq!(read_all(of(HEADERS_MAX + 1).as_bytes(), &[]), Err(HeadFault::TooLarge));
    let max = HEADER_BYTES_MAX as usize;
    let sized = |size: usize| {
        let begin = "HTTP/1.1 200 OK\r\nA: ";
        format!("{begin}{}\r\n\r\n", "x".repeat(size - begin.len() - 4))
    };
    assert!(read_all(sized(max).as_bytes(), &[]).unwrap().is_some());
    assert_eq!(read_all(sized(max + 1).as_bytes(), &[]), Err(HeadFault::TooLarge));
    let endless = "HTTP/1.1 200 OK\r\nA: ".to_owned() + &"x".repeat(max);
    assert_eq!(read_all(endless.as_bytes(), &[]), Err(HeadFault::TooLarge));
    let blank = "\r\n".repeat(max);
    assert_eq!(read_all(blank.as_bytes(), &[]), Err(HeadFault::TooLarge));
    let interim = format!("HTTP/1.1 103 \r\nA: {}\r\n\r\n", "x".repeat(max / 2)).repeat(2);
    assert_eq!(read_all(interim.as_bytes(), &[]), Err(HeadFault::TooLarge));
}

/// Bytes that are often near a head.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"HTTP/1.1 200 OK\r\n"[..]),
        Just(&b"HTTP/1.0 "[..]),
        Just(&b"HTTP/1.1 100 \r\n\r\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r"[..]),
        Just(&b" "[..]),
        Just(&b"\t"[..]),
        Just(&b"\0"[..]),
        Just(&b":"[..]),
        Just(&b"X-Name: value\r\n"[..]),
        Just(&b"a"[..]),
        Just(&b"\xe9"[..]),
        Just(&b"200"[..]),
    ];
    proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_of_likely_bytes_gives_the_same(
        bytes in likely(),
        mut cuts in proptest::collection::vec(0_usize..200, 0..6),
    ) {
        cuts.sort_unstable();
        prop_assert_eq!(read_all(&bytes, &cuts), read_all(&bytes, &[]));
    }

    #[test]
    fn any_bytes_are_a_head_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let headed = [b"HTTP/1.1 200 ", bytes.as_slice(), b"\r\n\r\n"].concat();
        for bytes in [bytes, headed] {
            if let Ok(Some((head, _))) = read_all(&bytes, &[]) {
                prop_assert!(head.status >= 200);
                let ends = |part: &[u8]| part.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
                prop_assert!(!ends(&head.status_line));
                for (name, value) in &head.headers {
                    prop_assert!(!name.is_empty() && !ends(name.as_bytes()) && !ends(value));
                }
            }
        }
    }
}
