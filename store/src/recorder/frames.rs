//! From a decoder's frames to records, the same for all transports.

use super::sink::{Piece, Place, Sink};
use crate::journal::{Flags, Kind};
use crate::redact::Carry;
use agent_trace_wire::frame::{Frame, Framing};
use agent_trace_wire::json;

/// The most bytes of one frame that are kept; of the rest only length and digest.
pub const KEPT_OF_A_FRAME: usize = 8 << 20;
/// The most bytes of all frames in progress in a process.
pub(super) const ASSEMBLY: usize = 64 << 20;
/// Bytes before a cut that are not kept either: a secret that the cut goes through could not
/// be told any more.
pub(super) const BEFORE_A_CUT: usize = 16 << 10;

/// What one stream remembers between its frames.
#[derive(Default)]
pub(super) struct Frames {
    /// Of a frame beyond what is kept of it: rare, and 2 kB large.
    digest: Option<Box<blake3::Hasher>>,
    /// A private key that is printed line by line.
    key: Carry,
    /// What follows could not be delivered.
    pub(super) undelivered: bool,
    /// The relay changed something in the frame in progress.
    pub(super) altered: bool,
}

/// What is kept of a frame.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) raw: &'a [u8],
    /// Only its beginning.
    pub(super) cut: bool,
    /// Nothing, since bytes are missing in it.
    pub(super) lost: bool,
}

/// What is kept of this frame.
pub(super) fn kept<'a>(frame: &Frame<'a>) -> Kept<'a> {
    let cut = frame.truncated() && !frame.lossy;
    // Where bytes are missing, what is left of a secret could not be told; only a frame
    // that is a whole message for all that is safe.
    let lost = frame.lossy
        && (frame.truncated()
            || frame.framing == Framing::Stray
            || frame.framing == Framing::Event && !json::is_valid(&frame.text()));
    let raw = match frame.raw {
        _ if lost => &[][..],
        raw if cut => &raw[..raw.len().saturating_sub(BEFORE_A_CUT)],
        raw => raw,
    };
    Kept { raw, cut, lost }
}

impl Frames {
    /// Follows a frame beyond what is kept of it.
    pub(super) fn overflow(&mut self, kept: &[u8], more: &[u8], sink: &Sink) {
        // Begun at the frame's first byte or not at all: there may be no key for it yet.
        if !kept.is_empty() {
            self.digest = sink.hasher();
        }
        if let Some(digest) = &mut self.digest {
            digest.update(kept).update(more);
        }
    }

    /// Records a frame of which this is kept.
    pub(super) fn record(
        &mut self,
        frame: &Frame<'_>,
        kept: Kept<'_>,
        place: Place,
        sink: &mut Sink,
    ) {
        let digest = self.digest.take();
        sink.put(Piece {
            kind: Kind::Frame,
            place,
            raw: kept.raw,
            framing: frame.framing,
            flags: Flags::default()
                .with_if(Flags::CUT, kept.cut)
                .with_if(Flags::INCOMPLETE, frame.incomplete)
                .with_if(Flags::LOSSY, frame.lossy)
                .with_if(Flags::UNDELIVERED, self.undelivered)
                .with_if(Flags::ALTERED, std::mem::take(&mut self.altered)),
            length: frame.length,
            lost: frame.lost,
            digest: digest
                .filter(|_| kept.cut)
                .map(|hasher| *hasher.finalize().as_bytes()),
            carry: (frame.framing == Framing::Stray).then_some(&mut self.key),
        });
    }
}
