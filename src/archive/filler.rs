//! What takes the place of a record that is removed: a member of the very same length, so that
//! every pointer to a later record of the file stays right (R5).
//!
//! The member holds a record of a type that readers do not know and pass over. It says that a
//! record was removed, when and, but in the shortest ones, by which exclusion, and nothing of what
//! was there. Its block is
//! filled with blanks, uncompressed, so that any length can be met; what no number of blanks can
//! meet, since the number of digits changes, goes into the comment of the gzip header, or into one
//! more block.

use std::fmt::Write;

use super::digest::sha1_of;
use super::member::{ArchiveFormat, size, write_stored};
use super::warc::record_id;
use crate::types::Timestamp;
use crate::world::Dice;

/// The WARC-Type of a record that takes the place of one that was removed.
pub(super) const REMOVED: &str = "removed";

/// A filler of every length from here on can be made; records of ours are longer.
pub(super) const LENGTH_MIN: u64 = 200;

/// gzip: header and trailer of a member.
const GZIP_FRAME: usize = 18;
/// gzip: the header of a stored block, and what a block takes.
const STORED_HEADER: usize = 5;
const STORED_BLOCK: usize = 65_535;
/// zstd: magic, descriptor and an eight-byte content size.
const ZSTD_FRAME: usize = 13;
/// zstd: the header of a raw block, and what a block takes.
const RAW_HEADER: usize = 3;
const RAW_BLOCK: usize = 128 << 10;
/// Bytes of frame that are added at most to meet a length.
const ADDED_MAX: usize = 32;

/// What a filler says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removal<'r> {
    /// When.
    pub(super) at: Timestamp,
    /// The id of the exclusion.
    pub(super) exclusion: &'r str,
}

/// A member of exactly this length; `None` where it is too short for any record to be in it.
pub(super) fn member(
    format: ArchiveFormat,
    length: u64,
    removal: Removal<'_>,
    dice: &dyn Dice,
) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok()?;
    let id = record_id(dice);
    let shapes = [true, false].map(|full| Shape { id: &id, removal, full });
    shapes.iter().find_map(|shape| match format {
        ArchiveFormat::WarcGz => gzip(length, shape),
        ArchiveFormat::WarcZst => zstd(length, shape),
    })
}

fn gzip(length: usize, shape: &Shape<'_>) -> Option<Vec<u8>> {
    (0..=ADDED_MAX).find_map(|comment| {
        let room = length.checked_sub(GZIP_FRAME + comment)?;
        let blocks = room.div_ceil(STORED_BLOCK + STORED_HEADER);
        let record = room.checked_sub(blocks * STORED_HEADER)?;
        if record.div_ceil(STORED_BLOCK) != blocks {
            return None;
        }
        let record = shape.record(record)?;
        let mut member = Vec::with_capacity(length);
        write_stored(&[&record], &mut member);
        if comment > 0 {
            // RFC 1952 2.3: FCOMMENT, which ends with a zero byte.
            *member.get_mut(3)? |= 1 << 4;
            let text = std::iter::repeat_n(b'-', comment - 1).chain([0]);
            member.splice(10..10, text);
        }
        (member.len() == length).then_some(member)
    })
}

/// RFC 8878: a frame of one segment with a content size and without a checksum, in raw blocks.
fn zstd(length: usize, shape: &Shape<'_>) -> Option<Vec<u8>> {
    (0..=ADDED_MAX / RAW_HEADER).find_map(|more| {
        let room = length.checked_sub(ZSTD_FRAME)?;
        let blocks = room.div_ceil(RAW_BLOCK + RAW_HEADER) + more;
        let record = room.checked_sub(blocks * RAW_HEADER)?;
        let record = shape.record(record)?;
        let mut member = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000];
        member.extend(size(record.len()).to_le_bytes());
        let mut chunks = record.chunks(RAW_BLOCK);
        for left in (0..blocks).rev() {
            let chunk = chunks.next().unwrap_or_default();
            let header = u32::try_from(chunk.len()).ok()? << 3 | u32::from(left == 0);
            member.extend(header.to_le_bytes().get(..RAW_HEADER)?);
            member.extend_from_slice(chunk);
        }
        (member.len() == length).then_some(member)
    })
}

/// The record in a filler, without its length.
struct Shape<'s> {
    id: &'s str,
    removal: Removal<'s>,
    /// With block, digest and type; without them there is room in the shortest of members.
    full: bool,
}

impl Shape<'_> {
    /// The record with exactly this many bytes.
    fn record(&self, length: usize) -> Option<Vec<u8>> {
        let Removal { at, exclusion } = self.removal;
        let text = if self.full {
            format!("removed: {at}\r\nexclusion: {exclusion}\r\n")
        } else {
            String::new()
        };
        let mut head = String::from("WARC/1.1\r\nWARC-Type: ");
        let date = at.to_warc_date();
        let id = self.id;
        write!(head, "{REMOVED}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {date}\r\n").ok()?;
        if self.full {
            head.push_str("Content-Type: text/plain\r\n");
        }
        let digest =
            if self.full { "WARC-Block-Digest: \r\n".len() + sha1_of(&[]).len() } else { 0 };
        let around = head.len() + digest + "Content-Length: \r\n\r\n".len() + "\r\n\r\n".len();
        let (block, digits) = (1..=20).find_map(|digits| {
            let block = length.checked_sub(around + digits)?;
            (block.to_string().len() == digits && block >= text.len()).then_some((block, digits))
        })?;
        let mut filled = text.into_bytes();
        filled.resize(block, b' ');
        if self.full {
            write!(head, "WARC-Block-Digest: {}\r\n", sha1_of(&[&filled])).ok()?;
        }
        write!(head, "Content-Length: {block:digits$}\r\n\r\n").ok()?;
        Some([head.as_bytes(), &filled, b"\r\n\r\n"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::member::read_member;
    use crate::archive::record::Record;
    use crate::world::SeededDice;

    fn made(format: ArchiveFormat, length: u64) -> Option<Vec<u8>> {
        let at = Timestamp::from_secs(1_700_000_000);
        let removal = Removal { at, exclusion: "00ff00ff00ff00ff" };
        member(format, length, removal, &SeededDice::new(7))
    }

    fn check(format: ArchiveFormat, length: u64) -> Record {
        let mut made = made(format, length).unwrap_or_else(|| panic!("{format:?} of {length}"));
        assert_eq!(size(made.len()), length, "{format:?}");
        made.extend_from_slice(b"what follows");
        let (record, read) = read_member(format, &made).unwrap();
        assert_eq!(size(read), length, "{format:?}");
        let record = Record::parse(record.into()).unwrap();
        assert_eq!(record.kind(), REMOVED);
        assert_eq!(record.field("WARC-Target-URI"), None);
        record
    }

    #[test]
    fn every_length_that_a_record_can_have_is_met() {
        let around = |length: u64| length - 40..length + 40;
        let borders = [65_535, 65_540, 131_072, 131_075, 10_000, 100_000, 1_000_000];
        let lengths = (LENGTH_MIN..2_500).chain(borders.into_iter().flat_map(around));
        for length in lengths {
            for format in [ArchiveFormat::WarcGz, ArchiveFormat::WarcZst] {
                let record = check(format, length);
                assert!(length < 340 || record.check_digests().is_ok(), "{format:?} of {length}");
            }
        }
    }

    #[test]
    fn a_filler_says_what_became_of_the_record() {
        for format in [ArchiveFormat::WarcGz, ArchiveFormat::WarcZst] {
            let record = check(format, 1_000);
            let text = String::from_utf8(record.block.to_vec()).unwrap();
            let told = "removed: 2023-11-14T22:13:20.000Z\r\nexclusion: 00ff00ff00ff00ff\r\n";
            assert_eq!(text.trim_end_matches(' '), told);
            assert_eq!(record.field("WARC-Date"), Some("2023-11-14T22:13:20Z"));
        }
    }

    #[test]
    fn nothing_is_made_where_no_record_fits() {
        for format in [ArchiveFormat::WarcGz, ArchiveFormat::WarcZst] {
            assert_eq!(made(format, 100), None);
        }
    }
}
