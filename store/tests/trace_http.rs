//! Journals that hold HTTP sessions become runs, and their steps are paired rightly in every
//! revision of the protocol.

#![allow(clippy::unwrap_used)]

#[path = "trace_http/journal.rs"]
mod journal;

use agent_trace_analysis::outcomes::Failure;
use agent_trace_model::Stream::{ClientToServer, ServerToClient};
use agent_trace_model::{Ending, Finish, Outcome};
use agent_trace_store::journal::header::{KeyKind, Meta, NotDecoded};
use agent_trace_store::trace::session::Standing;
use agent_trace_store::trace::{Sessions, run_id};
use agent_trace_wire::message::member;
use journal::{Journal, START, failures, steps};

const MODERN: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

fn result(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn data(text: &str) -> String {
    format!("event: message\ndata: {text}\n\n")
}

#[test]
fn each_session_of_a_process_is_a_run() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.post(1, 1, &call(1, "a"), 200, &result(1));
    j.open(2, KeyKind::Caller);
    j.post(2, 2, &call(1, "b"), 200, &result(1));
    j.gap(0, 100);
    j.post(1, 3, &call(2, "c"), 200, &result(2));
    j.end(1, Ending::ClientClosed);
    j.open(3, KeyKind::Caller);
    let runs = j.runs();
    let live = |j: &Journal| -> Vec<bool> { j.runs().iter().map(|run| run.entry.live).collect() };
    assert_eq!(live(&j), [false, true, true]);
    assert_eq!(
        steps(&runs[0]),
        ["tools/call a 200 ok", "tools/call c 200 ok"]
    );
    assert_eq!(steps(&runs[1]), ["tools/call b 200 ok"]);
    assert_eq!(steps(&runs[2]), [""; 0]);
    let gaps: Vec<usize> = runs.iter().map(|run| run.gaps.len()).collect();
    assert_eq!(gaps, [1, 1, 0], "of those that it fell into");
    for (run, ordinal) in runs.iter().zip(1..) {
        assert_eq!(run.entry.session.ordinal, ordinal);
        assert_eq!(run.entry.id, run_id("default", run.entry.session));
        assert!(run.entry.http && run.is_whole());
    }
    assert_eq!(runs[0].entry.started, START);
    assert_eq!(runs[1].entry.started, runs[1].opening.started);
    assert_eq!(runs[0].standing(), Standing::Ended);
    assert_eq!(
        (&runs[0].client()[..], runs[0].server()),
        ("inspector", "tools.example:9000")
    );
    j.close();
    assert_eq!(live(&j), [false, false, false]);
    assert_eq!(j.runs()[1].standing(), Standing::CutOff);

    // All in one pass, and each where it was asked for.
    let entries = j.store().list().unwrap().runs;
    let mut found = vec![None; entries.len()];
    j.store().open_each(&entries, &mut |at, run| {
        found[at] = Some(run.unwrap().entry.id);
    });
    let ids: Vec<_> = entries.iter().map(|entry| Some(entry.id)).collect();
    assert_eq!(found, ids);
}

#[test]
fn a_session_goes_on_over_several_files() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.request(1, 1, "POST", &[]);
    j.asks(1, 1, &call(1, "a"));
    j.roll();
    j.open(1, KeyKind::McpSession);
    j.open(2, KeyKind::McpSession);
    j.answers(1, 1, &result(1));
    j.finish(1, 1, Finish::Complete);
    let runs = j.runs();
    assert_eq!(steps(&runs[0]), ["tools/call a ok"]);
    let files: Vec<usize> = runs.iter().map(|run| run.entry.segments.len()).collect();
    assert_eq!(files, [2, 1]);
    assert!(
        runs.iter().all(|run| run.is_whole()),
        "no hole before the second file"
    );
}

#[test]
fn a_missing_record_counts_for_those_whose_time_it_falls_in() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.end(1, Ending::Idle);
    j.open(2, KeyKind::McpSession);
    j.skip();
    j.post(2, 1, &call(1, "a"), 200, &result(1));
    let missing: Vec<u64> = j.runs().iter().map(|run| run.missing).collect();
    assert_eq!(missing, [0, 1]);
}

#[test]
fn a_relay_that_was_never_called_is_no_run() {
    let mut j = Journal::new();
    assert_eq!(j.runs().len(), 0);
    j.gap(0, 1);
    assert_eq!(j.runs().len(), 0);
}

#[test]
fn w24_equal_ids_of_two_clients_are_two_calls() {
    let mut j = Journal::new();
    j.open(1, KeyKind::Caller);
    j.request(1, 1, "POST", &[]);
    j.asks(1, 1, &call(1, "first"));
    j.request(1, 2, "POST", &[]);
    j.asks(1, 2, &call(1, "second"));
    j.response(1, 2, 200, &[]);
    j.answers(1, 2, r#"{"id":1,"result":{"isError":true}}"#);
    j.finish(1, 2, Finish::Complete);
    j.response(1, 1, 200, &[]);
    j.answers(1, 1, &result(1));
    j.finish(1, 1, Finish::Complete);
    // An answer elsewhere is none.
    j.request(1, 3, "POST", &[]);
    j.asks(1, 3, &call(1, "third"));
    j.stream(1, 4, "");
    j.event(1, 4, &data(&result(1)));
    j.response(1, 3, 200, &[]);
    j.finish(1, 3, Finish::Complete);
    let run = j.run();
    assert_eq!(
        steps(&run),
        [
            "tools/call first 200 ok",
            "tools/call second 200 tool_error",
            "tools/call third 200 unanswered",
            "GET /mcp 200 pending",
            "answer ok",
        ]
    );
    assert!(run.steps[0].duration > run.steps[1].duration);
}

#[test]
fn an_answer_may_come_on_another_stream_of_the_session() {
    for kind in [KeyKind::McpSession, KeyKind::Endpoint] {
        let mut j = Journal::new();
        j.open(1, kind);
        j.stream(1, 1, "");
        j.event(1, 1, "event: endpoint\ndata: /message?sessionId=x\n\n");
        j.post(1, 2, &call(1, "a"), 202, "");
        j.event(1, 1, &data(&result(1)));
        // The same id once more, answered where it was asked.
        j.stream(1, 3, &call(2, "b"));
        j.stream(1, 4, &call(2, "c"));
        j.event(1, 3, &data(r#"{"id":2,"error":{"code":1}}"#));
        j.event(1, 4, &data(&result(2)));
        let found = steps(&j.run());
        let expected = [
            "GET /mcp 200 pending",
            "tools/call a 202 ok",
            "tools/call b 200 error",
            "tools/call c 200 ok",
        ];
        assert_eq!(found, expected, "{kind:?}");
    }
}

#[test]
fn w30_what_is_repeated_on_a_resumed_stream_is_no_step_again() {
    let mut j = Journal::new();
    let log = |n: u32| {
        format!(
            "id: {n}\ndata: {{\"method\":\"notifications/message\",\"params\":{{\"n\":{n}}}}}\n\n"
        )
    };
    j.open(1, KeyKind::McpSession);
    j.stream(1, 1, &call(1, "a"));
    j.event(1, 1, "id: 0\ndata:\n\n");
    j.event(1, 1, ": comment\n\n");
    j.event(1, 1, &log(1));
    j.event(1, 1, &log(2));
    j.finish(1, 1, Finish::ServerBroke);
    assert_eq!(
        j.run().steps[0].outcome,
        Outcome::Pending,
        "it may be resumed"
    );
    j.request(1, 2, "GET", &[("Last-Event-ID", "1")]);
    j.response(1, 2, 200, &[("content-type", "text/event-stream")]);
    j.event(1, 2, &log(2));
    j.event(1, 2, &log(3));
    j.event(1, 2, &format!("id: 4\ndata: {}\n\n", result(1)));
    // Without Last-Event-ID equal ids mean nothing.
    j.stream(1, 3, "");
    j.event(1, 3, &log(3));
    let run = j.run();
    assert_eq!(
        steps(&run),
        [
            "tools/call a 200 ok",
            "notifications/message ok",
            "notifications/message ok",
            "GET /mcp 200 pending",
            "notifications/message ok",
            "GET /mcp 200 pending",
            "notifications/message ok",
        ]
    );
    assert_eq!(run.frames.len(), 9, "every frame is kept");
}

#[test]
fn w36_a_session_that_the_server_forgot() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.post(
        1,
        1,
        &call(1, "a"),
        404,
        r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#,
    );
    j.post(1, 2, &call(2, "b"), 404, "");
    j.end(1, Ending::ServerForgot);
    let run = j.run();
    assert_eq!(
        steps(&run),
        ["tools/call a 404 error", "tools/call b 404 error"]
    );
    assert!(
        member(run.steps[0].response(&run.frames).unwrap(), "error").is_some(),
        "the error without id is its answer"
    );
    assert_eq!(failures(&run), [], "the client goes on in a new session");
}

#[test]
fn requests_of_the_server_are_answered_in_another_post() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.stream(1, 1, &call(1, "a"));
    j.event(
        1,
        1,
        &data(r#"{"id":1,"method":"elicitation/create","params":{}}"#),
    );
    j.post(1, 2, &result(1), 202, "");
    j.event(1, 1, &data(r#"{"id":1,"result":{"isError":true}}"#));
    j.finish(1, 1, Finish::Complete);
    assert_eq!(
        steps(&j.run()),
        ["tools/call a 200 tool_error", "elicitation/create ok"]
    );
}

#[test]
fn rounds_of_input_are_one_step() {
    let ask = |id: u32, more: &str| {
        format!(
            r#"{{"id":{id},"method":"tools/call","params":{{"name":"a","arguments":{{"x":1}}{more}}}}}"#
        )
    };
    let wants = |id: u32, state: &str| {
        format!(
            r#"{{"id":{id},"result":{{"resultType":"input_required","inputRequests":{{}}{state}}}}}"#
        )
    };
    for state in ["", r#","requestState":"s""#] {
        let mut j = Journal::new();
        j.open(1, KeyKind::Caller);
        j.post(1, 1, &ask(1, r#","_meta":{"a":1}"#), 200, &wants(1, state));
        // The same call of somebody else is another one.
        j.post(1, 2, &ask(2, ""), 200, &result(2));
        let again = format!(r#","inputResponses":{{}}{state},"_meta":{{"a":2}}"#);
        assert_eq!(j.run().steps[0].outcome, Outcome::Pending);
        j.post(1, 3, &ask(3, &again), 200, &wants(3, state));
        j.post(1, 4, &ask(4, &again), 200, &result(4));
        j.post(1, 5, &ask(5, ""), 200, &wants(5, state));
        j.end(1, Ending::Idle);
        let run = j.run();
        assert_eq!(
            steps(&run),
            [
                "tools/call a 200 ok 3 rounds",
                "tools/call a 200 ok",
                "tools/call a 200 cancelled",
            ],
            "{state}"
        );
        let duration = run.steps[0].duration.unwrap();
        assert!(
            duration > run.steps[1].duration.unwrap() * 5,
            "from the first to the last"
        );
    }
}

#[test]
fn a_round_may_begin_before_the_exchange_of_the_one_before_ends() {
    let wants = r#"{"id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    let again = r#"{"id":2,"method":"tools/call","params":{"name":"a","requestState":"s"}}"#;
    for finish in [Finish::ClientGone, Finish::Complete] {
        let mut j = Journal::new();
        j.open(1, KeyKind::Caller);
        let ask = |j: &mut Journal, exchange, text: &str| {
            j.request(1, exchange, "POST", &[MODERN]);
            j.asks(1, exchange, text);
            j.response(1, exchange, 200, &[("content-type", "text/event-stream")]);
        };
        ask(&mut j, 1, &call(1, "a"));
        j.event(1, 1, &data(wants));
        ask(&mut j, 2, again);
        j.finish(1, 1, finish);
        j.event(1, 2, &data(&result(2)));
        j.finish(1, 2, Finish::Complete);
        assert_eq!(steps(&j.run()), ["tools/call a 200 ok 2 rounds"]);
    }
}

#[test]
fn a_server_that_ends_a_legacy_stream_has_not_crashed() {
    let mut j = Journal::new();
    j.open(1, KeyKind::Endpoint);
    j.stream(1, 1, "");
    j.finish(1, 1, Finish::Complete);
    j.end(1, Ending::ServerExited);
    let run = j.run();
    assert_eq!(run.standing(), Standing::Ended);
    assert_eq!(failures(&run), []);
}

#[test]
fn a_client_that_goes_away_cancels_in_the_new_revision_only() {
    let outcome = |kind, headers: &[(&str, &str)], ask: &str| {
        let mut j = Journal::new();
        j.open(1, kind);
        j.request(1, 1, "POST", headers);
        j.asks(1, 1, ask);
        j.response(1, 1, 200, &[("content-type", "text/event-stream")]);
        j.finish(1, 1, Finish::ClientGone);
        let before = j.run().steps[0].outcome;
        j.end(1, Ending::Idle);
        (before, j.run().steps[0].outcome)
    };
    use Outcome::{Cancelled, Ok, Pending, Unanswered};
    let old = ("MCP-Protocol-Version", "2025-11-25");
    let of_body = r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let listen = r#"{"id":1,"method":"subscriptions/listen"}"#;
    let ask = call(1, "a");
    let cases = [
        (
            KeyKind::Caller,
            &[MODERN][..],
            &ask[..],
            (Cancelled, Cancelled),
        ),
        (KeyKind::Caller, &[], of_body, (Cancelled, Cancelled)),
        (KeyKind::Caller, &[MODERN], listen, (Ok, Ok)),
        (KeyKind::Caller, &[old], &ask, (Unanswered, Unanswered)),
        (KeyKind::McpSession, &[old], &ask, (Pending, Unanswered)),
    ];
    for (kind, headers, ask, expected) in cases {
        assert_eq!(
            outcome(kind, headers, ask),
            expected,
            "{kind:?} {headers:?} {ask}"
        );
    }
}

#[test]
fn a_status_is_an_answer_where_there_is_no_other() {
    let mut j = Journal::new();
    j.open(1, KeyKind::Caller);
    let initialize = |id| format!(r#"{{"id":{id},"method":"initialize","params":{{}}}}"#);
    j.request(1, 1, "POST", &[]);
    j.asks(1, 1, &initialize(1));
    j.response(1, 1, 401, &[("www-authenticate", "Bearer")]);
    j.says(1, 1, "go away");
    j.finish(1, 1, Finish::Complete);
    // Without a look at the body.
    j.request(1, 2, "POST", &[]);
    j.response(1, 2, 401, &[]);
    j.finish(1, 2, Finish::Complete);
    j.request(1, 3, "GET", &[]);
    j.response(1, 3, 405, &[("allow", "POST")]);
    j.finish(1, 3, Finish::Complete);
    j.post(1, 4, r#"{"id":2,"method":"server/discover"}"#, 400, "");
    j.post(
        1,
        5,
        r#"{"id":3,"method":"tools/list"}"#,
        400,
        r#"{"id":3,"error":{"code":-32020}}"#,
    );
    let run = j.run();
    assert_eq!(
        steps(&run),
        [
            "initialize 401 error",
            "POST /mcp 401 error",
            "GET /mcp 405 ok",
            "server/discover 400 ok",
            "tools/list 400 ok",
        ]
    );
    assert_eq!(run.steps[0].response(&run.frames), Some(&b"go away"[..]));
    let refused = |method: &str, step| Failure::RefusedInHttp {
        method: method.into(),
        step,
    };
    assert_eq!(
        failures(&run),
        [refused("initialize", 1), refused("POST", 2)]
    );
    j.post(
        1,
        6,
        &initialize(4),
        200,
        r#"{"id":4,"result":{"protocolVersion":"2025-06-18"}}"#,
    );
    let run = j.run();
    assert_eq!(failures(&run), [], "what came later made it good");
    assert_eq!(run.revision().as_deref(), Some("2025-06-18"));
}

#[test]
fn what_breaks_fails_the_request() {
    let end = |finish, status: Option<u16>| {
        let mut j = Journal::new();
        j.open(1, KeyKind::Caller);
        j.request(1, 1, "POST", &[]);
        j.asks(1, 1, &call(1, "a"));
        if let Some(status) = status {
            j.response(1, 1, status, &[("content-type", "application/json")]);
            j.answers(1, 1, r#"{"error":"server not reached"}"#);
        }
        j.finish(1, 1, finish);
        let run = j.run();
        assert_eq!(run.steps.len(), 1);
        let tool = "a".to_owned();
        let failed = failures(&run) == [Failure::LastCallFailed { tool, step: 1 }];
        (run.steps[0].outcome, failed)
    };
    assert_eq!(end(Finish::Unreachable, Some(502)), (Outcome::Error, true));
    assert_eq!(end(Finish::TimedOut, Some(504)), (Outcome::Timeout, true));
    assert_eq!(end(Finish::Complete, Some(500)), (Outcome::Error, true));
    assert_eq!(end(Finish::ServerBroke, None), (Outcome::Unanswered, true));
    assert_eq!(end(Finish::ClientGone, None), (Outcome::Unanswered, false));
}

#[test]
fn notifications_have_the_status_that_they_got() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    j.post(1, 1, initialized, 202, "");
    j.post(
        1,
        2,
        initialized,
        400,
        r#"{"error":{"code":-32600},"id":null}"#,
    );
    let run = j.run();
    assert_eq!(
        steps(&run),
        [
            "notifications/initialized 202 ok",
            "notifications/initialized 400 error"
        ]
    );
    assert_eq!(failures(&run).len(), 1);
}

#[test]
fn w25_a_batch_in_one_post_is_answered_as_a_batch_or_as_events() {
    let batch = format!("[{},{}]", call(1, "a"), call(2, "b"));
    let mut j = Journal::new();
    j.open(1, KeyKind::Caller);
    j.post(1, 1, &batch, 200, &format!("[{},{}]", result(2), result(1)));
    j.stream(1, 2, &batch);
    j.event(1, 2, &data(&result(2)));
    j.event(
        1,
        2,
        "data: {\"id\":1,\ndata: \"result\":{\"n\":\ndata: 1}}\n\n",
    );
    j.finish(1, 2, Finish::Complete);
    j.post(1, 3, &batch, 400, r#"{"error":{"code":-32600},"id":null}"#);
    let run = j.run();
    let (good, bad) = (
        ["tools/call a 200 ok", "tools/call b 200 ok"],
        ["tools/call a 400 error", "tools/call b 400 error"],
    );
    assert_eq!(steps(&run), [good, good, bad].concat());
    let several = run.steps[2].response(&run.frames).unwrap();
    assert_eq!(
        several, b"{\"id\":1,\n\"result\":{\"n\":\n1}}",
        "data on several lines"
    );
}

#[test]
fn exchanges_without_messages_are_steps() {
    let mut j = Journal::new();
    j.open(1, KeyKind::McpSession);
    j.stream(1, 1, "");
    j.request(1, 2, "GET", &[]);
    j.response(1, 2, 200, &[("content-type", "application/json")]);
    j.answers(1, 2, r#"{"resource":"http://x"}"#);
    j.finish(1, 2, Finish::Complete);
    j.post(1, 3, r#"{"grant":1}"#, 400, r#"{"error":"invalid_grant"}"#);
    j.request(1, 4, "DELETE", &[]);
    j.response(1, 4, 200, &[]);
    j.finish(1, 4, Finish::Complete);
    j.finish(1, 1, Finish::ClientGone);
    j.end(1, Ending::ClientClosed);
    let run = j.run();
    assert_eq!(
        steps(&run),
        [
            "GET /mcp 200 ok",
            "GET /mcp 200 ok",
            "POST /mcp 400 error",
            "DELETE /mcp 200 ok"
        ]
    );
    assert_eq!(
        run.steps[1].response(&run.frames),
        Some(&br#"{"resource":"http://x"}"#[..])
    );
    assert_eq!(run.steps[2].request(&run.frames), br#"{"grant":1}"#);
    assert!(run.steps[0].duration > run.steps[2].duration);
    assert_eq!(
        run.exchanges[&4].finished.as_ref().unwrap().finish,
        Finish::Complete
    );
}

#[test]
fn what_could_not_be_decoded_is_not_called_unanswered() {
    let mut j = Journal::new();
    j.open(1, KeyKind::Caller);
    j.request(1, 1, "POST", &[]);
    j.asks(1, 1, &call(1, "a"));
    j.response(1, 1, 200, &[("content-encoding", "x-unknown")]);
    let what = NotDecoded {
        coding: "x-unknown".into(),
        reason: "unknown".into(),
    };
    j.fact(1, 1, ServerToClient, &Meta::NotDecoded(what.clone()));
    j.finish(1, 1, Finish::Complete);
    let run = j.run();
    assert_eq!(steps(&run), ["tools/call a 200 not_recorded"]);
    assert_eq!(run.exchanges[&1].not_decoded, [(ServerToClient, what)]);
    assert_eq!(run.exchanges[&1].request.as_ref().unwrap().method, "POST");
    assert_eq!(run.steps[0].from, ClientToServer);
}

#[test]
fn w29_a_cancel_comes_in_a_request_of_its_own() {
    for kind in [KeyKind::McpSession, KeyKind::Caller] {
        let mut j = Journal::new();
        j.open(1, kind);
        j.stream(1, 1, &call(1, "a"));
        j.post(
            1,
            2,
            r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#,
            202,
            "",
        );
        assert_eq!(j.run().steps[0].outcome, Outcome::Cancelled, "{kind:?}");
        j.event(1, 1, &data(&result(1)));
        let run = j.run();
        assert_eq!(run.steps[0].outcome, Outcome::Cancelled);
        assert!(run.steps[0].closed.is_some(), "the late answer is known");
    }
}
