//! The body of robots.txt as text bytes: content coding undone, within `robots.max_size`.
//!
//! Pages are decoded by the parser; robots.txt is decoded here because its host waits for it.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::types::{Headers, Reason, header};

/// Codings laid over each other that are undone; more is an attack or an accident.
const CODINGS_MAX: usize = 2;

/// The decoded body, cut at `bytes_max`. Of a damaged one what came before the damage is used only
/// if the body was cut on the way, since then the damage is the cut.
///
/// # Errors
/// [`Reason::Decode`] for an unknown coding or a damaged body.
pub(super) fn decode(
    headers: &Headers,
    body: &Bytes,
    bytes_max: u64,
    was_cut: bool,
) -> Result<Bytes, Reason> {
    let codings = header(headers, "content-encoding").unwrap_or_default().to_ascii_lowercase();
    let codings: Vec<_> = codings.split(',').map(str::trim).collect();
    if codings.len() > CODINGS_MAX {
        return Err(Reason::Decode { why: "too many content codings".to_owned() });
    }
    let mut decoded = body.clone();
    for coding in codings.iter().rev() {
        decoded = match *coding {
            "" | "identity" => cut(decoded, bytes_max),
            "gzip" | "x-gzip" => read(MultiGzDecoder::new(decoded.as_ref()), bytes_max, was_cut)?,
            "deflate" if is_zlib(&decoded) => {
                read(ZlibDecoder::new(decoded.as_ref()), bytes_max, was_cut)?
            }
            "deflate" => read(DeflateDecoder::new(decoded.as_ref()), bytes_max, was_cut)?,
            other => {
                return Err(Reason::Decode { why: format!("unknown content coding `{other}`") });
            }
        };
    }
    Ok(decoded)
}

fn cut(bytes: Bytes, bytes_max: u64) -> Bytes {
    let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    bytes.slice(..bytes.len().min(max))
}

fn read(decoder: impl Read, bytes_max: u64, was_cut: bool) -> Result<Bytes, Reason> {
    let mut decoded = Vec::new();
    match decoder.take(bytes_max).read_to_end(&mut decoded) {
        Ok(_) => Ok(decoded.into()),
        Err(error) if was_cut && error.kind() == io::ErrorKind::UnexpectedEof => Ok(decoded.into()),
        Err(error) => Err(Reason::Decode { why: error.to_string() }),
    }
}

/// "deflate" is zlib by the standard and bare by some servers: zlib begins with a checked header.
fn is_zlib(bytes: &[u8]) -> bool {
    match bytes {
        [method, flags, ..] => {
            method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"User-agent: *\nDisallow: /private\n";

    fn coded(coding: &str) -> Headers {
        vec![("content-encoding".to_owned(), Bytes::from(coding.to_owned()))]
    }

    fn gzip(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn codings_are_undone() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        bare.write_all(TEXT).unwrap();
        let cases = [
            ("identity", Bytes::from(TEXT)),
            ("", Bytes::from(TEXT)),
            ("GZIP", gzip(TEXT)),
            ("gzip, gzip", gzip(&gzip(TEXT))),
            ("deflate", zlib.finish().unwrap().into()),
            ("deflate", bare.finish().unwrap().into()),
        ];
        for (coding, body) in cases {
            let decoded = decode(&coded(coding), &body, 1000, false);
            assert_eq!(decoded.as_deref(), Ok(TEXT), "{coding}");
        }
        assert_eq!(decode(&Vec::new(), &Bytes::from(TEXT), 4, false).as_deref(), Ok(&b"User"[..]));
    }

    #[test]
    fn a_bomb_stays_within_the_bound() {
        let bomb = gzip(&vec![b'a'; 5_000_000]);
        let decoded = decode(&coded("gzip"), &bomb, 1000, false).unwrap();
        assert_eq!(decoded.len(), 1000);
    }

    #[test]
    fn damage_is_an_error_unless_it_is_our_own_cut() {
        let whole = gzip(TEXT);
        let half = whole.slice(..whole.len() - 12);
        assert!(matches!(decode(&coded("gzip"), &half, 1000, false), Err(Reason::Decode { .. })));
        assert!(TEXT.starts_with(&decode(&coded("gzip"), &half, 1000, true).unwrap()));
        for (coding, body) in
            [("br", "x"), ("gzip", "plain text where gzip was promised"), ("gzip,gzip,gzip", "x")]
        {
            let decoded = decode(&coded(coding), &Bytes::from(body), 1000, true);
            assert!(matches!(decoded, Err(Reason::Decode { .. })), "{coding}");
        }
    }
}
