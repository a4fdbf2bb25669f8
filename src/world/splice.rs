//! A copy of a file with pieces of it replaced: how a file that others read changes at once.
//!
//! The copy is whole on the disk before it takes the name of the file, so whoever reads sees the
//! old file or the new one, also after a crash at any place.

use std::io;

use bytes::Bytes;

use super::Spool;

/// Bytes that are read and written at once.
const CHUNK_BYTES: usize = 4 << 20;
/// What the name of a copy that is not whole yet ends with.
const DRAFT: &str = ".purge";

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub length: u64,
}

/// The draft of a file.
pub fn draft_of(file: &str) -> String {
    format!("{file}{DRAFT}")
}

/// The files of a folder. Drafts among them, which a crash left, are removed.
///
/// # Errors
/// As the disk says.
pub async fn without_drafts(spool: &dyn Spool, folder: &str) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for (name, _) in spool.list(folder).await? {
        if name.ends_with(DRAFT) {
            spool.remove(&name).await?;
        } else {
            files.push(name);
        }
    }
    Ok(files)
}

/// Writes the draft of a file: the file with each piece replaced. Pieces are in order and do not
/// overlap. Answers with its size.
///
/// # Errors
/// As the disk says; `Interrupted` once `stops` does.
pub async fn splice(
    spool: &dyn Spool,
    file: &str,
    pieces: &[Piece],
    replacement: impl Fn(Piece) -> Vec<u8> + Send + Sync,
    stops: &(dyn Fn() -> bool + Send + Sync),
) -> io::Result<u64> {
    let mut copy = Copy { spool, file, draft: draft_of(file), written: 0, held: Vec::new(), stops };
    let mut at = 0;
    for piece in pieces {
        copy.take(at, piece.offset).await?;
        copy.put(&replacement(*piece)).await?;
        at = piece.offset.saturating_add(piece.length);
    }
    copy.take(at, u64::MAX).await?;
    copy.flush().await?;
    Ok(copy.written)
}

struct Copy<'c> {
    spool: &'c dyn Spool,
    file: &'c str,
    draft: String,
    written: u64,
    held: Vec<u8>,
    stops: &'c (dyn Fn() -> bool + Send + Sync),
}

impl Copy<'_> {
    /// What lies from one place up to another, or to the end of the file.
    async fn take(&mut self, mut from: u64, to: u64) -> io::Result<()> {
        while from < to {
            let wanted = to.saturating_sub(from).min(size(CHUNK_BYTES));
            let read = self.spool.read(self.file, from, wanted).await?;
            if read.is_empty() {
                // An end is one only where none is named.
                return if to == u64::MAX {
                    Ok(())
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
            from += size(read.len());
            self.put(&read).await?;
        }
        Ok(())
    }

    async fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= CHUNK_BYTES { self.flush().await } else { Ok(()) }
    }

    /// The first flush makes the draft, in place of one that was left.
    async fn flush(&mut self) -> io::Result<()> {
        if (self.stops)() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.held));
        let length = size(bytes.len());
        self.spool.append(&self.draft, self.written, bytes).await?;
        self.written += length;
        Ok(())
    }
}

/// The lines of a file that end, one after the other.
pub struct Lines<'l> {
    spool: &'l dyn Spool,
    file: &'l str,
    /// Read and not yet handed out, from `used` on.
    window: Vec<u8>,
    used: usize,
    /// Where what is handed out next begins.
    offset: u64,
}

impl<'l> Lines<'l> {
    /// From the beginning of a file.
    pub fn new(spool: &'l dyn Spool, file: &'l str) -> Self {
        Self { spool, file, window: Vec::new(), used: 0, offset: 0 }
    }

    /// Whether bytes without an end are behind the last line; known when there is no next one.
    pub fn has_rest(&self) -> bool {
        self.window.len() > self.used
    }

    /// The next line with its end, and where it lies; `None` where no other line ends.
    ///
    /// # Errors
    /// As the disk says.
    pub async fn next(&mut self) -> io::Result<Option<(&[u8], Piece)>> {
        let mut looked = 0;
        loop {
            let rest = self.window.get(self.used + looked..).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', rest) {
                let length = looked + end + 1;
                let from = self.used;
                let piece = Piece { offset: self.offset, length: size(length) };
                self.used += length;
                self.offset += piece.length;
                return Ok(self.window.get(from..from + length).map(|line| (line, piece)));
            }
            looked = self.window.len() - self.used;
            self.window.drain(..self.used);
            self.used = 0;
            let from = self.offset + size(looked);
            let more = self.spool.read(self.file, from, size(CHUNK_BYTES)).await?;
            if more.is_empty() {
                return Ok(None);
            }
            self.window.extend_from_slice(&more);
        }
    }
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::MemorySpool;

    fn piece(offset: u64, length: u64) -> Piece {
        Piece { offset, length }
    }

    async fn spliced(content: &[u8], pieces: &[Piece], with: &str) -> io::Result<Vec<u8>> {
        let spool = MemorySpool::new();
        spool.place("a/b", content.to_vec());
        spool.place("a/b.purge", b"left by a crash, and longer than the file".to_vec());
        let size = splice(&spool, "a/b", pieces, |_| with.into(), &|| false).await?;
        let draft = spool.content("a/b.purge").unwrap();
        assert_eq!(u64::try_from(draft.len()).unwrap(), size);
        assert_eq!(spool.content("a/b").unwrap(), content);
        Ok(draft)
    }

    #[tokio::test]
    async fn pieces_are_replaced_and_all_else_stays() {
        for (pieces, with, expected) in [
            (vec![], "x", "abcdef"),
            (vec![piece(0, 1)], "X", "Xbcdef"),
            (vec![piece(1, 2), piece(3, 1)], "", "aef"),
            (vec![piece(5, 1)], "yz", "abcdeyz"),
            (vec![piece(0, 6)], "", ""),
        ] {
            let found = spliced(b"abcdef", &pieces, with).await.unwrap();
            assert_eq!(found, expected.as_bytes(), "{pieces:?}");
        }
        assert!(spliced(b"abc", &[piece(7, 1)], "").await.is_err(), "no such place");
    }

    #[tokio::test]
    async fn files_beyond_a_chunk_are_copied_whole() {
        let long: Vec<u8> = (0..=250).cycle().take(CHUNK_BYTES * 2 + 77).collect();
        let found = spliced(&long, &[piece(100, 50)], "--").await.unwrap();
        assert_eq!(found, [&long[..100], b"--", &long[150..]].concat());
    }

    #[tokio::test]
    async fn a_copy_that_is_to_stop_stops() {
        let spool = MemorySpool::new();
        spool.place("a/b", b"abc".to_vec());
        let stopped = splice(&spool, "a/b", &[], |_| Vec::new(), &|| true).await.unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }

    #[tokio::test]
    async fn lines_come_with_their_places_and_one_without_an_end_does_not() {
        let spool = MemorySpool::new();
        let long = "x".repeat(CHUNK_BYTES);
        spool.place("a/b", format!("one\n\n{long}\nlast").into_bytes());
        let mut lines = Lines::new(&spool, "a/b");
        assert_eq!(lines.next().await.unwrap(), Some((&b"one\n"[..], piece(0, 4))));
        assert_eq!(lines.next().await.unwrap(), Some((&b"\n"[..], piece(4, 1))));
        let (line, place) = lines.next().await.unwrap().unwrap();
        assert_eq!((line.len(), place.offset), (CHUNK_BYTES + 1, 5));
        assert!(lines.next().await.unwrap().is_none());
    }
}
