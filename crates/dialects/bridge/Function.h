//===- Function.h - assembly of operations that are functions -------------===//

#ifndef TC_FUNCTION_H
#define TC_FUNCTION_H

#include "mlir/IR/OpImplementation.h"
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

/// Names the arguments of a function after an attribute that each of them has.
template <typename Op>
void nameArguments(Op op, llvm::StringRef attribute, mlir::Region &region,
                   mlir::OpAsmSetValueNameFn setName) {
  for (mlir::BlockArgument argument : region.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (number < op.getNumArguments())
      if (auto name = op.template getArgAttrOfType<mlir::StringAttr>(number, attribute))
        setName(argument, name.getValue());
  }
}

/// Names the first arguments of a region.
template <typename Names>
void nameRegionArguments(Names names, mlir::Region &region, mlir::OpAsmSetValueNameFn setName) {
  for (auto [name, argument] : llvm::zip(names, region.getArguments()))
    if (auto text = llvm::dyn_cast<mlir::StringAttr>(name))
      setName(argument, text.getValue());
}

} // namespace tc

#endif // TC_FUNCTION_H
