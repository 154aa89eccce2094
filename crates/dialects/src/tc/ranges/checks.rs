//! Whether reads are in bounds once the ranges are known.

use std::collections::{BTreeSet, HashSet};

use tc_ir::expr::{Expr, Var};
use tc_ir::polynomial::condition_text;
use tc_ir::prove::Verdict;
use tc_ir::solve::{Extreme, maximum, minimum, simplified};

use super::engine::Engine;
use super::{Kind, Precondition, Step, Value};

impl Engine<'_> {
    /// Shows that arguments are in bounds, and turns the rest into preconditions.
    pub(super) fn check_accesses(&mut self) {
        // The same condition in several places is one warning.
        let mut warned = HashSet::new();
        for (access, place) in self.statement.accesses.iter().enumerate() {
            if place.from_exists {
                continue;
            }
            for dim in 0..place.args.len().min(place.dims.len()) {
                if self.by_construction.contains(&(access, dim)) {
                    self.result.steps.push(Step::ByConstruction { access, dim });
                    continue;
                }
                let Some((precondition, notes)) = self.check(access, dim) else {
                    self.result.steps.push(Step::Proven { access, dim });
                    continue;
                };
                if warned.insert((place.tensor.as_str(), dim, precondition.text.clone())) {
                    let kind = if precondition.data_dependent {
                        Kind::DataDependentAccess
                    } else {
                        Kind::UncheckedPrecondition
                    };
                    let certainty =
                        if precondition.refuted && !place.guarded { "is" } else { "may be" };
                    let message = format!("read of '{}' {certainty} out of bounds", place.tensor);
                    self.report(kind, place.location, message, notes);
                }
                let left = self.result.preconditions.len();
                self.result.steps.push(Step::Left { precondition: left });
                self.result.preconditions.push(precondition);
            }
        }
    }

    /// The index variables that an argument changes with, directly or through data.
    fn index_vars_of(&self, argument: Expr) -> BTreeSet<usize> {
        let mut vars = self.context.vars(argument);
        for var in vars.clone() {
            if let Var::Runtime(number) = var
                && let Some(Value::Data { depends_on, .. }) = self.scope.values.get(number as usize)
            {
                vars.extend(depends_on);
            }
        }
        vars.iter().filter_map(|var| self.positions.get(var).copied()).collect()
    }

    /// The precondition of one argument and what there is to say about it; `None` when it is in
    /// bounds.
    fn check(&self, access: usize, dim: usize) -> Option<(Precondition, Vec<(usize, String)>)> {
        let place = &self.statement.accesses[access];
        let (argument, (lower, upper)) = (place.args[dim], place.dims[dim]);
        let below = self.prover.at_most(lower, argument);
        let above = self.prover.at_most(argument, upper);
        let lower = (below != Verdict::Proved).then_some(lower);
        let upper = (above != Verdict::Proved).then_some(upper);
        let data_dependent = self.holds_data(argument);
        let mut notes = Vec::new();
        let mut texts = Vec::new();
        let mut conditions = Some(Vec::new());
        let mut refuted = below == Verdict::Refuted || above == Verdict::Refuted;
        if !data_dependent {
            let elimination = |var| self.elimination(var);
            let sides = [
                lower.map(|bound| (bound, minimum(&self.prover, argument, &elimination), true)),
                upper.map(|bound| (bound, maximum(&self.prover, argument, &elimination), false)),
            ];
            for (bound, end, is_lower) in sides.into_iter().flatten() {
                let Ok(Extreme::Finite(end)) = end else {
                    conditions = None;
                    continue;
                };
                let (low, high) = if is_lower { (bound, end) } else { (end, bound) };
                match self.prover.at_most(low, high) {
                    // The exact condition can be shown where the argument itself was too much.
                    Verdict::Proved => continue,
                    Verdict::Refuted => refuted = true,
                    Verdict::Unknown => {}
                }
                let condition = self.context.sub(high, low);
                let condition = simplified(&self.prover, condition).unwrap_or(condition);
                texts.push(match self.context.as_constant(condition) {
                    Some(_) => format!("{} <= {}", self.names.text(low), self.names.text(high)),
                    None => condition_text(self.context, condition, &|var| self.names.of(var)),
                });
                if let Some(conditions) = &mut conditions {
                    conditions.push(condition);
                }
                let (name, end) = (self.names.text(argument), self.names.text(end));
                let reaches = match (self.context.as_constant(argument), is_lower) {
                    (Some(_), _) => format!("the index is {end}"),
                    (None, true) => format!("'{name}' goes down to {end}"),
                    (None, false) => format!("'{name}' reaches {end}"),
                };
                let ends = if is_lower { "starts at" } else { "ends at" };
                let (tensor, bound) = (&place.tensor, self.names.text(bound));
                notes.push((
                    place.location,
                    format!("{reaches}, but dimension {dim} of '{tensor}' {ends} {bound}"),
                ));
            }
        }
        if data_dependent || conditions.is_none() {
            conditions = None;
            texts = vec![self.names.condition(argument, lower, upper)];
        }
        if lower.is_none() && upper.is_none() || texts.is_empty() {
            return None;
        }
        if data_dependent {
            let argument = self.names.text(argument);
            notes.push((place.location, format!("'{argument}' is known only at run time")));
        }
        let text = texts.join(" and ");
        if place.guarded {
            notes.push((
                place.location,
                "the read is performed under a condition, which is not considered".to_owned(),
            ));
        }
        notes.push((place.location, format!("precondition recorded: {text}")));
        let precondition = Precondition {
            access,
            dim,
            argument,
            index_vars: self.index_vars_of(argument),
            lower,
            upper,
            conditions,
            text,
            data_dependent,
            guarded: place.guarded,
            refuted,
        };
        Some((precondition, notes))
    }
}
