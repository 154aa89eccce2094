//! Replacements for C library calls.
//!
//! LLVM has intrinsics that are an instruction on some processors and a call of libm on
//! others, and some that are calls everywhere. MLIR calls libm by name, too. All of these are
//! replaced before LLVM optimizes, by functions of `runtime/`, so that an object needs no
//! library for what it calculates.

use super::machine::{has_fma, rounds};
use crate::builtins;
use tc_passes::target::Machine;

/// The type of the elements that a function is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Element {
    /// IEEE's 16 bits, computed with in single precision.
    Half,
    /// The upper 16 bits of single precision, in which it is computed.
    BFloat,
    /// Single precision.
    Single,
    /// Double precision.
    Double,
}

/// The symbol of the function of `runtime/` to be called instead of `callee`, an intrinsic or
/// a function that no module defines, of so many arguments. Arguments and result are single
/// precision for elements of 16 bits.
pub(super) fn substitute(
    callee: &str,
    arity: usize,
    element: Element,
    target: &Machine,
) -> Option<String> {
    let suffix = if element == Element::Double { "f64" } else { "f32" };
    let builtin = |name: &str| {
        let found = builtins::lookup(name).filter(|it| it.arity == arity)?;
        Some(format!("tc_{}_{suffix}", found.name))
    };
    let is_narrow = matches!(element, Element::Half | Element::BFloat);
    let soft = |name: &str| Some(format!("tc_soft_{name}_{suffix}"));
    let Some(intrinsic) = callee.strip_prefix("llvm.") else {
        let narrow = callee.strip_suffix('f').filter(|_| element == Element::Single);
        return match narrow.unwrap_or(callee) {
            "roundeven" | "rint" | "nearbyint" if arity == 1 => soft("roundeven"),
            name => builtin(name),
        };
    };
    match intrinsic.split('.').next().unwrap_or_default() {
        name @ ("floor" | "ceil" | "trunc" | "roundeven") if !rounds(target) => soft(name),
        "rint" | "nearbyint" if !rounds(target) => soft("roundeven"),
        "fma" if !has_fma(target) => soft("fma"),
        "round" => builtin("round"),
        "maxnum" if is_narrow => builtin("fmax"),
        "minnum" if is_narrow => builtin("fmin"),
        name @ ("acos" | "asin" | "atan" | "atan2" | "cos" | "cosh" | "exp" | "exp10" | "exp2"
        | "log" | "log10" | "log2" | "pow" | "sin" | "sinh" | "tan" | "tanh") => builtin(name),
        _ => None,
    }
}

/// The functions that LLVM may call to convert numbers of a module with such elements. Each has its name in `runtime/`
/// and the name that LLVM gives it, under which a module defines it.
pub(super) fn conversions(has: impl Fn(Element) -> bool) -> Vec<(&'static str, &'static str)> {
    use Element::{BFloat, Double, Half, Single};
    let all = [
        (Half, Single, "tc_soft_extendhfsf2", "__extendhfsf2"),
        (Half, Single, "tc_soft_truncsfhf2", "__truncsfhf2"),
        (Half, Double, "tc_soft_truncdfhf2", "__truncdfhf2"),
        (BFloat, Single, "tc_soft_truncsfbf2", "__truncsfbf2"),
        (BFloat, Double, "tc_soft_truncdfbf2", "__truncdfbf2"),
    ];
    // Arithmetic on 16 bits is one of single precision.
    let is_needed = |narrow, wide| has(narrow) && (wide == Single || has(wide));
    let needed = all.into_iter().filter(|(narrow, wide, ..)| is_needed(*narrow, *wide));
    needed.map(|(_, _, builtin, symbol)| (builtin, symbol)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_libraries_are_replaced() {
        let of = |callee, arity, element| substitute(callee, arity, element, &Machine::host());
        let symbol = |callee, arity, element| of(callee, arity, element).unwrap_or_default();
        assert_eq!(symbol("llvm.exp.v8f32", 1, Element::Single), "tc_exp_f32");
        assert_eq!(symbol("llvm.maxnum.f16", 2, Element::Half), "tc_fmax_f32");
        assert_eq!(symbol("expm1", 1, Element::Double), "tc_expm1_f64");
        assert_eq!(symbol("erf", 1, Element::Double), "tc_erf_f64");
        assert_eq!(symbol("erff", 1, Element::Single), "tc_erf_f32");
        assert_eq!(of("llvm.maxnum.f32", 2, Element::Single), None);
        assert_eq!(of("unknown", 1, Element::Double), None);
        assert_eq!(of("pow", 1, Element::Double), None, "this is no power");
    }

    #[test]
    fn instructions_are_left_to_processors_that_have_them() {
        if !Machine::host().triple.starts_with("x86_64") {
            return;
        }
        let of = |callee, arity, element, cpu| {
            substitute(callee, arity, element, &Machine::cpu(cpu)).unwrap_or_default()
        };
        assert_eq!(of("llvm.floor.f16", 1, Element::Half, "x86-64"), "tc_soft_floor_f32");
        assert_eq!(of("llvm.fma.f64", 3, Element::Double, "x86-64-v2"), "tc_soft_fma_f64");
        assert_eq!(of("llvm.floor.f32", 1, Element::Single, "x86-64-v2"), "");
        assert_eq!(of("llvm.fma.f64", 3, Element::Double, "haswell"), "");
    }
}
