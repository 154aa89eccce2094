//! Functions that C++ calls on the [`FrozenMap`] of a `#imap.map`.

use crate::{
    ffi::{Receiver, panic_text, string_ref, text},
    imap::map,
};
use mlir_sys::MlirStringRef;
use std::{
    ffi::c_void,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::Arc,
};
use tc_ir::{FrozenMap, Interval};

#[unsafe(no_mangle)]
extern "C" fn tcRustParseMap(
    source: MlirStringRef,
    state: *mut c_void,
    reject: extern "C" fn(*mut c_void, usize, MlirStringRef),
) -> *const FrozenMap {
    // SAFETY: the text lives across the call.
    let source = unsafe { text(source) };
    match catch_unwind(|| map::parse(source)) {
        Ok(Ok(map)) => return Arc::into_raw(Arc::new(map)),
        Ok(Err(error)) => reject(state, error.offset, string_ref(&error.message)),
        Err(payload) => {
            reject(state, 0, string_ref(&format!("internal error: {}", panic_text(&*payload))));
        }
    }
    ptr::null()
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrintMap(map: *const FrozenMap, state: *mut c_void, accept: Receiver) {
    // SAFETY: the caller holds a reference.
    let map = unsafe { &*map };
    print(state, accept, || map::text(map));
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrintDomain(domain: *const FrozenMap, state: *mut c_void, accept: Receiver) {
    // SAFETY: the caller holds a reference.
    let domain = unsafe { &*domain };
    print(state, accept, || map::domain_text(domain));
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrintDimension(
    domain: *const FrozenMap,
    number: i64,
    state: *mut c_void,
    accept: Receiver,
) {
    // SAFETY: the caller holds a reference.
    let domain = unsafe { &*domain };
    print(state, accept, || map::dimension_text(domain, number));
}

#[unsafe(no_mangle)]
extern "C" fn tcRustDimensionOf(map: *const FrozenMap) -> i64 {
    // SAFETY: the caller holds a reference.
    let map = unsafe { &*map };
    catch_unwind(|| map::dimension(map)).ok().flatten().map_or(-1, i64::from)
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrintAccess(
    domain: *const FrozenMap,
    map: *const FrozenMap,
    state: *mut c_void,
    accept: Receiver,
) {
    // SAFETY: the caller holds references.
    let (domain, map) = unsafe { (&*domain, &*map) };
    print(state, accept, || map::access_text(domain, map));
}

#[unsafe(no_mangle)]
extern "C" fn tcRustPrintConditions(map: *const FrozenMap, state: *mut c_void, accept: Receiver) {
    // SAFETY: the caller holds a reference.
    let map = unsafe { &*map };
    print(state, accept, || map::conditions_text(map));
}

fn print(state: *mut c_void, accept: Receiver, text: impl FnOnce() -> String) {
    let text = catch_unwind(AssertUnwindSafe(text));
    accept(state, string_ref(text.as_deref().unwrap_or("internal error")));
}

#[unsafe(no_mangle)]
extern "C" fn tcRustCopyMap(map: *const FrozenMap) -> *const FrozenMap {
    // SAFETY: the caller holds a reference, which `Arc::into_raw` gave.
    unsafe { Arc::increment_strong_count(map) };
    map
}

#[unsafe(no_mangle)]
extern "C" fn tcRustDropMap(map: *const FrozenMap) {
    // SAFETY: the caller gives up a reference, which `Arc::into_raw` gave.
    unsafe { Arc::decrement_strong_count(map) };
}

#[unsafe(no_mangle)]
extern "C" fn tcRustEqualMaps(first: *const FrozenMap, second: *const FrozenMap) -> bool {
    // SAFETY: the caller holds references.
    ptr::eq(first, second) || unsafe { *first == *second }
}

#[unsafe(no_mangle)]
extern "C" fn tcRustHashMap(map: *const FrozenMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    // SAFETY: the caller holds a reference.
    unsafe { (*map).hash(&mut hasher) };
    hasher.finish()
}

/// # Safety
/// The arrays must have the lengths that are passed with them.
#[unsafe(no_mangle)]
unsafe extern "C" fn tcRustFoldApply(
    map: *const FrozenMap,
    num_operands: usize,
    operands: *const i64,
    num_results: usize,
    results: *mut i64,
) -> bool {
    // SAFETY: as for this function; an empty array may be null.
    let (map, operands, results) = unsafe {
        (
            &*map,
            if num_operands == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(operands, num_operands)
            },
            if num_results == 0 {
                &mut []
            } else {
                std::slice::from_raw_parts_mut(results, num_results)
            },
        )
    };
    catch_unwind(AssertUnwindSafe(|| map::evaluate(map, operands)))
        .ok()
        .flatten()
        .filter(|values| values.len() == results.len())
        .map(|values| results.copy_from_slice(&values))
        .is_some()
}

/// # Safety
/// Both pointers must be valid for writes.
#[unsafe(no_mangle)]
unsafe extern "C" fn tcRustBoundsOfResult(
    map: *const FrozenMap,
    number: usize,
    least: *mut i64,
    most: *mut i64,
) {
    // SAFETY: the caller holds a reference.
    let map = unsafe { &*map };
    let bounds = catch_unwind(|| map::bounds_of_result(map, number)).unwrap_or(Interval::ALL);
    // SAFETY: as for this function.
    unsafe { (*least, *most) = (bounds.lo, bounds.hi) };
}
