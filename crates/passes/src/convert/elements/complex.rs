//! Arithmetic of complex numbers on their parts.
//!
//! Each part of a result has a small error of its own, except the parts of products and quotients, and
//! results that depend on the parts of an operand so strongly that its last digits decide them.
//! Infinities and signed zeros are as in annex G of the C standard.
//!
//! Sources: R. Smith, "Algorithm 116: Complex division" (1962), and W. Kahan, "Branch cuts for
//! complex elementary functions" (1987), for what does not overflow where the result does not;
//! T. Dekker, "A floating-point technique for extending the available precision" (1971), for the
//! rounding errors of sums and products.

use super::{Scalar, builtin, compute_type, resize_float};
use crate::convert::index_emitter::IndexMath;
use melior::ir::{Type, ValueLike};
use tc_dialects::{
    element::ElementType,
    hlo::Opcode,
    mlir::{Builder, Val},
};

/// Real and imaginary part.
type Complex<'c> = (Val<'c>, Val<'c>);

/// The value of an element-wise opcode on complex numbers of a type.
///
/// # Errors
/// The opcode is not supported on them.
pub fn apply<'c>(
    b: &Builder<'c>,
    opcode: Opcode,
    element: ElementType,
    operands: &[&[Val<'c>]],
) -> Result<Scalar<'c>, String> {
    let ty = compute_type(b, element);
    let wide = Type::float64(b.context);
    if ty != wide && is_sensitive(opcode) {
        let convert = |x: &[Val<'c>], ty: Type<'c>| -> Scalar<'c> {
            x.iter().map(|part| resize_float(b, *part, ty)).collect()
        };
        let operands: Vec<_> = operands.iter().map(|x| convert(x, wide)).collect();
        let operands: Vec<_> = operands.iter().map(Vec::as_slice).collect();
        return Ok(convert(&apply(b, opcode, ElementType::C128, &operands)?, ty));
    }
    let at = Parts { b, ty };
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
        Opcode::Rsqrt => at.rsqrt(z),
        Opcode::Sine => at.hyperbolic(z.1, at.call("sin", z.0), at.call("cos", z.0)),
        Opcode::Cosine => {
            let (re, im) = at.hyperbolic(z.1, at.call("cos", z.0), at.call("sin", z.0));
            (re, at.neg(im))
        }
        Opcode::Cosh => at.hyperbolic(z.0, at.call("cos", z.1), at.call("sin", z.1)),
        Opcode::Sinh => {
            let (im, re) = at.hyperbolic(z.0, at.call("sin", z.1), at.call("cos", z.1));
            (re, im)
        }
        Opcode::Tanh => at.tanh(z),
        Opcode::Tan => {
            // tan(z) == -i * tanh(i * z)
            let (re, im) = at.tanh((at.neg(z.1), z.0));
            (im, at.neg(re))
        }
        Opcode::Logistic => at.logistic(z),
        Opcode::Sign => {
            let (z, _) = at.scaled(z);
            let size = at.abs(z);
            let is_zero = b.compare_float("oeq", size, at.constant(0.0));
            let part = |x: Val<'c>| b.select(is_zero, x, at.div(x, size));
            (part(z.0), part(z.1))
        }
        opcode => return Err(format!("'{opcode}' of '{element}' is not supported")),
    };
    Ok(vec![re, im])
}

/// Whether the rounding errors of intermediate values may exceed the result. Single precision is
/// then computed in double precision.
fn is_sensitive(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::ExponentialMinusOne
            | Opcode::Log
            | Opcode::LogPlusOne
            | Opcode::Logistic
            | Opcode::Power
    )
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

    fn magnitude(&self, x: Val<'c>) -> Val<'c> {
        self.unary("math.absf", x)
    }

    /// A sum and its rounding error.
    fn two_sum(&self, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
        let sum = self.add(x, y);
        let added = self.sub(sum, x);
        let lost = self.sub(x, self.sub(sum, added));
        (sum, self.add(lost, self.sub(y, added)))
    }

    /// A product and its rounding error.
    fn two_product(&self, x: Val<'c>, y: Val<'c>) -> (Val<'c>, Val<'c>) {
        let product = self.mul(x, y);
        (product, self.b.value("math.fma", &[x, y, self.neg(product)], self.ty))
    }

    /// `x * (y.0 + y.1) + z * z`, for an `y` that is a sum and its rounding error.
    fn product_plus_square(&self, x: Val<'c>, y: (Val<'c>, Val<'c>), z: Val<'c>) -> Val<'c> {
        let (product, error) = self.two_product(x, y.0);
        let error = self.add(error, self.mul(x, y.1));
        let (square, lost) = self.two_product(z, z);
        let (sum, rest) = self.two_sum(product, square);
        self.add(sum, self.add(rest, self.add(error, lost)))
    }

    /// A number multiplied by a power of four, so that its size neither overflows nor loses digits, and
    /// the root of the power.
    fn scaled(&self, z: Complex<'c>) -> (Complex<'c>, Val<'c>) {
        // The exponents of the largest size and of the smallest one that need no scaling, and of the
        // factor of small ones.
        let is_single = self.ty == Type::float32(self.b.context);
        let (largest, smallest, step) = if is_single { (125, -100, 60) } else { (1021, -960, 120) };
        let power = |exponent: i32| self.constant(f64::from(exponent).exp2());
        let size = self.binary("arith.maximumf", self.magnitude(z.0), self.magnitude(z.1));
        let is_large = self.b.compare_float("ogt", size, power(largest));
        let is_small = self.b.compare_float("olt", size, power(smallest));
        let select = |large: i32, small: i32| {
            let small = self.b.select(is_small, power(small), power(0));
            self.b.select(is_large, power(large), small)
        };
        let factor = select(-4, step);
        ((self.mul(z.0, factor), self.mul(z.1, factor)), select(-2, step / 2))
    }

    fn is_nan(&self, x: Val<'c>) -> Val<'c> {
        self.b.compare_float("uno", x, x)
    }

    fn is_infinite(&self, x: Val<'c>) -> Val<'c> {
        let infinity = self.constant(f64::INFINITY);
        self.b.compare_float("oeq", self.magnitude(x), infinity)
    }

    fn all_finite(&self, z: Complex<'c>) -> Val<'c> {
        let infinity = self.constant(f64::INFINITY);
        let is_finite = |x: Val<'c>| self.b.compare_float("olt", self.magnitude(x), infinity);
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
        let magnitude = |x: Val<'c>| self.magnitude(x);
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
        let (cos, sin) = (self.call("cos", z.1), self.call("sin", z.1));
        let part = |angle: Val<'c>| self.mul(self.mul(first, angle), second);
        let is_real = self.b.compare_float("oeq", z.1, self.constant(0.0));
        let result = self.select(is_real, (size, z.1), (part(cos), part(sin)));
        // Zero and infinity without a direction.
        let has_none = self.b.and(self.is_infinite(z.0), self.is_nan(cos));
        self.select(has_none, (size, self.mul(size, self.constant(0.0))), result)
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

    fn log(&self, z: Complex<'c>) -> Complex<'c> {
        (self.log_of_size(z), self.angle(z))
    }

    /// `log |z|`. Near the unit circle it is `log1p((x - 1) * (x + 1) + y^2) / 2`, with `x` the larger
    /// part.
    fn log_of_size(&self, z: Complex<'c>) -> Val<'c> {
        let (x, y) = (self.magnitude(z.0), self.magnitude(z.1));
        let large = self.binary("arith.maximumf", x, y);
        let small = self.binary("arith.minimumf", x, y);
        let one = self.constant(1.0);
        let above = self.two_sum(large, one);
        let distance = self.product_plus_square(self.sub(large, one), above, small);
        self.log_near_one(distance, self.abs(z), || {
            let (z, root) = self.scaled(z);
            let shift = self.call("log", root);
            self.sub(self.call("log", self.abs(z)), self.add(shift, shift))
        })
    }

    /// `log(1 + distance) / 2` if `size`, which is the root of that sum, is near 1.
    fn log_near_one(
        &self,
        distance: Val<'c>,
        size: Val<'c>,
        otherwise: impl FnOnce() -> Val<'c>,
    ) -> Val<'c> {
        let near = self.mul(self.constant(0.5), self.call("log1p", distance));
        let above = self.b.compare_float("ogt", size, self.constant(0.5));
        let below = self.b.compare_float("olt", size, self.constant(2.0));
        self.b.select(self.b.and(above, below), near, otherwise())
    }

    /// Where `|1 + z|` is near 1, its logarithm is `log1p(x * (x + 2) + y^2) / 2`.
    fn log1p(&self, z: Complex<'c>) -> Complex<'c> {
        let shifted = (self.add(z.0, self.constant(1.0)), z.1);
        let sum = self.two_sum(z.0, self.constant(2.0));
        let distance = self.product_plus_square(z.0, sum, z.1);
        let size = self.log_near_one(distance, self.abs(shifted), || self.log_of_size(shifted));
        (size, self.angle(shifted))
    }

    fn sqrt(&self, z: Complex<'c>) -> Complex<'c> {
        let (z, root) = self.scaled(z);
        let (re, im) = self.sqrt_of_scaled(z);
        let factor = self.div(self.constant(1.0), root);
        (self.mul(re, factor), self.mul(im, factor))
    }

    /// `conj(sqrt(z)) / |z|`
    fn rsqrt(&self, z: Complex<'c>) -> Complex<'c> {
        let (z, factor) = self.scaled(z);
        let (re, im) = self.sqrt_of_scaled(z);
        let size = self.abs(z);
        let part = |x: Val<'c>| self.mul(self.div(x, size), factor);
        let result = (part(re), part(self.neg(im)));
        let (zero, infinity) = (self.constant(0.0), self.constant(f64::INFINITY));
        let is_zero = self.b.compare_float("oeq", size, zero);
        let result = self.select(is_zero, (infinity, result.1), result);
        let vanished = (zero, self.binary("math.copysign", zero, self.neg(z.1)));
        self.select(self.is_infinite(size), vanished, result)
    }

    /// The root of a number whose size neither overflows nor is subnormal.
    fn sqrt_of_scaled(&self, z: Complex<'c>) -> Complex<'c> {
        let (zero, half) = (self.constant(0.0), self.constant(0.5));
        let sum = self.add(self.magnitude(z.0), self.abs(z));
        let root = self.sqrt_of(self.mul(sum, half));
        let other = self.mul(self.div(self.magnitude(z.1), root), half);
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

    /// `cosh(x) * u` and `sinh(x) * v` for the sine and the cosine of an angle, in either order.
    fn hyperbolic(&self, x: Val<'c>, u: Val<'c>, v: Val<'c>) -> Complex<'c> {
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        // Both are `exp(|x|) / 2` up to signs if `x` is large; in two halves, as the products need
        // not overflow.
        let is_large = self.b.compare_float("ogt", self.magnitude(x), self.constant(20.0));
        let half = self.call("exp", self.mul(self.magnitude(x), self.constant(0.5)));
        let large = self.mul(half, self.constant(0.5));
        let last = self.b.select(is_large, half, one);
        let cosh = self.b.select(is_large, large, self.call("cosh", x));
        let large = self.binary("math.copysign", large, x);
        let sinh = self.b.select(is_large, large, self.call("sinh", x));
        // A zero remains one if the other factor is infinite or unknown.
        let product = |x: Val<'c>, y: Val<'c>| {
            let result = self.mul(self.mul(x, y), last);
            let with_sign = |zero: Val<'c>, other: Val<'c>| {
                self.mul(zero, self.binary("math.copysign", one, other))
            };
            let is_zero = |x: Val<'c>| self.b.compare_float("oeq", x, zero);
            let result = self.b.select(is_zero(x), with_sign(x, y), result);
            self.b.select(is_zero(y), with_sign(y, x), result)
        };
        (product(cosh, u), product(sinh, v))
    }

    /// `1 / (1 + exp(-z))`, or `exp(z) / (1 + exp(z))` if the real part is negative.
    fn logistic(&self, z: Complex<'c>) -> Complex<'c> {
        let is_negative = self.b.compare_float("olt", z.0, self.constant(0.0));
        let angle = self.b.select(is_negative, z.1, self.neg(z.1));
        let power = self.exp((self.neg(self.magnitude(z.0)), angle));
        let above = self.select(is_negative, power, self.one());
        self.divide(above, (self.add(power.0, self.constant(1.0)), power.1))
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
        let is_far = self.b.compare_float("ogt", self.magnitude(z.0), limit);
        let sign = self.binary("math.copysign", one, z.0);
        // sin(2y) * 2 * exp(-2|x|), as a product of what does not overflow.
        let decay = self.call("exp", self.neg(self.magnitude(z.0)));
        let turn = self.mul(self.call("sin", z.1), self.call("cos", z.1));
        let small = self.mul(self.mul(self.constant(4.0), turn), self.mul(decay, decay));
        // At infinity the imaginary part is zero, whatever the angle.
        let vanishes = self.b.and(self.is_infinite(z.0), self.is_nan(turn));
        let small = self.b.select(vanishes, self.constant(0.0), small);
        self.select(is_far, (sign, small), result)
    }

    /// `exp(exponent * log(base))`. The angle of `base` is taken from the nearest axis: multiples of a
    /// right angle have no rounding error, so powers of numbers on or near an axis stay there.
    fn power(&self, base: Complex<'c>, exponent: Complex<'c>) -> Complex<'c> {
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        let is_zero = |x: Val<'c>| self.b.compare_float("oeq", x, zero);
        let size = self.log_of_size(base);
        // The angle is `axis` right angles and `rest`.
        let is_steep = self.b.compare_float("olt", self.magnitude(base.0), self.magnitude(base.1));
        let (large, small) = self.select(is_steep, (base.1, base.0), base);
        let rest = self.call("atan", self.div(small, large));
        let rest = self.b.select(is_steep, self.neg(rest), rest);
        let with_sign = |axis: f64| self.binary("math.copysign", self.constant(axis), base.1);
        let is_left = self.b.compare_float("olt", base.0, zero);
        let axis = self.b.select(is_left, with_sign(2.0), zero);
        let axis = self.b.select(is_steep, with_sign(1.0), axis);
        let right_angle = self.constant(std::f64::consts::FRAC_PI_2);
        let angle = self.add(self.mul(axis, right_angle), rest);
        // The parts of the product of the exponent and the logarithm; a real exponent has no second
        // terms, even if the logarithm is infinite.
        let (a, b) = exponent;
        let is_real = is_zero(b);
        let term = |x: Val<'c>| self.b.select(is_real, zero, self.mul(b, x));
        let re = self.sub(self.mul(a, size), term(angle));
        let turns = self.mul(a, axis);
        let whole = self.unary("math.roundeven", turns);
        let fraction = self.mul(self.sub(turns, whole), right_angle);
        let im = self.add(fraction, self.add(self.mul(a, rest), term(size)));
        let power = self.exp((re, im));
        // Turned by the whole right angles.
        let quarter = self.unary("math.floor", self.mul(whole, self.constant(0.25)));
        let whole = self.sub(whole, self.mul(quarter, self.constant(4.0)));
        let equals = |number: f64| self.b.compare_float("oeq", whole, self.constant(number));
        let is_odd = self.b.value("arith.ori", &[equals(1.0), equals(3.0)], self.b.int_type(1));
        let result = self.select(is_odd, (self.neg(power.1), power.0), power);
        let is_opposite = self.b.compare_float("oge", whole, self.constant(2.0));
        let result = self.select(is_opposite, (self.neg(result.0), self.neg(result.1)), result);
        let both_zero = |z: Complex<'c>| self.b.and(is_zero(z.0), is_zero(z.1));
        let is_positive = self.b.compare_float("ogt", a, zero);
        let vanishes = self.b.and(both_zero(base), is_positive);
        let result = self.select(vanishes, (zero, zero), result);
        self.select(both_zero(exponent), (one, zero), result)
    }
}

/// The product of two complex numbers.
pub fn multiply<'c>(b: &Builder<'c>, x: &[Val<'c>], y: &[Val<'c>]) -> Scalar<'c> {
    let at = Parts { b, ty: x[0].r#type() };
    let (re, im) = at.multiply((x[0], x[1]), (y[0], y[1]));
    vec![re, im]
}
