//! Properties of the event stream decoder: every byte is in one event, chunks do not matter,
//! and another implementation reads the same events.
//!
//! `eventsource-stream` differs where we follow the specification more closely, so the
//! streams here leave out: bytes that are no UTF-8, byte order marks (it panics at one), and a
//! `retry` with a plus sign (it takes one). It dispatches an event without data never, with empty data always, as we
//! say by `has_data`.

#![allow(clippy::unwrap_used)]

use agent_trace_wire::Budget;
use agent_trace_wire::frame::{Event, Framing};
use agent_trace_wire::sse::{Decoder, fields};
use eventsource_stream::Eventsource;
use futures_util::StreamExt;
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Got {
    raw: Vec<u8>,
    /// `raw` and what was passed on as overflow.
    all: Vec<u8>,
    length: u64,
    incomplete: bool,
    lossy: bool,
}

enum Feed<'a> {
    Bytes(&'a [u8]),
    Lost(u64),
}

fn decode<'a>(limit: usize, feed: impl IntoIterator<Item = Feed<'a>>) -> Vec<Got> {
    let budget = Budget::new(usize::MAX);
    let mut decoder = Decoder::new(limit, &budget);
    let mut frames = Vec::new();
    let mut overflow: Option<Vec<u8>> = None;
    let mut sink = |event: Event<'_>| match event {
        Event::Overflow { kept, more } => {
            assert!(overflow.is_none() || kept.is_empty());
            overflow.get_or_insert_with(|| kept.to_vec()).extend(more);
        }
        Event::Frame(frame) => {
            assert_eq!(frame.framing, Framing::Event);
            assert!(frame.raw.len() <= limit);
            let all = overflow.take().unwrap_or_else(|| frame.raw.to_vec());
            assert!(all.starts_with(frame.raw));
            frames.push(Got {
                raw: frame.raw.to_vec(),
                all,
                length: frame.length,
                incomplete: frame.incomplete,
                lossy: frame.lossy,
            });
        }
    };
    for piece in feed {
        match piece {
            Feed::Bytes(bytes) => decoder.push(bytes, &mut sink),
            Feed::Lost(lost) => decoder.skip(lost, &mut sink),
        }
        assert!(decoder.pending() <= limit);
    }
    decoder.finish(&mut sink);
    drop(decoder);
    assert_eq!(budget.used(), 0);
    frames
}

fn texts(stream: &str) -> Vec<String> {
    let frames = decode(usize::MAX, [Feed::Bytes(stream.as_bytes())]);
    let text = |frame: Got| String::from_utf8(frame.raw).unwrap();
    frames.into_iter().map(text).collect()
}

#[test]
fn events_end_with_their_blank_line() {
    for (stream, expected) in [
        ("data: 1\n\ndata: 2\n\n", vec!["data: 1\n\n", "data: 2\n\n"]),
        (
            "data: 1\r\n\r\ndata: 2\r\n\r\n",
            vec!["data: 1\r\n\r\n", "data: 2\r\n\r\n"],
        ),
        ("data: 1\r\rdata: 2\r\r", vec!["data: 1\r\r", "data: 2\r\r"]),
        ("\u{FEFF}data: 1\n\n", vec!["\u{FEFF}data: 1\n\n"]),
        ("\u{FEFF}\n\n: x\n\n", vec!["\u{FEFF}\n\n: x\n\n"]),
        ("\n\r\n\rdata: 1\n\n\n", vec!["\n\r\n\rdata: 1\n\n", "\n"]),
        (": ping\n\nid: 7\n\n", vec![": ping\n\n", "id: 7\n\n"]),
        (
            "data: 1\n\r\ndata: 2\n\rx",
            vec!["data: 1\n\r\n", "data: 2\n\r", "x"],
        ),
        (
            "data: 1\r\r\ndata: 2\n\n",
            vec!["data: 1\r\r", "\ndata: 2\n\n"],
        ),
        ("data", vec!["data"]),
        ("", vec![]),
    ] {
        assert_eq!(texts(stream), expected, "{stream:?}");
        let bytes = stream.as_bytes().chunks(1).map(Feed::Bytes);
        let split: Vec<_> = decode(usize::MAX, bytes)
            .into_iter()
            .map(|frame| frame.raw)
            .collect();
        assert_eq!(
            split,
            expected
                .iter()
                .map(|text| text.as_bytes())
                .collect::<Vec<_>>(),
            "{stream:?}"
        );
    }
}

#[test]
fn an_event_is_told_with_the_last_byte_of_its_blank_line() {
    for (stream, early) in [
        ("data: 1\n\n", true),
        ("data: 1\r\n\r\n", true),
        ("data: 1\r\r", true),
        // An LF may still follow.
        ("data: 1\r\n\r", false),
        ("data: 1\n\r", false),
    ] {
        let mut decoder = Decoder::new(99, &Budget::new(99));
        let mut told = 0;
        for byte in stream.as_bytes() {
            assert_eq!(told, 0, "{stream:?}");
            decoder.push(&[*byte], &mut |_| told += 1);
        }
        assert_eq!(told == 1, early, "{stream:?}");
        decoder.finish(&mut |event| {
            let Event::Frame(frame) = event else { panic!() };
            assert!(!frame.incomplete);
        });
    }
}

#[test]
fn an_event_that_is_not_over_is_incomplete() {
    for (stream, incomplete) in [
        ("data: 1\n", true),
        ("data: 1", true),
        (": x\r", true),
        ("\n\n", false),
    ] {
        let frames = decode(99, [Feed::Bytes(stream.as_bytes())]);
        assert_eq!(
            (frames.len(), frames[0].incomplete),
            (1, incomplete),
            "{stream:?}"
        );
    }
}

#[test]
fn a_loss_is_a_part_of_the_event_in_progress() {
    let frames = decode(
        99,
        [
            Feed::Lost(5),
            Feed::Bytes(b"rest\n\ndata: 1\n\nda"),
            Feed::Lost(7),
            Feed::Bytes(b"\n\ndata: 2\n\r"),
            Feed::Lost(1),
            Feed::Bytes(b"data: 3\n\n"),
        ],
    );
    let told: Vec<_> = frames
        .iter()
        .map(|f| (&f.raw[..], f.length, f.lossy))
        .collect();
    assert_eq!(
        told,
        [
            (&b"rest\n\n"[..], 6, true),
            (b"data: 1\n\n", 9, false),
            (b"da\n\n", 11, true),
            (b"data: 2\n\r", 9, false),
            (b"data: 3\n\n", 9, true),
        ]
    );
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![6 => Just("\n"), 3 => Just("\r\n"), 2 => Just("\r")]
}

fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        8 => Just("data"), 2 => Just("event"), 2 => Just("id"), 1 => Just("retry"), 2 => Just(""),
        1 => Just("other"), 1 => Just("dat"),
    ];
    let colon = prop_oneof![6 => Just(": "), 2 => Just(":"), 1 => Just(":  "), 1 => Just("")];
    let value = prop_oneof![
        4 => "[a-z{}: é€]{0,12}", 1 => Just(String::new()), 1 => "[0-9]{1,4}", 1 => Just("a\0b".to_owned()),
    ];
    prop_oneof![
        8 => (name, colon, value).prop_map(|(name, colon, value)| format!("{name}{colon}{value}")),
        5 => Just(String::new()),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((line(), line_end()), 0..30).prop_map(|lines| {
        let text: String = lines.into_iter().map(|(line, end)| line + end).collect();
        text.into_bytes()
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(b'\n'),
        Just(b'\r'),
        Just(b':'),
        Just(b'd'),
        Just(0xEF),
        Just(0xBB),
        Just(0xBF),
        any::<u8>(),
    ];
    let marked = stream().prop_map(|stream| [b"\xef\xbb\xbf", &stream[..]].concat());
    prop_oneof![
        3 => stream(),
        1 => marked,
        1 => proptest::collection::vec(byte, 0..60),
    ]
}

proptest! {
    #[test]
    fn every_byte_is_in_one_event_whatever_the_chunks(
        stream in bytes(),
        limit in prop_oneof![Just(usize::MAX), 0..20_usize],
        sizes in proptest::collection::vec(1..20_usize, 1..6),
    ) {
        let whole = decode(limit, [Feed::Bytes(&stream)]);
        let joined: Vec<u8> = whole.iter().flat_map(|frame| frame.all.clone()).collect();
        prop_assert_eq!(&joined, &stream);
        prop_assert!(whole.iter().all(|frame| !frame.lossy && frame.length == frame.all.len() as u64));
        for at in 0..stream.len() {
            let (one, two) = stream.split_at(at);
            prop_assert_eq!(&decode(limit, [Feed::Bytes(one), Feed::Bytes(two)]), &whole, "{}", at);
        }
        let (mut rest, mut feed) = (&stream[..], Vec::new());
        for &size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at(size.min(rest.len()));
            feed.push(Feed::Bytes(chunk));
            rest = after;
        }
        prop_assert_eq!(decode(limit, feed), whole);
    }

    #[test]
    fn losses_at_any_place_leave_every_other_byte_in_one_event(
        parts in proptest::collection::vec((bytes(), 0..50_u64), 1..4),
        limit in prop_oneof![Just(usize::MAX), 0..20_usize],
        size in 1..9_usize,
    ) {
        let feed = |size: usize| {
            parts.iter().flat_map(move |(bytes, lost)| {
                bytes.chunks(size).map(Feed::Bytes).chain([Feed::Lost(*lost)])
            })
        };
        let whole = decode(limit, feed(usize::MAX));
        let joined: Vec<u8> = whole.iter().flat_map(|frame| frame.all.clone()).collect();
        prop_assert_eq!(joined, parts.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>());
        prop_assert_eq!(decode(limit, feed(size)), whole);
    }

    #[test]
    fn another_implementation_reads_the_same_events(stream in stream()) {
        let ours: Vec<_> = decode(usize::MAX, [Feed::Bytes(&stream)])
            .iter()
            .filter(|frame| !frame.incomplete && fields(&frame.raw).has_data)
            .map(|frame| {
                let fields = fields(&frame.raw);
                let kind = fields.event.filter(|kind| !kind.is_empty()).unwrap_or(b"message");
                (kind.to_vec(), fields.data.to_vec())
            })
            .collect();
        // Its parser needs a byte after a CR to go on; a comment is none of our business.
        let fed = [&stream[..], b":"].concat();
        let source = futures_util::stream::iter([Ok::<_, std::io::Error>(fed)]).eventsource();
        let theirs: Vec<_> = futures_util::FutureExt::now_or_never(source.collect::<Vec<_>>())
            .unwrap()
            .into_iter()
            .map(|event| event.unwrap())
            .map(|event| (event.event.into_bytes(), event.data.into_bytes()))
            .collect();
        prop_assert_eq!(ours, theirs);
    }
}
