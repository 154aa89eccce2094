//! `bufferize-chains`: assign buffers to the operations of a large function that have destinations.
//!
//! One-shot bufferization compares all reads and writes of the values that may share a buffer. For a chain
//! of n updates of one tensor this takes time cubic in n, for n readers of one tensor quadratic. This pass
//! runs before it and decides the cases that need one look at each use:
//!
//! * A chain of destinations has one buffer: a destination that is not read after the next operation of the
//!   chain is overwritten in place. Later readers in the block read the buffer.
//! * A chain that starts at `tensor.empty` allocates its buffer, or gets the buffer of the function's result
//!   that it is stored to. Other chains start at a `bufferization.to_buffer` that writes, so that
//!   bufferization decides about a copy.
//! * Of the readers of any other tensor in a block, the first and the last one get a
//!   `bufferization.to_buffer`. A write between them then has a conflict, as with all readers.
//! * An operation that reads a tensor at the element that it overwrites there has one buffer for both.
//! * The end of a chain that other operations use becomes a tensor again (`bufferization.to_tensor`).
//!
//! An operation on `tensor.empty` whose result leaves a region stays, because elimination of empty tensors
//! can give it the destination of the whole control flow. So does one on slices, which one-shot bufferization knows.
//!
//! Before:
//!
//! ```mlir
//! %e = tensor.empty() : tensor<4xf32>
//! %a = imap.generic .. ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) .. -> tensor<4xf32>
//! %b = imap.generic .. ins(%y : tensor<2xf32>) outs(%a : tensor<4xf32>) .. -> tensor<4xf32>
//! "use"(%b) : (tensor<4xf32>) -> ()
//! ```
//!
//! After:
//!
//! ```mlir
//! %m = memref.alloc() : memref<4xf32>
//! %x_m = bufferization.to_buffer %x read_only : tensor<4xf32> to memref<4xf32>
//! imap.generic .. ins(%x_m : memref<4xf32>) outs(%m : memref<4xf32>) ..
//! %y_m = bufferization.to_buffer %y read_only : tensor<2xf32> to memref<2xf32>
//! imap.generic .. ins(%y_m : memref<2xf32>) outs(%m : memref<4xf32>) ..
//! %b = bufferization.to_tensor %m restrict writable : memref<4xf32> to tensor<4xf32>
//! "use"(%b) : (tensor<4xf32>) -> ()
//! ```
//!
//! Between this pass and one-shot bufferization no pass may fold `to_buffer` of `to_tensor`: the pairs tell
//! the analysis who reads and writes.
//!
//! Option: `max-readers`, the number of readers of tensors up to which a function is left to one-shot
//! bufferization. Remark: how many operations got buffers.

use crate::loops::ALIGNMENT;
use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike, r#type::MemRefType};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::{self, AnyIndexed, Indexed},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "bufferize-chains",
    summary: "Assign buffers to the operations of a large function that have destinations",
    anchor: "builtin.module",
    options: &[PassOption {
        name: "max-readers",
        description: "The number of readers of tensors up to which a function is left alone",
        default: "32",
    }],
    dependent_dialects: &["bufferization", "memref"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let max_readers = pass.number("max-readers")?;
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        pass.enter(function);
        let order = Order::new(function);
        if order.num_readers as i64 <= max_readers {
            continue;
        }
        let count = Chains::new(pass, function, order).assign();
        remark(
            function.location(),
            RemarkKind::Passed,
            PASS.argument,
            "chains",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[("Bufferized", &count.to_string())],
        );
    }
    Ok(())
}

/// Whether an operation reads a tensor as a whole, or one element, and gives no tensor: its first operand
/// may become a buffer.
fn is_plain_reader(op: Op) -> bool {
    mlir::is(op, "tensor.extract")
        || mlir::is(op, "bufferization.to_buffer")
            && op.attribute("read_only").is_ok()
            && mlir::result(op, 0).r#type() == memref_type(mlir::operand(op, 0).r#type())
}

/// The operations of a function in program order.
struct Order<'c> {
    ops: Vec<Op<'c>>,
    /// By operation: its number, and the number after the last operation nested in it.
    spans: HashMap<usize, (usize, usize)>,
    /// By number, how many operations before it may write a tensor.
    num_writers: Vec<usize>,
    /// How many operations read tensors.
    num_readers: usize,
}

impl<'c> Order<'c> {
    fn new(function: Op<'c>) -> Self {
        let mut ops = Vec::new();
        mlir::walk(function, &mut |op| ops.push(op));
        let numbers: HashMap<_, _> =
            ops.iter().enumerate().map(|(number, op)| (mlir::op_key(*op), number)).collect();
        let mut sizes = vec![1; ops.len()];
        for number in (1..ops.len()).rev() {
            let parent = mlir::parent(ops[number]).and_then(|op| numbers.get(&mlir::op_key(op)));
            if let Some(parent) = parent {
                sizes[*parent] += sizes[number];
            }
        }
        let spans = ops.iter().enumerate();
        let spans = spans.map(|(number, op)| (mlir::op_key(*op), (number, number + sizes[number])));
        let spans = spans.collect();
        let mut num_writers = vec![0];
        for (number, op) in ops.iter().enumerate() {
            let is_writer = mlir::results(*op).iter().any(|it| mlir::is_tensor(it.r#type()))
                || mlir::is(*op, "bufferization.materialize_in_destination")
                || mlir::is(*op, "bufferization.to_buffer") && op.attribute("read_only").is_err();
            num_writers.push(num_writers[number] + usize::from(is_writer));
        }
        let is_reader = |op: &&Op<'c>| has_destinations(**op) || is_plain_reader(**op);
        let num_readers = ops.iter().filter(is_reader).count();
        Self { ops, spans, num_writers, num_readers }
    }

    fn number(&self, op: Op) -> usize {
        self.spans.get(&mlir::op_key(op)).map_or(0, |span| span.0)
    }

    /// Whether an operation and what is nested in it write no tensor.
    fn only_reads(&self, op: Op) -> bool {
        let span = self.spans.get(&mlir::op_key(op));
        span.is_some_and(|(start, end)| self.num_writers[*start] == self.num_writers[*end])
    }

    /// Lets an operation stand at the place of another one.
    fn replace(&mut self, old: Op, new: Op<'c>) {
        if let Some(span) = self.spans.get(&mlir::op_key(old)).copied() {
            self.spans.insert(mlir::op_key(new), span);
            self.ops[span.0] = new;
        }
    }
}

/// An operation of a block, the reader of a tensor that it is or holds, and the number of the operand.
type Reader<'c> = (Op<'c>, Op<'c>, usize);

/// How the buffer of a destination is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// `tensor.empty`: undefined elements.
    Empty,
    /// `bufferization.alloc_tensor` with a copy, or a chain that goes on elsewhere.
    Copy,
    /// Any other tensor.
    Tensor,
}

/// A result of the function that a tensor is stored to.
#[derive(Clone, Copy, Debug)]
struct Destination<'c> {
    buffer: Val<'c>,
    /// The operations that store it: the last one first.
    stores: [Op<'c>; 2],
}

/// How a result of an operation is used.
#[derive(Clone, Debug, Default)]
struct Uses<'c> {
    /// The operation that overwrites it, and the number of the result there.
    next: Option<(Op<'c>, usize)>,
    destination: Option<Destination<'c>>,
    /// Whether it has to be a tensor again.
    is_tensor: bool,
}

/// The chains of a function.
struct Chains<'a, 'c> {
    pass: &'a PassRun<'c>,
    order: Order<'c>,
    /// The block of the function.
    entry: Option<Blk<'c>>,
    /// The operations that get buffers, in program order, and their keys.
    updates: Vec<Op<'c>>,
    keys: HashSet<usize>,
    /// By result.
    uses: HashMap<usize, Uses<'c>>,
    /// By result, the start of its chain.
    starts: HashMap<usize, Start>,
    /// By tensor of a chain, its buffer.
    buffers: HashMap<usize, Val<'c>>,
    /// By buffer of a chain that starts at any tensor, that tensor.
    roots: HashMap<usize, Val<'c>>,
    /// The operations that store what is computed in place now.
    stores: Vec<Op<'c>>,
    /// Other replaced operations, in program order.
    replaced: Vec<Op<'c>>,
}

impl<'a, 'c> Chains<'a, 'c> {
    fn new(pass: &'a PassRun<'c>, function: Op<'c>, order: Order<'c>) -> Self {
        let updates = order.ops.iter().copied().filter(|op| has_destinations(*op));
        let mut on_slices = HashSet::new();
        let mut is_on_slices =
            |op: Op<'c>| is_on_slices(op, &on_slices) && on_slices.insert(mlir::op_key(op));
        let updates = updates.filter(|op| !leaves_region(*op) && !is_on_slices(*op));
        let updates: Vec<_> = updates.collect();
        let keys = updates.iter().map(|op| mlir::op_key(*op)).collect();
        let mut chains = Self {
            pass,
            order,
            entry: mlir::body(function, 0),
            updates,
            keys,
            uses: HashMap::new(),
            starts: HashMap::new(),
            buffers: HashMap::new(),
            roots: HashMap::new(),
            stores: Vec::new(),
            replaced: Vec::new(),
        };
        chains.find_uses();
        chains
    }

    /// Whether an operation is one that gets buffers.
    fn is_chained(&self, op: Op) -> bool {
        self.keys.contains(&mlir::op_key(op))
    }

    fn find_uses(&mut self) {
        for op in self.updates.clone() {
            self.pass.enter(op);
            for (number, init) in imap::destinations(op).into_iter().flatten().enumerate() {
                let result = mlir::result(op, number);
                let mut uses = self.uses_of(result, op);
                let start = match self.uses.get(&mlir::value_key(init)) {
                    Some(Uses { next: Some(_), .. }) => self.starts[&mlir::value_key(init)],
                    Some(Uses { is_tensor: false, .. }) => Start::Copy,
                    _ => start(init),
                };
                if start == Start::Tensor && uses.destination.take().is_some() {
                    uses.is_tensor = true;
                }
                self.starts.insert(mlir::value_key(result), start);
                self.uses.insert(mlir::value_key(result), uses);
            }
        }
        // Each operation of a chain stores to the destination of the last one.
        for op in self.updates.clone().into_iter().rev() {
            for result in mlir::results(op) {
                if let Some((op, number)) = self.uses[&mlir::value_key(result)].next {
                    let next = mlir::value_key(mlir::result(op, number));
                    let destination = self.uses[&next].destination;
                    if let Some(uses) = self.uses.get_mut(&mlir::value_key(result)) {
                        uses.destination = destination;
                    }
                }
            }
        }
    }

    fn uses_of(&self, result: Val<'c>, op: Op<'c>) -> Uses<'c> {
        let (mut next, mut readers, mut destinations) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_tensor = false;
        for (user, number) in mlir::uses(result) {
            let init = number.checked_sub(user.operand_count() - user.result_count());
            match init {
                Some(init) if self.is_chained(user) => next.push((user, init)),
                None if self.is_chained(user) => readers.push((user, number)),
                _ if mlir::is(user, "tensor.dim") => {}
                _ if is_plain_reader(user) && self.is_in_reach(user)
                    || self.is_copied_destination(user) =>
                {
                    readers.push((user, number));
                }
                _ => match self.destination(result, user, number) {
                    Some(destination) => destinations.push(destination),
                    None => is_tensor = true,
                },
            }
        }
        if is_tensor || !next.is_empty() || destinations.len() != 1 {
            is_tensor |= !destinations.is_empty();
            destinations.clear();
        }
        let next = match next[..] {
            [(next, init)] if !is_tensor && self.is_last(op, next, init, &readers) => {
                Some((next, init))
            }
            _ => None,
        };
        Uses { next, destination: destinations.pop(), is_tensor }
    }

    /// Whether an operation that reads a tensor can read a buffer: the body of an operation on tensors
    /// cannot.
    fn is_in_reach(&self, reader: Op<'c>) -> bool {
        let around = mlir::parent(reader).filter(|op| has_destinations(*op));
        around.is_none_or(|op| self.is_chained(op))
    }

    /// Whether an operation copies a tensor for a chain that starts there.
    fn is_copied_destination(&self, op: Op<'c>) -> bool {
        let is_init = |(user, number): &(Op<'c>, usize)| {
            self.is_chained(*user) && user.operand_count() - user.result_count() <= *number
        };
        mlir::is(op, "bufferization.alloc_tensor")
            && start(mlir::result(op, 0)) == Start::Copy
            && mlir::uses(mlir::result(op, 0)).iter().all(is_init)
    }

    /// Whether no reader of a result is done later than the operation that overwrites it.
    fn is_last(&self, op: Op<'c>, next: Op<'c>, init: usize, readers: &[(Op<'c>, usize)]) -> bool {
        let end = self.order.number(next);
        let is_before = |(reader, number): &(Op<'c>, usize)| {
            let init = next.operand_count() - next.result_count() + init;
            self.order.number(*reader) < end
                || *reader == next && touches_same_element(next, *number, init)
        };
        op.block() == next.block() && readers.iter().all(is_before)
    }

    /// The result of the function that a use of a tensor stores to.
    fn destination(&self, tensor: Val<'c>, user: Op<'c>, number: usize) -> Option<Destination<'c>> {
        const STORE: &str = "bufferization.materialize_in_destination";
        if !mlir::is(user, STORE) || number != 0 || user.result_count() != 1 {
            return None;
        }
        let only_use = |value: Val<'c>| match mlir::uses(value)[..] {
            [(op, _)] => Some(op),
            _ => None,
        };
        let old = mlir::operand(user, 1);
        let to_tensor = mlir::defining_op(old)?;
        let store = only_use(mlir::result(user, 0)).filter(|op| mlir::is(*op, STORE))?;
        let buffer = mlir::operand(store, 1);
        let users = mlir::uses(buffer);
        let is_alone = mlir::is(to_tensor, "bufferization.to_tensor")
            && only_use(old) == Some(user)
            && users.len() == 2
            && users.iter().all(|(op, _)| *op == to_tensor || *op == store)
            && mlir::operand(store, 0) == mlir::result(user, 0)
            && mlir::argument_block(buffer).is_some_and(|block| Some(block) == self.entry)
            && mlir::block_ref(user.block()?) == self.entry?
            && mlir::defining_op(tensor)?.block() == user.block()
            && buffer.r#type() == memref_type(tensor.r#type());
        is_alone.then_some(Destination { buffer, stores: [store, user] })
    }

    /// Assigns buffers. Returns the number of operations that got them.
    fn assign(mut self) -> usize {
        let updates = self.updates.clone();
        // Chains may start at the tensors that others end with: in program order.
        for op in &updates {
            self.pass.enter(*op);
            self.bufferize(*op);
        }
        self.replace_readers();
        self.stores.into_iter().for_each(mlir::erase);
        self.replaced.into_iter().rev().for_each(mlir::erase);
        updates.len()
    }

    /// Puts an operation on buffers before the one on tensors, which is left without regions. Inputs that
    /// are in no chain stay tensors until [`Self::replace_readers`].
    fn bufferize(&mut self, op: Op<'c>) {
        let builder = Builder::before(op);
        let num_inputs = op.operand_count() - op.result_count();
        let tensors = mlir::operands(op);
        let mut operands = tensors.clone();
        for (number, result) in mlir::results(op).into_iter().enumerate() {
            let init = num_inputs + number;
            operands[init] = self.buffer(&builder, tensors[init], result);
        }
        for number in 0..num_inputs {
            let tensor = tensors[number];
            // What overwrites each element that it reads has one buffer for both.
            let overwritten = (num_inputs..tensors.len()).find(|init| {
                tensors[*init] == tensor
                    && self.roots.get(&mlir::value_key(operands[*init])) == Some(&tensor)
                    && touches_same_element(op, number, *init)
            });
            let chained = || self.buffers.get(&mlir::value_key(tensor)).copied();
            operands[number] =
                overwritten.map(|init| operands[init]).or_else(chained).unwrap_or(tensor);
        }
        let new = mlir::rebuild(op, &operands, &[]);
        self.order.replace(op, new);
        self.replaced.push(op);
        for (result, buffer) in mlir::results(op).into_iter().zip(&operands[num_inputs..]) {
            let uses = &self.uses[&mlir::value_key(result)];
            if uses.is_tensor {
                let unit = Attribute::unit(builder.context);
                let attributes = [("restrict", unit), ("writable", unit)];
                let name = "bufferization.to_tensor";
                let mut tensor = builder.value_with(name, &[*buffer], result.r#type(), &attributes);
                if let Some(root) = self.roots.get(&mlir::value_key(*buffer))
                    && (is_yielded(result)
                        || mlir::argument_block(*root).is_some() && enters_loop(result))
                {
                    // Analysis sees that a loop carries one buffer; the copy to itself is folded.
                    let name = "bufferization.materialize_in_destination";
                    tensor = builder.value(name, &[tensor, *root], result.r#type());
                }
                mlir::replace_uses(result, tensor);
                continue;
            }
            self.buffers.insert(mlir::value_key(result), *buffer);
            if let (None, Some(destination)) = (uses.next, uses.destination) {
                self.stores.extend(destination.stores);
            }
        }
    }

    /// The buffer of a destination and of the result that it becomes.
    fn buffer(&mut self, builder: &Builder<'c>, init: Val<'c>, result: Val<'c>) -> Val<'c> {
        let ty = memref_type(init.r#type());
        let chained = self.buffers.get(&mlir::value_key(init)).copied();
        if let (Some(buffer), Some(Uses { next: Some(_), .. })) =
            (chained, self.uses.get(&mlir::value_key(init)))
        {
            return buffer;
        }
        let destination = self.uses[&mlir::value_key(result)].destination;
        let allocate = |builder: &Builder<'c>, sizes: &[Val<'c>]| match destination {
            Some(destination) => destination.buffer,
            None => {
                let attributes = [
                    ("alignment", mlir::i64_attr(builder.context, ALIGNMENT)),
                    ("operandSegmentSizes", mlir::segments(builder.context, &[sizes.len(), 0])),
                ];
                builder.value_with("memref.alloc", sizes, ty, &attributes)
            }
        };
        let copy = |builder: &Builder<'c>, source: Val<'c>| {
            let extents = mlir::shape(ty).into_iter().enumerate();
            let dynamic = extents.filter(|(_, extent)| extent.is_none());
            let sizes: Vec<_> = dynamic.map(|(dim, _)| builder.dim(source, dim)).collect();
            let buffer = allocate(builder, &sizes);
            builder.op("memref.copy", &[source, buffer], &[]);
            buffer
        };
        let def = mlir::defining_op(init);
        match (chained, def, start(init)) {
            (Some(source), ..) => copy(builder, source),
            (None, Some(empty), Start::Empty) => allocate(builder, &mlir::operands(empty)),
            (None, Some(alloc), Start::Copy) => {
                // The source may be overwritten between the copy and the chain.
                self.replaced.push(alloc);
                let builder = Builder::before(alloc);
                let source = mlir::operand(alloc, 0);
                let buffer = self.buffers.get(&mlir::value_key(source)).copied();
                copy(&builder, buffer.unwrap_or_else(|| to_buffer(&builder, source, true)))
            }
            _ => {
                let buffer = to_buffer(builder, init, false);
                self.roots.insert(mlir::value_key(buffer), init);
                buffer
            }
        }
    }

    /// Lets the readers of tensors read buffers.
    fn replace_readers(&self) {
        // By tensor and block: the operations of the block that read it or hold readers, and these.
        let mut found: HashMap<(usize, usize), Vec<Reader<'c>>> = HashMap::new();
        let mut keys = Vec::new();
        for op in &self.order.ops {
            let operands = if is_rebuilt(*op) {
                mlir::operands(*op)
            } else if is_plain_reader(*op) && is_read_from_buffer(*op)
                || mlir::is(*op, "tensor.dim")
            {
                vec![mlir::operand(*op, 0)]
            } else {
                continue;
            };
            for (number, tensor) in operands.into_iter().enumerate() {
                if !mlir::is_tensor(tensor.r#type()) {
                    continue;
                }
                if let Some(buffer) = self.buffers.get(&mlir::value_key(tensor)) {
                    read_from(*op, number, *buffer);
                    continue;
                }
                if mlir::is(*op, "tensor.dim") {
                    continue;
                }
                let around = self.reader_in_block_of(tensor, *op);
                let block =
                    around.block().map_or(0, |block| mlir::block_key(mlir::block_ref(block)));
                let key = (mlir::value_key(tensor), block);
                let readers = found.entry(key).or_default();
                if readers.is_empty() {
                    keys.push(key);
                }
                readers.push((around, *op, number));
            }
        }
        for readers in keys.iter().filter_map(|key| found.get(key)) {
            let [(first, ..), ..] = readers[..] else { continue };
            let last = readers[readers.len() - 1].0;
            let tensor = mlir::operand(readers[0].1, readers[0].2);
            let buffer = to_buffer(&Builder::before(first), tensor, true);
            let last_buffer = match first == last {
                true => buffer,
                false => to_buffer(&Builder::before(last), tensor, true),
            };
            for (around, reader, number) in readers {
                read_from(*reader, *number, if *around == last { last_buffer } else { buffer });
            }
        }
    }

    /// The outermost operation around a reader of a tensor that writes no tensors, in a block where the
    /// tensor is defined.
    fn reader_in_block_of(&self, tensor: Val<'c>, reader: Op<'c>) -> Op<'c> {
        let block = mlir::defining_op(tensor).and_then(|op| op.block()).map(mlir::block_ref);
        let block = block.or_else(|| mlir::argument_block(tensor));
        let mut found = reader;
        while found.block().map(mlir::block_ref) != block {
            match mlir::parent(found).filter(|op| self.order.only_reads(*op) || is_rebuilt(*op)) {
                Some(parent) => found = parent,
                None => break,
            }
        }
        found
    }
}

/// Whether an operation is one of `imap` that stores to destinations.
fn has_destinations(op: Op) -> bool {
    imap::destinations(op).is_some()
}

/// Whether an operation stores to buffers.
fn is_rebuilt(op: Op) -> bool {
    has_destinations(op) && op.result_count() == 0
}

/// Whether an operation that reads a tensor may read a buffer instead: it is not in a body on tensors.
fn is_read_from_buffer(reader: Op) -> bool {
    mlir::parent(reader).is_none_or(|op| !has_destinations(op) || is_rebuilt(op))
}

/// Whether each iteration reads one operand at the element, of its own, that it stores to another.
fn touches_same_element(op: Op, input: usize, init: usize) -> bool {
    AnyIndexed::cast(op).is_some_and(|it| it.touches_same_element(input, init))
}

/// Whether an operation on empty tensors is the last one of a region.
fn leaves_region(op: Op) -> bool {
    let is_empty = |init: &Val| start(*init) == Start::Empty;
    imap::destinations(op).is_some_and(|inits| inits.iter().all(is_empty))
        && mlir::results(op).into_iter().any(is_yielded)
}

/// Whether an operation works on slices, or overwrites the result of one that is known to. One-shot bufferization sees
/// that a tile is stored to where it was taken from, and what strides the buffer of a slice has; it would copy both.
fn is_on_slices(op: Op, known: &HashSet<usize>) -> bool {
    let is_slice = |value: Val| {
        mlir::defining_op(value).is_some_and(|op| mlir::is(op, "tensor.extract_slice"))
    };
    let is_known =
        |init: Val| mlir::defining_op(init).is_some_and(|op| known.contains(&mlir::op_key(op)));
    mlir::operands(op).into_iter().any(is_slice)
        || imap::destinations(op).is_some_and(|inits| inits.into_iter().any(is_known))
}

/// Whether a region yields a value.
fn is_yielded(value: Val) -> bool {
    let mut users = mlir::uses(value).into_iter().map(|(user, _)| user);
    users.any(|op| mlir::is(op, "scf.yield") || mlir::is(op, "scf.condition"))
}

/// Whether a loop starts with a value.
fn enters_loop(value: Val) -> bool {
    let mut users = mlir::uses(value).into_iter().map(|(user, _)| user);
    users.any(|op| mlir::is(op, "scf.for") || mlir::is(op, "scf.while"))
}

fn start(init: Val) -> Start {
    match mlir::defining_op(init) {
        Some(op) if mlir::uses(init).len() != 1 || has_destinations(op) => Start::Tensor,
        Some(op) if mlir::is(op, "tensor.empty") => Start::Empty,
        Some(op) if mlir::is(op, "bufferization.alloc_tensor") && op.operand_count() == 1 => {
            match mlir::is_tensor(mlir::operand(op, 0).r#type()) {
                true => Start::Copy,
                false => Start::Tensor,
            }
        }
        _ => Start::Tensor,
    }
}

fn memref_type<'c>(tensor: Type<'c>) -> Type<'c> {
    let extents = mlir::shape(tensor).into_iter();
    let shape: Vec<i64> = extents.map(|extent| extent.unwrap_or(i64::MIN)).collect();
    MemRefType::contiguous(mlir::element_type(tensor), &shape, None).into()
}

fn to_buffer<'c>(builder: &Builder<'c>, tensor: Val<'c>, is_read_only: bool) -> Val<'c> {
    let read_only = [("read_only", Attribute::unit(builder.context))];
    let attributes = if is_read_only { &read_only[..] } else { &[] };
    let ty = memref_type(tensor.r#type());
    builder.value_with("bufferization.to_buffer", &[tensor], ty, attributes)
}

/// Lets a reader of a tensor, its operand of this number, read a buffer.
fn read_from<'c>(reader: Op<'c>, number: usize, buffer: Val<'c>) {
    let operands = || [&[buffer], &mlir::operands(reader)[1..]].concat();
    let ty = || mlir::result(reader, 0).r#type();
    match mlir::name(reader) {
        "tensor.extract" => {
            let value = Builder::before(reader).value("memref.load", &operands(), ty());
            mlir::replace(reader, &[value]);
        }
        "tensor.dim" => {
            let value = Builder::before(reader).value("memref.dim", &operands(), ty());
            mlir::replace(reader, &[value]);
        }
        "bufferization.to_buffer" => mlir::replace(reader, &[buffer]),
        _ => mlir::set_operand(reader, number, buffer),
    }
}
