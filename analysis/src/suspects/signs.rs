//! What texts say when something failed, is empty, is only a part, or is made up.
//!
//! Lists of words, fixed and short; they are about tools and servers in general. A text that
//! merely speaks of errors has such words, too, so they weigh little.

use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// A text begins with this when what it answers went wrong.
const FAILS: &str = r"^\W*(error|exception|traceback|failed|failure|fatal|panic|could not|unable to|cannot|exit ?(code|status):? ?[1-9])\b";

/// What programs print when they fail.
const SIGNS: &str = r"(?-i:exit ?code:? [1-9]|exit status [1-9]|execution failed|Traceback|chrome-error|panicked at|[A-Z]\w+(Error|Exception)\b)";

/// Words for what did not go well.
const SOFT: &str = r"not found|unable to|could not|couldn't|cannot|failed|no results|\b40[34]\b|captcha|access denied|permission denied|timed? ?out";

/// Words for what is not real.
const MADE_UP: &str =
    r"\bassum(e|ed|es|ing|ption)|hypothetical|simulat|placeholder|sample data|\bmock|for the sake";

/// A short text that says that there is nothing.
const NOTHING: &str = r"^\W*(no|none|nothing|zero|empty|null|0)\b.{0,80}$|\b(no|0|zero) ([\w-]+ ){0,3}(was |were )?(found|available|returned|exist|match(es|ed|ing)?)\b|\bfound (no|0|zero)\b|\b(is|are) empty\b|\bnot found\b|\bno such\b|\bdoes ?n[o']t exist\b";

/// A text that says that it is only a part.
const PART: &str = r"\btruncated\b|output (was |is )?(cut|too long|limited)|\b\d+ more (lines?|rows?|items?|results?|characters|bytes|entries|matches)\b|to get more content|results? limited to|showing (only )?(the )?first \d+|showing \d+(-\d+)? of \d+|\bpage 1 of ([2-9]|\d\d)|(\[(…|\.\.\.)\]|…)\W*$";

/// The expressions, made once.
#[derive(Debug)]
pub(super) struct Signs {
    pub(super) fails: Regex,
    pub(super) signs: Regex,
    pub(super) soft: Regex,
    pub(super) made_up: Regex,
    pub(super) nothing: Regex,
    pub(super) part: Regex,
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
            part: made(PART)?,
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
        assert!(
            signs
                .part
                .is_match(b"<error>Content truncated. Call the fetch tool</error>")
        );
        assert!(signs.made_up.is_match(b"We assume a price of 7"));
    }
}
