//! Files of every version of the format are still read, and this version still writes what
//! its number promises.
//!
//! `AGENT_TRACE_WRITE_FIXTURES=1 cargo test -p agent-trace-store --test format` writes the
//! files of the current version anew. Do that for a new version only: a file of a released
//! version never changes.

#![allow(clippy::unwrap_used)]

use agent_trace_model::{End, Ending, ProcessId, Stream};
use agent_trace_store::Store;
use agent_trace_store::journal::format::{self, Span};
use agent_trace_store::journal::header::{Gap, Meta, Redaction, SessionEnd, SessionOpen};
use agent_trace_store::journal::sealed::Sealer;
use agent_trace_store::journal::writer::Writer;
use agent_trace_store::journal::{Bodies, Envelope, Flags, Header, Kind, Record, Segment, sealed};
use agent_trace_store::process::Process;
use agent_trace_store::redact::Key;
use agent_trace_wire::frame::Framing;
use std::fs;
use std::path::{Path, PathBuf};

const START: u64 = 1_796_040_000_000_000_000;

fn header() -> Header {
    Header {
        process: ProcessId::new(START / 1_000_000, [7; 10]),
        segment: 1,
        version: "0.1.0".into(),
        started: START,
        host: "host".into(),
        boot: "boot".into(),
        relay: Process {
            pid: 20,
            started: 200,
            name: "agent-trace".into(),
        },
        client: Some(Process {
            pid: 10,
            started: 100,
            name: "client".into(),
        }),
        redaction: Redaction {
            on: true,
            key: "0a0b0c0d".into(),
            user_rules: 1,
        },
        bodies: Bodies::Full,
        workspace: "default".into(),
        project: Some("/project".into()),
    }
}

fn records() -> Vec<Record> {
    let mut sequence = 0;
    let mut record = |kind, stream, framing, payload: Vec<u8>| {
        sequence += 1;
        Record {
            envelope: Envelope {
                kind,
                stream,
                framing,
                flags: Flags::default(),
                session: 1,
                exchange: 0,
                sequence,
                wall: START + sequence * 1_000,
                monotonic: sequence * 1_000,
                length: payload.len() as u64,
                digest: None,
                spans: vec![],
            },
            payload,
        }
    };
    use Stream::{ClientToServer as C, ServerToClient as S, Stderr as E};
    let opening = Meta::SessionOpen(SessionOpen {
        transport: "stdio".into(),
        started: START,
        server: Some("server".into()),
        command: vec!["server".into(), "--flag".into()],
        cwd: "/project".into(),
        env: vec!["PATH".into()],
        pid: Some(30),
        ..SessionOpen::default()
    });
    let gap = Gap {
        reason: "queue_full".into(),
        since: START,
        frames: 1,
        bytes: 9,
        stream: Some(S),
    };
    let end = SessionEnd {
        end: End {
            ending: Ending::ClientClosed,
            exit_code: Some(0),
            signal: None,
            killed: false,
            error: None,
        },
        frames: [2, 2, 1],
        bytes: [100, 200, 10],
        lost: 9,
    };
    let mut all = vec![
        record(Kind::Meta, C, Framing::Stray, json(&opening)),
        record(
            Kind::Frame,
            C,
            Framing::Newline,
            b"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"k\":\"[REDACTED:token:01020304]\"}}}\n".to_vec(),
        ),
        record(
            Kind::Frame,
            S,
            Framing::ContentLength,
            b"Content-Length: 22\r\n\r\n{\"id\":1,\"result\":null}".to_vec(),
        ),
        record(Kind::Frame, S, Framing::Stray, b"banner \xff\n".to_vec()),
        record(Kind::Stderr, E, Framing::Stray, b"a line\n".to_vec()),
        record(Kind::Gap, S, Framing::Stray, json(&gap)),
        record(Kind::End, S, Framing::Stray, json(&end)),
    ];
    all[1].envelope.spans = vec![Span {
        at: 70,
        length: 25,
        original: 40,
    }];
    all[3].envelope.flags = Flags::CUT.with(Flags::INCOMPLETE).with(Flags::DIGEST);
    all[3].envelope.digest = Some([9; 32]);
    all[3].envelope.length = 9_000_000;
    all
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

fn journal() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let chain = Key::from_bytes([1; 32]).chain();
    let mut writer = Writer::chained(&store, header(), chain).unwrap();
    for record in records() {
        writer.append(&record.envelope, &record.payload).unwrap();
    }
    writer.flush().unwrap();
    writer.close().unwrap();
    let path = store.segments().unwrap().remove(0).path;
    fs::read(path).unwrap()
}

fn sealed_file() -> Vec<u8> {
    let mut sealer = Sealer::new(&header(), Key::from_bytes([1; 32]).chain()).unwrap();
    for record in records() {
        let mut raw = Vec::new();
        format::encode(&record.envelope, &record.payload, &mut raw);
        raw.extend_from_slice(&record.payload);
        sealer.add(&record, &raw).unwrap();
    }
    sealer.finish().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/format")
        .join(name)
}

fn committed(name: &str, current: Option<Vec<u8>>) -> Vec<u8> {
    if let Some(bytes) =
        current.filter(|_| std::env::var_os("AGENT_TRACE_WRITE_FIXTURES").is_some())
    {
        fs::write(fixture(name), bytes).unwrap();
    }
    fs::read(fixture(name)).unwrap()
}

#[test]
fn version_1_0_is_read() {
    for (name, is_sealed, current) in [
        ("1.0.atj", false, journal()),
        ("1.0.ats", true, sealed_file()),
    ] {
        let segment =
            Segment::from_bytes(committed(name, Some(current)), is_sealed, false).unwrap();
        assert_eq!(*segment.header(), header(), "{name}");
        let read: Vec<Record> = segment.records().map(Result::unwrap).collect();
        assert_eq!(read, records(), "{name}");
    }
    let footer = sealed::footer(&committed("1.0.ats", None)).unwrap();
    assert_eq!(footer.records, 7);
}

#[test]
fn version_1_0_is_what_is_written() {
    // Of a sealed file the compressed bytes may change with the library; what it holds is
    // checked above.
    assert_eq!(journal(), committed("1.0.atj", None));
}
