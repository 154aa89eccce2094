//! The names of the functions of loaded code, for `perf`.
//!
//! `perf report` reads `/tmp/perf-PID.map`: a line for each function, with its address, its size and its name.

use super::interface::KERNEL_PREFIX;
use crate::backend::Error;
use object::{Object, ObjectSymbol, SectionIndex, SymbolKind};
use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::Write,
    process,
    sync::Once,
};

/// The lines for the functions of an object. `address` finds symbols that other objects can refer to.
///
/// The other functions are as far from these as in the object: a section is loaded as a whole.
pub(super) fn lines(object: &[u8], address: &dyn Fn(&str) -> Option<u64>) -> String {
    let Ok(object) = object::File::parse(object) else { return String::new() };
    let functions = || {
        let functions = object.symbols().filter(|it| it.kind() == SymbolKind::Text);
        functions.filter_map(|it| Some((it.section_index()?, it.name().ok()?.to_string(), it)))
    };
    // Per section, how far it is loaded from its address in the object.
    let mut distances: HashMap<SectionIndex, u64> = HashMap::new();
    for (section, name, symbol) in functions().filter(|(.., it)| it.is_global()) {
        if let Some(address) = address(&name) {
            distances.insert(section, address.wrapping_sub(symbol.address()));
        }
    }
    let mut lines = String::new();
    for (section, name, symbol) in functions() {
        let Some(distance) = distances.get(&section) else { continue };
        let address = symbol.address().wrapping_add(*distance);
        let name = name.strip_prefix(KERNEL_PREFIX).unwrap_or(&name);
        lines += &format!("{address:x} {:x} {name}\n", symbol.size());
    }
    lines
}

/// Adds lines to the file of this process.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(lines: &str) -> Result<(), Error> {
    static ONCE: Once = Once::new();
    let path = format!("/tmp/perf-{}.map", process::id());
    // An earlier process may have had the same number.
    ONCE.call_once(|| drop(fs::remove_file(&path)));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    written.map_err(|error| Error::PerfMap { path, error: error.to_string() })
}
