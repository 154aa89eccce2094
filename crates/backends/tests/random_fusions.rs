//! Random chains of `imap.generic` mean the same before and after `imap-fuse`.
//!
//! The interpreter runs both; some chains are compiled too. Elements are integers, so that all
//! comparisons are exact. `TC_RANDOM_FUSIONS` sets the number of chains, `TC_RANDOM_SEED` the
//! first seed.

#[path = "support/random.rs"]
mod random;

use melior::ir::Module;
use random::Random;
use std::fmt::Write;
use tc_backends::{
    Codegen, cpu,
    interp::{self, Interpreter, Limits, Outcome},
    runtime::Tensor,
};
use tc_dialects::{mlir, report};
use tc_passes::run_pipeline;

/// One chain in so many is compiled.
const COMPILED: u64 = 12;

/// A tensor of the chain: its name and its extents.
#[derive(Clone)]
struct Value {
    name: String,
    shape: Vec<i64>,
}

impl Value {
    fn ty(&self) -> String {
        let extents: String = self.shape.iter().map(|extent| format!("{extent}x")).collect();
        format!("tensor<{extents}i32>")
    }
}

/// A variable of a domain: its name and its bounds, as they are written and as numbers.
#[derive(Clone)]
struct Variable {
    name: String,
    bounds: [String; 2],
    lo: i64,
    hi: i64,
}

impl Variable {
    fn new(name: String, lo: i64, hi: i64) -> Self {
        Self { name, bounds: [lo.to_string(), hi.to_string()], lo, hi }
    }
}

struct Generator {
    random: Random,
    arguments: Vec<(Value, Vec<i32>)>,
    body: String,
    results: Vec<Value>,
}

impl Generator {
    /// An argument whose elements lie in an interval.
    fn argument(&mut self, shape: &[i64], lo: i64, hi: i64) -> Value {
        let count = shape.iter().product::<i64>();
        let values = (0..count).map(|_| self.random.between(lo, hi) as i32).collect();
        let value = Value { name: format!("%a{}", self.arguments.len()), shape: shape.to_vec() };
        self.arguments.push((value.clone(), values));
        value
    }

    /// Something to read: the last result, most of the time.
    fn source(&mut self) -> Value {
        match self.results.last() {
            Some(last) if self.random.chance(80) => last.clone(),
            Some(_) if self.random.chance(50) => {
                let number = self.random.below(self.results.len());
                self.results[number].clone()
            }
            _ => {
                let rank = self.random.between(1, 2);
                let shape: Vec<_> = (0..rank).map(|_| *self.random.pick(&[1, 3, 6])).collect();
                self.argument(&shape, -9, 9)
            }
        }
    }

    /// A subscript into a dimension of this extent, of variable number `preferred` if possible.
    /// `guarded` is inside where constraints hold.
    fn subscript(
        &mut self,
        extent: i64,
        preferred: usize,
        variables: &[Variable],
        guarded: &Option<(String, i64)>,
    ) -> String {
        if let Some((expr, members)) = guarded
            && *members <= extent
            && self.random.chance(60)
        {
            return expr.clone();
        }
        for attempt in 0..4 {
            let variable = match variables.get(preferred) {
                Some(variable) if attempt < 2 => variable,
                _ => self.random.pick(variables),
            };
            let (name, lo, hi) = (&variable.name, variable.lo, variable.hi);
            let shift = self.random.between(0, 1) - lo;
            let candidates = [
                (format!("{name} + {shift}"), lo + shift, hi + shift),
                (format!("{hi} - {name}"), 0, hi - lo),
                (format!("({name} + {shift}) floordiv 2"), 0, (hi + shift) / 2),
                (format!("({name} + {shift}) * 2"), 0, (hi + shift) * 2),
            ];
            let (text, lo, hi) = &candidates[self.random.weighted(&[6, 1, 1, 1])];
            if 0 <= *lo && *hi < extent {
                return text.clone();
            }
        }
        self.random.below(extent as usize).to_string()
    }

    /// Adds an operation; `is_last` writes all of its result.
    fn operation(&mut self, is_last: bool) {
        let rank = self.random.between(1, 2);
        let mut dims = Vec::new();
        for number in 0..rank {
            let lo = self.random.between(0, 1);
            let extent = *self.random.pick(&[1, 3, 4]);
            dims.push(Variable::new(format!("d{number}"), lo, lo + extent - 1));
        }
        let is_fold = self.random.chance(30);
        let mut ranges = Vec::new();
        if is_fold && self.random.chance(70) {
            ranges.push(Variable::new("s0".into(), 0, self.random.between(0, 3)));
        }
        // Runtime variables: a size, one bounded by it, and one that differs between points.
        let mut runtimes: Vec<(Variable, Value, String)> = Vec::new();
        let mut shift = None;
        if self.random.chance(40) {
            let value = self.random.between(1, 2);
            let argument = self.argument(&[], value, value);
            runtimes.push((Variable::new("n".into(), 0, 2), argument, String::new()));
            if self.random.chance(60) {
                shift = Some("n");
            }
            if self.random.chance(50) {
                let argument = self.argument(&[], 0, value - 1);
                let mut variable = Variable::new("m".into(), 0, 1);
                variable.bounds[1] = "n - 1".into();
                runtimes.push((variable, argument, String::new()));
            }
        }
        if self.random.chance(25) {
            let dim = self.random.pick(&dims).clone();
            let argument = self.argument(&[dim.hi + 1], 0, 2);
            let at = self.random.below(runtimes.len() + 1);
            let variable = Variable::new("q".into(), 0, 2);
            runtimes.insert(at, (variable, argument, dim.name));
        }
        if let [.., (bounded, ..), (size, ..)] = &runtimes[..]
            && (bounded.name.as_str(), size.name.as_str()) == ("m", "n")
        {
            runtimes.reverse();
        }
        let points = [&dims[..], &ranges[..]].concat();
        let all: Vec<_> =
            points.iter().cloned().chain(runtimes.iter().map(|it| it.0.clone())).collect();
        let mut constraint = String::new();
        let mut guarded = None;
        if self.random.chance(if is_last { 20 } else { 6 }) {
            let of = self.random.pick(&points).clone();
            let lo = of.lo + self.random.between(0, (of.hi - of.lo).min(1));
            let expr = format!("{} * 2 + 1", of.name);
            constraint = format!(", {expr} in [{}, {}]", 2 * lo, 2 * of.hi + 1);
            guarded = Some((format!("{} - {lo}", of.name), of.hi - lo + 1));
        }

        // The destination: dimensions in any order, shifted, and further ones of which one
        // element is written. Dimensions of one value may be left out.
        let mut order: Vec<Variable> = dims.clone();
        if self.random.chance(30) {
            order.reverse();
        }
        order.retain(|dim| dim.lo != dim.hi || self.random.chance(50));
        let is_partial = !is_last && self.random.chance(25);
        let mut shape = Vec::new();
        let mut subscripts = Vec::new();
        for dim in &order {
            let more = if is_partial { self.random.between(0, 2) } else { 0 };
            let by = shift.filter(|_| self.random.chance(50));
            let name = &dim.name;
            shape.push(dim.hi - dim.lo + 1 + more + if by.is_some() { 2 } else { 0 });
            let first = if self.random.chance(50) { more } else { 0 } - dim.lo;
            subscripts.push(match by {
                Some(by) => format!("{name} + {by} + {first}"),
                None => format!("{name} + {first}"),
            });
        }
        if order.is_empty() || self.random.chance(30) {
            let extent = if is_partial { 2 } else { 1 };
            let at = self.random.below(shape.len() + 1);
            shape.insert(at, extent);
            subscripts.insert(at, self.random.below(extent as usize).to_string());
        }
        let result = Value { name: format!("%r{}", self.results.len()), shape };
        let init = if self.random.chance(if is_partial || !constraint.is_empty() { 50 } else { 15 })
        {
            self.argument(&result.shape, -9, 9).name
        } else {
            let name = format!("%e{}", self.results.len());
            let _ = writeln!(self.body, "  {name} = tensor.empty() : {}", result.ty());
            name
        };

        let mut inputs = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            let source = self.source();
            let shape = source.shape.iter().enumerate();
            let index: Vec<_> = shape
                .map(|(number, extent)| self.subscript(*extent, number, &all, &guarded))
                .collect();
            inputs.push((source, index.join(", ")));
        }
        let accumulator = match is_fold {
            false => "",
            true => self.random.pick(&["add i32", "maxs i32", "add i32 from outs 0"]),
        };
        self.write(&Parts {
            result: &result,
            init: &init,
            dims: &dims,
            ranges: &ranges,
            runtimes: &runtimes,
            constraint: &constraint,
            inputs: &inputs,
            subscripts: &subscripts.join(", "),
            accumulator,
        });
        self.results.push(result);
    }

    fn write(&mut self, parts: &Parts) {
        let list = |items: Vec<String>| items.join(", ");
        let names =
            |variables: &[Variable]| list(variables.iter().map(|it| it.name.clone()).collect());
        let ranges = match parts.ranges {
            [] => String::new(),
            ranges => format!("[{}]", names(ranges)),
        };
        let runtimes: Vec<_> = parts.runtimes.iter().map(|it| it.0.clone()).collect();
        let braces = match &runtimes[..] {
            [] => String::new(),
            runtimes => format!("{{{}}}", names(runtimes)),
        };
        let space = format!("({}){ranges}{braces}", names(parts.dims));
        let bounds = [parts.dims, parts.ranges, &runtimes].concat();
        let bounds = list(
            bounds
                .iter()
                .map(|it| format!("{} in [{}, {}]", it.name, it.bounds[0], it.bounds[1]))
                .collect(),
        );
        let operands = |keyword: &str, accesses: Vec<(&Value, &str)>| {
            let access =
                |(value, index): (&Value, &str)| (format!("{}[{index}]", value.name), value.ty());
            let (accesses, types): (Vec<_>, Vec<_>) = accesses.into_iter().map(access).unzip();
            match types.is_empty() {
                true => String::new(),
                false => format!("{keyword}({} : {})", list(accesses), list(types)),
            }
        };
        let arguments: Vec<_> = (0..parts.inputs.len()).map(|it| format!("%v{it}: i32")).collect();
        let mut body = format!("  ^bb0({}):\n", arguments.join(", "));
        if self.random.chance(30) {
            let dim = self.random.below(parts.dims.len());
            body += &format!(
                "    %d = imap.index dim {dim}\n    %t0 = arith.index_cast %d : index to i32\n"
            );
        } else {
            body += "    %t0 = arith.constant 3 : i32\n";
        }
        let num_inputs = parts.inputs.len();
        for number in 0..num_inputs {
            let op = self.random.pick(&["addi", "subi", "muli"]);
            body += &format!("    %t{} = arith.{op} %t{number}, %v{number} : i32\n", number + 1);
        }
        body += &format!("    imap.yield %t{num_inputs} : i32\n");
        let mut epilogue = String::new();
        if !parts.accumulator.is_empty() && self.random.chance(30) {
            let arguments: Vec<_> =
                (0..num_inputs).map(|it| format!(", %w{it}: i32")).collect::<Vec<_>>();
            epilogue = format!(" epilogue {{\n  ^bb0(%f: i32{}):\n", arguments.concat());
            let in_epilogue = parts.inputs[0].1.contains("s0")
                || parts.runtimes.iter().any(|(_, _, index)| index.contains("s0"))
                || !parts.constraint.is_empty();
            let other = if in_epilogue { "%f" } else { "%w0" };
            epilogue +=
                &format!("    %g = arith.subi %f, {other} : i32\n    imap.yield %g : i32\n  }}");
        }
        let fold = match parts.accumulator {
            "" => String::new(),
            accumulator => format!(" fold [{accumulator}]"),
        };
        let _ = writeln!(
            self.body,
            "  {} = imap.generic {space} domain: {bounds}{} {} {} outs({}[{}] : {}){fold} \
             {{\n{body}  }}{epilogue} -> {}",
            parts.result.name,
            parts.constraint,
            operands("runtime", parts.runtimes.iter().map(|it| (&it.1, it.2.as_str())).collect()),
            operands("ins", parts.inputs.iter().map(|it| (&it.0, it.1.as_str())).collect()),
            parts.init,
            parts.subscripts,
            parts.result.ty(),
            parts.result.ty(),
        );
    }
}

struct Parts<'a> {
    result: &'a Value,
    init: &'a str,
    dims: &'a [Variable],
    ranges: &'a [Variable],
    /// Each with its tensor and the place in it.
    runtimes: &'a [(Variable, Value, String)],
    constraint: &'a str,
    inputs: &'a [(Value, String)],
    subscripts: &'a str,
    /// Empty in map form.
    accumulator: &'a str,
}

/// A module with one function, and its inputs.
fn generate(seed: u64) -> (String, Vec<Tensor>) {
    let mut it = Generator {
        random: Random::new(seed),
        arguments: Vec::new(),
        body: String::new(),
        results: Vec::new(),
    };
    let count = it.random.between(2, 4);
    for number in 0..count {
        it.operation(number + 1 == count);
    }
    let last = it.results.last().expect("there are at least two").clone();
    let arguments: Vec<_> =
        it.arguments.iter().map(|(value, _)| format!("{}: {}", value.name, value.ty())).collect();
    let text = format!(
        "func.func @f({}) -> {} {{\n{}  return {} : {}\n}}\n",
        arguments.join(", "),
        last.ty(),
        it.body,
        last.name,
        last.ty()
    );
    let inputs = it.arguments.iter().map(|(value, values)| {
        let shape: Vec<_> = value.shape.iter().map(|extent| *extent as usize).collect();
        Tensor::from_values(&shape, values).expect("as many values as the shape has")
    });
    (text, inputs.collect())
}

fn interpret(module: &Module, inputs: &[Tensor]) -> Result<Outcome, interp::Error> {
    let body = mlir::body(mlir::op_ref(module.as_operation()), 0).expect("a module has a body");
    let interpreter = Interpreter::new(mlir::ops(body)[0])?.allow_undefined_results();
    let mut outcomes = interpreter.run(inputs, Limits::default())?;
    Ok(outcomes.remove(0))
}

fn num_generics(module: &Module) -> usize {
    let mut count = 0;
    let count_in = &mut |op| count += usize::from(mlir::is(op, "imap.generic"));
    mlir::walk(mlir::op_ref(module.as_operation()), count_in);
    count
}

/// Checks a chain. Returns how many operations it has before and after fusion.
fn check(text: &str, inputs: &[Tensor], compiled: bool) -> Result<(usize, usize), String> {
    let context = tc_dialects::new_context();
    let (_, received) = report::collect(&context);
    let said = |what: String| {
        let messages: Vec<_> = received.borrow().iter().map(|it| it.message.clone()).collect();
        format!("{what}: {}", messages.join("; "))
    };
    let parse = || Module::parse(&context, text).ok_or_else(|| said("not parsed".to_string()));
    let mut module = parse()?;
    let expected = interpret(&module, inputs).map_err(|error| format!("unfused: {error}"))?;
    let before = num_generics(&module);
    run_pipeline(&mut module, "canonicalize,cse,imap-fuse")
        .map_err(|error| said(error.to_string()))?;
    let after = num_generics(&module);
    let fused = || module.as_operation().to_string();
    let found =
        interpret(&module, inputs).map_err(|error| format!("fused: {error}\n{}", fused()))?;
    for element in (0..expected.num_elements()).filter(|it| !expected.is_uncertain(*it)) {
        if found.is_uncertain(element) || found.number(element) != expected.number(element) {
            let index = expected.index_of(element);
            return Err(format!("fused: another value at {index:?}\n{}", fused()));
        }
    }
    if compiled {
        for (what, module) in [("unfused", parse()?), ("fused", module)] {
            let program = cpu::BACKEND.compile(&module, &Codegen::default());
            let program = program.map_err(|error| said(format!("{what}: {error}")))?;
            let compiled = program.load().map_err(|error| format!("{what}: {error}"))?;
            let function = compiled.function("f").ok_or("no function")?;
            let inputs: Vec<_> = inputs.iter().collect();
            let found = function.run(&inputs).map_err(|error| format!("{what}: {error}"))?;
            interp::compare(&expected, &found[0])
                .map_err(|error| format!("{what}, compiled: {error}"))?;
        }
    }
    Ok((before, after))
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn fused_chains_agree_with_the_interpreter() {
    let count = from_environment("TC_RANDOM_FUSIONS", 600);
    let first = from_environment("TC_RANDOM_SEED", 0);
    let (mut all, mut left) = (0, 0);
    for seed in first..first + count {
        let (text, inputs) = generate(seed);
        match check(&text, &inputs, seed % COMPILED == 0) {
            Ok((before, after)) => (all, left) = (all + before, left + after),
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        }
    }
    println!("{count} chains of {all} operations, {left} after fusion");
    assert!(
        count < 100 || left * 20 < all * 17,
        "only {} of {all} operations are fused",
        all - left
    );
}
