//! `scalarize-tensors`: calculate and carry scalars instead of tensors of rank 0.
//!
//! HLO has no scalars: the counter of a loop is a tensor of rank 0. As a tensor it gets a buffer, which
//! is allocated, copied and freed in each iteration, and a loop over a counter in memory is not a `scf.for`.
//!
//! Before:
//!
//! ```mlir
//! %r = scf.while (%i = %start) : (tensor<i32>) -> tensor<i32> {
//!   %c = imap.generic () ins(%i, %n : tensor<i32>, tensor<i32>) outs(%e : tensor<i1>) .. {
//!   ^bb0(%a: i32, %b: i32):
//!     %less = arith.cmpi slt, %a, %b : i32
//!     imap.yield %less : i1
//!   } -> tensor<i1>
//!   %goes_on = tensor.extract %c[] : tensor<i1>
//!   scf.condition(%goes_on) %i : tensor<i32>
//! } do {
//!   ..
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %s = tensor.extract %start[] : tensor<i32>
//! %m = tensor.extract %n[] : tensor<i32>
//! %t = scf.while (%i = %s) : (i32) -> i32 {
//!   %less = arith.cmpi slt, %i, %m : i32
//!   scf.condition(%less) %i : i32
//! } do {
//!   ..
//! }
//! %r = tensor.from_elements %t : tensor<i32>
//! ```
//!
//! Three rewrites, on tensors of signless integers, floats and `index`:
//!
//! * An `imap.generic` with one point, whose results have rank 0, becomes the operations of its body.
//! * `scf.for`, `scf.while`, `scf.if` and `scf.index_switch` carry and yield scalars.
//! * An `imap.generic` that reads a `tensor.from_elements` of rank 0 uses the scalar in its body.
//!
//! Elements of tensors that the pass made, and of constants, are folded here. `canonicalize` would visit all
//! loops around a change again, which takes quadratic time in nested loops.
//!
//! Remark: the number of operations of each kind.

use melior::ir::{
    Location, Type, TypeLike, ValueLike, operation::OperationLike, r#type::IntegerType,
};
use tc_dialects::{
    imap::{Access, Generic, Indexed, Inside, View},
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::Context;

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "scalarize-tensors",
    summary: "Calculate and carry scalars instead of tensors of rank 0",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let ir = Context::new();
        let (mut generics, mut control_flow) = (Vec::new(), Vec::new());
        mlir::walk(function, &mut |op| match Generic::cast(op) {
            Some(generic) => generics.push(generic),
            None => control_flow.extend(first_carried(op).map(|first| (op, first))),
        });
        // Operations inside of one that is rebuilt move with its regions.
        let num_control =
            control_flow.into_iter().filter(|(op, first)| carry_scalars(*op, *first)).count();
        let (mut num_points, mut num_captures) = (0, 0);
        for generic in generics {
            if inline_point(&ir, generic) {
                num_points += 1;
            } else if capture_scalars(&ir, generic) {
                num_captures += 1;
            }
        }
        erase_unused(function);
        remark(
            function.location(),
            RemarkKind::Analysis,
            PASS.argument,
            "scalars",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[
                ("Points", &num_points.to_string()),
                ("Captures", &num_captures.to_string()),
                ("ControlFlow", &num_control.to_string()),
            ],
        );
    }
    Ok(())
}

/// The type of the element of a tensor of rank 0 that a scalar can stand for.
fn scalar_type(ty: Type<'_>) -> Option<Type<'_>> {
    let element = mlir::element_type(ty);
    let is_signless = |integer: IntegerType| integer.is_signless();
    let is_scalar = element.is_index()
        || mlir::is_float(element)
        || IntegerType::try_from(element).is_ok_and(is_signless);
    let is_point = mlir::is_tensor(ty) && mlir::shape(ty).is_empty();
    (is_point && is_scalar && mlir::encoding(ty).is_none()).then_some(element)
}

/// The element of a tensor of rank 0. It is read where the tensor is defined, and so outside of loops that
/// the tensor does not change in.
fn extract<'c>(tensor: Val<'c>, location: Location<'c>) -> Val<'c> {
    let next = match mlir::defining_op(tensor) {
        Some(op) => mlir::next(op),
        None => mlir::argument_block(tensor).and_then(mlir::first),
    };
    let next = next.expect("a block ends with a terminator, which defines no tensor");
    element(&Builder::before(next).located(location), tensor, &[])
}

/// The element of a tensor at a place.
fn element<'c>(builder: &Builder<'c>, tensor: Val<'c>, place: &[i64]) -> Val<'c> {
    if let Some(scalar) = scalar_of(tensor) {
        return scalar;
    }
    let constant = mlir::defining_op(tensor).filter(|op| mlir::is(*op, "arith.constant"));
    let elements = constant.and_then(|op| op.attribute("value").ok());
    if let Some(value) = elements.and_then(mlir::splat_of) {
        return builder.constant(mlir::element_type(tensor.r#type()), value);
    }
    let place: Vec<_> = place.iter().map(|index| builder.index(*index)).collect();
    let operands = [&[tensor], place.as_slice()].concat();
    builder.value("tensor.extract", &operands, mlir::element_type(tensor.r#type()))
}

/// Lets these users of a tensor of rank 0 use a scalar in its place.
fn wrap<'c>(builder: &Builder<'c>, users: Vec<(Op<'c>, usize)>, scalar: Val<'c>, tensor: Type<'c>) {
    let (extracts, others): (Vec<_>, Vec<_>) =
        users.into_iter().partition(|(user, _)| mlir::is(*user, "tensor.extract"));
    if !others.is_empty() {
        let tensor = builder.value("tensor.from_elements", &[scalar], tensor);
        for (user, number) in others {
            mlir::set_operand(user, number, tensor);
        }
    }
    for (extract, _) in extracts {
        mlir::replace(extract, &[scalar]);
    }
}

/// Replaces the operands from a number on that are tensors of rank 0 by their elements.
fn unwrap_operands(op: Op, first: usize) {
    for (number, operand) in mlir::operands(op).into_iter().enumerate().skip(first) {
        if scalar_type(operand.r#type()).is_some() {
            mlir::set_operand(op, number, extract(operand, op.location()));
        }
    }
}

/// Makes scalars of the arguments of a block that are tensors of rank 0.
fn unwrap_arguments(block: Blk) {
    for argument in mlir::arguments(block) {
        let tensor = argument.r#type();
        if let Some(scalar) = scalar_type(tensor) {
            mlir::set_type(argument, scalar);
            let first = mlir::first(block).expect("a block of control flow has a terminator");
            wrap(&Builder::before(first), mlir::uses(argument), argument, tensor);
        }
    }
}

/// The first operand of control flow that is carried; `None` of another operation.
fn first_carried(op: Op) -> Option<usize> {
    match mlir::name(op) {
        "scf.for" => Some(3),
        "scf.while" => Some(0),
        "scf.if" | "scf.index_switch" => Some(1),
        _ => None,
    }
}

/// Lets control flow carry and yield scalars. Returns whether anything changed.
fn carry_scalars(op: Op, first: usize) -> bool {
    let blocks: Vec<_> = (0..op.region_count()).flat_map(|it| mlir::blocks(op, it)).collect();
    let carried = mlir::operands(op).into_iter().skip(first).chain(mlir::results(op));
    // What the condition of `scf.while` passes on has types of its own: those of the results.
    if !carried.into_iter().any(|value| scalar_type(value.r#type()).is_some()) {
        return false;
    }
    unwrap_operands(op, first);
    for block in blocks {
        unwrap_arguments(block);
        let terminator = mlir::terminator(block);
        unwrap_operands(terminator, usize::from(mlir::is(terminator, "scf.condition")));
    }
    let tensors: Vec<_> = mlir::results(op).iter().map(|result| result.r#type()).collect();
    let types: Vec<_> = tensors.iter().map(|ty| scalar_type(*ty).unwrap_or(*ty)).collect();
    let new = mlir::rebuild(op, &mlir::operands(op), &types);
    mlir::replace(op, &mlir::results(new));
    for (result, tensor) in mlir::results(new).into_iter().zip(tensors) {
        if result.r#type() != tensor {
            let next = mlir::next(new).expect("control flow is no terminator");
            let builder = Builder::before(next).located(new.location());
            wrap(&builder, mlir::uses(result), result, tensor);
        }
    }
    true
}

/// Replaces an operation with one point, whose results have rank 0, by the operations of its body.
/// Returns whether it is such an operation.
fn inline_point<'c>(ir: &Context, generic: Generic<'c>) -> bool {
    let op = generic.op();
    let (domain, results) = (generic.domain(ir), mlir::results(op));
    let is_point = domain.dims.is_empty()
        && domain.ranges.is_empty()
        && domain.runtimes.is_empty()
        && domain.constraints.is_empty()
        && !generic.has_guards()
        && Inside::all_of(&[generic.body()]).is_empty()
        && generic.accumulators().is_empty()
        && results.len() == generic.inits().len()
        && results.iter().all(|result| scalar_type(result.r#type()).is_some());
    let is_tensor = |input: &Val| {
        let ty = input.r#type();
        mlir::is_tensor(ty) && scalar_type(mlir::tensor_type(&[], mlir::element_type(ty))).is_some()
    };
    if !is_point || !generic.inputs().iter().all(is_tensor) {
        return false;
    }
    let maps = generic.maps(ir);
    let places: Option<Vec<Vec<i64>>> = (maps[..generic.inputs().len()].iter())
        .map(|map| map.results.iter().map(|it| ir.as_constant(ir.canonicalize(*it))).collect())
        .collect();
    let Some(places) = places else { return false };
    let builder = Builder::before(op);
    let mut map = ValueMap::default();
    let inputs = generic.inputs().into_iter().zip(mlir::arguments(generic.body()));
    for ((input, argument), place) in inputs.zip(places) {
        let scalar = match place[..] {
            [] => extract(input, op.location()),
            _ => element(&builder, input, &place),
        };
        map.insert(argument, scalar);
    }
    let terminator = copy_body(&builder, generic.body(), &mut map);
    for (scalar, result) in mlir::operands(terminator).into_iter().zip(results) {
        let scalar = map.get(scalar).unwrap_or(scalar);
        wrap(&builder, mlir::uses(result), scalar, result.r#type());
    }
    mlir::erase(op);
    true
}

/// Copies the operations of a block, all but the terminator, which is returned.
fn copy_body<'c>(builder: &Builder<'c>, block: Blk<'c>, map: &mut ValueMap<'c>) -> Op<'c> {
    let terminator = mlir::terminator(block);
    for inner in mlir::ops(block).into_iter().filter(|inner| *inner != terminator) {
        builder.copy(inner, map);
    }
    terminator
}

/// The scalar of which a tensor of rank 0 is made.
fn scalar_of(tensor: Val<'_>) -> Option<Val<'_>> {
    scalar_type(tensor.r#type())?;
    let op = mlir::defining_op(tensor).filter(|op| mlir::is(*op, "tensor.from_elements"))?;
    Some(mlir::operand(op, 0))
}

/// Lets the body of an operation use scalars that it read from tensors of rank 0. Returns whether there
/// are any.
fn capture_scalars<'c>(ir: &Context, generic: Generic<'c>) -> bool {
    let op = generic.op();
    let mut view = View::of(ir, generic);
    let scalar = |it: &Access<'c>| if it.guard.is_empty() { scalar_of(it.value) } else { None };
    let scalars: Vec<_> = view.inputs.iter().map(scalar).collect();
    if scalars.iter().all(Option::is_none) {
        return false;
    }
    let mut found = scalars.iter();
    view.inputs.retain(|_| found.next().is_some_and(Option::is_none));
    let new = view.build(ir, &Builder::before(op), generic.epilogue().is_some());
    let regions = [Some((generic.body(), new.body())), generic.epilogue().zip(new.epilogue())];
    for (number, (old, new)) in regions.into_iter().flatten().enumerate() {
        // The epilogue has the folded values before its inputs.
        let num_folded = if number == 0 { 0 } else { view.accumulators.len() };
        let mut map = ValueMap::default();
        let mut left = mlir::arguments(new).into_iter();
        for (number, argument) in mlir::arguments(old).into_iter().enumerate() {
            let scalar = number.checked_sub(num_folded).and_then(|number| scalars[number]);
            let value = scalar.or_else(|| left.next());
            map.insert(argument, value.expect("an argument for each input that is kept"));
        }
        let builder = Builder::at_end(mlir::context_of(op), new, op.location());
        let terminator = copy_body(&builder, old, &mut map);
        builder.copy(terminator, &mut map);
    }
    mlir::replace(op, &mlir::results(new.op()));
    true
}

/// Operations that do nothing but give their result.
const PURE: [&str; 3] = ["tensor.empty", "tensor.extract", "tensor.from_elements"];

/// Erases the tensors, and the elements of tensors, that nothing uses.
fn erase_unused(function: Op) {
    let mut candidates = Vec::new();
    mlir::walk(function, &mut |op| {
        let is_pure = PURE.contains(&mlir::name(op));
        candidates.extend(is_pure.then_some(op));
    });
    // Users come before what they use.
    for op in candidates.into_iter().rev() {
        if mlir::uses(mlir::result(op, 0)).is_empty() {
            mlir::erase(op);
        }
    }
}
