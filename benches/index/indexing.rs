//! Making an index from nothing, and what everything takes on the disk.

use crate::Result;
use crate::place::{Form, Place, There, disk_use, drop_index};
use crate::report::{Goal, Measured};
use crate::verdict::Recorded;

const LEAST_PER_SECOND: f64 = 100_000.0;
/// Times the bytes that were relayed.
const MOST_AS_JOURNALS: f64 = 1.3;
const MOST_SEALED: f64 = 0.5;

pub(crate) fn run(place: &Place, there: &There) -> Result<Vec<Measured>> {
    let store = place.store();
    drop_index(&store)?;
    // Whoever asks first makes it.
    let built = place.run(["runs", "-n", "1"])?;
    let seconds = built.took.as_secs_f64();
    let (_, index) = disk_use(&store.index())?;
    let (_, all) = disk_use(store.root())?;
    let raw = there.made.raw as f64;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let most = match there.form {
        Form::Journals => MOST_AS_JOURNALS,
        Form::Sealed => MOST_SEALED,
    };
    let (make, seal) = there.seconds;
    Ok(vec![
        Measured {
            what: "indexing from nothing, events/s".into(),
            goal: Goal::AtLeast(LEAST_PER_SECOND),
            value: there.made.events as f64 / seconds,
            detail: format!("{seconds:.1} s for {} events", there.made.events),
            recorded: Recorded::All,
            gaps_allowed: false,
        },
        Measured {
            what: "disk, × what was relayed".into(),
            goal: Goal::AtMost(most),
            value: all as f64 / raw,
            detail: format!(
                "MB: {:.0} relayed, {:.0} on disk, of which the index {:.0}; made in {make:.0} s, \
                 sealed in {seal:.0} s",
                raw / 1e6,
                megabytes(all),
                megabytes(index)
            ),
            recorded: Recorded::All,
            gaps_allowed: false,
        },
    ])
}
