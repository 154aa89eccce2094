//! The `hlo` dialect: modules of HLO as MLIR. See `hlo.td` for operations, types and attributes.
//!
//! [`import`] brings HLO text, and [`import_module`] a [`Module`](super::Module), into the dialect;
//! [`export`] gives the module back, whose printed form is the text again. What differs: attributes
//! of an instruction come in the order in which XLA prints them, an instruction without a name gets
//! one, and of a module in which some row-major layouts are written out all are.
//!
//! Verification is export followed by [`hlo::verify`](super::verify()): operations are checked by
//! the rules that text is checked by. It happens once per module, when MLIR verifies the uses of
//! symbols, after it checked what `hlo.td` says of each operation alone.
//!
//! Operations are handled by [`Opcode`]; there are no typed views besides
//! [`Instruction`](super::Instruction). Time and memory are linear in the module.

mod export;
mod import;
#[cfg(test)]
mod tests;
mod types;
mod values;

pub use export::{Locations, export, export_located};
pub use import::{import, import_located, import_module};

use super::{Attribute, COMMON, Opcode, verify as verify_module};
use crate::{
    mlir::{self, Op},
    report::Report,
};
use export::{Exporter, Scope};
use std::{collections::HashMap, sync::OnceLock};

/// The name of an operation that holds instructions.
pub const COMPUTATION: &str = "hlo.computation";
/// The name of the operation that ends a computation.
pub const RETURN: &str = "hlo.return";

/// The names of operations in the order of the opcodes, and their opcodes.
fn names() -> &'static (Vec<String>, HashMap<String, Opcode>) {
    static NAMES: OnceLock<(Vec<String>, HashMap<String, Opcode>)> = OnceLock::new();
    NAMES.get_or_init(|| {
        let name = |opcode: &Opcode| format!("hlo.{}", opcode.name().replace('-', "_"));
        let names: Vec<_> = Opcode::ALL.iter().map(name).collect();
        // A parameter is an argument of its computation.
        let pairs = names.iter().cloned().zip(Opcode::ALL.iter().copied());
        let opcodes = pairs.filter(|(_, opcode)| *opcode != Opcode::Parameter).collect();
        (names, opcodes)
    })
}

/// The name of the operation of an opcode.
pub fn operation_name(opcode: Opcode) -> &'static str {
    &names().0[opcode as usize]
}

/// The opcode of an operation; `None` if it is no instruction.
pub fn opcode(op: Op) -> Option<Opcode> {
    names().1.get(mlir::name(op)).copied()
}

/// The name that an attribute of an instruction has in the dialect. `metadata` is a part of the
/// property `origin` instead.
pub fn attribute_name(attribute: Attribute) -> &'static str {
    match attribute {
        // Every operation has a C++ method of that name.
        Attribute::Type => "compare_type",
        _ if COMMON.contains(&attribute) => parameter_attribute_name(attribute),
        _ => attribute.name(),
    }
}

/// The name that an attribute of a parameter has among the attributes of the argument.
fn parameter_attribute_name(attribute: Attribute) -> &'static str {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let name = |each: &Attribute| format!("hlo.{}", each.name().replace('-', "_"));
    let names = NAMES.get_or_init(|| Attribute::ALL.iter().map(name).collect());
    &names[attribute as usize]
}

/// The attributes that an opcode takes, in the order in which XLA prints them.
fn attribute_order(opcode: Opcode) -> &'static [Attribute] {
    static ORDERS: OnceLock<Vec<Vec<Attribute>>> = OnceLock::new();
    let order = |opcode: &Opcode| {
        let all = opcode.required().iter().chain(opcode.optional()).chain(COMMON).copied();
        let mut order: Vec<_> = all.collect();
        order.sort_by_key(|&attribute| match (opcode, attribute) {
            // Where `dimensions` stand is not the same for all collectives.
            (Opcode::ReduceScatter | Opcode::AllToAll, Attribute::Dimensions) => {
                1 + rank(Attribute::UseGlobalDeviceIds)
            }
            _ => rank(attribute),
        });
        order
    };
    let orders = ORDERS.get_or_init(|| Opcode::ALL.iter().map(order).collect());
    &orders[opcode as usize]
}

/// Attributes in the order in which XLA prints them; the others stand before these.
const ORDER: &[Attribute] = &[
    Attribute::CustomCallTarget,
    Attribute::ChannelId,
    Attribute::ReplicaGroups,
    Attribute::SourceTargetPairs,
    Attribute::ConstrainLayout,
    Attribute::UpdateWindowDims,
    Attribute::InsertedWindowDims,
    Attribute::ScatterDimsToOperandDims,
    Attribute::InputBatchingDims,
    Attribute::ScatterIndicesBatchingDims,
    Attribute::OffsetDims,
    Attribute::CollapsedSliceDims,
    Attribute::StartIndexMap,
    Attribute::OperandBatchingDims,
    Attribute::StartIndicesBatchingDims,
    Attribute::IndexVectorDim,
    Attribute::SliceSizes,
    Attribute::Window,
    Attribute::DimLabels,
    Attribute::FeatureGroupCount,
    Attribute::BatchGroupCount,
    Attribute::LhsBatchDims,
    Attribute::LhsContractingDims,
    Attribute::RhsBatchDims,
    Attribute::RhsContractingDims,
    Attribute::LhsRaggedDims,
    Attribute::RhsGroupDims,
    Attribute::DotAlgorithm,
    Attribute::OperandPrecision,
    Attribute::LeftSide,
    Attribute::Lower,
    Attribute::UnitDiagonal,
    Attribute::TransposeA,
    Attribute::Dimensions,
    Attribute::UseGlobalDeviceIds,
    Attribute::IsReverse,
    Attribute::IsAssociative,
    Attribute::NumCarries,
    Attribute::IsStable,
    Attribute::IndicesAreSorted,
    Attribute::UniqueIndices,
    Attribute::Condition,
    Attribute::Body,
    Attribute::Select,
    Attribute::Scatter,
    Attribute::ToApply,
    Attribute::CalledComputations,
    Attribute::Sharding,
    Attribute::FrontendAttributes,
    Attribute::ControlPredecessors,
    Attribute::Origin,
    Attribute::Metadata,
    Attribute::Statistics,
    Attribute::BackendConfig,
];

fn rank(attribute: Attribute) -> usize {
    ORDER.iter().position(|each| *each == attribute).map_or(0, |place| 2 * place + 1)
}

/// Verifies the module around an `hlo.computation`, if it is the first one in it.
///
/// # Errors
/// What was found, but for the last one emitted already.
pub(crate) fn verify<'c>(op: Op<'c>) -> Result<(), Report<'c>> {
    let is_first = |parent| export::computations(parent).next() == Some(op);
    let Some(module) = mlir::parent(op).filter(|parent| is_first(*parent)) else {
        return Ok(());
    };
    let exporter = Exporter::new(mlir::context_of(op), module, Scope::Computations);
    let (view, places) = exporter.module()?;
    let mut reports = verify_module(&view).into_iter().map(|diagnostic| {
        let place = |span| places.get(span);
        let message = format!("{} [{}]", diagnostic.message, diagnostic.code());
        let report = place(diagnostic.span).report(message);
        let notes = diagnostic.notes.into_iter();
        notes.fold(report, |report, (span, text)| report.note(Some(place(span).location()), text))
    });
    let Some(first) = reports.next() else { return Ok(()) };
    Err(reports.fold(first, |last, next| {
        last.emit();
        next
    }))
}
