//! Messages as they may have been on the wire, reconstructed from what another program wrote.
//!
//! Each holds what it was made from, word for word, where MCP has a place for what it does not
//! know: `_meta` of parameters and results, `data` of an error, the parameters of a
//! notification. So nothing of a foreign recording is lost.

/// A call of a tool. `id`, `name` and `arguments` are JSON text; `mark` names `source`.
pub(super) fn call(
    id: &[u8],
    name: &[u8],
    arguments: Option<&[u8]>,
    mark: &str,
    source: &[u8],
) -> Vec<u8> {
    let arguments = arguments.unwrap_or(b"{}");
    let meta = meta(mark, source);
    [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"method\":\"tools/call\",\"params\":{\"name\":",
        name,
        b",\"arguments\":",
        arguments,
        b",\"_meta\":",
        &meta,
        b"}}",
    ]
    .concat()
}

/// What a tool answered; `content` is the JSON text of an array.
pub(super) fn result(
    id: &[u8],
    content: &[u8],
    failed: bool,
    mark: &str,
    source: &[u8],
) -> Vec<u8> {
    let meta = meta(mark, source);
    let failed: &[u8] = if failed { b",\"isError\":true" } else { b"" };
    [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"result\":{\"content\":",
        content,
        failed,
        b",\"_meta\":",
        &meta,
        b"}}",
    ]
    .concat()
}

/// An answer that is an error. `code` and `message` are JSON text.
pub(super) fn error(id: &[u8], code: &[u8], message: &[u8], mark: &str, source: &[u8]) -> Vec<u8> {
    let data = meta(mark, source);
    [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"error\":{\"code\":",
        code,
        b",\"message\":",
        message,
        b",\"data\":",
        &data,
        b"}}",
    ]
    .concat()
}

/// Something that MCP has no message for.
pub(super) fn note(method: &str, source: &[u8]) -> Vec<u8> {
    let method = super::json::quoted(method);
    [
        b"{\"jsonrpc\":\"2.0\",\"method\":",
        &method[..],
        b",\"params\":",
        source,
        b"}",
    ]
    .concat()
}

/// Content that is one text; `text` is a JSON string.
pub(super) fn text_content(text: &[u8]) -> Vec<u8> {
    [b"[{\"type\":\"text\",\"text\":", text, b"}]"].concat()
}

fn meta(mark: &str, source: &[u8]) -> Vec<u8> {
    [b"{\"", mark.as_bytes(), b"\":", source, b"}"].concat()
}

/// Remembers calls that have no answer yet: the last [`MOST_OPEN`] of them.
#[derive(Debug, Default)]
pub(super) struct Open {
    calls: std::collections::VecDeque<Call>,
    /// Whether any was given up.
    pub(super) overflown: bool,
}

/// A call without an answer.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// Its id, as JSON text.
    pub(super) id: Vec<u8>,
    /// What an answer may name it by, shortened; the surest first.
    pub(super) names: [Option<u64>; 3],
}

/// A session with more calls than this at a time has lost their answers.
const MOST_OPEN: usize = 1024;

impl Open {
    pub(super) fn add(&mut self, call: Call) {
        if self.calls.len() >= MOST_OPEN {
            self.calls.pop_front();
            self.overflown = true;
        }
        self.calls.push_back(call);
    }

    /// The call that is known by this name, of several the last one.
    pub(super) fn take(&mut self, place: usize, name: Option<u64>) -> Option<Call> {
        let name = name?;
        let known = |call: &Call| call.names.get(place) == Some(&Some(name));
        let position = self.calls.iter().rposition(known)?;
        self.calls.remove(position)
    }

    /// Whether a call is known by this name.
    pub(super) fn holds(&self, place: usize, name: Option<u64>) -> bool {
        let known = |call: &Call| name.is_some() && call.names.get(place) == Some(&name);
        self.calls.iter().any(known)
    }

    /// Whether calls are left that were not answered.
    pub(super) fn is_left(&self) -> bool {
        self.overflown || !self.calls.is_empty()
    }
}

/// A name, however long, as a number.
pub(super) fn short(name: &[u8]) -> u64 {
    let hash = blake3::hash(name);
    let mut number = [0; 8];
    number.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(number)
}

/// An id for a message: the JSON text of a name, if that is a string of common length, or else
/// one made from its place in the file.
pub(super) fn id_of(name: Option<&[u8]>, place: u64) -> Vec<u8> {
    match name {
        Some(name) if super::json::is_string(name) && (3..=130).contains(&name.len()) => {
            name.to_vec()
        }
        _ => format!("\"#{place}\"").into_bytes(),
    }
}
