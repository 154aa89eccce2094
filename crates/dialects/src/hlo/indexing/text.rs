//! Maps as text, and the layouts that they are written for.

use super::{
    Direction, Indexing, IndexingSet, OperandIndexing, RuntimeSource, array, relation::Relation,
    reshape, set::narrowed_vars,
};
use crate::hlo::{ArrayShape, Opcode, Payload, Shape};
use std::fmt::Write;
use tc_ir::{IndexingMap, Interval, Var};

/// What stands for a map where none is known.
pub const UNKNOWN: &str = "unknown indexing";

impl Indexing<'_> {
    /// A map as text: the map, then where it does not hold, what its runtime variables are, and the
    /// replica. Runtime variables that stand in exceptions only are left out of the first line.
    ///
    /// ```text
    /// (d0){rt0} -> (d0 + rt0), domain: d0 in [0, 9], rt0 in [0, 90]
    /// runtime variables:
    /// rt0: parameter(1); (d0) -> (), domain: d0 in [0, 9]
    /// replica id: (d0) -> (d0 / 5), domain: d0 in [0, 9]
    /// ```
    pub fn map_text(&self, indexing: &OperandIndexing) -> String {
        self.map_text_with(indexing, &|source| self.source_text(source))
    }

    /// As [`map_text`](Self::map_text), with another text for where runtime variables come from.
    pub(super) fn map_text_with(
        &self,
        indexing: &OperandIndexing,
        source_text: &dyn Fn(RuntimeSource) -> String,
    ) -> String {
        let ctx = self.context();
        let mut text = self.elements_text(indexing);
        if !indexing.runtimes.is_empty() {
            text.push_str("\nruntime variables:");
        }
        for (number, runtime) in indexing.runtimes.iter().enumerate() {
            let source = source_text(runtime.source);
            let map = self.without_unused_runtimes(&runtime.map);
            // Writing to a string does not fail.
            let _ = write!(text, "\nrt{number}: {source}; {}", map.display(ctx));
        }
        if let Some(replica) = &indexing.replica {
            let map = self.without_unused_runtimes(replica);
            let _ = write!(text, "\nreplica id: {}", map.display(ctx));
        }
        text
    }

    /// The maps of a set as text, in the order in which they were found.
    pub fn set_text(&self, set: &IndexingSet) -> Vec<String> {
        let mut texts: Vec<String> = set.maps().iter().map(|each| self.map_text(each)).collect();
        if set.has_unknown() {
            texts.push(UNKNOWN.to_string());
        }
        texts
    }

    /// Where the value of a runtime variable comes from: `parameter(1)`, `constant(9)`, or the name
    /// of the instruction.
    pub fn source_text(&self, source: RuntimeSource) -> String {
        let instruction = self.instruction(source.instruction());
        match source {
            RuntimeSource::Element(_) => match &instruction.payload {
                Payload::Parameter(number) => format!("parameter({number})"),
                Payload::Constant(literal) => match literal.as_array() {
                    Some(value) if value.num_stored() == 1 => {
                        let value = value.integer(0).unwrap_or_default();
                        format!("constant({value})")
                    }
                    _ => instruction.name.clone(),
                },
                Payload::None => instruction.name.clone(),
            },
            RuntimeSource::Replica(_) if instruction.opcode == Opcode::CollectivePermute => {
                format!("sender of {}", instruction.name)
            }
            RuntimeSource::Replica(_) => format!("position in the group of {}", instruction.name),
        }
    }

    /// The map and where it does not hold.
    pub(super) fn elements_text(&self, indexing: &OperandIndexing) -> String {
        let ctx = self.context();
        let map = self.without_runtimes_of_exceptions(indexing);
        let mut text = map.display(ctx).to_string();
        for exception in &indexing.exceptions {
            let mut conditions = self.conditions_text(exception, &indexing.map);
            // The map does not tell the ranges of what only exceptions use.
            let constraints: Vec<_> = exception.constraints.iter().map(|it| it.expr).collect();
            let bounds = exception.intervals(ctx);
            for var in ctx.vars_of_all(&constraints) {
                if matches!(var, Var::Runtime(number) if map.runtimes.len() <= number as usize) {
                    let Interval { lo, hi } = bounds.of(var);
                    let _ = write!(conditions, ", {} in [{lo}, {hi}]", ctx.display(ctx.var(var)));
                }
            }
            // Writing to a string does not fail.
            let _ = write!(text, "\nexcept where {conditions}");
        }
        text
    }

    /// What an exception demands beyond the domain of its map.
    fn conditions_text(&self, exception: &IndexingMap, map: &IndexingMap) -> String {
        let ctx = self.context();
        let bounds = exception.intervals(ctx);
        let narrowed = narrowed_vars(ctx, exception, map).map(|var| (ctx.var(var), bounds.of(var)));
        let constraints = exception.constraints.iter().filter(|it| !map.constraints.contains(it));
        let conditions = narrowed.chain(constraints.map(|it| (it.expr, it.interval)));
        let text = |(expr, Interval { lo, hi })| format!("{} in [{lo}, {hi}]", ctx.display(expr));
        conditions.map(text).collect::<Vec<_>>().join(", ")
    }

    /// The map without the last runtime variables, if only exceptions use them.
    fn without_runtimes_of_exceptions(&self, indexing: &OperandIndexing) -> IndexingMap {
        let ctx = self.context();
        let mut map = indexing.map.clone();
        if indexing.exceptions.is_empty() {
            return map;
        }
        let mut plain = OperandIndexing { exceptions: Vec::new(), ..indexing.clone() };
        plain.remove_unused(ctx);
        let kept = plain.map.runtimes.len();
        let last: Vec<Var> = (0..).map(Var::Runtime).take(map.runtimes.len()).skip(kept).collect();
        // If they are not the last ones, their numbers must stay.
        let _ = map.compress(ctx, &last);
        map
    }

    /// A map that belongs to a runtime variable has all variables of the map beside it. Text shows
    /// the runtime variables among them only where they are used.
    fn without_unused_runtimes(&self, map: &IndexingMap) -> IndexingMap {
        let mut map = map.clone();
        map.remove_unused(self.context(), &|var| matches!(var, Var::Runtime(_)));
        map
    }

    /// The maps of a pair of an output and an operand between index spaces in memory order: the
    /// dimensions in the order of the layout, the slowest first. `output` and `operand` are the
    /// shapes at both ends of the maps, which lead in the given direction.
    pub fn physical(
        &self,
        set: &IndexingSet,
        direction: Direction,
        output: &ArrayShape,
        operand: &Shape,
    ) -> IndexingSet {
        let mut physical = IndexingSet::default();
        set.unknown_arrays().for_each(|array| physical.insert_unknown(array));
        for indexing in set.maps() {
            let operand = array(operand, indexing.array);
            let converted =
                operand.and_then(|operand| self.physical_map(indexing, direction, output, operand));
            match converted {
                Some(converted) => physical.insert(converted),
                None => physical.insert_unknown(indexing.array),
            }
        }
        physical
    }

    /// The map between index spaces in memory order; `None` if it is not known.
    pub(super) fn physical_map(
        &self,
        indexing: &OperandIndexing,
        direction: Direction,
        output: &ArrayShape,
        operand: &ArrayShape,
    ) -> Option<OperandIndexing> {
        let ctx = self.context();
        let (source, target) = match direction {
            Direction::OutputToInput => (output, operand),
            Direction::InputToOutput => (operand, output),
        };
        if is_row_major(source) && is_row_major(target) {
            return Some(indexing.clone());
        }
        let layout = |array: &ArrayShape, direction| -> Option<OperandIndexing> {
            let relation: Relation = reshape::physical(array)?;
            relation.map(ctx, direction)
        };
        let to_logical = layout(source, Direction::InputToOutput)?;
        let to_physical = layout(target, Direction::OutputToInput)?;
        let converted = to_logical.then(ctx, indexing)?.then(ctx, &to_physical)?;
        Some(OperandIndexing { array: indexing.array, ..converted })
    }
}

/// Whether memory order is the order of the dimensions.
pub(super) fn is_row_major(array: &ArrayShape) -> bool {
    let order = array.minor_to_major();
    order.iter().rev().zip(0..).all(|(&dim, position)| dim == position)
}
