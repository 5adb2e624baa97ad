//! Real servers and clients, where `tests/peers/install` has put them.

use super::{Home, Said};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Real peers of one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peers {
    Node,
    Python,
}

/// The folder of the peers.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers")
}

/// Why these peers cannot be used here, if they cannot.
pub(crate) fn missing(peers: Peers) -> Option<&'static str> {
    // The client is Python's in any case.
    if !folder().join(".venv/.stamp").exists() {
        return Some("tests/peers/install has not installed the Python peers");
    }
    if peers == Peers::Node && !folder().join("node_modules/.stamp").exists() {
        return Some("tests/peers/install has not installed the Node peers");
    }
    None
}

/// The command of a server that npm installed.
pub(crate) fn node_server(name: &str, arguments: &[&str]) -> Vec<OsString> {
    let package = format!("node_modules/@modelcontextprotocol/{name}/dist/index.js");
    let mut command = vec!["node".into(), folder().join(package).into_os_string()];
    command.extend(arguments.iter().map(OsString::from));
    command
}

/// The command of a server that pip installed.
pub(crate) fn python_server(name: &str, arguments: &[&str]) -> Vec<OsString> {
    let program = folder().join(".venv/bin").join(name);
    let mut command = vec![program.into_os_string()];
    command.extend(arguments.iter().map(OsString::from));
    command
}

/// Puts the relay before a server's command.
pub(crate) fn relayed(server: &[OsString]) -> Vec<OsString> {
    let own = [env!("CARGO_BIN_EXE_agent-trace"), "record", "--"];
    let own = own.iter().map(OsString::from);
    own.chain(server.iter().cloned()).collect()
}

/// Takes a client through a scenario with this server.
pub(crate) fn drive(home: &Home, scenario: &str, server: &[OsString]) -> Said {
    let mut command = home.with_environment(Command::new(folder().join(".venv/bin/python")));
    command.arg(folder().join("drive.py")).arg(scenario);
    Said::by(command.arg("--").args(server), b"")
}

/// Asks a server one thing through the inspector.
pub(crate) fn inspect(home: &Home, options: &[&str], server: &[OsString]) -> Said {
    let mut command = home.with_environment(Command::new(super::server::python()));
    command.arg(folder().join("inspect")).args(options);
    Said::by(command.arg(OsStr::new("--")).args(server), b"")
}
