//! `sort` and `topk`: an `imap.sort` each, or the fold of each row where only the first element is asked
//! for.

use super::{
    Lowering,
    computation::build_computation,
    memory::{empty, empty_array},
    value::Array,
};
use crate::convert::{
    elements::{
        self, Scalar,
        coding::{decode, encode},
        decode_element, scalar,
    },
    generic_builder::GenericBuilder,
    subscripts::identity,
};
use melior::ir::{Type, ValueLike};
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::{ArrayShape, Attribute, Instruction, Shape},
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
            Ok(build_computation(b, self.module, applied, &arguments)?[0][0])
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
        let keys = Keys { kind: source.element().kind(), largest };
        let dim = source.shape.rank() - 1;
        if results[0].dims[dim] == 1 && !results[0].dims.contains(&0) {
            return self.best_of_rows(b, source, results, keys);
        }
        sort_rows(b, &[source], results, dim, &|b, x, y| {
            let (x, y) = (keys.of(b, x[0][0]), keys.of(b, y[0][0]));
            Ok(b.compare_int("sgt", x, y))
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
            Ok(build_computation(b, self.module, *compare, &arguments)?[0][0])
        };
        let dim = source.shape.rank() - 1;
        if takes.len() == 2 {
            return sort_rows(b, &[source], results, dim, &compare);
        }
        let numbers = ArrayShape { element_type: ElementType::S32, ..source.shape.clone() };
        let numbers = self.generate(b, &numbers, &|b, index| {
            Ok(vec![b.value("arith.index_cast", &[index[dim]], b.int_type(32))])
        })?;
        sort_rows(b, &[source, &numbers], results, dim, &compare)
    }

    /// The first element of each row in order, and its index: a fold that compares keys.
    fn best_of_rows(
        &self,
        b: &Builder<'c>,
        source: &Array<'c>,
        results: &[&ArrayShape],
        keys: Keys,
    ) -> Result<Vec<Array<'c>>, String> {
        let (element, rank) = (source.element(), source.shape.rank());
        let mut nest = GenericBuilder::new(self.ir, &results[0].dims);
        let mut index = identity(self.ir, rank);
        let has_several = source.dims()[rank - 1] != 1;
        index[rank - 1] = nest.range(source.dims()[rank - 1]);
        nest.read(source.tensor, index);
        for shape in results {
            nest.write(empty(b, shape), identity(self.ir, rank), Combiner::ASSIGN);
        }
        let item = elements::compute_type(b, element);
        let key = match mlir::integer_width(item) {
            Some(width) => b.int_type(width),
            None => b.int_type(8 * mlir::byte_width(item)),
        };
        // No key is less, and no index greater.
        let neutral = [(key, CombinerKind::MaxS), (b.int_type(32), CombinerKind::MinS)];
        let accumulators = neutral.map(|(ty, kind)| Accumulator {
            ty,
            kind: CombinerKind::Custom,
            identity: Some(kind.identity(b.context, ty)),
            start: Start::Identity,
        });
        let generic = nest.build_fold(b, accumulators.to_vec(), true);
        let (body, arguments) = b.inside(generic.body());
        let place = match has_several {
            true => {
                let place = imap::build_index(&body, "range", 0);
                body.value("arith.index_cast", &[place], b.int_type(32))
            }
            false => body.integer(b.int_type(32), 0),
        };
        let key = keys.of(&body, decode(&body, element, arguments[0]));
        imap::build_yield(&body, &[key, place]);
        let (combine, arguments) = b.inside(generic.combiner().expect("no combiner has a name"));
        let [x, i, y, j] = arguments[..] else { return Err("expected two items".to_string()) };
        let both = |name: &str, x, y| combine.value(name, &[x, y], combine.int_type(1));
        let is_earlier = combine.compare_int("slt", i, j);
        let wins_tie = both("arith.andi", combine.compare_int("eq", x, y), is_earlier);
        let takes_left = both("arith.ori", combine.compare_int("sgt", x, y), wins_tie);
        let chosen = [combine.select(takes_left, x, y), combine.select(takes_left, i, j)];
        imap::build_yield(&combine, &chosen);
        let (end, arguments) = b.inside(generic.epilogue().expect("it was asked for"));
        let best = keys.element(&end, arguments[0], item);
        imap::build_yield(&end, &[encode(&end, element, best), arguments[1]]);
        let values = mlir::results(generic.op()).into_iter().zip(results);
        Ok(values.map(|(it, shape)| Array { tensor: it, shape: (*shape).clone() }).collect())
    }
}

/// Signed integers in place of elements: the first element has the greatest.
#[derive(Clone, Copy)]
struct Keys {
    kind: ElementKind,
    /// Whether the largest element is the first one.
    largest: bool,
}

impl Keys {
    fn of<'c>(self, b: &Builder<'c>, element: Val<'c>) -> Val<'c> {
        let key = match self.kind {
            ElementKind::Float => scalar::total_order(b, element),
            ElementKind::Signed => element,
            _ => flip_sign(b, element),
        };
        self.in_direction(b, key)
    }

    /// The element of a type that has a key.
    fn element<'c>(self, b: &Builder<'c>, key: Val<'c>, ty: Type<'c>) -> Val<'c> {
        let key = self.in_direction(b, key);
        match self.kind {
            ElementKind::Float => b.value("arith.bitcast", &[scalar::flip_negative(b, key)], ty),
            ElementKind::Signed => key,
            _ => flip_sign(b, key),
        }
    }

    /// Twice, it changes nothing.
    fn in_direction<'c>(self, b: &Builder<'c>, key: Val<'c>) -> Val<'c> {
        let ty = key.r#type();
        if self.largest { key } else { b.value("arith.xori", &[key, b.integer(ty, -1)], ty) }
    }
}

/// From the order of unsigned integers to that of signed ones, or back.
fn flip_sign<'c>(b: &Builder<'c>, x: Val<'c>) -> Val<'c> {
    let sign = CombinerKind::MaxS.identity(b.context, x.r#type());
    b.value("arith.xori", &[x, b.constant(x.r#type(), sign)], x.r#type())
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
    let inputs: Vec<_> = sources.iter().map(|source| source.tensor).collect();
    let inits: Vec<_> = sorted.iter().map(|array| array.tensor).collect();
    let sort = Sort::build(b, dim, &inputs, &inits);
    let compare = Builder::at_end(b.context, sort.comparator(), b.location);
    let arguments = mlir::arguments(sort.comparator());
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (source, pair) in sources.iter().zip(arguments.chunks(2)) {
        x.push(decode_element(&compare, source.element(), pair[0]));
        y.push(decode_element(&compare, source.element(), pair[1]));
    }
    let is_less = less(&compare, &x, &y)?;
    imap::build_yield(&compare, &[is_less]);
    for (array, value) in sorted.iter_mut().zip(mlir::results(sort.op())) {
        array.tensor = value;
    }
    Ok(sorted)
}
