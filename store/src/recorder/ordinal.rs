//! Maps whose keys are numbers that we gave ourselves, one after another: nobody outside can
//! choose them, and they need no strong hash.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by ordinals.
pub(super) type ByOrdinal<V> = HashMap<u32, V, BuildHasherDefault<Mixer>>;

/// Spreads an ordinal over all bits.
#[derive(Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, ordinal: u32) {
        // The fraction of the golden ratio.
        self.0 = (self.0 ^ u64::from(ordinal)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
