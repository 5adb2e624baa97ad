//! Properties of the stdio decoder: every byte is in one frame, and chunks do not matter.

use super::{Feed, Got, decode};
use agent_trace_wire::frame::Framing;
use agent_trace_wire::json;
use agent_trace_wire::stdio::body;
use proptest::prelude::*;

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![5 => Just("\n"), 2 => Just("\r\n"), 1 => Just(""), 1 => Just("\n\n")]
}

fn json_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{}".to_owned()),
        Just(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned()),
        Just("{\"a\":\"é€😀\\n\\ud800\"}".to_owned()),
        Just("[{\"id\":1.0,\"result\":{}},{\"method\":\"x\"}]".to_owned()),
        Just("{\"text\":\"Content-Length: 5\\r\\n\"}".to_owned()),
        "[x]{0,60}".prop_map(|text| format!("[\"{text}\"]")),
        Just("{broken".to_owned()),
        Just("17".to_owned()),
    ]
}

fn header_lines() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        6 => Just("Content-Length"), 2 => Just("content-length"), 1 => Just("CONTENT-LENGTH"),
        1 => Just("Content-Type"), 1 => Just("X-Other"), 1 => Just("Content is"),
    ];
    let colon = prop_oneof![6 => Just(": "), 1 => Just(":"), 1 => Just(" : "), 1 => Just(" ")];
    (name, colon).prop_map(|(name, colon)| format!("{name}{colon}"))
}

/// A Content-Length frame: right, loose or wrong.
fn framed() -> impl Strategy<Value = String> {
    let end = prop_oneof![3 => Just("\r\n"), 1 => Just("\n"), 1 => Just(" \r\n")];
    let blank = prop_oneof![6 => Just(true), 1 => Just(false)];
    let off = prop_oneof![6 => Just(0), 1 => -5..5i64, 1 => Just(99_999_999_999)];
    let other =
        prop_oneof![2 => Just(""), 1 => Just("Content-Type: a/b; c=d\r\n"), 1 => Just("A: b\n")];
    (json_text(), header_lines(), other, end, blank, off).prop_map(
        |(text, header, other, end, blank, off)| {
            let length = text.len() as i64 + off;
            let blank = if blank { end } else { "" };
            format!("{other}{header}{length}{end}{other}{blank}{text}")
        },
    )
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (json_text(), line_end()).prop_map(|(text, end)| format!("{text}{end}").into_bytes()),
        4 => (framed(), line_end()).prop_map(|(text, end)| format!("{text}{end}").into_bytes()),
        1 => framed().prop_map(String::into_bytes),
        1 => Just("Server running: yes\n".into()),
        1 => Just("Connected".into()),
        1 => Just("Content-".into()),
        1 => Just("\u{FEFF}".into()),
        1 => Just(b"\xEF\xBB".to_vec()),
        1 => (1..6000usize, prop_oneof![Just(b' '), Just(b'\n'), Just(b'c'), Just(b'{'), Just(b'x')])
            .prop_map(|(length, byte)| vec![byte; length]),
        1 => (0..600usize).prop_map(|count| "Content-Length: 3\n".repeat(count).into()),
        1 => (0..600usize).prop_map(|count| "Content-Length:".repeat(count).into()),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
        1 => proptest::collection::vec(prop_oneof![
            Just(b'{'), Just(b'}'), Just(b'\n'), Just(b'\r'), Just(b' '), Just(b':'), Just(b'c'),
            Just(0xEF), Just(0xBB), Just(0xBF),
        ], 0..12),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..12).prop_map(|pieces| pieces.concat())
}

fn limit() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1 << 20), Just(0), 1..100usize, 1000..9000usize]
}

/// Cuts the bytes into chunks whose sizes repeat.
fn chunks(bytes: &[u8], sizes: &[usize]) -> Vec<Feed> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    let mut feed = Vec::new();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .map_or(rest.len(), |&size| size.min(rest.len()));
        let (chunk, after) = rest.split_at(size);
        feed.push(Feed::Bytes(chunk.to_vec()));
        rest = after;
    }
    feed
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        proptest::collection::vec(1..40usize, 1..10),
        proptest::collection::vec(1..5000usize, 1..5),
    ]
}

fn check_each(frames: &[Got]) -> Result<(), TestCaseError> {
    for frame in frames {
        prop_assert!(frame.length >= frame.all.len() as u64);
        let text = body(&frame.raw, frame.framing);
        let whole = frame.raw.len() as u64 == frame.length;
        if frame.framing != Framing::Stray && whole && !frame.incomplete {
            prop_assert!(json::is_valid(text), "{:?}", frame);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_byte_is_in_one_frame_whatever_the_chunks(
        stream in stream(), limit in limit(), sizes in sizes(),
    ) {
        let whole = decode(limit, &[Feed::Bytes(stream.clone())]);
        let joined: Vec<u8> = whole.iter().flat_map(|frame| frame.all.clone()).collect();
        prop_assert_eq!(&joined, &stream);
        prop_assert_eq!(whole.iter().map(|frame| frame.length).sum::<u64>(), stream.len() as u64);
        prop_assert!(whole.iter().all(|frame| !frame.lossy && frame.length > 0));
        check_each(&whole)?;
        prop_assert_eq!(decode(limit, &chunks(&stream, &sizes)), whole);
    }

    #[test]
    fn the_limit_does_not_move_the_ends_of_right_frames(
        pieces in proptest::collection::vec((json_text(), prop::bool::ANY), 0..10),
        limit in limit(),
    ) {
        let stream: String = pieces
            .iter()
            .filter(|(text, _)| json::is_valid(text.as_bytes()) && text != "17")
            .map(|(text, lines)| match lines {
                true => format!("{text}\n"),
                false => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
            })
            .collect();
        let feed = [Feed::Bytes(stream.into_bytes())];
        let ends = |frames: Vec<Got>| -> Vec<_> {
            frames.into_iter().map(|frame| (frame.length, frame.framing)).collect()
        };
        prop_assert_eq!(ends(decode(limit, &feed)), ends(decode(1 << 20, &feed)));
    }

    #[test]
    fn losses_at_any_place_leave_every_other_byte_in_one_frame(
        parts in proptest::collection::vec((stream(), 0..200u64), 1..4),
        limit in limit(),
        sizes in sizes(),
    ) {
        let feed = |split: bool| -> Vec<Feed> {
            parts
                .iter()
                .flat_map(|(bytes, lost)| {
                    let mut part =
                        if split { chunks(bytes, &sizes) } else { vec![Feed::Bytes(bytes.clone())] };
                    part.push(Feed::Lost(*lost));
                    part
                })
                .collect()
        };
        let whole = decode(limit, &feed(false));
        let joined: Vec<u8> = whole.iter().flat_map(|frame| frame.all.clone()).collect();
        let sent: Vec<u8> = parts.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        prop_assert_eq!(joined, sent);
        check_each(&whole)?;
        prop_assert_eq!(decode(limit, &feed(true)), whole);
    }
}
