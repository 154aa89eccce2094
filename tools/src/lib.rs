//! What the binaries of this package share.
