//===- Tc.cpp - registration and trampolines of the tc dialect ------------===//

#include "Tc.h"
#include "Bridge.h"
#include "Function.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace tc::lang;

#include "tc.dialect.cpp.inc"
#define GET_OP_CLASSES
#include "tc.op.cpp.inc"

void TCDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tc.op.cpp.inc"
      >();
}

ParseResult DefOp::parse(OpAsmParser &parser, OperationState &result) {
  return tc::parseFunction<DefOp>(parser, result);
}

void DefOp::print(OpAsmPrinter &printer) { tc::printFunction(printer, *this); }

void DefOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  tc::nameArguments(*this, "tc.name", region, setName);
}

void ComprehensionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getTarget());
}

void ComprehensionOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  tc::nameRegionArguments(llvm::concat<const Attribute>(getIndexVars(), getReductionVars()),
                          region, setName);
}

LogicalResult DefOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ReturnOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult SizeOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ExtentOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ComprehensionOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ReadOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
