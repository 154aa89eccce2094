//! Scans. A warp or a block takes a row in tiles, a point per thread, and carries the fold of the tiles before.
//! Where another variable is contiguous, and its rows fill a warp, a thread takes a row, so that neighbouring
//! threads have neighbouring rows.

use super::{Grid, Space, WARP, group::Group};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            Choices,
            emit::{Nest, Scope},
            order,
            scan::Loops,
            schedule::circular,
        },
    },
    loops,
};
use tc_dialects::{
    imap::Scan,
    mlir::{Builder, Val},
    report::Report,
};
use tc_ir::Var;

/// Emits the code of an `imap.scan` on buffers.
pub(super) fn convert<'c>(
    scan: Scan<'c>,
    builder: &Builder<'c>,
    grid: &Grid<'c>,
    choices: Choices,
) -> Result<(), Report<'c>> {
    let nest = Nest::new(scan.into(), choices)?;
    let scanned = Var::Dim(scan.dim());
    let (mut dims, row) = order::around(&nest, scanned).ok_or_else(|| Report::error(circular()))?;
    dims.extend(row);
    let mut scope = nest.outer_scope(builder);
    let space = Space::new(&nest, builder, &mut scope, &dims);
    let loops = Loops { nest: &nest, scanned, is_exclusive: scan.is_exclusive() };
    match group_size(&nest, scanned, row, grid.block_size) {
        1 => space.each(builder, &scope, grid.groups(builder, 1), &mut |builder, scope| {
            loops.in_registers(builder, scope);
        }),
        size => {
            let group = Group::new(&nest, builder, grid, size);
            let rows = group.points(builder);
            space.each(builder, &scope, rows, &mut |builder, scope| {
                in_tiles(&loops, builder, scope, &group, size);
            });
        }
    }
    Ok(())
}

/// The number of threads that scan one row.
fn group_size(nest: &Nest, scanned: Var, row: Option<Var>, block_size: i64) -> i64 {
    let fills_warp = |row: Var| nest.extent(row).is_none_or(|extent| WARP <= extent);
    match nest.extent(scanned) {
        // The threads of a group fold in another order.
        _ if nest.keeps_order() => 1,
        _ if row.is_some_and(fills_warp) => 1,
        Some(extent) if extent < WARP => 1,
        Some(extent) if extent < block_size * 4 => WARP,
        _ => block_size,
    }
}

/// Scans one row by a group of threads.
fn in_tiles<'c>(
    loops: &Loops<'_, 'c>,
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    group: &Group<'_, 'c>,
    size: i64,
) {
    let nest = loops.nest;
    let mut scope = scope.clone();
    let (lower, upper) = nest.loop_bounds(builder, &mut scope, loops.scanned, &[]);
    let identities = group.identities(builder);
    let lane = group.lanes(builder).first;
    let tiles = (lower, upper, builder.index(size));
    loops::build_for(builder, tiles, &loops.starts(builder), &mut |builder, first, carried| {
        let mut scope = scope.clone();
        let place = builder.add_index(first, lane);
        scope.values.insert(loops.scanned, place);
        let combine = |before: &[Val<'c>], after: &[Val<'c>]| {
            nest.combine(builder, &mut scope.clone(), before, after)
        };
        let is_inside = builder.compare_int("slt", place, upper);
        let values = loops::build_if(
            builder,
            is_inside,
            &mut |builder| {
                loops.where_inside(builder, &scope, &identities, &|builder, scope| {
                    nest.compute(builder, scope)
                })
            },
            &mut |_| identities.clone(),
        );
        let scanned = group.scan(builder, &scope, values.clone());
        let before = combine(carried, &scanned.before);
        let after = combine(&before, &values);
        loops::build_if(
            builder,
            is_inside,
            &mut |builder| {
                nest.finish_and_store(builder, &mut scope.clone(), loops.chosen(&before, &after));
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        combine(carried, &scanned.all)
    });
}
