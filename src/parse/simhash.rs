//! Fingerprints of a page's text: near-duplicates by SimHash, duplicates by a wide hash (D4).

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Fewer words than this say too little.
const WORDS_MIN: usize = 8;

/// The 64-bit SimHash over shingles of three words, in lower case; texts that differ little differ
/// in few bits. `None` under eight words. Ideographs and kana, which no spaces separate, are words
/// of their own.
pub fn simhash(text: &str) -> Option<u64> {
    let mut votes = [0_i32; 64];
    let mut window = [0_u64; 3];
    let mut count = 0_usize;
    let lower = lower(text);
    for word in words(&lower) {
        let [_, before, last] = window;
        window = [before, last, xxh3_64(word.as_bytes())];
        count += 1;
        if count >= 3 {
            vote(&mut votes, shingle(window));
        }
    }
    if count < WORDS_MIN {
        return None;
    }
    let bits = votes.iter().enumerate().filter(|(_, vote)| **vote > 0);
    Some(bits.fold(0, |hash, (bit, _)| hash | 1 << bit))
}

/// The hash of a text that is the same but for case and white space.
pub fn text_fingerprint(text: &str) -> u128 {
    let mut hasher = Xxh3::new();
    for word in lower(text).split_whitespace() {
        hasher.update(word.as_bytes());
        hasher.update(b" ");
    }
    hasher.digest128()
}

/// Bits in which two hashes differ.
pub fn distance(one: u64, other: u64) -> u32 {
    (one ^ other).count_ones()
}

fn lower(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.to_lowercase() }
}

/// One hash for three, in which their order matters.
fn shingle(window: [u64; 3]) -> u64 {
    let mut bytes = [0; 24];
    for (to, from) in bytes.chunks_exact_mut(8).zip(window) {
        to.copy_from_slice(&from.to_le_bytes());
    }
    xxh3_64(&bytes)
}

fn vote(votes: &mut [i32; 64], hash: u64) {
    for (bit, vote) in votes.iter_mut().enumerate() {
        *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
    }
}

/// Runs of letters and digits; ideographs and kana one by one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|run| !run.is_empty())
        .flat_map(|run| run.split_inclusive(is_ideograph))
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(words: usize) -> String {
        (0..words).map(|n| format!("word{} ", n * n % 97)).collect()
    }

    #[test]
    fn near_texts_differ_in_few_bits() {
        let one = prose(400);
        let other = one.replacen("word4 ", "changed ", 1);
        let far: String = (0..400).map(|n| format!("other{} ", n * 7 % 89)).collect();
        let hash = |text: &str| simhash(text).unwrap();
        assert!(distance(hash(&one), hash(&other)) <= 8);
        assert!(distance(hash(&one), hash(&far)) > 16);
        assert_eq!(hash(&one), hash(&one.to_uppercase().replace(' ', ", \n")));
    }

    #[test]
    fn short_texts_have_none() {
        assert_eq!(simhash("one two three four five six seven"), None);
        assert!(simhash("one two three four five six seven eight").is_some());
        assert!(simhash("これは日本語の文章です").is_some());
        assert_eq!(simhash(""), None);
    }

    #[test]
    fn fingerprints_ignore_case_and_white_space_only() {
        assert_eq!(text_fingerprint("A  b\nÉ"), text_fingerprint("a b é "));
        assert_ne!(text_fingerprint("a b"), text_fingerprint("ab"));
        assert_ne!(text_fingerprint("a b"), text_fingerprint("a, b"));
    }
}
