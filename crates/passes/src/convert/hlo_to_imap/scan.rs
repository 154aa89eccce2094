//! Windows that reach from every element to one end of a dimension: `cumsum` of JAX.

use tc_dialects::hlo::indexing::Accesses;
use tc_ir::{Context, Expr, Interval, Node, Var, map::Constraint};

/// The kind of a scan along a dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Scan {
    /// The dimension variable.
    pub dim: u32,
    /// Whether the window of an element lacks it.
    pub is_exclusive: bool,
    /// Whether the windows reach to the last element: the dimension variable counts backwards.
    pub is_reversed: bool,
}

/// Takes the accesses of a window for those of a scan, if its constraint says so.
///
/// With `d` in `[0, D - 1]`, `s` in `[0, W - 1]` and elements `j = d + s + c` in `[0, N - 1]`, the
/// window of `d` has the elements from `max(d + c, 0)` to `min(d + c + W - 1, N - 1)`.
pub(super) fn of_window(ir: &Context, accesses: &mut Accesses) -> Option<Scan> {
    let domain = &accesses.domain;
    let ([_], [Constraint { expr, interval }]) = (&domain.ranges[..], &domain.constraints[..])
    else {
        return None;
    };
    let (expr, elements) = (*expr, *interval);
    let linear = ir.linear_terms(expr)?;
    let (mut dim, mut has_range) = (None, false);
    for (term, factor) in linear.terms {
        match (ir.node(term), factor) {
            (Node::Var(Var::Dim(number)), 1) if dim.is_none() => dim = Some(number),
            (Node::Var(Var::Range(0)), 1) => has_range = true,
            _ => return None,
        }
    }
    let (dim, offset) = (dim.filter(|_| has_range)?, linear.constant);
    let intervals = domain.intervals(ir);
    let (points, window) = (intervals.of(Var::Dim(dim)), intervals.of(Var::Range(0)));
    if points.lo != 0 || window.lo != 0 || elements.lo != 0 || i64::MAX / 4 < points.hi {
        return None;
    }
    let last = window.hi.checked_add(offset)?;
    let from_start = points.hi.checked_add(offset)? <= 0 && (last == 0 || last == -1);
    let to_end = elements.hi <= last && (offset == 0 || offset == 1);
    let is_exclusive = match (from_start, to_end) {
        (true, _) => last == -1,
        (_, true) => offset == 1,
        (false, false) => return None,
    };
    let is_reversed = !from_start;
    let point = match is_reversed {
        false => ir.dim(dim),
        true => ir.canonicalize(ir.sub(ir.constant(points.hi), ir.dim(dim))),
    };
    let is_element = |it: &Expr| ir.canonicalize(ir.sub(*it, expr)) == ir.constant(0);
    let uses_window = |it: &&Expr| ir.vars(**it).contains(&Var::Range(0));
    let subscripts = accesses.indices.iter().flatten();
    if !subscripts.clone().filter(uses_window).all(is_element) {
        return None;
    }
    let uses_point = |it: &&Expr| ir.vars(**it).contains(&Var::Dim(dim));
    if subscripts.filter(uses_point).any(|it| !is_element(it)) {
        return None;
    }
    for subscript in accesses.indices.iter_mut().flatten().filter(|it| uses_window(&&**it)) {
        *subscript = point;
    }
    accesses.index =
        ir.substitute_all(&accesses.index, &|var| (var == Var::Dim(dim)).then_some(point));
    accesses.domain.ranges.clear();
    accesses.domain.constraints.clear();
    if !elements.covers(Interval::new(0, points.hi)) {
        accesses.domain.constraints.push(Constraint { expr: point, interval: elements });
    }
    Some(Scan { dim, is_exclusive, is_reversed })
}
