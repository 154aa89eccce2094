//! The built-ins against `runtime/reference/points.txt`, whose header and
//! generator (`reference.py`) explain the format: exact lines are met bit by bit,
//! the others within 8 ulp.

use std::collections::BTreeMap;

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

/// Checks one line of numbers; the error is a sentence about the difference.
fn check<T: Float>(function: &Builtin, exact: bool, numbers: &[&str]) -> Result<(), String> {
    let numbers: Vec<T> = numbers.iter().map(|n| T::parse(n)).collect();
    let (want, args) = numbers.split_last().expect("a result");
    let got = T::call(function, args);
    let close =
        if exact { got.same_bits(*want) } else { ulps(got, *want).is_some_and(|d| d <= LIMIT) };
    if close {
        return Ok(());
    }
    Err(format!("{}{args:?}: expected {want:?}, found {got:?}", function.name))
}

#[test]
fn every_builtin_meets_its_reference_points() {
    let mut failures = Vec::new();
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
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
        failures.extend(result.err());
        *seen.entry((function.name, width)).or_default() += 1;
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
