//! Implements the built-in functions on an evaluator.

use super::{
    Callee, Evaluated, Evaluation, Evaluator, Place, Pointwise, Value, Window, constant,
    unknown_size,
};
use crate::axon::specialize::{Subst, refuse};
use crate::text::Span;
use std::rc::Rc;
use tc_ir::shape::{Dim, Shape};

/// The arguments of a call.
struct Arguments<T> {
    values: std::vec::IntoIter<Value<T>>,
    span: Span,
}

impl<T> Arguments<T> {
    fn value(&mut self) -> Evaluated<Value<T>> {
        self.values.next().ok_or_else(|| refuse(self.span, "an argument is missing"))
    }

    fn tensor(&mut self) -> Evaluated<T> {
        match self.value()? {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(refuse(self.span, "expected a tensor as argument")),
        }
    }

    fn function(&mut self) -> Evaluated<Callee> {
        match self.value()? {
            Value::Function(function) => Ok(function),
            _ => Err(refuse(self.span, "expected a function as argument")),
        }
    }
}

impl<T: Evaluator> Evaluation<'_, T> {
    /// The point-wise function that a function is, if it is one.
    pub fn as_pointwise(&self, callee: Callee) -> Option<Pointwise> {
        match &self.functions[callee.0] {
            super::FunctionValue::Builtin(declaration, ..) => {
                Pointwise::from_name(&declaration.name.text)
            }
            super::FunctionValue::Closure(..) => None,
        }
    }

    pub(super) fn builtin(
        &mut self,
        name: &str,
        place: Place,
        subst: &Rc<Subst>,
        args: Vec<Value<T::Tensor>>,
        span: Span,
    ) -> Evaluated<Value<T::Tensor>> {
        let at = |error: String| refuse(span, error);
        let mut args = Arguments { values: args.into_iter(), span };
        if let Some(function) = Pointwise::from_name(name) {
            let mut operands = Vec::new();
            while args.values.len() != 0 {
                operands.push(args.tensor()?);
            }
            return self.pointwise(function, operands).map(Value::Tensor).map_err(at);
        }
        let uses = self.uses;
        let used = uses.builtins.get(&place).ok_or_else(|| refuse(span, "a use without a type"))?;
        let result = match name {
            "relu" => {
                let x = args.tensor()?;
                let element = self.evaluator.tensor_type(&x).element;
                let zero = super::Number::Integer(0);
                let zero = self.evaluator.number(zero, element).map_err(at)?;
                self.pointwise(Pointwise::Max, vec![x, zero])
            }
            "matmul" => {
                let (lhs, rhs) = (args.tensor()?, args.tensor()?);
                let batch = self.evaluator.tensor_type(&lhs).dims.len().saturating_sub(2);
                self.evaluator.dot(&lhs, &rhs, batch)
            }
            "conv" => {
                let (images, filters) = (args.tensor()?, args.tensor()?);
                let mut number = |option: &str| {
                    let dim = self.option(&used.dims, option, subst);
                    constant(&dim).ok_or_else(|| {
                        let sizes = "try '--shape NAME=4x3' with the sizes of parameters";
                        unknown_size("the options of 'conv'", span).note(span, sizes)
                    })
                };
                let mut pair = |names: [&str; 2]| Ok([number(names[0])?, number(names[1])?]);
                let window = Window {
                    stride: pair(["sh", "sw"])?,
                    padding: pair(["ph", "pw"])?,
                    dilation: pair(["dh", "dw"])?,
                };
                let ty = self.result_type(used.result, subst, name, span)?;
                let dims = <[T::Size; 4]>::try_from(ty.dims);
                let dims = dims.map_err(|_| refuse(span, "expected four dimensions"))?;
                self.evaluator.convolution(&images, &filters, window, dims)
            }
            "concat" => {
                let (first, second) = (args.tensor()?, args.tensor()?);
                self.evaluator.concat(&first, &second)
            }
            "reverse" => {
                let x = args.tensor()?;
                self.evaluator.reverse(&x)
            }
            "slice" => {
                let x = args.tensor()?;
                let part = ["first", "m"].map(|it| self.option(&used.dims, it, subst));
                let part = self.sizes(&Shape::dims(part), "the options of 'slice'", span)?;
                self.evaluator.slice(&x, part[0].clone(), part[1].clone())
            }
            "gather" => {
                let (x, indices) = (args.tensor()?, args.tensor()?);
                self.evaluator.gather(&x, &indices)
            }
            "transpose" => {
                let x = args.tensor()?;
                self.evaluator.transpose(&x)
            }
            "reshape" => {
                let x = args.tensor()?;
                let ty = self.result_type(used.result, subst, name, span)?;
                self.evaluator.reshape(&x, &ty.dims)
            }
            "iota" => {
                let ty = self.result_type(used.result, subst, name, span)?;
                self.evaluator.iota(ty.element, ty.dims[0].clone())
            }
            "map" => {
                let (function, x) = (args.function()?, args.tensor()?);
                let made =
                    self.in_loop(|evaluation| T::iterate(evaluation, function, None, &x, span));
                return made.map(|it| Value::Tensor(it.1));
            }
            "loop" => {
                let (state, function, x) = (args.value()?, args.function()?, args.tensor()?);
                if state.tensors().is_none() {
                    return Err(refuse(span, state.no_tensors("the state of a loop")));
                }
                let made = self
                    .in_loop(|evaluation| T::iterate(evaluation, function, Some(state), &x, span));
                let (last, results) = made?;
                let last = last.ok_or_else(|| refuse(span, "a loop without a state"))?;
                return Ok(Value::Tuple([last, Value::Tensor(results)].into()));
            }
            "reduce" => {
                let (function, init) = (args.function()?, args.tensor()?);
                let x = args.tensor()?;
                let made =
                    self.in_loop(|evaluation| T::reduce(evaluation, function, &init, &x, span));
                return made.map(Value::Tensor);
            }
            "lstmStep" => {
                let mut tensors = Vec::new();
                while args.values.len() != 0 {
                    tensors.push(args.tensor()?);
                }
                let (hidden, cell) = self.lstm_step(&tensors).map_err(at)?;
                return Ok(Value::Tuple([Value::Tensor(hidden), Value::Tensor(cell)].into()));
            }
            _ => Err(format!("'{name}' has a type but is not implemented")),
        };
        result.map(Value::Tensor).map_err(at)
    }

    /// A size among the options of a call.
    fn option(
        &mut self,
        dims: &std::collections::HashMap<String, Dim>,
        option: &str,
        subst: &Subst,
    ) -> Dim {
        let dim = dims.get(option).cloned().unwrap_or(Dim::Ragged);
        self.types.known_dim(&dim, subst)
    }

    /// A point-wise function, on operands that are repeated along leading dimensions where they lack
    /// these.
    pub fn pointwise(
        &mut self,
        function: Pointwise,
        mut operands: Vec<T::Tensor>,
    ) -> super::Made<T::Tensor> {
        let evaluator = &mut self.evaluator;
        let shapes = operands.iter().map(|it| evaluator.tensor_type(it).dims.clone());
        let dims = shapes.max_by_key(Vec::len).unwrap_or_default();
        for operand in &mut operands {
            if evaluator.tensor_type(operand).dims.len() < dims.len() {
                *operand = evaluator.broadcast(operand, &dims)?;
            }
        }
        evaluator.pointwise(function, &operands)
    }

    /// A step of an LSTM: gates for input, forgetting and output, and a candidate for the cell, each
    /// of `x` times weights plus `h` times recurrent weights plus a bias (Hochreiter and Schmidhuber,
    /// "Long Short-Term Memory", with the forget gate of Gers, Schmidhuber and Cummins). The operands
    /// are those of the table.
    fn lstm_step(&mut self, operands: &[T::Tensor]) -> super::Made<(T::Tensor, T::Tensor)> {
        let [x, hidden, cell, rest @ ..] = operands else {
            return Err("expected 15 operands".to_string());
        };
        let mut gates = Vec::new();
        for gate in 0..4 {
            let [weights, recurrent, bias] = [gate, 4 + gate, 8 + gate].map(|at| rest.get(at));
            let (Some(weights), Some(recurrent), Some(bias)) = (weights, recurrent, bias) else {
                return Err("expected 15 operands".to_string());
            };
            let of_input = self.evaluator.dot(x, weights, 0)?;
            let of_state = self.evaluator.dot(hidden, recurrent, 0)?;
            let sum = self.pointwise(Pointwise::Add, vec![of_input, of_state])?;
            let sum = self.pointwise(Pointwise::Add, vec![sum, bias.clone()])?;
            let function = if gate == 3 { Pointwise::Tanh } else { Pointwise::Sigmoid };
            gates.push(self.pointwise(function, vec![sum])?);
        }
        let kept = self.pointwise(Pointwise::Mul, vec![gates[1].clone(), cell.clone()])?;
        let added = self.pointwise(Pointwise::Mul, vec![gates[0].clone(), gates[3].clone()])?;
        let cell = self.pointwise(Pointwise::Add, vec![kept, added])?;
        let activated = self.pointwise(Pointwise::Tanh, vec![cell.clone()])?;
        let hidden = self.pointwise(Pointwise::Mul, vec![gates[2].clone(), activated])?;
        Ok((hidden, cell))
    }
}
