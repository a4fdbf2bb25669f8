//! Bytes after a head become a body, by its framing.

use super::chunked::Chunked;
use super::framing::Framing;
use crate::fetch::body::{Came, Kept};

/// A body being read.
#[derive(Debug)]
pub(super) enum Payload {
    /// So many bytes are still to come, of so many.
    Length { left: u64, whole: u64 },
    /// In chunks.
    Chunked(Chunked),
    /// Until the peer closes.
    ToClose,
}

impl Payload {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::NoBody => Self::Length { left: 0, whole: 0 },
            Framing::Length(whole) => Self::Length { left: whole, whole },
            Framing::Chunked => Self::Chunked(Chunked::new()),
            Framing::ToClose => Self::ToClose,
        }
    }

    /// Takes the body's part off the input, and keeps it; what is left belongs to no body.
    ///
    /// # Errors
    /// What is wrong with the framing.
    pub(super) fn take(&mut self, input: &mut &[u8], kept: &mut Kept) -> Result<Came, String> {
        let mut fits = true;
        match self {
            Self::Length { left, .. } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                let (body, rest) = input.split_at(count);
                *input = rest;
                *left -= count as u64;
                fits = kept.takes(body);
            }
            Self::Chunked(chunked) => {
                while fits && let Some(data) = chunked.next(input)? {
                    fits = kept.takes(data);
                }
            }
            Self::ToClose => fits = kept.takes(std::mem::take(input)),
        }
        Ok(match (fits, self.is_whole()) {
            (false, _) => Came::TooMuch,
            (true, true) => Came::Whole,
            (true, false) => Came::More,
        })
    }

    /// What it means that the peer closes now.
    ///
    /// # Errors
    /// The body is not whole.
    pub(super) fn closed(&self) -> Result<(), String> {
        match self {
            Self::Length { left, whole } if *left > 0 => {
                Err(format!("the connection was closed {left} bytes before the end of {whole}"))
            }
            Self::Chunked(chunked) if !chunked.has_all() => {
                Err("the connection was closed before the last chunk".to_owned())
            }
            Self::Length { .. } | Self::Chunked(_) | Self::ToClose => Ok(()),
        }
    }

    /// Whether the body came to its end by its own framing, and left no doubt about it.
    pub(super) fn ended_clearly(&self) -> bool {
        match self {
            Self::Length { left, .. } => *left == 0,
            Self::Chunked(chunked) => chunked.is_done() && !chunked.is_odd(),
            Self::ToClose => false,
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Length { left, .. } => *left == 0,
            Self::Chunked(chunked) => chunked.is_done(),
            Self::ToClose => false,
        }
    }
}
