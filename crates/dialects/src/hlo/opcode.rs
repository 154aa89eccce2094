//! The opcodes and the names of attributes: one table each.
//!
//! Parser, printer, verifier and documentation all work from these tables. A row of [`Opcode`]
//! says how many operands an instruction has and which attributes it needs and takes; the
//! attributes of [`COMMON`] are allowed everywhere. `CONTRIBUTING.md` shows how to add an opcode.
//!
//! Source: OpenXLA, "Operation Semantics".

use std::{
    collections::HashMap,
    fmt::{self, Display, Formatter},
    sync::OnceLock,
};

/// What the value of an attribute looks like in text; each is a variant of
/// [`Value`](super::Value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of `Value`")]
pub enum ValueKind {
    Integer,
    Boolean,
    Number,
    Integers,
    Computation,
    Computations,
    Instructions,
    Window,
    Padding,
    Slice,
    DimLabels,
    ReplicaGroups,
    Pairs,
    Direction,
    ComparisonType,
    FusionKind,
    FftType,
    RandomAlgorithm,
    RandomDistribution,
    Transposition,
    Text,
}

macro_rules! attributes {
    ($($variant:ident $name:literal $kind:ident $doc:literal;)*) => {
        /// The name of an attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Attribute { $(#[doc = $doc] $variant,)* }

        impl Attribute {
            /// Every attribute.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in HLO text. Two attributes may share it, on different opcodes.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What its value looks like.
            pub fn kind(self) -> ValueKind {
                match self { $(Self::$variant => ValueKind::$kind,)* }
            }

            /// One sentence of documentation.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

attributes! {
    Algorithm "algorithm" RandomAlgorithm "The generator.";
    ApiVersion "api_version" Text "The calling convention of a custom call.";
    BackendConfig "backend_config" Text "What a backend wrote down for itself.";
    BatchGroupCount "batch_group_count" Integer "Groups that the batch dimension is split into.";
    Body "body" Computation "The next state of a loop, from the current one.";
    BranchComputations "branch_computations" Computations "One computation per branch.";
    CalledComputations "called_computations" Computations "What a custom call may call.";
    Calls "calls" Computation "The instructions of the fusion.";
    ChannelId "channel_id" Integer "Tells collectives of one program apart.";
    CollapsedSliceDims "collapsed_slice_dims" Integers "Operand dimensions that the result lacks.";
    Condition "condition" Computation "Whether a loop goes on, from the current state.";
    ConstrainLayout "constrain_layout" Boolean "Whether layouts are fixed.";
    ControlPredecessors "control-predecessors" Instructions "What must run before.";
    CrossProgramPrefetchIndex "cross_program_prefetch_index" Integer
        "Which of the copies that programs begin for each other it is.";
    CustomCallHasSideEffect "custom_call_has_side_effect" Boolean "Whether it may not be dropped.";
    CustomCallSchedule "custom_call_schedule" Text "When it should run.";
    CustomCallTarget "custom_call_target" Text "The name of the function.";
    Delta "delta" Integer "By how much a global state advances.";
    Dimensions "dimensions" Integers "The dimensions that the instruction is about.";
    DimLabels "dim_labels" DimLabels "What the dimensions of a convolution are.";
    Direction "direction" Direction "The comparison.";
    Distribution "distribution" RandomDistribution "The distribution.";
    DotAlgorithm "algorithm" Text "The precision to compute with.";
    DynamicSliceSizes "dynamic_slice_sizes" Integers "The size of the slice per dimension.";
    Epsilon "epsilon" Number "What is added to the variance.";
    ExponentBits "exponent_bits" Integer "Bits of the exponent.";
    FalseComputation "false_computation" Computation "The branch taken if false.";
    FeatureGroupCount "feature_group_count" Integer "Groups that the features are split into.";
    FeatureIndex "feature_index" Integer "The feature dimension.";
    FftLength "fft_length" Integers "The sizes of the transformed dimensions.";
    FftType "fft_type" FftType "The transform.";
    FrontendAttributes "frontend_attributes" Text "What a frontend wrote down.";
    Index "index" Integer "The position in the tuple.";
    IndexVectorDim "index_vector_dim" Integer "Where an index vector stands.";
    IndicesAreSorted "indices_are_sorted" Boolean "A promise about the indices.";
    InputBatchingDims "input_batching_dims" Integers "Batch dimensions of the operand.";
    InsertedWindowDims "inserted_window_dims" Integers "Operand dimensions the updates lack.";
    IotaDimension "iota_dimension" Integer "The dimension to count along.";
    IsAssociative "is_associative" Boolean "A promise about the body.";
    IsReverse "is_reverse" Boolean "Whether it goes from the last element to the first.";
    IsStable "is_stable" Boolean "Whether equal elements keep their order.";
    K "k" Integer "How many elements to keep.";
    Kind "kind" FusionKind "The kind of fusion.";
    Largest "largest" Boolean "Whether the largest are kept.";
    LeftSide "left_side" Boolean "Whether the matrix stands on the left.";
    LhsBatchDims "lhs_batch_dims" Integers "Batch dimensions of the lhs.";
    LhsContractingDims "lhs_contracting_dims" Integers "Contracted dimensions of the lhs.";
    LhsRaggedDims "lhs_ragged_dims" Integers "The dimension that the groups split.";
    Lower "lower" Boolean "Whether the lower triangle is meant.";
    MantissaBits "mantissa_bits" Integer "Bits of the mantissa.";
    Metadata "metadata" Text "Where the instruction comes from.";
    NumCarries "num_carries" Integer "How many of the operands are carried along.";
    OffsetDims "offset_dims" Integers "Result dimensions that run over the slice.";
    OperandBatchingDims "operand_batching_dims" Integers "Batch dimensions of the operand.";
    OperandLayoutConstraints "operand_layout_constraints" Text "Layouts that operands must have.";
    OperandPrecision "operand_precision" Text "How exactly to compute.";
    Origin "origin" Text "Which value of the original program it is.";
    OutputToOperandAliasing "output_to_operand_aliasing" Text "Buffers that are shared.";
    Padding "padding" Padding "Padding per dimension.";
    ParameterReplication "parameter_replication" Text "Whether all replicas pass the same.";
    ReplicaGroups "replica_groups" ReplicaGroups "Which replicas work together.";
    ResultAccuracy "result_accuracy" Text "How exact the result must be.";
    RhsBatchDims "rhs_batch_dims" Integers "Batch dimensions of the rhs.";
    RhsContractingDims "rhs_contracting_dims" Integers "Contracted dimensions of the rhs.";
    RhsGroupDims "rhs_group_dims" Integers "The dimension of the rhs with one entry per group.";
    Scatter "scatter" Computation "How a value is added to what is there.";
    ScatterDimsToOperandDims "scatter_dims_to_operand_dims" Integers "What index vectors index.";
    ScatterIndicesBatchingDims "scatter_indices_batching_dims" Integers "Batch dimensions.";
    Select "select" Computation "Whether the first of two values is the one selected.";
    Sharding "sharding" Text "How the value is spread over devices.";
    Slice "slice" Slice "First, limit and stride per dimension.";
    SliceSizes "slice_sizes" Integers "The size of the slice per operand dimension.";
    SourceTargetPairs "source_target_pairs" Pairs "Who sends to whom.";
    StartIndexMap "start_index_map" Integers "What the components of an index vector index.";
    StartIndicesBatchingDims "start_indices_batching_dims" Integers "Batch dimensions.";
    Statistics "statistics" Text "What was measured.";
    ToApply "to_apply" Computation "The computation to apply.";
    TransposeA "transpose_a" Transposition "Which form of the matrix to take.";
    TrueComputation "true_computation" Computation "The branch taken if true.";
    Type "type" ComparisonType "The order to compare in.";
    UniqueIndices "unique_indices" Boolean "A promise about the indices.";
    UnitDiagonal "unit_diagonal" Boolean "Whether the diagonal is all ones.";
    UpdateWindowDims "update_window_dims" Integers "Update dimensions that run over the window.";
    UseGlobalDeviceIds "use_global_device_ids" Boolean "What the numbers in groups count.";
    Window "window" Window "Size, stride, padding and dilation per dimension.";
}

impl Display for Attribute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Attributes that every opcode takes.
pub const COMMON: &[Attribute] = &[
    Attribute::Metadata,
    Attribute::Sharding,
    Attribute::FrontendAttributes,
    Attribute::BackendConfig,
    Attribute::ControlPredecessors,
    Attribute::Origin,
    Attribute::Statistics,
];

/// How many operands an opcode has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// So many.
    Exactly(usize),
    /// So many or more.
    AtLeast(usize),
}

impl Arity {
    /// Whether this number of operands is right.
    pub fn allows(self, count: usize) -> bool {
        match self {
            Self::Exactly(number) => count == number,
            Self::AtLeast(number) => number <= count,
        }
    }
}

impl Display for Arity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (prefix, number) = match *self {
            Self::Exactly(number) => ("", number),
            Self::AtLeast(number) => ("at least ", number),
        };
        write!(f, "{prefix}{number} operand{}", if number == 1 { "" } else { "s" })
    }
}

macro_rules! opcodes {
    ($($variant:ident $name:literal $arity:ident($count:literal)
        [$($required:ident)*] [$($optional:ident)*] $doc:literal;)*) => {
        /// What an instruction computes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Opcode { $(#[doc = $doc] $variant,)* }

        impl Opcode {
            /// Every opcode.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in HLO text.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// How many operands it has. The number of a parameter and the value of a constant
            /// stand where operands do, but are none.
            pub fn arity(self) -> Arity {
                match self { $(Self::$variant => Arity::$arity($count),)* }
            }

            /// The attributes that it cannot do without.
            pub fn required(self) -> &'static [Attribute] {
                match self { $(Self::$variant => &[$(Attribute::$required,)*],)* }
            }

            /// The other attributes that it takes, apart from those of [`COMMON`].
            pub fn optional(self) -> &'static [Attribute] {
                match self { $(Self::$variant => &[$(Attribute::$optional,)*],)* }
            }

            /// One sentence of documentation.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $doc,)* }
            }
        }
    };
}

opcodes! {
    Abs "abs" Exactly(1) [] [] "The magnitude; of a complex number a float.";
    Add "add" Exactly(2) [] [] "The sum; of truth values their disjunction.";
    AddDependency "add-dependency" Exactly(2) [] [] "The first operand, after the token.";
    AfterAll "after-all" AtLeast(0) [] [] "A token after all operands.";
    AllGather "all-gather" AtLeast(1) [Dimensions]
        [ReplicaGroups ChannelId UseGlobalDeviceIds ConstrainLayout]
        "The operands of all replicas of a group, one after the other.";
    AllReduce "all-reduce" AtLeast(1) [ToApply]
        [ReplicaGroups ChannelId UseGlobalDeviceIds ConstrainLayout]
        "The operands of all replicas of a group, reduced.";
    AllToAll "all-to-all" AtLeast(1) []
        [Dimensions ReplicaGroups ChannelId UseGlobalDeviceIds ConstrainLayout]
        "A part of the operand from each replica of a group.";
    And "and" Exactly(2) [] [] "Bits that are set in both; conjunction of truth values.";
    Acos "acos" Exactly(1) [] [ResultAccuracy] "The inverse cosine.";
    Acosh "acosh" Exactly(1) [] [ResultAccuracy] "The inverse hyperbolic cosine.";
    Asin "asin" Exactly(1) [] [ResultAccuracy] "The inverse sine.";
    Asinh "asinh" Exactly(1) [] [ResultAccuracy] "The inverse hyperbolic sine.";
    Atan2 "atan2" Exactly(2) [] [ResultAccuracy] "The angle of the point (rhs, lhs).";
    Atanh "atanh" Exactly(1) [] [ResultAccuracy] "The inverse hyperbolic tangent.";
    BatchNormGrad "batch-norm-grad" Exactly(5) [Epsilon FeatureIndex] []
        "Gradients of batch normalization.";
    BatchNormInference "batch-norm-inference" Exactly(5) [Epsilon FeatureIndex] []
        "Batch normalization with given mean and variance.";
    BatchNormTraining "batch-norm-training" Exactly(3) [Epsilon FeatureIndex] []
        "Batch normalization, with the mean and the variance of the batch.";
    Bitcast "bitcast" Exactly(1) [] [ResultAccuracy] "The same bytes in memory as another shape.";
    BitcastConvert "bitcast-convert" Exactly(1) [] [] "The bits of elements as another type.";
    Broadcast "broadcast" Exactly(1) [] [Dimensions] "Repeated along new dimensions.";
    Call "call" AtLeast(0) [ToApply] [] "The result of a computation.";
    Cbrt "cbrt" Exactly(1) [] [ResultAccuracy] "The cubic root.";
    Ceil "ceil" Exactly(1) [] [] "Rounded up.";
    Cholesky "cholesky" Exactly(1) [] [Lower] "The Cholesky factor.";
    Clamp "clamp" Exactly(3) [] [] "The second operand, kept between the others.";
    CollectiveBroadcast "collective-broadcast" AtLeast(1) []
        [ReplicaGroups ChannelId] "The operand of the first replica of a group.";
    CollectivePermute "collective-permute" AtLeast(1) [SourceTargetPairs] [ChannelId]
        "The operand of another replica.";
    Compare "compare" Exactly(2) [Direction] [Type] "Whether the comparison holds.";
    Complex "complex" Exactly(2) [] [] "A complex number from its parts.";
    Concatenate "concatenate" AtLeast(1) [Dimensions] [] "One after the other.";
    Conditional "conditional" AtLeast(2) []
        [BranchComputations TrueComputation FalseComputation]
        "The result of the branch that the first operand selects.";
    Constant "constant" Exactly(0) [] [] "A value given in the text.";
    Convert "convert" Exactly(1) [] [] "The same numbers in another type.";
    Convolution "convolution" Exactly(2) [DimLabels]
        [Window FeatureGroupCount BatchGroupCount OperandPrecision]
        "Sums of products of a kernel with windows of the operand.";
    Copy "copy" Exactly(1) [] [] "The same value.";
    CopyDone "copy-done" Exactly(1) [] [] "The copy that a `copy-start` began.";
    CopyStart "copy-start" Exactly(1) [] [CrossProgramPrefetchIndex]
        "A copy that a `copy-done` ends: the copy, the operand and a number.";
    Cosine "cosine" Exactly(1) [] [ResultAccuracy] "The cosine.";
    Cosh "cosh" Exactly(1) [] [ResultAccuracy] "The hyperbolic cosine.";
    CountLeadingZeros "count-leading-zeros" Exactly(1) [] [] "Zero bits before the first one.";
    CustomCall "custom-call" AtLeast(0) [CustomCallTarget]
        [Window DimLabels FeatureGroupCount BatchGroupCount CalledComputations ToApply ApiVersion
         OperandLayoutConstraints OutputToOperandAliasing CustomCallHasSideEffect
         CustomCallSchedule OperandPrecision]
        "The result of a function that the text only names.";
    Divide "divide" Exactly(2) [] [] "The quotient; of integers truncated.";
    Dot "dot" Exactly(2) []
        [LhsBatchDims LhsContractingDims RhsBatchDims RhsContractingDims OperandPrecision
         DotAlgorithm]
        "Sums of products over the contracted dimensions.";
    DynamicSlice "dynamic-slice" AtLeast(1) [DynamicSliceSizes] []
        "A part that starts at computed indices, moved inside if it does not fit.";
    DynamicUpdateSlice "dynamic-update-slice" AtLeast(2) [] []
        "The first operand with a part replaced, moved inside if it does not fit.";
    Erf "erf" Exactly(1) [] [ResultAccuracy] "The error function.";
    Exponential "exponential" Exactly(1) [] [ResultAccuracy] "e to this power.";
    ExponentialMinusOne "exponential-minus-one" Exactly(1) [] [ResultAccuracy]
        "e to this power, minus 1.";
    Fft "fft" Exactly(1) [FftType FftLength] [] "A Fourier transform of the last dimensions.";
    Floor "floor" Exactly(1) [] [] "Rounded down.";
    Fusion "fusion" AtLeast(0) [Kind Calls] [OutputToOperandAliasing]
        "The result of a computation that is compiled as one.";
    Gather "gather" Exactly(2)
        [OffsetDims StartIndexMap IndexVectorDim SliceSizes]
        [CollapsedSliceDims OperandBatchingDims StartIndicesBatchingDims IndicesAreSorted]
        "Slices of the first operand that start at the indices of the second.";
    GetDimensionSize "get-dimension-size" Exactly(1) [Dimensions] [] "The size of a dimension.";
    GetTupleElement "get-tuple-element" Exactly(1) [Index] [] "One value of a tuple.";
    Imag "imag" Exactly(1) [] [] "The imaginary part.";
    Iota "iota" Exactly(0) [IotaDimension] [] "The index along a dimension.";
    IsFinite "is-finite" Exactly(1) [] [] "Whether it is neither infinite nor NaN.";
    Log "log" Exactly(1) [] [ResultAccuracy] "The natural logarithm.";
    LogPlusOne "log-plus-one" Exactly(1) [] [ResultAccuracy] "The natural logarithm of 1 + x.";
    Logistic "logistic" Exactly(1) [] [ResultAccuracy] "1 / (1 + exp(-x)).";
    Map "map" AtLeast(1) [ToApply] [Dimensions] "A computation on each element.";
    Maximum "maximum" Exactly(2) [] [] "The larger one; NaN if one is.";
    Minimum "minimum" Exactly(2) [] [] "The smaller one; NaN if one is.";
    Mulhi "mulhi" Exactly(2) [] [] "The upper half of the product.";
    Multiply "multiply" Exactly(2) [] [] "The product; of truth values their conjunction.";
    Negate "negate" Exactly(1) [] [] "The negative.";
    Not "not" Exactly(1) [] [] "All bits inverted; the opposite truth value.";
    OptBarrier "opt-barrier" Exactly(1) [] [] "The same value, moved past by nothing.";
    Or "or" Exactly(2) [] [] "Bits that are set in one; disjunction of truth values.";
    Pad "pad" Exactly(2) [Padding] [] "The operand with a value around and between its elements.";
    Parameter "parameter" Exactly(0) [] [ParameterReplication] "An argument.";
    PartitionId "partition-id" Exactly(0) [] [] "The number of this partition.";
    Popcnt "popcnt" Exactly(1) [] [] "How many bits are set.";
    Power "power" Exactly(2) [] [ResultAccuracy] "The first to the power of the second.";
    RaggedDot "ragged-dot" Exactly(3)
        [LhsContractingDims RhsContractingDims LhsRaggedDims]
        [LhsBatchDims RhsBatchDims RhsGroupDims OperandPrecision]
        "A dot whose ragged dimension is split into groups of computed sizes.";
    Real "real" Exactly(1) [] [] "The real part.";
    Reduce "reduce" AtLeast(2) [Dimensions ToApply] []
        "The elements along some dimensions, reduced to one.";
    ReducePrecision "reduce-precision" Exactly(1) [ExponentBits MantissaBits] []
        "Rounded to a format with fewer bits.";
    ReduceScatter "reduce-scatter" AtLeast(1) [Dimensions ToApply]
        [ReplicaGroups ChannelId UseGlobalDeviceIds ConstrainLayout]
        "The part of this replica of the reduced operands of its group.";
    ReduceWindow "reduce-window" AtLeast(2) [ToApply] [Window]
        "The elements of each window, reduced to one.";
    Remainder "remainder" Exactly(2) [] [] "The remainder, with the sign of the dividend.";
    ReplicaId "replica-id" Exactly(0) [] [] "The number of this replica.";
    Reshape "reshape" Exactly(1) [] [] "The same elements in row-major order in another shape.";
    Reverse "reverse" Exactly(1) [Dimensions] [] "Backwards along some dimensions.";
    Rng "rng" Exactly(2) [Distribution] [] "Random numbers.";
    RngBitGenerator "rng-bit-generator" Exactly(1) [Algorithm] []
        "Random bits from a state, and the next state.";
    RngGetAndUpdateState "rng-get-and-update-state" Exactly(0) [Delta] []
        "A global state, before it advances.";
    RoundNearestAfz "round-nearest-afz" Exactly(1) [] []
        "Rounded to an integer, ties away from zero.";
    RoundNearestEven "round-nearest-even" Exactly(1) [] []
        "Rounded to an integer, ties to even.";
    Rsqrt "rsqrt" Exactly(1) [] [ResultAccuracy] "1 over the square root.";
    ScaledDot "scaled-dot" Exactly(4) []
        [LhsBatchDims LhsContractingDims RhsBatchDims RhsContractingDims OperandPrecision]
        "A dot of operands in blocks, each with its scale.";
    Scan "scan" AtLeast(1) [Dimensions ToApply NumCarries] [IsReverse IsAssociative]
        "A computation along a dimension that carries values from step to step.";
    Scatter "scatter" AtLeast(3)
        [ToApply UpdateWindowDims ScatterDimsToOperandDims IndexVectorDim]
        [InsertedWindowDims InputBatchingDims ScatterIndicesBatchingDims IndicesAreSorted
         UniqueIndices]
        "Operands with updates put in at computed indices.";
    Select "select" Exactly(3) [] [] "The second operand where the first is true, else the third.";
    SelectAndScatter "select-and-scatter" Exactly(3) [Select Scatter] [Window]
        "Source values added where each window has its selected element.";
    SetDimensionSize "set-dimension-size" Exactly(2) [Dimensions] []
        "The operand, of which only a part counts.";
    ShiftLeft "shift-left" Exactly(2) [] [] "Shifted left.";
    ShiftRightArithmetic "shift-right-arithmetic" Exactly(2) [] []
        "Shifted right, with copies of the sign.";
    ShiftRightLogical "shift-right-logical" Exactly(2) [] [] "Shifted right, with zeroes.";
    Sign "sign" Exactly(1) [] [] "-1, 0 or 1.";
    Sine "sine" Exactly(1) [] [ResultAccuracy] "The sine.";
    Sinh "sinh" Exactly(1) [] [ResultAccuracy] "The hyperbolic sine.";
    Slice "slice" Exactly(1) [Slice] [] "A part with fixed bounds.";
    Sort "sort" AtLeast(1) [ToApply] [Dimensions IsStable]
        "Sorted along a dimension by a comparison.";
    Sqrt "sqrt" Exactly(1) [] [ResultAccuracy] "The square root.";
    StochasticConvert "stochastic-convert" Exactly(2) [] [] "Converted with random rounding.";
    Subtract "subtract" Exactly(2) [] [] "The difference.";
    Tan "tan" Exactly(1) [] [ResultAccuracy] "The tangent.";
    Tanh "tanh" Exactly(1) [] [ResultAccuracy] "The hyperbolic tangent.";
    TopK "topk" Exactly(1) [K] [Largest] "The first elements in order, and their indices.";
    Transpose "transpose" Exactly(1) [Dimensions] [] "The dimensions in another order.";
    TriangularSolve "triangular-solve" Exactly(2) []
        [LeftSide Lower UnitDiagonal TransposeA] "The solution of a triangular system.";
    Tuple "tuple" AtLeast(0) [] [] "Several values as one.";
    While "while" Exactly(1) [Condition Body] []
        "The state after a loop that goes on while the condition holds.";
    Xor "xor" Exactly(2) [] [] "Bits in which both differ.";
}

impl Opcode {
    /// The opcode with this name in HLO text.
    pub fn from_name(name: &str) -> Option<Self> {
        static NAMES: OnceLock<HashMap<&str, Opcode>> = OnceLock::new();
        let names = NAMES.get_or_init(|| Self::ALL.iter().map(|op| (op.name(), *op)).collect());
        names.get(name).copied()
    }

    /// Why there is no opcode of this name although XLA has one, and what to use instead.
    pub fn instead_of(name: &str) -> Option<String> {
        let stem = ["-start", "-update", "-done"].iter().find_map(|end| name.strip_suffix(end));
        let advice = match (name, stem) {
            ("infeed" | "outfeed", _) | (_, Some("send" | "recv")) | ("send" | "recv", _) => {
                "nothing is exchanged with a host while a program runs; pass data as parameters and \
                 results"
            }
            ("domain", _) => "use its operand, which it is the same as",
            ("dynamic-reshape", _) => "sizes are static; use 'reshape'",
            ("ragged-all-to-all", _) => "programs run on one device; use the program of one",
            (_, Some("async")) => {
                "instructions are not split in two; use the module before they are scheduled"
            }
            (_, Some(stem)) if Self::from_name(stem).is_some() => {
                return Some(format!(
                    "instructions are not split in two; use '{stem}', as in the module before they \
                     are scheduled"
                ));
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }

    /// The attribute of this opcode with this name in HLO text.
    pub fn attribute(self, name: &str) -> Option<Attribute> {
        let own = self.required().iter().chain(self.optional());
        own.chain(COMMON).copied().find(|attribute| attribute.name() == name)
    }
}

impl Display for Opcode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_consistent() {
        for &op in Opcode::ALL {
            assert_eq!(Opcode::from_name(op.name()), Some(op));
            let all = op.required().iter().chain(op.optional()).chain(COMMON);
            let mut names: Vec<_> = all.map(|attribute| attribute.name()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{op} has two attributes of one name");
            assert!(op.summary().ends_with('.'));
        }
        for name in
            ["infeed", "send-done", "async-update", "all-gather-start", "domain", "slice-done"]
        {
            assert!(
                Opcode::from_name(name).is_none() && Opcode::instead_of(name).is_some(),
                "{name}"
            );
        }
        assert_eq!(Opcode::instead_of("frobnicate-start"), None);
        assert_eq!(Arity::Exactly(1).to_string(), "1 operand");
        assert_eq!(Arity::AtLeast(2).to_string(), "at least 2 operands");
    }
}
