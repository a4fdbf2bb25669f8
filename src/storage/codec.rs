//! Versioned rows: one version byte, then the row in postcard, or several entries of a log.
//!
//! Version 1 is the only one so far. A newer one is an error of its own: it was written by a newer
//! mehman, and is not damaged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::keys::Kind;

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
    bytes.push(ROW_VERSION);
    append(kind, row, bytes)
}

/// Adds the bytes of one more entry to a row that has its version.
///
/// # Errors
/// As [`encode`].
pub(super) fn append<T: Serialize>(
    kind: Kind,
    entry: &T,
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let before = std::mem::take(bytes);
    *bytes = postcard::to_extend(entry, before).map_err(|source| CodecError::Encode {
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
    let (version, row) = versioned::<T>(kind, bytes)?;
    let damaged = |source| CodecError::Damaged { kind, version, expected, source };
    match postcard::take_from_bytes(row) {
        Ok((row, [])) => Ok(row),
        Ok(_) => Err(damaged(postcard::Error::DeserializeBadEncoding)),
        Err(source) => Err(damaged(source)),
    }
}

/// Reads the entries of a row back, in their order.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_all<T: DeserializeOwned>(
    kind: Kind,
    bytes: &[u8],
) -> Result<Vec<T>, CodecError> {
    let expected = std::any::type_name::<T>();
    let (version, mut rest) = versioned::<T>(kind, bytes)?;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let damaged = |source| CodecError::Damaged { kind, version, expected, source };
        let (entry, behind) = postcard::take_from_bytes(rest).map_err(damaged)?;
        entries.push(entry);
        rest = behind;
    }
    Ok(entries)
}

/// The version of a row, and what stands behind it.
fn versioned<T>(kind: Kind, bytes: &[u8]) -> Result<(u8, &[u8]), CodecError> {
    let expected = std::any::type_name::<T>();
    match bytes.split_first() {
        Some((&found, _)) if found > ROW_VERSION => {
            Err(CodecError::NewerVersion { kind, found, known: ROW_VERSION })
        }
        Some((&ROW_VERSION, row)) => Ok((ROW_VERSION, row)),
        other => {
            let found = other.map(|(version, _)| *version);
            Err(CodecError::NoVersion { kind, found, expected })
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{HostCounts, HostKey, HostRecord};

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
