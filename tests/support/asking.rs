//! An assistant that asks our MCP server: one line of JSON each way, so that a test sees every
//! byte of an answer.

use super::{Home, LIMIT};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A running `agent-trace mcp`. It is killed when this is dropped.
pub(crate) struct Asking {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
}

/// What a tool answered.
#[derive(Debug)]
pub(crate) struct Told {
    /// The structured content; of an error the JSON in its text.
    pub(crate) value: Value,
    pub(crate) is_error: bool,
    /// Bytes of the result on the wire.
    pub(crate) bytes: usize,
}

impl Asking {
    /// Of a home's store, from a folder.
    #[track_caller]
    pub(crate) fn start(home: &Home, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = home.program();
        command.arg("mcp").args(arguments).current_dir(folder);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                if told.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        let mut asking = Self {
            child,
            input,
            lines,
            last: 0,
        };
        let about = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "asking", "version": "1" }
        });
        asking.request("initialize", &about);
        asking.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        asking
    }

    /// Of all projects.
    #[track_caller]
    pub(crate) fn all(home: &Home) -> Self {
        Self::start(home, &home.at("."), &["--all-projects"])
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    /// Sends a request, and returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a notification.
    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn next(&self) -> Value {
        let line = self.lines.recv_timeout(LIMIT).expect("an answer");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request: the whole message.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Told {
        self.call_with(tool, arguments, &json!({}))
    }

    /// With members of `_meta`.
    #[track_caller]
    pub(crate) fn call_with(&mut self, tool: &str, arguments: &Value, meta: &Value) -> Told {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let answer = self.request("tools/call", &params);
        let Some(result) = answer.get("result") else {
            panic!("{tool}: {answer}");
        };
        let is_error = result["isError"] == true;
        let text = result["content"][0]["text"].as_str().unwrap();
        let in_text: Value = serde_json::from_str(text).unwrap();
        if !is_error {
            assert_eq!(
                result["structuredContent"], in_text,
                "the twins are the same"
            );
        }
        Told {
            value: in_text,
            is_error,
            bytes: result.to_string().len(),
        }
    }

    /// The structured content of an answer.
    #[track_caller]
    pub(crate) fn ok(&mut self, tool: &str, arguments: &Value) -> Value {
        let told = self.call(tool, arguments);
        assert!(!told.is_error, "{tool} {arguments}: {}", told.value);
        told.value
    }

    /// The names of the tools that there are.
    pub(crate) fn tools(&mut self) -> Vec<String> {
        let answer = self.request("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Ends the input, and waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
