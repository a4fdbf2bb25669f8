//! One document, parsed while an allocator counts what is held for it (P2).

use std::cell::Cell;
use std::io::Write;
use std::sync::Mutex;

use bytes::Bytes;
use mehman::parse::decode::DecodeLimits;
use mehman::parse::memory::Memory;
use mehman::parse::select::Extractor;
use mehman::parse::{Input, Limits, Parsed, parse};
use mehman::types::{CrawlUrl, Headers};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One document at a time: the allocator counts for all threads together.
static TURN: Mutex<()> = Mutex::new(());

/// `parse.max_memory` of these tests.
pub(crate) const MEMORY: usize = 32 << 20;
/// More than the share of a decoded body.
pub(crate) const LARGE: usize = 9 << 20;

pub(crate) fn limits() -> Limits {
    Limits {
        memory: Memory::new(MEMORY),
        decode: DecodeLimits { decoded_bytes_max: 20 << 20, ratio_max: 1 << 20 },
        ..Limits::default()
    }
}

pub(crate) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap().into()
}

/// A document, and how it is read.
pub(crate) struct Case<'c> {
    pub(crate) url: &'c str,
    pub(crate) content_type: &'c str,
    pub(crate) coding: &'c str,
    pub(crate) extractors: &'c [Extractor],
    pub(crate) limits: Limits,
    /// The time is up when it was asked for so often.
    pub(crate) asks_max: usize,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            url: "http://a.example/dir/page",
            content_type: "text/html",
            coding: "gzip",
            extractors: &[],
            limits: limits(),
            asks_max: usize::MAX,
        }
    }
}

/// What a document gave, and the most memory that was held for it.
pub(crate) struct Done {
    pub(crate) parsed: Parsed,
    pub(crate) peak: usize,
}

impl Done {
    /// The words of its reasons.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.parsed.reasons.iter().map(ToString::to_string).collect()
    }

    pub(crate) fn urls(&self) -> Vec<&str> {
        self.parsed.links.iter().map(|link| link.url).collect()
    }
}

impl Case<'_> {
    /// Parses, and makes what goes on to the record and to discovery.
    pub(crate) fn run(&self, received: Bytes) -> Done {
        let header = |name: &str, value: &str| (name.to_owned(), Bytes::from(value.to_owned()));
        let headers: Headers = vec![
            header("Content-Type", self.content_type),
            header("Content-Encoding", self.coding),
        ];
        let url = CrawlUrl::parse(self.url).unwrap();
        let asked = Cell::new(0);
        let out_of_time = || {
            asked.set(asked.get() + 1);
            asked.get() > self.asks_max
        };
        let input = Input {
            url: &url,
            headers: &headers,
            body: &received,
            product: "mehman",
            extractors: self.extractors,
            out_of_time: &out_of_time,
        };
        let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let parsed = parse(&input, &self.limits);
        let record = parsed.links.to_record();
        let followed: Vec<_> =
            parsed.links.iter().filter_map(|link| CrawlUrl::parse(link.url).ok()).collect();
        let peak = ALLOCATOR.peak_usage() - before;
        drop((record, followed));
        Done { parsed, peak }
    }

    /// The same for a body that is packed on its way, so that it counts as decoded.
    pub(crate) fn read(&self, body: impl AsRef<[u8]>) -> Done {
        let done = self.run(gzip(body.as_ref()));
        let begin = String::from_utf8_lossy(body.as_ref().get(..60).unwrap_or(body.as_ref()));
        assert!(done.peak <= MEMORY, "{} bytes for {begin}", done.peak);
        done
    }
}

pub(crate) fn page(body: impl AsRef<[u8]>) -> Done {
    Case::default().read(body)
}

/// What a document is told by when it fails.
pub(crate) fn begin(document: &str) -> &str {
    document.get(..document.floor_char_boundary(20)).unwrap_or(document)
}

/// `unit` as often as fills `length` bytes.
pub(crate) fn fill(unit: &str, length: usize) -> String {
    unit.repeat(length / unit.len())
}
