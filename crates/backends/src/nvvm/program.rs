//! Whole programs: kernels as PTX, and host code that launches them.
//!
//! ```
//! use melior::ir::Module;
//! use std::sync::{Arc, Mutex};
//! use tc_backends::{Codegen, nvvm::{Emulator, Program, machines}, runtime::Tensor};
//!
//! let context = tc_dialects::new_context();
//! let module = Module::parse(&context, r#"
//!     func.func @negate(%a: tensor<4xf32>) -> tensor<4xf32> {
//!       %init = tensor.empty() : tensor<4xf32>
//!       %b = imap.generic (i) domain: i in [0, 3]
//!           ins(%a[i] : tensor<4xf32>) outs(%init[i] : tensor<4xf32>) {
//!       ^bb0(%x: f32):
//!         %y = arith.negf %x : f32
//!         imap.yield %y : f32
//!       } -> tensor<4xf32>
//!       return %b : tensor<4xf32>
//!     }"#).unwrap();
//! let program = Program::lower(&module, &Codegen::new(machines()[0].clone()))?;
//! let device = Emulator::new(program.ptx(), program.kernels())?;
//! let compiled = program.load(Arc::new(Mutex::new(device)))?;
//! let a = Tensor::from_values(&[4], &[1.0f32, 2.0, 3.0, 4.0])?;
//! let outputs = compiled.function("negate").unwrap().run(&[&a])?;
//! assert_eq!(outputs[0].to_values::<f32>().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{
    device::{Device, DeviceError, Run},
    kernels, pipeline,
    plan::{Plan, plans},
    timed_ptx,
};
use crate::{
    backend::{
        CallError, Code, Compiled, Descriptor, Error, KernelCounts, Role, Signature,
        read_signatures,
    },
    cpu::{self, header},
    llvm,
};
use melior::ir::Module;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tc_dialects::mlir;
use tc_passes::{
    analysis::launches::constants,
    target::Codegen,
    transform::{assign_buffers::WORKSPACE, check_device_reads::DEVICE_FAILED},
};

/// How the symbol of the constants begins in an object.
const CONSTANTS_PREFIX: &str = "_tc_constants_";

/// A compiled program.
pub struct Program {
    signatures: Vec<Signature>,
    ptx: String,
    kernels: Vec<String>,
    constants: Vec<u8>,
    plans: Vec<Plan>,
    host: llvm::Module,
    llvm_time: Duration,
}

impl Program {
    /// Compiles a module of functions on tensors for a GPU, and for this machine what launches the kernels.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain, or LLVM cannot generate code.
    pub fn lower(module: &Module, codegen: &Codegen) -> Result<Self, Error> {
        let (mut copy, upstream) = cpu::prepare(module, pipeline::INLINE)?;
        let signatures = read_signatures(&copy).ok_or(Error::Lowering)?;
        cpu::run(&mut copy, &pipeline::to_kernels(codegen, upstream))?;
        let constants = constants(mlir::op_ref(copy.as_operation())).map_err(|report| {
            report.emit();
            Error::Lowering
        })?;
        let plans = plans(&copy, &signatures, &constants);
        cpu::rename(&copy);
        cpu::run(&mut copy, "convert-launch-to-calls")?;
        let (mut text, mut names, mut llvm_time) = (String::new(), Vec::new(), Duration::ZERO);
        let ops = mlir::ops(mlir::block_ref(copy.body()));
        if ops.iter().any(|op| mlir::is(*op, "gpu.module")) {
            let module = kernels(&copy)?;
            let functions = mlir::body(module, 0).map(mlir::ops).unwrap_or_default();
            let functions = functions.into_iter().filter(|op| mlir::is(*op, "gpu.func"));
            let name = |op| mlir::string_attr(op, "sym_name").map(str::to_string);
            names = functions.filter_map(name).collect();
            (text, llvm_time) = timed_ptx(&copy, codegen)?;
            mlir::erase(module);
        }
        let machine = Codegen::default().machine;
        cpu::run(&mut copy, &pipeline::host())?;
        let start = Instant::now();
        let mut code = llvm::Module::translate(mlir::op_ref(copy.as_operation()), &machine)?;
        code.link_builtins()?;
        if let Some(symbol) = code.undefined_symbol(&llvm::is_allowed_symbol) {
            return Err(Error::Llvm(format!("host code calls '{symbol}', which nothing defines")));
        }
        let entries = entries(&signatures);
        code.add_entries(&entries.iter().map(String::as_str).collect::<Vec<_>>())?;
        let (symbols, constants) = (header::function_names(&signatures), constants.bytes);
        code.add_device_interfaces(&signatures, &symbols, WORKSPACE, constants.len())?;
        code.optimize()?;
        llvm_time += start.elapsed();
        Ok(Self { signatures, ptx: text, kernels: names, constants, plans, host: code, llvm_time })
    }

    /// What each function takes and gives.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// How long LLVM took for kernels and host code, since their translation to LLVM IR.
    pub(super) fn llvm_time(&self) -> Duration {
        self.llvm_time
    }

    /// The kernels.
    pub fn ptx(&self) -> &str {
        &self.ptx
    }

    /// The names of the kernels, in the order of their numbers.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// The constants of the program, which host code expects in one buffer of the device.
    pub fn constants(&self) -> &[u8] {
        &self.constants
    }

    /// The host code and the constants as an object.
    ///
    /// # Errors
    /// LLVM cannot generate code.
    pub fn object(&self) -> Result<Vec<u8>, Error> {
        // No array of C is empty.
        let bytes = if self.constants.is_empty() { &[0][..] } else { &self.constants };
        self.host.define_bytes(&self.constants_symbol(), bytes);
        self.host.emit(llvm::Artifact::Object)
    }

    /// The symbol of the constants in an object: objects of several programs can be linked.
    pub(super) fn constants_symbol(&self) -> String {
        let first = self.signatures.first().map_or("", |it| &it.name);
        format!("{CONSTANTS_PREFIX}{first}")
    }

    /// The launches, copies and memory of each function.
    pub(super) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Loads host code into this process, and constants to a device that has the kernels.
    ///
    /// # Errors
    /// The device has not enough memory, or LLVM cannot load the code.
    pub fn load(&self, device: Arc<Mutex<dyn Device>>) -> Result<Compiled, Error> {
        let entries = entries(&self.signatures);
        let names: Vec<_> = entries.iter().map(String::as_str).collect();
        let start = Instant::now();
        let host = self.host.emit(llvm::Artifact::Object)?;
        let host = cpu::code::Loaded::new(&[host], &names, None, 1)?;
        let llvm_time = self.llvm_time + start.elapsed();
        let constants = {
            let mut device = locked(&device);
            let address = device.allocate(self.constants.len())?;
            device.write(address, &self.constants)?;
            (address, self.constants.len())
        };
        let signatures = self.signatures.clone();
        let loaded = Loaded { signatures: signatures.clone(), host, constants, device };
        // SAFETY: the entries of the functions were generated for these signatures.
        let compiled = unsafe { Compiled::new(signatures, Arc::new(loaded)) };
        Ok(compiled.with_llvm_time(llvm_time))
    }
}

/// The names of the functions in an object, then of those that compute the bytes of their workspaces.
pub(super) fn entries(signatures: &[Signature]) -> Vec<String> {
    let names = signatures.iter().map(|it| it.name.clone());
    let workspaces = signatures.iter().map(|it| format!("{}{WORKSPACE}", it.name));
    names.chain(workspaces).collect()
}

/// A device, also if a thread panicked while it had it: calls check the addresses that they get.
fn locked<'a>(device: &'a Mutex<dyn Device + 'static>) -> MutexGuard<'a, dyn Device + 'static> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program on a device.
struct Loaded {
    signatures: Vec<Signature>,
    host: cpu::code::Loaded,
    /// The address of the constants, and their bytes.
    constants: (u64, usize),
    device: Arc<Mutex<dyn Device>>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        locked(&self.device).free(self.constants.0);
    }
}

impl Code for Loaded {
    unsafe fn call(&self, function: usize, arguments: &mut [Descriptor]) -> Result<i32, CallError> {
        let mut device = locked(&self.device);
        let mut held = Vec::new();
        // SAFETY: as for this function.
        let status = unsafe { self.call_on(&mut *device, function, arguments, &mut held) };
        held.into_iter().for_each(|address| device.free(address));
        Ok(status?)
    }

    fn counts(&self) -> Vec<KernelCounts> {
        locked(&self.device).counts()
    }
}

impl Loaded {
    /// Calls a function on the device. `held` receives the buffers that are to be freed.
    ///
    /// # Safety
    /// As for [`Code::call`].
    unsafe fn call_on(
        &self,
        device: &mut dyn Device,
        function: usize,
        arguments: &mut [Descriptor],
        held: &mut Vec<u64>,
    ) -> Result<i32, DeviceError> {
        let signature = &self.signatures[function];
        let mut allocate = |device: &mut dyn Device, bytes: usize| {
            let address = device.allocate(bytes)?;
            held.push(address);
            Ok::<_, DeviceError>(address)
        };
        // The bytes on the host and the address on the device, of outputs.
        let mut outputs = Vec::new();
        let mut descriptors = Vec::new();
        for (argument, descriptor) in signature.arguments.iter().zip(arguments.iter()) {
            let extents = descriptor.shape().iter();
            let count: i64 = extents.product();
            let size = count as usize * argument.element.size();
            let address = allocate(device, size)?;
            let host = std::ptr::with_exposed_provenance_mut::<u8>(descriptor.words()[0] as usize);
            if argument.role != Role::Output {
                // SAFETY: the descriptor borrows a tensor of these extents.
                device.write(address, unsafe { std::slice::from_raw_parts(host, size) })?;
            }
            if argument.role != Role::Input {
                outputs.push((address, host, size));
            }
            let mut words = descriptor.words().to_vec();
            words[..2].fill(address as i64);
            descriptors.push(words);
        }
        let mut bytes = 0i64;
        let mut pointers: Vec<_> = descriptors.iter().map(|it| it.as_ptr()).collect();
        pointers.push((&raw mut bytes).cast_const());
        // SAFETY: the function reads descriptors and stores one word.
        unsafe { self.host.call_with(self.signatures.len() + function, &pointers) };
        let size = usize::try_from(bytes)
            .map_err(|_| DeviceError(format!("a workspace of {bytes} bytes is too large")))?;
        let array = |address: u64, size: usize| [address as i64, address as i64, 0, size as i64, 1];
        let workspace = array(allocate(device, size)?, size);
        let constants = array(self.constants.0, self.constants.1);
        let mut run = Run::new(device);
        let table = run.table();
        pointers.pop();
        pointers.extend([workspace.as_ptr(), constants.as_ptr(), (&raw const table).cast()]);
        // SAFETY: the addresses in the descriptors are the device's. Host code only passes them to the functions
        // of the table, which is alive as its run is.
        let status = unsafe { self.host.call_with(function, &pointers) };
        run.finish()?;
        if status == DEVICE_FAILED {
            return Err(DeviceError("a read failed".to_string()));
        }
        for (address, host, size) in outputs.into_iter().filter(|_| status == 0) {
            // SAFETY: the descriptor borrows the tensor exclusively.
            device.read(address, unsafe { std::slice::from_raw_parts_mut(host, size) })?;
        }
        Ok(status)
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.0)
    }
}

impl From<DeviceError> for CallError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.0)
    }
}
