//! Keys: made once, shown once, known afterwards by a hash.
//!
//! ```text
//! at_k3ts8q2v_6y0v...   "at_", the id (8 characters), "_", 256 random bits (52 characters)
//! ```
//! Characters are those of Crockford's base 32, in lower case, of which none is taken for
//! another.

use agent_trace_store::state::Key;
use std::str::FromStr;

/// What a key begins with, so that scanners for secrets find it where it should not be.
pub const PREFIX: &str = "at_";
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID: usize = 8;
const SECRET: usize = 52;

/// What is wanted of a new key.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What it is called.
    pub name: String,
    /// The names of its scopes.
    pub scopes: Vec<String>,
    /// The workspace that it belongs to.
    pub workspace: String,
    /// Who has it.
    pub user: String,
    /// From when on it no longer counts, in nanoseconds since 1970.
    pub expires: Option<u64>,
    /// How often it can be used.
    pub limit: Limit,
}

/// Makes a key: what is shown once, and what is kept.
///
/// # Errors
/// When the system has no random bytes.
pub fn make(wanted: Wanted, now: u64) -> Result<(String, Key), getrandom::Error> {
    let mut random = [0; 32 + 5];
    getrandom::fill(&mut random)?;
    let (secret, id) = random.split_at(32);
    let id = digits(id, ID);
    let key = format!("{PREFIX}{id}_{}", digits(secret, SECRET));
    let kept = Key {
        hash: blake3::hash(key.as_bytes()).to_hex().to_string(),
        id,
        name: wanted.name,
        scopes: wanted.scopes,
        workspace: wanted.workspace,
        user: wanted.user,
        created: now,
        expires: wanted.expires,
        limit: (wanted.limit.calls, wanted.limit.seconds),
    };
    Ok((key, kept))
}

/// The id of a key; none for what is no key.
#[must_use]
pub fn id(key: &str) -> Option<&str> {
    let (id, secret) = key.strip_prefix(PREFIX)?.split_once('_')?;
    let is_digits = |text: &str| text.bytes().all(|b| DIGITS.contains(&b));
    let lengths = (id.len(), secret.len()) == (ID, SECRET);
    (lengths && is_digits(id) && is_digits(secret)).then_some(id)
}

/// Whether a key is the one of which this is kept. Takes as long whatever the key.
#[must_use]
pub fn is(key: &str, kept: &Key) -> bool {
    // Hashes are compared in constant time.
    blake3::Hash::from_hex(&kept.hash).is_ok_and(|hash| hash == blake3::hash(key.as_bytes()))
}

fn digits(bytes: &[u8], count: usize) -> String {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |n: usize| (0..5).fold(0, |value, b| value << 1 | usize::from(bit(n * 5 + b)));
    (0..count).map(|n| char::from(DIGITS[digit(n)])).collect()
}

/// How often a key can be used: so many calls in so many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many calls.
    pub calls: u32,
    /// In how many seconds.
    pub seconds: u32,
}

impl Default for Limit {
    /// More than an assistant does by itself, and too little to read a store out quickly.
    fn default() -> Self {
        Self {
            calls: 300,
            seconds: 60,
        }
    }
}

/// The most calls of a limit: they are counted in the audit log, which is bounded.
pub const MOST_CALLS: u32 = 10_000;

/// A text that is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no limit: write calls (10000 at most) and span, such as 60/min, 5/s or 1000/h")]
pub struct LimitError(String);

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let wrong = || LimitError(text.to_owned());
        let (calls, span) = text.split_once('/').ok_or_else(wrong)?;
        let seconds = match span {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        let calls = calls
            .parse()
            .ok()
            .filter(|calls| (1..=MOST_CALLS).contains(calls));
        Ok(Self {
            calls: calls.ok_or_else(wrong)?,
            seconds,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            name: "ci".into(),
            scopes: vec!["runs:read".into()],
            workspace: "default".into(),
            user: "ada".into(),
            expires: None,
            limit: Limit::default(),
        }
    }

    #[test]
    fn a_key_is_known_by_its_hash_alone() {
        let (key, kept) = make(wanted(), 1).unwrap();
        assert_eq!(id(&key), Some(&kept.id[..]));
        assert!(is(&key, &kept));
        let secret = key.rsplit('_').next().unwrap();
        assert!(!serde_json::to_string(&kept).unwrap().contains(secret));
        let (other, _) = make(wanted(), 1).unwrap();
        assert!(!is(&other, &kept) && other != key);
        let cut = &key[..key.len() - 1];
        assert!(id(cut).is_none() && !is(cut, &kept));
        for no in ["", "at_", "at_x_y", &key.to_uppercase()] {
            assert!(id(no).is_none(), "{no}");
        }
    }

    #[test]
    fn limits_are_calls_in_a_span() {
        let limit = "60/min".parse();
        assert_eq!(
            limit,
            Ok(Limit {
                calls: 60,
                seconds: 60
            })
        );
        for wrong in ["", "60", "0/min", "-1/s", "60/minute", "5/ s"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}
