//===- Hlo.h - the classes that TableGen writes for hlo.td ----------------===//

#ifndef TC_HLO_H
#define TC_HLO_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tc {
namespace hlo {

/// Where an instruction comes from: its name in HLO text, and its `metadata`; null
/// if there is none. All origins are equal, so that operations which differ in
/// nothing else are one to CSE.
struct Origin {
  mlir::StringAttr name, metadata;

  bool operator==(const Origin &) const { return true; }
};

inline llvm::hash_code hash_value(const Origin &) { return llvm::hash_code(0); }
mlir::Attribute convertToAttribute(mlir::MLIRContext *context, const Origin &origin);
mlir::LogicalResult
convertFromAttribute(Origin &origin, mlir::Attribute attribute,
                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
mlir::LogicalResult readFromMlirBytecode(mlir::DialectBytecodeReader &reader, Origin &origin);
void writeToMlirBytecode(mlir::DialectBytecodeWriter &writer, const Origin &origin);

} // namespace hlo
} // namespace tc

#include "hlo.dialect.h.inc"
#include "hlo.interface.h.inc"
#define GET_ATTRDEF_CLASSES
#include "hlo.attr.h.inc"
#define GET_TYPEDEF_CLASSES
#include "hlo.type.h.inc"
#define GET_OP_CLASSES
#include "hlo.op.h.inc"

#endif // TC_HLO_H
