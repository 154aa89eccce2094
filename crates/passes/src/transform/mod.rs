//! Passes that rewrite within a dialect.

pub mod bufferize_chains;
pub mod check_allocations;
pub mod copy_shared_destinations;
pub mod deallocate_local_buffers;
pub mod drop_argument_attributes;
pub mod eliminate_dead_statements;
pub mod expand_strided_copies;
pub mod forward_statements;
pub mod fuse;
pub mod fuse_outer_dimensions;
pub mod hoist_deallocations;
pub mod hoist_divisions;
pub mod infer_ranges;
pub mod infer_shapes;
pub mod limit_vectorization;
pub mod outline_loops;
pub mod pad;
pub mod raise_while_to_for;
pub mod reassociate;
pub mod reuse_carried_buffers;
pub mod runtime_checks;
pub mod scalarize_tensors;
pub mod separate_entry_blocks;
pub mod specialize_sizes;
pub mod store_bools_as_bytes;
pub mod unshare_empty_tensors;
