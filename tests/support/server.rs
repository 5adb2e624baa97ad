//! Scripted servers: what `server.py` is to do, step by step.

use super::wait_for;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A server and its script.
pub(crate) struct Server {
    notes: TempDir,
    steps: Vec<Value>,
    words: Vec<String>,
    launcher: Vec<String>,
}

impl Server {
    /// A server that does nothing yet, and exits with 0 after its last step.
    pub(crate) fn new() -> Self {
        let notes = tempfile::Builder::new()
            .prefix("agent-trace-server-")
            .tempdir()
            .unwrap();
        Self {
            notes,
            steps: Vec::new(),
            words: Vec::new(),
            launcher: Vec::new(),
        }
    }

    /// A small MCP server: see `serve` in `server.py`.
    pub(crate) fn mcp() -> Self {
        Self::new().step(json!(["serve"]))
    }

    /// A server that takes everything, writes this, and exits when its input ends.
    pub(crate) fn that_writes(bytes: impl AsRef<[u8]>) -> Self {
        Self::new().writes(bytes).reads_to_the_end()
    }

    /// A server that sends everything back.
    pub(crate) fn echo() -> Self {
        Self::new().step(json!(["echo"]))
    }

    /// Writes to standard output.
    pub(crate) fn writes(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(json!(["write", base64(bytes.as_ref())]))
    }

    /// Writes in pieces of this size, with a pause after each.
    pub(crate) fn writes_in_pieces(
        self,
        bytes: impl AsRef<[u8]>,
        size: usize,
        seconds: f64,
    ) -> Self {
        self.step(json!(["pieces", base64(bytes.as_ref()), size, seconds]))
    }

    /// Writes this again and again until it is so many bytes.
    pub(crate) fn fills(self, unit: impl AsRef<[u8]>, count: u64) -> Self {
        self.step(json!(["fill", base64(unit.as_ref()), count]))
    }

    /// Writes to standard error.
    pub(crate) fn complains(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(json!(["error", base64(bytes.as_ref())]))
    }

    pub(crate) fn reads(self, count: usize) -> Self {
        self.step(json!(["read", count]))
    }

    pub(crate) fn reads_a_line(self) -> Self {
        self.step(json!(["read line"]))
    }

    pub(crate) fn reads_to_the_end(self) -> Self {
        self.step(json!(["read to the end"]))
    }

    /// Writes this after each line that it reads, until the end of its input.
    pub(crate) fn answers_each_line(self, with: impl AsRef<[u8]>) -> Self {
        self.step(json!(["answer each line", base64(with.as_ref())]))
    }

    /// Closes one of its streams: 0, 1 or 2.
    pub(crate) fn closes(self, stream: u8) -> Self {
        self.step(json!(["close", stream]))
    }

    /// Leaves a note, which [`Self::note`] waits for.
    pub(crate) fn notes(self, name: &str) -> Self {
        self.step(json!(["note", name]))
    }

    /// Waits for [`Self::go_on`].
    pub(crate) fn waits_for(self, name: &str) -> Self {
        self.step(json!(["wait for", name]))
    }

    /// Notes its arguments, folder and environment.
    pub(crate) fn notes_how_it_started(self) -> Self {
        self.step(json!(["note start"]))
    }

    /// Starts a process that lives on: `holding output`, `holding nothing`, or
    /// `in a session of its own`.
    pub(crate) fn starts_a_process(self, how: &str) -> Self {
        self.step(json!(["start", how]))
    }

    /// Takes note of these signals and goes on.
    pub(crate) fn ignores(self, signals: &[&str]) -> Self {
        let mut step = vec!["ignore"];
        step.extend(signals);
        self.step(json!(step))
    }

    /// Goes on for longer than any test waits.
    pub(crate) fn stays(self) -> Self {
        self.step(json!(["sleep", 120]))
    }

    pub(crate) fn sleeps(self, seconds: f64) -> Self {
        self.step(json!(["sleep", seconds]))
    }

    /// Ends by this signal.
    pub(crate) fn dies_of(self, signal: &str) -> Self {
        self.step(json!(["die", signal]))
    }

    pub(crate) fn exits(self, code: i32) -> Self {
        self.step(json!(["exit", code]))
    }

    /// Gives its command more arguments.
    pub(crate) fn with_words(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(ToString::to_string));
        self
    }

    /// Starts it by a shell that only waits, as launchers do.
    pub(crate) fn behind_a_launcher(mut self) -> Self {
        // A shell gives what it starts in the background an empty input.
        let script = "exec 3<&0; \"$@\" <&3 & wait";
        self.launcher = ["sh", "-c", script, "launcher"].map(Into::into).to_vec();
        self
    }

    fn step(mut self, step: Value) -> Self {
        self.steps.push(step);
        self
    }

    /// The command that starts it.
    pub(crate) fn command(&self) -> Vec<String> {
        let script = self.notes.path().join("script");
        let notes = self.notes.path().to_str().unwrap();
        let text = json!({"notes": notes, "steps": self.steps}).to_string();
        std::fs::write(&script, text).unwrap();
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/server.py");
        let own = [python(), "-I", "-S", program, script.to_str().unwrap()];
        let own = own.map(ToOwned::to_owned);
        [&self.launcher[..], &own, &self.words].concat()
    }

    /// Waits for a note, and returns its lines.
    pub(crate) fn note(&self, name: &str) -> Vec<String> {
        wait_for(&format!("the server's note {name:?}"), || {
            let text = std::fs::read_to_string(self.path(name)).ok()?;
            let whole = text.ends_with('\n');
            whole.then(|| text.lines().map(Into::into).collect())
        })
    }

    pub(crate) fn has_noted(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.note("pid")[0].parse().unwrap()
    }

    /// The processes that it started itself.
    pub(crate) fn started_pids(&self) -> Vec<u32> {
        let pids = self.note("started pids");
        pids.iter().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Lets it go on where it [waits](Self::waits_for).
    pub(crate) fn go_on(&self, name: &str) {
        std::fs::write(self.path(name), "go on\n").unwrap();
    }

    /// Every byte that it has read.
    pub(crate) fn input(&self) -> Vec<u8> {
        std::fs::read(self.path("in")).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.notes.path().join(name)
    }
}

/// The interpreter itself: what is on PATH may be a slow launcher of it.
pub(crate) fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let found = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .expect("the tests need python3");
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4_u32 {
            let value = bits >> (18 - 6 * digit) & 63;
            let known = digit as usize <= three.len();
            text.push(if known {
                char::from(DIGITS[value as usize])
            } else {
                '='
            });
        }
    }
    text
}
