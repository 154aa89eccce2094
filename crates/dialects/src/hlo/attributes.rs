//! The values of attributes.
//!
//! What the meaning of an instruction depends on has a type here. Everything else (metadata,
//! sharding, backend configuration and the like) is [`Value::Text`], the source text as it was.

use super::{ComputationId, InstructionId};
use std::fmt::{self, Display, Formatter};

macro_rules! keywords {
    ($($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $variant:ident $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name { $($(#[$item_doc])* $variant,)* }

            impl $name {
                /// Every value, in the order of its declaration.
                pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

                /// The word in HLO text.
                pub fn name(self) -> &'static str {
                    match self { $(Self::$variant => $text,)* }
                }

                /// The value with this word in HLO text.
                pub fn from_name(name: &str) -> Option<Self> {
                    match name { $($text => Some(Self::$variant),)* _ => None }
                }
            }

            impl Display for $name {
                fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }
        )*
    };
}

keywords! {
    /// How `compare` compares.
    Direction {
        /// Equal.
        Eq "EQ",
        /// Not equal.
        Ne "NE",
        /// Greater or equal.
        Ge "GE",
        /// Greater.
        Gt "GT",
        /// Less or equal.
        Le "LE",
        /// Less.
        Lt "LT",
    }
    /// The order in which `compare` sees its operands.
    ComparisonType {
        /// As floating point numbers: a NaN is different from everything.
        Float "FLOAT",
        /// As floating point numbers in total order: `-NaN < -inf < .. < -0 < 0 < .. < inf < NaN`.
        TotalOrder "TOTALORDER",
        /// As signed integers.
        Signed "SIGNED",
        /// As unsigned integers.
        Unsigned "UNSIGNED",
    }
    /// Why the instructions of a fusion were put together; it has no effect on the value.
    FusionKind {
        /// One loop over the elements of the result.
        Loop "kLoop",
        /// One loop over the elements of an operand.
        Input "kInput",
        /// Around a matrix product.
        Output "kOutput",
        /// As the backend configuration says.
        Custom "kCustom",
    }
    /// Which Fourier transform `fft` computes.
    FftType {
        /// Complex to complex.
        Fft "FFT",
        /// Its inverse.
        Ifft "IFFT",
        /// Real to complex.
        Rfft "RFFT",
        /// Complex to real.
        Irfft "IRFFT",
    }
    /// The generator of `rng-bit-generator`.
    RandomAlgorithm {
        /// The backend's choice.
        Default "rng_default",
        /// Threefry.
        ThreeFry "rng_three_fry",
        /// Philox.
        Philox "rng_philox",
    }
    /// The distribution of `rng`.
    RandomDistribution {
        /// Uniform between the two operands.
        Uniform "rng_uniform",
        /// Normal with mean and deviation in the two operands.
        Normal "rng_normal",
    }
    /// Which form of the matrix `triangular-solve` takes.
    Transposition {
        /// The matrix itself.
        None "NO_TRANSPOSE",
        /// Its transpose.
        Transpose "TRANSPOSE",
        /// Its conjugate transpose.
        Adjoint "ADJOINT",
    }
}

/// One dimension of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowDim {
    /// Elements that the window covers.
    pub size: i64,
    /// Distance from one window to the next.
    pub stride: i64,
    /// Elements before the first; negative ones are cut off.
    pub padding_low: i64,
    /// Elements after the last; negative ones are cut off.
    pub padding_high: i64,
    /// Distance of neighbouring elements of the operand after dilation (`lhs_dilate`).
    pub base_dilation: i64,
    /// Distance of neighbouring elements of the window after dilation (`rhs_dilate`).
    pub window_dilation: i64,
    /// Whether the window is read backwards.
    pub reversal: bool,
}

impl Default for WindowDim {
    fn default() -> Self {
        Self {
            size: 1,
            stride: 1,
            padding_low: 0,
            padding_high: 0,
            base_dilation: 1,
            window_dilation: 1,
            reversal: false,
        }
    }
}

/// Padding of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PaddingDim {
    /// Elements before the first; negative ones are cut off.
    pub low: i64,
    /// Elements after the last; negative ones are cut off.
    pub high: i64,
    /// Elements between neighbours.
    pub interior: i64,
}

/// The part of one dimension that `slice` takes, `limit` excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceDim {
    /// The first index.
    pub start: i64,
    /// The index after the last one that may be taken.
    pub limit: i64,
    /// Distance of the indices.
    pub stride: i64,
}

/// What the dimensions of a convolution's operands and result are, `dim_labels=b01f_01io->b01f`.
/// Every list of spatial dimensions is in the order of the window's dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvolutionDims {
    /// `b` of the lhs.
    pub input_batch: i64,
    /// `f` of the lhs.
    pub input_feature: i64,
    /// `0`, `1`, .. of the lhs.
    pub input_spatial: Vec<i64>,
    /// `i` of the rhs.
    pub kernel_input_feature: i64,
    /// `o` of the rhs.
    pub kernel_output_feature: i64,
    /// `0`, `1`, .. of the rhs.
    pub kernel_spatial: Vec<i64>,
    /// `b` of the result.
    pub output_batch: i64,
    /// `f` of the result.
    pub output_feature: i64,
    /// `0`, `1`, .. of the result.
    pub output_spatial: Vec<i64>,
}

/// Which replicas take part together in a collective operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplicaGroups {
    /// The groups one by one; none means one group of all replicas.
    Lists(Vec<Vec<i64>>),
    /// `[groups,size]<=[dims]T(transpose)`: the numbers from 0 on in an array of shape `dims`,
    /// transposed, and cut into groups.
    Iota {
        /// Number of groups, and how many replicas each has.
        group_dims: Vec<i64>,
        /// The array that the numbers fill.
        dims: Vec<i64>,
        /// The order of its dimensions; empty if it is not transposed.
        transpose: Vec<i64>,
    },
}

impl ReplicaGroups {
    /// How many replicas a group has, if the groups say so and all are equally large.
    pub fn group_size(&self) -> Option<i64> {
        match self {
            Self::Lists(groups) => {
                let size = groups.first()?.len();
                groups.iter().all(|group| group.len() == size).then_some(size as i64)
            }
            Self::Iota { group_dims, .. } => {
                group_dims.get(1..)?.iter().try_fold(1i64, |size, dim| size.checked_mul(*dim))
            }
        }
    }

    /// How many groups there are; `None` if the text leaves it open.
    pub fn num_groups(&self) -> Option<i64> {
        match self {
            Self::Lists(groups) if groups.is_empty() => None,
            Self::Lists(groups) => Some(groups.len() as i64),
            Self::Iota { group_dims, .. } => group_dims.first().copied(),
        }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One integer.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// One number.
    Number(f64),
    /// Integers in braces.
    Integers(Vec<i64>),
    /// A computation.
    Computation(ComputationId),
    /// Computations in braces.
    Computations(Vec<ComputationId>),
    /// Instructions of the same computation in braces.
    Instructions(Vec<InstructionId>),
    /// `window`.
    Window(Vec<WindowDim>),
    /// `padding`.
    Padding(Vec<PaddingDim>),
    /// `slice`.
    Slice(Vec<SliceDim>),
    /// `dim_labels`.
    DimLabels(Box<ConvolutionDims>),
    /// `replica_groups`.
    ReplicaGroups(Box<ReplicaGroups>),
    /// `source_target_pairs`.
    Pairs(Vec<(i64, i64)>),
    /// `direction`.
    Direction(Direction),
    /// `type` of a comparison.
    ComparisonType(ComparisonType),
    /// `kind` of a fusion.
    FusionKind(FusionKind),
    /// `fft_type`.
    FftType(FftType),
    /// `algorithm` of `rng-bit-generator`.
    RandomAlgorithm(RandomAlgorithm),
    /// `distribution`.
    RandomDistribution(RandomDistribution),
    /// `transpose_a`.
    Transposition(Transposition),
    /// The source text, for what has no effect on the meaning here.
    Text(Box<str>),
}

/// The dimension numbers of `dot`, `ragged-dot` and `scaled-dot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DotDims<'a> {
    /// Batch dimensions of the lhs.
    pub lhs_batch: &'a [i64],
    /// Batch dimensions of the rhs, in the same order.
    pub rhs_batch: &'a [i64],
    /// Contracted dimensions of the lhs.
    pub lhs_contracting: &'a [i64],
    /// Contracted dimensions of the rhs, in the same order.
    pub rhs_contracting: &'a [i64],
}

/// The dimension numbers of `gather`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatherDims<'a> {
    /// Dimensions of the result that run over the slice.
    pub offset_dims: &'a [i64],
    /// Dimensions of the operand that the slice drops; their slice size is 1.
    pub collapsed_slice_dims: &'a [i64],
    /// Dimension of the operand for each component of an index vector.
    pub start_index_map: &'a [i64],
    /// Dimensions of the operand that are batch dimensions.
    pub operand_batching_dims: &'a [i64],
    /// The dimensions of the indices that belong to them.
    pub start_indices_batching_dims: &'a [i64],
    /// Dimension of the indices that holds index vectors; their rank if each index is one.
    pub index_vector_dim: i64,
    /// Size of the slice in each dimension of the operand.
    pub slice_sizes: &'a [i64],
}

/// The dimension numbers of `scatter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScatterDims<'a> {
    /// Dimensions of the updates that run over the window.
    pub update_window_dims: &'a [i64],
    /// Dimensions of the operand that the window lacks.
    pub inserted_window_dims: &'a [i64],
    /// Dimension of the operand for each component of an index vector.
    pub scatter_dims_to_operand_dims: &'a [i64],
    /// Dimensions of the operand that are batch dimensions.
    pub input_batching_dims: &'a [i64],
    /// The dimensions of the indices that belong to them.
    pub scatter_indices_batching_dims: &'a [i64],
    /// Dimension of the indices that holds index vectors; their rank if each index is one.
    pub index_vector_dim: i64,
}
