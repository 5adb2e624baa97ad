//! However a stream is cut into chunks, it gives the same frames, and each of its bytes is in
//! exactly one of them.
//!
//! The input's first byte picks the limit, the second the sizes of the chunks.

#![no_main]

use agent_trace_wire::Budget;
use agent_trace_wire::frame::{Event, Framing};
use agent_trace_wire::json;
use agent_trace_wire::stdio::Decoder;
use libfuzzer_sys::fuzz_target;

type Got = (Vec<u8>, Vec<u8>, Framing, u64, bool, bool);

fn decode<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Got> {
    let budget = Budget::new(1 << 20);
    let mut decoder = Decoder::new(limit, &budget);
    let mut frames = Vec::new();
    let mut overflow: Option<Vec<u8>> = None;
    let mut sink = |event: Event<'_>| match event {
        Event::Overflow { kept, more } => {
            overflow.get_or_insert_with(|| kept.to_vec()).extend(more);
        }
        Event::Frame(frame) => {
            let all = overflow.take().unwrap_or_else(|| frame.raw.to_vec());
            assert!(frame.raw.len() <= limit && all.starts_with(frame.raw));
            if frame.framing != Framing::Stray && !frame.truncated() && !frame.incomplete {
                assert!(json::is_valid(&frame.text()));
            }
            frames.push((
                frame.raw.to_vec(),
                all,
                frame.framing,
                frame.length,
                frame.incomplete,
                frame.lossy,
            ));
        }
    };
    for chunk in chunks {
        decoder.push(chunk, &mut sink);
        assert!(decoder.pending() <= limit + (32 << 10));
    }
    decoder.finish(&mut sink);
    frames
}

fuzz_target!(|input: &[u8]| {
    let [limit, size, stream @ ..] = input else {
        return;
    };
    let limit = match limit {
        0..128 => usize::from(*limit),
        _ => 1 << 20,
    };
    let whole = decode(limit, std::iter::once(stream));
    let all: Vec<u8> = whole.iter().flat_map(|frame| frame.1.clone()).collect();
    assert_eq!(all, stream);
    assert!(whole.iter().all(|frame| frame.3 == frame.1.len() as u64));
    assert_eq!(decode(limit, stream.chunks(usize::from(*size) + 1)), whole);
});
