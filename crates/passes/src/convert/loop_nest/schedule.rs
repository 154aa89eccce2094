//! The loops that a schedule asks for: the order of variables, and the block that registers hold.
//!
//! Without a step `order`, loops run in the order in which the variables stand, ranges inside of dimensions, and the
//! lanes of a step `vector` come last.

use super::{
    emit::Nest,
    order::{Plan, respect_bounds},
};
use tc_dialects::imap::{
    Indexed,
    schedule::{Schedule, Step, variable_names},
};
use tc_ir::Var;

/// A block that registers hold: the extents along variables, and the variable along the lanes.
pub(in crate::convert) struct VectorStep {
    /// The extents, those of one included.
    pub sizes: Vec<(Var, i64)>,
    /// The variable along the lanes.
    pub lanes: Var,
}

impl VectorStep {
    /// The step in a schedule.
    pub fn step(&self, nest: &Nest) -> Step {
        let sizes = self.sizes.iter().map(|(var, size)| (name(nest, *var), *size)).collect();
        Step::Vector { sizes, lanes: name(nest, self.lanes) }
    }
}

/// The variable of a name. The error lists the names that there are.
fn variable(nest: &Nest, name: &str) -> Result<Var, String> {
    let names = variable_names(&nest.domain);
    let vars = nest.domain.vars().map(|(var, _)| var);
    let found = vars.zip(&names).find(|(_, it)| *it == name).map(|(var, _)| var);
    let unknown = || {
        let names = names.join(", ");
        format!("the schedule names '{name}', and the operation has {names}")
    };
    found.ok_or_else(unknown)
}

/// The names of variables.
pub(in crate::convert) fn names(nest: &Nest, vars: &[Var]) -> Vec<String> {
    let names = nest.domain.variable_names();
    vars.iter().map(|var| names[nest.domain.position(*var)].clone()).collect()
}

/// The name of a variable.
pub(in crate::convert) fn name(nest: &Nest, var: Var) -> String {
    names(nest, &[var]).concat()
}

/// The steps of an operation, none of which `imap-tile` executes.
fn steps(nest: &Nest) -> Result<Vec<Step>, String> {
    let steps = Schedule::of(nest.generic.op()).unwrap_or_default().steps;
    match steps.iter().find(|step| step.tile_sizes().is_some()) {
        Some(step) => Err(format!("'{step}' is executed by imap-tile, on tensors")),
        None => Ok(steps),
    }
}

/// The step `vector` of an operation, if it has one.
///
/// # Errors
/// The schedule has steps for tensors, or a name that no variable has.
pub(in crate::convert) fn vector(nest: &Nest) -> Result<Option<VectorStep>, String> {
    for step in steps(nest)? {
        let Step::Vector { sizes, lanes } = step else { continue };
        let sizes = sizes.iter().map(|(name, size)| Ok((variable(nest, name)?, *size)));
        let sizes = sizes.collect::<Result<_, String>>()?;
        return Ok(Some(VectorStep { sizes, lanes: variable(nest, &lanes)? }));
    }
    Ok(None)
}

/// The variables of more than one value in the order of the step `order`, if the operation has one.
fn ordered(nest: &Nest) -> Result<Option<Vec<Var>>, String> {
    let steps = steps(nest)?;
    let order = steps.iter().find_map(|step| match step {
        Step::Order(names) => Some(names),
        _ => None,
    });
    let Some(order) = order else { return Ok(None) };
    let vars = order.iter().map(|name| variable(nest, name)).collect::<Result<Vec<_>, _>>()?;
    let missing: Vec<Var> = standing(nest).into_iter().filter(|var| !vars.contains(var)).collect();
    if !missing.is_empty() {
        return Err(format!("the order has no {}", names(nest, &missing).join(", ")));
    }
    Ok(Some(vars.into_iter().filter(|var| nest.fixed(*var).is_none()).collect()))
}

/// The variables of more than one value as they stand.
fn standing(nest: &Nest) -> Vec<Var> {
    let vars = nest.domain.vars().map(|(var, _)| var);
    let is_loop = |var: &Var| !matches!(var, Var::Runtime(_)) && nest.fixed(*var).is_none();
    vars.filter(is_loop).collect()
}

/// Whether the bounds of each variable need earlier ones only.
fn check_bounds(nest: &Nest, order: &[Var]) -> Result<(), String> {
    for (place, var) in order.iter().enumerate() {
        if let Some(later) = nest.bound_needs(*var).iter().find(|it| order[place..].contains(it)) {
            let [var, later] = [var, later].map(|it| name(nest, *it));
            return Err(format!("the bounds of '{var}' need '{later}', which comes later"));
        }
    }
    Ok(())
}

/// Dimensions, then ranges; if a dimension stands behind the ranges, it is the row.
fn plan_of(nest: &Nest, order: &[Var]) -> Result<Plan, String> {
    let is_range = |var: &Var| matches!(var, Var::Range(_));
    let ranges: Vec<Var> = order.iter().copied().filter(is_range).collect();
    if nest.generic.keeps_order() && !ranges.is_sorted() {
        return Err("the fold keeps the order of its ranges".to_string());
    }
    let row = order.last().copied().filter(|last| !is_range(last) && !ranges.is_empty());
    let dims = &order[..order.len() - ranges.len() - usize::from(row.is_some())];
    if dims.iter().any(is_range) {
        return Err(
            "the order has dimensions behind ranges; only its last variable may be one".to_string()
        );
    }
    let dims = dims.to_vec();
    check_bounds(nest, order)?;
    let Some(row) = row else { return Ok(Plan::Registers { dims, ranges }) };
    // Its loop runs outside of the ranges, too, for the starts.
    match nest.bound_needs(row).iter().any(is_range) {
        true => Err("the bounds of the last dimension need a range".to_string()),
        false => Ok(Plan::Rows { row, dims, ranges }),
    }
}

/// The loops of an `imap.generic`; with the lanes of a step `vector` that it has.
///
/// # Errors
/// The text says why the schedule cannot be obeyed.
pub(in crate::convert) fn plan(nest: &Nest, lanes: Option<Var>) -> Result<Plan, String> {
    if let Some(order) = ordered(nest)? {
        return plan_of(nest, &order);
    }
    plan_of(nest, &default(nest, lanes)?)
}

/// The order of an operation without a step for it.
fn default(nest: &Nest, lanes: Option<Var>) -> Result<Vec<Var>, String> {
    let vars: Vec<Var> = standing(nest).into_iter().filter(|var| Some(*var) != lanes).collect();
    let vars = respect_bounds(nest, &[], vars).ok_or_else(circular)?;
    // Bounds may have moved a dimension behind ranges.
    let (mut dims, ranges): (Vec<Var>, Vec<Var>) =
        vars.into_iter().partition(|var| matches!(var, Var::Dim(_)));
    dims.extend(ranges);
    dims.extend(lanes);
    Ok(dims)
}

/// The step for loops in this order; `None` if it is the order without one.
pub(in crate::convert) fn order_step(
    nest: &Nest,
    order: &[Var],
    lanes: Option<Var>,
) -> Option<Step> {
    let is_default = default(nest, lanes).is_ok_and(|default| default == order);
    (!is_default).then(|| Step::Order(names(nest, order)))
}

/// The variables of a scan around the scanned one, and the one of which the loop goes inside it.
///
/// # Errors
/// As for [`plan`].
pub(in crate::convert) fn around(
    nest: &Nest,
    scanned: Var,
) -> Result<(Vec<Var>, Option<Var>), String> {
    let order = match ordered(nest)? {
        Some(order) => order,
        None => default(nest, Some(scanned))?,
    };
    check_bounds(nest, &order)?;
    let place = order.iter().position(|var| *var == scanned).unwrap_or(order.len());
    let (outer, inner) = order.split_at(place);
    match inner {
        [] | [_] => Ok((outer.to_vec(), None)),
        [_, row] if !nest.bound_needs(*row).contains(&scanned) => Ok((outer.to_vec(), Some(*row))),
        [_, _] => Err("the bounds of the last variable need the scanned one".to_string()),
        _ => Err("at most one variable may stand behind the scanned one".to_string()),
    }
}

/// The variables of a scatter, of which `free` ones may stand anywhere.
///
/// # Errors
/// As for [`plan`].
pub(in crate::convert) fn of_scatter(
    nest: &Nest,
    dims: &[Var],
    free: &[Var],
) -> Result<Vec<Var>, String> {
    let order = match ordered(nest)? {
        Some(order) => order,
        None => return respect_bounds(nest, &[], dims.to_vec()).ok_or_else(circular),
    };
    check_bounds(nest, &order)?;
    let is_fixed = |var: &&Var| !free.contains(var);
    match order.iter().filter(is_fixed).eq(dims.iter().filter(is_fixed)) {
        true => Ok(order),
        false => Err("updates of one element keep their order".to_string()),
    }
}

pub(in crate::convert) fn circular() -> String {
    "has variables whose bounds depend on each other".to_string()
}
