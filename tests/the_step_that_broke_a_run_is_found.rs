//! `suspects` finds the step that broke a run: failures played with real servers, each with a
//! step that is known to be the culprit.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::print_stdout, reason = "where each culprit came is to be read")]

#[path = "support/support.rs"]
mod support;

use agent_trace_store::process::RUN_MARK;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use support::peers::{Peers, missing, node_server, python_server};
use support::{Home, Session, processes, skip, wait_for};

/// A conversation with servers that are all of one run.
struct Play<'a> {
    home: &'a Home,
    mark: String,
    calls: Cell<usize>,
    sessions: RefCell<Vec<Talk>>,
}

/// A session with one server.
struct Talk {
    session: Session,
    next: Cell<u32>,
}

impl Talk {
    fn ask(&self, method: &str, params: &Value) -> u32 {
        let id = self.next.get();
        self.next.set(id + 1);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.session.send(format!("{line}\n"));
        id
    }

    fn tell(&self, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.session.send(format!("{line}\n"));
    }

    fn answer(&self, id: u32) -> Value {
        wait_for("an answer", || {
            let output = self.session.output();
            let lines = output.split(|b| *b == b'\n');
            let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
            messages
                .into_iter()
                .find(|message| message["id"] == id && message["method"].is_null())
        })
    }
}

impl<'a> Play<'a> {
    fn new(home: &'a Home, mark: &str) -> Self {
        Self {
            home,
            mark: mark.to_owned(),
            calls: Cell::new(0),
            sessions: RefCell::default(),
        }
    }

    /// Connects to a server and lists its tools; returns its number.
    fn connect(&self, name: &str, server: &[OsString]) -> usize {
        let record = self.home.record().option("--client=agent");
        let record = record
            .option(format!("--server={name}"))
            .env(RUN_MARK, &self.mark);
        let record = record.env(
            "MEMORY_FILE_PATH",
            self.home.at(format!("{}.jsonl", self.mark)),
        );
        let record = GIT
            .iter()
            .fold(record, |record, (name, value)| record.env(name, value));
        let talk = Talk {
            session: record.start_command(server),
            next: Cell::new(0),
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"}});
        talk.answer(talk.ask("initialize", &hello));
        talk.tell("notifications/initialized", &json!({}));
        talk.answer(talk.ask("tools/list", &json!({})));
        let mut sessions = self.sessions.borrow_mut();
        sessions.push(talk);
        sessions.len() - 1
    }

    fn begin(&self, server: usize, tool: &str, arguments: &Value) -> u32 {
        self.calls.set(self.calls.get() + 1);
        let params = json!({"name": tool, "arguments": arguments});
        self.sessions.borrow()[server].ask("tools/call", &params)
    }

    /// Calls a tool and waits for the answer; returns the number of the call.
    fn call(&self, server: usize, tool: &str, arguments: &Value) -> usize {
        let id = self.begin(server, tool, arguments);
        self.sessions.borrow()[server].answer(id);
        self.calls.get()
    }

    /// Ends all sessions; returns the run's id.
    fn end(self) -> String {
        for talk in self.sessions.into_inner() {
            talk.session.close_input();
            talk.session.wait();
        }
        self.home.newest()
    }
}

const GIT: [(&str, &str); 6] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "Ada"),
    ("GIT_AUTHOR_EMAIL", "ada@example.com"),
    ("GIT_COMMITTER_NAME", "Ada"),
    ("GIT_COMMITTER_EMAIL", "ada@example.com"),
];

/// How a failure is played: the run's id, the number of the culprit among its calls, and siblings.
type Scenario = fn(&Home) -> (String, usize, Vec<String>);

const SCENARIOS: [(&str, Scenario); 15] = [
    ("wrong pattern, empty result, report on it", wrong_pattern),
    ("wrong query, empty result, made-up name", wrong_query),
    ("path that an earlier step moved away", stale_path),
    ("error that the client did not look at", swallowed),
    ("the same failing call again and again", retries),
    ("argument of an older version of the tool", old_argument),
    ("tool of an older version of the server", old_tool),
    ("call that took too long", too_long),
    ("server that was killed", killed),
    ("the wrong one of two servers", wrong_server),
    ("part of a page, and the rest never read", truncated_page),
    ("part of a file, and the rest never read", truncated_file),
    ("the same question again and again", same_question),
    ("argument that differs from runs that passed", differs),
    ("revision that does not exist", no_revision),
];

#[test]
fn culprits_come_first_or_nearly() {
    if let Some(reason) = missing(Peers::Node) {
        return skip("culprits_come_first_or_nearly", reason);
    }
    let mut first = 0;
    let mut late = Vec::new();
    for (name, play) in SCENARIOS {
        let home = Home::new();
        let (run, culprit, siblings) = play(&home);
        let mut words = vec![
            "suspects".to_owned(),
            run.clone(),
            "--format=json".to_owned(),
        ];
        words.extend(
            siblings
                .iter()
                .map(|sibling| format!("--sibling={sibling}")),
        );
        let ranking = home.json(&words);
        assert_eq!(home.json(&words), ranking, "the same each time");
        let shown = home.json(["show", &run, "--format=json"]);
        let steps = shown["steps"].as_array().unwrap().iter();
        let mut calls = steps.filter(|step| step["method"] == "tools/call");
        let culprit = &calls.nth(culprit - 1).unwrap()["step"];
        let suspects = ranking["suspects"].as_array().unwrap();
        let place = suspects
            .iter()
            .position(|suspect| suspect["step"] == *culprit);
        let place = place.map(|place| place + 1);
        println!("{name}: step {culprit} comes {place:?}");
        first += usize::from(place == Some(1));
        if place.is_none_or(|place| place > 3) {
            late.push(format!("{name}: step {culprit} in {ranking:#}"));
        } else if place != Some(1) {
            println!("{}", home.ok(["suspects", &run]));
        }
        assert_eq!(ranking["dropped_quotes"], 0, "{name}");
    }
    assert!(late.is_empty(), "{}", late.join("\n"));
    let all = SCENARIOS.len();
    assert!(first * 12 >= all * 10, "first in {first} of {all}");
}

fn files(folder: &Path) -> Vec<OsString> {
    std::fs::create_dir_all(folder).unwrap();
    let folder = std::fs::canonicalize(folder).unwrap();
    node_server("server-filesystem", &[folder.to_str().unwrap()])
}

fn path(home: &Home, name: &str) -> String {
    let folder = std::fs::canonicalize(home.at("work")).unwrap();
    folder.join(name).to_str().unwrap().to_owned()
}

fn wrong_pattern(home: &Home) -> (String, usize, Vec<String>) {
    std::fs::write(home.at("work/plants.txt"), "water the plants\n").unwrap();
    let play = Play::new(home, "a");
    let fs = play.connect("files", &files(&home.at("work")));
    play.call(fs, "list_allowed_directories", &json!({}));
    let search = json!({"path": path(home, ""), "pattern": "**/*.tyt"});
    let culprit = play.call(fs, "search_files", &search);
    let report = json!({"path": path(home, "report.md"), "content": "There are no notes."});
    play.call(fs, "write_file", &report);
    play.call(
        fs,
        "get_file_info",
        &json!({"path": path(home, "report.md")}),
    );
    (play.end(), culprit, Vec::new())
}

fn wrong_query(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let memory = play.connect("memory", &node_server("server-memory", &[]));
    let engine = json!({"entities": [{"name": "Analytical Engine", "entityType": "machine",
        "observations": ["runs on steam"]}]});
    play.call(memory, "create_entities", &engine);
    let culprit = play.call(memory, "search_nodes", &json!({"query": "Analytic Engin"}));
    let more = json!({"observations": [{"entityName": "Difference Engine No. 3",
        "contents": ["was never built"]}]});
    play.call(memory, "add_observations", &more);
    (play.end(), culprit, Vec::new())
}

fn stale_path(home: &Home) -> (String, usize, Vec<String>) {
    std::fs::write(home.at("work/plants.txt"), "water the plants\n").unwrap();
    let play = Play::new(home, "a");
    let fs = play.connect("files", &files(&home.at("work")));
    play.call(fs, "list_directory", &json!({"path": path(home, "")}));
    let moves =
        json!({"source": path(home, "plants.txt"), "destination": path(home, "garden.txt")});
    play.call(fs, "move_file", &moves);
    let culprit = play.call(
        fs,
        "read_text_file",
        &json!({"path": path(home, "plants.txt")}),
    );
    let report = json!({"path": path(home, "report.md"), "content": "Nothing to do."});
    play.call(fs, "write_file", &report);
    (play.end(), culprit, Vec::new())
}

/// Serves a long page, and 404 for every other, at the port that is returned.
fn pages() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let _ = reader.read_line(&mut request);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let lines = (1..200).map(|n| format!("plant {n} costs {} crowns\n", n * 7));
            let (status, body) = match request.contains("/prices") {
                true => ("200 OK", lines.collect()),
                false => ("404 Not Found", "nothing here".to_owned()),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}

fn fetching() -> Vec<OsString> {
    python_server(
        "mcp-server-fetch",
        &["--allow-private-ips", "--ignore-robots-txt"],
    )
}

fn swallowed(home: &Home) -> (String, usize, Vec<String>) {
    let port = pages();
    let play = Play::new(home, "a");
    let (fetch, fs) = (
        play.connect("fetch", &fetching()),
        play.connect("files", &files(&home.at("work"))),
    );
    play.call(fs, "list_allowed_directories", &json!({}));
    let page = json!({"url": format!("http://127.0.0.1:{port}/missing"), "raw": true});
    let culprit = play.call(fetch, "fetch", &page);
    let report = json!({"path": path(home, "report.md"), "content": "All prices are as before."});
    play.call(fs, "write_file", &report);
    (play.end(), culprit, Vec::new())
}

fn retries(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let fs = play.connect("files", &files(&home.at("work")));
    play.call(fs, "list_directory", &json!({"path": path(home, "")}));
    let outside = json!({"path": "/etc/hostname"});
    let culprit = play.call(fs, "read_text_file", &outside);
    for _ in 0..5 {
        play.call(fs, "read_text_file", &outside);
    }
    (play.end(), culprit, Vec::new())
}

fn old_argument(home: &Home) -> (String, usize, Vec<String>) {
    std::fs::write(home.at("work/plants.txt"), "water the plants\n").unwrap();
    let play = Play::new(home, "a");
    let fs = play.connect("files", &files(&home.at("work")));
    play.call(fs, "list_directory", &json!({"path": path(home, "")}));
    let culprit = play.call(
        fs,
        "read_text_file",
        &json!({"file": path(home, "plants.txt")}),
    );
    let report = json!({"path": path(home, "report.md"), "content": "The file cannot be read."});
    play.call(fs, "write_file", &report);
    (play.end(), culprit, Vec::new())
}

fn old_tool(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let clock = play.connect(
        "time",
        &python_server("mcp-server-time", &["--local-timezone", "UTC"]),
    );
    play.call(
        clock,
        "get_current_time",
        &json!({"timezone": "Asia/Tokyo"}),
    );
    let culprit = play.call(clock, "shift_time", &json!({"time": "09:30", "by": "3h"}));
    play.call(
        clock,
        "get_current_time",
        &json!({"timezone": "Asia/Kolkata"}),
    );
    (play.end(), culprit, Vec::new())
}

fn too_long(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let all = play.connect("everything", &node_server("server-everything", &["stdio"]));
    play.call(all, "get-sum", &json!({"a": 2, "b": 40}));
    let work = json!({"duration": 30, "steps": 2});
    let id = play.begin(all, "trigger-long-running-operation", &work);
    let culprit = play.calls.get();
    let cancel = json!({"requestId": id, "reason": "Request timed out"});
    play.sessions.borrow()[all].tell("notifications/cancelled", &cancel);
    play.call(all, "echo", &json!({"message": "the work is done"}));
    (play.end(), culprit, Vec::new())
}

fn killed(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let memory = play.connect("memory", &node_server("server-memory", &[]));
    let all = play.connect("everything", &node_server("server-everything", &["stdio"]));
    play.call(memory, "read_graph", &json!({}));
    let work = json!({"duration": 600, "steps": 2});
    play.begin(all, "trigger-long-running-operation", &work);
    let culprit = play.calls.get();
    // What comes after it is answered: the server has it before it is killed.
    play.call(all, "echo", &json!({"message": "hurry up"}));
    let relay = play.sessions.borrow()[all].session.process;
    let is_node = |pid: u32| {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.to_string_lossy().contains("node"))
    };
    let server = relay
        .tree()
        .into_iter()
        .find(|process| is_node(process.pid));
    processes::signal(server.unwrap().pid, "KILL");
    play.sessions.borrow()[all].session.wait_for_end_of_output();
    play.call(memory, "search_nodes", &json!({"query": "work"}));
    (play.end(), culprit, Vec::new())
}

fn wrong_server(home: &Home) -> (String, usize, Vec<String>) {
    let (docs, code) = (home.at("work/docs"), home.at("work/code"));
    let (docs_server, code_server) = (files(&docs), files(&code));
    std::fs::write(code.join("main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(docs.join("intro.md"), "# Intro\n").unwrap();
    let play = Play::new(home, "a");
    let docs = play.connect("docs", &docs_server);
    let code = play.connect("code", &code_server);
    play.call(docs, "list_directory", &json!({"path": path(home, "docs")}));
    let search = json!({"path": path(home, "code"), "pattern": "**/*.rs"});
    play.call(code, "search_files", &search);
    let culprit = play.call(
        docs,
        "read_text_file",
        &json!({"path": path(home, "code/main.rs")}),
    );
    (play.end(), culprit, Vec::new())
}

fn truncated_page(home: &Home) -> (String, usize, Vec<String>) {
    let port = pages();
    let play = Play::new(home, "a");
    let (fetch, fs) = (
        play.connect("fetch", &fetching()),
        play.connect("files", &files(&home.at("work"))),
    );
    play.call(fs, "list_allowed_directories", &json!({}));
    let page =
        json!({"url": format!("http://127.0.0.1:{port}/prices"), "raw": true, "max_length": 300});
    let culprit = play.call(fetch, "fetch", &page);
    let report = json!({"path": path(home, "report.md"), "content": "There are 12 plants."});
    play.call(fs, "write_file", &report);
    play.call(
        fs,
        "read_text_file",
        &json!({"path": path(home, "report.md")}),
    );
    (play.end(), culprit, Vec::new())
}

fn truncated_file(home: &Home) -> (String, usize, Vec<String>) {
    let lines: Vec<String> = (1..50).map(|n| format!("plant {n} is dry")).collect();
    std::fs::write(home.at("work/plants.txt"), lines.join("\n")).unwrap();
    let play = Play::new(home, "a");
    let fs = play.connect("files", &files(&home.at("work")));
    play.call(fs, "list_directory", &json!({"path": path(home, "")}));
    let culprit = play.call(
        fs,
        "read_text_file",
        &json!({"path": path(home, "plants.txt"), "head": 5}),
    );
    let report = json!({"path": path(home, "report.md"), "content": "5 plants are dry."});
    play.call(fs, "write_file", &report);
    (play.end(), culprit, Vec::new())
}

fn same_question(home: &Home) -> (String, usize, Vec<String>) {
    let play = Play::new(home, "a");
    let all = play.connect("everything", &node_server("server-everything", &["stdio"]));
    play.call(all, "echo", &json!({"message": "where is the report?"}));
    let culprit = play.call(all, "get-sum", &json!({"a": 2, "b": 40}));
    for _ in 0..4 {
        play.call(all, "get-sum", &json!({"a": 2, "b": 40}));
    }
    play.call(all, "echo", &json!({"message": "I give up"}));
    (play.end(), culprit, Vec::new())
}

fn differs(home: &Home) -> (String, usize, Vec<String>) {
    let run = |mark: &str, zone: &str| {
        let play = Play::new(home, mark);
        let server = python_server("mcp-server-time", &["--local-timezone", "UTC"]);
        let clock = play.connect("time", &server);
        play.call(clock, "get_current_time", &json!({"timezone": "UTC"}));
        let convert =
            json!({"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": zone});
        let culprit = play.call(clock, "convert_time", &convert);
        play.call(
            clock,
            "get_current_time",
            &json!({"timezone": "Asia/Tokyo"}),
        );
        (play.end(), culprit)
    };
    let siblings = ["b", "c"].map(|mark| run(mark, "Asia/Kolkata").0);
    let (failed, culprit) = run("a", "Asia/Karachi");
    home.ok(["verdict", &failed, "wrong"]);
    (failed, culprit, siblings.to_vec())
}

fn no_revision(home: &Home) -> (String, usize, Vec<String>) {
    let repository = home.at("work/repository");
    std::fs::create_dir(&repository).unwrap();
    let git = |words: &[&str]| {
        let mut command = home.with_environment(Command::new("git"));
        command.arg("-C").arg(&repository).args(words).envs(GIT);
        let said = support::Said::by(&mut command, b"");
        assert_eq!(said.code, 0, "{said:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(repository.join("poem.txt"), "roses\n").unwrap();
    git(&["add", "poem.txt"]);
    git(&["commit", "--quiet", "--message", "one line"]);
    let repository = std::fs::canonicalize(repository).unwrap();
    let repository = repository.to_str().unwrap();
    let play = Play::new(home, "a");
    let server = python_server("mcp-server-git", &["--repository", repository]);
    let git = play.connect("git", &server);
    play.call(git, "git_status", &json!({"repo_path": repository}));
    play.call(
        git,
        "git_log",
        &json!({"repo_path": repository, "max_count": 10}),
    );
    let show = json!({"repo_path": repository, "revision": "v9.9.9"});
    let culprit = play.call(git, "git_show", &show);
    play.call(
        git,
        "git_branch",
        &json!({"repo_path": repository, "branch_type": "local"}),
    );
    (play.end(), culprit, Vec::new())
}
