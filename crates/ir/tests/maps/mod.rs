//! Random expressions and maps: with constraints, minima and maxima, nested divisions, negative
//! bounds, empty and one-point domains, symbolic bounds, and numbers at the ends of 64 bits.

use proptest::prelude::*;
use tc_ir::{Constraint, Context, Expr, IndexingMap, Interval, Var, Variable};

/// An expression outside of any context, so that it can be generated and printed.
#[derive(Clone, Debug)]
pub enum Tree {
    Const(i64),
    Var(Var),
    Op(Op, Box<Tree>, Box<Tree>),
}

#[derive(Copy, Clone, Debug)]
pub enum Op {
    Add,
    Sub,
    Mul,
    FloorDiv,
    CeilDiv,
    Mod,
    Min,
    Max,
}

impl Tree {
    pub fn build(&self, ctx: &Context) -> Expr {
        match self {
            Tree::Const(value) => ctx.constant(*value),
            Tree::Var(var) => ctx.var(*var),
            Tree::Op(op, lhs, rhs) => {
                let (lhs, rhs) = (lhs.build(ctx), rhs.build(ctx));
                match op {
                    Op::Add => ctx.add(lhs, rhs),
                    Op::Sub => ctx.sub(lhs, rhs),
                    Op::Mul => ctx.mul(lhs, rhs),
                    Op::FloorDiv => ctx.floor_div(lhs, rhs),
                    Op::CeilDiv => ctx.ceil_div(lhs, rhs),
                    Op::Mod => ctx.modulo(lhs, rhs),
                    Op::Min => ctx.min(lhs, rhs),
                    Op::Max => ctx.max(lhs, rhs),
                }
            }
        }
    }

    /// The values at some points, where `values_of` has those of the variables; `None` where there
    /// is none.
    pub fn values(
        &self,
        num_points: usize,
        values_of: &dyn Fn(Var) -> Vec<i64>,
    ) -> Vec<Option<i64>> {
        match self {
            Tree::Const(value) => vec![Some(*value); num_points],
            Tree::Var(var) => values_of(*var).into_iter().map(Some).collect(),
            Tree::Op(op, lhs, rhs) => {
                let lhs = lhs.values(num_points, values_of);
                let rhs = rhs.values(num_points, values_of);
                let pairs = lhs.into_iter().zip(rhs);
                pairs.map(|(lhs, rhs)| op.value(lhs?, rhs?)).collect()
            }
        }
    }
}

impl Op {
    /// The value by the definition of the operation; `None` where there is none.
    fn value(self, lhs: i64, rhs: i64) -> Option<i64> {
        // Rounded so that the remainder is not negative.
        let quotient = || lhs.checked_div_euclid(rhs);
        let rounded = |down: i64, up: i64| {
            let exact = quotient()?.checked_mul(rhs) == Some(lhs);
            let by = if exact { 0 } else { if 0 < rhs { down } else { up } };
            quotient()?.checked_add(by)
        };
        match self {
            Op::Add => lhs.checked_add(rhs),
            Op::Sub => lhs.checked_sub(rhs),
            Op::Mul => lhs.checked_mul(rhs),
            Op::FloorDiv => rounded(0, -1),
            Op::CeilDiv => rounded(1, 0),
            Op::Mod if rhs == -1 => Some(0),
            Op::Mod => lhs.checked_rem_euclid(rhs),
            Op::Min => Some(lhs.min(rhs)),
            Op::Max => Some(lhs.max(rhs)),
        }
    }
}

pub fn any_var() -> impl Strategy<Value = Var> {
    prop_oneof![
        4 => (0..2_u32).prop_map(Var::Dim),
        3 => (0..2_u32).prop_map(Var::Range),
        2 => (0..2_u32).prop_map(Var::Runtime),
    ]
}

pub fn any_constant() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => -12..=12_i64,
        2 => prop_oneof![Just(16), Just(32), Just(64), Just(-16), Just(100)],
        1 => prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(i64::MAX - 1), Just(1 << 62)],
    ]
}

pub fn any_tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        1 => any_constant().prop_map(Tree::Const),
        4 => any_var().prop_map(Tree::Var),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let divisor = prop_oneof![
            8 => (1..=12_i64).prop_map(Tree::Const),
            2 => any_constant().prop_map(Tree::Const),
            1 => inner.clone(),
        ];
        let op = prop_oneof![4 => Just(Op::Add), 2 => Just(Op::Sub), 1 => Just(Op::Min), 1 => Just(Op::Max)];
        let division = prop_oneof![2 => Just(Op::FloorDiv), 1 => Just(Op::CeilDiv), 2 => Just(Op::Mod)];
        let combine = |(op, lhs, rhs)| Tree::Op(op, Box::new(lhs), Box::new(rhs));
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(combine),
            3 => (division, inner.clone(), divisor).prop_map(combine),
            2 => (Just(Op::Mul), inner.clone(), any_constant().prop_map(Tree::Const))
                .prop_map(combine),
            1 => (Just(Op::Mul), inner.clone(), inner).prop_map(combine),
        ]
    })
}

/// Constant bounds; sometimes empty, sometimes one point, sometimes negative.
pub fn any_bounds() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![
        4 => (0..=0_i64, 0..7_i64),
        4 => (-9..9_i64, 0..6_i64),
        1 => (-9..9_i64, -1..=0_i64),
    ]
    .prop_map(|(lo, extent)| (lo, lo + extent))
}

/// A map outside of any context. The upper bounds of some variables are `rt0 + offset`.
#[derive(Clone, Debug)]
pub struct Sketch {
    pub dims: Vec<((i64, i64), bool)>,
    pub ranges: Vec<((i64, i64), bool)>,
    pub runtimes: Vec<(i64, i64)>,
    pub results: Vec<Tree>,
    pub constraints: Vec<(Tree, (i64, i64))>,
}

pub fn any_sketch() -> impl Strategy<Value = Sketch> {
    let variable = || (any_bounds(), prop::bool::weighted(0.2));
    let end = prop_oneof![3 => -9..20_i64, 1 => Just(i64::MIN)];
    let interval = (end, prop_oneof![4 => 0..12_i64, 1 => Just(i64::MAX)])
        .prop_map(|(lo, extent)| (lo, lo.saturating_add(extent)));
    (
        prop::collection::vec(variable(), 2),
        prop::collection::vec(variable(), 2),
        prop::collection::vec(any_bounds(), 2),
        prop::collection::vec(any_tree(), 1..3),
        prop::collection::vec((any_tree(), interval), 0..3),
    )
        .prop_map(|(dims, ranges, runtimes, results, constraints)| Sketch {
            dims,
            ranges,
            runtimes,
            results,
            constraints,
        })
}

impl Sketch {
    pub fn build(&self, ctx: &Context) -> IndexingMap {
        let variable = |&((lo, hi), symbolic): &((i64, i64), bool)| {
            let upper = if symbolic {
                ctx.add(ctx.runtime(0), ctx.constant(hi % 3))
            } else {
                ctx.constant(hi)
            };
            Variable::between(ctx.constant(lo), upper)
        };
        let runtime = |&(lo, hi): &(i64, i64)| Variable::bounded(ctx, Interval::new(lo, hi));
        let mut map = IndexingMap {
            dims: self.dims.iter().map(variable).collect(),
            ranges: self.ranges.iter().map(variable).collect(),
            runtimes: self.runtimes.iter().map(runtime).collect(),
            results: self.results.iter().map(|tree| tree.build(ctx)).collect(),
            constraints: self
                .constraints
                .iter()
                .map(|(tree, (lo, hi))| Constraint {
                    expr: tree.build(ctx),
                    interval: Interval::new(*lo, *hi),
                })
                .collect(),
        };
        map.sort_constraints(ctx);
        map
    }
}
