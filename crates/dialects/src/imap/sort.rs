//! `imap.sort`: its view from Rust, and its verifier.

use super::verify::{error, verify_block, verify_captures};
use crate::{
    mlir::{self, Blk, Builder, Val},
    report::Report,
};
use melior::{
    Context,
    ir::{Attribute, Type, TypeLike, ValueLike},
};

mlir::op_view! {
    /// An `imap.sort`.
    Sort, "imap.sort"
}

impl<'c> Sort<'c> {
    /// The dimension along which rows are sorted.
    pub fn dim(self) -> usize {
        let dim = mlir::integer_attr(self.op, "dim").and_then(|dim| usize::try_from(dim).ok());
        dim.expect("a verified operation has a dimension")
    }

    /// The tensors read.
    pub fn inputs(self) -> Vec<Val<'c>> {
        mlir::operand_group(self.op, 0)
    }

    /// The destinations, one per input, and one more if [`Self::has_places`].
    pub fn inits(self) -> Vec<Val<'c>> {
        mlir::operand_group(self.op, 1)
    }

    /// Whether the last destination receives where the items stood in their rows.
    pub fn has_places(self) -> bool {
        self.inputs().len() < self.inits().len()
    }

    /// The block that tells whether the first of two items must stand before the second.
    pub fn comparator(self) -> Blk<'c> {
        mlir::body(self.op, 0).expect("a verified operation has a comparator")
    }

    /// Builds a stable sort. The block of its comparator has the arguments, and is empty.
    pub fn build(builder: &Builder<'c>, dim: usize, inputs: &[Val<'c>], inits: &[Val<'c>]) -> Self {
        let context = builder.context;
        let elements: Vec<_> = inputs.iter().flat_map(|input| pair(context, *input)).collect();
        let (region, _) = mlir::region_with_block(&elements, builder.location);
        let types = inits.iter().map(|init| init.r#type());
        let results: Vec<_> = types.filter(|ty| mlir::is_tensor(*ty)).collect();
        let op = builder.op_with(
            Self::NAME,
            &[inputs, inits].concat(),
            &results,
            &[
                ("dim", mlir::i64_attr(context, dim as i64)),
                ("stable", Attribute::unit(context)),
                ("operandSegmentSizes", mlir::segments(context, &[inputs.len(), inits.len()])),
            ],
            vec![region],
        );
        Self { op }
    }

    /// Checks S1 to S3.
    pub(super) fn verify(self) -> Result<(), Report<'c>> {
        let (inputs, inits) = (self.inputs(), self.inits());
        let Some(first) = inputs.first().map(|input| mlir::shape(input.r#type())) else {
            return error("expected at least one input");
        };
        let dim = mlir::integer_attr(self.op, "dim").unwrap_or(-1);
        let dim = usize::try_from(dim).ok().filter(|dim| *dim < first.len());
        let Some(dim) = dim else {
            return error(format!(
                "expected 'dim' to be one of the {} dimensions of the inputs",
                first.len()
            ));
        };
        if !(inputs.len()..=inputs.len() + 1).contains(&inits.len()) {
            return error(format!(
                "has {} inputs, but {} destinations; expected one destination per input, and at \
                 most one more",
                inputs.len(),
                inits.len()
            ));
        }
        let kept = mlir::shape(inits[0].r#type());
        for (number, (input, init)) in inputs.iter().zip(&inits).enumerate() {
            let (input, init) = (input.r#type(), init.r#type());
            if mlir::element_type(input) != mlir::element_type(init) {
                return error(format!(
                    "destination {number} has elements of '{}', but input {number} of '{}'",
                    mlir::element_type(init),
                    mlir::element_type(input)
                ));
            }
            if !agree(&first, &mlir::shape(input), None) {
                return error(format!("input {number} has another shape than input 0"));
            }
        }
        for (number, init) in inits.iter().enumerate() {
            if !agree(&kept, &mlir::shape(init.r#type()), None) {
                return error(format!("destination {number} has another shape than destination 0"));
            }
        }
        if let Some(places) = inits.get(inputs.len()) {
            let element = mlir::element_type(places.r#type());
            if !element.is_index() && mlir::integer_width(element).is_none() {
                return error(format!(
                    "the last destination, for the places of the items, has elements of \
                     '{element}'; expected integers"
                ));
            }
        }
        if !agree(&first, &kept, Some(dim)) {
            return error(format!(
                "the destinations must have the shape of the inputs, except in dimension {dim}"
            ));
        }
        if let (Some(extent), Some(kept)) = (first[dim], kept[dim])
            && extent < kept
        {
            return error(format!(
                "the destinations hold {kept} items per row, but the inputs have {extent}"
            ));
        }
        let context = mlir::context_of(self.op);
        let elements: Vec<_> = inputs.iter().flat_map(|input| pair(context, *input)).collect();
        let flag = mlir::parse_type(context, "i1");
        verify_block("comparator", self.comparator(), &elements, &[flag])?;
        verify_captures("comparator", self.comparator())
    }
}

/// The types of two elements of a tensor.
fn pair<'c>(context: &'c Context, tensor: Val<'c>) -> [Type<'c>; 2] {
    [mlir::signless(context, mlir::element_type(tensor.r#type())); 2]
}

/// Whether shapes may be the same at run time, apart from one dimension.
fn agree(first: &[Option<i64>], second: &[Option<i64>], except: Option<usize>) -> bool {
    let differs = |(dim, (first, second)): (usize, (&Option<i64>, &Option<i64>))| {
        Some(dim) != except && first.is_some() && second.is_some() && first != second
    };
    first.len() == second.len() && !first.iter().zip(second).enumerate().any(differs)
}
