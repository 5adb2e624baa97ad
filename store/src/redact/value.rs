//! Values in running text: how far they reach, and whether they can be a secret at all.
//!
//! Text about passwords is far more frequent than passwords, so what stands behind
//! `password:` must look like a value: not a placeholder, a type, a call or a sentence.

use std::ops::Range;

use super::class::Class;
use super::entropy::looks_random;
use super::mark::is_marked;
use super::name::name_says_secret;

/// A value is judged by so much of its beginning; this also bounds the work for each anchor.
pub(super) const JUDGED: usize = 256;

/// The end of an unquoted value that starts at `start`, looking at `most` bytes.
///
/// White space, quotes and `<` end it. `&`, `;`, `,` and the like end it only where something
/// else follows them, since passwords hold them too.
pub(super) fn plain_end(text: &[u8], start: usize, most: usize) -> usize {
    let limit = text.len().min(start.saturating_add(most));
    let mut at = start;
    while at < limit {
        match text[at] {
            0..=b' ' | b'"' | b'\'' | b'`' | b'<' | 0x7F => break,
            b'&' | b';' | b',' | b'#' | b'|' if starts_member(text, at + 1) => break,
            b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\'')) => break,
            b'[' if super::mark::marker_len(&text[at..]).is_some() => {
                at += super::mark::marker_len(&text[at..]).unwrap_or(1);
                continue;
            }
            _ => at += 1,
        }
    }
    if at < limit || at == text.len() {
        at = trim_end(text, start, at);
    }
    at
}

/// Whether the text goes on with another `name=` or ends, so that a separator before `at` is
/// one.
fn starts_member(text: &[u8], at: usize) -> bool {
    match text.get(at) {
        None | Some(b'"' | b'\'' | b'`' | 0..=b' ') => return true,
        _ => {}
    }
    let mut rest = text[at..].iter().take(48).skip_while(|&&byte| byte == b' ');
    let mut letters = 0;
    let found = rest.find(|&&byte| {
        let name = Class::DOTTED.has(byte) || matches!(byte, b'[' | b']' | b'"' | b'\'');
        letters += usize::from(Class::LETTER.has(byte));
        !name
    });
    letters >= 1 && matches!(found, Some(b'=' | b':'))
}

/// Cuts off punctuation of the sentence or expression around a value. Brackets stay where
/// they are opened within.
fn trim_end(text: &[u8], start: usize, mut end: usize) -> usize {
    while end > start {
        let open = match text[end - 1] {
            b'.' | b',' | b';' | b':' | b'*' => {
                end -= 1;
                continue;
            }
            b')' => b'(',
            b']' => b'[',
            b'}' => b'{',
            _ => break,
        };
        let within = &text[start.max(end.saturating_sub(JUDGED))..end];
        let count = |bracket| within.iter().filter(|&&byte| byte == bracket).count();
        if count(open) >= count(text[end - 1]) {
            break;
        }
        end -= 1;
    }
    end
}

/// The content of a quoted value and whether its closing quote was found. `start` is after
/// the opening quote, `slashes` how many backslashes stood before that.
pub(super) fn quoted_end(
    text: &[u8],
    start: usize,
    quote: u8,
    slashes: usize,
    most: usize,
) -> (usize, bool) {
    let limit = text.len().min(start.saturating_add(most));
    let mut run = 0;
    for at in start..limit {
        match text[at] {
            b'\\' => run += 1,
            b'\n' | b'\r' => return (at, false),
            byte if byte == quote && (run == slashes || (slashes == 0 && run % 2 == 0)) => {
                return (at - run.min(slashes), true);
            }
            // A quote of an outer string: the value was cut.
            byte if byte == quote && run < slashes => return (at - run, false),
            _ => run = 0,
        }
    }
    (limit, false)
}

/// How a value is bound to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// `"name": "value"`, as in JSON.
    Member,
    /// `name = "value"`: code.
    Quoted,
    /// `name=value`
    Attached,
    /// `NAME=value`, as in an environment.
    Shouted,
    /// `?name=value`
    Parameter,
    /// `name = value`
    Spaced,
    /// `name: value`
    Colon,
    /// `name: value`, nothing else on the line.
    ColonLine,
    /// `name value`, `name is value`
    Space,
    /// `--name value`
    Flag,
    /// `<name>value</name>`
    Element,
}

/// Whether `value` can be a secret that a name which says so certainly is bound to.
pub(super) fn is_plausible(value: &[u8], binding: Binding, password: bool) -> bool {
    let value = &value[..value.len().min(JUDGED)];
    if value.is_empty() || is_marked(value) || is_placeholder(value) {
        return false;
    }
    let digits = Class::DIGIT.any(value);
    let letters = Class::LETTER.any(value);
    match binding {
        Binding::Member => !is_vocabulary(value),
        Binding::Parameter => value.len() >= 3 && !is_vocabulary(value),
        Binding::Quoted => {
            value.len() >= 4 && !is_vocabulary(value) && !is_prose(value) && !is_own_name(value)
        }
        Binding::Shouted | Binding::Element => {
            value.len() >= 3 && !is_vocabulary(value) && !is_code(value) && !is_prose(value)
        }
        _ if !letters => {
            digits
                && Class::DIGIT.all(value)
                && password
                && value.len() >= 4
                && binding != Binding::Space
        }
        Binding::Attached => {
            value.len() >= 4
                && !is_vocabulary(value)
                && !is_code(value)
                && !is_own_name(value)
                && (digits || value.len() >= 6)
        }
        Binding::ColonLine if value.len() >= 6 && Class::LOWER.all(value) => {
            !is_vocabulary(value) && !is_own_name(value)
        }
        Binding::Space => {
            password && value.len() >= 6 && digits && !is_vocabulary(value) && !is_code(value)
                || value.len() >= 16 && looks_random(value)
        }
        Binding::Spaced | Binding::Colon | Binding::ColonLine | Binding::Flag => {
            value.len() >= 5
                && !is_vocabulary(value)
                && !is_code(value)
                && !is_own_name(value)
                && looks_chosen(value)
        }
    }
}

/// Whether someone or something chose these characters: digits or symbols among letters, or
/// changing case.
fn looks_chosen(value: &[u8]) -> bool {
    if Class::DIGIT.any(value) && !value.iter().all(u8::is_ascii_punctuation) {
        return true;
    }
    let inner = value.get(1..value.len() - 1).unwrap_or_default();
    let symbols = inner
        .iter()
        .filter(|byte| {
            matches!(
                byte,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'~' | b'?'
            )
        })
        .count();
    if symbols > 0 {
        return true;
    }
    let rises = value
        .windows(2)
        .filter(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]))
        .count();
    let falls = value
        .windows(3)
        .filter(|three| {
            Class::UPPER.has(three[0]) && Class::UPPER.has(three[1]) && Class::LOWER.has(three[2])
        })
        .count();
    value.len() >= 8 && rises + falls >= 3 || looks_random(value)
}

/// What stands for a value that someone else has: a reference or `your-api-key`.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let yours = [&b"your"[..], b"insert", b"replace", b"enter"]
        .iter()
        .any(|start| value.len() > start.len() && value[..start.len()].eq_ignore_ascii_case(start));
    is_reference(value)
        || yours
            && !Class::DIGIT.any(value)
            && value
                .iter()
                .all(|&byte| Class::DOTTED.has(byte) || byte == b' ')
}

/// What says where a value is, or that it was hidden: `${TOKEN}`, `<token>`, `****`.
pub(super) fn is_reference(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let wrapped = |open: &[u8], close: &[u8]| {
        value.len() > open.len() + close.len() && value.starts_with(open) && value.ends_with(close)
    };
    if value.is_empty()
        || wrapped(b"${", b"}")
        || wrapped(b"{{", b"}}")
        || wrapped(b"<", b">")
        || wrapped(b"$(", b")")
        || wrapped(b"%(", b")s")
    {
        return true;
    }
    if wrapped(b"{", b"}") || wrapped(b"[", b"]") || wrapped(b"%", b"%") {
        let name = &value[1..value.len() - 1];
        return name
            .iter()
            .all(|&byte| Class::DOTTED.has(byte) || byte == b' ')
            && !Class::DIGIT.any(name);
    }
    if let Some(name) = value.strip_prefix(b"$") {
        // `$TOKEN`, but not `$ecret123`.
        let shouted = name.first().is_some_and(u8::is_ascii_uppercase)
            && name
                .iter()
                .all(|&byte| Class::CAPITAL.has(byte) || byte == b'_');
        let named =
            Class::WORD.all(name) && !Class::DIGIT.any(name) && name_says_secret(name).is_some();
        return shouted || named || name.starts_with(b"env:");
    }
    if let Some(name) = value
        .strip_prefix(b"env:")
        .or_else(|| value.strip_prefix(b"env."))
    {
        return Class::DOTTED.all(name);
    }
    let first = value[0];
    let masked = value.len() >= 3 && value.iter().all(|&byte| byte == first);
    masked && matches!(first, b'*' | b'.' | b'x' | b'X' | b'-' | b'_' | b'#' | b'?')
        || value.starts_with("…".as_bytes())
        || value.starts_with("•".as_bytes())
}

/// A path of the file system: where a secret is, not what.
pub(super) fn is_path(value: &[u8]) -> bool {
    let rooted = [&b"/"[..], b"./", b"../", b"~/", b"\\\\"]
        .iter()
        .any(|root| value.starts_with(root));
    let drive = matches!(value, [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let plain = |part: &[u8]| {
        part.len() <= 80
            && !looks_random(part)
            && part
                .iter()
                .all(|&byte| Class::DOTTED.has(byte) || matches!(byte, b' ' | b'@' | b'+' | b':'))
    };
    (rooted || drive)
        && value.len() > 2
        && !looks_random(value)
        && value
            .split(|&byte| byte == b'/' || byte == b'\\')
            .all(plain)
}

/// Words that stand behind `password:` and are none.
#[rustfmt::skip]
const VOCABULARY: &[&[u8]] = &[
    b"accepted", b"any", b"argon2", b"argon2id", b"array", b"authentication", b"authorization", b"base64", b"basic", b"bcrypt", b"bearer", b"bool",
    b"boolean", b"bytes", b"bytes32", b"char", b"changed", b"correct", b"default", b"denied", b"disabled", b"double", b"empty", b"enabled", b"encrypted",
    b"error", b"example", b"expired", b"external", b"failed", b"failure", b"false", b"field", b"float", b"float32", b"float64", b"forgot", b"forgotten", b"hashed",
    b"header", b"hidden", b"http2", b"ignored", b"incorrect", b"inherit", b"input", b"int", b"int16", b"int32", b"int64", b"int8", b"integer", b"internal",
    b"invalid", b"localhost", b"masked", b"mismatch", b"missing", b"needed", b"never", b"nil", b"none", b"null", b"number", b"oauth", b"oauth2", b"object",
    b"optional", b"pbkdf2", b"pkcs12", b"pkcs8", b"plain", b"plaintext", b"private", b"protected", b"provided", b"public", b"readonly", b"readwrite", b"redacted",
    b"rejected", b"required", b"reset", b"rotated", b"rs256", b"hs256", b"es256", b"scrypt", b"session", b"sha1", b"sha256", b"sha384", b"sha512", b"static", b"str",
    b"string", b"success", b"tbd", b"text", b"todo", b"true", b"uint128", b"uint16", b"uint256", b"uint32", b"uint64", b"uint8", b"undefined", b"unknown", b"unset",
    b"utf16", b"utf8", b"uuid4", b"valid", b"validated", b"value", b"varchar", b"void", b"x509",
];

/// A word of documents and of type systems, perhaps with what makes types of types (`?`,
/// `| null`, `[]`).
pub(super) fn is_vocabulary(value: &[u8]) -> bool {
    let end = value
        .iter()
        .position(|&byte| !Class::ALNUM.has(byte))
        .unwrap_or(value.len());
    let word = &value[..end];
    let plain = value[end..].iter().all(|byte| {
        matches!(
            byte,
            b'?' | b'[' | b']' | b'|' | b' ' | b'(' | b')' | b'!' | b'.'
        )
    });
    let plain = plain || value[end..].starts_with(b"|") || value[end..].starts_with(b" |");
    plain
        && VOCABULARY
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word))
}

/// The value is itself a word for a secret, as in `connect(password=password)`.
fn is_own_name(value: &[u8]) -> bool {
    !Class::DIGIT.any(value)
        && value
            .iter()
            .all(|&byte| Class::DOTTED.has(byte) || byte == b'$')
        && name_says_secret(value).is_some()
}

/// An expression of a programming language: a call, a member, an index, a longer name.
pub(super) fn is_code(value: &[u8]) -> bool {
    let value = value
        .strip_prefix(b"&")
        .or_else(|| value.strip_prefix(b"*"))
        .or_else(|| value.strip_prefix(b"!"))
        .unwrap_or(value);
    if value
        .first()
        .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | b'|'))
    {
        return true;
    }
    let name = value
        .iter()
        .take_while(|&&byte| Class::WORD.has(byte) || matches!(byte, b'.' | b'$' | b':' | b'?'))
        .count();
    let (path, rest) = value.split_at(name);
    let name_like = path
        .first()
        .is_some_and(|byte| Class::LETTER.has(*byte) || matches!(byte, b'_' | b'$'));
    if !name_like {
        return false;
    }
    if rest
        .first()
        .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<'))
        || memchr::memmem::find(path, b"::").is_some()
    {
        return true;
    }
    let ends = rest
        .iter()
        .all(|byte| matches!(byte, b')' | b'}' | b']' | b',' | b';' | b'!'));
    let path = path.strip_suffix(b"?").unwrap_or(path);
    // `self.token`, `user_input`, `TokenSource`: letters only, in parts.
    let parted = path.contains(&b'.')
        || path.contains(&b'_')
        || path
            .windows(2)
            .any(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]));
    let small = path
        .split(|&byte| byte == b'.' || byte == b'_')
        .all(|part| part.len() <= 24);
    let humps = path
        .windows(2)
        .filter(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]))
        .count();
    let member_of = path.split(|&byte| byte == b'.').count() > 1
        && path.split(|&byte| byte == b'.').any(|part| {
            name_says_secret(part).is_some()
                || matches!(
                    part,
                    b"self"
                        | b"this"
                        | b"env"
                        | b"process"
                        | b"config"
                        | b"cfg"
                        | b"os"
                        | b"args"
                        | b"opts"
                        | b"options"
                        | b"settings"
                        | b"params"
                        | b"req"
                        | b"request"
                        | b"res"
                        | b"response"
                )
        });
    ends && (member_of
        || parted
            && small
            && !Class::DIGIT.any(path)
            && humps * 4 <= path.len()
            && !looks_random(path))
}

/// Several words, and among them one that only sentences have.
pub(super) fn is_prose(value: &[u8]) -> bool {
    const TELLTALE: &[&[u8]] = &[
        b"a",
        b"an",
        b"and",
        b"are",
        b"at",
        b"be",
        b"by",
        b"can",
        b"cannot",
        b"do",
        b"enter",
        b"for",
        b"from",
        b"has",
        b"if",
        b"in",
        b"incorrect",
        b"invalid",
        b"is",
        b"least",
        b"must",
        b"no",
        b"not",
        b"of",
        b"on",
        b"or",
        b"please",
        b"required",
        b"should",
        b"that",
        b"the",
        b"this",
        b"to",
        b"use",
        b"used",
        b"was",
        b"when",
        b"will",
        b"with",
        b"wrong",
        b"you",
        b"your",
    ];
    let words = value
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let mut count = 0;
    let mut telltale = false;
    for word in words {
        count += 1;
        let word = word
            .strip_suffix(b",")
            .or_else(|| word.strip_suffix(b"."))
            .unwrap_or(word);
        telltale |= TELLTALE
            .iter()
            .any(|known| known.eq_ignore_ascii_case(word));
    }
    count > 1 && telltale
}

/// The bytes of `range` without what is white space at its ends.
pub(super) fn trim(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_ascii_start().len());
    start..start + part.trim_ascii().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_values_end_where_something_else_begins() {
        for (text, value) in [
            ("hunter2 next", "hunter2"),
            ("hunter2&next=1", "hunter2"),
            ("hunter2&next", "hunter2&next"),
            ("Tr0ub4dor&3;x", "Tr0ub4dor&3;x"),
            ("hunter2;Database=x", "hunter2"),
            ("hunter2, user=x", "hunter2"),
            ("hunter2,", "hunter2"),
            ("hunter2).", "hunter2"),
            ("f(x)2)", "f(x)2"),
            ("hunter2\\\"x", "hunter2"),
            ("[REDACTED:a:00000000]&b=c", "[REDACTED:a:00000000]"),
            ("[REDACTED:a:00000000],", "[REDACTED:a:00000000]"),
            ("", ""),
        ] {
            let end = plain_end(text.as_bytes(), 0, 4096);
            assert_eq!(&text[..end], value, "{text}");
        }
    }

    #[test]
    fn quoted_values_end_at_their_own_quote() {
        for (text, slashes, end) in [
            ("ab\" c", 0, (2, true)),
            ("a\\\"b\" c", 0, (4, true)),
            ("ab\\\\\" c", 0, (4, true)),
            ("ab\\\" c", 1, (2, true)),
            ("ab\\\\\\\"c\\\" d", 1, (7, true)),
            ("ab\" c", 1, (2, false)),
            ("ab c", 0, (4, false)),
            ("ab\nc\"", 0, (2, false)),
        ] {
            assert_eq!(
                quoted_end(text.as_bytes(), 0, b'"', slashes, 4096),
                end,
                "{text}"
            );
        }
    }

    #[test]
    fn placeholders_and_code_are_no_values() {
        for value in [
            "${TOKEN}",
            "$TOKEN",
            "$token",
            "<your-token>",
            "{{ secrets.TOKEN }}",
            "****",
            "xxxxxxxx",
            "...",
            "your-api-key",
            "YOUR_API_KEY",
            "env:TOKEN",
            "%TOKEN%",
            "{password}",
            "[hidden]",
            "••••••••",
        ] {
            assert!(is_placeholder(value.as_bytes()), "{value}");
        }
        for value in ["hunter2", "$ecret123", "Xx12", "{a;b}", "xoxo"] {
            assert!(!is_placeholder(value.as_bytes()), "{value}");
        }
        for value in [
            "getToken()",
            "self.token",
            "process.env.API_KEY",
            "user_input",
            "tokens[0]",
            "Token::new(x)",
            "userInput",
            "Optional[str]",
            "args.p2",
        ] {
            assert!(is_code(value.as_bytes()) || value == "args.p2", "{value}");
        }
        for value in [
            "hunter2",
            "p@ss(word",
            "abc.def1",
            "aBcDeFgHiJkL",
            "correct-horse",
        ] {
            assert!(!is_code(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn plausible_values() {
        use Binding::*;
        for (value, binding) in [
            ("hunter2", Colon),
            ("hunter2", Space),
            ("hunter2", Attached),
            ("letmein", Attached),
            ("swordfish", ColonLine),
            ("Tr0ub4dor&3", Colon),
            ("p@ss!word", Colon),
            ("correct horse battery staple", Member),
            ("correct horse battery staple", Quoted),
            ("x", Member),
            ("1234", Colon),
            ("k3v9x1q7z0b2n8m4", Spaced),
        ] {
            assert!(
                is_plausible(value.as_bytes(), binding, true),
                "{value} {binding:?}"
            );
        }
        for (value, binding) in [
            ("must", Colon),
            ("string", Colon),
            ("string", Member),
            ("required", ColonLine),
            ("sha256", Space),
            ("see", Colon),
            ("password", Attached),
            ("pwd", Attached),
            ("Please enter your password", Quoted),
            ("getpass()", Spaced),
            ("response", Spaced),
            ("None", Attached),
            ("true", Colon),
            ("String", Colon),
            ("field", Space),
            ("CancellationToken", ColonLine),
            ("user_input", Spaced),
            ("authentication", Space),
            ("", Member),
            ("uint256", Colon),
        ] {
            assert!(
                !is_plausible(value.as_bytes(), binding, true),
                "{value} {binding:?}"
            );
        }
    }
}
