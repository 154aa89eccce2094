//! Memory that a function holds while it runs.
//!
//! The analysis follows the allocations and deallocations of a function on buffers in the order in which
//! they run. It knows which side of a branch runs if the condition is a constant, also one that a loop
//! carries, because deallocation emits such conditions. If the condition is unknown, the side that leaves
//! more memory allocated counts. A loop whose iterations leave different amounts has no known peak.

use super::{Extents, canonical, max};
use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::SCRATCH,
    mlir::{self, Blk, Op, Val},
};
use tc_ir::Expr;

/// The most iterations of a loop until it repeats.
const MAX_ROUNDS: usize = 4;
/// How deep loops and branches may be nested.
const MAX_DEPTH: usize = 64;

/// The memory of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The most bytes of tensors between operations.
    pub temporary_bytes: Option<Expr>,
    /// The most bytes inside of operations, including arrays on the stack.
    pub scratch_bytes: Option<Expr>,
}

/// The memory of a function on buffers, with deallocations, whose parallel loops run in so many threads.
pub fn memory(function: Op, extents: &Extents, threads: usize) -> Memory {
    memory_with(function, extents, threads, &mut HashMap::new(), MAX_DEPTH)
}

/// [`memory`] with a cache: the memory of callees by name.
fn memory_with(
    function: Op,
    extents: &Extents,
    threads: usize,
    called: &mut HashMap<String, Memory>,
    depth: usize,
) -> Memory {
    let mut relevant = HashSet::new();
    mlir::walk(function, &mut |op| {
        let is_memory = matches!(
            mlir::name(op),
            "memref.alloc" | "memref.alloca" | "memref.dealloc" | "func.call"
        );
        let mut around = is_memory.then_some(op);
        while let Some(op) = around.filter(|op| relevant.insert(mlir::op_key(*op))) {
            around = mlir::parent(op);
        }
    });
    let zero = Some(extents.ir.constant(0));
    let mut analysis = Analysis {
        extents,
        relevant,
        threads: i64::try_from(threads).unwrap_or(i64::MAX),
        is_parallel: false,
        held: Held { now: [zero; 2], peak: [zero; 2] },
        stack: zero,
        buffers: HashMap::new(),
        conditions: HashMap::new(),
        called,
    };
    if let Some(body) = mlir::body(function, 0) {
        analysis.block(body, depth);
    }
    let [temporary_bytes, scratch] = analysis.held.peak;
    let scratch_bytes =
        scratch.zip(analysis.stack).map(|(heap, stack)| extents.ir.add(heap, stack));
    Memory { temporary_bytes, scratch_bytes }
}

const TEMPORARY: usize = 0;
const IN_OPERATION: usize = 1;

/// Bytes allocated, of tensors and of scratch; `None` if unknown.
#[derive(Clone, Copy, PartialEq)]
struct Held {
    now: [Option<Expr>; 2],
    peak: [Option<Expr>; 2],
}

struct Analysis<'a, 'i> {
    extents: &'a Extents<'i>,
    /// Operations that allocate or free memory, and those around them.
    relevant: HashSet<usize>,
    threads: i64,
    is_parallel: bool,
    held: Held,
    stack: Option<Expr>,
    /// Per allocated buffer, the kind of its memory and its bytes.
    buffers: HashMap<usize, (usize, Option<Expr>)>,
    /// Known truth values among the arguments of regions and the results of loops.
    conditions: HashMap<usize, bool>,
    /// The memory of callees by name.
    called: &'a mut HashMap<String, Memory>,
}

impl Analysis<'_, '_> {
    fn block<'c>(&mut self, block: Blk<'c>, depth: usize) {
        for op in mlir::ops(block) {
            if self.relevant.contains(&mlir::op_key(op)) {
                self.op(op, depth);
            }
        }
    }

    fn fail(&mut self) {
        self.held = Held { now: [None; 2], peak: [None; 2] };
        self.stack = None;
    }

    fn op<'c>(&mut self, op: Op<'c>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.fail() };
        match mlir::name(op) {
            "memref.alloc" => self.allocate(op),
            "memref.alloca" => {
                let bytes = self.bytes(mlir::result(op, 0));
                self.stack = self.stack.zip(bytes).map(|(all, it)| self.extents.ir.add(all, it));
            }
            "memref.dealloc" => self.free(mlir::operand(op, 0)),
            "func.call" => self.call(op, depth),
            "scf.if" => self.branch(op, depth),
            "scf.for" => {
                if let Some(body) = mlir::body(op, 0) {
                    self.repeat(op, (None, body), &mlir::operands(op)[3..], depth);
                }
            }
            "scf.while" => {
                if let Some((test, body)) = mlir::body(op, 0).zip(mlir::body(op, 1)) {
                    self.repeat(op, (Some(test), body), &mlir::operands(op), depth);
                }
            }
            "scf.parallel" | "scf.forall" => {
                let outermost = !std::mem::replace(&mut self.is_parallel, true);
                if let Some(body) = mlir::body(op, 0) {
                    self.repeat(op, (None, body), &[], depth);
                }
                self.is_parallel = !outermost;
            }
            _ => self.fail(),
        }
    }

    /// The bytes of a buffer, once per thread in parallel loops.
    fn bytes(&self, buffer: Val) -> Option<Expr> {
        let width = mlir::byte_width(mlir::element_type(buffer.r#type()));
        let factor =
            i64::from(width).checked_mul(if self.is_parallel { self.threads } else { 1 })?;
        let bytes =
            self.extents.ir.mul(self.extents.elements(buffer)?, self.extents.ir.constant(factor));
        canonical(self.extents.ir, bytes)
    }

    fn allocate(&mut self, op: Op) {
        let ir = self.extents.ir;
        let buffer = mlir::result(op, 0);
        let kind = if op.attribute(SCRATCH).is_ok() { IN_OPERATION } else { TEMPORARY };
        let bytes = self.bytes(buffer);
        self.buffers.insert(mlir::value_key(buffer), (kind, bytes));
        let now =
            self.held.now[kind].zip(bytes).and_then(|(now, it)| canonical(ir, ir.add(now, it)));
        let before = std::mem::replace(&mut self.held.now[kind], now);
        let peak = self.held.peak[kind];
        self.held.peak[kind] = match peak == before {
            true => now,
            false => peak.zip(now).map(|(peak, now)| max(ir, peak, now)),
        };
    }

    /// Adds the memory of a callee to the peak. A function without a body holds no memory.
    fn call(&mut self, op: Op, depth: usize) {
        let name = mlir::callee(op).unwrap_or_default();
        let memory = match self.called.get(name) {
            Some(known) => *known,
            None => {
                let callee = mlir::find_symbol(op, name).filter(|it| mlir::body(*it, 0).is_some());
                let Some(callee) = callee else { return };
                let threads = usize::try_from(self.threads).unwrap_or(usize::MAX);
                let memory = memory_with(callee, self.extents, threads, self.called, depth);
                self.called.insert(name.to_string(), memory);
                memory
            }
        };
        let ir = self.extents.ir;
        for (kind, bytes) in [memory.temporary_bytes, memory.scratch_bytes].into_iter().enumerate()
        {
            let during =
                self.held.now[kind].zip(bytes).and_then(|(now, it)| canonical(ir, ir.add(now, it)));
            let peak = self.held.peak[kind].zip(during);
            self.held.peak[kind] = peak.map(|(peak, during)| max(ir, peak, during));
        }
    }

    /// Frees the memory that a buffer is a view of.
    fn free(&mut self, buffer: Val) {
        let ir = self.extents.ir;
        let viewed = match mlir::defining_op(buffer) {
            Some(op) if mlir::is(op, "memref.extract_strided_metadata") => mlir::operand(op, 0),
            _ => buffer,
        };
        // A buffer that a loop carries is all of its memory unless its type has strides.
        let carried = || {
            let is_whole = !viewed.r#type().to_string().contains("strided");
            (TEMPORARY, if is_whole { self.bytes(viewed) } else { None })
        };
        let known = self.buffers.get(&mlir::value_key(super::extents::root(viewed))).copied();
        let (kind, bytes) = known.unwrap_or_else(carried);
        let now = self.held.now[kind];
        self.held.now[kind] = now.zip(bytes).and_then(|(now, it)| canonical(ir, ir.sub(now, it)));
    }

    /// The larger of two amounts of memory.
    fn join(&self, a: Held, b: Held) -> Held {
        let larger = |a: [Option<Expr>; 2], b: [Option<Expr>; 2]| {
            [0, 1].map(|kind| a[kind].zip(b[kind]).map(|(a, b)| max(self.extents.ir, a, b)))
        };
        Held { now: larger(a.now, b.now), peak: larger(a.peak, b.peak) }
    }

    fn branch<'c>(&mut self, op: Op<'c>, depth: usize) {
        let before = self.held;
        let condition = self.condition(mlir::operand(op, 0));
        let mut ends = Vec::new();
        for (number, is_then) in [(0, true), (1, false)] {
            if condition.is_none_or(|condition| condition == is_then) {
                self.held = before;
                if let Some(block) = mlir::body(op, number) {
                    self.block(block, depth);
                }
                ends.push(self.held);
            }
        }
        self.held = ends.into_iter().reduce(|a, b| self.join(a, b)).unwrap_or(before);
    }

    /// A loop: a region that tests, if there is one, and the region that is repeated.
    fn repeat<'c>(
        &mut self,
        op: Op<'c>,
        (test, body): (Option<Blk<'c>>, Blk<'c>),
        inits: &[Val<'c>],
        depth: usize,
    ) {
        let mut carried: Vec<_> = inits.iter().map(|init| self.condition(*init)).collect();
        let mut ends = Vec::new();
        let mut results: Vec<Vec<Option<bool>>> = Vec::new();
        let mut is_stable = false;
        for _ in 0..MAX_ROUNDS {
            let start = self.held.now;
            let passed = match test {
                Some(test) => {
                    self.set_arguments(test, 0, &carried);
                    self.block(test, depth);
                    let passed = &mlir::operands(mlir::terminator(test))[1..];
                    passed.iter().map(|value| self.condition(*value)).collect()
                }
                None => carried.clone(),
            };
            ends.push(self.held);
            results.push(passed.clone());
            // The first argument of an `scf.for` is its index.
            let first = mlir::arguments(body).len().saturating_sub(passed.len());
            self.set_arguments(body, first, &passed);
            self.block(body, depth);
            let yielded = mlir::operands(mlir::terminator(body));
            let next: Vec<_> = yielded.iter().map(|value| self.condition(*value)).collect();
            is_stable = self.held.now == start && next == carried;
            if is_stable {
                break;
            }
            carried = next;
        }
        if !is_stable {
            return self.fail();
        }
        // The loop may end after any of the rounds.
        let peak = self.held.peak;
        let end = ends.into_iter().reduce(|a, b| self.join(a, b));
        self.held = Held { peak, ..end.unwrap_or(self.held) };
        for (number, result) in mlir::results(op).into_iter().enumerate() {
            let mut values = results.iter().map(|round| round.get(number).copied().flatten());
            let first = values.next().flatten();
            match first.filter(|first| values.all(|value| value == Some(*first))) {
                Some(known) => self.conditions.insert(mlir::value_key(result), known),
                None => self.conditions.remove(&mlir::value_key(result)),
            };
        }
    }

    fn set_arguments(&mut self, block: Blk, first: usize, values: &[Option<bool>]) {
        for (argument, value) in mlir::arguments(block).into_iter().skip(first).zip(values) {
            match value {
                Some(value) => self.conditions.insert(mlir::value_key(argument), *value),
                None => self.conditions.remove(&mlir::value_key(argument)),
            };
        }
    }

    /// A truth value, if it is known.
    fn condition(&self, value: Val) -> Option<bool> {
        if let Some(known) = self.conditions.get(&mlir::value_key(value)) {
            return Some(*known);
        }
        let op = mlir::defining_op(value).filter(|op| mlir::is(*op, "arith.constant"))?;
        mlir::bool_of(op.attribute("value").ok()?)
    }
}
