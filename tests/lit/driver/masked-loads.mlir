// Loads of the last lanes keep their mask. LLVM 22 would fold them into instructions and unfold them without the mask.
//
// RUN: tc-compile %s --target=cpu:x86-64-v4 --emit=asm | FileCheck %s

// CHECK-COUNT-3: vmovups {{.*}}), %zmm{{.*}} {%k{{[1-7]}}} {z}
// CHECK-NOT: vmovups {{.*}}), %zmm{{[0-9]+$}}
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>, %z: tensor<3xf32>) -> (tensor<f32>, tensor<f32>) {
  %e = tensor.empty() : tensor<f32>
  %r:2 = imap.generic ()[k] domain: k in [0, 2] ins(%x[k], %y[k], %z[k] : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) outs(%e[], %e[] : tensor<f32>, tensor<f32>) fold [add f32, add f32] attributes {imap.schedule = #imap.schedule<tile [k = 2], order [k], vector [k = 16] lanes k>} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %b, %c : f32
    imap.yield %p, %q : f32, f32
  } -> tensor<f32>, tensor<f32>
  return %r#0, %r#1 : tensor<f32>, tensor<f32>
}
