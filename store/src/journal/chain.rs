//! The keyed hash chain of a journal: who has not got the store's key cannot change, take out
//! or put in a record unnoticed.
//!
//! Marks stand between the records, as records of a kind of their own: one at the beginning of
//! a file, one at the end of what was written at once, where 64 records or more came since the
//! last one, and one at its end. Each holds
//!
//! ```text
//! u8 what   32 bytes hash   32 bytes link
//! hash = BLAKE3(key; hash of the mark before ‖ records since then ‖ what ‖ link)
//! ```
//! The first mark's records are the JSON of the file's header, and before it stand 32 zeros;
//! its link is the hash with which the file before ended. So a change is told to the stretch
//! between two marks, and a file that is not there by those around it.
//!
//! Marks are not told of by readers, but by [`Segment::with_marks`](super::Segment::with_marks).
//! They have the sequence number of the record before them.

use super::format::encode;
use super::{Envelope, Flags, Kind};
use agent_trace_model::Stream;
use agent_trace_wire::frame::Framing;

/// After so many records a mark follows what is written with them: of a busy relay's hundreds
/// of records in a tick it is cheaper to hash all at once.
pub(crate) const EVERY: u32 = 64;
/// A hash.
pub(crate) type Hash = [u8; 32];
/// Where there is no hash.
pub(crate) const NONE: Hash = [0; 32];
/// What the chain's key is made for, as BLAKE3 wants it told.
pub(crate) const CONTEXT: &str = "agent-trace 2026 journal chain";

/// What a mark is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// The file begins. The link is the hash that the file before ended with.
    Begin = 1,
    /// It goes on.
    On = 2,
    /// It ends, and with it what its process recorded. The link, if it is not zeros, is what
    /// this file ended with before it was written anew: the next one may refer to that.
    End = 3,
    /// It ends, and the process went on in another one. Likewise.
    Rolled = 4,
}

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) what: What,
    pub(crate) hash: Hash,
    pub(crate) link: Hash,
}

impl Mark {
    /// The mark that is the payload of a record.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (what, rest) = payload.split_first()?;
        let what = match what {
            1 => What::Begin,
            2 => What::On,
            3 => What::End,
            4 => What::Rolled,
            _ => return None,
        };
        Some(Self {
            what,
            hash: *rest.first_chunk()?,
            link: *rest.get(NONE.len()..)?.first_chunk()?,
        })
    }

    /// Whether nothing follows it in its file.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.what, What::End | What::Rolled)
    }

    /// What the next file refers to.
    pub(crate) fn end(&self) -> Hash {
        if self.is_end() && self.link != NONE {
            self.link
        } else {
            self.hash
        }
    }
}

/// When a mark is made: number and clocks of the record before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) sequence: u64,
    pub(crate) wall: u64,
    pub(crate) monotonic: u64,
}

impl Moment {
    pub(crate) fn of(envelope: &Envelope) -> Self {
        Self {
            sequence: envelope.sequence,
            wall: envelope.wall,
            monotonic: envelope.monotonic,
        }
    }
}

/// A chain while it is written, or checked.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    key: blake3::Hasher,
    running: blake3::Hasher,
    /// Records since the last mark.
    records: u32,
    /// The hash of the last mark.
    head: Hash,
    /// The last mark, if nothing stands behind it.
    last: Option<What>,
}

impl Chain {
    /// The chain of a file with this header (its JSON); `key` is a hasher keyed for chains.
    pub(crate) fn new(key: blake3::Hasher, header: &[u8]) -> Self {
        let mut chain = Self {
            running: key.clone(),
            key,
            records: 0,
            head: NONE,
            last: None,
        };
        chain.restart(NONE);
        chain.running.update(header);
        chain
    }

    /// A hasher with its key.
    pub(crate) fn key(&self) -> blake3::Hasher {
        self.key.clone()
    }

    /// Takes note of bytes of records.
    pub(crate) fn add(&mut self, raw: &[u8]) {
        self.running.update(raw);
        self.last = None;
    }

    /// Takes note of how many they were.
    pub(crate) fn count(&mut self, records: u32) {
        self.records = self.records.saturating_add(records);
    }

    /// Whether it is time for a mark.
    pub(crate) fn is_due(&self) -> bool {
        self.records >= EVERY
    }

    /// The last mark, if nothing stands behind it.
    pub(crate) fn ends_with(&self) -> Option<What> {
        self.last
    }

    /// The hash of the last mark.
    pub(crate) fn head(&self) -> Hash {
        self.head
    }

    /// What the hash of a mark is that stands here.
    pub(crate) fn hash(&self, what: What, link: Hash) -> Hash {
        let mut hasher = self.running.clone();
        hasher.update(&[what as u8]).update(&link);
        *hasher.finalize().as_bytes()
    }

    /// A mark stands here, and its hash is this.
    pub(crate) fn restart(&mut self, head: Hash) {
        self.running = self.key.clone();
        self.running.update(&head);
        self.records = 0;
        self.head = head;
    }

    /// Appends a mark to `out`.
    pub(crate) fn mark(&mut self, what: What, link: Hash, at: Moment, out: &mut Vec<u8>) {
        let hash = self.hash(what, link);
        self.restart(hash);
        self.last = Some(what);
        let payload = [&[what as u8][..], &hash, &link].concat();
        let envelope = Envelope {
            kind: Kind::Mark,
            stream: Stream::ClientToServer,
            framing: Framing::Stray,
            flags: Flags::default(),
            session: 0,
            exchange: 0,
            sequence: at.sequence,
            wall: at.wall,
            monotonic: at.monotonic,
            length: payload.len() as u64,
            digest: None,
            spans: Vec::new(),
        };
        encode(&envelope, &payload, out);
        out.extend_from_slice(&payload);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn key() -> blake3::Hasher {
        blake3::Hasher::new_keyed(&[7; 32])
    }

    #[test]
    fn a_hash_depends_on_all_that_was_before() {
        let of = |header: &[u8], records: &[&[u8]]| {
            let mut chain = Chain::new(key(), header);
            for record in records {
                chain.add(record);
                chain.mark(What::On, NONE, Moment::default(), &mut Vec::new());
            }
            chain.head()
        };
        let hash = of(b"header", &[b"a", b"b"]);
        assert_eq!(hash, of(b"header", &[b"a", b"b"]));
        for other in [
            of(b"header!", &[b"a", b"b"]),
            of(b"header", &[b"b", b"a"]),
            of(b"header", &[b"a"]),
            of(b"header", &[b"ab"]),
        ] {
            assert_ne!(hash, other);
        }
        let chain = Chain::new(key(), b"");
        assert_ne!(chain.hash(What::On, NONE), chain.hash(What::End, NONE));
        assert_ne!(chain.hash(What::On, NONE), chain.hash(What::On, [1; 32]));
    }

    #[test]
    fn a_mark_is_read_back() {
        let mut chain = Chain::new(key(), b"");
        let mut out = Vec::new();
        chain.mark(What::Begin, [3; 32], Moment::default(), &mut out);
        let (record, _) = super::super::format::decode(&out).unwrap();
        let mark = Mark::read(&record.payload).unwrap();
        assert_eq!((mark.what, mark.link), (What::Begin, [3; 32]));
        assert_eq!(mark.hash, chain.head());
        assert_eq!(Mark::read(b""), None);
        assert_eq!(Mark::read(&[9; 65]), None);
        assert_eq!(Mark::read(&record.payload[..64]), None);
    }
}
