//! What is wrong with the configuration file, told with its place and, where a name is
//! unknown, with the one that was probably meant.

use std::ops::Range;

/// How alike (0 to 1) two names have to be for one to be taken for the other mistyped.
const ALIKE: f64 = 0.75;

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(String);

impl Fault {
    /// Something that only shows when the whole file is looked at.
    pub(crate) fn at(text: &str, place: &Range<usize>, what: &str) -> Self {
        Self(format!("line {}: {what}", line(text, place)))
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        let mut text = error.to_string().trim_end().to_owned();
        if let Some(name) = nearest(error.message()) {
            text.push_str(&format!("\ndid you mean `{name}`?"));
        }
        Self(text)
    }
}

/// The number of the line that this place is in, from 1.
pub(crate) fn line(text: &str, place: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..place.start).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Of a message like "unknown field `a`, expected one of `b`, `c`", which serde writes: the
/// name that is most like the unknown one.
fn nearest(message: &str) -> Option<&str> {
    let (unknown, known) = message.rsplit_once("`, expected ")?;
    let (kind, unknown) = unknown.split_once(" `")?;
    if !kind.starts_with("unknown ") {
        return None;
    }
    known
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|name| (strsim::jaro_winkler(unknown, name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_if_it_is_near() {
        let of = |unknown: &str| {
            let message =
                format!("unknown field `{unknown}`, expected one of `listen`, `to`, `idle`");
            nearest(&message).map(str::to_owned)
        };
        assert_eq!(of("lisen").as_deref(), Some("listen"));
        assert_eq!(of("listen_on").as_deref(), Some("listen"));
        assert_eq!(of("idel").as_deref(), Some("idle"));
        assert_eq!(of("colour"), None);
        assert_eq!(nearest("missing field `to`"), None);
        assert_eq!(
            nearest("unknown variant `ful`, expected `full` or `digest`"),
            Some("full")
        );
    }
}
