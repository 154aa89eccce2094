//! Theorems 1 to 3 and their corollaries as properties: random programs never get stuck, with padding
//! or without; padding changes no element, and stays zero.

use super::{
    from_environment,
    generator::{Program, generate},
};
use num_rational::BigRational;
use tc_backends::{
    interp::Limits,
    tml::{
        interp::{Error, Machine, indices},
        value::{Division, Value},
    },
};

/// Programs of more work are left out.
const LIMITS: Limits = Limits { points: 1 << 15, elements: 1 << 13 };

fn start(program: &Program, vector_length: i64) -> Result<Machine<'_, BigRational>, Error> {
    let ambient = |variable: usize, place: usize| program.initial[variable][place].clone();
    Machine::new(&program.checked, vector_length, Division::Controlled, LIMITS, ambient)
}

/// The state after the evaluation, which must not fail; `None` if it takes too much.
fn run(program: &Program, vector_length: i64) -> Option<Machine<'_, BigRational>> {
    let result = start(program, vector_length).and_then(|mut machine| {
        machine.run()?;
        Ok(machine)
    });
    match result {
        Ok(machine) => Some(machine),
        Err(Error::Limit { .. }) => None,
        Err(error) => panic!("{error}\n{}", program.text),
    }
}

#[test]
fn padded_evaluation_simulates_evaluation() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 300);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let (mut runs, mut undefined, mut elements) = (0, 0, 0);
    for seed in first..first + count {
        let program = generate(seed);
        let text = &program.text;
        let Some(plain) = run(&program, 1) else { continue };
        for vector_length in [1, 2, 4, 8, 16] {
            let Some(padded) = run(&program, vector_length) else { continue };
            runs += 1;
            for variable in 0..program.checked.variables.len() {
                let (plain, found) = (plain.tensor(variable), padded.tensor(variable));
                let mut is_defined = true;
                for index in indices(&plain.extents) {
                    let expected = plain.get(&index);
                    assert_eq!(expected, found.get(&index), "seed {seed}, {vector_length}\n{text}");
                    let is_undefined = expected.is_none_or(Option::is_none);
                    is_defined &= !is_undefined;
                    undefined += usize::from(is_undefined);
                    elements += 1;
                }
                // Lemma 5(ii) holds where nothing undefined meets the padding. Where it does, it has
                // met elements beside that padding too.
                for (index, element) in indices(&found.extents).zip(&found.elements) {
                    let is_zero = element.as_ref().is_some_and(Value::is_zero);
                    let is_allowed = is_zero || element.is_none() && !is_defined;
                    assert!(
                        padded.is_in_bounds(variable, &index) || is_allowed,
                        "seed {seed}, {vector_length}, {variable}{index:?}\n{text}"
                    );
                }
            }
        }
    }
    println!("{runs} runs of {count} programs, {undefined} of {elements} elements undefined");
    assert!(2 * count < runs, "only {runs} runs of {count} programs are within the limits");
    assert!(undefined * 2 < elements, "{undefined} of {elements} elements are undefined");
}
