//! What the relay does not pass on as it is over HTTP, and nothing beside that: requests of
//! strangers, the address in an `endpoint` event, and, if it is told so, OAuth metadata and `Host`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::net::SocketAddr;
use std::time::Duration;
use support::http::{
    EVENTS, Origin, Relay, Wire, answer, chunk, get_events, json_answer, post, post_with,
};
use support::{ANSWER, Home, REQUEST};

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Sends a request and this answer to it; returns what the client sees.
fn ask(
    relay: &Relay,
    origin: &Origin,
    request: impl AsRef<[u8]>,
    reply: &[u8],
) -> support::http::Message {
    let mut client = relay.connect();
    client.send(request);
    let mut server = origin.accept();
    server.read_message();
    server.send(reply);
    client.read_message()
}

fn with_headers(host: &str, more: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{more}Content-Length: 2\r\n\r\n{{}}")
}

#[test]
fn w43_strangers_are_refused_before_anything_is_forwarded() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url()).start();
    let port = relay.address().port();
    let own = format!("127.0.0.1:{port}");
    let refused = [
        with_headers("evil.example", ""),
        with_headers(&format!("evil.example:{port}"), ""),
        with_headers("127.0.0.1.evil.example", ""),
        with_headers("localhost.evil.example", ""),
        with_headers(&format!("evil@127.0.0.1:{port}"), ""),
        with_headers("192.168.0.1", ""),
        with_headers("0.0.0.0", ""),
        with_headers(&own, "Origin: https://evil.example\r\n"),
        with_headers(&own, "Origin: null\r\n"),
        with_headers(&own, "Origin: http://127.0.0.1.evil.example\r\n"),
        with_headers(
            &own,
            "Origin: http://localhost\r\nOrigin: https://evil.example\r\n",
        ),
        format!("GET http://evil.example/mcp HTTP/1.1\r\nHost: {own}\r\n\r\n"),
        format!("OPTIONS /mcp HTTP/1.1\r\nHost: {own}\r\nOrigin: https://evil.example\r\n\r\n"),
    ];
    for request in refused {
        let answered = relay.ask(&request);
        assert_eq!(answered.status(), 403, "{request}");
        assert_eq!(answered.json()["error"]["side"], "client", "{request}");
        // Or a page could read the answer.
        assert_eq!(answered.header("access-control-allow-origin"), None);
    }
    for request in [
        "POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}".to_owned(),
        with_headers("", ""),
    ] {
        let answered = relay.ask(&request);
        assert!((400..=403).contains(&answered.status()), "{request}");
    }
    assert_eq!(
        relay
            .ask(with_headers(&own, "Host: localhost\r\n"))
            .status(),
        400
    );
    let answered = relay.ask(format!(
        "CONNECT evil.example:80 HTTP/1.1\r\nHost: {own}\r\n\r\n"
    ));
    assert!((400..=405).contains(&answered.status()), "{answered:?}");
    assert!(origin.is_left_alone_for(Duration::from_millis(300)));
}

#[test]
fn w43_this_machine_is_no_stranger() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url()).start();
    let port = relay.address().port();
    for host in [
        "localhost",
        "LocalHost:1",
        "127.0.0.1",
        "127.9.9.9:80",
        "[::1]",
        &format!("[::1]:{port}"),
    ] {
        let origins = [
            "",
            "Origin: http://localhost:6274\r\n",
            "Origin: https://127.0.0.1\r\n",
        ];
        for from in origins {
            let answered = ask(
                &relay,
                &origin,
                with_headers(host, from),
                &json_answer("{}"),
            );
            assert_eq!(answered.status(), 200, "{host} {from}");
        }
    }
}

#[test]
fn w43_names_that_are_allowed_are_no_strangers() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url());
    let relay = relay.option("--allow-host").option("tools.example").start();
    let from = "Origin: https://tools.example:8443\r\n";
    let answered = ask(
        &relay,
        &origin,
        with_headers("tools.example:1", from),
        &json_answer("{}"),
    );
    assert_eq!(answered.status(), 200);
    assert_eq!(relay.ask(with_headers("other.example", "")).status(), 403);
    assert_eq!(relay.ask(with_headers("a.tools.example", "")).status(), 403);
}

#[test]
fn a_server_on_this_machine_sees_the_host_that_the_client_named() {
    let (home, origin) = (Home::new(), Origin::new());
    for (option, seen) in [
        ("auto", "localhost:7"),
        ("keep", "localhost:7"),
        ("upstream", &origin.address().to_string()),
    ] {
        let relay = home.relay(origin.url());
        let relay = relay.option("--host-header").option(option).start();
        let mut client = relay.connect();
        client.send(with_headers("localhost:7", ""));
        let mut server = origin.accept();
        assert_eq!(server.read_message().all("host"), [seen], "{option}");
    }
}

/// Opens a stream over HTTP+SSE; what the server sends first is cut after each byte.
fn endpoint(relay: &Relay, origin: &Origin, first: &str, arrives: &str) -> (Wire, Wire) {
    let mut client = relay.connect();
    client.send(get_events("/sse", ""));
    let mut server = origin.accept();
    server.read_head();
    server.send(EVENTS);
    for byte in first.bytes() {
        server.send(chunk([byte]));
        std::thread::sleep(Duration::from_millis(1));
    }
    client.read_head();
    let seen = client.read_chunked(arrives.len());
    assert_eq!(String::from_utf8(seen).unwrap(), arrives);
    (client, server)
}

#[test]
fn an_absolute_endpoint_is_moved_to_the_listener() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url()).start();
    let first = format!(
        ": hello\r\n\r\nevent: endpoint\ndata: {}/message?sessionId=1a2b\n\n",
        origin.url()
    );
    let arrives = first.replace(&origin.url(), "http://localhost");
    let (mut client, mut server) = endpoint(&relay, &origin, &first, &arrives);
    // Whatever comes later passes as it is.
    let later = format!("event: endpoint\ndata: {}/message\n\n", origin.url());
    server.send(chunk(&later));
    assert_eq!(client.read_chunked(later.len()), later.as_bytes());
    // Messages are posted beside it, and answered on the stream.
    let posted = ask(
        &relay,
        &origin,
        post(REQUEST),
        &answer("202 Accepted", "", ""),
    );
    assert_eq!(posted.status(), 202);
    server.send(chunk(format!("event: message\ndata: {ANSWER}\n")));
    client.read_chunked(ANSWER.len() + 22);
}

#[test]
fn other_endpoints_stay_as_they_are() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url()).start();
    let other: SocketAddr = Origin::new().address();
    for first in [
        "event: endpoint\ndata: /message?sessionId=1a2b\n\n",
        "event:endpoint\r\ndata:message?sessionId=1a2b\r\n\r\n",
        &format!("event: endpoint\ndata: http://{other}/message\n\n"),
        "event: endpoint\ndata: //evil.example/\n\n",
        "event: message\ndata: http://127.0.0.1/\n\n",
        "data: {}\n\n",
    ] {
        endpoint(&relay, &origin, first, first);
    }
}

/// What a server says about who may enter; its addresses are in it.
fn metadata(origin: &Origin) -> String {
    format!(
        "{{\"resource\": \"{}/mcp\",\"authorization_servers\":[\"https://login.example/\"], \"resource_documentation\":\"{}/docs\"}}",
        origin.url(),
        origin.url()
    )
}

fn challenge(origin: &Origin) -> String {
    format!(
        "Bearer error=\"invalid_token\", resource_metadata=\"{}{METADATA}\"",
        origin.url()
    )
}

#[test]
fn w40_oauth_metadata_stays_as_it_is() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home.relay(origin.url()).start();
    let request = format!("GET {METADATA} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let answered = ask(&relay, &origin, request, &json_answer(metadata(&origin)));
    assert_eq!(answered.text(), metadata(&origin));
    let headers = format!("WWW-Authenticate: {}\r\n", challenge(&origin));
    let answered = ask(
        &relay,
        &origin,
        post(REQUEST),
        &answer("401 Unauthorized", &headers, ""),
    );
    assert_eq!(
        answered.header("www-authenticate"),
        Some(&challenge(&origin)[..])
    );
}

#[test]
fn w40_oauth_metadata_is_moved_if_the_relay_is_told_so() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home
        .relay(origin.url())
        .option("--rewrite-oauth-metadata")
        .start();
    let own = relay.url();
    let host = relay.address();
    let request =
        format!("GET {METADATA} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: gzip\r\n\r\n");
    let answered = ask(&relay, &origin, &request, &json_answer(metadata(&origin)));
    let moved = metadata(&origin).replacen(&origin.url(), &own, 1);
    assert_eq!(answered.text(), moved, "the resource is, the rest is not");
    assert_eq!(answered.status(), 200);

    let headers = format!(
        "WWW-Authenticate: {}\r\nWWW-Authenticate: Basic\r\n",
        challenge(&origin)
    );
    let request = with_headers(&host.to_string(), "");
    let answered = ask(
        &relay,
        &origin,
        request,
        &answer("401 Unauthorized", &headers, ""),
    );
    let moved = challenge(&origin).replace(&origin.url(), &own);
    assert_eq!(answered.all("www-authenticate"), [&moved[..], "Basic"]);

    // Elsewhere the same bytes are none of its business.
    let reply = json_answer(metadata(&origin));
    let answered = ask(&relay, &origin, post_with("", "{}"), &reply);
    assert_eq!(answered.text(), metadata(&origin));
}
