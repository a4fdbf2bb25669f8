//! What is kept and given out: `[archive]`, `[parse]`, `[[output]]`, `[[extract]]` (O1, O4, P2).

use std::collections::BTreeMap;
use std::time::Duration;

use super::data::{STORE_URL, is_store_url};
use super::define::{section, table};
use super::reader::{Check, Checked, Unfit};
use super::scope::{RULE, is_rule};
use super::units::{ByteSize, days};
use super::value::words;
use crate::policy::wishes;

words! {
    /// How records of the archive are compressed.
    pub enum ArchiveFormat {
        /// WARC 1.1, a gzip member a record: read by everything.
        WarcGz = "warc-gz",
        /// WARC 1.1, a zstd frame a record: smaller, read by fewer tools.
        WarcZst = "warc-zst",
    }
}

section! {
    /// Where responses are stored before anything parses them (O1, O2).
    pub struct Archive {
        /// Object store URL or `file://` directory; under `data.dir` unless given.
        url: Option<String> = None,
            absent("auto"),
            that(|url| url.as_deref().is_none_or(is_store_url), STORE_URL);
        /// `"warc-gz"` or `"warc-zst"`.
        format: ArchiveFormat = ArchiveFormat::WarcGz;
        /// A file is closed when it is so large, or as old as `max_file_age`.
        max_file_size: ByteSize = ByteSize::gib(1), within(ByteSize::kib(1)..=ByteSize::gib(1024));
        /// A file is closed when it is so old, however small; an empty one is not.
        max_file_age: Duration = Duration::from_secs(3600),
            within(Duration::from_secs(1)..=days(30));
    }
}

impl Checked for Archive {}

words! {
    /// The form of an output.
    pub enum OutputKind {
        /// Page records as JSON Lines.
        Jsonl = "jsonl",
        /// Page records as Parquet.
        Parquet = "parquet",
        /// The link graph.
        Links = "links",
        /// Text as WARC conversion records.
        Wet = "wet",
    }
}

words! {
    /// What an output is for; pages whose owners do not wish that use are left out (R6).
    pub enum Purpose {
        /// A search index.
        Search = "search",
        /// Training of models.
        AiTrain = "ai-train",
        /// Input of models at the time they answer.
        AiInput = "ai-input",
        /// Keeping.
        Archive = "archive",
    }
}

impl From<Purpose> for wishes::Purpose {
    fn from(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Search => Self::Search,
            Purpose::AiTrain => Self::AiTrain,
            Purpose::AiInput => Self::AiInput,
            Purpose::Archive => Self::Archive,
        }
    }
}

section! {
    /// An output of parsed pages.
    pub struct Output {
        /// `"jsonl"`, `"parquet"`, `"links"` or `"wet"`.
        kind: OutputKind = OutputKind::Jsonl;
        /// What it is for, `"search"`, `"ai-train"`, `"ai-input"` or `"archive"`: pages that must
        /// not be used so are left out, and counted.
        purpose: Purpose = Purpose::Archive;
        /// Object store URL or `file://` directory; under `data.dir` unless given.
        url: Option<String> = None,
            absent("auto"),
            that(|url| url.as_deref().is_none_or(is_store_url), STORE_URL);
    }
}

impl Checked for Output {}

impl Output {
    /// The outputs when none is configured: page records as JSON Lines.
    pub fn defaults() -> Vec<Self> {
        vec![Self::default()]
    }
}

table! {
    /// Fields taken from pages by CSS selectors.
    pub struct Extract {
        /// The pages it is for: a rule as in `scope.include`.
        r#match: String, that(|rule| is_rule(rule), RULE);
        /// Name = CSS selector; the texts of all its matches.
        fields: BTreeMap<String, String>;
    }
}

impl Checked for Extract {
    fn check(&self, check: &mut Check<'_>) {
        let fault = Unfit {
            found: Some("{}".to_owned()),
            problem: "nothing to extract",
            remedy: "wanted one field and more, name = \"CSS selector\"",
        };
        check.refuse_unless(!self.fields.is_empty(), &["fields"], fault);
    }
}

section! {
    /// How pages are parsed, and what one page may cost (P2).
    pub struct Parse {
        /// Documents parsed at once; as many as the machine has cores unless given.
        workers: Option<u32> = None, absent("auto"), within(1..=1024);
        /// Time for one document; a document that takes longer is marked, its host unharmed.
        max_time: Duration = Duration::from_secs(5),
            within(Duration::from_millis(1)..=Duration::from_secs(3600));
        /// Memory for all that is held of one document at once, beside the body as received.
        max_memory: ByteSize = ByteSize::mib(256), within(ByteSize::mib(1)..=ByteSize::gib(64));
        /// Links recorded of one document; `max_memory` has room for one in 4 KiB.
        max_links: u32 = 10_000, within(0..=10_000_000);
    }
}

impl Checked for Parse {}
