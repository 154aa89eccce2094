//! Integer, logic, floating-point, comparison, conversion and move instructions
//! (PTX ISA, "Integer Arithmetic Instructions" to "Data Movement and Conversion Instructions").

use super::super::{
    error::Error,
    module::*,
    syntax::{Operand, Space},
};
use super::{
    Symbol,
    operands::{Decoding, bit_mask},
};

impl Decoding<'_, '_, '_> {
    /// `add` and the other instructions whose type says whether they are integer or float.
    pub(super) fn arithmetic(&mut self) -> Result<(), Error> {
        if self.has("cc") || matches!(self.base, "addc" | "subc" | "madc") {
            return self.carry();
        }
        let approximate = self.has("approx") || (self.base == "div" && self.has("full"));
        let wide = self.take("wide");
        let half = self.pick(&[("lo", false), ("hi", true)]);
        let sat_before_type = self.has("sat");
        let ty = self.ty()?;
        match ty {
            Type::Float(format) | Type::Packed(format) => {
                let packed = matches!(ty, Type::Packed(_));
                if approximate {
                    return self.approximate(format, packed);
                }
                self.float(format, packed)
            }
            Type::Packed16(signed) => self.packed16(signed),
            _ => {
                let sat = sat_before_type && self.take("sat");
                self.integer(ty, wide, half, sat)
            }
        }
    }

    fn carry(&mut self) -> Result<(), Error> {
        let takes = matches!(self.base, "addc" | "subc" | "madc");
        let subtract = self.base.starts_with("sub");
        let sets = self.take("cc");
        if matches!(self.base, "mad" | "madc") {
            return self.multiply_carry(takes, sets);
        }
        if !matches!(self.base, "add" | "sub" | "addc" | "subc") {
            return self.unknown();
        }
        let ty = self.ty()?;
        self.expect_operands(3, 3)?;
        let (d, a, b) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, ty)?);
        let flag = self.builder.carry();
        self.emit(Op::Carry { subtract, takes, sets, bits: ty.bits(), flag, d, a, b })
    }

    /// `mad.cc` and `madc`: a product, then a sum with carry.
    fn multiply_carry(&mut self, takes: bool, sets: bool) -> Result<(), Error> {
        let high = self.need(&[("lo", false), ("hi", true)], "half")?;
        let ty = self.ty()?;
        self.expect_operands(4, 4)?;
        let (d, a, b, c) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, ty)?, self.s(3, ty)?);
        let (bits, signed) = (ty.bits(), matches!(ty, Type::Signed(_)));
        let op = if high { Integer::MulHigh } else { Integer::MulLow };
        let product = self.builder.new_registers(1, self.at())?;
        self.emit(Op::Integer { op, bits, signed, d: product, a, b, c: a })?;
        let flag = self.builder.carry();
        let (a, b) = (product, c);
        self.emit(Op::Carry { subtract: false, takes, sets, bits, flag, d, a, b })
    }

    fn packed16(&mut self, signed: bool) -> Result<(), Error> {
        let relu = signed && self.take("relu");
        let op = match self.base {
            "add" => Integer::Add,
            "min" if relu => Integer::MinRelu,
            "max" if relu => Integer::MaxRelu,
            "min" => Integer::Min,
            "max" => Integer::Max,
            _ => return self.unknown(),
        };
        self.expect_operands(3, 3)?;
        let ty = Type::Packed16(signed);
        let (d, a, b) = (self.d(0, 32)?, self.s(1, ty)?, self.s(2, ty)?);
        self.emit(Op::Packed16 { op, signed, d, a, b })
    }

    fn integer(
        &mut self,
        ty: Type,
        wide: bool,
        half: Option<bool>,
        sat: bool,
    ) -> Result<(), Error> {
        let (bits, signed) = (ty.bits(), matches!(ty, Type::Signed(_)));
        let high = half.unwrap_or(false);
        let relu = signed && matches!(self.base, "min" | "max") && self.take("relu");
        let op = match (self.base, wide, high, sat) {
            ("add", false, false, false) => Integer::Add,
            ("add", false, false, true) => Integer::AddSaturating,
            ("sub", false, false, false) => Integer::Sub,
            ("sub", false, false, true) => Integer::SubSaturating,
            ("mul", true, false, false) => Integer::MulWide,
            ("mul", false, false, false) if half.is_some() => Integer::MulLow,
            ("mul", false, true, false) => Integer::MulHigh,
            ("mad", true, false, false) => Integer::MadWide,
            ("mad", false, false, false) if half.is_some() => Integer::MadLow,
            ("mad", false, true, false) => Integer::MadHigh,
            ("mad", false, true, true) => Integer::MadHighSaturating,
            ("mul24", false, _, false) if half.is_some() => Integer::Mul24(high),
            ("mad24", false, _, false) if half.is_some() => Integer::Mad24(high),
            ("sad", false, false, false) => Integer::Sad,
            ("div", false, false, false) => Integer::Div,
            ("rem", false, false, false) => Integer::Rem,
            ("abs", false, false, false) => Integer::Abs,
            ("neg", false, false, false) => Integer::Neg,
            ("min", false, false, false) if relu => Integer::MinRelu,
            ("max", false, false, false) if relu => Integer::MaxRelu,
            ("min", false, false, false) => Integer::Min,
            ("max", false, false, false) => Integer::Max,
            ("and", false, false, false) => Integer::And,
            ("or", false, false, false) => Integer::Or,
            ("xor", false, false, false) => Integer::Xor,
            ("not", false, false, false) => Integer::Not,
            ("cnot", false, false, false) => Integer::Cnot,
            _ => return self.unknown(),
        };
        let result = if matches!(op, Integer::MulWide | Integer::MadWide) {
            if !matches!(bits, 16 | 32) {
                return self.bad_type();
            }
            match ty {
                Type::Signed(_) => Type::Signed(2 * bits),
                _ => Type::Unsigned(2 * bits),
            }
        } else {
            ty
        };
        let sources = match op {
            Integer::Abs | Integer::Neg | Integer::Not | Integer::Cnot => 1,
            Integer::MadLow
            | Integer::MadHigh
            | Integer::MadWide
            | Integer::MadHighSaturating
            | Integer::Mad24(_)
            | Integer::Sad => 3,
            _ => 2,
        };
        let logic = matches!(op, Integer::And | Integer::Or | Integer::Xor | Integer::Not);
        match ty {
            Type::Bits(16 | 32 | 64) if logic || op == Integer::Cnot => {}
            Type::Pred if logic => {}
            Type::Signed(16 | 32 | 64) | Type::Unsigned(16 | 32 | 64)
                if !logic && op != Integer::Cnot => {}
            _ => return self.bad_type(),
        }
        self.expect_operands(sources + 1, sources + 1)?;
        let d = self.d(0, result.bits())?;
        let a = self.s(1, ty)?;
        let b = if sources >= 2 { self.s(2, ty)? } else { a };
        let c = if sources >= 3 { self.s(3, result)? } else { a };
        self.emit(Op::Integer { op, bits, signed, d, a, b, c })
    }

    /// Shifts, bit fields, permutations and dot products.
    pub(super) fn bits(&mut self) -> Result<(), Error> {
        let word = Type::Bits(32);
        match self.base {
            "shl" | "shr" => {
                let op = if self.base == "shl" { Integer::Shl } else { Integer::Shr };
                let ty = self.ty()?;
                self.expect_operands(3, 3)?;
                let (d, a, b) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, word)?);
                let signed = matches!(ty, Type::Signed(_));
                self.emit(Op::Integer { op, bits: ty.bits(), signed, d, a, b, c: a })
            }
            "shf" => {
                let left = self.need(&[("l", true), ("r", false)], "direction")?;
                let clamp = self.need(&[("clamp", true), ("wrap", false)], "mode")?;
                self.three(Integer::Funnel { left, clamp })
            }
            "bfe" => {
                let ty = self.ty()?;
                self.expect_operands(4, 4)?;
                let (d, a) = (self.d(0, ty.bits())?, self.s(1, ty)?);
                let (b, c) = (self.s(2, word)?, self.s(3, word)?);
                let signed = matches!(ty, Type::Signed(_));
                self.emit(Op::Integer { op: Integer::Bfe, bits: ty.bits(), signed, d, a, b, c })
            }
            "bfi" => {
                let ty = self.ty()?;
                self.expect_operands(5, 5)?;
                let (d, a, b) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, ty)?);
                let (c, e) = (self.s(3, word)?, self.s(4, word)?);
                self.emit(Op::Bfi { bits: ty.bits(), d, a, b, c, e })
            }
            "bfind" => {
                let shift = self.take("shiftamt");
                self.count(Integer::Bfind(shift), 32)
            }
            "popc" => self.count(Integer::Popc, 32),
            "clz" => self.count(Integer::Clz, 32),
            "brev" => self.count(Integer::Brev, 0),
            "lop3" => {
                let ty = self.ty()?;
                self.expect_operands(5, 5)?;
                let table = match self.operand(4)? {
                    Operand::Integer(table @ 0..=255) => *table as u8,
                    _ => return self.syntax("expected a table from 0 to 255"),
                };
                let (d, a, b, c) = (self.d(0, 32)?, self.s(1, ty)?, self.s(2, ty)?, self.s(3, ty)?);
                let op = Integer::Lop3(table);
                self.emit(Op::Integer { op, bits: 32, signed: false, d, a, b, c })
            }
            "bmsk" | "szext" => {
                let clamp = self.need(&[("clamp", true), ("wrap", false)], "mode")?;
                let ty = self.ty()?;
                self.expect_operands(3, 3)?;
                let (d, a, b) = (self.d(0, 32)?, self.s(1, ty)?, self.s(2, word)?);
                let op = match self.base {
                    "bmsk" => Integer::BitMask { clamp },
                    _ => Integer::Extend { clamp },
                };
                let signed = matches!(ty, Type::Signed(_));
                self.emit(Op::Integer { op, bits: 32, signed, d, a, b, c: a })
            }
            "prmt" => {
                let mode = self.pick(&[
                    ("f4e", Permute::F4e),
                    ("b4e", Permute::B4e),
                    ("rc8", Permute::Rc8),
                    ("ecl", Permute::Ecl),
                    ("ecr", Permute::Ecr),
                    ("rc16", Permute::Rc16),
                ]);
                self.three(Integer::Prmt(mode.unwrap_or(Permute::Bytes)))
            }
            "dp4a" | "dp2a" => {
                let high =
                    self.base == "dp2a" && self.need(&[("lo", false), ("hi", true)], "half")?;
                let (a_type, b_type) = (self.ty()?, self.ty()?);
                let signed = (a_type == Type::Signed(32), b_type == Type::Signed(32));
                let op = match self.base {
                    "dp4a" => Integer::Dot4(signed.0, signed.1),
                    _ => Integer::Dot2(signed.0, signed.1, high),
                };
                self.expect_operands(4, 4)?;
                let (d, a, b, c) =
                    (self.d(0, 32)?, self.s(1, a_type)?, self.s(2, b_type)?, self.s(3, word)?);
                self.emit(Op::Integer { op, bits: 32, signed: false, d, a, b, c })
            }
            _ => self.unknown(),
        }
    }

    /// An operation of three operands of 32 bits.
    fn three(&mut self, op: Integer) -> Result<(), Error> {
        let ty = self.ty()?;
        if ty != Type::Bits(32) {
            return self.bad_type();
        }
        self.expect_operands(4, 4)?;
        let (d, a, b, c) = (self.d(0, 32)?, self.s(1, ty)?, self.s(2, ty)?, self.s(3, ty)?);
        self.emit(Op::Integer { op, bits: 32, signed: false, d, a, b, c })
    }

    /// An operation of one operand; the result has so many bits, 0 for those of the operand.
    fn count(&mut self, op: Integer, result: u32) -> Result<(), Error> {
        let ty = self.ty()?;
        self.expect_operands(2, 2)?;
        let d = self.d(0, if result == 0 { ty.bits() } else { result })?;
        let a = self.s(1, ty)?;
        let signed = matches!(ty, Type::Signed(_));
        self.emit(Op::Integer { op, bits: ty.bits(), signed, d, a, b: a, c: a })
    }

    fn float(&mut self, format: Format, packed: bool) -> Result<(), Error> {
        let op = match self.base {
            "add" => Float::Add,
            "sub" => Float::Sub,
            "mul" => Float::Mul,
            "fma" | "mad" => Float::Fma,
            "div" => Float::Div,
            "rcp" => Float::Rcp,
            "sqrt" => Float::Sqrt,
            "min" => Float::Min,
            "max" => Float::Max,
            "abs" => Float::Abs,
            "neg" => Float::Neg,
            "copysign" => Float::Copysign,
            _ => return self.unknown(),
        };
        let half = matches!(format, Format::F16 | Format::Bf16);
        let wide = matches!(format, Format::F32 | Format::F64);
        let allowed = match op {
            Float::Div | Float::Rcp | Float::Sqrt | Float::Copysign => wide && !packed,
            Float::Min | Float::Max | Float::Abs | Float::Neg => half || (wide && !packed),
            _ => half || format == Format::F32 || (format == Format::F64 && !packed),
        };
        if !allowed {
            return self.bad_type();
        }
        let rounding = self.rounding();
        if matches!(op, Float::Fma | Float::Div | Float::Rcp | Float::Sqrt) && rounding.is_none() {
            return self.need(&[], "rounding");
        }
        let style = Style {
            format,
            packed,
            rounding: rounding.unwrap_or(Rounding::Nearest),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            relu: self.take("relu"),
            nan: self.take("NaN"),
            xorsign: self.take("xorsign"),
        };
        if style.xorsign && !self.take("abs") {
            return self.unknown();
        }
        let ty = if packed { Type::Packed(format) } else { Type::Float(format) };
        if matches!(op, Float::Min | Float::Max) && self.num_operands() == 4 && !style.xorsign {
            return self.choose_of_three(op, style, ty);
        }
        let sources = match op {
            Float::Rcp | Float::Sqrt | Float::Abs | Float::Neg => 1,
            Float::Fma => 3,
            _ => 2,
        };
        self.expect_operands(sources + 1, sources + 1)?;
        // A second type is that of the terms or factors that are added to a wider last operand.
        let is_mixed =
            ty == Type::Float(Format::F32) && matches!(op, Float::Add | Float::Sub | Float::Fma);
        let narrow = if is_mixed { self.optional_type() } else { None };
        if let Some(narrow) = narrow {
            if !matches!(narrow, Type::Float(Format::F16 | Format::Bf16)) {
                return self.bad_type();
            }
            let (d, a) = (self.d(0, ty.bits())?, self.widened(1, narrow)?);
            let b = if op == Float::Fma { self.widened(2, narrow)? } else { self.s(2, ty)? };
            let c = if op == Float::Fma { self.s(3, ty)? } else { a };
            return self.emit(Op::Float { op, style, d, a, b, c });
        }
        let (d, a) = (self.d(0, ty.bits())?, self.s(1, ty)?);
        let b = if sources >= 2 { self.s(2, ty)? } else { a };
        let c = if sources >= 3 { self.s(3, ty)? } else { a };
        self.emit(Op::Float { op, style, d, a, b, c })
    }

    /// A source of 16 bits as an f32.
    fn widened(&mut self, index: usize, from: Type) -> Result<Reg, Error> {
        let a = self.s(index, from)?;
        let d = self.builder.new_registers(1, self.at())?;
        let to = Type::Float(Format::F32);
        self.emit(Op::Convert(Box::new(Convert {
            d,
            a,
            b: None,
            to,
            from,
            rounding: Rounding::Nearest,
            to_integer: None,
            ftz: false,
            sat: false,
            satfinite: false,
            relu: false,
            register_mask: bit_mask(to.bits()),
        })))?;
        Ok(d)
    }

    /// `min` and `max` of three operands: of two, then with the third.
    fn choose_of_three(&mut self, op: Float, style: Style, ty: Type) -> Result<(), Error> {
        let d = self.d(0, ty.bits())?;
        let (a, b, c) = (self.s(1, ty)?, self.s(2, ty)?, self.s(3, ty)?);
        let first = self.builder.new_registers(1, self.at())?;
        self.emit(Op::Float { op, style, d: first, a, b, c: a })?;
        self.emit(Op::Float { op, style, d, a: first, b: c, c: a })
    }

    fn approximate(&mut self, format: Format, packed: bool) -> Result<(), Error> {
        let full = self.take("full");
        if !full && !self.take("approx") {
            return self.unknown();
        }
        let op = match self.base {
            "div" if full => Approximate::DivFull,
            "div" => Approximate::Div,
            "rcp" => Approximate::Rcp,
            "rsqrt" => Approximate::Rsqrt,
            "sqrt" => Approximate::Sqrt,
            "ex2" => Approximate::Exp2,
            "lg2" => Approximate::Log2,
            "sin" => Approximate::Sin,
            "cos" => Approximate::Cos,
            "tanh" => Approximate::Tanh,
            _ => return self.unknown(),
        };
        let small = matches!(op, Approximate::Exp2 | Approximate::Tanh);
        let double = matches!(op, Approximate::Rcp | Approximate::Rsqrt);
        match format {
            Format::F32 if !packed => {}
            Format::F64 if double && !packed => {}
            Format::F16 | Format::Bf16 if small => {}
            _ => return self.bad_type(),
        }
        let ftz = self.take("ftz");
        let ty = if packed { Type::Packed(format) } else { Type::Float(format) };
        let sources = if matches!(op, Approximate::Div | Approximate::DivFull) { 2 } else { 1 };
        self.expect_operands(sources + 1, sources + 1)?;
        let (d, a) = (self.d(0, ty.bits())?, self.s(1, ty)?);
        let b = if sources == 2 { self.s(2, ty)? } else { a };
        self.emit(Op::Approximate { op, format, packed, ftz, d, a, b })
    }

    pub(super) fn testp(&mut self) -> Result<(), Error> {
        let property = self.need(
            &[
                ("finite", Property::Finite),
                ("infinite", Property::Infinite),
                ("number", Property::Number),
                ("notanumber", Property::NotANumber),
                ("normal", Property::Normal),
                ("subnormal", Property::Subnormal),
            ],
            "property",
        )?;
        let ty = self.ty()?;
        let Type::Float(format @ (Format::F32 | Format::F64)) = ty else { return self.bad_type() };
        self.expect_operands(2, 2)?;
        let (d, a) = (self.d(0, 1)?, self.s(1, ty)?);
        self.emit(Op::TestProperty { property, format, d, a })
    }

    /// `setp` and `set`.
    pub(super) fn compare(&mut self) -> Result<(), Error> {
        use Compare::{Eq, Ge, Gt, Le, Lt, Nan, Ne, Numbers};
        let (compare, unordered) = self.need(
            &[
                ("eq", (Eq, false)),
                ("ne", (Ne, false)),
                ("lt", (Lt, false)),
                ("le", (Le, false)),
                ("gt", (Gt, false)),
                ("ge", (Ge, false)),
                ("lo", (Lt, false)),
                ("ls", (Le, false)),
                ("hi", (Gt, false)),
                ("hs", (Ge, false)),
                ("equ", (Eq, true)),
                ("neu", (Ne, true)),
                ("ltu", (Lt, true)),
                ("leu", (Le, true)),
                ("gtu", (Gt, true)),
                ("geu", (Ge, true)),
                ("num", (Numbers, false)),
                ("nan", (Nan, false)),
            ],
            "comparison",
        )?;
        let combine =
            self.pick(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]);
        let ftz = self.take("ftz");
        let result = if self.base == "set" { Some(self.ty()?) } else { None };
        let ty = self.ty()?;
        let operands = if combine.is_some() { 4 } else { 3 };
        self.expect_operands(operands, operands)?;
        let (truth, d, complement) = match result {
            Some(ty) => {
                let truth = match ty {
                    Type::Float(Format::F32) => u64::from(1f32.to_bits()),
                    Type::Unsigned(32) | Type::Signed(32) | Type::Bits(32) => bit_mask(32),
                    Type::Unsigned(16) | Type::Signed(16) => bit_mask(16),
                    _ => return self.bad_type(),
                };
                (truth, self.d(0, ty.bits())?, SINK)
            }
            None => match self.operand(0)? {
                Operand::Pair(p, q) => {
                    let (p, _) = self.destination_register(p, 1)?;
                    let (q, _) = self.destination_register(q, 1)?;
                    (1, p, q)
                }
                p => (1, self.destination_register(p, 1)?.0, SINK),
            },
        };
        let (a, b) = (self.s(1, ty)?, self.s(2, ty)?);
        let combine = match combine {
            Some(combine) => {
                let (p, negate) = self.predicate(3)?;
                Some((combine, p, negate))
            }
            None => None,
        };
        self.emit(Op::Compare { compare, unordered, ty, ftz, truth, d, complement, a, b, combine })
    }

    pub(super) fn select(&mut self) -> Result<(), Error> {
        if self.base == "slct" {
            let ftz = self.take("ftz");
            let (ty, sign) = (self.ty()?, self.ty()?);
            self.expect_operands(4, 4)?;
            let (d, a, b) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, ty)?);
            let c = self.s(3, sign)?;
            let float = sign == Type::Float(Format::F32);
            return self.emit(Op::SelectSign { d, a, b, c, float, ftz });
        }
        let ty = self.ty()?;
        self.expect_operands(4, 4)?;
        let (d, a, b) = (self.d(0, ty.bits())?, self.s(1, ty)?, self.s(2, ty)?);
        match self.predicate(3)? {
            (p, false) => self.emit(Op::Select { d, a, b, p }),
            (p, true) => self.emit(Op::Select { d, a: b, b: a, p }),
        }
    }

    pub(super) fn mov(&mut self) -> Result<(), Error> {
        let ty = self.ty()?;
        self.expect_operands(2, 2)?;
        if let Operand::Vector(parts) = self.operand(1)? {
            let bits = self.part_bits(ty, parts.len())?;
            let parts = self.sources(1, Type::Bits(bits))?;
            let d = self.d(0, ty.bits())?;
            return self.emit(Op::Pack { d, parts, bits });
        }
        if let Operand::Vector(parts) = self.operand(0)? {
            let bits = self.part_bits(ty, parts.len())?;
            let parts = self.destinations(0, bits)?;
            let a = self.s(1, ty)?;
            return self.emit(Op::Unpack { parts, a, bits });
        }
        let (d, a) = (self.d(0, ty.bits())?, self.s(1, ty)?);
        self.emit(Op::Move { d, a })
    }

    fn part_bits(&self, ty: Type, parts: usize) -> Result<u32, Error> {
        match (ty.bits(), parts) {
            (bits @ (16 | 32 | 64), 2 | 4) if bits / parts as u32 >= 8 => Ok(bits / parts as u32),
            _ => self.syntax("expected a vector of 2 or 4 parts"),
        }
    }

    pub(super) fn cvta(&mut self) -> Result<(), Error> {
        let to = self.take("to");
        let space = self.space();
        let ty = self.ty()?;
        self.expect_operands(2, 2)?;
        if ty.bits() != 64 || space == Space::Generic {
            return self.bad_type();
        }
        // A parameter of a call is local memory.
        let space = match (space, self.operand(1)?) {
            (Space::Parameter, Operand::Name(name, _)) => match self.symbol(name) {
                Some(Symbol::CallParameter(_)) => Space::Local,
                _ => space,
            },
            _ => space,
        };
        let (d, a) = (self.d(0, 64)?, self.s(1, ty)?);
        self.emit(Op::ConvertAddress { d, a, space, to })
    }

    pub(super) fn isspacep(&mut self) -> Result<(), Error> {
        let space = self.space();
        self.expect_operands(2, 2)?;
        let (d, a) = (self.d(0, 1)?, self.s(1, Type::Bits(64))?);
        self.emit(Op::IsSpace { d, a, space })
    }

    fn convert_pack(&mut self) -> Result<(), Error> {
        if !self.take("sat") {
            return self.unknown();
        }
        let (ty, from) = (self.ty()?, self.ty()?);
        let third = self.optional_type().is_some();
        let word = Type::Bits(32);
        if !matches!(ty, Type::Signed(8 | 16) | Type::Unsigned(8 | 16)) || from != Type::Signed(32)
        {
            return self.bad_type();
        }
        let operands = if third { 4 } else { 3 };
        self.expect_operands(operands, operands)?;
        let (d, a, b) = (self.d(0, 32)?, self.s(1, from)?, self.s(2, from)?);
        let c = if third { Some(self.s(3, word)?) } else { None };
        self.emit(Op::ConvertPack { ty, d, a, b, c })
    }

    pub(super) fn cvt(&mut self) -> Result<(), Error> {
        if self.take("pack") {
            return self.convert_pack();
        }
        let to_integer = self.pick(&[
            ("rni", Rounding::Nearest),
            ("rzi", Rounding::Zero),
            ("rmi", Rounding::Down),
            ("rpi", Rounding::Up),
        ]);
        let rounding = self.rounding();
        let ftz = self.take("ftz");
        let sat = self.take("sat");
        let satfinite = self.take("satfinite");
        let relu = self.take("relu");
        let (to, from) = (self.ty()?, self.ty()?);
        let float = |ty: Type| matches!(ty, Type::Float(_) | Type::Packed(_));
        let known = |ty: Type| {
            matches!(ty, Type::Float(_) | Type::Packed(_))
                || matches!(ty, Type::Signed(_) | Type::Unsigned(_))
        };
        if !known(to) || !known(from) || matches!((to, from), (Type::Packed(Format::F32), _)) {
            return self.bad_type();
        }
        let small = |ty: Type| matches!(ty, Type::Float(Format::E4m3 | Format::E5m2));
        if small(to) || small(from) || (!float(to) && matches!(from, Type::Packed(_))) {
            return self.bad_type();
        }
        match (float(to), float(from)) {
            (true, false) if rounding.is_none() => return self.need(&[], "rounding"),
            (false, true) if to_integer.is_none() => return self.need(&[], "rounding"),
            _ => {}
        }
        // The packed formats take two sources, unless the source is packed as well.
        let two = matches!(to, Type::Packed(_)) && !matches!(from, Type::Packed(_));
        self.expect_operands(if two { 3 } else { 2 }, if two { 3 } else { 2 })?;
        let (d, bits) = self.destination_register(self.operand(0)?, to.bits())?;
        let a = self.s(1, from)?;
        let b = if two { Some(self.s(2, from)?) } else { None };
        let rounding = rounding.unwrap_or(Rounding::Nearest);
        let register_mask = bit_mask(bits);
        self.emit(Op::Convert(Box::new(Convert {
            d,
            a,
            b,
            to,
            from,
            rounding,
            to_integer,
            ftz,
            sat,
            satfinite,
            relu,
            register_mask,
        })))
    }
}
