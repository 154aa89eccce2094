//! Races by happens-before.
//!
//! # The order
//!
//! A thread's accesses are ordered by program order. Between threads the order comes from
//! (PTX ISA, "Memory Consistency Model", "Causality order"):
//! - barriers: what a thread does before it arrives is ordered before what a thread does after it
//!   waited; also `bar.arrive`, and the phases of mbarriers;
//! - `bar.warp.sync`, for the lanes of its mask. **Shuffles, votes and the like order nothing**: the
//!   manual gives memory ordering to `bar.warp.sync` alone, and compilers use that freedom. Lanes
//!   that execute the same instruction are not ordered either;
//! - release and acquire: by the instruction (`st.release`, `ld.acquire`, `atom.acq_rel`), or by a
//!   fence before a strong write and a fence behind the strong read that sees it. A scope of `.cta`
//!   does not reach other blocks;
//! - the start and the end of a launch.
//!
//! Strong accesses (atomics, `.relaxed`, `.volatile`) do not race with each other, unless the scope
//! is `.cta` and the blocks differ.
//!
//! # The algorithm
//!
//! FastTrack (Flanagan and Freund, 2009) with the clock of a warp as the time of its lanes: every
//! act of synchronisation of a lane ends an interval of its warp, and an access carries the
//! interval's number, the *stamp*. [`Knowledge`] is a vector clock: for every thread of the block
//! the last stamp that is ordered before now; lanes that synchronised together share one. Other
//! blocks' clocks are kept only where release and acquire brought them.
//!
//! A cell of shadow memory holds the last write and up to two reading warps since then. The cells
//! of a buffer cover 4 bytes until an access is narrower or not aligned to that, then 2 or 1.
//!
//! # Limits
//!
//! If more than two warps read a cell, the first and the last are kept. A write that is ordered
//! after these two but not after a third is missed; with barriers of the whole block there is no
//! such write.

use std::{collections::BTreeMap, rc::Rc};

use super::module::Scope;

/// What a thread knows to have happened.
#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    /// For every thread of the own block the last stamp that is ordered before now.
    own: Vec<u32>,
    /// The least of it for each warp.
    floor: Vec<u32>,
    /// The same for threads of other blocks.
    foreign: BTreeMap<u32, Rc<Vec<u32>>>,
}

impl Knowledge {
    /// What a block of so many warps knows at its start.
    pub fn new(warps: usize) -> Knowledge {
        Knowledge { own: vec![0; 32 * warps], floor: vec![0; warps], foreign: BTreeMap::new() }
    }

    fn set_floor(&mut self) {
        for (floor, warp) in self.floor.iter_mut().zip(self.own.chunks(32)) {
            *floor = warp.iter().copied().min().unwrap_or(0);
        }
    }

    /// Adds what another thread of the same block knows.
    fn join_same_block(&mut self, other: &Knowledge) {
        for (mine, theirs) in self.own.iter_mut().zip(&other.own) {
            *mine = (*mine).max(*theirs);
        }
        self.join_foreign(&other.foreign);
    }

    fn join_foreign(&mut self, other: &BTreeMap<u32, Rc<Vec<u32>>>) {
        for (block, clocks) in other {
            match self.foreign.get_mut(block) {
                None => {
                    self.foreign.insert(*block, clocks.clone());
                }
                Some(mine) if Rc::ptr_eq(mine, clocks) => {}
                Some(mine) => {
                    for (mine, theirs) in Rc::make_mut(mine).iter_mut().zip(clocks.iter()) {
                        *mine = (*mine).max(*theirs);
                    }
                }
            }
        }
    }
}

/// What a thread knew at a moment, itself included.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub known: Rc<Knowledge>,
    /// The block's number in the grid.
    pub block: u32,
    /// The thread's number in the block.
    pub thread: u32,
    pub stamp: u32,
}

/// Where strong accesses meet: the block for shared memory, and the address.
pub(super) type Location = (Option<u32>, u64);

/// The knowledge of one block's threads that synchronise: the join of what they knew.
pub(super) fn join(warps: usize, snapshots: &[Snapshot], block: u32) -> Rc<Knowledge> {
    let mut result: Option<Knowledge> = None;
    let mut last: Option<&Rc<Knowledge>> = None;
    for snapshot in snapshots {
        // Lanes of a warp, and mostly warps of a block, share their knowledge.
        if last.is_some_and(|last| Rc::ptr_eq(last, &snapshot.known)) {
            continue;
        }
        last = Some(&snapshot.known);
        if snapshot.block == block {
            match &mut result {
                None => result = Some((*snapshot.known).clone()),
                Some(result) => result.join_same_block(&snapshot.known),
            }
        }
    }
    let mut result = result.unwrap_or_else(|| Knowledge::new(warps));
    for snapshot in snapshots {
        let thread = snapshot.thread as usize;
        if snapshot.block == block {
            result.own[thread] = result.own[thread].max(snapshot.stamp);
        } else {
            let mut theirs = snapshot.known.own.clone();
            theirs[thread] = theirs[thread].max(snapshot.stamp);
            let mut foreign = snapshot.known.foreign.clone();
            if let Some(mine) = foreign.remove(&block) {
                for (mine, known) in result.own.iter_mut().zip(mine.iter()) {
                    *mine = (*mine).max(*known);
                }
            }
            foreign.insert(snapshot.block, Rc::new(theirs));
            result.join_foreign(&foreign);
        }
    }
    result.set_floor();
    Rc::new(result)
}

/// The thread that accesses, and its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Actor<'a> {
    /// The block's number in the grid.
    pub block: u32,
    /// The warp's number in the grid.
    pub warp: u32,
    pub warps_per_block: u32,
    pub lane: u32,
    pub stamp: u32,
    pub pc: u32,
    pub known: &'a Knowledge,
}

/// The kinds of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    /// `ld.global.nc`.
    NonCoherent,
    /// Strong accesses.
    StrongRead(Scope),
    StrongWrite(Scope),
    /// The write of an asynchronous copy, at its start.
    InFlight,
}

const STRONG: u8 = 1;
const BLOCK_SCOPE: u8 = 2;
const IN_FLIGHT: u8 = 4;

impl Kind {
    fn flags(self) -> u8 {
        match self {
            Kind::Read | Kind::Write | Kind::NonCoherent => 0,
            Kind::StrongRead(scope) | Kind::StrongWrite(scope) => {
                STRONG | if scope == Scope::Block { BLOCK_SCOPE } else { 0 }
            }
            Kind::InFlight => IN_FLIGHT,
        }
    }

    fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::StrongWrite(_) | Kind::InFlight)
    }
}

/// An access that a cell remembers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    /// The warp's number in the grid.
    pub warp: u32,
    stamp: u32,
    /// Zero if there was none.
    pub lanes: u32,
    pc: u32,
}

impl Slot {
    fn new(actor: &Actor<'_>, flags: u8) -> Slot {
        let pc = actor.pc & 0xff_ffff | u32::from(flags) << 24;
        Slot { warp: actor.warp, stamp: actor.stamp, lanes: 1 << actor.lane, pc }
    }

    fn flags(&self) -> u8 {
        (self.pc >> 24) as u8
    }

    pub fn pc(&self) -> u32 {
        self.pc & 0xff_ffff
    }

    /// The lanes whose access is not ordered before the actor's.
    #[inline]
    fn unordered(&self, actor: &Actor<'_>) -> u32 {
        if self.lanes == 0 {
            return 0;
        }
        let block = self.warp / actor.warps_per_block;
        let first = self.warp % actor.warps_per_block;
        let mut lanes = self.lanes;
        if self.warp == actor.warp {
            lanes &= !(1 << actor.lane);
        }
        let clocks = if block == actor.block {
            if actor.known.floor[first as usize] >= self.stamp {
                return 0;
            }
            &actor.known.own
        } else {
            match actor.known.foreign.get(&block) {
                None => return lanes,
                Some(clocks) => clocks.as_ref(),
            }
        };
        let mut result = 0;
        while lanes != 0 {
            let lane = lanes.trailing_zeros();
            lanes &= lanes - 1;
            if clocks[(32 * first + lane) as usize] < self.stamp {
                result |= 1 << lane;
            }
        }
        result
    }

    /// Whether both accesses are strong in scopes that include each other.
    fn strong_with(&self, actor: &Actor<'_>, kind: Kind) -> bool {
        let (mine, theirs) = (kind.flags(), self.flags());
        let same_block = self.warp / actor.warps_per_block == actor.block;
        mine & theirs & STRONG != 0 && (same_block || (mine | theirs) & BLOCK_SCOPE == 0)
    }
}

/// What memory remembers of one cell.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    write: Slot,
    reads: [Slot; 2],
}

/// Two accesses that do not go together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    /// Where the cell begins.
    pub offset: usize,
    pub earlier: Slot,
    /// The one lane of `earlier` to report.
    pub lane: u32,
    pub earlier_writes: bool,
    pub kind: ConflictKind,
}

/// The kinds of conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConflictKind {
    Race,
    NonCoherent,
    BeforeWait,
}

const PAGE: usize = 1024;

/// Shadow memory of one buffer, or of a block's shared memory.
#[derive(Debug)]
pub(super) struct Shadow {
    /// A cell covers `1 << shift` bytes.
    shift: u32,
    pages: Vec<Option<Box<[Cell; PAGE]>>>,
}

impl Shadow {
    /// Shadow memory, empty.
    pub fn new() -> Shadow {
        Shadow { shift: 2, pages: Vec::new() }
    }

    /// Splits cells until they cover no more than an access.
    fn refine(&mut self, shift: u32) {
        while self.shift > shift {
            self.shift -= 1;
            let pages = std::mem::take(&mut self.pages);
            for page in pages {
                let halves = page.map(|page| {
                    let mut halves = [new_page(), new_page()];
                    for (index, cell) in page.iter().enumerate() {
                        let index = 2 * index;
                        halves[index / PAGE][index % PAGE] = *cell;
                        halves[index / PAGE][index % PAGE + 1] = *cell;
                    }
                    halves
                });
                let [low, high] =
                    halves.map_or([None, None], |[low, high]| [Some(low), Some(high)]);
                self.pages.extend([low, high]);
            }
        }
    }

    /// Records an access, and finds what it conflicts with.
    #[inline]
    pub fn access(
        &mut self,
        start: usize,
        bytes: usize,
        kind: Kind,
        actor: &Actor<'_>,
    ) -> Result<(), Conflict> {
        let alignment = (start | bytes).trailing_zeros();
        if alignment < self.shift {
            self.refine(alignment);
        }
        let last = (start + bytes - 1) >> self.shift;
        for index in start >> self.shift..=last {
            let shift = self.shift;
            let cell = self.cell(index);
            let found =
                if kind.writes() { cell.write(kind, actor) } else { cell.read(kind, actor) };
            if let Some((earlier, lanes, earlier_writes, kind)) = found {
                let lane = lanes.trailing_zeros();
                return Err(Conflict {
                    offset: index << shift,
                    earlier,
                    lane,
                    earlier_writes,
                    kind,
                });
            }
        }
        Ok(())
    }

    /// The end of an asynchronous copy: an ordinary write of the waiting thread.
    pub fn land(&mut self, start: usize, bytes: usize, actor: &Actor<'_>) {
        let last = (start + bytes - 1) >> self.shift;
        for index in start >> self.shift..=last {
            let pc = self.cell(index).write.pc();
            let write = Slot::new(&Actor { pc, ..*actor }, 0);
            *self.cell(index) = Cell { write, reads: [Slot::default(); 2] };
        }
    }

    fn cell(&mut self, index: usize) -> &mut Cell {
        let page = index / PAGE;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        &mut self.pages[page].get_or_insert_with(new_page)[index % PAGE]
    }
}

fn new_page() -> Box<[Cell; PAGE]> {
    vec![Cell::default(); PAGE].into_boxed_slice().try_into().expect("a page's length")
}

type Found = Option<(Slot, u32, bool, ConflictKind)>;

impl Cell {
    #[inline]
    fn read(&mut self, kind: Kind, actor: &Actor<'_>) -> Found {
        let write = &self.write;
        if write.lanes != 0 {
            if write.flags() & IN_FLIGHT != 0 {
                return Some((*write, write.lanes, true, ConflictKind::BeforeWait));
            }
            if kind == Kind::NonCoherent {
                return Some((*write, write.lanes, true, ConflictKind::NonCoherent));
            }
            let lanes = write.unordered(actor);
            if lanes != 0 && !write.strong_with(actor, kind) {
                return Some((*write, lanes, true, ConflictKind::Race));
            }
        }
        let flags = kind.flags();
        let new = Slot::new(actor, flags);
        for slot in &mut self.reads {
            if slot.lanes == 0 {
                *slot = new;
                return None;
            }
            if slot.warp == new.warp {
                if slot.stamp == new.stamp && slot.flags() == flags {
                    slot.lanes |= new.lanes;
                } else {
                    *slot = new;
                }
                return None;
            }
        }
        // A third warp: it takes the place of a read that is ordered before it, or of the last.
        let ordered = self.reads.iter().position(|slot| slot.unordered(actor) == 0);
        self.reads[ordered.unwrap_or(1)] = new;
        None
    }

    #[inline]
    fn write(&mut self, kind: Kind, actor: &Actor<'_>) -> Found {
        let write = &self.write;
        if write.lanes != 0 {
            if write.flags() & IN_FLIGHT != 0 {
                return Some((*write, write.lanes, true, ConflictKind::BeforeWait));
            }
            let lanes = write.unordered(actor);
            if lanes != 0 && !write.strong_with(actor, kind) {
                return Some((*write, lanes, true, ConflictKind::Race));
            }
        }
        for slot in &self.reads {
            let lanes = slot.unordered(actor);
            if lanes != 0 && !slot.strong_with(actor, kind) {
                return Some((*slot, lanes, false, ConflictKind::Race));
            }
        }
        self.write = Slot::new(actor, kind.flags());
        self.reads = [Slot::default(); 2];
        None
    }
}
