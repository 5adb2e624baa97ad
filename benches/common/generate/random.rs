//! Numbers that look random and are the same for the same seed, on every machine.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The stream for this seed and this number within it: streams of one seed are
    /// independent of each other and of the order in which they are used.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut this = Self(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        this.next();
        this
    }

    /// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let product = u128::from(self.next()) * count as u128;
        usize::try_from(product >> 64).unwrap_or_default()
    }

    /// From 0 on, less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Log-normal with this median. Box and Muller, "A note on the generation of random normal
    /// deviates" (1958).
    pub(crate) fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    /// Exponential with this mean.
    pub(crate) fn waiting(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// An index below `count`, of which the first is the likeliest (Zipf with exponent 1,
    /// roughly).
    pub(crate) fn zipf(&mut self, count: usize) -> usize {
        let rank = ((count + 1) as f64).powf(self.unit()) - 1.0;
        (rank as usize).min(count.saturating_sub(1))
    }
}
