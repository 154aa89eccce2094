//! Results with several readers, of which some are updated in place, and loops that exchange tensors.

use crate::{floats, integers, reals, run};
use tc_dialects::element::ElementType::{F32, Pred, S32};

/// Adds one argument to the other.
const ADD: &str =
    "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n";

/// An instruction that adds 1 to the first element of an operand.
fn scatter(result: &str, operand: &str) -> String {
    format!(
        "  {result} = f32[4] scatter({operand}, first, one), update_window_dims={{}}, inserted_window_dims={{0}}, \
         scatter_dims_to_operand_dims={{0}}, index_vector_dim=0, to_apply=add\n"
    )
}

#[test]
fn a_sorted_tensor_is_updated_and_sorted_again() {
    let text = "HloModule m\n\nless {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
        ROOT c = pred[] compare(a, b), direction=LT\n}\n\n\
        ENTRY e {\n  x = f32[4] parameter(0)\n  u = f32[2] parameter(1)\n  n = s32[] parameter(2)\n  \
        s = f32[4] sort(x), dimensions={0}, to_apply=less\n  \
        d = f32[4] dynamic-update-slice(s, u, n)\n  \
        t = f32[4] sort(s), dimensions={0}, to_apply=less\n  ROOT r = (f32[4], f32[4]) tuple(d, t)\n}\n";
    let inputs = [
        floats(F32, &[4], &[-1., -2., -3., -4.]),
        floats(F32, &[2], &[10., 20.]),
        integers(S32, &[], &[2]),
    ];
    let results = run(text, &inputs);
    assert_eq!(reals(&results[0]), [-4., -3., 10., 20.]);
    assert_eq!(reals(&results[1]), [-4., -3., -2., -1.]);
}

#[test]
fn a_scattered_tensor_is_carried_by_a_loop_and_scattered_again() {
    let (once, twice) = (scatter("a", "x"), scatter("b", "a"));
    let text = format!(
        "HloModule m\n\n{ADD}condition {{\n  t = (s32[], f32[4]) parameter(0)\n  \
         i = s32[] get-tuple-element(t), index=0\n  n = s32[] constant(3)\n  \
         ROOT c = pred[] compare(i, n), direction=LT\n}}\n\n\
         body {{\n  t = (s32[], f32[4]) parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         y = f32[4] get-tuple-element(t), index=1\n  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  \
         z = f32[4] add(y, y)\n  ROOT r = (s32[], f32[4]) tuple(j, z)\n}}\n\n\
         ENTRY e {{\n  x = f32[4] parameter(0)\n  first = s32[1] constant({{0}})\n  one = f32[] constant(1)\n\
         {once}  zero = s32[] constant(0)\n  s = (s32[], f32[4]) tuple(zero, a)\n  \
         w = (s32[], f32[4]) while(s), condition=condition, body=body\n  \
         y = f32[4] get-tuple-element(w), index=1\n  i = s32[] get-tuple-element(w), index=0\n\
         {twice}  ROOT r = (f32[4], f32[4], s32[]) tuple(y, b, i)\n}}\n"
    );
    let results = run(&text, &[floats(F32, &[4], &[1., 2., 3., 4.])]);
    assert_eq!(reals(&results[0]), [16., 16., 24., 32.]);
    assert_eq!(reals(&results[1]), [3., 2., 3., 4.]);
    assert_eq!(results[2].bytes, [3, 0, 0, 0]);
}

#[test]
fn a_branch_yields_a_tensor_that_is_read_later() {
    // Beside a branch that computes a tensor; the tensor that is passed on is a result of memory, or an input.
    for source in [scatter("a", "x"), "  a = f32[4] copy(x)\n".to_string()] {
        let again = scatter("b", "a");
        let text = format!(
            "HloModule m\n\n{ADD}passed {{\n  ROOT x = f32[4] parameter(0)\n}}\n\n\
             doubled {{\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] add(x, x)\n}}\n\n\
             ENTRY e {{\n  x = f32[4] parameter(0)\n  y = f32[4] parameter(1)\n  p = pred[] parameter(2)\n  \
             first = s32[1] constant({{0}})\n  one = f32[] constant(1)\n{source}  \
             c = f32[4] conditional(p, a, y), true_computation=passed, false_computation=doubled\n\
             {again}  ROOT r = (f32[4], f32[4], f32[4]) tuple(c, b, a)\n}}\n"
        );
        let first = if source.contains("scatter") { 2. } else { 1. };
        for (p, expected) in [(1, [first, 2., 3., 4.]), (0, [10., 12., 14., 16.])] {
            let inputs = [
                floats(F32, &[4], &[1., 2., 3., 4.]),
                floats(F32, &[4], &[5., 6., 7., 8.]),
                integers(Pred, &[], &[p]),
            ];
            let results = run(&text, &inputs);
            assert_eq!(reals(&results[0]), expected);
            assert_eq!(reals(&results[1]), [first + 1., 2., 3., 4.]);
            assert_eq!(reals(&results[2]), [first, 2., 3., 4.]);
        }
    }
}

#[test]
fn a_loop_exchanges_two_tensors_and_reduces_one() {
    let carried = "(s32[], f32[8], f32[8])";
    let text = format!(
        "HloModule m\n\nmax {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT c = f32[] maximum(a, b)\n}}\n\n\
         condition {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         n = s32[] constant(2)\n  ROOT c = pred[] compare(i, n), direction=LT\n}}\n\n\
         body {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         a = f32[8] get-tuple-element(t), index=1\n  b = f32[8] get-tuple-element(t), index=2\n  \
         one = s32[] constant(1)\n  j = s32[] add(i, one)\n  low = f32[] constant(-inf)\n  \
         m = f32[] reduce(b, low), dimensions={{0}}, to_apply=max\n  \
         s = f32[8] broadcast(m), dimensions={{}}\n  c = f32[8] add(a, s)\n  \
         ROOT r = {carried} tuple(j, b, c)\n}}\n\n\
         ENTRY e {{\n  a = f32[8] parameter(0)\n  b = f32[8] parameter(1)\n  zero = s32[] constant(0)\n  \
         s = {carried} tuple(zero, a, b)\n  \
         ROOT w = {carried} while(s), condition=condition, body=body\n}}\n"
    );
    let ascending: Vec<f64> = (0..8).map(f64::from).collect();
    let inputs = [floats(F32, &[8], &ascending), floats(F32, &[8], &[1.; 8])];
    let results = run(&text, &inputs);
    // (a, 1) to (1, a + 1) to (a + 1, 1 + 8).
    let next: Vec<f64> = ascending.iter().map(|value| value + 1.).collect();
    assert_eq!(reals(&results[1]), next);
    assert_eq!(reals(&results[2]), [9.; 8]);
}
