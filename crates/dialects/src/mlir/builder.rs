//! Creates and copies operations.

use super::*;

/// Creates operations at a place in a block, all with one location.
#[derive(Copy, Clone)]
pub struct Builder<'c> {
    /// The context of what is created.
    pub context: &'c Context,
    /// The location of what is created.
    pub location: Location<'c>,
    block: Blk<'c>,
    before: Option<Op<'c>>,
}

impl<'c> Builder<'c> {
    /// Creates at the end of a block.
    pub fn at_end(context: &'c Context, block: Blk<'c>, location: Location<'c>) -> Self {
        Self { context, location, block, before: None }
    }

    /// Creates at the end of a block, with the same location; and the arguments of the block.
    pub fn inside(&self, block: Blk<'c>) -> (Self, Vec<Val<'c>>) {
        (Self::at_end(self.context, block, self.location), super::arguments(block))
    }

    /// Creates directly before an operation, with its location.
    pub fn before(op: Op<'c>) -> Self {
        let block = block_ref(op.block().expect("an operation that stands in a block"));
        Self { context: context_of(op), location: op.location(), block, before: Some(op) }
    }

    /// The same place, another location.
    pub fn located(mut self, location: Location<'c>) -> Self {
        self.location = location;
        self
    }

    /// The block in which operations are created.
    pub fn block(&self) -> Blk<'c> {
        self.block
    }

    /// Creates an operation from all its parts.
    ///
    /// # Panics
    /// Never for operations whose parts are complete: a failure here is a mistake of
    /// the caller, which the trampolines report as an internal error.
    pub fn op_with(
        &self,
        name: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: Vec<Region<'c>>,
    ) -> Op<'c> {
        let op = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&self.named(attributes))
            .add_regions_vec(regions);
        self.insert(op)
    }

    /// Creates an operation without results and regions that goes to one of several blocks.
    pub fn branch(
        &self,
        name: &str,
        operands: &[Val<'c>],
        attributes: &[(&str, Attribute<'c>)],
        successors: &[Blk<'c>],
    ) -> Op<'c> {
        let successors: Vec<&Block> = successors.iter().map(|block| &**block).collect();
        let op = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_attributes(&self.named(attributes))
            .add_successors(&successors);
        self.insert(op)
    }

    fn named(&self, attributes: &[(&str, Attribute<'c>)]) -> Vec<(Identifier<'c>, Attribute<'c>)> {
        let named = |(name, attribute): &(&str, Attribute<'c>)| {
            (Identifier::new(self.context, name), *attribute)
        };
        attributes.iter().map(named).collect()
    }

    pub(super) fn insert(&self, op: OperationBuilder<'c>) -> Op<'c> {
        let op = op.build().expect("an operation with all its parts");
        op_ref(match self.before {
            Some(before) => self.block.insert_operation_before(before, op),
            None => self.block.append_operation(op),
        })
    }

    /// Creates an operation without attributes and regions.
    pub fn op(&self, name: &str, operands: &[Val<'c>], results: &[Type<'c>]) -> Op<'c> {
        self.op_with(name, operands, results, &[], Vec::new())
    }

    /// Creates an operation with one result and returns that.
    pub fn value(&self, name: &str, operands: &[Val<'c>], ty: Type<'c>) -> Val<'c> {
        result(self.op(name, operands, &[ty]), 0)
    }

    /// Creates an operation with attributes and one result and returns that.
    pub fn value_with(
        &self,
        name: &str,
        operands: &[Val<'c>],
        ty: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Val<'c> {
        result(self.op_with(name, operands, &[ty], attributes, Vec::new()), 0)
    }

    /// `arith.constant` of any attribute.
    pub fn constant(&self, ty: Type<'c>, value: Attribute<'c>) -> Val<'c> {
        self.value_with("arith.constant", &[], ty, &[("value", value)])
    }

    /// A constant of an integer type or of `index`. Wider values keep their low bits.
    pub fn integer(&self, ty: Type<'c>, value: i64) -> Val<'c> {
        self.constant(ty, integer(self.context, ty, value))
    }

    /// A constant of a floating-point type.
    pub fn float(&self, ty: Type<'c>, value: f64) -> Val<'c> {
        self.constant(ty, float(self.context, ty, value))
    }

    /// An `index` constant.
    pub fn index(&self, value: i64) -> Val<'c> {
        self.integer(self.index_type(), value)
    }

    /// The type `index`.
    pub fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    /// The type `i<width>`.
    pub fn int_type(&self, width: u32) -> Type<'c> {
        IntegerType::new(self.context, width).into()
    }

    /// `arith.cmpi` of scalars or vectors with a predicate named as in its assembly.
    pub fn compare_int(&self, predicate: &str, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
        const NAMES: [&str; 10] =
            ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];
        self.compare("arith.cmpi", &NAMES, predicate, lhs, rhs)
    }

    /// `arith.cmpf` of scalars or vectors with a predicate named as in its assembly.
    pub fn compare_float(&self, predicate: &str, lhs: Val<'c>, rhs: Val<'c>) -> Val<'c> {
        const NAMES: [&str; 16] = [
            "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult",
            "ule", "une", "uno", "true",
        ];
        self.compare("arith.cmpf", &NAMES, predicate, lhs, rhs)
    }

    fn compare(
        &self,
        op: &str,
        names: &[&str],
        predicate: &str,
        lhs: Val<'c>,
        rhs: Val<'c>,
    ) -> Val<'c> {
        let number = names.iter().position(|name| *name == predicate);
        let number = number.expect("a predicate of the comparison");
        let predicate = i64_attr(self.context, number as i64);
        let (operands, bit) = (lhs.r#type(), self.int_type(1));
        let ty = if operands.is_vector() {
            let extents: Vec<u64> =
                shape(operands).into_iter().flatten().map(|extent| extent as u64).collect();
            Type::vector(&extents, bit)
        } else {
            bit
        };
        self.value_with(op, &[lhs, rhs], ty, &[("predicate", predicate)])
    }

    /// `arith.select`.
    pub fn select(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> Val<'c> {
        self.value("arith.select", &[condition, yes, no], yes.r#type())
    }

    /// The extent of a dimension of a tensor or memref: a constant where it is static.
    pub fn dim(&self, tensor: Val<'c>, dim: usize) -> Val<'c> {
        if let Some(Some(extent)) = shape(tensor.r#type()).get(dim) {
            return self.index(*extent);
        }
        let name = if is_memref(tensor.r#type()) { "memref.dim" } else { "tensor.dim" };
        let dim = self.index(dim as i64);
        self.value(name, &[tensor, dim], self.index_type())
    }

    /// An empty tensor of the extents of another one.
    pub fn empty_like(&self, tensor: Val<'c>, element: Type<'c>) -> Val<'c> {
        let shape = shape(tensor.r#type());
        let dynamic = (0..shape.len()).filter(|dim| shape[*dim].is_none());
        let sizes: Vec<_> = dynamic.map(|dim| self.dim(tensor, dim)).collect();
        self.value("tensor.empty", &sizes, tensor_type(&shape, element))
    }

    /// A copy of a tensor, which shares its memory with no other tensor.
    pub fn copy_tensor(&self, tensor: Val<'c>) -> Val<'c> {
        let attributes = [("operandSegmentSizes", segments(self.context, &[0, 1, 0]))];
        self.value_with("bufferization.alloc_tensor", &[tensor], tensor.r#type(), &attributes)
    }

    /// Copies an operation, with operands mapped, to this place; its results map to
    /// those of the copy.
    pub fn copy(&self, op: Op<'c>, map: &mut ValueMap<'c>) -> Op<'c> {
        // SAFETY: the clone is owned by the block it is put into at once.
        let copy: Op = unsafe { OperationRef::from_raw(mlir_sys::mlirOperationClone(op.to_raw())) };
        let raw = copy.to_raw();
        // SAFETY: as above; the position is in the same block.
        unsafe {
            match self.before {
                Some(before) => mlir_sys::mlirBlockInsertOwnedOperationBefore(
                    self.block.to_raw(),
                    before.to_raw(),
                    raw,
                ),
                None => mlir_sys::mlirBlockAppendOwnedOperation(self.block.to_raw(), raw),
            }
        }
        walk(copy, &mut |inner| {
            for (index, value) in operands(inner).into_iter().enumerate() {
                if let Some(new) = map.get(value) {
                    set_operand(inner, index, new);
                }
            }
        });
        for (old, new) in results(op).into_iter().zip(results(copy)) {
            map.insert(old, new);
        }
        copy
    }
}

/// Copies all operations of a block to the end of another one, whose arguments replace those of the
/// first.
pub fn copy_block<'c>(context: &'c Context, from: Blk<'c>, to: Blk<'c>, location: Location<'c>) {
    let mut map = arguments(from).into_iter().zip(arguments(to)).collect();
    let builder = Builder::at_end(context, to, location);
    for op in ops(from) {
        builder.copy(op, &mut map);
    }
}

/// Values, and the values that replace them in a copy.
#[derive(Clone, Default)]
pub struct ValueMap<'c>(HashMap<usize, Val<'c>>);

impl<'c> FromIterator<(Val<'c>, Val<'c>)> for ValueMap<'c> {
    /// From pairs of a value and its replacement.
    fn from_iter<I: IntoIterator<Item = (Val<'c>, Val<'c>)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(old, new)| (value_key(old), new)).collect())
    }
}

impl<'c> ValueMap<'c> {
    /// Lets `new` stand for `old`.
    pub fn insert(&mut self, old: Val<'c>, new: Val<'c>) {
        self.0.insert(value_key(old), new);
    }

    /// What stands for a value, if anything was said.
    pub fn get(&self, value: Val<'c>) -> Option<Val<'c>> {
        self.0.get(&value_key(value)).copied()
    }
}
