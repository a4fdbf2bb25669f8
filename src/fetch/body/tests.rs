//! Bodies that come in pieces, too big, too late, or not to their end; on paused time.

use std::collections::VecDeque;

use futures::future::BoxFuture;

use super::*;
use crate::world::TokioClock;

/// What comes, each piece after its wait.
struct Script {
    pieces: VecDeque<(Duration, Result<&'static str, String>)>,
    clock: TokioClock,
    waiting: Option<BoxFuture<'static, ()>>,
}

impl Script {
    fn new(pieces: impl Iterator<Item = (Duration, Result<&'static str, String>)>) -> Self {
        let clock = TokioClock::starting_at(Timestamp::EPOCH);
        Self { pieces: pieces.collect(), clock, waiting: None }
    }
}

impl Arriving for Script {
    fn poll_into(
        &mut self,
        context: &mut Context<'_>,
        kept: &mut Kept,
    ) -> Poll<Result<Came, String>> {
        let Some((wait, _)) = self.pieces.front() else { return Poll::Ready(Ok(Came::Whole)) };
        let until = self.clock.now() + *wait;
        let waiting = self.waiting.get_or_insert_with(|| {
            let clock = TokioClock::starting_at(self.clock.now());
            Box::pin(async move { clock.sleep_until(until).await })
        });
        std::task::ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        let (_, piece) = self.pieces.pop_front().unwrap();
        let came =
            |text: &str| if kept.takes(text.as_bytes()) { Came::More } else { Came::TooMuch };
        Poll::Ready(piece.map(came))
    }
}

async fn body(
    pieces: &[(u64, Result<&'static str, &str>)],
    length: Option<u64>,
    bytes_max: u64,
    oversize: Oversize,
) -> (String, Option<Truncation>, Option<String>) {
    let clock = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    let pieces = pieces
        .iter()
        .map(|(wait, piece)| (Duration::from_secs(*wait), piece.map_err(str::to_owned)));
    let mut script = Script::new(pieces);
    let total = Duration::from_secs(60);
    let limits = BodyLimits { bytes_max, oversize, deadline: Timestamp::from_secs(60), total };
    let body = BodyReader::new(1 << 20, clock).read(&mut script, length, &limits).await;
    let (cut, why) = body.cut.unzip();
    (String::from_utf8(body.bytes.to_vec()).unwrap(), cut, why.map(|why| why.to_string()))
}

#[tokio::test(start_paused = true)]
async fn pieces_are_joined() {
    for length in [None, Some(9), Some(u64::MAX)] {
        let pieces = [(0, Ok("one")), (1, Ok("two")), (1, Ok("")), (1, Ok("six"))];
        let got = body(&pieces, length, 9, Oversize::Truncate).await;
        assert_eq!(got, ("onetwosix".to_owned(), None, None));
    }
    assert_eq!(body(&[], Some(0), 9, Oversize::Skip).await, (String::new(), None, None));
}

#[tokio::test(start_paused = true)]
async fn a_longer_body_is_cut_or_refused() {
    let pieces = [(0, Ok("one")), (0, Ok("two"))];
    for (max, kept) in [(0, ""), (2, "on"), (3, "one"), (5, "onetw")] {
        let (text, cut, why) = body(&pieces, None, max, Oversize::Truncate).await;
        assert_eq!((text.as_str(), cut), (kept, Some(Truncation::Length)));
        assert_eq!(why, Some(format!("the body limit of {max} passed")));
        let (text, cut, _) = body(&pieces, None, max, Oversize::Skip).await;
        assert_eq!((text.as_str(), cut), ("", Some(Truncation::Length)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_announced_length_ends_a_skipped_body_before_it_is_read() {
    let never = [(u64::MAX / 2, Ok("never comes"))];
    let (text, cut, _) = body(&never, Some(10), 9, Oversize::Skip).await;
    assert_eq!((text.as_str(), cut), ("", Some(Truncation::Length)));
}

#[tokio::test(start_paused = true)]
async fn what_came_before_the_time_limit_is_kept() {
    let drip = [(20, Ok("a")), (20, Ok("b")), (19, Ok("c")), (2, Ok("d"))];
    let (text, cut, why) = body(&drip, Some(4), 9, Oversize::Truncate).await;
    assert_eq!((text.as_str(), cut), ("abc", Some(Truncation::Time)));
    assert_eq!(why.as_deref(), Some("the whole-exchange limit of 1 min passed"));
}

#[tokio::test(start_paused = true)]
async fn what_came_before_the_peer_went_away_is_kept() {
    let pieces = [(0, Ok("half")), (0, Err("reset"))];
    let (text, cut, why) = body(&pieces, Some(8), 9, Oversize::Truncate).await;
    assert_eq!((text.as_str(), cut), ("half", Some(Truncation::Disconnect)));
    assert_eq!(why.as_deref(), Some("not HTTP as it should be: reset"));
}

#[test]
fn room_grows_with_what_has_come_up_to_what_was_announced() {
    for (announced, max) in [(1 << 20, u64::MAX), (0, u64::MAX), (u64::MAX, 1 << 20), (0, 1 << 20)]
    {
        let mut kept = Kept::new(announced, max);
        let piece = [b'.'; 1000];
        while kept.bytes.len() + piece.len() <= 1 << 20 {
            assert!(kept.takes(&piece));
            let most = kept.bytes.len() * ROOM_FACTOR;
            assert!(kept.bytes.capacity() <= most, "{} of {most}", kept.bytes.capacity());
        }
        if announced.max(1).min(max) == 1 << 20 {
            assert_eq!(kept.bytes.capacity(), 1 << 20);
        }
    }
}

#[test]
fn no_room_is_made_before_anything_came() {
    let kept = Kept::new(1 << 40, 1 << 40);
    assert_eq!(kept.bytes.capacity(), 0);
    assert_eq!(kept.into_bytes(), Bytes::new());
}

/// What reads bodies with so many bytes for all of them.
fn reader(bytes: u64) -> BodyReader {
    BodyReader::new(bytes, Arc::new(TokioClock::starting_at(Timestamp::EPOCH)))
}

/// A body in pieces of 100,000 bytes, each second one.
async fn heavy(pieces: usize, reader: &BodyReader) -> Body {
    static PIECE: [u8; 100_000] = [b'.'; 100_000];
    let piece = (Duration::from_secs(1), Ok(std::str::from_utf8(&PIECE).unwrap()));
    let mut script = Script::new(std::iter::repeat_n(piece, pieces));
    let total = Duration::from_secs(600);
    let deadline = Timestamp::from_secs(600);
    let limits = BodyLimits { bytes_max: 10 << 20, oversize: Oversize::Truncate, deadline, total };
    reader.read(&mut script, None, &limits).await
}

#[tokio::test(start_paused = true)]
async fn bodies_share_a_credit_and_hold_it_until_nobody_has_them() {
    let reader = reader(1 << 20);
    let small = heavy(0, &reader).await;
    assert_eq!((small.cut, reader.memory.used()), (None, 0));
    let first = heavy(5, &reader).await;
    assert_eq!((first.bytes.len(), &first.cut), (500_000, &None));
    assert_eq!(reader.memory.used(), units(500_000), "what it grew to is given back");
    let part = first.bytes.slice(10..20);
    drop(first);
    assert_eq!(reader.memory.used(), units(500_000));
    let mut second = std::pin::pin!(heavy(8, &reader));
    let early = tokio::time::timeout(Duration::from_secs(20), second.as_mut()).await;
    assert!(early.is_err(), "there is no room for it");
    drop(part);
    let second = second.await;
    assert_eq!((second.bytes.len(), second.cut), (800_000, None), "it was not read meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_gets_no_memory_ends_with_what_came() {
    let reader = reader(1 << 20);
    let held = reader.memory.take(1 << 10).await;
    let body = heavy(5, &reader).await;
    let (cut, why) = body.cut.unzip();
    assert_eq!((body.bytes.len(), cut), (100_000, Some(Truncation::Time)));
    assert_eq!(why.unwrap().to_string(), "the wait-for-memory limit of 30 s passed");
    drop((held, body.bytes));
    assert_eq!(reader.memory.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_larger_than_the_whole_credit_arrives_alone() {
    let reader = reader(100 << 10);
    let body = heavy(30, &reader).await;
    assert_eq!((body.bytes.len(), body.cut), (3_000_000, None));
    assert_eq!(reader.memory.used(), 100);
    drop(body.bytes);
    // Two of them: one has all, the other ends.
    let (one, two) = futures::join!(heavy(60, &reader), heavy(60, &reader));
    let mut cut = [one.cut.is_some(), two.cut.is_some()];
    cut.sort_unstable();
    assert_eq!(cut, [false, true]);
}
