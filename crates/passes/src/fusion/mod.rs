//! `imap-fuse`: composes a producer's indexing maps into those of its consumer.
//!
//! Three rewrites come first, tried on every pair of an operation and an `imap.generic` in the same block whose result it
//! reads, in bodies of loops and branches too, last consumers first, until none applies:
//!
//! * **Producer into consumer.** A producer without reductions is computed where it is
//!   read: with `f` the consumer's map to the intermediate tensor and `o` the producer's
//!   map to it, an input of the producer with map `g` becomes an input of the consumer
//!   with map `g . inverse(o) . f`. One copy of the body per distinct `f`. A scatter takes in a few operations per update.
//! * **Epilogue.** A consumer without reductions, which reads each element of a reduction's
//!   result once, becomes the epilogue of the reduction.
//! * **Fold of a fold.** Two sums, one of the results of the other one, are one sum, as are two maxima and so on. A
//!   product stays, because its register blocks read each factor for several results.
//!
//! A fold of a fold rounds in another order, which `strict-fp` forbids. Otherwise results are unchanged: the same operations
//! happen in the same order per element, nothing is computed that the producer does not compute, and memory that it reads
//! does not change before the consumer. A producer is only recomputed if that is cheap: it is read once per element, or
//! the work of its body times the number of reads stays within `max-recompute`. One whose result
//! is returned, or read at computed positions, is stored anyway and stays apart. A broadcast, which
//! reads fewer elements than it writes, and a slice are computed by each of their readers. So is, once nothing else can be
//! fused, a producer with a few consumers, if all of them can take it in and then access fewer elements than with
//! the stored result.
//!
//! A fourth rewrite follows, on tensors that several operations write, each a part of it:
//!
//! * **Divide.** An operation on elements that reads a concatenation or a roll becomes one operation per part, which can
//!   take in the operation that computes the part. All readers have to be such operations.
//!
//! A fifth rewrite comes last, tried on operations that share a tensor:
//!
//! * **Merge.** Operations on the same points become one that has the results of both, such as two sums of one tensor.
//!   The second one may read what the first one writes at the same point. Products stay apart: a register block holds
//!   one result.
//!
//! Before the last one, with `max-row`, for a softmax of rows that no tile holds:
//!
//! * **Rescale.** The maximum `m` of `x` and the sum of `exp(x - m)` become one fold, of which the combiner multiplies the
//!   sum of the smaller maximum by `exp(old - new)`. Other readers compute the exponentials again. It rounds in another
//!   order, too.
//!
//! A fold of one value per point becomes an operation without reductions first.
//! A fold that has the same value along a dimension, as a product with a broadcast tensor has once that is composed
//! into it, is computed once, and its result is copied along the dimension.
//!
//! Guards of the producer go along with its maps. Where the guard of the consumer's read fails, the body of the
//! producer runs on the constants of its inputs, and its value is not used (`imap.inside`). A reduction takes in no
//! producer with guards. An operation with a schedule stays as it is.
//!
//! Before, shortened:
//!
//! ```mlir
//! %s = imap.generic (i)[k] .. ins(%A[i, k] ..) outs(%e[i] ..) fold [add f32] {..}
//! %r = imap.generic (i) .. ins(%s[i], %b[i] ..) outs(%e[i] ..) {
//! ^bb0(%x: f32, %y: f32):
//!   %z = arith.addf %x, %y : f32
//!   imap.yield %z : f32
//! } -> tensor<?xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %r = imap.generic (i)[k] .. ins(%A[i, k], %b[i] ..) outs(%e[i] ..) fold [add f32] {..}
//! epilogue {
//! ^bb0(%x: f32, %a: f32, %y: f32):
//!   %z = arith.addf %x, %y : f32
//!   imap.yield %z : f32
//! } -> tensor<?xf32>
//! ```
//!
//! Options: the costs of a [`MemoryBound`] machine, and `strict-fp`. Remarks: `fused`, `divided`, `merged` and `rescaled` for
//! each rewrite; `narrowed` for each fold that is computed once; `unfolded` for each that folds one value; `apart` and
//! `unmerged` for each pair that is left, with both maps and the reason; `undivided` for each tensor of parts that is left,
//! with the reason; `not rescaled` for each softmax of long rows that
//! is left, with the reason; `linalg` for each operation of that dialect, which is never fused; `temporaries` per function,
//! the bytes of intermediate tensors before and after.

mod apply;
mod candidate;
mod cost;
mod legality;
mod narrow;
mod parts;
mod paths;
pub mod print;
mod unfold;

use crate::{
    analysis::linalg,
    target::{CostModel, MemoryBound},
};
use candidate::Candidate;
use cost::{long_exponentials, plan, plan_copy, plan_merge};
use legality::{Composition, Rejection, rescale};
use melior::ir::{Location, ValueLike, operation::OperationLike};
use std::collections::HashSet;
use tc_dialects::{
    imap::{Accumulator, AnyIndexed, Generic, Indexed, schedule::is_scheduled},
    mlir::{self, Blk, Op},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, records_remarks, remark},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    polynomial,
};

/// The costs of a [`MemoryBound`] machine.
const COSTS: [PassOption; 7] = [
    PassOption {
        name: "max-recompute",
        description: "The most operations per element that may be computed again",
        default: "16",
    },
    PassOption {
        name: "max-consumers",
        description: "The most consumers that compute a producer again",
        default: "4",
    },
    PassOption {
        name: "max-body",
        description: "The most operations of a fused operation",
        default: "256",
    },
    PassOption {
        name: "max-map",
        description: "The most operators of an expression in a composed map",
        default: "400",
    },
    PassOption {
        name: "max-streams",
        description: "The most tensors that a merged operation accesses at each point",
        default: "16",
    },
    PassOption {
        name: "max-row",
        description: "The most bytes of a row that a softmax reads for its maximum and again for its sum; 0 for no limit",
        default: "0",
    },
    PassOption {
        name: "strict-fp",
        description: "Do not fold floating-point numbers in another order",
        default: "false",
    },
];

/// An option, and those of the costs.
const fn with_costs(first: PassOption) -> [PassOption; 1 + COSTS.len()] {
    let mut all = [first; 1 + COSTS.len()];
    let mut number = 0;
    while number < COSTS.len() {
        all[1 + number] = COSTS[number];
        number += 1;
    }
    all
}

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-fuse",
    summary: "Fuse producers into consumers by composing indexing maps",
    anchor: "builtin.module",
    options: &COSTS,
    dependent_dialects: &["arith", "imap", "tensor"],
    run,
};

/// The costs in the options of a pass.
fn costs(pass: &PassRun) -> Result<MemoryBound, Failure> {
    let number = |name| Ok(pass.number_in(name, 0..=i64::from(u32::MAX), "a number")? as u32);
    Ok(MemoryBound {
        max_recompute: number("max-recompute")? as usize,
        max_consumers: number("max-consumers")? as usize,
        max_body: number("max-body")? as usize,
        max_map: number("max-map")?,
        max_streams: number("max-streams")? as usize,
        max_row: Some(number("max-row")?.into()).filter(|most| 0 < *most),
        reassociates: !pass.options.flag("strict-fp"),
    })
}

fn run(pass: &PassRun) -> Result<(), Failure> {
    let model = costs(pass)?;
    let Some(module) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(module) {
        if function.region_count() == 1
            && let Some(block) = mlir::body(function, 0)
        {
            pass.enter(function);
            linalg::remark_not_fused(function, PASS.argument);
            fuse_function(function, block, &model);
        }
    }
    Ok(())
}

fn generics<'c>(block: Blk<'c>) -> Vec<Generic<'c>> {
    mlir::ops(block).into_iter().filter_map(Generic::cast).collect()
}

/// The operations with maps of a block.
fn consumers<'c>(block: Blk<'c>) -> Vec<AnyIndexed<'c>> {
    mlir::ops(block).into_iter().filter_map(AnyIndexed::cast).collect()
}

/// The blocks inside of a block, and itself, that have operations to fuse.
fn blocks_to_fuse<'c>(block: Blk<'c>, found: &mut Vec<Blk<'c>>) {
    if !generics(block).is_empty() {
        found.push(block);
    }
    for op in mlir::ops(block).into_iter().filter(|op| Generic::cast(*op).is_none()) {
        for region in 0..op.region_count() {
            mlir::blocks(op, region).into_iter().for_each(|inner| blocks_to_fuse(inner, found));
        }
    }
}

fn fuse_function<'c>(function: Op<'c>, block: Blk<'c>, model: &dyn CostModel) {
    let mut blocks = Vec::new();
    blocks_to_fuse(block, &mut blocks);
    if blocks.is_empty() {
        return;
    }
    let ir = Context::new();
    let remarks = Remarks {
        function: mlir::string_attr(function, "sym_name").unwrap_or_default(),
        are_recorded: records_remarks(mlir::context_of(function)),
    };
    let before = remarks.are_recorded.then(|| temporary_bytes(&blocks));
    let num_fused: usize = blocks.iter().map(|block| fuse_block(&ir, *block, remarks, model)).sum();
    let num_generics: usize = blocks.iter().map(|block| generics(*block).len()).sum();
    remarks.emit(RemarkKind::Analysis, function.location(), "temporaries", || {
        vec![
            ("Fused", num_fused.to_string()),
            ("Generics", num_generics.to_string()),
            ("BytesBefore", before.unwrap_or_default()),
            ("BytesAfter", temporary_bytes(&blocks)),
        ]
    });
}

/// The remarks of the pass on a function.
#[derive(Copy, Clone)]
struct Remarks<'a> {
    function: &'a str,
    are_recorded: bool,
}

impl Remarks<'_> {
    /// Emits a remark. Its arguments are only made if remarks are recorded.
    fn emit(
        self,
        kind: RemarkKind,
        location: Location,
        name: &str,
        arguments: impl FnOnce() -> Vec<(&'static str, String)>,
    ) {
        if self.are_recorded {
            let arguments = arguments();
            let arguments: Vec<_> = arguments.iter().map(|(key, text)| (*key, &**text)).collect();
            remark(location, kind, PASS.argument, name, self.function, &arguments);
        }
    }

    /// Emits the remark of a rewrite, at the operation that it made.
    fn passed(
        self,
        op: AnyIndexed,
        name: &str,
        arguments: impl FnOnce() -> Vec<(&'static str, String)>,
    ) {
        self.emit(RemarkKind::Passed, op.op().location(), name, arguments);
    }
}

/// The first map of an operation as text.
fn first_map(ir: &Context, generic: Generic) -> String {
    generic.maps(ir)[0].display(ir).to_string()
}

/// Fuses the operations of a block, and says how many were.
fn fuse_block<'c>(ir: &Context, block: Blk<'c>, remarks: Remarks, model: &dyn CostModel) -> usize {
    let mut num_fused = 0;
    loop {
        num_fused += fuse_all(ir, block, remarks, (model, false));
        num_fused += fuse_all(ir, block, remarks, (model, true));
        if divide_all(ir, block, remarks, model) {
            continue;
        }
        num_fused += rescale_all(ir, block, remarks, model);
        num_fused += merge_all(ir, block, remarks, model);
        // Operations that became one may be the only reader.
        if !divide_all(ir, block, remarks, model) {
            break;
        }
    }
    if remarks.are_recorded {
        report_missed(ir, block, remarks, (model, true));
    }
    num_fused
}

/// Divides readers of tensors that are written in parts, and says whether there are any.
fn divide_all<'c>(ir: &Context, block: Blk<'c>, remarks: Remarks, model: &dyn CostModel) -> bool {
    let mut has_divided = false;
    let mut pending = generics(block);
    pending.reverse();
    while let Some(last) = pending.pop() {
        let location = last.op().location();
        let Some(Ok(division)) = parts::plan(ir, last, model) else { continue };
        let num_parts = division.apply();
        // Readers are other operations now.
        pending = generics(block);
        pending.reverse();
        has_divided = true;
        remarks.emit(RemarkKind::Passed, location, "divided", || {
            vec![("Parts", num_parts.to_string())]
        });
    }
    has_divided
}

/// Makes one operation of pairs on the same points until none is left, and says of how many.
fn merge_all<'c>(ir: &Context, block: Blk<'c>, remarks: Remarks, model: &dyn CostModel) -> usize {
    let mut num_merged = 0;
    let mut pending = generics(block);
    pending.reverse();
    while let Some(second) = pending.pop() {
        let (mut found, mut rejected) = (None, Vec::new());
        for first in partners(second) {
            match plan_merge(ir, (first, second), model) {
                Ok(merge) => {
                    found = Some(merge);
                    break;
                }
                Err(Rejection::NothingShared) => {}
                Err(rejection) => rejected.push((first, rejection)),
            }
        }
        if let Some(merge) = found {
            let merged = merge.apply();
            let results = || mlir::results(merged.op()).len().to_string();
            remarks.passed(merged.into(), "merged", || vec![("Results", results())]);
            pending.push(merged);
            num_merged += 1;
            continue;
        }
        for (first, rejection) in rejected {
            remarks.emit(RemarkKind::Missed, second.op().location(), "unmerged", || {
                vec![
                    ("FirstMap", first_map(ir, first)),
                    ("SecondMap", first_map(ir, second)),
                    ("Reason", rejection.to_string()),
                ]
            });
        }
    }
    num_merged
}

/// Folds maxima and sums of exponentials of long rows together, and returns the number of rewrites.
fn rescale_all<'c>(ir: &Context, block: Blk<'c>, remarks: Remarks, model: &dyn CostModel) -> usize {
    if !model.reassociates() {
        return 0;
    }
    let (mut num_rescaled, mut all_stored) = (0, Vec::new());
    for sum in generics(block).into_iter().filter(|it| !it.accumulators().is_empty()) {
        let Some(exponentials) = long_exponentials(ir, sum, model) else { continue };
        let is_stored = exponentials.op() != sum.op();
        match rescale_sum(ir, sum, exponentials, model) {
            Ok(fold) => {
                remarks.passed(fold.into(), "rescaled", || vec![("Map", first_map(ir, fold))]);
                num_rescaled += 1;
                let is_known = |it: &Generic| it.op() == exponentials.op();
                if is_stored && !all_stored.iter().any(is_known) {
                    all_stored.push(exponentials);
                }
            }
            Err(rejection) => {
                remarks.emit(RemarkKind::Missed, sum.op().location(), "not rescaled", || {
                    vec![("Reason", rejection.to_string())]
                });
            }
        }
    }
    // A reader may be one of the sums above.
    all_stored.into_iter().for_each(|it| copy_into_readers(ir, it, model));
    num_rescaled
}

/// Folds a sum together with the maximum below its exponentials.
fn rescale_sum<'c>(
    ir: &Context,
    sum: Generic<'c>,
    exponentials: Generic<'c>,
    model: &dyn CostModel,
) -> Result<Generic<'c>, Rejection> {
    if exponentials.op() == sum.op() {
        return Ok(rescale(ir, Candidate::new(ir, sum))?.apply(ir));
    }
    let whole = plan_copy(ir, sum.into(), exponentials.into(), model)?.build();
    match rescale(ir, Candidate::new(ir, whole)) {
        Ok(rescaling) => {
            mlir::replace(sum.op(), &mlir::results(whole.op()));
            Ok(rescaling.apply(ir))
        }
        Err(rejection) => {
            mlir::erase(whole.op());
            Err(rejection)
        }
    }
}

/// Computes a producer again in each reader of its block that can do so. Erases the producer if no reader is left.
fn copy_into_readers<'c>(ir: &Context, producer: Generic<'c>, model: &dyn CostModel) {
    let result = mlir::result(producer.op(), 0);
    let next = || {
        let mut readers =
            mlir::uses(result).into_iter().filter_map(|(user, _)| AnyIndexed::cast(user));
        readers.find_map(|reader| {
            let plan = (reader.op().block() == producer.op().block())
                .then(|| plan_copy(ir, reader, producer.into(), model).ok());
            Some((reader, plan??))
        })
    };
    while let Some((reader, plan)) = next() {
        let fused = plan.build();
        mlir::replace(reader.op(), &mlir::results(fused.op()));
    }
    if mlir::uses(result).is_empty() {
        mlir::erase(producer.op());
    }
}

/// The most operations that are looked at as partners of another one.
const MAX_PARTNERS: usize = 8;

/// Operations of the same block in front of one that give it an operand or read one of its tensors, the nearest first.
fn partners<'c>(second: Generic<'c>) -> Vec<Generic<'c>> {
    let mut found: Vec<Generic> = Vec::new();
    let mut known = HashSet::new();
    let tensors = second.inputs().into_iter().filter(|it| !mlir::shape(it.r#type()).is_empty());
    for value in tensors {
        let users = mlir::uses(value).into_iter().map(|(user, _)| user);
        for op in mlir::defining_op(value).into_iter().chain(users) {
            let is_partner = op.block() == second.op().block()
                && mlir::is_before(op, second.op())
                && known.insert(mlir::op_key(op));
            found.extend(Generic::cast(op).filter(|_| is_partner));
        }
    }
    found.sort_unstable_by(|a, b| {
        mlir::is_before(a.op(), b.op()).cmp(&mlir::is_before(b.op(), a.op()))
    });
    found.truncate(MAX_PARTNERS);
    found
}

/// Fuses pairs of a block until none is left, and says how many were.
fn fuse_all<'c>(
    ir: &Context,
    block: Blk<'c>,
    remarks: Remarks,
    costs: (&dyn CostModel, bool),
) -> usize {
    let mut num_fused = 0;
    // Consumers from the last to the first. A consumer that took in a producer is looked at
    // again, because it has new producers.
    let mut pending = consumers(block);
    while let Some(consumer) = pending.pop() {
        let generic = Generic::cast(consumer.op()).filter(|it| !is_scheduled(it.op()));
        if let Some(map) = generic.and_then(|it| unfold::unfold(ir, it)) {
            mlir::replace(consumer.op(), &mlir::results(map.op()));
            remarks.passed(map.into(), "unfolded", || vec![("Map", first_map(ir, map))]);
            pending.push(map.into());
            continue;
        }
        if let Some((fold, copies)) = generic.and_then(|it| narrow::narrow(ir, it)) {
            let result = mlir::result(copies.op(), 0);
            mlir::replace(consumer.op(), &[result]);
            remarks.passed(fold.into(), "narrowed", || vec![("Map", first_map(ir, copies))]);
            pending.extend([fold, copies].map(AnyIndexed::from));
            // Its readers can copy the result themselves.
            for (user, _) in mlir::uses(result) {
                let reader =
                    AnyIndexed::cast(user).filter(|it| it.op().block() == copies.op().block());
                let reader = reader.filter(|it| pending.iter().all(|other| other.op() != it.op()));
                pending.extend(reader);
            }
            continue;
        }
        let Some((producer, plan)) = find_fusion(ir, consumer, costs) else { continue };
        let maps = remarks.are_recorded.then(|| plan.maps());
        let form = plan.form.name();
        let fused = plan.build();
        mlir::replace(consumer.op(), &mlir::results(fused.op()));
        remarks.passed(fused, "fused", || {
            let (consumer, producer) = maps.unwrap_or_default();
            vec![("As", form.to_string()), ("ConsumerMap", consumer), ("ProducerMap", producer)]
        });
        num_fused += 1;
        if mlir::results(producer.op()).iter().all(|result| mlir::uses(*result).is_empty()) {
            pending.retain(|generic| generic.op() != producer.op());
            mlir::erase(producer.op());
        }
        pending.push(fused);
    }
    num_fused
}

/// The first producer that can be fused into a consumer, and how.
fn find_fusion<'c, 'i>(
    ir: &'i Context,
    consumer: AnyIndexed<'c>,
    costs: (&dyn CostModel, bool),
) -> Option<(Generic<'c>, Composition<'c, 'i>)> {
    producers(consumer)
        .into_iter()
        .find_map(|producer| plan(ir, consumer, producer, costs).ok().map(|plan| (producer, plan)))
}

/// The operations of its block whose results a consumer reads, each once. What is calculated before
/// a loop is not calculated again in each of its iterations.
fn producers<'c>(consumer: AnyIndexed<'c>) -> Vec<Generic<'c>> {
    let mut found: Vec<Generic> = Vec::new();
    let parent = mlir::parent(consumer.op());
    for value in mlir::operands(consumer.op()) {
        if let Some(producer) = mlir::defining_op(value).and_then(Generic::cast)
            && mlir::parent(producer.op()) == parent
            && !found.iter().any(|known| known.op() == producer.op())
        {
            found.push(producer);
        }
    }
    found
}

/// Says of each pair that is left why it is not fused.
fn report_missed<'c>(
    ir: &Context,
    block: Blk<'c>,
    remarks: Remarks,
    costs: (&dyn CostModel, bool),
) {
    for last in generics(block) {
        if let Some(Err(rejection)) = parts::plan(ir, last, costs.0) {
            remarks.emit(RemarkKind::Missed, last.op().location(), "undivided", || {
                vec![("Reason", rejection.to_string())]
            });
        }
    }
    for consumer in consumers(block) {
        for producer in producers(consumer) {
            let Err(rejection) = plan(ir, consumer, producer, costs) else { continue };
            remarks.emit(RemarkKind::Missed, consumer.op().location(), "apart", || {
                let (consumer, producer) = describe_maps(ir, consumer, producer);
                vec![
                    ("ConsumerMap", consumer),
                    ("ProducerMap", producer),
                    ("Reason", rejection.to_string()),
                ]
            });
        }
    }
}

fn describe_maps<'c>(
    ir: &Context,
    consumer: AnyIndexed<'c>,
    producer: Generic<'c>,
) -> (String, String) {
    let (consumer, producer) = (Candidate::new(ir, consumer), Candidate::new(ir, producer));
    let reads = consumer.reads_of(producer.generic);
    let map = reads.first().map(|number| consumer.view.inputs[*number].map(&consumer.view.domain));
    (
        map.map_or_else(|| "none".to_string(), |map| map.display(ir).to_string()),
        producer.output().map(&producer.view.domain).display(ir).to_string(),
    )
}

/// The bytes of the tensors that operations of some blocks define and that are not returned, as an
/// expression of the names of sizes.
fn temporary_bytes<'c>(blocks: &[Blk<'c>]) -> String {
    let ir = Context::new();
    let mut names: Vec<String> = Vec::new();
    let mut total = ir.constant(0);
    for generic in blocks.iter().flat_map(|block| generics(*block)) {
        let domain = generic.domain(&ir);
        for (number, result) in mlir::results(generic.op()).into_iter().enumerate() {
            let returned = mlir::uses(result).iter().any(|(user, _)| user.result_count() == 0);
            let starts_here = |it: &Accumulator| it.destination() == Some(number);
            if returned || generic.accumulators().iter().any(starts_here) {
                continue;
            }
            let element = mlir::element_type(result.r#type());
            let mut bytes = ir.constant(mlir::byte_width(element) as i64);
            for dim in &domain.dims {
                let (Some(lower), Some(upper)) = (dim.lower, dim.upper) else { continue };
                bytes = (ir.wrap(bytes) * (ir.wrap(upper) - lower + 1)).expr();
            }
            let named: Vec<Expr> = domain
                .runtimes
                .iter()
                .enumerate()
                .map(|(number, variable)| {
                    let name = variable
                        .name
                        .as_deref()
                        .map_or_else(|| format!("rt{number}"), str::to_string);
                    let place =
                        names.iter().position(|known| *known == name).unwrap_or_else(|| {
                            names.push(name);
                            names.len() - 1
                        });
                    ir.runtime(place as u32)
                })
                .collect();
            let bytes = ir.substitute(bytes, &|var| match var {
                Var::Runtime(number) => named.get(number as usize).copied(),
                _ => None,
            });
            total = ir.add(total, bytes);
        }
    }
    polynomial::text(&ir, total, &|var| match var {
        Var::Runtime(number) => names[number as usize].clone(),
        other => tc_ir::text::default_name(other),
    })
}
