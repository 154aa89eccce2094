//===- Tc.cpp - registration and trampolines of the tc dialect ------------===//

#include "Tc.h"
#include "Bridge.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

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
  auto buildType = [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name), buildType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void DefOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false,
                                           getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                           getResAttrsAttrName());
}

LogicalResult DefOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ReturnOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult SizeOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ExtentOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ComprehensionOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ReadOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
