//! Any bytes are read as a journal or a sealed file without panic or much memory, and a whole
//! record after them is still found.
//!
//! The first byte chooses: bare bytes, bytes after a whole header, or a sealed file.

#![no_main]

use agent_trace_store::journal::format::{self, FILE_MAGIC};
use agent_trace_store::journal::{Record, Segment};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// A journal with a header and some records: a committed file of the current version.
const JOURNAL: &[u8] = include_bytes!("../../store/tests/format/1.0.atj");

static HEADER_AND_RECORD: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let segment = Segment::from_bytes(JOURNAL.to_vec(), false, false).expect("a whole file");
    let header = segment.header().encode(&FILE_MAGIC).expect("a header");
    let (_, raw) = segment.raw_records().flatten().last().expect("a record");
    (header, raw.to_vec())
});

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    let _ = format::decode(bytes);
    match choice % 3 {
        0 => drop(read(bytes.to_vec(), false)),
        1 => drop(read(bytes.to_vec(), true)),
        _ => {
            let (header, record) = &*HEADER_AND_RECORD;
            let file = [&header[..], bytes, record].concat();
            let found = read(file, false).expect("the header is whole");
            let last = found.last().expect("the record at the end is found");
            assert_eq!(
                format::decode(record).map(|(record, _)| record).as_ref(),
                Ok(last)
            );
        }
    }
});

fn read(file: Vec<u8>, sealed: bool) -> Option<Vec<Record>> {
    let segment = Segment::from_bytes(file, sealed, false).ok()?;
    Some(segment.records().flatten().collect())
}
