//! Compiled programs give what the evaluation rules give, wherever that is defined: with padding and
//! without, in the order written and in the cheapest one.
//!
//! What is undefined in the beginning is NaN. `TC_RANDOM_PROGRAMS` asks for another number of programs,
//! `TC_RANDOM_SEED` for another first seed.

use super::{
    from_environment,
    generator::{Program, generate},
};
use num_rational::BigRational;
use num_traits::ToPrimitive;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tc_backends::{
    interp::Limits,
    runtime::{ElementType, Number, Tensor},
    tml::{
        executable::{Executable, Options},
        interp::{Error, Machine, indices},
        value::{Bounded, Division},
    },
};
use tc_dialects::{
    diagnostic,
    tml::{
        import,
        syntax::{SourceFile, checked::Element},
    },
};

/// Programs of more work are left out.
const LIMITS: Limits = Limits { points: 1 << 19, elements: 1 << 16 };
/// Failures after which the rest is not tried.
const MAX_FAILURES: usize = 5;

type Value = Bounded<BigRational>;

/// The final store; none if that takes too much work.
fn evaluate(program: &Program) -> Option<Machine<'_, Value>> {
    let ambient = |variable: usize, index: &[usize]| {
        let extents = &program.checked.variables[variable].ty.extents;
        let fold = |place, (index, extent): (&usize, &i64)| place * *extent as usize + index;
        let place = index.iter().zip(extents).fold(0, fold);
        program.initial[variable][place].clone().map(Bounded::exact)
    };
    let mut machine =
        Machine::new(&program.checked, 1, Division::Controlled, LIMITS, ambient).ok()?;
    match machine.run() {
        Ok(()) => Some(machine),
        Err(Error::Limit { .. }) => None,
        Err(error) => panic!("{error}\n{}", program.text),
    }
}

fn element(element: Element) -> ElementType {
    match element {
        Element::F32 => ElementType::F32,
        Element::F64 => ElementType::F64,
    }
}

/// What the ambient application passes: NaN where that is undefined.
fn initial(program: &Program) -> BTreeMap<String, Tensor> {
    let variables = program.checked.variables.iter().zip(&program.initial);
    let tensors = variables.map(|(variable, elements)| {
        let extents: Vec<_> = variable.ty.extents.iter().map(|it| *it as usize).collect();
        let mut tensor =
            Tensor::zeros(element(variable.ty.element), &extents).expect("it is small");
        for (place, element) in elements.iter().enumerate() {
            let number = element.as_ref().map_or(f64::NAN, |it| it.to_f64().expect("a number"));
            tensor.set(place, Number::Float(number));
        }
        (variable.name.clone(), tensor)
    });
    tensors.collect()
}

#[derive(Default)]
struct Counts {
    runs: usize,
    elements: usize,
    uncertain: usize,
    undefined: usize,
}

fn check(
    program: &Program,
    machine: &Machine<Value>,
    options: &Options,
    counts: &mut Counts,
) -> Result<(), String> {
    let context = tc_dialects::new_context();
    let (_, received) = diagnostic::collect(&context);
    let source = SourceFile::new("random.tml", &*program.text);
    let module = import::import_program(&context, &source, &program.checked);
    let executable = Executable::compile(&module, options)
        .map_err(|error| format!("{error}: {:?}", received.borrow()))?;
    let mut buffers = executable.buffers(&initial(program)).map_err(|error| error.to_string())?;
    executable.call(&mut buffers).map_err(|error| error.to_string())?;
    counts.runs += 1;
    let results = executable.results(&buffers).map_err(|error| error.to_string())?;
    let mut is_defined = true;
    for (number, variable) in program.checked.variables.iter().enumerate() {
        let Some(result) = results.get(&variable.name) else { continue };
        let expected = machine.tensor(number);
        for (place, index) in indices(&expected.extents).enumerate() {
            counts.elements += 1;
            let Some(expected) = expected.get(&index).expect("in bounds") else {
                counts.undefined += 1;
                is_defined = false;
                continue;
            };
            let bound = expected.bound(variable.ty.element);
            if !bound.is_finite() {
                counts.uncertain += 1;
                is_defined = false;
                continue;
            }
            let got = result.get(place).expect("in bounds").to_f64();
            let expected = expected.value.to_f64().expect("a number");
            if (got - expected).abs() <= bound || got == expected {
                continue;
            }
            return Err(format!(
                "{}{index:?} is {got}, expected {expected} within {bound:e}",
                variable.name
            ));
        }
    }
    if is_defined && !executable.is_padding_zero(&buffers) {
        return Err("padding is not zero".to_string());
    }
    Ok(())
}

#[test]
fn compiled_programs_agree_with_the_rules() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 60);
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
                    let Some(machine) = evaluate(&program) else { continue };
                    let written = Options { keep_order: true, no_fuse: true, ..Options::default() };
                    let vector_length = [1, 2, 4, 8, 16][seed as usize % 5];
                    let padded =
                        Options { vector_length: Some(vector_length), ..Options::default() };
                    let mut counts = Counts::default();
                    let mut failures = Vec::new();
                    for options in [Options::default(), written, padded] {
                        if let Err(error) = check(&program, &machine, &options, &mut counts) {
                            let how =
                                format!("{}, {:?}", options.pipeline(), options.vector_length);
                            failures
                                .push(format!("seed {seed} ({how}): {error}\n{}", program.text));
                        }
                    }
                    let mut totals = totals.lock().expect("no worker panics");
                    totals.0.runs += counts.runs;
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
    let Counts { runs, elements, uncertain, undefined } = counts;
    println!(
        "{programs} of {count} programs, {runs} runs, {elements} elements, {undefined} undefined, \
         {uncertain} uncertain"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(count * 2 < programs * 3, "{programs} of {count} programs are within the limits");
    assert!(uncertain * 10 < elements, "{uncertain} of {elements} elements are uncertain");
}
