//! Chunks as tables, in one piece, in two, and byte by byte.

use proptest::prelude::*;

use super::*;

/// Body, how far the decoder came, and what it left of the input.
type Read = (Vec<u8>, Result<(bool, bool), String>, usize);

fn read(bytes: &[u8], cuts: &[usize]) -> Read {
    let mut chunked = Chunked::new();
    let (mut body, mut from, mut left) = (Vec::new(), 0, 0);
    for to in cuts.iter().map(|cut| (*cut).min(bytes.len())).chain([bytes.len()]) {
        let mut piece = &bytes[from.min(to)..to];
        from = from.max(to);
        loop {
            match chunked.next(&mut piece) {
                Ok(Some(data)) => body.extend_from_slice(data),
                Ok(None) => break,
                Err(why) => return (body, Err(why), 0),
            }
        }
        left += piece.len();
    }
    (body, Ok((chunked.is_done(), chunked.is_odd())), left)
}

fn check(text: &[u8]) -> Read {
    let whole = read(text, &[]);
    for cut in 0..text.len() {
        assert_eq!(read(text, &[cut]), whole, "{} at {cut}", text.escape_ascii());
    }
    let each: Vec<usize> = (0..text.len()).collect();
    assert_eq!(read(text, &each), whole, "{} byte by byte", text.escape_ascii());
    whole
}

#[test]
fn bodies_are_put_together() {
    for (bytes, body, is_odd) in [
        ("0\r\n\r\n", "", false),
        ("5\r\nhello\r\n0\r\n\r\n", "hello", false),
        ("1\r\nh\r\n1\r\ne\r\n3\r\nllo\r\n0\r\n\r\n", "hello", false),
        ("00005\r\nhello\r\n000\r\n\r\n", "hello", false),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789", false),
        ("a\r\n0123456789\r\n0\r\n\r\n", "0123456789", false),
        ("5;a;b=c;d=\"e; f\"\r\nhello\r\n0;x\r\n\r\n", "hello", false),
        ("5;\r\nhello\r\n0\r\n\r\n", "hello", false),
        ("5;a=\"b\r\nhello\r\n0\r\n\r\n", "hello", false),
        ("5\r\nhello\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", "hello", false),
        ("5 \t \r\nhello\r\n0 \r\n\r\n", "hello", true),
        ("5 ; x\r\nhello\r\n0\r\n\r\n", "hello", true),
        ("5\nhello\n0\n\n", "hello", true),
        ("5\nhello\r\n0\r\n\r\n", "hello", true),
        ("5\r\nhello\n0\r\n\r\n", "hello", true),
        ("0\r\na: b\n\n", "", true),
    ] {
        let (read, end, left) = check(bytes.as_bytes());
        assert_eq!(
            (read.as_slice(), end, left),
            (body.as_bytes(), Ok((true, is_odd)), 0),
            "{bytes:?}"
        );
    }
}

#[test]
fn what_lies_behind_the_last_line_is_left() {
    let (body, end, left) = check(b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    assert_eq!((body.as_slice(), end, left), (&b"ok"[..], Ok((true, false)), 19));
}

#[test]
fn bodies_that_break_off_are_not_done() {
    for (bytes, body, has_all) in [
        ("", "", false),
        ("5", "", false),
        ("5\r\nhel", "hel", false),
        ("5\r\nhello", "hello", false),
        ("5\r\nhello\r\n", "hello", false),
        ("5\r\nhello\r\n0\r", "hello", false),
        ("5\r\nhello\r\n0\r\n", "hello", true),
        ("5\r\nhello\r\n0\r\nX: y", "hello", true),
        ("5\r\nhello\r\n0\r\n\r", "hello", true),
    ] {
        let (read, end, _) = check(bytes.as_bytes());
        assert_eq!((read.as_slice(), end), (body.as_bytes(), Ok((false, false))), "{bytes:?}");
        let mut chunked = Chunked::new();
        let mut input = bytes.as_bytes();
        while let Ok(Some(_)) = chunked.next(&mut input) {}
        assert_eq!(chunked.has_all(), has_all, "{bytes:?}");
    }
}

#[test]
fn what_is_no_chunk_is_refused_and_what_came_before_it_kept() {
    for (bytes, body, expected) in [
        ("\r\n", "", "`\\r` in the size of a chunk"),
        (";x\r\n", "", "`;` in the size of a chunk"),
        ("x\r\n", "", "`x` in the size of a chunk"),
        (" 5\r\n", "", "` ` in the size of a chunk"),
        ("0x5\r\n", "", "`x` in the size of a chunk"),
        ("-5\r\n", "", "`-` in the size of a chunk"),
        ("5 5\r\n", "", "`5` in the size of a chunk"),
        ("2 erfr\r\n", "", "`e` in the size of a chunk"),
        ("5\rfoo", "", "`f` in the size of a chunk"),
        ("5;a\rb", "", "`b` in the size of a chunk"),
        ("1ffffffffffffffff\r\n", "", "a chunk size beyond 64 bits"),
        ("12345678123456789\r\n", "", "a chunk size beyond 64 bits"),
        ("5\r\nhello world\r\n", "hello", "a chunk is longer than its size"),
        ("2\r\na\n\r\nILLEGAL\r\n", "a\n", "`I` in the size of a chunk"),
        ("5\r\nhello\rx", "hello", "a chunk is longer than its size"),
        ("0\r\nX: a\0b\r\n\r\n", "", "a NUL in a trailer"),
        ("0\r\n\rX", "", "a CR that ends no line in a trailer"),
    ] {
        let (read, end, _) = check(bytes.as_bytes());
        assert_eq!(
            (read.as_slice(), end),
            (body.as_bytes(), Err(expected.to_owned())),
            "{bytes:?}"
        );
    }
    let (_, end, _) = read(b"ffffffffffffffff\r\nabc", &[]);
    assert_eq!(end, Ok((false, false)));
}

#[test]
fn lines_that_carry_nothing_are_bounded() {
    let long = |count: u32| "x".repeat(count as usize);
    let zeros = "0".repeat(PADDING_BYTES_MAX as usize + 2);
    let blanks = " ".repeat(PADDING_BYTES_MAX as usize + 1);
    let each = format!("1;{}\r\nx\r\n", long(100)).repeat(EXTENSION_BYTES_MAX as usize / 100 + 1);
    for (bytes, expected) in [
        (format!("{zeros}1"), "a chunk size with too many zeros"),
        (format!("1{blanks}"), "a chunk size with too many blanks"),
        (format!("1;{}", long(EXTENSION_BYTES_MAX + 1)), "too many chunk extensions"),
        (each, "too many chunk extensions"),
        (format!("0\r\n{}", long(TRAILER_BYTES_MAX + 1)), "too many trailers"),
        (format!("0\r\n{}", "X: y\r\n".repeat(10_000)), "too many trailers"),
    ] {
        assert_eq!(read(bytes.as_bytes(), &[]).1, Err(expected.to_owned()));
    }
}

#[test]
fn a_million_chunks_of_one_byte_take_linear_time() {
    let bytes = [b"1\r\nx\r\n".repeat(1_000_000), b"0\r\n\r\n".to_vec()].concat();
    let (body, end, _) = read(&bytes, &[]);
    assert_eq!((body.len(), end), (1_000_000, Ok((true, false))));
}

fn likely() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"5\r\nhello\r\n"[..]),
        Just(&b"0\r\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r"[..]),
        Just(&b";x"[..]),
        Just(&b" "[..]),
        Just(&b"1"[..]),
        Just(&b"ff"[..]),
        Just(&b"X: y"[..]),
        Just(&b"\0"[..]),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(
        likely in likely(),
        any in proptest::collection::vec(any::<u8>(), 0..60),
        mut cuts in proptest::collection::vec(0_usize..100, 0..6),
    ) {
        cuts.sort_unstable();
        for bytes in [&likely, &any, &[likely.as_slice(), &any].concat()] {
            prop_assert_eq!(read(bytes, &cuts), read(bytes, &[]));
        }
    }

    #[test]
    fn what_is_cut_into_chunks_comes_back(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
    ) {
        let mut sent = Vec::new();
        for piece in &pieces {
            sent.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            sent.extend_from_slice(piece);
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(b"0\r\n\r\n");
        prop_assert_eq!(read(&sent, &[]), (pieces.concat(), Ok((true, false)), 0));
    }
}
