//! Values that the threads of a warp or a block exchange, by shuffles and in shared memory.

use super::{Grid, Share, WARP, divide, remainder};
use crate::{
    convert::loop_nest::emit::{Nest, Scope},
    loops,
};
use melior::ir::{TypeLike, ValueLike};
use tc_dialects::mlir::{self, Builder, Val};

/// Threads of a warp or of a block, which fold values together.
pub(super) struct Group<'a, 'c> {
    nest: &'a Nest<'c>,
    grid: &'a Grid<'c>,
    size: i64,
    /// Per accumulator, shared memory for a value of each warp of a block.
    shared: Vec<Val<'c>>,
}

/// The values of the threads before a thread, folded, and those of all threads.
pub(super) struct Scanned<'c> {
    pub before: Vec<Val<'c>>,
    pub all: Vec<Val<'c>>,
}

/// The thread of the warp whose value is wanted.
#[derive(Clone, Copy)]
enum From<'c> {
    /// The one whose number differs in this bit.
    Across(i64),
    /// The one so many before; the first ones keep their own value.
    Before(i64),
    /// The one of this number.
    Number(Val<'c>),
}

impl<'a, 'c> Group<'a, 'c> {
    /// A group of `size` threads, which is a part of a warp, a warp or a block, for the accumulators of a nest.
    pub fn new(nest: &'a Nest<'c>, builder: &Builder<'c>, grid: &'a Grid<'c>, size: i64) -> Self {
        let warps = grid.block_size / WARP;
        let shared = |(number, ty)| grid.exchanged(builder, ty, warps, number);
        let types = nest.accumulators.iter().map(|it| it.ty).enumerate();
        let shared = match WARP < size {
            true => types.map(shared).collect(),
            false => Vec::new(),
        };
        Self { nest, grid, size, shared }
    }

    /// The share of this group in the points of the grid.
    pub fn points(&self, builder: &Builder<'c>) -> Share<'c> {
        self.grid.groups(builder, self.size)
    }

    /// The share of the thread in the work of the group.
    pub fn lanes(&self, builder: &Builder<'c>) -> Share<'c> {
        self.grid.lanes(builder, self.size)
    }

    fn num_warps(&self) -> i64 {
        self.size / WARP
    }

    fn lane(&self, builder: &Builder<'c>) -> Val<'c> {
        remainder(builder, self.grid.thread, WARP)
    }

    pub fn identities(&self, builder: &Builder<'c>) -> Vec<Val<'c>> {
        self.nest.accumulators.iter().map(|it| it.build_identity(builder)).collect()
    }

    /// Combines a value of each thread. Those of the first warp, or of the part of a warp, get the result.
    pub fn fold(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        values: Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let values = self.across_warp(builder, scope, values, self.size.min(WARP));
        if self.shared.is_empty() {
            return values;
        }
        let is_first = builder.compare_int("eq", self.lane(builder), builder.index(0));
        let values = self.of_warps(builder, is_first, &values);
        let count = (self.num_warps() as u64).next_power_of_two() as i64;
        self.across_warp(builder, scope, values, count)
    }

    /// Combines a value of each thread, in order.
    pub fn scan(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        values: Vec<Val<'c>>,
    ) -> Scanned<'c> {
        let in_warp = self.along_warp(builder, scope, values, WARP);
        if self.shared.is_empty() {
            return in_warp;
        }
        let last = builder.compare_int("eq", self.lane(builder), builder.index(WARP - 1));
        let values = self.of_warps(builder, last, &in_warp.all);
        let warps = self.along_warp(builder, scope, values, self.num_warps());
        let warp = divide(builder, self.grid.thread, WARP);
        let before: Vec<_> = warps
            .before
            .iter()
            .map(|value| exchange(builder, *value, From::Number(warp)))
            .collect();
        let before = self.nest.combine(builder, &mut scope.clone(), &before, &in_warp.before);
        Scanned { before, all: warps.all }
    }

    /// Combines the values of so many neighbouring threads of a warp. All of them get the result.
    fn across_warp(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        mut values: Vec<Val<'c>>,
        count: i64,
    ) -> Vec<Val<'c>> {
        let mut offset = count / 2;
        while 0 < offset {
            let other = |value: &Val<'c>| exchange(builder, *value, From::Across(offset));
            let others: Vec<_> = values.iter().map(other).collect();
            values = self.nest.combine(builder, &mut scope.clone(), &values, &others);
            offset /= 2;
        }
        values
    }

    /// Combines the values of the first threads of a warp, so many, in order. All threads of the warp get
    /// the fold of all. Source of the steps: Hillis and Steele, "Data Parallel Algorithms" (1986).
    fn along_warp(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        mut values: Vec<Val<'c>>,
        count: i64,
    ) -> Scanned<'c> {
        let lane = self.lane(builder);
        let before = |builder: &Builder<'c>, values: &[Val<'c>], offset: i64| -> Vec<_> {
            values.iter().map(|it| exchange(builder, *it, From::Before(offset))).collect()
        };
        let choose = |condition: Val<'c>, yes: &[Val<'c>], no: &[Val<'c>]| -> Vec<_> {
            yes.iter().zip(no).map(|(yes, no)| builder.select(condition, *yes, *no)).collect()
        };
        let mut offset = 1;
        while offset < count {
            let others = before(builder, &values, offset);
            let folded = self.nest.combine(builder, &mut scope.clone(), &others, &values);
            let has_other = builder.compare_int("uge", lane, builder.index(offset));
            values = choose(has_other, &folded, &values);
            offset *= 2;
        }
        let last = From::Number(builder.index(count - 1));
        let all = values.iter().map(|it| exchange(builder, *it, last)).collect();
        let has_before = builder.compare_int("ne", lane, builder.index(0));
        let before = before(builder, &values, 1);
        Scanned { before: choose(has_before, &before, &self.identities(builder)), all }
    }

    /// Passes the values of one thread per warp through shared memory. In each warp, the thread of number
    /// n gets those of warp n, or identities.
    fn of_warps(&self, builder: &Builder<'c>, stores: Val<'c>, values: &[Val<'c>]) -> Vec<Val<'c>> {
        let warp = divide(builder, self.grid.thread, WARP);
        let lane = self.lane(builder);
        // The values of the point before have been read.
        builder.op("gpu.barrier", &[], &[]);
        loops::build_if(
            builder,
            stores,
            &mut |builder| {
                for (buffer, value) in self.shared.iter().zip(values) {
                    builder.op("memref.store", &[*value, *buffer, warp], &[]);
                }
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        builder.op("gpu.barrier", &[], &[]);
        let is_there = builder.compare_int("ult", lane, builder.index(self.num_warps()));
        loops::build_if(
            builder,
            is_there,
            &mut |builder| {
                let load = |buffer: &Val<'c>| {
                    let ty = mlir::element_type(buffer.r#type());
                    builder.value("memref.load", &[*buffer, lane], ty)
                };
                self.shared.iter().map(load).collect()
            },
            &mut |builder| self.identities(builder),
        )
    }
}

/// The value that another thread of the warp has.
fn exchange<'c>(builder: &Builder<'c>, value: Val<'c>, from: From<'c>) -> Val<'c> {
    let i32_type = builder.int_type(32);
    let (mode, number) = match from {
        From::Across(bit) => ("xor", builder.integer(i32_type, bit)),
        From::Before(distance) => ("up", builder.integer(i32_type, distance)),
        From::Number(number) => ("idx", builder.value("arith.index_cast", &[number], i32_type)),
    };
    let mode = mlir::parse_attribute(builder.context, &format!("#gpu<shuffle_mode {mode}>"));
    let shuffle = |word: Val<'c>| {
        let operands = [word, number, builder.integer(i32_type, WARP)];
        let types = [i32_type, builder.int_type(1)];
        mlir::result(
            builder.op_with("gpu.shuffle", &operands, &types, &[("mode", mode)], vec![]),
            0,
        )
    };
    let ty = value.r#type();
    if ty.is_index() {
        let wide = builder.value("arith.index_cast", &[value], builder.int_type(64));
        let found = exchange(builder, wide, from);
        return builder.value("arith.index_cast", &[found], ty);
    }
    let bits = mlir::integer_width(ty).unwrap_or_else(|| 8 * mlir::byte_width(ty));
    let integer = builder.int_type(bits);
    let as_bits = match ty == integer {
        true => value,
        false => builder.value("arith.bitcast", &[value], integer),
    };
    let found = match bits {
        32 => shuffle(as_bits),
        64 => {
            let low = builder.value("arith.trunci", &[as_bits], i32_type);
            let shift = builder.integer(integer, 32);
            let high = builder.value("arith.shrui", &[as_bits, shift], integer);
            let high = builder.value("arith.trunci", &[high], i32_type);
            let low = builder.value("arith.extui", &[shuffle(low)], integer);
            let high = builder.value("arith.extui", &[shuffle(high)], integer);
            let high = builder.value("arith.shli", &[high, shift], integer);
            builder.value("arith.ori", &[high, low], integer)
        }
        _ => {
            let wide = builder.value("arith.extui", &[as_bits], i32_type);
            builder.value("arith.trunci", &[shuffle(wide)], integer)
        }
    };
    if ty == integer { found } else { builder.value("arith.bitcast", &[found], ty) }
}
