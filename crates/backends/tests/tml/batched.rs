//! Random programs on batches of small tensors, whose temporaries are there for one element of the batch at
//! a time.

use super::{
    compiled::{Counts, check, session},
    from_environment,
    random::Random,
};
use std::fmt::Write;
use tc_backends::{
    Request,
    interp::Limits,
    program::Padding,
    tml::{
        compare,
        interp::Machine,
        value::{Bounded, Division},
    },
};
use tc_dialects::{
    text::SourceFile,
    tml::syntax::{check as check_types, parse_program},
};

/// A program in which each variable is assigned to once; `x0` and `x1` are passed, the last one is a result.
fn generate(random: &mut Random) -> String {
    let (elements, n) = ([1, 3, 90, 130][random.below(4)], 5 + random.below(4));
    let batch = format!("[{elements} {n} {n} {n}]");
    let mut text = format!("in var m : [{n} {n}]\nin var x0 : {batch}\nin var x1 : {batch}\n");
    let num_statements = 2 + random.below(6);
    for number in 0..num_statements {
        let out = if number + 1 == num_statements { "out " } else { "" };
        writeln!(text, "{out}var x{} : {batch}", number + 2).expect("strings take text");
    }
    text += "var s : []\n";
    for number in 2..num_statements + 2 {
        let mut x = || format!("x{}", number - 1 - random.below(2));
        let (x, y) = (x(), x());
        // The dimension of the element that the matrix is applied to, and where the result has it.
        let (dim, order) = [(4, "[2 1 3 4]"), (5, "[2 3 1 4]"), (6, "[2 3 4 1]")][random.below(3)];
        let row = 1 + random.below(2);
        let value = match random.below(8) {
            0 => format!("{x} + {y}"),
            1 => format!("{x} * {y} - {x}"),
            2 => format!("{x} ^ [{}]", ["2 3", "3 4", "2 4"][random.below(3)]),
            3 => {
                // This one needs the whole batch.
                writeln!(text, "s = {x} # {y} . [1 5, 2 6, 3 7, 4 8]").expect("strings take text");
                format!("s * {x} + {y}")
            }
            4 => format!("(m # {x} . [{row} {dim}] ^ {order}) - {y}"),
            _ => format!("m # {x} . [{row} {dim}] ^ {order}"),
        };
        writeln!(text, "x{number} = {value}").expect("strings take text");
    }
    text
}

#[test]
fn batched_programs_agree_with_the_rules() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 20);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let mut counts = Counts::default();
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let text = generate(&mut random);
        let source = SourceFile::new("batched.tml", &*text);
        let (program, mut diagnostics) = parse_program(&source);
        let (checked, found) = check_types(&program);
        diagnostics.extend(found);
        assert!(!diagnostics.iter().any(|it| it.is_error()), "{text}\n{diagnostics:?}");
        let ambient = |variable: usize, place: usize| {
            let number = (place * 37 + variable * 11 + seed as usize * 5) % 17;
            Some(Bounded::exact((number as f64 - 8.0) / 8.0))
        };
        let limits = Limits::default();
        let machine = Machine::new(&checked, 1, Division::Controlled, limits, ambient);
        let mut machine = machine.expect("it is small");
        let passed = compare::tensors(&machine).expect("they are small");
        machine.run().expect("a well-typed program is evaluated");
        for vector_length in [None, Some(4)] {
            let padding = vector_length.map(Padding::Length);
            let request = Request { padding, ..Request::default() };
            let checked = check(&text, &passed, &machine, (&session(), &request), &mut counts);
            checked
                .unwrap_or_else(|error| panic!("seed {seed}, {vector_length:?}: {error}\n{text}"));
        }
    }
    assert!(counts.uncertain * 10 < counts.elements, "{counts:?}");
}
