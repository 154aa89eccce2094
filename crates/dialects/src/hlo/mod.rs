//! HLO, the language of XLA: modules as text and in memory.
//!
//! A [`Module`] is a list of [`Computation`]s, a computation a list of [`Instruction`]s; each has
//! an [`Opcode`], operands, a [`Shape`], and [`Attribute`]s with typed [`Value`]s. [`syntax`]
//! reads and writes the text that XLA and JAX print; [`verify`] checks what the operation
//! semantics demand of each instruction; [`dialect`] is the same as MLIR, and the only part that needs it.
//!
//! ```
//! use tc_dialects::hlo::{self, Opcode, syntax};
//! use tc_dialects::text::SourceFile;
//!
//! let source = SourceFile::new("dot.hlo", "
//!     HloModule example
//!     ENTRY main {
//!       x = f32[2,3] parameter(0)
//!       y = f32[3,4] parameter(1)
//!       ROOT dot = f32[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
//!     }");
//! let (module, errors) = syntax::parse_module(&source);
//! assert!(errors.is_empty());
//! let module = module.expect("there is one without errors");
//! assert!(hlo::verify(&module).is_empty());
//!
//! let root = module.entry().root();
//! assert_eq!(root.opcode, Opcode::Dot);
//! assert_eq!(root.dot_dims().lhs_contracting, [1]);
//! for operand in module.entry().operands(root) {
//!     assert_eq!(operand.shape.as_array().map(|array| array.rank()), Some(2));
//! }
//! ```
//!
//! To read a file, verification included, call [`read`].

mod alias;
mod attributes;
pub mod dialect;
pub mod indexing;
mod literal;
mod module;
mod opcode;
mod shape;
pub mod syntax;
#[cfg(test)]
mod tests;
mod verify;

pub use alias::aliased_arrays;
pub use attributes::{
    ComparisonType, ConvolutionDims, Direction, DotDims, FftType, FusionKind, GatherDims,
    PaddingDim, RandomAlgorithm, RandomDistribution, ReplicaGroups, ScatterDims, SliceDim,
    Transposition, Value, WindowDim,
};
pub use literal::{ArrayLiteral, Literal};
pub use module::{
    Computation, ComputationId, FileLocation, Header, Instruction, InstructionId, Module, Payload,
    ProgramShape, StackFrame, StackFrames,
};
pub use opcode::{Arity, Attribute, COMMON, Opcode, ValueKind};
pub use shape::{ArrayShape, Layout, Shape, WithoutLayout};
pub use verify::verify;

use crate::text::{Diagnostic, SourceFile};

/// The `frontend_attributes` of a reduction whose computation is applied in the order of the elements, because it
/// need not be associative.
pub const ORDERED: &str = "{order=\"ascending\"}";

/// Parses and verifies the bytes of a file. There is a module unless there are diagnostics, which
/// the source file that comes back locates.
pub fn read(name: &str, bytes: Vec<u8>) -> (SourceFile, Option<Module>, Vec<Diagnostic>) {
    let (source, module, mut diagnostics) = syntax::parse_bytes(name, bytes);
    let module = module.filter(|module| {
        diagnostics = verify(module);
        diagnostics.is_empty()
    });
    (source, module, diagnostics)
}
