//! The client: one request at a time on one connection, a stopwatch, and an account of every
//! message.

use crate::Result;
use crate::message::{Body, Chunks, Head};
use crate::nanoseconds;
use crate::tally::Traffic;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    address: SocketAddr,
    /// What comes after the request line of a POST, up to the length of its body.
    headers: String,
    pub(crate) session: String,
    out: Vec<u8>,
    buffer: Vec<u8>,
    pub(crate) traffic: Traffic,
}

impl Client {
    /// Connects, and gets an MCP session.
    pub(crate) fn start(address: SocketAddr) -> Result<Self> {
        let mut client = Self {
            stream: connect(address)?,
            address,
            headers: headers(address, ""),
            session: String::new(),
            out: Vec::new(),
            buffer: vec![0; 64 << 10],
            traffic: Traffic::default(),
        };
        client.ask(INITIALIZE)?;
        let head = Head::parse(&client.buffer)?.ok_or("no head")?;
        client.session = head.session.ok_or("no session")?.to_owned();
        client.headers = headers(address, &client.session);
        client.ask(INITIALIZED)?;
        Ok(client)
    }

    /// Sends a message and waits for the answer. Returns how long that took in microseconds.
    pub(crate) fn ask(&mut self, message: &[u8]) -> Result<f64> {
        self.out.clear();
        post(&mut self.out, &self.headers, message);
        let started = Instant::now();
        self.stream.write_all(&self.out)?;
        let mut length = 0;
        let body = loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            let n = self.stream.read(&mut self.buffer[length..])?;
            if n == 0 {
                return Err("the connection ended".into());
            }
            length += n;
            if let Some(head) = Head::parse(&self.buffer[..length])? {
                let Body::Length(body) = head.body else {
                    return Err("a chunked answer".into());
                };
                if length >= head.length + body {
                    break head.length..head.length + body;
                }
            }
        };
        let took = started.elapsed().as_secs_f64() * 1e6;
        account(&mut self.traffic, message, &self.buffer[body])?;
        Ok(took)
    }

    /// Receives an event stream to its end, on a connection of its own. Returns how long
    /// each event took from the server to here, in microseconds.
    pub(crate) fn events(&mut self, count: usize, gap: Duration) -> Result<Vec<f64>> {
        let mut stream = connect(self.address)?;
        stream.write_all(get(self.address, &self.session, count, gap, false).as_bytes())?;
        let mut stream_events = Events::default();
        let mut took = Vec::with_capacity(count);
        loop {
            let n = stream.read(&mut self.buffer)?;
            let now = nanoseconds();
            if n == 0 {
                return Err("the event stream broke".into());
            }
            let ended = stream_events.take(&self.buffer[..n], &mut self.traffic, |sent| {
                took.push(now.saturating_sub(sent) as f64 / 1e3);
            })?;
            if ended {
                break;
            }
        }
        if took.len() == count {
            Ok(took)
        } else {
            Err(format!("{} of {count} events", took.len()).into())
        }
    }
}

/// Connects as soon as somebody listens there, but does not wait for ever.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(30)))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(format!("{address}: {error}").into()),
        }
    }
}

/// The headers that an MCP client sends, up to the length of the body.
pub(crate) fn headers(address: SocketAddr, session: &str) -> String {
    let mut headers = format!(
        "Host: {address}\r\nUser-Agent: bench/1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n"
    );
    if !session.is_empty() {
        headers += &format!("MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n");
    }
    headers
}

/// Appends a POST of this message.
pub(crate) fn post(out: &mut Vec<u8>, headers: &str, message: &[u8]) {
    out.extend_from_slice(b"POST /mcp HTTP/1.1\r\n");
    out.extend_from_slice(headers.as_bytes());
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes());
    out.extend_from_slice(message);
}

/// A request for an event stream.
pub(crate) fn get(
    address: SocketAddr,
    session: &str,
    count: usize,
    gap: Duration,
    stay: bool,
) -> String {
    let gap = gap.as_micros();
    let stay = if stay { "&stay" } else { "" };
    format!(
        "GET /mcp?events={count}&gap={gap}{stay} HTTP/1.1\r\nHost: {address}\r\n\
         User-Agent: bench/1\r\nAccept: text/event-stream\r\n\
         MCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: {session}\r\n\r\n"
    )
}

/// Counts an exchange, and looks whether its answer is one.
pub(crate) fn account(traffic: &mut Traffic, message: &[u8], answer: &[u8]) -> Result<()> {
    traffic.exchanges += 1;
    traffic.sent.add(message);
    if answer.is_empty() {
        return Ok(());
    }
    traffic.received.add(answer);
    let beginning = &answer[..answer.len().min(80)];
    if beginning.windows(8).any(|word| word == b"\"result\"") {
        Ok(())
    } else {
        Err(format!("no result: {}", String::from_utf8_lossy(beginning)).into())
    }
}

/// The answer that is an event stream, as it comes in.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The head, while it is not complete.
    head: Option<Vec<u8>>,
    begun: bool,
    chunks: Chunks,
    held: Vec<u8>,
}

impl Events {
    /// Whether the head is here.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Takes bytes of the connection and tells the sending time of each event. Returns whether
    /// the stream has ended.
    pub(crate) fn take(
        &mut self,
        mut bytes: &[u8],
        traffic: &mut Traffic,
        mut each: impl FnMut(u64),
    ) -> Result<bool> {
        let mut start = self.head.take().unwrap_or_default();
        if !self.begun {
            let before = start.len();
            start.extend_from_slice(bytes);
            let Some(head) = Head::parse(&start)? else {
                self.head = Some(start);
                return Ok(false);
            };
            if head.body != Body::Chunked || head.status() != Some(200) {
                return Err(format!("no event stream: {}", head.first).into());
            }
            traffic.exchanges += 1;
            self.begun = true;
            bytes = &bytes[head.length - before..];
        }
        let ended = self.chunks.take(bytes, &mut self.held)?;
        let mut done = 0;
        while let Some(end) = end_of_event(&self.held[done..]) {
            let event = &self.held[done..done + end];
            traffic.events.add(event);
            each(sent(event).ok_or("an event without a time")?);
            done += end;
        }
        self.held.drain(..done);
        Ok(ended)
    }
}

fn end_of_event(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\n\n")?;
    Some(end + 2)
}

/// When the server sent it, as it says.
fn sent(event: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(event).ok()?;
    let (_, rest) = text.rsplit_once("\"sent\":")?;
    rest.split('}').next()?.parse().ok()
}

/// A ping with this id.
pub(crate) fn ping(id: usize) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}").into_bytes()
}

/// A call of the tool that sends the text back.
pub(crate) fn call(id: usize, text: &str) -> Vec<u8> {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\
         \"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}}}}}"
    )
    .into_bytes()
}
