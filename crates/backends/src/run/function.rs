//! Functions on tensors in MLIR: a `func.func` of `imap`, `arith`, `tensor` and `scf` operations.
//!
//! Unlike a `tc.def`, such a function is compiled once for all sizes. A size is known by the name in
//! `tc.sizes` of an argument, or as `NAME.DIM`, a dimension of an argument. An argument is known by
//! `tc.name` or as `arg0`, `arg1`, ..; a result by `tc.name` or as `out0`, `out1`, .. A scalar argument
//! is passed as a tensor without dimensions; the value of an `index` is given like a size.

use super::{Error, Options, Session, Sizes, TO_IMAP, copy, try_size};
use crate::{
    backend::{Argument, Backend, CallError, Extent, Function, Role, Signature},
    interp::{self, Outcome},
    runtime::{Tensor, npy, random},
};
use melior::ir::{
    Module, Type, TypeLike, ValueLike, attribute::TypeAttribute, block::BlockArgument,
    operation::OperationLike, r#type::FunctionType,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use tc_dialects::{
    imap::{self, MAX_EXTENT},
    mlir::{self, Builder, Op, Val},
};
use tc_ir::IndexingMap;
use tc_passes::{analysis::index_values::IndexValues, run_pipeline};

/// A function on tensors.
pub struct TensorFunction<'c> {
    /// A module with the function, and those that it calls.
    module: Module<'c>,
    name: String,
    result_names: Vec<String>,
}

impl<'c> Session<'c> {
    /// The function on tensors of a name; without one, the only one.
    ///
    /// # Errors
    /// There is none of the name, or a name is needed.
    pub fn tensor_function(&self, name: Option<&str>) -> Result<TensorFunction<'c>, Error> {
        let name = self.select_function(name)?;
        // Operations of these dialects are added to the function.
        for dialect in ["arith", "tensor"] {
            self.context.get_or_load_dialect(dialect);
        }
        let mut module = copy(&self.source)?;
        keep(&module, &name);
        // Calls pass complex numbers in two parts.
        run_pipeline(&mut module, "split-complex")?;
        let function = named(&module, &name);
        let attributes = mlir::array_attr(function, "res_attrs");
        let num_results = mlir::function_type(function).map_or(0, |(_, results)| results.len());
        let result_name = |number: usize| {
            let attribute = attributes.get(number).copied();
            let name = attribute.and_then(|it| mlir::dictionary_entry(it, "tc.name"));
            let name = name.and_then(mlir::string_of).filter(|name| !name.is_empty());
            name.map_or_else(|| format!("out{number}"), str::to_string)
        };
        let result_names = (0..num_results).map(result_name).collect();
        pass_scalars_as_tensors(function);
        Ok(TensorFunction { module, name, result_names })
    }

    /// The function on tensors of a name, and those that it calls, as fused operations.
    ///
    /// # Errors
    /// There is none of the name, or a pass failed.
    pub fn lower_function(&self, name: &str, options: &Options) -> Result<Module<'c>, Error> {
        let name = self.select_function(Some(name))?;
        let module = copy(&self.source)?;
        keep(&module, &name);
        fuse(module, options)
    }

    fn select_function(&self, name: Option<&str>) -> Result<String, Error> {
        let functions = functions(&self.source);
        if functions.is_empty() {
            return Err(Error::Refused(
                "the file has no function to compile; expected 'tc.def' or 'func.func' operations, \
                 such as 'tc-opt' writes with --fuse, --convert-hlo-to-imap or --convert-tml-to-imap"
                    .to_string(),
            ));
        }
        // Private functions are for the others, if there are others.
        let is_private = |it: &Op| mlir::string_attr(*it, "sym_visibility") == Some("private");
        let mut names: Vec<_> =
            functions.iter().filter(|it| !is_private(it)).map(|it| symbol(*it)).collect();
        if names.is_empty() {
            names = functions.into_iter().map(symbol).collect();
        }
        Ok(super::select(name, &names, &names)?.to_string())
    }
}

fn fuse<'c>(mut module: Module<'c>, options: &Options) -> Result<Module<'c>, Error> {
    let fuse = if options.no_fuse { "" } else { ",imap-fuse,canonicalize,cse" };
    run_pipeline(&mut module, &format!("{TO_IMAP},canonicalize,cse{fuse}"))?;
    Ok(module)
}

fn symbol<'c>(function: Op<'c>) -> &'c str {
    mlir::string_attr(function, "sym_name").unwrap_or_default()
}

/// The functions that have a body.
fn functions<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    let ops = mlir::ops(mlir::block_ref(module.body()));
    let has_body = |op: &Op| mlir::is(*op, "func.func") && mlir::body(*op, 0).is_some();
    ops.into_iter().filter(has_body).collect()
}

fn named<'c>(module: &Module<'c>, name: &str) -> Op<'c> {
    let found = functions(module).into_iter().find(|it| symbol(*it) == name);
    found.expect("a function that the module has")
}

/// Erases the functions that a function does not call, directly or indirectly.
fn keep(module: &Module, name: &str) {
    let functions = functions(module);
    let mut kept = BTreeSet::from([name.to_string()]);
    let mut pending = vec![name.to_string()];
    while let Some(name) = pending.pop() {
        for function in functions.iter().filter(|it| symbol(**it) == name) {
            mlir::walk(*function, &mut |op| {
                let callee = op.attribute("callee").ok();
                if let Some(callee) = callee.and_then(mlir::symbol_of)
                    && kept.insert(callee.to_string())
                {
                    pending.push(callee.to_string());
                }
            });
        }
    }
    for function in functions {
        if !kept.contains(symbol(function)) {
            mlir::erase(function);
        }
    }
}

/// Makes tensors without dimensions of the scalar arguments of a function.
fn pass_scalars_as_tensors(function: Op) {
    let (Some(body), Some((_, results))) = (mlir::body(function, 0), mlir::function_type(function))
    else {
        return;
    };
    let context = mlir::context_of(function);
    for value in mlir::arguments(body) {
        let ty = value.r#type();
        let is_scalar = ty.is_index() || mlir::integer_width(ty).is_some() || mlir::is_float(ty);
        let (true, Ok(argument)) = (is_scalar, BlockArgument::try_from(value)) else { continue };
        let uses = mlir::uses(value);
        argument.set_type(mlir::tensor_type(&[], ty));
        let scalar = Builder::before(mlir::ops(body)[0]).value("tensor.extract", &[value], ty);
        for (user, operand) in uses {
            mlir::set_operand(user, operand, scalar);
        }
    }
    let inputs: Vec<Type> = mlir::arguments(body).iter().map(|it| it.r#type()).collect();
    let ty = FunctionType::new(context, &inputs, &results).into();
    mlir::set_attribute(function, "function_type", TypeAttribute::new(ty).into());
}

impl<'c> TensorFunction<'c> {
    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the results.
    pub fn result_names(&self) -> &[String] {
        &self.result_names
    }

    fn op(&self) -> Op<'c> {
        named(&self.module, &self.name)
    }

    /// The function as fused operations.
    ///
    /// # Errors
    /// A pass failed.
    pub fn lower(&self, options: &Options) -> Result<Module<'c>, Error> {
        fuse(copy(&self.module)?, options)
    }

    /// The arguments of a call, in the order of the function: tensors that are given, zeros for
    /// accumulated outputs, and random tensors for the others. `signature` belongs to the compiled
    /// function. `sizes` gets the sizes that follow from the tensors.
    ///
    /// # Errors
    /// A size is missing, unknown or out of range, a tensor does not fit its argument, or a condition on
    /// the sizes does not hold.
    pub fn inputs(
        &self,
        signature: &Signature,
        sizes: &mut Sizes,
        mut given: BTreeMap<String, Tensor>,
        seed: u64,
    ) -> Result<Vec<Tensor>, Error> {
        let arguments: Vec<_> =
            signature.arguments.iter().filter(|it| it.role != Role::Output).collect();
        let values = mlir::body(self.op(), 0).map(mlir::arguments).unwrap_or_default();
        let is_index = |value: &Val| mlir::element_type(value.r#type()).is_index();
        let indices = arguments.iter().zip(&values).filter(|(argument, value)| {
            is_index(value) && argument.shape.is_empty() && !given.contains_key(&argument.name)
        });
        let indices: Vec<_> = indices.map(|(argument, _)| argument.name.clone()).collect();
        for argument in &arguments {
            if let Some(tensor) = given.get(&argument.name) {
                infer_sizes(argument, tensor, sizes)?;
            }
        }
        check_sizes(&self.name, &arguments, &indices, sizes)?;
        let extents = arguments.iter().map(|argument| extents(argument, sizes));
        let extents = extents.collect::<Result<Vec<_>, _>>()?;
        self.check_preconditions(sizes)?;
        let known = self.index_values(&arguments, &extents, sizes);
        let ranges = known.element_ranges(self.op());
        let mut tensors = Vec::new();
        for (number, (argument, extents)) in arguments.iter().zip(&extents).enumerate() {
            let shape: Vec<_> = extents.iter().map(|extent| *extent as usize).collect();
            let tensor = match (given.remove(&argument.name), sizes.get(&argument.name)) {
                (Some(tensor), _) => tensor,
                (None, Some(value)) if indices.contains(&argument.name) => {
                    random(argument.element, &[], seed, Some((*value, *value)))?
                }
                _ if argument.role == Role::InOut => Tensor::zeros(argument.element, &shape)?,
                _ => {
                    let range = ranges.get(&number).copied();
                    if let Some((lower, upper)) = range
                        && upper < lower
                    {
                        return Err(Error::Refused(format!(
                            "no element of '{}' is a legal index at these sizes: it would have to be at \
                             least {lower} and at most {upper}",
                            argument.name
                        )));
                    }
                    random(argument.element, &shape, seed.wrapping_add(number as u64), range)?
                }
            };
            if (tensor.element(), tensor.shape()) != (argument.element, shape.as_slice()) {
                return Err(Error::Refused(format!(
                    "'{}' is a tensor of {} with extents {:?}, but the program takes {} with {shape:?}",
                    argument.name,
                    tensor.element(),
                    tensor.shape(),
                    argument.element
                )));
            }
            tensors.push(tensor);
        }
        match given.keys().next() {
            None => Ok(tensors),
            Some(name) => Err(Error::Usage(format!("'{}' has no argument '{name}'", self.name))),
        }
    }

    fn index_values(
        &self,
        arguments: &[&Argument],
        extents: &[Vec<i64>],
        sizes: &Sizes,
    ) -> IndexValues {
        let values = mlir::body(self.op(), 0).map(mlir::arguments).unwrap_or_default();
        let mut known = IndexValues::default();
        for ((value, argument), extents) in values.into_iter().zip(arguments).zip(extents) {
            let scalar = if extents.is_empty() { sizes.get(&argument.name).copied() } else { None };
            known.add_argument(value, extents.clone(), scalar);
        }
        known
    }

    /// The conditions on sizes that range inference left to the caller, if the function was made of a
    /// `tc.def`.
    fn check_preconditions(&self, sizes: &Sizes) -> Result<(), Error> {
        let ir = tc_ir::Context::new();
        for attribute in mlir::array_attr(self.op(), "tc.preconditions") {
            let get = |name: &str| mlir::dictionary_entry(attribute, name);
            let condition = get("condition").and_then(|it| imap::map::from_attribute(&ir, it));
            let Some(condition) = condition.filter(|_| get("guarded").is_none()) else { continue };
            let value = |number: usize| Some(*sizes.get(&*size_name(&condition, number)?)?);
            let values: Option<Vec<_>> = (0..condition.runtimes.len()).map(value).collect();
            if let Some(values) = values
                && condition.satisfies_constraints(&ir, &[], &[], &values) != Ok(true)
            {
                let text = |name: &str| get(name).and_then(mlir::string_of).unwrap_or_default();
                return Err(Error::Refused(format!(
                    "precondition of '{}' does not hold: {} (so that '{}' is in bounds)",
                    self.name,
                    text("text"),
                    text("access")
                )));
            }
        }
        Ok(())
    }

    /// Runs the reference interpreter on the function, before any optimization.
    ///
    /// # Errors
    /// The interpreter's.
    pub fn interpret(&self, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        Ok(interp::run(self.op(), inputs)?)
    }

    /// Calls the compiled function with the tensors that [`inputs`](Self::inputs) gives, and returns
    /// its results. Where their extents do not follow from the signature, a second function is compiled
    /// that computes them.
    ///
    /// # Errors
    /// The call fails, or no code can be generated.
    pub fn call(
        &self,
        function: Function,
        inputs: &[Tensor],
        backend: &dyn Backend,
        options: &Options,
    ) -> Result<Vec<Tensor>, Error> {
        let arguments = function.signature().arguments.iter();
        let roles = arguments.map(|it| it.role).filter(|it| *it != Role::Output);
        let (contents, read): (Vec<_>, Vec<_>) =
            inputs.iter().zip(roles).partition(|(_, role)| *role == Role::InOut);
        let [read, contents] =
            [read, contents].map(|it| it.into_iter().map(|(it, _)| it).collect::<Vec<_>>());
        match function.run(&[read.as_slice(), contents.as_slice()].concat()) {
            Err(CallError::UnknownShape(_)) => {}
            result => return Ok(result?),
        }
        let mut contents = contents.into_iter();
        let mut results = Vec::new();
        for (number, shape) in
            function.signature().outputs().into_iter().zip(self.shapes(inputs, backend, options)?)
        {
            let argument = &function.signature().arguments[number];
            results.push(match argument.role {
                Role::InOut => contents.next().expect("one tensor per accumulated output").clone(),
                _ => Tensor::zeros(argument.element, &shape)?,
            });
        }
        function.call(&read, &mut results)?;
        Ok(results)
    }

    /// The extents of the results, computed by a function that returns these instead.
    fn shapes(
        &self,
        inputs: &[Tensor],
        backend: &dyn Backend,
        options: &Options,
    ) -> Result<Vec<Vec<usize>>, Error> {
        let mut module = copy(&self.module)?;
        let function = named(&module, &self.name);
        let ranks = return_extents(function);
        run_pipeline(
            &mut module,
            "canonicalize,resolve-ranked-shaped-type-result-dims,canonicalize,cse",
        )?;
        let compiled = backend.compile(&module, &options.codegen)?.load()?;
        let function = compiled.function(&self.name).expect("the function of the module");
        let extents = function.run(&inputs.iter().collect::<Vec<_>>())?;
        let mut extents = extents.iter().map(|it| it.get(0).map_or(0, |it| it.to_f64() as usize));
        Ok(ranks.into_iter().map(|rank| extents.by_ref().take(rank).collect()).collect())
    }
}

/// Lets a function return the extents of its results, a tensor for each, and forget which arguments
/// are accumulated into. Returns the ranks of the results.
fn return_extents(function: Op) -> Vec<usize> {
    let Some(body) = mlir::body(function, 0) else { return Vec::new() };
    let context = mlir::context_of(function);
    let returned = mlir::terminator(body);
    let b = Builder::before(returned);
    let ty = mlir::tensor_type(&[], b.int_type(64));
    let mut extents = Vec::new();
    let mut ranks = Vec::new();
    for result in mlir::operands(returned) {
        let rank = mlir::shape(result.r#type()).len();
        ranks.push(rank);
        for dim in 0..rank {
            let extent = b.value("arith.index_cast", &[b.dim(result, dim)], b.int_type(64));
            extents.push(b.value("tensor.from_elements", &[extent], ty));
        }
    }
    b.op("func.return", &extents, &[]);
    mlir::erase(returned);
    let inputs: Vec<_> = mlir::arguments(body).iter().map(|it| it.r#type()).collect();
    let ty = FunctionType::new(context, &inputs, &vec![ty; extents.len()]).into();
    mlir::set_attribute(function, "function_type", TypeAttribute::new(ty).into());
    mlir::remove_attribute(function, "res_attrs");
    mlir::remove_attribute(function, "arg_attrs");
    ranks
}

/// The tensors `NAME.npy` in a folder, for the arguments of a function that are only read.
///
/// # Errors
/// The folder cannot be read, or a file is not a tensor.
pub fn read_inputs(
    signature: &Signature,
    folder: &Path,
) -> Result<BTreeMap<String, Tensor>, Error> {
    std::fs::read_dir(folder)
        .map_err(|error| Error::File { path: folder.display().to_string(), error })?;
    let mut tensors = BTreeMap::new();
    for argument in signature.arguments.iter().filter(|it| it.role == Role::Input) {
        let path = folder.join(format!("{}.npy", argument.name));
        if path.exists() {
            tensors.insert(argument.name.clone(), npy::load(&path)?);
        }
    }
    Ok(tensors)
}

/// The name of a size variable in a map over sizes.
fn size_name(map: &IndexingMap, number: usize) -> Option<String> {
    map.runtimes.get(number)?.name.as_ref().map(ToString::to_string)
}

/// The name of the size of a dimension, if it is not computed from others.
fn name_of(argument: &Argument, dim: usize) -> Option<String> {
    match &argument.shape[dim] {
        Extent::Constant(_) | Extent::Computed(_) => None,
        Extent::Size(name) => Some(name.clone()),
        Extent::Unknown => Some(argument.extent_name(dim)),
    }
}

/// Adds the sizes that the shape of an argument determines.
fn infer_sizes(argument: &Argument, tensor: &Tensor, sizes: &mut Sizes) -> Result<(), Error> {
    let (name, shape) = (&argument.name, tensor.shape());
    if shape.len() != argument.shape.len() {
        return Err(Error::Refused(format!(
            "input '{name}' has {} dimensions, but the program gives it {}",
            shape.len(),
            argument.shape.len()
        )));
    }
    for (dim, extent) in shape.iter().enumerate() {
        let Some(size) = name_of(argument, dim) else { continue };
        let extent = i64::try_from(*extent).unwrap_or(i64::MAX);
        let expected = *sizes.entry(size.clone()).or_insert(extent);
        if expected != extent {
            return Err(Error::Refused(format!(
                "dimension {dim} of input '{name}' is {extent}, but size '{size}' says {expected}"
            )));
        }
    }
    Ok(())
}

/// Checks that every size and the value of every index is given, and nothing else.
fn check_sizes(
    function: &str,
    arguments: &[&Argument],
    indices: &[String],
    sizes: &Sizes,
) -> Result<(), Error> {
    let mut names: Vec<String> = Vec::new();
    for argument in arguments {
        for dim in 0..argument.shape.len() {
            names.extend(name_of(argument, dim).filter(|name| !names.contains(name)));
        }
    }
    names.extend(indices.iter().cloned());
    for (name, value) in sizes {
        if !names.contains(name) {
            let list = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            return Err(Error::Usage(format!(
                "'{function}' has no size '{name}'; its sizes are: {list}"
            )));
        }
        // Size variables of comprehensions are positive.
        let is_variable = |extent: &Extent| matches!(extent, Extent::Size(size) if size == name);
        let least = i64::from(arguments.iter().any(|it| it.shape.iter().any(is_variable)));
        if !indices.contains(name) && !(least..=MAX_EXTENT).contains(value) {
            return Err(Error::Usage(format!(
                "size {name}={value} is not between {least} and {MAX_EXTENT}"
            )));
        }
    }
    let missing: Vec<_> =
        names.iter().filter(|name| !sizes.contains_key(*name)).map(String::as_str).collect();
    if missing.is_empty() { Ok(()) } else { Err(try_size(&missing)) }
}

/// The extents of an argument at given sizes.
fn extents(argument: &Argument, sizes: &Sizes) -> Result<Vec<i64>, Error> {
    let computed = match &argument.extents {
        Some(formulas) => formulas.evaluate(sizes),
        None => Some(Vec::new()),
    };
    let extent = |(dim, extent): (usize, &Extent)| match extent {
        Extent::Constant(extent) => i64::try_from(*extent).ok(),
        Extent::Computed(dim) => computed.as_ref()?.get(*dim).copied().filter(|it| 0 <= *it),
        _ => sizes.get(&name_of(argument, dim)?).copied(),
    };
    let extents: Option<Vec<_>> = argument.shape.iter().enumerate().map(extent).collect();
    extents.ok_or_else(|| {
        Error::Refused(format!("the extents of '{}' cannot be computed", argument.name))
    })
}
