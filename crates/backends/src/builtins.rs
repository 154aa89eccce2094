//! The scalar built-in functions of TC, by name.
//!
//! The functions themselves are `runtime/builtins.c` and what it includes, which say what
//! they mean and how accurate they are (8 ulp, mostly 2). They reach a program twice: linked
//! as bitcode into generated code, where a call names [`Builtin::f32_symbol`] or
//! [`Builtin::f64_symbol`], and as the native library `tc_builtins`, which this
//! module calls. Generated code needs no mathematical library.

/// A function of one to four numbers of type `T`.
#[derive(Clone, Copy, Debug)]
pub enum Function<T> {
    /// One argument.
    Unary(extern "C" fn(T) -> T),
    /// Two arguments.
    Binary(extern "C" fn(T, T) -> T),
    /// Three arguments.
    Ternary(extern "C" fn(T, T, T) -> T),
    /// Four arguments.
    Quaternary(extern "C" fn(T, T, T, T) -> T),
}

impl<T: Copy> Function<T> {
    /// The number of arguments.
    pub fn arity(&self) -> usize {
        match self {
            Function::Unary(_) => 1,
            Function::Binary(_) => 2,
            Function::Ternary(_) => 3,
            Function::Quaternary(_) => 4,
        }
    }

    /// The value at `args`, or `None` where their number is not the arity.
    pub fn call(&self, args: &[T]) -> Option<T> {
        match (self, args) {
            (Function::Unary(f), &[x]) => Some(f(x)),
            (Function::Binary(f), &[x, y]) => Some(f(x, y)),
            (Function::Ternary(f), &[x, y, z]) => Some(f(x, y, z)),
            (Function::Quaternary(f), &[x, y, z, w]) => Some(f(x, y, z, w)),
            _ => None,
        }
    }
}

/// One built-in function, in both widths.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// The name in a TC program, `atan2`.
    pub name: &'static str,
    /// The number of arguments, 1 to 4.
    pub arity: usize,
    /// The function in single precision.
    pub f32: Function<f32>,
    /// The function in double precision.
    pub f64: Function<f64>,
    /// The linker's name of `f32`, `tc_atan2_f32`.
    pub f32_symbol: &'static str,
    /// The linker's name of `f64`, `tc_atan2_f64`.
    pub f64_symbol: &'static str,
}

impl Builtin {
    /// The value in single precision.
    ///
    /// # Panics
    /// Where `args` has not [`arity`](Builtin::arity) elements: front ends check
    /// that, and [`Function::call`] is the variant that does not panic.
    pub fn call_f32(&self, args: &[f32]) -> f32 {
        self.f32.call(args).unwrap_or_else(|| self.wrong_arity(args.len()))
    }

    /// The value in double precision.
    ///
    /// # Panics
    /// As [`call_f32`](Builtin::call_f32).
    pub fn call_f64(&self, args: &[f64]) -> f64 {
        self.f64.call(args).unwrap_or_else(|| self.wrong_arity(args.len()))
    }

    fn wrong_arity(&self, found: usize) -> ! {
        panic!("'{}' takes {} arguments, found {found}", self.name, self.arity)
    }
}

/// The built-in called `name`.
///
/// ```
/// let hypot = tc_backends::builtins::lookup("hypot").unwrap();
/// assert_eq!((hypot.arity, hypot.call_f64(&[3.0, 4.0])), (2, 5.0));
/// assert!(tc_backends::builtins::lookup("gamma").is_none());
/// ```
pub fn lookup(name: &str) -> Option<Builtin> {
    let index = TABLE.binary_search_by(|b| b.name.cmp(name)).ok()?;
    Some(TABLE[index])
}

/// All built-ins, sorted by name.
pub fn all() -> &'static [Builtin] {
    TABLE
}

/// Declares the C functions and `TABLE` from one list.
macro_rules! builtins {
    ($($name:ident = $kind:ident($($x:ident),+) $single:ident $double:ident,)+) => {
        // SAFETY: runtime/ defines each of these with this signature, for every
        // argument, without reading or writing memory of its caller.
        unsafe extern "C" {
            $(
                safe fn $single($($x: f32),+) -> f32;
                safe fn $double($($x: f64),+) -> f64;
            )+
        }

        static TABLE: &[Builtin] = &[$(Builtin {
            name: stringify!($name),
            arity: [$(stringify!($x)),+].len(),
            f32: Function::$kind($single),
            f64: Function::$kind($double),
            f32_symbol: stringify!($single),
            f64_symbol: stringify!($double),
        },)+];
    };
}

builtins! {
    acos = Unary(x) tc_acos_f32 tc_acos_f64,
    acosh = Unary(x) tc_acosh_f32 tc_acosh_f64,
    asin = Unary(x) tc_asin_f32 tc_asin_f64,
    asinh = Unary(x) tc_asinh_f32 tc_asinh_f64,
    atan = Unary(x) tc_atan_f32 tc_atan_f64,
    atan2 = Binary(x, y) tc_atan2_f32 tc_atan2_f64,
    atanh = Unary(x) tc_atanh_f32 tc_atanh_f64,
    cbrt = Unary(x) tc_cbrt_f32 tc_cbrt_f64,
    ceil = Unary(x) tc_ceil_f32 tc_ceil_f64,
    copysign = Binary(x, y) tc_copysign_f32 tc_copysign_f64,
    cos = Unary(x) tc_cos_f32 tc_cos_f64,
    cosh = Unary(x) tc_cosh_f32 tc_cosh_f64,
    cospi = Unary(x) tc_cospi_f32 tc_cospi_f64,
    cyl_bessel_i0 = Unary(x) tc_cyl_bessel_i0_f32 tc_cyl_bessel_i0_f64,
    cyl_bessel_i1 = Unary(x) tc_cyl_bessel_i1_f32 tc_cyl_bessel_i1_f64,
    erf = Unary(x) tc_erf_f32 tc_erf_f64,
    erfc = Unary(x) tc_erfc_f32 tc_erfc_f64,
    erfcinv = Unary(x) tc_erfcinv_f32 tc_erfcinv_f64,
    erfcx = Unary(x) tc_erfcx_f32 tc_erfcx_f64,
    erfinv = Unary(x) tc_erfinv_f32 tc_erfinv_f64,
    exp = Unary(x) tc_exp_f32 tc_exp_f64,
    exp10 = Unary(x) tc_exp10_f32 tc_exp10_f64,
    exp2 = Unary(x) tc_exp2_f32 tc_exp2_f64,
    expm1 = Unary(x) tc_expm1_f32 tc_expm1_f64,
    fabs = Unary(x) tc_fabs_f32 tc_fabs_f64,
    fdim = Binary(x, y) tc_fdim_f32 tc_fdim_f64,
    fdivide = Binary(x, y) tc_fdivide_f32 tc_fdivide_f64,
    floor = Unary(x) tc_floor_f32 tc_floor_f64,
    fma = Ternary(x, y, z) tc_fma_f32 tc_fma_f64,
    fmax = Binary(x, y) tc_fmax_f32 tc_fmax_f64,
    fmin = Binary(x, y) tc_fmin_f32 tc_fmin_f64,
    fmod = Binary(x, y) tc_fmod_f32 tc_fmod_f64,
    hypot = Binary(x, y) tc_hypot_f32 tc_hypot_f64,
    j0 = Unary(x) tc_j0_f32 tc_j0_f64,
    j1 = Unary(x) tc_j1_f32 tc_j1_f64,
    lgamma = Unary(x) tc_lgamma_f32 tc_lgamma_f64,
    log = Unary(x) tc_log_f32 tc_log_f64,
    log10 = Unary(x) tc_log10_f32 tc_log10_f64,
    log1p = Unary(x) tc_log1p_f32 tc_log1p_f64,
    log2 = Unary(x) tc_log2_f32 tc_log2_f64,
    logb = Unary(x) tc_logb_f32 tc_logb_f64,
    nextafter = Binary(x, y) tc_nextafter_f32 tc_nextafter_f64,
    norm3d = Ternary(x, y, z) tc_norm3d_f32 tc_norm3d_f64,
    norm4d = Quaternary(x, y, z, w) tc_norm4d_f32 tc_norm4d_f64,
    normcdf = Unary(x) tc_normcdf_f32 tc_normcdf_f64,
    normcdfinv = Unary(x) tc_normcdfinv_f32 tc_normcdfinv_f64,
    pow = Binary(x, y) tc_pow_f32 tc_pow_f64,
    rcbrt = Unary(x) tc_rcbrt_f32 tc_rcbrt_f64,
    remainder = Binary(x, y) tc_remainder_f32 tc_remainder_f64,
    rhypot = Binary(x, y) tc_rhypot_f32 tc_rhypot_f64,
    rnorm3d = Ternary(x, y, z) tc_rnorm3d_f32 tc_rnorm3d_f64,
    rnorm4d = Quaternary(x, y, z, w) tc_rnorm4d_f32 tc_rnorm4d_f64,
    round = Unary(x) tc_round_f32 tc_round_f64,
    rsqrt = Unary(x) tc_rsqrt_f32 tc_rsqrt_f64,
    sin = Unary(x) tc_sin_f32 tc_sin_f64,
    sinh = Unary(x) tc_sinh_f32 tc_sinh_f64,
    sinpi = Unary(x) tc_sinpi_f32 tc_sinpi_f64,
    sqrt = Unary(x) tc_sqrt_f32 tc_sqrt_f64,
    tan = Unary(x) tc_tan_f32 tc_tan_f64,
    tanh = Unary(x) tc_tanh_f32 tc_tanh_f64,
    tgamma = Unary(x) tc_tgamma_f32 tc_tgamma_f64,
    trunc = Unary(x) tc_trunc_f32 tc_trunc_f64,
    y0 = Unary(x) tc_y0_f32 tc_y0_f64,
    y1 = Unary(x) tc_y1_f32 tc_y1_f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_consistent() {
        assert!(TABLE.windows(2).all(|w| w[0].name < w[1].name));
        for b in all() {
            assert_eq!((b.f32.arity(), b.f64.arity()), (b.arity, b.arity), "{}", b.name);
            assert_eq!(b.f32_symbol, format!("tc_{}_f32", b.name));
            assert_eq!(b.f64_symbol, format!("tc_{}_f64", b.name));
            assert_eq!(lookup(b.name).map(|f| f.name), Some(b.name));
        }
    }

    #[test]
    fn wrong_number_of_arguments_is_none() {
        let pow = lookup("pow").unwrap();
        assert_eq!(pow.f64.call(&[2.0]), None);
        assert_eq!(pow.f32.call(&[2.0, 3.0]), Some(8.0));
    }
}
