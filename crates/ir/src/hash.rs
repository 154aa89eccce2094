//! Hash tables for small keys that an attacker does not choose.
//!
//! The hash multiplies by a constant and folds the upper half of the product into the lower
//! (as in `wyhash` and `rustc-hash`), which costs a nanosecond where the standard library's
//! takes twenty. Iteration order never reaches results.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A hash map with [`FastHasher`].
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;
/// A hash set with [`FastHasher`].
pub(crate) type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// See the [module](self) text.
#[derive(Clone, Default)]
pub(crate) struct FastHasher(u64);

/// Mixes a number into a hash.
pub(crate) fn mix(hash: u64, value: u64) -> u64 {
    // The first digits of the golden ratio.
    let product = u128::from(hash ^ value) * 0x9e37_79b9_7f4a_7c15;
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are combined")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0.rotate_left(5), value);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value.cast_unsigned());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
