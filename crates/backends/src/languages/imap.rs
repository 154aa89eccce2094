//! Functions on tensors in MLIR: a `func.func` of `imap`, `arith`, `tensor` and `scf` operations.
//!
//! Unlike a `tc.def`, such a function is compiled once for all sizes. A size is known by the name in
//! `tc.sizes` of an argument, or as `NAME.DIM`, a dimension of an argument. An argument is known by
//! `tc.name` or as `arg0`, `arg1`, ..; a result by `tc.name` or as `out0`, `out1`, .. A scalar argument
//! is passed as a tensor without dimensions; the value of an `index` is given like a size. Complex numbers are
//! passed as two tensors.

use crate::{
    backend::{Argument, Extent, Role, inputs_of, report_type},
    interp::{self, Outcome},
    program::{self, Entry, Error, Id, Lowered, Parameter, Request, Sizes, missing_sizes, select},
    runtime::{ElementType, Tensor},
    upstream,
};
use melior::{
    Context,
    ir::{
        Module, Type, TypeLike, ValueLike, attribute::TypeAttribute, block::BlockArgument,
        r#type::FunctionType,
    },
};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};
use tc_dialects::{
    Language,
    imap::{self, MAX_EXTENT},
    mlir::{self, Builder, Op},
};
use tc_ir::IndexingMap;
use tc_passes::{
    analysis::{index_values::IndexValues, linalg},
    run_pipeline,
};

/// The passes that make `imap` operations of what MLIR's own dialects compute elementwise or in loops.
pub(crate) const TO_IMAP: &str = "func.func(convert-elementwise-to-linalg,convert-linalg-to-imap)";

pub(crate) fn copy<'c>(module: &Module<'c>) -> Result<Module<'c>, Error> {
    Module::from_operation((*module.as_operation()).clone()).ok_or_else(Error::diagnosed)
}

/// A module of functions on tensors.
pub struct Program<'c> {
    id: Id,
    source: Module<'c>,
    /// The functions that have been prepared to be called.
    prepared: RefCell<BTreeMap<String, Rc<Function<'c>>>>,
}

/// A function that is prepared to be called: its arguments are tensors without complex elements.
struct Function<'c> {
    /// A module with the function, and those that it calls.
    module: Module<'c>,
    arguments: Vec<Argument>,
}

impl<'c> Program<'c> {
    /// A program of a module.
    ///
    /// # Errors
    /// The module has no function.
    pub fn new(context: &'c Context, source: Module<'c>) -> Result<Self, Error> {
        // Operations of these dialects are added to functions.
        for dialect in ["arith", "tensor"] {
            context.get_or_load_dialect(dialect);
        }
        if functions(&source).is_empty() {
            return Err(Error::Rejected(
                "the file has no function to compile; expected 'tc.def' or 'func.func' operations, \
                 such as 'tc-opt' writes with --fuse, --convert-hlo-to-imap or --convert-tml-to-imap"
                    .to_string(),
            ));
        }
        Ok(Self { id: Id::new(), source, prepared: RefCell::default() })
    }

    fn select(&self, name: Option<&str>) -> Result<String, Error> {
        let names = program::Program::entries(self);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        Ok(select(name, &names, &names)?.to_string())
    }

    fn prepared(&self, name: &str) -> Result<Rc<Function<'c>>, Error> {
        if let Some(function) = self.prepared.borrow().get(name) {
            return Ok(Rc::clone(function));
        }
        let mut module = copy(&self.source)?;
        keep(&module, name);
        linalg::report_kept(named(&module, name));
        mlir::remove_attribute(named(&module, name), "sym_visibility");
        // Calls pass complex numbers in two parts.
        run_pipeline(&mut module, "split-complex")?;
        let function = named(&module, name);
        pass_scalars_as_tensors(function);
        let arguments = inputs_of(function).ok_or_else(Error::diagnosed)?;
        let function = Rc::new(Function { module, arguments });
        self.prepared.borrow_mut().insert(name.to_string(), Rc::clone(&function));
        Ok(function)
    }
}

impl<'c> program::Program<'c> for Program<'c> {
    fn id(&self) -> Id {
        self.id
    }

    fn language(&self) -> Language {
        Language::Mlir
    }

    fn entries(&self) -> Vec<String> {
        let functions = functions(&self.source);
        // Private functions are for the others, if there are others.
        let mut names: Vec<_> =
            functions.iter().filter(|it| !mlir::is_private(**it)).map(|it| symbol(*it)).collect();
        if names.is_empty() {
            names = functions.into_iter().map(symbol).collect();
        }
        names.into_iter().map(str::to_string).collect()
    }

    fn inputs(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        let function = self.prepared(&self.select(entry)?)?;
        Ok(function.arguments.iter().map(|it| it.name.clone()).collect())
    }

    fn sizes(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        Ok(size_names(&self.prepared(&self.select(entry)?)?.arguments))
    }

    fn entry(&self, request: &Request) -> Result<Entry, Error> {
        let name = self.select(request.entry.as_deref())?;
        let Function { module, arguments } = &*self.prepared(&name)?;
        let function = named(module, &name);
        let values = mlir::body(function, 0).map(mlir::arguments).unwrap_or_default();
        let mut sizes = request.sizes.clone();
        let mut indices = Vec::new();
        for (argument, value) in arguments.iter().zip(&values) {
            match request.extents(&argument.name) {
                Some(shape) if argument.role == Role::Input => {
                    infer_sizes(argument, &shape, &mut sizes)?;
                }
                None if argument.shape.is_empty()
                    && mlir::element_type(value.r#type()).is_index() =>
                {
                    indices.push(argument.name.clone());
                }
                _ => {}
            }
        }
        check_sizes(&name, arguments, &indices, &sizes)?;
        let extents = arguments.iter().map(|argument| extents(argument, &sizes));
        let extents = extents.collect::<Result<Vec<_>, _>>()?;
        check_preconditions(function, &sizes)?;
        let mut known = IndexValues::default();
        for ((value, argument), extents) in values.iter().zip(arguments).zip(&extents) {
            let scalar = if extents.is_empty() { sizes.get(&argument.name).copied() } else { None };
            known.add_argument(*value, extents.clone(), scalar);
        }
        let ranges = known.element_ranges(function);
        let mut inputs = Vec::new();
        for (number, (argument, extents)) in arguments.iter().zip(&extents).enumerate() {
            let shape: Vec<_> = extents.iter().map(|extent| *extent as usize).collect();
            let mut input = Parameter::stored(&argument.name, argument.element, &shape);
            input.is_accumulated = argument.role == Role::InOut;
            input.range = match sizes.get(&argument.name) {
                Some(value) if indices.contains(&argument.name) => Some((*value, *value)),
                _ => ranges.get(&number).copied(),
            };
            inputs.push(input);
        }
        let attributes = mlir::array_attr(function, "res_attrs");
        let (_, results) = mlir::function_type(function).unwrap_or_default();
        let output = |(number, ty): (usize, &Type)| {
            let name = attributes.get(number).and_then(|it| mlir::dictionary_entry(*it, "tc.name"));
            let name = name.and_then(mlir::string_of).filter(|name| !name.is_empty());
            let name = name.map_or_else(|| format!("out{number}"), str::to_string);
            let element = ElementType::of(*ty, false).ok_or_else(|| {
                report_type(function, "a result", *ty);
                Error::diagnosed()
            })?;
            Ok(Parameter { shape: None, ..Parameter::stored(name, element, &[]) })
        };
        let outputs = results.iter().enumerate().map(output).collect::<Result<_, Error>>()?;
        Ok(Entry { name, inputs, outputs, sizes })
    }

    /// Without an entry, all functions are lowered.
    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error> {
        upstream::check_types(&self.source).ok_or_else(Error::diagnosed)?;
        let function = match (&request.entry, self.select(None)) {
            (None, Err(_)) => String::new(),
            (entry, _) => self.select(entry.as_deref())?,
        };
        let mut module = match function.is_empty() {
            true => {
                linalg::report_kept(mlir::op_ref(self.source.as_operation()));
                let module = copy(&self.source)?;
                for name in program::Program::entries(self) {
                    mlir::remove_attribute(named(&module, &name), "sym_visibility");
                }
                module
            }
            false => copy(&self.prepared(&function)?.module)?,
        };
        let mut passes = vec![format!("{TO_IMAP},canonicalize,cse")];
        passes.extend(request.fusion());
        run_pipeline(&mut module, &passes.join(","))?;
        Ok(Lowered::plain(module, function))
    }

    fn interpret(&self, request: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        let name = self.select(request.entry.as_deref())?;
        Ok(interp::run(named(&self.prepared(&name)?.module, &name), inputs)?)
    }
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
                if let Some(callee) = mlir::callee(op)
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

/// Checks the conditions on sizes that range inference left to the caller, if the function was made of a `tc.def`.
fn check_preconditions(function: Op, sizes: &Sizes) -> Result<(), Error> {
    let ir = tc_ir::Context::new();
    for attribute in mlir::array_attr(function, "tc.preconditions") {
        let get = |name: &str| mlir::dictionary_entry(attribute, name);
        let condition = get("condition").and_then(|it| imap::map::from_attribute(&ir, it));
        let Some(condition) = condition.filter(|_| get("guarded").is_none()) else { continue };
        let value = |number: usize| Some(*sizes.get(&*size_name(&condition, number)?)?);
        let values: Option<Vec<_>> = (0..condition.runtimes.len()).map(value).collect();
        if let Some(values) = values
            && condition.satisfies_constraints(&ir, &[], &[], &values) != Ok(true)
        {
            let text = |name: &str| get(name).and_then(mlir::string_of).unwrap_or_default();
            return Err(Error::Rejected(format!(
                "precondition of '{}' does not hold: {} (so that '{}' is in bounds)",
                symbol(function),
                text("text"),
                text("access")
            )));
        }
    }
    Ok(())
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

/// The names of the sizes of arguments.
fn size_names(arguments: &[Argument]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for argument in arguments {
        for dim in 0..argument.shape.len() {
            names.extend(name_of(argument, dim).filter(|name| !names.contains(name)));
        }
    }
    names
}

/// Adds the sizes that the shape of an argument determines.
fn infer_sizes(argument: &Argument, shape: &[i64], sizes: &mut Sizes) -> Result<(), Error> {
    let name = &argument.name;
    if shape.len() != argument.shape.len() {
        return Err(Error::Rejected(format!(
            "input '{name}' has {} dimensions, but the program gives it {}",
            shape.len(),
            argument.shape.len()
        )));
    }
    for (dim, extent) in shape.iter().enumerate() {
        let Some(size) = name_of(argument, dim) else { continue };
        let expected = *sizes.entry(size.clone()).or_insert(*extent);
        if expected != *extent {
            return Err(Error::Rejected(format!(
                "dimension {dim} of input '{name}' is {extent}, but size '{size}' says {expected}"
            )));
        }
    }
    Ok(())
}

/// Checks that every size and the value of every index is given, and nothing else.
fn check_sizes(
    function: &str,
    arguments: &[Argument],
    indices: &[String],
    sizes: &Sizes,
) -> Result<(), Error> {
    let mut names = size_names(arguments);
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
    if missing.is_empty() { Ok(()) } else { Err(missing_sizes(&missing)) }
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
        Error::Rejected(format!("the extents of '{}' cannot be computed", argument.name))
    })
}
