//! The scripted client of the demo: starts `record` as an assistant would.

use crate::config::{ENV_CONFIG, ENV_SWITCH};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

pub(super) struct Client {
    relay: Child,
    answers: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    /// Starts the bundled server behind a relay, and greets it.
    pub(super) fn start(store: &Path, run: &str) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut relay = Command::new(&program)
            .args(["record", "--client", "demo", "--server", "notes", "--store"])
            .arg(store)
            .args(["--run", run])
            .arg("--")
            .arg(&program)
            .arg("demo-server")
            // Recorded as anyone's first run is, whatever is set up here.
            .env_remove(ENV_SWITCH)
            .env(ENV_CONFIG, if cfg!(windows) { "NUL" } else { "/dev/null" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What the server says there is in the trace.
            .stderr(Stdio::null())
            .spawn()?;
        let answers = relay.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut client = Self {
            relay,
            answers: BufReader::new(answers),
            last_id: 0,
        };
        client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "demo", "version": env!("CARGO_PKG_VERSION")}
            }),
        )?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        client.request("tools/list", &json!({}))?;
        Ok(client)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<Value> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Ends the session as a client does, and waits for its end.
    pub(super) fn finish(mut self) -> io::Result<()> {
        drop(self.relay.stdin.take());
        self.relay.wait().map(drop)
    }

    fn request(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let input = self.relay.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{message}")
    }
}
