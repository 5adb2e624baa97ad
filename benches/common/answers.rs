//! What an MCP server answers, with as little work as it can.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    /// Kept as the text that it is, as is the text to echo.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: Option<&'a str>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    n: Option<usize>,
}

/// Appends the answer to this message; false where there is nothing to answer. Knows
/// `initialize`, `ping`, and calls of the tools `echo` (sends back `text`) and `big` (sends
/// `n` characters).
pub(crate) fn answer(message: &[u8], out: &mut Vec<u8>) -> serde_json::Result<bool> {
    let request: Request<'_> = serde_json::from_slice(message)?;
    let Some(id) = request.id else {
        return Ok(false);
    };
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.get().as_bytes());
    let params = request.params.as_ref();
    let arguments = params.and_then(|params| params.arguments.as_ref());
    match (request.method, params.and_then(|params| params.name)) {
        ("initialize", _) => out.extend_from_slice(
            br#","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"0"}}}"#,
        ),
        ("ping", _) => out.extend_from_slice(br#","result":{}}"#),
        ("tools/call", Some("echo")) => {
            let text = arguments.and_then(|a| a.text).map_or("\"\"", RawValue::get);
            result(out, |out| out.extend_from_slice(text.as_bytes()));
        }
        ("tools/call", Some("big")) => result(out, |out| {
            let length = arguments.and_then(|a| a.n).unwrap_or_default();
            out.push(b'"');
            out.resize(out.len() + length, b'x');
            out.push(b'"');
        }),
        _ => out.extend_from_slice(br#","error":{"code":-32601,"message":"unknown"}}"#),
    }
    Ok(true)
}

fn result(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
    text(out);
    out.extend_from_slice(b"}]}}");
}
