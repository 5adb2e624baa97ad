//! The bundled MCP server of the demo: keeps notes for as long as it runs.

use crate::error::{CommandError, exit};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};

/// Serves standard input until its end.
pub(crate) fn run() -> Result<u8, CommandError> {
    let mut notes: Vec<String> = Vec::new();
    let mut out = io::stdout().lock();
    writeln!(io::stderr(), "notes: serving")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(CommandError::failed("cannot read standard input"))?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        let Some(id) = message.get("id") else {
            continue;
        };
        let answer = match answer(&message, &mut notes) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(what) => json!({"jsonrpc": "2.0", "id": id, "error": what}),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(exit::SUCCESS)
}

fn answer(message: &Value, notes: &mut Vec<String>) -> Result<Value, Value> {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "notes", "version": env!("CARGO_PKG_VERSION")}
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": [
            tool("add_note", "Keeps a note and tells its number", "text", "string"),
            tool("read_note", "Reads a note by its number", "number", "integer"),
        ]})),
        "tools/call" => {
            let arguments = &params["arguments"];
            match params["name"].as_str().unwrap_or_default() {
                "add_note" => {
                    notes.push(arguments["text"].as_str().unwrap_or_default().to_owned());
                    Ok(text(&format!("Kept as note {}", notes.len()), false))
                }
                "read_note" => {
                    let number = arguments["number"].as_u64().unwrap_or_default();
                    let index = usize::try_from(number).unwrap_or_default().checked_sub(1);
                    Ok(match index.and_then(|index| notes.get(index)) {
                        Some(note) => text(note, false),
                        None => text(&format!("There is no note {number}"), true),
                    })
                }
                other => Err(json!({"code": -32602, "message": format!("Unknown tool: {other}")})),
            }
        }
        other => Err(json!({"code": -32601, "message": format!("Method not found: {other}")})),
    }
}

fn tool(name: &str, description: &str, parameter: &str, kind: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {parameter: {"type": kind}},
            "required": [parameter]
        }
    })
}

fn text(text: &str, is_error: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}]});
    if is_error {
        result["isError"] = true.into();
    }
    result
}
