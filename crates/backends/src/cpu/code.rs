//! Loading of compiled code into this process, and calls of it.

use super::{
    perf_map,
    profile::{self, Measurement},
};
use crate::{
    backend::{CallError, Code, Descriptor, Error, Profile},
    llvm::{c_string, check, initialize},
};
use llvm_sys::{
    core::LLVMCreateMemoryBufferWithMemoryRangeCopy,
    orc2::{
        LLVMJITEvaluatedSymbol, LLVMJITSymbolFlags, LLVMOrcAbsoluteSymbols, LLVMOrcCSymbolMapPair,
        LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess, LLVMOrcJITDylibAddGenerator,
        LLVMOrcJITDylibDefine, lljit::*,
    },
    support::{LLVMLoadLibraryPermanently, LLVMSearchForAddressOfSymbol},
};
use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
};
use tc_passes::transform::time_kernels::Kernel;

use super::interface::ENTRY_PREFIX;

/// The OpenMP runtime library, loaded if a program uses more than one thread.
const OPENMP: &CStr = c"libomp.so.5";

type Entry = unsafe extern "C" fn(*const *const i64) -> i32;

/// Code loaded into this process.
pub(crate) struct Loaded {
    jit: LLVMOrcLLJITRef,
    entries: Vec<Entry>,
    set_num_threads: Option<(unsafe extern "C" fn(c_int), c_int)>,
    /// The times of the kernels, if the code measures them.
    measurement: Option<Measurement>,
}

// SAFETY: the code is not changed once it is loaded, and it has no state of its own.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Loaded {
    /// Loads the objects of a program and finds the entries of its functions.
    pub fn new(
        objects: &[Vec<u8>],
        names: &[&str],
        kernels: Option<&[Kernel]>,
        threads: usize,
    ) -> Result<Self, Error> {
        initialize();
        let set_num_threads = open_mp(threads)?;
        // SAFETY: each object of the C API is used as its contract says: builder,
        // generator and buffer are consumed by the calls that take them.
        unsafe {
            let mut jit = ptr::null_mut();
            check(LLVMOrcCreateLLJIT(&mut jit, LLVMOrcCreateLLJITBuilder()))?;
            let measurement = kernels.map(Measurement::new);
            let mut code = Self { jit, entries: Vec::new(), set_num_threads, measurement };
            let library = LLVMOrcLLJITGetMainJITDylib(jit);
            let mut generator = ptr::null_mut();
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut generator,
                LLVMOrcLLJITGetGlobalPrefix(jit),
                None,
                ptr::null_mut(),
            ))?;
            LLVMOrcJITDylibAddGenerator(library, generator);
            if code.measurement.is_some() {
                let mut clock = profile::clock().map(|(name, address)| LLVMOrcCSymbolMapPair {
                    Name: LLVMOrcLLJITMangleAndIntern(jit, c_string(name).as_ptr()),
                    Sym: LLVMJITEvaluatedSymbol {
                        Address: address as u64,
                        Flags: LLVMJITSymbolFlags { GenericFlags: 0, TargetFlags: 0 },
                    },
                });
                let symbols = LLVMOrcAbsoluteSymbols(clock.as_mut_ptr(), clock.len());
                check(LLVMOrcJITDylibDefine(library, symbols))?;
            }
            for object in objects {
                let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                    object.as_ptr().cast(),
                    object.len(),
                    c"object".as_ptr(),
                );
                check(LLVMOrcLLJITAddObjectFile(jit, library, buffer))?;
            }
            for name in names {
                let entry = c_string(&format!("{ENTRY_PREFIX}{name}"));
                let mut address = 0;
                check(LLVMOrcLLJITLookup(jit, &mut address, entry.as_ptr()))?;
                // The entry was generated with this type by `Module::add_entries`.
                let address = ptr::with_exposed_provenance::<()>(address as usize);
                code.entries.push(std::mem::transmute::<*const (), Entry>(address));
            }
            Ok(code)
        }
    }

    /// Writes the names of the functions for `perf`. The objects are those that are loaded.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_perf_map(&self, objects: &[Vec<u8>]) -> Result<(), Error> {
        let address = |name: &str| {
            let mut address = 0;
            // SAFETY: the code is loaded, and the name lives across the call.
            let found = unsafe {
                check(LLVMOrcLLJITLookup(self.jit, &mut address, c_string(name).as_ptr()))
            };
            found.is_ok().then_some(address)
        };
        let lines: String = objects.iter().map(|it| perf_map::lines(it, &address)).collect();
        perf_map::write(&lines)
    }

    /// Calls the function of a number with a pointer per argument.
    ///
    /// # Safety
    /// There is a pointer for each argument of the function, of the argument's type. The function may access the
    /// memory that descriptors describe.
    pub unsafe fn call_with(&self, function: usize, pointers: &[*const i64]) -> i32 {
        // SAFETY: as for this function.
        unsafe {
            if let Some((set, threads)) = self.set_num_threads {
                set(threads);
            }
            let call = || (self.entries[function])(pointers.as_ptr());
            match &self.measurement {
                Some(measurement) => measurement.measure(call),
                None => call(),
            }
        }
    }
}

impl Code for Loaded {
    unsafe fn call(&self, function: usize, arguments: &mut [Descriptor]) -> Result<i32, CallError> {
        let pointers: Vec<_> = arguments.iter().map(|it| it.words().as_ptr()).collect();
        // SAFETY: the descriptors borrow the tensors, exclusively if they are written;
        // the caller has checked them against the signature, on which the code relies.
        Ok(unsafe { self.call_with(function, &pointers) })
    }

    fn profile(&self) -> Option<Profile> {
        self.measurement.as_ref().map(Measurement::profile)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: owned; an error while unloading leaves nothing to be done.
        unsafe {
            let _ = check(LLVMOrcDisposeLLJIT(self.jit));
        }
    }
}

/// Loads the OpenMP runtime if there is to be more than one thread.
fn open_mp(threads: usize) -> Result<Option<(unsafe extern "C" fn(c_int), c_int)>, Error> {
    if threads <= 1 {
        return Ok(None);
    }
    let library = OPENMP.to_str().unwrap_or_default();
    // SAFETY: the function has this type in every OpenMP runtime.
    unsafe {
        let loaded = LLVMLoadLibraryPermanently(OPENMP.as_ptr()) == 0;
        let address = LLVMSearchForAddressOfSymbol(c"omp_set_num_threads".as_ptr());
        if !loaded || address.is_null() {
            return Err(Error::OpenMp { threads, library });
        }
        let set = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(address);
        Ok(Some((set, c_int::try_from(threads).unwrap_or(c_int::MAX))))
    }
}
