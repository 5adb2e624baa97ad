//! Real assistants, where `tests/peers/install` has put them, with a scripted model.
//!
//! The runner and the model lie beside this repository (`../shared/assistants/e2e`).

use super::peers::folder;
use super::server::python;
use super::{Home, Said};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Claude,
    Codex,
    Copilot,
}

impl Client {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
        }
    }

    /// A command that puts an entry for our server in place of those in its configuration.
    fn take_entry(self, entry: &Path) -> String {
        let entry = entry.display();
        match self {
            Self::Claude => format!("cp '{entry}' ~/.claude.json"),
            Self::Copilot => format!("cp '{entry}' ~/.copilot/mcp-config.json"),
            // Its user would be asked about each tool, and there is none.
            Self::Codex => format!(
                "cd ~/.codex && sed -i '/^\\[mcp_servers/,$d' config.toml && cat '{entry}' \
                 >>config.toml && echo 'default_tools_approval_mode = \"approve\"' >>config.toml"
            ),
        }
    }
}

/// Why assistants cannot be run here, if they cannot.
///
/// # Panics
/// Where CI is set and they are not installed: it must not pass without them.
#[track_caller]
pub(crate) fn missing() -> Option<&'static str> {
    if !runner().exists() {
        return Some("there is no ../shared/assistants/e2e here");
    }
    if folder().join("clients/node_modules/.stamp").exists() {
        return None;
    }
    let reason = "tests/peers/install has not installed the assistants";
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    Some(reason)
}

fn runner() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/assistants/e2e/run_client.py")
}

/// An assistant that is asked something, with our server in its configuration.
pub(crate) struct Assistant<'a> {
    home: &'a Home,
    client: Client,
    /// An entry for our server instead of the runner's.
    entry: Option<PathBuf>,
    /// Our plugin instead of an entry, and the folder of the program that it finds on its PATH.
    plugin: Option<PathBuf>,
    /// Further options of the runner.
    pub(crate) options: Vec<String>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The results of tools, as they reached the model.
    pub(crate) results: Vec<String>,
    /// The names of the tools that the model was offered first.
    pub(crate) offered: Vec<String>,
    /// The last answer.
    pub(crate) answer: String,
}

impl<'a> Assistant<'a> {
    pub(crate) fn new(home: &'a Home, client: Client) -> Self {
        let project = home.at("assistant/project/.git");
        std::fs::create_dir_all(project).unwrap();
        Self {
            home,
            client,
            entry: None,
            plugin: None,
            options: Vec::new(),
        }
    }

    /// The folder that it works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.home.at("assistant/project")
    }

    /// Has this entry for our server in its configuration.
    pub(crate) fn with_entry(mut self, text: &str) -> Self {
        let path = self.home.at("entry");
        std::fs::write(&path, text).unwrap();
        self.entry = Some(path);
        self
    }

    /// Installs our plugin by the assistant's own commands, and finds the program in this folder.
    /// The store is where it is unless somebody says so: a plugin has no say in that.
    pub(crate) fn with_plugin(mut self, program: &Path) -> Self {
        let data = self.home.at("assistant/.local/share");
        std::fs::create_dir_all(&data).unwrap();
        std::os::unix::fs::symlink(self.home.store_folder(), data.join("agent-trace")).unwrap();
        self.plugin = Some(program.to_owned());
        self
    }

    /// Asks it, and lets its model do these steps.
    #[track_caller]
    pub(crate) fn ask(&self, prompt: &str, steps: &[Value]) -> Answered {
        let out = self.home.at("out");
        let script = json!({ "steps": steps, "text": "FAKE-MODEL-DONE" });
        // Not every assistant passes its environment on.
        let server = format!(
            "{} --store {} mcp",
            env!("CARGO_BIN_EXE_agent-trace"),
            self.home.store_folder().display()
        );
        let mut command = self.home.with_environment(Command::new(python()));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(runner()).arg(self.client.name());
        command.arg("--dir").arg(folder().join("clients"));
        command.arg("--home").arg(self.home.at("assistant"));
        command.arg("--out").arg(&out);
        if let Some(program) = &self.plugin {
            let path = std::env::var("PATH").unwrap_or_default();
            command.env("PATH", format!("{}:{path}", program.display()));
            command.args(["--plugin", env!("CARGO_MANIFEST_DIR")]);
        } else {
            command.args(["--server-name", "agent-trace", "--server-cmd", &server]);
        }
        command.args(["--prompt", prompt, "--script", &script.to_string()]);
        command.args(["--timeout", "90"]).args(&self.options);
        if let Some(entry) = &self.entry {
            command.args(["--prepare", &self.client.take_entry(entry)]);
        }
        let said = Said::by(&mut command, b"");
        let summary: Value = serde_json::from_str(&said.out).unwrap_or_default();
        assert_eq!(summary["exit_code"], 0, "{said:?} {}", heard(&out));
        let log = std::fs::read_to_string(out.join("model.jsonl")).unwrap();
        let turns = log.lines().map(|line| serde_json::from_str(line).unwrap());
        // A request that offers no tools is about a title or the like.
        let turns: Vec<Value> = turns
            .filter(|turn: &Value| {
                turn["offered"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            })
            .collect();
        let texts = |turn: &Value, member: &str| -> Vec<String> {
            let all = turn[member].as_array().unwrap().iter();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let last = turns.last().expect("the model was asked");
        let answered = Answered {
            results: texts(last, "results"),
            offered: texts(&turns[0], "offered"),
            answer: last["text"].as_str().unwrap_or_default().to_owned(),
        };
        assert_eq!(summary["answer"], answered.answer, "{said:?}");
        answered
    }
}

impl Answered {
    /// A result that is ours, as JSON. Some assistants put words of their own before it.
    #[track_caller]
    pub(crate) fn result(&self, number: usize) -> Value {
        let text = &self.results[number];
        let from = text.find('{').unwrap_or_else(|| panic!("{text}"));
        serde_json::from_str(&text[from..]).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// What the assistant printed.
fn heard(out: &Path) -> String {
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap_or_default();
    format!(
        "{}{}{}",
        read("stdout.txt"),
        read("stderr.txt"),
        read("prepare.txt")
    )
}
