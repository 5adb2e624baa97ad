//! What stands before our MCP server (transport, keys, limits, the log of calls) lets everything
//! through that the protocol has: the conformance suite finds nothing wrong but what is listed,
//! with its reason, in `tests/peers/expected-failures.yaml`.
//!
//! Behind it is the example that has the tools, prompts and resources which the suite calls. The
//! suite sends no key, so a small program between adds it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use support::http_peers::{
    check_server_as_listed, guarded_fixture, passed, suite_is_missing, with_key,
};
use support::{Home, skip};

/// How often a failure may be down to time: the suite has limits that a busy machine misses.
const ATTEMPTS: usize = 3;

/// `all` is how many checks pass; fewer mean that the test proves less than it did.
fn conforms(revision: &str, all: usize) {
    if let Some(reason) = suite_is_missing() {
        return skip(&format!("conformance of our server, {revision}"), reason);
    }
    let home = Home::new();
    let key = home.at("key");
    let words = ["key", "create", "--name", "suite", "--scopes", "runs:read"];
    let more = ["--limit", "10000/min", "--key-file", key.to_str().unwrap()];
    home.ok(words.iter().chain(&more));
    let server = guarded_fixture(&home);
    let between = with_key(&home, &server, &key);
    let url = format!("{}/mcp", between.url());
    let mut said = String::new();
    for attempt in 1..=ATTEMPTS {
        let out = home.at(format!("out-{attempt}"));
        match check_server_as_listed(&home, &url, revision, &out) {
            Ok(checks) if passed(&checks) >= all => {
                was_let_in(&home);
                return;
            }
            Ok(checks) => said = format!("{} pass: {checks:#?}", passed(&checks)),
            Err(failures) => said = failures,
        }
    }
    panic!("{said}");
}

/// Each request went through the gate: it is in the log with the key and what came of it.
#[track_caller]
fn was_let_in(home: &Home) {
    let log = std::fs::read_to_string(home.at("store/state/audit")).unwrap();
    for (what, outcome) in [
        ("tools/list", "ok"),
        ("prompts/get", "ok"),
        ("resources/read", "ok"),
        ("completion/complete", "ok"),
        ("test_simple_text", "ok"),
        ("test_tool_with_progress", "ok"),
        ("test_error_handling", "error"),
    ] {
        let mut lines = log.lines();
        let expected = format!("\"outcome\":\"{outcome}\"");
        let found = lines.any(|line| {
            line.contains("\"who\":\"suite\"")
                && line.contains(&format!("\"tool\":\"{what}\""))
                && line.contains(&expected)
        });
        assert!(found, "{what}: {log}");
    }
}

#[test]
fn to_2025_11_25() {
    conforms("2025-11-25", 63);
}

#[test]
fn to_2026_07_28() {
    // All but one, which the suite itself skips.
    conforms("2026-07-28", 197);
}
