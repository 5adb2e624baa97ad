//! Bodies: coded, cut into any chunks, or larger than what is kept.

use super::*;

#[test]
fn events_are_the_same_however_they_are_cut_and_coded() {
    let events = format!(": hello\n\nid: 1\ndata: {ANSWER}\n\ndata: {{\"a\":\r\ndata: 1}}\r\n\r\n");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut coded = Vec::new();
    for byte in events.as_bytes() {
        gzip.write_all(&[*byte]).unwrap();
        gzip.flush().unwrap();
        coded.push(std::mem::take(gzip.get_mut()));
    }
    coded.push(gzip.finish().unwrap());
    let plain: Vec<Vec<u8>> = events.bytes().map(|byte| vec![byte]).collect();
    for (coding, chunks) in [("", plain), ("content-encoding: gzip\r\n", coded)] {
        let relay = Relay::start();
        let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
        open.send(Up, CALL.as_bytes());
        open.close(Up);
        open.respond(200, &format!("{EVENTS}{coding}"));
        for chunk in &chunks {
            open.send(Down, chunk);
        }
        open.close(Down);
        let exchange = open.finish(Finish::Complete);
        let read = relay.stop();
        assert_eq!(read.frames(exchange).len(), 4, "{coding}");
        assert_eq!(read.payloads(exchange)[1..].concat(), events, "{coding}");
    }
}

#[test]
fn what_cannot_be_decoded_is_said_with_length_and_digest() {
    for (coding, body, reason) in [
        ("compress", &b"private words"[..], "unknown"),
        ("gzip", b"private words", "broken"),
    ] {
        let relay = Relay::start();
        let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
        open.send(Up, CALL.as_bytes());
        open.close(Up);
        open.respond(200, &format!("{JSON}content-encoding: {coding}\r\n"));
        open.send(Down, &body[..5]);
        open.send(Down, &body[5..]);
        open.close(Down);
        let exchange = open.finish(Finish::Complete);
        let head = relay.open(1000, "HEAD /mcp\r\n");
        head.close(Up);
        head.respond(200, &format!("content-encoding: {coding}\r\n"));
        head.close(Down);
        let head = head.finish(Finish::Complete);
        let read = relay.stop();
        assert_eq!(
            read.story(exchange),
            [
                "request",
                "Body",
                "response",
                "not_decoded",
                "Stray",
                "finished"
            ]
        );
        assert_eq!(read.story(head), ["request", "response", "finished"]);
        let envelope = &read.frames(exchange)[1].envelope;
        assert_eq!(envelope.length, body.len() as u64);
        assert!(envelope.flags.has(Flags::CUT) && envelope.digest.is_some());
        assert!(!read.holds("private"));
        assert!(
            read.metas()
                .any(|(_, meta)| matches!(meta, Meta::NotDecoded(not)
            if not.coding == coding && not.reason == reason))
        );
    }
}

#[test]
fn a_large_body_and_a_large_event_are_cut_and_still_told() {
    let relay = Relay::start();
    let secret = ["ghp", "0123456789abcdEFGHijklmnopqrSTUVwxyz"].join("_");
    let large = |start: &str| {
        format!(
            "{start}{}{secret}\"}}",
            "y".repeat((8 << 20) - start.len() - 18)
        )
    };
    let open = relay.open(1000, &format!("POST /mcp\r\n{JSON}"));
    let body = large("{\"id\":1,\"method\":\"x\",\"params\":\"");
    open.send(Up, body.as_bytes());
    open.close(Up);
    // Not faster than it is taken: this is about the size of a frame.
    std::thread::sleep(Duration::from_millis(300));
    open.respond(200, EVENTS);
    let event = format!("{}\n\n", large("data: {\"id\":1,\"result\":\""));
    open.send(Down, event.as_bytes());
    open.send(Down, b"data: 2\n\n");
    open.close(Down);
    let exchange = open.finish(Finish::Complete);
    let read = relay.stop();
    let frames = read.frames(exchange);
    let told: Vec<_> = frames
        .iter()
        .map(|r| (r.envelope.framing, r.envelope.length))
        .collect();
    let expected = [
        (Framing::Body, body.len() as u64),
        (Framing::Event, event.len() as u64),
        (Framing::Event, 9),
    ];
    assert_eq!(told, expected);
    for frame in &frames[..2] {
        assert!(frame.envelope.flags.has(Flags::CUT) && frame.envelope.digest.is_some());
    }
    assert!(
        !secret.as_bytes()[4..]
            .windows(8)
            .any(|part| read.holds(std::str::from_utf8(part).unwrap()))
    );
}
