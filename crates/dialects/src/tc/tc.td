//===- tc.td - the tensor comprehension dialect ------------*- tablegen -*-===//
//
// The single source of truth for the `tc` dialect: operations, traits, assembly
// and documentation.
//
//===----------------------------------------------------------------------===//

#ifndef TC_TC_TD
#define TC_TC_TD

include "src/imap/imap.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def TC_Dialect : Dialect {
  let name = "tc";
  let summary = "Tensor comprehensions: loops implicit, sizes inferred";
  let description = [{
    One `tc.def` per function of a `.tc` file, one `tc.comprehension` per
    statement. The ranges of index variables are absent until `tc-infer-ranges`
    fills them in as the `domain` of the comprehension.
  }];
  let cppNamespace = "::tc::lang";
  // Comprehensions hold its attributes.
  let dependentDialects = ["::tc::imap::ImapDialect"];
}

class TC_Op<string mnemonic, list<Trait> traits = []> : Op<TC_Dialect, mnemonic, traits>;

def TC_DefOp : TC_Op<"def", [FunctionOpInterface, IsolatedFromAbove, OpAsmOpInterface]> {
  let summary = "A function of tensor comprehensions";
  let description = [{
    Arguments are the inputs in order, then, marked `tc.inout`, the outputs into
    which a statement accumulates what the caller passes. Results are the
    outputs in order. A tensor that a comprehension defines and that is not
    returned is local. Argument and result attributes:

    | attribute | meaning |
    |---|---|
    | `tc.name` | the name in the source |
    | `tc.sizes` | one entry per dimension: the name of its size variable, or its extent; on a result the sizes of its annotation, with names that may occur in no argument |
    | `tc.inout` | the argument passes the initial contents of the output of that name |

    Element types keep their signedness (`ui8`, `i32`, `i1` for bool); values
    inside the body are signless. A size variable is at least 1 and at most
    2147483647, and two dimensions with the same size variable are equal.
    After `tc-infer-ranges`, `preconditions` lists the conditions left to the
    caller.

    ```mlir
    tc.def @matmul(%A: tensor<?x?xf32> {tc.name = "A", tc.sizes = ["M", "K"]},
                   %B: tensor<?x?xf32> {tc.name = "B", tc.sizes = ["K", "N"]})
        -> (tensor<?x?xf32> {tc.name = "C"}) {
      %C = tc.comprehension "C"["m", "n"] reduce ["r_k"] #imap.combiner<add from identity> {
      ^bb0(%m: index, %n: index, %r_k: index):
        %a = tc.read %A[%m, %r_k] : tensor<?x?xf32> -> f32
        %b = tc.read %B[%r_k, %n] : tensor<?x?xf32> -> f32
        %p = arith.mulf %a, %b : f32
        tc.yield %p : f32
      } : tensor<?x?xf32>
      tc.return %C : tensor<?x?xf32>
    }
    ```

    Constraints:
      * C1: every argument has `tc.name`, every result too; names are unique.
      * C2: `tc.sizes` of an argument has one entry per dimension; a number if the dimension is static, a name if it is dynamic. An argument marked `tc.inout` has none.
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$bodyRegion);
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBodyRegion(); }
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def TC_ReturnOp : TC_Op<"return", [Pure, ReturnLike, Terminator, HasParent<"DefOp">]> {
  let summary = "Returns the outputs of a `tc.def`";
  let arguments = (ins Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "attr-dict ($outputs^ `:` type($outputs))?";
  let hasVerifier = 1;
}

def TC_SizeOp : TC_Op<"size", [Pure]> {
  let summary = "The value of a size variable of the enclosing `tc.def`";
  let arguments = (ins StrAttr:$name);
  let results = (outs Index:$result);
  let assemblyFormat = "$name attr-dict";
  let hasVerifier = 1;
}

def TC_ExtentOp : TC_Op<"extent", [Pure]> {
  let summary = "The extent of a dimension of a tensor, `T.d` in the source";
  let arguments = (ins AnyRankedTensor:$tensor, ConfinedAttr<I64Attr, [IntNonNegative]>:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$tensor `,` $dim attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def TC_ComprehensionOp : TC_Op<"comprehension", [
    AttrSizedOperandSegments, RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames", "getAsmBlockArgumentNames"]>]> {
  let summary = "One statement: a tensor defined by an expression of its indices";
  let description = [{
    The body computes one value for each point of the index variables (the
    indices of the left-hand side, then the reduction variables). The combiner
    folds the values of one element. `outs` is the previous value of the tensor,
    present exactly if the combiner starts from it.

    `where` sets ranges of variables from the source: the operands are the lower
    bound (included) and the upper bound (excluded) of the variables numbered in
    `bounded`. The `exists` region holds the reads that take part in range
    inference only. The discardable attribute `equivalent` keeps the equivalent library
    call of the source.

    `addressed` numbers the left-hand indices that are computed, as in
    `H(I(i)) += 1`. The body yields them after the value. At each point of the
    other variables the statement updates one element, and elements that no point
    updates keep their value. The computed index must be in the range of its
    variable, which is the extent of the dimension. The discardable attribute
    `text` keeps the left-hand side of the source.

    ```mlir
    %H = tc.comprehension "H"["H.0"] addressed [0] reduce ["i"]
        #imap.combiner<add> outs(%H0 : tensor<?xi32>) {
    ^bb0(%b: index, %i: index):
      %e = tc.read %I[%i] : tensor<?xi32> -> i32
      %p = arith.index_cast %e : i32 to index
      %one = arith.constant 1 : i32
      tc.yield %one, %p : i32, index
    } : tensor<?xi32>
    ```

    `domain` is absent until `tc-infer-ranges`: then it bounds every variable by
    expressions over the size variables, and its results are the position at
    which an element is stored: the index less its lower bound, or less the
    origin of the tensor that `outs` holds.

    Constraints:
      * C1: the regions have one `index` argument per variable; the body yields one scalar of the element type, then one `index` per entry of `addressed`.
      * C2: `outs` is present if and only if the combiner starts from it, and has the type of the result.
      * C3: reduction variables need a combiner other than `assign`.
      * C4: `where` has two operands per entry of `bounded`; entries are distinct variable numbers.
      * C5: the rank of the result is the number of left-hand indices; `domain`, if present, has these variables.
      * C6: `addressed` has ascending numbers of left-hand indices, whose arguments in the body have no uses; it needs a combiner other than `assign`.
  }];
  let arguments = (ins
    StrAttr:$target,
    StrArrayAttr:$index_vars,
    DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$addressed,
    DefaultValuedOptionalAttr<StrArrayAttr, "{}">:$reduction_vars,
    Imap_CombinerAttr:$combiner,
    Optional<AnyRankedTensor>:$outs,
    DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$bounded,
    Variadic<Index>:$bounds,
    OptionalAttr<Imap_MapAttr>:$domain);
  let results = (outs AnyRankedTensor:$result);
  let regions = (region SizedRegion<1>:$expression, MaxSizedRegion<1>:$exists);
  let assemblyFormat = [{
    $target $index_vars (`addressed` $addressed^)? (`reduce` $reduction_vars^)? $combiner
    (`outs` `(` $outs^ `:` type($outs) `)`)?
    (`where` $bounded^ `in` `(` $bounds `)`)?
    (`domain` $domain^)?
    attr-dict-with-keyword
    $expression
    (`exists` $exists^)?
    `:` type($result)
  }];
  let hasVerifier = 1;
}

def TC_ReadOp : TC_Op<"read", [Pure]> {
  let summary = "Reads one element of a tensor";
  let description = [{
    The indices are those of the source: positions plus the tensor's origin. The
    result is the signless form of the element type. `text` keeps the access as
    it was written, for diagnostics.

    ```mlir
    %x = tc.read %A[%i, %k] : tensor<?x?xf32> -> f32
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tensor, Variadic<Index>:$indices, OptionalAttr<StrAttr>:$text);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$tensor `[` $indices `]` attr-dict `:` type($tensor) `->` type($result)";
  let hasVerifier = 1;
}

class TC_IntegerBinaryOp<string mnemonic> : TC_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let arguments = (ins SignlessIntegerOrIndexLike:$lhs, SignlessIntegerOrIndexLike:$rhs, UnitAttr:$unsigned_);
  let results = (outs SignlessIntegerOrIndexLike:$result);
  let assemblyFormat = "(`unsigned` $unsigned_^)? $lhs `,` $rhs attr-dict `:` type($result)";
}

def TC_DivOp : TC_IntegerBinaryOp<"div"> {
  let summary = "Integer division that rounds toward negative infinity; 0 if the divisor is 0";
}

def TC_RemOp : TC_IntegerBinaryOp<"rem"> {
  let summary = "Remainder of `tc.div`, with the sign of the divisor; 0 if the divisor is 0";
}

def TC_YieldOp : TC_Op<"yield", [Pure, ReturnLike, Terminator, HasParent<"ComprehensionOp">]> {
  let summary = "Yields the value of a comprehension and its computed indices, or the reads of an `exists` region";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // TC_TC_TD
