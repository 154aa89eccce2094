//! Tensors that several operations write, each a part of it, such as a concatenation or a roll. Where readers are
//! operations on elements, each of them becomes one operation per part: what computes the part can then be fused into it.
//!
//! Before, shortened:
//!
//! ```mlir
//! %1 = imap.generic (i) domain: i in [0, 3] ins(%x[i + 4] ..) outs(%e[i] ..) {..}
//! %2 = imap.generic (i) domain: i in [0, 3] ins(%x[i] ..) outs(%1[i + 4] ..) {..}
//! %y = imap.generic (i) domain: i in [0, 7] ins(%2[i], %w[i] ..) outs(%e[i] ..) {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %1 = imap.generic (i) domain: i in [0, 3] ins(%x[i + 4] ..) outs(%f[i] ..) {..}
//! %2 = imap.generic (i) domain: i in [0, 3] ins(%x[i] ..) outs(%f[i] ..) {..}
//! %3 = imap.generic (i) domain: i in [0, 3] ins(%1[i], %w[i] ..) outs(%e[i] ..) {..}
//! %y = imap.generic (i) domain: i in [4, 7] ins(%2[i - 4], %w[i] ..) outs(%3[i] ..) {..}
//! ```

use super::{
    candidate::{Candidate, body_size, body_work, has_function},
    cost::variable_name,
    legality::Rejection,
};
use crate::target::CostModel;
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{
        Access, Generic, Indexed, Runtime, View, extents::shifted_dim, tiling::copy_attributes,
    },
    mlir::{self, Builder, Op, Val},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
};

/// An operation that writes a part of a tensor.
struct Part<'c> {
    writer: Generic<'c>,
    view: View<'c>,
    /// The elements that it writes, per dimension of the tensor.
    elements: Vec<Interval>,
}

/// An operation on elements that reads the tensor.
struct Reader<'c> {
    generic: Generic<'c>,
    view: View<'c>,
    /// The numbers of the inputs that read the tensor.
    reads: Vec<usize>,
    /// Boxes of its points, from each of which a read sees one part.
    cells: Vec<Vec<Interval>>,
}

/// The readers of a tensor that is written in parts, and how they are divided.
pub(super) struct Division<'c, 'i> {
    ir: &'i Context,
    parts: Vec<Part<'c>>,
    readers: Vec<Reader<'c>>,
}

/// Decides whether the readers of the tensor that an operation completes are divided. `None` if the tensor is not written in
/// parts.
pub(super) fn plan<'c, 'i>(
    ir: &'i Context,
    last: Generic<'c>,
    model: &dyn CostModel,
) -> Option<Result<Division<'c, 'i>, Rejection>> {
    let tensor = *mlir::results(last.op()).first()?;
    mlir::defining_op(*last.inits().first()?).and_then(Generic::cast)?;
    let mut users: Vec<Op> = Vec::new();
    for (user, _) in mlir::uses(tensor) {
        if Generic::cast(user).is_some_and(|it| it.inits().contains(&tensor)) {
            // Another part follows.
            return None;
        }
        if !users.contains(&user) {
            users.push(user);
        }
    }
    let parts = parts(ir, last)?;
    let readers = users.into_iter().map(|user| {
        let generic = Generic::cast(user).ok_or(Rejection::ReaderOfParts)?;
        let reader = reader(ir, &parts, generic, model.max_body())?;
        check_costs(ir, &parts, &reader, model).map(|()| reader)
    });
    Some(readers.collect::<Result<Vec<_>, _>>().and_then(|readers| {
        // Several readers compute nothing but copies again.
        let has_work = parts.iter().any(|part| body_work(part.writer.body()) != 0);
        match readers.len() {
            0 => Err(Rejection::ReaderOfParts),
            2.. if has_work => Err(Rejection::SeveralConsumers),
            _ => Ok(Division { ir, parts, readers }),
        }
    }))
}

impl<'c> Division<'c, '_> {
    /// Divides the readers. Returns the number of parts.
    pub(super) fn apply(self) -> usize {
        let Self { ir, parts, readers } = self;
        let last = parts[0].writer;
        let alone: Vec<_> = parts.iter().map(|part| build_alone(ir, last, part)).collect();
        for mut reader in readers {
            let op = reader.generic.op();
            // It may read the result of a reader that is replaced now.
            reader.view = Candidate::new(ir, reader.generic).view;
            let mut inits = reader.view.inits();
            for cell in &reader.cells {
                let cell = build_cell(ir, &reader, cell, &inits, (&parts, &alone));
                inits = mlir::results(cell.op());
            }
            mlir::replace(op, &inits);
        }
        parts.iter().for_each(|part| mlir::erase(part.writer.op()));
        parts.len()
    }
}

/// The operations that write disjoint parts of a tensor, and together all of it, from the last one on.
fn parts<'c>(ir: &Context, last: Generic<'c>) -> Option<Vec<Part<'c>>> {
    let shape = mlir::shape(mlir::result(last.op(), 0).r#type());
    let num_elements = shape
        .into_iter()
        .try_fold(1_u64, |all, extent| all.checked_mul(u64::try_from(extent?).ok()?))?;
    let (mut found, mut missing, mut next) = (Vec::<Part>::new(), num_elements, Some(last));
    while 0 < missing {
        let writer = next?;
        let part = part(ir, writer)?;
        let is_apart = |other: &Part| {
            let mut pairs = other.elements.iter().zip(&part.elements);
            pairs.any(|(first, second)| first.intersect(*second).is_empty())
        };
        let is_read_by_next =
            writer.op() == last.op() || mlir::uses(mlir::result(writer.op(), 0)).len() == 1;
        let count = part
            .elements
            .iter()
            .try_fold(1_u64, |all, interval| all.checked_mul(interval.num_members()?))?;
        if !found.iter().all(is_apart) || !is_read_by_next || count == 0 {
            return None;
        }
        missing = missing.checked_sub(count)?;
        next = mlir::defining_op(part.view.outputs[0].value)
            .and_then(Generic::cast)
            .filter(|it| it.op().block() == last.op().block());
        found.push(part);
    }
    (1 < found.len()).then_some(found)
}

/// An operation on elements, with one result, and the box that it writes.
fn part<'c>(ir: &Context, writer: Generic<'c>) -> Option<Part<'c>> {
    let candidate = Candidate::new(ir, writer);
    if candidate.is_reduction()
        || candidate.check_schedule().is_err()
        || writer.op().result_count() != 1
        || !candidate.view.domain.constraints.is_empty()
    {
        return None;
    }
    let view = candidate.view;
    let mut used = BTreeSet::new();
    let elements = view.outputs[0].subscripts.iter().map(|subscript| {
        let (dim, values) = values(ir, &view, *subscript)?;
        dim.is_none_or(|dim| used.insert(dim)).then_some(values)
    });
    let elements = elements.collect::<Option<_>>()?;
    // Other dimensions would write elements again.
    let is_written = |var: &Var| matches!(var, Var::Dim(dim) if used.contains(dim));
    view.looping_dims(ir).iter().all(is_written).then_some(Part { writer, view, elements })
}

/// The values of a constant, or of a dimension variable with a constant offset. Returns the variable as well.
fn values(ir: &Context, view: &View, subscript: Expr) -> Option<(Option<u32>, Interval)> {
    if let Some(value) = ir.as_constant(subscript) {
        return Some((None, Interval::point(value)));
    }
    let (dim, offset) = shifted_dim(ir, subscript)?;
    let offset = ir.as_constant(offset)?;
    let bounds = view.domain.dims[dim as usize].constant_interval(ir)?;
    let end = |end: i64| end.checked_add(offset);
    Some((Some(dim), Interval::new(end(bounds.lo)?, end(bounds.hi)?)))
}

/// How a reader can be divided, into at most so many operations.
fn reader<'c>(
    ir: &Context,
    parts: &[Part<'c>],
    generic: Generic<'c>,
    most: usize,
) -> Result<Reader<'c>, Rejection> {
    let last = parts[0].writer;
    let tensor = mlir::result(last.op(), 0);
    let candidate = Candidate::new(ir, generic);
    let reads = candidate.reads_of(last.into());
    candidate.check_schedule()?;
    let view = candidate.view.clone();
    let elements = view.runtimes.iter().filter_map(Runtime::access);
    let is_used_otherwise =
        view.outputs.iter().chain(elements).any(|access| access.value == tensor);
    if candidate.is_reduction()
        || generic.op().block() != last.op().block()
        || is_used_otherwise
        || reads.iter().any(|read| !view.inputs[*read].guard.is_empty())
    {
        return Err(Rejection::ReaderOfParts);
    }
    let cuts = cuts(ir, parts, &view, &reads).ok_or(Rejection::ReaderOfParts)?;
    let mut cells = vec![Vec::new()];
    for (dim, cuts) in view.domain.dims.iter().zip(cuts) {
        let bounds = dim.constant_interval(ir);
        if bounds.is_some_and(Interval::is_empty) {
            return Err(Rejection::ReaderOfParts);
        }
        // A dimension without known bounds has no cuts, and keeps them.
        let bounds = bounds.unwrap_or(Interval::ALL);
        let firsts: Vec<i64> = std::iter::once(bounds.lo).chain(cuts).collect();
        let ends = firsts[1..].iter().map(|first| first - 1).chain([bounds.hi]);
        let intervals: Vec<_> =
            firsts.iter().zip(ends).map(|(lo, hi)| Interval::new(*lo, hi)).collect();
        if most < cells.len() * intervals.len() {
            return Err(Rejection::LargeBody(cells.len() * intervals.len(), most));
        }
        let all = cells.into_iter().flat_map(|cell| {
            intervals.iter().map(move |interval| [cell.clone(), vec![*interval]].concat())
        });
        cells = all.collect();
    }
    Ok(Reader { generic, view, reads, cells })
}

/// Per dimension variable of a reader, the values at which it begins to read another part. `None` if that is not so at one
/// value of one variable.
fn cuts(ir: &Context, parts: &[Part], view: &View, reads: &[usize]) -> Option<Vec<BTreeSet<i64>>> {
    let shape = mlir::shape(parts[0].view.outputs[0].value.r#type());
    let mut cuts = vec![BTreeSet::new(); view.domain.dims.len()];
    for read in reads {
        for (place, subscript) in view.inputs[*read].subscripts.iter().enumerate() {
            let all = Interval::new(0, shape[place]? - 1);
            if parts.iter().all(|part| part.elements[place] == all) {
                continue;
            }
            let (Some(dim), values) = values(ir, view, *subscript)? else { continue };
            let first = view.domain.dims[dim as usize].constant_interval(ir)?.lo;
            let starts = parts.iter().map(|part| part.elements[place].lo);
            let ends = parts.iter().map(|part| part.elements[place].hi + 1);
            let inner = starts.chain(ends).filter(|at| values.lo < *at && *at <= values.hi);
            cuts[dim as usize].extend(inner.map(|at| at - values.lo + first));
        }
    }
    Some(cuts)
}

/// Whether a divided reader is small enough for LLVM, repeats little work, and can use vectors.
fn check_costs(
    ir: &Context,
    parts: &[Part],
    reader: &Reader,
    model: &dyn CostModel,
) -> Result<(), Rejection> {
    let (op, reads) = (reader.generic.op(), reader.reads.len());
    let size = body_size(op).saturating_mul(num_links(op) - 1 + reader.cells.len());
    if model.max_body() < size {
        return Err(Rejection::LargeBody(size, model.max_body()));
    }
    // A few more than the operations that write the parts now.
    if 2 * parts.len() < reader.cells.len() {
        return Err(Rejection::Pieces(reader.cells.len(), parts.len()));
    }
    let work = parts.iter().map(|part| body_work(part.writer.body())).max().unwrap_or(0);
    let dims = reader.view.looping_dims(ir);
    let repeated = |read: &usize| {
        let used = ir.vars_of_all(&reader.view.inputs[*read].subscripts);
        dims.iter().copied().find(|dim| !used.contains(dim))
    };
    if let Some(var) = reader.reads.iter().find_map(repeated).filter(|_| 0 < work) {
        return Err(Rejection::ComputedAgain(variable_name(&reader.view.domain, var)));
    }
    let limit = model.max_recompute();
    if 1 < reads && limit < work * reads {
        return Err(Rejection::Recompute { reads, work, limit });
    }
    check_vectors(ir, reader)
}

/// Whether the parts of a reader have vectors.
fn check_vectors(ir: &Context, reader: &Reader) -> Result<(), Rejection> {
    let intervals = |dim: usize| reader.cells.iter().map(|cell| cell[dim]).collect::<BTreeSet<_>>();
    let is_single = |interval: &Interval| interval.lo == interval.hi;
    let has_border = |dim| {
        let intervals = intervals(dim);
        1 < intervals.len() && intervals.iter().any(is_single)
    };
    // A border shortens the rows. More of their elements then fill no vector, and call functions one by one.
    if has_function(reader.generic.body()) && (0..reader.view.domain.dims.len()).any(has_border) {
        return Err(Rejection::RestOfRows);
    }
    // Along a row, single elements have no vectors. A few of them are the border of a roll.
    let subscripts = reader.view.outputs[0].subscripts.iter().rev();
    let Some((dim, _)) = subscripts.copied().find_map(|it| shifted_dim(ir, it)) else {
        return Ok(());
    };
    let rows = intervals(dim as usize);
    if rows.len() == 1 {
        return Ok(());
    }
    let num_single = rows.iter().filter(|row| is_single(row)).count() as i64;
    let length = rows.iter().map(|row| row.hi - row.lo + 1).sum::<i64>();
    match num_single.saturating_mul(8) <= length {
        true => Ok(()),
        false => Err(Rejection::SingleElements),
    }
}

/// The operations that write parts of the same tensor as one of them.
fn num_links(op: Op) -> usize {
    let mut number = 1;
    let (mut first, mut last) = (op, op);
    while let Some(before) = Generic::cast(first)
        .and_then(|it| it.inits().first().copied())
        .and_then(mlir::defining_op)
        .filter(|it| Generic::cast(*it).is_some())
    {
        (first, number) = (before, number + 1);
    }
    while let [(user, _)] = mlir::uses(mlir::result(last, 0))[..]
        && Generic::cast(user).is_some_and(|it| it.inits().contains(&mlir::result(last, 0)))
    {
        (last, number) = (user, number + 1);
    }
    number
}

/// Builds an operation that writes its part into a tensor of its own, in front of the last one.
fn build_alone<'c>(ir: &Context, last: Generic<'c>, part: &Part<'c>) -> Generic<'c> {
    let builder = Builder::before(last.op()).located(part.writer.op().location());
    let mut view = part.view.clone();
    let output = &mut view.outputs[0];
    let extents: Vec<_> = part.elements.iter().map(|it| Some(it.hi - it.lo + 1)).collect();
    let element = mlir::element_type(output.value.r#type());
    let ty = mlir::tensor_type(&extents, element);
    output.value = builder.value("tensor.empty", &[], ty);
    shift(ir, output, &part.elements);
    build(ir, &builder, part.writer, &view)
}

/// Moves the elements of a part to the front of their tensor.
fn shift(ir: &Context, access: &mut Access, elements: &[Interval]) {
    for (subscript, interval) in access.subscripts.iter_mut().zip(elements) {
        *subscript = ir.canonicalize(ir.sub(*subscript, ir.constant(interval.lo)));
    }
}

/// Builds a reader for some of its points, each of which reads the tensor of one part.
fn build_cell<'c>(
    ir: &Context,
    reader: &Reader<'c>,
    cell: &[Interval],
    inits: &[Val<'c>],
    (parts, alone): (&[Part<'c>], &[Generic<'c>]),
) -> Generic<'c> {
    let builder = Builder::before(reader.generic.op()).located(reader.generic.op().location());
    let mut view = reader.view.clone();
    for (dim, interval) in view.domain.dims.iter_mut().zip(cell) {
        if *interval != Interval::ALL {
            dim.set_interval(ir, *interval);
        }
    }
    for read in &reader.reads {
        let first = |subscript: &Expr| {
            let at = ir.substitute(*subscript, &|var| match var {
                Var::Dim(dim) => Some(ir.constant(cell[dim as usize].lo)),
                _ => None,
            });
            ir.as_constant(ir.canonicalize(at))
        };
        let firsts: Vec<_> = view.inputs[*read].subscripts.iter().map(first).collect();
        let is_read = |part: &Part| {
            let mut pairs = firsts.iter().zip(&part.elements);
            pairs.all(|(first, elements)| first.is_none_or(|first| elements.contains(first)))
        };
        let number = parts.iter().position(is_read).expect("parts cover the tensor");
        let access = &mut view.inputs[*read];
        access.value = mlir::result(alone[number].op(), 0);
        shift(ir, access, &parts[number].elements);
    }
    for (output, init) in view.outputs.iter_mut().zip(inits) {
        output.value = *init;
    }
    build(ir, &builder, reader.generic, &view)
}

/// Builds an operation with the body and the attributes of another one.
fn build<'c>(
    ir: &Context,
    builder: &Builder<'c>,
    from: Generic<'c>,
    view: &View<'c>,
) -> Generic<'c> {
    let new = view.build(ir, builder, false);
    copy_attributes(from.op(), new.op());
    mlir::copy_block(builder.context, from.body(), new.body(), builder.location);
    new
}
