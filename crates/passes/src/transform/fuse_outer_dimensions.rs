//! `fuse-outer-dimensions`: run operations with a common outer dimension one index at a time.
//!
//! A temporary between two operations, such as one with a batch dimension, then stores the elements of
//! one index only. It stays in cache, and no batch-sized buffer is allocated, which the operating system
//! would zero page by page.
//!
//! Before:
//!
//! ```mlir
//! %t = memref.alloc() : memref<64x16x16xf64>
//! imap.generic (d0, d1, d2)[s0] domain: d0 in [0, 63], .. ins(%S[d1, s0], .. : ..) outs(%t[d0, d1, d2] : ..) ..
//! imap.generic (d0, d1, d2)[s0] domain: d0 in [0, 63], .. ins(%S, %t : ..) outs(%v : ..) ..
//! ```
//!
//! After:
//!
//! ```mlir
//! %t = memref.alloc() : memref<16x16xf64>
//! scf.for %e = %c0 to %c64 step %c1 {
//!   imap.generic (d0, d1)[s0]{rt0} domain: d0 in [0, 15], .., rt0 in [0, 63]
//!       runtime(%e : index) ins(%S[d0, s0], .. : ..) outs(%t[d0, d1] : memref<16x16xf64>) ..
//!   imap.generic .. ins(%S, %t : ..) outs(%v : ..) ..
//! }
//! ```
//!
//! A group consists of consecutive operations of a block; operations between them that can move before
//! the group do not count. A group is legal if every buffer that a member writes is accessed by all
//! members at `d0` in its first dimension and at `d0` in no other. Then the iterations of one index
//! touch no element that another index touches. The transformation is profitable if
//!
//! * temporaries of at least `min-bytes` become smaller;
//! * each index has enough work: two dimensions, and [`MIN_ROWS`] points without the last one, so loops
//!   still fill the registers;
//! * the data that each index reads again has at most [`MAX_SHARED_BYTES`] bytes, so it stays in cache.
//!
//! Buffers are arguments of compiled functions, which are disjoint, and allocations. Remark: `fused`,
//! for each group, with the bytes of temporaries before and after.

use crate::loops::{build_alloc, build_for};
use melior::ir::{ValueLike, operation::OperationLike, r#type::MemRefType};
use std::collections::{HashMap, HashSet};
use tc_dialects::{
    imap::{Generic, Indexed, Runtime, View},
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, Report, remark},
};
use tc_ir::{Context, IndexingMap, expr::Var, map::Variable};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "fuse-outer-dimensions",
    summary: "Run operations with a common outer dimension one index at a time",
    anchor: "func.func",
    options: &[PassOption {
        name: "min-bytes",
        description: "The smallest size of temporaries for which fusion is profitable",
        default: "131072",
    }],
    dependent_dialects: &["arith", "imap", "memref", "scf"],
    run,
};

/// Points that are left for an index, without the last dimension.
pub const MIN_ROWS: i64 = 8;
/// Operations in one loop: LLVM takes more than linear time for a nest.
pub const MAX_OPERATIONS: usize = 32;
/// Bytes that are read again for each index.
pub const MAX_SHARED_BYTES: i64 = 1 << 15;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(min_bytes) = pass.options.number("min-bytes") else {
        Report::op_error(pass.op, "'min-bytes' expects a number").emit();
        return Err(Failure);
    };
    let ir = Context::new();
    for block in mlir::blocks(pass.op, 0) {
        let mut group = Group::default();
        for op in mlir::ops(block) {
            if group.takes(&ir, op) {
                continue;
            }
            std::mem::take(&mut group).fuse(&ir, min_bytes, pass.op);
            group.takes(&ir, op);
        }
        group.fuse(&ir, min_bytes, pass.op);
    }
    Ok(())
}

/// How an operation accesses a buffer.
struct Access<'c> {
    buffer: Val<'c>,
    is_write: bool,
    /// At `d0` in the first dimension, and nowhere else.
    is_outer: bool,
}

/// An `imap.generic` on buffers.
struct Member<'c> {
    generic: Generic<'c>,
    accesses: Vec<Access<'c>>,
    /// The values of `d0`, if it may be a part of a group.
    extent: Option<i64>,
}

impl<'c> Member<'c> {
    /// None for anything else, and for what accesses memory in other ways.
    fn of(ir: &Context, op: Op<'c>) -> Option<Self> {
        let generic = Generic::cast(op).filter(|_| op.result_count() == 0)?;
        let mut is_plain = generic.runtimes().is_empty();
        let blocks = [Some(generic.body()), generic.combiner(), generic.epilogue()];
        for block in blocks.into_iter().flatten() {
            for inner in mlir::ops(block) {
                let name = mlir::name(inner);
                is_plain &= inner.region_count() == 0
                    && (name == "imap.yield"
                        || name.starts_with("arith.")
                        || name.starts_with("math."));
            }
        }
        if !is_plain {
            return None;
        }
        let (inputs, inits) = (generic.inputs(), generic.inits());
        let num_inputs = inputs.len();
        let mut accesses = Vec::new();
        for (number, (buffer, map)) in
            inputs.into_iter().chain(inits).zip(generic.maps(ir)).enumerate()
        {
            if !is_root(buffer) {
                return None;
            }
            let outer = |expr| ir.vars_of_all(&[expr]).contains(&Var::Dim(0));
            let is_outer =
                map.results.first().is_some_and(|it| ir.as_var(*it) == Some(Var::Dim(0)))
                    && !map.results[1..].iter().any(|it| outer(*it));
            accesses.push(Access { buffer, is_write: num_inputs <= number, is_outer });
        }
        let extent = extent_of(ir, &generic.domain(ir));
        Some(Self { generic, accesses, extent })
    }
}

/// The values of the first dimension of a domain from 0 on, if enough is left without it.
fn extent_of(ir: &Context, domain: &IndexingMap) -> Option<i64> {
    let extent = |variable: &Variable| {
        let interval = variable.constant_interval(ir)?;
        (interval.lo == 0).then(|| interval.hi.checked_add(1)).flatten()
    };
    let extents: Vec<_> = domain.dims.iter().map(extent).collect::<Option<_>>()?;
    let rows = extents.get(1..extents.len().checked_sub(1)?)?;
    let num_rows = rows.iter().fold(1, |rows: i64, extent| rows.saturating_mul(*extent));
    (!rows.is_empty() && MIN_ROWS <= num_rows && 1 < extents[0]).then_some(extents[0])
}

/// Whether a buffer overlaps no other: an allocation, or an argument of a compiled function.
fn is_root(buffer: Val) -> bool {
    match mlir::defining_op(buffer) {
        Some(op) => mlir::is(op, "memref.alloc"),
        None => mlir::argument_parent(buffer).is_some_and(|it| it.attribute("tc.checks").is_ok()),
    }
}

fn num_bytes(buffer: Val) -> i64 {
    let ty = buffer.r#type();
    let width = i64::from(mlir::byte_width(mlir::element_type(ty)));
    mlir::shape(ty)
        .into_iter()
        .fold(width, |bytes, extent| extent.map_or(i64::MAX, |extent| bytes.saturating_mul(extent)))
}

/// Operations that may run together for each index of their outer dimension.
#[derive(Default)]
struct Group<'c> {
    members: Vec<Member<'c>>,
    written: HashSet<usize>,
    /// Buffers that all accesses so far are outer ones of, or none.
    outer: HashSet<usize>,
    not_outer: HashSet<usize>,
}

impl<'c> Group<'c> {
    /// Makes an operation a part of the group, or moves it before that; false if neither can be.
    fn takes(&mut self, ir: &Context, op: Op<'c>) -> bool {
        let first = self.members.first().map(|member| member.generic.op());
        if mlir::is(op, "memref.alloc") || mlir::is(op, "arith.constant") {
            // Without operands, it can stand anywhere before.
            if op.operand_count() == 0 {
                first.iter().for_each(|first| mlir::move_before(op, *first));
            }
            return op.operand_count() == 0;
        }
        let Some(member) = Member::of(ir, op) else { return false };
        if self.may_join(&member) {
            for access in &member.accesses {
                let key = mlir::value_key(access.buffer);
                if access.is_write {
                    self.written.insert(key);
                }
                if access.is_outer { &mut self.outer } else { &mut self.not_outer }.insert(key);
            }
            self.members.push(member);
            return true;
        }
        let Some(first) = first else { return false };
        let is_free = member.accesses.iter().all(|access| {
            let key = mlir::value_key(access.buffer);
            let is_touched = self.outer.contains(&key) || self.not_outer.contains(&key);
            !(self.written.contains(&key) || access.is_write && is_touched)
        });
        if is_free {
            mlir::move_before(op, first);
        }
        is_free
    }

    fn may_join(&self, member: &Member) -> bool {
        let extent = self.members.first().map_or(member.extent, |first| first.extent);
        let is_full = MAX_OPERATIONS <= self.members.len();
        if member.extent.is_none() || member.extent != extent || is_full {
            return false;
        }
        let key = |access: &Access| mlir::value_key(access.buffer);
        let own: HashSet<_> = member.accesses.iter().filter(|it| it.is_write).map(key).collect();
        member.accesses.iter().all(|access| {
            let key = key(access);
            let is_written = own.contains(&key) || self.written.contains(&key);
            !is_written || access.is_outer && !self.not_outer.contains(&key)
        })
    }

    /// The allocations that only the group uses, all of them at the index of the outer dimension.
    fn temporaries(&self) -> Vec<Val<'c>> {
        let members: HashSet<_> =
            self.members.iter().map(|member| mlir::op_key(member.generic.op())).collect();
        let mut seen = HashSet::new();
        let accesses = self.members.iter().flat_map(|member| &member.accesses);
        let buffers = accesses.map(|access| access.buffer).filter(|buffer| {
            let key = mlir::value_key(*buffer);
            mlir::defining_op(*buffer).is_some()
                && mlir::shape(buffer.r#type()).iter().all(Option::is_some)
                && self.written.contains(&key)
                && seen.insert(key)
                && mlir::uses(*buffer)
                    .iter()
                    .all(|(user, _)| members.contains(&mlir::op_key(*user)))
        });
        buffers.collect()
    }

    /// Replaces the group by a loop, if that is worth it.
    fn fuse(self, ir: &Context, min_bytes: i64, function: Op<'c>) {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return };
        let Some(extent) = first.extent.filter(|_| 1 < self.members.len()) else { return };
        let temporaries = self.temporaries();
        let before = temporaries.iter().fold(0, |sum: i64, it| sum.saturating_add(num_bytes(*it)));
        let mut shared = HashMap::new();
        for access in self.members.iter().flat_map(|member| &member.accesses) {
            if !access.is_outer {
                shared.insert(mlir::value_key(access.buffer), num_bytes(access.buffer));
            }
        }
        let shared = shared.values().fold(0, |sum: i64, it| sum.saturating_add(*it));
        if temporaries.is_empty() || before < min_bytes || MAX_SHARED_BYTES < shared {
            return;
        }
        let location = last.generic.op().location();
        let builder = Builder::before(first.generic.op()).located(location);
        let smaller: HashMap<usize, Val<'c>> =
            temporaries.iter().map(|it| (mlir::value_key(*it), smaller(*it))).collect();
        let after = smaller.values().fold(0, |sum: i64, it| sum.saturating_add(num_bytes(*it)));
        let bounds = (builder.index(0), builder.index(extent), builder.index(1));
        build_for(&builder, bounds, &[], &mut |inside, index, _| {
            for member in &self.members {
                let inside = inside.located(member.generic.op().location());
                at_index(ir, &inside, member.generic, index, &smaller);
            }
            Vec::new()
        });
        for member in &self.members {
            mlir::erase(member.generic.op());
        }
        for buffer in temporaries {
            mlir::defining_op(buffer).into_iter().for_each(mlir::erase);
        }
        remark(
            location,
            RemarkKind::Passed,
            PASS.argument,
            "fused",
            mlir::string_attr(function, "sym_name").unwrap_or_default(),
            &[
                ("Operations", &self.members.len().to_string()),
                ("BytesBefore", &before.to_string()),
                ("BytesAfter", &after.to_string()),
            ],
        );
    }
}

/// A buffer without the first dimension of another one.
fn smaller<'c>(buffer: Val<'c>) -> Val<'c> {
    let allocation = mlir::defining_op(buffer).expect("a temporary is allocated");
    let builder = Builder::before(allocation).located(allocation.location());
    let ty = buffer.r#type();
    let extents: Vec<_> = mlir::shape(ty).into_iter().skip(1).flatten().collect();
    build_alloc(&builder, MemRefType::contiguous(mlir::element_type(ty), &extents, None).into())
}

/// What an operation does for one index of its outer dimension.
fn at_index<'c>(
    ir: &Context,
    builder: &Builder<'c>,
    generic: Generic<'c>,
    index: Val<'c>,
    smaller: &HashMap<usize, Val<'c>>,
) {
    let mut view = View::of(ir, generic);
    let outer = view.domain.dims.remove(0);
    view.substitute(ir, &|var| match var {
        Var::Dim(0) => Some(ir.runtime(0)),
        Var::Dim(dim) => Some(ir.dim(dim - 1)),
        _ => None,
    });
    view.domain.runtimes.push(outer);
    view.runtimes.push(Runtime::Index(index));
    for access in view.accesses_mut() {
        if let Some(smaller) = smaller.get(&mlir::value_key(access.value)) {
            access.value = *smaller;
            access.subscripts.remove(0);
        }
    }
    let new = view.build(ir, builder, generic.epilogue().is_some());
    mlir::copy_block(builder.context, generic.body(), new.body(), builder.location);
    if let (Some(old), Some(new)) = (generic.epilogue(), new.epilogue()) {
        mlir::copy_block(builder.context, old, new, builder.location);
    }
}
