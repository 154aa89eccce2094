//! Builds the fold of a maximum and of a sum of exponentials.

use super::super::{legality::Rescaling, narrow::copy_body};
use melior::ir::{ValueLike, operation::OperationLike};
use tc_dialects::{
    imap::{
        self, Access, Accumulator, AnyIndexed, CombinerKind, Generic, Indexed, Start, build_yield,
    },
    mlir::{self, Builder, Val, ValueMap},
};
use tc_ir::Context;

impl<'c> Rescaling<'c> {
    /// Builds the fold in the place of the maximum, and puts it in the place of both.
    pub(in crate::fusion) fn apply(self, ir: &Context) -> Generic<'c> {
        let [maximum, sum] = [self.maximum.generic, self.sum].map(AnyIndexed::op);
        self.hoisted.iter().for_each(|op| mlir::move_before(*op, maximum));
        let builder = Builder::before(maximum);
        let location = imap::fused_location(builder.context, sum.location(), maximum.location());
        let fold = self.build(ir, &builder.located(location));
        mlir::replace(sum, &[mlir::result(fold.op(), 1)]);
        mlir::replace(maximum, &[mlir::result(fold.op(), 0)]);
        fold
    }

    fn build(&self, ir: &Context, builder: &Builder<'c>) -> Generic<'c> {
        let maximum = self.maximum.generic;
        let mut view = self.maximum.view.clone();
        let ty = view.accumulators[0].ty;
        let accumulator = |identity| Accumulator {
            ty,
            kind: CombinerKind::Custom,
            identity: Some(mlir::float(builder.context, ty, identity)),
            start: Start::Identity,
        };
        view.accumulators = [f64::NEG_INFINITY, 0.0].map(accumulator).to_vec();
        let empty = builder.value("tensor.empty", &[], self.output.value.r#type());
        view.outputs.push(Access::new(empty, self.output.subscripts.clone()));
        // The epilogue of the fold reads the inputs of the sum's epilogue.
        let num_inputs = view.inputs.len();
        view.inputs.extend(self.epilogue_inputs().map(|(access, _)| access.clone()));
        let fold = view.build(ir, builder, true);
        let at_end = |block| Builder::at_end(builder.context, block, builder.location);

        let inside = at_end(fold.body());
        let arguments = mlir::arguments(fold.body()).into_iter();
        let mut values = mlir::arguments(maximum.body()).into_iter().zip(arguments).collect();
        let mut element = copy_body(&inside, maximum.body(), &mut values);
        element.push(inside.float(ty, 1.0));
        build_yield(&inside, &element);

        let combiner = fold.combiner().expect("the accumulators have no combiners with names");
        self.build_combiner(&at_end(combiner), &mlir::arguments(combiner));

        let epilogue = fold.epilogue().expect("it is built with one");
        let arguments = mlir::arguments(epilogue);
        let (inputs, of_sum) = arguments[2..].split_at(num_inputs);
        self.build_epilogue(&at_end(epilogue), [arguments[0], arguments[1]], inputs, of_sum);
        fold
    }

    /// The inputs that the epilogue of the sum uses, and its arguments for them, except the maximum.
    fn epilogue_inputs(&self) -> impl Iterator<Item = (&Access<'c>, Val<'c>)> {
        let arguments = self.sum.epilogue().map(mlir::arguments).unwrap_or_default();
        let inputs = self.inputs.iter().zip(arguments.into_iter().skip(1));
        let maximum = mlir::result(self.maximum.generic.op(), 0);
        inputs.filter(move |(access, it)| access.value != maximum && !mlir::uses(*it).is_empty())
    }

    /// The sum so far is one of `exp(x - most)`. The maximum is stored as `shift`, which may be another number if it is not
    /// finite: `jax.nn.logsumexp` writes 0 then.
    fn build_epilogue(
        &self,
        inside: &Builder<'c>,
        [most, sum]: [Val<'c>; 2],
        inputs: &[Val<'c>],
        of_sum: &[Val<'c>],
    ) {
        let mut shift = most;
        if let Some(block) = self.maximum.generic.epilogue() {
            let folded = [&[most], inputs].concat();
            let mut values = mlir::arguments(block).into_iter().zip(folded).collect();
            shift = copy_body(inside, block, &mut values)[0];
        }
        let scale = self.exp_of(inside, inside.value("arith.subf", &[most, shift], most.r#type()));
        let mut sum = inside.value("arith.mulf", &[sum, scale], most.r#type());
        if let Some(block) = self.sum.epilogue() {
            let arguments = mlir::arguments(block);
            let read = self.epilogue_inputs().map(|(_, argument)| argument);
            let mut values: ValueMap = read.zip(of_sum.iter().copied()).collect();
            values.insert(arguments[0], sum);
            let maximum = mlir::result(self.maximum.generic.op(), 0);
            for (access, argument) in self.inputs.iter().zip(&arguments[1..]) {
                if access.value == maximum {
                    values.insert(*argument, shift);
                }
            }
            sum = copy_body(inside, block, &mut values)[0];
        }
        build_yield(inside, &[shift, sum]);
    }

    /// Two pairs of a maximum and a sum become one. The exponential of equal maxima, also of infinite ones, is 1.
    fn build_combiner(&self, inside: &Builder<'c>, arguments: &[Val<'c>]) {
        let &[m0, s0, m1, s1] = arguments else { unreachable!("there are two accumulators") };
        let ty = m0.r#type();
        let one = inside.float(ty, 1.0);
        let most = CombinerKind::MaximumF.build(inside, m0, m1);
        let is_first = inside.compare_float("oge", m0, m1);
        let is_equal = inside.compare_float("oeq", m0, m1);
        let least = inside.select(is_first, m1, m0);
        let scale = self.exp_of(inside, inside.value("arith.subf", &[least, most], ty));
        let scale = inside.select(is_equal, one, scale);
        let (kept, scaled) = (inside.select(is_first, s0, s1), inside.select(is_first, s1, s0));
        let scaled = inside.value("arith.mulf", &[scaled, scale], ty);
        build_yield(inside, &[most, inside.value("arith.addf", &[kept, scaled], ty)]);
    }

    /// The exponential as the sum computes it.
    fn exp_of(&self, inside: &Builder<'c>, x: Val<'c>) -> Val<'c> {
        let mut values: ValueMap = [(mlir::operand(self.exp, 0), x)].into_iter().collect();
        inside.copy(self.exp, &mut values);
        values.get(mlir::result(self.exp, 0)).expect("its operation was copied")
    }
}
