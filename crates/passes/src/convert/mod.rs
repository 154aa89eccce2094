//! Passes between dialects.

mod axon_program;
pub mod axon_to_hlo;
pub mod axon_to_imap;
mod distribute_loops;
mod elements;
pub mod expand_narrow_types;
mod generic_builder;
pub mod hlo_to_imap;
pub mod imap_to_arith;
pub mod imap_to_gpu;
pub mod imap_to_linalg;
pub mod imap_to_scf;
pub mod imap_vectorize;
mod index_emitter;
pub mod launch_to_calls;
pub mod linalg_to_imap;
mod loop_nest;
pub mod outline_kernels;
pub mod results_to_destinations;
pub mod schedule_loops;
pub mod split_complex;
mod subscripts;
pub mod tc_to_imap;
pub mod tml_to_imap;
