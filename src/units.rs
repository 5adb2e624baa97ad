//! Amounts as people write them: `30d`, `1h30m`, `10GB`, `512 MiB`.

use std::time::Duration;

/// A span of time: numbers with `ms`, `s`, `m`, `h`, `d` or `w`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let mut total = 0_u64;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => {
                return Err(format!(
                    "{text:?} needs units: ms, s, m, h, d or w, as in 30d or 1h30m"
                ));
            }
        };
        total = number
            .checked_mul(milliseconds)
            .and_then(|milliseconds| total.checked_add(milliseconds))
            .ok_or_else(|| format!("{text:?} is too long"))?;
        rest = after.trim_start();
    }
    if text.trim().is_empty() {
        return Err("an empty span of time".into());
    }
    Ok(Duration::from_millis(total))
}

/// A span of time in the same words: in the largest unit that needs no fraction.
pub(crate) fn shown(span: Duration) -> String {
    let milliseconds = span.as_millis();
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let whole =
        |(size, _): &(u128, &str)| milliseconds >= *size && milliseconds.is_multiple_of(*size);
    match units.into_iter().find(whole) {
        Some((size, unit)) => format!("{}{unit}", milliseconds / size),
        None => format!("{milliseconds}ms"),
    }
}

/// A number of bytes: a number with `B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB` or `TiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = number(text.trim())?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(format!("{text:?} needs a unit such as MB or GiB")),
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("{text:?} is too large"))
}

fn number(text: &str) -> Result<(u64, &str), String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let number = digits
        .parse()
        .map_err(|_| format!("{text:?} does not begin with a number"))?;
    Ok((number, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration(" 2w 1d "), Ok(Duration::from_secs(15 * 86_400)));
        assert_eq!(duration("1s500ms"), Ok(Duration::from_millis(1_500)));
        assert_eq!(bytes("10GB"), Ok(10_000_000_000));
        assert_eq!(bytes("512 MiB"), Ok(512 << 20));
        for wrong in ["", "5", "d", "5 years", "99999999999999w"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "GB", "5 parsecs", "99999999TB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for text in ["0ms", "250ms", "90s", "10m", "36h", "30d"] {
            assert_eq!(shown(duration(text).unwrap()), text);
        }
    }
}
