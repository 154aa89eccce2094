//! Modifiers and operands of one instruction.

use smallvec::SmallVec;

use super::super::{
    error::{Error, Position},
    module::*,
    syntax::{Instruction as Written, Operand, Space},
};
use super::{Body, Builder, Symbol, syntax, unsupported};

/// An instruction that is being decoded: the modifiers that nothing has taken yet, and the operands.
pub(super) struct Decoding<'d, 's, 'a> {
    pub builder: &'d mut Builder<'s, 'a>,
    pub body: &'d Body<'d, 'a>,
    pub written: &'d Written<'a>,
    pub base: &'a str,
    modifiers: SmallVec<[&'a str; 12]>,
    pub together: Together,
}

/// Special registers by name.
const SPECIALS: &[(&str, Special)] = &[
    ("%tid.x", Special::Thread(0)),
    ("%tid.y", Special::Thread(1)),
    ("%tid.z", Special::Thread(2)),
    ("%ntid.x", Special::BlockSize(0)),
    ("%ntid.y", Special::BlockSize(1)),
    ("%ntid.z", Special::BlockSize(2)),
    ("%ctaid.x", Special::Block(0)),
    ("%ctaid.y", Special::Block(1)),
    ("%ctaid.z", Special::Block(2)),
    ("%nctaid.x", Special::GridSize(0)),
    ("%nctaid.y", Special::GridSize(1)),
    ("%nctaid.z", Special::GridSize(2)),
    ("%laneid", Special::Lane),
    ("%warpid", Special::Warp),
    ("%nwarpid", Special::NumWarps),
    ("%lanemask_eq", Special::LaneMask(LaneMask::Eq)),
    ("%lanemask_lt", Special::LaneMask(LaneMask::Lt)),
    ("%lanemask_le", Special::LaneMask(LaneMask::Le)),
    ("%lanemask_gt", Special::LaneMask(LaneMask::Gt)),
    ("%lanemask_ge", Special::LaneMask(LaneMask::Ge)),
    ("%dynamic_smem_size", Special::DynamicShared),
    ("%total_smem_size", Special::TotalShared),
    // Clusters have one block.
    ("%clusterid.x", Special::Block(0)),
    ("%clusterid.y", Special::Block(1)),
    ("%clusterid.z", Special::Block(2)),
    ("%nclusterid.x", Special::GridSize(0)),
    ("%nclusterid.y", Special::GridSize(1)),
    ("%nclusterid.z", Special::GridSize(2)),
    ("%cluster_ctaid.x", Special::Zero),
    ("%cluster_ctaid.y", Special::Zero),
    ("%cluster_ctaid.z", Special::Zero),
    ("%cluster_nctaid.x", Special::One),
    ("%cluster_nctaid.y", Special::One),
    ("%cluster_nctaid.z", Special::One),
    ("%cluster_ctarank", Special::Zero),
    ("%cluster_nctarank", Special::One),
];

/// The bits of a type of so many bits.
pub(super) fn bit_mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl<'d, 's, 'a> Decoding<'d, 's, 'a> {
    pub fn new(
        builder: &'d mut Builder<'s, 'a>,
        body: &'d Body<'d, 'a>,
        written: &'d Written<'a>,
    ) -> Result<Self, Error> {
        let mut parts = written.opcode.split('.');
        let base = parts.next().unwrap_or_default();
        let modifiers = parts.collect();
        Ok(Self { builder, body, written, base, modifiers, together: Together::Free })
    }

    pub fn at(&self) -> Position {
        self.written.at
    }

    pub fn syntax<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        syntax(self.at(), message)
    }

    /// Takes a modifier if it is there.
    pub fn take(&mut self, name: &str) -> bool {
        match self.modifiers.iter().position(|m| *m == name) {
            Some(index) => {
                self.modifiers.remove(index);
                true
            }
            None => false,
        }
    }

    /// Whether a modifier is there.
    pub fn has(&self, name: &str) -> bool {
        self.modifiers.contains(&name)
    }

    /// Takes the first modifier that a table knows.
    pub fn pick<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let known = |m: &&str| table.iter().any(|(name, _)| name == m);
        let index = self.modifiers.iter().position(known)?;
        let name = self.modifiers.remove(index);
        table.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Takes a modifier of a table, which must be there.
    pub fn need<T: Copy>(&mut self, table: &[(&str, T)], what: &str) -> Result<T, Error> {
        match self.pick(table) {
            Some(value) => Ok(value),
            None => {
                let found = self.modifiers.first().map_or(String::new(), |m| format!(" '.{m}'"));
                unsupported(self.at(), format!("{what}{found} of '{}'", self.written.opcode))
            }
        }
    }

    /// Takes the first modifier that is a type, if any.
    pub fn optional_type(&mut self) -> Option<Type> {
        let index = self.modifiers.iter().position(|m| Type::parse(m).is_some())?;
        Type::parse(self.modifiers.remove(index))
    }

    /// Takes the first modifier that is a type.
    pub fn ty(&mut self) -> Result<Type, Error> {
        match self.optional_type() {
            Some(ty) => Ok(ty),
            None => unsupported(self.at(), format!("type of '{}'", self.written.opcode)),
        }
    }

    /// Takes `.mMnNkK`.
    pub fn shape(&mut self) -> Result<&'a str, Error> {
        let shape =
            |m: &&str| m.starts_with('m') && m[1..].starts_with(|c: char| c.is_ascii_digit());
        match self.modifiers.iter().position(shape) {
            Some(index) => Ok(self.modifiers.remove(index)),
            None => unsupported(self.at(), format!("shape of '{}'", self.written.opcode)),
        }
    }

    /// Takes a modifier with this prefix.
    pub fn take_prefix(&mut self, prefix: &str) -> Option<&'a str> {
        let index = self.modifiers.iter().position(|m| m.starts_with(prefix))?;
        Some(self.modifiers.remove(index))
    }

    /// Fails if a modifier is left that nothing took.
    pub fn finish(&self) -> Result<(), Error> {
        match self.modifiers.first() {
            None => Ok(()),
            Some(modifier) => {
                let opcode = self.written.opcode;
                let column = opcode.find(&format!(".{modifier}")).unwrap_or(0) as u32;
                let at = Position { column: self.at().column + column, ..self.at() };
                unsupported(at, format!("modifier '.{modifier}' of '{opcode}'"))
            }
        }
    }

    /// The instruction as a whole is unknown.
    pub fn unknown<T>(&self) -> Result<T, Error> {
        unsupported(self.at(), format!("instruction '{}'", self.written.opcode))
    }

    /// A type that the instruction does not have.
    pub fn bad_type<T>(&self) -> Result<T, Error> {
        unsupported(self.at(), format!("type of '{}'", self.written.opcode))
    }

    /// Fails unless the number of operands lies in a range.
    pub fn expect_operands(&self, low: usize, high: usize) -> Result<(), Error> {
        let found = self.written.operands.len();
        if (low..=high).contains(&found) {
            return Ok(());
        }
        let range = if low == high { low.to_string() } else { format!("{low} to {high}") };
        self.syntax(format!("expected {range} operands of '{}', found {found}", self.base))
    }

    pub fn operand(&self, index: usize) -> Result<&'d Operand<'a>, Error> {
        match self.written.operands.get(index) {
            Some(operand) => Ok(operand),
            None => self.syntax(format!("expected an operand {} of '{}'", index + 1, self.base)),
        }
    }

    pub fn num_operands(&self) -> usize {
        self.written.operands.len()
    }

    fn register(&self, name: &'a str, bits: u32) -> Result<Option<(Reg, u32)>, Error> {
        let Some((reg, declared)) = self.body.register(name) else { return Ok(None) };
        if declared < bits || (bits == 1) != (declared == 1) {
            return self.syntax(format!(
                "expected a register of {bits} bits, found '{name}' of {declared} bits"
            ));
        }
        Ok(Some((reg, declared)))
    }

    /// A destination register and its width.
    pub fn destination_register(
        &self,
        operand: &Operand<'a>,
        bits: u32,
    ) -> Result<(Reg, u32), Error> {
        match operand {
            Operand::Sink => Ok((SINK, bits)),
            Operand::Name(name, 0) => match self.register(name, bits)? {
                Some(found) => Ok(found),
                None => self.syntax(format!("expected a register, found '{name}'")),
            },
            _ => self.syntax("expected a register as destination"),
        }
    }

    /// The destination at an index.
    pub fn d(&self, index: usize, bits: u32) -> Result<Reg, Error> {
        Ok(self.destination_register(self.operand(index)?, bits)?.0)
    }

    /// The source at an index, of a type.
    pub fn s(&mut self, index: usize, ty: Type) -> Result<Reg, Error> {
        let operand = self.operand(index)?;
        self.source(operand, ty)
    }

    /// A source: a register, special register, constant or address.
    pub fn source(&mut self, operand: &Operand<'a>, ty: Type) -> Result<Reg, Error> {
        let bits = ty.bits();
        let mask = bit_mask(bits);
        match operand {
            Operand::Name(name, offset) => {
                if let Some((reg, _)) = self.register(name, bits)? {
                    if *offset != 0 {
                        return self.syntax(format!("unexpected displacement of '{name}'"));
                    }
                    return Ok(reg);
                }
                if let Some((_, special)) = SPECIALS.iter().find(|(key, _)| key == name) {
                    return Ok(self.builder.special(*special));
                }
                match self.symbol(name) {
                    Some(symbol) => Ok(self.builder.symbol_address(symbol, *offset)),
                    None if name.starts_with('%') => unsupported(
                        self.at(),
                        format!("special register, or undeclared register '{name}'"),
                    ),
                    None => self.syntax(format!("expected an operand, found '{name}'")),
                }
            }
            Operand::Integer(value) => {
                Ok(self.builder.constant(Constant::Bits(*value as u64 & mask)))
            }
            Operand::Single(value) => {
                let value = match bits {
                    64 => f64::from(f32::from_bits(*value)).to_bits(),
                    _ => u64::from(*value),
                };
                Ok(self.builder.constant(Constant::Bits(value & mask)))
            }
            Operand::Double(value) => {
                let value = match ty {
                    Type::Float(Format::F32) => {
                        u64::from((f64::from_bits(*value) as f32).to_bits())
                    }
                    _ => *value,
                };
                Ok(self.builder.constant(Constant::Bits(value & mask)))
            }
            _ => self.syntax("expected a register or a constant"),
        }
    }

    /// A source predicate, and whether it is negated.
    pub fn predicate(&mut self, index: usize) -> Result<(Reg, bool), Error> {
        match self.operand(index)? {
            Operand::Not(name) => Ok((self.source(&Operand::Name(name, 0), Type::Pred)?, true)),
            operand => Ok((self.source(operand, Type::Pred)?, false)),
        }
    }

    /// The variable with this name.
    pub fn symbol(&self, name: &'a str) -> Option<Symbol> {
        self.body.variable(name).or_else(|| self.builder.module_symbol(name))
    }

    /// Elements of a vector operand, or the operand itself.
    pub fn elements(&self, index: usize) -> Result<&'d [Operand<'a>], Error> {
        match self.operand(index)? {
            Operand::Vector(elements) => Ok(elements),
            operand => Ok(std::slice::from_ref(operand)),
        }
    }

    /// The destinations of a vector.
    pub fn destinations(&self, index: usize, bits: u32) -> Result<Regs, Error> {
        let elements = self.elements(index)?;
        elements.iter().map(|e| Ok(self.destination_register(e, bits)?.0)).collect()
    }

    /// The sources of a vector.
    pub fn sources(&mut self, index: usize, ty: Type) -> Result<Regs, Error> {
        let elements = self.elements(index)?;
        elements.iter().map(|e| self.source(e, ty)).collect()
    }

    /// An address, and the variable that it starts from.
    pub fn address(&mut self, index: usize) -> Result<(Address, Option<Symbol>), Error> {
        match self.operand(index)? {
            Operand::Address { base, offset, coordinates } if coordinates.is_empty() => {
                let symbol = match base.as_ref() {
                    Operand::Name(name, _) if self.body.register(name).is_none() => {
                        self.symbol(name)
                    }
                    _ => None,
                };
                let ty = match base.as_ref() {
                    Operand::Name(name, _) if self.body.register(name).is_some() => Type::Bits(32),
                    _ => Type::Bits(64),
                };
                let base = self.source(base, ty)?;
                Ok((Address { base, offset: *offset }, symbol))
            }
            _ => self.syntax("expected an address"),
        }
    }

    /// Appends the instruction, guarded as written.
    pub fn emit(&mut self, op: Op) -> Result<(), Error> {
        self.finish()?;
        let guard = match self.written.guard {
            None => None,
            Some((name, negated)) => match self.register(name, 1)? {
                Some((reg, _)) => Some((reg, !negated)),
                None => return self.syntax(format!("expected a predicate, found '{name}'")),
            },
        };
        let kind = super::kind(self.written);
        let at = self.at();
        self.builder.push(Instruction { op, guard, together: self.together, at, kind });
        Ok(())
    }

    /// Takes a state space; generic if there is none.
    pub fn space(&mut self) -> Space {
        const SPACES: &[(&str, Space)] = &[
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::Cluster),
            ("local", Space::Local),
            ("const", Space::Constant),
            ("param", Space::Parameter),
            ("param::entry", Space::Parameter),
            ("param::func", Space::Parameter),
        ];
        self.pick(SPACES).unwrap_or(Space::Generic)
    }

    /// Takes `.rn` and the like.
    pub fn rounding(&mut self) -> Option<Rounding> {
        const ROUNDINGS: &[(&str, Rounding)] = &[
            ("rn", Rounding::Nearest),
            ("rna", Rounding::Away),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ];
        self.pick(ROUNDINGS)
    }
}
