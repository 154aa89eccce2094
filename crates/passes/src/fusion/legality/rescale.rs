//! Online rescaling: a sum of `exp(x - m)`, in which `m` is the maximum of all `x`, can be folded together with the maximum.
//! Whenever the maximum grows, the sum so far is multiplied by `exp(old - new)` (Milakov and Gimelshein, "Online
//! normalizer calculation for softmax", 2018).

use super::{Rejection, merge::hoisted};
use crate::fusion::{candidate::Candidate, narrow::has};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::HashMap;
use tc_dialects::{
    imap::{Access, AnyIndexed, CombinerKind, Generic, Indexed, Start, View},
    mlir::{self, Blk, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::{Constraint, Variable},
};

/// A maximum and a sum that may become one fold.
pub(in crate::fusion) struct Rescaling<'c> {
    pub(in crate::fusion) maximum: Candidate<'c>,
    pub(in crate::fusion) sum: AnyIndexed<'c>,
    /// The accesses of the sum over the variables of the maximum.
    pub(in crate::fusion) inputs: Vec<Access<'c>>,
    pub(in crate::fusion) output: Access<'c>,
    /// The operation of the sum's body that computes `exp`.
    pub(in crate::fusion) exp: Op<'c>,
    /// Operations that the sum needs and that stand behind the maximum.
    pub(in crate::fusion) hoisted: Vec<Op<'c>>,
}

/// The parts of a body that yields `exp(x - m)`.
struct Exponential<'c> {
    exp: Op<'c>,
    x: Val<'c>,
    /// The number of the input that is `m`.
    shift: usize,
}

impl<'c> Exponential<'c> {
    fn of(body: Blk<'c>) -> Option<Self> {
        let [yielded] = mlir::operands(mlir::terminator(body))[..] else { return None };
        let exp = mlir::defining_op(yielded)?;
        let is_exp = mlir::is(exp, "math.exp")
            || mlir::is(exp, "imap.builtin") && mlir::string_attr(exp, "name") == Some("exp");
        if !is_exp || exp.block().map(mlir::block_ref) != Some(body) {
            return None;
        }
        let difference = mlir::defining_op(mlir::operand(exp, 0))?;
        if !mlir::is(difference, "arith.subf") {
            return None;
        }
        let [x, shift] = mlir::operands(difference)[..] else { return None };
        let shift = mlir::arguments(body).into_iter().position(|argument| argument == shift)?;
        Some(Self { exp, x, shift })
    }
}

/// The maximum `m` of which a body yields `exp(x - m)`.
pub(in crate::fusion) fn maximum_below<'c>(generic: AnyIndexed<'c>) -> Option<Generic<'c>> {
    let shift = *generic.inputs().get(Exponential::of(generic.body())?.shift)?;
    let fold = mlir::defining_op(shift).and_then(Generic::cast)?;
    let is_maximum = matches!(fold.accumulators()[..], [it] if it.kind == CombinerKind::MaximumF);
    (is_maximum && fold.op().block() == generic.op().block()).then_some(fold)
}

/// Whether a sum can be folded together with the maximum that it reads.
pub(in crate::fusion) fn rescale<'c>(
    ir: &Context,
    sum: Candidate<'c>,
) -> Result<Rescaling<'c>, Rejection> {
    let maximum = maximum_below(sum.generic).ok_or(Rejection::NoExponential)?;
    let maximum = Candidate::new(ir, maximum);
    maximum.check_schedule()?;
    sum.check_schedule()?;
    let Some(Exponential { exp, x, shift }) = Exponential::of(sum.generic.body()) else {
        return Err(Rejection::NoExponential);
    };
    let [most, total] = [&maximum, &sum].map(|it| it.view.accumulators.first());
    let (Some(most), Some(total)) = (most, total) else { return Err(Rejection::NoExponential) };
    if total.kind != CombinerKind::Add || sum.view.accumulators.len() != 1 {
        return Err(Rejection::NoExponential);
    }
    if most.start != Start::Identity || total.start != Start::Identity {
        return Err(Rejection::FoldsIntoTensor);
    }
    if [&maximum, &sum].iter().any(|it| it.generic.keeps_order()) {
        return Err(Rejection::Ordered);
    }
    let dims = rename(ir, &maximum.view, &sum.view).ok_or(Rejection::Domains)?;
    let renamed = |var| match var {
        Var::Dim(number) => dims.get(number as usize).copied(),
        _ => None,
    };
    let mut below = sum.view.clone();
    below.accesses_mut().for_each(|it| it.substitute(ir, &renamed));
    let constraints = below.domain.constraints.iter();
    let constraints =
        constraints.map(|it| Constraint { expr: ir.substitute(it.expr, &renamed), ..*it });
    let above = &maximum.view;
    if !constraints.eq(above.domain.constraints.iter().copied()) || above.runtimes != below.runtimes
    {
        return Err(Rejection::Domains);
    }
    // An element that is read elsewhere than at the point of the maximum is another maximum.
    let ([written], [stored]) = (&above.outputs[..], &below.outputs[..]) else {
        return Err(Rejection::SeveralResults);
    };
    let result = below.inputs[shift].value;
    let is_own = |it: &Access| it.guard.is_empty() && it.subscripts == written.subscripts;
    let mut reads = below.inputs.iter().filter(|it| it.value == result);
    if !written.guard.is_empty() || !reads.all(is_own) {
        return Err(Rejection::OtherElements);
    }
    let is_renamed = dims.iter().zip(0..).any(|(dim, number)| *dim != ir.dim(number));
    let asks = |op| mlir::is(op, "imap.index") || mlir::is(op, "imap.inside");
    if is_renamed && sum.generic.blocks().into_iter().any(|block| has(block, &asks)) {
        return Err(Rejection::OtherNumbers);
    }
    let hoisted = hoisted(maximum.generic.op(), sum.generic.op())?;
    let is_static =
        |access: &Access| mlir::shape(access.value.r#type()).iter().all(Option::is_some);
    if most.ty != total.ty || !is_static(stored) {
        return Err(Rejection::OtherType);
    }
    let [y] = mlir::operands(mlir::terminator(maximum.generic.body()))[..] else {
        return Err(Rejection::SeveralResults);
    };
    let mut known = HashMap::new();
    if !is_same((&maximum.view, maximum.generic, y), (&below, sum.generic, x), &mut known) {
        return Err(Rejection::OtherValues);
    }
    let output = stored.clone();
    Ok(Rescaling { maximum, sum: sum.generic, inputs: below.inputs, output, exp, hoisted })
}

/// The dimension variables of the sum as those of the maximum, in their order. Those with one value stay.
fn rename(ir: &Context, maximum: &View, sum: &View) -> Option<Vec<Expr>> {
    let bounds = |it: &Variable| (it.lower, it.upper);
    let looping = [maximum, sum].map(|view| view.looping_dims(ir));
    let mut dims: Vec<Expr> = (0..sum.domain.dims.len() as u32).map(|dim| ir.dim(dim)).collect();
    for (own, other) in looping[0].iter().zip(&looping[1]) {
        let (Var::Dim(_), Var::Dim(number)) = (own, other) else { return None };
        let [first, second] = [maximum.domain.variable(*own)?, sum.domain.variable(*other)?];
        if bounds(first) != bounds(second) {
            return None;
        }
        dims[*number as usize] = ir.var(*own);
    }
    let ranges = maximum.domain.ranges.iter().map(bounds);
    let has_same_ranges = ranges.eq(sum.domain.ranges.iter().map(bounds));
    (looping[0].len() == looping[1].len() && has_same_ranges).then_some(dims)
}

/// Whether values of the bodies of two operations with the same points are equal: the same operations on the same elements.
fn is_same<'c>(
    (first, a, x): (&View<'c>, AnyIndexed<'c>, Val<'c>),
    (second, b, y): (&View<'c>, AnyIndexed<'c>, Val<'c>),
    known: &mut HashMap<[usize; 2], bool>,
) -> bool {
    if x == y {
        return true;
    }
    let key = [x, y].map(mlir::value_key);
    if let Some(same) = known.get(&key) {
        return *same;
    }
    let same = match (mlir::defining_op(x), mlir::defining_op(y)) {
        (Some(p), Some(q)) => {
            let is_inside = |op: Op, it: AnyIndexed| {
                op.block().map(mlir::block_ref) == Some(it.body()) || mlir::is(op, "arith.constant")
            };
            let mut operands = mlir::operands(p).into_iter().zip(mlir::operands(q));
            is_inside(p, a)
                && is_inside(q, b)
                && mlir::name(p) == mlir::name(q)
                && p.region_count() + q.region_count() == 0
                && p.operand_count() == q.operand_count()
                && x.r#type() == y.r#type()
                && p.attributes().eq(q.attributes())
                && operands.all(|(x, y)| is_same((first, a, x), (second, b, y), known))
        }
        (None, None) => {
            let input = |view: &View<'c>, body, value| {
                let number = mlir::arguments(body).into_iter().position(|it| it == value)?;
                view.inputs.get(number).cloned()
            };
            let read = input(first, a.body(), x);
            read.is_some() && read == input(second, b.body(), y)
        }
        _ => false,
    };
    known.insert(key, same);
    same
}
