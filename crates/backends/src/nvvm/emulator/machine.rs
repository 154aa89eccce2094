//! A run: the grid's blocks, a block's warps, a warp's splits, an instruction after another.

use std::{collections::HashMap, rc::Rc};

use super::{
    block::{Arrival, BlockState, CLUSTER_BARRIER, NUM_BARRIERS},
    counts::{Counts, Executed},
    error::{Access, Error, Fault, FaultKind, Place, Position, ThreadId},
    launch::{self, BlockOrder, Launch, Options},
    memory::{Bytes, Memory, SHARED_START, window},
    module::*,
    races::{Conflict, ConflictKind, Knowledge, Location, Shadow, Slot, Snapshot},
    syntax::Space,
    warp::{Lanes, Split, State, Warp, lanes},
};

/// How many instructions a warp runs before the next has its turn.
const SLICE: u32 = 4096;

/// How many turns may pass in which all warps only poll mbarriers and nothing arrives.
const MAX_IDLE_TURNS: u32 = 1000;

/// A fault, before it knows its kernel and thread.
#[derive(Debug)]
pub(super) struct Failure {
    pub kind: FaultKind,
    pub lane: u32,
}

/// The result of a step.
pub(super) type Step<T = ()> = Result<T, Box<Failure>>;

pub(super) fn fail<T>(lane: usize, kind: FaultKind) -> Step<T> {
    Err(Box::new(Failure { kind, lane: lane as u32 }))
}

/// Names the lane of a fault.
pub(super) trait AtLane<T> {
    fn at_lane(self, lane: usize) -> Step<T>;
}

impl<T> AtLane<T> for Result<T, FaultKind> {
    #[inline]
    fn at_lane(self, lane: usize) -> Step<T> {
        match self {
            Ok(value) => Ok(value),
            Err(kind) => fail(lane, kind),
        }
    }
}

/// What a strong write released at a location.
#[derive(Debug)]
pub(super) struct Release {
    pub snapshot: Snapshot,
    /// A release of scope `.cta` reaches this block only.
    pub block: Option<u32>,
}

/// Everything that lives as long as the launch.
pub(super) struct Run<'r> {
    pub kernel: &'r Kernel,
    pub constants: &'r [u8],
    pub options: &'r Options,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub warps_per_block: u32,
    pub memory: &'r mut Memory,
    pub parameters: Bytes,
    /// Shadow memory of the buffers.
    pub shadows: Vec<Shadow>,
    /// Released knowledge by location.
    pub releases: HashMap<Location, Release>,
    pub counts: Counts,
    executed: Vec<Executed>,
    instructions: u64,
    shared_bytes: usize,
    /// The registers of a warp at its start, special registers apart.
    template: Vec<Lanes>,
    dynamic_shared: usize,
}

/// One instruction of one split.
pub(super) struct Context<'r, 'c> {
    pub run: &'c mut Run<'r>,
    pub block: &'c mut BlockState,
    pub warp: &'c mut Warp,
    /// The lanes that execute it.
    pub mask: u32,
    pub pc: u32,
    /// Set by instructions that wait for others: the warp's turn ends.
    pub yields: bool,
}

struct Block {
    state: BlockState,
    warps: Vec<Warp>,
    /// Turns in which all warps only waited, and what `progress` was then.
    idle: u32,
    seen: u64,
}

/// Runs a kernel.
///
/// # Errors
///
/// [`Error::Launch`] if the launch does not fit the kernel, [`Error::Fault`] if a thread does
/// something wrong; memory then holds what was written until then.
pub fn run(
    module: &Module,
    entry: &str,
    launch: &Launch,
    memory: &mut Memory,
) -> Result<Counts, Error> {
    let kernel = launch::kernel(module, entry, launch)?;
    let parameters = launch::parameters(kernel, launch, memory)?;
    let num_buffers = memory.buffers.len();
    let globals: Vec<u64> = module
        .globals
        .iter()
        .map(|global| {
            let buffer = memory.create(&global.initial, global.align.max(16));
            debug_assert_eq!(global.size, global.initial.len());
            memory.address(buffer)
        })
        .collect();
    let dynamic_start = kernel.shared_bytes.next_multiple_of(kernel.dynamic_align);
    let dynamic = SHARED_START + dynamic_start as u64;
    let shared_bytes = match launch.dynamic_shared {
        0 => kernel.shared_bytes,
        bytes => dynamic_start + bytes,
    };
    let mut template = vec![[0; 32]; kernel.registers];
    for (reg, constant) in &kernel.constants {
        let value = match constant {
            Constant::Bits(bits) => *bits,
            Constant::Global(index, offset) => globals[*index].wrapping_add_signed(*offset),
            Constant::Dynamic(offset) => dynamic.wrapping_add_signed(*offset),
        };
        template[*reg as usize] = [value; 32];
    }
    let threads: u32 = launch.block.iter().product();
    let mut run = Run {
        kernel,
        constants: &module.constants,
        options: &launch.options,
        grid: launch.grid,
        block: launch.block,
        warps_per_block: threads.div_ceil(32),
        shadows: memory.buffers.iter().map(|_| Shadow::new()).collect(),
        memory,
        parameters: Bytes::initialised(parameters),
        releases: HashMap::new(),
        counts: Counts::default(),
        executed: vec![Executed::default(); kernel.instructions.len()],
        instructions: 0,
        shared_bytes,
        template,
        dynamic_shared: launch.dynamic_shared,
    };
    let result = run.blocks();
    let counts = run.collect_counts();
    memory.buffers.truncate(num_buffers);
    result.map(|()| counts)
}

impl<'r> Run<'r> {
    fn blocks(&mut self) -> Result<(), Error> {
        let count = self.grid.iter().product::<u32>();
        match self.options.order {
            BlockOrder::Sequential => (0..count).try_for_each(|number| self.whole_block(number)),
            BlockOrder::Reversed => {
                (0..count).rev().try_for_each(|number| self.whole_block(number))
            }
            BlockOrder::Interleaved(resident) => self.interleaved(count, resident.max(1)),
        }
    }

    fn whole_block(&mut self, number: u32) -> Result<(), Error> {
        let mut block = self.new_block(number);
        while !self.turn(&mut block)? {}
        Ok(())
    }

    fn interleaved(&mut self, count: u32, resident: usize) -> Result<(), Error> {
        let mut waiting = 0..count;
        let mut blocks: Vec<Block> = Vec::new();
        loop {
            while blocks.len() < resident {
                let Some(number) = waiting.next() else { break };
                blocks.push(self.new_block(number));
            }
            if blocks.is_empty() {
                return Ok(());
            }
            let mut index = 0;
            while index < blocks.len() {
                if self.turn(&mut blocks[index])? {
                    blocks.remove(index);
                } else {
                    index += 1;
                }
            }
        }
    }

    fn new_block(&self, number: u32) -> Block {
        let index = coordinates(number, self.grid);
        let threads: u32 = self.block.iter().product();
        let state = BlockState::new(number, threads, self.shared_bytes);
        let known = Rc::new(Knowledge::new(state.num_warps));
        let warps = (0..state.num_warps)
            .map(|warp| {
                let first = 32 * warp as u32;
                let count = (threads - first).min(32);
                let members = if count == 32 { u32::MAX } else { (1 << count) - 1 };
                let mut registers = self.template.clone();
                for (reg, special) in &self.kernel.specials {
                    for lane in 0..32 {
                        let value = self.special(*special, index, first + lane);
                        registers[*reg as usize][lane as usize] = u64::from(value);
                    }
                }
                Warp::new(warp, members, registers, self.kernel.local_bytes, &known)
            })
            .collect();
        Block { state, warps, idle: 0, seen: 0 }
    }

    fn special(&self, special: Special, block: [u32; 3], thread: u32) -> u32 {
        let lane = thread % 32;
        match special {
            Special::Thread(axis) => coordinates(thread, self.block)[axis],
            Special::BlockSize(axis) => self.block[axis],
            Special::Block(axis) => block[axis],
            Special::GridSize(axis) => self.grid[axis],
            Special::Lane => lane,
            Special::Warp => thread / 32,
            Special::NumWarps => self.warps_per_block,
            Special::LaneMask(LaneMask::Eq) => 1 << lane,
            Special::LaneMask(LaneMask::Lt) => (1 << lane) - 1,
            Special::LaneMask(LaneMask::Le) => u32::MAX >> (31 - lane),
            Special::LaneMask(LaneMask::Gt) => !(u32::MAX >> (31 - lane)),
            Special::LaneMask(LaneMask::Ge) => u32::MAX << lane,
            Special::DynamicShared => self.dynamic_shared as u32,
            Special::TotalShared => self.shared_bytes as u32,
            Special::Zero => 0,
            Special::One => 1,
        }
    }

    /// Gives every warp of a block a turn; whether the block is done.
    fn turn(&mut self, block: &mut Block) -> Result<bool, Error> {
        let (mut done, mut ready, mut polls) = (true, false, true);
        for index in 0..block.warps.len() {
            let warp = &mut block.warps[index];
            if warp.alive == 0 {
                continue;
            }
            done = false;
            if warp.splits.iter().any(|split| split.state == State::Ready) {
                ready = true;
                polls &= self.run_warp(&mut block.state, warp)?;
                block.apply_opened();
            }
        }
        if polls && block.seen == block.state.progress {
            block.idle += 1;
        } else {
            (block.idle, block.seen) = (0, block.state.progress);
        }
        if !done && (!ready || block.idle > MAX_IDLE_TURNS) {
            return Err(self.deadlock(block));
        }
        Ok(done)
    }

    /// Gives a warp a turn; whether it ended polling an mbarrier in vain.
    fn run_warp(&mut self, block: &mut BlockState, warp: &mut Warp) -> Result<bool, Error> {
        let mut context = Context { run: self, block, warp, mask: 0, pc: 0, yields: false };
        match context.slice() {
            Ok(()) => Ok(context.yields),
            Err(failure) => {
                let (pc, block, warp) = (context.pc, context.block.number, context.warp.number);
                Err(self.fault(failure.kind, pc, block, warp, failure.lane))
            }
        }
    }

    fn fault(&self, kind: FaultKind, pc: u32, block: u32, warp: usize, lane: u32) -> Error {
        let warp = block * self.warps_per_block + warp as u32;
        let (kernel, at) = (self.kernel.name.clone(), self.position(pc));
        Error::Fault(Box::new(Fault { kernel, at, thread: self.thread(warp, lane), kind }))
    }

    fn deadlock(&self, block: &Block) -> Error {
        let mut waiting = Vec::new();
        let mut first = None;
        for warp in &block.warps {
            for split in &warp.splits {
                let pc = split.pc.saturating_sub(1);
                first.get_or_insert((pc, warp.number, split.mask.trailing_zeros()));
                waiting.push(format!("warp {} waits at line {}", warp.number, self.position(pc)));
            }
        }
        let barriers = block.state.describe_barriers();
        if !barriers.is_empty() {
            waiting.push(barriers);
        }
        let (pc, warp, lane) = first.unwrap_or_default();
        self.fault(FaultKind::Deadlock(waiting.join(", ")), pc, block.state.number, warp, lane)
    }

    pub fn position(&self, pc: u32) -> Position {
        self.kernel.instructions.get(pc as usize).map(|i| i.at).unwrap_or_default()
    }

    /// The thread of a warp of the grid.
    pub fn thread(&self, warp: u32, lane: u32) -> ThreadId {
        let block = coordinates(warp / self.warps_per_block, self.grid);
        let thread = 32 * (warp % self.warps_per_block) + lane;
        ThreadId { block, thread: coordinates(thread, self.block) }
    }

    /// The fault of two accesses; the second is the current one.
    pub fn conflict(&self, conflict: Conflict, place: Place, second: Access) -> FaultKind {
        let offset = conflict.offset as i64;
        let first = self.earlier(&conflict.earlier, conflict.lane, conflict.earlier_writes);
        match conflict.kind {
            ConflictKind::Race => FaultKind::Race { place, offset, first, second },
            ConflictKind::NonCoherent => FaultKind::NonCoherent { place, offset, write: first },
            ConflictKind::BeforeWait => {
                let access = if second.write { "write" } else { "read" };
                FaultKind::BeforeWait { access, place, offset, copy: first }
            }
        }
    }

    fn earlier(&self, slot: &Slot, lane: u32, write: bool) -> Access {
        Access { at: self.position(slot.pc()), thread: self.thread(slot.warp, lane), write }
    }

    fn collect_counts(mut self) -> Counts {
        let counts = &mut self.counts;
        for (instruction, executed) in self.kernel.instructions.iter().zip(&self.executed) {
            if executed.warp == 0 {
                continue;
            }
            let kind = counts.kinds.entry(instruction.kind.clone()).or_default();
            let line = counts.lines.entry(instruction.at.line).or_default();
            for total in [&mut counts.instructions, kind, line] {
                total.warp += executed.warp;
                total.thread += executed.thread;
            }
        }
        self.counts
    }
}

impl Block {
    /// Lets the warps go on whose barriers opened.
    fn apply_opened(&mut self) {
        for opened in std::mem::take(&mut self.state.opened) {
            for waiter in &opened.waiters {
                let warp = &mut self.warps[waiter.warp];
                for split in &mut warp.splits {
                    if split.state == State::AtBarrier(opened.barrier) {
                        split.state = State::Ready;
                    }
                }
                for lane in lanes(waiter.mask) {
                    // A waiter has arrived, so that the join has all that it knew.
                    warp.known[lane] = opened.known.clone();
                }
                if let Some(d) = waiter.result {
                    warp.set(d, waiter.mask, &[opened.result; 32]);
                }
            }
        }
    }
}

/// The coordinates of a linear number, x fastest.
fn coordinates(number: u32, extents: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extents;
    [number % x, number / x % y, number / x / y]
}

impl<'r> Context<'r, '_> {
    /// Runs the warp until it waits or its turn ends.
    fn slice(&mut self) -> Step {
        let mut budget = SLICE;
        self.yields = false;
        while let Some(index) = self.warp.splits.iter().position(|s| s.state == State::Ready) {
            self.run_split(index, &mut budget)?;
            if budget == 0 || self.yields {
                // The other splits have the next turn.
                if self.warp.splits.len() > 1 {
                    self.warp.splits.rotate_left(1);
                }
                return Ok(());
            }
        }
        self.check_waiting()
    }

    /// Runs one split until it ends, waits, diverges or meets others.
    fn run_split(&mut self, index: usize, budget: &mut u32) -> Step {
        let kernel: &'r Kernel = self.run.kernel;
        let split = self.warp.splits[index];
        let stop = self.warp.stop(&split);
        let mut pc = split.pc;
        loop {
            self.pc = pc;
            if pc == stop {
                self.warp.arrive_at_join(index);
                return Ok(());
            }
            if *budget == 0 || self.yields {
                self.warp.splits[index].pc = pc;
                return Ok(());
            }
            *budget -= 1;
            let instruction = &kernel.instructions[pc as usize];
            let mut mask = split.mask;
            if let Some((predicate, expected)) = instruction.guard {
                mask &= self.warp.holds(predicate, expected);
            }
            let executed = &mut self.run.executed[pc as usize];
            executed.warp += 1;
            executed.thread += u64::from(mask.count_ones());
            self.run.instructions += u64::from(mask.count_ones().max(1));
            self.mask = mask;
            if self.run.instructions > self.run.options.max_instructions {
                let limit = self.run.options.max_instructions;
                return fail(split.mask.trailing_zeros() as usize, FaultKind::Limit(limit));
            }
            if mask == 0 {
                pc += 1;
                continue;
            }
            match instruction.together {
                Together::Free => {}
                Together::Warp(what) if mask != self.present() => {
                    let (active, warp) = (mask, self.present());
                    let lane = mask.trailing_zeros() as usize;
                    return fail(lane, FaultKind::Divergent { what, active, warp });
                }
                Together::Warp(_) => {}
                Together::Members(reg) => {
                    if !self.together(index, pc, reg, &instruction.op)? {
                        return Ok(());
                    }
                    pc += 1;
                    continue;
                }
            }
            match &instruction.op {
                Op::Branch { target, join } => {
                    if mask == split.mask {
                        pc = *target;
                    } else {
                        self.run.counts.divergent_branches += 1;
                        let parts = [(*target, mask), (pc + 1, split.mask & !mask)];
                        self.warp.diverge(index, *join, &parts);
                        return Ok(());
                    }
                }
                Op::BranchIndexed { index: reg, targets, join } => {
                    match self.branch_targets(split, *reg, targets)?.as_slice() {
                        [(target, part)] if *part == split.mask => pc = *target,
                        parts => {
                            self.run.counts.divergent_branches += 1;
                            self.warp.diverge(index, *join, parts);
                            return Ok(());
                        }
                    }
                }
                Op::Exit => {
                    self.warp.splits[index].pc = pc + 1;
                    self.warp.exit(index, mask);
                    self.block.exit(mask.count_ones());
                    return Ok(());
                }
                Op::Barrier { id, threads, kind } => {
                    self.warp.splits[index].pc = pc + 1;
                    let whole_warp = matches!(instruction.together, Together::Warp(_));
                    let waits = self.barrier(index, *id, *threads, *kind, whole_warp)?;
                    if waits {
                        return Ok(());
                    }
                    pc += 1;
                }
                Op::ClusterArrive => {
                    self.arrive_at_cluster()?;
                    pc += 1;
                }
                Op::ClusterWait => {
                    pc += 1;
                    self.warp.splits[index].pc = pc;
                    if self.wait_for_cluster(index)? {
                        return Ok(());
                    }
                }
                Op::WgmmaWait { groups } => {
                    self.warp.splits[index].pc = pc + 1;
                    self.wgmma_wait(*groups)?;
                    return self.meet_warpgroup(index);
                }
                op => {
                    self.execute(op)?;
                    pc += 1;
                }
            }
        }
    }

    /// The lanes that an `.aligned` instruction needs.
    fn present(&self) -> u32 {
        if self.run.options.allow_exited { self.warp.alive } else { self.warp.members }
    }

    /// The targets of the lanes, and the lanes that a guard holds back.
    fn branch_targets(
        &self,
        split: Split,
        index: Reg,
        targets: &[u32],
    ) -> Step<smallvec::SmallVec<[(u32, u32); 4]>> {
        let mut parts = smallvec::SmallVec::<[(u32, u32); 4]>::new();
        let rest = split.mask & !self.mask;
        if rest != 0 {
            parts.push((self.pc + 1, rest));
        }
        let values = self.warp.get(index);
        for lane in lanes(self.mask) {
            let Some(target) = targets.get(values[lane] as usize) else {
                let (found, count) = (values[lane], targets.len());
                let message = format!("index {found} of {count} branch targets");
                return fail(lane, FaultKind::Invalid(message));
            };
            match parts.iter_mut().find(|(pc, _)| pc == target) {
                Some((_, mask)) => *mask |= 1 << lane,
                None => parts.push((*target, 1 << lane)),
            }
        }
        Ok(parts)
    }

    /// Arrives at a barrier; whether the split waits.
    fn barrier(
        &mut self,
        index: usize,
        id: Reg,
        threads: Option<Reg>,
        kind: BarrierKind,
        whole_warp: bool,
    ) -> Step<bool> {
        let lane = self.mask.trailing_zeros() as usize;
        if self.mask != self.warp.splits[index].mask {
            let (active, warp) = (self.mask, self.warp.splits[index].mask);
            return fail(lane, FaultKind::Divergent { what: "barrier", active, warp });
        }
        let held = match kind {
            BarrierKind::All { p, negate, .. }
            | BarrierKind::Any { p, negate, .. }
            | BarrierKind::Count { p, negate, .. } => self.warp.holds(p, !negate),
            _ => 0,
        };
        self.run.counts.barriers += 1;
        let id = self.warp.get(id)[lane] as u32;
        if id as usize >= NUM_BARRIERS {
            let message = format!("expected barrier 0 to 15, found {id}");
            return fail(lane, FaultKind::Invalid(message));
        }
        let threads = threads.map(|reg| self.warp.get(reg)[lane] as u32);
        let snapshots = self.warp.snapshots(self.mask, self.block.number);
        let (warp, mask) = (self.warp.number, self.mask);
        let waits = kind != BarrierKind::Arrive;
        if waits {
            self.warp.splits[index].state = State::AtBarrier(id);
        }
        self.block
            .arrive(Arrival { id, threads, kind, warp, mask, whole_warp, held, snapshots })
            .at_lane(lane)?;
        Ok(waits)
    }

    fn arrive_at_cluster(&mut self) -> Step {
        if self.warp.cluster_phase.is_some() {
            let message = "second 'barrier.cluster.arrive' before the wait".to_string();
            return fail(self.first_lane(), FaultKind::Invalid(message));
        }
        self.warp.cluster_phase = Some(self.block.cluster_phase);
        let snapshots = self.warp.snapshots(self.mask, self.block.number);
        let (id, threads, kind) = (CLUSTER_BARRIER as u32, None, BarrierKind::Arrive);
        let (warp, mask, whole_warp, held) = (self.warp.number, self.mask, true, 0);
        let arrival = Arrival { id, threads, kind, warp, mask, whole_warp, held, snapshots };
        self.block.arrive(arrival).at_lane(0)
    }

    /// Waits for the phase at which the warp arrived; whether the split waits.
    fn wait_for_cluster(&mut self, index: usize) -> Step<bool> {
        let Some(phase) = self.warp.cluster_phase.take() else {
            let message = "'barrier.cluster.wait' without an arrival".to_string();
            return fail(self.first_lane(), FaultKind::Invalid(message));
        };
        if self.block.cluster_phase == phase {
            self.warp.splits[index].state = State::AtBarrier(CLUSTER_BARRIER as u32);
            self.block.wait_for_cluster(self.warp.number, self.mask);
            return Ok(true);
        }
        if let Some(known) = self.block.cluster_known.clone() {
            self.warp.known.fill(known);
        }
        Ok(false)
    }

    /// `wgmma` is one operation of four warps: none goes on before all have waited for it.
    fn meet_warpgroup(&mut self, index: usize) -> Step {
        let id = (NUM_BARRIERS + self.warp.number / 4) as u32;
        let snapshots = self.warp.snapshots(self.mask, self.block.number);
        let (warp, mask, kind) = (self.warp.number, self.mask, BarrierKind::Sync);
        self.warp.splits[index].state = State::AtBarrier(id);
        let (threads, whole_warp, held) = (Some(128), true, 0);
        let arrival = Arrival { id, threads, kind, warp, mask, whole_warp, held, snapshots };
        self.block.arrive(arrival).at_lane(0)
    }

    /// Executes a `.sync` instruction for the lanes that its masks name, once all are there;
    /// whether the split goes on.
    fn together(&mut self, index: usize, pc: u32, reg: Reg, op: &'r Op) -> Step<bool> {
        let active = self.mask;
        let masks = *self.warp.get(reg);
        let mut rest = active;
        while rest != 0 {
            let members = masks[rest.trailing_zeros() as usize] as u32;
            let group = lanes(rest).filter(|lane| masks[*lane] as u32 == members);
            let group = group.fold(0, |mask, lane| mask | 1 << lane);
            if group & !members != 0 {
                let kind = FaultKind::UnnamedLanes { mask: members, active: group };
                return fail(group.trailing_zeros() as usize, kind);
            }
            if group != members {
                if group != active || active != self.warp.splits[index].mask {
                    return self.missing(members, members & !group);
                }
                return self.gather(index, pc, members, op);
            }
            self.mask = group;
            self.execute(op)?;
            rest &= !group;
        }
        self.mask = active;
        Ok(true)
    }

    /// Waits at a `.sync` instruction; the last split to come executes it for all.
    fn gather(&mut self, index: usize, pc: u32, members: u32, op: &'r Op) -> Step<bool> {
        self.warp.splits[index].pc = pc;
        self.warp.splits[index].state = State::AtSync(members);
        let here = |split: &&mut Split| split.pc == pc && split.state == State::AtSync(members);
        let present = self.warp.splits.iter_mut().filter(|s| here(s)).fold(0, |m, s| m | s.mask);
        if present == members {
            self.mask = members;
            self.execute(op)?;
            for split in self.warp.splits.iter_mut().filter(here) {
                split.state = State::Ready;
                split.pc = pc + 1;
            }
        }
        Ok(false)
    }

    fn missing<T>(&self, mask: u32, missing: u32) -> Step<T> {
        let first = missing.trailing_zeros();
        let why = if self.warp.members >> first & 1 == 0 {
            "do not exist".to_string()
        } else if self.warp.alive >> first & 1 == 0 {
            "have exited".to_string()
        } else {
            let split = self.warp.splits.iter().find(|split| split.mask >> first & 1 != 0);
            match split {
                Some(split) => format!("are at line {}", self.run.position(split.pc)),
                None => "wait elsewhere".to_string(),
            }
        };
        let lane = self.mask.trailing_zeros() as usize;
        fail(lane, FaultKind::MissingLanes { mask, missing, why })
    }

    /// No split can go on: one that waits for lanes of its warp waits in vain.
    fn check_waiting(&mut self) -> Step {
        let waiting = |split: &&Split| matches!(split.state, State::AtSync(_));
        let Some(split) = self.warp.splits.iter().find(waiting).copied() else { return Ok(()) };
        let State::AtSync(members) = split.state else { return Ok(()) };
        let here = |s: &&Split| s.pc == split.pc && s.state == split.state;
        let present = self.warp.splits.iter().filter(here).fold(0, |mask, s| mask | s.mask);
        (self.mask, self.pc) = (split.mask, split.pc);
        self.missing(members, members & !present)
    }

    /// The base of a space's window, to add for a generic address.
    pub(super) fn window(space: Space) -> u64 {
        window(space)
    }
}
