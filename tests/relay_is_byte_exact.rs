//! What one side writes, the other side reads, byte for byte, and the record is what was sent.
//!
//! Each test sends bytes both ways through a relay that does not redact, and then reads the
//! trace: all recorded frames of a direction are together the stream of that direction.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::key;
use agent_trace_store::trace::Session as Run;
use std::time::Duration;
use support::recorded::{ClientToServer, ServerToClient, Stderr};
use support::recorded::{assert_recorded, frames, records, steps};
use support::{ANSWER, Home, REQUEST, Server, assert_same};

/// Relays these bytes in both directions, and returns what was recorded of that.
#[track_caller]
fn relayed(to_client: impl AsRef<[u8]>, to_server: impl AsRef<[u8]>) -> (Home, Run) {
    let (to_client, to_server) = (to_client.as_ref(), to_server.as_ref());
    let server = Server::new()
        .reads(to_server.len())
        .writes(to_client)
        .reads_to_the_end();
    let home = Home::new();
    let ended = home.record().unredacted().talk(&server, to_server);
    assert_same(&server.input(), to_server, "what the server got");
    assert_same(&ended.out, to_client, "what the client got");
    assert_eq!((ended.code, &ended.err[..]), (0, &b""[..]));
    let run = home.only_run();
    assert_recorded(&run, ClientToServer, to_server);
    assert_recorded(&run, ServerToClient, to_client);
    (home, run)
}

/// The same when both sides send the same.
#[track_caller]
fn both_ways(bytes: impl AsRef<[u8]>) -> Run {
    let (_, run) = relayed(&bytes, &bytes);
    let flow = |stream| frames(&run, stream);
    assert_eq!(flow(ClientToServer), flow(ServerToClient));
    run
}

fn block(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    [
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        body,
    ]
    .concat()
}

fn text_result(text: &[u8]) -> Vec<u8> {
    let start = &br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""#[..];
    [start, text, b"\"}]}}\n"].concat()
}

#[test]
fn a_plain_exchange_passes_and_is_one_step() {
    let (_, run) = relayed(ANSWER, REQUEST);
    assert_eq!(steps(&run), ["tools/call t: ok"]);
    assert_eq!(frames(&run, ClientToServer), ["newline"]);
    assert_eq!(frames(&run, ServerToClient), ["newline"]);
}

#[test]
fn w10_banners_and_log_lines_pass_in_their_place_and_are_stray() {
    let out = format!("Server starting...\nlistening on stdio\n{ANSWER}[info] done\n");
    let (_, run) = relayed(&out, REQUEST);
    let expected = ["stray", "stray", "newline", "stray"];
    assert_eq!(frames(&run, ServerToClient), expected);
    assert_eq!(
        records(&run, ServerToClient)[1].payload,
        b"listening on stdio\n"
    );
    assert!(steps(&run).contains(&"tools/call t: ok".to_owned()));
}

#[test]
fn w11_a_broken_line_and_a_byte_order_mark_do_not_end_the_session() {
    let out = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\n\u{feff}{ANSWER}");
    let (_, run) = relayed(&out, format!("{{\"broken\n\u{feff}{REQUEST}"));
    assert_eq!(frames(&run, ServerToClient), ["stray", "newline"]);
    assert_eq!(frames(&run, ClientToServer), ["stray", "newline"]);
    assert!(steps(&run).contains(&"tools/call t: ok".to_owned()));
}

#[test]
fn w12_junk_is_answered_by_nobody() {
    let home = Home::new();
    let junk = "parse error: {\n";
    let server = Server::new().answers_each_line(junk);
    let input = format!("{}{}", REQUEST.repeat(25), "garbage\n".repeat(25));
    let ended = home.record().unredacted().talk(&server, &input);
    assert_same(&server.input(), input.as_bytes(), "what the server got");
    assert_same(
        &ended.out,
        junk.repeat(50).as_bytes(),
        "what the client got",
    );
    assert_eq!(ended.code, 0);
    assert_eq!(frames(&home.only_run(), ServerToClient), ["stray"; 50]);
}

#[test]
fn w13_either_framing_passes_in_either_direction_and_is_told() {
    let (line, body) = (ANSWER, ANSWER.trim_end());
    let run = both_ways([&block(body)[..], &block("{\"t\":\"é😀\"}")].concat());
    assert_eq!(frames(&run, ServerToClient), ["content-length"; 2]);

    let (_, run) = relayed(line, block(REQUEST.trim_end()));
    assert_eq!(frames(&run, ClientToServer), ["content-length"]);
    assert_eq!(frames(&run, ServerToClient), ["newline"]);
    assert_eq!(
        steps(&run),
        ["tools/call t: ok"],
        "paired across the framings"
    );

    let (_, run) = relayed(block(body), REQUEST);
    assert_eq!(frames(&run, ClientToServer), ["newline"]);
    assert_eq!(frames(&run, ServerToClient), ["content-length"]);
    assert_eq!(steps(&run), ["tools/call t: ok"]);

    // Both in one direction, in any order, and with other headers.
    let other = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let mixed = [line.as_bytes(), &block(body), line.as_bytes(), other].concat();
    let run = both_ways(mixed);
    let expected = ["newline", "content-length", "newline", "content-length"];
    assert_eq!(frames(&run, ServerToClient), expected);
}

#[test]
fn w14_an_absurd_content_length_is_an_incomplete_frame() {
    let absurd = |digits: &str| format!("Content-Length: {digits}\r\n\r\n");
    let out = format!("{}{ANSWER}", absurd("9999999999"));
    let input = format!("{}{REQUEST}", absurd("99999999999999999999"));
    let (_, run) = relayed(out, input);
    let expected = ["stray incomplete", "newline"];
    assert_eq!(frames(&run, ServerToClient), expected);
    assert_eq!(frames(&run, ClientToServer), expected);
    // A length that could be, and never comes.
    let run = both_ways("Content-Length: 5000\r\n\r\n{\"half\":");
    assert_eq!(frames(&run, ServerToClient), ["content-length incomplete"]);
}

#[test]
fn w15_messages_in_one_write_or_in_many_are_the_same_frames() {
    let three = ANSWER.repeat(3);
    let (_, run) = relayed(&three, REQUEST.repeat(3));
    assert_eq!(frames(&run, ServerToClient), ["newline"; 3]);
    assert_eq!(frames(&run, ClientToServer), ["newline"; 3]);

    let home = Home::new();
    let server = Server::new()
        .reads(REQUEST.len())
        .writes_in_pieces(ANSWER, 1, 0.001)
        .reads_to_the_end();
    let session = home.record().unredacted().start(&server);
    session.send_in_pieces(REQUEST, 1, Duration::from_millis(1));
    session.close_input();
    let ended = session.wait();
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_same(&server.input(), REQUEST.as_bytes(), "what the server got");
    let run = home.only_run();
    assert_eq!(steps(&run), ["tools/call t: ok"]);
    assert_recorded(&run, ServerToClient, ANSWER.as_bytes());
}

#[test]
fn w16_a_last_line_without_its_line_end_passes_and_is_a_frame() {
    let (_, run) = relayed(ANSWER.trim_end(), REQUEST.trim_end());
    assert_eq!(frames(&run, ServerToClient), ["newline"]);
    assert_eq!(frames(&run, ClientToServer), ["newline"]);
    assert_eq!(steps(&run), ["tools/call t: ok"]);
}

#[test]
fn w17_long_lines_pass_whole_and_are_recorded_whole_up_to_a_limit() {
    for size in [65_536, 65_537, 1_000_000, 4_000_000] {
        let out = text_result(&vec![b'y'; size - text_result(b"").len()]);
        assert_eq!(out.len(), size);
        let argument = "z".repeat(size);
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{{\"x\":\"{argument}\"}}}}}}\n"
        );
        let (_, run) = relayed(&out, &input);
        assert_eq!(frames(&run, ServerToClient), ["newline"], "{size}");
        assert_eq!(steps(&run), ["tools/call t: ok"], "{size}");
    }
}

#[test]
fn w17_of_a_line_beyond_the_limit_the_length_and_a_digest_are_kept() {
    let home = Home::new();
    // Longer than what is kept of a frame, and within what the queue takes.
    let out = text_result(&vec![b'y'; 12 << 20]);
    let server = Server::that_writes(&out);
    let ended = home.record().unredacted().talk(&server, "");
    assert_same(&ended.out, &out, "what the client got");
    let run = home.only_run();
    assert_eq!(frames(&run, ServerToClient), ["newline cut"]);
    let record = records(&run, ServerToClient)[0];
    assert_eq!(record.envelope.length, out.len() as u64);
    assert!(record.payload.len() > 7 << 20 && out.starts_with(&record.payload));
    let mut hasher = key::load(&home.store()).unwrap().hasher();
    let digest = hasher.update(&out).finalize();
    assert_eq!(record.envelope.digest.as_ref(), Some(digest.as_bytes()));
}

#[test]
fn w17_a_line_longer_than_16_mib_passes_whole_and_what_is_missing_is_said() {
    let home = Home::new();
    let out = text_result(&vec![b'y'; (16 << 20) + 1]);
    let server = Server::that_writes(&out);
    let ended = home.record().unredacted().talk(&server, "");
    assert_same(&ended.out, &out, "what the client got");
    let run = home.only_run();
    // On a loaded machine the recorder may fall behind, and then it says so instead.
    let flaws = &frames(&run, ServerToClient)[0];
    assert!(flaws.contains("cut") || flaws.contains("lossy"), "{flaws}");
    assert_eq!(flaws.contains("lossy"), !run.gaps.is_empty());
    let total: u64 = records(&run, ServerToClient)
        .iter()
        .map(|record| record.envelope.length)
        .sum();
    assert_eq!(total, out.len() as u64, "the true length is kept");
}

#[test]
fn w20_a_character_split_over_two_writes_is_whole_in_the_trace() {
    let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"😀é\"}}\n";
    let within = message.find('😀').unwrap() + 2;
    let home = Home::new();
    let server = Server::new()
        .reads(message.len())
        .writes_in_pieces(message, within, 0.15)
        .reads_to_the_end();
    let session = home.record().unredacted().start(&server);
    session.send_in_pieces(message, within, Duration::from_millis(150));
    session.close_input();
    let ended = session.wait();
    assert_same(&ended.out, message.as_bytes(), "what the client got");
    assert_same(&server.input(), message.as_bytes(), "what the server got");
    let run = home.only_run();
    assert_recorded(&run, ClientToServer, message.as_bytes());
    assert_eq!(frames(&run, ServerToClient), ["newline"]);
    assert!(home.ok(["show", "latest", "--stderr"]).contains("😀é"));
}

#[test]
fn w21_bytes_that_are_no_utf8_and_lone_surrogates_pass_and_are_kept() {
    let out = [
        text_result(b"\xff\xfe"),
        text_result(br"\ud800"),
        b"\x00\x00\n".to_vec(),
    ]
    .concat();
    let input = [REQUEST.trim_end().as_bytes(), b" \xc4\xe3\xba\xc3\n"].concat();
    let (home, run) = relayed(&out, &input);
    assert_eq!(frames(&run, ServerToClient).len(), 3);
    let shown = home.ok(["show", "latest", "-s", "0"]);
    assert!(shown.contains("\\xc4\\xe3\\xba\\xc3"), "{shown}");
    assert!(shown.contains("\\ud800"), "{shown}");
    assert!(shown.contains("\\u{0}\\u{0}"), "{shown}");
}

#[test]
fn w22_numbers_keep_every_digit() {
    let out = r#"{"jsonrpc":"2.0","id":1,"result":{"n":9007199254740993,"m":18446744073709551615,"i":-9223372036854775808,"e":1e400,"f":1.0,"z":-0.0,"d":0.1000000000000000055}}"#;
    let (home, _) = relayed(format!("{out}\n"), REQUEST);
    let printed = home.ok(["show", "latest", "--format", "json"]);
    assert!(printed.contains(out), "{printed}");
}

#[test]
fn w23_ids_that_look_alike_pass_unchanged() {
    let long = format!("\"{}\"", "i".repeat(10_000));
    let ids = [
        "1",
        "\"1\"",
        "\"01\"",
        "1.0",
        "null",
        "9007199254740993",
        &long,
        "[1]",
        "{}",
    ];
    let ask = |id: &&str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
    let answer = |id: &&str| format!("{{\"id\":{id},\"result\":{{}},\"jsonrpc\":\"2.0\"}}\n");
    let (asked, answered): (String, String) = (
        ids.iter().map(ask).collect(),
        ids.iter().rev().map(answer).collect(),
    );
    let (_, run) = relayed(answered, asked);
    assert_eq!(steps(&run), ["ping: ok"; 9]);
}

#[test]
fn w25_batches_pass_and_each_element_is_a_step() {
    let input = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]
[]
"#;
    let out = r#"[{"id":2,"result":{}},{"id":1,"result":{"isError":true}},{"id":3,"result":1}]
"#;
    let (_, run) = relayed(out, input);
    let mut steps = steps(&run);
    steps.sort();
    let expected = [
        "answer",
        "notifications/x",
        "other",
        "ping: ok",
        "tools/call t: tool_error",
    ];
    assert_eq!(steps, expected);
}

#[test]
fn w26_what_a_rebuilt_message_would_lose_passes() {
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"x-new-kind","v":[null]}],"structuredContent":{"a":null},"_meta":{"com.example/k":null}},"x-top":true}"#,
        r#"{"result":{"z":1,"a":2,"10":3,"2":4},"id":1,"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"k":1,"k":2}}"#,
        r#"{ "jsonrpc" : "2.0",	"id" : 1 , "result" : { "content" : [ ] } }"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"t":"\u00e9 \/ \u2028 \ud83d\ude00 \u0000"}}"#,
        r#"{"jsonrpc":"2.0","\u0069d":1,"result":{}}"#,
        r#""just a text""#,
        "42",
        "null",
        "{}",
    ];
    let run = both_ways(messages.join("\n") + "\n");
    assert_eq!(frames(&run, ServerToClient).len(), messages.len());
}

#[test]
fn line_ends_blanks_and_empty_lines_pass() {
    let crlf = ANSWER.replace('\n', "\r\n");
    let run = both_ways(format!("\n\r\n  {crlf}\t{ANSWER}\n\n"));
    assert_eq!(
        frames(&run, ServerToClient),
        ["newline", "newline", "stray"]
    );
    let nested = format!("{}{}\n", "[".repeat(2000), "]".repeat(2000));
    both_ways(nested);
    both_ways("");
    both_ways("\n");
    both_ways("\r");
}

#[test]
fn standard_error_passes_and_is_recorded_by_lines() {
    let home = Home::new();
    let said = b"warn: \xff\xfe\nno line end";
    let server = Server::new()
        .complains(said)
        .writes(ANSWER)
        .reads_to_the_end();
    let ended = home.record().unredacted().talk(&server, REQUEST);
    assert_same(&ended.err, said, "standard error");
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    let run = home.only_run();
    assert_recorded(&run, Stderr, said);
    assert_eq!(records(&run, Stderr).len(), 2);
}

/// Pieces of everything that a stream is made of, in an order drawn from a seed.
#[test]
fn any_bytes_pass_in_any_order() {
    let pieces: [&[u8]; 18] = [
        REQUEST.as_bytes(),
        ANSWER.as_bytes(),
        b"Content-Length: 2\r\n\r\n{}",
        b"Content-Length: 99999999999999\r\n\r\n",
        b"Content-Length: 7\n\n",
        b"content-length",
        b"log line\n",
        b"{\"a\":",
        b"[[[[",
        b"\"}]]\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"\xff\xfe\x00",
        b"\r\n",
        b"\n",
        b" \t",
        b"\xf5\xa7\xff\xc1",
        b"\x1b[31m",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % most as u64).unwrap()
    };
    for round in 0..12 {
        let mut stream = || -> Vec<u8> {
            let drawn = (0..40).map(|_| pieces[draw(pieces.len())]);
            drawn.collect::<Vec<_>>().concat()
        };
        let (out, input) = (stream(), stream());
        eprintln!(
            "round {round}: {} and {}",
            out.escape_ascii(),
            input.escape_ascii()
        );
        relayed(out, input);
    }
}
