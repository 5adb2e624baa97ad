//! Moments and spans as people read them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// Now, in nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(0)
}

/// Seconds that local time is ahead of UTC now.
pub(crate) fn utc_offset() -> i32 {
    TimeZone::system().to_offset(Timestamp::now()).seconds()
}

/// A moment given in nanoseconds since 1970.
fn zoned(nanoseconds: u64, zone: TimeZone) -> ZonedDateTime {
    Timestamp::from_nanosecond(i128::from(nanoseconds))
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .to_zoned_datetime(zone)
}

/// `2026-11-30 12:03:01`, in the local time zone.
pub(crate) fn date(nanoseconds: u64) -> String {
    zoned(nanoseconds, TimeZone::system())
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Formats many moments: looking up the local time zone takes a while.
pub(crate) struct Clock(TimeZone);

impl Clock {
    pub(crate) fn local() -> Self {
        Self(TimeZone::system())
    }

    /// `12:03:01.512`
    pub(crate) fn time(&self, nanoseconds: u64) -> String {
        zoned(nanoseconds, self.0.clone())
            .strftime("%H:%M:%S.%3f")
            .to_string()
    }
}

/// RFC 3339 in UTC with all nine digits, for machines.
pub(crate) fn rfc3339(nanoseconds: u64) -> String {
    zoned(nanoseconds, TimeZone::UTC)
        .strftime("%Y-%m-%dT%H:%M:%S.%9fZ")
        .to_string()
}

/// `<1ms`, `850ms`, `12.3s`, `4m05s`, `2h07m`
pub(crate) fn span(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds / 1_000_000;
    let seconds = milliseconds / 1_000;
    match seconds {
        0 if milliseconds == 0 => "<1ms".into(),
        0 => format!("{milliseconds}ms"),
        1..60 => format!("{seconds}.{}s", milliseconds % 1_000 / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Seconds with as many digits as matter: `0.000045`, `0.212`, `12.034`
pub(crate) fn seconds(nanoseconds: u64) -> String {
    let (whole, micros) = (
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000 / 1_000,
    );
    if whole == 0 && micros < 1_000 {
        format!("0.{micros:06}")
    } else {
        format!("{whole}.{:03}", micros / 1_000)
    }
}

/// `17 B`, `4.2 kB`, `1.0 MB`
pub(crate) fn bytes(count: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut tenths = count / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < units.len() {
        tenths /= 1_000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_sizes_are_short() {
        let spans = [
            850_000_000,
            12_340_000_000,
            245_000_000_000,
            7_620_000_000_000,
        ];
        assert_eq!(spans.map(span), ["850ms", "12.3s", "4m05s", "2h07m"]);
        assert_eq!(
            [45_000, 212_000_000, 12_034_000_000].map(seconds),
            ["0.000045", "0.212", "12.034"]
        );
        assert_eq!(
            [17, 4_200, 1_049_000, 5_000_000_000].map(bytes),
            ["17 B", "4.2 kB", "1.0 MB", "5.0 GB"]
        );
        assert_eq!(
            rfc3339(1_796_040_000_123_456_789),
            "2026-11-30T12:00:00.123456789Z"
        );
    }
}
