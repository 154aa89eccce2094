//! `#imap.map`: indexing maps as attributes.
//!
//! The attribute holds the canonical text of a [`tc_ir::IndexingMap`], so that MLIR
//! uniques, prints and serializes it like any other; the grammar is that of `tc_ir`. The text of
//! a map with an empty domain shows its variables, which operations refer to.

use crate::mlir;
use melior::{Context, ir::Attribute};
use tc_ir::{expr::Node, map::IndexingMap, text::ParseError};

/// Parses the text of a map and prints it as the attribute keeps it.
///
/// # Errors
/// The byte offset at which the text stops being a map, and why; division by the constant 0,
/// which compiled code cannot do.
pub fn canonical_text(text: &str) -> Result<String, ParseError> {
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
    Ok(format!("{:#}", map.display(&ir)))
}

/// The attribute of a map.
pub fn to_attribute<'c>(
    context: &'c Context,
    ir: &tc_ir::Context,
    map: &IndexingMap,
) -> Attribute<'c> {
    mlir::parse_attribute(context, &format!("#imap.map<{:#}>", map.display(ir)))
}

/// The map of an attribute, if it is one.
pub fn from_attribute(ir: &tc_ir::Context, attribute: Attribute) -> Option<IndexingMap> {
    let text = attribute.to_string();
    let text = text.strip_prefix("#imap.map<")?.strip_suffix('>')?;
    IndexingMap::parse(ir, text).ok()
}

/// Evaluates a map on the values of its dimension, range and runtime variables, in this
/// order. `None` if the text is no map of so many variables, or has no value there.
pub(crate) fn evaluate_text(text: &str, operands: &[i64]) -> Option<Vec<i64>> {
    let ir = tc_ir::Context::new();
    let map = IndexingMap::parse(&ir, text).ok()?;
    if operands.len() != map.vars().count() {
        return None;
    }
    let value = |var| operands.get(map.position(var)).copied();
    map.results.iter().map(|result| ir.eval(*result, &value).ok()).collect()
}
