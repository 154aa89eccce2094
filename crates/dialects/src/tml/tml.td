//===- tml.td - the tensor manipulation dialect ------------*- tablegen -*-===//
//
// The single source of truth for the `tml` dialect: operations, traits, assembly
// and documentation.
//
//===----------------------------------------------------------------------===//

#ifndef TC_TML_TD
#define TC_TML_TD

include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tml_Dialect : Dialect {
  let name = "tml";
  let summary = "Tensor expressions without indices: products, contractions, transpositions";
  let description = [{
    The core of the language TML: one `tml.program` per `.tml` file, one operation
    per operator, one `tml.assign` per statement. A use of a variable is a use of
    the value of the last assignment before it, so SSA form has the reaching
    definitions. Dimensions count from 0; the language counts from 1.

    Division is controlled: 0 / 0 is 0. Any other division by 0 is undefined, and so
    is every result of a variable before its first assignment: it is an arbitrary
    number.
  }];
  let cppNamespace = "::tc::tml";
}

def Tml_Tensor : RankedTensorOf<[F32, F64]>;

class Tml_Op<string mnemonic, list<Trait> traits = []> : Op<Tml_Dialect, mnemonic, traits>;

def Tml_ProgramOp
    : Tml_Op<"program", [FunctionOpInterface, IsolatedFromAbove, OpAsmOpInterface]> {
  let summary = "A program: statements on tensors that the ambient application passes";
  let description = [{
    Arguments are the variables whose first value the program may use, in the order
    of their declarations; results are the variables whose last value the ambient
    application takes. Argument and result attributes:

    | attribute | meaning |
    |---|---|
    | `tml.name` | the name of the variable |
    | `tml.inout` | the argument of a variable that is a result as well |
    | `tml.extents` | after `tml-pad`: the extents without padding |

    After `tml-pad`, all extents are multiples of the attribute `vector_length` of
    the program. The elements beyond `tml.extents` are zero, before
    and after a call.

    Constraints:
      * C1: every argument and result has `tml.name`; names are unique among the arguments, and among the results.
      * C2: an argument is marked `tml.inout` exactly if a result has its name, and that has its type.
      * C3: arguments and results are tensors of `f32` or `f64` with positive static extents.
      * C4: with `vector_length`, arguments and results have `tml.extents`, and their extents are these, rounded up.

    ```mlir
    tml.program @matmul(%A: tensor<3x4xf64> {tml.name = "A"}, %B: tensor<4x5xf64> {tml.name = "B"})
        -> (tensor<3x5xf64> {tml.name = "C"}) {
      %p = tml.product %A, %B : tensor<3x4xf64>, tensor<4x5xf64> -> tensor<3x4x4x5xf64>
      %c = tml.contract %p [1, 2] : tensor<3x4x4x5xf64> -> tensor<3x5xf64>
      %C = tml.assign "C" %c : tensor<3x5xf64>
      tml.return %C : tensor<3x5xf64>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs,
    OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$vector_length);
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

def Tml_ReturnOp : Tml_Op<"return", [Pure, ReturnLike, Terminator, HasParent<"ProgramOp">]> {
  let summary = "Returns the last values of the variables that are results";
  let arguments = (ins Variadic<Tml_Tensor>:$outputs);
  let assemblyFormat = "attr-dict ($outputs^ `:` type($outputs))?";
  let hasVerifier = 1;
}

def Tml_UndefOp : Tml_Op<"undef", [Pure]> {
  let summary = "The value of a variable before its first assignment";
  let description = [{
    Every element is undefined. `extents` is there after `tml-pad`: the elements
    beyond them are zero.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<DenseI64ArrayAttr>:$extents);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Tml_AssignOp : Tml_Op<"assign", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A statement: assigns a value to a variable";
  let arguments = (ins StrAttr:$name, Tml_Tensor:$value);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$name $value attr-dict `:` type($result)";
}

class Tml_ElementwiseOp<string mnemonic, string sign> :
    Tml_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let summary = "`" # sign # "` element by element (rule t-elem)";
  let arguments = (ins Tml_Tensor:$lhs, Tml_Tensor:$rhs);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Tml_AddOp : Tml_ElementwiseOp<"add", "+">;
def Tml_SubOp : Tml_ElementwiseOp<"sub", "-">;
def Tml_MulOp : Tml_ElementwiseOp<"mul", "*">;
def Tml_DivOp : Tml_ElementwiseOp<"div", "/">;

def Tml_SmulOp : Tml_Op<"smul", [Pure, AllTypesMatch<["tensor", "result"]>]> {
  let summary = "A scalar times a tensor (rule t-smul)";
  let description = [{
    Constraints:
      * C1: the first operand is a scalar of the tensor's element type.
  }];
  let arguments = (ins Tml_Tensor:$scalar, Tml_Tensor:$tensor);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$scalar `,` $tensor attr-dict `:` type($scalar) `,` type($tensor)";
  let hasVerifier = 1;
}

def Tml_SdivOp : Tml_Op<"sdiv", [Pure, AllTypesMatch<["tensor", "result"]>]> {
  let summary = "A tensor divided by a scalar (rule t-sdiv)";
  let description = [{
    Constraints:
      * C1: the second operand is a scalar of the tensor's element type.
  }];
  let arguments = (ins Tml_Tensor:$tensor, Tml_Tensor:$scalar);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$tensor `,` $scalar attr-dict `:` type($tensor) `,` type($scalar)";
  let hasVerifier = 1;
}

def Tml_ProductOp : Tml_Op<"product", [Pure]> {
  let summary = "The outer product (rule t-prod)";
  let description = [{
    Constraints:
      * C1: the result has the dimensions of the first operand, then the dimensions of the second, and the element type of both.
  }];
  let arguments = (ins Tml_Tensor:$lhs, Tml_Tensor:$rhs);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1;
}

def Tml_ContractOp : Tml_Op<"contract", [Pure]> {
  let summary = "The sum over the diagonal of two dimensions (rule t-contr)";
  let description = [{
    Constraints:
      * C1: `dims` are two dimensions of the operand in ascending order, of one extent.
      * C2: the result has the other dimensions, and the operand's element type.
  }];
  let arguments = (ins Tml_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Tml_TransposeOp : Tml_Op<"transpose", [Pure]> {
  let summary = "Two dimensions swapped (rule t-trans)";
  let description = [{
    Constraints:
      * C1: `dims` are two dimensions of the operand.
      * C2: the result has the operand's dimensions with these two swapped, and its element type.
  }];
  let arguments = (ins Tml_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Tml_Tensor:$result);
  let assemblyFormat = "$operand $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif // TC_TML_TD
