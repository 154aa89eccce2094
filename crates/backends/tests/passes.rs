//! The HLO modules of this repository: the interpreter computes what JAX did, after every pass of the CPU
//! pipeline too, and so does compiled code.
//!
//! `TC_ALL_PASSES=1` adds the modules that take longest, and those that XLA has optimized.

mod support {
    pub mod passes;
}

use melior::ir::Module;
use std::path::{Path, PathBuf};
use support::passes::{Stats, check_passes};
use tc_backends::{
    Codegen, Program as _, Request,
    interp::compare,
    languages::hlo::{Array, Program, arrays},
    program::Layout,
    runtime::{Tensor, npy},
};
use tc_dialects::{
    element::ElementKind,
    hlo::{self, ArrayShape},
    report,
};
use tc_passes::run_pipeline;

/// Cases that are interpreted for seconds per pass.
const SLOW: &[&str] = &[
    "attention_rope",
    "conv2d_variants",
    "conv_bias_relu_pool",
    "conv_transpose_grad",
    "cumulative",
    "lenet_grad",
    "lstm_scan_grad",
    "moe_top2",
    "nerf",
    "resnet_block",
    "transformer_encoder",
];

/// Expected errors of modules in which rounding decides the number of iterations of a loop. The loop
/// belongs to the program, or to a sort whose keys differ by rounding only.
const OPEN: &[(&str, &str)] = &[
    ("mandelbrot", "module.hlo:117:3: error: 'scf.while' op"),
    ("mandelbrot", "optimized.hlo:152:3: error: 'scf.while' op"),
    ("sort_single", "module.hlo:58:8: error: 'scf.while' op"),
    ("beam_search", "module.hlo:196:3: error: 'scf.while' op"),
];

/// Results that JAX does not compute by the rules of HLO: by a library with another algorithm, or with
/// subnormal numbers as zeros.
const OTHER: &[(&str, &[usize])] =
    &[("cholesky_solve", &[0]), ("cumulative", &[7]), ("fft_all", &[0, 1, 2, 3, 4])];

/// Passes that change some module of either half.
const CHANGING: &[&str] = &[
    "canonicalize",
    "cse",
    "convert-results-to-destinations",
    "drop-argument-attributes",
    "unshare-empty-tensors",
    "bufferize-chains",
    "one-shot-bufferize",
    "double-buffer-loops",
    "imap-schedule-loops",
    "imap-vectorize",
    "convert-imap-to-scf",
    "deallocate-local-buffers",
    "ownership-based-buffer-deallocation",
    "convert-imap-to-arith",
    "limit-vectorization",
];

/// An array from a file of the same bytes.
fn load(path: &Path, shape: &ArrayShape) -> Array {
    let tensor = npy::load(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Array { shape: shape.clone(), bytes: tensor.bytes().to_vec() }
}

/// Floats between -1 and 1, small integers, and truth values.
fn draw(number: usize, shape: &ArrayShape) -> Array {
    let part = shape.element_type.part();
    let count = shape.num_bytes().expect("a small array") as usize / part.bytes();
    let mut bytes = Vec::new();
    for at in 0..count {
        let bits = ((at + 1000 * number + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        let value = match part.kind() {
            ElementKind::Pred => bits & 1,
            ElementKind::Signed | ElementKind::Unsigned => bits & 3,
            _ => part.encode_float(bits as f64 / (1u64 << 52) as f64 - 1.0),
        };
        bytes.extend_from_slice(&value.to_le_bytes()[..part.bytes()]);
    }
    Array { shape: shape.clone(), bytes }
}

/// The tensors that hold an array in compiled code.
fn parts(array: &Array) -> Vec<Tensor> {
    let is_complex = array.shape.element_type.is_complex();
    let layout = if is_complex { Layout::Complex } else { Layout::Plain };
    let value = array.to_tensor().expect("there is memory");
    let parts = layout.split(&value, Vec::new).expect("there is memory");
    parts.into_iter().map(|it| it.into_owned()).collect()
}

/// Checks a module, whose parameters and results are in files beside it. Without files the parameters are
/// drawn, and only the levels are compared with each other. `Ok(None)`: it is not for the CPU.
fn check(path: &Path) -> Result<Option<Stats>, String> {
    let folder = path.parent().expect("a file is in a folder");
    let case = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read(path).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (source, module, _) = hlo::read(&name, text);
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let Some(module) = module else { return Ok(None) };
    let program = Program::new(&context, source, module);
    let Ok(mut lowered) = program.convert() else { return Ok(None) };

    let [parameters, results] = arrays(program.module());
    let inputs = parameters.into_iter().enumerate().map(|(number, shape)| {
        let file = folder.join(format!("in{number}.npy"));
        if file.exists() { load(&file, shape) } else { draw(number, shape) }
    });
    let arrays: Vec<_> = inputs.collect();
    let values = arrays.iter().map(|it| it.to_tensor().expect("there is memory"));
    let outcomes = program.interpret(&Request::default(), &values.collect::<Vec<_>>());
    let outcomes = outcomes.map_err(|error| match error {
        tc_backends::Error::Interpret(error) => error.to_string(),
        error => error.to_string(),
    })?;
    let inputs: Vec<_> = arrays.iter().flat_map(parts).collect();
    let other = OTHER.iter().find(|(name, _)| *name == case).map_or(&[][..], |(_, list)| list);
    let mut rest = outcomes.iter();
    for (number, shape) in results.into_iter().enumerate() {
        let file = folder.join(format!("out{number}.npy"));
        let outcomes = rest.by_ref().take(shape.element_type.num_parts());
        if !file.exists() || other.contains(&number) {
            outcomes.for_each(drop);
            continue;
        }
        for (outcome, expected) in outcomes.zip(&parts(&load(&file, shape))) {
            compare(outcome, expected).map_err(|error| format!("JAX, result {number} {error}"))?;
        }
    }

    let said = |error: String| {
        let received = received.borrow();
        let first = received.iter().find(|it| it.is_error());
        first.map_or(error, |it| it.message.clone())
    };
    run_pipeline(&mut lowered, "canonicalize,cse,imap-fuse,canonicalize,cse")
        .map_err(|error| said(error.to_string()))?;
    let options = Codegen::default();
    let (fused, mut stats) = check_passes(&lowered, "main", &inputs, &options).map_err(said)?;
    for (number, (outcome, fused)) in outcomes.iter().zip(&fused).enumerate() {
        let fused = fused.to_tensor().map_err(|error| error.to_string())?;
        compare(outcome, &fused).map_err(|error| format!("fused: result {number} {error}"))?;
        stats.uncertain +=
            (0..outcome.num_elements()).filter(|it| outcome.is_uncertain(*it)).count();
        stats.elements += outcome.num_elements();
    }
    Ok(Some(stats))
}

/// Checks files, at least so many of which have to be compiled. Each of some passes has to change one.
fn check_all<'f>(files: impl Iterator<Item = &'f PathBuf>, least: usize, changing: &[&str]) {
    let (mut all, mut failures) = (Stats::default(), Vec::new());
    for path in files {
        let case = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let open = OPEN.iter().find(|(name, error)| *name == case && error.starts_with(&*file));
        let start = std::time::Instant::now();
        let says = |error: &str, expected: &str| {
            let expected = format!("{expected} cannot be run: the condition depends on rounding");
            error.lines().next().is_some_and(|line| line.ends_with(&expected))
        };
        match (check(path), open) {
            (Err(error), Some((_, expected))) if says(&error, expected) => {}
            (Err(error), _) => failures.push(format!("{}: {error}", path.display())),
            (Ok(_), Some(_)) => failures.push(format!("{}: it can be run", path.display())),
            (Ok(stats), None) => {
                all.add(&stats.unwrap_or_default());
            }
        }
        println!("{} {:.2} s", path.display(), start.elapsed().as_secs_f64());
    }
    println!("{all:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(all.modules >= least, "{all:?}");
    assert!(all.uncertain * 10 < all.elements, "{all:?}");
    for pass in changing {
        let changed = all.changes.iter().any(|(name, _)| name.contains(pass));
        assert!(changed, "'{pass}' changes no module: {all:?}");
    }
}

fn files_in(folder: &str, name: &str) -> Vec<PathBuf> {
    let all = std::env::var_os("TC_ALL_PASSES").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let mut files = Vec::new();
    let mut pending = vec![root];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder exists") {
            let path = entry.expect("the folder can be read").path();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && file != "hostile" && (all || !SLOW.contains(&&*file)) {
                pending.push(path);
            } else if file.ends_with(".hlo") && (name.is_empty() || file == name) {
                files.push(path);
            }
        }
    }

    files.sort();
    files
}

/// Two tests, which run side by side.
#[test]
fn conformance_modules_keep_their_meaning_first_half() {
    // Few loops give the next iteration a buffer that they allocate.
    let deallocation = ["buffer-deallocation-simplification", "bufferization-lower-deallocations"];
    let changing = [CHANGING, &["copy-shared-destinations"], &deallocation].concat();
    check_all(files_in("conformance/hlo", "module.hlo").iter().step_by(2), 30, &changing);
}

#[test]
fn conformance_modules_keep_their_meaning_second_half() {
    check_all(files_in("conformance/hlo", "module.hlo").iter().skip(1).step_by(2), 30, CHANGING);
}

#[test]
fn small_modules_keep_their_meaning() {
    check_all(files_in("lit/hlo", "").iter(), 7, &[]);
}

#[test]
fn optimized_modules_keep_their_meaning() {
    if std::env::var_os("TC_ALL_PASSES").is_some() {
        check_all(files_in("conformance/hlo", "optimized.hlo").iter(), 70, CHANGING);
    }
}

/// A product of matrices and its row sums, for all sizes, with loops for two threads.
#[test]
fn loops_of_threads_keep_their_meaning() {
    let text = "
func.func @f(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xf32>
  %K = tensor.dim %A, %c1 : tensor<?x?xf32>
  %N = tensor.dim %B, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%M, %N) : tensor<?x?xf32>
  %C = imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1]
      runtime(%M, %N, %K : index, index, index)
      ins(%A[m, k], %B[k, n] : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e[m, n] : tensor<?x?xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<?x?xf32>
  %r = tensor.empty(%M) : tensor<?xf32>
  %S = imap.generic (m)[n]{M, N} domain: m in [0, M - 1], n in [0, N - 1]
      runtime(%M, %N : index, index) ins(%C[m, n] : tensor<?x?xf32>) outs(%r[m] : tensor<?xf32>) fold [add f32] {
  ^bb0(%a: f32):
    imap.yield %a : f32
  } -> tensor<?xf32>
  return %C, %S : tensor<?x?xf32>, tensor<?xf32>
}";
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("it parses");
    let matrix = |rows: usize, columns: usize| {
        let values: Vec<_> = (0..rows * columns).map(|at| (at % 7) as f32 - 3.0).collect();
        Tensor::from_values(&[rows, columns], &values).expect("as many values")
    };
    let options = Codegen { threads: 2, ..Codegen::default() };
    for [m, k, n] in [[5, 7, 9], [1, 1, 1], [18, 3, 33], [4, 0, 5], [0, 2, 3]] {
        let (_, stats) = check_passes(&module, "f", &[matrix(m, k), matrix(k, n)], &options)
            .unwrap_or_else(|error| panic!("{m}, {k}, {n}: {error}"));
        assert!(stats.changes.contains_key("outline-parallel-loops"), "{stats:?}");
        assert_eq!(stats.uncertain, 0);
    }
}
