//! Schedules: how an operation is computed.

use crate::{
    ffi,
    mlir::{self, Op},
};
use melior::{
    Context,
    ir::{Attribute, operation::OperationLike},
};
use std::fmt;
use tc_ir::{IndexingMap, Variable};

/// The attribute of an operation that holds its schedule.
pub const SCHEDULE: &str = "imap.schedule";
/// The attribute of the number that the operations of a tile group have in common.
pub const GROUP: &str = "imap.group";

/// The kind of a step: the loop that it becomes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Tiles one after the other: `scf.for`.
    Tile,
    /// Tiles in any order: `scf.forall`.
    Forall,
}

impl StepKind {
    /// The word in the assembly.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tile => "tile",
            Self::Forall => "forall",
        }
    }
}

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The loop that it becomes.
    pub kind: StepKind,
    /// Names of variables, and the extents of tiles along them.
    pub sizes: Vec<(String, i64)>,
}

/// The steps of an operation, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Schedule {
    /// The schedule of an operation, if it has one.
    pub fn of(op: Op) -> Option<Self> {
        Self::from_attribute(op.attribute(SCHEDULE).ok()?)
    }

    /// Reads `#imap.schedule<..>`.
    pub fn from_attribute(attribute: Attribute) -> Option<Self> {
        let steps = mlir::array_of(ffi::schedule_steps(attribute)?);
        let step = |step: Attribute| {
            let [name, names, sizes] = mlir::array_of(step)[..] else { return None };
            let kind = match mlir::string_of(name)? {
                "tile" => StepKind::Tile,
                _ => StepKind::Forall,
            };
            let names = mlir::array_of(names).into_iter().filter_map(mlir::string_of);
            let sizes = names.map(str::to_string).zip(mlir::integers_of(sizes)?).collect();
            Some(Step { kind, sizes })
        };
        Some(Self { steps: steps.into_iter().map(step).collect::<Option<_>>()? })
    }

    /// `#imap.schedule<..>`.
    pub fn attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        let step = |step: &Step| {
            let names: Vec<_> =
                step.sizes.iter().map(|(name, _)| mlir::string(context, name)).collect();
            let sizes: Vec<_> = step.sizes.iter().map(|(_, size)| *size).collect();
            let sizes = mlir::i64_array(context, &sizes);
            mlir::array(
                context,
                &[mlir::string(context, step.kind.name()), mlir::array(context, &names), sizes],
            )
        };
        let steps: Vec<_> = self.steps.iter().map(step).collect();
        ffi::schedule_attribute(mlir::array(context, &steps))
    }

    /// Gives an operation this schedule, or none if it has no steps.
    pub fn set(&self, op: Op) {
        match self.steps.is_empty() {
            true => mlir::remove_attribute(op, SCHEDULE),
            false => mlir::set_attribute(op, SCHEDULE, self.attribute(mlir::context_of(op))),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let step = |step: &Step| {
            let sizes = step.sizes.iter().map(|(name, size)| format!("{name} = {size}"));
            format!("{} [{}]", step.kind.name(), sizes.collect::<Vec<_>>().join(", "))
        };
        let steps: Vec<_> = self.steps.iter().map(step).collect();
        write!(formatter, "#imap.schedule<{}>", steps.join(", "))
    }
}

/// The names by which schedules call the variables of a domain: dimensions, then ranges.
pub fn variable_names(domain: &IndexingMap) -> Vec<String> {
    let name = |variable: &Variable, prefix: &str, number: usize| {
        variable.name.as_deref().map_or_else(|| format!("{prefix}{number}"), str::to_string)
    };
    let dims = domain.dims.iter().enumerate().map(|(number, it)| name(it, "d", number));
    let ranges = domain.ranges.iter().enumerate().map(|(number, it)| name(it, "s", number));
    dims.chain(ranges).collect()
}
