//! Rows that do not share sets of a cache.
//!
//! A register block of a product reads one element of several rows of the first factor. If rows are a power of two apart,
//! these elements are in the same set of the first-level cache, and displace each other. The step `pack` copies the
//! factor, one tile at a time, to memory in which each row starts some lines further than a multiple of the row before.
//!
//! Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).

use super::pack::{MAX_ELEMENTS, scratch};
use crate::target::LINE_BYTES;
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{
        Access, AnyIndexed, Indexed, Runtime, View,
        extents::extent_expr,
        tiling::{Index, Span, build_extract_slice},
    },
    mlir::{self, Builder},
};
use tc_ir::{
    Context, Interval,
    map::{IndexingMap, Variable},
};

/// Lets an operation read a copy of the input of a number.
///
/// # Errors
/// There is no such input, or it is not known to be small.
pub(super) fn copy_rows(ir: &Context, op: AnyIndexed, input: usize) -> Result<(), String> {
    let inputs = op.inputs();
    let value = *inputs.get(input).ok_or_else(|| {
        format!("the schedule packs input {input}, and the operation has {}", inputs.len())
    })?;
    let builder = Builder::before(op.op()).located(op.op().location());
    let intervals = op.domain(ir).intervals(ir);
    let (mut spans, mut memory, mut dims, mut sizes) = (vec![], vec![], vec![], vec![]);
    for (dim, extent) in mlir::shape(value.r#type()).into_iter().enumerate() {
        let (size, most, last) = match extent {
            Some(extent) => (Index::Constant(extent), extent, ir.constant(extent - 1)),
            None => {
                let size = builder.dim(value, dim);
                let extent = extent_expr(ir, &op.runtimes(), value, dim);
                let bounds = extent.map(|it| ir.interval_of(it, &|var| intervals.of(var)));
                let most = bounds.map_or(i64::MAX, |it| it.hi.max(0));
                let last = ir.wrap(ir.runtime(sizes.len() as u32)) - 1;
                sizes.push((size, Variable::bounded(ir, Interval::new(0, most))));
                (Index::Value(size), most, last.expr())
            }
        };
        spans.push(Span { offset: Index::Constant(0), size });
        memory.push(Some(most));
        dims.push(Variable::between(ir.constant(0), last));
    }
    if memory.contains(&Some(0)) {
        // A slice of nothing is no slice upstream.
        return Ok(());
    }
    let elements = memory.iter().flatten().fold(1, |all: i64, it| all.saturating_mul(*it));
    if MAX_ELEMENTS < elements {
        return Err(format!(
            "the schedule packs input {input}, which is not known to have less than {MAX_ELEMENTS} elements; \
             cut it by a step before"
        ));
    }
    let element = mlir::element_type(value.r#type());
    let is_row = |dim: &usize| memory[*dim] != Some(1);
    if let Some(row) = (1..memory.len()).rev().find(is_row) {
        let per_line = (LINE_BYTES / i64::from(mlir::byte_width(element).max(1))).max(1) as u64;
        let padded = memory[row].unwrap_or(1) as u64;
        memory[row] = Some((padded.next_multiple_of(per_line) + per_line) as i64);
    }
    let memory = builder.value("tensor.empty", &[], mlir::tensor_type(&memory, element));
    let copy = mlir::result(build_extract_slice(&builder, memory, &spans), 0);
    let mut domain = IndexingMap::identity_of(ir, dims);
    let places = std::mem::take(&mut domain.results);
    let accesses = [Access::new(value, places.clone()), Access::new(copy, places)];
    let (sizes, variables) = sizes.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
    domain.runtimes = variables;
    let runtimes = sizes.into_iter().map(Runtime::Index).collect();
    let copy = View { runtimes, ..View::of_copy(domain, accesses) }.build_copy(ir, &builder);
    mlir::set_operand(op.op(), op.runtimes().len() + input, scratch(mlir::result(copy.op(), 0)));
    Ok(())
}
