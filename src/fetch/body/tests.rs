//! Bodies that come in pieces, too big, too late, or not to their end; on paused time.

use std::collections::VecDeque;

use super::*;
use crate::world::TokioClock;

/// What comes, each piece after its wait.
struct Script(VecDeque<(Duration, Result<&'static str, String>)>, TokioClock);

#[async_trait]
impl Chunks for Script {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let Some((wait, piece)) = self.0.pop_front() else { return Ok(None) };
        self.1.sleep(wait).await;
        piece.map(|text| Some(Bytes::from(text)))
    }
}

async fn body(
    pieces: &[(u64, Result<&'static str, &str>)],
    length: Option<u64>,
    bytes_max: u64,
    oversize: Oversize,
) -> (String, Option<Truncation>, Option<String>) {
    let clock = TokioClock::starting_at(Timestamp::EPOCH);
    let pieces = pieces
        .iter()
        .map(|(wait, piece)| (Duration::from_secs(*wait), piece.map_err(str::to_owned)));
    let mut script = Script(pieces.collect(), TokioClock::starting_at(Timestamp::EPOCH));
    let total = Duration::from_secs(60);
    let limits = BodyLimits { bytes_max, oversize, deadline: Timestamp::from_secs(60), total };
    let body = read(&mut script, length, &limits, &clock).await;
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
    let mut kept = Kept::new(1 << 20);
    let piece = Bytes::from(vec![b'.'; 1000]);
    for _ in 0..2 {
        assert!(kept.takes(&piece, u64::MAX));
    }
    assert!(kept.joined.capacity() <= ROOM_FIRST, "{}", kept.joined.capacity());
    while kept.joined.len() + piece.len() <= 1 << 20 {
        assert!(kept.takes(&piece, u64::MAX));
        let most = (kept.joined.len() * ROOM_FACTOR).clamp(ROOM_FIRST, 1 << 20);
        assert!(kept.joined.capacity() <= most, "{} of {most}", kept.joined.capacity());
    }
    assert_eq!(kept.joined.capacity(), 1 << 20);
}

#[test]
fn a_small_piece_does_not_keep_the_buffer_it_was_read_into() {
    let buffer = Bytes::from(vec![b'.'; 4 * COPIED_MAX]);
    for (length, is_copied) in [(10, true), (COPIED_MAX, true), (COPIED_MAX + 1, false)] {
        let mut kept = Kept::new(0);
        assert!(kept.takes(&buffer.slice(..length), u64::MAX));
        let bytes = kept.into_bytes();
        assert_eq!((bytes.len(), bytes.as_ptr() != buffer.as_ptr()), (length, is_copied));
    }
}
