//! A long question keeps nobody else waiting, also where all of it runs on one thread.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use agent_trace_index::listing::Projects;
use agent_trace_index::protocol::Query;
use agent_trace_index::runs::Asked;
use agent_trace_index::{Runs, RunsError};
use agent_trace_mcp_tools::{Caller, Callers, Gate, Guard, Reader, Server};
use agent_trace_store::Store;
use rmcp::ServiceExt;
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Thinks until it is told to stop, and lets nobody else have its thread meanwhile.
struct Thinking(Mutex<Receiver<()>>);

impl Runs for Thinking {
    fn ask(&self, _: Query) -> Asked<'_> {
        Box::pin(async move {
            let told = self.0.lock().unwrap();
            let told = told.recv_timeout(Duration::from_secs(60));
            told.expect("somebody else was answered");
            Err(RunsError::Empty)
        })
    }
}

#[test]
fn lists_are_answered_while_a_tool_thinks() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let (stop, stopped) = channel();
    let reader = Arc::new(Reader {
        runs: Arc::new(Thinking(Mutex::new(stopped))),
        store: store.clone(),
        slow: 1,
        offset: 0,
        bytes: 32 << 10,
    });
    let caller = Caller::local("w", Projects::All);
    let callers = Callers::Local(Arc::new(caller));
    let server = Guard::new(Arc::new(Gate::of(&store)), callers, Server::new(reader));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (client, ours) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            let running = server.serve(tokio::io::split(ours)).await.unwrap();
            running.waiting().await.unwrap();
        });
        let (read, mut write) = tokio::io::split(client);
        let mut lines = BufReader::new(read).lines();
        let about = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" }
        });
        let messages = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": "list_runs", "arguments": {}
            }}),
            json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {} }),
        ];
        for message in messages {
            let line = format!("{message}\n");
            write.write_all(line.as_bytes()).await.unwrap();
        }
        let mut answered = Vec::new();
        while answered.len() < 3 {
            let line = lines.next_line().await.unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            answered.extend(message["id"].as_u64());
            if answered.last() == Some(&3) {
                stop.send(()).unwrap();
            }
        }
        assert_eq!(answered, [1, 3, 2]);
    });
}
