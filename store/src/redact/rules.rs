//! The rules, compiled: the user's patterns, and the anchors of all that is built in.

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::anchor::{Builder, Filter, LEAST, Structure, What};
use super::class::Class;
use super::entropy::is_digest;
use super::literal::Literals;
use super::mark::{Kind, MAX_KIND, is_kind};
use super::name::{Strength, name_says_secret};
use super::prefix::SHAPES;
use super::words::is_path;

/// A rule of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRule {
    /// What markers call it: small letters, digits and dashes.
    pub kind: String,
    /// A regular expression. What group 1 matches is hidden, or all if it has no group.
    pub pattern: String,
}

/// A user's rule cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The kind has other characters than markers can have.
    #[error("redaction rule {number}: kind {kind:?} is not 1 to {MAX_KIND} of a-z, 0-9 and -")]
    Kind {
        /// Which rule, counted from 1.
        number: usize,
        /// The kind as given.
        kind: String,
    },
    /// The pattern is no regular expression.
    #[error("redaction rule {number} ({kind}): invalid pattern")]
    Pattern {
        /// Which rule, counted from 1.
        number: usize,
        /// Its kind.
        kind: String,
        /// Where and why.
        #[source]
        source: regex::Error,
    },
    /// The pattern matches the empty text.
    #[error("redaction rule {number} ({kind}): pattern matches everything")]
    Empty {
        /// Which rule, counted from 1.
        number: usize,
        /// Its kind.
        kind: String,
    },
}

pub(super) fn compile(rules: &[UserRule]) -> Result<Vec<(Regex, Kind)>, RuleError> {
    let compile = |(at, rule): (usize, &UserRule)| {
        let number = at + 1;
        let kind = rule.kind.clone();
        if !is_kind(kind.as_bytes()) {
            return Err(RuleError::Kind { number, kind });
        }
        match RegexBuilder::new(&rule.pattern).size_limit(1 << 20).build() {
            Ok(pattern) if pattern.is_match(b"") => Err(RuleError::Empty { number, kind }),
            Ok(pattern) => Ok((pattern, Kind::user(&kind))),
            Err(source) => Err(RuleError::Pattern {
                number,
                kind,
                source,
            }),
        }
    };
    rules.iter().enumerate().map(compile).collect()
}

/// The anchors of the built-in rules and of the literals.
pub(super) fn filter(literals: &Literals) -> Filter {
    let mut builder = Builder::default();
    // Words that the names of secrets hold. Where a word is frequent in text, the anchor takes
    // in what must follow.
    for word in [
        "pass", "_pat", "pwd", "secret", "token", "key", "auth", "cred", "cookie", "bearer",
        "session", "jwt", "mnemonic", "nonce", "signat", "sid=", "sid\"", "sessid", "sig=",
        "sig\"", "sig:", "code=", "code\"", "code:", "code'", "code_v", "codev", "verifier",
    ] {
        builder.add(word.as_bytes(), true, What::Word);
    }
    for (number, shape) in (0..).zip(SHAPES) {
        let prefix = shape.prefix.as_bytes();
        if prefix.len() >= LEAST {
            builder.add(prefix, false, What::Shape(number));
        } else {
            for digit in b"0123456789abcdef" {
                builder.add(&[prefix, &[*digit]].concat(), false, What::Shape(number));
            }
        }
    }
    for (anchor, structure) in [
        ("eyJ", Structure::Jwt),
        ("eyAi", Structure::Jwt),
        ("ewog", Structure::Jwt),
        ("-----BEGIN ", Structure::Pem),
        ("PuTTY-User-Key-File-", Structure::Putty),
        ("AKIA", Structure::AwsId),
        ("ASIA", Structure::AwsId),
        ("ABIA", Structure::AwsId),
        ("ACCA", Structure::AwsId),
        (":AA", Structure::Telegram),
        ("://", Structure::Url),
        ("@tcp(", Structure::GoDsn),
        ("@unix(", Structure::GoDsn),
        (" -u", Structure::UserFlag),
        ("--user", Structure::UserFlag),
    ] {
        builder.add(anchor.as_bytes(), false, What::Structure(structure));
    }
    for signature in [
        "+ASt", "+ABa", "+AMC", "+ASb", "+AEh", "+ARm", "+ACR", "ACDb", "AIoT", "APIM", "AZDO",
        "AzCa", "AzEG", "AzFu", "AzSe", "JQQJ9",
    ] {
        builder.add(
            signature.as_bytes(),
            false,
            What::Structure(Structure::AzureKey),
        );
    }
    for digit in b'0'..=b'9' {
        builder.add(
            &[digit, b'Q', b'~'],
            false,
            What::Structure(Structure::AzureClient),
        );
    }
    builder.add(b"bearer", true, What::Structure(Structure::Bearer));
    builder.add(b"basic", true, What::Structure(Structure::Basic));
    builder.add(
        b"identified by",
        true,
        What::Structure(Structure::IdentifiedBy),
    );
    // Percent-encoded punctuation: a decoded view is worth it.
    for byte in (b' '..b'0')
        .chain(b':'..b'A')
        .chain(b'['..b'a')
        .chain(b'{'..0x7F)
    {
        builder.add(format!("%{byte:02x}").as_bytes(), true, What::Look);
    }
    literals.anchors(&mut builder);
    builder.build()
}

/// The kind of secret that a variable of an environment holds, by its name and value.
pub(super) fn variable_says_secret(name: &[u8], value: &[u8]) -> Option<&'static str> {
    let says = name_says_secret(name)?;
    let chosen = || {
        value.len() >= 8
            && Class::DIGIT.any(value)
            && Class::LETTER.any(value)
            && !is_digest(value)
            && !is_path(value)
    };
    match says.strength {
        Strength::Strong => Some(says.kind),
        // In an environment `X_KEY` is hardly a place in a list.
        Strength::Weak => chosen().then_some(says.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: &str, pattern: &str) -> String {
        let rule = UserRule {
            kind: kind.into(),
            pattern: pattern.into(),
        };
        compile(&[rule]).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_rule() {
        assert_eq!(
            error("a b", "x"),
            "redaction rule 1: kind \"a b\" is not 1 to 40 of a-z, 0-9 and -"
        );
        assert_eq!(error("x", "(x"), "redaction rule 1 (x): invalid pattern");
        assert_eq!(
            error("x", "y*"),
            "redaction rule 1 (x): pattern matches everything"
        );
    }
}
