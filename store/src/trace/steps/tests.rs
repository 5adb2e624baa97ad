//! How the messages of a stdio session become steps.

use super::*;
use crate::journal::{Kind, Record};

fn frame((n, (stream, text)): (usize, &(Stream, &str))) -> Frame {
    Frame::new(Record {
        envelope: Envelope {
            kind: Kind::Frame,
            stream: *stream,
            framing: if agent_trace_wire::json::is_valid(text.as_bytes()) {
                Framing::Newline
            } else {
                Framing::Stray
            },
            flags: Flags::default(),
            session: 1,
            exchange: 0,
            sequence: n as u64 + 1,
            wall: 0,
            monotonic: n as u64 * 10,
            length: text.len() as u64,
            digest: None,
            spans: vec![],
        },
        payload: text.as_bytes().to_vec(),
    })
}

fn pair(frames: &[Frame], lost: Option<u64>) -> Vec<Step> {
    let mut steps = Steps::default();
    lost.into_iter().for_each(|at| steps.lose(at));
    (0..frames.len()).for_each(|position| steps.frame(frames, position));
    steps.end(frames, false);
    steps.all
}

fn steps(lines: &[(Stream, &str)]) -> Vec<Step> {
    let frames: Vec<Frame> = lines.iter().enumerate().map(frame).collect();
    pair(&frames, None)
}

use Stream::{ClientToServer as C, ServerToClient as S};

fn outcomes(lines: &[(Stream, &str)]) -> Vec<(Option<Vec<u8>>, Outcome)> {
    let requests = steps(lines)
        .into_iter()
        .filter(|s| s.kind == StepKind::Request);
    requests.map(|s| (s.id, s.outcome)).collect()
}

#[test]
fn w23_ids_that_look_alike_are_kept_apart() {
    let ids = ["1", "\"1\"", "\"01\"", "1.0", "null", "9007199254740993"];
    let asks: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"id":{id},"method":"ping"}}"#))
        .collect();
    let mut lines: Vec<(Stream, &str)> = asks.iter().map(|ask| (C, ask.as_str())).collect();
    lines.push((S, r#"{"id":1.0,"result":{}}"#));
    lines.push((S, r#"{"id":"1","error":{"code":1}}"#));
    let found: Vec<Outcome> = outcomes(&lines).into_iter().map(|(_, o)| o).collect();
    use Outcome::{Error, Ok, Unanswered};
    assert_eq!(
        found,
        [Unanswered, Error, Unanswered, Ok, Unanswered, Unanswered]
    );
}

#[test]
fn w25_every_element_of_a_batch_is_a_step() {
    let found = steps(&[
        (
            C,
            r#"[{"id":1,"method":"tools/call","params":{"name":"t"}},{"id":2,"method":"ping"}]"#,
        ),
        (
            S,
            r#"[{"id":2,"result":{}},{"id":1,"result":{"isError":true}}]"#,
        ),
        (C, "[]"),
    ]);
    assert_eq!(found.len(), 3);
    assert_eq!(
        (found[0].tool(), found[0].outcome),
        (Some("t"), Outcome::ToolError)
    );
    assert_eq!(found[1].outcome, Outcome::Ok);
    assert_eq!(found[2].kind, StepKind::Other);
}

#[test]
fn w27_progress_belongs_to_the_request_with_its_token() {
    let call =
        r#"{"id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#;
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"p"}}"#;
    let other = r#"{"method":"notifications/progress","params":{"progressToken":"q"}}"#;
    let found = steps(&[(C, call), (S, progress), (S, other), (S, progress)]);
    assert_eq!(found[0].progress, 2);
    // What is over leaves nothing behind.
    let lines = [(C, call), (S, progress), (S, r#"{"id":1,"result":{}}"#)];
    let frames: Vec<Frame> = lines.iter().enumerate().map(frame).collect();
    let mut steps = Steps::default();
    (0..frames.len()).for_each(|position| steps.frame(&frames, position));
    assert_eq!((steps.progress.len(), steps.tokens.len()), (0, 0));
    assert_eq!(steps[0].progress, 1);
}

#[test]
fn w28_both_sides_may_use_the_same_id() {
    let found = outcomes(&[
        (C, r#"{"id":1,"method":"tools/call"}"#),
        (S, r#"{"id":1,"method":"elicitation/create"}"#),
        (C, r#"{"id":1,"error":{"code":1}}"#),
        (S, r#"{"id":1,"result":{}}"#),
    ]);
    let found: Vec<Outcome> = found.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(found, [Outcome::Ok, Outcome::Error]);
}

#[test]
fn w29_a_cancelled_call_stays_cancelled_and_its_late_result_is_known() {
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    let found = steps(&[
        (C, r#"{"id":1,"method":"tools/call"}"#),
        (C, cancel),
        (S, r#"{"id":1,"result":{}}"#),
        (C, cancel),
    ]);
    assert_eq!(found[0].outcome, Outcome::Cancelled);
    assert_eq!(found[0].duration, Some(20));
    let done = [
        (C, r#"{"id":1,"method":"ping"}"#),
        (S, r#"{"id":1,"result":{}}"#),
        (C, cancel),
    ];
    assert_eq!(
        outcomes(&done)[0].1,
        Outcome::Ok,
        "a cancel after the answer changes nothing"
    );
}

#[test]
fn finding_out_the_era_is_no_failure() {
    let refused = r#"{"id":1,"error":{"code":-32601,"message":"unknown"}}"#;
    let discover = (C, r#"{"id":1,"method":"server/discover"}"#);
    assert_eq!(outcomes(&[discover, (S, refused)])[0].1, Outcome::Ok);
    let initialize = (C, r#"{"id":1,"method":"initialize"}"#);
    assert_eq!(outcomes(&[initialize, (S, refused)])[0].1, Outcome::Error);
    let locked = (S, r#"{"id":1,"error":{"code":-32022}}"#);
    assert_eq!(outcomes(&[initialize, locked])[0].1, Outcome::Ok);
}

#[test]
fn a_subscription_that_the_session_ends_is_no_failure() {
    let listen = r#"{"id":1,"method":"subscriptions/listen"}"#;
    assert_eq!(outcomes(&[(C, listen)])[0].1, Outcome::Ok);
}

#[test]
fn what_may_have_been_answered_in_a_gap_is_not_called_unanswered() {
    let ask = r#"{"id":1,"method":"a"}"#;
    let outcome = |lost| pair(&[frame((0, &(C, ask)))], lost)[0].outcome;
    assert_eq!(outcome(None), Outcome::Unanswered);
    assert_eq!(outcome(Some(5)), Outcome::NotRecorded);
}

#[test]
fn an_answer_of_which_only_the_beginning_was_kept_is_an_answer() {
    let ask = frame((0, &(C, r#"{"id":1,"method":"a"}"#)));
    let mut answer = frame((1, &(S, r#"{"id":1,"result":{"content":["yyyy"#))).record;
    answer.envelope.framing = Framing::Newline;
    answer.envelope.flags = Flags::CUT;
    let found = pair(&[ask, Frame::new(answer)], None);
    assert_eq!((found.len(), found[0].outcome), (1, Outcome::Ok));
}

#[test]
fn an_id_may_be_used_again() {
    let found = outcomes(&[
        (C, r#"{"id":1,"method":"a"}"#),
        (S, r#"{"id":1,"result":{}}"#),
        (C, r#"{"id":1,"method":"b"}"#),
        (S, r#"{"id":1,"error":{}}"#),
        (S, r#"{"id":1,"result":{}}"#),
    ]);
    assert_eq!(found[0].1, Outcome::Ok);
    assert_eq!(found[1].1, Outcome::Error);
}

#[test]
fn what_takes_too_long_is_a_timeout() {
    use Outcome::{Cancelled, Error, Ok, Timeout};
    let cancel = |reason: &str| {
        let cancel = format!(
            r#"{{"method":"notifications/cancelled","params":{{"requestId":1,"reason":{reason}}}}}"#
        );
        let lines = [(C, r#"{"id":1,"method":"tools/call"}"#), (C, &cancel[..])];
        outcomes(&lines)[0].1
    };
    assert_eq!(
        cancel(r#""McpError: MCP error -32001: Request timed out""#),
        Timeout
    );
    assert_eq!(cancel(r#""request timeout""#), Timeout);
    assert_eq!(cancel(r#""the user pressed Esc""#), Cancelled);
    assert_eq!(cancel("null"), Cancelled);
    let answered = |answer: &str| {
        let lines = [
            (C, r#"{"id":1,"method":"tools/call"}"#),
            (S, answer),
            // Too late to change anything.
            (
                C,
                r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"timed out"}}"#,
            ),
        ];
        outcomes(&lines)[0].1
    };
    assert_eq!(
        answered(r#"{"id":1,"error":{"code":-32001,"message":"Request timed out"}}"#),
        Timeout
    );
    assert_eq!(
        answered(r#"{"id":1,"error":{"code":-32001,"message":"Session not found"}}"#),
        Error
    );
    assert_eq!(answered(r#"{"id":1,"result":{}}"#), Ok);
}

#[test]
fn what_is_open_when_the_server_crashes_is_told_apart() {
    let lines = [
        (C, r#"{"id":1,"method":"tools/call"}"#),
        (C, r#"{"id":2,"method":"ping"}"#),
        (S, r#"{"id":2,"result":{}}"#),
    ];
    let frames: Vec<Frame> = lines.iter().enumerate().map(frame).collect();
    let mut steps = Steps::default();
    (0..frames.len()).for_each(|position| steps.frame(&frames, position));
    steps.end(&frames, true);
    let outcomes: Vec<Outcome> = steps.iter().map(|step| step.outcome).collect();
    assert_eq!(outcomes, [Outcome::Crashed, Outcome::Ok]);
}
