//! Functions that the transform dialect tiles: compiled, they agree with the interpreter on the
//! untiled functions.
//!
//! The functions and their schedules are those of the FileCheck tests.

#[allow(dead_code)] // Other tests use more of it.
#[path = "support/random.rs"]
mod random;

use melior::ir::Module;
use random::Random;
use tc_backends::{
    cpu,
    interp::{self, Interpreter, Limits},
    run::run_pipeline,
    runtime::Tensor,
};
use tc_dialects::{
    diagnostic,
    mlir::{self, Op},
};

/// Extents for the dynamic dimensions of all arguments of a function, in order.
fn dynamic_extents(function: &str) -> &'static [&'static [usize]] {
    match function {
        "matmul_dynamic" => &[&[37, 19, 19, 45], &[16, 1, 1, 20], &[1, 3, 3, 1], &[17, 0, 0, 21]],
        "sum_dynamic" => &[&[5, 40], &[3, 37], &[1, 1], &[4, 0]],
        _ => &[&[]],
    }
}

fn module_op<'c>(module: &Module<'c>) -> Op<'c> {
    mlir::op_ref(module.as_operation())
}

fn functions<'c>(module: &Module<'c>) -> Vec<(String, Op<'c>)> {
    let body = mlir::body(module_op(module), 0).expect("a module has a body");
    let functions = mlir::ops(body).into_iter().filter(|op| mlir::is(*op, "func.func"));
    functions
        .map(|op| (mlir::string_attr(op, "sym_name").expect("a name").to_string(), op))
        .collect()
}

/// Random arguments of a function. Numbers of 8 bits are lengths of rows of 6 elements.
fn arguments(function: Op, extents: &[usize], random: &mut Random) -> Vec<Tensor> {
    let (types, _) = mlir::function_type(function).expect("a function has a type");
    let mut extents = extents.iter();
    let mut argument = |ty| {
        let extent = |extent: &Option<i64>| match extent {
            Some(extent) => *extent as usize,
            None => *extents.next().expect("an extent for each dynamic dimension"),
        };
        let shape: Vec<usize> = mlir::shape(ty).iter().map(extent).collect();
        let mut draw = |low, high| -> Vec<i64> {
            (0..shape.iter().product()).map(|_| random.between(low, high)).collect()
        };
        let element = mlir::element_type(ty);
        let tensor = match mlir::integer_width(element) {
            Some(8) => {
                let values: Vec<_> = draw(0, 6).into_iter().map(|it| it as i8).collect();
                Tensor::from_values(&shape, &values)
            }
            Some(32) => {
                let values: Vec<_> = draw(-12, 12).into_iter().map(|it| it as i32).collect();
                Tensor::from_values(&shape, &values)
            }
            _ => {
                let values: Vec<_> =
                    draw(-3000, 3000).into_iter().map(|it| it as f32 / 1000.0).collect();
                Tensor::from_values(&shape, &values)
            }
        };
        tensor.expect("as many values as the shape has")
    };
    types.into_iter().map(&mut argument).collect()
}

/// Runs the schedule of a module and removes it.
fn tile(module: &mut Module) {
    run_pipeline(module, "transform-interpreter,canonicalize,cse").expect("the schedule runs");
    let body = mlir::body(module_op(module), 0).expect("a module has a body");
    for op in mlir::ops(body) {
        if mlir::is(op, "transform.named_sequence") {
            mlir::erase(op);
        }
    }
}

fn count_loops(function: Op) -> usize {
    let mut count = 0;
    mlir::walk(function, &mut |op| {
        count += usize::from(mlir::is(op, "scf.for") || mlir::is(op, "scf.forall"));
    });
    count
}

/// Checks all functions of a module, and returns how many there are.
fn check(source: &str, threads: usize) -> usize {
    let context = tc_dialects::new_context();
    let (_, received) = diagnostic::collect(&context);
    let messages = || {
        let received = received.borrow();
        received.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let parse = || Module::parse(&context, source).unwrap_or_else(|| panic!("{}", messages()));
    let (untiled, mut tiled) = (parse(), parse());
    tile(&mut tiled);
    for (name, function) in functions(&tiled) {
        assert!(0 < count_loops(function), "{name} is not tiled");
    }
    let options = cpu::Options { threads, ..cpu::Options::default() };
    let program = cpu::Program::lower(&tiled, &options);
    let program = program.unwrap_or_else(|error| panic!("{error}: {}", messages()));
    let compiled = program.jit().unwrap_or_else(|error| panic!("{error}"));
    let mut random = Random::new(threads as u64);
    let functions = functions(&untiled);
    for (name, function) in &functions {
        for extents in dynamic_extents(name) {
            let inputs = arguments(*function, extents, &mut random);
            let expected = Interpreter::new(*function)
                .and_then(|interpreter| interpreter.run(&inputs, Limits::default()))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let code = compiled.function(name).unwrap_or_else(|| panic!("no function {name}"));
            let found = code.run(&inputs.iter().collect::<Vec<_>>());
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(expected.len(), found.len(), "{name}");
            for (expected, found) in expected.iter().zip(&found) {
                interp::compare(expected, found)
                    .unwrap_or_else(|error| panic!("{name}, {extents:?}: {error}"));
            }
        }
    }
    functions.len()
}

#[test]
fn tiled_functions_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert!(15 < check(include_str!("../../../tests/lit/imap/tile.mlir"), threads));
    }
}

#[test]
fn reductions_in_parts_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert!(4 < check(include_str!("../../../tests/lit/imap/tile-reduction.mlir"), threads));
    }
}
