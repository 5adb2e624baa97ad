//! The relay ends when its server or its host does, never later, never without the server, and
//! with the server's own status.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/support.rs"]
mod support;

use agent_trace_model::Ending;
use agent_trace_store::trace::Session as Run;
use agent_trace_store::trace::session::Standing;
use std::fs;
use std::process::Command;
use std::time::Duration;
use support::processes::{end, wait_until_gone, wait_until_gone_in};
use support::recorded::{ServerToClient, assert_recorded, frames, stream};
use support::{ANSWER, Home, Process, REQUEST, Server, Session, assert_same, wait_for};

/// What should take no time, on a loaded machine.
const SOON: Duration = Duration::from_secs(10);

/// How the run in the trace ended: why, exit status, signal.
fn ending(run: &Run) -> (Ending, Option<i32>, Option<i32>) {
    let end = &run.end.as_ref().expect("a recorded end").end;
    (end.ending, end.exit_code, end.signal)
}

/// A session whose server has answered a request, with all processes of it.
fn under_way(home: &Home, server: &Server) -> (Session, Vec<Process>) {
    let session = home.record().unredacted().start(server);
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    let processes = session.process.tree();
    assert!(processes.len() >= 2, "the relay and its server");
    (session, processes)
}

/// A server that answers and then waits for the end of its input.
fn answering() -> Server {
    Server::new()
        .reads_a_line()
        .writes(ANSWER)
        .reads_to_the_end()
}

/// A server that answers and then takes no notice of its input any more.
fn deaf() -> Server {
    Server::new().reads_a_line().writes(ANSWER).stays()
}

// The host ends.

#[test]
fn the_end_of_input_ends_server_and_relay() {
    let home = Home::new();
    let server = answering();
    let (session, processes) = under_way(&home, &server);
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 0);
    assert!(ended.took < SOON, "{:?}", ended.took);
    assert!(server.has_noted("end"));
    wait_until_gone(&processes);
    let run = home.only_run();
    assert_eq!(ending(&run), (Ending::ClientClosed, Some(0), None));
    assert_eq!(run.standing(), Standing::Ended);
}

#[test]
fn w16_an_answer_after_the_end_of_input_still_arrives() {
    let home = Home::new();
    let server = Server::new().reads_to_the_end().sleeps(0.5).writes(ANSWER);
    let ended = home.record().unredacted().talk(&server, REQUEST);
    assert_eq!(ended.code, 0);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_recorded(&home.only_run(), ServerToClient, ANSWER.as_bytes());
}

#[test]
fn w01_a_server_that_ignores_the_end_of_its_input_is_ended_after_a_grace() {
    let home = Home::new();
    let server = deaf();
    let (session, processes) = under_way(&home, &server);
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 128 + 15);
    assert!(
        ended.took > Duration::from_secs(4),
        "there is a grace: {:?}",
        ended.took
    );
    assert_eq!(server.note("signals"), ["SIGTERM"]);
    wait_until_gone(&processes);
    assert_eq!(ending(&home.only_run()).0, Ending::GraceExpired);
}

#[test]
fn w01_a_server_that_ignores_the_request_to_end_as_well_is_killed() {
    let home = Home::new();
    let server = deaf_to_term();
    let (session, processes) = under_way(&home, &server);
    session.close_input();
    assert_eq!(session.wait().code, 128 + 9);
    assert_eq!(server.note("signals"), ["SIGTERM"], "it was asked first");
    wait_until_gone(&processes);
    let run = home.only_run();
    assert_eq!(ending(&run), (Ending::GraceExpired, None, Some(9)));
    assert!(run.end.unwrap().end.killed);
}

fn deaf_to_term() -> Server {
    Server::new()
        .ignores(&["SIGTERM"])
        .reads_a_line()
        .writes(ANSWER)
        .stays()
}

#[test]
fn w01_a_server_that_still_owes_an_answer_or_still_speaks_is_waited_for() {
    // Both take longer than the grace of a server that owes nothing.
    let owes = Server::new().reads_to_the_end().sleeps(7.0).writes(ANSWER);
    let speaks =
        Server::new()
            .reads_to_the_end()
            .writes_in_pieces(ANSWER, ANSWER.len() / 3 + 1, 3.0);
    std::thread::scope(|scope| {
        for (server, input) in [(owes, REQUEST), (speaks, "")] {
            scope.spawn(move || {
                let home = Home::new();
                let ended = home.record().unredacted().talk(&server, input);
                assert_eq!(ended.code, 0, "{input:?}");
                assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
                assert_eq!(ending(&home.only_run()).0, Ending::ClientClosed);
            });
        }
    });
}

#[test]
fn w04_a_host_that_stops_reading_ends_the_session_at_once() {
    let home = Home::new();
    let server = Server::new()
        .reads_a_line()
        .fills(ANSWER.repeat(4000), 50 << 20);
    let session = home.record().unredacted().reading_later().start(&server);
    let processes = [session.process, Process::of(server.pid())];
    session.send(REQUEST);
    let read = session.read(ANSWER.len());
    assert_same(&read, ANSWER.as_bytes(), "what the client got");
    // More than the pipe to the host holds, so the relay has bytes that it cannot deliver.
    wait_for("a relay that waits for its host", || {
        (session.process.bytes_read() > 110_000).then_some(())
    });
    session.stop_reading();
    wait_until_gone_in(SOON, &processes);
    let run = home.only_run();
    assert_eq!(ending(&run).0, Ending::ClientStoppedReading);
    let kept = stream(&run, ServerToClient);
    assert!(
        kept.starts_with(&read),
        "the trace keeps what the client had read"
    );
    let last = frames(&run, ServerToClient).pop().unwrap();
    assert!(last.contains("undelivered"), "{last}");
}

#[test]
fn w04_a_silent_server_ends_too_when_the_host_stops_reading() {
    let home = Home::new();
    let server = Server::new().stays();
    let session = home.record().reading_later().start(&server);
    let processes = [session.process, Process::of(server.pid())];
    session.stop_reading();
    wait_until_gone(&processes);
    assert_eq!(ending(&home.only_run()).0, Ending::ClientStoppedReading);
}

#[test]
fn a_host_that_closes_standard_error_does_not_end_the_session() {
    let home = Home::new();
    let server = Server::new()
        .complains("a complaint\n")
        .reads_a_line()
        .writes(ANSWER)
        .reads_to_the_end();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let record = home.record().unredacted().with(|command| {
        command.stderr(writer);
    });
    let ended = record.talk(&server, REQUEST);
    assert_eq!(ended.code, 0);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_same(&server.input(), REQUEST.as_bytes(), "what the server got");
}

#[test]
fn a_closed_standard_input_is_an_empty_one() {
    let home = Home::new();
    let server = Server::that_writes(ANSWER);
    let relay = home.record().unredacted().command(server.command());
    let ended = by_shell(&home, "exec \"$@\" <&-", &relay).wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_same(&server.input(), b"", "what the server got");
}

// The server ends.

#[test]
fn w51_a_server_that_exits_ends_the_relay_with_its_status_while_the_host_waits() {
    let home = Home::new();
    let server = Server::new().reads_a_line().fills(ANSWER, 300_000).exits(7);
    let session = home.record().unredacted().start(&server);
    let processes = session.process.tree();
    session.send(REQUEST);
    let (out, _) = session.wait_for_bytes(300_000);
    // The input stays open meanwhile.
    let ended = session.wait();
    assert_eq!(ended.code, 7);
    assert_same(&ended.out, &out, "all output came first");
    assert!(ended.took < SOON, "{:?}", ended.took);
    wait_until_gone(&processes);
    let run = home.only_run();
    assert_eq!(ending(&run), (Ending::ServerExited, Some(7), None));
    assert_eq!(run.standing(), Standing::Crashed);
    assert_recorded(&run, ServerToClient, &out);
}

#[test]
fn w51_nothing_is_lost_of_a_server_that_writes_and_exits_at_once() {
    let home = Home::new();
    let server = Server::new()
        .fills("0123456789abcde\n", 1_000_000)
        .complains("done\n")
        .notes("done");
    let session = home.record().unredacted().reading_later().start(&server);
    // The pipes are full and nobody reads: longer than an empty pipe would be waited for.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!server.has_noted("done") && !session.has_ended());
    session.begin_reading();
    let ended = session.wait();
    assert_eq!(ended.code, 0);
    let expected = b"0123456789abcde\n".repeat(1_000_000 / 16);
    assert_same(&ended.out, &expected, "what the client got");
    assert_same(&ended.err, b"done\n", "standard error");
    assert_recorded(&home.only_run(), ServerToClient, &expected);
}

#[test]
fn a_host_that_closes_because_the_server_crashed_does_not_hide_the_crash() {
    for _ in 0..20 {
        let home = Home::new();
        let server = Server::new().writes(ANSWER).exits(7);
        let session = home.record().start(&server);
        session.wait_for_end_of_output();
        session.close_input();
        assert_eq!(session.wait().code, 7);
        let run = home.only_run();
        assert_eq!(ending(&run), (Ending::ServerExited, Some(7), None));
        assert_eq!(run.standing(), Standing::Crashed);
    }
}

#[test]
fn every_exit_status_is_passed_on() {
    for code in [0, 1, 2, 127, 255] {
        let home = Home::new();
        let ended = home.record().talk(&Server::new().exits(code), "");
        assert_eq!(ended.code, code);
        let run = home.only_run();
        let end = run.end.as_ref().unwrap();
        assert_eq!((end.end.exit_code, end.end.signal), (Some(code), None));
        let shown = home.json(["show", "latest", "--format", "json"]);
        assert_eq!(shown["sessions"][0]["exit_code"], code);
    }
}

#[test]
fn a_signal_that_ended_the_server_is_128_and_its_number() {
    for (signal, number) in [("SIGKILL", 9), ("SIGSEGV", 11), ("SIGTERM", 15)] {
        let home = Home::new();
        let server = Server::new().dies_of(signal);
        let session = home.record().start(&server);
        let ended = session.wait();
        assert_eq!(ended.code, 128 + number, "{signal}");
        let run = home.only_run();
        assert_eq!(ending(&run), (Ending::ServerExited, None, Some(number)));
        // Some clients end a server with SIGTERM, which is no failure of it.
        let standing = match number {
            15 => Standing::Ended,
            _ => Standing::Crashed,
        };
        assert_eq!(run.standing(), standing, "{signal}");
        let shown = home.ok(["show", "latest"]);
        let line = format!("ended by signal {number}");
        assert!(shown.contains(&line), "{shown}");
    }
}

#[test]
fn a_server_that_closes_its_input_goes_on_speaking() {
    let home = Home::new();
    let server = Server::new()
        .reads_a_line()
        .closes(0)
        .notes("closed")
        .waits_for("more")
        .writes(ANSWER);
    let session = home.record().unredacted().start(&server);
    session.send(REQUEST);
    server.note("closed");
    // More than the pipe holds, so that the host would hang if nobody took or refused it.
    session.send("x".repeat(1 << 20));
    session.close_input_and_wait_for_that();
    server.go_on("more");
    let ended = session.wait();
    assert_eq!(ended.code, 0);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
}

#[test]
fn a_server_that_closes_its_output_goes_on_listening() {
    let home = Home::new();
    let server = Server::new()
        .writes(ANSWER)
        .closes(1)
        .reads_a_line()
        .notes("heard")
        .reads_to_the_end()
        .exits(3);
    let session = home.record().unredacted().start(&server);
    session.wait_for_end_of_output();
    session.send(REQUEST);
    server.note("heard");
    assert!(!session.has_ended());
    session.close_input();
    let ended = session.wait();
    assert_eq!(ended.code, 3);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    assert_same(&server.input(), REQUEST.as_bytes(), "what the server got");
}

#[test]
fn a_process_that_outlives_the_server_and_holds_its_output_is_not_waited_for() {
    let home = Home::new();
    let server = Server::new()
        .starts_a_process("holding output")
        .writes(ANSWER)
        .exits(3);
    let session = home.record().unredacted().start(&server);
    let left = Process::of(server.started_pids()[0]);
    let ended = session.wait();
    let is_left = left.is_alive();
    end(left);
    assert_eq!(ended.code, 3);
    assert!(ended.took < SOON, "{:?}", ended.took);
    assert_same(&ended.out, ANSWER.as_bytes(), "what the client got");
    // A server that leaves by itself may leave something behind, as it could without us.
    assert!(is_left);
}

#[test]
fn what_the_server_started_ends_when_the_host_has_ended() {
    let home = Home::new();
    let server = Server::new()
        .starts_a_process("holding nothing")
        .reads_to_the_end();
    let session = home.record().start(&server);
    let started = Process::of(server.started_pids()[0]);
    assert!(started.is_alive());
    session.close_input();
    assert_eq!(session.wait().code, 0);
    wait_until_gone(&[started]);
}

// A signal, or worse.

#[test]
fn w02_signals_are_passed_on_and_their_status_comes_back() {
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1)] {
        let home = Home::new();
        let server = answering();
        let (session, processes) = under_way(&home, &server);
        session.signal(signal);
        let ended = session.wait();
        assert_eq!(ended.code, 128 + number, "{signal}");
        assert!(ended.took < SOON, "{:?}", ended.took);
        assert_eq!(server.note("signals"), [format!("SIG{signal}")]);
        wait_until_gone(&processes);
        assert_eq!(ending(&home.only_run()).0, Ending::Signalled);
    }
}

#[test]
fn w02_a_server_decides_itself_what_a_signal_means() {
    let home = Home::new();
    let server = Server::new()
        .ignores(&["SIGINT", "SIGUSR1"])
        .answers_each_line(ANSWER)
        .exits(5);
    let (session, _) = under_way(&home, &server);
    session.signal("USR1");
    session.signal("INT");
    wait_for("both signals", || {
        (server.note("signals").len() == 2).then_some(())
    });
    session.send(REQUEST);
    session.wait_for_bytes(2 * ANSWER.len());
    session.close_input();
    assert_eq!(session.wait().code, 5);
}

#[test]
fn w02_a_server_that_ignores_a_term_is_killed() {
    let home = Home::new();
    let server = deaf_to_term();
    let (session, processes) = under_way(&home, &server);
    session.signal("TERM");
    assert_eq!(session.wait().code, 128 + 9);
    wait_until_gone(&processes);
    let run = home.only_run();
    assert_eq!(ending(&run), (Ending::Signalled, None, Some(9)));
}

#[test]
fn w03_a_launcher_between_does_not_leave_its_server_behind() {
    for signal in ["TERM", "KILL"] {
        let home = Home::new();
        let server = deaf().behind_a_launcher();
        let (session, processes) = under_way(&home, &server);
        let own = Process::of(server.pid());
        assert!(processes.contains(&own) && processes.len() >= 3);
        session.signal(signal);
        session.wait();
        wait_until_gone(&processes);
    }
}

#[test]
fn w03_a_launcher_is_ended_with_its_server_when_the_host_closes() {
    let home = Home::new();
    let server = deaf().behind_a_launcher();
    let (session, processes) = under_way(&home, &server);
    session.close_input();
    session.wait();
    wait_until_gone(&processes);
}

#[test]
fn a_relay_that_is_killed_takes_its_server_along() {
    for server in [answering(), deaf(), deaf_to_term()] {
        let home = Home::new();
        let (session, processes) = under_way(&home, &server);
        session.signal("KILL");
        assert_eq!(session.wait().code, -9);
        wait_until_gone(&processes);
        let run = home.only_run();
        assert_eq!(run.standing(), Standing::CutOff);
        assert!(home.ok(["runs"]).contains("cut off"));
    }
}

#[test]
fn a_relay_whose_parent_is_killed_ends_although_its_pipes_stay_open() {
    let home = Home::new();
    let server = deaf();
    let relay = home.record().unredacted().command(server.command());
    let script = "exec 3<&0; \"$@\" <&3 & echo $! > relay; wait";
    let parent = by_shell(&home, script, &relay);
    parent.send(REQUEST);
    parent.wait_for_bytes(ANSWER.len());
    let relay: u32 = fs::read_to_string(home.at("work/relay"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let processes = Process::of(relay).tree();
    assert!(processes.len() >= 2);
    // All pipes are held by this test, which lives on.
    parent.signal("KILL");
    wait_until_gone(&processes);
    assert_eq!(server.note("signals"), ["SIGTERM"]);
    let run = home.only_run();
    assert_eq!(ending(&run).0, Ending::ClientDied);
}

#[test]
fn a_relay_that_was_told_to_outlive_a_hangup_does() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER);
    let relay = home.record().unredacted().command(server.command());
    let session = by_shell(&home, "trap '' HUP; exec \"$@\"", &relay);
    session.send(REQUEST);
    session.wait_for_bytes(ANSWER.len());
    session.signal("HUP");
    session.send(REQUEST);
    session.wait_for_bytes(2 * ANSWER.len());
    session.close_input();
    assert_eq!(session.wait().code, 0);
    assert_eq!(ending(&home.only_run()).0, Ending::ClientClosed);
}

#[test]
fn a_relay_whose_helper_is_killed_goes_on() {
    let home = Home::new();
    let server = Server::new().answers_each_line(ANSWER);
    let (session, processes) = under_way(&home, &server);
    let own = Process::of(server.pid());
    let helpers = processes
        .iter()
        .filter(|process| ![session.process, own].contains(process));
    helpers.for_each(|helper| end(*helper));
    session.send(REQUEST);
    session.wait_for_bytes(2 * ANSWER.len());
    session.close_input();
    assert_eq!(session.wait().code, 0);
    wait_until_gone(&processes);
}

// What is left.

#[test]
fn w50_processes_threads_and_descriptors_come_back_to_what_they_were() {
    let home = Home::new();
    let server = Server::mcp();
    let session = home.record().start(&server);
    let line = |id: u32| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"x\"}}}}}}\n"
        )
    };
    session.send(line(0));
    session.wait_for_text("\n");
    let counts = || {
        let relay = session.process;
        (
            relay.descriptors(),
            relay.threads(),
            relay.tree().into_iter().filter(|p| p.exists()).count(),
        )
    };
    // The thread that syncs the disk and the like have started by now.
    wait_for("the first record", || {
        (!home.runs().first()?.steps.is_empty()).then_some(())
    });
    let before = counts();
    let calls: String = (1..=200).map(line).collect();
    session.send(calls);
    session.wait_for_text("\"id\":200,");
    assert_eq!(counts(), before);
    let processes = session.process.tree();
    session.close_input();
    assert_eq!(session.wait().code, 0);
    wait_until_gone(&processes);
    assert_eq!(home.only_run().steps.len(), 201);
}

/// Runs a relay by a shell that is to do something with it: its command is `"$@"`.
fn by_shell(home: &Home, script: &str, relay: &Command) -> Session {
    let mut command = home.with_environment(Command::new("sh"));
    command.args(["-c", script, "sh"]);
    command.arg(relay.get_program()).args(relay.get_args());
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    Session::of(&mut command)
}
