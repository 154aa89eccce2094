//! Launches: what the host says about a run.

use super::{
    error::Error,
    memory::{Buffer, Memory},
    module::{Kernel, Module},
    tensor_map::{self, TensorMap},
};

/// The largest number of threads of a block (CUDA C++ Programming Guide, "Compute Capabilities").
const MAX_THREADS: u64 = 1024;
/// The largest shared memory of a block, static and dynamic (`sm_90`).
const MAX_SHARED: usize = 227 << 10;
const GRID_LIMITS: [u64; 3] = [(1 << 31) - 1, 65535, 65535];

/// An argument of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// The address of a buffer.
    Buffer(Buffer),
    /// An address in a buffer: its start and so many bytes.
    Address(Buffer, i64),
    /// A tensor map, passed by value.
    TensorMap(Box<TensorMap>),
    /// A value by its bytes, little-endian; also for parameters passed by value.
    Bytes(Vec<u8>),
}

impl From<Buffer> for Argument {
    fn from(buffer: Buffer) -> Argument {
        Argument::Buffer(buffer)
    }
}

impl From<u32> for Argument {
    fn from(value: u32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<i32> for Argument {
    fn from(value: i32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<u64> for Argument {
    fn from(value: u64) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }
}

/// In which order blocks run. Races are found in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockOrder {
    /// One after another.
    #[default]
    Sequential,
    /// One after another, the last first.
    Reversed,
    /// So many at a time, in turn; for kernels whose blocks wait for each other.
    Interleaved(usize),
}

/// What to check, and how to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Report races, reads before the wait of a copy, and `ld.global.nc` of written memory.
    pub check_races: bool,
    /// Report reads of bytes that nothing wrote.
    pub check_initialised: bool,
    /// Report results that the manual leaves undefined: division by zero.
    pub check_undefined: bool,
    /// Count exited threads as present at `.aligned` instructions, as devices do at barriers. The
    /// manual asks for all threads of the warp.
    pub allow_exited: bool,
    /// The order of blocks.
    pub order: BlockOrder,
    /// An error if the threads execute more instructions.
    pub max_instructions: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            check_races: true,
            check_initialised: true,
            check_undefined: true,
            allow_exited: false,
            order: BlockOrder::Sequential,
            max_instructions: 10_000_000_000,
        }
    }
}

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: usize,
    /// The arguments, in the order of the parameters.
    pub arguments: Vec<Argument>,
    /// How to run.
    pub options: Options,
}

impl Launch {
    /// A launch with default options and no dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3], arguments: Vec<Argument>) -> Launch {
        Launch { grid, block, dynamic_shared: 0, arguments, options: Options::default() }
    }
}

fn invalid<T>(message: String) -> Result<T, Error> {
    Err(Error::Launch(message))
}

fn product(extents: [u32; 3]) -> u64 {
    extents.iter().fold(1u64, |product, extent| product.saturating_mul(u64::from(*extent)))
}

/// Finds the kernel and checks the launch against it.
pub(super) fn kernel<'m>(
    module: &'m Module,
    entry: &str,
    launch: &Launch,
) -> Result<&'m Kernel, Error> {
    let Some(kernel) = module.kernels.iter().find(|kernel| kernel.name == entry) else {
        return invalid(format!("expected a kernel, found '{entry}'"));
    };
    let threads = product(launch.block);
    if threads == 0 || threads > MAX_THREADS || launch.block[2] > 64 {
        return invalid(format!("expected 1 to {MAX_THREADS} threads, found {:?}", launch.block));
    }
    for (extent, limit) in launch.grid.iter().zip(GRID_LIMITS) {
        if *extent == 0 || u64::from(*extent) > limit {
            return invalid(format!("expected 1 to {limit} blocks, found {:?}", launch.grid));
        }
    }
    if product(launch.grid) > u64::from(u32::MAX) / 32 {
        return invalid(format!("expected at most 2^27 blocks, found {:?}", launch.grid));
    }
    if kernel.required_threads.is_some_and(|required| required != launch.block) {
        let required = kernel.required_threads.unwrap_or_default();
        return invalid(format!("'.reqntid' is {required:?}, found {:?}", launch.block));
    }
    if kernel.max_threads.is_some_and(|most| threads > product(most)) {
        let most = kernel.max_threads.unwrap_or_default();
        return invalid(format!("'.maxntid' is {most:?}, found {:?}", launch.block));
    }
    if kernel.cluster.is_some_and(|cluster| product(cluster) != 1) {
        return invalid("unsupported clusters of more than one block".to_string());
    }
    let shared = kernel.shared_bytes + launch.dynamic_shared;
    if shared > MAX_SHARED {
        return invalid(format!(
            "expected at most {MAX_SHARED} bytes of shared memory, found {shared}"
        ));
    }
    Ok(kernel)
}

/// The bytes of the parameters.
pub(super) fn parameters(
    kernel: &Kernel,
    launch: &Launch,
    memory: &Memory,
) -> Result<Vec<u8>, Error> {
    let (expected, found) = (kernel.parameters.len(), launch.arguments.len());
    if expected != found {
        return invalid(format!("expected {expected} arguments, found {found}"));
    }
    let mut bytes = vec![0; kernel.parameter_bytes];
    for (index, (parameter, argument)) in
        kernel.parameters.iter().zip(&launch.arguments).enumerate()
    {
        let address = |buffer: &Buffer, offset: i64| match memory.buffers.get(buffer.0) {
            Some(allocation) => {
                Ok(allocation.address.wrapping_add_signed(offset).to_le_bytes().to_vec())
            }
            None => invalid(format!("argument {index}: expected a buffer of this memory")),
        };
        let value = match argument {
            Argument::Buffer(buffer) => address(buffer, 0)?,
            Argument::Address(buffer, offset) => address(buffer, *offset)?,
            Argument::TensorMap(map) => {
                let start = address(&map.buffer, 0)?;
                let start = start.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
                match map.encode(start) {
                    Some(mut bytes) => {
                        bytes.resize(tensor_map::BYTES, 0);
                        bytes
                    }
                    None => return invalid(format!("argument {index}: invalid tensor map")),
                }
            }
            Argument::Bytes(bytes) => bytes.clone(),
        };
        let (size, found) = (parameter.size, value.len());
        if size != found {
            return invalid(format!("argument {index}: expected {size} bytes, found {found}"));
        }
        bytes[parameter.offset..parameter.offset + size].copy_from_slice(&value);
    }
    Ok(bytes)
}
