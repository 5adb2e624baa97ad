//! What one side sends over HTTP arrives at the other as it was sent: first line, headers, bodies
//! and trailers, in the moment they come. Only what is about one connection is the relay's own.
//!
//! W numbers are those of the list of wire cases that were reported for proxies.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::thread::scope;
use std::time::{Duration, Instant};
use support::http::{
    EVENTS, LAST_CHUNK, Message, Pair, answer, chunk, get_events, json_answer, post, post_with,
};
use support::{ANSWER, REQUEST, assert_same};

/// Header lines without those that the relay may set itself.
fn end_to_end(message: &Message) -> Vec<(&str, &str)> {
    let own = ["connection", "keep-alive", "transfer-encoding"];
    let headers = message.headers().into_iter();
    headers
        .filter(|(name, _)| !own.contains(&name.to_ascii_lowercase().as_str()))
        .collect()
}

/// Header lines out of a text.
fn lines(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .collect()
}

#[test]
fn w22_w25_bodies_whatever_is_in_them() {
    let pair = Pair::new();
    let bodies: [&[u8]; 9] = [
        b"{ \"jsonrpc\":\"2.0\" , \"id\":9007199254740993,\"method\":\"ping\",\"params\":{\"f\":1.0,\"e\":1E400,\"k\":1,\"k\":2,\"u\":\"\\u00e9\\/\\ud800\"}}",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"ping\"}]",
        b"[]",
        b"{\"jsonrpc\":",
        b"null",
        b"\xef\xbb\xbf{}\r\n\r\n",
        b"\xff\xfe\x00 no text at all",
        b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"",
    ];
    for body in bodies {
        let (asked, answered) = pair.exchange(post(body), json_answer(body));
        assert_same(&asked.body, body, "the request");
        assert_same(&answered.body, body, "the answer");
    }
}

#[test]
fn w20_bodies_that_come_byte_by_byte() {
    let pair = Pair::new();
    let body = "{\"text\":\"hällo \u{1f980} \u{2028}\"}";
    let mut client = pair.relay.connect();
    let (mut server, asked) = scope(|threads| {
        let sending = threads.spawn(|| {
            client.send_in_pieces(&post(body), 1, Duration::from_micros(200));
        });
        let mut server = pair.origin.accept();
        let asked = server.read_message();
        sending.join().unwrap();
        (server, asked)
    });
    assert_same(&asked.body, body.as_bytes(), "the request");
    scope(|threads| {
        threads.spawn(|| server.send_in_pieces(&json_answer(body), 1, Duration::from_micros(200)));
        assert_same(&client.read_message().body, body.as_bytes(), "the answer");
    });
}

#[test]
fn w37_headers_of_requests_with_their_order_case_and_repeats() {
    let pair = Pair::new();
    let headers = format!(
        "Host: {}\r\ncontent-type: application/json\r\nACCEPT: application/json, text/event-stream\r\n\
         AuThOrIzAtIoN: Bearer not-a-real-token\r\nMcp-Session-Id: sess-123\r\nMCP-Protocol-Version: 2025-11-25\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: =?base64?aMOkbGxv?=\r\nMcp-Param-Region: eu\r\nX-Twice: 1\r\nX-Twice: 2\r\n\
         traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1,b=2\r\n\
         Last-Event-ID: g3\r\nAccept-Encoding: zstd, br;q=0.5\r\nCookie: s=1\r\nCookie: t=2\r\nUser-Agent: probe/1\r\n\
         X-Long: {}\r\nX-Latin: h\u{e4}llo\r\nContent-Length: 2\r\n",
        pair.relay.address(),
        "l".repeat(6000),
    );
    let (asked, _) = pair.exchange(
        format!("POST /mcp HTTP/1.1\r\n{headers}\r\n{{}}"),
        json_answer("{}"),
    );
    assert_eq!(end_to_end(&asked), lines(&headers));
}

#[test]
fn w37_headers_of_answers_with_their_order_case_and_repeats() {
    let pair = Pair::new();
    let headers = "mcp-session-id: sess-123\r\nCONTENT-TYPE: application/json; charset=utf-8\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
                   Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nserver: something/1\r\nVary: Origin\r\nvary: Accept\r\nX-Accel-Buffering: no\r\n\
                   Access-Control-Allow-Origin: *\r\nETag: \"x\"\r\nVia: 1.1 other\r\nContent-Length: 2\r\n";
    let (_, answered) = pair.exchange(post("{}"), format!("HTTP/1.1 200 OK\r\n{headers}\r\n{{}}"));
    assert_eq!(end_to_end(&answered), lines(headers));
}

#[test]
fn headers_that_are_about_one_connection_are_not_passed_on() {
    let pair = Pair::new();
    let request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                   Proxy-Connection: keep-alive\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\n{}";
    let reply = "HTTP/1.1 200 OK\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-Stays: 1\r\nContent-Length: 2\r\n\r\n{}";
    let (asked, answered) = pair.exchange(request, reply);
    for message in [asked, answered] {
        assert_eq!(message.header("X-Stays"), Some("1"));
        for name in ["X-Hop", "Keep-Alive", "Proxy-Connection"] {
            assert_eq!(message.header(name), None, "{name}");
        }
    }
}

#[test]
fn w34_answers_to_notifications_stay_as_empty_as_they_are() {
    let pair = Pair::new();
    for (status, headers, body) in [
        ("202 Accepted", "", ""),
        ("202 Accepted", "Content-Type: text/plain\r\n", "Accepted"),
        ("200 OK", "", ""),
        ("200 OK", "Content-Type: application/json\r\n", "null"),
    ] {
        let (_, answered) = pair.exchange(post(REQUEST), answer(status, headers, body));
        assert_eq!(answered.first_line(), format!("HTTP/1.1 {status}"));
        assert_eq!(answered.text(), body);
        let kind = headers.strip_prefix("Content-Type: ").map(str::trim_end);
        assert_eq!(answered.header("content-type"), kind);
    }
}

#[test]
fn answers_without_a_body_leave_the_connection_usable() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send("HTTP/1.1 204 No Content\r\nX-Kept: 1\r\n\r\n");
    let answered = client.read_message();
    assert_eq!(
        (answered.status(), answered.header("x-kept")),
        (204, Some("1"))
    );

    client.send("GET /mcp HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"x\"\r\n\r\n");
    assert_eq!(server.read_message().header("if-none-match"), Some("\"x\""));
    server.send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
    let answered = client.read_message();
    assert_eq!(
        (answered.status(), answered.header("etag")),
        (304, Some("\"x\""))
    );

    // A length of what GET would answer.
    client.send("HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(
        server.read_head().lines().next(),
        Some("HEAD /mcp HTTP/1.1")
    );
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n");
    let head = client.read_head();
    assert!(
        head.to_lowercase().contains("content-length: 12345\r\n"),
        "{head}"
    );

    client.send(post(REQUEST));
    assert_eq!(server.read_message().body, REQUEST.as_bytes());
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().body, ANSWER.as_bytes());
    assert!(
        pair.origin.try_accept().is_none(),
        "one connection was enough"
    );
}

#[test]
fn w39_challenges_and_cookies_verbatim() {
    let pair = Pair::new();
    let challenge = "Bearer realm=\"a, b\", scope=\"mcp:read  mcp:write\", error=\"invalid_token\", \
                     resource_metadata=\"http://127.0.0.1:1/.well-known/oauth-protected-resource/mcp\"";
    let headers = format!(
        "WWW-Authenticate: {challenge}\r\nwww-authenticate: Basic realm=\"x\"\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n"
    );
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let (_, answered) = pair.exchange(post(REQUEST), answer(status, &headers, "{\"error\":1}"));
        assert_eq!(answered.first_line(), format!("HTTP/1.1 {status}"));
        let challenges = answered.all("www-authenticate");
        assert_eq!(challenges, [challenge, "Basic realm=\"x\""]);
        assert_eq!(answered.all("set-cookie"), ["a=1; Path=/", "b=2"]);
        assert_eq!(answered.text(), "{\"error\":1}");
    }
}

#[test]
fn w33_w35_any_method_and_405_with_allow() {
    let pair = Pair::new();
    for method in ["GET", "DELETE", "OPTIONS", "PUT", "PATCH", "REPORT"] {
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: s\r\nContent-Length: 0\r\n\r\n"
        );
        let reply = answer("405 Method Not Allowed", "Allow: POST\r\n", "no");
        let (asked, answered) = pair.exchange(request, reply);
        assert_eq!(asked.first_line(), format!("{method} /mcp HTTP/1.1"));
        assert_eq!(answered.status(), 405);
        assert_eq!(answered.header("allow"), Some("POST"));
        let (_, answered) = pair.exchange(post(REQUEST), json_answer(ANSWER));
        assert_eq!(answered.status(), 200);
    }
}

#[test]
fn w36_w38_statuses_and_bodies_of_the_server() {
    let pair = Pair::new();
    for status in [
        "400 Bad Request",
        "404 Not Found",
        "404 Session gone, start anew",
        "413 Content Too Large",
        "421 Misdirected Request",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "599 ",
    ] {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001}}";
        let headers = "Retry-After: 7\r\nContent-Type: application/json\r\n";
        let (_, answered) = pair.exchange(post(REQUEST), answer(status, headers, body));
        assert_eq!(answered.first_line(), format!("HTTP/1.1 {status}"));
        assert_eq!(answered.header("retry-after"), Some("7"));
        assert_eq!(answered.text(), body);
    }
}

#[test]
fn w40_paths_and_queries_as_they_are() {
    let pair = Pair::new();
    for target in [
        "/",
        "/.well-known/oauth-protected-resource/mcp?x=1&y=%20a%2Fb",
        "/a//b/../c?z",
        "/mcp?",
        "/m%63p;v=1/%E4?a=b?c=d&e",
        "/mcp?sessionId=8f14e45f-ceea-467f-ae0b-2f0e4b3a1b2c",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (asked, _) = pair.exchange(request, json_answer("{}"));
        assert_eq!(asked.first_line(), format!("GET {target} HTTP/1.1"));
    }
}

#[test]
fn an_absolute_target_is_asked_for_by_its_path() {
    let pair = Pair::new();
    let request = "GET http://localhost/mcp?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (asked, answered) = pair.exchange(request, json_answer("{}"));
    assert_eq!(asked.first_line(), "GET /mcp?a=b HTTP/1.1");
    assert_eq!(asked.all("host"), ["localhost"]);
    assert_eq!(answered.status(), 200);
}

#[test]
fn w41_coded_bodies_are_not_touched() {
    let pair = Pair::new();
    // Whether they can be decoded is not the relay's business.
    let coded: Vec<u8> = (0..=255).cycle().take(5000).collect();
    for coding in ["gzip", "br", "zstd", "deflate", "gzip, br", "unheard-of"] {
        let headers = format!("Content-Type: application/json\r\nContent-Encoding: {coding}\r\n");
        let request = post_with(
            "Accept-Encoding: zstd;q=0.3, br, *;q=0\r\nContent-Encoding: gzip\r\n",
            &coded,
        );
        let (asked, answered) = pair.exchange(request, answer("200 OK", &headers, &coded));
        assert_eq!(
            asked.header("accept-encoding"),
            Some("zstd;q=0.3, br, *;q=0")
        );
        assert_eq!(asked.header("content-encoding"), Some("gzip"));
        assert_same(&asked.body, &coded, "the request");
        assert_eq!(answered.header("content-encoding"), Some(coding));
        assert_eq!(answered.header("content-length"), Some("5000"));
        assert_same(&answered.body, &coded, "the answer");
    }
}

#[test]
fn w42_chunked_bodies_with_trailers_both_ways() {
    let pair = Pair::new();
    let mut request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nTrailer: X-Sum, X-Twice\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    request.extend(chunk("{\"jsonrpc\":\"2.0\",\"id\":2,"));
    request.extend(b"14;ext=\"a;b\"\r\n \"method\" : \"ping\" }\r\n");
    request.extend(b"0\r\nX-Sum: 1\r\nX-Twice: a\r\nX-Twice: b\r\n\r\n");
    let (mut client, mut server) = pair.connect(request);
    let asked = server.read_message();
    assert_eq!(
        asked.text(),
        "{\"jsonrpc\":\"2.0\",\"id\":2, \"method\" : \"ping\" }"
    );
    assert_eq!(asked.header("te"), Some("trailers"));
    assert_eq!(asked.header("trailer"), Some("X-Sum, X-Twice"));
    assert_eq!(
        lowered(&asked.trailers),
        "x-sum: 1\r\nx-twice: a\r\nx-twice: b\r\n"
    );

    server.send("HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n");
    server.send(chunk("one "));
    assert_eq!(client.read_head().lines().next(), Some("HTTP/1.1 200 OK"));
    assert_eq!(client.read_chunked(4), b"one ");
    server.send(chunk("two"));
    assert_eq!(client.read_chunked(3), b"two");
    server.send("0\r\nX-Sum: 2\r\n\r\n");
    assert_eq!(client.read_chunk(), None);
    assert_eq!(
        lowered(&String::from_utf8(client.read_until("\r\n\r\n")).unwrap()),
        "x-sum: 2\r\n\r\n"
    );

    client.send(post(REQUEST));
    assert_eq!(server.read_message().body, REQUEST.as_bytes());
}

/// Trailer lines with names in lower case: hyper does not keep the case of trailers.
fn lowered(lines: &str) -> String {
    lines.to_ascii_lowercase()
}

#[test]
fn w42_a_client_that_waits_to_be_told_to_go_on() {
    let pair = Pair::new();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        REQUEST.len()
    );
    let (mut client, mut server) = pair.connect(&head);
    assert!(
        server
            .read_head()
            .to_lowercase()
            .contains("\r\nexpect: 100-continue\r\n")
    );
    server.send("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(
        client.read_head().lines().next(),
        Some("HTTP/1.1 100 Continue")
    );
    client.send(REQUEST);
    assert_eq!(server.read(REQUEST.len()), REQUEST.as_bytes());
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().body, ANSWER.as_bytes());
    // And the connection goes on.
    client.send(post(REQUEST));
    assert_eq!(server.read_message().body, REQUEST.as_bytes());
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().status(), 200);
}

#[test]
fn w42_a_client_that_is_refused_before_it_sends_its_body() {
    for refusal in [
        "417 Expectation Failed",
        "401 Unauthorized",
        "413 Content Too Large",
    ] {
        let pair = Pair::new();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n";
        let (mut client, mut server) = pair.connect(head);
        server.read_head();
        server.send(answer(refusal, "WWW-Authenticate: Bearer\r\n", "no"));
        let answered = client.read_message();
        assert_eq!(answered.first_line(), format!("HTTP/1.1 {refusal}"));
        assert_eq!(
            (answered.text(), answered.header("www-authenticate")),
            ("no", Some("Bearer"))
        );
        // No byte of a body that was not sent.
        server.end_sending();
        assert_eq!(server.read_to_end().0, b"");
        assert_eq!(
            pair.exchange(post(REQUEST), json_answer(ANSWER)).1.status(),
            200
        );
    }
}

#[test]
fn an_answer_that_comes_before_the_request_is_whole() {
    let pair = Pair::new();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345";
    let (mut client, mut server) = pair.connect(head);
    server.read_head();
    assert_eq!(server.read(5), b"12345");
    server.send(EVENTS);
    server.send(chunk("data: early\n\n"));
    assert_eq!(client.read_head().lines().next(), Some("HTTP/1.1 200 OK"));
    assert_eq!(client.read_chunked(13), b"data: early\n\n");
    client.send("67890");
    assert_eq!(server.read(5), b"67890");
    server.send(LAST_CHUNK);
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn other_answers_of_100_to_199_do_not_end_an_exchange() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
    server.send(json_answer(ANSWER));
    let mut answered = client.read_message();
    while answered.status() < 200 {
        answered = client.read_message();
    }
    assert_eq!((answered.status(), answered.text()), (200, ANSWER));
}

#[test]
fn w30_w31_each_event_leaves_when_it_comes() {
    let pair = Pair::new();
    let request = get_events(
        "/mcp",
        "Mcp-Session-Id: s\r\nLast-Event-ID: \u{1f980} g/7==\r\n",
    );
    let (mut client, mut server) = pair.connect(request);
    let asked = server.read_head();
    assert!(
        asked.contains("Last-Event-ID: \u{1f980} g/7==\r\n"),
        "{asked}"
    );
    server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Accel-Buffering: no\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
    let head = client.read_head();
    assert!(
        head.contains("X-Accel-Buffering: no\r\nCache-Control: no-cache\r\n"),
        "{head}"
    );
    // Nobody sends the next before the last has arrived.
    for event in [
        ": a comment\n\n",
        "retry: 300\nid: 1\ndata: \n\n",
        "id: 2\r\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"x\"}\r\n\r\n",
        "data: half an event",
        " and its other half\n",
        "\n",
        "\u{feff}d",
        "ata: \u{1f980}\r\r",
        ":\n\n",
    ] {
        let began = Instant::now();
        server.send(chunk(event));
        assert_eq!(client.read_chunked(event.len()), event.as_bytes());
        assert!(
            began.elapsed() < Duration::from_millis(500),
            "{:?}",
            began.elapsed()
        );
    }
    server.send(LAST_CHUNK);
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn a_stream_of_which_the_connection_is_the_end() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(get_events("/mcp", ""));
    server.read_head();
    server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n");
    let head = client.read_head();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    server.send("data: 2\n\n");
    server.close();
    let answered = client.read_body_of(head);
    assert_eq!(answered.text(), "data: 1\n\ndata: 2\n\n");
}

#[test]
fn a_client_and_a_server_of_http_1_0() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect("GET /mcp HTTP/1.0\r\nHost: localhost\r\n\r\n");
    server.read_head();
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    server.send([chunk("{\"a\":"), chunk("1}"), LAST_CHUNK.into()].concat());
    // Chunks are unknown to it: the end of the connection is the end of the body.
    let (answered, _) = client.read_to_end();
    let text = String::from_utf8(answered).unwrap();
    assert!(text.ends_with("\r\n\r\n{\"a\":1}"), "{text}");

    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}");
    server.close();
    assert_eq!(client.read_message().text(), "{}");
}

#[test]
fn requests_sent_without_waiting_for_answers() {
    let pair = Pair::new();
    let bodies = ["{\"id\":1}", "{\"id\":2}", "{\"id\":3}"];
    let all: Vec<u8> = bodies.iter().flat_map(post).collect();
    let (mut client, mut server) = pair.connect(all);
    for body in bodies {
        assert_eq!(server.read_message().text(), body);
        server.send(json_answer(body));
    }
    for body in bodies {
        assert_eq!(client.read_message().text(), body);
    }
}

#[test]
fn w07_w24_each_client_has_its_own_connection_to_the_server() {
    let pair = Pair::new();
    let (mut first, mut one) = pair.connect(post("{\"id\":1,\"method\":\"a\"}"));
    let (mut second, mut other) = pair.connect(post("{\"id\":1,\"method\":\"b\"}"));
    assert_eq!(one.read_message().text(), "{\"id\":1,\"method\":\"a\"}");
    assert_eq!(other.read_message().text(), "{\"id\":1,\"method\":\"b\"}");
    // The later one is answered first.
    other.send(json_answer("{\"id\":1,\"result\":\"b\"}"));
    assert_eq!(second.read_message().text(), "{\"id\":1,\"result\":\"b\"}");
    one.send(json_answer("{\"id\":1,\"result\":\"a\"}"));
    assert_eq!(first.read_message().text(), "{\"id\":1,\"result\":\"a\"}");
    // Kept for the next request of the same client.
    first.send(post(REQUEST));
    assert_eq!(one.read_message().text(), REQUEST);
    assert!(pair.origin.try_accept().is_none());
    // And closed with the client's.
    second.close();
    assert!(other.wait_for_end() < Duration::from_secs(1));
}

#[test]
fn w09_a_post_passes_beside_an_open_stream() {
    let pair = Pair::new();
    let (mut listening, mut stream) = pair.connect(get_events("/mcp", ""));
    stream.read_head();
    stream.send(EVENTS);
    listening.read_head();
    let began = Instant::now();
    let (_, answered) = pair.exchange(post(REQUEST), json_answer(ANSWER));
    assert_eq!(answered.text(), ANSWER);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    stream.send(chunk("data: still here\n\n"));
    assert_eq!(listening.read_chunked(18), b"data: still here\n\n");
}

#[test]
fn w42_twenty_megabytes_each_way() {
    let pair = Pair::new();
    let body: Vec<u8> = (0_u32..5_000_000).flat_map(u32::to_le_bytes).collect();
    let (mut client, mut server) = scope(|threads| {
        let mut client = pair.relay.connect();
        let request = post(&body);
        let sending = threads.spawn(move || {
            client.send(request);
            client
        });
        let mut server = pair.origin.accept();
        assert_same(&server.read_message().body, &body, "the request");
        (sending.join().unwrap(), server)
    });
    scope(|threads| {
        let reply = json_answer(&body);
        threads.spawn(move || server.send(reply));
        assert_same(&client.read_message().body, &body, "the answer");
    });
}
