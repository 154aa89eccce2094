//! Functions that C++ calls: they dispatch to importers, verifiers and interfaces of the dialects.

mod map;
mod tiling;

use crate::{
    axon,
    ffi::{self, bytes, emit, guarded, panic_text, string_ref, text},
    files, hlo,
    imap::{self, AnyIndexed, Indexed},
    mlir::{self, Op},
    tc,
    text::{Severity, explanation::explain},
    tml,
};
use melior::{
    Context,
    ir::{Location, Module, OperationRef, ValueLike},
};
use mlir_sys::{MlirContext, MlirModule, MlirOperation, MlirStringRef, MlirValue};
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// What a text is written in; `TcLanguage` of the bridge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// MLIR text or bytecode.
    Mlir,
    /// Tensor comprehensions.
    Tc,
    /// The HLO text of XLA.
    Hlo,
    /// Tensor expressions without indices.
    Tml,
    /// A functional language in which shapes are inferred.
    Axon,
}

impl Language {
    /// The language of a file, by the ending of its name or, as dumps of XLA end in `.txt`, the
    /// `HloModule` that it begins with; otherwise MLIR.
    pub fn of(file_name: &str, contents: &[u8]) -> Self {
        if file_name.ends_with(".tc") {
            Self::Tc
        } else if file_name.ends_with(".tml") {
            Self::Tml
        } else if file_name.ends_with(".axon") {
            Self::Axon
        } else if file_name.ends_with(".hlo") || hlo::syntax::begins_with_module(contents) {
            Self::Hlo
        } else {
            Self::Mlir
        }
    }
}

/// Reads a module from the contents of a file. What is wrong goes to the diagnostic handlers of the
/// context; `None` after an error.
///
/// `relaxed` accepts the spellings of the TC documentation.
pub fn import<'c>(
    context: &'c Context,
    language: Language,
    file_name: &str,
    contents: &[u8],
    relaxed: bool,
) -> Option<Module<'c>> {
    match language {
        Language::Tc => tc::import::import(context, file_name, contents, relaxed),
        Language::Hlo => hlo::dialect::import(context, file_name, contents),
        Language::Tml => tml::import::import(context, file_name, contents),
        Language::Axon => axon::dialect::import(context, file_name, contents),
        Language::Mlir => {
            let module = ffi::parse(context, file_name, contents)?;
            mlir::ops(mlir::block_ref(module.body())).into_iter().for_each(name_arguments);
            Some(module)
        }
    }
}

/// Names the arguments of a function by its attributes `tc.name`: the parser drops the names in the text.
fn name_arguments(op: mlir::Op) {
    let Some(block) = mlir::body(op, 0).filter(|_| mlir::is(op, "func.func")) else { return };
    let attributes = mlir::array_attr(op, "arg_attrs").into_iter();
    let names = attributes.map(|it| mlir::dictionary_entry(it, "tc.name"));
    let names = names.map(|name| name.and_then(mlir::string_of).unwrap_or_default());
    mlir::name_arguments(mlir::context_of(op), block, names);
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
extern "C" fn tcRustVerifyAttribute(op: MlirOperation, name: MlirStringRef) -> bool {
    guarded(op, || {
        // SAFETY: MLIR verifies an operation that is alive, and its attributes have names.
        let (op, name): (Op, _) = unsafe { (OperationRef::from_raw(op), text(name)) };
        imap::verify::verify_attribute(op, name).map_err(|error| error.emit_on(op)).is_ok()
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
    match catch_unwind(|| explain(code)) {
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
    let import = || import(context, language, file_name, contents, relaxed);
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
    catch_unwind(|| files::is_shown(source, file)).unwrap_or(false)
}

#[unsafe(no_mangle)]
extern "C" fn tcRustCheckInput(
    file: MlirStringRef,
    state: *mut c_void,
    reject: extern "C" fn(*mut c_void, MlirStringRef),
) -> bool {
    // SAFETY: the text lives across the call.
    let file = unsafe { text(file) };
    match catch_unwind(|| files::open(file).map_err(|error| error.to_string())) {
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
