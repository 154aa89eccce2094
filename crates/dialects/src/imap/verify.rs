//! Verifiers of the `imap` dialect.
//!
//! `imap.generic` and `imap.scan`: C1 to C9 of their definition. `imap.index` and `imap.inside`: stand
//! in an operation that has the variables. `imap.sort`: S1 to S3. `imap.apply`: as many operands as the map has
//! variables, as many results as it has results. `imap.builtin`: a known name with as
//! many operands as the function has arguments. `imap.schedule` is a schedule, `imap.group` a number; both
//! belong to operations with maps.
//!
//! Not checked here: that accesses stay inside their operands. Front ends prove it, or emit
//! `imap.check` before the operation, which is then valid though it is never reached.

use super::{
    Accumulator, AnyIndexed, CombinerKind, Generic, INDEPENDENT, Indexed, Inside, SCRATCH, Scan,
    Scatter, Sort, Start, map,
    schedule::{GROUP, SCHEDULE, Schedule},
};
use crate::{
    builtins, ffi,
    mlir::{self, Blk, Op, Val},
    report::Report,
};
use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, BlockLike, Type, TypeLike, ValueLike, operation::OperationLike,
    },
};
use std::collections::BTreeSet;
use tc_ir::{FrozenMap, expr::Var};

/// Verifies an operation of the dialect.
///
/// # Errors
/// The first constraint that does not hold.
pub fn verify<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    match mlir::name(op) {
        "imap.generic" => verify_generic(op),
        "imap.scan" => verify_scan(op),
        "imap.scatter" => verify_scatter(op),
        "imap.sort" => Sort::cast(op).map_or(Ok(()), Sort::verify),
        "imap.index" => verify_index(op),
        "imap.inside" => verify_inside(op),
        "imap.apply" => verify_apply(op),
        "imap.builtin" => verify_builtin(op),
        _ => Ok(()),
    }
}

/// Verifies an attribute of an operation of any dialect that has a name of this dialect.
///
/// # Errors
/// The dialect has no such attribute, the operation cannot have it, or it is of another type.
pub fn verify_attribute<'c>(op: Op<'c>, name: &str) -> Result<(), Report<'c>> {
    if [SCRATCH, INDEPENDENT].contains(&name) {
        return Ok(());
    }
    if ![SCHEDULE, GROUP].contains(&name) {
        return error(format!("has an unknown attribute '{name}'; try '{SCHEDULE}' or '{GROUP}'"));
    }
    if AnyIndexed::cast(op).is_none() {
        return error(format!("has no variables that a schedule could name; remove '{name}'"));
    }
    match op.attribute(name) {
        Ok(it) if name == SCHEDULE && Schedule::from_attribute(it).is_none() => error(format!(
            "expected '{SCHEDULE}' to be a schedule, such as #imap.schedule<tile [i = 4]>"
        )),
        Ok(it) if name == GROUP && mlir::integer_of(it).is_none() => {
            error(format!("expected '{GROUP}' to be a number, such as 0 : i64"))
        }
        _ => Ok(()),
    }
}

pub(super) fn error<'c, T>(message: impl Into<String>) -> Result<T, Report<'c>> {
    Err(Report::error(message))
}

fn verify_generic<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let generic = Generic::cast(op).expect("dispatched on the name");
    let (domain, inputs, inits) = (generic.frozen_domain(), generic.inputs(), generic.inits());
    let maps = verify_accesses(generic)?;
    verify_destinations(&maps[inputs.len()..inputs.len() + inits.len()], domain)?;
    verify_accumulators(generic, domain)?;
    verify_regions(generic, &inputs, &inits, &maps)
}

fn verify_scan<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let scan = Scan::cast(op).expect("dispatched on the name");
    let (domain, inputs, inits) = (scan.frozen_domain(), scan.inputs(), scan.inits());
    let maps = verify_accesses(scan)?;
    let (num_dims, num_ranges, _) = domain.counts();
    if num_dims <= scan.dim() as usize {
        return error(format!(
            "scans dimension variable {}, but the domain has {num_dims}",
            scan.dim()
        ));
    }
    if num_ranges != 0 {
        return error("has range variables; only a dimension variable can be scanned");
    }
    verify_destinations(&maps[inputs.len()..inputs.len() + inits.len()], domain)?;
    let accumulators = scan.accumulators();
    if accumulators.is_empty() {
        return error("expected a 'fold'");
    }
    if let Some(number) = accumulators.iter().position(|it| it.destination().is_some()) {
        return error(format!(
            "accumulator {number} starts from a destination, which a scan overwrites; combine the \
             start in the epilogue"
        ));
    }
    verify_accumulators(scan, domain)?;
    verify_regions(scan, &inputs, &inits, &maps)
}

fn verify_scatter<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let scatter = Scatter::cast(op).expect("dispatched on the name");
    let (inputs, inits) = (scatter.inputs(), scatter.inits());
    let maps = verify_accesses(scatter)?;
    let (_, num_ranges, _) = scatter.frozen_domain().counts();
    if num_ranges != 0 {
        return error("has range variables; all variables of a scatter are dimensions");
    }
    let written = mlir::array_attr(op, "accumulators");
    let written: Vec<_> = written.into_iter().filter_map(Accumulator::from_attribute).collect();
    if 1 + usize::from(written.is_empty()) < op.region_count() {
        return error("expected a region 'combine' or a 'fold', and no epilogue");
    }
    for (number, accumulator) in written.iter().enumerate() {
        if accumulator.start != Start::Identity || accumulator.kind == CombinerKind::Custom {
            return error(format!(
                "accumulator {number} starts from the destination; expected an operation and a type"
            ));
        }
        check_combiner_type(accumulator.kind, accumulator.ty)?;
    }
    let ir = tc_ir::Context::new();
    let outputs = inputs.len()..inputs.len() + inits.len();
    let guards: Vec<_> = maps[outputs].iter().map(|it| it.thaw(&ir).constraints).collect();
    if guards.windows(2).any(|pair| pair[0] != pair[1]) {
        return error("expected all destinations to have the same guard");
    }
    verify_regions(scatter, &inputs, &inits, &maps)
}

/// C3 and C7.
fn verify_destinations<'c>(maps: &[&FrozenMap], domain: &FrozenMap) -> Result<(), Report<'c>> {
    for (number, map) in maps.iter().enumerate() {
        if uses_range(map, &BTreeSet::new()) {
            return error(format!("the map of destination {number} uses a range variable"));
        }
        if map.has_constraints() {
            return error(format!(
                "the access of destination {number} has a guard; write the condition as a \
                 constraint of the domain"
            ));
        }
        verify_destination(number, map, domain)?;
    }
    Ok(())
}

/// The maps and the guards: C1, C2, C6 and C9, and C8 of runtime variables.
fn verify_accesses<'c>(op: impl Indexed<'c>) -> Result<Vec<&'c FrozenMap>, Report<'c>> {
    let domain = op.frozen_domain();
    let (runtimes, inputs, inits, maps) =
        (op.runtimes(), op.inputs(), op.inits(), op.frozen_maps());
    verify_domain(domain, &runtimes)?;

    let runtime_tensors: Vec<_> =
        runtimes.iter().enumerate().filter(|(_, value)| is_shaped(value.r#type())).collect();
    let num_expected = inputs.len() + inits.len() + runtime_tensors.len();
    if maps.len() != num_expected {
        return error(format!(
            "expected one map per input, destination and runtime tensor, {num_expected} in all, \
             but found {}",
            maps.len()
        ));
    }
    let operands =
        inputs.iter().chain(&inits).chain(runtime_tensors.iter().map(|(_, value)| *value));
    for (number, (map, operand)) in maps.iter().zip(operands).enumerate() {
        verify_map(number, map, domain, *operand)?;
    }
    for (map, (number, _)) in maps[inputs.len() + inits.len()..].iter().zip(&runtime_tensors) {
        let later = |var: &Var| matches!(var, Var::Runtime(used) if *used as usize >= *number);
        if map.result_vars().iter().any(later) {
            return error(format!(
                "the map of runtime variable {number} uses a runtime variable that is not before it"
            ));
        }
    }
    let tensors: Vec<_> = runtime_tensors.iter().map(|(number, _)| *number).collect();
    verify_guards(op, &maps, &tensors)?;
    Ok(maps)
}

/// Guards and the constants after `else`. `tensors` are the numbers of the runtime variables that are
/// read from tensors.
fn verify_guards<'c>(
    op: impl Indexed<'c>,
    maps: &[&FrozenMap],
    tensors: &[usize],
) -> Result<(), Report<'c>> {
    let (domain, inputs, inits) = (op.frozen_domain(), op.inputs(), op.inits());
    let runtimes = op.runtimes();
    let num_fixed = maps.len() - tensors.len();
    let fills = mlir::array_attr(op.op(), "fills");
    let is_fill = |fill: &Attribute<'c>| mlir::is_number(*fill) || fill.to_string() == "unit";
    if let Some(fill) = fills.iter().find(|fill| !is_fill(fill)) {
        return error(format!(
            "expected a number or 'unit' per map in 'fills', but found '{fill}'"
        ));
    }
    let num_fills = fills.len();
    if num_fills != 0 && num_fills != maps.len() {
        return error(format!(
            "expected one fill per map, {} in all, but found {num_fills}",
            maps.len()
        ));
    }
    let context = mlir::context_of(op.op());
    for (number, (map, fill)) in maps.iter().zip(op.fills()).enumerate() {
        let runtime = number.checked_sub(num_fixed).map(|place| tensors[place]);
        let (name, operand) = match runtime {
            Some(runtime) => (format!("runtime variable {runtime}"), runtimes[runtime]),
            None if number < inputs.len() => (format!("input {number}"), inputs[number]),
            None => {
                let number = number - inputs.len();
                (format!("destination {number}"), inits[number])
            }
        };
        if !map.has_constraints() {
            match fill {
                None => continue,
                Some(_) => return error(format!("{name} has an 'else', but no 'where' before it")),
            }
        }
        let ty = mlir::signless(context, mlir::element_type(operand.r#type()));
        if !is_number(context, ty) && mlir::complex_part(ty).is_none() {
            return error(format!("{name} has a guard and elements of '{ty}'; expected numbers"));
        }
        if fill.is_some() && (inputs.len()..num_fixed).contains(&number) {
            return error(format!("{name} has an 'else', but nothing is read there"));
        }
        if let Some(fill) = fill.filter(|fill| fill.r#type() != ty) {
            return error(format!("{name} has elements of '{ty}', but '{fill}' after 'else'"));
        }
        let Some(runtime) = runtime else { continue };
        let later = |var: &Var| matches!(var, Var::Runtime(used) if *used as usize >= runtime);
        if map.constraint_vars().iter().any(later) {
            return error(format!(
                "the guard of runtime variable {runtime} uses a runtime variable that is not before it"
            ));
        }
        let variable = domain.vars().find(|(var, _)| *var == Var::Runtime(runtime as u32));
        let interval = variable.and_then(|(_, variable)| domain.interval(variable));
        let mut value = fill.and_then(mlir::integer_of).unwrap_or(0);
        // A variable that is never negative is read as an unsigned number.
        if let (Some(0..), Some(width @ ..64)) = (interval.map(|it| it.lo), mlir::integer_width(ty))
        {
            value = value.rem_euclid(1 << width);
        }
        if let Some(interval) = interval
            && !interval.contains(value)
        {
            return error(format!(
                "runtime variable {runtime} is {value} where its guard fails, outside of its bounds \
                 {interval}; write another number after 'else'"
            ));
        }
    }
    Ok(())
}

/// Whether a type is one of floats, signless integers, or `index`.
fn is_number<'c>(context: &'c Context, ty: Type<'c>) -> bool {
    ty.is_index()
        || mlir::is_float(ty)
        || mlir::integer_width(ty).is_some() && mlir::signless(context, ty) == ty
}

fn is_shaped(ty: Type) -> bool {
    mlir::is_tensor(ty) || mlir::is_memref(ty)
}

/// Whether an access depends on range variables, or on the runtime variables in `ranged`.
fn uses_range(map: &FrozenMap, ranged: &BTreeSet<Var>) -> bool {
    let vars = map.result_vars().into_iter().chain(map.constraint_vars());
    vars.into_iter().any(|var| matches!(var, Var::Range(_)) || ranged.contains(&var))
}

/// C2 and C6.
fn verify_domain<'c>(domain: &FrozenMap, runtimes: &[Val<'c>]) -> Result<(), Report<'c>> {
    if domain.num_results() != 0 {
        return error("expected a domain without results");
    }
    let (.., num_runtimes) = domain.counts();
    if num_runtimes != runtimes.len() {
        return error(format!(
            "the domain has {num_runtimes} runtime variables, but {} operands are given for them",
            runtimes.len()
        ));
    }
    for (number, runtime) in runtimes.iter().enumerate() {
        let ty = runtime.r#type();
        if is_shaped(ty) && mlir::integer_width(mlir::element_type(ty)).is_none() {
            return error(format!(
                "runtime variable {number} is read from a '{ty}'; expected a tensor of integers"
            ));
        }
    }
    for (var, variable) in domain.vars() {
        let (kind, number) = match var {
            Var::Dim(number) => ("dimension", number),
            Var::Range(number) => ("range", number),
            Var::Runtime(_) => break,
        };
        if variable.lower.is_none() || variable.upper.is_none() {
            return error(format!("{kind} variable {number} of the domain has no bounds"));
        }
    }
    verify_runtime_bounds(domain)
}

/// The bounds of runtime variables are known one after the other.
fn verify_runtime_bounds<'c>(domain: &FrozenMap) -> Result<(), Report<'c>> {
    let runtimes = domain.vars().filter(|(var, _)| matches!(var, Var::Runtime(_)));
    let mut open: Vec<_> =
        runtimes.map(|(var, variable)| (var, domain.bound_vars(variable))).collect();
    while let Some((Var::Runtime(first), _)) = open.first() {
        let (first, count) = (*first, open.len());
        let unknown: BTreeSet<_> = open.iter().map(|(var, _)| *var).collect();
        open.retain(|(_, used)| !used.is_disjoint(&unknown));
        if open.len() == count {
            return error(format!(
                "the bounds of runtime variable {first} depend on each other in a circle; write them \
                 over other variables"
            ));
        }
    }
    Ok(())
}

/// C1.
fn verify_map<'c>(
    number: usize,
    map: &FrozenMap,
    domain: &FrozenMap,
    operand: Val<'c>,
) -> Result<(), Report<'c>> {
    if map.counts() != domain.counts() {
        let text = |(dims, ranges, runtimes)| {
            format!("{dims} dimension, {ranges} range and {runtimes} runtime variables")
        };
        return error(format!(
            "map {number} has {}, but the domain has {}",
            text(map.counts()),
            text(domain.counts())
        ));
    }
    let rank = mlir::shape(operand.r#type()).len();
    if map.num_results() != rank {
        return error(format!(
            "map {number} has {} results, but its operand has {rank} dimensions",
            map.num_results()
        ));
    }
    Ok(())
}

/// C7.
fn verify_destination<'c>(
    number: usize,
    map: &FrozenMap,
    domain: &FrozenMap,
) -> Result<(), Report<'c>> {
    let used = map.result_vars();
    for (var, variable) in domain.vars() {
        let Var::Dim(dim) = var else { break };
        let has_several = domain.interval(variable).is_some_and(|it| it.lo < it.hi);
        if has_several && !used.contains(&var) {
            return error(format!(
                "the map of destination {number} does not use dimension variable {dim}, so that \
                 several values are meant for one element; make it a range variable"
            ));
        }
    }
    Ok(())
}

/// C4.
fn verify_accumulators<'c>(
    generic: impl Indexed<'c>,
    domain: &FrozenMap,
) -> Result<(), Report<'c>> {
    let (accumulators, inits) = (generic.accumulators(), generic.inits());
    if accumulators.is_empty() {
        let (_, num_ranges, _) = domain.counts();
        if num_ranges != 0 {
            return error("has range variables, but no 'fold' over them");
        }
        if generic.epilogue().is_some() {
            return error("has an epilogue, but no 'fold' before it");
        }
        if generic.is_ordered() {
            return error("is 'ordered', but has no 'fold'");
        }
        return Ok(());
    }
    let num_custom = accumulators.iter().filter(|it| it.kind == CombinerKind::Custom).count();
    if num_custom != 0 && num_custom != accumulators.len() {
        return error("expected all accumulators to name a combiner, or none");
    }
    let context = mlir::context_of(generic.op());
    let mut started = BTreeSet::new();
    for (number, accumulator) in accumulators.iter().enumerate() {
        let ty = accumulator.ty;
        if !is_number(context, ty) {
            return error(format!(
                "accumulator {number} has type '{ty}'; expected a float, a signless integer or an index"
            ));
        }
        check_combiner_type(accumulator.kind, ty)?;
        let constants = match accumulator.start {
            Start::Constant(start) => [accumulator.identity, Some(start)],
            _ => [accumulator.identity, None],
        };
        if !constants.iter().flatten().all(|it| mlir::is_number(*it)) {
            return error(format!("accumulator {number} needs a number of type '{ty}'"));
        }
        if (accumulator.kind == CombinerKind::Custom) != accumulator.identity.is_some() {
            return error(format!("accumulator {number} needs either a combiner or an identity"));
        }
        let Some(out) = accumulator.destination() else { continue };
        let Some(init) = inits.get(out) else {
            return error(format!(
                "accumulator {number} starts from destination {out}, but there are {}",
                inits.len()
            ));
        };
        let element = mlir::signless(context, mlir::element_type(init.r#type()));
        if accumulator.ty != element {
            return error(format!(
                "accumulator {number} of '{}' starts from destination {out} of '{element}'",
                accumulator.ty
            ));
        }
        if !started.insert(out) {
            return error(format!("two accumulators start from destination {out}"));
        }
    }
    Ok(())
}

/// Whether a combiner works on an element type.
pub(crate) fn check_combiner_type<'c>(kind: CombinerKind, ty: Type<'c>) -> Result<(), Report<'c>> {
    let any = matches!(
        kind,
        CombinerKind::Assign | CombinerKind::Add | CombinerKind::Mul | CombinerKind::Custom
    );
    if any || kind.is_float_extremum() == mlir::is_float(ty) {
        return Ok(());
    }
    error(format!("the combiner '{}' does not work on '{ty}'", kind.name()))
}

/// C5.
fn verify_regions<'c>(
    generic: impl Indexed<'c>,
    inputs: &[Val<'c>],
    inits: &[Val<'c>],
    maps: &[&FrozenMap],
) -> Result<(), Report<'c>> {
    let context = mlir::context_of(generic.op());
    let scalar = |value: &Val<'c>| mlir::signless(context, mlir::element_type(value.r#type()));
    let scalars: Vec<_> = inputs.iter().map(scalar).collect();
    let stored: Vec<_> = inits.iter().map(scalar).collect();
    let folded: Vec<_> = generic.accumulators().iter().map(|it| it.ty).collect();
    let num_epilogues = (generic.op().region_count() - 1)
        .checked_sub(usize::from(generic.has_combiner()))
        .ok_or_else(|| {
            Report::error("has accumulators without a combiner; expected a region 'combine'")
        })?;
    if 1 < num_epilogues {
        return error(format!("expected at most one epilogue, but found {num_epilogues}"));
    }
    let named = [("body", Some(generic.body())), ("combiner", generic.combiner())];
    for (what, block) in named.into_iter().chain([("epilogue", generic.epilogue())]) {
        if let Some(op) = block.and_then(ffi::outer_write) {
            return error(format!(
                "the {what} has a side effect, in '{}'; it may only compute values and read",
                mlir::name(op)
            ));
        }
    }
    if folded.is_empty() {
        return verify_block("body", generic.body(), &scalars, &stored);
    }
    verify_block("body", generic.body(), &scalars, &folded)?;
    if let Some(combiner) = generic.combiner() {
        let arguments = [folded.clone(), folded.clone()].concat();
        verify_block("combiner", combiner, &arguments, &folded)?;
        verify_captures("combiner", combiner)?;
    }
    if let Some(epilogue) = generic.epilogue() {
        verify_block("epilogue", epilogue, &[folded.clone(), scalars].concat(), &stored)?;
        let mut asks_for_range = false;
        let mut ranged = BTreeSet::new();
        let runtimes = generic.runtimes().into_iter().zip(0..);
        let tensors = runtimes.filter(|(value, _)| is_shaped(value.r#type()));
        for (map, (_, number)) in maps[inputs.len() + inits.len()..].iter().zip(tensors) {
            if uses_range(map, &ranged) {
                ranged.insert(Var::Runtime(number));
            }
        }
        for top in mlir::ops(epilogue) {
            mlir::walk(top, &mut |op| {
                asks_for_range |=
                    mlir::is(op, "imap.index") && matches!(index_variable(op), Some(Var::Range(_)));
                asks_for_range |=
                    Inside::cast(op).is_some_and(|it| uses_range(it.frozen_map(), &ranged));
            });
        }
        if asks_for_range {
            return error("the epilogue asks for a range variable, which has no value there");
        }
        for (number, argument) in mlir::arguments(epilogue)[folded.len()..].iter().enumerate() {
            if !mlir::uses(*argument).is_empty() && uses_range(maps[number], &ranged) {
                return error(format!(
                    "the epilogue uses input {number}, whose map uses a range variable"
                ));
            }
        }
    } else if folded != stored {
        return error(format!(
            "has accumulators of ({}) and destinations of ({}); an epilogue must map the one to \
             the other",
            list(&folded),
            list(&stored)
        ));
    }
    Ok(())
}

/// A region such as the combiner depends on its arguments alone.
pub(super) fn verify_captures<'c>(what: &str, region: Blk<'c>) -> Result<(), Report<'c>> {
    let mut ops = Vec::new();
    mlir::ops(region).into_iter().for_each(|top| mlir::walk(top, &mut |op| ops.push(op)));
    let inner = ops.iter().flat_map(|op| {
        let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(*op, region));
        blocks.flat_map(mlir::arguments).chain(mlir::results(*op))
    });
    let inside: BTreeSet<_> =
        mlir::arguments(region).into_iter().chain(inner).map(mlir::value_key).collect();
    let is_constant = |value: Val<'c>| {
        let op = mlir::defining_op(value).map(mlir::name);
        op.is_some_and(|name| ["arith.constant", "complex.constant"].contains(&name))
    };
    let depends =
        |value: &Val<'c>| !inside.contains(&mlir::value_key(*value)) && !is_constant(*value);
    let is_free = |op: &&Op<'c>| is_of_point(**op) || mlir::operands(**op).iter().any(depends);
    match ops.iter().find(is_free) {
        None => Ok(()),
        Some(op) => error(format!(
            "the {what} depends on more than its arguments, in '{}'; only constants and its \
             arguments are known there",
            mlir::name(*op)
        )),
    }
}

fn list(types: &[Type]) -> String {
    types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ")
}

pub(super) fn verify_block<'c>(
    what: &str,
    block: Blk<'c>,
    arguments: &[Type<'c>],
    yields: &[Type<'c>],
) -> Result<(), Report<'c>> {
    let types = |values: Vec<Val<'c>>| values.iter().map(|it| it.r#type()).collect::<Vec<_>>();
    let found = types(mlir::arguments(block));
    if found != arguments {
        return error(format!(
            "expected the arguments of the {what} to be ({}), but found ({})",
            list(arguments),
            list(&found)
        ));
    }
    let Some(terminator) = block.terminator().map(mlir::op_ref) else {
        return error(format!("expected the {what} to end in 'imap.yield'"));
    };
    let found = types(mlir::operands(terminator));
    if !mlir::is(terminator, "imap.yield") || found != yields {
        return error(format!(
            "expected the {what} to yield ({}), but found '{}' of ({})",
            list(yields),
            mlir::name(terminator),
            list(&found)
        ));
    }
    Ok(())
}

fn verify_index<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(around) = AnyIndexed::around(op) else {
        return error("expects to stand in an operation with variables, such as 'imap.generic'");
    };
    let (num_dims, num_ranges, _) = around.frozen_domain().counts();
    let (kind, count) = match index_variable(op) {
        Some(Var::Range(_)) => ("range", num_ranges),
        _ => ("dimension", num_dims),
    };
    let number = mlir::integer_attr(op, "number").unwrap_or(0);
    if number as usize >= count {
        return error(format!("asks for {kind} variable {number}, but the domain has {count}"));
    }
    Ok(())
}

fn verify_inside<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(around) = AnyIndexed::around(op) else {
        return error("expects to stand in an operation with variables, such as 'imap.generic'");
    };
    let Some(map) = op.attribute("map").ok().and_then(map::frozen) else {
        return error("expected an indexing map");
    };
    if map.num_results() != 0 || map.vars().any(|(_, it)| (&it.lower, &it.upper) != (&None, &None))
    {
        return error("expected a map of constraints, without results and bounds of variables");
    }
    let (dims, ranges, runtimes) = map.counts();
    let (num_dims, num_ranges, num_runtimes) = around.frozen_domain().counts();
    let kinds = [
        ("dimension", dims, num_dims),
        ("range", ranges, num_ranges),
        ("runtime", runtimes, num_runtimes),
    ];
    for (kind, used, count) in kinds {
        if count < used {
            return error(format!("uses {kind} variable {}, but the domain has {count}", used - 1));
        }
    }
    Ok(())
}

/// Whether an operation asks for something about the point of the enclosing operation.
fn is_of_point(op: Op) -> bool {
    mlir::is(op, "imap.index") || mlir::is(op, Inside::NAME)
}

/// The variable whose value an `imap.index` gives.
pub fn index_variable(op: Op) -> Option<Var> {
    let number = u32::try_from(mlir::integer_attr(op, "number")?).ok()?;
    // The kind is an attribute of the dialect, `#imap<variable dim>` or `.. range>`.
    let kind = op.attribute("kind").ok()?.to_string();
    let is_range = kind.trim_end_matches('>').ends_with("range");
    Some(if is_range { Var::Range(number) } else { Var::Dim(number) })
}

fn verify_apply<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let Some(map) = op.attribute("map").ok().and_then(map::frozen) else {
        return error("expected an indexing map");
    };
    let num_vars = map.num_vars();
    if op.operand_count() != num_vars {
        return error(format!(
            "expected one operand per variable of the map, {num_vars} in all, but found {}",
            op.operand_count()
        ));
    }
    if op.result_count() != map.num_results() {
        return error(format!(
            "expected one result per result of the map, {} in all, but found {}",
            map.num_results(),
            op.result_count()
        ));
    }
    Ok(())
}

fn verify_builtin<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let name = mlir::string_attr(op, "name").unwrap_or_default();
    let Some(arity) = builtins::lookup(name).map(|it| it.arity) else {
        return error(format!("there is no built-in function \"{name}\""));
    };
    if op.operand_count() != arity {
        return error(format!(
            "built-in function \"{name}\" takes {arity} arguments, but found {}",
            op.operand_count()
        ));
    }
    Ok(())
}
