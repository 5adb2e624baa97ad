//! The tables of the configuration file.

use super::relay::{Address, Table};
use crate::units;
use agent_trace_analysis::suspects::judge::Dialect;
use agent_trace_store::journal::Bodies;
use agent_trace_store::recorder::Durability;
use agent_trace_store::redact::UserRule;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;

/// The configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// The data directory.
    pub(crate) store: Option<PathBuf>,
    pub(crate) record: Record,
    pub(crate) redact: Redact,
    pub(crate) retention: Retention,
    pub(crate) daemon: Daemon,
    pub(crate) check: Check,
    pub(crate) steps: Steps,
    pub(crate) mcp: Mcp,
    pub(crate) judge: Judge,
    /// `[[relay]]`; empty once they have become listeners.
    pub(super) relay: Vec<Table>,
}

/// `[record]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Record {
    pub(crate) redact: Option<bool>,
    pub(crate) bodies: Option<Bodies>,
    pub(crate) durability: Option<Durability>,
}

/// `[redact]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Redact {
    /// `[[redact.rule]]`
    pub(crate) rule: Vec<UserRule>,
}

/// `[retention]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retention {
    #[serde(deserialize_with = "duration")]
    pub(crate) max_age: Option<Duration>,
    #[serde(deserialize_with = "bytes")]
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_sessions: Option<usize>,
    /// Further limits for single workspaces.
    pub(crate) workspace: BTreeMap<String, Limits>,
}

/// Limits of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    #[serde(deserialize_with = "duration")]
    pub(crate) max_age: Option<Duration>,
    #[serde(deserialize_with = "bytes")]
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_sessions: Option<usize>,
}

/// `[check]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Check {
    /// The program and its arguments.
    pub(crate) command: Option<Vec<String>>,
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Option<Duration>,
}

/// `[steps]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Steps {
    #[serde(deserialize_with = "duration")]
    pub(crate) slow: Option<Duration>,
}

/// `[mcp]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mcp {
    #[serde(deserialize_with = "bytes")]
    pub(crate) answer: Option<u64>,
}

/// `[judge]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Judge {
    pub(crate) url: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) dialect: Option<Dialect>,
    /// The variable that has the key.
    pub(crate) key_env: Option<String>,
    /// The file that has the key.
    pub(crate) key_file: Option<PathBuf>,
    #[serde(deserialize_with = "duration")]
    pub(crate) timeout: Option<Duration>,
}

/// `[daemon]`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Daemon {
    pub(crate) listen: Option<Spanned<Admin>>,
    #[serde(deserialize_with = "duration")]
    pub(crate) drain: Option<Duration>,
    pub(crate) workers: Option<Workers>,
    #[serde(deserialize_with = "duration")]
    pub(crate) session_gap: Option<Duration>,
}

/// Where the daemon tells how it does: an address, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Admin(Option<Address>);

impl Admin {
    pub(crate) fn address(self) -> Option<SocketAddr> {
        self.0.map(|address| address.0)
    }
}

impl TryFrom<String> for Admin {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "off" => Ok(Self(None)),
            address => address.parse().map(|address| Self(Some(address))),
        }
    }
}

/// A number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Workers(NonZeroU16);

impl From<Workers> for usize {
    fn from(workers: Workers) -> Self {
        Self::from(workers.0.get())
    }
}

pub(super) fn duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::duration(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::bytes(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}
