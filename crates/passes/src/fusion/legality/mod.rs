//! Which operations may become one: queries that create no IR and know no costs. The error is the reason that the
//! remark prints.

mod compose;
mod epilogue;
mod folds;
mod memory;
mod merge;
mod rescale;

pub(super) use compose::{check_reads, compose};
pub(super) use merge::{Merge, merge};
pub(super) use rescale::{Rescaling, maximum_below, rescale};

use super::candidate::Candidate;
use tc_ir::{Context, expr::Expr};

/// Why two operations stay apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// An operation has other than one result.
    #[error("only operations with one tensor result are fused")]
    SeveralResults,
    /// The schedule describes one of the operations as it is.
    #[error("an operation has a schedule")]
    Scheduled,
    /// The producer skips points.
    #[error("the domain of the producer has constraints")]
    ConstrainedProducer,
    /// The consumer skips points.
    #[error("the domain of the consumer has constraints")]
    ConstrainedConsumer,
    /// The consumer is bufferized.
    #[error("the consumer works on buffers")]
    Buffers,
    /// The intermediate tensor is a destination of the consumer.
    #[error("the consumer accumulates into the result of the producer")]
    Destination,
    /// The consumer reads indices from the intermediate tensor.
    #[error("the producer gives values of runtime variables")]
    Runtimes,
    /// The producer has an effect.
    #[error("the producer writes to memory")]
    Writes,
    /// An effect lies between the two.
    #[error("memory that the producer reads may change before the consumer")]
    MemoryChanges,
    /// A fold cannot move constraints of operands out of its loops.
    #[error("the reduction would test the guards of the producer at each point")]
    GuardsInFold,
    /// A guarded fold would need to run where it is not read.
    #[error("the consumer reads the reduction under a guard")]
    GuardedFold,
    /// Indices of the producer would be read out of bounds.
    #[error("the producer reads indices, and the consumer reads it under a guard")]
    GuardedRuntimes,
    /// The body of the producer may trap.
    #[error("the body of the producer cannot run where the consumer does not read")]
    PartialBody,
    /// The inverse of the map of the result is not a function.
    #[error("the producer's map to its result uses a variable twice")]
    RepeatedVariable,
    /// The map of the result is more than a permutation with offsets.
    #[error(
        "the producer's map to its result is not a permutation with offsets that are the same for all points"
    )]
    NoPermutation,
    /// The map of the result does not determine the point.
    #[error("the producer's map to its result does not use all variables")]
    UnusedVariable,
    /// A position would be needed as a value in front of the operation.
    #[error("the body of the producer uses an index that is read from a tensor")]
    IndexFromTensor,
    /// The intermediate tensor has undefined elements.
    #[error("the consumer may read elements that the producer does not write")]
    Unwritten,
    /// A fold of a fold.
    #[error("both are reductions")]
    TwoFolds,
    /// Each iteration of the outer fold would have other iterations of the inner one.
    #[error("the bounds of the producer's ranges are read from a tensor")]
    BoundFromTensor,
    /// A fold of a fold would take its values in another order.
    #[error("a fold keeps the order of its values")]
    Ordered,
    /// The fold has a start that is a tensor.
    #[error("the producer accumulates from a value that is there")]
    FoldsIntoTensor,
    /// An epilogue has one value of the fold.
    #[error("the consumer reads the reduction through several maps")]
    SeveralMaps,
    /// A subscript of the read has several variables.
    #[error("the consumer reads the reduction by several variables per dimension")]
    SeveralVariables,
    /// A subscript of the read is not a variable with an offset.
    #[error("the consumer does not read each element of the reduction once")]
    NotOnce,
    /// The read broadcasts.
    #[error("the reduction would be computed again for every element that uses it")]
    FoldAgain,
    /// The domains of two operations that would become one differ.
    #[error("the operations have different points")]
    Domains,
    /// The second operation reads other elements of the first one than those of its own point.
    #[error("the consumer reads other elements of the result than the one of its own point")]
    OtherElements,
    /// The consumer is a scan.
    #[error("a scan reads its values from a tensor")]
    Scan,
    /// The consumer is a scatter.
    #[error("the producer is a reduction, and the consumer a scatter")]
    FoldInScatter,
    /// A scatter would read the tensor that it updates.
    #[error("the scatter updates a tensor that the producer reads")]
    ReadsUpdated,
    /// A scatter does its updates one after the other, without vectors.
    #[error("the updates of a scatter would compute {0} operations each, without vectors")]
    ScalarUpdates(usize),
    /// A map form cannot store in a fold.
    #[error("the producer stores its result, which a fold cannot do for each of its points")]
    StoredInFold,
    /// A combiner region has all accumulators as its arguments.
    #[error("an operation has a combiner region")]
    Combiner,
    /// An operation between the two needs the first one, and the second one needs it.
    #[error("an operation between the two needs the first and is needed by the second")]
    Path,
    /// The operations access no tensor at each point that both need.
    #[error("the operations share no tensor that they access at each point")]
    NothingShared,
    /// One of two operations reads or writes columns where the other one does rows.
    #[error("the operations access tensors along different contiguous dimensions")]
    Contiguity,
    /// One of two operations is a product.
    #[error("a product keeps its registers for one result")]
    Product,
    /// Not all readers of a concatenation can be divided.
    #[error(
        "a reader of the parts is no operation on elements of which each point sees a known part"
    )]
    ReaderOfParts,
    /// Reads at many places see many combinations of parts.
    #[error("a reader would become {0} operations for {1} parts")]
    Pieces(usize, usize),
    /// A part would be computed element by element.
    #[error("parts of the reader would have single elements of rows, without vectors")]
    SingleElements,
    /// Borders of rows leave a rest beside whole vectors.
    #[error("the rest of each row would compute functions without vectors")]
    RestOfRows,
    /// Tiles would lose the results.
    #[error("a tile group could not store the results of both")]
    SeveralEscape,
    /// A sum of other values than the exponentials of a softmax.
    #[error("the sum does not add exp(x - m), in which m is the maximum of all x")]
    NoExponential,
    /// The maximum is of other values than those in the exponentials.
    #[error("the maximum is that of other values")]
    OtherValues,
    /// An index in the body of the sum is another variable in the fold.
    #[error("the sum uses an index, and the variables of the maximum have other numbers")]
    OtherNumbers,
    /// Maximum and sum cannot be accumulated together.
    #[error("maximum and sum have different element types, or sizes that are not known")]
    OtherType,
    /// The contiguous variable of the consumer would be several of the fold.
    #[error("the consumer divides {0}, along which its results are neighbours")]
    DividesNeighbours(String),
    /// Too many tensors at a time.
    #[error("the operation would access {0} tensors at each point, more than {1}")]
    Streams(usize, usize),
    /// The intermediate tensor is needed by others.
    #[error("the result of the producer has several consumers")]
    SeveralConsumers,
    /// The intermediate tensor is needed as a tensor.
    #[error("the result of the producer is read at computed positions")]
    Extracted,
    /// The intermediate tensor is a result of the function.
    #[error("the result of the producer is returned, so it is stored anyway")]
    Returned,
    /// The read broadcasts along a variable.
    #[error("each element would be computed again for every value of {0}")]
    ComputedAgain(String),
    /// The work of several copies of a body.
    #[error("{reads} reads of a body with {work} operations exceed max-recompute={limit}")]
    Recompute {
        /// Different maps through which the consumer reads.
        reads: usize,
        /// Operations of the body.
        work: usize,
        /// The limit of the cost model.
        limit: usize,
    },
    /// The fused operation is too large for LLVM.
    #[error("the fused body would have {0} operations, more than {1}")]
    LargeBody(usize, usize),
    /// A composed map is too large.
    #[error("a composed map would have {0} operators, more than {1}")]
    LargeMap(u32, u32),
}

/// A producer that may be computed where its consumer reads it.
pub(super) struct Composition<'c, 'i> {
    pub(super) ir: &'i Context,
    pub(super) consumer: Candidate<'c>,
    pub(super) producer: Candidate<'c>,
    /// The inputs of the consumer that read the producer.
    pub(super) reads: Vec<usize>,
    /// Per read, the producer's dimension variables over the consumer's variables.
    pub(super) dims: Vec<Vec<Expr>>,
    pub(super) form: Form,
}

/// What becomes of a producer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An operation on elements is computed where it is read.
    Producer,
    /// The consumer becomes the epilogue of a fold.
    Epilogue,
    /// A fold becomes a part of another one.
    Fold,
}

impl Form {
    /// The word in remarks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Epilogue => "epilogue",
            Self::Fold => "fold",
        }
    }
}

impl Composition<'_, '_> {
    /// The first map of the consumer to the intermediate tensor, and the map of the producer to it.
    pub(super) fn maps(&self) -> (String, String) {
        let (consumer, producer) = (&self.consumer.view, &self.producer.view);
        let read = consumer.inputs[self.reads[0]].map(&consumer.domain);
        let written = self.producer.output().map(&producer.domain);
        (read.display(self.ir).to_string(), written.display(self.ir).to_string())
    }
}
