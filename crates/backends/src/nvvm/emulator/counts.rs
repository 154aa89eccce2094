//! What a run counts.

use std::{collections::BTreeMap, ops::Range};

use smallvec::SmallVec;

/// How often something was executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Executed {
    /// By warps: once for all lanes that execute it together.
    pub warp: u64,
    /// By threads.
    pub thread: u64,
}

/// Accesses to global memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Instructions of warps.
    pub requests: u64,
    /// Sectors of 32 bytes that they touch.
    pub sectors: u64,
    /// Bytes that the threads asked for, each thread's counted.
    pub bytes: u64,
}

/// Accesses to shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedRequests {
    /// Instructions of warps.
    pub requests: u64,
    /// Passes over the 32 banks that they take, at best one for each 128 bytes.
    pub wavefronts: u64,
    /// Passes beyond the best.
    pub conflicts: u64,
    /// Bytes that the threads asked for, each thread's counted.
    pub bytes: u64,
}

/// The counts of one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// All instructions.
    pub instructions: Executed,
    /// By base instruction, for memory with its state space (`fma`, `ld.global`).
    pub kinds: BTreeMap<String, Executed>,
    /// By line of the PTX text.
    pub lines: BTreeMap<u32, Executed>,
    /// Loads from global memory, the sources of asynchronous copies included.
    pub global_loads: Requests,
    /// Stores to global memory.
    pub global_stores: Requests,
    /// Atomics in global memory.
    pub global_atomics: Requests,
    /// Loads from shared memory, `ldmatrix` included.
    pub shared_loads: SharedRequests,
    /// Stores to shared memory, `stmatrix` included.
    pub shared_stores: SharedRequests,
    /// The destinations of asynchronous copies in shared memory.
    pub shared_copies: SharedRequests,
    /// Atomics in shared memory.
    pub shared_atomics: SharedRequests,
    /// Multiply-adds of `mma`.
    pub tensor_operations: u64,
    /// Arrivals of warps at barriers of the block.
    pub barriers: u64,
    /// Branches that lanes of a warp left in different directions.
    pub divergent_branches: u64,
    /// Bytes of global memory copied by `cp.async.bulk`.
    pub bulk_bytes: u64,
}

impl Counts {
    /// Adds the counts of another launch.
    pub fn add(&mut self, other: &Counts) {
        let add = |mine: &mut Executed, theirs: &Executed| {
            mine.warp += theirs.warp;
            mine.thread += theirs.thread;
        };
        add(&mut self.instructions, &other.instructions);
        for (kind, executed) in &other.kinds {
            add(self.kinds.entry(kind.clone()).or_default(), executed);
        }
        for (line, executed) in &other.lines {
            add(self.lines.entry(*line).or_default(), executed);
        }
        let globals = [
            (&mut self.global_loads, &other.global_loads),
            (&mut self.global_stores, &other.global_stores),
            (&mut self.global_atomics, &other.global_atomics),
        ];
        for (mine, theirs) in globals {
            mine.requests += theirs.requests;
            mine.sectors += theirs.sectors;
            mine.bytes += theirs.bytes;
        }
        let shared = [
            (&mut self.shared_loads, &other.shared_loads),
            (&mut self.shared_stores, &other.shared_stores),
            (&mut self.shared_copies, &other.shared_copies),
            (&mut self.shared_atomics, &other.shared_atomics),
        ];
        for (mine, theirs) in shared {
            mine.requests += theirs.requests;
            mine.wavefronts += theirs.wavefronts;
            mine.conflicts += theirs.conflicts;
            mine.bytes += theirs.bytes;
        }
        self.tensor_operations += other.tensor_operations;
        self.barriers += other.barriers;
        self.divergent_branches += other.divergent_branches;
        self.bulk_bytes += other.bulk_bytes;
    }
}

impl Requests {
    /// Counts one request: for each lane its address.
    pub(super) fn count(&mut self, addresses: &[u64], bytes: usize) {
        self.requests += 1;
        self.bytes += (addresses.len() * bytes) as u64;
        let last = |address: u64| address.saturating_add(bytes as u64 - 1) / 32;
        let mut sectors = 0;
        let mut previous = None;
        // Addresses that rise are the common case; then a sector is new if it is not the last.
        let rising = addresses.is_sorted();
        let mut sorted: SmallVec<[u64; 32]>;
        let addresses = if rising {
            addresses
        } else {
            sorted = addresses.into();
            sorted.sort_unstable();
            &sorted
        };
        for address in addresses {
            let (low, high) = (address / 32, last(*address));
            let low = previous.map_or(low, |p: u64| low.max(p + 1));
            if low <= high {
                sectors += high - low + 1;
                previous = Some(high);
            }
        }
        self.sectors += sectors;
    }
}

impl SharedRequests {
    /// Counts one request. Accesses of 8 and 16 bytes take parts of 16 and 8 lanes. Two neighbouring
    /// parts are one if every lane has the address of lane `^ 1`, or every lane that of lane `^ 2`.
    /// Different words of one bank take passes of their own. (Found from a profiler's counters.)
    pub(super) fn count(&mut self, addresses: &[u64; 32], mask: u32, bytes: usize) {
        self.requests += 1;
        self.bytes += u64::from(mask.count_ones()) * bytes as u64;
        let part = (128 / bytes.max(4)).clamp(1, 32);
        let mut first = 0;
        while first < 32 {
            let mut end = first + part;
            if part < 32 && merges(addresses, mask, first..first + 2 * part) {
                end += part;
            }
            let wavefronts = wavefronts(addresses, mask, first..end, bytes);
            self.wavefronts += wavefronts;
            self.conflicts += wavefronts.saturating_sub(1);
            first = end;
        }
    }
}

fn merges(addresses: &[u64; 32], mask: u32, lanes: Range<usize>) -> bool {
    mask == u32::MAX
        && [1, 2]
            .into_iter()
            .any(|bit| lanes.clone().all(|lane| addresses[lane] == addresses[lane ^ bit]))
}

/// The largest number of different words in one bank.
fn wavefronts(addresses: &[u64; 32], mask: u32, lanes: Range<usize>, bytes: usize) -> u64 {
    // The first word of each bank, and all others.
    let (mut first, mut count) = ([0u64; 32], [0u8; 32]);
    let mut others: SmallVec<[u64; 64]> = SmallVec::new();
    for lane in lanes.filter(|lane| mask >> lane & 1 != 0) {
        let address = addresses[lane];
        for word in address / 4..=address.saturating_add(bytes as u64 - 1) / 4 {
            let bank = (word % 32) as usize;
            if count[bank] == 0 {
                (first[bank], count[bank]) = (word, 1);
            } else if first[bank] != word {
                others.push(word);
            }
        }
    }
    if !others.is_empty() {
        others.sort_unstable();
        others.dedup();
        for word in &others {
            count[(word % 32) as usize] += 1;
        }
    }
    u64::from(count.into_iter().max().unwrap_or(0))
}
