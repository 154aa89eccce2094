//===- imap.td - the mid-level dialect of indexing maps ----*- tablegen -*-===//
//
// The single source of truth for the `imap` dialect: operations, attributes,
// traits, assembly and documentation.
//
//===----------------------------------------------------------------------===//

#ifndef TC_IMAP_TD
#define TC_IMAP_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/Interfaces/ValueBoundsOpInterface.td"

def Imap_Dialect : Dialect {
  let name = "imap";
  let summary = "Operations on tensors whose access functions are indexing maps";
  let description = [{
    All front ends lower to this dialect. An operation has an iteration domain and
    one indexing map per operand, from an iteration to the element that it
    accesses:

    ```
    (d0, .., dn)[s0, .., sm]{rt0, .., rtk} -> (e0, .., er),
      domain: d_i in [lo, hi], s_j in [lo, hi], rt_l in [lo, hi], c_x in [lo, hi]
    ```

    Dimension variables range over the result, and range variables over the reduced
    dimensions. Runtime variables are values known only when the program runs: the
    sizes of dynamic tensors and the elements of look-up tables.
  }];
  let cppNamespace = "::tc::imap";
  let useDefaultAttributePrinterParser = 1;
  // Folded index values become `arith.constant`.
  let hasConstantMaterializer = 1;
  // Attributes of operations of all dialects: schedules, marks of loops and of memory.
  let hasOperationAttrVerify = 1;
  // Slices of tensor.empty, which tiling leaves, become smaller ones.
  let hasCanonicalizer = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::complex::ComplexDialect",
                           "::mlir::tensor::TensorDialect"];
}

class Imap_Attr<string name, string attrMnemonic> : AttrDef<Imap_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Imap_MapAttr : Imap_Attr<"Map", "map"> {
  let summary = "An indexing map with the domain on which it is defined";
  let description = [{
    A `tc_ir::FrozenMap`, which threads share. Variables may have names of
    their own; a bound is a constant or an expression over runtime variables; a
    variable that the domain does not list is unbounded.

    ```mlir
    #imap.map<(m, n)[r_k]{K} -> (m, r_k), domain: m in [0, 9], n in [0, 4],
              r_k in [0, K - 1], K in [1, 2147483647]>
    ```
  }];
  let parameters = (ins
    AttrParameter<"::tc::imap::Map", "the map", "const ::tc::imap::Map &">:$map);
  let hasCustomAssemblyFormat = 1;
}

def Imap_CombinerKind : I32Enum<"CombinerKind", "the operation of a combiner", [
    I32EnumCase<"Assign", 0, "assign">,
    I32EnumCase<"Add", 1, "add">,
    I32EnumCase<"Mul", 2, "mul">,
    I32EnumCase<"MinF", 3, "minf">,
    I32EnumCase<"MaxF", 4, "maxf">,
    I32EnumCase<"MinS", 5, "mins">,
    I32EnumCase<"MaxS", 6, "maxs">,
    I32EnumCase<"MinU", 7, "minu">,
    I32EnumCase<"MaxU", 8, "maxu">,
    I32EnumCase<"And", 9, "and">,
    I32EnumCase<"Or", 10, "or">,
    I32EnumCase<"MinimumF", 11, "minimumf">,
    I32EnumCase<"MaximumF", 12, "maximumf">,
    I32EnumCase<"Custom", 13, "custom">
  ]> {
  let cppNamespace = "::tc::imap";
}

def Imap_CombinerStart : I32Enum<"CombinerStart", "the start of an accumulation", [
    I32EnumCase<"Outs", 0, "outs">,
    I32EnumCase<"Identity", 1, "identity">
  ]> {
  let cppNamespace = "::tc::imap";
}

def Imap_CombinerAttr : Imap_Attr<"Combiner", "combiner"> {
  let summary = "How a comprehension combines the values of one element";
  let description = [{
    `#imap.combiner<assign>` overwrites. `#imap.combiner<add>` accumulates into the contents of
    the destination, and `#imap.combiner<add from identity>` starts from the identity of the
    operation.
  }];
  let parameters = (ins
    EnumParameter<Imap_CombinerKind>:$kind,
    DefaultValuedParameter<"::tc::imap::CombinerStart",
                           "::tc::imap::CombinerStart::Outs">:$start);
  let assemblyFormat = "`<` $kind (`from` $start^)? `>`";
}

def Imap_AccumulatorAttr : Imap_Attr<"Accumulator", "acc"> {
  let summary = "What a fold accumulates: the type, the operation and the start";
  let description = [{
    `#imap.acc<add f32>` starts from the identity of the operation: 0, 1, the largest or the
    lowest value of the type; the infinities for floats. `#imap.acc<add f32 from 5.0>` starts from
    a constant, and `#imap.acc<add f32 from outs 0>` from what destination 0 holds.

    `#imap.acc<f32 identity 0.0>` is folded by the region `combine` of the operation, and names the
    identity.
  }];
  let parameters = (ins
    "::mlir::Type":$type,
    EnumParameter<Imap_CombinerKind>:$kind,
    OptionalParameter<"::mlir::TypedAttr">:$identity,
    OptionalParameter<"::mlir::TypedAttr">:$start,
    DefaultValuedParameter<"int64_t", "-1">:$out);
  let hasCustomAssemblyFormat = 1;
}

def Imap_ScheduleAttr : Imap_Attr<"Schedule", "schedule"> {
  let summary = "How an operation is computed: steps, outermost first";
  let description = [{
    A schedule is the attribute `imap.schedule` of an operation. `imap-tile` executes the first three kinds of steps:

    * `tile [i = 4, k = 16]` computes tiles of these extents one after the other, in `scf.for`. If it cuts a range of a
      fold, operations before and after the loops write the starts and apply the epilogue;
    * `forall [i = 4]` computes them in any order, in `scf.forall`;
    * `pack in 0` copies the part of input 0 that the tile reads. Neighbouring rows of the copy start in different sets
      of the cache;
    * `order [i, k, j]` is the order of the loops over elements, outermost first. If a dimension comes after the ranges,
      a row along it is accumulated in memory;
    * `vector [i = 6, j = 32] lanes j` holds blocks of these extents in registers, in vectors along `j`.

    `imap-vectorize` executes `vector`, and `convert-imap-to-scf` obeys `order`. Both work on buffers, so these steps are
    the last ones. `imap-schedule-loops` chooses them where there are none.

    Variables have the names that the operation is printed with. One without a name is `d0`, `d1`, .. if it is a
    dimension, and `s0`, `s1`, .. if it is a range. The operations of the same block with the same number as attribute
    `imap.group` are computed in the tiles of the one that has a schedule.

    ```mlir
    #imap.schedule<forall [i = 64], tile [i = 8, j = 32], order [i, k, j], vector [i = 4, j = 32] lanes j>
    ```
  }];
  // Per step: its keyword, the names of variables, their sizes, and the lanes.
  let parameters = (ins "::mlir::ArrayAttr":$steps);
  let hasCustomAssemblyFormat = 1;
}

def Imap_VariableKind : I32Enum<"VariableKind", "the kind of a variable", [
    I32EnumCase<"Dim", 0, "dim">,
    I32EnumCase<"Range", 1, "range">
  ]> {
  let cppNamespace = "::tc::imap";
}

def Imap_VariableKindAttr : EnumAttr<Imap_Dialect, Imap_VariableKind, "variable"> {
  let assemblyFormat = "$value";
}

class Imap_Op<string mnemonic, list<Trait> traits = []>
    : Op<Imap_Dialect, mnemonic, traits>;

/// The tile of an operation, by itself, in the loops of a consumer and in those of a producer.
def Imap_Tiling : DeclareOpInterfaceMethods<TilingInterface, [
  "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation",
  "getResultTilePosition", "generateResultTileValue", "getIterationDomainTileFromResultTile",
  "getTiledImplementationFromOperandTiles", "getIterationDomainTileFromOperandTiles",
  "isOpFusableWithConsumerSlice", "isOpFusableWithProducerSlices"]>;

def Imap_TensorOrMemRef : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;
def Imap_RuntimeType : AnyTypeOf<[Index, AnyRankedTensor, AnyStridedMemRef]>;

/// An operation with an iteration domain and an indexing map per operand. The tail holds the regions
/// after the body: MLIR cannot clone an empty region (LLVM 22).
class Imap_IndexedOp<string mnemonic, dag attributes, list<Trait> traits = []>
    : Imap_Op<mnemonic, [
        AttrSizedOperandSegments, DestinationStyleOpInterface, Imap_Tiling,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, RecursiveMemoryEffects,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>] # traits> {
  let arguments = !con((ins
    Imap_MapAttr:$domain,
    Variadic<Imap_RuntimeType>:$runtimes,
    Variadic<Imap_TensorOrMemRef>:$inputs,
    Variadic<Imap_TensorOrMemRef>:$inits,
    TypedArrayAttrBase<Imap_MapAttr, "indexing maps">:$maps,
    OptionalAttr<ArrayAttr>:$fills), attributes);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$scalar, VariadicRegion<SizedRegion<1>>:$tail);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitsMutable(); }
  }];
  let hasVerifier = 1;
}

def Imap_GenericOp : Imap_IndexedOp<"generic",
    (ins DefaultValuedAttr<TypedArrayAttrBase<Imap_AccumulatorAttr, "accumulators">, "{}">:$accumulators,
         UnitAttr:$ordered), [
    DeclareOpInterfaceMethods<PartialReductionOpInterface, [
      "generateInitialTensorForPartialReduction", "tileToPartialReduction", "mergeReductions",
      "getPartialResultTilePosition"]>]> {
  let summary = "A computation over an iteration domain, with one indexing map per operand";
  let description = [{
    The variables stand first: `(dimensions)[ranges]{runtimes}`, then their bounds and the
    constraints. Each tensor has a subscript per dimension, an expression over the variables.

    * *Map form*, without `fold`: at each point of the dimension variables the body computes
      one value per destination, which is stored. It stores nothing at a point that a
      constraint excludes.
    * *Fold form*: at each point of the dimension variables, the body computes one value per
      accumulator for each point of the range variables at which the constraints hold. The
      accumulators fold these values from their starts, and the outcome is stored at every
      point of the dimension variables. A fold without values stores its start. If there is
      an `epilogue`, it maps what was folded to what is stored.

    An element that no point stores keeps the value that the destination holds; in a
    `tensor.empty` it is undefined.

    | operand | meaning |
    |---|---|
    | `runtime` | the values of the runtime variables, in order: an `index`, or an integer tensor with subscripts |
    | `ins` | the tensors read; the body has one scalar argument for each |
    | `outs` | the destinations; the result has the type of its destination |

    The attribute `maps` holds one map for each of `ins`, then `outs`, then the tensors among
    `runtimes`. The map of a tensor among `runtimes` may use only runtime variables before its
    own.

    An access of `ins` or `runtime` may have a *guard*, `%x[i - 1] where i - 1 in [0, 7] and .. else 0.5`:
    conditions over the variables. Where one of them does not hold, the tensor is not touched, and
    the body or the runtime variable has the constant after `else`, which is zero if it is absent.
    Of complex elements it is always zero.
    The constraints of a map are its guard. The optional attribute `fills` holds one constant or
    unit per map.

    If no combiner has a name, the region `combine` maps two tuples of accumulators to one. It
    must be associative and commutative, and the identities must be neutral.

    An `ordered` fold takes the values in lexicographic order of the range variables. Its region need not
    be commutative, and sums of floats are not reassociated.

    The epilogue has one argument per accumulator followed by one per input, and yields one value
    per destination, of any element type. It may use an input only if its map and its guard have no
    range variable.

    The operation implements `TilingInterface` and `PartialReductionOpInterface`. Loops
    are numbered dimension variables first, then range variables. A tile of a range
    needs accumulators that start from the destination, and no epilogue.

    Constraints:
      * C1: every map has the variables of the domain, and as many results as its operand has dimensions.
      * C2: every runtime variable has an operand; an `index` or a tensor of integers. Their bounds do not depend on each other in a circle.
      * C3: the map of a destination uses dimension and runtime variables only.
      * C4: map form: no range variables, no epilogue, and not `ordered`. Fold form: a start has the type of the accumulator, and at most one accumulator starts from each destination. Either every accumulator names its combiner, or none does and there is a region `combine`.
      * C5: the body takes the elements of the inputs and yields one value per destination, in fold form one per accumulator. The epilogue maps the accumulators and the inputs to one value per destination; it may be absent if accumulators and destinations agree in number and types. The region `combine` uses constants and its arguments only. No region has side effects.
      * C6: dimension and range variables have bounds on both sides.
      * C7: the map of a destination uses every dimension variable that is known to have several values.
      * C8: a destination has no guard. The guard of a tensor among `runtimes` uses only runtime variables before its own.
      * C9: a constant after `else` has a guard before it and the type of the elements. That of a runtime variable lies in its bounds.

    Example, a matrix product of dynamic sizes:

    ```mlir
    %c = imap.generic (m, n)[k]{M, N, K} domain: m in [0, M - 1], n in [0, N - 1], k in [0, K - 1], M in [1, 2147483647], N in [1, 2147483647], K in [1, 2147483647]
      runtime(%M, %N, %K : index, index, index)
      ins(%A[m, k], %B[k, n] : tensor<?x?xf32>, tensor<?x?xf32>)
      outs(%init[m, n] : tensor<?x?xf32>) fold [add f32] {
    ^bb0(%a: f32, %b: f32):
      %p = arith.mulf %a, %b : f32
      imap.yield %p : f32
    } -> tensor<?x?xf32>
    ```
  }];
  let hasCanonicalizeMethod = 1;
}

def Imap_ScatterOp : Imap_IndexedOp<"scatter",
    (ins DefaultValuedAttr<TypedArrayAttrBase<Imap_AccumulatorAttr, "accumulators">, "{}">:$accumulators,
         UnitAttr:$unique, UnitAttr:$sorted)> {
  let summary = "Updates of elements of the destinations that anything may address";
  let description = [{
    At each point of the dimension variables, in lexicographic order, the body computes one value per
    destination. Without `fold` and `combine` it replaces the element, so that the last update of an
    element wins. With `fold` the element is combined with it by an operation, and the region `combine`
    maps the elements and the values to the new elements.

    The subscripts of destinations may use runtime variables that are read from tensors. Where the
    guard after `where`, or a constraint of the domain, does not hold, there is no update.

    `unique` promises that no element is updated twice. `sorted` promises an order: among points that
    differ only in dimension variables on which elements of `runtime` depend, later points do not update
    earlier elements, in row-major order.

    The operation implements `TilingInterface`. A dimension is parallel if it is a plain subscript of
    each destination. Of the other dimensions the first may be tiled, and all of them if the updates are
    `unique`. A dimension of a destination that data addresses is whole in each tile.

    Constraints: C1, C2, C6, C8 and C9 of `imap.generic`; there are no range variables and no epilogue;
    all destinations have one guard, without `else`.

    ```mlir
    %g = imap.scatter (b, d){r} domain: b in [0, 511], d in [0, 767] runtime(%ids[b] : tensor<512xi32>)
      ins(%u[b, d] : tensor<512x768xf32>)
      outs(%zeros[r, d] where r in [0, 999] : tensor<1000x768xf32>) fold [add f32] {
    ^bb0(%x: f32):
      imap.yield %x : f32
    } -> tensor<1000x768xf32>
    ```
  }];
}

def Imap_ScanOp : Imap_IndexedOp<"scan",
    (ins TypedArrayAttrBase<Imap_AccumulatorAttr, "accumulators">:$accumulators,
         ConfinedAttr<I64Attr, [IntNonNegative]>:$dim, UnitAttr:$exclusive)> {
  let summary = "A fold along one dimension variable that stores every intermediate value";
  let description = [{
    The fold form of `imap.generic` with a dimension variable, the scanned one, in place of range
    variables. For all other dimension variables the values of the body are folded in the order of
    the scanned variable. At each point the epilogue of the accumulators is stored, after its own
    value is folded (`inclusive`) or before (`exclusive`). A point that a constraint excludes folds
    nothing. Accumulators start from their identities or from constants.

    The combiner must be associative. A scan from the end has subscripts such as `n - 1 - t`.

    The operation implements `TilingInterface`. The scanned dimension cannot be tiled.

    Constraints: C1, C2, C5 to C9 of `imap.generic`; there are accumulators, and no range variables.

    Sums along the rows of a matrix:

    ```mlir
    %y = imap.scan (i, t) domain: i in [0, 3], t in [0, 7] scan t inclusive
      ins(%x[i, t] : tensor<4x8xf32>) outs(%e[i, t] : tensor<4x8xf32>) fold [add f32] {
    ^bb0(%a: f32):
      imap.yield %a : f32
    } -> tensor<4x8xf32>
    ```
  }];
}

def Imap_SortOp : Imap_Op<"sort", [
    AttrSizedOperandSegments, DestinationStyleOpInterface, Imap_Tiling,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, RecursiveMemoryEffects]> {
  let summary = "Sorts the rows of tensors along a dimension";
  let description = [{
    The elements of the inputs at one place are one item. The items of each row along `dim` are put
    in order by the region, which tells whether the first of two items must stand before the
    second. It takes both elements of the first input, then of the second, and so on. It must be a
    strict weak order; of items that it leaves undecided, `stable` keeps the order.

    A destination per input receives the sorted rows. One more destination, of integers, receives
    where the items stood in their rows. Destinations that are shorter than the inputs along `dim`
    receive the first items. What they held before does not matter.

    The operation implements `TilingInterface`, with a loop per dimension. `dim` cannot be tiled.

    Constraints:
      * S1: at least one input, one destination per input of the same element type, and at most one more destination, whose elements are integers or `index`.
      * S2: the inputs have one shape, and so do the destinations. These agree except along `dim`, where destinations may be shorter.
      * S3: the region takes two elements per input and yields an `i1`. It uses constants and its arguments only.

    Example, the eight smallest elements of each row and where they stood:

    ```mlir
    %first:2 = imap.sort dim = 1 stable ins(%x : tensor<4x99xf32>) outs(%v, %n : tensor<4x8xf32>, tensor<4x8xi32>) {
    ^bb0(%x0: f32, %x1: f32):
      %less = arith.cmpf olt, %x0, %x1 : f32
      imap.yield %less : i1
    } -> tensor<4x8xf32>, tensor<4x8xi32>
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dim,
    UnitAttr:$stable,
    Variadic<Imap_TensorOrMemRef>:$inputs,
    Variadic<Imap_TensorOrMemRef>:$inits);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$comparator);
  let assemblyFormat = [{
    `dim` `=` $dim (`stable` $stable^)? `ins` `(` $inputs `:` type($inputs) `)`
    `outs` `(` $inits `:` type($inits) `)` attr-dict-with-keyword $comparator (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitsMutable(); }
  }];
  let hasVerifier = 1;
}

def Imap_YieldOp : Imap_Op<"yield", [
    Pure, ReturnLike, Terminator, ParentOneOf<["GenericOp", "ScanOp", "ScatterOp", "SortOp"]>]> {
  let summary = "Yields the values of a region of an `imap` operation";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Imap_IndexOp : Imap_Op<"index", [Pure]> {
  let summary = "The value of a dimension or range variable of the enclosing operation";
  let description = [{
    ```mlir
    %i = imap.index dim 0
    %k = imap.index range 1
    ```
  }];
  let arguments = (ins Imap_VariableKindAttr:$kind, ConfinedAttr<I64Attr, [IntNonNegative]>:$number);
  let results = (outs Index:$result);
  // The kind prints a space of its own.
  let assemblyFormat = "`` $kind $number attr-dict";
  let hasVerifier = 1;
}

def Imap_InsideOp : Imap_Op<"inside", [Pure]> {
  let summary = "Whether conditions on the variables of the enclosing `imap.generic` hold";
  let description = [{
    The guard of an access as a value of the body or the epilogue. Dimension, range and runtime variables
    are `d0`, `s0` and `rt0`, by their numbers. In an epilogue, range variables have no value.

    ```mlir
    %in = imap.inside (d0 - 1 in [0, 7], d0 + s0 - rt0 in [-inf, -1]) : i1
    ```
  }];
  let arguments = (ins Imap_MapAttr:$map);
  let results = (outs I1:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Imap_ApplyOp : Imap_Op<"apply", [
    Pure, DeclareOpInterfaceMethods<ValueBoundsOpInterface, ["populateBoundsForIndexValue"]>]> {
  let summary = "Evaluates an indexing map on index values";
  let description = [{
    The operands are the values of the map's dimension, range and runtime
    variables, in this order. The results are the values of the map's results.
    Division rounds toward negative infinity.

    ```mlir
    %e = imap.apply #imap.map<(d0, d1) -> (d0 * 2 + d1)>(%i, %k)
    ```
  }];
  let arguments = (ins Imap_MapAttr:$map, Variadic<Index>:$operands);
  let results = (outs Variadic<Index>:$results);
  let assemblyFormat = "$map `(` $operands `)` attr-dict (`:` type($results)^)?";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Imap_BuiltinOp : Imap_Op<"builtin", [Pure, SameOperandsAndResultType]> {
  let summary = "A scalar built-in function";
  let description = [{
    One of the functions of the table in `tc_dialects::builtins`, with the
    meaning of the C or CUDA math function of that name, within 8 ulp.

    ```mlir
    %y = imap.builtin "erfinv"(%x) : f32
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<AnyFloat>:$operands);
  let results = (outs AnyFloat:$result);
  let assemblyFormat = "$name `(` $operands `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Imap_CheckOp : Imap_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stops the program with a message unless a condition holds";
  let description = [{
    Emitted outside loops only. Compiled code returns the number of the first
    check that fails, and 0 when all hold.

    ```mlir
    imap.check %inside, "N <= M"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

def Imap_LaunchOp : Imap_Op<"launch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Starts a kernel on the device";
  let description = [{
    The kernel is a `gpu.func`. `threads` is the number of threads that have work: the host code starts as many
    blocks as hold them, and the device may start fewer, because kernels are right for any number of blocks.

    A buffer is passed as the pointer from which its offset counts. Its sizes, strides and offset are part of the
    type of the parameter, or values among `args`. An `index` is passed with 64 bits.

    ```mlir
    imap.launch @kernels::@f_0 threads(%n) args(%x, %y, %size : memref<?xf32>, memref<8xf32>, index)
    ```
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Index:$threads, Variadic<AnyType>:$arguments);
  let assemblyFormat = [{
    $kernel `threads` `(` $threads `)` (`args` `(` $arguments^ `:` type($arguments) `)`)? attr-dict
  }];
}

#endif // TC_IMAP_TD
