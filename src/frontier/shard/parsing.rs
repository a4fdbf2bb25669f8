//! Fetched pages on their way through the parsers: the row is in the store until all they brought
//! is durable (P4, I7).
//!
//! A body rides along while there is room; else the parser reads it from the archive. What the
//! channel to the parsers cannot take stays a row, and is read when there is room.

use super::commit::Then;
use super::state::{Backlog, Shard, fault};
use crate::policy::change::Change;
use crate::protocol::shard::{PublishedBatch, StoreFault, StoreReply};
use crate::protocol::{Answer, ParseJob, Permit, ShardMsg};
use crate::types::{
    ContentRecord, CrawlEvent, Happening, Response, Subject, ToParse, UrlId, UrlVersion,
};

/// Parsers that may die over a page before it is given up.
const PARSER_DEATHS_MAX: u8 = 3;
/// Rows of the backlog read at once.
const BACKLOG_AT_ONCE: usize = 64;
/// Texts claimed and not yet in the store.
const TEXTS_MAX: usize = 10_000;
/// The version that pages without a parser carry in events.
const NO_PARSER: u32 = 0;

impl Shard {
    /// A page has its row: it goes to a parser when that is written.
    pub(super) fn parse_next(&mut self, row: ToParse, arrived: Option<(Box<Response>, Permit)>) {
        self.parsing.insert((row.id, row.version), row.clone());
        let (response, permit) = match arrived {
            Some((response, permit)) => (Some(response), permit),
            None => (None, Permit::free()),
        };
        let job = ParseJob { row, response, permit, shard: self.me.clone() };
        self.when_written(Then::Parse(Box::new(job)));
    }

    /// To a parser, or left in the store when there is no room.
    pub(super) fn hand_to_parser(&mut self, job: ParseJob) {
        let key = (job.row.id, job.row.version);
        if self.parse.try_send(job).is_err() {
            self.parsing.remove(&key);
            if self.backlog == Backlog::Empty {
                self.backlog = Backlog::Waiting;
            }
        }
    }

    /// Reads the backlog when the parsers have room for it.
    pub(super) fn go_on_parsing(&mut self) {
        let room = self.parse.capacity().is_none_or(|bound| self.parse.len() * 2 <= bound);
        if self.backlog != Backlog::Waiting || !room || self.draining || self.parse.is_closed() {
            return;
        }
        // Rows that are with the parsers come first in the table at times; they are passed over.
        let limit = BACKLOG_AT_ONCE + self.parsing.len();
        self.backlog = Backlog::Reading(limit);
        self.read(|store| async move {
            let read = store.to_parse(None, limit).await;
            ShardMsg::Store(StoreReply::ToParseRead(read.map_err(fault)))
        });
    }

    /// Rows of the backlog: those that no parser has go to one.
    pub(super) fn backlog_read(&mut self, read: Result<Vec<ToParse>, StoreFault>) {
        let Backlog::Reading(limit) = self.backlog else { return };
        match read {
            Ok(rows) => {
                let more = rows.len() >= limit;
                self.backlog = if more { Backlog::Waiting } else { Backlog::Empty };
                self.hand_out(rows);
            }
            Err(_) => self.backlog = Backlog::Waiting,
        }
    }

    /// Rows that no parser has and that are not on their way out of the store.
    fn hand_out(&mut self, rows: Vec<ToParse>) {
        for row in rows {
            let key = (row.id, row.version);
            if self.parsing.contains_key(&key) || self.dropped.contains_key(&key) {
                continue;
            }
            if self.exclusions.purging(&row.url).is_some() {
                self.drop_to_parse([row]);
                continue;
            }
            self.parsing.insert(key, row.clone());
            let (permit, shard) = (Permit::free(), self.me.clone());
            self.hand_to_parser(ParseJob { row, response: None, permit, shard });
        }
        // A later read cannot see rows whose end is written.
        self.dropped.retain(|_, written| !*written);
    }

    /// The end of these rows is written: only a read that began before can still see them.
    pub(super) fn forget_dropped(&mut self, keys: Vec<(UrlId, UrlVersion)>) {
        for key in keys {
            match self.backlog {
                Backlog::Reading(_) => drop(self.dropped.insert(key, true)),
                Backlog::Empty | Backlog::Waiting => drop(self.dropped.remove(&key)),
            }
        }
    }

    /// Pages are in the outputs: rows go, offsets and events come, in one batch (B6).
    pub(super) fn published(&mut self, batch: PublishedBatch) {
        let now = self.now();
        let mut keys = Vec::with_capacity(batch.pages.len());
        for page in batch.pages {
            let key = (page.row.id, page.row.version);
            self.parsing.remove(&key);
            self.dropped.insert(key, false);
            keys.push(key);
            self.put([Change::DropToParse(page.row.id, page.row.version)]);
            if self.exclusions.purging(&page.row.url).is_some() {
                // R5: its record is not out.
                continue;
            }
            let subject = Subject::Url {
                url: page.row.url.to_string(),
                url_id: page.row.id,
                version: page.row.version,
            };
            let happening = Happening::Parsed {
                parser_version: page.parser_version,
                links: page.links,
                duplicate_of: page.duplicate_of,
            };
            self.put([Change::Emit(Box::new(CrawlEvent { at: now, subject, happening }))]);
        }
        self.put(batch.outputs.into_iter().map(|(name, state)| Change::PutOutput { name, state }));
        self.when_written(Then::Committed(batch.answer, keys));
    }

    /// A parser died over a page. It is parsed again; one that kills parsers is given up.
    pub(super) fn parser_died(&mut self, id: UrlId, version: UrlVersion) {
        let Some(row) = self.parsing.get_mut(&(id, version)) else { return };
        row.attempts = row.attempts.saturating_add(1);
        let row = row.clone();
        if row.attempts < PARSER_DEATHS_MAX {
            self.put([Change::PutToParse(Box::new(row.clone()))]);
            return self.parse_next(row, None);
        }
        tracing::warn!(url = %row.url, "page given up: parsers die over it");
        let page = crate::protocol::shard::PublishedPage {
            row,
            links: 0,
            duplicate_of: None,
            parser_version: NO_PARSER,
        };
        let answer = Answer::ignored();
        self.published(PublishedBatch { pages: vec![page], outputs: Vec::new(), answer });
    }

    // The index of content: this shard's part, by hash (D3).

    /// Where a payload lies, if it is known.
    pub(super) fn look_up_payload(
        &self,
        digest: String,
        answer: Answer<Option<Box<ContentRecord>>>,
    ) {
        let store = self.store.clone();
        tokio::spawn(async move {
            // A failing store makes the payload stored once more, which loses nothing.
            let found = store.payload(&digest).await.ok().flatten();
            answer.send(found.map(Box::new));
        });
    }

    /// A payload is in the archive.
    pub(super) fn know_payload(&mut self, digest: String, record: Box<ContentRecord>) {
        // R5: one that is being removed is not there for others.
        if self.exclusions.purging(&record.url).is_none() {
            self.put([Change::PutPayload(digest, record)]);
        }
    }

    /// Which page had a text first; the asker's, if none had.
    pub(super) fn claim_text(
        &mut self,
        text: u128,
        record: Box<ContentRecord>,
        answer: Answer<Option<Box<ContentRecord>>>,
    ) {
        if let Some(first) = self.texts.get(&text) {
            let own = first.url == record.url;
            return answer.send((!own).then(|| first.clone()));
        }
        let (store, me) = (self.store.clone(), self.me.clone());
        tokio::spawn(async move {
            let found = store.text(text).await.ok().flatten().map(Box::new);
            me.send_message(ShardMsg::TextRead(text, found, record, answer)).ok();
        });
    }

    /// The store's word on a text.
    pub(super) fn text_read(
        &mut self,
        text: u128,
        found: Option<Box<ContentRecord>>,
        record: Box<ContentRecord>,
        answer: Answer<Option<Box<ContentRecord>>>,
    ) {
        if let Some(first) = found.or_else(|| self.texts.get(&text).cloned()) {
            let own = first.url == record.url;
            return answer.send((!own).then_some(first));
        }
        if self.exclusions.purging(&record.url).is_some() {
            return answer.send(None);
        }
        if self.texts_in_order.len() >= TEXTS_MAX
            && let Some(oldest) = self.texts_in_order.pop_front()
        {
            // What was claimed that long ago is in the store by now.
            self.texts.remove(&oldest);
        }
        self.texts_in_order.push_back(text);
        self.texts.insert(text, record.clone());
        self.put([Change::PutText(text, record)]);
        answer.send(None);
    }
}
