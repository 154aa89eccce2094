//===- Imap.h - the classes that TableGen writes for imap.td --------------===//

#ifndef TC_IMAP_H
#define TC_IMAP_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

// PartialReductionOpInterface.td of LLVM 22 does not qualify these names.
namespace tc::imap {
using llvm::SmallVector;
using mlir::Location, mlir::Value, mlir::ValueRange, mlir::TilingResult, mlir::MergeResult,
    mlir::ReductionTilingStrategy;
} // namespace tc::imap

#include "imap.dialect.h.inc"
#include "imap.enum.h.inc"
#define GET_ATTRDEF_CLASSES
#include "imap.attr.h.inc"
#define GET_OP_CLASSES
#include "imap.op.h.inc"

#endif // TC_IMAP_H
