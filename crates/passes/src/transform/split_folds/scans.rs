//! Scans in parts.

use super::{Limits, destinations, from_zero};
use crate::tile::parts::{Parts, extent};
use melior::ir::ValueLike;
use tc_dialects::{
    imap::{Access, Indexed, Inside, Scan, Start, View, build_yield},
    mlir::{self, Builder, Op, Val, ValueMap},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::Variable,
};

/// The least number of parts. The input is read twice, and there are two operations more.
const MIN_PARTS: i64 = 4;

/// The parts of a scan; `None` if it is not worth them.
pub(super) fn plan(
    ir: &Context,
    scan: Scan,
    Limits { wanted, min_size, .. }: Limits,
) -> Result<Option<Parts>, &'static str> {
    let values = |it: &Variable| Some((it.constant_interval(ir)?, extent(ir, it)?));
    let domain = scan.domain(ir);
    let Some(dims) = domain.dims.iter().map(values).collect::<Option<Vec<_>>>() else {
        return Err("the number of rows or their length is not known");
    };
    if !scan.inits().iter().all(|init| mlir::is_tensor(init.r#type())) {
        return Err("it works on buffers");
    }
    let (values, extent) = dims[scan.dim() as usize];
    let all = dims.iter().fold(1_i64, |product, (_, count)| product.saturating_mul(*count));
    if all == 0 {
        return Ok(None);
    }
    let most = (wanted / (all / extent)).min(extent / min_size);
    if most < MIN_PARTS {
        return Ok(None);
    }
    // A row of a scan has no points to leave out.
    let even = (MIN_PARTS.max(most / 4)..=most).rev().find(|count| extent % count == 0);
    let num_parts = even.ok_or("no number of parts divides its length")?;
    let size = extent / num_parts;
    Ok(Some(Parts { var: Var::Dim(scan.dim()), values, num_parts, size }))
}

impl Parts {
    /// Replaces a scan by a fold of parts, a scan of their results, and a scan of the parts.
    pub(super) fn split_scan(&self, ir: &Context, scan: Scan) {
        let builder = Builder::before(scan.op());
        let view = View::of(ir, scan);
        let totals = self.build_totals(ir, &builder, scan, &view);
        let before = self.build_before(ir, &builder, scan, &view, &totals);
        let new = self.build_scans(ir, &builder, scan, &view, &before);
        mlir::replace(scan.op(), &mlir::results(new));
    }

    /// The subscripts of tensors with an element per row and part.
    fn subscripts(&self, ir: &Context, view: &View, part: Var) -> Vec<Expr> {
        let row = |(number, dim): (u32, &Variable)| match Var::Dim(number) == self.var {
            true => ir.var(part),
            false => from_zero(ir, number, dim),
        };
        (0..).zip(&view.domain.dims).map(row).collect()
    }

    /// The shape of tensors with an element per row and part.
    fn shape(&self, ir: &Context, view: &View) -> Vec<Option<i64>> {
        let extent = |(number, dim): (u32, &Variable)| match Var::Dim(number) == self.var {
            true => Some(self.num_parts),
            false => extent(ir, dim),
        };
        (0..).zip(&view.domain.dims).map(extent).collect()
    }

    /// The folds of the parts.
    fn build_totals<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        scan: Scan<'c>,
        view: &View<'c>,
    ) -> Vec<Val<'c>> {
        let vars = (self.var, Var::Range(0));
        let mut totals = self.in_part(ir, view, vars);
        totals.accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        self.bound(ir, &mut totals.domain, self.num_parts);
        totals.domain.ranges = vec![Variable::bounded(ir, Interval::new(0, self.size - 1))];
        let subscripts = self.subscripts(ir, view, self.var);
        totals.outputs = destinations(builder, view, &self.shape(ir, view), &subscripts);
        let new = totals.build(ir, builder, false);
        self.copy_body(ir, builder, scan.body(), new.body(), vars);
        mlir::results(new.op())
    }

    /// The folds of the parts before each part.
    fn build_before<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        scan: Scan<'c>,
        view: &View<'c>,
        totals: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let subscripts = self.subscripts(ir, view, self.var);
        let mut before = view.clone();
        self.bound(ir, &mut before.domain, self.num_parts);
        // Constraints say what is folded.
        before.domain.constraints.clear();
        before.inputs = totals.iter().map(|it| Access::new(*it, subscripts.clone())).collect();
        before.outputs = destinations(builder, view, &self.shape(ir, view), &subscripts);
        before.drop_unused_runtimes(ir, &Inside::conditions_in(ir, &[]));
        let new = before.build_scan(ir, builder, false, (scan.dim(), true));
        let body = Builder::at_end(builder.context, new.body(), builder.location);
        build_yield(&body, &mlir::arguments(new.body()));
        mlir::results(new.op())
    }

    /// The scans of the parts.
    fn build_scans<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        scan: Scan<'c>,
        view: &View<'c>,
        before: &[Val<'c>],
    ) -> Op<'c> {
        let (mut parts, vars) = self.divide(ir, view, false);
        parts.accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        let subscripts = self.subscripts(ir, view, vars.0);
        parts.inputs.extend(before.iter().map(|it| Access::new(*it, subscripts.clone())));
        let new = parts.build_scan(ir, builder, true, (scan.dim(), scan.is_exclusive()));
        self.copy_body(ir, builder, scan.body(), new.body(), vars);

        let epilogue = new.epilogue().expect("it is built with one");
        let (inside, arguments) = builder.inside(epilogue);
        let (folded, read) = arguments.split_at(view.accumulators.len());
        let (read, before) = read.split_at(view.inputs.len());
        let folded = match scan.combiner() {
            None => {
                let pairs = before.iter().zip(folded);
                let combine = view.accumulators.iter().zip(pairs);
                combine
                    .map(|(it, (before, folded))| it.kind.build(&inside, *before, *folded))
                    .collect()
            }
            Some(combiner) => {
                let arguments = mlir::arguments(combiner).into_iter();
                let mut values: ValueMap = arguments.zip([before, folded].concat()).collect();
                let copies = mlir::ops(combiner).into_iter().map(|op| inside.copy(op, &mut values));
                let end = copies.last().expect("a region ends with its terminator");
                let combined = mlir::operands(end);
                mlir::erase(end);
                combined
            }
        };
        match scan.epilogue() {
            None => build_yield(&inside, &folded),
            Some(old) => {
                let values = [&folded[..], read].concat();
                let values = mlir::arguments(old).into_iter().zip(values).collect();
                self.copy_block(ir, builder, old, epilogue, values, vars);
            }
        }
        new.op()
    }
}
