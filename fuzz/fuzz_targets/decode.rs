//! H1, P2: any bytes under any content coding stay within the limits.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mehman::parse::decode::{DecodeLimits, decode};
use mehman::parse::memory::Memory;

const CODINGS: [&str; 8] =
    ["gzip", "deflate", "zstd", "br", "gzip, gzip", "deflate, br", "zstd, gzip", "utf-8, GZIP"];

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    let coding = CODINGS[usize::from(*kind) % CODINGS.len()];
    let headers = vec![("Content-Encoding".to_owned(), Bytes::from_static(coding.as_bytes()))];
    let limits = DecodeLimits { decoded_bytes_max: 100_000, ratio_max: 50 };
    let found = decode(&headers, &Bytes::copy_from_slice(body), &limits, Memory::new(256 << 20));
    assert!(found.bytes.len() <= 100_000);
    assert!(found.bytes.len() <= (body.len() * 50).max(64 << 10));
});
