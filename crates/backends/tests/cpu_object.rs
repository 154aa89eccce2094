//! An object and its C header, compiled into a C and a C++ program.

use melior::ir::Module;
use std::{fs, path::PathBuf, process::Command};
use tc_backends::cpu::{Options, Program};

const SOURCE: &str = r#"
func.func @upsample(%A: tensor<?x?xf32> {tc.name = "upsample_B_extent_1", tc.sizes = ["M", "N"]},
                    %int: tensor<?xf32> {tc.name = "int", tc.inout})
    -> (tensor<?x?xf32> {tc.name = "B", tc.extents = #imap.map<(){M, N} -> (M * 2, (N + 1) floordiv 2)>},
        tensor<?xf32> {tc.name = "int", tc.extents = #imap.map<(){M, N} -> (N)>}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %M = tensor.dim %A, %c0 : tensor<?x?xf32>
  %N = tensor.dim %A, %c1 : tensor<?x?xf32>
  %wide = arith.cmpi sge, %N, %c2 : index
  imap.check %wide, "2 <= N \"as\\is\""
  %R, %C = imap.apply #imap.map<(){M, N} -> (M * 2, (N + 1) floordiv 2)>(%M, %N) : index, index
  %init = tensor.empty(%R, %C) : tensor<?x?xf32>
  %b = imap.generic #imap.map<(i, j){M, N} -> (), domain: i in [0, M * 2 - 1], j in [0, (N + 1) floordiv 2 - 1], M in [1, 2147483647], N in [1, 2147483647]>
    runtime(%M, %N : index, index)
    ins(%A : tensor<?x?xf32>) outs(%init : tensor<?x?xf32>)
    maps [#imap.map<(i, j){M, N} -> (i floordiv 2, j * 2)>, #imap.map<(i, j){M, N} -> (i, j)>]
    combine [#imap.combiner<assign>] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?x?xf32>
  %s = imap.generic #imap.map<(j)[i]{M, N} -> (), domain: j in [0, N - 1], i in [0, M - 1], M in [1, 2147483647], N in [1, 2147483647]>
    runtime(%M, %N : index, index)
    ins(%A : tensor<?x?xf32>) outs(%int : tensor<?xf32>)
    maps [#imap.map<(j)[i]{M, N} -> (i, j)>, #imap.map<(j)[i]{M, N} -> (j)>]
    combine [#imap.combiner<add>] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?xf32>
  return %b, %s : tensor<?x?xf32>, tensor<?xf32>
}
func.func @erf(%A: tensor<2xf64> {tc.name = "INT64_MAX"}) -> tensor<2xf64> {
  %init = tensor.empty() : tensor<2xf64>
  %r = imap.generic #imap.map<(d0) -> (), domain: d0 in [0, 1]>
    ins(%A : tensor<2xf64>) outs(%init : tensor<2xf64>)
    maps [#imap.map<(d0) -> (d0)>, #imap.map<(d0) -> (d0)>]
    combine [#imap.combiner<assign>] {
  ^bb0(%x: f64):
    %y = imap.builtin "erfinv"(%x) : f64
    imap.yield %y : f64
  } -> tensor<2xf64>
  return %r : tensor<2xf64>
}"#;

const MAIN: &str = r#"
#include "functions.h"
#include <stdio.h>
#include <string.h>

int main(void) {
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const float expected[4][2] = {{1, 3}, {1, 3}, {4, 6}, {4, 6}};
  float b[4][2], sums[3] = {100, 200, 300};
  const double x[2] = {0.0, 0.5};
  double y[2];
  if (upsample_B_extent_0(2, 3) != 4 || upsample_B_extent_1_(2, 3) != 2)
    return 1;
  if (upsample(&a[0][0], sums, &b[0][0], 2, 3) != 0)
    return 2;
  if (memcmp(b, expected, sizeof b) != 0)
    return 3;
  if (sums[0] != 105 || sums[1] != 207 || sums[2] != 309)
    return 4;
  if (upsample(&a[0][0], sums, &b[0][0], 2, 1) != 1)
    return 5;
  if (strcmp(upsample_error(1), "2 <= N \"as\\is\"") != 0)
    return 6;
  if (erf_(x, y) != 0 || y[0] != 0.0 || y[1] < 0.476 || y[1] > 0.477)
    return 7;
  puts("done");
  return 0;
}
"#;

#[test]
fn object_and_header_work_in_c() {
    let context = tc_dialects::new_context();
    let source = SOURCE.replace("@erf(", "@erf_(");
    let module = Module::parse(&context, &source).expect("the module parses");
    let program = Program::lower(&module, &Options::default()).expect("the module lowers");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cpu_object");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("functions.o"), program.object().unwrap()).unwrap();
    fs::write(folder.join("functions.h"), program.header("FUNCTIONS_H")).unwrap();
    fs::write(folder.join("main.c"), MAIN).unwrap();
    let run = |command: &mut Command| {
        let output = command.current_dir(&folder).output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for flags in [&["-std=c99", "-x", "c"], &["-std=c++11", "-x", "c++"]] {
        run(Command::new("cc")
            .args(flags)
            .args(["-Wall", "-Wextra", "-Werror", "-Wno-cast-qual"])
            .args(["main.c", "-x", "none", "functions.o", "-o", "main"]));
        assert_eq!(run(&mut Command::new("./main")), "done\n");
    }
    let assembly = program.assembly().unwrap();
    assert!(assembly.contains("_mlir_ciface_upsample:"), "{assembly}");
}
