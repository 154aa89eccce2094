//===- Tiling.cpp - the tiling driver of LLVM for groups of operations ----===//

#include "Bridge.h"

#include "mlir/CAPI/IR.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

/// The slices of results of an operation that stand in a loop, each once.
static SmallVector<tensor::ExtractSliceOp> slicesIn(Operation *loop, Operation *producer) {
  SmallVector<tensor::ExtractSliceOp> found;
  for (Operation *user : producer->getUsers())
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user); slice && loop->isAncestor(slice))
      found.push_back(slice);
  return found;
}

/// Makes an empty tensor a slice of one with the largest static extents, whose memory may be allocated once for
/// all tiles.
static void makeStatic(RewriterBase &rewriter, tensor::EmptyOp empty) {
  RankedTensorType type = empty.getType();
  if (type.hasStaticShape())
    return;
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(extent))
      continue;
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, {empty.getResult(), static_cast<int64_t>(dim)},
        /*stopCondition=*/nullptr, {/*closedUB=*/true});
    if (failed(bound))
      return;
    extent = *bound;
  }
  rewriter.setInsertionPoint(empty);
  Value largest = tensor::EmptyOp::create(rewriter, empty.getLoc(), shape, type.getElementType());
  SmallVector<OpFoldResult> sizes = empty.getMixedSizes();
  SmallVector<OpFoldResult> zeros(sizes.size(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(sizes.size(), rewriter.getIndexAttr(1));
  rewriter.replaceOpWithNewOp<tensor::ExtractSliceOp>(empty, type, largest, zeros, sizes, ones);
}

/// Whether an insertion replaces the whole destination. Bufferization would copy the source if its extents are dynamic.
static bool isWhole(tensor::InsertSliceOp insert) {
  if (insert.getSourceType() != insert.getDestType() || !insert.hasUnitStride() ||
      !llvm::all_of(insert.getMixedOffsets(), isZeroInteger))
    return false;
  auto isSame = [&](int64_t dim) {
    FailureOr<bool> isEqual = ValueBoundsConstraintSet::areEqual({insert.getSource(), dim},
                                                                 {insert.getDest(), dim});
    return succeeded(isEqual) && *isEqual;
  };
  return llvm::all_of(llvm::seq<int64_t>(0, insert.getDestType().getRank()), isSame);
}

bool tcTileAndFuse(MlirOperation rootHandle, size_t numSizes, const int64_t *sizes, bool isParallel,
                   size_t numMembers, const MlirOperation *members, const bool *escapes,
                   MlirOperation *created) {
  Operation *root = unwrap(rootHandle);
  auto tiled = dyn_cast<TilingInterface>(root);
  if (!tiled)
    return false;
  IRRewriter rewriter(root->getContext());
  scf::SCFTilingOptions options;
  options.setTileSizes(
      getAsIndexOpFoldResult(root->getContext(), ArrayRef<int64_t>(sizes, numSizes)));
  using LoopType = scf::SCFTilingOptions::LoopType;
  options.setLoopType(isParallel ? LoopType::ForallOp : LoopType::ForOp);
  rewriter.setInsertionPoint(root);
  FailureOr<scf::SCFTilingResult> result = scf::tileUsingSCF(rewriter, tiled, options);
  if (failed(result) || result->loops.empty())
    return false;
  rewriter.replaceOp(root, result->replacements);
  SmallVector<LoopLikeOpInterface> loops = result->loops;
  for (size_t i = 0; i < numMembers; ++i) {
    Operation *producer = unwrap(members[i]);
    // Equal slices of two readers become one, so that the tile is computed once.
    DominanceInfo dominance(loops.front()->getParentOp());
    eliminateCommonSubExpressions(rewriter, dominance, loops.front());
    bool isYielded = !escapes[i];
    for (tensor::ExtractSliceOp slice : slicesIn(loops.front(), producer)) {
      auto fused = scf::tileAndFuseProducerOfSlice(rewriter, slice, loops);
      if (fused && !isYielded) {
        unsigned first = loops.front()->getNumResults();
        if (succeeded(scf::yieldReplacementForFusedProducer(rewriter, slice, *fused, loops))) {
          isYielded = true;
          auto results = loops.front()->getResults().drop_front(first);
          // A member that could not be fused still stands before the loops.
          Operation *loop = loops.front();
          rewriter.replaceUsesWithIf(producer->getResults(), results, [&](OpOperand &use) {
            Operation *user = loop->getBlock()->findAncestorOpInBlock(*use.getOwner());
            return user && loop->isBeforeInBlock(user);
          });
        }
      }
      if (slice->use_empty())
        rewriter.eraseOp(slice);
    }
    if (producer->use_empty())
      rewriter.eraseOp(producer);
  }
  Operation *loop = loops.front();
  SmallVector<tensor::InsertSliceOp> wholes;
  loop->walk([&](tensor::InsertSliceOp insert) {
    if (isWhole(insert))
      wholes.push_back(insert);
  });
  for (tensor::InsertSliceOp insert : wholes)
    rewriter.replaceOp(insert, insert.getSource());
  // A member writes to a slice of an empty tensor of full size: it becomes an empty tensor of the tile.
  RewritePatternSet folding(rewriter.getContext());
  tensor::populateFoldTensorEmptyPatterns(folding);
  (void)applyPatternsGreedily(loop, std::move(folding));
  loop->walk([&](tensor::EmptyOp empty) { makeStatic(rewriter, empty); });
  // Sizes of tiles become arithmetic.
  RewritePatternSet lowering(rewriter.getContext());
  populateAffineToStdConversionPatterns(lowering);
  (void)applyPatternsGreedily(loop, std::move(lowering));
  *created = wrap(loop);
  return true;
}
