//! A summary never says anything else than the run itself does.

use super::super::tests::{SECOND, message, session, step, story};
use super::super::{Filter, codes};
use super::*;
use crate::outcomes;
use agent_trace_model::step::Step;
use agent_trace_model::story::{Standing, Story};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

/// A summary of a story in groups by server, method and target, of which the least is told
/// that `told` says.
struct Summary<'a> {
    story: &'a Story,
    verdict: Verdict,
    told: Told,
}

/// What a summary tells beyond what every summary must.
#[derive(Clone, Copy, Debug)]
struct Told {
    names: bool,
    outcomes: bool,
    durations: bool,
    timed: bool,
    bytes: bool,
    codes: bool,
    all_codes: bool,
    failed: bool,
}

const ALL: Told = Told {
    names: true,
    outcomes: true,
    durations: true,
    timed: true,
    bytes: true,
    codes: true,
    all_codes: true,
    failed: true,
};

impl RunFacts for Summary<'_> {
    fn id(&self) -> RunId {
        self.story.id
    }

    fn aliases(&self) -> Cow<'_, [RunId]> {
        Cow::Borrowed(&self.story.aliases)
    }

    fn started(&self) -> u64 {
        self.story.started()
    }

    fn last(&self) -> u64 {
        self.story.last()
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn failed(&self) -> Ternary {
        match self.told.failed {
            true => outcomes::is_failed(self.story, self.verdict).into(),
            false => Ternary::Maybe,
        }
    }

    fn task(&self) -> Name<'_> {
        self.story.task.as_deref().into()
    }

    fn found(&self, _: &str) -> Ternary {
        Ternary::No
    }

    fn clients(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(
            self.story
                .sessions
                .iter()
                .map(|session| &session.client[..]),
        )
    }

    fn servers(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(
            self.story
                .sessions
                .iter()
                .map(|session| &session.server[..]),
        )
    }

    fn groups(&self) -> Box<dyn Iterator<Item = Group<'_>> + '_> {
        let mut groups: BTreeMap<_, Vec<&Step>> = BTreeMap::new();
        for step in &self.story.steps {
            let server = self.story.session(step).map(|session| &session.server[..]);
            let key = match self.told.names {
                true => (server, step.method.as_deref(), step.target.as_deref()),
                false => (server, None, None),
            };
            groups.entry(key).or_default().push(step);
        }
        let told = self.told;
        let group = move |((server, method, target), steps): ((_, _, _), Vec<&Step>)| {
            let name = |name: Option<_>| match told.names {
                true => Name::from(name),
                false => Name::Various,
            };
            let range = |amounts: &[u64]| Some((*amounts.iter().min()?, *amounts.iter().max()?));
            let durations: Vec<u64> = steps.iter().filter_map(|step| step.duration).collect();
            let bytes: Vec<u64> = steps.iter().map(|step| step.bytes()).collect();
            let all: Vec<i64> = steps.iter().flat_map(|step| codes(step)).collect();
            Group {
                count: steps.len() as u64,
                server: Name::from(server),
                method: name(method),
                target: name(target),
                outcomes: match told.outcomes {
                    true => steps.iter().map(|step| step.outcome).collect(),
                    false => OutcomeSet::default(),
                },
                timed: told.timed.then_some(durations.len() as u64),
                duration: range(&durations).filter(|_| told.durations),
                bytes: range(&bytes).filter(|_| told.bytes),
                all_codes: told.codes && told.all_codes,
                codes: match told.codes {
                    true => all.into(),
                    false => Cow::default(),
                },
            }
        };
        Box::new(groups.into_iter().map(group))
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let names = select(vec![
        ("tools/call", Some("read")),
        ("tools/call", Some("write")),
        ("resources/read", Some("read")),
        ("ping", None),
    ]);
    let amount = 0_u64..4;
    (
        (names, 0_usize..2, select(Outcome::ALL.to_vec())),
        (proptest::option::of(amount.clone()), amount, 900_u64..2100),
        (
            proptest::option::of(select(vec![200_u16, 404])),
            select(vec!["", "red", "green", r#"{"error":{"code":-1}}"#]),
        ),
    )
        .prop_map(
            |((names, session, outcome), (duration, size, wall), (status, body))| {
                let mut step = step(names.0, names.1);
                step.session = session;
                step.outcome = outcome;
                step.duration = duration.map(|d| d * SECOND);
                step.wall = wall * SECOND;
                step.status = status;
                step.response = message(body);
                if let Some(response) = &mut step.response {
                    response.length = size;
                }
                step
            },
        )
}

fn stories() -> impl Strategy<Value = Story> {
    (vec(steps(), 0..6), any::<bool>(), 0_usize..3).prop_map(|(steps, crashed, sessions)| {
        let mut all = vec![session(1, "files", "cursor"), session(2, "web", "code")];
        all[1].started += 50 * SECOND;
        if crashed {
            all[0].standing = Standing::Crashed;
        }
        if steps.is_empty() {
            all.truncate(sessions);
        }
        story(all, steps)
    })
}

fn filters() -> impl Strategy<Value = String> {
    let atom = select(vec![
        "read",
        "~t read",
        "~t /./",
        "~s files",
        "~s web",
        "~c cursor",
        "~k REPORT",
        "~k other",
        "~c code",
        "~c none",
        "~m tools",
        "~m ping",
        "~e",
        "~q",
        "~o ok",
        "~o tool_error",
        "~o slow",
        "~b red",
        "~bq red",
        "~w green",
        "~h x",
        "~d >1s",
        "~d <2s",
        "~d =2s",
        "~d >=3s",
        "~size >1",
        "~size =2",
        "~size <=0",
        "~x 404",
        "~x 200",
        "~x -1",
        "~r ab",
        "~r 00",
        "~v right",
        "~v unjudged",
        "~failed",
        "~since 1100s",
        "~since 400s",
        "~since 10s",
        "~until 1100s",
        "~until 400s",
        "~until 0s",
        "~all",
    ]);
    atom.prop_map(String::from)
        .prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" & "))),
                vec(inner.clone(), 2..4).prop_map(|parts| format!("({})", parts.join(" | "))),
                inner.prop_map(|part| format!("!{part}")),
            ]
        })
}

fn telling() -> impl Strategy<Value = Told> {
    any::<[bool; 8]>().prop_map(
        |[
            names,
            outcomes,
            durations,
            timed,
            bytes,
            codes,
            all_codes,
            failed,
        ]| {
            Told {
                names,
                outcomes,
                durations,
                timed,
                bytes,
                codes,
                all_codes,
                failed,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_summary_never_contradicts_its_run(
        story in stories(),
        filter in filters(),
        told in prop_oneof![Just(ALL), telling()],
        verdict in select(Verdict::ALL.to_vec()),
    ) {
        let filter = Filter::parse(&filter, 2000 * SECOND).unwrap();
        let summary = Summary { story: &story, verdict, told };
        let matches = filter.matches_run(&story, verdict);
        match filter.maybe_run(&summary) {
            Ternary::Yes => prop_assert!(matches, "{} is said to match", filter.text()),
            Ternary::No => prop_assert!(!matches, "{} is said not to match", filter.text()),
            Ternary::Maybe => {}
        }
        // One step is enough, and words that a match must hold are held.
        let matcher = filter.over(&story, verdict);
        prop_assert!(story.steps.is_empty() || matches == matcher.steps().next().is_some());
        for step in matcher.steps() {
            let text = step.response.as_ref().map_or(&b""[..], |m| &m.text);
            let text = String::from_utf8_lossy(text);
            for list in filter.words() {
                prop_assert!(list.iter().any(|word| text.contains(word)), "{list:?}");
            }
        }
    }
}

/// What the columns of a listing ask must be answered by the summary alone.
#[test]
fn a_summary_decides_what_is_asked_most() {
    let mut failed = step("tools/call", Some("read"));
    failed.outcome = Outcome::ToolError;
    failed.duration = Some(5 * SECOND);
    failed.status = Some(404);
    let well = step("tools/call", Some("read"));
    let other = step("tools/call", Some("write"));
    let story = story(
        vec![session(1, "files", "cursor")],
        vec![failed, well, other],
    );
    let summary = Summary {
        story: &story,
        verdict: Verdict::Unjudged,
        told: ALL,
    };
    for (filter, answer) in [
        ("~e", Ternary::Yes),
        ("~t read ~e", Ternary::Yes),
        ("~t write ~e", Ternary::No),
        ("~t read !~e", Ternary::Yes),
        ("~d >2s", Ternary::Yes),
        ("~t write ~d >2s", Ternary::No),
        ("~d >6s", Ternary::No),
        ("~x 404", Ternary::Yes),
        ("~x 500", Ternary::No),
        ("~since 1h ~s files ~t write", Ternary::Yes),
        ("~since 1s", Ternary::Maybe),
        ("~e ~d >2s", Ternary::Maybe),
        ("~t read ~b x", Ternary::Maybe),
        ("~t nothing ~b x", Ternary::No),
        ("~failed", Ternary::No),
    ] {
        let filter = Filter::parse(filter, 2000 * SECOND).unwrap();
        assert_eq!(filter.maybe_run(&summary), answer, "{}", filter.text());
    }
}
