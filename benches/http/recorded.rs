//! Whether what was recorded is what was sent.

use crate::Result;
use crate::tally::{Tally, Traffic};
use crate::verdict::Recorded;
use agent_trace_model::Stream;
use agent_trace_store::Store;
use agent_trace_store::journal::header::{Gap, Meta};
use agent_trace_store::journal::{Envelope, Kind, Segment};
use agent_trace_wire::frame::Framing;

/// Compares all that is in a store, whose relays have ended, with what clients sent and
/// received. There are no secrets in the bodies, so payloads are what was sent.
pub(crate) fn compare(store: &Store, traffic: &Traffic) -> Result<Recorded> {
    let (mut found, mut stray) = (Traffic::default(), Tally::default());
    let (mut lost, mut gaps) = (0, 0);
    for path in store.segments()? {
        let segment = Segment::open(&path)?;
        for record in segment.records() {
            let Ok(record) = record else {
                return Ok(Recorded::Differs("damaged".into()));
            };
            let Envelope {
                kind,
                stream,
                framing,
                ..
            } = record.envelope;
            match (kind, framing, stream) {
                (Kind::Frame, Framing::Event, _) => found.events.add(&record.payload),
                (Kind::Frame, Framing::Body, Stream::ClientToServer) => {
                    found.sent.add(&record.payload);
                }
                (Kind::Frame, Framing::Body, _) => found.received.add(&record.payload),
                (Kind::Frame, ..) => stray.add(&record.payload),
                (Kind::Meta, ..) => {
                    let meta = serde_json::from_slice(&record.payload)?;
                    found.exchanges += u64::from(matches!(meta, Meta::Finished(_)));
                }
                (Kind::Gap, ..) => {
                    let gap: Gap = serde_json::from_slice(&record.payload)?;
                    lost += gap.bytes;
                    gaps += 1;
                }
                _ => {}
            }
        }
    }
    if found == *traffic && stray.count == 0 && gaps == 0 {
        return Ok(Recorded::All);
    }
    let parts = [
        ("requests", found.sent, traffic.sent),
        ("answers", found.received, traffic.received),
        ("events", found.events, traffic.events),
    ];
    let missing: u64 = parts
        .map(|(_, found, sent)| sent.bytes.saturating_sub(found.bytes))
        .iter()
        .sum();
    if gaps > 0 && missing <= lost {
        return Ok(Recorded::WithGaps(lost));
    }
    let mut text = format!("exchanges {} of {}", found.exchanges, traffic.exchanges);
    for (name, found, sent) in parts {
        text += &format!(", {name} {} of {}", found.count, sent.count);
        if found.count == sent.count && found != sent {
            text += " (other bytes)";
        }
    }
    text += &format!(", {} stray, {lost} bytes in {gaps} gaps", stray.count);
    Ok(Recorded::Differs(text))
}
