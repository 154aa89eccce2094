//! Functions that the transform dialect tiles: interpreted and compiled, they agree with the
//! interpreter on the untiled functions.
//!
//! The functions and their schedules are those of the FileCheck tests.

use crate::random::Random;
use melior::ir::Module;
use tc_backends::{
    Codegen, cpu,
    interp::{self, Interpreter, Limits, Outcome},
    runtime::Tensor,
};
use tc_dialects::{
    mlir::{self, Op},
    report,
};
use tc_passes::run_pipeline;

/// Extents for the dynamic dimensions of all arguments of a function, in order.
fn dynamic_extents(function: &str) -> &'static [&'static [usize]] {
    match function {
        "matmul_dynamic" => &[&[37, 19, 19, 45], &[16, 1, 1, 20], &[1, 3, 3, 1], &[17, 0, 0, 21]],
        "dynamic_destination" => &[&[10], &[4], &[1], &[0]],
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

/// The untiled and the tiled functions of a module, for the interpreter.
struct Functions<'c> {
    untiled: Module<'c>,
    tiled: Module<'c>,
}

impl<'c> Functions<'c> {
    fn new(parse: &dyn Fn() -> Module<'c>) -> Self {
        let (untiled, mut tiled) = (parse(), parse());
        tile(&mut tiled);
        // The interpreter does not know the affine dialect.
        run_pipeline(&mut tiled, "lower-affine").expect("affine operations are lowered");
        Self { untiled, tiled }
    }

    /// Interprets all functions on random inputs, and compares the tiled ones with the untiled ones. Calls
    /// `check` with the name, the inputs and the results of each. Returns the number of functions.
    fn compare(
        &self,
        random: &mut Random,
        mut check: impl FnMut(&str, &[Tensor], &[Outcome]),
    ) -> usize {
        let functions = functions(&self.untiled);
        for ((name, untiled), (_, tiled)) in functions.iter().zip(self::functions(&self.tiled)) {
            for extents in dynamic_extents(name) {
                let inputs = arguments(*untiled, extents, random);
                let run = |function| {
                    Interpreter::new(function)
                        .and_then(|interpreter| interpreter.run(&inputs, Limits::default()))
                        .unwrap_or_else(|error| panic!("{name}: {error}"))
                };
                let expected = run(*untiled);
                for (expected, found) in expected.iter().zip(&run(tiled)) {
                    let found = found.to_tensor().expect("all elements are defined");
                    interp::compare(expected, &found)
                        .unwrap_or_else(|error| panic!("{name}, {extents:?}: {error}"));
                }
                check(name, &inputs, &expected);
            }
        }
        functions.len()
    }
}

/// Checks all functions of a module, and returns how many there are.
fn check(source: &str, threads: usize) -> usize {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let messages = || {
        let received = received.borrow();
        received.iter().map(|it| it.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let parse = || Module::parse(&context, source).unwrap_or_else(|| panic!("{}", messages()));
    let interpreted = Functions::new(&parse);
    for (name, function) in functions(&interpreted.tiled) {
        assert!(0 < count_loops(function), "{name} is not tiled");
    }
    let mut tiled = parse();
    tile(&mut tiled);
    let options = Codegen { threads, ..Codegen::default() };
    let program = cpu::BACKEND.compile(&tiled, &options);
    let program = program.unwrap_or_else(|error| panic!("{error}: {}", messages()));
    let compiled = program.load().unwrap_or_else(|error| panic!("{error}"));
    interpreted.compare(&mut Random::new(threads as u64), |name, inputs, expected| {
        let code = compiled.function(name).unwrap_or_else(|| panic!("no function {name}"));
        let found = code.run(&inputs.iter().collect::<Vec<_>>());
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(expected.len(), found.len(), "{name}");
        for (expected, found) in expected.iter().zip(&found) {
            interp::compare(expected, found)
                .unwrap_or_else(|error| panic!("{name}, compiled: {error}"));
        }
    })
}

/// A schedule with other tile sizes; 0 stays 0.
fn with_random_sizes(source: &str, random: &mut Random) -> String {
    let mut result = String::new();
    for line in source.split_inclusive('\n') {
        let sizes = line.split_once("tile_sizes").and_then(|(before, after)| {
            let (open, rest) = after.split_once('[')?;
            let (sizes, rest) = rest.split_once(']')?;
            Some((before, open, sizes, rest))
        });
        let Some((before, open, sizes, rest)) = sizes else {
            result.push_str(line);
            continue;
        };
        let size = |size: &str| match size.trim() {
            "0" => "0".to_string(),
            _ => random.between(1, 24).to_string(),
        };
        let sizes = sizes.split(',').map(size).collect::<Vec<_>>().join(", ");
        result.push_str(&format!("{before}tile_sizes{open}[{sizes}]{rest}"));
    }
    result
}

const TILES: &str = include_str!("../../../../tests/lit/imap/tile.mlir");
const REDUCTIONS: &str = include_str!("../../../../tests/lit/imap/tile-reduction.mlir");
const GUARDS: &str = include_str!("../../../../tests/lit/imap/tile-guards.mlir");
const SIBLINGS: &str = include_str!("../../../../tests/lit/imap/tile-siblings.mlir");

#[test]
fn tiled_functions_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert!(15 < check(TILES, threads));
    }
}

#[test]
fn reductions_in_parts_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert!(4 < check(REDUCTIONS, threads));
    }
}

#[test]
fn guarded_tiles_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert_eq!(check(GUARDS, threads), 5);
    }
}

#[test]
fn tiles_of_scans_scatters_and_sorts_agree_with_the_interpreter() {
    for threads in [1, 2] {
        assert_eq!(check(SIBLINGS, threads), 7);
    }
}

#[test]
fn tile_sizes_do_not_change_values() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        for source in [TILES, REDUCTIONS, GUARDS, SIBLINGS] {
            let source = with_random_sizes(source, &mut random);
            let context = tc_dialects::new_context();
            let (_, received) = report::collect(&context);
            let parse = || Module::parse(&context, &source).expect("other sizes parse");
            Functions::new(&parse).compare(&mut random, |_, _, _| {});
            let received = received.borrow();
            let errors: Vec<_> = received.iter().filter(|it| it.is_error()).collect();
            assert!(errors.is_empty(), "seed {seed}: {}", errors[0].message);
        }
    }
}
