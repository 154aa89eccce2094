//! `imap-permute-results`: store intermediate tensors so that folds run along their last dimension.
//!
//! A tile of a row-wise softmax is some rows, and all operations of it need the same rows. Written along columns, the
//! same attention has no such tile: the product that reads its weights needs rows of the result and columns of the
//! weights. The order of dimensions of a tensor that only operations with maps access is free, so columns become rows.
//!
//! Before, shortened:
//!
//! ```mlir
//! %s = imap.generic (i, j)[k] .. ins(%key[i, k], %query[j, k] ..) outs(%e[i, j] : tensor<4096x512xf32>) fold [add f32] {..}
//! %m = imap.generic (j)[i] .. ins(%s[i, j] ..) outs(%f[j] ..) fold [maximumf f32] {..}
//! %p = imap.generic (i, j) .. ins(%s[i, j], %m[j] ..) outs(%e[i, j] : tensor<4096x512xf32>) {..}
//! %r = imap.generic (j, d)[i] .. ins(%p[i, j], %value[i, d] ..) outs(%g[j, d] ..) fold [add f32] {..}
//! ```
//!
//! After:
//!
//! ```mlir
//! %s = imap.generic (i, j)[k] .. ins(%key[i, k], %query[j, k] ..) outs(%e[j, i] : tensor<512x4096xf32>) fold [add f32] {..}
//! %m = imap.generic (j)[i] .. ins(%s[j, i] ..) outs(%f[j] ..) fold [maximumf f32] {..}
//! %p = imap.generic (i, j) .. ins(%s[j, i], %m[j] ..) outs(%e[j, i] : tensor<512x4096xf32>) {..}
//! %r = imap.generic (j, d)[i] .. ins(%p[j, i], %value[i, d] ..) outs(%g[j, d] ..) fold [add f32] {..}
//! ```
//!
//! Tensors that an operation on elements accesses at the same place change together, and only if a product contracts the
//! dimension, another fold runs along it, and nothing reads or writes the tensors along the last dimension that they have.
//! Operations with a schedule by hand stay. Remark: `permuted`, for each tensor, with its old and its new shape.

use super::{blocks_in, moved_last};
use melior::ir::{ValueLike, operation::OperationLike};
use petgraph::unionfind::UnionFind;
use std::collections::HashMap;
use tc_dialects::{
    imap::{Access, Generic, Indexed, View, schedule::is_scheduled},
    mlir::{self, Blk, Builder, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{
    Context,
    expr::{Expr, Var},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-permute-results",
    summary: "Store intermediate tensors so that folds run along their last dimension",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["imap", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let ir = Context::new();
    for block in blocks_in(pass.op) {
        let operations = mlir::ops(block).into_iter().filter_map(Generic::cast);
        let operations: Vec<_> = operations.map(|it| (it, View::of(&ir, it))).collect();
        let temporaries = Temporaries::of(&ir, block, &operations);
        let last_dims = temporaries.last_dims(&ir, &operations);
        if !last_dims.is_empty() {
            rewrite(&ir, function, &operations, &last_dims);
        }
    }
    Ok(())
}

/// The intermediate tensors of a block whose dimensions can be in any order.
struct Temporaries {
    /// By keys of values.
    numbers: HashMap<usize, usize>,
    /// Those that change together.
    sets: UnionFind<usize>,
}

/// The orders that the operations of a block prefer for tensors that change together.
#[derive(Clone, Default)]
struct Wishes {
    /// The dimensions that should be the last one.
    dims: Vec<usize>,
    is_folded: bool,
    is_contracted: bool,
    /// An access runs along the last dimension.
    stay: bool,
}

impl Temporaries {
    fn of<'c>(ir: &Context, block: Blk<'c>, operations: &[(Generic<'c>, View<'c>)]) -> Self {
        let mut numbers = HashMap::new();
        for (generic, view) in operations {
            for (result, output) in mlir::results(generic.op()).into_iter().zip(&view.outputs) {
                if is_temporary(block, *generic, result, output) {
                    numbers.insert(mlir::value_key(result), numbers.len());
                }
            }
        }
        let mut sets = UnionFind::new(numbers.len());
        for (generic, view) in operations.iter().filter(|(_, view)| is_map_form(view)) {
            // By the place of an access, the first tensor that is accessed there.
            let mut first: HashMap<&[Expr], usize> = HashMap::new();
            for (number, access) in accesses(&numbers, *generic, view) {
                let varies = !ir.vars_of_all(&access.subscripts).is_empty();
                if let Some(number) = number.filter(|_| varies) {
                    sets.union(*first.entry(&access.subscripts).or_insert(number), number);
                }
            }
        }
        Self { numbers, sets }
    }

    /// Per key of a tensor that changes, the dimension that becomes the last one.
    fn last_dims<'c>(
        &self,
        ir: &Context,
        operations: &[(Generic<'c>, View<'c>)],
    ) -> HashMap<usize, usize> {
        let mut wishes = vec![Wishes::default(); self.numbers.len()];
        for (generic, view) in operations {
            for (number, access) in accesses(&self.numbers, *generic, view) {
                let Some(set) = number.map(|it| self.sets.find(it)) else { continue };
                match is_map_form(view) {
                    true => {
                        let others = accesses(&self.numbers, *generic, view);
                        let others = others.filter(|(other, _)| {
                            other.is_none_or(|other| self.sets.find(other) != set)
                        });
                        let others = others.map(|(_, access)| access);
                        wishes[set].on_elements(ir, view, access, others);
                    }
                    false => wishes[set].in_fold(ir, view, access),
                }
            }
        }
        let numbers = self.numbers.iter();
        numbers
            .filter_map(|(key, number)| Some((*key, wishes[self.sets.find(*number)].answer()?)))
            .collect()
    }
}

impl Wishes {
    /// Adds the preference of an operation on elements, by the other tensors that it accesses at each point.
    fn on_elements<'a, 'c: 'a>(
        &mut self,
        ir: &Context,
        view: &View<'c>,
        access: &Access<'c>,
        others: impl Iterator<Item = &'a Access<'c>>,
    ) {
        let dims = view.looping_dims(ir);
        for other in others {
            let used = ir.vars_of_all(&other.subscripts);
            let last = other.subscripts.last().and_then(|it| ir.as_var(*it));
            if let Some(last) = last.filter(|_| dims.iter().all(|dim| used.contains(dim))) {
                self.along(ir, access, last);
            }
        }
    }

    /// Adds the preference of a fold for a tensor that it reads or writes.
    fn in_fold(&mut self, ir: &Context, view: &View, access: &Access) {
        let is_range = |expr: &Expr| ir.vars(*expr).iter().any(|it| matches!(it, Var::Range(_)));
        let mut folded =
            (0..access.subscripts.len()).filter(|dim| is_range(&access.subscripts[*dim]));
        let last = access.subscripts.last().and_then(|it| ir.as_var(*it));
        match (folded.next(), folded.next(), last) {
            // The result of a product has its lanes along the contiguous dimension of a factor.
            (None, _, Some(last)) => {
                self.stay |= view.inputs.iter().any(|input| input.step(ir, last) == Some(1));
            }
            (Some(dim), None, Some(last)) if dim + 1 < access.subscripts.len() => {
                let is_product = view.reads_again(ir, access);
                let lane = |output: &Access| output.step(ir, last) == Some(1);
                self.is_contracted |= is_product;
                self.is_folded |= !is_product;
                self.stay |= is_product && view.outputs.iter().any(lane);
                self.dims.push(dim);
            }
            _ => self.stay = true,
        }
    }

    /// An operation accesses another tensor along a variable.
    fn along(&mut self, ir: &Context, access: &Access, var: Var) {
        let dim = access.subscripts.iter().position(|it| ir.as_var(*it) == Some(var));
        match dim {
            Some(dim) if dim + 1 < access.subscripts.len() => self.dims.push(dim),
            _ => self.stay = true,
        }
    }

    /// The dimension that becomes the last one, if all agree.
    fn answer(&self) -> Option<usize> {
        let first = *self.dims.first()?;
        let agree = self.dims.iter().all(|dim| *dim == first);
        (agree && self.is_folded && self.is_contracted && !self.stay).then_some(first)
    }
}

/// All accesses of an operation, with the number of the temporary, if it is one.
fn accesses<'a, 'c>(
    numbers: &'a HashMap<usize, usize>,
    generic: Generic<'c>,
    view: &'a View<'c>,
) -> impl Iterator<Item = (Option<usize>, &'a Access<'c>)> {
    let read = view.inputs.iter().map(|it| (it.value, it));
    let results = mlir::results(generic.op()).into_iter();
    let all = read.chain(results.zip(&view.outputs));
    all.map(|(value, access)| (numbers.get(&mlir::value_key(value)).copied(), access))
}

fn is_map_form(view: &View) -> bool {
    view.domain.ranges.is_empty() && view.accumulators.is_empty()
}

/// Whether a result is a new tensor of static shape that only operations of its block read, at known places.
fn is_temporary<'c>(
    block: Blk<'c>,
    generic: Generic<'c>,
    result: Val<'c>,
    output: &Access<'c>,
) -> bool {
    let shape = mlir::shape(result.r#type());
    let is_new = mlir::is_empty_tensor(output.value);
    let is_read = |(user, operand): (mlir::Op<'c>, usize)| {
        let Some(reader) = Generic::cast(user) else { return false };
        let first = reader.runtimes().len();
        let in_block = user.block().map(mlir::block_ref) == Some(block);
        in_block && !is_scheduled(user) && (first..first + reader.inputs().len()).contains(&operand)
    };
    1 < shape.len()
        && shape.iter().all(Option::is_some)
        && is_new
        && !is_scheduled(generic.op())
        && mlir::uses(result).into_iter().all(is_read)
}

/// Gives tensors another order of dimensions: to their types, and to the maps of the operations that access them.
fn rewrite<'c>(
    ir: &Context,
    function: &str,
    operations: &[(Generic<'c>, View<'c>)],
    last_dims: &HashMap<usize, usize>,
) {
    let last_dim = |value: Val| last_dims.get(&mlir::value_key(value)).copied();
    for (generic, view) in operations {
        let op = generic.op();
        let (mut new, mut is_changed) = (view.clone(), false);
        for access in &mut new.inputs {
            if let Some(dim) = last_dim(access.value) {
                access.subscripts = moved_last(&access.subscripts, dim);
                is_changed = true;
            }
        }
        for (result, output) in mlir::results(op).into_iter().zip(&mut new.outputs) {
            let Some(dim) = last_dim(result) else { continue };
            let old = result.r#type();
            let shape = moved_last(&mlir::shape(old), dim);
            let ty = mlir::tensor_type(&shape, mlir::element_type(old));
            let builder = Builder::before(op).located(op.location());
            output.value = builder.value("tensor.empty", &[], ty);
            output.subscripts = moved_last(&output.subscripts, dim);
            mlir::set_type(result, ty);
            is_changed = true;
            let arguments = [("From", &*old.to_string()), ("To", &*ty.to_string())];
            let passed = RemarkKind::Passed;
            remark(op.location(), passed, PASS.argument, "permuted", function, &arguments);
        }
        if is_changed {
            new.set_operands(ir, op);
        }
    }
}
