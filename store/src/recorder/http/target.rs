//! Targets of requests, and what clients make of the URI that an `endpoint` event names.

/// Path and query of a URI: what a client sends as its target.
pub(super) fn path_and_query(uri: &[u8]) -> &[u8] {
    let uri = uri.split(|&byte| byte == b'#').next().unwrap_or_default();
    let Some(rest) = after_scheme(uri) else {
        return uri;
    };
    let path = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    path.map_or(b"/", |path| &rest[path..])
}

/// What follows `http://`, if the URI is absolute.
fn after_scheme(uri: &[u8]) -> Option<&[u8]> {
    let end = memchr::memmem::find(uri, b"://")?;
    let named = end > 0 && uri[..end].iter().all(u8::is_ascii_alphabetic);
    named.then_some(&uri[end + 3..])
}

/// The target that a client makes of an endpoint's URI, which it got from this target.
pub(super) fn resolve(base: &[u8], uri: &[u8]) -> Vec<u8> {
    let uri = uri.trim_ascii();
    let target = path_and_query(uri);
    if after_scheme(uri).is_some() || target.starts_with(b"/") {
        return target.to_vec();
    }
    let path = base.split(|&byte| byte == b'?').next().unwrap_or_default();
    let folder = path.iter().rposition(|&byte| byte == b'/');
    let kept = match target.first() {
        Some(b'?') => path,
        _ => &path[..folder.map_or(0, |at| at + 1)],
    };
    [kept, target].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_found_under_the_target_that_clients_make_of_it() {
        for (uri, target) in [
            ("/message?sessionId=1", "/message?sessionId=1"),
            ("http://x:1/message?a=b#c", "/message?a=b"),
            ("https://x", "/"),
            ("message?a=b", "/v1/message?a=b"),
            ("?a=b", "/v1/sse?a=b"),
            ("/m?to=http://y/z", "/m?to=http://y/z"),
            (" /m ", "/m"),
        ] {
            let resolved = resolve(b"/v1/sse?x", uri.as_bytes());
            assert_eq!(String::from_utf8_lossy(&resolved), target, "{uri}");
        }
    }
}
