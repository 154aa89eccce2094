//! The built-in functions: one table of name, number of arguments, and meaning.
//!
//! Meanings are those of the CUDA math functions of the same name. Arguments and result share one
//! type, the matched type of the arguments and at least `float`.

/// A built-in function.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Name, as written in a program.
    pub name: &'static str,
    /// Number of arguments.
    pub arity: usize,
    /// What it computes, over arguments `x`, `y`, `z`, `w` in order.
    pub doc: &'static str,
}

const fn builtin(name: &'static str, arity: usize, doc: &'static str) -> Builtin {
    Builtin { name, arity, doc }
}

/// Every built-in, sorted by name.
pub static BUILTINS: [Builtin; 64] = [
    builtin("acos", 1, "arc cosine of x, in radians"),
    builtin("acosh", 1, "inverse hyperbolic cosine of x"),
    builtin("asin", 1, "arc sine of x, in radians"),
    builtin("asinh", 1, "inverse hyperbolic sine of x"),
    builtin("atan", 1, "arc tangent of x, in radians"),
    builtin("atan2", 2, "angle of the point (y, x), in radians"),
    builtin("atanh", 1, "inverse hyperbolic tangent of x"),
    builtin("cbrt", 1, "cube root of x"),
    builtin("ceil", 1, "smallest integral value not below x"),
    builtin("copysign", 2, "magnitude of x with the sign of y"),
    builtin("cos", 1, "cosine of x radians"),
    builtin("cosh", 1, "hyperbolic cosine of x"),
    builtin("cospi", 1, "cosine of pi * x"),
    builtin("cyl_bessel_i0", 1, "modified Bessel function of the first kind, order 0"),
    builtin("cyl_bessel_i1", 1, "modified Bessel function of the first kind, order 1"),
    builtin("erf", 1, "error function of x"),
    builtin("erfc", 1, "1 - erf(x)"),
    builtin("erfcinv", 1, "inverse of erfc"),
    builtin("erfcx", 1, "exp(x * x) * erfc(x)"),
    builtin("erfinv", 1, "inverse of erf"),
    builtin("exp", 1, "e to the power x"),
    builtin("exp10", 1, "10 to the power x"),
    builtin("exp2", 1, "2 to the power x"),
    builtin("expm1", 1, "exp(x) - 1"),
    builtin("fabs", 1, "absolute value of x"),
    builtin("fdim", 2, "x - y where x is greater, else 0"),
    builtin("fdivide", 2, "x / y"),
    builtin("floor", 1, "largest integral value not above x"),
    builtin("fma", 3, "x * y + z, rounded once"),
    builtin("fmax", 2, "the greater of x and y; a nan gives the other"),
    builtin("fmin", 2, "the lesser of x and y; a nan gives the other"),
    builtin("fmod", 2, "remainder of x / y, with the sign of x"),
    builtin("hypot", 2, "sqrt(x * x + y * y)"),
    builtin("j0", 1, "Bessel function of the first kind, order 0"),
    builtin("j1", 1, "Bessel function of the first kind, order 1"),
    builtin("lgamma", 1, "logarithm of the absolute value of the gamma function"),
    builtin("log", 1, "natural logarithm of x"),
    builtin("log10", 1, "logarithm of x to base 10"),
    builtin("log1p", 1, "log(1 + x)"),
    builtin("log2", 1, "logarithm of x to base 2"),
    builtin("logb", 1, "binary exponent of x, as a float"),
    builtin("nextafter", 2, "next value after x in the direction of y"),
    builtin("norm3d", 3, "sqrt(x * x + y * y + z * z)"),
    builtin("norm4d", 4, "sqrt(x * x + y * y + z * z + w * w)"),
    builtin("normcdf", 1, "cumulative distribution of the standard normal"),
    builtin("normcdfinv", 1, "inverse of normcdf"),
    builtin("pow", 2, "x to the power y"),
    builtin("rcbrt", 1, "1 / cbrt(x)"),
    builtin("remainder", 2, "IEEE remainder of x / y"),
    builtin("rhypot", 2, "1 / hypot(x, y)"),
    builtin("rnorm3d", 3, "1 / norm3d(x, y, z)"),
    builtin("rnorm4d", 4, "1 / norm4d(x, y, z, w)"),
    builtin("round", 1, "nearest integral value, halves away from zero"),
    builtin("rsqrt", 1, "1 / sqrt(x)"),
    builtin("sin", 1, "sine of x radians"),
    builtin("sinh", 1, "hyperbolic sine of x"),
    builtin("sinpi", 1, "sine of pi * x"),
    builtin("sqrt", 1, "square root of x"),
    builtin("tan", 1, "tangent of x radians"),
    builtin("tanh", 1, "hyperbolic tangent of x"),
    builtin("tgamma", 1, "gamma function of x"),
    builtin("trunc", 1, "x without its fraction"),
    builtin("y0", 1, "Bessel function of the second kind, order 0"),
    builtin("y1", 1, "Bessel function of the second kind, order 1"),
];

/// The built-in of this name.
pub fn lookup(name: &str) -> Option<&'static Builtin> {
    BUILTINS
        .binary_search_by(|builtin| builtin.name.cmp(name))
        .ok()
        .map(|position| &BUILTINS[position])
}

#[cfg(test)]
mod tests {
    use super::{BUILTINS, lookup};

    #[test]
    fn table_is_sorted_and_found() {
        assert!(BUILTINS.is_sorted_by(|a, b| a.name < b.name));
        for builtin in &BUILTINS {
            assert_eq!(lookup(builtin.name), Some(builtin));
        }
        assert_eq!(lookup("abs"), None);
    }
}
