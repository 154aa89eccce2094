//! The interpreter on small modules in MLIR's text.

use super::*;
use melior::{Context, ir::Module, ir::operation::OperationLike};
use tc_dialects::mlir;

/// Decodes and runs the first function of a module.
pub(super) fn run_text(text: &str, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
    run_limited(text, inputs, Limits::default())
}

fn run_limited(text: &str, inputs: &[Tensor], limits: Limits) -> Result<Vec<Outcome>, Error> {
    with_function(text, |op| Interpreter::new(op)?.run(inputs, limits))
}

/// Runs something on the first function of a module.
pub(super) fn with_function<T>(text: &str, run: impl FnOnce(mlir::Op) -> T) -> T {
    let context: Context = tc_dialects::new_context();
    let module = Module::parse(&context, text).expect("the text of the test parses");
    let module_op = module.as_operation();
    assert!(module_op.verify());
    let body = mlir::body(mlir::op_ref(module_op), 0).expect("a module has a body");
    run(mlir::ops(body)[0])
}

pub(super) fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_values(shape, values).unwrap()
}

pub(super) fn ints(shape: &[usize], values: &[i32]) -> Tensor {
    Tensor::from_values(shape, values).unwrap()
}

pub(super) fn values(outcome: &Outcome) -> Vec<f64> {
    (0..outcome.num_elements()).map(|position| outcome.number(position).to_f64()).collect()
}

fn bounds(outcome: &Outcome) -> Vec<f64> {
    (0..outcome.num_elements()).map(|position| outcome.error_bound(position)).collect()
}

pub(super) fn error(text: &str, inputs: &[Tensor]) -> String {
    run_text(text, inputs).map(|_| ()).unwrap_err().to_string()
}

/// Runs scalar code on rank-0 tensors of the types given; the code uses `%0`, `%1`, .. and
/// defines `%r`.
pub(super) fn scalar(
    types: &[&str],
    code: &str,
    result: &str,
    inputs: &[Tensor],
) -> Result<Outcome, Error> {
    let arguments: Vec<_> =
        types.iter().enumerate().map(|(number, ty)| format!("%t{number}: tensor<{ty}>")).collect();
    let operands: Vec<_> = (0..types.len()).map(|number| format!("%t{number}[]")).collect();
    let tensors: Vec<_> = types.iter().map(|ty| format!("tensor<{ty}>")).collect();
    let scalars: Vec<_> =
        types.iter().enumerate().map(|(number, ty)| format!("%a{number}: {ty}")).collect();
    let ins = match types {
        [] => String::new(),
        _ => format!("ins({} : {})", operands.join(", "), tensors.join(", ")),
    };
    let text = format!(
        "func.func @f({}) -> tensor<{result}> {{
           %init = tensor.empty() : tensor<{result}>
           %out = imap.generic () {} outs(%init[] : tensor<{result}>) {{
           ^bb0({}):
             {code}
             imap.yield %r : {result}
           }} -> tensor<{result}>
           return %out : tensor<{result}>
         }}",
        arguments.join(", "),
        ins,
        scalars.join(", "),
    );
    run_text(&text, inputs).map(|mut outcomes| outcomes.remove(0))
}

const MATMUL: &str = r#"
func.func @matmul(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xf32>
  %K = tensor.dim %A, %c1 : tensor<?x?xf32>
  %N = tensor.dim %B, %c1 : tensor<?x?xf32>
  %init = tensor.empty(%M, %N) : tensor<?x?xf32>
  %C = imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]
      runtime(%M, %N, %K : index, index, index)
      ins(%A[m, k], %B[k, n] : tensor<?x?xf32>, tensor<?x?xf32>) outs(%init[m, n] : tensor<?x?xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<?x?xf32>
  return %C : tensor<?x?xf32>
}"#;

#[test]
fn matmul_of_few_bits_is_exact() {
    let a = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = floats(&[3, 2], &[1.0, 0.5, -1.0, 0.25, 2.0, 8.0]);
    let outcomes = run_text(MATMUL, &[a, b]).unwrap();
    assert_eq!(outcomes[0].shape(), [2, 2]);
    assert_eq!(values(&outcomes[0]), [5.0, 25.0, 11.0, 51.25]);
    assert_eq!(bounds(&outcomes[0]), [0.0; 4]);
}

#[test]
fn matmul_in_f32_is_within_its_bound() {
    let third = |i: usize| 1.0 / (3.0 + i as f32);
    let (m, n, k) = (3, 4, 50);
    let a: Vec<_> = (0..m * k).map(third).collect();
    let b: Vec<_> = (0..k * n).map(|i| third(i) - 0.01).collect();
    let outcome = run_text(MATMUL, &[floats(&[m, k], &a), floats(&[k, n], &b)]).unwrap().remove(0);
    let mut c = vec![0f32; m * n];
    for i in 0..m {
        for j in 0..n {
            for l in (0..k).rev() {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
    let stats = compare(&outcome, &floats(&[m, n], &c)).unwrap();
    assert_eq!((stats.num_elements, stats.num_uncertain), (12, 0));
    assert!(stats.max_error_ratio > 0.0 && stats.max_error_ratio < 1.0);
    c[5] += 1e-3;
    let mismatch = compare(&outcome, &floats(&[m, n], &c)).unwrap_err();
    assert!(matches!(&mismatch, Mismatch::Value { index, .. } if *index == [1, 1]));
    assert!(mismatch.to_string().starts_with("at [1, 1]: expected "), "{mismatch}");
    let mismatch = compare(&outcome, &floats(&[n, m], &c)).unwrap_err();
    assert_eq!(mismatch.to_string(), "expected float32[3, 4], but found float32[4, 3]");
}

#[test]
fn sizes_must_be_inside_their_bounds() {
    let empty = Tensor::zeros(ElementType::F32, &[2, 0]).unwrap();
    let b = Tensor::zeros(ElementType::F32, &[0, 2]).unwrap();
    let message = error(MATMUL, &[empty, b]);
    assert_eq!(
        message,
        "-:9:8: error: 'imap.generic' op expects 'K' in [1, 2147483647], but found 0"
    );
}

#[test]
fn reads_out_of_bounds_are_located() {
    let a = floats(&[2, 3], &[0.0; 6]);
    let b = floats(&[2, 2], &[0.0; 4]);
    assert_eq!(
        error(MATMUL, &[a, b]),
        "-:9:8: error: 'imap.generic' op is out of bounds: index [2, 0] of a tensor of shape [2, 2] \
         (at m = 0, n = 0, k = 2)"
    );
}

#[test]
fn inputs_must_fit_the_arguments() {
    let a = floats(&[2, 3], &[0.0; 6]);
    assert_eq!(
        error(MATMUL, std::slice::from_ref(&a)),
        "-:2:1: error: 'func.func' op takes 2 tensors, but found 1"
    );
    assert_eq!(
        error(MATMUL, &[a.clone(), ints(&[3, 1], &[0; 3])]),
        "-:2:1: error: 'func.func' op expects argument 1 to be float32[?, ?], but found int32[3, 1]"
    );
    assert!(error(MATMUL, &[a.clone(), floats(&[3], &[0.0; 3])]).ends_with("but found float32[3]"));
    let limits = Limits { points: 10, elements: 5 };
    let message = run_limited(MATMUL, &[a.clone(), a.clone()], limits).unwrap_err().message;
    assert_eq!(message, "'func.func' op is given 6 elements for argument 0; expected at most 5");
    let limits = Limits { points: 10, elements: 6 };
    let b = floats(&[3, 2], &[0.0; 6]);
    let message = run_limited(MATMUL, &[a, b], limits).unwrap_err().message;
    assert!(
        message.contains("needs more than the 10 points that the interpreter is given"),
        "{message}"
    );
}

#[test]
fn integer_operations() {
    let run = |code: &str, a: i32, b: i32| {
        let outcome = scalar(&["i32", "i32"], code, "i32", &[ints(&[], &[a]), ints(&[], &[b])]);
        outcome.map(|outcome| (!outcome.is_uncertain(0)).then(|| outcome.number(0)))
    };
    for (name, a, b, expected) in [
        ("arith.addi", i32::MAX, 1, i32::MIN),
        ("arith.subi", i32::MIN, 1, i32::MAX),
        ("arith.muli", 1 << 20, 1 << 12, 0),
        ("arith.divsi", -7, 2, -3),
        ("arith.floordivsi", -7, 2, -4),
        ("arith.ceildivsi", 7, 2, 4),
        ("arith.divui", -2, 2, i32::MAX),
        ("arith.ceildivui", 7, 2, 4),
        ("arith.remsi", -7, 2, -1),
        ("arith.remui", -1, 16, 15),
        ("arith.andi", 6, 3, 2),
        ("arith.ori", 6, 3, 7),
        ("arith.xori", 6, 3, 5),
        ("arith.shli", 3, 2, 12),
        ("arith.shrsi", -8, 1, -4),
        ("arith.shrui", -8, 1, i32::MAX - 3),
        ("arith.minsi", -1, 1, -1),
        ("arith.maxsi", -1, 1, 1),
        ("arith.minui", -1, 1, 1),
        ("arith.maxui", -1, 1, -1),
        ("tc.div", -7, 2, -4),
        ("tc.div", -7, 0, 0),
        ("tc.rem", -7, 2, 1),
        ("tc.rem", 7, 0, 0),
        ("tc.div unsigned", -2, 2, i32::MAX),
        ("tc.rem unsigned", -1, 16, 15),
    ] {
        let found = run(&format!("%r = {name} %a0, %a1 : i32"), a, b).unwrap();
        assert_eq!(found, Some(Number::Signed(expected.into())), "{name}");
    }
    assert_eq!(run("%r = arith.shli %a0, %a1 : i32", 1, 32).unwrap(), None);
    let message = run("%r = arith.divsi %a0, %a1 : i32", 1, 0).unwrap_err().message;
    assert_eq!(message, "'arith.divsi' op divides by zero");
    let message = run("%r = arith.remsi %a0, %a1 : i32", i32::MIN, -1).unwrap_err().message;
    assert_eq!(message, "'arith.remsi' op overflows");
    let select = "%c = arith.cmpi ult, %a0, %a1 : i32\n%r = arith.select %c, %a0, %a1 : i32";
    assert_eq!(run(select, -1, 5).unwrap(), Some(Number::Signed(5)));
}

#[test]
fn float_operations() {
    let run = |code: &str, a: f32, b: f32| {
        let inputs = [floats(&[], &[a]), floats(&[], &[b])];
        let outcome = scalar(&["f32", "f32"], code, "f32", &inputs).unwrap();
        assert!(!outcome.is_uncertain(0), "{code}");
        outcome.number(0).to_f64()
    };
    for (name, a, b, expected) in [
        ("arith.addf", 1.5, 2.0, 3.5),
        ("arith.subf", 1.5, 2.0, -0.5),
        ("arith.mulf", 1.5, 2.0, 3.0),
        ("arith.divf", 1.5, 2.0, 0.75),
        ("arith.remf", -7.5, 2.0, -1.5),
        ("arith.minnumf", f32::NAN, 2.0, 2.0),
        ("arith.maxnumf", 1.0, f32::NAN, 1.0),
        ("arith.minimumf", 1.0, 2.0, 1.0),
        ("arith.maximumf", 1.0, 2.0, 2.0),
        ("math.copysign", 1.0, -2.0, -1.0),
        ("math.powf", 3.0, 2.0, 9.0),
        ("math.atan2", 0.0, 1.0, 0.0),
    ] {
        assert_eq!(run(&format!("%r = {name} %a0, %a1 : f32"), a, b), expected, "{name}");
    }
    for (name, a, expected) in [
        ("arith.negf", 1.5, -1.5),
        ("math.absf", -1.5, 1.5),
        ("math.floor", -1.5, -2.0),
        ("math.ceil", 1.5, 2.0),
        ("math.trunc", -1.5, -1.0),
        ("math.round", 2.5, 3.0),
        ("math.roundeven", 2.5, 2.0),
        ("math.sqrt", 9.0, 3.0),
        ("math.exp", 0.0, 1.0),
        ("math.log", 1.0, 0.0),
        ("math.cos", 0.0, 1.0),
        ("math.rsqrt", 4.0, 0.5),
    ] {
        assert_eq!(run(&format!("%r = {name} %a0 : f32"), a, 0.0), expected, "{name}");
    }
    assert_eq!(run("%r = math.fma %a0, %a1, %a1 : f32", 3.0, 2.0), 8.0);
    assert_eq!(run(r#"%r = imap.builtin "hypot"(%a0, %a1) : f32"#, 3.0, 4.0), 5.0);
    assert_eq!(run(r#"%r = imap.builtin "exp10"(%a0) : f32"#, 2.0, 0.0), 100.0);
    let constant = "%c = arith.constant 0.1 : f32\n%r = arith.maximumf %a0, %c : f32";
    assert_eq!(run(constant, 0.0, 0.0), f64::from(0.1f32));
}

#[test]
fn conversions() {
    let run = |from: &str, to: &str, code: &str, input: &Tensor| {
        let outcome = scalar(&[from], code, to, std::slice::from_ref(input)).unwrap();
        (!outcome.is_uncertain(0)).then(|| outcome.number(0).to_f64())
    };
    let (minus, large, half) = (ints(&[], &[-2]), ints(&[], &[300]), floats(&[], &[2.5]));
    for (from, to, name, input, expected) in [
        ("i32", "i64", "arith.extsi", &minus, Some(-2.0)),
        ("i32", "i64", "arith.extui", &minus, Some(4294967294.0)),
        ("i32", "i8", "arith.trunci", &large, Some(44.0)),
        ("i32", "i1", "arith.trunci", &minus, Some(0.0)),
        ("i32", "f32", "arith.sitofp", &minus, Some(-2.0)),
        ("i32", "f64", "arith.uitofp", &minus, Some(4294967294.0)),
        ("f32", "i32", "arith.fptosi", &half, Some(2.0)),
        ("f32", "i8", "arith.fptoui", &half, Some(2.0)),
        ("f32", "f64", "arith.extf", &half, Some(2.5)),
        ("f32", "f16", "arith.truncf", &half, Some(2.5)),
    ] {
        let code = format!("%r = {name} %a0 : {from} to {to}");
        assert_eq!(run(from, to, &code, input), expected, "{code}");
    }
    let code = "%i = arith.index_cast %a0 : i32 to index\n%r = arith.index_cast %i : index to i64";
    assert_eq!(run("i32", "i64", code, &minus), Some(-2.0));
    let code =
        "%i = arith.index_castui %a0 : i32 to index\n%r = arith.index_cast %i : index to i64";
    assert_eq!(run("i32", "i64", code, &minus), Some(4294967294.0));
    let too_large = floats(&[], &[1e10]);
    assert_eq!(run("f32", "i32", "%r = arith.fptosi %a0 : f32 to i32", &too_large), None);
    // A cast that saturates does not look at the conversion out of range.
    let saturating = "%n = arith.fptosi %a0 : f32 to i32
        %limit = arith.constant 2147483648.0 : f32
        %most = arith.constant 2147483647 : i32
        %c = arith.cmpf oge, %a0, %limit : f32
        %r = arith.select %c, %most, %n : i32";
    assert_eq!(run("f32", "i32", saturating, &too_large), Some(2147483647.0));
}

#[test]
fn unsigned_and_bool_tensors() {
    let text = "
func.func @f(%A: tensor<2xi8> {tc.unsigned}, %B: tensor<2xi1>) -> (tensor<2xi8> {tc.unsigned}, tensor<2xi1>) {
  %init = tensor.empty() : tensor<2xi8>
  %none = tensor.empty() : tensor<2xi1>
  %C:2 = imap.generic (i) domain: i in [0, 1] ins(%A[i], %B[i] : tensor<2xi8>, tensor<2xi1>)
      outs(%init[i], %none[i] : tensor<2xi8>, tensor<2xi1>) {
  ^bb0(%a: i8, %b: i1):
    %two = arith.constant 2 : i8
    %q = arith.divui %a, %two : i8
    %true = arith.constant true
    %n = arith.xori %b, %true : i1
    imap.yield %q, %n : i8, i1
  } -> tensor<2xi8>, tensor<2xi1>
  return %C#0, %C#1 : tensor<2xi8>, tensor<2xi1>
}";
    let bytes = Tensor::from_values(&[2], &[200u8, 7]).unwrap();
    let bools = Tensor::from_values(&[2], &[true, false]).unwrap();
    let outcomes = run_text(text, &[bytes, bools]).unwrap();
    assert_eq!(outcomes[0].to_tensor().unwrap().to_values::<u8>().unwrap(), [100, 3]);
    assert_eq!(outcomes[1].to_tensor().unwrap().to_values::<bool>().unwrap(), [false, true]);
    assert!(compare(&outcomes[1], &Tensor::from_values(&[2], &[false, true]).unwrap()).is_ok());
    assert!(compare(&outcomes[1], &Tensor::from_values(&[2], &[true, true]).unwrap()).is_err());
}

#[test]
fn runtime_variables_come_from_tensors() {
    // A look-up per row, and a row that depends on it.
    let text = "
func.func @gather(%T: tensor<4x2xi32>, %I: tensor<3xi32>) -> tensor<3x2xi32> {
  %init = tensor.empty() : tensor<3x2xi32>
  %R = imap.generic (i, j){r} domain: i in [0, 2], j in [0, 1], r in [0, 3]
      runtime(%I[i] : tensor<3xi32>) ins(%T[r, j] : tensor<4x2xi32>) outs(%init[i, j] : tensor<3x2xi32>) {
  ^bb0(%t: i32):
    imap.yield %t : i32
  } -> tensor<3x2xi32>
  return %R : tensor<3x2xi32>
}";
    let table = ints(&[4, 2], &[0, 1, 10, 11, 20, 21, 30, 31]);
    let outcome = run_text(text, &[table.clone(), ints(&[3], &[3, 0, 2])]).unwrap().remove(0);
    assert_eq!(values(&outcome), [30.0, 31.0, 0.0, 1.0, 20.0, 21.0]);
    assert_eq!(
        error(text, &[table, ints(&[3], &[3, 4, 2])]),
        "-:4:8: error: 'imap.generic' op expects 'r' in [0, 3], but found 4 (at i = 1, j = 0)"
    );
}

#[test]
fn constant_tensors_have_their_elements() {
    let text = "
func.func @f() -> (tensor<2x2xi32>, tensor<3xf32>, tensor<2xi1>, tensor<0xf64>, tensor<2xindex>) {
  %a = arith.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi32>
  %b = arith.constant dense<0.5> : tensor<3xf32>
  %c = arith.constant dense<[true, false]> : tensor<2xi1>
  %d = arith.constant dense<> : tensor<0xf64>
  %e = arith.constant dense<7> : tensor<2xindex>
  return %a, %b, %c, %d, %e : tensor<2x2xi32>, tensor<3xf32>, tensor<2xi1>, tensor<0xf64>, tensor<2xindex>
}";
    let outcomes = run_text(text, &[]).unwrap();
    let found: Vec<_> = outcomes.iter().map(values).collect();
    let expected: [&[f64]; 5] =
        [&[1.0, -2.0, 3.0, 4.0], &[0.5, 0.5, 0.5], &[1.0, 0.0], &[], &[7.0, 7.0]];
    assert_eq!(found, expected);
    let huge = "
func.func @f() -> tensor<1099511627776xf32> {
  %a = arith.constant dense<0.5> : tensor<1099511627776xf32>
  return %a : tensor<1099511627776xf32>
}";
    assert!(error(huge, &[]).contains("expected at most 268435456 elements"));
}

#[test]
fn runtime_variables_matter_where_the_body_runs() {
    // The last row of the table is past its end, but the constraint leaves it out.
    let text = "
func.func @gather(%T: tensor<4xi32>, %I: tensor<2xi32>) -> tensor<3xi32> {
  %c7 = arith.constant 7 : i32
  %empty = tensor.empty() : tensor<3xi32>
  %init = linalg.fill ins(%c7 : i32) outs(%empty : tensor<3xi32>) -> tensor<3xi32>
  %R = imap.generic (i){r} domain: i in [0, 2], r in [0, 3], i * 2 in [0, 2]
      runtime(%I[i] : tensor<2xi32>) ins(%T[r] : tensor<4xi32>) outs(%init[i] : tensor<3xi32>) {
  ^bb0(%t: i32):
    imap.yield %t : i32
  } -> tensor<3xi32>
  return %R : tensor<3xi32>
}";
    let table = ints(&[4], &[0, 10, 20, 30]);
    let outcome = run_text(text, &[table.clone(), ints(&[2], &[3, 1])]).unwrap().remove(0);
    assert_eq!(values(&outcome), [30.0, 10.0, 7.0]);
    let all = text.replace("i * 2 in [0, 2]", "i * 2 in [0, 4]");
    let message = error(&all, &[table, ints(&[2], &[3, 1])]);
    assert!(message.contains("index [2] of a tensor of shape [2] (at i = 2)"), "{message}");
}

#[test]
fn combiners_constraints_and_epilogues() {
    let text = "
func.func @f(%A: tensor<5xi32>, %I: tensor<2xi32>, %B: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) {
  %init = tensor.empty() : tensor<2xi32>
  %R:3 = imap.generic (i)[k] domain: i in [0, 1], k in [0, 5], i + k in [1, 4]
      ins(%A[i + k], %B[i] : tensor<5xi32>, tensor<2xi32>) outs(%I[i], %init[1 - i], %init[i] : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) fold [add i32 from outs 0, maxs i32, mul i32] {
  ^bb0(%a: i32, %b: i32):
    %k = imap.index range 0
    %n = arith.index_cast %k : index to i32
    imap.yield %a, %n, %a : i32, i32, i32
  } epilogue {
  ^bb0(%x: i32, %y: i32, %z: i32, %a: i32, %b: i32):
    %i = imap.index dim 0
    %n = arith.index_cast %i : index to i32
    %s = arith.addi %x, %b : i32
    %t = arith.addi %y, %n : i32
    imap.yield %s, %t, %z : i32, i32, i32
  } -> tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
  return %R#0, %R#1, %R#2 : tensor<2xi32>, tensor<2xi32>, tensor<2xi32>
}";
    let a = ints(&[5], &[2, 3, 5, 7, 11]);
    let outcomes =
        run_text(text, &[a, ints(&[2], &[100, 200]), ints(&[2], &[1000, 2000])]).unwrap();
    // k = 1..4 for i = 0, and k = 0..3 for i = 1: the elements 1 to 4 both times.
    assert_eq!(values(&outcomes[0]), [1126.0, 2226.0]);
    assert_eq!(values(&outcomes[1]), [4.0, 4.0]);
    assert_eq!(values(&outcomes[2]), [1155.0, 1155.0]);
}

#[test]
fn nothing_folded_leaves_the_start() {
    let text = "
func.func @f(%I: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %init = tensor.empty() : tensor<2xf32>
  %one = arith.constant 1.0 : f32
  %R:2 = imap.generic (i) domain: i in [0, 1], i in [1, 1] outs(%I[i], %init[i] : tensor<2xf32>, tensor<2xf32>) {
    imap.yield %one, %one : f32, f32
  } -> tensor<2xf32>, tensor<2xf32>
  %M = imap.generic (i) domain: i in [0, 1], i in [1, 1] outs(%init[i] : tensor<2xf32>) fold [maxf f32] {
    imap.yield %one : f32
  } -> tensor<2xf32>
  return %R#0, %M, %R#1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}";
    let inputs = [floats(&[2], &[5.0, 6.0])];
    assert_eq!(
        error(text, &inputs),
        "-:11:3: error: 'func.return' op returns an undefined element: [0] of result 2\n\
         -:3:11: note: 'tensor.empty' op leaves the element undefined"
    );
    let outcomes = with_function(text, |op| {
        Interpreter::new(op)?.allow_undefined_results().run(&inputs, Limits::default())
    });
    let outcomes = outcomes.unwrap();
    assert_eq!(values(&outcomes[0]), [5.0, 1.0]);
    assert_eq!(values(&outcomes[1]), [f64::NEG_INFINITY, 1.0]);
    assert!(outcomes[2].is_undefined(0) && outcomes[2].is_uncertain(0));
    assert!(!outcomes[2].is_uncertain(1));
}

#[test]
fn constraints_count_per_form() {
    let text = "
func.func @f(%A: tensor<6xi32>, %B: tensor<3xi32>, %C: tensor<6xi32>) -> (tensor<3xi32>, tensor<6xi32>) {
  %stored = imap.generic (i) domain: i in [0, 5], i + 1 in [2, 4] ins(%A[i] : tensor<6xi32>) outs(%B[i - 1] : tensor<3xi32>) {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } -> tensor<3xi32>
  %folded = imap.generic (i) domain: i in [0, 5], i + 1 in [2, 4] ins(%A[i] : tensor<6xi32>) outs(%C[i] : tensor<6xi32>) fold [add i32 from outs 0] {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } epilogue {
  ^bb0(%q: i32, %x: i32):
    %t = arith.addi %q, %q : i32
    imap.yield %t : i32
  } -> tensor<6xi32>
  return %stored, %folded : tensor<3xi32>, tensor<6xi32>
}";
    let inputs = [
        ints(&[6], &[1, 2, 3, 4, 5, 6]),
        ints(&[3], &[-1, -2, -3]),
        ints(&[6], &[10, 20, 30, 40, 50, 60]),
    ];
    let outcomes = run_text(text, &inputs).unwrap();
    // Where the constraint does not hold, the first result has no such element.
    assert_eq!(values(&outcomes[0]), [2.0, 3.0, 4.0]);
    assert_eq!(values(&outcomes[1]), [20.0, 44.0, 66.0, 88.0, 100.0, 120.0]);
    let message = error(&text.replace("[2, 4]", "[2, 5]"), &inputs);
    assert!(message.contains("stores out of bounds: position [3]"), "{message}");
}

#[test]
fn guarded_reads_and_rounding() {
    // max(x, 0) written as a condition, and an element read only where it exists.
    let text = "
func.func @f(%A: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %init = tensor.empty() : tensor<4xf32>
  %R:2 = imap.generic (i) domain: i in [0, 3] ins(%A[i] : tensor<4xf32>) outs(%init[i], %init[i] : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %third = arith.constant 0.333333333 : f32
    %scaled = arith.mulf %a, %third : f32
    %difference = arith.subf %scaled, %third : f32
    %c = arith.cmpf ogt, %difference, %zero : f32
    %relu = arith.select %c, %difference, %zero : f32
    %i = imap.index dim 0
    %j = imap.apply #imap.map<(d0) -> (d0 * 2)>(%i) : index
    %four = arith.constant 4 : index
    %inside = arith.cmpi slt, %j, %four : index
    %v = scf.if %inside -> f32 {
      %x = tensor.extract %A[%j] : tensor<4xf32>
      scf.yield %x : f32
    } else {
      scf.yield %zero : f32
    }
    imap.yield %relu, %v : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  return %R#0, %R#1 : tensor<4xf32>, tensor<4xf32>
}";
    let outcomes = run_text(text, &[floats(&[4], &[1.0, 2.0, 0.0, 1.0 + 1e-7])]).unwrap();
    assert_eq!(values(&outcomes[1]), [1.0, 0.0, 0.0, 0.0]);
    // Whether the difference is above zero is open for the last, but either way the result
    // is near zero.
    assert!(bounds(&outcomes[0]).iter().all(|bound| *bound < 1e-6));
    assert!(outcomes[0].error_bound(3) > 0.0);
    let unguarded = text.replace("%inside = arith.cmpi slt", "%inside = arith.cmpi sge");
    let message = error(&unguarded, &[floats(&[4], &[0.0; 4])]);
    assert_eq!(
        message,
        "-:17:12: error: 'tensor.extract' op is out of bounds: index [4] of a tensor of shape [4] (at i = 2)"
    );
}

#[test]
fn rounding_that_decides_is_uncertain() {
    let code = "%third = arith.constant 0.333333333 : f32
        %three = arith.constant 3.0 : f32
        %x = arith.mulf %a0, %third : f32
        %y = arith.mulf %x, %three : f32
        %r = arith.fptosi %y : f32 to i32";
    let run = |value: f32| {
        let outcome = scalar(&["f32"], code, "i32", &[floats(&[], &[value])]).unwrap();
        assert!(compare(&outcome, &ints(&[], &[value as i32])).is_ok());
        outcome.is_uncertain(0)
    };
    assert!(run(2.0));
    assert!(!run(2.5));
}

#[test]
fn an_open_condition_runs_both_sides() {
    let code = "%third = arith.constant 0.333333333 : f32
        %x = arith.mulf %a0, %third : f32
        %near = arith.constant 1.0 : f32
        %y = arith.subf %x, %near : f32
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1 : i32
        %c = arith.cmpf ogt, %y, %zero : f32
        %r = scf.if %c -> i32 {
          %q = arith.divsi %one, %a1 : i32
          scf.yield %q : i32
        } else {
          scf.yield %one : i32
        }";
    let run = |divisor: i32| {
        let inputs = [floats(&[], &[3.0]), ints(&[], &[divisor])];
        scalar(&["f32", "i32"], code, "i32", &inputs).unwrap().is_uncertain(0)
    };
    // Both sides give 1; then they differ; then one of them cannot run.
    assert!(!run(1));
    assert!(run(2));
    assert!(run(0));
}

#[test]
fn checks_outside_of_loops() {
    let text = r#"
func.func @f(%A: tensor<?xi32>) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %N = tensor.dim %A, %c0 : tensor<?xi32>
  %three = arith.constant 3 : index
  %ok = arith.cmpi sle, %N, %three : index
  imap.check %ok, "N <= 3"
  %B = tensor.cast %A : tensor<?xi32> to tensor<2xi32>
  %seven = arith.constant 7 : i32
  %F = linalg.fill ins(%seven : i32) outs(%B : tensor<2xi32>) -> tensor<2xi32>
  %R = tensor.cast %F : tensor<2xi32> to tensor<?xi32>
  return %R : tensor<?xi32>
}"#;
    let outcome = run_text(text, &[ints(&[2], &[1, 2])]).unwrap().remove(0);
    assert_eq!(values(&outcome), [7.0, 7.0]);
    assert_eq!(error(text, &[ints(&[4], &[0; 4])]), "-:7:3: error: 'imap.check' op failed: N <= 3");
    assert_eq!(
        error(text, &[ints(&[3], &[0; 3])]),
        "-:8:8: error: 'tensor.cast' op has a tensor of shape [3]; expected [2]"
    );
}

#[test]
fn what_is_not_supported_is_said() {
    let text = "
func.func @f(%A: tensor<2xi32>) -> tensor<2xi32> {
  %c = arith.constant 0 : i32
  %R = tensor.pad %A low[0] high[0] {
  ^bb0(%i: index):
    tensor.yield %c : i32
  } : tensor<2xi32> to tensor<2xi32>
  return %R : tensor<2xi32>
}";
    assert_eq!(
        error(text, &[ints(&[2], &[1, 2])]),
        "-:4:8: error: 'tensor.pad' op is not supported by the interpreter"
    );
    let text = "func.func @f(%n: index) { return }";
    assert!(error(text, &[]).contains("of type 'index'; expected a ranked tensor"));
    let text = "func.func private @f()";
    assert_eq!(error(text, &[]), "-:1:1: error: 'func.func' op expects a body of one block");
    let text = "module { module {} }";
    assert!(error(text, &[]).contains("cannot be run; expected 'tc.def' or 'func.func'"));
    let code = "%v = arith.constant 0 : i128\n%r = arith.trunci %v : i128 to i32";
    let message = scalar(&[], code, "i32", &[]).map(|_| ()).unwrap_err().message;
    assert!(message.contains("works on 'i128'"), "{message}");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| {
        let mut code = "%true = arith.constant true\n%one = arith.constant 1 : i32\n".to_string();
        for _ in 0..depth {
            code.push_str("scf.if %true {\n");
        }
        code.push_str(&"}\n".repeat(depth));
        code.push_str("%r = arith.addi %one, %one : i32");
        scalar(&[], &code, "i32", &[]).map(|_| ())
    };
    nested(100).unwrap();
    assert_eq!(nested(101).unwrap_err().message, "'scf.if' op is nested more than 100 deep");
}

const CONVOLUTION: &str = r#"
tc.def @conv(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}, %K: tensor<3xf32> {tc.name = "K", tc.sizes = [3]})
    -> (tensor<?xf32> {tc.name = "B"}) {
  %B = tc.comprehension "B"["i"] reduce ["k"] #imap.combiner<add from identity>
      domain #imap.map<(i)[k]{N} -> (i - 1), domain: i in [1, N - 2], k in [0, 2], N in [1, 2147483647]> {
  ^bb0(%i: index, %k: index):
    %j = imap.apply #imap.map<(i, k) -> (i + k - 1)>(%i, %k) : index
    %a = tc.read %A[%j] {text = "A(i + k - 1)"} : tensor<?xf32> -> f32
    %b = tc.read %K[%k] : tensor<3xf32> -> f32
    %p = arith.mulf %a, %b : f32
    tc.yield %p : f32
  } : tensor<?xf32>
  tc.return %B : tensor<?xf32>
}"#;

#[test]
fn comprehensions_keep_their_origin() {
    let a = floats(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let k = floats(&[3], &[1.0, -2.0, 4.0]);
    let outcome = run_text(CONVOLUTION, &[a, k.clone()]).unwrap().remove(0);
    assert_eq!(outcome.origin(), [1]);
    assert_eq!(values(&outcome), [9.0, 12.0, 15.0]);
    assert_eq!(
        error(CONVOLUTION, &[floats(&[2], &[0.0; 2]), k]),
        "-:4:8: error: 'B' has an empty range for 'i': [1, 0]"
    );
    let wide = CONVOLUTION.replace("i in [1, N - 2]", "i in [1, N - 1]");
    assert_eq!(
        error(&wide, &[floats(&[3], &[0.0; 3]), floats(&[3], &[0.0; 3])]),
        "-:8:10: error: 'A(i + k - 1)' is out of bounds: index [3] of a tensor of shape [3] (at i = 2, k = 2)"
    );
    let without = CONVOLUTION.replace("domain #imap.map<(i)[k]{N} -> (i - 1), domain: i in [1, N - 2], k in [0, 2], N in [1, 2147483647]>", "");
    let message = error(&without, &[]);
    assert!(
        message.ends_with("has no domain; expected 'tc-infer-ranges' to have run"),
        "{message}"
    );
}

#[test]
fn statements_read_what_others_define() {
    // The second statement reads the first through its origin; the third accumulates into
    // what the caller passed, whose first index is 1 as well.
    let text = r#"
tc.def @f(%A: tensor<?xui8> {tc.name = "A", tc.sizes = ["N"]}, %C0: tensor<?xui8> {tc.name = "C", tc.inout})
    -> (tensor<?xui8> {tc.name = "B"}, tensor<?xui8> {tc.name = "C"}) {
  %N = tc.size "N"
  %e = tc.extent %A, 0 : tensor<?xui8>
  %B = tc.comprehension "B"["i"] #imap.combiner<assign>
      domain #imap.map<(i){N} -> (i - 1), domain: i in [1, N], N in [1, 2147483647]> {
  ^bb0(%i: index):
    %one = arith.constant 1 : index
    %j = arith.subi %i, %one : index
    %a = tc.read %A[%j] : tensor<?xui8> -> i8
    tc.yield %a : i8
  } : tensor<?xui8>
  %C = tc.comprehension "C"["i"] #imap.combiner<add> outs(%C0 : tensor<?xui8>)
      domain #imap.map<(i){N} -> (i - 1), domain: i in [1, N], N in [1, 2147483647]> {
  ^bb0(%i: index):
    %b = tc.read %B[%i] : tensor<?xui8> -> i8
    %c = tc.read %C0[%i] : tensor<?xui8> -> i8
    %s = arith.addi %b, %c : i8
    %n = arith.index_cast %N : index to i8
    %m = arith.index_cast %e : index to i8
    %t = arith.addi %s, %n : i8
    %u = arith.subi %t, %m : i8
    tc.yield %u : i8
  } : tensor<?xui8>
  tc.return %B, %C : tensor<?xui8>, tensor<?xui8>
}"#;
    let bytes = |values: &[u8]| Tensor::from_values(&[values.len()], values).unwrap();
    let outcomes = run_text(text, &[bytes(&[1, 2, 200]), bytes(&[10, 20, 30])]).unwrap();
    assert_eq!(values(&outcomes[0]), [1.0, 2.0, 200.0]);
    assert_eq!(outcomes[0].origin(), [1]);
    assert_eq!(values(&outcomes[1]), [21.0, 42.0, 4.0]);
    assert_eq!(outcomes[1].origin(), [1]);
    assert_eq!(outcomes[1].element(), ElementType::U8);
    // Too small a destination.
    let message = error(text, &[bytes(&[1, 2, 200]), bytes(&[10, 20])]);
    assert!(
        message
            .contains("'C' stores out of bounds: position [2] of a tensor of shape [2] (at i = 3)"),
        "{message}"
    );
    let before = text
        .replace("%b = tc.read %B[%i]", "%zero = arith.constant 0 : index\n%b = tc.read %B[%zero]");
    let message = error(&before, &[bytes(&[1, 2]), bytes(&[10, 20])]);
    assert!(
        message.contains("index [0] of a tensor of shape [2] whose first index is [1]"),
        "{message}"
    );
    assert!(
        error(text, &[bytes(&[]), bytes(&[])])
            .ends_with("'tc.def' op expects size 'N' to be at least 1, but found 0")
    );
}

#[test]
fn sizes_agree_between_dimensions() {
    let text = r#"
tc.def @f(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]}, %B: tensor<?xf32> {tc.name = "B", tc.sizes = ["N"]})
    -> (tensor<f32> {tc.name = "s"}) {
  %s = tc.comprehension "s"[] reduce ["i"] #imap.combiner<minf from identity>
      domain #imap.map<()[i]{N} -> (), domain: i in [0, N - 1], N in [1, 2147483647]> {
  ^bb0(%i: index):
    %a = tc.read %A[%i] : tensor<?xf32> -> f32
    tc.yield %a : f32
  } : tensor<f32>
  tc.return %s : tensor<f32>
}"#;
    let a = floats(&[3], &[2.0, 1.0, 3.0]);
    let outcome = run_text(text, &[a.clone(), a.clone()]).unwrap().remove(0);
    assert_eq!((outcome.shape(), values(&outcome)), (&[][..], vec![1.0]));
    assert_eq!(
        error(text, &[a, floats(&[2], &[0.0; 2])]),
        "-:2:1: error: 'tc.def' op size 'N' is 3 in dimension 0 of 'A', but 2 in dimension 0 of 'B'"
    );
}

#[test]
fn results_in_half_precision() {
    let half = |value: f32| Tensor::from_values(&[], &[half::f16::from_f32(value)]).unwrap();
    let code = "%p = arith.mulf %a0, %a0 : f16\n%r = arith.addf %p, %a0 : f16";
    let outcome = scalar(&["f16"], code, "f16", &[half(1.5)]).unwrap();
    assert_eq!((values(&outcome), bounds(&outcome)), (vec![3.75], vec![0.0]));
    let outcome = scalar(&["f16"], code, "f16", &[half(0.1)]).unwrap();
    assert!(outcome.error_bound(0) > 0.0 && outcome.error_bound(0) < 1e-3);
    let outcome = scalar(&["f16"], code, "f16", &[half(1000.0)]).unwrap();
    assert_eq!((values(&outcome), bounds(&outcome)), (vec![f64::INFINITY], vec![0.0]));
    assert!(compare(&outcome, &half(f32::INFINITY)).is_ok());
    assert!(compare(&outcome, &half(65504.0)).is_err());
}

#[test]
fn overflow_of_index_arithmetic_is_an_error() {
    let code = "%c = arith.constant 9223372036854775807 : index
        %i = imap.apply #imap.map<(d0) -> (d0 * 2 + 1)>(%c) : index
        %r = arith.index_cast %i : index to i64";
    let message = scalar(&[], code, "i64", &[]).map(|_| ()).unwrap_err().message;
    assert!(message.starts_with("'imap.apply' op overflows 64 bits"), "{message}");
    let code = "%c = arith.constant 0 : index
        %i = imap.apply #imap.map<(d0) -> (5 floordiv d0)>(%c) : index
        %r = arith.index_cast %i : index to i64";
    let message = scalar(&[], code, "i64", &[]).map(|_| ()).unwrap_err().message;
    assert_eq!(message, "'imap.apply' op divides the index 5 by zero");
}
