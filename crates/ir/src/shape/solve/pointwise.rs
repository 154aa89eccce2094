//! Point-wise operations: which operands are equal, and which are broadcast.

use super::copy::Copy;
use super::{Pointwise, Relation, Solver, Step};
use crate::shape::{Item, Shape, ShapeVar};

impl Solver {
    /// Chooses the equations of a point-wise operation.
    pub(super) fn decide(&mut self, op: Pointwise) {
        let operands: Vec<Shape> =
            op.operands.iter().map(|shape| self.resolved_shape(shape)).collect();
        let result = self.resolved_shape(&op.result);
        let equal: Vec<(usize, bool)> = (0..operands.len()).map(|place| (place, false)).collect();
        // The operand that has the shape of the result, and which of the others are broadcast.
        let mut choice = (0, equal);
        if !self.all_equal(&operands, &result) {
            for (place, largest) in operands.iter().enumerate() {
                let broadcast: Vec<(usize, bool)> = (operands.iter().enumerate())
                    .map(|(other, shape)| {
                        (other, !self.all_equal(std::slice::from_ref(shape), largest))
                    })
                    .collect();
                let relations = broadcast.iter().map(|&(other, broadcast)| {
                    (operands[other].clone(), largest.clone(), broadcast)
                });
                let relations = relations.chain([(result.clone(), largest.clone(), false)]);
                if self.consistent(relations.collect()) {
                    choice = (place, broadcast);
                    break;
                }
            }
        }
        let largest = &op.operands[choice.0];
        for (other, broadcast) in choice.1 {
            let operand = op.operands[other].clone();
            if broadcast {
                let level = operand.items.iter().chain(&largest.items).map(|item| match item {
                    Item::Var(var) => self.shape_level(*var),
                    Item::Dim(_) => u32::MAX,
                });
                let leading = level.max().unwrap_or(0);
                let leading = self.shape_var(leading);
                let whole = std::iter::once(Item::Var(leading)).chain(operand.items).collect();
                if let Some(steps) = &mut self.steps {
                    let relation = Relation::Shapes(operands[other].clone(), largest.clone());
                    steps.push(Step { rule: "broadcast", relation, origin: op.origin });
                }
                self.given(Relation::Shapes(whole, largest.clone()), op.origin);
            } else if other != choice.0 {
                self.given(Relation::Shapes(operand, largest.clone()), op.origin);
            }
        }
        self.given(Relation::Shapes(op.result.clone(), largest.clone()), op.origin);
    }

    /// Whether shapes can be equal to another one, all at once.
    fn all_equal(&self, shapes: &[Shape], other: &Shape) -> bool {
        // Most are the same already, or variables of which nothing is known.
        let mut distinct: Vec<&Shape> = Vec::new();
        for shape in shapes.iter().chain([other]) {
            if !distinct.contains(&shape) {
                distinct.push(shape);
            }
        }
        let compound = distinct.iter().filter(|shape| shape.as_var().is_none());
        let compound: Vec<_> = compound.copied().collect();
        let inside =
            |var: ShapeVar| compound.iter().any(|shape| shape.items.contains(&Item::Var(var)));
        if compound.len() <= 1 && !distinct.iter().filter_map(|it| it.as_var()).any(inside) {
            return true;
        }
        let pairs = distinct[1..].iter().map(|&it| (it.clone(), distinct[0].clone(), false));
        self.consistent(pairs.collect())
    }

    /// Whether pairs of resolved shapes can be equal, or the second end in the first, when nothing
    /// else is asked of their variables.
    fn consistent(&self, pairs: Vec<(Shape, Shape, bool)>) -> bool {
        let mut copy = Copy::new(self);
        for (left, right, broadcast) in pairs {
            let mut left = copy.shape(&left);
            let right = copy.shape(&right);
            if broadcast {
                let leading = copy.to.shape_var(0);
                left.items.insert(0, Item::Var(leading));
            }
            copy.to.given(Relation::Shapes(left, right), 0);
        }
        copy.to.run().is_ok()
    }
}
