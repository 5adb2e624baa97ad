//! The daemon starts, tells how it does, reads its configuration again without dropping what
//! is open, and ends in an orderly manner; there is one for each store.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use support::daemon::{ADMIN, Daemon, relay, relay_at};
use support::http::{EVENTS, LAST_CHUNK, Origin, Wire, chunk, get_events, json_answer, post};
use support::processes::wait_until_gone;
use support::{ANSWER, Home, REQUEST, wait_for};

/// A client that reads an event stream through this relay, and the server's end of it.
fn stream(daemon: &Daemon<'_>, name: &str, origin: &Origin) -> (Wire, Wire) {
    let mut client = Wire::to(daemon.address(name));
    client.send(get_events("/mcp", ""));
    let mut server = origin.accept();
    server.read_head();
    server.send(EVENTS);
    server.send(chunk(event(0)));
    assert!(client.read_head().starts_with("HTTP/1.1 200"));
    assert_eq!(client.read_chunked(event(0).len()), event(0).as_bytes());
    (client, server)
}

fn event(number: u32) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"n{number}\"}}\n\n")
}

/// One event passes.
fn passes(client: &mut Wire, server: &mut Wire, number: u32) {
    server.send(chunk(event(number)));
    let expected = event(number);
    assert_eq!(client.read_chunked(expected.len()), expected.as_bytes());
}

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn it_starts_tells_how_it_does_and_ends() {
    let home = Home::new();
    let said = home.run(["daemon", "status"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (1, "no daemon runs for this store\n")
    );
    assert_eq!(home.run(["daemon", "stop"]).code, 2);

    let origin = Origin::new().answering(json_answer(ANSWER));
    home.configure(&(ADMIN.to_owned() + &relay("one", &origin.url(), "")));
    let started = home.ok(["daemon", "start"]);
    let daemon = Daemon::running(&home);
    assert!(started.contains(&format!("one: http://{}", daemon.address("one"))));
    assert!(started.contains("/metrics"), "{started}");
    let store = home.store_folder();
    assert_eq!(mode(&store), 0o700);
    for name in ["control.sock", "daemon.lock", "daemon.log"] {
        assert_eq!(mode(store.join(name)), 0o600, "{name}");
    }

    assert_eq!(daemon.call("one", REQUEST).body, ANSWER.as_bytes());
    let status = daemon.status();
    assert_eq!(status["relays"][0]["exchanges"], 1, "{status}");
    assert_eq!(status["program"], env!("CARGO_PKG_VERSION"));
    assert_eq!(daemon.get("/healthz").text(), "ok");
    let ready = daemon.get("/readyz");
    assert_eq!((ready.status(), ready.text()), (200, "ok"));
    assert_eq!(daemon.metric("exchanges_total") as u64, 1);
    assert_eq!(daemon.metric("recording") as u64, 1);
    assert!(daemon.metric("relay_latency_seconds_count") >= 1.0);
    wait_for("both messages in the metrics", || {
        let frames = |to| daemon.metric(&format!("frames_total{{to=\"{to}\"}}"));
        (frames("server") + frames("client") == 2.0).then_some(())
    });
    assert_eq!(daemon.status()["recording"]["sessions"], 1);
    assert_eq!(daemon.metric("gaps_total") as u64, 0);
    let doctor = home.ok(["doctor"]);
    let line = format!(
        "relay: http://{} accepts connections",
        daemon.address("one")
    );
    assert!(doctor.contains(&line), "{doctor}");

    // There is one for each store, and it says which.
    for words in [["daemon", "start"], ["daemon", "run"]] {
        let said = home.run(words);
        assert_eq!(said.code, 2, "{said:?}");
        let who = format!("a daemon (process {}) runs for", daemon.process.pid);
        assert!(said.err.contains(&who), "{said:?}");
    }

    assert_eq!(home.ok(["daemon", "stop"]), "the daemon ended\n");
    wait_until_gone(&[daemon.process]);
    assert!(!store.join("control.sock").exists() && !store.join("daemon.lock").exists());
    assert!(daemon.log().contains("daemon ended"), "{}", daemon.log());
    // What it recorded is complete, and its sessions have ended.
    let run = home.only_run();
    assert!(run.is_whole() && run.gaps.is_empty() && run.end.is_some());
    home.ok(["daemon", "start"]);
    drop(Daemon::running(&home));
}

#[test]
fn what_it_tells_is_for_this_machine_only() {
    let home = Home::new();
    let daemon = home.daemon(ADMIN);
    let ask = |line: &str, host: &str| daemon.ask(&format!("{line} HTTP/1.1\r\n{host}\r\n"));
    for host in ["localhost", "127.0.0.1:4747", "[::1]"] {
        let said = ask("GET /healthz", &format!("Host: {host}\r\n"));
        assert_eq!(said.status(), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        let said = ask("GET /metrics", &format!("Host: {host}\r\n"));
        assert_eq!(said.status(), 403, "{host}");
    }
    let twice = "Host: localhost\r\nHost: evil.example\r\n";
    assert_ne!(ask("GET /metrics", twice).status(), 200);
    assert_eq!(
        ask("GET http://evil.example/metrics", "Host: localhost\r\n").status(),
        403
    );
    assert_eq!(ask("GET /", "Host: localhost\r\n").status(), 404);
    let refused = ask("DELETE /metrics", "Host: localhost\r\n");
    assert_eq!(refused.status(), 405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
    let page = daemon.get("/metrics");
    let kind = page.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    for line in page.text().lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("agent_trace_"), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_reload_drops_no_stream() {
    let home = Home::new();
    let (old, new) = (Origin::new(), Origin::new());
    let daemon = home.daemon(&(ADMIN.to_owned() + &relay("one", &old.url(), "")));
    let address = daemon.address("one");
    let (mut client, mut server) = stream(&daemon, "one", &old);

    // Another server for the same listener: what is open goes on, what is new goes there.
    home.configure(&(ADMIN.to_owned() + &relay("one", &new.url(), "")));
    daemon.signal("HUP");
    daemon.wait_for_log("configuration read again");
    passes(&mut client, &mut server, 1);
    assert_eq!(daemon.address("one"), address);
    let mut other = Wire::to(address);
    other.send(post(REQUEST));
    let mut at_new = new.accept();
    at_new.read_message();
    at_new.send(json_answer(ANSWER));
    assert_eq!(other.read_message().body, ANSWER.as_bytes());

    // A listener more.
    let two = relay("two", &new.url(), "");
    let said = daemon.reload(&(ADMIN.to_owned() + &relay("one", &new.url(), "") + &two));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("relaying http://"), "{said:?}");
    let (mut client_2, mut server_2) = stream(&daemon, "two", &new);
    passes(&mut client, &mut server, 2);

    // An error: all stays as it was.
    let said = daemon.reload("[[relay]]\nlisten = \"127.0.0.1:0\"\ntoo = 1\n");
    assert_eq!(said.code, 2, "{said:?}");
    for text in [
        "going on as before",
        "line 3",
        "unknown field `too`",
        "did you mean `to`?",
        "config.toml",
    ] {
        assert!(said.err.contains(text), "{text}: {said:?}");
    }
    passes(&mut client, &mut server, 3);
    passes(&mut client_2, &mut server_2, 3);

    // Both listeners are gone; what is open still goes on.
    let said = daemon.reload("[daemon]\nlisten = \"off\"\n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out
            .contains(&format!("no longer relaying http://{address}"))
    );
    wait_for("the listener to be closed", || {
        std::net::TcpStream::connect(address).err()
    });
    passes(&mut client, &mut server, 4);
    passes(&mut client_2, &mut server_2, 4);
    assert_eq!(daemon.status()["relays"], serde_json::json!([]));
    assert_eq!(daemon.status()["admin"]["address"], serde_json::Value::Null);
    server.send(LAST_CHUNK);
    assert_eq!(client.read_chunk(), None);
    assert_eq!(home.run(["daemon", "reload"]).out, "nothing changed\n");
}

#[test]
fn an_address_that_is_taken_holds_nothing_else_up() {
    let home = Home::new();
    let origin = Origin::new().answering(json_answer(ANSWER));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap();
    let both = ADMIN.to_owned()
        + &relay_at(&place.to_string(), "taken", &origin.url(), "")
        + &relay("free", &origin.url(), "");
    home.configure(&both);
    let said = home.run(["daemon", "start"]);
    let daemon = Daemon::running(&home);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out.contains(&format!("cannot listen on {place}")),
        "{said:?}"
    );
    assert_eq!(daemon.call("free", REQUEST).body, ANSWER.as_bytes());
    let ready = daemon.get("/readyz");
    assert_eq!(ready.status(), 503);
    assert!(ready.text().contains(&format!("cannot listen on {place}")));
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    let said = daemon.reload(&(both + "idle = \"1h\"\n"));
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("but: cannot listen on"), "{said:?}");
    assert!(said.out.contains("now relaying http://"), "{said:?}");

    // Once it is free it is taken, without anybody's doing.
    drop(taken);
    wait_for("the listener", || {
        (daemon.get("/readyz").status() == 200).then_some(())
    });
    assert_eq!(daemon.call("taken", REQUEST).body, ANSWER.as_bytes());
}

#[test]
fn killed_it_starts_again() {
    let home = Home::new();
    let origin = Origin::new().answering(json_answer(ANSWER));
    let config = ADMIN.to_owned() + &relay("one", &origin.url(), "");
    let daemon = home.daemon(&config);
    daemon.signal("KILL");
    wait_until_gone(&[daemon.process]);
    assert!(
        home.at("store/control.sock").exists(),
        "what a dead one leaves"
    );
    // What it was starting may hold its lock for a moment longer.
    wait_for("nobody to have the lock", || {
        (home.run(["daemon", "status"]).code == 1).then_some(())
    });
    let again = home.daemon(&config);
    assert_ne!(again.process, daemon.process);
    assert_eq!(again.call("one", REQUEST).body, ANSWER.as_bytes());
}

#[test]
fn what_is_open_comes_to_its_end_before_the_daemon_does() {
    let home = Home::new();
    let origin = Origin::new();
    let lines = "[daemon]\nlisten = \"off\"\ndrain = \"30s\"\n";
    let daemon = home.daemon(&(lines.to_owned() + &relay("one", &origin.url(), "")));
    let mut client = Wire::to(daemon.address("one"));
    client.send(post(REQUEST));
    let mut server = origin.accept();
    server.read_message();
    daemon.signal("TERM");
    daemon.wait_for_log("ending: open exchanges have 30 s");
    assert_eq!(daemon.status()["stopping"], true);
    let late = home.run(["daemon", "reload"]);
    assert_eq!(
        (late.code, late.err.as_str()),
        (2, "error: the daemon is ending\n")
    );
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().body, ANSWER.as_bytes());
    wait_until_gone(&[daemon.process]);
    assert!(!daemon.log().contains("cut off"), "{}", daemon.log());
}

#[test]
fn a_second_signal_cuts_off_what_is_open() {
    let home = Home::new();
    let origin = Origin::new();
    let lines = "[daemon]\nlisten = \"off\"\ndrain = \"10m\"\n";
    let daemon = home.daemon(&(lines.to_owned() + &relay("one", &origin.url(), "")));
    let (mut client, mut server) = stream(&daemon, "one", &origin);
    daemon.signal("TERM");
    daemon.wait_for_log("ending: open exchanges have 600 s");
    passes(&mut client, &mut server, 1);
    let began = Instant::now();
    daemon.signal("INT");
    wait_until_gone(&[daemon.process]);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(
        daemon.log().contains("exchanges that were cut off: 1"),
        "{}",
        daemon.log()
    );
    assert!(!home.at("store/daemon.lock").exists());
}

#[test]
fn a_start_that_fails_says_why() {
    let home = Home::new();
    home.configure("[daemon]\nlisten = \"127.0.0.1:0\"\ndrian = \"5s\"\n");
    for words in [["daemon", "start"], ["daemon", "run"]] {
        let said = home.run(words);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("did you mean `drain`?"), "{said:?}");
    }
    // What only shows in the background: the last lines of its log.
    home.configure(ADMIN);
    fs::create_dir_all(home.at("store/control.sock/x")).unwrap();
    let said = home.run(["daemon", "start"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("the daemon did not start"), "{said:?}");
    assert!(
        said.err.contains("cannot open the control socket"),
        "{said:?}"
    );
}

#[test]
fn the_control_socket_answers_what_it_does_not_know() {
    let home = Home::new();
    let daemon = home.daemon(ADMIN);
    for (line, answer) in [
        (
            "{\"version\":7,\"command\":\"status\"}\n",
            "speaks version 1 of the control protocol, not 7",
        ),
        (
            "{\"version\":1,\"command\":\"dance\"}\n",
            "knows status, stop and reload, not",
        ),
        ("hello\n", "not a request"),
        ("", "not a request"),
        (&"[".repeat(100_000), "not a request"),
    ] {
        let said = daemon.say(line);
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["version"], 1);
        assert!(said["error"].as_str().unwrap().contains(answer), "{said}");
    }
    let said = daemon.say("{\"version\":1,\"command\":\"status\",\"later\":true}\n");
    assert!(said.contains("\"status\""), "{said}");
    assert!(daemon.process.is_alive());
}

#[test]
fn a_long_path_to_the_store_is_no_hindrance() {
    let home = Home::new();
    let store = home.at("x".repeat(120));
    home.configure(ADMIN);
    let run = |words: &[&str]| {
        let mut command = home.program();
        command
            .env("AGENT_TRACE_DIR", &store)
            .env("XDG_RUNTIME_DIR", home.at("tmp"));
        support::Said::by(command.args(words), b"")
    };
    let said = run(&["daemon", "start"]);
    assert_eq!(said.code, 0, "{said:?}");
    let folder = home.at("tmp/agent-trace");
    assert_eq!(mode(&folder), 0o700);
    let socket = folder.read_dir().unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&socket), 0o600);
    // Others find it without the same environment.
    let mut command = home.program();
    command
        .args(["daemon", "stop"])
        .env("AGENT_TRACE_DIR", &store);
    assert_eq!(support::Said::by(&mut command, b"").code, 0);
    assert!(!socket.exists());
}

#[test]
fn a_broken_file_keeps_nobody_from_ending_it() {
    let home = Home::new();
    let daemon = home.daemon(ADMIN);
    for broken in ["[daemon", "[deamon]\n", "store = 7"] {
        home.configure(broken);
        assert_eq!(daemon.status()["stopping"], false, "{broken}");
        assert_eq!(home.run(["daemon", "reload"]).code, 2, "{broken}");
    }
    home.ok(["daemon", "stop"]);
}

#[test]
fn units_hold_what_was_given() {
    let home = Home::new();
    home.configure("[daemon]\ndrain = \"20s\"\n");
    let unit = home.ok(["--store", "my 100% store", "daemon", "unit", "--systemd"]);
    let program = env!("CARGO_BIN_EXE_agent-trace");
    let line = format!(
        "\nExecStart={program} --store \"{}/my 100%% store\" --config {} daemon run\n",
        home.at("work").display(),
        home.config_file().display()
    );
    assert!(unit.contains(&line), "{unit}");
    assert!(
        unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"),
        "{unit}"
    );
    assert!(unit.contains("\nTimeoutStopSec=31\n"), "{unit}");
    let list = home.ok(["--store", "<&>", "daemon", "unit", "--launchd"]);
    assert!(list.contains("work/&lt;&amp;&gt;</string>"), "{list}");
}
