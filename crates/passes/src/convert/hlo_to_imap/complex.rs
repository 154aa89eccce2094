//! Arithmetic of complex numbers on their parts.
//!
//! Sources: R. Smith, "Algorithm 116: Complex division" (1962), and W. Kahan, "Branch cuts for
//! complex elementary functions" (1987), for what does not overflow where the result does not.

use super::{
    nest::IndexMath,
    scalar::builtin,
    value::{Scalar, compute_type},
};
use melior::ir::{Type, ValueLike};
use tc_dialects::{
    hlo::{ElementType, Opcode},
    mlir::{Builder, Val},
};

/// Real and imaginary part.
type Complex<'c> = (Val<'c>, Val<'c>);

/// The value of an element-wise opcode on complex numbers of a type.
///
/// # Errors
/// The opcode is not supported on them.
pub(super) fn apply<'c>(
    b: &Builder<'c>,
    opcode: Opcode,
    element: ElementType,
    operands: &[&[Val<'c>]],
) -> Result<Scalar<'c>, String> {
    let at = Parts { b, ty: compute_type(b, element) };
    let operand = |number: usize| (operands[number][0], operands[number][1]);
    let z = operand(0);
    let (re, im) = match opcode {
        Opcode::Abs => return Ok(vec![at.abs(z)]),
        Opcode::IsFinite => return Ok(vec![at.all_finite(z)]),
        Opcode::Negate => (at.neg(z.0), at.neg(z.1)),
        Opcode::Add => (at.add(z.0, operand(1).0), at.add(z.1, operand(1).1)),
        Opcode::Subtract => (at.sub(z.0, operand(1).0), at.sub(z.1, operand(1).1)),
        Opcode::Multiply => at.multiply(z, operand(1)),
        Opcode::Divide => at.divide(z, operand(1)),
        Opcode::Power => at.power(z, operand(1)),
        Opcode::Exponential => at.exp(z),
        Opcode::ExponentialMinusOne => at.expm1(z),
        Opcode::Log => at.log(z),
        Opcode::LogPlusOne => at.log1p(z),
        Opcode::Sqrt => at.sqrt(z),
        Opcode::Rsqrt => at.divide(at.one(), at.sqrt(z)),
        Opcode::Sine => (
            at.mul(at.call("sin", z.0), at.call("cosh", z.1)),
            at.mul(at.call("cos", z.0), at.call("sinh", z.1)),
        ),
        Opcode::Cosine => (
            at.mul(at.call("cos", z.0), at.call("cosh", z.1)),
            at.neg(at.mul(at.call("sin", z.0), at.call("sinh", z.1))),
        ),
        Opcode::Tanh => at.tanh(z),
        Opcode::Tan => {
            // tan(z) == -i * tanh(i * z)
            let (re, im) = at.tanh((at.neg(z.1), z.0));
            (im, at.neg(re))
        }
        Opcode::Logistic => {
            let power = at.exp((at.neg(z.0), at.neg(z.1)));
            at.divide(at.one(), (at.add(at.constant(1.0), power.0), power.1))
        }
        Opcode::Sign => {
            let size = at.abs(z);
            let is_zero = b.compare_float("oeq", size, at.constant(0.0));
            let part = |x: Val<'c>| b.select(is_zero, at.constant(0.0), at.div(x, size));
            (part(z.0), part(z.1))
        }
        opcode => return Err(format!("'{opcode}' of '{element}' is not supported")),
    };
    Ok(vec![re, im])
}

/// Builds operations on the parts.
struct Parts<'b, 'c> {
    b: &'b Builder<'c>,
    ty: Type<'c>,
}

impl<'c> Parts<'_, 'c> {
    fn constant(&self, value: f64) -> Val<'c> {
        self.b.float(self.ty, value)
    }

    fn one(&self) -> Complex<'c> {
        (self.constant(1.0), self.constant(0.0))
    }

    fn unary(&self, name: &str, x: Val<'c>) -> Val<'c> {
        self.b.value(name, &[x], self.ty)
    }

    fn binary(&self, name: &str, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.b.value(name, &[x, y], self.ty)
    }

    fn call(&self, name: &str, x: Val<'c>) -> Val<'c> {
        builtin(self.b, name, &[x])
    }

    fn neg(&self, x: Val<'c>) -> Val<'c> {
        self.unary("arith.negf", x)
    }

    fn add(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.binary("arith.addf", x, y)
    }

    fn sub(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.binary("arith.subf", x, y)
    }

    fn mul(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.binary("arith.mulf", x, y)
    }

    fn div(&self, x: Val<'c>, y: Val<'c>) -> Val<'c> {
        self.binary("arith.divf", x, y)
    }

    fn sqrt_of(&self, x: Val<'c>) -> Val<'c> {
        self.unary("math.sqrt", x)
    }

    fn select(&self, condition: Val<'c>, yes: Complex<'c>, no: Complex<'c>) -> Complex<'c> {
        (self.b.select(condition, yes.0, no.0), self.b.select(condition, yes.1, no.1))
    }

    fn is_nan(&self, x: Val<'c>) -> Val<'c> {
        self.b.compare_float("uno", x, x)
    }

    fn is_infinite(&self, x: Val<'c>) -> Val<'c> {
        let infinity = self.constant(f64::INFINITY);
        self.b.compare_float("oeq", self.unary("math.absf", x), infinity)
    }

    fn all_finite(&self, z: Complex<'c>) -> Val<'c> {
        let infinity = self.constant(f64::INFINITY);
        let is_finite =
            |x: Val<'c>| self.b.compare_float("olt", self.unary("math.absf", x), infinity);
        self.b.and(is_finite(z.0), is_finite(z.1))
    }

    fn abs(&self, z: Complex<'c>) -> Val<'c> {
        builtin(self.b, "hypot", &[z.0, z.1])
    }

    fn angle(&self, z: Complex<'c>) -> Val<'c> {
        builtin(self.b, "atan2", &[z.1, z.0])
    }

    fn multiply(&self, x: Complex<'c>, y: Complex<'c>) -> Complex<'c> {
        (
            self.sub(self.mul(x.0, y.0), self.mul(x.1, y.1)),
            self.add(self.mul(x.0, y.1), self.mul(x.1, y.0)),
        )
    }

    /// The larger part of the divisor is divided out first, so that nothing overflows early.
    fn divide(&self, x: Complex<'c>, y: Complex<'c>) -> Complex<'c> {
        let magnitude = |x: Val<'c>| self.unary("math.absf", x);
        let swap = self.b.compare_float("olt", magnitude(y.0), magnitude(y.1));
        let (large, small) = self.select(swap, (y.1, y.0), y);
        let ratio = self.div(small, large);
        let size = self.add(large, self.mul(small, ratio));
        // With a large real part: (a + b*r, b - a*r) / size, otherwise (a*r + b, b*r - a) / size.
        let (first, second) = self.select(swap, (x.1, x.0), x);
        let re = self.div(self.add(first, self.mul(second, ratio)), size);
        let im = self.div(self.sub(second, self.mul(first, ratio)), size);
        let result = (re, self.b.select(swap, self.neg(im), im));
        let zero = self.constant(0.0);
        let is_zero = self.b.compare_float("oeq", magnitude(large), zero);
        let result = self.select(
            is_zero,
            (self.div(x.0, magnitude(large)), self.div(x.1, magnitude(large))),
            result,
        );
        // Infinity by a number is infinity, a number by infinity is zero, in the direction that
        // infinite parts alone give (C, annex G).
        let infinity = self.constant(f64::INFINITY);
        let any_infinite = |v: Complex<'c>| {
            let parts = [self.is_infinite(v.0), self.is_infinite(v.1)];
            self.b.value("arith.ori", &parts, self.b.int_type(1))
        };
        let direction = |v: Complex<'c>| {
            let unit = |v: Val<'c>| {
                let size = self.b.select(self.is_infinite(v), self.constant(1.0), zero);
                self.binary("math.copysign", size, v)
            };
            (unit(v.0), unit(v.1))
        };
        let quotient = |x: Complex<'c>, y: Complex<'c>, size: Val<'c>| {
            let product = self.multiply(x, (y.0, self.neg(y.1)));
            (self.mul(size, product.0), self.mul(size, product.1))
        };
        let undefined = self.b.and(self.is_nan(result.0), self.is_nan(result.1));
        let above = self.b.and(undefined, self.b.and(any_infinite(x), self.all_finite(y)));
        let below = self.b.and(undefined, self.b.and(self.all_finite(x), any_infinite(y)));
        let result = self.select(above, quotient(direction(x), y, infinity), result);
        self.select(below, quotient(x, direction(y), zero), result)
    }

    fn exp(&self, z: Complex<'c>) -> Complex<'c> {
        let size = self.call("exp", z.0);
        // In two halves where the whole may overflow although the parts do not.
        let is_large = self.b.compare_float("ogt", z.0, self.constant(80.0));
        let half = self.call("exp", self.mul(z.0, self.constant(0.5)));
        let (first, second) = self.select(is_large, (half, half), (size, self.constant(1.0)));
        let part = |name: &str| self.mul(self.mul(first, self.call(name, z.1)), second);
        let is_real = self.b.compare_float("oeq", z.1, self.constant(0.0));
        self.select(is_real, (size, z.1), (part("cos"), part("sin")))
    }

    /// `exp(x) * cos(y) - 1 == expm1(x) * cos(y) - 2 * sin(y/2)^2`
    fn expm1(&self, z: Complex<'c>) -> Complex<'c> {
        let half = self.call("sin", self.mul(z.1, self.constant(0.5)));
        let below = self.mul(self.constant(2.0), self.mul(half, half));
        let re = self.sub(self.mul(self.call("expm1", z.0), self.call("cos", z.1)), below);
        // What is subtracted does not count where the real part is large.
        let power = self.exp(z);
        let is_large = self.b.compare_float("ogt", z.0, self.constant(80.0));
        (self.b.select(is_large, power.0, re), power.1)
    }

    /// Near the unit circle, `log |z| == log1p((x - 1) * (x + 1) + y^2) / 2`, with `x` the larger
    /// part.
    fn log(&self, z: Complex<'c>) -> Complex<'c> {
        let size = self.abs(z);
        let (x, y) = (self.unary("math.absf", z.0), self.unary("math.absf", z.1));
        let large = self.binary("arith.maximumf", x, y);
        let small = self.binary("arith.minimumf", x, y);
        let one = self.constant(1.0);
        let product = self.mul(self.sub(large, one), self.add(large, one));
        let distance = self.add(product, self.mul(small, small));
        let near = self.mul(self.constant(0.5), self.call("log1p", distance));
        let above = self.b.compare_float("ogt", size, self.constant(0.5));
        let below = self.b.compare_float("olt", size, self.constant(2.0));
        let is_near = self.b.and(above, below);
        (self.b.select(is_near, near, self.call("log", size)), self.angle(z))
    }

    /// `log |1 + z| == log1p(x * (2 + x) + y^2) / 2` unless that overflows.
    fn log1p(&self, z: Complex<'c>) -> Complex<'c> {
        let shifted = (self.add(z.0, self.constant(1.0)), z.1);
        let product = self.mul(z.0, self.add(z.0, self.constant(2.0)));
        let distance = self.add(product, self.mul(z.1, z.1));
        let near = self.mul(self.constant(0.5), self.call("log1p", distance));
        let size = self.abs(shifted);
        let is_near = self.b.compare_float("olt", size, self.constant(2.0));
        (self.b.select(is_near, near, self.call("log", size)), self.angle(shifted))
    }

    fn sqrt(&self, z: Complex<'c>) -> Complex<'c> {
        let (zero, half) = (self.constant(0.0), self.constant(0.5));
        let x = self.unary("math.absf", z.0);
        // Half of both summands, so that their sum does not overflow.
        let sum = self.add(self.mul(x, half), self.mul(self.abs(z), half));
        let root = self.sqrt_of(sum);
        let other = self.div(self.mul(self.unary("math.absf", z.1), half), root);
        let is_zero = self.b.compare_float("oeq", root, zero);
        let other = self.b.select(is_zero, zero, other);
        let is_right = self.b.compare_float("oge", z.0, zero);
        let (re, im) = self.select(is_right, (root, other), (other, root));
        let infinite = self.constant(f64::INFINITY);
        let is_infinite = self.is_infinite(z.1);
        let re = self.b.select(is_infinite, infinite, re);
        let im = self.b.select(is_infinite, infinite, im);
        (re, self.binary("math.copysign", im, z.1))
    }

    /// With `t = tan y`, `s = sinh x` and `u = 1 + t^2`: `(u*s*sqrt(1 + s^2), t) / (1 + u*s^2)`.
    fn tanh(&self, z: Complex<'c>) -> Complex<'c> {
        let one = self.constant(1.0);
        let t = self.call("tan", z.1);
        let s = self.call("sinh", z.0);
        let u = self.add(one, self.mul(t, t));
        let square = self.mul(s, s);
        let size = self.add(one, self.mul(u, square));
        let root = self.sqrt_of(self.add(one, square));
        let result = (self.div(self.mul(self.mul(u, root), s), size), self.div(t, size));
        let limit = self.constant(20.0);
        let is_far = self.b.compare_float("ogt", self.unary("math.absf", z.0), limit);
        let sign = self.binary("math.copysign", one, z.0);
        // sin(2y) * 2 * exp(-2|x|), as a product of what does not overflow.
        let decay = self.call("exp", self.neg(self.unary("math.absf", z.0)));
        let turn = self.mul(self.call("sin", z.1), self.call("cos", z.1));
        let small = self.mul(self.mul(self.constant(4.0), turn), self.mul(decay, decay));
        // At infinity the imaginary part is zero, whatever the angle.
        let vanishes = self.b.and(self.is_infinite(z.0), self.is_nan(turn));
        let small = self.b.select(vanishes, self.constant(0.0), small);
        self.select(is_far, (sign, small), result)
    }

    fn power(&self, base: Complex<'c>, exponent: Complex<'c>) -> Complex<'c> {
        let result = self.exp(self.multiply(exponent, self.log(base)));
        let zero = self.constant(0.0);
        let is_zero = self.b.compare_float("oeq", self.abs(base), zero);
        let is_positive = self.b.compare_float("ogt", exponent.0, zero);
        let vanishes = self.b.and(is_zero, is_positive);
        let to_zero = self.b.compare_float("oeq", self.abs(exponent), zero);
        let result = self.select(vanishes, (zero, zero), result);
        self.select(to_zero, self.one(), result)
    }
}

/// The product of two complex numbers.
pub(super) fn multiply<'c>(b: &Builder<'c>, x: &[Val<'c>], y: &[Val<'c>]) -> Scalar<'c> {
    let at = Parts { b, ty: x[0].r#type() };
    let (re, im) = at.multiply((x[0], x[1]), (y[0], y[1]));
    vec![re, im]
}
