//! Asynchronous copies and mbarriers (PTX ISA, "Data Movement and Conversion Instructions:
//! Asynchronous copy", "Parallel Synchronization and Communication Instructions: mbarrier").
//!
//! A copy reads its source when it starts, and its bytes land as late as the manual allows: at the
//! wait that guarantees them. Until then an access to the destination is an error.

use super::super::{
    error::FaultKind,
    machine::{AtLane, Context, Step, fail},
    mbarrier::{BulkCopy, MbarrierState},
    module::*,
    races::{Actor, Kind, join},
    syntax::Space,
    warp::{Copy, lanes},
};
use super::memory::{Request, Target};

impl Context<'_, '_> {
    pub(super) fn copy_async(&mut self, op: &CopyAsync) -> Step {
        let (to, from) = (self.addresses(op.to), self.addresses(op.from));
        self.run.counts.shared_copies.count(&to, self.mask, op.bytes);
        let ignored = op.ignore.map_or(0, |(p, negate)| self.warp.holds(p, !negate));
        let wanted = |context: &Self, lane: usize| match op.source_bytes {
            _ if ignored >> lane & 1 != 0 => 0,
            Some(reg) => context.warp.get(reg)[lane] as usize,
            None => op.bytes,
        };
        let all = self.mask;
        let reads = lanes(all).filter(|lane| wanted(self, *lane) > 0);
        self.mask = reads.fold(0, |mask, lane| mask | 1 << lane);
        if self.mask != 0 {
            self.count_request(Space::Global, &from, op.bytes, Request::Load);
        }
        self.mask = all;
        for lane in lanes(self.mask) {
            let bytes = op.bytes;
            let (target, start) =
                self.locate(Space::Shared, to[lane], bytes, bytes).at_lane(lane)?;
            let wanted = wanted(self, lane);
            if wanted > bytes {
                let message = format!("cp.async reads {wanted} bytes of {bytes}");
                return fail(lane, FaultKind::Invalid(message));
            }
            let mut data = [0; 16];
            if wanted > 0 {
                let (source, offset) =
                    self.locate(Space::Global, from[lane], wanted, bytes).at_lane(lane)?;
                self.record(source, offset, wanted, Kind::Read, lane).at_lane(lane)?;
                self.check_written(source, offset, wanted, lane).at_lane(lane)?;
                if let Target::Buffer(number) = source {
                    let source = &self.run.memory.buffers[number].bytes.data;
                    data[..wanted].copy_from_slice(&source[offset..offset + wanted]);
                }
            }
            self.record(target, start, bytes, Kind::InFlight, lane).at_lane(lane)?;
            self.warp.copies[lane].open.push(Copy { to: start, data, bytes });
        }
        Ok(())
    }

    pub(super) fn copy_commit(&mut self) {
        for lane in lanes(self.mask) {
            let copies = &mut self.warp.copies[lane];
            let group = std::mem::take(&mut copies.open);
            copies.groups.push_back(group);
        }
    }

    pub(super) fn copy_wait(&mut self, groups: Option<u32>) {
        for lane in lanes(self.mask) {
            if groups.is_none() {
                let open = std::mem::take(&mut self.warp.copies[lane].open);
                self.warp.copies[lane].groups.push_back(open);
            }
            let keep = groups.unwrap_or(0) as usize;
            while self.warp.copies[lane].groups.len() > keep {
                let group = self.warp.copies[lane].groups.pop_front().unwrap_or_default();
                for copy in group {
                    self.land(lane, &copy);
                }
            }
        }
    }

    fn land(&mut self, lane: usize, copy: &Copy) {
        self.block.shared.write(copy.to, &copy.data[..copy.bytes]);
        if self.run.options.check_races {
            let actor = self.warp.actor(lane, self.pc, self.block.number, self.run.warps_per_block);
            self.block.shadow.land(copy.to, copy.bytes, &actor);
        }
    }

    pub(super) fn mbarrier(&mut self, space: Space, address: Address, op: &Mbarrier) -> Step {
        let addresses = self.addresses(address);
        for lane in lanes(self.mask) {
            let (target, start) = self.locate(space, addresses[lane], 8, 8).at_lane(lane)?;
            if target != Target::Shared {
                let message = "mbarrier objects lie in shared memory".to_string();
                return fail(lane, FaultKind::Invalid(message));
            }
            self.mbarrier_lane(lane, start, op)?;
        }
        Ok(())
    }

    fn mbarrier_lane(&mut self, lane: usize, start: usize, op: &Mbarrier) -> Step {
        let value = |context: &Self, reg: Reg| context.warp.get(reg)[lane];
        if let Mbarrier::Init { count } = op {
            let count = value(self, *count) as u32;
            if count == 0 || count >= 1 << 20 {
                let message = format!("mbarrier count {count}");
                return fail(lane, FaultKind::Invalid(message));
            }
            self.block.mbarriers.insert(start, MbarrierState::new(count));
            self.block.shared.store(start, 8, u64::from(count));
            return Ok(());
        }
        if !self.block.mbarriers.contains_key(&start) {
            let message = format!("no mbarrier object at offset {start} of shared memory");
            return fail(lane, FaultKind::Invalid(message));
        }
        match op {
            Mbarrier::Init { .. } => {}
            Mbarrier::Invalidate => {
                self.block.mbarriers.remove(&start);
            }
            Mbarrier::Expect { bytes } => {
                let bytes = value(self, *bytes);
                self.with_mbarrier(start, |state| state.bytes += bytes as i64);
            }
            Mbarrier::Arrive { d, count, expect } => {
                let bytes = expect.map_or(0, |reg| value(self, reg));
                let count = count.map_or(1, |reg| value(self, reg) as u32);
                let token = self.with_mbarrier(start, |state| {
                    state.bytes += bytes as i64;
                    state.token()
                });
                self.arrive_at_mbarrier(lane, start, count)?;
                self.warp.set_lane(*d, lane, token);
            }
            Mbarrier::CopyArrive { noinc } => {
                self.copy_wait_all(lane);
                if !noinc {
                    self.with_mbarrier(start, |state| state.pending += 1);
                }
                self.arrive_at_mbarrier(lane, start, 1)?;
            }
            Mbarrier::Wait { d, phase, parity } => {
                let phase = value(self, *phase);
                let done = self.phase_is_complete(lane, start, phase, *parity);
                self.warp.set_lane(*d, lane, u64::from(done));
                self.yields |= !done;
            }
        }
        Ok(())
    }

    fn copy_wait_all(&mut self, lane: usize) {
        let mask = std::mem::replace(&mut self.mask, 1 << lane);
        self.copy_wait(None);
        self.mask = mask;
    }

    fn with_mbarrier<T: Default>(
        &mut self,
        start: usize,
        f: impl FnOnce(&mut MbarrierState) -> T,
    ) -> T {
        self.block.mbarriers.get_mut(&start).map(f).unwrap_or_default()
    }

    fn arrive_at_mbarrier(&mut self, lane: usize, start: usize, count: u32) -> Step {
        self.block.progress += 1;
        let stamp = self.warp.stamp;
        self.warp.stamp += 1;
        let snapshot = self.snapshot_at(lane, stamp);
        let pending = self.with_mbarrier(start, |state| {
            state.arrived.push(snapshot);
            state.pending
        });
        if count > pending {
            let message = format!("{count} arrivals at an mbarrier that expects {pending}");
            return fail(lane, FaultKind::Invalid(message));
        }
        self.with_mbarrier(start, |state| state.pending -= count);
        self.complete_phase(start);
        Ok(())
    }

    /// Goes on to the next phase if nothing is missing.
    fn complete_phase(&mut self, start: usize) {
        let (warps, block) = (self.block.num_warps, self.block.number);
        self.with_mbarrier(start, |state| {
            if state.complete() {
                let arrived = std::mem::take(&mut state.arrived);
                state.known = Some(join(warps, &arrived, block));
                state.phase += 1;
                state.pending = state.expected;
            }
        });
    }

    /// Whether a phase is complete. Copies land when only they are missing.
    fn phase_is_complete(&mut self, lane: usize, start: usize, phase: u64, parity: bool) -> bool {
        let is_done = |state: &MbarrierState| match parity {
            true => state.phase & 1 != phase & 1,
            false => state.phase != phase >> 32,
        };
        let (done, waits) = self.with_mbarrier(start, |state| (is_done(state), state.pending == 0));
        if !done && waits {
            while let Some(copy) =
                self.block.mbarriers.get_mut(&start).and_then(|state| state.copies.pop_front())
            {
                self.land_bulk(start, copy);
            }
            self.complete_phase(start);
        }
        let known = self.with_mbarrier(start, |state| match is_done(state) {
            true => Some(state.known.clone()),
            false => None,
        });
        match known {
            None => false,
            Some(known) => {
                if let Some(known) = known {
                    let (block, thread) = (self.block.number, 0);
                    let snapshot = super::super::races::Snapshot { known, block, thread, stamp: 0 };
                    self.learn(lane, [snapshot]);
                }
                true
            }
        }
    }

    fn land_bulk(&mut self, start: usize, copy: BulkCopy) {
        self.block.shared.write(copy.to, &copy.data);
        if self.run.options.check_races {
            let actor = Actor {
                block: self.block.number,
                warp: copy.warp,
                warps_per_block: self.run.warps_per_block,
                lane: copy.snapshot.thread % 32,
                stamp: copy.snapshot.stamp,
                pc: copy.pc,
                known: &copy.snapshot.known,
            };
            self.block.shadow.land(copy.to, copy.data.len(), &actor);
        }
        let bytes = copy.data.len() as i64;
        self.with_mbarrier(start, |state| {
            state.bytes -= bytes;
            state.arrived.push(copy.snapshot);
        });
    }

    pub(super) fn bulk(&mut self, op: &Bulk) -> Step {
        match op {
            Bulk::Commit => {
                for lane in lanes(self.mask) {
                    self.warp.copies[lane].bulk_groups.push_back(());
                }
            }
            Bulk::Wait { groups } => {
                for lane in lanes(self.mask) {
                    self.warp.copies[lane].bulk_groups.truncate(*groups as usize);
                }
            }
            Bulk::Load { to, from, bytes, mbarrier } => {
                let (to, from) = (self.addresses(*to), self.addresses(*from));
                let (bytes, mbarrier) = (*self.warp.get(*bytes), self.addresses(*mbarrier));
                for lane in lanes(self.mask) {
                    let bytes = self.bulk_bytes(lane, bytes[lane])?;
                    self.bulk_load(lane, to[lane], from[lane], bytes, mbarrier[lane])?;
                }
            }
            Bulk::TensorLoad { to, map, coordinates, mbarrier } => {
                let (to, map) = (self.addresses(*to), self.addresses(*map));
                let mbarrier = self.addresses(*mbarrier);
                for lane in lanes(self.mask) {
                    let coordinates = self.coordinates(coordinates, lane);
                    self.tensor_load(lane, to[lane], map[lane], &coordinates, mbarrier[lane])?;
                }
            }
            Bulk::TensorStore { map, coordinates, from } => {
                let (map, from) = (self.addresses(*map), self.addresses(*from));
                for lane in lanes(self.mask) {
                    let coordinates = self.coordinates(coordinates, lane);
                    self.tensor_store(lane, map[lane], &coordinates, from[lane])?;
                }
            }
            Bulk::Store { to, from, bytes } => {
                let (to, from) = (self.addresses(*to), self.addresses(*from));
                let bytes = *self.warp.get(*bytes);
                for lane in lanes(self.mask) {
                    let bytes = self.bulk_bytes(lane, bytes[lane])?;
                    self.bulk_store(lane, to[lane], from[lane], bytes)?;
                }
            }
        }
        Ok(())
    }

    fn bulk_bytes(&mut self, lane: usize, bytes: u64) -> Step<usize> {
        if bytes == 0 || !bytes.is_multiple_of(16) || bytes > 1 << 20 {
            let message = format!("bulk copy of {bytes} bytes, expected a multiple of 16");
            return fail(lane, FaultKind::Invalid(message));
        }
        self.run.counts.bulk_bytes += bytes;
        Ok(bytes as usize)
    }

    fn bulk_load(&mut self, lane: usize, to: u64, from: u64, bytes: usize, mbarrier: u64) -> Step {
        let (source, from) = self.locate(Space::Global, from, bytes, 16).at_lane(lane)?;
        self.record(source, from, bytes, Kind::Read, lane).at_lane(lane)?;
        self.check_written(source, from, bytes, lane).at_lane(lane)?;
        let Target::Buffer(number) = source else { return Ok(()) };
        let data = self.run.memory.buffers[number].bytes.data[from..from + bytes].to_vec();
        self.start_copy(lane, to, data, mbarrier)
    }

    /// Puts a copy into flight; the mbarrier counts its bytes.
    pub(super) fn start_copy(
        &mut self,
        lane: usize,
        to: u64,
        data: Vec<u8>,
        mbarrier: u64,
    ) -> Step {
        // Addresses may be generic ones of the cluster's window.
        let space = |address: u64| match address >> 32 {
            0 => Space::Shared,
            _ => Space::Generic,
        };
        let (target, to) = self.locate(space(to), to, data.len(), 16).at_lane(lane)?;
        let (_, mbarrier) = self.locate(space(mbarrier), mbarrier, 8, 8).at_lane(lane)?;
        self.record(target, to, data.len(), Kind::InFlight, lane).at_lane(lane)?;
        let stamp = self.warp.stamp;
        self.warp.stamp += 1;
        let snapshot = self.snapshot_at(lane, stamp);
        let warp = self.block.number * self.run.warps_per_block + self.warp.number as u32;
        let copy = BulkCopy { to, data, snapshot, pc: self.pc, warp };
        match self.block.mbarriers.get_mut(&mbarrier) {
            Some(state) => state.copies.push_back(copy),
            None => {
                let message = format!("no mbarrier object at offset {mbarrier} of shared memory");
                return fail(lane, FaultKind::Invalid(message));
            }
        }
        Ok(())
    }

    /// Stores are made at once; their source must not change before the wait.
    fn bulk_store(&mut self, lane: usize, to: u64, from: u64, bytes: usize) -> Step {
        let (target, to) = self.locate(Space::Global, to, bytes, 16).at_lane(lane)?;
        let (source, from) = self.locate(Space::Shared, from, bytes, 16).at_lane(lane)?;
        self.record(source, from, bytes, Kind::Read, lane).at_lane(lane)?;
        self.check_written(source, from, bytes, lane).at_lane(lane)?;
        self.record(target, to, bytes, Kind::Write, lane).at_lane(lane)?;
        let data = self.block.shared.data[from..from + bytes].to_vec();
        if let Target::Buffer(number) = target {
            self.run.memory.buffers[number].bytes.write(to, &data);
        }
        Ok(())
    }
}
