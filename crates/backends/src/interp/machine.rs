//! Runs a decoded [`Program`].

use super::{
    Limits,
    error::Error,
    fold::Fold,
    function::MAX_OPERANDS,
    integer::{self, Undefined, unsigned, wrap},
    program::{
        At, Branch, Code, IndexOp, Inside, Inst, Loop, Nest, Output, Program, Reg, Start, TensorReg,
    },
    scalar::Scalar,
};
use crate::runtime::Shape;
use std::rc::Rc;
use tc_ir::expr::{checked_ceil_div, checked_floor_div};

/// A tensor of scalars, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    /// The index of the first element.
    pub(crate) origin: Vec<i64>,
    pub(crate) scalars: Vec<Scalar>,
}

/// Errors are rare and large: boxed, so that results of instructions stay small.
type Result<T> = std::result::Result<T, Box<Error>>;

pub(crate) struct Machine<'p> {
    program: &'p Program,
    limits: Limits,
    regs: Vec<Scalar>,
    tensors: Vec<Option<Rc<Array>>>,
    num_points: u64,
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program, limits: Limits) -> Self {
        let mut regs = vec![Scalar::int(0); program.num_scalars];
        for (reg, value) in &program.constants {
            regs[*reg] = *value;
        }
        Self { program, limits, regs, tensors: vec![None; program.num_tensors], num_points: 0 }
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
        for (parameter, input) in self.program.parameters.iter().zip(inputs) {
            self.tensors[parameter.tensor] = Some(Rc::new(input));
        }
        let program = self.program;
        self.code(&program.code)?;
        program
            .results
            .iter()
            .map(|(tensor, _)| self.tensor(*tensor, program.at).cloned())
            .collect()
    }

    fn error(&self, at: At, message: impl AsRef<str>) -> Box<Error> {
        let place = &self.program.locations[at];
        let message = format!("{} {}", place.what, message.as_ref());
        Box::new(Error::new(&place.location, message))
    }

    fn fail<T>(&self, at: At, message: impl AsRef<str>) -> Result<T> {
        Err(self.error(at, message))
    }

    fn tensor(&self, tensor: TensorReg, at: At) -> Result<&Rc<Array>> {
        self.tensors[tensor]
            .as_ref()
            .ok_or_else(|| self.error(at, "uses a tensor before it is computed"))
    }

    fn set_tensor(&mut self, to: TensorReg, array: Array) {
        self.tensors[to] = Some(Rc::new(array));
    }

    fn code(&mut self, code: &'p Code) -> Result<()> {
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
                match integer::binary(*op, *width, regs[*lhs], regs[*rhs]) {
                    Ok(value) => regs[*to] = value,
                    Err(undefined) => return self.undefined(undefined, *at),
                }
            }
            Inst::IntCompare { predicate, width, to, lhs, rhs } => {
                regs[*to] = predicate.apply(*width, regs[*lhs], regs[*rhs]);
            }
            Inst::IntConvert { signed, from_width, to_width, to, from } => {
                let value = regs[*from].as_int();
                let value = if *signed { value } else { unsigned(value, *from_width) as i64 };
                let certain = regs[*from].is_certain();
                regs[*to] = Scalar::int(wrap(value, *to_width)).certain_if(certain);
            }
            Inst::Float { op, ty, to, lhs, rhs } => {
                regs[*to] = ty.binary(*op, regs[*lhs], regs[*rhs]);
            }
            Inst::FloatOne { op, ty, to, from } => regs[*to] = ty.unary(*op, regs[*from]),
            Inst::FloatCompare { predicate, to, lhs, rhs } => {
                regs[*to] = predicate.apply(regs[*lhs], regs[*rhs]);
            }
            Inst::Call { function, ty, to, operands } => {
                let mut values = [Scalar::int(0); MAX_OPERANDS];
                for (value, operand) in values.iter_mut().zip(operands) {
                    *value = regs[*operand];
                }
                regs[*to] = function.apply(*ty, &values[..operands.len()]);
            }
            Inst::FloatConvert { ty, to, from } => regs[*to] = ty.convert(regs[*from]),
            Inst::IntToFloat { ty, width, signed, to, from } => {
                regs[*to] = ty.of_int(regs[*from], *width, *signed);
            }
            Inst::FloatToInt { width, signed, to, from } => {
                regs[*to] = integer::from_float(regs[*from], *width, *signed);
            }
            Inst::Select { float, to, condition, yes, no } => {
                let (yes, no) = (regs[*yes], regs[*no]);
                let (chosen, other) =
                    if regs[*condition].is_true() { (yes, no) } else { (no, yes) };
                let certain = regs[*condition].is_certain();
                regs[*to] = if certain { chosen } else { chosen.either(other, *float) };
            }
            Inst::Index { op, to, lhs, rhs, at } => return self.index(*op, *to, *lhs, *rhs, *at),
            Inst::If { condition, then, otherwise, to } => {
                return self.branch(*condition, then, otherwise, to);
            }
            Inst::Read { to, tensor, indices, lenient, at } => {
                return self.read(*to, *tensor, indices, *lenient, *at);
            }
            Inst::Extent { to, tensor, dim, at } => {
                let dim = regs[*dim];
                let shape = &self.tensor(*tensor, *at)?.shape;
                let extent = usize::try_from(dim.as_int()).ok().and_then(|dim| shape.get(dim));
                let Some(extent) = extent else {
                    let message = format!(
                        "asks for dimension {} of {} dimensions",
                        dim.as_int(),
                        shape.len()
                    );
                    return self.fail(*at, message);
                };
                let extent = Scalar::int(*extent as i64);
                self.regs[*to] = extent.certain_if(dim.is_certain());
            }
            Inst::Check { condition, message, at } => {
                let condition = regs[*condition];
                if !condition.is_certain() {
                    return self.fail(
                        *at,
                        format!("cannot tell whether '{message}' holds: rounding decides"),
                    );
                }
                if !condition.is_true() {
                    return self.fail(*at, format!("failed: {message}"));
                }
            }
            Inst::Inside(inside, at) => return self.inside(inside, *at),
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
            Inst::Origin { tensor, first, position, at } => {
                let origin = self.origin(first, position, *at)?;
                let mut array = Array::clone(self.tensor(*tensor, *at)?);
                array.origin = origin;
                self.set_tensor(*tensor, array);
            }
            Inst::Nest(nest) => return self.nest(nest),
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

    /// Takes one side; if rounding decides which, both, and what covers their results.
    fn branch(
        &mut self,
        condition: Reg,
        then: &'p Branch,
        otherwise: &'p Branch,
        to: &'p [(Reg, bool)],
    ) -> Result<()> {
        let condition = self.regs[condition];
        let (taken, other) =
            if condition.is_true() { (then, otherwise) } else { (otherwise, then) };
        if condition.is_certain() {
            self.code(&taken.code)?;
            for ((to, _), from) in to.iter().zip(&taken.results) {
                self.regs[*to] = self.regs[*from];
            }
            return Ok(());
        }
        // A side that cannot run is as uncertain as can be: perhaps nobody takes it.
        let mut sides = [taken, other].map(|branch| {
            let ran = self.code(&branch.code).is_ok();
            let results: Vec<_> = branch.results.iter().map(|reg| self.regs[*reg]).collect();
            (ran, results)
        });
        let both = sides[0].0 && sides[1].0;
        let (taken, other) = sides.split_at_mut(1);
        for (number, (to, float)) in to.iter().enumerate() {
            let (taken, other) = (taken[0].1[number], other[0].1[number]);
            self.regs[*to] = taken.either(other, *float).certain_if(both);
        }
        Ok(())
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
            Ok(None) => Scalar::UNDEFINED,
            Err(_) if lenient => Scalar::UNDEFINED,
            Err(error) => return Err(error),
        };
        self.regs[to] = value;
        Ok(())
    }

    /// A value that must not be uncertain, because the shape of the computation hangs on it.
    fn certain(&self, reg: Reg, what: &str, at: At) -> Result<i64> {
        let value = self.regs[reg];
        if value.is_certain() {
            return Ok(value.as_int());
        }
        self.fail(
            at,
            format!("cannot be run: {what} depends on rounding, or on an undefined value"),
        )
    }

    fn inside(&self, inside: &Inside, at: At) -> Result<()> {
        let value = self.regs[inside.value];
        let [lower, upper] =
            [inside.lower, inside.upper].map(|bound| bound.map(|reg| self.regs[reg]));
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

    fn shape(&self, extents: &[Reg], at: At) -> Result<Vec<usize>> {
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

    fn new_array(&self, shape: Vec<usize>, at: At) -> Result<Array> {
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
        Ok(Array { shape, origin, scalars: vec![Scalar::UNDEFINED; count] })
    }

    fn expect_shape(&self, found: &[usize], expected: &[Option<i64>], at: At) -> Result<()> {
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

    fn nest(&mut self, nest: &'p Nest) -> Result<()> {
        self.code(&nest.before)?;
        let mut outputs = Vec::new();
        let mut dims = Odometer::new(self, &nest.dims, nest)?;
        for output in &nest.outputs {
            outputs.push(self.start(nest, output)?);
        }
        let mut folds: Vec<Fold> = Vec::with_capacity(outputs.len());
        while dims.step(&mut self.regs) {
            let point = self.point(nest, &mut outputs, &mut folds);
            if let Err(mut error) = point {
                error.message.push_str(&self.where_in(nest));
                return Err(error);
            }
        }
        for (output, array) in nest.outputs.iter().zip(outputs) {
            self.tensors[output.to] = Some(array);
        }
        Ok(())
    }

    /// The values of the variables, for an error.
    fn where_in(&self, nest: &Nest) -> String {
        let loops = nest.dims.iter().chain(&nest.ranges);
        let values: Vec<_> =
            loops.map(|it| format!("{} = {}", it.name, self.regs[it.variable].as_int())).collect();
        if values.is_empty() { String::new() } else { format!(" (at {})", values.join(", ")) }
    }

    /// What a result holds before the nest.
    fn start(&self, nest: &Nest, output: &Output) -> Result<Rc<Array>> {
        match &output.start {
            Start::Tensor(tensor) => Ok(self.tensor(*tensor, nest.at)?.clone()),
            Start::New { first, position, last, shape: expected } => {
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
                Ok(Rc::new(array))
            }
        }
    }

    /// Computes the elements of one point of the dimensions. An `assign` stores only where the
    /// constraints hold; a fold stores everywhere.
    fn point(
        &mut self,
        nest: &'p Nest,
        outputs: &mut [Rc<Array>],
        folds: &mut Vec<Fold>,
    ) -> Result<()> {
        self.count_point(nest)?;
        self.code(&nest.per_dim)?;
        folds.clear();
        let mut offsets = smallvec::SmallVec::<[Option<usize>; 4]>::new();
        for (output, array) in nest.outputs.iter().zip(&*outputs) {
            let mut start = None;
            let mut offset = None;
            if !output.is_assigned() {
                let stored_at = self.stored_at(nest, output, array)?;
                start = (!output.from_identity).then(|| array.scalars[stored_at]);
                offset = Some(stored_at);
            }
            folds.push(Fold::new(output.fold, start));
            offsets.push(offset);
        }
        let mut is_inside = true;
        if nest.ranges.is_empty() {
            is_inside = self.term(nest, folds)?;
        } else {
            let mut ranges = Odometer::new(self, &nest.ranges, nest)?;
            while ranges.step(&mut self.regs) {
                self.count_point(nest)?;
                self.term(nest, folds)?;
            }
        }
        if !is_inside && nest.outputs.iter().all(Output::is_assigned) {
            return Ok(());
        }
        for (output, fold) in nest.outputs.iter().zip(folds) {
            self.regs[output.folded] = fold.finish();
        }
        self.code(&nest.epilogue)?;
        for ((output, array), offset) in nest.outputs.iter().zip(outputs).zip(offsets) {
            let offset = match offset {
                Some(offset) => offset,
                None if is_inside => self.stored_at(nest, output, array)?,
                None => continue,
            };
            Rc::make_mut(array).scalars[offset] = self.regs[output.stored];
        }
        Ok(())
    }

    /// The row-major position of the element that an output stores at the current point.
    fn stored_at(&self, nest: &Nest, output: &Output, array: &Array) -> Result<usize> {
        let offset = self.element(array, &output.position, false, nest.at)?;
        offset.map_or_else(
            || {
                self.fail(
                    nest.at,
                    "cannot be run: where it stores depends on rounding, or on an undefined value",
                )
            },
            Ok,
        )
    }

    /// Folds in the values of one point, if it satisfies the constraints; returns whether it
    /// does.
    fn term(&mut self, nest: &'p Nest, folds: &mut [Fold]) -> Result<bool> {
        self.code(&nest.constraint_code)?;
        let mut certain = true;
        for (reg, interval) in &nest.constraints {
            let value = self.regs[*reg];
            certain &= value.is_certain();
            if value.is_certain() && !interval.contains(value.as_int()) {
                return Ok(false);
            }
        }
        self.code(&nest.body)?;
        for (output, fold) in nest.outputs.iter().zip(folds) {
            let value = self.regs[output.value];
            fold.add(if certain { value } else { value.uncertain() });
        }
        Ok(true)
    }

    fn count_point(&mut self, nest: &Nest) -> Result<()> {
        self.num_points += 1;
        if self.num_points <= self.limits.points { Ok(()) } else { self.too_many_points(nest) }
    }

    fn too_many_points<T>(&self, nest: &Nest) -> Result<T> {
        let message = format!(
            "needs more than the {} points that the interpreter is given",
            self.limits.points
        );
        self.fail(nest.at, message)
    }
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
    fn new(machine: &Machine, loops: &'p [Loop], nest: &Nest) -> Result<Self> {
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
            return machine.too_many_points(nest);
        }
        Ok(Self { loops, bounds, state })
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
