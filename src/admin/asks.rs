//! What a stored page asks for, read anew from its response in the archive (R4, R6).
//!
//! Nothing of it is kept in the stores of the shards, so that a page costs no row for it: a
//! question reads one record and parses it, within the limits of any page.

use std::sync::Arc;

use tokio::sync::watch;

use crate::parse::robots_meta::is_over;
use crate::parse::{Input, ParseSettings, Parsed, parse};
use crate::policy::why::PageAsks;
use crate::types::{ArchivePointer, CrawlUrl, Timestamp, UsageWish};
use crate::world::{Clock, Records, StoredRecord};

/// Reads stored pages.
#[derive(Clone, Debug)]
pub struct PageReader {
    /// The archive.
    pub records: Arc<dyn Records>,
    /// How pages are parsed.
    pub settings: watch::Receiver<Arc<ParseSettings>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl PageReader {
    /// What the page at a pointer asks for; `None` where what lies there is no page.
    ///
    /// # Errors
    /// Why the record cannot be read.
    pub async fn asks(
        &self,
        url: &CrawlUrl,
        pointer: &ArchivePointer,
        fetched_at: Timestamp,
    ) -> Result<Option<PageAsks>, String> {
        let stored = self.records.read(pointer).await.map_err(|failure| failure.to_string())?;
        if !(200..300).contains(&stored.status) {
            return Ok(None);
        }
        let (url, clock) = (url.clone(), Arc::clone(&self.clock));
        let settings = Arc::clone(&self.settings.borrow());
        // Whatever its size: nobody waits for it but the one who asks.
        let parsed = tokio::task::spawn_blocking(move || read(&url, &stored, &settings, &*clock));
        let parsed = parsed.await.map_err(|_died| "the parser died over it".to_owned())?;
        let said = |wish| UsageWish { at: Some(fetched_at), ..wish };
        let mut directives = parsed.wishes.directives;
        if is_over(&directives, fetched_at) && !directives.iter().any(|word| word == "noindex") {
            directives.push("noindex".to_owned());
        }
        let usage = parsed.wishes.usage.into_iter().map(said).collect();
        Ok(Some(PageAsks { directives, usage }))
    }
}

fn read(
    url: &CrawlUrl,
    stored: &StoredRecord,
    settings: &ParseSettings,
    clock: &dyn Clock,
) -> Parsed {
    let deadline = clock.now() + settings.time_max;
    let out_of_time = || clock.now() >= deadline;
    let input = Input {
        url,
        headers: &stored.headers,
        body: &stored.body,
        product: &settings.product,
        extractors: &[],
        out_of_time: &out_of_time,
    };
    parse(&input, &settings.limits)
}
