//! The smallest reshapes that a reshape consists of.

use std::ops::Range;

/// What a reshape does, apart from dimensions of extent 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReshapeKind {
    /// Nothing.
    Identity,
    /// It only adds dimensions of extent 1.
    IncreaseRank,
    /// It only drops dimensions of extent 1.
    DecreaseRank,
    /// It divides one dimension into several.
    Expand,
    /// It makes one dimension of several.
    Collapse,
    /// Something else.
    Generic,
}

/// Dimensions that a reshape turns into each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MinimalReshape {
    /// The dimensions before.
    pub from: Range<usize>,
    /// The dimensions after.
    pub to: Range<usize>,
    /// What becomes of them.
    pub kind: ReshapeKind,
}

/// Splits a reshape into ones that cannot be split, in the order of dimensions. `None` if the arrays have
/// other numbers of elements, or one that is no 64-bit number. A dimension of extent 1 belongs to the next
/// other one, those at the end to the last one.
///
/// Source: XLA's `reshape_analysis.h` (`xla/codegen/tiling/experimental`).
///
/// ```
/// use tc_ir::tile::{ReshapeKind, minimal_reshapes};
/// let found = minimal_reshapes(&[3, 5, 1, 7], &[15, 7]).unwrap();
/// assert_eq!([found[0].from.clone(), found[0].to.clone()], [0..2, 0..1]);
/// assert_eq!(found[0].kind, ReshapeKind::Collapse);
/// assert_eq!([found[1].from.clone(), found[1].to.clone()], [2..4, 1..2]);
/// assert_eq!(found[1].kind, ReshapeKind::DecreaseRank);
/// ```
pub fn minimal_reshapes(from: &[i64], to: &[i64]) -> Option<Vec<MinimalReshape>> {
    let count = |dims: &[i64]| {
        dims.iter().try_fold(1_i64, |count, &dim| count.checked_mul(dim).filter(|_| 0 <= dim))
    };
    if count(from)? != count(to)? {
        return None;
    }
    if from != to && from.contains(&0) {
        let all =
            MinimalReshape { from: 0..from.len(), to: 0..to.len(), kind: ReshapeKind::Generic };
        return Some(vec![all]);
    }
    let sides = [from, to];
    let (mut starts, mut ends, mut products) = ([0, 0], [0, 0], [1_i64, 1]);
    let mut groups: Vec<[Range<usize>; 2]> = Vec::new();
    while (0..2).any(|side| ends[side] < sides[side].len()) {
        // The side that is behind goes on; at the start, each takes a dimension if it can.
        let can = |side: usize| ends[side] < sides[side].len();
        let is_start = ends == starts;
        let behind = match (can(0), can(1)) {
            (true, true) if is_start => 2,
            (true, true) => usize::from(products[1] < products[0]),
            (first, _) => usize::from(!first),
        };
        for side in 0..2 {
            if behind == side || behind == 2 {
                products[side] = products[side].checked_mul(sides[side][ends[side]])?;
                ends[side] += 1;
            }
        }
        let is_tail = (0..2).any(|side| starts[side] == ends[side]);
        if products[0] == products[1] && !is_tail {
            groups.push([starts[0]..ends[0], starts[1]..ends[1]]);
            (starts, products) = (ends, [1, 1]);
        }
    }
    if starts != ends {
        match groups.last_mut() {
            Some(last) => (0..2).for_each(|side| last[side].end = ends[side]),
            None => groups.push([starts[0]..ends[0], starts[1]..ends[1]]),
        }
    }
    let kind = |[before, after]: &[Range<usize>; 2]| {
        let large = |dims: &[i64]| dims.iter().filter(|&&extent| extent != 1).count();
        match (large(&from[before.clone()]), large(&to[after.clone()])) {
            (0 | 1, 0 | 1) => match before.len().cmp(&after.len()) {
                std::cmp::Ordering::Less => ReshapeKind::IncreaseRank,
                std::cmp::Ordering::Equal => ReshapeKind::Identity,
                std::cmp::Ordering::Greater => ReshapeKind::DecreaseRank,
            },
            (1, _) => ReshapeKind::Expand,
            (_, 1) => ReshapeKind::Collapse,
            _ => ReshapeKind::Generic,
        }
    };
    let reshape = |group: [Range<usize>; 2]| {
        let kind = kind(&group);
        let [from, to] = group;
        MinimalReshape { from, to, kind }
    };
    Some(groups.into_iter().map(reshape).collect())
}
