//! Instructions that no program of JAX has on a CPU, against their definitions.

use super::{Array, bits, floats, integers, reals, run, try_run};
use tc_dialects::element::ElementType::{self, *};

fn module(parameters: &[&str], root: &str) -> String {
    let parameters = parameters.iter().enumerate();
    let lines = parameters.map(|(at, shape)| format!("  p{at} = {shape} parameter({at})\n"));
    format!("HloModule m\nENTRY e {{\n{}  ROOT r = {root}\n}}", lines.collect::<String>())
}

/// Numbers without a pattern, from -2 to 2.
fn values(count: usize, seed: f64) -> Vec<f64> {
    (0..count).map(|at| ((at as f64 + seed) * 12.9898).sin() * 2.0).collect()
}

fn assert_close(found: &Array, expected: &[f64], bound: f64) {
    let found = reals(found);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let is_close = (found - expected).abs() <= bound * expected.abs().max(1.0);
        assert!(is_close || found.is_nan() && expected.is_nan(), "{found} is not {expected}");
    }
}

/// Sizes of the dimensions before the features, of the features, and after them.
const SIZES: [usize; 3] = [4, 3, 5];
const EPSILON: f64 = 0.125;

fn count() -> usize {
    SIZES.iter().product()
}

fn feature(at: usize) -> usize {
    at / SIZES[2] % SIZES[1]
}

/// The sum of terms over the elements of each feature.
fn sums(term: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut sums = vec![0.0; SIZES[1]];
    (0..count()).for_each(|at| sums[feature(at)] += term(at));
    sums
}

fn means(term: impl Fn(usize) -> f64) -> Vec<f64> {
    let size = (count() / SIZES[1]) as f64;
    sums(term).into_iter().map(|sum| sum / size).collect()
}

/// The shapes and the bound for a type.
fn batch(element: ElementType) -> (String, String, f64) {
    let bound = match element {
        F64 => 1e-13,
        F32 => 1e-5,
        _ => 2e-2,
    };
    let [before, features, after] = SIZES;
    (format!("{element}[{before},{features},{after}]"), format!("{element}[{features}]"), bound)
}

/// What a type keeps of numbers.
fn stored(element: ElementType, values: Vec<f64>) -> Vec<f64> {
    reals(&floats(element, &[values.len() as i64], &values))
}

fn all(element: ElementType, values: &[f64]) -> Array {
    floats(element, &SIZES.map(|size| size as i64), values)
}

fn features(element: ElementType, values: &[f64]) -> Array {
    floats(element, &[SIZES[1] as i64], values)
}

#[test]
fn batches_are_normalized() {
    for element in [F32, F64, F16, BF16] {
        let (shape, list, bound) = batch(element);
        let of = |count: usize, seed: f64| stored(element, values(count, seed));
        let (x, scale, offset) = (of(count(), 0.3), of(SIZES[1], 1.1), of(SIZES[1], 2.7));
        let mean = means(|at| x[at]);
        let variance = means(|at| (x[at] - mean[feature(at)]).powi(2));
        let normalized = |mean: &[f64], variance: &[f64]| -> Vec<f64> {
            let value = |at: usize| {
                let feature = feature(at);
                let deviation = (variance[feature] + EPSILON).sqrt();
                (x[at] - mean[feature]) / deviation * scale[feature] + offset[feature]
            };
            (0..count()).map(value).collect()
        };
        let inputs = [all(element, &x), features(element, &scale), features(element, &offset)];
        let text = module(
            &[&shape, &list, &list],
            &format!(
                "({shape}, {list}, {list}) batch-norm-training(p0, p1, p2), epsilon={EPSILON}, \
                 feature_index=1"
            ),
        );
        let found = run(&text, &inputs);
        assert_close(&found[0], &normalized(&mean, &variance), bound);
        assert_close(&found[1], &mean, bound);
        assert_close(&found[2], &variance, bound);

        let given = of(SIZES[1], 4.9);
        let spread: Vec<f64> = of(SIZES[1], 5.2).iter().map(|value| value.abs()).collect();
        let inputs: Vec<Array> = inputs
            .into_iter()
            .chain([features(element, &given), features(element, &spread)])
            .collect();
        let text = module(
            &[&shape, &list, &list, &list, &list],
            &format!(
                "{shape} batch-norm-inference(p0, p1, p2, p3, p4), epsilon={EPSILON}, \
                 feature_index=1"
            ),
        );
        assert_close(&run(&text, &inputs)[0], &normalized(&given, &spread), bound);
    }
}

#[test]
fn gradients_of_normalized_batches() {
    for element in [F32, F64, BF16] {
        let (shape, list, bound) = batch(element);
        let of = |count: usize, seed: f64| stored(element, values(count, seed));
        let (x, gradient) = (of(count(), 0.3), of(count(), 6.1));
        let (scale, mean) = (of(SIZES[1], 1.1), of(SIZES[1], 2.7));
        let variance: Vec<f64> = of(SIZES[1], 5.2).iter().map(|value| value.abs()).collect();
        let text = module(
            &[&shape, &list, &list, &list, &shape],
            &format!(
                "({shape}, {list}, {list}) batch-norm-grad(p0, p1, p2, p3, p4), epsilon={EPSILON}, \
                 feature_index=1"
            ),
        );
        let list = |values: &[f64]| features(element, values);
        let inputs =
            [all(element, &x), list(&scale), list(&mean), list(&variance), all(element, &gradient)];
        let found = run(&text, &inputs);
        let size = (count() / SIZES[1]) as f64;
        let distance = |at: usize| x[at] - mean[feature(at)];
        let products = sums(|at| gradient[at] * distance(at));
        let total = sums(|at| gradient[at]);
        let of_operand = |at: usize| {
            let feature = feature(at);
            let variance = variance[feature] + EPSILON;
            let rest =
                size * gradient[at] - total[feature] - distance(at) * products[feature] / variance;
            scale[feature] / variance.sqrt() / size * rest
        };
        assert_close(&found[0], &(0..count()).map(of_operand).collect::<Vec<_>>(), bound);
        let scaled = products.iter().zip(&variance).map(|(sum, it)| sum / (it + EPSILON).sqrt());
        assert_close(&found[1], &scaled.collect::<Vec<_>>(), bound);
        assert_close(&found[2], &total, bound);
    }
}

#[test]
fn batches_of_nothing_have_no_mean() {
    let text = module(
        &["f32[0,2]", "f32[2]", "f32[2]"],
        "(f32[0,2], f32[2], f32[2]) batch-norm-training(p0, p1, p2), epsilon=0.1, feature_index=1",
    );
    let list = floats(F32, &[2], &[1.0, 2.0]);
    let found = run(&text, &[floats(F32, &[0, 2], &[]), list.clone(), list]);
    assert_eq!(found[0].bytes.len(), 0);
    assert_close(&found[1], &[f64::NAN; 2], 0.0);
    assert_close(&found[2], &[f64::NAN; 2], 0.0);
}

#[test]
fn fractions_decide_how_often_numbers_round_up() {
    for (from, random, to) in [(F32, U32, S32), (F32, U32, S8), (BF16, U16, S16), (F64, U64, S64)] {
        let width = random.bits();
        let (least, greatest) = to.integer_range();
        let special =
            [0.0, -0.0, 0.5, -0.5, 2.25, -2.75, 127.0, 127.5, 128.5, -127.5, -128.5, 1e30];
        let x =
            stored(from, [&special[..], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]].concat());
        let below = u64::MAX >> (64 - width);
        let numbers = [0, 1, below / 4 - 1, below / 4 + 1, below / 2, below / 2 + 1, below];
        let pairs = x.iter().flat_map(|x| numbers.map(|number| (*x, number)));
        let (x, numbers): (Vec<_>, Vec<_>) = pairs.unzip();
        let count = x.len() as i64;
        let text = module(
            &[&format!("{from}[{count}]"), &format!("{random}[{count}]")],
            &format!("{to}[{count}] stochastic-convert(p0, p1)"),
        );
        let found = run(&text, &[floats(from, &[count], &x), integers(random, &[count], &numbers)]);
        for ((found, x), number) in bits(&found[0]).into_iter().zip(x).zip(numbers) {
            let threshold = (x.abs().fract() * f64::from(width).exp2()) as u128;
            let whole = x.trunc() as i128;
            let is_up = u128::from(number) < threshold && x.is_finite();
            let expected = match (least < whole && whole < greatest && is_up, x < 0.0) {
                (true, true) => whole - 1,
                (true, false) => whole + 1,
                _ => whole.clamp(least, greatest),
            };
            let shift = 64 - to.bits();
            let found = (found << shift) as i64 >> shift;
            assert_eq!(i128::from(found), expected, "{from} {x} to {to}, with {number}");
        }
    }
    let text = module(&["f32[1]", "u32[1]"], "u8[1] stochastic-convert(p0, p1)");
    let error = try_run(&text, &[floats(F32, &[1], &[0.5]), integers(U32, &[1], &[0])]);
    assert_eq!(
        error.expect_err("an unsigned type"),
        "'stochastic-convert' from 'f32' to 'u8' is not supported; try a signed integer type"
    );
}

#[test]
fn copies_in_two_steps_and_sizes() {
    let text = "HloModule m\nENTRY e {\n  x = f32[3] parameter(0)\n  \
                s = (f32[3], f32[3], u32[]) copy-start(x)\n  d = f32[3] copy-done(s)\n  \
                n = s32[] get-dimension-size(x), dimensions={0}\n  \
                ROOT r = (f32[3], s32[]) tuple(d, n)\n}";
    let x = floats(F32, &[3], &[1.0, -2.0, 0.5]);
    let found = run(text, std::slice::from_ref(&x));
    assert_eq!((&found[0], bits(&found[1])), (&x, vec![3]));
}

#[test]
fn many_arrays_are_put_side_by_side() {
    for (element, width) in [(U8, 1), (C64, 2)] {
        let parts: Vec<f64> = (0..8 * width).map(|at| at as f64).collect();
        let array = |columns: usize, first: usize| -> Array {
            let parts = &parts[first * width..][..2 * columns * width];
            let dims = [2, columns as i64];
            match element {
                U8 => integers(U8, &dims, &parts.iter().map(|it| *it as u64).collect::<Vec<_>>()),
                _ => floats(element, &dims, parts),
            }
        };
        let inputs = [array(1, 0), array(3, 2), array(0, 0)];
        let text = module(
            &[&format!("{element}[2,1]"), &format!("{element}[2,3]"), &format!("{element}[2,0]")],
            &format!(
                "{element}[2,160] concatenate({}), dimensions={{1}}",
                vec!["p0, p2, p1"; 40].join(", ")
            ),
        );
        let row = |row: usize| {
            let columns = [row, 2 + 3 * row, 3 + 3 * row, 4 + 3 * row];
            columns.into_iter().flat_map(move |at| (0..width).map(move |part| at * width + part))
        };
        let expected: Vec<f64> =
            (0..2).flat_map(|at| (0..40).flat_map(move |_| row(at))).map(|at| at as f64).collect();
        let found = &run(&text, &inputs)[0];
        match element {
            U8 => assert_eq!(bits(found), expected.iter().map(|it| *it as u64).collect::<Vec<_>>()),
            _ => assert_eq!(reals(found), expected),
        }
    }
}

#[test]
fn what_has_no_defined_values_is_refused() {
    let inputs = [floats(F32, &[], &[0.0]), floats(F32, &[], &[1.0])];
    let text = module(&["f32[]", "f32[]"], "f32[4] rng(p0, p1), distribution=rng_uniform");
    assert_eq!(
        try_run(&text, &inputs).expect_err("no values"),
        "'rng' is not supported in compiled code; its values are not defined; try \
         'rng-bit-generator' with a state"
    );
}

#[test]
fn products_of_mixed_types_convert_both_operands() {
    let x = [1.0, -2.5, 3.0, 0.5, 7.0, -1.25];
    // Complex numbers are those values times 1 - 2i.
    let imaginary = -2.0;
    for (left, right, result) in [
        (F32, S32, F32),
        (F64, U8, F64),
        (F32, F64, F64),
        (F32, Pred, F32),
        (F32, BF16, F32),
        (F16, S64, F16),
        (F32, C64, C64),
        (C128, S8, C128),
        (F32, S32, F64),
    ] {
        let encode = |element: ElementType, dims: &[i64], values: &[f64]| match element {
            F16 | F32 | F64 | BF16 => floats(element, dims, values),
            C64 | C128 => {
                let parts = values.iter().flat_map(|value| [*value, imaginary * value]);
                floats(element, dims, &parts.collect::<Vec<_>>())
            }
            _ => {
                let whole: Vec<_> = values.iter().map(|value| *value as i64 as u64).collect();
                integers(element, dims, &whole)
            }
        };
        let y = if right == Pred { [1.0, 0.0, 1.0] } else { [3.0, 0.0, 1.0] };
        let sum = |row: &[f64]| row.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let sums: Vec<_> = x.chunks(3).map(sum).collect();
        let expected: Vec<_> = match result.is_complex() {
            true => sums.iter().flat_map(|sum| [*sum, imaginary * sum]).collect(),
            false => sums,
        };
        let (x, y) = (encode(left, &[2, 3], &x), encode(right, &[3], &y));
        let root = format!(
            "{result}[2] dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        );
        let text = module(&[&format!("{left}[2,3]"), &format!("{right}[3]")], &root);
        assert_eq!(reals(&run(&text, &[x.clone(), y.clone()])[0]), expected, "{text}");
        let root = format!(
            "{result}[2] dot(p1, p0), lhs_contracting_dims={{0}}, rhs_contracting_dims={{1}}"
        );
        let text = module(&[&format!("{left}[2,3]"), &format!("{right}[3]")], &root);
        assert_eq!(reals(&run(&text, &[x, y])[0]), expected, "{text}");
    }
}

#[test]
fn masks_in_memory_select_elements() {
    // Reductions over either dimension, so that masks are read along vectors and once per row,
    // with ends that do not fill a vector; a mask that is a result as well; bytes other than 1
    // do not occur.
    for (rows, columns) in [(5, 64), (7, 37), (300, 9)] {
        let text = format!(
            "HloModule m\n\
             max {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
             ROOT r = f32[] maximum(a, b)\n}}\n\
             ENTRY e {{\n  p = pred[{rows},{columns}] parameter(0)\n  \
             x = f32[{rows},{columns}] parameter(1)\n  low = f32[] constant(-8)\n  \
             lows = f32[{rows},{columns}] broadcast(low), dimensions={{}}\n  \
             s = f32[{rows},{columns}] select(p, x, lows)\n  \
             of_rows = f32[{rows}] reduce(s, low), dimensions={{1}}, to_apply=max\n  \
             of_columns = f32[{columns}] reduce(s, low), dimensions={{0}}, to_apply=max\n  \
             is_less = pred[{rows},{columns}] compare(s, x), direction=LT\n  \
             not_p = pred[{rows},{columns}] not(p)\n  \
             both = pred[{rows},{columns}] and(is_less, not_p)\n  \
             turned = pred[{columns},{rows}] transpose(both), dimensions={{1,0}}\n  \
             ROOT t = (f32[{rows},{columns}], f32[{rows}], f32[{columns}], pred[{columns},{rows}]) \
             tuple(s, of_rows, of_columns, turned)\n}}"
        );
        let count = rows * columns;
        let x = values(count, 3.0);
        let mask: Vec<u64> = (0..count).map(|at| u64::from(at * at % 7 < 3)).collect();
        let dims = [rows as i64, columns as i64];
        let found = run(&text, &[integers(Pred, &dims, &mask), floats(F32, &dims, &x)]);
        let chosen: Vec<f64> = x
            .iter()
            .zip(&mask)
            .map(|(x, chosen)| if *chosen == 1 { f64::from(*x as f32) } else { -8.0 })
            .collect();
        let largest = |places: &mut dyn Iterator<Item = usize>| {
            places.map(|at| chosen[at]).fold(-8.0, f64::max)
        };
        assert_eq!(reals(&found[0]), chosen);
        let of_rows: Vec<_> =
            (0..rows).map(|row| largest(&mut (0..columns).map(|it| row * columns + it))).collect();
        assert_eq!(reals(&found[1]), of_rows);
        let of_columns: Vec<_> = (0..columns)
            .map(|column| largest(&mut (0..rows).map(|it| it * columns + column)))
            .collect();
        assert_eq!(reals(&found[2]), of_columns);
        let turned: Vec<u64> =
            (0..count).map(|at| 1 - mask[at % rows * columns + at / rows]).collect();
        assert_eq!(bits(&found[3]), turned);
    }
}
