//! The places of buffers in a workspace, from their lifetimes.

use melior::ir::{ValueLike, operation::OperationLike};
use std::collections::{HashMap, HashSet};
use tc_dialects::mlir::{self, Op};

/// The part of a workspace that a buffer needs.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The first and the last of the places in the program at which it lives.
    pub life: (usize, usize),
    /// The bytes, if the sizes are static.
    pub bytes: Option<i64>,
}

impl Piece {
    pub fn overlaps(&self, other: &Self) -> bool {
        self.life.0 <= other.life.1 && other.life.0 <= self.life.1
    }
}

/// A number of bytes, rounded up to a multiple of another one.
fn aligned(bytes: i64, alignment: i64) -> i64 {
    bytes.saturating_add(alignment - 1) / alignment * alignment
}

/// The places of the buffers of static sizes, multiples of `alignment`, and the bytes that they take together.
pub fn fixed_places(pieces: &[Piece], alignment: i64) -> (Vec<Option<i64>>, i64) {
    let mut order: Vec<_> = (0..pieces.len()).filter(|it| pieces[*it].bytes.is_some()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(pieces[*number].bytes));
    let mut places: Vec<Option<i64>> = vec![None; pieces.len()];
    let mut end: i64 = 0;
    for number in order {
        let bytes = aligned(pieces[number].bytes.unwrap_or(0), alignment);
        let mut taken: Vec<_> = (0..pieces.len())
            .filter(|other| pieces[number].overlaps(&pieces[*other]))
            .filter_map(|other| Some((places[other]?, aligned(pieces[other].bytes?, alignment))))
            .collect();
        taken.sort_unstable();
        let mut place: i64 = 0;
        for (start, length) in taken {
            if place.saturating_add(bytes) <= start {
                break;
            }
            place = place.max(start.saturating_add(length));
        }
        places[number] = Some(place);
        end = end.max(place.saturating_add(bytes));
    }
    (places, end)
}

/// The places of operations in a program: the number of the first and of the last operation in each.
pub struct Order(HashMap<usize, (usize, usize)>);

impl Order {
    pub fn of(function: Op) -> Self {
        let mut ops = Vec::new();
        mlir::walk(function, &mut |op| ops.push(op));
        let mut places: HashMap<_, _> =
            ops.iter().enumerate().map(|(place, op)| (mlir::op_key(*op), (place, place))).collect();
        // The walk visits an operation before the operations inside of it.
        for op in ops.iter().rev() {
            let last = places[&mlir::op_key(*op)].1;
            if let Some(around) = mlir::parent(*op).and_then(|it| places.get_mut(&mlir::op_key(it)))
            {
                around.1 = around.1.max(last);
            }
        }
        Self(places)
    }

    /// The number of an operation.
    pub fn place(&self, op: Op) -> usize {
        self.0[&mlir::op_key(op)].0
    }

    /// The lifetime of an allocation.
    pub fn life<'c>(&self, allocation: Op<'c>) -> (usize, usize) {
        let (mut first, mut last) = self.0[&mlir::op_key(allocation)];
        let mut block = allocation.block().map(mlir::block_ref).expect("an operation in a block");
        let mut seen = HashSet::new();
        let mut values = vec![mlir::result(allocation, 0)];
        let mut users = Vec::new();
        while let Some(value) = values.pop() {
            if !seen.insert(mlir::value_key(value)) {
                continue;
            }
            for (user, _) in mlir::uses(value) {
                users.push(user);
                values.extend(
                    mlir::results(user).into_iter().filter(|it| mlir::is_memref(it.r#type())),
                );
                // What an operation with regions takes may be any buffer in them.
                for region in 0..user.region_count() {
                    let arguments =
                        mlir::blocks(user, region).into_iter().flat_map(mlir::arguments);
                    values.extend(arguments.filter(|it| mlir::is_memref(it.r#type())));
                }
                let is_end = mlir::successors(user).is_empty()
                    && user.block().is_some_and(|it| mlir::terminator(mlir::block_ref(it)) == user);
                if let Some(around) =
                    mlir::parent(user).filter(|it| is_end && !mlir::is(*it, "func.func"))
                {
                    users.push(around);
                    values.extend(
                        mlir::results(around).into_iter().filter(|it| mlir::is_memref(it.r#type())),
                    );
                    for region in 0..around.region_count() {
                        let arguments =
                            mlir::blocks(around, region).into_iter().flat_map(mlir::arguments);
                        values.extend(arguments.filter(|it| mlir::is_memref(it.r#type())));
                    }
                }
            }
        }
        for user in users {
            // An operation outside of the block lets the buffer live as long as all of what is around.
            let mut inner = mlir::ancestor_in(user, block);
            while inner.is_none() {
                let Some(around) = mlir::parent(mlir::terminator(block)) else { break };
                first = first.min(self.0[&mlir::op_key(around)].0);
                last = last.max(self.0[&mlir::op_key(around)].1);
                let Some(next) = around.block() else { break };
                block = mlir::block_ref(next);
                inner = mlir::ancestor_in(user, block);
            }
            if let Some(inner) = inner {
                last = last.max(self.0[&mlir::op_key(inner)].1);
            }
        }
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIGNMENT: i64 = 64;

    #[test]
    fn places_of_buffers_that_live_together_are_disjoint() {
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let count = 1 + below(12);
            let pieces: Vec<_> = (0..count)
                .map(|_| {
                    let first = below(20) as usize;
                    let life = (first, first + below(8) as usize);
                    let bytes = (below(5) != 0).then(|| below(2000) as i64);
                    Piece { life, bytes }
                })
                .collect();
            let (places, end) = fixed_places(&pieces, ALIGNMENT);
            for (number, (piece, place)) in pieces.iter().zip(&places).enumerate() {
                assert_eq!(piece.bytes.is_some(), place.is_some());
                let (Some(bytes), Some(place)) = (piece.bytes, place) else { continue };
                assert!(place % ALIGNMENT == 0 && place + bytes <= end, "{pieces:?} {places:?}");
                for (other, other_place) in pieces.iter().zip(&places).skip(number + 1) {
                    let (Some(other_bytes), Some(other_place)) = (other.bytes, other_place) else {
                        continue;
                    };
                    let is_apart =
                        place + bytes <= *other_place || other_place + other_bytes <= *place;
                    assert!(is_apart || !piece.overlaps(other), "{pieces:?} {places:?}");
                }
            }
            // The most that lives at one time is needed, and all of it apart is enough.
            let sum = |lives: &dyn Fn(&Piece) -> bool| {
                let live = pieces.iter().filter(|piece| lives(piece));
                live.filter_map(|piece| piece.bytes.map(|it| aligned(it, ALIGNMENT))).sum::<i64>()
            };
            let least = (0..30).map(|time| sum(&|it| it.life.0 <= time && time <= it.life.1)).max();
            assert!((least.unwrap_or(0)..=sum(&|_| true)).contains(&end), "{pieces:?} {end}");
        }
    }
}
