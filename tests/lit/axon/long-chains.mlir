// Operations that are used once make no deep expression, however many follow each other.
// RUN: awk 'BEGIN { print "axon.program {\n%%f = axon.fn [\"x\"](%%x0: !axon.any) {"; \
// RUN:   for (i = 0; i < 1000; i++) print "%%x" i+1 " = axon.exp(%%x" i ") : (!axon.any) -> !axon.any"; \
// RUN:   print "axon.return %%x1000 : !axon.any\n} : (!axon.any) -> !axon.any"; \
// RUN:   print "%%d = axon.def \"f\" %%f : (!axon.any) -> !axon.any\naxon.return\n}" }' > %t.mlir
// RUN: tc-opt %t.mlir --axon-infer-shapes | FileCheck %s
// RUN: tc-opt %t.mlir --convert-axon-to-hlo='entry=f shapes=x=4' | FileCheck %s --check-prefix=HLO

// CHECK-COUNT-1000: axon.exp
// CHECK:            axon.return %{{.*}} : !axon.tensor<t, a>

// HLO-COUNT-1000: hlo.exponential
// HLO:            hlo.return %{{.*}} : tensor<4xf32>
