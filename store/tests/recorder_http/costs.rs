//! What recording costs. Figures to look at, not promises: run with `--ignored`.

use super::*;

#[test]
#[ignore = "a measurement: run it with --ignored --nocapture"]
fn what_a_small_exchange_costs() {
    println!("{}", measure(CALL, ANSWER));
}

/// Argument and result of about 2 kB each.
#[test]
#[ignore = "a measurement: run it with --ignored --nocapture"]
fn what_a_larger_exchange_costs() {
    let text = "The quick brown fox (12 of them) jumps over the lazy dog; then \"it\" rests.\n";
    let text = serde_json::to_string(&text.repeat(24)).unwrap();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{text}}}}}}}"#
    );
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
    );
    println!("{}", measure(&call, &answer));
}

fn measure(call: &str, answer: &str) -> String {
    let relay = Relay::start();
    let headers = "accept: application/json, text/event-stream\r\naccept-encoding: gzip, deflate\r\naccept-language: *\r\nconnection: keep-alive\r\nmcp-protocol-version: 2025-11-25\r\nmcp-session-id: 5f0c2a4491d34c589d550a2b6e1f7c3d\r\nsec-fetch-mode: cors\r\n";
    let headers = format!("{headers}content-length: {}\r\n", call.len());
    let answer_headers = format!("{JSON}content-length: {}\r\n", answer.len());
    let start = Instant::now();
    let mut busy = Duration::ZERO;
    let count = 10_000;
    for _ in 0..count / 1000 {
        let begun = Instant::now();
        for _ in 0..1000 {
            relay.post(&headers, call, (200, &answer_headers, answer));
        }
        busy += begun.elapsed();
        while relay.recorder.stats().queued > 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    let all = start.elapsed();
    assert_eq!(relay.recorder.stats().lost_bytes, 0);
    assert!(relay.recorder.stop(LIMIT));
    format!(
        "{:?} an exchange in all, {:?} of it to tell it",
        all / count,
        busy / count
    )
}
