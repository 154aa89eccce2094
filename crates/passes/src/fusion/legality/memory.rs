//! Effects: fusion moves the reads of a producer to its consumer.

use super::Rejection;
use melior::ir::{TypeLike, ValueLike};
use tc_dialects::{
    imap::{AnyIndexed, Indexed},
    mlir::{self, Op, Val},
};

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

/// Whether an operation or one nested in it accesses memory, or may have another effect.
pub(super) fn has_effects(op: Op) -> bool {
    memory_use(op) != MemoryUse::None
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
pub(super) fn check_memory<'c>(
    consumer: AnyIndexed<'c>,
    producer: AnyIndexed<'c>,
) -> Result<(), Rejection> {
    match memory_use(producer.op()) {
        MemoryUse::None => return Ok(()),
        MemoryUse::Reads => {}
        MemoryUse::Writes => return Err(Rejection::Writes),
    }
    let mut next = mlir::next(producer.op());
    while let Some(op) = next {
        if memory_use(op) == MemoryUse::Writes {
            return Err(Rejection::MemoryChanges);
        }
        next = mlir::next(op).filter(|_| op != consumer.op());
    }
    Ok(())
}
