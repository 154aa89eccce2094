// RUN: tc-run %s --entry columns --threads 2 --check
// RUN: tc-run %s --entry rows --threads 2 --check

// Each thread has memory for the accumulators of a strip of columns.
func.func @columns(%x: tensor<300x600xi32>) -> tensor<300x600xi32> {
  %e = tensor.empty() : tensor<300x600xi32>
  %y = imap.scan (t, j) domain: t in [0, 299], j in [0, 599], t - j in [-500, 9] scan t inclusive
      ins(%x[t, j] : tensor<300x600xi32>) outs(%e[t, j] : tensor<300x600xi32>) fold [maxs i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<300x600xi32>
  return %y : tensor<300x600xi32>
}

// Each thread has memory for the values of a part of a row.
func.func @rows(%x: tensor<300x600xi32>) -> tensor<300x600xi32> {
  %e = tensor.empty() : tensor<300x600xi32>
  %y = imap.scan (i, t) domain: i in [0, 299], t in [0, 599] scan t inclusive
      ins(%x[i, t] : tensor<300x600xi32>) outs(%e[i, t] : tensor<300x600xi32>) fold [add i32] {
  ^bb0(%a: i32):
    imap.yield %a : i32
  } -> tensor<300x600xi32>
  return %y : tensor<300x600xi32>
}
