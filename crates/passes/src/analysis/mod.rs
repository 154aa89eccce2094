//! Analyses: they read the IR and change nothing.

pub(crate) mod buffers;
pub(crate) mod calls;
pub mod cost;
pub mod element_ranges;
pub mod index_reader;
pub mod index_values;
pub mod launches;
pub mod linalg;
pub mod print_graph;
pub mod print_indexing_maps;
