// RUN: tc-opt %s --split-complex --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// Arguments, results and constants. Parts of what is created are known.
// CHECK-LABEL: func.func @signature(
// CHECK-SAME:    %x_re: tensor<2xf64> {tc.name = "x_re"}, %x_im: tensor<2xf64> {tc.name = "x_im"}, %[[N:.*]]: i32)
// CHECK-SAME:    -> (tensor<2xf64> {tc.name = "y_re"}, tensor<2xf64> {tc.name = "y_im"}, tensor<3xf32>, tensor<3xf32>, f32)
// CHECK-DAG:     %[[RE:.*]] = arith.constant dense<[1.000000e+00, 3.000000e+00, 5.000000e+00]> : tensor<3xf32>
// CHECK-DAG:     %[[IM:.*]] = arith.constant dense<[2.000000e+00, -4.000000e+00, 0.000000e+00]> : tensor<3xf32>
// CHECK-DAG:     %[[FOUR:.*]] = arith.constant 4.000000e+00 : f32
// CHECK:         return %x_re, %x_im, %[[RE]], %[[IM]], %[[FOUR]]
func.func @signature(%x: tensor<2xcomplex<f64>> {tc.name = "x"}, %n: i32)
    -> (tensor<2xcomplex<f64>> {tc.name = "y"}, tensor<3xcomplex<f32>>, f32) {
  %c = arith.constant dense<[(1.0, 2.0), (3.0, -4.0), (5.0, 0.0)]> : tensor<3xcomplex<f32>>
  %z = complex.constant [3.0 : f32, 4.0 : f32] : complex<f32>
  %im = complex.im %z : complex<f32>
  return %x, %c, %im : tensor<2xcomplex<f64>>, tensor<3xcomplex<f32>>, f32
}

// -----

// Maps, guards and accumulators belong to each part. An accumulator may start from a destination after
// complex ones. An epilogue that only creates numbers goes away.
// CHECK-LABEL: func.func @fold(
// CHECK-SAME:    %x_re: tensor<8xf32> {tc.name = "x_re"}, %x_im: tensor<8xf32>
// CHECK:         imap.generic ()[s0] domain: s0 in [0, 8] ins(%x_re[s0 - 1] where s0 in [1, 7], %x_im[s0 - 1] where s0 in [1, 7], %{{.*}}[s0] : tensor<8xf32>, tensor<8xf32>, tensor<9xf32>)
// CHECK-SAME:      outs(%{{.*}}[], %{{.*}}[], %{{.*}}[] : tensor<f32>, tensor<f32>, tensor<f32>) fold [add f32, add f32, add f32 from outs 2] {
// CHECK-NEXT:    ^bb0(%[[RE:.*]]: f32, %[[IM:.*]]: f32, %[[Y:.*]]: f32):
// CHECK-NEXT:      imap.yield %[[RE]], %[[IM]], %[[Y]] : f32, f32, f32
// CHECK-NEXT:    } -> tensor<f32>, tensor<f32>, tensor<f32>
func.func @fold(%x: tensor<8xcomplex<f32>> {tc.name = "x"}, %y: tensor<9xf32> {tc.name = "y"}, %i: tensor<f32>)
    -> (tensor<complex<f32>>, tensor<f32>) {
  %e = tensor.empty() : tensor<complex<f32>>
  %r:2 = imap.generic ()[s0] domain: s0 in [0, 8]
    ins(%x[s0 - 1] where s0 in [1, 7], %y[s0] : tensor<8xcomplex<f32>>, tensor<9xf32>)
    outs(%e[], %i[] : tensor<complex<f32>>, tensor<f32>) fold [add f32, add f32, add f32 from outs 1] {
  ^bb0(%a: complex<f32>, %b: f32):
    %re = complex.re %a : complex<f32>
    %im = complex.im %a : complex<f32>
    imap.yield %re, %im, %b : f32, f32, f32
  } epilogue {
  ^bb0(%re: f32, %im: f32, %s: f32, %a: complex<f32>, %b: f32):
    %z = complex.create %re, %im : complex<f32>
    imap.yield %z, %s : complex<f32>, f32
  } -> tensor<complex<f32>>, tensor<f32>
  return %r#0, %r#1 : tensor<complex<f32>>, tensor<f32>
}

// -----

// Runtime variables keep their maps, which stand after those of the parts.
// CHECK-LABEL: func.func @scatter(
// CHECK:         imap.scatter (d0){r} domain: d0 in [0, 3] runtime(%{{.*}}[d0] : tensor<4xi32>) ins(%u_re[d0], %u_im[d0] : tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME:      outs(%x_re[r] where r in [0, 7], %x_im[r] where r in [0, 7] : tensor<8xf32>, tensor<8xf32>) {
// CHECK:         } combine {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32):
// CHECK-NEXT:      %[[RE:.*]] = arith.addf %[[A]], %[[C]] : f32
// CHECK-NEXT:      imap.yield %[[RE]], %[[D]] : f32, f32
func.func @scatter(%x: tensor<8xcomplex<f32>> {tc.name = "x"}, %u: tensor<4xcomplex<f32>> {tc.name = "u"}, %i: tensor<4xi32> {tc.name = "i"})
    -> tensor<8xcomplex<f32>> {
  %r = imap.scatter (d0){r} domain: d0 in [0, 3] runtime(%i[d0] : tensor<4xi32>) ins(%u[d0] : tensor<4xcomplex<f32>>)
      outs(%x[r] where r in [0, 7] : tensor<8xcomplex<f32>>) {
  ^bb0(%a: complex<f32>):
    imap.yield %a : complex<f32>
  } combine {
  ^bb0(%old: complex<f32>, %new: complex<f32>):
    %a = complex.re %old : complex<f32>
    %c = complex.re %new : complex<f32>
    %d = complex.im %new : complex<f32>
    %re = arith.addf %a, %c : f32
    %z = complex.create %re, %d : complex<f32>
    imap.yield %z : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %r : tensor<8xcomplex<f32>>
}

// -----

// A scatter may add complex numbers without a region.
// CHECK-LABEL: func.func @scatter_add(
// CHECK:         imap.scatter {{.*}} fold [add f32, add f32]
func.func @scatter_add(%x: tensor<8xcomplex<f32>>, %u: tensor<4xcomplex<f32>>, %i: tensor<4xi32>) -> tensor<8xcomplex<f32>> {
  %r = imap.scatter (d0){r} domain: d0 in [0, 3] runtime(%i[d0] : tensor<4xi32>) ins(%u[d0] : tensor<4xcomplex<f32>>)
      outs(%x[r] where r in [0, 7] : tensor<8xcomplex<f32>>) fold [add complex<f32>] {
  ^bb0(%a: complex<f32>):
    imap.yield %a : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %r : tensor<8xcomplex<f32>>
}

// -----

func.func @scatter_multiply(%x: tensor<8xcomplex<f32>>, %u: tensor<4xcomplex<f32>>, %i: tensor<4xi32>) -> tensor<8xcomplex<f32>> {
  // expected-error @below {{'imap.scatter' op folds complex numbers by 'mul'; expected 'add', or a region 'combine'}}
  %r = imap.scatter (d0){r} domain: d0 in [0, 3] runtime(%i[d0] : tensor<4xi32>) ins(%u[d0] : tensor<4xcomplex<f32>>)
      outs(%x[r] where r in [0, 7] : tensor<8xcomplex<f32>>) fold [mul complex<f32>] {
  ^bb0(%a: complex<f32>):
    imap.yield %a : complex<f32>
  } -> tensor<8xcomplex<f32>>
  return %r : tensor<8xcomplex<f32>>
}

// -----

// The comparator is given both real parts before the imaginary parts.
// CHECK-LABEL: func.func @sort(
// CHECK:         imap.sort dim = 0 stable ins(%x_re, %x_im, %{{.*}} : tensor<9xf32>, tensor<9xf32>, tensor<9xi32>)
// CHECK-NEXT:    ^bb0(%{{.*}}: f32, %{{.*}}: f32, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[I:.*]]: i32, %[[J:.*]]: i32):
// CHECK-NEXT:      %[[IM:.*]] = arith.cmpf olt, %[[A]], %[[B]] : f32
// CHECK-NEXT:      %[[N:.*]] = arith.cmpi slt, %[[I]], %[[J]] : i32
// CHECK-NEXT:      arith.andi %[[IM]], %[[N]] : i1
func.func @sort(%x: tensor<9xcomplex<f32>> {tc.name = "x"}, %n: tensor<9xi32> {tc.name = "n"}) -> (tensor<9xcomplex<f32>>, tensor<9xi32>) {
  %0 = tensor.empty() : tensor<9xcomplex<f32>>
  %1 = tensor.empty() : tensor<9xi32>
  %r:2 = imap.sort dim = 0 stable ins(%x, %n : tensor<9xcomplex<f32>>, tensor<9xi32>) outs(%0, %1 : tensor<9xcomplex<f32>>, tensor<9xi32>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>, %i: i32, %j: i32):
    %p = complex.im %a : complex<f32>
    %q = complex.im %b : complex<f32>
    %s = arith.cmpf olt, %p, %q : f32
    %t = arith.cmpi slt, %i, %j : i32
    %less = arith.andi %s, %t : i1
    imap.yield %less : i1
  } -> tensor<9xcomplex<f32>>, tensor<9xi32>
  return %r#0, %r#1 : tensor<9xcomplex<f32>>, tensor<9xi32>
}

// -----

// Loops and branches carry parts.
// CHECK-LABEL: func.func @control(
// CHECK:         %[[W:.*]]:3 = scf.while (%{{.*}} = %x_re, %{{.*}} = %x_im, %{{.*}} = %{{.*}}) : (tensor<4xf32>, tensor<4xf32>, index) -> (tensor<4xf32>, tensor<4xf32>, index)
// CHECK:           scf.condition(%{{.*}}) %[[A:.*]], %[[B:.*]], %{{.*}} : tensor<4xf32>, tensor<4xf32>, index
// CHECK:         do {
// CHECK:           %[[I:.*]]:2 = scf.if %[[C:.*]] -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK:           scf.yield %[[I]]#0, %[[I]]#1, %{{.*}} : tensor<4xf32>, tensor<4xf32>, index
// CHECK:         scf.for {{.*}} iter_args(%[[SRE:.*]] = %{{.*}}, %[[SIM:.*]] = %{{.*}}) -> (f32, f32) {
// CHECK-NEXT:      %[[RE:.*]] = tensor.extract %[[W]]#0
// CHECK-NEXT:      %[[IM:.*]] = tensor.extract %[[W]]#1
// CHECK-NEXT:      arith.select %[[C]], %[[RE]], %[[SRE]] : f32
// CHECK-NEXT:      arith.select %[[C]], %[[IM]], %[[SIM]] : f32
func.func @control(%x: tensor<4xcomplex<f32>> {tc.name = "x"}, %c: i1 {tc.name = "c"}) -> (tensor<4xcomplex<f32>>, complex<f32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w:2 = scf.while (%s = %x, %n = %c0) : (tensor<4xcomplex<f32>>, index) -> (tensor<4xcomplex<f32>>, index) {
    %goes_on = arith.cmpi slt, %n, %c4 : index
    scf.condition(%goes_on) %s, %n : tensor<4xcomplex<f32>>, index
  } do {
  ^bb0(%s: tensor<4xcomplex<f32>>, %n: index):
    %z = complex.constant [1.0 : f32, 2.0 : f32] : complex<f32>
    %i = scf.if %c -> tensor<4xcomplex<f32>> {
      %t = tensor.insert %z into %s[%n] : tensor<4xcomplex<f32>>
      scf.yield %t : tensor<4xcomplex<f32>>
    } else {
      scf.yield %s : tensor<4xcomplex<f32>>
    }
    %m = arith.addi %n, %c1 : index
    scf.yield %i, %m : tensor<4xcomplex<f32>>, index
  }
  %z = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %f = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %z) -> (complex<f32>) {
    %e = tensor.extract %w#0[%i] : tensor<4xcomplex<f32>>
    %t = arith.select %c, %e, %s : complex<f32>
    scf.yield %t : complex<f32>
  }
  %d = tensor.dim %w#0, %c0 : tensor<4xcomplex<f32>>
  return %w#0, %f, %d : tensor<4xcomplex<f32>>, complex<f32>, index
}

// -----

// Memory, and a dimension, which all parts have.
// CHECK-LABEL: func.func @memory(
// CHECK-SAME:    %x_re: tensor<?xf64> {tc.name = "x_re"}, %x_im: tensor<?xf64>
// CHECK:         tensor.dim %x_re
// CHECK-NOT:     tensor.dim
// CHECK-DAG:     %[[RE:.*]] = bufferization.to_buffer %x_re read_only
// CHECK-DAG:     %[[IM:.*]] = bufferization.to_buffer %x_im read_only
// CHECK:         memref.store %{{.*}}, %{{.*}} : memref<?xf64>
// CHECK-NEXT:    memref.store %{{.*}}, %{{.*}} : memref<?xf64>
// CHECK:         bufferization.to_tensor %{{.*}} restrict : memref<?xf64>
// CHECK-NEXT:    bufferization.to_tensor %{{.*}} restrict : memref<?xf64>
func.func @memory(%x: tensor<?xcomplex<f64>> {tc.name = "x"}, %i: index) -> tensor<?xcomplex<f64>> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xcomplex<f64>>
  %m = bufferization.to_buffer %x read_only : tensor<?xcomplex<f64>> to memref<?xcomplex<f64>>
  %a = memref.alloc(%n) : memref<?xcomplex<f64>>
  memref.copy %m, %a : memref<?xcomplex<f64>> to memref<?xcomplex<f64>>
  %z = memref.load %m[%i] : memref<?xcomplex<f64>>
  memref.store %z, %a[%c0] : memref<?xcomplex<f64>>
  %r = bufferization.to_tensor %a restrict : memref<?xcomplex<f64>> to tensor<?xcomplex<f64>>
  return %r : tensor<?xcomplex<f64>>
}

// -----

// Other operations on scalars stay, for upstream's passes.
// CHECK-LABEL: func.func @exponential(
// CHECK:         %[[Z:.*]] = complex.create %x_re, %x_im : complex<f32>
// CHECK-NEXT:    %[[E:.*]] = complex.exp %[[Z]] : complex<f32>
// CHECK-NEXT:    %[[S:.*]] = complex.sin %[[E]] : complex<f32>
// CHECK-DAG:     %[[RE:.*]] = complex.re %[[S]] : complex<f32>
// CHECK-DAG:     %[[IM:.*]] = complex.im %[[S]] : complex<f32>
// CHECK:         return %[[RE]], %[[IM]] : f32, f32
func.func @exponential(%x: complex<f32> {tc.name = "x"}) -> complex<f32> {
  %e = complex.exp %x : complex<f32>
  %s = complex.sin %e : complex<f32>
  return %s : complex<f32>
}

// -----

// A function in which operations of other dialects have complex elements stays as it is.
// CHECK-LABEL: func.func @upstream(
// CHECK:         linalg.generic
// CHECK-SAME:      tensor<4xcomplex<f32>>
func.func @upstream(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor.empty() : tensor<4xcomplex<f32>>
  %1 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%0 : tensor<4xcomplex<f32>>) {
  ^bb0(%a: f32, %b: complex<f32>):
    %z = complex.create %a, %a : complex<f32>
    linalg.yield %z : complex<f32>
  } -> tensor<4xcomplex<f32>>
  %2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%1 : tensor<4xcomplex<f32>>) outs(%x : tensor<4xf32>) {
  ^bb0(%a: complex<f32>, %b: f32):
    %v = complex.abs %a : complex<f32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @other(%a: tensor<4xcomplex<f32>>, %b: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error @below {{'linalg.add' op has complex numbers, which 'split-complex' splits in operations of 'imap', 'tensor', 'memref' and 'bufferization', and in loops and branches of 'scf', alone; express it by these}}
  %r = linalg.add ins(%a, %a : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) outs(%b : tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}
