//! How processes, sessions and runs are named.
//!
//! A relay process draws a [`ProcessId`] (UUIDv7: sortable by start). A session is a process
//! and an ordinal in it. A [`RunId`] is derived (UUIDv8), so that whoever reads the same
//! journals finds the same ids; its leading digits are random-looking, which keeps unique
//! prefixes short.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Digits of an id that are shown: enough to name it.
pub const SHORT_ID: usize = 8;

/// A text that is not the id it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an id of 32 hexadecimal digits")
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// The id with these 16 bytes.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Its 16 bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_simple().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.as_simple())
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<Self, ParseIdError> {
                text.parse()
            }
        }
    };
}

uuid_id! {
    /// One process that writes a journal.
    ProcessId
}

uuid_id! {
    /// One run: one conversation of an assistant, or one execution of a script agent.
    RunId
}

impl ProcessId {
    /// The id (UUIDv7) of a process that starts at `unix_ms` and drew these random bytes.
    #[must_use]
    pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
    }

    /// The id (UUIDv8) made of the first 16 bytes of a digest: of a recording that came from
    /// elsewhere, so that it is found when it comes again.
    #[must_use]
    pub fn from_digest(digest: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(digest).into_uuid())
    }
}

impl RunId {
    /// The id (UUIDv8) made of the first 16 bytes of a digest.
    #[must_use]
    pub fn from_digest(digest: [u8; 16]) -> Self {
        Self(uuid::Builder::from_custom_bytes(digest).into_uuid())
    }
}

/// One connection between one client and one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionId {
    /// The relay process that saw it.
    pub process: ProcessId,
    /// Its ordinal within that process, from 1.
    pub ordinal: u32,
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.process, self.ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_their_text() {
        let id = ProcessId::new(1_700_000_000_000, [7; 10]);
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("x".parse::<RunId>(), Err(ParseIdError));
    }

    #[test]
    fn process_ids_sort_by_start() {
        assert!(ProcessId::new(1, [255; 10]) < ProcessId::new(2, [0; 10]));
    }
}
