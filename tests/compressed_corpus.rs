//! H1, P2: bodies as other projects have them packed, whole, cut and broken, in `tests/data/http`.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::PathBuf;

use bytes::Bytes;
use mehman::parse::decode::{DecodeLimits, Decoded, decode};
use mehman::parse::memory::Memory;
use mehman::types::{Headers, Reason, SizeLimit};
use serde_json::Value;
use sha2::Digest as _;

fn file(name: &str) -> Bytes {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/http").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

fn cases() -> Vec<Value> {
    let cases: Value = serde_json::from_slice(&file("compressed_cases.json")).unwrap();
    cases.as_array().unwrap().clone()
}

/// The body of a case, as far as it is sent.
fn body(case: &Value) -> Bytes {
    let body = file(&format!("compressed/{}", case["file"].as_str().unwrap()));
    let cut = case["cut_to"].as_u64().map(|cut| usize::try_from(cut).unwrap());
    body.slice(..cut.unwrap_or(body.len()))
}

fn headers(values: &[&str]) -> Headers {
    let header = |value: &&str| ("Content-Encoding".to_owned(), Bytes::from((*value).to_owned()));
    values.iter().map(header).collect()
}

fn run(values: &[&str], body: &Bytes) -> Decoded {
    let limits = DecodeLimits { decoded_bytes_max: 10_000_000, ratio_max: usize::MAX };
    decode(&headers(values), body, &limits, Memory::new(256 << 20))
}

fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The listed digest, where the case has one.
fn is_expected(case: &Value, bytes: &[u8]) -> bool {
    case["decoded_sha256"].as_str().is_none_or(|digest| digest == sha256(bytes))
}

#[test]
fn every_case_gives_what_is_expected_of_it() {
    let (mut whole, mut cut, mut partial, mut broken) = (0, 0, 0, 0);
    for case in cases() {
        let found = run(&[case["content_encoding"].as_str().unwrap()], &body(&case));
        let length = case["decoded_len"].as_u64().map(|length| usize::try_from(length).unwrap());
        match case["outcome"].as_str().unwrap() {
            "ok" => {
                whole += 1;
                assert_eq!((Some(found.bytes.len()), found.reason), (length, None), "{case}");
                assert!(is_expected(&case, &found.bytes), "{case}");
            }
            "limit" => {
                cut += 1;
                assert_eq!(found.bytes.len(), 10_000_000, "{case}");
                let limit = Reason::TooLarge { limit: SizeLimit::Decoded, max: 10_000_000 };
                assert_eq!(found.reason, Some(limit), "{case}");
            }
            "partial" => {
                partial += 1;
                assert!(matches!(found.reason, Some(Reason::Decode { .. })), "{case}");
                match length {
                    Some(length) => assert_eq!(found.bytes.len(), length, "{case}"),
                    // A zstd body of one block gives all of it or nothing.
                    None if case["content_encoding"] == "zstd" => {}
                    None => assert!(!found.bytes.is_empty(), "{case}"),
                }
                assert!(is_expected(&case, &found.bytes), "{case}");
            }
            "error" => {
                broken += 1;
                assert!(matches!(found.reason, Some(Reason::Decode { .. })), "{case}");
                assert!(found.bytes.is_empty(), "{case}");
            }
            other => panic!("{other} {case}"),
        }
    }
    assert_eq!((whole, cut, partial, broken), (12, 4, 9, 2));
}

/// One after the other, in one header or in several.
#[test]
fn codings_in_several_headers_are_those_in_one() {
    for case in cases() {
        let coding = case["content_encoding"].as_str().unwrap();
        let several: Vec<&str> = coding.split(", ").collect();
        assert_eq!(run(&several, &body(&case)), run(&[coding], &body(&case)), "{case}");
    }
}

/// Whatever follows a whole body is no part of it; a body cut anywhere is said to be cut.
#[test]
fn bodies_with_more_and_with_less_than_they_should_have() {
    for case in cases().iter().filter(|case| case["outcome"] == "ok") {
        let coding = case["content_encoding"].as_str().unwrap();
        let body = body(case);
        let whole = run(&[coding], &body);
        for junk in [&b"\n"[..], b"\0\0\0\0", b"<!-- generated in 3 ms -->"] {
            let longer = [&body[..], junk].concat().into();
            let found = run(&[coding], &longer);
            assert_eq!(found.bytes, whole.bytes, "{coding} {junk:?}");
            if !coding.ends_with("zstd") && !coding.ends_with("br") {
                assert_eq!(found.reason, None, "{coding} {junk:?}");
            }
        }
        for at in (1..body.len()).step_by(body.len() / 40) {
            let shorter = run(&[coding], &body.slice(..at));
            // Between two members of a gzip file nobody can tell.
            let is_between = shorter.reason.is_none() && case["file"] == "three-files.gz";
            assert!(is_between || shorter.reason.is_some(), "{coding} {at}");
            assert!(whole.bytes.starts_with(&shorter.bytes), "{coding} {at}");
        }
    }
}
