//! Whatever a server answers: bytes on a socket, and what the exchange makes of them.

use super::*;
use crate::fetch::http1::INTERIM_MAX;

/// What came of an answer: status, body, where it was cut; or the sentence of the failure.
type Came = Result<(u16, String, Option<Truncation>), String>;

fn ok(body: &str) -> Came {
    Ok((200, body.to_owned(), None))
}

fn cut(body: &str) -> Came {
    Ok((200, body.to_owned(), Some(Truncation::Disconnect)))
}

/// Two exchanges after each other with the same answer, and the connections they took.
async fn twice(answer: &str, close: bool) -> (Came, usize) {
    let (address, mut accepted) = canned(latin(answer), close).await;
    let client = client();
    let mut both = Vec::new();
    for _ in 0..2 {
        let url = format!("http://site.test:{}/", address.port());
        both.push(match run(&client, request(&url, address)).await {
            Ok(got) => Ok((got.status, got.body.escape_ascii().to_string(), got.truncated)),
            Err(failure) => Err(format!("{}: {}", failure.outcome, failure.reason)),
        });
    }
    assert_eq!(both[0], both[1], "{answer:?}");
    (both.remove(0), count(&mut accepted))
}

/// One character, one byte.
fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

/// A head with a body of two bytes.
fn with(lines: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 2\r\n\r\nok")
}

#[tokio::test]
async fn plain_answers_leave_their_connection_for_the_next() {
    for answer in [
        with(""),
        with("Content-Length: 2\r\n"),
        with("K: \u{eb}\u{d2}\u{c1}\u{cb}\r\n"),
        "HTTP/1.1 200 \r\nContent-Length: 2, 2\r\n\r\nok".to_owned(),
        "HTTP/1.1 200\r\nServer:\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 N\u{99}t\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x\r\nk\r\n0\r\nT:\r\n\r\n"
            .to_owned(),
        format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{}", with("")),
    ] {
        assert_eq!(twice(&answer, false).await, (ok("ok"), 1), "{answer:?}");
    }
    for status in [204, 304] {
        let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(twice(&answer, false).await, (Ok((status, String::new(), None)), 1));
    }
}

#[tokio::test]
async fn odd_heads_are_read_as_browsers_do_and_their_connection_is_left() {
    for answer in [
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok".to_owned(),
        format!("\r\n\r\n{}", with("")),
        "HTTP/1.1   200   OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok".to_owned(),
        with("X-Long: one\r\n two\r\n\tthree\r\n"),
        with(" Folded: first\r\n"),
        with("Oops this is a PHP Warning: no wait\r\nNoColonHere\r\n"),
        with("<!DOCTYPE html>\r\n"),
        with(": hello\r\n"),
        with("X-\u{c3}\u{a9}: 1\r\n"),
        with("Set-Cookie: a=\u{1}b\r\n"),
    ] {
        assert_eq!(twice(&answer, false).await, (ok("ok"), 2), "{answer:?}");
    }
    let got = answered(&with("X-Long: one\r\n two\r\n\tthree\r\n"), false).await.unwrap();
    assert_eq!(header(&got.headers, "x-long"), Some("one two three"));
}

#[tokio::test]
async fn heads_are_kept_as_sent() {
    let got = answered(&with("X-b: 1\r\nset-COOKIE: a\r\nX-B:  2 \r\nX-b: 1\r\n"), false).await;
    let got = got.unwrap();
    let lines = got.headers.iter().map(|(name, value)| format!("{name}={}", value.escape_ascii()));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        ["X-b=1", "set-COOKIE=a", "X-B=2", "X-b=1", "Content-Length=2"]
    );
    assert_eq!(got.status_line.as_deref(), Some(&b"HTTP/1.1 200 OK"[..]));
    let got = answered("HTTP/1.0 404 Weg \r\nContent-Length: 0\r\n\r\n", false).await.unwrap();
    assert_eq!(got.status_line.as_deref(), Some(&b"HTTP/1.0 404 Weg "[..]));
}

#[tokio::test]
async fn what_is_no_http_is_refused_at_once() {
    for (answer, expected) in [
        ("SSH-2.0-OpenSSH_9.2p1\r\n", "it begins with `SSH-2.0-OpenSSH"),
        ("<html><a href=\"/x\">x</a></html>", "it begins with `<html>"),
        ("ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n\u{ff}\u{fb}", "no HTTP/1 response"),
        ("HTTP/2 200\r\nContent-Length: 0\r\n\r\n", "no HTTP/1 response"),
        ("HTTP/0.9 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("RTSP/1.0 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("\0\0\0\0\0\0\0\0", "no HTTP/1 response"),
        ("garbage HTTP/1.1 200 OK\r\n\r\n", "no HTTP/1 response"),
        ("HTTP/1.2 200 OK\r\n\r\n", "neither HTTP/1.0 nor HTTP/1.1"),
        ("HTTP/1.1 000 \r\n\r\n", "000 is no status"),
        ("HTTP/1.1 -200 OK\r\n\r\n", "no status of three digits"),
        ("HTTP/1.1 01234567890123456789 OK\r\n\r\n", "no status of three digits"),
        ("HTTP/1.1 200 OK\r\nX-N: a\0b\r\n\r\n", "a NUL"),
        ("HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", "a CR that ends no line"),
        ("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n", "switches protocols"),
    ] {
        let (came, connections) = twice(answer, false).await;
        let why = came.unwrap_err();
        let begins = "protocol: not HTTP as it should be: ";
        assert!(why.starts_with(begins) && why.contains(expected), "{answer:?}: {why}");
        assert_eq!(connections, 2);
    }
}

#[tokio::test]
async fn lengths_and_codings_that_cannot_be_trusted_are_refused() {
    for (lines, expected) in [
        ("Content-Length: 5O", "`5O` is no Content-Length"),
        ("Content-Length: -3", "`-3` is no Content-Length"),
        ("Content-Length: ", "`` is no Content-Length"),
        ("Content-Length: 2\r\nContent-Length: 5", "two Content-Lengths that differ"),
        ("Transfer-Encoding: gzip, chunked", "`gzip` was not asked for"),
        ("Transfer-Encoding: chunked, identity", "`identity` was not asked for"),
        ("Transfer-Encoding: something", "`something` was not asked for"),
    ] {
        let (came, _) = twice(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\nhello"), false).await;
        let why = came.unwrap_err();
        assert!(why.starts_with("protocol: ") && why.contains(expected), "{lines}: {why}");
    }
}

#[tokio::test]
async fn bodies_end_as_they_are_framed() {
    let plain = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}");
    let old = |lines: &str| format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{lines}");
    let chunked = |rest: &str| plain(&format!("Transfer-Encoding: chunked\r\n{rest}"));
    let chunks = "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let identity = "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok";
    let trailers = format!("\r\n2\r\nok\r\n0\r\n{}", "T: u\r\n".repeat(9_000));
    let extension = format!("\r\n2;{}\r\nok\r\n0\r\n\r\n", "x".repeat(20_000));
    for (answer, close, expected) in [
        // By length.
        (plain("Content-Length: 5\r\n\r\nhello world"), false, ok("hello")),
        (plain("Content-Length: 9\r\n\r\nhello"), true, cut("hello")),
        (plain("Content-Length: 99999999999999999999\r\n\r\nok"), true, cut("ok")),
        (plain(identity), false, ok("ok")),
        (plain("Connection: close\r\nContent-Length: 2\r\n\r\nok"), false, ok("ok")),
        // By chunks.
        (chunked("Content-Length: 42\r\n\r\n2\r\nok\r\n0\r\n\r\n"), false, ok("ok")),
        (chunked("\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"), false, ok("ok")),
        (chunked("\r\n2 \r\nok\r\n0\r\n\r\n"), false, ok("ok")),
        (chunked("\r\n2\nok\n0\n\n"), false, ok("ok")),
        (chunked(chunks), false, ok("ok")),
        (old(chunks), false, ok("ok")),
        (chunked("\r\n2\r\nok\r\n0\r\n"), true, ok("ok")),
        (chunked("\r\n2\r\nok\r\n"), true, cut("ok")),
        (chunked("\r\n2\r\nok\r\nffffffffffffffffff\r\n"), false, cut("ok")),
        (chunked("\r\n2\r\nokay\r\n0\r\n\r\n"), false, cut("ok")),
        (chunked("\r\n2\r\nok\r\n0\r\nT: \0\r\n\r\n"), false, cut("ok")),
        (chunked(&trailers), false, cut("ok")),
        (chunked(&extension), false, cut("")),
        // By closing.
        (plain("\r\nok"), true, ok("ok")),
        (old("\r\nok"), true, ok("ok")),
    ] {
        assert_eq!(twice(&answer, close).await, (expected, 2), "{answer:?}");
    }
}

#[tokio::test]
async fn stray_bytes_are_never_another_answer() {
    for stray in ["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "x", "\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{stray}");
        assert_eq!(twice(&answer, false).await, (ok("ok"), 2), "{stray:?}");
    }
    let answer = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(twice(answer, false).await, (Ok((204, String::new(), None)), 2));
}

#[tokio::test]
async fn interim_answers_without_end_are_refused() {
    let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX as usize + 1);
    let (came, _) = twice(&many, false).await;
    assert!(came.unwrap_err().contains("interim responses"));
}

/// Writes one piece after the other, without an end.
async fn endless(begin: &'static str, piece: &'static str) -> SocketAddr {
    let handler: Handler = Arc::new(move |mut stream| {
        Box::pin(async move {
            read_head(&mut stream).await;
            stream.write_all(begin.as_bytes()).await.unwrap();
            while stream.write_all(piece.as_bytes()).await.is_ok() {}
        })
    });
    serve("127.0.0.1:0", handler).await.0
}

#[tokio::test]
async fn what_never_ends_is_ended() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (begin, piece, truncated) in [
        ("HTTP/1.1 200 OK\r\n\r\n", "endless", Some(Truncation::Length)),
        (chunked, "4\r\nmore\r\n", Some(Truncation::Length)),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            "X: y\r\n",
            Some(Truncation::Disconnect),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "00000000",
            Some(Truncation::Disconnect),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            "xxxxxxxx",
            Some(Truncation::Disconnect),
        ),
    ] {
        let address = endless(begin, piece).await;
        let client = client();
        let got = run(&client, request(&format!("http://site.test:{}/", address.port()), address));
        assert_eq!(got.await.unwrap().truncated, truncated, "{begin:?} {piece:?}");
    }
    for (begin, piece, outcome) in [
        ("", "\r\n", Outcome::TooLarge),
        ("HTTP/1.1 200 OK\r\nX: ", "xxxxxxxx", Outcome::TooLarge),
        ("HTTP/1.1 200 OK\r\n", "no header\r\n", Outcome::TooLarge),
        ("HTTP/1.1 200 OK\r\n", "X: y\r\n", Outcome::TooLarge),
        ("", "HTTP/1.1 102 Processing\r\n\r\n", Outcome::Protocol),
        ("", "noise", Outcome::Protocol),
    ] {
        let address = endless(begin, piece).await;
        let client = client();
        let got = run(&client, request(&format!("http://site.test:{}/", address.port()), address));
        let failure = got.await.unwrap_err();
        assert_eq!(failure.outcome, outcome, "{begin:?} {piece:?}: {:?}", failure.reason);
    }
}

#[tokio::test]
async fn a_reset_keeps_what_came() {
    for (head, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", Some(Truncation::Disconnect)),
        ("HTTP/1.1 200 OK\r\n\r\n", Some(Truncation::Disconnect)),
    ] {
        let (told, mut asked) = mpsc::channel::<tokio::sync::oneshot::Sender<()>>(1);
        let handler: Handler = Arc::new(move |mut stream: TcpStream| {
            let told = told.clone();
            Box::pin(async move {
                read_head(&mut stream).await;
                stream.write_all(format!("{head}hello").as_bytes()).await.unwrap();
                stream.set_zero_linger().unwrap();
                // A reset overtakes what nobody has read yet: the reader says when it has.
                let (done, read) = tokio::sync::oneshot::channel();
                told.send(done).await.unwrap();
                read.await.ok();
            })
        });
        let (address, _accepted) = serve("127.0.0.1:0", handler).await;
        let client = client();
        let request = request(&format!("http://site.test:{}/", address.port()), address);
        let exchange = run(&client, request);
        let reset = async {
            let done = asked.recv().await.unwrap();
            // The exchange is polled between, and has read what there is.
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            drop(done);
        };
        let (got, ()) = tokio::join!(exchange, reset);
        let got = got.unwrap();
        assert_eq!((got.body.as_ref(), got.truncated), (&b"hello"[..], expected), "{head}");
        assert!(matches!(got.reason, Some(Reason::Protocol { .. })), "{:?}", got.reason);
    }
}

#[tokio::test]
async fn bytes_that_come_one_by_one_are_the_same_answer() {
    let answer = "HTTP/1.1 100 \r\n\r\nHTTP/1.1 200 OK\r\n\
                  Transfer-Encoding: chunked\r\nA: b\r\n\r\n\
                  3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n";
    let handler: Handler = Arc::new(move |mut stream| {
        Box::pin(async move {
            stream.set_nodelay(true).unwrap();
            while read_head(&mut stream).await.is_some() {
                for byte in answer.as_bytes() {
                    stream.write_all(&[*byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        })
    });
    let (address, mut accepted) = serve("127.0.0.1:0", handler).await;
    let client = client();
    for _ in 0..2 {
        let url = format!("http://site.test:{}/", address.port());
        let got = run(&client, request(&url, address)).await.unwrap();
        assert_eq!((got.body.as_ref(), got.truncated), (&b"abcde"[..], None));
        assert_eq!(header(&got.headers, "a"), Some("b"));
    }
    assert_eq!(count(&mut accepted), 1);
}
