//! Servers elsewhere speak TLS and HTTP/2. The client of the relay, which speaks plain HTTP/1.1
//! with it, gets the same from them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

#[path = "support/secure.rs"]
mod secure;

use secure::{Secure, Speaks};
use std::time::{Duration, Instant};
use support::http::{Relay, chunk, get_events, post};
use support::{Home, assert_same, wait_for};

const ALL: [(Speaks, &str); 3] = [
    (Speaks::Tls, "HTTP/1.1"),
    (Speaks::TlsHttp2, "HTTP/2.0"),
    (Speaks::Http2, "HTTP/2.0"),
];

/// A relay before this server, which trusts it.
fn relay(home: &Home, server: &Secure, speaks: Speaks) -> Relay {
    let relay = home.relay(server.url());
    let relay = relay.env("SSL_CERT_FILE", &server.certificate);
    match speaks {
        Speaks::Http2 => relay.option("--http2").start(),
        Speaks::Tls | Speaks::TlsHttp2 => relay.start(),
    }
}

#[test]
fn bodies_headers_and_trailers_pass() {
    for (speaks, version) in ALL {
        let home = Home::new();
        let server = Secure::new(&home, speaks);
        let relay = relay(&home, &server, speaks);
        let mut client = relay.connect();
        let body: Vec<u8> = (0..=255).cycle().take(1_000_000).collect();
        for _ in 0..2 {
            client.send(post(&body));
            let answered = client.read_message();
            assert_eq!(answered.status(), 200, "{speaks:?}: {answered:?}");
            assert_same(&answered.body, &body, "the body");
            assert_eq!(answered.header("x-version"), Some(version), "{speaks:?}");
            assert_eq!(answered.header("x-host"), Some("localhost"), "{speaks:?}");
            let names = answered.header("x-names").unwrap();
            assert!(!names.contains("connection"), "{names}");
        }
        client.send("POST /a%2Fb?c=d HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nTrailer: X-Sum\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(chunk("{\"a\":"));
        client.send([chunk("1}"), b"0\r\nX-Sum: 7\r\n\r\n".to_vec()].concat());
        let answered = client.read_message();
        assert_eq!(answered.text(), "{\"a\":1}", "{speaks:?}");
        assert_eq!(answered.header("x-target"), Some("/a%2Fb?c=d"));
        assert_eq!(
            answered.trailers.to_lowercase(),
            "x-sum: 7\r\n",
            "{speaks:?}"
        );
        // One connection of the client, one to the server.
        assert_eq!(server.connections(), 1, "{speaks:?}");
        relay.ask(post("{}"));
        assert_eq!(server.connections(), 2, "{speaks:?}");
    }
}

#[test]
fn events_leave_when_they_come() {
    for (speaks, _) in ALL {
        let home = Home::new();
        let server = Secure::new(&home, speaks);
        let relay = relay(&home, &server, speaks);
        let mut client = relay.connect();
        client.send(get_events("/events", "TE: trailers\r\n"));
        let head = client.read_head();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(client.read_chunked(9), b"data: 1\n\n");
        let began = Instant::now();
        assert_eq!(client.read_chunked(9), b"data: 2\n\n");
        let between = began.elapsed();
        assert!(
            between > Duration::from_millis(100),
            "{speaks:?}: {between:?}"
        );
        assert_eq!(client.read_chunked(9), b"data: 3\n\n");
        assert_eq!(client.read_chunk(), None);
    }
}

#[test]
fn a_client_that_is_gone_is_gone_for_the_server_too() {
    for (speaks, _) in ALL {
        let home = Home::new();
        let server = Secure::new(&home, speaks);
        let relay = relay(&home, &server, speaks);
        let mut client = relay.connect();
        client.send(get_events("/endless", ""));
        client.read_head();
        assert_eq!(client.read_chunked(13), b"data: first\n\n");
        assert_eq!(server.endless(), 1, "{speaks:?}");
        let began = Instant::now();
        client.close();
        wait_for("the end of the stream", || {
            (server.endless() == 0).then_some(())
        });
        assert!(began.elapsed() < Duration::from_secs(1), "{speaks:?}");
    }
}

#[test]
fn a_server_that_nobody_vouches_for_is_a_bad_gateway() {
    let home = Home::new();
    let server = Secure::new(&home, Speaks::Tls);
    let other = Home::new();
    let trusted = Secure::new(&other, Speaks::Tls);
    let relay = home.relay(server.url());
    let relay = relay.env("SSL_CERT_FILE", &trusted.certificate).start();
    let answered = relay.ask(post("{}"));
    assert_eq!(answered.status(), 502);
    let error = answered.json()["error"].clone();
    assert_eq!(error["side"], "server");
    assert!(error["message"].to_string().contains("TLS"), "{error}");
}

#[test]
fn a_server_that_does_not_speak_it_is_a_bad_gateway() {
    let home = Home::new();
    let server = Secure::new(&home, Speaks::Http2);
    // TLS to one that speaks none, HTTP/1.1 to one that speaks HTTP/2 only, and the reverse.
    let url = server.url().replace("http:", "https:");
    let relay = home.relay(url);
    let relay = relay.env("SSL_CERT_FILE", &server.certificate).start();
    assert_eq!(relay.ask(post("{}")).status(), 502);
    let relay = home.relay(server.url()).start();
    assert_eq!(relay.ask(post("{}")).status(), 502);
}
