//! D2: the Bloom filter that says "absent" without a read, over exactly the keys of the URL table.
//!
//! - I4: it never decides that a URL is known. What it does not say is absent, the table answers.
//! - It says "absent" only when it has seen every key: from the first on, from a background scan
//!   ([`Filter::complete`]), or from chunks that name the very batch the store was opened at.
//! - A full filter grows by a layer twice as large, so it stays right; rebuilt, it is fast again.

use probabilistic_collections::SipHasherBuilder;
use probabilistic_collections::bloom::BloomFilter;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::store::BatchId;
use crate::types::UrlId;

/// False answers of "maybe" in one layer, when it is full.
const MAYBE_RATE: f64 = 0.01;
/// The smallest layer.
const KEYS_MIN: u64 = 1024;
/// Bytes of a chunk.
const CHUNK_BYTES: u64 = 1 << 20;
/// The form of the chunks.
const VERSION: u8 = 1;

/// The filter of one shard.
#[derive(Debug)]
pub struct Filter {
    layers: Vec<Layer>,
    complete: bool,
    seed: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Layer {
    bits: BloomFilter<[u8; 17]>,
    keys: u64,
    keys_max: u64,
}

/// What the first chunk says about the rest.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    batch: BatchId,
    seed: u64,
    bytes: u64,
    checksum: u64,
}

impl Filter {
    /// The filter of an empty table, sized for `capacity` keys.
    pub fn empty(capacity: u64, seed: u64) -> Self {
        Self { layers: vec![Layer::new(capacity, seed)], complete: true, seed }
    }

    /// A filter that has not seen the table: it takes keys, and says "maybe" to everything until
    /// [`Filter::complete`].
    pub fn unknown(capacity: u64, seed: u64) -> Self {
        Self { complete: false, ..Self::empty(capacity, seed) }
    }

    /// Every key of the table has been inserted: from now on it answers.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// Whether it has seen the whole table.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// True when the URL is certainly not in the table; false when it may be.
    pub fn says_absent(&self, id: &UrlId) -> bool {
        let key = id.to_bytes();
        self.complete && !self.layers.iter().any(|layer| layer.bits.contains(&key))
    }

    /// A key that the table has, or is about to have.
    pub fn insert(&mut self, id: &UrlId) {
        let fits = self.layers.last().is_some_and(|layer| layer.keys < layer.keys_max);
        if !fits {
            let doubled = self.layers.last().map_or(KEYS_MIN, |layer| layer.keys_max * 2);
            self.layers.push(Layer::new(doubled, self.seed));
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.bits.insert(&id.to_bytes());
            layer.keys += 1;
        }
    }

    /// Whether a larger one should be built in the background.
    pub fn needs_rebuild(&self) -> bool {
        !self.complete || self.layers.len() > 1
    }

    /// Keys inserted so far, the same one twice counted twice.
    pub fn len(&self) -> u64 {
        self.layers.iter().map(|layer| layer.keys).sum()
    }

    /// Whether no key has been inserted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory it holds.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.bits.len().div_ceil(8)).sum()
    }

    /// The filter in chunks, under the last batch of the table; none while it is not complete.
    pub fn to_chunks(&self, batch: BatchId) -> Vec<Vec<u8>> {
        let rows = self.complete.then(|| postcard::to_stdvec(&self.layers));
        let Some(Ok(bytes)) = rows else { return Vec::new() };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let header = Header { batch, seed: self.seed, bytes: size, checksum: xxh3_64(&bytes) };
        let Ok(first) = postcard::to_extend(&header, vec![VERSION]) else { return Vec::new() };
        let chunk = usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX);
        std::iter::once(first).chain(bytes.chunks(chunk).map(<[u8]>::to_vec)).collect()
    }

    /// How many chunks follow the first one, if it names the batch `opened_at`.
    pub fn chunks_after(first: &[u8], opened_at: BatchId) -> Option<u64> {
        Header::read(first, opened_at).map(|header| header.bytes.div_ceil(CHUNK_BYTES))
    }

    /// The filter that chunks hold; `None` when they are damaged, of another version, or do not
    /// name the batch `opened_at`, and so miss keys that the table has.
    pub fn from_chunks(chunks: &[Vec<u8>], opened_at: BatchId) -> Option<Self> {
        let (first, rest) = chunks.split_first()?;
        let header = Header::read(first, opened_at)?;
        let bytes = rest.concat();
        let whole = u64::try_from(bytes.len()).ok()? == header.bytes;
        if !whole || xxh3_64(&bytes) != header.checksum {
            return None;
        }
        let layers = postcard::from_bytes(&bytes).ok()?;
        Some(Self { layers, complete: true, seed: header.seed })
    }
}

impl Header {
    fn read(first: &[u8], opened_at: BatchId) -> Option<Self> {
        let (version, header) = first.split_first()?;
        let header: Self = postcard::from_bytes(header).ok()?;
        (*version == VERSION && header.batch == opened_at).then_some(header)
    }
}

impl Layer {
    fn new(capacity: u64, seed: u64) -> Self {
        let keys_max = capacity.max(KEYS_MIN);
        let items = usize::try_from(keys_max).unwrap_or(usize::MAX);
        let hashers =
            [SipHasherBuilder::from_seed(seed, !seed), SipHasherBuilder::from_seed(!seed, seed)];
        Self { bits: BloomFilter::with_hashers(items, MAYBE_RATE, hashers), keys: 0, keys_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Epoch, HostId};

    const BATCH: BatchId = BatchId { epoch: Epoch(3), number: 17 };

    fn id(number: u64) -> UrlId {
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        UrlId { host: HostId(number % 7), hash, disambiguator: 0 }
    }

    fn filled(keys: u64) -> Filter {
        let mut filter = Filter::empty(0, 5);
        (0..keys).for_each(|number| filter.insert(&id(number)));
        filter
    }

    #[test]
    fn no_key_of_the_table_is_called_absent_however_full_it_gets() {
        let filter = filled(20_000);
        assert!(filter.needs_rebuild());
        assert!(!(0..20_000).any(|number| filter.says_absent(&id(number))));
        let absent = (20_000..30_000).filter(|number| filter.says_absent(&id(*number))).count();
        assert!(absent > 9_300, "{absent} of 10,000");
    }

    #[test]
    fn an_unknown_filter_says_maybe_until_it_has_seen_the_table() {
        let mut filter = Filter::unknown(100, 5);
        filter.insert(&id(1));
        assert!(!filter.says_absent(&id(2)) && filter.needs_rebuild());
        assert!(filter.to_chunks(BATCH).is_empty());
        filter.complete();
        assert!(filter.says_absent(&id(2)) && !filter.says_absent(&id(1)));
    }

    #[test]
    fn chunks_serve_only_the_batch_they_name() {
        let chunks = filled(2_000).to_chunks(BATCH);
        let read = Filter::from_chunks(&chunks, BATCH).unwrap();
        assert_eq!(read.len(), 2_000);
        assert!(!(0..2_000).any(|number| read.says_absent(&id(number))));
        assert!(read.says_absent(&id(5_000)));
        let other_number = BatchId { number: 18, ..BATCH };
        let other_term = BatchId { epoch: Epoch(4), ..BATCH };
        assert!(Filter::from_chunks(&chunks, other_number).is_none());
        assert!(Filter::from_chunks(&chunks, other_term).is_none());
    }

    #[test]
    fn damaged_chunks_are_no_filter() {
        let chunks = filled(10).to_chunks(BATCH);
        assert!(Filter::from_chunks(&[], BATCH).is_none());
        assert!(Filter::from_chunks(&chunks[..1], BATCH).is_none());
        for chunk in 0..chunks.len() {
            let mut damaged = chunks.clone();
            damaged[chunk][0] ^= 0x40;
            assert!(Filter::from_chunks(&damaged, BATCH).is_none(), "chunk {chunk}");
        }
    }
}
