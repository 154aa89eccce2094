//! Random programs of `imap`: every pass of the CPU pipeline, and fusion, keeps what the
//! interpreter computes.
//!
//! `TC_RANDOM_PROGRAMS` sets the number of programs, `TC_RANDOM_SEED` the first seed.

#[path = "../support/device.rs"]
mod device;
mod generator;
#[path = "../support/passes.rs"]
mod passes;
mod program;
#[path = "../support/random.rs"]
mod random;
mod rescale;
#[path = "../support/schedules.rs"]
mod schedules;
mod shrink;
mod sort;
mod tiling;

use generator::{FEATURES, features, generate};
use melior::ir::{Module, operation::OperationLike};
use passes::{Stats, check_passes};
use program::Program;
use random::Random;
use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
};
use tc_backends::{Codegen, cpu, interp::compare, nvvm::emulator, runtime::Tensor};
use tc_dialects::{
    imap::{AnyIndexed, Generic, Indexed, schedule::variable_names},
    mlir::{self, Builder},
    report,
};
use tc_ir::Context;
use tc_passes::run_pipeline;

/// One program in so many is compiled, too.
const COMPILED: u64 = 15;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Passes that change some program, besides fusion.
const CHANGING: &[&str] = &[
    "bufferize-chains",
    "canonicalize",
    "convert-imap-to-arith",
    "convert-imap-to-scf",
    "convert-results-to-destinations",
    "copy-shared-destinations",
    "cse",
    "deallocate-local-buffers",
    "drop-argument-attributes",
    "eliminate-empty-tensors",
    "imap-assign-buffers",
    "imap-schedule-loops",
    "imap-vectorize",
    "limit-vectorization",
    "one-shot-bufferize",
    "outline-parallel-loops",
    "ownership-based-buffer-deallocation",
    "unshare-empty-tensors",
    "update-in-place",
];

fn num_generics(module: &Module) -> usize {
    let mut count = 0;
    let count_in = &mut |op| count += usize::from(mlir::is(op, "imap.generic"));
    mlir::walk(mlir::op_ref(module.as_operation()), count_in);
    count
}

/// The pipeline that tiles the dimensions of these numbers and sizes, if any operation has one of them.
fn tile_of(module: &Module, sizes: &[(u64, u64)]) -> Option<String> {
    let (ir, mut names) = (Context::new(), BTreeSet::new());
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        names.extend(AnyIndexed::cast(op).map(|it| variable_names(&it.domain(&ir))));
    });
    let is_known = |name: &String| names.iter().any(|known| known.contains(name));
    let named = sizes.iter().map(|(dim, size)| (format!("d{dim}"), size));
    let sizes =
        named.filter(|(name, _)| is_known(name)).map(|(name, size)| format!("{name}={size}"));
    let sizes: Vec<_> = sizes.collect();
    let tile = format!("imap-schedule{{tile={}}},func.func(imap-tile)", sizes.join(","));
    (!sizes.is_empty()).then_some(tile)
}

fn num_with_several_results(module: &Module) -> usize {
    let mut count = 0;
    let count_in =
        &mut |op| count += usize::from(mlir::is(op, "imap.generic") && mlir::results(op).len() > 1);
    mlir::walk(mlir::op_ref(module.as_operation()), count_in);
    count
}

/// The largest number of range variables of an operation. Two folds that become one add theirs.
fn most_ranges(module: &Module) -> usize {
    let mut most = 0;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        let ranges = Generic::cast(op).map(|it| it.frozen_domain().counts().1);
        most = most.max(ranges.unwrap_or(0));
    });
    most
}

/// Checks a program, fused or not.
fn check(program: &Program, seed: u64) -> Result<Stats, String> {
    let result = catch_unwind(AssertUnwindSafe(|| check_program(program, seed)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn check_program(program: &Program, seed: u64) -> Result<Stats, String> {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let said = |error: String| {
        let messages: Vec<_> = received.borrow().iter().map(|it| it.message.clone()).collect();
        format!("{error}\n{}", messages.join("\n"))
    };
    let mut module = program.build(&context);
    if !module.as_operation().verify() {
        return Err(said("the program is not valid".to_string()));
    }
    let inputs = program.inputs();
    let threads = if seed % 5 == 4 { 2 } else { 1 };
    let options = Codegen { threads, ..Codegen::default() };
    let mut stats = Stats::default();
    if !seed.is_multiple_of(3) {
        let first = passes::interpret(&module, "f", &inputs).map_err(|error| error.to_string())?;
        let text = module.as_operation().to_string();
        let (before, several) = (num_generics(&module), num_with_several_results(&module));
        let ranges = most_ranges(&module);
        run_pipeline(&mut module, "canonicalize,cse,imap-fuse,canonicalize,cse")
            .map_err(|error| said(error.to_string()))?;
        if num_generics(&module) < before {
            stats.changes.insert("imap-fuse".to_string(), 1);
        }
        if several < num_with_several_results(&module) {
            stats.changes.insert("merged".to_string(), 1);
        }
        if ranges < most_ranges(&module) {
            stats.changes.insert("fold of a fold".to_string(), 1);
        }
        let fused = passes::interpret(&module, "f", &inputs);
        let fused = fused.map_err(|error| format!("fused: {error}\n{text}"))?;
        let after = module.as_operation();
        passes::agree(&first, &fused, &mut stats)
            .map_err(|error| format!("fused: {error}\n{text}\nafter:\n{after}"))?;
        let tile = format!(
            "imap-schedule{{min-bytes=0 {} set-bytes=1 min-columns=1 min-points={} min-row=1 min-rows={} \
             parallel={} parallel-threshold=0}},func.func(imap-tile)",
            // Few bytes, so that products are cut, or many, so that groups are large.
            ["shared-bytes=1 tile-bytes=64", "shared-bytes=1000000"][usize::from(seed % 4 < 2)],
            seed % 7,
            1 + seed % 3,
            seed.is_multiple_of(2)
        );
        let pack = "func.func(imap-pack{vector-bits=128 min-reuse=1 cache-bytes=1})";
        let sizes = [(2 * (seed % 2), 1 + seed % 4), (1, 1 + seed % 5)];
        // Some dimensions of scans and scatters cannot be tiled.
        let has_order =
            program.operations.iter().any(|it| it.scan.is_some() || it.scatter.is_some());
        let by_limits = seed % 3 == 1 || has_order;
        for step in 0..3 {
            let pass = match step {
                0 => "func.func(imap-split-variables)".to_string(),
                1 => pack.to_string(),
                _ if by_limits => tile.clone(),
                // The passes before have changed the variables.
                _ => tile_of(&module, &sizes).unwrap_or_else(|| tile.clone()),
            };
            let text = module.as_operation().to_string();
            let name = pass.trim_start_matches("func.func(").trim_end_matches(')');
            let name = name.split(['{', ',']).next().unwrap_or_default();
            run_pipeline(&mut module, &format!("{pass},canonicalize,cse"))
                .map_err(|error| said(format!("{name}: {error}\n{text}")))?;
            let after = module.as_operation().to_string();
            if after != text {
                stats.changes.insert(name.to_string(), 1);
                let changed = passes::interpret(&module, "f", &inputs);
                let changed =
                    changed.map_err(|error| format!("{name}: {error}\n{text}\nafter:\n{after}"))?;
                passes::agree(&first, &changed, &mut stats)
                    .map_err(|error| format!("{name}: {error}\n{text}\nafter:\n{after}"))?;
            }
        }
    }
    if seed % 5 == 2 {
        let mut random = Random::new(seed);
        let steps = schedules::schedule(&module, &options, usize::MAX, &mut random)?;
        stats.changes.insert("steps of loops".to_string(), steps);
    }
    if seed % 4 == 3 && call_twice(&module) {
        stats.changes.insert("call".to_string(), 1);
    }
    let (expected, checked) = check_passes(&module, "f", &inputs, &options).map_err(said)?;
    stats.add(&checked);
    if seed.is_multiple_of(COMPILED) {
        let compiled = cpu::BACKEND.compile(&module, &Codegen { threads: 1, ..options });
        let compiled = compiled.map_err(|error| said(error.to_string()))?;
        let compiled = compiled.load().map_err(|error| error.to_string())?;
        let function = compiled.function("f").expect("the function of the module");
        // The extents of results need not follow from those of arguments.
        let mut found = Vec::new();
        for outcome in &expected {
            let zeros = Tensor::zeros(outcome.element(), outcome.shape());
            found.push(zeros.map_err(|error| error.to_string())?);
        }
        function
            .call(&inputs.iter().collect::<Vec<_>>(), &mut found)
            .map_err(|error| format!("compiled: {error}"))?;
        for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
            compare(expected, found)
                .map_err(|error| format!("compiled: result {number} {error}"))?;
        }
    }
    Ok(stats)
}

/// Makes a private function of a program, and an entry that calls it twice. Returns whether calls can give its results.
fn call_twice(module: &Module) -> bool {
    let block = mlir::block_ref(module.body());
    let mut functions = mlir::ops(block).into_iter();
    let function = functions.find(|op| mlir::string_attr(*op, "sym_name") == Some("f"));
    let function = function.expect("the function of the program");
    let (inputs, results) = mlir::function_type(function).expect("a function has a type");
    if !results.iter().all(|ty| mlir::shape(*ty).iter().all(Option::is_some)) {
        return false;
    }
    let context = mlir::context_of(function);
    let (region, body) = mlir::region_with_block(&inputs, function.location());
    let inside = Builder::at_end(context, body, function.location());
    let callee = ("callee", mlir::symbol(context, "g"));
    let call = || inside.op_with("func.call", &mlir::arguments(body), &results, &[callee], vec![]);
    let [_, second] = [call(), call()];
    inside.op("func.return", &mlir::results(second), &[]);
    let names = ["sym_name", "function_type", "arg_attrs", "res_attrs"];
    let attributes =
        names.into_iter().filter_map(|name| Some((name, function.attribute(name).ok()?)));
    let attributes: Vec<_> = attributes.collect();
    Builder::at_end(context, block, function.location()).op_with(
        "func.func",
        &[],
        &[],
        &attributes,
        vec![region],
    );
    mlir::set_attribute(function, "sym_name", mlir::string(context, "g"));
    mlir::set_attribute(function, "sym_visibility", mlir::string(context, "private"));
    true
}

/// What a failure is called: its first line without numbers, so that shrinking keeps to one mistake.
fn kind(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    line.split(": ").next().unwrap_or_default().to_string()
}

#[test]
fn passes_keep_the_meaning_of_random_programs() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 300);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let mut all = Stats::default();
    let mut coverage: BTreeMap<&str, usize> =
        FEATURES.iter().map(|feature| (*feature, 0)).collect();
    for seed in first..first + count {
        let program = generate(seed);
        for feature in features(&program) {
            *coverage.get_mut(feature).expect("it is in the list") += 1;
        }
        match check(&program, seed) {
            Ok(stats) => all.add(&stats),
            Err(error) => {
                let kind = kind(&error);
                let fails = |it: &Program| check(it, seed).is_err_and(|it| self::kind(&it) == kind);
                let small = shrink::shrink(&program, 300, fails);
                let error = check(&small, seed).err().unwrap_or(error);
                panic!("seed {seed}: {error}\n{small:?}");
            }
        }
    }
    println!("{all:?}\n{coverage:?}");
    if count >= 300 {
        let missing: Vec<_> = coverage.iter().filter(|(_, count)| **count == 0).collect();
        assert!(missing.is_empty(), "no program has {missing:?}");
        let own = [
            "imap-fuse",
            "imap-split-variables",
            "imap-pack",
            "imap-tile",
            "imap-outline",
            "merged",
            "fold of a fold",
            "call",
            "steps of loops",
        ];
        for pass in CHANGING.iter().chain(&own).chain(&["lift-scratch"]) {
            let mut changes = all.changes.iter();
            let changed = changes.any(|(name, count)| name.contains(pass) && 0 < *count);
            assert!(changed, "'{pass}' changes no program: {all:?}");
        }
        let certain = all.elements - all.uncertain;
        assert!(certain > 100 * count as usize, "{all:?}");
    }
}

/// Checks a program on the GPU target.
fn check_device(program: &Program) -> Result<device::Run, String> {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let module = program.build(&context);
    // Programs read elements that nothing wrote, where the result does not depend on them.
    let options = emulator::Options { check_initialised: false, ..emulator::Options::default() };
    device::compare_program(&module, "f", &[&program.inputs()], &options).map_err(|error| {
        let received = received.borrow();
        let messages: Vec<_> = received.iter().map(|it| it.message.clone()).collect();
        format!("device: {error}\n{}", messages.join("\n"))
    })
}

#[test]
fn random_programs_agree_on_the_gpu_target() {
    let count = from_environment("TC_RANDOM_PROGRAMS", 50);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let (mut elements, mut launches) = (0, 0);
    for seed in first..first + count {
        let program = generate(seed);
        match check_device(&program) {
            Ok(run) => {
                elements += run.elements;
                launches += run.launches.max(run.kernels);
            }
            Err(error) => {
                let kind = kind(&error);
                let fails =
                    |it: &Program| check_device(it).is_err_and(|it| self::kind(&it) == kind);
                let small = shrink::shrink(&program, 100, fails);
                let error = check_device(&small).err().unwrap_or(error);
                panic!("seed {seed}: {error}\n{small:?}");
            }
        }
    }
    println!("{count} programs, {launches} launches, {elements} elements");
    assert!(elements as u64 > 20 * count, "{elements}");
}

/// What is left of a program is a program, which the interpreter can run.
#[test]
fn smaller_programs_are_valid() {
    let mut count = 0;
    for seed in 0..12 {
        for smaller in shrink::candidates(&generate(seed)) {
            let context = tc_dialects::new_context();
            let module = smaller.build(&context);
            assert!(module.as_operation().verify(), "seed {seed}: {smaller:?}");
            let outcomes = passes::interpret(&module, "f", &smaller.inputs());
            assert!(outcomes.is_ok(), "seed {seed}: {}\n{smaller:?}", outcomes.unwrap_err());
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn shrinking_leaves_the_reason() {
    let has_table = |it: &Program| features(it).contains(&"a chain of tables");
    let program = (0..).map(generate).find(|it| has_table(it) && it.operations.len() > 3);
    let program = program.expect("one in a few has it");
    let small = shrink::shrink(&program, 1000, has_table);
    assert_eq!(small.operations.len(), 1);
    assert!(small.operations[0].outputs.iter().all(|it| it.body.is_empty()), "{small:?}");
    assert!(check(&small, 1).is_ok());
}
