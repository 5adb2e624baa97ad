//! Real servers and real clients that speak HTTP notice nothing: a client sees through the relay
//! what it sees without, in each revision and over each transport.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Outcome;
use agent_trace_store::trace::Step;
use agent_trace_store::trace::step::StepKind;
use support::http_peers::{
    Serving, drive_typescript, everything, fixture, inspect_url, python_sdk,
};
use support::peers::Peers::{self, Node, Python};
use support::peers::{drive, missing};
use support::{Home, Said, recorded, skip};

/// A server, and the path under which it is called.
type Server = (fn(&Home) -> Serving, &'static str);

const STREAMABLE: Server = (|home| everything(home, "streamableHttp"), "/mcp");
const SSE: Server = (|home| everything(home, "sse"), "/sse");
const PYTHON_SDK: Server = (python_sdk, "/mcp");
const FIXTURE: Server = (fixture, "/mcp");

/// What a client does with the server at a URL.
type Client<'a> = &'a dyn Fn(&Home, &str) -> Said;

/// Lets a client do the same with a server directly, and with another one through so many relays.
#[track_caller]
fn unchanged_through(relays: usize, name: &str, needs: &[Peers], server: Server, client: Client) {
    if let Some(reason) = needs.iter().find_map(|peers| missing(*peers)) {
        return skip(name, reason);
    }
    let (start, path) = server;
    let home = Home::new();
    let direct = {
        let server = start(&home);
        client(&home, &format!("{}{path}", server.url()))
    };
    assert_eq!(direct.code, 0, "without the relay: {direct:?}");
    assert!(!home.store_folder().exists());

    let server = start(&home);
    let mut url = server.url();
    let mut between = Vec::new();
    for _ in 0..relays {
        let relay = home.relay(&url).start();
        url = relay.url();
        between.push(relay);
    }
    let relayed = client(&home, &format!("{url}{path}"));
    let said: Vec<String> = between.iter().map(|relay| relay.session.errors()).collect();
    assert_eq!(relayed.code, 0, "{relayed:?} {said:?}");
    let (mut before, mut after) = (direct.out.lines(), relayed.out.lines());
    loop {
        match (before.next(), after.next()) {
            (None, None) => break,
            (before, after) => assert_eq!(after, before, "{said:?}"),
        }
    }
    for relay in between.into_iter().rev() {
        let ended = relay.stop();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    is_recorded(&home, relays, &direct);
}

/// The trace has every call that the client printed, with its answer, once for each relay.
#[track_caller]
fn is_recorded(home: &Home, relays: usize, direct: &Said) {
    let runs = home.runs();
    let steps: Vec<&Step> = runs.iter().flat_map(|run| run.steps.iter()).collect();
    for run in &runs {
        assert!(run.gaps.is_empty() && run.damage.is_empty(), "{run:?}");
        assert_eq!(run.end.as_ref().map(|end| end.lost), Some(0));
    }
    let lines = direct.out.lines();
    let taken = lines.filter(|line| line.contains("\"step\": \"tools/call"));
    let calls = steps.iter().filter(|step| step.tool().is_some());
    assert!(
        calls.count() >= relays * taken.count(),
        "all calls are there"
    );
    let odd: Vec<String> = runs
        .iter()
        .flat_map(|run| run.steps.iter().zip(recorded::steps(run)))
        .filter(|(step, _)| {
            step.outcome == Outcome::Unanswered
                || matches!(
                    step.kind,
                    StepKind::Answer | StepKind::Other | StepKind::Stray
                )
        })
        .map(|(_, text)| text)
        .collect();
    assert_eq!(odd, [""; 0], "every answer has its request");
}

#[track_caller]
fn unchanged(name: &str, needs: &[Peers], server: Server, client: Client) {
    unchanged_through(1, name, needs, server, client);
}

/// The Python client in a scenario.
fn python(scenario: &'static str) -> impl Fn(&Home, &str) -> Said {
    move |home, url| drive(home, scenario, &[url.into()])
}

#[test]
fn the_typescript_client_over_streamable_http() {
    let name = "the_typescript_client_over_streamable_http";
    unchanged(name, &[Node], STREAMABLE, &drive_typescript);
}

#[test]
fn the_typescript_client_over_the_older_event_stream() {
    let name = "the_typescript_client_over_the_older_event_stream";
    unchanged(name, &[Node], SSE, &drive_typescript);
}

#[test]
fn the_python_client_over_streamable_http() {
    let name = "the_python_client_over_streamable_http";
    unchanged(name, &[Node, Python], STREAMABLE, &python("everything"));
}

#[test]
fn the_python_client_that_falls_back_to_an_older_revision() {
    let name = "the_python_client_that_falls_back_to_an_older_revision";
    let client = python("modern-everything");
    unchanged(name, &[Node, Python], STREAMABLE, &client);
}

#[test]
fn the_python_client_over_the_older_event_stream() {
    let name = "the_python_client_over_the_older_event_stream";
    unchanged(name, &[Node, Python], SSE, &python("everything"));
}

#[test]
fn a_server_of_the_python_sdk_in_both_eras() {
    let name = "a_server_of_the_python_sdk_in_both_eras";
    unchanged(name, &[Python], PYTHON_SDK, &python("own"));
    unchanged(name, &[Python], PYTHON_SDK, &python("modern-own"));
}

#[test]
fn a_server_of_the_rust_sdk_that_asks_in_rounds() {
    let name = "a_server_of_the_rust_sdk_that_asks_in_rounds";
    unchanged(name, &[Python], FIXTURE, &python("rounds"));
}

#[test]
fn the_inspector() {
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "echo",
        "--tool-arg",
        "message=hällo",
    ];
    let list = ["--method", "tools/list"];
    for options in [&list[..], &call] {
        for (server, transport) in [(STREAMABLE, "http"), (SSE, "sse")] {
            let client = |home: &Home, url: &str| {
                let options = [&["--transport", transport], options].concat();
                inspect_url(home, url, &options)
            };
            unchanged("the inspector over HTTP", &[Node], server, &client);
        }
    }
}

#[test]
fn two_relays_in_series() {
    let name = "two_relays_in_series";
    let client = python("everything");
    unchanged_through(2, name, &[Node, Python], STREAMABLE, &client);
    unchanged_through(2, name, &[Node, Python], SSE, &client);
    unchanged_through(2, name, &[Python], PYTHON_SDK, &python("modern-own"));
}
