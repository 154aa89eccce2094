//! Native code: lowering with MLIR, optimization and code generation with LLVM, and the
//! result as text, an object with a C header, or code that runs at once.

pub(crate) mod code;
mod cost;
pub mod header;
pub(crate) mod interface;
mod perf_map;
pub mod pipeline;
mod profile;

pub(crate) use cost::{extents, work_costs};

use crate::{
    backend::{
        Artifact, Backend, Compiled, Cost, Error, Form, Interface, Signature, Stage,
        read_signatures,
    },
    llvm, upstream,
};
use melior::ir::Module;
use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Once},
    time::{Duration, Instant},
};
use tc_dialects::mlir;
use tc_passes::{
    run_pipeline,
    target::{Codegen, Machine, MemoryBound, Target, TileLimits},
    transform::{
        outline_functions,
        time_kernels::{self, CLOCK, Kernel},
    },
};

/// The backend for processors.
pub static BACKEND: &dyn Backend = &Cpu;

struct Cpu;

/// The forms in which it writes code.
const FORMS: &[Form] = &[Form::Object, Form::Assembly, Form::LlvmIr];

/// The name of the machine that runs this program.
const NATIVE: &str = "native";

impl Target for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn machine(&self, name: Option<&str>) -> Result<Machine, String> {
        let machine = match name {
            None | Some(NATIVE) => Machine::host(),
            Some(name) => Machine::cpu(name),
        };
        llvm::check_target(&machine).map_err(|error| error.to_string())?;
        Ok(machine)
    }

    fn costs(&self, _: &Machine) -> MemoryBound {
        MemoryBound::default()
    }

    fn tiles(&self, codegen: &Codegen) -> TileLimits {
        let machine = &codegen.machine;
        let [first_cache, second_cache] = machine.cache_bytes;
        TileLimits {
            min_bytes: second_cache / 4,
            tile_bytes: second_cache / 4,
            product_bytes: 4 * second_cache,
            shared_bytes: first_cache / 2,
            min_points: first_cache / 4,
            set_bytes: machine.set_bytes,
            parallel: (1 < codegen.threads).then(|| machine.parallel_threshold().unsigned_abs()),
            ..TileLimits::default()
        }
    }

    fn legalize(&self, upstream: bool) -> String {
        pipeline::destinations(upstream)
    }

    fn lower(&self, codegen: &Codegen, upstream: bool) -> String {
        [pipeline::to_loops(codegen, upstream), pipeline::to_llvm(upstream)].join(",")
    }
}

impl Backend for Cpu {
    fn compile(&self, module: &Module, codegen: &Codegen) -> Result<Box<dyn Artifact>, Error> {
        Ok(Box::new(Lowered::new(module, codegen)?.translate()?))
    }

    fn forms(&self) -> &'static [Form] {
        FORMS
    }

    fn on_device(&self, name: &str) -> Result<&'static dyn Backend, String> {
        Err(format!("the target 'cpu' has no device '{name}'; remove '--device'"))
    }

    fn lower_to<'c>(
        &self,
        module: &Module<'c>,
        codegen: &Codegen,
        stage: Stage,
    ) -> Result<Module<'c>, Error> {
        llvm::check_target(&codegen.machine)?;
        let (mut copy, upstream) = prepare(module, "")?;
        read_signatures(&copy).ok_or(Error::Lowering)?;
        run(&mut copy, &pipeline::to_loops(codegen, upstream))?;
        if stage == Stage::Llvm {
            run(&mut copy, &pipeline::to_llvm(upstream))?;
            upstream::check_lowered(&copy).ok_or(Error::Lowering)?;
        }
        Ok(copy)
    }

    fn cost(&self, module: &Module, codegen: &Codegen) -> Result<Vec<Cost>, Error> {
        cost::cost(module, codegen)
    }
}

/// Lowers a module to [`Stage::Loops`], one pass at a time: `visit` gets the text of
/// each pass and the module that it leaves. An oracle that runs each of these modules finds the
/// pass that changes a value.
///
/// # Errors
/// A pass failed, or the first error of `visit`.
pub fn lower_by_pass<'c, E: From<Error>>(
    module: &Module<'c>,
    codegen: &Codegen,
    mut visit: impl FnMut(&str, &Module<'c>) -> Result<(), E>,
) -> Result<(), E> {
    llvm::check_target(&codegen.machine)?;
    let mut copy = copy(module)?;
    let contents = upstream::check(&copy).ok_or(Error::Lowering)?;
    if !contents.decompose(&mut copy, |module, pipeline| run(module, pipeline).is_ok()) {
        return Err(Error::Lowering.into());
    }
    let upstream = contents.upstream;
    let parts = [pipeline::destinations(upstream), pipeline::to_loops(codegen, upstream)];
    for part in &parts {
        for pass in pipeline::passes(part) {
            run(&mut copy, &pass)?;
            visit(&pass, &copy)?;
        }
    }
    Ok(())
}

/// A copy of a module whose results are destinations, once all operations are seen to be supported; and
/// whether passes for MLIR's own dialects are needed. The passes `first` run before.
pub(crate) fn prepare<'c>(module: &Module<'c>, first: &str) -> Result<(Module<'c>, bool), Error> {
    let mut copy = copy(module)?;
    let contents = upstream::check(&copy).ok_or(Error::Lowering)?;
    if !contents.decompose(&mut copy, |module, pipeline| run(module, pipeline).is_ok()) {
        return Err(Error::Lowering);
    }
    let destinations = pipeline::destinations(contents.upstream);
    run(&mut copy, [first, &destinations].join(",").trim_start_matches(','))?;
    Ok((copy, contents.upstream))
}

/// Registers the pipeline `lower-to-cpu`, and the passes in it, with MLIR, once per process.
pub fn register() {
    static ONCE: Once = Once::new();
    tc_passes::register();
    ONCE.call_once(|| pipeline::LOWER_TO_CPU.register());
}

/// Fewer operations are lowered as fast in one thread as in several.
const MAX_OPERATIONS: usize = 4;

/// A module in the `llvm` dialect, the first half of [`Backend::compile`].
pub struct Lowered<'c> {
    signatures: Vec<Signature>,
    module: Module<'c>,
    /// The kernels, if the code measures them.
    kernels: Option<Vec<Kernel>>,
    codegen: Codegen,
}

impl<'c> Lowered<'c> {
    /// Lowers a module of functions on tensors, with operations of `imap` and of MLIR's own
    /// dialects, to the `llvm` dialect. The module stays as it is.
    ///
    /// # Errors
    /// A pass failed, which its diagnostics explain.
    pub fn new(module: &Module<'c>, codegen: &Codegen) -> Result<Self, Error> {
        let (mut copy, upstream) = prepare(module, "")?;
        let signatures = read_signatures(&copy).ok_or(Error::Lowering)?;
        rename(&copy);
        let mut num_operations = 0;
        mlir::walk(mlir::op_ref(copy.as_operation()), &mut |op| {
            num_operations += usize::from(outline_functions::is_operation(op));
        });
        // Threads share tables of types and attributes: a small program is lowered faster by one.
        let is_large = MAX_OPERATIONS < num_operations;
        let context = mlir::context_of(mlir::op_ref(module.as_operation()));
        context.enable_multi_threading(is_large && 1 < codegen.compile_threads);
        let lowered = run(&mut copy, &pipeline::to_loops(codegen, upstream))
            .and_then(|()| run(&mut copy, &pipeline::to_llvm(upstream)));
        context.enable_multi_threading(false);
        lowered?;
        upstream::check_lowered(&copy).ok_or(Error::Lowering)?;
        let module = mlir::op_ref(copy.as_operation());
        let kernels = codegen.profile.then(|| time_kernels::kernels(module));
        Ok(Self { signatures, module: copy, kernels, codegen: codegen.clone() })
    }

    /// Translates the module to LLVM IR.
    ///
    /// # Errors
    /// LLVM rejects the machine, or the code calls unknown functions.
    pub fn translate(self) -> Result<Program, Error> {
        let Self { signatures, module: lowered, kernels, codegen } = self;
        let start = Instant::now();
        let names: Vec<_> = signatures.iter().map(|it| it.name.as_str()).collect();
        let mut module =
            llvm::Module::translate(mlir::op_ref(lowered.as_operation()), &codegen.machine)?;
        module.link_builtins()?;
        if kernels.is_some() {
            module.define_elsewhere(&CLOCK);
        }
        if let Some(symbol) = module.undefined_symbol(&llvm::is_allowed_symbol) {
            upstream::report_undefined(&lowered, &symbol);
            return Err(Error::Lowering);
        }
        module.add_entries(&names)?;
        if !codegen.strict_fp && codegen.machine.triple.starts_with("x86_64") {
            module.flush_subnormals(&names)?;
        }
        module.add_interfaces(&signatures, &header::function_names(&signatures))?;
        let parts = llvm::Parts::of(module)?;
        let Codegen { threads, compile_threads, perf_map, cache, .. } = codegen;
        let time = start.elapsed();
        Ok(Program { signatures, parts, kernels, threads, compile_threads, perf_map, cache, time })
    }
}

/// A module as LLVM IR, which is optimized when code is wanted.
pub struct Program {
    signatures: Vec<Signature>,
    parts: llvm::Parts,
    /// The kernels, if the code measures them.
    kernels: Option<Vec<Kernel>>,
    threads: usize,
    compile_threads: usize,
    perf_map: bool,
    cache: Option<PathBuf>,
    /// How long LLVM took until here.
    time: Duration,
}

impl Program {
    fn whole<T>(&self, work: impl FnOnce(&llvm::Module) -> Result<T, Error>) -> Result<T, Error> {
        self.parts.whole(self.compile_threads, work)
    }
}

impl Artifact for Program {
    fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    fn llvm_time(&self) -> Duration {
        self.time
    }

    fn emit(&self, form: Form) -> Result<Vec<u8>, Error> {
        match form {
            Form::LlvmIr => self.whole(|module| Ok(module.text().into_bytes())),
            Form::Assembly => self.whole(|it| it.emit(llvm::Artifact::Assembly)),
            Form::Object => self.whole(|it| it.emit(llvm::Artifact::Object)),
            Form::Ptx | Form::Cubin => Err(Error::Form { target: "cpu", form, forms: FORMS }),
        }
    }

    fn interface(&self, _: Form, stem: &str) -> Result<Interface, Error> {
        let code = header::Code::Host { threads: self.threads };
        Ok(Interface { ending: "h", text: header::write(&self.signatures, stem, &code) })
    }

    fn load(&self) -> Result<Compiled, Error> {
        let start = Instant::now();
        let cache = self.cache.as_deref().map(llvm::Cache::open).transpose()?;
        let (objects, num_cached) = self.parts.objects(self.compile_threads, cache.as_ref())?;
        let names: Vec<_> = self.signatures.iter().map(|it| it.name.as_str()).collect();
        let kernels = self.kernels.as_deref();
        let code = Arc::new(code::Loaded::new(&objects, &names, kernels, self.threads)?);
        if self.perf_map {
            code.write_perf_map(&objects)?;
        }
        // SAFETY: the entries of the functions were generated for these signatures.
        let compiled = unsafe { Compiled::new(self.signatures.clone(), code) };
        Ok(compiled.with_llvm_time(self.time + start.elapsed()).with_cache_hits(num_cached))
    }
}

/// Gives functions names that no library has: a function may be called `exp` or `malloc`,
/// which generated code calls too. [`header::function_names`] are those that C programs use.
pub(crate) fn rename(module: &Module) {
    let mut renamed = HashSet::new();
    let new = |name: &str| format!("{}{name}", interface::KERNEL_PREFIX);
    for op in mlir::ops(mlir::block_ref(module.body())) {
        if let Some(name) = mlir::string_attr(op, "sym_name")
            && mlir::is(op, "func.func")
            && mlir::body(op, 0).is_some()
        {
            renamed.insert(name);
            mlir::set_attribute(op, "sym_name", mlir::string(mlir::context_of(op), &new(name)));
        }
    }
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        if let Some(name) = mlir::callee(op).filter(|name| renamed.contains(name)) {
            mlir::set_attribute(op, "callee", mlir::symbol(mlir::context_of(op), &new(name)));
        }
    });
}

fn copy<'c>(module: &Module<'c>) -> Result<Module<'c>, Error> {
    Module::from_operation((*module.as_operation()).clone()).ok_or(Error::Lowering)
}

pub(crate) fn run(module: &mut Module, pipeline: &str) -> Result<(), Error> {
    run_pipeline(module, pipeline).map_err(|_| Error::Lowering)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tensor;

    /// A chain of products, each an operation of its own.
    fn chain(sizes: &[usize]) -> String {
        let last = sizes[sizes.len() - 1];
        let mut text = format!("func.func @f(%x0: tensor<{0}x{0}xf32>", sizes[0]);
        for (number, pair) in sizes.windows(2).enumerate() {
            text += &format!(", %w{number}: tensor<{}x{}xf32>", pair[0], pair[1]);
        }
        text += &format!(") -> tensor<{}x{last}xf32> {{\n", sizes[0]);
        for (number, pair) in sizes.windows(2).enumerate() {
            let [rows, inner, columns] = [sizes[0], pair[0], pair[1]];
            let next = number + 1;
            text += &format!(
                "%e{number} = tensor.empty() : tensor<{rows}x{columns}xf32>
                 %x{next} = imap.generic (i, j)[k] domain: i in [0, {}], j in [0, {}], k in [0, {}]
                   ins(%x{number}[i, k], %w{number}[k, j] : tensor<{rows}x{inner}xf32>, tensor<{inner}x{columns}xf32>)
                   outs(%e{number}[i, j] : tensor<{rows}x{columns}xf32>) fold [add f32] {{
                 ^bb0(%a: f32, %b: f32):
                   %p = arith.mulf %a, %b : f32
                   imap.yield %p : f32
                 }} -> tensor<{rows}x{columns}xf32>\n",
                rows - 1,
                columns - 1,
                inner - 1
            );
        }
        text += &format!("return %x{} : tensor<{}x{last}xf32>\n}}", sizes.len() - 1, sizes[0]);
        text
    }

    #[test]
    fn parts_of_a_program_are_compiled_alike_by_any_number_of_threads() {
        let sizes = [9, 20, 11, 33, 18, 7, 26, 13];
        let context = tc_dialects::new_context();
        let module = Module::parse(&context, &chain(&sizes)).expect("the module parses");
        let mut objects = Vec::new();
        for compile_threads in [1, 3] {
            let codegen = Codegen { compile_threads, ..Codegen::default() };
            let program = Lowered::new(&module, &codegen).and_then(Lowered::translate);
            let program = program.expect("the module compiles");
            assert!(1 < program.parts.len(), "the program has one part");
            objects.push(program.emit(Form::Object).expect("an object"));

            let shape = |rows: usize, columns: usize| vec![rows, columns];
            let ones = |shape: &[usize], value: &dyn Fn(usize, usize) -> f32| {
                let elements = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| (i, j)));
                let values: Vec<f32> = elements.map(|(i, j)| value(i, j)).collect();
                Tensor::from_values(shape, &values).expect("as many values as the shape has")
            };
            let mut inputs = vec![ones(&shape(9, 9), &|i, j| f32::from(u8::from(i == j)))];
            for pair in sizes.windows(2) {
                let value = |i, j| f32::from(u8::from(i <= j && j <= i + 1));
                inputs.push(ones(&shape(pair[0], pair[1]), &value));
            }
            let mut expected = vec![vec![0_i64; 9]; 9];
            (0..9).for_each(|i| expected[i][i] = 1);
            for pair in sizes.windows(2) {
                let product = |row: &Vec<i64>| {
                    let element = |j: usize| {
                        let used = (0..pair[0]).filter(|i| *i <= j && j <= i + 1);
                        used.map(|i| row[i]).sum::<i64>()
                    };
                    (0..pair[1]).map(element).collect::<Vec<_>>()
                };
                expected = expected.iter().map(product).collect();
            }
            let compiled = program.load().expect("the code loads");
            let mut found = [ones(&shape(9, 13), &|_, _| f32::NAN)];
            let function = compiled.function("f").expect("the function of the module");
            let inputs: Vec<_> = inputs.iter().collect();
            function.call(&inputs, &mut found).expect("the call succeeds");
            let expected: Vec<_> = expected.concat().iter().map(|value| *value as f32).collect();
            assert_eq!(found[0].to_values::<f32>().expect("floats"), expected);
        }
        assert!(objects[0] == objects[1], "the objects differ");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn subnormal_numbers_are_zero_in_compiled_code_only() {
        let text = "func.func @f(%x: tensor<262144xf32>) -> tensor<262144xf32> {
             %e = tensor.empty() : tensor<262144xf32>
             %y = imap.generic (i) domain: i in [0, 262143] ins(%x[i] : tensor<262144xf32>) outs(%e[i] : tensor<262144xf32>) {
             ^bb0(%a: f32):
               %h = arith.constant 0.5 : f32
               %p = arith.mulf %a, %h : f32
               %q = math.sqrt %p : f32
               imap.yield %q : f32
             } -> tensor<262144xf32>
             return %y : tensor<262144xf32>
           }";
        let context = tc_dialects::new_context();
        let module = Module::parse(&context, text).expect("the module parses");
        let halve = |value: f32| std::hint::black_box(value) * 0.5;
        for (threads, strict_fp) in [(1, false), (2, false), (1, true), (2, true)] {
            let codegen = Codegen { threads, strict_fp, ..Codegen::default() };
            let program = Lowered::new(&module, &codegen).and_then(Lowered::translate);
            let compiled = program.and_then(|it| it.load()).expect("the module compiles");
            let array = |value: f32| {
                Tensor::from_values(&[262_144], &vec![value; 262_144]).expect("262,144 values")
            };
            let mut found = [array(f32::NAN)];
            let function = compiled.function("f").expect("the function of the module");
            let input = array(f32::MIN_POSITIVE);
            function.call(&[&input], &mut found).expect("the call succeeds");
            let expected = if strict_fp { halve(f32::MIN_POSITIVE).sqrt() } else { 0.0 };
            let values = found[0].to_values::<f32>().expect("floats");
            assert!(values.iter().all(|it| *it == expected), "{threads} {strict_fp}");
            // The caller's mode is as before.
            assert!(0.0 < halve(f32::MIN_POSITIVE));
        }
    }

    #[test]
    fn all_functions_of_an_object_have_lines_for_perf() {
        let context = tc_dialects::new_context();
        let module = Module::parse(&context, &chain(&[9, 20, 11])).expect("the module parses");
        let codegen = Codegen::default();
        let program = Lowered::new(&module, &codegen).and_then(Lowered::translate);
        let object = program.expect("the module compiles").emit(Form::Object).expect("an object");
        let address = |name: &str| (name == "_tc_entry_f").then_some(0x1_0000_0000);
        let lines = perf_map::lines(&object, &address);
        let functions: Vec<Vec<_>> = lines.lines().map(|it| it.split(' ').collect()).collect();
        let function = |name: &str| functions.iter().find(|it| it[2] == name);
        assert_eq!(function("_tc_entry_f").map(|it| it[0]), Some("100000000"), "{lines}");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        for kernel in ["f_0", "f_1"] {
            let kernel = function(kernel).unwrap_or_else(|| panic!("no line of {kernel}: {lines}"));
            assert!(number(kernel[0]).abs_diff(0x1_0000_0000) < 1 << 16, "{lines}");
            assert!(0 < number(kernel[1]), "{lines}");
        }
        assert_eq!(perf_map::lines(&object, &|_| None), "");
        assert_eq!(perf_map::lines(b"no object", &address), "");
    }
}
