//! JSON Feed, versions 1 and 1.1.

use serde::Deserialize;

use super::bare;
use super::entries::{Entries, Entry};
use crate::parse::charset::to_text;
use crate::parse::handler::{Handler, Input, Limits, Parsed};
use crate::types::{LinkKind, Reason};

/// `application/feed+json`.
pub struct JsonFeedHandler;

#[derive(Deserialize)]
struct Feed {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    next_url: Option<String>,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    external_url: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    date_modified: Option<String>,
    #[serde(default)]
    date_published: Option<String>,
}

impl Handler for JsonFeedHandler {
    fn accepts(&self, content_type: &str) -> bool {
        content_type == "application/feed+json"
    }

    fn parse(&self, input: &Input<'_>, _limits: &Limits) -> Parsed {
        let read = to_text(input.body, None, false);
        match serde_json::from_str::<Feed>(&read.text) {
            Ok(feed) => Parsed { charset: Some(read.encoding.name()), ..entries(feed, input) },
            Err(error) => {
                let limit = format!("broken JSON: {error}");
                Parsed { reasons: vec![Reason::ParseLimit { limit }], ..bare(input) }
            }
        }
    }
}

fn entries(feed: Feed, input: &Input<'_>) -> Parsed {
    let mut entries = Entries::new(input.url);
    for item in &feed.items {
        let url = item.url.as_deref().or(item.external_url.as_deref()).unwrap_or_default();
        let lastmod = item.date_modified.as_deref().or(item.date_published.as_deref());
        let title = item.title.as_deref().unwrap_or_default();
        entries.add(LinkKind::Feed, &Entry { url, title, lastmod });
    }
    if let Some(url) = &feed.next_url {
        entries.add(LinkKind::LinkRel, &Entry { url, ..Entry::default() });
    }
    let title = feed.title.filter(|title| !title.is_empty());
    Parsed { title, ..entries.into_parsed(input) }
}
