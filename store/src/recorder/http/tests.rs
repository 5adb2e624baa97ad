//! What is left of many exchanges: nothing.

use super::*;
use crate::recorder::Hooks;
use crate::recorder::queue::Lost;
use agent_trace_model::{Channel, Stream};

fn sink() -> Sink {
    let hooks = Hooks {
        report: Box::new(|_| {}),
        acknowledge: None,
        opened: None,
    };
    Sink::new(Err("a test".into()), hooks)
}

struct Told {
    http: Http,
    sink: Sink,
    at: u64,
}

impl Told {
    fn new() -> Self {
        Self {
            http: Http::new(Budget::new(1 << 20)),
            sink: sink(),
            at: 0,
        }
    }

    fn say(&mut self, exchange: u32, stream: Stream, what: What, bytes: &[u8]) {
        self.at += 1000;
        let address = "192.0.2.1:1".parse().unwrap();
        let caller = Caller {
            connection: exchange,
            peer: address,
            local: address,
        };
        let item = Item {
            channel: Channel {
                source: 1,
                exchange,
                stream,
            },
            at: self.at,
            what,
        };
        self.http.take(&item, bytes, &[caller], &mut self.sink);
    }

    fn begin(&mut self, exchange: u32, head: &str) {
        let what = What::Request {
            caller: 0,
            head: head.len(),
        };
        self.say(exchange, Stream::ClientToServer, what, head.as_bytes());
    }
}

#[test]
fn ten_thousand_exchanges_leave_nothing_behind() {
    use Stream::{ClientToServer as Up, ServerToClient as Down};
    let mut told = Told::new();
    for exchange in 1..=10_000 {
        let head = format!("POST /mcp HTTP/1.1\r\nuser-agent: {exchange}\r\n");
        told.begin(exchange, &head);
        told.say(exchange, Up, What::Copied(2), b"{}");
        told.say(exchange, Up, What::Closed, b"");
        told.say(exchange, Down, What::Response(12), b"HTTP/1.1 200\r\n");
        told.say(exchange, Down, What::Copied(2), b"[1");
        told.say(exchange, Down, What::Finished(Finish::ClientGone), b"");
    }
    assert_eq!(told.http.exchanges.len(), 0);
    assert_eq!(told.http.shared.frames.used(), 0);
    assert_eq!(told.http.deferred.len(), 0);
    assert!(told.http.shared.connections.size() <= 1024);
    assert!(told.http.shared.sessions.size() <= 2 * 4096);
    assert_eq!(told.http.sessions(), (4096, 10_000));
    let later = Duration::from_nanos(told.at) + Duration::from_secs(601);
    assert!(told.http.wakes_in(Duration::ZERO).is_some());
    told.http.sweep(later, &mut told.sink);
    assert_eq!(told.http.shared.sessions.size(), 0);
    assert_eq!(told.http.wakes_in(later), None);
}

#[test]
fn exchanges_that_are_too_many_are_counted_and_doubtful_ones_make_room() {
    let mut told = Told::new();
    let most = u32::try_from(MOST_EXCHANGES).unwrap();
    for exchange in 1..=most {
        told.begin(exchange, "GET /mcp HTTP/1.1\r\n");
    }
    told.begin(most + 1, "GET /mcp HTTP/1.1\r\n");
    assert_eq!(told.http.exchanges.len(), MOST_EXCHANGES);
    assert_eq!(told.http.unfollowed.unwrap().0, 19);
    told.say(0, Stream::ServerToClient, What::Forgotten(7), b"");
    told.begin(most + 2, "GET /mcp HTTP/1.1\r\n");
    assert!(told.http.exchanges.contains_key(&(most + 2)));
    assert_eq!(told.http.exchanges.len(), MOST_EXCHANGES);
    told.say(0, Stream::ServerToClient, What::Stop, b"");
    assert_eq!(told.http.exchanges.len(), 0);
    assert_eq!(told.http.shared.sessions.size(), 0);
}

#[test]
fn peers_do_not_decide_how_much_is_remembered_of_them() {
    let mut told = Told::new();
    let long = "x".repeat(100_000);
    let heads = [
        format!("POST /m HTTP/1.1\r\nauthorization: {long}\r\n"),
        format!("POST /m HTTP/1.1\r\nmcp-session-id: {long}\r\n"),
    ];
    for (exchange, head) in (1..).zip(heads) {
        told.begin(exchange, &head);
        told.say(exchange, Stream::ClientToServer, What::Copied(2), b"{}");
        told.say(exchange, Stream::ClientToServer, What::Closed, b"");
    }
    told.begin(3, "GET /sse HTTP/1.1\r\n");
    let answer = b"HTTP/1.1 200\r\ncontent-type: text/event-stream\r\n";
    told.say(3, Stream::ServerToClient, What::Response(0), answer);
    let event = format!("event: endpoint\ndata: /{long}\n\n");
    told.say(3, Stream::ServerToClient, What::Copied(0), event.as_bytes());
    assert!(told.http.shared.sessions.longest_secret() < 1000);
}

#[test]
fn lost_heads_of_two_listeners_are_two_sessions() {
    let mut told = Told::new();
    for source in [1, 2] {
        let item = Item {
            channel: Channel {
                source,
                exchange: source,
                stream: Stream::ServerToClient,
            },
            at: 1,
            what: What::Copied(2),
        };
        told.http.take(&item, b"{}", &[], &mut told.sink);
        let item = Item {
            what: What::Finished(Finish::Complete),
            ..item
        };
        told.http.take(&item, b"", &[], &mut told.sink);
    }
    assert_eq!(told.http.sessions(), (2, 2));
}

#[test]
fn anything_in_any_order_is_taken_without_panic() {
    use Stream::{ClientToServer as Up, ServerToClient as Down};
    let mut random = 1_u64;
    for _ in 0..200 {
        let mut told = Told::new();
        for _ in 0..60 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pick = (random >> 33) as usize;
            let stream = if pick & 1 == 0 { Up } else { Down };
            let exchange = 1 + (pick >> 1 & 1) as u32;
            let lost = Lost {
                body: 5,
                head: (pick >> 8 & 1) as u64,
            };
            let heads = [
                "POST /m HTTP/1.1\r\n",
                "GET /s HTTP/1.1\r\n",
                "DELETE /m HTTP/1.1\r\nmcp-session-id: 1\r\n",
                "POST /m HTTP/1.1\r\ncontent-encoding: gzip\r\nmcp-session-id: 1\r\n",
            ];
            let head = heads[pick >> 9 & 3];
            let answers = [
                "HTTP/1.1 200\r\ncontent-type: text/event-stream\r\n",
                "HTTP/1.1 404\r\nmcp-session-id: 1\r\n",
            ];
            let answer = answers[pick >> 9 & 1];
            let bodies = [
                "event: endpoint\ndata: /m\n\n",
                "{\"id\":1,\"method\":\"initialize\"}",
                "\u{1f}",
                "",
            ];
            let body = bodies[pick >> 11 & 3];
            match pick >> 2 & 15 {
                0 | 1 => told.begin(exchange, head),
                2 | 3 => told.say(exchange, Down, What::Response(0), answer.as_bytes()),
                4 => told.say(exchange, stream, What::Lost(lost), b""),
                5 => told.say(exchange, stream, What::Closed, b""),
                6 => told.say(exchange, stream, What::Trailers(0), b"a: b\r\n"),
                7 => told.say(exchange, stream, What::Altered { from: 2, to: 2 }, b"abcd"),
                8 => told.say(exchange, Down, What::Finished(Finish::Complete), b""),
                9 => told.say(exchange, stream, What::Undelivered(0), body.as_bytes()),
                _ => told.say(exchange, stream, What::Copied(0), body.as_bytes()),
            }
        }
        told.say(0, Down, What::Stop, b"");
        assert_eq!(told.http.exchanges.len(), 0);
        assert_eq!(told.http.shared.sessions.size(), 0);
        assert_eq!(
            told.http.shared.frames.used() + told.http.shared.windows.used(),
            0
        );
    }
}
