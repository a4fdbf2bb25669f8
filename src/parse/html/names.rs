//! Names of elements and attributes as numbers, so that one is looked up without comparing text.

/// Longer names are in no table.
const NAME_BYTES_MAX: usize = 15;
const ONES: u64 = 0x0101_0101_0101_0101;
const SLOTS: usize = 256;

/// A name in lower case: its bytes, and its length in the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name([u64; 2]);

impl Name {
    /// No name has this one's length.
    const NONE: Self = Self([0, u64::MAX]);

    /// The name between two places of a document, in any case.
    pub(super) fn between(bytes: &[u8], start: usize, end: usize) -> Self {
        let length = end - start;
        if length > NAME_BYTES_MAX {
            return Self::NONE;
        }
        let low = lower(eight(bytes, start, length.min(8)));
        let high = lower(eight(bytes, start + 8, length.saturating_sub(8)));
        Self([low, high | u64::try_from(length).unwrap_or_default() << 56])
    }

    /// A name as it stands in a table.
    const fn of(name: &str) -> Self {
        let bytes = name.as_bytes();
        assert!(bytes.len() <= NAME_BYTES_MAX, "the name is too long for a table");
        let mut halves = [0; 2];
        let mut at = 0;
        while at < bytes.len() {
            halves[at / 8] |= (bytes[at] as u64) << (at % 8 * 8);
            at += 1;
        }
        halves[1] |= (bytes.len() as u64) << 56;
        Self(halves)
    }

    const fn slot(self) -> u8 {
        let [low, high] = self.0;
        (low ^ high.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
    }
}

/// Up to eight bytes as a number, the first one lowest.
fn eight(bytes: &[u8], start: usize, length: usize) -> u64 {
    let ahead: Option<&[u8; 8]> = bytes.get(start..).and_then(<[u8]>::first_chunk);
    match ahead {
        _ if length == 0 => 0,
        Some(ahead) => u64::from_le_bytes(*ahead) & (u64::MAX >> (64 - 8 * length)),
        None => {
            let mut padded = [0; 8];
            let name = bytes.get(start..start + length).unwrap_or_default();
            padded.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(padded)
        }
    }
}

/// Eight bytes, those from A to Z in lower case. No sum is carried into the next byte, because the
/// high bits are left out.
fn lower(eight: u64) -> u64 {
    let low = eight & (ONES * 0x7f);
    let from_a = low + ONES * (0x80 - 0x41);
    let beyond_z = low + ONES * (0x80 - 0x5b);
    let upper = from_a & !beyond_z & !eight & (ONES * 0x80);
    eight | upper >> 2
}

/// What names mean; made when the program is built.
#[derive(Debug)]
pub(super) struct Names<T> {
    slots: [(Name, T); SLOTS],
}

impl<T: Copy> Names<T> {
    /// A table of fewer names than it has slots; all others mean `other`.
    pub(super) const fn new(names: &[(&str, T)], other: T) -> Self {
        assert!(names.len() < SLOTS / 2, "a table is fast while half of it is free");
        let mut slots = [(Name::NONE, other); SLOTS];
        let mut at = 0;
        while at < names.len() {
            let name = Name::of(names[at].0);
            let mut slot = name.slot();
            while slots[slot as usize].0.0[1] != Name::NONE.0[1] {
                slot = slot.wrapping_add(1);
            }
            slots[slot as usize] = (name, names[at].1);
            at += 1;
        }
        Self { slots }
    }

    /// What a name means.
    pub(super) fn get(&self, name: Name) -> T {
        let mut slot = name.slot();
        loop {
            let (found, meaning) = self.slots[usize::from(slot)];
            if found == name || found == Name::NONE {
                return meaning;
            }
            slot = slot.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: Names<u8> =
        Names::new(&[("a", 1), ("href", 2), ("blockquote", 3), ("foreignobject", 4)], 0);

    fn get(name: &[u8]) -> u8 {
        let (before, after) = (b"<x ".as_slice(), b"=y>".as_slice());
        let long = [before, name, after, b"........................"].concat();
        let found = [
            TABLE.get(Name::between(name, 0, name.len())),
            TABLE.get(Name::between(&long, before.len(), before.len() + name.len())),
        ];
        assert_eq!(found[0], found[1], "{name:?}");
        found[0]
    }

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        for (name, meaning) in
            [("a", 1), ("A", 1), ("hReF", 2), ("BlockQuote", 3), ("foreignObject", 4)]
        {
            assert_eq!(get(name.as_bytes()), meaning, "{name}");
            assert_eq!(get(&[name.as_bytes(), b"\0"].concat()), 0);
            assert_eq!(get(&[name.as_bytes(), "é".as_bytes()].concat()), 0);
        }
        for name in ["", "b", "\0", "hre", "href1", "(ref", "hre\x06", "foreignobjectforeignobject"]
        {
            assert_eq!(get(name.as_bytes()), 0, "{name}");
        }
        assert_eq!(get(b"hre\xc6"), 0);
        assert_eq!(get(b"hre\xe6"), 0);
    }
}
