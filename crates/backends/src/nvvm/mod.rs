//! Code for NVIDIA's GPUs: kernels become PTX, the assembly language that the driver of a GPU compiles.
//!
//! ```
//! use melior::ir::Module;
//! use tc_backends::{Codegen, nvvm::{machines, ptx}};
//!
//! let context = tc_dialects::new_context();
//! let module = Module::parse(&context, r#"
//!     gpu.module @kernels {
//!       gpu.func @negate(%a: memref<4xf32>, %b: memref<4xf32>) kernel {
//!         imap.generic (i) domain: i in [0, 3]
//!             ins(%a[i] : memref<4xf32>) outs(%b[i] : memref<4xf32>) {
//!         ^bb0(%x: f32):
//!           %y = arith.negf %x : f32
//!           imap.yield %y : f32
//!         }
//!         gpu.return
//!       }
//!     }"#).unwrap();
//! let [sm_80, ..] = &machines()[..] else { unreachable!() };
//! let text = ptx(&module, &Codegen::new(sm_80.clone()))?;
//! assert!(text.contains(".visible .entry negate"));
//! # Ok::<(), tc_backends::Error>(())
//! ```

mod backend;
mod cuda;
mod device;
mod emulated;
pub mod emulator;
mod machine;
mod manifest;
pub mod pipeline;
mod plan;
mod program;
mod ptxas;

pub use backend::BACKEND;
pub use cuda::Cuda;
pub use device::{Device, DeviceError, Launch};
pub use emulated::Emulator;
pub use machine::machines;
pub use program::Program;
pub use ptxas::{Stack, assemble, stacks};

use crate::{backend::Error, llvm};
use machine::least_blocks;
use melior::ir::{Module, Type, TypeLike, ValueLike, operation::OperationLike};
use std::{
    sync::Once,
    time::{Duration, Instant},
};
use tc_dialects::{
    mlir::{self, Op, Val},
    report::Report,
};
use tc_passes::{run_pipeline, target::Codegen};

/// The largest number of elements of a buffer that has indices of 32 bits: the number of threads is added to
/// an index before it is compared.
const MAX_SHORT: i64 = 1 << 30;

/// Functions that the driver defines.
const DRIVER_FUNCTIONS: [&str; 2] = ["vprintf", "__assertfail"];

/// Registers the pipelines `lower-to-nvvm` and `lower-to-kernels`, and the passes in it, with MLIR, once per process.
pub fn register() {
    static ONCE: Once = Once::new();
    tc_passes::register();
    ONCE.call_once(|| {
        pipeline::LOWER_TO_NVVM.register();
        pipeline::OUTLINE_KERNELS.register();
    });
}

/// The PTX of the kernels of a module, which has one `gpu.module` of functions with operations of
/// `imap` on buffers. The module stays as it is.
///
/// # Errors
/// A pass failed, which its diagnostics explain, or LLVM cannot generate code.
pub fn ptx(module: &Module, codegen: &Codegen) -> Result<String, Error> {
    Ok(timed_ptx(module, codegen)?.0)
}

/// The PTX of [`ptx`], and how long LLVM took for it.
fn timed_ptx(module: &Module, codegen: &Codegen) -> Result<(String, Duration), Error> {
    let mut copy =
        Module::from_operation((*module.as_operation()).clone()).ok_or(Error::Lowering)?;
    let bits = if has_short_indices(kernels(&copy)?) { 32 } else { 64 };
    run_pipeline(&mut copy, &pipeline::lower(bits, codegen)).map_err(|_| Error::Lowering)?;
    bound_registers(kernels(&copy)?);
    let start = Instant::now();
    let mut code = llvm::Module::translate(kernels(&copy)?, &codegen.machine)?;
    code.link_builtins()?;
    code.optimize()?;
    let allowed = |name: &str| DRIVER_FUNCTIONS.contains(&name);
    if let Some(symbol) = code.undefined_symbol(&allowed) {
        return Err(Error::Llvm(format!("a kernel calls '{symbol}', which nothing defines")));
    }
    let bytes = code.emit(llvm::Artifact::Assembly)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), start.elapsed()))
}

/// Lets ptxas use so many registers that a multiprocessor still holds a quarter of the threads it can: without a bound,
/// it spills registers to fit more.
fn bound_registers(kernels: Op) {
    let blocks = format!("{} : i32", least_blocks(pipeline::BLOCK));
    let blocks = mlir::parse_attribute(mlir::context_of(kernels), &blocks);
    let functions = mlir::body(kernels, 0).map(mlir::ops).unwrap_or_default().into_iter();
    for function in functions.filter(|op| op.attribute("nvvm.kernel").is_ok()) {
        mlir::set_attribute(function, "nvvm.minctasm", blocks);
    }
}

/// The `gpu.module` of a module.
fn kernels<'c>(module: &Module<'c>) -> Result<Op<'c>, Error> {
    let ops = mlir::ops(mlir::block_ref(module.body())).into_iter();
    let found: Vec<_> = ops.filter(|op| mlir::is(*op, "gpu.module")).collect();
    let [kernels] = found[..] else {
        let count = found.len();
        let message = format!("expected one 'gpu.module' of kernels, found {count}");
        Report::op_error(mlir::op_ref(module.as_operation()), message).emit();
        return Err(Error::Lowering);
    };
    Ok(kernels)
}

/// Whether 32 bits are enough for an index: they reach every element of the buffers of all kernels, no
/// buffer holds indices, which have 64 bits in memory, and none is an argument.
fn has_short_indices(kernels: Op) -> bool {
    let is_short = |ty: Type| {
        let mut extents = mlir::shape(ty).into_iter();
        let count = extents.try_fold(1i64, |count, extent| count.checked_mul(extent?));
        !mlir::is_memref(ty)
            || !mlir::element_type(ty).is_index() && count.is_some_and(|it| it <= MAX_SHORT)
    };
    let mut are_short = true;
    mlir::walk(kernels, &mut |op| {
        if let Some(block) = mlir::body(op, 0).filter(|_| mlir::is(op, "gpu.func")) {
            are_short &= mlir::arguments(block).into_iter().all(|it| is_short(it.r#type()));
        }
        // Buffers of open sizes, and indices of the host.
        let is_argument =
            |value: &Val| mlir::argument_parent(*value).is_some_and(|op| mlir::is(op, "gpu.func"));
        are_short &= match mlir::name(op) {
            "memref.reinterpret_cast" => is_short(mlir::result(op, 0).r#type()),
            "arith.index_cast" => !is_argument(&mlir::operand(op, 0)),
            _ => true,
        };
    });
    are_short
}
