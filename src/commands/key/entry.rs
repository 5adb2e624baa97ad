//! Entries for configurations of assistants, by which they reach our MCP server with a key.
//!
//! The names of members are those of the assistants' own documentation. The key is named by its
//! file, never by itself.

use crate::cli::assistants::Assistant;
use crate::config::Config;
use crate::error::CommandError;
use serde_json::{Map, Value, json};
use std::path::Path;

/// The entry, as text to be put into the assistant's configuration.
pub(crate) fn of(
    client: Assistant,
    key_file: &Path,
    config: &Config,
) -> Result<String, CommandError> {
    let program = std::env::current_exe().map_err(CommandError::failed("no path of our own"))?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let store =
        std::path::absolute(&config.store.0).map_err(CommandError::path(&config.store.0))?;
    // Some assistants strip the environment: everything is in the arguments.
    let program = path(&program);
    let arguments = [
        "mcp".to_owned(),
        "--store".into(),
        path(&store),
        "--key-file".into(),
        path(key_file),
    ];
    let plain = json!({ "command": program, "args": arguments });
    let (member, entry) = match client {
        Assistant::Codex => {
            // JSON's strings and lists of strings are TOML's, too.
            return Ok(format!(
                "[mcp_servers.agent-trace]\ncommand = {}\nargs = {}\n",
                plain["command"], plain["args"]
            ));
        }
        Assistant::Vscode => ("servers", with(plain, "type", "stdio")),
        Assistant::Zed => ("context_servers", with(plain, "source", "custom")),
        Assistant::Opencode => {
            let command: Vec<&String> = [&program].into_iter().chain(&arguments).collect();
            ("mcp", json!({ "type": "local", "command": command }))
        }
        Assistant::Copilot => {
            let mut entry = with(plain, "type", "local");
            entry["tools"] = json!(["*"]);
            ("mcpServers", entry)
        }
        Assistant::Claude | Assistant::Cursor | Assistant::Gemini | Assistant::Windsurf => {
            ("mcpServers", plain)
        }
    };
    let mut servers = Map::new();
    servers.insert("agent-trace".into(), entry);
    let document = json!({ member: servers });
    let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
    Ok(text + "\n")
}

fn with(mut entry: Value, member: &str, value: &str) -> Value {
    entry[member] = value.into();
    entry
}
