//! What the loops of scans have in common.

use super::emit::{Nest, Scope};
use crate::loops::build_for;
use tc_dialects::mlir::{Builder, Val};
use tc_ir::Var;

/// The loops of one scan.
pub(in crate::convert) struct Loops<'a, 'c> {
    pub nest: &'a Nest<'c>,
    pub scanned: Var,
    pub is_exclusive: bool,
}

impl<'c> Loops<'_, 'c> {
    /// Folds the value of a point into the accumulators, if the constraints hold.
    pub fn fold(&self, builder: &Builder<'c>, scope: &Scope<'c>, held: &[Val<'c>]) -> Vec<Val<'c>> {
        self.where_inside(builder, scope, held, &|builder, scope| {
            self.nest.fold(builder, scope, held)
        })
    }

    /// Computes values where the constraints hold.
    pub fn where_inside(
        &self,
        builder: &Builder<'c>,
        scope: &Scope<'c>,
        otherwise: &[Val<'c>],
        then: &dyn Fn(&Builder<'c>, &mut Scope<'c>) -> Vec<Val<'c>>,
    ) -> Vec<Val<'c>> {
        let constraints: Vec<_> = (0..self.nest.domain.constraints.len()).collect();
        self.nest.guarded(builder, scope, &constraints, otherwise, &mut |builder, scope| {
            then(builder, scope)
        })
    }

    pub fn starts(&self, builder: &Builder<'c>) -> Vec<Val<'c>> {
        let held = |_| unreachable!("a scan starts from no destination");
        self.nest.accumulators.iter().map(|it| it.build_start(builder, held)).collect()
    }

    /// The accumulators to store at a point: those before or after its value is folded.
    pub fn chosen(&self, before: &[Val<'c>], after: &[Val<'c>]) -> Vec<Val<'c>> {
        if self.is_exclusive { before.to_vec() } else { after.to_vec() }
    }

    pub fn in_registers(&self, builder: &Builder<'c>, scope: &Scope<'c>) {
        let mut scope = scope.clone();
        let (lower, upper) = self.nest.loop_bounds(builder, &mut scope, self.scanned, &[]);
        let bounds = (lower, upper, builder.index(1));
        build_for(builder, bounds, &self.starts(builder), &mut |builder, value, held| {
            let mut scope = scope.clone();
            scope.values.insert(self.scanned, value);
            let folded = self.fold(builder, &scope, held);
            self.nest.finish_and_store(builder, &mut scope, self.chosen(held, &folded));
            folded
        });
    }
}
