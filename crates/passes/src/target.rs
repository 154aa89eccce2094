//! Targets: machines, their costs, and the pipelines that lower programs to them.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    thread,
};

/// More threads than any machine has would only exhaust memory.
pub const MAX_THREADS: usize = 4096;

/// Bytes of a cache line of the processors that a machine may have.
pub const LINE_BYTES: i64 = 64;

/// Threads of a warp of each GPU that a machine may have.
pub const WARP: i64 = 32;

/// The least work for several threads, in operations on vector registers: 20 to 50 microseconds. This is a few times the
/// cost of threads: their start, the barrier at the end, and transfers between the caches of cores.
const START_THREADS: i64 = 1 << 18;

/// A machine: a triple, a processor and features, as LLVM names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The target triple, such as `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor, such as `znver4` or `sm_90a`.
    pub cpu: String,
    /// Features on top of the processor's own, such as `+avx512f,-avx512bf16`.
    pub features: String,
    /// The bytes of the first-level and the second-level data cache of a core; zero for a GPU.
    pub cache_bytes: [u64; 2],
    /// Addresses that differ by a multiple of this are in one set of the first-level data cache; zero for a GPU.
    pub set_bytes: u64,
}

/// The caches of a named processor: most x86-64 cores since 2017 have at least these sizes.
const COMMON_CACHES: [u64; 2] = [1 << 15, 1 << 19];
/// A page: the cache finds a set without waiting for the address in memory.
const COMMON_SET_BYTES: u64 = 1 << 12;

impl Machine {
    /// The machine that runs this program, with the features it reports: the name of the
    /// processor alone may promise more or fewer, on a virtual machine above all.
    pub fn host() -> Self {
        let [triple, cpu, features] = tc_dialects::host();
        let (cache_bytes, set_bytes) = host_caches().unwrap_or((COMMON_CACHES, COMMON_SET_BYTES));
        Self { triple, cpu, features, cache_bytes, set_bytes }
    }

    /// A named processor of this machine's architecture and system.
    pub fn cpu(name: &str) -> Self {
        let (cpu, features) = (name.to_string(), String::new());
        Self {
            cpu,
            features,
            cache_bytes: COMMON_CACHES,
            set_bytes: COMMON_SET_BYTES,
            ..Self::host()
        }
    }

    /// Whether it is one of NVIDIA's GPUs.
    pub fn is_gpu(&self) -> bool {
        self.triple.starts_with("nvptx")
    }

    /// The numbers of this many bits that a vector register holds; for a GPU, that an instruction loads.
    pub fn vector_length(&self, element_bits: u32) -> i64 {
        i64::from((self.vector_registers().0 / element_bits.max(1)).max(1))
    }

    /// The operations on 32-bit numbers in registers that are worth several threads: as many as one thread does in a few
    /// times the time that it takes to start threads.
    pub fn parallel_threshold(&self) -> i64 {
        self.vector_length(32) * START_THREADS
    }

    /// The width of the vector registers in bits and their number. If only the name of
    /// a processor is known, those of its generation.
    pub fn vector_registers(&self) -> (u32, u32) {
        #[rustfmt::skip]
        const AVX512: &[&str] = &[
            "x86-64-v4", "avx512", "cannonlake", "cascadelake", "cooperlake", "emeraldrapids",
            "graniterapids", "icelake", "rocketlake", "sapphirerapids", "tigerlake", "znver4",
            "znver5",
        ];
        #[rustfmt::skip]
        const SSE: &[&str] = &[
            "x86-64", "x86-64-v2", "core2", "generic", "i686", "k8", "nehalem", "penryn",
            "pentium4", "silvermont", "westmere",
        ];
        if !self.triple.starts_with("x86_64") {
            return (128, 32);
        }
        let has = |feature: &str| self.features.split(',').any(|it| it == feature);
        if has("-avx512f") && has("+avx") {
            (256, 16)
        } else if has("-avx512f") && has("-avx") {
            (128, 16)
        } else if has("+avx512f") || AVX512.iter().any(|it| self.cpu.contains(it)) {
            (512, 32)
        } else if SSE.contains(&self.cpu.as_str()) && !has("+avx") {
            (128, 16)
        } else {
            (256, 16)
        }
    }
}

/// The caches of the first processor, as Linux reports them, and the distance of addresses in one set of the first-level
/// cache; `None` elsewhere.
fn host_caches() -> Option<([u64; 2], u64)> {
    let folder = Path::new("/sys/devices/system/cpu/cpu0/cache");
    let (mut found, mut set_bytes) = ([None; 2], COMMON_SET_BYTES);
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let read = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let number = |name| read(name).trim().parse::<u64>().ok();
        let level = number("level").and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        let holds_data = read("type").trim() != "Instruction";
        let kilobytes = read("size").trim().strip_suffix('K').and_then(|it| it.parse::<u64>().ok());
        if let Some(place) = level.checked_sub(1).and_then(|level| found.get_mut(level))
            && holds_data
        {
            *place = kilobytes.map(|it| it << 10);
            let sets = number("number_of_sets").zip(number("coherency_line_size"));
            if let (1, Some((sets, line))) = (level, sets) {
                set_bytes = sets.saturating_mul(line);
            }
        }
    }
    Some(([found[0]?, found[1]?], set_bytes))
}

/// The machine that code is generated for, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codegen {
    /// The machine.
    pub machine: Machine,
    /// Threads that the outer loops are divided among; 1 for no threads at all. A GPU chooses its own.
    pub threads: usize,
    /// Neither reassociate nor contract floating-point operations.
    pub strict_fp: bool,
    /// Do not round floats that the same operation widens again.
    pub excess_precision: bool,
    /// Threads that compile a large program.
    pub compile_threads: usize,
    /// Whether loaded code measures its kernels.
    pub profile: bool,
    /// Whether the names of loaded functions are written for `perf`.
    pub perf_map: bool,
    /// The folder where the target `cpu` keeps the objects of loaded code for later processes; `None` for no cache.
    pub cache: Option<PathBuf>,
}

impl Codegen {
    /// One thread and relaxed floating-point arithmetic, compiled by as many threads as there are.
    pub fn new(machine: Machine) -> Self {
        let compile_threads = thread::available_parallelism().map_or(1, usize::from);
        Self {
            machine,
            threads: 1,
            strict_fp: false,
            excess_precision: false,
            compile_threads,
            profile: false,
            perf_map: false,
            cache: None,
        }
    }
}

impl Default for Codegen {
    /// For the machine that runs this program.
    fn default() -> Self {
        Self::new(Machine::host())
    }
}

/// A producer that several consumers compute again instead of reading its result. Tensors count if they are accessed
/// at each point of the producer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Recomputation {
    /// Operations per element that are done more often than today.
    pub operations: usize,
    /// Tensors that producer and consumers access if the result is stored.
    pub stored: usize,
    /// Tensors that the consumers access on top of their own if it is not.
    pub recomputed: usize,
}

/// What fusion asks about rewrites that are legal. It knows no IR.
pub trait CostModel {
    /// The most operations per element of a producer that one consumer reads through several maps, over all maps.
    fn max_recompute(&self) -> usize;

    /// The most consumers that compute a producer again.
    fn max_consumers(&self) -> usize;

    /// Whether consumers compute a producer again.
    fn recomputes(&self, change: &Recomputation) -> bool;

    /// The most operations of a fused operation.
    fn max_body(&self) -> usize;

    /// The most operators of an expression in a composed map.
    fn max_map(&self) -> u32;

    /// The most tensors that an operation accesses at each of its points, if it is made of several.
    fn max_streams(&self) -> usize;

    /// Whether the maximum of a row and the sum of its exponentials are folded together: they read the row once then. The
    /// bytes are those that a tile would keep of a row; `None` if they are not known.
    fn rescales(&self, row_bytes: Option<u64>) -> bool;

    /// Whether folds may round in another order.
    fn reassociates(&self) -> bool;
}

/// The cost model of machines on which a load from memory costs more than a few operations. The default is that of
/// CPUs: `max_streams` is about the number of streams that prefetchers follow, and of the ways of a cache, and LLVM
/// needs quadratic time for a body, beside which an intermediate tensor costs little.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryBound {
    /// [`CostModel::max_recompute`].
    pub max_recompute: usize,
    /// [`CostModel::max_consumers`].
    pub max_consumers: usize,
    /// [`CostModel::max_body`].
    pub max_body: usize,
    /// [`CostModel::max_map`].
    pub max_map: u32,
    /// [`CostModel::max_streams`].
    pub max_streams: usize,
    /// The most bytes of a row that a tile keeps, beyond which [`CostModel::rescales`]; `None` if no row is too long: the
    /// vectors of a CPU compute two simple folds faster than one with a region.
    pub max_row: Option<u64>,
    /// [`CostModel::reassociates`].
    pub reassociates: bool,
}

impl Default for MemoryBound {
    fn default() -> Self {
        Self {
            max_recompute: 16,
            max_consumers: 4,
            max_body: 256,
            max_map: 400,
            max_streams: 16,
            max_row: None,
            reassociates: true,
        }
    }
}

impl MemoryBound {
    /// The options of `imap-fuse`.
    pub fn options(&self) -> String {
        let Self {
            max_recompute,
            max_consumers,
            max_body,
            max_map,
            max_streams,
            max_row,
            reassociates,
        } = self;
        let max_row = max_row.unwrap_or(0);
        format!(
            "max-recompute={max_recompute} max-consumers={max_consumers} max-body={max_body} max-map={max_map} \
             max-streams={max_streams} max-row={max_row} strict-fp={}",
            !reassociates
        )
    }
}

impl CostModel for MemoryBound {
    fn max_recompute(&self) -> usize {
        self.max_recompute
    }

    fn max_consumers(&self) -> usize {
        self.max_consumers
    }

    fn recomputes(&self, change: &Recomputation) -> bool {
        change.operations <= self.max_recompute / 4 && change.recomputed < change.stored
    }

    fn max_body(&self) -> usize {
        self.max_body
    }

    fn max_map(&self) -> u32 {
        self.max_map
    }

    fn max_streams(&self) -> usize {
        self.max_streams
    }

    fn rescales(&self, row_bytes: Option<u64>) -> bool {
        self.max_row.is_some_and(|most| row_bytes.is_none_or(|bytes| most < bytes))
    }

    fn reassociates(&self) -> bool {
        self.reassociates
    }
}

/// The limits of tiles and of groups of operations that are computed in them, from the description of a machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TileLimits {
    /// The least bytes of results that are no longer stored whole.
    pub min_bytes: u64,
    /// The most bytes that one tile may touch.
    pub tile_bytes: u64,
    /// The most bytes of an operand that all tiles read again.
    pub shared_bytes: u64,
    /// The most bytes that the least tile of a group with products may touch; 0 if products are not tiled.
    pub product_bytes: u64,
    /// The least points of the root in a tile, if the tiled dimensions have as many.
    pub min_points: u64,
    /// Addresses that differ by a multiple of this are in one set of the first-level cache; 0 if that is not known.
    pub set_bytes: u64,
    /// The least results that an element of a copy serves.
    pub min_columns: u64,
    /// The least rows of a product in a tile: its other factor is read again for each tile.
    pub min_rows: u64,
    /// The least elements of a contiguous row that tiles cut.
    pub min_row: u64,
    /// The least elements of a contiguous row in a tile of columns: rows are cut where tiles of whole rows give no group.
    /// 0 for no such tiles.
    pub min_strip: u64,
    /// The least tiles of a dimension: more points in a tile leave fewer tiles.
    pub min_tiles: u64,
    /// Whether the blocks of a GPU compute the tiles: all have one static size, as its shared memory needs it.
    pub blocks: bool,
    /// The work that is worth several threads, in operations on 32-bit numbers in registers; `None` for one thread.
    pub parallel: Option<u64>,
}

impl Default for TileLimits {
    /// Those of the options of `imap-schedule`, for one thread.
    fn default() -> Self {
        Self {
            min_bytes: 1 << 17,
            tile_bytes: 1 << 19,
            shared_bytes: 1 << 14,
            product_bytes: 1 << 21,
            min_points: 1 << 13,
            set_bytes: 1 << 12,
            min_columns: 128,
            min_rows: 16,
            min_row: 64,
            min_strip: 0,
            min_tiles: 1,
            blocks: false,
            parallel: None,
        }
    }
}

impl TileLimits {
    /// The options of `imap-schedule`.
    pub fn options(&self) -> String {
        let Self {
            min_bytes,
            tile_bytes,
            shared_bytes,
            product_bytes,
            min_points,
            set_bytes,
            min_columns,
            min_rows,
            min_row,
            min_strip,
            min_tiles,
            blocks,
            parallel,
        } = self;
        let mut text = format!(
            "min-bytes={min_bytes} tile-bytes={tile_bytes} shared-bytes={shared_bytes} product-bytes={product_bytes} \
             min-points={min_points} set-bytes={set_bytes} min-columns={min_columns} min-rows={min_rows} \
             min-row={min_row} min-strip={min_strip} min-tiles={min_tiles} blocks={blocks}"
        );
        if let Some(threshold) = parallel {
            // Writing to a string does not fail.
            let _ = write!(text, " parallel=true parallel-threshold={threshold}");
        }
        text
    }
}

/// A kind of machines, and the passes that lower programs to them. It holds no code generator.
pub trait Target: Send + Sync {
    /// The name on command lines.
    fn name(&self) -> &'static str;

    /// The machine of a name; `None` for the default one.
    ///
    /// # Errors
    /// There is none of that name; the text lists those that there are.
    fn machine(&self, name: Option<&str>) -> Result<Machine, String>;

    /// The costs by which operations are fused.
    fn costs(&self, machine: &Machine) -> MemoryBound;

    /// The limits of the tiles in which operations are computed.
    fn tiles(&self, codegen: &Codegen) -> TileLimits;

    /// The pipeline from functions on tensors to functions with destinations and with element types
    /// that the target has. With `upstream`, a program may contain any operation of MLIR's own
    /// dialects that works on tensors.
    fn legalize(&self, upstream: bool) -> String;

    /// The pipeline from the result of [`legalize`](Self::legalize) to the `llvm` dialect.
    fn lower(&self, codegen: &Codegen, upstream: bool) -> String;
}
