//! Medians, and whose turn it is.

/// The middle one, or the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The median of what one has more than the other in the same round.
pub(crate) fn added(values: &[f64], base: &[f64]) -> f64 {
    let differences: Vec<f64> = values.iter().zip(base).map(|(v, b)| v - b).collect();
    median(&differences)
}

/// How many times `of` something is. Not a number where `of` drowned in noise.
pub(crate) fn times(value: f64, of: f64) -> f64 {
    if of > 0.0 { value / of } else { f64::NAN }
}

/// The order in this round. Both who begins and who comes after whom changes, so that nobody
/// always has to bear what another left behind.
pub(crate) fn order(round: usize, count: usize) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..count).map(|n| (n + round) % count).collect();
    if (round / count) % 2 == 1 {
        turns.reverse();
    }
    turns
}

/// The value that this share of all is not above.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted
        .get(at.saturating_sub(1))
        .copied()
        .unwrap_or(f64::NAN)
}
