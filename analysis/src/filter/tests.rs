//! Tests of the filter language.

use super::*;
use agent_trace_model::exchange::{Exchange, Exchanges, Request};
use agent_trace_model::step::{Message, StepKind};
use agent_trace_model::story::{Session, Standing};
use agent_trace_model::{Outcome, ProcessId, RunId, SessionId, Stream};

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn session(ordinal: u32, server: &str, client: &str) -> Session {
    Session {
        id: SessionId {
            process: ProcessId::new(1, [1; 10]),
            ordinal,
        },
        server: server.into(),
        client: client.into(),
        transport: "stdio".into(),
        revision: None,
        command: Vec::new(),
        listen: None,
        upstream: None,
        key: None,
        user_agent: None,
        redacted: true,
        digested: false,
        started: 1000 * SECOND,
        last: 2000 * SECOND,
        standing: Standing::Ended,
        end: None,
        exchanges: Exchanges::new(),
        stderr: Vec::new(),
        gaps: Vec::new(),
        missing: 0,
        damaged: 0,
        unreadable: Vec::new(),
        clipped: false,
    }
}

pub(crate) fn step(method: &str, target: Option<&str>) -> Step {
    Step {
        number: 0,
        session: 0,
        turn: None,
        kind: StepKind::Request,
        from: Stream::ClientToServer,
        method: Some(method.into()),
        target: target.map(Into::into),
        id: None,
        request: None,
        response: None,
        exchange: 0,
        status: None,
        finish: None,
        rounds: 1,
        wall: 1500 * SECOND,
        duration: Some(SECOND),
        progress: 0,
        cancel_sent: false,
        outcome: Outcome::Ok,
    }
}

pub(crate) fn message(text: &str) -> Option<Message> {
    Some(Message {
        text: text.into(),
        length: text.len() as u64,
        ..Message::default()
    })
}

pub(crate) fn story(sessions: Vec<Session>, steps: Vec<Step>) -> Story {
    let mut story = Story {
        id: RunId::from_digest([0xab; 16]),
        aliases: vec![RunId::from_digest([0xcd; 16])],
        workspace: "default".into(),
        project: None,
        task: Some("weekly-report".into()),
        sessions,
        turns: Vec::new(),
        steps,
    };
    for (position, step) in story.steps.iter_mut().enumerate() {
        step.number = position + 1;
    }
    story
}

/// A run of two servers and five steps.
fn sample() -> Story {
    let mut read = step("tools/call", Some("read_file"));
    read.request = message(r#"{"params":{"arguments":{"path":"C:\\new","who":"J\u00fcrgen"}}}"#);
    read.response = message("{\"result\":\"first\\nsecond \\\"third\\\" Ärger\"}");
    let mut write = step("tools/call", Some("write_file"));
    write.outcome = Outcome::ToolError;
    write.duration = Some(20 * SECOND);
    write.wall = 1600 * SECOND;
    let mut refused = step("resources/read", Some("file:///x"));
    refused.session = 1;
    refused.exchange = 7;
    refused.status = Some(404);
    refused.outcome = Outcome::Error;
    refused.response = message(r#"{"error":{"code":-32602,"message":"no"}}"#);
    let mut open = step("ping", None);
    open.outcome = Outcome::Unanswered;
    open.duration = None;
    let list = step("tools/list", None);
    let mut web = session(2, "web", "cursor");
    let exchange = Exchange {
        request: Some(Request {
            headers: vec![("X-Api".into(), "Seven".into())],
            ..Request::default()
        }),
        ..Exchange::default()
    };
    web.exchanges.insert(7, exchange);
    story(
        vec![session(1, "files", "cursor"), web],
        vec![read, write, refused, open, list],
    )
}

fn found(filter: &str) -> Vec<usize> {
    let filter = Filter::parse(filter, 2000 * SECOND).unwrap();
    let story = sample();
    let matcher = filter.over(&story, Verdict::Wrong);
    let steps: Vec<usize> = matcher.steps().map(|step| step.number).collect();
    assert_eq!(matcher.run(), !steps.is_empty());
    steps
}

#[test]
fn operators_find_what_they_say() {
    for (filter, steps) in [
        ("", &[1, 2, 3, 4, 5][..]),
        ("~all", &[1, 2, 3, 4, 5]),
        ("file", &[1, 2, 3]),
        ("READ", &[1, 3]),
        ("~t read", &[1]),
        ("~t /^read/", &[1]),
        ("~t /^file/", &[]),
        ("~s web", &[3]),
        ("~c CURSOR", &[1, 2, 3, 4, 5]),
        ("~c other", &[]),
        ("~k Report", &[1, 2, 3, 4, 5]),
        ("~k /^report/", &[]),
        ("~m tools", &[1, 2, 5]),
        ("~e", &[2, 3, 4]),
        ("~q", &[4]),
        ("~o tool_error", &[2]),
        ("~o slow", &[2]),
        ("~d >2s", &[2]),
        ("~d>2s", &[2]),
        ("~d > 2s", &[2]),
        ("~d =1s", &[1, 3, 5]),
        ("~d <=1000ms", &[1, 3, 5]),
        ("~size >0", &[1, 3]),
        ("~size <1KiB", &[1, 2, 3, 4, 5]),
        ("~x 404", &[3]),
        ("~x -32602", &[3]),
        ("~r ABAB", &[1, 2, 3, 4, 5]),
        ("~r cdcd-cd", &[1, 2, 3, 4, 5]),
        ("~r 00", &[]),
        ("~v wrong", &[1, 2, 3, 4, 5]),
        ("~v right", &[]),
        ("~failed", &[1, 2, 3, 4, 5]),
        ("~since 420s", &[2]),
        ("~until 420s", &[1, 3, 4, 5]),
        ("~h x-api:", &[3]),
        ("~h seven", &[3]),
    ] {
        assert_eq!(found(filter), steps, "{filter}");
    }
}

#[test]
fn bodies_are_found_however_they_are_escaped() {
    for (filter, steps) in [
        (r#"~b "path""#, &[1][..]),
        (r"~bq 'C:\\new'", &[1]),
        ("~bs second", &[1]),
        ("~bq second", &[]),
        (r#"~b 'second "third"'"#, &[1]),
        ("~b jürgen", &[1]),
        ("~b äRGER", &[1]),
        ("~b \"first\nsecond\"", &[1]),
        (r"~b /first\\nse[a-c]/", &[1]),
        ("~b /FIRST/", &[1]),
        ("~w second", &[1]),
        ("~w secon", &[]),
        ("~w 'second \"third\"'", &[1]),
        ("~w code", &[3]),
    ] {
        assert_eq!(found(filter), steps, "{filter}");
    }
}

#[test]
fn signs_bind_as_they_should() {
    for (filter, steps) in [
        ("~m tools ~e", &[2][..]),
        ("~m tools & ~e", &[2]),
        ("~m tools && !~e", &[1, 5]),
        ("~q | ~t read", &[1, 4]),
        ("~q || ~t read & ~e", &[4]),
        ("(~q | ~t read) & ~e", &[4]),
        ("!(~q | ~t read)", &[2, 3, 5]),
        ("!!~q", &[4]),
        ("!!!~q", &[1, 2, 3, 5]),
        ("(~e)(~s web)", &[3]),
        ("~e!~q", &[2, 3]),
        (r#""read_file""#, &[1]),
        (r"read\_file", &[1]),
        ("~t 'read_file'|~q", &[1, 4]),
    ] {
        assert_eq!(found(filter), steps, "{filter}");
    }
}

#[test]
fn a_run_without_steps_matches_by_what_is_known_of_runs() {
    let story = story(vec![session(1, "files", "cursor")], Vec::new());
    for (filter, matches) in [
        ("", true),
        ("~c cursor", true),
        ("~s files", true),
        ("!~s files", false),
        ("~v unjudged ~since 1h", true),
        ("~until 1969-12-31", false),
        ("~t read", false),
        ("!~t read", false),
        ("~t read | ~c cursor", true),
        ("~failed", false),
    ] {
        let filter = Filter::parse(filter, 2000 * SECOND).unwrap();
        assert_eq!(
            filter.matches_run(&story, Verdict::Unjudged),
            matches,
            "{}",
            filter.text()
        );
    }
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let wrong = |text: &str| {
        let error = Filter::parse(text, 0).unwrap_err();
        let hint = error.hint.iter().map(|hint| format!("; {hint}"));
        format!("{}\n{error}{}", error.caret(), hint.collect::<String>())
    };
    let all = [
        "~e & ~tool x",
        "~e |",
        "(~e",
        "~e) x",
        "~t",
        "~t !x",
        "~d 2s",
        "~d >2 parsecs",
        "ä ~x häh",
        "~o bad",
        "~b /x(/",
        "~b /x",
        "~b \"x",
        "'x'y",
        "~",
        "~since gestern",
        "~v maybe",
        "~r xyz",
        "~w /x/",
        "& x",
        "~b /(\\w{100}){100}/",
    ];
    let told: Vec<String> = all.iter().map(|text| wrong(text)).collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    ~e & ~tool x
         ^^^^^
    there is no operator ~tool (column 6); did you mean ~t?
    ~e |
        ^
    expected a name, an operator such as ~t, ! or ( (column 5)
    (~e
    ^
    expected ) for the ( that stands here (column 1)
    ~e) x
      ^
    this closes nothing: expected the end (column 3)
    ~t
      ^
    ~t needs a tool name or /regex/ (column 3)
    ~t !x
       ^
    ~t needs a tool name or /regex/ (column 4); `!` stands before the operator: !~t
    ~d 2s
       ^^
    ~d needs a comparison: > >= < <= or = with an amount, as in ~d >2s (column 4)
    ~d >2 parsecs
        ^
    expected a duration with a unit (ns us ms s m h d), as in 2s, 1.5s or 1h30m (column 5)
    ä ~x häh
         ^^^
    expected a number: a JSON-RPC error code such as -32601, or an HTTP status (column 6)
    ~o bad
       ^^^
    there is no outcome "bad": expected ok, error, tool_error, denied, timeout, cancelled, crashed, unanswered, not_recorded, pending, slow (column 4)
    ~b /x(/
       ^^^^
    not a regular expression: unclosed group (column 4)
    ~b /x
       ^
    expected / at the end of the regular expression that begins here (column 4); a text that begins with / needs quotes
    ~b "x
       ^
    expected " at the end of the text that begins here (column 4)
    'x'y
       ^
    expected a blank after a quoted text (column 4)
    ~
    ^
    expected the name of an operator after ~ (column 1); the operators are ~all ~b ~bq ~bs ~c ~d ~e ~failed ~h ~k ~m ~o ~q ~r ~s ~since ~size ~t ~until ~v ~w ~x
    ~since gestern
           ^^^^^^^
    expected a time: 2026-11-30, 2026-11-30T12:00:00Z, or how long ago, as in 2h or 3d (column 8)
    ~v maybe
       ^^^^^
    expected a verdict: right, wrong or unjudged (column 4)
    ~r xyz
       ^^^
    expected the beginning of a run's id: hexadecimal digits (column 4)
    ~w /x/
       ^^^
    expected whole words; ~b takes a regex (column 4)
    & x
    ^
    expected a name, an operator such as ~t, ! or ( (column 1)
    ~b /(\w{100}){100}/
       ^^^^^^^^^^^^^^^^
    this regular expression is too large (column 4)
    "#);
}

#[test]
fn a_long_filter_is_shown_around_the_place() {
    let text = format!("{}\t~nope {}", "~e ".repeat(100), "~e ".repeat(100));
    let error = Filter::parse(&text, 0).unwrap_err();
    let lines: Vec<String> = error.caret().lines().map(Into::into).collect();
    let at = lines[1].chars().count() - 5;
    let place: String = lines[0].chars().skip(at).take(5).collect();
    assert_eq!(place, "~nope");
    assert!(!lines[0].contains('\t'));
    assert!(lines[0].chars().count() < 80);
    assert_eq!((error.at, error.column, error.width), (301, 302, 5));
}

#[test]
fn no_filter_can_exhaust_anything() {
    for text in [
        "(".repeat(100_000),
        "!".repeat(100_000),
        "~e|".repeat(100_000),
        "(".repeat(10_000),
        "!".repeat(10_000),
        format!("{}~e{}", "(".repeat(200), ")".repeat(200)),
        "a ".repeat(5000),
        format!("/{}/", "a{1000}".repeat(1000)),
        format!("/{}a{}/", "(".repeat(1000), ")".repeat(1000)),
    ] {
        let error = Filter::parse(&text, 0).unwrap_err();
        assert!(error.caret().len() < 500);
    }
    let deep = format!("{}~e{}", "(!".repeat(100), ")".repeat(100));
    let story = sample();
    let filter = Filter::parse(&deep, 0).unwrap();
    assert!(filter.matches_run(&story, Verdict::Unjudged));
    // An expression that takes exponential time where it is tried out.
    let slow = Filter::parse("~b /(a+)+$/", 0).unwrap();
    let mut one = step("x", None);
    one.request = message(&("a".repeat(100_000) + "b"));
    assert!(!slow.matches_step(&story, Verdict::Unjudged, &one));
}

#[test]
fn words_are_what_every_match_holds() {
    let words = |text: &str| {
        let filter = Filter::parse(text, 0).unwrap();
        let lists = filter.words().into_iter();
        lists.map(|list| list.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(words("~b needle"), [""; 0]);
    assert_eq!(words("~b 'a needle in'"), ["needle"]);
    assert_eq!(words(r#"~b '"name": "x'"#), ["name"]);
    let forms = "n t r b f u003c u003e u0026 u0022 u0027 u002f";
    let word = |word: &str| {
        let escaped = forms.split(' ').map(|form| format!("{form}{word}"));
        [word.to_owned()]
            .into_iter()
            .chain(escaped)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(words("~w needle"), [word("needle")]);
    assert_eq!(words("~w 'two words'"), [word("two"), "words".into()]);
    assert_eq!(words("~w needle ~t x"), [word("needle")]);
    assert_eq!(words("~w needle | ~t x"), [""; 0]);
    assert_eq!(words("!~w needle"), [""; 0]);
    assert_eq!(
        words("~w needle | ~b ' hay '"),
        [format!("{} hay", word("needle"))]
    );
    // The letters that have a second lower-case form, and escapes, are not relied on.
    assert_eq!(words("~b ' straße task '"), [""; 0]);
    assert_eq!(words("~b ' 漢字 '"), [""; 0]);
}
