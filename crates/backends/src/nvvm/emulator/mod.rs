//! An emulator of PTX: the oracle for GPU code on machines without a GPU.
//!
//! It takes the PTX text that LLVM writes and executes it as the PTX ISA manual says, for `sm_80`
//! to `sm_100a`: a grid of blocks, warps of 32 lanes in lockstep with divergence, shared, local,
//! constant and parameter memory, barriers, shuffles, atomics, asynchronous copies, and matrix
//! instructions. It is stricter than a device. These are errors that name the kernel, the line of
//! the PTX and the thread:
//! - accesses out of bounds, misaligned, or to bytes that nothing wrote;
//! - races, by happens-before and not by the order in which this run happened to execute;
//! - reads of the destination of an asynchronous copy before the wait that guarantees it;
//! - barriers and `.aligned` instructions in divergent code, masks that name absent lanes, deadlock;
//! - an instruction, modifier, directive or special register that it does not know.
//!
//! It counts what performance depends on: see [`Counts`].
//!
//! ```
//! use tc_backends::nvvm::emulator::{Launch, Memory, Module, run};
//!
//! let module = Module::parse(
//!     ".version 7.0
//!      .target sm_80
//!      .address_size 64
//!      .visible .entry twice(.param .u64 x) {
//!          .reg .b32 %r<3>;
//!          .reg .b64 %rd<4>;
//!          ld.param.b64 %rd1, [x];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.s64 %rd3, %rd1, %rd2;
//!          ld.global.b32 %r2, [%rd3];
//!          add.s32 %r2, %r2, %r2;
//!          st.global.b32 [%rd3], %r2;
//!          ret;
//!      }",
//! )?;
//! let mut memory = Memory::new();
//! let x = memory.create(&[1, 0, 0, 0, 2, 0, 0, 0], 16);
//! let launch = Launch::new([1, 1, 1], [2, 1, 1], vec![x.into()]);
//! let counts = run(&module, "twice", &launch, &mut memory)?;
//! assert_eq!(memory.read(x), [2, 0, 0, 0, 4, 0, 0, 0]);
//! assert_eq!(counts.global_loads.sectors, 1);
//! # Ok::<(), tc_backends::nvvm::emulator::Error>(())
//! ```
//!
//! # Layout
//!
//! [`lexer`], [`parser`] and [`syntax`] take the text apart; [`decode`] resolves names and expands
//! calls to the form of [`module`] and [`ops`]; `cfg` finds where lanes meet; [`machine`] runs blocks, [`warp`]
//! holds a warp and its divergence, [`block`] barriers, [`exec`] the instructions, [`memory`] and
//! [`races`] what memory holds and who touched it, [`softfloat`] exact arithmetic.
//!
//! # Not there
//!
//! `tcgen05`, MN-major operands of `wgmma`, im2col and reductions of tensor maps, clusters of more than one block, textures, `.b128` registers,
//! calls through registers. `vprintf` prints nothing.
#![allow(rustdoc::private_intra_doc_links)]

mod block;
mod cfg;
mod counts;
mod decode;
mod error;
mod exec;
mod launch;
mod lexer;
mod machine;
mod mbarrier;
mod memory;
mod module;
mod ops;
mod parser;
mod races;
mod softfloat;
mod syntax;
mod tensor_map;
mod warp;

pub use counts::{Counts, Executed, Requests, SharedRequests};
pub use error::{Access, Error, Fault, FaultKind, Place, Position, ThreadId};
pub use launch::{Argument, BlockOrder, Launch, Options};
pub use machine::run;
pub use memory::{Buffer, Memory};
pub use module::Module;
pub use tensor_map::{Swizzle, TensorMap};
