//! The only source of randomness, so that a run repeats from its seed.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rand::rngs::{StdRng, SysRng};
use rand::{Rng, SeedableRng, TryRng};

/// Uniformly random bits.
pub trait Dice: Send + Sync + fmt::Debug {
    /// The next throw.
    fn throw(&self) -> u64;
}

/// A generator seeded once.
#[derive(Debug)]
pub struct SeededDice(Mutex<StdRng>);

impl SeededDice {
    /// The same seed gives the same throws.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }

    /// Seeded by the operating system.
    pub fn from_system() -> Self {
        Self::new(SysRng.try_next_u64().unwrap_or(0x6d65_686d_616e))
    }
}

impl Dice for SeededDice {
    fn throw(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_throws() {
        let (one, two) = (SeededDice::new(7), SeededDice::new(7));
        let throws: Vec<u64> = (0..4).map(|_| one.throw()).collect();
        assert!(throws.iter().all(|throw| two.throw() == *throw));
        assert_ne!(SeededDice::new(8).throw(), throws[0]);
    }
}
