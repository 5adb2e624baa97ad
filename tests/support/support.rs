//! What the end-to-end tests speak.
//!
//! - [`asking`]: who asks our MCP server, byte by byte; [`assistants`]: real assistants that do
//! - [`daemon`]: a daemon in the background
//! - [`disks`]: disks that are small, read-only or slow
//! - [`home`]: a store and a home directory of one test's own, and the commands that read it
//! - [`secrets`]: made-up secrets, and the search for what is left of them
//! - [`server`]: scripted servers
//! - [`http`]: raw HTTP clients and servers, and the relay between them
//! - [`session`]: the host's side of a relay with such a server behind it
//! - [`processes`]: who is still there, and what it takes
//! - [`recorded`]: what stands in the trace
//! - [`text`]: printed text without what is different each time
//! - [`peers`]: real servers and clients
//! - [`http_peers`]: those that speak HTTP, and the conformance suite
//!
//! Nothing here sleeps where something can be awaited, and every wait ends at [`LIMIT`].

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(unused_imports, reason = "each test file uses a part of it")]
#![allow(clippy::print_stderr, reason = "why a test was skipped is to be read")]

pub(crate) mod asking;
pub(crate) mod assistants;
pub(crate) mod daemon;
pub(crate) mod disks;
pub(crate) mod home;
pub(crate) mod http;
pub(crate) mod http_peers;
pub(crate) mod peers;
pub(crate) mod processes;
pub(crate) mod recorded;
pub(crate) mod secrets;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod text;

pub(crate) use home::{Home, Said};
pub(crate) use processes::Process;
pub(crate) use server::Server;
pub(crate) use session::{Ended, Session};

use std::io::Write;
use std::time::{Duration, Instant};

/// What takes longer hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A request and an answer to it, each with its line end.
pub(crate) const REQUEST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{}}}\n";
pub(crate) const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n";

/// Looks until there is something, for as long as [`LIMIT`].
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_at_most(LIMIT, what, look)
}

/// Looks until there is something.
pub(crate) fn wait_at_most<T>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited {limit:?} for {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Says that a test cannot run here, and why: see `./test`.
pub(crate) fn skip(test: &str, reason: &str) {
    let line = format!("skipped: {test}: {reason}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("AGENT_TRACE_TEST_SKIPS") {
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(path);
        file.unwrap().write_all(line.as_bytes()).unwrap();
    }
}

/// Bytes as a person can read them in a failure: escaped, and not too many.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let most = 400;
    let text = bytes[..bytes.len().min(most)].escape_ascii().to_string();
    if bytes.len() > most {
        format!("{text}… ({} bytes)", bytes.len())
    } else {
        text
    }
}

/// Two streams of bytes must be equal; a failure says where they part.
#[track_caller]
pub(crate) fn assert_same(got: &[u8], expected: &[u8], what: &str) {
    if got == expected {
        return;
    }
    let part = got.iter().zip(expected).take_while(|(a, b)| a == b).count();
    panic!(
        "{what}: {} bytes instead of {}, equal up to byte {part}\n     got …{}\nexpected …{}",
        got.len(),
        expected.len(),
        shown(&got[part..]),
        shown(&expected[part..]),
    );
}
