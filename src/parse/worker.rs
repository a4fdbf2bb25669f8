//! ParseActor: one document at a time, within its limits; the body rides along or is read back.
//!
//! - A-1 The row of a page goes away only when its links and document are durable (P4, I7): the
//!   worker passes both on and forgets them.
//! - A-2 A page that kills its worker is reported once; the shard decides if it is tried again.
//! - A-3 Before a page is passed on it has a place among the pages under way, so discovery and
//!   outputs push back on the parsers (I8).

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SpawnErr};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::document;
use super::handler::{Input, Limits, Parsed, parse};
use super::select::Extractor;
use crate::protocol::discovery::{FoundLink, ParsedPage};
use crate::protocol::{Credit, DiscoveryMsg, ParseJob, ParseMsg, RoutesWatch, ShardMsg, ask};
use crate::supervise::{Loss, Seat, WorkerKind};
use crate::types::{
    ContentRecord, CrawlUrl, Document, Headers, LinkKind, Reason, ToParse, UrlId, UrlVersion,
    header,
};
use crate::world::{Clock, Records};

/// What parsers follow; a reload gives them another one.
#[derive(Debug)]
pub struct ParseSettings {
    /// Limits on bytes, links, text.
    pub limits: Limits,
    /// `parse.max_time`.
    pub time_max: Duration,
    /// `identity.product`, for directives that name us (R4).
    pub product: String,
    /// `[[extract]]`.
    pub extractors: Vec<Extractor>,
    /// Bodies above this are parsed off the runtime's threads, so that a slow one blocks nobody.
    pub inline_bytes_max: usize,
}

/// What all parsers share.
#[derive(Debug)]
pub struct ParseContext {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The newest settings.
    pub settings: watch::Receiver<Arc<ParseSettings>>,
    /// Bodies that did not ride along.
    pub records: Arc<dyn Records>,
    /// The discovery that takes pages now.
    pub discovery: watch::Receiver<ActorRef<DiscoveryMsg>>,
    /// Where the content index is (D3).
    pub routes: RoutesWatch,
    /// Pages between parser and output.
    pub pages: Credit,
}

/// The kind of worker that a pool of parsers keeps.
#[derive(Debug)]
pub struct Parsers {
    /// What all workers share.
    pub context: Arc<ParseContext>,
}

/// What is remembered of a page in hand.
#[derive(Debug)]
pub struct ParseHeld {
    id: UrlId,
    version: UrlVersion,
    shard: ActorRef<ShardMsg>,
}

/// One worker.
#[derive(Debug)]
pub struct ParseActor;

/// A worker's seat and what it works with.
pub struct ParseState {
    seat: Seat<Parsers>,
    context: Arc<ParseContext>,
}

impl WorkerKind for Parsers {
    type Job = ParseJob;
    type Held = ParseHeld;

    fn hold(job: &ParseJob) -> ParseHeld {
        ParseHeld { id: job.row.id, version: job.row.version, shard: job.shard.clone() }
    }

    async fn spawn(&self, seat: Seat<Self>, pool: ActorCell) -> Result<ActorCell, SpawnErr> {
        let state = ParseState { seat, context: Arc::clone(&self.context) };
        let (worker, _) = Actor::spawn_linked(None, ParseActor, state, pool).await?;
        Ok(worker.get_cell())
    }

    /// A pool that is stopped reports nothing: the rows are parsed at the next start.
    fn lost(&self, held: ParseHeld, why: Loss) {
        match why {
            Loss::Died => {
                let died = ShardMsg::ParserDied { id: held.id, version: held.version };
                held.shard.send_message(died).ok();
            }
            Loss::Killed => {}
        }
    }
}

impl Actor for ParseActor {
    type Msg = ParseMsg;
    type State = ParseState;
    type Arguments = ParseState;

    async fn pre_start(
        &self,
        me: ActorRef<ParseMsg>,
        state: ParseState,
    ) -> Result<ParseState, ActorProcessingErr> {
        me.send_message(ParseMsg::Next)?;
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<ParseMsg>,
        msg: ParseMsg,
        state: &mut ParseState,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            ParseMsg::Next => state.next(&me).await,
        }
    }
}

impl ParseState {
    async fn next(&mut self, me: &ActorRef<ParseMsg>) -> Result<(), ActorProcessingErr> {
        match self.seat.next().await {
            Some(job) => {
                self.serve(job).await?;
                me.send_message(ParseMsg::Next)?;
            }
            None => me.stop(None),
        }
        Ok(())
    }

    async fn serve(&self, job: ParseJob) -> Result<(), ActorProcessingErr> {
        self.context.clock.step("parse");
        let ParseJob { row, response, permit, shard } = job;
        let read = match response {
            Some(response) => Ok((response.headers, response.body)),
            None => self.context.records.read(&row.archive).await.map(|r| (r.headers, r.body)),
        };
        let (headers, body) = match read {
            Ok(read) => read,
            Err(failure) => {
                warn!(url = %row.url, %failure, "page cannot be parsed");
                if let Some(held) = self.seat.release() {
                    let died = ShardMsg::ParserDied { id: held.id, version: held.version };
                    held.shard.send_message(died)?;
                }
                return Ok(());
            }
        };
        let page = if (300..400).contains(&row.status) {
            redirect(row, &headers, shard)
        } else {
            let parsed = self.parse(&row.url, headers, body).await?;
            self.page(row, parsed, shard).await
        };
        drop(permit);
        self.pass_on(page).await
    }

    /// P2: within its time, and off the runtime's threads when it is large.
    async fn parse(
        &self,
        url: &CrawlUrl,
        headers: Headers,
        body: bytes::Bytes,
    ) -> Result<Parsed, ActorProcessingErr> {
        let settings = Arc::clone(&self.context.settings.borrow());
        let clock = Arc::clone(&self.context.clock);
        let inline = body.len() <= settings.inline_bytes_max;
        let url = url.clone();
        let work = move || {
            let deadline = clock.now() + settings.time_max;
            let out_of_time = || clock.now() >= deadline;
            let input = Input {
                url: &url,
                headers: &headers,
                body: &body,
                product: &settings.product,
                extractors: &settings.extractors,
                out_of_time: &out_of_time,
            };
            parse(&input, &settings.limits)
        };
        if inline {
            return Ok(work());
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(parsed) => Ok(parsed),
            // The panic goes on here, so that the pool hears of it like of any other.
            Err(died) if died.is_panic() => std::panic::resume_unwind(died.into_panic()),
            Err(stopped) => Err(stopped.into()),
        }
    }

    async fn page(&self, row: ToParse, parsed: Parsed, shard: ActorRef<ShardMsg>) -> ParsedPage {
        let links = followed(&parsed);
        let duplicate_of = self.claim_text(&row, parsed.text_fingerprint).await;
        let reasons = parsed.reasons.clone();
        let document: Document = document::record(&row, parsed, duplicate_of);
        ParsedPage {
            row,
            document: Some(Box::new(document)),
            links,
            reasons,
            shard,
            permit: crate::protocol::Permit::free(),
        }
    }

    /// D3: the first page with the same text, by the owner of that part of the content index.
    async fn claim_text(&self, row: &ToParse, text: Option<u128>) -> Option<String> {
        let text = text?;
        let shard = {
            let routes = self.context.routes.borrow();
            routes.content_shard(&format!("{text:032x}"))?.shard.clone()
        };
        let record = ContentRecord {
            url: row.url.clone(),
            fetched_at: row.fetched_at,
            archive: row.archive.clone(),
        };
        let claim = |answer| ShardMsg::ClaimText(text, Box::new(record), answer);
        // An index that does not answer leaves the page without its duplicate, and nothing else.
        let first = ask(&shard, claim).await.flatten()?;
        Some(first.url.to_string())
    }

    /// with a place among the pages under way, to discovery.
    async fn pass_on(&self, mut page: ParsedPage) -> Result<(), ActorProcessingErr> {
        page.permit = self.context.pages.take(1).await;
        let discovery = self.context.discovery.borrow().clone();
        self.seat.release();
        discovery.send_message(DiscoveryMsg::Page(Box::new(page)))?;
        Ok(())
    }
}

/// H2: a redirect is a page with one link and no document.
fn redirect(row: ToParse, headers: &Headers, shard: ActorRef<ShardMsg>) -> ParsedPage {
    let location = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let target = match location {
        Some((_, location)) => super::redirect_link(&row.url, location),
        None => Err(Reason::NoLocation),
    };
    let (links, reasons) = match target {
        Ok(url) => (vec![FoundLink { url, kind: LinkKind::Redirect, nofollow: false }], Vec::new()),
        Err(reason) => {
            let location = header(headers, "location");
            debug!(url = %row.url, %reason, ?location, "redirect ends");
            (Vec::new(), vec![reason])
        }
    };
    ParsedPage {
        row,
        document: None,
        links,
        reasons,
        shard,
        permit: crate::protocol::Permit::free(),
    }
}

/// Every link that can be requested; those that cannot stay in the record only.
fn followed(parsed: &Parsed) -> Vec<FoundLink> {
    let page_nofollow = parsed.wishes.nofollow;
    let links = parsed.links.iter().filter_map(|link| {
        let url = CrawlUrl::parse(link.url).ok()?;
        Some(FoundLink { url, kind: link.kind, nofollow: link.nofollow || page_nofollow })
    });
    links.collect()
}
