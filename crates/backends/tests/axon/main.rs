//! Axon programs: compiled code against the reference interpreter, which evaluates them element by
//! element. `TC_RANDOM_PROGRAMS` sets the number of random programs.

mod generator;
mod parametric;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/scheduled.rs"]
mod scheduled;
#[path = "../support/schedules.rs"]
mod schedules;

use generator::{random_definitions, random_program};
use proptest::prelude::*;
use scheduled::route;
use std::fmt::Write as _;
use tc_backends::{
    Program as _, Request, Session, Source,
    interp::{compare, stored},
    languages::axon::Program,
    program::Shape,
    runtime::{Tensor, random},
};
use tc_dialects::{
    axon::{self, TensorType},
    hlo::{self, Opcode},
};

/// The number of random programs: `default`, unless the environment asks for another one. A failure names
/// its program.
fn random_programs(default: u32) -> ProptestConfig {
    let asked = std::env::var("TC_RANDOM_PROGRAMS").ok();
    let cases = asked.map_or(default, |text| text.parse().expect("a number"));
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A program in a session, and the request for an entry at known shapes; or an error.
fn with_program<T>(
    text: &str,
    entry: Option<&str>,
    shapes: &[(&str, &[i64])],
    then: impl FnOnce(&Session, &Program, &Request) -> Result<T, String>,
) -> Result<T, String> {
    let session = Session::new("cpu").expect("this machine");
    then(&session, &read(&session, text)?, &request(entry, shapes))
}

fn read<'c>(session: &'c Session, text: &str) -> Result<Program<'c>, String> {
    let options = axon::Options::default();
    let program = Program::read(session.context(), "test.axon", text.into(), options);
    program.map_err(|error| error.to_string())
}

/// A request for an entry at known shapes.
fn request(entry: Option<&str>, shapes: &[(&str, &[i64])]) -> Request {
    let shape = |(name, dims): &(&str, &[i64])| Shape {
        parameter: name.to_string(),
        element: None,
        dims: dims.iter().copied().map(Some).collect(),
        source: None,
    };
    let shapes = shapes.iter().map(shape).collect();
    Request { entry: entry.map(str::to_string), shapes, ..Request::default() }
}

fn module(program: &Program, request: &Request) -> Result<hlo::Module, String> {
    let specialized = program.specialize(request).map_err(|error| error.to_string())?;
    let module = specialized.module();
    let wrong = hlo::verify(module);
    assert!(wrong.is_empty(), "{module}\n{wrong:?}");
    Ok(module.clone())
}

/// An input with random elements.
fn random_input(ty: &TensorType, seed: u64) -> Tensor {
    let dims: Vec<_> = ty.dims.iter().map(|size| *size as usize).collect();
    random(stored(ty.element), &dims, seed, None).expect("small")
}

/// Runs an entry both ways on random inputs, and compares.
fn run_both(session: &Session, program: &Program, request: &Request) -> Result<(), String> {
    let module = module(program, request)?;
    let executable = session.compile(program, request);
    let executable = executable.map_err(|error| format!("{error}\n{module}"))?;
    let specialized = program.specialize(request).map_err(|error| error.to_string())?;
    let parameters = specialized.parameters().iter().zip(0..);
    let inputs: Vec<_> = parameters.map(|((_, ty), seed)| random_input(ty, seed)).collect();
    let results = executable.run(&inputs.iter().collect::<Vec<_>>());
    let results = results.map_err(|it| it.to_string())?;
    let outcomes = program.interpret(request, &inputs).map_err(|it| it.to_string())?;
    assert_eq!(outcomes.len(), results.len());
    for (outcome, result) in outcomes.iter().zip(&results) {
        let stats = compare(outcome, result).map_err(|error| format!("{error}\n{module}"))?;
        assert!(stats.num_uncertain * 2 <= stats.num_elements, "{stats:?}\n{module}");
    }
    Ok(())
}

fn check(text: &str, entry: Option<&str>, shapes: &[(&str, &[i64])]) {
    let outcome = with_program(text, entry, shapes, run_both);
    outcome.unwrap_or_else(|error| panic!("{text}\n{error}"));
}

/// The values of an entry without parameters, by the reference interpreter.
fn values(text: &str, entry: Option<&str>) -> Vec<f64> {
    let interpret = |_: &Session, program: &Program, request: &Request| {
        program.interpret(request, &[]).map_err(|error| error.to_string())
    };
    let outcomes = with_program(text, entry, &[], interpret).unwrap_or_else(|it| panic!("{it}"));
    let tensors = outcomes.iter().map(|outcome| outcome.to_tensor().expect("small"));
    tensors.flat_map(|tensor| tensor.numbers().map(|it| it.to_f64()).collect::<Vec<_>>()).collect()
}

/// The error of a program that does not run, without the name of the file.
fn refusal(text: &str, entry: Option<&str>, shapes: &[(&str, &[i64])]) -> String {
    let outcome = with_program(text, entry, shapes, |_, program, request| module(program, request));
    let error = outcome.map(|module| module.to_string()).expect_err(text);
    error.lines().next().unwrap_or_default().trim_start_matches("test.axon:").to_string()
}

fn example(name: &str) -> String {
    let path = format!("{}/../../examples/axon/{name}.axon", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn examples_agree() {
    let attention = example("attention");
    check(&attention, Some("attention"), &[("Q", &[12, 8]), ("V", &[16, 4])]);
    check(&attention, Some("attention"), &[("Q", &[1, 1]), ("V", &[1, 1])]);
    check(&attention, Some("heads"), &[("Q", &[3, 5, 4]), ("K", &[3, 6, 4]), ("V", &[3, 6, 2])]);
    let convnet = example("convnet");
    let f: &[i64] = &[16, 16, 3, 3];
    let image: &[i64] = &[2, 3, 32, 32];
    check(&convnet, Some("convnet"), &[("image", image), ("f0", &[16, 3, 3, 3]), ("f1", f)]);
    let mlp = example("mlp");
    let sizes: &[(&str, &[i64])] =
        &[("x", &[5, 7]), ("w1", &[7, 6]), ("w2", &[6, 4]), ("w3", &[4, 3])];
    check(&mlp, Some("mlp"), sizes);
    let rnn = example("rnn");
    check(&rnn, Some("rnn"), &[("x", &[6, 2, 3])]);
    check(&rnn, Some("lstm"), &[("x", &[6, 2, 3])]);
    check(&rnn, Some("bidirectionalLstm"), &[("x", &[5, 2, 3])]);
    check(&rnn, Some("residualRnn"), &[("x", &[5, 2, 3])]);
    check(&example("softmax"), Some("softmax"), &[("x", &[9, 4])]);
}

#[test]
fn built_in_functions_mean_what_they_say() {
    assert_eq!(values("iota(size=3) + 1f, 7 - 2", None), [1., 2., 3., 5.]);
    assert_eq!(
        values("x = reshape(iota(size=6), shape=[2,3]) * 1f; transpose(x)", None),
        [0., 3., 1., 4., 2., 5.]
    );
    assert_eq!(
        values("x = iota(size=4) * 1f; concat(reverse(x), slice(x, start=1, size=2))", None),
        [3., 2., 1., 0., 1., 2.]
    );
    assert_eq!(
        values(
            "x = iota(size=3) * 1f; gather(x * 10f, concat(iota(size=2) + 9, iota(size=1)))",
            None
        ),
        [20., 20., 0.]
    );
    assert_eq!(
        values(
            "x = iota(size=4) * 1f; reduce(-, 1f, x), reduce(max, -inf, x), product(x + 1f)",
            None
        ),
        [-5., 3., 24.]
    );
    assert_eq!(
        values("loop(0f, fn(s, x) { s + x, s * x }, iota(size=4))", None),
        [6., 0., 0., 2., 9.]
    );
    assert_eq!(
        values("x = reshape(iota(size=4), shape=[2,2]) * 1f; matmul(x, x), x - sum(x)", None),
        [2., 3., 6., 11., -2., -3., 0., -1.]
    );
    assert_eq!(
        values(
            "i = fn(x : i32 s) { x }; n = i(slice(iota(size=9) - 4, size=8));
             n / 3, n / 0, slice(7 / (n - n - 2), size=1)",
            None
        ),
        [-2., -1., -1., -1., 0., 0., 0., 1., 0., 0., 0., 0., 0., 0., 0., 0., -4.]
    );
    assert_eq!(
        values("x = iota(size=2) * 1f; select(x > 0f, x + 5f, x), x == x, x != x", None),
        [0., 6., 1., 1., 0., 0.]
    );
    // Windows of 2 by 2 that start at -1, 1 and 3 in both dimensions.
    let found = values(
        "x = reshape(iota(size=16), shape=[1,1,4,4]) * 1f;
         f = reshape(iota(size=4), shape=[1,1,2,2]) * 1f;
         conv(x, f, stride=2, padding=1)",
        None,
    );
    let image = |i: i64, j: i64| {
        let inside = (0..4).contains(&i) && (0..4).contains(&j);
        if inside { (4 * i + j) as f64 } else { 0. }
    };
    let mut expected = Vec::new();
    for i in [-1, 1, 3] {
        for j in [-1, 1, 3] {
            let below = 2. * image(i + 1, j) + 3. * image(i + 1, j + 1);
            expected.push(image(i, j + 1) + below);
        }
    }
    assert_eq!(found, expected);
}

/// Each function of the table is executed, compiled and interpreted.
#[test]
fn every_function_of_the_table_runs() {
    let by_use = |name: &str| match name {
        "select" => "select(x > y, x, y)".to_string(),
        "matmul" => "matmul(x, x)".to_string(),
        "conv" => "conv(i, f, stride=[1,2], padding=1, dilation=[2,1])".to_string(),
        "concat" => "concat(x, y)".to_string(),
        "slice" => "slice(x, start=1, size=2)".to_string(),
        "map" => "map(fn(r) { r * k }, x)".to_string(),
        "reduce" => "reduce(fn(a, b) { max(a, b) * k }, 0f, x)".to_string(),
        "loop" => "loop(k, fn(s, r) { s + sum(r), r * s }, x)".to_string(),
        "gather" => "gather(x, n)".to_string(),
        "reshape" => "reshape(x, shape=[9])".to_string(),
        "iota" => "x + iota()".to_string(),
        "lstmStep" => "lstmStep(x, y, y, x, y, x, y, x, y, x, y, v, v, v, v)".to_string(),
        name if name.chars().all(char::is_alphabetic) && !matches!(name, "max" | "min") => {
            format!("{name}(x)")
        }
        "max" | "min" => format!("{name}(x, y)"),
        operator => format!("x {operator} y"),
    };
    let names: Vec<_> = axon::syntax::builtins::names();
    assert!(30 < names.len());
    for name in names {
        let text = format!(
            "f = fn(x : f32 [3,3], y : f32 [3,3], v : f32 [3], k : f32, n : i32 [4], \
             i : f32 [2,2,5,6], f : f32 [3,2,3,2]) {{ {}, x, y, v, k, n, i, f }};",
            by_use(&name)
        );
        check(&text, Some("f"), &[]);
    }
}

#[test]
fn integers_wrap_and_divide_alike() {
    for element in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"] {
        let text = format!(
            "f = fn(a : {element} [50], b : {element} [50]) {{ \
             a + b, a - b, a * b * b * a, a / b, max(a, b), min(a, b), -a, a < b, a >= b, \
             reduce(+, 0, a), reduce(*, 1, b), reduce(max, 0, a), relu(a) }};"
        );
        check(&text, Some("f"), &[]);
    }
    for element in ["f16", "bf16", "f64"] {
        let text = format!(
            "f = fn(a : {element} [50], b) {{ exp(a) + sqrt(b), log(a), a / b, reduce(+, 0f, a) }};"
        );
        check(&text, Some("f"), &[]);
    }
}

/// A name of a number stands for one of the type of each use, in the functions that use it as well.
#[test]
fn numbers_are_of_the_type_of_each_use() {
    let text = "
        two = 2;
        half = 0.5;
        both = two;
        scaled = fn(x) { k = both; x * two + k };
        f = fn(a : f32 [3], b : i8 [2,2], c : f64) {
          less = -2;
          a * half, c - half, scaled(a), scaled(b), b + less, a + less, reduce(+, both, a)
        };";
    check(text, Some("f"), &[]);
    assert_eq!(
        values("two = 2; half = 0.5; x = iota(size=3); x * two, gather(x * half, two), two", None),
        [0., 2., 4., 1., 2.]
    );
}

/// Any definition is evaluated at the types of its uses: once for each of them, and in each loop.
#[test]
fn definitions_are_evaluated_at_the_types_of_each_use() {
    let text = "
        scale = fn(k) { fn(x) { x * k } };
        half = scale(0.5);
        a, (b, two) = exp, (tanh, 1 + 1);
        f = fn(x : f32 [3], y : f64 [2,3]) {
          a, b = b, a;
          mixed, twice = sum(x), scale(two);
          steps = iota(size=3) * two;
          ones = select(x < 0, 1, 1);
          half(x), half(y), a(x), a(y), b(x), twice(y), mixed * two, gather(y, reshape(ones, shape=[3]) - 1),
          map(fn(r) { twice(half(r)) + steps }, y),
          loop(0f, fn(s, r) { s + two, map(fn(q) { twice(q) + steps * s }, y) * two }, x), steps
        };";
    check(text, Some("f"), &[]);
    assert_eq!(values("k = 2f; f = k * 3f; k = 5f;", Some("f")), [6.]);
    // In time that does not double with every definition.
    let mut text =
        "both = fn(f, g) { fn(x) { f(g(x)) * 0 + f(x) } }; c0 = 1 + 1; f0 = fn(x) { x + 1 };"
            .to_string();
    for (next, last) in (1..60).zip(0..) {
        let _ = write!(text, "c{next} = c{last} - c{last} / 2;");
    }
    for (next, last) in (1..6).zip(0..) {
        let _ = write!(text, "f{next} = both(f{last}, f{last});");
    }
    text += "pick = fn(f, g) { fn(x) { f(x) } }; g0 = exp;";
    for (next, last) in (1..60).zip(0..) {
        let _ = write!(text, "g{next} = pick(g{last}, g{last});");
    }
    text += "f = fn(x : f32 [3], y : i8 [2]) { x * c59, y + c59, f5(x), f5(y), g59(x) };";
    check(&text, Some("f"), &[]);
}

/// Which values the variables of a shape have does not matter where nothing needs them.
#[test]
fn variables_that_nothing_needs_have_no_value() {
    let runs = |text: &str, shapes: &[(&str, &[i64])]| check(text, Some("f"), shapes);
    runs("f = fn(x : f32 [a+b]) { exp(x) };", &[("x", &[5])]);
    runs("f = fn(x : f32 [n/2]) { x + iota(size=n/2) };", &[("x", &[3])]);
    runs("f = fn(x : f32 p@q) { reshape(exp(x), shape=p@q@[1]) };", &[("x", &[2, 3])]);
    let inside = "f = fn(x : f32 p@[n]@q, y : f32 [n]) { x, y };";
    runs(inside, &[("x", &[2, 3]), ("y", &[3])]);
    runs(inside, &[("x", &[3, 3]), ("y", &[3])]);
    let both = "f = fn(x : f32 [a+b], y : f32 [a*b]) { concat(x, y) };";
    runs(both, &[("x", &[5]), ("y", &[6])]);
    let refused = |text: &str, shapes: &[(&str, &[i64])], expected: &str| {
        assert!(refusal(text, Some("f"), shapes).contains(expected), "{text}");
    };
    refused(inside, &[("x", &[2, 3]), ("y", &[4])], "no sizes fit all of these places");
    refused(both, &[("x", &[5]), ("y", &[7])], "no sizes fit all of these places");
    // What depends on them has no size.
    let undetermined = "nothing determines the sizes of";
    refused("f = fn(x : f32 [n/2]) { iota(size=n) };", &[("x", &[3])], undetermined);
    refused("f = fn(x : f32 [a+b]) { slice(x, size=a) };", &[("x", &[5])], undetermined);
    refused("f = fn(x : f32 p@q) : (f32 p@q, f32 p) { x, 0f };", &[("x", &[2])], undetermined);
}

/// What is calculated with 16 bits is compared within bounds of these.
#[test]
fn halves_agree() {
    for element in ["f16", "bf16"] {
        let text = format!(
            "f = fn(q : {element} [5,4], k : {element} [6,4], v : {element} [6,3]) {{
               e = matmul(q, transpose(k)) / 2f;
               p = map(softmax, e);
               p, matmul(p, v), tanh(e), sigmoid(e), relu(e), e < 0f, sum(v), product(v),
               reduce(max, -inf, v), loop(0f, fn(s, r) {{ s / 2f + sum(r), r * s }}, k)
             }};"
        );
        check(&text, Some("f"), &[]);
    }
}

/// A function compiles itself once for each list of shapes, after its conditions have been checked.
#[test]
fn functions_are_compiled_for_what_they_are_called_with() {
    let text = "
        pair = fn(p : (f32 [m], f32 [n]), k : t []) : f32 [8] {
          x, y = p;
          concat(x, y) * k
        };";
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(Source::new("pair.axon", text)).expect("it is right");
    assert_eq!(program.inputs(None).expect("one entry"), ["p.0", "p.1", "k"]);
    let pair = |inputs: &[Tensor]| {
        session.call(&*program, &Request::default(), &inputs.iter().collect::<Vec<_>>())
    };
    let array = |values: &[f32], dims: &[usize]| Tensor::from_values(dims, values).expect("small");
    let floats = |size: usize| {
        let values: Vec<_> = (0..size).map(|value| value as f32).collect();
        array(&values, &[size])
    };
    let scalar = array(&[2.0], &[]);
    let expected = [0., 2., 4., 0., 2., 4., 6., 8.];
    for _ in 0..2 {
        let results = pair(&[floats(3), floats(5), scalar.clone()]).expect("they fit");
        assert_eq!(results, [array(&expected, &[8])]);
    }
    assert_eq!(session.num_compiled(), 1);
    let results = pair(&[floats(1), floats(7), scalar.clone()]).expect("they fit");
    let expected = [0., 0., 2., 4., 6., 8., 10., 12.];
    assert_eq!(results, [array(&expected, &[8])]);
    assert_eq!(session.num_compiled(), 2);
    let refused = |inputs: &[Tensor]| {
        let error = pair(inputs).expect_err("they do not fit").to_string();
        error.lines().next().unwrap_or_default().to_string()
    };
    assert_eq!(
        refused(&[floats(3), floats(4), scalar.clone()]),
        "pair.axon:2:19: error: what is given for 'p.1' has shape [4], expected [5]: size 4 is not 5 [AX0301]"
    );
    let other = Tensor::from_values(&[], &[2i32]).expect("small");
    assert!(refused(&[floats(3), floats(5), other]).starts_with("pair.axon:"));
    assert_eq!(refused(&[floats(3)]), "expected 3 inputs (p.0, p.1, k), found 1");
    assert_eq!(refused(&[floats(0), floats(8), scalar]), "size 0 of 'p.0' is not positive");
    assert_eq!(session.num_compiled(), 2);
}

/// The body of a loop is built once.
#[test]
fn loops_are_not_unrolled() {
    let count = |rows: i64| {
        let text = example("rnn");
        let shapes: &[(&str, &[i64])] = &[("x", &[rows, 2, 3])];
        let module = with_program(&text, Some("lstm"), shapes, |_, program, request| {
            module(program, request)
        });
        let module = module.expect("it is right");
        let entry = &module.entry().instructions;
        assert_eq!(entry.iter().filter(|it| it.opcode == Opcode::While).count(), 1);
        module.num_instructions()
    };
    assert_eq!(count(2), count(1_000_000));
}

#[test]
fn functions_are_instantiated_where_they_are_called() {
    let text = "
        twice = fn(f, x) { f(f(x)) };
        pair = fn(x) { x, twice(fn(y) { y + x }, x) };
        both = fn(g) { fn(x) { g(x) * 2 } };
        alias = twice;
        f = fn(x : f32 [n], m : i32 [2,2]) {
          a, b = pair(x);
          c, d = pair(m);
          x = x + 1f;
          h = both(fn(y) { y - x });
          x = x * 2f;
          h(a), b, c, d, alias(fn(t) { transpose(t) }, m), alias(exp, x)
        };";
    check(text, Some("f"), &[("x", &[5])]);
    // A name counts as it was defined where the function that uses it was.
    assert_eq!(values("x = 1f; f = fn(y) { x + y }; x = 10f; f(100f), x", None), [101., 10.]);
}

#[test]
fn what_does_not_run_is_refused_in_place() {
    let c = "f = fn(x : f32 [m], y : f32 [n]) : f32 [8] { concat(x, y) };";
    assert_eq!(
        refusal(c, None, &[("x", &[3]), ("y", &[4])]),
        "1:21: error: what is given for 'y' has shape [4], expected [5]: size 4 is not 5 [AX0301]"
    );
    assert_eq!(
        refusal(c, None, &[]),
        "1:8: error: 'x' is f32 [m], of which not all sizes are known [AX0401]"
    );
    assert_eq!(refusal(c, Some("g"), &[]), "there is no definition 'g'; the file has: f");
    assert_eq!(refusal(c, None, &[("z", &[1])]), "there is no parameter 'z'; the entry has: x, y");
    assert_eq!(refusal(c, None, &[("x", &[0])]), "size 0 of 'x' is not positive");
    assert_eq!(
        refusal("f = fn(x : f32 [10,*,3]) { x + 1f };", None, &[]),
        "1:8: error: 'x' is f32 [10,*,3]: ragged tensors are not executed [AX0402]"
    );
    assert_eq!(
        refusal("f = fn(g, x) { g(x) };", None, &[("x", &[1])]),
        "1:8: error: 'g' is a function, expected an entry whose parameters are tensors [AX0402]"
    );
    assert_eq!(
        refusal("f = fn() { sum(iota()) };", None, &[]),
        "1:16: error: nothing determines the sizes of what 'iota' gives [AX0401]"
    );
    assert_eq!(
        refusal(
            "f = fn(x : f32 [n], w : f32 [3]) { reduce(fn(a, b) { a + b + sum(w) }, 0f, x) };",
            None,
            &[("x", &[4])]
        ),
        "1:62: error: the function of 'reduce' uses a tensor f32 [3] from outside, expected scalars; try 'loop' [AX0402]"
    );
    assert_eq!(
        refusal("f = fn(x : i8 [4]) { x + 300 };", None, &[]),
        "1:26: error: 300 does not fit i8, expected -128 to 127 [AX0202]"
    );
    assert_eq!(
        refusal("f = fn(x : f32 [4]) { fn(y) { x + y } };", None, &[]),
        "1:1: error: the result has a function in it, expected tensors [AX0402]"
    );
    assert_eq!(
        refusal(
            "f = fn(x : f32 [4]) { loop((exp, 0f), fn(s, r) { g, a = s; (g, a + r), g(r) }, x) };",
            None,
            &[]
        ),
        "1:23: error: the state of a loop has a function in it, expected tensors [AX0402]"
    );
}

/// Programs that double with every definition, or nest without end, end in an error.
#[test]
fn hostile_programs_are_refused() {
    let mut text = "f0 = fn(x) { x + x };\n".to_string();
    for number in 1..40 {
        let before = number - 1;
        writeln!(text, "f{number} = fn(x) {{ f{before}(f{before}(x)) }};").expect("a string");
    }
    let error = refusal(&text, Some("f39"), &[("x", &[4])]);
    assert!(error.contains("more than 65536 calls"), "{error}");
    let mut text = "f0 = fn(x) { x + x };\n".to_string();
    for number in 1..2_000 {
        writeln!(text, "f{number} = fn(x) {{ f{}(x) }};", number - 1).expect("a string");
    }
    let error = refusal(&text, Some("f1999"), &[("x", &[4])]);
    assert!(error.contains("calls nest more than 256 deep"), "{error}");
    // Functions in functions in functions.
    let mut text =
        "g = fn(f) { fn(x) { f(f(x)) } };\nf = fn(y : f32 [2]) { g0 = exp;\n".to_string();
    for number in 1..60_000 {
        writeln!(text, "g{number} = g(g{});", number - 1).expect("a string");
    }
    let error = refusal(&format!("{text} g59999(y) }};"), Some("f"), &[]);
    assert!(error.contains("calls nest more than 256 deep"), "{error}");
}

proptest! {
    #![proptest_config(random_programs(240))]

    /// Compiled programs calculate what the reference interpreter does.
    #[test]
    fn random_programs_agree(choices in prop::collection::vec(any::<u32>(), 80)) {
        let seed = choices.iter().fold(0, |sum: u64, choice| sum.wrapping_add(u64::from(*choice)));
        let (backend, codegen, no_fuse) = route(seed);
        let session = Session::with_backend(backend, codegen);
        let request = Request { no_fuse, ..request(Some("f"), &[]) };
        let text = random_program(choices, false);
        let outcome = read(&session, &text).and_then(|it| run_both(&session, &it, &request));
        prop_assert!(outcome.is_ok(), "{}\n{}", text, outcome.unwrap_err());
    }

    /// A name stands for what is written for it, whatever types it is used at: the same with that in its place has
    /// the same value.
    #[test]
    fn definitions_mean_what_is_written_for_them(choices in prop::collection::vec(any::<u32>(), 60)) {
        let (text, inlined) = random_definitions(choices);
        prop_assert_eq!(values(&text, None), values(&inlined, None), "{}\n{}", text, inlined);
    }
}
