//! Runs a decoded [`Program`].

use super::{
    Limits,
    error::Error,
    fold::Fold,
    function::MAX_OPERANDS,
    integer::{self, Undefined, unsigned, wrap},
    memory::{Heap, MemRef},
    program::{
        At, Branch, Code, CountedLoop, FoldStart, If, IndexOp, Inside, Inst, Loop, LoopNest, Moves,
        Output, Place, Program, Reg, Scan, Slice, Start, TensorReg, While,
    },
    promises::Updated,
    region_fold::RegionFold,
    scalar::{self, Scalar},
};
use crate::runtime::Shape;
use std::rc::Rc;
use tc_ir::{
    Interval,
    expr::{checked_ceil_div, checked_floor_div},
};

/// A tensor of scalars, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    /// The index of the first element.
    pub(crate) origin: Vec<i64>,
    pub(crate) scalars: Vec<Scalar>,
}

/// Errors are rare and large: boxed, so that results of instructions stay small.
pub(crate) type Result<T> = std::result::Result<T, Box<Error>>;

pub(crate) struct Machine<'p> {
    pub(crate) program: &'p Program,
    limits: Limits,
    pub(crate) regs: Vec<Scalar>,
    tensors: Vec<Option<Rc<Array>>>,
    pub(crate) memories: Vec<Option<Rc<MemRef>>>,
    pub(crate) heap: Heap,
    num_points: u64,
}

/// State that a nest carries from one point to the next.
#[derive(Default)]
struct Carried {
    folds: Vec<Fold>,
    regions: RegionFold,
    updated: Updated,
}

/// Offset, size and stride of a slice in one dimension.
pub(crate) struct Bound {
    pub(crate) offset: i64,
    pub(crate) size: usize,
    pub(crate) stride: i64,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program, limits: Limits) -> Self {
        let mut regs = vec![Scalar::int(0); program.num_scalars];
        for (reg, value) in &program.constants {
            regs[*reg] = *value;
        }
        Self {
            program,
            limits,
            regs,
            tensors: vec![None; program.num_tensors],
            memories: vec![None; program.num_memories],
            heap: Heap::default(),
            num_points: 0,
        }
    }

    /// Runs the function on arrays that fit its parameters.
    pub(crate) fn run(mut self, inputs: Vec<Array>) -> Result<Vec<Rc<Array>>> {
        for size in &self.program.sizes {
            let extents = size.places.iter().map(|(number, dim)| inputs[*number].shape[*dim]);
            let extent = extents.clone().next().unwrap_or(0);
            if extent == 0 {
                return self.fail(
                    self.program.at,
                    format!("expects size '{}' to be at least 1, but found 0", size.name),
                );
            }
            if let Some((other, (number, dim))) =
                extents.zip(&size.places).find(|(other, _)| *other != extent)
            {
                let (first, first_dim) = size.places[0];
                let parameters = &self.program.parameters;
                let message = format!(
                    "size '{}' is {extent} in dimension {first_dim} of {}, but {other} in dimension {dim} of {}",
                    size.name, parameters[first].name, parameters[*number].name
                );
                return self.fail(self.program.at, message);
            }
            self.regs[size.value] = Scalar::int(extent as i64);
        }
        let program = self.program;
        let mut outputs = Vec::new();
        for (parameter, input) in program.parameters.iter().zip(inputs) {
            match parameter.place {
                Place::Tensor(tensor) => self.set_tensor(tensor, input),
                Place::Memory(memory) => {
                    let is_float = parameter.scalar.is_float();
                    let view = self.heap.allocate(input, is_float, false, program.at);
                    self.set_memory(memory, view);
                }
            }
            if let Some((number, _)) = parameter.output {
                outputs.push((number, parameter.place));
            }
        }
        self.code(&program.code)?;
        if let Some((status, checks)) = &program.status {
            let status = self.certain(*status, "the number of the failed check", program.at)?;
            if status != 0 {
                let check = usize::try_from(status - 1).ok().and_then(|it| checks.get(it));
                let check = check.map_or("an unknown check", String::as_str);
                return self.fail(program.at, format!("failed: {check}"));
            }
        }
        outputs.sort_unstable_by_key(|(number, _)| *number);
        let outputs = outputs.into_iter().map(|(_, place)| place);
        let places = program.results.iter().map(|(place, _)| *place).chain(outputs);
        places
            .map(|place| match place {
                Place::Tensor(tensor) => self.tensor(tensor, program.at).cloned(),
                Place::Memory(memory) => {
                    let view = Rc::clone(self.memory(memory, program.at)?);
                    Ok(Rc::new(self.elements(&view, program.return_at)?))
                }
            })
            .collect()
    }

    pub(crate) fn error(&self, at: At, message: impl AsRef<str>) -> Box<Error> {
        Box::new(self.program.error(at, message.as_ref()))
    }

    pub(crate) fn fail<T>(&self, at: At, message: impl AsRef<str>) -> Result<T> {
        Err(self.error(at, message))
    }

    /// The error that the interpreter cannot go on: rounding decides, or a limit is reached.
    pub(crate) fn open<T>(&self, at: At, message: impl AsRef<str>) -> Result<T> {
        let mut error = self.error(at, message);
        error.is_open = true;
        Err(error)
    }

    /// Checks that a value which decides something is not undefined.
    pub(crate) fn defined(&self, value: Scalar, what: &str, at: At) -> Result<()> {
        let Some(origin) = value.origin() else { return Ok(()) };
        let error = self.program.error(at, &format!("has an undefined value for {what}"));
        Err(Box::new(self.program.note_origin(error, origin)))
    }

    pub(crate) fn tensor(&self, tensor: TensorReg, at: At) -> Result<&Rc<Array>> {
        self.tensors[tensor]
            .as_ref()
            .ok_or_else(|| self.error(at, "uses a tensor before it is computed"))
    }

    pub(crate) fn set_tensor(&mut self, to: TensorReg, array: Array) {
        self.tensors[to] = Some(Rc::new(array));
    }

    pub(crate) fn code(&mut self, code: &'p Code) -> Result<()> {
        for inst in code {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: &'p Inst) -> Result<()> {
        let regs = &mut self.regs;
        match inst {
            Inst::Copy { to, from } => regs[*to] = regs[*from],
            Inst::Int { op, width, to, lhs, rhs, at } => {
                let (lhs, rhs) = (regs[*lhs], regs[*rhs]);
                if let Some(undefined) = Scalar::undefined_of(lhs, rhs) {
                    regs[*to] = undefined;
                    return Ok(());
                }
                match integer::binary(*op, *width, lhs, rhs) {
                    Ok(value) => regs[*to] = value,
                    Err(undefined) => return self.undefined(undefined, *at),
                }
            }
            Inst::IntOne { op, width, to, from } => {
                regs[*to] = unary(regs[*from], |it| integer::unary(*op, *width, it));
            }
            Inst::IntCompare { predicate, width, to, lhs, rhs } => {
                regs[*to] =
                    binary(regs[*lhs], regs[*rhs], |lhs, rhs| predicate.apply(*width, lhs, rhs));
            }
            Inst::IntConvert { signed, from_width, to_width, to, from } => {
                regs[*to] = unary(regs[*from], |it| {
                    let value = it.as_int();
                    let value = if *signed { value } else { unsigned(value, *from_width) as i64 };
                    Scalar::int(wrap(value, *to_width)).certain_if(it.is_certain())
                });
            }
            Inst::Float { op, ty, to, lhs, rhs } => {
                regs[*to] = binary(regs[*lhs], regs[*rhs], |lhs, rhs| ty.binary(*op, lhs, rhs));
            }
            Inst::FloatOne { op, ty, to, from } => {
                regs[*to] = unary(regs[*from], |it| ty.unary(*op, it));
            }
            Inst::FloatCompare { predicate, ty, to, lhs, rhs } => {
                regs[*to] =
                    binary(regs[*lhs], regs[*rhs], |lhs, rhs| predicate.apply(*ty, lhs, rhs));
            }
            Inst::Call { function, ty, to, operands } => {
                let mut values = [Scalar::int(0); MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = regs[*operand];
                }
                let values = &values[..operands.len()];
                regs[*to] = match values.iter().find(|it| it.is_undefined()) {
                    Some(undefined) => *undefined,
                    None => function.apply(*ty, values),
                };
            }
            Inst::Fold { kind, to, lanes } => {
                let mut fold = Fold::new(*kind, None);
                lanes.iter().for_each(|lane| fold.add(regs[*lane]));
                regs[*to] = fold.finish();
            }
            Inst::FloatConvert { ty, open, to, from } => {
                regs[*to] = unary(regs[*from], |it| ty.convert(it, *open));
            }
            Inst::RoundToSmall { ty, to, from } => {
                regs[*to] = unary(regs[*from], |it| scalar::round_to_small(*ty, it));
            }
            Inst::IntToFloat { ty, width, signed, to, from } => {
                regs[*to] = unary(regs[*from], |it| ty.of_int(it, *width, *signed));
            }
            Inst::FloatToInt { width, signed, to, from } => {
                regs[*to] = unary(regs[*from], |it| integer::from_float(it, *width, *signed));
            }
            Inst::Bitcast { from_type, to_type, to, from } => {
                regs[*to] = unary(regs[*from], |it| integer::bitcast(it, *from_type, *to_type));
            }
            Inst::Select { float, to, condition, yes, no } => {
                let (yes, no) = (regs[*yes], regs[*no]);
                let condition = regs[*condition];
                let (chosen, other) = if condition.is_true() { (yes, no) } else { (no, yes) };
                regs[*to] = if condition.is_certain() {
                    chosen
                } else if condition.is_undefined() && !yes.is_same(no) {
                    condition
                } else {
                    chosen.either(other, *float)
                };
            }
            Inst::Index { op, to, lhs, rhs, at } => return self.index(*op, *to, *lhs, *rhs, *at),
            Inst::If(inst) => return self.branch(inst),
            Inst::Switch(inst) => {
                let value = self.certain(inst.selector, "the selector", inst.at)?;
                let case = inst.cases.iter().find(|(case, _)| *case == value);
                return self.run_branch(case.map_or(&inst.default, |(_, branch)| branch));
            }
            Inst::Loop(inst) => return self.counted_loop(inst),
            Inst::While(inst) => return self.while_loop(inst),
            Inst::CallFunction { function, arguments, results } => {
                self.moves(arguments);
                let program = self.program;
                self.code(&program.functions[*function])?;
                self.moves(results);
            }
            Inst::Move(moves) => self.moves(moves),
            Inst::Memory(inst, at) => return self.memory_inst(inst, *at),
            Inst::Read { to, tensor, indices, lenient, at } => {
                return self.read(*to, *tensor, indices, *lenient, *at);
            }
            Inst::Extent { to, tensor, dim, at } => {
                let extent = self.extent(&self.tensor(*tensor, *at)?.shape, *dim, *at)?;
                self.regs[*to] = extent;
            }
            Inst::Check { condition, message, at } => {
                let condition = regs[*condition];
                if !condition.is_certain() {
                    self.defined(condition, "the condition", *at)?;
                    return self.open(
                        *at,
                        format!("cannot tell whether '{message}' holds: rounding decides"),
                    );
                }
                if !condition.is_true() {
                    return self.fail(*at, format!("failed: {message}"));
                }
            }
            Inst::Inside(inside, at) => return self.inside(inside, *at),
            Inst::Holds { to, conditions, lenient, at } => {
                let holds = self.holds(conditions, "a condition", *lenient, *at)?;
                self.regs[*to] = holds
                    .map_or(Scalar::bool(false), |certain| Scalar::bool(true).certain_if(certain));
            }
            Inst::Constant { to, array } => self.tensors[*to] = Some(Rc::clone(array)),
            Inst::Empty { to, shape, at } => {
                let shape = self.shape(shape, *at)?;
                let array = self.new_array(shape, *at)?;
                self.set_tensor(*to, array);
            }
            Inst::Fill { to, tensor, value } => {
                let value = regs[*value];
                // A fill comes after the tensor it fills.
                if let Some(array) = &self.tensors[*tensor] {
                    let mut array = Array::clone(array);
                    array.scalars.fill(value);
                    self.set_tensor(*to, array);
                }
            }
            Inst::Reshaped { to, from, shape, at } => {
                let array = self.tensor(*from, *at)?.clone();
                self.expect_shape(&array.shape, shape, *at)?;
                self.tensors[*to] = Some(array);
            }
            Inst::InsertElement { to, tensor, take, value, indices, at } => {
                let value = regs[*value];
                let mut array = self.written(*tensor, *to, *take, *at)?;
                match self.element(&array, indices, true, *at)? {
                    Some(position) => Rc::make_mut(&mut array).scalars[position] = value,
                    // It may be any element.
                    None => Rc::make_mut(&mut array)
                        .scalars
                        .iter_mut()
                        .for_each(|scalar| *scalar = scalar.uncertain()),
                }
                self.tensors[*to] = Some(array);
            }
            Inst::FromElements { to, shape, elements } => {
                let scalars = elements.iter().map(|it| regs[*it]).collect();
                let origin = vec![0; shape.len()];
                self.set_tensor(*to, Array { shape: shape.clone(), origin, scalars });
            }
            Inst::ExtractSlice { to, from, slice, at } => {
                let array = Rc::clone(self.tensor(*from, *at)?);
                let bounds = self.slice_bounds(slice, &array.shape, *at)?;
                let kept = bounds.iter().zip(&slice.is_kept).filter(|(_, is_kept)| **is_kept);
                let shape: Vec<_> = kept.map(|(bound, _)| bound.size).collect();
                let scalars =
                    positions(&bounds, &array.shape).map(|it| array.scalars[it]).collect();
                let origin = vec![0; shape.len()];
                self.set_tensor(*to, Array { shape, origin, scalars });
            }
            Inst::InsertSlice { to, source, into, take, slice, at } => {
                let source = Rc::clone(self.tensor(*source, *at)?);
                let mut array = self.written(*into, *to, *take, *at)?;
                let bounds = self.slice_bounds(slice, &array.shape, *at)?;
                let count: usize = bounds.iter().map(|bound| bound.size).product();
                if count != source.scalars.len() {
                    let message = format!(
                        "inserts a tensor of shape {}; expected {count} elements",
                        Shape(&source.shape)
                    );
                    return self.fail(*at, message);
                }
                let written = Rc::make_mut(&mut array);
                for (position, scalar) in positions(&bounds, &written.shape).zip(&source.scalars) {
                    written.scalars[position] = *scalar;
                }
                self.tensors[*to] = Some(array);
            }
            Inst::Reshape { to, from, shape, at } => {
                let array = Rc::clone(self.tensor(*from, *at)?);
                let groups = self.reshaped(&array.shape, shape, *at)?;
                let shape: Vec<_> = groups.into_iter().flat_map(|(_, extents)| extents).collect();
                let origin = vec![0; shape.len()];
                let scalars = array.scalars.clone();
                self.set_tensor(*to, Array { shape, origin, scalars });
            }
            Inst::Origin { tensor, first, position, at } => {
                let origin = self.origin(first, position, *at)?;
                let mut array = Array::clone(self.tensor(*tensor, *at)?);
                array.origin = origin;
                self.set_tensor(*tensor, array);
            }
            Inst::LoopNest(nest) => return self.nest(nest),
            Inst::Sort(sort) => return self.sort(sort),
        }
        Ok(())
    }

    fn undefined(&self, undefined: Undefined, at: At) -> Result<()> {
        self.fail(
            at,
            match undefined {
                Undefined::DivisionByZero => "divides by zero",
                Undefined::Overflow => "overflows",
            },
        )
    }

    fn index(&mut self, op: IndexOp, to: Reg, lhs: Reg, rhs: Reg, at: At) -> Result<()> {
        let (lhs, rhs) = (self.regs[lhs], self.regs[rhs]);
        if let Some(undefined) = Scalar::undefined_of(lhs, rhs) {
            self.regs[to] = undefined;
            return Ok(());
        }
        let (a, b) = (lhs.as_int(), rhs.as_int());
        let certain = lhs.is_certain() && rhs.is_certain();
        let value = match op {
            IndexOp::Add => a.checked_add(b),
            IndexOp::Mul => a.checked_mul(b),
            IndexOp::FloorDiv => checked_floor_div(a, b),
            IndexOp::CeilDiv => checked_ceil_div(a, b),
            IndexOp::Mod if b == 0 => None,
            IndexOp::Mod => i64::try_from(i128::from(a).rem_euclid(i128::from(b))).ok(),
            IndexOp::Min => Some(a.min(b)),
            IndexOp::Max => Some(a.max(b)),
        };
        let Some(value) = value.or((!certain).then_some(0)) else {
            let message = match op {
                IndexOp::FloorDiv | IndexOp::CeilDiv | IndexOp::Mod if b == 0 => {
                    format!("divides the index {a} by zero")
                }
                _ => format!("overflows 64 bits in index arithmetic on {a} and {b}"),
            };
            return self.fail(at, message);
        };
        self.regs[to] = Scalar::int(value).certain_if(certain);
        Ok(())
    }

    fn moves(&mut self, moves: &Moves) {
        if let [(to, from)] = moves.scalars[..] {
            self.regs[to] = self.regs[from];
        } else {
            let values: smallvec::SmallVec<[Scalar; 8]> =
                moves.scalars.iter().map(|(_, from)| self.regs[*from]).collect();
            for ((to, _), value) in moves.scalars.iter().zip(values) {
                self.regs[*to] = value;
            }
        }
        if !moves.tensors.is_empty() {
            let values: smallvec::SmallVec<[_; 4]> = moves
                .tensors
                .iter()
                .map(|(_, from, is_taken)| match is_taken {
                    true => self.tensors[*from].take(),
                    false => self.tensors[*from].clone(),
                })
                .collect();
            for ((to, ..), value) in moves.tensors.iter().zip(values) {
                self.tensors[*to] = value;
            }
        }
        if !moves.memories.is_empty() {
            let values: smallvec::SmallVec<[_; 4]> =
                moves.memories.iter().map(|(_, from)| self.memories[*from].clone()).collect();
            for ((to, _), value) in moves.memories.iter().zip(values) {
                self.memories[*to] = value;
            }
        }
    }

    fn run_branch(&mut self, branch: &'p Branch) -> Result<()> {
        self.code(&branch.code)?;
        self.moves(&branch.results);
        Ok(())
    }

    /// Takes one side; if rounding decides which, both, and what covers their results.
    fn branch(&mut self, inst: &'p If) -> Result<()> {
        let condition = self.regs[inst.condition];
        let (taken, other) = match condition.is_true() {
            true => (&inst.then, &inst.otherwise),
            false => (&inst.otherwise, &inst.then),
        };
        if condition.is_certain() {
            return self.run_branch(taken);
        }
        self.defined(condition, "the condition", inst.at)?;
        if !taken.results.memories.is_empty() {
            let message = "cannot be run: rounding decides which memref results";
            return self.open(inst.at, message);
        }
        // A side that cannot run is as uncertain as can be: perhaps nobody takes it.
        let outer = self.heap.begin();
        let first = self.side(inst, taken)?;
        let written = self.heap.undo();
        self.heap.begin();
        let second = self.side(inst, other)?;
        let both = first.is_some() && second.is_some();
        self.heap.merge(written, outer, both);
        let (Some(mut first), second) = (first.or_else(|| second.clone()), second) else {
            return self.fail(inst.at, "has no side that can be run");
        };
        let second = second.unwrap_or_else(|| first.clone());
        for ((to, is_float), (first, second)) in
            inst.scalars.iter().zip(first.scalars.iter().zip(&second.scalars))
        {
            self.regs[*to] = first.either(*second, *is_float).certain_if(both);
        }
        let pairs = first.tensors.iter_mut().zip(&second.tensors);
        for ((to, is_float), (first, second)) in inst.tensors.iter().zip(pairs) {
            let (Some(first), Some(second)) = (first, second) else { continue };
            if first.shape != second.shape {
                let message = "cannot be run: rounding decides the shape of a result";
                return self.open(inst.at, message);
            }
            let mut merged = Array::clone(first);
            for (scalar, other) in merged.scalars.iter_mut().zip(&second.scalars) {
                *scalar = scalar.either(*other, *is_float).certain_if(both);
            }
            self.set_tensor(*to, merged);
        }
        Ok(())
    }

    /// Runs one side of a branch that may not be taken, and returns its results; `None` if what it does is
    /// not allowed.
    fn side(&mut self, inst: &'p If, branch: &'p Branch) -> Result<Option<Side>> {
        match self.run_branch(branch) {
            Err(error) if error.is_open => return Err(error),
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
        Ok(Some(Side {
            scalars: inst.scalars.iter().map(|(to, _)| self.regs[*to]).collect(),
            tensors: inst.tensors.iter().map(|(to, _)| self.tensors[*to].clone()).collect(),
        }))
    }

    fn counted_loop(&mut self, inst: &'p CountedLoop) -> Result<()> {
        let mut bounds = smallvec::SmallVec::<[(i64, i64, i64); 4]>::new();
        let mut is_empty = false;
        for counter in &inst.counters {
            let lower = self.certain(counter.lower, "a lower bound", inst.at)?;
            let upper = self.certain(counter.upper, "an upper bound", inst.at)?;
            let step = self.certain(counter.step, "a step", inst.at)?;
            if step <= 0 {
                return self.fail(inst.at, format!("has a step of {step}; expected 1 or more"));
            }
            is_empty |= !is_below(lower, upper, inst.unsigned_width);
            bounds.push((lower, upper, step));
        }
        self.moves(&inst.init);
        for (counter, (lower, ..)) in inst.counters.iter().zip(&bounds) {
            self.regs[counter.variable] = Scalar::int(*lower);
        }
        while !is_empty {
            self.count_point(inst.at)?;
            self.run_branch(&inst.body)?;
            is_empty = true;
            for (number, counter) in inst.counters.iter().enumerate().rev() {
                let (lower, upper, step) = bounds[number];
                let next = self.regs[counter.variable].as_int().checked_add(step);
                let next = next.filter(|it| is_below(*it, upper, inst.unsigned_width));
                self.regs[counter.variable] = Scalar::int(next.unwrap_or(lower));
                if next.is_some() {
                    is_empty = false;
                    break;
                }
            }
        }
        self.moves(&inst.finish);
        Ok(())
    }

    fn while_loop(&mut self, inst: &'p While) -> Result<()> {
        self.moves(&inst.init);
        loop {
            self.count_point(inst.at)?;
            self.code(&inst.before)?;
            if self.certain(inst.condition, "the condition", inst.at)? & 1 == 0 {
                break;
            }
            self.moves(&inst.forward);
            self.run_branch(&inst.after)?;
        }
        self.moves(&inst.finish);
        Ok(())
    }

    /// A tensor to be written to, whose result goes to `to`.
    fn written(
        &mut self,
        tensor: TensorReg,
        to: TensorReg,
        take: bool,
        at: At,
    ) -> Result<Rc<Array>> {
        // The result of an earlier iteration is not used any more, and may be the same array.
        if to != tensor {
            self.tensors[to] = None;
        }
        let array = if take { self.tensors[tensor].take() } else { self.tensors[tensor].clone() };
        array.ok_or_else(|| self.error(at, "uses a tensor before it is computed"))
    }

    /// The bounds of a slice, which is inside a shape.
    pub(crate) fn slice_bounds(
        &self,
        slice: &Slice,
        shape: &[usize],
        at: At,
    ) -> Result<Vec<Bound>> {
        let mut bounds = Vec::new();
        for (dim, extent) in shape.iter().enumerate() {
            let offset = self.certain(slice.offsets[dim], "an offset", at)?;
            let size = self.certain(slice.sizes[dim], "a size", at)?;
            let stride = self.certain(slice.strides[dim], "a stride", at)?;
            let last =
                size.checked_sub(1).and_then(|it| it.checked_mul(stride)?.checked_add(offset));
            let is_inside = |index: i64| 0 <= index && index < *extent as i64;
            let fits = size == 0 && 0 <= offset && offset <= *extent as i64
                || 0 < size
                    && is_inside(offset)
                    && last.is_some_and(is_inside)
                    && (stride != 0 || size == 1);
            if !fits {
                let message = format!(
                    "is out of bounds: offset {offset}, size {size} and stride {stride} in dimension {dim} \
                     of extent {extent}"
                );
                return self.fail(at, message);
            }
            bounds.push(Bound { offset, size: size as usize, stride });
        }
        Ok(bounds)
    }

    pub(crate) fn extent(&self, shape: &[usize], dim: Reg, at: At) -> Result<Scalar> {
        let dim = self.regs[dim];
        self.defined(dim, "a dimension", at)?;
        let extent = usize::try_from(dim.as_int()).ok().and_then(|dim| shape.get(dim));
        let Some(extent) = extent else {
            let message =
                format!("asks for dimension {} of {} dimensions", dim.as_int(), shape.len());
            return self.fail(at, message);
        };
        Ok(Scalar::int(*extent as i64).certain_if(dim.is_certain()))
    }

    /// The row-major position of an element, its indices counted from the origin.
    /// `None` if it is not certain which element it is.
    fn element(
        &self,
        array: &Array,
        indices: &[Reg],
        origin: bool,
        at: At,
    ) -> Result<Option<usize>> {
        let mut offset = 0;
        for (dim, reg) in indices.iter().enumerate() {
            let index = self.regs[*reg];
            if !index.is_certain() {
                self.defined(index, "an index", at)?;
                return Ok(None);
            }
            let first = if origin { array.origin[dim] } else { 0 };
            let extent = array.shape[dim];
            let position = index.as_int().checked_sub(first);
            let position = position.and_then(|it| usize::try_from(it).ok());
            let Some(position) = position.filter(|position| *position < extent) else {
                return Err(self.out_of_bounds(array, indices, origin, at));
            };
            offset = offset * extent + position;
        }
        Ok(Some(offset))
    }

    #[cold]
    fn out_of_bounds(&self, array: &Array, indices: &[Reg], origin: bool, at: At) -> Box<Error> {
        let indices: Vec<_> = indices.iter().map(|reg| self.regs[*reg].as_int()).collect();
        let shifted = origin && array.origin.iter().any(|first| *first != 0);
        let from = if shifted {
            format!(" whose first index is {}", Shape(&array.origin))
        } else {
            String::new()
        };
        let what =
            if origin { "is out of bounds: index" } else { "stores out of bounds: position" };
        let message = format!(
            "{what} {} of a tensor of shape {}{from}",
            Shape(&indices),
            Shape(&array.shape)
        );
        self.error(at, message)
    }

    fn read(
        &mut self,
        to: Reg,
        tensor: TensorReg,
        indices: &[Reg],
        lenient: bool,
        at: At,
    ) -> Result<()> {
        let array = self.tensor(tensor, at)?;
        let value = match self.element(array, indices, true, at) {
            Ok(Some(offset)) => array.scalars[offset],
            Ok(None) => Scalar::UNKNOWN,
            Err(_) if lenient => Scalar::UNKNOWN,
            Err(error) => return Err(error),
        };
        self.regs[to] = value;
        Ok(())
    }

    /// A value that must not be uncertain, because the shape of the computation hangs on it.
    pub(crate) fn certain(&self, reg: Reg, what: &str, at: At) -> Result<i64> {
        let value = self.regs[reg];
        if value.is_certain() {
            return Ok(value.as_int());
        }
        self.defined(value, what, at)?;
        self.open(at, format!("cannot be run: {what} depends on rounding"))
    }

    fn inside(&self, inside: &Inside, at: At) -> Result<()> {
        let value = self.regs[inside.value];
        let [lower, upper] =
            [inside.lower, inside.upper].map(|bound| bound.map(|reg| self.regs[reg]));
        let what = format!("'{}'", inside.name);
        self.defined(value, &what, at)?;
        let uncertain = |bound: Scalar| !bound.is_certain();
        if uncertain(value) || lower.is_some_and(uncertain) || upper.is_some_and(uncertain) {
            return Ok(());
        }
        let value = value.as_int();
        let (lower, upper) = (lower.map(Scalar::as_int), upper.map(Scalar::as_int));
        if lower.is_none_or(|lower| lower <= value) && upper.is_none_or(|upper| value <= upper) {
            return Ok(());
        }
        let text = |bound: Option<i64>, infinite: &str| {
            bound.map_or_else(|| infinite.to_string(), |bound| bound.to_string())
        };
        let message = format!(
            "expects '{}' in [{}, {}], but found {value}",
            inside.name,
            text(lower, "-inf"),
            text(upper, "inf")
        );
        self.fail(at, message)
    }

    pub(crate) fn shape(&self, extents: &[Reg], at: At) -> Result<Vec<usize>> {
        extents
            .iter()
            .map(|reg| {
                let extent = self.certain(*reg, "an extent", at)?;
                usize::try_from(extent).or_else(|_| {
                    self.fail(at, format!("has an extent of {extent}; expected 0 or more"))
                })
            })
            .collect()
    }

    pub(crate) fn new_array(&self, shape: Vec<usize>, at: At) -> Result<Array> {
        let count = shape.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        let Some(count) = count.filter(|count| *count as u64 <= self.limits.elements) else {
            let message = format!(
                "needs a tensor of shape {}; expected at most {} elements",
                Shape(&shape),
                self.limits.elements
            );
            return self.fail(at, message);
        };
        let origin = vec![0; shape.len()];
        Ok(Array { shape, origin, scalars: vec![Scalar::undefined(at); count] })
    }

    pub(crate) fn expect_shape(
        &self,
        found: &[usize],
        expected: &[Option<i64>],
        at: At,
    ) -> Result<()> {
        let agrees = |(found, expected): (&usize, &Option<i64>)| {
            expected.is_none_or(|expected| i64::try_from(*found) == Ok(expected))
        };
        if found.len() == expected.len() && found.iter().zip(expected).all(agrees) {
            return Ok(());
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|extent| extent.map_or_else(|| "?".to_string(), |extent| extent.to_string()))
            .collect();
        self.fail(
            at,
            format!("has a tensor of shape {}; expected {}", Shape(found), Shape(&expected)),
        )
    }

    /// The index of the first element of a tensor: that of any element less its position.
    fn origin(&self, first: &[Reg], position: &[Reg], at: At) -> Result<Vec<i64>> {
        let pairs = first.iter().zip(position);
        pairs
            .map(|(first, position)| {
                let first = self.certain(*first, "a range", at)?;
                let position = self.certain(*position, "a range", at)?;
                first
                    .checked_sub(position)
                    .ok_or_else(|| self.error(at, "overflows 64 bits in index arithmetic"))
            })
            .collect()
    }

    fn nest(&mut self, nest: &'p LoopNest) -> Result<()> {
        self.code(&nest.before)?;
        let mut outputs = Vec::new();
        let mut dims = Odometer::new(self, &nest.dims, nest)?;
        for output in &nest.outputs {
            outputs.push(self.start(nest, output)?);
        }
        let mut carried = Carried::default();
        while dims.step(&mut self.regs) {
            let starts = nest.scan.is_none() || dims.is_first_of_last(&self.regs);
            let point = self.point(nest, &mut outputs, &mut carried, starts);
            if let Err(mut error) = point {
                error.message.push_str(&self.where_in(nest));
                return Err(error);
            }
        }
        for (output, array) in nest.outputs.iter().zip(outputs) {
            if let Some(array) = array {
                self.tensors[output.to] = Some(array);
            }
        }
        Ok(())
    }

    /// The values of the variables, for an error.
    fn where_in(&self, nest: &LoopNest) -> String {
        let loops = nest.dims.iter().chain(&nest.ranges);
        let values: Vec<_> =
            loops.map(|it| format!("{} = {}", it.name, self.regs[it.variable].as_int())).collect();
        if values.is_empty() { String::new() } else { format!(" (at {})", values.join(", ")) }
    }

    /// What a result holds before the nest; `None` if it is in memory.
    fn start(&mut self, nest: &LoopNest, output: &Output) -> Result<Option<Rc<Array>>> {
        match &output.start {
            Start::Tensor { tensor, take } => {
                self.written(*tensor, output.to, *take, nest.at).map(Some)
            }
            Start::Memory(_) => Ok(None),
            Start::New { first, position, last, shape: expected, fill } => {
                let mut shape = Vec::new();
                for last in last {
                    let last = self.certain(*last, "a range", nest.at)?;
                    let extent = last.checked_add(1).and_then(|it| usize::try_from(it).ok());
                    let message = || {
                        self.error(nest.at, format!("stores its last element at position {last}"))
                    };
                    shape.push(extent.ok_or_else(message)?);
                }
                self.expect_shape(&shape, expected, nest.at)?;
                let mut array = self.new_array(shape, nest.at)?;
                array.origin = self.origin(first, position, nest.at)?;
                array.scalars.fill(*fill);
                Ok(Some(Rc::new(array)))
            }
        }
    }

    /// Computes the elements of one point of the dimensions. The map form and a scatter store only
    /// where the constraints hold; a fold stores everywhere.
    fn point(
        &mut self,
        nest: &'p LoopNest,
        outputs: &mut [Option<Rc<Array>>],
        Carried { folds, regions, updated }: &mut Carried,
        starts: bool,
    ) -> Result<()> {
        self.count_point(nest.at)?;
        self.code(&nest.per_dim)?;
        let mut certain = true;
        if nest.accumulators.is_empty() || nest.scatter.is_some() {
            match self.satisfies(nest)? {
                Some(holds) => certain = holds,
                None => return Ok(()),
            }
        }
        if let Some(scatter) = nest.scatter.as_ref().filter(|_| certain) {
            self.keep_promises(nest, scatter, updated)?;
        }
        if nest.accumulators.is_empty() {
            self.code(&nest.body)?;
            for output in nest.outputs.iter().filter(|_| !certain) {
                self.regs[output.stored] = self.regs[output.stored].uncertain();
            }
            return self.store_outputs(nest, outputs, updated);
        }
        if starts {
            self.start_folds(nest, outputs, folds)?;
            if nest.combiner.is_some() {
                *regions = RegionFold::new(folds);
            }
        }
        if nest.scan == Some(Scan::Exclusive) {
            self.finish_folds(nest, folds, regions)?;
        }
        if nest.ranges.is_empty() {
            self.term(nest, folds, regions)?;
        } else {
            let mut ranges = Odometer::new(self, &nest.ranges, nest)?;
            while ranges.step(&mut self.regs) {
                self.count_point(nest.at)?;
                self.term(nest, folds, regions)?;
            }
        }
        if nest.scan != Some(Scan::Exclusive) {
            self.finish_folds(nest, folds, regions)?;
        }
        self.keep_identities(nest)?;
        self.code(&nest.epilogue)?;
        self.store_outputs(nest, outputs, updated)
    }

    /// Puts the folded values into their registers.
    fn finish_folds(
        &mut self,
        nest: &'p LoopNest,
        folds: &[Fold],
        regions: &RegionFold,
    ) -> Result<()> {
        for (accumulator, fold) in nest.accumulators.iter().zip(folds) {
            self.regs[accumulator.folded] = fold.finish();
        }
        match nest.combiner.as_ref().filter(|it| !it.promises.is_empty()) {
            Some(combiner) => self.widen(nest, combiner, regions),
            None => Ok(()),
        }
    }

    /// Gives the accumulators their starts.
    fn start_folds(
        &self,
        nest: &LoopNest,
        outputs: &[Option<Rc<Array>>],
        folds: &mut Vec<Fold>,
    ) -> Result<()> {
        folds.clear();
        for accumulator in &nest.accumulators {
            let start = match accumulator.start {
                FoldStart::Identity => None,
                FoldStart::Constant(value) => Some(value),
                FoldStart::Output(number) => {
                    let output = &nest.outputs[number];
                    match (&outputs[number], &output.start) {
                        (Some(array), _) => {
                            let offset = self.stored_at(nest, output, array)?;
                            Some(offset.map_or(Scalar::UNKNOWN, |offset| array.scalars[offset]))
                        }
                        (None, Start::Memory(memory)) => {
                            Some(self.load(*memory, &output.position, 0, nest.at)?)
                        }
                        (None, _) => None,
                    }
                }
            };
            folds.push(Fold::new(accumulator.fold, start));
        }
        Ok(())
    }

    /// Stores the elements of the current point.
    fn store_outputs(
        &mut self,
        nest: &LoopNest,
        outputs: &mut [Option<Rc<Array>>],
        updated: &mut Updated,
    ) -> Result<()> {
        for (number, (output, array)) in nest.outputs.iter().zip(outputs).enumerate() {
            let stored = self.regs[output.stored];
            if !output.is_injective {
                self.store_once(nest.at, output, number, updated)?;
            }
            match (array, &output.start) {
                (Some(array), _) => {
                    let array = Rc::make_mut(array);
                    match self.stored_at(nest, output, array)? {
                        Some(offset) => array.scalars[offset] = stored,
                        // It may be any element.
                        None => {
                            for scalar in array.scalars.iter_mut().filter(|it| it.is_certain()) {
                                *scalar = scalar.uncertain();
                            }
                        }
                    }
                }
                (None, Start::Memory(memory)) => {
                    self.store(*memory, &output.position, 0, stored, nest.at)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The row-major position of the element that an output stores at the current point; `None` if it
    /// depends on rounding.
    fn stored_at(&self, nest: &LoopNest, output: &Output, array: &Array) -> Result<Option<usize>> {
        self.element(array, &output.position, false, nest.at)
    }

    /// Whether the current point satisfies the constraints: `None` if not, otherwise whether that is
    /// certain.
    fn satisfies(&mut self, nest: &'p LoopNest) -> Result<Option<bool>> {
        self.code(&nest.constraint_code)?;
        self.holds(&nest.constraints, "a constraint", false, nest.at)
    }

    /// Whether values lie in intervals: `None` if not, otherwise whether that is certain.
    fn holds(
        &self,
        conditions: &[(Reg, Interval)],
        what: &str,
        lenient: bool,
        at: At,
    ) -> Result<Option<bool>> {
        let mut certain = true;
        for (reg, interval) in conditions {
            let value = self.regs[*reg];
            if !lenient {
                self.defined(value, what, at)?;
            }
            certain &= value.is_certain();
            if value.is_certain() && !interval.contains(value.as_int()) {
                return Ok(None);
            }
        }
        Ok(Some(certain))
    }

    /// Folds in the values of one point, if it satisfies the constraints.
    fn term(
        &mut self,
        nest: &'p LoopNest,
        folds: &mut [Fold],
        regions: &mut RegionFold,
    ) -> Result<()> {
        let Some(certain) = self.satisfies(nest)? else { return Ok(()) };
        self.code(&nest.body)?;
        if let Some(combiner) = &nest.combiner {
            let values = nest.accumulators.iter().map(|it| self.regs[it.value]);
            let values: Vec<_> = match certain {
                true => values.collect(),
                false => values.map(Scalar::uncertain).collect(),
            };
            let old: Vec<_> = folds.iter().map(Fold::finish).collect();
            for (fold, value) in folds.iter_mut().zip(self.combine(combiner, &old, &values)?) {
                fold.add(value);
            }
            return self.combine_in_pairs(combiner, regions, values);
        }
        for (accumulator, fold) in nest.accumulators.iter().zip(folds) {
            let value = self.regs[accumulator.value];
            fold.add(if certain { value } else { value.uncertain() });
        }
        Ok(())
    }

    pub(crate) fn count_point(&mut self, at: At) -> Result<()> {
        self.num_points += 1;
        if self.num_points <= self.limits.points { Ok(()) } else { self.too_many_points(at) }
    }

    fn too_many_points<T>(&self, at: At) -> Result<T> {
        let message = format!(
            "needs more than the {} points that the interpreter is given",
            self.limits.points
        );
        self.open(at, message)
    }
}

/// Applies an operation; an undefined operand is the result.
#[inline]
fn unary(operand: Scalar, apply: impl FnOnce(Scalar) -> Scalar) -> Scalar {
    if operand.is_undefined() { operand } else { apply(operand) }
}

/// Applies an operation; the first undefined operand is the result.
#[inline]
fn binary(lhs: Scalar, rhs: Scalar, apply: impl FnOnce(Scalar, Scalar) -> Scalar) -> Scalar {
    Scalar::undefined_of(lhs, rhs).unwrap_or_else(|| apply(lhs, rhs))
}

/// Whether a counter has not reached its end; compared without sign in a width other than 0.
fn is_below(value: i64, end: i64, unsigned_width: u32) -> bool {
    match unsigned_width {
        0 => value < end,
        width => unsigned(value, width) < unsigned(end, width),
    }
}

/// The row-major positions of the elements of a slice.
fn positions<'b>(bounds: &'b [Bound], shape: &[usize]) -> impl Iterator<Item = usize> + use<'b> {
    let mut steps: smallvec::SmallVec<[(i64, i64); 4]> = bounds.iter().map(|_| (0, 1)).collect();
    for dim in (1..shape.len()).rev() {
        steps[dim - 1].1 = i64::saturating_mul(steps[dim].1, shape[dim] as i64);
    }
    let count = bounds.iter().map(|bound| bound.size).product();
    (0..count).map(move |_| {
        let pairs = steps.iter().zip(bounds);
        let position: i64 =
            pairs.map(|((index, step), bound)| (bound.offset + index * bound.stride) * step).sum();
        for ((index, _), bound) in steps.iter_mut().zip(bounds).rev() {
            *index += 1;
            if *index < bound.size as i64 {
                break;
            }
            *index = 0;
        }
        // The bounds are inside the shape.
        position as usize
    })
}

/// The results of one side of a branch.
#[derive(Clone)]
struct Side {
    scalars: Vec<Scalar>,
    tensors: Vec<Option<Rc<Array>>>,
}

/// Counts through all values of some variables, the last fastest.
struct Odometer<'p> {
    loops: &'p [Loop],
    bounds: smallvec::SmallVec<[(i64, i64); 4]>,
    state: State,
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    Fresh,
    Running,
    Done,
}

impl<'p> Odometer<'p> {
    fn new(machine: &Machine, loops: &'p [Loop], nest: &LoopNest) -> Result<Self> {
        let mut state = State::Fresh;
        let mut bounds = smallvec::SmallVec::new();
        let mut points = 1u64;
        for it in loops {
            let lower = machine.certain(it.lower, "a range", nest.at)?;
            let upper = machine.certain(it.upper, "a range", nest.at)?;
            if upper < lower {
                if nest.must_run {
                    let message =
                        format!("has an empty range for '{}': [{lower}, {upper}]", it.name);
                    return machine.fail(nest.at, message);
                }
                state = State::Done;
            }
            points = points.saturating_mul(upper.abs_diff(lower).saturating_add(1));
            bounds.push((lower, upper));
        }
        // What cannot end in time is not begun.
        if state == State::Fresh && machine.limits.points < points {
            return machine.too_many_points(nest.at);
        }
        Ok(Self { loops, bounds, state })
    }

    /// Whether the last variable has its first value.
    fn is_first_of_last(&self, regs: &[Scalar]) -> bool {
        let last = self.loops.last().zip(self.bounds.last());
        last.is_some_and(|(it, (lower, _))| regs[it.variable].as_int() == *lower)
    }

    /// Sets the variables to the next point; `false` after the last.
    fn step(&mut self, regs: &mut [Scalar]) -> bool {
        match self.state {
            State::Done => return false,
            State::Fresh => {
                for (it, (lower, _)) in self.loops.iter().zip(&self.bounds) {
                    regs[it.variable] = Scalar::int(*lower);
                }
                self.state = State::Running;
                return true;
            }
            State::Running => {}
        }
        for (it, (lower, upper)) in self.loops.iter().zip(&self.bounds).rev() {
            let value = regs[it.variable].as_int();
            if value < *upper {
                regs[it.variable] = Scalar::int(value + 1);
                return true;
            }
            regs[it.variable] = Scalar::int(*lower);
        }
        self.state = State::Done;
        false
    }
}
