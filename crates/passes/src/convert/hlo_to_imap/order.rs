//! `sort` and `topk`: an `imap.sort` each, or the fold of each row where only the first element is asked
//! for.

use super::{
    Lowering,
    coding::{decode, encode},
    nest::{Nest, empty_array, identity},
    scalar,
    value::{self, Array, Scalar},
};
use tc_dialects::{
    hlo::{ArrayShape, Attribute, ElementKind, ElementType, Instruction, Shape},
    imap::{self, Accumulator, Combiner, CombinerKind, Indexed, Sort, Start},
    mlir::{self, Builder, Val},
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
        let results: Vec<_> = sources.iter().map(|source| &source.shape).collect();
        sort_rows(b, sources, &results, dim, &|b, x, y| {
            // The computation takes both elements of the first array, then of the second, ..
            let arguments: Vec<_> =
                x.iter().zip(y).flat_map(|(x, y)| [x.clone(), y.clone()]).collect();
            Ok(scalar::computation(b, self.module, applied, &arguments)?[0][0])
        })
    }

    /// `topk`: the first elements of each row in order, and their indices. Floats are in their total
    /// order: -0 is less than 0, and a positive NaN is the largest.
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
        let compare = |b: &Builder<'c>, x: &[Scalar<'c>], y: &[Scalar<'c>]| {
            let arguments: Vec<_> =
                x.iter().zip(y).flat_map(|(x, y)| [x.clone(), y.clone()]).collect();
            Ok(scalar::computation(b, self.module, *compare, &arguments)?[0][0])
        };
        if takes.len() == 2 {
            return self.first_of_rows(b, source, results, &compare);
        }
        let dim = source.shape.rank() - 1;
        let numbers = ArrayShape { element_type: ElementType::S32, ..source.shape.clone() };
        let numbers = self.generate(b, &numbers, &|b, index| {
            Ok(vec![b.value("arith.index_cast", &[index[dim]], b.int_type(32))])
        })?;
        sort_rows(b, &[source, &numbers], results, dim, &compare)
    }

    /// The first elements of the sorted rows of an array, and their indices. Of equal elements the one
    /// with the lower index comes first.
    fn first_of_rows(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        results: &[&ArrayShape],
        less: &Less<'_, 'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let dim = source.shape.rank() - 1;
        if results[0].dims[dim] == 1 && !results[0].dims.contains(&0) {
            return self.best_of_rows(b, source, results, less);
        }
        sort_rows(b, &[source], results, dim, less)
    }

    /// As [`Self::first_of_rows`] of one element: a fold that compares elements.
    fn best_of_rows(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        results: &[&ArrayShape],
        less: &Less<'_, 'c>,
    ) -> Result<Vec<Array<'c>>, String> {
        let (element, rank) = (source.element(), source.shape.rank());
        let mut nest = Nest::new(self.ir, &results[0].dims);
        let mut index = identity(self.ir, rank);
        let has_several = source.dims()[rank - 1] != 1;
        index[rank - 1] = nest.range(source.dims()[rank - 1]);
        nest.read(source.parts[0], index);
        for shape in results {
            let init = empty_array(b, shape).parts[0];
            nest.write(init, identity(self.ir, rank), Combiner::ASSIGN);
        }
        let (number, item) = (b.int_type(32), value::compute_type(b, element));
        // The index -1 stands for no element yet.
        let neutral = [
            (item, CombinerKind::Add.identity(b.context, item)),
            (number, mlir::integer(b.context, number, -1)),
        ];
        let accumulators = neutral.map(|(ty, identity)| Accumulator {
            ty,
            kind: CombinerKind::Custom,
            identity: Some(identity),
            start: Start::Identity,
        });
        let generic = nest.build_fold(b, accumulators.to_vec(), value::is_coded(element));
        let inside =
            |block| (Builder::at_end(b.context, block, b.location), mlir::arguments(block));
        let (body, arguments) = inside(generic.body());
        let place = match has_several {
            true => {
                let place = imap::build_index(&body, "range", 0);
                body.value("arith.index_cast", &[place], number)
            }
            false => body.integer(number, 0),
        };
        imap::build_yield(&body, &[decode(&body, element, arguments[0]), place]);
        if let Some(block) = generic.combiner() {
            let (combine, arguments) = inside(block);
            let [x, i, y, j] = arguments[..] else { return Err("expected two items".to_string()) };
            let none = combine.integer(number, -1);
            let (left, right) = ([vec![x]], [vec![y]]);
            let (comes_first, comes_last) =
                (less(&combine, &left, &right)?, less(&combine, &right, &left)?);
            let both = |name: &str, x, y| combine.value(name, &[x, y], combine.int_type(1));
            let is_equal = both("arith.xori", comes_last, combine.integer(combine.int_type(1), 1));
            let is_earlier = both("arith.andi", is_equal, combine.compare_int("slt", i, j));
            let wins = both("arith.ori", comes_first, is_earlier);
            let is_some = combine.compare_int("ne", i, none);
            let is_alone = combine.compare_int("eq", j, none);
            let takes_left = both("arith.ori", is_alone, both("arith.andi", is_some, wins));
            let chosen = [combine.select(takes_left, x, y), combine.select(takes_left, i, j)];
            imap::build_yield(&combine, &chosen);
        }
        if let Some(block) = generic.epilogue() {
            let (end, arguments) = inside(block);
            imap::build_yield(&end, &[encode(&end, element, arguments[0]), arguments[1]]);
        }
        let values = mlir::results(generic.op()).into_iter().zip(results);
        Ok(values.map(|(it, shape)| Array { parts: vec![it], shape: (*shape).clone() }).collect())
    }
}

/// Sorts the rows of several arrays of the same sizes along a dimension, by what is in all of them. The
/// results may be shorter; one more result receives where the elements stood.
fn sort_rows<'c>(
    b: &Builder<'c>,
    sources: &[&Array<'c>],
    results: &[&ArrayShape],
    dim: usize,
    less: &Less<'_, 'c>,
) -> Result<Vec<Array<'c>>, String> {
    let mut sorted: Vec<_> = results.iter().map(|shape| empty_array(b, shape)).collect();
    let inputs: Vec<_> = sources.iter().flat_map(|source| source.parts.clone()).collect();
    let inits: Vec<_> = sorted.iter().flat_map(|array| array.parts.clone()).collect();
    let sort = Sort::build(b, dim, &inputs, &inits);
    let compare = Builder::at_end(b.context, sort.comparator(), b.location);
    let arguments = mlir::arguments(sort.comparator());
    let (mut x, mut y, mut parts) = (Vec::new(), Vec::new(), arguments.chunks(2));
    for source in sources {
        let part = source.element().part();
        let mut both = [Scalar::new(), Scalar::new()];
        for pair in parts.by_ref().take(source.parts.len()) {
            for (scalar, value) in both.iter_mut().zip(pair) {
                scalar.push(decode(&compare, part, *value));
            }
        }
        let [first, second] = both;
        x.push(first);
        y.push(second);
    }
    let is_less = less(&compare, &x, &y)?;
    imap::build_yield(&compare, &[is_less]);
    let mut values = mlir::results(sort.op()).into_iter();
    for array in &mut sorted {
        array.parts = values.by_ref().take(array.parts.len()).collect();
    }
    Ok(sorted)
}
