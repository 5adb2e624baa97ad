//! What stands where a value would, and is none: references, paths, words of documents.

use super::class::Class;
use super::entropy::looks_random;
use super::name::name_says_secret;

/// What stands for a value that someone else has: a reference or `your-api-key`.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let yours = [&b"your"[..], b"insert", b"replace", b"enter"]
        .iter()
        .any(|start| value.len() > start.len() && value[..start.len()].eq_ignore_ascii_case(start));
    let format = value.len() <= 12
        && [&b"%s"[..], b"{}", b"{0}", b"%v"]
            .iter()
            .any(|part| memchr::memmem::find(value, part).is_some());
    is_reference(value)
        || format
        || value.starts_with(b"${")
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
        || value.starts_with(b"&lt;")
        || value.starts_with(b"&#x3C;")
        || value.starts_with(b"&#60;")
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
            && part.iter().all(|&byte| {
                Class::DOTTED.has(byte) || matches!(byte, b' ' | b'@' | b'+' | b':' | b'~')
            })
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
    b"header", b"hidden", b"http2", b"ignored", b"include", b"incorrect", b"inherit", b"input", b"int", b"int16", b"int32", b"int64", b"int8", b"integer", b"internal",
    b"invalid", b"localhost", b"masked", b"mismatch", b"missing", b"needed", b"never", b"nil", b"no", b"none", b"null", b"number", b"oauth", b"oauth2", b"object", b"omit",
    b"optional", b"pbkdf2", b"pkcs12", b"pkcs8", b"plain", b"plaintext", b"private", b"protected", b"provided", b"public", b"readonly", b"readwrite", b"redacted",
    b"rejected", b"required", b"reset", b"rotated", b"rs256", b"hs256", b"es256", b"scrypt", b"session", b"sha1", b"sha256", b"sha384", b"sha512", b"static", b"str",
    b"string", b"success", b"tbd", b"text", b"todo", b"true", b"uint128", b"uint16", b"uint256", b"uint32", b"uint64", b"uint8", b"undefined", b"unknown", b"unset",
    b"utf16", b"utf8", b"uuid4", b"valid", b"validated", b"value", b"varchar", b"void", b"x509", b"yes",
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
    let colour =
        value.len() <= 9 && value.starts_with(b"#") && value[1..].iter().all(u8::is_ascii_hexdigit);
    colour
        || value == b"same-origin"
        || plain
            && VOCABULARY
                .iter()
                .any(|known| known.eq_ignore_ascii_case(word))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders() {
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
        for value in [
            "hunter2",
            "$ecret123",
            "Xx12",
            "{a;b}",
            "xoxo",
            "my-password",
        ] {
            assert!(!is_placeholder(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn paths() {
        for value in [
            "/run/secrets/token",
            "./key.pem",
            "~/.ssh/id_rsa",
            "C:\\Users\\me\\key.pem",
            "../x",
        ] {
            assert!(is_path(value.as_bytes()), "{value}");
        }
        for value in ["/", "key.pem", "/aB3dE5fG7hI9jK1lM3nO5pQ7", "hunter2"] {
            assert!(!is_path(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn sentences_have_telltale_words() {
        assert!(is_prose(b"Please enter your password"));
        assert!(is_prose(b"must be set"));
        assert!(!is_prose(b"correct horse battery staple"));
        assert!(!is_prose(b"the"));
    }
}
