//! One compressed member per record, so that each can be read alone.
//!
//! A body that came compressed is not compressed again: its gzip member holds stored blocks, which
//! costs a copy and a checksum. Everything else is compressed at the fastest level. The zstd form
//! has one frame per record, with size and checksum, without dictionary.

use std::io::Read;

use libdeflater::{CompressionLvl, Compressor, Crc};

/// How records are compressed: `archive.format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// `warc-gz`: what every tool reads.
    #[default]
    WarcGz,
    /// `warc-zst`.
    WarcZst,
}

impl ArchiveFormat {
    /// What its file names end in.
    pub fn extension(self) -> &'static str {
        match self {
            Self::WarcGz => ".warc.gz",
            Self::WarcZst => ".warc.zst",
        }
    }

    /// The format of a file, by its name; `None` for what is no archive.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::WarcGz, Self::WarcZst].into_iter().find(|format| name.ends_with(format.extension()))
    }
}

/// Why no member could be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MemberFault {
    /// The bytes end within it.
    Incomplete,
    /// It is damaged, or none.
    Broken(String),
}

const ZSTD_LEVEL: i32 = 1;
/// Magic, deflate, no flags, no time, no level named, system unknown.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The length field of a stored block has 16 bits.
const STORED_BLOCK_BYTES: usize = 65_535;

/// Writes members; keeps the compressor's tables between records.
pub(super) struct MemberWriter {
    format: ArchiveFormat,
    deflate: Compressor,
}

impl MemberWriter {
    pub(super) fn new(format: ArchiveFormat) -> Self {
        Self { format, deflate: Compressor::new(CompressionLvl::fastest()) }
    }

    /// Appends one member that holds the parts one after the other, and says how long it is.
    /// `packed` says that most of it is compressed already.
    pub(super) fn write(&mut self, parts: &[&[u8]], packed: bool, out: &mut Vec<u8>) -> u64 {
        let before = out.len();
        match (self.format, packed) {
            (ArchiveFormat::WarcGz, true) => write_stored(parts, out),
            (ArchiveFormat::WarcGz, false) => self.write_deflated(&parts.concat(), out),
            (ArchiveFormat::WarcZst, _) => write_frame(&parts.concat(), out),
        }
        size(out.len() - before)
    }

    fn write_deflated(&mut self, record: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&GZIP_HEADER);
        let from = out.len();
        out.resize(from + self.deflate.deflate_compress_bound(record.len()), 0);
        let written = self
            .deflate
            .deflate_compress(record, &mut out[from..])
            .expect("a buffer of the bound is large enough");
        out.truncate(from + written);
        write_trailer(libdeflater::crc32(record), record.len(), out);
    }
}

/// Appends a gzip member that holds the parts as they are.
pub(super) fn write_stored(parts: &[&[u8]], out: &mut Vec<u8>) {
    let total = parts.iter().map(|part| part.len()).sum::<usize>();
    out.reserve(total + total / STORED_BLOCK_BYTES * 5 + 32);
    out.extend_from_slice(&GZIP_HEADER);
    let mut checksum = Crc::new();
    let mut left = total;
    // What the open block can still take; blocks run across the parts.
    let mut room = 0;
    for part in parts {
        checksum.update(part);
        let mut rest = *part;
        while !rest.is_empty() {
            if room == 0 {
                room = open_block(left, out);
            }
            let (taken, remaining) = rest.split_at(room.min(rest.len()));
            out.extend_from_slice(taken);
            (room, left, rest) = (room - taken.len(), left - taken.len(), remaining);
        }
    }
    if total == 0 {
        open_block(0, out);
    }
    write_trailer(checksum.sum(), total, out);
}

/// The header of a stored block over what is left, or as much of it as a block takes.
fn open_block(left: usize, out: &mut Vec<u8>) -> usize {
    let length = left.min(STORED_BLOCK_BYTES);
    let field = u16::try_from(length).unwrap_or(u16::MAX);
    out.push(u8::from(left <= STORED_BLOCK_BYTES));
    out.extend_from_slice(&field.to_le_bytes());
    out.extend_from_slice(&(!field).to_le_bytes());
    length
}

fn write_trailer(checksum: u32, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&checksum.to_le_bytes());
    // RFC 1952: the length modulo 2^32.
    let length = u32::try_from(size(length) & u64::from(u32::MAX)).unwrap_or(0);
    out.extend_from_slice(&length.to_le_bytes());
}

fn write_frame(record: &[u8], out: &mut Vec<u8>) {
    let frame = zstd::bulk::Compressor::new(ZSTD_LEVEL)
        .and_then(|mut compressor| {
            compressor.include_checksum(true)?;
            compressor.compress(record)
        })
        .expect("the level exists and memory takes what is written");
    out.extend_from_slice(&frame);
}

/// The record in the member that the bytes begin with, and the member's length.
pub(super) fn read_member(
    format: ArchiveFormat,
    bytes: &[u8],
) -> Result<(Vec<u8>, usize), MemberFault> {
    if bytes.is_empty() {
        return Err(MemberFault::Incomplete);
    }
    let mut record = Vec::new();
    let rest = match format {
        ArchiveFormat::WarcGz => {
            let mut reader = flate2::bufread::GzDecoder::new(bytes);
            reader.read_to_end(&mut record).map(|_| reader.into_inner())
        }
        ArchiveFormat::WarcZst => zstd::stream::read::Decoder::with_buffer(bytes)
            .map(zstd::stream::read::Decoder::single_frame)
            .and_then(|mut reader| reader.read_to_end(&mut record).map(|_| reader.finish())),
    };
    match rest {
        Ok(rest) => Ok((record, bytes.len() - rest.len())),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(MemberFault::Incomplete)
        }
        Err(error) => Err(MemberFault::Broken(error.to_string())),
    }
}

/// A length in memory as a file's numbers are.
pub(super) fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(format: ArchiveFormat, parts: &[&[u8]], packed: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let length = MemberWriter::new(format).write(parts, packed, &mut out);
        assert_eq!(length, size(out.len()));
        out
    }

    fn check(parts: &[&[u8]]) {
        for (format, packed) in [
            (ArchiveFormat::WarcGz, true),
            (ArchiveFormat::WarcGz, false),
            (ArchiveFormat::WarcZst, true),
        ] {
            let mut bytes = member(format, parts, packed);
            let length = bytes.len();
            bytes.extend_from_slice(b"what follows");
            assert_eq!(read_member(format, &bytes), Ok((parts.concat(), length)));
        }
    }

    #[test]
    fn members_hold_what_was_written_around_every_block_border() {
        for length in [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 200_000] {
            let body = vec![7; length];
            check(&[&body]);
            check(&[b"head", &body, b"", b"tail"]);
        }
    }

    #[test]
    fn a_member_cut_anywhere_is_incomplete() {
        for (format, packed) in [
            (ArchiveFormat::WarcGz, true),
            (ArchiveFormat::WarcGz, false),
            (ArchiveFormat::WarcZst, false),
        ] {
            let bytes = member(format, &[b"some text ", b"some text some text"], packed);
            for end in 0..bytes.len() {
                assert_eq!(read_member(format, &bytes[..end]), Err(MemberFault::Incomplete));
            }
        }
    }

    #[test]
    fn a_flipped_bit_in_the_data_is_noticed() {
        let good = member(ArchiveFormat::WarcGz, &[b"some text"], true);
        for place in 15..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert!(read_member(ArchiveFormat::WarcGz, &bad).is_err(), "byte {place}");
        }
    }

    #[test]
    fn names_say_the_format() {
        assert_eq!(ArchiveFormat::of_name("a.warc.gz"), Some(ArchiveFormat::WarcGz));
        assert_eq!(ArchiveFormat::of_name("a.warc.zst"), Some(ArchiveFormat::WarcZst));
        assert_eq!(ArchiveFormat::of_name("a.warc.gz.open"), None);
    }

    proptest! {
        #[test]
        fn any_parts_survive(parts in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..300), 0..5)) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            check(&parts);
        }
    }
}
