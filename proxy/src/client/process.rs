//! A server that we started, behind its pipes.

use super::message::{Heard, Request};
use super::talk::Server;
use super::{Command, Fault, Limits};
use crate::os::group::{self, Group, Guardian};
use crate::os::{orphans, resolve};
use crate::stdio::StartError;
use agent_trace_wire::Budget;
use agent_trace_wire::frame::Event;
use agent_trace_wire::stdio::Decoder;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::{Instant, sleep};

/// How long a server has to end by itself when its input ends, and then when it is told to.
const GRACE: Duration = Duration::from_secs(1);
/// The most bytes of a line of standard error that are kept.
const SAID: usize = 300;

pub(super) struct Process {
    child: Child,
    group: Group,
    guardian: Guardian,
    /// Who was a child of ours before.
    before: orphans::Children,
    input: Option<Sender>,
    output: Receiver,
    errors: Option<Receiver>,
    decoder: Decoder,
    /// The longest message, in bytes.
    most: usize,
    /// Texts that came and were not looked at.
    texts: VecDeque<Vec<u8>>,
    /// Whether a message was longer than may be.
    cut: bool,
    said: Vec<u8>,
}

impl Process {
    pub(super) fn start(
        command: &Command,
        guardian: &Guardian,
        limits: &Limits,
    ) -> Result<Self, Fault> {
        let program = command.argv.first().map_or(OsStr::new(""), |name| name);
        let failed = |error: io::Error| {
            let why = resolve::why_not(program, &error);
            Fault::from(StartError {
                command: program.to_owned(),
                why,
            })
        };
        let mut server = std::process::Command::new(resolve::program(program));
        server
            .args(command.argv.iter().skip(1))
            .env_clear()
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &command.folder {
            server.current_dir(folder);
        }
        group::prepare(&mut server);
        let before = orphans::adopt();
        let mut child = server.spawn().map_err(failed)?;
        let group = Group::of(&child);
        guardian.watch_over(group);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let opened = match pipes {
            (Some(input), Some(output), Some(errors)) => {
                let opened = || {
                    let input = Sender::from_owned_fd(OwnedFd::from(input))?;
                    let output = Receiver::from_owned_fd(OwnedFd::from(output))?;
                    let errors = Receiver::from_owned_fd(OwnedFd::from(errors))?;
                    io::Result::Ok((input, output, errors))
                };
                opened()
            }
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        };
        let (input, output, errors) = match opened {
            Ok(pipes) => pipes,
            Err(error) => {
                group.kill();
                let _ = child.wait();
                return Err(failed(error));
            }
        };
        Ok(Self {
            child,
            group,
            guardian: guardian.clone(),
            before,
            input: Some(input),
            output,
            errors: Some(errors),
            decoder: Decoder::new(limits.message, &Budget::new(limits.message * 2)),
            most: limits.message,
            texts: VecDeque::new(),
            cut: false,
            said: Vec::new(),
        })
    }

    /// Ends the server and all that it started.
    pub(super) async fn end(mut self) {
        self.input = None;
        if !self.exited_within(GRACE).await {
            self.group.terminate();
            self.exited_within(GRACE).await;
        }
        self.kill();
    }

    /// Waits for its end without forgetting its number, which its group goes by.
    async fn exited_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut buffer = vec![0; 64 << 10];
        loop {
            if group::has_exited(&self.child) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            // One that writes before it ends is not to wait for us.
            tokio::select! {
                read = self.output.read(&mut buffer) => if matches!(read, Ok(0) | Err(_)) {
                    sleep(Duration::from_millis(5)).await;
                },
                () = sleep(Duration::from_millis(5)) => {}
            }
        }
    }

    /// Before the child is waited for: until then nobody else has its number.
    fn kill(&mut self) {
        self.group.kill();
        self.guardian.release();
        let _ = self.child.kill();
        let _ = self.child.wait();
        orphans::kill(&self.before);
    }

    async fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let Some(input) = &mut self.input else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut line = text.to_vec();
        line.push(b'\n');
        input.write_all(&line).await
    }

    /// Reads once; false at the end of its output.
    async fn read(&mut self, heard: &mut Heard, method: &'static str) -> Result<bool, Fault> {
        let mut buffer = vec![0; 64 << 10];
        let mut noise = [0; 4096];
        loop {
            tokio::select! {
                read = self.output.read(&mut buffer) => {
                    let read = read.unwrap_or(0);
                    heard.count(read, method)?;
                    let Self { decoder, texts, cut, .. } = self;
                    let mut keep = |event: Event<'_>| if let Event::Frame(frame) = event {
                        match frame.truncated() {
                            true => *cut = true,
                            false => texts.push_back(frame.text().into_owned()),
                        }
                    };
                    match read {
                        0 => decoder.finish(&mut keep),
                        read => decoder.push(&buffer[..read], &mut keep),
                    }
                    // One without an end is told before its end.
                    self.cut |= self.decoder.pending() >= self.most;
                    return Ok(read > 0);
                }
                read = from(self.errors.as_mut(), &mut noise) => match read {
                    Ok(0) | Err(_) => self.errors = None,
                    Ok(read) => {
                        heard.count(read, method)?;
                        self.said.extend_from_slice(&noise[..read]);
                        let extra = self.said.len().saturating_sub(4 * SAID);
                        self.said.drain(..extra);
                    }
                },
            }
        }
    }
}

async fn from(pipe: Option<&mut Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => std::future::pending().await,
    }
}

impl Server for Process {
    async fn ask(&mut self, request: &Request, heard: &mut Heard) -> Result<Vec<u8>, Fault> {
        let method = request.method;
        // That it does not read is told by its end, or by none of its answers coming.
        let _ = self.write(&request.text).await;
        loop {
            while let Some(text) = self.texts.pop_front() {
                let taken = heard.take(&text, request);
                for reply in taken.replies {
                    let _ = self.write(&reply).await;
                }
                if let Some(answer) = taken.answer {
                    return Ok(answer);
                }
            }
            if self.cut {
                return Err(heard.too_long(method));
            }
            if !self.read(heard, method).await? && self.texts.is_empty() {
                let said = self.rest().await;
                return Err(Fault::Ended { method, said });
            }
        }
    }

    async fn tell(&mut self, text: &[u8]) -> Result<(), Fault> {
        let _ = self.write(text).await;
        Ok(())
    }

    async fn fall_back(&mut self, _: &mut Heard) -> Result<bool, Fault> {
        Ok(false)
    }

    fn said(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        let line = text.lines().rfind(|line| !line.trim().is_empty());
        line.unwrap_or_default().trim().chars().take(SAID).collect()
    }
}

impl Process {
    /// What it said at last, once its output has ended.
    async fn rest(&mut self) -> String {
        let mut noise = [0; 4096];
        let reading = async {
            while let Ok(read @ 1..) = from(self.errors.as_mut(), &mut noise).await {
                self.said.extend_from_slice(&noise[..read]);
                let extra = self.said.len().saturating_sub(4 * SAID);
                self.said.drain(..extra);
            }
        };
        // What it started may hold the pipe open.
        let _ = tokio::time::timeout(Duration::from_millis(200), reading).await;
        self.said()
    }
}

impl Drop for Process {
    /// Where it is not ended in order, as after a panic.
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill();
        }
    }
}
