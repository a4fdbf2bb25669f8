//! R6: what the robots.txt in force says on the use of a page that was just fetched.
//!
//! aipref-attach 3.3: the copy in force when the page was fetched counts, and a later one does not
//! change what was said. It is read once for each copy, when the first page has come.

use bytes::Bytes;

use super::machine::HostMachine;
use crate::policy::robots::RobotsState;
use crate::policy::wishes::SiteWishes;
use crate::types::{CrawlUrl, Timestamp, UsageWish};

/// A copy of robots.txt and what it says on use.
#[derive(Clone, Debug)]
pub(super) struct SiteWishesRead {
    text: Bytes,
    product: String,
    wishes: SiteWishes,
}

impl SiteWishesRead {
    /// Compares places, not bytes: while this holds a copy no other can be where it is.
    fn is_of(&self, text: &Bytes, product: &str) -> bool {
        let same_text = self.text.as_ptr() == text.as_ptr() && self.text.len() == text.len();
        same_text && self.product == product
    }
}

impl HostMachine {
    /// What robots.txt says on the use of a page of this host.
    pub(super) fn wishes_on_use_of(&mut self, url: &CrawlUrl) -> Vec<UsageWish> {
        let Some(rules) = self.robots.rules() else { return Vec::new() };
        let (text, product) = (rules.text(), self.settings.robots.product.as_str());
        if !self.site_wishes.as_ref().is_some_and(|read| read.is_of(text, product)) {
            self.site_wishes = Some(Box::new(SiteWishesRead {
                text: text.clone(),
                product: product.to_owned(),
                wishes: SiteWishes::read(text, product),
            }));
        }
        let said_at = self.robots_said_at();
        let read = self.site_wishes.as_ref();
        read.map_or_else(Vec::new, |read| read.wishes.of(url.path_and_query(), said_at))
    }

    /// When the copy in force came; nobody remembers that of one that serves on while robots.txt
    /// is unreachable.
    fn robots_said_at(&self) -> Option<Timestamp> {
        match &self.robots {
            RobotsState::Fresh { fetched_at, .. } => Some(*fetched_at),
            RobotsState::Unfetched | RobotsState::Unreachable { .. } => None,
        }
    }
}
