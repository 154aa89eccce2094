//! Values at the ends of what types hold: infinities, zeros with signs, elements of a few bits.

use super::{Array, Run, bits, floats, integers, reals, run, run_strict};
use std::cmp::Ordering;
use tc_dialects::{
    element::ElementType::{self, *},
    hlo::{ArrayShape, Shape},
};

fn apply(operation: &str, result: &str, x: &Array) -> Vec<Array> {
    apply_by(run, operation, result, x)
}

fn apply_by(run: Run, operation: &str, result: &str, x: &Array) -> Vec<Array> {
    let shape = Shape::Array(x.shape.clone());
    let shape = shape.without_layout().to_string();
    let text = format!(
        "HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT r = {result} {operation}\n}}"
    );
    run(&text, std::slice::from_ref(x))
}

/// The low bits of all elements, one after the other.
fn concatenated(values: &[u64], width: u32) -> Vec<bool> {
    let bit = |value: &u64, at: u32| value >> at & 1 == 1;
    values.iter().flat_map(|value| (0..width).map(move |at| bit(value, at))).collect()
}

#[test]
fn bits_are_read_as_another_type() {
    let types = [S2, U2, S4, U4, F4E2M1FN, S8, U8, F8E5M2, S16, U16, BF16, S32, U32, F32, U64];
    for (from, to) in types.iter().flat_map(|from| types.map(|to| (*from, to))) {
        let (have, want) = (from.bits(), to.bits());
        let dims = |element: ElementType| match element.bits().cmp(&have.max(want)) {
            Ordering::Less => vec![3, i64::from(have.max(want) / element.bits())],
            _ => vec![3],
        };
        let count = dims(from).iter().product::<i64>() as usize;
        // No NaN in any type: arithmetic may change the bits of those.
        let value = |at: u64| match have {
            ..8 => at % (1 << have),
            _ => {
                (0x9d35_2b4f_3367_1a5b_u64.rotate_right(at as u32) >> (64 - have))
                    & 0xb7b7_b7b7_b7b7_b7b7
            }
        };
        let values: Vec<u64> = (0..count as u64).map(value).collect();
        let is_signed = matches!(from, S2 | S4);
        let stored: Vec<u64> = values
            .iter()
            .map(|value| match is_signed && value >> (have - 1) & 1 == 1 {
                true => value | u64::MAX << have,
                false => *value,
            })
            .collect();
        let x = integers(from, &dims(from), &stored);
        let shape = Shape::Array(ArrayShape::new(to, dims(to)));
        let result = &apply("bitcast-convert(x)", &shape.without_layout().to_string(), &x)[0];
        let found = bits(result);
        assert_eq!(concatenated(&found, want), concatenated(&values, have), "{from} to {to}");
        // What lies above the bits of an element is its sign, or nothing.
        for value in found.iter().filter(|_| want < 8) {
            let is_negative = matches!(to, S2 | S4) && value >> (want - 1) & 1 == 1;
            assert_eq!(value >> want, if is_negative { 0xff >> want } else { 0 }, "{from} to {to}");
        }
    }
}

#[test]
fn bits_of_one_type_are_the_same_number() {
    for element in [C64, C128, F32, BF16, S4] {
        let values = [1.5, -2.0, 0.0, f64::INFINITY, -0.0, 3.0];
        let x = match element {
            S4 => integers(element, &[3], &[1, 7, 3]),
            _ if element.is_complex() => floats(element, &[3], &values),
            _ => floats(element, &[3], &values[..3]),
        };
        let shape = format!("{element}[3]");
        assert_eq!(apply("bitcast-convert(x)", &shape, &x), std::slice::from_ref(&x), "{element}");
        let text = format!(
            "HloModule m\nf {{\n  a = {element}[] parameter(0)\n  ROOT b = {element}[] \
             bitcast-convert(a)\n}}\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT r = {shape} \
             map(x), dimensions={{0}}, to_apply=f\n}}"
        );
        assert_eq!(run(&text, std::slice::from_ref(&x)), [x], "{element}");
    }
}

/// Numbers of a type, those half-way between two of them and their neighbours, and special values.
#[test]
fn small_floats_are_rounded_as_their_definition_says() {
    let types = ElementType::ALL.iter().filter(|it| it.is_float() && it.bits() <= 8);
    for &element in types {
        let codes: Vec<_> = (0..1_u64 << element.bits()).collect();
        let mut numbers: Vec<_> = codes.iter().map(|code| element.decode_float(*code)).collect();
        numbers.retain(|number| number.is_finite());
        numbers.sort_by(f64::total_cmp);
        let halves: Vec<_> = numbers.windows(2).map(|pair| pair[0] / 2.0 + pair[1] / 2.0).collect();
        numbers.extend(halves);
        let largest = numbers.iter().copied().fold(0.0, f64::max);
        numbers.extend([largest * 1.03, largest * 1.07, largest * 1.3, largest * 1.9, 1e-30]);
        let near = |number: &f64| {
            let number = *number as f32;
            [number.next_down(), number, number.next_up()].map(f64::from)
        };
        let mut numbers: Vec<_> = numbers.iter().flat_map(near).collect();
        numbers.extend([f64::INFINITY, f64::NAN, 0.0]);
        let negative: Vec<_> = numbers.iter().map(|number| -number).collect();
        numbers.extend(negative);
        let count = numbers.len() as i64;
        let (shape, wide) = (format!("{element}[{count}]"), floats(F32, &[count], &numbers));
        let strict = bits(&apply_by(run_strict, "convert(x)", &shape, &wide)[0]);
        let rounded = bits(&apply("convert(x)", &shape, &wide)[0]);
        for (number, (strict, rounded)) in numbers.iter().zip(strict.into_iter().zip(rounded)) {
            let expected = element.encode_float(*number);
            let is_nan = element.decode_float(expected).is_nan();
            // Subnormal operands may be zero without '--strict-fp'.
            let rounded = if (*number as f32).is_subnormal() { strict } else { rounded };
            for found in [strict, rounded] {
                let is_same = found == expected || is_nan && element.decode_float(found).is_nan();
                assert!(is_same, "{element} {number:e}: expected {expected:#x}, found {found:#x}");
            }
        }
        let stored = integers(element, &[codes.len() as i64], &codes);
        let wide = &apply("convert(x)", &format!("f32[{}]", codes.len()), &stored)[0];
        for (code, found) in codes.iter().zip(reals(wide)) {
            let expected = element.decode_float(*code);
            assert_eq!(expected.total_cmp(&found), Ordering::Equal, "{element} {code:#x}");
        }
    }
}

/// All pairs, with the results modulo the width.
#[test]
fn integers_of_a_few_bits_wrap() {
    for element in [S2, U2, S4, U4] {
        let (low, high) = element.integer_range();
        let values: Vec<_> = (low..=high).collect();
        let pairs: Vec<_> =
            values.iter().flat_map(|x| values.iter().map(move |y| (*x, *y))).collect();
        let side = |pick: fn(&(i128, i128)) -> i128| {
            let bits: Vec<_> = pairs.iter().map(|pair| pick(pair) as u64).collect();
            integers(element, &[pairs.len() as i64], &bits)
        };
        let sides = [side(|pair| pair.0), side(|pair| pair.1)];
        type Operation = fn(i128, i128) -> i128;
        let operations: [(&str, Operation); 7] = [
            ("add", |x, y| x + y),
            ("subtract", |x, y| x - y),
            ("multiply", |x, y| x * y),
            ("and", |x, y| x & y),
            ("or", |x, y| x | y),
            ("maximum", i128::max),
            ("minimum", i128::min),
        ];
        for (name, operation) in operations {
            let shape = format!("{element}[{}]", pairs.len());
            let text = format!(
                "HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n  \
                 ROOT r = {shape} {name}(x, y)\n}}"
            );
            for ((x, y), found) in pairs.iter().zip(bits(&run(&text, &sides)[0])) {
                let modulus = high - low + 1;
                let expected = (operation(*x, *y) - low).rem_euclid(modulus) + low;
                assert_eq!(found, u64::from(expected as u8), "{element} {name} {x} {y}");
            }
        }
        // The sum of all pairs of products.
        let count = values.len();
        let bits_of = |values: &[i128]| values.iter().map(|it| *it as u64).collect::<Vec<_>>();
        let row = integers(element, &[count as i64], &bits_of(&values));
        let text = format!(
            "HloModule m\nENTRY e {{\n  x = {element}[{count}] parameter(0)\n  ROOT r = {element}[] \
             dot(x, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}\n}}"
        );
        let sum: i128 = values.iter().map(|it| it * it).sum();
        let expected = (sum - low).rem_euclid(high - low + 1) + low;
        assert_eq!(bits(&run(&text, &[row])[0]), [u64::from(expected as u8)], "{element} dot");
    }
}

#[test]
fn topk_orders_zeros_and_nans() {
    let values = [-0.0, 1.0, 0.0, -0.0, f64::NAN, 0.0, 2.0, f64::NEG_INFINITY];
    for element in [F32, F16, BF16, F64] {
        let x = floats(element, &[8], &values);
        let result = format!("({element}[8], s32[8])");
        let found = apply("topk(x), k=8, largest=true", &result, &x);
        assert_eq!(bits(&found[1]), [4, 6, 1, 2, 5, 0, 3, 7], "{element}");
    }
}

/// One element is found without a sort.
#[test]
fn topk_of_one_is_the_first_of_all() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [
        [-0.0, 0.0, 0.0, -0.0],
        [1.0, nan, -inf, nan],
        [-inf, -nan, -nan, inf],
        [-2.0, -1.0, -1.0, -2.0],
    ];
    let numbers = [[0, 1, 1, 0], [u64::MAX, 3, 0, u64::MAX], [1 << 63, 1, 7, 1 << 7], [5, 5, 5, 5]];
    for element in [F32, F16, BF16, F64, Pred, S4, U4, S8, U8, S32, U32, U64] {
        let x = match element {
            _ if element.is_float() => floats(element, &[4, 4], rows.as_flattened()),
            _ => {
                let bits = element.bits();
                let sign = |value: u64| element == S4 && value >> 3 & 1 == 1;
                let wrapped =
                    numbers.as_flattened().iter().map(|value| value & u64::MAX >> (64 - bits));
                let stored = wrapped.map(|value| if sign(value) { value | 0xf0 } else { value });
                integers(element, &[4, 4], &stored.collect::<Vec<_>>())
            }
        };
        for largest in [true, false] {
            let first = |k: usize| {
                let result = format!("({element}[4,{k}], s32[4,{k}])");
                let found = apply(&format!("topk(x), k={k}, largest={largest}"), &result, &x);
                let first = |array: &Array| bits(array).into_iter().step_by(k).collect::<Vec<_>>();
                (first(&found[0]), first(&found[1]))
            };
            assert_eq!(first(1), first(4), "{element}, largest={largest}");
        }
    }
}

/// Complex functions where their parts overflow; `None` where either value may stand.
#[test]
fn complex_numbers_at_infinity() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        ("logistic(x)", [-1e3, 1.0], [Some(0.0), Some(0.0)]),
        ("logistic(x)", [1e3, 1.0], [Some(1.0), Some(0.0)]),
        ("exponential-minus-one(x)", [1e3, 0.0], [Some(inf), Some(0.0)]),
        ("exponential-minus-one(x)", [1e30, 0.0], [Some(inf), Some(0.0)]),
        ("exponential(x)", [1e3, 1.0], [Some(inf), Some(inf)]),
        ("rsqrt(x)", [0.0, inf], [Some(0.0), Some(0.0)]),
        ("tanh(x)", [inf, inf], [Some(1.0), Some(0.0)]),
        ("tanh(x)", [-inf, 1.0], [Some(-1.0), Some(0.0)]),
        ("tan(x)", [inf, inf], [Some(0.0), Some(1.0)]),
        ("divide(x, x)", [0.0, 0.0], [None, None]),
        ("divide(x, x)", [inf, inf], [None, None]),
        ("tanh(x)", [3e2, nan], [Some(1.0), None]),
        ("exponential(x)", [inf, 0.0], [Some(inf), Some(0.0)]),
        ("exponential(x)", [inf, nan], [Some(inf), None]),
        ("exponential(x)", [-inf, inf], [Some(0.0), Some(0.0)]),
        ("exponential(x)", [-inf, nan], [Some(0.0), Some(0.0)]),
        ("exponential(x)", [-inf, 1.0], [Some(0.0), Some(0.0)]),
        ("log(x)", [0.0, 0.0], [Some(-inf), Some(0.0)]),
        ("log(x)", [nan, -inf], [Some(inf), None]),
        ("log-plus-one(x)", [-1.0, 0.0], [Some(-inf), Some(0.0)]),
        ("log-plus-one(x)", [inf, nan], [Some(inf), None]),
        ("sqrt(x)", [nan, inf], [Some(inf), Some(inf)]),
        ("sqrt(x)", [-inf, -1.0], [Some(0.0), Some(-inf)]),
        ("sqrt(x)", [inf, 1.0], [Some(inf), Some(0.0)]),
        ("sqrt(x)", [inf, nan], [Some(inf), None]),
        ("sqrt(x)", [-4.0, 0.0], [Some(0.0), Some(2.0)]),
        ("sqrt(x)", [-4.0, -0.0], [Some(0.0), Some(-2.0)]),
        ("rsqrt(x)", [0.0, 0.0], [Some(inf), None]),
        ("rsqrt(x)", [-inf, 1.0], [Some(0.0), Some(0.0)]),
        ("cosh(x)", [inf, 0.0], [Some(inf), Some(0.0)]),
        ("cosh(x)", [0.0, nan], [None, Some(0.0)]),
        ("sinh(x)", [-inf, 0.0], [Some(-inf), Some(0.0)]),
        ("sinh(x)", [0.0, inf], [Some(0.0), None]),
        ("sine(x)", [0.0, 1e4], [Some(0.0), Some(inf)]),
        ("cosine(x)", [0.0, inf], [Some(inf), Some(0.0)]),
        ("sign(x)", [0.0, -0.0], [Some(0.0), Some(0.0)]),
        ("logistic(x)", [-inf, 1.0], [Some(0.0), Some(0.0)]),
        ("power(x, x)", [0.0, 0.0], [Some(1.0), Some(0.0)]),
        ("power(x, x)", [2.0, 0.0], [Some(4.0), Some(0.0)]),
        ("power(x, x)", [-2.0, 0.0], [Some(0.25), Some(0.0)]),
        ("power(x, x)", [0.0, nan], [None, None]),
    ];
    for (operation, [re, im], expected) in cases {
        for element in [C64, C128] {
            let x = floats(element, &[], &[re, im]);
            let found = reals(&apply(operation, &format!("{element}[]"), &x)[0]);
            for (found, expected) in found.iter().zip(expected) {
                let is_right =
                    expected.is_none_or(|it| (*found - it).abs() < 1e-30 || *found == it);
                assert!(is_right, "{operation} of {element} {re} {im}: {found}");
            }
        }
    }
    // The whole is finite although `exp(89)` is not in single precision.
    let x = floats(C64, &[], &[89.0, 1.0]);
    let found = reals(&apply("exponential(x)", "c64[]", &x)[0]);
    let exact = [89f64.exp() * 1f64.cos(), 89f64.exp() * 1f64.sin()];
    assert!((found[0] / exact[0] - 1.0).abs() < 1e-6, "{found:?} {exact:?}");
    let quotient = |x: [f64; 2], y: [f64; 2]| {
        let text = "HloModule m\nENTRY e {\n  x = c64[] parameter(0)\n  y = c64[] parameter(1)\n  \
                    ROOT r = c64[] divide(x, y)\n}";
        reals(&run(text, &[floats(C64, &[], &x), floats(C64, &[], &y)])[0])
    };
    assert_eq!(quotient([inf, inf], [1.0, 0.0]), [inf, inf]);
    assert_eq!(quotient([-inf, 2.0], [1.0, 2.0]), [-inf, inf]);
    assert_eq!(quotient([1.0, 2.0], [inf, 3.0]), [0.0, 0.0]);
}
