//! Modules of `imap` operations, compiled and run against expectations.

use melior::{Context, ir::Module};
use tc_backends::{
    cpu::{CallError, Compiled, Options, Program},
    runtime::{Element, Tensor},
};

fn compile_with(source: &str, options: &Options) -> Compiled {
    let context: Context = tc_dialects::new_context();
    context.attach_diagnostic_handler(|diagnostic| {
        eprintln!("{}: {diagnostic}", diagnostic.location());
        true
    });
    let module = Module::parse(&context, source).expect("the module parses");
    let program = Program::lower(&module, options).expect("the module lowers");
    if std::env::var_os("PRINT_LLVM").is_some() {
        eprintln!("{}", program.llvm_ir());
    }
    program.jit().expect("the code loads")
}

fn compile(source: &str) -> Compiled {
    compile_with(source, &Options::default())
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
  %c = imap.generic #imap.map<(m, n)[k]{M, N, K} -> (), domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]>
    runtime(%M, %N, %K : index, index, index)
    ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>)
    outs(%init : tensor<?x?xf32>)
    maps [#imap.map<(m, n)[k]{M, N, K} -> (m, k)>, #imap.map<(m, n)[k]{M, N, K} -> (k, n)>, #imap.map<(m, n)[k]{M, N, K} -> (m, n)>]
    combine [#imap.combiner<add from identity>] {
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
    let expected: Vec<f32> = (0..m * n)
        .map(|i| (0..k).map(|r| a[i / n * k + r] * b[r * n + i % n]).sum())
        .collect();
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
