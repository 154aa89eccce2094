//! The time that inference of Axon programs takes, per number of calls.
//!
//! Programs are one function of a chain of calls: matrix products, point-wise operations, reductions
//! that are broadcast again, convolutions whose sizes shrink, and calls of functions of the program
//! at changing ranks. A second kind has no annotations, and layers that share their weights, so that
//! the shapes of all of them depend on each other.

use std::{fmt::Write, time::Instant};
use tc_dialects::{axon, text::SourceFile};

/// A program with a number of calls in its last function, `net`.
fn mixed(num_calls: usize) -> String {
    let mut text = String::from(
        "center = fn(x) { x - sum(x) };\n\
         twice = fn(f, x) { f(f(x)) };\n\
         net = fn(x : f32 [b,n], w : f32 [n,n], image : f32 [1,8,h,v], filter : f32 [8,8,3,3]) {\n  \
         x0 = x;\n  i0 = image;\n",
    );
    for call in 0..num_calls / 5 {
        let next = call + 1;
        let _ = writeln!(
            text,
            "  a{call} = matmul(x{call}, w);\n  \
             b{call} = tanh(a{call} + x{call});\n  \
             i{next} = conv(i{call}, filter);\n  \
             x{next} = twice(center, b{call});"
        );
    }
    let last = num_calls / 5;
    let _ = writeln!(text, "  x{last}, i{last}\n}};");
    text
}

/// A recurrent network that is unrolled, of five calls in each step.
fn shared_weights(num_calls: usize) -> String {
    let mut text = String::from("net = fn(x, w, u, b, h0) {\n");
    for step in 0..num_calls / 5 {
        let _ = writeln!(text, "  h{} = tanh(matmul(x, w) + matmul(h{step}, u) + b);", step + 1);
    }
    let _ = writeln!(text, "  h{}\n}};", num_calls / 5);
    text
}

fn main() {
    for (name, program) in
        [("mixed", mixed as fn(usize) -> String), ("shared weights", shared_weights)]
    {
        println!("\n{name}:\n");
        measure(program);
    }
}

fn measure(program: fn(usize) -> String) {
    println!("| calls | ms | µs per call |\n|---|---|---|");
    for num_calls in [100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000] {
        let source = SourceFile::new("bench.axon", program(num_calls));
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            let (program, errors) = axon::syntax::parse_program(&source);
            let mut inferred = axon::infer(&program, &axon::Options::default());
            let signature = inferred.signature(Some("net"));
            best = best.min(start.elapsed().as_secs_f64());
            assert!(errors.is_empty() && inferred.diagnostics.is_empty() && signature.is_some());
        }
        println!("| {num_calls} | {:.1} | {:.2} |", best * 1e3, best * 1e6 / num_calls as f64);
    }
}
