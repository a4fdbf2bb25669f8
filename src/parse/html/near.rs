//! Searches whose end is near: most runs of text, names and values are shorter than what it costs
//! to set up a wide search.

use memchr::memchr;

/// Looked at by hand before the wide search.
const NEAR_BYTES: usize = 32;
const ONES: u64 = 0x0101_0101_0101_0101;

/// The next place of a byte, from `start` on.
pub(super) fn find(byte: u8, bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let (eights, _) = rest.get(..NEAR_BYTES).unwrap_or_default().as_chunks::<8>();
    let mut at = start;
    for eight in eights {
        let same = u64::from_le_bytes(*eight) ^ (ONES * u64::from(byte));
        // The lowest of these bits is the first zero byte; higher ones may be wrong.
        let zeros = same.wrapping_sub(ONES) & !same & (ONES * 0x80);
        if zeros != 0 {
            return Some(at + usize::try_from(zeros.trailing_zeros() / 8).unwrap_or_default());
        }
        at += eight.len();
    }
    Some(at + memchr(byte, bytes.get(at..)?)?)
}

/// The first place from `start` on where the byte is one of a set; the end where none is.
pub(super) fn find_in(set: &[bool; 256], bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| set[usize::from(*byte)]);
    start + length.unwrap_or(rest.len())
}

/// A set of bytes.
pub(super) const fn set(bytes: &[u8]) -> [bool; 256] {
    let mut set = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        set[bytes[at] as usize] = true;
        at += 1;
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_is_found_wherever_it_is() {
        for length in 0..100 {
            let mut bytes = vec![b'a'; 100];
            // Neighbours of the byte that is looked for, on both sides.
            bytes[length..].iter_mut().step_by(2).for_each(|byte| *byte = b'<');
            bytes[..length].iter_mut().step_by(3).for_each(|byte| *byte = b'=');
            bytes[..length].iter_mut().step_by(5).for_each(|byte| *byte = b'=' | 0x80);
            for start in 0..=length {
                assert_eq!(find(b'<', &bytes, start), Some(length));
                assert_eq!(find(b'<', &bytes[..length], start), None);
            }
        }
        assert_eq!(find(b'<', b"<", 1), None);
        assert_eq!(find(b'<', b"<", 2), None);
    }

    #[test]
    fn sets_hold_their_bytes() {
        let ends = set(b" >");
        assert_eq!([find_in(&ends, b"a=b>", 0), find_in(&ends, b"ab", 1)], [3, 2]);
    }
}
