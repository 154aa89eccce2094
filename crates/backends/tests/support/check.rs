//! The check of one program: compiled in several ways, it computes what the interpreter does.

use super::{
    guard::{Side, guarded, side_of_threads},
    scheduled::route,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tc_backends::{
    Backend, Codegen, Error, Program as _, Request,
    backend::CallError,
    cpu,
    interp::{self, Interpreter, Limits, Outcome},
    languages::tc::Program,
    program::{Sizes, in_memory},
    runtime::{Tensor, random},
};
use tc_dialects::{report, tc::import::import};

/// What came of a program.
#[derive(Debug)]
pub enum Verdict {
    /// The front end or inference does not accept it, for this reason.
    Rejected(String),
    /// It ran, at some of the sizes.
    Passed(Stats),
    /// It should not have ended like this.
    Failed(Failure),
}

/// How much was compared.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Runs of the interpreter.
    pub runs: usize,
    /// Runs of compiled code that were compared with one of them.
    pub comparisons: usize,
    pub elements: usize,
    /// Elements of which the interpreter knows nothing.
    pub uncertain: usize,
    /// Why it did not run at some sizes.
    pub refused: Vec<String>,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The step that failed: two failures of one kind are likely the same mistake.
    pub kind: &'static str,
    pub message: String,
}

/// Checks a program at some sizes, with inputs that depend on the seed. The seed also
/// decides which of the dearer ways of compiling are tried.
pub fn check(text: &str, sizes: &[Sizes], seed: u64) -> Verdict {
    let result = catch_unwind(AssertUnwindSafe(|| check_program(text, sizes, seed)));
    result.unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
            .unwrap_or_default();
        Verdict::Failed(Failure { kind: "panic", message })
    })
}

/// What a run of the interpreter took and gave.
struct Run<'a> {
    sizes: &'a Sizes,
    inputs: Vec<Tensor>,
    outcomes: Vec<Outcome>,
}

impl Run<'_> {
    /// The request for the sizes of the run, unless it is for all sizes.
    fn request(&self, request: &Request) -> Request {
        let sizes = if request.dynamic { Sizes::new() } else { self.sizes.clone() };
        Request { sizes, ..request.clone() }
    }
}

fn check_program(text: &str, sizes: &[Sizes], seed: u64) -> Verdict {
    let context = tc_dialects::new_context();
    let (_, diagnostics) = report::collect(&context);
    let first_error = || {
        let diagnostics = diagnostics.borrow();
        let error = diagnostics.iter().find(|it| it.is_error()).or(diagnostics.last());
        error.map(|it| format!("{:?}: {}", it.place, it.message)).unwrap_or_default()
    };
    let failed = |kind, message| Verdict::Failed(Failure { kind, message });
    let Some(source) = import(&context, "random.tc", text.as_bytes(), false) else {
        return Verdict::Rejected(first_error());
    };
    let Ok(program) = Program::new(&context, source, false) else {
        return Verdict::Rejected(first_error());
    };
    let mut stats = Stats::default();
    let mut runs = Vec::new();
    for sizes in sizes {
        match interpret(&program, sizes, seed) {
            Ok(run) => runs.push(run),
            Err(Stop::Refused(reason)) => stats.refused.push(reason),
            Err(Stop::Failed(message)) => {
                return failed("interpreter", format!("at {sizes:?}: {message}"));
            }
        }
    }
    stats.runs = runs.len();
    for (name, request, backend, codegen) in ways(seed) {
        let run = if request.dynamic { &runs[..] } else { &runs[..runs.len().min(1)] };
        let Some(first) = run.first() else { continue };
        let request = first.request(&request);
        let compiled = program.lower(&request).and_then(|lowered| {
            Ok(backend.compile(&lowered.module, &codegen).and_then(|it| it.load())?)
        });
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                return failed("compile", format!("{name}: {error}: {}", first_error()));
            }
        };
        let Some(function) = compiled.function("f") else {
            return failed("compile", format!("{name}: there is no function 'f'"));
        };
        // What memory holds before it is written does not matter.
        let sides = [Side::Start, Side::End];
        for (run, side) in run.iter().flat_map(|run| sides.map(|side| (run, side))) {
            let inputs: Vec<_> = run.inputs.iter().collect();
            let place = || format!("{name} at {:?}", run.sizes);
            let side = side_of_threads(side, codegen.threads);
            let (outputs, _) = guarded(side, || function.run(&inputs));
            let outputs = match outputs {
                Ok(outputs) => outputs,
                // The check of a read ignores the condition under which the program reads.
                Err(error @ CallError::Check { .. }) if has_guarded_reads(&program) => {
                    stats.refused.push(error.to_string());
                    continue;
                }
                Err(error) => return failed("call", format!("{}: {error}", place())),
            };
            if outputs.len() != run.outcomes.len() {
                return failed("call", format!("{}: {} outputs", place(), outputs.len()));
            }
            for (number, (outcome, output)) in run.outcomes.iter().zip(&outputs).enumerate() {
                match interp::compare(outcome, output) {
                    Ok(compared) => {
                        stats.comparisons += 1;
                        stats.elements += compared.num_elements;
                        stats.uncertain += compared.num_uncertain;
                    }
                    Err(mismatch) => {
                        let lowered = interpret_lowered(&program, run, &request);
                        let message =
                            format!("{}: output {number}: {mismatch}; {lowered}", place());
                        return failed("mismatch", message);
                    }
                }
            }
        }
    }
    Verdict::Passed(stats)
}

/// Whether the program reads under a condition.
fn has_guarded_reads(program: &Program) -> bool {
    let def = program.def(None).expect("one function");
    def.preconditions().iter().any(|it| it.guarded)
}

enum Stop {
    Refused(String),
    Failed(String),
}

/// Draws inputs and runs the interpreter.
fn interpret<'a>(program: &Program, sizes: &'a Sizes, seed: u64) -> Result<Run<'a>, Stop> {
    let refused = |error: Error| Stop::Refused(error.to_string());
    let request = Request { sizes: sizes.clone(), ..Request::default() };
    // Shrinking may leave sizes that nothing has any more.
    let entry = program.entry(&request).map_err(refused)?;
    let mut inputs = Vec::new();
    for parameter in &entry.inputs {
        let stream = seed.wrapping_add(inputs.len() as u64);
        inputs.push(if parameter.is_accumulated {
            random(in_memory(parameter.element), &parameter.dims(), stream, None)
                .map_err(|error| Stop::Failed(error.to_string()))?
        } else {
            parameter.draw(seed).map_err(refused)?
        });
    }
    let outcomes = match program.interpret(&request, &inputs) {
        Ok(outcomes) => outcomes,
        Err(Error::Interpret(error)) => {
            let text = error.to_string();
            // Without a condition that hangs on data, every access has been proven inside.
            let def = program.def(None).expect("one function");
            let is_excused = def.preconditions().iter().any(|it| it.data || it.guarded);
            let is_outside = text.contains("out of bounds") || text.contains("outside");
            return Err(if is_excused && is_outside {
                Stop::Refused(text)
            } else {
                Stop::Failed(text)
            });
        }
        Err(error) => return Err(Stop::Failed(error.to_string())),
    };
    for (outcome, output) in outcomes.iter().zip(&entry.outputs) {
        if (outcome.element(), outcome.shape()) != (in_memory(output.element), &output.dims()) {
            let message = format!("the interpreter gives {outcome:?} for {output:?}");
            return Err(Stop::Failed(message));
        }
    }
    Ok(Run { sizes, inputs, outcomes })
}

/// Whether the interpreter finds the same mistake before code generation.
fn interpret_lowered(program: &Program, run: &Run, request: &Request) -> String {
    let Ok(lowered) = program.lower(&run.request(request)) else {
        return "it cannot be lowered again".to_string();
    };
    let module = tc_dialects::mlir::op_ref(lowered.module.as_operation());
    let body = tc_dialects::mlir::body(module, 0);
    let function = body.and_then(|body| tc_dialects::mlir::ops(body).first().copied());
    let Some(function) = function else { return "it has no function".to_string() };
    let interpreter = Interpreter::new(function).map(Interpreter::allow_undefined_results);
    match interpreter.and_then(|it| it.run(&run.inputs, Limits::default())) {
        Err(error) => format!("the interpreter cannot run what was lowered: {error}"),
        Ok(outcomes) => {
            let agrees = outcomes.iter().zip(&run.outcomes).all(|(found, expected)| {
                found.to_tensor().is_ok_and(|found| interp::compare(expected, &found).is_ok())
            });
            let place = if agrees { "after" } else { "before" };
            format!("it goes wrong {place} the lowering to loops")
        }
    }
}

/// The ways of compiling to try.
fn ways(seed: u64) -> Vec<(&'static str, Request, &'static dyn Backend, Codegen)> {
    let fixed = Request::default();
    let dynamic = Request { dynamic: true, ..Request::default() };
    let unfused = Request { no_fuse: true, ..dynamic.clone() };
    let (backend, codegen, no_fuse) = route(seed);
    let drawn = Request { no_fuse, ..fixed.clone() };
    let mut ways = vec![
        ("static", fixed.clone(), cpu::BACKEND, Codegen::default()),
        ("dynamic", dynamic.clone(), cpu::BACKEND, Codegen::default()),
        ("dynamic, unfused", unfused, cpu::BACKEND, Codegen::default()),
        ("static, drawn", drawn, backend, codegen),
    ];
    if seed.is_multiple_of(8) {
        let codegen = Codegen { threads: 2, ..Codegen::default() };
        ways.push(("dynamic, 2 threads", dynamic, cpu::BACKEND, codegen));
    }
    if seed % 8 == 3 {
        let codegen = Codegen { strict_fp: true, ..Codegen::default() };
        ways.push(("static, strict", fixed, cpu::BACKEND, codegen));
    }
    ways
}
