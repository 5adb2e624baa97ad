//! What a server is asked, in each revision of the protocol.

use super::message::{Heard, INITIALIZED, Request};
use super::{Answer, Fault, Limits, Listed};
use agent_trace_wire::message::{member, member_at, messages};
use std::time::Duration;

/// A server that can be talked to.
pub(super) trait Server {
    /// Asks, and waits for the answer.
    async fn ask(&mut self, request: &Request, heard: &mut Heard) -> Result<Vec<u8>, Fault>;

    /// Tells something that is not answered.
    async fn tell(&mut self, text: &[u8]) -> Result<(), Fault>;

    /// Goes on in an older manner, if there is one that was not tried.
    async fn fall_back(&mut self, heard: &mut Heard) -> Result<bool, Fault>;

    /// The last line of its standard error.
    fn said(&self) -> String {
        String::new()
    }
}

/// What is listed: the capability, and the methods that it has.
const LISTS: [(&str, &[&str]); 3] = [
    ("tools", &["tools/list"]),
    ("prompts", &["prompts/list"]),
    ("resources", &["resources/list", "resources/templates/list"]),
];
/// The longest cursor that is sent back, in bytes.
const LONGEST_CURSOR: usize = 8 << 10;
/// How long is waited for an answer that most servers do not give.
const BRIEFLY: Duration = Duration::from_secs(3);

/// Asks for everything.
pub(super) async fn all(
    server: &mut impl Server,
    limits: &Limits,
    listed: &mut Listed,
) -> Result<(), Fault> {
    let mut talk = Talk {
        server,
        limits,
        heard: Heard::new(limits),
        listed,
        next: 0,
        modern: false,
    };
    let hello = talk.begin().await?;
    let result = member(&hello, "result").unwrap_or_default();
    let capabilities = member(result, "capabilities").unwrap_or_default().to_vec();
    for (capability, methods) in LISTS {
        if member(&capabilities, capability).is_none() {
            continue;
        }
        for method in methods {
            talk.list(method).await?;
        }
    }
    // Some add tools once they know the client.
    if talk.heard.tools_changed {
        talk.list("tools/list").await?;
    }
    if !talk.modern {
        // Those of both eras may say something else here.
        talk.modern = true;
        let asking = talk.ask("server/discover", None);
        if let Ok(Ok(answer)) = tokio::time::timeout(BRIEFLY, asking).await {
            talk.keep("server/discover", answer);
        }
    }
    Ok(())
}

struct Talk<'a, S> {
    server: &'a mut S,
    limits: &'a Limits,
    heard: Heard,
    listed: &'a mut Listed,
    next: u64,
    modern: bool,
}

impl<S: Server> Talk<'_, S> {
    /// The answer in which the server says what it is. `initialize` comes first: a server that
    /// knows both eras takes it, and most know no other.
    async fn begin(&mut self) -> Result<Vec<u8>, Fault> {
        let first = match self.hello("initialize").await {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        if !matches!(first, Fault::Refused { .. } | Fault::Status { .. }) {
            return Err(first);
        }
        self.modern = true;
        match self.hello("server/discover").await {
            Err(Fault::Refused { .. } | Fault::Status { .. }) => {}
            answered => return answered,
        }
        self.modern = false;
        match self.server.fall_back(&mut self.heard).await {
            Ok(true) => self.hello("initialize").await,
            Ok(false) | Err(_) => Err(first),
        }
    }

    async fn hello(&mut self, method: &'static str) -> Result<Vec<u8>, Fault> {
        let answer = self.ask(method, None).await?;
        if member(&answer, "result").is_none() {
            // Errors are texts of the server too.
            self.keep(method, answer);
            return Err(Fault::Refused { method });
        }
        self.keep(method, answer.clone());
        if !self.modern {
            self.server.tell(INITIALIZED).await?;
        }
        Ok(answer)
    }

    /// All pages of a list.
    async fn list(&mut self, method: &'static str) -> Result<(), Fault> {
        let mut cursor: Option<Vec<u8>> = None;
        for _ in 0..self.limits.pages {
            let answer = self.ask(method, cursor.as_deref()).await?;
            let next = member_at(&answer, &["result", "nextCursor"]).map(<[u8]>::to_vec);
            let refused = member(&answer, "result").is_none();
            self.keep(method, answer);
            if refused {
                self.listed.faults.push(Fault::Refused { method });
                return Ok(());
            }
            match next {
                Some(next) if next.first() == Some(&b'"') => {
                    // One that it gave before would lead round and round.
                    if next.len() > LONGEST_CURSOR || cursor.as_ref() == Some(&next) {
                        self.listed.faults.push(Fault::Refused { method });
                        return Ok(());
                    }
                    cursor = Some(next);
                }
                _ => return Ok(()),
            }
        }
        let limit = format!("{} pages", self.limits.pages);
        self.listed.faults.push(Fault::TooMuch { method, limit });
        Ok(())
    }

    async fn ask(&mut self, method: &'static str, cursor: Option<&[u8]>) -> Result<Vec<u8>, Fault> {
        self.next += 1;
        let request = Request::new(self.next, method, cursor, self.modern);
        let asking = self.server.ask(&request, &mut self.heard);
        let answered = tokio::time::timeout(self.limits.answer, asking).await;
        match answered {
            Ok(answer) => answer,
            Err(_) => Err(Fault::TimedOut {
                method,
                seconds: self.limits.answer.as_secs(),
                said: self.server.said(),
            }),
        }
    }

    fn keep(&mut self, method: &'static str, text: Vec<u8>) {
        debug_assert!(messages(&text).is_ok());
        self.listed.answers.push(Answer { method, text });
    }
}
