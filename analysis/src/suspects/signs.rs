//! What texts say when something failed, is empty, is only a part, or is made up.
//!
//! Lists of words, fixed and short; they are about tools and servers in general. A text that
//! merely speaks of errors has such words, too, so they weigh little.

use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;
use std::sync::LazyLock;

/// A text begins with this when what it answers went wrong. Words that may as well begin a
/// heading or a line of a report (`Error handling`, `Failed logins: 0`) need what follows them.
const FAILS: &str = r"(?x)^\W*(
    (fatal\ )?(error|exception|failure|panic|fatal)
        (\W*$ | \W*[:!\[(] | \ -?\d | \ (code|while|when|in|at|during|occurred)\b
        | \ (calling|connecting|creating|executing|fetching|getting|loading|opening|parsing
            |processing|reading|retrieving|running|searching|writing)\b)
    | failed (\W*$ | \W*[:!] | \ (to|with|while|because|at)\b)
    | (traceback|could\ not|unable\ to|cannot|exit\ ?(code|status):?\ ?[1-9])\b
)";

/// What programs print when they fail.
const SIGNS: &str = r"(?-i:exit ?code:? [1-9]|exit status [1-9]|execution failed|Traceback|chrome-error|panicked at|[A-Z]\w+(Error|Exception)\b)";

/// Words for what did not go well.
const SOFT: &str = r"not found|unable to|could not|couldn't|cannot|failed|no results|\b40[34]\b|captcha|access denied|permission denied|timed? ?out";

/// Words for what is not real.
const MADE_UP: &str =
    r"\bassum(e|ed|es|ing|ption)|hypothetical|simulat|placeholder|sample data|\bmock|for the sake";

/// A short text that says that there is nothing.
const NOTHING: &str = r"^\W*(none|nothing|zero|empty|null)\b.{0,80}$|^\W*no( [a-z].{0,80})?\W*$|^\W*0( [a-z].{0,80})?\W*$|\b(no|0|zero) ([\w-]+ ){0,3}(was |were )?(found|available|returned|exist|match(es|ed|ing)?)\b|\bfound (no|0|zero)\b|\b(is|are) empty\b|\bnot found\b|\bno such\b|\bdoes ?n[o']t exist\b";

/// A text that says that nothing is wrong, which is something.
const FINE: &str = r"\b(no|0|zero|without) ([\w-]+ ){0,2}(errors?|warnings?|problems?|failures?|conflicts?|violations?|vulnerabilit(y|ies)|objections?)\b|\bpassed\b|\bsuccess(ful(ly)?)?\b|\bsucceeded\b";

/// A text that says that it is only a part.
const PART: &str = r"\btruncated\b|output (was |is )?(cut|too long|limited)|\b\d+ more (lines?|rows?|items?|results?|characters|bytes|entries|matches)\b|to get more content|results? limited to|showing (only )?(the )?first \d+|\bpage 1 of ([2-9]|\d\d)|(\[(…|\.\.\.)\]|…)\W*$";

/// A text that says how much of what there is it shows: up to which one, and of how many.
const SHOWN: &str = r"\bshowing (?:\d+ ?[-–] ?)?(\d+) of (\d+)";

/// The expressions, made once.
#[derive(Debug)]
pub(super) struct Signs {
    pub(super) fails: Regex,
    pub(super) signs: Regex,
    pub(super) soft: Regex,
    pub(super) made_up: Regex,
    pub(super) nothing: Regex,
    pub(super) fine: Regex,
    part: Regex,
    shown: Regex,
}

impl Signs {
    /// Where a text says that it is only a part.
    pub(super) fn part(&self, text: &[u8]) -> Option<Range<usize>> {
        let number = |digits: &[u8]| str::from_utf8(digits).ok()?.parse::<u64>().ok();
        let mut shown = self.shown.captures_iter(text).filter_map(|found| {
            let (to, of) = (number(&found[1])?, number(&found[2])?);
            (to < of).then(|| found.get(0))?
        });
        let part = self.part.find(text).or_else(|| shown.next())?;
        Some(part.range())
    }
}

/// All of them; none only if one were no expression, which a test rules out.
pub(super) fn signs() -> Option<&'static Signs> {
    static SIGNS_ONCE: LazyLock<Option<Signs>> = LazyLock::new(|| {
        let made = |text: &str| RegexBuilder::new(text).case_insensitive(true).build().ok();
        Some(Signs {
            fails: made(FAILS)?,
            signs: made(SIGNS)?,
            soft: made(SOFT)?,
            made_up: made(MADE_UP)?,
            nothing: made(NOTHING)?,
            fine: made(FINE)?,
            part: made(PART)?,
            shown: made(SHOWN)?,
        })
    });
    SIGNS_ONCE.as_ref()
}

/// Members under which a list stands that was asked for.
pub(super) const LISTS: [&[u8]; 24] = [
    b"results",
    b"result",
    b"items",
    b"data",
    b"rows",
    b"records",
    b"entries",
    b"matches",
    b"hits",
    b"issues",
    b"files",
    b"nodes",
    b"entities",
    b"relations",
    b"list",
    b"values",
    b"contents",
    b"documents",
    b"tasks",
    b"events",
    b"messages",
    b"users",
    b"resources",
    b"pages",
];

/// Members that count what was found.
pub(super) const COUNTS: [&[u8]; 8] = [
    b"count",
    b"total",
    b"total_count",
    b"totalCount",
    b"totalResults",
    b"num_results",
    b"size",
    b"length",
];

/// Members that hold what went wrong.
pub(super) const ERRORS: [&[u8]; 7] = [
    b"error",
    b"errors",
    b"error_message",
    b"errorMessage",
    b"exception",
    b"err",
    b"fault",
];

/// What such a member says where nothing did.
pub(super) const NONE: [&[u8]; 8] = [
    b"none",
    b"None",
    b"no",
    b"No error",
    b"no error",
    b"ok",
    b"OK",
    b"0",
];

/// Members that say whether it went well.
pub(super) const WELL: [&[u8]; 4] = [b"success", b"succeeded", b"ok", b"successful"];

/// Members under which the way to the rest stands.
pub(super) const NEXT: [&[u8]; 8] = [
    b"nextCursor",
    b"next_cursor",
    b"nextPageToken",
    b"next_page_token",
    b"next_page",
    b"nextPage",
    b"nextToken",
    b"next_token",
];

/// Members that are true where there is more.
pub(super) const MORE: [&[u8]; 8] = [
    b"has_more",
    b"hasMore",
    b"truncated",
    b"is_truncated",
    b"isTruncated",
    b"incomplete_results",
    b"hasNextPage",
    b"has_next_page",
];

/// Arguments that say from where on something is wanted.
pub(super) const PLACES: [&str; 18] = [
    "cursor",
    "page",
    "page_number",
    "pageNumber",
    "offset",
    "start",
    "start_index",
    "startIndex",
    "startAt",
    "start_at",
    "from",
    "after",
    "skip",
    "page_token",
    "pageToken",
    "next_token",
    "nextToken",
    "starting_token",
];

/// Arguments that say how much is wanted.
pub(super) const LIMITS: [&[u8]; 12] = [
    b"limit",
    b"max_results",
    b"maxResults",
    b"max_count",
    b"page_size",
    b"pageSize",
    b"per_page",
    b"perPage",
    b"top",
    b"head",
    b"tail",
    b"first",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_expressions() {
        let signs = signs().unwrap();
        assert!(signs.fails.is_match(b"Error: ENOENT"));
        assert!(signs.fails.is_match(b"exitcode: 1 (execution failed)"));
        assert!(!signs.fails.is_match(b"exitcode: 0 (execution succeeded)"));
        assert!(!signs.fails.is_match(b"No errors"));
        assert!(signs.signs.is_match(b"a ValueError: x"));
        assert!(!signs.signs.is_match(b"an error, Error"));
        assert!(signs.nothing.is_match(b"No matches found"));
        assert!(
            signs
                .nothing
                .is_match(b"Your search returned 0 results, 0 rows found")
        );
        assert!(signs.nothing.is_match(b"Note 17 was not found."));
        assert!(!signs.nothing.is_match(b"Notes: 3"));
        let truncated = b"<error>Content truncated. Call the fetch tool</error>";
        assert!(signs.part(truncated).is_some());
        assert!(signs.made_up.is_match(b"We assume a price of 7"));
    }

    #[test]
    fn headings_and_reports_are_no_failures() {
        let signs = signs().unwrap();
        for text in [
            "# Error handling",
            "Failed logins: 0",
            "Exception handling cannot be mocked",
            "Errors and warnings",
            "Failure modes of pumps",
            "Error budget: 3 %",
            "Fatal accidents, 1990 to 2000",
        ] {
            assert!(!signs.fails.is_match(text.as_bytes()), "{text}");
        }
        for text in [
            "Error",
            "**Error:** no such file",
            "Error 404",
            "error[E0308]: mismatched types",
            "Error reading file",
            "Error (code 7)",
            "Fatal error: out of memory",
            "fatal: not a git repository",
            "Failed to fetch",
            "failed: x",
            "Exception in thread main",
            "Unable to connect",
            "Traceback (most recent call last)",
        ] {
            assert!(signs.fails.is_match(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn all_of_them_are_no_part() {
        let signs = signs().unwrap();
        for text in ["Showing 5 of 5", "Showing 21-40 of 40", "page 1 of 1"] {
            assert_eq!(signs.part(text.as_bytes()), None, "{text}");
        }
        for text in [
            "Showing 5 of 57",
            "Showing 1-20 of 40",
            "showing 3 of 3 users, showing 5 of 9 teams",
        ] {
            assert!(signs.part(text.as_bytes()).is_some(), "{text}");
        }
    }
}
