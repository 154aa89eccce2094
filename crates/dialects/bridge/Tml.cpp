//===- Tml.cpp - registration and trampolines of the tml dialect ----------===//

#include "Tml.h"
#include "Bridge.h"
#include "Function.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tc::tml;

#include "tml.dialect.cpp.inc"
#define GET_OP_CLASSES
#include "tml.op.cpp.inc"

void TmlDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tml.op.cpp.inc"
      >();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  return tc::parseFunction<ProgramOp>(parser, result);
}

void ProgramOp::print(OpAsmPrinter &printer) { tc::printFunction(printer, *this); }

void ProgramOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  tc::nameArguments(*this, "tml.name", region, setName);
}

void AssignOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

LogicalResult ProgramOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ReturnOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult SmulOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult SdivOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ProductOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ContractOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult TransposeOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
