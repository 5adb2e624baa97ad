//! What is no HTTP, or too much of it, ends its own exchange and nothing else: it is neither
//! forwarded as if it were right nor does it end the relay.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::time::Duration;
use support::http::{LAST_CHUNK, Pair, answer, chunk, json_answer, post};
use support::{ANSWER, REQUEST, shown, wait_for};

const MIB: u64 = 1 << 20;

#[test]
fn heads_that_are_too_large_are_refused_and_no_more() {
    let pair = Pair::new();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    let many = format!("{head}{}\r\n", "X-A: 1\r\n".repeat(100_000));
    let long = format!("{head}X-A: {}\r\n\r\n", "a".repeat(16 << 20));
    let target = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a".repeat(16 << 20)
    );
    for request in [many, long, target] {
        let mut client = pair.relay.connect();
        // It need not read all of it.
        client.try_send(&request);
        let (said, _) = client.read_to_end();
        let said = String::from_utf8_lossy(&said);
        let status = said.split(' ').nth(1).unwrap_or("none: reset");
        assert!(
            ["400", "414", "431", "none: reset"].contains(&status),
            "{said}"
        );
        pair.serves_soon();
    }
    let peak = pair.relay.process().peak_memory();
    assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
    // Of a server likewise.
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: 1\r\n".repeat(100_000));
    let long = format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "a".repeat(16 << 20));
    for reply in [many, long] {
        let (mut client, mut server) = pair.connect(post(REQUEST));
        server.read_message();
        server.try_send(&reply);
        assert_eq!(client.read_message().status(), 502);
        pair.serves_soon();
    }
}

#[test]
fn requests_that_are_no_http_are_refused_and_do_not_reach_the_server() {
    let pair = Pair::new();
    for request in [
        "nonsense\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{1}\u{3}\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nBad Name: 1\r\n\r\n",
        "POST /mcp HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut client = pair.relay.connect();
        client.send(request);
        client.end_sending();
        let (said, _) = client.read_to_end();
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 4"),
            "{request:?}: {said}"
        );
        assert!(pair.origin.try_accept().is_none(), "{request:?}");
    }
    pair.serves_soon();
}

#[test]
fn a_length_beside_chunks_cannot_hide_a_second_request() {
    let pair = Pair::new();
    let hidden = "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{hidden}",
        hidden.len()
    );
    let mut client = pair.relay.connect();
    client.send(request);
    // Refused, or sent on with one framing: what follows the last chunk is then a request of
    // its own for the relay too.
    let server = wait_for("an answer or a request", || {
        let server = pair.origin.try_accept();
        (server.is_some() || !client.is_silent_for(Duration::from_millis(5))).then_some(server)
    });
    if let Some(mut server) = server {
        let asked = server.read_message();
        assert_eq!(
            asked.all("content-length").len() + asked.all("transfer-encoding").len(),
            1
        );
        assert_eq!(asked.text(), "");
    } else {
        assert_eq!(client.read_message().status(), 400);
    }
    pair.serves_soon();
}

#[test]
fn bad_chunks_break_their_exchange_and_nothing_else() {
    let pair = Pair::new();
    for bad in [
        "zz\r\n{}\r\n",
        "5\r\n{}\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\n",
        "-1\r\n",
    ] {
        // Of a client: the server must not take the request for whole.
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (mut client, mut server) = pair.connect(head);
        client.send(chunk("{}"));
        server.read_head();
        assert_eq!(server.read_chunked(2), b"{}");
        client.try_send(bad);
        let (came, _) = server.read_to_end();
        assert!(!came.ends_with(b"0\r\n\r\n"), "{bad:?}: {}", shown(&came));
        client.wait_for_end();

        // Of a server: the client must not take the answer for whole.
        let (mut client, mut server) = pair.stream();
        server.send(bad);
        server.send(chunk("data: 2\n\n"));
        let (came, _) = client.read_to_end();
        assert!(!came.ends_with(b"0\r\n\r\n"), "{bad:?}: {}", shown(&came));
        pair.serves_soon();
    }
}

#[test]
fn answers_that_are_no_http_are_a_bad_gateway() {
    let pair = Pair::new();
    for reply in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nX",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ] {
        let (mut client, mut server) = pair.connect(post(REQUEST));
        server.read_message();
        server.send(reply);
        server.close();
        let answered = client.read_message();
        assert_eq!(answered.status(), 502, "{reply:?}");
        assert_eq!(answered.json()["error"]["side"], "server");
    }
    pair.serves_soon();
}

#[test]
fn bytes_that_nobody_asked_for_are_not_taken_for_an_answer() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send([json_answer("{\"right\":1}"), json_answer("{\"wrong\":1}")].concat());
    assert_eq!(client.read_message().text(), "{\"right\":1}");
    client.send(post(REQUEST));
    let mut server = pair.origin.accept();
    server.read_message();
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().text(), ANSWER);
}

#[test]
fn what_was_allowed_once_does_not_let_pass_what_comes_later_on_the_same_connection() {
    for (target, status) in [
        ("CONNECT evil.example:80", "HTTP/1.1 405"),
        ("GET evil.example:80", "HTTP/1.1 405"),
        ("GET http://evil.example/", "HTTP/1.1 403"),
    ] {
        let pair = Pair::new();
        let (mut client, mut server) = pair.connect(post(REQUEST));
        server.read_head();
        server.read(REQUEST.len());
        server.send(json_answer(ANSWER));
        client.read_message();
        client.send(format!("{target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let refused = client.read_message();
        let line = refused.first_line();
        let forbidden = line.starts_with(status) || line.starts_with("HTTP/1.1 403");
        assert!(forbidden, "{target}: {line}");
        assert!(server.is_silent_for(Duration::from_millis(100)), "{target}");
    }
}

#[test]
fn a_body_that_the_server_refused_holds_nobody_up() {
    let pair = Pair::new();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n";
    let (mut client, mut server) = pair.connect(head);
    server.read_head();
    server.send(answer("417 Expectation Failed", "", "no"));
    assert_eq!(client.read_message().status(), 417);
    // The server keeps its end open; the relay does not.
    client.wait_for_end();
    assert!(server.wait_for_end() < Duration::from_secs(2));
}

#[test]
fn an_answer_framed_twice_is_passed_on_framed_once() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_head();
    server.read(REQUEST.len());
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    server.send(chunk("{\"a\":1}"));
    server.send(LAST_CHUNK);
    let answered = client.read_message();
    assert_eq!((answered.status(), answered.text()), (200, "{\"a\":1}"));
    assert_eq!(answered.header("content-length"), None);
}

#[test]
fn a_first_event_without_colons_is_an_event_like_any_other() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.stream();
    server.send(chunk("event: endpoint\ndata\n\n"));
    assert_eq!(client.read_chunked(22), b"event: endpoint\ndata\n\n");
    server.send(LAST_CHUNK);
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn a_request_that_breaks_is_not_said_to_be_the_servers_fault() {
    let pair = Pair::new();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut client, mut server) = pair.connect(head);
    client.send(chunk("{}"));
    server.read_head();
    server.read_chunked(2);
    client.send("zz\r\n");
    let (came, _) = client.read_to_end();
    let came = shown(&came);
    assert!(
        came.starts_with("HTTP/1.1 400") || came.is_empty(),
        "{came}"
    );
    assert!(!came.contains("\"side\":\"server\""), "{came}");
}
