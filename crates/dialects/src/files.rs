//! Reading files, of a limited size, that a program or a command line names.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Bytes of a source, at most.
pub const MAX_SOURCE_BYTES: u64 = 512 << 20;
/// Bytes of a file of which a diagnostic shows a line, at most.
const MAX_SHOWN_BYTES: u64 = 64 << 20;

/// Opens a file for reading.
///
/// # Errors
/// It cannot be opened, or it is a device, a pipe or a socket, which may have no end.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    // To open a pipe would wait for its writer.
    check(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Refuses what is neither a file nor a folder, which cannot be read anyway.
fn check(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() || metadata.is_dir() {
        return Ok(());
    }
    Err(io::Error::other("not a regular file; try '-' for a source from a pipe"))
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// It cannot be read, is no regular file, or is larger.
pub fn read(path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    if limit < file.metadata()?.len() {
        return Err(too_large(limit));
    }
    read_all(file, limit)
}

/// Reads all of at most `limit` bytes.
///
/// # Errors
/// Reading fails, or there are more.
pub fn read_all(reader: impl Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if limit < bytes.len() as u64 { Err(too_large(limit)) } else { Ok(bytes) }
}

fn too_large(limit: u64) -> io::Error {
    let message = format!("the file is too large; expected at most {limit} bytes");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// Whether lines of a file may be shown in diagnostics about a source: it is that source, or a
/// regular file of moderate size in the folder of the source or below. A program may name any file
/// in its locations.
pub fn is_shown(source: &str, file: &str) -> bool {
    if file == source {
        return true;
    }
    let folder = match Path::new(source).parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let (Ok(folder), Ok(path)) = (folder.canonicalize(), Path::new(file).canonicalize()) else {
        return false;
    };
    path.starts_with(folder)
        && path.metadata().is_ok_and(|it| it.is_file() && it.len() <= MAX_SHOWN_BYTES)
}

/// The contents of a file whose lines may be shown, see [`is_shown`].
pub fn read_shown(source: &str, file: &str) -> Option<Vec<u8>> {
    is_shown(source, file).then(|| read(file, MAX_SHOWN_BYTES).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_the_folder_of_the_source_are_not_shown() {
        let folder = std::env::temp_dir().join(format!("tc-files-{}", std::process::id()));
        let inside = folder.join("a/b");
        fs::create_dir_all(&inside).unwrap();
        let file = |path: &Path| {
            fs::write(path, "text").unwrap();
            path.display().to_string()
        };
        let source = folder.join("a/x.mlir").display().to_string();
        let near = file(&inside.join("near.tc"));
        let outside = file(&folder.join("outside.tc"));
        assert!(is_shown(&source, &source), "it has been read");
        assert!(is_shown(&source, &near));
        assert!(!is_shown(&source, &outside));
        assert!(!is_shown(&source, &folder.join("a/b/../../outside.tc").display().to_string()));
        assert!(!is_shown(&source, "/dev/zero"));
        assert!(!is_shown(&source, &inside.display().to_string()), "a folder");
        #[cfg(unix)]
        {
            let link = inside.join("link.tc");
            std::os::unix::fs::symlink(&outside, &link).unwrap();
            assert!(!is_shown(&source, &link.display().to_string()));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn reading_is_limited() {
        assert_eq!(read_all(&b"1234"[..], 4).unwrap(), b"1234");
        let error = read_all(io::repeat(0), 4).unwrap_err().to_string();
        assert_eq!(error, "the file is too large; expected at most 4 bytes");
        #[cfg(unix)]
        {
            let error = read("/dev/zero", 4).unwrap_err().to_string();
            assert!(error.starts_with("not a regular file"), "{error}");
        }
    }
}
