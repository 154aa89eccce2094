//! `#imap.map`: indexing maps as attributes.
//!
//! The attribute holds a [`FrozenMap`]; passes thaw it into the arena that they work in. The text
//! of a map with an empty domain shows its variables, which operations refer to.

use crate::ffi;
use melior::{Context, ir::Attribute};
use tc_ir::{
    FrozenMap, Interval, Var,
    expr::Node,
    map::{Constraint, IndexingMap},
    text::{MapDisplay, ParseError},
};

/// Parses the text of a map.
///
/// # Errors
/// The byte offset at which the text stops being a map, and why; division by the constant 0,
/// which compiled code cannot do.
pub fn parse(text: &str) -> Result<FrozenMap, ParseError> {
    let ir = tc_ir::Context::new();
    let map = IndexingMap::parse(&ir, text)?;
    let bounds = map.vars().flat_map(|(_, variable)| [variable.lower, variable.upper]).flatten();
    let constraints = map.constraints.iter().map(|it| it.expr);
    let roots: Vec<_> = map.results.iter().copied().chain(bounds).chain(constraints).collect();
    for expr in ir.topological(&roots) {
        let divisor = match ir.node(expr) {
            Node::FloorDiv(_, by) | Node::CeilDiv(_, by) | Node::Mod(_, by) => ir.as_constant(by),
            _ => None,
        };
        if divisor == Some(0) {
            return Err(ParseError::at(text, 0, "expected a divisor that is not 0"));
        }
    }
    Ok(FrozenMap::of(&ir, &map))
}

/// The text of a map, which [`parse`] reads.
pub fn text(map: &FrozenMap) -> String {
    let ir = tc_ir::Context::new();
    format!("{:#}", map.thaw(&ir).display(&ir))
}

/// The variables of a domain with their bounds, as an operation shows them.
pub(crate) fn domain_text(domain: &FrozenMap) -> String {
    let ir = tc_ir::Context::new();
    let domain = domain.thaw(&ir);
    let display = domain.display(&ir);
    let entries = display.domain();
    let keyword = if entries.is_empty() { "" } else { " domain: " };
    format!("{}{keyword}{}", display.space(), entries.join(", "))
}

/// The name of a dimension variable, as an operation shows it.
pub(crate) fn dimension_text(domain: &FrozenMap, number: i64) -> String {
    let ir = tc_ir::Context::new();
    let domain = domain.thaw(&ir);
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    domain.display(&ir).expr(ir.dim(number)).to_string()
}

/// The dimension variable that the only result of a map is.
pub(crate) fn dimension(map: &FrozenMap) -> Option<u32> {
    let ir = tc_ir::Context::new();
    match (ir.as_var(map.thaw(&ir).results[0]), map.num_results()) {
        (Some(Var::Dim(number)), 1) => Some(number),
        _ => None,
    }
}

/// The results of a map as subscripts and its constraints as a guard, with the names that a domain
/// has for the variables.
pub(crate) fn access_text(domain: &FrozenMap, map: &FrozenMap) -> String {
    let ir = tc_ir::Context::new();
    let (domain, map) = (domain.thaw(&ir), map.thaw(&ir));
    let display = domain.display(&ir);
    let results: Vec<_> =
        map.results.iter().map(|result| display.expr(*result).to_string()).collect();
    let conditions = conditions(&display, &map);
    let keyword = if conditions.is_empty() { "" } else { " where " };
    format!("[{}]{keyword}{}", results.join(", "), conditions.join(" and "))
}

/// The constraints of a map, with the names that it has for the variables.
pub(crate) fn conditions_text(map: &FrozenMap) -> String {
    let ir = tc_ir::Context::new();
    let map = map.thaw(&ir);
    conditions(&map.display(&ir), &map).join(", ")
}

fn conditions(display: &MapDisplay, map: &IndexingMap) -> Vec<String> {
    let condition = |it: &Constraint| format!("{} in {}", display.expr(it.expr), it.interval);
    let mut conditions: Vec<_> = map.constraints.iter().map(condition).collect();
    conditions.sort();
    conditions
}

/// The attribute of a map.
pub fn to_attribute<'c>(
    context: &'c Context,
    ir: &tc_ir::Context,
    map: &IndexingMap,
) -> Attribute<'c> {
    ffi::map_attribute(context, FrozenMap::of(ir, map))
}

/// The map that an attribute holds, if it is one.
pub fn frozen<'c>(attribute: Attribute<'c>) -> Option<&'c FrozenMap> {
    ffi::map_of(attribute)
}

/// The map of an attribute, if it is one.
pub fn from_attribute(ir: &tc_ir::Context, attribute: Attribute) -> Option<IndexingMap> {
    Some(frozen(attribute)?.thaw(ir))
}

/// The values of a result, whatever the operands are.
pub(crate) fn bounds_of_result(map: &FrozenMap, number: usize) -> Interval {
    let ir = tc_ir::Context::new();
    ir.interval_of(map.thaw(&ir).results[number], &|_| Interval::ALL)
}

/// Evaluates a map on the values of its dimension, range and runtime variables, in this
/// order. `None` if there are not so many variables, or there is no value.
pub(crate) fn evaluate(map: &FrozenMap, operands: &[i64]) -> Option<Vec<i64>> {
    if operands.len() != map.num_vars() {
        return None;
    }
    let ir = tc_ir::Context::new();
    let map = map.thaw(&ir);
    let value = |var| operands.get(map.position(var)).copied();
    map.results.iter().map(|result| ir.eval(*result, &value).ok()).collect()
}
