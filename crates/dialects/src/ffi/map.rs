//! Attributes of `imap`. For `#imap.map`, C++ keeps a counted reference to a [`FrozenMap`].

use super::{string_ref, text};
use melior::{
    Context,
    ir::{Attribute, AttributeLike, Type, TypeLike},
};
use mlir_sys::{MlirAttribute, MlirContext, MlirStringRef, MlirType};
use std::{ffi::c_void, ptr, sync::Arc};
use tc_ir::FrozenMap;

unsafe extern "C" {
    fn tcMapGet(context: MlirContext, map: *const c_void) -> MlirAttribute;
    fn tcMapOf(attribute: MlirAttribute) -> *const c_void;
    fn tcAccumulatorGet(
        ty: MlirType,
        kind: MlirStringRef,
        identity: MlirAttribute,
        start: MlirAttribute,
        out: i64,
    ) -> MlirAttribute;
    fn tcScheduleGet(steps: MlirAttribute) -> MlirAttribute;
    fn tcScheduleSteps(attribute: MlirAttribute) -> MlirAttribute;
    fn tcAccumulatorParts(
        attribute: MlirAttribute,
        ty: *mut MlirType,
        kind: *mut MlirStringRef,
        identity: *mut MlirAttribute,
        start: *mut MlirAttribute,
        out: *mut i64,
    ) -> bool;
}

/// The attribute of a map.
pub(crate) fn map_attribute(context: &Context, map: FrozenMap) -> Attribute<'_> {
    let raw = Arc::into_raw(Arc::new(map));
    // SAFETY: C++ takes the reference, and keeps it as long as the context.
    unsafe { Attribute::from_raw(tcMapGet(context.to_raw(), raw.cast())) }
}

/// The map of an attribute, if it is one.
pub(crate) fn map_of<'c>(attribute: Attribute<'c>) -> Option<&'c FrozenMap> {
    // SAFETY: the attribute's storage holds a reference as long as the context lives.
    unsafe { tcMapOf(attribute.to_raw()).cast::<FrozenMap>().as_ref() }
}

/// The parts of `#imap.acc`.
pub(crate) struct AccumulatorParts<'c> {
    pub ty: Type<'c>,
    pub kind: &'static str,
    pub identity: Option<Attribute<'c>>,
    /// The constant, or the number of the destination, that it starts from.
    pub start: Option<Attribute<'c>>,
    pub out: Option<usize>,
}

/// `#imap.acc` of these parts.
pub(crate) fn accumulator_attribute<'c>(parts: &AccumulatorParts<'c>) -> Attribute<'c> {
    let raw = |attribute: Option<Attribute<'c>>| {
        attribute.map_or(MlirAttribute { ptr: ptr::null() }, |it| it.to_raw())
    };
    let out = parts.out.map_or(-1, |out| out as i64);
    let (identity, start) = (raw(parts.identity), raw(parts.start));
    // SAFETY: the type lives as long as the context; the name is one of the enumeration's.
    unsafe {
        let kind = string_ref(parts.kind);
        Attribute::from_raw(tcAccumulatorGet(parts.ty.to_raw(), kind, identity, start, out))
    }
}

/// `#imap.schedule` of these steps.
pub(crate) fn schedule_attribute<'c>(steps: Attribute<'c>) -> Attribute<'c> {
    // SAFETY: the attributes live as long as their context.
    unsafe { Attribute::from_raw(tcScheduleGet(steps.to_raw())) }
}

/// The steps of `#imap.schedule`; `None` for another attribute.
pub(crate) fn schedule_steps<'c>(attribute: Attribute<'c>) -> Option<Attribute<'c>> {
    // SAFETY: the attributes live as long as their context.
    unsafe {
        let steps = tcScheduleSteps(attribute.to_raw());
        (!steps.ptr.is_null()).then(|| Attribute::from_raw(steps))
    }
}

/// The parts of an attribute, if it is `#imap.acc`.
pub(crate) fn accumulator_parts<'c>(attribute: Attribute<'c>) -> Option<AccumulatorParts<'c>> {
    let mut ty = MlirType { ptr: ptr::null() };
    let null = MlirAttribute { ptr: ptr::null() };
    let (mut kind, mut identity, mut start, mut out) = (string_ref(""), null, null, 0);
    // SAFETY: the results live across the call; types and attributes live as long as their
    // context, and the names of combiners are static.
    unsafe {
        let raw = attribute.to_raw();
        if !tcAccumulatorParts(raw, &mut ty, &mut kind, &mut identity, &mut start, &mut out) {
            return None;
        }
        let given = |raw: MlirAttribute| (!raw.ptr.is_null()).then(|| Attribute::from_raw(raw));
        Some(AccumulatorParts {
            ty: Type::from_raw(ty),
            kind: text(kind),
            identity: given(identity),
            start: given(start),
            out: usize::try_from(out).ok(),
        })
    }
}
