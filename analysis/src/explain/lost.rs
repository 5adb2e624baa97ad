//! What is missing in the recording, and what no recording of this kind can tell.

use super::{Points, Topic, client, name};
use crate::quote::head;
use crate::words::count;
use agent_trace_model::Verdict;
use agent_trace_model::step::{Message, Step};
use agent_trace_model::story::{Session, Standing, Story};

pub(super) fn tell(story: &Story, verdict: Verdict, points: &mut Points) {
    for session in &story.sessions {
        lost(session, points);
    }
    let messages = |step: &Step, is: &dyn Fn(&Message) -> bool| {
        let messages = [&step.request, &step.response];
        messages.into_iter().flatten().any(is)
    };
    let is_part: &dyn Fn(&Message) -> bool = &|message| !message.is_whole() || message.incomplete;
    let parts = || story.steps.iter().filter(|step| messages(step, is_part));
    if parts().next().is_some() {
        let steps = count(parts().count(), "step");
        let text = format!("Of {steps} a message was not kept as a whole.");
        points.say(
            Topic::Lost,
            text,
            parts().map(|step| step.number),
            Vec::new(),
        );
    }
    let is_lost: &dyn Fn(&Message) -> bool = &|message| !message.delivered;
    let lost = || story.steps.iter().filter(|step| messages(step, is_lost));
    if lost().next().is_some() {
        let text = "These messages did not reach the other side.";
        points.say(
            Topic::Lost,
            text,
            lost().map(|step| step.number),
            Vec::new(),
        );
    }
    if !points.has(Topic::Lost) {
        let text = "As far as the recording can tell, nothing is missing in it.";
        points.say(Topic::Lost, text, [], Vec::new());
    }
    unknown(story, verdict, points);
}

fn lost(session: &Session, points: &mut Points) {
    let server = name(&session.server);
    let mut say = |text: String| points.say(Topic::Lost, text, [], Vec::new());
    for gap in &session.gaps {
        let (frames, bytes) = (gap.frames, gap.bytes);
        let reason = head(gap.reason.as_bytes(), 80);
        say(format!(
            "Of the session with {server}, {} ({}) were relayed but not recorded: {reason}.",
            count(bytes, "byte"),
            count(frames, "whole frame")
        ));
    }
    if session.missing > 0 {
        say(format!(
            "Of the session with {server}, {} missing.",
            match session.missing {
                1 => "1 record is".to_owned(),
                many => format!("{many} records are"),
            }
        ));
    }
    if session.damaged > 0 || !session.unreadable.is_empty() {
        let files = session.unreadable.len();
        say(format!(
            "Of the session with {server}, {} and {} cannot be read.",
            count(session.damaged, "byte"),
            count(files, "file")
        ));
    }
    if session.clipped {
        say(format!(
            "The beginning of the session with {server} was removed because it was too old."
        ));
    }
    if session.standing == Standing::CutOff {
        say(format!(
            "The end of the session with {server} was not recorded: the relay was killed, or the disk was full."
        ));
    }
    if session.digested {
        say(format!(
            "Of what was said to and by {server} only digests of arguments and results were kept."
        ));
    }
}

fn unknown(story: &Story, verdict: Verdict, points: &mut Points) {
    let mut say = |text: String| points.say(Topic::Unknown, text, [], Vec::new());
    if story.turns.is_empty() {
        let client = story.sessions.first().map_or("the client".into(), client);
        say(format!(
            "What the user wanted, and what {} answered, is not in this recording: only what went to and from servers is.",
            client.replace("The client", "the client")
        ));
    }
    let messages = story
        .steps
        .iter()
        .flat_map(|step| [&step.request, &step.response]);
    let hidden = messages
        .flatten()
        .filter(|message| message.redacted > 0)
        .count();
    if hidden > 0 {
        say(format!(
            "In {} secrets were hidden; what they were is not kept.",
            count(hidden, "message")
        ));
    }
    if story
        .sessions
        .iter()
        .any(|session| session.standing == Standing::Live)
    {
        say("The run goes on: what is said here can change.".into());
    }
    if verdict == Verdict::Unjudged {
        say("Whether the results were right is not known: a result that is no error may still be wrong.".into());
    }
}
