//! Heads of requests and answers: which headers are ours to take out, and how a head is
//! written for the tap.

use http::header::{CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Takes out the headers that are about one connection only (RFC 9110, 7.6.1), among them
/// those that `Connection` names. `Transfer-Encoding` stays where both sides frame bodies in
/// the same way: each side then codes anew what the other one wrote. `TE: trailers` stays,
/// since trailers are passed on.
pub(super) fn end_to_end(headers: HeaderMap, chunked: bool) -> HeaderMap {
    let plain = |name: &HeaderName, value: &HeaderValue| {
        *name == CONNECTION
            || *name == KEEP_ALIVE
            || *name == PROXY_CONNECTION
            || *name == UPGRADE
            || (*name == TRANSFER_ENCODING && !chunked)
            || (*name == TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers"))
    };
    if !headers.iter().any(|(name, value)| plain(name, value)) {
        return headers;
    }
    let named = named_by_connection(&headers);
    let ours = |name: &HeaderName, value: &HeaderValue| plain(name, value) || named.contains(name);
    // Made anew: taking out of the map would change the order of what stays.
    let mut kept = HeaderMap::with_capacity(headers.len());
    let mut last = None;
    for (name, value) in headers {
        let Some(name) = name.or_else(|| last.clone()) else {
            continue;
        };
        if !ours(&name, &value) {
            kept.append(name.clone(), value);
        }
        last = Some(name);
    }
    kept
}

/// What `Connection` names beside options that are no headers. Nobody may have the headers
/// taken out that say what a message is.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.eq_ignore_ascii_case(b"close"))
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .filter(|name| !matches!(name.as_str(), "host" | "content-length" | "content-type"))
        .filter(|name| !matches!(*name, TE | TRANSFER_ENCODING))
        .collect()
}

/// Whether trailers may follow: hyper passes those on that `Trailer` names.
pub(super) fn announces_trailers(headers: &HeaderMap) -> bool {
    headers.contains_key(TRAILER)
}

/// Whether whoever sent this takes trailers.
pub(super) fn takes_trailers(headers: &HeaderMap) -> bool {
    headers
        .get(TE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"))
}

/// The head of a request as text.
pub(super) fn request_text(
    method: &Method,
    target: &Uri,
    version: Version,
    headers: &HeaderMap,
) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(method.as_str().as_bytes());
    text.push(b' ');
    match target.path_and_query() {
        Some(path) => text.extend_from_slice(path.as_str().as_bytes()),
        None => text.extend_from_slice(target.to_string().as_bytes()),
    }
    text.push(b' ');
    text.extend_from_slice(version_text(version).as_bytes());
    text.extend_from_slice(b"\r\n");
    append_lines(&mut text, headers);
    text
}

/// The head of an answer as text.
pub(super) fn response_text(version: Version, status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(version_text(version).as_bytes());
    text.push(b' ');
    text.extend_from_slice(status.as_str().as_bytes());
    text.extend_from_slice(b"\r\n");
    append_lines(&mut text, headers);
    text
}

/// Headers as lines.
pub(super) fn lines(headers: &HeaderMap) -> Vec<u8> {
    let mut text = Vec::new();
    append_lines(&mut text, headers);
    text
}

fn append_lines(text: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
}

fn version_text(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn kept(lines: &[(&'static str, &'static str)]) -> Vec<String> {
        let kept = end_to_end(headers(lines), true);
        kept.iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect()
    }

    #[test]
    fn w37_only_what_is_about_the_connection_is_taken_out_and_the_order_stays() {
        let sent = [
            ("a", "1"),
            ("connection", "keep-alive, X-Mine, close"),
            ("b", "2"),
            ("a", "3"),
            ("keep-alive", "timeout=5"),
            ("x-mine", "x"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("transfer-encoding", "chunked"),
            ("c", "4"),
        ];
        assert_eq!(
            kept(&sent),
            [
                "a=1",
                "a=3",
                "b=2",
                "te=trailers",
                "transfer-encoding=chunked",
                "c=4"
            ]
        );
        assert_eq!(kept(&[("te", "gzip"), ("z", "")]), ["z="]);
    }

    #[test]
    fn nobody_may_have_taken_out_what_says_what_a_message_is() {
        let sent = [
            ("connection", "host, content-length"),
            ("host", "h"),
            ("content-length", "1"),
        ];
        assert_eq!(kept(&sent), ["host=h", "content-length=1"]);
    }

    #[test]
    fn a_head_is_written_as_lines() {
        let uri: Uri = "/mcp?a=%20".parse().unwrap();
        let text = request_text(
            &Method::POST,
            &uri,
            Version::HTTP_11,
            &headers(&[("accept", "x"), ("accept", "y")]),
        );
        assert_eq!(
            text,
            b"POST /mcp?a=%20 HTTP/1.1\r\naccept: x\r\naccept: y\r\n"
        );
        let text = response_text(Version::HTTP_2, StatusCode::ACCEPTED, &HeaderMap::new());
        assert_eq!(text, b"HTTP/2 202\r\n");
    }
}
