//! An `imap.generic` taken apart for fusion.

use melior::ir::{Attribute, TypeLike, ValueLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    imap::{Generic, GenericParts, Indexed, extents::reaches_all},
    mlir::{self, Blk, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
};

/// A read: subscripts, guard, and the constant if the guard fails.
#[derive(Clone, PartialEq)]
pub(super) struct Read<'c> {
    pub(super) results: Vec<Expr>,
    pub(super) guard: Vec<Constraint>,
    pub(super) fill: Option<Attribute<'c>>,
}

impl<'c> Read<'c> {
    pub(super) fn of(parts: &GenericParts<'c>, number: usize) -> Self {
        let map = &parts.maps[number];
        let (results, guard) = (map.results.clone(), map.constraints.clone());
        Self { results, guard, fill: parts.fills[number] }
    }

    pub(super) fn exprs(&self) -> Vec<Expr> {
        self.guard.iter().map(|it| it.expr).chain(self.results.iter().copied()).collect()
    }

    pub(super) fn substitute(
        &self,
        ir: &Context,
        replacement: &dyn Fn(Var) -> Option<Expr>,
    ) -> Self {
        Self {
            results: ir.substitute_all(&self.results, replacement),
            guard: substitute_conditions(ir, &self.guard, replacement),
            fill: self.fill,
        }
    }
}

pub(super) fn substitute_conditions(
    ir: &Context,
    conditions: &[Constraint],
    replacement: &dyn Fn(Var) -> Option<Expr>,
) -> Vec<Constraint> {
    let substitute = |it: &Constraint| Constraint {
        expr: ir.substitute(it.expr, replacement),
        interval: it.interval,
    };
    conditions.iter().map(substitute).collect()
}

/// An operation taken apart. Its maps use no variable that has one value.
pub(super) struct View<'c> {
    pub(super) generic: Generic<'c>,
    pub(super) parts: GenericParts<'c>,
    /// Per runtime variable, where in a tensor it is read, if it is.
    pub(super) runtime_reads: Vec<Option<Read<'c>>>,
}

impl<'c> View<'c> {
    pub(super) fn new(ir: &Context, generic: Generic<'c>) -> Self {
        let mut parts = generic.parts(ir);
        let fixed: HashMap<Var, Expr> = parts
            .domain
            .vars()
            .filter(|(var, _)| !matches!(var, Var::Runtime(_)))
            .filter_map(|(var, variable)| {
                let value = variable.constant_interval(ir)?.as_point()?;
                Some((var, ir.constant(value)))
            })
            .collect();
        if !fixed.is_empty() {
            let value = |var| fixed.get(&var).copied();
            for map in &mut parts.maps {
                map.constraints = substitute_conditions(ir, &map.constraints, &value);
                for result in &mut map.results {
                    *result = ir.canonicalize(ir.substitute(*result, &value));
                }
            }
        }
        let mut tail = parts.inputs.len() + parts.inits.len()..;
        let is_shaped = |value: &Val| !value.r#type().is_index();
        let runtime_reads = parts
            .runtimes
            .iter()
            .map(|value| is_shaped(value).then(|| tail.next())?)
            .map(|number| number.map(|number| Read::of(&parts, number)))
            .collect();
        Self { generic, parts, runtime_reads }
    }

    pub(super) fn init_map(&self) -> &IndexingMap {
        &self.parts.maps[self.parts.inputs.len()]
    }

    /// The numbers of the inputs that read the result of another operation.
    pub(super) fn reads_of(&self, producer: Generic<'c>) -> Vec<usize> {
        let defined = |value: &Val<'c>| mlir::defining_op(*value) == Some(producer.op());
        (0..self.parts.inputs.len()).filter(|number| defined(&self.parts.inputs[*number])).collect()
    }

    /// Whether every element of the destination is seen to be computed from inputs.
    pub(super) fn covers_destination(&self, ir: &Context) -> bool {
        let GenericParts { domain, runtimes, inits, .. } = &self.parts;
        domain.constraints.is_empty()
            && reaches_all(ir, domain, runtimes, self.init_map(), inits[0])
    }

    /// Whether expressions depend on dimension or range variables, also through the places that
    /// runtime variables are read from.
    pub(super) fn varies(&self, ir: &Context, exprs: &[Expr]) -> bool {
        let mut work: Vec<Var> = ir.vars_of_all(exprs).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(var) = work.pop() {
            let Var::Runtime(number) = var else { return true };
            if seen.insert(number)
                && let Some(Some(read)) = self.runtime_reads.get(number as usize)
            {
                work.extend(ir.vars_of_all(&read.exprs()));
            }
        }
        false
    }

    /// The dimension variables that may have several values.
    pub(super) fn looping_dims(&self, ir: &Context) -> Vec<Var> {
        let has_several = |variable: &Variable| {
            let interval = variable.constant_interval(ir);
            interval.is_none_or(|interval| interval.as_point().is_none())
        };
        let dims = self.parts.domain.dims.iter().zip(0..);
        dims.filter(|(dim, _)| has_several(dim)).map(|(_, number)| Var::Dim(number)).collect()
    }

    /// Whether it writes more elements than it reads of any input, with hardly any work. Each reader
    /// then computes what it needs: that costs less than to store the result and to load it.
    pub(super) fn is_broadcast(&self, ir: &Context) -> bool {
        let dims = self.looping_dims(ir);
        let is_smaller = |map: &IndexingMap| {
            let used = ir.vars_of_all(&map.results);
            !dims.iter().all(|dim| used.contains(dim))
        };
        !self.is_reduction()
            && body_work(self.generic.body()) <= 1
            && self.parts.maps[..self.parts.inputs.len()].iter().all(is_smaller)
    }

    /// Whether it stores its only input as it is, or a constant where the guard of the read fails.
    pub(super) fn copies(&self, constant: Option<Attribute<'c>>) -> bool {
        let body = self.generic.body();
        let (arguments, yielded) = (mlir::arguments(body), mlir::operands(mlir::terminator(body)));
        let is_copy = arguments == yielded && mlir::ops(body).len() == 1 && arguments.len() == 1;
        is_copy && (self.parts.maps[0].constraints.is_empty() || self.parts.fills[0] == constant)
    }

    pub(super) fn is_reduction(&self) -> bool {
        !self.parts.domain.ranges.is_empty()
            || self.generic.epilogue().is_some()
            || !self.parts.accumulators.is_empty()
    }
}

/// The operations of a body, counted as work: a division or a built-in is worth 8.
pub(super) fn body_work(block: Blk) -> usize {
    let mut work = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            work += match mlir::name(op) {
                "imap.yield" | "imap.index" | "imap.inside" | "imap.apply" | "arith.constant"
                | "scf.yield" => 0,
                "imap.builtin" | "arith.divf" | "arith.floordivsi" | "arith.divui"
                | "arith.remsi" | "arith.remui" => 8,
                _ => 1,
            };
        });
    }
    work
}

pub(super) fn body_size(op: Op) -> usize {
    let mut size = 0;
    mlir::walk(op, &mut |_| size += 1);
    size
}
