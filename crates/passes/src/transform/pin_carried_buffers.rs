//! `pin-carried-buffers`: each buffer that a loop carries is one buffer for all iterations.
//!
//! Bufferization lets an iteration give the next one a buffer that it allocated. An allocation in a loop then
//! needs a new address in each iteration. After this pass it needs one address, which can be assigned before
//! the program runs.
//!
//! Before:
//!
//! ```mlir
//! %r = scf.for .. iter_args(%x = %init) -> (memref<8xf32>) {
//!   %y = memref.alloc() : memref<8xf32>
//!   imap.generic .. ins(%x[i] : memref<8xf32>) outs(%y[i] : memref<8xf32>) ..
//!   scf.yield %y : memref<8xf32>
//! }
//! ```
//!
//! After:
//!
//! ```mlir
//! %p = memref.alloc() : memref<8xf32>
//! memref.copy %init, %p
//! %r = scf.for .. iter_args(%x = %p) -> (memref<8xf32>) {
//!   %y = memref.alloc() : memref<8xf32>
//!   imap.generic .. ins(%p[i] : memref<8xf32>) outs(%y[i] : memref<8xf32>) ..
//!   memref.copy %y, %p
//!   scf.yield %p : memref<8xf32>
//! }
//! .. // %p in place of %r
//! ```
//!
//! What an iteration gives may depend on what it carries, as in a loop that swaps two buffers. Such values are
//! copied to temporaries first.
//!
//! Limit: the sizes of what is carried must be known to stay the same. Dimensions of arguments that `tc.sizes` gives one
//! name are the same.

use crate::analysis::buffers::VIEWS;
use melior::ir::{ValueLike, r#type::MemRefType};
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "pin-carried-buffers",
    summary: "Let each buffer that a loop carries be one buffer for all iterations",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "memref"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut loops = Vec::new();
    mlir::walk(pass.op, &mut |op| loops.extend(Loop::of(op)));
    // Inner loops first: what they give is a pinned buffer then.
    for one in loops.into_iter().rev() {
        pass.enter(one.op);
        one.pin().map_err(|report| {
            report.emit();
            Failure
        })?;
    }
    Ok(())
}

/// A loop that carries buffers.
struct Loop<'c> {
    op: Op<'c>,
    /// By number of what is carried: the number of its operand at entry.
    first: usize,
    /// What the next iteration sees.
    arguments: Vec<Val<'c>>,
    /// What an iteration gives to the next one.
    yields: Op<'c>,
    /// For `scf.while`: the condition, and the arguments of the block behind it.
    passed: Option<(Op<'c>, Vec<Val<'c>>)>,
}

impl<'c> Loop<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let found = if mlir::is(op, "scf.for") {
            let block = mlir::body(op, 0)?;
            let arguments = mlir::arguments(block).split_off(1);
            Self { op, first: 3, arguments, yields: mlir::terminator(block), passed: None }
        } else if mlir::is(op, "scf.while") {
            let (before, after) = (mlir::body(op, 0)?, mlir::body(op, 1)?);
            let passed = Some((mlir::terminator(before), mlir::arguments(after)));
            let arguments = mlir::arguments(before);
            Self { op, first: 0, arguments, yields: mlir::terminator(after), passed }
        } else {
            return None;
        };
        let buffers = found.arguments.iter().chain(found.passed.iter().flat_map(|it| &it.1));
        let has_buffers = buffers.into_iter().any(|it| mlir::is_memref(it.r#type()));
        has_buffers.then_some(found)
    }

    /// The buffer that stands for a value at the start of an iteration: what the condition of a `scf.while`
    /// passes on.
    fn origin(&self, value: Val<'c>) -> Val<'c> {
        let Some((condition, arguments)) = &self.passed else { return value };
        let place = arguments.iter().position(|it| *it == value);
        place.map_or(value, |place| mlir::operand(*condition, 1 + place))
    }

    fn pin(&self) -> Result<(), Report<'c>> {
        let before = Builder::before(self.op);
        // What changes from iteration to iteration: the number, the pinned buffer and its type in the loop.
        let mut changing = Vec::new();
        for (number, argument) in self.arguments.iter().enumerate() {
            if !mlir::is_memref(argument.r#type()) {
                continue;
            }
            let init = mlir::operand(self.op, self.first + number);
            let given = mlir::operand(self.yields, number);
            let stays = self.origin(given) == *argument;
            if !stays {
                self.check_sizes(*argument, init, given)?;
            }
            let kept = if stays { init } else { build_like(&before, init) };
            if !stays {
                before.op("memref.copy", &[init, kept], &[]);
                changing.push((number, kept));
            }
            let kept = cast(&before, kept, argument.r#type());
            mlir::replace_uses(*argument, kept);
            mlir::set_operand(self.op, self.first + number, kept);
            if self.passed.is_none() {
                mlir::replace_uses(mlir::result(self.op, number), kept);
            }
        }
        if let Some((condition, arguments)) = &self.passed {
            for (number, argument) in arguments.iter().enumerate() {
                let passed = mlir::operand(*condition, 1 + number);
                if mlir::is_memref(argument.r#type()) && !self.contains(passed) {
                    mlir::replace_uses(*argument, passed);
                    mlir::replace_uses(mlir::result(self.op, number), passed);
                }
            }
        }
        let end = Builder::before(self.yields);
        // All values are read before a pinned buffer is written.
        let given: Vec<_> = changing
            .iter()
            .map(|(number, _)| {
                let given = mlir::operand(self.yields, *number);
                if changing.len() == 1 || self.is_new(given) {
                    return given;
                }
                let temporary = build_like(&end, given);
                end.op("memref.copy", &[given, temporary], &[]);
                temporary
            })
            .collect();
        for ((_, kept), given) in changing.iter().zip(given) {
            end.op("memref.copy", &[given, *kept], &[]);
        }
        for (number, argument) in self.arguments.iter().enumerate() {
            if mlir::is_memref(argument.r#type()) {
                let kept = mlir::operand(self.op, self.first + number);
                mlir::set_operand(self.yields, number, kept);
            }
        }
        Ok(())
    }

    /// Whether a value is defined in the loop.
    fn contains(&self, value: Val<'c>) -> bool {
        let inside = match mlir::defining_op(value) {
            Some(op) => mlir::parent(op),
            None => mlir::argument_parent(value),
        };
        let mut around = inside;
        while let Some(op) = around {
            if op == self.op {
                return true;
            }
            around = mlir::parent(op);
        }
        false
    }

    /// Whether a buffer is part of one that an iteration allocates.
    fn is_new(&self, mut value: Val<'c>) -> bool {
        while let Some(op) = mlir::defining_op(value) {
            if mlir::is(op, "memref.alloc") {
                return self.contains(value);
            }
            if !VIEWS.contains(&mlir::name(op)) {
                return false;
            }
            value = mlir::operand(op, 0);
        }
        false
    }

    /// Checks that an iteration gives a buffer of the sizes that it gets.
    fn check_sizes(
        &self,
        argument: Val<'c>,
        init: Val<'c>,
        given: Val<'c>,
    ) -> Result<(), Report<'c>> {
        let extents = mlir::shape(argument.r#type());
        for dim in (0..extents.len()).filter(|dim| extents[*dim].is_none()) {
            let end = self.extent(given, dim);
            let is_same = end == Extent::Of(argument, dim) || end == self.extent(init, dim);
            if !is_same {
                let message = format!(
                    "carries a buffer of which dimension {dim} may change; give it a size that does not depend \
                     on the iteration"
                );
                return Err(Report::op_error(self.op, message));
            }
        }
        Ok(())
    }

    /// An extent of a buffer, followed to what determines it.
    fn extent(&self, mut buffer: Val<'c>, mut dim: usize) -> Extent<'c> {
        loop {
            if let Some(Some(extent)) = mlir::shape(buffer.r#type()).get(dim) {
                return Extent::Constant(*extent);
            }
            let origin = self.origin(buffer);
            if origin != buffer {
                buffer = origin;
                continue;
            }
            let Some(op) = mlir::defining_op(buffer) else {
                let name = size_name(buffer, dim);
                return name.map_or(Extent::Of(buffer, dim), Extent::Named);
            };
            match mlir::name(op) {
                "memref.cast" => buffer = mlir::operand(op, 0),
                "memref.alloc" => {
                    let extents = mlir::shape(buffer.r#type());
                    let number = extents[..dim].iter().filter(|it| it.is_none()).count();
                    let size = mlir::operand(op, number);
                    let of = mlir::defining_op(size).filter(|op| mlir::is(*op, "memref.dim"));
                    let place = of.and_then(|op| mlir::constant_of(mlir::operand(op, 1)));
                    let (Some(of), Some(place)) = (of, place) else { return Extent::Value(size) };
                    (buffer, dim) = (mlir::operand(of, 0), place as usize);
                }
                _ => return Extent::Of(buffer, dim),
            }
        }
    }
}

/// What determines an extent.
#[derive(PartialEq)]
enum Extent<'c> {
    Constant(i64),
    Value(Val<'c>),
    /// A size of the function.
    Named(&'c str),
    /// A dimension of a buffer.
    Of(Val<'c>, usize),
}

/// The name of a dimension of an argument of a function.
fn size_name<'c>(argument: Val<'c>, dim: usize) -> Option<&'c str> {
    let function = mlir::argument_parent(argument).filter(|op| mlir::is(*op, "func.func"))?;
    let arguments = mlir::arguments(mlir::body(function, 0)?);
    let number = arguments.iter().position(|it| *it == argument)?;
    let attributes = *mlir::array_attr(function, "arg_attrs").get(number)?;
    let names = mlir::array_of(mlir::dictionary_entry(attributes, "tc.sizes")?);
    names.get(dim).copied().and_then(mlir::string_of).filter(|name| !name.is_empty())
}

/// Emits the allocation of a contiguous buffer of the sizes of another one.
fn build_like<'c>(builder: &Builder<'c>, buffer: Val<'c>) -> Val<'c> {
    let ty = buffer.r#type();
    let extents = mlir::shape(ty);
    let dynamic = extents.iter().enumerate().filter(|(_, extent)| extent.is_none());
    let sizes: Vec<_> = dynamic.map(|(dim, _)| builder.dim(buffer, dim)).collect();
    let extents: Vec<_> = extents.iter().map(|it| it.unwrap_or(i64::MIN)).collect();
    let plain = MemRefType::contiguous(mlir::element_type(ty), &extents, None).into();
    let segments = mlir::segments(builder.context, &[sizes.len(), 0]);
    builder.value_with("memref.alloc", &sizes, plain, &[("operandSegmentSizes", segments)])
}

/// Emits the cast of a buffer to a type, if it has another one.
fn cast<'c>(builder: &Builder<'c>, buffer: Val<'c>, ty: melior::ir::Type<'c>) -> Val<'c> {
    if buffer.r#type() == ty { buffer } else { builder.value("memref.cast", &[buffer], ty) }
}
