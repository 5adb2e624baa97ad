//! What was not looked at.

use super::Input;
use super::result::Left;
use super::view::View;
use agent_trace_model::story::Story;
use std::collections::BTreeMap;

/// What was not looked at, counted.
#[derive(Debug, Default)]
pub(super) struct Lefts(BTreeMap<&'static str, (u64, &'static str)>);

impl Lefts {
    pub(super) fn add(&mut self, what: &'static str, count: usize, because: &'static str) {
        if count > 0 {
            let entry = self.0.entry(what).or_insert((0, because));
            entry.0 += count as u64;
        }
    }

    pub(super) fn told(self) -> Vec<Left> {
        let left = self.0.into_iter();
        left.map(|(what, (count, because))| Left {
            what,
            count,
            because,
        })
        .collect()
    }
}

/// What the recording does not have, and what a ranking cannot see.
pub(super) fn of_recording(input: &Input<'_>, view: &View<'_>, left: &mut Lefts) {
    let story: &Story = input.story;
    let sessions = &story.sessions;
    let sum = |of: fn(&agent_trace_model::story::Session) -> usize| sessions.iter().map(of).sum();
    left.add(
        "gaps",
        sum(|s| s.gaps.len()),
        "times that messages were relayed but not recorded",
    );
    left.add(
        "missing_records",
        sum(|s| usize::try_from(s.missing).unwrap_or(usize::MAX)),
        "records are missing from the recording",
    );
    left.add(
        "damaged_bytes",
        sum(|s| usize::try_from(s.damaged).unwrap_or(usize::MAX)),
        "bytes of the recording cannot be read",
    );
    left.add(
        "unreadable_files",
        sum(|s| s.unreadable.len()),
        "files of the recording cannot be read",
    );
    left.add(
        "digested_sessions",
        sum(|s| usize::from(s.digested)),
        "sessions of which only digests of arguments and results were kept",
    );
    left.add(
        "clipped_sessions",
        sum(|s| usize::from(s.clipped)),
        "sessions whose beginning was removed",
    );
    let messages = story.steps.iter();
    let messages = messages.flat_map(|step| [&step.request, &step.response]);
    left.add(
        "cut_messages",
        messages.flatten().filter(|m| !m.is_whole()).count(),
        "messages were not kept as a whole",
    );
    left.add(
        "answers_in_part",
        view.calls.iter().filter(|call| call.answer.in_part).count(),
        "long answers were looked at in part: beginning and end of texts, the first values",
    );
    left.add(
        "live",
        usize::from(story.is_live()),
        "run that goes on: what comes is not known",
    );
    if input.passing.is_empty() {
        let because = "runs of the same task that passed are known: nothing was compared";
        left.0.insert("passing_siblings", (0, because));
    }
}
