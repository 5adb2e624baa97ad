//! What must not reach the disk.

use super::*;

#[test]
fn no_credential_reaches_the_disk() {
    let relay = Relay::start();
    let secrets = [
        "authorization: Bearer s3cr3t-abcdefgh\r\n",
        "cookie: sid=s3cr3t-ijklmnop\r\n",
        "x-api-key: s3cr3t-qrstuvwx\r\n",
        "proxy-authorization: Basic s3cr3tyz\r\n",
        "mcp-session-id: s3cr3t-session\r\n",
        "referer: http://x/m?sessionId=s3cr3t-referer\r\n",
    ];
    let open = relay.open(
        1000,
        &format!(
            "POST /mcp?session_id=s3cr3t-query&api_key=s3cr3t-key-1\r\n{}",
            secrets.concat()
        ),
    );
    open.send(
        Up,
        br#"{"id":1,"method":"x","params":{"password":"s3cr3t-body"}}"#,
    );
    open.close(Up);
    open.respond(
        200,
        &format!(
            "{EVENTS}set-cookie: a=s3cr3t-cookie; Path=/\r\nmcp-session-id: s3cr3t-session\r\n"
        ),
    );
    open.send(
        Down,
        b"event: endpoint\ndata: /m?sessionId=s3cr3t-endpoint\n\n",
    );
    open.send(Down, b"data: {\"password\":\ndata: \"s3cr3t-lines\"}\n\n");
    open.send(Down, b"data: {\"password\":\"s3cr3t-line\"}\n\n");
    let tap = &relay.tap;
    tap.trailers(
        open.channel(Down),
        tap.now(),
        b"x-auth-token: s3cr3t-trailer\r\n",
    );
    tap.altered(
        open.channel(Down),
        tap.now(),
        b"http://y/m?sessionId=s3cr3t-from",
        b"/m?sessionId=s3cr3t-to",
    );
    open.send(Down, b"data: last\n\n");
    open.close(Down);
    let exchange = open.finish(Finish::Complete);
    let read = relay.stop();
    for file in &read.files {
        let found = memchr::memmem::find(file, b"s3cr3t");
        let around = found.map(|at| String::from_utf8_lossy(&file[at.saturating_sub(60)..at + 30]));
        assert_eq!(around, None);
    }
    let frames = read.frames(exchange);
    for frame in &frames {
        for span in &frame.envelope.spans {
            let marker = &frame.payload[span.at as usize..][..span.length as usize];
            assert!(marker.starts_with(b"[REDACTED:") && marker.ends_with(b"]"));
        }
    }
    let altered: Vec<bool> = frames
        .iter()
        .map(|f| f.envelope.flags.has(Flags::ALTERED))
        .collect();
    assert_eq!(altered, [false, false, false, false, true]);
}

#[test]
fn without_redaction_the_id_in_an_endpoint_is_hidden_all_the_same() {
    let relay = Relay::with(|options| options.redact = false, |_| {});
    let stream = relay.open(1000, "GET /sse\r\n");
    stream.close(Up);
    stream.respond(200, EVENTS);
    stream.send(
        Down,
        b"event: endpoint\ndata: /m?sessionId=s3cr3t\n\n: password=stays123\n\n",
    );
    let post = relay.open(1000, "POST /m?sessionId=s3cr3t\r\n");
    post.finish(Finish::Complete);
    let stream = stream.finish(Finish::ClientGone);
    let read = relay.stop();
    assert!(!read.holds("s3cr3t"));
    assert!(read.payloads(stream)[0].contains("[REDACTED:mcp-session-id:"));
    assert!(read.holds("stays123"));
}

#[test]
fn with_digests_headers_that_repeat_arguments_are_not_kept() {
    let relay = Relay::with(|options| options.bodies = Bodies::Digest, |_| {});
    let modern = "mcp-protocol-version: 2026-07-28\r\nMcp-Param-Region: private\r\n";
    let call = format!("{modern}mcp-method: tools/call\r\nmcp-name: the_tool\r\n");
    relay.post(&call, CALL, (200, JSON, ANSWER));
    let read = format!("{modern}mcp-method: resources/read\r\nmcp-name: file:///private\r\n");
    relay.post(&read, CALL, (200, JSON, ANSWER));
    let read = relay.stop();
    assert!(!read.holds("private") && read.holds("the_tool") && read.holds("[DIGEST:"));
}

#[test]
fn with_digests_no_argument_and_no_result_is_kept() {
    let relay = Relay::with(|options| options.bodies = Bodies::Digest, |_| {});
    let open = relay.open(1000, "GET /sse\r\n");
    open.close(Up);
    open.respond(200, EVENTS);
    open.send(Down, b"event: endpoint\ndata: /m\n\n: private\n\n");
    open.send(
        Down,
        b"id: 7\ndata: {\"id\":1,\ndata: \"result\":{\"x\":\"private\"}}\n\ndata: private\n\n",
    );
    let stream = open.finish(Finish::ClientGone);
    let body =
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"x":"private"}}}"#;
    let exchange = relay.post("", body, (400, "", "private"));
    let read = relay.stop();
    assert!(!read.holds("private"));
    let bodies = read.payloads(exchange);
    assert!(
        bodies[0].starts_with(
            r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"digest":"#
        ),
        "{bodies:?}"
    );
    assert!(bodies[1].starts_with("[DIGEST:"), "{bodies:?}");
    let events = read.payloads(stream);
    assert_eq!(events[0], "event: endpoint\ndata: /m\n\n");
    assert!(
        events[2].starts_with("id: 7\ndata: {\"id\":1,\"result\":{\"digest\":"),
        "{events:?}"
    );
    assert!(events[2].ends_with("}}\n\n"), "{events:?}");
    assert!(
        events[1].starts_with("[DIGEST:") && events[3].starts_with("[DIGEST:"),
        "{events:?}"
    );
}
