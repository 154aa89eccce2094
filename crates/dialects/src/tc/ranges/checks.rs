//! Whether reads are in bounds once the ranges are known.

use std::collections::{BTreeSet, HashSet};

use tc_ir::expr::{Expr, Node, Var};
use tc_ir::polynomial::condition_text;
use tc_ir::prove::{Prover, Verdict};
use tc_ir::solve::{Extreme, maximum, minimum, simplified};

use super::engine::Engine;
use super::{Kind, Precondition, Step, Value};

impl Engine<'_> {
    /// Shows that arguments are in bounds, and turns the rest into preconditions, or into errors if no
    /// sizes meet them.
    pub(super) fn check_accesses(&mut self) {
        // The same condition in several places is one diagnostic.
        let mut reported = HashSet::new();
        for (access, place) in self.statement.accesses.iter().enumerate() {
            if place.from_exists {
                continue;
            }
            // The sizes that meet the preconditions of the dimensions before.
            let mut legal = self.prover.fork();
            for dim in 0..place.args.len().min(place.dims.len()) {
                if self.by_construction.contains(&(access, dim)) {
                    self.result.steps.push(Step::ByConstruction { access, dim });
                    continue;
                }
                let Some((precondition, notes)) = self.check(access, dim, &mut legal) else {
                    self.result.steps.push(Step::Proven { access, dim });
                    continue;
                };
                let is_error = precondition.refuted && !place.guarded;
                if reported.insert((place.tensor.as_str(), dim, precondition.text.clone())) {
                    let (kind, certainty) = match is_error {
                        true => (Kind::OutOfBounds, "is"),
                        false if precondition.data_dependent => {
                            (Kind::DataDependentAccess, "may be")
                        }
                        false => (Kind::UncheckedPrecondition, "may be"),
                    };
                    let what = if place.is_update { "update" } else { "read" };
                    let message = format!("{what} of '{}' {certainty} out of bounds", place.tensor);
                    self.report(kind, place.location, message, notes);
                }
                let left = self.result.preconditions.len();
                self.result.steps.push(match is_error {
                    true => Step::Refuted { access, dim },
                    false => Step::Left { precondition: left },
                });
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

    /// The precondition of one argument and notes about it; `None` if it is in bounds. `legal` has the
    /// preconditions of the access so far as facts, and gets those of this argument.
    fn check(
        &self,
        access: usize,
        dim: usize,
        legal: &mut Prover,
    ) -> Option<(Precondition, Vec<(usize, String)>)> {
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
        let mut unmet = text.clone();
        let zero = self.context.constant(0);
        for &condition in conditions.iter().flatten() {
            if !refuted && legal.at_most(zero, condition) == Verdict::Refuted {
                refuted = true;
                let others = self.result.preconditions.iter().filter(|it| it.access == access);
                unmet = others.map(|it| format!("{} and ", it.text)).collect::<String>() + &text;
            }
            legal.assume_at_most(zero, condition);
        }
        if place.guarded {
            notes.push((
                place.location,
                "the read is performed under a condition, which is not considered".to_owned(),
            ));
        }
        if refuted && !place.guarded {
            let values = if data_dependent { "values" } else { "sizes" };
            notes.push((place.location, format!("no {values} meet the condition {unmet}")));
            notes.push((place.location, self.legal_index(access, dim)));
        } else {
            notes.push((place.location, format!("precondition recorded: {text}")));
        }
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

    /// Suggests an index that is in bounds.
    fn legal_index(&self, access: usize, dim: usize) -> String {
        let place = &self.statement.accesses[access];
        let (argument, (lower, upper)) = (place.args[dim], place.dims[dim]);
        let range = format!("{}:{}", self.names.text(lower), self.names.after(upper));
        if matches!(self.context.node(argument), Node::Var(Var::Dim(_) | Var::Range(_))) {
            return format!("try a range of '{}' within {range}", self.names.text(argument));
        }
        if self.index_vars_of(argument).is_empty() && !self.holds_data(argument) {
            return format!("try an index in {range}");
        }
        let [lower, argument, upper] = [lower, argument, upper].map(|it| self.names.text(it));
        format!("try the index 'max(min({argument}, {upper}), {lower})'")
    }
}
