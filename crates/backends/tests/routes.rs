//! One program, four routes: the interpreter on comprehensions, on `imap.generic`, and on
//! those after fusion must give the same, and native code what their bounds allow.

use melior::{
    Context,
    ir::{Module, ValueLike},
    pass::PassManager,
    utility::{parse_pass_pipeline, register_all_passes},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};
use tc_backends::{
    Codegen, cpu,
    interp::{self, Outcome, Stats},
    runtime::{ElementType, Number, Tensor, random},
};
use tc_dialects::{
    mlir::{self, Op},
    tc::{Def, Size},
};

fn import<'c>(context: &'c Context, source: &str) -> Module<'c> {
    context.attach_diagnostic_handler(|diagnostic| {
        eprintln!("{}: {diagnostic}", diagnostic.location());
        true
    });
    tc_passes::register();
    register_all_passes();
    let module = tc_dialects::tc::import::import(context, "test.tc", source.as_bytes(), false);
    let mut module = module.expect("the program is correct");
    run_passes(context, &mut module, "tc-infer-ranges");
    module
}

fn run_passes(context: &Context, module: &mut Module, pipeline: &str) {
    let manager = PassManager::new(context);
    let pipeline = format!("builtin.module({pipeline})");
    parse_pass_pipeline(manager.as_operation_pass_manager(), &pipeline)
        .expect("the pipeline of the test parses");
    manager.run(module).expect("the passes succeed");
}

fn function<'c>(module: &Module<'c>, name: &str) -> Op<'c> {
    let body = mlir::body(mlir::op_ref(module.as_operation()), 0).expect("a module has a body");
    mlir::ops(body)
        .into_iter()
        .find(|op| mlir::string_attr(*op, "sym_name") == Some(name))
        .expect("the module has the function")
}

fn same(what: &str, first: &[Outcome], second: &[Outcome]) {
    assert_eq!(first.len(), second.len(), "{what}");
    for (first, second) in first.iter().zip(second) {
        assert_eq!((first.element(), first.shape()), (second.element(), second.shape()), "{what}");
        for position in 0..first.num_elements() {
            assert_eq!(first.is_uncertain(position), second.is_uncertain(position), "{what}");
            if !first.is_uncertain(position) {
                let pair = [first, second].map(|it| it.number(position).to_f64());
                assert!(
                    pair[0] == pair[1] || pair[0].is_nan() && pair[1].is_nan(),
                    "{what} {pair:?}"
                );
            }
        }
    }
}

/// Runs a function on all routes, and returns what the first gave, and how near native code
/// came to the bounds.
fn all_routes(
    what: &str,
    source: &str,
    name: &str,
    inputs: &[Tensor],
) -> (Vec<Outcome>, Vec<Stats>) {
    let context = tc_dialects::new_context();
    let mut module = import(&context, source);
    let outcomes = interp::run(function(&module, name), inputs)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    for (route, pipeline) in [
        ("imap", "convert-tc-to-imap"),
        ("canonical", "canonicalize,cse"),
        ("fused", "imap-fuse,canonicalize,cse"),
    ] {
        run_passes(&context, &mut module, pipeline);
        let converted = interp::run(function(&module, name), inputs)
            .unwrap_or_else(|error| panic!("{what}, {route}: {error}"));
        same(&format!("{what}, {route}"), &outcomes, &converted);
    }
    let compiled = cpu::BACKEND
        .compile(&module, &Codegen::default())
        .and_then(|program| program.load())
        .unwrap_or_else(|error| panic!("{what}, native: {error}"));
    let compiled = compiled.function(name).expect("the code has the function");
    let inputs: Vec<_> = inputs.iter().collect();
    let found = compiled.run(&inputs).unwrap_or_else(|error| panic!("{what}, native: {error}"));
    let stats = outcomes.iter().zip(&found).map(|(outcome, found)| {
        interp::compare(outcome, found).unwrap_or_else(|error| panic!("{what}, native: {error}"))
    });
    let stats = stats.collect();
    (outcomes, stats)
}

/// The parameters of a function: name, element type, and shape at the sizes given.
fn parameters(
    source: &str,
    name: &str,
    sizes: &BTreeMap<String, usize>,
) -> Vec<(String, ElementType, Vec<usize>)> {
    let context = tc_dialects::new_context();
    let module = import(&context, source);
    let def = Def::cast(function(&module, name)).expect("a comprehension");
    def.parameters()
        .into_iter()
        .map(|parameter| {
            let element = ElementType::of(parameter.value.r#type(), false).expect("a known type");
            let shape = parameter.sizes.iter().map(|size| match size {
                Size::Variable(name) => sizes[*name],
                Size::Constant(extent) => *extent as usize,
            });
            (parameter.name.to_string(), element, shape.collect())
        })
        .collect()
}

/// The numbers of nested lists, and their shape.
fn flatten(value: &Value) -> (Vec<usize>, Vec<f64>) {
    match value {
        Value::Array(values) => {
            let parts: Vec<_> = values.iter().map(flatten).collect();
            let mut shape = vec![values.len()];
            shape.extend(parts.first().map(|(shape, _)| shape.clone()).unwrap_or_default());
            (shape, parts.into_iter().flat_map(|(_, numbers)| numbers).collect())
        }
        Value::Bool(value) => (Vec::new(), vec![f64::from(u8::from(*value))]),
        _ => (Vec::new(), vec![value.as_f64().expect("a number")]),
    }
}

fn tensor(element: ElementType, value: &Value) -> Tensor {
    let (shape, numbers) = flatten(value);
    let mut tensor = Tensor::zeros(element, &shape).expect("a small tensor");
    for (position, number) in numbers.into_iter().enumerate() {
        let number =
            if element.is_float() { Number::Float(number) } else { Number::Signed(number as i64) };
        tensor.set(position, number);
    }
    tensor
}

#[test]
fn conformance_cases_have_the_expected_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/tc/eval.jsonl");
    let text = fs::read_to_string(path).expect("the cases are in the repository");
    let mut num_cases = 0;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let what = case["name"].as_str().expect("a case has a name");
        let (source, name) = (case["tc"].as_str().unwrap(), case["def"].as_str().unwrap());
        let sizes: BTreeMap<String, usize> = case["sizes"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, size)| (name.clone(), size.as_u64().unwrap() as usize))
            .collect();
        let inputs: Vec<_> = parameters(source, name, &sizes)
            .into_iter()
            .map(|(name, element, _)| {
                let value =
                    case["inputs"].get(&name).or_else(|| case["initial_outputs"].get(&name));
                tensor(element, value.expect("a case has all inputs"))
            })
            .collect();
        let (outcomes, _) = all_routes(what, source, name, &inputs);
        let expected = case["expected"].as_object().unwrap();
        assert_eq!(outcomes.len(), expected.len(), "{what}");
        for (outcome, (output, value)) in outcomes.iter().zip(expected) {
            let (shape, numbers) = flatten(value);
            assert_eq!(outcome.shape(), shape, "{what}");
            for (position, number) in numbers.into_iter().enumerate() {
                let found = outcome.number(position).to_f64();
                let distance = (found - number).abs();
                assert!(
                    distance <= outcome.error_bound(position),
                    "{what}: {found} is not {number}"
                );
            }
            let origin = case["origins"].get(output).map(|it| flatten(it).1);
            let origin = origin.unwrap_or_else(|| vec![0.0; shape.len()]);
            let found: Vec<_> = outcome.origin().iter().map(|first| *first as f64).collect();
            assert_eq!(found, origin, "{what}");
        }
        num_cases += 1;
    }
    assert!(num_cases > 40);
}

/// Random numbers; those of float types divided by 3, so that arithmetic rounds.
fn input(element: ElementType, shape: &[usize], seed: u64) -> Tensor {
    let mut tensor = random(element, shape, seed, None).unwrap();
    if element.is_float() {
        let numbers: Vec<_> = tensor.numbers().map(Number::to_f64).collect();
        for (position, number) in numbers.into_iter().enumerate() {
            tensor.set(position, Number::Float(number / 3.0));
        }
    }
    tensor
}

/// Programs whose arithmetic rounds, branches and converts, on random inputs.
const PROGRAMS: &[(&str, &str)] = &[
    ("matmul", "def f(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }"),
    (
        "relu of a product",
        "def f(float(M, K) A, float(K, N) B, float(N) b) -> (C) {
            C(m, n) +=! A(m, k) * B(k, n)
            C(m, n) = fmax(C(m, n) + b(n), 0.0)
        }",
    ),
    (
        "softmax",
        "def f(float(M, N) A) -> (top, E, total, O) {
            top(m) max=! A(m, n)
            E(m, n) = exp(A(m, n) - top(m))
            total(m) +=! E(m, n)
            O(m, n) = E(m, n) / total(m)
        }",
    ),
    (
        "choice",
        "def f(float(N) A, float(N) B) -> (O) {
            O(i) = (A(i) * 3.0 > B(i)) ? A(i) * B(i) : A(i) / (B(i) + 2.0)
        }",
    ),
    (
        "guarded read",
        "def f(float(N) A) -> (O) { O(i) = i + 1 < N ? A(i + 1) - A(i) : 0.0 where i in 0:N }",
    ),
    ("product", "def f(float(M, N) A) -> (P) { P(m) *=! A(m, n) + 1.0 }"),
    (
        "built-ins",
        "def f(float(N) A) -> (O) {
            O(i) = erf(A(i)) + tanh(A(i) * 2.0) * sqrt(fabs(A(i))) + floor(A(i) * 10.0)
        }",
    ),
    (
        "half",
        "def f(float(M, N) A, float(N) B) -> (O) { O(m) +=! float16(A(m, n)) * float16(B(n)) }",
    ),
    (
        "double",
        "def f(float(M, N) A, float(N) B) -> (O) { O(m) +=! double(A(m, n)) / (double(B(n)) + 2.0) }",
    ),
    (
        "integers",
        "def f(int32(N) A, uint8(N) B, int64(N) C) -> (O, P, S) {
            O(i) = (A(i) * 1000000007 + 5) / (A(i) + 1) + A(i) % 3
            P(i) = B(i) / uint8(3) - B(i) * B(i)
            S min=! C(i) * int64(A(i))
        }",
    ),
    (
        "casts",
        "def f(float(N) A, int32(N) I) -> (O, P) {
            O(i) = int8(A(i) * 1000.0) + int8(I(i))
            P(i) = float(I(i)) / 7.0 + float(uint8(A(i) * 400.0))
        }",
    ),
];

#[test]
fn native_code_stays_within_the_bounds() {
    let sizes = [("M", 9), ("N", 50), ("K", 33)];
    let sizes = sizes.map(|(name, size)| (name.to_string(), size)).into_iter().collect();
    for (what, source) in PROGRAMS {
        let inputs: Vec<_> = parameters(source, "f", &sizes)
            .into_iter()
            .zip(1..)
            .map(|((_, element, shape), seed)| input(element, &shape, seed))
            .collect();
        let (outcomes, stats) = all_routes(what, source, "f", &inputs);
        for (outcome, stats) in outcomes.iter().zip(stats) {
            // A bound that says nothing would hold as well.
            assert!(10 * stats.num_uncertain <= outcome.num_elements(), "{what}: {stats:?}");
        }
    }
}
