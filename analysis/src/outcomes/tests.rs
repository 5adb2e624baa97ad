//! Whether runs of several sessions failed.

use super::*;
use crate::filter::tests::{session, step, story};
use agent_trace_model::exchange::{Exchange, Request, Response};

fn call(session: usize, tool: &str, outcome: Outcome) -> Step {
    let mut step = step("tools/call", Some(tool));
    step.session = session;
    step.outcome = outcome;
    step
}

fn last_failed(tool: &str, step: usize) -> Failure {
    let tool = tool.to_owned();
    Failure::LastCallFailed { tool, step }
}

#[test]
fn a_tool_is_that_of_its_server_in_whatever_session() {
    use Outcome::{Error, Ok, ToolError};
    let run = story(
        vec![
            session(1, "files", "x"),
            session(2, "web", "x"),
            session(3, "files", "x"),
        ],
        vec![
            call(0, "get", ToolError),
            call(1, "get", Error),
            call(0, "put", ToolError),
            call(2, "get", Ok),
            call(2, "put", ToolError),
        ],
    );
    assert_eq!(
        failures(&run),
        [last_failed("get", 2), last_failed("put", 5)]
    );
    assert_eq!(recovered(&run), [Recovered { step: 1, by: 4 }]);
    assert!(is_failed(&run, Verdict::Unjudged));
    assert!(!is_failed(&run, Verdict::Right), "a verdict counts more");
}

#[test]
fn every_error_before_a_success_was_recovered_from() {
    use Outcome::{Cancelled, Ok, Timeout, ToolError};
    let outcomes = [ToolError, Cancelled, Timeout, Ok, ToolError, Ok];
    let run = story(
        vec![session(1, "files", "x")],
        outcomes.map(|outcome| call(0, "get", outcome)).to_vec(),
    );
    assert_eq!(failures(&run), []);
    let pairs: Vec<_> = recovered(&run).iter().map(|r| (r.step, r.by)).collect();
    assert_eq!(pairs, [(1, 4), (3, 4), (5, 6)]);
    assert!(is_failed(&run, Verdict::Wrong));
}

#[test]
fn a_crash_and_what_was_left_open_are_failures() {
    let mut crashed = session(1, "files", "x");
    crashed.standing = Standing::Crashed;
    let run = story(
        vec![session(2, "web", "x"), crashed],
        vec![
            call(1, "get", Outcome::Crashed),
            call(0, "get", Outcome::Denied),
        ],
    );
    assert_eq!(
        failures(&run),
        [
            Failure::Crashed { session: 1 },
            Failure::Unanswered { step: 1 },
            last_failed("get", 2)
        ]
    );
}

#[test]
fn the_last_request_of_a_method_may_not_take_too_long_but_a_probe_may() {
    let ask = |method: &str, outcome| {
        let mut step = step(method, None);
        step.outcome = outcome;
        step
    };
    let run = story(
        vec![session(1, "files", "x")],
        vec![
            ask("server/discover", Outcome::Timeout),
            ask("tools/list", Outcome::Timeout),
            ask("ping", Outcome::Timeout),
            ask("ping", Outcome::Ok),
            ask("prompts/get", Outcome::Error),
        ],
    );
    let method = "tools/list".to_owned();
    assert_eq!(failures(&run), [Failure::TimedOut { method, step: 2 }]);
    assert_eq!(recovered(&run), [Recovered { step: 3, by: 4 }]);
}

/// A POST without a message that the server refused.
fn refused(target: &str, exchange: u32) -> Step {
    let mut step = step("POST", None);
    step.kind = StepKind::Http;
    step.target = Some(target.to_owned());
    step.exchange = exchange;
    step.status = Some(400);
    step.outcome = Outcome::Error;
    step
}

fn exchange(target: &str, number: u32, status: u16) -> Exchange {
    Exchange {
        number,
        request: Some(Request {
            method: "POST".into(),
            target: target.to_owned(),
            ..Request::default()
        }),
        response: Some(Response {
            status,
            ..Response::default()
        }),
        ..Exchange::default()
    }
}

#[test]
fn a_refused_post_was_made_good_by_a_later_one_like_it() {
    let failed = |later: &[(&str, u16)]| {
        let mut told = session(1, "web", "x");
        told.exchanges.insert(5, exchange("/a", 5, 400));
        for (number, (target, status)) in (6..).zip(later) {
            let later = exchange(target, number, *status);
            told.exchanges.insert(number, later);
        }
        !failures(&story(vec![told], vec![refused("/a", 5)])).is_empty()
    };
    assert!(failed(&[]) && failed(&[("/b", 200)]) && failed(&[("/a", 500)]));
    assert!(!failed(&[("/a", 202)]) && !failed(&[("/a", 202), ("/a", 500)]));
}

#[test]
fn many_refused_posts_take_no_time() {
    let mut told = session(1, "web", "x");
    let mut steps = Vec::new();
    for number in 1..=100_000 {
        let target = format!("/{number}");
        told.exchanges
            .insert(number, exchange(&target, number, 400));
        steps.push(refused(&target, number));
    }
    let run = story(vec![told], steps);
    let begun = std::time::Instant::now();
    assert_eq!(failures(&run).len(), 100_000);
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn outcomes_have_bits_of_their_own() {
    let all = OutcomeSet::of(|_| true);
    assert_eq!(all.iter().count(), Outcome::ALL.len());
    assert_eq!(OutcomeSet::from_bits(u16::MAX), all);
    for outcome in Outcome::ALL {
        let set = OutcomeSet::one(outcome);
        assert_eq!(set.bits().count_ones(), 1);
        assert_eq!(set.iter().collect::<Vec<_>>(), [outcome]);
        assert!(all.covers(set) && all.overlaps(set) && !set.covers(all));
    }
}
