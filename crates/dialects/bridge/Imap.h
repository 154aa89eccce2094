//===- Imap.h - the classes that TableGen writes for imap.td --------------===//

#ifndef TC_IMAP_H
#define TC_IMAP_H

#include "Bridge.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

// PartialReductionOpInterface.td of LLVM 22 does not qualify these names.
namespace tc::imap {
using llvm::SmallVector;
using mlir::Location, mlir::Value, mlir::ValueRange, mlir::TilingResult, mlir::MergeResult,
    mlir::ReductionTilingStrategy;
} // namespace tc::imap

namespace tc::imap {

/// An indexing map, which Rust owns.
class Map {
public:
  /// Takes a reference.
  explicit Map(const TcMap *raw) : raw(raw) {}
  Map(const Map &other) : raw(tcRustCopyMap(other.raw)) {}
  Map(Map &&other) : raw(std::exchange(other.raw, nullptr)) {}
  Map &operator=(Map other) {
    std::swap(raw, other.raw);
    return *this;
  }
  ~Map() {
    if (raw)
      tcRustDropMap(raw);
  }

  bool operator==(const Map &other) const { return tcRustEqualMaps(raw, other.raw); }
  const TcMap *get() const { return raw; }

private:
  const TcMap *raw;
};

inline llvm::hash_code hash_value(const Map &map) { return tcRustHashMap(map.get()); }

} // namespace tc::imap

#include "imap.dialect.h.inc"
#include "imap.enum.h.inc"
#define GET_ATTRDEF_CLASSES
#include "imap.attr.h.inc"
#define GET_OP_CLASSES
#include "imap.op.h.inc"

#endif // TC_IMAP_H
