//! Which producers may be fused into which consumers, and what is built then.

use super::{
    build::{Frame, in_place_of_runtimes},
    candidate::{Candidate, body_size, body_work},
};
use melior::ir::{TypeLike, ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{
        self, AnyIndexed, Generic, Indexed, Runtime, extents::shifted_dim, verify::index_variable,
    },
    mlir::{self, Blk, Op, Val},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::IndexingMap,
    prove::{Prover, Verdict},
};

/// A fused body is not grown beyond this many operations: LLVM needs quadratic time for them, and what an
/// intermediate tensor costs is little beside so many.
const MAX_BODY: usize = 256;

/// The operators of an expression in a composed map.
const MAX_COST: u32 = 400;

/// What will be built.
pub(super) struct Plan<'c, 'i> {
    pub(super) ir: &'i Context,
    pub(super) consumer: Candidate<'c>,
    pub(super) producer: Candidate<'c>,
    /// The inputs of the consumer that read the producer.
    pub(super) reads: Vec<usize>,
    /// Per read, the producer's dimension variables over the consumer's variables.
    pub(super) dims: Vec<Vec<Expr>>,
    pub(super) epilogue: bool,
    pub(super) consumer_map: String,
    pub(super) producer_map: String,
}

/// What fusion may cost.
#[derive(Copy, Clone)]
pub(super) struct Limits {
    /// The most operations per element that may be computed again.
    pub(super) max_recompute: usize,
    /// Whether several consumers may compute a producer. A consumer has its final form only once nothing else can be
    /// fused.
    pub(super) duplicates: bool,
}

/// Decides whether and how a producer can be fused; the error is the reason why not.
pub(super) fn plan<'c, 'i>(
    ir: &'i Context,
    consumer: Generic<'c>,
    producer: Generic<'c>,
    limits: Limits,
) -> Result<Plan<'c, 'i>, String> {
    let consumer = Candidate::new(ir, consumer);
    let producer = Candidate::new(ir, producer);
    let reads = consumer.reads_of(producer.generic);
    let has_one_result = |view: &Candidate| {
        view.view.outputs.len() == 1 && mlir::results(view.generic.op()).len() == 1
    };
    if !has_one_result(&producer) || (producer.is_reduction() && !has_one_result(&consumer)) {
        return Err("only operations with one tensor result are fused".to_string());
    }
    check_reads(&consumer, &producer, &reads)?;
    if !producer.view.domain.constraints.is_empty() {
        return Err("the domain of the producer has constraints".to_string());
    }
    // A product reads each element often, and then should not compute it each time.
    let is_copied = || {
        producer.is_broadcast(ir)
            && (body_work(producer.generic.body()) == 0
                || mlir::uses(mlir::result(producer.generic.op(), 0)).iter().all(|(user, _)| {
                    Generic::cast(*user).is_none_or(|it| Candidate::new(ir, it).view.reads_once(ir))
                }))
    };
    if !is_copied()
        && let Err(reason) = check_uses(consumer.generic, producer.generic)
        && !(limits.duplicates && is_recomputed_by_all(ir, &producer, limits.max_recompute))
    {
        return Err(reason);
    }
    compose(ir, consumer, producer, reads, limits.max_recompute)
}

/// Whether the consumer works on tensors, and the result of the producer is one of its inputs only.
fn check_reads(consumer: &Candidate, producer: &Candidate, reads: &[usize]) -> Result<(), String> {
    if mlir::results(consumer.generic.op()).len() != consumer.view.outputs.len() {
        return Err("the consumer works on buffers".to_string());
    }
    let is_result = |value: &Val| mlir::defining_op(*value) == Some(producer.generic.op());
    if consumer.view.inits().iter().any(is_result) {
        return Err("the consumer accumulates into the result of the producer".to_string());
    }
    if reads.is_empty() {
        return Err("the producer gives values of runtime variables".to_string());
    }
    Ok(())
}

/// Continues [`plan`] without regard to other consumers of the producer.
fn compose<'c, 'i>(
    ir: &'i Context,
    consumer: Candidate<'c>,
    producer: Candidate<'c>,
    reads: Vec<usize>,
    max_recompute: usize,
) -> Result<Plan<'c, 'i>, String> {
    check_memory(consumer.generic, producer.generic)?;
    check_guards(&consumer, &producer, &reads)?;
    let inverse = invert(ir, &producer)?;
    let base = consumer.view.runtimes.len() as u32;
    let dims: Vec<Vec<Expr>> = reads
        .iter()
        .map(|number| {
            let position = &consumer.view.inputs[*number].subscripts;
            // Runtime variables of the producer are replaced when the operations are joined,
            // and cancel in the common case of equal sizes.
            ir.substitute_all(&inverse, &|var| match var {
                Var::Dim(result) => position.get(result as usize).copied(),
                Var::Runtime(number) => Some(ir.runtime(base + number)),
                Var::Range(_) => None,
            })
        })
        .collect();
    let epilogue = producer.is_reduction();
    if epilogue {
        check_epilogue(ir, &consumer, &producer, &reads, &dims)?;
    } else {
        check_recompute(ir, &consumer, &producer, &reads, max_recompute)?;
    }
    check_index_uses(ir, &consumer, &producer, &dims)?;
    check_written(ir, &consumer, &producer, &reads, &dims)?;
    let size = body_size(consumer.generic.op()) + reads.len() * body_size(producer.generic.op());
    if size > MAX_BODY {
        return Err(format!("the fused body would have {size} operations, more than {MAX_BODY}"));
    }
    let elements = producer.view.runtimes.iter().filter_map(Runtime::access);
    let read = producer.view.inputs.iter().chain(elements).flat_map(imap::Access::exprs);
    for (result, dims) in read.flat_map(|result| dims.iter().map(move |dims| (result, dims))) {
        let dim = |var| match var {
            Var::Dim(number) => dims.get(number as usize).copied(),
            _ => None,
        };
        let cost = ir.cost(ir.substitute(result, &dim));
        if MAX_COST < cost {
            return Err(format!(
                "a composed map would have {cost} operators, more than {MAX_COST}"
            ));
        }
    }
    let consumer_map =
        consumer.view.inputs[reads[0]].map(&consumer.view.domain).display(ir).to_string();
    let producer_map = producer.output().map(&producer.view.domain).display(ir).to_string();
    Ok(Plan { ir, consumer, producer, reads, dims, epilogue, consumer_map, producer_map })
}

/// Whether guards allow to compute the producer where it is read. Where the guard of that read fails,
/// the producer is computed from constants, and not used.
fn check_guards(consumer: &Candidate, producer: &Candidate, reads: &[usize]) -> Result<(), String> {
    if producer.generic.has_guards() && consumer.is_reduction() {
        return Err("the reduction would test the guards of the producer at each point".into());
    }
    if reads.iter().all(|read| consumer.view.inputs[*read].guard.is_empty()) {
        return Ok(());
    }
    if producer.is_reduction() {
        return Err("the consumer reads the reduction under a guard".to_string());
    }
    if producer.view.runtimes.iter().any(|it| it.access().is_some()) {
        return Err("the producer reads indices, and the consumer reads it under a guard".into());
    }
    match is_total(producer.generic.body()) {
        true => Ok(()),
        false => Err("the body of the producer cannot run where the consumer does not read".into()),
    }
}

/// Whether a body computes something from any values, without access to memory or a division of
/// integers.
fn is_total(block: Blk) -> bool {
    mlir::ops(block).into_iter().all(|op| {
        let name = mlir::name(op);
        let is_division = ["arith.div", "arith.rem", "arith.floordiv", "arith.ceildiv"]
            .iter()
            .any(|division| name.starts_with(division));
        let is_float = mlir::results(op)
            .iter()
            .all(|result| mlir::is_float(mlir::element_type(result.r#type())));
        op.region_count() == 0
            && (!is_division || is_float)
            && ["arith.", "complex.", "math.", "imap."]
                .iter()
                .any(|dialect| name.starts_with(dialect))
    })
}

/// All uses of the producer have to be plain reads of operations, and of this one alone
/// unless the producer is computed again elsewhere too.
fn check_uses<'c>(consumer: Generic<'c>, producer: Generic<'c>) -> Result<(), String> {
    for (user, _) in mlir::uses(mlir::result(producer.op(), 0)) {
        if user == consumer.op() {
            continue;
        }
        return Err(match AnyIndexed::cast(user) {
            Some(_) => "the result of the producer has several consumers".to_string(),
            None if mlir::is(user, "tensor.extract") => {
                "the result of the producer is read at computed positions".to_string()
            }
            None if mlir::is(user, "tensor.dim") => continue,
            None => "the result of the producer is returned, so it is stored anyway".to_string(),
        });
    }
    Ok(())
}

/// The most consumers that compute a producer again.
const MAX_CONSUMERS: usize = 4;

/// Whether all consumers of a producer can compute it where they read it, with less memory traffic than its result
/// causes and a quarter of `max_recompute` more operations per element. Products read elements too often for that.
fn is_recomputed_by_all<'c>(ir: &Context, producer: &Candidate<'c>, max_recompute: usize) -> bool {
    let result = mlir::result(producer.generic.op(), 0);
    let mut consumers: Vec<Op<'c>> = Vec::new();
    for (user, _) in mlir::uses(result) {
        let is_known = mlir::is(user, "tensor.dim") || consumers.contains(&user);
        if !is_known
            && (consumers.len() == MAX_CONSUMERS || user.block() != producer.generic.op().block())
        {
            return false;
        }
        if !is_known {
            consumers.push(user);
        }
    }
    // To compute an element again takes less time than to load it if that is a few operations.
    let work = body_work(producer.generic.body()) * (consumers.len() - 1);
    if producer.is_reduction() || max_recompute / 4 < work {
        return false;
    }
    let dims = producer.view.looping_dims(ir);
    let is_large = |access: &&imap::Access<'c>| {
        let used = ir.vars_of_all(&access.subscripts);
        dims.iter().all(|dim| used.contains(dim))
    };
    let large: Vec<_> = producer.view.inputs.iter().filter(is_large).collect();
    // The variables of the contiguous dimension: a transposition is better done once.
    let contiguous = |access: &imap::Access<'c>| {
        access.subscripts.iter().rev().map(|it| ir.vars(*it)).find(|vars| !vars.is_empty())
    };
    if large.iter().any(|access| contiguous(access) != contiguous(producer.output())) {
        return false;
    }
    let inputs: Vec<Val<'c>> = large.iter().map(|access| access.value).collect();
    let stored = inputs.len() + 1 + consumers.len();
    let mut recomputed = 0;
    for user in consumers {
        let Some(generic) = Generic::cast(user) else { return false };
        let operands = generic.inputs();
        recomputed += inputs.iter().filter(|input| !operands.contains(input)).count();
        let other = Candidate::new(ir, generic);
        let reads = other.reads_of(producer.generic);
        if !other.view.reads_once(ir)
            || check_reads(&other, producer, &reads).is_err()
            || compose(ir, other, Candidate::new(ir, producer.generic), reads, max_recompute)
                .is_err()
        {
            return false;
        }
    }
    recomputed < stored
}

/// How an operation and those nested in it access memory.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum MemoryUse {
    None,
    Reads,
    Writes,
}

fn memory_use(op: Op) -> MemoryUse {
    let mut most = MemoryUse::None;
    mlir::walk(op, &mut |inner| most = most.max(own_memory_use(inner)));
    most
}

fn own_memory_use(op: Op) -> MemoryUse {
    let is_memory =
        |value: &Val| value.r#type().is_mem_ref() || value.r#type().is_unranked_mem_ref();
    let has_memory = mlir::operands(op).iter().any(is_memory);
    if let Some(indexed) = AnyIndexed::cast(op) {
        return match indexed.inits().iter().any(is_memory) {
            true => MemoryUse::Writes,
            false if has_memory => MemoryUse::Reads,
            false => MemoryUse::None,
        };
    }
    let name = mlir::name(op);
    let (dialect, operation) = name.split_once('.').unwrap_or_default();
    match (dialect, operation) {
        ("scf", _) => MemoryUse::None,
        ("arith" | "complex" | "imap" | "index" | "linalg" | "math" | "tensor", _)
            if !has_memory =>
        {
            MemoryUse::None
        }
        ("memref", "alloc" | "alloca" | "cast" | "dim" | "get_global" | "subview") => {
            MemoryUse::None
        }
        ("bufferization", "to_buffer" | "to_tensor") | ("memref", "load") => MemoryUse::Reads,
        _ => MemoryUse::Writes,
    }
}

/// Fusion moves the reads of the producer to the consumer: no memory may change on the way.
fn check_memory<'c>(consumer: Generic<'c>, producer: Generic<'c>) -> Result<(), String> {
    match memory_use(producer.op()) {
        MemoryUse::None => return Ok(()),
        MemoryUse::Reads => {}
        MemoryUse::Writes => return Err("the producer writes to memory".to_string()),
    }
    let mut next = mlir::next(producer.op());
    while let Some(op) = next {
        if memory_use(op) == MemoryUse::Writes {
            return Err("memory that the producer reads may change before the consumer".to_string());
        }
        next = mlir::next(op).filter(|_| op != consumer.op());
    }
    Ok(())
}

/// Whether all elements that the consumer reads are written by the producer: others are not to
/// be computed, and inputs may have no elements for them.
fn check_written<'c>(
    ir: &Context,
    consumer: &Candidate<'c>,
    producer: &Candidate<'c>,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), String> {
    if producer.covers_destination(ir) {
        return Ok(());
    }
    for (read, dims) in reads.iter().zip(dims) {
        let mut frame = Frame::of(ir, consumer);
        let (dims, runtimes) =
            frame.add_runtimes(&producer.view, consumer.view.runtimes.len(), dims);
        if consumer.generic.epilogue().is_some() {
            // An epilogue reads at points that the constraints exclude, too.
            frame.domain.constraints.clear();
        }
        frame.domain.constraints.extend(&consumer.view.inputs[*read].guard);
        let prover = Prover::for_domain(ir, &frame.domain);
        let in_frame = |expr| ir.substitute(expr, &in_place_of_runtimes(&runtimes));
        let at_most = |low, high| prover.at_most(low, high) == Verdict::Proved;
        let is_in_domain = dims.iter().zip(&producer.view.domain.dims).all(|(dim, variable)| {
            variable.lower.is_some_and(|lower| at_most(in_frame(lower), *dim))
                && variable.upper.is_some_and(|upper| at_most(*dim, in_frame(upper)))
        });
        let positions = consumer.view.inputs[*read].subscripts.iter();
        let is_at_position = positions.zip(&producer.output().subscripts).all(|(read, written)| {
            shifted_dim(ir, *written).is_some()
                || prover.equal(*read, in_frame(*written)) == Verdict::Proved
        });
        if !is_in_domain || !is_at_position {
            return Err("the consumer may read elements that the producer does not write".into());
        }
    }
    Ok(())
}

/// Whether computing the producer where it is read is cheap.
fn check_recompute(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
    max_recompute: usize,
) -> Result<(), String> {
    let work = body_work(producer.generic.body());
    let domain = &consumer.view.domain;
    let variables: BTreeSet<Var> = domain
        .vars()
        .filter(|(var, variable)| {
            !matches!(var, Var::Runtime(_)) && variable.lower != variable.upper
        })
        .map(|(var, _)| var)
        .collect();
    let mut maps: Vec<&[Expr]> =
        reads.iter().map(|it| consumer.view.inputs[*it].subscripts.as_slice()).collect();
    maps.sort_unstable();
    maps.dedup();
    for map in &maps {
        let used = ir.vars_of_all(map);
        // What one operation makes of an index costs no more than to load it.
        if work > usize::from(producer.view.inputs.is_empty())
            && let Some(missing) = variables.iter().find(|var| !used.contains(var))
        {
            return Err(format!(
                "each element would be computed again for every value of {}",
                variable_name(domain, *missing)
            ));
        }
    }
    let total = work * maps.len();
    if maps.len() > 1 && total > max_recompute {
        return Err(format!(
            "{} reads of a body with {work} operations exceed max-recompute={max_recompute}",
            maps.len()
        ));
    }
    Ok(())
}

fn variable_name(domain: &IndexingMap, var: Var) -> String {
    let name = domain.variable(var).and_then(|variable| variable.name.as_deref());
    name.map_or_else(|| tc_ir::text::default_name(var), |name| format!("'{name}'"))
}

/// Whether the consumer can become the epilogue of the producer.
fn check_epilogue(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), String> {
    if consumer.is_reduction() {
        return Err("both are reductions".to_string());
    }
    if !consumer.view.domain.constraints.is_empty() {
        return Err("the domain of the consumer has constraints".to_string());
    }
    if producer.view.accumulators.iter().any(|it| it.destination().is_some()) {
        return Err("the producer accumulates into a tensor that is there".to_string());
    }
    let maps: BTreeSet<_> =
        reads.iter().map(|number| &consumer.view.inputs[*number].subscripts).collect();
    if maps.len() != 1 {
        return Err("the consumer reads the reduction through several maps".to_string());
    }
    let mut used = BTreeSet::new();
    for expr in &dims[0] {
        let vars: Vec<_> =
            ir.vars(*expr).into_iter().filter(|var| !matches!(var, Var::Runtime(_))).collect();
        let var = match vars[..] {
            [] => continue,
            [var] => var,
            _ => {
                return Err("the consumer reads the reduction by several variables per dimension"
                    .to_string());
            }
        };
        let offset = ir.canonicalize(ir.sub(*expr, ir.var(var)));
        if ir.vars(offset).contains(&var) || !used.insert(var) {
            return Err("the consumer does not read each element of the reduction once".to_string());
        }
    }
    if !consumer.view.looping_dims(ir).iter().all(|var| used.contains(var)) {
        return Err(
            "the reduction would be computed again for every element that uses it".to_string()
        );
    }
    Ok(())
}

/// A body that asks for the value of a dimension variable needs it as an expression of
/// values at hand, which elements of runtime tensors are not.
fn check_index_uses(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    dims: &[Vec<Expr>],
) -> Result<(), String> {
    let mut asked = BTreeSet::new();
    for block in [Some(producer.generic.body()), producer.generic.epilogue()].into_iter().flatten()
    {
        for top in mlir::ops(block) {
            mlir::walk(top, &mut |op| {
                if mlir::is(op, "imap.index")
                    && let Some(Var::Dim(number)) = index_variable(op)
                {
                    asked.insert(number as usize);
                }
            });
        }
    }
    let runtimes: Vec<_> = consumer.view.runtimes.iter().chain(&producer.view.runtimes).collect();
    let from_tensor = |var: &Var| {
        matches!(var, Var::Runtime(number)
            if runtimes.get(*number as usize).is_some_and(|it| it.access().is_some()))
    };
    for exprs in dims {
        for number in &asked {
            if ir.vars(exprs[*number]).iter().any(from_tensor) {
                return Err(
                    "the body of the producer uses an index that is read from a tensor".to_string()
                );
            }
        }
    }
    Ok(())
}

/// The dimension variables of the producer over the position of an element of its result, which
/// `d0, d1, ..` denote here, and its runtime variables.
fn invert(ir: &Context, producer: &Candidate) -> Result<Vec<Expr>, String> {
    let output = producer.output();
    let mut found: Vec<Option<Expr>> = Vec::new();
    for variable in &producer.view.domain.dims {
        let point = variable.constant_interval(ir).and_then(|interval| interval.as_point());
        found.push(point.map(|value| ir.constant(value)));
    }
    for (number, result) in output.subscripts.iter().enumerate() {
        let mut offset = *result;
        if let Some((dim, shift)) = shifted_dim(ir, *result) {
            offset = shift;
            let index = ir.sub(ir.dim(number as u32), offset);
            let slot = found.get_mut(dim as usize);
            if slot.and_then(|slot| slot.replace(index)).is_some() {
                return Err("the producer's map to its result uses a variable twice".to_string());
            }
        }
        if producer.varies(ir, &[offset]) {
            return Err("the producer's map to its result is not a permutation with offsets \
                        that are the same for all points"
                .to_string());
        }
    }
    let all: Option<Vec<_>> = found.into_iter().collect();
    all.ok_or_else(|| "the producer's map to its result does not use all variables".to_string())
}
