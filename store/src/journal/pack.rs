//! Compressing blocks, and getting them back.
//!
//! What zstd needs for that is kept for the next time: making it anew takes about as long as
//! unpacking a block, since the system hands out and takes back its memory each time.

use std::cell::RefCell;
use std::io;
use zstd::bulk::{Compressor, Decompressor};

/// Sealing is done once, and by nobody who is waited for: a third of the speed of level 3 for 4 %
/// less. Beyond it hardly anything is gained.
const LEVEL: i32 = 6;
/// What the protocol's messages are likely to say: blocks repeat what stands here as if it stood
/// before them, the likeliest last. It is a part of the format.
const LIKELY: &[u8] = include_bytes!("likely.txt");

thread_local! {
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The compressed form of these bytes.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    PACKER.with_borrow_mut(|kept| {
        let packer = match kept {
            Some(packer) => packer,
            none => {
                let mut packer = Compressor::with_dictionary(LEVEL, LIKELY)?;
                // The header of the block says how long it is.
                packer.include_contentsize(false)?;
                none.insert(packer)
            }
        };
        packer.compress(bytes)
    })
}

/// Appends what was compressed so, `length` bytes, to `out`. False, with nothing appended,
/// where it is something else; no more is unpacked then, whatever the data claims.
pub(super) fn unpack(data: &[u8], length: usize, out: &mut Vec<u8>) -> bool {
    let unpacked = UNPACKER.with_borrow_mut(|kept| {
        let unpacker = match kept {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::with_dictionary(LIKELY).ok()?),
        };
        unpacker.decompress(data, length).ok()
    });
    match unpacked {
        Some(bytes) if bytes.len() == length => {
            if out.is_empty() {
                *out = bytes;
            } else {
                out.extend_from_slice(&bytes);
            }
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_and_nothing_else_does() {
        let text = b"some text, some text, some text".repeat(9);
        let data = pack(&text).unwrap();
        assert!(data.len() < text.len());
        let mut out = b"before ".to_vec();
        assert!(unpack(&data, text.len(), &mut out));
        assert_eq!(out, [b"before ", &text[..]].concat());
        for (data, length) in [
            (&data[..], text.len() - 1),
            (&data[..], text.len() + 1),
            (&data[..9], text.len()),
            (b"none", 4),
        ] {
            let mut out = Vec::new();
            assert!(!unpack(data, length, &mut out));
            assert!(out.is_empty());
        }
        // It still works after what it could not do.
        let mut out = Vec::new();
        assert!(unpack(&data, text.len(), &mut out));
        assert_eq!(out, text);
    }
}
