//===- Imap.cpp - registration and trampolines of the imap dialect --------===//

#include "Assembly.h"
#include "Bridge.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
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
// Assembly
//===----------------------------------------------------------------------===//

/// Parses the clause between the bounds and the operands of an operation.
using ParseClause = llvm::function_ref<ParseResult(Assembly &)>;

/// Reads `attributes {..}`, which does not repeat what has a text of its own.
template <typename Op>
static ParseResult parseAttributes(OpAsmParser &parser, OperationState &result) {
  SMLoc location = parser.getCurrentLocation();
  if (failed(parser.parseOptionalAttrDictWithKeyword(result.attributes)))
    return failure();
  for (StringRef name : Op::getAttributeNames())
    if (result.attributes.get(name))
      return parser.emitError(location) << "'" << name << "' is no attribute to be listed: the text of "
                                        << "the operation says it before 'attributes'";
  return success();
}

/// Reads the form that operations with maps share, but for a clause after the bounds.
template <typename Op>
static ParseResult parseIndexed(OpAsmParser &parser, OperationState &result, ParseClause parseClause) {
  Assembly assembly{parser, result};
  auto &properties = result.getOrAddProperties<typename Op::Properties>();
  std::array<int32_t, 3> counts = {};
  SmallVector<Attribute> maps, accumulators;
  MapAttr domain;
  ArrayAttr fills;
  if (failed(assembly.parseDomain(domain)) || failed(parseClause(assembly)) ||
      failed(assembly.parseOperands(maps, fills, counts)))
    return failure();
  SMLoc location = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("fold"))) {
    if (failed(assembly.parseAccumulators(accumulators)))
      return failure();
    if constexpr (std::is_same_v<Op, GenericOp>)
      if (succeeded(parser.parseOptionalKeyword("ordered")))
        properties.ordered = parser.getBuilder().getUnitAttr();
  } else if (succeeded(parser.parseOptionalKeyword("maps")) ||
             succeeded(parser.parseOptionalKeyword("combine"))) {
    return parser.emitError(location,
                            "'maps' and 'combine' were replaced: write subscripts at the operands, "
                            "'fold [add f32]' for 'combine [add from identity]', 'fold [add f32 "
                            "from outs 0]' for 'combine [add]', and nothing for 'assign'");
  }
  properties.domain = domain;
  properties.maps = parser.getBuilder().getArrayAttr(maps);
  properties.fills = fills;
  properties.accumulators = parser.getBuilder().getArrayAttr(accumulators);
  properties.operandSegmentSizes = counts;
  if (failed(parseAttributes<Op>(parser, result)) || failed(assembly.parseRegion()))
    return failure();
  for (StringRef keyword : {"combine", "epilogue"})
    if (succeeded(parser.parseOptionalKeyword(keyword)) && failed(assembly.parseRegion()))
      return failure();
  return failure(succeeded(parser.parseOptionalArrow()) &&
                 failed(parser.parseTypeList(result.types)));
}

/// Writes it; `printClause` writes what follows the bounds, which the attributes `elided` hold.
template <typename Op>
static void printIndexed(Op op, OpAsmPrinter &printer, ArrayRef<StringRef> elided,
                         llvm::function_ref<void()> printClause) {
  Writer writer{printer, op.getDomain().getMap().get()};
  writer.printDomain();
  printClause();
  writer.printOperands(op.getRuntimes(), op.getInputs(), op.getInits(), op.getMaps(),
                       op.getFillsAttr());
  writer.printAccumulators(op.getAccumulators());
  if constexpr (std::is_same_v<Op, GenericOp>)
    if (op.getOrdered())
      printer << " ordered";
  SmallVector<StringRef> known = {op.getDomainAttrName(), op.getMapsAttrName(),
                                  op.getFillsAttrName(), op.getAccumulatorsAttrName(),
                                  op.getOperandSegmentSizesAttrName()};
  llvm::append_range(known, elided);
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), known);
  printer << ' ';
  printer.printRegion(op.getScalar());
  bool hasCombiner =
      std::is_same_v<Op, ScatterOp> ||
      llvm::any_of(op.getAccumulators().template getAsRange<AccumulatorAttr>(),
                   [](AccumulatorAttr accumulator) {
                     return accumulator.getKind() == CombinerKind::Custom;
                   });
  for (auto [number, region] : llvm::enumerate(op.getTail())) {
    printer << (hasCombiner && number == 0 ? " combine " : " epilogue ");
    printer.printRegion(region);
  }
  if (!op.getResultTypes().empty())
    printer << " -> " << op.getResultTypes();
}

ParseResult GenericOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseIndexed<GenericOp>(parser, result, [](Assembly &) { return success(); });
}

void GenericOp::print(OpAsmPrinter &printer) {
  printIndexed(*this, printer, {getOrderedAttrName()}, [] {});
}

ParseResult ScatterOp::parse(OpAsmParser &parser, OperationState &result) {
  Properties &properties = result.getOrAddProperties<Properties>();
  if (succeeded(parser.parseOptionalKeyword("unique")))
    properties.unique = parser.getBuilder().getUnitAttr();
  if (succeeded(parser.parseOptionalKeyword("sorted")))
    properties.sorted = parser.getBuilder().getUnitAttr();
  return parseIndexed<ScatterOp>(parser, result, [](Assembly &) { return success(); });
}

void ScatterOp::print(OpAsmPrinter &printer) {
  if (getUnique())
    printer << " unique";
  if (getSorted())
    printer << " sorted";
  printIndexed(*this, printer, {getUniqueAttrName(), getSortedAttrName()}, [] {});
}

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseIndexed<ScanOp>(parser, result, [&](Assembly &assembly) -> ParseResult {
    Properties &properties = result.getOrAddProperties<Properties>();
    StringRef direction;
    int64_t dim;
    if (failed(parser.parseKeyword("scan", " and the scanned variable")) ||
        failed(assembly.parseDimension(dim)))
      return failure();
    SMLoc location = parser.getCurrentLocation();
    if (failed(parser.parseKeyword(&direction)))
      return failure();
    if (direction != "inclusive" && direction != "exclusive")
      return parser.emitError(location, "expected 'inclusive' or 'exclusive'");
    properties.dim = parser.getBuilder().getI64IntegerAttr(dim);
    if (direction == "exclusive")
      properties.exclusive = parser.getBuilder().getUnitAttr();
    return success();
  });
}

void ScanOp::print(OpAsmPrinter &printer) {
  printIndexed(*this, printer, {getDimAttrName(), getExclusiveAttrName()}, [&] {
    printer << " scan ";
    tcRustPrintDimension(getDomain().getMap().get(), getDim(), static_cast<AsmPrinter *>(&printer),
                         printText);
    printer << (getExclusive() ? " exclusive" : " inclusive");
  });
}

/// `(conditions) : i1`
ParseResult InsideOp::parse(OpAsmParser &parser, OperationState &result) {
  MapAttr map;
  Type type;
  if (failed(Assembly{parser, result}.parseConditions(map)) ||
      failed(parser.parseOptionalAttrDict(result.attributes)) ||
      failed(parser.parseColonType(type)))
    return failure();
  result.getOrAddProperties<Properties>().setMap(map);
  result.addTypes(type);
  return success();
}

void InsideOp::print(OpAsmPrinter &printer) {
  Writer{printer, getMap().getMap().get()}.printConditions();
  printer.printOptionalAttrDict((*this)->getAttrs(), {getMapAttrName()});
  printer << " : " << getType();
}

//===----------------------------------------------------------------------===//
// Verifiers, effects, folds
//===----------------------------------------------------------------------===//

LogicalResult ImapDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return success(tcRustVerifyAttribute(wrap(op), wrap(attribute.getName().getValue())));
}

LogicalResult GenericOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult InsideOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ScatterOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ScanOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult SortOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult IndexOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult ApplyOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }
LogicalResult BuiltinOp::verify() { return success(tcRustVerify(wrap(getOperation()))); }

/// What a function returns has the name of the result.
static void setResultNames(Operation *op, OpAsmSetValueNameFn setName) {
  auto function = dyn_cast<FunctionOpInterface>(op->getParentOp());
  if (!function)
    return;
  for (OpResult result : op->getResults())
    for (OpOperand &use : result.getUses())
      if (use.getOwner()->hasTrait<OpTrait::ReturnLike>() &&
          use.getOwner()->getParentOp() == function &&
          use.getOperandNumber() < function.getNumResults())
        if (auto name = function.getResultAttrOfType<StringAttr>(use.getOperandNumber(), "tc.name")) {
          setName(result, name.getValue());
          break;
        }
}

void GenericOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setResultNames(getOperation(), setName);
}

void ScatterOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setResultNames(getOperation(), setName);
}

void ScanOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setResultNames(getOperation(), setName);
}

/// Buffers are read; destinations are read and written.
static void
addBufferEffects(DestinationStyleOpInterface op,
                 SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

void GenericOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  addBufferEffects(cast<DestinationStyleOpInterface>(getOperation()), effects);
}

void ScatterOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  addBufferEffects(cast<DestinationStyleOpInterface>(getOperation()), effects);
}

void ScanOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  addBufferEffects(cast<DestinationStyleOpInterface>(getOperation()), effects);
}

void SortOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  }
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

/// The bounds that hold for all operands.
void ApplyOp::populateBoundsForIndexValue(Value value, ValueBoundsConstraintSet &bounds) {
  int64_t least, most;
  size_t number = cast<OpResult>(value).getResultNumber();
  tcRustBoundsOfResult(getMap().getMap().get(), number, &least, &most);
  if (least != std::numeric_limits<int64_t>::min())
    bounds.bound(value) >= least;
  if (most != std::numeric_limits<int64_t>::max())
    bounds.bound(value) <= most;
}

//===----------------------------------------------------------------------===//
// Canonicalization
//===----------------------------------------------------------------------===//

namespace {

/// Folds a cast to a less static layout into the operation that uses the buffer. Loops cast their arguments so.
struct FoldBufferCast : RewritePattern {
  explicit FoldBufferCast(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa_and_nonnull<ImapDialect>(op->getDialect()))
      return failure();
    rewriter.startOpModification(op);
    bool hasChanged = succeeded(memref::foldMemRefCast(op));
    if (hasChanged)
      rewriter.finalizeOpModification(op);
    else
      rewriter.cancelOpModification(op);
    return success(hasChanged);
  }
};

} // namespace

void ImapDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  tensor::populateFoldTensorEmptyPatterns(patterns);
  patterns.add<FoldBufferCast>(getContext());
}

LogicalResult GenericOp::canonicalize(GenericOp op, PatternRewriter &rewriter) {
  struct State {
    GenericOp op;
    SmallVector<std::pair<Value, Value>> results;
  } state{op, {}};
  if (tcRustPrune(wrap(op.getOperation()), &state, [](void *raw, size_t number, MlirValue value) {
        auto *state = static_cast<State *>(raw);
        state->results.emplace_back(state->op->getResult(number), unwrap(value));
      })) {
    for (auto [old, replacement] : state.results)
      rewriter.replaceAllUsesWith(old, replacement);
    rewriter.eraseOp(op);
    return success();
  }
  rewriter.startOpModification(op);
  bool hasChanged = tcRustCanonicalize(wrap(op.getOperation()));
  if (hasChanged)
    rewriter.finalizeOpModification(op);
  else
    rewriter.cancelOpModification(op);
  return success(hasChanged);
}

MlirOperation tcOuterWrite(MlirBlock handle) {
  Block *block = unwrap(handle);
  auto isInside = [&](Value value) {
    return value && block->findAncestorOpInBlock(*value.getParentBlock()->getParentOp());
  };
  Operation *found = nullptr;
  block->walk([&](MemoryEffectOpInterface op) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    op.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      if (isa<MemoryEffects::Read, MemoryEffects::Allocate>(effect.getEffect()))
        continue;
      Value value = effect.getValue();
      if (value && (value.getParentBlock() == block || isInside(value)))
        continue;
      found = op;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return wrap(found);
}

void tcConstantBounds(MlirValue handle, int64_t *lower, int64_t *upper) {
  using presburger::BoundType;
  Value value = unwrap(handle);
  // `scf.for` looks for bounds of its carried values at its terminator, which a loop that is being
  // built does not have.
  auto isCarriedByOpenLoop = [](Value value, std::optional<int64_t>, ValueBoundsConstraintSet &) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return false;
    auto loop = dyn_cast_or_null<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && value != loop.getInductionVar() && !argument.getOwner()->mightHaveTerminator();
  };
  auto bound = [&](BoundType type, const ValueBoundsConstraintSet::Variable &variable) {
    return ValueBoundsConstraintSet::computeConstantBound(type, variable, isCarriedByOpenLoop,
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

  explicit Collected(Operation *op) : builder(op->getContext()) {}

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

namespace {

SmallVector<utils::IteratorType> loopIteratorTypes(Operation *op) {
  SmallVector<utils::IteratorType> types;
  tcRustParallelLoops(wrap(op), &types, [](void *state, bool isParallel) {
    static_cast<SmallVector<utils::IteratorType> *>(state)->push_back(
        isParallel ? utils::IteratorType::parallel : utils::IteratorType::reduction);
  });
  return types;
}

SmallVector<Range> iterationDomain(Operation *op, OpBuilder &b) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  SmallVector<Range> ranges;
  if (tcRustIterationDomain(wrap(op), &place, &to))
    for (auto [offset, size] : llvm::zip_equal(collected.offsets, collected.sizes))
      ranges.push_back({offset, size, b.getIndexAttr(1)});
  return ranges;
}

FailureOr<TilingResult> tileOp(Operation *op, OpBuilder &b, Folds offsets, Folds sizes,
                               bool isFused = false, bool keepOperands = false) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustTile(wrap(op), &place, &tile, isFused, keepOperands, &to))
    return failure();
  return collected.tilingResult();
}

LogicalResult resultTilePosition(Operation *op, OpBuilder &b, unsigned resultNumber, Folds offsets,
                                 Folds sizes, SmallVector<OpFoldResult> &resultOffsets,
                                 SmallVector<OpFoldResult> &resultSizes) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  Tile spans(offsets, sizes);
  TcTile tile = spans.raw();
  if (!tcRustResultPosition(wrap(op), &place, resultNumber, &tile, &to))
    return failure();
  collected.moveSpansTo(resultOffsets, resultSizes);
  return success();
}

/// The tile of iterations for tiles of results or operands.
LogicalResult domainTile(Operation *op, OpBuilder &b, ArrayRef<unsigned> numbers, bool isResult,
                         ArrayRef<Tile> tiles, SmallVectorImpl<OpFoldResult> &domainOffsets,
                         SmallVectorImpl<OpFoldResult> &domainSizes) {
  Collected collected(op);
  TcTiled to = collected.raw();
  TcPlace place = toRust(b);
  auto raw = llvm::map_to_vector(tiles, [](const Tile &tile) { return tile.raw(); });
  if (!tcRustDomainTile(wrap(op), &place, numbers.size(), numbers.data(), isResult, raw.data(),
                        &to))
    return failure();
  collected.moveSpansTo(domainOffsets, domainSizes);
  return success();
}

FailureOr<TilingResult> resultTile(Operation *op, OpBuilder &b, unsigned resultNumber,
                                   Folds offsets, Folds sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(domainTile(op, b, resultNumber, /*isResult=*/true, Tile(offsets, sizes),
                        domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tile = tileOp(op, b, domainOffsets, domainSizes, /*isFused=*/true);
  if (succeeded(tile))
    tile->tiledValues = {tile->tiledValues[resultNumber]};
  return tile;
}

LogicalResult domainTileOfOperands(Operation *op, OpBuilder &b, ArrayRef<unsigned> numbers,
                                   ArrayRef<SmallVector<OpFoldResult>> allOffsets,
                                   ArrayRef<SmallVector<OpFoldResult>> allSizes,
                                   SmallVectorImpl<OpFoldResult> &domainOffsets,
                                   SmallVectorImpl<OpFoldResult> &domainSizes) {
  SmallVector<Tile> tiles;
  for (auto [offsets, sizes] : llvm::zip_equal(allOffsets, allSizes))
    tiles.emplace_back(offsets, sizes);
  return domainTile(op, b, numbers, /*isResult=*/false, tiles, domainOffsets, domainSizes);
}

bool hasTile(Operation *op, unsigned number, bool isResult, const Tile &tile) {
  TcTile raw = tile.raw();
  return tcRustHasTiles(wrap(op), number, isResult, &raw);
}

FailureOr<TilingResult> tileOfOperands(Operation *op, OpBuilder &b, ArrayRef<unsigned> numbers,
                                       ArrayRef<SmallVector<OpFoldResult>> allOffsets,
                                       ArrayRef<SmallVector<OpFoldResult>> allSizes) {
  SmallVector<OpFoldResult> offsets, sizes;
  if (failed(domainTileOfOperands(op, b, numbers, allOffsets, allSizes, offsets, sizes)))
    return failure();
  // The driver replaces an operand of the tile by its number.
  return tileOp(op, b, offsets, sizes, /*isFused=*/true, /*keepOperands=*/true);
}

} // namespace

/// The methods of TilingInterface.
#define TC_TILING_METHODS(Op)                                                                      \
  SmallVector<utils::IteratorType> Op::getLoopIteratorTypes() {                                    \
    return loopIteratorTypes(getOperation());                                                      \
  }                                                                                                \
  SmallVector<Range> Op::getIterationDomain(OpBuilder &b) {                                        \
    return iterationDomain(getOperation(), b);                                                     \
  }                                                                                                \
  FailureOr<TilingResult> Op::getTiledImplementation(OpBuilder &b, Folds offsets, Folds sizes) {   \
    return tileOp(getOperation(), b, offsets, sizes);                                              \
  }                                                                                                \
  LogicalResult Op::getResultTilePosition(OpBuilder &b, unsigned resultNumber, Folds offsets,      \
                                          Folds sizes, SmallVector<OpFoldResult> &resultOffsets,   \
                                          SmallVector<OpFoldResult> &resultSizes) {                \
    return resultTilePosition(getOperation(), b, resultNumber, offsets, sizes, resultOffsets,      \
                              resultSizes);                                                        \
  }                                                                                                \
  LogicalResult Op::getIterationDomainTileFromResultTile(                                          \
      OpBuilder &b, unsigned resultNumber, Folds offsets, Folds sizes,                             \
      SmallVectorImpl<OpFoldResult> &domainOffsets, SmallVectorImpl<OpFoldResult> &domainSizes) {  \
    return domainTile(getOperation(), b, resultNumber, /*isResult=*/true, Tile(offsets, sizes),    \
                      domainOffsets, domainSizes);                                                 \
  }                                                                                                \
  FailureOr<TilingResult> Op::generateResultTileValue(OpBuilder &b, unsigned resultNumber,         \
                                                      Folds offsets, Folds sizes) {                \
    return resultTile(getOperation(), b, resultNumber, offsets, sizes);                            \
  }                                                                                                \
  LogicalResult Op::getIterationDomainTileFromOperandTiles(                                        \
      OpBuilder &b, ArrayRef<unsigned> operandNumbers,                                             \
      ArrayRef<SmallVector<OpFoldResult>> allOffsets,                                              \
      ArrayRef<SmallVector<OpFoldResult>> allSizes,                                                \
      SmallVectorImpl<OpFoldResult> &domainOffsets, SmallVectorImpl<OpFoldResult> &domainSizes) {  \
    return domainTileOfOperands(getOperation(), b, operandNumbers, allOffsets, allSizes,           \
                                domainOffsets, domainSizes);                                       \
  }                                                                                                \
  FailureOr<TilingResult> Op::getTiledImplementationFromOperandTiles(                              \
      OpBuilder &b, ArrayRef<unsigned> operandNumbers,                                             \
      ArrayRef<SmallVector<OpFoldResult>> allOffsets,                                              \
      ArrayRef<SmallVector<OpFoldResult>> allSizes) {                                              \
    return tileOfOperands(getOperation(), b, operandNumbers, allOffsets, allSizes);                \
  }                                                                                                \
  bool Op::isOpFusableWithConsumerSlice(unsigned resultNumber, Folds offsets, Folds sizes) {       \
    return hasTile(getOperation(), resultNumber, /*isResult=*/true, Tile(offsets, sizes));         \
  }                                                                                                \
  bool Op::isOpFusableWithProducerSlices(ArrayRef<unsigned> operandNumbers,                        \
                                         ArrayRef<SmallVector<OpFoldResult>> allOffsets,           \
                                         ArrayRef<SmallVector<OpFoldResult>> allSizes) {           \
    return llvm::all_of(llvm::zip_equal(operandNumbers, allOffsets, allSizes), [&](auto it) {      \
      auto [number, offsets, sizes] = it;                                                          \
      return hasTile(getOperation(), number, /*isResult=*/false, Tile(offsets, sizes));            \
    });                                                                                            \
  }

TC_TILING_METHODS(GenericOp)
TC_TILING_METHODS(ScanOp)
TC_TILING_METHODS(ScatterOp)
TC_TILING_METHODS(SortOp)

#undef TC_TILING_METHODS

//===----------------------------------------------------------------------===//
// Reductions in parts
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> GenericOp::generateInitialTensorForPartialReduction(
    OpBuilder &b, Location, Folds tileSizes, const llvm::SetVector<unsigned> &reductionDims) {
  Split split(reductionDims, ReductionTilingStrategy::FullReduction, {}, {});
  Collected collected(getOperation());
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
  Collected collected(getOperation());
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
  Collected collected(getOperation());
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
  Collected collected(getOperation());
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

/// Replaces an operation in destination style by the same operation on buffers.
static LogicalResult bufferizeInPlace(Operation *op, RewriterBase &rewriter,
                                      const bufferization::BufferizationOptions &options,
                                      bufferization::BufferizationState &state) {
  auto destinationStyle = cast<DestinationStyleOpInterface>(op);
  if (destinationStyle.hasPureBufferSemantics())
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
    if (destinationStyle.isDpsInit(&operand))
      results.push_back(value);
  }
  OperationState newState(op->getLoc(), op->getName(), operands, TypeRange(), op->getAttrs());
  for (Region &region : op->getRegions())
    newState.addRegion()->takeBody(region);
  rewriter.create(newState);
  bufferization::replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

namespace {

template <typename Op>
struct Bufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<Bufferization<Op>, Op> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    auto destinationStyle = cast<Op>(op);
    if (!destinationStyle.isDpsInit(&operand))
      return true;
    unsigned first = destinationStyle.getInitsMutable().begin()->getOperandNumber();
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
    return bufferizeInPlace(op, rewriter, options, state);
  }
};

struct SortBufferization
    : bufferization::DstBufferizableOpInterfaceExternalModel<SortBufferization, SortOp> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    return !cast<SortOp>(op).isDpsInit(&operand);
  }

  /// A row is written from its front, and never before the items there are read.
  bool bufferizesToElementwiseAccess(Operation *, const bufferization::AnalysisState &,
                                     ArrayRef<OpOperand *>) const {
    return true;
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const bufferization::BufferizationOptions &options,
                          bufferization::BufferizationState &state) const {
    return bufferizeInPlace(op, rewriter, options, state);
  }
};

} // namespace

void tc::imap::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ImapDialect *) {
    GenericOp::attachInterface<Bufferization<GenericOp>>(*context);
    ScanOp::attachInterface<Bufferization<ScanOp>>(*context);
    ScatterOp::attachInterface<Bufferization<ScatterOp>>(*context);
    SortOp::attachInterface<SortBufferization>(*context);
  });
}
