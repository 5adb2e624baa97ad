//! Values that are known to be secret, wherever and in whatever clothes they turn up.
//!
//! They come from the environment and the arguments of the recorded server. A value is looked
//! for as it is, percent-encoded and in base64, and what begins or ends like it is taken too:
//! programs log the first twenty characters of their keys.

use std::ops::Range;

use super::Key;
use super::anchor::{Builder, What};
use super::class::Class;
use super::entropy::looks_random;
use super::mark::{Kind, is_marked, print};
use super::prefix::SHAPES;
use super::words::{is_path, is_reference, is_vocabulary};

/// Shorter values are not looked for.
const LEAST: usize = 6;
/// So many bytes of a longer value are as telling as the value.
const PART: usize = 8;
/// Parts are looked for in values of this length or more.
const PARTED: usize = 12;

/// The values, compiled as far as the anchors do not do it.
#[derive(Default)]
pub(super) struct Literals(Vec<Literal>);

struct Literal {
    text: Vec<u8>,
    kind: Kind,
    /// Fingerprint of the value itself, also where this is an encoding of it.
    print: u32,
    /// Length of a vendor's prefix, which is not secret.
    public: usize,
    /// Counts only as a word of its own.
    bounded: bool,
    encoded: bool,
}

/// Where a literal was found; `print` if it is whole.
pub(super) struct Found {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    pub(super) print: Option<u32>,
}

impl Literals {
    /// Adds a value unless it is too short or too common to be secret.
    pub(super) fn add(&mut self, key: &Key, value: &[u8], kind: Kind) {
        let value = value.trim_ascii();
        if is_common(value) || self.0.iter().any(|known| known.text == value) {
            return;
        }
        let print = print(key, value);
        let shape = shape_of(value);
        let kind = shape.map_or(kind, |(kind, _)| Kind::known(kind));
        let public = shape.map_or(0, |(_, public)| public);
        let bounded = value.len() < PART && Class::LETTER.all(value);
        let mut push = |text: Vec<u8>, public, encoded| {
            if text.len() >= LEAST && !self.0.iter().any(|known| known.text == text) {
                self.0.push(Literal {
                    text,
                    kind: kind.clone(),
                    print,
                    public,
                    bounded,
                    encoded,
                });
            }
        };
        push(value.to_vec(), public, false);
        push(percent(value, true), 0, true);
        push(percent(value, false), 0, true);
        for skip in 0..3 {
            let core = base64_core(value, skip);
            if core.len() >= PARTED {
                let url: Vec<u8> = core
                    .iter()
                    .map(|&byte| match byte {
                        b'+' => b'-',
                        b'/' => b'_',
                        other => other,
                    })
                    .collect();
                push(core, 0, true);
                push(url, 0, true);
            }
        }
        // A key with lines: programs print them one by one.
        for line in value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
            if line.len() >= 16 && line.len() < value.len() && !line.starts_with(b"-----") {
                push(line.to_vec(), 0, true);
            }
        }
    }

    /// Adds a secret that a rule found, and what it says with its percent-encoding resolved. Of
    /// cookies the values are added, one by one.
    pub(super) fn add_found(&mut self, key: &Key, secret: &[u8], kind: Kind) {
        if kind.as_str() == "cookie" {
            for cookie in secret.split(|&byte| byte == b';') {
                if let Some(sign) = memchr::memchr(b'=', cookie) {
                    self.add(key, &cookie[sign + 1..], kind.clone());
                }
            }
        }
        self.add(key, &percent_decoded(secret), kind.clone());
        self.add(key, secret, kind);
    }

    pub(super) fn anchors(&self, builder: &mut Builder) {
        for (number, literal) in self.0.iter().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let text = &literal.text;
            builder.add(&text[..text.len().min(PART)], false, What::Literal(number));
            if !literal.encoded && text.len() >= 2 * PART && is_telling(&text[text.len() - PART..])
            {
                builder.add(&text[text.len() - PART..], false, What::LiteralEnd(number));
            }
        }
    }

    /// Whether any value has bytes that JSON escapes, so that its raw form can hide it.
    pub(super) fn are_escaped(&self) -> bool {
        self.0.iter().any(|literal| {
            literal
                .text
                .iter()
                .any(|&byte| matches!(byte, 0..b' ' | b'"' | b'\\'))
        })
    }

    /// The literal, or its beginning, at `at`.
    pub(super) fn starting(&self, number: u32, text: &[u8], at: usize) -> Option<Found> {
        let literal = self.0.get(number as usize)?;
        let same = text[at..]
            .iter()
            .zip(&literal.text)
            .take_while(|(a, b)| a == b)
            .count();
        let range = at..at + same;
        if same == literal.text.len() {
            let alone = !literal.bounded
                || !(at > 0 && Class::ALNUM.has(text[at - 1])
                    || text
                        .get(range.end)
                        .is_some_and(|&byte| Class::ALNUM.has(byte)));
            return alone.then(|| Found {
                range,
                kind: literal.kind.clone(),
                print: Some(literal.print),
            });
        }
        let part = literal.text.len() >= PARTED
            && same >= literal.public + PART
            && is_telling(&text[at + literal.public..range.end]);
        part.then(|| Found {
            range,
            kind: literal.kind.clone(),
            print: None,
        })
    }

    /// The literal's end, which `end` is the offset after.
    pub(super) fn ending(&self, number: u32, text: &[u8], end: usize) -> Option<Found> {
        let literal = self.0.get(number as usize)?;
        let same = text[..end]
            .iter()
            .rev()
            .zip(literal.text.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let same = same.min(literal.text.len() - literal.public);
        (same >= PART).then(|| Found {
            range: end - same..end,
            kind: literal.kind.clone(),
            print: None,
        })
    }
}

/// Whether a part of a value is more than a word.
fn is_telling(part: &[u8]) -> bool {
    let letters = part.iter().filter(|&&byte| Class::LETTER.has(byte)).count();
    Class::DIGIT.any(part) && letters > 0
        || part
            .windows(2)
            .filter(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]))
            .count()
            >= 2
}

/// The kind and the prefix's length, if the whole of `value` is a vendor's token.
fn shape_of(value: &[u8]) -> Option<(&'static str, usize)> {
    SHAPES
        .iter()
        .filter(|shape| {
            value.starts_with(shape.prefix.as_bytes())
                && shape.read(value, 0) == Some(0..value.len())
        })
        .map(|shape| (shape.kind, shape.prefix.len()))
        .max_by_key(|(_, prefix)| *prefix)
}

/// Values that would be found everywhere, or that are no secrets though their name says so.
fn is_common(value: &[u8]) -> bool {
    #[rustfmt::skip]
    const COMMON: &[&[u8]] = &[
        b"access", b"account", b"admin123", b"administrator", b"application/json", b"change-me", b"client", b"database", b"default", b"develop", b"development",
        b"docker", b"elastic", b"github", b"gitlab", b"google", b"keyring", b"keychain", b"laravel", b"mariadb", b"memory", b"mongodb", b"openai", b"postgres",
        b"postgresql", b"production", b"rabbitmq", b"secret", b"secrets", b"server", b"service", b"staging", b"system", b"testing", b"token", b"ubuntu", b"username",
        b"vagrant", b"anthropic", b"password", b"passwd", b"sqlite", b"cookie", b"cookies", b"bearer", b"session", b"apikey", b"api-key", b"api_key",
    ];
    value.len() < LEAST
        || value.len() < 8 && Class::DIGIT.all(value)
        || is_vocabulary(value)
        || COMMON
            .iter()
            .any(|common| value.eq_ignore_ascii_case(common))
        || is_reference(value)
        || is_marked(value)
        || is_path(value)
        || memchr::memmem::find(value, b"://").is_some() && !looks_random(value)
}

/// Percent-encoding as URLs or, with `form`, as forms have it.
fn percent(value: &[u8], form: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b' ' if form => out.push(b'+'),
            _ if Class::DOTTED.has(byte) || byte == b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}

/// `secret` with its percent-encoding resolved.
fn percent_decoded(secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(secret.len());
    let mut at = 0;
    while let Some(&byte) = secret.get(at) {
        let digit = |at: usize| {
            secret
                .get(at)
                .and_then(|&byte| char::from(byte).to_digit(16))
        };
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Base64 of `value` behind `skip` other bytes, without the digits that depend on neighbours.
fn base64_core(value: &[u8], skip: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = (skip + value.len()) * 8;
    let byte = |at: usize| {
        at.checked_sub(skip)
            .and_then(|at| value.get(at))
            .copied()
            .unwrap_or(0)
    };
    let first = (skip * 8).div_ceil(6);
    (first..bits / 6)
        .map(|digit| {
            let bit = digit * 6;
            let pair = u16::from(byte(bit / 8)) << 8 | u16::from(byte(bit / 8 + 1));
            ALPHABET[usize::from(pair >> (10 - bit % 8) & 63)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(value: &str) -> Literals {
        let mut literals = Literals::default();
        literals.add(&Key([0; 32]), value.as_bytes(), Kind::known("secret"));
        literals
    }

    #[test]
    fn base64_at_each_offset() {
        assert_eq!(base64_core(b"user:pass", 0), b"dXNlcjpwYXNz");
        // "xhello" is eGhlbGxv, "xxhello" is eHhoZWxsbw.
        assert_eq!(base64_core(b"hello", 1), b"hlbGxv");
        assert_eq!(base64_core(b"hello", 2), b"oZWxsb");
        assert_eq!(base64_core(b"hello", 0), b"aGVsbG");
    }

    #[test]
    fn encodings_are_registered_once() {
        let texts: Vec<_> = literals("p@ss w0rd")
            .0
            .into_iter()
            .map(|literal| String::from_utf8(literal.text).unwrap())
            .collect();
        assert_eq!(
            texts,
            ["p@ss w0rd", "p%40ss+w0rd", "p%40ss%20w0rd", "cEBzcyB3MHJk"]
        );
    }

    #[test]
    fn common_values_are_left_out() {
        for value in [
            "true",
            "false",
            "localhost",
            "1234567",
            "postgres",
            "/run/secrets/token",
            "https://example.com/x",
            "${TOKEN}",
            "short",
            "password",
            "./key.pem",
        ] {
            assert!(literals(value).0.is_empty(), "{value}");
        }
        for value in [
            "hunter2",
            "12345678",
            "correcthorse",
            "/aB3dE5fG7hI9jK1lM3nO5pQ7",
        ] {
            assert!(!literals(value).0.is_empty(), "{value}");
        }
    }

    #[test]
    fn beginnings_and_ends_count() {
        let known = literals("k3v9x1q7z0b2n8m4");
        let found = |found: Option<Found>| found.map(|found| (found.range, found.print.is_some()));
        assert_eq!(
            found(known.starting(0, b"=k3v9x1q7z0b2n8m4;", 1)),
            Some((1..17, true))
        );
        assert_eq!(
            found(known.starting(0, b"k3v9x1q7z...", 0)),
            Some((0..9, false))
        );
        assert_eq!(found(known.starting(0, b"k3v9x1q...", 0)), None);
        assert_eq!(
            found(known.ending(0, b"...z0b2n8m4", 11)),
            Some((3..11, false))
        );
        let word = literals("hunter");
        assert_eq!(found(word.starting(0, b"hunters", 0)), None);
        assert_eq!(found(word.starting(0, b"hunter's", 0)), Some((0..6, true)));
        let token = literals(concat!("sk", "-proj-abcdefgh12345678"));
        assert_eq!(
            found(token.starting(0, concat!("sk", "-proj-xyz").as_bytes(), 0)),
            None
        );
        assert_eq!(
            found(token.starting(0, concat!("sk", "-proj-abcdefgh12.").as_bytes(), 0)),
            Some((0..18, true)).map(|(range, _)| (range, false))
        );
    }
}
