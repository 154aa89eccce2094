//! Builds one operation from two operations with the same points.

use super::{Copied, Frame, copy_body};
use crate::fusion::{candidate::Candidate, legality::Merge};
use melior::ir::operation::OperationLike;
use tc_dialects::{
    imap::{self, Generic, Indexed, Inside, View},
    mlir::{self, Builder, Val},
};
use tc_ir::expr::Expr;

/// Where an operand of the second operation comes from.
enum Source {
    Input(usize),
    /// A result of the first operation.
    Result(usize),
}

impl<'c, 'i> Merge<'c, 'i> {
    /// Builds the operation and puts it in the place of both.
    pub(in crate::fusion) fn apply(self) -> Generic<'c> {
        let place = match &self.hoisted {
            None => self.second.generic.op(),
            Some(hoisted) => {
                let place = self.first.generic.op();
                hoisted.iter().for_each(|op| mlir::move_before(*op, place));
                place
            }
        };
        let merged = self.build(&Builder::before(place));
        let results = mlir::results(merged.op());
        let (of_first, of_second) = results.split_at(self.kept.len());
        mlir::replace(self.second.generic.op(), of_second);
        let first = self.first.generic.op();
        for (number, result) in self.kept.iter().zip(of_first) {
            mlir::replace_uses(mlir::result(first, *number), *result);
        }
        mlir::erase(first);
        merged
    }

    fn build(&self, builder: &Builder<'c>) -> Generic<'c> {
        let ir = self.ir;
        let (first, second) = (&self.first, &self.second);
        let [first_op, second_op] = [first.generic.op(), second.generic.op()];
        let builder = builder.located(imap::fused_location(
            builder.context,
            second_op.location(),
            first_op.location(),
        ));
        let mut frame = Frame::of(ir, first);
        let own_inputs = first.view.inputs.iter().map(|it| frame.add_input(it.clone())).collect();
        let own = Copied { inputs: own_inputs, ..Copied::unchanged(ir, &first.view) };
        let base = first.view.runtimes.len();
        let (dims, runtimes) = frame.add_runtimes(&second.view, base, &self.dims);
        let other = Copied { inputs: Vec::new(), dims, runtimes, ranges: Vec::new() };
        let first_results = mlir::results(first_op);
        let mut sources = Vec::new();
        for access in &second.view.inputs {
            let result = first_results.iter().position(|result| *result == access.value);
            sources.push(match result {
                Some(result) => Source::Result(result),
                None => {
                    let mut access = access.clone();
                    access.substitute(ir, &|var| other.replacement(var));
                    Source::Input(frame.add_input(access))
                }
            });
        }
        let mut outputs: Vec<_> =
            self.kept.iter().map(|number| first.view.outputs[*number].clone()).collect();
        for access in &second.view.outputs {
            let mut access = access.clone();
            access.substitute(ir, &|var| other.replacement(var));
            outputs.push(access);
        }
        let is_fold = first.is_reduction();
        let num_folded = first.view.accumulators.len();
        let mut accumulators = first.view.accumulators.clone();
        accumulators.extend(&second.view.accumulators);
        let has_epilogue = is_fold
            && (first.generic.epilogue().is_some()
                || second.generic.epilogue().is_some()
                || !second.is_reduction()
                || self.kept.len() != first.view.outputs.len());
        let folds =
            Candidate { generic: first.generic, view: View { accumulators, ..first.view.clone() } };
        let mut conditions = Inside::conditions_in(ir, &first.generic.blocks());
        let mut moved = Inside::conditions_in(ir, &second.generic.blocks());
        imap::substitute_constraints(ir, &mut moved, &|var| other.replacement(var));
        conditions.extend(moved);
        let (view, kept) = frame.view(&outputs, &folds, has_epilogue, &conditions);
        let merged = view.build(ir, &builder, has_epilogue);

        let inside = Builder::at_end(builder.context, merged.body(), builder.location);
        let arguments = mlir::arguments(merged.body());
        let copy = |inside: &Builder<'c>, block, arguments: &[Val<'c>], copied| {
            copy_body(&frame, inside, block, arguments, copied)
        };
        let of_inputs = |arguments: &[Val<'c>], copied: &Copied| -> Vec<Val<'c>> {
            copied.inputs.iter().map(|input| arguments[*input]).collect()
        };
        // The arguments of the body of the second operation: inputs, and values of the first operation.
        let read = |arguments: &[Val<'c>], values: &[Val<'c>]| -> Vec<Val<'c>> {
            let sources = sources.iter().map(|source| match source {
                Source::Input(number) => arguments[*number],
                Source::Result(number) => values[*number],
            });
            sources.collect()
        };
        let values = copy(&inside, first.generic.body(), &of_inputs(&arguments, &own), &own);
        let kept_of = |values: &[Val<'c>]| -> Vec<Val<'c>> {
            self.kept.iter().map(|number| values[*number]).collect()
        };
        if !is_fold {
            let body = second.generic.body();
            let second_values = copy(&inside, body, &read(&arguments, &values), &other);
            imap::build_yield(&inside, &[kept_of(&values), second_values].concat());
        } else if second.is_reduction() {
            // Nothing that is folded reads a result of the first operation.
            let body = second.generic.body();
            let unread = vec![values[0]; first.view.outputs.len()];
            let second_values = copy(&inside, body, &read(&arguments, &unread), &other);
            imap::build_yield(&inside, &[values, second_values].concat());
        } else {
            imap::build_yield(&inside, &values);
        }
        if let Some(epilogue) = merged.epilogue() {
            let inside = Builder::at_end(builder.context, epilogue, builder.location);
            let arguments = mlir::arguments(epilogue);
            let (folded, inputs) = arguments.split_at(view.accumulators.len());
            let (of_first, of_second) = folded.split_at(num_folded);
            let finish =
                |block: Option<_>, folded: &[Val<'c>], read: Vec<Val<'c>>, copied| match block {
                    Some(block) => copy(&inside, block, &[folded.to_vec(), read].concat(), copied),
                    None => folded.to_vec(),
                };
            let values = finish(first.generic.epilogue(), of_first, of_inputs(inputs, &own), &own);
            let read = read(inputs, &values);
            let second_values = match second.is_reduction() {
                true => finish(second.generic.epilogue(), of_second, read, &other),
                false => copy(&inside, second.generic.body(), &read, &other),
            };
            imap::build_yield(&inside, &[kept_of(&values), second_values].concat());
        }
        imap::substitute_in_conditions(ir, &merged.blocks(), &imap::renumbering(ir, &kept));
        merged
    }
}

impl Copied {
    /// The variables of an operation whose frame begins with its own.
    fn unchanged(ir: &tc_ir::Context, view: &View) -> Self {
        let dims: Vec<Expr> = (0..view.domain.dims.len() as u32).map(|dim| ir.dim(dim)).collect();
        let runtimes = (0..view.runtimes.len() as u32).map(|number| ir.runtime(number)).collect();
        Self { inputs: Vec::new(), dims, runtimes, ranges: Vec::new() }
    }
}
