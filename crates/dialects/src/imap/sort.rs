//! `imap.sort`: its view from Rust, its verifier, and tiles of it.
//!
//! A loop per dimension. The sorted one is whole in every tile.

use super::{
    extents::queried_extent,
    tiling::{self, Index, Operand, Reason, Span, Tiled},
    verify::{error, verify_block, verify_captures},
};
use crate::{
    mlir::{self, Blk, Builder, Val},
    report::Report,
};
use melior::{
    Context,
    ir::{Attribute, Type, TypeLike, ValueLike, operation::OperationLike},
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

    /// Whether items that the comparator leaves undecided keep their order.
    pub fn is_stable(self) -> bool {
        self.op.attribute("stable").is_ok()
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

    /// Whether each loop is parallel: all but the sorted one.
    pub(crate) fn parallel_loops(self) -> Vec<bool> {
        (0..self.rank()).map(|dim| dim != self.dim()).collect()
    }

    /// Offset and size of each loop.
    pub(crate) fn iteration_domain(self, builder: Builder<'c>) -> Vec<Span<'c>> {
        let input = self.inputs()[0];
        (0..self.rank()).map(|dim| whole(&builder, input, dim)).collect()
    }

    /// The operation on a tile, with slices of its operands.
    ///
    /// # Errors
    /// It works on buffers, or the tile cuts the sorted dimension.
    pub(crate) fn tile(self, builder: Builder<'c>, tile: &[Span<'c>]) -> Result<Tiled<'c>, Reason> {
        let (inputs, inits) = (self.inputs(), self.inits());
        if !inputs.iter().chain(&inits).all(|operand| mlir::is_tensor(operand.r#type())) {
            return Err(tiling::ON_BUFFERS.to_string());
        }
        self.check_whole(&inputs, tile)?;
        let mut slices = Vec::new();
        let mut slice = |operand: &Val<'c>| {
            let op = tiling::build_extract_slice(
                &builder,
                *operand,
                &self.spans_of(&builder, *operand, tile),
            );
            slices.push(op);
            mlir::result(op, 0)
        };
        let operands: Vec<_> = inputs.iter().chain(&inits).map(&mut slice).collect();
        let (inputs, inits) = operands.split_at(inputs.len());
        let new = Self::build(&builder, self.dim(), inputs, inits);
        mlir::copy_block(builder.context, self.comparator(), new.comparator(), builder.location);
        if !self.is_stable() {
            mlir::remove_attribute(new.op, "stable");
        }
        tiling::copy_attributes(self.op, new.op);
        Ok(Tiled { slices, op: new.op })
    }

    /// The position of the tile of a result.
    pub(crate) fn result_position(
        self,
        builder: Builder<'c>,
        result: usize,
        tile: &[Span<'c>],
    ) -> Vec<Span<'c>> {
        self.spans_of(&builder, self.inits()[result], tile)
    }

    /// The tile of iterations for equal tiles of operands.
    ///
    /// # Errors
    /// The tiles differ, or cut the sorted dimension.
    pub(crate) fn domain_tile(
        self,
        builder: Builder<'c>,
        tiles: &[(Operand, Vec<Span<'c>>)],
    ) -> Result<Vec<Span<'c>>, Reason> {
        let (inputs, inits) = (self.inputs(), self.inits());
        let mut found: Option<Vec<Span>> = None;
        for (operand, tile) in tiles {
            let operands = match *operand {
                Operand::Number(number) if number < inputs.len() => &inputs,
                _ => &inits,
            };
            self.check_whole(operands, tile)?;
            let mut domain = tile.clone();
            domain[self.dim()] = whole(&builder, inputs[0], self.dim());
            let is_same = |found: &Vec<Span<'c>>| {
                let mut pairs = found.iter().zip(&domain).enumerate();
                pairs.all(|(dim, (one, other))| dim == self.dim() || one == other)
            };
            if found.as_ref().is_some_and(|found| !is_same(found)) {
                return Err("the tiles of two operands belong to different rows".to_string());
            }
            found = Some(domain);
        }
        found.ok_or_else(|| "expected the tile of an operand".to_string())
    }

    fn rank(self) -> usize {
        mlir::shape(self.inputs()[0].r#type()).len()
    }

    /// Rejects a tile that does not hold whole rows of operands.
    fn check_whole(self, operands: &[Val<'c>], tile: &[Span<'c>]) -> Result<(), Reason> {
        let dim = self.dim();
        let extents: Vec<_> = operands.iter().map(|it| mlir::shape(it.r#type())[dim]).collect();
        let is_extent = |size: Index<'c>| match size {
            Index::Constant(size) => extents.contains(&Some(size)),
            Index::Value(size) => queried_extent(size)
                .is_some_and(|(tensor, of)| of == dim && operands.contains(&tensor)),
        };
        let span = tile.get(dim).ok_or("expected a tile of the rank of the inputs")?;
        if span.offset == Index::Constant(0) && is_extent(span.size) {
            return Ok(());
        }
        Err(format!("cannot tile dimension {dim}: the sort goes along it; tile other dimensions"))
    }

    /// The part of an operand that a tile accesses.
    fn spans_of(self, builder: &Builder<'c>, operand: Val<'c>, tile: &[Span<'c>]) -> Vec<Span<'c>> {
        let mut spans = tile.to_vec();
        spans[self.dim()] = whole(builder, operand, self.dim());
        spans
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

/// All indices of a dimension.
fn whole<'c>(builder: &Builder<'c>, operand: Val<'c>, dim: usize) -> Span<'c> {
    let size = match mlir::shape(operand.r#type())[dim] {
        Some(extent) => Index::Constant(extent),
        None => Index::Value(builder.dim(operand, dim)),
    };
    Span { offset: Index::Constant(0), size }
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
