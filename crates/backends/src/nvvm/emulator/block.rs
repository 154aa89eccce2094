//! What the warps of a block share: shared memory, barriers, mbarriers.

use std::{collections::HashMap, rc::Rc};

use super::{
    error::FaultKind,
    mbarrier::MbarrierState,
    memory::{Bytes, SHARED_START},
    module::{BarrierKind, Reg},
    races::{Knowledge, Shadow, Snapshot, join},
};

/// The number of barriers of a block (PTX ISA, "barrier").
pub(super) const NUM_BARRIERS: usize = 16;
/// Behind them one for each warpgroup, where its warps meet at `wgmma.wait_group`.
const NUM_WARPGROUPS: usize = 8;
/// Behind these that of `barrier.cluster`; a cluster has one block.
pub(super) const CLUSTER_BARRIER: usize = NUM_BARRIERS + NUM_WARPGROUPS;

/// A part of a warp that waits at a barrier.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    /// The warp's number in the block.
    pub warp: usize,
    pub mask: u32,
    /// Where the result of a reduction goes.
    pub result: Option<Reg>,
}

/// A barrier that opened: who goes on, with which result and knowledge.
#[derive(Debug)]
pub(super) struct Opened {
    pub barrier: u32,
    pub waiters: Vec<Waiter>,
    pub result: u64,
    pub known: Rc<Knowledge>,
}

#[derive(Debug, Default)]
struct Barrier {
    /// Threads that arrived; a warp counts 32 where the instruction gives a number.
    arrived: u32,
    /// The number that the instructions give; nothing for all threads of the block.
    expected: Option<u32>,
    waiters: Vec<Waiter>,
    snapshots: Vec<Snapshot>,
    /// Threads whose predicate held, and threads that gave one.
    held: u32,
    voted: u32,
    reduction: Option<BarrierKind>,
}

/// What a block's warps share.
#[derive(Debug)]
pub(super) struct BlockState {
    /// The number in the grid.
    pub number: u32,
    pub num_warps: usize,
    pub shared: Bytes,
    pub shadow: Shadow,
    barriers: Vec<Barrier>,
    /// Mbarrier objects by their offset.
    pub mbarriers: HashMap<usize, MbarrierState>,
    /// Threads that have not exited.
    pub alive: u32,
    pub opened: Vec<Opened>,
    /// How often the barrier of the cluster opened, and what all knew at the last time.
    pub cluster_phase: u32,
    pub cluster_known: Option<Rc<Knowledge>>,
    /// Counts arrivals and exits: a block that only polls and does not change it hangs.
    pub progress: u64,
}

/// The arrival of a part of a warp.
pub(super) struct Arrival {
    pub id: u32,
    pub threads: Option<u32>,
    pub kind: BarrierKind,
    pub warp: usize,
    pub mask: u32,
    pub whole_warp: bool,
    /// The lanes whose predicate holds.
    pub held: u32,
    pub snapshots: Vec<Snapshot>,
}

impl BlockState {
    pub fn new(number: u32, threads: u32, shared_bytes: usize) -> BlockState {
        let mut shared = Bytes::uninitialised(shared_bytes);
        shared.written.fill(false);
        BlockState {
            number,
            num_warps: threads.div_ceil(32) as usize,
            shared,
            shadow: Shadow::new(),
            barriers: (0..=CLUSTER_BARRIER).map(|_| Barrier::default()).collect(),
            mbarriers: HashMap::new(),
            alive: threads,
            opened: Vec::new(),
            cluster_phase: 0,
            cluster_known: None,
            progress: 0,
        }
    }

    /// The offset in shared memory of an address in `.shared`.
    pub fn shared_offset(address: u64) -> i64 {
        address.wrapping_sub(SHARED_START) as i64
    }

    /// Arrives at a barrier; whether the lanes wait is the caller's to see from the kind.
    pub fn arrive(&mut self, arrival: Arrival) -> Result<(), FaultKind> {
        let invalid = |message: String| Err(FaultKind::Invalid(message));
        self.progress += 1;
        let barrier = &mut self.barriers[arrival.id as usize];
        if let Some(threads) = arrival.threads
            && (threads == 0 || !threads.is_multiple_of(32))
        {
            return invalid(format!("expected a multiple of 32 threads, found {threads}"));
        }
        if barrier.arrived > 0 && barrier.expected != arrival.threads {
            let id = arrival.id;
            return invalid(format!("barrier {id} has different numbers of threads"));
        }
        barrier.expected = arrival.threads;
        barrier.arrived += match arrival.threads {
            Some(_) if arrival.whole_warp => 32,
            _ => arrival.mask.count_ones(),
        };
        barrier.snapshots.extend(arrival.snapshots);
        let (warp, mask) = (arrival.warp, arrival.mask);
        let result = match arrival.kind {
            BarrierKind::Sync | BarrierKind::Arrive => None,
            BarrierKind::All { d, .. }
            | BarrierKind::Any { d, .. }
            | BarrierKind::Count { d, .. } => {
                barrier.held += (arrival.held & mask).count_ones();
                barrier.voted += mask.count_ones();
                barrier.reduction = Some(arrival.kind);
                Some(d)
            }
        };
        if arrival.kind != BarrierKind::Arrive {
            barrier.waiters.push(Waiter { warp, mask, result });
        }
        if arrival.threads.is_some_and(|expected| barrier.arrived > expected) {
            return invalid(format!("more threads arrive at barrier {} than expected", arrival.id));
        }
        self.open_if_complete(arrival.id as usize);
        Ok(())
    }

    fn open_if_complete(&mut self, id: usize) {
        let barrier = &mut self.barriers[id];
        if barrier.arrived == 0 || barrier.arrived < barrier.expected.unwrap_or(self.alive) {
            return;
        }
        let barrier = std::mem::take(barrier);
        let result = match barrier.reduction {
            Some(BarrierKind::All { .. }) => u64::from(barrier.held == barrier.voted),
            Some(BarrierKind::Any { .. }) => u64::from(barrier.held > 0),
            _ => u64::from(barrier.held),
        };
        let known = join(self.num_warps, &barrier.snapshots, self.number);
        if id == CLUSTER_BARRIER {
            self.cluster_phase += 1;
            self.cluster_known = Some(known.clone());
        }
        let (barrier, waiters) = (id as u32, barrier.waiters);
        self.opened.push(Opened { barrier, waiters, result, known });
    }

    /// Waits for the barrier of the cluster, at which the warp has arrived.
    pub fn wait_for_cluster(&mut self, warp: usize, mask: u32) {
        let waiter = Waiter { warp, mask, result: None };
        self.barriers[CLUSTER_BARRIER].waiters.push(waiter);
    }

    /// Threads exited: barriers of all threads may be complete now.
    pub fn exit(&mut self, threads: u32) {
        self.alive -= threads;
        self.progress += 1;
        for id in (0..NUM_BARRIERS).chain([CLUSTER_BARRIER]) {
            if self.barriers[id].expected.is_none() {
                self.open_if_complete(id);
            }
        }
    }

    /// What the barriers wait for.
    pub fn describe_barriers(&self) -> String {
        let open = self.barriers.iter().enumerate().filter(|(_, barrier)| barrier.arrived > 0);
        let parts: Vec<String> = open
            .map(|(id, barrier)| {
                let (arrived, expected) = (barrier.arrived, barrier.expected.unwrap_or(self.alive));
                let name = match id.checked_sub(NUM_BARRIERS) {
                    None => format!("barrier {id}"),
                    Some(_) if id == CLUSTER_BARRIER => "barrier.cluster".to_string(),
                    Some(group) => format!("wgmma.wait_group of warpgroup {group}"),
                };
                format!("{name} has {arrived} of {expected} threads")
            })
            .collect();
        parts.join(", ")
    }
}
