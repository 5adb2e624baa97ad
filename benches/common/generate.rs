//! Makes a store of many runs, the same for the same seed, with the store's own writer and
//! sealing.
//!
//! - [`random`], [`text`], [`world`]: what it is made of
//! - [`talk`]: the messages of a session; [`people`]: who has which sessions
//! - [`journal`]: how they are recorded
//! - [`truth`]: what readers have to find in it

#![allow(dead_code, reason = "each user of this takes what it needs")]

#[path = "generate/journal.rs"]
mod journal;
#[path = "generate/people.rs"]
mod people;
#[path = "generate/random.rs"]
pub(crate) mod random;
#[path = "generate/talk.rs"]
mod talk;
#[path = "generate/text.rs"]
pub(crate) mod text;
#[path = "generate/truth.rs"]
mod truth;
#[path = "generate/world.rs"]
pub(crate) mod world;

pub(crate) use truth::{Made, needle};

use agent_trace_store::journal::{Segment, sealed};
use agent_trace_store::layout::SegmentPath;
use agent_trace_store::{Store, key};
use people::{BLOCK, People};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use text::Text;

/// A call that takes longer than this is slow, in nanoseconds.
pub(crate) const SLOW: u64 = 2_000_000_000;

/// What to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) runs: u64,
    /// Messages, about.
    pub(crate) events: u64,
    pub(crate) seed: u64,
}

/// Writes the runs into a store, as journals of processes that have ended.
pub(crate) fn generate(store: &Store, plan: Plan, threads: usize) -> io::Result<Made> {
    let key = key::load_or_create(store)?;
    let text = Text::new(plan.seed);
    let people = People {
        store,
        key: &key,
        text: &text,
        plan,
    };
    let blocks = plan.runs.div_ceil(BLOCK);
    let made = Mutex::new(Made::new());
    each(threads, blocks, |block| {
        let more = people.block(block)?;
        if let Ok(mut made) = made.lock() {
            made.add(&more);
        }
        Ok(())
    })?;
    made.into_inner()
        .map_err(|_| io::Error::other("a thread failed"))
}

/// Seals every journal of a store as its retention does, but without waiting for the disk.
/// Returns the bytes of all files then.
pub(crate) fn seal(store: &Store, threads: usize) -> io::Result<u64> {
    let chain = key::load_or_create(store)?.chain();
    let journals: Vec<SegmentPath> = store
        .segments()?
        .into_iter()
        .filter(|path| !path.sealed)
        .collect();
    let bytes = AtomicU64::new(0);
    each(threads, journals.len() as u64, |number| {
        let path = &journals[usize::try_from(number).unwrap_or_default()];
        let segment = Segment::open(path).map_err(io::Error::other)?;
        let sealed = sealed::seal(&segment, chain.clone())?;
        let folder = store.day(&day(segment.header().started));
        store.make(&folder)?;
        let name = SegmentPath::name(path.process, path.number, true);
        fs::write(folder.join(name), &sealed)?;
        fs::remove_file(&path.path)?;
        bytes.fetch_add(sealed.len() as u64, Ordering::Relaxed);
        Ok(())
    })?;
    Ok(bytes.into_inner())
}

/// Does the work with these numbers on several threads.
fn each(threads: usize, count: u64, work: impl Fn(u64) -> io::Result<()> + Sync) -> io::Result<()> {
    let next = AtomicU64::new(0);
    let worker = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            return Ok(());
        }
        work(number)?;
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread failed")))
        })
    })
}

/// The day (`yyyy-mm-dd`, UTC) of a moment in nanoseconds since 1970.
fn day(nanoseconds: u64) -> String {
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).unwrap_or_default();
    let moment = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    moment.strftime("%Y-%m-%d").to_string()
}
