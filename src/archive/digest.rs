//! SHA-1 in Base32, as the archive world writes it.

use sha1::{Digest, Sha1};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// `sha1:` and the Base32 digest of the parts, one after the other.
pub(super) fn sha1_of(parts: &[&[u8]]) -> String {
    let mut hasher = Sha1::new();
    for part in parts {
        hasher.update(part);
    }
    let mut text = String::from("sha1:");
    // 20 bytes are 32 digits of 5 bits: no padding.
    for five in hasher.finalize().chunks(5) {
        let bits = five.iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
        for digit in (0..8).rev() {
            let place = usize::try_from((bits >> (digit * 5)) & 31).unwrap_or(0);
            text.push(char::from(ALPHABET[place]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_other_tools() {
        assert_eq!(sha1_of(&[]), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(sha1_of(&[b"a", b"bc"]), "sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5");
    }
}
