//! Scans in parts.

use super::Parts;
use melior::ir::ValueLike;
use tc_dialects::{
    imap::{
        Access, Indexed, Inside, Scan, Start, View, build_yield, substitute_constraints,
        substitute_in_conditions,
    },
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
    wanted: i64,
    min_size: i64,
) -> Result<Option<Parts>, &'static str> {
    let values = |variable: &Variable| {
        let interval = variable.constant_interval(ir)?;
        Some((interval, i64::try_from(interval.num_members()?).ok()?))
    };
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
            false => {
                let lower = dim.lower.expect("a verified domain bounds its variables");
                ir.sub(ir.dim(number), lower)
            }
        };
        (0..).zip(&view.domain.dims).map(row).collect()
    }

    /// Destinations with an element per row and part, for each accumulator.
    fn destinations<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        view: &View<'c>,
        subscripts: &[Expr],
    ) -> Vec<Access<'c>> {
        let extent = |(number, dim): (u32, &Variable)| match Var::Dim(number) == self.var {
            true => Some(self.num_parts),
            false => i64::try_from(dim.constant_interval(ir)?.num_members()?).ok(),
        };
        let shape: Vec<_> = (0..).zip(&view.domain.dims).map(extent).collect();
        let destination = |ty| {
            let ty = mlir::tensor_type(&shape, ty);
            Access::new(builder.value("tensor.empty", &[], ty), subscripts.to_vec())
        };
        view.accumulators.iter().map(|it| destination(it.ty)).collect()
    }

    /// The folds of the parts.
    fn build_totals<'c>(
        &self,
        ir: &Context,
        builder: &Builder<'c>,
        scan: Scan<'c>,
        view: &View<'c>,
    ) -> Vec<Val<'c>> {
        let (part, place) = (self.var, Var::Range(0));
        let value = self.value(ir, part, place);
        let replacement = |var: Var| (var == self.var).then_some(value);
        let mut totals = view.clone();
        totals.outputs = Vec::new();
        totals.accesses_mut().for_each(|it| it.substitute(ir, &replacement));
        substitute_constraints(ir, &mut totals.domain.constraints, &replacement);
        self.bound(ir, &mut totals.domain, self.num_parts);
        totals.domain.ranges = vec![Variable::bounded(ir, Interval::new(0, self.size - 1))];
        totals.outputs = self.destinations(ir, builder, view, &self.subscripts(ir, view, part));
        totals.accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        let new = totals.build(ir, builder, false);
        let arguments = mlir::arguments(scan.body()).into_iter().zip(mlir::arguments(new.body()));
        self.copy_block(builder, scan.body(), new.body(), arguments.collect(), (part, place));
        substitute_in_conditions(ir, &[new.body()], &replacement);
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
        before.outputs = self.destinations(ir, builder, view, &subscripts);
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
        let (part, place) = (Var::Dim(view.domain.dims.len() as u32), self.var);
        let value = self.value(ir, part, place);
        let replacement = |var: Var| (var == place).then_some(value);
        let mut parts = view.clone();
        parts.accesses_mut().for_each(|it| it.substitute(ir, &replacement));
        substitute_constraints(ir, &mut parts.domain.constraints, &replacement);
        self.bound(ir, &mut parts.domain, self.size);
        parts.domain.dims.push(Variable::bounded(ir, Interval::new(0, self.num_parts - 1)));
        let subscripts = self.subscripts(ir, view, part);
        parts.inputs.extend(before.iter().map(|it| Access::new(*it, subscripts.clone())));
        parts.accumulators.iter_mut().for_each(|it| it.start = Start::Identity);
        let new = parts.build_scan(ir, builder, true, (scan.dim(), scan.is_exclusive()));
        let arguments = mlir::arguments(scan.body()).into_iter().zip(mlir::arguments(new.body()));
        self.copy_block(builder, scan.body(), new.body(), arguments.collect(), (part, place));

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
                self.copy_block(builder, old, epilogue, values, (part, place));
            }
        }
        substitute_in_conditions(ir, &[new.body(), epilogue], &replacement);
        new.op()
    }
}
