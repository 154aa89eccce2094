//! `tc-specialize-sizes`: replace size variables by constants.
//!
//! Arguments, the declared sizes of outputs, and every `tc.size` take the constant. Results of
//! statements keep their dynamic types: range inference and conversion find their extents. Other sizes
//! stay variables. A size applies to every function of the module that has a variable of this name.
//!
//! Before, with `sizes="M=512"`:
//!
//! ```mlir
//! tc.def @f(%A: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["M", "K"]}) ..
//! ```
//!
//! After:
//!
//! ```mlir
//! tc.def @f(%A: tensor<512x?xf32> {tc.name = "A", tc.sizes = [512, "K"]}) ..
//! ```
//!
//! Run this pass before `tc-infer-ranges`, because inferred domains name every size variable of their
//! function.

use std::collections::{BTreeMap, BTreeSet};

use melior::ir::{
    Attribute, Location, Type, ValueLike, attribute::DictionaryAttribute, operation::OperationLike,
    r#type::FunctionType,
};
use tc_dialects::{
    imap::MAX_EXTENT,
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
    tc::{Def, Size},
    text::Severity,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "tc-specialize-sizes",
    summary: "Replace size variables of tc.def by constants",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "sizes",
        description: "The sizes, as \"M=512,K=256\"",
        default: "",
    }],
    dependent_dialects: &["arith", "tc"],
    run,
};

type Sizes<'a> = BTreeMap<&'a str, i64>;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    let emit = |report: Report| {
        report.emit();
        Failure
    };
    let at = pass.op.location();
    let sizes = parse_sizes(pass.options.text("sizes"), at).map_err(emit)?;
    let defs: Vec<_> = mlir::ops(block).into_iter().filter_map(Def::cast).collect();
    check_names(&defs, &sizes, at).map_err(emit)?;
    for def in defs {
        pass.enter(def.op());
        specialize(def, &sizes).map_err(emit)?;
    }
    Ok(())
}

fn error<'c>(at: Location<'c>, message: String) -> Report<'c> {
    Report::at(at, Severity::Error, message)
}

/// Reads `M=512,K=256`. The same size twice has to have the same number.
fn parse_sizes<'a, 'c>(text: &'a str, at: Location<'c>) -> Result<Sizes<'a>, Report<'c>> {
    let mut sizes = Sizes::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let parts = entry.split_once('=').map(|(name, number)| (name.trim(), number.trim()));
        let Some((name, number)) = parts.filter(|(name, _)| !name.is_empty()) else {
            return Err(error(at, format!("expected a size as NAME=NUMBER, but found '{entry}'")));
        };
        let extent = number.parse().ok().filter(|extent| (1..=MAX_EXTENT).contains(extent));
        let Some(extent) = extent else {
            let message = format!(
                "expected size '{name}' to be a number from 1 to {MAX_EXTENT}, but found '{number}'"
            );
            return Err(error(at, message));
        };
        if let Some(other) = sizes.insert(name, extent)
            && other != extent
        {
            return Err(error(at, format!("size '{name}' is given as {other} and as {extent}")));
        }
    }
    Ok(sizes)
}

/// The names that stand for sizes in the head of a function.
fn size_names<'c>(def: Def<'c>) -> BTreeSet<&'c str> {
    let asserted = (0..def.outputs().len()).flat_map(|output| def.output_sizes(output));
    let asserted = asserted.filter_map(|size| match size {
        Size::Variable(name) => Some(name),
        Size::Constant(_) => None,
    });
    def.sizes().into_iter().map(|(name, ..)| name).chain(asserted).collect()
}

fn check_names<'c>(defs: &[Def<'c>], sizes: &Sizes, at: Location<'c>) -> Result<(), Report<'c>> {
    let known: BTreeSet<_> = defs.iter().flat_map(|def| size_names(*def)).collect();
    let Some(unknown) = sizes.keys().find(|name| !known.contains(*name)) else { return Ok(()) };
    let report = error(at, format!("no function has a size variable '{unknown}'"));
    if known.is_empty() {
        return Err(report);
    }
    let known: Vec<_> = known.into_iter().map(|name| format!("'{name}'")).collect();
    Err(report.note(None, format!("size variables are {}", known.join(", "))))
}

fn specialize<'c>(def: Def<'c>, sizes: &Sizes) -> Result<(), Report<'c>> {
    if size_names(def).is_disjoint(&sizes.keys().copied().collect()) {
        return Ok(());
    }
    if let Some(statement) = def.comprehensions().iter().find(|it| it.op().has_attribute("domain"))
    {
        let report = Report::op_error(statement.op(), "has a domain already");
        return Err(report.note(None, "try 'tc-specialize-sizes' before 'tc-infer-ranges'"));
    }
    let before = def.sizes().len();
    replace_size_ops(def, sizes);
    set_arguments(def, sizes);
    for group in ["arg_attrs", "res_attrs"] {
        set_size_attributes(def, group, sizes);
    }
    let fixed = (before - def.sizes().len()).to_string();
    let arguments = [("Fixed", fixed.as_str())];
    let at = def.op().location();
    remark(at, RemarkKind::Passed, PASS.argument, "sizes", def.name(), &arguments);
    Ok(())
}

fn replace_size_ops(def: Def, sizes: &Sizes) {
    let mut found: Vec<(Op, i64)> = Vec::new();
    mlir::walk(def.op(), &mut |op| {
        if mlir::is(op, "tc.size")
            && let Some(size) = mlir::string_attr(op, "name").and_then(|name| sizes.get(name))
        {
            found.push((op, *size));
        }
    });
    for (op, size) in found {
        let value = Builder::before(op).index(size);
        mlir::replace(op, &[value]);
    }
}

/// Gives the arguments, and the function, the static types.
fn set_arguments(def: Def, sizes: &Sizes) {
    for parameter in def.parameters() {
        let ty = parameter.value.r#type();
        let mut shape = mlir::shape(ty);
        for (extent, size) in shape.iter_mut().zip(&parameter.sizes) {
            if let Size::Variable(name) = size {
                *extent = sizes.get(name).copied();
            }
        }
        parameter.value.set_type(mlir::tensor_type(&shape, mlir::element_type(ty)));
    }
    let arguments = types_of(&mlir::arguments(def.body()));
    let results = types_of(&mlir::operands(def.terminator()));
    let context = mlir::context_of(def.op());
    let ty: Type = FunctionType::new(context, &arguments, &results).into();
    mlir::set_attribute(def.op(), "function_type", mlir::type_attr(ty));
}

fn types_of<'c>(values: &[Val<'c>]) -> Vec<Type<'c>> {
    values.iter().map(|value| value.r#type()).collect()
}

/// Replaces names by numbers in `tc.sizes` of every argument or result.
fn set_size_attributes(def: Def, group: &str, sizes: &Sizes) {
    let context = mlir::context_of(def.op());
    let new: Vec<_> = mlir::array_attr(def.op(), group)
        .into_iter()
        .map(|attributes| {
            let entry = DictionaryAttribute::try_from(attributes)
                .ok()
                .and_then(|dictionary| dictionary.element_by_name("tc.sizes"));
            let Some(entry) = entry else { return attributes };
            let entries: Vec<Attribute> = mlir::array_of(entry)
                .into_iter()
                .map(|size| match mlir::string_of(size).and_then(|name| sizes.get(name)) {
                    Some(extent) => mlir::i64_attr(context, *extent),
                    None => size,
                })
                .collect();
            let added = [("tc.sizes", mlir::array(context, &entries))];
            mlir::extend_dictionary(context, attributes, &added)
        })
        .collect();
    if !new.is_empty() {
        mlir::set_attribute(def.op(), group, mlir::array(context, &new));
    }
}
