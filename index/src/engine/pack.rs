//! Values as few bytes.
//!
//! ```text
//! 0 value                    as it is
//! 1 u32 length  zstd data    little-endian
//! ```

use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// It takes next to no time beside reading the journals that rows are made from.
const LEVEL: i32 = 6;
/// What values are likely to have in them: they repeat what stands here as if it stood in them.
/// Another text makes another [`SCHEMA`](crate::rows::SCHEMA).
const LIKELY: &[u8] = b"\x0dresources/get\x16notifications/message\x17notifications/progress\
    \x18notifications/cancelled\x20notifications/tools/list_changed\x13resources/subscribe\
    \x18resources/templates/list\x10logging/setLevel\x13completion/complete\
    \x16sampling/createMessage\x12elicitation/create\x0aroots/list\x0bprompts/get\
    \x0cprompts/list\x0eresources/read\x0eresources/list\x0fserver/discover\x04ping\
    \x0btools/call\x0atools/list\x19notifications/initialized\x0ainitialize\
    \x06-32601\x06-32602\x06-32603\x06-32000\
    \x0a2024-11-05\x0a2025-03-26\x0a2026-07-28\x0a2025-11-25\x0a2025-06-18\
    \x06search\x0aread_file\x0awrite_file\x04http\x0bclaude-code\x05stdio\x07default";
/// Values of less than so many bytes are left as they are.
const LEAST: usize = 200;
/// No value is longer, in bytes.
const LONGEST: usize = 1 << 30;

const PLAIN: u8 = 0;
const PACKED: u8 = 1;

// Making one takes longer than what it does.
thread_local! {
    static PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A value as it is kept.
pub(super) fn pack(value: &[u8]) -> Vec<u8> {
    if let Some(packed) = packed(value)
        && packed.len() < value.len()
    {
        return packed;
    }
    [&[PLAIN], value].concat()
}

fn packed(value: &[u8]) -> Option<Vec<u8>> {
    if !(LEAST..=LONGEST).contains(&value.len()) {
        return None;
    }
    let length = u32::try_from(value.len()).ok()?;
    PACKER.with_borrow_mut(|kept| {
        let packer = match kept {
            Some(packer) => packer,
            none => {
                let mut packer = Compressor::with_dictionary(LEVEL, LIKELY).ok()?;
                packer.include_contentsize(false).ok()?;
                packer.include_checksum(false).ok()?;
                none.insert(packer)
            }
        };
        let data = packer.compress(value).ok()?;
        Some([&[PACKED], &length.to_le_bytes()[..], &data].concat())
    })
}

/// The value that is kept so; none where it is none.
pub(super) fn unpack(kept: &[u8]) -> Option<std::borrow::Cow<'_, [u8]>> {
    match kept.split_first()? {
        (&PLAIN, value) => Some(value.into()),
        (&PACKED, rest) => {
            let (length, data) = rest.split_first_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            unpacked(data, length).map(Into::into)
        }
        _ => None,
    }
}

fn unpacked(data: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > LONGEST {
        return None;
    }
    UNPACKER.with_borrow_mut(|kept| {
        let unpacker = match kept {
            Some(unpacker) => unpacker,
            none => none.insert(Decompressor::with_dictionary(LIKELY).ok()?),
        };
        let value = unpacker.decompress(data, length).ok()?;
        (value.len() == length).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back_and_nothing_else_does() {
        for length in [0, 1, LEAST - 1, LEAST, 10_000] {
            let row = b"0123456789".repeat(length / 10 + 1)[..length].to_vec();
            let kept = pack(&row);
            assert!(length < LEAST || kept.len() < length / 2);
            assert_eq!(unpack(&kept).as_deref(), Some(&row[..]));
        }
        let kept = pack(&[7; 1_000]);
        for wrong in [
            &kept[..9],
            &kept[..3],
            b"",
            b"\x02",
            b"\x01\xff\xff\xff\xff",
        ] {
            assert_eq!(unpack(wrong), None);
        }
        let noise: Vec<u8> = (0..1_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert_eq!(unpack(&pack(&noise)).as_deref(), Some(&noise[..]));
    }
}
