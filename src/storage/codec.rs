//! Versioned rows: one version byte, then the row in postcard.
//!
//! Version 1 is the only one so far. A newer one is an error of its own: it was written by a newer
//! mehman, and is not damaged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::keys::Kind;
use crate::types::ToParse;

/// The version this build writes, and the newest it reads.
pub(super) const ROW_VERSION: u8 = 1;

/// A row that cannot be written or read.
#[derive(Debug, Error)]
pub enum CodecError {
    /// It could not be encoded.
    #[error("failed to encode a {kind} row ({expected})")]
    Encode {
        /// Which kind.
        kind: Kind,
        /// The type.
        expected: &'static str,
        /// Why.
        #[source]
        source: postcard::Error,
    },
    /// Written by a newer mehman.
    #[error("{kind} row of version {found}; this build reads up to {known}")]
    NewerVersion {
        /// Which kind.
        kind: Kind,
        /// The version found.
        found: u8,
        /// The newest one known.
        known: u8,
    },
    /// Not even a version, or one never written.
    #[error("damaged {kind} row: version {found:?} instead of {ROW_VERSION} ({expected})")]
    NoVersion {
        /// Which kind.
        kind: Kind,
        /// What stands there; `None` when the row is empty.
        found: Option<u8>,
        /// The type.
        expected: &'static str,
    },
    /// The version is known, the bytes are not such a row.
    #[error("damaged {kind} row of version {version}: not {expected}")]
    Damaged {
        /// Which kind.
        kind: Kind,
        /// Its version.
        version: u8,
        /// The type.
        expected: &'static str,
        /// Why.
        #[source]
        source: postcard::Error,
    },
    /// A key that is none of ours.
    #[error("damaged {kind} key: {}", hex(key))]
    Key {
        /// Whose range it was found in.
        kind: Kind,
        /// Its bytes.
        key: Vec<u8>,
    },
}

/// Adds the bytes of a row to those that are there already.
///
/// # Errors
/// A type that postcard cannot write; then what was there is gone as well.
pub(super) fn encode<T: Serialize>(
    kind: Kind,
    row: &T,
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let mut before = std::mem::take(bytes);
    before.push(ROW_VERSION);
    *bytes = postcard::to_extend(row, before).map_err(|source| CodecError::Encode {
        kind,
        expected: std::any::type_name::<T>(),
        source,
    })?;
    Ok(())
}

/// Reads a row back.
///
/// # Errors
/// A newer version, or bytes that are not this type.
pub(super) fn decode<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, CodecError> {
    let expected = std::any::type_name::<T>();
    let (version, row) = match bytes.split_first() {
        Some((&found, _)) if found > ROW_VERSION => {
            return Err(CodecError::NewerVersion { kind, found, known: ROW_VERSION });
        }
        Some((&ROW_VERSION, row)) => (ROW_VERSION, row),
        other => {
            let found = other.map(|(version, _)| *version);
            return Err(CodecError::NoVersion { kind, found, expected });
        }
    };
    let damaged = |source| CodecError::Damaged { kind, version, expected, source };
    match postcard::take_from_bytes(row) {
        Ok((row, [])) => Ok(row),
        Ok(_) => Err(damaged(postcard::Error::DeserializeBadEncoding)),
        Err(source) => Err(damaged(source)),
    }
}

/// Reads a to-parse row. One written before these held wishes on use lacks its last byte, the
/// length of an empty list.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_to_parse(bytes: &[u8]) -> Result<ToParse, CodecError> {
    decode(Kind::ToParse, bytes)
        .or_else(|failure| decode(Kind::ToParse, &[bytes, &[0]].concat()).map_err(|_| failure))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{
        ArchivePointer, CrawlUrl, HostCounts, HostId, HostKey, HostRecord, Timestamp, UrlId,
        UrlVersion, UsageWish,
    };

    fn encoded<T: Serialize>(kind: Kind, row: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(kind, row, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn rows_survive_their_bytes() {
        let row = HostRecord::new(HostKey::parse("https://example.com").unwrap());
        let bytes = encoded(Kind::Host, &row);
        assert_eq!(bytes[0], ROW_VERSION);
        assert_eq!(decode::<HostRecord>(Kind::Host, &bytes).unwrap(), row);
    }

    #[test]
    fn to_parse_rows_of_before_are_read() {
        let row = ToParse {
            id: UrlId { host: HostId(1), hash: 2, disambiguator: 0 },
            version: UrlVersion(1),
            url: CrawlUrl::parse("http://a.test/").unwrap(),
            depth: 0,
            redirects: 0,
            status: 200,
            fetched_at: Timestamp::EPOCH,
            archive: ArchivePointer { file: "a.warc.gz".into(), offset: 0, length: 1 },
            discovered_from: None,
            reason: None,
            attempts: 0,
            usage: Vec::new(),
        };
        let bytes = encoded(Kind::ToParse, &row);
        assert_eq!(decode_to_parse(&bytes).unwrap(), row);
        let (_, before) = bytes.split_last().unwrap();
        assert_eq!(decode_to_parse(before).unwrap(), row);
        assert!(decode_to_parse(before.split_last().unwrap().1).is_err());
        let wish = UsageWish { source: "robots.txt".into(), text: "x: y".into(), at: None };
        let row = ToParse { usage: vec![wish], ..row };
        assert_eq!(decode_to_parse(&encoded(Kind::ToParse, &row)).unwrap(), row);
    }

    #[test]
    fn newer_rows_are_not_called_damaged() {
        let mut bytes = encoded(Kind::Counts, &HostCounts::default());
        bytes[0] = 9;
        let error = decode::<HostCounts>(Kind::Counts, &bytes).unwrap_err();
        assert!(matches!(error, CodecError::NewerVersion { found: 9, known: 1, .. }));
        assert_eq!(error.to_string(), "host counts row of version 9; this build reads up to 1");
    }

    #[test]
    fn damaged_rows_say_what_they_should_have_been() {
        let error = decode::<HostRecord>(Kind::Host, &[1, 3, b'x']).unwrap_err().to_string();
        assert!(error.contains("host row of version 1") && error.contains("HostRecord"), "{error}");
        assert!(decode::<HostCounts>(Kind::Counts, &[]).is_err());
        assert!(decode::<HostCounts>(Kind::Counts, &[0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(decode::<HostCounts>(Kind::Counts, &[1, 0, 0, 0, 0, 0, 0, 7]).is_err());
    }
}
