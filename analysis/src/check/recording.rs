//! Rules about the recording itself: what is not in it, so that it can't be judged.

use super::context::Fact;
use super::found::Said;
use super::outcomes::named;
use super::rule::{Party, Rule, Severity};
use crate::words::count;
use agent_trace_model::Outcome;
use agent_trace_model::story::Standing;

pub(super) static GAP: Rule = Rule {
    code: "not-recorded",
    severity: Severity::Warning,
    about: "bytes were relayed that are in no record",
    why: "the disk was full or too slow. Peers saw what this check could not",
    source: "the recording's gap records",
    look: |context, found| {
        for (position, session) in context.sessions() {
            for gap in &session.gaps {
                let said = Said {
                    what: format!("{} not recorded", count(gap.bytes, "byte")),
                    subject: "",
                    quote: gap.reason.as_bytes(),
                };
                found.in_session(position, Party::Recording, said);
            }
        }
    },
};

pub(super) static UNREADABLE: Rule = Rule {
    code: "records-missing",
    severity: Severity::Warning,
    about: "records are missing or can't be read",
    why: "files were damaged or removed; `agent-trace verify` tells which",
    source: "the journal's sequence numbers and checksums",
    look: |context, found| {
        for (position, session) in context.sessions() {
            let mut what = Vec::new();
            if session.missing > 0 {
                what.push(format!("{} missing", count(session.missing, "record")));
            }
            if session.damaged > 0 {
                let bytes = count(session.damaged, "byte");
                what.push(format!("{bytes} can't be read"));
            }
            if !session.unreadable.is_empty() {
                let files = count(session.unreadable.len(), "file");
                what.push(format!("{files} can't be read"));
            }
            if !what.is_empty() {
                let said = Said {
                    what: what.join(", "),
                    subject: "",
                    quote: session.unreadable.first().map_or(&[], |why| why.as_bytes()),
                };
                found.in_session(position, Party::Recording, said);
            }
        }
    },
};

pub(super) static CUT_OFF: Rule = Rule {
    code: "cut-off",
    severity: Severity::Warning,
    about: "the end of a session was not recorded",
    why: "the relay was killed, or the disk was full: how it ended is not known",
    source: "the journal has no end record of the session",
    look: |context, found| {
        for (position, session) in context.sessions() {
            if session.standing == Standing::CutOff {
                let said = Said {
                    what: "the end of the session was not recorded".into(),
                    subject: "",
                    quote: &[],
                };
                found.in_session(position, Party::Recording, said);
            }
        }
    },
};

pub(super) static CLIPPED: Rule = Rule {
    code: "clipped",
    severity: Severity::Warning,
    about: "the beginning of a session was removed because it was too old",
    why: "what was negotiated then, and what was asked, is not known",
    source: "the session's first file is gone",
    look: |context, found| {
        for (position, session) in context.sessions() {
            if session.clipped {
                let said = Said {
                    what: "the beginning of the session is not kept any more".into(),
                    subject: "",
                    quote: &[],
                };
                found.in_session(position, Party::Recording, said);
            }
        }
    },
};

pub(super) static NOT_WHOLE: Rule = Rule {
    code: "not-checked",
    severity: Severity::Warning,
    about: "a message, or whether it was answered, is not in the recording",
    why: "it was larger than what is kept, or fell into a gap. Rules that would have to see it \
          say nothing",
    source: "the flags of its record",
    look: |context, found| {
        for fact in &context.steps {
            let what = match fact.step.outcome {
                Outcome::NotRecorded => "whether it was answered was not recorded",
                _ if !is_kept(fact) => "a part of its messages was not kept",
                _ => continue,
            };
            let said = Said {
                what: format!("{}: {what}", named(fact)),
                subject: fact.method(),
                quote: &[],
            };
            found.at(fact.step, Party::Recording, said);
        }
    },
};

/// Whether all of a step's messages is there.
fn is_kept(fact: &Fact<'_>) -> bool {
    let messages = [fact.step.request.as_ref(), fact.step.response.as_ref()];
    messages.into_iter().flatten().all(|m| m.is_whole())
}
