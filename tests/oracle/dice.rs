//! Numbers that follow from a seed.

use nodes::testing::hash;

/// A row of numbers; the same seed gives the same row.
pub struct Dice {
    seed: u64,
    n_thrown: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice { seed, n_thrown: 0 }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.n_thrown += 1;
        hash(self.seed, self.n_thrown)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.number() % (high - low + 1)
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.number() % 100 < percent
    }

    /// One of several, each as likely as the others.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.number() % from.len() as u64) as usize]
    }
}
