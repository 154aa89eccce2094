//===- Assembly.cpp - assembly of operations with indexing maps -----------===//

#include "Assembly.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir;
using namespace tc::imap;

//===----------------------------------------------------------------------===//
// Text of maps: C++ collects the tokens, and Rust parses them
//===----------------------------------------------------------------------===//

void TokenText::add(SMLoc location, StringRef token) {
  if (!text.empty())
    text += ' ';
  starts.emplace_back(text.size(), location);
  text += token;
}

void TokenText::add(const TokenText &other) {
  if (!text.empty())
    text += ' ';
  for (auto [start, location] : other.starts)
    starts.emplace_back(text.size() + start, location);
  text += other.text;
}

/// The variables of a kind that a condition may name.
static constexpr unsigned maxVariables = 1024;

std::string TokenText::standardSpace() const {
  std::array<StringRef, 3> names = {"d", "s", "rt"}, brackets = {"()", "[]", "{}"};
  std::array<unsigned, 3> counts = {};
  for (auto [number, start] : llvm::enumerate(llvm::make_first_range(starts))) {
    size_t end = number + 1 < starts.size() ? starts[number + 1].first : text.size();
    StringRef token = StringRef(text).slice(start, end).trim();
    for (auto [name, count] : llvm::zip_equal(names, counts)) {
      StringRef digits = token;
      unsigned found;
      if (digits.consume_front(name) && !digits.getAsInteger(10, found) && found < maxVariables)
        count = std::max(count, found + 1);
    }
  }
  std::string space;
  for (auto [name, count, bracket] : llvm::zip_equal(names, counts, brackets)) {
    space += bracket.front();
    for (unsigned number = 0; number < count; ++number)
      space += (Twine(number ? ", " : "") + name + Twine(number)).str();
    space += bracket.back();
  }
  return space;
}

SMLoc TokenText::locate(size_t offset, SMLoc end) const {
  SMLoc found = end;
  for (auto [start, location] : starts)
    if (start <= offset)
      found = location;
  return offset >= text.size() ? end : found;
}

namespace {

/// Why a text is no map, and where.
struct MapError {
  std::string message;
  size_t offset = 0;
};

/// Adds the next token of an expression, if there is one. Brackets do not belong to it.
OptionalParseResult parseToken(AsmParser &parser, TokenText &tokens) {
  SMLoc location = parser.getCurrentLocation();
  StringRef keyword;
  StringRef token = succeeded(parser.parseOptionalMinus())   ? "-"
                    : succeeded(parser.parseOptionalPlus())  ? "+"
                    : succeeded(parser.parseOptionalStar())  ? "*"
                    : succeeded(parser.parseOptionalSlash()) ? "/"
                                                             : "";
  if (!token.empty()) {
    tokens.add(location, token);
    return success();
  }
  if (succeeded(parser.parseOptionalKeyword(&keyword))) {
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

} // namespace

void tc::imap::printText(void *printer, MlirStringRef text) {
  static_cast<AsmPrinter *>(printer)->getStream() << unwrap(text);
}

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
// Schedules
//===----------------------------------------------------------------------===//

/// `tile [i = 4, j = 16]`, `pack in 0`, `order [i, j]`, `vector [i = 4, j = 16] lanes j`
static Attribute parseStep(AsmParser &parser) {
  SMLoc location = parser.getCurrentLocation();
  const char *steps = "expected 'tile', 'forall', 'pack', 'order' or 'vector'";
  StringRef name;
  if (failed(parser.parseOptionalKeyword(&name))) {
    parser.emitError(location) << "a schedule has steps; " << steps;
    return {};
  }
  if (!llvm::is_contained(ArrayRef<StringRef>({"tile", "forall", "pack", "order", "vector"}), name)) {
    parser.emitError(location) << "'" << name << "' is no step; " << steps;
    return {};
  }
  bool isOrder = name == "order";
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  auto makeStep = [&](StringRef lanes) {
    return builder.getArrayAttr({builder.getStringAttr(name), builder.getArrayAttr(names),
                                 builder.getDenseI64ArrayAttr(sizes), builder.getStringAttr(lanes)});
  };
  if (name == "pack") {
    if (failed(parser.parseKeyword("in", " and the number of an input")))
      return {};
    SMLoc place = parser.getCurrentLocation();
    if (failed(parser.parseInteger(sizes.emplace_back())))
      return {};
    if (sizes.front() < 0) {
      parser.emitError(place) << "the number of an input is not negative";
      return {};
    }
    return makeStep("");
  }
  auto parseVariable = [&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    StringRef variable;
    int64_t size = 0;
    if (failed(parser.parseKeyword(&variable)))
      return failure();
    Attribute known = builder.getStringAttr(variable);
    if (llvm::is_contained(names, known))
      return parser.emitError(place) << "'" << variable << "' stands twice in the step";
    names.push_back(known);
    if (isOrder)
      return success();
    if (failed(parser.parseEqual()) || failed(parser.parseInteger(size)))
      return failure();
    if (size <= 0)
      return parser.emitError(place) << "the size of '" << variable << "' has to be positive";
    sizes.push_back(size);
    return success();
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseVariable)))
    return {};
  if (names.empty()) {
    StringRef expected = isOrder ? "variables, such as [i, j]" : "sizes, such as [i = 4]";
    parser.emitError(location) << "'" << name << "' expects " << expected;
    return {};
  }
  StringRef lanes;
  if (name == "vector") {
    SMLoc place = parser.getCurrentLocation();
    if (failed(parser.parseKeyword("lanes", " after the sizes of a block")) ||
        failed(parser.parseKeyword(&lanes)))
      return {};
    if (!llvm::is_contained(names, builder.getStringAttr(lanes))) {
      parser.emitError(place) << "the lanes '" << lanes << "' have no size";
      return {};
    }
  }
  return makeStep(lanes);
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  SmallVector<Attribute> steps;
  bool onBuffers = false;
  // The steps that may stand once: those for buffers, and the copies of an input in one tile.
  SmallVector<Attribute> once;
  auto parse = [&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    Attribute step = parseStep(parser);
    if (!step)
      return failure();
    StringRef name = cast<StringAttr>(cast<ArrayAttr>(step)[0]).getValue();
    bool isOnBuffers = name == "order" || name == "vector";
    if (onBuffers && !isOnBuffers)
      return parser.emitError(place) << "'" << name << "' has to come before 'order' and 'vector'";
    onBuffers |= isOnBuffers;
    if (name == "pack") {
      if (llvm::is_contained(once, step)) {
        int64_t input = cast<DenseI64ArrayAttr>(cast<ArrayAttr>(step)[2])[0];
        return parser.emitError(place) << "input " << input << " is packed twice; remove this step";
      }
      once.push_back(step);
    } else if (isOnBuffers) {
      Attribute keyword = cast<ArrayAttr>(step)[0];
      if (llvm::is_contained(once, keyword))
        return parser.emitError(place) << "'" << name << "' stands twice in the schedule; remove one";
      once.push_back(keyword);
    } else {
      once.clear();
    }
    steps.push_back(step);
    return success();
  };
  if (failed(parser.parseLess()) || failed(parser.parseCommaSeparatedList(parse)) ||
      failed(parser.parseGreater()))
    return {};
  return ScheduleAttr::get(parser.getContext(), parser.getBuilder().getArrayAttr(steps));
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getSteps().getAsRange<ArrayAttr>(), printer, [&](ArrayAttr step) {
    StringRef keyword = cast<StringAttr>(step[0]).getValue();
    ArrayRef<int64_t> sizes = cast<DenseI64ArrayAttr>(step[2]).asArrayRef();
    printer << keyword;
    if (keyword == "pack") {
      printer << " in " << sizes.front();
      return;
    }
    printer << " [";
    auto names = llvm::enumerate(cast<ArrayAttr>(step[1]).getAsRange<StringAttr>());
    llvm::interleaveComma(names, printer, [&](auto name) {
      printer << name.value().getValue();
      if (!sizes.empty())
        printer << " = " << sizes[name.index()];
    });
    printer << ']';
    if (StringRef lanes = cast<StringAttr>(step[3]).getValue(); !lanes.empty())
      printer << " lanes " << lanes;
  });
  printer << '>';
}

MlirAttribute tcScheduleGet(MlirAttribute steps) {
  auto array = cast<ArrayAttr>(unwrap(steps));
  return wrap(ScheduleAttr::get(array.getContext(), array));
}

MlirAttribute tcScheduleSteps(MlirAttribute attribute) {
  auto schedule = dyn_cast<ScheduleAttr>(unwrap(attribute));
  return wrap(schedule ? Attribute(schedule.getSteps()) : Attribute());
}

//===----------------------------------------------------------------------===//
// Variables, operands and subscripts
//===----------------------------------------------------------------------===//

ParseResult Assembly::parseDomain(MapAttr &domain) {
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
  // So that an error in the names is found before the intervals are read.
  if (!parseMap(parser, text, location))
    return failure();
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
ParseResult Assembly::parseIntervals(TokenText &text) {
  while (true) {
    if (failed(parseInterval(text)))
      return failure();
    SMLoc location = parser.getCurrentLocation();
    if (failed(parser.parseOptionalComma()))
      return success();
    text.add(location, ",");
  }
}

ParseResult Assembly::parseInterval(TokenText &text) {
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

/// `[exprs]`, if there are subscripts, and `where` conditions that are joined by `and`.
OptionalParseResult Assembly::parseOptionalSubscripts(MapAttr &map) {
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
  location = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("where"))) {
    text.add(location, ", where");
    while (true) {
      if (failed(parseInterval(text)))
        return failure();
      location = parser.getCurrentLocation();
      if (failed(parser.parseOptionalKeyword("and")))
        break;
      text.add(location, ",");
    }
  }
  map = parseMap(parser, text, location);
  return success(bool(map));
}

ParseResult Assembly::parseConditions(MapAttr &map) {
  SMLoc location = parser.getCurrentLocation();
  TokenText conditions, text;
  if (failed(parser.parseLParen()) || failed(parseIntervals(conditions)))
    return failure();
  text.add(location, conditions.standardSpace() + " -> ( ) , where");
  text.add(conditions);
  location = parser.getCurrentLocation();
  map = parseMap(parser, text, location);
  return failure(!map || failed(parser.parseRParen()));
}

ParseResult Assembly::parseNumber(Number &number) {
  number.location = parser.getCurrentLocation();
  bool isNegative = succeeded(parser.parseOptionalMinus());
  number.isHexadecimal =
      !isNegative && !strncmp(parser.getCurrentLocation().getPointer(), "0x", 2);
  OptionalParseResult integer = parser.parseOptionalInteger(number.integer);
  if (integer.has_value()) {
    if (isNegative)
      number.integer = -number.integer.sext(number.integer.getBitWidth() + 1);
    return *integer;
  }
  number.isFloat = true;
  if (failed(parser.parseFloat(number.value)))
    return failure();
  if (isNegative)
    number.value = -number.value;
  return success();
}

/// A number as an element of a type; null after an error.
TypedAttr Assembly::numberOfType(const Number &number, Type type) {
  Builder &builder = parser.getBuilder();
  if (auto floatType = dyn_cast<FloatType>(type)) {
    unsigned width = floatType.getWidth();
    if (number.isFloat)
      return builder.getFloatAttr(floatType, number.value);
    if (number.isHexadecimal && number.integer.isIntN(width)) {
      APInt bits = number.integer.zextOrTrunc(width);
      return builder.getFloatAttr(floatType, APFloat(floatType.getFloatSemantics(), bits));
    }
  } else if (type.isIntOrIndex() && !number.isFloat) {
    unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    const APInt &value = number.integer;
    if (value.isSignedIntN(width) || (!value.isNegative() && value.isIntN(width))) {
      Type signless = type.isIndex() ? type : builder.getIntegerType(width);
      return builder.getIntegerAttr(signless, value.sextOrTrunc(width));
    }
  }
  parser.emitError(number.location)
      << "expected a number of type " << type
      << "; a float has a point, such as '1.0', or is its bits in hexadecimal";
  return {};
}

ParseResult Assembly::parseAccesses(SmallVectorImpl<Attribute> &found,
                                    SmallVectorImpl<Attribute> &fills, bool isRuntime,
                                    int32_t &count) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  // Per access with subscripts, its operand and the number after `else`.
  SmallVector<std::pair<size_t, std::optional<Number>>> constants;
  SMLoc location = parser.getCurrentLocation();
  auto parseAccess = [&]() -> ParseResult {
    if (failed(parser.parseOperand(operands.emplace_back())))
      return failure();
    SMLoc location = parser.getCurrentLocation();
    MapAttr map;
    OptionalParseResult subscripts = parseOptionalSubscripts(map);
    if (subscripts.has_value()) {
      if (failed(*subscripts))
        return failure();
      found.push_back(map);
      std::optional<Number> &constant =
          constants.emplace_back(operands.size() - 1, std::nullopt).second;
      if (succeeded(parser.parseOptionalKeyword("else")))
        return parseNumber(constant.emplace());
      return success();
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
  for (auto &[operand, number] : constants) {
    Attribute fill = parser.getBuilder().getUnitAttr();
    if (number)
      fill = numberOfType(*number, getElementTypeOrSelf(types[operand]));
    if (!fill)
      return failure();
    fills.push_back(fill);
  }
  count = operands.size();
  return success();
}

ParseResult Assembly::parseOperands(SmallVectorImpl<Attribute> &maps, ArrayAttr &fills,
                                    std::array<int32_t, 3> &counts) {
  SmallVector<Attribute> runtimeMaps, constants, runtimeConstants;
  if (succeeded(parser.parseOptionalKeyword("runtime")) &&
      failed(parseAccesses(runtimeMaps, runtimeConstants, /*isRuntime=*/true, counts[0])))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("ins")) &&
      failed(parseAccesses(maps, constants, /*isRuntime=*/false, counts[1])))
    return failure();
  if (failed(parser.parseKeyword("outs")) ||
      failed(parseAccesses(maps, constants, /*isRuntime=*/false, counts[2])))
    return failure();
  llvm::append_range(maps, runtimeMaps);
  llvm::append_range(constants, runtimeConstants);
  if (!llvm::all_of(constants, llvm::IsaPred<UnitAttr>))
    fills = parser.getBuilder().getArrayAttr(constants);
  return success();
}

ParseResult Assembly::parseDimension(int64_t &number) {
  SMLoc location = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseKeyword(&name)))
    return failure();
  TokenText text = space;
  text.add(location, "-> (");
  text.add(location, name);
  text.add(location, ")");
  MapAttr map = parseMap(parser, text, location);
  if (!map)
    return failure();
  number = tcRustDimensionOf(map.getMap().get());
  if (number < 0)
    return parser.emitError(location) << "'" << name << "' is no dimension variable";
  return success();
}

ParseResult Assembly::parseAccumulators(SmallVectorImpl<Attribute> &accumulators) {
  SMLoc location = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    accumulators.push_back(parseAccumulator(parser));
    return success(bool(accumulators.back()));
  };
  if (failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne)))
    return failure();
  if (accumulators.empty())
    return parser.emitError(location, "expected at least one accumulator");
  return success();
}

void Writer::printDomain() {
  printer << ' ';
  tcRustPrintDomain(domain, static_cast<AsmPrinter *>(&printer), printText);
}

void Writer::printConditions() {
  printer << " (";
  tcRustPrintConditions(domain, static_cast<AsmPrinter *>(&printer), printText);
  printer << ')';
}

void Writer::printAccesses(StringRef keyword, OperandRange operands, ArrayRef<Attribute> &maps,
                           ArrayRef<Attribute> &fills) {
  if (operands.empty())
    return;
  printer << ' ' << keyword << '(';
  llvm::interleaveComma(operands, printer, [&](Value operand) {
    printer << operand;
    if (!isa<ShapedType>(operand.getType()) || maps.empty())
      return;
    tcRustPrintAccess(domain, cast<MapAttr>(maps.front()).getMap().get(),
                      static_cast<AsmPrinter *>(&printer), printText);
    maps = maps.drop_front();
    if (fills.empty())
      return;
    if (!isa<UnitAttr>(fills.front())) {
      printer << " else ";
      printer.printAttributeWithoutType(fills.front());
    }
    fills = fills.drop_front();
  });
  printer << " : " << operands.getTypes() << ')';
}

void Writer::printOperands(OperandRange runtimes, OperandRange inputs, OperandRange inits,
                           ArrayAttr allMaps, ArrayAttr allFills) {
  ArrayRef<Attribute> maps = allMaps.getValue();
  ArrayRef<Attribute> fills = allFills ? allFills.getValue() : ArrayRef<Attribute>();
  size_t numFixed = inputs.size() + inits.size();
  ArrayRef<Attribute> runtimeMaps = maps.drop_front(std::min(maps.size(), numFixed));
  ArrayRef<Attribute> runtimeFills = fills.drop_front(std::min(fills.size(), numFixed));
  printAccesses("runtime", runtimes, runtimeMaps, runtimeFills);
  printAccesses("ins", inputs, maps, fills);
  printAccesses("outs", inits, maps, fills);
}

void Writer::printAccumulators(ArrayAttr accumulators) {
  if (accumulators.empty())
    return;
  printer << " fold [";
  llvm::interleaveComma(
      accumulators.getAsRange<AccumulatorAttr>(), printer,
      [&](AccumulatorAttr accumulator) { printAccumulator(printer, accumulator); });
  printer << ']';
}
