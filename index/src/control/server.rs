//! The owner's side of the control socket.

use crate::local::Local;
use crate::protocol::{Answer, MOST_ANSWERED, MOST_ASKED, Query, Reply, Request, VERSION, Version};
use crate::runs::Runs;
use serde_json::value::RawValue;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// How long who connected may take to ask and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many are listened to at once.
const AT_ONCE: usize = 64;
/// How many questions are answered at once. More would not be answered sooner, and would keep
/// a daemon's relays from their share.
const ANSWERED_AT_ONCE: usize = 2;

/// What a line asks for.
#[derive(Debug)]
pub enum Asked {
    /// Something that only a daemon does.
    Command(String),
    /// A question about what was recorded.
    Query(Query),
}

/// Who answers lines.
pub trait Handler: Send + Sync + 'static {
    /// The line that answers, without its end.
    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;

    /// Which version of the program this is.
    fn program(&self) -> &str;
}

/// Answers whoever connects, for ever.
pub async fn serve(listener: UnixListener, handler: Arc<dyn Handler>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let handler = Arc::clone(&handler);
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, &*handler).await {
                        tracing::debug!("control socket: {error}");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("control socket: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: UnixStream, handler: &dyn Handler) -> io::Result<()> {
    // The socket's mode says the same; this holds if somebody changed that.
    super::client::check(&stream)?;
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(reader.take(MOST_ASKED));
    tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await??;
    let mut text = match parse(&line, handler.program()) {
        Ok(asked) => handler.answer(asked).await,
        Err(why) => refusal(handler.program(), why),
    };
    text.push('\n');
    tokio::time::timeout(PATIENCE, writer.write_all(text.as_bytes())).await?
}

/// What a line asks for, or why that is not known.
fn parse(line: &str, program: &str) -> Result<Asked, String> {
    let malformed = |error: serde_json::Error| format!("not a request: {error}");
    // The rest may look different in another version.
    let Version { version, .. } = serde_json::from_str(line).map_err(malformed)?;
    if version != VERSION {
        return Err(format!(
            "this process (agent-trace {program}) speaks version {VERSION} of the control \
             protocol, not {version}"
        ));
    }
    let request: Request = serde_json::from_str(line).map_err(malformed)?;
    match (request.command, request.query) {
        (Some(command), None) => Ok(Asked::Command(command)),
        (None, Some(query)) => match serde_json::from_str(query.get()) {
            Ok(query) => Ok(Asked::Query(query)),
            Err(error) => Err(format!(
                "this process (agent-trace {program}) does not know such a question: {error}"
            )),
        },
        _ => Err("not a request: either a command or a query is needed".into()),
    }
}

fn answer(program: &str, reply: Option<Box<RawValue>>, error: Option<String>) -> String {
    let answer = Answer {
        version: VERSION,
        program: program.to_owned(),
        reply,
        error,
    };
    // Strings and a value that is JSON already.
    serde_json::to_string(&answer).unwrap_or_default()
}

/// The line that says why there is no answer.
#[must_use]
pub fn refusal(program: &str, why: String) -> String {
    answer(program, None, Some(why))
}

/// Answers questions from an index that is open here.
#[derive(Debug)]
pub struct Answering {
    local: Local,
    places: Semaphore,
}

impl Answering {
    /// Answers from this index.
    #[must_use]
    pub fn new(local: Local) -> Self {
        Self {
            local,
            places: Semaphore::new(ANSWERED_AT_ONCE),
        }
    }

    /// The index.
    #[must_use]
    pub fn local(&self) -> &Local {
        &self.local
    }

    /// The line that answers a question.
    pub async fn line(&self, query: Query) -> String {
        let program = self.local.program();
        let place = self.places.acquire().await;
        let reply = self.local.ask(query).await;
        drop(place);
        match reply
            .map_err(|error| in_full(&error))
            .and_then(|reply| written(&reply))
        {
            Ok(reply) => answer(program, Some(reply), None),
            Err(why) => refusal(program, why),
        }
    }
}

fn written(reply: &Reply) -> Result<Box<RawValue>, String> {
    let reply = serde_json::value::to_raw_value(reply).map_err(|error| error.to_string())?;
    let size = reply.get().len() as u64;
    if size + 1024 > MOST_ANSWERED {
        return Err(format!(
            "the answer has {size} bytes, which is too much to send: ask for less at once"
        ));
    }
    Ok(reply)
}

fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Who owns the index and is no daemon.
impl Handler for Answering {
    fn answer(&self, asked: Asked) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async move {
            match asked {
                Asked::Query(query) => self.line(query).await,
                Asked::Command(_) => {
                    let why = "this process has the index and is no daemon";
                    refusal(self.local.program(), why.into())
                }
            }
        })
    }

    fn program(&self) -> &str {
        self.local.program()
    }
}
