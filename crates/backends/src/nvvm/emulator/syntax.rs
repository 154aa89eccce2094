//! The tree that the parser builds: the text's structure, nothing resolved.

use super::error::Position;

/// A module.
#[derive(Debug, Default)]
pub(super) struct Source<'a> {
    /// `.target`, without `debug` and the like.
    pub target: &'a str,
    pub variables: Vec<Variable<'a>>,
    pub functions: Vec<Function<'a>>,
}

/// A state space (PTX ISA, "State Spaces").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Space {
    Generic,
    Global,
    Shared,
    /// `.shared::cluster`; shared memory of any block of the cluster.
    Cluster,
    Local,
    Constant,
    Parameter,
}

/// A variable of a module or a body, or a parameter.
#[derive(Debug, Clone)]
pub(super) struct Variable<'a> {
    pub space: Space,
    pub name: &'a str,
    pub align: usize,
    /// In bytes; 0 for `extern .. []`.
    pub size: usize,
    /// The initial bytes; missing ones are zero.
    pub initial: Option<Vec<u8>>,
    pub external: bool,
    pub at: Position,
}

/// A kernel or a device function.
#[derive(Debug)]
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub kernel: bool,
    pub results: Vec<Variable<'a>>,
    pub parameters: Vec<Variable<'a>>,
    /// `.maxntid`: at most as many threads.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: exactly this block.
    pub required_threads: Option<[u32; 3]>,
    /// `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
    /// Nothing for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    pub at: Position,
}

/// A statement of a body. Nested scopes are flat: an opening and a closing statement.
#[derive(Debug)]
pub(super) enum Statement<'a> {
    Open,
    Close,
    Label {
        name: &'a str,
        at: Position,
    },
    Registers {
        bits: u32,
        names: Vec<Names<'a>>,
        at: Position,
    },
    Variable(Variable<'a>),
    /// `label: .branchtargets a, b;`
    Targets {
        name: &'a str,
        labels: Vec<&'a str>,
        at: Position,
    },
    Instruction(Instruction<'a>),
}

/// One declarator of `.reg`: `%r<5>` or a single name.
#[derive(Debug)]
pub(super) struct Names<'a> {
    pub name: &'a str,
    pub count: Option<u32>,
}

/// An instruction as it is written.
#[derive(Debug)]
pub(super) struct Instruction<'a> {
    /// The predicate, and whether it is negated.
    pub guard: Option<(&'a str, bool)>,
    pub opcode: &'a str,
    pub operands: Vec<Operand<'a>>,
    pub at: Position,
}

/// An operand as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand<'a> {
    /// A register, special register, symbol, label or function, and what is added to it.
    Name(&'a str, i64),
    /// `!%p`.
    Not(&'a str),
    /// An integer in two's complement.
    Integer(i64),
    /// The bits of `0f..`.
    Single(u32),
    /// The bits of `0d..`.
    Double(u64),
    /// `_`.
    Sink,
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `[base + offset]`; TMA adds `, {coordinates}`.
    Address { base: Box<Operand<'a>>, offset: i64, coordinates: Vec<Operand<'a>> },
    /// `a|b`.
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `(a, b)` of a call.
    List(Vec<Operand<'a>>),
}
