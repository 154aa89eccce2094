//! Implements `evaluate::Evaluator`: lowers each Axon built-in function to MLIR operations.

use super::lowering::{Data, Lowering, Tensor};
use crate::{
    convert::{
        elements::{
            Scalar,
            coding::encode,
            division::build_division,
            scalar::{self, combiner},
            sum_type, to_index,
        },
        subscripts::{identity, reshape_index},
    },
    loops::build_for,
};
use melior::ir::{BlockLike, ValueLike};
use tc_dialects::{
    axon::{
        ElementType, TensorType,
        evaluate::{
            Callee, Evaluated, Evaluation, Evaluator, Iterated, Made, Number, Pointwise, Value,
            Window, refuse, stepped,
        },
        to_hlo::{bits, hlo_element, opcode},
    },
    element::{ElementKind, ElementType as HloElement},
    hlo::{
        ArrayLiteral, Attribute as HloAttribute, Instruction, Payload, Shape, Value as HloValue,
    },
    imap::{self, Combiner},
    mlir::{self, Builder, Val},
    text::Span,
};
use tc_ir::{
    Expr,
    interval::Interval,
    shape::{Arithmetic, Dim},
};

/// A function on elements.
fn apply<'c>(
    b: &Builder<'c>,
    function: Pointwise,
    operands: &[(HloElement, Val<'c>)],
    result: HloElement,
) -> Made<Val<'c>> {
    if function == Pointwise::Div && !result.is_float() {
        let unsigned = result.kind() != ElementKind::Signed;
        return Ok(build_division(b, (operands[0].1, operands[1].1), unsigned, false));
    }
    let (opcode, direction) = opcode(function);
    let direction = direction.map(|it| (HloAttribute::Direction, HloValue::Direction(it)));
    let instruction = Instruction {
        name: String::new(),
        opcode,
        shape: Shape::array(result, []),
        operands: Vec::new(),
        attributes: direction.into_iter().collect(),
        payload: Payload::None,
        span: Span::default(),
    };
    let operands: Vec<(_, Scalar)> = operands.iter().map(|(ty, x)| (*ty, vec![*x])).collect();
    Ok(scalar::apply(b, &instruction, &operands)?[0])
}

impl<'c> Evaluator for Lowering<'c, '_> {
    type Tensor = Tensor<'c>;
    type Size = Expr;
    const MAX_CALLS: usize = 1 << 14;

    fn tensor_type<'t>(&'t self, tensor: &'t Tensor<'c>) -> &'t TensorType<Expr> {
        &tensor.ty
    }

    fn size(&self, dim: &Dim, arithmetic: &Arithmetic) -> Option<Expr> {
        self.entry.size(self.ir, dim, arithmetic)
    }

    fn at(&mut self, span: Span) {
        self.b = self.b.located((self.location)(span));
    }

    fn number(&mut self, number: Number, element: ElementType) -> Made<Tensor<'c>> {
        let mut literal = ArrayLiteral::new(hlo_element(element));
        literal.push_bits(bits(number, element));
        let ty = TensorType { element, dims: Vec::new() };
        Ok(Tensor::scalar(scalar::constant(&self.b, &literal, 0)[0], ty))
    }

    fn broadcast(&mut self, tensor: &Tensor<'c>, dims: &[Expr]) -> Made<Tensor<'c>> {
        let index = self.dims(dims.len()).split_off(dims.len() - tensor.ty.dims.len());
        self.rearrange(tensor, dims.to_vec(), index)
    }

    fn pointwise(&mut self, function: Pointwise, of: &[Tensor<'c>]) -> Made<Tensor<'c>> {
        let elements: Vec<_> = of.iter().map(|it| it.ty.element).collect();
        let ty = TensorType { element: function.result(&elements), dims: of[0].ty.dims.clone() };
        let index = self.dims(ty.dims.len());
        let sources: Vec<_> = of.iter().map(|it| (it, index.clone())).collect();
        let result = hlo_element(ty.element);
        let value = |b: &Builder<'c>, values: &[Val<'c>]| {
            let operands: Vec<_> =
                of.iter().map(Tensor::element).zip(values.iter().copied()).collect();
            apply(b, function, &operands, result)
        };
        if of.iter().all(|it| matches!(it.data, Data::Scalar(_))) {
            let values = Self::elements(&self.b, &sources, &[]);
            return Ok(Tensor::scalar(value(&self.b, &values)?, ty));
        }
        self.compute(ty, &sources, &value)
    }

    fn dot(&mut self, lhs: &Tensor<'c>, rhs: &Tensor<'c>, batch: usize) -> Made<Tensor<'c>> {
        let free = lhs.ty.dims.len() - 1;
        let mut dims = lhs.ty.dims[..free].to_vec();
        dims.extend(&rhs.ty.dims[batch + 1..]);
        let at = self.dims(dims.len());
        let summed = lhs.ty.dims[free];
        let ty = TensorType { element: lhs.ty.element, dims };
        self.contract(ty, (lhs, rhs), |nest| {
            let place = nest.range_over(summed);
            let left = [&at[..free], &[place]].concat();
            (left, [&at[..batch], &[place], &at[free..]].concat())
        })
    }

    fn convolution(
        &mut self,
        images: &Tensor<'c>,
        filters: &Tensor<'c>,
        window: Window,
        dims: [Expr; 4],
    ) -> Made<Tensor<'c>> {
        let ir = self.ir;
        let ty = TensorType { element: images.ty.element, dims: dims.to_vec() };
        self.contract(ty, (images, filters), |nest| {
            let (mut left, mut right) = (vec![ir.dim(0)], vec![ir.dim(1)]);
            let mut places = Vec::new();
            for (number, dim) in [2, 3].into_iter().enumerate() {
                let tap = nest.range_over(filters.ty.dims[dim]);
                let start = ir.mul(ir.dim(dim as u32), ir.constant(window.stride[number]));
                let offset = ir.mul(tap, ir.constant(window.dilation[number]));
                let padding = window.padding[number];
                let place = ir.sub(ir.add(start, offset), ir.constant(padding));
                if 0 < padding {
                    nest.constrain(place, Interval::NON_NEGATIVE);
                    let last = ir.sub(images.ty.dims[dim], ir.constant(1));
                    let beyond = ir.canonicalize(ir.sub(last, place));
                    nest.constrain(beyond, Interval::NON_NEGATIVE);
                }
                places.push((place, tap));
            }
            let channel = nest.range_over(images.ty.dims[1]);
            left.push(channel);
            right.push(channel);
            for (place, tap) in places {
                left.push(place);
                right.push(tap);
            }
            (left, right)
        })
    }

    fn concat(&mut self, first: &Tensor<'c>, second: &Tensor<'c>) -> Made<Tensor<'c>> {
        let ir = self.ir;
        let mut ty = first.ty.clone();
        ty.dims[0] = ir.canonicalize(ir.add(ty.dims[0], second.ty.dims[0]));
        let rank = ty.dims.len();
        let mut target = self.empty(&ty)?;
        for (part, offset) in [(first, ir.constant(0)), (second, first.ty.dims[0])] {
            target = self.insert(part, target, None, &|_| {
                let mut index = identity(ir, rank);
                index[0] = ir.add(index[0], offset);
                index
            })?;
        }
        Ok(Tensor::stored(target, ty))
    }

    fn reverse(&mut self, tensor: &Tensor<'c>) -> Made<Tensor<'c>> {
        let mut index = self.dims(tensor.ty.dims.len());
        let last = self.ir.sub(tensor.ty.dims[0], self.constant(1));
        index[0] = self.ir.sub(last, index[0]);
        self.rearrange(tensor, tensor.ty.dims.clone(), index)
    }

    fn slice(&mut self, tensor: &Tensor<'c>, start: Expr, size: Expr) -> Made<Tensor<'c>> {
        let mut dims = tensor.ty.dims.clone();
        dims[0] = size;
        let mut index = self.dims(dims.len());
        index[0] = self.ir.add(index[0], start);
        self.rearrange(tensor, dims, index)
    }

    fn gather(&mut self, tensor: &Tensor<'c>, indices: &Tensor<'c>) -> Made<Tensor<'c>> {
        let ir = self.ir;
        let places = indices.ty.dims.len();
        // Indices are moved inside.
        let last = ir.sub(tensor.ty.dims[0], ir.constant(1));
        if places == 0 {
            let number = to_index(&self.b, indices.element(), self.extract(indices, &[]));
            let number =
                self.b.value("arith.maxsi", &[number, self.b.index(0)], self.b.index_type());
            let bounds = [number, self.value(last)];
            let number = self.b.value("arith.minsi", &bounds, self.b.index_type());
            return self.row(tensor, number);
        }
        let mut dims = indices.ty.dims.clone();
        dims.extend(&tensor.ty.dims[1..]);
        let rank = dims.len();
        let ty = TensorType { element: tensor.ty.element, dims };
        let source = match tensor.data {
            Data::Scalar(value) => return Ok(Tensor::scalar(value, ty)),
            Data::Stored(value) => value,
        };
        let wide = (indices.ty.element == ElementType::U64).then(|| self.as_signed(indices));
        let indices = wide.transpose()?.unwrap_or_else(|| indices.clone());
        let table = self.in_memory(&indices)?;
        let is_unsigned = indices.element().kind() != ElementKind::Signed;
        let init = self.empty(&ty)?;
        let mut nest = self.nest(&ty.dims);
        let number = nest.element(table, self.dims(places), is_unsigned);
        let mut index = vec![ir.min(ir.max(number, ir.constant(0)), last)];
        index.extend(self.dims(rank).split_off(places));
        nest.read(source, index);
        nest.write(init, self.dims(rank), Combiner::ASSIGN);
        let values = nest.build(&self.b, |_, stored| Ok(stored.to_vec()))?;
        Ok(Tensor::stored(values[0], ty))
    }

    fn transpose(&mut self, tensor: &Tensor<'c>) -> Made<Tensor<'c>> {
        let (mut dims, mut index) = (tensor.ty.dims.clone(), self.dims(2));
        dims.reverse();
        index.reverse();
        self.rearrange(tensor, dims, index)
    }

    fn reshape(&mut self, tensor: &Tensor<'c>, dims: &[Expr]) -> Made<Tensor<'c>> {
        let index = reshape_index(self.ir, &self.dims(dims.len()), dims, &tensor.ty.dims);
        self.rearrange(tensor, dims.to_vec(), index)
    }

    fn iota(&mut self, element: ElementType, size: Expr) -> Made<Tensor<'c>> {
        let ty = TensorType { element, dims: vec![size] };
        self.compute(ty, &[], &|b, _| {
            let number = imap::build_index(b, "dim", 0);
            let number = b.value("arith.index_cast", &[number], b.int_type(64));
            Ok(scalar::convert(b, HloElement::S64, hlo_element(element), &[number])[0])
        })
    }

    fn reduce(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        init: &Tensor<'c>,
        of: &Tensor<'c>,
        span: Span,
    ) -> Evaluated<Tensor<'c>> {
        let at = |error: String| refuse(span, error);
        let kind = evaluation.as_pointwise(function).map(|function| opcode(function).0);
        let is_native = sum_type(of.element()) == of.element();
        let kind = kind.and_then(|opcode| combiner(opcode, of.element())).filter(|_| is_native);
        let target = &mut evaluation.evaluator;
        let ty = TensorType { element: of.ty.element, dims: of.ty.dims[1..].to_vec() };
        let of = &Tensor::stored(target.in_memory(of).map_err(at)?, of.ty.clone());
        let rank = ty.dims.len();
        if let Some(kind) = kind {
            let filled = target.broadcast(init, &ty.dims).map_err(at)?;
            let filled = target.in_memory(&filled).map_err(at)?;
            let mut nest = target.nest(&ty.dims);
            let mut index = vec![nest.range_over(of.ty.dims[0])];
            index.extend(target.dims(rank));
            Lowering::read(&mut nest, &[(of, index)]);
            nest.write(filled, target.dims(rank), Combiner { kind, from_identity: false });
            let values = nest.build(&target.b, |_, stored| Ok(stored.to_vec())).map_err(at)?;
            return Ok(Tensor::stored(values[0], ty));
        }
        let init = target.extract(init, &[]);
        if rank == 0 {
            let value = fold(evaluation, function, of, init, &[], span)?;
            return Ok(Tensor::scalar(value, ty));
        }
        let target = target.empty(&ty).map_err(at)?;
        let value = fold_all(evaluation, function, of, init, (&mut Vec::new(), target), span)?;
        Ok(Tensor::stored(value, ty))
    }

    fn iterate(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        state: Option<Value<Tensor<'c>>>,
        over: &Tensor<'c>,
        span: Span,
    ) -> Evaluated<Iterated<Tensor<'c>>> {
        let at = |error: String| refuse(span, error);
        let lowering = &mut evaluation.evaluator;
        let outside = lowering.b;
        let tensors = state.as_ref().and_then(Value::tensors).unwrap_or_default();
        let inits = tensors.iter().map(|it| lowering.carried(it)).collect::<Made<Vec<_>>>();
        let mut inits = inits.map_err(at)?;
        let mut types = vec![outside.index_type()];
        types.extend(inits.iter().map(|init| init.r#type()));
        let (region, block) = mlir::region_with_block(&types, outside.location);
        let arguments = mlir::arguments(block);
        lowering.b = Builder::at_end(outside.context, block, outside.location);
        let row = lowering.row(over, arguments[0]).map_err(at)?;
        let carried = arguments[1..].iter().zip(&tensors);
        let mut carried = carried.map(|(value, like)| like.holding(*value));
        let mut args = Vec::new();
        args.extend(state.as_ref().map(|state| state.with_tensors(&mut carried)));
        args.push(Value::Tensor(row));
        let result = evaluation.apply(function, args, span)?;
        let lowering = &mut evaluation.evaluator;
        lowering.at(span);
        let (next, result) = stepped(state.is_some(), result, span)?;
        let next = next.and_then(|next| next.tensors()).unwrap_or_default();
        let same = |(old, new): (&Tensor<'c>, &Tensor<'c>)| {
            (old.ty.element, old.ty.dims.len()) == (new.ty.element, new.ty.dims.len())
        };
        if next.len() != tensors.len() || !tensors.iter().zip(&next).all(same) {
            return Err(at("the state of a loop changes its type".to_string()));
        }
        let mut yielded = Vec::new();
        for (init, tensor) in inits.iter().zip(&next) {
            let value = lowering.carried(tensor).map_err(at)?;
            let ty = init.r#type();
            // Sizes that are equal may be written differently.
            yielded.push(match value.r#type() == ty {
                true => value,
                false => lowering.b.value("tensor.cast", &[value], ty),
            });
        }
        // What all calls give.
        let mut all = result.ty.clone();
        all.dims.insert(0, over.ty.dims[0]);
        let inside = std::mem::replace(&mut lowering.b, outside);
        lowering.at(span);
        let empty = lowering.empty(&all).map_err(at)?;
        lowering.b = inside;
        let results = mlir::val(block.add_argument(empty.r#type(), outside.location));
        yielded.push(match result.ty.dims.is_empty() {
            true => {
                let element = lowering.extract(&result, &[]);
                let element = encode(&lowering.b, result.element(), element);
                let operands = [element, results, arguments[0]];
                lowering.b.value("tensor.insert", &operands, empty.r#type())
            }
            false => {
                let rank = result.ty.dims.len();
                let dims = lowering.dims(rank);
                let zero = lowering.constant(0);
                let index = |row: Option<Expr>| [&[row.unwrap_or(zero)], &dims[..]].concat();
                lowering.insert(&result, results, Some(arguments[0]), &index).map_err(at)?
            }
        });
        lowering.b.op("scf.yield", &yielded, &[]);
        lowering.b = outside;
        lowering.at(span);
        inits.push(empty);
        let bounds = [lowering.b.index(0), lowering.value(over.ty.dims[0]), lowering.b.index(1)];
        let operands = [&bounds[..], &inits].concat();
        let types: Vec<_> = inits.iter().map(|init| init.r#type()).collect();
        let op = lowering.b.op_with("scf.for", &operands, &types, &[], vec![region]);
        let mut values = mlir::results(op);
        let results = values.pop().map(|value| Tensor::stored(value, all));
        let results = results.ok_or_else(|| at("a loop without results".to_string()))?;
        let last = values.into_iter().zip(&tensors).map(|(value, like)| like.holding(value));
        Ok((state.map(|state| state.with_tensors(&mut last.into_iter())), results))
    }
}

/// The elements of a reduction one by one, in loops around that over the rows; `indices` are those of
/// the loops that there are.
fn fold_all<'c>(
    evaluation: &mut Evaluation<'_, Lowering<'c, '_>>,
    function: Callee,
    of: &Tensor<'c>,
    init: Val<'c>,
    (indices, into): (&mut Vec<Val<'c>>, Val<'c>),
    span: Span,
) -> Evaluated<Val<'c>> {
    let Some(extent) = of.ty.dims[1..].get(indices.len()) else {
        let value = fold(evaluation, function, of, init, indices, span)?;
        let b = evaluation.evaluator.b;
        let operands = [&[encode(&b, of.element(), value), into], &indices[..]].concat();
        return Ok(b.value("tensor.insert", &operands, into.r#type()));
    };
    over(evaluation, *extent, into, &mut |evaluation, index, into| {
        indices.push(index);
        let value = fold_all(evaluation, function, of, init, (indices, into), span);
        indices.pop();
        value
    })
}

/// A reduction of the elements of all rows at one index.
fn fold<'c>(
    evaluation: &mut Evaluation<'_, Lowering<'c, '_>>,
    function: Callee,
    of: &Tensor<'c>,
    init: Val<'c>,
    indices: &[Val<'c>],
    span: Span,
) -> Evaluated<Val<'c>> {
    let element = of.ty.element;
    over(evaluation, of.ty.dims[0], init, &mut |evaluation, row, so_far| {
        let next = evaluation.evaluator.extract(of, &[&[row], indices].concat());
        let ty = TensorType { element, dims: Vec::new() };
        let args = [so_far, next].map(|value| Value::Tensor(Tensor::scalar(value, ty.clone())));
        match evaluation.apply(function, args.into(), span)? {
            Value::Tensor(result) if result.ty.dims.is_empty() => {
                Ok(evaluation.evaluator.extract(&result, &[]))
            }
            _ => Err(refuse(span, "the function of 'reduce' gives no scalar")),
        }
    })
}

/// What fills a loop: from the index and what it carries, the next.
type Step<'a, 'p, 'c, 't> =
    dyn FnMut(&mut Evaluation<'p, Lowering<'c, 't>>, Val<'c>, Val<'c>) -> Evaluated<Val<'c>> + 'a;

/// A loop that carries a value.
fn over<'p, 'c, 't>(
    evaluation: &mut Evaluation<'p, Lowering<'c, 't>>,
    extent: Expr,
    init: Val<'c>,
    step: &mut Step<'_, 'p, 'c, 't>,
) -> Evaluated<Val<'c>> {
    let outside = evaluation.evaluator.b;
    let bounds = (outside.index(0), evaluation.evaluator.value(extent), outside.index(1));
    let mut failed = Ok(());
    let results = build_for(&outside, bounds, &[init], &mut |inside, index, carried| {
        evaluation.evaluator.b = *inside;
        let next = step(evaluation, index, carried[0]).unwrap_or_else(|error| {
            failed = Err(error);
            carried[0]
        });
        vec![next]
    });
    evaluation.evaluator.b = outside;
    failed.map(|()| results[0])
}
