//! What is recognised by its form: addresses, accounts, names of tools, quoted words.

use crate::lexicon::{Token, word_char};
use crate::signal::Sig;

/// Longer words are cut.
const LONGEST: usize = 256;

/// Adds what a view's text holds. `own`: names that are the tool's own, in lower case.
pub(crate) fn tokens(text: &str, own: &dyn Fn(&str) -> bool, out: &mut Vec<Token>) {
    let bytes = text.as_bytes();
    let words = out.len();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'`' | b'\'' | b'"' => quoted(text, at, own, out),
            _ => {}
        }
        if !part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && part(bytes[at]) && at - start < LONGEST {
            at += 1;
        }
        // In the middle of a word that is no ASCII; scripts without blanks have no such words.
        let clean = text
            .get(..start)
            .and_then(|before| before.chars().next_back())
            .is_none_or(|c| c.is_ascii() || !word_char(c));
        word(text, start, at, clean, own, out);
    }
    drop_inside(text, out, words);
}

/// A word inside of an address or a path is none: `https://vendor.example/policy`. `words`: how
/// many tokens there were before forms were looked for.
fn drop_inside(text: &str, out: &mut Vec<Token>, words: usize) {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for token in &out[words..] {
        if matches!(token.sig, Sig::Url | Sig::Email) {
            spans.push((token.start, token.end));
        }
    }
    for word in text.split(' ') {
        if word.len() > 3
            && word.len() < LONGEST
            && (word.starts_with(['~', '/', '.']) || word.matches('/').count() > 1)
            && !word.contains('<')
        {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            spans.push((start as u32, (start + word.len()) as u32));
        }
    }
    if spans.is_empty() {
        return;
    }
    spans.sort_unstable();
    let inside = |token: &Token| {
        let next = spans.partition_point(|(start, _)| *start <= token.start);
        next.checked_sub(1).is_some_and(|i| token.end <= spans[i].1)
    };
    let kept = |sig| {
        matches!(
            sig,
            Sig::Path
                | Sig::Shell
                | Sig::Url
                | Sig::Email
                | Sig::Special
                | Sig::Tag
                | Sig::Key
                | Sig::Account
                | Sig::Literal
        )
    };
    out.retain(|token| kept(token.sig) || !inside(token));
}

/// Characters of addresses.
fn part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'-'
                | b'.'
                | b'@'
                | b':'
                | b'/'
                | b'+'
                | b'%'
                | b'?'
                | b'='
                | b'&'
                | b'~'
                | b'#'
        )
}

fn word(
    text: &str,
    start: usize,
    end: usize,
    clean: bool,
    own: &dyn Fn(&str) -> bool,
    out: &mut Vec<Token>,
) {
    let whole = &text[start..end];
    let trimmed = whole.trim_end_matches(['.', ':', '?', '/', '-', '=', '&']);
    let mut push = |sig, from: usize, to: usize| {
        out.push(Token {
            start: (start + from) as u32,
            end: (start + to) as u32,
            sig,
        });
    };
    if let Some(scheme) = trimmed.find("://") {
        let host = &trimmed[scheme + 3..];
        if scheme > 1 && host.len() > 3 && !nobodys(host) {
            let from = trimmed[..scheme]
                .rfind(|c: char| !c.is_ascii_alphabetic())
                .map_or(0, |i| i + 1);
            push(Sig::Url, from, trimmed.len());
        }
        return;
    }
    if let Some(sign) = trimmed.find('@') {
        let domain = &trimmed[sign + 1..];
        let name = trimmed[..sign]
            .rsplit([':', '/', '=', '?', '&'])
            .next()
            .unwrap_or("");
        let domain_end = domain
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-'))
            .unwrap_or(domain.len());
        let domain = &domain[..domain_end];
        if !name.is_empty()
            && domain.contains('.')
            && domain.len() > 3
            && domain.ends_with(|c: char| c.is_ascii_alphabetic())
        {
            push(Sig::Email, sign - name.len(), sign + 1 + domain_end);
        }
        return;
    }
    if trimmed.starts_with("www.") && trimmed.len() > 7 {
        push(Sig::Url, 0, trimmed.len());
        return;
    }
    if slot_word(text, start, end) {
        push(Sig::Slot, 0, trimmed.len());
    }
    if account(text.get(..start).unwrap_or(""), trimmed) {
        push(Sig::Account, 0, trimmed.len());
    } else if clean
        && (identifier(trimmed) && !own(trimmed)
            || trimmed == whole && named(text, start, end, own))
    {
        push(Sig::Ident, 0, trimmed.len());
        if private(trimmed, own) {
            push(Sig::Personal, 0, trimmed.len());
        }
    }
}

/// Whether the name of a tool tells that it gives what is the user's own, and this tool is about
/// something else.
fn private(name: &str, own: &dyn Fn(&str) -> bool) -> bool {
    let mut words = name
        .split(['_', '-'])
        .map(|word| word.trim_end_matches('s'));
    words.any(|word| PRIVATE.contains(&word) && !own(word))
}

/// Words in such names, without their plurals.
const PRIVATE: [&str; 14] = [
    "contact",
    "profile",
    "location",
    "history",
    "secret",
    "credential",
    "password",
    "env",
    "memory",
    "memorie",
    "inbox",
    "clipboard",
    "cookie",
    "keychain",
];

/// Hosts that are nobody's: links to them are not where data goes. Any other name can be had by
/// anybody, `docs.evil.example` as well.
fn nobodys(address: &str) -> bool {
    let authority = address.split(['/', '?', '#']).next().unwrap_or(address);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host);
    matches!(host, "localhost" | "127.0.0.1" | "json-schema.org")
}

/// An IBAN, a number of an account, an address of a wallet.
fn account(before: &str, word: &str) -> bool {
    let bytes = word.as_bytes();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let plain = bytes.iter().all(u8::is_ascii_alphanumeric);
    let iban = bytes.len() >= 15
        && bytes.len() <= 34
        && plain
        && digits >= 10
        && bytes[..2].iter().all(u8::is_ascii_lowercase)
        && bytes[2..4].iter().all(u8::is_ascii_digit);
    let wallet = bytes.len() == 42 && word.starts_with("0x") && plain;
    // Ranges of years and telephone numbers are written alike.
    let number = digits >= 7
        && bytes.len() >= 8
        && bytes.iter().all(|b| b.is_ascii_digit() || *b == b'-')
        && ACCOUNTS
            .iter()
            .any(|word| before.trim_end().ends_with(word));
    iban || wallet || number
}

/// What a number is called that money goes to.
const ACCOUNTS: [&str; 9] = [
    "account",
    "account no.",
    "account number",
    "acct",
    "konto",
    "compte",
    "cuenta",
    "conta",
    "счет",
];

/// Words with an underscore inside, as names of tools have.
fn identifier(word: &str) -> bool {
    word.len() >= 5
        && word.len() <= 64
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && word.trim_matches('_').contains('_')
}

/// A quoted name or a short quoted text.
fn quoted(text: &str, at: usize, own: &dyn Fn(&str) -> bool, out: &mut Vec<Token>) {
    let bytes = text.as_bytes();
    let quote = bytes[at];
    // An apostrophe within a word opens nothing.
    if at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] >= 0x80) {
        return;
    }
    let most = (at + 90).min(bytes.len());
    let Some(length) = bytes[at + 1..most].iter().position(|b| *b == quote) else {
        return;
    };
    let (start, end) = (at + 1, at + 1 + length);
    if length < 2 {
        return;
    }
    let Some(inner) = text.get(start..end) else {
        return;
    };
    let token = |sig| Token {
        start: start as u32,
        end: end as u32,
        sig,
    };
    out.push(token(Sig::Literal));
    let name = inner
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let after = text.get(end + 1..).unwrap_or("");
    let before = text.get(..at).unwrap_or("");
    let said = AFTER_NAMES.iter().any(|word| after.starts_with(word))
        || BEFORE_NAMES.iter().any(|word| before.ends_with(word));
    if name && slot(before, after) {
        out.push(token(Sig::Slot));
    }
    if name && said && !own(inner) && !inner.contains('_') {
        out.push(token(Sig::Ident));
    }
}

/// The same for a name without quotation marks: it must have a word for a field beside it.
fn slot_word(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).unwrap_or("");
    let after = text.get(end..).unwrap_or("");
    let named = NAMED.iter().any(|word| before.ends_with(word));
    named
        || FIELDS
            .iter()
            .any(|word| after.starts_with(word) && !word.starts_with(" a"))
}

/// What comes before the name of a field that stands without quotation marks.
const NAMED: [&str; 10] = [
    "argument called ",
    "parameter called ",
    "field called ",
    "feld ",
    "champ ",
    "campo ",
    "в поле ",
    "trường ",
    "kolom ",
    "w polu ",
];

/// Whether a name is that of a field which something is to be put into.
fn slot(before: &str, after: &str) -> bool {
    INTO.iter().any(|word| before.ends_with(word))
        || FIELDS.iter().any(|word| after.starts_with(word))
}

/// What comes before the name of a field.
const INTO: [&str; 36] = [
    " in ",
    " into ",
    " as ",
    " via ",
    " through ",
    " inside ",
    " within ",
    "field ",
    "parameter ",
    "argument ",
    "in the ",
    "into the ",
    "through the ",
    "as the ",
    "argument called ",
    "feld ",
    "bei ",
    " als ",
    "champ ",
    "dans ",
    "paramètre ",
    "campo ",
    "parámetro ",
    "parâmetro ",
    " en ",
    "nel ",
    " em ",
    "поле ",
    " в ",
    "字段 ",
    "字段",
    "参数 ",
    "trường ",
    "kolom ",
    "pole ",
    "w polu ",
];
/// What comes after it.
const FIELDS: [&str; 20] = [
    " field",
    " argument",
    " parameter",
    " feld",
    " alanı",
    " parametre",
    " フィールド",
    "フィールド",
    " に",
    "に",
    " 字段",
    "字段",
    " 欄位",
    "欄位",
    " 参数",
    "参数",
    " 필드",
    " 인자",
    " फ़ील्ड",
    " veld",
];

/// What comes after a tool's name.
const AFTER_NAMES: [&str; 7] = [
    " tool",
    " function",
    "工具",
    " 工具",
    " werkzeug",
    "ツール",
    " 도구",
];
/// What comes before a quoted one.
const BEFORE_NAMES: [&str; 16] = [
    "tool ",
    "function ",
    "call ",
    "calling ",
    "invoke ",
    "invoking ",
    "工具",
    "调用",
    "调用 ",
    "appelle ",
    "appeler ",
    "llama a ",
    "llamar a ",
    "rufe ",
    "вызови ",
    "chama ",
];
/// Words before *tool* that are no names.
const NO_NAMES: [&str; 36] = [
    "other",
    "same",
    "following",
    "appropriate",
    "relevant",
    "available",
    "corresponding",
    "right",
    "given",
    "new",
    "mcp",
    "above",
    "current",
    "original",
    "previous",
    "next",
    "called",
    "calling",
    "specified",
    "first",
    "second",
    "last",
    "best",
    "entire",
    "whole",
    "main",
    "built-in",
    "underlying",
    "this",
    "each",
    "every",
    "callback",
    "command-line",
    "build",
    "target",
    "required",
];

/// A plain word before *tool* or *function*: `the fetch function`.
fn named(text: &str, start: usize, end: usize, own: &dyn Fn(&str) -> bool) -> bool {
    let before = text.get(..start).unwrap_or("");
    let after = text.get(end..).unwrap_or("");
    let word = &text[start..end];
    before.ends_with("the ")
        && AFTER_NAMES.iter().any(|name| after.starts_with(name))
        && !own(word)
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !NO_NAMES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(Sig, String)> {
        let mut out = Vec::new();
        tokens(text, &|name| name == "own_tool", &mut out);
        out.into_iter()
            .map(|t| (t.sig, text[t.start as usize..t.end as usize].to_owned()))
            .collect()
    }

    #[test]
    fn addresses_and_names_are_told_apart() {
        assert_eq!(
            found("to a.b@c-d.example."),
            [(Sig::Email, "a.b@c-d.example".into())]
        );
        assert_eq!(
            found("at https://x.example/v1."),
            [(Sig::Url, "https://x.example/v1".into())]
        );
        assert_eq!(
            found("call read_file or own_tool"),
            [(Sig::Ident, "read_file".into())]
        );
        assert_eq!(
            found("de89370400440532013000 on 2026-11-30"),
            [(Sig::Account, "de89370400440532013000".into())]
        );
        assert_eq!(
            found("don't use 'fetch' tool"),
            [(Sig::Literal, "fetch".into()), (Sig::Ident, "fetch".into())]
        );
        assert_eq!(found("at http://localhost:80/x"), []);
        assert_eq!(found("at https://json-schema.org/draft"), []);
        for address in [
            "https://docs.evil.example/",
            "https://evil-json-schema.org",
            "https://localhost:x@evil.example",
        ] {
            assert_eq!(found(address)[0].0, Sig::Url, "{address}");
        }
    }
}
