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
//! Results are unchanged: the same operations happen in the same order per element. A
//! producer is only recomputed if that is cheap: it is read once per element, or the work
//! of its body times the number of reads stays within `max-recompute`. One whose result is
//! returned, or read at computed positions, is stored anyway and stays apart.
//!
//! Before, with `maps` shortened:
//!
//! ```mlir
//! %s = imap.generic <(i)[k] ..> ins(%A) outs(%e) maps [(i, k), (i)] combine [add from identity] {..}
//! %r = imap.generic <(i) ..> ins(%s, %b) outs(%e) maps [(i), (i), (i)] combine [assign] {
//! ^bb0(%x: f32, %y: f32):
//!   %z = arith.addf %x, %y : f32
//!   imap.yield %z : f32
//! } -> tensor<?xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %r = imap.generic <(i)[k] ..> ins(%A, %b) outs(%e) maps [(i, k), (i), (i)] combine [add from identity] {..}
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
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{BTreeSet, HashMap};
use tc_dialects::{
    diagnostic::{RemarkKind, remark},
    imap::{self, Combiner, CombinerKind, Generic, GenericParts, verify::index_variable},
    mlir::{self, Blk, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
    map::{IndexingMap, Variable},
    polynomial,
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

/// An operation taken apart.
struct Node<'c> {
    generic: Generic<'c>,
    parts: GenericParts<'c>,
    /// Per runtime variable, the map of the tensor it is read from.
    runtime_maps: Vec<Option<Vec<Expr>>>,
}

impl<'c> Node<'c> {
    fn new(ir: &Context, generic: Generic<'c>) -> Self {
        let parts = GenericParts {
            domain: generic.domain(ir),
            runtimes: generic.runtimes(),
            inputs: generic.inputs(),
            inits: generic.inits(),
            maps: generic.maps(ir),
            combiners: generic.combiners(),
        };
        let mut tail = parts.maps[parts.inputs.len() + parts.inits.len()..].iter();
        let runtime_maps = parts
            .runtimes
            .iter()
            .map(|value| {
                if mlir::is_tensor(value.r#type()) {
                    tail.next().map(|map| map.results.clone())
                } else {
                    None
                }
            })
            .collect();
        Self { generic, parts, runtime_maps }
    }

    fn init_map(&self) -> &IndexingMap {
        &self.parts.maps[self.parts.inputs.len()]
    }

    /// The numbers of the inputs that read the result of another operation.
    fn reads_of(&self, producer: Generic<'c>) -> Vec<usize> {
        let defined = |value: &Val<'c>| mlir::defining_op(*value) == Some(producer.op());
        (0..self.parts.inputs.len()).filter(|number| defined(&self.parts.inputs[*number])).collect()
    }

    /// Whether nothing of what the destination held before is left: it held nothing, or the
    /// dimension variables run over all of it.
    fn writes_all(&self, ir: &Context) -> bool {
        let init = self.parts.inits[0];
        if mlir::defining_op(init).is_some_and(|op| mlir::is(op, "tensor.empty")) {
            return true;
        }
        let mut seen = BTreeSet::new();
        let is_whole = |(index, extent): (&Expr, Option<i64>)| {
            let (Some(var), Some(extent)) = (ir.as_var(*index), extent) else { return false };
            let variable = self.parts.domain.variable(var);
            let interval = variable.and_then(|it| it.constant_interval(ir));
            interval.is_some_and(|it| (it.lo, it.hi) == (0, extent - 1)) && seen.insert(var)
        };
        let shape = mlir::shape(init.r#type());
        self.init_map().results.iter().zip(shape).all(is_whole)
    }

    fn is_reduction(&self) -> bool {
        !self.parts.domain.ranges.is_empty()
            || self.generic.epilogue().is_some()
            || self.parts.combiners.iter().any(|it| it.kind != CombinerKind::Assign)
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
    if mlir::results(producer.generic.op()).len() != 1
        || mlir::results(consumer.generic.op()).len() != 1
    {
        return Err("only operations with one tensor result are fused".to_string());
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
    if !producer.writes_all(ir) {
        return Err(
            "the producer writes into a tensor that is there, maybe only a part of it".into()
        );
    }
    check_uses(consumer.generic, producer.generic)?;
    let inverse = invert(ir, producer.init_map())
        .ok_or("the producer's map to its result is not a permutation with offsets")?;
    let dims: Vec<Vec<Expr>> = reads
        .iter()
        .map(|number| {
            let map = &consumer.parts.maps[*number];
            inverse
                .iter()
                .map(|(result, offset)| {
                    // The offset holds runtime variables of the producer: they are put in when
                    // the operations are joined, and cancel in the common case of equal sizes.
                    (map.results[*result], *offset)
                })
                .map(|(position, offset)| {
                    ir.sub(position, shift_runtimes(ir, offset, consumer.parts.runtimes.len()))
                })
                .collect()
        })
        .collect();
    let epilogue = producer.is_reduction();
    if epilogue {
        check_epilogue(ir, &consumer, &producer, &reads, &dims)?;
    } else {
        check_recompute(ir, &consumer, &producer, &reads, max_recompute)?;
    }
    check_index_uses(ir, &consumer, &producer, &dims)?;
    let size = body_size(consumer.generic.op()) + reads.len() * body_size(producer.generic.op());
    if size > MAX_BODY {
        return Err(format!("the fused body would have {size} operations, more than {MAX_BODY}"));
    }
    let inputs = &producer.parts.maps[..producer.parts.inputs.len()];
    let read = inputs.iter().map(|map| &map.results);
    let read = read.chain(producer.runtime_maps.iter().flatten()).flatten();
    for (result, dims) in read.flat_map(|result| dims.iter().map(move |dims| (*result, dims))) {
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

/// All uses of the producer have to be plain reads of operations, and of this one alone
/// unless the producer is computed again elsewhere too.
fn check_uses<'c>(consumer: Generic<'c>, producer: Generic<'c>) -> Result<(), String> {
    for (user, _) in mlir::uses(mlir::result(producer.op(), 0)) {
        if user == consumer.op() {
            continue;
        }
        return Err(match Generic::cast(user) {
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
    if producer.parts.combiners.iter().any(|it| it.reads_destination()) {
        return Err("the producer accumulates into a tensor that is there".to_string());
    }
    let element = |node: &Node| mlir::element_type(node.parts.inits[0].r#type()).to_string();
    if element(consumer) != element(producer) {
        return Err("the element types of the two results differ".to_string());
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
        let [var] = vars[..] else {
            return Err("the consumer does not read the reduction by one variable per dimension"
                .to_string());
        };
        let offset = ir.canonicalize(ir.sub(*expr, ir.var(var)));
        if ir.vars(offset).contains(&var) || !used.insert(var) {
            return Err("the consumer does not read each element of the reduction once".to_string());
        }
    }
    if used.len() != consumer.parts.domain.dims.len() {
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
    let from_tensor = |var: &Var| {
        matches!(var, Var::Runtime(number)
            if consumer.runtime_maps.get(*number as usize).is_some_and(|map| map.is_some()))
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

/// Per dimension variable, which result holds it and the offset that is added to it there.
fn invert(ir: &Context, map: &IndexingMap) -> Option<Vec<(usize, Expr)>> {
    let mut found: Vec<Option<(usize, Expr)>> = vec![None; map.dims.len()];
    for (number, result) in map.results.iter().enumerate() {
        let vars: Vec<_> =
            ir.vars(*result).into_iter().filter(|var| !matches!(var, Var::Runtime(_))).collect();
        let [Var::Dim(dim)] = vars[..] else { return None };
        let offset = ir.canonicalize(ir.sub(*result, ir.dim(dim)));
        if ir.vars(offset).contains(&Var::Dim(dim)) {
            return None;
        }
        let slot = found.get_mut(dim as usize)?;
        if slot.replace((number, offset)).is_some() {
            return None;
        }
    }
    found.into_iter().collect()
}

/// Renumbers runtime variables behind `count` others.
fn shift_runtimes(ir: &Context, expr: Expr, count: usize) -> Expr {
    ir.substitute(expr, &|var| match var {
        Var::Runtime(number) => Some(ir.runtime(number + count as u32)),
        _ => None,
    })
}

/// The operations of a body, counted as work: a division or a built-in is worth 8.
fn body_work(block: Blk) -> usize {
    let mut work = 0;
    for top in mlir::ops(block) {
        mlir::walk(top, &mut |op| {
            work += match mlir::name(op) {
                "imap.yield" | "imap.index" | "imap.apply" | "arith.constant" | "scf.yield" => 0,
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
    runtime_maps: Vec<Option<Vec<Expr>>>,
    inputs: Vec<(Val<'c>, Vec<Expr>)>,
}

impl<'c, 'i> Frame<'c, 'i> {
    /// The variables of a node.
    fn of(ir: &'i Context, node: &Node<'c>) -> Self {
        Self {
            ir,
            domain: node.parts.domain.clone(),
            runtimes: node.parts.runtimes.clone(),
            runtime_maps: node.runtime_maps.clone(),
            inputs: Vec::new(),
        }
    }

    /// Adds the runtime variables of the producer at these values of its dimension
    /// variables, and gives the expressions that stand for them. Equal ones are shared.
    ///
    /// `dims` refers to runtime variable `k` of the producer as number `base + k`.
    fn add_runtimes(
        &mut self,
        node: &Node<'c>,
        base: usize,
        dims: &[Expr],
    ) -> (Vec<Expr>, Vec<Expr>) {
        let ir = self.ir;
        let mut exprs: Vec<Expr> = Vec::new();
        // Offsets use sizes only, whose values do not depend on the dimension variables, so
        // that these come first.
        for (number, value) in node.parts.runtimes.iter().enumerate() {
            let map = node.runtime_maps[number].as_ref().map(|results| {
                let dims = renumber_offsets(ir, dims, base, &exprs);
                ir.substitute_all(results, &|var| match var {
                    Var::Dim(dim) => dims.get(dim as usize).copied(),
                    Var::Runtime(number) => exprs.get(number as usize).copied(),
                    Var::Range(_) => None,
                })
            });
            let known = (0..self.runtimes.len())
                .find(|known| self.runtimes[*known] == *value && self.runtime_maps[*known] == map);
            let place = known.unwrap_or_else(|| {
                self.runtimes.push(*value);
                self.runtime_maps.push(map);
                let mut variable = node.parts.domain.runtimes[number].clone();
                if self.domain.runtimes.iter().any(|other| other.name == variable.name) {
                    variable.name = None;
                }
                self.domain.runtimes.push(variable);
                self.runtimes.len() - 1
            });
            exprs.push(ir.runtime(place as u32));
        }
        let dims = renumber_offsets(ir, dims, base, &exprs);
        (dims, exprs)
    }

    /// Adds an input, or finds an equal one, and gives its number.
    fn add_input(&mut self, value: Val<'c>, results: Vec<Expr>) -> usize {
        let known = self.inputs.iter().position(|known| *known == (value, results.clone()));
        known.unwrap_or_else(|| {
            self.inputs.push((value, results));
            self.inputs.len() - 1
        })
    }

    /// The parts of an operation with these destinations.
    fn parts(
        &self,
        inits: &[Val<'c>],
        init_maps: &[Vec<Expr>],
        combiners: &[Combiner],
    ) -> GenericParts<'c> {
        let mut simplifier = Simplifier::for_map(self.ir, &self.domain);
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
        let mut map = |results: &[Expr]| IndexingMap {
            results: results.iter().map(|expr| simplifier.simplify(*expr)).collect(),
            ..frame.clone()
        };
        let mut maps: Vec<_> = self.inputs.iter().map(|(_, results)| map(results)).collect();
        maps.extend(init_maps.iter().map(|results| map(results)));
        maps.extend(self.runtime_maps.iter().flatten().map(|results| map(results)));
        let mut parts = GenericParts {
            domain: self.domain.clone(),
            runtimes: self.runtimes.clone(),
            inputs: self.inputs.iter().map(|(value, _)| *value).collect(),
            inits: inits.to_vec(),
            maps,
            combiners: combiners.to_vec(),
        };
        parts.drop_unused_runtimes(self.ir);
        parts
    }
}

/// Lets runtime variable `base + k` in `exprs` be the expression `known[k]`.
fn renumber_offsets(ir: &Context, exprs: &[Expr], base: usize, known: &[Expr]) -> Vec<Expr> {
    ir.substitute_all(exprs, &|var| match var {
        Var::Runtime(number) => known.get((number as usize).checked_sub(base)?).copied(),
        _ => None,
    })
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

    /// The maps of the producer's inputs over the consumer's variables, added to the frame:
    /// the numbers of the inputs, the dimension variables, and the runtime variables.
    fn add_producer_inputs(
        &self,
        frame: &mut Frame<'c, 'i>,
        dims: &[Expr],
    ) -> (Vec<usize>, Vec<Expr>) {
        let base = self.consumer.parts.runtimes.len();
        let (dims, runtimes) = frame.add_runtimes(&self.producer, base, dims);
        let parts = &self.producer.parts;
        let numbers = parts
            .inputs
            .iter()
            .zip(&parts.maps)
            .map(|(value, map)| {
                let results = self.ir.substitute_all(&map.results, &|var| match var {
                    Var::Dim(dim) => dims.get(dim as usize).copied(),
                    Var::Runtime(number) => runtimes.get(number as usize).copied(),
                    Var::Range(_) => None,
                });
                frame.add_input(*value, results)
            })
            .collect();
        (numbers, dims)
    }

    fn build_producer(self) -> Generic<'c> {
        let ir = self.ir;
        let consumer = &self.consumer;
        let mut frame = Frame::of(ir, consumer);
        // What stands for each input of the consumer: an input, or a body of the producer.
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut bodies: HashMap<usize, (Vec<usize>, Vec<Expr>)> = HashMap::new();
        for (number, value) in consumer.parts.inputs.iter().enumerate() {
            match self.reads.iter().position(|read| *read == number) {
                Some(read) => {
                    bodies.insert(number, self.add_producer_inputs(&mut frame, &self.dims[read]));
                }
                None => {
                    let results = consumer.parts.maps[number].results.clone();
                    numbers.insert(number, frame.add_input(*value, results));
                }
            }
        }
        let builder = self.builder();
        let init_maps: Vec<_> = consumer.parts.maps[consumer.parts.inputs.len()..]
            .iter()
            .take(consumer.parts.inits.len())
            .map(|map| map.results.clone())
            .collect();
        let parts = frame.parts(&consumer.parts.inits, &init_maps, &consumer.parts.combiners);
        let fused = parts.build(ir, &builder, consumer.generic.epilogue().is_some());
        let num_folded = consumer.parts.inits.len();
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
                    let (inputs, dims) = &bodies[&number];
                    let arguments: Vec<_> =
                        inputs.iter().map(|input| new_arguments[offset + input]).collect();
                    let value = self.copy_body(
                        &frame,
                        &inside,
                        self.producer.generic.body(),
                        &arguments,
                        dims,
                    );
                    values.insert(*argument, value);
                }
            }
            copy_rest(&inside, old, &mut values);
        }
        fused
    }

    fn build_epilogue(self) -> Generic<'c> {
        let ir = self.ir;
        let (consumer, producer) = (&self.consumer, &self.producer);
        let mut frame = Frame::of(ir, consumer);
        let base = consumer.parts.runtimes.len();
        let (dims, runtimes) = frame.add_runtimes(producer, base, &self.dims[0]);
        let replacement = |var: Var| match var {
            Var::Runtime(number) => runtimes.get(number as usize).copied(),
            _ => None,
        };
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
        let (producer_inputs, _) = self.add_producer_inputs(&mut frame, &self.dims[0]);
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        for (number, value) in consumer.parts.inputs.iter().enumerate() {
            if !self.reads.contains(&number) {
                let results = consumer.parts.maps[number].results.clone();
                numbers.insert(number, frame.add_input(*value, results));
            }
        }
        let builder = self.builder();
        let init_map = consumer.init_map().results.clone();
        let parts = frame.parts(&consumer.parts.inits, &[init_map], &producer.parts.combiners);
        let fused = parts.build(ir, &builder, true);

        let inside = Builder::at_end(builder.context, fused.body(), builder.location);
        let new_arguments = mlir::arguments(fused.body());
        let arguments: Vec<_> = producer_inputs.iter().map(|input| new_arguments[*input]).collect();
        let value = self.copy_body(&frame, &inside, producer.generic.body(), &arguments, &dims);
        imap::build_yield(&inside, &[value]);

        let epilogue = fused.epilogue().expect("it was asked for");
        let inside = Builder::at_end(builder.context, epilogue, builder.location);
        let new_arguments = mlir::arguments(epilogue);
        let folded = match producer.generic.epilogue() {
            None => new_arguments[0],
            Some(old) => {
                let inputs = producer_inputs.iter().map(|input| new_arguments[1 + input]);
                let arguments: Vec<_> = std::iter::once(new_arguments[0]).chain(inputs).collect();
                self.copy_body(&frame, &inside, old, &arguments, &dims)
            }
        };
        let mut values = ValueMap::default();
        for (number, argument) in mlir::arguments(consumer.generic.body()).into_iter().enumerate() {
            let value = numbers.get(&number).map_or(folded, |input| new_arguments[1 + input]);
            values.insert(argument, value);
        }
        copy_rest(&inside, consumer.generic.body(), &mut values);
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
        dims: &[Expr],
    ) -> Val<'c> {
        let mut values = ValueMap::default();
        for (old, new) in mlir::arguments(block).into_iter().zip(arguments) {
            values.insert(old, *new);
        }
        for op in mlir::ops(block) {
            if mlir::is(op, "imap.yield") {
                let value = mlir::operand(op, 0);
                return values.get(value).unwrap_or(value);
            }
            let copy = inside.located(op.location()).copy(op, &mut values);
            let mut inner = Vec::new();
            mlir::walk(copy, &mut |op| inner.push(op));
            for asked in inner {
                let Some(Var::Dim(number)) =
                    mlir::is(asked, "imap.index").then(|| index_variable(asked)).flatten()
                else {
                    continue;
                };
                let value = build_index(frame, &Builder::before(asked), dims[number as usize]);
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
            let combiner = generic.combiners().get(number).copied();
            if returned || combiner.is_some_and(Combiner::reads_destination) {
                continue;
            }
            let element = mlir::element_type(result.r#type());
            let mut bytes = ir.constant(mlir::byte_width(element) as i64);
            for dim in &domain.dims {
                let (Some(lower), Some(upper)) = (dim.lower, dim.upper) else { continue };
                let extent = ir.add(ir.sub(upper, lower), ir.constant(1));
                bytes = ir.mul(bytes, extent);
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
