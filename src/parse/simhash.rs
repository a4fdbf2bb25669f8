//! Fingerprints of a page's text: near-duplicates by SimHash, duplicates by a wide hash (D4).
//!
//! Both read the same normal form: lower case, white space folded. Time is linear in the text, and
//! a word costs no allocation: its hash is a multiplication, its shingle another, and the votes of
//! a shingle are counted eight bits to a register.

use std::sync::LazyLock;

use encoding_rs::Encoding;
use xxhash_rust::xxh3::xxh3_128;

use super::html::fold;

mod words;

use words::for_each_word;

/// Fewer words than this say too little.
const WORDS_MIN: usize = 8;

/// Odd, without structure: each place in a shingle has its own, so that order matters.
const PLACES: [u64; 3] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9];
/// One bit in each of eight lanes.
const LANES: u64 = 0x0101_0101_0101_0101;
/// What a lane can count.
const LANE_MAX: u32 = 255;

/// What identifies a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    /// The 64-bit SimHash over shingles of three words; texts that differ little differ in few
    /// bits. `None` under eight words. Words are runs of letters and digits; ideographs and kana,
    /// which no spaces separate, are words of their own.
    pub simhash: Option<u64>,
    /// The hash of a text that is the same but for case and white space.
    pub text: u128,
}

/// The fingerprints of a text.
pub fn fingerprints(text: &str) -> Fingerprints {
    let normal = normal(text);
    Fingerprints { simhash: simhash(&normal), text: xxh3_128(normal.as_bytes()) }
}

/// Bits in which two hashes differ.
pub fn distance(one: u64, other: u64) -> u32 {
    (one ^ other).count_ones()
}

fn simhash(normal: &str) -> Option<u64> {
    let mut votes = Votes::default();
    let mut window = [0_u64; 2];
    let mut count = 0_usize;
    for_each_word(normal, |word| {
        let [first, second] = window;
        window = [second, word];
        count += 1;
        if count > window.len() {
            votes.count(shingle([first, second, word]));
        }
    });
    (count >= WORDS_MIN).then(|| votes.majority())
}

/// One hash for three, in which their order matters.
fn shingle(words: [u64; 3]) -> u64 {
    let sum = words
        .into_iter()
        .zip(PLACES)
        .fold(0_u64, |sum, (word, place)| sum.wrapping_add(word.wrapping_mul(place)));
    // The high half of a product depends on all bits below it; the low half does not.
    let mixed = (sum ^ (sum >> 32)).wrapping_mul(PLACES[1]);
    mixed ^ (mixed >> 29)
}

/// For each of 64 bits, how many shingles have it.
///
/// Lane `l` of register `r` counts bit `8 l + r`; before a lane may overflow, all go to `sums`.
#[derive(Debug)]
struct Votes {
    registers: [u64; 8],
    in_registers: u32,
    sums: [u32; 64],
    total: u32,
}

impl Default for Votes {
    fn default() -> Self {
        Self { registers: [0; 8], in_registers: 0, sums: [0; 64], total: 0 }
    }
}

impl Votes {
    fn count(&mut self, shingle: u64) {
        if self.in_registers == LANE_MAX {
            self.flush();
        }
        self.in_registers += 1;
        for (bit, register) in self.registers.iter_mut().enumerate() {
            *register += (shingle >> bit) & LANES;
        }
    }

    fn flush(&mut self) {
        for (place, register) in self.registers.iter_mut().enumerate() {
            for (lane, count) in register.to_le_bytes().into_iter().enumerate() {
                self.sums[8 * lane + place] += u32::from(count);
            }
            *register = 0;
        }
        self.total += self.in_registers;
        self.in_registers = 0;
    }

    /// The bits that more than half of the shingles have.
    fn majority(&mut self) -> u64 {
        self.flush();
        let half = self.total / 2;
        let bits = self.sums.iter().enumerate().filter(|(_, sum)| **sum > half);
        bits.fold(0, |hash, (bit, _)| hash | 1 << bit)
    }
}

/// Lower case, every word followed by one space.
///
/// Letter by letter: the small sigma at the end of a word is one like the others.
fn normal(text: &str) -> String {
    let classes = CLASSES.as_slice();
    let mut out = String::with_capacity(text.len() + 1);
    // What has been looked at, and what of it is in `out`.
    let (mut at, mut copied) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = Encoding::ascii_valid_up_to(rest.as_bytes());
        at += plain;
        for c in rest.get(plain..).unwrap_or_default().chars().take_while(|c| !c.is_ascii()) {
            if class_of(classes, c) & (CHANGES | SPACE) != 0 {
                out.push_str(text.get(copied..at).unwrap_or_default());
                lower_into(c, &mut out);
                copied = at + c.len_utf8();
            }
            at += c.len_utf8();
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out.make_ascii_lowercase();
    let (mut out, _) = fold(&out, usize::MAX);
    out.push(' ');
    out
}

/// Appends what stands for a character that is not its own normal form.
fn lower_into(c: char, out: &mut String) {
    if c.is_whitespace() {
        out.push(' ');
    } else if c == 'ς' {
        out.push('σ');
    } else {
        out.extend(c.to_lowercase());
    }
}

/// A letter or a digit.
const WORD: u8 = 1;
/// A word of its own.
const IDEOGRAPH: u8 = 2;
/// Another one in the normal form.
const CHANGES: u8 = 4;
/// White space beyond ASCII.
const SPACE: u8 = 8;

/// The classes of the Basic Multilingual Plane; the tables of the standard library are searched,
/// which is too slow for every letter of a page.
static CLASSES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..=0xffff_u32).map(|code| char::from_u32(code).map_or(0, searched_class)).collect()
});

/// The class of a character, by [`CLASSES`].
fn class_of(classes: &[u8], c: char) -> u8 {
    let place = usize::try_from(u32::from(c)).unwrap_or(usize::MAX);
    classes.get(place).copied().unwrap_or_else(|| searched_class(c))
}

fn searched_class(c: char) -> u8 {
    let is_same = c.to_lowercase().eq([c]) && c != 'ς';
    let flag = |is: bool, bit: u8| if is { bit } else { 0 };
    flag(c.is_alphanumeric(), WORD)
        | flag(c.is_alphanumeric() && is_ideograph(c), IDEOGRAPH)
        | flag(!is_same, CHANGES)
        | flag(c.is_whitespace() && !c.is_ascii(), SPACE)
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests;
