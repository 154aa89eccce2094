//! What the decoded instructions do: types, modifiers and the operations themselves.

use super::{
    module::{Reg, Regs},
    syntax::Space,
};

/// Types of operands (PTX ISA, "Fundamental Types" and "Alternate Floating-Point Data Formats").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Pred,
    Bits(u32),
    Unsigned(u32),
    Signed(u32),
    Float(Format),
    /// Two values of 16, 8 or 32 bits in one register.
    Packed(Format),
    /// Two integers of 16 bits; whether signed.
    Packed16(bool),
    /// Four-bit integers of `mma`; whether signed.
    Nibble(bool),
}

/// Floating-point formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    F64,
    F32,
    Tf32,
    F16,
    Bf16,
    E4m3,
    E5m2,
}

impl Format {
    /// The size in memory and registers.
    pub fn bits(self) -> u32 {
        match self {
            Format::F64 => 64,
            Format::F32 | Format::Tf32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::E4m3 | Format::E5m2 => 8,
        }
    }
}

impl Type {
    /// The size in bits.
    pub fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::Bits(n) | Type::Unsigned(n) | Type::Signed(n) => n,
            Type::Float(format) => format.bits(),
            Type::Packed(format) => 2 * format.bits(),
            Type::Packed16(_) => 32,
            Type::Nibble(_) => 4,
        }
    }

    /// The type with this name.
    pub fn parse(name: &str) -> Option<Type> {
        const TYPES: &[(&str, Type)] = &[
            ("pred", Type::Pred),
            ("b8", Type::Bits(8)),
            ("b16", Type::Bits(16)),
            ("b32", Type::Bits(32)),
            ("b64", Type::Bits(64)),
            ("b128", Type::Bits(128)),
            ("u8", Type::Unsigned(8)),
            ("u16", Type::Unsigned(16)),
            ("u32", Type::Unsigned(32)),
            ("u64", Type::Unsigned(64)),
            ("s8", Type::Signed(8)),
            ("s16", Type::Signed(16)),
            ("s32", Type::Signed(32)),
            ("s64", Type::Signed(64)),
            ("f16", Type::Float(Format::F16)),
            ("bf16", Type::Float(Format::Bf16)),
            ("tf32", Type::Float(Format::Tf32)),
            ("f32", Type::Float(Format::F32)),
            ("f64", Type::Float(Format::F64)),
            ("e4m3", Type::Float(Format::E4m3)),
            ("e5m2", Type::Float(Format::E5m2)),
            ("f16x2", Type::Packed(Format::F16)),
            ("bf16x2", Type::Packed(Format::Bf16)),
            ("f32x2", Type::Packed(Format::F32)),
            ("e4m3x2", Type::Packed(Format::E4m3)),
            ("e5m2x2", Type::Packed(Format::E5m2)),
            ("u16x2", Type::Packed16(false)),
            ("s16x2", Type::Packed16(true)),
            ("u4", Type::Nibble(false)),
            ("s4", Type::Nibble(true)),
        ];
        TYPES.iter().find(|(key, _)| *key == name).map(|(_, ty)| *ty)
    }
}

/// Rounding of floating-point results (PTX ISA, "Rounding Modifiers").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rna`: to nearest, ties away from zero.
    Away,
    /// `.rz`.
    Zero,
    /// `.rm`.
    Down,
    /// `.rp`.
    Up,
}

/// An address: a register and a displacement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub base: Reg,
    pub offset: i64,
}

/// The scope within which a strong access orders (PTX ISA, "Scope").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Block,
    Device,
}

/// The memory order of an access (PTX ISA, "Operation types").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    /// Strong accesses do not race with each other within their scope.
    pub strong: bool,
    pub acquire: bool,
    pub release: bool,
    pub scope: Scope,
}

/// Integer operations of up to three operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Integer {
    Add,
    Sub,
    AddSaturating,
    SubSaturating,
    MulLow,
    MulHigh,
    MulWide,
    MadLow,
    MadHigh,
    MadWide,
    MadHighSaturating,
    Sad,
    Div,
    Rem,
    Abs,
    Neg,
    Min,
    Max,
    /// Signed, and not below zero.
    MinRelu,
    MaxRelu,
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    Shr,
    /// `shf`; to the left or right; the amount clamped or wrapped.
    Funnel {
        left: bool,
        clamp: bool,
    },
    Bfe,
    /// `bfind`; `.shiftamt`.
    Bfind(bool),
    Brev,
    Popc,
    Clz,
    /// `lop3` with its table.
    Lop3(u8),
    Prmt(Permute),
    /// `bmsk`: a mask of b bits from bit a on; the position and length clamped or wrapped.
    BitMask {
        clamp: bool,
    },
    /// `szext`: a extended from b bits.
    Extend {
        clamp: bool,
    },
    /// `mul24` and `mad24`: the low 32 bits of the product, or bits 16 to 47.
    Mul24(bool),
    Mad24(bool),
    /// `dp4a`; signedness of a and b.
    Dot4(bool, bool),
    /// `dp2a`; signedness of a and b; the upper half of b.
    Dot2(bool, bool, bool),
}

/// Modes of `prmt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permute {
    Bytes,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// Floating-point operations that are rounded once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Float {
    Add,
    Sub,
    Mul,
    Fma,
    Div,
    Rcp,
    Sqrt,
    Min,
    Max,
    Abs,
    Neg,
    Copysign,
}

/// Modifiers of floating-point operations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub format: Format,
    pub packed: bool,
    pub rounding: Rounding,
    /// Subnormal operands and results become zero.
    pub ftz: bool,
    /// The result is clamped to [0, 1].
    pub sat: bool,
    /// Negative results become zero.
    pub relu: bool,
    /// `min` and `max` return NaN if an operand is NaN.
    pub nan: bool,
    /// `min` and `max` of magnitudes, with the exclusive or of the signs.
    pub xorsign: bool,
}

/// Approximate functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approximate {
    Div,
    DivFull,
    Rcp,
    Rsqrt,
    Sqrt,
    Exp2,
    Log2,
    Sin,
    Cos,
    Tanh,
}

/// Comparisons of `setp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Both operands are numbers.
    Numbers,
    /// An operand is NaN.
    Nan,
}

/// Combination of a comparison with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combine {
    And,
    Or,
    Xor,
}

/// Properties of `testp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Read-modify-write operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modify {
    Add,
    And,
    Or,
    Xor,
    Min,
    Max,
    Inc,
    Dec,
    Exchange,
    CompareExchange,
}

/// Modes of `shfl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// Modes of `vote`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// What a barrier instruction does besides arriving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BarrierKind {
    Sync,
    Arrive,
    /// `.red.and` of a predicate.
    All {
        d: Reg,
        p: Reg,
        negate: bool,
    },
    /// `.red.or`.
    Any {
        d: Reg,
        p: Reg,
        negate: bool,
    },
    /// `.red.popc`.
    Count {
        d: Reg,
        p: Reg,
        negate: bool,
    },
}

/// A load.
#[derive(Debug)]
pub(super) struct Load {
    pub space: Space,
    pub d: Regs,
    /// Bytes of one element.
    pub bytes: usize,
    pub signed: bool,
    /// The bits of the destination registers.
    pub register_mask: u64,
    pub address: Address,
    pub order: Order,
    pub noncoherent: bool,
}

/// A store.
#[derive(Debug)]
pub(super) struct Store {
    pub space: Space,
    pub a: Regs,
    pub bytes: usize,
    pub address: Address,
    pub order: Order,
}

/// `atom` and `red`.
#[derive(Debug)]
pub(super) struct Atomic {
    pub space: Space,
    pub op: Modify,
    pub ty: Type,
    /// Empty for `red`.
    pub d: Regs,
    pub address: Address,
    pub b: Regs,
    pub c: Option<Reg>,
    pub order: Order,
}

/// `cvt`.
#[derive(Debug)]
pub(super) struct Convert {
    pub d: Reg,
    pub a: Reg,
    /// The second source, which becomes the lower half.
    pub b: Option<Reg>,
    pub to: Type,
    pub from: Type,
    /// For floating-point results.
    pub rounding: Rounding,
    /// For integers from floating point, and for `.rni` and the like.
    pub to_integer: Option<Rounding>,
    pub ftz: bool,
    pub sat: bool,
    pub satfinite: bool,
    pub relu: bool,
    /// The bits of the destination register.
    pub register_mask: u64,
}

/// `mma.sync`.
#[derive(Debug)]
pub(super) struct Mma {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a_type: Type,
    pub b_type: Type,
    pub c_type: Type,
    pub d_type: Type,
    pub satfinite: bool,
    pub d: Regs,
    pub a: Regs,
    pub b: Regs,
    pub c: Regs,
}

/// `ldmatrix` and `stmatrix`.
#[derive(Debug)]
pub(super) struct MatrixAccess {
    pub space: Space,
    pub registers: Regs,
    pub transposed: bool,
    pub address: Address,
}

/// `cp.async`.
#[derive(Debug)]
pub(super) struct CopyAsync {
    pub to: Address,
    pub from: Address,
    pub bytes: usize,
    /// Bytes to read; the rest becomes zero.
    pub source_bytes: Option<Reg>,
    /// Read nothing where it holds.
    pub ignore: Option<(Reg, bool)>,
}

/// Operations on mbarrier objects (PTX ISA, "mbarrier").
#[derive(Debug)]
pub(super) enum Mbarrier {
    Init {
        count: Reg,
    },
    Invalidate,
    /// Arrive, expecting bytes before it if given; `d` gets the state.
    Arrive {
        d: Reg,
        count: Option<Reg>,
        expect: Option<Reg>,
    },
    Expect {
        bytes: Reg,
    },
    /// `try_wait` and `test_wait`: whether the phase of a state or parity is complete.
    Wait {
        d: Reg,
        phase: Reg,
        parity: bool,
    },
    /// `cp.async.mbarrier.arrive`.
    CopyArrive {
        noinc: bool,
    },
}

/// `cp.async.bulk` without a tensor map.
#[derive(Debug)]
pub(super) enum Bulk {
    /// To shared memory; an mbarrier counts the bytes.
    Load {
        to: Address,
        from: Address,
        bytes: Reg,
        mbarrier: Address,
    },
    /// To global memory, in a bulk group.
    Store {
        to: Address,
        from: Address,
        bytes: Reg,
    },
    /// A box of a tensor to shared memory.
    TensorLoad {
        to: Address,
        map: Address,
        coordinates: Regs,
        mbarrier: Address,
    },
    /// A box from shared memory to a tensor.
    TensorStore {
        map: Address,
        coordinates: Regs,
        from: Address,
    },
    Commit,
    /// Wait until at most so many groups are pending.
    Wait {
        groups: u32,
    },
}

/// Where `wgmma` has A.
#[derive(Debug)]
pub(super) enum WgmmaA {
    Registers(Regs),
    Descriptor(Reg),
}

/// `wgmma.mma_async`.
#[derive(Debug)]
pub(super) struct Wgmma {
    pub n: usize,
    pub k: usize,
    pub d_type: Type,
    pub a_type: Type,
    pub b_type: Type,
    pub satfinite: bool,
    pub d: Regs,
    pub a: WgmmaA,
    pub b: Reg,
    /// Whether D is added; a predicate, perhaps negated.
    pub scale_d: (Reg, bool),
}

/// What an instruction does.
#[derive(Debug)]
pub(super) enum Op {
    Nothing,
    Move {
        d: Reg,
        a: Reg,
    },
    /// `mov.b64 %rd, {%r1, %r2}`: parts of so many bits, the lowest first.
    Pack {
        d: Reg,
        parts: Regs,
        bits: u32,
    },
    Unpack {
        parts: Regs,
        a: Reg,
        bits: u32,
    },
    /// `a`, then the addition of a window's base (`cvta`), or its subtraction (`cvta.to`).
    ConvertAddress {
        d: Reg,
        a: Reg,
        space: Space,
        to: bool,
    },
    /// `isspacep`.
    IsSpace {
        d: Reg,
        a: Reg,
        space: Space,
    },
    Integer {
        op: Integer,
        bits: u32,
        signed: bool,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    /// `bfi`, which has four operands.
    Bfi {
        bits: u32,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        e: Reg,
    },
    /// `add.cc`, `addc`, `sub.cc`, `subc`.
    Carry {
        subtract: bool,
        takes: bool,
        sets: bool,
        bits: u32,
        flag: Reg,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// `add`, `min` and the like on two halves of 16 bits.
    Packed16 {
        op: Integer,
        signed: bool,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Float {
        op: Float,
        style: Style,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Approximate {
        op: Approximate,
        format: Format,
        packed: bool,
        ftz: bool,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    TestProperty {
        property: Property,
        format: Format,
        d: Reg,
        a: Reg,
    },
    Convert(Box<Convert>),
    /// `cvt.pack`: a and b saturated to a type, b the lower; then the low bits of c above them.
    ConvertPack {
        ty: Type,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Option<Reg>,
    },
    /// `setp` and `set`.
    Compare {
        compare: Compare,
        /// The comparison also holds if an operand is NaN.
        unordered: bool,
        ty: Type,
        ftz: bool,
        /// For `set`: the value of true; for `setp` 1.
        truth: u64,
        d: Reg,
        /// The complement, for `setp` with two destinations.
        complement: Reg,
        a: Reg,
        b: Reg,
        combine: Option<(Combine, Reg, bool)>,
    },
    Select {
        d: Reg,
        a: Reg,
        b: Reg,
        p: Reg,
    },
    /// `slct`: a if c >= 0, else b.
    SelectSign {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        float: bool,
        ftz: bool,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Fence {
        scope: Scope,
    },
    Prefetch {
        space: Space,
        address: Address,
    },
    Branch {
        target: u32,
        /// Where the lanes meet again.
        join: u32,
    },
    BranchIndexed {
        index: Reg,
        targets: Box<[u32]>,
        join: u32,
    },
    Exit,
    Trap,
    Assertion,
    Barrier {
        id: Reg,
        threads: Option<Reg>,
        kind: BarrierKind,
    },
    WarpSync,
    /// `barrier.cluster.arrive`.
    ClusterArrive,
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// `mapa`.
    MapShared {
        d: Reg,
        a: Reg,
        rank: Reg,
    },
    Shuffle {
        mode: Shuffle,
        d: Reg,
        p: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Vote {
        mode: Vote,
        d: Reg,
        p: Reg,
        negate: bool,
    },
    Match {
        all: bool,
        d: Reg,
        p: Reg,
        a: Reg,
    },
    Redux {
        op: Integer,
        signed: bool,
        d: Reg,
        a: Reg,
    },
    /// `redux` of `f32`: minimum or maximum, of magnitudes or not, with NaN or not.
    ReduxFloat {
        max: bool,
        abs: bool,
        nan: bool,
        d: Reg,
        a: Reg,
    },
    Elect {
        d: Reg,
        p: Reg,
    },
    ActiveMask {
        d: Reg,
    },
    LoadMatrix(Box<MatrixAccess>),
    StoreMatrix(Box<MatrixAccess>),
    MoveMatrix {
        d: Reg,
        a: Reg,
    },
    Mma(Box<Mma>),
    CopyAsync(Box<CopyAsync>),
    CopyCommit,
    /// Wait until at most so many groups are pending; nothing for `wait_all`.
    CopyWait {
        groups: Option<u32>,
    },
    Mbarrier {
        space: Space,
        address: Address,
        op: Box<Mbarrier>,
    },
    Bulk(Box<Bulk>),
    Wgmma(Box<Wgmma>),
    WgmmaCommit,
    /// Wait until at most so many groups are pending.
    WgmmaWait {
        groups: u32,
    },
}
