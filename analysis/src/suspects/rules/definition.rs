//! Tools whose definitions changed: within the run, or since siblings that passed.

use super::share;
use crate::suspects::Input;
use crate::suspects::definitions::{Definitions, Tool};
use crate::suspects::evidence::Evidence;
use crate::suspects::quotes::Spot;
use crate::suspects::result::Side;
use crate::suspects::view::{Call, View};
use crate::suspects::weights::Rule;
use agent_trace_wire::message::member;
use std::collections::HashSet;

/// Members of a definition that are compared one by one, to say what changed.
const MEMBERS: [&str; 6] = [
    "inputSchema",
    "description",
    "outputSchema",
    "annotations",
    "title",
    "execution",
];

/// Notices that are looked back over for one of the same session.
const NOTICES: usize = 100;

pub(super) fn find(input: &Input<'_>, view: &View<'_>, found: &mut Evidence) {
    let passing: Vec<Definitions<'_>> = input
        .passing
        .iter()
        .map(|story| Definitions::of(story))
        .collect();
    let notices = notices(view);
    // Only the first call after a change.
    let mut told: HashSet<(&str, &str, u64)> = HashSet::new();
    let mut noticed: HashSet<(usize, &str)> = HashSet::new();
    for call in &view.calls {
        let Some(name) = call.tool else {
            continue;
        };
        let session = call.step.session;
        let offer = view.definitions.before(call.at, session, call.server);
        let notice = last_notice(view, &notices, call);
        let notice = notice.filter(|at| offer.is_none_or(|offer| offer.at < *at));
        if let Some(notice) = notice
            && noticed.insert((notice, name))
        {
            announced(view, call, notice, found);
        }
        let now = offer.and_then(|offer| view.definitions.tool(&offer, name));
        let Some((offer, now)) = offer.zip(now) else {
            continue;
        };
        let before = view
            .definitions
            .other_before(&offer, call.server, name, now);
        let mut other = passing
            .iter()
            .enumerate()
            .filter_map(|(sibling, definitions)| {
                Some((sibling, *definitions.last_of(call.server, name)?))
            });
        let first = other.next();
        let differs = |(_, before): &(usize, Tool<'_>)| before.digest != now.digest;
        let since = first.filter(|first| differs(first) && other.all(|o| differs(&o)));
        if (before.is_some() || since.is_some()) && told.insert((call.server, name, now.digest)) {
            if let Some(before) = before {
                changed(view, call, before, now, found);
            }
            if let Some(since) = since {
                since_sibling(input, view, call, since, now, found);
            }
        }
    }
}

/// What changed first.
fn member_of_change(before: &Tool<'_>, now: &Tool<'_>) -> Option<&'static str> {
    let mut members = MEMBERS.into_iter();
    members.find(|name| member(before.text, name) != member(now.text, name))
}

fn weight(call: &Call<'_>) -> u32 {
    let part = if call.is_clean() { 60 } else { 100 };
    share(Rule::DefinitionChanged.weight(), part)
}

fn changed(
    view: &View<'_>,
    call: &Call<'_>,
    before: &Tool<'_>,
    now: &Tool<'_>,
    found: &mut Evidence,
) {
    let name = member_of_change(before, now);
    let spots = [now, before].map(|tool| tool.spot(view.story, name));
    let step = view.story.steps.get(now.at).map_or(0, |step| step.number);
    let because = format!("the tool's definition changed before it, at step {step}");
    let spots = spots.into_iter().flatten();
    found.add_weighing(
        call.at,
        Rule::DefinitionChanged,
        weight(call),
        because,
        spots,
    );
}

fn since_sibling(
    input: &Input<'_>,
    view: &View<'_>,
    call: &Call<'_>,
    (sibling, before): (usize, Tool<'_>),
    now: &Tool<'_>,
    found: &mut Evidence,
) {
    let name = member_of_change(&before, now);
    let own = now.spot(view.story, name);
    let other = input
        .passing
        .get(sibling)
        .and_then(|story| before.spot(story, name));
    let spots = own
        .into_iter()
        .chain(other.map(|spot| spot.in_sibling(sibling)));
    let because = "the tool's definition is another one than in siblings that passed";
    found.add_weighing(
        call.at,
        Rule::DefinitionChanged,
        weight(call),
        because,
        spots,
    );
}

/// The server said that its tools changed, and the client went on without asking how.
fn announced(view: &View<'_>, call: &Call<'_>, notice: usize, found: &mut Evidence) {
    let part = if call.is_clean() { 30 } else { 80 };
    let weight = share(Rule::DefinitionChanged.weight(), part);
    let step = &view.story.steps[notice];
    let text = step.request.as_ref().map(|message| &message.text[..]);
    let spot = text.and_then(|text| Spot::of(notice, step, Side::Request, text));
    let because = format!(
        "the server had said at step {} that its tools changed, and was not asked how",
        step.number
    );
    found.add_weighing(call.at, Rule::DefinitionChanged, weight, because, spot);
}

/// Positions of the steps by which servers said that their tools changed.
fn notices(view: &View<'_>) -> Vec<usize> {
    let steps = view.story.steps.iter().enumerate();
    let notices = steps.filter(|(_, step)| {
        step.method.as_deref() == Some("notifications/tools/list_changed") && !step.is_clients()
    });
    notices.map(|(at, _)| at).collect()
}

/// The last notice to a session before this step, if there is one.
fn last_notice(view: &View<'_>, notices: &[usize], call: &Call<'_>) -> Option<usize> {
    let before = &notices[..notices.partition_point(|at| *at < call.at)];
    let mut before = before.iter().rev().take(NOTICES);
    let own = |at: &&usize| view.story.steps[**at].session == call.step.session;
    before.find(own).copied()
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::{ranked, ranked_with};
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    fn listed(tale: Tale, description: &str) -> Tale {
        let tool =
            format!("{{\"tools\":[{{\"name\":\"read\",\"description\":\"{description}\"}}]}}");
        tale.request("tools/list", "{}").result(&tool)
    }

    fn read(tale: Tale, said: &str) -> Tale {
        tale.call("read", "{}").text(said)
    }

    #[test]
    fn a_change_within_the_run_is_told_of_the_next_call() {
        let run = read(listed(Tale::new(), "Reads"), "rain");
        let run = run.told_by_server("notifications/tools/list_changed", "{}");
        let story = read(read(listed(run, "Reads and sends"), "snow"), "ice").told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [5]);
        assert_eq!(ranked.rules(5), [Rule::DefinitionChanged]);
        assert_eq!(ranked.quote(5), "\"Reads and sends\"");
    }

    #[test]
    fn a_change_that_nobody_asked_about_is_told() {
        let run = read(listed(Tale::new(), "Reads"), "rain");
        let run = run.told_by_server("notifications/tools/list_changed", "{}");
        let story = read(read(run, "snow"), "ice").told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [4]);
    }

    #[test]
    fn a_change_since_siblings_that_passed_is_told() {
        let passing = read(listed(Tale::new(), "Reads"), "rain").told();
        let story = read(listed(Tale::new(), "Reads and sends"), "rain").told();
        let ranked = ranked_with(&story, &[&passing], &[]);
        assert!(ranked.rules(2).contains(&Rule::DefinitionChanged));
        let same = ranked_with(&passing, &[&passing], &[]);
        assert_eq!(same.steps(), [] as [usize; 0]);
    }
}
