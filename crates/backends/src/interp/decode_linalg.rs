//! Decodes `linalg.generic`: loops over its iteration space that read, compute and store.
//!
//! [`prepared`] turns the other structured operations into it.

use super::{
    decode::{Decoder, Known, Slot, is_last_use},
    error::Error,
    program::{Branch, Code, CountedLoop, Counter, Inst, MemoryInst, Moves, Place, Reg},
};
use melior::ir::{Module, Type, ValueLike};
use tc_dialects::mlir::{self, Op, Val};
use tc_ir::{Expr, Var};
use tc_passes::run_pipeline;

/// The module of a function with every structured operation as `linalg.generic`, and complex numbers in
/// two parts; `None` if there is nothing to do.
pub(super) fn prepared<'c>(function: Op<'c>) -> Option<Module<'c>> {
    let is_complex = |ty: Type| mlir::complex_part(mlir::element_type(ty)).is_some();
    let (arguments, types) = mlir::function_type(function).unwrap_or_default();
    let mut has_complex = arguments.into_iter().chain(types).any(is_complex);
    let mut is_named = false;
    mlir::walk(function, &mut |op| {
        let (dialect, name) = mlir::name(op).split_once('.').unwrap_or_default();
        let is_elementwise = matches!(dialect, "arith" | "math")
            && name != "constant"
            && mlir::results(op).first().is_some_and(|it| mlir::is_tensor(it.r#type()));
        is_named |= dialect == "linalg" && !matches!(name, "generic" | "index" | "yield");
        is_named |= is_elementwise;
        has_complex |= mlir::results(op).iter().any(|it| is_complex(it.r#type()));
    });
    let mut passes = Vec::new();
    if is_named {
        passes.push("func.func(convert-elementwise-to-linalg,linalg-generalize-named-ops)");
    }
    if has_complex {
        passes.push("split-complex");
    }
    if passes.is_empty() {
        return None;
    }
    let module = mlir::parent(function).filter(|it| mlir::is(*it, "builtin.module"))?;
    let mut module = Module::from_operation((*module).clone())?;
    run_pipeline(&mut module, &passes.join(",")).ok().map(|()| module)
}

impl Decoder {
    /// An operation of `linalg`.
    pub(super) fn linalg(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "generic" => self.linalg_generic(op, code),
            "index" => {
                let dim = mlir::integer_attr(op, "dim").and_then(|dim| usize::try_from(dim).ok());
                let from = dim.and_then(|dim| self.dims.get(dim).copied());
                let from = from.ok_or_else(|| self.unsupported(op))?;
                let to = self.new_scalar(mlir::result(op, 0));
                code.push(Inst::Copy { to, from });
                Ok(())
            }
            _ => Err(self.unsupported(op)),
        }
    }

    fn linalg_generic(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let at = self.at(op);
        let maps = mlir::array_attr(op, "indexing_maps").into_iter();
        let maps: Option<Vec<_>> = maps.map(|map| mlir::affine_results(&self.ir, map)).collect();
        let maps = maps.ok_or_else(|| self.unsupported(op))?;
        let (operands, inits) = (mlir::operands(op), mlir::operand_group(op, 1));
        let block = mlir::body(op, 0).ok_or_else(|| self.unsupported(op))?;
        let num_inputs = operands.len() - inits.len();
        if maps.len() != operands.len() {
            return Err(self.unsupported(op));
        }

        let num_loops = mlir::array_attr(op, "iterator_types").len();
        let mut counters = Vec::new();
        for number in 0..num_loops {
            let upper = self.loop_extent(op, number, &operands, &maps, code)?;
            let (lower, step) = (self.constant(0), self.constant(1));
            counters.push(Counter { variable: self.new_reg(), lower, upper, step });
        }
        let variables: Vec<_> = counters.iter().map(|it| it.variable).collect();

        // Destinations are carried; what the loop starts from is copied unless nothing else uses it.
        let (mut init, mut finish) = (Moves::default(), Moves::default());
        let mut places = Vec::new();
        for operand in &operands[..num_inputs] {
            // A scalar is no element of anything.
            places.push(match self.slot(op, *operand)? {
                Slot::Scalar(_) | Slot::Vector(_) => None,
                _ => Some(self.place(op, *operand)?),
            });
        }
        let mut results = mlir::results(op).into_iter();
        for operand in &inits {
            let place = self.place(op, *operand)?;
            if let Place::Tensor(from) = place {
                let carried = self.new_tensor_reg();
                init.tensors.push((carried, from, is_last_use(op, *operand)));
                let result = results.next().ok_or_else(|| self.unsupported(op))?;
                finish.tensors.push((self.new_tensor(result), carried, true));
                places.push(Some(Place::Tensor(carried)));
            } else {
                places.push(Some(place));
            }
        }

        let mut body = Code::new();
        let mut known = Known::new();
        let value_of = |var| match var {
            Var::Dim(number) => variables.get(number as usize).copied(),
            _ => None,
        };
        let mut positions = Vec::new();
        for (number, argument) in mlir::arguments(block).into_iter().enumerate() {
            let indices = self.exprs(&maps[number], &value_of, &mut known, at, &mut body)?;
            match places[number] {
                None => {
                    let slot = self.slot(op, operands[number])?;
                    self.set_slot(argument, slot);
                }
                Some(place) => {
                    let to = self.new_scalar(argument);
                    body.push(super::decode_nest::read(to, place, indices.clone(), false, at));
                }
            }
            positions.push(indices);
        }
        let outer = std::mem::replace(&mut self.dims, variables);
        let yielded = self.block(block, &mut body);
        self.dims = outer;
        let yielded = yielded?;
        for (number, value) in yielded.into_iter().enumerate() {
            let value = self.scalar(op, value)?;
            let indices = positions[num_inputs + number].clone();
            body.push(match places[num_inputs + number] {
                Some(Place::Tensor(tensor)) => {
                    Inst::InsertElement { to: tensor, tensor, take: true, value, indices, at }
                }
                Some(Place::Memory(memory)) => {
                    let store =
                        MemoryInst::Store { values: vec![value], memory, indices, mask: None };
                    Inst::Memory(Box::new(store), at)
                }
                None => return Err(self.unsupported(op)),
            });
        }
        let body = Branch { code: body, results: Moves::default() };
        let inst = CountedLoop { counters, unsigned_width: 0, init, body, finish, at };
        code.push(Inst::Loop(Box::new(inst)));
        Ok(())
    }

    /// The extent of a loop: that of a dimension of an operand that it is the only subscript of.
    fn loop_extent<'c>(
        &mut self,
        op: Op<'c>,
        number: usize,
        operands: &[Val<'c>],
        maps: &[Vec<Expr>],
        code: &mut Code,
    ) -> Result<Reg, Error> {
        let variable = u32::try_from(number).map(|number| self.ir.dim(number));
        let variable = variable.map_err(|_| self.unsupported(op))?;
        let found = operands.iter().zip(maps).find_map(|(operand, map)| {
            Some((*operand, map.iter().position(|expr| *expr == variable)?))
        });
        let (operand, dim) = found.ok_or_else(|| {
            Error::at(op, format!("has no operand with the extent of its loop {number}"))
        })?;
        let at = self.at(op);
        let (to, dim) = (self.new_reg(), self.constant(dim as i64));
        code.push(match self.place(op, operand)? {
            Place::Tensor(tensor) => Inst::Extent { to, tensor, dim, at },
            Place::Memory(memory) => {
                Inst::Memory(Box::new(MemoryInst::Extent { to, memory, dim }), at)
            }
        });
        Ok(to)
    }
}
