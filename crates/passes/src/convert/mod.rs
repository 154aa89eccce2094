//! Passes between dialects.

pub mod axon_to_hlo;
pub mod axon_to_imap;
pub mod hlo_to_imap;
pub mod imap_to_arith;
pub mod imap_to_linalg;
pub mod imap_to_scf;
mod index_expr;
pub mod linalg_to_imap;
pub(crate) mod loops;
pub mod results_to_destinations;
pub mod tc_to_imap;
pub mod tml_to_imap;
