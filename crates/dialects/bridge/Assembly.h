//===- Assembly.h - assembly of operations with indexing maps -------------===//

#ifndef TC_ASSEMBLY_H
#define TC_ASSEMBLY_H

#include "Imap.h"

namespace tc::imap {

/// Receives text from Rust for an `AsmPrinter`.
void printText(void *printer, MlirStringRef text);

/// Tokens as text, and where in the source each of them begins.
struct TokenText {
  std::string text;
  llvm::SmallVector<std::pair<size_t, llvm::SMLoc>> starts;

  void add(llvm::SMLoc location, llvm::StringRef token);
  void add(const TokenText &other);

  /// The variables with standard names, up to the highest number of each kind that a token has.
  std::string standardSpace() const;

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
  /// the others go to `found`, and the number after `else`, or a unit, to `fills`.
  mlir::ParseResult parseAccesses(llvm::SmallVectorImpl<mlir::Attribute> &found,
                                  llvm::SmallVectorImpl<mlir::Attribute> &fills, bool isRuntime,
                                  int32_t &count);

  /// `runtime(..) ins(..) outs(..)`: the maps in the order of the attribute `maps`, the attribute
  /// `fills`, which is null without an `else`, and the number of operands in each group.
  mlir::ParseResult parseOperands(llvm::SmallVectorImpl<mlir::Attribute> &maps,
                                  mlir::ArrayAttr &fills, std::array<int32_t, 3> &counts);

  /// `(conditions)`. Variables have their standard names, `d0`, `s0`, `rt0`: the names of the
  /// operation around are not known while one in its region is read.
  mlir::ParseResult parseConditions(MapAttr &map);

  /// `[accumulators]`, at least one.
  mlir::ParseResult parseAccumulators(llvm::SmallVectorImpl<mlir::Attribute> &accumulators);

  /// The name of a dimension variable: its number.
  mlir::ParseResult parseDimension(int64_t &number);

  mlir::ParseResult parseRegion() { return parser.parseRegion(*result.addRegion()); }

private:
  mlir::ParseResult parseIntervals(TokenText &text);
  mlir::ParseResult parseInterval(TokenText &text);
  mlir::OptionalParseResult parseOptionalSubscripts(MapAttr &map);

  /// A number, whose type is read later.
  struct Number {
    llvm::SMLoc location;
    bool isFloat = false, isHexadecimal = false;
    llvm::APInt integer;
    double value = 0;
  };
  mlir::ParseResult parseNumber(Number &number);
  mlir::TypedAttr numberOfType(const Number &number, mlir::Type type);
};

/// Writes it.
struct Writer {
  mlir::OpAsmPrinter &printer;
  const TcMap *domain;

  void printDomain();
  /// The operands in their groups; `maps` and `fills`, which may be null, are the attributes of these
  /// names.
  void printOperands(mlir::OperandRange runtimes, mlir::OperandRange inputs,
                     mlir::OperandRange inits, mlir::ArrayAttr maps, mlir::ArrayAttr fills);
  void printAccumulators(mlir::ArrayAttr accumulators);
  /// The constraints of `domain`, as `imap.inside` has them.
  void printConditions();

private:
  void printAccesses(llvm::StringRef keyword, mlir::OperandRange operands,
                     llvm::ArrayRef<mlir::Attribute> &maps,
                     llvm::ArrayRef<mlir::Attribute> &fills);
};

} // namespace tc::imap

#endif // TC_ASSEMBLY_H
