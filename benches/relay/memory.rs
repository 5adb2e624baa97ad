//! How much memory a relay takes: idle after a call, and at most while a client and a server
//! do their worst. What counts is all that stands between the two, guardian included.

use crate::Result;
use crate::abuse::{self, Abuse};
use crate::client::{Client, Traffic, call, ping};
use crate::place::{Contender, MIRROR, Place, Processors, SERVERS};
use crate::process::Tree;
use crate::recorded;
use crate::report::{Goal, Measured};
use crate::verdict::Recorded;
use std::time::{Duration, Instant};

const MOST_IDLE_MB: f64 = 12.0;
const MOST_MB: f64 = 64.0;
/// What is sent at once where it is sent slowly: with what comes back, far less than a
/// recorder's queue holds.
const AT_ONCE: usize = 4_000_000;
/// More than this is not sent slowly.
const MOST_SLOWLY: u64 = 100_000_000;

pub(crate) fn run(quick: bool) -> Result<Vec<Measured>> {
    let mut lines = vec![idle()?];
    for abuse in abuse::all(quick) {
        lines.push(peak(&abuse)?);
    }
    Ok(lines)
}

fn idle() -> Result<Measured> {
    let place = Place::new(Processors::Any)?;
    let mut client = Client::start(place.command(Contender::Relay))?;
    client.initialize()?;
    client.ask(&call(1, "echo", r#""text":"hello""#))?;
    let tree = Tree::of(client.pid()).without(&SERVERS);
    tree.wait_until_idle();
    let each = tree.memory_of_each();
    let traffic = client.close()?;
    let parts: Vec<String> = each.iter().map(|m| format!("{:.1}", m.now)).collect();
    Ok(Measured {
        what: "idle after one call, MB".into(),
        goal: Goal::AtMost(MOST_IDLE_MB),
        value: each.iter().map(|memory| memory.now).sum(),
        detail: format!("MB, process by process: {}", parts.join(", ")),
        recorded: recorded::exactly(&place.store(), &[traffic])?,
        gaps_allowed: false,
    })
}

/// The highest of three: as fast as it goes, where most of it finds no room in the recorder's
/// queue; the same without redaction; and so slowly that all of it is recorded.
fn peak(abuse: &Abuse) -> Result<Measured> {
    let mut ways = vec![("fast", true, false), ("not redacted", false, false)];
    if abuse.total() <= MOST_SLOWLY {
        ways.push(("slowly", true, true));
    }
    let (mut most, mut parts, mut all) = (0.0_f64, Vec::new(), Recorded::All);
    for (how, redact, slowly) in ways {
        let (peak, recorded) = under(abuse, redact, slowly)?;
        most = most.max(peak);
        parts.push(match recorded {
            Recorded::WithGaps(bytes) => {
                // There and back.
                let share = bytes as f64 / (2 * abuse.total()) as f64 * 100.0;
                format!("{how} {peak:.1} ({share:.0} % in gaps)")
            }
            _ => format!("{how} {peak:.1}"),
        });
        all = all.and(recorded);
    }
    Ok(Measured {
        what: format!("most under {}, MB", abuse.what),
        goal: Goal::AtMost(MOST_MB),
        value: most,
        detail: format!("MB: {}", parts.join(", ")),
        recorded: all,
        gaps_allowed: true,
    })
}

fn under(abuse: &Abuse, redact: bool, slowly: bool) -> Result<(f64, Recorded)> {
    let place = Place::new(Processors::Any)?;
    let mut client = Client::start(place.relay(MIRROR, redact))?;
    // One small line there and back: the server runs.
    client.flood(&[&ping(0)])?;
    let tree = Tree::of(client.pid()).without(&SERVERS);
    let (mut pieces, mut length) = (Vec::new(), 0);
    for piece in abuse.pieces() {
        pieces.push(piece);
        length += piece.len();
        if slowly && length >= AT_ONCE {
            client.flood(&pieces)?;
            tree.wait_until_idle();
            pieces.clear();
            length = 0;
        }
    }
    client.flood(&pieces)?;
    tree.wait_until_idle();
    let (traffic, peak) = close(client, &tree)?;
    Ok((peak, recorded::in_length(&place.store(), &[traffic])?))
}

/// Ends the session, in which a last frame may still have to be dealt with, and watches the
/// memory until the relay is gone.
fn close(client: Client, tree: &Tree) -> Result<(Traffic, f64)> {
    let mut peak = tree.memory().peak;
    let closing = std::thread::spawn(move || client.close().map_err(|error| error.to_string()));
    let end = Instant::now() + Duration::from_secs(120);
    while !closing.is_finished() && Instant::now() < end {
        peak = peak.max(tree.memory().peak);
        std::thread::sleep(Duration::from_millis(1));
    }
    let closed = closing.join().map_err(|_| "closing failed")?;
    Ok((closed?, peak))
}
