//! What a run's row tells to a filter.

use crate::rows::{Counts, MethodTally, RunRow, ToolTally};
use agent_trace_analysis::filter::facts::{Group, Name};
use agent_trace_analysis::filter::{RunFacts, Ternary};
use agent_trace_analysis::outcomes::OutcomeSet;
use agent_trace_model::{Outcome, RunId, Verdict};
use std::borrow::Cow;

/// A row with what was decided about its run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The row.
    pub(crate) row: &'a RunRow,
    /// The verdict.
    pub(crate) verdict: Verdict,
}

impl RunFacts for Facts<'_> {
    fn id(&self) -> RunId {
        self.row.id
    }

    fn aliases(&self) -> Cow<'_, [RunId]> {
        Cow::Borrowed(&self.row.aliases)
    }

    fn started(&self) -> u64 {
        self.row.started
    }

    fn last(&self) -> u64 {
        self.row.last
    }

    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn failed(&self) -> Ternary {
        match self.verdict {
            Verdict::Right => Ternary::No,
            Verdict::Wrong => Ternary::Yes,
            Verdict::Unjudged => (self.row.failed > 0).into(),
        }
    }

    fn clients(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.row.clients.iter().map(|name| &name[..]))
    }

    fn servers(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.row.servers.iter().map(|name| &name[..]))
    }

    fn groups(&self) -> Box<dyn Iterator<Item = Group<'_>> + '_> {
        let tally = &self.row.tally;
        // Codes are counted for the run: of a group only that it has none is known.
        let no_codes = tally.codes.is_empty() && tally.statuses.is_empty();
        let server = |position: u16| {
            let name = self.row.servers.get(usize::from(position));
            name.map_or(Name::Various, |name| Name::Is(name))
        };
        let tools = tally.tools.iter().map(move |tool: &ToolTally| Group {
            count: tool.calls,
            server: server(tool.server),
            method: Name::Is("tools/call"),
            target: Name::Is(&tool.tool),
            outcomes: outcomes(&tool.outcomes),
            timed: Some(tool.durations.len()),
            duration: (!tool.durations.is_empty()).then_some((tool.shortest, tool.longest)),
            bytes: None,
            codes: Cow::Borrowed(&[]),
            all_codes: no_codes,
        });
        let methods = tally.methods.iter().map(move |method: &MethodTally| Group {
            count: method.calls,
            server: server(method.server),
            method: method.method.as_deref().into(),
            target: Name::Various,
            outcomes: outcomes(&method.outcomes),
            timed: Some(method.timed),
            duration: (method.timed > 0).then_some((method.shortest, method.longest)),
            bytes: None,
            codes: Cow::Borrowed(&[]),
            all_codes: no_codes,
        });
        Box::new(tools.chain(methods).chain(self.rest()))
    }
}

impl Facts<'_> {
    /// The steps that are in no other group: where there are more kinds of them than are
    /// counted apart.
    fn rest(&self) -> Option<Group<'_>> {
        let tally = &self.row.tally;
        let tools = tally.tools.iter().map(|tool| tool.calls);
        let methods = tally.methods.iter().map(|method| method.calls);
        let apart: u64 = tools.chain(methods).sum();
        let count = tally.steps.saturating_sub(apart);
        (count > 0).then(|| Group {
            count,
            server: Name::Various,
            method: Name::Various,
            target: Name::Various,
            outcomes: OutcomeSet::default(),
            timed: None,
            duration: None,
            bytes: None,
            codes: Cow::Borrowed(&[]),
            all_codes: false,
        })
    }
}

/// The outcomes of which there are any.
fn outcomes(counts: &Counts) -> OutcomeSet {
    OutcomeSet::of(|outcome: Outcome| counts.of(outcome) > 0)
}
