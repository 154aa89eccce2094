//! `imap-fuse`: composes a producer's indexing maps into those of its consumer.
//!
//! Two rewrites, tried on every pair of an `imap.generic` and one in the same block whose result it
//! reads, in bodies of loops and branches too, last consumers first, until neither applies:
//!
//! * **Producer into consumer.** A producer without reductions is computed where it is
//!   read: with `f` the consumer's map to the intermediate tensor and `o` the producer's
//!   map to it, an input of the producer with map `g` becomes an input of the consumer
//!   with map `g . inverse(o) . f`. One copy of the body per distinct `f`.
//! * **Epilogue.** A consumer without reductions, which reads each element of a reduction's
//!   result once, becomes the epilogue of the reduction.
//!
//! Results are unchanged: the same operations happen in the same order per element, nothing is
//! computed that the producer does not compute, and memory that it reads does not change before
//! the consumer. A producer is only recomputed if that is cheap: it is read once per element, or
//! the work of its body times the number of reads stays within `max-recompute`. One whose result
//! is returned, or read at computed positions, is stored anyway and stays apart. A broadcast, which
//! reads fewer elements than it writes, is computed by each of its readers.
//!
//! Guards of the producer go along with its maps. Where the guard of the consumer's read fails, the body of the
//! producer runs on the constants of its inputs, and its value is not used (`imap.inside`). A reduction takes in no
//! producer with guards.
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
//! Options: `max-recompute` (default 16). Remarks: `fused` for each rewrite; `apart` for
//! each pair that is left, with both maps and the reason; `linalg` for each operation of that
//! dialect, which is never fused; `temporaries` per function, the bytes of intermediate tensors
//! before and after.

use crate::analysis::linalg;
use melior::ir::{Attribute, TypeLike, ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    imap::{
        self, Accumulator, AnyIndexed, Generic, GenericParts, Indexed, Inside,
        extents::{reaches_all, shifted_dim},
        verify::index_variable,
    },
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
    polynomial,
    prove::{Prover, Verdict},
    simplify::Simplifier,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-fuse",
    summary: "Fuse producers into consumers by composing indexing maps",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-recompute",
        description: "The most operations per element that may be computed again",
        default: "16",
    }],
    dependent_dialects: &["arith", "imap", "tensor"],
    run,
};

/// A fused body is not grown beyond this many operations: LLVM needs quadratic time for them, and what an
/// intermediate tensor costs is little beside so many.
const MAX_BODY: usize = 256;
/// The operators of an expression in a composed map.
const MAX_COST: u32 = 400;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(max_recompute) = pass.options.number("max-recompute") else {
        tc_dialects::diagnostic::Report::op_error(pass.op, "'max-recompute' expects a number")
            .emit();
        return Err(Failure);
    };
    let Some(module) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(module) {
        if function.region_count() == 1
            && let Some(block) = mlir::body(function, 0)
        {
            pass.enter(function);
            linalg::remark_not_fused(function, PASS.argument);
            fuse_function(function, block, max_recompute.max(0) as usize);
        }
    }
    Ok(())
}

fn generics<'c>(block: Blk<'c>) -> Vec<Generic<'c>> {
    mlir::ops(block).into_iter().filter_map(Generic::cast).collect()
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

fn fuse_function<'c>(function: Op<'c>, block: Blk<'c>, max_recompute: usize) {
    let mut blocks = Vec::new();
    blocks_to_fuse(block, &mut blocks);
    if blocks.is_empty() {
        return;
    }
    let ir = Context::new();
    let name = mlir::string_attr(function, "sym_name").unwrap_or_default();
    let before = temporary_bytes(&blocks);
    let num_fused: usize =
        blocks.iter().map(|block| fuse_block(&ir, *block, name, max_recompute)).sum();
    let num_generics: usize = blocks.iter().map(|block| generics(*block).len()).sum();
    remark(
        function.location(),
        RemarkKind::Analysis,
        PASS.argument,
        "temporaries",
        name,
        &[
            ("Fused", &num_fused.to_string()),
            ("Generics", &num_generics.to_string()),
            ("BytesBefore", &before),
            ("BytesAfter", &temporary_bytes(&blocks)),
        ],
    );
}

/// Fuses the operations of a block, and says how many were.
fn fuse_block<'c>(ir: &Context, block: Blk<'c>, function: &str, max_recompute: usize) -> usize {
    let mut num_fused = 0;
    // Consumers from the last to the first. A consumer that took in a producer is looked at
    // again, because it has new producers.
    let mut pending = generics(block);
    while let Some(consumer) = pending.pop() {
        let Some((producer, plan)) = find_fusion(ir, consumer, max_recompute) else { continue };
        let maps = (plan.consumer_map.clone(), plan.producer_map.clone());
        let fused = plan.build();
        mlir::replace(consumer.op(), &mlir::results(fused.op()));
        let kind = if fused.epilogue().is_some() { "epilogue" } else { "producer" };
        remark(
            fused.op().location(),
            RemarkKind::Passed,
            PASS.argument,
            "fused",
            function,
            &[("As", kind), ("ConsumerMap", &maps.0), ("ProducerMap", &maps.1)],
        );
        num_fused += 1;
        if mlir::results(producer.op()).iter().all(|result| mlir::uses(*result).is_empty()) {
            pending.retain(|generic| generic.op() != producer.op());
            mlir::erase(producer.op());
        }
        pending.push(fused);
    }
    report_missed(ir, block, function, max_recompute);
    num_fused
}

/// The first producer that can be fused into a consumer, and how.
fn find_fusion<'c, 'i>(
    ir: &'i Context,
    consumer: Generic<'c>,
    max_recompute: usize,
) -> Option<(Generic<'c>, Plan<'c, 'i>)> {
    producers(consumer).into_iter().find_map(|producer| {
        plan(ir, consumer, producer, max_recompute).ok().map(|plan| (producer, plan))
    })
}

/// The operations of its block whose results a consumer reads, each once. What is calculated before
/// a loop is not calculated again in each of its iterations.
fn producers<'c>(consumer: Generic<'c>) -> Vec<Generic<'c>> {
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
fn report_missed<'c>(ir: &Context, block: Blk<'c>, function: &str, max_recompute: usize) {
    for consumer in generics(block) {
        for producer in producers(consumer) {
            let Err(refusal) = plan(ir, consumer, producer, max_recompute) else { continue };
            let maps = describe_maps(ir, consumer, producer);
            remark(
                consumer.op().location(),
                RemarkKind::Missed,
                PASS.argument,
                "apart",
                function,
                &[("ConsumerMap", &maps.0), ("ProducerMap", &maps.1), ("Reason", &refusal)],
            );
        }
    }
}

fn describe_maps<'c>(
    ir: &Context,
    consumer: Generic<'c>,
    producer: Generic<'c>,
) -> (String, String) {
    let (consumer, producer) = (Node::new(ir, consumer), Node::new(ir, producer));
    let reads = consumer.reads_of(producer.generic);
    let map = reads.first().map(|number| &consumer.parts.maps[*number]);
    (
        map.map_or_else(|| "none".to_string(), |map| map.display(ir).to_string()),
        producer.init_map().display(ir).to_string(),
    )
}

/// Where an element is read, under which conditions, and what stands for it elsewhere.
#[derive(Clone, PartialEq)]
struct Read<'c> {
    results: Vec<Expr>,
    guard: Vec<Constraint>,
    fill: Option<Attribute<'c>>,
}

impl<'c> Read<'c> {
    fn of(parts: &GenericParts<'c>, number: usize) -> Self {
        let map = &parts.maps[number];
        let (results, guard) = (map.results.clone(), map.constraints.clone());
        Self { results, guard, fill: parts.fills[number] }
    }

    fn exprs(&self) -> Vec<Expr> {
        self.guard.iter().map(|it| it.expr).chain(self.results.iter().copied()).collect()
    }

    fn substitute(&self, ir: &Context, replacement: &dyn Fn(Var) -> Option<Expr>) -> Self {
        Self {
            results: ir.substitute_all(&self.results, replacement),
            guard: substitute_conditions(ir, &self.guard, replacement),
            fill: self.fill,
        }
    }
}

fn substitute_conditions(
    ir: &Context,
    conditions: &[Constraint],
    replacement: &dyn Fn(Var) -> Option<Expr>,
) -> Vec<Constraint> {
    let substitute = |it: &Constraint| Constraint {
        expr: ir.substitute(it.expr, replacement),
        interval: it.interval,
    };
    conditions.iter().map(substitute).collect()
}

/// What every `imap.inside` of some blocks tests.
fn conditions_in(ir: &Context, blocks: &[Blk]) -> Vec<Constraint> {
    Inside::all_of(blocks).into_iter().flat_map(|inside| inside.conditions(ir)).collect()
}

/// An operation taken apart. Its maps use no variable that has one value.
struct Node<'c> {
    generic: Generic<'c>,
    parts: GenericParts<'c>,
    /// Per runtime variable, where in a tensor it is read, if it is.
    runtime_reads: Vec<Option<Read<'c>>>,
}

impl<'c> Node<'c> {
    fn new(ir: &Context, generic: Generic<'c>) -> Self {
        let domain = generic.domain(ir);
        let fixed: HashMap<Var, Expr> = domain
            .vars()
            .filter(|(var, _)| !matches!(var, Var::Runtime(_)))
            .filter_map(|(var, variable)| {
                let value = variable.constant_interval(ir)?.as_point()?;
                Some((var, ir.constant(value)))
            })
            .collect();
        let mut maps = generic.maps(ir);
        if !fixed.is_empty() {
            let guards = |map: &mut IndexingMap| {
                let guard = std::mem::take(&mut map.constraints);
                map.constraints =
                    substitute_conditions(ir, &guard, &|var| fixed.get(&var).copied());
            };
            maps.iter_mut().for_each(guards);
            for result in maps.iter_mut().flat_map(|map| &mut map.results) {
                let replaced = ir.substitute(*result, &|var| fixed.get(&var).copied());
                *result = ir.canonicalize(replaced);
            }
        }
        let parts = GenericParts {
            domain,
            runtimes: generic.runtimes(),
            inputs: generic.inputs(),
            inits: generic.inits(),
            maps,
            fills: generic.fills(),
            accumulators: generic.accumulators(),
            combiner: generic.combiner(),
        };
        let mut tail = parts.inputs.len() + parts.inits.len()..;
        let is_shaped = |value: &Val| !value.r#type().is_index();
        let runtime_reads = parts
            .runtimes
            .iter()
            .map(|value| is_shaped(value).then(|| tail.next())?)
            .map(|number| number.map(|number| Read::of(&parts, number)))
            .collect();
        Self { generic, parts, runtime_reads }
    }

    fn init_map(&self) -> &IndexingMap {
        &self.parts.maps[self.parts.inputs.len()]
    }

    /// The numbers of the inputs that read the result of another operation.
    fn reads_of(&self, producer: Generic<'c>) -> Vec<usize> {
        let defined = |value: &Val<'c>| mlir::defining_op(*value) == Some(producer.op());
        (0..self.parts.inputs.len()).filter(|number| defined(&self.parts.inputs[*number])).collect()
    }

    /// Whether every element of the destination is seen to be computed from inputs.
    fn covers_destination(&self, ir: &Context) -> bool {
        let GenericParts { domain, runtimes, inits, .. } = &self.parts;
        domain.constraints.is_empty()
            && reaches_all(ir, domain, runtimes, self.init_map(), inits[0])
    }

    /// Whether expressions depend on dimension or range variables, also through the places that
    /// runtime variables are read from.
    fn varies(&self, ir: &Context, exprs: &[Expr]) -> bool {
        let mut work: Vec<Var> = ir.vars_of_all(exprs).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(var) = work.pop() {
            let Var::Runtime(number) = var else { return true };
            if seen.insert(number)
                && let Some(Some(read)) = self.runtime_reads.get(number as usize)
            {
                work.extend(ir.vars_of_all(&read.exprs()));
            }
        }
        false
    }

    /// The dimension variables that may have several values.
    fn looping_dims(&self, ir: &Context) -> Vec<Var> {
        let has_several = |variable: &Variable| {
            let interval = variable.constant_interval(ir);
            interval.is_none_or(|interval| interval.as_point().is_none())
        };
        let dims = self.parts.domain.dims.iter().zip(0..);
        dims.filter(|(dim, _)| has_several(dim)).map(|(_, number)| Var::Dim(number)).collect()
    }

    /// Whether it writes more elements than it reads of any input, with hardly any work. Each reader
    /// then computes what it needs: that costs less than to store the result and to load it.
    fn is_broadcast(&self, ir: &Context) -> bool {
        let dims = self.looping_dims(ir);
        let is_smaller = |map: &IndexingMap| {
            let used = ir.vars_of_all(&map.results);
            !dims.iter().all(|dim| used.contains(dim))
        };
        !self.is_reduction()
            && body_work(self.generic.body()) <= 1
            && self.parts.maps[..self.parts.inputs.len()].iter().all(is_smaller)
    }

    /// Whether it stores its only input as it is, or a constant where the guard of the read fails.
    fn copies(&self, constant: Option<Attribute<'c>>) -> bool {
        let body = self.generic.body();
        let (arguments, yielded) = (mlir::arguments(body), mlir::operands(mlir::terminator(body)));
        let is_copy = arguments == yielded && mlir::ops(body).len() == 1 && arguments.len() == 1;
        is_copy && (self.parts.maps[0].constraints.is_empty() || self.parts.fills[0] == constant)
    }

    fn is_reduction(&self) -> bool {
        !self.parts.domain.ranges.is_empty()
            || self.generic.epilogue().is_some()
            || !self.parts.accumulators.is_empty()
    }
}

/// What will be built.
struct Plan<'c, 'i> {
    ir: &'i Context,
    consumer: Node<'c>,
    producer: Node<'c>,
    /// The inputs of the consumer that read the producer.
    reads: Vec<usize>,
    /// Per read, the producer's dimension variables over the consumer's variables.
    dims: Vec<Vec<Expr>>,
    epilogue: bool,
    consumer_map: String,
    producer_map: String,
}

/// Decides whether and how a producer can be fused; the error is the reason why not.
fn plan<'c, 'i>(
    ir: &'i Context,
    consumer: Generic<'c>,
    producer: Generic<'c>,
    max_recompute: usize,
) -> Result<Plan<'c, 'i>, String> {
    let consumer = Node::new(ir, consumer);
    let producer = Node::new(ir, producer);
    let reads = consumer.reads_of(producer.generic);
    let has_one_result =
        |node: &Node| node.parts.inits.len() == 1 && mlir::results(node.generic.op()).len() == 1;
    if !has_one_result(&producer) || (producer.is_reduction() && !has_one_result(&consumer)) {
        return Err("only operations with one tensor result are fused".to_string());
    }
    if mlir::results(consumer.generic.op()).len() != consumer.parts.inits.len() {
        return Err("the consumer works on buffers".to_string());
    }
    if consumer
        .parts
        .inits
        .iter()
        .any(|init| mlir::defining_op(*init) == Some(producer.generic.op()))
    {
        return Err("the consumer accumulates into the result of the producer".to_string());
    }
    if reads.is_empty() {
        return Err("the producer gives values of runtime variables".to_string());
    }
    if !producer.parts.domain.constraints.is_empty() {
        return Err("the domain of the producer has constraints".to_string());
    }
    if !producer.is_broadcast(ir) {
        check_uses(consumer.generic, producer.generic)?;
    }
    check_memory(consumer.generic, producer.generic)?;
    check_guards(&consumer, &producer, &reads)?;
    let inverse = invert(ir, &producer)?;
    let base = consumer.parts.runtimes.len() as u32;
    let dims: Vec<Vec<Expr>> = reads
        .iter()
        .map(|number| {
            let position = &consumer.parts.maps[*number].results;
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
    let inputs = (0..producer.parts.inputs.len()).map(|number| Read::of(&producer.parts, number));
    let read = inputs.chain(producer.runtime_reads.iter().flatten().cloned());
    let read = read.flat_map(|read| read.exprs());
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
    let consumer_map = consumer.parts.maps[reads[0]].display(ir).to_string();
    let producer_map = producer.init_map().display(ir).to_string();
    Ok(Plan { ir, consumer, producer, reads, dims, epilogue, consumer_map, producer_map })
}

/// Whether guards allow to compute the producer where it is read. Where the guard of that read fails,
/// the producer is computed from constants, and not used.
fn check_guards(consumer: &Node, producer: &Node, reads: &[usize]) -> Result<(), String> {
    if producer.generic.has_guards() && consumer.is_reduction() {
        return Err("the reduction would test the guards of the producer at each point".into());
    }
    if reads.iter().all(|read| consumer.parts.maps[*read].constraints.is_empty()) {
        return Ok(());
    }
    if producer.is_reduction() {
        return Err("the consumer reads the reduction under a guard".to_string());
    }
    if producer.runtime_reads.iter().any(Option::is_some) {
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
            && ["arith.", "math.", "imap."].iter().any(|dialect| name.starts_with(dialect))
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

/// How an operation and those nested in it access memory.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    None,
    Reads,
    Writes,
}

fn access(op: Op) -> Access {
    let mut most = Access::None;
    mlir::walk(op, &mut |inner| most = most.max(own_access(inner)));
    most
}

fn own_access(op: Op) -> Access {
    let is_memory =
        |value: &Val| value.r#type().is_mem_ref() || value.r#type().is_unranked_mem_ref();
    let has_memory = mlir::operands(op).iter().any(is_memory);
    if let Some(indexed) = AnyIndexed::cast(op) {
        return match indexed.inits().iter().any(is_memory) {
            true => Access::Writes,
            false if has_memory => Access::Reads,
            false => Access::None,
        };
    }
    let name = mlir::name(op);
    let (dialect, operation) = name.split_once('.').unwrap_or_default();
    match (dialect, operation) {
        ("scf", _) => Access::None,
        ("arith" | "complex" | "imap" | "index" | "linalg" | "math" | "tensor", _)
            if !has_memory =>
        {
            Access::None
        }
        ("memref", "alloc" | "alloca" | "cast" | "dim" | "get_global" | "subview") => Access::None,
        ("bufferization", "to_buffer" | "to_tensor") | ("memref", "load") => Access::Reads,
        _ => Access::Writes,
    }
}

/// Fusion moves the reads of the producer to the consumer: no memory may change on the way.
fn check_memory<'c>(consumer: Generic<'c>, producer: Generic<'c>) -> Result<(), String> {
    match access(producer.op()) {
        Access::None => return Ok(()),
        Access::Reads => {}
        Access::Writes => return Err("the producer writes to memory".to_string()),
    }
    let mut next = mlir::next(producer.op());
    while let Some(op) = next {
        if access(op) == Access::Writes {
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
    consumer: &Node<'c>,
    producer: &Node<'c>,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), String> {
    if producer.covers_destination(ir) {
        return Ok(());
    }
    for (read, dims) in reads.iter().zip(dims) {
        let mut frame = Frame::of(ir, consumer);
        let (dims, runtimes) = frame.add_runtimes(producer, consumer.parts.runtimes.len(), dims);
        if consumer.generic.epilogue().is_some() {
            // An epilogue reads at points that the constraints exclude, too.
            frame.domain.constraints.clear();
        }
        frame.domain.constraints.extend(&consumer.parts.maps[*read].constraints);
        let prover = Prover::for_domain(ir, &frame.domain);
        let in_frame = |expr| ir.substitute(expr, &in_place_of_runtimes(&runtimes));
        let at_most = |low, high| prover.at_most(low, high) == Verdict::Proved;
        let is_in_domain = dims.iter().zip(&producer.parts.domain.dims).all(|(dim, variable)| {
            variable.lower.is_some_and(|lower| at_most(in_frame(lower), *dim))
                && variable.upper.is_some_and(|upper| at_most(*dim, in_frame(upper)))
        });
        let positions = consumer.parts.maps[*read].results.iter();
        let is_at_position = positions.zip(&producer.init_map().results).all(|(read, written)| {
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
    consumer: &Node,
    producer: &Node,
    reads: &[usize],
    max_recompute: usize,
) -> Result<(), String> {
    let work = body_work(producer.generic.body());
    let domain = &consumer.parts.domain;
    let variables: BTreeSet<Var> = domain
        .vars()
        .filter(|(var, variable)| {
            !matches!(var, Var::Runtime(_)) && variable.lower != variable.upper
        })
        .map(|(var, _)| var)
        .collect();
    let mut maps: Vec<&[Expr]> =
        reads.iter().map(|it| consumer.parts.maps[*it].results.as_slice()).collect();
    maps.sort_unstable();
    maps.dedup();
    for map in &maps {
        let used = ir.vars_of_all(map);
        if work > 0
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
    consumer: &Node,
    producer: &Node,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), String> {
    if consumer.is_reduction() {
        return Err("both are reductions".to_string());
    }
    if !consumer.parts.domain.constraints.is_empty() {
        return Err("the domain of the consumer has constraints".to_string());
    }
    if producer.parts.accumulators.iter().any(|it| it.destination().is_some()) {
        return Err("the producer accumulates into a tensor that is there".to_string());
    }
    let maps: BTreeSet<_> =
        reads.iter().map(|number| &consumer.parts.maps[*number].results).collect();
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
    if !consumer.looping_dims(ir).iter().all(|var| used.contains(var)) {
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
    consumer: &Node,
    producer: &Node,
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
    let reads: Vec<_> = consumer.runtime_reads.iter().chain(&producer.runtime_reads).collect();
    let from_tensor = |var: &Var| {
        matches!(var, Var::Runtime(number)
            if reads.get(*number as usize).is_some_and(|read| read.is_some()))
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
fn invert(ir: &Context, producer: &Node) -> Result<Vec<Expr>, String> {
    let map = producer.init_map();
    let mut found: Vec<Option<Expr>> = Vec::new();
    for variable in &producer.parts.domain.dims {
        let point = variable.constant_interval(ir).and_then(|interval| interval.as_point());
        found.push(point.map(|value| ir.constant(value)));
    }
    for (number, result) in map.results.iter().enumerate() {
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

/// The operations of a body, counted as work: a division or a built-in is worth 8.
fn body_work(block: Blk) -> usize {
    let mut work = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            work += match mlir::name(op) {
                "imap.yield" | "imap.index" | "imap.inside" | "imap.apply" | "arith.constant"
                | "scf.yield" => 0,
                "imap.builtin" | "arith.divf" | "arith.floordivsi" | "arith.divui"
                | "arith.remsi" | "arith.remui" => 8,
                _ => 1,
            };
        });
    }
    work
}

fn body_size(op: Op) -> usize {
    let mut size = 0;
    mlir::walk(op, &mut |_| size += 1);
    size
}

/// The operation under construction: variables, and operands with their maps.
struct Frame<'c, 'i> {
    ir: &'i Context,
    domain: IndexingMap,
    runtimes: Vec<Val<'c>>,
    runtime_reads: Vec<Option<Read<'c>>>,
    inputs: Vec<(Val<'c>, Read<'c>)>,
}

impl<'c, 'i> Frame<'c, 'i> {
    /// The variables of a node.
    fn of(ir: &'i Context, node: &Node<'c>) -> Self {
        Self {
            ir,
            domain: node.parts.domain.clone(),
            runtimes: node.parts.runtimes.clone(),
            runtime_reads: node.runtime_reads.clone(),
            inputs: Vec::new(),
        }
    }

    /// Adds the runtime variables of the producer at these values of its dimension
    /// variables. Returns these values and the runtime variables as expressions of this
    /// operation. Equal runtime variables are shared.
    ///
    /// `dims` refers to runtime variable `k` of the producer as number `base + k`.
    fn add_runtimes(
        &mut self,
        node: &Node<'c>,
        base: usize,
        dims: &[Expr],
    ) -> (Vec<Expr>, Vec<Expr>) {
        let ir = self.ir;
        let variables = &node.parts.domain.runtimes;
        let num_before = self.runtimes.len();
        let mut exprs: Vec<Option<Expr>> = vec![None; variables.len()];
        // The variables in `dims`, and those that they need, come first: they do not depend on
        // the dimension variables.
        let in_dims = runtime_numbers(ir, dims).filter_map(|number| number.checked_sub(base));
        let mut work: Vec<usize> = in_dims.collect();
        let mut needed = BTreeSet::new();
        while let Some(number) = work.pop() {
            if needed.insert(number) {
                let read = node.runtime_reads[number].iter().flat_map(Read::exprs);
                let exprs: Vec<_> = read.chain(bounds(&variables[number])).collect();
                work.extend(runtime_numbers(ir, &exprs));
            }
        }
        for number in needed {
            self.add_runtime(node, number, &[], &mut exprs);
        }
        let dims = ir.substitute_all(dims, &|var| match var {
            Var::Runtime(number) => *exprs.get((number as usize).checked_sub(base)?)?,
            _ => None,
        });
        for number in 0..variables.len() {
            if exprs[number].is_none() {
                self.add_runtime(node, number, &dims, &mut exprs);
            }
        }
        let exprs: Vec<Expr> = exprs.into_iter().flatten().collect();
        // Bounds may use any of the variables.
        for (expr, variable) in exprs.iter().zip(variables) {
            if let Some(Var::Runtime(place)) = ir.as_var(*expr)
                && num_before <= place as usize
            {
                let renumbered = |bound: Expr| ir.substitute(bound, &in_place_of_runtimes(&exprs));
                let new = &mut self.domain.runtimes[place as usize];
                new.lower = variable.lower.map(renumbered);
                new.upper = variable.upper.map(renumbered);
            }
        }
        (dims, exprs)
    }

    /// Adds a runtime variable of the producer, or finds an equal one, and notes its expression.
    fn add_runtime(
        &mut self,
        node: &Node<'c>,
        number: usize,
        dims: &[Expr],
        exprs: &mut [Option<Expr>],
    ) {
        let ir = self.ir;
        let value = node.parts.runtimes[number];
        let mut variable = node.parts.domain.runtimes[number].clone();
        let renumbered = |var| match var {
            Var::Dim(dim) => dims.get(dim as usize).copied(),
            Var::Runtime(number) => exprs[number as usize],
            Var::Range(_) => None,
        };
        let read = node.runtime_reads[number].as_ref();
        let read = read.map(|read| read.substitute(ir, &renumbered));
        let in_bounds: Vec<_> = bounds(&variable).collect();
        let are_known = runtime_numbers(ir, &in_bounds).all(|it| exprs[it].is_some());
        let renumbered = |bound: Option<Expr>| bound.map(|it| ir.substitute(it, &renumbered));
        let (lower, upper) = (renumbered(variable.lower), renumbered(variable.upper));
        // Bounds decide how an element is read: as a signed or as an unsigned number.
        let is_equal = |known: &usize| {
            let other = &self.domain.runtimes[*known];
            self.runtimes[*known] == value
                && self.runtime_reads[*known] == read
                && (other.lower, other.upper) == (lower, upper)
        };
        let known = (0..self.runtimes.len()).find(is_equal).filter(|_| are_known);
        let place = known.unwrap_or_else(|| {
            if self.domain.runtimes.iter().any(|other| other.name == variable.name) {
                variable.name = None;
            }
            self.runtimes.push(value);
            self.runtime_reads.push(read);
            self.domain.runtimes.push(variable);
            self.runtimes.len() - 1
        });
        exprs[number] = Some(ir.runtime(place as u32));
    }

    /// Adds an input, or finds an equal one, and gives its number.
    fn add_input(&mut self, value: Val<'c>, read: Read<'c>) -> usize {
        let known = self.inputs.iter().position(|known| *known == (value, read.clone()));
        known.unwrap_or_else(|| {
            self.inputs.push((value, read));
            self.inputs.len() - 1
        })
    }

    /// The parts of an operation with these destinations, with the folds of another operation, and with
    /// an epilogue if `epilogue`; and the numbers of the runtime variables that are left. `conditions`
    /// are those of `imap.inside`.
    fn parts(
        &self,
        inits: &[Val<'c>],
        init_maps: &[Vec<Expr>],
        folds: &Node<'c>,
        epilogue: bool,
        conditions: &[Constraint],
    ) -> (GenericParts<'c>, Vec<usize>) {
        // Folds store, and their epilogue reads, where the constraints do not hold as well.
        let mut whole = self.domain.clone();
        if !folds.parts.accumulators.is_empty() {
            whole.constraints.clear();
        }
        let inside = if epilogue { &whole } else { &self.domain };
        let mut of_inputs = Simplifier::for_map(self.ir, inside);
        let mut of_others = Simplifier::for_map(self.ir, &whole);
        let strip = |variables: &[Variable]| {
            variables
                .iter()
                .map(|it| Variable { name: it.name.clone(), ..Variable::default() })
                .collect()
        };
        let frame = IndexingMap {
            dims: strip(&self.domain.dims),
            ranges: strip(&self.domain.ranges),
            runtimes: strip(&self.domain.runtimes),
            ..IndexingMap::default()
        };
        let (mut maps, mut fills) = (Vec::new(), Vec::new());
        let mut add = |simplifier: &mut Simplifier, read: &Read<'c>| {
            let mut constraints = Vec::new();
            for Constraint { expr, interval } in &read.guard {
                let expr = simplifier.simplify(*expr);
                if !interval.covers(simplifier.interval_of(expr)) {
                    constraints.push(Constraint { expr, interval: *interval });
                }
            }
            fills.push(read.fill);
            let results = read.results.iter().map(|expr| simplifier.simplify(*expr)).collect();
            maps.push(IndexingMap { results, constraints, ..frame.clone() });
        };
        self.inputs.iter().for_each(|(_, read)| add(&mut of_inputs, read));
        for results in init_maps {
            let read = Read { results: results.clone(), guard: Vec::new(), fill: None };
            add(&mut of_others, &read);
        }
        self.runtime_reads.iter().flatten().for_each(|read| add(&mut of_others, read));
        let mut parts = GenericParts {
            domain: self.domain.clone(),
            runtimes: self.runtimes.clone(),
            inputs: self.inputs.iter().map(|(value, _)| *value).collect(),
            inits: inits.to_vec(),
            maps,
            fills,
            accumulators: folds.parts.accumulators.clone(),
            combiner: folds.parts.combiner,
        };
        let kept = parts.drop_unused_runtimes(self.ir, conditions);
        (parts, kept)
    }
}

fn bounds(variable: &Variable) -> impl Iterator<Item = Expr> + use<> {
    variable.lower.into_iter().chain(variable.upper)
}

/// Puts expressions in the place of the runtime variables of these numbers.
fn in_place_of_runtimes(exprs: &[Expr]) -> impl Fn(Var) -> Option<Expr> {
    move |var| match var {
        Var::Runtime(number) => exprs.get(number as usize).copied(),
        _ => None,
    }
}

/// The numbers of the runtime variables in expressions.
fn runtime_numbers(ir: &Context, exprs: &[Expr]) -> impl Iterator<Item = usize> + use<> {
    ir.vars_of_all(exprs).into_iter().filter_map(|var| match var {
        Var::Runtime(number) => Some(number as usize),
        _ => None,
    })
}

/// A copy of the producer in the operation under construction.
struct Copied {
    /// The numbers of its inputs.
    inputs: Vec<usize>,
    /// Its dimension and runtime variables.
    dims: Vec<Expr>,
    runtimes: Vec<Expr>,
}

impl Copied {
    fn replacement(&self, var: Var) -> Option<Expr> {
        match var {
            Var::Dim(number) => self.dims.get(number as usize).copied(),
            Var::Runtime(number) => self.runtimes.get(number as usize).copied(),
            Var::Range(_) => None,
        }
    }
}

impl<'c, 'i> Plan<'c, 'i> {
    fn build(self) -> Generic<'c> {
        if self.epilogue { self.build_epilogue() } else { self.build_producer() }
    }

    fn builder(&self) -> Builder<'c> {
        let consumer = self.consumer.generic.op();
        let builder = Builder::before(consumer);
        let producer = self.producer.generic.op().location();
        builder.located(imap::fused_location(builder.context, consumer.location(), producer))
    }

    /// Adds the reads of the producer's inputs, over the consumer's variables, to the frame. They are
    /// under the guard of the consumer's read as well.
    fn add_producer_inputs(
        &self,
        frame: &mut Frame<'c, 'i>,
        dims: &[Expr],
        guard: &[Constraint],
        fill: Option<Attribute<'c>>,
    ) -> Copied {
        let base = self.consumer.parts.runtimes.len();
        let (dims, runtimes) = frame.add_runtimes(&self.producer, base, dims);
        let parts = &self.producer.parts;
        let mut copied = Copied { inputs: Vec::new(), dims, runtimes };
        for (number, value) in parts.inputs.iter().enumerate() {
            let read = Read::of(parts, number);
            let mut read = read.substitute(self.ir, &|var| copied.replacement(var));
            read.guard.extend(guard);
            if !guard.is_empty() && self.producer.copies(fill) {
                read.fill = fill;
            }
            copied.inputs.push(frame.add_input(*value, read));
        }
        copied
    }

    /// What every `imap.inside` of the operation under construction tests.
    fn conditions<'a>(&self, copies: impl Iterator<Item = &'a Copied>) -> Vec<Constraint> {
        let mut conditions = conditions_in(self.ir, &self.consumer.generic.blocks());
        let guards = self.reads.iter().map(|read| &self.consumer.parts.maps[*read].constraints);
        conditions.extend(guards.flatten());
        let of_producer = conditions_in(self.ir, &self.producer.generic.blocks());
        for copied in copies {
            let replacement = |var| copied.replacement(var);
            conditions.extend(substitute_conditions(self.ir, &of_producer, &replacement));
        }
        conditions
    }

    fn build_producer(self) -> Generic<'c> {
        let ir = self.ir;
        let consumer = &self.consumer;
        let mut frame = Frame::of(ir, consumer);
        // What stands for each input of the consumer: an input, or a body of the producer.
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut bodies: HashMap<usize, Copied> = HashMap::new();
        for (number, value) in consumer.parts.inputs.iter().enumerate() {
            match self.reads.iter().position(|read| *read == number) {
                Some(read) => {
                    let guard = &consumer.parts.maps[number].constraints;
                    let (dims, fill) = (&self.dims[read], consumer.parts.fills[number]);
                    let copied = self.add_producer_inputs(&mut frame, dims, guard, fill);
                    bodies.insert(number, copied);
                }
                None => {
                    let read = Read::of(&consumer.parts, number);
                    numbers.insert(number, frame.add_input(*value, read));
                }
            }
        }
        let builder = self.builder();
        let init_maps: Vec<_> = consumer.parts.maps[consumer.parts.inputs.len()..]
            .iter()
            .take(consumer.parts.inits.len())
            .map(|map| map.results.clone())
            .collect();
        let epilogue = consumer.generic.epilogue().is_some();
        let (inits, accumulators) = (&consumer.parts.inits, &consumer.parts.accumulators);
        let conditions = self.conditions(bodies.values());
        let (parts, kept) = frame.parts(inits, &init_maps, consumer, epilogue, &conditions);
        let fused = parts.build(ir, &builder, epilogue);
        let num_folded = accumulators.len();
        let blocks = [(Some(consumer.generic.body()), Some(fused.body()), 0)];
        let epilogues = [(consumer.generic.epilogue(), fused.epilogue(), num_folded)];
        for (old, new, offset) in blocks.into_iter().chain(epilogues) {
            let (Some(old), Some(new)) = (old, new) else { continue };
            let inside = Builder::at_end(builder.context, new, builder.location);
            let (old_arguments, new_arguments) = (mlir::arguments(old), mlir::arguments(new));
            let mut values = ValueMap::default();
            for folded in 0..offset {
                values.insert(old_arguments[folded], new_arguments[folded]);
            }
            for (number, argument) in old_arguments[offset..].iter().enumerate() {
                if let Some(new) = numbers.get(&number) {
                    values.insert(*argument, new_arguments[offset + new]);
                } else if !mlir::uses(*argument).is_empty() {
                    let copied = &bodies[&number];
                    let arguments: Vec<_> =
                        copied.inputs.iter().map(|input| new_arguments[offset + input]).collect();
                    let body = self.producer.generic.body();
                    let mut value = self.copy_body(&frame, &inside, body, &arguments, copied)[0];
                    let guard = &consumer.parts.maps[number].constraints;
                    let fill = consumer.parts.fills[number];
                    if !guard.is_empty() && !self.producer.copies(fill) {
                        let holds = imap::build_inside(&inside, ir, guard);
                        let fill = imap::build_fill(&inside, fill, value.r#type());
                        value = inside.select(holds, value, fill);
                    }
                    values.insert(*argument, value);
                }
            }
            copy_rest(&inside, old, &mut values);
        }
        imap::substitute_in_conditions(ir, &fused.blocks(), &imap::renumbering(ir, &kept));
        fused
    }

    fn build_epilogue(self) -> Generic<'c> {
        let ir = self.ir;
        let (consumer, producer) = (&self.consumer, &self.producer);
        let mut frame = Frame::of(ir, consumer);
        let base = consumer.parts.runtimes.len();
        let (_, runtimes) = frame.add_runtimes(producer, base, &self.dims[0]);
        let replacement = in_place_of_runtimes(&runtimes);
        frame.domain.ranges = producer
            .parts
            .domain
            .ranges
            .iter()
            .map(|variable| Variable {
                name: variable.name.clone(),
                lower: variable.lower.map(|bound| ir.substitute(bound, &replacement)),
                upper: variable.upper.map(|bound| ir.substitute(bound, &replacement)),
            })
            .collect();
        let copied = self.add_producer_inputs(&mut frame, &self.dims[0], &[], None);
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for (number, value) in consumer.parts.inputs.iter().enumerate() {
            if !self.reads.contains(&number) {
                let read = Read::of(&consumer.parts, number);
                numbers.insert(number, frame.add_input(*value, read));
            }
        }
        let builder = self.builder();
        let init_map = consumer.init_map().results.clone();
        let accumulators = &producer.parts.accumulators;
        let conditions = self.conditions(std::iter::once(&copied));
        let inits = &consumer.parts.inits;
        let (parts, kept) = frame.parts(inits, &[init_map], producer, true, &conditions);
        let fused = parts.build(ir, &builder, true);

        let inside = Builder::at_end(builder.context, fused.body(), builder.location);
        let new_arguments = mlir::arguments(fused.body());
        let arguments: Vec<_> = copied.inputs.iter().map(|input| new_arguments[*input]).collect();
        let values = self.copy_body(&frame, &inside, producer.generic.body(), &arguments, &copied);
        imap::build_yield(&inside, &values);

        let epilogue = fused.epilogue().expect("it was asked for");
        let inside = Builder::at_end(builder.context, epilogue, builder.location);
        let new_arguments = mlir::arguments(epilogue);
        let (folded, read) = new_arguments.split_at(accumulators.len());
        let result = match producer.generic.epilogue() {
            None => folded[0],
            Some(old) => {
                let inputs = copied.inputs.iter().map(|input| read[*input]);
                let arguments: Vec<_> = folded.iter().copied().chain(inputs).collect();
                self.copy_body(&frame, &inside, old, &arguments, &copied)[0]
            }
        };
        let mut values = ValueMap::default();
        for (number, argument) in mlir::arguments(consumer.generic.body()).into_iter().enumerate() {
            let value = numbers.get(&number).map_or(result, |input| read[*input]);
            values.insert(argument, value);
        }
        copy_rest(&inside, consumer.generic.body(), &mut values);
        imap::substitute_in_conditions(ir, &fused.blocks(), &imap::renumbering(ir, &kept));
        fused
    }

    /// Copies a block of the producer with these arguments and dimension variables, and
    /// gives what it yields.
    fn copy_body(
        &self,
        frame: &Frame<'c, 'i>,
        inside: &Builder<'c>,
        block: Blk<'c>,
        arguments: &[Val<'c>],
        copied: &Copied,
    ) -> Vec<Val<'c>> {
        let arguments = arguments.iter().copied();
        let mut values: ValueMap = mlir::arguments(block).into_iter().zip(arguments).collect();
        for op in mlir::ops(block) {
            if mlir::is(op, "imap.yield") {
                let copy = |value| values.get(value).unwrap_or(value);
                return mlir::operands(op).into_iter().map(copy).collect();
            }
            let copy = inside.located(op.location()).copy(op, &mut values);
            let mut inner = Vec::new();
            mlir::walk(copy, &mut |op| inner.push(op));
            for asked in inner {
                if let Some(inside) = Inside::cast(asked) {
                    inside.substitute(self.ir, &|var| copied.replacement(var));
                }
                let Some(Var::Dim(number)) =
                    mlir::is(asked, "imap.index").then(|| index_variable(asked)).flatten()
                else {
                    continue;
                };
                let dim = copied.dims[number as usize];
                let value = build_index(frame, &Builder::before(asked), dim);
                if asked == copy {
                    values.insert(mlir::result(op, 0), value);
                }
                mlir::replace(asked, &[value]);
            }
        }
        unreachable!("a verified body ends in imap.yield")
    }
}

/// Copies the operations of a block of the consumer, its terminator included.
fn copy_rest<'c>(inside: &Builder<'c>, block: Blk<'c>, values: &mut ValueMap<'c>) {
    for op in mlir::ops(block) {
        inside.located(op.location()).copy(op, values);
    }
}

/// Emits the value of an expression over the variables of the operation under construction.
fn build_index<'c>(frame: &Frame<'c, '_>, builder: &Builder<'c>, expr: Expr) -> Val<'c> {
    let ir = frame.ir;
    let vars: Vec<Var> = ir.vars(expr).into_iter().collect();
    let operands: Vec<Val> = vars
        .iter()
        .map(|var| {
            let (kind, number) = match *var {
                Var::Runtime(number) => return frame.runtimes[number as usize],
                Var::Dim(number) => ("dim", number),
                Var::Range(number) => ("range", number),
            };
            imap::build_index(builder, kind, number)
        })
        .collect();
    let position = |var: Var| vars.iter().position(|known| *known == var);
    let map = IndexingMap {
        dims: vec![Variable::default(); vars.len()],
        results: vec![ir.substitute(expr, &|var| position(var).map(|place| ir.dim(place as u32)))],
        ..IndexingMap::default()
    };
    imap::build_apply(builder, ir, &map, &operands)[0]
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
