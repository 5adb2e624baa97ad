//! What known peers send. Names that begin with a case number belong to a reported failure.

use super::{Feed, Got, decode, decode_bytes};
use agent_trace_wire::frame::Framing::{self, ContentLength, Newline, Stray};
use agent_trace_wire::stdio::body;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Framing and bytes of the frames, whose flags must all be clear.
fn clean(frames: &[Got]) -> Vec<(Framing, &str)> {
    for frame in frames {
        assert!(!frame.incomplete && !frame.lossy, "{frame:?}");
    }
    plain(frames)
}

fn plain(frames: &[Got]) -> Vec<(Framing, &str)> {
    frames
        .iter()
        .map(|frame| {
            (
                frame.framing,
                std::str::from_utf8(&frame.all).unwrap_or("not UTF-8"),
            )
        })
        .collect()
}

/// A Content-Length frame.
fn block(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

fn assert_frames(stream: &str, expected: &[(Framing, &str)]) {
    assert_eq!(clean(&decode_bytes(stream)), expected, "{stream:?}");
}

#[test]
fn a_line_of_json_is_a_message() {
    assert_frames(
        "{\"a\":1}\n[]\r\n  {\"b\":2} \n",
        &[
            (Newline, "{\"a\":1}\n"),
            (Newline, "[]\r\n"),
            (Newline, "  {\"b\":2} \n"),
        ],
    );
}

#[test]
fn w10_banners_and_logs_are_stray() {
    let stream = "Server running on stdio\nINFO: ready\n{\"a\":1}\n[info] x\n{oops}\n123\n\"x\"\n";
    assert_frames(
        stream,
        &[
            (Stray, "Server running on stdio\n"),
            (Stray, "INFO: ready\n"),
            (Newline, "{\"a\":1}\n"),
            (Stray, "[info] x\n"),
            (Stray, "{oops}\n"),
            (Stray, "123\n"),
            (Stray, "\"x\"\n"),
        ],
    );
}

#[test]
fn w11_a_bad_line_and_a_byte_order_mark_cost_nothing_else() {
    let stream = format!("{{\"a\":\n\u{FEFF}{PING}\n\r\n\u{FEFF}\r\n{PING}\r\n");
    let frames = decode_bytes(&stream);
    let second = format!("\u{FEFF}{PING}\n");
    let third = format!("\r\n\u{FEFF}\r\n{PING}\r\n");
    assert_eq!(
        clean(&frames),
        [
            (Stray, "{\"a\":\n"),
            (Newline, second.as_str()),
            (Newline, third.as_str())
        ]
    );
    assert_eq!(body(&frames[2].raw, Newline), PING.as_bytes());
}

#[test]
fn w13_framings_mix_in_one_stream() {
    let first = block(PING);
    let second = block("{\"é\":\"€\"}");
    assert_frames(
        &format!("{first}{second}\r\n{PING}\n{second}"),
        &[
            (ContentLength, &first),
            (ContentLength, &second),
            (Newline, &format!("\r\n{PING}\n")),
            (ContentLength, &second),
        ],
    );
}

#[test]
fn w13_loose_header_blocks_are_taken() {
    for header in [
        "content-length: 7\n\n",
        "CONTENT-LENGTH:7\r\n\r\n",
        "Content-Length \t:  7 \r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 7\r\n\r\n",
        "Content-Length: 7\r\nContent-Type: x\nX-Other: y\r\n\n",
        "Content-Length: 7\r\nContent-Length: 7\r\n\r\n",
        "\r\n\u{FEFF}Content-Length: 7\r\n\r\n",
    ] {
        let frame = format!("{header}{{\"a\":1}}");
        let frames = decode_bytes(frame.repeat(2));
        assert_eq!(clean(&frames), [(ContentLength, frame.as_str()); 2]);
        assert_eq!(body(&frames[0].raw, ContentLength), b"{\"a\":1}");
    }
}

#[test]
fn w13_a_length_that_counts_the_line_end_is_right_too() {
    let frame = "Content-Length: 8\r\n\r\n{\"a\":1}\n";
    assert_frames(&frame.repeat(2), &[(ContentLength, frame); 2]);
}

#[test]
fn w13_what_begins_like_a_header_need_not_be_one() {
    for line in [
        "Content is king\n",
        "Connected\n",
        "c\n",
        "Content-\n",
        "content-length 5\n",
    ] {
        let json = format!("{PING}\n");
        assert_frames(&format!("{line}{json}"), &[(Stray, line), (Newline, &json)]);
    }
}

#[test]
fn w13_a_header_without_a_blank_line_is_stray() {
    let json = format!("{PING}\n");
    assert_frames(
        &format!("\nContent-Length: 40\r\nX: y\r\n{json}{json}"),
        &[
            (Stray, "\nContent-Length: 40\r\n"),
            (Stray, "X: y\r\n"),
            (Newline, &json),
            (Newline, &json),
        ],
    );
    // The message after it may be larger than a header block may be.
    let large = format!("[\"{}\"]\n", "x".repeat(20_000));
    assert_frames(
        &format!("Content-Length: 40\r\n{large}"),
        &[(Stray, "Content-Length: 40\r\n"), (Newline, &large)],
    );
    // Nor does a line of text end up in the block, or the blank line of another kind of block.
    assert_frames(
        "Content-Length: 40\nnot a header\nContent-Type: x\n\n{}\n",
        &[
            (Stray, "Content-Length: 40\n"),
            (Stray, "not a header\n"),
            (Stray, "Content-Type: x\n"),
            (Newline, "\n{}\n"),
        ],
    );
}

#[test]
fn w13_header_lines_without_end_are_stray() {
    let json = format!("{PING}\n");
    for endless in [
        "Content-Length: 5\n".repeat(1000),
        format!("C{}\n", "x".repeat(20_000)),
    ] {
        let frames = decode_bytes(format!("{endless}{json}"));
        let (last, others) = frames.split_last().expect("frames");
        assert_eq!(
            (last.framing, last.all.as_slice()),
            (Newline, json.as_bytes())
        );
        assert!(others.iter().all(|frame| frame.framing == Stray));
    }
}

#[test]
fn w14_an_absurd_length_is_not_believed() {
    for value in [
        "9999999999",
        "99999999999999999999999",
        "-1",
        "x",
        "",
        "7\r\nContent-Length: 8",
    ] {
        let header = format!("Content-Length: {value}\r\n\r\n");
        let json = format!("{PING}\n");
        let frames = decode_bytes(format!("{header}{json}"));
        assert_eq!(
            plain(&frames),
            [(Stray, header.as_str()), (Newline, json.as_str())]
        );
        assert!(frames[0].incomplete && !frames[1].incomplete);
    }
}

#[test]
fn w14_a_stream_that_ends_inside_a_frame_says_so() {
    for (stream, framing) in [
        ("Content-Length: 9999999999", Stray),
        ("Content-Length: 9999999999\r\n", Stray),
        ("Content-Length: 9\r\nX: y", Stray),
        ("Content-Length: 99\r\n\r\n", ContentLength),
        ("Content-Length: 99\r\n\r\n{\"a\":", ContentLength),
        ("Content-Length: 99\r\n\r\nabc", Stray),
        ("{\"a\":1", Stray),
    ] {
        let frames = decode_bytes(stream);
        assert_eq!(plain(&frames), [(framing, stream)]);
        assert!(frames[0].incomplete, "{stream:?}");
    }
}

#[test]
fn w14_a_length_is_never_allocated() {
    let budget = agent_trace_wire::Budget::new(1 << 20);
    let mut decoder = agent_trace_wire::stdio::Decoder::new(1 << 20, &budget);
    decoder.push(b"Content-Length: 1073741824\r\n\r\n{", &mut |_| {});
    assert!(decoder.pending() < 100);
}

#[test]
fn w15_messages_in_one_write_or_byte_by_byte_are_the_same() {
    let lines: Vec<_> = ["initialize", "initialized", "tools/list"]
        .map(|method| format!("{{\"method\":\"{method}\"}}\n"))
        .into();
    let expected: Vec<_> = lines.iter().map(|line| (Newline, line.as_str())).collect();
    assert_frames(&lines.concat(), &expected);
    let bytes: Vec<_> = lines
        .concat()
        .bytes()
        .map(|byte| Feed::Bytes(vec![byte]))
        .collect();
    assert_eq!(clean(&decode(1 << 20, &bytes)), expected);
}

#[test]
fn w16_a_last_message_without_line_end_is_a_message() {
    assert_frames(PING, &[(Newline, PING)]);
    assert_frames("bye", &[(Stray, "bye")]);
    assert_frames("{}\n\r\n ", &[(Newline, "{}\n"), (Stray, "\r\n ")]);
    assert_frames("{}\n\u{FEFF}", &[(Newline, "{}\n"), (Stray, "\u{FEFF}")]);
}

#[test]
fn w17_a_long_line_is_cut_in_the_copy_and_says_so() {
    for (start, framing) in [("{\"a\":\"", Newline), ("  [\"", Newline), ("text ", Stray)] {
        let line = format!("{start}{}\"}}\n", "x".repeat(70_000));
        let stream = format!("{line}{PING}\n");
        for size in [1 << 20, 4096, 1000] {
            let feed: Vec<_> = stream
                .as_bytes()
                .chunks(size)
                .map(|chunk| Feed::Bytes(chunk.to_vec()))
                .collect();
            let frames = decode(65_536, &feed);
            assert_eq!(frames.len(), 2);
            assert_eq!(
                (frames[0].framing, frames[0].length),
                (framing, line.len() as u64)
            );
            assert_eq!(frames[0].raw, line.as_bytes()[..65_536]);
            assert_eq!(frames[0].all, line.as_bytes());
            assert_eq!(clean(&frames)[1].0, Newline);
        }
    }
}

#[test]
fn w17_a_large_body_is_cut_in_the_copy_and_says_so() {
    let frame = block(&format!("{{\"a\":\"{}\"}}", "x".repeat(70_000)));
    let frames = decode(1000, &[Feed::Bytes(frame.repeat(2).into_bytes())]);
    assert_eq!(frames.len(), 2);
    assert_eq!(clean(&frames), [(ContentLength, frame.as_str()); 2]);
    assert_eq!(frames[1].raw, frame.as_bytes()[..1000]);
}

#[test]
fn w20_characters_split_between_chunks_are_whole() {
    let line = "{\"text\":\"😀é\"}\n";
    let stream = format!("{line}{}", block(line));
    for at in 0..stream.len() {
        let (left, right) = stream.as_bytes().split_at(at);
        let frames = decode(
            1 << 20,
            &[Feed::Bytes(left.to_vec()), Feed::Bytes(right.to_vec())],
        );
        assert_eq!(
            clean(&frames),
            [(Newline, line), (ContentLength, block(line).as_str())]
        );
    }
}

#[test]
fn w21_what_is_no_utf8_is_kept_as_it_is() {
    let line = b"{\"text\":\"\xC4\xE3\xFF\xFE \\ud800\"}\n";
    let frames = decode_bytes([&b"\xFF\xFE\n"[..], line].concat());
    assert_eq!(
        (frames[0].framing, &frames[0].raw[..]),
        (Stray, &b"\xFF\xFE\n"[..])
    );
    assert_eq!(
        (frames[1].framing, &frames[1].raw[..]),
        (Newline, &line[..])
    );
}

#[test]
fn w22_numbers_of_any_size_make_a_message() {
    let line = "{\"id\":9007199254740993,\"a\":[18446744073709551615,1e400,1.0,-0.0]}\n";
    assert_frames(line, &[(Newline, line)]);
}

#[test]
fn w23_ids_of_any_kind_make_a_message() {
    let long = format!("\"{}\"", "i".repeat(10_000));
    for id in [
        "1",
        "\"1\"",
        "\"01\"",
        "1.0",
        "null",
        "9007199254740993",
        &long,
    ] {
        let line = format!("{{\"id\":{id},\"method\":\"ping\"}}\n");
        assert_frames(&line, &[(Newline, &line)]);
    }
}

#[test]
fn w25_a_batch_is_one_frame() {
    let batch = format!("[{PING},{PING}]");
    let line = format!("{batch}\n");
    let framed = block(&batch);
    let stream = format!("{line}[]\n{framed}");
    assert_frames(
        &stream,
        &[
            (Newline, &line),
            (Newline, "[]\n"),
            (ContentLength, &framed),
        ],
    );
}

#[test]
fn a_length_in_characters_costs_only_its_own_message() {
    let text = "{\"text\":\"é€😀\"}";
    let wrong = format!("Content-Length: {}\r\n\r\n{text}", text.chars().count());
    let right = block(PING);
    let frames = decode_bytes(format!("{wrong}{right}{wrong}{wrong}{right}"));
    let good: Vec<_> = frames
        .iter()
        .filter(|frame| frame.framing == ContentLength)
        .collect();
    assert_eq!(good.len(), 2, "{frames:?}");
    assert!(
        good.iter()
            .all(|frame| frame.all == right.as_bytes() && !frame.incomplete)
    );
    assert!(frames[0].incomplete && frames[0].framing == Stray);
}

#[test]
fn a_length_that_is_too_large_costs_little() {
    let wrong = format!("Content-Length: {}\r\n\r\n{PING}", PING.len() + 1);
    let frames = decode_bytes(wrong.repeat(4));
    let messages = frames.iter().filter(|frame| {
        frame.framing != Stray && body(&frame.raw, frame.framing) == PING.as_bytes()
    });
    assert!(messages.count() >= 2, "{frames:?}");
}

#[test]
fn a_body_of_nothing_is_no_message() {
    let stream = b"Content-Length: 0\r\n\r\n{}\n".to_vec();
    assert_eq!(decode(10, &[Feed::Bytes(stream.clone())])[0].framing, Stray);
    let frames = decode_bytes(stream);
    assert_eq!(
        plain(&frames),
        [(Stray, "Content-Length: 0\r\n\r\n"), (Newline, "{}\n")]
    );
    assert!(frames[0].incomplete);
}

#[test]
fn a_stray_line_ends_before_a_header_in_it() {
    let framed = block("{}");
    for text in ["}}", "\"}}", "Starting… ", "Cannot start: ", "café\t"] {
        assert_frames(
            &format!("{text}{framed}"),
            &[(Stray, text), (ContentLength, &framed)],
        );
    }
    assert_frames(
        "{}Content-Length: 2\r\n\r\n{}",
        &[(Newline, "{}"), (ContentLength, &framed)],
    );
}

#[test]
fn text_in_json_is_never_cut() {
    for line in [
        "{\"text\":\"Content-Length: 5\\r\\n\\r\\n\"}\n",
        "[\"}Content-Length: 5\"]\n",
        "{'text': '}}Content-Length: 5'}\n",
    ] {
        let frames = decode_bytes(line);
        assert_eq!(clean(&frames).len(), 1, "{line}");
    }
}

#[test]
fn much_padding_is_a_frame_of_its_own() {
    let frames = decode_bytes(format!("{}{{}}\n", "\r\n".repeat(4096)));
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].framing, frames[0].length), (Stray, 4096));
    assert_eq!((frames[1].framing, frames[1].length), (Newline, 4099));
}

fn with_loss(before: &str, lost: u64, after: &str) -> Vec<Got> {
    let feed = [before, after].map(|text| Feed::Bytes(text.as_bytes().to_vec()));
    let [before, after] = feed;
    decode(1 << 20, &[before, Feed::Lost(lost), after])
}

#[test]
fn a_loss_in_a_line_marks_it_and_it_ends_at_its_line_end() {
    let frames = with_loss("{}\n{\"a\":", 10, "b}\n{}\n");
    assert_eq!(
        plain(&frames),
        [
            (Newline, "{}\n"),
            (Newline, "{\"a\":b}\n"),
            (Newline, "{}\n")
        ]
    );
    assert_eq!(frames[1].length, 18);
    assert_eq!(
        frames.iter().map(|frame| frame.lossy).collect::<Vec<_>>(),
        [false, true, false]
    );
}

#[test]
fn a_loss_in_a_body_counts_toward_its_length() {
    let header = "Content-Length: 20\r\n\r\n";
    let frames = with_loss(&format!("{header}{{\"a\""), 10, ":b234}{}\n");
    assert_eq!(frames.len(), 2);
    assert_eq!((frames[0].framing, frames[0].lossy), (ContentLength, true));
    assert_eq!(frames[0].length, header.len() as u64 + 20);
    assert_eq!((frames[1].framing, frames[1].lossy), (Newline, false));

    // Beyond the body's end the next frame's beginning is lost.
    let frames = with_loss(&format!("{header}{{\"a\""), 30, "}\n{}\n");
    assert_eq!(plain(&frames)[1..], [(Stray, "}\n"), (Newline, "{}\n")]);
    assert_eq!(
        frames.iter().map(|frame| frame.lossy).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(frames[0].length, header.len() as u64 + 20);
}

#[test]
fn a_loss_between_messages_marks_the_next_frame() {
    for (after, framing) in [("{}\n", Newline), ("\"x\"}}\n", Stray)] {
        let frames = with_loss("{}\n\n", 1000, after);
        assert_eq!((frames[1].framing, frames[1].lossy), (framing, true));
        assert_eq!(frames[1].length, 1 + after.len() as u64);
    }
}

#[test]
fn no_header_is_read_across_a_loss() {
    for (before, after) in [
        ("Content-Le", "ngth: 2\r\n"),
        ("text Content-Le", "ngth: 2\r\n"),
        ("Content-Length: 2\r\n", "\r\n"),
    ] {
        let frames = with_loss(before, 5, &format!("{after}{{}}\n"));
        assert_eq!(frames.len(), 2, "{before:?}");
        assert_eq!((frames[0].framing, frames[0].lossy), (Stray, true));
        assert_eq!((frames[1].framing, frames[1].lossy), (Newline, false));
    }
}

#[test]
fn a_loss_of_any_size_is_survived() {
    let frames = decode(
        8,
        &[
            Feed::Bytes(b"{".to_vec()),
            Feed::Lost(u64::MAX),
            Feed::Lost(u64::MAX),
            Feed::Bytes(b"0123456789}\n".to_vec()),
            Feed::Lost(7),
        ],
    );
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].length, u64::MAX);
}
