//! The daemon: one process that runs the relays of the configuration.
//!
//! - [`protocol`], [`control`], [`client`]: how commands talk to it
//! - [`index`]: what was recorded, followed and answered from
//! - [`listeners`]: from those that are to those that are wanted
//! - [`admin`], [`metrics`]: how it does, over HTTP
//! - [`launch`]: starting it in the background, and ending it
//! - [`mod@unit`]: having the system start it
//!
//! Its main thread waits for signals, for commands and for who asks how it does; threads of
//! the relay and of the recorder do the work. One token ends all of it.

mod admin;
pub(crate) mod client;
mod control;
mod index;
mod judging;
pub(crate) mod launch;
mod listeners;
mod metrics;
pub(crate) mod protocol;
pub(crate) mod unit;

use crate::answering;
use crate::cap::Cap;
use crate::config::{Config, Flags};
use crate::error::{CommandError, discreet, in_full, in_one_line};
use crate::render::time;
use crate::serving::signals::{Hangup, Signals, Told, runtime};
use crate::serving::{Recording, Serving};
use agent_trace_index::Runs;
use agent_trace_index::control::server;
use agent_trace_mcp_tools::Gate;
use agent_trace_mcp_tools::http::Endpoint;
use agent_trace_store::lock::{Lock, LockError};
use agent_trace_store::recorder::Setup;
use agent_trace_store::{Store, socket};
use control::Reload;
use listeners::{Changes, Listeners};
use protocol::{Place, Recorded, Reloaded, Status};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How often what could not listen is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// A running daemon.
#[derive(Debug)]
struct Daemon {
    flags: Flags,
    store: Store,
    started: Duration,
    serving: Serving,
    /// Ends everything.
    shutdown: CancellationToken,
    reloads: mpsc::Sender<Reload>,
    index: index::Index,
    state: Mutex<State>,
}

/// What a reload changes.
#[derive(Debug)]
struct State {
    config: Config,
    listeners: Listeners,
    admin: Admin,
}

/// The address where it tells how it does.
#[derive(Debug, Default)]
struct Admin {
    wanted: Option<SocketAddr>,
    place: Place,
    /// Ends the serving of that address.
    end: CancellationToken,
}

/// Runs until it is told to end.
pub(crate) fn run(flags: &Flags) -> Result<(), CommandError> {
    let config = Config::load(flags)?;
    // Whatever is made from here on is its owner's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let store = absolute(&config.store())?;
    let root = store.root();
    store.make(root).map_err(CommandError::path(root))?;
    let lock = Lock::take(&store.daemon_lock()).map_err(|error| not_locked(&store, error))?;
    runtime()?.block_on(serve(flags, config, &store, &lock))
}

/// The store under a path that means the same from any folder.
fn absolute(store: &Store) -> Result<Store, CommandError> {
    let root = std::path::absolute(store.root()).map_err(CommandError::path(store.root()))?;
    Ok(Store::at(root))
}

fn not_locked(store: &Store, error: LockError) -> CommandError {
    match error {
        LockError::Held(by) => {
            let pid = by.pid.map(|pid| format!(" (process {pid})"));
            CommandError::Usage {
                what: format!(
                    "a daemon{} runs for {} already",
                    pid.unwrap_or_default(),
                    store.root().display()
                ),
                hint: "`agent-trace daemon status` tells how it does, `agent-trace daemon \
                       stop` ends it",
            }
        }
        LockError::Io(source) => CommandError::path(&store.daemon_lock())(source),
        other => CommandError::path(&store.daemon_lock())(std::io::Error::other(other)),
    }
}

async fn serve(
    flags: &Flags,
    config: Config,
    store: &Store,
    lock: &Lock,
) -> Result<(), CommandError> {
    let mut signals = Signals::new(Hangup::Reload)?;
    let setup = Setup {
        store: store.clone(),
        options: config.recording(),
        session: None,
    };
    let report = |text: &str| tracing::warn!("{text}");
    let workers = config.workers().0;
    let serving = Serving::start(workers, move || Ok(setup), report, Cap::of(&config))?;
    let (reloads, mut wanted) = mpsc::channel(1);
    let daemon = Arc::new(Daemon {
        flags: flags.clone(),
        store: store.clone(),
        started: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        serving,
        shutdown: CancellationToken::new(),
        reloads,
        index: index::Index::default(),
        state: Mutex::new(State {
            config: config.clone(),
            listeners: Listeners::default(),
            admin: Admin::default(),
        }),
    });
    tracing::info!("daemon started, process {}", std::process::id());
    log(&daemon.apply(&config));

    // Last of all: who gets an answer finds everything in its place.
    let (socket, listener) = socket::open(store, socket::CONTROL)
        .map_err(CommandError::failed("cannot open the control socket"))?;
    let listener = tokio::net::UnixListener::from_std(listener)
        .map_err(CommandError::failed("cannot use the control socket"))?;
    lock.sign(Some(&socket.path))
        .map_err(CommandError::path(store.root()))?;
    let handler: Arc<Daemon> = Arc::clone(&daemon);
    tokio::spawn(server::serve(listener, handler));
    let owning = tokio::spawn(index::own(Arc::clone(&daemon), socket.path.clone()));

    let mut retry = tokio::time::interval(RETRY);
    loop {
        tokio::select! {
            () = daemon.shutdown.cancelled() => break,
            told = signals.next() => match told {
                Told::End => daemon.shutdown.cancel(),
                // What came of it is in the log.
                Told::Reload => drop(daemon.reload()),
            },
            Some(answer) = wanted.recv() => {
                let _ = answer.send(daemon.reload());
            }
            _ = retry.tick() => log(&daemon.retry()),
        }
    }
    // Others may have the index while the rest comes to its end.
    drop(owning.await);
    // Who waits for a reload now is told so.
    drop(wanted);
    let drain = daemon.drain();
    tracing::info!("ending: open exchanges have {} s", drain.as_secs_f32());
    daemon.serving.stop(drain, signals.end()).await;
    tracing::info!("daemon ended");
    Ok(())
}

/// The path of a URL may be a secret, which the log is not to keep.
fn log(changes: &Changes) {
    for line in &changes.done {
        tracing::info!("{}", discreet(line));
    }
    for line in &changes.failed {
        tracing::warn!("{}", discreet(line));
    }
}

impl Daemon {
    /// The configuration as it is now.
    fn config(&self) -> Config {
        self.state().config.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where assistants ask what was recorded.
    fn endpoint(self: &Arc<Self>, end: CancellationToken) -> Endpoint {
        let daemon = Arc::clone(self);
        // What a reload changed counts from the next request on.
        let reader = move || {
            let runs: Arc<dyn Runs> = Arc::<Self>::clone(&daemon);
            answering::reader(&daemon.config(), &daemon.store, runs)
        };
        let gate = Arc::new(Gate::of(&self.store));
        Endpoint::new(reader, gate, end)
    }

    /// How long open exchanges may go on when it ends.
    fn drain(&self) -> Duration {
        self.state().config.drain().0
    }

    /// Lets the listeners be as this configuration says.
    fn apply(self: &Arc<Self>, config: &Config) -> Changes {
        let state = &mut *self.state();
        let gap = config.session_gap().0;
        let mut changes = state.listeners.apply(&self.serving, &config.listeners, gap);
        let wanted = config.admin().0;
        if wanted != state.admin.wanted {
            state.admin.end.cancel();
            state.admin = Admin {
                wanted,
                ..Admin::default()
            };
            state.admin.open(self, &mut changes);
        }
        changes
    }

    /// Tries again what could not listen.
    fn retry(self: &Arc<Self>) -> Changes {
        let state = &mut *self.state();
        let mut changes = state.listeners.retry(&self.serving);
        if state.admin.place.error.is_some() {
            state.admin.open(self, &mut changes);
        }
        // That it still does not work was said already.
        changes.failed.clear();
        changes
    }

    /// Reads the configuration again. If that fails all stays as it is.
    fn reload(self: &Arc<Self>) -> Result<Reloaded, String> {
        let config = Config::load(&self.flags).map_err(|error| {
            let why = in_one_line(&error);
            tracing::error!("not reloaded, going on as before: {why}");
            format!("not reloaded, going on as before: {}", in_full(&error))
        })?;
        let mut changes = self.apply(&config);
        let before = std::mem::replace(&mut self.state().config, config.clone());
        for (what, is_changed) in [
            ("`store`", before.store.0 != config.store.0),
            ("[record]", before.file.record != config.file.record),
            ("[[redact.rule]]", before.file.redact != config.file.redact),
            (
                "`workers` of [daemon]",
                before.workers() != config.workers(),
            ),
        ] {
            if is_changed {
                let line = format!("{what} changed, which counts from the daemon's next start on");
                changes.failed.push(line);
            }
        }
        tracing::info!("configuration read again");
        log(&changes);
        Ok(Reloaded {
            changes: changes.done,
            problems: changes.failed,
        })
    }

    /// Has the main loop read the configuration again.
    async fn ask_for_reload(&self) -> Result<Reloaded, String> {
        let (sender, answer) = oneshot::channel();
        let ending = || "the daemon is ending".to_owned();
        self.reloads.send(sender).await.map_err(|_| ending())?;
        answer.await.map_err(|_| ending())?
    }

    fn status(&self) -> Status {
        let state = self.state();
        let recorded = self.serving.recorded();
        let (on, why) = match self.serving.recording() {
            Recording::On => (true, None),
            Recording::Off => (false, Some("AGENT_TRACE=off".into())),
            Recording::Failed(why) => (false, Some(why)),
        };
        let config = &state.config;
        Status {
            program: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            since: time::rfc3339(u64::try_from(self.started.as_nanos()).unwrap_or(u64::MAX)),
            stopping: self.shutdown.is_cancelled(),
            store: self.store.root().to_owned(),
            config: config.path.clone().filter(|_| config.exists),
            admin: state.admin.place.clone(),
            recording: Recorded {
                on,
                why,
                frames: recorded.frames.iter().sum(),
                sessions: recorded.sessions,
                gaps: recorded.gaps,
                lost_bytes: recorded.lost_bytes,
            },
            relays: state.listeners.status(&self.serving),
        }
    }

    /// Whether everything works: how, or why not.
    fn ready(&self) -> Result<&'static str, String> {
        if self.shutdown.is_cancelled() {
            return Err("ending".into());
        }
        let relays = self.state().listeners.status(&self.serving);
        if let Some(why) = relays.into_iter().find_map(|relay| relay.error) {
            return Err(why);
        }
        match self.serving.recording() {
            Recording::On => Ok("ok"),
            // That is as the user wants it.
            Recording::Off => Ok("ok, AGENT_TRACE=off: not recording"),
            Recording::Failed(why) => Err(why),
        }
    }

    fn metrics(&self) -> String {
        let listeners = self.state().listeners.status(&self.serving);
        metrics::text(&metrics::Counted {
            started: self.started.as_secs(),
            relayed: &self.serving.relayed(),
            recorded: &self.serving.recorded(),
            recording: self.serving.recording() == Recording::On,
            listeners: &listeners,
        })
    }
}

impl Admin {
    fn open(&mut self, daemon: &Arc<Daemon>, changes: &mut Changes) {
        let Some(address) = self.wanted else {
            return;
        };
        let opened = agent_trace_proxy::http::bind(address)
            .and_then(tokio::net::TcpListener::from_std)
            .and_then(|listener| Ok((listener.local_addr()?, listener)));
        match opened {
            Ok((address, listener)) => {
                changes
                    .done
                    .push(format!("telling how it does on http://{address}"));
                self.place = Place {
                    address: Some(address.to_string()),
                    error: None,
                };
                let (daemon, end) = (Arc::clone(daemon), self.end.clone());
                tokio::spawn(async move {
                    let endpoint = daemon.endpoint(end.clone());
                    end.run_until_cancelled(admin::serve(listener, daemon, endpoint))
                        .await;
                });
            }
            Err(source) => {
                let why = in_one_line(&CommandError::Listen { address, source });
                changes.failed.push(why.clone());
                self.place.error = Some(why);
            }
        }
    }
}

/// Where the log of a daemon in the background lies.
fn log_file(store: &Store) -> PathBuf {
    store.root().join("daemon.log")
}
