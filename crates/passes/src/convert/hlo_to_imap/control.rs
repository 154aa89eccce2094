//! `while` and `conditional`.

use super::{Lowering, value::Value};
use melior::ir::ValueLike;
use tc_dialects::{
    element::ElementType,
    hlo::{Attribute, ComputationId, Instruction},
    mlir::{self, Builder, Val},
    report::Report,
    text::Severity,
};

impl<'c> Lowering<'c, '_> {
    /// `while`: the arrays of the state are what `scf.while` carries.
    pub(super) fn while_loop(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        state: &Value<'c>,
    ) -> Result<Value<'c>, Report<'c>> {
        let called = |attribute| {
            self.applied(instruction, attribute)
                .map_err(|message| Report::at(b.location, Severity::Error, message))
        };
        let (condition, body) = (called(Attribute::Condition)?, called(Attribute::Body)?);
        let mut inits = Vec::new();
        state.flatten(&mut inits);
        let types: Vec<_> = inits.iter().map(|value| value.r#type()).collect();
        let (before, before_block) = mlir::region_with_block(&types, b.location);
        let inside = Builder::at_end(b.context, before_block, b.location);
        let arguments = mlir::arguments(before_block);
        let current = state.rebuild(&mut arguments.iter().copied());
        let goes_on = self.computation(&inside, condition, &[current])?;
        let goes_on = extract(&inside, &goes_on);
        let operands = [&[goes_on], arguments.as_slice()].concat();
        inside.op("scf.condition", &operands, &[]);

        let (after, after_block) = mlir::region_with_block(&types, b.location);
        let inside = Builder::at_end(b.context, after_block, b.location);
        let current = state.rebuild(&mut mlir::arguments(after_block).into_iter());
        let next = self.computation(&inside, body, &[current])?;
        let mut yielded = Vec::new();
        next.flatten(&mut yielded);
        inside.op("scf.yield", &yielded, &[]);
        let op = b.op_with("scf.while", &inits, &types, &[], vec![before, after]);
        Ok(state.rebuild(&mut mlir::results(op).into_iter()))
    }

    /// `conditional`: by a truth value, or by an index that selects the last branch where there
    /// is none of that number.
    pub(super) fn conditional(
        &self,
        b: &Builder<'c>,
        instruction: &Instruction,
        operands: &[Value<'c>],
    ) -> Result<Value<'c>, Report<'c>> {
        let selector = extract(b, &operands[0]);
        let is_truth = matches!(
            &operands[0],
            Value::Array(array) if array.element() == ElementType::Pred
        );
        let selected = if is_truth {
            // The first branch is the one for true.
            b.select(selector, b.index(0), b.index(1))
        } else {
            b.value("arith.index_cast", &[selector], b.index_type())
        };
        let branches: Vec<_> = instruction.branches().into_iter().zip(&operands[1..]).collect();
        self.one_of(b, selected, &branches, 0)
    }

    /// The value of the branch with the number `selected`; the first of these has number `first`.
    /// Halves are told apart by `scf.if`: bufferization in LLVM 22 does not know that what a case
    /// of `scf.index_switch` yields may be a buffer that is written later.
    fn one_of(
        &self,
        b: &Builder<'c>,
        selected: Val<'c>,
        branches: &[(ComputationId, &Value<'c>)],
        first: usize,
    ) -> Result<Value<'c>, Report<'c>> {
        match branches {
            [] => {
                let message = "a conditional without branches";
                return Err(Report::at(b.location, Severity::Error, message));
            }
            [(branch, operand)] => {
                return self.computation(b, *branch, std::slice::from_ref(operand));
            }
            _ => {}
        }
        let (low, high) = branches.split_at(branches.len() / 2);
        let middle = first + low.len();
        // As an unsigned number one below 0 is large, and selects the last branch.
        let is_low = b.compare_int("ult", selected, b.index(middle as i64));
        let (mut values, mut regions, mut types) = (Vec::new(), Vec::new(), Vec::new());
        for (half, first) in [(low, first), (high, middle)] {
            let (region, block) = mlir::region_with_block(&[], b.location);
            let inside = Builder::at_end(b.context, block, b.location);
            let value = self.one_of(&inside, selected, half, first)?;
            let mut yielded = Vec::new();
            value.flatten(&mut yielded);
            inside.op("scf.yield", &yielded, &[]);
            types = yielded.iter().map(|value| value.r#type()).collect();
            values.push(value);
            regions.push(region);
        }
        let op = b.op_with("scf.if", &[is_low], &types, &[], regions);
        Ok(values[0].rebuild(&mut mlir::results(op).into_iter()))
    }
}

/// The only element of an array without dimensions.
fn extract<'c>(b: &Builder<'c>, value: &Value<'c>) -> Val<'c> {
    match value {
        Value::Array(array) => {
            let ty = mlir::element_type(array.tensor.r#type());
            b.value("tensor.extract", &[array.tensor], ty)
        }
        _ => b.integer(b.int_type(1), 0),
    }
}
