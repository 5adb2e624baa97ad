//! A command line as one text, split as a shell would: quotes and backslashes, nothing else.

use crate::error::CommandError;

/// The words of a command line. Nothing is expanded, and no shell is asked.
pub(super) fn split(line: &str) -> Result<Vec<String>, CommandError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let next = chars.next();
                let word = word.get_or_insert_default();
                // Within quotes a backslash is one unless it stands before what ends them.
                if quote.is_some() && !matches!(next, Some('"' | '\\')) {
                    word.push('\\');
                }
                word.extend(next);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let wrong = |what: &str| {
        Err(CommandError::Usage {
            what: what.into(),
            hint: "give a server as `--server 'COMMAND ARGUMENTS'`, with quotes around what \
                   holds blanks",
        })
    };
    if quote.is_some() {
        return wrong("the server's command has a quote that is not closed");
    }
    if words.is_empty() {
        return wrong("the server's command is empty");
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = |line: &str| split(line).unwrap();
        assert_eq!(words(" npx  -y pkg@1 "), ["npx", "-y", "pkg@1"]);
        assert_eq!(
            words(r#"a 'b c' "d \"e\" $f \n" g\ h '' i"j"k"#),
            ["a", "b c", "d \"e\" $f \\n", "g h", "", "ijk"]
        );
        assert_eq!(words("a;b|c $(d) *"), ["a;b|c", "$(d)", "*"]);
        for wrong in ["", "  ", "'a", "\"a"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
