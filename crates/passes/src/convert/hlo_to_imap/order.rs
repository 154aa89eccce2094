//! `sort` and `topk`: a stable merge sort of each row.

use super::{
    Lowering,
    nest::{IndexMath, Memory, fold, for_each},
    scalar,
    value::{Array, Scalar},
};
use crate::convert::loops::build_if;
use tc_dialects::{
    hlo::{ArrayShape, Attribute, ElementKind, ElementType, Instruction, Shape},
    mlir::{Builder, Val},
};

/// Whether the first of two elements, of several arrays each, has to stand before the second.
type Less<'a, 'c> =
    dyn Fn(&Builder<'c>, &[Scalar<'c>], &[Scalar<'c>]) -> Result<Val<'c>, String> + 'a;

impl<'c> Lowering<'c, '_> {
    pub(super) fn sort(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        sources: &[&Array<'c>],
    ) -> Result<Vec<Array<'c>>, String> {
        let applied = self.applied(instruction, Attribute::ToApply)?;
        let dim = instruction.dimensions().first().copied().unwrap_or(0) as usize;
        if sources[0].shape.is_scalar() {
            return Ok(sources.iter().map(|source| (*source).clone()).collect());
        }
        let results: Vec<_> = sources.iter().map(|source| Memory::copy_of(b, source)).collect();
        sort_rows(b, &results, sources[0].dims(), dim, &|b, x, y| {
            // The computation takes both elements of the first array, then of the second, ..
            let arguments: Vec<_> =
                x.iter().zip(y).flat_map(|(x, y)| [x.clone(), y.clone()]).collect();
            Ok(scalar::computation(b, self.module, applied, &arguments)?[0][0])
        })?;
        Ok(results.into_iter().map(|memory| memory.array(b)).collect())
    }

    /// `topk`: the first elements of each row in order, and their indices; of equal elements the
    /// one with the lower index comes first. Floats are in their total order: -0 is less than 0, and
    /// a positive NaN is the largest.
    pub(super) fn top_k(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let largest = instruction.attribute(Attribute::Largest).is_none()
            || instruction.flag(Attribute::Largest);
        let kind = source.element().kind();
        self.first_of_rows(b, source, results, &|b, x, y| {
            let (x, y) = if largest { (x[0][0], y[0][0]) } else { (y[0][0], x[0][0]) };
            Ok(match kind {
                ElementKind::Float => {
                    let (x, y) = (scalar::total_order(b, x), scalar::total_order(b, y));
                    b.compare_int("sgt", x, y)
                }
                ElementKind::Signed => b.compare_int("sgt", x, y),
                _ => b.compare_int("ugt", x, y),
            })
        })
    }

    /// The custom call that replaces a sort of which only the first elements are used. What it
    /// calls compares two elements; it may take the indices of both besides.
    ///
    /// Source: OpenXLA, `TopkRewriter`.
    pub(super) fn custom_top_k(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        source: &Array<'c>,
        results: &[&ArrayShape],
    ) -> Result<Vec<Array<'c>>, String> {
        let element = source.element();
        let is_right = match (results, source.dims().split_last()) {
            ([values, indices], Some((extent, rows))) => {
                values.element_type == element
                    && indices.element_type == ElementType::S32
                    && values.dims == indices.dims
                    && values.dims.split_last().is_some_and(|(k, all)| k <= extent && all == rows)
            }
            _ => false,
        };
        if !is_right {
            let operand = Shape::Array(source.shape.clone());
            return Err(format!(
                "expected the first elements of {} and, as s32, their indices; found {}",
                operand.without_layout(),
                instruction.shape.without_layout()
            ));
        }
        let Some([compare]) = instruction.computations(Attribute::CalledComputations) else {
            return self.top_k(b, instruction, source, results);
        };
        let computation = &self.module[*compare];
        let takes: Vec<_> = computation.parameter_shapes().collect();
        let all = [element, element, ElementType::S32, ElementType::S32].map(Shape::scalar);
        if ![2, 4].contains(&takes.len())
            || takes.iter().zip(&all).any(|(found, expected)| !found.is_compatible(expected))
            || !computation.root().shape.is_compatible(&Shape::scalar(ElementType::Pred))
        {
            return Err(format!("expected '{}' to compare two {element}", computation.name));
        }
        self.first_of_rows(b, source, results, &|b, x, y| {
            let mut arguments: Vec<_> =
                x.iter().zip(y).flat_map(|(x, y)| [x.clone(), y.clone()]).collect();
            arguments.truncate(takes.len());
            Ok(scalar::computation(b, self.module, *compare, &arguments)?[0][0])
        })
    }

    /// The first elements of the sorted rows of an array, and their indices.
    fn first_of_rows(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        results: &[&ArrayShape],
        less: &Less<'_, 'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let dim = source.shape.rank() - 1;
        let numbers = ArrayShape { element_type: ElementType::S32, ..source.shape.clone() };
        let numbers = self.generate(b, &numbers, &|b, index| {
            Ok(vec![b.value("arith.index_cast", &[index[dim]], b.int_type(32))])
        })?;
        let rows = [Memory::copy_of(b, source), Memory::copy_of(b, &numbers)];
        sort_rows(b, &rows, source.dims(), dim, less)?;
        let mut found = Vec::new();
        for (memory, shape) in rows.into_iter().zip(results) {
            let all = memory.array(b);
            let index = super::identity(self.ir, shape.rank());
            found.push(self.gather_by_map(b, &all, shape, &index)?);
        }
        Ok(found)
    }
}

/// Sorts the rows of several arrays of the same sizes along a dimension, by what is in all of
/// them. Runs of 1, 2, 4, .. elements are merged from one of two rows of scratch into the other.
fn sort_rows<'c>(
    b: &Builder<'c>,
    arrays: &[Memory<'c>],
    dims: &[i64],
    dim: usize,
    less: &Less<'_, 'c>,
) -> Result<(), String> {
    let extent = dims[dim];
    let row =
        |memory: &Memory<'c>| Memory::scratch(b, &ArrayShape::new(memory.element(), vec![extent]));
    let scratch: [Vec<_>; 2] = [arrays.iter().map(row).collect(), arrays.iter().map(row).collect()];
    let mut others = dims.to_vec();
    others[dim] = 1;
    for_each(b, &others, &mut |b, place| {
        let at = |index: Val<'c>| {
            let mut place = place.to_vec();
            place[dim] = index;
            place
        };
        for_each(b, &[extent], &mut |b, index| {
            for (array, row) in arrays.iter().zip(&scratch[0]) {
                row.store(b, index, &array.load(b, &at(index[0])));
            }
            Ok(())
        })?;
        let (mut width, mut current) = (1, 0);
        while width < extent {
            merge_runs(b, &scratch[current], &scratch[1 - current], extent, width, less)?;
            current = 1 - current;
            width *= 2;
        }
        for_each(b, &[extent], &mut |b, index| {
            for (array, row) in arrays.iter().zip(&scratch[current]) {
                array.store(b, &at(index[0]), &row.load(b, index));
            }
            Ok(())
        })
    })
}

/// Merges pairs of sorted runs of `width` elements.
fn merge_runs<'c>(
    b: &Builder<'c>,
    from: &[Memory<'c>],
    to: &[Memory<'c>],
    extent: i64,
    width: i64,
    less: &Less<'_, 'c>,
) -> Result<(), String> {
    let num_pairs = (extent + 2 * width - 1) / (2 * width);
    for_each(b, &[num_pairs], &mut |b, pair| {
        let ty = b.index_type();
        let last = b.index(extent);
        let bounded = |value: Val<'c>| b.value("arith.minsi", &[value, last], ty);
        let start = b.scale_index(pair[0], 2 * width);
        let middle = bounded(b.add_index(start, b.index(width)));
        let end = bounded(b.add_index(start, b.index(2 * width)));
        let count = b.sub_index(end, start);
        fold(b, count, &[start, middle], &mut |b, number, carried| {
            let (left, right) = (carried[0], carried[1]);
            let load = |b: &Builder<'c>, index: Val<'c>| -> Vec<Scalar<'c>> {
                from.iter().map(|memory| memory.load(b, &[index])).collect()
            };
            let has_left = b.compare_int("slt", left, middle);
            let has_right = b.compare_int("slt", right, end);
            let both = b.and(has_left, has_right);
            let mut failed = Ok(());
            let takes_right = build_if(
                b,
                both,
                &mut |b| {
                    let (x, y) = (load(b, right), load(b, left));
                    vec![less(b, &x, &y).unwrap_or_else(|error| {
                        failed = Err(error);
                        both
                    })]
                },
                &mut |_| vec![has_right],
            )[0];
            failed?;
            let taken = b.select(takes_right, right, left);
            let place = b.add_index(start, number);
            for (memory, value) in to.iter().zip(load(b, taken)) {
                memory.store(b, &[place], &value);
            }
            let one = b.index(1);
            let next_left = b.select(takes_right, left, b.add_index(left, one));
            let next_right = b.select(takes_right, b.add_index(right, one), right);
            Ok(vec![next_left, next_right])
        })?;
        Ok(())
    })
}
