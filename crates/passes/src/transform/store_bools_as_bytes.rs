//! `store-bools-as-bytes`: load and store truth values as bytes.
//!
//! LLVM does not vectorize loops that load or store `i1`, because a vector of `i1` in memory
//! is packed bits, and the elements of an array of `i1` are bytes. This pass loads bytes and
//! compares them with 0, and stores zero-extended values. Vectors of truth values become
//! vectors of bytes in memory. No address changes: an element of type `i1` takes one byte.
//!
//! Before:
//!
//! ```mlir
//! %x = llvm.load %p : !llvm.ptr -> i1
//! llvm.store %x, %q : i1, !llvm.ptr
//! ```
//!
//! After:
//!
//! ```mlir
//! %byte = llvm.load %p : !llvm.ptr -> i8
//! %zero = llvm.mlir.zero : i8
//! %x = llvm.icmp "ne" %byte, %zero : i8
//! %stored = llvm.zext %x : i1 to i8
//! llvm.store %stored, %q : i8, !llvm.ptr
//! ```
//!
//! The pass changes `llvm.load`, `llvm.store` and the intrinsics for masked loads and stores.
//!
//! Remark: the number of changed accesses.

use melior::ir::{Attribute, Type, TypeLike, ValueLike, operation::OperationLike};
use tc_dialects::{
    mlir::{self, Builder, Op, Val},
    pass::{Failure, PassInfo, PassRun},
    report::{RemarkKind, remark},
};

/// The pass.
pub const PASS: PassInfo = PassInfo {
    argument: "store-bools-as-bytes",
    summary: "Load and store truth values as bytes",
    anchor: "builtin.module",
    options: &[],
    dependent_dialects: &["llvm"],
    run,
};

/// The number of the predicate `ne` of `llvm.icmp`.
const NOT_EQUAL: i64 = 1;

fn run(pass: &PassRun) -> Result<(), Failure> {
    let Some(block) = mlir::body(pass.op, 0) else { return Ok(()) };
    for function in mlir::ops(block).into_iter().filter(|op| mlir::is(*op, "llvm.func")) {
        pass.enter(function);
        let mut accesses = Vec::new();
        mlir::walk(function, &mut |op| accesses.extend(Access::of(op).map(|access| (op, access))));
        for (op, access) in &accesses {
            access.change(*op);
        }
        if !accesses.is_empty() {
            remark(
                function.location(),
                RemarkKind::Analysis,
                PASS.argument,
                "accesses",
                mlir::string_attr(function, "sym_name").unwrap_or_default(),
                &[("Changed", &accesses.len().to_string())],
            );
        }
    }
    Ok(())
}

/// An access to truth values in memory.
#[derive(Copy, Clone)]
enum Access<'c> {
    /// The type of the result; the operand for lanes that are not loaded, if there is one.
    Load(Type<'c>, Option<usize>),
    /// The first operand is stored. It may be the result of a load that changes before.
    Store,
}

impl<'c> Access<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let is_bool = |ty: Type| mlir::integer_width(mlir::element_type(ty)) == Some(1);
        match mlir::name(op) {
            "llvm.load" | "llvm.intr.masked.load" => {
                let otherwise = (2 < op.operand_count()).then_some(2);
                let ty = mlir::result(op, 0).r#type();
                is_bool(ty).then_some(Self::Load(ty, otherwise))
            }
            "llvm.store" | "llvm.intr.masked.store" => {
                is_bool(mlir::operand(op, 0).r#type()).then_some(Self::Store)
            }
            _ => None,
        }
    }

    fn change(self, op: Op<'c>) {
        let builder = Builder::before(op);
        let extend =
            |value: Val<'c>| builder.value("llvm.zext", &[value], bytes(&builder, value.r#type()));
        match self {
            Self::Load(ty, otherwise) => {
                let mut operands = mlir::operands(op);
                if let Some(number) = otherwise {
                    operands[number] = extend(operands[number]);
                }
                let attributes: Vec<(String, Attribute)> = op
                    .attributes()
                    .filter_map(|(name, value)| {
                        Some((name.as_string_ref().as_str().ok()?.to_string(), value))
                    })
                    .collect();
                let attributes: Vec<_> =
                    attributes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                let byte =
                    builder.value_with(mlir::name(op), &operands, bytes(&builder, ty), &attributes);
                let zero = builder.value("llvm.mlir.zero", &[], bytes(&builder, ty));
                let predicate = mlir::i64_attr(builder.context, NOT_EQUAL);
                let attributes = [("predicate", predicate)];
                let value = builder.value_with("llvm.icmp", &[byte, zero], ty, &attributes);
                mlir::replace(op, &[value]);
            }
            Self::Store => mlir::set_operand(op, 0, extend(mlir::operand(op, 0))),
        }
    }
}

/// The type with bytes instead of truth values.
fn bytes<'c>(builder: &Builder<'c>, ty: Type<'c>) -> Type<'c> {
    let byte = builder.int_type(8);
    if !ty.is_vector() {
        return byte;
    }
    let extents: Vec<u64> =
        mlir::shape(ty).into_iter().flatten().map(|extent| extent as u64).collect();
    Type::vector(&extents, byte)
}
