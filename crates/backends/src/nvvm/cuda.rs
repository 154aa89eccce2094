//! A GPU of this machine as a device, through NVIDIA's driver, which is loaded when it is first needed.

use super::device::{Device, DeviceError, Launch};
use cudarc::driver::{
    DriverError,
    result::{self, ctx, device, function, module, primary_ctx, stream},
    sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute},
};
use std::ffi::{CString, c_void};

/// The first GPU of this machine, with the kernels of one program. All calls go to one stream, and buffers come
/// from the memory pool of the driver.
pub struct Cuda {
    gpu: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// Null if there are no kernels.
    module: sys::CUmodule,
    kernels: Vec<sys::CUfunction>,
    /// The threads that the GPU runs at a time.
    threads: u32,
}

// SAFETY: handles of the driver belong to a context and not to a thread; each call makes it current.
unsafe impl Send for Cuda {}

fn failed(error: DriverError) -> DeviceError {
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    DeviceError(format!("the driver of the GPU: {}", text.unwrap_or_else(|_| format!("{error:?}"))))
}

impl Cuda {
    /// The first GPU, with the kernels of these names.
    ///
    /// # Errors
    /// There is no driver or no GPU, or the driver rejects the PTX, which may be for other GPUs.
    pub fn new(ptx: &str, kernels: &[String]) -> Result<Self, DeviceError> {
        // SAFETY: the search only opens libraries.
        if !unsafe { sys::is_culib_present() } {
            let message = "there is no driver of NVIDIA's GPUs ('libcuda.so') on this machine; try \
                           '--device=emulator'";
            return Err(DeviceError(message.to_string()));
        }
        result::init().map_err(failed)?;
        let gpu = device::get(0).map_err(failed)?;
        // SAFETY: the GPU is the driver's, and its context is retained until `self` is dropped.
        let (context, number) = unsafe {
            let number = |it| device::get_attribute(gpu, it).map_err(failed);
            let multiprocessors = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let each = number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
            (primary_ctx::retain(gpu).map_err(failed)?, multiprocessors * each)
        };
        let mut device = Self {
            gpu,
            context,
            stream: stream::null(),
            module: std::ptr::null_mut(),
            kernels: Vec::new(),
            threads: u32::try_from(number).unwrap_or(0),
        };
        device.enter()?;
        device.stream = stream::create(stream::StreamKind::NonBlocking).map_err(failed)?;
        if !kernels.is_empty() {
            let no_zero = |_| DeviceError("PTX and names have no byte 0".to_string());
            let text = CString::new(ptx).map_err(no_zero)?;
            // SAFETY: the text ends in a zero, and the module lives as long as its functions.
            unsafe {
                device.module = module::load_data(text.as_ptr().cast()).map_err(failed)?;
                for kernel in kernels {
                    let name = CString::new(kernel.as_str()).map_err(no_zero)?;
                    device.kernels.push(module::get_function(device.module, name).map_err(failed)?);
                }
            }
        }
        Ok(device)
    }

    /// Makes the context that of this thread.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained.
        unsafe { ctx::set_current(self.context) }.map_err(failed)
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // An error here was, or will be, an error of another call.
        let _ = self.enter();
        // SAFETY: each handle is this one's own, and nothing uses it later.
        unsafe {
            if !self.stream.is_null() {
                let _ = stream::synchronize(self.stream);
                let _ = stream::destroy(self.stream);
            }
            if !self.module.is_null() {
                let _ = module::unload(self.module);
            }
            let _ = primary_ctx::release(self.gpu);
        }
    }
}

impl Device for Cuda {
    fn allocate(&mut self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        // SAFETY: all uses are on the stream. The driver aligns to 256 bytes, and allocates no empty buffers.
        unsafe { result::malloc_async(self.stream, bytes.max(1)) }.map_err(failed)
    }

    fn free(&mut self, address: u64) {
        if self.enter().is_ok() {
            // SAFETY: the caller frees what it allocated, once. An error shows in the next call.
            let _ = unsafe { result::free_async(address, self.stream) };
        }
    }

    fn launch(&mut self, launch: Launch) -> Result<(), DeviceError> {
        let no_kernel = || DeviceError(format!("there is no kernel {}", launch.kernel));
        let kernel = *self.kernels.get(launch.kernel).ok_or_else(no_kernel)?;
        self.enter()?;
        let resident = (self.threads / launch.threads.max(1)).max(1);
        let mut words = launch.arguments.clone();
        let mut arguments: Vec<*mut c_void> =
            words.iter_mut().map(|word| (word as *mut u64).cast()).collect();
        // SAFETY: the kernel has as many parameters, which are read before this returns.
        unsafe {
            if launch.shared != 0 {
                let limit = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                let bytes = i32::try_from(launch.shared).unwrap_or(i32::MAX);
                function::set_function_attribute(kernel, limit, bytes).map_err(failed)?;
            }
            result::launch_kernel(
                kernel,
                (launch.blocks.clamp(1, resident), 1, 1),
                (launch.threads, 1, 1),
                launch.shared,
                self.stream,
                &mut arguments,
            )
        }
        .map_err(failed)
    }

    fn copy(&mut self, target: u64, source: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: host code copies within its buffers.
        unsafe { result::memcpy_dtod_async(target, source, bytes, self.stream) }.map_err(failed)
    }

    fn write(&mut self, target: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the driver has read bytes that are not page-locked when this returns.
        unsafe { result::memcpy_htod_async(target, bytes, self.stream) }.map_err(failed)
    }

    fn read(&mut self, source: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the bytes are borrowed until the stream has written them.
        unsafe {
            result::memcpy_dtoh_async(bytes, source, self.stream).map_err(failed)?;
            stream::synchronize(self.stream).map_err(failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "
        .version 7.0
        .target sm_80
        .address_size 64
        .visible .entry twice(.param .u64 x) {
          .reg .b64 %a;
          .reg .b32 %t;
          .reg .b64 %o;
          ld.param.u64 %a, [x];
          cvta.to.global.u64 %a, %a;
          mov.u32 %t, %tid.x;
          mul.wide.u32 %o, %t, 4;
          add.u64 %a, %a, %o;
          ld.global.u32 %t, [%a];
          add.u32 %t, %t, %t;
          st.global.u32 [%a], %t;
          ret;
        }";

    #[test]
    fn kernels_run_or_the_error_says_what_is_missing() {
        let mut device = match Cuda::new(PTX, &["twice".to_string()]) {
            Ok(device) => device,
            Err(error) => return assert!(error.0.contains("driver of "), "{error}"),
        };
        let numbers: Vec<u8> = (0u32..64).flat_map(u32::to_le_bytes).collect();
        let (first, second) = (device.allocate(256).unwrap(), device.allocate(256).unwrap());
        device.write(first, &numbers).unwrap();
        device.copy(second, first, 256).unwrap();
        let arguments = vec![second];
        let launch = Launch { kernel: 0, blocks: 1, threads: 64, shared: 0, arguments };
        device.launch(launch).unwrap();
        let mut found = vec![0; 256];
        device.read(second, &mut found).unwrap();
        let twice: Vec<u8> = (0u32..64).flat_map(|it| (2 * it).to_le_bytes()).collect();
        assert_eq!(found, twice);
        device.free(first);
        device.free(second);
    }
}
