//! `convert-results-to-destinations`: convert tensor functions to functions that compiled code can call.
//!
//! This pass converts every tensor argument to a memref, and every result to a trailing memref argument.
//! A result that shares its `tc.name` with an argument marked `tc.inout` is written to that argument. If such an argument
//! is another result, too, it is copied at entry. If a result comes from an `scf.if`, a branch copies a tensor from outside.
//! The function returns an `i32`: 0, or the number of the first failed `imap.check`, counted from 1 in
//! program order. Computations without memory accesses that cannot trap are moved before a check. All
//! others go into an `scf.if` after it. So no buffer is allocated and no element is read unless the
//! checks before it succeed.
//!
//! ```mlir
//! func.func @f(%a: tensor<?xf32>) -> (tensor<?xf32> {tc.name = "B"})
//! // becomes
//! func.func @f(%a: memref<?xf32>, %b: memref<?xf32> {tc.name = "B", tc.output = 0}) -> i32
//!     attributes {llvm.emit_c_interface, tc.checks = [..]}
//! ```
//!
//! The buffers of one call must be disjoint. The checks of the function do not include the shapes of its
//! arguments: the caller checks these against `tc.sizes` and `tc.extents`. A function marked
//! `tc.check_extents` checks its destinations and the static sizes of all arguments itself, after its
//! other checks at entry. Such arguments are memrefs of dynamic sizes, and `tc.type` records their type
//! after the check.
//!
//! A private function is one that others of the module call. It has destinations, too, and returns 0. A call of it
//! writes its results to new memory:
//!
//! ```mlir
//! %r = func.call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
//! // becomes
//! %b = bufferization.to_buffer %x read_only : tensor<8xf32> to memref<8xf32>
//! %m = memref.alloc() : memref<8xf32>
//! %code = func.call @g(%b, %m) : (memref<8xf32>, memref<8xf32>) -> i32
//! %r = bufferization.to_tensor %m restrict writable : memref<8xf32> to tensor<8xf32>
//! ```
//!
//! Limits: a function has one block; a function that is called is private, has no `imap.check`, calls itself neither
//! directly nor through others, and gives results of constant shapes; checks separated by computations nest at most [`MAX_NESTING`] deep.

use crate::{
    analysis::{
        buffers::{CALLEE, argument_attributes, is_pointer},
        calls::Calls,
    },
    loops::build_alloc,
};
use melior::{
    Context,
    ir::{
        Attribute, BlockLike, Identifier, Location, Type, ValueLike,
        attribute::{DictionaryAttribute, TypeAttribute},
        block::BlockArgument,
        operation::OperationLike,
        r#type::{FunctionType, MemRefType},
    },
};
use tc_dialects::{
    imap::{self, View},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{self, Report},
};

/// The attribute of a function that checks the extents of its destinations.
const CHECK_EXTENTS: &str = "tc.check_extents";

/// The attribute of an argument whose fixed sizes are checked: the type with them.
const CHECKED_TYPE: &str = "tc.type";

/// How many groups of checks may stand apart from each other in one function.
pub const MAX_NESTING: usize = 64;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-results-to-destinations",
    summary: "Turn tensor arguments and results of functions into memref arguments, and checks \
              into the code that is returned",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "bufferization", "func", "imap", "memref", "scf", "tensor"],
    run,
};

fn run(run: &PassRun) -> Result<(), Failure> {
    let module = mlir::body(run.op, 0).ok_or(Failure)?;
    let fail = |op: Op, report: Report| {
        report.emit_on(op);
        Failure
    };
    let calls = Calls::of(module);
    check_calls(&calls).map_err(|report| fail(run.op, report))?;
    for op in &calls.functions {
        run.enter(*op);
        convert(*op).map_err(|report| fail(*op, report))?;
    }
    calls.list.into_iter().for_each(|(call, _)| convert_call(call));
    Ok(())
}

/// Rejects calls that have no form on memory.
fn check_calls<'c>(calls: &Calls<'c>) -> Result<(), Report<'c>> {
    for (call, _) in &calls.list {
        let refuse = |why: &str| {
            let inline = "inline it, for instance with 'tc-opt --inline --symbol-dce'";
            Report::op_error(*call, format!("calls a function that {why}; {inline}"))
        };
        let callee = calls.callee(*call).ok_or_else(|| refuse("has no body"))?;
        if !mlir::is_private(callee) {
            return Err(refuse("is not private"));
        }
        let is_static =
            |ty: Type<'c>| mlir::is_tensor(ty) && mlir::shape(ty).iter().all(Option::is_some);
        if !mlir::results(*call).iter().all(|it| is_static(it.r#type())) {
            return Err(refuse("gives results other than tensors of constant shapes"));
        }
        let ops = mlir::body(callee, 0).map(mlir::ops).unwrap_or_default();
        if ops.into_iter().any(|op| mlir::is(op, "imap.check")) {
            return Err(refuse("has an 'imap.check'"));
        }
    }
    calls.callees_first().map(drop)
}

/// Lets a call write its results to new memory.
fn convert_call<'c>(call: Op<'c>) {
    let builder = Builder::before(call);
    let unit = Attribute::unit(builder.context);
    let buffer = |value: Val<'c>| match mlir::is_tensor(value.r#type()) {
        true => {
            let ty = memref_of(value.r#type());
            builder.value_with("bufferization.to_buffer", &[value], ty, &[("read_only", unit)])
        }
        false => value,
    };
    let mut operands: Vec<_> = mlir::operands(call).into_iter().map(buffer).collect();
    let types = mlir::results(call).into_iter().map(|result| result.r#type());
    let types: Vec<_> = types.collect();
    let results = types.iter().map(|ty| build_alloc(&builder, memref_of(*ty)));
    let results: Vec<_> = results.collect();
    operands.extend(&results);
    let callee = call.attribute("callee").expect("a call names its function");
    let code = builder.int_type(32);
    builder.op_with("func.call", &operands, &[code], &[("callee", callee)], Vec::new());
    let attributes = [("restrict", unit), ("writable", unit)];
    let tensors = results.into_iter().zip(types).map(|(buffer, ty)| {
        builder.value_with("bufferization.to_tensor", &[buffer], ty, &attributes)
    });
    mlir::replace(call, &tensors.collect::<Vec<_>>());
}

fn convert<'c>(function: Op<'c>) -> Result<(), Report<'c>> {
    let context = mlir::context_of(function);
    let blocks = mlir::blocks(function, 0);
    let [block] = blocks[..] else {
        return Err(Report::error(format!("expected one block, found {}", blocks.len())));
    };
    let arguments = mlir::arguments(block);
    let num_inputs = arguments.len();
    let returned = mlir::terminator(block);
    let outputs = mlir::operands(returned);
    if let Some(output) = outputs.iter().find(|value| !mlir::is_tensor(value.r#type())) {
        return Err(Report::error(format!(
            "expected every result to be a tensor, found '{}'",
            output.r#type()
        )));
    }
    let output_types: Vec<_> = outputs.iter().map(|output| output.r#type()).collect();
    let mut attributes = dictionaries(function, "arg_attrs", arguments.len());
    let mut destinations = vec![None; outputs.len()];
    let result_attributes = dictionaries(function, "res_attrs", outputs.len());

    // The destination of an accumulated output is its argument. A private function does not write its inputs.
    let of_entry = result_attributes.iter().enumerate().filter(|_| !mlir::is_private(function));
    for (output, found) in of_entry {
        let Some(argument) = attributes
            .iter()
            .position(|it| find(it, "tc.inout").is_some() && name(it) == name(found))
        else {
            continue;
        };
        let (have, want) = (arguments[argument].r#type(), outputs[output].r#type());
        if have != want {
            return Err(Report::error(format!(
                "expected the result and the argument of the same 'tc.name' to have one type, \
                 found '{want}' and '{have}'"
            )));
        }
        destinations[output] = Some(argument);
        let new: Vec<_> = found
            .iter()
            .filter(|(key, _)| attributes[argument].iter().all(|(known, _)| known != key))
            .cloned()
            .collect();
        attributes[argument].extend(new);
        attributes[argument].push(output_number(context, output));
    }

    // Arguments become memrefs, seen by the body through `bufferization.to_tensor`.
    let is_checked = function.has_attribute(CHECK_EXTENTS);
    let first = mlir::ops(block)[0];
    let mut tensors: Vec<Option<Val>> = vec![None; arguments.len()];
    for (number, argument) in arguments.iter().enumerate() {
        let ty = argument.r#type();
        if !mlir::is_tensor(ty) {
            continue;
        }
        let writable = destinations.contains(&Some(number));
        let tensor = to_tensor(Builder::before(first), *argument, ty, writable);
        tensors[number] = Some(tensor);
        let passed = passed_type(ty, is_checked);
        let block_argument = BlockArgument::try_from(*argument).expect("an argument of the block");
        block_argument.set_type(passed);
        cast_to_checked(tensor, *argument, memref_of(ty), &mut attributes[number]);
    }
    for (output, destination) in destinations.iter_mut().enumerate() {
        if destination.is_none() {
            let ty = output_types[output];
            let passed = passed_type(ty, is_checked);
            let argument = mlir::val(block.add_argument(passed, function.location()));
            let tensor = to_tensor(Builder::before(first), argument, ty, true);
            tensors.push(Some(tensor));
            *destination = Some(attributes.len());
            let mut all = result_attributes[output].clone();
            cast_to_checked(tensor, argument, memref_of(ty), &mut all);
            all.push(output_number(context, output));
            attributes.push(all);
        }
    }
    let names = attributes.iter().map(|it| name(it).unwrap_or_default());
    mlir::name_arguments(context, block, names);
    let arguments = mlir::arguments(block);
    if is_checked {
        check_extents(block, &arguments, &attributes, function.location());
        mlir::remove_attribute(function, CHECK_EXTENTS);
    }
    copy_overwritten(returned, first, &tensors, &destinations);
    let outputs = mlir::operands(returned);
    for (output, destination) in outputs.iter().zip(&destinations) {
        // An argument that a branch keeps is not copied.
        if destination.is_some_and(|number| num_inputs <= number) {
            copy_in_branches(*output);
        }
    }

    let (end, messages) = nest_checks(block)?;
    let builder = Builder::before(end);
    for (output, destination) in outputs.iter().zip(&destinations) {
        let destination = destination.expect("every output was given one above");
        let mut value = *output;
        let mut buffer = arguments[destination];
        if let Some(Some(tensor)) = tensors.get(destination) {
            // The argument itself, or what it is once its sizes have been checked.
            buffer = mlir::operand(mlir::defining_op(*tensor).expect("'to_tensor'"), 0);
            // Written as a tensor first: only then does bufferization see which values live in
            // the buffer, what was passed in or what was computed there, and are lost by this.
            // An argument that is its own result is only read.
            if value != *tensor {
                value = builder.value(
                    "bufferization.materialize_in_destination",
                    &[value, *tensor],
                    value.r#type(),
                );
            }
        }
        let unit = Attribute::unit(context);
        builder.op_with(
            "bufferization.materialize_in_destination",
            &[value, buffer],
            &[],
            &[("restrict", unit), ("writable", unit)],
            Vec::new(),
        );
    }
    finish(function, &arguments, &attributes, &messages);
    Ok(())
}

/// Copies each tensor that a branch of an `scf.if` yields from outside. Elimination of empty tensors can then give all
/// branches one destination; bufferization rejects branches without a common buffer.
fn copy_in_branches(value: Val) {
    let Some(choice) = mlir::defining_op(value).filter(|op| mlir::is(*op, "scf.if")) else {
        return;
    };
    let number = mlir::number(value);
    for branch in [0, 1] {
        let block = mlir::body(choice, branch).expect("an 'scf.if' with results has two branches");
        let end = mlir::terminator(block);
        let yielded = mlir::operand(end, number);
        match mlir::defining_op(yielded).filter(|op| op.block() == end.block()) {
            Some(_) => copy_in_branches(yielded),
            None => {
                let copy = copied(&Builder::before(end), yielded);
                copy.into_iter().for_each(|copy| mlir::set_operand(end, number, copy));
            }
        }
    }
}

/// A copy of a tensor of a static shape that starts from an empty one.
fn copied<'c>(builder: &Builder<'c>, tensor: Val<'c>) -> Option<Val<'c>> {
    let extents = mlir::shape(tensor.r#type()).into_iter().collect::<Option<Vec<i64>>>()?;
    let ir = tc_ir::Context::new();
    let empty = builder.empty_like(tensor, mlir::element_type(tensor.r#type()));
    let copy = View::of_whole_copy(&ir, &extents, [tensor, empty]).build_copy(&ir, builder);
    Some(mlir::result(copy.op(), 0))
}

/// Copies each argument that is returned, if another result is written to it. The tensors of the arguments are those that
/// a function returns by now.
fn copy_overwritten<'c>(
    returned: Op<'c>,
    first: Op<'c>,
    tensors: &[Option<Val<'c>>],
    destinations: &[Option<usize>],
) {
    let outputs = mlir::operands(returned);
    for (number, output) in outputs.iter().enumerate() {
        let argument = tensors.iter().position(|it| *it == Some(*output));
        let written = argument.and_then(|it| destinations.iter().position(|to| *to == Some(it)));
        if written.is_some_and(|result| outputs[result] != *output) {
            mlir::set_operand(returned, number, Builder::before(first).copy_tensor(*output));
        }
    }
}

/// Lets a tensor be that of an argument which is known to be of a type once checks hold, if the argument
/// has another one.
fn cast_to_checked<'c>(
    tensor: Val<'c>,
    argument: Val<'c>,
    checked: Type<'c>,
    attributes: &mut Entries<'c>,
) {
    if argument.r#type() == checked {
        return;
    }
    let op = mlir::defining_op(tensor).expect("'to_tensor'");
    let cast = Builder::before(op).value("memref.cast", &[argument], checked);
    mlir::set_operand(op, 0, cast);
    attributes.push((CHECKED_TYPE.to_string(), mlir::type_attr(checked)));
}

/// Emits checks that arguments have the sizes that are fixed, and destinations the extents of the
/// results, behind the checks that there are.
fn check_extents<'c>(
    block: Blk<'c>,
    arguments: &[Val<'c>],
    attributes: &[Entries<'c>],
    location: Location<'c>,
) {
    let ops = mlir::ops(block);
    let last = ops.iter().rposition(|op| mlir::is(*op, "imap.check"));
    let b = Builder::before(ops[last.map_or(0, |last| last + 1)]);
    let ir = tc_ir::Context::new();
    // The first dimension of each name.
    let mut sizes: Vec<(String, Val)> = Vec::new();
    for (argument, entries) in arguments.iter().zip(attributes) {
        let names = find(entries, "tc.sizes").map(mlir::array_of).unwrap_or_default();
        for (dim, name) in names.into_iter().filter_map(mlir::string_of).enumerate() {
            if !name.is_empty() && sizes.iter().all(|(known, _)| known != name) {
                // The code that relies on positive sizes is not the only one that divides by them.
                let extent = b.dim(*argument, dim);
                let extent = b.value("arith.maxsi", &[extent, b.index(1)], b.index_type());
                sizes.push((name.to_string(), extent));
            }
        }
    }
    for (argument, entries) in arguments.iter().zip(attributes) {
        let check = |dim: usize, expected: Val<'c>, text: &str| {
            let holds = b.compare_int("eq", b.dim(*argument, dim), expected);
            let name = name(entries).unwrap_or_default();
            let message = format!("expected dimension {dim} of '{name}' to be {text}");
            imap::build_check(&b, holds, &report::placed(location, &message));
        };
        let checked = find(entries, CHECKED_TYPE).and_then(mlir::type_of);
        for (dim, size) in checked.map(mlir::shape).unwrap_or_default().into_iter().enumerate() {
            if let Some(size) = size {
                check(dim, b.index(size), &size.to_string());
            }
        }
        let is_output = find(entries, "tc.output").is_some();
        let extents = find(entries, "tc.extents").filter(|_| is_output);
        let Some(map) = extents.and_then(|it| imap::map::from_attribute(&ir, it)) else { continue };
        let names = map.runtimes.iter().map(|it| it.name.as_deref().unwrap_or_default());
        let names: Vec<_> = names.map(str::to_string).collect();
        let value = |name: &String| sizes.iter().find(|(known, _)| known == name).map(|it| it.1);
        let Some(values) = names.iter().map(value).collect::<Option<Vec<_>>>() else { continue };
        let named: Vec<_> = names.iter().zip(values).collect();
        for (dim, expr) in map.results.iter().enumerate() {
            if ir.as_constant(*expr).is_some() {
                continue;
            }
            let expected = imap::build_sizes(&b, &ir, &named, &[*expr])[0];
            let text = tc_ir::polynomial::text(&ir, *expr, &|var| match var {
                tc_ir::Var::Runtime(number) => names[number as usize].clone(),
                other => tc_ir::text::default_name(other),
            });
            check(dim, expected, &text);
        }
    }
}

/// Moves what follows a group of checks into an `scf.if`, and replaces the terminator.
/// Returns the operation before which the computation ends, and the messages.
fn nest_checks<'c>(block: Blk<'c>) -> Result<(Op<'c>, Vec<Attribute<'c>>), Report<'c>> {
    let returned = mlir::terminator(block);
    let ops = mlir::ops(block);
    let start = Builder::before(ops[0]).located(returned.location());
    let i32_type = start.int_type(32);
    let zero = start.integer(i32_type, 0);
    let end = Builder::before(returned).op("func.return", &[zero], &[]);
    mlir::erase(returned);

    let mut end = end;
    let mut messages = Vec::new();
    let mut pending: Vec<(Val, i64)> = Vec::new();
    let mut depth = 0;
    for op in &ops[..ops.len() - 1] {
        if mlir::is(*op, "imap.check") {
            messages.push(op.attribute("message").expect("a verified imap.check has a message"));
            pending.push((mlir::operand(*op, 0), messages.len() as i64));
            mlir::erase(*op);
            continue;
        }
        if depth > 0 {
            mlir::move_before(*op, end);
        }
        if !pending.is_empty() && !is_free(*op) {
            depth += 1;
            if depth > MAX_NESTING {
                return Err(Report::op_error(
                    *op,
                    format!("stands after more than {MAX_NESTING} groups of checks"),
                ));
            }
            // The operation moves along with all that follows it.
            end = open_group(Builder::before(*op), end, zero, &mut pending);
            mlir::move_before(*op, end);
        }
    }
    if !pending.is_empty() {
        end = open_group(Builder::before(end), end, zero, &mut pending);
    }
    Ok((end, messages))
}

/// Builds `scf.if` on the pending checks before `end`, which returns its value, and
/// returns the terminator of its first branch.
fn open_group<'c>(
    builder: Builder<'c>,
    end: Op<'c>,
    zero: Val<'c>,
    pending: &mut Vec<(Val<'c>, i64)>,
) -> Op<'c> {
    let ty = zero.r#type();
    let mut code = zero;
    for (condition, number) in pending.drain(..).rev() {
        let failed = builder.integer(ty, number);
        code = builder.select(condition, code, failed);
    }
    let holds = builder.compare_int("eq", code, zero);
    let (first, inside) = mlir::region_with_block(&[], builder.location);
    let (second, otherwise) = mlir::region_with_block(&[], builder.location);
    let check = builder.op_with("scf.if", &[holds], &[ty], &[], vec![first, second]);
    Builder::at_end(builder.context, otherwise, builder.location).op("scf.yield", &[code], &[]);
    mlir::set_operand(end, 0, mlir::result(check, 0));
    Builder::at_end(builder.context, inside, builder.location).op("scf.yield", &[zero], &[])
}

/// Whether an operation may run before a check that stands before it.
fn is_free(op: Op) -> bool {
    match mlir::name(op) {
        "tensor.dim" | "memref.dim" | "memref.cast" | "imap.apply" | "bufferization.to_tensor" => {
            true
        }
        name => name.starts_with("arith.") && !name.contains("div") && !name.contains("rem"),
    }
}

fn finish<'c>(
    function: Op<'c>,
    arguments: &[Val<'c>],
    attributes: &[Entries<'c>],
    messages: &[Attribute<'c>],
) {
    let context = mlir::context_of(function);
    let types: Vec<_> = arguments.iter().map(|value| value.r#type()).collect();
    let i32_type = melior::ir::r#type::IntegerType::new(context, 32).into();
    let ty: Type = FunctionType::new(context, &types, &[i32_type]).into();
    let dictionaries: Vec<_> = attributes
        .iter()
        .map(|entries| {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| (Identifier::new(context, key), *value))
                .collect();
            DictionaryAttribute::new(context, &entries).into()
        })
        .collect();
    mlir::set_attribute(function, "function_type", TypeAttribute::new(ty).into());
    mlir::set_attribute(function, "arg_attrs", mlir::array(context, &dictionaries));
    let nothing = DictionaryAttribute::new(context, &[]).into();
    mlir::set_attribute(function, "res_attrs", mlir::array(context, &[nothing]));
    if !mlir::is_private(function) {
        mlir::set_attribute(function, "tc.checks", mlir::array(context, messages));
        mlir::set_attribute(function, "llvm.emit_c_interface", Attribute::unit(context));
        return;
    }
    // A destination is memory of its own, and nothing else is written.
    let alone: Vec<_> =
        types.iter().map(|ty| argument_attributes(context, mlir::is_memref(*ty))).collect();
    if types.iter().all(|ty| is_pointer(*ty)) {
        mlir::set_attribute(function, "llvm.bareptr", Attribute::unit(context));
    }
    // LLVM inlines a function with one caller otherwise.
    let passed_on = mlir::array(context, &[mlir::string(context, "noinline")]);
    let internal = mlir::parse_attribute(context, "#llvm.linkage<internal>");
    mlir::set_attribute(function, "arg_attrs", mlir::array(context, &alone));
    mlir::set_attribute(function, "passthrough", passed_on);
    mlir::set_attribute(function, "llvm.linkage", internal);
    mlir::set_attribute(function, CALLEE, Attribute::unit(context));
}

/// The entries of a dictionary attribute.
type Entries<'c> = Vec<(String, Attribute<'c>)>;

fn dictionaries<'c>(function: Op<'c>, attribute: &str, count: usize) -> Vec<Entries<'c>> {
    let mut result: Vec<Entries> = mlir::array_attr(function, attribute)
        .into_iter()
        .map(|dictionary| {
            let Ok(dictionary) = DictionaryAttribute::try_from(dictionary) else {
                return Vec::new();
            };
            (0..dictionary.len())
                .filter_map(|index| dictionary.element(index).ok())
                .filter_map(|(key, value)| {
                    Some((key.as_string_ref().as_str().ok()?.to_string(), value))
                })
                .collect()
        })
        .collect();
    result.resize(count, Vec::new());
    result
}

fn find<'c>(entries: &Entries<'c>, key: &str) -> Option<Attribute<'c>> {
    entries.iter().find(|(known, _)| known == key).map(|(_, value)| *value)
}

fn name<'c>(entries: &Entries<'c>) -> Option<&'c str> {
    find(entries, "tc.name").and_then(mlir::string_of)
}

fn to_tensor<'c>(builder: Builder<'c>, buffer: Val<'c>, ty: Type<'c>, writable: bool) -> Val<'c> {
    let unit = Attribute::unit(builder.context);
    let mut attributes = vec![("restrict", unit)];
    if writable {
        attributes.push(("writable", unit));
    }
    let op = builder.op_with("bufferization.to_tensor", &[buffer], &[ty], &attributes, Vec::new());
    let tensor = mlir::result(op, 0);
    mlir::replace_uses(buffer, tensor);
    mlir::set_operand(op, 0, buffer);
    tensor
}

fn memref_of<'c>(tensor: Type<'c>) -> Type<'c> {
    memref_type(tensor, |extent| extent.unwrap_or(i64::MIN))
}

/// What is passed for a tensor: without fixed sizes, if these are to be read and checked.
fn passed_type<'c>(tensor: Type<'c>, is_checked: bool) -> Type<'c> {
    if is_checked { memref_type(tensor, |_| i64::MIN) } else { memref_of(tensor) }
}

fn memref_type<'c>(tensor: Type<'c>, extent: impl Fn(Option<i64>) -> i64) -> Type<'c> {
    let shape: Vec<i64> = mlir::shape(tensor).into_iter().map(extent).collect();
    MemRefType::contiguous(mlir::element_type(tensor), &shape, None).into()
}

/// The attribute of a destination: the number of the result it stands for.
fn output_number<'c>(context: &'c Context, number: usize) -> (String, Attribute<'c>) {
    ("tc.output".to_string(), mlir::i64_attr(context, number as i64))
}
