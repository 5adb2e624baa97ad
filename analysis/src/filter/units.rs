//! Amounts and times as they are written in filters.

use super::Settings;

/// How one amount compares to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `=`
    Equal,
}

impl Comparison {
    /// The comparison that a text begins with, and the rest.
    pub(super) fn split(text: &str) -> Option<(Self, &str)> {
        let known = [
            (">=", Self::AtLeast),
            ("<=", Self::AtMost),
            (">", Self::More),
            ("<", Self::Less),
            ("=", Self::Equal),
        ];
        let mut known = known.into_iter();
        known.find_map(|(sign, comparison)| Some((comparison, text.strip_prefix(sign)?)))
    }

    pub(super) fn holds(self, amount: u64, bound: u64) -> bool {
        match self {
            Self::More => amount > bound,
            Self::AtLeast => amount >= bound,
            Self::Less => amount < bound,
            Self::AtMost => amount <= bound,
            Self::Equal => amount == bound,
        }
    }
}

/// Digits after the point that count.
const FRACTION: usize = 18;

const DURATIONS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const SIZES: [(&str, u64); 10] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// A span of time in nanoseconds: `1.5s`, `200ms`, `1h30m`.
pub(super) fn duration(text: &str) -> Result<u64, &'static str> {
    const WHAT: &str = "a duration with a unit (ns us ms s m h d), as in 2s, 1.5s or 1h30m";
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = rest.split_at(end.ok_or(WHAT)?);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let (_, scale) = DURATIONS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or(WHAT)?;
        let part = amount(number, *scale).ok_or(WHAT)?;
        total = total.checked_add(part).ok_or(WHAT)?;
        rest = after;
    }
    if text.is_empty() {
        Err(WHAT)
    } else {
        Ok(total)
    }
}

/// A number of bytes: `512`, `1MB`, `1.5 KiB`.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    const WHAT: &str = "a size (B kB MB GB TB KiB MiB GiB TiB), as in 1MB or 512KiB";
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim_start().to_ascii_lowercase();
    let (_, scale) = SIZES.iter().find(|(name, _)| *name == unit).ok_or(WHAT)?;
    amount(number, *scale).ok_or(WHAT)
}

/// A decimal number times a scale, exactly; digits after the point beyond what counts are cut.
fn amount(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction = &fraction[..fraction.len().min(FRACTION)];
    let parts = fraction
        .bytes()
        .fold(0, |n: u128, b| n * 10 + u128::from(b - b'0'));
    let parts = parts * u128::from(scale) / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    whole
        .checked_mul(scale)?
        .checked_add(u64::try_from(parts).ok()?)
}

/// A moment, in nanoseconds since 1970. `end` is set where a day means its end.
///
/// RFC 3339 (`2026-11-30T12:00:00Z`; without an offset in the zone of the settings; without
/// seconds too), a date, or how long before now (`2h`, `3d`).
pub(super) fn moment(text: &str, settings: &Settings, end: bool) -> Result<u64, &'static str> {
    const WHAT: &str = "a time: 2026-11-30, 2026-11-30T12:00:00Z, or how long ago, as in 2h or 3d";
    if let Ok(ago) = duration(text) {
        return Ok(settings.now.saturating_sub(ago));
    }
    date_and_time(text, settings.offset, end).ok_or(WHAT)
}

fn date_and_time(text: &str, offset: i32, end: bool) -> Option<u64> {
    let bytes = text.as_bytes();
    let (date, rest) = text.split_at_checked(10)?;
    if date.as_bytes()[4] != b'-' || date.as_bytes()[7] != b'-' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    let days = days_since_1970(year, month, day) + i64::from(end && rest.is_empty());
    let (mut seconds, mut nanoseconds, mut offset) = (0, 0, i64::from(offset));
    if !rest.is_empty() {
        if !rest.starts_with(['T', 't', ' ']) || bytes.get(13) != Some(&b':') {
            return None;
        }
        let (hour, minute) = (number(11, 13)?, number(14, 16)?);
        if hour > 23 || minute > 59 {
            return None;
        }
        seconds = hour * 3600 + minute * 60;
        let mut zone = text.get(16..)?;
        if zone.starts_with(':') {
            let second = number(17, 19)?;
            if second > 60 {
                return None;
            }
            seconds += second;
            zone = text.get(19..)?;
            if let Some(fraction) = zone.strip_prefix('.') {
                let end = fraction.find(|c: char| !c.is_ascii_digit());
                let (digits, after) = fraction.split_at(end.unwrap_or(fraction.len()));
                nanoseconds = i64::try_from(amount(&format!("0.{digits}"), 1_000_000_000)?).ok()?;
                if digits.is_empty() {
                    return None;
                }
                zone = after;
            }
        }
        offset = match zone {
            "" => offset,
            "Z" | "z" => 0,
            zone => zone_offset(zone)?,
        };
    }
    let seconds = days * 86_400 + seconds - offset;
    let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    // What is before 1970 is before everything that was recorded.
    u64::try_from(total.max(0)).ok()
}

/// Seconds east of UTC: `+01:00`.
fn zone_offset(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let valid = hours < 24 && minutes < 60;
    valid.then(|| sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the Gregorian calendar: Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `days_from_civil`.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        assert_eq!(duration("2s"), Ok(2_000_000_000));
        assert_eq!(duration("1.5ms"), Ok(1_500_000));
        assert_eq!(duration("1h30m"), Ok(5_400_000_000_000));
        assert_eq!(duration(".123456789s"), Ok(123_456_789));
        assert_eq!(size("1KiB"), Ok(1024));
        assert_eq!(size("1.5 MB"), Ok(1_500_000));
        assert_eq!(size("0.5KiB"), Ok(512));
        assert_eq!(size("1.25KiB"), Ok(1280));
        assert_eq!(size("0.0625kib"), Ok(64));
        assert_eq!(size("7"), Ok(7));
        for wrong in [
            "",
            "s",
            "2",
            "1..2s",
            "1.s.",
            "-1s",
            "99999999999999999d",
            "2 parsecs",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "MB", "1XB", "1e3", "99999999999TB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_read() {
        let settings = Settings {
            now: 10_000_000_000_000,
            offset: 3600,
            ..Settings::default()
        };
        let of = |text: &str| moment(text, &settings, false).ok();
        let seconds = |s: u64| Some(s * 1_000_000_000);
        assert_eq!(of("1h"), seconds(10_000 - 3600));
        assert_eq!(of("9999d"), Some(0));
        assert_eq!(of("2026-11-30"), seconds(1_795_993_200));
        let end = moment("2026-11-30", &settings, true).ok();
        assert_eq!(end, seconds(1_795_993_200 + 86_400));
        assert_eq!(of("2026-11-30T12:00:00Z"), seconds(1_796_040_000));
        assert_eq!(
            of("2026-11-30T12:00:00.5+00:30"),
            Some(1_796_038_200_500_000_000)
        );
        assert_eq!(of("2026-11-30 13:00"), seconds(1_796_040_000));
        assert_eq!(of("2024-02-29T00:00:00Z"), seconds(1_709_164_800));
        assert_eq!(of("1969-01-01"), Some(0));
        for wrong in [
            "",
            "now",
            "2026-13-01",
            "2026-02-29",
            "2026-11-30T25:00",
            "2026-11-30T12",
            "2026-11-30T12:00:00+1",
            "2026-11-30x",
            "é026-11-30",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
