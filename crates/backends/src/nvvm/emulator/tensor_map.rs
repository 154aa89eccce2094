//! Tensor maps: what `cuTensorMapEncodeTiled` makes and `cp.async.bulk.tensor` takes (PTX ISA,
//! "Tensors", "Tensor Mode", "Swizzling Modes").
//!
//! The 128 bytes of a device are opaque, so the emulator has an encoding of its own.

use super::memory::Buffer;

/// Bytes of an encoded map.
pub(super) const BYTES: usize = 128;

const MAGIC: u64 = u64::from_le_bytes(*b"tc-tmap1");

/// How 16-byte pieces of a row are exchanged in shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// Where the byte of a shared address lies: bits 4 to 6 are xored with bits 7 to 9, or fewer.
    pub(super) fn apply(self, address: u64) -> u64 {
        let mask = match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 1,
            Swizzle::Bytes64 => 3,
            Swizzle::Bytes128 => 7,
        };
        address ^ (address >> 7 & mask) << 4
    }

    /// Bytes of a row.
    pub(super) fn span(self) -> u64 {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

/// A tensor in global memory and the box that one copy moves. Dimensions are innermost first.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorMap {
    /// Where the tensor begins.
    pub buffer: Buffer,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element_bytes: usize,
    /// Extents of the tensor in elements.
    pub sizes: Vec<u64>,
    /// Bytes between neighbours of every dimension but the innermost.
    pub strides: Vec<u64>,
    /// Extents of the box in elements.
    pub box_sizes: Vec<u32>,
    /// The order in shared memory.
    pub swizzle: Swizzle,
}

/// A decoded map.
#[derive(Debug)]
pub(super) struct Tile {
    pub address: u64,
    pub element_bytes: usize,
    pub sizes: Vec<u64>,
    /// One for each dimension, the innermost included.
    pub strides: Vec<u64>,
    pub box_sizes: Vec<u64>,
    pub swizzle: Swizzle,
}

impl TensorMap {
    /// The bytes of the parameter, for a tensor at an address; nothing if the map is not valid.
    pub(super) fn encode(&self, address: u64) -> Option<Vec<u8>> {
        let rank = self.sizes.len();
        let valid = (1..=5).contains(&rank)
            && self.strides.len() == rank - 1
            && self.box_sizes.len() == rank
            && matches!(self.element_bytes, 1 | 2 | 4 | 8)
            && address.is_multiple_of(16)
            && self.strides.iter().all(|stride| stride.is_multiple_of(16))
            && self.box_sizes.iter().all(|size| (1..=256).contains(size));
        let row = u64::from(*self.box_sizes.first()?) * self.element_bytes as u64;
        let fits =
            row.is_multiple_of(16) && (self.swizzle == Swizzle::None || row <= self.swizzle.span());
        if !valid || !fits {
            return None;
        }
        let mut words = vec![MAGIC, address, rank as u64, self.element_bytes as u64];
        words.push(self.swizzle as u64);
        // The extents, then the strides, then two box sizes a word.
        words.extend((0..5).map(|axis| self.sizes.get(axis).copied().unwrap_or(1)));
        words.extend((0..4).map(|axis| self.strides.get(axis).copied().unwrap_or(0)));
        let size = |axis: usize| u64::from(self.box_sizes.get(axis).copied().unwrap_or(1));
        words.push(size(0) | size(1) << 32);
        words.push(size(2) | size(3) << 16 | size(4) << 32);
        Some(words.into_iter().flat_map(u64::to_le_bytes).collect())
    }
}

impl Tile {
    /// Reads an encoded map.
    pub fn decode(bytes: &[u8]) -> Option<Tile> {
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
            .collect();
        let [magic, address, rank, element_bytes, swizzle, rest @ ..] = words.as_slice() else {
            return None;
        };
        let (rank, rest) = (*rank as usize, rest.get(..11)?);
        if *magic != MAGIC || !(1..=5).contains(&rank) {
            return None;
        }
        let boxes = [
            rest[9] & 0xffff,
            rest[9] >> 32,
            rest[10] & 0xffff,
            rest[10] >> 16 & 0xffff,
            rest[10] >> 32,
        ];
        let swizzle = match swizzle {
            0 => Swizzle::None,
            1 => Swizzle::Bytes32,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes128,
        };
        let strides = std::iter::once(*element_bytes).chain(rest[5..9].iter().copied());
        Some(Tile {
            address: *address,
            element_bytes: *element_bytes as usize,
            sizes: rest[..rank].to_vec(),
            strides: strides.take(rank).collect(),
            box_sizes: boxes[..rank].to_vec(),
            swizzle,
        })
    }

    /// Bytes of the box.
    pub fn bytes(&self) -> usize {
        self.box_sizes.iter().product::<u64>() as usize * self.element_bytes
    }

    /// The rows of the box at some coordinates: for each its offset in the box and, if any of it lies
    /// in the tensor, the address of its first inner byte, how many bytes of it come before, and
    /// how many lie inside.
    pub fn rows(&self, coordinates: &[i64]) -> Vec<Row> {
        let row_bytes = self.box_sizes[0] as usize * self.element_bytes;
        let count = self.box_sizes[1..].iter().product::<u64>();
        let mut rows = Vec::with_capacity(count as usize);
        for number in 0..count {
            let (mut rest, mut inside) = (number, true);
            let mut address = self.address;
            for (axis, coordinate) in coordinates.iter().enumerate().skip(1) {
                let at = coordinate + (rest % self.box_sizes[axis]) as i64;
                rest /= self.box_sizes[axis];
                inside &= (0..self.sizes[axis] as i64).contains(&at);
                address = address.wrapping_add_signed(at.wrapping_mul(self.strides[axis] as i64));
            }
            let first = coordinates[0].max(0);
            let end = (coordinates[0] + self.box_sizes[0] as i64).min(self.sizes[0] as i64);
            let elements = if inside { (end - first).max(0) as usize } else { 0 };
            rows.push(Row {
                offset: number as usize * row_bytes,
                before: (first - coordinates[0]) as usize * self.element_bytes,
                address: address.wrapping_add(first as u64 * self.element_bytes as u64),
                bytes: elements * self.element_bytes,
            });
        }
        rows
    }
}

/// A row of a box, and the part of it that lies in the tensor.
#[derive(Debug)]
pub(super) struct Row {
    pub offset: usize,
    pub before: usize,
    pub address: u64,
    pub bytes: usize,
}
