//! TC: a file of `tc.def` operations, with symbolic sizes until a request gives them.

use super::imap::{TO_IMAP, copy};
use crate::{
    interp::{self, Outcome},
    program::{self, Entry, Error, Id, Lowered, Parameter, Request, Sizes, missing_sizes, select},
    runtime::{ElementType, Tensor},
    upstream,
};
use melior::{
    Context,
    ir::{Module, ValueLike},
};
use tc_dialects::{
    Language, mlir, report,
    tc::{Def, Size},
};
use tc_ir::{Var, map::IndexingMap};
use tc_passes::{
    analysis::{element_ranges::element_ranges, linalg},
    run_pipeline,
};

/// A file whose ranges are inferred.
pub struct Program<'c> {
    id: Id,
    context: &'c Context,
    source: Module<'c>,
    inferred: Module<'c>,
}

impl<'c> Program<'c> {
    /// Infers the ranges of a module of `tc.def` operations. `explain` prints the rounds of inference.
    ///
    /// # Errors
    /// Inference failed, which the diagnostics of the context explain.
    pub fn new(context: &'c Context, source: Module<'c>, explain: bool) -> Result<Self, Error> {
        let mut inferred = copy(&source)?;
        run_pipeline(&mut inferred, &format!("tc-infer-ranges{{explain={explain}}}"))?;
        Ok(Self { id: Id::new(), context, source, inferred })
    }

    /// The function of a name; without one, the only function.
    ///
    /// # Errors
    /// It does not exist, or a name is required.
    pub fn def(&self, name: Option<&str>) -> Result<Def<'c>, Error> {
        let defs = defs(&self.inferred);
        let names: Vec<_> = defs.iter().map(|def| def.name()).collect();
        select(name, &defs, &names)
    }

    /// The sizes that a request gives, also by the shapes of inputs. Others may be missing.
    fn known_sizes(&self, def: Def<'c>, request: &Request) -> Result<Sizes, Error> {
        let mut sizes = request.sizes.clone();
        for parameter in def.parameters() {
            let Some(shape) = request.extents(parameter.name).filter(|_| !parameter.inout) else {
                continue;
            };
            if shape.len() != parameter.sizes.len() {
                return Err(Error::Rejected(format!(
                    "input '{}' has {} dimensions, but the program gives it {}",
                    parameter.name,
                    shape.len(),
                    parameter.sizes.len()
                )));
            }
            for (dim, (size, extent)) in parameter.sizes.iter().zip(shape).enumerate() {
                let (what, expected) = match size {
                    Size::Constant(constant) => ("the program".to_string(), *constant),
                    Size::Variable(name) => {
                        (format!("size '{name}'"), *sizes.entry(name.to_string()).or_insert(extent))
                    }
                };
                if expected != extent {
                    return Err(Error::Rejected(format!(
                        "dimension {dim} of input '{}' is {extent}, but {what} says {expected}",
                        parameter.name
                    )));
                }
            }
        }
        check_given_sizes(def, &sizes)?;
        Ok(sizes)
    }

    fn entry_of(&self, def: Def<'c>, sizes: Sizes) -> Result<Entry, Error> {
        check_all_sizes(def, &sizes)?;
        let ir = tc_ir::Context::new();
        let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
        let evaluate = |map: Option<IndexingMap>| -> Result<Vec<i64>, Error> {
            let map =
                map.ok_or_else(|| Error::Rejected("the function has no ranges".to_string()))?;
            evaluate(&ir, &map, &names, &sizes)
        };
        let types = mlir::operands(def.terminator()).into_iter().map(|value| value.r#type());
        let mut outputs = Vec::new();
        for ((number, name), ty) in def.outputs().iter().enumerate().zip(types) {
            let extents = evaluate(def.output_extents(&ir, number))?;
            let extents: Vec<_> = extents.into_iter().map(|it| it.max(0) as usize).collect();
            let mut output = Parameter::stored(*name, element_of(ty)?, &extents);
            output.origin = evaluate(def.output_origins(&ir, number))?;
            outputs.push(output);
        }
        let ranges = element_ranges(def, &sizes);
        let mut inputs = Vec::new();
        for parameter in def.parameters() {
            let extents = if parameter.inout {
                let output = outputs.iter().find(|it| it.name == parameter.name);
                output.and_then(|it| it.shape.clone()).expect("verified by tc.def")
            } else {
                let size = |size: &Size| match size {
                    Size::Constant(extent) => *extent as usize,
                    Size::Variable(name) => sizes[*name] as usize,
                };
                parameter.sizes.iter().map(size).collect()
            };
            let element = element_of(parameter.value.r#type())?;
            let mut input = Parameter::stored(parameter.name, element, &extents);
            input.is_accumulated = parameter.inout;
            input.range = ranges.get(parameter.name).copied();
            inputs.push(input);
        }
        Ok(Entry { name: def.name().to_string(), inputs, outputs, sizes })
    }
}

impl<'c> program::Program<'c> for Program<'c> {
    fn id(&self) -> Id {
        self.id
    }

    fn language(&self) -> Language {
        Language::Tc
    }

    fn entries(&self) -> Vec<String> {
        defs(&self.inferred).iter().map(|def| def.name().to_string()).collect()
    }

    fn inputs(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        let parameters = self.def(entry)?.parameters();
        Ok(parameters.into_iter().map(|it| it.name.to_string()).collect())
    }

    fn sizes(&self, entry: Option<&str>) -> Result<Vec<String>, Error> {
        Ok(self.def(entry)?.sizes().into_iter().map(|(name, ..)| name.to_string()).collect())
    }

    fn entry(&self, request: &Request) -> Result<Entry, Error> {
        let def = self.def(request.entry.as_deref())?;
        self.entry_of(def, self.known_sizes(def, request)?)
    }

    /// Without an entry and sizes, a dynamic request lowers all functions.
    fn lower(&self, request: &Request) -> Result<Lowered<'c>, Error> {
        upstream::check_types(&self.source).ok_or_else(Error::diagnosed)?;
        let mut module = copy(&self.source)?;
        let mut passes = Vec::new();
        let mut function = String::new();
        let is_whole = request.dynamic && request.entry.is_none() && request.sizes.is_empty();
        if is_whole {
            linalg::report_kept(mlir::op_ref(module.as_operation()));
            if let [def] = defs(&module)[..] {
                function = def.name().to_string();
            }
        } else {
            let def = self.def(request.entry.as_deref())?;
            let sizes = self.known_sizes(def, request)?;
            let is_known = |(name, ..): &(&str, _, _)| sizes.contains_key(*name);
            if !request.dynamic || !sizes.is_empty() && def.sizes().iter().all(is_known) {
                check_all_sizes(def, &sizes)?;
            }
            function = def.name().to_string();
            // The sizes belong to one function, so the other functions are erased.
            for other in defs(&module).into_iter().filter(|it| it.name() != function) {
                mlir::erase(other.op());
            }
            // Nothing else may come before inference: reads that are never performed bound variables too.
            let pairs: Vec<_> =
                sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
            if !pairs.is_empty() {
                passes.push(format!("tc-specialize-sizes{{sizes=\"{}\"}}", pairs.join(",")));
            }
        }
        passes.extend([
            "tc-infer-ranges".to_string(),
            format!("tc-runtime-checks{{kind={}}}", request.kind_of_checks()),
            format!("convert-tc-to-imap,{TO_IMAP},canonicalize,cse"),
        ]);
        passes.extend(request.fusion());
        // The warnings of inference have been reported when the file was opened.
        let silence = report::collect(self.context);
        let result = run_pipeline(&mut module, &passes.join(","));
        self.context.detach_diagnostic_handler(silence.0);
        if result.is_err() {
            for error in silence.1.borrow().iter().filter(|it| it.is_error()) {
                error.report(self.context).emit();
            }
        }
        result?;
        Ok(Lowered::plain(module, function))
    }

    fn interpret(&self, request: &Request, inputs: &[Tensor]) -> Result<Vec<Outcome>, Error> {
        Ok(interp::run(self.def(request.entry.as_deref())?.op(), inputs)?)
    }
}

/// The `tc.def` operations of a module.
pub(crate) fn defs<'c>(module: &Module<'c>) -> Vec<Def<'c>> {
    mlir::ops(mlir::block_ref(module.body())).into_iter().filter_map(Def::cast).collect()
}

fn element_of(ty: melior::ir::Type) -> Result<ElementType, Error> {
    let element = mlir::element_type(ty);
    ElementType::of(element, mlir::is_unsigned(element))
        .ok_or_else(|| Error::Rejected(format!("tensors of '{element}' have no form in memory")))
}

/// Evaluates the results of a map over sizes.
fn evaluate(
    ir: &tc_ir::Context,
    map: &IndexingMap,
    names: &[&str],
    sizes: &Sizes,
) -> Result<Vec<i64>, Error> {
    let value = |var| match var {
        Var::Runtime(number) => sizes.get(*names.get(number as usize)?).copied(),
        _ => None,
    };
    ir.eval_all(&map.results, &value)
        .map_err(|error| Error::Rejected(format!("an extent cannot be computed: {error}")))
}

/// Checks that no size is missing, and the conditions on sizes.
fn check_all_sizes(def: Def, sizes: &Sizes) -> Result<(), Error> {
    let names = def.sizes().into_iter().map(|(name, ..)| name);
    let missing: Vec<_> = names.filter(|name| !sizes.contains_key(*name)).collect();
    if missing.is_empty() { check_preconditions(def, sizes) } else { Err(missing_sizes(&missing)) }
}

/// Checks the sizes that are given; others may be missing.
fn check_given_sizes(def: Def, sizes: &Sizes) -> Result<(), Error> {
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    for (name, value) in sizes {
        if names.is_empty() {
            return Err(Error::Usage(format!(
                "'{}' has no size variables, but '{name}' is given",
                def.name()
            )));
        }
        if !names.contains(&name.as_str()) {
            return Err(Error::Usage(format!(
                "'{}' has no size variable '{name}'; it has: {}",
                def.name(),
                names.join(", ")
            )));
        }
        if !(1..=tc_dialects::imap::MAX_EXTENT).contains(value) {
            return Err(Error::Usage(format!(
                "size {name}={value} is not between 1 and {}",
                tc_dialects::imap::MAX_EXTENT
            )));
        }
    }
    Ok(())
}

/// The conditions at entry: no range is empty, and what inference left to the caller holds.
fn check_preconditions(def: Def, sizes: &Sizes) -> Result<(), Error> {
    let ir = tc_ir::Context::new();
    let names: Vec<_> = def.sizes().into_iter().map(|(name, ..)| name).collect();
    let values: Vec<_> = names.iter().map(|name| sizes[*name]).collect();
    let with: Vec<_> =
        names.iter().zip(&values).map(|(name, value)| format!("{name}={value}")).collect();
    let with = with.join(", ");
    for statement in def.comprehensions() {
        let Some(domain) = statement.domain(&ir) else { continue };
        let variables = statement.index_vars().into_iter().chain(statement.reduction_vars());
        for (name, variable) in variables.zip(domain.dims.iter().chain(&domain.ranges)) {
            let bound = |bound: Option<tc_ir::Expr>| {
                let value = |var| match var {
                    Var::Runtime(number) => values.get(number as usize).copied(),
                    _ => None,
                };
                bound.and_then(|bound| ir.eval(bound, &value).ok())
            };
            let (Some(lower), Some(upper)) = (bound(variable.lower), bound(variable.upper)) else {
                return Err(Error::Rejected(format!(
                    "the range of '{name}' cannot be computed with {with}"
                )));
            };
            if upper < lower {
                return Err(Error::Rejected(format!(
                    "the range of '{name}' in the definition of '{}' is empty with {with}: {lower} <= {name} < {}",
                    statement.target(),
                    upper + 1
                )));
            }
        }
    }
    for precondition in def.preconditions() {
        if precondition.data || precondition.guarded {
            continue;
        }
        let condition = precondition
            .condition
            .and_then(|condition| tc_dialects::imap::map::from_attribute(&ir, condition));
        let holds = condition
            .is_none_or(|map| map.satisfies_constraints(&ir, &[], &[], &values) == Ok(true));
        if !holds {
            return Err(Error::Rejected(format!(
                "precondition of '{}' does not hold: {} (so that '{}' is in bounds), with {with}",
                def.name(),
                precondition.text,
                precondition.access
            )));
        }
    }
    Ok(())
}
