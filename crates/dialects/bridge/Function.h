//===- Function.h - assembly of operations that are functions -------------===//

#ifndef TC_FUNCTION_H
#define TC_FUNCTION_H

#include "mlir/Interfaces/FunctionImplementation.h"

namespace tc {

/// Parses `@name(%a: type, ..) -> type attributes {..} { body }`, as `func.func` does.
template <typename Op>
mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, mlir::OperationState &result) {
  auto buildType = [](mlir::Builder &builder, mlir::ArrayRef<mlir::Type> inputs,
                      mlir::ArrayRef<mlir::Type> results,
                      mlir::function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(inputs, results);
  };
  return mlir::function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false, Op::getFunctionTypeAttrName(result.name), buildType,
      Op::getArgAttrsAttrName(result.name), Op::getResAttrsAttrName(result.name));
}

/// Prints what `parseFunction` reads.
template <typename Op> void printFunction(mlir::OpAsmPrinter &printer, Op op) {
  mlir::function_interface_impl::printFunctionOp(printer, op, /*isVariadic=*/false,
                                                 op.getFunctionTypeAttrName(),
                                                 op.getArgAttrsAttrName(),
                                                 op.getResAttrsAttrName());
}

} // namespace tc

#endif // TC_FUNCTION_H
