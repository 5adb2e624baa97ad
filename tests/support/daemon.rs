//! A daemon in the background, its configuration, and talking to it.

use super::http::{Message, Wire, post};
use super::processes::{Process, end, signal};
use super::{Home, Said, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Lets the daemon tell how it does on a port that is free.
pub(crate) const ADMIN: &str = "[daemon]\nlisten = \"127.0.0.1:0\"\n";

/// One `[[relay]]` on a port that is free, with further lines.
pub(crate) fn relay(name: &str, to: &str, lines: &str) -> String {
    relay_at("127.0.0.1:0", name, to, lines)
}

pub(crate) fn relay_at(listen: &str, name: &str, to: &str, lines: &str) -> String {
    format!("[[relay]]\nname = {name:?}\nlisten = {listen:?}\nto = {to:?}\n{lines}\n")
}

/// A daemon of this home. It is killed when this is dropped.
pub(crate) struct Daemon<'a> {
    home: &'a Home,
    pub(crate) process: Process,
}

impl Home {
    pub(crate) fn config_file(&self) -> PathBuf {
        self.at("home/.config/agent-trace/config.toml")
    }

    /// Writes the configuration file.
    pub(crate) fn configure(&self, text: &str) {
        let path = self.config_file();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Starts a daemon with this configuration.
    #[track_caller]
    pub(crate) fn daemon(&self, config: &str) -> Daemon<'_> {
        self.configure(config);
        self.ok(["daemon", "start"]);
        Daemon::running(self)
    }
}

impl<'a> Daemon<'a> {
    /// The one that runs.
    #[track_caller]
    pub(crate) fn running(home: &'a Home) -> Self {
        let status = home.json(["daemon", "status", "--format", "json"]);
        let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
        let process = Process::of(pid);
        Self { home, process }
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.home.json(["daemon", "status", "--format", "json"])
    }

    /// Where the relay with this name listens.
    #[track_caller]
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        let status = self.status();
        let relays = status["relays"].as_array().unwrap();
        let relay = relays.iter().find(|relay| relay["name"] == name);
        let url = relay.unwrap_or_else(|| panic!("no {name}: {status}"))["url"].as_str();
        let rest = url.unwrap().strip_prefix("http://").unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }

    /// Sends a request of a client through the relay with this name.
    #[track_caller]
    pub(crate) fn call(&self, name: &str, body: &str) -> Message {
        let mut client = Wire::to(self.address(name));
        client.send(post(body));
        client.read_message()
    }

    /// Asks how it does.
    #[track_caller]
    pub(crate) fn ask(&self, request: &str) -> Message {
        let address = self.status()["admin"]["address"].clone();
        let mut client = Wire::to(address.as_str().unwrap().parse().unwrap());
        client.send(request);
        client.read_message()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Message {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// One number of `/metrics`.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text().to_owned();
        let value = text.lines().find_map(|line| {
            let rest = line.strip_prefix("agent_trace_")?.strip_prefix(name)?;
            rest.strip_prefix(' ')?.parse().ok()
        });
        value.unwrap_or_else(|| panic!("no {name}: {text}"))
    }

    /// Writes another configuration and has it read.
    pub(crate) fn reload(&self, config: &str) -> Said {
        self.home.configure(config);
        self.home.run(["daemon", "reload"])
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.pid, name);
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        let path = self.home.at("store/daemon.log");
        std::fs::read_to_string(path).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_for(text, || self.log().contains(text).then_some(()));
    }

    /// Says a line over the control socket, and returns what is answered.
    #[track_caller]
    pub(crate) fn say(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(self.home.at("store/control.sock")).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        end(self.process);
    }
}
