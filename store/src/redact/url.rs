//! Passwords in URLs and in what is nearly one.

use std::ops::Range;

use super::class::{Class, skip_blanks};
use super::entropy::looks_random;
use super::mark::{Rank, is_marked};
use super::text::Text;
use super::words::is_placeholder;

/// A user's name and password are not longer than this.
const MAX_USERINFO: usize = 1024;

/// Schemes of databases and brokers.
#[rustfmt::skip]
const DATABASES: &[&[u8]] = &[
    b"amqp", b"amqps", b"cassandra", b"clickhouse", b"cockroachdb", b"couchbase", b"couchdb", b"db2", b"elasticsearch", b"influxdb", b"kafka", b"ldap", b"ldaps",
    b"libsql", b"mariadb", b"mongodb", b"mqtt", b"mqtts", b"mssql", b"mysql", b"mysql2", b"mysqlx", b"nats", b"neo4j", b"bolt", b"oracle", b"postgis",
    b"postgres", b"postgresql", b"redis", b"rediss", b"redshift", b"snowflake", b"sqlserver", b"surrealdb", b"valkey",
];

/// A URL; `at` is the place of `://`.
pub(super) fn url(text: &mut Text<'_>, at: usize) {
    let bytes = text.bytes;
    let start = at + 3;
    let floor = at.saturating_sub(32);
    let scheme = bytes[floor..at]
        .iter()
        .rposition(|&byte| !Class::DOTTED.has(byte) && byte != b'+');
    let scheme = &bytes[scheme.map_or(floor, |found| floor + found + 1)..at];
    // `postgresql+asyncpg`, `mongodb+srv`.
    let plain = scheme
        .split(|&byte| byte == b'+')
        .next()
        .unwrap_or_default();
    let ends_with = |known: &[u8]| {
        plain.len() >= known.len() && plain[plain.len() - known.len()..].eq_ignore_ascii_case(known)
    };
    let database = DATABASES.iter().any(|known| ends_with(known));
    let web = ends_with(b"http") || ends_with(b"https");
    let end = userinfo_end(bytes, start, !web);
    let cut = || {
        (database && bytes.len() < start + MAX_USERINFO && is_cut(&bytes[start..]))
            .then_some(bytes.len())
    };
    let Some(end) = end.or_else(cut) else {
        return;
    };
    let Some(colon) = bytes[start..end].iter().position(|&byte| byte == b':') else {
        if is_token(&bytes[start..end]) {
            text.known(start..end, "url-token", Rank::Structure);
        }
        return;
    };
    let (user, password) = (start..start + colon, start + colon + 1..end);
    if is_token(&bytes[user.clone()]) {
        text.known(user, "url-token", Rank::Structure);
    }
    if is_password(&bytes[password.clone()]) {
        let kind = if database {
            "database-password"
        } else {
            "url-password"
        };
        text.known(password, kind, Rank::Structure);
    }
}

/// The place of the `@` that ends a URL's name and password, which start at `start`.
///
/// People write passwords with `/`, `?`, `#` and `@` unescaped, so where a colon that starts
/// no port promises a password, a later `@` with a host behind it counts too.
fn userinfo_end(text: &[u8], start: usize, eager: bool) -> Option<usize> {
    let rest = &text[start..text.len().min(start + MAX_USERINFO)];
    let rest = &rest[..rest
        .iter()
        .position(|byte| matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`' | b'<' | b'>' | 0x7F))
        .unwrap_or(rest.len())];
    let authority = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    let near = memchr::memrchr(b'@', &rest[..authority]);
    let Some(colon) = memchr::memchr(b':', &rest[..authority]) else {
        return near.map(|end| start + end);
    };
    let after_colon = &rest[colon + 1..authority];
    let port = after_colon.len() <= 5 && Class::DIGIT.all(after_colon);
    let far = || {
        let before_query = &rest[..query_start(rest)];
        memchr::memrchr_iter(b'@', before_query).find(|&at| is_host(&rest[at + 1..]))
    };
    let end = match near {
        Some(_) if eager => far().or(near),
        Some(_) => near,
        None if port || rest.starts_with(b"[") => None,
        None => far(),
    };
    end.map(|end| start + end)
}

/// Whether a text ends within a URL's password: `name:pass`, and no port.
fn is_cut(rest: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', rest) else {
        return false;
    };
    let (name, password) = (&rest[..colon], &rest[colon + 1..]);
    Class::DOTTED.all(name)
        && password
            .first()
            .is_some_and(|&byte| !Class::DIGIT.has(byte) || !Class::DIGIT.all(password))
        && !password
            .iter()
            .any(|byte| matches!(byte, 0..=b' ' | b'"' | b'\'' | b',' | b'/' | b'<' | b'>'))
}

/// The place of the first `?name=` behind an `@`, or the end.
fn query_start(rest: &[u8]) -> usize {
    let Some(at) = memchr::memchr(b'@', rest) else {
        return rest.len();
    };
    memchr::memchr_iter(b'?', &rest[at..])
        .map(|found| at + found)
        .find(|&mark| {
            let name = Class::DOTTED.run(rest, mark + 1);
            name > mark + 1 && rest.get(name) == Some(&b'=')
        })
        .unwrap_or(rest.len())
}

/// Whether a host's name or address stands at the start of `text`.
fn is_host(text: &[u8]) -> bool {
    let len = text
        .iter()
        .take_while(|&&byte| Class::DOTTED.has(byte) || matches!(byte, b'[' | b']'))
        .count();
    len > 0
        && matches!(
            text.get(len),
            None | Some(b'/' | b':' | b'?' | b',' | b')' | b';' | b'#' | b'&' | b'\\' | b'|')
        )
}

/// A name in a URL that is a token: `https://TOKEN@github.com`.
fn is_token(user: &[u8]) -> bool {
    let hex = user.len() >= 20 && user.iter().all(u8::is_ascii_hexdigit);
    !is_marked(user) && (hex || looks_random(user))
}

fn is_password(password: &[u8]) -> bool {
    // What documentation writes.
    const EXAMPLES: &[&[u8]] = &[
        b"password",
        b"passwd",
        b"pass",
        b"pwd",
        b"pw",
        b"port",
        b"secret",
        b"token",
        b"x-oauth-basic",
    ];
    !is_placeholder(password)
        && !is_marked(password)
        && !EXAMPLES
            .iter()
            .any(|example| password.eq_ignore_ascii_case(example))
}

/// A data source name of Go's MySQL driver: `user:password@tcp(host)/db`. `at` is the `@`.
pub(super) fn go_dsn(text: &mut Text<'_>, at: usize) {
    let bytes = text.bytes;
    let floor = at.saturating_sub(256);
    let start = bytes[floor..at]
        .iter()
        .rposition(|byte| matches!(byte, 0..=b' ' | b'"' | b'\'' | b'`' | b'='))
        .map_or(floor, |found| floor + found + 1);
    if let Some(colon) = memchr::memchr(b':', &bytes[start..at]) {
        secret_after_colon(text, start + colon + 1..at, "database-password");
    }
}

/// `curl -u user:password`. `at` is the place of the flag.
pub(super) fn user_flag(text: &mut Text<'_>, at: usize) {
    let bytes = text.bytes;
    let before = &bytes[at.saturating_sub(256)..at];
    if memchr::memmem::find(before, b"curl").is_none() {
        return;
    }
    let flag = at + if bytes[at] == b' ' { 3 } else { 6 };
    let mut start = skip_blanks(bytes, flag);
    start += usize::from(matches!(bytes.get(start), Some(b'"' | b'\'' | b'=')));
    let end = start
        + bytes[start..]
            .iter()
            .take(256)
            .take_while(|byte| !matches!(byte, 0..=b' ' | b'"' | b'\''))
            .count();
    if let Some(colon) = memchr::memchr(b':', &bytes[start..end]) {
        secret_after_colon(text, start + colon + 1..end, "password");
    }
}

fn secret_after_colon(text: &mut Text<'_>, password: Range<usize>, kind: &'static str) {
    let value = &text.bytes[password.clone()];
    if is_password(value) && !(value.len() <= 5 && Class::DIGIT.all(value)) {
        text.known(password, kind, Rank::Structure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn userinfo(rest: &str, eager: bool) -> Option<&str> {
        userinfo_end(rest.as_bytes(), 0, eager).map(|end| &rest[..end])
    }

    #[test]
    fn userinfo_ends_at_the_host() {
        for (rest, eager, expected) in [
            ("user:pw@host/db", false, Some("user:pw")),
            (":pw@host", true, Some(":pw")),
            ("user:p@ss@host/db", false, Some("user:p@ss")),
            ("user:p/ss@host/db", true, Some("user:p/ss")),
            (
                "user:p@ss/w@host:5432/db?x=a@b.c",
                true,
                Some("user:p@ss/w"),
            ),
            ("token@host", false, Some("token")),
            ("user:p#1?x@h1,h2/db", true, Some("user:p#1?x")),
            ("host:8080/path@x", false, None),
            ("host/path:x@y", false, None),
            ("[::1]:80/a@b", false, None),
            ("host", false, None),
            ("user:pw host@x", false, None),
        ] {
            assert_eq!(userinfo(rest, eager), expected, "{rest}");
        }
    }
}
