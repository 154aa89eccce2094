//===- Axon.h - the classes that TableGen writes for axon.td --------------===//

#ifndef TC_AXON_H
#define TC_AXON_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "axon.dialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "axon.type.h.inc"
#define GET_OP_CLASSES
#include "axon.op.h.inc"

#endif // TC_AXON_H
