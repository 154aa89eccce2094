//! `imap-pack`: copies operands of products into panels, which register blocks read one element after the other.
//!
//! A register block of a product `C(m, n) += A(m, k) * B(k, n)` reads a few vectors of each row of `B`, for every `k`
//! and for every block of rows of `A`. Rows are far apart in memory, or `B(n, k)` is not contiguous in `n` at all. A
//! panel holds what one block of columns reads, in order. It is read for all rows, so one copy pays.
//!
//! Before, shortened:
//!
//! ```mlir
//! %c = imap.generic (m, n)[k] .. ins(%a[m, k], %b[k, n] ..) outs(%e[m, n] : tensor<512x512xf32>) fold [add f32] {..}
//! ```
//!
//! After, with vectors of eight:
//!
//! ```mlir
//! %p = imap.generic (j, k, n) .. ins(%b[k, j * 16 + n] ..) outs(%f[j, k, n] : tensor<32x512x16xf32>) {..}
//! %c = imap.generic (m, n, j)[k] .. ins(%a[m, k], %p[j, k, n] ..) outs(%e[m, j * 16 + n] ..) fold [add f32] {..}
//! ```
//!
//! The variable along which panels are wide is the *lane*: all destinations are contiguous in it. A panel is two
//! vectors wide, and the lane is split if that divides its extent. Otherwise, only an operand that is not contiguous in
//! the lane is copied, as one panel. An operand whose rows are close together stays as it is. Copies keep the other
//! dimension variables of an operand, such as a batch. A copy of gathered rows has them in order. Factors that each
//! product converts to a wider type are converted once instead. Factors with a stride along the lane are copied by
//! residues first (`phases.rs`). Operations that are padded along the lane, or have few values along it, get another
//! lane (`channels.rs`).
//!
//! Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
//!
//! A schedule by hand stays with the operation. If it names the lane, nothing is copied.
//!
//! Remark: `packed`, with the map to the panel.

mod channels;
mod phases;

use super::parts::{Parts, extent};
use crate::target::LINE_BYTES;
use melior::ir::{Attribute, ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{
        Access, Generic, Indexed, Runtime, SCRATCH, View, build_yield,
        schedule::{Schedule, variable_names},
        substitute_constraints,
    },
    mlir::{self, Builder, Op, Val, ValueMap},
    pass::{Failure, PassInfo, PassOption, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{
    Context, Interval,
    expr::{Expr, Var},
    map::{Constraint, IndexingMap, Variable},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "imap-pack",
    summary: "Copy operands of products into panels",
    anchor: "func.func",
    options: &[
        PassOption {
            name: "vector-bits",
            description: "The bits of a vector register; 0 for no vectors",
            default: "128",
        },
        PassOption {
            name: "min-reuse",
            description: "The results that an element of a copy serves at least, if the fold is short",
            default: "32",
        },
        PassOption {
            name: "cache-bytes",
            description: "The bytes of the first-level cache",
            default: "32768",
        },
    ],
    dependent_dialects: &["arith", "imap", "tensor"],
    run,
};

/// How many times as many it has to serve, if the fold runs along the lanes without the copy.
const LONG: i64 = 32;
/// How many times as many it has to serve, if the operand is contiguous in the lane.
const CONTIGUOUS: i64 = 3;
/// How many blocks of columns an element has to serve that is converted once.
const MIN_BLOCKS: i64 = 8;
/// How many lines rows are apart that are worth copying.
pub(super) const MIN_LINES: i64 = 8;
/// Vectors that a short fold has along its innermost variable.
const SHORT: i64 = 8;
/// Neighbouring vectors of a register block that unrolls other variables too. A panel has as many.
pub(crate) const BLOCK_VECTORS: i64 = 2;
/// The most elements of a copy: 64 MB of floats.
pub(super) const MAX_ELEMENTS: i64 = 1 << 24;

/// The limits of a machine.
#[derive(Copy, Clone)]
struct Limits {
    vector_bits: i64,
    min_reuse: i64,
    cache_bytes: i64,
}

fn run(pass: &PassRun) -> Result<(), Failure> {
    let limits = Limits {
        vector_bits: pass.number("vector-bits")?,
        min_reuse: pass.number("min-reuse")?,
        cache_bytes: pass.number("cache-bytes")?,
    };
    if limits.vector_bits < 128 {
        return Ok(());
    }
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    let mut found = Vec::new();
    mlir::walk(pass.op, &mut |op| found.extend(Generic::cast(op)));
    for mut generic in found {
        pass.enter(generic.op());
        let ir = Context::new();
        let Some(mut product) = Product::of(&ir, generic) else { continue };
        let schedule = Schedule::of(generic.op());
        // The copies of the operation have its variables, so the names in a schedule stay right.
        let keep = |new: Generic<'_>| schedule.iter().for_each(|it| it.set(new.op()));
        if let Some((gathered, results)) = phases::gather(&product, limits) {
            mlir::replace(generic.op(), &results);
            generic = gathered;
            keep(generic);
            let Some(found) = Product::of(&ir, generic) else { continue };
            product = found;
        }
        if let Some((reordered, results)) = channels::reorder(&product, limits) {
            mlir::replace(generic.op(), &results);
            generic = reordered;
            keep(generic);
            let Some(found) = Product::of(&ir, generic) else { continue };
            product = found;
        }
        if let Some(separated) = phases::separate(&product, limits) {
            mlir::replace(generic.op(), &mlir::results(separated.op()));
            generic = separated;
            keep(generic);
            let Some(found) = Product::of(&ir, generic) else { continue };
            product = found;
        }
        let Some((lane, inputs)) = product.plan(limits) else { continue };
        let names = variable_names(&product.view.domain);
        let lane_name = &names[product.view.domain.position(lane)];
        let mut steps = schedule.iter().flat_map(|it| &it.steps);
        // The lane would be two variables.
        if steps.any(|step| step.names().contains(&&**lane_name)) {
            continue;
        }
        let (new, maps) = product.pack(lane, &inputs, limits);
        keep(new);
        for map in maps {
            let arguments = [("Map", &*map.display(&ir).to_string())];
            let at = new.op().location();
            remark(at, RemarkKind::Passed, PASS.argument, "packed", function, &arguments);
        }
        if generic.op().has_attribute(SCRATCH) {
            scratch(mlir::result(new.op(), 0));
        }
        mlir::replace(generic.op(), &mlir::results(new.op()));
    }
    Ok(())
}

/// Marks what an operation computes as scratch memory.
pub(super) fn scratch(value: Val) -> Val {
    if let Some(op) = mlir::defining_op(value) {
        mlir::set_attribute(op, SCRATCH, Attribute::unit(mlir::context_of(op)));
    }
    value
}

/// A fold on tensors of constant extents, whose variables start from 0.
struct Product<'a, 'c> {
    ir: &'a Context,
    generic: Generic<'c>,
    view: View<'c>,
    /// Dimension variables with several values.
    dims: Vec<Var>,
    /// Range variables with several values.
    ranges: Vec<Var>,
}

impl<'a, 'c> Product<'a, 'c> {
    fn of(ir: &'a Context, generic: Generic<'c>) -> Option<Self> {
        let view = View::of(ir, generic);
        let is_tensor = |access: &Access| mlir::is_tensor(access.value.r#type());
        if view.domain.ranges.is_empty() || !view.accesses().all(is_tensor) {
            return None;
        }
        let (mut dims, mut ranges) = (Vec::new(), Vec::new());
        for (var, variable) in view.domain.vars() {
            let list = match var {
                Var::Dim(_) => &mut dims,
                Var::Range(_) => &mut ranges,
                Var::Runtime(_) => continue,
            };
            if variable.constant_interval(ir)?.lo != 0 {
                return None;
            }
            match extent(ir, variable)? {
                // Nothing is read.
                0 => return None,
                1 => {}
                _ => list.push(var),
            }
        }
        Some(Self { ir, generic, view, dims, ranges })
    }

    fn extent(&self, var: Var) -> i64 {
        let variable = self.view.domain.variable(var);
        variable.and_then(|it| extent(self.ir, it)).unwrap_or(1)
    }

    /// The values that are folded into a result.
    fn num_values(&self) -> i64 {
        let extents = self.ranges.iter().map(|var| self.extent(*var));
        extents.fold(1, i64::saturating_mul)
    }

    /// The inputs that the body reads, and not the epilogue, by number.
    fn folded(&self) -> impl Iterator<Item = (usize, &Access<'c>)> {
        let body = mlir::arguments(self.generic.body());
        let epilogue = self.generic.epilogue().map(mlir::arguments).unwrap_or_default();
        let num_folded = self.view.accumulators.len();
        let is_used = |value: Option<&Val>| value.is_some_and(|it| !mlir::uses(*it).is_empty());
        let inputs = self.view.inputs.iter().enumerate();
        inputs.filter(move |(number, _)| {
            is_used(body.get(*number)) && !is_used(epilogue.get(num_folded + number))
        })
    }

    /// The variables that an access depends on, also through places that are read from tensors.
    fn vars(&self, access: &Access<'c>) -> BTreeSet<Var> {
        let own = self.ir.vars_of_all(&access.exprs()).into_iter();
        let at_runtime = self.places(access).flat_map(|place| self.ir.vars_of_all(&place.exprs()));
        let all = own.chain(at_runtime.collect::<Vec<_>>());
        all.filter(|var| self.dims.contains(var) || self.ranges.contains(var)).collect()
    }

    /// The elements that runtime variables of an access are read from.
    fn places(&self, access: &Access<'c>) -> impl Iterator<Item = &Access<'c>> {
        let (mut found, mut accesses) = (BTreeSet::new(), vec![access.exprs()]);
        while let Some(exprs) = accesses.pop() {
            for var in self.ir.vars_of_all(&exprs) {
                if let Var::Runtime(number) = var
                    && found.insert(number as usize)
                    && let Some(place) = self.view.runtimes[number as usize].access()
                {
                    accesses.push(place.exprs());
                }
            }
        }
        found.into_iter().filter_map(|number| self.view.runtimes[number].access())
    }

    /// How far one step of a variable moves through the elements of a tensor; `None` if that depends on where it is.
    fn step(&self, access: &Access<'c>, var: Var) -> Option<i64> {
        let is_moved = |place: &Access| self.ir.vars_of_all(&place.exprs()).contains(&var);
        if self.places(access).any(is_moved) { None } else { access.step(self.ir, var) }
    }

    /// The bits of the widest element, of operands and of accumulators.
    fn element_bits(&self) -> i64 {
        let elements = self.view.accesses().map(|it| mlir::element_type(it.value.r#type()));
        let accumulators = self.view.accumulators.iter().map(|it| it.ty);
        let bytes = elements.chain(accumulators).map(mlir::byte_width).max();
        8 * i64::from(bytes.unwrap_or(1).max(1))
    }

    /// The lane, and the inputs to be copied; `None` if none is.
    fn plan(&self, limits: Limits) -> Option<(Var, Vec<usize>)> {
        let lanes = limits.vector_bits / self.element_bits();
        self.lanes(limits).find_map(|lane| Some((lane, self.inputs(lane, lanes, limits)?)))
    }

    /// The dimensions that can be lanes: all destinations are contiguous in them.
    fn lanes(&self, limits: Limits) -> impl Iterator<Item = Var> {
        let lanes = limits.vector_bits / self.element_bits();
        let is_lane = move |lane: &Var| {
            let mut outputs = self.view.outputs.iter();
            lanes <= 2 * self.extent(*lane) && outputs.all(|it| self.step(it, *lane) == Some(1))
        };
        self.dims.iter().copied().rev().filter(is_lane)
    }

    /// The inputs to be copied for a lane; `None` if there is none, or if one cannot be copied and is not contiguous.
    fn inputs(&self, lane: Var, lanes: i64, limits: Limits) -> Option<Vec<usize>> {
        let num_columns = self.extent(lane);
        let innermost = self.innermost();
        // Without a copy, a long fold runs along the lanes, if its inputs allow that.
        let along = self.folded().all(|(_, it)| matches!(self.step(it, innermost), Some(0 | 1)));
        let is_long = along && SHORT * lanes < self.extent(innermost);
        let least = match along {
            true => limits.min_reuse.saturating_mul(if is_long { LONG } else { 1 }),
            false => limits.min_reuse / channels::FEW,
        };
        let mut found = Vec::new();
        for (number, access) in self.folded() {
            let vars = self.vars(access);
            if !vars.contains(&lane) {
                continue;
            }
            let is_contiguous = self.step(access, lane) == Some(1);
            let reuse = self.reuse(&vars);
            let rows = self.ranges.iter().filter(|var| vars.contains(var));
            let rows = rows.fold(1, |rows: i64, var| rows.saturating_mul(self.extent(*var)));
            let is_far = || {
                let width = BLOCK_VECTORS * lanes;
                let element =
                    i64::from(mlir::byte_width(mlir::element_type(access.value.r#type())));
                let steps = self.ranges.iter().filter_map(|var| self.step(access, *var));
                let step = steps.filter(|step| *step != 0).map(i64::abs).min().unwrap_or(0);
                num_columns % width == 0
                    && MIN_LINES * LINE_BYTES <= element.saturating_mul(step)
                    && limits.cache_bytes <= 2 * rows.saturating_mul(LINE_BYTES)
                    && limits.min_reuse.saturating_mul(CONTIGUOUS) <= reuse
            };
            let pays = if is_contiguous { is_far() } else { least <= reuse };
            match pays && self.can_copy(access, &vars) {
                true => found.push(number),
                false if is_contiguous => {}
                false => return None,
            }
        }
        (!found.is_empty()).then_some(found)
    }

    /// The results that need an element of an input which depends on these variables.
    fn reuse(&self, vars: &BTreeSet<Var>) -> i64 {
        let others = self.dims.iter().filter(|var| !vars.contains(var));
        others.fold(1, |reuse, var| reuse.saturating_mul(self.extent(*var)))
    }

    /// The range that moves least in the inputs.
    fn innermost(&self) -> Var {
        let cost = |var: &Var| {
            let steps = self.folded().map(|(_, it)| self.step(it, *var).unwrap_or(i64::MAX));
            steps.fold(0, |sum: i64, step| sum.saturating_add(step.unsigned_abs() as i64))
        };
        self.ranges.iter().copied().min_by_key(cost).unwrap_or(Var::Range(0))
    }

    fn can_copy(&self, access: &Access<'c>, vars: &BTreeSet<Var>) -> bool {
        let elements = vars.iter().try_fold(1_i64, |all, var| all.checked_mul(self.extent(*var)));
        let lengths = mlir::shape(access.value.r#type()).into_iter();
        let stored = lengths.fold(1_i64, |all, length| all.saturating_mul(length.unwrap_or(1)));
        // Windows overlap: elements are copied several times.
        let num_dims = vars.iter().filter(|var| matches!(var, Var::Dim(_))).count();
        let is_small =
            elements.is_some_and(|it| it <= MAX_ELEMENTS && (it <= stored || num_dims <= 1));
        // A copy has the constraints on its variables; others may exclude its points, too.
        let mut constraints = self.view.domain.constraints.iter();
        let are_its = |it: &Constraint| {
            let others = self.ir.vars(it.expr);
            others.is_disjoint(vars) || others.is_subset(vars)
        };
        access.guard.is_empty()
            && is_small
            && self.places(access).all(|place| place.guard.is_empty())
            && (self.is_inside(access) || constraints.all(are_its))
    }

    /// Whether all points read elements that exist, also those that constraints exclude.
    fn is_inside(&self, access: &Access) -> bool {
        let intervals = self.view.domain.intervals(self.ir);
        let shape = mlir::shape(access.value.r#type());
        access.subscripts.iter().zip(shape).all(|(expr, length)| {
            let indices = self.ir.interval_of(*expr, &|var| intervals.of(var));
            length.is_some_and(|length| 0 <= indices.lo && indices.hi < length)
        })
    }

    /// The same operation on panels of these inputs, and the maps to them.
    fn pack(&self, lane: Var, inputs: &[usize], limits: Limits) -> (Generic<'c>, Vec<IndexingMap>) {
        let (ir, width) = (self.ir, BLOCK_VECTORS * limits.vector_bits / self.element_bits());
        let count = self.extent(lane);
        let is_split = count % width == 0 && width < count;
        let parts = Parts {
            var: lane,
            values: Interval::new(0, count - 1),
            num_parts: if is_split { count / width } else { 1 },
            size: if is_split { width } else { count },
        };
        let builder = Builder::before(self.generic.op()).located(self.generic.op().location());
        let (mut view, mut maps) = (self.view.clone(), Vec::new());
        let mut widened = Vec::new();
        for number in inputs {
            let cast = self.cast(*number);
            let (panels, map) = self.copy(&builder, *number, parts, cast);
            view.inputs[*number] = Access::new(panels, map.results.clone());
            widened.extend(cast.map(|cast| (*number, cast)));
            maps.push(map);
        }
        for (number, cast) in self.narrow(lane, inputs, width) {
            view.inputs[number].value = self.widen(&builder, number, cast);
            widened.push((number, cast));
        }
        let new = self.rebuild(&builder, &view, &widened);
        if !is_split {
            return (new, maps);
        }
        let split = parts.split(ir, new);
        mlir::erase(new.op());
        (split, maps)
    }

    /// The other inputs of which each element would be converted for many blocks of so many columns.
    fn narrow(&self, lane: Var, packed: &[usize], width: i64) -> Vec<(usize, Op<'c>)> {
        let others = self.folded().filter(|(number, _)| !packed.contains(number));
        let narrow = others.filter_map(|(number, access)| {
            let vars = self.vars(access);
            let pays = MIN_BLOCKS * width <= self.reuse(&vars) && !vars.contains(&lane);
            Some((number, self.cast(number).filter(|_| pays && self.can_copy(access, &vars))?))
        });
        narrow.collect()
    }

    /// An input after a conversion.
    fn widen(&self, builder: &Builder<'c>, number: usize, cast: Op<'c>) -> Val<'c> {
        let (ir, value) = (self.ir, self.view.inputs[number].value);
        let shape = mlir::shape(value.r#type());
        let ty = mlir::tensor_type(&shape, mlir::result(cast, 0).r#type());
        let wide = builder.value("tensor.empty", &[], ty);
        let dims: Vec<u32> = (0..shape.len() as u32).collect();
        let places: Vec<Expr> = dims.iter().map(|dim| ir.dim(*dim)).collect();
        let extents = shape.iter().map(|extent| extent.unwrap_or(1)).collect::<Vec<_>>();
        let access = |value| Access::new(value, places.clone());
        let domain = IndexingMap { results: Vec::new(), ..IndexingMap::identity(ir, &extents) };
        scratch(self.build_copy(
            builder,
            domain,
            Vec::new(),
            [access(value), access(wide)],
            Some(cast),
        ))
    }

    /// The conversion of an input, if the body does nothing else with it.
    fn cast(&self, number: usize) -> Option<Op<'c>> {
        let [(user, _)] = mlir::uses(mlir::arguments(self.generic.body())[number])[..] else {
            return None;
        };
        ["arith.extf", "arith.extsi", "arith.extui"].contains(&mlir::name(user)).then_some(user)
    }

    /// Copies what an input holds for the points of the domain into panels, after the conversion `cast`.
    fn copy(
        &self,
        builder: &Builder<'c>,
        number: usize,
        parts: Parts,
        cast: Option<Op<'c>>,
    ) -> (Val<'c>, IndexingMap) {
        let (ir, access) = (self.ir, &self.view.inputs[number]);
        let vars = self.vars(access);
        let lane = parts.var;
        let is_split = 1 < parts.num_parts;
        let of_kind = |is_range: bool| {
            let is_kind =
                move |var: &&Var| matches!(var, Var::Range(_)) == is_range && **var != lane;
            vars.iter().filter(is_kind).copied().collect::<Vec<_>>()
        };
        let mut ranges = of_kind(true);
        // The loops over ranges go along the rows of the other inputs.
        let others = || self.folded().filter(|(other, _)| *other != number).map(|(_, it)| it);
        let step = |var: &Var| others().filter_map(|it| self.step(it, *var)).map(i64::abs).max();
        ranges.sort_by_key(|var| std::cmp::Reverse(step(var)));

        // Batch, number of the panel, ranges, column of the panel.
        let mut extents: Vec<i64> = Vec::new();
        let (mut values, mut places): (Vec<(Var, Expr)>, Vec<Expr>) = (Vec::new(), Vec::new());
        let mut dimension = |extent: i64| {
            extents.push(extent);
            ir.dim(extents.len() as u32 - 1)
        };
        for var in of_kind(false) {
            values.push((var, dimension(self.extent(var))));
            places.push(ir.var(var));
        }
        let width = ir.constant(parts.size);
        let panel = is_split.then(|| {
            places.push(ir.floor_div(ir.var(lane), width));
            ir.mul(dimension(parts.num_parts), width)
        });
        for var in ranges {
            values.push((var, dimension(self.extent(var))));
            places.push(ir.var(var));
        }
        let column = dimension(parts.size);
        values.push((lane, panel.map_or(column, |panel| ir.add(panel, column))));
        places.push(if is_split { ir.modulo(ir.var(lane), width) } else { ir.var(lane) });

        let replacement = |var: Var| match values.iter().find(|(known, _)| *known == var) {
            Some((_, expr)) => Some(*expr),
            None if matches!(var, Var::Runtime(_)) => None,
            // It has one value.
            None => Some(ir.constant(0)),
        };
        let element = cast.map_or(mlir::element_type(access.value.r#type()), |cast| {
            mlir::result(cast, 0).r#type()
        });
        let shape: Vec<_> = extents.iter().copied().map(Some).collect();
        let panels = builder.value("tensor.empty", &[], mlir::tensor_type(&shape, element));
        let dims: Vec<_> = extents
            .iter()
            .map(|extent| Variable::bounded(ir, Interval::new(0, extent - 1)))
            .collect();
        let targets = (0..dims.len() as u32).map(|dim| ir.dim(dim)).collect();
        let read = Access::new(access.value, ir.substitute_all(&access.subscripts, &replacement));
        let written = Access::new(panels, targets);
        let mut constraints = Vec::new();
        if !self.is_inside(access) {
            let all = self.view.domain.constraints.iter();
            constraints.extend(all.filter(|it| ir.vars(it.expr).is_subset(&vars)).cloned());
            substitute_constraints(ir, &mut constraints, &replacement);
        }
        let runtimes = self.view.domain.runtimes.clone();
        let domain = IndexingMap { dims, runtimes, constraints, ..IndexingMap::default() };
        let map = IndexingMap { results: places, ..self.view.domain.clone() };
        let mut places = self.view.runtimes.clone();
        places
            .iter_mut()
            .filter_map(Runtime::access_mut)
            .for_each(|it| it.substitute(ir, &replacement));
        (scratch(self.build_copy(builder, domain, places, [read, written], cast)), map)
    }

    /// Copies elements, after a conversion.
    fn build_copy(
        &self,
        builder: &Builder<'c>,
        domain: IndexingMap,
        runtimes: Vec<Runtime<'c>>,
        accesses: [Access<'c>; 2],
        cast: Option<Op<'c>>,
    ) -> Val<'c> {
        let mut view = View { runtimes, ..View::of_copy(domain, accesses) };
        view.drop_unused_runtimes(self.ir, &[]);
        let copies = view.build(self.ir, builder, false);
        let (inside, arguments) = builder.inside(copies.body());
        let mut values = ValueMap::default();
        let value = cast.map_or(arguments[0], |cast| {
            values.insert(mlir::operand(cast, 0), arguments[0]);
            mlir::result(inside.copy(cast, &mut values), 0)
        });
        build_yield(&inside, &[value]);
        mlir::result(copies.op(), 0)
    }

    /// The operation with other accesses. The inputs of these numbers are converted already.
    fn rebuild(
        &self,
        builder: &Builder<'c>,
        view: &View<'c>,
        widened: &[(usize, Op<'c>)],
    ) -> Generic<'c> {
        let new = view.build(self.ir, builder, self.generic.epilogue().is_some());
        let blocks =
            [Some((self.generic.body(), new.body())), self.generic.epilogue().zip(new.epilogue())];
        for (from, to) in blocks.into_iter().flatten() {
            let (inside, arguments) = builder.inside(to);
            let mut values: ValueMap =
                mlir::arguments(from).into_iter().zip(arguments.clone()).collect();
            for op in mlir::ops(from) {
                match widened.iter().find(|(_, cast)| *cast == op) {
                    Some((number, cast)) => {
                        values.insert(mlir::result(*cast, 0), arguments[*number])
                    }
                    None => {
                        inside.copy(op, &mut values);
                    }
                }
            }
        }
        new
    }
}
