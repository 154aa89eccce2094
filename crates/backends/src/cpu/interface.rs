//! Entry functions of compiled code: for this process, which passes descriptors, and for C programs, which
//! pass pointers and sizes.

use crate::{
    backend::{Argument, Error, Extent, Formulas, Signature},
    llvm::{Module, c_string},
};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMIntPredicate, LLVMLinkage, core::*, prelude::*};
use std::{collections::BTreeMap, ffi::c_uint, ptr};
use tc_ir::{Context, Node, Var};

/// MLIR's prefix of the C interface of a function.
pub(super) const INTERFACE_PREFIX: &str = "_mlir_ciface_";
/// The prefix of function names during lowering. It is not a C identifier, so no library symbol has it.
pub(crate) const KERNEL_PREFIX: &str = "tc.kernel.";
/// The prefix of the entry functions that this process calls.
pub(crate) const ENTRY_PREFIX: &str = "_tc_entry_";
/// Attributes of functions that only move arguments: LLVM takes more than linear time for thousands of them.
const UNOPTIMIZED: [&str; 2] = ["noinline", "optnone"];
/// The instructions of x86 that store and load the mode of floating-point arithmetic.
const STORE_MODE: &str = "llvm.x86.sse.stmxcsr";
const LOAD_MODE: &str = "llvm.x86.sse.ldmxcsr";
/// The bits of that mode that flush results to zero and take subnormal operands as zero.
const FLUSH_SUBNORMALS: u64 = 0x8040;
/// The end of the name, in C, of the function that computes the bytes of a workspace.
pub(crate) const WORKSPACE_BYTES: &str = "_workspace_bytes";

impl Module {
    /// Lets functions with entries take subnormal numbers as zero, and give zero in their place. Processors compute with
    /// such numbers in microcode. The mode of the caller is restored. OpenMP gives its threads the mode of the thread
    /// that starts them.
    ///
    /// # Errors
    /// A function has no C interface.
    pub fn flush_subnormals(&self, names: &[&str]) -> Result<(), Error> {
        let call = |builder, name: &str, place| {
            // SAFETY: the module's context is alive, and the builder is positioned in one of its functions.
            unsafe {
                let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
                let callee = LLVMGetIntrinsicDeclaration(self.raw.0, id, ptr::null_mut(), 0);
                let ty = LLVMIntrinsicGetType(self.context.raw, id, ptr::null_mut(), 0);
                LLVMBuildCall2(builder, ty, callee, [place].as_mut_ptr(), 1, c"".as_ptr());
            }
        };
        for name in names {
            let function = self.c_interface(name)?;
            let Types { i32_type, .. } = self.basic_types();
            // SAFETY: all values belong to the module's context; the builder is positioned before it is used, and
            // disposed of. Each block of generated code has a terminator.
            unsafe {
                let builder = LLVMCreateBuilderInContext(self.context.raw);
                let first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function));
                LLVMPositionBuilderBefore(builder, first);
                let [caller, own] =
                    [(); 2].map(|()| LLVMBuildAlloca(builder, i32_type, c"".as_ptr()));
                call(builder, STORE_MODE, caller);
                let mode = LLVMBuildLoad2(builder, i32_type, caller, c"".as_ptr());
                let flush = LLVMConstInt(i32_type, FLUSH_SUBNORMALS, 0);
                LLVMBuildStore(builder, LLVMBuildOr(builder, mode, flush, c"".as_ptr()), own);
                call(builder, LOAD_MODE, own);
                let mut block = LLVMGetFirstBasicBlock(function);
                while !block.is_null() {
                    let last = LLVMGetBasicBlockTerminator(block);
                    if !LLVMIsAReturnInst(last).is_null() {
                        LLVMPositionBuilderBefore(builder, last);
                        call(builder, LOAD_MODE, caller);
                    }
                    block = LLVMGetNextBasicBlock(block);
                }
                LLVMDisposeBuilder(builder);
            }
        }
        Ok(())
    }

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
                self.add_attributes(callee, &["noinline"]);
                self.add_attributes(plain, &["alwaysinline"]);
                let pointer = LLVMPointerTypeInContext(self.context.raw, 0);
                let i32_type = LLVMInt32TypeInContext(self.context.raw);
                let i64_type = LLVMInt64TypeInContext(self.context.raw);
                let mut parameters = [pointer];
                let ty = LLVMFunctionType(i32_type, parameters.as_mut_ptr(), 1, 0);
                let function = LLVMAddFunction(self.raw.0, entry.as_ptr(), ty);
                self.add_attributes(function, &UNOPTIMIZED);
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
        let Types { pointer, i32_type, .. } = self.basic_types();
        for (signature, symbol) in signatures.iter().zip(symbols) {
            let callee = self.c_interface(&signature.name)?;
            let values = self.open_function(signature, symbol, Some(pointer), &[], i32_type)?;
            let passed = values.descriptors(signature);
            values.close(values.call(callee, passed));
        }
        Ok(())
    }

    /// Adds two functions for each signature of code that launches kernels: one with the symbol, on addresses of
    /// the device, and one with [`WORKSPACE_BYTES`] behind it, on sizes only.
    ///
    /// `workspace` is the end of the names of the functions that store the bytes of a workspace.
    pub fn add_device_interfaces(
        &mut self,
        signatures: &[Signature],
        symbols: &[String],
        workspace: &str,
        constant_bytes: usize,
    ) -> Result<(), Error> {
        let Types { pointer, i32_type, i64_type } = self.basic_types();
        for (signature, symbol) in signatures.iter().zip(symbols) {
            let callee = self.c_interface(&format!("{}{workspace}", signature.name))?;
            let sizes = format!("{symbol}{WORKSPACE_BYTES}");
            let values = self.open_function(signature, &sizes, None, &[], i64_type)?;
            let bytes = values.store(&[values.constant(0)]);
            let mut passed = values.descriptors(signature);
            passed.push(bytes);
            values.call(callee, passed);
            let workspace_bytes = values.function;
            values.close(values.load(bytes));

            let callee = self.c_interface(&signature.name)?;
            let more = [i64_type, i64_type, pointer];
            let values = self.open_function(signature, symbol, Some(i64_type), &more, i32_type)?;
            let count = signature.arguments.len();
            let first = count + values.sizes.len() + values.unknown.len();
            let [workspace, constants, table] =
                [0, 1, 2].map(|number| values.parameter(first + number));
            let sizes = (count..first).map(|number| values.parameter(number)).collect();
            let bytes = values.call(workspace_bytes, sizes);
            let array = |address, bytes| {
                let words = [address, address, values.constant(0), bytes, values.constant(1)];
                values.store(&words)
            };
            let mut passed = values.descriptors(signature);
            passed.push(array(workspace, bytes));
            passed.push(array(constants, values.constant(constant_bytes as i64)));
            passed.push(table);
            values.close(values.call(callee, passed));
        }
        Ok(())
    }

    /// Adds attributes without values to a function of the module.
    fn add_attributes(&self, function: LLVMValueRef, names: &[&str]) {
        for name in names {
            // SAFETY: the module and its context are alive.
            unsafe {
                let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                LLVMAddAttributeAtIndex(
                    function,
                    LLVMAttributeFunctionIndex,
                    LLVMCreateEnumAttribute(self.context.raw, kind, 0),
                );
            }
        }
    }

    /// Defines a constant array of bytes, unless the module has it.
    pub fn define_bytes(&self, symbol: &str, bytes: &[u8]) {
        let name = c_string(symbol);
        // SAFETY: the context is alive, and the bytes are copied.
        unsafe {
            if !LLVMGetNamedGlobal(self.raw.0, name.as_ptr()).is_null() {
                return;
            }
            let value =
                LLVMConstStringInContext2(self.context.raw, bytes.as_ptr().cast(), bytes.len(), 1);
            let variable = LLVMAddGlobal(self.raw.0, LLVMTypeOf(value), name.as_ptr());
            LLVMSetInitializer(variable, value);
            LLVMSetGlobalConstant(variable, 1);
            LLVMSetAlignment(variable, 16);
        }
    }

    fn basic_types(&self) -> Types {
        // SAFETY: the context is alive.
        unsafe {
            Types {
                pointer: LLVMPointerTypeInContext(self.context.raw, 0),
                i32_type: LLVMInt32TypeInContext(self.context.raw),
                i64_type: LLVMInt64TypeInContext(self.context.raw),
            }
        }
    }

    /// The function on descriptors of a name.
    fn c_interface(&self, name: &str) -> Result<LLVMValueRef, Error> {
        let symbol = c_string(&format!("{INTERFACE_PREFIX}{name}"));
        // SAFETY: the module is alive.
        let function = unsafe { LLVMGetNamedFunction(self.raw.0, symbol.as_ptr()) };
        match function.is_null() {
            true => Err(Error::Llvm(format!("'{name}' has no C interface"))),
            false => Ok(function),
        }
    }

    /// Adds a function with a parameter of type `address` for each argument, or without them, then the sizes, and
    /// then parameters of the types in `more`.
    fn open_function(
        &self,
        signature: &Signature,
        symbol: &str,
        address: Option<LLVMTypeRef>,
        more: &[LLVMTypeRef],
        result: LLVMTypeRef,
    ) -> Result<Values, Error> {
        self.free_symbol(symbol)?;
        let types = self.basic_types();
        let sizes = signature.sizes();
        let mut parameters: Vec<_> = signature.arguments.iter().filter_map(|_| address).collect();
        let count = parameters.len();
        let first = count + sizes.len();
        let end = first + signature.unknown_extents().count();
        parameters.resize(end, types.i64_type);
        parameters.extend(more);
        let name = c_string(symbol);
        // SAFETY: all values belong to the module's context, and the builder is positioned.
        let (function, builder) = unsafe {
            let count = parameters.len() as c_uint;
            let ty = LLVMFunctionType(result, parameters.as_mut_ptr(), count, 0);
            let function = LLVMAddFunction(self.raw.0, name.as_ptr(), ty);
            self.add_attributes(function, &UNOPTIMIZED);
            let block = LLVMAppendBasicBlockInContext(self.context.raw, function, c"".as_ptr());
            let builder = LLVMCreateBuilderInContext(self.context.raw);
            LLVMPositionBuilderAtEnd(builder, block);
            (function, builder)
        };
        // SAFETY: the function has these parameters.
        let parameter = |number: usize| unsafe { LLVMGetParam(function, number as c_uint) };
        let sizes = (count..).zip(&sizes);
        let unknown = (first..).zip(signature.unknown_extents());
        Ok(Values {
            function,
            builder,
            types,
            num_addresses: count,
            sizes: sizes.map(|(number, size)| (size.to_string(), parameter(number))).collect(),
            unknown: unknown.map(|(number, place)| (place, parameter(number))).collect(),
        })
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

/// The types of functions.
#[derive(Clone, Copy)]
struct Types {
    pointer: LLVMTypeRef,
    i32_type: LLVMTypeRef,
    i64_type: LLVMTypeRef,
}

/// A function that is being built, and its sizes.
struct Values {
    function: LLVMValueRef,
    builder: LLVMBuilderRef,
    types: Types,
    /// The number of parameters that are addresses, which come first.
    num_addresses: usize,
    sizes: BTreeMap<String, LLVMValueRef>,
    unknown: BTreeMap<(usize, usize), LLVMValueRef>,
}

impl Drop for Values {
    fn drop(&mut self) {
        // SAFETY: the builder is its own.
        unsafe { LLVMDisposeBuilder(self.builder) }
    }
}

impl Values {
    fn constant(&self, value: i64) -> LLVMValueRef {
        // SAFETY: a type of a context that is alive.
        unsafe { LLVMConstInt(self.types.i64_type, value as u64, 1) }
    }

    fn parameter(&self, number: usize) -> LLVMValueRef {
        // SAFETY: the caller knows the parameters of the function.
        unsafe { LLVMGetParam(self.function, number as c_uint) }
    }

    /// Calls a function with these arguments, which it takes.
    fn call(&self, callee: LLVMValueRef, mut passed: Vec<LLVMValueRef>) -> LLVMValueRef {
        // SAFETY: values of the function that the builder is in.
        unsafe {
            LLVMBuildCall2(
                self.builder,
                LLVMGlobalGetValueType(callee),
                callee,
                passed.as_mut_ptr(),
                passed.len() as c_uint,
                c"".as_ptr(),
            )
        }
    }

    /// The word at an address.
    fn load(&self, address: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: values of the function that the builder is in.
        unsafe { LLVMBuildLoad2(self.builder, self.types.i64_type, address, c"".as_ptr()) }
    }

    /// Ends the function.
    fn close(&self, result: LLVMValueRef) {
        // SAFETY: a value of the function that the builder is in.
        unsafe { LLVMBuildRet(self.builder, result) };
    }

    /// Stores the descriptors of the arguments. Their addresses are the parameters, or 0.
    fn descriptors(&self, signature: &Signature) -> Vec<LLVMValueRef> {
        let arguments = signature.arguments.iter().enumerate();
        let descriptor = |(number, argument)| {
            let address = match number < self.num_addresses {
                true => self.parameter(number),
                false => self.constant(0),
            };
            self.store(&self.descriptor(address, number, argument))
        };
        arguments.map(descriptor).collect()
    }

    /// The words of the descriptor of a row-major array: MLIR's, see [`crate::backend::Descriptor`].
    fn descriptor(
        &self,
        address: LLVMValueRef,
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
        [vec![address, address, self.constant(0)], extents, strides].concat()
    }

    /// Stores words on the stack. Returns where.
    fn store(&self, words: &[LLVMValueRef]) -> LLVMValueRef {
        let word = self.types.i64_type;
        // SAFETY: values of the function that the builder is in; pointers are as large as words
        // in the descriptors of the targets that there are, of 64 bits.
        unsafe {
            let count = self.constant(words.len() as i64);
            let array = LLVMBuildArrayAlloca(self.builder, word, count, c"".as_ptr());
            for (number, value) in words.iter().enumerate() {
                let mut index = [self.constant(number as i64)];
                let place = LLVMBuildInBoundsGEP2(
                    self.builder,
                    word,
                    array,
                    index.as_mut_ptr(),
                    1,
                    c"".as_ptr(),
                );
                LLVMBuildStore(self.builder, *value, place);
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
            let widen = |condition| LLVMBuildZExt(builder, condition, self.types.i64_type, name);
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
