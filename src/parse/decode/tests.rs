//! Content codings as servers send them, whole and broken.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const LIMITS: DecodeLimits = DecodeLimits { decoded_bytes_max: 1 << 20, ratio_max: 200 };

fn memory() -> Memory {
    Memory::new(256 << 20)
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn headers(values: &[&str]) -> Headers {
    let header = |value: &&str| ("Content-Encoding".to_owned(), Bytes::from((*value).to_owned()));
    values.iter().map(header).collect()
}

fn run(values: &[&str], body: impl Into<Bytes>) -> (Vec<u8>, Option<Reason>) {
    let decoded = decode(&headers(values), &body.into(), &LIMITS, memory());
    (decoded.bytes.to_vec(), decoded.reason)
}

/// Text that deflate cannot make much smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn identity_is_not_copied() {
    let body = Bytes::from_static(b"plain");
    for values in [&[][..], &["identity"], &[""], &["identity, "]] {
        let decoded = decode(&headers(values), &body, &LIMITS, memory());
        assert_eq!(decoded.bytes.as_ptr(), body.as_ptr());
        assert_eq!(decoded.reason, None);
    }
}

#[test]
fn every_coding_is_undone() {
    let text = b"the same words again and again, the same words".repeat(9);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(&text).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(&text).unwrap();
    let twice = gzip(&gzip(&text));
    for (values, body) in [
        (&["gzip"][..], gzip(&text)),
        (&["X-GZip"], gzip(&text)),
        (&["deflate"], zlib.finish().unwrap()),
        (&["deflate"], raw.finish().unwrap()),
        (&["zstd"], zstd::encode_all(&text[..], 3).unwrap()),
        (&["gzip, gzip"], twice.clone()),
        (&["gzip", "identity", "gzip"], twice),
        (&["gzip, zstd"], zstd::encode_all(&gzip(&text)[..], 3).unwrap()),
    ] {
        assert_eq!(run(values, body), (text.clone(), None), "{values:?}");
    }
}

#[test]
fn members_and_padding_are_read_as_browsers_read_them() {
    for (first, second) in [("one", "two, longer"), ("aaa", "aaa"), ("aaa", "aab"), ("", "x")] {
        let both = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
        assert_eq!(run(&["gzip"], both), (format!("{first}{second}").into_bytes(), None));
    }
    let padded = [gzip(b"page"), vec![0; 20]].concat();
    assert_eq!(run(&["gzip"], padded), (b"page".to_vec(), None));
    let large = noise(ONE_SHOT_BYTES_MAX / 8);
    assert_eq!(run(&["gzip"], gzip(&large)), (large, None));
}

#[test]
fn what_came_before_a_fault_is_kept() {
    let text = noise(200_000);
    let whole = gzip(&text);
    let cut = whole.get(..100_000).unwrap().to_vec();
    let (bytes, reason) = run(&["gzip"], cut);
    assert!(bytes.len() > 50_000 && text.starts_with(&bytes), "{}", bytes.len());
    assert!(matches!(reason, Some(Reason::Decode { .. })));
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    let (bytes, reason) = run(&["zstd"], zstd.get(..150_000).unwrap().to_vec());
    assert!(!bytes.is_empty() && text.starts_with(&bytes));
    assert!(matches!(reason, Some(Reason::Decode { .. })));
    for coding in ["gzip", "deflate", "zstd"] {
        let (bytes, reason) = run(&[coding], &b"<html>no such coding"[..]);
        assert_eq!((bytes.len() <= 32, reason.is_some()), (true, true), "{coding}");
    }
}

#[test]
fn bombs_stop_at_the_limit_that_comes_first() {
    let zeros = gzip(&vec![0; 900_000]);
    let (bytes, reason) = run(&["gzip"], zeros.clone());
    assert_eq!(bytes.len(), zeros.len() * 200);
    assert_eq!(reason, Some(Reason::TooLarge { limit: SizeLimit::Ratio, max: 200 }));
    let large = gzip(&noise((1 << 20) + 1));
    let (bytes, reason) = run(&["gzip"], large);
    assert_eq!(bytes.len(), 1 << 20);
    assert_eq!(reason, Some(Reason::TooLarge { limit: SizeLimit::Decoded, max: 1 << 20 }));
    let nested = gzip(&gzip(&gzip(&vec![0; 50_000_000])));
    let (bytes, reason) = run(&["gzip, gzip, gzip"], nested);
    assert!(bytes.len() <= 1 << 20);
    assert!(matches!(reason, Some(Reason::TooLarge { .. })));
}

#[test]
fn what_is_no_coding_is_passed_over() {
    for value in ["none", "utf-8", "UTF8", "binary", "iso-8859-1, 8bit", "identity"] {
        assert_eq!(run(&[value], &b"page"[..]), (b"page".to_vec(), None), "{value}");
    }
    assert_eq!(run(&["none, gzip"], gzip(b"page")), (b"page".to_vec(), None));
}

/// The first two bytes of a stored block may look like the header of zlib.
#[test]
fn raw_deflate_that_looks_like_zlib_is_raw() {
    let body = [0x78, 1, 0, 0xfe, 0xff, b'a', 1, 2, 0, 0xfd, 0xff, b'b', b'c'];
    assert!(is_zlib(&body));
    assert_eq!(run(&["deflate"], body.to_vec()), (b"abc".to_vec(), None));
}

#[test]
fn unknown_and_many_codings_are_refused() {
    for value in ["compress", "gzip, sdch", "gzip, gzip, gzip, gzip"] {
        let (bytes, reason) = run(&[value], gzip(b"x"));
        assert!(bytes.is_empty());
        assert!(matches!(reason, Some(Reason::Decode { .. })), "{value}");
    }
}

#[test]
fn exactly_the_limit_is_whole() {
    let exact = noise(1 << 20);
    assert_eq!(run(&["gzip"], gzip(&exact)).1, None);
    assert_eq!(run(&["gzip"], Vec::new()), (Vec::new(), None));
}

#[test]
fn a_buffer_that_is_used_again_shows_nothing_of_the_page_before() {
    let (long, short) = (noise(9000), noise(70));
    for data in [&long, &short, &long] {
        assert_eq!(run(&["gzip"], gzip(data)), (data.clone(), None));
    }
    // Two pages at a time have a buffer each.
    let [one, other] = [&long, &short]
        .map(|data| decode(&headers(&["gzip"]), &gzip(data).into(), &LIMITS, memory()));
    assert_eq!((one.bytes.as_ref(), other.bytes.as_ref()), (long.as_slice(), short.as_slice()));
}
