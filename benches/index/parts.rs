//! What takes how much room on the disk: parts in bytes a message.

use crate::Result;
use crate::place::{Form, Place, There, disk_use};
use crate::report::{Goal, Measured};
use crate::verdict::Recorded;
use agent_trace_index::engine::Engine;
use agent_trace_index::engine::sled::{CACHE, Sled};
use agent_trace_store::journal::header::Header;
use agent_trace_store::journal::{Kind, Segment, sealed};
use agent_trace_store::layout::SegmentPath;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What blocks of a file system are counted in.
const DISK_BLOCK: u64 = 512;

/// Bytes by what they are.
#[derive(Default)]
struct Parts(BTreeMap<String, (u64, u64)>);

impl Parts {
    fn add(&mut self, what: &str, bytes: usize) {
        let (count, sum) = self.0.entry(what.to_owned()).or_default();
        *count += 1;
        *sum += bytes as u64;
    }
}

pub(crate) fn run(place: &Place, there: &There) -> Result<Vec<Measured>> {
    let store = place.store();
    // Whoever asks first makes the index.
    place.run(["runs", "-n", "1"])?;
    let mut parts = Parts::default();
    for path in store.segments()? {
        match there.form {
            Form::Journals => journal(&path, &mut parts)?,
            Form::Sealed => sealed_file(&path, &mut parts)?,
        }
        let about = path.path.metadata()?;
        let given = (about.blocks() * DISK_BLOCK).saturating_sub(about.len());
        parts.add("rounding of files", usize::try_from(given)?);
    }
    index(&store.index(), &mut parts)?;
    let events = there.made.events as f64;
    let lines = parts.0.into_iter().map(|(what, (count, bytes))| Measured {
        what: format!("{what}, bytes a message"),
        goal: Goal::None,
        value: bytes as f64 / events,
        detail: format!(
            "{count}, of {:.1} bytes; {:.4} × what was relayed",
            bytes as f64 / count as f64,
            bytes as f64 / there.made.raw as f64
        ),
        recorded: Recorded::All,
        gaps_allowed: false,
    });
    Ok(lines.collect())
}

fn journal(path: &SegmentPath, parts: &mut Parts) -> Result<()> {
    let bytes = fs::read(&path.path)?;
    let (_, header) = Header::decode(&bytes)?;
    parts.add("journal: headers of files", header);
    let mut rest = bytes.len() - header;
    let segment = Segment::from_bytes(bytes, false, false)?;
    for view in segment.views().flatten() {
        let head = view.raw.len() - view.payload.len();
        rest -= view.raw.len();
        parts.add("journal: heads of records", head);
        let what = match view.envelope.kind {
            Kind::Frame | Kind::Stderr => "journal: messages",
            Kind::Meta if view.envelope.exchange > 0 => "journal: metadata of exchanges",
            _ => "journal: metadata of sessions",
        };
        parts.add(what, view.payload.len());
    }
    parts.add("journal: marks of the chain", rest);
    Ok(())
}

fn sealed_file(path: &SegmentPath, parts: &mut Parts) -> Result<()> {
    let bytes = fs::read(&path.path)?;
    let footer = sealed::footer(&bytes).ok_or("a sealed file without a footer")?;
    let first = footer.blocks.first().map_or(0, |(at, _)| *at as usize);
    let end = u64::from_le_bytes(*bytes[bytes.len() - 24..].first_chunk().ok_or("short")?);
    parts.add("sealed: headers of files", first);
    parts.add("sealed: blocks", end as usize - first);
    parts.add("sealed: filters of words", footer.words.len());
    let rest = bytes.len() - end as usize - footer.words.len();
    parts.add("sealed: footers", rest);
    Ok(())
}

/// The index, and what its rows are before the engine makes less and more of them.
fn index(folder: &Path, parts: &mut Parts) -> Result<()> {
    let (_, all) = disk_use(folder)?;
    parts.add("index: on the disk", usize::try_from(all)?);
    Sled::open(folder, CACHE)?.scan(&[], None, &mut |key, value| {
        let kind = char::from(key.first().copied().unwrap_or(b'?'));
        parts.add(
            &format!("index: rows {kind} as they are"),
            key.len() + value.len(),
        );
        true
    })?;
    Ok(())
}
