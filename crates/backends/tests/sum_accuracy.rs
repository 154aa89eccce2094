//! The error of long floating-point sums, against exact sums and against pairwise summation
//! of a contiguous copy of the same terms.

use melior::{ir::Module, pass::PassManager, utility::parse_pass_pipeline};
use tc_backends::{Codegen, Machine, Request, Session, Source, cpu, runtime::Tensor};

/// The error of a compiled sum is at most this multiple of the error of pairwise summation.
const BOUND: f64 = 4.0;

/// The sum as `np.sum` computes it: halves, down to blocks of at most 128 terms, which are
/// summed in eight partial sums.
fn pairwise(terms: &[f32]) -> f32 {
    if 128 < terms.len() {
        let middle = terms.len() / 2;
        let (first, second) = terms.split_at(middle - middle % 8);
        return pairwise(first) + pairwise(second);
    }
    let mut sums = [0.0; 8];
    let chunks = terms.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, term)| *sum += term);
    }
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}

/// Random numbers: of one sign, of both signs with magnitudes over seven decades, and far
/// from zero. Each stream has numbers of its own: a product of equal ones is a square.
fn numbers(kind: usize, stream: usize, count: usize) -> Vec<f32> {
    let mut state = (stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + kind as u64 + 1;
    // The upper bits of a linear congruential generator (Knuth's MMIX).
    let mut unit = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    };
    let number = |_| match kind {
        0 => unit(),
        1 => (unit() - 0.5) * 10.0_f32.powf(7.0 * unit() - 4.0),
        _ => 1000.0 + unit(),
    };
    (0..count).map(number).collect()
}
const KINDS: usize = 3;

/// Sums of products of two numbers each.
struct Sums {
    exact: Vec<f64>,
    /// The root of the summed squares of the errors of pairwise summation.
    error: f64,
}

impl Sums {
    fn new(count: usize, terms: impl Fn(usize) -> Vec<[f32; 2]>) -> Self {
        let (mut exact, mut error) = (Vec::new(), 0.0);
        for place in 0..count {
            let terms = terms(place);
            let sum: f64 = terms.iter().map(|[a, b]| f64::from(*a) * f64::from(*b)).sum();
            let rounded: Vec<f32> = terms.iter().map(|[a, b]| a * b).collect();
            error += (f64::from(pairwise(&rounded)) - sum).powi(2);
            exact.push(sum);
        }
        Self { exact, error: error.sqrt() }
    }

    fn check(&self, what: &str, found: &[f32]) {
        assert_eq!(found.len(), self.exact.len());
        let pairs = found.iter().zip(&self.exact);
        let squares: f64 = pairs.map(|(found, exact)| (f64::from(*found) - exact).powi(2)).sum();
        let (ours, pairwise) = (squares.sqrt(), self.error);
        println!("{what}: error {ours:.3e}, pairwise {pairwise:.3e}, ratio {:.2}", ours / pairwise);
        assert!(ours <= BOUND * pairwise, "{what}: error {ours:e}, pairwise {pairwise:e}");
    }
}

/// This machine, and older ones that it can stand for, with one thread and with two.
fn targets() -> Vec<Codegen> {
    let mut found = vec![Codegen::default(), Codegen { threads: 2, ..Codegen::default() }];
    if Machine::host().triple.starts_with("x86_64") {
        found.push(Codegen { machine: Machine::cpu("x86-64"), ..Codegen::default() });
    }
    found
}

/// Runs a comprehension whose sizes are dynamic and compares its results.
fn check_tc(
    what: &str,
    source: &str,
    shapes: &[&[usize]],
    terms: impl Fn(&[Vec<f32>], usize) -> Vec<[f32; 2]>,
) {
    let context = tc_dialects::new_context();
    tc_passes::register();
    melior::utility::register_all_passes();
    let module = tc_dialects::tc::import::import(&context, "test.tc", source.as_bytes(), false);
    let mut module: Module = module.expect("the program is correct");
    let manager = PassManager::new(&context);
    let passes = "builtin.module(tc-infer-ranges,convert-tc-to-imap,canonicalize,cse,imap-fuse)";
    parse_pass_pipeline(manager.as_operation_pass_manager(), passes).expect("it parses");
    manager.run(&mut module).expect("the passes succeed");
    let compiled = targets().into_iter().map(|options| {
        let program = cpu::BACKEND.compile(&module, &options).expect("the module lowers");
        (options, program.load().expect("the code loads"))
    });
    let compiled: Vec<_> = compiled.collect();
    for kind in 0..KINDS {
        let inputs = random_inputs(kind, shapes);
        let tensors: Vec<_> = shapes
            .iter()
            .zip(&inputs)
            .map(|(shape, values)| Tensor::from_values(shape, values).expect("it fits"))
            .collect();
        let tensors: Vec<_> = tensors.iter().collect();
        let mut sums = None;
        for (options, compiled) in &compiled {
            let function = compiled.function("f").expect("the code has the function");
            let results = function.run(&tensors).expect("it runs");
            let found = results[0].to_values::<f32>().expect("floats");
            let sums =
                sums.get_or_insert_with(|| Sums::new(found.len(), |place| terms(&inputs, place)));
            sums.check(&format!("{what}, kind {kind}, {} threads", options.threads), &found);
        }
    }
}

fn random_inputs(kind: usize, shapes: &[&[usize]]) -> Vec<Vec<f32>> {
    let streams = shapes.iter().enumerate();
    streams.map(|(stream, shape)| numbers(kind, stream, shape.iter().product())).collect()
}

fn array(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_values(shape, values).expect("as many values")
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_values().expect("floats")
}

/// Runs an HLO module and compares its first result.
fn check_hlo(
    what: &str,
    text: &str,
    shapes: &[&[usize]],
    terms: impl Fn(&[Vec<f32>], usize) -> Vec<[f32; 2]>,
) {
    let compiled = targets().into_iter().map(|options| {
        let session = Session::with_backend(cpu::BACKEND, options.clone());
        let program = session.open(Source::new("test.hlo", text));
        let executable =
            program.and_then(|program| session.compile(&*program, &Request::default()));
        (options, executable.unwrap_or_else(|error| panic!("{what}: {error}")))
    });
    let compiled: Vec<_> = compiled.collect();
    for kind in 0..KINDS {
        let inputs = random_inputs(kind, shapes);
        let arrays: Vec<_> =
            shapes.iter().zip(&inputs).map(|(shape, values)| array(shape, values)).collect();
        let mut sums = None;
        for (options, executable) in &compiled {
            let found =
                values(&executable.run(&arrays.iter().collect::<Vec<_>>()).expect("it runs")[0]);
            let sums =
                sums.get_or_insert_with(|| Sums::new(found.len(), |place| terms(&inputs, place)));
            sums.check(&format!("{what}, kind {kind}, {} threads", options.threads), &found);
        }
    }
}

/// Terms with the factor 1, at a start and then at a distance from each other.
fn strided(values: &[f32], start: usize, stride: usize, count: usize) -> Vec<[f32; 2]> {
    (0..count).map(|term| [values[start + term * stride], 1.0]).collect()
}

const ADD: &str = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                   ROOT sum = f32[] add(a, b)\n}\n";

#[test]
fn tc_sum_of_columns() {
    let source = "def f(float(M, N) A) -> (S) { S(n) +=! A(m, n) }";
    for (m, n) in [(1500, 40), (25_000, 24), (1_000_000, 3)] {
        check_tc(&format!("columns of {m}x{n}"), source, &[&[m, n]], |inputs, place| {
            strided(&inputs[0], place, n, m)
        });
    }
}

#[test]
fn tc_sum_of_rows() {
    let source = "def f(float(M, N) A) -> (S) { S(m) +=! A(m, n) }";
    for (m, n) in [(40, 5000), (24, 100_003), (5, 1_000_000)] {
        check_tc(&format!("rows of {m}x{n}"), source, &[&[m, n]], |inputs, place| {
            strided(&inputs[0], place * n, 1, n)
        });
    }
}

#[test]
fn tc_sum_of_several_dimensions() {
    let source = "def f(float(B, H, W, C) A) -> (S) { S(c) +=! A(b, h, w, c) }";
    for [b, h, w, c] in [[32, 28, 28, 20], [2000, 1, 11, 9], [3, 3000, 3, 16], [25_000, 2, 2, 4]] {
        let what = format!("means of {b}x{h}x{w}x{c}");
        check_tc(&what, source, &[&[b, h, w, c]], |inputs, place| {
            strided(&inputs[0], place, c, b * h * w)
        });
    }
}

#[test]
fn tc_sum_in_memory() {
    // The index of the results keeps the body from being done on vectors.
    let source = "def f(float(M, N) A) -> (S) { S(n) +=! n < 3 ? 2.0 * A(m, n) : A(m, n) }";
    for (m, n) in [(25_000, 40), (3000, 700)] {
        check_tc(&format!("in memory, {m}x{n}"), source, &[&[m, n]], |inputs, place| {
            let factor = if place < 3 { 2.0 } else { 1.0 };
            (0..m).map(|row| [inputs[0][row * n + place], factor]).collect()
        });
    }
}

#[test]
fn tc_sum_of_rows_in_scalars() {
    // The index of the terms keeps the body from being done on vectors here.
    let source = "def f(float(M, N) A) -> (S) { S(m) +=! n < 3 ? 2.0 * A(m, n) : A(m, n) }";
    for (m, n) in [(40, 25_000), (5, 1_000_000)] {
        check_tc(&format!("in scalars, {m}x{n}"), source, &[&[m, n]], |inputs, place| {
            let factor = |term| if term < 3 { 2.0 } else { 1.0 };
            (0..n).map(|term| [inputs[0][place * n + term], factor(term)]).collect()
        });
    }
}

#[test]
fn tc_products() {
    let (m, n, k) = (13, 37, 25_000);
    let columns = "def f(float(K, M) A, float(K, N) B) -> (C) { C(m, n) +=! A(k, m) * B(k, n) }";
    check_tc("A^T B", columns, &[&[k, m], &[k, n]], |inputs, place| {
        (0..k).map(|k| [inputs[0][k * m + place / n], inputs[1][k * n + place % n]]).collect()
    });
    let rows = "def f(float(M, K) A, float(N, K) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }";
    check_tc("A B^T", rows, &[&[m, k], &[n, k]], |inputs, place| {
        (0..k)
            .map(|term| [inputs[0][place / n * k + term], inputs[1][place % n * k + term]])
            .collect()
    });
}

#[test]
fn tc_scalar_dot() {
    // Many short programs would be as good, so each row is a scalar of its own.
    let source = "def f(float(M, K) A, float(K) B) -> (C) { C(m) +=! A(m, k) * B(k) }";
    let (m, k) = (16, 300_000);
    check_tc("matrix times vector", source, &[&[m, k], &[k]], |inputs, place| {
        (0..k).map(|term| [inputs[0][place * k + term], inputs[1][term]]).collect()
    });
}

#[test]
fn hlo_reduce() {
    let (m, n) = (25_000, 24);
    let columns = format!(
        "HloModule m\n{ADD}ENTRY e {{\n  x = f32[{m},{n}] parameter(0)\n  zero = f32[] constant(0)\n  \
         ROOT r = f32[{n}] reduce(x, zero), dimensions={{0}}, to_apply=add\n}}"
    );
    check_hlo("reduce of rows", &columns, &[&[m, n]], |inputs, place| {
        strided(&inputs[0], place, n, m)
    });
    let [b, h, w, c] = [64, 20, 19, 24];
    let mean = format!(
        "HloModule m\n{ADD}ENTRY e {{\n  x = f32[{b},{h},{w},{c}] parameter(0)\n  \
         zero = f32[] constant(0)\n  \
         ROOT r = f32[{c}] reduce(x, zero), dimensions={{0,1,2}}, to_apply=add\n}}"
    );
    check_hlo("reduce of NHWC", &mean, &[&[b, h, w, c]], |inputs, place| {
        strided(&inputs[0], place, c, b * h * w)
    });
    let mean = format!(
        "HloModule m\n{ADD}ENTRY e {{\n  x = f32[{b},{c},{h},{w}] parameter(0)\n  \
         zero = f32[] constant(0)\n  \
         ROOT r = f32[{c}] reduce(x, zero), dimensions={{0,2,3}}, to_apply=add\n}}"
    );
    check_hlo("reduce of NCHW", &mean, &[&[b, c, h, w]], |inputs, place| {
        let terms = (0..b).flat_map(|b| (0..h * w).map(move |p| (b * c + place) * h * w + p));
        terms.map(|term| [inputs[0][term], 1.0]).collect()
    });
}

#[test]
fn hlo_scalar() {
    // Eight scalars, so that the error of one does not decide.
    let count = 131_072;
    let slices: String = (0..8)
        .map(|i| {
            let (low, high) = (i * count, (i + 1) * count);
            format!(
                "  s{i} = f32[{count}] slice(x), slice={{[{low}:{high}]}}\n  \
                 r{i} = f32[] reduce(s{i}, zero), dimensions={{0}}, to_apply=add\n  \
                 v{i} = f32[1] reshape(r{i})\n"
            )
        })
        .collect();
    let text = format!(
        "HloModule m\n{ADD}ENTRY e {{\n  x = f32[{}] parameter(0)\n  zero = f32[] constant(0)\n\
         {slices}  ROOT r = f32[8] concatenate(v0, v1, v2, v3, v4, v5, v6, v7), dimensions={{0}}\n}}",
        8 * count
    );
    check_hlo("scalars", &text, &[&[8 * count]], |inputs, place| {
        strided(&inputs[0], place * count, 1, count)
    });
}

#[test]
fn hlo_gradient_of_weights() {
    // The gradient of the weights of a 3x3 convolution: the batch and the places are summed.
    let (b, side, i, o) = (32, 28, 3, 16);
    let padded = side + 2;
    let text = format!(
        "HloModule m\nENTRY e {{\n  x = f32[{b},{padded},{padded},{i}] parameter(0)\n  \
         g = f32[{b},{side},{side},{o}] parameter(1)\n  \
         ROOT w = f32[3,3,{i},{o}] convolution(x, g), window={{size={side}x{side}}}, \
         dim_labels=f01b_i01o->01bf\n}}"
    );
    let shapes: [&[usize]; 2] = [&[b, padded, padded, i], &[b, side, side, o]];
    check_hlo("gradient of weights", &text, &shapes, |inputs, place| {
        let (out, input, x, y) = (place % o, place / o % i, place / o / i % 3, place / o / i / 3);
        let mut terms = Vec::new();
        for batch in 0..b {
            for row in 0..side {
                for column in 0..side {
                    let from = ((batch * padded + row + y) * padded + column + x) * i + input;
                    let to = ((batch * side + row) * side + column) * o + out;
                    terms.push([inputs[0][from], inputs[1][to]]);
                }
            }
        }
        terms
    });
}

#[test]
fn axon_sum() {
    let (m, n) = (25_000, 24);
    let source = "fn(x : f32 [m, n]) { reduce(+, 0, x) }";
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(Source::new("test.axon", source)).expect("it is correct");
    for dynamic in [false, true] {
        let request = Request { dynamic, ..Request::default() };
        for kind in 0..KINDS {
            let input = numbers(kind, 0, m * n);
            let results = session.call(&*program, &request, &[&array(&[m, n], &input)]);
            let results = results.expect("it runs");
            let sums = Sums::new(n, |place| strided(&input, place, n, m));
            let what = format!("Axon, kind {kind}, for all sizes: {dynamic}");
            sums.check(&what, &values(&results[0]));
        }
    }
}
