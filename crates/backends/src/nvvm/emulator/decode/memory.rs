//! Loads, stores, atomics, fences, asynchronous copies, mbarriers and matrix accesses.

use smallvec::SmallVec;

use super::super::{
    error::Error,
    module::*,
    syntax::{Operand, Space},
};
use super::{
    Symbol,
    operands::{Decoding, bit_mask},
};

/// Hints to caches, which change nothing here.
const CACHE_HINTS: &[&str] = &[
    "ca",
    "cg",
    "cs",
    "cv",
    "wb",
    "wt",
    "lu",
    "L1::no_allocate",
    "L1::evict_first",
    "L1::evict_last",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "L2::evict_first",
    "L2::evict_last",
    "L2::evict_normal",
];

impl Decoding<'_, '_, '_> {
    fn skip_cache_hints(&mut self) {
        for hint in CACHE_HINTS {
            self.take(hint);
        }
    }

    fn scope(&mut self) -> Option<Scope> {
        self.pick(&[
            ("cta", Scope::Block),
            ("cluster", Scope::Device),
            ("gpu", Scope::Device),
            ("sys", Scope::Device),
            ("gl", Scope::Device),
        ])
    }

    /// Takes the memory order; `strong` is what an access without one has.
    fn order(&mut self, strong: bool) -> Order {
        let weak = self.take("weak");
        let volatile = self.take("volatile") || self.take("mmio");
        let relaxed = self.take("relaxed");
        let both = self.take("acq_rel");
        let acquire = self.take("acquire") || both;
        let release = self.take("release") || both;
        let scope = self.scope().unwrap_or(Scope::Device);
        let strong = !weak && (strong || volatile || relaxed || acquire || release);
        Order { strong, acquire, release, scope }
    }

    /// The space of an access: parameters of calls lie in local memory.
    fn space_of(space: Space, symbol: Option<Symbol>) -> Space {
        match (space, symbol) {
            (Space::Parameter, Some(Symbol::CallParameter(_))) => Space::Local,
            _ => space,
        }
    }

    fn vector_length(&mut self) -> usize {
        self.pick(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1)
    }

    pub(super) fn load(&mut self) -> Result<(), Error> {
        let space = self.space();
        let order = self.order(false);
        let noncoherent = self.base == "ldu" || self.take("nc");
        self.skip_cache_hints();
        let length = self.vector_length();
        let ty = self.ty()?;
        self.expect_operands(2, 2)?;
        if !matches!(ty.bits(), 8 | 16 | 32 | 64) {
            return self.bad_type();
        }
        let elements = self.elements(0)?;
        if elements.len() != length {
            return self
                .syntax(format!("expected {length} destinations, found {}", elements.len()));
        }
        let mut d = Regs::new();
        let mut width = 64;
        for element in elements {
            let (reg, bits) = self.destination_register(element, ty.bits())?;
            width = width.min(bits);
            d.push(reg);
        }
        let (address, symbol) = self.address(1)?;
        let space = Self::space_of(space, symbol);
        self.emit(Op::Load(Box::new(Load {
            space,
            d,
            bytes: ty.bits() as usize / 8,
            signed: matches!(ty, Type::Signed(_)),
            register_mask: bit_mask(width),
            address,
            order,
            noncoherent,
        })))
    }

    pub(super) fn store(&mut self) -> Result<(), Error> {
        let space = self.space();
        let order = self.order(false);
        self.skip_cache_hints();
        let length = self.vector_length();
        let ty = self.ty()?;
        self.expect_operands(2, 2)?;
        if !matches!(ty.bits(), 8 | 16 | 32 | 64) {
            return self.bad_type();
        }
        let (address, symbol) = self.address(0)?;
        let a = self.sources(1, ty)?;
        if a.len() != length {
            return self.syntax(format!("expected {length} sources, found {}", a.len()));
        }
        let space = Self::space_of(space, symbol);
        let bytes = ty.bits() as usize / 8;
        self.emit(Op::Store(Box::new(Store { space, a, bytes, address, order })))
    }

    /// `atom` and `red`.
    pub(super) fn atomic(&mut self) -> Result<(), Error> {
        let space = self.space();
        let order = self.order(true);
        self.take("noftz");
        for hint in ["L2::cache_hint", "async"] {
            if self.has(hint) {
                return self.unknown();
            }
        }
        let op = self.need(
            &[
                ("add", Modify::Add),
                ("and", Modify::And),
                ("or", Modify::Or),
                ("xor", Modify::Xor),
                ("min", Modify::Min),
                ("max", Modify::Max),
                ("inc", Modify::Inc),
                ("dec", Modify::Dec),
                ("exch", Modify::Exchange),
                ("cas", Modify::CompareExchange),
            ],
            "operation",
        )?;
        let length = self.vector_length();
        let ty = self.ty()?;
        let float = matches!(ty, Type::Float(_) | Type::Packed(_));
        let word = matches!(ty.bits(), 16 | 32 | 64);
        let fits = match op {
            Modify::Add => true,
            Modify::Min | Modify::Max if float => {
                !matches!(ty, Type::Float(Format::F32 | Format::F64))
            }
            Modify::Inc | Modify::Dec => ty == Type::Unsigned(32),
            _ => !float,
        };
        if !word || !fits || (ty.bits() == 16 && !float && op != Modify::CompareExchange) {
            return self.bad_type();
        }
        let returns = usize::from(self.base == "atom");
        let operands = returns + 2 + usize::from(op == Modify::CompareExchange);
        self.expect_operands(operands, operands)?;
        let d = if returns == 1 { self.destinations(0, ty.bits())? } else { Regs::new() };
        let (address, _) = self.address(returns)?;
        let b = self.sources(returns + 1, ty)?;
        let c = match op {
            Modify::CompareExchange => Some(self.s(returns + 2, ty)?),
            _ => None,
        };
        if b.len() != length || (returns == 1 && d.len() != length) {
            return self.syntax(format!("expected vectors of {length} registers"));
        }
        self.emit(Op::Atomic(Box::new(Atomic { space, op, ty, d, address, b, c, order })))
    }

    /// `fence` and `membar`.
    pub(super) fn fence(&mut self) -> Result<(), Error> {
        let proxy = self.take_prefix("proxy").is_some();
        let scope = self.scope().unwrap_or(Scope::Device);
        for modifier in
            ["sc", "acq_rel", "acquire", "release", "mbarrier_init", "sync_restrict::shared::cta"]
        {
            self.take(modifier);
        }
        if proxy {
            // Proxies are one here; `fence.proxy.tensormap` names an address.
            for modifier in ["async", "async::generic", "alias", "tensormap::generic"] {
                self.take(modifier);
            }
            self.space();
            self.expect_operands(0, 2)?;
        } else {
            self.expect_operands(0, 0)?;
        }
        self.emit(Op::Fence { scope })
    }

    pub(super) fn prefetch(&mut self) -> Result<(), Error> {
        let space = self.space();
        for modifier in ["L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"] {
            self.take(modifier);
        }
        self.expect_operands(1, 1)?;
        let (address, _) = self.address(0)?;
        self.emit(Op::Prefetch { space, address })
    }

    /// `cp`.
    pub(super) fn copy(&mut self) -> Result<(), Error> {
        if self.take("reduce") || !self.take("async") {
            return self.unknown();
        }
        if self.take("bulk") {
            return self.bulk();
        }
        if self.take("commit_group") {
            self.expect_operands(0, 0)?;
            return self.emit(Op::CopyCommit);
        }
        if self.take("wait_all") {
            self.expect_operands(0, 0)?;
            return self.emit(Op::CopyWait { groups: None });
        }
        if self.take("wait_group") {
            let groups = Some(self.group_count()?);
            return self.emit(Op::CopyWait { groups });
        }
        if self.take("mbarrier") {
            if !self.take("arrive") {
                return self.unknown();
            }
            let noinc = self.take("noinc");
            let space = self.space();
            self.ty()?;
            self.expect_operands(1, 1)?;
            let (address, _) = self.address(0)?;
            let op = Box::new(Mbarrier::CopyArrive { noinc });
            return self.emit(Op::Mbarrier { space, address, op });
        }
        let spaces = self.take("shared") || self.take("shared::cta");
        if !spaces || !self.take("global") {
            return self.unknown();
        }
        let global_only = self.has("cg");
        self.skip_cache_hints();
        self.expect_operands(3, 4)?;
        let ((to, _), (from, _)) = (self.address(0)?, self.address(1)?);
        let bytes = match self.operand(2)? {
            Operand::Integer(16) => 16,
            Operand::Integer(n @ (4 | 8)) if !global_only => *n as usize,
            _ => return self.syntax("expected 4, 8 or 16 bytes; with '.cg' 16"),
        };
        let (mut source_bytes, mut ignore) = (None, None);
        if self.num_operands() == 4 {
            let predicate = match self.operand(3)? {
                Operand::Not(_) => true,
                Operand::Name(name, _) => {
                    self.body.register(name).is_some_and(|(_, bits)| bits == 1)
                }
                _ => false,
            };
            if predicate {
                ignore = Some(self.predicate(3)?);
            } else {
                source_bytes = Some(self.s(3, Type::Bits(32))?);
            }
        }
        let copy = CopyAsync { to, from, bytes, source_bytes, ignore };
        self.emit(Op::CopyAsync(Box::new(copy)))
    }

    fn group_count(&mut self) -> Result<u32, Error> {
        self.expect_operands(1, 1)?;
        match self.operand(0)? {
            Operand::Integer(n) if u32::try_from(*n).is_ok() => Ok(*n as u32),
            _ => self.syntax("expected a number of groups"),
        }
    }

    fn bulk(&mut self) -> Result<(), Error> {
        if self.take("commit_group") {
            self.expect_operands(0, 0)?;
            return self.emit(Op::Bulk(Box::new(Bulk::Commit)));
        }
        if self.take("wait_group") {
            self.take("read");
            let groups = self.group_count()?;
            return self.emit(Op::Bulk(Box::new(Bulk::Wait { groups })));
        }
        if self.take("prefetch") {
            return self.bulk_prefetch();
        }
        if self.has("multicast::cluster") || self.has("L2::cache_hint") {
            return self.unknown();
        }
        if self.take("tensor") {
            return self.tensor_copy();
        }
        let spaces: SmallVec<[Space; 2]> = SmallVec::from_iter([self.space(), self.space()]);
        let operation = match spaces.as_slice() {
            [Space::Cluster | Space::Shared, Space::Global] => {
                if !self.take("mbarrier::complete_tx::bytes") {
                    return self.unknown();
                }
                self.expect_operands(4, 4)?;
                let ((to, _), (from, _)) = (self.address(0)?, self.address(1)?);
                let bytes = self.s(2, Type::Bits(32))?;
                let (mbarrier, _) = self.address(3)?;
                Bulk::Load { to, from, bytes, mbarrier }
            }
            [Space::Global, Space::Shared] => {
                if !self.take("bulk_group") {
                    return self.unknown();
                }
                self.expect_operands(3, 3)?;
                let ((to, _), (from, _)) = (self.address(0)?, self.address(1)?);
                Bulk::Store { to, from, bytes: self.s(2, Type::Bits(32))? }
            }
            _ => return self.unknown(),
        };
        self.emit(Op::Bulk(Box::new(operation)))
    }

    /// Prefetches change nothing here.
    fn bulk_prefetch(&mut self) -> Result<(), Error> {
        for modifier in ["tensor", "1d", "2d", "3d", "4d", "5d", "L2", "global", "tile"] {
            self.take(modifier);
        }
        self.expect_operands(1, 2)?;
        self.emit(Op::Nothing)
    }

    /// `cp.async.bulk.tensor` in tile mode.
    fn tensor_copy(&mut self) -> Result<(), Error> {
        const RANKS: &[(&str, usize)] = &[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)];
        let rank = self.need(RANKS, "rank")?;
        self.take("tile");
        let (to, from) = (self.space(), self.space());
        let operation = match (to, from) {
            (Space::Cluster | Space::Shared, Space::Global) => {
                if !self.take("mbarrier::complete_tx::bytes") {
                    return self.unknown();
                }
                self.expect_operands(3, 3)?;
                let (to, _) = self.address(0)?;
                let (map, coordinates) = self.tensor_address(1, rank)?;
                let (mbarrier, _) = self.address(2)?;
                Bulk::TensorLoad { to, map, coordinates, mbarrier }
            }
            (Space::Global, Space::Shared) => {
                if !self.take("bulk_group") {
                    return self.unknown();
                }
                self.expect_operands(2, 2)?;
                let (map, coordinates) = self.tensor_address(0, rank)?;
                let (from, _) = self.address(1)?;
                Bulk::TensorStore { map, coordinates, from }
            }
            _ => return self.unknown(),
        };
        self.emit(Op::Bulk(Box::new(operation)))
    }

    /// `[map, {x, y}]`.
    fn tensor_address(&mut self, index: usize, rank: usize) -> Result<(Address, Regs), Error> {
        match self.operand(index)? {
            Operand::Address { base, offset, coordinates } if coordinates.len() == rank => {
                let base = self.source(base, Type::Bits(64))?;
                let word = Type::Bits(32);
                let coordinates =
                    coordinates.iter().map(|c| self.source(c, word)).collect::<Result<_, _>>()?;
                Ok((Address { base, offset: *offset }, coordinates))
            }
            _ => self.syntax(format!("expected a tensor map and {rank} coordinates")),
        }
    }

    pub(super) fn mbarrier(&mut self) -> Result<(), Error> {
        let word = Type::Bits(32);
        let name = ["init", "inval", "arrive", "expect_tx", "try_wait", "test_wait"]
            .into_iter()
            .find(|name| self.take(name));
        let Some(name) = name else { return self.unknown() };
        let expects = name == "arrive" && self.take("expect_tx");
        let parity = self.take("parity");
        self.order(true);
        let space = self.space();
        self.ty()?;
        let (index, op) = match name {
            "init" => {
                self.expect_operands(2, 2)?;
                (0, Mbarrier::Init { count: self.s(1, word)? })
            }
            "inval" => {
                self.expect_operands(1, 1)?;
                (0, Mbarrier::Invalidate)
            }
            "expect_tx" => {
                self.expect_operands(2, 2)?;
                (0, Mbarrier::Expect { bytes: self.s(1, word)? })
            }
            "arrive" => {
                self.expect_operands(2, 3)?;
                let d = self.d(0, 64)?;
                let third = if self.num_operands() == 3 { Some(self.s(2, word)?) } else { None };
                let (count, expect) = if expects { (None, third) } else { (third, None) };
                (1, Mbarrier::Arrive { d, count, expect })
            }
            _ => {
                self.expect_operands(3, 4)?;
                let d = self.d(0, 1)?;
                let phase = self.s(2, if parity { word } else { Type::Bits(64) })?;
                (1, Mbarrier::Wait { d, phase, parity })
            }
        };
        let (address, _) = self.address(index)?;
        self.emit(Op::Mbarrier { space, address, op: Box::new(op) })
    }

    /// `ldmatrix` and `stmatrix`.
    pub(super) fn matrix_access(&mut self) -> Result<(), Error> {
        let load = self.base == "ldmatrix";
        if !self.take("sync") || !self.take("aligned") || !self.take("m8n8") {
            return self.unknown();
        }
        self.together = Together::Warp(if load { "ldmatrix" } else { "stmatrix" });
        let number = self.need(&[("x1", 1), ("x2", 2), ("x4", 4)], "number")?;
        let transposed = self.take("trans");
        let space = self.space();
        if self.ty()? != Type::Bits(16) {
            return self.bad_type();
        }
        self.expect_operands(2, 2)?;
        let (vector, pointer) = if load { (0, 1) } else { (1, 0) };
        let registers = match load {
            true => self.destinations(vector, 32)?,
            false => self.sources(vector, Type::Bits(32))?,
        };
        if registers.len() != number {
            return self.syntax(format!("expected {number} registers, found {}", registers.len()));
        }
        let (address, _) = self.address(pointer)?;
        let access = Box::new(MatrixAccess { space, registers, transposed, address });
        self.emit(if load { Op::LoadMatrix(access) } else { Op::StoreMatrix(access) })
    }
}
