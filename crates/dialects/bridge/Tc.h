//===- Tc.h - the classes that TableGen writes for tc.td ------------------===//

#ifndef TC_TC_H
#define TC_TC_H

#include "Imap.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "tc.dialect.h.inc"
#define GET_OP_CLASSES
#include "tc.op.h.inc"

#endif // TC_TC_H
