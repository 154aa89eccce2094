//! Built-in functions on scalars with errors.
//!
//! A result lies within 8 ulp of the function's value at the operands that the compiled
//! program has. How far these move the value:
//!
//! * a monotone function, by its values at the ends of the operand's interval;
//! * a function with a bounded derivative, by that times the error;
//! * `copysign`, `fmod`, `fmax`, `fma`, .. exactly, as the operations of `arith`;
//! * the rest by the largest difference at sampled points of an interval twice as wide, or
//!   not at all: near poles, and where a sample is not finite, the result is uncertain. This
//!   last rule is an estimate; it is used where errors are small against the function's
//!   features, which the width of the interval is tested for.

use super::scalar::{FloatBinary, FloatType, FloatUnary, SLACK, Scalar};
use crate::builtins::{self, Builtin};
use smallvec::SmallVec;

/// The ulp that a built-in may be off by.
const ULPS: f64 = 8.0;
/// The largest number of operands of a built-in.
pub(crate) const MAX_OPERANDS: usize = 4;

/// A built-in function that a program calls.
#[derive(Clone, Debug)]
pub(crate) enum Function {
    Unary(FloatUnary),
    Binary(FloatBinary),
    Fma,
    NextAfter,
    /// A function of the table, and how errors go through it.
    Table(Builtin, Propagation),
}

#[derive(Copy, Clone, Debug)]
pub(crate) enum Propagation {
    Monotone,
    /// The greatest derivative, and the width of the values.
    Lipschitz(f64, f64),
    /// The function must stay away from a pole: given operands and the sum of errors.
    Sampled(fn(&[Scalar], f64) -> bool),
    /// `x / y`, which need not be rounded correctly.
    Divide,
    /// The remainder of the nearest quotient.
    Remainder,
}

impl Function {
    /// The function of a name in the table of built-ins.
    pub(crate) fn lookup(name: &str) -> Option<Self> {
        let builtin = builtins::lookup(name)?;
        if MAX_OPERANDS < builtin.arity {
            return None;
        }
        Some(match name {
            "fabs" => Self::Unary(FloatUnary::Abs),
            "floor" => Self::Unary(FloatUnary::Floor),
            "ceil" => Self::Unary(FloatUnary::Ceil),
            "trunc" => Self::Unary(FloatUnary::Trunc),
            "round" => Self::Unary(FloatUnary::Round),
            "sqrt" => Self::Unary(FloatUnary::Sqrt),
            "fmax" => Self::Binary(FloatBinary::MaxNum),
            "fmin" => Self::Binary(FloatBinary::MinNum),
            "fmod" => Self::Binary(FloatBinary::Rem),
            "copysign" => Self::Binary(FloatBinary::CopySign),
            "fma" => Self::Fma,
            "nextafter" => Self::NextAfter,
            _ => Self::Table(builtin, propagation(name)),
        })
    }

    /// The number of operands.
    pub(crate) fn arity(&self) -> usize {
        match self {
            Self::Unary(_) => 1,
            Self::Binary(_) | Self::NextAfter => 2,
            Self::Fma => 3,
            Self::Table(builtin, _) => builtin.arity,
        }
    }

    /// Applies the function to as many operands as it has.
    pub(crate) fn apply(&self, ty: FloatType, operands: &[Scalar]) -> Scalar {
        match self {
            Self::Unary(op) => ty.unary(*op, operands[0]),
            Self::Binary(op) => ty.binary(*op, operands[0], operands[1]),
            Self::Fma => ty.fma(operands[0], operands[1], operands[2]),
            Self::NextAfter => next_after(ty, operands[0], operands[1]),
            Self::Table(builtin, propagation) => table(ty, builtin, *propagation, operands),
        }
    }
}

fn propagation(name: &str) -> Propagation {
    use std::f64::consts::PI;
    match name {
        "sin" | "cos" => Propagation::Lipschitz(1.0, 2.0),
        "sinpi" | "cospi" => Propagation::Lipschitz(PI, 2.0),
        // |J0'| = |J1| < 0.6, |J1'| <= 1/2; both stay within [-1, 1].
        "j0" | "j1" => Propagation::Lipschitz(0.6, 2.0),
        "fdim" => Propagation::Lipschitz(1.0, f64::INFINITY),
        "hypot" | "norm3d" | "norm4d" => Propagation::Lipschitz(1.0, f64::INFINITY),
        "fdivide" => Propagation::Divide,
        "remainder" => Propagation::Remainder,
        "logb" => {
            Propagation::Sampled(|operands, error| 2.0 * error < operands[0].as_float().abs())
        }
        "tan" => Propagation::Sampled(|operands, error| {
            error * (1.0 + operands[0].as_float().tan().abs()) < 0.25
        }),
        "rcbrt" => {
            Propagation::Sampled(|operands, error| 2.0 * error < operands[0].as_float().abs())
        }
        "tgamma" | "lgamma" => Propagation::Sampled(|operands, error| {
            let (low, high) =
                (operands[0].as_float() - 2.0 * error, operands[0].as_float() + 2.0 * error);
            error < 0.25 && (0.0 < low || low.floor() == high.floor())
        }),
        "y0" | "y1" => Propagation::Sampled(|operands, error| {
            error < 0.25 && 2.0 * error < operands[0].as_float()
        }),
        "rhypot" | "rnorm3d" | "rnorm4d" => Propagation::Sampled(|operands, error| {
            let largest = operands.iter().map(|it| it.as_float().abs()).fold(0.0, f64::max);
            2.0 * error < largest
        }),
        // Powers of negative numbers depend on whether the exponent is even, odd or no integer.
        "pow" => Propagation::Sampled(|operands, _| {
            operands[1].is_exact() || 2.0 * operands[0].error <= operands[0].as_float()
        }),
        // Convex or of one sign of curvature, so that samples show all there is.
        "cosh" | "cyl_bessel_i0" | "atan2" => Propagation::Sampled(|_, _| true),
        _ => Propagation::Monotone,
    }
}

/// Adds what the function itself may be off by.
fn finish(ty: FloatType, value: f64, propagated: f64) -> Scalar {
    let underflow = ty.underflow(value.abs() - propagated * SLACK);
    let rounding = ULPS * (2.0 * ty.roundoff() * (value.abs() + propagated) + underflow);
    ty.classify(value, propagated + rounding)
}

fn table(
    ty: FloatType,
    builtin: &Builtin,
    propagation: Propagation,
    operands: &[Scalar],
) -> Scalar {
    let operands: SmallVec<[Scalar; MAX_OPERANDS]> =
        operands.iter().map(|it| ty.flushed(*it)).collect();
    let operands = &operands[..];
    let mut values = [0.0; MAX_OPERANDS];
    for (value, operand) in values.iter_mut().zip(operands) {
        *value = operand.as_float();
    }
    let values = &mut values[..operands.len()];
    let value = builtin.call_f64(values);
    let error: f64 = operands.iter().map(|operand| operand.error).sum();
    if error.is_nan() || error == f64::INFINITY {
        return Scalar::float(value, f64::INFINITY);
    }
    if error == 0.0 {
        // The same operands as in the compiled program: a special value is the same too.
        return if value.is_finite() { finish(ty, value, 0.0) } else { Scalar::exact(value) };
    }
    let moved = match propagation {
        Propagation::Divide => {
            let quotient = ty.binary(FloatBinary::Div, operands[0], operands[1]);
            if !quotient.is_certain() || !value.is_finite() {
                return quotient;
            }
            quotient.error
        }
        Propagation::Remainder => return remainder(value, operands),
        Propagation::Lipschitz(slope, width) => (slope * error).min(width),
        Propagation::Monotone => differences(builtin, values, operands, &[-SLACK, SLACK]),
        Propagation::Sampled(away_from_poles) if !away_from_poles(operands, error) => {
            return Scalar::float(value, f64::INFINITY);
        }
        Propagation::Sampled(_) => differences(builtin, values, operands, &[-2.0, -1.0, 1.0, 2.0]),
    };
    if !value.is_finite() {
        // Certain if it is the same all around.
        let same = |other: f64| other == value || other.is_nan() && value.is_nan();
        let around = corners(builtin, values, operands, &[-2.0, 2.0]);
        return Scalar::exact(value).certain_if(around.into_iter().all(same));
    }
    finish(ty, value, moved)
}

/// The largest distance of the values around the operands from the one at `values`;
/// infinite if one of them is not finite.
fn differences(builtin: &Builtin, values: &mut [f64], operands: &[Scalar], steps: &[f64]) -> f64 {
    let centre = builtin.call_f64(values);
    let mut largest = 0f64;
    for around in corners(builtin, values, operands, steps) {
        let distance = (around - centre).abs();
        largest = if distance.is_nan() { f64::INFINITY } else { largest.max(distance) };
    }
    largest
}

/// The values of a function with each operand moved by some of `steps` times its error.
/// Operands without error stay; `values` are those of the operands, and are so again after.
fn corners(builtin: &Builtin, values: &mut [f64], operands: &[Scalar], steps: &[f64]) -> Vec<f64> {
    let num_choices = steps.len() + 1;
    let num_points = num_choices.pow(operands.len() as u32);
    let mut results = Vec::new();
    'points: for point in 0..num_points {
        let mut rest = point;
        for (value, operand) in values.iter_mut().zip(operands) {
            let choice = rest % num_choices;
            rest /= num_choices;
            let centre = operand.as_float();
            *value = centre;
            if choice != 0 {
                if operand.is_exact() {
                    continue 'points;
                }
                *value = centre + steps[choice - 1] * operand.error;
            }
        }
        results.push(builtin.call_f64(values));
    }
    for (value, operand) in values.iter_mut().zip(operands) {
        *value = operand.as_float();
    }
    results
}

fn remainder(value: f64, operands: &[Scalar]) -> Scalar {
    let [lhs, rhs] = [operands[0], operands[1]];
    if !value.is_finite() || rhs.as_float().abs() <= rhs.error * SLACK {
        return Scalar::exact(value).uncertain();
    }
    if rhs.as_float().is_infinite() {
        return lhs;
    }
    let propagated = lhs.error + (lhs.as_float() / rhs.as_float()).round().abs() * rhs.error;
    let divisor = rhs.as_float().abs() + rhs.error;
    // The nearest quotient stays if the remainder stays away from half the divisor.
    let stays = value.abs() + (propagated + rhs.error) * SLACK < divisor / 2.0;
    Scalar::float(value, if stays { propagated } else { divisor })
}

fn next_after(ty: FloatType, from: Scalar, toward: Scalar) -> Scalar {
    let (value, target) = (from.as_float(), toward.as_float());
    if from.is_exact() && toward.is_exact() {
        return Scalar::exact(neighbour(ty, value, target));
    }
    // One step either way; the step is one ulp.
    let ulp = 2.0 * ty.roundoff() * (value.abs() + from.error) + ty.tiny();
    ty.classify(value, from.error + ulp).certain_if(
        from.is_certain() && toward.is_certain() && value.is_finite() && !target.is_nan(),
    )
}

/// The next number of the type after `value` in the direction of `target`.
fn neighbour(ty: FloatType, value: f64, target: f64) -> f64 {
    if value.is_nan() || target.is_nan() {
        return f64::NAN;
    }
    if value == target {
        return target;
    }
    let up = value < target;
    let next = match ty {
        FloatType::F16 => {
            let bits = half::f16::from_f64(value).to_bits();
            half::f16::from_bits(neighbour_bits(bits, value, up)).to_f64()
        }
        FloatType::Bf16 => {
            let bits = half::bf16::from_f64(value).to_bits();
            half::bf16::from_bits(neighbour_bits(bits, value, up)).to_f64()
        }
        FloatType::F32 => {
            let value = value as f32;
            f64::from(if up { value.next_up() } else { value.next_down() })
        }
        FloatType::F64 => {
            if up {
                value.next_up()
            } else {
                value.next_down()
            }
        }
    };
    // Down to zero from the smallest number keeps the sign.
    if next == 0.0 { next.copysign(value) } else { next }
}

/// The bits of the next number above or below `value` in a type of 16 bits.
fn neighbour_bits(bits: u16, value: f64, up: bool) -> u16 {
    if value == 0.0 {
        1 | u16::from(!up) << 15
    } else if up == (0.0 < value) {
        bits + 1
    } else {
        bits - 1
    }
}

/// The built-in that compiled code calls by a symbol, such as `tc_tanh_f32`.
pub(crate) fn of_symbol(symbol: &str) -> Option<Function> {
    let (name, _) = symbol.strip_prefix("tc_")?.rsplit_once('_')?;
    let builtin = builtins::lookup(name)?;
    let is_symbol = symbol == builtin.f32_symbol || symbol == builtin.f64_symbol;
    if is_symbol { Function::lookup(name) } else { None }
}

/// The function that an operation of the `math` dialect computes.
pub(crate) fn of_math(name: &str) -> Option<Function> {
    Some(match name {
        "absf" => Function::Unary(FloatUnary::Abs),
        "roundeven" => Function::Unary(FloatUnary::RoundEven),
        "powf" => Function::lookup("pow")?,
        "acos" | "acosh" | "asin" | "asinh" | "atan" | "atan2" | "atanh" | "cbrt" | "ceil"
        | "copysign" | "cos" | "cosh" | "erf" | "erfc" | "exp" | "exp2" | "expm1" | "floor"
        | "fma" | "log" | "log10" | "log1p" | "log2" | "round" | "rsqrt" | "sin" | "sinh"
        | "sqrt" | "tan" | "tanh" | "trunc" => Function::lookup(name)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use FloatType::{F16, F32, F64};

    fn call(name: &str, ty: FloatType, operands: &[(f64, f64)]) -> Scalar {
        let operands: Vec<_> =
            operands.iter().map(|(value, error)| Scalar::float(*value, *error)).collect();
        Function::lookup(name).unwrap().apply(ty, &operands)
    }

    /// The bound must cover the function at points inside the operands' intervals, and not be
    /// absurdly wide.
    #[test]
    fn bounds_cover_every_function() {
        const ERROR: f64 = 1e-3;
        // Where all functions have values; pairs, triples and quadruples take the first ones.
        let centres = [0.625, 0.375, 0.5, 0.25];
        for builtin in builtins::all() {
            if builtin.name == "nextafter" {
                continue;
            }
            let shift = if builtin.name == "acosh" { 1.0 } else { 0.0 };
            let operands: Vec<_> =
                centres[..builtin.arity].iter().map(|it| (it + shift, ERROR)).collect();
            for ty in [F16, F32, F64] {
                let bound = call(builtin.name, ty, &operands);
                assert!(bound.is_certain(), "{}", builtin.name);
                assert!(bound.error < 1.1, "{} {}", builtin.name, bound.error);
                for step in -4..=4 {
                    let moved: Vec<_> = operands
                        .iter()
                        .enumerate()
                        .map(|(number, (value, error))| {
                            let sign = if number % 2 == 0 { 0.25 } else { -0.25 };
                            value + sign * f64::from(step) * error
                        })
                        .collect();
                    let distance = (builtin.call_f64(&moved) - bound.as_float()).abs();
                    assert!(
                        distance <= bound.error * SLACK,
                        "{} {step}: {distance} {}",
                        builtin.name,
                        bound.error
                    );
                }
            }
            let exact: Vec<_> = operands.iter().map(|(value, _)| (*value, 0.0)).collect();
            let single: Vec<_> = exact.iter().map(|(value, _)| *value as f32).collect();
            let bound = call(builtin.name, F32, &exact);
            let found = f64::from(builtin.call_f32(&single));
            assert!((found - bound.as_float()).abs() <= bound.error, "{}", builtin.name);
        }
    }

    #[test]
    fn poles_and_domains_are_uncertain() {
        for (name, value, error) in [
            ("log", 0.1, 0.2),
            ("asin", 1.0, 0.1),
            ("tan", 1.5, 0.1),
            ("rcbrt", 0.1, 0.2),
            ("tgamma", -1.0, 0.1),
            ("lgamma", 0.01, 0.1),
            ("y0", 0.1, 0.1),
            ("logb", 0.1, 0.2),
        ] {
            assert!(!call(name, F32, &[(value, error)]).is_certain(), "{name}");
        }
        assert!(!call("rhypot", F32, &[(0.1, 0.1), (0.0, 0.0)]).is_certain());
        assert!(!call("sin", F32, &[(0.1, f64::INFINITY)]).is_certain());
        assert!(!call("fdivide", F32, &[(1.0, 0.0), (0.1, 0.1)]).is_certain());
        assert!(!call("remainder", F32, &[(1.0, 0.0), (0.1, 0.1)]).is_certain());
        // So large an error leaves nothing but the width of the values.
        assert!(call("sin", F32, &[(0.1, 10.0)]).error < 2.1);
    }

    #[test]
    fn specials_are_certain() {
        let parts = |found: Scalar| (found.as_float(), found.error);
        assert_eq!(parts(call("log", F32, &[(0.0, 0.0)])), (f64::NEG_INFINITY, 0.0));
        assert_eq!(parts(call("exp", F32, &[(100.0, 0.0)])), (f64::INFINITY, 0.0));
        assert_eq!(parts(call("exp", F64, &[(1000.0, 1.0)])), (f64::INFINITY, 0.0));
        assert!(call("log", F32, &[(-1.0, 0.5)]).as_float().is_nan());
        assert!(call("log", F32, &[(-1.0, 0.25)]).is_certain());
        assert_eq!(
            parts(call("remainder", F32, &[(5.0, 0.25), (f64::INFINITY, 0.0)])),
            (5.0, 0.25)
        );
        assert_eq!(parts(call("remainder", F32, &[(5.0, 0.25), (4.0, 0.0)])), (1.0, 0.25));
        assert_eq!(parts(call("remainder", F32, &[(6.0, 0.25), (4.0, 0.0)])).1, 4.0);
        assert_eq!(parts(call("fdivide", F32, &[(1.0, 0.0), (0.0, 0.0)])), (f64::INFINITY, 0.0));
    }

    #[test]
    fn powers_of_negative_numbers_need_exact_exponents() {
        assert!(call("pow", F32, &[(-2.0, 0.0), (0.5, 0.0)]).is_certain());
        // Rounded to 32 bits, the exponent is even.
        let rounded = call("pow", F32, &[(-2.0, 0.0), (2147483646.999, 128.0)]);
        assert!(!rounded.is_certain(), "{rounded:?}");
        assert!(call("pow", F32, &[(2.0, 0.25), (0.5, 0.25)]).is_certain());
    }

    #[test]
    fn neighbours_are_those_of_the_type() {
        let next =
            |ty, value, target| call("nextafter", ty, &[(value, 0.0), (target, 0.0)]).as_float();
        assert_eq!(next(F32, 1.0, 2.0), 1.0 + f64::from(f32::EPSILON));
        assert_eq!(next(F32, 1.0, 0.0), 1.0 - f64::from(f32::EPSILON) / 2.0);
        assert_eq!(next(F16, 1.0, 2.0), 1.0 + 1.0 / 1024.0);
        assert_eq!(next(F16, -1.0, -2.0), -1.0 - 1.0 / 1024.0);
        assert_eq!(next(F16, 0.0, -1.0), -F16.tiny());
        assert_eq!(next(F16, F16.tiny(), -1.0), 0.0);
        assert_eq!(next(F64, 1.0, 1.0), 1.0);
        assert!(next(F64, 1.0, f64::NAN).is_nan());
        let near = call("nextafter", F32, &[(1.0, 0.5), (2.0, 0.0)]);
        assert!(near.error > 0.5 && near.error < 0.6);
    }

    #[test]
    fn math_names_are_known() {
        assert!(matches!(of_math("absf"), Some(Function::Unary(FloatUnary::Abs))));
        assert!(matches!(of_math("roundeven"), Some(Function::Unary(FloatUnary::RoundEven))));
        assert_eq!(of_math("powf").map(|it| it.arity()), Some(2));
        assert_eq!(of_math("fma").map(|it| it.arity()), Some(3));
        assert!(of_math("fpowi").is_none());
    }
}
