//! Loops over one array of an instruction, for lowerings.

use super::{Direction, InstructionRef, Op, Reads, RuntimeVariable};
use crate::hlo::Module;
use tc_ir::{Constraint, Context, Expr, IndexingMap, Variable};

/// Loops over the elements of one array of an instruction, and the elements of other arrays that
/// each iteration accesses.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Dimension variables are the index of the array that the loops run over, and range variables
    /// tell the accesses of one iteration apart. Without results.
    pub domain: IndexingMap,
    /// The dimension variables as they are where constraints do not narrow them.
    pub(super) dims: Vec<Variable>,
    /// The index of each accessed array.
    pub indices: Vec<Vec<Expr>>,
    /// What the runtime variables stand for.
    pub runtimes: Vec<RuntimeVariable>,
}

impl Accesses {
    /// Loops over an output that read operands: the dimension variables are the index of the whole
    /// output, and constraints say at which points there are elements to read. `None` if the
    /// instruction has no such relation.
    pub fn over_output(
        ctx: &Context,
        module: &Module,
        at: InstructionRef,
        output: usize,
        operands: &[usize],
    ) -> Option<Self> {
        let mut accesses = of(ctx, module, at, (output, operands), Direction::OutputToInput)?;
        let Self { domain, dims, .. } = &mut accesses;
        for (number, (narrowed, dim)) in (0..).zip(domain.dims.iter_mut().zip(dims)) {
            if narrowed != dim {
                let interval = narrowed.constant_interval(ctx)?;
                domain.constraints.push(Constraint { expr: ctx.dim(number), interval });
                *narrowed = dim.clone();
            }
        }
        Some(accesses)
    }

    /// Loops over those elements of an operand that an output has a place for; they access the
    /// output.
    pub fn over_operand(
        ctx: &Context,
        module: &Module,
        at: InstructionRef,
        output: usize,
        operand: usize,
    ) -> Option<Self> {
        of(ctx, module, at, (output, &[operand]), Direction::InputToOutput)
    }

    /// Whether nothing is accessed.
    pub fn is_empty(&self, ctx: &Context) -> bool {
        self.domain.is_known_empty(ctx)
    }
}

fn of(
    ctx: &Context,
    module: &Module,
    at: InstructionRef,
    (output, operands): (usize, &[usize]),
    direction: Direction,
) -> Option<Accesses> {
    let op = Op::of(module, at, false);
    let Reads::Related(relation) = op.reads(output, operands)? else { return None };
    let is_complete = relation.operands.len() == operands.len();
    is_complete.then(|| relation.accesses(ctx, direction))?
}
