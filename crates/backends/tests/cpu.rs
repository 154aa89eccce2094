//! Modules of `imap` operations, compiled and run against expectations.

use melior::{Context, ir::Module};
use tc_backends::{
    Codegen, Compiled, Form,
    backend::CallError,
    cpu,
    runtime::{Element, Tensor},
};

fn compile_with(source: &str, options: &Codegen) -> Compiled {
    let context: Context = tc_dialects::new_context();
    context.attach_diagnostic_handler(|diagnostic| {
        eprintln!("{}: {diagnostic}", diagnostic.location());
        true
    });
    let module = Module::parse(&context, source).expect("the module parses");
    let program = cpu::BACKEND.compile(&module, options).expect("the module lowers");
    if std::env::var_os("PRINT_LLVM").is_some() {
        eprintln!("{}", String::from_utf8_lossy(&program.emit(Form::LlvmIr).expect("text")));
    }
    program.load().expect("the code loads")
}

fn compile(source: &str) -> Compiled {
    compile_with(source, &Codegen::default())
}

fn tensor<T: Element>(shape: &[usize], values: &[T]) -> Tensor {
    Tensor::from_values(shape, values).expect("as many values as the shape has")
}

fn floats(shape: &[usize], value: impl Fn(usize) -> f32) -> Tensor {
    let count = shape.iter().product();
    tensor(shape, &(0..count).map(value).collect::<Vec<_>>())
}

const MATMUL: &str = r#"
func.func @matmul(%A: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["M", "K"]},
                  %B: tensor<?x?xf32> {tc.name = "B", tc.sizes = ["K", "N"]})
    -> (tensor<?x?xf32> {tc.name = "C", tc.sizes = ["M", "N"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xf32>
  %K = tensor.dim %A, %c1 : tensor<?x?xf32>
  %N = tensor.dim %B, %c1 : tensor<?x?xf32>
  %init = tensor.empty(%M, %N) : tensor<?x?xf32>
  %c = imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]
    runtime(%M, %N, %K : index, index, index)
    ins(%A[m, k], %B[k, n] : tensor<?x?xf32>, tensor<?x?xf32>)
    outs(%init[m, n] : tensor<?x?xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<?x?xf32>
  return %c : tensor<?x?xf32>
}"#;

/// Multiplies small integers, which is exact in any order.
fn check_matmul(compiled: &Compiled, name: &str, [m, n, k]: [usize; 3]) {
    let a = floats(&[m, k], |i| (i % 7) as f32 - 3.0);
    let b = floats(&[k, n], |i| (i % 5) as f32 - 2.0);
    let c = compiled.function(name).unwrap().run(&[&a, &b]).unwrap();
    let (a, b) = (a.to_values::<f32>().unwrap(), b.to_values::<f32>().unwrap());
    let expected: Vec<f32> =
        (0..m * n).map(|i| (0..k).map(|r| a[i / n * k + r] * b[r * n + i % n]).sum()).collect();
    assert_eq!(c[0].shape(), [m, n]);
    assert_eq!(c[0].to_values::<f32>().unwrap(), expected, "{m} x {n} x {k}");
}

#[test]
fn matmul_dynamic() {
    let compiled = compile(MATMUL);
    for sizes in [[1, 1, 1], [3, 5, 4], [17, 33, 9], [40, 65, 70], [2, 1030, 3]] {
        check_matmul(&compiled, "matmul", sizes);
    }
}

#[test]
fn matmul_on_two_threads() {
    let compiled = compile_with(MATMUL, &Codegen { threads: 2, ..Codegen::default() });
    for sizes in [[1, 1, 1], [33, 70, 65], [1, 1100, 20]] {
        check_matmul(&compiled, "matmul", sizes);
    }
}

#[test]
fn matmul_strict() {
    let compiled = compile_with(MATMUL, &Codegen { strict_fp: true, ..Codegen::default() });
    check_matmul(&compiled, "matmul", [13, 21, 34]);
}

#[test]
fn matmul_static() {
    let compiled = compile(
        r#"
func.func @matmul(%A: tensor<24x40xf32>, %B: tensor<40x33xf32>) -> tensor<24x33xf32> {
  %init = tensor.empty() : tensor<24x33xf32>
  %c = imap.generic (m, n)[k] domain: m in [0, 23], n in [0, 32], k in [0, 39]
    ins(%A[m, k], %B[k, n] : tensor<24x40xf32>, tensor<40x33xf32>)
    outs(%init[m, n] : tensor<24x33xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<24x33xf32>
  return %c : tensor<24x33xf32>
}"#,
    );
    check_matmul(&compiled, "matmul", [24, 33, 40]);
}

/// Both operands are contiguous in the range variable: folded in registers.
#[test]
fn matmul_transposed() {
    let compiled = compile(
        r#"
func.func @dot(%A: tensor<6x100xf32>, %B: tensor<5x100xf32>) -> tensor<6x5xf32> {
  %init = tensor.empty() : tensor<6x5xf32>
  %c = imap.generic (m, n)[k] domain: m in [0, 5], n in [0, 4], k in [0, 99]
    ins(%A[m, k], %B[n, k] : tensor<6x100xf32>, tensor<5x100xf32>)
    outs(%init[m, n] : tensor<6x5xf32>) fold [add f32] {
  ^bb0(%a: f32, %b: f32):
    %p = arith.mulf %a, %b : f32
    imap.yield %p : f32
  } -> tensor<6x5xf32>
  return %c : tensor<6x5xf32>
}"#,
    );
    let (a, b) = (floats(&[6, 100], |i| (i % 11) as f32), floats(&[5, 100], |i| (i % 3) as f32));
    let c = compiled.function("dot").unwrap().run(&[&a, &b]).unwrap();
    let expected: Vec<f32> = (0..30)
        .map(|i| (0..100).map(|k| ((i / 5 * 100 + k) % 11 * ((i % 5 * 100 + k) % 3)) as f32).sum())
        .collect();
    assert_eq!(c[0].to_values::<f32>().unwrap(), expected);
}

/// A window that begins at an offset known only at run time, with an epilogue.
#[test]
fn window_with_offset_and_epilogue() {
    let compiled = compile(
        r#"
func.func @window(%I: tensor<?xf32> {tc.name = "I", tc.sizes = ["N"]}, %W: tensor<3xf32>,
                  %offset: tensor<1xi32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %N = tensor.dim %I, %c0 : tensor<?xf32>
  %init = tensor.empty() : tensor<4xf32>
  %r = imap.generic (d0)[s0]{N, rt1} domain: d0 in [0, 3], s0 in [0, 2], N in [6, 1000], rt1 in [0, N - 6]
    runtime(%N, %offset[0] : index, tensor<1xi32>)
    ins(%I[d0 + s0 + rt1], %W[s0] : tensor<?xf32>, tensor<3xf32>)
    outs(%init[d0] : tensor<4xf32>) fold [add f32] {
  ^bb0(%x: f32, %w: f32):
    %p = arith.mulf %x, %w : f32
    imap.yield %p : f32
  } epilogue {
  ^bb0(%sum: f32, %x: f32, %w: f32):
    %zero = arith.constant 10.0 : f32
    %m = arith.maximumf %sum, %zero : f32
    imap.yield %m : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}"#,
    );
    let input = floats(&[9], |i| i as f32);
    let weights = tensor(&[3], &[1.0f32, 0.0, 2.0]);
    let function = compiled.function("window").unwrap();
    for offset in 0..4 {
        let offsets = tensor(&[1], &[offset]);
        let result = function.run(&[&input, &weights, &offsets]).unwrap();
        let expected: Vec<f32> =
            (0..4).map(|i| ((3 * (i + offset) + 4) as f32).max(10.0)).collect();
        assert_eq!(result[0].to_values::<f32>().unwrap(), expected);
    }
}

#[test]
fn integer_maximum_of_columns() {
    let source = |kind: &str| {
        format!(
            r#"
func.func @columns(%A: tensor<?x?xi8> {{tc.name = "A", tc.sizes = ["M", "N"]}})
    -> (tensor<?xi8> {{tc.name = "B", tc.extents = #imap.map<(){{N}} -> (N)>}}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xi8>
  %N = tensor.dim %A, %c1 : tensor<?x?xi8>
  %init = tensor.empty(%N) : tensor<?xi8>
  %r = imap.generic (d0)[s0]{{M, N}} domain: d0 in [0, N - 1], s0 in [0, M - 1], M in [1, 2147483647], N in [1, 2147483647]
    runtime(%M, %N : index, index)
    ins(%A[s0, d0] : tensor<?x?xi8>) outs(%init[d0] : tensor<?xi8>) fold [{kind} i8] {{
  ^bb0(%x: i8):
    imap.yield %x : i8
  }} -> tensor<?xi8>
  return %r : tensor<?xi8>
}}"#
        )
    };
    let values: Vec<i8> = (0..7 * 50).map(|i: i32| (i * 37 % 256) as u8 as i8).collect();
    let input = tensor(&[7, 50], &values);
    let column = |n: usize| (0..7).map(|m| values[m * 50 + n]).collect::<Vec<_>>();
    for (kind, expected) in [
        ("maxs", (0..50).map(|n| column(n).into_iter().max().unwrap()).collect::<Vec<_>>()),
        (
            "minu",
            (0..50).map(|n| column(n).into_iter().min_by_key(|v| *v as u8).unwrap()).collect(),
        ),
        ("add", (0..50).map(|n| column(n).into_iter().fold(0i8, i8::wrapping_add)).collect()),
        ("or", (0..50).map(|n| column(n).into_iter().fold(0, |a, b| a | b)).collect()),
    ] {
        let compiled = compile(&source(kind));
        let result = compiled.function("columns").unwrap().run(&[&input]).unwrap();
        assert_eq!(result[0].to_values::<i8>().unwrap(), expected, "{kind}");
    }
}

/// `O(i, j) = LUT(I(i), j)`, unsigned indices above 127 included.
#[test]
fn look_up_table() {
    let compiled = compile(
        r#"
func.func @lookup(%lut: tensor<200x3xf64>, %idx: tensor<?xi8> {tc.name = "I", tc.sizes = ["B"], tc.unsigned})
    -> (tensor<?x3xf64> {tc.name = "O", tc.extents = #imap.map<(){B} -> (B, 3)>}) {
  %c0 = arith.constant 0 : index
  %B = tensor.dim %idx, %c0 : tensor<?xi8>
  %init = tensor.empty(%B) : tensor<?x3xf64>
  %r = imap.generic (i, j){B, row} domain: i in [0, B - 1], j in [0, 2], B in [1, 2147483647], row in [0, 199]
    runtime(%B, %idx[i] : index, tensor<?xi8>)
    ins(%lut[row, j] : tensor<200x3xf64>) outs(%init[i, j] : tensor<?x3xf64>) {
  ^bb0(%x: f64):
    imap.yield %x : f64
  } -> tensor<?x3xf64>
  return %r : tensor<?x3xf64>
}"#,
    );
    let lut: Vec<f64> = (0..600).map(f64::from).collect();
    let result = compiled
        .function("lookup")
        .unwrap()
        .run(&[&tensor(&[200, 3], &lut), &tensor(&[2], &[7u8, 199])])
        .unwrap();
    assert_eq!(result[0].to_values::<f64>().unwrap(), [21.0, 22.0, 23.0, 597.0, 598.0, 599.0]);
}

/// Sum and largest element at once, and a second operation that reads the first's result.
#[test]
fn several_outputs() {
    let compiled = compile(
        r#"
func.func @stats(%A: tensor<4x30xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %init = tensor.empty() : tensor<4xf32>
  %r:2 = imap.generic (d0)[s0] domain: d0 in [0, 3], s0 in [0, 29]
    ins(%A[d0, s0] : tensor<4x30xf32>) outs(%init[d0], %init[d0] : tensor<4xf32>, tensor<4xf32>) fold [add f32, maxf f32] {
  ^bb0(%x: f32):
    imap.yield %x, %x : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  %s = imap.generic (d0) domain: d0 in [0, 3]
    ins(%r#0[d0], %r#1[3 - d0] : tensor<4xf32>, tensor<4xf32>) outs(%init[d0] : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.subf %x, %y : f32
    imap.yield %z : f32
  } -> tensor<4xf32>
  return %s, %r#1, %r#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}"#,
    );
    let input = floats(&[4, 30], |i| i as f32);
    let result = compiled.function("stats").unwrap().run(&[&input]).unwrap();
    let sums = [435.0, 1335.0, 2235.0, 3135.0];
    let largest = [29.0, 59.0, 89.0, 119.0];
    let differences: Vec<f32> = (0..4).map(|i| sums[i] - largest[3 - i]).collect();
    assert_eq!(result[0].to_values::<f32>().unwrap(), differences);
    assert_eq!(result[1].to_values::<f32>().unwrap(), largest);
    assert_eq!(result[2].to_values::<f32>().unwrap(), sums);
}

/// Reads under a condition in the body: zero outside of the input.
#[test]
fn guarded_extract() {
    let compiled = compile(
        r#"
func.func @shift(%A: tensor<5xf32>) -> tensor<7xf32> {
  %init = tensor.empty() : tensor<7xf32>
  %r = imap.generic (d0) domain: d0 in [0, 6]
    outs(%init[d0] : tensor<7xf32>) {
  ^bb0:
    %i = imap.index dim 0
    %one = arith.constant 1 : index
    %five = arith.constant 5 : index
    %at = arith.subi %i, %one : index
    %inside = arith.cmpi ult, %at, %five : index
    %v = scf.if %inside -> f32 {
      %j = imap.index dim 0
      %k = imap.apply #imap.map<(d0) -> (d0 - 1)>(%j) : index
      %x = tensor.extract %A[%k] : tensor<5xf32>
      scf.yield %x : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    imap.yield %v : f32
  } -> tensor<7xf32>
  return %r : tensor<7xf32>
}"#,
    );
    let result =
        compiled.function("shift").unwrap().run(&[&floats(&[5], |i| i as f32 + 1.0)]).unwrap();
    assert_eq!(result[0].to_values::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0]);
}

/// A padded sum: constraints narrow the loops, or are tested where they cannot.
#[test]
fn constraints() {
    let source = |constraint: &str| {
        format!(
            r#"
func.func @pad(%A: tensor<8xi32>) -> tensor<8xi32> {{
  %init = tensor.empty() : tensor<8xi32>
  %r = imap.generic (d0)[s0] domain: d0 in [0, 7], s0 in [0, 2], {constraint}
    ins(%A[d0 + s0 - 1] : tensor<8xi32>) outs(%init[d0] : tensor<8xi32>) fold [add i32] {{
  ^bb0(%x: i32):
    imap.yield %x : i32
  }} -> tensor<8xi32>
  return %r : tensor<8xi32>
}}"#
        )
    };
    let input = tensor(&[8], &[1, 2, 3, 4, 5, 6, 7, 8]);
    let value = |at: i32| if (0..8).contains(&at) { at + 1 } else { 0 };
    type Holds = fn(i32, i32) -> bool;
    let cases: [(&str, Holds); 3] = [
        ("d0 + s0 in [1, 8]", |_, _| true),
        ("d0 + s0 in [1, 8], (d0 + s0) mod 2 in [0, 0]", |i, k| (i + k) % 2 == 0),
        ("d0 + s0 in [1, 8], d0 - s0 in [0, 100]", |i, k| k <= i),
    ];
    for (constraint, holds) in cases {
        let compiled = compile(&source(constraint));
        let result = compiled.function("pad").unwrap().run(&[&input]).unwrap();
        let expected: Vec<i32> = (0..8)
            .map(|i| (0..3).filter(|k| holds(i, *k)).map(|k| value(i + k - 1)).sum())
            .collect();
        assert_eq!(result[0].to_values::<i32>().unwrap(), expected, "{constraint}");
    }
}

/// A point that a constraint excludes stores nothing by `assign`, and the start of a fold.
#[test]
fn constraints_exclude_points_of_assign() {
    let source = |constraint: &str, read: &str| {
        format!(
            r#"
func.func @f(%A: tensor<18x40xi32>, %B: tensor<18x40xi32>) -> tensor<18x40xi32> {{
  %r = imap.generic (i, j) domain: i in [0, 17], j in [0, 39], {constraint}
    ins(%A[{read}] : tensor<18x40xi32>) outs(%B[i, j] : tensor<18x40xi32>) {{
  ^bb0(%x: i32):
    imap.yield %x : i32
  }} -> tensor<18x40xi32>
  return %r : tensor<18x40xi32>
}}"#
        )
    };
    let a: Vec<i32> = (0..720).collect();
    let b: Vec<i32> = (0..720).map(|i| -1 - i).collect();
    let (a, b) = (tensor(&[18, 40], &a), tensor(&[18, 40], &b));
    type Rule = fn(i32, i32) -> bool;
    type At = fn(i32, i32) -> i32;
    let cases: [(&str, Rule, &str, At); 5] = [
        ("i mod 3 in [1, 2]", |i, _| i % 3 != 0, "i, j", |i, j| 40 * i + j),
        ("i + j in [9, 30]", |i, j| (9..=30).contains(&(i + j)), "i, j", |i, j| 40 * i + j),
        // What is read exists only where the constraint holds.
        (
            "i + j in [9, 26]",
            |i, j| (9..=26).contains(&(i + j)),
            "i + j - 9, 0",
            |i, j| 40 * (i + j - 9),
        ),
        // Read across the rows: blocks would be transposed.
        ("j in [0, 17]", |_, j| j < 18, "j, i", |i, j| 40 * j + i),
        (
            "i in [0, 4], j - i in [0, 1]",
            |i, j| i < 5 && (0..2).contains(&(j - i)),
            "j, i",
            |i, j| 40 * j + i,
        ),
    ];
    for (constraint, holds, read, at) in cases {
        let expected: Vec<i32> = (0..720)
            .map(|n| if holds(n / 40, n % 40) { at(n / 40, n % 40) } else { -1 - n })
            .collect();
        for threads in [1, 2] {
            let options = Codegen { threads, ..Codegen::default() };
            let compiled = compile_with(&source(constraint, read), &options);
            let result = compiled.function("f").unwrap().run(&[&a, &b]).unwrap();
            assert_eq!(result[0].to_values::<i32>().unwrap(), expected, "{constraint}");
        }
    }
}

/// The form decides, also with an epilogue. A destination of the map form need not exist where
/// nothing is stored.
#[test]
fn constraints_count_per_form() {
    let compiled = compile(
        r#"
func.func @f(%A: tensor<6xi32>, %B: tensor<3xi32>, %C: tensor<6xi32>)
    -> (tensor<3xi32>, tensor<6xi32>, tensor<6xi32>) {
  %init = tensor.empty() : tensor<6xi32>
  %stored = imap.generic (i) domain: i in [0, 5], i + 1 in [2, 4]
    ins(%A[i] : tensor<6xi32>) outs(%B[i - 1] : tensor<3xi32>) {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } -> tensor<3xi32>
  %r:2 = imap.generic (i) domain: i in [0, 5], i + 1 in [2, 4]
    ins(%A[i] : tensor<6xi32>) outs(%C[i], %init[5 - i] : tensor<6xi32>, tensor<6xi32>)
    fold [add i32 from outs 0, maxs i32] {
  ^bb0(%x: i32):
    imap.yield %x, %x : i32, i32
  } epilogue {
  ^bb0(%q: i32, %s: i32, %x: i32):
    %t = arith.addi %q, %q : i32
    imap.yield %t, %s : i32, i32
  } -> tensor<6xi32>, tensor<6xi32>
  return %stored, %r#0, %r#1 : tensor<3xi32>, tensor<6xi32>, tensor<6xi32>
}"#,
    );
    let a = tensor(&[6], &[1, 2, 3, 4, 5, 6]);
    let b = tensor(&[3], &[-1, -2, -3]);
    let c = tensor(&[6], &[10, 20, 30, 40, 50, 60]);
    let result = compiled.function("f").unwrap().run(&[&a, &b, &c]).unwrap();
    let values = |number: usize| result[number].to_values::<i32>().unwrap();
    assert_eq!(values(0), [2, 3, 4]);
    assert_eq!(values(1), [20, 44, 66, 88, 100, 120]);
    assert_eq!(values(2), [i32::MIN, i32::MIN, 4, 3, 2, i32::MIN]);
}

const ACCUMULATE: &str = r#"
func.func @accumulate(%A: tensor<?xf32> {tc.name = "A", tc.sizes = ["N"]},
                      %C: tensor<?xf32> {tc.name = "C", tc.inout})
    -> (tensor<?xf32> {tc.name = "B", tc.extents = #imap.map<(){N} -> (N)>},
        tensor<?xf32> {tc.name = "C", tc.extents = #imap.map<(){N} -> (N)>}) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  %N = tensor.dim %A, %c0 : tensor<?xf32>
  %large = arith.cmpi sge, %N, %c3 : index
  imap.check %large, "3 <= N"
  %init = tensor.empty(%N) : tensor<?xf32>
  %b = imap.generic (d0){N} domain: d0 in [0, N - 1], N in [1, 2147483647]
    runtime(%N : index) ins(%C[N - 1 - d0] : tensor<?xf32>) outs(%init[d0] : tensor<?xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?xf32>
  %first = tensor.extract %b[%c0] : tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %positive = arith.cmpf oge, %first, %zero : f32
  imap.check %positive, "C ends in a positive number"
  %small = arith.cmpi sle, %N, %c10 : index
  imap.check %small, "N <= 10"
  %c = imap.generic (d0){N} domain: d0 in [0, N - 1], N in [1, 2147483647]
    runtime(%N : index) ins(%A[d0] : tensor<?xf32>) outs(%C[d0] : tensor<?xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?xf32>
  return %b, %c : tensor<?xf32>, tensor<?xf32>
}"#;

#[test]
fn accumulated_outputs_and_checks() {
    let compiled = compile(ACCUMULATE);
    let function = compiled.function("accumulate").unwrap();
    let run = |a: &[f32], c: &[f32]| {
        let (a, c) = (tensor(&[a.len()], a), tensor(&[c.len()], c));
        let outputs = function.run(&[&a, &c])?;
        Ok(outputs.iter().map(|it| it.to_values::<f32>().unwrap()).collect::<Vec<_>>())
    };
    let failed =
        |number, message: &str| Err(CallError::Check { number, message: message.to_string() });
    assert_eq!(
        run(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]),
        Ok(vec![vec![30.0, 20.0, 10.0], vec![11.0, 22.0, 33.0]])
    );
    assert_eq!(run(&[1.0], &[1.0]), failed(1, "3 <= N"));
    assert_eq!(run(&[1.0; 3], &[1.0, 1.0, -1.0]), failed(2, "C ends in a positive number"));
    assert_eq!(run(&[1.0; 11], &[1.0; 11]), failed(3, "N <= 10"));
    let checks = ["3 <= N", "C ends in a positive number", "N <= 10"];
    assert_eq!(function.signature().checks, checks);
}

#[test]
fn calls_are_checked() {
    let compiled = compile(MATMUL);
    let function = compiled.function("matmul").unwrap();
    let error = |arguments: &[&Tensor]| function.run(arguments).unwrap_err().to_string();
    let a = floats(&[2, 3], |_| 0.0);
    assert_eq!(error(&[&a]), "expected 2 tensors, found 1");
    assert_eq!(
        error(&[&a, &floats(&[4, 5], |_| 0.0)]),
        "expected dimension 0 of 'B' to be 3, as 'K' is elsewhere, found 4"
    );
    assert_eq!(
        error(&[&a, &tensor(&[3, 1], &[0i32; 3])]),
        "expected 'B' to have elements of type float32, found int32"
    );
    assert_eq!(
        error(&[&a, &floats(&[3], |_| 0.0)]),
        "expected 'B' to have 2 dimensions, found shape [3]"
    );
    let b = floats(&[3, 5], |_| 0.0);
    let refused = function.call(&[&a, &b], &mut [floats(&[2, 4], |_| 0.0)]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "expected dimension 1 of 'C' to be 5, as 'N' is elsewhere, found 4"
    );
}

/// A generic of every element through two scalar built-ins.
#[test]
fn scalar_builtins() {
    let compiled = compile(
        r#"
func.func @f(%A: tensor<3xf32>) -> tensor<3xf32> {
  %init = tensor.empty() : tensor<3xf32>
  %r = imap.generic (d0) domain: d0 in [0, 2]
    ins(%A[d0] : tensor<3xf32>) outs(%init[d0] : tensor<3xf32>) {
  ^bb0(%x: f32):
    %y = imap.builtin "tanh"(%x) : f32
    %z = imap.builtin "rsqrt"(%y) : f32
    imap.yield %z : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}"#,
    );
    let input = [0.25f32, 1.0, 3.0];
    let result = compiled.function("f").unwrap().run(&[&tensor(&[3], &input)]).unwrap();
    for (x, y) in input.iter().zip(result[0].to_values::<f32>().unwrap()) {
        let expected = 1.0 / f64::from(*x).tanh().sqrt();
        assert!((f64::from(y) - expected).abs() < 1e-6 * expected, "{x}: {y} != {expected}");
    }
}

/// Index expressions round toward negative infinity, and by the intervals of variables
/// where they are known to be positive.
#[test]
fn index_expressions() {
    let compiled = compile(
        r#"
func.func @gather(%A: tensor<40xi32>) -> tensor<20xi32> {
  %init = tensor.empty() : tensor<20xi32>
  %r = imap.generic (d0) domain: d0 in [0, 19]
    ins(%A[(d0 - 10) floordiv 3 + (d0 - 7) mod 4 + d0 mod 5 + max(d0 floordiv 2, 4) + 4] : tensor<40xi32>) outs(%init[d0] : tensor<20xi32>) {
  ^bb0(%x: i32):
    imap.yield %x : i32
  } -> tensor<20xi32>
  return %r : tensor<20xi32>
}"#,
    );
    let input: Vec<i32> = (0..40).collect();
    let result = compiled.function("gather").unwrap().run(&[&tensor(&[40], &input)]).unwrap();
    let expected: Vec<i32> = (0..20i32)
        .map(|d| (d - 10).div_euclid(3) + (d - 7).rem_euclid(4) + d % 5 + (d / 2).max(4) + 4)
        .collect();
    assert_eq!(result[0].to_values::<i32>().unwrap(), expected);
}

/// A function may have the name of a library function that it is compiled to call.
#[test]
fn names_of_library_functions() {
    let compiled = compile(
        r#"
func.func @expf(%A: tensor<2xf32>) -> tensor<2xf32> {
  %init = tensor.empty() : tensor<2xf32>
  %r = imap.generic (d0) domain: d0 in [0, 1]
    ins(%A[d0] : tensor<2xf32>) outs(%init[d0] : tensor<2xf32>) {
  ^bb0(%x: f32):
    %y = imap.builtin "exp"(%x) : f32
    imap.yield %y : f32
  } -> tensor<2xf32>
  return %r : tensor<2xf32>
}"#,
    );
    let result = compiled.function("expf").unwrap().run(&[&tensor(&[2], &[0.0f32, 1.0])]).unwrap();
    let values = result[0].to_values::<f32>().unwrap();
    assert!(values[0] == 1.0 && (values[1] - std::f32::consts::E).abs() < 1e-6, "{values:?}");
}

/// Neighbouring dimensions of several operands become one; what cannot, stays.
#[test]
fn collapsed_dimensions() {
    let compiled = compile(
        r#"
func.func @f(%A: tensor<3x2x4x5xf32>, %S: tensor<3x2xf32>, %T: tensor<5xf32>)
    -> (tensor<3x2x4x5xf32>, tensor<3xf32>) {
  %init = tensor.empty() : tensor<3x2x4x5xf32>
  %r = imap.generic (a, b, c, d) domain: a in [0, 2], b in [0, 1], c in [0, 3], d in [0, 4]
    ins(%A[a, b, c, d], %S[a, b] : tensor<3x2x4x5xf32>, tensor<3x2xf32>) outs(%init[a, b, c, d] : tensor<3x2x4x5xf32>) {
  ^bb0(%x: f32, %s: f32):
    %z = arith.addf %x, %s : f32
    imap.yield %z : f32
  } -> tensor<3x2x4x5xf32>
  %sum = tensor.empty() : tensor<3xf32>
  %q = imap.generic (a)[b, c, d] domain: a in [0, 2], b in [0, 1], c in [1, 3], d in [0, 4]
    ins(%r[a, b, c, d], %T[d] : tensor<3x2x4x5xf32>, tensor<5xf32>) outs(%sum[a] : tensor<3xf32>) fold [add f32] {
  ^bb0(%x: f32, %t: f32):
    %z = arith.mulf %x, %t : f32
    imap.yield %z : f32
  } -> tensor<3xf32>
  return %r, %q : tensor<3x2x4x5xf32>, tensor<3xf32>
}"#,
    );
    let input = floats(&[3, 2, 4, 5], |i| (i % 13) as f32);
    let (s, t) = (floats(&[3, 2], |i| i as f32), floats(&[5], |i| i as f32 - 2.0));
    let result = compiled.function("f").unwrap().run(&[&input, &s, &t]).unwrap();
    let sum = |i: usize| (i % 13 + i / 20) as f32;
    let expected: Vec<f32> = (0..120).map(sum).collect();
    assert_eq!(result[0].to_values::<f32>().unwrap(), expected);
    let expected: Vec<f32> = (0..3)
        .map(|a| {
            let rows = (0..40).filter(|i| i / 5 % 4 != 0);
            rows.map(|i| sum(40 * a + i) * ((i % 5) as f32 - 2.0)).sum()
        })
        .collect();
    assert_eq!(result[1].to_values::<f32>().unwrap(), expected);
}
