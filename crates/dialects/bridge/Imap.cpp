//===- Imap.cpp - registration and trampolines of the imap dialect --------===//

#include "Imap.h"
#include "Bridge.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc::imap;

#include "imap.dialect.cpp.inc"
#include "imap.enum.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "imap.attr.cpp.inc"
#define GET_OP_CLASSES
#include "imap.op.cpp.inc"

void ImapDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "imap.attr.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "imap.op.cpp.inc"
      >();
}

Operation *ImapDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location location) {
  return arith::ConstantOp::materialize(builder, value, type, location);
}

//===----------------------------------------------------------------------===//
// Text of maps: C++ collects the tokens, and Rust parses them
//===----------------------------------------------------------------------===//

namespace {

/// Tokens as text, and where in the source each of them begins.
struct TokenText {
  std::string text;
  SmallVector<std::pair<size_t, SMLoc>> starts;

  void add(SMLoc location, StringRef token) {
    if (!text.empty())
      text += ' ';
    starts.emplace_back(text.size(), location);
    text += token;
  }

  void add(const TokenText &other) {
    if (!text.empty())
      text += ' ';
    for (auto [start, location] : other.starts)
      starts.emplace_back(text.size() + start, location);
    text += other.text;
  }

  /// Where the token that holds the byte `offset` begins.
  SMLoc locate(size_t offset, SMLoc end) const {
    SMLoc found = end;
    for (auto [start, location] : starts)
      if (start <= offset)
        found = location;
    return offset >= text.size() ? end : found;
  }
};

/// Why a text is no map, and where.
struct MapError {
  std::string message;
  size_t offset = 0;
};

/// Adds the next token of an expression, if there is one. Brackets do not belong to it.
OptionalParseResult parseToken(AsmParser &parser, TokenText &tokens) {
  SMLoc location = parser.getCurrentLocation();
  std::string keyword;
  StringRef token = succeeded(parser.parseOptionalMinus())   ? "-"
                    : succeeded(parser.parseOptionalPlus())  ? "+"
                    : succeeded(parser.parseOptionalStar())  ? "*"
                    : succeeded(parser.parseOptionalSlash()) ? "/"
                                                             : "";
  if (!token.empty()) {
    tokens.add(location, token);
    return success();
  }
  if (succeeded(parser.parseOptionalKeywordOrString(&keyword))) {
    tokens.add(location, keyword);
    return success();
  }
  APInt value;
  OptionalParseResult integer = parser.parseOptionalInteger(value);
  if (!integer.has_value() || failed(*integer))
    return integer;
  SmallString<24> digits;
  value.toString(digits, 10, /*Signed=*/false);
  tokens.add(location, digits);
  return success();
}

/// The next token if it is one of some brackets, or 0.
char parseBracket(AsmParser &parser, StringRef brackets) {
  for (char bracket : brackets)
    if (succeeded(bracket == '('   ? parser.parseOptionalLParen()
                  : bracket == '[' ? parser.parseOptionalLSquare()
                  : bracket == '{' ? parser.parseOptionalLBrace()
                  : bracket == ')' ? parser.parseOptionalRParen()
                  : bracket == ']' ? parser.parseOptionalRSquare()
                                   : parser.parseOptionalRBrace()))
      return bracket;
  return 0;
}

/// Adds an opening bracket and the tokens up to the one that closes it, if there is one of `brackets`.
OptionalParseResult parseOptionalGroup(AsmParser &parser, TokenText &tokens,
                                       StringRef brackets = "([{") {
  SmallVector<char> closing;
  do {
    SMLoc location = parser.getCurrentLocation();
    if (char open = parseBracket(parser, closing.empty() ? brackets : "([{")) {
      tokens.add(location, StringRef(&open, 1));
      closing.push_back(open == '(' ? ')' : open == '[' ? ']' : '}');
    } else if (closing.empty()) {
      return std::nullopt;
    } else if (char close = parseBracket(parser, ")]}")) {
      if (close != closing.back())
        return parser.emitError(location) << "expected '" << StringRef(&closing.back(), 1) << "'";
      tokens.add(location, StringRef(&close, 1));
      closing.pop_back();
    } else if (succeeded(parser.parseOptionalComma())) {
      tokens.add(location, ",");
    } else {
      OptionalParseResult token = parseToken(parser, tokens);
      if (!token.has_value())
        return parser.emitError(location) << "expected an index expression or '"
                                          << StringRef(&closing.back(), 1) << "'";
      if (failed(*token))
        return failure();
    }
  } while (!closing.empty());
  return success();
}

MapAttr parseMap(AsmParser &parser, const TokenText &tokens, SMLoc end) {
  MapError error;
  const TcMap *map = tcRustParseMap(wrap(StringRef(tokens.text)), &error,
                                    [](void *state, size_t offset, MlirStringRef message) {
                                      auto *error = static_cast<MapError *>(state);
                                      error->offset = offset;
                                      error->message = unwrap(message).str();
                                    });
  if (map)
    return MapAttr::get(parser.getContext(), Map(map));
  parser.emitError(tokens.locate(error.offset, end), error.message);
  return {};
}

/// Receives text from Rust.
void printText(void *printer, MlirStringRef text) {
  static_cast<AsmPrinter *>(printer)->getStream() << unwrap(text);
}

} // namespace

Attribute MapAttr::parse(AsmParser &parser, Type) {
  if (failed(parser.parseLess()))
    return {};
  TokenText tokens;
  while (true) {
    SMLoc location = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalGreater()))
      return parseMap(parser, tokens, location);
    OptionalParseResult group = parseOptionalGroup(parser, tokens);
    if (group.has_value()) {
      if (failed(*group))
        return {};
    } else if (succeeded(parser.parseOptionalArrow())) {
      tokens.add(location, "->");
    } else if (succeeded(parser.parseOptionalComma())) {
      tokens.add(location, ",");
    } else if (succeeded(parser.parseOptionalColon())) {
      tokens.add(location, ":");
    } else {
      OptionalParseResult token = parseToken(parser, tokens);
      if (!token.has_value())
        parser.emitError(location, "expected an indexing map, or '>' after it");
      if (!token.has_value() || failed(*token))
        return {};
    }
  }
}

void MapAttr::print(AsmPrinter &printer) const {
  printer << '<';
  tcRustPrintMap(getMap().get(), &printer, printText);
  printer << '>';
}

MlirAttribute tcMapGet(MlirContext context, const TcMap *map) {
  return wrap(MapAttr::get(unwrap(context), Map(map)));
}

const TcMap *tcMapOf(MlirAttribute attribute) {
  auto map = dyn_cast<MapAttr>(unwrap(attribute));
  return map ? map.getMap().get() : nullptr;
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

/// `add f32`, `add f32 from 5.0`, `add f32 from outs 0`, `f32 identity 0.0`
static Attribute parseAccumulator(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  CombinerKind kind = CombinerKind::Custom;
  StringRef name;
  Type type;
  TypedAttr identity, start;
  int64_t out = -1;
  OptionalParseResult optionalType = parser.parseOptionalType(type);
  if (optionalType.has_value()) {
    if (failed(*optionalType) || failed(parser.parseKeyword("identity")) ||
        failed(parser.parseAttribute(identity, type)))
      return {};
  } else {
    if (failed(parser.parseKeyword(&name)))
      return {};
    std::optional<CombinerKind> named = symbolizeCombinerKind(name);
    if (!named || named == CombinerKind::Assign || named == CombinerKind::Custom) {
      parser.emitError(location) << "'" << name << "' is no combiner; expected 'add', 'mul', "
        "'minf', 'maxf', 'minimumf', 'maximumf', 'mins', 'maxs', 'minu', 'maxu', 'and' or 'or', or "
        "a type and 'identity'";
      return {};
    }
    kind = *named;
    if (failed(parser.parseType(type)))
      return {};
  }
  if (succeeded(parser.parseOptionalKeyword("from"))) {
    bool isDestination = succeeded(parser.parseOptionalKeyword("outs"));
    location = parser.getCurrentLocation();
    if (isDestination ? failed(parser.parseInteger(out))
                      : failed(parser.parseAttribute(start, type)))
      return {};
    if (isDestination && out < 0) {
      parser.emitError(location, "expected the number of a destination");
      return {};
    }
  }
  return AccumulatorAttr::get(parser.getContext(), type, kind, identity, start, out);
}

static void printAccumulator(AsmPrinter &printer, AccumulatorAttr accumulator) {
  if (TypedAttr identity = accumulator.getIdentity()) {
    printer << accumulator.getType() << " identity ";
    printer.printAttributeWithoutType(identity);
  } else {
    printer << stringifyCombinerKind(accumulator.getKind()) << ' ' << accumulator.getType();
  }
  if (accumulator.getOut() >= 0)
    printer << " from outs " << accumulator.getOut();
  if (TypedAttr start = accumulator.getStart()) {
    printer << " from ";
    printer.printAttributeWithoutType(start);
  }
}

Attribute AccumulatorAttr::parse(AsmParser &parser, Type) {
  if (failed(parser.parseLess()))
    return {};
  Attribute accumulator = parseAccumulator(parser);
  if (!accumulator || failed(parser.parseGreater()))
    return {};
  return accumulator;
}

void AccumulatorAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAccumulator(printer, *this);
  printer << '>';
}

MlirAttribute tcAccumulatorGet(MlirType type, MlirStringRef name, MlirAttribute identity,
                               MlirAttribute start, int64_t out) {
  std::optional<CombinerKind> kind = symbolizeCombinerKind(unwrap(name));
  if (!kind)
    return {nullptr};
  return wrap(AccumulatorAttr::get(unwrap(type).getContext(), unwrap(type), *kind,
                                   dyn_cast_or_null<TypedAttr>(unwrap(identity)),
                                   dyn_cast_or_null<TypedAttr>(unwrap(start)), out));
}

bool tcAccumulatorParts(MlirAttribute attribute, MlirType *type, MlirStringRef *kind,
                        MlirAttribute *identity, MlirAttribute *start, int64_t *out) {
  auto accumulator = dyn_cast<AccumulatorAttr>(unwrap(attribute));
  if (!accumulator)
    return false;
  *type = wrap(accumulator.getType());
  *kind = wrap(stringifyCombinerKind(accumulator.getKind()));
  *identity = wrap(Attribute(accumulator.getIdentity()));
  *start = wrap(Attribute(accumulator.getStart()));
  *out = accumulator.getOut();
  return true;
}

//===----------------------------------------------------------------------===//
// Assembly of imap.generic
//===----------------------------------------------------------------------===//

namespace {

/// Reads the assembly of an operation with variables and subscripts.
struct Assembly {
  OpAsmParser &parser;
  OperationState &result;
  TokenText space;

  /// `(names)[names]{names}`, then `domain:` and the bounds.
  ParseResult parseDomain(MapAttr &domain) {
    SMLoc location = parser.getCurrentLocation();
    for (StringRef bracket : {"(", "[", "{"}) {
      OptionalParseResult group = parseOptionalGroup(parser, space, bracket);
      if (!group.has_value() && bracket == "(")
        return parser.emitError(location, "expected '(' and the dimension variables; the variables "
                                          "stand here, and subscripts at the operands");
      if (group.has_value() && failed(*group))
        return failure();
      location = parser.getCurrentLocation();
    }
    TokenText text = space;
    text.add(location, "-> ( )");
    if (succeeded(parser.parseOptionalKeyword("domain"))) {
      text.add(location, ", domain :");
      location = parser.getCurrentLocation();
      if (failed(parser.parseColon()) || failed(parseIntervals(text)))
        return failure();
    }
    domain = parseMap(parser, text, location);
    return success(bool(domain));
  }

  /// `expr in [lo, hi]`, separated by commas.
  ParseResult parseIntervals(TokenText &text) {
    while (true) {
      if (failed(parseInterval(text)))
        return failure();
      SMLoc location = parser.getCurrentLocation();
      if (failed(parser.parseOptionalComma()))
        return success();
      text.add(location, ",");
    }
  }

  ParseResult parseInterval(TokenText &text) {
    while (true) {
      SMLoc location = parser.getCurrentLocation();
      if (succeeded(parser.parseOptionalKeyword("in"))) {
        text.add(location, "in");
        OptionalParseResult bounds = parseOptionalGroup(parser, text, "[");
        return bounds.has_value() ? *bounds : parser.parseLSquare();
      }
      OptionalParseResult token = parseOptionalGroup(parser, text, "(");
      if (!token.has_value())
        token = parseToken(parser, text);
      if (!token.has_value())
        return parser.emitError(location, "expected an index expression and 'in' after it");
      if (failed(*token))
        return failure();
    }
  }

  /// `[exprs]`, if there are subscripts.
  OptionalParseResult parseOptionalSubscripts(MapAttr &map) {
    TokenText text = space, subscripts;
    SMLoc location = parser.getCurrentLocation();
    OptionalParseResult group = parseOptionalGroup(parser, subscripts, "[");
    if (!group.has_value() || failed(*group))
      return group;
    // The results of a map stand in parentheses.
    subscripts.text.front() = '(';
    subscripts.text.back() = ')';
    text.add(location, "->");
    text.add(subscripts);
    map = parseMap(parser, text, subscripts.starts.back().second);
    return success(bool(map));
  }

  /// `(accesses : types)`. A runtime variable that is an `index` has no subscripts; the maps of
  /// the others go to `found`.
  ParseResult parseAccesses(SmallVectorImpl<Attribute> &found, bool isRuntime, int32_t &count) {
    SmallVector<OpAsmParser::UnresolvedOperand> operands;
    SmallVector<Type> types;
    SMLoc location = parser.getCurrentLocation();
    auto parseAccess = [&]() -> ParseResult {
      if (failed(parser.parseOperand(operands.emplace_back())))
        return failure();
      SMLoc location = parser.getCurrentLocation();
      MapAttr map;
      OptionalParseResult subscripts = parseOptionalSubscripts(map);
      if (subscripts.has_value()) {
        found.push_back(map);
        return *subscripts;
      }
      if (!isRuntime)
        return parser.emitError(location, "expected the subscripts of the operand, '[]' if it has "
                                          "no dimensions");
      return success();
    };
    if (failed(parser.parseLParen()) || failed(parser.parseCommaSeparatedList(parseAccess)) ||
        failed(parser.parseColonTypeList(types)) || failed(parser.parseRParen()) ||
        failed(parser.resolveOperands(operands, types, location, result.operands)))
      return failure();
    count = operands.size();
    return success();
  }

  ParseResult parseRegion() {
    return parser.parseRegion(*result.addRegion());
  }
};

/// Writes it.
struct Writer {
  OpAsmPrinter &printer;
  const TcMap *domain;

  void printAccesses(StringRef keyword, OperandRange operands, ArrayRef<Attribute> &maps) {
    if (operands.empty())
      return;
    printer << ' ' << keyword << '(';
    llvm::interleaveComma(operands, printer, [&](Value operand) {
      printer << operand;
      if (!isa<ShapedType>(operand.getType()) || maps.empty())
        return;
      tcRustPrintSubscripts(domain, cast<MapAttr>(maps.front()).getMap().get(),
                            static_cast<AsmPrinter *>(&printer), printText);
      maps = maps.drop_front();
    });
    printer << " : " << operands.getTypes() << ')';
  }
};

} // namespace

ParseResult GenericOp::parse(OpAsmParser &parser, OperationState &result) {
  Assembly assembly{parser, result};
  auto &properties = result.getOrAddProperties<Properties>();
  std::array<int32_t, 3> counts = {};
  SmallVector<Attribute> maps, runtimeMaps, accumulators;
  MapAttr domain;
  if (failed(assembly.parseDomain(domain)))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("runtime")) &&
      failed(assembly.parseAccesses(runtimeMaps, /*isRuntime=*/true, counts[0])))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("ins")) &&
      failed(assembly.parseAccesses(maps, /*isRuntime=*/false, counts[1])))
    return failure();
  if (failed(parser.parseKeyword("outs")) ||
      failed(assembly.parseAccesses(maps, /*isRuntime=*/false, counts[2])))
    return failure();
  SMLoc location = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("fold"))) {
    auto parseOne = [&]() -> ParseResult {
      accumulators.push_back(parseAccumulator(parser));
      return success(bool(accumulators.back()));
    };
    if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne)))
      return failure();
    if (accumulators.empty())
      return parser.emitError(location, "expected at least one accumulator");
  } else if (succeeded(parser.parseOptionalKeyword("maps")) ||
             succeeded(parser.parseOptionalKeyword("combine"))) {
    return parser.emitError(location,
                            "'maps' and 'combine' were replaced: write subscripts at the operands, "
                            "'fold [add f32]' for 'combine [add from identity]', 'fold [add f32 "
                            "from outs 0]' for 'combine [add]', and nothing for 'assign'");
  }
  llvm::append_range(maps, runtimeMaps);
  properties.setDomain(domain);
  properties.setMaps(parser.getBuilder().getArrayAttr(maps));
  properties.setAccumulators(parser.getBuilder().getArrayAttr(accumulators));
  properties.setOperandSegmentSizes(counts);
  if (failed(parser.parseOptionalAttrDictWithKeyword(result.attributes)) ||
      failed(assembly.parseRegion()))
    return failure();
  for (StringRef keyword : {"combine", "epilogue"})
    if (succeeded(parser.parseOptionalKeyword(keyword)) && failed(assembly.parseRegion()))
      return failure();
  return failure(succeeded(parser.parseOptionalArrow()) &&
                 failed(parser.parseTypeList(result.types)));
}

void GenericOp::print(OpAsmPrinter &printer) {
  const TcMap *domain = getDomain().getMap().get();
  printer << ' ';
  tcRustPrintDomain(domain, static_cast<AsmPrinter *>(&printer), printText);
  Writer writer{printer, domain};
  ArrayRef<Attribute> maps = getMaps().getValue();
  ArrayRef<Attribute> runtimeMaps =
      maps.drop_front(std::min<size_t>(maps.size(), getInputs().size() + getInits().size()));
  writer.printAccesses("runtime", getRuntimes(), runtimeMaps);
  writer.printAccesses("ins", getInputs(), maps);
  writer.printAccesses("outs", getInits(), maps);
  if (!getAccumulators().empty()) {
    printer << " fold [";
    llvm::interleaveComma(getAccumulators().getAsRange<AccumulatorAttr>(), printer,
                          [&](AccumulatorAttr accumulator) { printAccumulator(printer, accumulator); });
    printer << ']';
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getDomainAttrName(), getMapsAttrName(), getAccumulatorsAttrName(),
                            getOperandSegmentSizesAttrName()});
  printer << ' ';
  printer.printRegion(getScalar());
  bool hasCombiner = llvm::any_of(
      getAccumulators().getAsRange<AccumulatorAttr>(),
      [](AccumulatorAttr accumulator) { return accumulator.getKind() == CombinerKind::Custom; });
  for (auto [number, region] : llvm::enumerate(getTail())) {
    printer << (hasCombiner && number == 0 ? " combine " : " epilogue ");
    printer.printRegion(region);
  }
  if (!getResultTypes().empty())
    printer << " -> " << getResultTypes();
}

//===----------------------------------------------------------------------===//
// Verifiers, effects, folds
//===----------------------------------------------------------------------===//

LogicalResult GenericOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult IndexOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ApplyOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult BuiltinOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }

/// What a function returns has the name of the result.
void GenericOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  auto function = dyn_cast<FunctionOpInterface>((*this)->getParentOp());
  if (!function)
    return;
  for (OpResult result : getResults())
    for (OpOperand &use : result.getUses())
      if (use.getOwner()->hasTrait<OpTrait::ReturnLike>() &&
          use.getOwner()->getParentOp() == function &&
          use.getOperandNumber() < function.getNumResults())
        if (auto name = function.getResultAttrOfType<StringAttr>(use.getOperandNumber(), "tc.name")) {
          setName(result, name.getValue());
          break;
        }
}

void GenericOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  auto add = [&](OpOperand &operand, bool writes) {
    if (!isa<MemRefType>(operand.get().getType()))
      return;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (writes)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  };
  for (OpOperand &operand : getInputsMutable())
    add(operand, false);
  for (OpOperand &operand : getRuntimesMutable())
    add(operand, false);
  for (OpOperand &operand : getInitsMutable())
    add(operand, true);
}

LogicalResult ApplyOp::fold(FoldAdaptor adaptor, SmallVectorImpl<OpFoldResult> &results) {
  SmallVector<int64_t> operands, values(getNumResults());
  for (Attribute attribute : adaptor.getOperands()) {
    auto constant = dyn_cast_or_null<IntegerAttr>(attribute);
    if (!constant)
      return failure();
    operands.push_back(constant.getValue().getSExtValue());
  }
  if (!tcRustFoldApply(getMap().getMap().get(), operands.size(), operands.data(),
                       values.size(), values.data()))
    return failure();
  Builder builder(getContext());
  for (int64_t value : values)
    results.push_back(builder.getIndexAttr(value));
  return success();
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

void ImapDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  tensor::populateFoldTensorEmptyPatterns(patterns);
}

LogicalResult GenericOp::canonicalize(GenericOp op, PatternRewriter &rewriter) {
  rewriter.startOpModification(op);
  bool hasChanged = tcRustCanonicalize(wrap(op.getOperation()));
  if (hasChanged)
    rewriter.finalizeOpModification(op);
  else
    rewriter.cancelOpModification(op);
  return success(hasChanged);
}

void tcConstantBounds(MlirValue handle, int64_t *lower, int64_t *upper) {
  using presburger::BoundType;
  Value value = unwrap(handle);
  auto bound = [](BoundType type, const ValueBoundsConstraintSet::Variable &variable) {
    return ValueBoundsConstraintSet::computeConstantBound(type, variable, /*stopCondition=*/nullptr,
                                                          /*closedUB=*/true);
  };
  if (FailureOr<int64_t> found = bound(BoundType::UB, value); succeeded(found))
    *upper = *found;
  if (FailureOr<int64_t> found = bound(BoundType::LB, value); succeeded(found))
    *lower = *found;
  // LLVM 22 derives no lower bound of a minimum.
  auto minimum = value.getDefiningOp<affine::AffineMinOp>();
  if (!minimum)
    return;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (unsigned i = 0; i < minimum.getMap().getNumResults(); ++i) {
    FailureOr<int64_t> found =
        bound(BoundType::LB, {minimum.getMap().getSubMap({i}), minimum.getOperands()});
    if (failed(found))
      return;
    smallest = std::min(smallest, *found);
  }
  *lower = std::max(*lower, smallest);
}

//===----------------------------------------------------------------------===//
// Tiling
//===----------------------------------------------------------------------===//

namespace {

using Folds = ArrayRef<OpFoldResult>;

TcIndex toRust(OpFoldResult fold) {
  if (std::optional<int64_t> constant = getConstantIntValue(fold))
    return {MlirValue{nullptr}, *constant};
  return {wrap(cast<Value>(fold)), 0};
}

SmallVector<TcIndex> toRust(Folds folds) {
  return llvm::map_to_vector(folds, [](OpFoldResult fold) { return toRust(fold); });
}

TcPlace toRust(OpBuilder &builder) {
  Block *block = builder.getInsertionBlock();
  Block::iterator point = builder.getInsertionPoint();
  return {wrap(block), point == block->end() ? MlirOperation{nullptr} : wrap(&*point)};
}

/// A tile, and the memory that Rust sees.
struct Tile {
  SmallVector<TcSpan> spans;

  Tile(Folds offsets, Folds sizes) {
    for (auto [offset, size] : llvm::zip_equal(offsets, sizes))
      spans.push_back({toRust(offset), toRust(size)});
  }

  TcTile raw() const { return {spans.size(), spans.data()}; }
};

/// A split of a reduction, and the memory that Rust sees.
struct Split {
  SmallVector<size_t> loops;
  SmallVector<TcIndex> places;
  SmallVector<MlirValue> partials;
  TcSplit raw;

  Split(const llvm::SetVector<unsigned> &reductionDims, ReductionTilingStrategy strategy,
        Folds splitIvs, ValueRange values)
      : loops(reductionDims.begin(), reductionDims.end()), places(toRust(splitIvs)) {
    for (Value value : values)
      partials.push_back(wrap(value));
    bool hasPlaces = strategy == ReductionTilingStrategy::PartialReductionOuterParallel;
    raw = {loops.size(), loops.data(), hasPlaces ? places.data() : nullptr, partials.size(),
           partials.data()};
  }
};

/// What Rust yields.
struct Collected {
  Builder builder;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<Operation *> slices, ops;
  SmallVector<Value> values;

  explicit Collected(GenericOp op) : builder(op.getContext()) {}

  TcTiled raw() {
    return {this,
            [](void *state, const TcSpan *span) {
              auto *self = static_cast<Collected *>(state);
              self->offsets.push_back(self->fold(span->offset));
              self->sizes.push_back(self->fold(span->size));
            },
            [](void *state, MlirOperation op) {
              static_cast<Collected *>(state)->slices.push_back(unwrap(op));
            },
            [](void *state, MlirOperation op) {
              static_cast<Collected *>(state)->ops.push_back(unwrap(op));
            },
            [](void *state, MlirValue value) {
              static_cast<Collected *>(state)->values.push_back(unwrap(value));
            }};
  }

  OpFoldResult fold(const TcIndex &index) {
    if (index.value.ptr)
      return unwrap(index.value);
    return builder.getIndexAttr(index.constant);
  }

  TilingResult tilingResult() const {
    return {ops, SmallVector<Value>(ops.front()->getResults()), slices};
  }

  template <typename Vector>
  void moveSpansTo(Vector &toOffsets, Vector &toSizes) const {
    toOffsets.assign(offsets.begin(), offsets.end());
    toSizes.assign(sizes.begin(), sizes.end());
  }
};

} // namespace

SmallVector<utils::IteratorType> GenericOp::getLoopIteratorTypes() {
  SmallVector<utils::IteratorType> types;
  tcRustParallelLoops(wrap(getOperation()), &types, [](void *state, bool isParallel) {
    static_cast<SmallVector<utils::IteratorType> *>(state)->push_back(
        isParallel ? utils::IteratorType::parallel : utils::IteratorType::reduction);
  });
  return types;
}

SmallVector<Range> GenericOp::getIterationDomain(OpBuilder &b) {
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  SmallVector<Range> ranges;
  if (tcRustIterationDomain(wrap(getOperation()), &place, &to))
    for (auto [offset, size] : llvm::zip_equal(collected.offsets, collected.sizes))
      ranges.push_back({offset, size, b.getIndexAttr(1)});
  return ranges;
}

static FailureOr<TilingResult> tileGeneric(GenericOp op, OpBuilder &b, Folds offsets, Folds sizes,
                                           bool isFused = false, bool keepOperands = false) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustTile(wrap(op.getOperation()), &place, &tile, isFused, keepOperands, &to))
    return failure();
  return collected.tilingResult();
}

FailureOr<TilingResult> GenericOp::getTiledImplementation(OpBuilder &b, Folds offsets,
                                                          Folds sizes) {
  return tileGeneric(*this, b, offsets, sizes);
}

LogicalResult GenericOp::getResultTilePosition(OpBuilder &b, unsigned resultNumber, Folds offsets,
                                               Folds sizes,
                                               SmallVector<OpFoldResult> &resultOffsets,
                                               SmallVector<OpFoldResult> &resultSizes) {
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustResultPosition(wrap(getOperation()), &place, resultNumber, &tile, &to))
    return failure();
  collected.moveSpansTo(resultOffsets, resultSizes);
  return success();
}

/// The tile of iterations for tiles of results or operands.
static LogicalResult domainTile(GenericOp op, OpBuilder &b, ArrayRef<unsigned> numbers,
                                bool isResult, ArrayRef<Tile> tiles,
                                SmallVectorImpl<OpFoldResult> &domainOffsets,
                                SmallVectorImpl<OpFoldResult> &domainSizes) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  auto raw = llvm::map_to_vector(tiles, [](const Tile &tile) { return tile.raw(); });
  if (!tcRustDomainTile(wrap(op.getOperation()), &place, numbers.size(), numbers.data(), isResult,
                        raw.data(), &to))
    return failure();
  collected.moveSpansTo(domainOffsets, domainSizes);
  return success();
}

LogicalResult GenericOp::getIterationDomainTileFromResultTile(
    OpBuilder &b, unsigned resultNumber, Folds offsets, Folds sizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets, SmallVectorImpl<OpFoldResult> &domainSizes) {
  return domainTile(*this, b, resultNumber, /*isResult=*/true, Tile(offsets, sizes), domainOffsets,
                    domainSizes);
}

FailureOr<TilingResult> GenericOp::generateResultTileValue(OpBuilder &b, unsigned resultNumber,
                                                           Folds offsets, Folds sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(getIterationDomainTileFromResultTile(b, resultNumber, offsets, sizes, domainOffsets,
                                                  domainSizes)))
    return failure();
  FailureOr<TilingResult> tile = tileGeneric(*this, b, domainOffsets, domainSizes, /*isFused=*/true);
  if (succeeded(tile))
    tile->tiledValues = {tile->tiledValues[resultNumber]};
  return tile;
}

LogicalResult GenericOp::getIterationDomainTileFromOperandTiles(
    OpBuilder &b, ArrayRef<unsigned> operandNumbers, ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  SmallVector<Tile> tiles;
  for (auto [offsets, sizes] : llvm::zip_equal(allOffsets, allSizes))
    tiles.emplace_back(offsets, sizes);
  return domainTile(*this, b, operandNumbers, /*isResult=*/false, tiles, domainOffsets,
                    domainSizes);
}

FailureOr<TilingResult> GenericOp::getTiledImplementationFromOperandTiles(
    OpBuilder &b, ArrayRef<unsigned> operandNumbers, ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes) {
  SmallVector<OpFoldResult> offsets, sizes;
  if (failed(getIterationDomainTileFromOperandTiles(b, operandNumbers, allOffsets, allSizes,
                                                    offsets, sizes)))
    return failure();
  // The driver replaces an operand of the tile by its number.
  return tileGeneric(*this, b, offsets, sizes, /*isFused=*/true, /*keepOperands=*/true);
}

bool GenericOp::isOpFusableWithConsumerSlice(unsigned resultNumber, Folds, Folds) {
  return tcRustHasTiles(wrap(getOperation()), resultNumber, /*isResult=*/true);
}

bool GenericOp::isOpFusableWithProducerSlices(ArrayRef<unsigned> operandNumbers,
                                              ArrayRef<SmallVector<OpFoldResult>>,
                                              ArrayRef<SmallVector<OpFoldResult>>) {
  return llvm::all_of(operandNumbers, [&](unsigned number) {
    return tcRustHasTiles(wrap(getOperation()), number, /*isResult=*/false);
  });
}

//===----------------------------------------------------------------------===//
// Reductions in parts
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> GenericOp::generateInitialTensorForPartialReduction(
    OpBuilder &b, Location, Folds tileSizes, const llvm::SetVector<unsigned> &reductionDims) {
  Split split(reductionDims, ReductionTilingStrategy::FullReduction, {}, {});
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  SmallVector<TcIndex> sizes = toRust(tileSizes);
  if (!tcRustInitialTensors(wrap(getOperation()), &place, sizes.size(), sizes.data(), &split.raw,
                            &to))
    return failure();
  return collected.values;
}

FailureOr<TilingResult> GenericOp::tileToPartialReduction(
    OpBuilder &b, Location, ReductionTilingStrategy strategy, ValueRange init, Folds offsets,
    Folds sizes, const llvm::SetVector<unsigned> &reductionDims, Folds splitReductionIvs) {
  Split split(reductionDims, strategy, splitReductionIvs, init);
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustPartialTile(wrap(getOperation()), &place, &tile, &split.raw, &to))
    return failure();
  return collected.tilingResult();
}

FailureOr<MergeResult> GenericOp::mergeReductions(OpBuilder &b, Location, ValueRange partialReduce,
                                                  const llvm::SetVector<unsigned> &reductionDims) {
  Split split(reductionDims, ReductionTilingStrategy::FullReduction, {}, partialReduce);
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  if (!tcRustMerge(wrap(getOperation()), &place, &split.raw, &to))
    return failure();
  return MergeResult{collected.ops, SmallVector<Value>(collected.ops.front()->getResults())};
}

LogicalResult GenericOp::getPartialResultTilePosition(
    OpBuilder &b, unsigned resultNumber, ReductionTilingStrategy strategy, Folds offsets,
    Folds sizes, const llvm::SetVector<unsigned> &reductionDims, Folds splitReductionIvs,
    SmallVector<OpFoldResult> &resultOffsets, SmallVector<OpFoldResult> &resultSizes) {
  Split split(reductionDims, strategy, splitReductionIvs, {});
  Collected collected(*this);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustPartialPosition(wrap(getOperation()), &place, resultNumber, &tile, &split.raw, &to))
    return failure();
  collected.moveSpansTo(resultOffsets, resultSizes);
  return success();
}

//===----------------------------------------------------------------------===//
// Bufferization: the operation itself on buffers
//===----------------------------------------------------------------------===//

namespace {

struct GenericBufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<GenericBufferization, GenericOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    auto generic = cast<GenericOp>(op);
    if (!generic.isDpsInit(&operand))
      return true;
    unsigned first = generic.getInitsMutable().begin()->getOperandNumber();
    return tcRustReadsDestination(wrap(op), operand.getOperandNumber() - first);
  }

  bool bufferizesToElementwiseAccess(Operation *op, const bufferization::AnalysisState &,
                                     ArrayRef<OpOperand *> operands) const {
    return llvm::all_of(operands, [&](OpOperand *operand) {
      return tcRustTouchesSameElement(wrap(op), operands.front()->getOperandNumber(),
                                      operand->getOperandNumber());
    });
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    auto generic = cast<GenericOp>(op);
    if (generic.hasPureBufferSemantics())
      return success();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands, results;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = bufferization::getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
      }
      operands.push_back(value);
      if (generic.isDpsInit(&operand))
        results.push_back(value);
    }
    OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(), op->getAttrs());
    for (Region &region : op->getRegions())
      newState.addRegion()->takeBody(region);
    rewriter.create(newState);
    bufferization::replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

} // namespace

void tc::imap::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ImapDialect *) {
    GenericOp::attachInterface<GenericBufferization>(*context);
  });
}
