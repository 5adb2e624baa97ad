//! The stdio decoder as its users meet it: what becomes of the bytes of known peers (`cases`)
//! and of any bytes in any chunks (`any_split`).

mod any_split;
mod cases;

use agent_trace_wire::Budget;
use agent_trace_wire::frame::{Event, Framing};
use agent_trace_wire::stdio::Decoder;

/// A frame, with all its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Got {
    raw: Vec<u8>,
    /// `raw` and what was passed on as overflow.
    all: Vec<u8>,
    framing: Framing,
    length: u64,
    incomplete: bool,
    lossy: bool,
}

/// What is fed to a decoder.
#[derive(Clone, Debug)]
enum Feed {
    Bytes(Vec<u8>),
    Lost(u64),
}

/// The frames of a whole stream.
fn decode(limit: usize, feed: &[Feed]) -> Vec<Got> {
    let mut decoder = Decoder::new(limit, &Budget::new(usize::MAX));
    let mut frames = Vec::new();
    let mut overflow: Option<Vec<u8>> = None;
    let mut sink = |event: Event<'_>| match event {
        Event::Overflow { kept, more } => {
            assert!(
                overflow.is_none() || kept.is_empty(),
                "the prefix comes once"
            );
            assert!(!more.is_empty());
            overflow.get_or_insert_with(|| kept.to_vec()).extend(more);
        }
        Event::Frame(frame) => {
            let all = overflow.take().unwrap_or_else(|| frame.raw.to_vec());
            assert!(all.starts_with(frame.raw));
            assert!(frame.raw.len() <= limit);
            frames.push(Got {
                raw: frame.raw.to_vec(),
                all,
                framing: frame.framing,
                length: frame.length,
                incomplete: frame.incomplete,
                lossy: frame.lossy,
            });
        }
    };
    for piece in feed {
        match piece {
            Feed::Bytes(bytes) => decoder.push(bytes, &mut sink),
            Feed::Lost(lost) => decoder.skip(*lost, &mut sink),
        }
        assert!(decoder.pending() <= limit + (64 << 10), "bounded memory");
    }
    decoder.finish(&mut sink);
    assert_eq!(decoder.pending(), 0);
    frames
}

/// The frames of bytes that come in one chunk.
fn decode_bytes(bytes: impl AsRef<[u8]>) -> Vec<Got> {
    decode(1 << 20, &[Feed::Bytes(bytes.as_ref().to_vec())])
}
