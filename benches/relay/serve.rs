//! The servers: one that answers MCP requests with as little work as it can, and one that
//! sends back every byte.

use crate::Result;
use crate::pump::own_streams;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{Read, Write};

const CHUNK: usize = 64 << 10;

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

/// Answers `initialize`, `ping`, and calls of the tools `echo` (sends back `text`) and `big`
/// (sends `n` characters), one message a line, until standard input ends.
pub(crate) fn answer() -> Result<()> {
    let (mut input, mut output) = own_streams()?;
    let mut buffer = vec![0; CHUNK];
    let (mut held, mut out) = (Vec::new(), Vec::new());
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        held.extend_from_slice(&buffer[..n]);
        let end = held
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        for line in held[..end].split_inclusive(|&b| b == b'\n') {
            out.clear();
            if reply(&serde_json::from_slice(line)?, &mut out) {
                output.write_all(&out)?;
            }
        }
        held.drain(..end);
    }
}

/// Appends the answer with its line end; false where there is nothing to answer.
fn reply(request: &Request<'_>, out: &mut Vec<u8>) -> bool {
    let Some(id) = request.id else { return false };
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
    out.push(b'\n');
    true
}

fn result(out: &mut Vec<u8>, text: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(br#","result":{"content":[{"type":"text","text":"#);
    text(out);
    out.extend_from_slice(b"}]}}");
}

/// Sends back what it reads, so that what a client sends is put to both directions.
pub(crate) fn mirror() -> Result<()> {
    let (mut input, mut output) = own_streams()?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = input.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        output.write_all(&buffer[..n])?;
    }
}
