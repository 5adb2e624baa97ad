//! Tests of what is found.

use super::*;
use crate::machine::{Files, System};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Files in memory.
#[derive(Default)]
struct Memory(BTreeMap<PathBuf, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.get(path).cloned())
    }

    fn names(&self, folder: &Path) -> Vec<OsString> {
        let inside = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(folder).ok());
        let mut names: Vec<OsString> = inside
            .filter_map(|path| Some(path.components().next()?.as_os_str().to_owned()))
            .collect();
        names.dedup();
        names
    }
}

fn found(files: &[(&str, &str)]) -> Found {
    let files = files
        .iter()
        .map(|(path, text)| (path.into(), text.as_bytes().to_vec()));
    let files = Memory(files.collect());
    discover(&Machine {
        system: System::Linux,
        home: Path::new("/h"),
        project: Some(Path::new("/p")),
        env: &|_| None,
        files: &files,
    })
}

/// Each entry in one line.
fn lines(found: &Found) -> Vec<String> {
    let entries = found.entries.iter().map(|entry| {
        let how = match &entry.kind {
            Kind::Stdio { command, args, env } => {
                format!("{command} {} {}", args.join(" "), env.join(","))
            }
            Kind::Http { url, headers } => format!("{url} {}", headers.join(",")),
        };
        let mark = match entry.standing {
            Standing::Bare => "",
            Standing::Wrapped { .. } => " wrapped",
            Standing::Ours => " ours",
        };
        let off = if entry.enabled { "" } else { " off" };
        let id = entry.client.id;
        format!(
            "{id} {} {}: {how}{mark}{off}",
            entry.scope.word(),
            entry.name
        )
    });
    entries.collect()
}

#[test]
fn every_form_of_entry_is_found() {
    let found = found(&[
        (
            "/h/.cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "secret"}}, "b": {"url": "https://b", "headers": {"Authorization": "secret"}}}} // c"#,
        ),
        (
            "/h/.claude.json",
            r#"{"mcpServers": {"u": {"command": "u"}}, "projects": {"/p": {"mcpServers": {"l": {"command": "l"}}}, "/q": {}}}"#,
        ),
        (
            "/h/.codex/config.toml",
            "[mcp_servers.c]\ncommand = 'c'\nenv_vars = ['HOME']\nenabled = false\n[mcp_servers.d]\nurl = 'http://d'\n",
        ),
        (
            "/h/.config/opencode/opencode.jsonc",
            r#"{"mcp": {"o": {"type": "local", "command": ["bun", "x",], "environment": {"E": "1"}}, "only": {"enabled": false}}}"#,
        ),
        (
            "/h/.config/zed/settings.json",
            r#"{"context_servers": {"z": {"command": {"path": "z", "args": ["1"], "env": {"Z": ""}}}}}"#,
        ),
        (
            "/h/.continue/config.yaml",
            "mcpServers:\n  - name: n\n    command: uvx\n    args:\n      - m\n",
        ),
        (
            "/h/.config/goose/config.yaml",
            "extensions:\n  g:\n    type: stdio\n    cmd: g\n    args: [1x]\n    envs: {G: x}\n    enabled: false\n  dev:\n    type: builtin\n",
        ),
        (
            "/h/.codeium/windsurf/mcp_config.json",
            r#"{"mcpServers": {"w": {"serverUrl": "http://w"}, "x": {"command": "x", "disabled": true}}}"#,
        ),
        (
            "/h/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            r#"{"mcpServers": {"cl": {"command": "cl"}}}"#,
        ),
        (
            "/h/.gemini/settings.json",
            r#"{"mcpServers": {"r": {"command": "/x/agent-trace", "args": ["record", "--client", "gemini", "--store", "/s", "--", "npx", "y"]}, "t": {"command": "agent-trace", "args": ["mcp"]}}}"#,
        ),
        (
            "/p/.vscode/mcp.json",
            r#"{"servers": {"v": {"command": "v"}}, "inputs": []}"#,
        ),
    ]);
    assert_eq!(found.problems, []);
    assert_eq!(
        lines(&found),
        [
            "cursor user a: npx -y x K",
            "cursor user b: https://b Authorization",
            "windsurf user w: http://w ",
            "windsurf user x: x   off",
            "vscode project v: v  ",
            "claude-code user u: u  ",
            "claude-code local l: l  ",
            "codex user c: c  HOME off",
            "codex user d: http://d ",
            "gemini user r: /x/agent-trace record --client gemini --store /s -- npx y  wrapped",
            "gemini user t: agent-trace mcp  ours",
            "opencode user o: bun x E",
            "zed user z: z 1 Z",
            "cline user cl: cl  ",
            "continue user n: uvx m ",
            "goose user g: g 1x G off",
        ]
    );
    let local = found
        .entries
        .iter()
        .find(|entry| entry.name == "l")
        .unwrap();
    assert_eq!(local.path, ["projects", "/p", "mcpServers", "l"]);
    let wrapped = found
        .entries
        .iter()
        .find(|entry| entry.name == "r")
        .unwrap();
    let original = vec!["npx".into(), "y".into()];
    let store = Some("/s".into());
    assert_eq!(wrapped.standing, Standing::Wrapped { original, store });
    let codex = found
        .entries
        .iter()
        .find(|entry| entry.name == "d")
        .unwrap();
    assert_eq!(codex.line, 5);
}

#[test]
fn a_file_that_several_assistants_read_is_each_ones() {
    let found = found(&[("/p/.mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#)]);
    let clients: Vec<&str> = found.clients.iter().map(|client| client.id).collect();
    assert_eq!(clients, ["claude-code", "copilot"]);
    assert_eq!(found.entries.len(), 2);
}

#[test]
fn of_equal_names_the_last_counts() {
    let text = r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"a": {"command": "y"}, "a": {"command": "z"}}}"#;
    let found = found(&[("/h/.cursor/mcp.json", text)]);
    assert_eq!(lines(&found), ["cursor user a: z  "]);
    let entry = &found.entries[0];
    assert_eq!(&text[entry.span.clone()], r#"{"command": "z"}"#);
    assert_eq!(&text[entry.name_span.clone()], r#""a""#);
}

#[test]
fn a_malformed_file_is_a_problem_with_its_place_and_the_others_are_read() {
    let found = found(&[
        ("/h/.cursor/mcp.json", "{\n  \"mcpServers\" {}\n}"),
        ("/h/.codex/config.toml", "[mcp_servers.c]\ncommand = 'c'\n"),
        ("/h/.config/goose/config.yaml", "a: b: c"),
        (
            "/h/.gemini/settings.json",
            "{\"mcpServers\": [1, {\"name\": 2}, \"x\"]}",
        ),
        (
            "/h/.copilot/mcp-config.json",
            "{\"mcpServers\": {\"x\": 1, \"y\": {\"command\": 7}, \"z\": {\"command\": []}}}",
        ),
    ]);
    assert_eq!(lines(&found), ["codex user c: c  "]);
    let places: Vec<_> = found.problems.iter().map(|p| (p.client, p.place)).collect();
    assert_eq!(places[0], ("cursor", Some((2, 16))));
    assert_eq!(places[1].0, "goose");
    assert_eq!(places.len(), 2);
}

#[test]
fn what_is_hostile_is_bounded() {
    let long = "k".repeat(5000);
    let mut text = format!("{{\"mcpServers\": {{\"{long}\": {{\"command\": \"x\"}}");
    for n in 0..1500 {
        text.push_str(&format!(",\n\"s{n}\": {{\"command\": \"x\"}}"));
    }
    text.push_str("}}");
    let found = found(&[("/h/.cursor/mcp.json", &text)]);
    assert_eq!(found.entries.len(), 1000);
    assert_eq!((&*found.entries[0].name, found.entries[0].line), ("s0", 2));
    assert_eq!(found.entries[999].line, 1001);
    assert_eq!(found.problems.len(), 1);
}

#[test]
fn an_entry_can_be_read_in_full() {
    let text = r#"{"mcpServers": {
        "a": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v", "N": 1}, "cwd": "/w"},
        "b": {"url": "https://x/", "headers": {"H": "w"}}}}"#;
    let files = [(
        PathBuf::from("/h/.cursor/mcp.json"),
        text.as_bytes().to_vec(),
    )];
    let files = Memory(files.into());
    let machine = Machine {
        system: System::Linux,
        home: Path::new("/h"),
        project: None,
        env: &|_| None,
        files: &files,
    };
    let found = discover(&machine);
    let all: Vec<Values> = found
        .entries
        .iter()
        .filter(|entry| entry.client.id == "cursor")
        .map(|entry| values(&machine, entry).unwrap().unwrap())
        .collect();
    let words: Vec<&str> = all[0].words.iter().map(|word| &word.text[..]).collect();
    assert_eq!(words, ["npx", "-y", "x"]);
    assert_eq!(&text[all[0].words[2].span.clone()], "\"x\"");
    // What is no text is left to who knows what the assistant makes of it.
    let env: Vec<&str> = all[0].env.iter().map(|pair| &pair.name[..]).collect();
    assert_eq!(env, ["K"]);
    assert_eq!(&text[all[0].env[0].value.span.clone()], "\"v\"");
    assert_eq!(
        all[0].folder.as_ref().map(|folder| &folder.text[..]),
        Some("/w")
    );
    assert_eq!(
        all[1].url.as_ref().map(|url| &url.text[..]),
        Some("https://x/")
    );
    assert_eq!(all[1].headers[0].value.text, "w");
    assert!(!format!("{all:?}").contains("https"));
}
