//! `split-complex`: store and compute complex numbers as two floats.
//!
//! This pass replaces each value of a complex type, and of tensors and memrefs of one, by two values: of
//! the real and of the imaginary parts. Arguments and results of functions become two as well. Their
//! names get the suffixes `_re` and `_im`.
//!
//! - `complex.create`, `complex.re` and `complex.im` go away. Other operations of the dialect `complex`
//!   stay, between a `complex.create` and a `complex.re` and `complex.im`.
//! - Operations that move elements become two operations.
//! - `imap.generic`, `imap.scan`, `imap.scatter`, `imap.sort` and operations of `scf` get two operands,
//!   results and block arguments. An epilogue that changes nothing goes away.
//!
//! Before:
//!
//! ```mlir
//! func.func @f(%x: tensor<4xcomplex<f32>> {tc.name = "x"}) -> tensor<4xf32> {
//!   %0 = tensor.empty() : tensor<4xf32>
//!   %1 = imap.generic (i) domain: i in [0, 3] ins(%x[i] : tensor<4xcomplex<f32>>) outs(%0[i] : tensor<4xf32>) {
//!   ^bb0(%a: complex<f32>):
//!     %re = complex.re %a : complex<f32>
//!     imap.yield %re : f32
//!   } -> tensor<4xf32>
//! ```
//!
//! After:
//!
//! ```mlir
//! func.func @f(%x_re: tensor<4xf32> {tc.name = "x_re"}, %x_im: tensor<4xf32> {tc.name = "x_im"}) -> tensor<4xf32> {
//!   %0 = tensor.empty() : tensor<4xf32>
//!   %1 = imap.generic (i) domain: i in [0, 3] ins(%x_re[i], %x_im[i] : tensor<4xf32>, tensor<4xf32>) outs(%0[i] : tensor<4xf32>) {
//!   ^bb0(%a: f32, %b: f32):
//!     imap.yield %a : f32
//!   } -> tensor<4xf32>
//! ```
//!
//! Run this pass after fusion and before bufferization. A function in which operations of other dialects
//! have complex operands stays as it is, for upstream's passes.
//!
//! Limits: such a function neither takes nor returns complex numbers, and has no operations of `imap` on
//! them. An `imap.scatter` adds complex numbers by name, and folds them otherwise by a region.

use melior::ir::{
    Attribute, Type, ValueLike,
    operation::OperationLike,
    r#type::{FunctionType, MemRefType},
};
use std::collections::HashMap;
use tc_dialects::{
    imap::{Accumulator, AnyIndexed, CombinerKind, Indexed, Sort, Start},
    mlir::{self, Blk, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::Report,
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "split-complex",
    summary: "Store and compute complex numbers as two floats",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["arith", "complex", "imap", "tensor"],
    run,
};

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(module) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(module).into_iter().filter(|op| mlir::is(*op, "func.func")) {
        let mut ops = Vec::new();
        mlir::walk(function, &mut |op| ops.push(op));
        ops.retain(|op| has_complex(*op));
        if !ops.iter().any(|op| asks_for_split(*op))
            && !ops.iter().all(|op| Kind::of(*op).is_some())
        {
            continue;
        }
        let mut split = Split::default();
        let result = ops.iter().try_for_each(|op| {
            pass.enter(*op);
            split.op(*op)
        });
        result.map_err(|report| {
            report.emit();
            Failure
        })?;
        split.finish();
    }
    Ok(())
}

fn is_complex(ty: Type) -> bool {
    mlir::complex_part(mlir::element_type(ty)).is_some()
}

/// Whether an operation has complex operands, results or arguments of blocks.
fn has_complex(op: Op) -> bool {
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    let values = blocks.flat_map(mlir::arguments).chain(mlir::operands(op));
    values.chain(mlir::results(op)).any(|it| is_complex(it.r#type())) || has_complex_signature(op)
}

fn has_complex_signature(op: Op) -> bool {
    mlir::function_type(op)
        .is_some_and(|(arguments, results)| arguments.into_iter().chain(results).any(is_complex))
}

/// Whether an operation with complex values alone requires to split those of the function around it.
fn asks_for_split(op: Op) -> bool {
    has_complex_signature(op) || mlir::name(op).starts_with("imap.")
}

/// How an operation with complex values is replaced.
enum Kind {
    Function,
    Create,
    /// It takes the real or the imaginary part.
    Part(usize),
    Constant,
    /// It stays.
    Kept,
    /// There is one for each part.
    Moved,
    Indexed,
    Sorted,
    /// It passes values on.
    Carried,
}

impl Kind {
    /// The kind of an operation; `None` if it cannot be replaced.
    fn of(op: Op) -> Option<Self> {
        Some(match mlir::name(op) {
            "func.func" => Self::Function,
            "complex.create" => Self::Create,
            "complex.re" => Self::Part(0),
            "complex.im" => Self::Part(1),
            "complex.constant" | "arith.constant" => Self::Constant,
            "func.call" | "func.return" | "imap.yield" => Self::Carried,
            "scf.forall" | "scf.parallel" | "scf.reduce" | "scf.reduce.return" => return None,
            Sort::NAME => Self::Sorted,
            name if name.starts_with("complex.") => Self::Kept,
            name if name.starts_with("scf.") => Self::Carried,
            name if is_done_per_part(name) => Self::Moved,
            _ if AnyIndexed::cast(op).is_some() => Self::Indexed,
            _ => return None,
        })
    }
}

/// Whether an operation moves elements, and can be done for each part alone.
fn is_done_per_part(name: &str) -> bool {
    match name.split_once('.').unwrap_or_default() {
        ("tensor", name) => !matches!(name, "bitcast" | "generate" | "pad" | "yield"),
        ("memref", name) => matches!(
            name,
            "alloc"
                | "alloca"
                | "cast"
                | "collapse_shape"
                | "copy"
                | "dealloc"
                | "dim"
                | "expand_shape"
                | "load"
                | "rank"
                | "reinterpret_cast"
                | "store"
                | "subview"
        ),
        ("bufferization", name) => matches!(
            name,
            "alloc_tensor"
                | "dealloc_tensor"
                | "materialize_in_destination"
                | "to_buffer"
                | "to_tensor"
        ),
        _ => name == "arith.select",
    }
}

/// The values of a function that are split.
#[derive(Default)]
struct Split<'c> {
    /// The real and the imaginary part, by the key of the value.
    parts: HashMap<usize, [Val<'c>; 2]>,
    /// The operations that are replaced, in an order in which values are defined before they are used.
    replaced: Vec<Op<'c>>,
    /// The arguments that are replaced, by their numbers, in ascending order.
    arguments: Vec<(Blk<'c>, Vec<usize>)>,
    /// The operations of `imap` that have been rebuilt.
    indexed: Vec<AnyIndexed<'c>>,
}

impl<'c> Split<'c> {
    /// Replaces an operation, after those that define its operands.
    fn op(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        match Kind::of(op) {
            Some(Kind::Function) => self.function(op)?,
            Some(Kind::Create) => {
                let parts = [mlir::operand(op, 0), mlir::operand(op, 1)];
                self.replace(op, &parts);
            }
            Some(Kind::Part(number)) => {
                let parts = self.parts_of(mlir::operand(op, 0))?;
                self.replace(op, &parts[number..=number]);
            }
            Some(Kind::Constant) => self.constant(op)?,
            Some(Kind::Kept) => self.keep(op)?,
            Some(Kind::Moved) => self.move_parts(op)?,
            Some(Kind::Indexed) => self.indexed(op)?,
            Some(Kind::Sorted) => self.sort(op)?,
            Some(Kind::Carried) => {
                self.rebuild(op)?;
            }
            None => {
                let message = "has complex numbers, which 'split-complex' splits in operations of \
                               'imap', 'tensor', 'memref' and 'bufferization', and in loops \
                               and branches of 'scf', alone; express it by these";
                return Err(Report::op_error(op, message));
            }
        }
        Ok(())
    }

    fn parts_of(&self, value: Val<'c>) -> Result<[Val<'c>; 2], Report<'c>> {
        // Branches between blocks of a function lead here.
        self.parts.get(&mlir::value_key(value)).copied().ok_or_else(|| {
            Report::error(format!("the parts of '{}' are not known here", value.r#type()))
        })
    }

    /// Values with two parts in place of each complex one.
    fn flat(&self, values: &[Val<'c>]) -> Result<Vec<Val<'c>>, Report<'c>> {
        let mut flat = Vec::new();
        for value in values {
            match is_complex(value.r#type()) {
                true => flat.extend(self.parts_of(*value)?),
                false => flat.push(*value),
            }
        }
        Ok(flat)
    }

    /// Replaces an operation by one with parts as operands, results and arguments of blocks.
    fn rebuild(&mut self, op: Op<'c>) -> Result<Op<'c>, Report<'c>> {
        let operands = self.flat(&mlir::operands(op))?;
        let results: Vec<_> = mlir::results(op).iter().map(|it| it.r#type()).collect();
        let new = mlir::rebuild(op, &operands, &flat_types(&results)?);
        self.replace(op, &mlir::results(new));
        for region in 0..new.region_count() {
            mlir::blocks(new, region).into_iter().try_for_each(|block| self.block(block, 1))?;
        }
        Ok(new)
    }

    /// Notes what replaces the results of an operation.
    fn replace(&mut self, op: Op<'c>, values: &[Val<'c>]) {
        let mut values = values.iter().copied();
        for result in mlir::results(op) {
            let mut next = || values.next().expect("two values per complex result, or one");
            match is_complex(result.r#type()) {
                true => {
                    self.parts.insert(mlir::value_key(result), [next(), next()]);
                }
                false => mlir::replace_uses(result, next()),
            }
        }
        self.replaced.push(op);
    }

    /// Adds two arguments for each complex one. Of as many complex arguments in a row as `group`, the
    /// real parts come before the imaginary parts.
    fn block(&mut self, block: Blk<'c>, group: usize) -> Result<(), Report<'c>> {
        let arguments = mlir::arguments(block);
        let (mut replaced, mut place) = (Vec::new(), 0);
        for arguments in arguments.chunks(group) {
            place += arguments.len();
            let Some(part) = mlir::complex_part(mlir::element_type(arguments[0].r#type())) else {
                continue;
            };
            let first = place - arguments.len();
            let mut added = Vec::new();
            for argument in arguments.iter().chain(arguments) {
                let ty = with_element(argument.r#type(), part)?;
                let location = mlir::argument_location(*argument);
                added.push(mlir::insert_argument(block, place + added.len(), ty, location));
            }
            for (number, argument) in arguments.iter().enumerate() {
                let parts = [added[number], added[arguments.len() + number]];
                self.parts.insert(mlir::value_key(*argument), parts);
                replaced.push(first + number);
            }
            place += added.len();
        }
        if !replaced.is_empty() {
            self.arguments.push((block, replaced));
        }
        Ok(())
    }

    fn function(&mut self, function: Op<'c>) -> Result<(), Report<'c>> {
        let context = mlir::context_of(function);
        let (arguments, results) = mlir::function_type(function).unwrap_or_default();
        let described = mlir::array_attr(function, "arg_attrs");
        for (attribute, types) in [("arg_attrs", &arguments[..]), ("res_attrs", &results)] {
            let described = mlir::array_attr(function, attribute);
            let mut split = Vec::new();
            for (described, ty) in described.iter().zip(types) {
                match (is_complex(*ty), part_names(*described)) {
                    (false, _) => split.push(*described),
                    (true, None) => split.extend([*described; 2]),
                    (true, Some(names)) => split.extend(names.map(|name| {
                        let name = [("tc.name", mlir::string(context, &name))];
                        mlir::extend_dictionary(context, *described, &name)
                    })),
                }
            }
            if !split.is_empty() {
                mlir::set_attribute(function, attribute, mlir::array(context, &split));
            }
        }
        let new = FunctionType::new(context, &flat_types(&arguments)?, &flat_types(&results)?);
        mlir::set_attribute(function, "function_type", mlir::type_attr(new.into()));
        for block in mlir::blocks(function, 0) {
            self.block(block, 1)?;
        }
        // The arguments that are replaced still stand before their parts.
        let Some(block) = mlir::body(function, 0) else { return Ok(()) };
        let mut names = Vec::new();
        for (described, ty) in described.iter().zip(&arguments) {
            names.push(String::new());
            if is_complex(*ty) {
                names.extend(part_names(*described).unwrap_or_default());
            }
        }
        mlir::name_arguments(context, block, names.iter().map(String::as_str));
        Ok(())
    }

    /// Two constants in place of one.
    fn constant(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let (b, ty) = (Builder::before(op), mlir::result(op, 0).r#type());
        let unknown = || Report::op_error(op, "has complex elements that are not known");
        let value = op.attribute("value").map_err(|_| unknown())?;
        let part = mlir::complex_part(mlir::element_type(ty)).ok_or_else(unknown)?;
        let parts = match mlir::array_of(value)[..] {
            [re, im] => [re, im].map(|it| b.constant(part, it)),
            _ => {
                let count = mlir::shape(ty).into_iter().try_fold(1, |count: usize, extent| {
                    count.checked_mul(usize::try_from(extent?).ok()?)
                });
                let width = mlir::byte_width(part) as usize;
                let elements = count.and_then(|it| mlir::dense_bytes(value, it, 2 * width));
                let (bytes, _) = elements.ok_or_else(unknown)?;
                let ty = with_element(ty, part)?;
                [0, 1].map(|number| {
                    let parts = bytes.chunks_exact(width).skip(number).step_by(2);
                    let bits = parts.map(|part| {
                        let mut bits = [0; 8];
                        bits[..width].copy_from_slice(part);
                        u64::from_le_bytes(bits)
                    });
                    b.constant(ty, mlir::dense(ty, part, &bits.collect::<Vec<_>>()))
                })
            }
        };
        self.replace(op, &parts);
        Ok(())
    }

    /// Gives an operation of the dialect `complex` complex operands, and takes its results apart.
    fn keep(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let b = Builder::before(op);
        for (number, operand) in mlir::operands(op).into_iter().enumerate() {
            if is_complex(operand.r#type()) {
                let parts = self.parts_of(operand)?;
                let whole = b.value("complex.create", &parts, operand.r#type());
                mlir::set_operand(op, number, whole);
            }
        }
        let Some(next) = mlir::next(op) else { return Ok(()) };
        let b = Builder::before(next).located(op.location());
        for result in mlir::results(op) {
            if let Some(part) = mlir::complex_part(result.r#type()) {
                let parts = ["complex.re", "complex.im"].map(|it| b.value(it, &[result], part));
                self.parts.insert(mlir::value_key(result), parts);
            }
        }
        Ok(())
    }

    /// Does an operation that moves elements for each part; one that asks for sizes for one.
    fn move_parts(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let (operands, results) = (mlir::operands(op), mlir::results(op));
        let asks = !results.is_empty() && !results.iter().any(|it| is_complex(it.r#type()));
        let mut moved = [Vec::new(), Vec::new()];
        for (number, moved) in moved.iter_mut().enumerate().take(if asks { 1 } else { 2 }) {
            let mut of_part = Vec::new();
            for operand in &operands {
                let is_split = is_complex(operand.r#type());
                of_part.push(if is_split { self.parts_of(*operand)?[number] } else { *operand });
            }
            let mut types = Vec::new();
            for result in &results {
                let ty = result.r#type();
                let part = mlir::complex_part(mlir::element_type(ty));
                types.push(part.map_or(Ok(ty), |part| with_element(ty, part))?);
            }
            *moved = mlir::results(mlir::rebuild(op, &of_part, &types));
        }
        let [re, im] = moved;
        let values: Vec<_> = match asks {
            true => re,
            false => re.into_iter().zip(im).flat_map(|(re, im)| [re, im]).collect(),
        };
        self.replace(op, &values);
        Ok(())
    }

    fn sort(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let sort = Sort::cast(op).expect("dispatched on the name");
        let (inputs, inits) = (self.flat(&sort.inputs())?, self.flat(&sort.inits())?);
        let types: Vec<_> = mlir::results(op).iter().map(|it| it.r#type()).collect();
        let new = mlir::rebuild(op, &[&inputs[..], &inits].concat(), &flat_types(&types)?);
        let segments = mlir::segments(mlir::context_of(op), &[inputs.len(), inits.len()]);
        mlir::set_attribute(new, "operandSegmentSizes", segments);
        self.replace(op, &mlir::results(new));
        mlir::blocks(new, 0).into_iter().try_for_each(|block| self.block(block, 2))
    }

    /// An operation with indexing maps: each part has the map, the guard and the fold of the whole.
    fn indexed(&mut self, op: Op<'c>) -> Result<(), Report<'c>> {
        let context = mlir::context_of(op);
        let old = AnyIndexed::cast(op).expect("an operation with indexing maps");
        let (runtimes, inputs, inits) = (old.runtimes(), old.inputs(), old.inits());
        let accessed: Vec<_> = inputs.iter().chain(&inits).map(|it| it.r#type()).collect();
        let doubled = |attributes: Vec<Attribute<'c>>| {
            let mut types = accessed.iter();
            let doubled = attributes.into_iter().flat_map(|it| {
                let count = if types.next().is_some_and(|ty| is_complex(*ty)) { 2 } else { 1 };
                std::iter::repeat_n(it, count)
            });
            mlir::array(context, &doubled.collect::<Vec<_>>())
        };
        let maps = doubled(mlir::array_attr(op, "maps"));
        let fills = mlir::array_attr(op, "fills");
        let fills = (!fills.is_empty()).then(|| doubled(fills));
        let mut accumulators = Vec::new();
        for attribute in mlir::array_attr(op, "accumulators") {
            let Some(mut it) = Accumulator::from_attribute(attribute) else { continue };
            if let Start::Destination(number) = it.start {
                let before = inits[..number].iter().filter(|it| is_complex(it.r#type()));
                it.start = Start::Destination(number + before.count());
            }
            let Some(part) = mlir::complex_part(it.ty) else {
                accumulators.push(it.attribute());
                continue;
            };
            // A scatter is the only operation that folds complex numbers by a name.
            if !matches!(it.kind, CombinerKind::Add | CombinerKind::Assign) {
                let message = format!(
                    "folds complex numbers by '{}'; expected 'add', or a region 'combine'",
                    it.kind.name()
                );
                return Err(Report::op_error(op, message));
            }
            accumulators.extend([Accumulator { ty: part, ..it }.attribute(); 2]);
        }
        let groups = [runtimes.len(), self.flat(&inputs)?.len(), self.flat(&inits)?.len()];
        let new = self.rebuild(op)?;
        mlir::set_attribute(new, "operandSegmentSizes", mlir::segments(context, &groups));
        mlir::set_attribute(new, "maps", maps);
        mlir::set_attribute(new, "accumulators", mlir::array(context, &accumulators));
        if let Some(fills) = fills {
            mlir::set_attribute(new, "fills", fills);
        }
        self.indexed.extend(AnyIndexed::cast(new));
        Ok(())
    }

    /// Erases what has been replaced, and epilogues that change nothing.
    fn finish(self) {
        self.replaced.into_iter().rev().for_each(mlir::erase);
        for (block, numbers) in self.arguments.into_iter().rev() {
            numbers.into_iter().rev().for_each(|number| mlir::erase_argument(block, number));
        }
        for indexed in self.indexed {
            let Some(epilogue) = indexed.epilogue() else { continue };
            let (op, yielded) = (indexed.op(), mlir::terminator(epilogue));
            let folded = &mlir::arguments(epilogue)[..indexed.accumulators().len()];
            if mlir::first(epilogue) == Some(yielded) && mlir::operands(yielded) == folded {
                let results: Vec<_> = mlir::results(op).iter().map(|it| it.r#type()).collect();
                let regions = op.region_count() - 1;
                let new = mlir::rebuild_regions(op, &mlir::operands(op), &results, regions);
                mlir::replace(op, &mlir::results(new));
            }
        }
    }
}

/// The names of the parts of an argument or a result with these attributes, if it has a name.
fn part_names(described: Attribute) -> Option<[String; 2]> {
    let name = mlir::dictionary_entry(described, "tc.name").and_then(mlir::string_of)?;
    Some(["_re", "_im"].map(|suffix| format!("{name}{suffix}")))
}

/// The type with other elements, of a tensor, a memref or a scalar.
///
/// # Errors
/// There is no such type.
fn with_element<'c>(ty: Type<'c>, element: Type<'c>) -> Result<Type<'c>, Report<'c>> {
    let dims: Vec<_> = mlir::shape(ty).into_iter().map(|it| it.unwrap_or(i64::MIN)).collect();
    if mlir::element_type(ty) == ty {
        return Ok(element);
    }
    if let Ok(memref) = MemRefType::try_from(ty) {
        let layout = Some(memref.layout());
        return Ok(MemRefType::new(element, &dims, layout, memref.memory_space()).into());
    }
    if mlir::is_tensor(ty) {
        return Ok(mlir::static_tensor_type(&dims, element, mlir::encoding(ty)));
    }
    Err(Report::error(format!(
        "uses '{ty}', whose elements cannot be split; expected scalars, and tensors and memrefs with a rank"
    )))
}

/// Types with those of two parts in place of each complex one.
fn flat_types<'c>(types: &[Type<'c>]) -> Result<Vec<Type<'c>>, Report<'c>> {
    let mut flat = Vec::new();
    for ty in types {
        match mlir::complex_part(mlir::element_type(*ty)) {
            Some(part) => flat.extend([with_element(*ty, part)?; 2]),
            None => flat.push(*ty),
        }
    }
    Ok(flat)
}
