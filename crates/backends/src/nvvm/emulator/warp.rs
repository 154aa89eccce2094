//! A warp: registers, divergence, and what its lanes know of other threads.
//!
//! Lanes that run together are a *split*. A branch that lanes leave in different directions makes
//! splits that meet again at the immediate postdominator, the *join*. Splits run in turn, none
//! starves (as on hardware with independent thread scheduling): one that waits, at a join, at a
//! `.sync` instruction or at a barrier, lets the others run.

use std::{collections::VecDeque, rc::Rc};

use super::{
    memory::Bytes,
    module::{END, Reg, SINK, Scope},
    races::{Actor, Knowledge, Location, Snapshot},
};

/// Values of the 32 lanes.
pub(super) type Lanes = [u64; 32];

/// The numbers of the lanes in a mask.
pub(super) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros();
        mask &= mask - 1;
        Some(lane as usize)
    })
}

/// What a split does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// At a `.sync` instruction, until the lanes of the mask are there.
    AtSync(u32),
    /// At a barrier of the block.
    AtBarrier(u32),
}

/// Lanes that run together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    pub pc: u32,
    pub mask: u32,
    /// The number of the join that it runs to, or [`NO_JOIN`].
    pub join: usize,
    pub state: State,
}

/// A split that meets no others.
pub(super) const NO_JOIN: usize = usize::MAX;

/// Where splits meet.
#[derive(Debug, Clone, Copy)]
struct Join {
    pc: u32,
    /// The lanes that left and have not exited.
    expected: u32,
    arrived: u32,
    parent: usize,
}

/// One copy of `cp.async`, with the bytes that it brings.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    pub to: usize,
    pub data: [u8; 16],
    pub bytes: usize,
}

/// The asynchronous copies of one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Copies {
    pub open: Vec<Copy>,
    pub groups: VecDeque<Vec<Copy>>,
    /// Groups of `cp.async.bulk` stores; the copies are made when they are committed.
    pub bulk_groups: VecDeque<()>,
}

/// A `wgmma` whose group no wait has completed.
#[derive(Debug)]
pub(super) struct PendingWgmma {
    pub pc: u32,
    pub a_registers: Vec<Lanes>,
    pub a_descriptor: u64,
    pub b_descriptor: u64,
    /// Whether C is D, or zero.
    pub accumulates: bool,
}

/// A warp.
#[derive(Debug)]
pub(super) struct Warp {
    /// The number in the block.
    pub number: usize,
    /// The lanes that exist.
    pub members: u32,
    /// The lanes that have not exited.
    pub alive: u32,
    pub registers: Vec<Lanes>,
    /// Local memory of all lanes, one behind the other.
    pub local: Bytes,
    pub splits: Vec<Split>,
    joins: Vec<Join>,
    /// The time of the lanes; see [`super::races`].
    pub stamp: u32,
    pub known: Vec<Rc<Knowledge>>,
    /// What the lanes knew at their last fence, and the fence's scope.
    pub fenced: Vec<Option<(Snapshot, Scope)>>,
    /// What strong reads brought, by location; a fence makes it known.
    pub pending: Vec<Vec<(Location, Snapshot)>>,
    pub copies: Vec<Copies>,
    /// The phase of the cluster's barrier at which the warp arrived last.
    pub cluster_phase: Option<u32>,
    pub wgmma_open: Vec<PendingWgmma>,
    pub wgmma_groups: VecDeque<Vec<PendingWgmma>>,
}

impl Warp {
    /// A lane as the one who accesses memory, for an instruction.
    pub fn actor(&self, lane: usize, pc: u32, block: u32, warps_per_block: u32) -> Actor<'_> {
        Actor {
            block,
            warp: block * warps_per_block + self.number as u32,
            warps_per_block,
            lane: lane as u32,
            stamp: self.stamp,
            pc,
            known: &self.known[lane],
        }
    }

    /// A warp at the first instruction.
    pub fn new(
        number: usize,
        members: u32,
        registers: Vec<Lanes>,
        local_bytes: usize,
        known: &Rc<Knowledge>,
    ) -> Warp {
        Warp {
            number,
            members,
            alive: members,
            registers,
            local: Bytes::uninitialised(32 * local_bytes),
            splits: vec![Split { pc: 0, mask: members, join: NO_JOIN, state: State::Ready }],
            joins: Vec::new(),
            stamp: 1,
            known: vec![known.clone(); 32],
            fenced: vec![None; 32],
            pending: vec![Vec::new(); 32],
            copies: vec![Copies::default(); 32],
            cluster_phase: None,
            wgmma_open: Vec::new(),
            wgmma_groups: VecDeque::new(),
        }
    }

    /// The values of a register.
    #[inline]
    pub fn get(&self, reg: Reg) -> &Lanes {
        &self.registers[reg as usize]
    }

    /// Writes the lanes of a mask.
    #[inline]
    pub fn set(&mut self, reg: Reg, mask: u32, values: &Lanes) {
        if reg == SINK {
            return;
        }
        let register = &mut self.registers[reg as usize];
        if mask == u32::MAX {
            *register = *values;
        } else {
            for lane in lanes(mask) {
                register[lane] = values[lane];
            }
        }
    }

    /// Writes one lane.
    #[inline]
    pub fn set_lane(&mut self, reg: Reg, lane: usize, value: u64) {
        if reg != SINK {
            self.registers[reg as usize][lane] = value;
        }
    }

    /// The lanes of a mask in which a predicate holds.
    #[inline]
    pub fn holds(&self, reg: Reg, expected: bool) -> u32 {
        let mut mask = 0;
        for (lane, value) in self.get(reg).iter().enumerate() {
            mask |= ((*value & 1) as u32) << lane;
        }
        if expected { mask } else { !mask }
    }

    /// The pc at which a split stops to meet others.
    pub fn stop(&self, split: &Split) -> u32 {
        if split.join == NO_JOIN { END } else { self.joins[split.join].pc }
    }

    /// Puts a split that arrived at its join away; if it was the last, the joined split appears.
    pub fn arrive_at_join(&mut self, index: usize) {
        let split = self.splits.swap_remove(index);
        self.joins[split.join].arrived |= split.mask;
        self.release_join(split.join);
    }

    fn release_join(&mut self, index: usize) {
        let join = self.joins[index];
        if join.arrived == join.expected && join.expected != 0 {
            self.joins[index].expected = 0;
            let (pc, mask, join) = (join.pc, join.arrived, join.parent);
            self.splits.push(Split { pc, mask, join, state: State::Ready });
        }
    }

    /// Replaces a split by several, which meet at `pc`.
    pub fn diverge(&mut self, index: usize, pc: u32, parts: &[(u32, u32)]) {
        let split = self.splits.swap_remove(index);
        let mut join = split.join;
        if pc != END && (join == NO_JOIN || self.joins[join].pc != pc) {
            let new = Join { pc, expected: split.mask, arrived: 0, parent: join };
            match self.joins.iter().position(|join| join.expected == 0) {
                Some(free) => {
                    self.joins[free] = new;
                    join = free;
                }
                None => {
                    self.joins.push(new);
                    join = self.joins.len() - 1;
                }
            }
        }
        for (pc, mask) in parts {
            self.splits.push(Split { pc: *pc, mask: *mask, join, state: State::Ready });
        }
    }

    /// Ends lanes of a split.
    pub fn exit(&mut self, index: usize, mask: u32) {
        self.alive &= !mask;
        let split = &mut self.splits[index];
        split.mask &= !mask;
        let mut join = split.join;
        if split.mask == 0 {
            self.splits.swap_remove(index);
        }
        while join != NO_JOIN {
            self.joins[join].expected &= !mask;
            let parent = self.joins[join].parent;
            self.release_join(join);
            join = parent;
        }
    }

    /// What lanes know now, themselves included. Later accesses get a new stamp.
    pub fn snapshots(&mut self, mask: u32, block: u32) -> Vec<Snapshot> {
        let stamp = self.stamp;
        self.stamp += 1;
        lanes(mask)
            .map(|lane| Snapshot {
                known: self.known[lane].clone(),
                block,
                thread: (32 * self.number + lane) as u32,
                stamp,
            })
            .collect()
    }
}
