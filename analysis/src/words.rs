//! Words for numbers.

use std::fmt::Display;

/// `1 step`, `2 steps`, `3 processes`
#[must_use]
pub fn count<N: Copy + Display + PartialEq + From<u8>>(count: N, what: &str) -> String {
    match what {
        _ if count == N::from(1) => format!("{count} {what}"),
        _ if what.ends_with('s') => format!("{count} {what}es"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1_usize, "run"), "1 run");
        assert_eq!(count(0_u64, "run"), "0 runs");
        assert_eq!(count(2_u32, "process"), "2 processes");
    }
}
