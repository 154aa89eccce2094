//! Compile time against the number of operations, and its growth exponent, for generated HLO programs.
//!
//! Each kind of program is compiled with n = 64, 128, .. operations. "ours" is the processor time from HLO text to
//! the `llvm` dialect: importer and all MLIR passes. "LLVM" is translation, optimization and code
//! generation. The exponent is the slope of a least squares fit of log(time) over log(n) through the last
//! three doublings.

use clap::Parser;
use std::{
    fmt::Write as _,
    io::{self, Write as _},
    process::ExitCode,
    time::Instant,
};
use tc_backends::{Artifact, Form, Request, Session, Source, cpu};

/// Measures how compile time grows with the number of operations.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo bench --package tc-benches --bench compile-time
  cargo bench --package tc-benches --bench compile-time -- concat --max 1024 --json
  cargo bench --package tc-benches --bench compile-time -- concat --max 64 --text")]
struct Arguments {
    /// Measures only the kinds of programs whose name contains this.
    filter: Option<String>,
    /// The largest number of operations.
    #[arg(long, value_name = "N", default_value_t = 4096)]
    max: usize,
    /// Skips larger programs of a kind after one that takes longer than this.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    max_seconds: f64,
    /// Measures only our passes.
    #[arg(long)]
    no_llvm: bool,
    /// Prints the HLO text of the largest program of each kind, and measures nothing.
    #[arg(long)]
    text: bool,
    /// Prints one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Passed by 'cargo bench'.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The smallest number of operations.
const MIN: usize = 64;
/// The doublings that an exponent is fitted to.
const FITTED: usize = 3;
/// Short compilations are repeated for this long; the shortest time counts.
const REPEAT_SECONDS: f64 = 0.5;

/// A kind of program.
struct Kind {
    name: &'static str,
    /// The HLO text of a program with a number of operations.
    text: fn(usize) -> String,
    /// The largest number of operations to measure.
    max: usize,
    /// The largest exponent that our passes may have.
    bound: Option<f64>,
}

impl Kind {
    const fn new(name: &'static str, text: fn(usize) -> String) -> Self {
        Self { name, text, max: usize::MAX, bound: Some(1.2) }
    }
}

const KINDS: &[Kind] = &[
    Kind::new("element-wise", element_wise),
    Kind::new("element-wise-shared", element_wise_shared),
    Kind::new("dots", dots),
    Kind::new("concatenate", concatenate),
    Kind::new("dynamic-update-slice", dynamic_update_slice),
    Kind::new("dus-in-while", dynamic_update_slice_in_while),
    Kind::new("tuples", tuples),
    Kind::new("literals", literals),
    Kind::new("large-literal", large_literal),
    Kind::new("wide-sum", wide_sum),
    Kind::new("transposes", transposes),
    Kind::new("transposes-stored", transposes_stored),
    Kind::new("scatters", scatters),
    Kind::new("shared-reductions", shared_reductions),
    Kind { max: 128, ..Kind::new("nested-loops", nested_loops) },
    Kind { bound: None, ..Kind::new("calls", calls) },
];

/// A module with an entry computation of these instructions, the last of which is the root.
fn module(computations: &str, instructions: &str) -> String {
    let start = instructions.trim_end().rfind('\n').map_or(0, |newline| newline + 1);
    let (before, root) = instructions.split_at(start);
    let root = root.trim_start();
    format!("HloModule bench\n\n{computations}ENTRY main {{\n{before}  ROOT {root}}}\n")
}

fn element_wise(n: usize) -> String {
    let mut text = String::from("  p = f32[64] parameter(0)\n  x0 = f32[64] negate(p)\n");
    for i in 0..n {
        let opcode = ["add", "multiply", "maximum", "subtract"][i % 4];
        let _ = writeln!(text, "  x{} = f32[64] {opcode}(x{i}, p)", i + 1);
    }
    module("", &text)
}

/// Each result has two users.
fn element_wise_shared(n: usize) -> String {
    let mut text = String::from("  x0 = f32[64] parameter(0)\n  x1 = f32[64] negate(x0)\n");
    for i in 0..n {
        let _ = writeln!(text, "  x{} = f32[64] add(x{}, x{i})", i + 2, i + 1);
    }
    module("", &text)
}

fn dots(n: usize) -> String {
    let mut text = String::from("  x0 = f32[4,4] parameter(0)\n  w = f32[4,4] parameter(1)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  x{} = f32[4,4] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            i + 1
        );
    }
    module("", &text)
}

/// One concatenation of many operands.
fn concatenate(n: usize) -> String {
    let mut text = String::from("  p = f32[4] parameter(0)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  c{i} = f32[] constant({i})\n  b{i} = f32[4] broadcast(c{i}), dimensions={{}}\n  \
             a{i} = f32[4] add(p, b{i})"
        );
    }
    let _ = writeln!(
        text,
        "  r = f32[{}] concatenate({}), dimensions={{0}}",
        4 * n,
        list(n, |i| format!("a{i}"))
    );
    module("", &text)
}

fn dynamic_update_slice(n: usize) -> String {
    let size = n + 8;
    let mut text = format!(
        "  p = f32[{size}] parameter(0)\n  u = f32[2] parameter(1)\n  d0 = f32[{size}] negate(p)\n"
    );
    for i in 0..n {
        let _ = writeln!(
            text,
            "  k{i} = s32[] constant({i})\n  \
             d{} = f32[{size}] dynamic-update-slice(d{i}, u, k{i})",
            i + 1
        );
    }
    module("", &text)
}

/// A chain of updates in the body of a loop that carries the updated tensor.
fn dynamic_update_slice_in_while(n: usize) -> String {
    let size = n + 8;
    let carried = format!("(s32[], f32[{size}], f32[2])");
    let mut computations = format!(
        "condition {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         last = s32[] constant(3)\n  ROOT less = pred[] compare(i, last), direction=LT\n}}\n\n\
         body {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         d0 = f32[{size}] get-tuple-element(t), index=1\n  \
         u = f32[2] get-tuple-element(t), index=2\n  one = s32[] constant(1)\n  \
         next = s32[] add(i, one)\n"
    );
    for i in 0..n {
        let _ = writeln!(
            computations,
            "  k{i} = s32[] constant({i})\n  j{i} = s32[] add(i, k{i})\n  \
             d{} = f32[{size}] dynamic-update-slice(d{i}, u, j{i})",
            i + 1
        );
    }
    let _ = writeln!(computations, "  ROOT r = {carried} tuple(next, d{n}, u)\n}}\n");
    let text = format!(
        "  p = f32[{size}] parameter(0)\n  u = f32[2] parameter(1)\n  zero = s32[] constant(0)\n  \
         t = {carried} tuple(zero, p, u)\n  \
         w = {carried} while(t), condition=condition, body=body\n  \
         r = f32[{size}] get-tuple-element(w), index=1\n"
    );
    module(&computations, &text)
}

fn tuples(n: usize) -> String {
    let carried = format!("({})", list(n, |_| "f32[8]".to_string()));
    let mut text = format!("  t = {carried} parameter(0)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  g{i} = f32[8] get-tuple-element(t), index={i}\n  x{i} = f32[8] negate(g{i})"
        );
    }
    let _ = writeln!(text, "  r = {carried} tuple({})", list(n, |i| format!("x{i}")));
    module("", &text)
}

fn literals(n: usize) -> String {
    let mut text = String::from("  x0 = f32[4] parameter(0)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  c{i} = f32[4] constant({{{i}, 1.5, {i}.25, -3}})\n  x{} = f32[4] add(x{i}, c{i})",
            i + 1
        );
    }
    module("", &text)
}

/// One literal with 16 elements for each of n.
fn large_literal(n: usize) -> String {
    let size = 16 * n;
    let elements = list(size, |i| format!("{i}.5"));
    let text = format!(
        "  p = f32[{size}] parameter(0)\n  c = f32[{size}] constant({{{elements}}})\n  \
         r = f32[{size}] add(p, c)\n"
    );
    module("", &text)
}

/// A sum of parameters.
fn wide_sum(n: usize) -> String {
    let mut text = String::from("  p0 = f32[64] parameter(0)\n  s0 = f32[64] negate(p0)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  p{0} = f32[64] parameter({0})\n  s{0} = f32[64] add(s{i}, p{0})",
            i + 1
        );
    }
    module("", &text)
}

fn transposes(n: usize) -> String {
    let shapes = ["f32[2,3,4]", "f32[3,4,2]", "f32[4,2,3]"];
    let mut text = String::from("  x0 = f32[2,3,4] parameter(0)\n");
    for i in 0..n {
        let shape = shapes[(i + 1) % 3];
        let _ = writeln!(text, "  x{} = {shape} transpose(x{i}), dimensions={{1,2,0}}", i + 1);
    }
    module("", &text)
}

/// A chain of transposes whose results are all outputs.
fn transposes_stored(n: usize) -> String {
    let shapes = ["f32[2,3,4]", "f32[3,4,2]", "f32[4,2,3]"];
    let mut text = String::from("  x0 = f32[2,3,4] parameter(0)\n");
    for i in 0..n {
        let shape = shapes[(i + 1) % 3];
        let _ = writeln!(text, "  x{} = {shape} transpose(x{i}), dimensions={{1,2,0}}", i + 1);
    }
    let types = list(n, |i| shapes[(i + 1) % 3].to_string());
    let _ = writeln!(text, "  r = ({types}) tuple({})", list(n, |i| format!("x{}", i + 1)));
    module("", &text)
}

fn scatters(n: usize) -> String {
    let computations = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                        ROOT s = f32[] add(a, b)\n}\n\n";
    let mut text = String::from(
        "  x0 = f32[64] parameter(0)\n  k = s32[2,1] parameter(1)\n  u = f32[2] parameter(2)\n",
    );
    for i in 0..n {
        let _ = writeln!(
            text,
            "  x{} = f32[64] scatter(x{i}, k, u), update_window_dims={{}}, \
             inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, \
             to_apply=sum",
            i + 1
        );
    }
    module(computations, &text)
}

/// Many reductions of one input.
fn shared_reductions(n: usize) -> String {
    let computations = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
                        ROOT s = f32[] add(a, b)\n}\n\n";
    let mut text = String::from("  p = f32[4,8] parameter(0)\n  x = f32[4,8] exponential(p)\n");
    for i in 0..n {
        let _ = writeln!(
            text,
            "  c{i} = f32[] constant({i})\n  \
             r{i} = f32[4] reduce(x, c{i}), dimensions={{1}}, to_apply=sum"
        );
    }
    let types = list(n, |_| "f32[4]".to_string());
    let _ = writeln!(text, "  r = ({types}) tuple({})", list(n, |i| format!("r{i}")));
    module(computations, &text)
}

/// Loops inside of each other.
fn nested_loops(n: usize) -> String {
    let carried = "(s32[], f32[8])";
    let mut computations = format!(
        "condition {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
         last = s32[] constant(2)\n  ROOT less = pred[] compare(i, last), direction=LT\n}}\n\n"
    );
    for i in 0..n {
        let _ = writeln!(
            computations,
            "body{i} {{\n  t = {carried} parameter(0)\n  i = s32[] get-tuple-element(t), index=0\n  \
             x = f32[8] get-tuple-element(t), index=1\n  one = s32[] constant(1)\n  \
             next = s32[] add(i, one)\n  c = f32[] constant({i})\n  \
             b = f32[8] broadcast(c), dimensions={{}}\n  y = f32[8] add(x, b)"
        );
        if i == 0 {
            let _ = writeln!(computations, "  ROOT r = {carried} tuple(next, y)\n}}\n");
        } else {
            let _ = writeln!(
                computations,
                "  zero = s32[] constant(0)\n  s = {carried} tuple(zero, y)\n  \
                 w = {carried} while(s), condition=condition, body=body{}\n  \
                 z = f32[8] get-tuple-element(w), index=1\n  \
                 ROOT r = {carried} tuple(next, z)\n}}\n",
                i - 1
            );
        }
    }
    let text = format!(
        "  p = f32[8] parameter(0)\n  zero = s32[] constant(0)\n  s = {carried} tuple(zero, p)\n  \
         w = {carried} while(s), condition=condition, body=body{}\n  \
         r = f32[8] get-tuple-element(w), index=1\n",
        n - 1
    );
    module(&computations, &text)
}

/// Calls of one computation.
fn calls(n: usize) -> String {
    let computations = "layer {\n  x = f32[8] parameter(0)\n  w = f32[8] parameter(1)\n  \
                        a = f32[8] multiply(x, w)\n  b = f32[8] add(a, x)\n  \
                        ROOT c = f32[8] tanh(b)\n}\n\n";
    let mut text = String::from("  x0 = f32[8] parameter(0)\n  w = f32[8] parameter(1)\n");
    for i in 0..n {
        let _ = writeln!(text, "  x{} = f32[8] call(x{i}, w), to_apply=layer", i + 1);
    }
    module(computations, &text)
}

fn list(n: usize, element: impl Fn(usize) -> String) -> String {
    (0..n).map(element).collect::<Vec<_>>().join(", ")
}

/// Processor seconds of our passes and of LLVM.
type Times = (f64, f64);

/// The processor time of this process in seconds. Unlike the time that passes, it hardly depends on what else
/// the machine does.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: The pointer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Compiles a program once.
fn compile(text: &str, with_llvm: bool) -> Result<Times, String> {
    let start = processor_seconds();
    let session = Session::new("cpu").map_err(|error| error.to_string())?;
    let program = session.open(Source::new("bench.hlo", text)).map_err(|it| it.to_string())?;
    let lowered = session.lower(&*program, &Request::default());
    let lowered = lowered.map_err(|error| error.to_string())?;
    let lowered = cpu::Lowered::new(&lowered.module, session.codegen());
    let lowered = lowered.map_err(|error| error.to_string())?;
    let ours = processor_seconds() - start;
    if !with_llvm {
        return Ok((ours, 0.0));
    }
    let start = processor_seconds();
    let program = lowered.translate().map_err(|error| error.to_string())?;
    program.emit(Form::Object).map_err(|error| error.to_string())?;
    Ok((ours, processor_seconds() - start))
}

/// The shortest times of several compilations.
fn measure(text: &str, with_llvm: bool) -> Result<Times, String> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    let start = Instant::now();
    loop {
        let (ours, llvm) = compile(text, with_llvm)?;
        best = (best.0.min(ours), best.1.min(llvm));
        if REPEAT_SECONDS < start.elapsed().as_secs_f64() {
            return Ok(best);
        }
    }
}

/// The slope of a least squares fit of log(time) over log(n) through the last points; `None` if there are
/// too few.
fn exponent(points: &[(usize, f64)]) -> Option<f64> {
    let fitted = points.get(points.len().checked_sub(FITTED + 1)?..)?;
    let logs: Vec<_> = fitted.iter().map(|(n, time)| ((*n as f64).ln(), time.ln())).collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|it| it.0).sum::<f64>() / count;
    let mean_y = logs.iter().map(|it| it.1).sum::<f64>() / count;
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    Some(covariance / variance).filter(|exponent| exponent.is_finite())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compile-time: error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures. Whether all programs compile and all exponents are within their bounds.
fn run(arguments: &Arguments) -> io::Result<bool> {
    let filter = arguments.filter.as_deref().unwrap_or_default();
    let mut out = io::stdout();
    let mut is_met = true;
    for kind in KINDS.iter().filter(|kind| kind.name.contains(filter)) {
        let max = arguments.max.min(kind.max);
        if arguments.text {
            write!(out, "{}", (kind.text)(max))?;
            continue;
        }
        // A kind of small programs starts earlier.
        let min = (max >> (FITTED + 1)).clamp(1, MIN);
        let (mut ours, mut llvm) = (Vec::new(), Vec::new());
        let mut n = min;
        if !arguments.json {
            writeln!(out, "{}\n{:>8} {:>12} {:>12}", kind.name, "n", "ours, ms", "LLVM, ms")?;
        }
        while n <= max {
            let (our, their) = match measure(&(kind.text)(n), !arguments.no_llvm) {
                Ok(times) => times,
                Err(error) => {
                    eprintln!("compile-time: error: {} with n = {n}: {error}", kind.name);
                    is_met = false;
                    break;
                }
            };
            ours.push((n, our));
            llvm.push((n, their));
            if !arguments.json {
                writeln!(out, "{n:8} {:12.1} {:12.1}", our * 1e3, their * 1e3)?;
                out.flush()?;
            }
            if arguments.max_seconds < our + their {
                break;
            }
            n *= 2;
        }
        is_met &= report(&mut out, arguments, kind, &ours, &llvm)?;
    }
    Ok(is_met)
}

/// Prints the exponents of a kind. Returns whether the exponent of our passes is within its bound.
fn report(
    out: &mut impl io::Write,
    arguments: &Arguments,
    kind: &Kind,
    ours: &[(usize, f64)],
    llvm: &[(usize, f64)],
) -> io::Result<bool> {
    let (exponent_ours, exponent_llvm) = (exponent(ours), exponent(llvm));
    if arguments.json {
        let seconds = |points: &[(usize, f64)]| points.iter().map(|it| it.1).collect::<Vec<_>>();
        let line = serde_json::json!({
            "name": kind.name,
            "n": ours.iter().map(|it| it.0).collect::<Vec<_>>(),
            "seconds_ours": seconds(ours),
            "seconds_llvm": seconds(llvm),
            "exponent_ours": exponent_ours,
            "exponent_llvm": exponent_llvm,
            "bound_ours": kind.bound,
        });
        writeln!(out, "{line}")?;
    } else {
        let shown =
            |exponent: Option<f64>| exponent.map_or("-".to_string(), |it| format!("{it:.2}"));
        let bound = kind.bound.map_or(String::new(), |bound| format!("  (at most {bound})"));
        writeln!(
            out,
            "{:>8} {:>12} {:>12}{bound}\n",
            "exponent",
            shown(exponent_ours),
            shown(exponent_llvm)
        )?;
    }
    Ok(match (exponent_ours, kind.bound) {
        (Some(exponent), Some(bound)) => exponent <= bound,
        _ => true,
    })
}
