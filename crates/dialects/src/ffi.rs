//! Everything that crosses into C++: the declarations of `bridge/Bridge.h` and the
//! functions that it calls.
//!
//! Every function exported here catches panics and turns them into an error at the
//! operation being worked on, because unwinding into C++ is undefined behaviour.

mod map;
mod tiling;

use crate::{
    Language, axon,
    diagnostic::{RemarkKind, Severity},
    hlo,
    imap::{self, AnyIndexed, Indexed},
    mlir::{self, Op, Val},
    pass::{Options, PassInfo, PassOption, PassRun, PipelineInfo},
    tc, tml,
};
pub(crate) use map::{
    AccumulatorParts, accumulator_attribute, accumulator_parts, map_attribute, map_of,
};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Attribute, AttributeLike, Location, Module, OperationRef, ValueLike},
};
use mlir_sys::{
    MlirAttribute, MlirContext, MlirDialectRegistry, MlirLocation, MlirModule, MlirOperation,
    MlirStringRef, MlirValue,
};
use std::{
    cell::Cell,
    ffi::{CString, c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

#[repr(C)]
struct TcPassOption {
    name: MlirStringRef,
    description: MlirStringRef,
    default: MlirStringRef,
}

/// `TcPass` of the bridge, followed by what only Rust reads.
#[repr(C)]
struct TcPass {
    argument: MlirStringRef,
    description: MlirStringRef,
    anchor: MlirStringRef,
    options: *const TcPassOption,
    num_options: usize,
    run: extern "C" fn(*const TcPass, MlirOperation, *const MlirStringRef) -> bool,
    dependent_dialects: extern "C" fn(*const TcPass, MlirDialectRegistry),
    info: &'static PassInfo,
}

/// Receives a text for the state that is passed with it.
type Receiver = extern "C" fn(*mut c_void, MlirStringRef);

/// `TcPipeline` of the bridge, followed by a field that only Rust reads.
#[repr(C)]
struct TcPipeline {
    argument: MlirStringRef,
    description: MlirStringRef,
    options: *const TcPassOption,
    num_options: usize,
    build: extern "C" fn(
        *const TcPipeline,
        *const MlirStringRef,
        *mut c_void,
        accept: Receiver,
        reject: Receiver,
    ),
    info: &'static PipelineInfo,
}

unsafe extern "C" {
    fn tcRegisterDialects(registry: MlirDialectRegistry);
    fn tcInsertDialect(registry: MlirDialectRegistry, name: MlirStringRef);
    fn tcRegisterPass(pass: *const c_void);
    fn tcRegisterPipeline(
        argument: MlirStringRef,
        description: MlirStringRef,
        pipeline: MlirStringRef,
    );
    fn tcRegisterPipelineBuilder(pipeline: *const c_void);
    fn tcEmitDiagnostic(
        location: MlirLocation,
        severity: c_int,
        text: MlirStringRef,
        num_notes: usize,
        note_locations: *const MlirLocation,
        note_texts: *const MlirStringRef,
    );
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
    fn tcConstantBounds(value: MlirValue, lower: *mut i64, upper: *mut i64);
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
}

fn string_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// # Safety
/// `text` must be valid for `'a`.
unsafe fn bytes<'a>(text: MlirStringRef) -> &'a [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: a non-empty reference points at `length` bytes, by its contract.
    unsafe { std::slice::from_raw_parts(text.data.cast(), text.length) }
}

/// # Safety
/// `text` must be valid for `'a`. MLIR's strings may hold any bytes: those that are
/// not UTF-8 read as empty.
unsafe fn text<'a>(text: MlirStringRef) -> &'a str {
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
fn guarded(op: MlirOperation, work: impl FnOnce() -> bool) -> bool {
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

/// Emits an optimization remark, if the context records them.
pub(crate) fn emit_remark(
    location: Location,
    kind: RemarkKind,
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
            kind as c_int,
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

/// Registers every upstream dialect and ours.
pub fn register_dialects(registry: &DialectRegistry) {
    // SAFETY: the registry is alive; registering twice is harmless.
    unsafe { tcRegisterDialects(registry.to_raw()) }
}

/// Options for MLIR's pass registry, which keeps them until the process ends.
fn leak_options(options: &[PassOption]) -> &'static [TcPassOption] {
    let options: Vec<_> = options
        .iter()
        .map(|option| TcPassOption {
            name: string_ref(option.name),
            description: string_ref(option.description),
            default: string_ref(option.default),
        })
        .collect();
    options.leak()
}

/// The values that C++ passes for options.
///
/// # Safety
/// There must be one value per option.
unsafe fn option_values(options: &[PassOption], values: *const MlirStringRef) -> Vec<String> {
    // SAFETY: as for this function.
    (0..options.len()).map(|index| unsafe { text(*values.add(index)) }.to_string()).collect()
}

/// Registers a pass with MLIR's pass registry. Called once per pass and process.
pub(crate) fn register_pass(info: &'static PassInfo) {
    let options = leak_options(info.options);
    let pass: &'static TcPass = Box::leak(Box::new(TcPass {
        argument: string_ref(info.argument),
        description: string_ref(info.summary),
        anchor: string_ref(info.anchor),
        options: options.as_ptr(),
        num_options: options.len(),
        run: run_pass,
        dependent_dialects,
        info,
    }));
    // SAFETY: `pass` and all it points at are 'static.
    unsafe { tcRegisterPass(std::ptr::from_ref(pass).cast()) }
}

/// Registers `--argument` as another name of a textual pass pipeline.
pub fn register_pipeline(argument: &str, description: &str, pipeline: &str) {
    // MLIR keeps references to the first two: they are leaked, once per pipeline.
    let argument: &'static str = argument.to_string().leak();
    let description: &'static str = description.to_string().leak();
    // SAFETY: the strings are 'static, and the pipeline is copied.
    unsafe {
        tcRegisterPipeline(string_ref(argument), string_ref(description), string_ref(pipeline))
    }
}

/// Registers a pipeline with options with MLIR's pass registry. Called once per pipeline and process.
pub(crate) fn register_pipeline_builder(info: &'static PipelineInfo) {
    let options = leak_options(info.options);
    let pipeline: &'static TcPipeline = Box::leak(Box::new(TcPipeline {
        argument: string_ref(info.argument),
        description: string_ref(info.summary),
        options: options.as_ptr(),
        num_options: options.len(),
        build: build_pipeline,
        info,
    }));
    // SAFETY: `pipeline` and all it points at are 'static.
    unsafe { tcRegisterPipelineBuilder(std::ptr::from_ref(pipeline).cast()) }
}

extern "C" fn build_pipeline(
    pipeline: *const TcPipeline,
    values: *const MlirStringRef,
    state: *mut c_void,
    accept: Receiver,
    reject: Receiver,
) {
    let build = || {
        // SAFETY: C++ passes back the 'static pipeline it was given, and one value per option.
        let (info, values) = unsafe {
            let info = (*pipeline).info;
            (info, option_values(info.options, values))
        };
        (info.build)(&Options::new(info.options, values))
    };
    match catch_unwind(AssertUnwindSafe(build)) {
        Ok(Ok(passes)) => accept(state, string_ref(&passes)),
        Ok(Err(reason)) => reject(state, string_ref(&reason)),
        Err(payload) => {
            let reason = format!("internal error: {} (please report it)", panic_text(&*payload));
            reject(state, string_ref(&reason));
        }
    }
}

extern "C" fn dependent_dialects(pass: *const TcPass, registry: MlirDialectRegistry) {
    // SAFETY: C++ passes back the 'static pass it was given.
    for name in unsafe { &*pass }.info.dependent_dialects {
        // SAFETY: the registry is alive during the call.
        unsafe { tcInsertDialect(registry, string_ref(name)) }
    }
}

extern "C" fn run_pass(
    pass: *const TcPass,
    op: MlirOperation,
    values: *const MlirStringRef,
) -> bool {
    guarded(op, || {
        // SAFETY: as in `dependent_dialects`; there is one value per option.
        let (info, values) = unsafe {
            let info = (*pass).info;
            (info, option_values(info.options, values))
        };
        // SAFETY: the operation and its context outlive the pass run.
        let (op, context) = unsafe {
            let op: Op = OperationRef::from_raw(op);
            (op, mlir::context_of(op))
        };
        let run = PassRun { op, context, options: Options::new(info.options, values) };
        (info.run)(&run).is_ok()
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustVerify(op: MlirOperation) -> bool {
    guarded(op, || {
        // SAFETY: MLIR verifies an operation that is alive.
        let op: Op = unsafe { OperationRef::from_raw(op) };
        let result = match mlir::name(op).split_once('.') {
            Some(("imap", _)) => imap::verify::verify(op),
            Some(("tc", _)) => tc::verify::verify(op),
            Some(("hlo", _)) => hlo::dialect::verify(op),
            Some(("tml", _)) => tml::verify::verify(op),
            Some(("axon", _)) => axon::dialect::verify::verify(op),
            _ => Ok(()),
        };
        result.map_err(|error| error.emit_on(op)).is_ok()
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustTouchesSameElement(op: MlirOperation, first: usize, second: usize) -> bool {
    guarded(op, || {
        // SAFETY: bufferization analyzes an operation that is alive.
        let op: Op = unsafe { OperationRef::from_raw(op) };
        AnyIndexed::cast(op).is_some_and(|it| it.touches_same_element(first, second))
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustReadsDestination(op: MlirOperation, destination: usize) -> bool {
    // After a panic, a read is assumed.
    !guarded(op, || {
        // SAFETY: bufferization analyzes an operation that is alive.
        let op: Op = unsafe { OperationRef::from_raw(op) };
        AnyIndexed::cast(op).is_some_and(|it| !it.reads_destination(destination))
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustCanonicalize(op: MlirOperation) -> bool {
    guarded(op, || {
        // SAFETY: a pattern rewrites an operation that is alive.
        let op: Op = unsafe { OperationRef::from_raw(op) };
        imap::Generic::cast(op).is_some_and(imap::canonicalize::canonicalize)
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrune(
    op: MlirOperation,
    state: *mut c_void,
    replace: extern "C" fn(*mut c_void, usize, MlirValue),
) -> bool {
    guarded(op, || {
        // SAFETY: a pattern rewrites an operation that is alive.
        let op: Op = unsafe { OperationRef::from_raw(op) };
        let pruned = imap::Generic::cast(op).and_then(imap::prune::prune);
        for (number, value) in pruned.iter().flatten() {
            replace(state, *number, value.to_raw());
        }
        pruned.is_some()
    })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustLanguage(file_name: MlirStringRef, contents: MlirStringRef) -> Language {
    // SAFETY: the texts live across the call.
    Language::of(unsafe { text(file_name) }, unsafe { bytes(contents) })
}

#[unsafe(no_mangle)]
extern "C" fn tcRustExplain(
    code: MlirStringRef,
    state: *mut c_void,
    accept: extern "C" fn(*mut c_void, MlirStringRef),
) -> bool {
    // SAFETY: the text lives across the call.
    let code = unsafe { text(code) };
    match catch_unwind(|| crate::explain(code)) {
        Ok(Ok(explanation)) => {
            accept(state, string_ref(explanation));
            true
        }
        Ok(Err(message)) => {
            accept(state, string_ref(&message));
            false
        }
        Err(_) => false,
    }
}

#[unsafe(no_mangle)]
extern "C" fn tcRustImport(
    context: MlirContext,
    language: Language,
    file_name: MlirStringRef,
    contents: MlirStringRef,
    relaxed: bool,
) -> MlirModule {
    let null = MlirModule { ptr: std::ptr::null_mut() };
    // SAFETY: context and texts live across the call.
    let (context, file_name, contents) =
        unsafe { (mlir::context_from_raw(context), text(file_name), bytes(contents)) };
    let import = || crate::import(context, language, file_name, contents, relaxed);
    match catch_unwind(AssertUnwindSafe(import)) {
        Ok(Some(module)) => {
            let raw = module.to_raw();
            // The caller owns the module from here on.
            std::mem::forget(module);
            raw
        }
        Ok(None) => null,
        Err(payload) => {
            let location = Location::new(context, file_name, 1, 1);
            let message = format!("internal error: {}", panic_text(&*payload));
            emit(location, Severity::Error, &message, &[]);
            null
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn tcRustIsShown(source: MlirStringRef, file: MlirStringRef) -> bool {
    // SAFETY: the texts live across the call.
    let (source, file) = unsafe { (text(source), text(file)) };
    catch_unwind(|| crate::files::is_shown(source, file)).unwrap_or(false)
}

#[unsafe(no_mangle)]
extern "C" fn tcRustCheckInput(
    file: MlirStringRef,
    state: *mut c_void,
    reject: extern "C" fn(*mut c_void, MlirStringRef),
) -> bool {
    // SAFETY: the text lives across the call.
    let file = unsafe { text(file) };
    match catch_unwind(|| crate::files::open(file).map_err(|error| error.to_string())) {
        Ok(Err(error)) => {
            reject(state, string_ref(&format!("cannot open input file '{file}': {error}")));
            false
        }
        _ => true,
    }
}

#[unsafe(no_mangle)]
extern "C" fn tcRustExportHlo(
    module: MlirOperation,
    state: *mut c_void,
    accept: extern "C" fn(*mut c_void, MlirStringRef),
) -> bool {
    guarded(module, || {
        // SAFETY: the module is alive during the call.
        let op: Op = unsafe { OperationRef::from_raw(module) };
        let exported = hlo::dialect::export(op).map_err(|error| error.emit_on(op));
        exported.map(|module| accept(state, string_ref(&module.to_string()))).is_ok()
    })
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

/// A layout as an attribute. The dialect `hlo` must be loaded.
pub(crate) fn hlo_layout<'c>(context: &'c Context, layout: &hlo::Layout) -> Attribute<'c> {
    let dims = &layout.minor_to_major;
    // SAFETY: the numbers and the text are copied.
    unsafe {
        Attribute::from_raw(tcHloLayoutGet(
            context.to_raw(),
            dims.len(),
            dims.as_ptr(),
            string_ref(&layout.properties),
        ))
    }
}

/// The layout that an attribute is, if it is one.
pub(crate) fn hlo_layout_of(attribute: Attribute) -> Option<hlo::Layout> {
    let (mut rank, mut dims) = (0, std::ptr::null());
    let mut properties = MlirStringRef { data: std::ptr::null(), length: 0 };
    // SAFETY: of a layout the parts are set to what belongs to the context.
    unsafe {
        let raw = attribute.to_raw();
        if !tcHloLayoutParts(raw, &raw mut rank, &raw mut dims, &raw mut properties) {
            return None;
        }
        let dims = if rank == 0 { &[] } else { std::slice::from_raw_parts(dims, rank) };
        Some(hlo::Layout { minor_to_major: dims.to_vec(), properties: text(properties).to_owned() })
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
