//! The byte streams of a session, and the trait through which a relay hands out copies.

use crate::end::Finish;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One byte stream of a session, named by who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Stream {
    /// What the client (the assistant) sends to the server.
    ClientToServer = 0,
    /// What the server sends to the client.
    ServerToClient = 1,
    /// What a stdio server writes to its standard error.
    Stderr = 2,
}

impl Stream {
    /// Every stream, in the order of its number.
    pub const ALL: [Self; 3] = [Self::ClientToServer, Self::ServerToClient, Self::Stderr];

    /// The stream with this number (its discriminant), if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Where in a process a chunk of bytes was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Which relay of the process it went through: 1 for the session of a stdio relay, the
    /// number of the listener for HTTP.
    pub source: u32,
    /// The HTTP exchange's ordinal within the process, from 1, or 0 where there is none
    /// (stdio).
    pub exchange: u32,
    /// Which stream of it.
    pub stream: Stream,
}

/// Who began an HTTP exchange, as the connection tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The connection's ordinal within the process, from 1.
    pub connection: u32,
    /// The client's end of it.
    pub peer: SocketAddr,
    /// Our end of it.
    pub local: SocketAddr,
}

/// A moment on a tap's own clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// One thing that a relay tells, for [`Tap::tell`]; what each means is said at the method of
/// that name.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// [`Tap::copy`]
    Copy(&'a [u8]),
    /// [`Tap::undelivered`]
    Undelivered(&'a [u8]),
    /// [`Tap::close`]
    Close,
    /// [`Tap::request`]
    Request(Caller, &'a [u8]),
    /// [`Tap::response`]
    Response(&'a [u8]),
    /// [`Tap::trailers`]
    Trailers(&'a [u8]),
    /// [`Tap::altered`]: from, to
    Altered(&'a [u8], &'a [u8]),
    /// [`Tap::finished`]
    Finished(Finish),
}

/// What a relay tells about the bytes it moves.
///
/// A relay asks for the time when it has read a chunk, writes the chunk to its destination,
/// and only then hands the copy over. Copies of two streams may so come in the wrong order
/// (the answer before the request that it answers, when the thread with the request was
/// interrupted), but their times are right.
///
/// Implementations must return at once: they may drop what they have no room for (and count
/// it), but never wait, fail or panic, since whatever they do delays the next chunk.
pub trait Tap: Send + Sync {
    /// The time.
    fn now(&self) -> Moment;

    /// These bytes, read at that time, were forwarded.
    fn copy(&self, channel: Channel, read: Moment, bytes: &[u8]);

    /// These bytes, read at that time, could not be delivered.
    fn undelivered(&self, channel: Channel, read: Moment, bytes: &[u8]);

    /// The sender ended this stream at that time; nothing more will be copied for it.
    fn close(&self, channel: Channel, at: Moment);

    /// An HTTP exchange began with this head: request line and header lines as HTTP/1.1
    /// writes them, each ended by CR and LF, with no empty line after them.
    fn request(&self, channel: Channel, read: Moment, caller: Caller, head: &[u8]);

    /// The head of the answer, written likewise.
    fn response(&self, channel: Channel, read: Moment, head: &[u8]);

    /// Header lines after a body.
    fn trailers(&self, channel: Channel, read: Moment, lines: &[u8]);

    /// In place of `from`, which the sender sent, `to` was forwarded. What is copied of the
    /// stream is what was forwarded.
    fn altered(&self, channel: Channel, read: Moment, from: &[u8], to: &[u8]);

    /// An HTTP exchange is over; nothing more will be told of it.
    fn finished(&self, channel: Channel, at: Moment, finish: Finish);

    /// All of these, in this order, as if each were told by itself: where many are told at
    /// once, that may cost less. The iterator is taken to its end in any case.
    fn tell<'a>(&self, all: &mut dyn Iterator<Item = (Channel, Moment, Told<'a>)>) {
        for (channel, at, told) in all {
            match told {
                Told::Copy(bytes) => self.copy(channel, at, bytes),
                Told::Undelivered(bytes) => self.undelivered(channel, at, bytes),
                Told::Close => self.close(channel, at),
                Told::Request(caller, head) => self.request(channel, at, caller, head),
                Told::Response(head) => self.response(channel, at, head),
                Told::Trailers(lines) => self.trailers(channel, at, lines),
                Told::Altered(from, to) => self.altered(channel, at, from, to),
                Told::Finished(finish) => self.finished(channel, at, finish),
            }
        }
    }

    /// How many requests of the client of this source still wait for their answer, as far
    /// as is known by now; none where nobody counts them.
    fn unanswered(&self, source: u32) -> Option<usize>;
}

/// A tap that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {
    fn now(&self) -> Moment {
        Moment::default()
    }
    fn copy(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn undelivered(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn close(&self, _: Channel, _: Moment) {}
    fn request(&self, _: Channel, _: Moment, _: Caller, _: &[u8]) {}
    fn response(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn trailers(&self, _: Channel, _: Moment, _: &[u8]) {}
    fn altered(&self, _: Channel, _: Moment, _: &[u8], _: &[u8]) {}
    fn finished(&self, _: Channel, _: Moment, _: Finish) {}
    fn unanswered(&self, _: u32) -> Option<usize> {
        None
    }
}
