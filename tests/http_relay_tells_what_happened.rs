//! What the trace says of exchanges over HTTP: what was asked and answered, and of those that went
//! wrong, who let whom down.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::{Finish, Outcome};
use agent_trace_store::trace::{Exchange, Session as Run};
use support::http::{
    EVENTS, LAST_CHUNK, Origin, Pair, answer, chunk, get_events, json_answer, post, post_with,
};
use support::recorded::{ClientToServer, ServerToClient, failures, outcomes, steps, stream};
use support::{ANSWER, Home, REQUEST, wait_for};

const MODERN: &str =
    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: t\r\n";

/// Stops the relay; returns the one run that it has recorded.
#[track_caller]
fn recorded(pair: Pair) -> Run {
    let Pair { home, relay, .. } = pair;
    let ended = relay.stop();
    assert_eq!(ended.code, 0, "{ended:?}");
    let run = home.only_run();
    assert!(run.gaps.is_empty() && run.damage.is_empty(), "{run:?}");
    run
}

/// The one exchange of a run.
#[track_caller]
fn only_exchange(run: &Run) -> &Exchange {
    let all: Vec<&Exchange> = run.exchanges.values().collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

fn finish(exchange: &Exchange) -> Option<Finish> {
    exchange.finished.as_ref().map(|finished| finished.finish)
}

#[test]
fn a_call_with_its_answer_and_both_heads() {
    for headers in ["", MODERN] {
        let pair = Pair::new();
        pair.exchange(post_with(headers, REQUEST), json_answer(ANSWER));
        let run = recorded(pair);
        assert_eq!(steps(&run), ["tools/call t: ok"]);
        assert_eq!(stream(&run, ClientToServer), REQUEST.as_bytes());
        assert_eq!(stream(&run, ServerToClient), ANSWER.as_bytes());
        let exchange = only_exchange(&run);
        assert_eq!(finish(exchange), Some(Finish::Complete));
        assert_eq!(exchange.status(), Some(200));
        assert_eq!(exchange.content_type(), Some("application/json"));
        assert_eq!(exchange.request_header("host"), Some("localhost"));
    }
}

#[test]
fn an_answer_between_other_events() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send(EVENTS);
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}";
    server.send(chunk(format!(": first\n\nid: 1\ndata: {note}\n\n")));
    server.send(chunk(format!(
        "id: 2\nevent: message\ndata: {}\n\n",
        ANSWER.trim()
    )));
    server.send(LAST_CHUNK);
    client.read_message();
    let run = recorded(pair);
    assert_eq!(steps(&run), ["tools/call t: ok", "notifications/message"]);
}

#[test]
fn w07_w24_two_clients_with_equal_ids() {
    let pair = Pair::new();
    let call = |name: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"}}}}"
        )
    };
    let (mut first, mut one) = pair.connect(post(call("a")));
    one.read_message();
    let (mut second, mut other) = pair.connect(post(call("b")));
    other.read_message();
    let failed = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"b\"}}";
    other.send(json_answer(failed));
    second.read_message();
    one.send(json_answer(ANSWER));
    first.read_message();
    let run = recorded(pair);
    assert_eq!(steps(&run), ["tools/call a: ok", "tools/call b: error"]);
}

#[test]
fn w36_an_unknown_session_and_w33_a_method_that_is_not_allowed() {
    let pair = Pair::new();
    let gone = answer(
        "404 Not Found",
        "Content-Type: text/plain\r\n",
        "no such session",
    );
    pair.exchange(post_with("Mcp-Session-Id: old\r\n", REQUEST), gone);
    let refusal = answer("405 Method Not Allowed", "Allow: POST\r\n", "");
    pair.exchange(get_events("/mcp", ""), refusal);
    let Pair { home, relay, .. } = pair;
    relay.stop();
    let runs = home.runs();
    let statuses: Vec<u16> = runs
        .iter()
        .flat_map(|run| run.exchanges.values().filter_map(Exchange::status))
        .collect();
    assert!(
        statuses.contains(&404) && statuses.contains(&405),
        "{statuses:?}"
    );
    let all: Vec<Outcome> = runs.iter().flat_map(outcomes).collect();
    assert_eq!(all, [Outcome::Error]);
}

#[test]
fn w06_a_client_that_went_away_cancels_since_2026() {
    for (headers, outcome) in [("", Outcome::Unanswered), (MODERN, Outcome::Cancelled)] {
        let pair = Pair::new();
        let (client, mut server) = pair.connect(post_with(headers, REQUEST));
        server.read_message();
        client.close();
        server.wait_for_end();
        let run = recorded(pair);
        assert_eq!(outcomes(&run), [outcome], "{headers}");
        assert_eq!(finish(only_exchange(&run)), Some(Finish::ClientGone));
    }
}

#[test]
fn a_server_that_breaks_off() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send(EVENTS);
    server.send(chunk("data: {\"jsonrpc\":"));
    client.read_head();
    server.reset();
    client.read_to_end();
    let run = recorded(pair);
    assert_eq!(finish(only_exchange(&run)), Some(Finish::ServerBroke));
    assert!(!failures(&run).is_empty());
}

#[test]
fn a_server_that_is_not_there() {
    let home = Home::new();
    let origin = Origin::new();
    let url = origin.url();
    drop(origin);
    let relay = home.relay(url).start();
    assert_eq!(relay.ask(post(REQUEST)).status(), 502);
    relay.stop();
    let run = home.only_run();
    assert_eq!(steps(&run), ["tools/call t: error"]);
    let exchange = only_exchange(&run);
    assert_eq!(finish(exchange), Some(Finish::Unreachable));
    assert_eq!(exchange.status(), Some(502));
}

#[test]
fn w43_a_stranger() {
    let pair = Pair::new();
    let request = post_with("Origin: https://evil.example\r\n", REQUEST);
    assert_eq!(pair.relay.ask(request).status(), 403);
    let run = recorded(pair);
    let exchange = only_exchange(&run);
    assert_eq!(finish(exchange), Some(Finish::Refused));
    assert_eq!(exchange.status(), Some(403));
    assert_eq!(
        exchange.request_header("origin"),
        Some("https://evil.example")
    );
}

#[test]
fn an_endpoint_that_was_moved() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(get_events("/sse", ""));
    server.read_head();
    server.send(EVENTS);
    let uri = format!("{}/message", pair.origin.url());
    server.send(chunk(format!("event: endpoint\ndata: {uri}\n\n")));
    client.read_head();
    client.read_until("/message\n\n");
    // What is forwarded is recorded a moment later, and a test can be faster than that.
    wait_for("the session", || {
        (!pair.home.store_runs().is_empty()).then_some(())
    });
    // The answer comes on the stream, after the POST was accepted.
    let request = post(REQUEST);
    let request = String::from_utf8(request)
        .unwrap()
        .replace("/mcp", "/message");
    pair.exchange(request, answer("202 Accepted", "", ""));
    server.send(chunk(format!(
        "event: message\ndata: {}\n\n",
        ANSWER.trim()
    )));
    client.read_until("\n\n\r\n");
    server.send(LAST_CHUNK);
    client.read_until(LAST_CHUNK);
    let run = recorded(pair);
    assert_eq!(steps(&run), ["GET /sse", "tools/call t: ok"]);
    let altered: Vec<_> = run
        .exchanges
        .values()
        .flat_map(|exchange| &exchange.altered)
        .map(|(_, altered)| (&altered.from[..], &altered.to[..]))
        .collect();
    assert_eq!(altered, [(&uri[..], "http://localhost/message")]);
}
