//! Loads, stores, atomics and fences (PTX ISA, "Data Movement and Conversion Instructions",
//! "Parallel Synchronization and Communication Instructions").

use smallvec::SmallVec;

use super::super::{
    block::BlockState,
    error::{Access, FaultKind, Place},
    machine::{AtLane, Context, Release, Step},
    memory::{Bytes, in_bounds, load, resolve_generic},
    module::*,
    races::{Kind, Location, Snapshot, join},
    softfloat::{self, flush, is_nan},
    syntax::Space,
    warp::{Lanes, lanes},
};
use super::{extend, float::min_max, integer::integer, truncate};

/// The object that an address lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Buffer(usize),
    Shared,
    Local,
    Constant,
    Parameter,
}

impl Target {
    pub fn place(self) -> Place {
        match self {
            Target::Buffer(number) => Place::Buffer(number),
            Target::Shared => Place::Shared,
            Target::Local => Place::Local,
            Target::Constant => Place::Constant,
            Target::Parameter => Place::Parameter,
        }
    }
}

/// Which totals a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Load,
    Store,
    Atomic,
}

impl Context<'_, '_> {
    /// The addresses of all lanes.
    pub(super) fn addresses(&self, address: Address) -> Lanes {
        self.warp.get(address.base).map(|base| base.wrapping_add_signed(address.offset))
    }

    /// The object and the offset of an access, in bounds and aligned.
    #[inline]
    pub(super) fn locate(
        &self,
        space: Space,
        address: u64,
        bytes: usize,
        align: usize,
    ) -> Result<(Target, usize), FaultKind> {
        let (space, address) = match space {
            Space::Generic => resolve_generic(address),
            // Short shared pointers are 32-bit registers.
            Space::Shared => (Space::Shared, address),
            Space::Cluster => (Space::Shared, resolve_generic(address).1),
            space => (space, address),
        };
        let (target, offset, length) = match space {
            Space::Shared | Space::Cluster => {
                let length = self.block.shared.data.len();
                (Target::Shared, BlockState::shared_offset(address), length)
            }
            Space::Local => (Target::Local, address as i64, self.run.kernel.local_bytes),
            Space::Constant => (Target::Constant, address as i64, self.run.constants.len()),
            Space::Parameter => (Target::Parameter, address as i64, self.run.parameters.data.len()),
            Space::Global | Space::Generic => {
                let (buffer, offset) = self.run.memory.resolve(address, bytes)?;
                let length = self.run.memory.buffers[buffer].bytes.data.len();
                (Target::Buffer(buffer), offset, length)
            }
        };
        let start = in_bounds(target.place(), offset, bytes, length)?;
        if !address.is_multiple_of(align as u64) {
            return Err(FaultKind::Misaligned { place: target.place(), offset, bytes: align });
        }
        Ok((target, start))
    }

    /// Records an access for races.
    #[inline]
    pub(super) fn record(
        &mut self,
        target: Target,
        start: usize,
        bytes: usize,
        kind: Kind,
        lane: usize,
    ) -> Result<(), FaultKind> {
        if !self.run.options.check_races {
            return Ok(());
        }
        let actor = self.warp.actor(lane, self.pc, self.block.number, self.run.warps_per_block);
        let shadow = match target {
            Target::Buffer(number) => &mut self.run.shadows[number],
            Target::Shared => &mut self.block.shadow,
            _ => return Ok(()),
        };
        match shadow.access(start, bytes, kind, &actor) {
            Ok(()) => Ok(()),
            Err(conflict) => {
                let write = matches!(kind, Kind::Write | Kind::StrongWrite(_) | Kind::InFlight);
                Err(self.run.conflict(conflict, target.place(), self.access(lane, write)))
            }
        }
    }

    /// This access, for a message.
    fn access(&self, lane: usize, write: bool) -> Access {
        let warp = self.block.number * self.run.warps_per_block + self.warp.number as u32;
        Access { at: self.run.position(self.pc), thread: self.run.thread(warp, lane as u32), write }
    }

    /// Fails if nothing wrote some of these bytes.
    #[inline]
    pub(super) fn check_written(
        &self,
        target: Target,
        start: usize,
        bytes: usize,
        lane: usize,
    ) -> Result<(), FaultKind> {
        if !self.run.options.check_initialised {
            return Ok(());
        }
        match target {
            Target::Buffer(number) => {
                self.run.memory.buffers[number].bytes.check_written(target.place(), start, bytes)
            }
            Target::Shared => self.block.shared.check_written(target.place(), start, bytes),
            Target::Local => {
                let start = lane * self.run.kernel.local_bytes + start;
                self.warp.local.check_written(target.place(), start, bytes)
            }
            Target::Constant | Target::Parameter => Ok(()),
        }
    }

    #[inline]
    pub(super) fn peek(&self, target: Target, start: usize, bytes: usize, lane: usize) -> u64 {
        match target {
            Target::Buffer(number) => self.run.memory.buffers[number].bytes.load(start, bytes),
            Target::Shared => self.block.shared.load(start, bytes),
            Target::Local => {
                self.warp.local.load(lane * self.run.kernel.local_bytes + start, bytes)
            }
            Target::Parameter => self.run.parameters.load(start, bytes),
            Target::Constant => load(self.run.constants, start, bytes),
        }
    }

    #[inline]
    pub(super) fn poke(
        &mut self,
        target: Target,
        start: usize,
        bytes: usize,
        value: u64,
        lane: usize,
    ) -> Result<(), FaultKind> {
        let (object, start): (&mut Bytes, usize) = match target {
            Target::Buffer(number) => (&mut self.run.memory.buffers[number].bytes, start),
            Target::Shared => (&mut self.block.shared, start),
            Target::Local => (&mut self.warp.local, lane * self.run.kernel.local_bytes + start),
            Target::Constant | Target::Parameter => {
                return Err(FaultKind::ReadOnly(target.place()));
            }
        };
        object.store(start, bytes, value);
        Ok(())
    }

    /// Counts a request by the space of its first lane.
    pub(super) fn count_request(
        &mut self,
        space: Space,
        addresses: &Lanes,
        bytes: usize,
        request: Request,
    ) {
        let space = match space {
            Space::Generic => resolve_generic(addresses[self.first_lane()]).0,
            space => space,
        };
        let counts = &mut self.run.counts;
        match space {
            Space::Global => {
                let active: SmallVec<[u64; 32]> =
                    lanes(self.mask).map(|lane| addresses[lane]).collect();
                let requests = match request {
                    Request::Load => &mut counts.global_loads,
                    Request::Store => &mut counts.global_stores,
                    Request::Atomic => &mut counts.global_atomics,
                };
                requests.count(&active, bytes);
            }
            Space::Shared | Space::Cluster => {
                let requests = match request {
                    Request::Load => &mut counts.shared_loads,
                    Request::Store => &mut counts.shared_stores,
                    Request::Atomic => &mut counts.shared_atomics,
                };
                requests.count(addresses, self.mask, bytes);
            }
            _ => {}
        }
    }

    pub(super) fn load(&mut self, op: &Load) -> Step {
        let addresses = self.addresses(op.address);
        let total = op.bytes * op.d.len();
        self.count_request(op.space, &addresses, total, Request::Load);
        let kind = match op.order.strong {
            true => Kind::StrongRead(op.order.scope),
            false if op.noncoherent => Kind::NonCoherent,
            false => Kind::Read,
        };
        let mut values: SmallVec<[Lanes; 4]> = SmallVec::from_elem([0; 32], op.d.len());
        for lane in lanes(self.mask) {
            let (target, start) =
                self.locate(op.space, addresses[lane], total, total).at_lane(lane)?;
            self.record(target, start, total, kind, lane).at_lane(lane)?;
            self.check_written(target, start, total, lane).at_lane(lane)?;
            for (index, values) in values.iter_mut().enumerate() {
                let value = self.peek(target, start + index * op.bytes, op.bytes, lane);
                values[lane] = match op.signed {
                    true => extend(value, 8 * op.bytes as u32) as u64 & op.register_mask,
                    false => value,
                };
            }
            if op.order.strong {
                self.acquire(self.location(target, start), lane, op.order);
            }
        }
        for (d, values) in op.d.iter().zip(&values) {
            self.warp.set(*d, self.mask, values);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, op: &Store) -> Step {
        let addresses = self.addresses(op.address);
        let total = op.bytes * op.a.len();
        self.count_request(op.space, &addresses, total, Request::Store);
        let kind = if op.order.strong { Kind::StrongWrite(op.order.scope) } else { Kind::Write };
        for lane in lanes(self.mask) {
            let (target, start) =
                self.locate(op.space, addresses[lane], total, total).at_lane(lane)?;
            self.record(target, start, total, kind, lane).at_lane(lane)?;
            if op.order.strong {
                self.release(self.location(target, start), lane, op.order, false);
            }
            for (index, a) in op.a.iter().enumerate() {
                let value = self.warp.get(*a)[lane];
                self.poke(target, start + index * op.bytes, op.bytes, value, lane).at_lane(lane)?;
            }
        }
        Ok(())
    }

    /// `atom` and `red`: the lanes one after another.
    pub(super) fn atomic(&mut self, op: &Atomic) -> Step {
        let addresses = self.addresses(op.address);
        let bytes = op.ty.bits() as usize / 8;
        let total = bytes * op.b.len();
        self.count_request(op.space, &addresses, total, Request::Atomic);
        let mut old: SmallVec<[Lanes; 2]> = SmallVec::from_elem([0; 32], op.b.len());
        for lane in lanes(self.mask) {
            let (target, start) =
                self.locate(op.space, addresses[lane], total, total).at_lane(lane)?;
            let kind = Kind::StrongWrite(op.order.scope);
            self.record(target, start, total, kind, lane).at_lane(lane)?;
            self.check_written(target, start, total, lane).at_lane(lane)?;
            let location = self.location(target, start);
            self.acquire(location, lane, op.order);
            self.release(location, lane, op.order, true);
            for (index, b) in op.b.iter().enumerate() {
                let start = start + index * bytes;
                let value = self.peek(target, start, bytes, lane);
                let b = self.warp.get(*b)[lane];
                let c = op.c.map_or(0, |c| self.warp.get(c)[lane]);
                let ftz = matches!(target, Target::Buffer(_));
                let new = modify(op.op, op.ty, ftz, value, b, c);
                self.poke(target, start, bytes, new, lane).at_lane(lane)?;
                old[index][lane] = value;
            }
        }
        for (d, values) in op.d.iter().zip(&old) {
            self.warp.set(*d, self.mask, values);
        }
        Ok(())
    }

    pub(super) fn prefetch(&mut self, _space: Space, _address: Address) {}

    fn location(&self, target: Target, start: usize) -> Location {
        match target {
            Target::Buffer(number) => {
                (None, self.run.memory.buffers[number].address + start as u64)
            }
            _ => (Some(self.block.number), start as u64),
        }
    }

    fn snapshot(&mut self, lane: usize) -> Snapshot {
        let stamp = self.warp.stamp;
        self.warp.stamp += 1;
        self.snapshot_at(lane, stamp)
    }

    /// What a lane knows, itself up to a stamp included.
    pub(super) fn snapshot_at(&self, lane: usize, stamp: u32) -> Snapshot {
        let thread = (32 * self.warp.number + lane) as u32;
        let known = self.warp.known[lane].clone();
        Snapshot { known, block: self.block.number, thread, stamp }
    }

    /// Adds to what a lane knows.
    pub(super) fn learn(&mut self, lane: usize, snapshots: impl IntoIterator<Item = Snapshot>) {
        let mut all = vec![self.snapshot_at(lane, 0)];
        all.extend(snapshots);
        self.warp.known[lane] = join(self.block.num_warps, &all, self.block.number);
    }

    /// A strong read of a location: knowledge comes at once, or at the next fence.
    fn acquire(&mut self, location: Location, lane: usize, order: Order) {
        let Some(release) = self.run.releases.get(&location) else { return };
        let block = self.block.number;
        let narrow = order.scope == Scope::Block && release.snapshot.block != block;
        if narrow || release.block.is_some_and(|only| only != block) {
            return;
        }
        let snapshot = release.snapshot.clone();
        if order.acquire {
            self.learn(lane, [snapshot]);
            return;
        }
        let pending = &mut self.warp.pending[lane];
        match pending.iter_mut().find(|(place, _)| *place == location) {
            Some((_, old)) => *old = snapshot,
            None => pending.push((location, snapshot)),
        }
    }

    /// A strong write to a location: what the lane knows now, or knew at its last fence.
    fn release(&mut self, location: Location, lane: usize, order: Order, modifies: bool) {
        let released = match &self.warp.fenced[lane] {
            _ if order.release => Some((self.snapshot(lane), order.scope)),
            Some((snapshot, scope)) => Some((snapshot.clone(), *scope)),
            None => None,
        };
        let Some((mut snapshot, scope)) = released else {
            if !modifies && !self.run.releases.is_empty() {
                self.run.releases.remove(&location);
            }
            return;
        };
        let narrow = scope == Scope::Block || order.scope == Scope::Block;
        let mut block = narrow.then_some(self.block.number);
        // A read-modify-write goes on with the releases that it saw (release sequences).
        if modifies && let Some(earlier) = self.run.releases.get(&location) {
            let all = [snapshot.clone(), earlier.snapshot.clone()];
            snapshot.known = join(self.block.num_warps, &all, self.block.number);
            if earlier.block.is_none() {
                block = None;
            }
        }
        self.run.releases.insert(location, Release { snapshot, block });
    }

    pub(super) fn fence(&mut self, scope: Scope) {
        for lane in lanes(self.mask) {
            let pending = std::mem::take(&mut self.warp.pending[lane]);
            if !pending.is_empty() {
                let block = self.block.number;
                let reaches = |s: &Snapshot| scope == Scope::Device || s.block == block;
                self.learn(lane, pending.into_iter().map(|(_, s)| s).filter(reaches));
            }
        }
        let snapshots = self.warp.snapshots(self.mask, self.block.number);
        for (lane, snapshot) in lanes(self.mask).zip(snapshots) {
            self.warp.fenced[lane] = Some((snapshot, scope));
        }
    }

    /// `bar.warp.sync` orders the accesses of its lanes.
    pub(super) fn warp_sync(&mut self) {
        let snapshots = self.warp.snapshots(self.mask, self.block.number);
        let known = join(self.block.num_warps, &snapshots, self.block.number);
        for lane in lanes(self.mask) {
            self.warp.known[lane] = known.clone();
        }
    }
}

/// The new value of a read-modify-write. f32 in global memory flushes subnormals (PTX ISA, "atom").
fn modify(op: Modify, ty: Type, global: bool, old: u64, b: u64, c: u64) -> u64 {
    let bits = ty.bits();
    let (old, b, c) = (truncate(old, bits), truncate(b, bits), truncate(c, bits));
    match ty {
        Type::Float(format) if !matches!(op, Modify::Exchange | Modify::CompareExchange) => {
            modify_float(op, format, global, old, b)
        }
        Type::Packed(format) => {
            let half = format.bits();
            let low = modify_float(op, format, false, truncate(old, half), truncate(b, half));
            low | modify_float(op, format, false, old >> half, b >> half) << half
        }
        _ => {
            let signed = matches!(ty, Type::Signed(_));
            match op {
                Modify::Add => integer(Integer::Add, bits, signed, old, b, 0),
                Modify::And => old & b,
                Modify::Or => old | b,
                Modify::Xor => old ^ b,
                Modify::Min => integer(Integer::Min, bits, signed, old, b, 0),
                Modify::Max => integer(Integer::Max, bits, signed, old, b, 0),
                Modify::Inc => {
                    if old >= b {
                        0
                    } else {
                        old + 1
                    }
                }
                Modify::Dec => {
                    if old == 0 || old > b {
                        b
                    } else {
                        old - 1
                    }
                }
                Modify::Exchange => b,
                Modify::CompareExchange => {
                    if old == b {
                        c
                    } else {
                        old
                    }
                }
            }
        }
    }
}

fn modify_float(op: Modify, format: Format, global: bool, old: u64, b: u64) -> u64 {
    let ftz = global && format == Format::F32;
    // Devices make a NaN in f64 quiet in shared memory only.
    let quiet = if global { 0 } else { 1 << 51 };
    let operand = |x| if ftz { flush(format, x) } else { x };
    match op {
        Modify::Min | Modify::Max => min_max(format, op == Modify::Max, false, false, old, b),
        _ if format == Format::F64 && is_nan(format, old) => old | quiet,
        _ if format == Format::F64 && is_nan(format, b) => b | quiet,
        _ => {
            let sum = softfloat::add(format, operand(old), operand(b), Rounding::Nearest);
            operand(sum)
        }
    }
}
