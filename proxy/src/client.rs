//! A raw client: asks a server for all that it lists and keeps the answers as they were sent,
//! unknown members too. For those who look at a server, not for those who use it.
//!
//! - [`Client`] starts or calls a server and ends it
//! - `talk`: what is asked, in each revision of the protocol
//! - `message`: what is written, and what is heard meanwhile
//! - `process`: a server behind pipes; `web`: one behind a URL, `stream`: in the manner of 2024
//!
//! The server is taken to be hostile: time, bytes, pages and what it may ask are bounded, and
//! when its time is over it goes with all that it started.

mod message;
#[cfg(unix)]
mod process;
mod stream;
mod talk;
mod web;

use crate::os::group::Guardian;
use crate::stdio::StartError;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A server that can be asked.
#[derive(Clone, Debug)]
pub enum Target {
    /// One to start.
    Command(Command),
    /// One to call.
    Url(Url),
}

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// Program and arguments. No shell is involved.
    pub argv: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder to start it in; ours if there is none.
    pub folder: Option<PathBuf>,
}

/// Where a server is called.
#[derive(Clone, Default)]
pub struct Url {
    /// With `http:` or `https:`.
    pub url: String,
    /// Headers that go with each request, such as `Authorization`.
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Url {
    /// Without values that may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Url")
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// What a server may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For everything. Some take twenty seconds to start.
    pub time: Duration,
    /// Between a request and its answer.
    pub answer: Duration,
    /// For one message, in bytes.
    pub message: usize,
    /// For all messages and what is between them, in bytes.
    pub bytes: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Requests that it may make, each of which is refused.
    pub requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            answer: Duration::from_secs(30),
            message: 16 << 20,
            bytes: 64 << 20,
            pages: 100,
            requests: 100,
        }
    }
}

/// What a server answered.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// Its answers, in their order.
    pub answers: Vec<Answer>,
    /// What it did not answer, and why.
    pub faults: Vec<Fault>,
}

/// One answer, a JSON-RPC message with `result` or `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was asked, such as `tools/list`.
    pub method: &'static str,
    /// The message as it was sent.
    pub text: Vec<u8>,
}

/// Why a server was not asked all.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Its command could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// Its URL cannot be used.
    #[error("not a URL of a server: {0}")]
    Url(String),
    /// It cannot be reached.
    #[error("cannot connect: {0}")]
    NotConnected(String),
    /// It ended, or closed the connection.
    #[error("it ended before it answered {method}{}", after(.said))]
    Ended {
        /// What was asked last.
        method: &'static str,
        /// The last line that it wrote to standard error.
        said: String,
    },
    /// It answered with a status that is no success.
    #[error("it answered {method} with status {status}")]
    Status {
        /// What was asked.
        method: &'static str,
        /// The status of HTTP.
        status: u16,
    },
    /// It answered with an error.
    #[error("it answered {method} with an error")]
    Refused {
        /// What was asked.
        method: &'static str,
    },
    /// It took too long.
    #[error("it did not answer {method} within {seconds} s{}", after(.said))]
    TimedOut {
        /// What was asked.
        method: &'static str,
        /// The limit.
        seconds: u64,
        /// The last line that it wrote to standard error.
        said: String,
    },
    /// A limit was reached; the rest was not read.
    #[error("it sent more than {limit} in answer to {method}")]
    TooMuch {
        /// What was asked.
        method: &'static str,
        /// The limit in words.
        limit: String,
    },
    /// This cannot be done on this system.
    #[error("servers cannot be started on this system yet")]
    Unsupported,
}

/// What it said, after why it was not asked all.
fn after(line: &str) -> String {
    match line {
        "" => String::new(),
        line => format!("; it said: {line}"),
    }
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Self {
        Self::NotStarted(error.to_string())
    }
}

/// Asks servers, one after the other.
#[derive(Debug)]
pub struct Client {
    #[cfg_attr(not(unix), expect(dead_code, reason = "nothing is started there"))]
    guardian: Guardian,
    limits: Limits,
}

impl Client {
    /// A client that asks within these limits.
    ///
    /// Must be called while this process has a single thread: what ends a server when we are
    /// killed is a fork. It must start no other processes while it has this.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let guardian = Guardian::fork().unwrap_or_else(|error| {
            tracing::warn!("no guardian: {error}");
            Guardian::absent()
        });
        Self { guardian, limits }
    }

    /// Asks a server for all that it lists. A server that was started is gone afterwards.
    ///
    /// Within a runtime of one thread, from the main thread.
    pub async fn list(&self, target: &Target) -> Listed {
        let mut listed = Listed::default();
        match target {
            #[cfg(unix)]
            Target::Command(command) => {
                match process::Process::start(command, &self.guardian, &self.limits) {
                    Ok(mut server) => {
                        self.talk(&mut server, &mut listed).await;
                        server.end().await;
                    }
                    Err(fault) => listed.faults.push(fault),
                }
            }
            #[cfg(not(unix))]
            Target::Command(_) => listed.faults.push(Fault::Unsupported),
            Target::Url(url) => match web::Web::new(url, &self.limits) {
                Ok(mut server) => {
                    self.talk(&mut server, &mut listed).await;
                    server.end().await;
                }
                Err(fault) => listed.faults.push(fault),
            },
        }
        listed
    }

    async fn talk(&self, server: &mut impl talk::Server, listed: &mut Listed) {
        let talking = talk::all(server, &self.limits, listed);
        // What was answered until then is kept.
        let ended = tokio::time::timeout(self.limits.time, talking).await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => listed.faults.push(fault),
            Err(_) => listed.faults.push(Fault::TimedOut {
                method: "all",
                seconds: self.limits.time.as_secs(),
                said: String::new(),
            }),
        }
    }
}
