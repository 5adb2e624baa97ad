//! Whether a difference between two groups may be chance.

/// Fisher's exact test, two-sided: how likely a difference at least as large is by chance alone,
/// where of `n1` one group has `a` and of `n2` the other has `b`. The numerators are compared as
/// whole numbers, exact for groups of up to 60 in all; for larger ones it is 1.
#[must_use]
pub fn fisher((a, n1): (usize, usize), (b, n2): (usize, usize)) -> f64 {
    let (m, all) = (a + b, n1 + n2);
    if all > 60 || a > n1 || b > n2 {
        return 1.0;
    }
    let ways = |x: usize| choose(n1, x) * choose(n2, m - x);
    let seen = ways(a);
    let possible = m.saturating_sub(n2)..=m.min(n1);
    let as_rare = possible.map(ways).filter(|ways| *ways <= seen).sum();
    ratio(as_rare, choose(all, m))
}

/// Holm's correction: what each of these is worth where so many were looked at.
pub fn holm(all: &mut [f64]) {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*a].total_cmp(&all[*b]));
    let mut least = 0.0_f64;
    for (rank, at) in order.into_iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "there are few")]
        let times = (all.len() - rank) as f64;
        least = least.max(all[at] * times).min(1.0);
        all[at] = least;
    }
}

/// In how many ways so many can be chosen of `n`.
fn choose(n: usize, k: usize) -> u128 {
    if k > n {
        return 0;
    }
    (0..k.min(n - k)).fold(1, |ways, i| ways * (n - i) as u128 / (i + 1) as u128)
}

#[allow(clippy::cast_precision_loss, reason = "a share needs no more digits")]
fn ratio(part: u128, whole: u128) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fisher_is_exact() {
        for ((a, n1), (b, n2), expected) in [
            ((0, 8), (8, 8), 1.0 / 6435.0),
            ((0, 3), (3, 3), 0.1),
            ((0, 5), (0, 5), 1.0),
            ((0, 15), (13, 15), 1.0 / 570_285.0),
            ((2, 8), (6, 8), 283.0 / 2145.0),
            ((4, 8), (8, 8), 1.0 / 13.0),
            ((3, 4), (1, 4), 17.0 / 35.0),
            ((1, 1), (0, 3), 0.25),
            ((0, 0), (0, 3), 1.0),
        ] {
            let p = fisher((a, n1), (b, n2));
            assert!((p - expected).abs() < 1e-12, "{a}/{n1} {b}/{n2}: {p}");
        }
        assert_eq!(fisher((50, 50), (0, 50)), 1.0);
    }

    #[test]
    fn holm_keeps_the_order() {
        let mut all = [0.04, 0.01, 0.03, 0.5];
        holm(&mut all);
        let expected = [0.09, 0.04, 0.09, 0.5];
        for (p, expected) in all.iter().zip(expected) {
            assert!((p - expected).abs() < 1e-12, "{all:?}");
        }
        let mut none: [f64; 0] = [];
        holm(&mut none);
    }
}
