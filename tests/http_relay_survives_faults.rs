//! Whatever a client or a server does over HTTP, it does it to itself: the relay lives, others are
//! served, the two ends of an exchange learn of each other's end at once, and memory is bounded.
//!
//! W numbers are those of the list of wire cases that were reported for proxies.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use std::thread::scope;
use std::time::{Duration, Instant};
use support::http::{
    EVENTS, End, Origin, Pair, SOON, Wire, answer, chunk, get_events, json_answer, post, post_with,
};
use support::{ANSWER, Home, REQUEST, shown, wait_for};

const MIB: u64 = 1 << 20;

#[test]
fn w06_a_client_that_is_gone_is_gone_for_the_server_too() {
    let pair = Pair::new();
    let (client, mut server) = pair.stream();
    client.close();
    assert!(server.wait_for_end() < SOON);

    let (client, mut server) = pair.stream();
    client.reset();
    assert!(server.wait_for_end() < SOON);

    // In the midst of a call.
    let (client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    client.reset();
    assert!(server.wait_for_end() < SOON);

    // In the midst of a request: what arrived must not look whole.
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (mut client, mut server) = pair.connect(head);
    client.send(chunk("{\"jsonrpc\":"));
    server.read_head();
    client.close();
    let (came, _) = server.read_to_end();
    assert!(!came.ends_with(b"0\r\n\r\n"), "{}", shown(&came));
    pair.serves_soon();
}

#[test]
fn w06_silent_connections_are_asked_whether_they_live() {
    let pair = Pair::new();
    let (client, server) = pair.stream();
    let (port, origin) = (pair.relay.address().port(), pair.origin.address().port());
    let timers = |is: &dyn Fn(SocketPorts) -> bool| -> Vec<String> {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let sockets = table.lines().skip(1).filter_map(Socket::read);
        sockets
            .filter(|socket| is(socket.ports))
            .map(|socket| socket.timer)
            .collect()
    };
    let clients_port = client.address().port();
    let servers_port = server.peer().port();
    // 02: the keep-alive timer runs; 01 while something is not acknowledged yet.
    wait_for("both connections to be watched", || {
        let to_client = timers(&|ports| ports == (port, clients_port));
        let to_server = timers(&|ports| ports == (servers_port, origin));
        (to_client == ["02"] && to_server == ["02"]).then_some(())
    });
}

type SocketPorts = (u16, u16);

/// A line of `/proc/net/tcp`.
struct Socket {
    ports: SocketPorts,
    timer: String,
}

impl Socket {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut port = || u16::from_str_radix(words.next()?.split_once(':')?.1, 16).ok();
        let ports = (port()?, port()?);
        let timer = words.nth(2)?.split_once(':')?.0.to_owned();
        Some(Self { ports, timer })
    }
}

#[test]
fn a_client_that_says_it_will_send_no_more_counts_as_gone() {
    let pair = Pair::new();
    let (client, mut server) = pair.stream();
    client.end_sending();
    assert!(server.wait_for_end() < SOON);
    pair.serves_soon();
}

#[test]
fn a_stream_that_breaks_off_does_not_end_as_if_it_were_whole() {
    let pair = Pair::new();
    for by_reset in [false, true] {
        let (mut client, server) = pair.stream();
        let began = Instant::now();
        if by_reset {
            server.reset();
        } else {
            server.close();
        }
        let (rest, _) = client.read_to_end();
        assert_eq!(shown(&rest), "", "no last chunk");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());

        let (mut client, mut server) = pair.connect(post(REQUEST));
        server.read_message();
        server.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
        client.read_head();
        assert_eq!(client.read(8), b"{\"half\":");
        if by_reset {
            server.reset();
        } else {
            server.close();
        }
        assert_eq!(shown(&client.read_to_end().0), "");
    }
    // Without length or chunks the end of the connection is the end: only a reset tells.
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send("HTTP/1.1 200 OK\r\n\r\n{\"half\":");
    let head = client.read_head().to_lowercase();
    server.reset();
    let (rest, end) = client.read_to_end();
    let clean = head.contains("chunked") && rest.ends_with(b"0\r\n\r\n")
        || !head.contains("chunked") && end == End::Closed;
    assert!(!clean, "{head}{}", shown(&rest));
    pair.serves_soon();
}

#[test]
fn a_server_that_closes_instead_of_answering_is_a_bad_gateway() {
    let pair = Pair::new();
    for by_reset in [false, true] {
        let (mut client, mut server) = pair.connect(post(REQUEST));
        server.read_message();
        if by_reset {
            server.reset();
        } else {
            server.close();
        }
        let answered = client.read_message();
        assert_eq!(answered.status(), 502);
        assert_eq!(answered.header("content-type"), Some("application/json"));
        assert_eq!(answered.json()["error"]["side"], "server");
    }
    // Asked once: a call may have had its effect.
    assert!(pair.origin.is_left_alone_for(Duration::from_millis(200)));
    pair.serves_soon();
}

#[test]
fn a_server_that_is_not_there_is_a_bad_gateway_until_it_is() {
    let (home, origin) = (Home::new(), Origin::new());
    let (url, address) = (origin.url(), origin.address());
    drop(origin);
    let relay = home.relay(&url).start();
    let mut client = relay.connect();
    for _ in 0..3 {
        client.send(post(REQUEST));
        let answered = client.read_message();
        assert_eq!(answered.status(), 502);
        let error = answered.json()["error"].clone();
        assert_eq!(
            (&error["side"], &error["status"]),
            (&"server".into(), &502.into())
        );
    }
    let origin = Origin::at(address);
    client.send(post(REQUEST));
    let mut server = origin.accept();
    server.read_message();
    server.send(json_answer(ANSWER));
    assert_eq!(client.read_message().text(), ANSWER);
}

#[test]
fn a_server_that_does_not_take_connections_is_a_gateway_time_out() {
    let home = Home::new();
    let origin = Origin::full();
    let relay = home.relay(origin.url());
    let relay = relay.option("--connect-timeout").option("1s").start();
    let began = Instant::now();
    let answered = relay.ask(post(REQUEST));
    assert_eq!(answered.status(), 504);
    assert_eq!(answered.json()["error"]["side"], "server");
    let took = began.elapsed();
    assert!(
        took > Duration::from_millis(900) && took < Duration::from_secs(20),
        "{took:?}"
    );
}

#[test]
fn a_server_that_was_restarted_is_connected_to_anew() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    server.send(json_answer(ANSWER));
    client.read_message();
    server.close();
    // The session is gone, which the client shall learn from the server.
    std::thread::sleep(Duration::from_millis(50));
    client.send(post_with("Mcp-Session-Id: old\r\n", REQUEST));
    let mut server = pair.origin.accept();
    server.read_message();
    server.send(answer(
        "404 Not Found",
        "",
        "{\"error\":\"no such session\"}",
    ));
    let answered = client.read_message();
    assert_eq!(
        (answered.status(), answered.text()),
        (404, "{\"error\":\"no such session\"}")
    );
}

#[test]
fn w08_a_client_that_reads_nothing_slows_only_itself() {
    let pair = Pair::new();
    let process = pair.relay.process();
    let (mut client, mut server) = pair.connect(post(REQUEST));
    server.read_message();
    let before = process.memory();
    let size = 50 * MIB;
    scope(|threads| {
        let writing = threads.spawn(move || {
            server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n"));
            send_much(&mut server, size);
        });
        // Full to the brim, as far as the system takes it.
        std::thread::sleep(Duration::from_millis(300));
        for _ in 0..20 {
            pair.serves_soon();
        }
        assert!(!writing.is_finished(), "nobody has taken it");
        let grown = process.memory().saturating_sub(before);
        assert!(grown < 40 * MIB, "{} MiB more", grown / MIB);
        client.read_head();
        client.skip(size);
        writing.join().unwrap();
    });
}

#[test]
fn w08_a_server_that_reads_nothing_slows_only_itself() {
    let pair = Pair::new();
    let process = pair.relay.process();
    let size = 50 * MIB;
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n");
    let (mut client, mut server) = pair.connect(head);
    let before = process.memory();
    scope(|threads| {
        let writing = threads.spawn(move || {
            send_much(&mut client, size);
            client
        });
        std::thread::sleep(Duration::from_millis(300));
        for _ in 0..20 {
            pair.serves_soon();
        }
        assert!(!writing.is_finished(), "nobody has taken it");
        let grown = process.memory().saturating_sub(before);
        assert!(grown < 40 * MIB, "{} MiB more", grown / MIB);
        server.read_head();
        server.skip(size);
        server.send(json_answer(ANSWER));
        assert_eq!(writing.join().unwrap().read_message().text(), ANSWER);
    });
}

/// Sends so many bytes, which are the same for each MiB.
fn send_much(wire: &mut Wire, size: u64) {
    let piece: Vec<u8> = (0_u32..(MIB / 4) as u32)
        .flat_map(u32::to_le_bytes)
        .collect();
    for _ in 0..size / MIB {
        wire.send(&piece);
    }
}

/// How much is sent to see whether memory grows with it: 1 GiB if asked for.
fn much() -> u64 {
    match std::env::var_os("AGENT_TRACE_TEST_LARGE") {
        Some(_) => 1024 * MIB,
        None => 100 * MIB,
    }
}

#[test]
fn w18_w42_bodies_of_any_size_pass_in_little_memory() {
    let pair = Pair::new();
    let process = pair.relay.process();
    pair.serves();
    let before = process.memory();
    let size = much();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n");
    let (mut client, mut server) = pair.connect(head);
    scope(|threads| {
        let sending = threads.spawn(|| {
            send_much(&mut client, size);
        });
        server.read_head();
        server.skip(size);
        sending.join().unwrap();
    });
    scope(|threads| {
        threads.spawn(|| {
            server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
            let event = [b"data: ".to_vec(), vec![b'x'; MIB as usize - 8], b"\n\n".to_vec()].concat();
            for _ in 0..size / MIB {
                server.send(chunk(&event));
            }
            server.send("0\r\n\r\n");
        });
        client.read_head();
        let mut count = 0;
        while let Some(data) = client.read_chunk() {
            count += data.len() as u64;
        }
        assert_eq!(count, size);
    });
    let grown = process.peak_memory().saturating_sub(before);
    assert!(grown < 80 * MIB, "{} MiB more at its peak", grown / MIB);
    pair.serves_soon();
}

#[test]
fn clients_that_send_very_slowly_do_not_disturb_others() {
    let pair = Pair::new();
    let mut slow: Vec<Wire> = (0..200).map(|_| pair.relay.connect()).collect();
    for piece in [
        "POST",
        " /mcp HTTP/1.1\r\n",
        "Host: loc",
        "alhost\r\nX-A",
        ": 1\r\n",
    ] {
        slow.iter_mut().for_each(|client| client.send(piece));
        pair.serves_soon();
    }
    // Nothing of a head is forwarded before it is whole.
    assert!(pair.origin.try_accept().is_none());
    let mut last = slow.pop().unwrap();
    last.send("Content-Length: 2\r\n\r\n{}");
    let mut server = pair.origin.accept();
    assert_eq!(server.read_message().text(), "{}");
    drop(slow);
    pair.serves_soon();
}

#[test]
fn w50_descriptors_go_back_to_where_they_were() {
    let pair = Pair::new();
    let process = pair.relay.process();
    pair.serves();
    let idle = || {
        let mut last = 0;
        wait_for("the descriptors to stay the same", || {
            std::thread::sleep(Duration::from_millis(60));
            let now = process.descriptors();
            (std::mem::replace(&mut last, now) == now).then_some(now)
        })
    };
    let before = idle();
    let open: Vec<_> = (0..50).map(|_| pair.stream()).collect();
    assert!(process.descriptors() >= before + 100);
    for (number, (client, server)) in open.into_iter().enumerate() {
        match number % 4 {
            0 => client.reset(),
            1 => server.reset(),
            2 => drop(client),
            _ => drop(server),
        }
    }
    for _ in 0..20 {
        pair.serves();
    }
    wait_for("as few descriptors as before", || {
        (process.descriptors() <= before).then_some(())
    });
}

#[test]
fn w32_a_silent_stream_is_not_cut() {
    let pair = Pair::new();
    let (mut client, mut server) = pair.stream();
    // As long as a test may take; no time of the relay's own is running meanwhile.
    assert!(client.is_silent_for(Duration::from_secs(8)));
    server.send(chunk("data: 2\n\n"));
    assert_eq!(client.read_chunked(9), b"data: 2\n\n");
}

#[test]
fn w32_a_bound_for_silence_ends_only_what_is_silent() {
    let (home, origin) = (Home::new(), Origin::new());
    let relay = home
        .relay(origin.url())
        .option("--idle")
        .option("1s")
        .start();
    let open = || {
        let mut client = relay.connect();
        client.send(get_events("/mcp", ""));
        let mut server = origin.accept();
        server.read_head();
        server.send(EVENTS);
        client.read_head();
        (client, server)
    };
    let (mut quiet, mut its_server) = open();
    let (mut lively, mut server) = open();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(250));
        server.send(chunk(": alive\n\n"));
        assert_eq!(lively.read_chunked(9), b": alive\n\n");
    }
    let (rest, _) = quiet.read_to_end();
    assert_eq!(shown(&rest), "", "no last chunk");
    assert!(its_server.wait_for_end() < SOON);
}
