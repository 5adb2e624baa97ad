//! HTTP byte for byte: raw clients, scripted servers, and the relay between them.
//!
//! - [`Wire`]: one connection, from whichever side
//! - [`Origin`]: a server; the test itself accepts its connections and answers
//! - [`Relay`]: a running `agent-trace relay`
//! - [`Pair`]: one of each
//!
//! Most tests are a straight line, as there is always one side that waits for the other:
//!
//! ```ignore
//! let pair = Pair::new();
//! let (mut client, mut server) = pair.connect(post(BODY));
//! assert_eq!(server.read_message().body, BODY);
//! server.send(json_answer(ANSWER));
//! assert_eq!(client.read_message().status(), 200);
//! ```

mod origin;
mod pair;
mod relay;

pub(crate) use origin::{Origin, Serving};
pub(crate) use pair::{Pair, SOON};
pub(crate) use relay::{Relay, Relaying};

use super::{LIMIT, shown};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A POST of JSON as clients send it, to `/mcp`.
pub(crate) fn post(body: impl AsRef<[u8]>) -> Vec<u8> {
    post_with("", body)
}

/// The same with further header lines, each with its CRLF.
pub(crate) fn post_with(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// A GET of an event stream with further header lines.
pub(crate) fn get_events(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{headers}\r\n")
}

/// An answer of 200 with a JSON body.
pub(crate) fn json_answer(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}

/// An answer with a length and these header lines.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// The head of a chunked event stream.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// One chunk of a chunked body.
pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
    chunk.extend_from_slice(data);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

/// The end of a chunked body without trailers.
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";

/// One connection. Every wait ends at [`LIMIT`].
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    /// What came and was not taken yet.
    ahead: Vec<u8>,
}

/// A request or an answer as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The first line and the header lines, with the blank line.
    pub(crate) head: String,
    /// Without the framing of chunks.
    pub(crate) body: Vec<u8>,
    /// The trailer lines of a chunked body, each with its line end.
    pub(crate) trailers: String,
}

/// How what comes over a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The other side said that it sends no more.
    Closed,
    /// The connection was reset.
    Reset,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect_timeout(&address, LIMIT).unwrap())
    }

    pub(super) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self {
            stream,
            ahead: Vec::new(),
        }
    }

    /// This end's own address: its port tells the connection from others.
    pub(crate) fn address(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// The other end's address.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.stream.peer_addr().unwrap()
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends, unless the other side takes no more. Returns whether it did.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends bytes in pieces of this size, with a pause after each.
    pub(crate) fn send_in_pieces(&mut self, bytes: &[u8], size: usize, pause: Duration) {
        for piece in bytes.chunks(size) {
            self.send(piece);
            std::thread::sleep(pause);
        }
    }

    /// Reads exactly this much.
    #[track_caller]
    pub(crate) fn read(&mut self, count: usize) -> Vec<u8> {
        while self.ahead.len() < count {
            self.more("more bytes");
        }
        self.ahead.drain(..count).collect()
    }

    /// Reads up to this text and with it.
    #[track_caller]
    pub(crate) fn read_until(&mut self, text: &str) -> Vec<u8> {
        let mut looked = 0;
        loop {
            let part = &self.ahead[looked..];
            let found = part
                .windows(text.len())
                .position(|window| window == text.as_bytes());
            if let Some(at) = found {
                return self.ahead.drain(..looked + at + text.len()).collect();
            }
            looked = (self.ahead.len() + 1).saturating_sub(text.len());
            self.more(text);
        }
    }

    /// Reads the head of a message.
    #[track_caller]
    pub(crate) fn read_head(&mut self) -> String {
        let head = self.read_until("\r\n\r\n");
        String::from_utf8(head).expect("a head of text")
    }

    /// Reads one message with its body, whose length or chunks its head tells. An answer
    /// with neither goes to the end of the connection.
    #[track_caller]
    pub(crate) fn read_message(&mut self) -> Message {
        let head = self.read_head();
        self.read_body_of(head)
    }

    /// The body that belongs to a head that was read.
    #[track_caller]
    pub(crate) fn read_body_of(&mut self, head: String) -> Message {
        let mut message = Message {
            head,
            ..Message::default()
        };
        let is_answer = message.head.starts_with("HTTP/");
        if is_answer && matches!(message.status(), 100..200 | 204 | 304) {
            return message;
        }
        if message.header("transfer-encoding").is_some() {
            while let Some(data) = self.read_chunk() {
                message.body.extend(data);
            }
            loop {
                let line = String::from_utf8(self.read_until("\r\n")).unwrap();
                if line == "\r\n" {
                    break;
                }
                message.trailers.push_str(&line);
            }
        } else if let Some(length) = message.header("content-length") {
            message.body = self.read(length.parse().unwrap());
        } else if is_answer {
            let (body, end) = self.read_to_end();
            assert_eq!(end, End::Closed, "after {}", shown(&body));
            message.body = body;
        }
        message
    }

    /// Reads one chunk of a chunked body; none at the last one, whose trailers are left.
    #[track_caller]
    pub(crate) fn read_chunk(&mut self) -> Option<Vec<u8>> {
        let line = String::from_utf8(self.read_until("\r\n")).unwrap();
        let size = line.trim_end().split(';').next().unwrap();
        let size =
            usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("chunk size {line:?}"));
        if size == 0 {
            return None;
        }
        let data = self.read(size);
        assert_eq!(self.read(2), b"\r\n", "after a chunk");
        Some(data)
    }

    /// Reads so many bytes of data out of a chunked body, however it is cut into chunks.
    #[track_caller]
    pub(crate) fn read_chunked(&mut self, count: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < count {
            let chunk = self.read_chunk();
            data.extend(chunk.unwrap_or_else(|| panic!("the end after {}", shown(&data))));
        }
        assert_eq!(data.len(), count, "{}", shown(&data));
        data
    }

    /// Reads all that comes, and how it ended.
    #[track_caller]
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, End) {
        let mut bytes = std::mem::take(&mut self.ahead);
        let end = self.end_of(|piece| bytes.extend_from_slice(piece));
        (bytes, end)
    }

    /// Reads all that comes without keeping it; returns how much it was and how it ended.
    #[track_caller]
    pub(crate) fn count_to_end(&mut self) -> (u64, End) {
        let mut count = std::mem::take(&mut self.ahead).len() as u64;
        let end = self.end_of(|piece| count += piece.len() as u64);
        (count, end)
    }

    #[track_caller]
    fn end_of(&mut self, mut take: impl FnMut(&[u8])) -> End {
        let mut piece = vec![0; 64 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return End::Closed,
                Ok(count) => take(&piece[..count]),
                Err(error) if is_reset(&error) => return End::Reset,
                Err(error) => panic!("instead of the end: {error}"),
            }
        }
    }

    /// Reads and drops exactly this much.
    #[track_caller]
    pub(crate) fn skip(&mut self, mut count: u64) {
        let known = count.min(self.ahead.len() as u64);
        self.ahead.drain(..usize::try_from(known).unwrap());
        count -= known;
        let mut piece = vec![0; 64 << 10];
        while count > 0 {
            let most = piece
                .len()
                .min(usize::try_from(count).unwrap_or(usize::MAX));
            let read = self.stream.read(&mut piece[..most]).unwrap();
            assert!(read > 0, "the end, {count} bytes early");
            count -= read as u64;
        }
    }

    /// Waits until the other side ends the connection in one way or another, reading what
    /// comes. Returns how long it took.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> Duration {
        let began = Instant::now();
        self.count_to_end();
        began.elapsed()
    }

    /// Whether nothing comes for so long.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        if !self.ahead.is_empty() {
            return false;
        }
        self.stream.set_read_timeout(Some(time)).unwrap();
        let read = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(LIMIT)).unwrap();
        read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// Says that nothing more will be sent; what comes can still be read.
    pub(crate) fn end_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Closes the connection in an orderly manner.
    pub(crate) fn close(self) {}

    /// Ends the connection with a reset, without a farewell, as a process that is killed
    /// with data unread does.
    pub(crate) fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }

    /// A second handle of the same connection, for another thread. What this one has read
    /// ahead stays here.
    pub(crate) fn other_half(&self) -> Self {
        Self::over(self.stream.try_clone().unwrap())
    }

    /// Waits for another byte; false at the end of the connection.
    pub(crate) fn has_more(&mut self) -> bool {
        if !self.ahead.is_empty() {
            return true;
        }
        matches!(self.stream.peek(&mut [0]), Ok(1..))
    }

    #[track_caller]
    fn more(&mut self, what: &str) {
        let mut piece = [0; 16 << 10];
        match self.stream.read(&mut piece) {
            Ok(count) if count > 0 => self.ahead.extend_from_slice(&piece[..count]),
            other => panic!(
                "{what:?} does not come ({other:?}); last came: {}",
                shown(&self.ahead)
            ),
        }
    }
}

fn is_reset(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
    )
}

impl Message {
    pub(crate) fn first_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The status of an answer.
    #[track_caller]
    pub(crate) fn status(&self) -> u16 {
        let word = self.first_line().split(' ').nth(1);
        word.and_then(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("no answer: {:?}", self.head))
    }

    /// The header lines in their order, as name and value.
    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": ").or_else(|| line.split_once(':')))
            .collect()
    }

    /// All values of a header, in their order.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let headers = self.headers().into_iter();
        headers
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
            .collect()
    }

    /// The only value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name}: {all:?}");
        all.first().copied()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
