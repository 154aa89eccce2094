//===- Bridge.h - what C++ and Rust know of each other --------------------===//
//
// The C++ side registers dialects, passes and the `mlir-opt` driver with MLIR
// and forwards to Rust, where every algorithm lives. Nothing here decides
// anything. Every Rust function named below catches its own panics.
//
//===----------------------------------------------------------------------===//

#ifndef TC_BRIDGE_H
#define TC_BRIDGE_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"
#include "mlir/IR/DialectRegistry.h"

extern "C" {

//===- Implemented in Rust ------------------------------------------------===//

/// Verifies one operation of our dialects; emits its own diagnostics.
bool tcRustVerify(MlirOperation op);
/// Verifies one attribute of an operation whose name starts with `imap.`; emits its own diagnostics.
bool tcRustVerifyAttribute(MlirOperation op, MlirStringRef name);

/// A `tc_ir::FrozenMap`, counted; threads may share it.
typedef struct TcMap TcMap;
/// Parses the text of an indexing map. If it is none, `reject` gets the byte offset and the reason,
/// and the result is null.
const TcMap *tcRustParseMap(MlirStringRef text, void *state,
                            void (*reject)(void *, size_t, MlirStringRef));
/// Gives the text of a map to `accept`.
void tcRustPrintMap(const TcMap *map, void *state, void (*accept)(void *, MlirStringRef));
/// Gives the variables of a domain and their bounds to `accept`, as they stand in an operation.
void tcRustPrintDomain(const TcMap *domain, void *state, void (*accept)(void *, MlirStringRef));
/// Gives the subscripts and the guard of a map, with the names of the domain, to `accept`.
void tcRustPrintAccess(const TcMap *domain, const TcMap *map, void *state,
                       void (*accept)(void *, MlirStringRef));
/// Gives the constraints of a map to `accept`.
void tcRustPrintConditions(const TcMap *map, void *state, void (*accept)(void *, MlirStringRef));
/// Gives the name of a dimension variable to `accept`.
void tcRustPrintDimension(const TcMap *domain, int64_t number, void *state,
                          void (*accept)(void *, MlirStringRef));
/// The number of the dimension variable that the only result of a map is, or -1.
int64_t tcRustDimensionOf(const TcMap *map);
/// Another reference to the same map.
const TcMap *tcRustCopyMap(const TcMap *map);
/// Gives a reference back.
void tcRustDropMap(const TcMap *map);
bool tcRustEqualMaps(const TcMap *first, const TcMap *second);
uint64_t tcRustHashMap(const TcMap *map);

/// Folds `imap.apply` on constant operands: true if `results` were filled in.
bool tcRustFoldApply(const TcMap *map, size_t numOperands, const int64_t *operands,
                     size_t numResults, int64_t *results);
/// The least and the greatest value of a result of a map; those of `int64_t` if it has no bounds.
void tcRustBoundsOfResult(const TcMap *map, size_t number, int64_t *least, int64_t *most);

/// Whether an `imap.generic` touches, in each iteration, one element through two of its operands, and
/// that element in no other iteration.
bool tcRustTouchesSameElement(MlirOperation op, size_t first, size_t second);

/// Whether the results of an `imap.generic` depend on what a destination holds.
bool tcRustReadsDestination(MlirOperation op, size_t destination);

/// Canonicalizes an `imap.generic` in place; whether it changed.
bool tcRustCanonicalize(MlirOperation op);

/// Builds an `imap.generic` without what nothing uses before another one, if there is such.
/// `replace` gets the number of each result that is used, and its replacement.
bool tcRustPrune(MlirOperation op, void *state, void (*replace)(void *, size_t, MlirValue));

//===- Tiling of operations of imap ---------------------------------------===//
// A function that returns false has reported the reason.

/// A constant, or a value that is not null.
struct TcIndex {
  MlirValue value;
  int64_t constant;
};
/// Offset and size in one dimension.
struct TcSpan {
  TcIndex offset, size;
};
struct TcTile {
  size_t count;
  const TcSpan *spans;
};
/// Where operations are created: before an operation, or at the end of the block if that is null.
struct TcPlace {
  MlirBlock block;
  MlirOperation before;
};
/// How a reduction is split: the loops; if not null, the partial result that a tile belongs to, per
/// loop; and the partial results.
struct TcSplit {
  size_t numLoops;
  const size_t *loops;
  const TcIndex *places;
  size_t numPartials;
  const MlirValue *partials;
};
/// Receives what a function yields, each part in order.
struct TcTiled {
  void *state;
  void (*span)(void *, const TcSpan *);
  void (*slice)(void *, MlirOperation);
  void (*op)(void *, MlirOperation);
  void (*value)(void *, MlirValue);
};

/// Whether each loop is parallel.
bool tcRustParallelLoops(MlirOperation op, void *state, void (*accept)(void *, bool));
/// A span per loop.
bool tcRustIterationDomain(MlirOperation op, const TcPlace *place, const TcTiled *to);
/// The slices of operands, and the operation on a tile. With `isFused`, failure is not an error.
bool tcRustTile(MlirOperation op, const TcPlace *place, const TcTile *tile, bool isFused,
                bool keepOperands, const TcTiled *to);
/// A span per dimension of a result.
bool tcRustResultPosition(MlirOperation op, const TcPlace *place, size_t result, const TcTile *tile,
                          const TcTiled *to);
/// Whether a tile of a result, or of an operand, is that of a tile of iterations.
bool tcRustHasTiles(MlirOperation op, size_t number, bool isResult, const TcTile *tile);
/// A span per loop, for tiles of results or operands.
bool tcRustDomainTile(MlirOperation op, const TcPlace *place, size_t count, const unsigned *numbers,
                      bool isResult, const TcTile *tiles, const TcTiled *to);
/// The initial partial results; `sizes` are those of the loops.
bool tcRustInitialTensors(MlirOperation op, const TcPlace *place, size_t count, const TcIndex *sizes,
                          const TcSplit *split, const TcTiled *to);
/// The slices of operands, and the operation on a tile that accumulates into partial results.
bool tcRustPartialTile(MlirOperation op, const TcPlace *place, const TcTile *tile,
                       const TcSplit *split, const TcTiled *to);
/// A span per dimension of a partial result.
bool tcRustPartialPosition(MlirOperation op, const TcPlace *place, size_t result, const TcTile *tile,
                           const TcSplit *split, const TcTiled *to);
/// The reduction of partial results.
bool tcRustMerge(MlirOperation op, const TcPlace *place, const TcSplit *split, const TcTiled *to);

/// What a text is written in.
typedef enum { TcLanguageMlir, TcLanguageTc, TcLanguageHlo, TcLanguageTml, TcLanguageAxon } TcLanguage;

/// The language of a file, by the ending of its name or by its beginning.
TcLanguage tcRustLanguage(MlirStringRef fileName, MlirStringRef contents);

/// Explains a diagnostic code: the explanation goes to `accept`. False if there is no such code;
/// `accept` gets a message instead.
bool tcRustExplain(MlirStringRef code, void *state, void (*accept)(void *, MlirStringRef));

/// Imports the contents of a source file. Null if it has errors, which have been
/// emitted as diagnostics of the context.
MlirModule tcRustImport(MlirContext context, TcLanguage language, MlirStringRef fileName,
                        MlirStringRef contents, bool relaxed);

/// Whether a diagnostic about a source may show lines of a file that a location names.
bool tcRustIsShown(MlirStringRef source, MlirStringRef file);

/// Whether a file can be opened and has an end. If not, `reject` gets the reason.
bool tcRustCheckInput(MlirStringRef file, void *state, void (*reject)(void *, MlirStringRef));

/// Writes a module of `hlo` operations as HLO text, which goes to `accept`. False if it
/// cannot be written; diagnostics have been emitted.
bool tcRustExportHlo(MlirOperation module, void *state, void (*accept)(void *, MlirStringRef));

/// A pass written in Rust. Strings live as long as the program.
struct TcPassOption {
  MlirStringRef name;
  MlirStringRef description;
  MlirStringRef defaultValue;
};
struct TcPass {
  MlirStringRef argument;
  MlirStringRef description;
  /// The operation it runs on; empty for any.
  MlirStringRef anchor;
  const TcPassOption *options;
  size_t numOptions;
  /// Runs the pass; false signals failure. `values` are those of the options.
  bool (*run)(const TcPass *pass, MlirOperation op, const MlirStringRef *values);
  /// Adds the dialects of which the pass creates operations.
  void (*dependentDialects)(const TcPass *pass, MlirDialectRegistry registry);
};

/// A pass pipeline with options, the text of which Rust builds. Strings live as long as the program. One option without a
/// name takes the whole text after '='.
struct TcPipeline {
  MlirStringRef argument;
  MlirStringRef description;
  const TcPassOption *options;
  size_t numOptions;
  /// Calls `accept` with the passes, or `reject` with the reason. `values` are those of the options.
  void (*build)(const TcPipeline *pipeline, const MlirStringRef *values, void *state,
                void (*accept)(void *, MlirStringRef), void (*reject)(void *, MlirStringRef));
};

//===- Implemented in C++ -------------------------------------------------===//

void tcRegisterDialects(MlirDialectRegistry registry);
/// Makes a dialect loadable by its name, for passes that create its operations.
void tcInsertDialect(MlirDialectRegistry registry, MlirStringRef name);
/// Parses MLIR text or bytecode; `fileName` is for locations. Null if it is wrong.
MlirModule tcParse(MlirContext context, MlirStringRef fileName, MlirStringRef contents);
void tcRegisterPass(const TcPass *pass);
/// Registers `convert-kernels-to-nvvm`. To be called once.
void tcRegisterNvvmPasses(void);
/// Registers `--argument` as another name for a textual pipeline.
void tcRegisterPipeline(MlirStringRef argument, MlirStringRef description,
                        MlirStringRef pipeline);
void tcRegisterPipelineBuilder(const TcPipeline *pipeline);
void tcEmitDiagnostic(MlirLocation location, int severity, MlirStringRef text,
                      size_t numNotes, const MlirLocation *noteLocations,
                      const MlirStringRef *noteTexts);
/// Whether the context records optimization remarks.
bool tcRecordsRemarks(MlirContext context);
/// Emits an optimization remark if the context records them: 0 passed, 1 missed,
/// 2 analysis. `keys` and `values` are its arguments.
void tcEmitRemark(MlirLocation location, int kind, MlirStringRef pass, MlirStringRef name,
                  MlirStringRef function, size_t numArguments, const MlirStringRef *keys,
                  const MlirStringRef *values);
/// The name and the metadata of an `hlo` instruction; empty if there are none.
void tcHloGetOrigin(MlirOperation op, MlirStringRef *name, MlirStringRef *metadata);
void tcHloSetOrigin(MlirOperation op, MlirStringRef name, MlirStringRef metadata);
/// `#imap.map` of a map, of which it takes the reference.
MlirAttribute tcMapGet(MlirContext context, const TcMap *map);
/// The map of `#imap.map`; null for another attribute.
const TcMap *tcMapOf(MlirAttribute attribute);
/// `#imap.acc`; null if there is no combiner of this name. `identity` is that of the combiner
/// "custom", otherwise null. A null `start` with `out` = -1 stands for the identity.
MlirAttribute tcAccumulatorGet(MlirType type, MlirStringRef kind, MlirAttribute identity,
                               MlirAttribute start, int64_t out);
/// The parts of `#imap.acc`: false for another attribute.
bool tcAccumulatorParts(MlirAttribute attribute, MlirType *type, MlirStringRef *kind,
                        MlirAttribute *identity, MlirAttribute *start, int64_t *out);
/// `#imap.schedule` of an array of steps, each an array of its name, an array of names of variables, and their sizes.
MlirAttribute tcScheduleGet(MlirAttribute steps);
/// The steps of `#imap.schedule`; null for another attribute.
MlirAttribute tcScheduleSteps(MlirAttribute attribute);
/// `#hlo.layout`, and its parts: false for another attribute.
MlirAttribute tcHloLayoutGet(MlirContext context, size_t rank, const int64_t *minorToMajor,
                             MlirStringRef properties);
bool tcHloLayoutParts(MlirAttribute attribute, size_t *rank, const int64_t **minorToMajor,
                      MlirStringRef *properties);
/// The first operation of a block, or of a region in it, that writes or frees memory which the block
/// does not allocate; null if there is none. Effects of callees are not known.
MlirOperation tcOuterWrite(MlirBlock block);
/// Bounds of a value of type `index`, as far as upstream proves constant ones.
void tcConstantBounds(MlirValue value, int64_t *lower, int64_t *upper);
/// Replaces an operation by loops over its tiles, of these sizes (0: not tiled), and computes members, readers
/// first, in the tile that reads them. The loops also give the results of members that escape. False, and
/// nothing is changed, if the operation cannot be tiled.
bool tcTileAndFuse(MlirOperation root, size_t numSizes, const int64_t *sizes, bool isParallel,
                   size_t numMembers, const MlirOperation *members, const bool *escapes,
                   MlirOperation *created);
/// `mlir-opt` with our dialects and passes.
int tcOptMain(int argc, char **argv);
/// Translates a module to LLVM IR; null on failure.
void *tcTranslateToLLVMIR(MlirOperation module, void *llvmContext);
/// Whether the target of a triple, which must be initialized, generates code for a
/// processor of this name.
bool tcIsProcessor(MlirStringRef triple, MlirStringRef name);
/// Whether a processor with these features on top of its own has another one.
bool tcHasFeature(MlirStringRef triple, MlirStringRef processor, MlirStringRef features,
                  MlirStringRef feature);
/// Passes the names of the processors of the target of a triple, which must be initialized.
void tcProcessors(MlirStringRef triple, MlirStringCallback receive, void *names);
}

namespace tc {
namespace imap {
void registerBufferization(mlir::DialectRegistry &registry);
} // namespace imap
} // namespace tc

#endif // TC_BRIDGE_H
