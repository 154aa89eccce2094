//! Imports a checked TC program into the `tc` dialect.
//!
//! One `tc.def` per function and one `tc.comprehension` per statement, as `tc.td` describes
//! them; every operation has the location of the expression that it stands for. What the
//! statements have in common is emitted before the first that needs it: the values of size
//! variables, extents, and the bounds of range clauses.
//!
//! Limits: those of [`super::syntax`], and two for lets that are emitted under conditions,
//! because a let that reads a tensor is evaluated only where it is used: how deep they nest
//! and how large they grow. Beyond them the program is refused with a located error.

mod body;
mod index;
mod read_order;
mod scalar;
#[cfg(test)]
mod tests;

use self::{
    body::{Emitted, Emitter, Scope, dictionary, source_text},
    read_order::{LetForm, Need, ReadOrder, first_variable, outer_reads},
};
use super::{
    Comprehension, Def, ranges,
    syntax::{
        self, Options,
        checked::{Checked, Dim, Equivalent, Expr, Function, Statement},
    },
};
use crate::text::{
    Diagnostic, Reason, SourceFile,
    diagnostic::{MAX_DIAGNOSTICS, similar},
};
use crate::{
    imap::Combiner,
    mlir::{self, Blk, Builder, Val},
    report::{Report, location},
    text::Severity,
};
use melior::{
    Context,
    ir::{
        Attribute, Block, Location, Module, Region, RegionLike, Type, ValueLike,
        r#type::FunctionType,
    },
};
use std::collections::HashMap;

/// The dialects whose operations an imported module has.
const DIALECTS: [&str; 6] = ["tc", "imap", "arith", "scf", "tensor", "func"];

/// Imports the text of a `.tc` file. Errors and warnings are emitted as diagnostics of the
/// context; `None` after an error. `relaxed` is that of [`Options`].
pub fn import<'c>(
    context: &'c Context,
    file_name: &str,
    bytes: &[u8],
    relaxed: bool,
) -> Option<Module<'c>> {
    let source =
        match SourceFile::from_bytes(file_name, bytes.to_vec(), Reason::Syntax, Reason::Limit) {
            Ok(source) => source,
            Err(failure) => {
                let (source, error) = *failure;
                Report::in_source(context, &source, &error).emit();
                return None;
            }
        };
    let (program, mut diagnostics) = syntax::parse_program(&source, &Options { relaxed });
    let mut checked = Checked::default();
    // What the parser left out would be missed by the checks.
    if !diagnostics.iter().any(Diagnostic::is_error) {
        let (functions, found) = syntax::check(&program);
        checked = functions;
        diagnostics.extend(found);
    }
    for diagnostic in &diagnostics {
        Report::in_source(context, &source, diagnostic).emit();
    }
    if diagnostics.iter().any(Diagnostic::is_error) {
        return None;
    }
    match import_program(context, &source, &checked) {
        Ok(module) => Some(module),
        Err(errors) => {
            errors.into_iter().for_each(Report::emit);
            None
        }
    }
}

/// Imports a checked program into a module. The dialects must be registered with the
/// context, see [`register_dialects`](crate::register_dialects).
///
/// # Errors
/// A range clause whose bounds depend on an index variable (TC0105), or a limit (TC0002).
pub fn import_program<'c>(
    context: &'c Context,
    source: &SourceFile,
    checked: &Checked,
) -> Result<Module<'c>, Vec<Report<'c>>> {
    for dialect in DIALECTS {
        context.get_or_load_dialect(dialect);
    }
    let mut errors = Vec::new();
    for function in &checked.functions {
        for statement in &function.statements {
            non_rectangular_ranges(context, source, function, statement, &mut errors);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let module = Module::new(Location::new(context, source.name(), 0, 0));
    for function in &checked.functions {
        let block = mlir::block_ref(module.body());
        import_function(context, source, function, block).map_err(|error| vec![*error])?;
    }
    Ok(module)
}

fn non_rectangular_ranges<'c>(
    context: &'c Context,
    source: &SourceFile,
    function: &Function,
    statement: &Statement,
    errors: &mut Vec<Report<'c>>,
) {
    let at = |span| location(context, source, span);
    let name = |variable: usize| &statement.variables[variable].name;
    for clause in &statement.ranges {
        let used = [&clause.lower, &clause.upper]
            .into_iter()
            .find_map(|bound| first_variable(bound, &statement.lets));
        let Some((variable, place)) = used else { continue };
        let message = format!(
            "the range of '{}' depends on index variable '{}'; ranges are rectangular [{}]",
            name(clause.variable),
            name(variable),
            ranges::Kind::NonRectangular.code(),
        );
        let mut error = Report::at(at(clause.span), Severity::Error, message)
            .note(Some(at(place.span)), format!("'{}' is used here", name(variable)));
        // A misspelled size is an index variable.
        let sizes = function.sizes.iter().map(|size| &*size.name);
        if errors.len() < MAX_DIAGNOSTICS
            && let Some(size) = similar(name(variable), sizes)
        {
            error = error.note(Some(at(place.span)), format!("try '{size}'"));
        }
        errors.push(error);
    }
}

fn import_function<'c>(
    context: &'c Context,
    source: &SourceFile,
    function: &Function,
    module: Blk<'c>,
) -> Emitted<'c, ()> {
    let mut arguments = Vec::new();
    let mut argument_attributes = Vec::new();
    for input in &function.inputs {
        let extents: Vec<_> = input
            .dims
            .iter()
            .map(|dim| match dim {
                Dim::Const(extent) => Some(*extent),
                Dim::Size(_) | Dim::Free(_) => None,
            })
            .collect();
        let element = scalar::element_type(context, input.scalar);
        let ty = mlir::tensor_type(&extents, element);
        arguments.push((ty, location(context, source, input.span)));
        argument_attributes.push(dictionary(
            context,
            &[
                ("tc.name", mlir::string(context, &input.name)),
                ("tc.sizes", sizes_attribute(context, function, &input.dims)),
            ],
        ));
    }
    let mut accumulated = HashMap::new();
    for (number, output) in function.outputs.iter().enumerate() {
        let first = function.statements.iter().find(|statement| statement.tensor == number);
        let Some(first) = first.filter(|statement| statement.accumulates_caller_value()) else {
            continue;
        };
        accumulated.insert(number, arguments.len());
        let location = location(context, source, output.span);
        arguments.push((result_type(context, first), location));
        argument_attributes.push(dictionary(
            context,
            &[
                ("tc.name", mlir::string(context, &output.name)),
                ("tc.inout", Attribute::unit(context)),
            ],
        ));
    }

    let region = Region::new();
    let block = mlir::block_ref(region.append_block(Block::new(&arguments)));
    let values = mlir::arguments(block);
    let mut scope = Scope {
        context,
        source,
        function,
        block,
        inputs: values.clone(),
        results: Vec::new(),
        sizes: HashMap::new(),
        extents: HashMap::new(),
    };
    for statement in &function.statements {
        let before = match statement.previous {
            Some(previous) => Some(scope.results[previous]),
            None => accumulated.get(&statement.tensor).map(|argument| values[*argument]),
        };
        let result = import_statement(&mut scope, statement, before)?;
        scope.results.push(result);
    }
    let results: Vec<_> =
        function.outputs.iter().map(|output| scope.results[output.statement]).collect();
    scope.builder(function.span).op("tc.return", &results, &[]);

    let inputs: Vec<_> = arguments.iter().map(|(ty, _)| *ty).collect();
    let outputs: Vec<_> = results.iter().map(|value| value.r#type()).collect();
    let function_type: Type = FunctionType::new(context, &inputs, &outputs).into();
    let builder = Builder::at_end(context, module, location(context, source, function.name_span));
    builder.op_with(
        Def::NAME,
        &[],
        &[],
        &[
            ("sym_name", mlir::string(context, &function.name)),
            ("function_type", mlir::type_attr(function_type)),
            ("arg_attrs", mlir::array(context, &argument_attributes)),
            ("res_attrs", mlir::array(context, &result_attributes(context, function))),
        ],
        vec![region],
    );
    Ok(())
}

fn result_attributes<'c>(context: &'c Context, function: &Function) -> Vec<Attribute<'c>> {
    function
        .outputs
        .iter()
        .map(|output| {
            let mut entries = vec![("tc.name", mlir::string(context, &output.name))];
            if let Some(dims) = &output.annotation {
                entries.push(("tc.sizes", sizes_attribute(context, function, dims)));
            }
            dictionary(context, &entries)
        })
        .collect()
}

fn sizes_attribute<'c>(context: &'c Context, function: &Function, dims: &[Dim]) -> Attribute<'c> {
    let sizes: Vec<_> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Size(size) => mlir::string(context, &function.sizes[*size].name),
            Dim::Free(name) => mlir::string(context, name),
            Dim::Const(extent) => mlir::i64_attr(context, *extent),
        })
        .collect();
    mlir::array(context, &sizes)
}

/// The type of the result of a statement, whose extents range inference finds.
fn result_type<'c>(context: &'c Context, statement: &Statement) -> Type<'c> {
    mlir::tensor_type(&vec![None; statement.rank], scalar::element_type(context, statement.scalar))
}

/// Emits a statement; `before` is what its tensor holds before, if anything.
fn import_statement<'a, 'c>(
    scope: &mut Scope<'a, 'c>,
    statement: &'a Statement,
    before: Option<Val<'c>>,
) -> Emitted<'c, Val<'c>> {
    let context = scope.context;
    let combiner = match statement.reduction() {
        Some((op, init)) => scalar::combiner(op, init, statement.scalar),
        None => Combiner::ASSIGN,
    };
    let outs = before.filter(|_| combiner.reads_destination());
    // The arguments of the regions: left-hand indices, then reductions as they appear.
    let order: Vec<usize> =
        (0..statement.rank).chain(statement.reductions.iter().copied()).collect();
    let (bounded, bounds) = import_ranges(scope, statement, &order)?;

    let addresses = statement.addresses.iter().map(|address| &address.index);
    let roots = std::iter::once(&statement.value).chain(addresses.clone());
    let read_order = ReadOrder::new(&statement.lets, roots);
    let (body, block, variables) = variables_region(scope, statement, &order);
    let mut emitter = Emitter::new(scope, statement, &read_order, block, variables)?;
    let mut yielded = vec![emitter.value(&statement.value)?];
    for address in addresses {
        yielded.push(emitter.index_value(address)?);
    }
    emitter.finish(&yielded, statement.value.span);
    let exists = import_exists(scope, statement, &read_order, &order)?;

    let names = |variables: &[usize]| {
        let names: Vec<_> =
            variables.iter().map(|variable| &statement.variables[*variable].name).collect();
        mlir::strings(context, &names)
    };
    let target = scope.function.target(statement);
    let groups = [usize::from(outs.is_some()), bounds.len()];
    let mut attributes = vec![
        ("target", mlir::string(context, target)),
        ("index_vars", names(&order[..statement.rank])),
        ("combiner", combiner.attribute(context)),
        ("operandSegmentSizes", mlir::segments(context, &groups)),
    ];
    if !statement.reductions.is_empty() {
        attributes.push(("reduction_vars", names(&order[statement.rank..])));
    }
    if !statement.addresses.is_empty() {
        let numbers: Vec<_> = statement.addresses.iter().map(|it| it.dim as i64).collect();
        let text = source_text(scope.source, statement.left_span);
        attributes.push(("addressed", mlir::i64_array(context, &numbers)));
        attributes.push(("text", mlir::string(context, &text)));
    }
    if !bounded.is_empty() {
        attributes.push(("bounded", mlir::i64_array(context, &bounded)));
    }
    if let Some(equivalent) = &statement.equivalent {
        let text = equivalent_text(scope.source, equivalent);
        attributes.push(("equivalent", mlir::string(context, &text)));
    }
    let operands: Vec<_> = outs.into_iter().chain(bounds).collect();
    let op = scope.builder(statement.target_span).op_with(
        Comprehension::NAME,
        &operands,
        &[result_type(context, statement)],
        &attributes,
        vec![body, exists],
    );
    Ok(mlir::result(op, 0))
}

/// The call of an equivalence clause, as written.
fn equivalent_text(source: &SourceFile, equivalent: &Equivalent) -> String {
    let args: Vec<_> = equivalent.args.iter().map(|arg| source_text(source, arg.span)).collect();
    format!("{}({})", equivalent.name, args.join(", "))
}

/// A region with one argument per variable of the statement: the region, its block, and the
/// arguments by the position of the variable in the statement.
fn variables_region<'c>(
    scope: &Scope<'_, 'c>,
    statement: &Statement,
    order: &[usize],
) -> (Region<'c>, Blk<'c>, Vec<Val<'c>>) {
    let index = Type::index(scope.context);
    let arguments: Vec<_> = order
        .iter()
        .map(|variable| (index, scope.location(statement.variables[*variable].span)))
        .collect();
    let region = Region::new();
    let block = mlir::block_ref(region.append_block(Block::new(&arguments)));
    let values = mlir::arguments(block);
    let mut pairs: Vec<_> = order.iter().copied().zip(values).collect();
    pairs.sort_by_key(|(variable, _)| *variable);
    (region, block, pairs.into_iter().map(|(_, value)| value).collect())
}

/// Emits the bounds of range clauses before the statement. Returns the variables, by their
/// position among the arguments of the regions, and two bounds for each.
fn import_ranges<'a, 'c>(
    scope: &mut Scope<'a, 'c>,
    statement: &'a Statement,
    order: &[usize],
) -> Emitted<'c, (Vec<i64>, Vec<Val<'c>>)> {
    let roots = statement.ranges.iter().flat_map(|clause| [&clause.lower, &clause.upper]);
    let read_order = ReadOrder::new(&statement.lets, roots);
    let block = scope.block;
    let mut emitter = Emitter::new(scope, statement, &read_order, block, Vec::new())?;
    let mut ranges = vec![None; statement.variables.len()];
    for clause in &statement.ranges {
        let (lower, upper) = (emitter.index(&clause.lower)?, emitter.index(&clause.upper)?);
        let range = &mut ranges[clause.variable];
        // Several clauses for one variable intersect.
        *range = Some(match *range {
            None => (lower, upper, clause.span),
            Some((lowers, uppers, span)) => {
                let (lower, upper) = (emitter.ir.max(lowers, lower), emitter.ir.min(uppers, upper));
                (emitter.limited(lower, span), emitter.limited(upper, span), span)
            }
        });
    }
    let (mut bounded, mut bounds) = (Vec::new(), Vec::new());
    for (number, variable) in order.iter().enumerate() {
        if let Some((lower, upper, span)) = ranges[*variable] {
            bounded.push(number as i64);
            bounds.push(emitter.materialize(lower, span));
            bounds.push(emitter.materialize(upper, span));
        }
    }
    Ok((bounded, bounds))
}

/// The region of what takes part in range inference only: the reads of exists clauses and of
/// lets that the body does not need. Empty if there are none.
fn import_exists<'a, 'c>(
    scope: &mut Scope<'a, 'c>,
    statement: &'a Statement,
    body: &ReadOrder,
    order: &[usize],
) -> Emitted<'c, Region<'c>> {
    let mut reads: Vec<&Expr> = Vec::new();
    for (number, each) in statement.lets.iter().enumerate() {
        let needed = [false, true]
            .into_iter()
            .any(|index| body.need(LetForm { number, index }) != Need::Never);
        if !needed {
            outer_reads(&each.value, &mut reads);
        }
    }
    for expr in &statement.exists {
        outer_reads(expr, &mut reads);
    }
    if reads.is_empty() {
        return Ok(Region::new());
    }
    let read_order = ReadOrder::new(&statement.lets, reads.iter().copied());
    let (region, block, variables) = variables_region(scope, statement, order);
    let mut emitter = Emitter::new(scope, statement, &read_order, block, variables)?;
    let mut values = Vec::with_capacity(reads.len());
    for read in reads {
        values.push(emitter.value(read)?);
    }
    emitter.finish(&values, statement.span);
    Ok(region)
}
