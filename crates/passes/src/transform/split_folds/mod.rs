//! `imap-split-folds`: folds of many values to few results, and scans of few long rows, become several operations.
//!
//! A GPU computes the results of an operation in parallel, by a block each, and blocks do not wait for each
//! other. A fold with fewer results than blocks leaves processors without work. The first of the two folds has
//! a dimension variable more, for the parts of a range; the second folds the parts.
//!
//! Before, with `parts=64`:
//!
//! ```mlir
//! %s = imap.generic ()[k] domain: k in [0, 1048575] ins(%x[k] : ..) outs(%e[] : tensor<f32>) fold [add f32] {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %p = imap.generic (p)[k] domain: p in [0, 63], k in [0, 16383] ins(%x[16384 * p + k] : ..)
//!     outs(%f[p] : tensor<64xf32>) fold [add f32] {..}
//! %s = imap.generic ()[p] domain: p in [0, 63] ins(%p[p] : ..) outs(%e[] : tensor<f32>) fold [add f32] {..}
//! ```
//!
//! The outermost range in memory that has enough values is split, into parts of the same length if that leaves at least
//! half as many parts as wanted, and otherwise with a shorter last part. The second fold has start and epilogue.
//!
//! A scan (`scans.rs`) becomes a fold of parts, a scan of their results, and a scan of the parts. The last one combines
//! what it folds with the fold of the parts before.
//!
//! Before, with `parts=64`:
//!
//! ```mlir
//! %y = imap.scan (t) domain: t in [0, 65535] scan t inclusive ins(%x[t] : ..) outs(%e[t] : ..) fold [add f32] {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %s = imap.generic (p)[t] domain: p in [0, 63], t in [0, 1023] ins(%x[1024 * p + t] : ..)
//!     outs(%f[p] : tensor<64xf32>) fold [add f32] {..}
//! %b = imap.scan (p) domain: p in [0, 63] scan p exclusive ins(%s[p] : ..) outs(%g[p] : ..) fold [add f32] {..}
//! %y = imap.scan (t, p) domain: t in [0, 1023], p in [0, 63] scan t inclusive
//!     ins(%x[1024 * p + t], %b[p] : ..) outs(%e[1024 * p + t] : ..) fold [add f32] {..} epilogue {
//! ^bb0(%all: f32, %v: f32, %before: f32):
//!   %r = arith.addf %before, %all : f32
//!   imap.yield %r : f32
//! }
//! ```
//!
//! The parts of a scan have the same length.
//!
//! Operations that have a schedule, or are in a group, stay whole.
//!
//! This reorders the values of a fold. Options: `parts`, the number of folds that keep the target busy;
//! `min-size`, the least number of loads that a part is worth, or of values of a product; `row`, the results along the
//! contiguous dimension that one processor computes together, if an operand is contiguous along it; `strict-fp`, to keep
//! folds that round. Remarks: `split`, with the number of parts, and as missed `not split`, with the reason.

mod scans;

use crate::tile::parts::{Parts, extent};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{
        Access, AnyIndexed, Generic, Indexed, Inside, Scan, Start, View, build_yield, renumbering,
        schedule::is_scheduled, substitute_in_conditions,
    },
    mlir::{self, Builder, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var, ceil_div},
    map::Variable,
};

/// Results that fill vectors alone count as one row up to this number, so that few results are divided evenly among
/// processors.
const MAX_APART: i64 = 4;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-split-folds",
    summary: "Split folds of many values to few results into parts that run in parallel",
    anchor: "func.func",
    options: &[
        PassOption {
            name: "parts",
            description: "The number of folds that keep the target busy",
            default: "1",
        },
        PassOption {
            name: "min-size",
            description: "The least number of loads of a part, or of values of a product",
            default: "1024",
        },
        PassOption {
            name: "row",
            description: "The neighbouring results that one processor computes together",
            default: "1",
        },
        PassOption {
            name: "strict-fp",
            description: "Do not reassociate floating-point operations",
            default: "false",
        },
    ],
    dependent_dialects: &["arith", "imap", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let number = |name| pass.number_in(name, 1.., "a positive number");
    let limits =
        Limits { wanted: number("parts")?, min_size: number("min-size")?, row: number("row")? };
    let strict_fp = pass.options.flag("strict-fp");
    let mut folds = Vec::new();
    mlir::walk(pass.op, &mut |op| {
        let is_fold = mlir::is(op, Generic::NAME) || mlir::is(op, Scan::NAME);
        let fold = AnyIndexed::cast(op).filter(|_| is_fold);
        folds.extend(fold.filter(|it| !is_scheduled(op) && !it.accumulators().is_empty()));
    });
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    for fold in folds {
        pass.enter(fold.op());
        let ir = Context::new();
        let report = |kind, name: &str, argument: (&str, &str)| {
            remark(fold.op().location(), kind, PASS.argument, name, function, &[argument]);
        };
        match Split::of(&ir, fold, limits) {
            Ok(None) => {}
            Ok(Some(_)) if fold.keeps_order() => {
                report(RemarkKind::Missed, "not split", ("Reason", "the fold is ordered"));
            }
            Ok(Some(_)) if strict_fp && fold.rounds() => {
                report(RemarkKind::Missed, "not split", ("Reason", "strict-fp keeps the order"));
            }
            Ok(Some(split)) => {
                let count = split.num_parts().to_string();
                report(RemarkKind::Passed, "split", ("Parts", &count));
                split.apply(&ir, 1 < limits.row);
            }
            Err(reason) => report(RemarkKind::Missed, "not split", ("Reason", reason)),
        }
    }
    Ok(())
}

/// The options of the pass.
#[derive(Copy, Clone)]
struct Limits {
    wanted: i64,
    min_size: i64,
    row: i64,
}

/// How an operation is split.
enum Split<'c> {
    Fold(Generic<'c>, Parts),
    Scan(Scan<'c>, Parts),
}

impl<'c> Split<'c> {
    /// The split of an operation; `None` if it is not worth one.
    fn of(
        ir: &Context,
        fold: AnyIndexed<'c>,
        limits: Limits,
    ) -> Result<Option<Self>, &'static str> {
        if let Some(scan) = Scan::cast(fold.op()) {
            let parts = scans::plan(ir, scan, limits)?;
            return Ok(parts.map(|parts| Self::Scan(scan, parts)));
        }
        let Some(generic) = Generic::cast(fold.op()) else { return Ok(None) };
        let parts = plan(ir, generic, limits)?;
        Ok(parts.map(|parts| Self::Fold(generic, parts)))
    }

    fn num_parts(&self) -> i64 {
        let (Self::Fold(_, parts) | Self::Scan(_, parts)) = self;
        parts.num_parts
    }

    /// With `in_rows`, the results of a part are neighbours in memory; otherwise, those of a result are.
    fn apply(self, ir: &Context, in_rows: bool) {
        match self {
            Self::Fold(generic, parts) => parts.split_fold(ir, generic, in_rows),
            Self::Scan(scan, parts) => parts.split_scan(ir, scan),
        }
    }
}

/// A dimension variable, counted from 0.
fn from_zero(ir: &Context, number: u32, dim: &Variable) -> Expr {
    let lower = dim.lower.expect("a verified domain bounds its variables");
    ir.sub(ir.dim(number), lower)
}

/// Destinations of one shape, for each accumulator.
fn destinations<'c>(
    builder: &Builder<'c>,
    view: &View<'c>,
    shape: &[Option<i64>],
    subscripts: &[Expr],
) -> Vec<Access<'c>> {
    let destination = |ty| {
        let ty = mlir::tensor_type(shape, ty);
        Access::new(builder.value("tensor.empty", &[], ty), subscripts.to_vec())
    };
    view.accumulators.iter().map(|it| destination(it.ty)).collect()
}

/// The parts of a fold; `None` if it is not worth them.
fn plan(ir: &Context, generic: Generic, limits: Limits) -> Result<Option<Parts>, &'static str> {
    let view = View::of(ir, generic);
    let domain = &view.domain;
    let values = |it: &Variable| Some((it.constant_interval(ir)?, extent(ir, it)?));
    let all = |variables: &[Variable]| variables.iter().map(values).collect::<Option<Vec<_>>>();
    let product = |list: &[(Interval, i64)]| {
        list.iter().fold(1_i64, |product, (_, count)| product.saturating_mul(*count))
    };
    let (Some(dims), Some(ranges)) = (all(&domain.dims), all(&domain.ranges)) else {
        return Err("the number of values or results is not known");
    };
    if !generic.inits().iter().all(|init| mlir::is_tensor(init.r#type())) {
        return Err("it works on buffers");
    }
    let (num_results, num_values) = (product(&dims), product(&ranges));
    if num_results == 0 || num_values == 0 {
        return Ok(None);
    }
    let along = view.outputs.first().and_then(|it| ir.as_var(*it.subscripts.last()?));
    let length = match along {
        Some(Var::Dim(dim)) => dims[dim as usize].1,
        _ => 1,
    };
    let is_read_along = |it: &Access| {
        it.subscripts.last().zip(along).is_some_and(|(last, var)| ir.vars(*last).contains(&var))
    };
    let reads_once = view.reads_once(ir);
    // Vectors hold values of one result, not neighbouring results.
    let is_along_range = reads_once && !view.inputs.iter().any(is_read_along);
    let row = if is_along_range { limits.row.min(MAX_APART) } else { limits.row }.min(length);
    let num_rows = num_results / length * ceil_div(length, row);
    // A product keeps its values in registers; of other folds, each value is a load.
    let loads = if reads_once { view.inputs.len().max(1) as i64 } else { 1 };
    let size = num_values.saturating_mul(row).saturating_mul(loads);
    let most = (limits.wanted / num_rows).min(size / limits.min_size);
    if most < 2 {
        return Ok(None);
    }
    // What comes first in memory, so that a part of an operand is in one piece.
    let place = |(number, _): &(usize, (Interval, i64))| {
        let has_range = |expr: &Expr| ir.vars(*expr).contains(&Var::Range(*number as u32));
        let places = view.inputs.iter().map(|it| it.subscripts.iter().position(has_range));
        places.map(|it| it.unwrap_or(usize::MAX)).min()
    };
    let enough = ranges.iter().copied().enumerate().filter(|(_, (_, extent))| most <= *extent);
    let longest = || ranges.iter().copied().enumerate().max_by_key(|(_, (_, extent))| *extent);
    let Some((range, (values, extent))) = enough.min_by_key(place).or_else(longest) else {
        return Ok(None);
    };
    let most = most.min(extent);
    if most < 2 {
        return Ok(None);
    }
    let even = (ceil_div(most, 2)..=most).rev().find(|count| extent % count == 0);
    let size = ceil_div(extent, even.unwrap_or(most));
    let num_parts = ceil_div(extent, size);
    let range = u32::try_from(range).map_err(|_| "it has too many ranges")?;
    Ok((1 < num_parts).then_some(Parts { var: Var::Range(range), values, num_parts, size }))
}

impl Parts {
    /// Replaces a fold by a fold of parts and one of their results.
    fn split_fold(self, ir: &Context, generic: Generic, in_rows: bool) {
        let builder = Builder::before(generic.op());
        let view = View::of(ir, generic);
        let dims = (0..).zip(&view.domain.dims);
        let results: Vec<Expr> = dims.map(|(number, dim)| from_zero(ir, number, dim)).collect();
        let place = if in_rows { 0 } else { results.len() };
        let parts = self.build_folds(ir, &builder, generic, &view, (&results, place));
        let merged = self.build_merge(ir, &builder, generic, &view, (&results, place), &parts);
        mlir::replace(generic.op(), &mlir::results(merged.op()));
    }

    /// The fold of the values of each part.
    fn build_folds<'c>(
        self,
        ir: &Context,
        builder: &Builder<'c>,
        generic: Generic<'c>,
        view: &View<'c>,
        (results, place): (&[Expr], usize),
    ) -> Generic<'c> {
        let (mut parts, vars) = self.divide(ir, view, false);
        parts.accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        let part = vars.0;
        let count = self.values.hi - self.values.lo + 1;
        if count % self.size != 0 {
            let inside = Interval::new(i64::MIN, self.values.hi);
            parts.domain.add_constraint(ir, self.value(ir, part, self.var), inside);
        }
        let mut shape: Vec<_> = view.domain.dims.iter().map(|dim| extent(ir, dim)).collect();
        shape.insert(place, Some(self.num_parts));
        let mut subscripts = results.to_vec();
        subscripts.insert(place, ir.var(part));
        parts.outputs = destinations(builder, view, &shape, &subscripts);
        let new = parts.build(ir, builder, false);
        self.copy_body(ir, builder, generic.body(), new.body(), vars);
        new
    }

    /// The fold of the results of the parts.
    fn build_merge<'c>(
        self,
        ir: &Context,
        builder: &Builder<'c>,
        generic: Generic<'c>,
        view: &View<'c>,
        (results, place): (&[Expr], usize),
        parts: &Generic<'c>,
    ) -> Generic<'c> {
        let old = generic.epilogue().map(mlir::arguments).unwrap_or_default();
        let num_folded = view.accumulators.len();
        let is_used = |number: &usize| {
            old.get(num_folded + number).is_some_and(|value| !mlir::uses(*value).is_empty())
        };
        let kept: Vec<usize> = (0..view.inputs.len()).filter(is_used).collect();
        let mut merge = view.clone();
        let all = Interval::new(0, self.num_parts - 1);
        merge.domain.ranges = vec![Variable::bounded(ir, all)];
        // Constraints say what is folded.
        merge.domain.constraints.clear();
        let mut subscripts = results.to_vec();
        subscripts.insert(place, ir.range(0));
        let partials = mlir::results(parts.op()).into_iter();
        merge.inputs = partials.map(|it| Access::new(it, subscripts.clone())).collect();
        merge.inputs.extend(kept.iter().map(|number| view.inputs[*number].clone()));
        let epilogue: Vec<_> = generic.epilogue().into_iter().collect();
        let runtimes = merge.drop_unused_runtimes(ir, &Inside::conditions_in(ir, &epilogue));
        let new = merge.build(ir, builder, !epilogue.is_empty());
        let body = Builder::at_end(builder.context, new.body(), builder.location);
        build_yield(&body, &mlir::arguments(new.body())[..num_folded]);
        if let (Some(from), Some(to)) = (generic.epilogue(), new.epilogue()) {
            let targets = mlir::arguments(to);
            let folded = (0..num_folded).map(|number| (old[number], targets[number]));
            let places = kept.iter().zip(2 * num_folded..);
            let read = places.map(|(number, place)| (old[num_folded + number], targets[place]));
            let mut values: ValueMap = folded.chain(read).collect();
            let inside = Builder::at_end(builder.context, to, builder.location);
            for op in mlir::ops(from) {
                inside.copy(op, &mut values);
            }
            substitute_in_conditions(ir, &[to], &renumbering(ir, &runtimes));
        }
        new
    }
}
