//! Range inference: the values of each index variable of a statement.
//!
//! The algorithm is that of the range-inference text of Tensor Comprehensions, in rounds. Variables
//! with a `where` range are resolved from the start. In a round, every argument of an access that
//! holds exactly one unresolved variable gives the largest interval of that variable for which the
//! argument is in bounds for all values of the resolved ones ([`tc_ir::solve`]); several intervals
//! intersect. A variable is resolved at the end of a round that bounds it on both sides. What is
//! left when a round resolves nothing is an error.
//!
//! Afterwards every argument that did not resolve a variable is shown to be in bounds
//! ([`tc_ir::prove`]) or becomes a precondition: the exact condition on the sizes where the
//! argument is monotone in the index variables, and a condition on the data where it reads some.
//! If no sizes meet the conditions of an access, and the access is always performed, that is an error.
//!
//! What is fixed here and open in the text:
//! - sizes are at least 1 and at most 2^31 - 1, ranges and dimensions are not empty;
//! - a value read from a tensor bounds nothing, even if its type has few values, unless `min` and
//!   `max` clamp it; the interval of its type does count when an access is shown to be in bounds;
//! - an `exists` access is never read, so that it leaves no precondition.
//!
//! Intervals are closed inside; texts are half-open, as TC writes them. Work is linear in the
//! number of arguments times rounds, a round resolving at least one variable; equal arguments are
//! solved once.

mod checks;
mod engine;
mod explain;
mod names;
mod report;
#[cfg(test)]
mod tests;

use crate::text::Severity;
use std::collections::BTreeSet;

use tc_ir::expr::{Context, Expr, Var};
use tc_ir::interval::Interval;

pub use explain::explain;

/// What the runtime variables of a statement's expressions stand for: element `k` describes
/// `Var::Runtime(k)`.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// One per runtime variable.
    pub values: Vec<Value>,
}

/// A value that is known only at run time.
#[derive(Clone, Debug)]
pub enum Value {
    /// A size variable, in `[1, 2^31 - 1]`.
    Size {
        /// Its name.
        name: String,
    },
    /// A value read from a tensor, or computed in a way that the index algebra does not follow.
    Data {
        /// The expression as the user wrote it.
        text: String,
        /// The values that its type allows.
        interval: Interval,
        /// The index variables that it changes with.
        depends_on: BTreeSet<Var>,
    },
}

/// One statement, as range inference sees it. Locations are opaque numbers that come back in
/// diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// Left-hand indices, then reduction variables.
    pub index_vars: Vec<IndexVar>,
    /// The ranges that `where` clauses give.
    pub declared: Vec<DeclaredRange>,
    /// All accesses of the right-hand side, of lets and of `exists` clauses, nested ones included.
    pub accesses: Vec<Access>,
}

/// An index variable.
#[derive(Clone, Debug)]
pub struct IndexVar {
    /// Its name.
    pub name: String,
    /// `Var::Dim` for a left-hand index, `Var::Range` for a reduction variable.
    pub var: Var,
    /// Where it first occurs.
    pub location: usize,
}

/// A range from a `where` clause.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredRange {
    /// The position of the variable in [`Statement::index_vars`].
    pub index_var: usize,
    /// The least value.
    pub lower: Expr,
    /// The greatest value, included.
    pub upper: Expr,
}

/// A read of a tensor, or an update of its elements.
#[derive(Clone, Debug)]
pub struct Access {
    /// The name of the tensor.
    pub tensor: String,
    /// The access as the user wrote it.
    pub text: String,
    /// Where it is.
    pub location: usize,
    /// Where the tensor gets its sizes, if there is such a place.
    pub declared_at: Option<usize>,
    /// One index expression per dimension.
    pub args: Vec<Expr>,
    /// Closed bounds of each dimension, over sizes.
    pub dims: Vec<(Expr, Expr)>,
    /// Whether the read is performed under a condition only: in a branch of `?:`, or on the right
    /// of `&&` or `||`.
    pub guarded: bool,
    /// Whether the access stands in an `exists` clause.
    pub from_exists: bool,
    /// Whether the statement updates the elements.
    pub is_update: bool,
}

/// The range of an index variable, over sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least value.
    pub lower: Expr,
    /// The greatest value, included.
    pub upper: Expr,
    /// The number of values, `upper - lower + 1`.
    pub extent: Expr,
}

/// A condition that the caller has to meet so that a read is in bounds.
#[derive(Clone, Debug)]
pub struct Precondition {
    /// The position of the access in [`Statement::accesses`].
    pub access: usize,
    /// The dimension.
    pub dim: usize,
    /// The index expression.
    pub argument: Expr,
    /// The index variables that it changes with, directly or through data, by their positions.
    pub index_vars: BTreeSet<usize>,
    /// The lower bound that it is not known to keep to.
    pub lower: Option<Expr>,
    /// The upper bound, included, that it is not known to keep to.
    pub upper: Option<Expr>,
    /// Expressions over sizes that are all `>= 0` exactly when every read is in bounds. `None` when
    /// that takes a look at each index: the argument holds data, or rises and falls with an index
    /// variable.
    pub conditions: Option<Vec<Expr>>,
    /// The condition as text, such as `I + J - 1 <= K`.
    pub text: String,
    /// Whether it depends on values read from a tensor.
    pub data_dependent: bool,
    /// Whether it matters only where the read is performed.
    pub guarded: bool,
    /// Whether it fails for all sizes, by itself or with the other preconditions of its access.
    pub refuted: bool,
}

/// What a diagnostic is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An access holds several unresolved variables.
    Ambiguous,
    /// An index variable is multiplied or divided by data.
    DynamicStride,
    /// Nothing bounds an index variable.
    UnknownRange,
    /// A range holds nothing, whatever the sizes.
    EmptyRange,
    /// A range depends on another index variable.
    NonRectangular,
    /// An output that starts from the caller's values ends with other extents or elements.
    ChangedContents,
    /// A read is out of bounds for all sizes.
    OutOfBounds,
    /// An output does not have the extent of its annotation for any sizes.
    WrongAnnotation,
    /// Nothing gives the extent of a dimension whose index is computed.
    UnknownExtent,
    /// A read may be out of bounds for some sizes.
    UncheckedPrecondition,
    /// A read may be out of bounds for some data.
    DataDependentAccess,
    /// An output may not have the extent of its annotation for some sizes.
    UncheckedExtent,
}

impl Kind {
    /// Every kind, in the order of their codes.
    pub const ALL: [Self; 12] = [
        Self::Ambiguous,
        Self::DynamicStride,
        Self::UnknownRange,
        Self::EmptyRange,
        Self::NonRectangular,
        Self::ChangedContents,
        Self::OutOfBounds,
        Self::WrongAnnotation,
        Self::UnknownExtent,
        Self::UncheckedPrecondition,
        Self::DataDependentAccess,
        Self::UncheckedExtent,
    ];

    /// The name that conformance data uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ambiguous => "ambiguous",
            Self::DynamicStride => "dynamic_stride",
            Self::UnknownRange => "unknown_range",
            Self::EmptyRange => "empty_range",
            Self::NonRectangular => "non_rectangular",
            Self::ChangedContents => "changed_contents",
            Self::OutOfBounds => "out_of_bounds",
            Self::WrongAnnotation => "wrong_annotation",
            Self::UnknownExtent => "unknown_extent",
            Self::UncheckedPrecondition => "unchecked_precondition",
            Self::DataDependentAccess => "data_dependent_access",
            Self::UncheckedExtent => "unchecked_extent",
        }
    }

    /// The diagnostic code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ambiguous => "TC0101",
            Self::DynamicStride => "TC0102",
            Self::UnknownRange => "TC0103",
            Self::EmptyRange => "TC0104",
            Self::NonRectangular => "TC0105",
            Self::ChangedContents => "TC0106",
            Self::OutOfBounds => "TC0107",
            Self::WrongAnnotation => "TC0108",
            Self::UnknownExtent => "TC0109",
            Self::UncheckedPrecondition => "TC0201",
            Self::DataDependentAccess => "TC0202",
            Self::UncheckedExtent => "TC0203",
        }
    }

    /// Whether it is an error or a warning.
    pub fn severity(self) -> Severity {
        match self {
            Self::UncheckedPrecondition | Self::DataDependentAccess | Self::UncheckedExtent => {
                Severity::Warning
            }
            _ => Severity::Error,
        }
    }
}

/// A message about the statement.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What it is about; gives severity and code.
    pub kind: Kind,
    /// Where.
    pub location: usize,
    /// What was found and expected.
    pub message: String,
    /// Related places.
    pub notes: Vec<(usize, String)>,
}

/// One step of the inference. Positions refer to the [`Statement`].
#[derive(Clone, Debug)]
pub enum Step {
    /// A `where` clause resolved a variable before the first round.
    Declared {
        /// The variable.
        index_var: usize,
        /// Its range.
        range: Range,
    },
    /// A round begins.
    Round(usize),
    /// An argument holds several unresolved variables.
    Waits {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The unresolved variables in it.
        unresolved: Vec<usize>,
    },
    /// An argument bounds the only unresolved variable in it.
    Bounds {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The variable.
        index_var: usize,
        /// The lower bound that the argument gives.
        lower: Option<Expr>,
        /// The upper bound that the argument gives, included.
        upper: Option<Expr>,
    },
    /// An argument holds one unresolved variable and does not bound it.
    Unsolved {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
        /// The variable.
        index_var: usize,
        /// Why not.
        reason: String,
    },
    /// A round resolved nothing.
    Stuck,
    /// A round resolved a variable.
    Resolved {
        /// The variable.
        index_var: usize,
        /// The intersection of all bounds.
        range: Range,
        /// How many arguments bound it.
        num_bounds: usize,
    },
    /// An argument resolved a variable and is in bounds by construction.
    ByConstruction {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
    },
    /// An argument is shown to be in bounds.
    Proven {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
    },
    /// An argument is in bounds under a condition, by its position in [`Inference::preconditions`].
    Left {
        /// The precondition.
        precondition: usize,
    },
    /// An argument is out of bounds for all sizes.
    Refuted {
        /// The access.
        access: usize,
        /// The dimension.
        dim: usize,
    },
}

/// What inference found for one statement.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    /// One per index variable; `None` for those that were not resolved, which is an error.
    pub ranges: Vec<Option<Range>>,
    /// The names that each round resolved, sorted.
    pub rounds: Vec<Vec<String>>,
    /// What is left to the caller.
    pub preconditions: Vec<Precondition>,
    /// Errors and warnings, in the order of inference.
    pub diagnostics: Vec<Diagnostic>,
    /// The steps taken, for [`explain`].
    pub steps: Vec<Step>,
}

impl Inference {
    /// The ranges of all index variables, when there is no error.
    pub fn resolved(&self) -> Option<Vec<Range>> {
        let failed = |diagnostic: &Diagnostic| diagnostic.kind.severity() == Severity::Error;
        if self.diagnostics.iter().any(failed) {
            None
        } else {
            self.ranges.iter().copied().collect()
        }
    }
}

/// Infers the ranges of one statement.
pub fn infer(context: &Context, scope: &Scope, statement: &Statement) -> Inference {
    let mut engine = engine::Engine::new(context, scope, statement);
    engine.declare();
    if engine.result.diagnostics.is_empty() {
        engine.run_rounds();
        engine.report_unresolved();
    }
    if engine.result.diagnostics.is_empty() {
        engine.check_accesses();
    }
    engine.result
}
