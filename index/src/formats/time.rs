//! Moments as other programs write them, in nanoseconds since 1970.

use jiff::Timestamp;

/// Seconds as a JSON number says them, exactly as far as nanoseconds go; none where it is no
/// moment from 1970 on.
pub(super) fn seconds(number: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(number).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) {
        // With an exponent, which nobody writes for a moment, or none at all.
        let seconds: f64 = text.parse().ok()?;
        let nanoseconds = seconds * 1e9;
        let fits = (0.0..u64::MAX as f64).contains(&nanoseconds);
        return fits.then_some(nanoseconds as u64);
    }
    let nine = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanoseconds = nine.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// A span in milliseconds as a JSON number says it, in nanoseconds.
pub(super) fn milliseconds(number: &[u8]) -> Option<u64> {
    let milliseconds: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let nanoseconds = milliseconds * 1e6;
    (0.0..u64::MAX as f64)
        .contains(&nanoseconds)
        .then_some(nanoseconds as u64)
}

/// A moment in RFC 3339.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let timestamp: Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_nanosecond()).ok()
}

/// A moment as RFC 3339 in UTC with all nine digits.
pub(super) fn to_rfc3339(nanoseconds: u64) -> String {
    let timestamp = Timestamp::from_nanosecond(i128::from(nanoseconds));
    format!("{:.9}", timestamp.unwrap_or(Timestamp::UNIX_EPOCH))
}

/// A moment or span as a decimal number of units of `10^digits` nanoseconds.
pub(super) fn decimal(nanoseconds: u64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let width = digits as usize;
    format!("{}.{:0width$}", nanoseconds / unit, nanoseconds % unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_their_digits() {
        for (text, expected) in [
            ("1764000000.123456", Some(1_764_000_000_123_456_000)),
            ("1764000000", Some(1_764_000_000_000_000_000)),
            ("0.1234567899", Some(123_456_789)),
            ("1.764e9", Some(1_764_000_000_000_000_000)),
            ("-1", None),
            ("1e400", None),
            ("99999999999999", None),
            ("null", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(milliseconds(b"1.5"), Some(1_500_000));
    }

    #[test]
    fn moments_survive_their_text() {
        let moment = 1_764_504_000_123_456_789;
        assert_eq!(to_rfc3339(moment), "2025-11-30T12:00:00.123456789Z");
        assert_eq!(rfc3339(&to_rfc3339(moment)), Some(moment));
        assert_eq!(
            rfc3339("2025-11-30T12:00:00.5+00:00"),
            Some(1_764_504_000_500_000_000)
        );
        assert_eq!(rfc3339("yesterday"), None);
        assert_eq!(decimal(moment, 9), "1764504000.123456789");
        assert_eq!(decimal(1_500, 3), "1.500");
    }
}
