//! Operations of MLIR's own dialects in a program: those that no pass lowers are rejected at
//! the operation, before anything is changed and once more when all passes have run.
//!
//! The lists name input operations only. An unlisted operation is rejected after the last pass
//! if no pass lowered it.

use melior::ir::{
    Attribute, BlockLike, Module, Type, TypeLike, ValueLike, operation::OperationLike,
};
use tc_dialects::{
    mlir::{self, Op},
    report::Report,
};

/// The dialects that the pipeline lowers.
const DIALECTS: &[&str] = &[
    "affine",
    "arith",
    "bufferization",
    "builtin",
    "cf",
    "complex",
    "func",
    "imap",
    "index",
    "linalg",
    "llvm",
    "math",
    "memref",
    "scf",
    "shape",
    "tensor",
    "ub",
    "vector",
];

/// The dialects whose types the pipeline lowers.
const TYPE_DIALECTS: &[&str] = &["builtin", "imap", "llvm"];

/// Operations of these dialects that no pass lowers, or not to code that needs no library, each
/// with the advice that its error gives.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("affine.dma_start", "use 'memref.copy'"),
    ("affine.dma_wait", "use 'memref.copy'"),
    ("bufferization.dealloc", "remove it, the compiler frees buffers"),
    ("bufferization.dealloc_tensor", "remove it, the compiler frees buffers"),
    ("cf.assert", "use 'imap.check' outside of loops and branches"),
    ("func.call_indirect", "call the function directly, and inline the call first"),
    ("func.constant", "call the function directly, and inline the call first"),
    // LLVM 22 expands it to the minimum with the lower bound.
    ("math.clampf", "use 'arith.maximumf' and 'arith.minimumf'"),
    ("math.isinf", "compare the result of 'math.absf' with infinity"),
    ("math.isnormal", "compare the result of 'math.absf' with the least and the largest number"),
    ("math.sincos", "use 'math.sin' and 'math.cos'"),
    ("memref.dealloc", "remove it, the compiler frees buffers"),
    ("memref.dma_start", "use 'memref.copy'"),
    ("memref.dma_wait", "use 'memref.copy'"),
    ("memref.generic_atomic_rmw", "use 'memref.atomic_rmw'"),
    ("memref.realloc", "use 'memref.alloc' and 'memref.copy'"),
    ("shape.cstr_broadcastable", "use 'imap.check'"),
    ("shape.cstr_eq", "use 'imap.check'"),
    ("shape.cstr_require", "use 'imap.check'"),
    ("tensor.bitcast", "use 'arith.bitcast'"),
    ("tensor.gather", "use 'tensor.generate' and 'tensor.extract'"),
    ("tensor.scatter", "use 'scf.for' and 'tensor.insert_slice'"),
    ("vector.print", "remove it, compiled code prints nothing"),
    ("vector.scan", "use 'scf.for' and 'vector.extract'"),
    ("vector.vscale", "use vectors of a fixed length"),
];

/// Operations that the front ends emit besides `imap`. They need no pass for MLIR's own dialects.
const PLAIN: &[&str] = &[
    "bufferization.alloc_tensor",
    "bufferization.materialize_in_destination",
    "bufferization.to_buffer",
    "bufferization.to_tensor",
    "builtin.module",
    "complex.constant",
    "complex.create",
    "complex.im",
    "complex.re",
    "func.call",
    "func.func",
    "func.return",
    "math.absf",
    "math.absi",
    "math.ceil",
    "math.copysign",
    "math.ctlz",
    "math.ctpop",
    "math.floor",
    "math.fma",
    "math.roundeven",
    "math.sqrt",
    "math.trunc",
    "memref.alloc",
    "memref.alloca",
    "memref.cast",
    "memref.collapse_shape",
    "memref.copy",
    "memref.dim",
    "memref.distinct_objects",
    "memref.expand_shape",
    "memref.load",
    "memref.memory_space_cast",
    "memref.reinterpret_cast",
    "memref.store",
    "memref.subview",
    "scf.condition",
    "scf.for",
    "scf.if",
    "scf.parallel",
    "scf.reduce",
    "scf.while",
    "scf.yield",
    "tensor.cast",
    "tensor.dim",
    "tensor.empty",
    "tensor.extract",
    "tensor.from_elements",
    "tensor.insert",
];

/// Operations of `linalg` that are neither bufferized nor turned into loops, but decomposed by the
/// transform dialect only: each with the operation of the transform dialect, and the types of its
/// results.
const DECOMPOSED: &[(&str, &str, &[&str])] = &[
    (
        "linalg.pack",
        "lower_pack",
        &["op<\"tensor.pad\">", "op<\"tensor.expand_shape\">", "op<\"linalg.transpose\">"],
    ),
    ("linalg.softmax", "decompose_interface", &["any_op"]),
    (
        "linalg.unpack",
        "lower_unpack",
        &[
            "op<\"tensor.empty\">",
            "op<\"linalg.transpose\">",
            "op<\"tensor.collapse_shape\">",
            "op<\"tensor.extract_slice\">",
        ],
    ),
    ("linalg.winograd_filter_transform", "decompose_winograd_op", &["any_op"]),
    ("linalg.winograd_input_transform", "decompose_winograd_op", &["any_op"]),
    ("linalg.winograd_output_transform", "decompose_winograd_op", &["any_op"]),
];

/// The properties of a program on which the pipeline depends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// Whether passes for MLIR's own dialects are needed.
    pub upstream: bool,
    /// The names of the operations of [`DECOMPOSED`] that occur.
    decomposed: Vec<&'static str>,
}

/// Reads which operations a program contains. Reports the first one that is not supported, and
/// returns `None` then.
pub(crate) fn check(module: &Module) -> Option<Contents> {
    let mut contents = Contents::default();
    let mut error = None;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        if error.is_some() {
            return;
        }
        error = reason(op).map(|reason| (op, reason));
        contents.upstream |= !is_plain(op);
        if let Some((name, ..)) = DECOMPOSED.iter().find(|(name, ..)| mlir::is(op, name))
            && !contents.decomposed.contains(name)
        {
            contents.decomposed.push(name);
        }
    });
    let Some((op, reason)) = error else { return Some(contents) };
    Report::op_error(op, reason).emit();
    None
}

fn is_plain(op: Op) -> bool {
    let name = mlir::name(op);
    let is_tensor = |it: &mlir::Val| mlir::is_tensor(it.r#type());
    let is_scalar = || !mlir::results(op).iter().any(is_tensor);
    name.starts_with("imap.")
        || name == "arith.constant"
        || (PLAIN.contains(&name) && (!name.starts_with("math.") || is_scalar()))
        || (name.starts_with("arith.") && is_scalar())
}

/// Why an operation is not supported.
fn reason(op: Op) -> Option<String> {
    let name = mlir::name(op);
    let dialect = name.split('.').next().unwrap_or_default();
    if !DIALECTS.contains(&dialect) {
        return Some(format!(
            "is not supported: the compiler does not lower the dialect '{dialect}'; lower it to \
             one of {} first",
            DIALECTS.join(", ")
        ));
    }
    if let Some((_, advice)) = UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == name) {
        return Some(format!("is not supported; {advice}"));
    }
    if name == "memref.global" && !op.has_attribute("initial_value") {
        return Some("is not supported: it is defined elsewhere; give it a value".to_string());
    }
    unsupported_values(op)
}

/// Reports the first operation that passes of MLIR end the process at, or compute wrong values for,
/// before a backend sees the program.
pub(crate) fn check_types(module: &Module) -> Option<()> {
    let mut error = None;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        error = error.take().or_else(|| unsupported_values(op).map(|reason| (op, reason)));
    });
    let Some((op, reason)) = error else { return Some(()) };
    Report::op_error(op, reason).emit();
    None
}

/// Why the type of a result, or of an argument of a region, is not supported.
fn unsupported_values(op: Op) -> Option<String> {
    // The canonicalizer of LLVM 22 drops the mask of a read that is written elsewhere.
    if mlir::is(op, "vector.transfer_read")
        && mlir::is_tensor(mlir::operand(op, 0).r#type())
        && !mlir::operand_group(op, 3).is_empty()
    {
        return Some("with a mask is not supported on tensors; use 'arith.select'".to_string());
    }
    let blocks = (0..op.region_count()).flat_map(|region| mlir::blocks(op, region));
    let values = mlir::results(op).into_iter().chain(blocks.flat_map(mlir::arguments));
    values.map(|it| it.r#type()).find_map(unsupported_type)
}

/// Why a type is not supported.
fn unsupported_type(ty: Type) -> Option<String> {
    let element = mlir::element_type(ty);
    let dialect = element.dialect();
    if !dialect.namespace().is_ok_and(|it| TYPE_DIALECTS.contains(&it)) {
        return Some(format!("uses the type '{ty}', which is not supported"));
    }
    if ty.is_vector() && ty.is_scalable_vector() {
        return Some(format!(
            "uses '{ty}', which is not supported; use a vector of a fixed length"
        ));
    }
    if mlir::is_float(element) && 8 < mlir::byte_width(element) {
        return Some(format!("uses '{element}', which is not supported; use 'f64'"));
    }
    None
}

impl Contents {
    /// Decomposes operations by `run`, which runs a pipeline on the module. Returns whether that
    /// went well; if not, the reason has been reported.
    pub fn decompose(
        &self,
        module: &mut Module,
        run: impl FnOnce(&mut Module, &str) -> bool,
    ) -> bool {
        if self.decomposed.is_empty() {
            return true;
        }
        let op = mlir::op_ref(module.as_operation());
        let context = mlir::context_of(op);
        let script = Module::parse(context, &self.script()).expect("a script of our own parses");
        let sequence = script.body().first_operation().expect("the script is one operation");
        let sequence = mlir::op_ref(module.body().append_operation((*sequence).clone()));
        mlir::set_attribute(op, WITH_SCRIPT, Attribute::unit(context));
        let is_done = run(module, &format!("transform-interpreter{{entry-point={SCRIPT}}}"));
        if is_done {
            mlir::erase(sequence);
            mlir::remove_attribute(mlir::op_ref(module.as_operation()), WITH_SCRIPT);
        }
        is_done
    }

    /// The transform script that decomposes the operations found.
    fn script(&self) -> String {
        let steps = DECOMPOSED.iter().filter(|(name, ..)| self.decomposed.contains(name)).map(
            |(name, transform, results)| {
                let results: Vec<_> = results.iter().map(|it| format!("!transform.{it}")).collect();
                let (id, results) = (name.replace('.', "_"), results.join(", "));
                format!(
                    r#"
    %{id} = transform.structured.match ops{{["{name}"]}} in %root : (!transform.any_op) -> !transform.op<"{name}">
    transform.foreach %{id} : !transform.op<"{name}"> {{
    ^bb0(%op: !transform.op<"{name}">):
      transform.structured.{transform} %op : (!transform.op<"{name}">) -> ({results})
    }}"#
                )
            },
        );
        let steps: String = steps.collect();
        format!(
            r#"module attributes {{{WITH_SCRIPT}}} {{
  transform.named_sequence @{SCRIPT}(%root: !transform.any_op {{transform.readonly}}) {{{steps}
    transform.yield
  }}
}}"#
        )
    }
}

/// The attribute of a module that contains a transform script.
const WITH_SCRIPT: &str = "transform.with_named_sequence";

/// The name of the transform script in a module.
const SCRIPT: &str = "__tc_decompose";

/// Reports the first operation that the pipeline has left, if there is one.
pub(crate) fn check_lowered(module: &Module) -> Option<()> {
    let (mut left, mut cast) = (None, None);
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| match mlir::name(op) {
        "builtin.module" => {}
        "builtin.unrealized_conversion_cast" => cast = cast.or(Some(op)),
        name if name.starts_with("llvm.") || name.starts_with("omp.") => {}
        _ => left = left.or(Some(op)),
    });
    let Some(op) = left.or(cast) else { return Some(()) };
    let types: Vec<_> = mlir::operands(op).iter().map(|it| format!("'{}'", it.r#type())).collect();
    let on = if types.is_empty() { String::new() } else { format!(" on {}", types.join(", ")) };
    let message =
        format!("is not supported{on}: no pass lowers it; use other operations in its place");
    Report::op_error(op, message).emit();
    None
}

/// Reports the operation by which a module refers to a symbol that it does not define.
pub(crate) fn report_undefined(module: &Module, symbol: &str) {
    let mut found = None;
    mlir::walk(mlir::op_ref(module.as_operation()), &mut |op| {
        let refers = |name: &str| {
            op.attribute(name).ok().and_then(mlir::symbol_of).is_some_and(|it| it == symbol)
        };
        if found.is_none() && (refers("callee") || refers("global_name")) {
            found = Some(op);
        }
    });
    let op = found.unwrap_or_else(|| mlir::op_ref(module.as_operation()));
    Report::at(
        op.location(),
        tc_dialects::text::Severity::Error,
        format!("the program needs '{symbol}', which it does not define; define or remove it"),
    )
    .emit();
}
