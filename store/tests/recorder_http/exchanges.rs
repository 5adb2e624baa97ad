//! Exchanges: their heads, frames and ends, what of them was lost, and which file says what.

use super::*;

#[test]
fn an_exchange_is_heads_frames_and_an_end() {
    let relay = Relay::start();
    let exchange = relay.post("", CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        read.story(exchange),
        ["request", "Body", "response", "Body", "finished"]
    );
    assert_eq!(read.payloads(exchange), [CALL, ANSWER]);
    let sessions = read.sessions();
    assert_eq!(sessions.len(), 1);
    let open = &sessions[0];
    assert_eq!(
        (&*open.transport, open.server.as_deref()),
        ("http", Some("srv"))
    );
    assert_eq!(open.user_agent.as_deref(), Some("ua/1"));
    assert_eq!(open.listen.as_deref(), Some("127.0.0.1:7000"));
    assert!(!read.holds("hunter22"), "the URL's password");
    let requests: Vec<_> = read
        .metas()
        .filter_map(|(_, meta)| match meta {
            Meta::Request(request) => Some(request),
            _ => None,
        })
        .collect();
    assert_eq!(
        (&*requests[0].method, &*requests[0].target),
        ("POST", "/mcp")
    );
    assert_eq!(
        (requests[0].connection, &*requests[0].peer),
        (1000, "192.0.2.1:1000")
    );
    assert_eq!(requests[0].headers[0], ("host".into(), "x".into()));
    assert!(read.metas().any(|(record, meta)| {
        record.envelope.stream == Down
            && matches!(meta, Meta::Response(response) if response.status == 200)
    }));
    assert!(read.metas().any(|(_, meta)| matches!(meta, Meta::Finished(end)
        if end.finish == Finish::Complete
            && (end.request_bytes, end.response_bytes) == (CALL.len() as u64, ANSWER.len() as u64))));
    assert_eq!(read.endings(), [(1, Ending::RelayStopped)]);
    assert_eq!(read.stats.frames, [1, 1, 0]);
    assert_eq!(
        read.stats.bytes,
        [CALL.len() as u64, ANSWER.len() as u64, 0]
    );
    assert_eq!((read.stats.sessions, read.stats.sessions_open), (1, 1));
    assert!(read.stats.recording && read.stats.gaps == 0);
}

#[test]
fn the_heads_of_a_stream_are_told_before_it_ends() {
    let relay = Relay::start();
    let listen = relay.open(1000, "POST /mcp\r\nmcp-protocol-version: 2026-07-28\r\n");
    listen.send(Up, CALL.as_bytes());
    listen.close(Up);
    listen.respond(200, EVENTS);
    let event = format!("id: 1\ndata: {ANSWER}\n\n");
    listen.send(Down, event.as_bytes());
    let start = Instant::now();
    let live = Store::at(relay.folder.path());
    let told = || -> Option<usize> {
        let segment = Segment::open(live.segments().ok()?.first()?).ok()?;
        Some(segment.records().filter_map(Result::ok).count())
    };
    while told() != Some(5) {
        assert!(start.elapsed() < LIMIT, "{:?}", told());
        std::thread::sleep(Duration::from_millis(10));
    }
    listen.finish(Finish::ClientGone);
    let read = relay.stop();
    assert_eq!(read.payloads(1), [CALL, &event]);
}

#[test]
fn losses_are_told_and_their_exchanges_are_recorded_all_the_same() {
    let relay = Relay::with(
        // As slow as a disk can be: everything is sent before anything is taken.
        |_| std::thread::sleep(Duration::from_millis(500)),
        |_| {},
    );
    let body = format!(
        "{{\"id\":1,\"method\":\"x\",\"params\":\"{}\"}}",
        "y".repeat(60_000)
    );
    let open = relay.open(3000, &format!("POST /mcp\r\n{JSON}"));
    for _ in 0..400 {
        relay.post("", &body, (200, JSON, &body));
    }
    // Its head came through, and what follows is lost; of another the head is lost.
    open.send(Up, body.as_bytes());
    let lost = relay.open(4000, "GET /mcp\r\n");
    std::thread::sleep(Duration::from_secs(1));
    open.send(Up, b"{\"rest\":1}");
    open.close(Up);
    let first = open.finish(Finish::ClientGone);
    lost.respond(200, EVENTS);
    lost.send(Down, b"data: {}\n\n");
    let lost = lost.finish(Finish::ServerBroke);
    let read = relay.stop();
    let story = read.story(first);
    assert!(
        story.contains(&"Gap".to_owned()) && story.ends_with(&["finished".to_owned()]),
        "{story:?}"
    );
    let rest = read.frames(first)[0];
    assert!(rest.envelope.flags.has(Flags::LOSSY) && rest.payload.is_empty());
    assert_eq!(rest.envelope.length, body.len() as u64 + 10);
    let story = read.story(lost);
    assert_eq!(story, ["request", "Gap", "response", "Event", "finished"]);
    assert!(read.stats.gaps > 0 && read.stats.lost_bytes > 0);
    let finished = read
        .metas()
        .filter(|(_, meta)| matches!(meta, Meta::Finished(_)))
        .count();
    assert!(finished > 100, "{finished}");
}

#[test]
fn each_file_says_which_sessions_it_is_of() {
    let relay = Relay::start();
    let filler = format!("[\"{}\"]", "y".repeat(1 << 20));
    for _ in 0..70 {
        relay.post("mcp-session-id: one\r\n", CALL, (200, JSON, &filler));
        std::thread::sleep(Duration::from_millis(10));
    }
    let read = relay.stop();
    assert_eq!(read.files.len(), 2);
    let told = read
        .metas()
        .filter(|(_, meta)| matches!(meta, Meta::SessionOpen(_)))
        .count();
    assert_eq!(told, 2);
    let started: Vec<u64> = read
        .metas()
        .filter_map(|(_, meta)| match meta {
            Meta::SessionOpen(open) => Some(open.started / 1_000_000),
            _ => None,
        })
        .collect();
    assert!(started[0].abs_diff(started[1]) < 1000, "{started:?}");
}
