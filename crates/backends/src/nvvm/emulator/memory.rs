//! Memory of the device: buffers, windows of generic addresses, initialised bytes.
//!
//! A buffer has a window of 2^40 addresses of its own and begins in its middle, so that an address
//! near it, before or behind, still tells whose it is. A buffer is aligned to what it was asked
//! for and to no more. The other spaces have windows of 2^32 addresses, as in generic addressing
//! (PTX ISA, "Generic Addressing"); an address in `.shared` and the like is the offset in its
//! window.

use super::error::{FaultKind, Place};
use super::syntax::Space;

/// Where shared memory begins in its window; the hardware keeps the first 1024 bytes since `sm_90`.
pub(super) const SHARED_START: u64 = 1024;

const SHARED_WINDOW: u64 = 1 << 32;
const LOCAL_WINDOW: u64 = 2 << 32;
const CONSTANT_WINDOW: u64 = 3 << 32;
const PARAMETER_WINDOW: u64 = 4 << 32;
const BUFFER_BITS: u32 = 40;
const BUFFER_MIDDLE: u64 = 1 << (BUFFER_BITS - 1);

/// The base of a space's window of generic addresses; global addresses are generic.
pub(super) fn window(space: Space) -> u64 {
    match space {
        Space::Shared | Space::Cluster => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Constant => CONSTANT_WINDOW,
        Space::Parameter => PARAMETER_WINDOW,
        Space::Global | Space::Generic => 0,
    }
}

/// The space of a generic address, and the address in it.
pub(super) fn resolve_generic(address: u64) -> (Space, u64) {
    let offset = address & u64::from(u32::MAX);
    match address & !u64::from(u32::MAX) {
        SHARED_WINDOW => (Space::Shared, offset),
        LOCAL_WINDOW => (Space::Local, offset),
        CONSTANT_WINDOW => (Space::Constant, offset),
        PARAMETER_WINDOW => (Space::Parameter, offset),
        _ => (Space::Global, address),
    }
}

/// A buffer of [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer(pub(super) usize);

impl Buffer {
    /// The number that error messages name.
    pub fn number(self) -> usize {
        self.0
    }
}

/// Bytes, and which of them something wrote.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes {
    pub data: Vec<u8>,
    /// One flag a byte.
    pub written: Vec<bool>,
}

impl Bytes {
    pub fn uninitialised(length: usize) -> Bytes {
        Bytes { data: vec![0; length], written: vec![false; length] }
    }

    pub fn initialised(data: Vec<u8>) -> Bytes {
        let written = vec![true; data.len()];
        Bytes { data, written }
    }

    /// Fails if nothing wrote some of these bytes.
    #[inline]
    pub fn check_written(&self, place: Place, start: usize, bytes: usize) -> Result<(), FaultKind> {
        if self.written[start..start + bytes].iter().all(|written| *written) {
            return Ok(());
        }
        Err(FaultKind::Uninitialised { place, offset: start as i64, bytes })
    }

    /// The little-endian number at an offset.
    #[inline]
    pub fn load(&self, start: usize, bytes: usize) -> u64 {
        load(&self.data, start, bytes)
    }

    #[inline]
    pub fn store(&mut self, start: usize, bytes: usize, value: u64) {
        let data = &mut self.data[start..start + bytes];
        match bytes {
            4 => data.copy_from_slice(&(value as u32).to_le_bytes()),
            8 => data.copy_from_slice(&value.to_le_bytes()),
            _ => data.copy_from_slice(&value.to_le_bytes()[..bytes]),
        }
        self.written[start..start + bytes].fill(true);
    }

    pub fn write(&mut self, start: usize, bytes: &[u8]) {
        self.data[start..start + bytes.len()].copy_from_slice(bytes);
        self.written[start..start + bytes.len()].fill(true);
    }
}

/// The little-endian number of so many bytes.
#[inline]
pub(super) fn load(data: &[u8], start: usize, bytes: usize) -> u64 {
    // The frequent sizes are copies of constant length.
    let data = &data[start..start + bytes];
    match (bytes, data.first_chunk::<4>(), data.first_chunk::<8>()) {
        (4, Some(word), _) => u64::from(u32::from_le_bytes(*word)),
        (8, _, Some(word)) => u64::from_le_bytes(*word),
        _ => data.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)),
    }
}

/// The global memory of a device.
///
/// ```
/// use tc_backends::nvvm::emulator::Memory;
/// let mut memory = Memory::new();
/// let x = memory.allocate(16, 16);
/// memory.write(x, 0, &1.5f32.to_le_bytes());
/// assert_eq!(memory.read(x)[..4], 1.5f32.to_le_bytes());
/// ```
#[derive(Debug, Default)]
pub struct Memory {
    pub(super) buffers: Vec<Allocation>,
}

/// Checks the bounds of an access to an object of so many bytes; the offset in it.
#[inline]
pub(super) fn in_bounds(
    place: Place,
    offset: i64,
    bytes: usize,
    length: usize,
) -> Result<usize, FaultKind> {
    match usize::try_from(offset) {
        Ok(start) if start <= length && length - start >= bytes => Ok(start),
        _ => Err(FaultKind::OutOfBounds { place, offset, bytes, length }),
    }
}

/// A buffer's bytes and address.
#[derive(Debug)]
pub(super) struct Allocation {
    pub bytes: Bytes,
    pub address: u64,
}

impl Memory {
    /// Memory without buffers.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Creates a buffer of bytes that nothing wrote, aligned to `align` and to no more.
    ///
    /// # Panics
    ///
    /// Panics if `align` is not a power of two below 2^38.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Buffer {
        assert!(align.is_power_of_two() && align < 1 << 38, "alignment {align}");
        let number = self.buffers.len();
        let base = ((number as u64 + 1) << BUFFER_BITS) + BUFFER_MIDDLE;
        let address = base + align as u64;
        self.buffers.push(Allocation { bytes: Bytes::uninitialised(bytes), address });
        Buffer(number)
    }

    /// Creates a buffer with these bytes.
    pub fn create(&mut self, bytes: &[u8], align: usize) -> Buffer {
        let buffer = self.allocate(bytes.len(), align);
        self.write(buffer, 0, bytes);
        buffer
    }

    /// Writes bytes at an offset.
    ///
    /// # Panics
    ///
    /// Panics if they do not fit.
    pub fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) {
        self.buffers[buffer.0].bytes.write(offset, bytes);
    }

    /// The buffers, in the order of their creation.
    pub fn buffers(&self) -> impl Iterator<Item = Buffer> {
        (0..self.buffers.len()).map(Buffer)
    }

    /// All bytes of a buffer; those that nothing wrote are zero.
    pub fn read(&self, buffer: Buffer) -> &[u8] {
        &self.buffers[buffer.0].bytes.data
    }

    /// Whether something wrote each byte of a buffer.
    pub fn written(&self, buffer: Buffer) -> &[bool] {
        &self.buffers[buffer.0].bytes.written
    }

    /// The device address of a buffer.
    pub fn address(&self, buffer: Buffer) -> u64 {
        self.buffers[buffer.0].address
    }

    /// Gives up the bytes of a buffer. Accesses of it are errors then.
    pub fn free(&mut self, buffer: Buffer) {
        self.buffers[buffer.0].bytes = Bytes::default();
    }

    /// Copies bytes between buffers, each given with an offset, and whether something wrote them.
    ///
    /// # Panics
    ///
    /// Panics if they do not fit.
    pub fn copy(&mut self, target: (Buffer, usize), source: (Buffer, usize), bytes: usize) {
        let from = &self.buffers[source.0.0].bytes;
        let data = from.data[source.1..source.1 + bytes].to_vec();
        let written = from.written[source.1..source.1 + bytes].to_vec();
        let to = &mut self.buffers[target.0.0].bytes;
        to.data[target.1..target.1 + bytes].copy_from_slice(&data);
        to.written[target.1..target.1 + bytes].copy_from_slice(&written);
    }

    /// The buffer that holds so many bytes from an address on, and the offset from its start.
    ///
    /// # Errors
    /// No buffer holds all of them.
    pub fn place(&self, address: u64, bytes: usize) -> Result<(Buffer, usize), FaultKind> {
        let (number, offset) = self.resolve(address, bytes)?;
        let length = self.buffers[number].bytes.data.len();
        let offset = in_bounds(Place::Buffer(number), offset, bytes, length)?;
        Ok((Buffer(number), offset))
    }

    /// The buffer whose window holds an address, and the offset from its start.
    #[inline]
    pub(super) fn resolve(&self, address: u64, bytes: usize) -> Result<(usize, i64), FaultKind> {
        let number = (address >> BUFFER_BITS).wrapping_sub(1) as usize;
        match self.buffers.get(number) {
            Some(allocation) => Ok((number, address.wrapping_sub(allocation.address) as i64)),
            None => {
                let (place, offset) = (Place::Global, address as i64);
                Err(FaultKind::OutOfBounds { place, offset, bytes, length: 0 })
            }
        }
    }
}
