//! The examples at orders 3 to 16, for one element and for several, against their formulas in 64-bit
//! floats; and the number of operations that their best order takes.

use std::{collections::BTreeMap, fs, path::Path};
use tc_backends::{
    Request, Session, Source,
    program::{Padding, Parameter},
    runtime::{ElementType, Tensor, random},
};

/// An example with other extents: each pair replaces one text by another.
fn example(name: &str, replacements: &[(&str, String)]) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tml");
    let mut text = fs::read_to_string(folder.join(name)).expect("the example is there");
    for (from, to) in replacements {
        assert!(text.contains(from), "{name} has no '{from}'");
        text = text.replace(from, to);
    }
    Source::new(name, text)
}

struct Run {
    inputs: BTreeMap<String, Vec<f64>>,
    outputs: BTreeMap<String, Vec<f64>>,
    /// Of the order chosen, and of the order written.
    flops: [f64; 2],
}

/// Runs a program on random numbers, without padding and with; both give the same up to rounding.
fn run(source: Source, seed: u64) -> Run {
    let session = Session::new("cpu").expect("this machine");
    let program = session.open(source).unwrap_or_else(|error| panic!("{error}"));
    let count = |keep_order| {
        let request = Request { keep_order, ..Request::default() };
        let lowered = session.lower(&*program, &request).expect("the example is lowered");
        let costs = session.costs(&lowered).expect("the example is lowered");
        let flops = costs[0].flops.as_ref().and_then(|flops| flops.constant());
        flops.expect("all sizes are known") as f64
    };
    let entry = program.entry(&Request::default()).expect("an entry");
    let draw = |(number, dims): (usize, Vec<usize>)| {
        random(ElementType::F64, &dims, seed * 16 + number as u64, None).expect("it is small")
    };
    let values: Vec<_> = entry.inputs.iter().map(|it| it.dims()).enumerate().map(draw).collect();
    let numbers = |parameters: &[Parameter], tensors: &[Tensor]| -> BTreeMap<String, Vec<f64>> {
        let of = |tensor: &Tensor| tensor.to_values::<f64>().expect("64-bit floats");
        parameters.iter().zip(tensors).map(|(it, tensor)| (it.name.clone(), of(tensor))).collect()
    };
    let results = [None, Some(4), Some(8)].map(|vector_length| {
        let padding = vector_length.map(Padding::Length);
        let request = Request { padding, ..Request::default() };
        let results = session.call(&*program, &request, &values.iter().collect::<Vec<_>>());
        numbers(&entry.outputs, &results.expect("the example runs"))
    });
    let [outputs, others @ ..] = results;
    for (name, values) in others.iter().flatten() {
        close(&outputs[name], values);
    }
    Run { inputs: numbers(&entry.inputs, &values), outputs, flops: [count(false), count(true)] }
}

/// Numbers of magnitude 1, sums of some thousands of which differ by rounding.
fn close(expected: &[f64], found: &[f64]) {
    assert_eq!(expected.len(), found.len());
    let scale = expected.iter().fold(1.0_f64, |scale, value| scale.max(value.abs()));
    for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
        let distance = (expected - found).abs();
        assert!(distance <= 1e-12 * scale, "{place}: expected {expected}, found {found}");
    }
}

/// `v_eijk = sum over l, m, n of M_il M_jm M_kn u_elmn`, one dimension after the other.
fn change_basis(
    matrix: impl Fn(usize, usize) -> f64,
    to: usize,
    from: usize,
    u: &[f64],
) -> Vec<f64> {
    let mut current = u.to_vec();
    let mut extents = [current.len() / from.pow(3), from, from, from];
    for dim in 1..4 {
        let inner: usize = extents[dim + 1..].iter().product();
        let outer: usize = extents[..dim].iter().product();
        let mut next = vec![0.0; outer * to * inner];
        for (o, i, n) in
            (0..outer).flat_map(|o| (0..to).flat_map(move |i| (0..inner).map(move |n| (o, i, n))))
        {
            let term = |l: usize| matrix(i, l) * current[(o * from + l) * inner + n];
            next[(o * to + i) * inner + n] = (0..from).map(term).sum();
        }
        extents[dim] = to;
        current = next;
    }
    current
}

/// Orders, each with a number of elements; those in between differ in no code path.
const CASES: [(usize, usize); 6] = [(3, 1), (4, 5), (7, 8), (8, 3), (11, 4), (16, 2)];

#[test]
fn inverse_helmholtz() {
    for (n, elements) in CASES {
        let replacements = [
            ("[11 11]", format!("[{n} {n}]")),
            ("[64 11 11 11]", format!("[{elements} {n} {n} {n}]")),
        ];
        let Run { inputs, outputs, flops } = run(example("helmholtz.tml", &replacements), n as u64);
        let s = &inputs["S"];
        let t = change_basis(|i, l| s[i * n + l], n, n, &inputs["u"]);
        let r: Vec<_> = inputs["D"].iter().zip(&t).map(|(d, t)| d * t).collect();
        close(&change_basis(|i, l| s[l * n + i], n, n, &r), &outputs["v"]);
        // Six sums over n for each of n^3 numbers, and one multiplication.
        let numbers = (elements * n.pow(3)) as f64;
        let n = n as f64;
        assert_eq!(flops, [numbers * (12.0 * n + 1.0), numbers * (8.0 * n.powi(3) + 1.0)]);
    }
}

#[test]
fn interpolation() {
    for (n, elements) in CASES {
        let m = n + 4;
        let replacements = [
            ("[12 8]", format!("[{m} {n}]")),
            ("[64 8 8 8]", format!("[{elements} {n} {n} {n}]")),
            ("[64 12 12 12]", format!("[{elements} {m} {m} {m}]")),
        ];
        let run = run(example("interpolation.tml", &replacements), n as u64);
        let b = &run.inputs["B"];
        close(&change_basis(|i, l| b[i * n + l], m, n, &run.inputs["u"]), &run.outputs["v"]);
        let (m, n) = (m as f64, n as f64);
        let steps = m * n.powi(3) + m.powi(2) * n.powi(2) + m.powi(3) * n;
        assert_eq!(run.flops[0], 2.0 * elements as f64 * steps);
    }
}

#[test]
fn trace_of_a_product() {
    for (n, m) in [(3, 16), (11, 5), (16, 16), (150, 250)] {
        let replacements =
            [("[150 250]", format!("[{n} {m}]")), ("[250 150]", format!("[{m} {n}]"))];
        let run = run(example("trace.tml", &replacements), n as u64);
        let (a, b) = (&run.inputs["A"], &run.inputs["B"]);
        let row = |i: usize| (0..m).map(|j| a[i * m + j] * b[j * n + i]).sum::<f64>();
        let trace: f64 = (0..n).map(row).sum();
        assert!((run.outputs["s"][0] - trace).abs() <= 1e-12 * (n * m) as f64);
        assert_eq!(run.flops[0], 2.0 * (n * m) as f64);
    }
}
