//! Transpositions: results are contiguous along one dimension variable, and some inputs along another one. Without shared
//! memory, either the loads or the stores of a warp would not be coalesced.
//!
//! A block computes a square of points. Its threads copy the elements of these inputs to shared memory along the
//! inputs, and compute the points along the results.
//!
//! ```text
//! for the squares of the block
//!   barrier
//!   for the points (across, along) of the square, across varies fastest
//!     shared[along, across] = input at (across, along)
//!   barrier
//!   for the points (across, along) of the square, along varies fastest
//!     destination at (across, along) = body(shared[along, across])
//! ```
//!
//! Source: Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009).

use super::{Grid, Space, divide, divide_up, remainder};
use crate::{
    convert::{
        index_emitter::IndexMath,
        loop_nest::{
            emit::{Nest, Scope},
            order,
        },
    },
    loops,
};
use melior::ir::ValueLike;
use tc_dialects::mlir::{self, Builder, Val};
use tc_ir::Var;

/// Points along each side of a square.
const SIDE: i64 = 32;
/// The distance of rows in shared memory: elements of a column are in different banks.
const STRIDE: i64 = SIDE + 1;
/// The most bytes of shared memory.
const MOST_BYTES: i64 = 32 << 10;

/// Inputs that are read through shared memory.
pub(super) struct Transpose {
    /// The numbers of the inputs.
    inputs: Vec<usize>,
    /// The variable along which neighbouring elements of these inputs lie.
    across: Var,
    /// The variable along which neighbouring elements of the results lie.
    along: Var,
    others: Vec<Var>,
}

impl Transpose {
    /// The transposed inputs of an operation in map form with these dimension variables; `None` if there are none.
    pub fn of(nest: &Nest, dims: &[Var]) -> Option<Self> {
        let along = *dims.last()?;
        let is_long =
            |var: Var| nest.extent(var).is_none_or(|extent| SIDE <= extent.saturating_mul(2));
        let are_fixed = dims.iter().all(|var| nest.bound_needs(*var).is_empty());
        let mut outputs = nest.outputs.iter();
        let are_along = outputs.all(|it| order::step_along(nest, &it.map, along) == Some(1));
        if !nest.is_map_form()
            || !nest.domain.constraints.is_empty()
            || !are_fixed
            || !are_along
            || !is_long(along)
        {
            return None;
        }
        let across_of = |number: usize| {
            let map = &nest.inputs[number].map;
            let is_far = order::step_along(nest, map, along).is_none();
            let is_near = |var: &&Var| order::step_along(nest, map, **var) == Some(1);
            let near = dims.iter().find(is_near).copied()?;
            (nest.inputs[number].is_used && is_far && is_long(near)).then_some((number, near))
        };
        let mut found = (0..nest.inputs.len()).filter_map(across_of).peekable();
        let across = found.peek()?.1;
        let inputs: Vec<_> = found.filter(|it| it.1 == across).map(|it| it.0).collect();
        let bytes = inputs.iter().map(|number| {
            let element = mlir::element_type(nest.inputs[*number].buffer.r#type());
            SIDE * STRIDE * i64::from(mlir::byte_width(element))
        });
        let others = dims.iter().copied().filter(|var| *var != along && *var != across).collect();
        (bytes.sum::<i64>() <= MOST_BYTES).then_some(Self { inputs, across, along, others })
    }

    /// Emits the code.
    pub fn build<'c>(
        &self,
        nest: &Nest<'c>,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        grid: &Grid<'c>,
    ) {
        let mut scope = scope.clone();
        let others = Space::new(nest, builder, &mut scope, &self.others);
        let sides =
            [self.across, self.along].map(|it| Space::new(nest, builder, &mut scope, &[it]));
        let index = builder.index_type();
        let counts = [0, 1].map(|side: usize| divide_up(builder, sides[side].total, SIDE));
        let squares = counts.iter().fold(others.total, |total, count| {
            builder.value("arith.muli", &[total, *count], index)
        });
        let buffers = self.inputs.iter().map(|number| nest.inputs[*number].buffer);
        let shared: Vec<_> =
            buffers.map(|buffer| grid.shared_like(builder, buffer, SIDE * STRIDE)).collect();
        let bounds = (grid.block, squares, grid.num_blocks);
        loops::build_for(builder, bounds, &[], &mut |builder, square, _| {
            let mut scope = scope.clone();
            let mut left = square;
            let firsts = [0, 1].map(|side: usize| {
                let number = builder.value("arith.remui", &[left, counts[side]], index);
                left = builder.value("arith.divui", &[left, counts[side]], index);
                builder.scale_index(number, SIDE)
            });
            others.enter(builder, &mut scope, left, 1);
            // The elements of the square before have been read.
            builder.op("gpu.barrier", &[], &[]);
            let place = |builder: &Builder<'c>, own: [Val<'c>; 2]| {
                builder.add_index(builder.scale_index(own[1], STRIDE), own[0])
            };
            each(builder, &scope, grid, (&sides, firsts), 0, &mut |builder, scope, own| {
                for (number, buffer) in self.inputs.iter().zip(&shared) {
                    let input = &nest.inputs[*number];
                    let (map, fill) = (&input.map, input.fill);
                    let mut scope = scope.clone();
                    let element = nest.load_at(builder, &mut scope, input.buffer, map, fill);
                    builder.op("memref.store", &[element, *buffer, place(builder, own)], &[]);
                }
            });
            builder.op("gpu.barrier", &[], &[]);
            each(builder, &scope, grid, (&sides, firsts), 1, &mut |builder, scope, own| {
                let mut scope = scope.clone();
                for (number, buffer) in self.inputs.iter().zip(&shared) {
                    let ty = mlir::element_type(buffer.r#type());
                    let element = builder.value("memref.load", &[*buffer, place(builder, own)], ty);
                    scope.loaded.insert(*number, element);
                }
                let values = nest.compute(builder, &mut scope);
                for (number, value) in values.into_iter().enumerate() {
                    nest.store_output(builder, &mut scope, number, value);
                }
            });
            Vec::new()
        });
    }
}

/// The points of a square that a thread has, if neighbouring threads have neighbours along the variable of a number. `body`
/// gets the place of the point in the square.
fn each<'c>(
    builder: &Builder<'c>,
    scope: &Scope<'c>,
    grid: &Grid<'c>,
    (sides, firsts): (&[Space<'c>; 2], [Val<'c>; 2]),
    fastest: usize,
    body: &mut dyn FnMut(&Builder<'c>, &Scope<'c>, [Val<'c>; 2]),
) {
    let fast = remainder(builder, grid.thread, SIDE);
    let row = divide(builder, grid.thread, SIDE);
    let bounds = (row, builder.index(SIDE), builder.index(grid.block_size / SIDE));
    loops::build_for(builder, bounds, &[], &mut |builder, slow, _| {
        let own = if fastest == 0 { [fast, slow] } else { [slow, fast] };
        let points = [0, 1].map(|side: usize| builder.add_index(firsts[side], own[side]));
        let inside =
            [0, 1].map(|side: usize| builder.compare_int("slt", points[side], sides[side].total));
        loops::build_if(
            builder,
            builder.and(inside[0], inside[1]),
            &mut |builder| {
                let mut scope = scope.clone();
                for (space, point) in sides.iter().zip(points) {
                    space.enter(builder, &mut scope, point, 1);
                }
                body(builder, &scope, own);
                Vec::new()
            },
            &mut |_| Vec::new(),
        );
        Vec::new()
    });
}
