//! The MCP server that everything is forwarded to. It does as little as it can.
//!
//! ```text
//! POST                     an answer in JSON, or 202 where there is nothing to answer
//! GET ?events=K&gap=US     K events, one each so many microseconds, each with its time; then
//!                          the stream ends, or with `&stay` is silent until the client goes
//! ```

use crate::message::{Body, Head};
use crate::{Result, answers, nanoseconds};
use std::io::Write as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// Serves on a free port, which it prints, until it is killed.
pub(crate) fn run() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                // A client that goes in the middle of something is no error of ours.
                if let Err(error) = serve(stream).await
                    && error.downcast_ref::<std::io::Error>().is_none()
                {
                    eprintln!("origin: {error}");
                }
            });
        }
    })
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let (mut held, mut body, mut out) = (Vec::with_capacity(16 << 10), Vec::new(), Vec::new());
    loop {
        let Some(head) = Head::parse(&held)? else {
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let Body::Length(length) = head.body else {
            return Err("a chunked request".into());
        };
        if let Some(query) = head.first.strip_prefix("GET ") {
            let plan = Plan::parse(query);
            held.drain(..head.length);
            if !events(&mut stream, plan).await? {
                return Ok(());
            }
            continue;
        }
        let end = head.length + length;
        if held.len() < end {
            held.reserve(end - held.len());
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
            continue;
        }
        let message = &held[head.length..end];
        body.clear();
        out.clear();
        if length > 0 && answers::answer(message, &mut body)? {
            let length = body.len();
            write!(
                out,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
            )?;
            let begin = &message[..message.len().min(64)];
            if begin.windows(12).any(|name| name == b"\"initialize\"") {
                let id = uuid();
                write!(out, "Mcp-Session-Id: {id}\r\n")?;
            }
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(&body);
        } else {
            out.extend_from_slice(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
        }
        held.drain(..end);
        stream.write_all(&out).await?;
    }
}

/// Which events a client wants.
struct Plan {
    events: u64,
    gap: Duration,
    stay: bool,
}

impl Plan {
    fn parse(target: &str) -> Self {
        let (_, query) = target.split_once('?').unwrap_or_default();
        let query = query.split(' ').next().unwrap_or_default();
        let mut plan = Self {
            events: 0,
            gap: Duration::ZERO,
            stay: false,
        };
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || value.parse().unwrap_or_default();
            match name {
                "events" => plan.events = number(),
                "gap" => plan.gap = Duration::from_micros(number()),
                "stay" => plan.stay = true,
                _ => {}
            }
        }
        plan
    }
}

/// Returns false where the client has gone.
async fn events(stream: &mut TcpStream, plan: Plan) -> Result<bool> {
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
              Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .await?;
    let (mut reader, mut writer) = stream.split();
    let mut next = Instant::now() + plan.gap;
    let (mut event, mut chunk) = (Vec::new(), Vec::new());
    for number in 0..plan.events {
        // Nothing is expected from a client that waits for events, but that it goes.
        tokio::select! {
            () = sleep_until(next) => {}
            _ = reader.read_u8() => return Ok(false),
        }
        next += plan.gap;
        event.clear();
        chunk.clear();
        let sent = nanoseconds();
        write!(
            event,
            "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\
             \"params\":{{\"level\":\"info\",\"data\":\"event {number}\",\"sent\":{sent}}}}}\n\n"
        )?;
        write!(chunk, "{:x}\r\n", event.len())?;
        chunk.extend_from_slice(&event);
        chunk.extend_from_slice(b"\r\n");
        writer.write_all(&chunk).await?;
    }
    if plan.stay {
        // Until the client has gone.
        let _ = reader.read_u8().await;
        return Ok(false);
    }
    writer.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// An id as servers make them; time alone makes it one that was not there before.
fn uuid() -> String {
    let low = u128::from(nanoseconds()).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let digits = format!("{low:032x}");
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    parts.map(|(from, to)| &digits[from..to]).join("-")
}
