//! What scans found, and what servers were seen to define.
//!
//! Definitions repeat in every session. A list of them has one row for each server that tells
//! it ([`ListRow`]), with what was found in it; sessions refer to it by its hash. What was found
//! in results is kept per session ([`FiledRow`]).

use super::StepAt;
use agent_trace_scanners::pin::{Hash, Kind};
use agent_trace_scanners::{Confidence, Finding, Place, Severity, codes};
use serde::{Deserialize, Serialize};

/// The most different lists of a session that are known.
pub const MOST_LISTS: usize = 256;
/// The most findings in results of a session, or in a list, that are kept. All are counted.
pub const MOST_FOUND: usize = 100;
/// The most findings of a run that only show in several servers.
pub const MOST_ACROSS: usize = 50;

/// How many findings with a code there are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTally {
    /// The code.
    pub code: String,
    /// How bad they are.
    pub severity: Severity,
    /// How many.
    pub count: u64,
}

/// Something that a scan found, wherever that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundRow {
    /// As [`Finding::code`].
    pub code: String,
    /// As [`Finding::severity`].
    pub severity: Severity,
    /// As [`Finding::confidence`].
    pub confidence: Confidence,
    /// As [`Finding::tool`].
    pub tool: Option<String>,
    /// As [`Finding::place`].
    pub place: Place,
    /// As [`Finding::pointer`], from the message on.
    pub pointer: String,
    /// First byte in the string, and the byte after the last.
    pub bytes: (u64, u64),
    /// As [`Finding::quote`].
    pub quote: String,
    /// As [`Finding::decoded`].
    pub decoded: Option<String>,
}

/// Something that was found in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundAt {
    /// The step in whose answer it stands.
    pub at: StepAt,
    /// What it is.
    pub found: FoundRow,
}

/// What was found in the results of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiledRow {
    /// In the order in which the steps began; at most [`MOST_FOUND`].
    pub found: Vec<FoundAt>,
    /// How much more.
    pub more: u64,
}

/// A list of definitions that a session was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedAt {
    /// When it was told first.
    pub at: StepAt,
    /// Its hash.
    pub list: Hash,
}

/// A list of definitions as a server tells it: one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRow {
    /// What identifies the server.
    pub identity: String,
    /// What is defined.
    pub definitions: Vec<DefinitionRow>,
    /// What was found in it; at most [`MOST_FOUND`].
    pub found: Vec<FoundRow>,
    /// How much more.
    pub more: u64,
}

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRow {
    /// What is defined.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Where it stands in its list.
    pub position: u32,
    /// The hash of its canonical form.
    pub hash: Hash,
    /// The canonical form; empty where it is too long to be kept.
    pub text: String,
    /// The worst that was found in it.
    pub worst: Option<Severity>,
}

/// That a session was told a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRow {
    /// The step.
    pub at: StepAt,
    /// What to call the server.
    pub server: String,
    /// What to call the client.
    pub client: String,
    /// The project directory, where there is one.
    pub project: Option<String>,
}

impl FoundRow {
    /// What was found.
    #[must_use]
    pub fn of(finding: Finding) -> Self {
        Self {
            code: finding.code.to_owned(),
            severity: finding.severity,
            confidence: finding.confidence,
            tool: finding.tool,
            place: finding.place,
            pointer: finding.pointer,
            bytes: (finding.start as u64, finding.end as u64),
            quote: finding.quote,
            decoded: finding.decoded,
        }
    }

    /// The same as a finding about this server; none for a code that this version does not
    /// know.
    #[must_use]
    pub fn finding(&self, server: &str) -> Option<Finding> {
        let code = codes::explain(&self.code)?;
        let position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        Some(Finding {
            code: code.code,
            title: code.title,
            severity: self.severity,
            confidence: self.confidence,
            server: (!server.is_empty()).then(|| server.to_owned()),
            tool: self.tool.clone(),
            place: self.place,
            pointer: self.pointer.clone(),
            start: position(self.bytes.0),
            end: position(self.bytes.1),
            quote: self.quote.clone(),
            decoded: self.decoded.clone(),
        })
    }
}

/// Counts one more.
pub fn count(tally: &mut Vec<CodeTally>, code: &str, severity: Severity, count: u64) {
    let place =
        tally.binary_search_by(|known| (&known.code[..], known.severity).cmp(&(code, severity)));
    match place {
        Ok(at) => tally[at].count += count,
        Err(at) => tally.insert(
            at,
            CodeTally {
                code: code.to_owned(),
                severity,
                count,
            },
        ),
    }
}
