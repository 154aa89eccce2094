//! The decoded form of a module: registers, labels and symbols are numbers.
//!
//! A kernel is one flat list of instructions; calls are expanded. Every source operand is a
//! register: constants, addresses of symbols and special registers are registers that a warp gets
//! when it starts. A register is 32 lanes of 64 bits that hold the value zero-extended; a predicate
//! is 0 or 1.

use smallvec::SmallVec;

use super::error::{Error, Position};

pub(super) use super::ops::*;

/// The number of a register of a kernel.
pub(super) type Reg = u32;

/// The register of `_` as a destination.
pub(super) const SINK: Reg = Reg::MAX;

/// The pc that stands for the end of the kernel.
pub(super) const END: u32 = u32::MAX;

/// Several registers.
pub(super) type Regs = SmallVec<[Reg; 4]>;

/// A parsed and decoded PTX module.
#[derive(Debug)]
pub struct Module {
    pub(super) kernels: Vec<Kernel>,
    pub(super) globals: Vec<Global>,
    pub(super) constants: Vec<u8>,
    pub(super) target: String,
}

impl Module {
    /// Parses PTX text and decodes its kernels.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] for text outside the grammar, [`Error::Unsupported`] for an instruction,
    /// modifier, directive or special register that the emulator does not have.
    pub fn parse(text: &str) -> Result<Module, Error> {
        super::decode::module(&super::parser::parse(text)?)
    }

    /// The names of the kernels, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// `.target` of the module, for example `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Sizes of the parameters of a kernel in bytes, or nothing if there is no such kernel.
    pub fn parameter_sizes(&self, entry: &str) -> Option<Vec<usize>> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name == entry)?;
        Some(kernel.parameters.iter().map(|parameter| parameter.size).collect())
    }

    /// The threads of a block and the bytes of static shared memory of a kernel; nothing if there is no such
    /// kernel or its block is not fixed.
    pub fn block(&self, entry: &str) -> Option<(u32, usize)> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name == entry)?;
        let threads = kernel.required_threads.or(kernel.max_threads)?;
        Some((threads.iter().product(), kernel.shared_bytes))
    }
}

/// A `.global` variable of a module.
#[derive(Debug)]
pub(super) struct Global {
    pub size: usize,
    pub align: usize,
    pub initial: Vec<u8>,
}

/// A parameter of a kernel.
#[derive(Debug)]
pub(super) struct Parameter {
    pub offset: usize,
    pub size: usize,
}

/// A decoded kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub parameter_bytes: usize,
    pub instructions: Vec<Instruction>,
    /// How many registers a warp has.
    pub registers: usize,
    pub constants: Vec<(Reg, Constant)>,
    pub specials: Vec<(Reg, Special)>,
    /// Bytes of static shared memory; dynamic memory starts behind them.
    pub shared_bytes: usize,
    /// The alignment of dynamic shared memory.
    pub dynamic_align: usize,
    pub local_bytes: usize,
    pub max_threads: Option<[u32; 3]>,
    pub required_threads: Option<[u32; 3]>,
    pub cluster: Option<[u32; 3]>,
}

/// A value that is known when a kernel starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Bits(u64),
    /// The address of a module's global variable, and what is added.
    Global(usize, i64),
    /// The address of dynamic shared memory, and what is added.
    Dynamic(i64),
}

/// Special registers (PTX ISA, "Special Registers").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Special {
    Thread(usize),
    BlockSize(usize),
    Block(usize),
    GridSize(usize),
    Lane,
    Warp,
    NumWarps,
    LaneMask(LaneMask),
    DynamicShared,
    TotalShared,
    Zero,
    One,
}

/// `%lanemask_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LaneMask {
    Eq,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A decoded instruction.
#[derive(Debug)]
pub(super) struct Instruction {
    pub op: Op,
    /// The predicate, and the value with which the instruction runs.
    pub guard: Option<(Reg, bool)>,
    pub together: Together,
    pub at: Position,
    /// The key under which it is counted.
    pub kind: String,
}

/// Which lanes must execute an instruction together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Together {
    Free,
    /// The lanes of a member mask (`.sync`).
    Members(Reg),
    /// All lanes of the warp (`.aligned`); the name is for the message.
    Warp(&'static str),
}
