//! Content-Encoding undone, within limits (H1, P2).
//!
//! gzip goes through libdeflate into one buffer of the announced size where that is small;
//! anything else is streamed. What was decoded before a limit or a fault is kept, with a reason.
//! Brotli is undone though nobody asks for it: some servers send it to everybody.

use std::cell::Cell;
use std::io::{self, Read};

use brotli_decompressor::Decompressor as BrotliDecoder;
use bytes::Bytes;
use encoding_rs::Encoding;
use flate2::bufread::{DeflateDecoder, GzDecoder, ZlibDecoder};
use libdeflater::Decompressor;
use memchr::memmem;

use super::memory::{Memory, grow};
use crate::types::{Headers, Reason, SizeLimit};

/// More codings than this in a row are refused.
const LAYERS_MAX: usize = 3;
/// Announced sizes above this are streamed rather than allocated at once.
const ONE_SHOT_BYTES_MAX: usize = 4 << 20;
/// A thread keeps a buffer up to this for its next page: most pages are smaller.
const SPARE_BYTES_MAX: usize = 2 << 20;
/// The ratio says nothing about less than this: a small page may well repeat itself.
const RATIO_FLOOR_BYTES: usize = 64 << 10;
/// The window of a zstd frame, as RFC 9659 bounds it: 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Members of one gzip body: each costs the set-up of a decoder, also where it holds nothing.
const MEMBERS_MAX: usize = 10_000;
/// What people write into Content-Encoding that is none; names of charsets are none either.
const NO_CODINGS: [&[u8]; 6] = [b"", b"identity", b"none", b"binary", b"7bit", b"8bit"];
/// Magic and method of a gzip member.
const MEMBER_START: &[u8] = b"\x1f\x8b\x08";
const CHUNK_BYTES: usize = 16 << 10;
/// The Brotli decoder reads its input in pieces of this size.
const BROTLI_INPUT_BYTES: usize = 4 << 10;

/// How much may come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeLimits {
    /// `fetch.max_decoded`, in bytes.
    pub decoded_bytes_max: usize,
    /// `fetch.max_ratio`: decoded to received bytes.
    pub ratio_max: usize,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The decoded body, as far as it goes.
    pub bytes: Bytes,
    /// Why it is not whole.
    pub reason: Option<Reason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Zstd,
    Brotli,
}

/// Undoes the content codings that the headers name. Without any, nothing is copied.
pub fn decode(headers: &Headers, body: &Bytes, limits: &DecodeLimits, memory: Memory) -> Decoded {
    let layers = match codings(headers) {
        Ok(layers) => layers,
        Err(reason) => return Decoded { bytes: Bytes::new(), reason: Some(reason) },
    };
    let whole = Decoded { bytes: body.clone(), reason: None };
    if body.is_empty() {
        return whole;
    }
    let by_ratio = body.len().saturating_mul(limits.ratio_max).max(RATIO_FLOOR_BYTES);
    layers.into_iter().rev().fold(whole, |outer, coding| {
        let inner = undo(coding, &outer.bytes, &Bounds::new(by_ratio, limits, memory));
        Decoded { bytes: inner.bytes, reason: outer.reason.or(inner.reason) }
    })
}

/// Undoes the gzip of a file; its ratio is bounded as that of a body.
pub(super) fn gunzip(file: &[u8], limits: &DecodeLimits, memory: Memory) -> Decoded {
    let by_ratio = file.len().saturating_mul(limits.ratio_max).max(RATIO_FLOOR_BYTES);
    undo(Coding::Gzip, file, &Bounds::new(by_ratio, limits, memory))
}

/// What one coding may give, and why not more.
struct Bounds {
    bytes_max: usize,
    reason: Reason,
    window_max: usize,
}

impl Bounds {
    /// The least of what the ratio, the limit of decoded bytes and the memory allow.
    fn new(by_ratio: usize, limits: &DecodeLimits, memory: Memory) -> Self {
        let number = |max| u64::try_from(max).unwrap_or(u64::MAX);
        let of_memory = memory.body();
        let bytes_max = limits.decoded_bytes_max.min(by_ratio).min(of_memory);
        let reason = if bytes_max == limits.decoded_bytes_max {
            Reason::TooLarge { limit: SizeLimit::Decoded, max: number(bytes_max) }
        } else if bytes_max == by_ratio {
            Reason::TooLarge { limit: SizeLimit::Ratio, max: number(limits.ratio_max) }
        } else {
            Memory::reason(of_memory, "a decoded body")
        };
        Self { bytes_max, reason, window_max: memory.window() }
    }
}

/// In the order applied.
fn codings(headers: &Headers) -> Result<Vec<Coding>, Reason> {
    let refuse = |why: String| Err(Reason::Decode { why });
    let mut layers = Vec::new();
    let values = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"))
        .flat_map(|(_, value)| value.split(|b| *b == b','))
        .map(|value| value.trim_ascii().to_ascii_lowercase());
    for value in values {
        match value.as_slice() {
            none if NO_CODINGS.contains(&none) || Encoding::for_label(none).is_some() => continue,
            b"gzip" | b"x-gzip" => layers.push(Coding::Gzip),
            b"deflate" => layers.push(Coding::Deflate),
            b"zstd" => layers.push(Coding::Zstd),
            b"br" => layers.push(Coding::Brotli),
            other => {
                let name = String::from_utf8_lossy(other.get(..32).unwrap_or(other));
                return refuse(format!("content encoding `{name}` was not asked for"));
            }
        }
        if layers.len() > LAYERS_MAX {
            return refuse(format!("more than {LAYERS_MAX} content encodings"));
        }
    }
    Ok(layers)
}

fn undo(coding: Coding, body: &[u8], bounds: &Bounds) -> Decoded {
    let one_shot = (coding == Coding::Gzip).then(|| gzip_at_once(body, bounds.bytes_max)).flatten();
    if let Some(bytes) = one_shot {
        return Decoded { bytes, reason: None };
    }
    let mut out = Output::new(bounds.bytes_max);
    let ended = match coding {
        Coding::Gzip => gzip_members(body, &mut out),
        Coding::Deflate => deflate(body, &mut out),
        Coding::Zstd => zstd_frames(body, &mut out, bounds.window_max),
        Coding::Brotli => brotli(body, &mut out, bounds.window_max),
    };
    let reason = match ended {
        Ok(Taken::Whole) => None,
        Ok(Taken::Cut) => Some(bounds.reason.clone()),
        Err(error) => Some(Reason::Decode { why: error.to_string() }),
    };
    Decoded { bytes: out.bytes.into(), reason }
}

/// The common case: one member whose trailer tells its size. `None` sends it to the stream.
fn gzip_at_once(body: &[u8], max: usize) -> Option<Bytes> {
    let (_, trailer) = body.split_last_chunk::<8>()?;
    let [_, _, _, _, s0, s1, s2, s3] = *trailer;
    let size = usize::try_from(u32::from_le_bytes([s0, s1, s2, s3])).ok()?;
    // libdeflate stops after the first member, so whatever looks like a second one is streamed.
    let is_one = memmem::find(body.get(MEMBER_START.len()..)?, MEMBER_START).is_none();
    if size > max.min(ONE_SHOT_BYTES_MAX) || !is_one {
        return None;
    }
    let mut out = Lent::new(size);
    let written = Decompressor::new().gzip_decompress(body, out.room()).ok()?;
    (written == size).then(|| Bytes::from_owner(out))
}

/// A buffer that goes back to the thread that drops it, so that the next page need not ask the
/// system for memory, which costs as much as a sixth of decoding into it.
struct Lent {
    buffer: Vec<u8>,
    length: usize,
}

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Lent {
    /// With room for `length` bytes, whatever they hold.
    fn new(length: usize) -> Self {
        let mut buffer = SPARE.take();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        Self { buffer, length }
    }

    fn room(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.length).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.capacity() <= SPARE_BYTES_MAX {
            // A thread that is ending keeps nothing.
            SPARE.try_with(|spare| spare.set(buffer)).ok();
        }
    }
}

/// Members one after the other; what follows them and is no gzip is padding, as browsers hold.
fn gzip_members(body: &[u8], out: &mut Output) -> io::Result<Taken> {
    let mut rest = body;
    for _ in 0..MEMBERS_MAX {
        let mut member = GzDecoder::new(rest);
        if out.take(&mut member)? == Taken::Cut {
            return Ok(Taken::Cut);
        }
        rest = member.into_inner();
        if !rest.starts_with(MEMBER_START) {
            return Ok(Taken::Whole);
        }
    }
    Err(io::Error::other(format!("more than {MEMBERS_MAX} members of gzip")))
}

/// With the header of RFC 1950, or raw, as some servers send it; what begins like such a header by
/// chance and is none gives nothing, and is raw.
fn deflate(body: &[u8], out: &mut Output) -> io::Result<Taken> {
    if is_zlib(body) {
        let ended = out.take(&mut ZlibDecoder::new(body));
        if ended.is_ok() || !out.bytes.is_empty() {
            return ended;
        }
    }
    out.take(&mut DeflateDecoder::new(body))
}

fn zstd_frames(body: &[u8], out: &mut Output, window_max: usize) -> io::Result<Taken> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
    let of_memory = window_max.checked_ilog2().unwrap_or_default();
    decoder.window_log_max(of_memory.min(ZSTD_WINDOW_LOG_MAX))?;
    out.take(&mut decoder)
}

fn brotli(body: &[u8], out: &mut Output, window_max: usize) -> io::Result<Taken> {
    match brotli_window(body) {
        Some(window) if window <= window_max => {
            out.take(&mut BrotliDecoder::new(body, BROTLI_INPUT_BYTES))
        }
        Some(window) => {
            let why = format!("a window of {window} bytes, more than {window_max}");
            Err(io::Error::other(format!("{why} (parse.max_memory)")))
        }
        None => Err(io::Error::other("no Brotli stream of RFC 7932")),
    }
}

/// The window that a stream announces in its first bits (RFC 7932 9.1), in bytes; `None` for the
/// large windows that HTTP does not know.
fn brotli_window(body: &[u8]) -> Option<usize> {
    let first = *body.first()?;
    let log = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, ..) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => return None,
        (_, 0, middle) => 8 + middle,
        (_, high, _) => 17 + high,
    };
    Some(1 << log)
}

/// RFC 1950 header, without a preset dictionary; others send raw deflate under that name.
fn is_zlib(body: &[u8]) -> bool {
    match body {
        [cmf, flags, ..] => {
            cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flags)).is_multiple_of(31)
        }
        _ => false,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Whole,
    Cut,
}

/// Bytes decoded so far, never more than the bound.
struct Output {
    bytes: Vec<u8>,
    max: usize,
}

impl Output {
    fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max }
    }

    fn take(&mut self, from: &mut dyn Read) -> io::Result<Taken> {
        let mut chunk = [0; CHUNK_BYTES];
        loop {
            let read = match from.read(&mut chunk) {
                Ok(0) => return Ok(Taken::Whole),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let room = self.max - self.bytes.len();
            let fits = chunk.get(..read.min(room)).unwrap_or_default();
            grow(&mut self.bytes, fits.len(), self.max);
            self.bytes.extend_from_slice(fits);
            if read > room {
                return Ok(Taken::Cut);
            }
        }
    }
}

#[cfg(test)]
mod tests;
