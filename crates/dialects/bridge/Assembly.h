//===- Assembly.h - assembly of operations with indexing maps -------------===//

#ifndef TC_ASSEMBLY_H
#define TC_ASSEMBLY_H

#include "Imap.h"

namespace tc::imap {

/// Tokens as text, and where in the source each of them begins.
struct TokenText {
  std::string text;
  llvm::SmallVector<std::pair<size_t, llvm::SMLoc>> starts;

  void add(llvm::SMLoc location, llvm::StringRef token);
  void add(const TokenText &other);

  /// Where the token that holds the byte `offset` begins.
  llvm::SMLoc locate(size_t offset, llvm::SMLoc end) const;
};

/// Reads the assembly of an operation with variables and subscripts.
struct Assembly {
  mlir::OpAsmParser &parser;
  mlir::OperationState &result;
  TokenText space;

  /// `(names)[names]{names}`, then `domain:` and the bounds.
  mlir::ParseResult parseDomain(MapAttr &domain);

  /// `(accesses : types)`. A runtime variable that is an `index` has no subscripts; the maps of
  /// the others go to `found`.
  mlir::ParseResult parseAccesses(llvm::SmallVectorImpl<mlir::Attribute> &found, bool isRuntime,
                                  int32_t &count);

  /// `runtime(..) ins(..) outs(..)`: the maps in the order of the attribute `maps`, and the number
  /// of operands in each group.
  mlir::ParseResult parseOperands(llvm::SmallVectorImpl<mlir::Attribute> &maps,
                                  std::array<int32_t, 3> &counts);

  /// `[accumulators]`, at least one.
  mlir::ParseResult parseAccumulators(llvm::SmallVectorImpl<mlir::Attribute> &accumulators);

  mlir::ParseResult parseRegion() { return parser.parseRegion(*result.addRegion()); }

private:
  mlir::ParseResult parseIntervals(TokenText &text);
  mlir::ParseResult parseInterval(TokenText &text);
  mlir::OptionalParseResult parseOptionalSubscripts(MapAttr &map);
};

/// Writes it.
struct Writer {
  mlir::OpAsmPrinter &printer;
  const TcMap *domain;

  void printDomain();
  /// The operands in their groups; `maps` is the attribute of this name.
  void printOperands(mlir::OperandRange runtimes, mlir::OperandRange inputs,
                     mlir::OperandRange inits, llvm::ArrayRef<mlir::Attribute> maps);
  void printAccumulators(mlir::ArrayAttr accumulators);

private:
  void printAccesses(llvm::StringRef keyword, mlir::OperandRange operands,
                     llvm::ArrayRef<mlir::Attribute> &maps);
};

} // namespace tc::imap

#endif // TC_ASSEMBLY_H
