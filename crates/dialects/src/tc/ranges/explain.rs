//! Prints the inference.

use tc_ir::expr::Context;

use super::names::Names;
use super::{Access, Inference, Scope, Statement, Step};
use crate::text::Severity;

/// The inference as text, round by round: what each access argument gave, the ranges, and at the
/// end which arguments are in bounds and under what conditions.
pub fn explain(
    context: &Context,
    scope: &Scope,
    statement: &Statement,
    inference: &Inference,
) -> String {
    let names = Names { context, scope, statement };
    let variable = |index_var: usize| statement.index_vars[index_var].name.as_str();
    let place = |access: usize, dim: usize| {
        let Access { text, args, dims, .. } = &statement.accesses[access];
        let condition = names.condition(args[dim], Some(dims[dim].0), Some(dims[dim].1));
        format!("{text}, dimension {dim}: {condition}")
    };
    let mut lines = Vec::new();
    let mut in_checks = false;
    for step in &inference.steps {
        let is_check = matches!(
            step,
            Step::ByConstruction { .. }
                | Step::Proven { .. }
                | Step::Left { .. }
                | Step::Refuted { .. }
        );
        if is_check && !in_checks {
            in_checks = true;
            lines.push("bounds of the reads".to_owned());
        }
        lines.push(match step {
            Step::Declared { index_var, range } => {
                format!("where {} in {}", variable(*index_var), names.range(*range))
            }
            Step::Round(number) => format!("round {number}"),
            Step::Waits { access, dim, unresolved } => {
                let unresolved: Vec<_> =
                    unresolved.iter().map(|&index_var| variable(index_var)).collect();
                let (last, rest) = unresolved.split_last().expect("an argument waits for several");
                format!(
                    "  {} waits, {} and {last} are unresolved",
                    place(*access, *dim),
                    rest.join(", ")
                )
            }
            Step::Bounds { access, dim, index_var, lower, upper } => {
                let gives = match (lower, upper) {
                    (None, None) => format!("does not bound {}", variable(*index_var)),
                    _ => format!("gives {}", names.interval(variable(*index_var), *lower, *upper)),
                };
                format!("  {} {gives}", place(*access, *dim))
            }
            Step::Unsolved { access, dim, index_var, reason } => {
                format!(
                    "  {} gives nothing for {}: {reason}",
                    place(*access, *dim),
                    variable(*index_var)
                )
            }
            Step::Stuck => "  nothing is resolved".to_owned(),
            Step::Resolved { index_var, range, num_bounds } => {
                let from = if *num_bounds == 1 {
                    String::new()
                } else {
                    format!(", by {num_bounds} conditions")
                };
                format!("  so {} in {}{from}", variable(*index_var), names.range(*range))
            }
            Step::ByConstruction { access, dim } => {
                format!("  {} holds by construction", place(*access, *dim))
            }
            Step::Proven { access, dim } => format!("  {} is proven", place(*access, *dim)),
            Step::Refuted { access, dim } => {
                format!("  {} is out of bounds for all sizes", place(*access, *dim))
            }
            Step::Left { precondition } => {
                let precondition = &inference.preconditions[*precondition];
                let place = place(precondition.access, precondition.dim);
                let guarded =
                    if precondition.guarded { ", where the read is performed" } else { "" };
                format!("  {place} is left as the precondition {}{guarded}", precondition.text)
            }
        });
    }
    for diagnostic in &inference.diagnostics {
        if diagnostic.kind.severity() == Severity::Error {
            lines.push(format!("error: {}", diagnostic.message));
            lines.extend(diagnostic.notes.iter().map(|(_, note)| format!("  {note}")));
        }
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}
