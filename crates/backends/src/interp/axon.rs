//! Axon as an evaluation target: programs, element by element.
//!
//! The other [`Evaluator`] of the evaluation of programs, besides the one that builds HLO: what each
//! built-in function means, written down as naively as possible, on scalars with a bound on what a
//! compiled program may calculate.

use super::{
    Limits, Outcome,
    fold::{Fold, FoldKind},
    function,
    integer::{self, IntBinary, IntPredicate, ScalarType},
    machine::Array,
    scalar::{FloatBinary, FloatPredicate, FloatType, FloatUnary, Scalar},
    to_array,
};
use crate::runtime::{self, ElementType};
use std::rc::Rc;
use tc_dialects::{
    axon::{
        self, Inferred, Instance, TensorType,
        evaluate::{
            Callee, Evaluated, Evaluation, Evaluator, Iterated, Made, Number, Pointwise, Value,
            Window, constant, evaluate, refuse, stepped,
        },
        syntax::ast::Program,
    },
    text::Span,
};
use tc_ir::shape::{Arithmetic, Dim};

/// The element type in memory.
pub fn stored(element: axon::ElementType) -> ElementType {
    match element {
        axon::ElementType::Bool => ElementType::Bool,
        axon::ElementType::I8 => ElementType::I8,
        axon::ElementType::I16 => ElementType::I16,
        axon::ElementType::I32 => ElementType::I32,
        axon::ElementType::I64 => ElementType::I64,
        axon::ElementType::U8 => ElementType::U8,
        axon::ElementType::U16 => ElementType::U16,
        axon::ElementType::U32 => ElementType::U32,
        axon::ElementType::U64 => ElementType::U64,
        axon::ElementType::F16 => ElementType::F16,
        axon::ElementType::Bf16 => ElementType::Bf16,
        axon::ElementType::F32 => ElementType::F32,
        axon::ElementType::F64 => ElementType::F64,
    }
}

/// Runs an entry of a program on inputs of the types of its parameters.
///
/// # Errors
/// What cannot be executed, or takes more than the limits allow.
pub fn run_axon(
    inferred: &mut Inferred,
    program: &Program,
    instance: &Instance,
    inputs: &[runtime::Tensor],
    limits: Limits,
) -> Evaluated<Vec<Outcome>> {
    let reference = Reference { limits, points: 0 };
    let types = instance.parameters.iter().map(|(_, ty)| ty.clone());
    let inputs = types.zip(inputs).map(|(ty, input)| {
        let scalars = to_array(input, domain(&ty).scalar()).scalars.into();
        Tensor { ty, scalars }
    });
    let inputs = inputs.collect();
    let (_, results) = evaluate(inferred, program, instance, reference, inputs)?;
    let outcome = |result: &Tensor| {
        let element = stored(result.ty.element);
        let shape: Vec<_> = result.ty.dims.iter().map(|size| *size as usize).collect();
        let origin = vec![0; shape.len()];
        let array = Array { shape, origin, scalars: result.scalars.to_vec() };
        Outcome { element, scalar: domain(&result.ty).scalar(), array: Rc::new(array) }
    };
    Ok(results.iter().map(outcome).collect())
}

#[derive(Clone, Debug)]
struct Tensor {
    ty: TensorType,
    scalars: Rc<[Scalar]>,
}

impl Tensor {
    /// The elements of a row.
    fn row(&self, number: usize) -> Self {
        let mut ty = self.ty.clone();
        let rows = ty.dims.remove(0) as usize;
        let size = self.scalars.len() / rows;
        Self { ty, scalars: self.scalars[number * size..(number + 1) * size].into() }
    }
}

struct Reference {
    limits: Limits,
    points: u64,
}

/// What calculates on elements of a type.
#[derive(Clone, Copy)]
enum Domain {
    Float(FloatType),
    Int { width: u32, signed: bool },
}

fn domain(ty: &TensorType) -> Domain {
    let float = match ty.element {
        axon::ElementType::F16 => FloatType::F16,
        axon::ElementType::Bf16 => FloatType::Bf16,
        axon::ElementType::F32 => FloatType::F32,
        axon::ElementType::F64 => FloatType::F64,
        other => {
            let element = stored(other);
            return Domain::Int { width: element.width(), signed: element.is_signed() };
        }
    };
    Domain::Float(float)
}

impl Domain {
    fn scalar(self) -> ScalarType {
        match self {
            Self::Float(ty) => ScalarType::Float(ty),
            Self::Int { width, .. } => ScalarType::Int(width),
        }
    }

    /// The fold of a function; none if its order matters.
    fn fold(self, function: Pointwise) -> Option<FoldKind> {
        Some(match (self, function) {
            (Self::Float(ty), Pointwise::Add) => FoldKind::Sum(ty),
            (Self::Float(ty), Pointwise::Mul) => FoldKind::Product(ty),
            (Self::Float(ty), Pointwise::Max) => FoldKind::Float(FloatBinary::Maximum, ty),
            (Self::Float(ty), Pointwise::Min) => FoldKind::Float(FloatBinary::Minimum, ty),
            (Self::Int { width, .. }, Pointwise::Add) => FoldKind::Int(IntBinary::Add, width),
            (Self::Int { width, .. }, Pointwise::Mul) => FoldKind::Int(IntBinary::Mul, width),
            _ => return None,
        })
    }

    /// The value of a function at operands of this type; those of `select` after the first.
    fn apply(self, function: Pointwise, x: &[Scalar]) -> Made<Scalar> {
        use Pointwise as F;
        // The numbers of predicates are those of `arith`.
        let predicate = |float, signed, unsigned| match self {
            Self::Float(ty) => {
                let predicate = FloatPredicate::from_number(float).expect("below 16");
                predicate.apply(ty, x[0], x[1])
            }
            Self::Int { width, signed: is_signed } => {
                let number = if is_signed { signed } else { unsigned };
                let predicate = IntPredicate::from_number(number).expect("below 10");
                predicate.apply(width, x[0], x[1])
            }
        };
        match function {
            F::Equal => return Ok(predicate(1, 0, 0)),
            F::NotEqual => return Ok(predicate(13, 1, 1)),
            F::Less => return Ok(predicate(4, 2, 6)),
            F::LessEqual => return Ok(predicate(5, 3, 7)),
            F::Greater => return Ok(predicate(2, 4, 8)),
            F::GreaterEqual => return Ok(predicate(3, 5, 9)),
            F::Select => {
                let (chosen, other) = if x[0].is_true() { (x[1], x[2]) } else { (x[2], x[1]) };
                let is_float = matches!(self, Self::Float(_));
                return Ok(match x[0].is_certain() {
                    true => chosen,
                    false => chosen.either(other, is_float),
                });
            }
            _ => {}
        }
        match self {
            Self::Float(ty) => {
                let call = |name: &str, x: &[Scalar]| {
                    let function = function::Function::lookup(name).expect("in the table");
                    function.apply(ty, x)
                };
                let binary = |op| ty.binary(op, x[0], x[1]);
                Ok(match function {
                    F::Add => binary(FloatBinary::Add),
                    F::Sub => binary(FloatBinary::Sub),
                    F::Mul => binary(FloatBinary::Mul),
                    F::Div => binary(FloatBinary::Div),
                    F::Max => binary(FloatBinary::Maximum),
                    F::Min => binary(FloatBinary::Minimum),
                    F::Neg => ty.unary(FloatUnary::Neg, x[0]),
                    F::Sqrt => ty.unary(FloatUnary::Sqrt, x[0]),
                    F::Exp => call("exp", x),
                    F::Log => call("log", x),
                    F::Tanh => call("tanh", x),
                    F::Sigmoid => {
                        let one = Scalar::exact(1.0);
                        let power = call("exp", &[ty.unary(FloatUnary::Neg, x[0])]);
                        ty.binary(FloatBinary::Div, one, ty.binary(FloatBinary::Add, one, power))
                    }
                    _ => return Err(format!("{function:?} of floats")),
                })
            }
            Self::Int { width, signed } => {
                let op = match (function, signed) {
                    (F::Neg, _) => {
                        let zero = Scalar::int(0);
                        let negative = integer::binary(IntBinary::Sub, width, zero, x[0]);
                        return Ok(negative.unwrap_or(zero));
                    }
                    (F::Add, _) => IntBinary::Add,
                    (F::Sub, _) => IntBinary::Sub,
                    (F::Mul, _) => IntBinary::Mul,
                    (F::Div, _) => IntBinary::TcDiv(signed),
                    (F::Max, true) => IntBinary::MaxSigned,
                    (F::Max, false) => IntBinary::MaxUnsigned,
                    (F::Min, true) => IntBinary::MinSigned,
                    (F::Min, false) => IntBinary::MinUnsigned,
                    _ => return Err(format!("{function:?} of integers")),
                };
                // None of these is undefined.
                Ok(integer::binary(op, width, x[0], x[1]).unwrap_or(Scalar::UNKNOWN))
            }
        }
    }

    /// The sum of the products of pairs.
    fn dot(self, pairs: impl Iterator<Item = (Scalar, Scalar)>) -> Made<Scalar> {
        let kind = self.fold(Pointwise::Add).ok_or("a sum of these elements")?;
        let mut sum = Fold::new(kind, None);
        for (x, y) in pairs {
            sum.add(match self {
                Self::Float(ty) => ty.binary(FloatBinary::MulIntoSum, x, y),
                Self::Int { .. } => self.apply(Pointwise::Mul, &[x, y])?,
            });
        }
        Ok(sum.finish())
    }
}

impl Reference {
    /// A tensor whose elements follow from their indices.
    fn generate(
        &mut self,
        ty: TensorType,
        work: u64,
        mut at: impl FnMut(&[usize]) -> Made<Scalar>,
    ) -> Made<Tensor> {
        let count = ty.dims.iter().try_fold(1_u64, |count, size| count.checked_mul(*size as u64));
        let count = count.filter(|count| *count <= self.limits.elements).ok_or_else(|| {
            format!("{ty} has more elements than the reference interpreter takes")
        })?;
        self.points = self.points.saturating_add(count.saturating_mul(work.max(1)));
        if self.limits.points < self.points {
            return Err(format!(
                "the reference interpreter takes at most {} elements, of all operations together",
                self.limits.points
            ));
        }
        let dims: Vec<_> = ty.dims.iter().map(|size| *size as usize).collect();
        let mut index = vec![0; dims.len()];
        let mut scalars = Vec::with_capacity(count as usize);
        for _ in 0..count {
            scalars.push(at(&index)?);
            for dim in (0..dims.len()).rev() {
                index[dim] += 1;
                if index[dim] < dims[dim] {
                    break;
                }
                index[dim] = 0;
            }
        }
        Ok(Tensor { ty, scalars: scalars.into() })
    }
}

/// The element at an index.
fn get(tensor: &Tensor, index: impl IntoIterator<Item = usize>) -> Scalar {
    let dims = tensor.ty.dims.iter();
    let place =
        index.into_iter().zip(dims).fold(0, |place, (at, size)| place * *size as usize + at);
    tensor.scalars[place]
}

impl Evaluator for Reference {
    type Tensor = Tensor;
    type Size = i64;
    const MAX_CALLS: usize = 1 << 26;

    fn tensor_type<'t>(&'t self, tensor: &'t Tensor) -> &'t TensorType {
        &tensor.ty
    }

    fn size(&self, dim: &Dim, _: &Arithmetic) -> Option<i64> {
        constant(dim)
    }

    fn at(&mut self, _: Span) {}

    fn number(&mut self, number: Number, element: axon::ElementType) -> Made<Tensor> {
        let ty = TensorType { element, dims: Vec::new() };
        let value = match (domain(&ty), number) {
            (Domain::Float(ty), Number::Integer(value)) => Scalar::exact(ty.nearest(value as f64)),
            (Domain::Float(ty), Number::Float(value)) => Scalar::exact(ty.nearest(value)),
            (Domain::Int { width, .. }, Number::Integer(value)) => {
                Scalar::int(integer::wrap(value as i64, width))
            }
            (Domain::Int { .. }, Number::Float(_)) => return Err("a float as integer".to_string()),
        };
        Ok(Tensor { ty, scalars: [value].into() })
    }

    fn broadcast(&mut self, tensor: &Tensor, dims: &[i64]) -> Made<Tensor> {
        let ty = TensorType { element: tensor.ty.element, dims: dims.to_vec() };
        let new = dims.len() - tensor.ty.dims.len();
        self.generate(ty, 1, |index| Ok(get(tensor, index[new..].iter().copied())))
    }

    fn pointwise(&mut self, function: Pointwise, of: &[Tensor]) -> Made<Tensor> {
        let elements: Vec<_> = of.iter().map(|it| it.ty.element).collect();
        let ty = TensorType { element: function.result(&elements), dims: of[0].ty.dims.clone() };
        let domain = domain(&of[of.len() - 1].ty);
        let mut place = 0;
        self.generate(ty, 1, |_| {
            let operands: Vec<_> = of.iter().map(|it| it.scalars[place]).collect();
            place += 1;
            domain.apply(function, &operands)
        })
    }

    fn dot(&mut self, lhs: &Tensor, rhs: &Tensor, batch: usize) -> Made<Tensor> {
        let free = lhs.ty.dims.len() - 1;
        let size = lhs.ty.dims[free] as usize;
        let mut dims = lhs.ty.dims[..free].to_vec();
        dims.extend(&rhs.ty.dims[batch + 1..]);
        let domain = domain(&lhs.ty);
        let ty = TensorType { element: lhs.ty.element, dims };
        self.generate(ty, size as u64, |index| {
            domain.dot((0..size).map(|k| {
                let left = index[..free].iter().copied().chain([k]);
                let right = index[..batch].iter().copied().chain([k]);
                let right = right.chain(index[free..].iter().copied());
                (get(lhs, left), get(rhs, right))
            }))
        })
    }

    fn convolution(
        &mut self,
        images: &Tensor,
        filters: &Tensor,
        window: Window,
        dims: [i64; 4],
    ) -> Made<Tensor> {
        let domain = domain(&images.ty);
        let ty = TensorType { element: images.ty.element, dims: dims.to_vec() };
        let taps = filters.ty.dims[1..].iter().product::<i64>();
        self.generate(ty, taps as u64, |index| {
            let mut terms = Vec::new();
            for channel in 0..filters.ty.dims[1] as usize {
                for r in 0..filters.ty.dims[2] {
                    for s in 0..filters.ty.dims[3] {
                        let at = |dim: usize, tap: i64| {
                            let place = index[2 + dim] as i64 * window.stride[dim]
                                + tap * window.dilation[dim]
                                - window.padding[dim];
                            (0..images.ty.dims[2 + dim]).contains(&place).then_some(place as usize)
                        };
                        if let (Some(y), Some(x)) = (at(0, r), at(1, s)) {
                            let filter = [index[1], channel, r as usize, s as usize];
                            terms.push((
                                get(images, [index[0], channel, y, x]),
                                get(filters, filter),
                            ));
                        }
                    }
                }
            }
            domain.dot(terms.into_iter())
        })
    }

    fn concat(&mut self, first: &Tensor, second: &Tensor) -> Made<Tensor> {
        let mut ty = first.ty.clone();
        ty.dims[0] += second.ty.dims[0];
        let scalars = first.scalars.iter().chain(second.scalars.iter()).copied();
        Ok(Tensor { ty, scalars: scalars.collect() })
    }

    fn reverse(&mut self, tensor: &Tensor) -> Made<Tensor> {
        let last = tensor.ty.dims[0] as usize - 1;
        self.generate(tensor.ty.clone(), 1, |index| {
            Ok(get(tensor, [last - index[0]].into_iter().chain(index[1..].iter().copied())))
        })
    }

    fn slice(&mut self, tensor: &Tensor, start: i64, size: i64) -> Made<Tensor> {
        let mut ty = tensor.ty.clone();
        ty.dims[0] = size;
        self.generate(ty, 1, |index| {
            let first = start as usize + index[0];
            Ok(get(tensor, [first].into_iter().chain(index[1..].iter().copied())))
        })
    }

    fn gather(&mut self, tensor: &Tensor, indices: &Tensor) -> Made<Tensor> {
        let places = indices.ty.dims.len();
        let last = tensor.ty.dims[0] as u64 - 1;
        let Domain::Int { width, signed } = domain(&indices.ty) else {
            return Err("an index that is a float".to_string());
        };
        let mut dims = indices.ty.dims.clone();
        dims.extend(&tensor.ty.dims[1..]);
        let ty = TensorType { element: tensor.ty.element, dims };
        self.generate(ty, 1, |index| {
            let number = get(indices, index[..places].iter().copied());
            let row = match signed {
                true => number.as_int().max(0) as u64,
                false => integer::unsigned(number.as_int(), width),
            };
            let row = row.min(last) as usize;
            let found = get(tensor, [row].into_iter().chain(index[places..].iter().copied()));
            Ok(found.certain_if(number.is_certain()))
        })
    }

    fn transpose(&mut self, tensor: &Tensor) -> Made<Tensor> {
        let mut ty = tensor.ty.clone();
        ty.dims.reverse();
        self.generate(ty, 1, |index| Ok(get(tensor, [index[1], index[0]])))
    }

    fn reshape(&mut self, tensor: &Tensor, dims: &[i64]) -> Made<Tensor> {
        let ty = TensorType { element: tensor.ty.element, dims: dims.to_vec() };
        Ok(Tensor { ty, scalars: Rc::clone(&tensor.scalars) })
    }

    fn iota(&mut self, element: axon::ElementType, size: i64) -> Made<Tensor> {
        let ty = TensorType { element, dims: vec![size] };
        let domain = domain(&ty);
        self.generate(ty, 1, |index| {
            Ok(match domain {
                Domain::Float(ty) => Scalar::exact(ty.nearest(index[0] as f64)),
                Domain::Int { width, .. } => Scalar::int(integer::wrap(index[0] as i64, width)),
            })
        })
    }

    fn reduce(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        init: &Tensor,
        of: &Tensor,
        span: Span,
    ) -> Evaluated<Tensor> {
        let at = |error: String| refuse(span, error);
        let rows: Vec<_> = (0..of.ty.dims[0] as usize).map(|row| of.row(row)).collect();
        let pointwise = evaluation.as_pointwise(function);
        let domain = domain(&of.ty);
        if let Some(kind) = pointwise.and_then(|function| domain.fold(function)) {
            let mut place = 0;
            let folded =
                evaluation.evaluator.generate(rows[0].ty.clone(), rows.len() as u64, |_| {
                    let mut fold = Fold::new(kind, Some(init.scalars[0]));
                    rows.iter().for_each(|row| fold.add(row.scalars[place]));
                    place += 1;
                    Ok(fold.finish())
                });
            return folded.map_err(at);
        }
        let scalar = |scalar| {
            let ty = TensorType { element: of.ty.element, dims: Vec::new() };
            Value::Tensor(Tensor { ty, scalars: [scalar].into() })
        };
        let mut scalars = Vec::new();
        for place in 0..rows[0].scalars.len() {
            let mut value = scalar(init.scalars[0]);
            for row in &rows {
                value =
                    evaluation.apply(function, vec![value, scalar(row.scalars[place])], span)?;
            }
            match value {
                Value::Tensor(value) => scalars.push(value.scalars[0]),
                _ => return Err(at("the function of 'reduce' gives no tensor".to_string())),
            }
        }
        Ok(Tensor { ty: rows[0].ty.clone(), scalars: scalars.into() })
    }

    fn iterate(
        evaluation: &mut Evaluation<'_, Self>,
        function: Callee,
        mut state: Option<Value<Tensor>>,
        over: &Tensor,
        span: Span,
    ) -> Evaluated<Iterated<Tensor>> {
        let rows = over.ty.dims[0];
        let mut ty = None;
        let mut scalars = Vec::new();
        for number in 0..rows as usize {
            let mut args: Vec<_> = state.iter().cloned().collect();
            args.push(Value::Tensor(over.row(number)));
            let value = evaluation.apply(function, args, span)?;
            let (next, result) = stepped(state.is_some(), value, span)?;
            state = next;
            scalars.extend(result.scalars.iter().copied());
            ty = Some(result.ty);
        }
        let mut ty = ty.ok_or_else(|| refuse(span, "expected a row at least"))?;
        ty.dims.insert(0, rows);
        Ok((state, Tensor { ty, scalars: scalars.into() }))
    }
}
