//! `fft` against the sums that define it, in f64.

use super::{floats, reals, run};
use std::f64::consts::PI;
use tc_dialects::element::ElementType;

/// `sum_j x[j] * exp(-2 * pi * i * j * k / n)` along one dimension, of pairs.
fn transform(x: &[f64], dims: &[usize], dim: usize, sign: f64) -> Vec<f64> {
    let n = dims[dim];
    let inner: usize = dims[dim + 1..].iter().product();
    let mut result = vec![0.0; x.len()];
    for at in 0..x.len() / 2 {
        let (k, start) = (at / inner % n, at - at / inner % n * inner);
        for j in 0..n {
            let (re, im) = (x[2 * (start + j * inner)], x[2 * (start + j * inner) + 1]);
            let (sin, cos) = (sign * 2.0 * PI * (j * k % n) as f64 / n as f64).sin_cos();
            result[2 * at] += re * cos - im * sin;
            result[2 * at + 1] += re * sin + im * cos;
        }
    }
    result
}

/// Numbers between -1 and 1 that follow no pattern.
fn noise(count: usize) -> Vec<f64> {
    (0..count).map(|at| (at as f64 * 78.233 + 1.0).sin()).collect()
}

/// Compares within a share of the largest value that could come out.
fn assert_near(found: &[f64], expected: &[f64], element: ElementType, length: usize) {
    assert_eq!(found.len(), expected.len());
    let roundoff = if element.part() == ElementType::F32 { 2f64.powi(-24) } else { 2f64.powi(-53) };
    // The reference has errors of its own, of its angles.
    let bound = 2.0 * roundoff.max(4.0 * 2f64.powi(-53) * length as f64);
    let size = expected.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
    for (at, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!((x - y).abs() <= bound * size, "[{at}]: {x} instead of {y}, {element}[{length}]");
    }
}

fn fft(kind: &str, from: &str, to: &str, length: &str, input: &super::Array) -> Vec<f64> {
    let text = format!(
        "HloModule m\nENTRY main {{\n  x = {from} parameter(0)\n  ROOT fft = {to} fft(x), \
         fft_type={kind}, fft_length={{{length}}}\n}}\n"
    );
    reals(&run(&text, std::slice::from_ref(input))[0])
}

/// Every radix, products of them, primes above them, and what needs two tables of roots.
#[test]
fn transforms_of_any_length() {
    let lengths = [1, 2, 3, 4, 5, 6, 7, 8, 11, 13, 17, 19, 30, 34, 64, 97, 143, 1001, 1031, 1536];
    let exact = lengths.map(|length| (ElementType::C128, length));
    for (element, length) in
        exact.into_iter().chain([(ElementType::C64, 30), (ElementType::C64, 17)])
    {
        let input = floats(element, &[2, length as i64], &noise(4 * length));
        let x = reals(&input);
        let shape = format!("{element}[2,{length}]");
        let found = fft("FFT", &shape, &shape, &length.to_string(), &input);
        assert_near(&found, &transform(&x, &[2, length], 1, -1.0), element, length);
        let found = fft("IFFT", &shape, &shape, &length.to_string(), &input);
        let mut expected = transform(&x, &[2, length], 1, 1.0);
        expected.iter_mut().for_each(|x| *x /= length as f64);
        assert_near(&found, &expected, element, length);
    }
}

#[test]
fn transforms_in_several_dimensions() {
    let dims = [2, 3, 4, 5];
    let input = floats(ElementType::C128, &[2, 3, 4, 5], &noise(240));
    let mut expected = reals(&input);
    for dim in 1..4 {
        expected = transform(&expected, &dims, dim, -1.0);
    }
    let shape = "c128[2,3,4,5]";
    let found = fft("FFT", shape, shape, "3,4,5", &input);
    assert_near(&found, &expected, ElementType::C128, 60);
}

/// The whole spectrum of real numbers, of even and odd lengths, and back.
#[test]
fn real_transforms_keep_half() {
    for (n, m) in [(1, 1), (3, 8), (2, 9), (5, 2), (4, 17), (3, 30), (1, 34)] {
        let input = floats(ElementType::F64, &[n, m], &noise((n * m) as usize));
        let pairs: Vec<_> = reals(&input).into_iter().flat_map(|x| [x, 0.0]).collect();
        let dims = [n as usize, m as usize];
        let whole = transform(&transform(&pairs, &dims, 0, -1.0), &dims, 1, -1.0);
        let half = m / 2 + 1;
        let expected: Vec<_> =
            whole.chunks(2 * dims[1]).flat_map(|row| row[..2 * half as usize].to_vec()).collect();
        let (real, complex) = (format!("f64[{n},{m}]"), format!("c128[{n},{half}]"));
        let length = format!("{n},{m}");
        let found = fft("RFFT", &real, &complex, &length, &input);
        assert_near(&found, &expected, ElementType::C128, dims[0] * dims[1]);
        let spectrum = floats(ElementType::C128, &[n, half], &found);
        let back = fft("IRFFT", &complex, &real, &length, &spectrum);
        assert_near(&back, &reals(&input), ElementType::F64, dims[0] * dims[1]);
    }
}

/// The numbers of a real transform at 0 and at half its length are real.
#[test]
fn imaginary_parts_at_the_ends_do_not_count() {
    for m in [2_i64, 7, 8, 34] {
        let half = m / 2 + 1;
        let (real, complex) = (format!("f64[1,{m}]"), format!("c128[1,{half}]"));
        let mut values = noise(2 * half as usize);
        let back = |values: &[f64]| {
            let spectrum = floats(ElementType::C128, &[1, half], values);
            fft("IRFFT", &complex, &real, &m.to_string(), &spectrum)
        };
        let expected = back(&values);
        values[1] = 3.0;
        if m % 2 == 0 {
            values[2 * half as usize - 1] = -5.0;
        }
        assert_near(&back(&values), &expected, ElementType::F64, m as usize);
    }
}

#[test]
fn nothing_has_no_transform() {
    let input = floats(ElementType::F32, &[2, 0], &[]);
    let text = "HloModule m\nENTRY main {\n  x = f32[2,0] parameter(0)\n  \
                ROOT fft = c64[2,1] fft(x), fft_type=RFFT, fft_length={0}\n}\n";
    let error = super::try_run(text, &[input]).expect_err("such a transform has no values");
    assert_eq!(error, "expected transforms of lengths from 1 to 2147483648, found 0");
}
