//! Custom calls of LAPACK functions: products of the factors against the matrices, and the values of
//! `info` and of the pivots that the reference implementation of LAPACK has.

use super::{
    Array, bits, floats,
    linear_algebra::{BATCHES, Complex, Matrices, assert_product, multiply},
    reals, run, try_run,
};
use tc_dialects::element::ElementType::{self, *};

const TYPES: [(ElementType, char); 4] = [(F32, 's'), (F64, 'd'), (C64, 'c'), (C128, 'z')];
/// Orders of matrices: those with special cases, an odd one, and one longer than a vector.
const ORDERS: [usize; 5] = [1, 2, 3, 7, 18];

/// A module of one custom call, and `config` as in `{uplo = 76 : ui8}`.
fn call(target: &str, operands: &[String], result: &str, config: &str) -> String {
    let parameters = operands.iter().enumerate();
    let lines: String =
        parameters.map(|(at, shape)| format!("  p{at} = {shape} parameter({at})\n")).collect();
    let names: Vec<_> = (0..operands.len()).map(|at| format!("p{at}")).collect();
    format!(
        "HloModule m\nENTRY e {{\n{lines}  ROOT r = {result} custom-call({}), \
         custom_call_target=\"{target}\", api_version=API_VERSION_TYPED_FFI, \
         backend_config={{{config}}}\n}}\n",
        names.join(", ")
    )
}

/// The values that an array of `s32` has.
fn signed(array: &Array) -> Vec<i32> {
    bits(array).into_iter().map(|bits| bits as u32 as i32).collect()
}

/// Matrices from their rows; complex ones have no imaginary parts.
fn matrices(element: ElementType, dims: &[i64], rows: &[f64]) -> Array {
    let parts: Vec<_> = match element.is_complex() {
        true => rows.iter().flat_map(|value| [*value, 0.0]).collect(),
        false => rows.to_vec(),
    };
    floats(element, dims, &parts)
}

/// Matrices of full rank, of multiples of `2^-10` between -1 and 1.
fn scattered(element: ElementType, rows: usize, columns: usize) -> Matrices {
    let mut result = Matrices::noise(element, BATCHES, rows, columns);
    let number = |at: usize| {
        let noise = (at as f64 * 12.9898 + 2.0).sin() * 43758.5453;
        ((noise - noise.floor()) * 2048.0).floor() / 1024.0 - 1.0
    };
    for at in 0..BATCHES * rows * columns {
        let (batch, place) = (at / (rows * columns), at % (rows * columns));
        let imaginary = if element.is_complex() { number(at + 7919) } else { 0.0 };
        result.set(batch, place / columns, place % columns, (number(at), imaginary));
    }
    result
}

/// The real parts.
fn real_parts(array: &Array) -> Vec<f64> {
    reals(array)
        .into_iter()
        .step_by(if array.shape.element_type.is_complex() { 2 } else { 1 })
        .collect()
}

#[test]
fn potrf_is_cholesky_and_keeps_the_other_triangle() {
    let size = 6;
    for (element, letter) in TYPES {
        for (uplo, is_lower) in [(76, true), (85, false)] {
            let mut given = Matrices::noise(element, BATCHES, size, size);
            for batch in 0..BATCHES {
                (0..size).for_each(|at| given.set(batch, at, at, (8.0 + at as f64, 0.0)));
            }
            let shape = format!("{element}[{BATCHES},{size},{size}]");
            let text = call(
                &format!("lapack_{letter}potrf_ffi"),
                std::slice::from_ref(&shape),
                &format!("({shape}, s32[{BATCHES}])"),
                &format!("uplo = {uplo} : ui8"),
            );
            let found = run(&text, &[given.array(element)]);
            assert_eq!(signed(&found[1]), [0; BATCHES]);
            let text = format!(
                "HloModule m\nENTRY e {{\n  a = {shape} parameter(0)\n  ROOT l = {shape} \
                 cholesky(a), lower={is_lower}\n}}\n"
            );
            let factor = given.of(element, &run(&text, &[given.array(element)])[0]);
            let found = given.of(element, &found[0]);
            for batch in 0..BATCHES {
                for (row, column) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                    let is_inside = if is_lower { column <= row } else { row <= column };
                    let expected = if is_inside { &factor } else { &given };
                    assert_eq!(found.at(batch, row, column), expected.at(batch, row, column));
                }
            }
        }
    }
}

#[test]
fn potrf_reports_the_first_minor_that_is_not_positive() {
    #[rustfmt::skip]
    let rows = [
        1., 0., 0., 0., 1., 0., 0., 0., 1.,
        1., 2., 0., 2., 1., 0., 0., 0., 1.,
        0., 0., 0., 0., 0., 0., 0., 0., 0.,
        1., 0., 0., 0., 1., 0., 0., 0., -1.,
        1., 0., 0., 0., f64::NAN, 0., 0., 0., -1.,
    ];
    for (element, letter) in TYPES {
        for uplo in ["76", "85"] {
            let shape = format!("{element}[5,3,3]");
            let target = format!("lapack_{letter}potrf_ffi");
            let config = format!("uplo = {uplo} : ui8");
            let text =
                call(&target, std::slice::from_ref(&shape), &format!("({shape}, s32[5])"), &config);
            let found = run(&text, &[matrices(element, &[5, 3, 3], &rows)]);
            assert_eq!(signed(&found[1]), [0, 2, 1, 3, 2], "{text}");
        }
    }
}

#[test]
fn trsm_is_triangular_solve() {
    let (size, others) = (5, 3);
    for (element, letter) in [TYPES[0], TYPES[3]] {
        for choice in 0..24 {
            let (left, lower, unit) = (choice % 2 == 0, choice / 2 % 2 == 0, choice / 4 % 2 == 0);
            let (trans, form) =
                [(78, "NO_TRANSPOSE"), (84, "TRANSPOSE"), (67, "ADJOINT")][choice / 8];
            let (rows, columns) = if left { (size, others) } else { (others, size) };
            let triangles = Matrices::noise(element, BATCHES, size, size).array(element);
            let right = Matrices::noise(element, BATCHES, rows, columns);
            let (a, x) = (
                format!("{element}[{BATCHES},{size},{size}]"),
                format!("{element}[{BATCHES},{rows},{columns}]"),
            );
            let text = format!(
                "HloModule m\nENTRY e {{\n  a = {a} parameter(0)\n  b = {x} parameter(1)\n  \
                 ROOT x = {x} triangular-solve(a, b), left_side={left}, lower={lower}, \
                 unit_diagonal={unit}, transpose_a={form}\n}}\n"
            );
            let expected = run(&text, &[triangles.clone(), right.array(element)]);
            let config = format!(
                "diag = {} : ui8, side = {} : ui8, trans_x = {trans} : ui8, uplo = {} : ui8",
                if unit { 85 } else { 78 },
                if left { 76 } else { 82 },
                if lower { 76 } else { 85 }
            );
            let target = format!("lapack_{letter}trsm_ffi");
            let mut operands = vec![a, x.clone()];
            let found = run(
                &call(&target, &operands, &x, &config),
                &[triangles.clone(), right.array(element)],
            );
            assert_eq!(found, expected, "{config}");
            if choice != 0 {
                continue;
            }
            // A factor of the right side, which some versions of JAX pass.
            operands.push(format!("{element}[]"));
            let found = run(
                &call(&target, &operands, &x, &config),
                &[triangles, right.array(element), matrices(element, &[], &[2.0])],
            );
            let doubled = reals(&expected[0]).into_iter().map(|value| 2.0 * value);
            assert_eq!(reals(&found[0]), doubled.collect::<Vec<_>>(), "{config}");
        }
    }
}

/// The results of `getrf` and of `LuDecomposition`, whose factors have to be the same.
fn lu(
    element: ElementType,
    letter: char,
    dims: [usize; 3],
    a: &Array,
) -> (Array, Vec<i32>, Vec<i32>) {
    let [batches, rows, columns] = dims;
    let steps = rows.min(columns);
    let shape = format!("{element}[{batches},{rows},{columns}]");
    let result = format!("({shape}, s32[{batches},{steps}], s32[{batches}])");
    let target = format!("lapack_{letter}getrf_ffi");
    let found =
        run(&call(&target, std::slice::from_ref(&shape), &result, ""), std::slice::from_ref(a));
    let result = format!("({shape}, s32[{batches},{steps}], s32[{batches},{rows}])");
    let other = run(&call("LuDecomposition", &[shape], &result, ""), std::slice::from_ref(a));
    assert_eq!(found[0], other[0]);
    let pivots = signed(&found[1]);
    let from_zero: Vec<_> = pivots.iter().map(|pivot| pivot - 1).collect();
    assert_eq!(signed(&other[1]), from_zero);
    let order = signed(&other[2]);
    for (order, pivots) in order.chunks(rows).zip(from_zero.chunks(steps)) {
        let mut expected: Vec<_> = (0..rows as i32).collect();
        pivots.iter().enumerate().for_each(|(step, pivot)| expected.swap(step, *pivot as usize));
        assert_eq!(order, expected);
    }
    (found[0].clone(), order, signed(&found[2]))
}

#[test]
fn getrf_factors_matrices_with_their_rows_exchanged() {
    for (element, letter) in TYPES {
        for (rows, columns) in
            [(1, 1), (2, 2), (3, 3), (7, 7), (18, 18), (9, 5), (4, 7), (1, 3), (3, 1), (131, 3)]
        {
            let given = scattered(element, rows, columns);
            let dims = [BATCHES, rows, columns];
            let (factors, order, info) = lu(element, letter, dims, &given.array(element));
            assert_eq!(info, [0; BATCHES]);
            let factors = given.of(element, &factors);
            let steps = rows.min(columns);
            for batch in 0..BATCHES {
                let lower = |row: usize, column: usize| match row.cmp(&column) {
                    std::cmp::Ordering::Less => (0.0, 0.0),
                    std::cmp::Ordering::Equal => (1.0, 0.0),
                    std::cmp::Ordering::Greater => factors.at(batch, row, column),
                };
                let upper = |row: usize, column: usize| match row <= column {
                    true => factors.at(batch, row, column),
                    false => (0.0, 0.0),
                };
                for (row, column) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let source = order[batch * rows + row] as usize;
                    let expected = (row, column, given.at(batch, source, column));
                    let what = format!("{element}[{rows},{columns}]");
                    assert_product(element, steps, lower, upper, expected, &what);
                    // Pivots are the largest by the sum of the sizes of their parts.
                    let (re, im) = lower(row, column.min(steps - 1));
                    assert!(re.hypot(im) <= 1.5, "{what}: {re} {im} in L");
                }
            }
        }
    }
}

#[test]
fn getrf_reports_the_first_pivot_that_is_zero() {
    #[rustfmt::skip]
    let rows = [
        1., 2., 3., 2., 4., 6., 1., 1., 1.,
        0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0., 1., 2., 0., 3., 4., 0., 8., 8.,
        1., 0., 0., 0., 1., 0., 0., 0., 1.,
    ];
    #[rustfmt::skip]
    let factors = [
        2., 4., 6., 0.5, -1., -2., 0.5, 0., 0.,
        0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0., 1., 2., 0., 8., 8., 0., 0.375, 1.,
        1., 0., 0., 0., 1., 0., 0., 0., 1.,
    ];
    for (element, letter) in TYPES {
        let given = matrices(element, &[4, 3, 3], &rows);
        let (found, order, info) = lu(element, letter, [4, 3, 3], &given);
        assert_eq!(real_parts(&found), factors);
        assert_eq!(order, [1, 2, 0, 0, 1, 2, 0, 2, 1, 0, 1, 2]);
        assert_eq!(info, [3, 1, 1, 0]);
    }
}

/// The module of `gtsv`.
fn gtsv(element: ElementType, letter: char, [batches, rows, columns]: [usize; 3]) -> String {
    let diagonal = format!("{element}[{batches},{rows}]");
    let right = format!("{element}[{batches},{rows},{columns}]");
    let operands = [diagonal.clone(), diagonal.clone(), diagonal, right];
    let result = format!("({}, s32[{batches}])", operands.join(", "));
    call(&format!("lapack_{letter}gtsv_ffi"), &operands, &result, "")
}

#[test]
fn gtsv_solves_tridiagonal_systems() {
    let columns = 3;
    for (element, letter) in TYPES {
        // With a small diagonal, rows are exchanged.
        for (rows, scale) in ORDERS.iter().flat_map(|n| [(*n, 4.0), (*n, 0.125)]) {
            let diagonals = Matrices::noise(element, 3, BATCHES, rows);
            let of_row = |batch: usize, row: usize, distance: i64| {
                let at = |number: usize| diagonals.at(number, batch, row);
                let (re, im) = at(1);
                match distance {
                    -1 => at(0),
                    0 => (scale * re, scale * im),
                    1 => at(2),
                    _ => (0.0, 0.0),
                }
            };
            let part = |distance: i64| {
                let all = (0..BATCHES).flat_map(|i| (0..rows).map(move |j| (i, j)));
                let parts = all.flat_map(|(batch, row)| {
                    let (re, im) = of_row(batch, row, distance);
                    [re, im]
                });
                let step = if element.is_complex() { 1 } else { 2 };
                let parts: Vec<_> = parts.step_by(step).collect();
                floats(element, &[BATCHES as i64, rows as i64], &parts)
            };
            let right = Matrices::noise(element, BATCHES, rows, columns);
            let text = gtsv(element, letter, [BATCHES, rows, columns]);
            let found = run(&text, &[part(-1), part(0), part(1), right.array(element)]);
            assert_eq!(signed(&found[4]), [0; BATCHES]);
            let solution = right.of(element, &found[3]);
            for batch in 0..BATCHES {
                for (row, column) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                    let mut sum: Complex = (0.0, 0.0);
                    for other in row.saturating_sub(1)..(row + 2).min(rows) {
                        let factor = of_row(batch, row, other as i64 - row as i64);
                        let term = multiply(factor, solution.at(batch, other, column));
                        sum = (sum.0 + term.0, sum.1 + term.1);
                    }
                    let (re, im) = right.at(batch, row, column);
                    // The bound is that of a backward stable method: the residual is small beside
                    // the largest element of the solution.
                    let largest = (0..rows).map(|at| {
                        let (re, im) = solution.at(batch, at, column);
                        re.abs() + im.abs()
                    });
                    let largest = largest.fold(1.0, f64::max);
                    let roundoff = if element.part() == F32 { 6e-8 } else { 1.2e-16 };
                    let bound = 100.0 * roundoff * largest;
                    let error = (sum.0 - re).hypot(sum.1 - im);
                    assert!(error <= bound, "{element}[{rows}]: {sum:?} instead of {re} {im}");
                }
            }
        }
    }
}

#[test]
fn gtsv_reports_the_first_pivot_that_is_zero() {
    let lower = [0., 0., 0., 0., 1., 1., 0., 0., 1., 0., 1., 1., 0., 0., 0.];
    let diagonal = [0., 0., 0., 0., 0., 0., 1., 1., 0., 1., 1., 2., 1., 2., 0.];
    let upper = [0., 0., 0., 1., 1., 0., 0., 0., 0., 1., 1., 0., 1., 1., 0.];
    for (element, letter) in TYPES {
        let diagonals = [lower, diagonal, upper].map(|x| matrices(element, &[5, 3], &x));
        let mut inputs = diagonals.to_vec();
        inputs.push(matrices(element, &[5, 3, 1], &[1.0; 15]));
        let found = run(&gtsv(element, letter, [5, 3, 1]), &inputs);
        assert_eq!(signed(&found[4]), [1, 3, 3, 0, 3]);
    }
}

#[test]
fn empty_matrices() {
    let text =
        call("lapack_sgetrf_ffi", &["f32[2,0,3]".into()], "(f32[2,0,3], s32[2,0], s32[2])", "");
    let found = run(&text, &[floats(F32, &[2, 0, 3], &[])]);
    assert_eq!(signed(&found[2]), [0, 0]);
    let text =
        call("lapack_spotrf_ffi", &["f32[0,0]".into()], "(f32[0,0], s32[])", "uplo = 76 : ui8");
    assert_eq!(signed(&run(&text, &[floats(F32, &[0, 0], &[])])[1]), [0]);
    let vector = || floats(F32, &[1, 0], &[]);
    let inputs = [vector(), vector(), vector(), floats(F32, &[1, 0, 2], &[])];
    assert_eq!(signed(&run(&gtsv(F32, 's', [1, 0, 2]), &inputs)[4]), [0]);
}

/// `jnp.linalg.solve` as JAX prints it for a CPU: factors, a loop that turns pivots into an order of
/// rows, and two triangular systems.
#[test]
fn solve_of_jax() {
    let text = include_str!("solve.hlo");
    let a = floats(F64, &[3, 3], &[0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 4.0, 0.0, 2.0]);
    let right = floats(F64, &[3, 2], &[7.0, 1.0, 3.0, 0.0, 10.0, 2.0]);
    let found = reals(&run(text, &[a, right])[0]);
    for (found, expected) in found.iter().zip([1.0, 0.0, 2.0, 0.0, 3.0, 1.0]) {
        assert!((found - expected).abs() < 1e-14, "{found} is not {expected}");
    }
}

#[test]
fn malformed_calls_are_rejected() {
    let error = |target: &str, operands: &[&str], result: &str, config: &str| {
        let operands: Vec<_> = operands.iter().map(|shape| shape.to_string()).collect();
        try_run(&call(target, &operands, result, config), &[]).expect_err(target)
    };
    let (matrix, uplo) = ("f32[3,3]", "uplo = 76 : ui8");
    for (found, expected) in [
        (
            error("lapack_spotrf_ffi", &[matrix], "(f32[3,3], s32[])", ""),
            "expected 'uplo' in 'backend_config' of 'lapack_spotrf_ffi' to be 76 ('L') or 85 ('U'), \
             found none; JAX prints it with 'lower(x).compile().as_text()'",
        ),
        (
            error("lapack_spotrf_ffi", &[matrix], "(f32[3,3], s32[])", "uplo = 77 : ui8"),
            "expected 'uplo' in 'backend_config' of 'lapack_spotrf_ffi' to be 76 ('L') or 85 ('U'), \
             found '77'",
        ),
        (
            error("lapack_dpotrf_ffi", &[matrix], "(f32[3,3], s32[])", uplo),
            "expected 'lapack_dpotrf_ffi' to take (f64[3,3]) and to return (f64[3,3], s32[]), found \
             (f32[3,3]) and (f32[3,3], s32[])",
        ),
        (
            error("lapack_spotrf_ffi", &["f32[3,4]"], "(f32[3,4], s32[])", uplo),
            "expected 'lapack_spotrf_ffi' to take (f32[3,3]) and to return (f32[3,3], s32[]), found \
             (f32[3,4]) and (f32[3,4], s32[])",
        ),
        (
            error("lapack_spotrf_ffi", &["f32[3]"], "(f32[3], s32[])", uplo),
            "expected matrices of 'f32' as operand 0 of 'lapack_spotrf_ffi', found f32[3]",
        ),
        (
            error("lapack_sgtsv_ffi", &[matrix], "(f32[3,3], s32[])", ""),
            "expected matrices of 'f32' as operand 3 of 'lapack_sgtsv_ffi', found none",
        ),
        (
            error("lapack_sgetrf_ffi", &[matrix], "(f32[3,3], s64[3], s32[])", ""),
            "expected 'lapack_sgetrf_ffi' to take (f32[3,3]) and to return (f32[3,3], s32[3], \
             s32[]), found (f32[3,3]) and (f32[3,3], s64[3], s32[])",
        ),
        (
            error("LuDecomposition", &["f16[3,3]"], "(f16[3,3], s32[3], s32[3])", ""),
            "'LuDecomposition' of 'f16' is not supported",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn other_functions_are_named_with_a_way_out() {
    let error = |target: &str| {
        let text = call(target, &["f32[3,3]".to_string()], "(f32[3,3], f32[3])", "");
        try_run(&text, &[]).expect_err(target)
    };
    for target in ["lapack_sgesdd_ffi", "lapack_cheevd_ffi", "lapack_potrf_ffi", "lapack_é_ffi"] {
        assert_eq!(
            error(target),
            format!(
                "the custom call of '{target}' is not supported; \
                 'jax.jit(f).trace(x).lower(lowering_platforms=(\"tpu\",)).as_text(dialect=\"hlo\")' \
                 prints operations instead of library calls, except those of 'Qr' and 'Eigh'"
            )
        );
    }
    assert_eq!(error("Eigh"), "the custom call of 'Eigh' is not supported");
    assert_eq!(
        error("xla_ffi_python_cpu_callback"),
        "the custom call of 'xla_ffi_python_cpu_callback' is not supported; a compiled program \
         cannot call Python, remove the callback from it"
    );
}
