//! What a compiled function takes and gives, read from the attributes that the passes
//! leave on it.

use crate::runtime::ElementType;
use melior::ir::{Attribute, Module, Type, ValueLike, attribute::DictionaryAttribute};
use std::collections::BTreeMap;
use tc_dialects::{imap, mlir};
use tc_ir::{Context, IndexingMap, Var};

/// What becomes of an argument in a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Input,
    /// It is written; what it held before is lost.
    Output,
    /// It is read and written.
    InOut,
}

/// The extent of one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// A constant.
    Constant(usize),
    /// The size variable of this name: all dimensions that have it are equal.
    Size(String),
    /// An expression of size variables: result `index` of the argument's [`extents`](Argument::extents).
    Computed(usize),
    /// Not known from the outside.
    Unknown,
}

/// One argument of a compiled function: a tensor in memory.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name in the source, or `arg<n>`.
    pub name: String,
    /// Whether it is read, written or both.
    pub role: Role,
    /// The number of the result that it receives, unless it is an input.
    pub output: Option<usize>,
    /// The element type.
    pub element: ElementType,
    /// The type of which the elements are the bits, where C has none for it.
    pub bits_of: Option<String>,
    /// One per dimension.
    pub shape: Vec<Extent>,
    /// The extents as expressions over size variables: of an output, if they are known, and of an
    /// input with extents that are no size variables.
    pub extents: Option<Formulas>,
    /// The index of the element stored first, where it is not zero in every dimension.
    pub origins: Option<Formulas>,
}

impl Argument {
    /// The name of the extent of a dimension that has no size variable.
    pub fn extent_name(&self, dim: usize) -> String {
        format!("{}.{dim}", self.name)
    }
}

/// Expressions over size variables: the text of an indexing map whose runtime variables
/// are the size variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formulas {
    text: String,
}

impl Formulas {
    /// The map, and the names of its runtime variables in order.
    ///
    /// # Panics
    /// Never: the text was printed from a map.
    pub fn map(&self, ir: &Context) -> (IndexingMap, Vec<String>) {
        let map = IndexingMap::parse(ir, &self.text).expect("text printed from a map");
        let names = map
            .runtimes
            .iter()
            .enumerate()
            .map(|(number, it)| {
                it.name.as_ref().map_or_else(|| format!("rt{number}"), |name| name.to_string())
            })
            .collect();
        (map, names)
    }

    /// The values for given sizes; `None` where a size is missing or a value does not fit
    /// 64 bits.
    pub fn evaluate(&self, sizes: &BTreeMap<String, i64>) -> Option<Vec<i64>> {
        let ir = Context::new();
        let (map, names) = self.map(&ir);
        let value_of = |var| match var {
            Var::Runtime(number) => sizes.get(names.get(number as usize)?).copied(),
            _ => None,
        };
        ir.eval_all(&map.results, &value_of).ok()
    }
}

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The name of the function.
    pub name: String,
    /// Its arguments: inputs, accumulated outputs, then the other outputs.
    pub arguments: Vec<Argument>,
    /// The messages of its checks; check number `n` has `checks[n - 1]`.
    pub checks: Vec<String>,
}

impl Signature {
    /// The size variables in order of appearance.
    pub fn sizes(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for extent in self.arguments.iter().flat_map(|argument| &argument.shape) {
            if let Extent::Size(name) = extent
                && !found.contains(&name.as_str())
            {
                found.push(name);
            }
        }
        found
    }

    /// Whether the shapes of all outputs follow from the shapes of the inputs.
    pub(crate) fn determines_outputs(&self) -> bool {
        let (outputs, inputs): (Vec<_>, Vec<_>) =
            self.arguments.iter().partition(|it| it.role == Role::Output);
        let is_known = |name: &String| {
            let mut extents = inputs.iter().flat_map(|input| &input.shape);
            extents.any(|it| matches!(it, Extent::Size(size) if size == name))
        };
        let ir = Context::new();
        outputs.into_iter().all(|output| {
            output.shape.iter().all(|extent| match extent {
                Extent::Constant(_) => true,
                Extent::Size(name) => is_known(name),
                Extent::Computed(_) => {
                    let formulas = output.extents.as_ref();
                    formulas.is_some_and(|it| it.map(&ir).1.iter().all(is_known))
                }
                Extent::Unknown => false,
            })
        })
    }

    /// The extents that only the caller knows, by argument and dimension, in the order in which
    /// they are passed.
    pub(crate) fn unknown_extents(&self) -> impl Iterator<Item = (usize, usize)> {
        self.arguments.iter().enumerate().flat_map(|(number, argument)| {
            let dims = argument.shape.iter().enumerate();
            let unknown = dims.filter(|(_, extent)| matches!(extent, Extent::Unknown));
            unknown.map(move |(dim, _)| (number, dim))
        })
    }

    /// The numbers of the arguments that receive results, in order of the results.
    pub fn outputs(&self) -> Vec<usize> {
        let mut found: Vec<_> = self
            .arguments
            .iter()
            .enumerate()
            .filter_map(|(number, argument)| Some((argument.output?, number)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, number)| number).collect()
    }
}

/// The signatures of the functions of a module that others may call, after `convert-results-to-destinations`;
/// `None`, with an error reported, if an element type has no counterpart in memory.
pub(crate) fn read(module: &Module) -> Option<Vec<Signature>> {
    let mut signatures = Vec::new();
    for op in mlir::ops(mlir::block_ref(module.body())) {
        let is_entry = mlir::is(op, "func.func") && !mlir::is_private(op);
        let Some(body) = mlir::body(op, 0).filter(|_| is_entry) else { continue };
        let mut arguments = Vec::new();
        for (number, (value, described)) in described_arguments(op, body).enumerate() {
            let get = |name: &str| described.as_ref().and_then(|it| it.element_by_name(name));
            let argument = mlir::is_memref(value.r#type())
                .then(|| read_argument(number, value, &get))
                .flatten();
            let Some(argument) = argument else {
                let role = if get("tc.output").is_some() { "a result" } else { "an argument" };
                report_type(op, role, value.r#type());
                return None;
            };
            arguments.push(argument);
        }
        signatures.push(Signature {
            name: mlir::string_attr(op, "sym_name").unwrap_or_default().to_string(),
            arguments,
            checks: mlir::strings_attr(op, "tc.checks").into_iter().map(str::to_string).collect(),
        });
    }
    Some(signatures)
}

/// The inputs of a function on tensors, as [`read`] describes them after lowering; `None`, with an error reported, if
/// an element type has no counterpart in memory.
pub(crate) fn inputs_of(function: mlir::Op) -> Option<Vec<Argument>> {
    let results = mlir::array_attr(function, "res_attrs");
    let body = mlir::body(function, 0)?;
    let argument = |(number, (value, described)): (usize, (mlir::Val<'_>, Option<_>))| {
        let described: Option<DictionaryAttribute> = described;
        let own = |name: &str| described.as_ref().and_then(|it| it.element_by_name(name));
        // The result of the same name has the extents of the argument.
        let is_result = |result: &&Attribute| {
            let name = mlir::dictionary_entry(**result, "tc.name");
            name.is_some() && name == own("tc.name")
        };
        let result = own("tc.inout").and_then(|_| results.iter().find(is_result));
        let get = |name: &str| match (own(name), result) {
            (None, Some(result)) => mlir::dictionary_entry(*result, name),
            (own, _) => own,
        };
        let Some(mut argument) = read_argument(number, value, &get) else {
            report_type(function, "an argument", value.r#type());
            return None;
        };
        if result.is_some() {
            argument.role = Role::InOut;
        }
        Some(argument)
    };
    described_arguments(function, body).enumerate().map(argument).collect()
}

/// The arguments of a function with their attributes.
fn described_arguments<'c>(
    function: mlir::Op<'c>,
    body: mlir::Blk<'c>,
) -> impl Iterator<Item = (mlir::Val<'c>, Option<DictionaryAttribute<'c>>)> {
    let attributes = mlir::array_attr(function, "arg_attrs");
    let described = move |number: usize| {
        attributes.get(number).and_then(|it| DictionaryAttribute::try_from(*it).ok())
    };
    let values = mlir::arguments(body).into_iter().enumerate();
    values.map(move |(number, value)| (value, described(number)))
}

/// Reports an argument or a result that callers cannot pass.
pub(crate) fn report_type(function: mlir::Op, role: &str, ty: Type) {
    let found = match mlir::element_type(ty) == ty {
        true => format!("{role} of type '{ty}'"),
        false => format!("{role} with elements of type '{}'", mlir::element_type(ty)),
    };
    let names: Vec<_> = ElementType::ALL.iter().map(|it| it.name()).collect();
    let names = names.join(", ");
    let message =
        format!("has {found}, which callers cannot pass; expected tensors or buffers of {names}");
    tc_dialects::report::Report::op_error(function, message).emit();
}

fn read_argument<'c>(
    number: usize,
    value: mlir::Val<'c>,
    get: &dyn Fn(&str) -> Option<Attribute<'c>>,
) -> Option<Argument> {
    let ty = value.r#type();
    let output = get("tc.output").and_then(mlir::integer_of).map(|number| number as usize);
    let role = match (output.is_some(), get("tc.inout").is_some()) {
        (false, _) => Role::Input,
        (true, false) => Role::Output,
        (true, true) => Role::InOut,
    };
    let extents = get("tc.extents").and_then(formulas);
    let sizes = get("tc.sizes").map(mlir::array_of).unwrap_or_default();
    // Sizes that are fixed, and checked when it is called, are those of another type.
    let checked = get("tc.type").and_then(mlir::type_of);
    let shape = mlir::shape(checked.unwrap_or(ty))
        .into_iter()
        .enumerate()
        .map(|(dim, extent)| match (extent, sizes.get(dim).copied().and_then(mlir::string_of)) {
            (Some(extent), _) => Extent::Constant(extent as usize),
            // The head of a function may name an extent that only inference knows.
            (None, _) if output.is_some() && extents.is_some() => Extent::Computed(dim),
            (None, Some(name)) if !name.is_empty() => Extent::Size(name.to_string()),
            (None, _) if extents.is_some() => Extent::Computed(dim),
            (None, _) => Extent::Unknown,
        })
        .collect();
    Some(Argument {
        name: get("tc.name")
            .and_then(mlir::string_of)
            .map_or_else(|| format!("arg{number}"), str::to_string),
        role,
        output,
        element: ElementType::of(ty, get("tc.unsigned").is_some())?,
        bits_of: get("tc.bits_of").and_then(mlir::string_of).map(str::to_string),
        shape,
        extents,
        origins: get("tc.origins").and_then(formulas),
    })
}

fn formulas(attribute: Attribute) -> Option<Formulas> {
    let ir = Context::new();
    let map = imap::map::from_attribute(&ir, attribute)?;
    Some(Formulas { text: map.display(&ir).to_string() })
}
