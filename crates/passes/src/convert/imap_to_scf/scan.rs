//! Loops of `imap.scan`.
//!
//! Three shapes:
//!
//! * *In rows*: where another dimension variable is contiguous in more operands than the scanned one,
//!   its loop goes innermost, and the accumulators of a strip of it are held in memory.
//! * *In blocks*: where the scanned variable is contiguous, the values of a strip are stored in
//!   memory, whole vectors of them are scanned in log2(lanes) steps, and what comes out is stored.
//!   Source of the steps: Hillis and Steele, "Data Parallel Algorithms" (1986). This changes
//!   the order of floating-point operations.
//! * *In registers*: otherwise, one point at a time.
//!
//! An excluded point folds the identity, or nothing if a region combines.

use super::nest::STRIP;
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            Choices,
            emit::{Nest, Scope},
            loops::row_loop,
            outer::{Loop, outer_loops},
            scan::Loops,
            schedule,
            vectors::broadcast,
        },
    },
    loops::{build_for, build_load, build_store, memref},
};
use melior::ir::{TypeLike, ValueLike};
use tc_dialects::{
    imap::{Indexed, Scan},
    mlir::{self, Builder, Val},
    report::Report,
};
use tc_ir::Var;

/// Replaces an `imap.scan` on buffers by loops.
pub(super) fn convert<'c>(scan: Scan<'c>, choices: Choices) -> Result<(), Report<'c>> {
    let op = scan.op();
    let nest = Nest::new(scan.into(), choices)?;
    let scanned = Var::Dim(scan.dim());
    let (others, row) = schedule::around(&nest, scanned).map_err(Report::error)?;
    let builder = Builder::before(op);
    let scope = nest.outer_scope(&builder);
    let lanes = block_lanes(&nest).filter(|_| row.is_none());
    let loops = Loops { nest: &nest, scanned, is_exclusive: scan.is_exclusive() };
    let mut outer: Vec<_> = others.iter().copied().map(Loop::over).collect();
    outer.extend(row.map(|row| Loop::strips(row, STRIP)));
    let scratch: Vec<_> = match row.is_some() || lanes.is_some() {
        true => nest.accumulators.iter().map(|it| memref(&[Some(STRIP)], it.ty)).collect(),
        false => Vec::new(),
    };
    outer_loops(
        &nest,
        &builder,
        &scope,
        &outer,
        &scratch,
        &mut |builder, scope| match (row, lanes) {
            (Some(row), _) => loops.in_rows(builder, scope, row),
            (None, Some(lanes)) => loops.in_blocks(builder, scope, lanes),
            (None, None) => loops.in_registers(builder, scope),
        },
    );
    mlir::erase(op);
    Ok(())
}

/// The lanes of a vector that holds accumulators; `None` if they are not scanned in vectors.
fn block_lanes(nest: &Nest) -> Option<i64> {
    let is_exact = |rounds: bool| !rounds || !nest.choices.strict_fp;
    let can = nest.generic.combiner().is_none()
        && nest.accumulators.iter().all(|it| is_exact(it.rounds()) && !it.ty.is_index())
        && nest.accumulators.iter().all(|it| mlir::integer_width(it.ty) != Some(1));
    let bits = nest.accumulators.iter().map(|it| 8 * i64::from(mlir::byte_width(it.ty))).max()?;
    let lanes = nest.choices.vector_bits / bits;
    (can && 2 <= lanes && STRIP % lanes == 0).then_some(lanes)
}

impl<'c> Loops<'_, 'c> {
    fn in_rows(&self, builder: &Builder<'c>, scope: &Scope<'c>, row: Var) {
        let nest = self.nest;
        let place = |builder: &Builder<'c>, scope: &Scope<'c>| {
            let (start, value) = (scope.strips[&row].0, scope.values[&row]);
            [builder.sub_index(value, start)]
        };
        row_loop(nest, builder, scope, row, &[], false, &mut |builder, scope| {
            let place = place(builder, scope);
            for (buffer, value) in scope.scratch.iter().zip(self.starts(builder)) {
                build_store(builder, value, *buffer, &place);
            }
        });
        row_loop(nest, builder, scope, self.scanned, &[], false, &mut |builder, scope| {
            row_loop(nest, builder, scope, row, &[], true, &mut |builder, scope| {
                let place = place(builder, scope);
                let buffers = scope.scratch.clone();
                let held: Vec<_> =
                    buffers.iter().map(|it| build_load(builder, *it, &place)).collect();
                let folded = self.fold(builder, scope, &held);
                for (buffer, value) in buffers.iter().zip(&folded) {
                    build_store(builder, *value, *buffer, &place);
                }
                self.nest.finish_and_store(builder, scope, self.chosen(&held, &folded));
            });
        });
    }

    fn in_blocks(&self, builder: &Builder<'c>, scope: &Scope<'c>, lanes: i64) {
        let nest = self.nest;
        let mut scope = scope.clone();
        let (lower, upper) = nest.loop_bounds(builder, &mut scope, self.scanned, &[]);
        let bounds = (lower, upper, builder.index(STRIP));
        let spread = |value: Val<'c>| broadcast(builder, value, lanes);
        let starts: Vec<_> = self.starts(builder).into_iter().map(spread).collect();
        let identities: Vec<_> =
            nest.accumulators.iter().map(|it| it.build_identity(builder)).collect();
        let neutral: Vec<_> = identities.iter().copied().map(spread).collect();
        build_for(builder, bounds, &starts, &mut |builder, start, held| {
            let mut scope = scope.clone();
            let end = builder.add_index(start, builder.index(STRIP));
            let end = builder.value("arith.minsi", &[end, upper], builder.index_type());
            scope.strips.insert(self.scanned, (start, end));
            row_loop(nest, builder, &scope, self.scanned, &[], true, &mut |builder, scope| {
                let place = [builder.sub_index(scope.values[&self.scanned], start)];
                let values = self.where_inside(builder, scope, &identities, &|builder, scope| {
                    nest.compute(builder, scope)
                });
                for (buffer, value) in scope.scratch.iter().zip(values) {
                    build_store(builder, value, *buffer, &place);
                }
            });
            let length = builder.sub_index(end, start);
            let blocks = (builder.index(0), length, builder.index(lanes));
            let held = build_for(builder, blocks, held, &mut |builder, place, held| {
                let scan = |number: usize| {
                    let buffer = scope.scratch[number];
                    let values = (neutral[number], held[number]);
                    self.scan_block(builder, (buffer, place), number, lanes, values)
                };
                (0..held.len()).map(scan).collect()
            });
            row_loop(nest, builder, &scope, self.scanned, &[], false, &mut |builder, scope| {
                let place = [builder.sub_index(scope.values[&self.scanned], start)];
                let buffers = scope.scratch.clone();
                let folded = buffers.iter().map(|it| build_load(builder, *it, &place));
                let folded = folded.collect();
                self.nest.finish_and_store(builder, scope, folded);
            });
            held
        });
    }

    /// Scans one vector of a buffer, after those before, whose fold all lanes of `held` have. Returns
    /// the fold that includes it, in all lanes.
    fn scan_block(
        &self,
        builder: &Builder<'c>,
        (buffer, place): (Val<'c>, Val<'c>),
        number: usize,
        lanes: i64,
        (neutral, held): (Val<'c>, Val<'c>),
    ) -> Val<'c> {
        let ty = held.r#type();
        let accumulator = &self.nest.accumulators[number];
        let combine = |before: Val<'c>, after: Val<'c>| {
            let value = accumulator.kind.build(builder, before, after);
            if let Some(op) = mlir::defining_op(value) {
                self.nest.relax(op, "#arith.fastmath<contract>");
            }
            value
        };
        // Lanes of the second operand are numbered after those of the first.
        let shuffle = |first: Val<'c>, second: Val<'c>, from: &dyn Fn(i64) -> i64| {
            let mask: Vec<_> = (0..lanes).map(from).collect();
            let mask = mlir::i64_array(builder.context, &mask);
            builder.value_with("vector.shuffle", &[first, second], ty, &[("mask", mask)])
        };
        let mut value = builder.value("vector.load", &[buffer, place], ty);
        let mut distance = 1;
        while distance < lanes {
            value = combine(shuffle(neutral, value, &|lane| lanes + lane - distance), value);
            distance *= 2;
        }
        value = combine(held, value);
        let stored = match self.is_exclusive {
            true => shuffle(held, value, &|lane| if lane == 0 { 0 } else { lanes + lane - 1 }),
            false => value,
        };
        builder.op("vector.store", &[stored, buffer, place], &[]);
        shuffle(value, value, &|_| lanes - 1)
    }
}
