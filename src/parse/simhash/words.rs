//! The words of a text and their hashes.

use xxhash_rust::xxh3::xxh3_64;

use super::{CLASSES, IDEOGRAPH, WORD, class_of};

/// Bytes looked at together: as many as a mask has bits.
const BLOCK_BYTES: usize = 64;
/// Words up to this are hashed in one register.
const SHORT_BYTES: usize = 8;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Calls `found` with the hash of each word of a text in lower case.
///
/// Text goes 64 bytes at a time: a mask has a bit for each byte of a letter or digit, and words
/// begin and end where neighbouring bits differ, so that no branch depends on the length of a word.
pub(super) fn for_each_word(text: &str, found: impl FnMut(u64)) {
    let classes = CLASSES.as_slice();
    let mut words = Words { text, classes, open: None, found };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        at = words.block(at, block);
    }
    words.characters(at, bytes.len());
    words.close(bytes.len());
}

struct Words<'t, F> {
    text: &'t str,
    classes: &'static [u8],
    /// Where the word under way began.
    open: Option<usize>,
    found: F,
}

impl<F: FnMut(u64)> Words<'_, F> {
    /// The words of a block; gives the end of the last character that is whole.
    fn block(&mut self, at: usize, block: &[u8; BLOCK_BYTES]) -> usize {
        let (mut mask, others) = masks(block);
        let mut length = BLOCK_BYTES;
        if others != 0 {
            let end = (0..4).map(|cut| at + BLOCK_BYTES - cut);
            let end = end.into_iter().find(|end| self.text.is_char_boundary(*end));
            length = end.unwrap_or(at + BLOCK_BYTES) - at;
            let Some(words) = self.words_among(at, length, others) else {
                return self.characters(at, at + length);
            };
            mask |= words;
        }
        // A bit for each byte that is in a word where the one before it is not, or the reverse.
        let mut edges = mask ^ (mask << 1 | u64::from(self.open.is_some()));
        edges &= u64::MAX >> (BLOCK_BYTES - length);
        while edges != 0 {
            let edge = at + usize::try_from(edges.trailing_zeros()).unwrap_or_default();
            edges &= edges - 1;
            match self.open.take() {
                Some(start) => (self.found)(hash(self.text.as_bytes(), start, edge)),
                None => self.open = Some(edge),
            }
        }
        at + length
    }

    /// A bit for each byte of the letters and digits beyond ASCII that begin at bits of `others`;
    /// `None` where one is a word of its own.
    fn words_among(&self, at: usize, length: usize, mut others: u64) -> Option<u64> {
        let mut mask = 0;
        others &= u64::MAX >> (BLOCK_BYTES - length);
        while others != 0 {
            let place = others.trailing_zeros();
            let from = at + usize::try_from(place).unwrap_or_default();
            let c = self.text.get(from..).and_then(|rest| rest.chars().next())?;
            // At most four bytes, the last one within the block.
            let bits = ((1_u64 << c.len_utf8()) - 1) << place;
            others &= !bits;
            let class = class_of(self.classes, c);
            if class & IDEOGRAPH != 0 {
                return None;
            }
            if class & WORD != 0 {
                mask |= bits;
            }
        }
        Some(mask)
    }

    /// Character by character, between two of them; gives `end`.
    fn characters(&mut self, start: usize, end: usize) -> usize {
        let mut at = start;
        for c in self.text.get(start..end).unwrap_or_default().chars() {
            let class = class_of(self.classes, c);
            if class & WORD == 0 {
                self.close(at);
            } else if class & IDEOGRAPH != 0 {
                self.close(at);
                (self.found)(short(u64::from(u32::from(c)), 0));
            } else if self.open.is_none() {
                self.open = Some(at);
            }
            at += c.len_utf8();
        }
        end
    }

    fn close(&mut self, end: usize) {
        if let Some(start) = self.open.take() {
            (self.found)(hash(self.text.as_bytes(), start, end));
        }
    }
}

/// A bit for each ASCII letter in lower case or digit, and one for each byte that is not ASCII.
fn masks(block: &[u8; BLOCK_BYTES]) -> (u64, u64) {
    let (eights, _) = block.as_chunks::<8>();
    eights.iter().rev().fold((0, 0), |(words, others), eight| {
        let eight = u64::from_le_bytes(*eight);
        (words << 8 | gather(word_bits(eight)), others << 8 | gather(eight))
    })
}

/// The high bit of each letter or digit among eight bytes. Nothing is carried from a byte into the
/// next: each is below 128 here, and what is added brings it to 128 where it is at least the bound.
fn word_bits(eight: u64) -> u64 {
    let low = eight & (ONES * 0x7f);
    let at_least = |bound: u8| low + ONES * u64::from(128 - bound);
    let letters = at_least(b'a') & !at_least(b'z' + 1);
    let digits = at_least(b'0') & !at_least(b'9' + 1);
    (letters | digits) & !eight
}

/// The high bits of eight bytes, gathered in one byte by the product.
fn gather(eight: u64) -> u64 {
    ((eight >> 7) & ONES).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The hash of a word: xxh3 for long ones; for short ones their bytes and length, multiplied.
#[inline]
fn hash(bytes: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    let ahead: Option<&[u8; SHORT_BYTES]> = bytes.get(start..).and_then(<[u8]>::first_chunk);
    match ahead {
        Some(ahead) if length <= SHORT_BYTES => {
            let unused = 8 * (SHORT_BYTES - length);
            short(u64::from_le_bytes(*ahead) << unused, length)
        }
        Some(_) if length > SHORT_BYTES => xxh3_64(bytes.get(start..end).unwrap_or_default()),
        Some(_) | None => {
            let mut padded = [0; SHORT_BYTES];
            let word = bytes.get(start..end).unwrap_or_default();
            padded.iter_mut().rev().zip(word.iter().rev()).for_each(|(to, from)| *to = *from);
            short(u64::from_le_bytes(padded), length)
        }
    }
}

/// The whole of a product of 128 bits, folded, so that every bit depends on every byte.
fn short(word: u64, length: usize) -> u64 {
    let salt = 0x2d35_8dcc_aa6c_78a5 ^ u64::try_from(length).unwrap_or_default();
    let product = u128::from(word ^ 0x8bb8_4b93_962e_acc9) * u128::from(salt);
    let [low, high] = [0, 64].map(|shift| u64::try_from(product >> shift & MASK).unwrap_or(0));
    low ^ high
}

const MASK: u128 = 0xffff_ffff_ffff_ffff;
