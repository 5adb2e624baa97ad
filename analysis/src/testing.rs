//! Small stories, told step by step: for tests of what works on stories.
//!
//! ```
//! # use agent_trace_analysis::testing::Tale;
//! let story = Tale::new()
//!     .call("add", r#"{"text":"x"}"#)
//!     .result(r#"{"content":[]}"#)
//!     .after(2_000)
//!     .call("read", r#"{"id":7}"#)
//!     .tool_error("there is no 7")
//!     .told();
//! assert_eq!(story.steps.len(), 2);
//! ```

use agent_trace_model::step::{Message, Step, StepKind};
use agent_trace_model::story::{Session, Standing, Story, Turn};
use agent_trace_model::{End, Ending, Outcome, ProcessId, RunId, SessionId, Stream};

/// When a tale begins: 2026-11-30 12:00:00 UTC, in nanoseconds since 1970.
pub const START: u64 = 1_796_040_000_000_000_000;

const MS: u64 = 1_000_000;

/// A story that is being told. What changes a step changes the last one.
#[derive(Clone, Debug)]
pub struct Tale {
    story: Story,
    session: usize,
    now: u64,
}

impl Default for Tale {
    fn default() -> Self {
        Self::new()
    }
}

impl Tale {
    /// An editor and its server `notes`, who have said nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let story = Story {
            id: RunId::from_digest([0xab; 16]),
            aliases: Vec::new(),
            workspace: String::new(),
            project: None,
            task: None,
            sessions: Vec::new(),
            turns: Vec::new(),
            steps: Vec::new(),
        };
        let tale = Self {
            story,
            session: 0,
            now: START,
        };
        tale.on("notes")
    }

    /// What follows is said to this server.
    #[must_use]
    pub fn on(mut self, server: &str) -> Self {
        let known = self.story.sessions.iter().position(|s| s.server == server);
        self.session = known.unwrap_or_else(|| {
            let ordinal = self.story.sessions.len() as u32 + 1;
            self.story.sessions.push(session(server, ordinal, self.now));
            self.story.sessions.len() - 1
        });
        self
    }

    /// What follows belongs to a new prompt.
    #[must_use]
    pub fn turn(mut self, id: &str) -> Self {
        let (id, started) = (id.to_owned(), self.now);
        self.story.turns.push(Turn { id, started });
        self
    }

    /// Milliseconds pass.
    #[must_use]
    pub fn after(mut self, ms: u64) -> Self {
        self.now += ms * MS;
        self
    }

    /// What follows happens so many milliseconds after the beginning.
    #[must_use]
    pub fn at(mut self, ms: u64) -> Self {
        self.now = START + ms * MS;
        self
    }

    /// The client calls a tool; the arguments are JSON text.
    #[must_use]
    pub fn call(self, tool: &str, arguments: &str) -> Self {
        let params = format!("{{\"name\":\"{tool}\",\"arguments\":{arguments}}}");
        let mut tale = self.request("tools/call", &params);
        tale.last().target = Some(tool.to_owned());
        tale
    }

    /// The client asks something.
    #[must_use]
    pub fn request(self, method: &str, params: &str) -> Self {
        self.push(
            StepKind::Request,
            Stream::ClientToServer,
            Some(method),
            params,
        )
    }

    /// The server asks something.
    #[must_use]
    pub fn asked_back(self, method: &str, params: &str) -> Self {
        self.push(
            StepKind::Request,
            Stream::ServerToClient,
            Some(method),
            params,
        )
    }

    /// The client notifies the server.
    #[must_use]
    pub fn tells(self, method: &str, params: &str) -> Self {
        let from = Stream::ClientToServer;
        self.push(StepKind::Notification, from, Some(method), params)
    }

    /// The server notifies the client.
    #[must_use]
    pub fn told_by_server(self, method: &str, params: &str) -> Self {
        let from = Stream::ServerToClient;
        self.push(StepKind::Notification, from, Some(method), params)
    }

    /// The server prints something that is no message.
    #[must_use]
    pub fn prints(self, text: &str) -> Self {
        let mut tale = self.push(StepKind::Stray, Stream::ServerToClient, None, "");
        tale.last().request = Some(message(text, tale.now));
        tale
    }

    /// It was answered with this result (JSON text), ten milliseconds later.
    #[must_use]
    pub fn result(self, result: &str) -> Self {
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}");
        self.answered(&text, Outcome::Ok)
    }

    /// The same, the result being one block of text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let text = serde_json::Value::from(text);
        self.result(&format!(
            "{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}"
        ))
    }

    /// The tool reported this failure.
    #[must_use]
    pub fn tool_error(self, text: &str) -> Self {
        let text = serde_json::Value::from(text);
        let result =
            format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true}}");
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}");
        self.answered(&text, Outcome::ToolError)
    }

    /// It was answered with this error.
    #[must_use]
    pub fn error(self, code: i64, what: &str) -> Self {
        let what = serde_json::Value::from(what);
        let error = format!("{{\"code\":{code},\"message\":{what}}}");
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{error}}}");
        self.answered(&text, Outcome::Error)
    }

    /// The answer took so many milliseconds.
    #[must_use]
    pub fn takes(mut self, ms: u64) -> Self {
        let step = self.last();
        step.duration = Some(ms * MS);
        let ended = step.ended();
        if let Some(answer) = &mut step.response {
            answer.wall = ended;
        }
        self.now = ended;
        self
    }

    /// What came of it.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> Self {
        self.last().outcome = outcome;
        self
    }

    /// Changes the last step.
    #[must_use]
    pub fn step(mut self, change: impl FnOnce(&mut Step)) -> Self {
        change(self.last());
        self
    }

    /// Changes the session that was spoken of last.
    #[must_use]
    pub fn session(mut self, change: impl FnOnce(&mut Session)) -> Self {
        change(&mut self.story.sessions[self.session]);
        self
    }

    /// The story: its sessions end with their last steps.
    #[must_use]
    pub fn told(mut self) -> Story {
        let last = self.now;
        for session in &mut self.story.sessions {
            session.last = last;
        }
        self.story
    }

    fn push(mut self, kind: StepKind, from: Stream, method: Option<&str>, params: &str) -> Self {
        let number = self.story.steps.len() + 1;
        let request = kind == StepKind::Request;
        let id = request.then(|| number.to_string());
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",{}\"method\":\"{}\",\"params\":{params}}}",
            id.as_ref()
                .map_or(String::new(), |id| format!("\"id\":{id},")),
            method.unwrap_or_default(),
        );
        self.story.steps.push(Step {
            number,
            session: self.session,
            turn: self.story.turns.len().checked_sub(1),
            kind,
            from,
            method: method.map(ToOwned::to_owned),
            target: None,
            id,
            request: Some(message(&text, self.now)),
            response: None,
            exchange: 0,
            status: None,
            finish: None,
            rounds: 1,
            wall: self.now,
            duration: None,
            progress: 0,
            cancel_sent: false,
            outcome: match kind {
                StepKind::Request => Outcome::Unanswered,
                _ => Outcome::Ok,
            },
        });
        self
    }

    fn answered(mut self, text: &str, outcome: Outcome) -> Self {
        let step = self.last();
        step.response = Some(message(text, step.wall));
        step.outcome = outcome;
        self.takes(10)
    }

    fn last(&mut self) -> &mut Step {
        let last = self.story.steps.len() - 1;
        &mut self.story.steps[last]
    }
}

fn message(text: &str, wall: u64) -> Message {
    Message {
        text: text.as_bytes().to_vec(),
        length: text.len() as u64,
        wall,
        delivered: true,
        ..Message::default()
    }
}

fn session(server: &str, ordinal: u32, started: u64) -> Session {
    let process = ProcessId::new(START / MS, [1; 10]);
    Session {
        id: SessionId { process, ordinal },
        server: server.to_owned(),
        client: "editor".to_owned(),
        transport: "stdio".to_owned(),
        revision: None,
        command: vec![server.to_owned()],
        listen: None,
        upstream: None,
        key: None,
        user_agent: None,
        redacted: true,
        digested: false,
        started,
        last: started,
        standing: Standing::Ended,
        end: Some(End {
            ending: Ending::ClientClosed,
            exit_code: Some(0),
            signal: None,
            killed: false,
            error: None,
        }),
        exchanges: Default::default(),
        stderr: Vec::new(),
        gaps: Vec::new(),
        missing: 0,
        damaged: 0,
        unreadable: Vec::new(),
        clipped: false,
    }
}
