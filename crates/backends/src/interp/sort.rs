//! Decodes and runs `imap.sort`.

use super::{
    decode::Decoder,
    error::Error,
    integer,
    machine::{Array, Machine, Result},
    program::{At, Code, Inst, Place, Reg},
    scalar::Scalar,
};
use melior::ir::ValueLike;
use std::rc::Rc;
use tc_dialects::{
    imap,
    mlir::{self, Op},
};

/// An `imap.sort`.
#[derive(Clone, Debug)]
pub(crate) struct Sort {
    at: At,
    dim: usize,
    inputs: Vec<Place>,
    /// The initial contents of the destinations.
    inits: Vec<Place>,
    /// The tensors that result, or the memory of the destinations.
    results: Vec<Place>,
    /// Two elements per input.
    arguments: Vec<Reg>,
    comparator: Code,
    /// Whether the first element must stand before the second.
    less: Reg,
    /// The width of the integers that say where items stood.
    place_width: u32,
}

impl Decoder {
    pub(super) fn sort(&mut self, op: Op, code: &mut Code) -> std::result::Result<(), Error> {
        let sort = imap::Sort::cast(op).ok_or_else(|| self.unsupported(op))?;
        let at = self.at(op);
        let block = sort.comparator();
        let arguments = mlir::arguments(block).into_iter().map(|it| self.new_scalar(it)).collect();
        let mut comparator = Code::new();
        let yielded = self.block(block, &mut comparator)?;
        let less = yielded.first().copied().ok_or_else(|| self.unsupported(op))?;
        let less = self.scalar(op, less)?;
        let places = |values: Vec<_>| -> std::result::Result<Vec<_>, _> {
            values.into_iter().map(|it| self.place(op, it)).collect()
        };
        let (inputs, inits) = (places(sort.inputs())?, places(sort.inits())?);
        let mut tensors = mlir::results(op).into_iter();
        let mut results = Vec::new();
        for init in &inits {
            results.push(match init {
                Place::Memory(memory) => Place::Memory(*memory),
                Place::Tensor(_) => {
                    let result = tensors.next().ok_or_else(|| self.unsupported(op))?;
                    Place::Tensor(self.new_tensor(result))
                }
            });
        }
        let last = sort.inits().last().map(|init| mlir::element_type(init.r#type()));
        let place_width = last.and_then(mlir::integer_width).unwrap_or(64);
        let dim = sort.dim();
        let sort =
            Sort { at, dim, inputs, inits, results, arguments, comparator, less, place_width };
        code.push(Inst::Sort(Box::new(sort)));
        Ok(())
    }
}

impl<'p> Machine<'p> {
    pub(super) fn sort(&mut self, sort: &'p Sort) -> Result<()> {
        let (at, dim) = (sort.at, sort.dim);
        let inputs = self.arrays(&sort.inputs, at)?;
        let mut outputs = self.arrays(&sort.inits, at)?;
        let (shape, kept) = (inputs[0].shape.clone(), outputs[0].shape.clone());
        let fits = |all: &[Rc<Array>], shape: &[usize]| all.iter().all(|it| it.shape == *shape);
        let mut longest = shape.clone();
        longest[dim] = kept[dim];
        if !fits(&inputs, &shape)
            || !fits(&outputs, &kept)
            || kept != longest
            || shape[dim] < kept[dim]
        {
            return self.fail(at, "has inputs and destinations whose shapes do not fit");
        }
        let (extent, step) = (shape[dim], shape[dim + 1..].iter().product::<usize>());
        let num_outer: usize = shape[..dim].iter().product();
        for row in 0..num_outer * step {
            let (outer, inner) = (row / step, row % step);
            let first = outer * extent * step + inner;
            let (order, is_certain) = self.sorted_row(sort, &inputs, first, step)?;
            for (number, output) in outputs.iter_mut().enumerate() {
                let output = Rc::make_mut(output);
                for (to, from) in order.iter().take(kept[dim]).enumerate() {
                    let scalar = match inputs.get(number) {
                        Some(input) => input.scalars[*from],
                        None => {
                            let place = (*from / step % extent) as i64;
                            Scalar::int(integer::wrap(place, sort.place_width))
                        }
                    };
                    output.scalars[(outer * kept[dim] + to) * step + inner] =
                        scalar.certain_if(is_certain);
                }
            }
        }
        for (result, output) in sort.results.iter().zip(outputs) {
            match result {
                Place::Tensor(to) => self.set_tensor(*to, Rc::unwrap_or_clone(output)),
                Place::Memory(memory) => {
                    let view = Rc::clone(self.memory(*memory, at)?);
                    self.set_elements(&view, &output.scalars, at)?;
                }
            }
        }
        Ok(())
    }

    fn arrays(&self, places: &[Place], at: At) -> Result<Vec<Rc<Array>>> {
        let array = |place: &Place| match place {
            Place::Tensor(tensor) => self.tensor(*tensor, at).cloned(),
            Place::Memory(memory) => {
                let view = Rc::clone(self.memory(*memory, at)?);
                self.elements(&view, at).map(Rc::new)
            }
        };
        places.iter().map(array).collect()
    }

    /// The places of a row's items in order, and whether rounding leaves the order as it is. A merge
    /// sort, which any comparator leaves a permutation.
    fn sorted_row(
        &mut self,
        sort: &'p Sort,
        inputs: &[Rc<Array>],
        first: usize,
        step: usize,
    ) -> Result<(Vec<usize>, bool)> {
        let mut is_certain = true;
        let extent = inputs[0].shape[sort.dim];
        let mut order: Vec<_> = (0..extent).map(|number| first + number * step).collect();
        let mut width = 1;
        while width < extent {
            let mut merged = Vec::with_capacity(extent);
            for pair in order.chunks(2 * width) {
                let (mut left, mut right) = pair.split_at(width.min(pair.len()));
                while let ([x, lefts @ ..], [y, rights @ ..]) = (left, right) {
                    let less = self.compare_items(sort, inputs, *y, *x)?;
                    is_certain &= less.is_certain();
                    if less.is_true() {
                        merged.push(*y);
                        right = rights;
                    } else {
                        merged.push(*x);
                        left = lefts;
                    }
                }
                merged.extend(left.iter().chain(right));
            }
            order = merged;
            width *= 2;
        }
        Ok((order, is_certain))
    }

    /// Whether the first of two items stands before the second.
    fn compare_items(
        &mut self,
        sort: &'p Sort,
        inputs: &[Rc<Array>],
        first: usize,
        second: usize,
    ) -> Result<Scalar> {
        self.count_point(sort.at)?;
        for (input, arguments) in inputs.iter().zip(sort.arguments.chunks(2)) {
            for (argument, place) in arguments.iter().zip([first, second]) {
                self.regs[*argument] = input.scalars[place];
            }
        }
        self.code(&sort.comparator)?;
        let less = self.regs[sort.less];
        self.defined(less, "the order of two items", sort.at)?;
        Ok(less)
    }
}
