//! The C header.
use super::Signature;

/// Writes the header.
pub fn write(_signatures: &[Signature], guard: &str) -> String {
    guard.to_string()
}
