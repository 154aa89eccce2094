//! The passes, one file each: `analysis/` reads only, `transform/` rewrites within a
//! level, `convert/` goes from one dialect to another.
//!
//! A pass is a [`PassInfo`] constant: name, documentation,
//! options and work together. [`register`] puts them all, and the shorthands of
//! `tc-opt`, into MLIR's registry.

pub mod analysis;
pub mod convert;
pub mod fusion;
mod loops;
pub mod target;
pub mod tile;
pub mod transform;

use melior::{
    ir::{Module, operation::OperationLike},
    utility,
};
use std::sync::Once;
use tc_dialects::{
    mlir,
    pass::{self, PassInfo},
    register_nvvm_passes, register_pipeline,
};

/// Every pass of the crate, by argument.
pub const PASSES: &[&PassInfo] = &[
    &transform::infer_shapes::PASS,
    &transform::bufferize_chains::PASS,
    &transform::check_allocations::PASS,
    &transform::check_device_reads::PASS,
    &convert::axon_to_hlo::PASS,
    &convert::axon_to_imap::PASS,
    &convert::hlo_to_imap::PASS,
    &convert::imap_to_arith::PASS,
    &convert::imap_to_gpu::PASS,
    &convert::imap_to_linalg::PASS,
    &convert::imap_to_scf::PASS,
    &convert::launch_to_calls::PASS,
    &convert::linalg_to_imap::PASS,
    &convert::results_to_destinations::PASS,
    &convert::tc_to_imap::PASS,
    &convert::tml_to_imap::PASS,
    &transform::copy_shared_destinations::PASS,
    &transform::deallocate_local_buffers::PASS,
    &transform::double_buffer_loops::PASS,
    &transform::drop_argument_attributes::PASS,
    &transform::drop_roundings::PASS,
    &convert::expand_narrow_types::PASS,
    &transform::expand_strided_copies::PASS,
    &analysis::print_graph::PASS,
    &analysis::print_indexing_maps::PASS,
    &transform::hoist_deallocations::PASS,
    &transform::hoist_divisions::PASS,
    &transform::hoist_invariants::PASS,
    &transform::hoist_scratch::PASS,
    &transform::assign_buffers::PASS,
    &fusion::PASS,
    &transform::outline_functions::PASS,
    &convert::outline_kernels::PASS,
    &tile::pack::PASS,
    &tile::permute::PASS,
    &fusion::print::PASS,
    &tile::schedule::PASS,
    &convert::schedule_loops::PASS,
    &transform::split_folds::PASS,
    &tile::split::PASS,
    &tile::PASS,
    &convert::imap_vectorize::PASS,
    &transform::inline_calls::PASS,
    &transform::lift_scratch::PASS,
    &transform::limit_vectorization::PASS,
    &transform::mark_scratch::PASS,
    &transform::note_work::PASS,
    &transform::outline_parallel_loops::PASS,
    &transform::parallelize_copies::PASS,
    &transform::parallelize_loops::PASS,
    &transform::pin_carried_buffers::PASS,
    &transform::raise_while_to_for::PASS,
    &transform::reuse_carried_buffers::PASS,
    &transform::scalarize_tensors::PASS,
    &transform::separate_entry_blocks::PASS,
    &convert::split_complex::PASS,
    &transform::store_bools_as_bytes::PASS,
    &transform::infer_ranges::PASS,
    &transform::runtime_checks::PASS,
    &transform::specialize_sizes::PASS,
    &transform::time_kernels::PASS,
    &transform::eliminate_dead_statements::PASS,
    &transform::forward_statements::PASS,
    &transform::pad::PASS,
    &transform::reassociate::PASS,
    &transform::unshare_empty_tensors::PASS,
    &transform::update_in_place::PASS,
];

/// Names of removed passes, and of those that do their work now.
pub const REMOVED: &[(&str, &str)] = &[
    ("fuse-outer-dimensions", "imap-tile"),
    ("hoist-thread-memory", "outline-parallel-loops"),
    ("outline-loops", "imap-outline-functions"),
    ("scope-parallel-accesses", "outline-parallel-loops"),
];

/// Shorthands: the option of `tc-opt`, its description, and its pipeline.
pub const PIPELINES: &[(&str, &str, &str)] = &[
    (
        "infer-ranges",
        "Infer the ranges of the index variables of comprehensions",
        "tc-infer-ranges",
    ),
    (
        "explain-ranges",
        "Infer ranges and print the rounds of the inference",
        "tc-infer-ranges{explain=true}",
    ),
    (
        "runtime-checks",
        "Check unproven assumptions of range inference, outside the loops",
        "tc-runtime-checks",
    ),
    (
        "fuse",
        "Convert comprehensions to imap.generic and fuse producers into consumers",
        "convert-tc-to-imap,canonicalize,cse,hoist-invariants,imap-fuse,canonicalize,cse",
    ),
    (
        "print-indexing-maps",
        "Print the elements of its operands that each HLO instruction needs",
        "hlo-print-indexing-maps",
    ),
    ("print-schedules", "Print the schedules of operations", "imap-schedule{print=true}"),
    ("graph", "Print an HLO module as a graph for Graphviz", "hlo-print-graph"),
];

/// Registers every pass and shorthand with MLIR, once per process.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for pass in PASSES {
            pass.register();
        }
        register_nvvm_passes();
        for (argument, description, pipeline) in PIPELINES {
            register_pipeline(argument, description, pipeline);
        }
        tile::schedule::TILE.register();
        tile::schedule::SCHEDULE_FILE.register();
    });
}

/// Why a pipeline did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The text of the pipeline is wrong.
    #[error("{0}")]
    Invalid(String),
    /// A pass failed, or the result is invalid; diagnostics have been emitted.
    #[error("the program has errors")]
    Diagnosed,
}

/// Runs a textual pipeline on a module, and verifies the result.
///
/// # Errors
/// As [`PipelineError`] lists.
pub fn run_pipeline(module: &mut Module, pipeline: &str) -> Result<(), PipelineError> {
    register();
    utility::register_all_passes();
    let manager = pass::manager(mlir::context_of(mlir::op_ref(module.as_operation())));
    let pipeline = format!("builtin.module({pipeline})");
    utility::parse_pass_pipeline(manager.as_operation_pass_manager(), &pipeline)
        .map_err(|error| PipelineError::Invalid(error.to_string()))?;
    manager.run(module).map_err(|_| PipelineError::Diagnosed)?;
    if module.as_operation().verify() { Ok(()) } else { Err(PipelineError::Diagnosed) }
}

#[cfg(test)]
mod tests {
    use crate::{
        PASSES, fusion,
        target::{MemoryBound, TileLimits},
        tile,
    };

    #[test]
    fn passes_are_in_the_order_of_their_arguments() {
        assert!(PASSES.is_sorted_by(|first, second| first.argument < second.argument));
    }

    #[test]
    fn default_costs_are_the_defaults_of_the_options() {
        let costs = (&fusion::PASS, MemoryBound::default().options());
        let limits = (&tile::schedule::PASS, TileLimits::default().options());
        for (pass, text) in [costs, limits] {
            for option in text.split_whitespace() {
                let (name, value) = option.split_once('=').expect("an option has a value");
                let known = pass.options.iter().find(|it| it.name == name);
                assert_eq!(known.expect("an option of the pass").default, value, "{name}");
            }
        }
    }
}
