//! What a journal file says of itself, and the payloads that are JSON.
//!
//! Members that a reader does not know are ignored, members that are missing get defaults,
//! so that older and newer versions read each other.

use super::format::{FILE_MAGIC, FILE_PREFIX, MAJOR, MINOR, narrow, u16_at, u32_at};
use crate::process::Process;
use agent_trace_model::{End, ProcessId, Stream};

pub use agent_trace_model::exchange::{Altered, Finished, NotDecoded, Request, Response, Trailers};
pub use agent_trace_model::story::KeyKind;
use serde::{Deserialize, Serialize};

/// The most bytes of a header that a reader takes for possible.
const MOST_HEADER: usize = 1 << 20;

/// The first thing in a file: who wrote it, where, and under which rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The process that wrote it.
    pub process: ProcessId,
    /// Which part of that process's journal this is, from 1.
    pub segment: u32,
    /// Version of agent-trace that wrote it.
    #[serde(default)]
    pub version: String,
    /// When the process began to record, in nanoseconds since 1970.
    #[serde(default)]
    pub started: u64,
    /// The machine's name.
    #[serde(default)]
    pub host: String,
    /// What tells this start of the machine from another.
    #[serde(default)]
    pub boot: String,
    /// The recording process.
    #[serde(default)]
    pub relay: Process,
    /// The process that started it: the client, or a launcher of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Process>,
    /// Under which rules secrets were hidden.
    pub redaction: Redaction,
    /// What of arguments and results was kept.
    #[serde(default)]
    pub bodies: Bodies,
    /// The workspace it belongs to.
    #[serde(default)]
    pub workspace: String,
    /// The project directory, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Under which rules secrets were hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// Whether they were hidden at all.
    pub on: bool,
    /// Which key made the fingerprints.
    #[serde(default)]
    pub key: String,
    /// How many rules the user added.
    #[serde(default)]
    pub user_rules: usize,
}

/// What of arguments and results is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bodies {
    /// All of it.
    #[default]
    Full,
    /// Keyed digests only.
    Digest,
}

/// Facts about a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, and is taken apart at once"
)]
pub enum Meta {
    /// A session began. Repeated at the start of each further file of the process.
    SessionOpen(SessionOpen),
    /// The head of an HTTP request, at the beginning of its exchange.
    Request(Request),
    /// The head of an HTTP answer.
    Response(Response),
    /// Header lines after a body, on the stream of the record.
    Trailers(Trailers),
    /// The relay forwarded something other than what it was sent.
    Altered(Altered),
    /// A body in a content coding that was not decoded: its frames are missing or are not
    /// whole.
    NotDecoded(NotDecoded),
    /// The end of an HTTP exchange.
    Finished(Finished),
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The beginning of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpen {
    /// How the client reaches the server: `stdio` or `http`.
    pub transport: String,
    /// When it began, in nanoseconds since 1970.
    #[serde(default)]
    pub started: u64,
    /// The run that it belongs to, where that was named (`agent-trace run`, `record --run`);
    /// redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The task that it was started for, where that was named (`--task`, `AGENT_TRACE_TASK`);
    /// redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The name that the user or a wrapper gave the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name that the user or a wrapper gave the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The server's command and arguments, redacted.
    #[serde(default)]
    pub command: Vec<String>,
    /// The folder it runs in, redacted.
    #[serde(default)]
    pub cwd: String,
    /// The names of its environment variables; values are not recorded.
    #[serde(default)]
    pub env: Vec<String>,
    /// Its process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Where the client reaches the relay (HTTP): address and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Where the relay reaches the server (HTTP): its URL, redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// What ties its exchanges together (HTTP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<SessionKey>,
    /// The client's process, where the system tells (HTTP over loopback).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The client's `User-Agent` (HTTP), redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Where it came from, if it was not recorded here. Its frames are then reconstructed from
    /// what another program wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Box<Imported>>,
}

/// Where a session came from that another program recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The format: `agent-strace`, `agenttrace-vcr`, `claude-code`.
    pub format: String,
    /// Version of the program that wrote it, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file or folder that it was read from, redacted.
    #[serde(default)]
    pub source: String,
    /// What it is called there, redacted.
    #[serde(default)]
    pub session: String,
    /// Keyed digest of what was read, which tells whether it has changed since.
    #[serde(default)]
    pub digest: String,
}

/// How the sessions of an HTTP listener are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionKey {
    /// What it is.
    pub kind: KeyKind,
    /// Its keyed fingerprint: equal keys have equal ones.
    pub fingerprint: String,
}

/// Something was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Why: `queue_full`, or what the disk said.
    pub reason: String,
    /// When the loss began, in nanoseconds since 1970.
    #[serde(default)]
    pub since: u64,
    /// Frames that were decoded but not written.
    #[serde(default)]
    pub frames: u64,
    /// Bytes that were relayed and are in no record.
    #[serde(default)]
    pub bytes: u64,
    /// The stream, where the loss was on one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
}

/// The end of a session, with totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// How it ended.
    #[serde(flatten)]
    pub end: End,
    /// Frames that were seen, in the order of [`Stream::ALL`] (lines, for standard error).
    #[serde(default)]
    pub frames: [u64; 3],
    /// Bytes that were relayed, likewise.
    #[serde(default)]
    pub bytes: [u64; 3],
    /// Bytes of them that are in no record.
    #[serde(default)]
    pub lost: u64,
}

/// Records stood here that were removed: those of a run that was forgotten, or of the other
/// runs where one was exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// How many.
    pub records: u64,
}

/// Why a file is no journal of ours.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// It begins with other bytes.
    #[error("not a journal of agent-trace")]
    Foreign,
    /// It is of a later major version.
    #[error("written in format {major}, and this version reads format {MAJOR}")]
    Newer {
        /// The version it is of.
        major: u16,
    },
    /// It ends inside its header: its process was killed, or the disk was full.
    #[error("ends inside its header")]
    Torn,
    /// Its checksum is wrong.
    #[error("header is damaged")]
    Damaged,
    /// It cannot be understood.
    #[error("header cannot be understood")]
    Json(#[source] serde_json::Error),
}

impl Header {
    /// What is known of a process of which no header can be read.
    #[must_use]
    pub fn unknown(process: ProcessId) -> Self {
        Self {
            process,
            segment: 1,
            version: String::new(),
            started: 0,
            host: String::new(),
            boot: String::new(),
            relay: Process::default(),
            client: None,
            redaction: Redaction {
                on: true,
                key: String::new(),
                user_rules: 0,
            },
            bodies: Bodies::Full,
            workspace: String::new(),
            project: None,
        }
    }

    /// The header's bytes under this magic.
    ///
    /// # Errors
    /// When it cannot be written as JSON, which does not happen.
    pub fn encode(&self, magic: &[u8; 8]) -> Result<Vec<u8>, serde_json::Error> {
        Ok(framed(magic, &serde_json::to_vec(self)?))
    }

    /// The header at the beginning of a journal file, and how many bytes it takes.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), HeaderError> {
        Self::decode_as(&FILE_MAGIC, bytes)
    }

    pub(super) fn decode_as(magic: &[u8; 8], bytes: &[u8]) -> Result<(Self, usize), HeaderError> {
        let known = bytes.len().min(magic.len());
        if bytes[..known] != magic[..known] {
            return Err(HeaderError::Foreign);
        }
        let Some(prefix) = bytes.first_chunk::<FILE_PREFIX>() else {
            return Err(HeaderError::Torn);
        };
        let major = u16_at(prefix, 8);
        if major != MAJOR {
            return Err(HeaderError::Newer { major });
        }
        let end = FILE_PREFIX + u32_at(prefix, 12) as usize;
        if end > MOST_HEADER {
            return Err(HeaderError::Damaged);
        }
        let Some(json) = bytes.get(FILE_PREFIX..end) else {
            return Err(HeaderError::Torn);
        };
        let crc = crc32c::crc32c_append(crc32c::crc32c(&prefix[..16]), json);
        if crc != u32_at(prefix, 16) {
            return Err(HeaderError::Damaged);
        }
        let header = serde_json::from_slice(json).map_err(HeaderError::Json)?;
        Ok((header, end))
    }
}

/// The beginning of a file with this header, given as JSON.
pub(super) fn framed(magic: &[u8; 8], json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FILE_PREFIX + json.len());
    out.extend_from_slice(magic);
    out.extend_from_slice(&MAJOR.to_le_bytes());
    out.extend_from_slice(&MINOR.to_le_bytes());
    out.extend_from_slice(&narrow::<u32>(json.len()).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out), json);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(json);
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn header() -> Header {
        Header {
            process: ProcessId::new(1_764_000_000_000, [5; 10]),
            segment: 1,
            version: "0.1.0".into(),
            started: 1_764_000_000_000_000_000,
            host: "host".into(),
            boot: String::new(),
            relay: Process::default(),
            client: None,
            redaction: Redaction {
                on: true,
                key: "0a0b0c0d".into(),
                user_rules: 0,
            },
            bodies: Bodies::Full,
            workspace: "default".into(),
            project: None,
        }
    }

    #[test]
    fn a_header_survives_its_bytes() {
        let bytes = header().encode(&FILE_MAGIC).unwrap();
        assert_eq!(Header::decode(&bytes).unwrap(), (header(), bytes.len()));
        for cut in 0..bytes.len() {
            let torn = Header::decode(&bytes[..cut]);
            assert!(matches!(torn, Err(HeaderError::Torn)), "{cut}");
        }
    }

    #[test]
    fn a_file_of_a_later_format_is_refused_by_name() {
        let mut bytes = header().encode(&FILE_MAGIC).unwrap();
        bytes[8] = 9;
        let error = Header::decode(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "written in format 9, and this version reads format 1"
        );
    }

    #[test]
    fn members_of_another_version_do_not_matter() {
        let meta = r#"{"type":"session_open","transport":"stdio","later":1}"#;
        let Meta::SessionOpen(open) = serde_json::from_str(meta).unwrap() else {
            panic!("not a session");
        };
        assert_eq!(open.transport, "stdio");
        let meta: Meta = serde_json::from_str(r#"{"type":"later","x":1}"#).unwrap();
        assert_eq!(meta, Meta::Unknown);
    }
}
