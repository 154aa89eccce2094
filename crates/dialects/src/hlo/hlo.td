//===- hlo.td - the dialect of HLO modules ------------------*- tablegen -*-===//
//
// The single source of truth for the `hlo` dialect: operations, attributes,
// types, traits, assembly and documentation. `dialect/mod.rs` defines its
// correspondence to HLO text; a test compares its operations with the table of
// opcodes.
//
//===----------------------------------------------------------------------===//

#ifndef TC_HLO_TD
#define TC_HLO_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/Properties.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Hlo_Dialect : Dialect {
  let name = "hlo";
  let summary = "HLO, the language of XLA: one operation per instruction";
  let description = [{
    A computation is an `hlo.computation`, an instruction one operation in it with
    the opcode's name (`-` becomes `_`) and one result. Attributes have the names
    and the meaning that they have in HLO text; references to computations are
    symbols. Parameters are the arguments of the computation.

    ```mlir
    module @example attributes {hlo.entry = @main} {
      hlo.computation private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
        %c = hlo.add %a, %b : tensor<f32>
        hlo.return %c : tensor<f32>
      }
      hlo.computation @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
        %zero = hlo.constant dense<0.0> : tensor<f32>
        %sums = hlo.reduce %x, %zero {dimensions = array<i64: 1>, to_apply = @sum} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
        hlo.return %sums : tensor<2xf32>
      }
    }
    ```

    **Types.** An array is a ranked tensor of static shape. `pred` is `i1`, signed
    integers are signless ones (`s8` is `i8`), unsigned ones `ui8`, complex numbers
    `complex<f32>`; floats have the names of MLIR. A layout that is not row-major
    is an encoding, `#hlo.layout`. Tuples are MLIR's tuples, a token `!hlo.token`.

    **Attributes.** Integers, truth values, lists of integers and computations are
    MLIR's attributes. Attributes with their own notation (`window`, `padding`,
    `slice`, `dim_labels`, `replica_groups`, the keywords) are strings in that
    notation, and so are attributes without semantics. Attributes of all opcodes are
    discardable: `hlo.sharding`, `hlo.frontend_attributes`,
    `hlo.backend_config`, `hlo.origin`, `hlo.statistics`, all text, and
    `hlo.control_predecessors`, a list of names; names of no earlier instruction are
    ignored.

    **Names.** The name of an instruction is the name of its SSA value. If MLIR cannot
    keep it, `name "..."` follows the types. Together with the
    `metadata` of the HLO text it is the property `origin`, which comparisons ignore:
    `cse` merges operations that differ only in it. Parameters have argument
    attributes for name and metadata.

    **Module.** The name of the module is its symbol name. Attributes of the module:

    | attribute | meaning |
    |---|---|
    | `hlo.entry` | the computation that the program starts with; without it the last one |
    | `hlo.entry_computation_layout` | a function type: the shapes that a caller sees |
    | `hlo.is_scheduled`, `hlo.replica_count`, `hlo.num_partitions` | as in HLO text |
    | `hlo.header` | the rest of the first line, strings `name=text` |
    | `hlo.stack_frames` | the tables that `stack_frame_id` in metadata refers to |
    | `hlo.explicit_layouts` | HLO text writes row-major layouts out |

    **Verification.** A module is verified as HLO: operands, shapes and attributes of
    each operation must satisfy the operation semantics of OpenXLA. The constraints
    listed here have the numbers of `hlo::verify`, which documents all checks.
  }];
  let cppNamespace = "::tc::hlo";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

def Hlo_LayoutAttr : AttrDef<Hlo_Dialect, "Layout"> {
  let mnemonic = "layout";
  let summary = "The order of the elements of an array in memory";
  let description = [{
    The dimensions, fastest-varying first, and further properties as text, such as
    tiling and memory space. A layout never changes a value. A type without a layout
    is row-major without such properties.

    ```mlir
    tensor<2x3xf32, #hlo.layout<[0, 1]>>
    tensor<8x128xbf16, #hlo.layout<[1, 0], "T(8,128)(2,1)">>
    ```
  }];
  let parameters = (ins
    OptionalArrayRefParameter<"int64_t">:$minorToMajor,
    StringRefParameter<"tiling, memory space and the like", "\"\"">:$properties);
  let assemblyFormat = "`<` `[` (`]`) : ($minorToMajor^ `]`)? (`,` $properties^)? `>`";
}

def Hlo_TokenType : TypeDef<Hlo_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "No data, only an order between instructions";
}

def Hlo_Array : StaticShapeTensorOf<[
  I1, I<2>, I<4>, I8, I16, I32, I64, UI<2>, UI<4>, UI8, UI16, UI32, UI64, F4E2M1FN, F8E3M4, F8E4M3,
  F8E4M3B11FNUZ, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, BF16, F16, F32, F64,
  Complex<F32>, Complex<F64>]>;
def Hlo_Token : Type<CPred<"::llvm::isa<::tc::hlo::TokenType>($_self)">, "token">;
def Hlo_Value : AnyTypeOf<[Hlo_Array, AnyTuple, Hlo_Token], "array, tuple or token">;

/// A string in the notation of HLO text. The verifier parses it.
class Hlo_NotationAttr<string what>
    : StringBasedAttr<CPred<"::llvm::isa<::mlir::StringAttr>($_self)">, what # " in the notation of HLO">;

def Hlo_WindowAttr : Hlo_NotationAttr<"a window">;
def Hlo_PaddingAttr : Hlo_NotationAttr<"padding">;
def Hlo_SliceAttr : Hlo_NotationAttr<"ranges">;
def Hlo_DimLabelsAttr : Hlo_NotationAttr<"dimension labels">;
def Hlo_ReplicaGroupsAttr : Hlo_NotationAttr<"replica groups">;
def Hlo_PairsAttr : Hlo_NotationAttr<"pairs of replicas">;
def Hlo_DirectionAttr : Hlo_NotationAttr<"`EQ`, `NE`, `GE`, `GT`, `LE` or `LT`,">;
def Hlo_ComparisonTypeAttr : Hlo_NotationAttr<"`FLOAT`, `TOTALORDER`, `SIGNED` or `UNSIGNED`,">;
def Hlo_FusionKindAttr : Hlo_NotationAttr<"`kLoop`, `kInput`, `kOutput` or `kCustom`,">;
def Hlo_FftTypeAttr : Hlo_NotationAttr<"`FFT`, `IFFT`, `RFFT` or `IRFFT`,">;
def Hlo_RandomAlgorithmAttr
    : Hlo_NotationAttr<"`rng_default`, `rng_three_fry` or `rng_philox`,">;
def Hlo_RandomDistributionAttr : Hlo_NotationAttr<"`rng_uniform` or `rng_normal`,">;
def Hlo_TranspositionAttr : Hlo_NotationAttr<"`NO_TRANSPOSE`, `TRANSPOSE` or `ADJOINT`,">;

//===----------------------------------------------------------------------===//
// Operation classes
//===----------------------------------------------------------------------===//

/// The name of an instruction and its metadata; see the dialect's description.
def Hlo_OriginProperty : Property<"::tc::hlo::Origin", "name and metadata of an instruction"> {
  let defaultValue = "::tc::hlo::Origin()";
}

def Hlo_InstructionInterface : OpInterface<"Instruction"> {
  let cppNamespace = "::tc::hlo";
  let description = [{The common properties of all instructions.}];
  let methods = [
    InterfaceMethod<"The name of the instruction and its metadata.", "::tc::hlo::Origin &",
                    "getInstructionOrigin", (ins), [{ return $_op.getProperties().origin; }]>
  ];
}

/// One instruction. Without `Pure` among the traits it has the effects that the
/// traits say, or unknown ones.
class Hlo_Op<string mnemonic, dag operands, dag attributes = (ins), list<Trait> traits = [Pure]>
    : Op<Hlo_Dialect, mnemonic, [
        HasParent<"ComputationOp">, Hlo_InstructionInterface,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>] # traits> {
  let arguments = !con(operands, attributes, (ins Hlo_OriginProperty:$origin));
  let results = (outs Hlo_Value:$result);
  let assemblyFormat = [{
    operands attr-dict `:` functional-type(operands, results) `` custom<Origin>($origin)
  }];
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      nameResult(getResult(), getProperties().origin, setName);
    }
  }];
  // One builder for all: those that ODS would write make two thirds of the C++.
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<
    (ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$values,
         "::llvm::ArrayRef<::mlir::NamedAttribute>":$attributes),
    [{
      $_state.addTypes(types);
      $_state.addOperands(values);
      $_state.addAttributes(attributes);
    }]>];
}

/// Work that other replicas see, or that depends on more than the operands.
class Hlo_EffectfulOp<string mnemonic, dag operands, dag attributes = (ins)>
    : Hlo_Op<mnemonic, operands, attributes, [MemoryEffects<[MemRead, MemWrite]>]>;

/// Its effects are those of the computations that it calls, which are unknown here.
class Hlo_CallerOp<string mnemonic, dag operands, dag attributes>
    : Hlo_Op<mnemonic, operands, attributes, []>;

class Hlo_UnaryOp<string mnemonic, string text, dag attributes = (ins)>
    : Hlo_Op<mnemonic, (ins Hlo_Array:$operand), attributes> {
  let summary = text;
  let assemblyFormat = [{
    $operand attr-dict `:` custom<Types>(type($operand), type($result)) `` custom<Origin>($origin)
  }];
}

class Hlo_BinaryOp<string mnemonic, string text, dag attributes = (ins)>
    : Hlo_Op<mnemonic, (ins Hlo_Array:$lhs, Hlo_Array:$rhs), attributes> {
  let summary = text;
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` custom<Types>(type($lhs), type($rhs), type($result))
    `` custom<Origin>($origin)
  }];
}

defvar Hlo_Accuracy = (ins OptionalAttr<StrAttr>:$result_accuracy);

class Hlo_ElementwiseUnaryOp<string mnemonic, string text, string elements, dag attributes = (ins)>
    : Hlo_UnaryOp<mnemonic, text, attributes> {
  let description = "Works on each element.\n\n"
    "Constraints:\n"
    "  * E1: the elements are " # elements # ".\n"
    "  * E3: the result has the sizes and the element type of the operand.\n";
}
class Hlo_FloatUnaryOp<string mnemonic, string text>
    : Hlo_ElementwiseUnaryOp<mnemonic, text, "floating point or complex numbers", Hlo_Accuracy>;

class Hlo_ElementwiseBinaryOp<string mnemonic, string text, string elements, dag attributes = (ins)>
    : Hlo_BinaryOp<mnemonic, text, attributes> {
  let description = "Works on elements at the same place; dimensions are never broadcast.\n\n"
    "Constraints:\n"
    "  * E1: the elements are " # elements # ".\n"
    "  * E2, E3: operands and result have the same sizes and the same element type.\n";
}

//===----------------------------------------------------------------------===//
// Computations
//===----------------------------------------------------------------------===//

def Hlo_ComputationOp : Op<Hlo_Dialect, "computation", [
    FunctionOpInterface, IsolatedFromAbove, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    OpAsmOpInterface]> {
  let summary = "A function: instructions that compute a result from parameters";
  let description = [{
    The computation that the program starts with is public, others are private:
    `symbol-dce` drops those that nothing refers to. Argument attributes:

    | attribute | meaning |
    |---|---|
    | `hlo.name` | the name of the parameter |
    | `hlo.position` | how many instructions stand before the parameter in HLO text, if not only the parameters before it |
    | `hlo.metadata`, `hlo.sharding` and the like | attributes of the parameter, as text |

    A computation has one block, of instructions and an `hlo.return` of the result's
    type. None refers to itself, directly or through others, and nothing refers to the
    one that the program starts with.

    ```mlir
    hlo.computation private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
      %c = hlo.add %a, %b : tensor<f32>
      hlo.return %c : tensor<f32>
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$instructions);
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getInstructions(); }
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
  }];
  let hasCustomAssemblyFormat = 1;
}

def Hlo_ReturnOp
    : Op<Hlo_Dialect, "return", [Pure, ReturnLike, Terminator, HasParent<"ComputationOp">]> {
  let summary = "Ends a computation; its operand is the root";
  let arguments = (ins Hlo_Value:$root);
  let assemblyFormat = "$root attr-dict `:` type($root)";
}

//===----------------------------------------------------------------------===//
// Values without operands
//===----------------------------------------------------------------------===//

def Hlo_ConstantOp : Hlo_Op<"constant", (ins), (ins AnyAttr:$value), [
    Pure, ConstantLike, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "A value given in the text";
  let description = [{
    The value is `dense` elements of the result's type. The value of a tuple is an
    array of the values of its elements. If all elements are the same, one is stored.

    ```mlir
    %zero = hlo.constant dense<0.0> : tensor<2x3xf32>
    %pair = hlo.constant [dense<1> : tensor<i32>, dense<true> : tensor<2xi1>]
    ```
  }];
  let assemblyFormat = "$value attr-dict `` custom<Origin>($origin)";
  let hasFolder = 1;
}

def Hlo_IotaOp : Hlo_Op<"iota", (ins), (ins I64Attr:$iota_dimension)> {
  let summary = "The index along a dimension";
  let description = [{
    Constraints:
      * S9: `iota_dimension` is a dimension of the result, whose elements are numbers.
  }];
}

def Hlo_PartitionIdOp : Hlo_Op<"partition_id", (ins)> {
  let summary = "The number of this partition";
  let description = [{
    Constraints:
      * F10: the result is a `tensor<ui32>`.
  }];
}

def Hlo_ReplicaIdOp : Hlo_Op<"replica_id", (ins)> {
  let summary = "The number of this replica";
  let description = [{
    Constraints:
      * F10: the result is a `tensor<ui32>`.
  }];
}

//===----------------------------------------------------------------------===//
// Element-wise, one operand
//===----------------------------------------------------------------------===//

defvar anyNumbers = "integers, floating point or complex numbers";
defvar realNumbers = "integers or floating point numbers";

def Hlo_AbsOp : Hlo_UnaryOp<"abs", "The magnitude"> {
  let description = [{
    The magnitude of the smallest signed integer is that integer.

    Constraints:
      * E1: the elements are signed integers, floating point or complex numbers.
      * E3: the result has the sizes of the operand, and its element type; of complex numbers the type of their parts.
  }];
}
def Hlo_AcosOp : Hlo_FloatUnaryOp<"acos", "The inverse cosine">;
def Hlo_AcoshOp : Hlo_FloatUnaryOp<"acosh", "The inverse hyperbolic cosine">;
def Hlo_AsinOp : Hlo_FloatUnaryOp<"asin", "The inverse sine">;
def Hlo_AsinhOp : Hlo_FloatUnaryOp<"asinh", "The inverse hyperbolic sine">;
def Hlo_AtanhOp : Hlo_FloatUnaryOp<"atanh", "The inverse hyperbolic tangent">;
def Hlo_CbrtOp : Hlo_FloatUnaryOp<"cbrt", "The cubic root">;
def Hlo_CeilOp
    : Hlo_ElementwiseUnaryOp<"ceil", "Rounded up to an integer", "floating point numbers">;
def Hlo_ConvertOp : Hlo_UnaryOp<"convert", "The same numbers in another type"> {
  let description = [{
    To a float type with rounding to nearest, ties to even; to an integer type
    towards zero; to `i1` whether it is not zero. To a narrower integer type the
    low bits are kept. Values out of the range of an integer type saturate, and a
    NaN becomes 0, as XLA's CPU compiler has it.

    Constraints:
      * E3: the result has the sizes of the operand.
      * E4: a complex number is not made real.
  }];
}
def Hlo_CosineOp : Hlo_FloatUnaryOp<"cosine", "The cosine">;
def Hlo_CoshOp : Hlo_FloatUnaryOp<"cosh", "The hyperbolic cosine">;
def Hlo_CountLeadingZerosOp
    : Hlo_ElementwiseUnaryOp<"count_leading_zeros", "Zero bits before the first one", "integers">;
def Hlo_ErfOp : Hlo_ElementwiseUnaryOp<"erf", "The error function", "floating point numbers",
                                       Hlo_Accuracy>;
def Hlo_ExponentialOp : Hlo_FloatUnaryOp<"exponential", "e to this power">;
def Hlo_ExponentialMinusOneOp
    : Hlo_FloatUnaryOp<"exponential_minus_one", "e to this power, minus 1, exact near 0">;
def Hlo_FloorOp
    : Hlo_ElementwiseUnaryOp<"floor", "Rounded down to an integer", "floating point numbers">;
def Hlo_ImagOp : Hlo_UnaryOp<"imag", "The imaginary part"> {
  let description = [{
    The imaginary part of a float is 0.

    Constraints:
      * E1: the elements are floating point or complex numbers.
      * E3: the result has the sizes of the operand, and the type of the parts as elements.
  }];
}
def Hlo_IsFiniteOp : Hlo_UnaryOp<"is_finite", "Whether it is neither infinite nor NaN"> {
  let description = [{
    Constraints:
      * E1: the elements are floating point numbers.
      * E3: the result has the sizes of the operand, and elements of type `i1`.
  }];
}
def Hlo_LogOp : Hlo_FloatUnaryOp<"log", "The natural logarithm">;
def Hlo_LogPlusOneOp
    : Hlo_FloatUnaryOp<"log_plus_one", "The natural logarithm of 1 plus it, exact near 0">;
def Hlo_LogisticOp : Hlo_FloatUnaryOp<"logistic", "1 / (1 + exp(-x))">;
def Hlo_NegateOp : Hlo_ElementwiseUnaryOp<"negate", "The negative", anyNumbers>;
def Hlo_NotOp : Hlo_ElementwiseUnaryOp<"not", "All bits inverted; the opposite truth value",
                                       "integers or truth values">;
def Hlo_PopcntOp : Hlo_ElementwiseUnaryOp<"popcnt", "How many bits are set", "integers">;
def Hlo_RealOp : Hlo_UnaryOp<"real", "The real part"> {
  let description = [{
    Constraints:
      * E1: the elements are floating point or complex numbers.
      * E3: the result has the sizes of the operand, and the type of the parts as elements.
  }];
}
def Hlo_ReducePrecisionOp : Hlo_UnaryOp<"reduce_precision", "Rounded to a format with fewer bits",
    (ins I64Attr:$exponent_bits, I64Attr:$mantissa_bits)> {
  let description = [{
    The value that the format with this many bits of exponent and mantissa holds
    for it, in the element type as before.

    Constraints:
      * E1: the elements are floating point numbers.
      * E3: the result has the type of the operand.
      * E9: `exponent_bits` is at least 1.
  }];
}
def Hlo_RoundNearestAfzOp
    : Hlo_ElementwiseUnaryOp<"round_nearest_afz", "Rounded to an integer, ties away from zero",
                             "floating point numbers">;
def Hlo_RoundNearestEvenOp
    : Hlo_ElementwiseUnaryOp<"round_nearest_even", "Rounded to an integer, ties to even",
                             "floating point numbers">;
def Hlo_RsqrtOp : Hlo_FloatUnaryOp<"rsqrt", "1 over the square root">;
def Hlo_SignOp : Hlo_ElementwiseUnaryOp<"sign", "-1, 0 or 1; of a NaN the NaN", anyNumbers>;
def Hlo_SineOp : Hlo_FloatUnaryOp<"sine", "The sine">;
def Hlo_SinhOp : Hlo_FloatUnaryOp<"sinh", "The hyperbolic sine">;
def Hlo_SqrtOp : Hlo_FloatUnaryOp<"sqrt", "The square root">;
def Hlo_TanOp : Hlo_FloatUnaryOp<"tan", "The tangent">;
def Hlo_TanhOp : Hlo_FloatUnaryOp<"tanh", "The hyperbolic tangent">;

//===----------------------------------------------------------------------===//
// Element-wise, several operands
//===----------------------------------------------------------------------===//

def Hlo_AddOp : Hlo_ElementwiseBinaryOp<"add", "The sum; of truth values their disjunction",
                                        "numbers or truth values">;
def Hlo_AndOp
    : Hlo_ElementwiseBinaryOp<"and", "Bits that are set in both; conjunction of truth values",
                              "integers or truth values">;
def Hlo_Atan2Op : Hlo_ElementwiseBinaryOp<"atan2", "The angle of the point (rhs, lhs)",
                                          "floating point or complex numbers", Hlo_Accuracy>;
def Hlo_CompareOp : Hlo_BinaryOp<"compare", "Whether the comparison holds",
    (ins Hlo_DirectionAttr:$direction, OptionalAttr<Hlo_ComparisonTypeAttr>:$compare_type)> {
  let description = [{
    `compare_type`, which is `type` in HLO text, is the order: without it that of
    the element type. In `TOTALORDER`, `-NaN < -inf < .. < -0 < 0 < .. < inf < NaN`.

    Constraints:
      * E2: the operands have the same sizes and the same element type.
      * E3: the result has these sizes, and elements of type `i1`.
      * E8: `FLOAT` and `TOTALORDER` are for floating point and complex numbers, `SIGNED` for signed integers, `UNSIGNED` for unsigned integers and truth values. Complex numbers are only equal or not.

    ```mlir
    %c = hlo.compare %a, %b {direction = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    ```
  }];
}
def Hlo_ComplexOp : Hlo_BinaryOp<"complex", "A complex number from its parts"> {
  let description = [{
    Constraints:
      * E1: the elements are of type `f32` or `f64`.
      * E2: the operands have the same sizes and the same element type.
      * E3: the result has these sizes, and complex elements with such parts.
  }];
}
def Hlo_DivideOp
    : Hlo_ElementwiseBinaryOp<"divide", "The quotient; of integers truncated", anyNumbers> {
  let description = [{
    An integer divided by zero is -1 (all bits set), and the smallest signed integer
    divided by -1 is itself.

    Constraints:
      * E1: the elements are integers, floating point or complex numbers.
      * E2, E3: operands and result have the same sizes and the same element type.
  }];
}
def Hlo_MaximumOp : Hlo_ElementwiseBinaryOp<"maximum", "The larger one; NaN if one is",
                                            "integers, floating point numbers or truth values">;
def Hlo_MinimumOp : Hlo_ElementwiseBinaryOp<"minimum", "The smaller one; NaN if one is",
                                            "integers, floating point numbers or truth values">;
def Hlo_MulhiOp : Hlo_ElementwiseBinaryOp<"mulhi", "The upper half of the product", "integers">;
def Hlo_MultiplyOp
    : Hlo_ElementwiseBinaryOp<"multiply", "The product; of truth values their conjunction",
                              "numbers or truth values">;
def Hlo_OrOp
    : Hlo_ElementwiseBinaryOp<"or", "Bits that are set in one; disjunction of truth values",
                              "integers or truth values">;
def Hlo_PowerOp : Hlo_ElementwiseBinaryOp<"power", "The first to the power of the second",
                                          anyNumbers, Hlo_Accuracy>;
def Hlo_RemainderOp
    : Hlo_ElementwiseBinaryOp<"remainder", "The remainder, with the sign of the dividend",
                              realNumbers> {
  let description = [{
    The remainder of an integer divided by zero is the dividend. The remainder of the
    smallest signed integer divided by -1 is 0.

    Constraints:
      * E1: the elements are integers or floating point numbers.
      * E2, E3: operands and result have the same sizes and the same element type.
  }];
}
def Hlo_ShiftLeftOp : Hlo_ElementwiseBinaryOp<
    "shift_left", "Shifted left; 0 if by as many bits as there are, or more", "integers">;
def Hlo_ShiftRightArithmeticOp : Hlo_ElementwiseBinaryOp<
    "shift_right_arithmetic", "Shifted right, with copies of the sign", "integers">;
def Hlo_ShiftRightLogicalOp : Hlo_ElementwiseBinaryOp<
    "shift_right_logical", "Shifted right, with zeroes", "integers">;
def Hlo_SubtractOp : Hlo_ElementwiseBinaryOp<"subtract", "The difference", anyNumbers>;
def Hlo_XorOp
    : Hlo_ElementwiseBinaryOp<"xor", "Bits in which both differ", "integers or truth values">;
def Hlo_StochasticConvertOp
    : Hlo_BinaryOp<"stochastic_convert", "Converted with random rounding"> {
  let description = [{
    The second operand has the random bits: the larger neighbor is chosen with the
    probability that keeps the expected value.

    Constraints:
      * E1: the first operand has floating point numbers.
      * E3: operands and result have the same sizes.
      * E10: the second operand has unsigned integers with as many bits as the first.
  }];
}
def Hlo_ClampOp
    : Hlo_Op<"clamp", (ins Hlo_Array:$min, Hlo_Array:$operand, Hlo_Array:$max)> {
  let summary = "The second operand, kept between the others";
  let description = [{
    `minimum(maximum(operand, min), max)`.

    Constraints:
      * E3: the result has the sizes and the element type of `operand`.
      * E7: the bounds have this element type, and are scalars or of these sizes.
  }];
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict `:`
    custom<Types>(type($min), type($operand), type($max), type($result)) `` custom<Origin>($origin)
  }];
}
def Hlo_SelectOp : Hlo_Op<
    "select", (ins Hlo_Array:$predicate, Hlo_Array:$on_true, Hlo_Array:$on_false)> {
  let summary = "The second operand if the first is true, else the third";
  let description = [{
    Constraints:
      * E2, E3: the result has the sizes and the element type of the last two operands.
      * E6: `predicate` has elements of type `i1`, and is a scalar or of these sizes.
  }];
}
def Hlo_MapOp : Hlo_Op<"map", (ins Variadic<Hlo_Array>:$inputs),
    (ins FlatSymbolRefAttr:$to_apply, OptionalAttr<DenseI64ArrayAttr>:$dimensions)> {
  let summary = "A computation on each element";
  let description = [{
    The computation has no effects; its parameters are the elements at one place.

    Constraints:
      * W7: the operands have the same sizes, which the result has too; `to_apply` takes a scalar of each. `dimensions` is empty or lists all dimensions in order.
  }];
}

//===----------------------------------------------------------------------===//
// Structure of arrays
//===----------------------------------------------------------------------===//

def Hlo_BitcastOp
    : Hlo_UnaryOp<"bitcast", "The same bytes in memory as another shape", Hlo_Accuracy> {
  let description = [{
    Depends on layouts: the elements in memory order.

    Constraints:
      * S3: operand and result have as many bits.
  }];
}
def Hlo_BitcastConvertOp
    : Hlo_UnaryOp<"bitcast_convert", "The bits of elements as another type"> {
  let description = [{
    To a narrower type the result has a last dimension more, for the parts of one
    element, the low bits first; to a wider type it has one less.

    Constraints:
      * E5: to a type of fewer bits a dimension is added for the parts; to one of more bits the last dimension is taken, which is as large as the number of parts.
  }];
}
def Hlo_BroadcastOp
    : Hlo_UnaryOp<"broadcast", "Repeated along new dimensions",
                  (ins OptionalAttr<DenseI64ArrayAttr>:$dimensions)> {
  let description = [{
    Dimension `i` of the operand is dimension `dimensions[i]` of the result.

    Constraints:
      * S1: `dimensions` has an entry for each dimension of the operand: different dimensions of the result, with the same sizes.

    ```mlir
    %b = hlo.broadcast %a {dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Hlo_ConcatenateOp : Hlo_Op<"concatenate", (ins Variadic<Hlo_Array>:$inputs),
    (ins DenseI64ArrayAttr:$dimensions)> {
  let summary = "One after the other";
  let description = [{
    Constraints:
      * S7: `dimensions` has one entry. The operands have the same element type, and the same sizes in the other dimensions; the sizes in this one are added.
  }];
}
def Hlo_CopyOp : Hlo_Op<"copy", (ins Hlo_Value:$operand)> {
  let summary = "The same value";
  let description = [{
    Layouts may differ.

    Constraints:
      * E3: the result has the shape of the operand.
  }];
}
def Hlo_DynamicSliceOp : Hlo_Op<"dynamic_slice",
    (ins Hlo_Array:$operand, Variadic<Hlo_Array>:$start_indices),
    (ins DenseI64ArrayAttr:$dynamic_slice_sizes)> {
  let summary = "A part that starts at computed indices, moved inside if it does not fit";
  let description = [{
    Each index is clamped to `[0, size of the operand - size of the slice]`.

    Constraints:
      * I1: there is an index for each dimension, integers of one type, or one list of them. `dynamic_slice_sizes` has the sizes of the result, which are at most the sizes of the operand.
  }];
}
def Hlo_DynamicUpdateSliceOp : Hlo_Op<"dynamic_update_slice",
    (ins Hlo_Array:$operand, Hlo_Array:$update, Variadic<Hlo_Array>:$start_indices)> {
  let summary = "The first operand with a part replaced, moved inside if it does not fit";
  let description = [{
    Each index is clamped to `[0, size of the operand - size of the update]`.

    Constraints:
      * I2: there is an index for each dimension, or one list of them. The update has the element type and the rank of the operand, and sizes of at most its sizes; the result has the operand's shape.
  }];
}
def Hlo_PadOp : Hlo_Op<"pad", (ins Hlo_Array:$operand, Hlo_Array:$padding_value),
                       (ins Hlo_PaddingAttr:$padding)> {
  let summary = "The operand with a value around and between its elements";
  let description = [{
    Per dimension, `low_high` or `low_high_interior` elements; negative ones before
    and after are cut off, after those between elements were put in.

    Constraints:
      * S8: `padding` has an entry for each dimension; the interior padding is not negative. `padding_value` is a scalar of the element type. The size of the result is `low + high + size + max(size - 1, 0) * interior`, and not negative.

    ```mlir
    %p = hlo.pad %a, %zero {padding = "1_2x0_0_1"} : (tensor<3x4xf32>, tensor<f32>) -> tensor<6x7xf32>
    ```
  }];
}
def Hlo_ReshapeOp : Hlo_UnaryOp<"reshape", "The same elements in row-major order in another shape"> {
  let description = [{
    Constraints:
      * S2: operand and result have as many elements, of the same type.
  }];
}
def Hlo_ReverseOp : Hlo_UnaryOp<"reverse", "Backwards along some dimensions",
                                (ins DenseI64ArrayAttr:$dimensions)> {
  let description = [{
    Constraints:
      * S5: `dimensions` are different dimensions of the operand, whose shape the result has.
  }];
}
def Hlo_SliceOp : Hlo_UnaryOp<"slice", "A part with fixed bounds", (ins Hlo_SliceAttr:$slice)> {
  let description = [{
    Per dimension `[start:limit]` or `[start:limit:stride]`, the limit excluded.

    Constraints:
      * S6: `slice` has a range for each dimension, `0 <= start <= limit <= size` with a stride of at least 1; the size of the result is `ceil((limit - start) / stride)`.

    ```mlir
    %s = hlo.slice %a {slice = "{[1:7:2], [0:3]}"} : (tensor<8x4xf32>) -> tensor<3x3xf32>
    ```
  }];
}
def Hlo_TransposeOp : Hlo_UnaryOp<"transpose", "The dimensions in another order",
                                  (ins DenseI64ArrayAttr:$dimensions)> {
  let description = [{
    Dimension `i` of the result is dimension `dimensions[i]` of the operand.

    Constraints:
      * S4: `dimensions` is a permutation; dimension `i` of the result has the size of dimension `dimensions[i]` of the operand.
  }];
}
def Hlo_GetDimensionSizeOp : Hlo_UnaryOp<"get_dimension_size", "The size of a dimension",
                                         (ins DenseI64ArrayAttr:$dimensions)> {
  let description = [{
    Constraints:
      * S10: `dimensions` has one entry, and the result is a `tensor<i32>`.
  }];
}
def Hlo_SetDimensionSizeOp : Hlo_Op<"set_dimension_size", (ins Hlo_Array:$operand, Hlo_Array:$size),
                                    (ins DenseI64ArrayAttr:$dimensions)> {
  let summary = "The operand, with a dynamic size in one dimension";
  let description = [{
    Constraints:
      * S10: `dimensions` has one entry, and `size` is a `tensor<i32>`; the result has the shape of the operand.
  }];
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

defvar Hlo_DotDims = (ins
  OptionalAttr<DenseI64ArrayAttr>:$lhs_batch_dims,
  OptionalAttr<DenseI64ArrayAttr>:$lhs_contracting_dims,
  OptionalAttr<DenseI64ArrayAttr>:$rhs_batch_dims,
  OptionalAttr<DenseI64ArrayAttr>:$rhs_contracting_dims,
  OptionalAttr<StrAttr>:$operand_precision);

def Hlo_DotOp : Hlo_Op<"dot", (ins Hlo_Array:$lhs, Hlo_Array:$rhs),
                       !con(Hlo_DotDims, (ins OptionalAttr<StrAttr>:$algorithm))> {
  let summary = "Sums of products over the contracted dimensions";
  let description = [{
    The result has the batch dimensions, then the other dimensions of `lhs` that are
    not contracted, then the other dimensions of `rhs`.

    Constraints:
      * D1: batch and contracted dimensions of an operand are different; both operands have as many of each, of the same sizes.
      * D2: the result holds numbers as the operands: integers, floating point numbers, or complex ones. If these differ, it holds the last of these kinds, and both operands are converted to its type.
      * D3: the result has the dimensions above.

    ```mlir
    %c = hlo.dot %a, %b {lhs_contracting_dims = array<i64: 1>, rhs_contracting_dims = array<i64: 0>} : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    ```
  }];
}
def Hlo_RaggedDotOp : Hlo_Op<"ragged_dot",
    (ins Hlo_Array:$lhs, Hlo_Array:$rhs, Hlo_Array:$group_sizes),
    (ins OptionalAttr<DenseI64ArrayAttr>:$lhs_batch_dims, DenseI64ArrayAttr:$lhs_contracting_dims,
         OptionalAttr<DenseI64ArrayAttr>:$rhs_batch_dims, DenseI64ArrayAttr:$rhs_contracting_dims,
         DenseI64ArrayAttr:$lhs_ragged_dims, OptionalAttr<DenseI64ArrayAttr>:$rhs_group_dims,
         OptionalAttr<StrAttr>:$operand_precision)> {
  let summary = "A dot whose ragged dimension is split into groups of computed sizes";
  let description = [{
    Group `g` of the ragged dimension of `lhs` has `group_sizes[g]` elements. If
    that dimension is not contracted, `rhs_group_dims` is the dimension of `rhs` with
    one matrix per group; if it is contracted, the result has one per group; if it is
    a batch dimension, the groups only select batches.

    Constraints:
      * D1, D2: as in `hlo.dot`.
      * D5: `lhs_ragged_dims` has one entry, and `group_sizes` has integers. `rhs_group_dims` has one entry if the ragged dimension is neither contracted nor a batch dimension, and none otherwise; the result has the dimensions above.
  }];
}
def Hlo_ScaledDotOp : Hlo_Op<"scaled_dot",
    (ins Hlo_Array:$lhs, Hlo_Array:$rhs, Hlo_Array:$lhs_scale, Hlo_Array:$rhs_scale),
    Hlo_DotDims> {
  let summary = "A dot of operands in blocks, each with its scale";
  let description = [{
    Each element of a scale belongs to a block of its operand's elements along the
    contracted dimension.

    Constraints:
      * D1, D2, D3: as in `hlo.dot`.
      * D4: a scale is a scalar, or has the rank of its operand and sizes that divide the sizes of the operand.
  }];
}
def Hlo_ConvolutionOp : Hlo_Op<"convolution", (ins Hlo_Array:$lhs, Hlo_Array:$rhs),
    (ins OptionalAttr<Hlo_WindowAttr>:$window, Hlo_DimLabelsAttr:$dim_labels,
         OptionalAttr<I64Attr>:$feature_group_count, OptionalAttr<I64Attr>:$batch_group_count,
         OptionalAttr<StrAttr>:$operand_precision)> {
  let summary = "Sums of products of a kernel with windows of the operand";
  let description = [{
    `dim_labels` labels dimensions as batch (`b`), features (`f`; of the kernel
    input `i` and output `o`) and spatial (`0`, `1`, ..) in operand, kernel and result.

    Constraints:
      * D2: operands and result hold numbers of one kind: integers, floating point numbers, or complex ones.
      * D6: `dim_labels` has a label for each dimension, and the window a dimension for each spatial one, with the sizes of the kernel.
      * D7: both group counts are at least 1, and one of them is 1. The input features split into `feature_group_count` groups, each as large as the kernel's input features; the input batch splits into `batch_group_count` groups, and the output features into groups of both counts.
      * D8: the result has the input's batch divided by `batch_group_count`, the kernel's output features, and the number of windows in each spatial dimension (W2).

    ```mlir
    %y = hlo.convolution %x, %k {dim_labels = "b01f_01io->b01f", window = "{size=3x3 pad=1_1x1_1}"} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x8x8x16xf32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Reductions, windows, sorting
//===----------------------------------------------------------------------===//

def Hlo_ReduceOp : Hlo_Op<"reduce",
    (ins Variadic<Hlo_Array>:$inputs, Variadic<Hlo_Array>:$init_values),
    (ins DenseI64ArrayAttr:$dimensions, FlatSymbolRefAttr:$to_apply),
    [Pure, SameVariadicOperandSize]> {
  let summary = "The elements along some dimensions, reduced to one";
  let description = [{
    Several inputs are reduced together, by one computation that takes the values so
    far and then the next elements; the result is a tuple then. The order in which
    elements are combined is unspecified. The computation has no effects.

    Constraints:
      * W3: there are `n` inputs of the same sizes, and `n` scalars.
      * W4: `to_apply` takes `n` values, then another `n` of the same types, and returns `n` of these types.
      * W5: `dimensions` are different dimensions, which the results lack.
  }];
}
def Hlo_ReduceWindowOp : Hlo_Op<"reduce_window",
    (ins Variadic<Hlo_Array>:$inputs, Variadic<Hlo_Array>:$init_values),
    (ins OptionalAttr<Hlo_WindowAttr>:$window, FlatSymbolRefAttr:$to_apply),
    [Pure, SameVariadicOperandSize]> {
  let summary = "The elements of each window, reduced to one";
  let description = [{
    As `hlo.reduce`, for each position of the window. Padding has the initial
    values.

    Constraints:
      * W1: the window has an entry for each dimension; its sizes, strides and dilations are at least 1.
      * W2: a dimension of size `n` is dilated to `(n - 1) * base_dilation + 1` elements and padded; the window covers `(size - 1) * window_dilation + 1` of them, and there are as many windows as fit in steps of the stride.
      * W3, W4: as in `hlo.reduce`.
      * W5: the results have the number of windows in each dimension.
  }];
}
def Hlo_SelectAndScatterOp : Hlo_Op<"select_and_scatter",
    (ins Hlo_Array:$operand, Hlo_Array:$source, Hlo_Array:$init_value),
    (ins OptionalAttr<Hlo_WindowAttr>:$window, FlatSymbolRefAttr:$select,
         FlatSymbolRefAttr:$scatter)> {
  let summary = "Source values added at the selected element of each window";
  let description = [{
    Constraints:
      * W1: as in `hlo.reduce_window`.
      * W6: `source` has one element for each window, and `init_value` is a scalar, of the operand's element type. `select` takes two values and returns a truth value; `scatter` takes two and returns one. The result has the operand's shape.
  }];
}
def Hlo_ScanOp : Hlo_Op<"scan", (ins Variadic<Hlo_Array>:$inputs),
    (ins DenseI64ArrayAttr:$dimensions, FlatSymbolRefAttr:$to_apply, I64Attr:$num_carries,
         OptionalAttr<BoolAttr>:$is_reverse, OptionalAttr<BoolAttr>:$is_associative)> {
  let summary = "A computation along a dimension that carries values from step to step";
  let description = [{
    The last `num_carries` operands are the initial carried values. The computation
    takes a slice of each other operand and the carried values. It returns slices of
    the results and the new carried values.

    Constraints:
      * W10: `dimensions` has one entry. `to_apply` takes the operands that are not carried without this dimension, then the carried ones, and returns a tuple: slices of the results, which have the dimension again, then the carried values.
  }];
}
def Hlo_SortOp : Hlo_Op<"sort", (ins Variadic<Hlo_Array>:$inputs),
    (ins OptionalAttr<DenseI64ArrayAttr>:$dimensions, OptionalAttr<BoolAttr>:$is_stable,
         FlatSymbolRefAttr:$to_apply)> {
  let summary = "Sorted along a dimension by a comparison";
  let description = [{
    Several operands are moved together, by a comparison that takes a left and a
    right element of each; the result is a tuple then.

    Constraints:
      * W8: the operands have the same sizes, and are sorted along one dimension; `to_apply` takes two values of each and returns a truth value. The result has the operands' shapes.
  }];
}
def Hlo_TopKOp : Hlo_UnaryOp<"topk", "The first elements in order, and their indices",
                             (ins I64Attr:$k, OptionalAttr<BoolAttr>:$largest)> {
  let description = [{
    Along the last dimension. Of equal elements the one with the lower index comes
    first.

    Constraints:
      * W9: `k` is at most the size of the last dimension; the result is a tuple of such elements and their indices as `i32`.
  }];
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

def Hlo_GatherOp : Hlo_Op<"gather", (ins Hlo_Array:$operand, Hlo_Array:$start_indices),
    (ins DenseI64ArrayAttr:$offset_dims, OptionalAttr<DenseI64ArrayAttr>:$collapsed_slice_dims,
         DenseI64ArrayAttr:$start_index_map,
         OptionalAttr<DenseI64ArrayAttr>:$operand_batching_dims,
         OptionalAttr<DenseI64ArrayAttr>:$start_indices_batching_dims, I64Attr:$index_vector_dim,
         DenseI64ArrayAttr:$slice_sizes, OptionalAttr<BoolAttr>:$indices_are_sorted)> {
  let summary = "Slices of the first operand that start at the indices of the second";
  let description = [{
    Each index vector, taken along `index_vector_dim`, is the start of a slice of
    `slice_sizes` in the dimensions `start_index_map`. A slice that does not fit is
    moved inside. The dimensions `offset_dims` of the result run over the slice,
    without those that are collapsed or batch dimensions, the others over the index
    vectors.

    Constraints:
      * I3: the indices are integers; `index_vector_dim` is one of their dimensions, or their rank for index vectors of one component.
      * I4: `start_index_map` has as many entries as an index vector has components: different dimensions of the operand.
      * I5: batching dimensions of operand and indices are as many, different, and of the same sizes. Batching dimensions of the operand are not indexed, and batching dimensions of the indices are not `index_vector_dim`.
      * I6: `slice_sizes` has an entry for each dimension of the operand, from 0 to its size, and at most 1 for collapsed and batching dimensions, which are different, in increasing order.
      * I7: `offset_dims` has an increasing entry for each other dimension of the operand. The result has the slice sizes there, and the sizes of the indices without `index_vector_dim` in its other dimensions.
  }];
}
def Hlo_ScatterOp : Hlo_Op<"scatter",
    (ins Variadic<Hlo_Array>:$inputs, Hlo_Array:$scatter_indices, Variadic<Hlo_Array>:$updates),
    (ins DenseI64ArrayAttr:$update_window_dims,
         OptionalAttr<DenseI64ArrayAttr>:$inserted_window_dims,
         DenseI64ArrayAttr:$scatter_dims_to_operand_dims,
         OptionalAttr<DenseI64ArrayAttr>:$input_batching_dims,
         OptionalAttr<DenseI64ArrayAttr>:$scatter_indices_batching_dims, I64Attr:$index_vector_dim,
         OptionalAttr<BoolAttr>:$indices_are_sorted, OptionalAttr<BoolAttr>:$unique_indices,
         FlatSymbolRefAttr:$to_apply),
    [Pure, SameVariadicOperandSize]> {
  let summary = "Operands with updates at computed indices";
  let description = [{
    The counterpart of `hlo.gather`: each window of the updates is combined with the
    elements of the operand. A window that does not fit is skipped. The order of the
    updates of one element is unspecified. The computation has no
    effects. Several operands are updated together; the result is a tuple then.

    Constraints:
      * I3, I5: as in `hlo.gather`.
      * I4: `scatter_dims_to_operand_dims` has as many entries as an index vector has components: different dimensions of the operand.
      * I8: there are as many updates as operands, with the sizes of the indices without `index_vector_dim` outside of `update_window_dims`; inside, sizes of at most the sizes of the operand in the dimensions that are neither inserted nor batching.
      * I9: `to_apply` takes a value of each operand, then one of each update, and returns a value for each operand. The result has the shapes of the operands.
  }];
}

//===----------------------------------------------------------------------===//
// Linear algebra, transforms, normalization
//===----------------------------------------------------------------------===//

def Hlo_CholeskyOp
    : Hlo_UnaryOp<"cholesky", "The Cholesky factor", (ins OptionalAttr<BoolAttr>:$lower)> {
  let description = [{
    Of the matrices in the last two dimensions; the other triangle of the result is
    unspecified.

    Constraints:
      * D10: the last two dimensions have the same size; the elements are floating point or complex numbers. The result has the shape of the operand.
  }];
}
def Hlo_TriangularSolveOp : Hlo_Op<"triangular_solve", (ins Hlo_Array:$a, Hlo_Array:$b),
    (ins OptionalAttr<BoolAttr>:$left_side, OptionalAttr<BoolAttr>:$lower,
         OptionalAttr<BoolAttr>:$unit_diagonal, OptionalAttr<Hlo_TranspositionAttr>:$transpose_a)> {
  let summary = "The solution of a triangular system";
  let description = [{
    The `x` with `op(a) x = b`, or `x op(a) = b` if the matrix is not on the left.

    Constraints:
      * D10: the last two dimensions of `a` have the same size; the elements are floating point or complex numbers. `b` has the same element type, the same batch dimensions, and matrices that can be multiplied from that side; the result has its shape.
  }];
}
def Hlo_FftOp : Hlo_UnaryOp<"fft", "A Fourier transform of the last dimensions",
                            (ins Hlo_FftTypeAttr:$fft_type, DenseI64ArrayAttr:$fft_length)> {
  let description = [{
    Constraints:
      * D9: `fft_length` has one to three entries, the sizes of the last dimensions: of the operand, but of the result for `IRFFT`. `FFT` and `IFFT` map complex numbers to such, `RFFT` floats to complex numbers and `IRFFT` back, with `n / 2 + 1` elements instead of `n` in the last dimension of the complex side.
  }];
}

defvar Hlo_BatchNorm = (ins F64Attr:$epsilon, I64Attr:$feature_index);

def Hlo_BatchNormInferenceOp : Hlo_Op<"batch_norm_inference",
    (ins Hlo_Array:$operand, Hlo_Array:$scale, Hlo_Array:$offset, Hlo_Array:$mean,
         Hlo_Array:$variance), Hlo_BatchNorm> {
  let summary = "Batch normalization with given mean and variance";
  let description = [{
    Constraints:
      * W11: the elements are floating point numbers; scale, offset, mean and variance have one dimension, of the size of the dimension `feature_index`. The result has the shape of the operand.
  }];
}
def Hlo_BatchNormTrainingOp : Hlo_Op<"batch_norm_training",
    (ins Hlo_Array:$operand, Hlo_Array:$scale, Hlo_Array:$offset), Hlo_BatchNorm> {
  let summary = "Batch normalization, with the mean and the variance of the batch";
  let description = [{
    Constraints:
      * W11: as in `hlo.batch_norm_inference`; the result is a tuple of the normalized operand, the mean and the variance.
  }];
}
def Hlo_BatchNormGradOp : Hlo_Op<"batch_norm_grad",
    (ins Hlo_Array:$operand, Hlo_Array:$scale, Hlo_Array:$mean, Hlo_Array:$variance,
         Hlo_Array:$grad_output), Hlo_BatchNorm> {
  let summary = "Gradients of batch normalization";
  let description = [{
    Constraints:
      * W11: as in `hlo.batch_norm_inference`; the result is a tuple of the gradients of operand, scale and offset.
  }];
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

def Hlo_RngOp : Hlo_EffectfulOp<"rng", (ins Hlo_Array:$a, Hlo_Array:$b),
                                (ins Hlo_RandomDistributionAttr:$distribution)> {
  let summary = "Random numbers";
  let description = [{
    Uniform from `a` to `b`, or normal with mean `a` and deviation `b`. Each
    instruction draws other numbers: two of them are never one.

    Constraints:
      * F11: the operands are scalars of the result's element type.
  }];
}
def Hlo_RngBitGeneratorOp : Hlo_UnaryOp<"rng_bit_generator",
    "Random bits from a state, and the next state", (ins Hlo_RandomAlgorithmAttr:$algorithm)> {
  let description = [{
    A function of the state: equal states yield equal bits.

    Constraints:
      * F11: the state is a list of `ui32` or `ui64`; the result is a tuple of such a state and an array of integers.
  }];
}
def Hlo_RngGetAndUpdateStateOp
    : Hlo_EffectfulOp<"rng_get_and_update_state", (ins), (ins I64Attr:$delta)> {
  let summary = "A global state, before it advances";
  let description = [{
    Constraints:
      * F11: the state holds unsigned integers.
  }];
}

//===----------------------------------------------------------------------===//
// Tuples, tokens, barriers
//===----------------------------------------------------------------------===//

def Hlo_TupleOp : Hlo_Op<"tuple", (ins Variadic<Hlo_Value>:$inputs)> {
  let summary = "Several values as one";
  let description = [{
    Constraints:
      * F1: the elements of the result have the shapes of the operands.
  }];
}
def Hlo_GetTupleElementOp
    : Hlo_Op<"get_tuple_element", (ins AnyTuple:$operand), (ins I64Attr:$index)> {
  let summary = "One value of a tuple";
  let description = [{
    Constraints:
      * F1: the tuple has an element `index`, with the shape of the result.
  }];
}
def Hlo_AfterAllOp : Hlo_Op<"after_all", (ins Variadic<Hlo_Token>:$inputs)> {
  let summary = "A token after all operands";
  let description = [{
    Constraints:
      * F5: the operands are tokens.
  }];
}
def Hlo_AddDependencyOp : Hlo_Op<"add_dependency", (ins Hlo_Value:$operand, Hlo_Token:$token)> {
  let summary = "The first operand, after the token";
  let description = [{
    Constraints:
      * F5: the second operand is a token; the result has the shape of the first.
  }];
}
def Hlo_CopyStartOp : Hlo_Op<"copy_start", (ins Hlo_Value:$operand),
                             (ins OptionalAttr<I64Attr>:$cross_program_prefetch_index)> {
  let summary = "A copy that a `copy_done` ends";
  let description = [{
    Constraints:
      * F12: the result is a tuple of the shape of the operand, twice, and u32[].
  }];
}
def Hlo_CopyDoneOp : Hlo_Op<"copy_done", (ins AnyTuple:$operand)> {
  let summary = "The copy that a `copy_start` began";
  let description = [{
    Constraints:
      * F12: the operand is a tuple as of `copy_start`; the result has the shape of its first element.
  }];
}
def Hlo_OptBarrierOp : Hlo_Op<"opt_barrier", (ins Hlo_Value:$operand)> {
  let summary = "The same value, moved past by nothing";
  let description = [{
    Constraints:
      * F6: the result has the shape of the operand.
  }];
}

//===----------------------------------------------------------------------===//
// Control flow and calls
//===----------------------------------------------------------------------===//

def Hlo_CallOp : Hlo_CallerOp<"call", (ins Variadic<Hlo_Value>:$inputs),
                              (ins FlatSymbolRefAttr:$to_apply)> {
  let summary = "The result of a computation";
  let description = [{
    Constraints:
      * F2: the computation takes the shapes of the operands and returns the shape of the result.
  }];
}
def Hlo_ConditionalOp : Hlo_CallerOp<"conditional",
    (ins Hlo_Array:$branch_index, Variadic<Hlo_Value>:$inputs),
    (ins OptionalAttr<FlatSymbolRefArrayAttr>:$branch_computations,
         OptionalAttr<FlatSymbolRefAttr>:$true_computation,
         OptionalAttr<FlatSymbolRefAttr>:$false_computation)> {
  let summary = "The result of the branch that the first operand selects";
  let description = [{
    An index out of range selects the last branch. With a truth value there are
    `true_computation` and `false_computation`.

    Constraints:
      * F4: the first operand is a `tensor<i1>` with two branches, or a `tensor<i32>` with at least one. There is an operand for each branch, which takes its shape; all branches return the shape of the result.
  }];
}
def Hlo_FusionOp : Hlo_CallerOp<"fusion", (ins Variadic<Hlo_Value>:$inputs),
    (ins Hlo_FusionKindAttr:$kind, FlatSymbolRefAttr:$calls,
         OptionalAttr<StrAttr>:$output_to_operand_aliasing)> {
  let summary = "The result of a computation that is compiled as one";
  let description = [{
    Constraints:
      * F2: the computation takes the shapes of the operands and returns the shape of the result.
  }];
}
def Hlo_WhileOp : Hlo_CallerOp<"while", (ins Hlo_Value:$init),
    (ins FlatSymbolRefAttr:$condition, FlatSymbolRefAttr:$body)> {
  let summary = "The state after a loop that runs while the condition is true";
  let description = [{
    Constraints:
      * F3: the body takes and returns the shape of the operand, which the result has too; the condition takes it and returns a `tensor<i1>`.
  }];
}
def Hlo_CustomCallOp : Hlo_Op<"custom_call", (ins Variadic<Hlo_Value>:$inputs),
    (ins StrAttr:$custom_call_target, OptionalAttr<Hlo_WindowAttr>:$window,
         OptionalAttr<Hlo_DimLabelsAttr>:$dim_labels, OptionalAttr<I64Attr>:$feature_group_count,
         OptionalAttr<I64Attr>:$batch_group_count,
         OptionalAttr<FlatSymbolRefArrayAttr>:$called_computations,
         OptionalAttr<FlatSymbolRefAttr>:$to_apply, OptionalAttr<StrAttr>:$api_version,
         OptionalAttr<StrAttr>:$operand_layout_constraints,
         OptionalAttr<StrAttr>:$output_to_operand_aliasing,
         OptionalAttr<BoolAttr>:$custom_call_has_side_effect,
         OptionalAttr<StrAttr>:$custom_call_schedule, OptionalAttr<StrAttr>:$operand_precision),
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "The result of an external function";
  let description = [{
    It has effects if `custom_call_has_side_effect` is set.
  }];
}

//===----------------------------------------------------------------------===//
// Collective operations
//===----------------------------------------------------------------------===//

defvar Hlo_Channel = (ins
  OptionalAttr<Hlo_ReplicaGroupsAttr>:$replica_groups, OptionalAttr<I64Attr>:$channel_id);
defvar Hlo_Collective = !con(Hlo_Channel, (ins
  OptionalAttr<BoolAttr>:$use_global_device_ids, OptionalAttr<BoolAttr>:$constrain_layout));

def Hlo_AllGatherOp : Hlo_EffectfulOp<"all_gather", (ins Variadic<Hlo_Array>:$inputs),
    !con((ins DenseI64ArrayAttr:$dimensions), Hlo_Collective)> {
  let summary = "The operands of all replicas of a group, one after the other";
  let description = [{
    Constraints:
      * F7: the size of one dimension is multiplied by the number of replicas in a group.
      * F9: `replica_groups` names no replica twice.
  }];
}
def Hlo_AllReduceOp : Hlo_EffectfulOp<"all_reduce", (ins Variadic<Hlo_Array>:$inputs),
    !con((ins FlatSymbolRefAttr:$to_apply), Hlo_Collective)> {
  let summary = "The operands of all replicas of a group, reduced";
  let description = [{
    Constraints:
      * F6: the result has the operands' shapes.
      * F8: `to_apply` combines two scalars.
      * F9: `replica_groups` names no replica twice.
  }];
}
def Hlo_AllToAllOp : Hlo_EffectfulOp<"all_to_all", (ins Variadic<Hlo_Array>:$inputs),
    !con((ins OptionalAttr<DenseI64ArrayAttr>:$dimensions), Hlo_Collective)> {
  let summary = "A part of the operand from each replica of a group";
  let description = [{
    With `dimensions`, one operand is cut along that dimension; without it there is an
    operand for each replica of a group.

    Constraints:
      * F6: the dimension splits into as many parts as a group has replicas; the result has the operands' shapes.
      * F9: `replica_groups` names no replica twice.
  }];
}
def Hlo_CollectiveBroadcastOp
    : Hlo_EffectfulOp<"collective_broadcast", (ins Variadic<Hlo_Array>:$inputs), Hlo_Channel> {
  let summary = "The operand of the first replica of a group";
  let description = [{
    Constraints:
      * F6: the result has the operands' shapes.
      * F9: `replica_groups` names no replica twice.
  }];
}
def Hlo_CollectivePermuteOp
    : Hlo_EffectfulOp<"collective_permute", (ins Variadic<Hlo_Array>:$inputs),
                      (ins Hlo_PairsAttr:$source_target_pairs, OptionalAttr<I64Attr>:$channel_id)> {
  let summary = "The operand of another replica";
  let description = [{
    Replicas that receive nothing get zeros.

    Constraints:
      * F6: the result has the operands' shapes.
      * F9: no replica is twice a source or twice a target.
  }];
}
def Hlo_ReduceScatterOp : Hlo_EffectfulOp<"reduce_scatter", (ins Variadic<Hlo_Array>:$inputs),
    !con((ins DenseI64ArrayAttr:$dimensions, FlatSymbolRefAttr:$to_apply), Hlo_Collective)> {
  let summary = "The part of this replica of the reduced operands of its group";
  let description = [{
    Constraints:
      * F7: the size of one dimension is divided by the number of replicas in a group.
      * F8: `to_apply` combines two scalars.
      * F9: `replica_groups` names no replica twice.
  }];
}

#endif // TC_HLO_TD
