//! Who may call a listener.
//!
//! A page in a browser can reach a server on its own machine: by a name of the attacker's that
//! resolves to 127.0.0.1 (DNS rebinding; the `Host` then tells), or directly (the `Origin`
//! then tells). Both are checked before anything is forwarded.

use super::settings::Settings;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a request is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// For whoever set this up.
    pub(super) why: &'static str,
}

const fn forbidden(why: &'static str) -> Refusal {
    Refusal {
        status: StatusCode::FORBIDDEN,
        why,
    }
}

const FOREIGN_HOST: Refusal = forbidden("this Host is not one that the listener is called by");
const FOREIGN_ORIGIN: Refusal = forbidden("pages of this Origin may not call the listener");

/// Whether to forward a request.
pub(super) fn check(uri: &Uri, headers: &HeaderMap, settings: &Settings) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            why: "more than one Host",
        });
    }
    let host = host.ok_or(FOREIGN_HOST)?;
    if !is_host_allowed(host, settings) {
        return Err(FOREIGN_HOST);
    }
    // `GET http://name/path`: whoever checks the Host behind us would check this instead.
    if uri
        .authority()
        .is_some_and(|authority| !is_allowed(authority, settings))
    {
        return Err(FOREIGN_HOST);
    }
    if uri.path_and_query().is_none() {
        return Err(Refusal {
            status: StatusCode::METHOD_NOT_ALLOWED,
            why: "the listener is no general proxy",
        });
    }
    for origin in headers.get_all(ORIGIN) {
        if !is_origin_allowed(origin, settings) {
            return Err(FOREIGN_ORIGIN);
        }
    }
    Ok(())
}

fn is_host_allowed(host: &HeaderValue, settings: &Settings) -> bool {
    host.to_str()
        .ok()
        .and_then(|host| host.parse().ok())
        .is_some_and(|authority| is_allowed(&authority, settings))
}

fn is_origin_allowed(origin: &HeaderValue, settings: &Settings) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let named = |allowed: &String| allowed == "*" || allowed.eq_ignore_ascii_case(origin);
    if settings.allowed_hosts.iter().any(named) {
        return true;
    }
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    host.and_then(|host| host.parse().ok())
        .is_some_and(|authority| is_allowed(&authority, settings))
}

fn is_allowed(authority: &Authority, settings: &Settings) -> bool {
    // Nothing but host and port: `evil@localhost` is not `localhost`.
    if authority.as_str().contains('@') {
        return false;
    }
    let host = authority.host();
    let allowed = |allowed: &String| {
        allowed == "*"
            || allowed
                .trim_matches(['[', ']'])
                .eq_ignore_ascii_case(bare(host))
    };
    is_this_machine(host) || settings.allowed_hosts.iter().any(allowed)
}

/// Names that mean this machine to every resolver, in the one spelling that a browser sends.
fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse()
            .is_ok_and(|address: Ipv4Addr| address.is_loopback())
        || host.starts_with('[')
            && bare(host)
                .parse()
                .is_ok_and(|address: Ipv6Addr| address.is_loopback())
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Upstream;

    fn status(allowed: &[&str], target: &str, lines: &[(&'static str, &'static str)]) -> u16 {
        let mut settings = Settings::new(Upstream::parse("http://127.0.0.1:1").unwrap());
        settings.allowed_hosts = allowed.iter().map(|host| (*host).to_owned()).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let uri = target.parse().unwrap();
        check(&uri, &headers, &settings).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn w43_names_of_this_machine_may_call_and_others_may_not() {
        for host in [
            "localhost:1",
            "LOCALHOST",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]:1",
            "[::1]",
        ] {
            assert_eq!(status(&[], "/", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil@localhost",
            "127.0.0.1.",
            "localhost.",
            "0.0.0.0",
            "::1",
            "2130706433",
            "",
        ] {
            assert_eq!(status(&[], "/", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&[], "/", &[]), 403);
        assert_eq!(
            status(&[], "/", &[("host", "localhost"), ("host", "localhost")]),
            400
        );
        assert_eq!(
            status(&[], "http://evil.example/", &[("host", "localhost")]),
            403
        );
        assert_eq!(
            status(&[], "localhost:1", &[("host", "localhost")]),
            405,
            "CONNECT"
        );
    }

    #[test]
    fn w43_pages_of_other_sites_may_not_call() {
        let of = |origin| status(&[], "/", &[("host", "localhost"), ("origin", origin)]);
        assert_eq!(of("http://localhost:6274"), 200);
        assert_eq!(of("https://127.0.0.1"), 200);
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "",
            "file://",
        ] {
            assert_eq!(of(origin), 403, "{origin}");
        }
    }

    #[test]
    fn what_is_allowed_by_name_may_call() {
        let of =
            |allowed: &[&str], lines: &[(&'static str, &'static str)]| status(allowed, "/", lines);
        assert_eq!(of(&["mcp.example"], &[("host", "MCP.example:80")]), 200);
        assert_eq!(of(&["mcp.example"], &[("host", "x.mcp.example")]), 403);
        assert_eq!(of(&["::2"], &[("host", "[::2]:80")]), 200);
        let page = [("host", "localhost"), ("origin", "chrome-extension://abc")];
        assert_eq!(of(&[], &page), 403);
        assert_eq!(of(&["chrome-extension://abc"], &page), 200);
        assert_eq!(of(&["*"], &[("host", "any"), ("origin", "null")]), 200);
    }
}
