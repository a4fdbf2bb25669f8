//! RFC 9112 6.3 and 9.3 as tables.

use super::*;

fn answer(lines: &str, status: u16, is_http_10: bool) -> Head {
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_owned(), Bytes::copy_from_slice(value.trim().as_bytes()))
    };
    Head {
        status,
        is_http_10,
        status_line: Bytes::new(),
        headers: lines.split('|').filter(|line| !line.is_empty()).map(pair).collect(),
        is_odd: false,
    }
}

fn read(lines: &str) -> Result<Framed, String> {
    framed(&answer(lines, 200, false))
}

fn is(framing: Framing, is_kept: bool) -> Result<Framed, String> {
    Ok(Framed { framing, is_kept })
}

#[test]
fn coding_and_length_say_where_a_body_ends() {
    for (lines, expected) in [
        ("", is(Framing::ToClose, false)),
        ("Content-Length: 0", is(Framing::Length(0), true)),
        ("Content-Length: 2", is(Framing::Length(2), true)),
        ("content-LENGTH: 0002", is(Framing::Length(2), true)),
        ("Content-Length: 2|Content-Length: 2", is(Framing::Length(2), true)),
        ("Content-Length: 2, 2 ,2", is(Framing::Length(2), true)),
        ("Content-Length: 18446744073709551615", is(Framing::Length(u64::MAX), true)),
        ("Content-Length: 99999999999999999999", is(Framing::Length(u64::MAX), true)),
        ("Transfer-Encoding: chunked", is(Framing::Chunked, true)),
        ("transfer-encoding: ChunKed", is(Framing::Chunked, true)),
        ("Transfer-Encoding: , chunked", is(Framing::Chunked, true)),
        ("Transfer-Encoding: identity, chunked", is(Framing::Chunked, true)),
        ("Transfer-Encoding: chunked, chunked", is(Framing::Chunked, false)),
        ("Transfer-Encoding: chunked|Transfer-Encoding: chunked", is(Framing::Chunked, false)),
        ("Content-Length: 42|Transfer-Encoding: chunked", is(Framing::Chunked, false)),
        ("Content-Length: x|Transfer-Encoding: chunked", is(Framing::Chunked, false)),
        ("Transfer-Encoding: identity|Content-Length: 2", is(Framing::Length(2), false)),
        ("Transfer-Encoding: identity, identity", is(Framing::ToClose, false)),
        ("Transfer-Encoding:", is(Framing::ToClose, false)),
    ] {
        assert_eq!(read(lines), expected, "{lines}");
    }
}

#[test]
fn what_cannot_be_trusted_is_refused() {
    for (lines, expected) in [
        ("Content-Length: 5O", "`5O` is no Content-Length"),
        ("Content-Length: -3", "`-3` is no Content-Length"),
        ("Content-Length: +3", "`+3` is no Content-Length"),
        ("Content-Length: 0x3", "`0x3` is no Content-Length"),
        ("Content-Length: 3.0", "`3.0` is no Content-Length"),
        ("Content-Length: 3 3", "`3 3` is no Content-Length"),
        ("Content-Length:", "`` is no Content-Length"),
        ("Content-Length: 2,", "`` is no Content-Length"),
        ("Content-Length: 2|Content-Length: 5", "two Content-Lengths that differ"),
        ("Content-Length: 2, 5", "two Content-Lengths that differ"),
        ("Transfer-Encoding: gzip, chunked", "the transfer coding `gzip` was not asked for"),
        ("Transfer-Encoding: gzip", "the transfer coding `gzip` was not asked for"),
        ("Transfer-Encoding: chunked, gzip", "the transfer coding `gzip` was not asked for"),
        (
            "Transfer-Encoding: chunked, identity",
            "the transfer coding `identity` was not asked for",
        ),
        ("Transfer-Encoding: chunkedchunked", "the transfer coding `chunkedchunked` was not"),
        ("Transfer-Encoding: chunked abc", "the transfer coding `chunked abc` was not asked for"),
        (
            "Transfer-Encoding: \"chunked\"",
            "the transfer coding `\\\"chunked\\\"` was not asked for",
        ),
    ] {
        let why = read(lines).unwrap_err();
        assert!(why.starts_with(expected), "{lines}: {why}");
    }
}

#[test]
fn some_statuses_have_no_body_whatever_they_announce() {
    for status in [204, 304] {
        for lines in ["", "Content-Length: 5", "Content-Length: x", "Transfer-Encoding: chunked"] {
            assert_eq!(framed(&answer(lines, status, false)), is(Framing::NoBody, true), "{lines}");
        }
    }
    for status in [200, 205, 206, 301, 404, 999] {
        let framed = framed(&answer("Content-Length: 5", status, false));
        assert_eq!(framed, is(Framing::Length(5), true), "{status}");
    }
}

#[test]
fn a_connection_is_kept_where_both_versions_say_so() {
    for (lines, kept_10, kept_11) in [
        ("", false, true),
        ("Connection: keep-alive", true, true),
        ("Connection: Keep-Alive, Upgrade", true, true),
        ("Connection: close", false, false),
        ("Connection: x|Connection: keep-alive , Close", false, false),
        ("Connection: something-close, close-something", false, true),
        ("Proxy-Connection: close", false, true),
    ] {
        let lines = format!("Content-Length: 0|{lines}");
        let kept = |is_10| framed(&answer(&lines, 200, is_10)).unwrap().is_kept;
        assert_eq!((kept(true), kept(false)), (kept_10, kept_11), "{lines}");
    }
    let chunked = answer("Connection: keep-alive|Transfer-Encoding: chunked", 200, true);
    assert_eq!(framed(&chunked), is(Framing::Chunked, false));
    let odd = Head { is_odd: true, ..answer("Content-Length: 0", 200, false) };
    assert_eq!(framed(&odd), is(Framing::Length(0), false));
}
