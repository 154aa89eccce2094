//! Decodes operations on tensors and memory.

use super::{
    Limits,
    decode::{Decoder, Slot, is_last_use, scalar_type, static_shape},
    error::Error,
    integer::{IntBinary, ScalarType},
    machine::Array,
    program::{
        Code, Global, Inst, MaskedLanes, MemoryInst, NewShape, Place, Reg, Slice, TensorReg,
    },
    scalar::{FloatBinary, Scalar},
};
use melior::ir::{Type, ValueLike, operation::OperationLike};
use tc_dialects::mlir::{self, Op, Val};

/// A dynamic number in a list of static ones.
const DYNAMIC: i64 = i64::MIN;

impl Decoder {
    /// Static numbers of an attribute, with operands in place of the dynamic ones.
    pub(super) fn mixed<'c>(
        &mut self,
        op: Op<'c>,
        attribute: &str,
        dynamic: &[Val<'c>],
    ) -> Result<Vec<Reg>, Error> {
        let mut dynamic = dynamic.iter();
        let mut regs = Vec::new();
        for number in mlir::integers_attr(op, attribute) {
            regs.push(match number {
                DYNAMIC => self.scalar(op, *dynamic.next().ok_or_else(|| self.unsupported(op))?)?,
                number => self.constant(number),
            });
        }
        Ok(regs)
    }

    /// The extents of a type, with operands in place of the dynamic ones.
    fn extents<'c>(
        &mut self,
        op: Op<'c>,
        ty: Type<'c>,
        dynamic: &[Val<'c>],
    ) -> Result<Vec<Reg>, Error> {
        let mut dynamic = dynamic.iter();
        let mut regs = Vec::new();
        for extent in mlir::shape(ty) {
            regs.push(match extent {
                Some(extent) => self.constant(extent),
                None => self.scalar(op, *dynamic.next().ok_or_else(|| self.unsupported(op))?)?,
            });
        }
        Ok(regs)
    }

    /// The part of `whole` that an operation reads or writes, `part`. Its operand groups begin with the
    /// offsets at number `group`.
    fn slice(&mut self, op: Op, group: usize, whole: Type, part: Type) -> Result<Slice, Error> {
        let offsets = self.mixed(op, "static_offsets", &mlir::operand_group(op, group))?;
        let sizes = self.mixed(op, "static_sizes", &mlir::operand_group(op, group + 1))?;
        let strides = self.mixed(op, "static_strides", &mlir::operand_group(op, group + 2))?;
        let kept = kept_dims(&mlir::integers_attr(op, "static_sizes"), &mlir::shape(part));
        let is_kept = kept.ok_or_else(|| self.unsupported(op))?;
        if mlir::shape(whole).len() != offsets.len() {
            return Err(self.unsupported(op));
        }
        Ok(Slice { offsets, sizes, strides, is_kept })
    }

    /// The extents that `expand_shape` or `collapse_shape` gives.
    fn new_shape(&mut self, op: Op) -> Result<NewShape, Error> {
        let groups = mlir::array_attr(op, "reassociation").into_iter().map(|group| {
            let dims = mlir::array_of(group).into_iter().map(mlir::integer_of);
            dims.map(|dim| usize::try_from(dim?).ok()).collect::<Option<Vec<_>>>()
        });
        let groups: Option<Vec<_>> = groups.collect();
        let groups = groups.ok_or_else(|| self.unsupported(op))?;
        if mlir::name(op).ends_with("collapse_shape") {
            return Ok(NewShape::Collapsed(groups));
        }
        let operands = mlir::operands(op);
        Ok(NewShape::Expanded(groups, self.mixed(op, "static_output_shape", &operands[1..])?))
    }

    /// An operation of `tensor`.
    pub(super) fn tensors(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let at = self.at(op);
        match name {
            "extract" => return self.read(op, code),
            "dim" => {
                let dim = self.scalar(op, operands[1])?;
                return self.extent(op, dim, code);
            }
            _ => {}
        }
        let result = mlir::results(op).first().copied();
        let result = result.ok_or_else(|| self.unsupported(op))?;
        let ty = result.r#type();
        let inst = match name {
            "empty" => {
                let shape = self.extents(op, ty, &operands)?;
                Inst::Empty { to: self.new_tensor(result), shape, at }
            }
            "cast" => {
                let from = self.tensor(op, operands[0])?;
                let shape = mlir::shape(ty);
                Inst::Reshaped { to: self.new_tensor(result), from, shape, at }
            }
            "insert" => {
                let value = self.scalar(op, operands[0])?;
                let tensor = self.tensor(op, operands[1])?;
                let take = is_last_use(op, operands[1]);
                let indices = self.scalars(op, &operands[2..])?;
                let to = self.new_tensor(result);
                Inst::InsertElement { to, tensor, take, value, indices, at }
            }
            "from_elements" => {
                let elements = self.scalars(op, &operands)?;
                let shape = static_shape(ty).ok_or_else(|| self.unsupported_type(op, result))?;
                Inst::FromElements { to: self.new_tensor(result), shape, elements }
            }
            "splat" => {
                let value = self.scalar(op, operands[0])?;
                let shape = self.extents(op, ty, &operands[1..])?;
                let tensor = self.new_tensor_reg();
                code.push(Inst::Empty { to: tensor, shape, at });
                Inst::Fill { to: self.new_tensor(result), tensor, value }
            }
            "extract_slice" => {
                let from = self.tensor(op, operands[0])?;
                let slice = self.slice(op, 1, operands[0].r#type(), ty)?;
                Inst::ExtractSlice { to: self.new_tensor(result), from, slice, at }
            }
            "insert_slice" => {
                let (source, into) = (self.tensor(op, operands[0])?, self.tensor(op, operands[1])?);
                let slice = self.slice(op, 2, ty, operands[0].r#type())?;
                let take = is_last_use(op, operands[1]);
                let to = self.new_tensor(result);
                Inst::InsertSlice { to, source, into, take, slice, at }
            }
            "expand_shape" | "collapse_shape" => {
                let from = self.tensor(op, operands[0])?;
                let shape = self.new_shape(op)?;
                Inst::Reshape { to: self.new_tensor(result), from, shape, at }
            }
            _ => return Err(self.unsupported(op)),
        };
        code.push(inst);
        Ok(())
    }

    /// `tensor.parallel_insert_slice`, into a tensor in a register.
    pub(super) fn parallel_insert(
        &mut self,
        op: Op,
        into: TensorReg,
        code: &mut Code,
    ) -> Result<(), Error> {
        if !mlir::is(op, "tensor.parallel_insert_slice") {
            return Err(self.unsupported(op));
        }
        let source = self.tensor(op, mlir::operand(op, 0))?;
        let (whole, part) = (mlir::operand(op, 1).r#type(), mlir::operand(op, 0).r#type());
        let slice = self.slice(op, 2, whole, part)?;
        let at = self.at(op);
        code.push(Inst::InsertSlice { to: into, source, into, take: true, slice, at });
        Ok(())
    }

    /// An operation of `memref`.
    pub(super) fn memories(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let results = mlir::results(op);
        let at = self.at(op);
        let inst = match name {
            "alloc" | "alloca" => {
                let shape = self.extents(op, results[0].r#type(), &mlir::operand_group(op, 0))?;
                let is_float = is_float(results[0]);
                MemoryInst::Allocate { to: self.new_memory(results[0]), shape, is_float }
            }
            "prefetch" => return Ok(()),
            "dealloc" => MemoryInst::Deallocate(self.memory(op, operands[0])?),
            "load" => {
                let memory = self.memory(op, operands[0])?;
                let indices = self.scalars(op, &operands[1..])?;
                let to = vec![self.new_scalar(results[0])];
                MemoryInst::Load { to, memory, indices, masked: None, lenient: false }
            }
            "store" => {
                let values = vec![self.scalar(op, operands[0])?];
                let memory = self.memory(op, operands[1])?;
                let indices = self.scalars(op, &operands[2..])?;
                MemoryInst::Store { values, memory, indices, mask: None }
            }
            "atomic_rmw" => self.atomic_update(op)?,
            "copy" => MemoryInst::Copy {
                from: self.memory(op, operands[0])?,
                to: self.memory(op, operands[1])?,
            },
            "dim" => {
                let memory = self.memory(op, operands[0])?;
                let dim = self.scalar(op, operands[1])?;
                MemoryInst::Extent { to: self.new_scalar(results[0]), memory, dim }
            }
            "subview" => {
                let from = self.memory(op, operands[0])?;
                let (whole, part) = (operands[0].r#type(), results[0].r#type());
                let slice = self.slice(op, 1, whole, part)?;
                MemoryInst::Subview { to: self.new_memory(results[0]), from, slice }
            }
            "cast" => {
                let from = self.memory(op, operands[0])?;
                let shape = mlir::shape(results[0].r#type());
                MemoryInst::Cast { to: self.new_memory(results[0]), from, shape }
            }
            "view" => {
                let from = self.memory(op, operands[0])?;
                let start = self.scalar(op, operands[1])?;
                let ty = results[0].r#type();
                let shape = self.extents(op, ty, &operands[2..])?;
                let width = mlir::byte_width(mlir::element_type(ty)) as usize;
                let (to, is_float) = (self.new_memory(results[0]), is_float(results[0]));
                MemoryInst::View { to, from, start, shape, width, is_float }
            }
            "reinterpret_cast" => {
                let from = self.memory(op, operands[0])?;
                let offset = self.mixed(op, "static_offsets", &mlir::operand_group(op, 1))?;
                let sizes = self.mixed(op, "static_sizes", &mlir::operand_group(op, 2))?;
                let strides = self.mixed(op, "static_strides", &mlir::operand_group(op, 3))?;
                let offset = *offset.first().ok_or_else(|| self.unsupported(op))?;
                let to = self.new_memory(results[0]);
                MemoryInst::Reinterpret { to, from, offset, sizes, strides }
            }
            "expand_shape" | "collapse_shape" => {
                let from = self.memory(op, operands[0])?;
                let shape = self.new_shape(op)?;
                MemoryInst::Reshape { to: self.new_memory(results[0]), from, shape }
            }
            "extract_aligned_pointer_as_index" => {
                let memory = self.memory(op, operands[0])?;
                MemoryInst::Address { to: self.new_scalar(results[0]), memory }
            }
            "extract_strided_metadata" => {
                let memory = self.memory(op, operands[0])?;
                let base = self.new_memory(results[0]);
                let numbers: Vec<_> = results[1..].iter().map(|it| self.new_scalar(*it)).collect();
                let (sizes, strides) = numbers[1..].split_at((numbers.len() - 1) / 2);
                MemoryInst::Metadata {
                    base,
                    offset: numbers[0],
                    sizes: sizes.to_vec(),
                    strides: strides.to_vec(),
                    memory,
                }
            }
            "get_global" => {
                let global = self.global(op)?;
                MemoryInst::Global { to: self.new_memory(results[0]), global }
            }
            // These only promise something.
            "assume_alignment" | "distinct_objects" | "memory_space_cast" => {
                for (result, operand) in results.into_iter().zip(operands) {
                    let slot = self.slot(op, operand)?;
                    self.set_slot(result, slot);
                }
                return Ok(());
            }
            _ => return Err(self.unsupported(op)),
        };
        code.push(Inst::Memory(Box::new(inst), at));
        Ok(())
    }

    fn atomic_update(&mut self, op: Op) -> Result<MemoryInst, Error> {
        let (value, memory) = (mlir::operand(op, 0), mlir::operand(op, 1));
        let rhs = self.scalar(op, value)?;
        let memory = self.memory(op, memory)?;
        let indices = self.scalars(op, &mlir::operands(op)[2..])?;
        let (element, stored) = (self.new_reg(), self.new_reg());
        let at = self.at(op);
        let ty = scalar_type(value.r#type());
        let int = |op| match ty {
            Some(ScalarType::Int(width)) => {
                Some(Inst::Int { op, width, to: stored, lhs: element, rhs, at })
            }
            _ => None,
        };
        let float = |op| match ty {
            Some(ScalarType::Float(ty)) => {
                Some(Inst::Float { op, ty, to: stored, lhs: element, rhs })
            }
            _ => None,
        };
        // In the order of `arith.AtomicRMWKind`.
        let inst = match mlir::integer_attr(op, "kind") {
            Some(0) => float(FloatBinary::Add),
            Some(1) => int(IntBinary::Add),
            Some(2) => int(IntBinary::And),
            Some(3) => Some(Inst::Copy { to: stored, from: rhs }),
            Some(4) => float(FloatBinary::Maximum),
            Some(5) => float(FloatBinary::MaxNum),
            Some(6) => int(IntBinary::MaxSigned),
            Some(7) => int(IntBinary::MaxUnsigned),
            Some(8) => float(FloatBinary::Minimum),
            Some(9) => float(FloatBinary::MinNum),
            Some(10) => int(IntBinary::MinSigned),
            Some(11) => int(IntBinary::MinUnsigned),
            Some(12) => float(FloatBinary::Mul),
            Some(13) => int(IntBinary::Mul),
            Some(14) => int(IntBinary::Or),
            Some(15) => int(IntBinary::Xor),
            _ => None,
        };
        let code = vec![inst.ok_or_else(|| self.unsupported(op))?];
        let to = self.new_scalar(mlir::result(op, 0));
        Ok(MemoryInst::Update { to, element, code, stored, memory, indices })
    }

    fn global(&mut self, op: Op) -> Result<usize, Error> {
        let name = op.attribute("name").ok().and_then(mlir::symbol_of).unwrap_or_default();
        if let Some(number) = self.global_numbers.get(name) {
            return Ok(*number);
        }
        let global = mlir::find_symbol(op, name).filter(|it| mlir::is(*it, "memref.global"));
        let global = global
            .ok_or_else(|| Error::at(op, format!("names '{name}', which is not a global")))?;
        let at = self.at(global);
        let ty = mlir::result(op, 0).r#type();
        let value = global.attribute("initial_value").ok();
        let array = match value.filter(|it| !it.to_string().starts_with("unit")) {
            Some(value) => self.dense_elements(global, ty, Some(value))?,
            None => {
                let shape = static_shape(ty).ok_or_else(|| self.unsupported(global))?;
                let count = shape.iter().try_fold(1, |count: usize, it| count.checked_mul(*it));
                let count = count.filter(|it| *it as u64 <= Limits::default().elements);
                let count = count.ok_or_else(|| self.unsupported(global))?;
                let origin = vec![0; shape.len()];
                Array { shape, origin, scalars: vec![Scalar::undefined(at); count] }
            }
        };
        let is_constant = global.has_attribute("constant");
        let is_float = is_float(mlir::result(op, 0));
        self.globals.push(Global { array, is_constant, is_float, at });
        self.global_numbers.insert(name.to_string(), self.globals.len() - 1);
        Ok(self.globals.len() - 1)
    }

    /// Loads and stores of vectors.
    pub(super) fn vector_memory(
        &mut self,
        op: Op,
        name: &str,
        code: &mut Code,
    ) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let at = self.at(op);
        let vector = mlir::results(op).first().or(operands.first()).copied();
        let vector = match name {
            "maskedstore" => operands.last().copied(),
            _ => vector,
        };
        let vector = vector.ok_or_else(|| self.unsupported(op))?;
        if mlir::shape(vector.r#type()).len() > 1 {
            return Err(self.unsupported_type(op, vector));
        }
        let inst = match name {
            "load" => {
                let memory = self.memory(op, operands[0])?;
                let indices = self.scalars(op, &operands[1..])?;
                let to = self.new_lanes(op, vector)?;
                MemoryInst::Load { to, memory, indices, masked: None, lenient: false }
            }
            "store" => {
                let memory = self.memory(op, operands[1])?;
                let indices = self.scalars(op, &operands[2..])?;
                let values = self.lanes(op, vector)?;
                MemoryInst::Store { values, memory, indices, mask: None }
            }
            // The last two operands are the mask, and the vector.
            _ => {
                let (place, vectors) = operands.split_at(operands.len() - 2);
                let memory = self.memory(op, place[0])?;
                let indices = self.scalars(op, &place[1..])?;
                let mask = self.lanes(op, vectors[0])?;
                let lanes = self.lanes(op, vectors[1])?;
                if name == "maskedload" {
                    let masked = Some(MaskedLanes { mask, others: lanes });
                    let to = self.new_lanes(op, vector)?;
                    MemoryInst::Load { to, memory, indices, masked, lenient: false }
                } else {
                    MemoryInst::Store { values: lanes, memory, indices, mask: Some(mask) }
                }
            }
        };
        code.push(Inst::Memory(Box::new(inst), at));
        Ok(())
    }

    /// An operation whose only result is one of its operands.
    fn same_tensor<'c>(
        &mut self,
        op: Op<'c>,
        operand: Val<'c>,
        code: &mut Code,
    ) -> Result<(), Error> {
        let to = Slot::Tensor(self.new_tensor(mlir::result(op, 0)));
        code.push(Inst::Move(self.moves(op, &[to], &[operand])?));
        Ok(())
    }

    /// An operation of `bufferization`.
    pub(super) fn bufferization(
        &mut self,
        op: Op,
        name: &str,
        code: &mut Code,
    ) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let results = mlir::results(op);
        let at = self.at(op);
        let inst = match name {
            "to_buffer" => {
                let tensor = self.tensor(op, operands[0])?;
                let read_only = op.has_attribute("read_only");
                let is_float = is_float(results[0]);
                let to = self.new_memory(results[0]);
                MemoryInst::OfTensor { to, tensor, read_only, is_float }
            }
            "to_tensor" => {
                let memory = self.memory(op, operands[0])?;
                MemoryInst::ToTensor { to: self.new_tensor(results[0]), memory }
            }
            "alloc_tensor" => {
                if let Some(copied) = mlir::operand_group(op, 1).first() {
                    return self.same_tensor(op, *copied, code);
                }
                let shape = self.extents(op, results[0].r#type(), &mlir::operand_group(op, 0))?;
                code.push(Inst::Empty { to: self.new_tensor(results[0]), shape, at });
                return Ok(());
            }
            "materialize_in_destination" => match self.place(op, operands[1])? {
                Place::Tensor(_) => return self.same_tensor(op, operands[0], code),
                Place::Memory(memory) => {
                    MemoryInst::Materialize { tensor: self.tensor(op, operands[0])?, memory }
                }
            },
            "clone" => {
                let from = self.memory(op, operands[0])?;
                MemoryInst::Clone { to: self.new_memory(results[0]), from }
            }
            "dealloc" => {
                let group = |number| mlir::operand_group(op, number);
                let mut owned = Vec::new();
                for (memory, condition) in group(0).into_iter().zip(group(1)) {
                    owned.push((self.memory(op, memory)?, self.scalar(op, condition)?));
                }
                let mut retained = Vec::new();
                for (memory, result) in group(2).into_iter().zip(results) {
                    retained.push((self.memory(op, memory)?, self.new_scalar(result)));
                }
                MemoryInst::DeallocateOwned { owned, retained }
            }
            _ => return Err(self.unsupported(op)),
        };
        code.push(Inst::Memory(Box::new(inst), at));
        Ok(())
    }
}

fn is_float(value: Val) -> bool {
    scalar_type(mlir::element_type(value.r#type())).is_some_and(ScalarType::is_float)
}

/// Which dimensions of static sizes a part keeps, whose other dimensions have extent 1.
fn kept_dims(sizes: &[i64], part: &[Option<i64>]) -> Option<Vec<bool>> {
    let mut rest = part.iter().peekable();
    let mut num_dropped = sizes.len().checked_sub(part.len())?;
    let mut is_kept = Vec::new();
    for size in sizes {
        let size = (*size != DYNAMIC).then_some(*size);
        let keep = rest.peek().is_some_and(|extent| **extent == size)
            || num_dropped == 0 && rest.peek().is_some();
        if keep {
            rest.next();
        } else {
            num_dropped = num_dropped.checked_sub(1).filter(|_| size == Some(1))?;
        }
        is_kept.push(keep);
    }
    rest.next().is_none().then_some(is_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_dimensions_have_extent_one() {
        let kept = |sizes: &[i64], part: &[Option<i64>]| kept_dims(sizes, part);
        assert_eq!(kept(&[4, 1, 8], &[Some(4), Some(8)]), Some(vec![true, false, true]));
        assert_eq!(kept(&[1, DYNAMIC, 1], &[None]), Some(vec![false, true, false]));
        assert_eq!(kept(&[1, 1], &[Some(1)]), Some(vec![true, false]));
        assert_eq!(kept(&[1, 1], &[]), Some(vec![false, false]));
        assert_eq!(kept(&[2, 3], &[Some(2), Some(3)]), Some(vec![true, true]));
        // A static size of a dynamic type.
        assert_eq!(kept(&[2, 3], &[None, Some(3)]), Some(vec![true, true]));
        assert_eq!(kept(&[2, 3], &[Some(3)]), None);
    }
}
