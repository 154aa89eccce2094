//! The `tc` dialect: tensor comprehensions, and the language that imports into them.
//!
//! See `tc.td` for the operations; this module is their view from Rust.

pub mod import;
pub mod ranges;
pub mod syntax;
pub mod verify;

use crate::{
    imap::{self, Combiner},
    mlir::{self, Blk, Op, Val},
};
use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike};
use std::collections::HashSet;
use tc_ir::map::IndexingMap;

#[allow(missing_docs)]
mod generated {
    melior::dialect! {
        name: "tc",
        files: ["src/tc/tc.td"],
        include_directory_env_vars: ["CARGO_MANIFEST_DIR"],
    }
}
/// Typed operations and builders that are generated from `tc.td`.
pub use generated::tc as ods;

/// One dimension of an input: the name of its size variable, or its extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size<'c> {
    /// The dimension has the extent of this size variable.
    Variable(&'c str),
    /// The dimension has this extent.
    Constant(i64),
}

/// An argument of a `tc.def`.
#[derive(Clone, Debug)]
pub struct Parameter<'c> {
    /// The name in the source.
    pub name: &'c str,
    /// The block argument.
    pub value: Val<'c>,
    /// One per dimension; empty for an [`inout`](Self::inout) parameter.
    pub sizes: Vec<Size<'c>>,
    /// Whether it holds the contents of the output of that name before the call.
    pub inout: bool,
}

/// A condition that a caller has to meet.
#[derive(Copy, Clone, Debug)]
pub struct Precondition<'c> {
    /// The condition as text.
    pub text: &'c str,
    /// The access that needs it, as it was written.
    pub access: &'c str,
    /// A map whose constraints spell the condition, if it is one on sizes alone.
    pub condition: Option<Attribute<'c>>,
    /// Whether it depends on the data.
    pub data: bool,
    /// Whether it matters only where the access is performed.
    pub guarded: bool,
}

mlir::op_view! {
    /// A `tc.def`.
    Def, "tc.def"
}

impl<'c> Def<'c> {
    /// The name of the function.
    pub fn name(self) -> &'c str {
        mlir::string_attr(self.op, "sym_name").unwrap_or_default()
    }

    /// The only block.
    pub fn body(self) -> Blk<'c> {
        mlir::body(self.op, 0).expect("a verified tc.def has a body")
    }

    /// The parameters, in order: inputs, then accumulated outputs.
    pub fn parameters(self) -> Vec<Parameter<'c>> {
        let attributes = mlir::array_attr(self.op, "arg_attrs");
        mlir::arguments(self.body())
            .into_iter()
            .enumerate()
            .map(|(index, value)| {
                let get = |name: &str| mlir::dictionary_entry(*attributes.get(index)?, name);
                Parameter {
                    name: get("tc.name").and_then(mlir::string_of).unwrap_or_default(),
                    value,
                    sizes: get("tc.sizes").map(sizes_of).unwrap_or_default(),
                    inout: get("tc.inout").is_some(),
                }
            })
            .collect()
    }

    /// The size variables, in order of appearance, each with the first parameter and
    /// dimension that has it.
    pub fn sizes(self) -> Vec<(&'c str, Val<'c>, usize)> {
        let mut found = Vec::new();
        let mut known = HashSet::new();
        for parameter in self.parameters() {
            for (dim, size) in parameter.sizes.iter().enumerate() {
                if let Size::Variable(name) = size
                    && known.insert(*name)
                {
                    found.push((*name, parameter.value, dim));
                }
            }
        }
        found
    }

    /// The names of the outputs, in order.
    pub fn outputs(self) -> Vec<&'c str> {
        mlir::array_attr(self.op, "res_attrs")
            .into_iter()
            .map(|attributes| {
                let name = mlir::dictionary_entry(attributes, "tc.name");
                name.and_then(mlir::string_of).unwrap_or_default()
            })
            .collect()
    }

    /// The sizes that the head asserts for an output; none if it has no annotation.
    pub fn output_sizes(self, output: usize) -> Vec<Size<'c>> {
        let attributes = mlir::array_attr(self.op, "res_attrs").get(output).copied();
        attributes
            .and_then(|it| mlir::dictionary_entry(it, "tc.sizes"))
            .map(sizes_of)
            .unwrap_or_default()
    }

    /// The conditions that range inference left to the caller.
    pub fn preconditions(self) -> Vec<Precondition<'c>> {
        mlir::array_attr(self.op, "preconditions")
            .into_iter()
            .map(|attribute| {
                let get = |name: &str| mlir::dictionary_entry(attribute, name);
                let text = |name: &str| get(name).and_then(mlir::string_of).unwrap_or_default();
                Precondition {
                    text: text("text"),
                    access: text("access"),
                    condition: get("condition"),
                    data: get("data").is_some(),
                    guarded: get("guarded").is_some(),
                }
            })
            .collect()
    }

    /// The extents of an output over the size variables, once ranges are inferred.
    pub fn output_extents(self, ir: &tc_ir::Context, output: usize) -> Option<IndexingMap> {
        self.output_map(ir, output, "tc.extents")
    }

    /// The first index of an output in each dimension, once ranges are inferred.
    pub fn output_origins(self, ir: &tc_ir::Context, output: usize) -> Option<IndexingMap> {
        self.output_map(ir, output, "tc.origins")
    }

    fn output_map(self, ir: &tc_ir::Context, output: usize, name: &str) -> Option<IndexingMap> {
        let attributes = mlir::array_attr(self.op, "res_attrs").get(output).copied();
        imap::map::from_attribute(ir, mlir::dictionary_entry(attributes?, name)?)
    }

    /// The statements, in order.
    pub fn comprehensions(self) -> Vec<Comprehension<'c>> {
        mlir::ops(self.body()).into_iter().filter_map(Comprehension::cast).collect()
    }

    /// The `tc.return` that ends the body.
    pub fn terminator(self) -> Op<'c> {
        mlir::terminator(self.body())
    }
}

fn sizes_of(attribute: Attribute<'_>) -> Vec<Size<'_>> {
    let size = |attribute| match mlir::string_of(attribute) {
        Some(name) => Some(Size::Variable(name)),
        None => mlir::integer_of(attribute).map(Size::Constant),
    };
    mlir::array_of(attribute).into_iter().filter_map(size).collect()
}

mlir::op_view! {
    /// A `tc.comprehension`: one statement.
    Comprehension, "tc.comprehension"
}

impl<'c> Comprehension<'c> {
    /// The name of the tensor that is defined.
    pub fn target(self) -> &'c str {
        mlir::string_attr(self.op, "target").unwrap_or_default()
    }

    /// The names of the left-hand indices.
    pub fn index_vars(self) -> Vec<&'c str> {
        mlir::strings_attr(self.op, "index_vars")
    }

    /// The names of the reduction variables.
    pub fn reduction_vars(self) -> Vec<&'c str> {
        mlir::strings_attr(self.op, "reduction_vars")
    }

    /// The left-hand side, as in the source: `C(m, n)`.
    pub fn left_text(self) -> String {
        match (mlir::string_attr(self.op, "text"), &self.index_vars()[..]) {
            (Some(text), _) => text.to_string(),
            (None, []) => self.target().to_string(),
            (None, names) => format!("{}({})", self.target(), names.join(", ")),
        }
    }

    /// The numbers of the left-hand indices that are computed, ascending.
    pub fn addressed(self) -> Vec<usize> {
        let numbers = mlir::integers_attr(self.op, "addressed");
        numbers.into_iter().map(|number| number as usize).collect()
    }

    /// The values of the computed left-hand indices, in the order of [`addressed`](Self::addressed).
    pub fn addresses(self) -> Vec<Val<'c>> {
        mlir::operands(mlir::terminator(self.body())).split_off(1)
    }

    /// How values are folded.
    pub fn combiner(self) -> Combiner {
        let attribute = self.op.attribute("combiner").ok();
        attribute.and_then(Combiner::from_attribute).unwrap_or(Combiner::ASSIGN)
    }

    /// What the tensor held before, if it takes part.
    pub fn outs(self) -> Option<Val<'c>> {
        mlir::operand_group(self.op, 0).first().copied()
    }

    /// The variables that a `where` clause bounds: number (left-hand indices first),
    /// lower bound, and upper bound, which is excluded.
    pub fn bounds(self) -> Vec<(usize, Val<'c>, Val<'c>)> {
        let bounds = mlir::operand_group(self.op, 1);
        mlir::integers_attr(self.op, "bounded")
            .into_iter()
            .zip(bounds.chunks_exact(2))
            .map(|(variable, pair)| (variable as usize, pair[0], pair[1]))
            .collect()
    }

    /// The domain that range inference found; its results are the position at which an
    /// element is stored.
    pub fn domain(self, ir: &tc_ir::Context) -> Option<IndexingMap> {
        imap::map::from_attribute(ir, self.op.attribute("domain").ok()?)
    }

    /// The block that computes the value.
    pub fn body(self) -> Blk<'c> {
        mlir::body(self.op, 0).expect("a verified tc.comprehension has a body")
    }

    /// The block of the reads that only take part in range inference.
    pub fn exists(self) -> Option<Blk<'c>> {
        mlir::body(self.op, 1)
    }

    /// The tensor after the statement.
    pub fn result(self) -> Val<'c> {
        mlir::result(self.op, 0)
    }

    /// The type of one element, signless.
    pub fn scalar_type(self) -> Type<'c> {
        let element = mlir::element_type(self.result().r#type());
        mlir::signless(mlir::context_of(self.op), element)
    }
}
