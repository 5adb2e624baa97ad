//! The MCP conformance suite comes to the same result through the relay as without it, check
//! by check: for a server in both eras, and for a client.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::thread::scope;
use support::http_peers::{
    check_client, check_server, differences, fixture, passed, suite_is_missing,
};
use support::peers::{Peers, folder, missing};
use support::{Home, skip};

/// How often a difference may be down to time.
const ATTEMPTS: usize = 3;

/// Tests the example server for what a revision requires, directly and through the relay.
/// `all` is how many checks pass directly; fewer mean that the test proves less than it did.
fn server(revision: &str, all: usize) {
    if let Some(reason) = suite_is_missing() {
        return skip(&format!("conformance of a server, {revision}"), reason);
    }
    let home = Home::new();
    let (server, other) = (fixture(&home), fixture(&home));
    let relay = home.relay(other.url()).start();
    let check = |base: String, out: &str| {
        check_server(&home, &format!("{base}/mcp"), revision, &home.at(out))
    };
    // Some checks of the suite have time limits of their own, which a busy machine misses with
    // and without a relay. What a relay changes differs each time.
    let mut faults = Vec::new();
    for attempt in 1..=ATTEMPTS {
        let out = format!("direct-{attempt}");
        let (direct, relayed) = scope(|threads| {
            let direct = threads.spawn(|| check(server.url(), &out));
            let relayed = check(relay.url(), &format!("relayed-{attempt}"));
            (direct.join().unwrap(), relayed)
        });
        faults = differences(&direct, &relayed);
        if passed(&direct) < all {
            faults.push(format!("{} pass: {direct:#?}", passed(&direct)));
        }
        if faults.is_empty() {
            break;
        }
    }
    assert_eq!(faults, [""; 0]);
    let ended = relay.stop();
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn of_a_server_for_2025_11_25() {
    // All checks of this requirement set, the ones that are not scored too.
    server("2025-11-25", 84);
}

#[test]
fn of_a_server_for_2026_07_28() {
    // All but one, which the suite itself skips.
    server("2026-07-28", 197);
}

/// Watches the Python client in a scenario, with the relay between it and the suite's server.
fn client(scenario: &str, all: usize) {
    let reason = suite_is_missing().or_else(|| missing(Peers::Python));
    if let Some(reason) = reason {
        return skip(&format!("conformance of a client, {scenario}"), reason);
    }
    let home = Home::new();
    let python = folder().join(".venv/bin/python");
    let script = folder().join("conformance_client.py");
    let command = format!("{} {}", python.display(), script.display());
    let direct = check_client(&home, scenario, &command, &home.at("direct"));
    let relay = env!("CARGO_BIN_EXE_agent-trace");
    let command = format!("{command} {relay}");
    let relayed = check_client(&home, scenario, &command, &home.at("relayed"));
    let said = std::fs::read_to_string(home.at("said")).unwrap();
    assert_eq!(differences(&direct, &relayed), [""; 0], "{said}");
    assert!(passed(&direct) >= all, "{direct:#?}");
}

#[test]
fn of_a_client_that_initializes() {
    client("initialize", 1);
}

#[test]
fn of_a_client_that_calls_a_tool() {
    client("tools_call", 2);
}

#[test]
fn of_a_client_that_resumes_a_stream() {
    client("sse-retry", 3);
}

#[test]
fn of_a_client_of_2026_07_28() {
    client("request-metadata", 5);
}
