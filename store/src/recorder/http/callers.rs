//! Who calls: the address, what the client says of itself, and which process of this machine
//! it is, as far as the system tells.

use crate::process::Process;
use crate::recorder::ordinal::ByOrdinal;
use agent_trace_model::Caller;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
mod owner;

/// More connections without an open exchange are forgotten.
const MOST_CONNECTIONS: usize = 1024;
/// The longest user agent that is kept.
const LONGEST_AGENT: usize = 1024;

/// Of longer credentials a hash stands for them.
const LONGEST_SECRET: usize = 256;

/// Who calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Who {
    /// Of all but the process: source, address, user agent, credentials.
    pub(super) print: u128,
    /// The client's process.
    pub(super) process: Option<Process>,
    pub(super) agent: Option<Box<[u8]>>,
    /// What a keyed fingerprint is made of. It never leaves the memory.
    pub(super) secret: Box<[u8]>,
    /// Where in it the credentials begin.
    credentials: usize,
}

impl Who {
    /// Somebody whose request was lost.
    pub(super) fn unknown(source: u32) -> Self {
        Self {
            print: print(&[&source.to_le_bytes()]),
            ..Self::default()
        }
    }
}

/// The connections of a process that exchanges are open on, and some others.
#[derive(Default)]
pub(super) struct Connections {
    known: ByOrdinal<Connection>,
    /// Those whose requests were lost, one for each source.
    nobody: HashMap<u32, Rc<Who>>,
    #[cfg(target_os = "linux")]
    owners: owner::Owners,
}

struct Connection {
    process: Option<Process>,
    /// Who called last on it, and through which source.
    last: Option<(u32, Caller, Rc<Who>)>,
    exchanges: u32,
}

impl Connections {
    /// An exchange begins. Says who it is of.
    pub(super) fn begin(
        &mut self,
        source: u32,
        caller: Caller,
        agent: Option<&[u8]>,
        credentials: Option<&[u8]>,
    ) -> Rc<Who> {
        if self.known.len() >= MOST_CONNECTIONS && !self.known.contains_key(&caller.connection) {
            self.known.retain(|_, connection| connection.exchanges > 0);
        }
        let connection = match self.known.entry(caller.connection) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(Connection {
                #[cfg(target_os = "linux")]
                process: self.owners.find(caller),
                #[cfg(not(target_os = "linux"))]
                process: None,
                last: None,
                exchanges: 0,
            }),
        };
        connection.exchanges += 1;
        let agent = agent.map(|agent| &agent[..agent.len().min(LONGEST_AGENT)]);
        let credentials = credentials.unwrap_or_default();
        let hash;
        let credentials = if credentials.len() > LONGEST_SECRET {
            hash = blake3::hash(credentials);
            hash.as_bytes()
        } else {
            credentials
        };
        // A client says the same on every request.
        if let Some((through, by, who)) = &connection.last
            && (*through, *by) == (source, caller)
            && who.agent.as_deref() == agent
            && who.secret[who.credentials..] == *credentials
        {
            return Rc::clone(who);
        }
        let through = source;
        let ip = caller.peer.ip().to_string();
        let parts = [ip.as_bytes(), agent.unwrap_or_default(), credentials];
        let source = source.to_le_bytes();
        let process = connection.process.clone();
        let pid = process.as_ref().map_or(0, |process| process.pid);
        let [ip, agent_part, credentials] = parts;
        let secret = [
            ip,
            b"\0",
            &pid.to_le_bytes(),
            agent_part,
            b"\0",
            credentials,
        ]
        .concat();
        let who = Rc::new(Who {
            print: print(&[&source, ip, agent_part, credentials]),
            credentials: secret.len() - credentials.len(),
            secret: secret.into(),
            process,
            agent: agent.map(Into::into),
        });
        connection.last = Some((through, caller, Rc::clone(&who)));
        who
    }

    /// Who calls where that is not known.
    pub(super) fn nobody(&mut self, source: u32) -> Rc<Who> {
        let unknown = || Rc::new(Who::unknown(source));
        Rc::clone(self.nobody.entry(source).or_insert_with(unknown))
    }

    /// An exchange is over.
    pub(super) fn end(&mut self, connection: u32) {
        if let Some(connection) = self.known.get_mut(&connection) {
            connection.exchanges = connection.exchanges.saturating_sub(1);
        }
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.known.len()
    }
}

/// A hash of some parts for this process alone, wide enough to take for the parts themselves.
pub(super) fn print(parts: &[&[u8]]) -> u128 {
    static STATES: OnceLock<[RandomState; 2]> = OnceLock::new();
    let states = STATES.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let [high, low] = states
        .each_ref()
        .map(|state| u128::from(state.hash_one(parts)));
    high << 64 | low
}
