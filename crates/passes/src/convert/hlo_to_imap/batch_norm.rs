//! `batch-norm-training`, `batch-norm-inference` and `batch-norm-grad`, as sums over all dimensions
//! but the one of the features, and element-wise operations.
//!
//! Source: OpenXLA, "Operation Semantics". The variance is the mean of squared distances from the
//! mean, which is the same as the mean of the squares less the square of the mean that XLA takes, but
//! does not cancel. Types that are less exact than `f32` are computed in `f32` and rounded at the end.

use super::{
    Lowering,
    memory::{empty, empty_array},
    value::Array,
};
use crate::convert::{
    elements::{compute_type, decode_all, scalar, sum_type},
    generic_builder::GenericBuilder,
    subscripts::identity,
};
use tc_dialects::{
    element::ElementType,
    hlo::{ArrayShape, Attribute, Opcode, Value as AttributeValue, indexing::InstructionRef},
    imap::{Combiner, CombinerKind},
    mlir::{Builder, Val},
};
use tc_ir::Expr;

/// A float of the type of a normalization, from floats of that type.
type FloatFrom<'a, 'c> = dyn Fn(&Floats<'_, 'c>, &[Val<'c>]) -> Result<Val<'c>, String> + 'a;

/// Arithmetic in one element type.
struct Floats<'a, 'c> {
    b: &'a Builder<'c>,
    element: ElementType,
}

impl<'c> Floats<'_, 'c> {
    fn apply(&self, opcode: Opcode, operands: &[Val<'c>]) -> Result<Val<'c>, String> {
        let operands: Vec<_> = operands.iter().map(|value| vec![*value]).collect();
        Ok(scalar::arithmetic(self.b, opcode, self.element, &operands)?[0])
    }

    fn add(&self, x: Val<'c>, y: Val<'c>) -> Result<Val<'c>, String> {
        self.apply(Opcode::Add, &[x, y])
    }

    fn sub(&self, x: Val<'c>, y: Val<'c>) -> Result<Val<'c>, String> {
        self.apply(Opcode::Subtract, &[x, y])
    }

    fn mul(&self, x: Val<'c>, y: Val<'c>) -> Result<Val<'c>, String> {
        self.apply(Opcode::Multiply, &[x, y])
    }

    fn div(&self, x: Val<'c>, y: Val<'c>) -> Result<Val<'c>, String> {
        self.apply(Opcode::Divide, &[x, y])
    }

    fn constant(&self, value: f64) -> Val<'c> {
        self.b.float(compute_type(self.b, self.element), value)
    }
}

/// What the three instructions have in common.
struct BatchNorm<'a, 'c, 'm> {
    lowering: &'a Lowering<'c, 'm>,
    b: &'a Builder<'c>,
    at: InstructionRef,
    /// The shape of what is normalized.
    shape: &'a ArrayShape,
    /// The dimension of the features.
    feature: usize,
    /// What is added to the variance.
    epsilon: f64,
    /// The type that it is computed in.
    element: ElementType,
}

impl<'c> BatchNorm<'_, 'c, '_> {
    fn features(&self, element: ElementType) -> ArrayShape {
        ArrayShape::new(element, [self.shape.dims[self.feature]])
    }

    /// How many elements a feature has.
    fn count(&self) -> f64 {
        let others = (0..self.shape.rank()).filter(|dim| *dim != self.feature);
        others.map(|dim| self.shape.dims[dim] as f64).product()
    }

    /// The index of an array in terms of that of all dimensions, or of the feature alone.
    fn index(&self, array: &Array<'c>, place: &[Expr]) -> Vec<Expr> {
        if array.shape.rank() == place.len() { place.to_vec() } else { vec![place[self.feature]] }
    }

    fn widened(
        &self,
        inside: &Builder<'c>,
        sources: &[&Array<'c>],
        scalars: &[Vec<Val<'c>>],
    ) -> Vec<Val<'c>> {
        let widen = |(source, scalar): (&&Array<'c>, &Vec<Val<'c>>)| {
            scalar::convert(inside, source.element(), self.element, scalar)[0]
        };
        sources.iter().zip(scalars).map(widen).collect()
    }

    /// The sum over all elements of each feature.
    fn sum(&self, sources: &[&Array<'c>], term: &FloatFrom<'_, 'c>) -> Result<Array<'c>, String> {
        let (b, shape) = (self.b, self.features(self.element));
        if shape.dims[0] == 0 {
            return Ok(empty_array(b, &shape));
        }
        // The second output has an element per feature, which reads those of the operand.
        let accesses = self.lowering.over_output(self.at, 1, &[0])?;
        if accesses.is_empty(self.lowering.ir) {
            let zero = |b: &Builder<'c>, _: &[Val<'c>]| {
                Ok(vec![Floats { b, element: self.element }.constant(0.0)])
            };
            return self.lowering.generate(b, &shape, &zero);
        }
        let ir = self.lowering.ir;
        let mut nest = GenericBuilder::within(ir, accesses.domain.clone(), Vec::new());
        for source in sources {
            nest.read(source.tensor, self.index(source, &accesses.indices[0]));
        }
        let combiner = Combiner { kind: CombinerKind::Add, from_identity: true };
        nest.write(empty(b, &shape), identity(ir, 1), combiner);
        let elements: Vec<_> = sources.iter().map(|source| source.element()).collect();
        let sums = nest.build(b, |inside, stored| {
            let scalars = decode_all(inside, &elements, stored);
            let floats = Floats { b: inside, element: self.element };
            Ok(vec![term(&floats, &self.widened(inside, sources, &scalars))?])
        })?;
        Ok(Array { tensor: sums[0], shape })
    }

    /// An array of this shape, of the features or of all elements.
    fn compute(
        &self,
        shape: &ArrayShape,
        sources: &[&Array<'c>],
        value: &FloatFrom<'_, 'c>,
    ) -> Result<Array<'c>, String> {
        let place = identity(self.lowering.ir, shape.rank());
        let index = |source: &Array<'c>| match shape.rank() == self.shape.rank() {
            true => self.index(source, &place),
            false => place.clone(),
        };
        let at: Vec<_> = sources.iter().map(|source| (*source, index(source))).collect();
        self.lowering.compute(self.b, shape, &at, &|inside, scalars| {
            let floats = Floats { b: inside, element: self.element };
            let value = value(&floats, &self.widened(inside, sources, scalars))?;
            Ok(scalar::convert(inside, self.element, shape.element_type, &[value]))
        })
    }

    /// The sum of each feature divided by the number of its elements.
    fn mean(&self, sources: &[&Array<'c>], term: &FloatFrom<'_, 'c>) -> Result<Array<'c>, String> {
        let sum = self.sum(sources, term)?;
        let count = self.count();
        self.compute(&sum.shape, &[&sum], &|f, x| f.div(x[0], f.constant(count)))
    }

    /// One over the standard deviation, of a variance.
    fn scaling(&self, f: &Floats<'_, 'c>, variance: Val<'c>) -> Result<Val<'c>, String> {
        f.apply(Opcode::Rsqrt, &[f.add(variance, f.constant(self.epsilon))?])
    }

    fn normalized(
        &self,
        [operand, scale, offset, mean, variance]: [&Array<'c>; 5],
    ) -> Result<Array<'c>, String> {
        let sources = [operand, scale, offset, mean, variance];
        self.compute(self.shape, &sources, &|f, x| {
            let distance = f.mul(f.sub(x[0], x[3])?, self.scaling(f, x[4])?)?;
            f.add(f.mul(distance, x[1])?, x[2])
        })
    }

    fn training(
        &self,
        [operand, scale, offset]: [&Array<'c>; 3],
    ) -> Result<Vec<Array<'c>>, String> {
        let mean = self.mean(&[operand], &|_, x| Ok(x[0]))?;
        let variance = self.mean(&[operand, &mean], &|f, x| {
            let distance = f.sub(x[0], x[1])?;
            f.mul(distance, distance)
        })?;
        let output = self.normalized([operand, scale, offset, &mean, &variance])?;
        let stored = self.features(self.shape.element_type);
        let rounded = |array: Array<'c>| match array.shape == stored {
            true => Ok(array),
            false => self.compute(&stored, &[&array], &|_, x| Ok(x[0])),
        };
        Ok(vec![output, rounded(mean)?, rounded(variance)?])
    }

    fn gradients(
        &self,
        [operand, scale, mean, variance, gradient]: [&Array<'c>; 5],
    ) -> Result<Vec<Array<'c>>, String> {
        let of_offset = self.sum(&[gradient], &|_, x| Ok(x[0]))?;
        let products =
            self.sum(&[gradient, operand, mean], &|f, x| f.mul(x[0], f.sub(x[1], x[2])?))?;
        let count = self.count();
        let sources = [operand, scale, mean, variance, gradient, &of_offset, &products];
        let of_operand = self.compute(self.shape, &sources, &|f, x| {
            let count = f.constant(count);
            let variance = f.add(x[3], f.constant(self.epsilon))?;
            let along = f.div(f.mul(f.sub(x[0], x[2])?, x[6])?, variance)?;
            let rest = f.sub(f.sub(f.mul(count, x[4])?, x[5])?, along)?;
            let factor = f.div(f.mul(x[1], self.scaling(f, x[3])?)?, count)?;
            f.mul(factor, rest)
        })?;
        let stored = self.features(self.shape.element_type);
        let of_scale = self.compute(&stored, &[&products, variance], &|f, x| {
            f.mul(x[0], self.scaling(f, x[1])?)
        })?;
        let of_offset = self.compute(&stored, &[&of_offset], &|_, x| Ok(x[0]))?;
        Ok(vec![of_operand, of_scale, of_offset])
    }
}

impl<'c> Lowering<'c, '_> {
    /// The three instructions that normalize batches.
    pub(super) fn batch_norm(
        &self,
        b: &Builder<'c>,
        at: InstructionRef,
        operands: &[&Array<'c>],
    ) -> Result<Vec<Array<'c>>, String> {
        let instruction = &self.module[at.computation][at.instruction];
        let epsilon = match instruction.attribute(Attribute::Epsilon) {
            Some(AttributeValue::Number(epsilon)) => *epsilon,
            _ => return Err(format!("'{}' without '{}'", instruction.opcode, Attribute::Epsilon)),
        };
        let shape = &operands[0].shape;
        let norm = BatchNorm {
            lowering: self,
            b,
            at,
            shape,
            feature: instruction.integer(Attribute::FeatureIndex).unwrap_or(0) as usize,
            epsilon,
            element: sum_type(shape.element_type),
        };
        match (instruction.opcode, operands) {
            (Opcode::BatchNormTraining, [operand, scale, offset]) => {
                norm.training([operand, scale, offset])
            }
            (Opcode::BatchNormInference, [operand, scale, offset, mean, variance]) => {
                Ok(vec![norm.normalized([operand, scale, offset, mean, variance])?])
            }
            (Opcode::BatchNormGrad, [operand, scale, mean, variance, gradient]) => {
                norm.gradients([operand, scale, mean, variance, gradient])
            }
            (opcode, _) => Err(format!("'{opcode}' of {} operands", operands.len())),
        }
    }
}
