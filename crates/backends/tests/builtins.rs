//! The built-ins against `runtime/reference/points.txt`, whose header and
//! generator (`reference.py`) explain the format: exact lines are met bit by bit,
//! the others within 8 ulp.
//!
//! And the elementary functions in single precision against double precision, of which the
//! crate `libm` has an independent implementation, within 4 ulp. `make math-accuracy` tries
//! all floats, not only a sample.

use std::{collections::BTreeMap, env, sync::Mutex, thread};

use tc_backends::builtins::{self, Builtin};

const POINTS: &str = include_str!("../runtime/reference/points.txt");
const LIMIT: u64 = 8;

/// A float as the tests see it: its place among the floats of its width.
trait Float: Copy + std::fmt::Debug {
    fn parse(text: &str) -> Self;
    /// Neighbouring floats have neighbouring numbers; both zeros have 0.
    fn ordinal(self) -> Option<i64>;
    fn same_bits(self, other: Self) -> bool;
    fn call(function: &Builtin, args: &[Self]) -> Self;
}

macro_rules! float {
    ($type:ident, $bits:ident, $call:ident) => {
        impl Float for $type {
            fn parse(text: &str) -> Self {
                match text {
                    "nan" => $type::NAN,
                    _ => $type::from_bits($bits::from_str_radix(text, 16).expect("hexadecimal")),
                }
            }

            fn ordinal(self) -> Option<i64> {
                let magnitude = i64::try_from(self.abs().to_bits()).ok()?;
                match self.is_nan() {
                    true => None,
                    false => Some(if self.is_sign_negative() { -magnitude } else { magnitude }),
                }
            }

            fn same_bits(self, other: Self) -> bool {
                self.to_bits() == other.to_bits() || self.is_nan() && other.is_nan()
            }

            fn call(function: &Builtin, args: &[Self]) -> Self {
                function.$call(args)
            }
        }
    };
}

float!(f32, u32, call_f32);
float!(f64, u64, call_f64);

/// Distance in units of the last place; `None` where only one of the two is NaN.
fn ulps<T: Float>(a: T, b: T) -> Option<u64> {
    match (a.ordinal(), b.ordinal()) {
        (Some(a), Some(b)) => Some(a.abs_diff(b)),
        (None, None) => Some(0),
        _ => None,
    }
}

/// Checks one line of numbers, and gives the error in ulp; or a sentence about the difference.
fn check<T: Float>(function: &Builtin, exact: bool, numbers: &[&str]) -> Result<u64, String> {
    let numbers: Vec<T> = numbers.iter().map(|n| T::parse(n)).collect();
    let (want, args) = numbers.split_last().expect("a result");
    let got = T::call(function, args);
    match ulps(got, *want) {
        Some(error) if if exact { got.same_bits(*want) } else { error <= LIMIT } => Ok(error),
        _ => Err(format!("{}{args:?}: expected {want:?}, found {got:?}", function.name)),
    }
}

#[test]
fn every_builtin_meets_its_reference_points() {
    let mut failures = Vec::new();
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut worst: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut current: Option<(Builtin, &str)> = None;
    for line in POINTS.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["fn", name, width, arity] = words[..] {
            let function = builtins::lookup(name).unwrap_or_else(|| panic!("no built-in '{name}'"));
            assert_eq!(function.arity.to_string(), arity, "arity of '{name}'");
            current = Some((function, width));
            continue;
        }
        let (function, width) = current.as_ref().expect("a function before its points");
        let (exact, numbers) = match words[..] {
            ["=", ref rest @ ..] => (true, rest),
            ref all => (false, all),
        };
        let result = match *width {
            "32" => check::<f32>(function, exact, numbers),
            _ => check::<f64>(function, exact, numbers),
        };
        match result {
            Ok(error) => {
                let worst = worst.entry((function.name, width)).or_default();
                *worst = error.max(*worst);
            }
            Err(difference) => failures.push(difference),
        }
        *seen.entry((function.name, width)).or_default() += 1;
    }
    for ((name, width), error) in &worst {
        println!("{name:14} f{width} {error} ulp");
    }
    assert!(failures.is_empty(), "{} points differ:\n{}", failures.len(), failures.join("\n"));
    for b in builtins::all() {
        for width in ["32", "64"] {
            let count = seen.get(&(b.name, width)).copied().unwrap_or(0);
            assert!(count >= 20, "'{}' has {count} points of {width} bits", b.name);
        }
    }
}

#[test]
fn ulps_counts_floats() {
    assert_eq!(ulps(0.0f64, -0.0), Some(0));
    assert_eq!(ulps(-f64::from_bits(1), f64::from_bits(2)), Some(3));
    assert_eq!(ulps(f32::MAX, f32::INFINITY), Some(1));
    assert_eq!(ulps(f32::NAN, 1.0), None);
}

/// How far a float lies from a real number, in ulp of that number. Infinity counts as 2^128,
/// and a zero must have the sign of one that is exact.
fn error_in_ulp(found: f32, exact: f64) -> f64 {
    if found.is_nan() || exact.is_nan() {
        return if found.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact == 0.0 || exact.is_infinite() {
        let same = f64::from(found).to_bits() == exact.to_bits();
        return if same { 0.0 } else { f64::INFINITY };
    }
    let top = 2f64.powi(128);
    let exponent = libm::ilogb(exact).clamp(-126, 127);
    let distance = f64::from(found).clamp(-top, top) - exact.clamp(-top, top);
    distance.abs() / 2f64.powi(exponent - 23)
}

/// A function of one float and its counterpart in double precision.
type Unary = (&'static str, fn(f64) -> f64);

const UNARY: [Unary; 27] = [
    ("acos", libm::acos),
    // That of the crate gives numbers below -1.
    ("acosh", |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }),
    ("asin", libm::asin),
    ("asinh", libm::asinh),
    ("atan", libm::atan),
    ("atanh", libm::atanh),
    ("cbrt", libm::cbrt),
    ("cos", libm::cos),
    ("cosh", libm::cosh),
    ("erf", libm::erf),
    ("erfc", libm::erfc),
    ("exp", libm::exp),
    ("exp10", libm::exp10),
    ("exp2", libm::exp2),
    ("expm1", libm::expm1),
    ("log", libm::log),
    ("log10", libm::log10),
    ("log1p", libm::log1p),
    ("log2", libm::log2),
    ("rcbrt", |x| 1.0 / libm::cbrt(x)),
    ("rsqrt", |x| 1.0 / x.sqrt()),
    ("sin", libm::sin),
    ("sinh", libm::sinh),
    ("sqrt", libm::sqrt),
    ("tan", libm::tan),
    ("tanh", libm::tanh),
    ("tgamma", libm::tgamma),
];

/// A function of two floats and its counterpart in double precision.
type Binary = (&'static str, fn(f64, f64) -> f64);

const BINARY: [Binary; 5] = [
    ("atan2", libm::atan2),
    ("fmod", libm::fmod),
    ("hypot", libm::hypot),
    ("pow", libm::pow),
    ("remainder", libm::remainder),
];

/// The greatest error of a function among arguments, and where.
#[derive(Clone, Copy)]
struct Worst {
    error: f64,
    x: f32,
    y: f32,
}

impl Worst {
    const NONE: Self = Self { error: 0.0, x: 0.0, y: 0.0 };

    fn meet(&mut self, error: f64, x: f32, y: f32) {
        if self.error < error {
            *self = Self { error, x, y };
        }
    }
}

/// A sequence of bits that looks random: multiplication by an odd number, and its high part.
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 16
}

/// Zeros, the ends of the subnormal and of the normal floats, 1 and its neighbours, infinities
/// and a NaN, and what lies between in coarse steps.
fn special() -> Vec<f32> {
    let positive = [
        0.0,
        1e-45,
        1.1754942e-38,
        f32::MIN_POSITIVE,
        1.0 - f32::EPSILON / 2.0,
        1.0,
        1.0 + f32::EPSILON,
        0.5,
        2.0,
        3.0,
        16777215.0,
        16777216.0,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    positive.iter().flat_map(|x| [*x, -*x]).collect()
}

/// The worst of a function of one float: of every `step`-th stretch of the floats one, and the
/// special ones.
fn unary_worst((name, exact): Unary, step: u64) -> Worst {
    let function = builtins::lookup(name).expect("a built-in");
    let stretches = (1u64 << 32) / step;
    let bits = (0..stretches).map(|at| (at * step + scramble(at) % step) as u32);
    let mut worst = Worst::NONE;
    for x in bits.map(f32::from_bits).chain(special()) {
        worst.meet(error_in_ulp(function.call_f32(&[x]), exact(x.into())), x, 0.0);
    }
    worst
}

/// The worst of a function of two floats: among so many pairs, half of them of like size, and
/// all pairs of special ones.
fn binary_worst((name, exact): Binary, pairs: u64) -> Worst {
    let function = builtins::lookup(name).expect("a built-in");
    let mut worst = Worst::NONE;
    let mut meet = |x: f32, y: f32| {
        worst.meet(error_in_ulp(function.call_f32(&[x, y]), exact(x.into(), y.into())), x, y);
    };
    for at in 0..pairs {
        let (first, second) = (scramble(2 * at) as u32, scramble(2 * at + 1) as u32);
        // The sign and the two highest bits of the exponent are those of 1.
        let like = |bits: u32| bits & 0x81ff_ffff | 0x3e00_0000;
        match at % 2 {
            0 => meet(f32::from_bits(first), f32::from_bits(second)),
            _ => meet(f32::from_bits(like(first)), f32::from_bits(like(second))),
        }
    }
    for x in special() {
        special().into_iter().for_each(|y| meet(x, y));
    }
    worst
}

/// A sample of floats from all binades; with `TC_MATH_ACCURACY=all`, all floats, and of pairs
/// as many as there are floats. With names instead, `TC_MATH_ACCURACY=exp,pow`, those functions.
#[test]
fn single_precision_is_within_4_ulp() {
    let names = env::var("TC_MATH_ACCURACY").ok();
    let (step, pairs) = if names.is_some() { (1, 1 << 32) } else { (1 << 15, 1 << 18) };
    let names = names.filter(|names| names != "all");
    let asked =
        |name: &str| names.as_ref().is_none_or(|names| names.split(',').any(|it| it == name));
    let unary: Vec<_> = UNARY.into_iter().filter(|it| asked(it.0)).collect();
    let binary: Vec<_> = BINARY.into_iter().filter(|it| asked(it.0)).collect();
    let left = Mutex::new((unary, binary));
    let failures = Mutex::new(Vec::new());
    let next = || {
        let mut left = left.lock().expect("no panic");
        let unary = left.0.pop().map(|it| (Some(it), None));
        unary.or_else(|| left.1.pop().map(|it| (None, Some(it))))
    };
    let work = || {
        while let Some(function) = next() {
            let (name, worst) = match function {
                (Some(unary), _) => (unary.0, unary_worst(unary, step)),
                (_, Some(binary)) => (binary.0, binary_worst(binary, pairs)),
                _ => continue,
            };
            let text = format!("{name:14} {:.4} ulp at {:e}, {:e}", worst.error, worst.x, worst.y);
            println!("{text}");
            if 4.0 < worst.error {
                failures.lock().expect("no panic").push(text);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn errors_are_those_of_real_numbers() {
    assert_eq!(error_in_ulp(1.0, 1.0), 0.0);
    assert_eq!(error_in_ulp(1.0, 1.0 + 2f64.powi(-24)), 0.5);
    assert_eq!(error_in_ulp(f32::INFINITY, f64::from(f32::MAX)), 1.0);
    assert_eq!(error_in_ulp(0.0, 2f64.powi(-150)), 0.5);
    assert_eq!(error_in_ulp(f32::INFINITY, 1e300), 0.0);
    assert_eq!(error_in_ulp(0.0, -0.0), f64::INFINITY);
    assert_eq!(error_in_ulp(f32::NAN, 0.0), f64::INFINITY);
}
