//! Ids as their bytes. As text, which they are elsewhere, they would take twice the room.

use super::StepAt;
use agent_trace_model::{ProcessId, RunId, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One run.
pub mod run {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(id: &RunId, to: S) -> Result<S::Ok, S::Error> {
        id.as_bytes().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RunId, D::Error> {
        <[u8; 16]>::deserialize(from).map(RunId::from_bytes)
    }
}

/// Several runs.
pub mod runs {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(ids: &[RunId], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(ids.iter().map(RunId::as_bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RunId>, D::Error> {
        let ids = Vec::<[u8; 16]>::deserialize(from)?;
        Ok(ids.into_iter().map(RunId::from_bytes).collect())
    }
}

/// A process.
pub mod process {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(id: &ProcessId, to: S) -> Result<S::Ok, S::Error> {
        id.as_bytes().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ProcessId, D::Error> {
        <[u8; 16]>::deserialize(from).map(ProcessId::from_bytes)
    }
}

/// A session.
pub mod session {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(id: &SessionId, to: S) -> Result<S::Ok, S::Error> {
        (id.process.as_bytes(), id.ordinal).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SessionId, D::Error> {
        let (process, ordinal) = <([u8; 16], u32)>::deserialize(from)?;
        Ok(SessionId {
            process: ProcessId::from_bytes(process),
            ordinal,
        })
    }
}

/// Where a step is: what is the same for all of a session first, so that it is one long
/// repetition. Between its two clocks there is the same time again and again.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Step {
    #[serde(with = "session")]
    session: SessionId,
    /// From the beginning of the monotonic clock to 1970, the other way round.
    clocks: u64,
    monotonic: u64,
    number: u64,
}

impl From<StepAt> for Step {
    fn from(at: StepAt) -> Self {
        Self {
            session: at.session,
            clocks: at.wall.wrapping_sub(at.monotonic),
            monotonic: at.monotonic,
            number: at.number,
        }
    }
}

impl From<Step> for StepAt {
    fn from(step: Step) -> Self {
        Self {
            wall: step.clocks.wrapping_add(step.monotonic),
            session: step.session,
            monotonic: step.monotonic,
            number: step.number,
        }
    }
}

/// How a session ended: as JSON members are left out, which here none may be.
pub mod end {
    use super::*;
    use agent_trace_model::{End, Ending};

    type Whole = (Ending, Option<i32>, Option<i32>, bool, Option<String>);

    pub(crate) fn serialize<S: Serializer>(end: &Option<End>, to: S) -> Result<S::Ok, S::Error> {
        let whole = end
            .clone()
            .map(|end| -> Whole { (end.ending, end.exit_code, end.signal, end.killed, end.error) });
        whole.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<End>, D::Error> {
        let whole = Option::<Whole>::deserialize(from)?;
        Ok(whole.map(|(ending, exit_code, signal, killed, error)| End {
            ending,
            exit_code,
            signal,
            killed,
            error,
        }))
    }
}
