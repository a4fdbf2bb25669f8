//! The chunked coding undone, whatever pieces it comes in (RFC 9112 7.1).
//!
//! CH-1: how the bytes are cut changes nothing. CH-2: nothing is held but numbers; size lines,
//! extensions and trailers are bounded. CH-3: extensions and trailers are read over. Lines may end
//! with LF alone and sizes be followed by blanks, as browsers take them; such a connection is not
//! to be used again.

/// Bytes of all extensions of a body.
const EXTENSION_BYTES_MAX: u32 = 16 * 1024;
/// Bytes of blanks and leading zeros around one size.
const PADDING_BYTES_MAX: u32 = 256;
/// Bytes of the lines after the last chunk.
const TRAILER_BYTES_MAX: u32 = 16 * 1024;

/// A decoder in the middle of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunked {
    at: At,
    /// Of the chunk: its size as far as read, or what is left of it.
    size: u64,
    extensions: u32,
    padding: u32,
    trailers: u32,
    is_odd: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The first digit of a size.
    Size,
    /// More digits, or what ends them.
    Digits,
    /// Blanks after a size.
    Blanks,
    /// Up to the end of the line.
    Extension,
    /// LF after the CR of a size line.
    SizeLf,
    /// Bytes of the chunk.
    Data,
    /// The line end behind a chunk.
    DataEnd,
    /// LF after its CR.
    DataLf,
    /// The first byte of a line after the last chunk.
    TrailerLine,
    /// LF of the last line of all.
    LastLf,
    /// Within a trailer.
    Trailer,
    /// Nothing more.
    Done,
}

impl Chunked {
    pub(super) fn new() -> Self {
        Self { at: At::Size, size: 0, extensions: 0, padding: 0, trailers: 0, is_odd: false }
    }

    /// The next bytes of the body, taken off the input; `None` when it is used up, or the body is
    /// whole.
    ///
    /// # Errors
    /// What is wrong; no more may be asked.
    pub(super) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<&'i [u8]>, String> {
        while self.at != At::Done {
            if self.at == At::Data {
                if input.is_empty() {
                    return Ok(None);
                }
                let room = usize::try_from(self.size).unwrap_or(usize::MAX);
                let (data, rest) = input.split_at(room.min(input.len()));
                *input = rest;
                self.size -= data.len() as u64;
                if self.size == 0 {
                    self.at = At::DataEnd;
                }
                return Ok(Some(data));
            }
            let Some((byte, rest)) = input.split_first() else { return Ok(None) };
            *input = rest;
            self.at = self.step(*byte)?;
        }
        Ok(None)
    }

    /// Whether the body is whole and its last line came.
    pub(super) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Whether all of the body's bytes came, if perhaps not the last line.
    pub(super) fn has_all(&self) -> bool {
        matches!(self.at, At::TrailerLine | At::LastLf | At::Trailer | At::Done)
    }

    /// CH-3: another reader may see another body.
    pub(super) fn is_odd(&self) -> bool {
        self.is_odd
    }

    fn step(&mut self, byte: u8) -> Result<At, String> {
        match (self.at, byte) {
            (At::Size | At::Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte),
            (At::Digits | At::Blanks, b' ' | b'\t') => {
                self.is_odd = true;
                count(&mut self.padding, PADDING_BYTES_MAX, "a chunk size with too many blanks")?;
                Ok(At::Blanks)
            }
            (At::Digits | At::Blanks, b';') => Ok(At::Extension),
            (At::Digits | At::Blanks | At::Extension, b'\r') => Ok(At::SizeLf),
            (At::Digits | At::Blanks | At::Extension, b'\n') => {
                self.is_odd = true;
                Ok(self.after_size())
            }
            (At::Extension, _) => {
                count(&mut self.extensions, EXTENSION_BYTES_MAX, "too many chunk extensions")?;
                Ok(At::Extension)
            }
            (At::SizeLf, b'\n') => Ok(self.after_size()),
            (At::DataEnd, b'\r') => Ok(At::DataLf),
            (At::DataEnd, b'\n') => {
                self.is_odd = true;
                Ok(At::Size)
            }
            (At::DataLf, b'\n') => Ok(At::Size),
            (At::TrailerLine | At::Trailer, 0) => Err("a NUL in a trailer".to_owned()),
            (At::TrailerLine, b'\r') => Ok(At::LastLf),
            (At::TrailerLine, b'\n') => {
                self.is_odd = true;
                Ok(At::Done)
            }
            (At::TrailerLine | At::Trailer, _) => {
                count(&mut self.trailers, TRAILER_BYTES_MAX, "too many trailers")?;
                Ok(if byte == b'\n' { At::TrailerLine } else { At::Trailer })
            }
            (At::LastLf, b'\n') => Ok(At::Done),
            (At::Size | At::Digits | At::Blanks | At::SizeLf, _) => {
                Err(format!("`{}` in the size of a chunk", byte.escape_ascii()))
            }
            (At::DataEnd | At::DataLf, _) => Err("a chunk is longer than its size".to_owned()),
            (At::LastLf, _) => Err("a CR that ends no line in a trailer".to_owned()),
            (At::Data | At::Done, _) => Ok(self.at),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<At, String> {
        let digit = char::from(byte).to_digit(16).unwrap_or(0);
        if self.at == At::Size {
            (self.size, self.padding) = (0, 0);
        } else if self.size == 0 {
            count(&mut self.padding, PADDING_BYTES_MAX, "a chunk size with too many zeros")?;
        }
        let larger = self.size.checked_mul(16).ok_or("a chunk size beyond 64 bits")?;
        self.size = larger + u64::from(digit);
        Ok(At::Digits)
    }

    fn after_size(&self) -> At {
        if self.size == 0 { At::TrailerLine } else { At::Data }
    }
}

/// One more of what is bounded.
fn count(so_far: &mut u32, max: u32, why: &str) -> Result<(), String> {
    *so_far += 1;
    if *so_far > max { Err(why.to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
