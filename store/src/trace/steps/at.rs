//! A frame while its messages are taken out of it.

use super::super::step::{Frame, Place};
use crate::journal::{Envelope, Flags};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::message::{Message, MessageKind, beginning, messages};

/// A frame and where it is.
pub(super) struct At<'a> {
    pub(super) frames: &'a [Frame],
    pub(super) frame: &'a Frame,
    pub(super) position: usize,
}

impl<'a> At<'a> {
    pub(super) fn envelope(&self) -> &'a Envelope {
        &self.frame.record.envelope
    }

    /// Where a piece of the frame's text is.
    pub(super) fn place(&self, part: &[u8]) -> Place {
        // An empty piece need not be one of the text.
        let offset = part.as_ptr() as usize;
        let start = offset.wrapping_sub(self.frame.body().as_ptr() as usize);
        let start = if part.is_empty() { 0 } else { start };
        Place {
            frame: self.position,
            range: start..start + part.len(),
        }
    }

    /// Hands out the messages in it; of one that was cut its beginning.
    pub(super) fn messages(&self, mut each: impl FnMut(&Message<'_>)) {
        let envelope = self.envelope();
        // An event that breaks off is none: its receiver ignores it.
        let broke = envelope.framing == Framing::Event && envelope.flags.has(Flags::INCOMPLETE);
        if self.frame.is_stray() || broke {
        } else if envelope.flags.has(Flags::CUT) {
            let message = beginning(self.frame.body());
            let message = message.filter(|message| message.kind != MessageKind::Other);
            message.iter().for_each(&mut each);
        } else {
            let all = messages(self.frame.body()).into_iter().flatten();
            all.for_each(|message| each(&message));
        }
    }
}
