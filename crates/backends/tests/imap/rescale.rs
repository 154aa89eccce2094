//! Maxima and sums of exponentials that become one fold: every target agrees with the two separate folds, also for rows
//! with infinities and NaN.

use crate::{
    device,
    passes::{Stats, agree, check_passes, interpret},
    random::Random,
};
use melior::ir::Module;
use tc_backends::{Codegen, nvvm::emulator, runtime::Tensor};
use tc_passes::run_pipeline;

/// The maximum, or 0 if that is not finite, as `jax.nn.logsumexp` shifts its values.
const FINITE: &str = "epilogue {
  ^bb0(%n: f32, %v: f32):
    %a = math.absf %n : f32
    %c = arith.cmpf olt, %a, %inf : f32
    %r = arith.select %c, %n, %zero : f32
    imap.yield %r : f32
  }";

const LOGARITHM: &str = "epilogue {
  ^bb0(%t: f32, %v: f32, %n: f32):
    %l = math.log %t : f32
    %r = arith.addf %l, %n : f32
    imap.yield %r : f32
  }";

/// Rows of values, of which the exponentials are computed by the sum or stored for two readers.
fn program([rows, values]: [usize; 2], is_finite: bool, is_stored: bool) -> String {
    let (x, row) = (format!("tensor<{rows}x{values}xf32>"), format!("tensor<{rows}xf32>"));
    let points = format!("i in [0, {}], j in [0, {}]", rows - 1, values - 1);
    let shift = if is_finite { FINITE } else { "" };
    let body = "^bb0(%v: f32, %n: f32):
    %d = arith.subf %v, %n : f32
    %r = imap.builtin \"exp\"(%d) : f32
    imap.yield %r : f32";
    let maximum = format!(
        "%m = imap.generic (i)[j] domain: {points} ins(%x[i, j] : {x}) outs(%e[i] : {row}) fold [maximumf f32] {{
  ^bb0(%v: f32):
    imap.yield %v : f32
  }} {shift} -> {row}"
    );
    let (rest, results, ty) = match is_stored {
        true => (
            format!(
                "%p = imap.generic (i, j) domain: {points} ins(%x[i, j], %m[i] : {x}, {row}) outs(%w[i, j] : {x}) {{
  {body}
  }} -> {x}
  %s = imap.generic (i)[j] domain: {points} ins(%p[i, j] : {x}) outs(%e[i] : {row}) fold [add f32] {{
  ^bb0(%v: f32):
    imap.yield %v : f32
  }} -> {row}
  %y = imap.generic (i, j) domain: {points} ins(%p[i, j], %s[i] : {x}, {row}) outs(%w[i, j] : {x}) {{
  ^bb0(%v: f32, %t: f32):
    %q = arith.divf %v, %t : f32
    imap.yield %q : f32
  }} -> {x}"
            ),
            "%y",
            x.clone(),
        ),
        false => (
            format!(
                "%s = imap.generic (i)[j] domain: {points} ins(%x[i, j], %m[i] : {x}, {row}) outs(%e[i] : {row}) fold [add f32] {{
  {body}
  }} {LOGARITHM} -> {row}"
            ),
            "%m, %s",
            format!("({row}, {row})"),
        ),
    };
    let types = ty.trim_matches(['(', ')']);
    format!(
        "func.func @f(%x: {x}) -> {ty} {{
  %inf = arith.constant 0x7F800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {row}
  %w = tensor.empty() : {x}
  {maximum}
  {rest}
  return {results} : {types}
}}"
    )
}

/// Values near each other or far apart; in some rows, infinities and NaN.
fn values(random: &mut Random, rows: usize, count: usize) -> Vec<f32> {
    let mut found = Vec::new();
    for _ in 0..rows {
        let scale = [0.0, 1.0, 30.0, 3e38][random.below(4)];
        let special = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN][random.below(3)];
        let share = [0, 0, 1, 8][random.below(4)];
        for _ in 0..count {
            let value = scale * (random.below(2001) as f32 / 1000.0 - 1.0);
            found.push(if random.below(8) < share { special } else { value });
        }
    }
    found
}

#[test]
fn rescaled_sums_agree_with_sums_below_a_maximum() {
    let mut stats = Stats::default();
    for seed in 0..48 {
        let mut random = Random::new(seed);
        let shape = [1 + random.below(3), 1 + random.below(70)];
        let text = program(shape, seed % 2 == 0, seed % 3 == 0);
        let context = tc_dialects::new_context();
        let mut module = Module::parse(&context, &text).unwrap_or_else(|| panic!("{text}"));
        let x = values(&mut random, shape[0], shape[1]);
        let inputs = [Tensor::from_values(&shape, &x).expect("the values of a tensor")];
        let expected = interpret(&module, "f", &inputs).unwrap();
        run_pipeline(&mut module, "imap-fuse{max-row=1},canonicalize,cse").unwrap();
        let after = module.as_operation().to_string();
        // A fold of one value is none.
        assert_eq!(after.matches(" combine {").count(), usize::from(1 < shape[1]), "{after}");
        let fused = interpret(&module, "f", &inputs).unwrap();
        agree(&expected, &fused, &mut stats)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}\nafter:\n{after}"));
        check_passes(&module, "f", &inputs, &Codegen::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{after}"));
        device::compare_program(&module, "f", &[&inputs], &emulator::Options::default())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{after}"));
    }
    assert!(stats.elements > 4 * stats.uncertain, "{stats:?}");
}
