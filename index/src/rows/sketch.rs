//! Durations in little room: quantiles within one per cent, whatever the number of values, and
//! sketches that can be added up.
//!
//! The method is DDSketch: Masson, Rim, Lee, "DDSketch: A Fast and Fully-Mergeable Quantile
//! Sketch with Relative-Error Guarantees", PVLDB 12(12), 2019. A value `x` is counted in the
//! bucket `ceil(log_γ x)` with `γ = (1 + α) / (1 - α)`; the value `2 γ^i / (γ + 1)` of bucket
//! `i` is off by at most the fraction `α` from each value in it.

use serde::{Deserialize, Serialize};

/// The relative error α of a quantile.
pub const ERROR: f64 = 0.01;

/// Counted durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Apart", into = "Apart")]
pub struct Sketch {
    /// Buckets that hold any, in their order, and how many each holds. A duration of less than
    /// a nanosecond counts as one.
    buckets: Vec<(i16, u32)>,
}

/// A sketch as it is kept: how far each bucket is from the one before, and what they hold.
/// Most are near, and hold one.
#[derive(Serialize, Deserialize)]
struct Apart {
    steps: Vec<u16>,
    counts: Vec<u32>,
}

impl From<Sketch> for Apart {
    fn from(sketch: Sketch) -> Self {
        let mut before = 0;
        let step = |(bucket, _): &(i16, u32)| {
            let step = bucket.wrapping_sub(std::mem::replace(&mut before, *bucket));
            step.cast_unsigned()
        };
        Self {
            steps: sketch.buckets.iter().map(step).collect(),
            counts: sketch.buckets.iter().map(|(_, count)| *count).collect(),
        }
    }
}

impl From<Apart> for Sketch {
    fn from(apart: Apart) -> Self {
        let mut bucket = 0_i16;
        let buckets = apart.steps.into_iter().zip(apart.counts);
        let buckets = buckets.map(|(step, count)| {
            bucket = bucket.wrapping_add_unsigned(step);
            (bucket, count)
        });
        Self {
            buckets: buckets.collect(),
        }
    }
}

impl Sketch {
    /// Counts a duration in nanoseconds.
    pub fn add(&mut self, nanoseconds: u64) {
        self.count(bucket(nanoseconds), 1);
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            self.count(*bucket, *count);
        }
    }

    /// How many were counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// Whether none was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The duration, in nanoseconds, that this fraction (0 to 1) of those counted do not
    /// exceed; none where none was counted. The rank is `fraction · (n - 1)`, rounded down, as
    /// in the paper.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> Option<u64> {
        let last = self.len().checked_sub(1)?;
        let rank = (fraction.clamp(0.0, 1.0) * last as f64) as u64;
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += u64::from(*count);
            if seen > rank {
                return Some(value(*bucket));
            }
        }
        None
    }

    fn count(&mut self, bucket: i16, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(b, _)| *b) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(count),
            Err(at) => self.buckets.insert(at, (bucket, count)),
        }
    }
}

fn gamma() -> f64 {
    (1.0 + ERROR) / (1.0 - ERROR)
}

fn bucket(nanoseconds: u64) -> i16 {
    // At most 2219, for the largest number there is.
    let index = (nanoseconds.max(1) as f64).ln() / gamma().ln();
    index.ceil() as i16
}

fn value(bucket: i16) -> u64 {
    let gamma = gamma();
    (2.0 * gamma.powi(i32::from(bucket)) / (gamma + 1.0)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_right_within_the_error(
            mut values in proptest::collection::vec(1_000_u64..10_000_000_000_000, 1..200),
            fraction in 0.0..=1.0,
            split in 0_usize..200,
        ) {
            let (mut one, mut other) = (Sketch::default(), Sketch::default());
            for (at, value) in values.iter().enumerate() {
                if at < split { one.add(*value) } else { other.add(*value) }
            }
            one.merge(&other);
            let kept: Option<Sketch> = crate::rows::decode(&crate::rows::encode(&one));
            prop_assert_eq!(kept.as_ref(), Some(&one));
            values.sort_unstable();
            let exact = values[(fraction * (values.len() - 1) as f64) as usize] as f64;
            let told = one.quantile(fraction).unwrap() as f64;
            // A nanosecond for rounding.
            prop_assert!((told - exact).abs() <= ERROR * exact * 1.000_001 + 1.0);
            prop_assert_eq!(one.len(), values.len() as u64);
        }
    }

    #[test]
    fn the_largest_and_the_least_are_counted() {
        let mut sketch = Sketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        sketch.add(0);
        sketch.add(u64::MAX);
        assert_eq!(sketch.quantile(0.0), Some(1));
        assert!(sketch.quantile(1.0).unwrap() > u64::MAX / 100 * 98);
    }
}
