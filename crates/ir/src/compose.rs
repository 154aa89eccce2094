//! Composition of indexing maps.
//!
//! If the first map leads from elements of a result to elements of an intermediate tensor,
//! and the second from those to elements of an operand, then their composition leads from
//! the result to the operand directly: `compose(first, second)(p) = second(first(p))`. The
//! domain is the largest on which that is defined: the domain of `first`, restricted to the
//! points whose image lies in the domain of `second`. As in XLA (`ComposeIndexingMaps` in
//! `indexing_map.cc`), the range and runtime variables of `second` come before those of
//! `first`.
//!
//! Example: `(d0)[s0] -> (d0, s0)` followed by `(d0, d1)[s0] -> (d1 + s0, d0)` is
//! `(d0)[s0, s1] -> (s1 + s0, d0)`, where `s1` is the old `s0` of the first map.
//!
//! Runtime variables of the two maps stay apart even when they have the same name, since
//! nothing says that they have the same value.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;

use crate::expr::{Context, Expr, Node, Var};
use crate::interval::Interval;
use crate::map::{ConstantBounds, IndexingMap, VarIntervals, Variable};

/// Why two maps do not compose.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ComposeError {
    /// The first map has another number of results than the second has dimensions.
    #[error("expected a map with {expected} results to compose with, found {found}")]
    Rank {
        /// The number of dimensions of the second map.
        expected: usize,
        /// The number of results of the first map.
        found: usize,
    },
    /// There are more variables than can be numbered.
    #[error("expected at most 2^32 variables of a kind")]
    TooManyVariables,
}

/// The map that applies `first` and then `second`: results of `first` feed the dimensions of
/// `second`. The result is not simplified, except that constraints which hold by the bounds of the
/// variables are not added.
///
/// # Errors
/// `first` has another number of results than `second` has dimension variables.
pub fn compose(
    ctx: &Context,
    first: &IndexingMap,
    second: &IndexingMap,
) -> Result<IndexingMap, ComposeError> {
    let Domain { mut map, read, is_empty, .. } = composed_domain(ctx, first, second)?;
    if !is_empty {
        map.results = substituted(ctx, &second.results, &read);
    }
    Ok(map)
}

/// [`compose`], simplified. Sums are collected on the way, which saves making the expressions that
/// simplification replaces. Quotients in each other are not simplified over the number of the element,
/// which takes longer and is for the end of a chain: [`IndexingMap::simplify`] does so.
///
/// # Errors
/// As [`compose`].
///
/// ```
/// use tc_ir::{Context, IndexingMap, compose_simplified};
/// let ctx = Context::new();
/// let first = IndexingMap::parse(&ctx, "(d0) -> (d0 * 2 + 3), domain: d0 in [0, 9]")?;
/// let second = IndexingMap::parse(&ctx, "(d0) -> (d0 * 2 + 3), domain: d0 in [0, 31]")?;
/// let both = compose_simplified(&ctx, &first, &second);
/// assert_eq!(
///     both.unwrap().display(&ctx).to_string(),
///     "(d0) -> (d0 * 4 + 9), domain: d0 in [0, 9]"
/// );
/// # Ok::<(), tc_ir::ParseError>(())
/// ```
pub fn compose_simplified(
    ctx: &Context,
    first: &IndexingMap,
    second: &IndexingMap,
) -> Result<IndexingMap, ComposeError> {
    let Domain { mut map, read, is_empty, bounds } = composed_domain(ctx, first, second)?;
    if is_empty {
        return Ok(map);
    }
    let is_settled =
        bounds.and_then(|bounds| map.set_composed(ctx, bounds, &second.results, &read));
    if is_settled.is_none() {
        map.results = substituted(ctx, &second.results, &read);
    }
    if is_settled != Some(true) {
        map.simplify_as_given(ctx);
    }
    Ok(map)
}

/// The domain of a composition.
struct Domain<'m> {
    /// The composition without results; all of it where the domain is seen to be empty.
    map: IndexingMap,
    /// The results of the first map in its variables.
    read: Cow<'m, [Expr]>,
    is_empty: bool,
    /// What the bounds leave, where they are constants and there are no constraints.
    bounds: Option<ConstantBounds>,
}

fn composed_domain<'m>(
    ctx: &Context,
    first: &'m IndexingMap,
    second: &IndexingMap,
) -> Result<Domain<'m>, ComposeError> {
    if first.results.len() != second.dims.len() {
        return Err(ComposeError::Rank { expected: second.dims.len(), found: first.results.len() });
    }
    let count = |variables: &[Variable]| {
        u32::try_from(variables.len()).map_err(|_| ComposeError::TooManyVariables)
    };
    let (range_shift, runtime_shift) = (count(&second.ranges)?, count(&second.runtimes)?);
    count(&first.ranges)?.checked_add(range_shift).ok_or(ComposeError::TooManyVariables)?;
    count(&first.runtimes)?.checked_add(runtime_shift).ok_or(ComposeError::TooManyVariables)?;

    let shifts = (range_shift != 0 && !first.ranges.is_empty())
        || (runtime_shift != 0 && !first.runtimes.is_empty());
    let mut composed = IndexingMap {
        dims: first.dims.clone(),
        ranges: joined(&second.ranges, &first.ranges),
        runtimes: joined(&second.runtimes, &first.runtimes),
        results: Vec::new(),
        constraints: first.constraints.clone(),
    };
    let mut read = Cow::Borrowed(&first.results[..]);
    if shifts {
        let mut shifted = first.clone();
        shifted.substitute(ctx, &|var| match var {
            Var::Dim(_) => None,
            Var::Range(i) => Some(ctx.range(i.checked_add(range_shift)?)),
            Var::Runtime(i) => Some(ctx.runtime(i.checked_add(runtime_shift)?)),
        });
        composed.dims = shifted.dims;
        composed.ranges.splice(second.ranges.len().., shifted.ranges);
        composed.runtimes.splice(second.runtimes.len().., shifted.runtimes);
        composed.constraints = shifted.constraints;
        read = Cow::Owned(shifted.results);
    }
    // Bounds use runtime variables only, which the second map keeps.
    drop_clashing_names(&mut composed);

    let mut bounds = composed.constant_bounds(ctx);
    // Where all is read that is expected, as by transposes, the domain is not restricted.
    let is_whole = second.constraints.is_empty()
        && read.iter().zip(&second.dims).all(|(&expr, dim)| has_bounds(ctx, &composed, expr, dim));
    let is_empty =
        composed.is_known_empty_within(ctx, bounds) || !is_whole && second.is_known_empty(ctx);
    if is_empty {
        composed.results.clone_from(&second.results);
        composed.set_known_empty(ctx);
        return Ok(Domain { map: composed, read, is_empty, bounds: None });
    }
    if !is_whole {
        if !second.constraints.is_empty() {
            let given: Vec<Expr> = second.constraints.iter().map(|it| it.expr).collect();
            let moved = substituted(ctx, &given, &read);
            for (constraint, expr) in second.constraints.iter().zip(moved) {
                composed.add_constraint(ctx, expr, constraint.interval);
            }
        }
        let mut symbolic = OnceCell::new();
        let mut is_restricted = !second.constraints.is_empty();
        for (&expr, dim) in read.iter().zip(&second.dims) {
            is_restricted |= restrict(ctx, &mut composed, &mut symbolic, expr, dim);
        }
        if is_restricted {
            bounds = composed.constant_bounds(ctx);
            composed.sort_constraints(ctx);
        }
    }
    let bounds =
        bounds.filter(|&bounds| composed.constraints.is_empty() && bounds != ConstantBounds::Empty);
    Ok(Domain { map: composed, read, is_empty, bounds })
}

fn joined(first: &[Variable], second: &[Variable]) -> Vec<Variable> {
    let mut joined = Vec::new();
    for variables in [first, second] {
        if !variables.is_empty() {
            joined.extend_from_slice(variables);
        }
    }
    joined
}

/// Whether an expression is a variable of `map` with the bounds of another variable.
#[inline]
fn has_bounds(ctx: &Context, map: &IndexingMap, expr: Expr, variable: &Variable) -> bool {
    let known = ctx.as_var(expr).and_then(|var| map.variable(var));
    known.is_some_and(|known| (known.lower, known.upper) == (variable.lower, variable.upper))
}

/// Expressions of the second map with the results of the first for its dimension variables.
fn substituted(ctx: &Context, exprs: &[Expr], read: &[Expr]) -> Vec<Expr> {
    ctx.substitute_all(exprs, &|var| match var {
        Var::Dim(i) => read.get(i as usize).copied(),
        _ => None,
    })
}

/// Restricts the domain of `map` to where `expr` respects the bounds of `variable`. `symbolic` holds the
/// intervals of the variables of `map`, once one with symbolic bounds is asked for. Returns whether there
/// is anything to restrict.
fn restrict(
    ctx: &Context,
    map: &mut IndexingMap,
    symbolic: &mut OnceCell<VarIntervals>,
    expr: Expr,
    variable: &Variable,
) -> bool {
    if has_bounds(ctx, map, expr, variable) {
        return false;
    }
    if let Some(interval) = variable.constant_interval(ctx) {
        // A remainder, as reshapes have, is seen to be in bounds.
        if let Node::Mod(_, modulus) = ctx.node(expr)
            && let Some(modulus) = ctx.as_constant(modulus).filter(|&modulus| 0 < modulus)
            && interval.covers(Interval::new(0, modulus - 1))
        {
            return false;
        }
        let values = ctx.interval_of(expr, &|var| {
            let bounds = map.variable(var).and_then(|variable| variable.constant_interval(ctx));
            bounds.unwrap_or_else(|| symbolic.get_or_init(|| map.intervals(ctx)).of(var))
        });
        let restricts = !interval.covers(values) || ctx.as_constant(expr).is_some();
        if restricts {
            map.add_constraint(ctx, expr, interval);
            if ctx.as_var(expr).is_some() {
                // Its bounds may be narrower now.
                symbolic.take();
            }
        }
        return restricts;
    }
    let distances = [
        variable.lower.map(|lower| ctx.sub(expr, lower)),
        variable.upper.map(|upper| ctx.sub(upper, expr)),
    ];
    for distance in distances.into_iter().flatten() {
        map.add_constraint(ctx, distance, Interval::NON_NEGATIVE);
    }
    true
}

/// Takes the name from a variable when an earlier one has it.
fn drop_clashing_names(map: &mut IndexingMap) {
    let are_plain = |variables: &[Variable]| variables.iter().all(|it| it.name.is_none());
    if are_plain(&map.dims) && are_plain(&map.ranges) && are_plain(&map.runtimes) {
        return;
    }
    let mut taken = HashSet::new();
    let variables = map.dims.iter_mut().chain(&mut map.ranges).chain(&mut map.runtimes);
    for variable in variables {
        if let Some(name) = &variable.name
            && !taken.insert(name.clone())
        {
            variable.name = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(first: &str, second: &str) -> String {
        let ctx = Context::new();
        let first = IndexingMap::parse(&ctx, first).expect("a map");
        let second = IndexingMap::parse(&ctx, second).expect("a map");
        match compose(&ctx, &first, &second) {
            Ok(map) => map.display(&ctx).to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// More of them than a flat form has places for.
    #[test]
    fn many_quotients_are_composed() {
        let ctx = Context::new();
        let divisors = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 2];
        let quotients: Vec<_> = divisors.iter().map(|by| format!("d0 / {by}")).collect();
        let text = format!("(d0) -> ({}), domain: d0 in [0, 99]", quotients.join(", "));
        let identity = IndexingMap::parse(&ctx, "(d0) -> (d0), domain: d0 in [0, 99]");
        let map = IndexingMap::parse(&ctx, &text).expect("a map");
        let composed = compose_simplified(&ctx, &identity.expect("a map"), &map);
        assert_eq!(composed.expect("small").display(&ctx).to_string(), text);
    }

    #[test]
    fn symbolic_bounds_become_constraints() {
        assert_eq!(
            composed(
                "(d0){N} -> (d0 * 2), domain: d0 in [0, N - 1], N in [1, 100]",
                "(d0){M} -> (d0 + 1), domain: d0 in [0, M - 1], M in [1, 200]",
            ),
            "(d0){M, N} -> (d0 * 2 + 1), domain: d0 in [0, N - 1], M in [1, 200], \
             N in [1, 100], M - 1 - d0 * 2 in [0, inf], d0 * 2 in [0, inf]"
        );
    }

    #[test]
    fn equal_names_stay_apart() {
        assert_eq!(
            composed("(i)[k] -> (i + k)", "(i)[k]{N} -> (i * k + N)"),
            "(i)[k, s1]{N} -> ((i + s1) * k + N)"
        );
    }

    #[test]
    fn ranks_must_agree() {
        assert_eq!(
            composed("(d0) -> (d0, d0)", "(d0) -> (d0)"),
            "expected a map with 1 results to compose with, found 2"
        );
    }
}
