//! Rules about what HTTP says.

use super::super::Party;
use super::case::Case;
use agent_trace_model::step::{Framing, StepKind};
use agent_trace_model::story::KeyKind;
use agent_trace_model::{Finish, Outcome};

const JSON: (&str, &str) = ("content-type", "application/json");
const COMPLETE: &str = r#"{"resultType":"complete"}"#;

/// A call of 2026-07-28 with these headers beside those that are always there.
fn called(arguments: &str, more: &[(&str, &str)]) -> Case {
    let properties =
        r#""region":{"type":"string","x-mcp-header":"Region"},"n":{"x-mcp-header":"N"}"#;
    called_of(properties, arguments, more)
}

/// Likewise of a tool with these properties.
fn called_of(properties: &str, arguments: &str, more: &[(&str, &str)]) -> Case {
    let mut case = Case::http(KeyKind::Caller);
    let list = format!(
        r#"{{"resultType":"complete","tools":[{{"name":"t","inputSchema":{{"properties":{{{properties}}}}}}}]}}"#
    );
    case.ask_modern("1", "tools/list", "")
        .answer(&list)
        .through(
            "POST",
            &[
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "tools/list"),
                JSON,
            ],
            200,
            &[JSON],
        );
    let mut sent = vec![JSON];
    for default in [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "t"),
    ] {
        if more.iter().all(|(name, _)| *name != default.0) {
            sent.push(default);
        }
    }
    // An empty value leaves it out.
    sent.extend(more.iter().filter(|(_, value)| !value.is_empty()));
    case.ask_modern(
        "1",
        "tools/call",
        &format!(r#","name":"t","arguments":{arguments}"#),
    )
    .answer(COMPLETE)
    .through("POST", &sent, 200, &[JSON]);
    case
}

#[test]
fn headers_that_repeat_the_body() {
    called("{}", &[]).is_fine();
    called("{}", &[("Mcp-Name", "=?base64?dA==?=")]).is_fine();
    // What stands for a secret can't be compared.
    called("{}", &[("Mcp-Name", "[REDACTED:token:00000000]")]).is_fine();
    for (name, value) in [
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "T"),
        ("Mcp-Name", "=?base64?!?="),
    ] {
        let case = called("{}", &[(name, value)]);
        assert_eq!(case.codes(), ["header-mismatch"], "{name}: {value}");
        assert_eq!(case.findings()[0].party, Party::Client);
    }
    let findings = called("{}", &[("Mcp-Name", "T")]).findings();
    assert_eq!(findings[0].quote.text, "Mcp-Name: T (body: t)");
    for name in ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"] {
        let case = called("{}", &[(name, "")]);
        assert_eq!(case.codes(), ["header-missing"], "{name}");
    }
}

#[test]
fn headers_that_repeat_arguments() {
    called(r#"{"region":"eu"}"#, &[("Mcp-Param-Region", "eu")]).is_fine();
    called(r#"{"n":1.50}"#, &[("Mcp-Param-N", "1.50")]).is_fine();
    called(r#"{"region":null}"#, &[]).is_fine();
    // Nobody declared it.
    called("{}", &[("Mcp-Param-Other", "x")]).is_fine();
    for (arguments, header) in [
        (r#"{"region":"eu"}"#, "us"),
        (r#"{"region":"eu"}"#, ""),
        ("{}", "eu"),
    ] {
        let case = called(arguments, &[("Mcp-Param-Region", header)]);
        assert_eq!(
            case.codes(),
            ["header-param-mismatch"],
            "{arguments} {header}"
        );
    }
}

#[test]
fn many_headers_and_many_arguments_take_no_time() {
    let many = |one: &dyn Fn(u32) -> String| {
        let all: Vec<String> = (0..30_000).map(one).collect();
        all.join(",")
    };
    let properties = many(&|n| format!(r#""p{n}":{{"x-mcp-header":"H{n}"}}"#));
    let arguments = many(&|n| format!(r#""a{n}":{n}"#));
    let arguments = format!(r#"{{{arguments},"p7":1}}"#);
    let begun = std::time::Instant::now();
    let case = called_of(&properties, &arguments, &[("Mcp-Param-H9", "x")]);
    // One is missing, one is sent without an argument.
    assert_eq!(case.codes(), ["header-param-mismatch"; 2]);
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn the_revision_in_a_header() {
    let case = |revision: &str, header: &[(&str, &str)]| {
        let mut case = Case::http(KeyKind::McpSession);
        case.session().revision = Some(revision.into());
        case.begin(revision);
        for id in ["1", "2"] {
            let sent: Vec<_> = header.iter().copied().chain([JSON]).collect();
            case.ask(id, "ping", "{}")
                .answer("{}")
                .through("POST", &sent, 200, &[JSON]);
        }
        case
    };
    case("2025-06-18", &[("mcp-protocol-version", "2025-06-18")]).is_fine();
    case("2025-03-26", &[]).is_fine();
    assert_eq!(case("2025-06-18", &[]).codes(), ["version-header-missing"]);
}

#[test]
fn what_a_body_is_declared_as() {
    let mut case = called("{}", &[]);
    let answer = case.step().response.as_mut().unwrap();
    answer.framing = Framing::Event;
    case.is_fine();

    let mut case = Case::http(KeyKind::Caller);
    case.ask_modern("1", "server/discover", "")
        .answer(COMPLETE)
        .through(
            "POST",
            &[
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "server/discover"),
            ],
            200,
            &[("Content-Type", "text/html; charset=utf-8")],
        );
    assert_eq!(
        case.codes(),
        ["content-type"; 2],
        "neither side declares JSON"
    );
    let parties: Vec<_> = case.findings().iter().map(|f| f.party).collect();
    assert_eq!(parties, [Party::Client, Party::Server]);
}

fn refused(status: u16, media: &str, body: &str, framing: Framing) -> Case {
    let mut case = called("{}", &[]);
    case.exchange("POST", &[JSON], status, &[("content-type", media)]);
    case.ask_modern("3", "tools/list", "").answer("{}").through(
        "POST",
        &[
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/list"),
            JSON,
        ],
        status,
        &[("content-type", media)],
    );
    let step = case.step();
    step.outcome = Outcome::Error;
    step.duration = None;
    let answer = step.response.as_mut().unwrap();
    answer.text = body.into();
    answer.framing = framing;
    case
}

#[test]
fn what_http_refuses() {
    let case = refused(502, "text/html", "<h1>Bad gateway</h1>", Framing::Stray);
    assert_eq!(case.codes(), ["http-error"]);
    assert_eq!(
        case.findings()[0].what,
        "tools/list was refused with status 502"
    );
    assert_eq!(case.findings()[0].quote.text, "<h1>Bad gateway</h1>");
    let case = refused(
        502,
        "application/json",
        "<h1>Bad gateway</h1>",
        Framing::Stray,
    );
    assert_eq!(case.codes(), ["http-error", "content-not-json"]);
    let mut case = refused(200, "application/json", "", Framing::Stray);
    case.step().finish = Some(Finish::ServerBroke);
    assert_eq!(case.codes(), ["http-error"]);
}

#[test]
fn sessions_in_2026_07_28() {
    let mut case = called(
        "{}",
        &[("Mcp-Session-Id", "[REDACTED:mcp-session-id:00000000]")],
    );
    assert_eq!(case.codes(), ["session-removed"]);
    case.exchange("GET", &[("MCP-Protocol-Version", "2026-07-28")], 405, &[]);
    case.exchange(
        "DELETE",
        &[("MCP-Protocol-Version", "2025-11-25")],
        200,
        &[],
    );
    assert_eq!(case.codes(), ["session-removed"; 2]);
}

#[test]
fn the_transport_of_2024_11_05() {
    let case = Case::http(KeyKind::Endpoint);
    assert_eq!(case.codes(), ["transport-deprecated"]);
}

#[test]
fn where_nothing_ties_exchanges_together_two_clients_may_use_one_id() {
    let mut case = called("{}", &[]);
    case.story.steps[0].response = None;
    case.story.steps[0].outcome = Outcome::Cancelled;
    case.is_fine();
    // An answer is one to the request of its own exchange.
    case.server_says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let step = case.step();
    step.exchange = 2;
    step.request.as_mut().unwrap().framing = Framing::Event;
    assert_eq!(step.kind, StepKind::Answer);
    assert_eq!(case.codes(), ["answer-twice"]);
    case.step().exchange = 9;
    assert_eq!(case.codes(), ["answer-unasked"]);
}
