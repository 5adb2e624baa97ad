//! Runs in a few words.

use super::super::{Finding, Settings, run};
use agent_trace_model::exchange::{Exchange, Request, Response};
use agent_trace_model::step::{Framing, Message, Step, StepKind};
use agent_trace_model::story::{KeyKind, Session, Standing, Story};
use agent_trace_model::{End, Ending, Outcome, ProcessId, RunId, SessionId, Stream};
use agent_trace_wire::message::{MessageKind, member, messages, string};

const MS: u64 = 1_000_000;

/// A run of one session that is being described.
pub(super) struct Case {
    pub(super) story: Story,
    /// A millisecond goes by between two messages.
    now: u64,
}

impl Case {
    pub(super) fn stdio() -> Self {
        let session = Session {
            id: SessionId {
                process: ProcessId::new(1, [1; 10]),
                ordinal: 1,
            },
            server: "server".into(),
            client: "client".into(),
            transport: "stdio".into(),
            revision: None,
            command: Vec::new(),
            listen: None,
            upstream: None,
            key: None,
            user_agent: None,
            redacted: true,
            digested: false,
            started: 0,
            last: 0,
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
        };
        let story = Story {
            id: RunId::from_digest([1; 16]),
            aliases: Vec::new(),
            workspace: String::new(),
            project: None,
            task: None,
            sessions: vec![session],
            turns: Vec::new(),
            steps: Vec::new(),
        };
        Self { story, now: MS }
    }

    pub(super) fn http(key: KeyKind) -> Self {
        let mut case = Self::stdio();
        case.session().transport = "http".into();
        case.session().key = Some(key);
        case
    }

    /// A session that began as sessions of this revision do.
    pub(super) fn of(revision: &str) -> Self {
        let mut case = Self::stdio();
        case.session().revision = Some(revision.into());
        case.begin(revision);
        case
    }

    /// `initialize`, answered, and `notifications/initialized`.
    pub(super) fn begin(&mut self, revision: &str) {
        let params = format!(r#"{{"protocolVersion":"{revision}"}}"#);
        self.ask("0", "initialize", &params)
            .answer(&format!(r#"{{"protocolVersion":"{revision}"}}"#));
        self.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub(super) fn session(&mut self) -> &mut Session {
        &mut self.story.sessions[0]
    }

    pub(super) fn step(&mut self) -> &mut Step {
        self.story.steps.last_mut().unwrap()
    }

    /// Time goes by.
    pub(super) fn wait(&mut self, milliseconds: u64) -> &mut Self {
        self.now += milliseconds * MS;
        self
    }

    /// The client asks something, which stays unanswered.
    pub(super) fn ask(&mut self, id: &str, method: &str, params: &str) -> &mut Self {
        self.says(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
    }

    /// A client of 2026-07-28 asks something; `more` goes on with the parameters.
    pub(super) fn ask_modern(&mut self, id: &str, method: &str, more: &str) -> &mut Self {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        self.ask(id, method, &format!("{{{meta}{more}}}"))
    }

    /// The client sends a message.
    pub(super) fn says(&mut self, text: &str) -> &mut Self {
        self.sent(Stream::ClientToServer, text)
    }

    /// The server sends a message that answers nothing.
    pub(super) fn server_says(&mut self, text: &str) -> &mut Self {
        self.sent(Stream::ServerToClient, text)
    }

    /// Somebody sends what is no message.
    pub(super) fn stray(&mut self, from: Stream, text: &str) -> &mut Self {
        let mut message = self.message(text);
        message.framing = Framing::Stray;
        self.push(from, StepKind::Stray, message)
    }

    /// A result comes.
    pub(super) fn answer(&mut self, result: &str) -> &mut Self {
        let failed = member(result.as_bytes(), "isError") == Some(b"true");
        let outcome = if failed {
            Outcome::ToolError
        } else {
            Outcome::Ok
        };
        self.answered(&format!("\"result\":{result}"), outcome)
    }

    /// An error comes.
    pub(super) fn fail(&mut self, error: &str) -> &mut Self {
        self.answered(&format!("\"error\":{error}"), Outcome::Error)
    }

    fn answered(&mut self, member: &str, outcome: Outcome) -> &mut Self {
        let id = self.step().id.clone().unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},{member}}}"#);
        let answer = self.message(&text);
        let step = self.step();
        step.duration = Some(answer.wall - step.wall);
        step.response = Some(Message {
            exchange: step.exchange,
            framing: step.request.as_ref().unwrap().framing,
            ..answer
        });
        if !step.cancel_sent {
            step.outcome = outcome;
        }
        self
    }

    /// The last step went through an HTTP exchange of its own with these heads.
    pub(super) fn through(
        &mut self,
        method: &str,
        sent: &[(&str, &str)],
        status: u16,
        back: &[(&str, &str)],
    ) -> &mut Self {
        let exchange = self.exchange(method, sent, status, back);
        let step = self.step();
        step.exchange = exchange;
        step.status = Some(status);
        for message in [&mut step.request, &mut step.response]
            .into_iter()
            .flatten()
        {
            message.exchange = exchange;
            if message.framing == Framing::Line {
                message.framing = Framing::Body;
            }
        }
        self
    }

    /// An HTTP exchange.
    pub(super) fn exchange(
        &mut self,
        method: &str,
        sent: &[(&str, &str)],
        status: u16,
        back: &[(&str, &str)],
    ) -> u32 {
        let owned = |headers: &[(&str, &str)]| {
            let owned = headers
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            owned.collect::<Vec<_>>()
        };
        let number = u32::try_from(self.session().exchanges.len()).unwrap() + 1;
        let exchange = Exchange {
            number,
            request: Some(Request {
                method: method.into(),
                headers: owned(sent),
                ..Request::default()
            }),
            response: Some(Response {
                status,
                headers: owned(back),
                ..Response::default()
            }),
            ..Exchange::default()
        };
        self.session().exchanges.insert(number, exchange);
        number
    }

    fn sent(&mut self, from: Stream, text: &str) -> &mut Self {
        let message = self.message(text);
        let parsed = messages(text.as_bytes()).unwrap().next().unwrap();
        let kind = match parsed.kind {
            MessageKind::Request => StepKind::Request,
            MessageKind::Notification => StepKind::Notification,
            MessageKind::Response | MessageKind::Error => StepKind::Answer,
            MessageKind::Other => StepKind::Other,
        };
        let method = parsed.method.as_deref().map(String::from);
        let params = parsed.params.unwrap_or_default();
        let target = ["name", "uri"].iter().find_map(|name| member(params, name));
        let target = target.and_then(string).map(String::from);
        let id = parsed.id.map(|id| String::from_utf8_lossy(id).into_owned());
        self.push(from, kind, message);
        let step = self.step();
        step.method = method;
        step.target = target;
        step.id = id;
        self
    }

    fn push(&mut self, from: Stream, kind: StepKind, request: Message) -> &mut Self {
        self.story.steps.push(Step {
            number: self.story.steps.len() + 1,
            session: 0,
            turn: None,
            kind,
            from,
            method: None,
            target: None,
            id: None,
            wall: request.wall,
            request: Some(request),
            response: None,
            exchange: 0,
            status: None,
            finish: None,
            rounds: 1,
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

    fn message(&mut self, text: &str) -> Message {
        self.now += MS;
        Message {
            text: text.as_bytes().to_vec(),
            length: text.len() as u64 + 1,
            wall: self.now,
            frame: self.now / MS,
            delivered: true,
            ..Message::default()
        }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        run(&self.story, Settings::default())
    }

    /// The rules that found something, in the order of the steps.
    pub(super) fn codes(&self) -> Vec<&'static str> {
        self.findings().iter().map(|finding| finding.code).collect()
    }

    /// Nothing is wrong.
    #[track_caller]
    pub(super) fn is_fine(&self) {
        assert_eq!(self.findings(), [], "of a run that is fine");
    }
}
