//! Registration with MLIR's pass registry, and the functions that it calls.

use super::{Options, PassInfo, PassOption, PassRun, PipelineInfo};
use crate::{
    ffi::{Receiver, guarded, panic_text, string_ref, text},
    mlir::{self, Op},
};
use melior::ir::OperationRef;
use mlir_sys::{MlirDialectRegistry, MlirOperation, MlirStringRef};
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

#[repr(C)]
struct TcPassOption {
    name: MlirStringRef,
    description: MlirStringRef,
    default: MlirStringRef,
}

/// `TcPass` of the bridge, followed by what only Rust reads.
#[repr(C)]
struct TcPass {
    argument: MlirStringRef,
    description: MlirStringRef,
    anchor: MlirStringRef,
    options: *const TcPassOption,
    num_options: usize,
    run: extern "C" fn(*const TcPass, MlirOperation, *const MlirStringRef) -> bool,
    dependent_dialects: extern "C" fn(*const TcPass, MlirDialectRegistry),
    info: &'static PassInfo,
}

/// `TcPipeline` of the bridge, followed by a field that only Rust reads.
#[repr(C)]
struct TcPipeline {
    argument: MlirStringRef,
    description: MlirStringRef,
    options: *const TcPassOption,
    num_options: usize,
    build: extern "C" fn(
        *const TcPipeline,
        *const MlirStringRef,
        *mut c_void,
        accept: Receiver,
        reject: Receiver,
    ),
    info: &'static PipelineInfo,
}

unsafe extern "C" {
    fn tcInsertDialect(registry: MlirDialectRegistry, name: MlirStringRef);
    fn tcRegisterPass(pass: *const c_void);
    fn tcRegisterNvvmPasses();
    fn tcRegisterPipeline(
        argument: MlirStringRef,
        description: MlirStringRef,
        pipeline: MlirStringRef,
    );
    fn tcRegisterPipelineBuilder(pipeline: *const c_void);
}

/// Options for MLIR's pass registry, which keeps them until the process ends.
fn leak_options(options: &[PassOption]) -> &'static [TcPassOption] {
    let options: Vec<_> = options
        .iter()
        .map(|option| TcPassOption {
            name: string_ref(option.name),
            description: string_ref(option.description),
            default: string_ref(option.default),
        })
        .collect();
    options.leak()
}

/// The values that C++ passes for options.
///
/// # Safety
/// There must be one value per option.
unsafe fn option_values(options: &[PassOption], values: *const MlirStringRef) -> Vec<String> {
    // SAFETY: as for this function.
    (0..options.len()).map(|index| unsafe { text(*values.add(index)) }.to_string()).collect()
}

/// Registers a pass with MLIR's pass registry. Called once per pass and process.
pub(super) fn register_pass(info: &'static PassInfo) {
    let options = leak_options(info.options);
    let pass: &'static TcPass = Box::leak(Box::new(TcPass {
        argument: string_ref(info.argument),
        description: string_ref(info.summary),
        anchor: string_ref(info.anchor),
        options: options.as_ptr(),
        num_options: options.len(),
        run: run_pass,
        dependent_dialects,
        info,
    }));
    // SAFETY: `pass` and all it points at are 'static.
    unsafe { tcRegisterPass(std::ptr::from_ref(pass).cast()) }
}

/// Registers the pass `convert-kernels-to-nvvm` of the bridge. Called once per process.
pub fn register_nvvm_passes() {
    // SAFETY: the function only fills MLIR's pass registry.
    unsafe { tcRegisterNvvmPasses() }
}

/// Registers `--argument` as another name of a textual pass pipeline.
pub fn register_pipeline(argument: &str, description: &str, pipeline: &str) {
    // MLIR keeps references to the first two: they are leaked, once per pipeline.
    let argument: &'static str = argument.to_string().leak();
    let description: &'static str = description.to_string().leak();
    // SAFETY: the strings are 'static, and the pipeline is copied.
    unsafe {
        tcRegisterPipeline(string_ref(argument), string_ref(description), string_ref(pipeline))
    }
}

/// Registers a pipeline with options with MLIR's pass registry. Called once per pipeline and process.
pub(super) fn register_pipeline_builder(info: &'static PipelineInfo) {
    let options = leak_options(info.options);
    let pipeline: &'static TcPipeline = Box::leak(Box::new(TcPipeline {
        argument: string_ref(info.argument),
        description: string_ref(info.summary),
        options: options.as_ptr(),
        num_options: options.len(),
        build: build_pipeline,
        info,
    }));
    // SAFETY: `pipeline` and all it points at are 'static.
    unsafe { tcRegisterPipelineBuilder(std::ptr::from_ref(pipeline).cast()) }
}

extern "C" fn build_pipeline(
    pipeline: *const TcPipeline,
    values: *const MlirStringRef,
    state: *mut c_void,
    accept: Receiver,
    reject: Receiver,
) {
    let build = || {
        // SAFETY: C++ passes back the 'static pipeline it was given, and one value per option.
        let (info, values) = unsafe {
            let info = (*pipeline).info;
            (info, option_values(info.options, values))
        };
        (info.build)(&Options::new(info.options, values))
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(Ok(passes)) => accept(state, string_ref(&passes)),
        Ok(Err(reason)) => reject(state, string_ref(&reason)),
        Err(payload) => {
            let reason = format!("internal error: {} (please report it)", panic_text(&*payload));
            reject(state, string_ref(&reason));
        }
    }
}

extern "C" fn dependent_dialects(pass: *const TcPass, registry: MlirDialectRegistry) {
    // SAFETY: C++ passes back the 'static pass it was given.
    for name in unsafe { &*pass }.info.dependent_dialects {
        // SAFETY: the registry is alive during the call.
        unsafe { tcInsertDialect(registry, string_ref(name)) }
    }
}

extern "C" fn run_pass(
    pass: *const TcPass,
    op: MlirOperation,
    values: *const MlirStringRef,
) -> bool {
    guarded(op, || {
        // SAFETY: as in `dependent_dialects`; there is one value per option.
        let (info, values) = unsafe {
            let info = (*pass).info;
            (info, option_values(info.options, values))
        };
        // SAFETY: the operation and its context outlive the pass run.
        let (op, context) = unsafe {
            let op: Op = OperationRef::from_raw(op);
            (op, mlir::context_of(op))
        };
        let run = PassRun { op, context, options: Options::new(info.options, values) };
        (info.run)(&run).is_ok()
    })
}
