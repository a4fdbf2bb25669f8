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

/// The largest body.
const LARGEST: u64 = 10 << 20;

/// What reads bodies that have so many KiB of credit, and as many for places.
fn reader(kib: u64) -> BodyReader {
    let clock = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    BodyReader::new(2 * kib * 1024, clock)
}

/// A body in pieces of 100,000 bytes, each second one.
async fn heavy(pieces: usize, reader: &BodyReader) -> Body {
    static PIECE: [u8; 100_000] = [b'.'; 100_000];
    let piece = (Duration::from_secs(1), Ok(std::str::from_utf8(&PIECE).unwrap()));
    let mut script = Script::new(std::iter::repeat_n(piece, pieces));
    let total = Duration::from_secs(600);
    let deadline = Timestamp::from_secs(600);
    let limits = BodyLimits { bytes_max: LARGEST, oversize: Oversize::Truncate, deadline, total };
    reader.read(&mut script, None, &limits).await
}

#[tokio::test(start_paused = true)]
async fn bodies_share_a_credit_and_hold_it_until_nobody_has_them() {
    let reader = reader(1 << 10);
    let small = heavy(0, &reader).await;
    assert_eq!((small.cut, reader.memory.used()), (None, 0));
    let first = heavy(5, &reader).await;
    assert_eq!((first.bytes.len(), &first.cut), (500_000, &None));
    assert_eq!(reader.memory.used(), units(500_000), "what it grew to is given back");
    let part = first.bytes.slice(10..20);
    drop(first);
    assert_eq!(reader.memory.used(), units(500_000));
    let others = (reader.places.take(1 << 10).await, reader.memory.take(200).await);
    let mut second = std::pin::pin!(heavy(5, &reader));
    let early = tokio::time::timeout(Duration::from_secs(60), second.as_mut()).await;
    assert!(early.is_err(), "there is no room for it");
    drop(part);
    let second = second.await;
    assert_eq!((second.bytes.len(), second.cut), (500_000, None), "it was not read meanwhile");
    drop((others, second.bytes));
    assert_eq!((reader.memory.used(), reader.places.used()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn bodies_that_want_the_memory_of_each_other_come_one_after_the_other() {
    let reader = reader(2 << 10);
    let bodies = (0..30).map(async |_| {
        let body = heavy(8, &reader).await;
        (body.bytes.len(), body.cut)
    });
    for body in futures::future::join_all(bodies).await {
        assert_eq!(body, (800_000, None));
    }
    assert_eq!((reader.memory.used(), reader.places.used()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_slow_in_its_place_ends_with_what_came() {
    let reader = reader(100);
    let alone = heavy(20, &reader).await;
    assert_eq!((alone.bytes.len(), alone.cut), (2_000_000, None), "larger than all the credit");
    assert_eq!(reader.places.used(), 100, "it has its place as long as it is there");
    drop(alone.bytes);
    let read = async |pieces| {
        let body = heavy(pieces, &reader).await;
        (body.bytes.len(), body.cut.map(|(cut, why)| (cut, why.to_string())))
    };
    let (slow, other) = futures::join!(read(60), read(5));
    let why = "the scarce-memory limit of 30 s passed".to_owned();
    assert_eq!(slow.1, Some((Truncation::Time, why)));
    assert!((3_000_000..3_300_000).contains(&slow.0), "{}", slow.0);
    assert_eq!(other, (500_000, None));
    assert_eq!((reader.memory.used(), reader.places.used()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_in_a_place_goes_on_without_it_once_there_is_credit() {
    let reader = reader(20 << 10);
    let held = reader.memory.take(20 << 10).await;
    let mut slow = std::pin::pin!(heavy(90, &reader));
    assert!(tokio::time::timeout(Duration::from_secs(20), slow.as_mut()).await.is_err());
    assert_eq!(reader.places.used(), units(usize::try_from(LARGEST).unwrap()));
    drop(held);
    let slow = slow.await;
    assert_eq!((slow.bytes.len(), slow.cut, reader.places.used()), (9_000_000, None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_had_a_place_keeps_of_it_what_it_needs() {
    let reader = reader(10 << 10);
    let held = reader.memory.take((10 << 10) - 300).await;
    let body = heavy(5, &reader).await;
    assert_eq!((body.bytes.len(), body.cut), (500_000, None));
    assert_eq!(reader.memory.used() + reader.places.used(), (10 << 10) - 300 + units(500_000));
    drop((held, body.bytes));
    assert_eq!((reader.memory.used(), reader.places.used()), (0, 0));
}
