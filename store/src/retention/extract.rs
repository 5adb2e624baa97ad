//! A part of a segment: some sessions stay, and the records of the others go.
//!
//! In their place stands a record that says how many there were, so that the holes in the
//! sequence numbers are not taken for damage.

use crate::journal::format::encode;
use crate::journal::header::{Header, Removed};
use crate::journal::reader::Segment;
use crate::journal::sealed::{Ends, Sealer};
use crate::journal::{Envelope, Flags, Kind, Record};
use crate::redact::Key;
use crate::trace::removed;
use crate::verify::Checked;
use agent_trace_model::Stream;
use agent_trace_wire::frame::Framing;
use std::io;

/// Puts the records that stay, of one file or of several, into a sealed one.
pub(crate) struct Extract {
    sealer: Sealer,
    /// The records that were left out since the last one that was not: how many, and the
    /// number of the last one.
    gone: Option<(u64, u64)>,
    /// Clocks of the last record that stayed.
    clocks: (u64, u64),
    /// Bytes of the records that were taken.
    pub(crate) bytes: u64,
}

impl Extract {
    /// A sealed file with this header, made of the files of which this was found. What is
    /// written here must not prove more than what it is made of.
    pub(crate) fn new(header: &Header, of: &[Checked], key: &Key) -> io::Result<Self> {
        Self::between(header, of, Ends::default(), key)
    }

    /// A sealed file in place of one, to which those around it go on to refer.
    pub(crate) fn of(segment: &Segment, checked: &Checked, key: &Key) -> io::Result<Self> {
        let of = std::slice::from_ref(checked);
        Self::between(segment.header(), of, checked.ends(), key)
    }

    fn between(header: &Header, of: &[Checked], ends: Ends, key: &Key) -> io::Result<Self> {
        let mut sealer = match of.iter().all(Checked::is_chained) {
            true => Sealer::between(header, key.chain(), ends)?,
            false => Sealer::unproven(header, key.chain())?,
        };
        sealer.flawed(of.iter().any(Checked::is_flawed));
        Ok(Self {
            sealer,
            gone: None,
            clocks: (header.started, 0),
            bytes: 0,
        })
    }

    /// Adds the records of a segment that stay. What cannot be read stays behind.
    pub(crate) fn add(
        &mut self,
        segment: &Segment,
        checked: &Checked,
        stays: impl Fn(&Envelope) -> bool,
    ) -> io::Result<()> {
        for (position, view) in segment.views().flatten().enumerate() {
            if position as u64 == checked.covered() {
                self.settle()?;
                self.sealer.leave_open();
            }
            let number = view.envelope.sequence;
            let record = view.record();
            let gone = removed(&record);
            if gone.is_some() || !stays(&view.envelope) {
                let (count, last) = self.gone.unwrap_or((0, number));
                self.gone = Some((count + gone.unwrap_or(1), last.max(number)));
                continue;
            }
            self.settle()?;
            self.clocks = (view.envelope.wall, view.envelope.monotonic);
            self.bytes += view.raw.len() as u64;
            self.sealer.add(&record, view.raw)?;
        }
        Ok(())
    }

    /// The whole file.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.settle()?;
        self.sealer.finish()
    }

    /// Says how many records were left out.
    fn settle(&mut self) -> io::Result<()> {
        let Some((records, sequence)) = self.gone.take() else {
            return Ok(());
        };
        let payload = serde_json::to_vec(&Removed { records })?;
        let envelope = Envelope {
            kind: Kind::Removed,
            stream: Stream::ClientToServer,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: 0,
            exchange: 0,
            sequence,
            // Nothing of what was removed is told, when it was neither.
            wall: self.clocks.0,
            monotonic: self.clocks.1,
            length: payload.len() as u64,
            digest: None,
            spans: Vec::new(),
        };
        let mut raw = Vec::new();
        encode(&envelope, &payload, &mut raw);
        raw.extend_from_slice(&payload);
        self.sealer.add(&Record { envelope, payload }, &raw)
    }
}
