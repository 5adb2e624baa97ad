//! The client: one request at a time, a stopwatch, and an account of every byte.

use crate::Result;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}
"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// How many bytes there were, and a hash of them, whatever pieces they came in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) bytes: u64,
    hash: DefaultHasher,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.write(bytes);
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.hash.finish() == other.hash.finish()
    }
}

/// All that a client sent and received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: Tally,
    pub(crate) received: Tally,
}

/// A client with its server, or with what stands before it.
pub(crate) struct Client {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    buffer: Vec<u8>,
    traffic: Traffic,
}

impl Client {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or("no pipes")?;
        Ok(Self {
            child,
            to,
            from,
            buffer: vec![0; 64 << 10],
            traffic: Traffic::default(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gets connected, as MCP clients do.
    pub(crate) fn initialize(&mut self) -> Result<()> {
        self.ask(INITIALIZE)?;
        self.to.write_all(INITIALIZED)?;
        self.traffic.sent.add(INITIALIZED);
        Ok(())
    }

    /// Sends a request, a line, and waits for the answer. Returns how long that took in
    /// microseconds.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Result<f64> {
        let started = Instant::now();
        self.to.write_all(request)?;
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            let n = self.from.read(&mut self.buffer[length..])?;
            if n == 0 {
                return Err("the server's output ended".into());
            }
            length += n;
            // Nothing else is on its way, so the line ends where the bytes end.
            if self.buffer[length - 1] == b'\n' {
                break;
            }
        }
        let took = started.elapsed().as_secs_f64() * 1e6;
        let answer = &self.buffer[..length];
        self.traffic.sent.add(request);
        self.traffic.received.add(answer);
        let beginning = String::from_utf8_lossy(&answer[..length.min(100)]);
        if beginning.contains("\"result\"") {
            Ok(took)
        } else {
            Err(format!("no result: {beginning}").into())
        }
    }

    /// Sends these pieces, a write each, to a mirror as fast as it takes them, and receives
    /// them all. Bytes are counted, not hashed: that would hold the flood up.
    pub(crate) fn flood(&mut self, pieces: &[&[u8]]) -> Result<()> {
        let total: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        let Self {
            to, from, buffer, ..
        } = self;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || -> std::io::Result<()> {
                for piece in pieces {
                    to.write_all(piece)?;
                }
                Ok(())
            });
            let mut received = 0;
            while received < total {
                let n = from.read(buffer)?;
                if n == 0 {
                    return Err("the mirror's output ended".into());
                }
                received += n as u64;
            }
            writer.join().map_err(|_| "the writer failed")??;
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
        self.traffic.sent.bytes += total;
        self.traffic.received.bytes += total;
        Ok(())
    }

    /// Closes the server's input, and waits until everything has ended.
    pub(crate) fn close(self) -> Result<Traffic> {
        let Self {
            mut child,
            to,
            mut from,
            mut buffer,
            mut traffic,
        } = self;
        drop(to);
        loop {
            let n = from.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            traffic.received.add(&buffer[..n]);
        }
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("the server ended with {status}").into());
        }
        Ok(traffic)
    }
}

/// A ping with this id.
pub(crate) fn ping(id: usize) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").into_bytes()
}

/// A call of a tool with these arguments.
pub(crate) fn call(id: usize, tool: &str, arguments: &str) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\
         \"params\":{{\"name\":\"{tool}\",\"arguments\":{{{arguments}}}}}}}\n"
    )
    .into_bytes()
}
