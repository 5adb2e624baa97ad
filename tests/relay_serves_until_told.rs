//! `relay` says where it listens, refuses what would be unsafe, relays whatever recording
//! does, and ends when it is told to.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::io::BufRead;
use std::net::TcpListener;
use std::time::Duration;
use support::http::{Origin, Wire, json_answer, post};
use support::{ANSWER, Home, REQUEST};

#[test]
fn it_says_what_the_client_has_to_be_told_and_ends_by_a_signal() {
    let home = Home::new();
    let origin = Origin::new().answering(json_answer(ANSWER));
    for signal in ["TERM", "INT", "HUP"] {
        let relay = home.relay(format!("{}/mcp", origin.url())).start();
        let line = format!(
            "agent-trace: relaying {}/mcp -> {}/mcp\n",
            relay.url(),
            origin.url()
        );
        assert_eq!(relay.session.errors(), line);
        assert_eq!(relay.ask(post(REQUEST)).body, ANSWER.as_bytes());
        relay.session.signal(signal);
        let ended = relay.session.wait();
        assert_eq!(ended.code, 0, "{signal}: {ended:?}");
    }
}

#[test]
fn an_open_exchange_has_the_drain_time_unless_a_second_signal_comes() {
    let home = Home::new();
    let origin = Origin::new();
    let relay = home.relay(origin.url()).option("--drain=10m").start();
    let mut client = relay.connect();
    client.send(post(REQUEST));
    let mut server = origin.accept();
    server.read_message();
    relay.session.signal("TERM");
    // It takes no more connections, but waits for what is open.
    support::wait_for("the listener to be closed", || {
        std::net::TcpStream::connect(relay.address()).err()
    });
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().body, ANSWER.as_bytes());
    assert_eq!(relay.session.wait().code, 0);

    for drain in ["--drain=10m", "--drain=200ms"] {
        let relay = home.relay(origin.url()).option(drain).start();
        let mut client = relay.connect();
        client.send(post(REQUEST));
        let mut server = origin.accept();
        server.read_message();
        relay.session.signal("TERM");
        if drain == "--drain=10m" {
            assert!(client.is_silent_for(Duration::from_millis(300)));
            relay.session.signal("TERM");
        }
        let ended = relay.session.wait_at_most(Duration::from_secs(20), drain);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(String::from_utf8_lossy(&ended.err).contains("exchanges that were cut off: 1"));
    }
}

#[test]
fn what_cannot_be_relayed_is_said() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "127.0.0.1:0";
    for (listen, to, error, hint) in [
        (
            free,
            "localhost:3000",
            "cannot relay to this URL",
            "https://mcp.example.com/mcp",
        ),
        (
            free,
            "stdio://x",
            "only http:// and https://",
            "agent-trace record",
        ),
        (
            free,
            "http://u:hunter2secret@x/",
            "user name or password",
            "assistant's configuration",
        ),
        (
            free,
            "http://x/?key=hunter2secret",
            "a query",
            "assistant's configuration",
        ),
        (
            &taken,
            "http://x",
            "in use",
            "another program listens there",
        ),
        (
            "192.0.2.1:0",
            "http://x",
            "192.0.2.1:0 can be reached",
            "--allow-host",
        ),
        (
            "127.0.0.1:9",
            "http://localhost:9/mcp",
            "relay to itself",
            "own address",
        ),
        ("nowhere", "http://x", "no address and port", "--help"),
    ] {
        let said = home.run(["relay", "--listen", listen, "--to", to]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(
            said.err.contains(error) && said.err.contains(hint),
            "{said:?}"
        );
        assert!(!said.err.contains("hunter2secret"), "{said:?}");
    }
    let said = home.run([
        "relay",
        "--listen",
        "192.0.2.1:0",
        "--to",
        "http://x",
        "--allow-host",
        "h",
    ]);
    assert!(
        said.err.contains("cannot listen on 192.0.2.1:0"),
        "{said:?}"
    );
}

#[test]
fn it_relays_whatever_recording_does() {
    let home = Home::new();
    let origin = Origin::new().answering(json_answer(ANSWER));
    let off = home.relay(origin.url()).env("AGENT_TRACE", "off").start();
    assert!(off.session.errors().contains("(not recorded)"));
    assert_eq!(off.ask(post(REQUEST)).body, ANSWER.as_bytes());
    assert_eq!(off.stop().code, 0);
    assert!(!home.store_folder().exists(), "nothing is recorded");

    let folder = home.at("home/.config/agent-trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[recrod]\n").unwrap();
    let broken = home.relay(origin.url()).start();
    broken.session.wait_for_error("not recording: cannot read");
    assert_eq!(broken.ask(post(REQUEST)).body, ANSWER.as_bytes());
    assert!(broken.session.errors().contains("did you mean `record`?"));
    assert_eq!(broken.stop().code, 0);
    assert!(!home.store_folder().exists(), "nothing is recorded");
}

#[test]
fn it_relays_on_when_nobody_reads_what_it_says() {
    let home = Home::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = home.program();
    command
        .args(["--log", "info", "relay", "--listen", "127.0.0.1:0"])
        // Nobody listens there, which is told each time.
        .args(["--to", "http://127.0.0.1:9"])
        .stderr(writer);
    let session = support::Session::of(&mut command);
    drop(command);
    let mut reader = std::io::BufReader::new(reader);
    let mut line = String::new();
    let address = loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some((_, rest)) = line.split_once("relaying http://") {
            break rest.split(' ').next().unwrap().parse().unwrap();
        }
    };
    drop(reader);
    for _ in 0..3 {
        let mut client = Wire::to(address);
        client.send(post(REQUEST));
        assert_eq!(client.read_message().status(), 502);
    }
    session.signal("TERM");
    assert_eq!(session.wait().code, 0);
}
