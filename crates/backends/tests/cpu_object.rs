//! An object and its C header, compiled into a C and a C++ program.

use melior::ir::Module;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tc_backends::{
    Artifact, Codegen, Form,
    cpu::{self, header},
};

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
  %b = imap.generic (i, j){M, N} domain: i in [0, M * 2 - 1], j in [0, (N + 1) floordiv 2 - 1], M in [1, 2147483647], N in [1, 2147483647]
    runtime(%M, %N : index, index)
    ins(%A[i floordiv 2, j * 2] : tensor<?x?xf32>) outs(%init[i, j] : tensor<?x?xf32>) {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?x?xf32>
  %s = imap.generic (j)[i]{M, N} domain: j in [0, N - 1], i in [0, M - 1], M in [1, 2147483647], N in [1, 2147483647]
    runtime(%M, %N : index, index)
    ins(%A[i, j] : tensor<?x?xf32>) outs(%int[j] : tensor<?xf32>) fold [add f32 from outs 0] {
  ^bb0(%x: f32):
    imap.yield %x : f32
  } -> tensor<?xf32>
  return %b, %s : tensor<?x?xf32>, tensor<?xf32>
}
func.func @erf(%A: tensor<2xf64> {tc.name = "INT64_MAX"}) -> tensor<2xf64> {
  %init = tensor.empty() : tensor<2xf64>
  %r = imap.generic (d0) domain: d0 in [0, 1]
    ins(%A[d0] : tensor<2xf64>) outs(%init[d0] : tensor<2xf64>) {
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
    let program = cpu::BACKEND.compile(&module, &Codegen::default()).expect("the module lowers");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cpu_object");
    write(&folder, &*program, MAIN);
    let run = |command: &mut Command| run(&folder, command);
    for flags in [&["-std=c99", "-x", "c"], &["-std=c++11", "-x", "c++"]] {
        run(Command::new("cc")
            .args(flags)
            .args(["-Wall", "-Wextra", "-Werror", "-Wno-cast-qual"])
            .args(["main.c", "-x", "none", "functions.o", "-o", "main"]));
        assert_eq!(run(&mut Command::new("./main")), "done\n");
    }
    let assembly = String::from_utf8(program.emit(Form::Assembly).unwrap()).unwrap();
    assert!(assembly.contains("_mlir_ciface_upsample:"), "{assembly}");
}

/// Writes an object with its header, and a program that uses it.
fn write(folder: &Path, program: &dyn Artifact, main: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("functions.o"), program.emit(Form::Object).unwrap()).unwrap();
    fs::write(
        folder.join("functions.h"),
        program.interface(Form::Object, "functions").unwrap().text,
    )
    .unwrap();
    fs::write(folder.join("main.c"), main).unwrap();
}

/// Runs a command in a folder. Returns what it prints.
fn run(folder: &Path, command: &mut Command) -> String {
    let output = command.current_dir(folder).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Functions that have names of the C library, of macros, and of each other, and one whose extents
/// are formulas.
const NAMES: &str = r#"
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.addf %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = math.exp %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @malloc(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = tensor.extract_slice %x[0] [4] [1] : tensor<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @"a.b"(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @a_b(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.mulf %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @halves(%x: tensor<?xf32> {tc.name = "x", tc.sizes = ["N"]})
    -> (tensor<?xf32> {tc.name = "y", tc.extents = #imap.map<(){N} -> ((N + 1) floordiv 2)>}) {
  %c0 = arith.constant 0 : index
  %N = tensor.dim %x, %c0 : tensor<?xf32>
  %H = imap.apply #imap.map<(){N} -> ((N + 1) floordiv 2)>(%N) : index
  %y = tensor.extract_slice %x[0] [%H] [2] : tensor<?xf32> to tensor<?xf32>
  return %y : tensor<?xf32>
}"#;

/// Finds the functions by their names in a shared library.
const LOAD: &str = r#"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int (*Function)(const float *, float *);

int main(void) {
  void *library = dlopen("./functions.so", RTLD_NOW);
  if (!library)
    return puts(dlerror()), 1;
  const char *names[] = {"double_", "exp_", "malloc_", "main_", "a_b", "a_b_"};
  for (int i = 0; i < 6; i++) {
    Function function = (Function)dlsym(library, names[i]);
    const float x[4] = {0, 1, 2, 3};
    float y[4];
    if (!function || function(x, y) != 0)
      return puts(names[i]), 1;
    printf("%s %.3f %.3f\n", names[i], y[0], y[3]);
  }
  int (*halves)(const float *, float *, int64_t) =
      (int (*)(const float *, float *, int64_t))dlsym(library, "halves");
  const float x[5] = {1, 2, 3, 4, 5};
  float y[3];
  if (!halves || halves(x, y, 5) != 0)
    return 1;
  printf("halves %g %g %g\n", y[0], y[1], y[2]);
  return 0;
}
"#;

#[test]
fn functions_are_found_by_their_names() {
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, NAMES).expect("the module parses");
    let program = cpu::BACKEND.compile(&module, &Codegen::default()).expect("the module lowers");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cpu_object_names");
    write(&folder, &*program, LOAD);
    let run = |command: &mut Command| run(&folder, command);
    run(Command::new("cc").args(["-shared", "functions.o", "-o", "functions.so"]));
    run(Command::new("cc").args(["-Wall", "-Werror", "main.c", "-ldl", "-o", "main"]));
    assert_eq!(
        run(&mut Command::new("./main")),
        "double_ 0.000 6.000\nexp_ 1.000 20.086\nmalloc_ 0.000 3.000\nmain_ 0.000 3.000\n\
         a_b 0.000 3.000\na_b_ 0.000 9.000\nhalves 1 3 5\n"
    );
}

/// Functions that have the names of functions and variables of the C library or the linker, which the
/// program needs.
#[test]
fn names_of_the_c_library_are_left_to_it() {
    let context = tc_dialects::new_context();
    let names = ["_start", "_init", "_end", "environ", "mmap", "fstat", "etext", "strlcpy", "add"];
    let define = |name: &&str| {
        format!(
            "func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n\
             %r = arith.addf %x, %x : tensor<4xf32>\nreturn %r : tensor<4xf32>\n}}\n"
        )
    };
    let text: String = names.iter().map(define).collect();
    let module = Module::parse(&context, &text).expect("the module parses");
    let program = cpu::BACKEND.compile(&module, &Codegen::default()).expect("the module lowers");
    let in_c =
        ["x_start", "x_init", "x_end", "environ_", "mmap_", "fstat_", "etext_", "strlcpy_", "add"];
    assert_eq!(header::function_names(program.signatures()), in_c);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cpu_object_library_names");
    let calls: String = in_c.iter().map(|name| format!("  {name}(x, y), sum += y[3];\n")).collect();
    let main = format!(
        "#include \"functions.h\"\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{\n  \
         float x[4] = {{0, 1, 2, 3}}, y[4], sum = 0;\n{calls}  char *memory = malloc(1 << 24);\n  \
         if (!memory || !getenv(\"PATH\")) return 1;\n  printf(\"%g\\n\", sum);\n  free(memory);\n  \
         return 0;\n}}\n"
    );
    write(&folder, &*program, &main);
    let run = |command: &mut Command| run(&folder, command);
    run(Command::new("cc").args(["-Wall", "-Werror", "main.c", "functions.o", "-o", "main"]));
    assert_eq!(run(&mut Command::new("./main")), "54\n");
}

/// Parameters that have the names of macros and of keywords.
#[test]
fn parameters_may_have_names_of_macros() {
    let names = [
        "NULL", "EOF", "errno", "stdin", "assert", "INT_MAX", "bool", "complex", "I", "unix",
        "linux", "signbit", "RAND_MAX", "defined", "and", "class", "int64_t", "FILE", "size_t",
        "true", "M_PI", "S_ISREG",
    ];
    let parameters = names.map(|name| {
        format!("%{name}: tensor<?xf32> {{tc.name = \"{name}\", tc.sizes = [\"{name}\"]}}")
    });
    let source = format!(
        "func.func @f({}) -> (tensor<?xf32> {{tc.name = \"y\", tc.extents = #imap.map<(){{NULL}} -> (NULL * 2 - NULL)>}}) {{
           return %NULL : tensor<?xf32>
         }}",
        parameters.join(", ")
    );
    let context = tc_dialects::new_context();
    let module = Module::parse(&context, &source).expect("the module parses");
    let program = cpu::BACKEND.compile(&module, &Codegen::default()).expect("the module lowers");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cpu_object_macros");
    let arguments = vec!["x"; names.len()].join(", ");
    let sizes = vec!["2"; names.len()].join(", ");
    let main = format!(
        r#"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#ifndef __cplusplus
#include <complex.h>
#endif
#include "functions.h"

int main(void) {{
  const float x[2] = {{1, 2}};
  float y[2];
  /* The macros are in force again. */
  const void *nothing = NULL;
  assert(nothing == NULL && EOF < INT_MAX);
  if (f({arguments}, y, {sizes}) != 0 || y[1] != 2 || f_y_extent_0({sizes}) != 2)
    return 1;
  fprintf(stdout, "%d\n", errno);
  return 0;
}}
"#
    );
    write(&folder, &*program, &main);
    for flags in [&["-std=c99", "-x", "c"], &["-std=c++11", "-x", "c++"]] {
        run(
            &folder,
            Command::new("cc")
                .args(flags)
                .args(["-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"])
                .args(["main.c", "-x", "none", "functions.o", "-o", "main"]),
        );
        assert_eq!(run(&folder, &mut Command::new("./main")), "0\n");
    }
}
