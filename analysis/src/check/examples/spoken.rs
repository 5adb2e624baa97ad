//! Rules about messages and their pairing.

use super::super::{Party, Severity};
use super::case::Case;
use agent_trace_model::step::Framing;
use agent_trace_model::story::{Gap, Line, Standing};
use agent_trace_model::{Ending, Outcome, Stream};

use Stream::{ClientToServer as C, ServerToClient as S};

/// A session of 2025-11-25 in which all is well.
fn fine() -> Case {
    let mut case = Case::of("2025-11-25");
    case.ask("1", "tools/list", "{}").answer(r#"{"tools":[]}"#);
    case.ask("\"1\"", "tools/call", r#"{"name":"t"}"#)
        .answer(r#"{"content":[]}"#);
    case.is_fine();
    case
}

#[test]
fn what_came_of_requests() {
    let mut case = fine();
    case.ask("2", "resources/read", r#"{"uri":"a:b"}"#)
        .fail(r#"{"code":-32002,"message":"no such thing"}"#);
    case.ask("3", "tools/call", r#"{"name":"t"}"#)
        .answer(r#"{"isError":true,"content":[]}"#);
    case.ask("4", "tools/call", r#"{"name":"t"}"#);
    assert_eq!(case.codes(), ["error", "tool-error", "unanswered"]);
    let findings = case.findings();
    assert_eq!(
        findings[0].what,
        "resources/read a:b was answered with error -32002"
    );
    assert_eq!(
        findings[0].quote.text,
        r#"{"code":-32002,"message":"no such thing"}"#
    );
    assert_eq!(
        (findings[0].party, findings[0].step),
        (Party::Server, Some(5))
    );
    assert_eq!(findings[1].tool.as_deref(), Some("t"));
    // The client went away: not the server's doing.
    assert_eq!(findings[2].party, Party::Client);
    assert!(
        findings[2]
            .what
            .ends_with("the client ended the session first")
    );
}

#[test]
fn negotiation_and_cancelled_requests_are_fine() {
    let mut case = fine();
    case.ask_modern("5", "server/discover", "")
        .fail(r#"{"code":-32601,"message":"?"}"#)
        .step()
        .outcome = Outcome::Ok;
    case.ask("6", "tools/list", "{}").step().outcome = Outcome::Cancelled;
    case.is_fine();
}

#[test]
fn what_took_too_long() {
    let mut case = fine();
    case.ask("6", "tools/call", r#"{"name":"t"}"#);
    let step = case.step();
    (step.cancel_sent, step.outcome) = (true, Outcome::Timeout);
    assert_eq!(case.codes(), ["timeout"]);
    case.step().outcome = Outcome::Crashed;
    assert_eq!(case.codes(), ["unanswered"]);
    assert!(case.findings()[0].what.ends_with("the server crashed"));
}

#[test]
fn a_crash_is_told_with_the_servers_last_words() {
    let mut case = fine();
    case.session().standing = Standing::Crashed;
    let end = case.session().end.as_mut().unwrap();
    (end.ending, end.exit_code) = (Ending::ServerExited, Some(3));
    case.session().stderr.push(Line {
        wall: 1,
        text: b"panic: no".to_vec(),
    });
    let findings = case.findings();
    assert_eq!(case.codes(), ["server-crashed"]);
    assert_eq!(findings[0].quote.text, "panic: no");
    assert_eq!(findings[0].step, None);
}

#[test]
fn late_answers() {
    let mut case = fine();
    case.ask("7", "tools/list", "{}").wait(59_000).answer("{}");
    // A person is asked.
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}"#)
        .wait(100_000)
        .answer("{}");
    case.is_fine();
    case.ask("8", "tools/list", "{}").wait(61_000).answer("{}");
    assert_eq!(case.codes(), ["late-answer"]);
    assert_eq!(case.findings()[0].severity, Severity::Warning);
}

fn cancelled(after: u64) -> Case {
    let mut case = fine();
    case.ask("8", "tools/call", r#"{"name":"t"}"#);
    let position = case.story.steps.len() - 1;
    case.story.steps[position].cancel_sent = true;
    case.story.steps[position].outcome = Outcome::Cancelled;
    case.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}"#);
    let cancel = case.story.steps.pop().unwrap();
    case.wait(after).answer("{}");
    case.story.steps.push(cancel);
    case
}

#[test]
fn answers_after_a_cancel() {
    cancelled(20).is_fine();
    assert_eq!(cancelled(200).codes(), ["answer-after-cancel"]);
}

#[test]
fn answers_that_nobody_asked_for_or_that_came_twice() {
    let mut case = fine();
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    case.server_says(r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#);
    case.server_says(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#);
    case.server_says(r#"{"jsonrpc":"2.0","error":{"code":-32700}}"#);
    assert_eq!(
        case.codes(),
        [
            "answer-twice",
            "answer-unasked",
            "answer-unasked",
            "answer-unasked"
        ]
    );
    // What it answers may not have been recorded.
    case.session().missing = 1;
    assert_eq!(case.codes(), ["records-missing", "answer-twice"]);
}

#[test]
fn what_is_no_message() {
    let mut case = fine();
    case.stray(S, "  \r");
    case.is_fine();
    case.stray(S, "Server started [ok]");
    case.stray(C, "hello");
    case.stray(S, r#"{"jsonrpc":"2.0","id":}"#);
    case.says(r#"{"hello":1}"#);
    assert_eq!(
        case.codes(),
        ["stray-output", "stray-input", "broken-json", "not-json-rpc"]
    );
    assert_eq!(case.findings()[0].quote.text, "Server started [ok]");
    assert_eq!(case.findings()[3].what, "JSON that is no JSON-RPC");
}

#[test]
fn an_empty_batch_is_no_message() {
    let mut case = fine();
    case.stray(C, "[]");
    let step = case.step();
    step.kind = agent_trace_model::step::StepKind::Other;
    let message = step.request.as_mut().unwrap();
    (message.framing, message.batch) = (Framing::Line, true);
    // The revision has no batches either.
    assert_eq!(case.codes(), ["not-json-rpc", "batch"]);
    assert_eq!(case.findings()[0].what, "an empty batch");
}

#[test]
fn frames_that_were_not_ended() {
    let mut case = fine();
    case.stray(S, r#"{"jsonrpc":"2.0","id":9,"res"#);
    case.step().request.as_mut().unwrap().incomplete = true;
    assert_eq!(case.codes(), ["incomplete-frame"]);
    // It was our recorder that had no room.
    case.step().request.as_mut().unwrap().lossy = true;
    assert_eq!(case.codes(), ["not-checked"]);
}

#[test]
fn messages_announced_by_content_length() {
    let mut case = fine();
    for id in ["8", "9"] {
        case.ask(id, "ping", "{}").answer("{}");
        case.step().response.as_mut().unwrap().framing = Framing::ContentLength;
    }
    assert_eq!(case.codes(), ["content-length"]);
    assert_eq!(case.findings()[0].party, Party::Server);
}

#[test]
fn ids() {
    let mut case = fine();
    case.ask("null", "ping", "{}").answer("{}");
    case.ask("[1]", "ping", "{}").answer("{}");
    case.ask("1.5", "ping", "{}").answer("{}");
    case.ask("1e3", "ping", "{}").answer("{}");
    case.ask("-7", "ping", "{}").answer("{}");
    case.ask("\"1.5\"", "ping", "{}").answer("{}");
    assert_eq!(
        case.codes(),
        ["id-null", "id-type", "id-fractional", "id-fractional"]
    );
}

#[test]
fn ids_that_are_used_again() {
    let mut case = fine();
    // After it was answered, and by the other side.
    case.ask("1", "ping", "{}").answer("{}");
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
        .answer("{}");
    case.is_fine();
    case.ask("2", "tools/call", r#"{"name":"t"}"#);
    case.ask("2", "ping", "{}").answer("{}");
    assert_eq!(case.codes(), ["unanswered", "id-reused"]);
    // The first may have been answered unseen.
    case.session().gaps.push(Gap {
        wall: 1,
        reason: "queue_full".into(),
        frames: 1,
        bytes: 10,
    });
    case.story.steps[6].outcome = Outcome::NotRecorded;
    assert_eq!(case.codes(), ["not-recorded", "not-checked"]);
}

#[test]
fn notifications_with_ids_and_requests_without() {
    let mut case = fine();
    case.ask("3", "notifications/progress", "{}");
    case.says(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#);
    case.says(r#"{"jsonrpc":"2.0","method":"$/vendor"}"#);
    assert_eq!(case.codes(), ["notification-with-id", "request-without-id"]);
}

#[test]
fn the_version_of_json_rpc() {
    let mut case = fine();
    case.says(r#"{"method":"notifications/x"}"#);
    case.says(r#"{"jsonrpc":"1.0","method":"notifications/x"}"#);
    assert_eq!(case.codes(), ["jsonrpc-version"]);
    case.server_says(r#"{"method":"notifications/x"}"#);
    assert_eq!(case.codes(), ["jsonrpc-version"; 2]);
}

#[test]
fn revisions_that_are_none() {
    for known in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        Case::of(known).is_fine();
    }
    let case = Case::of("2025-01-01");
    assert_eq!(case.codes(), ["revision-unknown"]);
    assert_eq!(case.findings()[0].party, Party::Server);
}

#[test]
fn batches() {
    let batch = |revision| {
        let mut case = Case::of(revision);
        for id in ["1", "2"] {
            case.ask(id, "ping", "{}").answer("{}");
            let request = case.step().request.as_mut().unwrap();
            (request.batch, request.frame) = (true, 99);
        }
        case
    };
    batch("2025-03-26").is_fine();
    assert_eq!(batch("2025-06-18").codes(), ["batch"]);
    let mut case = batch("2025-03-26");
    case.story.steps[0].request.as_mut().unwrap().batch = true;
    assert_eq!(case.codes(), ["initialize-in-batch"]);
}

#[test]
fn how_sessions_begin() {
    let mut case = Case::stdio();
    case.ask("1", "ping", "{}").answer("{}");
    case.ask("2", "server/discover", "{}").answer("{}");
    case.begin("2025-11-25");
    case.is_fine();

    let mut case = Case::stdio();
    case.ask("1", "tools/list", "{}").answer("{}");
    case.begin("2025-11-25");
    assert_eq!(case.codes(), ["before-initialize"]);
    case.session().clipped = true;
    assert_eq!(case.codes(), ["clipped"]);

    let mut case = Case::stdio();
    case.ask("1", "tools/list", "{}").answer("{}");
    case.ask("2", "tools/list", "{}").answer("{}");
    assert_eq!(case.codes(), ["before-initialize"], "once");

    let mut case = Case::of("2025-11-25");
    let initialized = case.story.steps.pop().unwrap();
    case.ask("1", "ping", "{}").answer("{}");
    case.ask("2", "logging/setLevel", "{}").answer("{}");
    case.story.steps.push(initialized);
    assert_eq!(case.codes(), ["before-initialized"]);
}

fn modern() -> Case {
    let mut case = Case::stdio();
    case.session().revision = Some("2026-07-28".into());
    let complete = r#"{"resultType":"complete"}"#;
    case.ask_modern("1", "server/discover", "").answer(complete);
    case.ask_modern("2", "tools/call", r#","name":"t""#)
        .answer(complete);
    case.is_fine();
    case
}

#[test]
fn what_2026_07_28_wants() {
    let mut case = modern();
    case.ask("3", "tools/list", "{}")
        .answer(r#"{"resultType":"complete"}"#);
    case.ask_modern("4", "tools/list", "")
        .answer(r#"{"tools":[]}"#);
    case.ask_modern("5", "tools/list", "")
        .answer(r#"{"tools":[]}"#);
    assert_eq!(case.codes(), ["meta-missing", "result-type-missing"]);
    case.session().digested = true;
    case.is_fine();
}

#[test]
fn what_2026_07_28_removed() {
    let complete = r#"{"resultType":"complete"}"#;
    let mut case = modern();
    case.ask_modern("3", "ping", "").answer(complete);
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#)
        .answer("{}");
    case.ask_modern("4", "resources/read", r#","uri":"a:b""#)
        .fail(r#"{"code":-32002,"message":"?"}"#);
    assert_eq!(
        case.codes(),
        [
            "method-removed",
            "server-request",
            "error",
            "error-code-removed"
        ]
    );
    // Of an older revision all of it is right.
    let mut case = fine();
    case.ask("3", "ping", "{}").answer("{}");
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#)
        .answer("{}");
    case.is_fine();
}

#[test]
fn a_client_that_falls_back_is_judged_by_what_it_falls_back_to() {
    let mut case = Case::stdio();
    // As the store tells it: by the first message that names one.
    case.session().revision = Some("2026-07-28".into());
    case.ask_modern("1", "server/discover", "")
        .fail(r#"{"code":-32601,"message":"?"}"#)
        .step()
        .outcome = Outcome::Ok;
    case.begin("2025-11-25");
    case.ask("2", "ping", "{}").answer("{}");
    case.is_fine();
}

#[test]
fn what_2026_07_28_deprecates() {
    let mut case = modern();
    let result = r#"{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"},"b":{"method":"elicitation/create"}}}"#;
    case.ask_modern("3", "tools/call", r#","name":"t""#)
        .answer(result);
    case.server_says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    case.server_says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    assert_eq!(case.codes(), ["feature-deprecated"; 2]);
    let mut case = Case::of("2025-11-25");
    case.server_says(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
    case.is_fine();
}

#[test]
fn what_is_not_in_the_recording_is_nobodys_fault() {
    let mut case = fine();
    case.session().standing = Standing::CutOff;
    case.session().end = None;
    case.session().damaged = 5;
    case.ask("9", "tools/list", "{}").step().outcome = Outcome::NotRecorded;
    assert_eq!(case.codes(), ["records-missing", "cut-off", "not-checked"]);
    for finding in case.findings() {
        assert_eq!(finding.party, Party::Recording);
        assert_eq!(finding.severity, Severity::Warning);
    }
}
