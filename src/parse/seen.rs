//! Which links of a page there are already, by hash.
//!
//! The hash depends on a random seed, so that no page can be made of links that share one (P2).
//! What is found by it must still be compared: two links may share a hash by chance, and then the
//! later one is not found again.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::types::LinkKind;

/// Links by their hash, with what is known of each.
#[derive(Debug)]
pub(super) struct Seen<T> {
    seed: u64,
    by_hash: HashMap<u64, T, BuildHasherDefault<AsItIs>>,
}

impl<T: Copy> Seen<T> {
    /// With room for so many.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let by_hash = HashMap::with_capacity_and_hasher(capacity, BuildHasherDefault::default());
        Self { seed: RandomState::new().hash_one(0_u8), by_hash }
    }

    /// The hash of a link.
    pub(super) fn hash(&self, kind: LinkKind, url: &str) -> u64 {
        xxh3_64_with_seed(url.as_bytes(), self.seed.wrapping_add(kind as u64))
    }

    /// What is known of the link with this hash.
    pub(super) fn get(&self, hash: u64) -> Option<T> {
        self.by_hash.get(&hash).copied()
    }

    /// Remembers a link, unless another one has its hash.
    pub(super) fn insert(&mut self, hash: u64, known: T) {
        self.by_hash.entry(hash).or_insert(known);
    }
}

/// The keys are hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_apart_by_kind_and_url() {
        let mut seen = Seen::with_capacity(2);
        let kinds = [LinkKind::A, LinkKind::Image];
        for (at, kind) in kinds.into_iter().enumerate() {
            let hash = seen.hash(kind, "x");
            assert_eq!(seen.get(hash), None);
            seen.insert(hash, at);
        }
        assert_eq!(kinds.map(|kind| seen.get(seen.hash(kind, "x"))), [Some(0), Some(1)]);
        assert_eq!(seen.get(seen.hash(LinkKind::A, "y")), None);
    }

    #[test]
    fn no_two_pages_share_their_hashes() {
        let hash = || Seen::<()>::with_capacity(0).hash(LinkKind::A, "x");
        assert_ne!(hash(), hash());
    }
}
