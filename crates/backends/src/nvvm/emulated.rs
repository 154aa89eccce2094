//! The emulator as a device.

use super::{
    device::{Device, DeviceError, Launch},
    emulator::{self, Argument, Buffer, Counts, Memory},
};
use crate::backend::KernelCounts;

/// The largest grid that a run needs, unless the caller wants another one.
const MAX_BLOCKS: u32 = 64;

/// A [`Device`] that executes PTX on this machine and checks every access.
pub struct Emulator {
    /// `None` if there are no kernels.
    module: Option<emulator::Module>,
    kernels: Vec<String>,
    memory: Memory,
    /// The most blocks of a grid.
    pub max_blocks: u32,
    /// The checks of launches.
    pub options: emulator::Options,
    /// What the launches so far have executed, with the number of the kernel.
    pub counts: Vec<(usize, Counts)>,
}

impl Emulator {
    /// A device with the kernels of these names.
    ///
    /// # Errors
    /// The emulator does not know something in the PTX.
    pub fn new(ptx: &str, kernels: &[String]) -> Result<Self, DeviceError> {
        let module = match kernels {
            [] => None,
            _ => Some(emulator::Module::parse(ptx).map_err(failed)?),
        };
        Ok(Self {
            module,
            kernels: kernels.to_vec(),
            memory: Memory::new(),
            max_blocks: MAX_BLOCKS,
            options: emulator::Options::default(),
            counts: Vec::new(),
        })
    }

    /// The buffer that holds so many bytes from an address on, and the offset in it.
    fn place(&self, address: u64, bytes: usize) -> Result<(Buffer, usize), DeviceError> {
        self.memory.place(address, bytes).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> DeviceError {
    DeviceError(error.to_string())
}

impl Device for Emulator {
    fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError> {
        let buffer = self.memory.allocate(bytes, 256);
        Ok(self.memory.address(buffer))
    }

    fn free(&mut self, address: u64) {
        if let Ok((buffer, _)) = self.place(address, 0) {
            self.memory.free(buffer);
        }
    }

    fn launch(&mut self, launch: Launch) -> Result<(), DeviceError> {
        let (Some(module), Some(name)) = (&self.module, self.kernels.get(launch.kernel)) else {
            return Err(DeviceError(format!("there is no kernel {}", launch.kernel)));
        };
        let sizes = module.parameter_sizes(name).unwrap_or_default();
        let arguments = launch.arguments.iter().enumerate().map(|(number, word)| {
            let bytes = word.to_le_bytes();
            let size = sizes.get(number).copied().unwrap_or(bytes.len());
            Argument::Bytes(bytes[..size.min(bytes.len())].to_vec())
        });
        let blocks = launch.blocks.min(self.max_blocks);
        let mut started =
            emulator::Launch::new([blocks, 1, 1], [launch.threads, 1, 1], arguments.collect());
        started.dynamic_shared = launch.shared as usize;
        started.options = self.options.clone();
        let counts = emulator::run(module, name, &started, &mut self.memory).map_err(failed)?;
        self.counts.push((launch.kernel, counts));
        Ok(())
    }

    fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<(), DeviceError> {
        let (target, source) = (self.place(target, bytes)?, self.place(source, bytes)?);
        self.memory.copy(target, source, bytes);
        Ok(())
    }

    fn write(&mut self, target: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let (buffer, offset) = self.place(target, bytes.len())?;
        self.memory.write(buffer, offset, bytes);
        Ok(())
    }

    fn read(&mut self, source: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let (buffer, offset) = self.place(source, bytes.len())?;
        bytes.copy_from_slice(&self.memory.read(buffer)[offset..offset + bytes.len()]);
        Ok(())
    }

    fn counts(&self) -> Vec<KernelCounts> {
        let mut totals = vec![(0, Counts::default()); self.kernels.len()];
        for (kernel, counts) in &self.counts {
            let (launches, total) = &mut totals[*kernel];
            *launches += 1;
            total.add(counts);
        }
        let totals = self.kernels.iter().zip(totals);
        let totals = totals.map(|(kernel, (launches, counts))| KernelCounts {
            kernel: kernel.clone(),
            launches,
            events: events(&counts),
        });
        totals.collect()
    }
}

/// The counts by which kernels are compared.
fn events(counts: &Counts) -> Vec<(&'static str, u64)> {
    vec![
        ("warp_instructions", counts.instructions.warp),
        ("thread_instructions", counts.instructions.thread),
        ("global_load_sectors", counts.global_loads.sectors),
        ("global_load_bytes", counts.global_loads.bytes),
        ("global_store_sectors", counts.global_stores.sectors),
        ("global_store_bytes", counts.global_stores.bytes),
        ("global_atomics", counts.global_atomics.requests),
        ("shared_load_wavefronts", counts.shared_loads.wavefronts),
        ("shared_store_wavefronts", counts.shared_stores.wavefronts),
        ("shared_conflicts", counts.shared_loads.conflicts + counts.shared_stores.conflicts),
        ("tensor_operations", counts.tensor_operations),
        ("barriers", counts.barriers),
        ("divergent_branches", counts.divergent_branches),
    ]
}
