//===- axon.td - the dialect of Axon programs ---------------*- tablegen -*-===//
//
// The single source of truth for the `axon` dialect: operations, types, assembly
// and documentation.
//
//===----------------------------------------------------------------------===//

#ifndef TC_AXON_TD
#define TC_AXON_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Axon_Dialect : Dialect {
  let name = "axon";
  let summary = "Axon: functions as values, polymorphic in element types, shapes and ranks";
  let description = [{
    An `.axon` file is an `axon.program`. Expressions are operations, functions are
    `axon.fn` with a region, and definitions are `axon.def`. Uses of a polymorphic
    definition, which defines a function or a number, are `axon.use`; its result has
    the type of that use.

    Import yields no types: all are `!axon.any`. The pass `axon-infer-shapes` assigns
    types to all values, with the variables of the enclosing definition, and
    unsolved conditions to definitions. `convert-axon-to-hlo` converts a definition
    at known sizes to the [hlo dialect](hlo.md) and decides the conditions.

    ```mlir
    axon.program {
      %0 = axon.fn ["x"](%x: !axon.tensor<t, [a] ++ b>) {
        %total = axon.builtin "+" : (!axon.tensor<t, []>, !axon.tensor<t, []>) -> !axon.tensor<t, []>
        %zero = axon.number 0 : !axon.tensor<t, []>
        %sum = axon.reduce(%total, %zero, %x) : ((!axon.tensor<t, []>, !axon.tensor<t, []>) -> !axon.tensor<t, []>, !axon.tensor<t, []>, !axon.tensor<t, [a] ++ b>) -> !axon.tensor<t, b>
        %y = axon.div(%x, %sum) : (!axon.tensor<t, [a] ++ b>, !axon.tensor<t, b>) -> !axon.tensor<t, [a] ++ b>
        axon.return %y : !axon.tensor<t, [a] ++ b>
      } : (!axon.tensor<t, [a] ++ b>) -> !axon.tensor<t, [a] ++ b>
      %normalize = axon.def "normalize" %0 : (!axon.tensor<t, [a] ++ b>) -> !axon.tensor<t, [a] ++ b>
      axon.return
    }
    ```

    **Types.** Tensors are `!axon.tensor`; functions and tuples have MLIR's types;
    `!axon.var<"S">` is a type variable. Variables of element types, dimensions and
    shapes have names and belong to the enclosing top-level definition.

    **Built-in functions.** A call is an operation with the name in the table of
    built-in functions, or `add` to `greater_equal` for operators. Options are
    attributes with text in the notation of Axon. A built-in function that is used as
    a value is `axon.builtin`, like the functions of the prelude.
  }];
  let cppNamespace = "::tc::axon";
  let useDefaultTypePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Axon_TensorType : TypeDef<Axon_Dialect, "Tensor"> {
  let mnemonic = "tensor";
  let summary = "A tensor: an element type or a variable for one, and a shape";
  let description = [{
    A shape is a list of dimensions in brackets, a variable, or several of these
    appended with `++`. A dimension is a size, a variable, `*` if it is ragged, or
    an expression in prefix notation.

    ```mlir
    !axon.tensor<f32, [2, (+ n 1)] ++ s>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"the element type">:$element,
    StringRefParameter<"the shape, in the notation of Axon">:$shape);
  let hasCustomAssemblyFormat = 1;
}

def Axon_AnyType : TypeDef<Axon_Dialect, "Any"> {
  let mnemonic = "any";
  let summary = "A type that has not been inferred";
}

def Axon_VarType : TypeDef<Axon_Dialect, "Var"> {
  let mnemonic = "var";
  let summary = "A type variable";
  let parameters = (ins StringRefParameter<"its name">:$name);
  let assemblyFormat = "`<` $name `>`";
}

def Axon_Value : AnyTypeOf<[
  Type<CPred<"::llvm::isa<::tc::axon::TensorType, ::tc::axon::AnyType, ::tc::axon::VarType>($_self)">, "Axon type">,
  AnyTuple,
  Type<CPred<"::llvm::isa<::mlir::FunctionType>($_self)">, "function">]>;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Axon_Op<string mnemonic, list<Trait> traits = []> : Op<Axon_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::llvm::success(tcRustVerify(wrap(getOperation())));
    }
  }];
}

def Axon_ProgramOp : Axon_Op<"program", [IsolatedFromAbove, SingleBlock, NoRegionArguments]> {
  let summary = "The definitions of a file, and the value of the expression at its end";
  let description = [{
    Constraints:
      * C1: the block ends in `axon.return`, with the value if there is one.
      * C2: the names of definitions and parameters are identifiers of Axon.
  }];
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "attr-dict-with-keyword $bodyRegion";
}

def Axon_ReturnOp : Axon_Op<"return", [Terminator, ReturnLike, ParentOneOf<["ProgramOp", "FnOp"]>]> {
  let summary = "The value of a function or a program";
  let arguments = (ins Optional<Axon_Value>:$value);
  let assemblyFormat = "attr-dict ($value^ `:` type($value))?";
}

def Axon_FnOp : Axon_Op<"fn", [
    SingleBlock, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A function as a value";
  let description = [{
    `params` are the names of the parameters. Types that the program writes down are
    kept as text: `annotations` has one for each parameter, possibly empty, and
    `result_annotation` has the type of the result.

    Constraints:
      * C1: there are as many names as arguments, and as many annotations if there are any.
      * C2: the block ends in `axon.return` with one value.
      * C3: the type is the function type from the types of the arguments to the type of the value, or `!axon.any`.
      * C4: annotations are types of Axon.
  }];
  let arguments = (ins
    StrArrayAttr:$params,
    OptionalAttr<StrArrayAttr>:$annotations,
    OptionalAttr<StrAttr>:$result_annotation);
  let results = (outs Axon_Value:$result);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let hasCustomAssemblyFormat = 1;
}

def Axon_DefOp : Axon_Op<"def", [
    AllTypesMatch<["value", "result"]>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A definition: a name for a value";
  let description = [{
    `conditions` lists the unsolved conditions of inference, each with the source
    location that requires it.
  }];
  let arguments = (ins StrAttr:$name, Axon_Value:$value, OptionalAttr<StrArrayAttr>:$conditions);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "$name $value attr-dict `:` type($value)";
}

def Axon_UseOp : Axon_Op<"use"> {
  let summary = "A use of a definition of a function or a number";
  let description = [{
    Constraints:
      * C1: the operand is the result of an `axon.def`.
  }];
  let arguments = (ins Axon_Value:$definition);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "$definition attr-dict `:` type($definition) `->` type($result)";
}

def Axon_BuiltinOp : Axon_Op<"builtin"> {
  let summary = "A built-in function, or one of the prelude, as a value";
  let description = [{
    Constraints:
      * C1: there is a function of this name.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Axon_NumberOp : Axon_Op<"number"> {
  let summary = "A number, of any element type that has it and of any shape";
  let description = [{
    An integer is written `2`, a float `2.0`. Integers are `i64`, those above its range `ui64`.

    Constraints:
      * C1: the number is an `i64`, an `ui64` or an `f64`, and no NaN.
  }];
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "custom<Number>($value) attr-dict `:` type($result)";
}

def Axon_TupleOp : Axon_Op<"tuple"> {
  let summary = "Several values as one";
  let arguments = (ins Variadic<Axon_Value>:$parts);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "`(` $parts `)` attr-dict `:` functional-type($parts, $result)";
}

def Axon_UnpackOp : Axon_Op<"unpack"> {
  let summary = "The parts of a tuple";
  let description = [{
    Constraints:
      * C1: there are at least two parts.
  }];
  let arguments = (ins Axon_Value:$value);
  let results = (outs Variadic<Axon_Value>:$parts);
  let assemblyFormat = "$value attr-dict `:` functional-type($value, $parts)";
}

def Axon_CallOp : Axon_Op<"call"> {
  let summary = "A call of a function that is a value";
  let description = [{
    Constraints:
      * C1: if the type of the function is known, it maps the types of the operands to the type of the result.
  }];
  let arguments = (ins Axon_Value:$function, Variadic<Axon_Value>:$args);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "$function `(` $args `)` attr-dict `:` type($function) `,` functional-type($args, $result)";
}

/// A call of a built-in function; its type is in the table of these.
class Axon_BuiltinCallOp<string mnemonic, string text> : Axon_Op<mnemonic> {
  let summary = text;
  let description = [{
    Constraints:
      * C1: there are as many operands as the function has parameters.
      * C2: options are dimensions or shapes.
  }];
  let arguments = (ins Variadic<Axon_Value>:$args);
  let results = (outs Axon_Value:$result);
  let assemblyFormat = "`(` $args `)` attr-dict `:` functional-type($args, $result)";
}

def Axon_AddOp : Axon_BuiltinCallOp<"add", "`+`">;
def Axon_SubOp : Axon_BuiltinCallOp<"sub", "`-`">;
def Axon_MulOp : Axon_BuiltinCallOp<"mul", "`*`">;
def Axon_DivOp : Axon_BuiltinCallOp<"div", "`/`">;
def Axon_MaxOp : Axon_BuiltinCallOp<"max", "The greater of each pair">;
def Axon_MinOp : Axon_BuiltinCallOp<"min", "The lesser of each pair">;
def Axon_EqualOp : Axon_BuiltinCallOp<"equal", "`==`">;
def Axon_NotEqualOp : Axon_BuiltinCallOp<"not_equal", "`!=`">;
def Axon_LessOp : Axon_BuiltinCallOp<"less", "`<`">;
def Axon_LessEqualOp : Axon_BuiltinCallOp<"less_equal", "`<=`">;
def Axon_GreaterOp : Axon_BuiltinCallOp<"greater", "`>`">;
def Axon_GreaterEqualOp : Axon_BuiltinCallOp<"greater_equal", "`>=`">;
def Axon_SelectOp : Axon_BuiltinCallOp<"select", "The second operand if the first is true, else the third">;
def Axon_NegOp : Axon_BuiltinCallOp<"neg", "The negative">;
def Axon_ExpOp : Axon_BuiltinCallOp<"exp", "e to this power">;
def Axon_LogOp : Axon_BuiltinCallOp<"log", "The natural logarithm">;
def Axon_SqrtOp : Axon_BuiltinCallOp<"sqrt", "The square root">;
def Axon_TanhOp : Axon_BuiltinCallOp<"tanh", "The hyperbolic tangent">;
def Axon_SigmoidOp : Axon_BuiltinCallOp<"sigmoid", "1 / (1 + exp(-x))">;
def Axon_ReluOp : Axon_BuiltinCallOp<"relu", "The greater of each element and 0">;
def Axon_MatmulOp : Axon_BuiltinCallOp<"matmul", "The product of matrices, for each index of the dimensions before">;
def Axon_ConvOp : Axon_BuiltinCallOp<"conv", "Filters over images; options `stride`, `padding`, `dilation`">;
def Axon_ConcatOp : Axon_BuiltinCallOp<"concat", "One after the other along dimension 0">;
def Axon_ReverseOp : Axon_BuiltinCallOp<"reverse", "Backwards along dimension 0">;
def Axon_SliceOp : Axon_BuiltinCallOp<"slice", "A part of dimension 0; options `start`, `size`">;
def Axon_MapOp : Axon_BuiltinCallOp<"map", "A function on each row">;
def Axon_ReduceOp : Axon_BuiltinCallOp<"reduce", "The rows, combined to one element by element">;
def Axon_LoopOp : Axon_BuiltinCallOp<"loop", "A function on a state and each row: the last state, and a row from each">;
def Axon_GatherOp : Axon_BuiltinCallOp<"gather", "The rows at some indices">;
def Axon_TransposeOp : Axon_BuiltinCallOp<"transpose", "A matrix with rows and columns exchanged">;
def Axon_ReshapeOp : Axon_BuiltinCallOp<"reshape", "The same elements in another shape; option `shape`">;
def Axon_IotaOp : Axon_BuiltinCallOp<"iota", "The numbers from 0 on; option `size`">;
def Axon_LstmStepOp : Axon_BuiltinCallOp<"lstm_step", "A step of an LSTM">;

#endif // TC_AXON_TD
