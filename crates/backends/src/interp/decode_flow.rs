//! Decodes control flow: loops, branches, and calls of functions.

use super::{
    decode::{Decoder, Slot, scalar_type},
    error::Error,
    function,
    program::{Branch, Code, CountedLoop, Counter, If, Inst, Moves, Reg, Switch, While},
    scalar::Scalar,
};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::mlir::{self, Blk, Op, Val};

/// A function that is called.
#[derive(Clone, Debug)]
pub(super) enum Called {
    /// Its body is being decoded: another call is a recursion.
    Open,
    Decoded {
        number: usize,
        arguments: Vec<Slot>,
        results: Vec<Slot>,
    },
}

/// The threads of a region of `omp`.
const NUM_THREADS: i64 = 2;

impl Decoder {
    /// An operation of `scf` or `func`.
    pub(super) fn flow(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "if" => self.scf_if(op, code),
            "for" => self.scf_for(op, code),
            "parallel" => self.scf_parallel(op, code),
            "forall" => self.scf_forall(op, code),
            "while" => self.scf_while(op, code),
            "index_switch" => self.index_switch(op, code),
            "execute_region" => self.region(op, code),
            "call" => self.func_call(op, code),
            _ => Err(self.unsupported(op)),
        }
    }

    /// An operation that runs its region once.
    pub(super) fn region(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let slots = self.define_all(op, &mlir::results(op))?;
        let branch = self.branch(self.only_block(op, 0)?, &slots, op)?;
        code.extend(branch.code);
        code.push(Inst::Move(branch.results));
        Ok(())
    }

    fn only_block<'c>(&self, op: Op<'c>, region: usize) -> Result<Blk<'c>, Error> {
        match mlir::blocks(op, region)[..] {
            [block] => Ok(block),
            _ => Err(Error::at(op, "has a region of several blocks; expected one")),
        }
    }

    fn define_all<'c>(&mut self, op: Op<'c>, values: &[Val<'c>]) -> Result<Vec<Slot>, Error> {
        values.iter().map(|value| self.define(op, *value)).collect()
    }

    /// Decodes a region whose terminator passes its operands to `to`.
    fn branch<'c>(&mut self, block: Blk<'c>, to: &[Slot], op: Op<'c>) -> Result<Branch, Error> {
        let mut code = Code::new();
        let values = self.block(block, &mut code)?;
        let user = if values.is_empty() { op } else { mlir::terminator(block) };
        Ok(Branch { code, results: self.moves(user, to, &values)? })
    }

    fn scf_if(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let condition = self.scalar(op, mlir::operand(op, 0))?;
        let at = self.at(op);
        let results = mlir::results(op);
        let slots = self.define_all(op, &results)?;
        let mut branches = Vec::new();
        for region in 0..2 {
            branches.push(match mlir::body(op, region) {
                Some(_) => self.branch(self.only_block(op, region)?, &slots, op)?,
                None => Branch::default(),
            });
        }
        let (mut scalars, mut tensors) = (Vec::new(), Vec::new());
        for (slot, value) in slots.iter().zip(&results) {
            let ty = mlir::element_type(value.r#type());
            let is_float = scalar_type(ty).is_some_and(|it| it.is_float());
            match slot {
                Slot::Scalar(reg) => scalars.push((*reg, is_float)),
                Slot::Vector(lanes) => scalars.extend(lanes.iter().map(|reg| (*reg, is_float))),
                Slot::Tensor(reg) => tensors.push((*reg, is_float)),
                Slot::Memory(_) => {}
            }
        }
        let otherwise = branches.pop().unwrap_or_default();
        let then = branches.pop().unwrap_or_default();
        code.push(Inst::If(Box::new(If { condition, then, otherwise, scalars, tensors, at })));
        Ok(())
    }

    /// `arith.select` of two buffers.
    pub(super) fn select_buffer(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let condition = self.scalar(op, mlir::operand(op, 0))?;
        let at = self.at(op);
        let slots = self.define_all(op, &mlir::results(op))?;
        let branch = |operand| {
            let results = self.moves(op, &slots, &[mlir::operand(op, operand)])?;
            Ok(Branch { results, ..Branch::default() })
        };
        let (then, otherwise) = (branch(1)?, branch(2)?);
        let (scalars, tensors) = (Vec::new(), Vec::new());
        code.push(Inst::If(Box::new(If { condition, then, otherwise, scalars, tensors, at })));
        Ok(())
    }

    fn index_switch(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let selector = self.scalar(op, mlir::operand(op, 0))?;
        let at = self.at(op);
        let slots = self.define_all(op, &mlir::results(op))?;
        let default = self.branch(self.only_block(op, 0)?, &slots, op)?;
        let mut cases = Vec::new();
        for (number, value) in mlir::integers_attr(op, "cases").into_iter().enumerate() {
            let block = self.only_block(op, 1 + number)?;
            cases.push((value, self.branch(block, &slots, op)?));
        }
        code.push(Inst::Switch(Box::new(Switch { selector, cases, default, at })));
        Ok(())
    }

    fn scf_for(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let bounds = self.scalars(op, &operands[..3])?;
        let at = self.at(op);
        let block = self.only_block(op, 0)?;
        let arguments = mlir::arguments(block);
        let counter = Counter {
            variable: self.new_scalar(arguments[0]),
            lower: bounds[0],
            upper: bounds[1],
            step: bounds[2],
        };
        let carried = self.define_all(op, &arguments[1..])?;
        let init = self.moves(op, &carried, &operands[3..])?;
        let body = self.branch(block, &carried, op)?;
        let unsigned_width = match op.has_attribute("unsignedCmp") {
            true => self.width(op, operands[0])?,
            false => 0,
        };
        let finish = self.results(op, &carried)?;
        let counters = vec![counter];
        let inst = CountedLoop { counters, unsigned_width, init, body, finish, at };
        code.push(Inst::Loop(Box::new(inst)));
        Ok(())
    }

    /// The copies from what a loop carries to its results.
    fn results(&mut self, op: Op, carried: &[Slot]) -> Result<Moves, Error> {
        let mut moves = Moves::default();
        for (value, from) in mlir::results(op).into_iter().zip(carried) {
            match (self.define(op, value)?, from) {
                (Slot::Scalar(to), Slot::Scalar(from)) => moves.scalars.push((to, *from)),
                (Slot::Vector(to), Slot::Vector(from)) => {
                    moves.scalars.extend(to.into_iter().zip(from.iter().copied()));
                }
                (Slot::Tensor(to), Slot::Tensor(from)) => moves.tensors.push((to, *from, true)),
                (Slot::Memory(to), Slot::Memory(from)) => moves.memories.push((to, *from)),
                _ => return Err(self.unsupported(op)),
            }
        }
        Ok(moves)
    }

    fn scf_parallel(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let group = |number| mlir::operand_group(op, number);
        let bounds: Vec<_> =
            (0..3).map(|it| self.scalars(op, &group(it))).collect::<Result<_, _>>()?;
        let at = self.at(op);
        let block = self.only_block(op, 0)?;
        let counters = self.counters(&mlir::arguments(block), &bounds);
        let mut body = Branch::default();
        let inits = group(3);
        let values = self.block(block, &mut body.code)?;
        let reduce = mlir::terminator(block);
        let mut carried = Vec::new();
        for (number, value) in values.into_iter().enumerate() {
            let combiner = self.only_block(reduce, number)?;
            let [old, new] = mlir::arguments(combiner)[..] else {
                return Err(self.unsupported(reduce));
            };
            let slot = self.define(reduce, old)?;
            let operand = self.slot(reduce, value)?;
            self.set_slot(new, operand);
            let returned = self.block(combiner, &mut body.code)?;
            let user = mlir::terminator(combiner);
            let moves = self.moves(user, std::slice::from_ref(&slot), &returned)?;
            body.code.push(Inst::Move(moves));
            carried.push(slot);
        }
        let init = self.moves(op, &carried, &inits)?;
        let finish = self.results(op, &carried)?;
        let inst = CountedLoop { counters, unsigned_width: 0, init, body, finish, at };
        code.push(Inst::Loop(Box::new(inst)));
        Ok(())
    }

    /// The counters of a loop from lower bounds, upper bounds and steps.
    fn counters(&mut self, variables: &[Val], bounds: &[Vec<Reg>]) -> Vec<Counter> {
        let bounds = bounds[0].iter().zip(&bounds[1]).zip(&bounds[2]);
        let counters = variables.iter().zip(bounds).map(|(variable, ((lower, upper), step))| {
            let variable = self.new_scalar(*variable);
            Counter { variable, lower: *lower, upper: *upper, step: *step }
        });
        counters.collect()
    }

    fn scf_forall(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let bounds = [
            self.mixed(op, "staticLowerBound", &mlir::operand_group(op, 0))?,
            self.mixed(op, "staticUpperBound", &mlir::operand_group(op, 1))?,
            self.mixed(op, "staticStep", &mlir::operand_group(op, 2))?,
        ];
        let at = self.at(op);
        let block = self.only_block(op, 0)?;
        let arguments = mlir::arguments(block);
        let (variables, shared) = arguments.split_at(bounds[0].len());
        let counters = self.counters(variables, &bounds);
        // An iteration reads the tensor from before the loop; what is inserted goes to another one.
        let before = self.define_all(op, shared)?;
        let inits = mlir::operand_group(op, 3);
        let mut init = self.moves(op, &before, &inits)?;
        let mut carried = Vec::new();
        // Copied before the others, which may take the tensor along.
        let mut tensors = Vec::new();
        for (_, from, _) in &init.tensors {
            carried.push(self.new_tensor_reg());
            tensors.push((carried[carried.len() - 1], *from, false));
        }
        tensors.append(&mut init.tensors);
        init.tensors = tensors;
        let mut body = Code::new();
        self.block(block, &mut body)?;
        let terminator = mlir::terminator(block);
        for insert in mlir::body(terminator, 0).map(mlir::ops).unwrap_or_default() {
            let destination = mlir::operand(insert, 1);
            let number = shared.iter().position(|it| *it == destination);
            let reg = number.and_then(|number| carried.get(number));
            let reg = *reg.ok_or_else(|| self.unsupported(insert))?;
            self.parallel_insert(insert, reg, &mut body)?;
        }
        let carried: Vec<_> = carried.into_iter().map(Slot::Tensor).collect();
        let finish = self.results(op, &carried)?;
        let body = Branch { code: body, results: Moves::default() };
        let inst = CountedLoop { counters, unsigned_width: 0, init, body, finish, at };
        code.push(Inst::Loop(Box::new(inst)));
        Ok(())
    }

    fn scf_while(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let at = self.at(op);
        let (before_block, after_block) = (self.only_block(op, 0)?, self.only_block(op, 1)?);
        let carried = self.define_all(op, &mlir::arguments(before_block))?;
        let init = self.moves(op, &carried, &mlir::operands(op))?;
        let mut before = Code::new();
        let passed = self.block(before_block, &mut before)?;
        let Some((condition, passed)) = passed.split_first() else {
            return Err(self.unsupported(op));
        };
        let terminator = mlir::terminator(before_block);
        let condition = self.scalar(terminator, *condition)?;
        let arguments = self.define_all(op, &mlir::arguments(after_block))?;
        let forward = self.moves(terminator, &arguments, passed)?;
        let results = self.define_all(op, &mlir::results(op))?;
        let finish = self.moves(terminator, &results, passed)?;
        let after = self.branch(after_block, &carried, op)?;
        let inst = While { init, before, condition, forward, after, finish, at };
        code.push(Inst::While(Box::new(inst)));
        Ok(())
    }

    /// A region of `omp` that several threads run: two threads run it, one after the other.
    pub(super) fn threads(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        if name != "parallel" || op.operand_count() != 0 {
            return Err(self.unsupported(op));
        }
        let (block, around) = (self.only_block(op, 0)?, self.thread);
        for number in 0..NUM_THREADS {
            self.thread = (number, NUM_THREADS);
            self.block(block, code)?;
        }
        self.thread = around;
        Ok(())
    }

    fn func_call(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let callee = mlir::callee(op).unwrap_or_default();
        if !self.called.contains_key(callee) {
            let function = mlir::find_symbol(op, callee).filter(|it| mlir::is(*it, "func.func"));
            let Some(function) = function else {
                return Err(Error::at(op, format!("calls '{callee}', which is not a function")));
            };
            if mlir::body(function, 0).is_none() {
                let known = match callee {
                    "omp_get_thread_num" => Some(self.thread.0),
                    "omp_get_num_threads" => Some(self.thread.1),
                    _ => None,
                };
                if let Some(number) = known {
                    let reg = self.new_scalar(mlir::result(op, 0));
                    self.constants.push((reg, Scalar::int(number)));
                    return Ok(());
                }
                let function = function::of_symbol(callee).ok_or_else(|| {
                    Error::at(op, format!("calls '{callee}', whose body is not in the module"))
                })?;
                return self.call(op, &function, code);
            }
            self.called.insert(callee.to_string(), Called::Open);
            let block = self.only_block(function, 0)?;
            let arguments = self.define_all(function, &mlir::arguments(block))?;
            let mut body = Code::new();
            let values = self.block(block, &mut body)?;
            let results =
                values.into_iter().map(|it| self.slot(function, it)).collect::<Result<_, _>>()?;
            self.functions.push(body);
            let number = self.functions.len() - 1;
            let decoded = Called::Decoded { number, arguments, results };
            self.called.insert(callee.to_string(), decoded);
        }
        let Some(Called::Decoded { number, arguments, results }) = self.called.get(callee).cloned()
        else {
            return Err(Error::at(op, format!("calls '{callee}', which is recursive")));
        };
        let arguments = self.moves(op, &arguments, &mlir::operands(op))?;
        let mut results = self.results(op, &results)?;
        // What a function returns may be one of its arguments.
        results.tensors.iter_mut().for_each(|(.., is_taken)| *is_taken = false);
        code.push(Inst::CallFunction { function: number, arguments, results });
        Ok(())
    }
}
