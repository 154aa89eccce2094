//! The emulator of PTX: recorded results of a GPU, kernels against references, mistakes that it must find.

mod device;
mod kernels;
mod mutants;
mod parse;
mod random;
mod synchronization;
