//! An account of what was sent and received, to be compared with what was recorded.

use serde::{Deserialize, Serialize};

/// Some messages, in whatever order they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// The sum of a hash of each.
    sum: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, message: &[u8]) {
        self.count += 1;
        self.bytes += message.len() as u64;
        self.sum = self.sum.wrapping_add(hash(message));
    }

    pub(crate) fn add_all(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// All that clients sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) exchanges: u64,
    /// Bodies of requests.
    pub(crate) sent: Tally,
    /// Bodies of answers that are no event streams.
    pub(crate) received: Tally,
    /// Events.
    pub(crate) events: Tally,
}

impl Traffic {
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.sent.add_all(other.sent);
        self.received.add_all(other.received);
        self.events.add_all(other.events);
    }
}

/// Eight bytes at a time: a client has to be fast, and nobody is out to deceive it.
fn hash(message: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = message.len() as u64;
    let (words, rest) = message.as_chunks::<8>();
    for word in words {
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    for &byte in rest {
        hash = (hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(FACTOR);
    }
    hash
}
