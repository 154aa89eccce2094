//! Errors for variables that cannot be resolved.

use std::collections::{BTreeMap, BTreeSet};

use tc_ir::expr::{Expr, Node, Var};

use super::engine::Engine;
use super::{IndexVar, Kind, Value};
use crate::text::diagnostic::{MAX_DIAGNOSTICS, similar};

impl Engine<'_> {
    /// Reports the variables that the rounds left, those that share an access together.
    pub(super) fn report_unresolved(&mut self) {
        let mut holders: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        let mut strides: BTreeMap<usize, (usize, Var)> = BTreeMap::new();
        let mut groups: Vec<BTreeSet<usize>> = Vec::new();
        for (access, place) in self.statement.accesses.iter().enumerate() {
            for (dim, &argument) in place.args.iter().enumerate() {
                let unresolved = self.unresolved_in(argument);
                for &index_var in &unresolved {
                    holders.entry(index_var).or_default().push((access, dim));
                    if let Some(data) =
                        self.data_stride(argument, self.statement.index_vars[index_var].var)
                    {
                        strides.entry(index_var).or_insert((access, data));
                    }
                }
                if 1 < unresolved.len() {
                    let mut merged: BTreeSet<usize> = unresolved.into_iter().collect();
                    groups.retain(|group| {
                        let apart = group.is_disjoint(&merged);
                        if !apart {
                            merged.extend(group);
                        }
                        apart
                    });
                    groups.push(merged);
                }
            }
        }
        for (&index_var, &(access, data)) in &strides {
            self.report_stride(index_var, access, data);
        }
        for mut group in groups {
            group.retain(|index_var| !strides.contains_key(index_var));
            if !group.is_empty() {
                self.report_ambiguous(&group, &holders);
            }
            for index_var in group {
                self.unresolved.remove(&index_var);
            }
        }
        for index_var in self.unresolved.clone() {
            if !strides.contains_key(&index_var) {
                self.report_unknown(index_var);
            }
        }
    }

    /// A value known only at run time by which the argument multiplies or divides the variable.
    fn data_stride(&self, argument: Expr, var: Var) -> Option<Var> {
        let data_in =
            |expr: Expr| self.context.vars(expr).into_iter().find(|&var| self.is_data(var));
        let depends = |expr: Expr| self.context.vars(expr).contains(&var);
        self.context.topological(&[argument]).into_iter().find_map(|expr| {
            match self.context.node(expr) {
                Node::Mul(a, b) if depends(a) => data_in(b),
                Node::Mul(a, b) if depends(b) => data_in(a),
                Node::FloorDiv(a, b) | Node::CeilDiv(a, b) | Node::Mod(a, b) if depends(a) => {
                    data_in(b)
                }
                _ => None,
            }
        })
    }

    fn report_stride(&mut self, index_var: usize, access: usize, data: Var) {
        let IndexVar { name, location, .. } = &self.statement.index_vars[index_var];
        let place = &self.statement.accesses[access];
        let message = format!("cannot infer the range of index variable '{name}'");
        let stride = format!(
            "its stride '{}' in '{}' is known only at run time",
            self.names.of(data),
            place.text
        );
        let notes =
            vec![(place.location, stride), (*location, self.names.suggestion(index_var, 1))];
        self.report(Kind::DynamicStride, place.location, message, notes);
    }

    fn report_ambiguous(
        &mut self,
        group: &BTreeSet<usize>,
        holders: &BTreeMap<usize, Vec<(usize, usize)>>,
    ) {
        let mut places: Vec<(usize, usize)> =
            group.iter().flat_map(|var| holders[var].iter().copied()).collect();
        places.sort_unstable();
        places.dedup();
        let variables = |group: &BTreeSet<usize>| -> String {
            let quoted =
                group.iter().map(|&var| format!("'{}'", self.statement.index_vars[var].name));
            quoted.collect::<Vec<_>>().join(", ")
        };
        let message = match group.len() {
            1 => format!("cannot infer the range of index variable {}", variables(group)),
            _ => format!("cannot infer ranges for index variables {}", variables(group)),
        };
        let mut notes = Vec::new();
        let alone = places.iter().all(|place| place.0 == places[0].0);
        let mut last = None;
        for &(access, dim) in &places {
            let place = &self.statement.accesses[access];
            if last != Some(access) {
                let held: BTreeSet<usize> =
                    self.unresolved_in(place.args[dim]).into_iter().collect();
                let (text, count) = (&place.text, number_word(held.len()));
                let note = if alone {
                    let whom = if group.len() == 1 { "it" } else { "them" };
                    format!(
                        "'{text}' is the only access that bounds {whom}, \
                         and it holds {count} unresolved variables"
                    )
                } else {
                    format!("'{text}' holds {count} unresolved variables: {}", variables(&held))
                };
                notes.push((place.location, note));
                last = Some(access);
            }
            notes.extend(self.size_note(access, dim));
        }
        let location = self.statement.accesses[places[0].0].location;
        if let Some(&index_var) = group.last() {
            notes.push((location, self.names.suggestion(index_var, group.len())));
        }
        self.report(Kind::Ambiguous, location, message, notes);
    }

    fn size_note(&self, access: usize, dim: usize) -> Option<(usize, String)> {
        let place = &self.statement.accesses[access];
        let (lower, upper) = place.dims[dim];
        let tensor = &place.tensor;
        let note = if self.context.as_constant(lower) == Some(0) {
            format!("dimension {dim} of '{tensor}' has size '{}'", self.names.after(upper))
        } else {
            format!(
                "dimension {dim} of '{tensor}' is '{}:{}'",
                self.names.text(lower),
                self.names.after(upper)
            )
        };
        Some((place.declared_at?, note))
    }

    fn report_unknown(&mut self, index_var: usize) {
        let IndexVar { name, location, .. } = &self.statement.index_vars[index_var];
        let message = format!("cannot infer the range of index variable '{name}'");
        let mut notes = Vec::new();
        for &(access, dim, var, ref reason) in &self.obstacles {
            if var == index_var {
                let place = &self.statement.accesses[access];
                let argument = self.names.text(place.args[dim]);
                notes.push((
                    place.location,
                    format!("'{argument}' in '{}' does not give it: {reason}", place.text),
                ));
            }
        }
        if notes.is_empty() {
            notes.push((*location, format!("no access is indexed by '{name}'")));
            // A misspelled name is an index variable.
            let sizes = self.scope.values.iter().filter_map(|value| match value {
                Value::Size { name } => Some(&**name),
                Value::Data { .. } => None,
            });
            let variables = self.statement.index_vars.iter().map(|variable| &*variable.name);
            let tensors = self.statement.accesses.iter().map(|access| &*access.tensor);
            let known = sizes.chain(variables).chain(tensors);
            if self.result.diagnostics.len() < MAX_DIAGNOSTICS
                && let Some(known) = similar(name, known)
            {
                notes.push((*location, format!("try '{known}'")));
            }
        }
        notes.push((*location, self.names.suggestion(index_var, 1)));
        self.report(Kind::UnknownRange, *location, message, notes);
    }
}

fn number_word(count: usize) -> String {
    match count {
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        _ => count.to_string(),
    }
}
