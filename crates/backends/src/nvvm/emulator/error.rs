//! Errors of the emulator: text that it cannot take, launches that make no sense, and faults of a run.

use std::fmt;

use thiserror::Error;

/// A place in the PTX text, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Everything that can go wrong.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    /// The text does not follow the grammar.
    #[error("{at}: {message}")]
    Syntax {
        /// Where.
        at: Position,
        /// What was expected, and what was found.
        message: String,
    },
    /// An instruction, modifier, directive or special register that the emulator does not have.
    #[error("{at}: unsupported {what}")]
    Unsupported {
        /// Where.
        at: Position,
        /// Its kind and its name.
        what: String,
    },
    /// The launch does not fit the kernel.
    #[error("launch: {0}")]
    Launch(String),
    /// The kernel did something wrong while it ran.
    #[error("{0}")]
    Fault(Box<Fault>),
}

/// A thread of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId {
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([a, b, c], [x, y, z]) = (self.block, self.thread);
        write!(f, "thread ({x}, {y}, {z}) of block ({a}, {b}, {c})")
    }
}

/// What a kernel did wrong, and where.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("kernel '{kernel}', line {at}, {thread}: {kind}")]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// The instruction.
    pub at: Position,
    /// The thread; for faults of a whole warp or block its first thread.
    pub thread: ThreadId,
    /// What happened.
    pub kind: FaultKind,
}

/// A state space in which an access went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A global buffer, by its handle's number.
    Buffer(usize),
    /// Global memory, outside every buffer.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Local memory of the thread.
    Local,
    /// Constant memory of the module.
    Constant,
    /// The kernel's parameters.
    Parameter,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Buffer(n) => write!(f, "buffer {n}"),
            Place::Global => f.write_str("global memory"),
            Place::Shared => f.write_str("shared memory"),
            Place::Local => f.write_str("local memory"),
            Place::Constant => f.write_str("constant memory"),
            Place::Parameter => f.write_str("parameters"),
        }
    }
}

/// One of the two accesses of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The instruction.
    pub at: Position,
    /// The thread.
    pub thread: ThreadId,
    /// Whether it wrote.
    pub write: bool,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.write { "write" } else { "read" };
        write!(f, "{what} at line {} by {}", self.at, self.thread)
    }
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FaultKind {
    /// An access outside its object.
    #[error(
        "access of {bytes} bytes at offset {offset} of {place} ({length} bytes) is out of bounds"
    )]
    OutOfBounds {
        /// The object.
        place: Place,
        /// The offset from its start (for global memory outside every buffer: the address).
        offset: i64,
        /// The size of the access.
        bytes: usize,
        /// The size of the object.
        length: usize,
    },
    /// An access that is not aligned to its size.
    #[error("access of {bytes} bytes at offset {offset} of {place} is misaligned")]
    Misaligned {
        /// The object.
        place: Place,
        /// The offset from its start.
        offset: i64,
        /// The size of the access.
        bytes: usize,
    },
    /// A read of bytes that nothing wrote.
    #[error("read of {bytes} bytes at offset {offset} of {place}, which nothing wrote")]
    Uninitialised {
        /// The object.
        place: Place,
        /// The offset from its start.
        offset: i64,
        /// The size of the access.
        bytes: usize,
    },
    /// A write to memory that cannot be written.
    #[error("write to {0}")]
    ReadOnly(Place),
    /// Two accesses to the same bytes, one of them a write, that nothing orders.
    #[error("race at offset {offset} of {place}: {first}; {second}")]
    Race {
        /// The object.
        place: Place,
        /// The offset from its start.
        offset: i64,
        /// The access that came first in this run.
        first: Access,
        /// The access that found it.
        second: Access,
    },
    /// `ld.global.nc` of bytes that the kernel wrote.
    #[error("ld.global.nc at offset {offset} of {place}, which the kernel wrote: {write}")]
    NonCoherent {
        /// The object.
        place: Place,
        /// The offset from its start.
        offset: i64,
        /// The write.
        write: Access,
    },
    /// An access to bytes that an asynchronous copy still writes.
    #[error("{access} before wait at offset {offset} of {place}: a copy is in flight, {copy}")]
    BeforeWait {
        /// `read` or `write`.
        access: &'static str,
        /// The object.
        place: Place,
        /// The offset from its start.
        offset: i64,
        /// The copy.
        copy: Access,
    },
    /// An `.aligned` instruction that not all threads of the warp execute.
    #[error("{what} in divergent code: lanes {active:#010x} of {warp:#010x} execute it")]
    Divergent {
        /// The instruction.
        what: &'static str,
        /// The lanes that execute it.
        active: u32,
        /// The lanes of the warp.
        warp: u32,
    },
    /// A `.sync` instruction whose mask names lanes that do not execute it.
    #[error("mask {mask:#010x} names lanes {missing:#010x}, which {why}")]
    MissingLanes {
        /// The member mask.
        mask: u32,
        /// The lanes that are missing.
        missing: u32,
        /// Where they are.
        why: String,
    },
    /// A `.sync` instruction by a lane that its mask does not name.
    #[error("mask {mask:#010x} does not name all lanes {active:#010x} that execute it")]
    UnnamedLanes {
        /// The member mask.
        mask: u32,
        /// The lanes that execute it.
        active: u32,
    },
    /// All threads wait.
    #[error("deadlock: {0}")]
    Deadlock(String),
    /// The limit on executed instructions is reached.
    #[error("more than {0} thread instructions")]
    Limit(u64),
    /// `trap`.
    #[error("trap")]
    Trap,
    /// `__assertfail`.
    #[error("assertion failed")]
    Assertion,
    /// Operands that the instruction does not allow.
    #[error("{0}")]
    Invalid(String),
}
