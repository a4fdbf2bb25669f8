//! Connections that are used again, and what happens when they are not there any more.

use std::io::{Read as _, Write as _};

use super::*;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The first connection answers once, then does with the second request what it is told.
async fn worn_out(end: &'static [u8]) -> (SocketAddr, mpsc::Receiver<SocketAddr>) {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let handler: Handler = Arc::new(move |mut stream| {
        let is_first = is_first.swap(false, std::sync::atomic::Ordering::Relaxed);
        Box::pin(async move {
            while read_head(&mut stream).await.is_some() {
                stream.write_all(ANSWER).await.unwrap();
                if is_first {
                    read_head(&mut stream).await;
                    stream.write_all(end).await.unwrap();
                    return;
                }
            }
        })
    });
    serve("127.0.0.1:0", handler).await
}

#[tokio::test]
async fn a_request_that_a_kept_connection_did_not_answer_goes_over_a_new_one() {
    let (address, mut accepted) = worn_out(b"").await;
    let client = client();
    let url = format!("http://site.test:{}/", address.port());
    for _ in 0..3 {
        let got = run(&client, request(&url, address)).await.unwrap();
        assert_eq!(got.body.as_ref(), b"ok");
    }
    assert_eq!(count(&mut accepted), 2);
}

/// RFC 9110 15.5.9: servers say so on a connection that was idle for too long for them.
#[tokio::test]
async fn a_time_out_told_on_a_kept_connection_is_no_answer_and_on_a_new_one_is() {
    let late = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let (address, mut accepted) = worn_out(late).await;
    let client = client();
    let url = format!("http://site.test:{}/", address.port());
    for _ in 0..3 {
        let got = run(&client, request(&url, address)).await.unwrap();
        assert_eq!((got.status, got.body.as_ref()), (200, &b"ok"[..]));
    }
    assert_eq!(count(&mut accepted), 2);
    let got = answered(std::str::from_utf8(late).unwrap(), true).await.unwrap();
    assert_eq!(got.status, 408);
}

/// The runtime hears of bytes when it looks for events; the kernel has them before.
#[tokio::test]
async fn bytes_that_the_runtime_has_not_heard_of_are_seen_before_a_connection_is_used() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (go, ready) = std::sync::mpsc::channel::<()>();
    let (told, stray) = std::sync::mpsc::channel::<()>();
    tokio::task::spawn_blocking(move || {
        for answer in ["first", "again"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
            write!(stream, "{head}{answer}").unwrap();
            if answer == "first" {
                ready.recv().unwrap();
                write!(stream, "{head}STRAY").unwrap();
                told.send(()).unwrap();
                std::mem::forget(stream);
            }
        }
    });
    let client = client();
    let url = format!("http://site.test:{}/", address.port());
    let got = run(&client, request(&url, address)).await.unwrap();
    assert_eq!(got.body.as_ref(), b"first");
    go.send(()).unwrap();
    // Nothing is awaited between the arrival and the next request.
    stray.recv().unwrap();
    let got = run(&client, request(&url, address)).await.unwrap();
    assert_eq!(got.body.as_ref(), b"again");
}

#[tokio::test]
async fn an_answer_that_began_is_not_asked_for_again() {
    let (address, mut accepted) = worn_out(b"HTTP/1.1 2").await;
    let client = client();
    let url = format!("http://site.test:{}/", address.port());
    run(&client, request(&url, address)).await.unwrap();
    let failure = run(&client, request(&url, address)).await.unwrap_err();
    assert_eq!(failure.outcome, Outcome::Protocol);
    assert_eq!(count(&mut accepted), 1);
}

#[tokio::test]
async fn a_new_connection_without_an_answer_is_a_failure() {
    let (address, mut accepted) = canned("", true).await;
    let client = client();
    let url = format!("http://site.test:{}/", address.port());
    let failure = run(&client, request(&url, address)).await.unwrap_err();
    assert!(failure.reason.to_string().contains("without an answer"), "{}", failure.reason);
    assert_eq!(count(&mut accepted), 1);
}

#[tokio::test]
async fn a_connection_closed_or_spoken_on_while_idle_is_not_used() {
    for noise in [&b""[..], b"HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let (told, mut done) = mpsc::channel(10);
        let handler: Handler = Arc::new(move |mut stream| {
            let told = told.clone();
            Box::pin(async move {
                read_head(&mut stream).await;
                stream.write_all(ANSWER).await.unwrap();
                stream.write_all(noise).await.unwrap();
                drop(stream);
                told.send(()).await.unwrap();
            })
        });
        let (address, mut accepted) = serve("127.0.0.1:0", handler).await;
        let client = client();
        let url = format!("http://site.test:{}/", address.port());
        for _ in 0..3 {
            let got = run(&client, request(&url, address)).await.unwrap();
            assert_eq!((got.status, got.body.as_ref()), (200, &b"ok"[..]));
            done.recv().await.unwrap();
        }
        assert_eq!(count(&mut accepted), 3);
    }
}

/// Two requests for a body that nobody wants: how many connections they took.
async fn unwanted(framing: &str, body: &str) -> usize {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n{framing}\r\n\r\n{body}");
    let (address, mut accepted) = canned(answer, false).await;
    let client = client();
    for _ in 0..2 {
        let mut request = request(&format!("http://site.test:{}/", address.port()), address);
        request.wanted = Wanted::new(|_, content_type| content_type != "video/mp4");
        let got = run(&client, request).await.unwrap();
        assert_eq!((got.truncated, got.body.len()), (Some(Truncation::Unspecified), 0));
    }
    let taken = count(&mut accepted);
    assert_eq!(client.origins(), 2 - taken);
    taken
}

#[tokio::test]
async fn a_body_that_is_left_takes_its_connection_with_it() {
    assert_eq!(unwanted("Content-Length: 3", "ok").await, 2, "it is not all here");
    let long = "x".repeat(100_000);
    assert_eq!(unwanted("Content-Length: 100000", &long).await, 2, "it is too long");
    assert_eq!(unwanted("Connection: close\r\nContent-Length: 2", "ok").await, 2);
    assert_eq!(unwanted("Content-Length: 2", "ok!").await, 2, "something is behind it");
}

#[tokio::test]
async fn a_short_body_that_nobody_wants_is_passed_over() {
    assert_eq!(unwanted("Content-Length: 2", "ok").await, 1);
    assert_eq!(unwanted("Content-Length: 0", "").await, 1);
    assert_eq!(unwanted("Transfer-Encoding: chunked", "2\r\nok\r\n0\r\n\r\n").await, 1);
}
