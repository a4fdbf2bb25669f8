//! Which shard a host belongs to (A3).
//!
//! All hosts of a registered domain live in one shard, so the domain's clock and budget need no
//! message. The number of shards is chosen once.

use std::net::IpAddr;

use crate::types::ShardId;

/// The shard of a key among `shards` (at least one).
pub fn shard_of(key: &str, shards: usize) -> ShardId {
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed(key.as_bytes(), PLACEMENT_SEED);
    let shards = u64::try_from(shards.max(1)).unwrap_or(1);
    ShardId(u16::try_from(hash % shards).unwrap_or(0))
}

/// Which of `owners` keeps the clock of an address.
pub fn address_owner(address: IpAddr, owners: usize) -> usize {
    let hash = match address {
        IpAddr::V4(four) => xxhash_rust::xxh3::xxh3_64(&four.octets()),
        IpAddr::V6(six) => xxhash_rust::xxh3::xxh3_64(&six.octets()),
    };
    let owners = u64::try_from(owners.max(1)).unwrap_or(1);
    usize::try_from(hash % owners).unwrap_or(0)
}

/// Independent of the ids of hosts, so that a shard's keys spread evenly.
const PLACEMENT_SEED: u64 = 0x7368_6172_6473;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shard_gets_its_share() {
        let mut counts = [0u32; 4];
        for n in 0..4000 {
            counts[usize::from(shard_of(&format!("site-{n}.test"), 4).0)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_key_stays_where_it_is() {
        assert_eq!(shard_of("example.com", 256), shard_of("example.com", 256));
        assert_eq!(shard_of("anything", 1), ShardId(0));
    }
}
