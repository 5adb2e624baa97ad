//! Which exchanges are one session, and when that begins and ends.

use super::*;

#[test]
fn a_session_id_ties_exchanges_together_and_a_delete_ends_it() {
    let relay = Relay::start();
    let id = "mcp-session-id: 5f0c2a4491d34c589d550a2b6e1f7c3d\r\n";
    let first = relay.post("", INITIALIZE, (200, &format!("{JSON}{id}"), ANSWER));
    let stream = relay.open(2000, &format!("GET /mcp\r\n{id}"));
    stream.close(Up);
    stream.respond(200, EVENTS);
    let call = relay.post(id, CALL, (200, JSON, ANSWER));
    // Another client at the same time, whose id nobody saw the beginning of.
    let other = relay.post("mcp-session-id: another\r\n", CALL, (200, JSON, ANSWER));
    stream.send(Down, b"data: {\"method\":\"x\"}\n\n");
    let delete = relay.open(1000, &format!("DELETE /mcp\r\n{id}"));
    delete.close(Up);
    delete.respond(200, "");
    delete.close(Down);
    let delete = delete.finish(Finish::Complete);
    // Its stream is still open, and belongs to it.
    stream.send(Down, b": bye\n\n");
    let stream = stream.finish(Finish::ServerBroke);
    let again = relay.post(id, CALL, (404, "", ""));
    let read = relay.stop();
    assert_eq!(
        [first, call, stream, delete].map(|exchange| read.session_of(exchange)),
        [1; 4]
    );
    assert_eq!(
        [other, again].map(|exchange| read.session_of(exchange)),
        [2, 3]
    );
    assert_eq!(read.kinds(), [KeyKind::McpSession; 3]);
    assert_eq!(
        read.endings(),
        [
            (1, Ending::ClientClosed),
            (2, Ending::RelayStopped),
            (3, Ending::RelayStopped)
        ]
    );
    assert_eq!(
        read.story(stream),
        ["request", "response", "Event", "Event", "finished"]
    );
    let sessions = read.sessions();
    assert_eq!(
        sessions[0].key, sessions[2].key,
        "equal ids have equal fingerprints"
    );
    assert!(!read.holds("5f0c2a4491d34c"));
    assert!(read.holds("[REDACTED:mcp-session-id:"));
    assert!(!read.holds("another"));
}

#[test]
fn a_session_that_the_server_forgot_ends_and_asking_on_is_one_more() {
    let relay = Relay::start();
    let id = "mcp-session-id: s1\r\n";
    relay.post("", INITIALIZE, (200, id, ANSWER));
    relay.post(id, CALL, (404, "", ""));
    let on: Vec<u32> = (0..5)
        .map(|_| relay.post(id, CALL, (404, "", "")))
        .collect();
    let read = relay.stop();
    assert_eq!(read.endings()[0], (1, Ending::ServerForgot));
    assert!(on.iter().all(|&exchange| read.session_of(exchange) == 2));
}

#[test]
fn a_legacy_endpoint_is_a_session_as_long_as_its_stream() {
    for (uri, target) in [
        (
            "/message?sessionId=0a1b2c3d4e5f6789",
            "/message?sessionId=0a1b2c3d4e5f6789",
        ),
        (
            "http://127.0.0.1:7000/m/550e8400-e29b-41d4-a716-446655440000",
            "/m/550e8400-e29b-41d4-a716-446655440000",
        ),
    ] {
        let relay = Relay::start();
        let stream = relay.open(1000, "GET /sse\r\n");
        stream.close(Up);
        stream.respond(200, EVENTS);
        stream.send(
            Down,
            format!("event: endpoint\r\ndata: {uri}\r\n\r").as_bytes(),
        );
        stream.send(Down, b"\n");
        let post = relay.open(2000, &format!("POST {target}\r\n{JSON}"));
        post.send(Up, INITIALIZE.as_bytes());
        post.close(Up);
        post.respond(202, "");
        post.close(Down);
        let post = post.finish(Finish::Complete);
        stream.send(
            Down,
            format!("event: message\ndata: {ANSWER}\n\n").as_bytes(),
        );
        let stream = stream.finish(Finish::ClientGone);
        let other = relay.post("", CALL, (200, JSON, ANSWER));
        let read = relay.stop();
        assert_eq!(
            [stream, post, other].map(|exchange| read.session_of(exchange)),
            [1, 1, 2]
        );
        assert_eq!(read.kinds(), [KeyKind::Endpoint, KeyKind::Caller]);
        assert_eq!(read.endings()[0], (1, Ending::ClientClosed));
        assert_eq!(
            read.story(stream),
            ["request", "response", "Event", "Event", "finished"]
        );
        assert!(!read.holds("0a1b2c3d") && !read.holds("550e8400"));
        let event = &read.payloads(stream)[0];
        let marker = event.split("[REDACTED:mcp-session-id:").nth(1).unwrap();
        let marker = &marker[..8];
        let requests = read.metas().filter_map(|(record, meta)| match meta {
            Meta::Request(request) if record.envelope.exchange == post => Some(request.target),
            _ => None,
        });
        assert!(
            requests.last().unwrap().contains(marker),
            "equal ids have equal markers"
        );
    }
}

#[test]
fn what_a_legacy_stream_says_before_its_endpoint_decides_nothing() {
    let relay = Relay::start();
    let start = ": hello\n\nretry: 3000\n\n";
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    stream.respond(200, EVENTS);
    stream.send(Down, start.as_bytes());
    stream.send(Down, b"event: endpoint\ndata: /m?a=b\n\n");
    let post = relay.open(2000, "POST /m?a=b\r\n");
    post.send(Up, CALL.as_bytes());
    let post = post.finish(Finish::Complete);
    let stream = stream.finish(Finish::ServerBroke);
    // Where nothing else comes, or too much, they are recorded all the same.
    let silent = relay.open(1000, "GET /events\r\n");
    silent.close(Up);
    silent.respond(200, EVENTS);
    silent.send(Down, start.repeat(20).as_bytes());
    let silent = silent.finish(Finish::ClientGone);
    let read = relay.stop();
    assert_eq!(read.kinds(), [KeyKind::Endpoint, KeyKind::Caller]);
    assert_eq!(
        [stream, post, silent].map(|exchange| read.session_of(exchange)),
        [1, 1, 2]
    );
    assert!(read.payloads(stream).concat().starts_with(start));
    assert_eq!(read.frames(stream).len(), 3);
    assert_eq!(read.payloads(silent).concat(), start.repeat(20));
}

#[test]
fn a_request_may_be_told_before_what_tells_its_session() {
    let relay = Relay::start();
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    let begin = |head: &str, body: &str| {
        let open = relay.open(2000, &format!("POST {head}"));
        open.send(Up, body.as_bytes());
        open.close(Up);
        open
    };
    let legacy = begin("/m?a=b\r\n", INITIALIZE);
    stream.respond(200, EVENTS);
    stream.send(Down, b"event: endpoint\ndata: /m?a=b\n\n");
    legacy.respond(202, "");
    let first = begin("/mcp\r\n", INITIALIZE);
    let id = "mcp-session-id: s1\r\n";
    let named = begin(&format!("/mcp\r\n{id}"), CALL);
    first.respond(200, id);
    named.respond(200, JSON);
    // Where nothing tells it is recorded all the same, and soon.
    let silent = relay.open(1000, "GET /other\r\n");
    silent.close(Up);
    let other = begin("/x\r\n", CALL);
    let start = Instant::now();
    while relay.recorder.stats().sessions < 3 {
        assert!(start.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(5));
    }
    let all = [stream, legacy, first, named, other, silent];
    let all = all.map(|open| open.finish(Finish::Complete));
    let read = relay.stop();
    assert_eq!(
        all.map(|exchange| read.session_of(exchange)),
        [1, 1, 2, 2, 3, 3]
    );
    assert_eq!(
        read.story(all[3]),
        ["request", "Body", "response", "finished"]
    );
}

#[test]
fn without_ids_a_session_is_a_caller() {
    let relay = Relay::with(
        |_| {},
        |listener| listener.session_gap = Duration::from_millis(200),
    );
    let modern = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n";
    let one = relay.post(modern, CALL, (200, JSON, ANSWER));
    let two = relay.post(
        &format!("{modern}mcp-session-id: ignored\r\n"),
        CALL,
        (200, JSON, ANSWER),
    );
    let key = relay.post(
        &format!("{modern}authorization: Bearer tok\r\n"),
        CALL,
        (200, JSON, ANSWER),
    );
    let start = Instant::now();
    let ended = |stats: Stats| stats.sessions == 2 && stats.sessions_open == 0;
    while !ended(relay.recorder.stats()) {
        assert!(
            start.elapsed() < LIMIT,
            "idle sessions end though nothing comes"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let later = relay.post(modern, CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        [one, two, key, later].map(|exchange| read.session_of(exchange)),
        [1, 1, 2, 3]
    );
    assert_eq!(read.kinds(), [KeyKind::Caller; 3]);
    assert_eq!(read.sessions()[0].key, read.sessions()[2].key);
    assert_ne!(read.sessions()[0].key, read.sessions()[1].key);
    let idle = read
        .endings()
        .iter()
        .filter(|(_, ending)| *ending == Ending::Idle)
        .count();
    assert_eq!(idle, 2);
    assert!(!read.holds("tok\""));
}

#[test]
fn an_initialize_without_an_id_in_its_answer_begins_the_callers_session() {
    let relay = Relay::start();
    let before = relay.post("", CALL, (200, JSON, ANSWER));
    let begins = relay.post("", INITIALIZE, (200, JSON, ANSWER));
    let after = relay.post("", CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert_eq!(
        [before, begins, after].map(|exchange| read.session_of(exchange)),
        [1, 2, 2]
    );
    assert_eq!(read.kinds(), [KeyKind::Caller; 2]);
}
