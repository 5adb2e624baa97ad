//! Arguments that do not fit what the server said of the tool.

use super::share;
use crate::suspects::definitions::Tool;
use crate::suspects::evidence::Evidence;
use crate::suspects::left::Lefts;
use crate::suspects::quotes::Spot;
use crate::suspects::result::Side;
use crate::suspects::schema::{self, BYTES};
use crate::suspects::view::{Call, View};
use crate::suspects::walk;
use crate::suspects::weights::Rule;
use agent_trace_wire::message::member;
use serde_json::Value;
use std::collections::HashMap;

pub(super) fn find(view: &View<'_>, found: &mut Evidence, left: &mut Lefts) {
    let (mut unknown, mut long) = (0, 0);
    // Each schema is read once.
    let mut schemas: HashMap<(usize, &str), Option<Value>> = HashMap::new();
    for call in &view.calls {
        let Some(name) = call.tool else {
            continue;
        };
        let session = call.step.session;
        let Some(offer) = view.definitions.before(call.at, session, call.server) else {
            unknown += 1;
            continue;
        };
        let Some(tool) = view.definitions.tool(&offer, name) else {
            if offer.is_whole {
                no_such_tool(call, found);
            }
            continue;
        };
        if call.arguments.len() > BYTES || tool.text.len() > BYTES {
            long += 1;
            continue;
        }
        let schema = schemas.entry((tool.at, name)).or_insert_with(|| {
            let schema = member(tool.text, "inputSchema")?;
            serde_json::from_slice(schema).ok()
        });
        let arguments = match call.arguments {
            b"" => Some(Value::Object(serde_json::Map::new())),
            text => serde_json::from_slice(text).ok(),
        };
        if let Some((schema, arguments)) = schema.as_ref().zip(arguments) {
            misfit(view, call, tool, (schema, &arguments), found);
        }
    }
    left.add(
        "arguments_without_definition",
        unknown,
        "calls of tools whose definitions were not recorded before: their arguments were not checked",
    );
    left.add(
        "long_arguments",
        long,
        "calls whose arguments or definitions are too long to be checked",
    );
}

fn no_such_tool(call: &Call<'_>, found: &mut Evidence) {
    let weight = Rule::InvalidArguments.weight();
    let (part, end) = match (call.recovered, call.is_clean()) {
        (true, _) => (20, "; a later call of it went well"),
        (_, true) => (20, "; it answered all the same"),
        _ => (100, ""),
    };
    let because = format!("the server had listed its tools, and none of this name{end}");
    let spots = super::super::quotes::text(call.step, Side::Request);
    let spots = spots.and_then(|text| {
        let range = walk::locate(text, "/params/name")?;
        Some(Spot::new(call.at, Side::Request, range))
    });
    let weight = share(weight, part);
    found.add_weighing(call.at, Rule::InvalidArguments, weight, because, spots);
}

fn misfit(
    view: &View<'_>,
    call: &Call<'_>,
    tool: &Tool<'_>,
    (schema, arguments): (&Value, &Value),
    found: &mut Evidence,
) {
    let Some(misfit) = schema::misfit(schema, arguments) else {
        return;
    };
    let weight = Rule::InvalidArguments.weight();
    let (part, end) = match (call.recovered, call.is_clean()) {
        (true, _) => (10, "; a later call of the tool went well"),
        (_, true) => (60, "; the server took it all the same"),
        _ => (100, ""),
    };
    let because = format!(
        "its arguments do not fit the tool's schema: {}{end}",
        misfit.because
    );
    let given = call.argument(&misfit.at).or_else(|| call.asked());
    let said = member(tool.text, "inputSchema").and_then(|schema| {
        let step = view.story.steps.get(tool.at)?;
        let mut spot = Spot::of(tool.at, step, Side::Response, schema)?;
        let range = walk::locate(schema, &misfit.schema)?;
        spot.range = spot.range.start + range.start..spot.range.start + range.end;
        Some(spot)
    });
    let spots = given.into_iter().chain(said);
    found.add_weighing(
        call.at,
        Rule::InvalidArguments,
        share(weight, part),
        because,
        spots,
    );
}

#[cfg(test)]
mod tests {
    use crate::suspects::testing::ranked;
    use crate::suspects::weights::Rule;
    use crate::testing::Tale;

    const TOOLS: &str = r#"{"tools":[{"name":"read","inputSchema":{"type":"object",
        "properties":{"id":{"type":"integer"}},"required":["id"]}}]}"#;

    fn listed() -> Tale {
        Tale::new().request("tools/list", "{}").result(TOOLS)
    }

    #[test]
    fn arguments_are_checked_against_the_recorded_list() {
        let story = listed()
            .call("read", r#"{"id":12}"#)
            .text("water")
            .call("read", r#"{"id":"twelve"}"#)
            .tool_error("no such note")
            .call("wipe", "{}")
            .tool_error("no")
            .call("hello", "{}")
            .text("hello")
            .told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [3, 4, 5]);
        assert!(ranked.rules(3).contains(&Rule::InvalidArguments));
        assert!(ranked.rules(4).contains(&Rule::InvalidArguments));
        let quotes = ranked.quotes(4, Rule::InvalidArguments);
        assert_eq!(quotes, ["\"wipe\""]);
        // The server knows more than it lists.
        assert_eq!(ranked.rules(5), [Rule::InvalidArguments]);
        assert!(ranked.score(5) < 1.0);
        assert_eq!(ranked.rules(2), []);
    }

    #[test]
    fn a_slip_that_was_made_good_weighs_little() {
        let story = listed()
            .call("read", r#"{"id":"twelve"}"#)
            .tool_error("id is no number")
            .call("read", r#"{"id":12}"#)
            .text("water")
            .told();
        assert!(ranked(&story).score(2) < 1.5);
    }

    #[test]
    fn without_a_list_nothing_is_checked_and_that_is_told() {
        let story = Tale::new().call("read", r#"{"id":"x"}"#).text("y").told();
        let ranked = ranked(&story);
        assert_eq!(ranked.steps(), [] as [usize; 0]);
        assert_eq!(ranked.left("arguments_without_definition"), 1);
    }
}
