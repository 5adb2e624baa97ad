//! What every engine owes, asked of all of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use agent_trace_index::engine::memory::Memory;
use agent_trace_index::engine::sled::{CACHE, Sled};
use agent_trace_index::engine::{Batch, Engine};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a promise on each engine.
fn on_each(promise: impl Fn(&str, Arc<dyn Engine>)) {
    promise("memory", Arc::new(Memory::default()));
    let folder = tempfile::tempdir().unwrap();
    promise("sled", Arc::new(sled(folder.path())));
    let folder = tempfile::tempdir().unwrap();
    let paged = Sled::gathering(folder.path(), CACHE, &ALL).unwrap();
    promise("sled with pages", Arc::new(paged));
}

/// Every first byte of a key.
const ALL: [u8; 256] = {
    let mut all = [0; 256];
    let mut at = 0;
    while at < 256 {
        all[at] = at as u8;
        at += 1;
    }
    all
};

fn sled(folder: &std::path::Path) -> Sled {
    Sled::open(folder, CACHE).unwrap()
}

fn put(engine: &dyn Engine, entries: &[(&[u8], &[u8])]) {
    let mut batch = Batch::default();
    for (key, value) in entries {
        batch.put(key.to_vec(), value.to_vec());
    }
    engine.apply(batch).unwrap();
}

/// The keys of a scan that takes at most so many.
fn keys(engine: &dyn Engine, prefix: &[u8], after: Option<&[u8]>, most: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    engine
        .scan(prefix, after, &mut |key, _| {
            found.push(key.to_vec());
            found.len() < most
        })
        .unwrap();
    found
}

#[test]
fn entries_come_in_the_order_of_their_bytes() {
    on_each(|name, engine| {
        let wanted: [&[u8]; 7] = [b"", b"\0", b"\0\0", b"\x01", b"a", b"a\0", b"\xff\xff"];
        let mut shuffled = wanted;
        shuffled.reverse();
        shuffled.swap(1, 4);
        for key in shuffled {
            put(&*engine, &[(key, b"v")]);
        }
        assert_eq!(keys(&*engine, b"", None, 99), wanted, "{name}");
        assert_eq!(engine.rows().unwrap(), 7, "{name}");
    });
}

#[test]
fn a_scan_has_a_prefix_and_goes_on_after_a_key() {
    on_each(|name, engine| {
        let all: [&[u8]; 8] = [
            b"a",
            b"b",
            b"b\0",
            b"b1",
            b"b2",
            b"b\xff",
            b"b\xff\xff",
            b"c",
        ];
        for key in all {
            put(&*engine, &[(key, key)]);
        }
        let scan = |prefix: &[u8], after| keys(&*engine, prefix, after, 99);
        assert_eq!(scan(b"b", None), all[1..7], "{name}");
        assert_eq!(scan(b"b", Some(b"b1")), all[4..7], "{name}");
        // A key that is not there, one before and one beyond the prefix.
        assert_eq!(scan(b"b", Some(b"b11")), all[4..7], "{name}");
        assert_eq!(scan(b"b", Some(b"a")), all[1..7], "{name}");
        assert_eq!(scan(b"b", Some(b"")), all[1..7], "{name}");
        assert_eq!(scan(b"b", Some(b"c")), [b""; 0], "{name}");
        assert_eq!(scan(b"b\xff\xff", None), all[6..7], "{name}");
        assert_eq!(scan(b"b\xff\xff", Some(b"b\xff\xff")), [b""; 0], "{name}");
        assert_eq!(scan(b"x", None), [b""; 0], "{name}");
        assert_eq!(keys(&*engine, b"b", None, 2), all[1..3], "{name}");
        // Pages of two put together are the whole.
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = keys(&*engine, b"b", after.as_deref(), 2);
            let Some(last) = page.last() else { break };
            after = Some(last.clone());
            paged.extend(page);
        }
        assert_eq!(paged, all[1..7], "{name}");
    });
}

#[test]
fn changes_count_in_their_order() {
    on_each(|name, engine| {
        put(&*engine, &[(b"kept", b"1"), (b"gone", b"1")]);
        let mut batch = Batch::default();
        batch.remove(b"gone".to_vec());
        batch.remove(b"never there".to_vec());
        batch.put(b"kept".to_vec(), b"2".to_vec());
        batch.put(b"again".to_vec(), b"1".to_vec());
        batch.remove(b"again".to_vec());
        batch.remove(b"back".to_vec());
        batch.put(b"back".to_vec(), b"3".to_vec());
        engine.apply(batch).unwrap();
        let get = |key: &[u8]| engine.get(key).unwrap();
        assert_eq!(get(b"gone"), None, "{name}");
        assert_eq!(get(b"kept").as_deref(), Some(&b"2"[..]), "{name}");
        assert_eq!(get(b"again"), None, "{name}");
        assert_eq!(get(b"back").as_deref(), Some(&b"3"[..]), "{name}");
        engine.apply(Batch::default()).unwrap();
        engine.flush().unwrap();
        assert_eq!(engine.rows().unwrap(), 2, "{name}");
    });
}

#[test]
fn values_may_be_big_or_empty() {
    on_each(|name, engine| {
        let big: Vec<u8> = (0..3 << 20).map(|at| (at * 7 % 251) as u8).collect();
        put(&*engine, &[(b"big", &big), (b"empty", b"")]);
        put(&*engine, &[(b"big2", &big)]);
        assert_eq!(engine.get(b"empty").unwrap(), Some(Vec::new()), "{name}");
        assert!(engine.get(b"big").unwrap() == Some(big.clone()), "{name}");
        put(&*engine, &[(b"big", b"small")]);
        assert!(engine.get(b"big2").unwrap() == Some(big), "{name}");
        assert_eq!(
            engine.get(b"big").unwrap().as_deref(),
            Some(&b"small"[..]),
            "{name}"
        );
    });
}

#[test]
fn who_scans_may_change_what_is_scanned() {
    on_each(|name, engine| {
        for number in 0..2000_u32 {
            put(&*engine, &[(&number.to_be_bytes(), b"")]);
        }
        let mut seen = 0;
        engine
            .scan(b"", None, &mut |key, _| {
                seen += 1;
                let mut batch = Batch::default();
                batch.remove(key.to_vec());
                engine.apply(batch).unwrap();
                true
            })
            .unwrap();
        assert_eq!((seen, engine.rows().unwrap()), (2000, 0), "{name}");
    });
}

#[test]
fn a_batch_is_seen_as_a_whole() {
    on_each(|name, engine| {
        let done = AtomicBool::new(false);
        let write = |value: u32| {
            let mut batch = Batch::default();
            for key in 0..50_u8 {
                batch.put(vec![key], value.to_be_bytes().to_vec());
            }
            engine.apply(batch).unwrap();
        };
        write(0);
        let read = |key: u8| engine.get(&[key]).unwrap().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..300).for_each(write);
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                // A later look is never older than an earlier one.
                let (first, last) = (read(0), read(49));
                assert!(first <= last, "{name}: {first:?} {last:?}");
                let (last, first) = (read(49), read(0));
                assert!(last <= first, "{name}: {first:?} {last:?}");
            }
        });
    });
}

#[test]
fn many_entries_are_all_there_after_opening_again() {
    const MANY: u32 = 60_000;
    let folder = tempfile::tempdir().unwrap();
    {
        let engine = sled(folder.path());
        for chunk in 0..60_u32 {
            let mut batch = Batch::default();
            for number in chunk * 1000..(chunk + 1) * 1000 {
                // Not in the order of the keys.
                let key = (number.wrapping_mul(7919) % MANY).to_be_bytes();
                batch.put(key.to_vec(), vec![number as u8; 100]);
            }
            engine.apply(batch).unwrap();
        }
        let mut batch = Batch::default();
        (0..MANY)
            .step_by(3)
            .for_each(|number| batch.remove(number.to_be_bytes().to_vec()));
        engine.apply(batch).unwrap();
    }
    let engine = sled(folder.path());
    let expected: Vec<_> = (0..MANY)
        .filter(|number| number % 3 != 0)
        .map(|number| number.to_be_bytes().to_vec())
        .collect();
    assert!(keys(&engine, b"", None, usize::MAX) == expected);
    assert!(engine.disk().unwrap() > 0);
}

/// One thing that is done to an engine.
#[derive(Clone, Debug)]
enum Act {
    Apply(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    Scan(Vec<u8>, Option<Vec<u8>>),
    Get(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    // Few different bytes, so that keys meet and are prefixes of each other.
    prop::collection::vec(prop::sample::select(&[0_u8, 1, b'a', 0xfe, 0xff][..]), 0..5)
}

fn act() -> impl Strategy<Value = Act> {
    let value = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..40));
    prop_oneof![
        3 => prop::collection::vec((key(), value), 0..12).prop_map(Act::Apply),
        1 => (key(), prop::option::of(key())).prop_map(|(prefix, after)| Act::Scan(prefix, after)),
        1 => key().prop_map(Act::Get),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// All engines do what an ordered map does.
    #[test]
    fn whatever_is_done_they_agree(acts in prop::collection::vec(act(), 1..60)) {
        on_each(|name, engine| {
            let mut map = BTreeMap::new();
            for act in acts.clone() {
                match act {
                    Act::Apply(changes) => {
                        for (key, value) in changes.clone() {
                            match value {
                                Some(value) => drop(map.insert(key, value)),
                                None => drop(map.remove(&key)),
                            }
                        }
                        engine.apply(Batch { changes }).unwrap();
                    }
                    Act::Scan(prefix, after) => {
                        let mut found = Vec::new();
                        engine.scan(&prefix, after.as_deref(), &mut |key, value| {
                            found.push((key.to_vec(), value.to_vec()));
                            true
                        }).unwrap();
                        let is_wanted = |key: &Vec<u8>| {
                            key.starts_with(&prefix) && after.as_ref().is_none_or(|after| key > after)
                        };
                        let wanted: Vec<_> = map.clone().into_iter()
                            .filter(|(key, _)| is_wanted(key)).collect();
                        assert_eq!(found, wanted, "{name}");
                    }
                    Act::Get(key) => {
                        assert_eq!(engine.get(&key).unwrap(), map.get(&key).cloned(), "{name}");
                    }
                }
            }
        });
    }
}
