//! Calls of the functions of `bridge/Bridge.h`, and what every function that C++ calls needs.
//!
//! A function that C++ calls catches panics and turns them into an error at the
//! operation being worked on, because unwinding into C++ is undefined behaviour.

mod map;

use crate::{
    mlir::{self, Blk, Op, Val},
    text::Severity,
};
pub(crate) use map::{
    AccumulatorParts, accumulator_attribute, accumulator_parts, map_attribute, map_of,
    schedule_attribute, schedule_steps,
};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{
        Attribute, AttributeLike, BlockLike, Location, Module, ValueLike, operation::OperationRef,
    },
};
use mlir_sys::{
    MlirAttribute, MlirBlock, MlirContext, MlirDialectRegistry, MlirLocation, MlirModule,
    MlirOperation, MlirStringCallback, MlirStringRef, MlirValue,
};
use std::{
    cell::Cell,
    ffi::{CStr, CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

/// Receives a text for the state that is passed with it.
pub(crate) type Receiver = extern "C" fn(*mut c_void, MlirStringRef);

unsafe extern "C" {
    fn tcRegisterDialects(registry: MlirDialectRegistry);
    fn tcEmitDiagnostic(
        location: MlirLocation,
        severity: c_int,
        text: MlirStringRef,
        num_notes: usize,
        note_locations: *const MlirLocation,
        note_texts: *const MlirStringRef,
    );
    fn tcRecordsRemarks(context: MlirContext) -> bool;
    fn tcEmitRemark(
        location: MlirLocation,
        kind: c_int,
        pass: MlirStringRef,
        name: MlirStringRef,
        function: MlirStringRef,
        num_arguments: usize,
        keys: *const MlirStringRef,
        values: *const MlirStringRef,
    );
    fn tcOptMain(argc: c_int, argv: *const *const c_char) -> c_int;
    fn tcHloGetOrigin(op: MlirOperation, name: *mut MlirStringRef, metadata: *mut MlirStringRef);
    fn tcHloSetOrigin(op: MlirOperation, name: MlirStringRef, metadata: MlirStringRef);
    fn tcHloLayoutGet(
        context: MlirContext,
        rank: usize,
        minor_to_major: *const i64,
        properties: MlirStringRef,
    ) -> MlirAttribute;
    fn tcHloLayoutParts(
        attribute: MlirAttribute,
        rank: *mut usize,
        minor_to_major: *mut *const i64,
        properties: *mut MlirStringRef,
    ) -> bool;
    fn tcOuterWrite(block: MlirBlock) -> MlirOperation;
    fn tcConstantBounds(value: MlirValue, lower: *mut i64, upper: *mut i64);
    fn tcTileAndFuse(
        root: MlirOperation,
        num_sizes: usize,
        sizes: *const i64,
        is_parallel: bool,
        num_members: usize,
        members: *const MlirOperation,
        escapes: *const bool,
        created: *mut MlirOperation,
    ) -> bool;
    fn tcTranslateToLLVMIR(module: MlirOperation, llvm_context: *mut c_void) -> *mut c_void;
    fn tcParse(
        context: MlirContext,
        file_name: MlirStringRef,
        contents: MlirStringRef,
    ) -> MlirModule;
    fn tcIsProcessor(triple: MlirStringRef, name: MlirStringRef) -> bool;
    fn tcHasFeature(
        triple: MlirStringRef,
        processor: MlirStringRef,
        features: MlirStringRef,
        feature: MlirStringRef,
    ) -> bool;
    fn tcProcessors(triple: MlirStringRef, receive: MlirStringCallback, names: *mut c_void);
    // Of LLVM's C API. The texts are the caller's.
    fn LLVMGetDefaultTargetTriple() -> *mut c_char;
    fn LLVMGetHostCPUName() -> *mut c_char;
    fn LLVMGetHostCPUFeatures() -> *mut c_char;
    fn LLVMDisposeMessage(message: *mut c_char);
}

/// A text as C++ reads it.
pub(crate) fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// The bytes of a text of C++.
///
/// # Safety
/// `text` must be valid for `'a`.
pub(crate) unsafe fn bytes<'a>(text: MlirStringRef) -> &'a [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: a non-empty reference points at `length` bytes, by its contract.
    unsafe { std::slice::from_raw_parts(text.data.cast(), text.length) }
}

/// A text of C++. MLIR's strings may hold any bytes: those that are not UTF-8 read as empty.
///
/// # Safety
/// `text` must be valid for `'a`.
pub(crate) unsafe fn text<'a>(text: MlirStringRef) -> &'a str {
    // SAFETY: as for this function.
    str::from_utf8(unsafe { bytes(text) }).unwrap_or_default()
}

thread_local! {
    /// The operation that is being worked on, at which a panic is reported.
    static CURRENT: Cell<Option<MlirOperation>> = const { Cell::new(None) };
}

/// Notes that `op` is being worked on. A module's own location says nothing, so an
/// internal error is reported at the last operation noted.
pub(crate) fn set_current(op: Op) {
    CURRENT.set(Some(mlir::raw(op)));
}

/// What a panic says.
pub fn panic_text(payload: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "unknown panic"
    }
}

/// Runs `work` at `op`; a panic becomes an error there, and `false`.
pub(crate) fn guarded(op: MlirOperation, work: impl FnOnce() -> bool) -> bool {
    let outer = CURRENT.replace(Some(op));
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let at = CURRENT.get().unwrap_or(op);
        // SAFETY: `at` is alive: work on an operation ends before it is erased, or the
        // pass notes another one.
        let location = unsafe { Location::from_raw(mlir_sys::mlirOperationGetLocation(at)) };
        let message = format!("internal error: {} (please report it)", panic_text(&*payload));
        emit(location, Severity::Error, &message, &[]);
        false
    });
    CURRENT.set(outer);
    result
}

/// Emits a diagnostic with notes through the context of `location`.
pub(crate) fn emit(
    location: Location,
    severity: Severity,
    message: &str,
    notes: &[(Location, &str)],
) {
    let locations: Vec<_> = notes.iter().map(|(location, _)| location.to_raw()).collect();
    let texts: Vec<_> = notes.iter().map(|(_, text)| string_ref(text)).collect();
    // SAFETY: the arrays live across the call, which copies what it keeps.
    unsafe {
        tcEmitDiagnostic(
            location.to_raw(),
            severity as c_int,
            string_ref(message),
            notes.len(),
            locations.as_ptr(),
            texts.as_ptr(),
        )
    }
}

/// Whether the context records optimization remarks.
pub(crate) fn records_remarks(context: &Context) -> bool {
    // SAFETY: the context is alive.
    unsafe { tcRecordsRemarks(context.to_raw()) }
}

/// Emits an optimization remark, if the context records them.
pub(crate) fn emit_remark(
    location: Location,
    kind: c_int,
    pass: &str,
    name: &str,
    function: &str,
    arguments: &[(&str, &str)],
) {
    let keys: Vec<_> = arguments.iter().map(|(key, _)| string_ref(key)).collect();
    let values: Vec<_> = arguments.iter().map(|(_, value)| string_ref(value)).collect();
    // SAFETY: as for `emit`.
    unsafe {
        tcEmitRemark(
            location.to_raw(),
            kind,
            string_ref(pass),
            string_ref(name),
            string_ref(function),
            arguments.len(),
            keys.as_ptr(),
            values.as_ptr(),
        )
    }
}

/// Constant bounds of an index that upstream proves; `i64::MIN` and `i64::MAX` if it does not.
pub(crate) fn constant_bounds(value: Val) -> (i64, i64) {
    let (mut lower, mut upper) = (i64::MIN, i64::MAX);
    // SAFETY: the value is alive, and the bounds live across the call.
    unsafe { tcConstantBounds(value.to_raw(), &raw mut lower, &raw mut upper) }
    (lower, upper)
}

/// The first operation of a block, or of a region in it, that writes or frees memory which it does not
/// allocate.
pub(crate) fn outer_write<'c>(block: Blk<'c>) -> Option<Op<'c>> {
    // SAFETY: the block is alive, and so are the operations in it.
    unsafe { OperationRef::from_option_raw(tcOuterWrite(block.to_raw())) }
}

/// The outermost loop over the tiles of an operation; see `tcTileAndFuse`.
pub(crate) fn tile_and_fuse<'c>(
    root: Op<'c>,
    sizes: &[i64],
    is_parallel: bool,
    members: &[Op<'c>],
    escapes: &[bool],
) -> Option<Op<'c>> {
    assert_eq!(members.len(), escapes.len());
    let members: Vec<_> = members.iter().map(|op| op.to_raw()).collect();
    let mut created = MlirOperation { ptr: std::ptr::null_mut() };
    // SAFETY: the operations are alive and distinct, and the arrays live across the call. Handles of the root and
    // of members must not be used afterwards.
    unsafe {
        tcTileAndFuse(
            root.to_raw(),
            sizes.len(),
            sizes.as_ptr(),
            is_parallel,
            members.len(),
            members.as_ptr(),
            escapes.as_ptr(),
            &raw mut created,
        );
        OperationRef::from_option_raw(created)
    }
}

/// Registers every upstream dialect and ours.
pub fn register_dialects(registry: &DialectRegistry) {
    // SAFETY: the registry is alive; registering twice is harmless.
    unsafe { tcRegisterDialects(registry.to_raw()) }
}

/// The name of an instruction of HLO, and its metadata.
pub(crate) fn hlo_origin<'c>(op: Op<'c>) -> (Option<&'c str>, Option<&'c str>) {
    let none = || MlirStringRef { data: std::ptr::null(), length: 0 };
    let (mut name, mut metadata) = (none(), none());
    // SAFETY: the operation is alive; the texts are interned in the context.
    let [name, metadata] = unsafe {
        tcHloGetOrigin(mlir::raw(op), &raw mut name, &raw mut metadata);
        [name, metadata].map(|part| text(part))
    };
    let present = |text: &'c str| (!text.is_empty()).then_some(text);
    (present(name), present(metadata))
}

/// Gives an instruction of HLO its name and its metadata.
pub(crate) fn set_hlo_origin(op: Op, name: &str, metadata: Option<&str>) {
    // SAFETY: the operation is alive; the texts are copied.
    unsafe {
        tcHloSetOrigin(mlir::raw(op), string_ref(name), string_ref(metadata.unwrap_or_default()))
    }
}

/// A layout of HLO as an attribute. The dialect `hlo` must be loaded.
pub(crate) fn hlo_layout<'c>(
    context: &'c Context,
    minor_to_major: &[i64],
    properties: &str,
) -> Attribute<'c> {
    // SAFETY: the numbers and the text are copied.
    unsafe {
        Attribute::from_raw(tcHloLayoutGet(
            context.to_raw(),
            minor_to_major.len(),
            minor_to_major.as_ptr(),
            string_ref(properties),
        ))
    }
}

/// The dimensions from minor to major and the properties of an attribute, if it is a layout of HLO.
pub(crate) fn hlo_layout_of<'c>(attribute: Attribute<'c>) -> Option<(&'c [i64], &'c str)> {
    let (mut rank, mut dims) = (0, std::ptr::null());
    let mut properties = MlirStringRef { data: std::ptr::null(), length: 0 };
    // SAFETY: of a layout the parts are set to what belongs to the context.
    unsafe {
        let raw = attribute.to_raw();
        if !tcHloLayoutParts(raw, &raw mut rank, &raw mut dims, &raw mut properties) {
            return None;
        }
        let dims = if rank == 0 { &[] } else { std::slice::from_raw_parts(dims, rank) };
        Some((dims, text(properties)))
    }
}

/// Runs `mlir-opt` with our dialects and passes on a command line, and returns the
/// exit code. Passes must have been registered.
pub fn opt_main(arguments: &[String]) -> i32 {
    // An argument with a NUL byte cannot come from a command line.
    let arguments: Vec<CString> =
        arguments.iter().filter_map(|text| CString::new(text.as_str()).ok()).collect();
    let mut pointers: Vec<*const c_char> = arguments.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: a C argument vector, terminated by null.
    unsafe { tcOptMain(arguments.len() as c_int, pointers.as_ptr()) }
}

/// Translates a module of the `llvm` dialect into an `LLVMModuleRef` of the
/// `LLVMContextRef` given, or `None` with a diagnostic emitted.
///
/// # Safety
/// `llvm_context` must be a live `LLVMContextRef`; the module returned belongs to it
/// and to the caller.
pub unsafe fn translate_to_llvm_ir(op: Op, llvm_context: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: as for this function.
    let module = unsafe { tcTranslateToLLVMIR(mlir::raw(op), llvm_context) };
    (!module.is_null()).then_some(module)
}

/// Parses MLIR text or bytecode; `None` with diagnostics if it is wrong.
pub(crate) fn parse<'c>(
    context: &'c Context,
    file_name: &str,
    contents: &[u8],
) -> Option<Module<'c>> {
    let contents = MlirStringRef { data: contents.as_ptr().cast(), length: contents.len() };
    // SAFETY: the strings live across the call; the module is null or ours.
    unsafe { Module::from_option_raw(tcParse(context.to_raw(), string_ref(file_name), contents)) }
}

/// Whether LLVM generates code for a processor of this name, on the target of a triple.
/// The target must have been initialized.
pub fn is_processor(triple: &str, name: &str) -> bool {
    // SAFETY: the strings live across the call.
    unsafe { tcIsProcessor(string_ref(triple), string_ref(name)) }
}

/// Whether a processor of the target of a triple, which must have been initialized, has a
/// feature, `sse4.1` for instance: of its own, or by the list `features`.
pub fn has_feature(triple: &str, processor: &str, features: &str, feature: &str) -> bool {
    let [triple, processor, features, feature] =
        [triple, processor, features, feature].map(string_ref);
    // SAFETY: the strings live across the call.
    unsafe { tcHasFeature(triple, processor, features, feature) }
}

/// The names of the processors that LLVM generates code for, on the target of a triple, which must have
/// been initialized.
pub fn processors(triple: &str) -> Vec<String> {
    unsafe extern "C" fn receive(name: MlirStringRef, names: *mut c_void) {
        // SAFETY: the list below, and a text that lives across the call.
        unsafe { (*names.cast::<Vec<String>>()).push(text(name).to_string()) }
    }
    let mut names: Vec<String> = Vec::new();
    // SAFETY: the strings live across the call, and so does the list.
    unsafe { tcProcessors(string_ref(triple), Some(receive), (&raw mut names).cast()) };
    names.retain(|name| is_processor(triple, name));
    names
}

/// The triple, the processor and the features of the machine that runs this program, as LLVM names them.
pub fn host() -> [String; 3] {
    let take = |message: *mut c_char| {
        // SAFETY: a text that LLVM has made for its caller.
        unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeMessage(message);
            text
        }
    };
    // SAFETY: the functions take nothing.
    let messages =
        unsafe { [LLVMGetDefaultTargetTriple(), LLVMGetHostCPUName(), LLVMGetHostCPUFeatures()] };
    messages.map(take)
}

/// Silences the message that Rust prints for a panic which a trampoline catches.
pub fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

/// A context with every dialect registered, none loaded yet, and single-threaded.
pub fn new_context() -> Context {
    let registry = DialectRegistry::new();
    register_dialects(&registry);
    Context::new_with_registry(&registry, false)
}
