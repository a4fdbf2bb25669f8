//! To a DiscoveryActor: seeds and links, to become admitted URLs.

use ractor::ActorRef;
use serde::{Deserialize, Serialize};

use super::shard::AdmitAnswer;
use super::{Answer, Permit, ShardMsg};
use crate::policy::why::Judged;
use crate::types::{CrawlUrl, Document, HostKey, LinkKind, Reason, ShardId, ToParse};

/// The mailbox of a DiscoveryActor; bounded by the permits that pages carry.
#[derive(Debug)]
pub enum DiscoveryMsg {
    /// Seeds of an operator; answered when durable.
    Seeds(Vec<Seed>, Answer<Vec<SeedAnswer>>),
    /// The Sitemap lines of a host's robots.txt, as written (R3).
    Sitemaps(HostKey, Vec<String>),
    /// A parsed page: its links are admitted, then its document is published.
    Page(Box<ParsedPage>),
    /// A shard's answer to one batch; `None` when the shard is gone and must be asked again.
    Admitted {
        /// The batch.
        batch: u64,
        /// Who answers.
        shard: ShardId,
        /// Its answer.
        answer: Option<AdmitAnswer>,
    },
    /// Time to ask shards again that were gone.
    Tick,
    /// Scope or traps were reloaded.
    Reload,
    /// What scope and traps say of a URL at this depth (B1).
    Judge(CrawlUrl, u16, Answer<Judged>),
    /// Say how it stands.
    Observe(Answer<DiscoveryView>),
}

/// One seed as given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// An absolute http(s) URL.
    pub url: String,
    /// 0 to 1, 1 first; seeds are in the first band unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f32>,
    /// Links away from a seed, 0 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u16>,
}

/// What became of one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedAnswer {
    /// As given.
    pub url: String,
    /// What happened.
    pub result: SeedResult,
    /// One sentence, where it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedResult {
    /// New and durable.
    Accepted,
    /// Known already.
    Known,
    /// Refused.
    Refused,
}

/// A link as the parser hands it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLink {
    /// The target.
    pub url: CrawlUrl,
    /// What carries it.
    pub kind: LinkKind,
    /// `rel` or the page asks not to follow it (R4).
    pub nofollow: bool,
}

/// A parsed page on its way to discovery and output.
#[derive(Debug)]
pub struct ParsedPage {
    /// Its row, to be dropped when all is durable.
    pub row: ToParse,
    /// The page record; `None` for redirects and for what nobody handles.
    pub document: Option<Box<Document>>,
    /// Its links, each target once.
    pub links: Vec<FoundLink>,
    /// Why something is missing.
    pub reasons: Vec<Reason>,
    /// Who owns the row.
    pub shard: ActorRef<ShardMsg>,
    /// Its place among the pages under way.
    pub permit: Permit,
}

/// The state of a DiscoveryActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiscoveryView {
    /// Batches that shards have not answered.
    pub waiting: u32,
    /// Links and seeds judged.
    pub judged: u64,
    /// Handed to shards.
    pub offered: u64,
    /// Refused, by kind of reason.
    pub refused: u64,
}
