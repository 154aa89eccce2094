//! Loading of compiled code into this process, and calls of it.

use crate::{
    llvm::{Error, c_string, check, initialize},
    runtime::Tensor,
};
use llvm_sys::{
    core::LLVMCreateMemoryBufferWithMemoryRangeCopy,
    orc2::{
        LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess, LLVMOrcJITDylibAddGenerator, lljit::*,
    },
    support::{LLVMLoadLibraryPermanently, LLVMSearchForAddressOfSymbol},
};
use std::{
    ffi::{CStr, c_int, c_void},
    ptr,
};

use super::interface::ENTRY_PREFIX;

/// The OpenMP runtime library, loaded if a program uses more than one thread.
const OPENMP: &CStr = c"libomp.so.5";

/// A tensor as compiled code sees it: MLIR's memref descriptor, which is two pointers,
/// an offset, the extents and the strides.
pub(super) struct Descriptor<'a> {
    words: Vec<i64>,
    _tensor: std::marker::PhantomData<&'a Tensor>,
}

impl<'a> Descriptor<'a> {
    /// Of a tensor that is only read.
    pub fn read(tensor: &'a Tensor) -> Self {
        Self::new(tensor.bytes().as_ptr(), tensor.shape())
    }

    /// Of a tensor that is written.
    pub fn write(tensor: &'a mut Tensor) -> Self {
        let pointer = tensor.bytes_mut().as_mut_ptr();
        Self::new(pointer, tensor.shape())
    }

    fn new(pointer: *const u8, shape: &[usize]) -> Self {
        let address = pointer.expose_provenance() as i64;
        let mut words = vec![address, address, 0];
        words.extend(shape.iter().map(|extent| *extent as i64));
        let strides = words.len();
        words.resize(strides + shape.len(), 1);
        let mut stride: i64 = 1;
        for (dim, extent) in shape.iter().enumerate().rev() {
            words[strides + dim] = stride;
            stride = stride.saturating_mul(*extent as i64);
        }
        Self { words, _tensor: std::marker::PhantomData }
    }
}

type Entry = unsafe extern "C" fn(*const *const i64) -> i32;

/// Code loaded into this process.
pub(super) struct Code {
    jit: LLVMOrcLLJITRef,
    entries: Vec<Entry>,
    set_num_threads: Option<(unsafe extern "C" fn(c_int), c_int)>,
}

// SAFETY: the code is not changed once it is loaded, and it has no state of its own.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Loads an object and finds the entries of its functions.
    pub fn load(object: &[u8], names: &[&str], threads: usize) -> Result<Self, Error> {
        initialize();
        let set_num_threads = open_mp(threads)?;
        // SAFETY: each object of the C API is used as its contract says: builder,
        // generator and buffer are consumed by the calls that take them.
        unsafe {
            let mut jit = ptr::null_mut();
            check(LLVMOrcCreateLLJIT(&mut jit, LLVMOrcCreateLLJITBuilder()))?;
            let mut code = Self { jit, entries: Vec::new(), set_num_threads };
            let library = LLVMOrcLLJITGetMainJITDylib(jit);
            let mut generator = ptr::null_mut();
            check(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                &mut generator,
                LLVMOrcLLJITGetGlobalPrefix(jit),
                None,
                ptr::null_mut(),
            ))?;
            LLVMOrcJITDylibAddGenerator(library, generator);
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"object".as_ptr(),
            );
            check(LLVMOrcLLJITAddObjectFile(jit, library, buffer))?;
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

    /// Calls function `number` with descriptors of its arguments, which must be of the
    /// types and ranks of its signature.
    pub fn call(&self, number: usize, descriptors: &mut [Descriptor]) -> i32 {
        let pointers: Vec<_> = descriptors.iter().map(|it| it.words.as_ptr()).collect();
        // SAFETY: the descriptors borrow the tensors, exclusively where they are written;
        // the caller has checked them against the signature, on which the code relies.
        unsafe {
            if let Some((set, threads)) = self.set_num_threads {
                set(threads);
            }
            (self.entries[number])(pointers.as_ptr())
        }
    }
}

impl Drop for Code {
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
