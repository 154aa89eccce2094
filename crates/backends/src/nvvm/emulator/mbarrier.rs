//! The state of an mbarrier object (PTX ISA, "mbarrier").

use std::{collections::VecDeque, rc::Rc};

use super::races::{Knowledge, Snapshot};

/// A bulk copy whose bytes an mbarrier counts.
#[derive(Debug, Clone)]
pub(super) struct BulkCopy {
    pub to: usize,
    pub data: Vec<u8>,
    /// The thread that started it.
    pub snapshot: Snapshot,
    pub pc: u32,
    pub warp: u32,
}

/// The state of an mbarrier object.
#[derive(Debug)]
pub(super) struct MbarrierState {
    /// Arrivals of one phase.
    pub expected: u32,
    /// Arrivals that the current phase still needs.
    pub pending: u32,
    /// Bytes that the current phase still needs.
    pub bytes: i64,
    /// The number of the current phase.
    pub phase: u64,
    /// What the threads knew that arrived in the current phase.
    pub arrived: Vec<Snapshot>,
    /// What everyone knew at the end of the last phase.
    pub known: Option<Rc<Knowledge>>,
    /// Copies in flight, which land when a thread waits for them.
    pub copies: VecDeque<BulkCopy>,
}

impl MbarrierState {
    pub fn new(expected: u32) -> MbarrierState {
        MbarrierState {
            expected,
            pending: expected,
            bytes: 0,
            phase: 0,
            arrived: Vec::new(),
            known: None,
            copies: VecDeque::new(),
        }
    }

    /// Whether nothing is missing in the current phase.
    pub fn complete(&self) -> bool {
        self.pending == 0 && self.bytes == 0
    }

    /// The opaque state that `mbarrier.arrive` returns: the phase, in the high half.
    pub fn token(&self) -> u64 {
        self.phase << 32 | u64::from(self.pending)
    }
}
