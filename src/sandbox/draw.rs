//! Numbers drawn from what names a thing: the same parts give the same draws on every machine.
//!
//! The content of the sandbox is a function, so it asks neither [`crate::world::Dice`] nor any
//! state: a page's draws depend on the seed, the host and the page, never on what was drawn before.

/// The step between two states: the golden ratio in 64 bits, so that states never cycle early.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of draws.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// The stream that belongs to these parts, in this order.
    pub(super) fn of(parts: &[u64]) -> Self {
        let state =
            parts.iter().fold(STEP, |state, part| mix(state ^ mix(part.wrapping_add(STEP))));
        Self(state)
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number below `bound`; 0 when nothing is below it.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let wide = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.bits() % wide).unwrap_or(0)
    }

    /// A number from `low` to `high`, both possible.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// One of the items; the default where there is none.
    pub(super) fn pick<T: Copy + Default>(&mut self, items: &[T]) -> T {
        items.get(self.below(items.len())).copied().unwrap_or_default()
    }
}

/// Spreads every bit of the input over the whole output (the finaliser of SplitMix64).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_parts_give_the_same_draws() {
        let (mut one, mut two) = (Draw::of(&[1, 2, 3]), Draw::of(&[1, 2, 3]));
        assert!((0..9).all(|_| one.bits() == two.bits()));
        assert_ne!(Draw::of(&[1, 2, 3]).bits(), Draw::of(&[1, 3, 2]).bits());
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut draw = Draw::of(&[9]);
        assert!((0..500).all(|_| draw.below(7) < 7));
        assert!((0..500).all(|_| (3..=5).contains(&draw.between(3, 5))));
        assert_eq!(draw.below(0), 0);
    }
}
