//===- Hlo.cpp - registration and trampolines of the hlo dialect ----------===//

#include "Hlo.h"
#include "Bridge.h"
#include "Function.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::hlo;

//===----------------------------------------------------------------------===//
// Assembly that all instructions share
//===----------------------------------------------------------------------===//

/// Offers the name of an instruction as the name of its SSA value.
static void nameResult(Value result, const Origin &origin, OpAsmSetValueNameFn setName) {
  if (origin.name && !origin.name.empty())
    setName(result, origin.name.getValue());
}

/// The name that a printed SSA value has when it is read again; empty if it has
/// only a number.
static StringRef nameOfValue(StringRef printed) {
  printed.consume_front("%");
  return printed.empty() || llvm::isDigit(printed.front()) ? StringRef() : printed;
}

/// What the name of the SSA value does not say: `name "..."`, `metadata "..."`.
static void printOrigin(OpAsmPrinter &printer, Operation *op, const Origin &origin) {
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  printer.printOperand(op->getResult(0), stream);
  StringRef name = origin.name ? origin.name.getValue() : StringRef();
  if (nameOfValue(printed) != name) {
    printer << " name ";
    printer.printString(name);
  }
  if (origin.metadata) {
    printer << " metadata ";
    printer.printAttributeWithoutType(origin.metadata);
  }
}

static ParseResult parseOrigin(OpAsmParser &parser, Origin &origin) {
  if (succeeded(parser.parseOptionalKeyword("name"))) {
    if (parser.parseAttribute(origin.name))
      return failure();
  } else if (parser.getNumResults() != 0) {
    StringRef name = nameOfValue(parser.getResultName(0).first);
    if (!name.empty())
      origin.name = parser.getBuilder().getStringAttr(name);
  }
  if (succeeded(parser.parseOptionalKeyword("metadata")))
    return parser.parseAttribute(origin.metadata);
  return success();
}

/// One type if operands and result have the same, otherwise `(operands) -> result`.
template <typename... Types>
static void printTypes(OpAsmPrinter &printer, Operation *op, Types... types) {
  if (llvm::all_equal({Type(types)...}))
    printer << op->getResult(0).getType();
  else
    printer.printFunctionalType(op);
}

template <typename... Types>
static ParseResult parseTypes(OpAsmParser &parser, Types &...types) {
  Type *all[] = {&types...};
  Type type;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseType(type))
    return failure();
  auto function = dyn_cast<FunctionType>(type);
  if (!function) {
    for (Type *each : all)
      *each = type;
    return success();
  }
  size_t numOperands = sizeof...(types) - 1;
  if (function.getNumInputs() != numOperands || function.getNumResults() != 1)
    return parser.emitError(location)
           << "expected the types of " << numOperands << " operands and one result";
  for (size_t i = 0; i < numOperands; ++i)
    *all[i] = function.getInput(i);
  *all[numOperands] = function.getResult(0);
  return success();
}

//===----------------------------------------------------------------------===//
// The property `origin`
//===----------------------------------------------------------------------===//

Attribute tc::hlo::convertToAttribute(MLIRContext *context, const Origin &origin) {
  NamedAttrList entries;
  if (origin.name)
    entries.append("name", origin.name);
  if (origin.metadata)
    entries.append("metadata", origin.metadata);
  return entries.getDictionary(context);
}

LogicalResult tc::hlo::convertFromAttribute(Origin &origin, Attribute attribute,
                                            function_ref<InFlightDiagnostic()> emitError) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  if (!entries)
    return emitError() << "expected 'origin' to be a dictionary";
  auto read = [&](StringRef key, StringAttr &value) -> LogicalResult {
    Attribute entry = entries.get(key);
    value = dyn_cast_or_null<StringAttr>(entry);
    if (entry && !value)
      return emitError() << "expected '" << key << "' of 'origin' to be a string";
    return success();
  };
  return success(succeeded(read("name", origin.name)) &&
                 succeeded(read("metadata", origin.metadata)));
}

LogicalResult tc::hlo::readFromMlirBytecode(DialectBytecodeReader &reader, Origin &origin) {
  return success(succeeded(reader.readOptionalAttribute(origin.name)) &&
                 succeeded(reader.readOptionalAttribute(origin.metadata)));
}

void tc::hlo::writeToMlirBytecode(DialectBytecodeWriter &writer, const Origin &origin) {
  writer.writeOptionalAttribute(origin.name);
  writer.writeOptionalAttribute(origin.metadata);
}

//===----------------------------------------------------------------------===//
// The dialect
//===----------------------------------------------------------------------===//

#include "hlo.dialect.cpp.inc"
#include "hlo.interface.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "hlo.attr.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "hlo.type.cpp.inc"
#define GET_OP_CLASSES
#include "hlo.op.cpp.inc"

namespace {

/// Long tuples are printed once: the text of a loop over a tuple of n values would
/// grow with the square of n otherwise.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &stream) const override {
    auto tuple = dyn_cast<TupleType>(type);
    if (!tuple || tuple.size() <= 4)
      return AliasResult::NoAlias;
    stream << "tuple";
    return AliasResult::OverridableAlias;
  }
};

} // namespace

void HloDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "hlo.attr.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "hlo.type.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "hlo.op.cpp.inc"
      >();
  addInterfaces<Aliases>();
}

Operation *HloDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                           Location location) {
  NamedAttribute attribute = builder.getNamedAttr("value", value);
  return ConstantOp::create(builder, location, type, ValueRange(), attribute);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

ParseResult ComputationOp::parse(OpAsmParser &parser, OperationState &result) {
  return tc::parseFunction<ComputationOp>(parser, result);
}

void ComputationOp::print(OpAsmPrinter &printer) { tc::printFunction(printer, *this); }

void ComputationOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  tc::nameArguments(*this, "hlo.name", region, setName);
}

LogicalResult ComputationOp::verifySymbolUses(SymbolTableCollection &) {
  return success(tcRustVerify(wrap(getOperation())));
}

/// The type of a constant; null if the attribute is none.
static Type typeOf(Attribute value) {
  if (auto typed = dyn_cast<TypedAttr>(value))
    return typed.getType();
  auto elements = dyn_cast<ArrayAttr>(value);
  if (!elements)
    return Type();
  SmallVector<Type> types;
  for (Attribute element : elements) {
    types.push_back(typeOf(element));
    if (!types.back())
      return Type();
  }
  return TupleType::get(value.getContext(), types);
}

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location,
                                           ValueRange operands, DictionaryAttr attributes,
                                           OpaqueProperties properties, RegionRange regions,
                                           SmallVectorImpl<Type> &types) {
  Attribute value = Adaptor(operands, attributes, properties, regions).getValue();
  Type type = value ? typeOf(value) : Type();
  if (!type)
    return emitOptionalError(location, "expected 'value' to be the elements of an array, or a list "
                                       "of such for a tuple");
  types.push_back(type);
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

void CustomCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (!getCustomCallHasSideEffect().value_or(false))
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

//===----------------------------------------------------------------------===//
// What Rust reads and writes
//===----------------------------------------------------------------------===//

void tcHloGetOrigin(MlirOperation op, MlirStringRef *name, MlirStringRef *metadata) {
  auto instruction = dyn_cast<Instruction>(unwrap(op));
  Origin origin = instruction ? instruction.getInstructionOrigin() : Origin();
  *name = wrap(origin.name ? origin.name.getValue() : StringRef());
  *metadata = wrap(origin.metadata ? origin.metadata.getValue() : StringRef());
}

void tcHloSetOrigin(MlirOperation op, MlirStringRef name, MlirStringRef metadata) {
  if (auto instruction = dyn_cast<Instruction>(unwrap(op))) {
    Origin &origin = instruction.getInstructionOrigin();
    Builder builder(unwrap(op)->getContext());
    origin.name = name.length ? builder.getStringAttr(unwrap(name)) : StringAttr();
    origin.metadata = metadata.length ? builder.getStringAttr(unwrap(metadata)) : StringAttr();
  }
}

MlirAttribute tcHloLayoutGet(MlirContext context, size_t rank, const int64_t *minorToMajor,
                             MlirStringRef properties) {
  return wrap(LayoutAttr::get(unwrap(context), ArrayRef<int64_t>(minorToMajor, rank),
                              unwrap(properties)));
}

bool tcHloLayoutParts(MlirAttribute attribute, size_t *rank, const int64_t **minorToMajor,
                      MlirStringRef *properties) {
  auto layout = dyn_cast<LayoutAttr>(unwrap(attribute));
  if (!layout)
    return false;
  *rank = layout.getMinorToMajor().size();
  *minorToMajor = layout.getMinorToMajor().data();
  *properties = wrap(layout.getProperties());
  return true;
}
