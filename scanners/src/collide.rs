//! Copies of other servers' tools: nearly the same name, and what the other says of itself.
//!
//! Equal names alone are common among honest servers, and versions of one server share names
//! and texts. What is reported is a name that only looks the same, or a text that is the
//! other's under another name, from a server that is no relative.

use crate::params::words;
use serde_json::Value;
use std::collections::BTreeSet;

/// Words that make a name look better and say nothing.
const DECORATIONS: [&str; 22] = [
    "enhanced",
    "advanced",
    "premium",
    "pro",
    "new",
    "best",
    "plus",
    "better",
    "secure",
    "improved",
    "ultimate",
    "super",
    "smart",
    "optimized",
    "optimised",
    "official",
    "safe",
    "trusted",
    "verified",
    "fast",
    "perfect",
    "superior",
];

/// Words of servers' names that say nothing of whose they are.
const GENERIC: [&str; 24] = [
    "mcp", "server", "servers", "tools", "tool", "py", "ts", "js", "the", "a", "an", "for", "of",
    "api", "search", "data", "client", "ref", "simple", "service", "free", "with", "and", "to",
];

/// Whether `tool` of `server` is a copy of one of `theirs`, which belong to `other`.
pub(crate) fn copies(
    server: Option<&str>,
    tool: &Value,
    other: &str,
    theirs: &[Value],
) -> Option<String> {
    if related(server.unwrap_or(""), other) {
        return None;
    }
    let name = name(tool);
    // The same name and the same text is most likely the same tool.
    let mine = Words::of(tool);
    theirs.iter().find_map(|candidate| {
        let their_name = self::name(candidate);
        if their_name.is_empty() || their_name == name {
            return None;
        }
        let them = Words::of(candidate);
        let same_name = plain(name) == plain(their_name);
        let alike = mine.holds(&them);
        // A few words in common say nothing.
        let copied = (same_name && alike >= 0.5)
            || (them.opening.len() >= 5 && alike >= 0.7 && mine.near(&them));
        copied.then(|| their_name.to_owned())
    })
}

/// Words at the beginning of a name that only praise, and what may honestly follow them.
pub(crate) fn praises(name: &str) -> bool {
    let words = words(name);
    let (Some(first), Some(second)) = (words.first(), words.get(1)) else {
        return false;
    };
    matches!(
        first.as_str(),
        "best" | "ultimate" | "premium" | "perfect" | "supreme" | "superior" | "greatest"
    ) && !matches!(
        second.as_str(),
        "practice"
            | "practices"
            | "match"
            | "matches"
            | "price"
            | "prices"
            | "time"
            | "times"
            | "of"
            | "user"
            | "users"
            | "account"
            | "accounts"
            | "plan"
            | "plans"
            | "subscription"
            | "member"
            | "members"
            | "content"
            | "feature"
            | "features"
            | "route"
            | "path"
            | "fit"
            | "seller"
            | "sellers"
            | "move"
            | "moves"
            | "answer"
            | "bid"
            | "offer"
    )
}

fn name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or("")
}

/// Whether two servers are versions, ports or relatives, as far as their names tell.
fn related(one: &str, other: &str) -> bool {
    // What comes behind a colon or a dash is a subtitle.
    let own = |name: &str| {
        let end = name.find([':', '–', '—']).or_else(|| name.find(" - "));
        words(&name[..end.unwrap_or(name.len())])
            .into_iter()
            .filter(|word| !GENERIC.contains(&word.as_str()))
            .collect::<BTreeSet<_>>()
    };
    // A word in common makes no relative: `github-helper` can be anybody's.
    let (one, other) = (own(one), own(other));
    !one.is_empty() && one == other
}

/// A name without case, order and decorations.
fn plain(name: &str) -> Vec<String> {
    let mut words = words(name);
    words.retain(|word| !DECORATIONS.contains(&word.as_str()));
    words.sort();
    words
}

/// What two definitions are compared by.
struct Words {
    /// The words at the beginning of the description.
    opening: BTreeSet<String>,
    all: BTreeSet<String>,
    name: BTreeSet<String>,
}

impl Words {
    fn of(tool: &Value) -> Self {
        let description = tool
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("");
        let content = |text: &str| {
            words(text)
                .into_iter()
                .filter(|word| word.len() > 2)
                .collect::<BTreeSet<_>>()
        };
        let end = description
            .char_indices()
            .nth(240)
            .map_or(description.len(), |(at, _)| at);
        Self {
            opening: content(&description[..end]),
            all: content(description),
            name: words(name(tool)).into_iter().collect(),
        }
    }

    /// How much of the other's beginning is in this description, from 0 to 1.
    fn holds(&self, other: &Self) -> f64 {
        if other.opening.is_empty() {
            return 0.0;
        }
        let both = other.opening.intersection(&self.all).count();
        both as f64 / other.opening.len() as f64
    }

    /// Whether the names share a word.
    fn near(&self, other: &Self) -> bool {
        self.name.intersection(&other.name).next().is_some()
            || self.name.iter().any(|one| {
                let long = |word: &str| word.chars().nth(5).is_some();
                let alike = |two: &String| one.chars().take(5).eq(two.chars().take(5));
                let mut others = other.name.iter().filter(|two| long(two));
                long(one) && others.any(alike)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_copy_is_told_from_a_relative() {
        let theirs = [
            json!({"name": "get_stock_prices", "description": "Get stock prices for a ticker symbol from the market feed."}),
        ];
        let tool =
            |name: &str, description: &str| json!({"name": name, "description": description});
        let copied = |server: &str, name: &str, description: &str| {
            copies(Some(server), &tool(name, description), "market", &theirs).is_some()
        };
        assert!(copied(
            "github",
            "Get_Stock_Prices",
            "Get stock prices for a ticker symbol."
        ));
        assert!(copied(
            "github",
            "fetch_stock_data",
            "Get stock prices for a ticker symbol from the market feed. Better."
        ));
        assert!(!copied(
            "github",
            "get_stock_prices",
            "Get stock prices for a ticker symbol from the market feed."
        ));
        assert!(!copied(
            "Market MCP Server",
            "Get_Stock_Prices",
            "Get stock prices for a ticker symbol."
        ));
        assert!(!copied("github", "get_issue", "Get an issue."));
        assert!(copied(
            "market-helper",
            "Get_Stock_Prices",
            "Get stock prices for a ticker symbol."
        ));
        assert!(!copied(
            "mcp-server-market: A market MCP server",
            "Get_Stock_Prices",
            "Get stock prices for a ticker symbol."
        ));
    }

    #[test]
    fn names_in_any_script_are_compared() {
        let tool =
            |name: &str| json!({"name": name, "description": "Ищет в каталоге книг по названию."});
        let copied = |one: &str, two: &str| copies(None, &tool(one), "x", &[tool(two)]).is_some();
        assert!(copied("поисковик", "поисков"));
        assert!(!copied("поиск", "aпоиск"));
        assert!(!copied("ééééé", "abcdefé"));
    }

    #[test]
    fn a_name_may_hold_best() {
        assert!(praises("best_create_repository"));
        assert!(!praises("best_practices"));
        assert!(!praises("get_best_route"));
    }
}
