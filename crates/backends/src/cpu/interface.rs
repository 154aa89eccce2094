//! Entry functions of compiled code: for this process, which passes descriptors, and for C programs, which
//! pass pointers and sizes.

use crate::{
    backend::{Argument, Error, Extent, Formulas, Signature},
    llvm::{Module, c_string},
};
use llvm_sys::{LLVMIntPredicate, LLVMLinkage, core::*, prelude::*};
use std::{collections::BTreeMap, ffi::c_uint};
use tc_ir::{Context, Node, Var};

/// MLIR's prefix of the C interface of a function.
pub(super) const INTERFACE_PREFIX: &str = "_mlir_ciface_";
/// The prefix of function names during lowering. It is not a C identifier, so no library symbol has it.
pub(crate) const KERNEL_PREFIX: &str = "tc.kernel.";
/// The prefix of the entry functions that this process calls.
pub(crate) const ENTRY_PREFIX: &str = "_tc_entry_";

impl Module {
    /// Adds for each function an entry that takes the address of an array of pointers
    /// to descriptors, so that code of any number of arguments can be called.
    pub fn add_entries(&mut self, names: &[&str]) -> Result<(), Error> {
        for name in names {
            let kernel = c_string(&format!("{KERNEL_PREFIX}{name}"));
            let generated = c_string(&format!("{INTERFACE_PREFIX}{KERNEL_PREFIX}{name}"));
            let interface = format!("{INTERFACE_PREFIX}{name}");
            let entry = c_string(&format!("{ENTRY_PREFIX}{name}"));
            // SAFETY: all values belong to the module's context; the builder is
            // positioned before it is used, and disposed of.
            unsafe {
                let callee = LLVMGetNamedFunction(self.raw.0, generated.as_ptr());
                let plain = LLVMGetNamedFunction(self.raw.0, kernel.as_ptr());
                if callee.is_null() || plain.is_null() {
                    return Err(Error::Llvm(format!("'{name}' has no C interface")));
                }
                LLVMSetValueName2(callee, interface.as_ptr().cast(), interface.len());
                // The function itself is part of its C interface, which the entry calls:
                // otherwise there would be three copies of it. It goes there before anything
                // else, since LLVM takes quadratic time over a call of thousands of arguments.
                LLVMSetLinkage(plain, LLVMLinkage::LLVMInternalLinkage);
                for (function, attribute) in [(callee, "noinline"), (plain, "alwaysinline")] {
                    let kind =
                        LLVMGetEnumAttributeKindForName(attribute.as_ptr().cast(), attribute.len());
                    LLVMAddAttributeAtIndex(
                        function,
                        llvm_sys::LLVMAttributeFunctionIndex,
                        LLVMCreateEnumAttribute(self.context.raw, kind, 0),
                    );
                }
                let pointer = LLVMPointerTypeInContext(self.context.raw, 0);
                let i32_type = LLVMInt32TypeInContext(self.context.raw);
                let i64_type = LLVMInt64TypeInContext(self.context.raw);
                let mut parameters = [pointer];
                let ty = LLVMFunctionType(i32_type, parameters.as_mut_ptr(), 1, 0);
                let function = LLVMAddFunction(self.raw.0, entry.as_ptr(), ty);
                let block = LLVMAppendBasicBlockInContext(self.context.raw, function, c"".as_ptr());
                let builder = LLVMCreateBuilderInContext(self.context.raw);
                LLVMPositionBuilderAtEnd(builder, block);
                let array = LLVMGetParam(function, 0);
                let mut arguments: Vec<LLVMValueRef> = Vec::new();
                for number in 0..LLVMCountParams(callee) {
                    let mut index = [LLVMConstInt(i64_type, number.into(), 0)];
                    let place = LLVMBuildInBoundsGEP2(
                        builder,
                        pointer,
                        array,
                        index.as_mut_ptr(),
                        1,
                        c"".as_ptr(),
                    );
                    arguments.push(LLVMBuildLoad2(builder, pointer, place, c"".as_ptr()));
                }
                let result = LLVMBuildCall2(
                    builder,
                    LLVMGlobalGetValueType(callee),
                    callee,
                    arguments.as_mut_ptr(),
                    arguments.len() as c_uint,
                    c"".as_ptr(),
                );
                LLVMBuildRet(builder, result);
                LLVMDisposeBuilder(builder);
            }
        }
        Ok(())
    }

    /// Adds a function for each signature, with the symbol that goes with it.
    pub fn add_interfaces(
        &mut self,
        signatures: &[Signature],
        symbols: &[String],
    ) -> Result<(), Error> {
        for (signature, symbol) in signatures.iter().zip(symbols) {
            self.free_symbol(symbol)?;
            let callee = c_string(&format!("{INTERFACE_PREFIX}{}", signature.name));
            let count = signature.arguments.len();
            let sizes = signature.sizes();
            let num_unknown = signature.unknown_extents().count();
            // SAFETY: all values belong to the module's context; the builder is positioned before
            // it is used, and disposed of. The callee takes as many pointers as there are arguments.
            unsafe {
                let callee = LLVMGetNamedFunction(self.raw.0, callee.as_ptr());
                if callee.is_null() {
                    return Err(Error::Llvm(format!("'{}' has no C interface", signature.name)));
                }
                let pointer = LLVMPointerTypeInContext(self.context.raw, 0);
                let i64_type = LLVMInt64TypeInContext(self.context.raw);
                let i32_type = LLVMInt32TypeInContext(self.context.raw);
                let mut parameters = vec![pointer; count];
                parameters.resize(count + sizes.len() + num_unknown, i64_type);
                let ty = LLVMFunctionType(
                    i32_type,
                    parameters.as_mut_ptr(),
                    parameters.len() as c_uint,
                    0,
                );
                let name = c_string(symbol);
                let function = LLVMAddFunction(self.raw.0, name.as_ptr(), ty);
                let block = LLVMAppendBasicBlockInContext(self.context.raw, function, c"".as_ptr());
                let builder = LLVMCreateBuilderInContext(self.context.raw);
                LLVMPositionBuilderAtEnd(builder, block);
                let parameter = |number: usize| LLVMGetParam(function, number as c_uint);
                let values = Values {
                    builder,
                    i64_type,
                    sizes: (count..)
                        .zip(&sizes)
                        .map(|(number, size)| ((*size).to_string(), parameter(number)))
                        .collect(),
                    unknown: (count + sizes.len()..)
                        .zip(signature.unknown_extents())
                        .map(|(number, place)| (place, parameter(number)))
                        .collect(),
                };
                let mut passed: Vec<_> = signature
                    .arguments
                    .iter()
                    .enumerate()
                    .map(|(number, argument)| {
                        let words = values.descriptor(parameter(number), number, argument);
                        values.store(pointer, &words)
                    })
                    .collect();
                let result = LLVMBuildCall2(
                    builder,
                    LLVMGlobalGetValueType(callee),
                    callee,
                    passed.as_mut_ptr(),
                    passed.len() as c_uint,
                    c"".as_ptr(),
                );
                LLVMBuildRet(builder, result);
                LLVMDisposeBuilder(builder);
            }
        }
        Ok(())
    }

    /// Frees a symbol: renames the function or variable that has it, which is local to the module.
    fn free_symbol(&self, symbol: &str) -> Result<(), Error> {
        let name = c_string(symbol);
        // SAFETY: the module is alive; the new name is copied.
        unsafe {
            let function = LLVMGetNamedFunction(self.raw.0, name.as_ptr());
            let variable = LLVMGetNamedGlobal(self.raw.0, name.as_ptr());
            for found in [function, variable].into_iter().filter(|it| !it.is_null()) {
                if LLVMGetLinkage(found) != LLVMLinkage::LLVMInternalLinkage {
                    return Err(Error::Llvm(format!("'{symbol}' is defined twice")));
                }
                let other = format!("{symbol}.internal");
                LLVMSetValueName2(found, other.as_ptr().cast(), other.len());
            }
        }
        Ok(())
    }
}

/// The parameters of a function that are no pointers, and what computes with them.
struct Values {
    builder: LLVMBuilderRef,
    i64_type: LLVMTypeRef,
    sizes: BTreeMap<String, LLVMValueRef>,
    unknown: BTreeMap<(usize, usize), LLVMValueRef>,
}

impl Values {
    fn constant(&self, value: i64) -> LLVMValueRef {
        // SAFETY: a type of a context that is alive.
        unsafe { LLVMConstInt(self.i64_type, value as u64, 1) }
    }

    /// The words of the descriptor of a row-major array: MLIR's, see [`crate::backend::Descriptor`].
    fn descriptor(
        &self,
        pointer: LLVMValueRef,
        number: usize,
        argument: &Argument,
    ) -> Vec<LLVMValueRef> {
        let extents: Vec<_> = argument
            .shape
            .iter()
            .enumerate()
            .map(|(dim, extent)| match extent {
                Extent::Constant(extent) => self.constant(*extent as i64),
                Extent::Size(size) => self.sizes[size],
                Extent::Computed(result) => match &argument.extents {
                    Some(formulas) => self.formula(formulas, *result),
                    None => self.constant(0),
                },
                Extent::Unknown => self.unknown[&(number, dim)],
            })
            .collect();
        let mut strides = vec![self.constant(1); extents.len()];
        for dim in (1..extents.len()).rev() {
            // SAFETY: values of the function that the builder is in.
            strides[dim - 1] =
                unsafe { LLVMBuildMul(self.builder, strides[dim], extents[dim], c"".as_ptr()) };
        }
        [vec![pointer, pointer, self.constant(0)], extents, strides].concat()
    }

    /// Stores words on the stack. Returns where.
    fn store(&self, pointer: LLVMTypeRef, words: &[LLVMValueRef]) -> LLVMValueRef {
        // SAFETY: values of the function that the builder is in; pointers are as large as words
        // in the descriptors of the targets that there are, of 64 bits.
        unsafe {
            let count = self.constant(words.len() as i64);
            let array = LLVMBuildArrayAlloca(self.builder, self.i64_type, count, c"".as_ptr());
            for (number, word) in words.iter().enumerate() {
                let mut index = [self.constant(number as i64)];
                let ty = if number < 2 { pointer } else { self.i64_type };
                let place = LLVMBuildInBoundsGEP2(
                    self.builder,
                    ty,
                    array,
                    index.as_mut_ptr(),
                    1,
                    c"".as_ptr(),
                );
                LLVMBuildStore(self.builder, *word, place);
            }
            array
        }
    }

    /// The value of an expression over the sizes.
    fn formula(&self, formulas: &Formulas, result: usize) -> LLVMValueRef {
        let ir = Context::new();
        let (map, names) = formulas.map(&ir);
        let Some(expr) = map.results.get(result) else { return self.constant(0) };
        ir.fold_value(*expr, |_, node, operands| {
            self.step(node, operands.map(|(a, b)| (*a, *b)), &names)
        })
    }

    /// One step of an expression: as C's header computes it, see `HELPERS` there.
    fn step(
        &self,
        node: Node,
        operands: Option<(LLVMValueRef, LLVMValueRef)>,
        names: &[String],
    ) -> LLVMValueRef {
        let size = |number: u32| {
            let name = names.get(number as usize)?;
            self.sizes.get(name).copied()
        };
        let zero = self.constant(0);
        let Some((lhs, rhs)) = operands else {
            return match node {
                Node::Const(value) => self.constant(value),
                Node::Var(Var::Runtime(number)) => size(number).unwrap_or(zero),
                _ => zero,
            };
        };
        let (builder, name) = (self.builder, c"".as_ptr());
        // SAFETY: values of the function that the builder is in.
        unsafe {
            let compare = |predicate, lhs, rhs| LLVMBuildICmp(builder, predicate, lhs, rhs, name);
            let less = |lhs, rhs| compare(LLVMIntPredicate::LLVMIntSLT, lhs, rhs);
            let choose = |condition, yes, no| LLVMBuildSelect(builder, condition, yes, no, name);
            let quotient = || LLVMBuildSDiv(builder, lhs, rhs, name);
            // Whether the quotient is rounded towards zero, and is negative.
            let remainder = || LLVMBuildSRem(builder, lhs, rhs, name);
            let is_inexact = || compare(LLVMIntPredicate::LLVMIntNE, remainder(), zero);
            let differ = || LLVMBuildXor(builder, less(lhs, zero), less(rhs, zero), name);
            let widen = |condition| LLVMBuildZExt(builder, condition, self.i64_type, name);
            match node {
                Node::Add(..) => LLVMBuildAdd(builder, lhs, rhs, name),
                Node::Mul(..) => LLVMBuildMul(builder, lhs, rhs, name),
                Node::Min(..) => choose(less(lhs, rhs), lhs, rhs),
                Node::Max(..) => choose(less(lhs, rhs), rhs, lhs),
                Node::FloorDiv(..) => {
                    let is_below = LLVMBuildAnd(builder, is_inexact(), differ(), name);
                    LLVMBuildSub(builder, quotient(), widen(is_below), name)
                }
                Node::CeilDiv(..) => {
                    let agree = LLVMBuildNot(builder, differ(), name);
                    let is_above = LLVMBuildAnd(builder, is_inexact(), agree, name);
                    LLVMBuildAdd(builder, quotient(), widen(is_above), name)
                }
                Node::Mod(..) => {
                    let remainder = remainder();
                    let negated = LLVMBuildNeg(builder, rhs, name);
                    let positive = choose(less(rhs, zero), negated, rhs);
                    let shifted = LLVMBuildAdd(builder, remainder, positive, name);
                    choose(less(remainder, zero), shifted, remainder)
                }
                Node::Const(_) | Node::Var(_) => zero,
            }
        }
    }
}
