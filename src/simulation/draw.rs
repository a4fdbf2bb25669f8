//! Numbers drawn from what names a thing: the same seed and name give the same number, whatever was
//! drawn before, so that the simulated world is a function and not a sequence.

use std::fmt::Display;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A number for what `about` names.
pub(super) fn draw(seed: u64, about: impl Display) -> u64 {
    xxh3_64_with_seed(about.to_string().as_bytes(), seed)
}

/// A number below `bound`; 0 when nothing is below it.
pub(super) fn below(bound: u64, seed: u64, about: impl Display) -> u64 {
    draw(seed, about) % bound.max(1)
}

/// Whether something that happens `per_mille` times in a thousand happens here.
pub(super) fn happens(per_mille: u64, seed: u64, about: impl Display) -> bool {
    below(1000, seed, about) < per_mille
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_for_each_seed() {
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        let often = (0..10_000).filter(|n| happens(100, 7, n)).count();
        assert!((800..1200).contains(&often), "{often}");
        assert_eq!(below(0, 1, "a"), 0);
    }
}
