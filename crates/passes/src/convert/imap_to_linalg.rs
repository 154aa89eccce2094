//! `convert-imap-to-linalg`: convert `imap.generic` to `linalg.generic`.
//!
//! This pass converts operations on tensors with a rectangular domain that starts at 0, without
//! constraints, whose maps are affine and use no runtime variables. Runtime variables may be sizes only.
//! Passes of MLIR for `linalg` can then work on the program.
//!
//! Dimension variables become parallel loops, and range variables reductions. `imap.index` becomes
//! `linalg.index`. If a fold starts from the identity, a `linalg.fill` stores this in the destination
//! before. An epilogue becomes an operation of its own. In `linalg`, the shapes of the operands determine
//! the loops. So an operand that is larger than the domain is sliced, and an empty tensor has the extents
//! that no operand has.
//!
//! Before:
//!
//! ```mlir
//! %C = imap.generic (m, n)[k] domain: m in [0, 3], n in [0, 1], k in [0, 2]
//!     ins(%A[m, k], %B[k, n] : tensor<4x3xf32>, tensor<3x2xf32>) outs(%empty[m, n] : tensor<4x2xf32>) fold [add f32] {
//! ^bb0(%a: f32, %b: f32):
//!   %p = arith.mulf %a, %b : f32
//!   imap.yield %p : f32
//! } -> tensor<4x2xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! %zero = arith.constant 0.0 : f32
//! %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
//! %C = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
//!     affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
//!     ins(%A, %B : tensor<4x3xf32>, tensor<3x2xf32>) outs(%init : tensor<4x2xf32>) {
//! ^bb0(%a: f32, %b: f32, %c: f32):
//!   %p = arith.mulf %a, %b : f32
//!   %s = arith.addf %c, %p : f32
//!   linalg.yield %s : f32
//! } -> tensor<4x2xf32>
//! ```
//!
//! Remarks: `kept` for each operation that stays, with the reason.

use melior::ir::{Attribute, Type, ValueLike, operation::OperationLike};
use std::collections::BTreeSet;
use tc_dialects::{
    imap::{
        self, Accumulator, Generic, Indexed, Inside, View, extents::extent_expr,
        verify::index_variable,
    },
    mlir::{self, Blk, Builder, Val, ValueMap},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};
use tc_ir::{Context, Expr, Var};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "convert-imap-to-linalg",
    summary: "Convert imap.generic with affine maps to linalg.generic",
    anchor: "func.func",
    options: &[],
    dependent_dialects: &["arith", "linalg", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let mut generics = Vec::new();
    mlir::walk(pass.op, &mut |op| generics.extend(Generic::cast(op)));
    let function = mlir::string_attr(pass.op, "sym_name").unwrap_or_default();
    for generic in generics {
        pass.enter(generic.op());
        let ir = Context::new();
        match Loops::of(&ir, generic) {
            Ok(loops) => loops.convert(),
            Err(reason) => {
                let at = generic.op().location();
                let arguments = [("Reason", &*reason)];
                remark(at, RemarkKind::Missed, PASS.argument, "kept", function, &arguments);
            }
        }
    }
    Ok(())
}

/// An operation that can be converted.
struct Loops<'c, 'i> {
    ir: &'i Context,
    generic: Generic<'c>,
    view: View<'c>,
    /// The extent of each loop over the runtime variables, dimension variables first.
    extents: Vec<Expr>,
    /// The subscripts of inputs and destinations over dimension variables with the numbers of the loops.
    subscripts: Vec<Vec<Expr>>,
}

impl<'c, 'i> Loops<'c, 'i> {
    /// Reads an operation.
    ///
    /// # Errors
    /// The reason why `linalg.generic` cannot express it.
    fn of(ir: &'i Context, generic: Generic<'c>) -> Result<Self, String> {
        let view = View::of(ir, generic);
        let context = mlir::context_of(generic.op());
        for access in view.inputs.iter().chain(&view.outputs) {
            let ty = access.value.r#type();
            let element = mlir::element_type(ty);
            if !mlir::is_tensor(ty) {
                return Err("it works on buffers".to_string());
            }
            if mlir::signless(context, element) != element {
                return Err(format!("it has elements of type '{element}'"));
            }
        }
        if let Some(number) = view.runtimes.iter().position(|it| it.access().is_some()) {
            return Err(format!("runtime variable {number} is read from a tensor"));
        }
        if !view.domain.constraints.is_empty() {
            return Err("the domain has constraints".to_string());
        }
        if generic.has_guards() || !Inside::all_of(&generic.blocks()).is_empty() {
            return Err("it has guards".to_string());
        }
        let is_paired = |(number, it): (usize, &Accumulator)| {
            let output = view.outputs.get(number);
            output.is_some_and(|output| mlir::element_type(output.value.r#type()) == it.ty)
                && it.destination().is_none_or(|destination| destination == number)
        };
        let accumulators = &view.accumulators;
        let are_paired = accumulators.len() == view.outputs.len()
            && accumulators.iter().enumerate().all(is_paired);
        if !accumulators.is_empty() && !are_paired {
            return Err("the accumulators do not have the types of the destinations".to_string());
        }
        if generic.has_combiner() {
            return Err("a region combines the accumulators".to_string());
        }
        if generic.keeps_order() {
            return Err("the fold is ordered".to_string());
        }
        let intervals = view.domain.intervals(ir);
        let mut extents = Vec::new();
        for variable in view.domain.dims.iter().chain(&view.domain.ranges) {
            let name = match &variable.name {
                Some(name) => format!("variable '{name}'"),
                None => format!("variable {}", extents.len()),
            };
            let (Some(lower), Some(upper)) = (variable.lower, variable.upper) else {
                return Err(format!("{name} has no bounds"));
            };
            if ir.as_constant(ir.canonicalize(lower)) != Some(0) {
                return Err(format!("{name} does not start at 0"));
            }
            let extent = ir.canonicalize(ir.add(upper, ir.constant(1)));
            // MLIR rejects slices of tensors without elements.
            if ir.as_constant(extent).is_some_and(|extent| extent <= 0) {
                return Err(format!("{name} has no values"));
            }
            let is_size = 0 <= ir.interval_of(extent, &|var| intervals.of(var)).lo;
            extents.push(if is_size { extent } else { ir.max(extent, ir.constant(0)) });
        }
        let num_dims = view.domain.dims.len() as u32;
        let as_loop = |var| match var {
            Var::Range(number) => Some(ir.dim(num_dims + number)),
            Var::Dim(_) | Var::Runtime(_) => None,
        };
        let mut subscripts = Vec::new();
        for (number, access) in view.inputs.iter().chain(&view.outputs).enumerate() {
            let exprs = ir.substitute_all(&access.subscripts, &as_loop);
            if mlir::affine_map(context, ir, extents.len(), &exprs).is_none() {
                return Err(format!("map {number} is not affine, or uses a runtime variable"));
            }
            subscripts.push(exprs);
        }
        // In linalg, an operation stores every element of its destinations.
        for (number, exprs) in subscripts[view.inputs.len()..].iter().enumerate() {
            let others = exprs.iter().filter(|expr| ir.as_constant(**expr).is_none());
            let variables: BTreeSet<_> = others.clone().filter_map(|it| ir.as_var(*it)).collect();
            if variables.len() != others.count() {
                return Err(format!(
                    "a subscript of destination {number} is neither a constant nor a variable that is \
                     no other subscript"
                ));
            }
        }
        // Simplification replaces a variable of one value by 0; upstream looks for it.
        for (exprs, output) in subscripts[view.inputs.len()..].iter_mut().zip(&view.outputs) {
            let shape = mlir::shape(output.value.r#type());
            for number in 0..num_dims {
                let variable = ir.dim(number);
                let is_one = ir.as_constant(extents[number as usize]) == Some(1);
                let is_free =
                    |dim: &usize| shape[*dim] == Some(1) && ir.as_constant(exprs[*dim]) == Some(0);
                let place = (0..exprs.len()).find(is_free);
                if let Some(dim) = place.filter(|_| is_one && !exprs.contains(&variable)) {
                    exprs[dim] = variable;
                }
            }
        }
        Ok(Self { ir, generic, view, extents, subscripts })
    }

    fn convert(self) {
        let op = self.generic.op();
        let b = Builder::before(op);
        let sizes = self.build_sizes(&b);
        let num_dims = self.view.domain.dims.len();
        let operands = self.view.inputs.iter().chain(&self.view.outputs).zip(&self.subscripts);
        let mut inputs: Vec<_> =
            operands.map(|(it, index)| self.slice(&b, &sizes, it.value, index)).collect();
        let slices = inputs.split_off(self.view.inputs.len());
        let mut outputs = slices.clone();
        let accumulators = &self.view.accumulators;
        for (output, accumulator) in outputs.iter_mut().zip(accumulators) {
            if accumulator.destination().is_none() {
                let start = accumulator.build_start(&b, |_| unreachable!("it has no destination"));
                output.tensor = build_fill(&b, start, output.tensor);
            }
        }

        let loops = LoopNest { ir: self.ir, num_dims, sizes: &sizes };
        let body = self.generic.body();
        loops.build(&b, &inputs, &mut outputs, |inside, read, elements| {
            let values = copy(inside, body, &mlir::arguments(body), read);
            if accumulators.is_empty() {
                return values;
            }
            let combined = accumulators.iter().zip(elements).zip(values);
            combined.map(|((it, element), value)| it.kind.build(inside, *element, value)).collect()
        });
        if let Some(epilogue) = self.generic.epilogue() {
            let arguments = mlir::arguments(epilogue);
            let (folded, others) = arguments.split_at(outputs.len());
            let is_used = |argument: &Val| !mlir::uses(*argument).is_empty();
            let used = others.iter().zip(inputs).filter(|(argument, _)| is_used(argument));
            let (used, inputs): (Vec<_>, Vec<_>) = used.unzip();
            let loops = LoopNest { sizes: &sizes[..num_dims], ..loops };
            loops.build(&b, &inputs, &mut outputs, |inside, read, elements| {
                let old: Vec<_> = folded.iter().chain(used).copied().collect();
                copy(inside, epilogue, &old, &[elements, read].concat())
            });
        }
        let stored = outputs.into_iter().zip(slices).zip(self.view.inits());
        let results: Vec<_> = stored
            .map(|((output, slice), init)| match slice.tensor == init {
                true => output.tensor,
                false => slice.build_insert(&b, output.tensor, init),
            })
            .collect();
        mlir::replace(op, &results);
    }

    /// The extents of the loops.
    fn build_sizes(&self, b: &Builder<'c>) -> Vec<Size<'c>> {
        let runtimes = self.view.domain.runtimes.iter().enumerate();
        let names = runtimes.map(|(number, it)| match &it.name {
            Some(name) => name.to_string(),
            None => format!("rt{number}"),
        });
        let named: Vec<_> = names.zip(self.view.runtime_values()).collect();
        let is_dynamic = |extent: &Expr| self.ir.as_constant(*extent).is_none();
        let dynamic: Vec<_> = self.extents.iter().copied().filter(is_dynamic).collect();
        let mut values = match dynamic.is_empty() {
            true => Vec::new(),
            false => imap::build_sizes(b, self.ir, &named, &dynamic),
        }
        .into_iter();
        let size = |extent: &Expr| match self.ir.as_constant(*extent) {
            Some(extent) => Size::Constant(extent),
            None => Size::Value(values.next().expect("one value per dynamic extent")),
        };
        self.extents.iter().map(size).collect()
    }

    /// The part of an operand that the operation accesses: the loops have the extents of the dimensions
    /// whose subscripts they are.
    fn slice(
        &self,
        b: &Builder<'c>,
        sizes: &[Size<'c>],
        operand: Val<'c>,
        index: &[Expr],
    ) -> Slice<'c> {
        let ir = self.ir;
        let shape = mlir::shape(operand.r#type());
        let mut slice = Slice { tensor: operand, index: index.to_vec(), spans: Vec::new() };
        let mut is_whole = true;
        for (dim, expr) in slice.index.iter_mut().enumerate() {
            let found = extent_expr(ir, &self.view.runtime_values(), operand, dim);
            let span = match (ir.as_constant(*expr), ir.as_var(*expr)) {
                (Some(offset), _) => {
                    *expr = ir.constant(0);
                    is_whole &= shape[dim] == Some(1);
                    (offset, Size::Constant(1))
                }
                (_, Some(Var::Dim(number))) => {
                    let extent = self.extents[number as usize];
                    is_whole &= found.is_some_and(|it| ir.canonicalize(it) == extent);
                    (0, sizes[number as usize])
                }
                _ => {
                    (0, shape[dim].map_or_else(|| Size::Value(b.dim(operand, dim)), Size::Constant))
                }
            };
            slice.spans.push(span);
        }
        if !is_whole {
            slice.tensor = slice.build_extract(b, operand);
        }
        slice
    }
}

/// The extent of a loop or of a dimension.
#[derive(Copy, Clone)]
enum Size<'c> {
    Constant(i64),
    Value(Val<'c>),
}

impl<'c> Size<'c> {
    fn constant(self) -> Option<i64> {
        match self {
            Self::Constant(extent) => Some(extent),
            Self::Value(_) => None,
        }
    }

    fn value(self) -> Option<Val<'c>> {
        match self {
            Self::Constant(_) => None,
            Self::Value(value) => Some(value),
        }
    }
}

/// A part of an operand.
#[derive(Clone)]
struct Slice<'c> {
    tensor: Val<'c>,
    /// The subscripts in `tensor`.
    index: Vec<Expr>,
    /// Per dimension, where the part begins in the operand, and its extent.
    spans: Vec<(i64, Size<'c>)>,
}

impl<'c> Slice<'c> {
    fn shape(&self) -> Vec<Option<i64>> {
        self.spans.iter().map(|(_, size)| size.constant()).collect()
    }

    fn build_extract(&self, b: &Builder<'c>, from: Val<'c>) -> Val<'c> {
        let ty = mlir::tensor_type(&self.shape(), mlir::element_type(from.r#type()));
        self.build(b, "tensor.extract_slice", &[from], ty)
    }

    fn build_insert(&self, b: &Builder<'c>, part: Val<'c>, into: Val<'c>) -> Val<'c> {
        self.build(b, "tensor.insert_slice", &[part, into], into.r#type())
    }

    fn build(&self, b: &Builder<'c>, name: &str, tensors: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        let sizes: Vec<_> = self.spans.iter().filter_map(|(_, size)| size.value()).collect();
        let mut segments = vec![1; tensors.len()];
        segments.extend([0, sizes.len(), 0]);
        let numbers = |values: Vec<i64>| mlir::i64_array(b.context, &values);
        let static_sizes = self.shape().into_iter().map(|size| size.unwrap_or(i64::MIN)).collect();
        let attributes = [
            ("static_offsets", numbers(self.spans.iter().map(|(offset, _)| *offset).collect())),
            ("static_sizes", numbers(static_sizes)),
            ("static_strides", numbers(vec![1; self.spans.len()])),
            ("operandSegmentSizes", mlir::segments(b.context, &segments)),
        ];
        b.value_with(name, &[tensors, &sizes].concat(), ty, &attributes)
    }
}

/// The loops of a `linalg.generic`.
#[derive(Copy, Clone)]
struct LoopNest<'c, 'a> {
    ir: &'a Context,
    /// The number of parallel loops, which come first.
    num_dims: usize,
    sizes: &'a [Size<'c>],
}

impl<'c> LoopNest<'c, '_> {
    /// Builds the operation, and replaces the outputs by its results. `body` gets the elements of the
    /// inputs and of the outputs, and returns what is stored.
    fn build(
        self,
        b: &Builder<'c>,
        inputs: &[Slice<'c>],
        outputs: &mut [Slice<'c>],
        body: impl FnOnce(&Builder<'c>, &[Val<'c>], &[Val<'c>]) -> Vec<Val<'c>>,
    ) {
        let mut operands: Vec<_> = inputs.iter().map(|it| (it.tensor, it.index.clone())).collect();
        operands.extend(self.build_shape(b, inputs, outputs));
        let num_inputs = operands.len();
        operands.extend(outputs.iter().map(|it| (it.tensor, it.index.clone())));
        let (tensors, indices): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
        let maps: Vec<_> = indices
            .iter()
            .map(|index| mlir::affine_map(b.context, self.ir, self.sizes.len(), index))
            .collect::<Option<_>>()
            .expect("maps that have been converted before, of fewer loops");
        let iterator = |number| {
            let kind = if number < self.num_dims { "parallel" } else { "reduction" };
            mlir::parse_attribute(b.context, &format!("#linalg.iterator_type<{kind}>"))
        };
        let iterators: Vec<Attribute> = (0..self.sizes.len()).map(iterator).collect();
        let segments = [num_inputs, outputs.len()];
        let attributes = [
            ("indexing_maps", mlir::array(b.context, &maps)),
            ("iterator_types", mlir::array(b.context, &iterators)),
            ("operandSegmentSizes", mlir::segments(b.context, &segments)),
        ];
        let elements: Vec<_> = tensors.iter().map(|it| mlir::element_type(it.r#type())).collect();
        let results: Vec<_> = outputs.iter().map(|it| it.tensor.r#type()).collect();
        let (region, block) = mlir::region_with_block(&elements, b.location);
        let op = b.op_with("linalg.generic", &tensors, &results, &attributes, vec![region]);
        let arguments = mlir::arguments(block);
        let inside = Builder::at_end(b.context, block, b.location);
        let values = body(&inside, &arguments[..inputs.len()], &arguments[num_inputs..]);
        inside.op("linalg.yield", &values, &[]);
        self.convert_indices(block);
        for (output, result) in outputs.iter_mut().zip(mlir::results(op)) {
            output.tensor = result;
        }
    }

    /// An empty tensor with the extents of the loops that are no subscript of an operand.
    fn build_shape(
        self,
        b: &Builder<'c>,
        inputs: &[Slice<'c>],
        outputs: &[Slice<'c>],
    ) -> Option<(Val<'c>, Vec<Expr>)> {
        let operands = inputs.iter().chain(outputs);
        let known: BTreeSet<_> = operands.flat_map(|it| it.index.iter().copied()).collect();
        let loops = (0..).zip(self.sizes).map(|(number, size)| (self.ir.dim(number), *size));
        let (index, sizes): (Vec<_>, Vec<_>) =
            loops.filter(|(variable, _)| !known.contains(variable)).unzip();
        if index.is_empty() {
            return None;
        }
        let shape: Vec<_> = sizes.iter().map(|size| size.constant()).collect();
        let ty = mlir::tensor_type(&shape, b.int_type(1));
        let dynamic: Vec<_> = sizes.iter().filter_map(|size| size.value()).collect();
        Some((b.value("tensor.empty", &dynamic, ty), index))
    }

    /// Replaces each `imap.index` in a body.
    fn convert_indices(self, body: Blk<'c>) {
        let ops = mlir::ops(body);
        let mut indices = Vec::new();
        for op in &ops {
            mlir::walk(*op, &mut |op| indices.extend(mlir::is(op, "imap.index").then_some(op)));
        }
        for op in indices {
            let number = match index_variable(op) {
                Some(Var::Dim(number)) => i64::from(number),
                Some(Var::Range(number)) => self.num_dims as i64 + i64::from(number),
                _ => continue,
            };
            let b = Builder::before(op);
            let attributes = [("dim", mlir::i64_attr(b.context, number))];
            mlir::replace(op, &[b.value_with("linalg.index", &[], b.index_type(), &attributes)]);
        }
    }
}

/// Copies the operations of a body, with values for its arguments, and returns what it yields.
fn copy<'c>(
    b: &Builder<'c>,
    body: Blk<'c>,
    arguments: &[Val<'c>],
    values: &[Val<'c>],
) -> Vec<Val<'c>> {
    let mut map = arguments.iter().copied().zip(values.iter().copied()).collect::<ValueMap>();
    for op in mlir::ops(body).into_iter().filter(|op| !mlir::is(*op, "imap.yield")) {
        b.copy(op, &mut map);
    }
    let yielded = mlir::operands(mlir::terminator(body)).into_iter();
    yielded.map(|value| map.get(value).unwrap_or(value)).collect()
}

/// Emits a `linalg.fill`.
fn build_fill<'c>(b: &Builder<'c>, value: Val<'c>, tensor: Val<'c>) -> Val<'c> {
    let ty = tensor.r#type();
    let element = mlir::element_type(ty);
    let (region, block) = mlir::region_with_block(&[element, element], b.location);
    let stored = mlir::arguments(block)[0];
    Builder::at_end(b.context, block, b.location).op("linalg.yield", &[stored], &[]);
    let attributes = [("operandSegmentSizes", mlir::segments(b.context, &[1, 1]))];
    let fill = b.op_with("linalg.fill", &[value, tensor], &[ty], &attributes, vec![region]);
    mlir::result(fill, 0)
}
