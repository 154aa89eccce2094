//! The interpreter on control flow, slices, memory and vectors.

use super::tests::{error, floats, ints, run_text, scalar, values, with_function};
use super::*;

/// Runs the code of a function on `%A: tensor<4xi32>`, which returns `%r` of a type. Line 3 is the first
/// of the code.
fn code(result: &str, code: &str) -> String {
    format!(
        "
func.func @f(%A: tensor<4xi32>) -> {result} {{
  {code}
  return %r : {result}
}}"
    )
}

const A: [i32; 4] = [1, 2, 3, 4];

fn run_code(result: &str, text: &str) -> Vec<f64> {
    let outcomes = run_text(&code(result, text), &[ints(&[4], &A)]);
    values(&outcomes.unwrap_or_else(|error| panic!("{error}\n{text}"))[0])
}

fn error_code(result: &str, text: &str) -> String {
    error(&code(result, text), &[ints(&[4], &A)])
}

#[test]
fn for_loops_carry_scalars_and_tensors() {
    // Prefix sums, from the third element on.
    let text = "%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %r, %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %A, %sum = %zero) -> (tensor<4xi32>, i32) {
    %a = tensor.extract %A[%i] : tensor<4xi32>
    %n = arith.addi %sum, %a : i32
    %u = tensor.insert %n into %t[%i] : tensor<4xi32>
    scf.yield %u, %n : tensor<4xi32>, i32
  }";
    assert_eq!(run_code("tensor<4xi32>", text), [1.0, 3.0, 6.0, 10.0]);
    let by_two = text
        .replace("step %c1", "step %c2")
        .replace("%c1 = arith.constant 1", "%c2 = arith.constant 2");
    assert_eq!(run_code("tensor<4xi32>", &by_two), [1.0, 2.0, 4.0, 4.0]);
    let never = text.replace("%c0 to %c4", "%c4 to %c0");
    assert_eq!(run_code("tensor<4xi32>", &never), [1.0, 2.0, 3.0, 4.0]);
    let stuck = text.replace("step %c1", "step %c0");
    assert_eq!(
        error_code("tensor<4xi32>", &stuck),
        "-:7:12: error: 'scf.for' op has a step of 0; expected 1 or more"
    );
    let outside = text.replace("into %t[%i]", "into %t[%c4]");
    assert_eq!(
        error_code("tensor<4xi32>", &outside),
        "-:10:10: error: 'tensor.insert' op is out of bounds: index [4] of a tensor of shape [4]"
    );
}

#[test]
fn values_that_a_loop_swaps_are_read_first() {
    let text = "%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = arith.constant 7 : i32
  %y = arith.constant 8 : i32
  %p, %q = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (i32, i32) {
    scf.yield %b, %a : i32, i32
  }
  %r = tensor.from_elements %p, %q : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [8.0, 7.0]);
}

#[test]
fn tensors_keep_their_value_when_a_copy_is_written() {
    // Both users of %t see what it was before the insertion.
    let text = "%c0 = arith.constant 0 : index
  %nine = arith.constant 9 : i32
  %t = tensor.insert %nine into %A[%c0] : tensor<4xi32>
  %u = bufferization.alloc_tensor() copy(%t) : tensor<4xi32>
  %v = tensor.insert %nine into %u[%c1] : tensor<4xi32>
  %x = tensor.extract_slice %A[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
  %y = tensor.extract_slice %t[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
  %z = tensor.extract_slice %v[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
  %e = tensor.empty() : tensor<6xi32>
  %e0 = tensor.insert_slice %x into %e[0] [2] [1] : tensor<2xi32> into tensor<6xi32>
  %e1 = tensor.insert_slice %y into %e0[2] [2] [1] : tensor<2xi32> into tensor<6xi32>
  %r = tensor.insert_slice %z into %e1[4] [2] [1] : tensor<2xi32> into tensor<6xi32>";
    let text = text.replace("%nine =", "%c1 = arith.constant 1 : index\n  %nine =");
    assert_eq!(run_code("tensor<6xi32>", &text), [1.0, 2.0, 9.0, 2.0, 9.0, 9.0]);
}

#[test]
fn while_loops_and_switches() {
    // 3 -> 10 -> 5 -> 16 -> 8 -> 4 -> 2 -> 1: seven steps.
    let text = "%one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %n, %steps = scf.while (%x = %three, %count = %zero) : (i32, i32) -> (i32, i32) {
    %go = arith.cmpi ne, %x, %one : i32
    scf.condition(%go) %x, %count : i32, i32
  } do {
  ^bb0(%x: i32, %count: i32):
    %rest = arith.remui %x, %two : i32
    %key = arith.index_cast %rest : i32 to index
    %next = scf.index_switch %key -> i32
    case 0 {
      %half = arith.divui %x, %two : i32
      scf.yield %half : i32
    }
    default {
      %triple = arith.muli %x, %three : i32
      %up = arith.addi %triple, %one : i32
      scf.yield %up : i32
    }
    %more = arith.addi %count, %one : i32
    scf.yield %next, %more : i32, i32
  }
  %r = tensor.from_elements %n, %steps : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [1.0, 7.0]);
    let forever = text.replace("%go = arith.cmpi ne, %x, %one : i32", "%go = arith.constant true");
    let limits = Limits { points: 1000, elements: 100 };
    let message = with_function(&code("tensor<2xi32>", &forever), |op| {
        Interpreter::new(op)?.run(&[ints(&[4], &A)], limits).map(|_| ())
    });
    assert_eq!(
        message.unwrap_err().to_string(),
        "-:7:16: error: 'scf.while' op needs more than the 1000 points that the interpreter is given"
    );
}

#[test]
fn branches_give_tensors_and_memrefs() {
    let text = "%c0 = arith.constant 0 : index
  %five = arith.constant 5 : i32
  %a = tensor.extract %A[%c0] : tensor<4xi32>
  %c = arith.cmpi slt, %a, %five : i32
  %t, %m = scf.if %c -> (tensor<4xi32>, memref<1xi32>) {
    %t = tensor.insert %five into %A[%c0] : tensor<4xi32>
    %m = memref.alloc() : memref<1xi32>
    memref.store %a, %m[%c0] : memref<1xi32>
    scf.yield %t, %m : tensor<4xi32>, memref<1xi32>
  } else {
    %m = memref.alloc() : memref<1xi32>
    scf.yield %A, %m : tensor<4xi32>, memref<1xi32>
  }
  %b = memref.load %m[%c0] : memref<1xi32>
  %c1 = arith.constant 1 : index
  %r = tensor.insert %b into %t[%c1] : tensor<4xi32>";
    assert_eq!(run_code("tensor<4xi32>", text), [5.0, 1.0, 3.0, 4.0]);
}

#[test]
fn a_branch_that_rounding_decides_writes_both_ways() {
    // 0.1 + 0.2 - 0.3 is near 0 in f32: nobody knows its sign.
    let text = "
func.func @f(%x: tensor<f32>) -> (tensor<3xi32>) {
  %v = tensor.extract %x[] : tensor<f32>
  %third = arith.constant 0.333333343 : f32
  %p = arith.mulf %v, %third : f32
  %one = arith.constant 1.0 : f32
  %d = arith.subf %p, %one : f32
  %zero = arith.constant 0.0 : f32
  %c = arith.cmpf ogt, %d, %zero : f32
  %m = memref.alloc() : memref<3xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %i5 = arith.constant 5 : i32
  %i6 = arith.constant 6 : i32
  memref.store %i5, %m[%c0] : memref<3xi32>
  memref.store %i5, %m[%c1] : memref<3xi32>
  memref.store %i5, %m[%c2] : memref<3xi32>
  scf.if %c {
    memref.store %i6, %m[%c0] : memref<3xi32>
    memref.store %i6, %m[%c1] : memref<3xi32>
  } else {
    memref.store %i6, %m[%c1] : memref<3xi32>
  }
  %r = bufferization.to_tensor %m restrict : memref<3xi32> to tensor<3xi32>
  return %r : tensor<3xi32>
}";
    let outcome = &run_text(text, &[floats(&[], &[3.0])]).unwrap()[0];
    let uncertain: Vec<_> = (0..3).map(|at| outcome.is_uncertain(at)).collect();
    assert_eq!(uncertain, [true, false, false]);
    assert_eq!(values(outcome)[1..], [6.0, 5.0]);
    let outcome = &run_text(text, &[floats(&[], &[6.0])]).unwrap()[0];
    assert_eq!(values(outcome), [6.0, 6.0, 5.0]);
    assert!(!outcome.is_uncertain(0));
}

#[test]
fn forall_inserts_into_shared_tensors() {
    // Tiles of two elements in reverse; an iteration reads the tensor from before the loop.
    let text =
        "%r = scf.forall (%i) = (0) to (4) step (2) shared_outs(%o = %A) -> (tensor<4xi32>) {
    %t = tensor.extract_slice %o[0] [2] [1] : tensor<4xi32> to tensor<2xi32>
    %j = imap.apply #imap.map<(d0) -> (2 - d0)>(%i) : index
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%j] [2] [1] : tensor<2xi32> into tensor<4xi32>
    }
  }";
    assert_eq!(run_code("tensor<4xi32>", text), [1.0, 2.0, 1.0, 2.0]);
    let outside = text.replace("(2 - d0)", "(3 - d0)");
    assert_eq!(
        error_code("tensor<4xi32>", &outside),
        "-:7:7: error: 'tensor.parallel_insert_slice' op is out of bounds: offset 3, size 2 and stride 1 in \
         dimension 0 of extent 4"
    );
}

#[test]
fn parallel_loops_reduce() {
    let text = "%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %ten = arith.constant 10 : i32
  %one = arith.constant 1 : i32
  %s, %p = scf.parallel (%i, %j) = (%c0, %c0) to (%c2, %c2) step (%c1, %c1) init (%ten, %one) -> (i32, i32) {
    %k = imap.apply #imap.map<(d0, d1) -> (d0 * 2 + d1)>(%i, %j) : index
    %a = tensor.extract %A[%k] : tensor<4xi32>
    scf.reduce(%a, %a : i32, i32) {
    ^bb0(%x: i32, %y: i32):
      %z = arith.addi %x, %y : i32
      scf.reduce.return %z : i32
    }, {
    ^bb0(%x: i32, %y: i32):
      %z = arith.muli %x, %y : i32
      scf.reduce.return %z : i32
    }
  }
  %r = tensor.from_elements %s, %p : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [20.0, 24.0]);
}

#[test]
fn regions_that_run_once_and_calls() {
    let text = "
func.func @f(%A: tensor<4xi32>) -> tensor<2xi32> {
  %c1 = arith.constant 1 : index
  %x = scf.execute_region -> i32 {
    %a = func.call @at(%A, %c1) : (tensor<4xi32>, index) -> i32
    scf.yield %a : i32
  }
  %c3 = arith.constant 3 : index
  %y = func.call @at(%A, %c3) : (tensor<4xi32>, index) -> i32
  %r = tensor.from_elements %x, %y : tensor<2xi32>
  return %r : tensor<2xi32>
}
func.func private @at(%A: tensor<4xi32>, %i: index) -> i32 {
  %a = tensor.extract %A[%i] : tensor<4xi32>
  return %a : i32
}";
    let inputs = [ints(&[4], &A)];
    assert_eq!(values(&run_text(text, &inputs).unwrap()[0]), [2.0, 4.0]);
    let recursive = text.replace(
        "%a = tensor.extract %A[%i] : tensor<4xi32>\n  return",
        "%a = func.call @at(%A, %i) : (tensor<4xi32>, index) -> i32\n  return",
    );
    assert_eq!(
        error(&recursive, &inputs),
        "-:14:8: error: 'func.call' op calls 'at', which is recursive"
    );
    let text = "
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %v = tensor.extract %x[] : tensor<f32>
  %y = func.call @tc_exp10_f32(%v) : (f32) -> f32
  %r = tensor.from_elements %y : tensor<f32>
  return %r : tensor<f32>
}
func.func private @tc_exp10_f32(f32) -> f32";
    assert_eq!(values(&run_text(text, &[floats(&[], &[2.0])]).unwrap()[0]), [100.0]);
    assert_eq!(
        error(&text.replace("tc_exp10_f32", "exp10f"), &[floats(&[], &[2.0])]),
        "-:4:8: error: 'func.call' op calls 'exp10f', whose body is not in the module"
    );
}

#[test]
fn slices_of_tensors() {
    let text = "
func.func @f(%A: tensor<3x4xi32>, %B: tensor<3xi32>) -> (tensor<2xi32>, tensor<2x2xi32>, tensor<3x4xi32>, tensor<?xi32>) {
  %row = tensor.extract_slice %A[1, 1] [1, 2] [1, 2] : tensor<3x4xi32> to tensor<2xi32>
  %block = tensor.extract_slice %A[0, 0] [2, 2] [2, 3] : tensor<3x4xi32> to tensor<2x2xi32>
  %column = tensor.insert_slice %B into %A[0, 3] [3, 1] [1, 1] : tensor<3xi32> into tensor<3x4xi32>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %part = tensor.extract_slice %B[%c1] [%c2] [1] : tensor<3xi32> to tensor<?xi32>
  return %row, %block, %column, %part : tensor<2xi32>, tensor<2x2xi32>, tensor<3x4xi32>, tensor<?xi32>
}";
    let inputs =
        [ints(&[3, 4], &[0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]), ints(&[3], &[7, 8, 9])];
    let found: Vec<_> = run_text(text, &inputs).unwrap().iter().map(values).collect();
    assert_eq!(found[0], [11.0, 13.0]);
    assert_eq!(found[1], [0.0, 3.0, 20.0, 23.0]);
    assert_eq!(found[2], [0.0, 1.0, 2.0, 7.0, 10.0, 11.0, 12.0, 8.0, 20.0, 21.0, 22.0, 9.0]);
    assert_eq!(found[3], [8.0, 9.0]);
    assert_eq!(
        error(&text.replace("%B[%c1] [%c2]", "%B[%c2] [%c2]"), &inputs),
        "-:8:11: error: 'tensor.extract_slice' op is out of bounds: offset 2, size 2 and stride 1 in \
         dimension 0 of extent 3"
    );
}

#[test]
fn reshapes_keep_the_order() {
    let text = "%e = tensor.expand_shape %A [[0, 1]] output_shape [2, 2] : tensor<4xi32> into tensor<2x2xi32>
  %row = tensor.extract_slice %e[1, 0] [1, 2] [1, 1] : tensor<2x2xi32> to tensor<1x2xi32>
  %r = tensor.collapse_shape %row [[0, 1]] : tensor<1x2xi32> into tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [3.0, 4.0]);
    let splat = "%nine = arith.constant 9 : i32
  %n = arith.constant 3 : index
  %t = tensor.splat %nine[%n] : tensor<?xi32>
  %c0 = arith.constant 0 : index
  %d = tensor.dim %t, %c0 : tensor<?xi32>
  %i = arith.index_cast %d : index to i32
  %x = tensor.extract %t[%c0] : tensor<?xi32>
  %r = tensor.from_elements %i, %x : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", splat), [3.0, 9.0]);
    let text = "
func.func @f(%A: tensor<?xi32>, %S: tensor<index>) -> tensor<?x2xi32> {
  %n = tensor.extract %S[] : tensor<index>
  %r = tensor.expand_shape %A [[0, 1]] output_shape [%n, 2] : tensor<?xi32> into tensor<?x2xi32>
  return %r : tensor<?x2xi32>
}";
    let size = |size: i64| Tensor::from_values(&[], &[size]).unwrap();
    let outcome = &run_text(text, &[ints(&[4], &A), size(2)]).unwrap()[0];
    assert_eq!((outcome.shape(), values(outcome)), (&[2, 2][..], vec![1.0, 2.0, 3.0, 4.0]));
    assert_eq!(
        error(text, &[ints(&[4], &A), size(3)]),
        "-:4:8: error: 'tensor.expand_shape' op expands an extent of 4 to [3, 2]"
    );
}

#[test]
fn views_share_memory() {
    let text = "%m = memref.alloc() : memref<2x4xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %flat = memref.collapse_shape %m [[0, 1]] : memref<2x4xi32> into memref<8xi32>
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %n = arith.index_cast %i : index to i32
    memref.store %n, %flat[%i] : memref<8xi32>
  }
  %column = memref.subview %m[0, 1] [2, 2] [1, 2] : memref<2x4xi32> to memref<2x2xi32, strided<[4, 2], offset: 1>>
  %nine = arith.constant 9 : i32
  memref.store %nine, %column[%c1, %c1] : memref<2x2xi32, strided<[4, 2], offset: 1>>
  %cast = memref.cast %column : memref<2x2xi32, strided<[4, 2], offset: 1>> to memref<?x?xi32, strided<[?, ?], offset: ?>>
  %d = memref.dim %cast, %c1 : memref<?x?xi32, strided<[?, ?], offset: ?>>
  %n = arith.index_cast %d : index to i32
  %x = memref.load %cast[%c1, %c0] : memref<?x?xi32, strided<[?, ?], offset: ?>>
  %y = memref.load %flat[%c4] : memref<8xi32>
  %z = memref.load %m[%c1, %three] : memref<2x4xi32>
  %again = memref.reinterpret_cast %m to offset: [2], sizes: [2], strides: [3] : memref<2x4xi32> to memref<2xi32, strided<[3], offset: 2>>
  %w = memref.load %again[%c1] : memref<2xi32, strided<[3], offset: 2>>
  %r = tensor.from_elements %n, %x, %y, %z, %w : tensor<5xi32>";
    let text = text.replace("%nine =", "%three = arith.constant 3 : index\n  %nine =");
    // %column[1, 1] is %m[1, 3].
    assert_eq!(run_code("tensor<5xi32>", &text), [2.0, 5.0, 4.0, 9.0, 5.0]);
    let outside = text.replace("%column[%c1, %c1]", "%column[%c1, %c2]");
    assert_eq!(
        error_code("tensor<5xi32>", &outside),
        "-:17:3: error: 'memref.store' op is out of bounds: index [1, 2] of a memref of shape [2, 2]"
    );
    let beyond = text.replace("offset: [2], sizes: [2]", "offset: [5], sizes: [2]");
    let beyond = beyond.replace("strided<[3], offset: 2>", "strided<[3], offset: 5>");
    assert_eq!(
        error_code("tensor<5xi32>", &beyond),
        "-:25:8: error: 'memref.load' op is out of bounds: a memref of shape [2] ends before it"
    );
}

#[test]
fn memory_is_copied_and_expanded() {
    let text = "%m = bufferization.to_buffer %A : tensor<4xi32> to memref<4xi32>
  %e = memref.expand_shape %m [[0, 1]] output_shape [2, 2] : memref<4xi32> into memref<2x2xi32>
  %row = memref.subview %e[1, 0] [1, 2] [1, 1] : memref<2x2xi32> to memref<2xi32, strided<[1], offset: 2>>
  %front = memref.subview %m[0] [2] [1] : memref<4xi32> to memref<2xi32, strided<[1]>>
  memref.copy %row, %front : memref<2xi32, strided<[1], offset: 2>> to memref<2xi32, strided<[1]>>
  %clone = bufferization.clone %m : memref<4xi32> to memref<4xi32>
  %c0 = arith.constant 0 : index
  %nine = arith.constant 9 : i32
  memref.store %nine, %m[%c0] : memref<4xi32>
  %r = bufferization.to_tensor %clone restrict : memref<4xi32> to tensor<4xi32>";
    assert_eq!(run_code("tensor<4xi32>", text), [3.0, 4.0, 3.0, 4.0]);
    let bad = text.replace(
        "%m[0] [2] [1] : memref<4xi32> to memref<2xi32, strided<[1]>>",
        "%m[0] [%n] [1] : memref<4xi32> to memref<?xi32, strided<[1]>>",
    );
    let bad = bad.replace(
        "offset: 2>> to memref<2xi32, strided<[1]>>",
        "offset: 2>> to memref<?xi32, strided<[1]>>",
    );
    let bad = bad.replace("%e =", "%n = arith.constant 3 : index\n  %e =");
    assert_eq!(
        error_code("tensor<4xi32>", &bad),
        "-:8:3: error: 'memref.copy' op copies elements of shape [2] to [3]"
    );
}

#[test]
fn freed_memory_is_gone() {
    let text = "%c0 = arith.constant 0 : index
  %m = memref.alloc() : memref<1xi32>
  %one = arith.constant 1 : i32
  memref.store %one, %m[%c0] : memref<1xi32>
  memref.dealloc %m : memref<1xi32>
  %x = memref.load %m[%c0] : memref<1xi32>
  %r = tensor.from_elements %x : tensor<1xi32>";
    assert_eq!(
        error_code("tensor<1xi32>", text),
        "-:8:8: error: 'memref.load' op uses memory that has been freed\n\
         -:7:3: note: 'memref.dealloc' op frees it"
    );
    let twice = text.replace(
        "%x = memref.load %m[%c0] : memref<1xi32>",
        "memref.dealloc %m : memref<1xi32>\n  %x = arith.constant 0 : i32",
    );
    assert!(
        error_code("tensor<1xi32>", &twice)
            .starts_with("-:8:3: error: 'memref.dealloc' op uses memory")
    );
}

#[test]
fn ownership_frees_what_is_not_retained() {
    let text = |condition: &str, retained: &str| {
        format!(
            "%c0 = arith.constant 0 : index
  %own = arith.constant {condition}
  %m = memref.alloc() : memref<1xi32>
  %n = memref.alloc() : memref<1xi32>
  %one = arith.constant 1 : i32
  memref.store %one, %m[%c0] : memref<1xi32>
  %o = bufferization.dealloc (%m : memref<1xi32>) if (%own) retain ({retained} : memref<1xi32>)
  %i = arith.extui %o : i1 to i32
  %x = memref.load %m[%c0] : memref<1xi32>
  %r = tensor.from_elements %i, %x : tensor<2xi32>"
        )
    };
    assert_eq!(run_code("tensor<2xi32>", &text("true", "%m")), [1.0, 1.0]);
    assert_eq!(run_code("tensor<2xi32>", &text("false", "%m")), [0.0, 1.0]);
    assert_eq!(run_code("tensor<2xi32>", &text("false", "%n")), [0.0, 1.0]);
    let message = error_code("tensor<2xi32>", &text("true", "%n"));
    assert!(message.contains("-:9:8: note: 'bufferization.dealloc' op frees it"), "{message}");
}

#[test]
fn read_only_memory_is_not_written() {
    let text = "%m = bufferization.to_buffer %A read_only : tensor<4xi32> to memref<4xi32>
  %c0 = arith.constant 0 : index
  %x = memref.load %m[%c0] : memref<4xi32>
  memref.store %x, %m[%c0] : memref<4xi32>
  %r = tensor.from_elements %x : tensor<1xi32>";
    assert_eq!(
        error_code("tensor<1xi32>", text),
        "-:6:3: error: 'memref.store' op writes to memory that is only read\n\
         -:3:8: note: 'bufferization.to_buffer' op makes it"
    );
}

#[test]
fn globals_have_their_elements() {
    let text = "
func.func @f() -> tensor<3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.get_global @table : memref<2xf32>
  %s = memref.get_global @scratch : memref<1xf32>
  %x = memref.load %t[%c1] : memref<2xf32>
  memref.store %x, %s[%c0] : memref<1xf32>
  %again = memref.get_global @scratch : memref<1xf32>
  %y = memref.load %again[%c0] : memref<1xf32>
  %z = memref.load %t[%c0] : memref<2xf32>
  %r = tensor.from_elements %x, %y, %z : tensor<3xf32>
  return %r : tensor<3xf32>
}
memref.global \"private\" constant @table : memref<2xf32> = dense<[0.5, 2.0]>
memref.global \"private\" @scratch : memref<1xf32>";
    assert_eq!(values(&run_text(text, &[]).unwrap()[0]), [2.0, 2.0, 0.5]);
    let text = text.replace(
        "memref.store %x, %s[%c0] : memref<1xf32>",
        "memref.store %x, %t[%c0] : memref<2xf32>",
    );
    assert_eq!(
        error(&text, &[]),
        "-:8:3: error: 'memref.store' op writes to memory that is only read\n\
         -:15:1: note: 'memref.global' op makes it"
    );
}

#[test]
fn atomic_updates_combine() {
    for (kind, expected) in [
        ("addi", 9),
        ("muli", 14),
        ("maxs", 7),
        ("mins", 2),
        ("andi", 2),
        ("ori", 7),
        ("assign", 7),
    ] {
        let text = format!(
            "%c0 = arith.constant 0 : index
  %two = arith.constant 2 : i32
  %seven = arith.constant 7 : i32
  %m = memref.alloca() : memref<1xi32>
  memref.store %two, %m[%c0] : memref<1xi32>
  %old = memref.atomic_rmw {kind} %seven, %m[%c0] : (i32, memref<1xi32>) -> i32
  %new = memref.load %m[%c0] : memref<1xi32>
  %r = tensor.from_elements %old, %new : tensor<2xi32>"
        );
        assert_eq!(run_code("tensor<2xi32>", &text), [2.0, expected.into()], "{kind}");
    }
}

#[test]
fn generics_on_memory() {
    // In place, a fold from what is there, and a fold from the identity.
    let text = "%x = bufferization.to_buffer %A : tensor<4xi32> to memref<4xi32>
  %s = memref.alloc() : memref<i32>
  %p = memref.alloc() : memref<i32>
  %ten = arith.constant 10 : i32
  memref.store %ten, %s[] : memref<i32>
  imap.generic (i) domain: i in [0, 3] ins(%x[i] : memref<4xi32>) outs(%x[i] : memref<4xi32>) {
  ^bb0(%a: i32):
    %d = arith.addi %a, %a : i32
    imap.yield %d : i32
  }
  imap.generic ()[k] domain: k in [0, 3] ins(%x[k] : memref<4xi32>) outs(%s[], %p[] : memref<i32>, memref<i32>) fold [add i32 from outs 0, mul i32] {
  ^bb0(%a: i32):
    imap.yield %a, %a : i32, i32
  }
  %sum = memref.load %s[] : memref<i32>
  %product = memref.load %p[] : memref<i32>
  %r = tensor.from_elements %sum, %product : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [30.0, 384.0]);
    let outside = text.replace("outs(%x[i]", "outs(%x[i + 1]");
    assert_eq!(
        error_code("tensor<2xi32>", &outside),
        "-:8:3: error: 'imap.generic' op is out of bounds: index [4] of a memref of shape [4] (at i = 3)"
    );
}

#[test]
fn functions_in_destination_style() {
    let text = "
func.func @f(%a: memref<?xi32>, %c: memref<1xi32> {tc.output = 1 : i64, tc.inout}, %b: memref<?xi32> {tc.output = 0 : i64}) -> i32
    attributes {tc.checks = [\"one\", \"two\"]} {
  %c0 = arith.constant 0 : index
  %x = memref.load %a[%c0] : memref<?xi32>
  memref.store %x, %b[%c0] : memref<?xi32>
  %y = memref.load %c[%c0] : memref<1xi32>
  %z = arith.addi %x, %y : i32
  memref.store %z, %c[%c0] : memref<1xi32>
  %two = arith.constant 2 : i32
  %none = arith.constant 0 : i32
  %is = arith.cmpi eq, %x, %two : i32
  %status = arith.select %is, %two, %none : i32
  return %status : i32
}";
    let run = |first: i32, shapes: &[Vec<usize>]| {
        let inputs = [ints(&[3], &[first, 0, 0]), ints(&[1], &[10])];
        with_function(text, |op| {
            let interpreter = Interpreter::new(op)?.allow_undefined_results();
            interpreter.run_with_outputs(&inputs, shapes, Limits::default())
        })
    };
    let outcomes = run(5, &[vec![2], vec![1]]).unwrap();
    assert_eq!(values(&outcomes[0])[0], 5.0);
    assert!(outcomes[0].is_undefined(1));
    assert_eq!(values(&outcomes[1]), [15.0]);
    let message = run(2, &[vec![2], vec![1]]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(message, "-:2:1: error: 'func.func' op failed: two");
    let message = run(5, &[]).map(|_| ()).unwrap_err().to_string();
    assert_eq!(message, "-:2:1: error: 'func.func' op needs the extents of its output argument 2");
}

#[test]
fn undefined_elements_spread() {
    let text = "%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<2xi32>
  %five = arith.constant 5 : i32
  %t = tensor.insert %five into %e[%c0] : tensor<2xi32>
  %x = tensor.extract %t[%c1] : tensor<2xi32>
  %y = arith.addi %x, %five : i32
  %yes = arith.constant true
  %z = arith.select %yes, %five, %y : i32
  %u = arith.index_cast %y : i32 to index
  %c = arith.cmpi slt, %y, %five : i32
  USE";
    let run = |use_: &str| error_code("tensor<1xi32>", &text.replace("USE", use_));
    let fine = text.replace("USE", "%r = tensor.from_elements %z : tensor<1xi32>");
    assert_eq!(run_code("tensor<1xi32>", &fine), [5.0]);
    let select = |other| {
        let value = format!("%s = arith.select %c, %five, {other} : i32");
        value + "\n  %r = tensor.from_elements %s : tensor<1xi32>"
    };
    assert_eq!(run_code("tensor<1xi32>", &text.replace("USE", &select("%z"))), [5.0]);
    assert!(run(&select("%y")).contains("returns an undefined element"));
    let note = "\n-:5:8: note: 'tensor.empty' op leaves the element undefined";
    assert_eq!(
        run("%r = tensor.from_elements %y : tensor<1xi32>"),
        format!(
            "-:15:3: error: 'func.return' op returns an undefined element: [0] of result 0{note}"
        )
    );
    assert_eq!(
        run(
            "%w = tensor.extract %A[%u] : tensor<4xi32>\n  %r = tensor.from_elements %w : tensor<1xi32>"
        ),
        format!("-:14:8: error: 'tensor.extract' op has an undefined value for an index{note}")
    );
    assert_eq!(
        run(
            "%w = scf.if %c -> i32 { scf.yield %y : i32 } else { scf.yield %z : i32 }\n  %r = tensor.from_elements %w : tensor<1xi32>"
        ),
        format!("-:14:8: error: 'scf.if' op has an undefined value for the condition{note}")
    );
    assert_eq!(
        run("imap.check %c, \"x\"\n  %r = tensor.from_elements %z : tensor<1xi32>"),
        format!("-:14:3: error: 'imap.check' op has an undefined value for the condition{note}")
    );
    assert_eq!(
        run(
            "%w = scf.for %i = %c0 to %u step %c1 iter_args(%a = %z) -> i32 { scf.yield %a : i32 }\n  %r = tensor.from_elements %w : tensor<1xi32>"
        ),
        format!("-:14:8: error: 'scf.for' op has an undefined value for an upper bound{note}")
    );
    // Of memory, and through a fold.
    let text = "%m = memref.alloc() : memref<3xi32>
  %e = tensor.empty() : tensor<i32>
  %r = imap.generic ()[k] domain: k in [0, 2] ins(%t[k] : tensor<3xi32>) outs(%e[] : tensor<i32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<i32>";
    let text = text.replace(
        "%e =",
        "%t = bufferization.to_tensor %m restrict : memref<3xi32> to tensor<3xi32>\n  %e =",
    );
    assert_eq!(
        error_code("tensor<i32>", &text),
        "-:10:3: error: 'func.return' op returns an undefined element: [] of result 0\n\
         -:3:8: note: 'memref.alloc' op leaves the element undefined"
    );
}

#[test]
fn bits_and_halves() {
    let run = |from: &str, to: &str, code: &str, input: &Tensor| {
        let outcome = scalar(&[from], code, to, std::slice::from_ref(input)).unwrap();
        (!outcome.is_uncertain(0)).then(|| outcome.number(0).to_f64())
    };
    let (minus, seven) = (ints(&[], &[-2]), ints(&[], &[7]));
    for (name, input, expected) in [
        ("math.absi", &minus, 2.0),
        ("math.ctlz", &seven, 29.0),
        ("math.ctlz", &minus, 0.0),
        ("math.cttz", &minus, 1.0),
        ("math.ctpop", &minus, 31.0),
    ] {
        assert_eq!(
            run("i32", "i32", &format!("%r = {name} %a0 : i32"), input),
            Some(expected),
            "{name}"
        );
    }
    let bits = |value: f32| ints(&[], &[value.to_bits() as i32]);
    let to_float = "%r = arith.bitcast %a0 : i32 to f32";
    assert_eq!(run("i32", "f32", to_float, &bits(-2.5)), Some(-2.5));
    let to_bits = "%r = arith.bitcast %a0 : f32 to i32";
    assert_eq!(run("f32", "i32", to_bits, &floats(&[], &[1.5])), Some(f64::from(1.5f32.to_bits())));
    // Of a nan and of a rounded value, the bits are not known.
    assert_eq!(run("f32", "i32", to_bits, &floats(&[], &[f32::NAN])), None);
    let rounded = "%c = arith.constant 0.1 : f32\n%s = arith.mulf %a0, %c : f32\n%r = arith.bitcast %s : f32 to i32";
    assert_eq!(run("f32", "i32", rounded, &floats(&[], &[0.3])), None);
    for (name, expected) in [("arith.mulsi_extended", -1.0), ("arith.mului_extended", 6.0)] {
        let code = format!("%low, %r = {name} %a0, %seven : i32");
        let code = format!("%seven = arith.constant 7 : i32\n{code}");
        assert_eq!(run("i32", "i32", &code, &minus), Some(expected), "{name}");
    }
    let carry = "%s, %c = arith.addui_extended %a0, %a0 : i32, i1\n%r = arith.extui %c : i1 to i32";
    assert_eq!(run("i32", "i32", carry, &minus), Some(1.0));
    assert_eq!(run("i32", "i32", carry, &seven), Some(0.0));
}

#[test]
fn vectors_are_lanes() {
    let text = "%m = bufferization.to_buffer %A : tensor<4xi32> to memref<4xi32>
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %v = vector.load %m[%c0] : memref<4xi32>, vector<4xi32>
  %two = arith.constant dense<2> : vector<4xi32>
  %d = arith.muli %v, %two : vector<4xi32>
  %x = memref.load %m[%c2] : memref<4xi32>
  %b = vector.broadcast %x : i32 to vector<4xi32>
  %more = arith.cmpi sgt, %d, %b : vector<4xi32>
  %most = arith.select %more, %d, %b : vector<4xi1>, vector<4xi32>
  %swapped = vector.shuffle %most, %v [3, 2, 4, 5] : vector<4xi32>, vector<4xi32>
  %sum = vector.reduction <add>, %swapped : vector<4xi32> into i32
  %max = vector.reduction <maxsi>, %v, %sum : vector<4xi32> into i32
  %mask = vector.create_mask %c2 : vector<4xi1>
  %masked = vector.maskedload %m[%c2], %mask, %two : memref<4xi32>, vector<4xi1>, vector<4xi32> into vector<4xi32>
  %last = vector.extract %masked[3] : i32 from vector<4xi32>
  %first = vector.extract %masked[0] : i32 from vector<4xi32>
  vector.maskedstore %m[%c2], %mask, %two : memref<4xi32>, vector<4xi1>, vector<4xi32>
  %half = vector.load %m[%c2] : memref<4xi32>, vector<2xi32>
  %all = vector.reduction <mul>, %half : vector<2xi32> into i32
  %steps = vector.step : vector<4xindex>
  %numbers = arith.index_cast %steps : vector<4xindex> to vector<4xi32>
  %three = vector.extract %numbers[3] : i32 from vector<4xi32>
  %r = tensor.from_elements %sum, %max, %first, %last, %all, %three : tensor<6xi32>";
    // d = 2 4 6 8; most = 3 4 6 8; swapped = 8 6 1 2.
    assert_eq!(run_code("tensor<6xi32>", text), [17.0, 17.0, 3.0, 2.0, 4.0, 3.0]);
    let outside = text.replace("vector.load %m[%c0]", "vector.load %m[%c2]");
    assert_eq!(
        error_code("tensor<6xi32>", &outside),
        "-:6:8: error: 'vector.load' op is out of bounds: index [4] of a memref of shape [4]"
    );
}

#[test]
fn a_store_that_rounding_places_may_hit_any_element() {
    let text = "
func.func @f(%x: tensor<f32>) -> (tensor<3xi32>) {
  %v = tensor.extract %x[] : tensor<f32>
  %third = arith.constant 0.333333343 : f32
  %p = arith.mulf %v, %third : f32
  %n = arith.fptosi %p : f32 to i32
  %i = arith.index_cast %n : i32 to index
  %c3 = arith.constant 3 : index
  %c = arith.cmpi ult, %i, %c3 : index
  %zero = arith.constant 0 : i32
  %t = tensor.from_elements %zero, %zero, %zero : tensor<3xi32>
  %m = bufferization.to_buffer %t : tensor<3xi32> to memref<3xi32>
  %front = memref.subview %m[0] [2] [1] : memref<3xi32> to memref<2xi32, strided<[1]>>
  scf.if %c {
    memref.store %n, %front[%i] : memref<2xi32, strided<[1]>>
  }
  %r = bufferization.to_tensor %m restrict : memref<3xi32> to tensor<3xi32>
  return %r : tensor<3xi32>
}";
    // Whether 3 * 0.333333343 is below 1 is open.
    let outcome = &run_text(text, &[floats(&[], &[3.0])]).unwrap()[0];
    let uncertain: Vec<_> = (0..3).map(|at| outcome.is_uncertain(at)).collect();
    assert_eq!(uncertain, [true, true, false]);
    assert_eq!(values(&run_text(text, &[floats(&[], &[4.0])]).unwrap()[0]), [0.0, 1.0, 0.0]);
}

#[test]
fn a_condition_selects_one_of_two_buffers() {
    let text = "%m = bufferization.to_buffer %A : tensor<4xi32> to memref<4xi32>
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %first = memref.load %m[%c0] : memref<4xi32>
  %last = memref.load %m[%c3] : memref<4xi32>
  %less = arith.cmpi slt, %first, %last : i32
  %other = memref.alloc() : memref<4xi32>
  memref.copy %m, %other : memref<4xi32> to memref<4xi32>
  %one = arith.select %less, %m, %other : memref<4xi32>
  %two = arith.select %less, %other, %m : memref<4xi32>
  memref.store %last, %one[%c0] : memref<4xi32>
  memref.store %first, %two[%c3] : memref<4xi32>
  %r = bufferization.to_tensor %m restrict : memref<4xi32> to tensor<4xi32>";
    assert_eq!(run_code("tensor<4xi32>", text), [4.0, 2.0, 3.0, 4.0]);
    assert_eq!(run_code("tensor<4xi32>", &text.replace("slt", "sgt")), [1.0, 2.0, 3.0, 1.0]);
}

#[test]
fn bytes_are_elements_of_the_last_type_that_was_stored() {
    let text = "
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %five = arith.constant 5 : i32
  %six = arith.constant 6 : i32
  %wide = arith.constant 7 : i64
  %bytes = memref.alloc() : memref<24xi8>
  %ints = memref.view %bytes[%c0][] : memref<24xi8> to memref<2x2xi32>
  %longs = memref.view %bytes[%c8][%c1] : memref<24xi8> to memref<?xi64>
  memref.store %five, %ints[%c0, %c1] : memref<2x2xi32>
  memref.store %six, %ints[%c1, %c1] : memref<2x2xi32>
  %again = memref.view %bytes[%c0][] : memref<24xi8> to memref<4xi32>
  %x = memref.load %again[%c1] : memref<4xi32>
  memref.store %wide, %longs[%c0] : memref<?xi64>
  %long = memref.load %longs[%c0] : memref<?xi64>
  %y = arith.trunci %long : i64 to i32
  %r = tensor.from_elements %x, %y : tensor<2xi32>";
    assert_eq!(run_code("tensor<2xi32>", text), [5.0, 7.0]);
    // The last four bytes of the first of the longs.
    let covered = text.replace(
        "%y = arith.trunci %long : i64 to i32",
        "%y = memref.load %ints[%c1, %c1] : memref<2x2xi32>",
    );
    let error = error_code("tensor<2xi32>", &covered);
    assert!(error.contains("undefined"), "{error}");
    let beyond = text
        .replace("%longs = memref.view %bytes[%c8][%c1]", "%longs = memref.view %bytes[%c8][%c8]");
    assert_eq!(
        error_code("tensor<2xi32>", &beyond),
        "-:12:12: error: 'memref.view' op views bytes that the memref does not have"
    );
}

#[test]
fn structured_operations_are_loops() {
    let text = "
func.func @f(%A: tensor<2x3xf32>, %B: tensor<3x2xf32>) -> (tensor<2x2xf32>, tensor<3x2xf32>, tensor<3xi32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = linalg.matmul ins(%A, %B : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  %s = arith.addf %B, %B : tensor<3x2xf32>
  %n = tensor.empty() : tensor<3xi32>
  %i = linalg.generic {indexing_maps = [affine_map<(d0) -> (2 - d0)>, affine_map<(d0) -> (d0)>], iterator_types = [\"parallel\"]}
      ins(%n : tensor<3xi32>) outs(%n : tensor<3xi32>) {
  ^bb0(%a: i32, %b: i32):
    %d = linalg.index 0 : index
    %v = arith.index_cast %d : index to i32
    linalg.yield %v : i32
  } -> tensor<3xi32>
  return %c, %s, %i : tensor<2x2xf32>, tensor<3x2xf32>, tensor<3xi32>
}";
    let a = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = floats(&[3, 2], &[1.0, 0.5, -1.0, 0.25, 2.0, 8.0]);
    let found: Vec<_> = run_text(text, &[a, b]).unwrap().iter().map(values).collect();
    assert_eq!(found[0], [5.0, 25.0, 11.0, 51.25]);
    assert_eq!(found[1], [2.0, 1.0, -2.0, 0.5, 4.0, 16.0]);
    assert_eq!(found[2], [0.0, 1.0, 2.0]);
    // On memory, and out of bounds of one operand.
    let text = "%m = bufferization.to_buffer %A : tensor<4xi32> to memref<4xi32>
  %s = memref.alloc() : memref<i32>
  %ten = arith.constant 10 : i32
  linalg.fill ins(%ten : i32) outs(%s : memref<i32>)
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = [\"reduction\"]}
      ins(%m : memref<4xi32>) outs(%s : memref<i32>) {
  ^bb0(%a: i32, %b: i32):
    %v = arith.addi %a, %b : i32
    linalg.yield %v : i32
  }
  %sum = memref.load %s[] : memref<i32>
  %r = tensor.from_elements %sum : tensor<1xi32>";
    assert_eq!(run_code("tensor<1xi32>", text), [20.0]);
}

#[test]
fn threads_run_one_after_another() {
    let text = "%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %m = memref.alloc() : memref<4x2xi32>
  omp.parallel {
    %number = func.call @omp_get_thread_num() : () -> i32
    %n = func.call @omp_get_num_threads() : () -> i32
    %thread = arith.index_cast %number : i32 to index
    %row = arith.muli %thread, %c2 : index
    scf.for %j = %c0 to %c2 step %c1 {
      %k = arith.index_cast %j : index to i32
      %v = arith.addi %k, %n : i32
      memref.store %v, %m[%row, %j] : memref<4x2xi32>
    }
    omp.terminator
  }
  %x = memref.load %m[%c2, %c0] : memref<4x2xi32>
  %y = memref.load %m[%c2, %c1] : memref<4x2xi32>
  %r = tensor.from_elements %x, %y : tensor<2xi32>";
    let functions = "func.func private @omp_get_thread_num() -> i32
func.func private @omp_get_num_threads() -> i32";
    let module = |text: &str| format!("{}\n{functions}", code("tensor<2xi32>", text));
    let outcomes = run_text(&module(text), &[ints(&[4], &A)]).expect("it runs");
    assert_eq!(values(&outcomes[0]), [2.0, 3.0]);
    let other = text.replace("memref.load %m[%c2, %c1]", "memref.load %m[%c1, %c1]");
    let message = error(&module(&other), &[ints(&[4], &A)]);
    assert!(message.contains("returns an undefined element: [1] of result 0"), "{message}");
}
