//! Which connections are kept, and for how long; on paused time.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::fetch::http1::Stream;
use crate::world::TokioClock;

const IDLE: Duration = Duration::from_secs(30);

/// A connection and its other end.
async fn pair() -> (Connection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ours = TcpStream::connect(address).await.unwrap();
    let (theirs, _) = listener.accept().await.unwrap();
    (Connection::new(Stream::Plain(ours), address), theirs)
}

fn place(host: &str) -> Place {
    let key = HostKey::parse(&format!("http://{host}")).unwrap();
    (key, SocketAddr::from(([127, 0, 0, 1], 80)))
}

fn pool(places_max: usize) -> (Pool, Arc<TokioClock>) {
    let clock = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    (Pool::new(places_max, IDLE, Arc::clone(&clock) as _), clock)
}

/// Waits until the other end is closed.
async fn is_closed(mut end: TcpStream) -> bool {
    matches!(end.read(&mut [0]).await, Ok(0))
}

#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_closed_after_the_idle_time() {
    let (pool, clock) = pool(8);
    let (one, theirs) = pair().await;
    pool.keep(&place("a.test"), Link::Http1(one));
    clock.sleep(IDLE / 2).await;
    let (two, others) = pair().await;
    pool.keep(&place("b.test"), Link::Http1(two));
    assert!(is_closed(theirs).await);
    assert_eq!(clock.now(), Timestamp::EPOCH + IDLE);
    assert_eq!(pool.len(), 1);
    assert!(is_closed(others).await);
    assert_eq!(clock.now(), Timestamp::EPOCH + IDLE / 2 + IDLE);
    // Its keeper has gone with the last of them; the next gets another.
    let (three, theirs) = pair().await;
    pool.keep(&place("a.test"), Link::Http1(three));
    assert!(is_closed(theirs).await);
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn one_that_was_closed_or_speaks_unasked_is_not_used() {
    let (pool, _) = pool(8);
    let at = place("a.test");
    let (gone, theirs) = pair().await;
    pool.keep(&at, Link::Http1(gone));
    drop(theirs);
    let (loud, mut theirs) = pair().await;
    theirs.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").await.unwrap();
    pool.keep(&at, Link::Http1(loud));
    let (quiet, _theirs) = pair().await;
    let remote = quiet.remote();
    // The oldest is asked last.
    lock(&pool.kept).places.get_mut(&at).unwrap().idle.insert(0, (pool.clock.now(), quiet));
    // What the kernel knows has to reach the runtime.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let Some(Link::Http1(found)) = pool.take(&at) else { panic!("none is left") };
    assert_eq!(found.remote(), remote);
    assert!(pool.take(&at).is_none());
    assert_eq!(pool.len(), 0);
}

#[tokio::test]
async fn places_and_connections_of_a_place_are_bounded() {
    let (pool, _) = pool(2);
    let mut ends = Vec::new();
    for host in ["a.test", "b.test", "a.test", "c.test"] {
        let (link, end) = pair().await;
        ends.push(end);
        pool.keep(&place(host), Link::Http1(link));
    }
    assert_eq!(pool.len(), 2);
    assert!(pool.take(&place("b.test")).is_none());
    let elsewhere = (place("a.test").0, SocketAddr::from(([127, 0, 0, 2], 80)));
    assert!(pool.take(&elsewhere).is_none());
    for _ in 0..2 * IDLE_PER_ORIGIN {
        let (link, end) = pair().await;
        ends.push(end);
        pool.keep(&place("a.test"), Link::Http1(link));
    }
    let kept = std::iter::from_fn(|| pool.take(&place("a.test"))).count();
    assert_eq!(kept, IDLE_PER_ORIGIN);
}
