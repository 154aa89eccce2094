//! The parts of an operation with maps, for fusion.

use super::legality::Rejection;
use melior::ir::{Attribute, ValueLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    imap::{
        Access, AnyIndexed, Indexed, Runtime, Scatter, View, extents::reaches_all,
        schedule::is_scheduled,
    },
    mlir::{self, Blk, Op},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
};

/// An operation taken apart. Its accesses use no variable that has one value.
pub(super) struct Candidate<'c> {
    pub(super) generic: AnyIndexed<'c>,
    pub(super) view: View<'c>,
}

impl<'c> Candidate<'c> {
    pub(super) fn new(ir: &Context, generic: impl Into<AnyIndexed<'c>>) -> Self {
        let generic = generic.into();
        let mut view = View::of(ir, generic);
        let fixed: HashMap<Var, Expr> = view
            .domain
            .vars()
            .filter(|(var, _)| !matches!(var, Var::Runtime(_)))
            .filter_map(|(var, variable)| {
                let value = variable.constant_interval(ir)?.as_point()?;
                Some((var, ir.constant(value)))
            })
            .collect();
        if !fixed.is_empty() {
            for access in view.accesses_mut() {
                access.substitute(ir, &|var| fixed.get(&var).copied());
                for subscript in &mut access.subscripts {
                    *subscript = ir.canonicalize(*subscript);
                }
            }
        }
        Self { generic, view }
    }

    /// Whether it may become another operation.
    pub(super) fn check_schedule(&self) -> Result<(), Rejection> {
        if is_scheduled(self.generic.op()) { Err(Rejection::Scheduled) } else { Ok(()) }
    }

    /// Where the result is written; a candidate for a producer has one result.
    pub(super) fn output(&self) -> &Access<'c> {
        &self.view.outputs[0]
    }

    /// The numbers of the inputs that read the result of another operation.
    pub(super) fn reads_of(&self, producer: AnyIndexed<'c>) -> Vec<usize> {
        let inputs = self.view.inputs.iter().enumerate();
        let is_read = |access: &Access<'c>| mlir::defining_op(access.value) == Some(producer.op());
        inputs.filter(|(_, access)| is_read(access)).map(|(number, _)| number).collect()
    }

    /// Whether every element of the destination is seen to be computed from inputs.
    pub(super) fn covers_destination(&self, ir: &Context) -> bool {
        let (domain, output) = (&self.view.domain, self.output());
        let runtimes = self.view.runtime_values();
        domain.constraints.is_empty()
            && reaches_all(ir, domain, &runtimes, &output.subscripts, output.value)
    }

    /// Whether expressions depend on dimension or range variables, also through the places that
    /// runtime variables are read from.
    pub(super) fn varies(&self, ir: &Context, exprs: &[Expr]) -> bool {
        let mut work: Vec<Var> = ir.vars_of_all(exprs).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(var) = work.pop() {
            let Var::Runtime(number) = var else { return true };
            if seen.insert(number)
                && let Some(access) =
                    self.view.runtimes.get(number as usize).and_then(Runtime::access)
            {
                work.extend(ir.vars_of_all(&access.exprs()));
            }
        }
        false
    }

    /// Whether it writes more elements than it reads of any input, with hardly any work. Each reader
    /// then computes what it needs: that costs less than to store the result and to load it.
    pub(super) fn is_broadcast(&self, ir: &Context) -> bool {
        let dims = self.view.looping_dims(ir);
        let is_smaller = |access: &Access| {
            let used = ir.vars_of_all(&access.subscripts);
            !dims.iter().all(|dim| used.contains(dim))
        };
        !self.is_reduction()
            && body_work(self.generic.body()) <= 1
            && self.view.inputs.iter().all(is_smaller)
    }

    /// Whether it stores its only input as it is, or a constant where the guard of the read fails.
    pub(super) fn copies(&self, constant: Option<Attribute<'c>>) -> bool {
        let body = self.generic.body();
        let (arguments, yielded) = (mlir::arguments(body), mlir::operands(mlir::terminator(body)));
        let is_copy = arguments == yielded && mlir::ops(body).len() == 1 && arguments.len() == 1;
        is_copy && self.view.inputs.iter().all(|it| it.guard.is_empty() || it.fill == constant)
    }

    /// Whether it updates elements at places that it reads.
    pub(super) fn is_scatter(&self) -> bool {
        Scatter::cast(self.generic.op()).is_some()
    }

    pub(super) fn is_reduction(&self) -> bool {
        !self.view.domain.ranges.is_empty()
            || self.generic.epilogue().is_some()
            || !self.view.accumulators.is_empty()
    }
}

/// Functions of the `math` dialect that are an instruction or two. The others are built-ins by another name.
#[rustfmt::skip]
const INSTRUCTIONS: &[&str] = &[
    "math.absf", "math.absi", "math.ceil", "math.copysign", "math.ctlz", "math.ctpop", "math.cttz", "math.floor",
    "math.fma", "math.isfinite", "math.isinf", "math.isnan", "math.isnormal", "math.round", "math.roundeven", "math.rsqrt",
    "math.sqrt", "math.trunc",
];

/// The work of a division or a built-in.
pub(super) const FUNCTION_WORK: usize = 8;

/// The operations of a body, counted as work: a division or a built-in is worth [`FUNCTION_WORK`]. A conversion that an
/// index or a number of 16 bits takes on its way to where it is used is none.
pub(super) fn body_work(block: Blk) -> usize {
    let mut work = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            work += match mlir::name(op) {
                "imap.yield" | "imap.index" | "imap.inside" | "imap.apply" | "arith.constant"
                | "scf.yield" => 0,
                "arith.index_cast" | "arith.index_castui" | "arith.trunci" => 0,
                "arith.extf" if mlir::byte_width(mlir::operand(op, 0).r#type()) == 2 => 0,
                "imap.builtin" | "arith.divf" | "arith.floordivsi" | "arith.divui"
                | "arith.remsi" | "arith.remui" => FUNCTION_WORK,
                name if name.starts_with("math.") && !INSTRUCTIONS.contains(&name) => FUNCTION_WORK,
                _ => 1,
            };
        });
    }
    work
}

/// Whether a body computes a function that takes many instructions for a vector of values, and about as many for one value.
pub(super) fn has_function(block: Blk) -> bool {
    let mut found = false;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            let name = mlir::name(op);
            found |= name == "imap.builtin"
                || name.starts_with("math.") && !INSTRUCTIONS.contains(&name);
        });
    }
    found
}

pub(super) fn body_size(op: Op) -> usize {
    let mut size = 0;
    mlir::walk(op, &mut |_| size += 1);
    size
}
