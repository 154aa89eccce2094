//! The built-ins against `runtime/reference/points.txt`, whose header and
//! generator (`reference.py`) explain the format: exact lines are met bit by bit,
//! the others within 8 ulp, on this machine and on a GPU.
//!
//! And the elementary functions in single precision against double precision, of which the
//! crate `libm` has an independent implementation, within 4 ulp. `make math-accuracy` tries
//! all floats, not only a sample.

use std::{env, sync::Mutex, thread};

use melior::ir::Module;
use tc_backends::{
    Codegen,
    builtins::{self, Builtin},
    nvvm::{
        emulator::{self, Argument, Launch, Memory},
        machines, ptx,
    },
};

const POINTS: &str = include_str!("../runtime/reference/points.txt");
const LIMIT: u64 = 8;

/// A float as the tests see it: its place among the floats of its width.
trait Float: Copy + std::fmt::Debug {
    fn parse(text: &str) -> Self;
    fn to_bytes(self) -> Vec<u8>;
    fn of_bytes(bytes: &[u8]) -> Self;
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

            fn to_bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }

            fn of_bytes(bytes: &[u8]) -> Self {
                $type::from_le_bytes(bytes.try_into().expect("the bytes of one float"))
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

/// The reference points of a function in one width.
struct Points {
    function: Builtin,
    width: &'static str,
    /// Whether the result is exact, and the numbers: the result, then the arguments.
    lines: Vec<(bool, Vec<&'static str>)>,
}

fn points() -> Vec<Points> {
    let mut all: Vec<Points> = Vec::new();
    for line in POINTS.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<_> = line.split(' ').collect();
        if let ["fn", name, width, arity] = words[..] {
            let function = builtins::lookup(name).unwrap_or_else(|| panic!("no built-in '{name}'"));
            assert_eq!(function.arity.to_string(), arity, "arity of '{name}'");
            all.push(Points { function, width, lines: Vec::new() });
            continue;
        }
        let numbers = line.strip_prefix("= ");
        let list = numbers.unwrap_or(line).split(' ').collect();
        let points = all.last_mut().expect("a function before its points");
        points.lines.push((numbers.is_some(), list));
    }
    all
}

impl Points {
    /// The results, and the arguments of each.
    fn numbers<T: Float>(&self) -> Vec<(T, Vec<T>)> {
        let parse = |numbers: &Vec<&str>| {
            let numbers: Vec<_> = numbers.iter().map(|number| T::parse(number)).collect();
            let (result, arguments) = numbers.split_last().expect("a result");
            (*result, arguments.to_vec())
        };
        self.lines.iter().map(|(_, numbers)| parse(numbers)).collect()
    }

    /// Checks what `call` gives for the arguments of all points.
    fn check<T: Float>(&self, call: &dyn Fn(&[Vec<T>]) -> Vec<T>, failures: &mut Vec<String>) {
        let (expected, arguments): (Vec<_>, Vec<_>) = self.numbers::<T>().into_iter().unzip();
        let found = call(&arguments);
        assert_eq!(found.len(), expected.len());
        let mut worst = 0;
        for (number, ((is_exact, _), found)) in self.lines.iter().zip(found).enumerate() {
            let expected = expected[number];
            let error = ulps(found, expected);
            let agrees = match is_exact {
                true => found.same_bits(expected),
                false => error.is_some_and(|error| error <= LIMIT),
            };
            worst = worst.max(error.unwrap_or(0));
            if !agrees {
                let call = format!("{}{:?}", self.function.name, arguments[number]);
                failures.push(format!("{call}: expected {expected:?}, found {found:?}"));
            }
        }
        println!("{:14} f{} {worst} ulp", self.function.name, self.width);
    }
}

#[test]
fn every_builtin_meets_its_reference_points() {
    let (all, mut failures) = (points(), Vec::new());
    for points in &all {
        let function = &points.function;
        match points.width {
            "32" => points.check::<f32>(&|all| calls(function, all), &mut failures),
            _ => points.check::<f64>(&|all| calls(function, all), &mut failures),
        };
    }
    assert!(failures.is_empty(), "{} points differ:\n{}", failures.len(), failures.join("\n"));
    for b in builtins::all() {
        for width in ["32", "64"] {
            let of_function = |it: &&Points| it.function.name == b.name && it.width == width;
            let count = all.iter().find(of_function).map_or(0, |it| it.lines.len());
            assert!(count >= 20, "'{}' has {count} points of {width} bits", b.name);
        }
    }
}

fn calls<T: Float>(function: &Builtin, arguments: &[Vec<T>]) -> Vec<T> {
    arguments.iter().map(|arguments| T::call(function, arguments)).collect()
}

/// A kernel that computes a function at so many points, with an array per argument.
fn kernel(function: &Builtin, width: &str, count: usize) -> String {
    let name = function.name;
    let (ty, last) = (format!("memref<{count}xf{width}>"), count - 1);
    let each = |text: &dyn Fn(usize) -> String| {
        (0..function.arity).map(text).collect::<Vec<_>>().join(", ")
    };
    format!(
        "gpu.func @{name}_{width}({}, %y: {ty}) kernel {{
           imap.generic (i) domain: i in [0, {last}] ins({} : {}) outs(%y[i] : {ty}) {{
           ^bb0({}):
             %r = imap.builtin \"{name}\"({}) : f{width}
             imap.yield %r : f{width}
           }}
           gpu.return
         }}\n",
        each(&|number| format!("%x{number}: {ty}")),
        each(&|number| format!("%x{number}[i]")),
        each(&|_| ty.clone()),
        each(&|number| format!("%a{number}: f{width}")),
        each(&|number| format!("%a{number}")),
    )
}

/// The code of kernels.
fn code(kernels: impl Iterator<Item = String>) -> emulator::Module {
    let context = tc_dialects::new_context();
    let kernels: String = kernels.collect();
    let module = Module::parse(&context, &format!("gpu.module @kernels {{\n{kernels}}}"));
    let module = module.expect("valid kernels");
    let text = ptx(&module, &Codegen::new(machines().remove(0))).expect("supported kernels");
    emulator::Module::parse(&text).expect("known instructions")
}

/// Executes the kernel of a function in the emulator.
fn emulate<T: Float>(
    code: &emulator::Module,
    function: &Builtin,
    width: &str,
    arguments: &[Vec<T>],
) -> Vec<T> {
    let mut memory = Memory::new();
    let array = |number: usize| arguments.iter().flat_map(move |it| it[number].to_bytes());
    let inputs: Vec<Vec<u8>> = (0..function.arity).map(|it| array(it).collect()).collect();
    let bytes = inputs[0].len();
    let mut buffers: Vec<Argument> =
        inputs.iter().map(|bytes| memory.create(bytes, 256).into()).collect();
    let output = memory.allocate(bytes, 256);
    buffers.push(output.into());
    let launch = Launch::new([1, 1, 1], [256, 1, 1], buffers);
    emulator::run(code, &format!("{}_{width}", function.name), &launch, &mut memory)
        .unwrap_or_else(|error| panic!("{error}"));
    memory.read(output).chunks(bytes / arguments.len()).map(T::of_bytes).collect()
}

#[test]
fn every_builtin_meets_its_reference_points_on_a_gpu() {
    let (all, mut failures) = (points(), Vec::new());
    let code = code(all.iter().map(|it| kernel(&it.function, it.width, it.lines.len())));
    for points in &all {
        let Points { function, width, .. } = points;
        match *width {
            "32" => {
                points.check::<f32>(&|all| emulate(&code, function, width, all), &mut failures);
            }
            _ => points.check::<f64>(&|all| emulate(&code, function, width, all), &mut failures),
        };
    }
    assert!(failures.is_empty(), "{} points differ:\n{}", failures.len(), failures.join("\n"));
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

/// One float of every `step` neighbouring ones, and the special ones.
fn floats(step: u64) -> impl Iterator<Item = f32> {
    let stretches = (1u64 << 32) / step;
    let bits = (0..stretches).map(move |at| (at * step + scramble(at) % step) as u32);
    bits.map(f32::from_bits).chain(special())
}

/// `count` pairs, half of them of similar magnitude, and all pairs of special floats.
fn float_pairs(count: u64) -> impl Iterator<Item = (f32, f32)> {
    let pairs = (0..count).map(|at| {
        let (first, second) = (scramble(2 * at) as u32, scramble(2 * at + 1) as u32);
        // The sign and the two highest bits of the exponent are those of 1.
        let like = |bits: u32| bits & 0x81ff_ffff | 0x3e00_0000;
        match at % 2 {
            0 => (f32::from_bits(first), f32::from_bits(second)),
            _ => (f32::from_bits(like(first)), f32::from_bits(like(second))),
        }
    });
    pairs.chain(special().into_iter().flat_map(|x| special().into_iter().map(move |y| (x, y))))
}

/// The worst of a function of one float.
fn unary_worst((name, exact): Unary, step: u64) -> Worst {
    let function = builtins::lookup(name).expect("a built-in");
    let mut worst = Worst::NONE;
    for x in floats(step) {
        worst.meet(error_in_ulp(function.call_f32(&[x]), exact(x.into())), x, 0.0);
    }
    worst
}

/// The worst of a function of two floats.
fn binary_worst((name, exact): Binary, pairs: u64) -> Worst {
    let function = builtins::lookup(name).expect("a built-in");
    let mut worst = Worst::NONE;
    for (x, y) in float_pairs(pairs) {
        worst.meet(error_in_ulp(function.call_f32(&[x, y]), exact(x.into(), y.into())), x, y);
    }
    worst
}

#[test]
fn single_precision_is_within_4_ulp_on_a_gpu() {
    let unary: Vec<_> = floats(1 << 23).map(|x| vec![x]).collect();
    let binary: Vec<_> = float_pairs(100).map(|(x, y)| vec![x, y]).collect();
    let names = UNARY.map(|it| it.0).into_iter().chain(BINARY.map(|it| it.0));
    let functions: Vec<_> = names.map(|name| builtins::lookup(name).expect("known")).collect();
    let arguments = |function: &Builtin| if function.arity == 1 { &unary } else { &binary };
    let code = code(functions.iter().map(|it| kernel(it, "32", arguments(it).len())));
    let check = |function: &Builtin, exact: &dyn Fn(&[f32]) -> f64| {
        let arguments = arguments(function);
        let found = emulate(&code, function, "32", arguments);
        for (arguments, found) in arguments.iter().zip(found) {
            let error = error_in_ulp(found, exact(arguments));
            assert!(error <= 4.0, "{}{arguments:?}: {found} is {error} ulp off", function.name);
        }
    };
    for (function, (_, exact)) in functions.iter().zip(UNARY) {
        check(function, &|it| exact(it[0].into()));
    }
    for (function, (_, exact)) in functions[UNARY.len()..].iter().zip(BINARY) {
        check(function, &|it| exact(it[0].into(), it[1].into()));
    }
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
