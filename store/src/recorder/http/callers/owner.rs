//! The process at the other end of a connection within this machine (Linux).
//!
//! `/proc/net/tcp` names the socket of a pair of addresses by its inode, and the open files of
//! a process show whose it is. Other users' processes show nothing, and are not found.

use crate::process::Process;
use agent_trace_model::Caller;
use std::collections::VecDeque;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Processes that called before, and are looked at first.
const MOST_KNOWN: usize = 16;
/// So many connections may be looked up in a second: it costs up to a millisecond each.
const PER_SECOND: u32 = 20;
/// The most bytes of a table of sockets that are read.
const MOST_TABLE: u64 = 4 << 20;

#[derive(Default)]
pub(super) struct Owners {
    known: VecDeque<u32>,
    /// The second in progress, and look-ups in it.
    second: Option<(Instant, u32)>,
}

impl Owners {
    /// The process that made this connection; none where that is not known, or not in time.
    pub(super) fn find(&mut self, caller: Caller) -> Option<Process> {
        let local = |address: SocketAddr| address.ip().to_canonical().is_loopback();
        if !local(caller.peer) && caller.peer.ip() != caller.local.ip() || !self.is_time() {
            return None;
        }
        let inode = inode(caller.peer, caller.local)?;
        let link = format!("socket:[{inode}]");
        let pid = match self.known.iter().position(|&pid| has(pid, &link)) {
            Some(at) => self.known.remove(at)?,
            None => processes().find(|&pid| has(pid, &link))?,
        };
        self.known.push_front(pid);
        self.known.truncate(MOST_KNOWN);
        Some(Process::of(pid))
    }

    fn is_time(&mut self) -> bool {
        let now = Instant::now();
        let (began, count) = self.second.get_or_insert((now, 0));
        if now.duration_since(*began) >= Duration::from_secs(1) {
            (*began, *count) = (now, 0);
        }
        *count += 1;
        *count <= PER_SECOND
    }
}

/// The inode of the socket with these two ends.
fn inode(local: SocketAddr, remote: SocketAddr) -> Option<u64> {
    [("/proc/net/tcp", false), ("/proc/net/tcp6", true)]
        .into_iter()
        .filter_map(|(table, wide)| {
            let (local, remote) = (spelled(local, wide)?, spelled(remote, wide)?);
            let table = BufReader::new(fs::File::open(table).ok()?.take(MOST_TABLE));
            table.lines().map_while(Result::ok).find_map(|line| {
                let mut words = line.split_ascii_whitespace().skip(1);
                let same = words.next()? == local && words.next()? == remote;
                let inode = words.nth(6)?.parse().ok()?;
                (same && inode != 0).then_some(inode)
            })
        })
        .next()
}

/// An address as the tables spell it: words of 32 bits in the machine's byte order.
fn spelled(address: SocketAddr, wide: bool) -> Option<String> {
    let mut text = String::new();
    let mut word = |bytes: [u8; 4]| write!(text, "{:08X}", u32::from_ne_bytes(bytes)).ok();
    match (address.ip().to_canonical(), wide) {
        (IpAddr::V4(ip), false) => word(ip.octets())?,
        (IpAddr::V4(ip), true) => {
            for bytes in ip.to_ipv6_mapped().octets().as_chunks::<4>().0 {
                word(*bytes)?;
            }
        }
        (IpAddr::V6(ip), true) => {
            for bytes in ip.octets().as_chunks::<4>().0 {
                word(*bytes)?;
            }
        }
        (IpAddr::V6(_), false) => return None,
    }
    write!(text, ":{:04X}", address.port()).ok()?;
    Some(text)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether an open file of the process is this one.
fn has(pid: u32, link: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    files
        .into_iter()
        .flatten()
        .flatten()
        .any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_client_of_a_connection_is_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                println!("skipped: the_client_of_a_connection_is_found: no {address} here");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let caller = Caller {
                connection: 1,
                peer,
                local: server.local_addr().unwrap(),
            };
            let mut owners = Owners::default();
            for _ in 0..2 {
                let found = owners.find(caller).unwrap();
                assert_eq!(found, Process::current());
            }
            drop(client);
            let elsewhere = Caller {
                peer: "192.0.2.1:9".parse().unwrap(),
                ..caller
            };
            assert_eq!(owners.find(elsewhere), None);
            for _ in 0..PER_SECOND {
                owners.find(caller);
            }
            assert!(!owners.is_time());
        }
    }
}
