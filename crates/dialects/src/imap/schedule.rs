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
use tc_ir::IndexingMap;

/// The attribute of an operation that holds its schedule.
pub const SCHEDULE: &str = "imap.schedule";
/// The attribute of the number that the operations of a tile group have in common.
pub const GROUP: &str = "imap.group";

/// Whether an operation has a schedule, or belongs to a group that has one.
pub fn is_scheduled(op: Op) -> bool {
    op.has_attribute(SCHEDULE) || op.has_attribute(GROUP)
}

/// A step of a schedule. Names are those of variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tiles of these extents one after the other: `scf.for`.
    Tile(Vec<(String, i64)>),
    /// Tiles of these extents in any order: `scf.forall`.
    Forall(Vec<(String, i64)>),
    /// A copy of the input of this number, in memory of its own.
    Pack(usize),
    /// The order of the loops over elements, outermost first.
    Order(Vec<String>),
    /// Blocks of these extents in registers.
    Vector {
        /// The extents of a block.
        sizes: Vec<(String, i64)>,
        /// The variable along the lanes of the vectors.
        lanes: String,
    },
}

impl Step {
    /// The word in the assembly.
    fn keyword(&self) -> &'static str {
        match self {
            Self::Tile(_) => "tile",
            Self::Forall(_) => "forall",
            Self::Pack(_) => "pack",
            Self::Order(_) => "order",
            Self::Vector { .. } => "vector",
        }
    }

    /// The variables that the step names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Tile(sizes) | Self::Forall(sizes) | Self::Vector { sizes, .. } => {
                sizes.iter().map(|(name, _)| &**name).collect()
            }
            Self::Pack(_) => Vec::new(),
            Self::Order(names) => names.iter().map(|name| &**name).collect(),
        }
    }

    /// Whether `imap-tile` executes the step.
    pub fn is_on_tensors(&self) -> bool {
        matches!(self, Self::Tile(_) | Self::Forall(_) | Self::Pack(_))
    }

    /// The extents of tiles, if the step makes loops over tiles.
    pub fn tile_sizes(&self) -> Option<&[(String, i64)]> {
        match self {
            Self::Tile(sizes) | Self::Forall(sizes) => Some(sizes),
            Self::Pack(_) | Self::Order(_) | Self::Vector { .. } => None,
        }
    }
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
            let [keyword, names, sizes, lanes] = mlir::array_of(step)[..] else { return None };
            let names = mlir::array_of(names).into_iter().filter_map(mlir::string_of);
            let names: Vec<_> = names.map(str::to_string).collect();
            let numbers = mlir::integers_of(sizes)?;
            let input = numbers.first().and_then(|it| usize::try_from(*it).ok());
            let sizes = names.iter().cloned().zip(numbers).collect();
            Some(match mlir::string_of(keyword)? {
                "pack" => Step::Pack(input?),
                "tile" => Step::Tile(sizes),
                "forall" => Step::Forall(sizes),
                "order" => Step::Order(names),
                _ => Step::Vector { sizes, lanes: mlir::string_of(lanes)?.to_string() },
            })
        };
        Some(Self { steps: steps.into_iter().map(step).collect::<Option<_>>()? })
    }

    /// `#imap.schedule<..>`.
    pub fn attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        let step = |step: &Step| {
            let (names, sizes, lanes): (Vec<&str>, Vec<i64>, &str) = match step {
                Step::Tile(sizes) | Step::Forall(sizes) => parts(sizes, ""),
                Step::Pack(input) => (Vec::new(), vec![*input as i64], ""),
                Step::Order(names) => (names.iter().map(String::as_str).collect(), Vec::new(), ""),
                Step::Vector { sizes, lanes } => parts(sizes, lanes),
            };
            let names: Vec<_> = names.into_iter().map(|it| mlir::string(context, it)).collect();
            let text = |it| mlir::string(context, it);
            let (names, sizes) = (mlir::array(context, &names), mlir::i64_array(context, &sizes));
            mlir::array(context, &[text(step.keyword()), names, sizes, text(lanes)])
        };
        let steps: Vec<_> = self.steps.iter().map(step).collect();
        ffi::schedule_attribute(mlir::array(context, &steps))
    }

    /// The steps as the assembly has them.
    pub fn text(&self) -> String {
        self.steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
    }

    /// Gives an operation this schedule, or none if it has no steps.
    pub fn set(&self, op: Op) {
        match self.steps.is_empty() {
            true => mlir::remove_attribute(op, SCHEDULE),
            false => mlir::set_attribute(op, SCHEDULE, self.attribute(mlir::context_of(op))),
        }
    }
}

fn parts<'s>(sizes: &'s [(String, i64)], lanes: &'s str) -> (Vec<&'s str>, Vec<i64>, &'s str) {
    let (names, sizes) = sizes.iter().map(|(name, size)| (name.as_str(), *size)).unzip();
    (names, sizes, lanes)
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let list = |sizes: &[(String, i64)]| {
            let sizes = sizes.iter().map(|(name, size)| format!("{name} = {size}"));
            sizes.collect::<Vec<_>>().join(", ")
        };
        let keyword = self.keyword();
        match self {
            Self::Tile(sizes) | Self::Forall(sizes) => {
                write!(formatter, "{keyword} [{}]", list(sizes))
            }
            Self::Pack(input) => write!(formatter, "{keyword} in {input}"),
            Self::Order(names) => write!(formatter, "{keyword} [{}]", names.join(", ")),
            Self::Vector { sizes, lanes } => {
                write!(formatter, "{keyword} [{}] lanes {lanes}", list(sizes))
            }
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "#imap.schedule<{}>", self.text())
    }
}

/// The names by which schedules call the variables of a domain: dimensions, then ranges. They are those that the
/// operation is printed with.
pub fn variable_names(domain: &IndexingMap) -> Vec<String> {
    let mut names = domain.variable_names();
    names.truncate(domain.dims.len() + domain.ranges.len());
    names
}
