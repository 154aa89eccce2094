//! The `tml` dialect: tensor expressions without indices, and the language that imports into it.
//!
//! See `tml.td` for the operations; this module is their view from Rust.

pub mod import;
pub mod syntax;
pub mod verify;

use crate::mlir::{self, Blk, Op, Val};
use melior::ir::Attribute;

#[allow(missing_docs)]
mod generated {
    melior::dialect! {
        name: "tml",
        files: ["src/tml/tml.td"],
        include_directory_env_vars: ["CARGO_MANIFEST_DIR"],
    }
}
/// Typed operations and builders that are generated from `tml.td`.
pub use generated::tml as ods;

/// The attribute of arguments and results with the name of the variable.
pub const NAME: &str = "tml.name";
/// The attribute of an argument whose variable is a result as well.
pub const INOUT: &str = "tml.inout";
/// The attribute of arguments and results with their extents without padding.
pub const EXTENTS: &str = "tml.extents";

/// An argument or a result of a `tml.program`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter<'c> {
    /// The name of the variable.
    pub name: &'c str,
    /// Whether it is an argument that is a result as well.
    pub inout: bool,
    /// The extents without padding, if the program is padded.
    pub extents: Option<Vec<i64>>,
}

mlir::op_view! {
    /// A `tml.program`.
    Program, "tml.program"
}

impl<'c> Program<'c> {
    /// The name of the program.
    pub fn name(self) -> &'c str {
        mlir::string_attr(self.op, "sym_name").unwrap_or_default()
    }

    /// The only block.
    pub fn body(self) -> Blk<'c> {
        mlir::body(self.op, 0).expect("a verified tml.program has a body")
    }

    /// The values of the arguments, in order.
    pub fn arguments(self) -> Vec<Val<'c>> {
        mlir::arguments(self.body())
    }

    /// The values of the results, in order.
    pub fn results(self) -> Vec<Val<'c>> {
        mlir::operands(mlir::terminator(self.body()))
    }

    /// The arguments, in order.
    pub fn parameters(self) -> Vec<Parameter<'c>> {
        parameters(self.op, "arg_attrs", self.arguments().len())
    }

    /// The results, in order.
    pub fn outputs(self) -> Vec<Parameter<'c>> {
        parameters(self.op, "res_attrs", self.results().len())
    }

    /// What all extents are multiples of, if the program is padded.
    pub fn vector_length(self) -> Option<i64> {
        mlir::integer_attr(self.op, "vector_length")
    }
}

fn parameters<'c>(op: Op<'c>, name: &str, count: usize) -> Vec<Parameter<'c>> {
    let attributes = mlir::array_attr(op, name);
    let read = |attribute: Option<Attribute<'c>>| {
        let get = |name: &str| mlir::dictionary_entry(attribute?, name);
        Parameter {
            name: get(NAME).and_then(mlir::string_of).unwrap_or_default(),
            inout: get(INOUT).is_some(),
            extents: get(EXTENTS).and_then(mlir::integers_of),
        }
    };
    (0..count).map(|number| read(attributes.get(number).copied())).collect()
}

/// The two dimensions of a `tml.contract` or `tml.transpose`.
pub fn dims(op: Op) -> Option<[usize; 2]> {
    match mlir::integers_attr(op, "dims")[..] {
        [first, second] => Some([usize::try_from(first).ok()?, usize::try_from(second).ok()?]),
        _ => None,
    }
}

/// The extents of a value of the dialect; they are static.
pub fn extents(value: Val) -> Vec<i64> {
    use melior::ir::ValueLike;
    mlir::shape(value.r#type()).into_iter().map(Option::unwrap_or_default).collect()
}

/// The number of elements of a value of the dialect; the largest number there is if they are more.
pub fn num_elements(value: Val) -> i64 {
    extents(value).into_iter().fold(1, i64::saturating_mul)
}
