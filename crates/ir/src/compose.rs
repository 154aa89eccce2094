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

use std::collections::HashSet;

use crate::expr::{Context, Expr, Var};
use crate::interval::Interval;
use crate::map::{IndexingMap, VarIntervals, Variable};

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
/// `second`. The result is not simplified, except that constraints which hold by the bounds
/// of the variables are not added.
///
/// # Errors
/// `first` has another number of results than `second` has dimension variables.
pub fn compose(
    ctx: &Context,
    first: &IndexingMap,
    second: &IndexingMap,
) -> Result<IndexingMap, ComposeError> {
    if first.results.len() != second.dims.len() {
        return Err(ComposeError::Rank { expected: second.dims.len(), found: first.results.len() });
    }
    let count = |variables: &[Variable]| {
        u32::try_from(variables.len()).map_err(|_| ComposeError::TooManyVariables)
    };
    let (range_shift, runtime_shift) = (count(&second.ranges)?, count(&second.runtimes)?);
    count(&first.ranges)?.checked_add(range_shift).ok_or(ComposeError::TooManyVariables)?;
    count(&first.runtimes)?.checked_add(runtime_shift).ok_or(ComposeError::TooManyVariables)?;

    let mut composed = first.clone();
    if (range_shift != 0 && !first.ranges.is_empty())
        || (runtime_shift != 0 && !first.runtimes.is_empty())
    {
        composed.substitute(ctx, &|var| match var {
            Var::Dim(_) => None,
            Var::Range(i) => Some(ctx.range(i.checked_add(range_shift)?)),
            Var::Runtime(i) => Some(ctx.runtime(i.checked_add(runtime_shift)?)),
        });
    }
    // Bounds use runtime variables only, which the second map keeps.
    let mut fed = second.results.clone();
    fed.extend(second.constraints.iter().map(|constraint| constraint.expr));
    let read = std::mem::take(&mut composed.results);
    composed.results = ctx.substitute_all(&fed, &|var| match var {
        Var::Dim(i) => read.get(i as usize).copied(),
        _ => None,
    });
    let constraints = composed.results.split_off(second.results.len());
    if !second.ranges.is_empty() {
        let ranges = std::mem::replace(&mut composed.ranges, second.ranges.clone());
        composed.ranges.extend(ranges);
    }
    if !second.runtimes.is_empty() {
        let runtimes = std::mem::replace(&mut composed.runtimes, second.runtimes.clone());
        composed.runtimes.extend(runtimes);
    }
    drop_clashing_names(&mut composed);

    if first.is_known_empty(ctx) || second.is_known_empty(ctx) {
        composed.set_known_empty(ctx);
        return Ok(composed);
    }
    for (constraint, expr) in second.constraints.iter().zip(constraints) {
        composed.add_constraint(ctx, expr, constraint.interval);
    }
    let mut intervals = None;
    for (&expr, dim) in read.iter().zip(&second.dims) {
        restrict(ctx, &mut composed, &mut intervals, expr, dim);
    }
    composed.sort_constraints(ctx);
    Ok(composed)
}

/// Restricts the domain of `map` to where `expr` respects the bounds of `variable`.
/// `intervals` are those of the variables of `map`, once they are known.
fn restrict(
    ctx: &Context,
    map: &mut IndexingMap,
    intervals: &mut Option<VarIntervals>,
    expr: Expr,
    variable: &Variable,
) {
    if let Some(interval) = variable.constant_interval(ctx) {
        let known = match ctx.as_var(expr).and_then(|var| map.variable(var)) {
            Some(variable) => variable.constant_interval(ctx),
            None => None,
        };
        let values = known.unwrap_or_else(|| {
            let intervals = intervals.get_or_insert_with(|| map.intervals(ctx));
            ctx.interval_of(expr, &|var| intervals.of(var))
        });
        if !interval.covers(values) || ctx.as_constant(expr).is_some() {
            map.add_constraint(ctx, expr, interval);
            if ctx.as_var(expr).is_some() {
                // Its bounds may be narrower now.
                *intervals = None;
            }
        }
        return;
    }
    let distances = [
        variable.lower.map(|lower| ctx.sub(expr, lower)),
        variable.upper.map(|upper| ctx.sub(upper, expr)),
    ];
    for distance in distances.into_iter().flatten() {
        map.add_constraint(ctx, distance, Interval::NON_NEGATIVE);
    }
}

/// Takes the name from a variable when an earlier one has it.
fn drop_clashing_names(map: &mut IndexingMap) {
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
