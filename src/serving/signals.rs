//! What the process is told from outside: to end, or to read its configuration again.

use crate::error::CommandError;
use std::io;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    End,
    Reload,
}

/// What SIGHUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// The terminal is gone.
    End,
    /// What daemons take it for.
    Reload,
}

/// The signals that have not been asked for yet. Made within a runtime.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    kinds: Vec<(tokio::signal::unix::Signal, Told)>,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn new(hangup: Hangup) -> Result<Self, CommandError> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut wanted = vec![(SignalKind::terminate(), Told::End)];
        // Who started us with a signal ignored (nohup, a shell in the background) wants it so.
        if !is_ignored(SignalKind::interrupt().as_raw_value()) {
            wanted.push((SignalKind::interrupt(), Told::End));
        }
        match hangup {
            Hangup::Reload => wanted.push((SignalKind::hangup(), Told::Reload)),
            Hangup::End if is_ignored(SignalKind::hangup().as_raw_value()) => {}
            Hangup::End => wanted.push((SignalKind::hangup(), Told::End)),
        }
        let kinds = wanted
            .into_iter()
            .map(|(kind, told)| Ok((signal(kind)?, told)))
            .collect::<io::Result<_>>()
            .map_err(CommandError::failed("cannot wait for signals"))?;
        Ok(Self { kinds })
    }

    /// The next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Told {
        std::future::poll_fn(|context| {
            for (signal, told) in &mut self.kinds {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*told);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    #[cfg(not(unix))]
    pub(crate) fn new(_: Hangup) -> Result<Self, CommandError> {
        Ok(Self {})
    }

    /// The next one. Not run yet on such systems.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Told {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Told::End
    }

    /// The next one that asks to end.
    pub(crate) async fn end(&mut self) {
        while self.next().await != Told::End {}
    }
}

/// Whether we were started with this signal ignored; known on Linux only.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// A runtime for what waits: signals, and whoever asks how we do.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CommandError::failed("cannot start"))
}
