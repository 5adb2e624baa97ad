//! What a rule is, and the list of them.

use super::context::Context;
use super::found::Found;
use super::{answers, content, frames, headers, ids, outcomes, recording, retired, revisions};
use serde::Serialize;
use std::fmt;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It works, but should not be so, or will not work for long.
    Warning,
    /// Something failed, or is against the protocol.
    Error,
}

impl Severity {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whose doing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The client's.
    Client,
    /// The server's.
    Server,
    /// The recording is not whole; nobody did anything wrong.
    Recording,
}

impl Party {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Recording => "recording",
        }
    }
}

/// One thing that is looked for.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// Its name. It never changes: baselines refer to it.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// Why it matters, and what to do.
    pub why: &'static str,
    /// Where it is written that it is wrong.
    pub source: &'static str,
    /// Looks for it.
    #[serde(skip)]
    pub(super) look: fn(&Context<'_>, &mut Found<'_>),
}

/// All rules, in the order in which they are listed.
#[must_use]
pub fn rules() -> &'static [&'static Rule] {
    static ALL: [&Rule; 47] = [
        &outcomes::ERROR,
        &outcomes::TOOL_ERROR,
        &outcomes::HTTP_ERROR,
        &outcomes::TIMEOUT,
        &outcomes::UNANSWERED,
        &outcomes::CRASHED,
        &answers::LATE,
        &answers::AFTER_CANCEL,
        &answers::UNASKED,
        &answers::TWICE,
        &frames::STRAY_OUTPUT,
        &frames::STRAY_INPUT,
        &frames::BROKEN_JSON,
        &frames::INCOMPLETE,
        &frames::NOT_JSON_RPC,
        &frames::CONTENT_LENGTH,
        &headers::MISMATCH,
        &headers::PARAM_MISMATCH,
        &headers::MISSING,
        &headers::VERSION_MISSING,
        &content::NOT_JSON,
        &content::UNDECLARED,
        &revisions::UNKNOWN,
        &revisions::BATCH,
        &revisions::INITIALIZE_IN_BATCH,
        &revisions::BEFORE_INITIALIZE,
        &revisions::BEFORE_INITIALIZED,
        &revisions::META_MISSING,
        &revisions::RESULT_TYPE,
        &retired::METHOD,
        &retired::SERVER_REQUEST,
        &retired::SESSION,
        &retired::ERROR_CODE,
        &retired::FEATURE,
        &retired::TRANSPORT,
        &ids::NULL,
        &ids::TYPE,
        &ids::FRACTIONAL,
        &ids::REUSED,
        &ids::ON_NOTIFICATION,
        &ids::MISSING,
        &ids::JSONRPC,
        &recording::GAP,
        &recording::UNREADABLE,
        &recording::CUT_OFF,
        &recording::CLIPPED,
        &recording::NOT_WHOLE,
    ];
    &ALL
}
