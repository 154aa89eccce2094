//! Random folds, products, scans, scatters and sorts as kernels: what the emulator computes is what the interpreter computes.
//!
//! `TC_RANDOM_PROGRAMS` sets the number of kernels, `TC_RANDOM_SEED` the first seed.

use melior::ir::Module;
use std::fmt::Write;
use tc_backends::{
    Codegen,
    interp::{Interpreter, Limits, Outcome, compare},
    nvvm::{
        emulator::{self, Argument, Launch, Memory},
        machines, ptx,
    },
    runtime::{ElementType, Number, Tensor},
};
use tc_dialects::mlir;
use tc_passes::run_pipeline;

#[path = "support/random.rs"]
mod random;
use random::Random;

/// Threads of a block.
const BLOCK: u32 = 256;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A tensor or buffer.
#[derive(Clone)]
struct Operand {
    name: String,
    shape: Vec<usize>,
    element: &'static str,
    /// The values, or what to draw them from.
    values: Values,
}

#[derive(Clone, Copy)]
enum Values {
    /// Integers of an interval, or fractions of its length.
    Between(i64, i64),
    /// Factors whose products neither vanish nor overflow.
    Factors,
}

impl Operand {
    fn ty(&self, kind: &str) -> String {
        let extents: String = self.shape.iter().map(|it| format!("{it}x")).collect();
        format!("{kind}<{extents}{}>", self.element)
    }

    fn tensor(&self, random: &mut Random) -> Tensor {
        let element = match self.element {
            "f16" => ElementType::F16,
            "bf16" => ElementType::Bf16,
            "f32" => ElementType::F32,
            "f64" => ElementType::F64,
            "i1" => ElementType::Bool,
            "i8" => ElementType::I8,
            "i32" => ElementType::I32,
            _ => ElementType::I64,
        };
        let mut tensor = Tensor::zeros(element, &self.shape).expect("a small tensor");
        for position in 0..tensor.num_elements() {
            let number = match self.values {
                Values::Between(..) if self.element == "i1" => Number::Unsigned(random.next() % 2),
                Values::Between(lo, hi) if element.is_float() => {
                    // Exact in all types.
                    Number::Float(random.between(16 * lo, 16 * hi) as f64 / 16.0)
                }
                Values::Between(lo, hi) => Number::Signed(random.between(lo, hi)),
                Values::Factors if element.is_float() => {
                    Number::Float(*random.pick(&[1.0, -1.0, 1.0, 2.0, 0.5]))
                }
                Values::Factors => Number::Signed(*random.pick(&[1, -1, 3])),
            };
            tensor.set(position, number);
        }
        tensor
    }
}

/// An operation and its operands.
struct Case {
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
    /// The text of the operation on tensors or buffers, without results.
    text: Box<dyn Fn(&str) -> String>,
}

impl Case {
    fn arguments(&self, kind: &str) -> String {
        let operands = self.inputs.iter().chain(&self.outputs);
        operands.map(|it| format!("%{}: {}", it.name, it.ty(kind))).collect::<Vec<_>>().join(", ")
    }

    fn function(&self) -> String {
        let types: Vec<_> = self.outputs.iter().map(|it| it.ty("tensor")).collect();
        let types = types.join(", ");
        let results: Vec<_> = (0..self.outputs.len()).map(|it| format!("%r#{it}")).collect();
        let results = if results.len() == 1 { "%r".to_string() } else { results.join(", ") };
        let count = if self.outputs.len() == 1 {
            String::new()
        } else {
            format!(":{}", self.outputs.len())
        };
        format!(
            "func.func @f({}) -> ({types}) {{\n%r{count} = {} -> {types}\nreturn {results} : {types}\n}}",
            self.arguments("tensor"),
            (self.text)("tensor")
        )
    }

    fn kernel(&self) -> String {
        format!(
            "gpu.module @kernels {{\ngpu.func @k({}) kernel {{\n{}\ngpu.return\n}}\n}}",
            self.arguments("memref"),
            (self.text)("memref")
        )
    }

    /// Compares the kernel with the interpreter.
    fn check(&self, random: &mut Random) -> Result<(), String> {
        let context = tc_dialects::new_context();
        let operands = self.inputs.iter().chain(&self.outputs);
        let tensors: Vec<_> = operands.map(|it| it.tensor(random)).collect();
        let module =
            Module::parse(&context, &self.function()).ok_or("the function is not valid")?;
        let function = mlir::ops(mlir::block_ref(module.body()))[0];
        let expected = Interpreter::new(function)
            .and_then(|it| it.run(&tensors, Limits::default()))
            .map_err(|error| format!("interpreter: {error}"))?;
        let module = Module::parse(&context, &self.kernel()).ok_or("the kernel is not valid")?;
        let machine = random.pick(&machines()).clone();
        let text = ptx(&module, &Codegen::new(machine)).map_err(|error| error.to_string())?;
        let code = emulator::Module::parse(&text).map_err(|error| format!("{error}\n{text}"))?;
        let blocks = random.between(1, 3) as u32;
        let mut memory = Memory::new();
        let buffers: Vec<_> =
            tensors.iter().map(|tensor| memory.create(tensor.bytes(), 16)).collect();
        let arguments = buffers.iter().map(|it| Argument::from(*it)).collect();
        let launch = Launch::new([blocks, 1, 1], [BLOCK, 1, 1], arguments);
        emulator::run(&code, "k", &launch, &mut memory)
            .map_err(|error| format!("{error}\n{text}"))?;
        for (number, outcome) in expected.iter().enumerate() {
            let mut found = tensors[self.inputs.len() + number].clone();
            found.bytes_mut().copy_from_slice(memory.read(buffers[self.inputs.len() + number]));
            agree(outcome, &found).map_err(|error| format!("result {number} {error}"))?;
        }
        Ok(())
    }

    /// Checks that a fold or a scan keeps its values when it is split into many short parts.
    fn check_split(&self, random: &mut Random) -> Result<(), String> {
        let context = tc_dialects::new_context();
        let operands = self.inputs.iter().chain(&self.outputs);
        let tensors: Vec<_> = operands.map(|it| it.tensor(random)).collect();
        let mut module =
            Module::parse(&context, &self.function()).ok_or("the function is not valid")?;
        let interpret = |module: &Module| {
            let function = mlir::ops(mlir::block_ref(module.body()))[0];
            let ran = Interpreter::new(function).and_then(|it| it.run(&tensors, Limits::default()));
            ran.map_err(|error| format!("interpreter: {error}\n{}", module.as_operation()))
        };
        let expected = interpret(&module)?;
        let parts = random.between(2, 200);
        let pass = format!("func.func(imap-split-folds{{parts={parts} min-size=2}})");
        run_pipeline(&mut module, &pass).map_err(|error| error.to_string())?;
        for (outcome, found) in expected.iter().zip(&interpret(&module)?) {
            let found = found.to_tensor().map_err(|error| error.to_string())?;
            agree(outcome, &found)
                .map_err(|error| format!("split: {error}\n{}", module.as_operation()))?;
        }
        Ok(())
    }
}

fn agree(expected: &Outcome, found: &Tensor) -> Result<(), String> {
    compare(expected, found).map(|_| ()).map_err(|error| error.to_string())
}

/// A variable of a domain: its name and the number of its values, from 0.
#[derive(Clone)]
struct Var {
    name: String,
    extent: usize,
}

/// A domain and its accesses while they are made.
struct Maker<'a> {
    random: &'a mut Random,
    dims: Vec<Var>,
    ranges: Vec<Var>,
    runtimes: Vec<(String, Operand, String)>,
    constraints: Vec<String>,
}

impl Maker<'_> {
    fn vars(random: &mut Random, prefix: &str, count: usize, extents: &[usize]) -> Vec<Var> {
        let var = |number| Var { name: format!("{prefix}{number}"), extent: *random.pick(extents) };
        (0..count).map(var).collect()
    }

    /// An operand that is read at the values of some variables.
    fn access(&mut self, name: &str, vars: &[Var], element: &'static str) -> (Operand, String) {
        let mut vars = vars.to_vec();
        if self.random.chance(30) {
            vars.reverse();
        }
        let (mut shape, mut subscripts, mut guards) = (Vec::new(), Vec::new(), Vec::new());
        for Var { name: var, extent } in &vars {
            let (subscript, extent) = match self.random.weighted(&[10, 2, 2, 1, 2, 2]) {
                0 => (var.clone(), *extent),
                1 => (format!("{} - {var}", extent - 1), *extent),
                2 => (format!("{var} + 1"), extent + 1),
                3 => (format!("2 * {var}"), 2 * extent),
                4 if 1 < *extent => {
                    guards.push(format!("{var} - 1 in [0, {}]", extent - 2));
                    (format!("{var} - 1"), extent - 1)
                }
                _ => {
                    let runtime = format!("r{}", self.runtimes.len());
                    guards.push(format!("{runtime} in [0, 4]"));
                    let table = Operand {
                        name: format!("t{}", self.runtimes.len()),
                        shape: vec![*extent],
                        element: "i32",
                        values: Values::Between(-1, 6),
                    };
                    let access = format!("%{}[{var}]", table.name);
                    self.runtimes.push((runtime.clone(), table, access));
                    (runtime, 5)
                }
            };
            shape.push(extent);
            subscripts.push(subscript);
        }
        let values = Values::Between(-4, 4);
        let operand = Operand { name: name.to_string(), shape, element, values };
        let guard = match guards.is_empty() {
            true => String::new(),
            false => format!(" where {}", guards.join(" and ")),
        };
        (operand, format!("%{name}[{}]{guard}", subscripts.join(", ")))
    }

    /// The text from the variables to the operands that are read.
    fn header(&self, name: &str, after: &str) -> String {
        let names = |vars: &[Var]| vars.iter().map(|it| &*it.name).collect::<Vec<_>>().join(", ");
        let mut text = format!("{name} ({})", names(&self.dims));
        if !self.ranges.is_empty() {
            write!(text, "[{}]", names(&self.ranges)).unwrap();
        }
        if !self.runtimes.is_empty() {
            let names: Vec<_> = self.runtimes.iter().map(|it| &*it.0).collect();
            write!(text, "{{{}}}", names.join(", ")).unwrap();
        }
        let bound = |it: &Var| format!("{} in [0, {}]", it.name, it.extent - 1);
        let mut entries: Vec<_> = self.dims.iter().chain(&self.ranges).map(bound).collect();
        entries.extend(self.constraints.iter().cloned());
        write!(text, " domain: {}{after}", entries.join(", ")).unwrap();
        text
    }
}

fn accesses(word: &str, kind: &str, list: &[(Operand, String)]) -> String {
    if list.is_empty() {
        return String::new();
    }
    let texts: Vec<_> = list.iter().map(|it| &*it.1).collect();
    let types: Vec<_> = list.iter().map(|it| it.0.ty(kind)).collect();
    format!(" {word}({} : {})", texts.join(", "), types.join(", "))
}

/// The parts of a fold after its accesses.
struct Fold {
    /// The element types of the two inputs, and of the destinations.
    elements: [&'static str; 2],
    outputs: Vec<&'static str>,
    factors: bool,
    text: String,
}

fn op(element: &str, name: &str) -> String {
    let suffix = if element.contains('f') { "f" } else { "i" };
    format!("arith.{name}{suffix}")
}

/// A fold of elements `%a`, with `%b` in the epilogue, if there may be one.
fn fold(random: &mut Random, may_finish: bool) -> Fold {
    let element = *random.pick(&["f32", "f32", "f64", "f16", "bf16", "i8", "i32", "i64", "i1"]);
    let is_float = element.contains('f');
    let arguments = format!("%a: {element}, %b: {element}");
    let (form, finishes) = (random.below(4), may_finish && random.chance(60));
    if form == 1 && element != "i1" {
        // The first of the largest elements.
        let place = *random.pick(&["i32", "i64"]);
        let kind = *random.pick(&["dim", "range"]);
        let kind = if may_finish { kind } else { "dim" };
        let (least, greater) = match is_float {
            true => (if element == "f64" { "-1.0e300" } else { "-60000.0" }, "arith.cmpf ogt"),
            false => ("-100", "arith.cmpi sgt"),
        };
        let equal = if is_float { "arith.cmpf oeq" } else { "arith.cmpi eq" };
        let text = format!(
            "fold [{element} identity {least}, {place} identity 0] {{
             ^bb0({arguments}):
               %p = imap.index {kind} 0
               %q = arith.index_cast %p : index to {place}
               imap.yield %a, %q : {element}, {place}
             }} combine {{
             ^bb0(%v0: {element}, %i0: {place}, %v1: {element}, %i1: {place}):
               %more = {greater}, %v0, %v1 : {element}
               %same = {equal}, %v0, %v1 : {element}
               %before = arith.cmpi slt, %i0, %i1 : {place}
               %tie = arith.andi %same, %before : i1
               %left = arith.ori %more, %tie : i1
               %r = arith.select %left, %v0, %v1 : {element}
               %s = arith.select %left, %i0, %i1 : {place}
               imap.yield %r, %s : {element}, {place}
             }}"
        );
        return Fold {
            elements: [element; 2],
            outputs: vec![element, place],
            factors: false,
            text,
        };
    }
    if form == 2 && is_float && element != "f16" && element != "bf16" {
        // Mean and squared distances (Chan, Golub and LeVeque).
        let e = element;
        let text = format!(
            "fold [{e} identity 0.0, {e} identity 0.0, {e} identity 0.0] {{
             ^bb0({arguments}):
               %zero = arith.constant 0.0 : {e}
               %one = arith.constant 1.0 : {e}
               imap.yield %a, %zero, %one : {e}, {e}, {e}
             }} combine {{
             ^bb0(%m0: {e}, %s0: {e}, %n0: {e}, %m1: {e}, %s1: {e}, %n1: {e}):
               %one = arith.constant 1.0 : {e}
               %n = arith.addf %n0, %n1 : {e}
               %most = arith.maximumf %n, %one : {e}
               %part = arith.divf %n1, %most : {e}
               %d = arith.subf %m1, %m0 : {e}
               %move = arith.mulf %d, %part : {e}
               %m = arith.addf %m0, %move : {e}
               %far = arith.mulf %d, %move : {e}
               %more = arith.mulf %far, %n0 : {e}
               %s2 = arith.addf %s0, %s1 : {e}
               %s = arith.addf %s2, %more : {e}
               imap.yield %m, %s, %n : {e}, {e}, {e}
             }}"
        );
        return Fold { elements: [e; 2], outputs: vec![e; 3], factors: false, text };
    }
    if form == 3 && is_float && element.len() == 3 && element != "f16" {
        // A product of complex numbers of absolute value 1.
        let e = element;
        let text = format!(
            "fold [{e} identity 1.0, {e} identity 0.0] {{
             ^bb0({arguments}):
               %x = arith.constant 0.6 : {e}
               %y = arith.constant 0.8 : {e}
               %zero = arith.constant 0.0 : {e}
               %is = arith.cmpf ogt, %a, %zero : {e}
               %r = arith.select %is, %x, %y : {e}
               %i = arith.select %is, %y, %x : {e}
               imap.yield %r, %i : {e}, {e}
             }} combine {{
             ^bb0(%r0: {e}, %i0: {e}, %r1: {e}, %i1: {e}):
               %rr = arith.mulf %r0, %r1 : {e}
               %ii = arith.mulf %i0, %i1 : {e}
               %ri = arith.mulf %r0, %i1 : {e}
               %ir = arith.mulf %i0, %r1 : {e}
               %r = arith.subf %rr, %ii : {e}
               %i = arith.addf %ri, %ir : {e}
               imap.yield %r, %i : {e}, {e}
             }}"
        );
        return Fold { elements: [e; 2], outputs: vec![e; 2], factors: false, text };
    }
    let kinds: &[&str] = match element {
        "i1" => &["and", "or"],
        _ if is_float => &["add", "mul", "minf", "maxf", "minimumf", "maximumf"],
        _ => &["add", "mul", "mins", "maxs", "minu", "maxu", "and", "or"],
    };
    let (kind, other) = (*random.pick(kinds), *random.pick(kinds));
    let factors = [kind, other].contains(&"mul");
    // Sums of narrow floats in wide ones.
    let wide = match element {
        "f16" | "bf16" if finishes => "f32",
        _ => element,
    };
    let extend = if wide == element { "" } else { "%w = arith.extf %a : ELEMENT to f32\n" };
    let extend = extend.replace("ELEMENT", element);
    let value = if wide == element { "%a" } else { "%w" };
    let starts: [&str; 2] = match (finishes || !may_finish, is_float, element) {
        (_, _, "i1") => ["", ""],
        (true, true, _) => [" from 2.0", ""],
        (true, false, _) => [" from 2", ""],
        (false, ..) => [" from outs 0", " from outs 1"],
    };
    let start = |number: usize, random: &mut Random| match random.chance(40) {
        true => starts[number],
        false => "",
    };
    let (first, second) = (start(0, random), start(1, random));
    let mut text = format!(
        "fold [{kind} {wide}{first}, {other} {wide}{second}] {{
         ^bb0({arguments}):
           {extend}imap.yield {value}, {value} : {wide}, {wide}
         }}"
    );
    let mut outputs = vec![wide; 2];
    if finishes {
        let (add, less) = match (element, is_float) {
            ("i1", _) => ("arith.xori".to_string(), "arith.cmpi ult"),
            (_, true) => (op(element, "add"), "arith.cmpf olt"),
            (_, false) => (op(element, "add"), "arith.cmpi slt"),
        };
        let shorten = match wide == element {
            true => "",
            false => {
                "%x = arith.truncf %x0 : f32 to ELEMENT\n%y = arith.truncf %y0 : f32 to ELEMENT\n"
            }
        };
        let shorten = shorten.replace("ELEMENT", element);
        let number = if wide == element { "" } else { "0" };
        write!(
            text,
            " epilogue {{
             ^bb0(%x{number}: {wide}, %y{number}: {wide}, %a: {element}, %b: {element}):
               {shorten}%s = {add} %x, %b : {element}
               %c = {less}, %y, %b : {element}
               imap.yield %s, %c, %y : {element}, i1, {element}
             }}"
        )
        .unwrap();
        outputs = vec![element, "i1", element];
    }
    Fold { elements: [element; 2], outputs, factors, text }
}

fn destinations(dims: &[Var], elements: &[&'static str]) -> Vec<(Operand, String)> {
    let names: Vec<_> = dims.iter().map(|it| &*it.name).collect();
    let shape: Vec<_> = dims.iter().map(|it| it.extent).collect();
    let each = elements.iter().enumerate();
    each.map(|(number, element)| {
        let operand = Operand {
            name: format!("out{number}"),
            shape: shape.clone(),
            element,
            values: Values::Between(-4, 4),
        };
        (operand, format!("%out{number}[{}]", names.join(", ")))
    })
    .collect()
}

/// The case of an operation: the text in front of its operands, these, and the text behind them.
fn case(
    header: String,
    runtimes: &[(String, Operand, String)],
    inputs: Vec<(Operand, String)>,
    outputs: Vec<(Operand, String)>,
    rest: String,
) -> Case {
    let runtimes: Vec<_> = runtimes.iter().map(|it| (it.1.clone(), it.2.clone())).collect();
    Case {
        inputs: runtimes.iter().chain(&inputs).map(|it| it.0.clone()).collect(),
        outputs: outputs.iter().map(|it| it.0.clone()).collect(),
        text: Box::new(move |kind| {
            let runtimes = accesses("runtime", kind, &runtimes);
            let (ins, outs) = (accesses("ins", kind, &inputs), accesses("outs", kind, &outputs));
            format!("{header}{runtimes}{ins}{outs} {rest}")
        }),
    }
}

/// A fold or a scan.
fn folded(random: &mut Random, is_scan: bool) -> Case {
    let fold = fold(random, !is_scan);
    let num_dims = 1 + random.below(2);
    let extents: &[usize] = if num_dims == 1 { &[1, 3, 40] } else { &[1, 2, 3, 5] };
    let mut dims = Maker::vars(random, "i", num_dims, extents);
    let lengths = [1, 3, 31, 32, 33, 64, 100, 257, 1024, 1500];
    let ranges = match is_scan {
        true => Vec::new(),
        false => match random.chance(80) {
            true => Maker::vars(random, "k", 1, &lengths),
            false => Maker::vars(random, "k", 2, &[1, 2, 7, 30, 33]),
        },
    };
    let scanned = random.below(num_dims);
    if is_scan {
        dims[scanned].extent = *random.pick(&lengths);
    }
    let mut maker = Maker { random, dims, ranges, runtimes: Vec::new(), constraints: Vec::new() };
    let all = [&maker.dims[..], &maker.ranges].concat();
    let mut inputs = vec![maker.access("in0", &all, fold.elements[0])];
    // The epilogue of a fold has no range.
    let dims = maker.dims.clone();
    inputs.push(maker.access("in1", &dims, fold.elements[1]));
    if fold.factors {
        inputs[0].0.values = Values::Factors;
    }
    if maker.random.chance(25) {
        let (one, other) = (&all[maker.random.below(all.len())], &all[0]);
        let least = maker.random.between(-2, 3);
        maker.constraints.push(format!("{} + {} in [{least}, inf]", one.name, other.name));
    }
    let outputs = destinations(&maker.dims, &fold.outputs);
    let name = if is_scan { "imap.scan" } else { "imap.generic" };
    let after = match (is_scan, maker.random.chance(50)) {
        (false, _) => String::new(),
        (true, true) => format!(" scan i{scanned} inclusive"),
        (true, false) => format!(" scan i{scanned} exclusive"),
    };
    let header = maker.header(name, &after);
    case(header, &maker.runtimes, inputs, outputs, fold.text)
}

/// A product of two inputs, each of which has dimensions of its own.
fn multiplied(random: &mut Random) -> Case {
    let element = *random.pick(&["f32", "f32", "f64", "f16", "bf16", "i32", "i8"]);
    let is_float = element.contains('f');
    let wide = if ["f16", "bf16"].contains(&element) { "f32" } else { element };
    let mut dims = Maker::vars(random, "i", 2, &[9, 16, 33, 70, 100]);
    let is_split = random.chance(25);
    if is_split {
        dims.extend([Var { name: "i2".to_string(), extent: 3 }]);
    }
    let has_batch = random.chance(25);
    if has_batch {
        dims.extend([Var { name: "n".to_string(), extent: *random.pick(&[1, 2, 5]) }]);
    }
    let ranges = match random.chance(60) {
        true => Maker::vars(random, "k", 1, &[16, 17, 40, 70]),
        false => Maker::vars(random, "k", 2, &[3, 7, 16]),
    };
    let mut maker = Maker {
        random,
        dims: dims.clone(),
        ranges: ranges.clone(),
        runtimes: Vec::new(),
        constraints: Vec::new(),
    };
    for own in ["i0", "i1"] {
        if maker.random.chance(25) {
            let lowest = maker.random.between(-3, 10);
            maker.constraints.push(format!("{own} + k0 - 2 in [{lowest}, {}]", lowest + 30));
        }
    }
    let batch = &dims[dims.len() - usize::from(has_batch)..];
    let rows =
        if is_split { vec![dims[0].clone(), dims[2].clone()] } else { vec![dims[0].clone()] };
    let left = [&rows[..], batch, &ranges].concat();
    let right = [batch, &ranges[..], &dims[1..2]].concat();
    let mut inputs =
        vec![maker.access("in0", &left, element), maker.access("in1", &right, element)];
    let finishes = maker.random.chance(40);
    if finishes {
        inputs.push(maker.access("in2", &dims, wide));
    }
    let (mul, add) = (op(wide, "mul"), op(wide, "add"));
    let extend = match wide == element {
        true => "%x = arith.bitcast %a : T to T\n%y = arith.bitcast %b : T to T\n",
        false => "%x = arith.extf %a : T to f32\n%y = arith.extf %b : T to f32\n",
    };
    let extend = extend.replace('T', element);
    let start = match (maker.random.below(3), is_float) {
        (0, true) => " from 2.0",
        (0, false) => " from 2",
        (1, _) if !finishes => " from outs 0",
        _ => "",
    };
    let third = if finishes { format!(", %c: {wide}") } else { String::new() };
    let mut text = format!(
        "fold [add {wide}{start}] {{
         ^bb0(%a: {element}, %b: {element}{third}):
           {extend}%p = {mul} %x, %y : {wide}
           imap.yield %p : {wide}
         }}"
    );
    if finishes {
        write!(
            text,
            " epilogue {{
             ^bb0(%s: {wide}, %a: {element}, %b: {element}, %c: {wide}):
               %r = {add} %s, %c : {wide}
               imap.yield %r : {wide}
             }}"
        )
        .unwrap();
    }
    let outputs = destinations(&dims, &[wide]);
    let header = maker.header("imap.generic", "");
    case(header, &maker.runtimes, inputs, outputs, text)
}

/// A scatter along a table, of rows or of single elements.
fn scattered(random: &mut Random) -> Case {
    let element = *random.pick(&["f32", "f64", "f16", "bf16", "i8", "i32", "i64"]);
    let is_float = element.contains('f');
    let dims = Maker::vars(random, "i", 2, &[1, 2, 5, 33, 70]);
    let mut maker = Maker {
        random,
        dims: dims.clone(),
        ranges: Vec::new(),
        runtimes: Vec::new(),
        constraints: Vec::new(),
    };
    let mut inputs = vec![maker.access("in0", &dims, element)];
    let number = maker.runtimes.len();
    let of = maker.random.below(2);
    let table = Operand {
        name: format!("t{number}"),
        shape: vec![dims[of].extent],
        element: "i32",
        values: Values::Between(-2, 8),
    };
    maker.runtimes.push((format!("r{number}"), table, format!("%t{number}[i{of}]")));
    let (rows, other) = (7, &dims[1 - of]);
    let (shape, subscripts) = match maker.random.below(3) {
        0 => (vec![rows, other.extent], format!("r{number}, {}", other.name)),
        1 => (vec![other.extent, rows], format!("{}, r{number}", other.name)),
        _ => (vec![rows], format!("r{number}")),
    };
    let kinds: &[&str] = match is_float {
        true => &["add", "mul", "minf", "maxf", "minimumf", "maximumf"],
        false => &["add", "mul", "mins", "maxs", "minu", "maxu", "and", "or"],
    };
    let kind = *maker.random.pick(kinds);
    let body = format!("{{\n^bb0(%a: {element}):\nimap.yield %a : {element}\n}}");
    let rest = match maker.random.below(3) {
        0 => body,
        1 => format!("fold [{kind} {element}] {body}"),
        _ => {
            let max = if is_float { "arith.maximumf" } else { "arith.maxsi" };
            format!(
                "{body} combine {{\n^bb0(%o: {element}, %n: {element}):
                 %m = {max} %o, %n : {element}\nimap.yield %m : {element}\n}}"
            )
        }
    };
    if rest.contains("mul") {
        inputs[0].0.values = Values::Factors;
    }
    let guard = format!(" where r{number} in [0, {}]", rows - 1);
    let outputs = vec![(
        Operand { name: "out0".to_string(), shape, element, values: Values::Between(-4, 4) },
        format!("%out0[{subscripts}]{guard}"),
    )];
    let header = maker.header("imap.scatter", "");
    case(header, &maker.runtimes, inputs, outputs, rest)
}

/// A stable sort of one or two arrays by the first.
fn sorted(random: &mut Random) -> Case {
    let rank = 1 + random.below(3);
    let dim = random.below(rank);
    let mut shape: Vec<_> = (0..rank).map(|_| 1 + random.below(3)).collect();
    shape[dim] = *random.pick(&[1, 2, 7, 16, 17, 33, 64, 150, 300]);
    let mut kept = shape.clone();
    kept[dim] = match random.below(2) {
        0 => 1 + random.below(shape[dim]),
        _ => shape[dim],
    };
    let names = ["f32", "i32", "i8", "f64", "bf16", "i1", "i64"];
    let elements: Vec<_> = (0..1 + random.below(2)).map(|_| *random.pick(&names)).collect();
    let places = *random.pick(&["", "i32", "i64"]);
    let operand = |prefix: &str, number: usize, shape: &[usize], element| Operand {
        name: format!("{prefix}{number}"),
        shape: shape.to_vec(),
        element,
        values: Values::Between(-4, 4),
    };
    let each = || elements.iter().copied().enumerate();
    let inputs: Vec<_> = each().map(|(number, it)| operand("in", number, &shape, it)).collect();
    let mut outputs: Vec<_> =
        each().map(|(number, it)| operand("out", number, &kept, it)).collect();
    if !places.is_empty() {
        outputs.push(operand("out", elements.len(), &kept, places));
    }
    let less = match elements[0] {
        "i1" => "arith.cmpi ult",
        it if it.contains('f') => "arith.cmpf olt",
        _ => "arith.cmpi sgt",
    };
    let arguments: Vec<_> = each().map(|(at, it)| format!("%a{at}: {it}, %b{at}: {it}")).collect();
    let region = format!(
        "{{\n^bb0({}):\n%c = {less}, %a0, %b0 : {}\nimap.yield %c : i1\n}}",
        arguments.join(", "),
        elements[0]
    );
    let list = |operands: &[Operand], kind: &str| {
        let names: Vec<_> = operands.iter().map(|it| format!("%{}", it.name)).collect();
        let types: Vec<_> = operands.iter().map(|it| it.ty(kind)).collect();
        format!("({} : {})", names.join(", "), types.join(", "))
    };
    let (ins, outs) = (inputs.clone(), outputs.clone());
    Case {
        inputs,
        outputs,
        text: Box::new(move |kind| {
            let (ins, outs) = (list(&ins, kind), list(&outs, kind));
            format!("imap.sort dim = {dim} stable ins{ins} outs{outs} {region}")
        }),
    }
}

fn check_all(make: fn(&mut Random) -> Case, check: fn(&Case, &mut Random) -> Result<(), String>) {
    let first = from_environment("TC_RANDOM_SEED", 0);
    let mut failures = 0;
    for seed in first..first + from_environment("TC_RANDOM_PROGRAMS", 25) {
        let mut random = Random::new(seed);
        let case = make(&mut random);
        if let Err(error) = check(&case, &mut random) {
            failures += 1;
            eprintln!("seed {seed}: {error}\n{}\n{}", case.function(), case.kernel());
        }
    }
    assert_eq!(failures, 0);
}

#[test]
fn random_folds_agree_with_the_interpreter() {
    check_all(|random| folded(random, false), Case::check);
}

#[test]
fn random_products_agree_with_the_interpreter() {
    check_all(multiplied, Case::check);
}

#[test]
fn split_folds_keep_their_values() {
    check_all(|random| folded(random, false), Case::check_split);
}

#[test]
fn split_scans_keep_their_values() {
    check_all(|random| folded(random, true), Case::check_split);
}

#[test]
fn random_scans_agree_with_the_interpreter() {
    check_all(|random| folded(random, true), Case::check);
}

#[test]
fn random_scatters_agree_with_the_interpreter() {
    check_all(scattered, Case::check);
}

#[test]
fn random_sorts_agree_with_the_interpreter() {
    check_all(sorted, Case::check);
}
