//! `.npy` files, NumPy's format for one array.
//!
//! Format: NumPy Enhancement Proposal 1, versions 1.0 to 3.0. Read: either order of
//! dimensions, every [`ElementType`], little-endian. Written: version 1.0 (2.0 if the
//! header needs it), row-major. Complex numbers are read as pairs of floats, along one more
//! dimension. Not read: big-endian data, text, records.

use super::{
    element::ElementType,
    tensor::{Shape, Tensor, TensorError},
};
use std::{
    fmt, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};
use tc_dialects::files;

const MAGIC: &[u8] = b"\x93NUMPY";
/// NumPy itself reads at most 64 dimensions.
const MAX_RANK: usize = 64;
/// Bytes that a header takes at most; NumPy writes some hundreds.
const MAX_HEADER: usize = 1 << 20;
/// The data starts at a multiple of this many bytes.
const HEADER_ALIGNMENT: usize = 64;

/// Why a file could not be read or written.
#[derive(Debug)]
pub struct NpyError {
    /// The file; empty for data in memory.
    pub path: String,
    /// What is wrong with it.
    pub kind: NpyErrorKind,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum NpyErrorKind {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The contents are not what they must be.
    #[error("byte {offset}: {message}")]
    Format {
        /// Where, from the start of the file.
        offset: usize,
        /// What was found and what was expected.
        message: String,
    },
    /// The array does not fit into memory.
    #[error("{0}")]
    Tensor(#[from] TensorError),
}

impl fmt::Display for NpyError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let path = if self.path.is_empty() { "<npy>" } else { &self.path };
        write!(formatter, "{path}: error: {}", self.kind)
    }
}

impl std::error::Error for NpyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}

/// Reads a file.
///
/// # Errors
/// The file cannot be read, is no regular file, or its contents are not an array of a known type.
pub fn load(path: impl AsRef<Path>) -> Result<Tensor, NpyError> {
    let path = path.as_ref();
    let parsed = files::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let parsed = parsed.map_err(NpyErrorKind::Io).and_then(|(length, file)| parse(file, length));
    parsed.map_err(|kind| NpyError { path: path.display().to_string(), kind })
}

/// The file in a folder for a name that a program chooses, with the ending `.npy`.
///
/// # Errors
/// The name is no plain name, with which the file could be outside of the folder; or something
/// else than a regular file has it, such as a link to somewhere else.
pub fn file_in(folder: &Path, name: &str) -> Result<PathBuf, NpyError> {
    let path = folder.join(format!("{name}.npy"));
    let error = |message: &str| {
        let kind = NpyErrorKind::Io(io::Error::new(io::ErrorKind::InvalidInput, message));
        Err(NpyError { path: path.display().to_string(), kind })
    };
    if name.is_empty() || name.contains(['/', '\\', '\0', ':']) || name.starts_with('.') {
        return error("the program's name is no file name; rename it, without '/' and leading '.'");
    }
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => error("not a regular file; remove it"),
        _ => Ok(path),
    }
}

/// Writes a file.
///
/// # Errors
/// The file cannot be written.
pub fn save(path: impl AsRef<Path>, tensor: &Tensor) -> Result<(), NpyError> {
    write(path.as_ref(), to_bytes(tensor))
}

/// Writes a file of complex numbers. The last dimension of the tensor, of extent 2, holds their
/// parts, as it does in what [`load`] makes of such a file.
///
/// # Errors
/// The file cannot be written.
pub fn save_complex(path: impl AsRef<Path>, tensor: &Tensor) -> Result<(), NpyError> {
    let (_, dims) = tensor.shape().split_last().unwrap_or((&2, &[]));
    let descr = format!("<c{}", 2 * tensor.element().size());
    write(path.as_ref(), encode(&descr, dims, tensor.bytes()))
}

fn write(path: &Path, bytes: Vec<u8>) -> Result<(), NpyError> {
    fs::write(path, bytes).map_err(|error| NpyError {
        path: path.display().to_string(),
        kind: NpyErrorKind::Io(error),
    })
}

/// Reads the contents of a file.
///
/// # Errors
/// The contents are not an array of a known type.
pub fn from_bytes(bytes: &[u8]) -> Result<Tensor, NpyError> {
    parse(bytes, bytes.len() as u64).map_err(|kind| NpyError { path: String::new(), kind })
}

/// The contents of a file that holds the tensor.
pub fn to_bytes(tensor: &Tensor) -> Vec<u8> {
    encode(tensor.element().npy_descr(), tensor.shape(), tensor.bytes())
}

fn encode(descr: &str, dims: &[usize], elements: &[u8]) -> Vec<u8> {
    let extents: Vec<_> = dims.iter().map(|extent| format!("{extent},")).collect();
    // A tuple of one element needs its comma, and longer ones may have it.
    let mut header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        extents.join(" ")
    );
    let wide = usize::from(u16::MAX) < header.len() + HEADER_ALIGNMENT;
    let start = MAGIC.len() + 2 + if wide { 4 } else { 2 };
    let end = (start + header.len() + 1).next_multiple_of(HEADER_ALIGNMENT);
    header.push_str(&" ".repeat(end - start - header.len() - 1));
    header.push('\n');

    let mut bytes = Vec::with_capacity(end + elements.len());
    bytes.extend_from_slice(MAGIC);
    if wide {
        bytes.extend_from_slice(&[2, 0]);
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    } else {
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    }
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(elements);
    bytes
}

fn error<T>(offset: usize, message: impl Into<String>) -> Result<T, NpyErrorKind> {
    Err(NpyErrorKind::Format { offset, message: message.into() })
}

/// Reads an array of `length` bytes: not more than its header says, however long the source is.
fn parse(mut source: impl Read, length: u64) -> Result<Tensor, NpyErrorKind> {
    let mut bytes = Vec::new();
    source.by_ref().take(MAX_HEADER as u64).read_to_end(&mut bytes)?;
    let (header, start) = parse_header(&bytes)?;
    let mut tensor = Tensor::zeros(header.element, &header.shape)?;
    let expected = tensor.bytes().len();
    let mut data = bytes.split_off(start);
    let found = length.saturating_sub(start as u64);
    if found == expected as u64 {
        data.truncate(expected);
        let rest = expected - data.len();
        data.try_reserve_exact(rest).map_err(|error| io::Error::other(error.to_string()))?;
        source.take(rest as u64).read_to_end(&mut data)?;
    }
    if found != expected as u64 || data.len() != expected {
        let message = format!(
            "expected {expected} bytes of data for {}{}, but found {found}",
            header.element,
            Shape(&header.shape),
        );
        return error(start, message);
    }
    if header.element == ElementType::Bool
        && let Some(position) = data.iter().position(|byte| 1 < *byte)
    {
        let message = format!("expected 0 or 1 for a bool, but found {}", data[position]);
        return error(start + position, message);
    }
    if header.fortran_order {
        transpose(&data, &mut tensor);
    } else {
        tensor.bytes_mut().copy_from_slice(&data);
    }
    Ok(tensor)
}

/// Reads the header at the start of a file. Returns where the data starts, too.
fn parse_header(bytes: &[u8]) -> Result<(Header, usize), NpyErrorKind> {
    if !bytes.starts_with(MAGIC) {
        return error(0, "expected the magic number of a .npy file, '\\x93NUMPY'");
    }
    let rest = &bytes[MAGIC.len()..];
    let (start, length) = match rest {
        [1, 0, a, b, ..] => (10, u16::from_le_bytes([*a, *b]).into()),
        [2 | 3, 0, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d])),
        [major, minor, ..] if !matches!((major, minor), (1..=3, 0)) => {
            return error(
                6,
                format!("expected format version 1.0, 2.0 or 3.0, but found {major}.{minor}"),
            );
        }
        _ => return error(bytes.len(), "the file ends within its header"),
    };
    let length = length as usize;
    if MAX_HEADER - start < length {
        let message =
            format!("expected a header of at most {MAX_HEADER} bytes, but found {length}");
        return error(8, message);
    }
    let Some(header) = bytes[start..].get(..length) else {
        let found = bytes.len() - start;
        return error(8, format!("expected a header of {length} bytes, but only {found} follow"));
    };
    let header = HeaderParser { text: header, position: 0, base: start }.parse()?;
    Ok((header, start + length))
}

/// Copies column-major data into a tensor of as many elements.
fn transpose(data: &[u8], tensor: &mut Tensor) {
    let shape = tensor.shape().to_vec();
    let size = tensor.element().size();
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for extent in &shape {
        strides.push(stride);
        stride *= extent;
    }
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    for to in tensor.bytes_mut().chunks_exact_mut(size) {
        to.copy_from_slice(&data[from..from + size]);
        for dim in (0..shape.len()).rev() {
            index[dim] += 1;
            from += strides[dim];
            if index[dim] < shape[dim] {
                break;
            }
            from -= strides[dim] * shape[dim];
            index[dim] = 0;
        }
    }
}

struct Header {
    element: ElementType,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Reads the header: a Python dictionary of three literals, in any order.
struct HeaderParser<'a> {
    text: &'a [u8],
    position: usize,
    /// The offset of the text in the file.
    base: usize,
}

impl HeaderParser<'_> {
    fn parse(mut self) -> Result<Header, NpyErrorKind> {
        let (mut element, mut fortran_order, mut shape) = (None, None, None::<Vec<usize>>);
        self.expect(b'{')?;
        while !self.accept(b'}') {
            let at = self.position;
            let key = self.string()?;
            self.expect(b':')?;
            let known = match key.as_str() {
                "descr" => element.replace(self.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(self.boolean()?).is_some(),
                "shape" => shape.replace(self.tuple()?).is_some(),
                _ => {
                    return self.error_at(
                        at,
                        format!("expected the key 'descr', 'fortran_order' or 'shape', but found '{key}'"),
                    );
                }
            };
            if known {
                return self.error_at(at, format!("the key '{key}' occurs twice"));
            }
            if !self.accept(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        self.skip_space();
        if self.position < self.text.len() {
            return self.error("expected the end of the header".into());
        }
        match (element, fortran_order, shape) {
            (Some((_, true)), Some(true), Some(_)) => {
                self.error("complex numbers in column-major order are not supported".into())
            }
            (Some((element, is_complex)), Some(fortran_order), Some(mut shape)) => {
                shape.extend(is_complex.then_some(2));
                Ok(Header { element, fortran_order, shape })
            }
            _ => self.error("expected the keys 'descr', 'fortran_order' and 'shape'".into()),
        }
    }

    fn error<T>(&self, message: String) -> Result<T, NpyErrorKind> {
        self.error_at(self.position, message)
    }

    fn error_at<T>(&self, position: usize, message: String) -> Result<T, NpyErrorKind> {
        error(self.base + position, message)
    }

    fn skip_space(&mut self) {
        while self.text.get(self.position).is_some_and(u8::is_ascii_whitespace) {
            self.position += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.position) == Some(&byte);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), NpyErrorKind> {
        if self.accept(byte) {
            return Ok(());
        }
        self.error(format!("expected '{}' in the header", byte as char))
    }

    fn word(&mut self, part: fn(&u8) -> bool) -> &str {
        self.skip_space();
        let start = self.position;
        while self.text.get(self.position).is_some_and(part) {
            self.position += 1;
        }
        str::from_utf8(&self.text[start..self.position]).unwrap_or_default()
    }

    fn string(&mut self) -> Result<String, NpyErrorKind> {
        self.skip_space();
        let start = self.position + 1;
        let quote = match self.text.get(self.position) {
            Some(quote @ (b'\'' | b'"')) => *quote,
            _ => return self.error("expected a string in the header".into()),
        };
        let Some(length) = self.text[start..].iter().position(|byte| *byte == quote) else {
            return self.error("the string is not closed".into());
        };
        self.position = start + length + 1;
        Ok(String::from_utf8_lossy(&self.text[start..start + length]).into_owned())
    }

    /// The element type, of the parts if the elements are complex, and whether they are.
    fn descr(&mut self) -> Result<(ElementType, bool), NpyErrorKind> {
        self.skip_space();
        let at = self.position;
        if self.text.get(at) == Some(&b'[') {
            return self.error("records are not supported; expected one element type".into());
        }
        let descr = self.string()?;
        if let "<c8" | "<c16" = descr.as_str() {
            let part = if descr == "<c8" { ElementType::F32 } else { ElementType::F64 };
            return Ok((part, true));
        }
        let matches = |element: &ElementType| {
            let known = element.npy_descr();
            // One byte has no order, and NumPy gives none to the raw bytes of a `bf16`.
            let has_no_order = element.size() == 1 || descr == "|V2";
            descr == known || has_no_order && descr.get(1..) == known.get(1..)
        };
        if let Some(element) = ElementType::ALL.into_iter().find(matches) {
            return Ok((element, false));
        }
        let known: Vec<_> = ElementType::ALL.iter().map(|element| element.npy_descr()).collect();
        self.error_at(
            at,
            format!("expected one of the element types {}, but found '{descr}'", known.join(" ")),
        )
    }

    fn boolean(&mut self) -> Result<bool, NpyErrorKind> {
        self.skip_space();
        let at = self.position;
        match self.word(u8::is_ascii_alphabetic) {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => self.error_at(at, "expected True or False".into()),
        }
    }

    fn tuple(&mut self) -> Result<Vec<usize>, NpyErrorKind> {
        let mut extents = Vec::new();
        self.expect(b'(')?;
        while !self.accept(b')') {
            let at = self.position;
            let Ok(extent) = self.word(u8::is_ascii_digit).parse() else {
                return self.error_at(at, "expected an extent from 0 to 2^64 - 1".into());
            };
            if extents.len() == MAX_RANK {
                return self.error_at(at, format!("expected at most {MAX_RANK} dimensions"));
            }
            extents.push(extent);
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::random;
    use proptest::prelude::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[1, 0]);
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn message(bytes: &[u8]) -> String {
        from_bytes(bytes).unwrap_err().to_string()
    }

    #[test]
    fn raw_pairs_of_bytes_are_bf16() {
        for descr in ["<V2", "|V2"] {
            let header =
                format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}\n");
            let tensor = from_bytes(&file(&header, &[0x80, 0x3f])).unwrap();
            assert_eq!(tensor.element(), ElementType::Bf16);
        }
    }

    #[test]
    fn fortran_order_is_transposed() {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let tensor = from_bytes(&file(header, &[1, 4, 2, 5, 3, 6])).unwrap();
        assert_eq!(tensor.shape(), [2, 3]);
        assert_eq!(tensor.to_values::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn complex_numbers_are_pairs() {
        let folder = std::env::temp_dir().join(format!("tc-npy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for dims in [vec![3, 2], vec![2]] {
            let values: Vec<_> = (0..dims.iter().product()).map(|i| i as f64).collect();
            let tensor = Tensor::from_values(&dims, &values).unwrap();
            let path = folder.join("complex.npy");
            save_complex(&path, &tensor).unwrap();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(text.contains("'<c16'"), "{text}");
            let read = load(&path).unwrap();
            assert_eq!((read.shape(), read.bytes()), (tensor.shape(), tensor.bytes()));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn header_may_be_written_otherwise() {
        let header = "{ \"shape\":(2,),'fortran_order':False,\"descr\" : '<u1'}";
        assert_eq!(from_bytes(&file(header, &[7, 8])).unwrap().get(1).unwrap().to_f64(), 8.0);
        let mut version2 = MAGIC.to_vec();
        version2.extend_from_slice(&[2, 0, header.len() as u8, 0, 0, 0]);
        version2.extend_from_slice(header.as_bytes());
        version2.extend_from_slice(&[7, 8]);
        assert_eq!(from_bytes(&version2).unwrap().shape(), [2]);
    }

    #[test]
    fn scalars_have_no_dimensions() {
        let tensor = Tensor::from_values(&[], &[2.5f64]).unwrap();
        assert_eq!(from_bytes(&to_bytes(&tensor)).unwrap(), tensor);
        let header = str::from_utf8(&to_bytes(&tensor)[10..128]).unwrap().trim_end().to_string();
        assert_eq!(header, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }");
    }

    #[test]
    fn errors_say_what_and_where() {
        let header = |text: &str| message(&file(text, &[0; 4]));
        for (found, expected) in [
            (message(b"PK"), "byte 0: expected the magic number of a .npy file, '\\x93NUMPY'"),
            (message(b"\x93NUMPY\x01"), "byte 7: the file ends within its header"),
            (
                message(b"\x93NUMPY\x04\x00\x00\x00\x00\x00"),
                "byte 6: expected format version 1.0, 2.0 or 3.0, but found 4.0",
            ),
            (
                message(b"\x93NUMPY\x01\x00\xff\xff{}"),
                "byte 8: expected a header of 65535 bytes, but only 2 follow",
            ),
            (header("{}"), "byte 12: expected the keys 'descr', 'fortran_order' and 'shape'"),
            (header("{'descr': 'x"), "byte 20: the string is not closed"),
            (
                header("{'x': 1}"),
                "byte 11: expected the key 'descr', 'fortran_order' or 'shape', but found 'x'",
            ),
            (header("{'shape': (), 'shape': ()}"), "byte 24: the key 'shape' occurs twice"),
            (header("{'shape': (-1,)}"), "byte 21: expected an extent from 0 to 2^64 - 1"),
            (header("{'fortran_order': no}"), "byte 28: expected True or False"),
            (
                header("{'descr': [('a', '<f4')]}"),
                "byte 20: records are not supported; expected one element type",
            ),
            (
                header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
                "byte 65: expected 8 bytes of data for float32[2], but found 4",
            ),
            (
                header(
                    "{'descr': '|b1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                ),
                "a tensor of bool with shape [4294967296, 4294967296] is too large",
            ),
        ] {
            assert_eq!(found, format!("<npy>: error: {expected}"));
        }
        assert!(header("{'descr': '>f4'}").contains("but found '>f4'"));
        let bools = file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", &[1, 2]);
        assert!(message(&bools).ends_with("expected 0 or 1 for a bool, but found 2"));
        let missing = load("no/such/file.npy").unwrap_err().to_string();
        assert!(missing.starts_with("no/such/file.npy: error: "), "{missing}");
    }

    #[test]
    fn files_are_read_no_further_than_their_headers_say() {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n";
        let start = file(header, &[]);
        let endless = start.as_slice().chain(io::repeat(0));
        let error = parse(endless, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("expected 6 bytes of data"), "{error}");
        let endless = start.as_slice().chain(io::repeat(0));
        assert_eq!(parse(endless, start.len() as u64 + 6).unwrap().shape(), [2, 3]);
        let long = [MAGIC, &[2, 0, 0, 0, 0, 1]].concat();
        let long = long.as_slice().chain(io::repeat(b' '));
        let error = parse(long, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("expected a header of at most"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn names_of_programs_do_not_leave_the_folder() {
        let folder = std::env::temp_dir().join(format!("tc-npy-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(file_in(&folder, "A").unwrap(), folder.join("A.npy"));
        for name in ["", "..", "/tmp/x", "../x", "a/b", ".hidden", "a\0b"] {
            let error = file_in(&folder, name).unwrap_err().to_string();
            assert!(error.contains("no file name"), "{name}: {error}");
        }
        std::os::unix::fs::symlink("/tmp/elsewhere.npy", folder.join("L.npy")).unwrap();
        let error = file_in(&folder, "L").unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        assert!(load("/dev/zero").unwrap_err().to_string().contains("not a regular file"));
        fs::remove_dir_all(&folder).unwrap();
    }

    proptest! {
        #[test]
        fn round_trip(
            element in prop::sample::select(ElementType::ALL.to_vec()),
            shape in prop::collection::vec(0usize..5, 0..5),
            seed in any::<u64>(),
        ) {
            let tensor = random(element, &shape, seed, None).unwrap();
            let bytes = to_bytes(&tensor);
            prop_assert_eq!(bytes.len() % HEADER_ALIGNMENT, tensor.bytes().len() % HEADER_ALIGNMENT);
            prop_assert_eq!(from_bytes(&bytes).unwrap(), tensor);
        }

        #[test]
        fn damaged_files_are_errors_or_tensors(
            flips in prop::collection::vec((0usize..160, any::<u8>()), 1..4),
            cut in 0usize..200,
        ) {
            let mut bytes = to_bytes(&random(ElementType::F32, &[4, 2], 1, None).unwrap());
            for (position, byte) in flips {
                if let Some(target) = bytes.get_mut(position) {
                    *target = byte;
                }
            }
            bytes.truncate(cut);
            let _ = from_bytes(&bytes);
        }
    }
}
