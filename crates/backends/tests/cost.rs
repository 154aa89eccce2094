//! Costs of programs, against enumeration of their iterations and against the memory that they allocate.

use melior::ir::{Module, ValueLike};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tc_backends::{
    Codegen, Form, Request, Session, Source,
    backend::Cost,
    cpu,
    program::{Lowered, Sizes},
};
use tc_dialects::{
    Language,
    imap::{Generic, Indexed},
    mlir::{self, Blk},
};
use tc_passes::analysis::cost::Formula;

/// A program as fused operations, at these sizes if it is a comprehension; without sizes, for all.
fn lower<'c>(
    session: &'c Session,
    language: Language,
    text: &str,
    sizes: &[(&str, i64)],
) -> Module<'c> {
    let source = Source { language, ..Source::new("program", text) };
    let program = session.open(source).expect("the program is valid");
    let sizes: Sizes = sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
    let request = Request { dynamic: sizes.is_empty(), sizes, ..Request::default() };
    let Lowered { module, .. } = session.lower(&*program, &request).expect("it is supported");
    module
}

fn only(module: &Module, options: &Codegen) -> Cost {
    let mut costs = cpu::BACKEND.cost(module, options).expect("the program is lowered");
    assert_eq!(costs.len(), 1);
    costs.remove(0)
}

fn number_of(formula: &Option<Formula>) -> i64 {
    formula.as_ref().and_then(Formula::constant).expect("a number")
}

/// Counts the floating-point operations and the bytes of a module of `imap.generic` with constant
/// bounds, point by point: a set has the elements of each operand that were accessed.
fn enumerate(module: &Module) -> (i64, i64) {
    let (mut flops, mut bytes) = (0, 0);
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        let Some(generic) = Generic::cast(op) else { return };
        let ir = tc_ir::Context::new();
        let (domain, maps) = (generic.domain(&ir), generic.maps(&ir));
        assert!(domain.runtimes.is_empty(), "all bounds are constants");
        let operations = |block: Option<Blk>| {
            let names = ["addf", "subf", "mulf", "divf", "negf", "builtin", "maxnumf", "maximumf"];
            let is_counted = |name: &str| names.iter().any(|known| name.ends_with(known));
            let ops = block.map(mlir::ops).unwrap_or_default();
            ops.into_iter().filter(|op| is_counted(mlir::name(*op))).count() as i64
        };
        let inputs = generic.inputs();
        let mut read: BTreeMap<usize, (i64, HashSet<Vec<i64>>)> = BTreeMap::new();
        let mut written = vec![HashSet::new(); generic.inits().len()];
        let mut starts = HashSet::new();
        for point in domain.points(&ir, &[]).unwrap() {
            let point = point.unwrap();
            let at = |map: usize| maps[map].evaluate(&ir, &point.dims, &point.ranges, &[]).unwrap();
            flops += operations(Some(generic.body()));
            for (number, input) in inputs.iter().enumerate() {
                let guard = &maps[number];
                if guard.satisfies_constraints(&ir, &point.dims, &point.ranges, &[]) != Ok(true) {
                    continue;
                }
                let width = mlir::byte_width(mlir::element_type(input.r#type()));
                let entry = read.entry(mlir::value_key(*input));
                entry.or_insert((width.into(), HashSet::new())).1.insert(at(number));
            }
            for accumulator in generic.accumulators() {
                flops += i64::from(mlir::is_float(accumulator.ty));
                assert!(accumulator.destination().is_none(), "the tests have no such operation");
            }
            for (number, written) in written.iter_mut().enumerate() {
                written.insert(at(inputs.len() + number));
            }
            starts.insert(point.dims);
        }
        flops += operations(generic.epilogue()) * starts.len() as i64;
        bytes += read.values().map(|(width, elements)| width * elements.len() as i64).sum::<i64>();
        for (init, elements) in generic.inits().iter().zip(&written) {
            let width = mlir::byte_width(mlir::element_type(init.r#type()));
            bytes += i64::from(width) * elements.len() as i64;
        }
    });
    (flops, bytes)
}

const COMPREHENSIONS: &[(&str, &[(&str, i64)])] = &[
    (
        "def matmul(float(M, K) A, float(K, N) B) -> (C) { C(m, n) +=! A(m, k) * B(k, n) }",
        &[("M", 5), ("K", 4), ("N", 3)],
    ),
    // Fused: the square is part of the sum.
    (
        "def norm(float(M, K) A) -> (S) {
           local T(m, k) = A(m, k) * A(m, k)
           S(m) +=! T(m, k)
         }",
        &[("M", 6), ("K", 7)],
    ),
    // Two statements, the first of which the second reads as a whole.
    (
        "def softmax(float(N, D) I) -> (O) {
           local M(n) max=! I(n, d)
           local E(n, d) = exp(I(n, d) - M(n))
           local S(n) +=! E(n, d)
           O(n, d) = E(n, d) / S(n)
         }",
        &[("N", 4), ("D", 9)],
    ),
    // An operand that is read twice, through different maps.
    ("def gram(double(N, K) A) -> (G) { G(i, j) +=! A(i, k) * A(j, k) }", &[("N", 5), ("K", 3)]),
    // Less than the operand is read.
    ("def part(float(N) A) -> (B) { B(i) = A(2 * i) where i in 0:4 }", &[("N", 40)]),
    // Integers are no floating-point operations.
    ("def count(int32(N) A) -> (S) { S +=! A(i) * A(i) }", &[("N", 11)]),
];

#[test]
fn work_of_comprehensions_is_that_of_their_points() {
    let session = Session::new("cpu").unwrap();
    for (text, sizes) in COMPREHENSIONS {
        let module = lower(&session, Language::Tc, text, sizes);
        let cost = only(&module, &Codegen::default());
        assert_eq!((number_of(&cost.flops), number_of(&cost.bytes)), enumerate(&module), "{text}");
    }
}

/// Constraints of the domains, which exclude points: padding, a triangle, pieces of a result.
const MODULES: &[&str] = &[
    "HloModule padded
     ENTRY main {
       x = f32[1,9,9,2] parameter(0)
       w = f32[3,3,2,4] parameter(1)
       ROOT y = f32[1,9,9,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
     }",
    "HloModule pieces
     ENTRY main {
       x = f32[5,3] parameter(0)
       y = f32[5,4] parameter(1)
       ROOT z = f32[5,7] concatenate(x, y), dimensions={1}
     }",
    "HloModule pad
     ENTRY main {
       x = f32[6] parameter(0)
       zero = f32[] constant(0)
       ROOT y = f32[11] pad(x, zero), padding=2_3
     }",
];

#[test]
fn constraints_exclude_points() {
    let session = Session::new("cpu").unwrap();
    for text in MODULES {
        let module = lower(&session, Language::Hlo, text, &[]);
        let cost = only(&module, &Codegen::default());
        assert_eq!((number_of(&cost.flops), number_of(&cost.bytes)), enumerate(&module), "{text}");
    }
}

#[test]
fn formulas_have_the_values_of_programs_for_the_sizes() {
    let session = Session::new("cpu").unwrap();
    for (text, sizes) in COMPREHENSIONS {
        let all = only(&lower(&session, Language::Tc, text, &[]), &Codegen::default());
        let some = only(&lower(&session, Language::Tc, text, sizes), &Codegen::default());
        let sizes: Sizes = sizes.iter().map(|(name, size)| (name.to_string(), *size)).collect();
        for (all, some) in [(&all.flops, &some.flops), (&all.bytes, &some.bytes)] {
            let value = all.as_ref().and_then(|formula| formula.evaluate(&sizes));
            assert_eq!(value, Some(number_of(some)), "{text}: {all:?}");
        }
    }
}

/// A body that reads elements at computed places: no more than the table has, no more than iterations.
#[test]
fn gathers_read_no_more_than_there_is() {
    let session = Session::new("cpu").unwrap();
    let text = "def lut(float(E, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }";
    for (e, n, read) in [(3, 50, 3 * 8), (1000, 50, 50 * 8)] {
        let module = lower(&session, Language::Tc, text, &[("E", e), ("D", 8), ("N", n)]);
        let cost = only(&module, &Codegen::default());
        assert_eq!(number_of(&cost.bytes), 4 * (read + n + n * 8));
        assert_eq!(number_of(&cost.flops), 0);
    }
}

/// A loop whose counter grows by 3.
const COUNTED: &str = "HloModule loop
    body {
      s = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      three = s32[] constant(3)
      j = s32[] add(i, three)
      x = f32[8] get-tuple-element(s), index=1
      y = f32[8] multiply(x, x)
      ROOT t = (s32[], f32[8]) tuple(j, y)
    }
    cond {
      s = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(10)
      ROOT c = pred[] compare(i, n), direction=LT
    }
    ENTRY main {
      x = f32[8] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[8]) tuple(zero, x)
      l = (s32[], f32[8]) while(t), condition=cond, body=body
      ROOT r = f32[8] get-tuple-element(l), index=1
    }";

#[test]
fn loops_multiply_work_if_their_trip_count_is_known() {
    let session = Session::new("cpu").unwrap();
    let module = lower(&session, Language::Hlo, COUNTED, &[]);
    let cost = only(&module, &Codegen::default());
    // 0, 3, 6 and 9 are less than 10.
    assert_eq!(number_of(&cost.flops), 4 * 8);
    // An iteration reads and writes the array; the counter is a scalar.
    assert_eq!(number_of(&cost.bytes), 4 * 2 * 8 * 4);

    // The counter comes from an argument.
    let depends_on_data = COUNTED
        .replace("x = f32[8] parameter(0)", "x = f32[8] parameter(0)\n first = s32[] parameter(1)")
        .replace("tuple(zero, x)", "tuple(first, x)");
    let cost = only(&lower(&session, Language::Hlo, &depends_on_data, &[]), &Codegen::default());
    assert_eq!((cost.flops, cost.bytes), (None, None));
}

#[test]
fn inner_loops_may_depend_on_the_index_of_outer_ones() {
    let session = Session::new("cpu").unwrap();
    let text = "func.func @f(%a: tensor<9x9xf32>) -> tensor<9xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c9 = arith.constant 9 : index
      %zero = arith.constant 0.0 : f32
      %from = bufferization.to_buffer %a read_only : tensor<9x9xf32> to memref<9x9xf32>
      %to = memref.alloc() : memref<9xf32>
      scf.for %i = %c1 to %c9 step %c2 {
        %sum = scf.for %j = %c0 to %i step %c1 iter_args(%s = %zero) -> f32 {
          %x = memref.load %from[%i, %j] : memref<9x9xf32>
          %t = arith.addf %s, %x : f32
          scf.yield %t : f32
        }
        memref.store %sum, %to[%i] : memref<9xf32>
      }
      %b = bufferization.to_tensor %to restrict writable : memref<9xf32> to tensor<9xf32>
      return %b : tensor<9xf32>
    }";
    let cost = only(&lower(&session, Language::Mlir, text, &[]), &Codegen::default());
    let additions = 1 + 3 + 5 + 7;
    assert_eq!(number_of(&cost.flops), additions);
    assert_eq!(number_of(&cost.bytes), 4 * (additions + 4));
}

#[test]
fn unsupported_operations_have_unknown_work() {
    let session = Session::new("cpu").unwrap();
    let text = "func.func @f(%a: tensor<4x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
      %d = linalg.reduce { arith.subf } ins(%a : tensor<4x4xf32>) outs(%c : tensor<4xf32>) dimensions = [1]
      return %d : tensor<4xf32>
    }";
    let cost = only(&lower(&session, Language::Mlir, text, &[]), &Codegen::default());
    assert_eq!((cost.flops, cost.bytes), (None, None));
    // The destination is not the result: one of the two is copied.
    assert!(cost.temporary_bytes.is_some());
}

/// Counts the bytes that a program holds, at most.
const COUNTER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Compiled code asks for 64 bytes more than it needs, to align what it gets. */
enum { ALIGNMENT = 64 };
static size_t now, peak;
void *__real_malloc(size_t size);
void __real_free(void *pointer);

void *__wrap_malloc(size_t size) {
  size_t *start = __real_malloc(size + 2 * sizeof(size_t));
  start[0] = size - ALIGNMENT;
  now += start[0];
  if (peak < now)
    peak = now;
  return start + 2;
}

void __wrap_free(void *pointer) {
  size_t *start = (size_t *)pointer - 2;
  now -= start[0];
  __real_free(start);
}

"#;

/// The most bytes that a call of a compiled function holds, which gets so many bytes of zeros for each
/// argument.
fn allocated(name: &str, module: &Module, options: &Codegen, arguments: &[usize]) -> i64 {
    let program = cpu::BACKEND.compile(module, options).expect("the program is lowered");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cost").join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("function.o"), program.emit(Form::Object).unwrap()).unwrap();
    let function = cpu::header::function_names(program.signatures()).remove(0);
    let parameters = vec!["void *"; arguments.len()].join(", ");
    let values: Vec<_> = arguments.iter().map(|bytes| format!("calloc({bytes} + 64, 1)")).collect();
    let main = format!(
        "{COUNTER}int {function}({parameters});\n\
         int main(void) {{\n  if ({function}({}) != 0)\n    return 1;\n  \
         printf(\"%zu %zu\\n\", peak, now);\n  return 0;\n}}\n",
        values.join(", ")
    );
    fs::write(folder.join("main.c"), main).unwrap();
    let arguments = ["main.c", "function.o", "-Wl,--wrap=malloc,--wrap=free", "-o", "main"];
    run_command(&folder, Command::new("cc").args(arguments));
    let output = run_command(&folder, &mut Command::new("./main"));
    let (peak, left) = output.trim().split_once(' ').expect("two numbers");
    assert_eq!(left, "0", "all memory is freed");
    peak.parse().unwrap()
}

fn run_command(folder: &Path, command: &mut Command) -> String {
    let output = command.current_dir(folder).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Programs, the bytes of their arguments, and whether they need scratch.
const ALLOCATING: &[(Language, &str, &[usize], bool)] = &[
    // The square exists between two operations.
    (
        Language::Tc,
        "def center(float(64, 128) I) -> (O) {
           local M(n) +=! I(n, d)
           local E(n, d) = exp(I(n, d) - M(n) / 128.0)
           local S(n) +=! E(n, d)
           O(n, d) = E(n, d) / S(n)
         }",
        &[64 * 128 * 4, 64 * 128 * 4],
        false,
    ),
    // The right operand is packed.
    (
        Language::Tc,
        "def packed(float(64, 64) A, float(64, 64) B) -> (C) { C(m, n) +=! A(m, k) * B(n, k) }",
        &[64 * 64 * 4; 3],
        true,
    ),
    // A chain of products of different sizes: the first one is freed before the last one is made.
    (
        Language::Hlo,
        "HloModule chain
         ENTRY main {
           a = f32[30,40] parameter(0)
           b = f32[40,50] parameter(1)
           c = f32[50,60] parameter(2)
           d = f32[60,20] parameter(3)
           ab = f32[30,50] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           abc = f32[30,60] dot(ab, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           abcd = f32[30,20] dot(abc, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           ROOT e = f32[30,20] dot(abcd, abcd), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={}, rhs_contracting_dims={}
         }",
        &[30 * 40 * 4, 40 * 50 * 4, 50 * 60 * 4, 60 * 20 * 4, 30 * 20 * 4],
        false,
    ),
    // Each iteration allocates an array and frees the one before.
    (
        Language::Hlo,
        "HloModule power
         body {
           s = (s32[], f32[32,32], f32[32,32]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           one = s32[] constant(1)
           j = s32[] add(i, one)
           x = f32[32,32] get-tuple-element(s), index=1
           w = f32[32,32] get-tuple-element(s), index=2
           y = f32[32,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
           ROOT t = (s32[], f32[32,32], f32[32,32]) tuple(j, y, w)
         }
         cond {
           s = (s32[], f32[32,32], f32[32,32]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           n = s32[] constant(10)
           ROOT c = pred[] compare(i, n), direction=LT
         }
         ENTRY main {
           x = f32[32,32] parameter(0)
           w = f32[32,32] parameter(1)
           zero = s32[] constant(0)
           t = (s32[], f32[32,32], f32[32,32]) tuple(zero, x, w)
           l = (s32[], f32[32,32], f32[32,32]) while(t), condition=cond, body=body
           ROOT r = f32[32,32] get-tuple-element(l), index=1
         }",
        &[32 * 32 * 4; 3],
        false,
    ),
    // Rows are sorted in memory of their own.
    (
        Language::Hlo,
        "HloModule sorted
         less {
           a = f32[] parameter(0)
           b = f32[] parameter(1)
           ROOT c = pred[] compare(a, b), direction=LT
         }
         ENTRY main {
           x = f32[16,100] parameter(0)
           ROOT y = f32[16,100] sort(x), dimensions={1}, to_apply=less
         }",
        &[16 * 100 * 4; 2],
        true,
    ),
];

#[test]
fn memory_is_what_a_call_allocates() {
    let session = Session::new("cpu").unwrap();
    for (number, (language, text, arguments, has_scratch)) in ALLOCATING.iter().enumerate() {
        let module = lower(&session, *language, text, &[]);
        let options = Codegen::default();
        let cost = only(&module, &options);
        let (temporary, scratch) =
            (number_of(&cost.temporary_bytes), number_of(&cost.scratch_bytes));
        assert_eq!(0 < scratch, *has_scratch, "{text}");
        let found = allocated(&number.to_string(), &module, &options, arguments);
        println!("{temporary} + {scratch}, {found} allocated");
        if temporary == 0 || scratch == 0 {
            assert_eq!(temporary + scratch, found, "{text}");
        } else {
            let bounds = temporary.max(scratch)..=temporary + scratch;
            assert!(bounds.contains(&found), "{found} is not in {bounds:?}: {text}");
        }
    }
}

#[test]
fn memory_in_parallel_loops_counts_once_per_thread() {
    let session = Session::new("cpu").unwrap();
    let text =
        "func.func @rows(%a: tensor<64x32xf32>, %c: tensor<64x32xf32>) -> tensor<64x32xf32> {
      %d = scf.forall (%i) in (64) shared_outs(%o = %c) -> tensor<64x32xf32> {
        %row = tensor.extract_slice %a[%i, 0] [1, 32] [1, 1] : tensor<64x32xf32> to tensor<32xf32>
        %t = tensor.empty() : tensor<32xf32>
        %rows = tensor.extract_slice %a[0, 0] [4, 32] [1, 1] : tensor<64x32xf32> to tensor<4x32xf32>
        %x = linalg.reduce { arith.subf } ins(%rows : tensor<4x32xf32>)
          outs(%t : tensor<32xf32>) dimensions = [0]
        %u = tensor.empty() : tensor<32xf32>
        %y = linalg.add ins(%x, %row : tensor<32xf32>, tensor<32xf32>)
          outs(%u : tensor<32xf32>) -> tensor<32xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %y into %o[%i, 0] [1, 32] [1, 1]
            : tensor<32xf32> into tensor<64x32xf32>
        }
      }
      return %d : tensor<64x32xf32>
    }";
    let module = lower(&session, Language::Mlir, text, &[]);
    // One thread has its rows in memory that the result does not need yet.
    let bytes = |threads| {
        let cost = only(&module, &Codegen { threads, ..Codegen::default() });
        number_of(&cost.scratch_bytes)
    };
    assert_eq!(bytes(1), 0);
    assert!(0 < bytes(2));
    assert_eq!(2 * bytes(5), 5 * bytes(2));
}
