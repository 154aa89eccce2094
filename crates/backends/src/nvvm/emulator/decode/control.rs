//! The table of instructions; control flow, barriers, warp operations and `mma`.

use super::super::{error::Error, module::*, syntax::Operand};
use super::{Symbol, operands::Decoding, unsupported};

impl<'a> Decoding<'_, '_, 'a> {
    /// Decodes the instruction and appends it to the kernel.
    pub(super) fn instruction(mut self) -> Result<(), Error> {
        match self.base {
            "add" | "sub" | "mul" | "mad" | "mul24" | "mad24" | "fma" | "div" | "rem" | "abs"
            | "neg" | "min" | "max" | "sad" | "and" | "or" | "xor" | "not" | "cnot" | "rcp"
            | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign" | "addc"
            | "subc" | "madc" => self.arithmetic(),
            "shl" | "shr" | "shf" | "bfe" | "bfi" | "bfind" | "popc" | "clz" | "brev" | "lop3"
            | "prmt" | "dp4a" | "dp2a" | "bmsk" | "szext" => self.bits(),
            "testp" => self.testp(),
            "setp" | "set" => self.compare(),
            "selp" | "slct" => self.select(),
            "mov" => self.mov(),
            "cvta" => self.cvta(),
            "isspacep" => self.isspacep(),
            "cvt" => self.cvt(),
            "ld" | "ldu" => self.load(),
            "st" => self.store(),
            "atom" | "red" => self.atomic(),
            "fence" | "membar" => self.fence(),
            "prefetch" => self.prefetch(),
            "cp" => self.copy(),
            "mbarrier" => self.mbarrier(),
            "ldmatrix" | "stmatrix" => self.matrix_access(),
            "movmatrix" => self.move_matrix(),
            "mma" => self.mma(),
            "wgmma" => self.wgmma(),
            "bra" => self.branch(),
            "brx" => self.branch_indexed(),
            "call" => self.call(),
            "ret" | "exit" => self.leave(),
            "trap" => self.plain(Op::Trap),
            "nanosleep" | "griddepcontrol" | "setmaxnreg" => self.hint(),
            "bar" | "barrier" => self.barrier(),
            "shfl" => self.shuffle(),
            "vote" => self.vote(),
            "match" => self.match_lanes(),
            "redux" => self.redux(),
            "elect" => self.elect(),
            "mapa" => self.map_shared(),
            "activemask" => self.active_mask(),
            _ => self.unknown(),
        }
    }

    fn plain(&mut self, op: Op) -> Result<(), Error> {
        self.expect_operands(0, 0)?;
        self.emit(op)
    }

    /// Instructions that only tell the hardware something.
    fn hint(&mut self) -> Result<(), Error> {
        for modifier in ["u32", "sync", "aligned", "inc", "dec", "wait", "launch_dependents"] {
            self.take(modifier);
        }
        self.expect_operands(0, 1)?;
        self.emit(Op::Nothing)
    }

    fn label(&self, name: &'a str) -> Result<u32, Error> {
        match self.body.label(name) {
            Some(label) => Ok(label),
            None => self.syntax(format!("expected a label, found '{name}'")),
        }
    }

    fn branch(&mut self) -> Result<(), Error> {
        self.take("uni");
        self.expect_operands(1, 1)?;
        match self.operand(0)? {
            Operand::Name(name, 0) => {
                let target = self.label(name)?;
                self.emit(Op::Branch { target, join: END })
            }
            _ => self.syntax("expected a label"),
        }
    }

    fn branch_indexed(&mut self) -> Result<(), Error> {
        if !self.take("idx") {
            return self.unknown();
        }
        self.take("uni");
        self.expect_operands(2, 2)?;
        let Operand::Name(name, 0) = self.operand(1)? else {
            return self.syntax("expected a list of targets");
        };
        let Some(labels) = self.body.find(&self.body.targets, name) else {
            return self.syntax(format!("expected a list of targets, found '{name}'"));
        };
        let targets = labels.iter().map(|l| self.label(l)).collect::<Result<_, _>>()?;
        let index = self.s(0, Type::Unsigned(32))?;
        self.emit(Op::BranchIndexed { index, targets, join: END })
    }

    fn call(&mut self) -> Result<(), Error> {
        self.take("uni");
        self.finish()?;
        if self.written.guard.is_some() {
            return unsupported(self.at(), "guarded call");
        }
        let mut operands = self.written.operands.iter();
        let mut next = operands.next();
        let mut results = Vec::new();
        if let Some(Operand::List(list)) = next {
            results = self.call_variables(list)?;
            next = operands.next();
        }
        let Some(Operand::Name(name, 0)) = next else {
            return self.syntax("expected a function");
        };
        if self.body.register(name).is_some() {
            return unsupported(self.at(), "call through a register");
        }
        let arguments = match operands.next() {
            Some(Operand::List(list)) => self.call_variables(list)?,
            None => Vec::new(),
            Some(_) => return self.syntax("expected a list of arguments"),
        };
        let at = self.at();
        self.builder.call(name, &results, &arguments, at)
    }

    fn call_variables(&self, list: &[Operand<'a>]) -> Result<Vec<Symbol>, Error> {
        let variable = |operand: &Operand<'a>| match operand {
            Operand::Name(name, 0) => match self.symbol(name) {
                Some(symbol @ Symbol::CallParameter(_)) => Ok(symbol),
                _ => self.syntax(format!("expected a '.param' variable, found '{name}'")),
            },
            _ => self.syntax("expected a '.param' variable"),
        };
        list.iter().map(variable).collect()
    }

    /// `ret` and `exit`; `ret` of an expanded function is a branch.
    fn leave(&mut self) -> Result<(), Error> {
        self.take("uni");
        match (self.base, self.body.result) {
            ("ret", Some(target)) => self.plain(Op::Branch { target, join: END }),
            _ => self.plain(Op::Exit),
        }
    }

    /// `bar` and `barrier`.
    fn barrier(&mut self) -> Result<(), Error> {
        if self.take("warp") {
            if !self.take("sync") {
                return self.unknown();
            }
            self.expect_operands(1, 1)?;
            self.together = Together::Members(self.s(0, Type::Bits(32))?);
            return self.emit(Op::WarpSync);
        }
        if self.take("cluster") {
            return self.cluster_barrier();
        }
        self.take("cta");
        let aligned = self.take("aligned") || self.base == "bar";
        if aligned {
            self.together = Together::Warp("barrier");
        }
        let word = Type::Bits(32);
        if self.take("red") {
            const KINDS: &[(&str, u32)] = &[("popc", 0), ("and", 1), ("or", 2)];
            let kind = self.need(KINDS, "reduction")?;
            self.ty()?;
            self.expect_operands(3, 4)?;
            let last = self.num_operands() - 1;
            let d = self.d(0, if kind == 0 { 32 } else { 1 })?;
            let id = self.s(1, word)?;
            let threads = if last == 3 { Some(self.s(2, word)?) } else { None };
            let (p, negate) = self.predicate(last)?;
            let kind = match kind {
                0 => BarrierKind::Count { d, p, negate },
                1 => BarrierKind::All { d, p, negate },
                _ => BarrierKind::Any { d, p, negate },
            };
            return self.emit(Op::Barrier { id, threads, kind });
        }
        let kind = self
            .need(&[("sync", BarrierKind::Sync), ("arrive", BarrierKind::Arrive)], "operation")?;
        self.expect_operands(1, 2)?;
        let id = self.s(0, word)?;
        let threads = if self.num_operands() == 2 { Some(self.s(1, word)?) } else { None };
        if kind == BarrierKind::Arrive && threads.is_none() {
            return self.syntax("expected a number of threads of 'bar.arrive'");
        }
        self.emit(Op::Barrier { id, threads, kind })
    }

    fn cluster_barrier(&mut self) -> Result<(), Error> {
        self.take("aligned");
        self.together = Together::Warp("barrier.cluster");
        for order in ["release", "acquire", "relaxed"] {
            self.take(order);
        }
        match self.need(&[("arrive", true), ("wait", false)], "operation")? {
            true => self.plain(Op::ClusterArrive),
            false => self.plain(Op::ClusterWait),
        }
    }

    fn map_shared(&mut self) -> Result<(), Error> {
        self.space();
        let ty = self.ty()?;
        self.expect_operands(3, 3)?;
        let (d, a, rank) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, Type::Bits(32))?);
        self.emit(Op::MapShared { d, a, rank })
    }

    fn members(&mut self, index: usize) -> Result<(), Error> {
        if !self.take("sync") {
            return self.unknown();
        }
        self.together = Together::Members(self.s(index, Type::Bits(32))?);
        Ok(())
    }

    /// A destination with an optional predicate behind `|`.
    fn with_predicate(&self, bits: u32) -> Result<(Reg, Reg), Error> {
        match self.operand(0)? {
            Operand::Pair(d, p) => {
                let (d, _) = self.destination_register(d, bits)?;
                Ok((d, self.destination_register(p, 1)?.0))
            }
            d => Ok((self.destination_register(d, bits)?.0, SINK)),
        }
    }

    fn shuffle(&mut self) -> Result<(), Error> {
        let word = Type::Bits(32);
        self.expect_operands(5, 5)?;
        self.members(4)?;
        let mode = self.need(
            &[
                ("up", Shuffle::Up),
                ("down", Shuffle::Down),
                ("bfly", Shuffle::Butterfly),
                ("idx", Shuffle::Index),
            ],
            "mode",
        )?;
        if self.ty()? != word {
            return self.bad_type();
        }
        let (d, p) = self.with_predicate(32)?;
        let (a, b, c) = (self.s(1, word)?, self.s(2, word)?, self.s(3, word)?);
        self.emit(Op::Shuffle { mode, d, p, a, b, c })
    }

    fn vote(&mut self) -> Result<(), Error> {
        self.expect_operands(3, 3)?;
        self.members(2)?;
        let mode = self.need(
            &[
                ("all", Vote::All),
                ("any", Vote::Any),
                ("uni", Vote::Uniform),
                ("ballot", Vote::Ballot),
            ],
            "mode",
        )?;
        self.ty()?;
        let d = self.d(0, if mode == Vote::Ballot { 32 } else { 1 })?;
        let (p, negate) = self.predicate(1)?;
        self.emit(Op::Vote { mode, d, p, negate })
    }

    fn match_lanes(&mut self) -> Result<(), Error> {
        self.expect_operands(3, 3)?;
        self.members(2)?;
        let all = self.need(&[("any", false), ("all", true)], "mode")?;
        let ty = self.ty()?;
        let (d, p) = self.with_predicate(32)?;
        let a = self.s(1, ty)?;
        self.emit(Op::Match { all, d, p, a })
    }

    fn redux(&mut self) -> Result<(), Error> {
        self.expect_operands(3, 3)?;
        self.members(2)?;
        let op = self.need(
            &[
                ("add", Integer::Add),
                ("min", Integer::Min),
                ("max", Integer::Max),
                ("and", Integer::And),
                ("or", Integer::Or),
                ("xor", Integer::Xor),
            ],
            "operation",
        )?;
        let ty = self.ty()?;
        let (d, a) = (self.d(0, 32)?, self.s(1, ty)?);
        match ty {
            Type::Float(Format::F32) if matches!(op, Integer::Min | Integer::Max) => {
                let (abs, nan) = (self.take("abs"), self.take("NaN"));
                self.emit(Op::ReduxFloat { max: op == Integer::Max, abs, nan, d, a })
            }
            Type::Unsigned(32) | Type::Signed(32) | Type::Bits(32) => {
                self.emit(Op::Redux { op, signed: ty == Type::Signed(32), d, a })
            }
            _ => self.bad_type(),
        }
    }

    fn elect(&mut self) -> Result<(), Error> {
        self.expect_operands(2, 2)?;
        self.members(1)?;
        let (d, p) = self.with_predicate(32)?;
        self.emit(Op::Elect { d, p })
    }

    fn active_mask(&mut self) -> Result<(), Error> {
        self.ty()?;
        self.expect_operands(1, 1)?;
        let d = self.d(0, 32)?;
        self.emit(Op::ActiveMask { d })
    }

    fn move_matrix(&mut self) -> Result<(), Error> {
        let known = self.take("sync") && self.take("aligned") && self.take("m8n8");
        if !known || !self.take("trans") {
            return self.unknown();
        }
        self.together = Together::Warp("movmatrix");
        self.ty()?;
        self.expect_operands(2, 2)?;
        let (d, a) = (self.d(0, 32)?, self.s(1, Type::Bits(32))?);
        self.emit(Op::MoveMatrix { d, a })
    }

    fn mma(&mut self) -> Result<(), Error> {
        if !self.take("sync") || !self.take("aligned") {
            return self.unknown();
        }
        self.together = Together::Warp("mma");
        let shape = self.shape()?;
        if !self.take("row") || !self.take("col") {
            return self.unknown();
        }
        let satfinite = self.take("satfinite");
        let (d_type, a_type, b_type, c_type) = (self.ty()?, self.ty()?, self.ty()?, self.ty()?);
        let mut numbers = shape[1..].split(['n', 'k']).map(|n| n.parse::<usize>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (m, n, k) = (next(), next(), next());
        if !mma_exists((m, n, k), d_type, a_type, b_type, c_type) {
            return self.unknown();
        }
        self.expect_operands(4, 4)?;
        let elements = |rows: usize, columns: usize, ty: Type| {
            let bits = rows * columns * ty.bits() as usize / 32;
            // A register holds 32 bits, or one f64.
            (bits.div_ceil(32), if ty.bits() == 64 { 64 } else { 32 })
        };
        let sizes = [
            elements(m, n, d_type),
            elements(m, k, a_type),
            elements(k, n, b_type),
            elements(m, n, c_type),
        ];
        let mut registers: [Regs; 4] = Default::default();
        for (index, (bits, width)) in sizes.into_iter().enumerate() {
            let count = if width == 64 { bits.div_ceil(2) } else { bits };
            registers[index] = match index {
                0 => self.destinations(0, width)?,
                _ => self.sources(index, Type::Bits(width))?,
            };
            if registers[index].len() != count {
                let found = registers[index].len();
                return self.syntax(format!(
                    "expected {count} registers in operand {} of 'mma', found {found}",
                    index + 1
                ));
            }
        }
        let [d, a, b, c] = registers;
        self.emit(Op::Mma(Box::new(Mma {
            m,
            n,
            k,
            a_type,
            b_type,
            c_type,
            d_type,
            satfinite,
            d,
            a,
            b,
            c,
        })))
    }
}

impl Decoding<'_, '_, '_> {
    fn wgmma(&mut self) -> Result<(), Error> {
        const KINDS: &[(&str, u32)] =
            &[("fence", 0), ("commit_group", 1), ("wait_group", 2), ("mma_async", 3)];
        let kind = self.need(KINDS, "operation")?;
        if !self.take("sync") || !self.take("aligned") {
            return self.unknown();
        }
        self.together = Together::Warp("wgmma");
        match kind {
            0 => self.plain(Op::Nothing),
            1 => self.plain(Op::WgmmaCommit),
            2 => {
                self.expect_operands(1, 1)?;
                match self.operand(0)? {
                    Operand::Integer(groups @ 0..=7) => {
                        let groups = *groups as u32;
                        self.emit(Op::WgmmaWait { groups })
                    }
                    _ => self.syntax("expected a number of groups from 0 to 7"),
                }
            }
            _ => self.wgmma_product(),
        }
    }

    fn wgmma_product(&mut self) -> Result<(), Error> {
        let shape = self.shape()?;
        let satfinite = self.take("satfinite");
        let (d_type, a_type, b_type) = (self.ty()?, self.ty()?, self.ty()?);
        let Some((n, k)) = shape.strip_prefix("m64n").and_then(|rest| rest.split_once('k')) else {
            return self.unknown();
        };
        let (n, k) = (n.parse::<usize>().unwrap_or(0), k.parse::<usize>().unwrap_or(0));
        let known = match (a_type, b_type) {
            (Type::Float(Format::F16), Type::Float(Format::F16)) => d_type != Type::Signed(32),
            (
                Type::Float(Format::E4m3 | Format::E5m2),
                Type::Float(Format::E4m3 | Format::E5m2),
            ) => d_type != Type::Signed(32),
            (Type::Float(Format::Bf16), Type::Float(Format::Bf16))
            | (Type::Float(Format::Tf32), Type::Float(Format::Tf32)) => {
                d_type == Type::Float(Format::F32)
            }
            (Type::Signed(8) | Type::Unsigned(8), Type::Signed(8) | Type::Unsigned(8)) => {
                d_type == Type::Signed(32)
            }
            _ => false,
        };
        let result = matches!(d_type, Type::Float(Format::F32 | Format::F16) | Type::Signed(32));
        // K has 32 bytes.
        if !known || !result || n == 0 || n > 256 || n % 8 != 0 || k * a_type.bits() as usize != 256
        {
            return self.unknown();
        }
        self.expect_operands(4, 8)?;
        let d = self.destinations(0, 32)?;
        let expected = n / 2 * d_type.bits() as usize / 32;
        if d.len() != expected {
            return self.syntax(format!("expected {expected} accumulators, found {}", d.len()));
        }
        let a = match self.operand(1)? {
            Operand::Vector(_) => WgmmaA::Registers(self.sources(1, Type::Bits(32))?),
            _ => WgmmaA::Descriptor(self.s(1, Type::Bits(64))?),
        };
        if matches!(&a, WgmmaA::Registers(registers) if registers.len() != 4) {
            return self.syntax("expected 4 registers of A");
        }
        let b = self.s(2, Type::Bits(64))?;
        let scale_d = self.predicate(3)?;
        // The signs of A and B, then whether they are transposed (A in registers has no such bit).
        for index in 4..self.num_operands() {
            let plain = if index < 6 { 1 } else { 0 };
            match self.operand(index)? {
                Operand::Integer(found) if *found == plain => {}
                _ => return unsupported(self.at(), "negated or transposed operand of 'wgmma'"),
            }
        }
        self.emit(Op::Wgmma(Box::new(Wgmma {
            n,
            k,
            d_type,
            a_type,
            b_type,
            satfinite,
            d,
            a,
            b,
            scale_d,
        })))
    }
}

/// The shapes and types of `mma` that the emulator has (PTX ISA, "Matrix Shape").
fn mma_exists(shape: (usize, usize, usize), d: Type, a: Type, b: Type, c: Type) -> bool {
    use Format::{Bf16, E4m3, E5m2, F16, F32, F64, Tf32};
    let Type::Float(a_format) = a else {
        let integer = |ty| matches!(ty, Type::Signed(8) | Type::Unsigned(8));
        let nibble = |ty| matches!(ty, Type::Nibble(_));
        let bytes = integer(a) && integer(b) && matches!(shape, (16, 8, 16 | 32) | (8, 8, 16));
        let nibbles = nibble(a) && nibble(b) && matches!(shape, (16, 8, 32 | 64) | (8, 8, 32));
        return (bytes || nibbles) && d == Type::Signed(32) && c == Type::Signed(32);
    };
    let Type::Float(b_format) = b else { return false };
    let (single, half) = (Type::Float(F32), Type::Float(F16));
    let result =
        |half_too: bool| (d == single && c == single) || (half_too && d == half && c == half);
    match (a_format, b_format, shape) {
        (Bf16, Bf16, (16, 8, 8 | 16)) => result(false),
        (F16, F16, (16, 8, 8 | 16)) => result(true),
        (Tf32, Tf32, (16, 8, 4 | 8)) => result(false),
        (F64, F64, (8, 8, 4) | (16, 8, 4 | 8 | 16)) => {
            d == Type::Float(F64) && c == Type::Float(F64)
        }
        (E4m3 | E5m2, E4m3 | E5m2, (16, 8, 16 | 32)) => result(true),
        _ => false,
    }
}
