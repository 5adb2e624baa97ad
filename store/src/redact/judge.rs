//! Whether what stands behind a name can be a secret at all.
//!
//! Text about passwords is far more frequent than passwords, so that a value must look like
//! one: not a placeholder, a type, a call or a sentence. How much it must look like one depends
//! on how it is bound to its name.

use memchr::memmem;

use super::class::Class;
use super::entropy::looks_random;
use super::mark::is_marked;
use super::name::name_says_secret;
use super::value::JUDGED;
use super::words::{is_placeholder, is_prose, is_vocabulary};

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

/// Whether `value` can be a secret, bound to a name that says so for certain. `password`: the
/// name speaks of a password, which people choose.
pub(super) fn is_plausible(value: &[u8], binding: Binding, password: bool) -> bool {
    let value = &value[..value.len().min(JUDGED)];
    if value.is_empty() || is_marked(value) || is_placeholder(value) || is_vocabulary(value) {
        return false;
    }
    if binding == Binding::Member {
        return !is_word_for_secret(value);
    }
    if is_url(value) || is_pattern(value) {
        return false;
    }
    let digits = Class::DIGIT.any(value);
    let letters = Class::LETTER.any(value);
    match binding {
        Binding::Member => true,
        Binding::Parameter => {
            value.len() >= 3 && !value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{'))
        }
        Binding::Quoted => {
            value.len() >= 4
                && (letters || digits)
                && !is_prose(value)
                && !is_own_name(value)
                && !has(value, b"::")
                && (password || !is_dotted(value))
        }
        Binding::Shouted | Binding::Element => {
            value.len() >= 3 && !is_code(value) && !is_prose(value)
        }
        _ if !letters => {
            password && value.len() >= 4 && Class::DIGIT.all(value) && binding != Binding::Space
        }
        _ if is_code(value) => false,
        Binding::Space => password && value.len() >= 6 && digits || looks_random(value),
        _ if is_own_name(value) => false,
        Binding::Attached => value.len() >= 6 || value.len() >= 4 && digits,
        Binding::ColonLine if value.len() >= 6 && Class::LOWER.all(value) => true,
        Binding::Spaced | Binding::Colon | Binding::ColonLine | Binding::Flag => {
            value.len() >= 5 && looks_chosen(value)
        }
    }
}

/// Whether someone or something chose these characters: digits or symbols among letters, or
/// changing case.
fn looks_chosen(value: &[u8]) -> bool {
    if Class::DIGIT.any(value) {
        return true;
    }
    let symbol = |byte: &u8| {
        matches!(
            byte,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'~' | b'?'
        )
    };
    if value[1..value.len() - 1].iter().any(symbol) {
        return true;
    }
    let rises = humps(value);
    let falls = value
        .windows(3)
        .filter(|three| Class::UPPER.all(&three[..2]) && Class::LOWER.has(three[2]))
        .count();
    value.len() >= 8 && rises + falls >= 3
        || value.len() >= 16 && (Class::LOWER.all(value) || Class::UPPER.all(value))
        || looks_random(value)
}

/// Small letters followed by capitals.
fn humps(value: &[u8]) -> usize {
    value
        .windows(2)
        .filter(|pair| Class::LOWER.has(pair[0]) && Class::UPPER.has(pair[1]))
        .count()
}

/// Words with dots between, as scopes in the grammar of an editor.
fn is_dotted(value: &[u8]) -> bool {
    let word = |byte: &u8| Class::LOWER.has(*byte) || matches!(byte, b'-' | b'_');
    let words = value.split(|&byte| byte == b'.');
    words.clone().count() > 1
        && words
            .into_iter()
            .all(|part| !part.is_empty() && part.iter().all(word))
}

fn has(value: &[u8], part: &[u8]) -> bool {
    memmem::find(value, part).is_some()
}

/// A URL is no secret, though a part of it can be.
fn is_url(value: &[u8]) -> bool {
    has(&value[..value.len().min(24)], b"://")
}

/// A regular expression.
fn is_pattern(value: &[u8]) -> bool {
    [
        &b".*"[..],
        b".+",
        b"(?",
        b"\\w",
        b"\\d",
        b"\\s",
        b"\\x",
        b"[^",
        b"a-z",
    ]
    .iter()
    .any(|part| has(value, part))
}

/// What an example has for a value: `"Authorization": "Bearer token"`.
fn is_word_for_secret(value: &[u8]) -> bool {
    const WORDS: &[&[u8]] = &[
        b"api key",
        b"api-key",
        b"api_key",
        b"apikey",
        b"cookie",
        b"credentials",
        b"key",
        b"passphrase",
        b"passwd",
        b"password",
        b"secret",
        b"token",
    ];
    WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// The value is itself a word for a secret, as in `connect(password=password)`.
pub(super) fn is_own_name(value: &[u8]) -> bool {
    let name = value
        .iter()
        .all(|&byte| Class::DOTTED.has(byte) || matches!(byte, b'$' | b' '));
    name && !Class::DIGIT.any(value) && name_says_secret(value).is_some()
}

/// An expression of a programming language: a call, a member, an index, a type.
pub(super) fn is_code(value: &[u8]) -> bool {
    let value = match value {
        [b'&' | b'*' | b'!', rest @ ..] => rest,
        _ => value,
    };
    if value
        .first()
        .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<' | b'|'))
        || value.starts_with(b"#[")
        || value.starts_with(b"#!")
        || is_number(value)
    {
        return true;
    }
    let in_path = |byte: &u8| Class::WORD.has(*byte) || matches!(byte, b'.' | b'$' | b':' | b'?');
    let path = value.iter().take_while(|byte| in_path(byte)).count();
    let (path, rest) = value.split_at(path);
    if !path
        .first()
        .is_some_and(|&byte| Class::LETTER.has(byte) || matches!(byte, b'_' | b'$'))
    {
        return false;
    }
    let call = rest.strip_prefix(b"!").unwrap_or(rest);
    if call
        .first()
        .is_some_and(|byte| matches!(byte, b'(' | b'[' | b'{' | b'<'))
        || call.starts_with(b"->")
        || has(path, b"::")
        || is_type(path)
    {
        return true;
    }
    let path = path.strip_suffix(b"?").unwrap_or(path);
    let ends = rest
        .iter()
        .all(|byte| matches!(byte, b')' | b'}' | b']' | b',' | b';' | b'!'));
    ends && (is_member(path) || is_long_name(path))
}

/// `16u32`, `4i64`
fn is_number(value: &[u8]) -> bool {
    let digits = Class::DIGIT.run(value, 0);
    digits > 0 && matches!(value.get(digits), Some(b'u' | b'i' | b'f')) && is_type(&value[digits..])
}

/// `self.token`, `process.env.X`
fn is_member(path: &[u8]) -> bool {
    #[rustfmt::skip]
    const OWNERS: &[&[u8]] = &[
        b"args", b"cfg", b"config", b"ctx", b"data", b"env", b"event", b"opts", b"options", b"os", b"params", b"process", b"props", b"req", b"request", b"res",
        b"response", b"self", b"settings", b"state", b"this", b"user",
    ];
    let parts = || path.split(|&byte| byte == b'.');
    parts().count() > 1
        && parts().any(|part| OWNERS.contains(&part) || name_says_secret(part).is_some())
}

/// `user_input`, `TokenSource`: only letters, in several words.
fn is_long_name(path: &[u8]) -> bool {
    let humps = humps(path);
    let parted = humps > 0 || path.iter().any(|byte| matches!(byte, b'.' | b'_'));
    let words = path
        .split(|byte| matches!(byte, b'.' | b'_'))
        .all(|part| part.len() <= 24);
    parted && words && !Class::DIGIT.any(path) && humps * 4 <= path.len() && !looks_random(path)
}

/// A type with a number in its name: `u32`, `__u64`, `uint8_t`, `_bindgen_ty_7`.
fn is_type(name: &[u8]) -> bool {
    let word = name.strip_suffix(b"_t").unwrap_or(name);
    let word = &word[word.iter().take_while(|&&byte| byte == b'_').count()..];
    let letters = word
        .iter()
        .take_while(|&&byte| !Class::DIGIT.has(byte))
        .count();
    let (letters, digits) = word.split_at(letters);
    let sized = matches!(digits, b"8" | b"16" | b"32" | b"64" | b"128" | b"256");
    let number = [
        &b"u"[..],
        b"i",
        b"f",
        b"s",
        b"int",
        b"uint",
        b"float",
        b"le",
        b"be",
    ]
    .iter()
    .any(|kind| letters.eq_ignore_ascii_case(kind));
    sized && number || letters.starts_with(b"bindgen_ty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_no_value() {
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
            "Token![if]",
            "u32",
            "__u64",
            "uint8_t,",
            "braced!(content",
            "*mut",
        ] {
            assert!(is_code(value.as_bytes()) || value == "*mut", "{value}");
        }
        for value in [
            "hunter2",
            "p@ss(word",
            "abc.def1",
            "aBcDeFgHiJkL",
            "correct-horse",
            "u2",
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
            ("https://example.com/1", Colon),
            ("token", Member),
            ("$serde_json::private::Number", Quoted),
            ("\\w{20}", Attached),
        ] {
            assert!(
                !is_plausible(value.as_bytes(), binding, true),
                "{value} {binding:?}"
            );
        }
    }
}
