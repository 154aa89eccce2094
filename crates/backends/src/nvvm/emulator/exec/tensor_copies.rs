//! `cp.async.bulk.tensor` in tile mode (PTX ISA, "cp.async.bulk.tensor").

use super::super::{
    error::FaultKind,
    machine::{AtLane, Context, Step, fail},
    memory::resolve_generic,
    module::Regs,
    races::Kind,
    syntax::Space,
    tensor_map::{self, Tile},
};
use super::{extend, memory::Target};

/// What a box in shared memory is aligned to.
const BOX_ALIGNMENT: usize = 128;

impl Context<'_, '_> {
    pub(super) fn coordinates(&self, registers: &Regs, lane: usize) -> Vec<i64> {
        registers.iter().map(|reg| extend(self.warp.get(*reg)[lane], 32)).collect()
    }

    fn tile(&mut self, lane: usize, map: u64, coordinates: &[i64]) -> Step<Tile> {
        let bytes = tensor_map::BYTES;
        let (target, start) = self.locate(Space::Generic, map, bytes, 64).at_lane(lane)?;
        let bytes: Vec<u8> =
            (start..start + bytes).map(|at| self.peek(target, at, 1, lane) as u8).collect();
        match Tile::decode(&bytes) {
            Some(tile) if tile.sizes.len() == coordinates.len() => {
                self.run.counts.bulk_bytes += tile.bytes() as u64;
                Ok(tile)
            }
            Some(_) => fail(lane, FaultKind::Invalid("rank of the tensor map differs".to_string())),
            None => fail(lane, FaultKind::Invalid("no tensor map at this address".to_string())),
        }
    }

    /// Elements outside the tensor are zero.
    pub(super) fn tensor_load(
        &mut self,
        lane: usize,
        to: u64,
        map: u64,
        coordinates: &[i64],
        mbarrier: u64,
    ) -> Step {
        let tile = self.tile(lane, map, coordinates)?;
        let base = resolve_shared(to);
        self.check_box(lane, base)?;
        let mut data = vec![0; tile.bytes()];
        for row in tile.rows(coordinates).iter().filter(|row| row.bytes > 0) {
            let (source, from) =
                self.locate(Space::Global, row.address, row.bytes, 1).at_lane(lane)?;
            self.record(source, from, row.bytes, Kind::Read, lane).at_lane(lane)?;
            self.check_written(source, from, row.bytes, lane).at_lane(lane)?;
            let Target::Buffer(number) = source else { continue };
            let source = &self.run.memory.buffers[number].bytes.data[from..from + row.bytes];
            for (index, byte) in source.iter().enumerate() {
                let linear = base + (row.offset + row.before + index) as u64;
                data[(tile.swizzle.apply(linear) - base) as usize] = *byte;
            }
        }
        self.start_copy(lane, to, data, mbarrier)
    }

    /// Elements outside the tensor are not stored. Like [`Self::bulk`]'s stores it is made at once.
    pub(super) fn tensor_store(
        &mut self,
        lane: usize,
        map: u64,
        coordinates: &[i64],
        from: u64,
    ) -> Step {
        let tile = self.tile(lane, map, coordinates)?;
        let base = resolve_shared(from);
        self.check_box(lane, base)?;
        if coordinates.iter().any(|at| *at < 0) {
            let message = "negative coordinate of a store to a tensor".to_string();
            return fail(lane, FaultKind::Invalid(message));
        }
        for row in tile.rows(coordinates).iter().filter(|row| row.bytes > 0) {
            let (target, to) =
                self.locate(Space::Global, row.address, row.bytes, 1).at_lane(lane)?;
            self.record(target, to, row.bytes, Kind::Write, lane).at_lane(lane)?;
            for index in 0..row.bytes {
                let linear = base + (row.offset + row.before + index) as u64;
                let at = tile.swizzle.apply(linear);
                let (source, at) = self.locate(Space::Shared, at, 1, 1).at_lane(lane)?;
                self.check_written(source, at, 1, lane).at_lane(lane)?;
                if index % 4 == 0 {
                    self.record(source, at, 1, Kind::Read, lane).at_lane(lane)?;
                }
                let byte = self.peek(source, at, 1, lane);
                self.poke(target, to + index, 1, byte, lane).at_lane(lane)?;
            }
        }
        Ok(())
    }

    fn check_box(&self, lane: usize, base: u64) -> Step {
        if base.is_multiple_of(BOX_ALIGNMENT as u64) {
            return Ok(());
        }
        let message = format!("shared address {base:#x} of a box is not aligned to 128 bytes");
        fail(lane, FaultKind::Invalid(message))
    }
}

/// The address in `.shared` of an address there or a generic one.
fn resolve_shared(address: u64) -> u64 {
    if address >> 32 == 0 { address } else { resolve_generic(address).1 }
}
