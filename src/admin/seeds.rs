//! Seeds in: a JSON object, JSON Lines, or plain text; answered once they are durable.
//!
//! A line that is no seed is refused by itself, with its number; the others go on.

use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use futures::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};

use super::body;
use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::{AdminState, Silence};
use crate::protocol::DiscoveryMsg;
use crate::protocol::discovery::{Seed, SeedAnswer, SeedResult};

/// The largest body, in bytes: about a million URLs.
const SEEDS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Seeds that discovery is given at once.
const BATCH: usize = 1000;

/// Batches under way at once (I8).
const BATCHES_AT_ONCE: usize = 8;

/// A batch must be durable by then.
const BATCH_DEADLINE: Duration = Duration::from_secs(60);

/// Characters of a line that is no seed, in its answer.
const SHOWN_CHARS_MAX: usize = 200;

/// The three forms.
pub(super) const FORMS: [&str; 3] = ["application/json", "application/x-ndjson", "text/plain"];

/// What became of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeedsAnswer {
    /// New and durable.
    pub accepted: u64,
    /// Known already.
    pub known: u64,
    /// Refused.
    pub refused: u64,
    /// Each, in the order given.
    pub results: Vec<SeedAnswer>,
}

/// A seed with its line, or what stands for a line that is none.
#[derive(Debug, PartialEq)]
enum Read {
    /// To be asked of discovery; with the line, where the form has lines.
    Seed(Option<u64>, Seed),
    /// Refused here.
    Refused(SeedAnswer),
}

/// A seed on its way, and the place of its answer.
struct Offered {
    place: usize,
    line: Option<u64>,
    seed: Seed,
}

/// `POST /v1/seeds`.
pub(super) async fn add(call: Call) -> Handled {
    let Call { state, headers, body, .. } = call;
    let form = body::media_type(&headers);
    if !form.as_deref().is_some_and(|form| FORMS.contains(&form)) {
        let found = form.as_deref().unwrap_or("none");
        let detail = format!("Content-Type is {found}; taken are {}", FORMS.join(", "));
        return Err(Problem::new(Kind::BadMediaType, detail).at_key("Content-Type"));
    }
    // Held until the answer is made: each request may keep a whole body in memory (I8).
    let _place = state.shared.seeding.take(1).await;
    let bytes = body::read(&state, body, SEEDS_BYTES_MAX).await?;
    let read = match form.as_deref() {
        Some("text/plain") => text_lines(&bytes)?,
        Some("application/x-ndjson") => json_lines(&bytes)?,
        _ => object(&bytes)?,
    };
    Ok(Json(offer(&state, read).await?).into_response())
}

/// Gives them to discovery in batches; answers in the order given.
///
/// A batch waits for a group commit, so several are under way at once: one after the other, a long
/// list would take a `data.flush_interval` for each.
async fn offer(state: &AdminState, read: Vec<Read>) -> Result<SeedsAnswer, Problem> {
    let mut places: Vec<Option<SeedAnswer>> = Vec::with_capacity(read.len());
    let mut offered = Vec::new();
    for item in read {
        match item {
            Read::Seed(line, seed) => {
                offered.push(Offered { place: places.len(), line, seed });
                places.push(None);
            }
            Read::Refused(refused) => places.push(Some(refused)),
        }
    }
    let mut offered = offered.into_iter();
    let batches = std::iter::from_fn(|| {
        let batch: Vec<_> = offered.by_ref().take(BATCH).collect();
        (!batch.is_empty()).then(|| offer_batch(state, batch))
    });
    let mut answers = stream::iter(batches).buffered(BATCHES_AT_ONCE);
    let mut sent = 0;
    while let Some(answered) = answers.next().await {
        let answered = answered.map_err(|silence| silent(&silence, sent))?;
        sent += answered.len();
        for (place, result) in answered {
            if let Some(empty) = places.get_mut(place) {
                *empty = Some(result);
            }
        }
    }
    let mut answer = SeedsAnswer::default();
    places.into_iter().flatten().for_each(|result| answer.count(result));
    Ok(answer)
}

fn silent(silence: &Silence, sent: usize) -> Problem {
    let detail = format!(
        "discovery {} after {sent} seeds; send all again, those that are in are known then",
        silence.words()
    );
    Problem::new(Kind::Unavailable, detail)
}

async fn offer_batch(
    state: &AdminState,
    batch: Vec<Offered>,
) -> Result<Vec<(usize, SeedAnswer)>, Silence> {
    let (places, seeds): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|offered| ((offered.place, offered.line), offered.seed)).unzip();
    let discovery = state.discovery().ok_or(Silence::Gone)?;
    let results =
        state.ask(&discovery, BATCH_DEADLINE, |port| DiscoveryMsg::Seeds(seeds, port)).await?;
    let numbered = places.into_iter().zip(results).map(|((place, line), mut result)| {
        if let (Some(line), Some(reason)) = (line, &result.reason) {
            result.reason = Some(format!("line {line}: {reason}"));
        }
        (place, result)
    });
    Ok(numbered.collect())
}

impl SeedsAnswer {
    fn count(&mut self, result: SeedAnswer) {
        match result.result {
            SeedResult::Accepted => self.accepted += 1,
            SeedResult::Known => self.known += 1,
            SeedResult::Refused => self.refused += 1,
        }
        self.results.push(result);
    }
}

/// The JSON object: one fault refuses it whole, named by field and line.
fn object(bytes: &[u8]) -> Result<Vec<Read>, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        urls: Vec<Seed>,
    }
    let given: Given = body::json(bytes)?;
    let check = |(place, seed): (usize, Seed)| match fault(&seed) {
        None => Ok(Read::Seed(None, seed)),
        Some(why) => {
            Err(Problem::new(Kind::BadBody, why).at_key(format!("urls[{place}].priority")))
        }
    };
    given.urls.into_iter().enumerate().map(check).collect()
}

/// JSON Lines: one object a line, blank lines left out.
fn json_lines(bytes: &[u8]) -> Result<Vec<Read>, Problem> {
    Ok(lines(bytes)?
        .map(|(number, line)| match seed_of(line) {
            Ok(seed) => Read::Seed(Some(number), seed),
            Err(why) => Read::Refused(refusal(number, line, &why)),
        })
        .collect())
}

fn seed_of(line: &str) -> Result<Seed, String> {
    // Its line is always the first here; the number that counts is that of the body's line.
    let read: Result<Seed, Problem> = body::json(line.as_bytes());
    let seed = read.map_err(|problem| problem.detail().to_owned())?;
    fault(&seed).map_or(Ok(seed), Err)
}

/// Plain text: one URL a line; blank lines and those that begin with `#` left out.
fn text_lines(bytes: &[u8]) -> Result<Vec<Read>, Problem> {
    let urls = lines(bytes)?.filter(|(_, line)| !line.starts_with('#'));
    Ok(urls
        .map(|(number, line)| {
            Read::Seed(Some(number), Seed { url: line.to_owned(), ..Seed::default() })
        })
        .collect())
}

/// Lines that are not blank, with their numbers from 1.
fn lines(bytes: &[u8]) -> Result<impl Iterator<Item = (u64, &str)>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|fault| {
        let sound = bytes.get(..fault.valid_up_to()).unwrap_or_default();
        let line = sound.iter().filter(|byte| **byte == b'\n').count() + 1;
        Problem::new(Kind::BadBody, "the body is not UTF-8")
            .at_line(u64::try_from(line).unwrap_or(u64::MAX))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok((1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty()))
}

fn fault(seed: &Seed) -> Option<String> {
    let priority = seed.priority.filter(|priority| !(0.0..=1.0).contains(priority))?;
    Some(format!("priority {priority} is not between 0 and 1"))
}

fn refusal(line: u64, text: &str, why: &str) -> SeedAnswer {
    SeedAnswer {
        url: text.chars().take(SHOWN_CHARS_MAX).collect(),
        result: SeedResult::Refused,
        reason: Some(format!("line {line}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(read: &[Read]) -> Vec<(Option<u64>, &str)> {
        let shown = read.iter().map(|item| match item {
            Read::Seed(line, seed) => (*line, seed.url.as_str()),
            Read::Refused(answer) => (None, answer.reason.as_deref().unwrap()),
        });
        shown.collect()
    }

    #[test]
    fn text_has_a_url_a_line() {
        let read = text_lines(b"\xef\xbb\xbfhttp://a.test/\r\n\n# no\n  http://b.test/  ").unwrap();
        assert_eq!(urls(&read), [(Some(1), "http://a.test/"), (Some(4), "http://b.test/")]);
        assert!(text_lines(b"").unwrap().is_empty());
        let problem = text_lines(b"http://a.test/\n\xff").unwrap_err();
        assert_eq!(problem, Problem::new(Kind::BadBody, "the body is not UTF-8").at_line(2));
    }

    #[test]
    fn a_bad_line_is_refused_by_itself() {
        let body = b"{\"url\":\"http://a.test/\",\"depth\":2}\n{\"uri\":1}\n\
            {\"url\":\"b\",\"priority\":7}";
        let read = json_lines(body).unwrap();
        assert!(matches!(&read[0], Read::Seed(Some(1), seed) if seed.depth == Some(2)));
        let Read::Refused(second) = &read[1] else { panic!("{read:?}") };
        assert!(second.reason.as_deref().unwrap().starts_with("line 2: unknown field `uri`"));
        let Read::Refused(third) = &read[2] else { panic!("{read:?}") };
        assert_eq!(third.reason.as_deref(), Some("line 3: priority 7 is not between 0 and 1"));
    }

    #[test]
    fn a_bad_object_is_refused_whole() {
        let refused =
            object(b"{\"urls\":[\n{\"url\":\"http://a.test/\"},\n{\"url\":5}]}").unwrap_err();
        let expected =
            Problem::new(Kind::BadBody, refused.detail()).at_key("urls[1].url").at_line(3);
        assert_eq!(refused, expected);
        let refused = object(b"{\"urls\":[{\"url\":\"a\",\"priority\":-1}]}").unwrap_err();
        let expected = Problem::new(Kind::BadBody, "priority -1 is not between 0 and 1");
        assert_eq!(refused, expected.at_key("urls[0].priority"));
        assert!(object(b"{\"urls\":[]} trailing").is_err());
        assert!(object(b"[]").is_err());
    }
}
