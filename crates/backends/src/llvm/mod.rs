//! LLVM as the targets use it: translation, optimization, code generation.
//!
//! Calls of LLVM's C API are here and in `cpu/` only. What this module exports is safe.

mod cache;
mod divide;
mod machine;
mod pipeline;
mod substitute;

pub(crate) use cache::Cache;
pub(crate) use divide::Parts;

use crate::backend::Error;
use llvm_sys::{
    LLVMInlineAsmDialect, LLVMLinkage, LLVMModule, LLVMOpcode, LLVMTypeKind,
    analysis::{LLVMVerifierFailureAction, LLVMVerifyModule},
    bit_reader::LLVMGetBitcodeModuleInContext2,
    core::*,
    error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage},
    linker::LLVMLinkModules2,
    prelude::*,
    support::LLVMParseCommandLineOptions,
    target::{
        LLVM_InitializeAllAsmParsers, LLVM_InitializeAllAsmPrinters, LLVM_InitializeAllTargetInfos,
        LLVM_InitializeAllTargetMCs, LLVM_InitializeAllTargets, LLVMDisposeTargetData,
        LLVMSetModuleDataLayout,
    },
    target_machine::*,
    transforms::pass_builder::*,
};
use std::{
    collections::HashSet,
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    mem, ptr,
    sync::Once,
};
use substitute::{Element, conversions, substitute};
use tc_dialects::mlir::Op;
use tc_passes::target::Machine;

/// The scalar built-ins as LLVM bitcode.
static BUILTINS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtins.bc"));
/// What the names of scalar built-ins begin with.
const BUILTIN_PREFIX: &str = "tc_";

/// What to generate.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Artifact {
    /// Assembly text.
    Assembly,
    /// A relocatable object.
    Object,
}

/// The options of LLVM that [`initialize`] sets.
const OPTIONS: &[&CStr] = &[
    c"-vectorize-slp=false",
    // Wider integers would be divided and converted by functions of a library.
    c"-expand-div-rem-bits=64",
    c"-expand-fp-convert-bits=64",
    c"-unroll-peel-max-count=0",
    c"-disable-spill-fusing",
];

/// Sets LLVM up, once for the process.
///
/// Vectorization of straight-line code is switched off: it builds vectors of truth values from
/// single ones, for which LLVM 22 generates wrong code with AVX-512 (bits of other lanes stay in
/// the mask). What is worth vectors is in loops. The option of the pass builder has no effect on
/// it, the one of the command line has.
///
/// Peeling is switched off: a loop whose last iteration is peeled has an exit value, which the loop vectorizer of
/// LLVM 22 computes for the wrong lane if it narrows the interleave groups of the loop. Our loops are split already.
///
/// Folding of loads after instruction selection is switched off: LLVM 22 folds a masked load into an instruction with the
/// same mask, and unfolds it as a load without a mask, which may read past the end of memory.
pub(crate) fn initialize() {
    static ONCE: Once = Once::new();
    // SAFETY: run once, before any target is used; the strings are static.
    ONCE.call_once(|| unsafe {
        LLVM_InitializeAllTargetInfos();
        LLVM_InitializeAllTargets();
        LLVM_InitializeAllTargetMCs();
        LLVM_InitializeAllAsmPrinters();
        LLVM_InitializeAllAsmParsers();
        let options: Vec<_> = [c"tc"].iter().chain(OPTIONS).map(|it| it.as_ptr()).collect();
        LLVMParseCommandLineOptions(options.len() as c_int, options.as_ptr(), ptr::null());
    });
}

/// The instructions of a function, in order.
fn instructions(function: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    // SAFETY: a function of a module that is alive; a declaration has no blocks.
    unsafe {
        let mut block = LLVMGetFirstBasicBlock(function);
        while !block.is_null() {
            let mut instruction = LLVMGetFirstInstruction(block);
            while !instruction.is_null() {
                found.push(instruction);
                instruction = LLVMGetNextInstruction(instruction);
            }
            block = LLVMGetNextBasicBlock(block);
        }
    }
    found
}

/// The elements of a floating-point type or of a vector of such.
fn element(ty: LLVMTypeRef) -> Option<Element> {
    // SAFETY: a type of a context that is alive.
    let kind = unsafe {
        match LLVMGetTypeKind(ty) {
            LLVMTypeKind::LLVMVectorTypeKind => LLVMGetTypeKind(LLVMGetElementType(ty)),
            kind => kind,
        }
    };
    match kind {
        LLVMTypeKind::LLVMHalfTypeKind => Some(Element::Half),
        LLVMTypeKind::LLVMBFloatTypeKind => Some(Element::BFloat),
        LLVMTypeKind::LLVMFloatTypeKind => Some(Element::Single),
        LLVMTypeKind::LLVMDoubleTypeKind => Some(Element::Double),
        _ => None,
    }
}

/// The elements of the result of an instruction and of its operands.
fn elements_of(instruction: LLVMValueRef) -> impl Iterator<Item = Element> {
    // SAFETY: an instruction of a module that is alive, and as many operands as it has.
    unsafe {
        let count = LLVMGetNumOperands(instruction).max(0) as c_uint;
        let operands = (0..count).map(move |number| LLVMGetOperand(instruction, number));
        let values = operands.filter(|it| !it.is_null()).chain([instruction]);
        values.filter_map(|value| element(LLVMTypeOf(value)))
    }
}

/// The built-in that a remainder of floats is.
fn fmod(remainder: LLVMValueRef) -> &'static str {
    // SAFETY: an instruction of a module that is alive.
    match element(unsafe { LLVMTypeOf(remainder) }) {
        Some(Element::Double) => "tc_fmod_f64",
        _ => "tc_fmod_f32",
    }
}

/// The functions of a module.
fn functions(module: LLVMModuleRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    // SAFETY: the module is alive.
    unsafe {
        let mut next = LLVMGetFirstFunction(module);
        while !next.is_null() {
            found.push(next);
            next = LLVMGetNextFunction(next);
        }
    }
    found
}

/// The name of a function or a variable.
fn name(value: LLVMValueRef) -> String {
    let mut length = 0;
    // SAFETY: a value of a module that is alive, whose name has this length.
    unsafe {
        let text = LLVMGetValueName2(value, &mut length);
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length);
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// Reads a module whose functions are read when they are linked.
///
/// # Safety
/// The bitcode must outlive the module.
unsafe fn read_lazily(bitcode: &[u8], context: &Context) -> Result<OwnedModule, Error> {
    let mut module = ptr::null_mut();
    // SAFETY: as for this function. The module owns the buffer, not the bitcode.
    let failed = unsafe {
        let (data, size) = (bitcode.as_ptr().cast(), bitcode.len());
        let buffer = LLVMCreateMemoryBufferWithMemoryRange(data, size, c"".as_ptr(), 0);
        LLVMGetBitcodeModuleInContext2(context.raw, buffer, &mut module) != 0
    };
    context.check("cannot read bitcode", failed)?;
    Ok(OwnedModule(module))
}

/// Moves what another module of the same context defines into a module.
fn link(module: &OwnedModule, other: OwnedModule) -> bool {
    // SAFETY: both are alive; linking consumes the second one.
    let failed = unsafe { LLVMLinkModules2(module.0, other.0) } != 0;
    mem::forget(other);
    !failed
}

/// Text for C. A NUL byte cannot occur in what LLVM is given: names and triples that
/// hold one are cut there.
pub(crate) fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Takes over a message of LLVM's.
///
/// # Safety
/// `message` must come from LLVM, to be disposed of by `LLVMDisposeMessage`, or be null.
unsafe fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: as for this function.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// Turns LLVM's error into ours.
///
/// # Safety
/// `error` must be null or an error that is not consumed yet.
pub(crate) unsafe fn check(error: LLVMErrorRef) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: as for this function; getting the message consumes the error.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(Error::Llvm(text))
    }
}

/// Whether the processor of a target has a feature, by LLVM's name of it.
pub(crate) fn has_feature(target: &Machine, feature: &str) -> bool {
    initialize();
    tc_dialects::has_feature(&target.triple, &target.cpu, &target.features, feature)
}

/// Checks that LLVM generates code for a target.
pub(crate) fn check_target(target: &Machine) -> Result<(), Error> {
    CodeGenerator::new(target).map(|_| ())
}

/// LLVM's code generator for a machine.
struct CodeGenerator(LLVMTargetMachineRef);

impl CodeGenerator {
    fn new(target: &Machine) -> Result<Self, Error> {
        initialize();
        let [triple, cpu, features] =
            [&target.triple, &target.cpu, &target.features].map(|text| c_string(text));
        // SAFETY: the strings live across the calls.
        unsafe {
            let mut found = ptr::null_mut();
            let mut message = ptr::null_mut();
            if LLVMGetTargetFromTriple(triple.as_ptr(), &mut found, &mut message) != 0 {
                return Err(Error::Target(take_message(message).trim_end().to_string()));
            }
            // LLVM would ignore the name of an unknown processor, or end the program.
            if !tc_dialects::is_processor(&target.triple, &target.cpu) {
                return Err(Error::Target(format!(
                    "'{}' is not a processor of '{}'; known processors: {}",
                    target.cpu,
                    target.triple,
                    tc_dialects::processors(&target.triple).join(", ")
                )));
            }
            let machine = LLVMCreateTargetMachine(
                found,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelDefault,
            );
            if machine.is_null() {
                return Err(Error::Target(format!("'{}' has no code generator", target.triple)));
            }
            Ok(Self(machine))
        }
    }
}

impl Drop for CodeGenerator {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}

/// An LLVM context that collects the errors reported to it.
pub(crate) struct Context {
    pub raw: LLVMContextRef,
    errors: *mut Vec<String>,
}

impl Context {
    fn new() -> Self {
        extern "C" fn collect(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
            // SAFETY: LLVM passes a live diagnostic, and the list given below.
            unsafe {
                let severity = LLVMGetDiagInfoSeverity(info);
                if matches!(severity, llvm_sys::LLVMDiagnosticSeverity::LLVMDSError) {
                    let text = take_message(LLVMGetDiagInfoDescription(info));
                    (*errors.cast::<Vec<String>>()).push(text);
                }
            }
        }
        let errors = Box::into_raw(Box::<Vec<String>>::default());
        // SAFETY: the list lives as long as the context. Without a handler, LLVM would
        // end the process at an error.
        unsafe {
            let raw = LLVMContextCreate();
            LLVMContextSetDiagnosticHandler(raw, Some(collect), errors.cast());
            Self { raw, errors }
        }
    }

    /// The errors since the last call.
    fn check(&self, otherwise: &str, failed: bool) -> Result<(), Error> {
        // SAFETY: the list is ours, and LLVM is not running.
        let errors = unsafe { std::mem::take(&mut *self.errors) };
        if errors.is_empty() && !failed {
            return Ok(());
        }
        let text = if errors.is_empty() { otherwise.to_string() } else { errors.join("; ") };
        Err(Error::Llvm(text))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: both are owned; the context goes first, for it may still report.
        unsafe {
            LLVMContextDispose(self.raw);
            drop(Box::from_raw(self.errors));
        }
    }
}

/// A module of LLVM IR for one target.
pub(crate) struct Module {
    // Dropped in this order.
    pub raw: OwnedModule,
    generator: CodeGenerator,
    pub context: Context,
    target: Machine,
    /// Functions that another part of the program defines, or what loads it.
    elsewhere: Vec<String>,
}

pub(crate) struct OwnedModule(pub *mut LLVMModule);

impl Drop for OwnedModule {
    fn drop(&mut self) {
        // SAFETY: owned, and its context is alive by the order of `Module`'s fields.
        unsafe { LLVMDisposeModule(self.0) }
    }
}

impl Module {
    /// Translates a module of the `llvm` dialect.
    pub fn translate(op: Op, target: &Machine) -> Result<Self, Error> {
        let generator = CodeGenerator::new(target)?;
        let context = Context::new();
        // SAFETY: the context is alive, and outlives the module.
        let raw = unsafe { tc_dialects::translate_to_llvm_ir(op, context.raw.cast()) };
        let raw = OwnedModule(raw.ok_or(Error::Lowering)?.cast());
        let triple = c_string(&target.triple);
        // SAFETY: module and generator are alive; the layout is copied.
        unsafe {
            LLVMSetTarget(raw.0, triple.as_ptr());
            let layout = LLVMCreateTargetDataLayout(generator.0);
            LLVMSetModuleDataLayout(raw.0, layout);
            LLVMDisposeTargetData(layout);
        }
        let module =
            Self { raw, generator, context, target: target.clone(), elsewhere: Vec::new() };
        module.hide_variables();
        Ok(module)
    }

    /// Makes the variables that the module defines its own, whatever their names are.
    fn hide_variables(&self) {
        for variable in self.variables() {
            // SAFETY: a variable of the module.
            unsafe {
                if LLVMIsDeclaration(variable) == 0 {
                    LLVMSetLinkage(variable, LLVMLinkage::LLVMInternalLinkage);
                }
            }
        }
    }

    /// The functions of the module.
    fn functions(&self) -> Vec<LLVMValueRef> {
        functions(self.raw.0)
    }

    /// The global variables of the module.
    fn variables(&self) -> Vec<LLVMValueRef> {
        let mut found = Vec::new();
        // SAFETY: the module is alive.
        unsafe {
            let mut next = LLVMGetFirstGlobal(self.raw.0);
            while !next.is_null() {
                found.push(next);
                next = LLVMGetNextGlobal(next);
            }
        }
        found
    }

    /// Hides from the SLP vectorizer of LLVM 22 how many sign bits an unsigned integer has
    /// that is converted to a float: it computes what has many in fewer bits, and converts
    /// the result as unsigned, so that a sign-extended -1 becomes 2^32 - 1 instead of
    /// 2^64 - 1. An empty piece of assembly gives a zero that LLVM knows nothing of.
    fn hide_sign_bits(&self) {
        let kernels = self.functions().into_iter();
        for function in kernels.filter(|it| !name(*it).starts_with(BUILTIN_PREFIX)) {
            // SAFETY: functions and instructions of the module, which is alive, and values
            // made from them; the builder is disposed of.
            unsafe {
                let instructions = instructions(function);
                let extends_sign =
                    |it: &LLVMValueRef| LLVMGetInstructionOpcode(*it) == LLVMOpcode::LLVMSExt;
                let conversions: Vec<_> = instructions
                    .iter()
                    .filter(|it| LLVMGetInstructionOpcode(**it) == LLVMOpcode::LLVMUIToFP)
                    .map(|it| (*it, LLVMGetOperand(*it, 0)))
                    .filter(|(_, value)| {
                        LLVMGetTypeKind(LLVMTypeOf(*value)) == LLVMTypeKind::LLVMIntegerTypeKind
                    })
                    .collect();
                if conversions.is_empty() || !instructions.iter().any(extends_sign) {
                    continue;
                }
                let builder = LLVMCreateBuilderInContext(self.context.raw);
                LLVMPositionBuilderBefore(builder, instructions[0]);
                let wide = LLVMInt64TypeInContext(self.context.raw);
                let (mut argument, constraints) = (LLVMConstInt(wide, 0, 0), "=r,0");
                let ty = LLVMFunctionType(wide, [wide].as_mut_ptr(), 1, 0);
                let assembly = LLVMGetInlineAsm(
                    ty,
                    c"".as_ptr(),
                    0,
                    constraints.as_ptr().cast(),
                    constraints.len(),
                    0,
                    0,
                    LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
                    0,
                );
                let name = c"".as_ptr();
                let zero = LLVMBuildCall2(builder, ty, assembly, &mut argument, 1, name);
                for (conversion, value) in conversions {
                    LLVMPositionBuilderBefore(builder, conversion);
                    let ty = LLVMTypeOf(value);
                    let zero = LLVMBuildIntCast2(builder, zero, ty, 0, name);
                    let hidden = LLVMBuildXor(builder, value, zero, name);
                    LLVMSetOperand(conversion, 0, hidden);
                }
                LLVMDisposeBuilder(builder);
            }
        }
    }

    /// Links the scalar built-ins that the module needs, and hides them. They take the place of all that would become a
    /// call of the C library: see [`substitute`].
    pub fn link_builtins(&mut self) -> Result<(), Error> {
        let functions = self.functions();
        let own: HashSet<_> = functions.iter().map(|it| name(*it)).collect();
        // SAFETY: functions of the module.
        let is_declaration = |it: &LLVMValueRef| unsafe { LLVMIsDeclaration(*it) } != 0;
        let builtin = |function: LLVMValueRef| match name(function) {
            name if name.starts_with(BUILTIN_PREFIX) => Some(name),
            _ => self.substitute(function),
        };
        let missing = || {
            let (declared, defined): (Vec<_>, Vec<_>) =
                self.functions().into_iter().partition(is_declaration);
            let defined: HashSet<_> = defined.into_iter().map(name).collect();
            let wanted = declared.into_iter().filter_map(builtin);
            wanted.filter(|name| !defined.contains(name)).collect::<HashSet<_>>()
        };
        let mut needed = missing();
        let (mut remainders, mut elements) = (Vec::new(), HashSet::new());
        for instruction in functions.iter().flat_map(|it| instructions(*it)) {
            // SAFETY: an instruction of the module.
            if unsafe { LLVMGetInstructionOpcode(instruction) } == LLVMOpcode::LLVMFRem {
                needed.insert(fmod(instruction).to_string());
                remainders.push(instruction);
            }
            elements.extend(elements_of(instruction));
        }
        let conversions = conversions(|element| elements.contains(&element));
        needed.extend(conversions.iter().map(|(builtin, _)| builtin.to_string()));
        if needed.is_empty() {
            return Ok(());
        }
        // Built-ins call others instead of instructions that the processor does not have.
        while !needed.is_empty() {
            let is_linked = link(&self.raw, self.read_builtins(&needed)?);
            self.context.check("cannot link the scalar built-ins", !is_linked)?;
            let linked = mem::replace(&mut needed, missing());
            // Other unknown functions are reported later.
            needed.retain(|name| !linked.contains(name));
        }
        for function in self.functions() {
            let name = name(function);
            let is_builtin = name.starts_with(BUILTIN_PREFIX);
            if is_declaration(&function) || (own.contains(&name) && !is_builtin) {
                continue;
            }
            // SAFETY: a function of the module; string attributes are copied.
            unsafe {
                LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
                for attribute in [c"target-cpu", c"target-features", c"tune-cpu"] {
                    let length = attribute.count_bytes() as c_uint;
                    LLVMRemoveStringAttributeAtIndex(
                        function,
                        llvm_sys::LLVMAttributeFunctionIndex,
                        attribute.as_ptr(),
                        length,
                    );
                }
            }
        }
        for remainder in remainders {
            self.replace_remainder(remainder)?;
        }
        for function in self.functions().into_iter().filter(is_declaration) {
            if let Some(name) = self.substitute(function) {
                // SAFETY: both are functions of the module, and of one type.
                unsafe {
                    let ty = LLVMGlobalGetValueType(function);
                    LLVMReplaceAllUsesWith(function, self.lanewise(&name, ty)?);
                    LLVMDeleteFunction(function);
                }
            }
        }
        self.define_conversions(&conversions);
        Ok(())
    }

    /// The built-ins as a module of which linking takes the needed functions, and those that they call.
    fn read_builtins(&self, needed: &HashSet<String>) -> Result<OwnedModule, Error> {
        // SAFETY: the bitcode is static, and functions of a module that is alive.
        unsafe {
            let builtins = read_lazily(BUILTINS, &self.context)?;
            LLVMSetTarget(builtins.0, LLVMGetTarget(self.raw.0));
            LLVMSetDataLayout(builtins.0, LLVMGetDataLayoutStr(self.raw.0));
            for function in functions(builtins.0) {
                if !needed.contains(&name(function)) && LLVMIsDeclaration(function) == 0 {
                    LLVMSetLinkage(function, LLVMLinkage::LLVMLinkOnceODRLinkage);
                }
            }
            Ok(builtins)
        }
    }

    /// Allows the module to call functions that what loads it defines.
    pub fn define_elsewhere(&mut self, names: &[&str]) {
        self.elsewhere.extend(names.iter().map(ToString::to_string));
    }

    /// The name of a function or variable that the module uses without defining it, unless it is an
    /// intrinsic, allowed, or defined elsewhere.
    pub fn undefined_symbol(&self, is_allowed: &dyn Fn(&str) -> bool) -> Option<String> {
        let symbols = [self.functions(), self.variables()].concat();
        // SAFETY: symbols of the module.
        let is_needed = |it: &LLVMValueRef| unsafe {
            LLVMIsDeclaration(*it) != 0 && !LLVMGetFirstUse(*it).is_null()
        };
        let names = symbols.into_iter().filter(is_needed).map(name);
        let is_known = |name: &String| {
            name.starts_with("llvm.") || is_allowed(name) || self.elsewhere.contains(name)
        };
        names.into_iter().find(|name| !is_known(name))
    }

    /// The built-in to be called instead of a function that is only declared.
    fn substitute(&self, function: LLVMValueRef) -> Option<String> {
        // SAFETY: a function of the module, and a list as long as that of its parameters.
        let (result, parameters) = unsafe {
            let ty = LLVMGlobalGetValueType(function);
            let mut parameters = vec![ptr::null_mut(); LLVMCountParamTypes(ty) as usize];
            LLVMGetParamTypes(ty, parameters.as_mut_ptr());
            (LLVMGetReturnType(ty), parameters)
        };
        // A function of the program itself may have such a name as well.
        let fits = parameters.iter().all(|it| *it == result);
        let element = element(result).filter(|_| fits)?;
        substitute(&name(function), parameters.len(), element, &self.target)
    }

    /// Puts a call in the place of a remainder of floats, which is one of `fmod` for LLVM.
    fn replace_remainder(&self, remainder: LLVMValueRef) -> Result<(), Error> {
        // SAFETY: an instruction of the module, which goes once nothing uses it; the
        // builder is disposed of.
        unsafe {
            let (name, ty) = (fmod(remainder), LLVMTypeOf(remainder));
            let ty = LLVMFunctionType(ty, [ty, ty].as_mut_ptr(), 2, 0);
            let callee = self.lanewise(name, ty)?;
            let builder = LLVMCreateBuilderInContext(self.context.raw);
            LLVMPositionBuilderBefore(builder, remainder);
            let mut operands = [LLVMGetOperand(remainder, 0), LLVMGetOperand(remainder, 1)];
            let call = LLVMBuildCall2(builder, ty, callee, operands.as_mut_ptr(), 2, c"".as_ptr());
            LLVMReplaceAllUsesWith(remainder, call);
            LLVMInstructionEraseFromParent(remainder);
            LLVMDisposeBuilder(builder);
        }
        Ok(())
    }

    /// The built-in called `name` for a type of functions: itself, or a function that calls it
    /// for each lane of vectors, and in single precision for elements of 16 bits.
    fn lanewise(&self, name: &str, ty: LLVMTypeRef) -> Result<LLVMValueRef, Error> {
        let symbol = c_string(name);
        // SAFETY: types and values of the module's context, and a builder that is positioned
        // before it is used, and disposed of.
        unsafe {
            let scalar = LLVMGetNamedFunction(self.raw.0, symbol.as_ptr());
            if scalar.is_null() {
                return Err(Error::Llvm(format!("there is no built-in '{name}'")));
            }
            let scalar_type = LLVMGlobalGetValueType(scalar);
            if scalar_type == ty {
                return Ok(scalar);
            }
            let result = LLVMGetReturnType(ty);
            let lanes = match LLVMGetTypeKind(result) {
                LLVMTypeKind::LLVMVectorTypeKind => Some(LLVMGetVectorSize(result)),
                _ => None,
            };
            let wide = LLVMGetReturnType(scalar_type);
            let narrow = if lanes.is_some() { LLVMGetElementType(result) } else { result };
            let number = lanes.unwrap_or(0);
            let symbol = c_string(&format!("{name}.{number}.{}", LLVMGetTypeKind(narrow) as u32));
            let known = LLVMGetNamedFunction(self.raw.0, symbol.as_ptr());
            if !known.is_null() {
                return Ok(known);
            }
            let function = LLVMAddFunction(self.raw.0, symbol.as_ptr(), ty);
            LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage);
            let block = LLVMAppendBasicBlockInContext(self.context.raw, function, c"".as_ptr());
            let builder = LLVMCreateBuilderInContext(self.context.raw);
            LLVMPositionBuilderAtEnd(builder, block);
            let none = c"".as_ptr();
            let call = |lane: Option<LLVMValueRef>| {
                let mut arguments: Vec<LLVMValueRef> = (0..LLVMCountParams(function))
                    .map(|number| {
                        let mut value = LLVMGetParam(function, number);
                        if let Some(lane) = lane {
                            value = LLVMBuildExtractElement(builder, value, lane, none);
                        }
                        LLVMBuildFPCast(builder, value, wide, none)
                    })
                    .collect();
                let count = arguments.len() as c_uint;
                let pointer = arguments.as_mut_ptr();
                let value = LLVMBuildCall2(builder, scalar_type, scalar, pointer, count, none);
                LLVMBuildFPCast(builder, value, narrow, none)
            };
            let i32_type = LLVMInt32TypeInContext(self.context.raw);
            let value = match lanes {
                None => call(None),
                Some(lanes) => (0..lanes).fold(LLVMGetPoison(result), |vector, lane| {
                    let lane = LLVMConstInt(i32_type, lane.into(), 0);
                    LLVMBuildInsertElement(builder, vector, call(Some(lane)), lane, none)
                }),
            };
            LLVMBuildRet(builder, value);
            LLVMDisposeBuilder(builder);
            Ok(function)
        }
    }

    /// Gives the conversions of 16-bit formats the names by which code generation will call
    /// them, and keeps them until then.
    fn define_conversions(&self, conversions: &[(&str, &str)]) {
        if conversions.is_empty() {
            return;
        }
        // SAFETY: functions of the module, and a new global of its context.
        unsafe {
            let mut used = Vec::new();
            for (name, symbol) in conversions {
                let function = LLVMGetNamedFunction(self.raw.0, c_string(name).as_ptr());
                if !function.is_null() {
                    LLVMSetValueName2(function, symbol.as_ptr().cast(), symbol.len());
                    used.push(function);
                }
            }
            let pointer = LLVMPointerTypeInContext(self.context.raw, 0);
            let count = used.len() as u64;
            let list = LLVMConstArray2(pointer, used.as_mut_ptr(), count);
            let name = c"llvm.compiler.used".as_ptr();
            let global = LLVMAddGlobal(self.raw.0, LLVMTypeOf(list), name);
            LLVMSetInitializer(global, list);
            LLVMSetLinkage(global, LLVMLinkage::LLVMAppendingLinkage);
            LLVMSetSection(global, c"llvm.metadata".as_ptr());
        }
    }

    /// Runs LLVM's optimizations for speed.
    pub fn optimize(&mut self) -> Result<(), Error> {
        self.prepare();
        self.run_passes()
    }

    /// Says for which processor the functions are, and avoids mistakes of LLVM's passes.
    fn prepare(&mut self) {
        let attributes = [
            ("target-cpu", self.target.cpu.as_str()),
            ("target-features", self.target.features.as_str()),
            // LLVM avoids the widest vectors of a processor unless it is asked for them.
            ("prefer-vector-width", "512"),
        ];
        for function in self.functions() {
            // SAFETY: a function of the module; attributes copy their strings.
            unsafe {
                if LLVMIsDeclaration(function) != 0 {
                    continue;
                }
                for (key, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
                    let attribute = LLVMCreateStringAttribute(
                        self.context.raw,
                        key.as_ptr().cast(),
                        key.len() as c_uint,
                        value.as_ptr().cast(),
                        value.len() as c_uint,
                    );
                    LLVMAddAttributeAtIndex(
                        function,
                        llvm_sys::LLVMAttributeFunctionIndex,
                        attribute,
                    );
                }
            }
        }
        if !self.target.is_gpu() {
            self.hide_sign_bits();
        }
    }

    /// LLVM's passes, as text.
    fn passes(&self) -> String {
        match self.target.is_gpu() {
            true => "globaldce,always-inline,default<O3>".to_string(),
            false => pipeline::for_loop_nests(),
        }
    }

    /// Runs LLVM's passes on a module that is [prepared](Self::prepare).
    fn run_passes(&mut self) -> Result<(), Error> {
        self.verify()?;
        // SAFETY: module and generator are alive, the options are disposed of.
        let result = unsafe {
            let options = LLVMCreatePassBuilderOptions();
            LLVMPassBuilderOptionsSetLoopVectorization(options, 1);
            LLVMPassBuilderOptionsSetLoopInterleaving(options, 1);
            LLVMPassBuilderOptionsSetLoopUnrolling(options, 1);
            let passes = c_string(&self.passes());
            let result = LLVMRunPasses(self.raw.0, passes.as_ptr(), self.generator.0, options);
            LLVMDisposePassBuilderOptions(options);
            check(result)
        };
        result?;
        self.context.check("optimization failed", false)?;
        if self.target.is_gpu() {
            self.keep_loops();
        }
        Ok(())
    }

    /// Keeps ptxas from unrolling loops, which LLVM has unrolled where that helps. It unrolls long ones completely,
    /// loads all their operands first, and spills registers.
    fn keep_loops(&self) {
        let text = c"llvm.loop.unroll.disable";
        // SAFETY: metadata of the module's context, and instructions of the module. The first operand of the
        // metadata of a loop is itself.
        unsafe {
            let context = self.context.raw;
            let text = LLVMMDStringInContext2(context, text.as_ptr(), text.count_bytes());
            let mut option = [text];
            let option = LLVMMDNodeInContext2(context, option.as_mut_ptr(), option.len());
            let mut operands = [ptr::null_mut(), option];
            let node = LLVMMDNodeInContext2(context, operands.as_mut_ptr(), operands.len());
            let value = LLVMMetadataAsValue(context, node);
            LLVMReplaceMDNodeOperandWith(value, 0, node);
            let kind = LLVMGetMDKindIDInContext(context, c"llvm.loop".as_ptr(), 9);
            let branches = self.functions().into_iter().flat_map(instructions);
            // Only those at the end of a loop have an effect.
            for branch in branches.filter(|it| LLVMGetInstructionOpcode(*it) == LLVMOpcode::LLVMBr)
            {
                LLVMSetMetadata(branch, kind, value);
            }
        }
    }

    fn verify(&self) -> Result<(), Error> {
        // SAFETY: the module is alive; the message is ours.
        unsafe {
            let mut message = ptr::null_mut();
            let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
            let failed = LLVMVerifyModule(self.raw.0, action, &mut message) != 0;
            let message = take_message(message);
            if failed { Err(Error::Llvm(message)) } else { Ok(()) }
        }
    }

    /// The module as text.
    pub fn text(&self) -> String {
        // SAFETY: the module is alive; the text is ours.
        unsafe { take_message(LLVMPrintModuleToString(self.raw.0)) }
    }

    /// Generates code.
    pub fn emit(&self, artifact: Artifact) -> Result<Vec<u8>, Error> {
        let file = match artifact {
            Artifact::Assembly => LLVMCodeGenFileType::LLVMAssemblyFile,
            Artifact::Object => LLVMCodeGenFileType::LLVMObjectFile,
        };
        // SAFETY: code generation changes the module, so that a copy is taken, which is
        // disposed of; the buffer is copied and disposed of.
        unsafe {
            let copy = OwnedModule(LLVMCloneModule(self.raw.0));
            let mut message = ptr::null_mut();
            let mut buffer = ptr::null_mut();
            let failed = LLVMTargetMachineEmitToMemoryBuffer(
                self.generator.0,
                copy.0,
                file,
                &mut message,
                &mut buffer,
            ) != 0;
            let message = take_message(message);
            if failed {
                return Err(Error::Llvm(message));
            }
            let start = LLVMGetBufferStart(buffer).cast::<u8>();
            let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(buffer)).to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            self.context.check("code generation failed", false)?;
            if let Artifact::Object = artifact {
                check_symbols(&bytes, &self.elsewhere)?;
            }
            Ok(bytes)
        }
    }
}

/// Whether an object may refer to a symbol without defining it: allocation, copies of memory, and
/// the OpenMP runtime.
pub(crate) fn is_allowed_symbol(name: &str) -> bool {
    let allowed = ["malloc", "free", "memcpy", "memmove", "memset", "_GLOBAL_OFFSET_TABLE_"];
    allowed.contains(&name) || name.starts_with("__kmpc_") || name.starts_with("omp_")
}

/// Checks that an object refers to the symbols of [`is_allowed_symbol`], and those that are `elsewhere`, only: code generation may
/// have made calls of other ones. Formats of systems without ELF and Mach-O are not read.
fn check_symbols(bytes: &[u8], elsewhere: &[String]) -> Result<(), Error> {
    use object::{Object, ObjectSymbol};
    let Ok(object) = object::File::parse(bytes) else { return Ok(()) };
    // The names of a system begin with its prefix.
    let prefix = if object.format() == object::BinaryFormat::MachO { "_" } else { "" };
    let undefined = object.symbols().filter(|it| it.is_undefined());
    let names = undefined.filter_map(|it| it.name().ok().map(str::to_string));
    let foreign = names
        .map(|it| it.strip_prefix(prefix).unwrap_or(&it).to_string())
        .find(|it| !it.is_empty() && !is_allowed_symbol(it) && !elsewhere.contains(it));
    match foreign {
        Some(name) => Err(Error::Llvm(format!(
            "the object needs '{name}', which the compiler does not define"
        ))),
        None => Ok(()),
    }
}
