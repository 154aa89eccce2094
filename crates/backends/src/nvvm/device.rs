//! Devices: what runs the kernels of a program and holds its buffers.
//!
//! Compiled host code calls a device through a [`Table`] of function pointers. A [`Device`] has one stream: it
//! carries calls out in their order, and only [`Device::read`] waits for it. After a call that failed, the others
//! of the same run do nothing, and reads fail. So an error is known at the latest with the results.

use crate::backend::KernelCounts;
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Why a device did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// The launch of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The number of the kernel.
    pub kernel: usize,
    /// The blocks that have work. A device may start fewer, but at least one.
    pub blocks: u32,
    /// The threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// The arguments, each in the low bytes of a word.
    pub arguments: Vec<u64>,
}

/// A device with the kernels of one program.
pub trait Device: Send {
    /// Allocates a buffer of so many bytes, aligned to 256. Returns its address.
    ///
    /// # Errors
    /// There is not enough memory.
    fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError>;

    /// Frees a buffer, when all calls before are done.
    fn free(&mut self, address: u64);

    /// Starts a kernel.
    ///
    /// # Errors
    /// It cannot be started, or a call before has failed.
    fn launch(&mut self, launch: Launch) -> Result<(), DeviceError>;

    /// Copies bytes within the device.
    ///
    /// # Errors
    /// They lie outside of a buffer, or a call before has failed.
    fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<(), DeviceError>;

    /// Copies bytes to the device. They may be changed when this returns.
    ///
    /// # Errors
    /// They lie outside of a buffer, or a call before has failed.
    fn write(&mut self, target: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Waits for the device, and copies bytes from it.
    ///
    /// # Errors
    /// They lie outside of a buffer, or a call before has failed.
    fn read(&mut self, source: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// The counts of all launches so far per kernel; empty unless the device counts.
    fn counts(&self) -> Vec<KernelCounts> {
        Vec::new()
    }
}

/// What host code gets: a context, and functions that take it first. `convert-launch-to-calls` knows the order.
#[repr(C)]
pub(super) struct Table {
    context: *mut c_void,
    launch: unsafe extern "C" fn(*mut c_void, i32, i32, i32, i32, *const u64, i32),
    copy: unsafe extern "C" fn(*mut c_void, u64, u64, i64),
    read: unsafe extern "C" fn(*mut c_void, *mut u8, u64, i64) -> i32,
    write: unsafe extern "C" fn(*mut c_void, u64, *const u8, i64),
}

/// A device during a run of host code.
pub(super) struct Run<'a> {
    device: &'a mut dyn Device,
    /// The first error.
    error: Option<DeviceError>,
}

impl<'a> Run<'a> {
    pub fn new(device: &'a mut dyn Device) -> Self {
        Self { device, error: None }
    }

    /// The table for this run, which must outlive it.
    pub fn table(&mut self) -> Table {
        Table { context: (self as *mut Self).cast(), launch, copy, read, write }
    }

    /// The first error of the run.
    pub fn finish(self) -> Result<(), DeviceError> {
        self.error.map_or(Ok(()), Err)
    }

    /// Does something, unless a call before has failed. Returns whether it worked.
    fn call(&mut self, work: impl FnOnce(&mut dyn Device) -> Result<(), DeviceError>) -> bool {
        if self.error.is_none() {
            // No panic may unwind into compiled code.
            let result = catch_unwind(AssertUnwindSafe(|| work(self.device)));
            let panicked = || Err(DeviceError("the device's driver panicked".to_string()));
            self.error = result.unwrap_or_else(|_| panicked()).err();
        }
        self.error.is_none()
    }
}

/// The run that a context stands for.
///
/// # Safety
/// The context must be that of a table whose run is alive and not borrowed.
unsafe fn run<'a>(context: *mut c_void) -> &'a mut Run<'a> {
    // SAFETY: as for this function.
    unsafe { &mut *context.cast::<Run<'a>>() }
}

fn size(bytes: i64) -> Result<usize, DeviceError> {
    usize::try_from(bytes).map_err(|_| DeviceError(format!("{bytes} bytes are no size")))
}

unsafe extern "C" fn launch(
    context: *mut c_void,
    kernel: i32,
    blocks: i32,
    threads: i32,
    shared: i32,
    words: *const u64,
    count: i32,
) {
    // SAFETY: host code passes the context of its table, and as many words as it says.
    let (run, arguments) = unsafe {
        (run(context), std::slice::from_raw_parts(words, usize::try_from(count).unwrap_or(0)))
    };
    let number = |value: i32| u32::try_from(value).unwrap_or(0);
    let launch = Launch {
        kernel: number(kernel) as usize,
        blocks: number(blocks),
        threads: number(threads),
        shared: number(shared),
        arguments: arguments.to_vec(),
    };
    run.call(|device| device.launch(launch));
}

unsafe extern "C" fn copy(context: *mut c_void, target: u64, source: u64, bytes: i64) {
    // SAFETY: host code passes the context of its table.
    let run = unsafe { run(context) };
    run.call(|device| device.copy(target, source, size(bytes)?));
}

unsafe extern "C" fn read(context: *mut c_void, target: *mut u8, source: u64, bytes: i64) -> i32 {
    // SAFETY: host code passes the context of its table, and room for so many bytes.
    let (run, target) = unsafe {
        (run(context), std::slice::from_raw_parts_mut(target, usize::try_from(bytes).unwrap_or(0)))
    };
    let worked = run.call(|device| device.read(source, target));
    i32::from(!worked)
}

unsafe extern "C" fn write(context: *mut c_void, target: u64, source: *const u8, bytes: i64) {
    // SAFETY: host code passes the context of its table, and so many bytes.
    let (run, source) = unsafe {
        (run(context), std::slice::from_raw_parts(source, usize::try_from(bytes).unwrap_or(0)))
    };
    run.call(|device| device.write(target, source));
}
