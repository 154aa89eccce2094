//! `triangular-solve` and `cholesky` against products in f64: what is found has to solve equations
//! close to those given (N. Higham, "Accuracy and Stability of Numerical Algorithms", theorems 8.5
//! and 10.3), with bounds that grow with the size.

use super::{floats, reals, run};
use tc_dialects::element::ElementType;

pub(super) type Complex = (f64, f64);

pub(super) fn multiply(x: Complex, y: Complex) -> Complex {
    (x.0 * y.0 - x.1 * y.1, x.0 * y.1 + x.1 * y.0)
}

fn conjugate(x: Complex) -> Complex {
    (x.0, -x.1)
}

/// Batches of matrices.
#[derive(Clone)]
pub(super) struct Matrices {
    rows: usize,
    columns: usize,
    elements: Vec<Complex>,
}

impl Matrices {
    pub(super) fn at(&self, batch: usize, row: usize, column: usize) -> Complex {
        self.elements[(batch * self.rows + row) * self.columns + column]
    }

    pub(super) fn set(&mut self, batch: usize, row: usize, column: usize, value: Complex) {
        self.elements[(batch * self.rows + row) * self.columns + column] = value;
    }

    /// Numbers between -1 and 1 that follow no pattern, as the type holds them.
    pub(super) fn noise(element: ElementType, batches: usize, rows: usize, columns: usize) -> Self {
        let noise = |at: usize| {
            let x = (at as f64 * 12.9898 + 2.0).sin();
            element.part().decode_float(element.part().encode_float(x))
        };
        let imaginary = |at: usize| if element.is_complex() { noise(at + 7919) } else { 0.0 };
        let elements = (0..batches * rows * columns).map(|at| (noise(at), imaginary(at)));
        Self { rows, columns, elements: elements.collect() }
    }

    pub(super) fn array(&self, element: ElementType) -> super::Array {
        let batches = self.elements.len() / (self.rows * self.columns);
        let dims = [batches as i64, self.rows as i64, self.columns as i64];
        let values = self.elements.iter().flat_map(|x| [x.0, x.1]);
        let values: Vec<_> = values.step_by(if element.is_complex() { 1 } else { 2 }).collect();
        floats(element, &dims, &values)
    }

    pub(super) fn of(&self, element: ElementType, array: &super::Array) -> Self {
        let values = reals(array);
        let elements = if element.is_complex() {
            values.chunks(2).map(|x| (x[0], x[1])).collect()
        } else {
            values.iter().map(|x| (*x, 0.0)).collect()
        };
        Self { elements, ..self.clone() }
    }
}

fn roundoff(element: ElementType) -> f64 {
    2f64.powi(match element.part() {
        ElementType::F64 => -53,
        ElementType::F32 => -24,
        ElementType::F16 => -11,
        _ => -8,
    })
}

const TYPES: [ElementType; 6] = [
    ElementType::F32,
    ElementType::F64,
    ElementType::C64,
    ElementType::C128,
    ElementType::F16,
    ElementType::BF16,
];
pub(super) const BATCHES: usize = 2;

/// Asserts that `sum_k x[i, k] * y[k, j] == expected[i, j]`, as far as rounding lets it.
pub(super) fn assert_product(
    element: ElementType,
    size: usize,
    x: impl Fn(usize, usize) -> Complex,
    y: impl Fn(usize, usize) -> Complex,
    (row, column, expected): (usize, usize, Complex),
    what: &str,
) {
    let (mut sum, mut magnitude) = ((0.0, 0.0), 0.0);
    for k in 0..size {
        let (x, y) = (x(row, k), y(k, column));
        let product = multiply(x, y);
        sum = (sum.0 + product.0, sum.1 + product.1);
        magnitude += x.0.hypot(x.1) * y.0.hypot(y.1);
    }
    let factor = if element.is_complex() { 4.0 } else { 1.0 };
    let bound = factor * (size as f64 + 2.0) * roundoff(element) * magnitude;
    let error = (sum.0 - expected.0).hypot(sum.1 - expected.1);
    assert!(error <= bound, "{what}: {sum:?} instead of {expected:?} at [{row}, {column}]");
}

#[test]
fn triangular_solve() {
    let others = 3;
    let flags = [false, true];
    let forms = ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"];
    // The longer one has several panels.
    for (element, size) in TYPES.map(|it| (it, 5)).into_iter().chain([(ElementType::F32, 71)]) {
        for (left, lower) in flags.into_iter().flat_map(|x| flags.map(|y| (x, y))) {
            for (unit, form) in flags.into_iter().flat_map(|x| forms.map(|y| (x, y))) {
                let matrices = Matrices::noise(element, BATCHES, size, size);
                let (rows, columns) = if left { (size, others) } else { (others, size) };
                let right = Matrices::noise(element, BATCHES, rows, columns);
                let attributes = format!(
                    "left_side={left}, lower={lower}, unit_diagonal={unit}, transpose_a={form}"
                );
                let text = format!(
                    "HloModule m\nENTRY main {{\n  a = {element}[{BATCHES},{size},{size}] \
                     parameter(0)\n  b = {element}[{BATCHES},{rows},{columns}] parameter(1)\n  \
                     ROOT x = {element}[{BATCHES},{rows},{columns}] triangular-solve(a, b), \
                     {attributes}\n}}\n"
                );
                let found = run(&text, &[matrices.array(element), right.array(element)]);
                let solution = right.of(element, &found[0]);
                for batch in 0..BATCHES {
                    // What the attributes make of the matrix; the other triangle is not read.
                    let form_at = |row: usize, column: usize| {
                        let is_transposed = form != "NO_TRANSPOSE";
                        let (i, j) = if is_transposed { (column, row) } else { (row, column) };
                        let is_other = if lower { i < j } else { j < i };
                        match (i == j && unit, is_other) {
                            (true, _) => (1.0, 0.0),
                            (_, true) => (0.0, 0.0),
                            _ if form == "ADJOINT" => conjugate(matrices.at(batch, i, j)),
                            _ => matrices.at(batch, i, j),
                        }
                    };
                    let solved = |row: usize, column: usize| solution.at(batch, row, column);
                    for (row, column) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                        let at = (row, column, right.at(batch, row, column));
                        if left {
                            assert_product(element, size, form_at, solved, at, &attributes);
                        } else {
                            assert_product(element, size, solved, form_at, at, &attributes);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn cholesky() {
    let size = 6;
    for element in TYPES {
        for lower in [false, true] {
            // Hermitian and dominated by its diagonal; the other triangle is not read.
            let mut matrices = Matrices::noise(element, BATCHES, size, size);
            for batch in 0..BATCHES {
                (0..size).for_each(|at| matrices.set(batch, at, at, (8.0 + at as f64, 0.0)));
            }
            let shape = format!("{element}[{BATCHES},{size},{size}]");
            let text = format!(
                "HloModule m\nENTRY main {{\n  a = {shape} parameter(0)\n  ROOT l = {shape} \
                 cholesky(a), lower={lower}\n}}\n"
            );
            let found = run(&text, &[matrices.array(element)]);
            let factor = matrices.of(element, &found[0]);
            for batch in 0..BATCHES {
                let at = |row: usize, column: usize| factor.at(batch, row, column);
                for (row, column) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                    let is_inside = if lower { column <= row } else { row <= column };
                    if !is_inside {
                        assert_eq!(at(row, column), (0.0, 0.0), "the other triangle");
                        continue;
                    }
                    let expected = matrices.at(batch, row, column);
                    let what = format!("{element}, lower={lower}");
                    let adjoint = |i: usize, j: usize| conjugate(at(j, i));
                    let position = (row, column, expected);
                    if lower {
                        assert_product(element, size, at, adjoint, position, &what);
                    } else {
                        assert_product(element, size, adjoint, at, position, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn cholesky_of_an_indefinite_matrix_is_nan() {
    let text = "HloModule m\nENTRY main {\n  a = f32[2,2] parameter(0)\n  \
                ROOT l = f32[2,2] cholesky(a), lower=true\n}\n";
    let found = run(text, &[floats(ElementType::F32, &[2, 2], &[1.0, 2.0, 2.0, 1.0])]);
    let found = reals(&found[0]);
    assert_eq!(found[..3], [1.0, 0.0, 2.0]);
    assert!(found[3].is_nan());
}
