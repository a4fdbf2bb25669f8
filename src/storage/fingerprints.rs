//! D2: the exact cache of known URLs, in front of filter and table.
//!
//! - What it says is known is known: a fingerprint has 128 bits and a secret seed, and depends on
//!   nothing the table's keys depend on, so no page can make a URL that passes for another.
//! - What it does not know may be known all the same.
//! - It has a bound, of 16 bytes a URL and a byte for every four, and grows towards it with what
//!   it holds, a set at a time (linear hashing: W. Litwin, 1980): no call waits for a larger table,
//!   and a short crawl does not touch a page of memory for each of its URLs.
//! - At its bound it evicts by second chance within a set of eight: what is asked for again and
//!   again, the navigation links of a site, stays.
//!
//! Deterministic: the same calls leave the same cache.

use xxhash_rust::xxh3::xxh3_128_with_seed;

/// Entries of a set: 128 bytes, two cache lines.
const WAYS: usize = 8;
/// Sets of a new cache: a page of memory.
const SETS_FIRST: usize = 32;
/// The cache grows when it holds so many entries a set on average. The sets that are not split yet
/// hold up to twice as many, four of eight, and one of them in fifty is asked for a ninth.
const FILLED: usize = 2;

/// A URL as the cache knows it; never 0, which marks an empty place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u128);

/// The cache.
#[derive(Debug)]
pub struct Fingerprints {
    seed: u64,
    sets: Vec<[u128; WAYS]>,
    marks: Vec<Marks>,
    /// Sets at the beginning of this round of splits, a power of two; those beyond it are the other
    /// halves of the first ones.
    round: usize,
    sets_max: usize,
    len: usize,
}

/// Second chances of one set.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// One bit an entry: asked for since the hand passed.
    asked: u8,
    /// Where the hand stands.
    hand: u8,
}

impl Fingerprints {
    /// A cache for at least `capacity` URLs, keyed by a secret seed.
    pub fn new(capacity: usize, seed: u64) -> Self {
        let sets_max = capacity.div_ceil(WAYS).max(1);
        let round = SETS_FIRST.min(1 << sets_max.ilog2());
        // Room that is not touched costs nothing, and what is there never moves.
        let mut sets = Vec::with_capacity(sets_max);
        let mut marks = Vec::with_capacity(sets_max);
        sets.resize(round, [0; WAYS]);
        marks.resize(round, Marks::default());
        Self { seed, sets, marks, round, sets_max, len: 0 }
    }

    /// The fingerprint of a URL's recognised form.
    pub fn of(&self, recognised: &str) -> Fingerprint {
        Fingerprint(xxh3_128_with_seed(recognised.as_bytes(), self.seed).max(1))
    }

    /// Whether the URL is certainly known; an answer of true keeps it longer.
    pub fn contains(&mut self, fingerprint: Fingerprint) -> bool {
        let set = self.set_of(fingerprint);
        let Some(way) = self.sets[set].iter().position(|entry| *entry == fingerprint.0) else {
            return false;
        };
        self.marks[set].asked |= 1 << way;
        true
    }

    /// Remembers a URL that is in the table; forgets another one where there is no place.
    pub fn insert(&mut self, fingerprint: Fingerprint) {
        if self.contains(fingerprint) {
            return;
        }
        if self.len >= FILLED * self.sets.len() && self.sets.len() < self.sets_max {
            self.split();
        }
        let set = self.set_of(fingerprint);
        let empty = self.sets[set].iter().position(|entry| *entry == 0);
        self.len += usize::from(empty.is_some());
        let way = empty.unwrap_or_else(|| self.marks[set].evict());
        self.sets[set][way] = fingerprint.0;
    }

    /// URLs in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it knows nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// URLs it has places for when it is grown.
    pub fn capacity(&self) -> usize {
        self.sets_max * WAYS
    }

    /// The set: by so many bits as the round has, and one more where its set is split already.
    fn set_of(&self, fingerprint: Fingerprint) -> usize {
        let bits = usize::try_from((fingerprint.0 >> 64) & (usize::MAX as u128)).unwrap_or(0);
        let wide = bits & (2 * self.round - 1);
        if wide < self.sets.len() { wide } else { wide - self.round }
    }

    /// The next set of the round gives those of its entries that have one bit more to a new set.
    fn split(&mut self) {
        let (from, to) = (self.sets.len() - self.round, self.sets.len());
        self.sets.push([0; WAYS]);
        self.marks.push(Marks::default());
        for way in 0..WAYS {
            let entry = self.sets[from][way];
            if entry != 0 && self.set_of(Fingerprint(entry)) == to {
                self.sets[to][way] = std::mem::take(&mut self.sets[from][way]);
                let asked = self.marks[from].asked & (1 << way);
                self.marks[from].asked &= !asked;
                self.marks[to].asked |= asked;
            }
        }
        if self.sets.len() == 2 * self.round {
            self.round *= 2;
        }
    }
}

impl Marks {
    /// The entry to give up: the first behind the hand that was not asked for since it passed.
    fn evict(&mut self) -> usize {
        loop {
            let way = usize::from(self.hand);
            self.hand = (self.hand + 1) % 8;
            if self.asked & (1 << way) == 0 {
                return way;
            }
            self.asked &= !(1 << way);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: u32) -> String {
        format!("https://example.com/some/longer/path/page-{number}.html?a=b")
    }

    #[test]
    fn what_was_inserted_is_known_and_nothing_else() {
        let mut cache = Fingerprints::new(4096, 7);
        for number in 0..1000 {
            cache.insert(cache.of(&url(number)));
        }
        let known = (0..1000).filter(|number| cache.contains(cache.of(&url(*number)))).count();
        assert_eq!(cache.len(), known);
        assert!(known >= 990, "a set that is full too soon forgets one: {known}");
        assert!(!(1000..20_000).any(|number| cache.contains(cache.of(&url(number)))));
    }

    #[test]
    fn it_grows_with_what_it_holds() {
        for capacity in [8, 100, 5000, 70_000, 1 << 17] {
            let mut cache = Fingerprints::new(capacity, 7);
            let mut lost = 0;
            for number in 0..20_000 {
                let entry = cache.of(&url(number));
                cache.insert(entry);
                assert!(cache.contains(entry), "{number} of {capacity}");
                let wanted = (cache.len() / FILLED + 1).max(SETS_FIRST).min(cache.sets_max);
                assert!(cache.sets.len() <= wanted, "{} sets for {number}", cache.sets.len());
            }
            for number in 0..20_000 {
                lost += u32::from(!cache.contains(cache.of(&url(number))));
            }
            let stored = cache.sets.iter().flatten().filter(|entry| **entry != 0).count();
            assert_eq!(stored, cache.len());
            assert!(cache.len() <= cache.capacity());
            // One in two hundred is evicted on the way; where there is no room, all beyond it.
            let beyond = 20_000_u32.saturating_sub(u32::try_from(capacity * 3 / 4).unwrap());
            assert!(lost <= beyond.max(100), "{lost} lost of {capacity}");
        }
    }

    #[test]
    fn it_never_outgrows_its_capacity_and_keeps_what_is_asked_for() {
        let mut cache = Fingerprints::new(256, 7);
        let navigation: Vec<Fingerprint> = (0..8).map(|number| cache.of(&url(number))).collect();
        for entry in &navigation {
            cache.insert(*entry);
        }
        let mut kept = 0;
        for number in 100..20_000 {
            cache.insert(cache.of(&url(number)));
            if number % 8 == 0 {
                kept = navigation.iter().filter(|entry| cache.contains(**entry)).count();
            }
        }
        assert_eq!((cache.len(), cache.capacity()), (256, 256));
        assert!(kept >= 7, "{kept} of 8 stayed");
    }

    #[test]
    fn a_seed_makes_the_fingerprints_its_own() {
        let (one, two) = (Fingerprints::new(8, 1), Fingerprints::new(8, 2));
        assert_ne!(one.of("https://example.com/"), two.of("https://example.com/"));
    }

    #[test]
    fn the_same_calls_leave_the_same_cache() {
        let run = || {
            let mut cache = Fingerprints::new(64, 3);
            for number in 0..5000 {
                cache.insert(cache.of(&url(number % 300)));
            }
            (0..300).map(|number| cache.contains(cache.of(&url(number)))).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_cache_of_nothing_still_works() {
        let mut cache = Fingerprints::new(0, 1);
        let entry = cache.of("https://example.com/");
        assert!(cache.is_empty() && !cache.contains(entry));
        cache.insert(entry);
        assert!(cache.contains(entry));
    }
}
