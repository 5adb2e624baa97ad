//! Many connections of one process: as many requests as go through, and streams that are
//! held open. A process of its own each, with one thread, so that it costs little and can be
//! told apart from what is measured.

use crate::client::{Events, account, call, get, headers, ping, post};
use crate::message::{Body, Head};
use crate::stats::{median, quantile};
use crate::tally::Traffic;
use crate::{Result, nanoseconds};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::Read;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// What connections ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Work {
    Ping,
    /// A call that sends 2 kB and gets them back.
    Call,
}

impl Work {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Call => "2 kB call",
        }
    }

    pub(crate) fn message(self, id: usize, text: &str) -> Vec<u8> {
        match self {
            Self::Ping => ping(id),
            Self::Call => call(id, text),
        }
    }
}

/// The 2 kB.
pub(crate) fn text() -> String {
    "y".repeat(2000)
}

/// Requests one after the other on each of some connections, for some time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Flood {
    pub(crate) address: SocketAddr,
    pub(crate) session: String,
    pub(crate) connections: usize,
    pub(crate) time: Duration,
    pub(crate) work: Work,
}

/// Event streams, each with some events and then silent until told to go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hold {
    pub(crate) address: SocketAddr,
    pub(crate) session: String,
    pub(crate) streams: usize,
    pub(crate) events: usize,
    pub(crate) gap: Duration,
}

/// What it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) seconds: f64,
    pub(crate) traffic: Traffic,
    /// Of events, in milliseconds.
    pub(crate) median: Option<f64>,
    pub(crate) p99: Option<f64>,
}

/// Plays a [`Flood`], and prints what it came to.
pub(crate) fn flood(plan: &str) -> Result<()> {
    let plan: Flood = serde_json::from_str(plan)?;
    let text = text();
    let traffic = Rc::new(RefCell::new(Traffic::default()));
    let runtime = runtime()?;
    let seconds = LocalSet::new().block_on(&runtime, async {
        let mut streams = Vec::new();
        for _ in 0..plan.connections {
            let mut stream = connect(plan.address).await?;
            // Every connection is there, on the other side of a proxy too, before time counts.
            let headers = headers(plan.address, &plan.session);
            let mut buffers = Buffers::new(headers);
            let message = plan.work.message(0, &text);
            ask(&mut stream, &mut buffers, &message, &traffic).await?;
            streams.push((stream, buffers));
        }
        let before = traffic.borrow().exchanges;
        let started = Instant::now();
        let mut tasks = Vec::new();
        for (number, (mut stream, mut buffers)) in streams.into_iter().enumerate() {
            let (traffic, text, time) = (Rc::clone(&traffic), text.clone(), plan.time);
            let work = plan.work;
            tasks.push(tokio::task::spawn_local(async move {
                let mut id = number;
                while started.elapsed() < time {
                    id += plan.connections;
                    let message = work.message(id, &text);
                    ask(&mut stream, &mut buffers, &message, &traffic).await?;
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        let asked = traffic.borrow().exchanges - before;
        // As if all of them had been within the time.
        Ok::<_, Box<dyn std::error::Error>>(
            started.elapsed().as_secs_f64() * traffic.borrow().exchanges as f64 / asked as f64,
        )
    })?;
    let traffic = *traffic.borrow();
    print(&Done {
        seconds,
        traffic,
        median: None,
        p99: None,
    })
}

struct Buffers {
    headers: String,
    out: Vec<u8>,
    held: Vec<u8>,
}

impl Buffers {
    fn new(headers: String) -> Self {
        Self {
            headers,
            out: Vec::new(),
            held: Vec::with_capacity(16 << 10),
        }
    }
}

async fn ask(
    stream: &mut TcpStream,
    buffers: &mut Buffers,
    message: &[u8],
    traffic: &RefCell<Traffic>,
) -> Result<()> {
    let Buffers { headers, out, held } = buffers;
    out.clear();
    held.clear();
    post(out, headers, message);
    stream.write_all(out).await?;
    loop {
        if stream.read_buf(held).await? == 0 {
            return Err("the connection ended".into());
        }
        let Some(head) = Head::parse(held)? else {
            continue;
        };
        let Body::Length(body) = head.body else {
            return Err("a chunked answer".into());
        };
        if held.len() >= head.length + body {
            let answer = &held[head.length..head.length + body];
            return account(&mut traffic.borrow_mut(), message, answer);
        }
    }
}

/// Plays a [`Hold`]: prints `open` when all streams are, what it came to when all events are
/// here, and closes the streams when its input ends.
pub(crate) fn hold(plan: &str) -> Result<()> {
    let plan: Hold = serde_json::from_str(plan)?;
    let got = Rc::new(RefCell::new((Traffic::default(), Vec::new())));
    let runtime = runtime()?;
    LocalSet::new().block_on(&runtime, async {
        let started = Instant::now();
        let (mut tasks, mut streams) = (Vec::new(), Vec::new());
        let request = get(plan.address, &plan.session, plan.events, plan.gap, true);
        for _ in 0..plan.streams {
            let mut stream = connect(plan.address).await?;
            stream.write_all(request.as_bytes()).await?;
            let (opened, is_open) = tokio::sync::oneshot::channel();
            streams.push(is_open);
            let (got, wanted) = (Rc::clone(&got), plan.events);
            tasks.push(tokio::task::spawn_local(async move {
                receive(&mut stream, wanted, opened, &got).await?;
                Ok::<_, Box<dyn std::error::Error>>(stream)
            }));
            // Others get a turn, and the events of the streams do not all come at once.
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
        for is_open in streams {
            is_open.await?;
        }
        println!("open");
        let mut open = Vec::new();
        for task in tasks {
            open.push(task.await??);
        }
        let (traffic, delays) = &*got.borrow();
        print(&Done {
            seconds: started.elapsed().as_secs_f64(),
            traffic: *traffic,
            median: Some(median(delays)),
            p99: Some(quantile(delays, 0.99)),
        })?;
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    })
}

/// All events of a stream.
async fn receive(
    stream: &mut TcpStream,
    wanted: usize,
    opened: tokio::sync::oneshot::Sender<()>,
    got: &RefCell<(Traffic, Vec<f64>)>,
) -> Result<()> {
    let mut opened = Some(opened);
    let mut events = Events::default();
    let mut buffer = [0; 4096];
    let mut count = 0;
    while count < wanted {
        let n = stream.read(&mut buffer).await?;
        let now = nanoseconds();
        if n == 0 {
            return Err("an event stream broke".into());
        }
        let (traffic, delays) = &mut *got.borrow_mut();
        events.take(&buffer[..n], traffic, |sent| {
            count += 1;
            delays.push(now.saturating_sub(sent) as f64 / 1e6);
        })?;
        if events.begun()
            && let Some(opened) = opened.take()
        {
            let _ = opened.send(());
        }
    }
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

fn print(done: &Done) -> Result<()> {
    println!("{}", serde_json::to_string(done)?);
    Ok(())
}
