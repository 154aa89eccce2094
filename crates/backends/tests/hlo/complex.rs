//! Complex functions against values of mpmath, each part on its own.
//!
//! `complex_values.py` writes the table.

use super::{Run, floats, reals, run, run_strict};
use std::{collections::BTreeMap, f64::consts::PI};
use tc_dialects::element::ElementType::{self, *};

/// Operands and results, part by part, of one opcode.
#[derive(Default)]
struct Values {
    operands: Vec<Vec<f64>>,
    results: Vec<f64>,
}

fn table() -> BTreeMap<&'static str, Values> {
    let mut table = BTreeMap::<_, Values>::new();
    for line in include_str!("complex_values.txt").lines() {
        let (opcode, numbers) = line.split_once(' ').expect("an opcode");
        let numbers: Vec<_> = numbers.split(' ').collect();
        let (operands, results) = numbers.split_at(numbers.len() - 2);
        let values = table.entry(opcode).or_default();
        values.operands.resize(operands.len() / 2, Vec::new());
        for (operand, parts) in values.operands.iter_mut().zip(operands.chunks(2)) {
            operand.extend(parts.iter().map(|part| f64::from(part.parse::<f32>().expect("f32"))));
        }
        values.results.extend(results.iter().map(|part| part.parse::<f64>().expect("f64")));
    }
    table
}

/// The results of an opcode on all operands of the table.
fn apply(run: Run, element: ElementType, opcode: &str, operands: &[Vec<f64>]) -> Vec<f64> {
    let count = operands[0].len() / 2;
    let shape = format!("{element}[{count}]");
    let names: Vec<_> = (0..operands.len()).map(|at| format!("p{at}")).collect();
    let parameters: String =
        (0..operands.len()).map(|at| format!("  p{at} = {shape} parameter({at})\n")).collect();
    let text = format!(
        "HloModule m\nENTRY e {{\n{parameters}  ROOT r = {shape} {opcode}({})\n}}\n",
        names.join(", ")
    );
    let arrays: Vec<_> =
        operands.iter().map(|parts| floats(element, &[count as i64], parts)).collect();
    reals(&run(&text, &arrays)[0])
}

/// How many units in the last place a part may differ by. In double precision, the errors of a power
/// grow with the product of its exponent and the logarithm of its base.
fn bound(element: ElementType, opcode: &str, operands: &[&[f64]]) -> f64 {
    match (element, opcode) {
        (C128, "power") => {
            let log = operands[0][0].hypot(operands[0][1]).ln().abs() + PI;
            16.0 + 8.0 * log * operands[1][0].hypot(operands[1][1])
        }
        (C64, "exponential-minus-one" | "log" | "log-plus-one" | "logistic" | "power") => 0.75,
        _ => 4.0,
    }
}

#[test]
fn parts_of_complex_functions_are_exact() {
    // Subnormal parts may be zero without '--strict-fp'.
    check_parts(run, [f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE]);
    check_parts(run_strict, [2f64.powi(-149), 0.0]);
}

/// Compares the parts with the table. `least` is what parts of `c64` and `c128` may lose near zero.
fn check_parts(run: Run, least: [f64; 2]) {
    let mut failures = Vec::new();
    for (opcode, values) in table() {
        for element in [C64, C128] {
            let found = apply(run, element, opcode, &values.operands);
            let (epsilon, least) = match element {
                C64 => (f64::from(f32::EPSILON), least[0]),
                _ => (f64::EPSILON, least[1]),
            };
            for (at, expected) in values.results.chunks(2).enumerate() {
                let operands: Vec<_> =
                    values.operands.iter().map(|it| &it[2 * at..2 * at + 2]).collect();
                let bound = bound(element, opcode, &operands);
                for (part, &expected) in expected.iter().enumerate() {
                    let found = found[2 * at + part];
                    // Results too large for single precision are infinite.
                    let expected = match element {
                        C64 if (expected as f32).is_infinite() => f64::from(expected as f32),
                        _ => expected,
                    };
                    let error = (found - expected).abs();
                    let is_close = error <= bound * (epsilon * expected.abs()).max(least);
                    if found != expected && !is_close {
                        let ulps = error / (epsilon * expected.abs());
                        failures.push(format!(
                            "{opcode} of {element} {operands:?}, part {part}: {found:e} instead of \
                             {expected:e}, {ulps:.1} ulps"
                        ));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Sizes at the ends of what a type holds: no part overflows or loses digits on the way.
#[test]
fn roots_and_logarithms_at_the_ends_of_a_type() {
    for (element, largest, least) in
        [(C64, f64::from(f32::MAX), 2f64.powi(-149)), (C128, f64::MAX, f64::from_bits(1))]
    {
        let epsilon = if element == C64 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        // The eighth of a circle: the root has the angle `pi / 8`.
        let (cos, sin) = (0.5f64.sqrt() + 1.0, 1.0 - 0.5f64.sqrt());
        for (run, size) in [(run as Run, largest), (run_strict, least)] {
            let of = |opcode: &str, z: [f64; 2]| apply(run, element, opcode, &[z.to_vec()]);
            let (root, diagonal) = (size.sqrt(), 2f64.sqrt());
            let scale = (diagonal / 2.0).sqrt() * root;
            let exact = [scale * cos.sqrt(), scale * sin.sqrt()];
            for (found, exact) in of("sqrt", [size, size]).iter().zip(exact) {
                assert!((found / exact - 1.0).abs() < 4.0 * epsilon, "{found:e} is not {exact:e}");
            }
            let exact = [exact[0], -exact[1]].map(|part| part / root / root / diagonal);
            for (found, exact) in of("rsqrt", [size, size]).iter().zip(exact) {
                assert!((found / exact - 1.0).abs() < 4.0 * epsilon, "{found:e} is not {exact:e}");
            }
            let exact = size.ln() + 2f64.ln() / 2.0;
            let found = of("log", [size, -size]);
            assert!((found[0] / exact - 1.0).abs() < 4.0 * epsilon, "{found:?} is not {exact}");
            let sign = of("sign", [-size, size]);
            for (found, exact) in sign.iter().zip([-0.5f64.sqrt(), 0.5f64.sqrt()]) {
                assert!((found / exact - 1.0).abs() < 4.0 * epsilon, "{found:e} is not {exact:e}");
            }
        }
        // Products of which one factor alone overflows.
        let x = largest.ln() + 2.0;
        for (opcode, z) in [("cosh", [x, 1e-3]), ("sine", [1e-3, -x]), ("sinh", [-x, 1e-3])] {
            let found = apply(run, element, opcode, &[z.to_vec()]);
            let large = largest * (2f64.exp() / 2.0 * 1e-3f64.sin());
            let part = if opcode == "sine" { 0 } else { 1 };
            assert!((found[part].abs() / large - 1.0).abs() < 1e3 * epsilon, "{opcode} {found:?}");
        }
    }
}
