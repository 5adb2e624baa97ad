//! What the queue takes, drops and counts.

use super::*;
use agent_trace_model::Stream;

const CHANNEL: Channel = Channel {
    source: 1,
    exchange: 0,
    stream: Stream::ClientToServer,
};

fn told(blocks: &VecDeque<Block>) -> (u64, u64) {
    let mut told = (0, 0);
    for item in blocks.iter().flat_map(|block| &block.items) {
        match item.what {
            What::Copied(n) => told.0 += n as u64,
            What::Lost(lost) => told.1 += lost.body,
            _ => {}
        }
    }
    told
}

#[test]
fn a_full_queue_drops_counts_and_tells_the_loss_in_its_place() {
    let queue = Queue::new();
    let chunk = [0; 64 << 10];
    for _ in 0..1000 {
        queue.copy(CHANNEL, queue.now(), &chunk);
    }
    let blocks = queue.take(None).unwrap();
    let (copied, lost) = told(&blocks);
    assert_eq!(copied + lost, 1000 * chunk.len() as u64);
    assert!(copied as usize <= QUEUE_LIMIT && lost > 0);
    let last = blocks.back().unwrap().items.last().unwrap();
    assert!(matches!(last.what, What::Lost(_)));
    for block in blocks {
        queue.give_back(block);
    }
    queue.copy(CHANNEL, queue.now(), &chunk);
    assert_eq!(told(&queue.take(None).unwrap()), (chunk.len() as u64, 0));
}

#[test]
fn tiny_chunks_are_bounded_too() {
    let queue = Queue::new();
    for _ in 0..1_000_000 {
        queue.copy(CHANNEL, queue.now(), b"x");
    }
    let state = queue.lock();
    assert!(state.queued <= QUEUE_LIMIT);
    assert_eq!(state.lost.len(), 1);
}

#[test]
fn thousands_of_exchanges_with_losses_cost_little_and_end_all_the_same() {
    let queue = Queue::new();
    queue.copy(CHANNEL, queue.now(), &vec![0; QUEUE_LIMIT - 1000]);
    let of = |exchange, stream| Channel {
        source: 1,
        exchange,
        stream,
    };
    let (c, s) = (Stream::ClientToServer, Stream::ServerToClient);
    let address = "127.0.0.1:1".parse().unwrap();
    let caller = Caller {
        connection: 1,
        peer: address,
        local: address,
    };
    let began = Instant::now();
    for exchange in 1..=100_000 {
        queue.request(of(exchange, c), queue.now(), caller, &[b'x'; 500]);
        queue.copy(of(exchange, c), queue.now(), &[b'x'; 500]);
        queue.close(of(exchange, c), queue.now());
        queue.finished(of(exchange, s), queue.now(), Finish::Complete);
    }
    assert!(began.elapsed() < Duration::from_secs(5));
    {
        let state = queue.lock();
        assert!(state.queued <= QUEUE_LIMIT + RESERVE);
        assert!(state.lost.len() <= MOST_LOST);
    }
    let (mut finished, mut body, mut head, mut forgotten) = (0_usize, 0, 0, 0);
    for block in queue.take(None).unwrap() {
        block.each(|item, _| match &item.what {
            What::Finished(_) => finished += 1,
            What::Lost(lost) => {
                body += lost.body;
                head += lost.head;
            }
            What::Forgotten(bytes) => forgotten += bytes,
            What::Request { head: kept, .. } => head += *kept as u64,
            _ => {}
        });
    }
    assert!(body > 0 && head > 0 && forgotten > 0);
    assert_eq!(body + head + forgotten, 100_000 * 1000);
    assert!(finished >= MOST_LOST, "{finished}");
}

#[test]
fn heads_and_callers_come_with_their_bytes() {
    let queue = Queue::new();
    let caller = Caller {
        connection: 7,
        peer: "127.0.0.1:5".parse().unwrap(),
        local: "127.0.0.1:6".parse().unwrap(),
    };
    queue.request(CHANNEL, queue.now(), caller, b"head");
    queue.altered(CHANNEL, queue.now(), b"from", b"to");
    queue.copy(CHANNEL, queue.now(), b"body");
    let mut seen = Vec::new();
    for block in queue.take(None).unwrap() {
        block.each(|item, bytes| {
            if let What::Request { caller: at, .. } = item.what {
                assert_eq!(block.callers[at], caller);
            }
            seen.push(bytes.to_vec());
        });
        queue.give_back(block);
    }
    assert_eq!(seen, [&b"head"[..], b"fromto", b"body"]);
    assert_eq!(queue.queued(), 0);
    assert!(
        queue
            .take(Some(Duration::from_millis(1)))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_reader_that_is_gone_costs_nothing() {
    let queue = Queue::new();
    queue.reader_is_done();
    queue.copy(CHANNEL, queue.now(), b"x");
    assert_eq!(queue.lock().queued, 0);
    assert!(queue.close_and_wait(Duration::ZERO));
}
