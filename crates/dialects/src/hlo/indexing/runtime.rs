//! Runtime variables whose value is known before the program runs.
//!
//! An index that is read from a constant, an `iota`, or what integer arithmetic and moves of elements
//! make of them is an expression of the position that it is read at. Where it is shown to lie in the
//! bounds of the runtime variable (outside, the operation would move it) the expression takes the
//! place of the variable. Integer types wrap around, so that every value on the way must be shown to
//! fit in its type.

use super::{Direction, Indexing, InstructionRef, Op, OperandIndexing, Reads, RuntimeSource};
use crate::{
    element::{ElementKind, ElementType},
    hlo::{Attribute, Literal, Opcode},
};
use tc_ir::{Context, Expr, IndexingMap, Interval, Var};

/// How many operations are looked through on the way to a value.
const MAX_DEPTH: u32 = 8;

/// Replaces the runtime variables of a map whose values are known.
pub(super) fn replace_known(analysis: &Indexing, indexing: &mut OperandIndexing) {
    let ctx = analysis.context();
    let mut values: Vec<Option<Expr>> = vec![None; indexing.runtimes.len()];
    for (number, runtime) in indexing.runtimes.iter().enumerate() {
        let RuntimeSource::Element(source) = runtime.source else { continue };
        let reader = Reader { analysis, ctx, map: &runtime.map };
        let Some(value) = reader.value(source, runtime.map.results.clone(), MAX_DEPTH) else {
            continue;
        };
        let variable = indexing.map.runtimes.get(number);
        let Some(bounds) = variable.and_then(|it| it.constant_interval(ctx)) else { continue };
        let range = reader.range(value);
        let stays = if analysis.like_xla && runtime.moved_into.is_some() {
            !bounds.intersect(range).is_empty()
        } else {
            bounds.covers(range)
        };
        values[number] = stays.then_some(value);
    }
    let known: Vec<Var> = (0..)
        .zip(&values)
        .filter(|(_, value)| value.is_some())
        .map(|(number, _)| Var::Runtime(number))
        .collect();
    if known.is_empty() {
        return;
    }
    let runtimes = indexing.runtimes.iter_mut().map(|runtime| &mut runtime.map);
    let others = indexing.replica.iter_mut().chain(&mut indexing.exceptions);
    for map in runtimes.chain(others).chain([&mut indexing.map]) {
        map.substitute(ctx, &|var| match var {
            Var::Runtime(number) => *values.get(number as usize)?,
            _ => None,
        });
        // Nothing uses them any more, so that this does not fail.
        let _ = map.compress(ctx, &known);
    }
    let mut values = values.iter();
    indexing.runtimes.retain(|_| values.next().is_some_and(|value| value.is_none()));
    indexing.simplify(ctx);
}

struct Reader<'a> {
    analysis: &'a Indexing<'a>,
    ctx: &'a Context,
    /// The map whose variables the expressions have.
    map: &'a IndexingMap,
}

impl Reader<'_> {
    fn range(&self, expr: Expr) -> Interval {
        let intervals = self.map.intervals(self.ctx);
        self.ctx.interval_of(expr, &|var| intervals.of(var))
    }

    /// The value of an element, if it is known and fits in the type of the instruction.
    fn value(&self, at: InstructionRef, index: Vec<Expr>, depth: u32) -> Option<Expr> {
        let value = self.unchecked(at, index, depth)?;
        let ty = self.analysis.instruction(at).array()?.element_type;
        fits(ty, self.range(value)).then_some(value)
    }

    fn unchecked(&self, at: InstructionRef, index: Vec<Expr>, depth: u32) -> Option<Expr> {
        let depth = depth.checked_sub(1)?;
        let instruction = self.analysis.instruction(at);
        let op = Op::new(self.analysis, at);
        let operand = |number: usize| -> Option<Expr> {
            self.value(op.operand_ref(number)?, index.clone(), depth)
        };
        let ctx = self.ctx;
        Some(match instruction.opcode {
            Opcode::Constant => self.element(instruction.literal()?, &index, at)?,
            Opcode::Iota => {
                let dim = usize::try_from(instruction.integer(Attribute::IotaDimension)?).ok()?;
                *index.get(dim)?
            }
            Opcode::Broadcast
            | Opcode::Transpose
            | Opcode::Reshape
            | Opcode::Bitcast
            | Opcode::Reverse
            | Opcode::Slice => {
                let Reads::Related(relation) = op.reads(0, &[0])? else { return None };
                let step = relation.map(ctx, Direction::OutputToInput)?.map;
                let index = ctx.substitute_all(&step.results, &|var| match var {
                    Var::Dim(number) => index.get(number as usize).copied(),
                    _ => None,
                });
                self.value(op.operand_ref(0)?, index, depth)?
            }
            Opcode::Copy | Opcode::Convert => operand(0)?,
            Opcode::Negate => ctx.neg(operand(0)?),
            Opcode::Add => ctx.add(operand(0)?, operand(1)?),
            Opcode::Subtract => ctx.sub(operand(0)?, operand(1)?),
            Opcode::Multiply => ctx.mul(operand(0)?, operand(1)?),
            Opcode::Minimum => ctx.min(operand(0)?, operand(1)?),
            Opcode::Maximum => ctx.max(operand(0)?, operand(1)?),
            _ => return None,
        })
    }

    /// An element of a constant: of one with several values, only at a known position.
    fn element(&self, literal: &Literal, index: &[Expr], at: InstructionRef) -> Option<Expr> {
        let literal = literal.as_array()?;
        let mut position = 0i64;
        if !literal.is_splat {
            let dims = &self.analysis.instruction(at).array()?.dims;
            for (&index, &extent) in index.iter().zip(dims) {
                let index = self.range(index).as_point()?;
                position = position.checked_mul(extent)?.checked_add(index)?;
            }
        }
        let value = literal.integer(usize::try_from(position).ok()?)?;
        Some(self.ctx.constant(i64::try_from(value).ok()?))
    }
}

/// Whether an integer type has all of these values.
fn fits(ty: ElementType, range: Interval) -> bool {
    let (least, largest) = ty.integer_range();
    matches!(ty.kind(), ElementKind::Signed | ElementKind::Unsigned)
        && range.is_bounded()
        && least <= i128::from(range.lo)
        && i128::from(range.hi) <= largest
}
