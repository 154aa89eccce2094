//===- Nvvm.cpp - the conversion of GPU kernels to the llvm dialect -------===//
//
// Upstream's conversion of the gpu dialect calls libdevice for functions of the math dialect, and upstream's
// conversion of the vector dialect has 64-bit indices. This pass runs the same patterns with an index width
// that an option sets, and converts the math dialect to intrinsics first.
//
//===----------------------------------------------------------------------===//

#include "Bridge.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/GPUCommon/GPUCommonPass.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace {

/// Vectors of several dimensions become vectors of one.
void populateVectorPatterns(RewritePatternSet &patterns) {
  vector::populateVectorToVectorCanonicalizationPatterns(patterns);
  vector::populateVectorBitCastLoweringPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorContractLoweringPatterns(patterns,
                                                 vector::VectorContractLowering::OuterProduct);
  vector::populateVectorOuterProductLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorTransposeLoweringPatterns(patterns, vector::VectorTransposeLowering::EltWise);
  vector::populateVectorTransferLoweringPatterns(patterns, /*maxTransferRank=*/1);
  vector::populateVectorMaskMaterializationPatterns(patterns, /*force32BitVectorIndices=*/true);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorRankReducingFMAPattern(patterns);
}

// Upstream's patterns for atomic updates fence memory around each update, exchange integers only, and start with a
// load that is not atomic. Threads of one kernel only need the update itself.

/// The scope of atomic accesses: all threads of the GPU.
constexpr llvm::StringLiteral atomicScope = "device";

/// Updates that NVIDIA's GPUs have an instruction for.
struct AtomicRmwLowering : ConvertOpToLLVMPattern<memref::AtomicRMWOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  static std::optional<LLVM::AtomicBinOp> operation(arith::AtomicRMWKind kind) {
    switch (kind) {
    case arith::AtomicRMWKind::addf:
      return LLVM::AtomicBinOp::fadd;
    case arith::AtomicRMWKind::addi:
      return LLVM::AtomicBinOp::add;
    case arith::AtomicRMWKind::mins:
      return LLVM::AtomicBinOp::min;
    case arith::AtomicRMWKind::maxs:
      return LLVM::AtomicBinOp::max;
    case arith::AtomicRMWKind::minu:
      return LLVM::AtomicBinOp::umin;
    case arith::AtomicRMWKind::maxu:
      return LLVM::AtomicBinOp::umax;
    case arith::AtomicRMWKind::andi:
      return LLVM::AtomicBinOp::_and;
    case arith::AtomicRMWKind::ori:
      return LLVM::AtomicBinOp::_or;
    default:
      return std::nullopt;
    }
  }

  LogicalResult matchAndRewrite(memref::AtomicRMWOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    std::optional<LLVM::AtomicBinOp> kind = operation(op.getKind());
    if (!kind)
      return failure();
    Value pointer = getStridedElementPtr(rewriter, op.getLoc(), op.getMemRefType(), adaptor.getMemref(),
                                         adaptor.getIndices());
    rewriter.replaceOpWithNewOp<LLVM::AtomicRMWOp>(op, *kind, pointer, adaptor.getValue(),
                                                   LLVM::AtomicOrdering::monotonic, atomicScope);
    return success();
  }
};

/// Other updates compare and exchange the bits of the element until no other thread came between.
struct GenericAtomicRmwLowering : ConvertOpToLLVMPattern<memref::GenericAtomicRMWOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(memref::GenericAtomicRMWOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = op.getResult().getType();
    Type bits = rewriter.getIntegerType(type.getIntOrFloatBitWidth());
    auto cast = [&](Type to, Value value) -> Value {
      return value.getType() == to ? value : LLVM::BitcastOp::create(rewriter, loc, to, value);
    };

    Block *start = rewriter.getInsertionBlock();
    Block *loop = rewriter.splitBlock(start, Block::iterator(op));
    Value expected = loop->addArgument(bits, loc);
    Block *end = rewriter.splitBlock(loop, std::next(Block::iterator(op)));

    rewriter.setInsertionPointToEnd(start);
    Value pointer = getStridedElementPtr(rewriter, loc, llvm::cast<MemRefType>(op.getMemref().getType()),
                                         adaptor.getMemref(), adaptor.getIndices());
    Value first = LLVM::LoadOp::create(rewriter, loc, bits, pointer, /*alignment=*/bits.getIntOrFloatBitWidth() / 8,
                                       /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/false,
                                       /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic, atomicScope);
    LLVM::BrOp::create(rewriter, loc, first, loop);

    rewriter.setInsertionPointToEnd(loop);
    IRMapping mapping;
    mapping.map(op.getCurrentValue(), cast(type, expected));
    Block &body = op.getRegion().front();
    for (Operation &inner : body.without_terminator())
      rewriter.clone(inner, mapping);
    Value desired = cast(bits, mapping.lookupOrDefault(body.getTerminator()->getOperand(0)));
    Value found = exchange(rewriter, loc, pointer, expected, desired);
    Value holds = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq, found, expected);
    LLVM::CondBrOp::create(rewriter, loc, holds, end, ValueRange(), loop, found);

    rewriter.setInsertionPointToStart(end);
    rewriter.replaceOp(op, cast(type, found));
    return success();
  }

private:
  /// Returns what the memory held.
  static Value exchange(OpBuilder &builder, Location loc, Value pointer, Value expected, Value desired) {
    Type bits = expected.getType();
    if (!bits.isInteger(16)) {
      Value exchanged =
          LLVM::AtomicCmpXchgOp::create(builder, loc, pointer, expected, desired, LLVM::AtomicOrdering::monotonic,
                                        LLVM::AtomicOrdering::monotonic, atomicScope);
      return LLVM::ExtractValueOp::create(builder, loc, exchanged, 0);
    }
    // LLVM exchanges 32 bits instead, which may lie outside of the buffer.
    return LLVM::InlineAsmOp::create(builder, loc, bits, ValueRange{pointer, expected, desired},
                                     "atom.relaxed.gpu.cas.b16 $0, [$1], $2, $3;", "=h,l,h,h,~{memory}",
                                     /*has_side_effects=*/true, /*is_align_stack=*/false,
                                     LLVM::tailcallkind::TailCallKind::None,
                                     LLVM::AsmDialectAttr(), ArrayAttr())
        .getResult(0);
  }
};

struct ConvertKernelsToNvvm : PassWrapper<ConvertKernelsToNvvm, OperationPass<gpu::GPUModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConvertKernelsToNvvm)

  ConvertKernelsToNvvm() = default;
  ConvertKernelsToNvvm(const ConvertKernelsToNvvm &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "convert-kernels-to-nvvm"; }
  StringRef getDescription() const override {
    return "Convert GPU kernels to the llvm and nvvm dialects, without calls of libdevice";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect, arith::ArithDialect, memref::MemRefDialect,
                    vector::VectorDialect, cf::ControlFlowDialect, func::FuncDialect>();
  }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet vectors(context);
    populateVectorPatterns(vectors);
    if (failed(applyPatternsGreedily(getOperation(), std::move(vectors))))
      return signalPassFailure();

    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(indexBitwidth);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    populateGpuMemorySpaceAttributeConversions(converter, [](gpu::AddressSpace space) -> unsigned {
      switch (space) {
      case gpu::AddressSpace::Global:
        return static_cast<unsigned>(NVVM::NVVMMemorySpace::Global);
      case gpu::AddressSpace::Workgroup:
        return static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
      default:
        return 0;
      }
    });

    // Alone, because the patterns of the gpu dialect bring calls of libdevice along.
    RewritePatternSet scalars(context);
    arith::populateArithToLLVMConversionPatterns(converter, scalars);
    populateMathToLLVMConversionPatterns(converter, scalars);
    LLVMConversionTarget withGpu(*context);
    withGpu.addLegalDialect<NVVM::NVVMDialect, gpu::GPUDialect>();
    if (failed(applyPartialConversion(getOperation(), withGpu, std::move(scalars))))
      return signalPassFailure();

    // Functions that LLVM has no intrinsic for become calls, to be defined by the built-ins.
    RewritePatternSet calls(context);
    populateMathToLibmConversionPatterns(calls);
    if (failed(applyPatternsGreedily(getOperation(), std::move(calls))))
      return signalPassFailure();

    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns, /*reassociateFPReductions=*/false,
                                           /*force32BitVectorIndices=*/true,
                                           /*useVectorAlignment=*/false);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    populateGpuToNVVMConversionPatterns(converter, patterns);
    patterns.add<AtomicRmwLowering, GenericAtomicRmwLowering>(converter, /*benefit=*/2);
    LLVMConversionTarget target(*context);
    target.addLegalDialect<NVVM::NVVMDialect>();
    target.addIllegalDialect<gpu::GPUDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }

  Option<unsigned> indexBitwidth{*this, "index-bitwidth",
                                 llvm::cl::desc("Bits of an index: 32 or 64"), llvm::cl::init(32)};
};

} // namespace

void tcRegisterNvvmPasses() { PassRegistration<ConvertKernelsToNvvm>(); }
