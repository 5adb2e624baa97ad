//! Printed text with what is different each time replaced.

/// Replaces times, dates and spans by fixed ones, and these texts by those; columns are
/// separated by two blanks, however wide they were.
pub(crate) fn steady(text: &str, replace: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (from, to) in replace {
        text = text.replace(from, to);
    }
    for (pattern, fixed) in [
        ("####-##-##T##:##:##.#########Z", "DATE"),
        ("####-##-## ##:##:##", "DATE"),
        ("##:##:##.###", "TIME"),
        ("<*.*>", "<0.1>"),
        (" *ms ", " 1ms "),
        (" *.*s ", " 1ms "),
        (" *.### ", " 0.1 "),
        (" *.### ", " 0.1 "),
        (" *.###### ", " 0.1 "),
        (" *.###### ", " 0.1 "),
    ] {
        text = replaced(&text, pattern, fixed);
    }
    let lines = text.lines().map(|line| {
        let cells = line.trim().split("  ").map(str::trim);
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.join("  ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// In a pattern `#` stands for a digit and `*` for one or more.
fn replaced(text: &str, pattern: &str, with: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(length) = matched(rest.as_bytes(), pattern.as_bytes()) {
            out.push_str(with);
            rest = &rest[length..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

fn matched(text: &[u8], pattern: &[u8]) -> Option<usize> {
    let mut at = 0;
    for wanted in pattern {
        match wanted {
            b'#' if text.get(at)?.is_ascii_digit() => at += 1,
            b'*' => {
                let digits = text[at..].iter().take_while(|b| b.is_ascii_digit());
                let count = digits.count();
                at += (count > 0).then_some(count)?;
            }
            literal if text.get(at) == Some(literal) => at += 1,
            _ => return None,
        }
    }
    Some(at)
}
