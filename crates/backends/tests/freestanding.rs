//! Objects need no library for what they calculate: their undefined symbols are allocation,
//! copies of memory, which C compilers call too, and the OpenMP runtime. And what stands in
//! for missing instructions computes what they would.

use half::f16;
use melior::ir::Module;
use object::{Object, ObjectSymbol};
use std::{fs, path::PathBuf};
use tc_backends::{
    Artifact, Codegen, Compiled, Form, Machine, Request, Session, Source, builtins, cpu,
    runtime::Tensor,
};

/// What an object may refer to.
fn is_allowed(symbol: &str) -> bool {
    let names = ["malloc", "calloc", "free", "aligned_alloc", "posix_memalign"];
    let memory = ["memcpy", "memmove", "memset"];
    names.contains(&symbol)
        || memory.contains(&symbol)
        || symbol == "_GLOBAL_OFFSET_TABLE_"
        || ["__kmpc_", "omp_"].iter().any(|prefix| symbol.starts_with(prefix))
}

/// The undefined symbols of a program's object that it may not have.
fn foreign_symbols(program: &dyn Artifact) -> Vec<String> {
    let bytes = program.emit(Form::Object).expect("an object");
    let object = object::File::parse(&*bytes).expect("a known format");
    let undefined = object.symbols().filter(|it| it.is_undefined());
    let names = undefined.filter_map(|it| it.name().ok().map(str::to_string));
    names.filter(|it| !it.is_empty() && !is_allowed(it)).collect()
}

/// This machine, and a processor without SSE4.1, FMA and F16C where that is of its kind.
fn targets() -> Vec<Machine> {
    let mut targets = vec![Machine::host()];
    if targets[0].triple.starts_with("x86_64") {
        targets.push(Machine::cpu("x86-64"));
    }
    targets
}

/// A function of vectors of seven, of so many operands `%x`, `%y`, `%z` of a type.
fn function(name: &str, operands: usize, from: &str, to: &str, body: &str) -> String {
    let names = &["x", "y", "z", "w"][..operands];
    let join = |item: &dyn Fn(&str) -> String| {
        names.iter().map(|it| item(it)).collect::<Vec<_>>().join(", ")
    };
    let arguments = join(&|it| format!("%a{it}: tensor<7x{from}>"));
    let (inputs, types) =
        (join(&|it| format!("%a{it}[i]")), join(&|_| format!("tensor<7x{from}>")));
    let scalars = join(&|it| format!("%{it}: {from}"));
    format!(
        r#"
func.func @{name}({arguments}) -> tensor<7x{to}> {{
  %init = tensor.empty() : tensor<7x{to}>
  %r = imap.generic (i) domain: i in [0, 6]
    ins({inputs} : {types}) outs(%init[i] : tensor<7x{to}>) {{
  ^bb0({scalars}):
    {body}
    imap.yield %r : {to}
  }} -> tensor<7x{to}>
  return %r : tensor<7x{to}>
}}"#
    )
}

/// Lowers functions for a target.
fn lower(functions: &[String], target: &Machine, strict_fp: bool) -> Box<dyn Artifact> {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, &functions.concat()).expect("the module parses");
    let options = Codegen { machine: target.clone(), strict_fp, ..Codegen::default() };
    cpu::BACKEND.compile(&module, &options).expect("the module lowers")
}

fn check(functions: &[String]) {
    for target in targets() {
        let found = foreign_symbols(&*lower(functions, &target, false));
        assert!(found.is_empty(), "'{}' needs {found:?}", target.cpu);
    }
}

#[test]
fn builtins_need_no_library() {
    for ty in ["f32", "f64"] {
        let functions: Vec<_> = builtins::all()
            .iter()
            .map(|it| {
                let operands = ["%x", "%y", "%z", "%w"][..it.arity].join(", ");
                let body = format!("%r = imap.builtin \"{}\"({operands}) : {ty}", it.name);
                function(it.name, it.arity, ty, ty, &body)
            })
            .collect();
        check(&functions);
    }
}

#[test]
fn operations_need_no_library() {
    let mut functions = Vec::new();
    for ty in ["f16", "f32", "f64"] {
        for op in [
            "absf",
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cbrt",
            "ceil",
            "cos",
            "cosh",
            "erf",
            "exp",
            "exp2",
            "expm1",
            "floor",
            "log",
            "log10",
            "log1p",
            "log2",
            "round",
            "roundeven",
            "rsqrt",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "trunc",
        ] {
            let body = format!("%r = math.{op} %x : {ty}");
            functions.push(function(&format!("{op}_{ty}"), 1, ty, ty, &body));
        }
        for op in [
            "math.atan2",
            "math.copysign",
            "math.powf",
            "arith.divf",
            "arith.maximumf",
            "arith.maxnumf",
            "arith.minimumf",
            "arith.minnumf",
            "arith.mulf",
            "arith.remf",
        ] {
            let name = format!("{}_{ty}", op.replace('.', "_"));
            functions.push(function(&name, 2, ty, ty, &format!("%r = {op} %x, %y : {ty}")));
        }
        functions.push(function(
            &format!("fma_{ty}"),
            3,
            ty,
            ty,
            &format!("%r = math.fma %x, %y, %z : {ty}"),
        ));
        for integer in ["i8", "i32", "i64"] {
            let body = format!("%r = arith.uitofp %x : {integer} to {ty}");
            functions.push(function(&format!("from_{integer}_{ty}"), 1, integer, ty, &body));
            let body = format!("%r = arith.fptosi %x : {ty} to {integer}");
            functions.push(function(&format!("to_{integer}_{ty}"), 1, ty, integer, &body));
        }
    }
    // Values of bf16 can only stand inside.
    for (wide, narrow) in [("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "bf16")] {
        let body = format!(
            "%n = arith.truncf %x : {wide} to {narrow}\n\
             %s = arith.addf %n, %n : {narrow}\n\
             %r = arith.extf %s : {narrow} to {wide}"
        );
        functions.push(function(&format!("{wide}_{narrow}"), 1, wide, wide, &body));
    }
    check(&functions);
}

#[test]
fn hlo_programs_need_no_library() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/hlo");
    let target = targets().pop().expect("this machine");
    let options = Codegen { machine: target, ..Codegen::default() };
    let mut compiled = 0;
    for entry in fs::read_dir(folder).expect("the cases").flatten() {
        let Ok(text) = fs::read(entry.path().join("module.hlo")) else { continue };
        let session = Session::with_backend(cpu::BACKEND, options.clone());
        let program = session.open(Source::new("module.hlo", text)).expect("valid text");
        let lowered = session.lower(&*program, &Request::default()).expect("a supported module");
        let program = session.generate(&lowered).expect("code");
        let found = foreign_symbols(&*program);
        assert!(found.is_empty(), "{} needs {found:?}", entry.path().display());
        compiled += 1;
    }
    assert_eq!(compiled, 75);
}

/// Seven numbers at a time, padded with the last.
fn sevens<T: Copy>(values: &[T]) -> Vec<[T; 7]> {
    let last = values[values.len() - 1];
    let chunks = values.chunks(7);
    chunks.map(|it| std::array::from_fn(|at| it.get(at).copied().unwrap_or(last))).collect()
}

fn run<T: tc_backends::runtime::Element, U: tc_backends::runtime::Element>(
    compiled: &Compiled,
    name: &str,
    operands: &[[T; 7]],
) -> Vec<U> {
    let tensors: Vec<_> =
        operands.iter().map(|it| Tensor::from_values(&[7], it).expect("a tensor")).collect();
    let inputs: Vec<_> = tensors.iter().collect();
    let outputs = compiled.function(name).expect("a function").run(&inputs).expect("it runs");
    outputs[0].to_values::<U>().expect("values").to_vec()
}

/// Numbers where rounding has something to decide, in both signs.
fn numbers() -> Vec<f64> {
    let mut numbers: Vec<f64> = (0..40).map(|it| f64::from(it) / 8.0).collect();
    numbers.extend([0.49999999999999994, 4503599627370495.5, 4503599627370497.5, 8388607.5]);
    numbers.extend([65519.0, 65520.0, 65504.0, 6.1e-5, 5.9e-8, 2.9802e-8, 2.9803e-8, 1e-30]);
    numbers.extend([2049.0, 2051.0, 2049.0000001, 1e300, f64::MAX, f64::MIN_POSITIVE, 5e-324]);
    numbers.extend([f64::INFINITY, f64::NAN, 0.1, 1.0 / 3.0, 1e10, 3.3e5]);
    numbers.iter().flat_map(|it| [*it, -it]).collect()
}

fn same(found: f64, expected: f64) -> bool {
    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
}

/// On a processor without the instructions, and on this one.
#[test]
fn rounding_and_fused_multiplication_are_exact() {
    type Rounding = (&'static str, fn(f64) -> f64, fn(f32) -> f32);
    let roundings: [Rounding; 5] = [
        ("floor", f64::floor, f32::floor),
        ("ceil", f64::ceil, f32::ceil),
        ("trunc", f64::trunc, f32::trunc),
        ("round", f64::round, f32::round),
        ("roundeven", f64::round_ties_even, f32::round_ties_even),
    ];
    let mut functions = Vec::new();
    for ty in ["f32", "f64"] {
        for (op, ..) in roundings {
            let body = format!("%r = math.{op} %x : {ty}");
            functions.push(function(&format!("{op}_{ty}"), 1, ty, ty, &body));
        }
        let body = format!("%r = math.fma %x, %y, %z : {ty}");
        functions.push(function(&format!("fma_{ty}"), 3, ty, ty, &body));
        let body = format!("%r = arith.remf %x, %y : {ty}");
        functions.push(function(&format!("remainder_{ty}"), 2, ty, ty, &body));
    }
    let numbers = sevens(&numbers());
    for target in targets() {
        // Some operands are subnormal numbers.
        let compiled = lower(&functions, &target, true).load().expect("code");
        for (at, &x) in numbers.iter().enumerate() {
            let (y, z) = (numbers[(at * 5 + 3) % numbers.len()], numbers[(at * 3 + 1) % 11]);
            let narrow = |it: [f64; 7]| it.map(|it| it as f32);
            let (x32, y32, z32) = (narrow(x), narrow(y), narrow(z));
            let expect = |name: &str, found: Vec<f64>, expected: &dyn Fn(usize) -> f64| {
                for (lane, found) in found.into_iter().enumerate() {
                    let expected = expected(lane);
                    let arguments = (x[lane], y[lane], z[lane]);
                    let cpu = &target.cpu;
                    assert!(
                        same(found, expected),
                        "{name}{arguments:?} on '{cpu}': expected {expected}, found {found}"
                    );
                }
            };
            let widen = |it: Vec<f32>| it.into_iter().map(f64::from).collect::<Vec<_>>();
            for (op, double, single) in roundings {
                let name = format!("{op}_f64");
                expect(&name, run(&compiled, &name, &[x]), &|lane| double(x[lane]));
                let name = format!("{op}_f32");
                let found = widen(run(&compiled, &name, &[x32]));
                expect(&name, found, &|lane| f64::from(single(x32[lane])));
            }
            let found = run(&compiled, "fma_f64", &[x, y, z]);
            expect("fma_f64", found, &|lane| x[lane].mul_add(y[lane], z[lane]));
            let found = widen(run(&compiled, "fma_f32", &[x32, y32, z32]));
            expect("fma_f32", found, &|lane| f64::from(x32[lane].mul_add(y32[lane], z32[lane])));
            let found = run(&compiled, "remainder_f64", &[x, y]);
            expect("remainder_f64", found, &|lane| x[lane] % y[lane]);
            let found = widen(run(&compiled, "remainder_f32", &[x32, y32]));
            expect("remainder_f32", found, &|lane| f64::from(x32[lane] % y32[lane]));
        }
    }
}

/// The number of half precision that is nearest to another, ties to even. `f16::from_f64` may
/// round twice.
fn nearest_half(x: f64) -> f16 {
    let near = f16::from_f64(x).to_bits();
    if x.is_nan() || near & 0x7fff == 0 {
        return f16::from_bits(near);
    }
    let distance = |bits: u16| {
        let value = f16::from_bits(bits);
        // Infinity stands where the next number would be.
        let value = if value.is_infinite() { 65536f64.copysign(x) } else { f64::from(value) };
        ((value - x.clamp(-65536.0, 65536.0)).abs(), bits & 1)
    };
    let candidates = [near - 1, near, near + 1].into_iter();
    let candidates = candidates.filter(|bits| !f16::from_bits(*bits).is_nan());
    let nearest = candidates.min_by(|a, b| distance(*a).partial_cmp(&distance(*b)).expect("order"));
    f16::from_bits(nearest.unwrap_or(near))
}

#[test]
fn conversions_to_half_precision_round_once() {
    let functions = [
        function("single", 1, "f32", "f16", "%r = arith.truncf %x : f32 to f16"),
        function("double", 1, "f64", "f16", "%r = arith.truncf %x : f64 to f16"),
        function("wide", 1, "f16", "f32", "%r = arith.extf %x : f16 to f32"),
    ];
    for target in targets() {
        let compiled = lower(&functions, &target, false).load().expect("code");
        for x in sevens(&numbers()) {
            let single = x.map(|it| it as f32);
            let found: Vec<f16> = run(&compiled, "single", &[single]);
            let back: Vec<f32> = run(&compiled, "wide", &[std::array::from_fn(|it| found[it])]);
            for (lane, x) in single.into_iter().enumerate() {
                let expected = f64::from(f16::from_f32(x));
                assert!(same(f64::from(found[lane]), expected), "{x} on '{}'", target.cpu);
                assert!(same(f64::from(back[lane]), expected), "{x} on '{}'", target.cpu);
            }
            let found: Vec<f16> = run(&compiled, "double", &[x]);
            for (found, x) in found.into_iter().zip(x) {
                let (found, expected) = (f64::from(found), f64::from(nearest_half(x)));
                assert!(same(found, expected), "{x} on '{}': {found}", target.cpu);
            }
        }
    }
}
