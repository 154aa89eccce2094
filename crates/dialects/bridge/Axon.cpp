//===- Axon.cpp - registration and assembly of the axon dialect -----------===//

#include "Axon.h"
#include "Bridge.h"
#include "Function.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::axon;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Deepest nesting of an expression; the notation of Axon has the same limit.
constexpr unsigned maxNesting = 100;

/// Reads a dimension, and writes it in the notation of Axon.
static ParseResult parseDim(AsmParser &parser, std::string &text, unsigned depth) {
  SMLoc location = parser.getCurrentLocation();
  if (depth == maxNesting)
    return parser.emitError(location) << "dimension is nested too deeply";
  StringRef keyword;
  int64_t size;
  if (succeeded(parser.parseOptionalStar())) {
    text += '*';
  } else if (succeeded(parser.parseOptionalKeyword(&keyword))) {
    text += keyword;
  } else if (succeeded(parser.parseOptionalLParen())) {
    char sign;
    if (succeeded(parser.parseOptionalPlus()))
      sign = '+';
    else if (succeeded(parser.parseOptionalMinus()))
      sign = '-';
    else if (succeeded(parser.parseOptionalStar()))
      sign = '*';
    else if (succeeded(parser.parseOptionalSlash()))
      sign = '/';
    else
      return parser.emitError(parser.getCurrentLocation()) << "expected '+', '-', '*' or '/'";
    text += '(';
    text += sign;
    for (int operand = 0; operand < 2; ++operand) {
      text += ' ';
      if (failed(parseDim(parser, text, depth + 1)))
        return failure();
    }
    text += ')';
    return parser.parseRParen();
  } else {
    OptionalParseResult number = parser.parseOptionalInteger(size);
    if (!number.has_value())
      return parser.emitError(location) << "expected a dimension";
    if (failed(*number))
      return failure();
    text += std::to_string(size);
  }
  return success();
}

Type tc::axon::TensorType::parse(AsmParser &parser) {
  StringRef element;
  std::string shape;
  if (parser.parseLess() || parser.parseKeyword(&element) || parser.parseComma())
    return {};
  do {
    if (!shape.empty())
      shape += '@';
    StringRef name;
    if (succeeded(parser.parseOptionalKeyword(&name))) {
      shape += name;
      continue;
    }
    shape += '[';
    bool isFirst = true;
    auto dim = [&] {
      if (!isFirst)
        shape += ',';
      isFirst = false;
      return parseDim(parser, shape, 0);
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, dim, " in a shape"))
      return {};
    shape += ']';
  } while (succeeded(parser.parseOptionalPlus()) && succeeded(parser.parsePlus()));
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), element, shape);
}

void tc::axon::TensorType::print(AsmPrinter &printer) const {
  printer << '<' << getElement() << ", ";
  for (char c : getShape()) {
    if (c == '@')
      printer << " ++ ";
    else if (c == ',')
      printer << ", ";
    else
      printer << c;
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Assembly of operations
//===----------------------------------------------------------------------===//

static ParseResult parseNumber(OpAsmParser &parser, TypedAttr &value) {
  Attribute attribute;
  SMLoc location = parser.getCurrentLocation();
  bool isNegative = succeeded(parser.parseOptionalMinus());
  if (succeeded(parser.parseOptionalKeyword("inf"))) {
    double infinity = std::numeric_limits<double>::infinity();
    value = parser.getBuilder().getF64FloatAttr(isNegative ? -infinity : infinity);
    return success();
  }
  // Types follow from the spelling: what has a point or an exponent is a float.
  APInt integer;
  OptionalParseResult read = parser.parseOptionalInteger(integer);
  if (read.has_value()) {
    if (failed(*read))
      return failure();
    integer = integer.zext(std::max(integer.getBitWidth(), 64u) + 1);
    if (isNegative)
      integer.negate();
    if (!integer.isSignedIntN(64) && !integer.isIntN(64))
      return parser.emitError(location) << "integer does not fit 64 bits";
    bool isSigned = integer.isSignedIntN(64);
    IntegerType type = IntegerType::get(parser.getContext(), 64,
                                        isSigned ? IntegerType::Signless : IntegerType::Unsigned);
    value = IntegerAttr::get(type, integer.trunc(64));
    return success();
  }
  double number;
  if (failed(parser.parseFloat(number)))
    return parser.emitError(location) << "expected a number";
  value = parser.getBuilder().getF64FloatAttr(isNegative ? -number : number);
  return success();
}

static void printNumber(OpAsmPrinter &printer, Operation *, TypedAttr value) {
  if (auto number = dyn_cast<FloatAttr>(value); number && number.getValue().isInfinity())
    printer << (number.getValue().isNegative() ? "-inf" : "inf");
  else
    printer.printAttributeWithoutType(value);
}

void FnOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  tc::nameRegionArguments(getParams(), region, setName);
}

void DefOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getName()); }

ParseResult FnOp::parse(OpAsmParser &parser, OperationState &result) {
  ArrayAttr params;
  SmallVector<OpAsmParser::Argument> arguments;
  Type type;
  Region *body = result.addRegion();
  if (parser.parseAttribute(params, "params", result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments) || parser.parseColonType(type))
    return failure();
  result.addTypes(type);
  return success();
}

void FnOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printAttributeWithoutType(getParamsAttr());
  printer << '(';
  llvm::interleaveComma(getBodyRegion().getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ')';
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"params"});
  printer << ' ';
  printer.printRegion(getBodyRegion(), /*printEntryBlockArgs=*/false);
  printer << " : " << getType();
}

//===----------------------------------------------------------------------===//
// The dialect
//===----------------------------------------------------------------------===//

#include "axon.dialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "axon.type.cpp.inc"
#define GET_OP_CLASSES
#include "axon.op.cpp.inc"

void AxonDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "axon.type.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "axon.op.cpp.inc"
      >();
}
