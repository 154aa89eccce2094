//! Loops over one array of an instruction, for lowerings.

use super::{Direction, InstructionRef, Op, Reads, RuntimeVariable};
use crate::hlo::Module;
use tc_ir::{Context, Expr, IndexingMap, Interval, Var};

/// Loops over the elements of one array of an instruction, and the elements of other arrays that
/// each iteration accesses.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    /// Dimension variables are the index of the array that the loops run over, and range variables
    /// tell the accesses of one iteration apart. Without results.
    pub domain: IndexingMap,
    /// The index of the array that the loops run over.
    pub index: Vec<Expr>,
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
        let op = Op::of(module, at, false);
        of(ctx, &op, (output, operands), Direction::OutputToInput)
    }

    /// For each of the operands, loops over those of its elements that an output has a place for; they
    /// access the output. Dimension and range variables start from 0. `None` as above.
    pub fn over_operands(
        ctx: &Context,
        module: &Module,
        at: InstructionRef,
        output: usize,
        operands: &[usize],
    ) -> Option<Vec<Self>> {
        let op = Op::of(module, at, false);
        let over = |operand: &usize| {
            let mut accesses = of(ctx, &op, (output, &[*operand]), Direction::InputToOutput)?;
            if !accesses.domain.constraints.is_empty() {
                accesses.domain.simplify(ctx);
            }
            Some(accesses.from_zero(ctx))
        };
        operands.iter().map(over).collect()
    }

    /// The same with dimension and range variables that start from 0.
    pub fn from_zero(mut self, ctx: &Context) -> Self {
        let intervals = self.domain.intervals(ctx);
        let first = |var| match var {
            Var::Runtime(_) => 0,
            _ => intervals.of(var).lo,
        };
        if self.is_empty(ctx) || self.domain.vars().all(|(var, _)| first(var) == 0) {
            return self;
        }
        let shifted = |var: Var| Some(ctx.add(ctx.var(var), ctx.constant(first(var))));
        self.domain.substitute(ctx, &shifted);
        for runtime in &mut self.runtimes {
            runtime.map.substitute(ctx, &shifted);
        }
        for index in std::iter::once(&mut self.index).chain(&mut self.indices) {
            *index = ctx.substitute_all(index, &shifted);
        }
        let dims = (0..).map(Var::Dim).zip(&mut self.domain.dims);
        for (var, variable) in dims.chain((0..).map(Var::Range).zip(&mut self.domain.ranges)) {
            let Interval { lo, hi } = intervals.of(var);
            variable.set_interval(ctx, Interval::new(0, hi - lo));
        }
        self
    }

    /// Whether nothing is accessed.
    pub fn is_empty(&self, ctx: &Context) -> bool {
        self.domain.is_known_empty(ctx)
    }
}

fn of(
    ctx: &Context,
    op: &Op,
    (output, operands): (usize, &[usize]),
    direction: Direction,
) -> Option<Accesses> {
    let Reads::Related(relation) = op.reads(output, operands)? else { return None };
    let is_complete = relation.operands.len() == operands.len();
    is_complete.then(|| relation.accesses(ctx, direction))?
}
