//! The relay, started by a test.

use super::super::session::{Ended, Session};
use super::super::{Home, Process, wait_for};
use super::{Message, Wire};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::net::SocketAddr;
use std::process::Stdio;

/// A relay before its start.
pub(crate) struct Relaying<'a> {
    home: &'a Home,
    to: String,
    options: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Home {
    /// Begins to describe a relay over HTTP to this URL.
    pub(crate) fn relay(&self, to: impl Display) -> Relaying<'_> {
        Relaying {
            home: self,
            to: to.to_string(),
            options: Vec::new(),
            env: Vec::new(),
        }
    }
}

impl Relaying<'_> {
    /// An option of `relay`.
    pub(crate) fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push(option.as_ref().into());
        self
    }

    pub(crate) fn unredacted(self) -> Self {
        self.option("--no-redact")
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts it on a free port and waits until it says where it listens.
    #[track_caller]
    pub(crate) fn start(self) -> Relay {
        let mut command = self.home.program();
        command.args(["relay", "--listen", "127.0.0.1:0", "--to", &self.to]);
        command.args(self.options).envs(self.env);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let session = Session::of(&mut command);
        let address = wait_for("the relay to say where it listens", || {
            let said = session.errors();
            assert!(!session.has_ended(), "the relay does not start: {said}");
            listens(&said, &self.to)
        });
        Relay { session, address }
    }
}

/// The first address with a port in whole lines of what a relay says, but that of its server.
fn listens(said: &str, to: &str) -> Option<SocketAddr> {
    let whole = &said[..=said.rfind('\n')?];
    let words = whole.split(|letter: char| letter.is_whitespace() || "/,()\"'`".contains(letter));
    words
        .map(|word| word.trim_end_matches(['.', ':', ';']))
        .filter(|word| !to.contains(word) && !word.is_empty())
        .find_map(|word| word.parse().ok())
}

/// A running `agent-trace relay`. One that is dropped is killed.
pub(crate) struct Relay {
    pub(crate) session: Session,
    address: SocketAddr,
}

impl Relay {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn process(&self) -> Process {
        self.session.process
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::to(self.address)
    }

    /// Sends a request over a connection of its own and reads the answer.
    #[track_caller]
    pub(crate) fn ask(&self, request: impl AsRef<[u8]>) -> Message {
        let mut client = self.connect();
        client.send(request);
        client.read_message()
    }

    /// Asks it to end, and waits for that.
    #[track_caller]
    pub(crate) fn stop(self) -> Ended {
        self.session.signal("TERM");
        self.session.wait()
    }
}
