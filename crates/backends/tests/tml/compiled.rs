//! Compiled programs give what the evaluation rules give, wherever that is defined: with padding and
//! without, in the order written and in the cheapest one.
//!
//! What is undefined in the beginning is NaN. Tensors of the caller and temporaries stand directly before or
//! behind pages that nothing may touch. `TC_RANDOM_PROGRAMS` asks for another number of programs,
//! `TC_RANDOM_SEED` for another first seed.

use super::{
    from_environment,
    generator::{Program, generate},
    guard::{Side, guarded, side_of_threads},
    scheduled::route,
};
use num_rational::BigRational;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tc_backends::{
    Program as _, Request, Session,
    backend::CallError,
    interp::Limits,
    languages::tml,
    program::Padding,
    runtime::Tensor,
    tml::{
        compare::{self, Agreement},
        interp::{Error, Machine},
        value::{Bounded, Division, Magnitude},
    },
};
use tc_dialects::text::SourceFile;

/// Programs of more work are left out.
const LIMITS: Limits = Limits { points: 1 << 19, elements: 1 << 16 };
/// Failures after which the rest is not tried.
const MAX_FAILURES: usize = 5;

type Value = Bounded<BigRational>;

/// What is passed, and the final store; none if that takes too much work.
fn evaluate(program: &Program) -> Option<(BTreeMap<String, Tensor>, Machine<'_, Value>)> {
    let ambient = |variable: usize, place: usize| {
        program.initial[variable][place].clone().map(Bounded::exact)
    };
    let mut machine =
        Machine::new(&program.checked, 1, Division::Controlled, LIMITS, ambient).ok()?;
    let passed = compare::tensors(&machine).expect("they are small");
    match machine.run() {
        Ok(()) => Some((passed, machine)),
        Err(Error::Limit { .. }) => None,
        Err(error) => panic!("{error}\n{}", program.text),
    }
}

/// What has been compared.
#[derive(Debug, Default)]
pub struct Counts {
    pub runs: usize,
    pub temporaries: usize,
    pub elements: usize,
    pub uncertain: usize,
    pub undefined: usize,
}

/// A session for the processor of this machine.
pub fn session() -> Session {
    Session::new("cpu").expect("this machine")
}

/// Compiles a program, runs it on what is passed, and compares it with the final store of the interpreter.
pub fn check<V: Magnitude>(
    text: &str,
    passed: &BTreeMap<String, Tensor>,
    machine: &Machine<'_, Bounded<V>>,
    (session, request): (&Session, &Request),
    counts: &mut Counts,
) -> Result<(), String> {
    let source = SourceFile::new("random.tml", text);
    let program = tml::Program::new(session.context(), source, machine.program().clone());
    let entry = program.entry(request).map_err(|error| error.to_string())?;
    let executable = session.compile(&program, request).map_err(|error| error.to_string())?;
    let inputs: Vec<_> = entry.inputs.iter().map(|it| &passed[&it.name]).collect();
    counts.runs += 1;
    let mut agreements = Vec::new();
    for side in [Side::Start, Side::End] {
        let failed = |error: CallError| error.to_string();
        // Inputs that are not converted are passed as they are.
        let mut inputs = inputs.iter().map(|it| (*it).clone()).collect::<Vec<_>>();
        if request.padding.is_none() {
            (inputs, _) = guarded(side, || inputs.clone());
        }
        let inputs: Vec<_> = inputs.iter().collect();
        let (buffers, num_buffers) = guarded(side, || executable.buffers(&inputs));
        let mut buffers = buffers.map_err(failed)?;
        assert!(entry.outputs.len() <= num_buffers);
        let side = side_of_threads(side, session.codegen().threads);
        let (called, temporaries) = guarded(side, || executable.call(&mut buffers));
        called.map_err(failed)?;
        counts.temporaries += temporaries;
        let names = entry.outputs.iter().map(|it| it.name.as_str());
        let compared = compare::compare_padded(machine, names.zip(buffers.outputs()));
        agreements = compared.map_err(|error| error.to_string())?;
    }
    for (_, Agreement { compared, undefined, uncertain }) in agreements {
        counts.elements += compared + undefined + uncertain;
        counts.undefined += undefined;
        counts.uncertain += uncertain;
    }
    Ok(())
}

#[test]
fn compiled_programs_agree_with_the_rules() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 300);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let next = AtomicU64::new(first);
    let totals = Mutex::new((Counts::default(), Vec::new(), 0));
    let workers = thread::available_parallelism().map_or(1, |it| it.get()).min(8);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failures = totals.lock().expect("no worker panics").1.len();
                    if first + count <= seed || MAX_FAILURES <= failures {
                        return;
                    }
                    let program = generate(seed);
                    let Some((passed, machine)) = evaluate(&program) else { continue };
                    let written = Request { keep_order: true, no_fuse: true, ..Request::default() };
                    let vector_length = [1, 2, 4, 8, 16][seed as usize % 5];
                    let padding = Some(Padding::Length(vector_length));
                    let padded = Request { padding, ..Request::default() };
                    let mut counts = Counts::default();
                    let mut failures = Vec::new();
                    let (backend, codegen, no_fuse) = route(seed);
                    let drawn = Request { no_fuse, ..Request::default() };
                    let drawn = (Session::with_backend(backend, codegen), drawn);
                    let others = [written, padded].map(|it| (session(), it));
                    for (session, request) in others.into_iter().chain([drawn]) {
                        let way = (&session, &request);
                        if let Err(error) =
                            check(&program.text, &passed, &machine, way, &mut counts)
                        {
                            failures.push(format!(
                                "seed {seed} ({request:?}): {error}\n{}",
                                program.text
                            ));
                        }
                    }
                    let mut totals = totals.lock().expect("no worker panics");
                    totals.0.runs += counts.runs;
                    totals.0.temporaries += counts.temporaries;
                    totals.0.elements += counts.elements;
                    totals.0.uncertain += counts.uncertain;
                    totals.0.undefined += counts.undefined;
                    totals.1.extend(failures);
                    totals.2 += 1;
                }
            });
        }
    });
    let (counts, failures, programs) = totals.into_inner().expect("no worker panics");
    let Counts { runs, temporaries, elements, uncertain, undefined } = counts;
    println!(
        "{programs} of {count} programs, {runs} runs, {temporaries} temporaries, {elements} elements, \
         {undefined} undefined, {uncertain} uncertain"
    );
    assert!(0 < temporaries, "the memory of compiled code is not guarded");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(count * 2 < programs * 3, "{programs} of {count} programs are within the limits");
    assert!(uncertain * 10 < elements, "{uncertain} of {elements} elements are uncertain");
}
