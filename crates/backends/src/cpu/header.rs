//! The C header of an object: it declares for each function the one that takes pointers and sizes.
//!
//! A C or C++ program (C99 or C++11) needs nothing else of ours. Extents of outputs that are
//! expressions over the sizes are functions of their own, to allocate by.
//!
//! A comment says what to link with. Names that C cannot have, or has for other things, get
//! underscores. Parameters keep names that are macros, of whatever header: the macros are out of
//! force within this one.
//!
//! For a device, arguments are addresses in its memory. The caller passes a workspace, the constants
//! and a table of functions, which the header declares (`device.rs`).

mod device;

pub(crate) use device::{Device, Kernel};

use super::interface::{ENTRY_PREFIX, INTERFACE_PREFIX, WORKSPACE_BYTES};
use crate::{
    backend::{Argument, Extent, Formulas, Role, Signature},
    runtime::ElementType,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Write,
    sync::LazyLock,
};
use tc_ir::{Context, Expr, Node, Var, polynomial};
use tc_passes::transform::{check_allocations::OUT_OF_MEMORY, check_device_reads::DEVICE_FAILED};

/// Words that cannot name a parameter or function in C or C++, that the header itself uses, or that
/// compilers define as macros.
#[rustfmt::skip]
const RESERVED: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return",
    "co_yield", "compl", "concept", "const", "const_cast", "consteval", "constexpr", "constinit",
    "continue", "decltype", "default", "defined", "delete", "do", "double", "dynamic_cast", "else", "enum",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "int16_t", "int32_t", "int64_t", "int8_t", "linux", "long", "main", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
    "private", "protected", "public", "register", "reinterpret_cast", "requires", "restrict",
    "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct",
    "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
    "typename", "typeof", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "union", "unix",
    "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
];

/// Macros of the C library that programs meet often: a function of such a name could not be called.
#[rustfmt::skip]
const MACROS: &[&str] = &[
    "BUFSIZ", "CLOCKS_PER_SEC", "EDOM", "EOF", "ERANGE", "EXIT_FAILURE", "EXIT_SUCCESS", "HUGE_VAL", "I",
    "INFINITY", "NAN", "NULL", "RAND_MAX", "assert", "complex", "errno", "imaginary", "math_errhandling",
    "noreturn", "offsetof", "setjmp", "static_assert", "stderr", "stdin", "stdout", "va_arg", "va_copy",
    "va_end", "va_start",
];

/// Names that the C library and the linker define. A function of such a name would take the place of
/// theirs in the whole program.
static LIBRARY: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("library_names.txt").lines();
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace).collect()
});

/// How names of the OpenMP runtime begin.
const OPENMP: &[&str] = &["GOMP_", "kmp_", "kmpc_", "omp_", "ompt_"];

/// How the names of macros of `stdint.h` begin and end.
const MACRO_STARTS: &[&str] =
    &["INT", "UINT", "PTRDIFF_", "SIG_ATOMIC_", "SIZE_", "WCHAR_", "WINT_"];
const MACRO_ENDS: &[&str] = &["_C", "_MAX", "_MIN", "_WIDTH"];

/// How names begin that are the header's own; none of them ends in an underscore.
const OWN: &[&str] = &["tc_gpu_", "tc_index_", "tc_step_"];

/// Rounding division and remainder, and the smaller and larger of two.
const HELPERS: &str = "\
#ifndef TC_INDEX_FUNCTIONS
#define TC_INDEX_FUNCTIONS
static inline int64_t tc_index_floordiv(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t tc_index_ceildiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}
static inline int64_t tc_index_mod(int64_t a, int64_t b) {
  return a % b + (a % b < 0 ? (b < 0 ? -b : b) : 0);
}
static inline int64_t tc_index_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tc_index_max(int64_t a, int64_t b) { return a < b ? b : a; }
#endif
";

/// The code that a header declares the functions of.
pub(crate) enum Code<'a> {
    /// Functions on memory of the host, which so many threads run.
    Host {
        /// The number of threads.
        threads: usize,
    },
    /// Functions that launch kernels.
    Device(&'a Device),
}

/// The names of the functions in C: their symbols in the object. They are the same for all targets.
pub fn function_names(signatures: &[Signature]) -> Vec<String> {
    take_function_names(signatures, &mut BTreeSet::new())
}

fn take_function_names(signatures: &[Signature], taken: &mut BTreeSet<String>) -> Vec<String> {
    let name = |signature: &Signature| {
        let mut function = identifier(&function_name(&signature.name), taken);
        let others =
            |function: &str| ["_error", WORKSPACE_BYTES].map(|it| format!("{function}{it}"));
        while others(&function).iter().any(|other| taken.contains(other)) {
            function = identifier(&function, taken);
        }
        taken.extend(others(&function));
        function
    };
    signatures.iter().map(name).collect()
}

/// Writes the header with the name `stem` and the ending `.h`.
pub(crate) fn write(signatures: &[Signature], stem: &str, code: &Code) -> String {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let functions = take_function_names(signatures, &mut taken);
    let guard = identifier(&format!("{stem}.h").to_uppercase(), &mut taken);
    let more: &[&str] = if let Code::Device(_) = code { &device::PARAMETERS } else { &[] };
    let names: Vec<_> = signatures
        .iter()
        .zip(functions)
        .map(|(signature, function)| Names::new(signature, function, &guard, more, &mut taken))
        .collect();
    let parameters: BTreeSet<_> = names.iter().flat_map(Names::parameters).collect();
    let needs_openmp = matches!(code, Code::Host { threads: 2.. });
    let libraries = if needs_openmp { "/* Link with -lomp. */\n" } else { "" };
    let mut text = format!(
        "{libraries}#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
    );
    if let Code::Device(device) = code {
        device.write_program(&mut text, stem, &mut taken);
    }
    if !parameters.is_empty() {
        text.push_str("/* Parameters may have the names of macros. */\n");
        for name in &parameters {
            let _ = write!(text, "#pragma push_macro(\"{name}\")\n#undef {name}\n");
        }
        text.push('\n');
    }
    let formulas = signatures.iter().flat_map(|it| &it.arguments).any(|it| it.extents.is_some());
    if formulas {
        text.push_str(HELPERS);
        text.push('\n');
    }
    for (signature, names) in signatures.iter().zip(&names) {
        write_extents(&mut text, signature, names);
        let failure = match code {
            Code::Host { .. } => {
                write_declaration(&mut text, signature, names);
                (OUT_OF_MEMORY, "not enough memory")
            }
            Code::Device(_) => {
                device::write_declarations(&mut text, signature, names);
                (DEVICE_FAILED, "the device failed")
            }
        };
        write_errors(&mut text, signature, names, failure);
    }
    for name in &parameters {
        let _ = writeln!(text, "#pragma pop_macro(\"{name}\")");
    }
    if !parameters.is_empty() {
        text.push('\n');
    }
    let _ = write!(text, "#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */\n");
    text
}

/// An identifier of C like `name` that is not taken, which it is from now on.
fn identifier(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut text = letters(name);
    if text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if is_of_implementation(&text) {
        text.insert(0, 'x');
    }
    while is_reserved(&text) || !taken.insert(text.clone()) {
        text.push('_');
    }
    text
}

/// A name with underscores for all that C does not have in names.
fn letters(name: &str) -> String {
    name.chars().map(|it| if it.is_ascii_alphanumeric() || it == '_' { it } else { '_' }).collect()
}

/// A name for a function that neither the C library nor the OpenMP runtime defines. C reserves function names
/// that begin with an underscore.
fn function_name(name: &str) -> String {
    let is_taken = LIBRARY.contains(name)
        || MACROS.contains(&name)
        || OPENMP.iter().any(|prefix| name.starts_with(prefix));
    match name.starts_with('_') {
        true => format!("x{name}"),
        false if is_taken => format!("{name}_"),
        false => name.to_string(),
    }
}

/// Whether a name begins like those of C implementations, or of the compiled code.
fn is_of_implementation(name: &str) -> bool {
    let second = name.strip_prefix('_').and_then(|rest| rest.chars().next());
    second.is_some_and(|it| it == '_' || it.is_ascii_uppercase())
        || [INTERFACE_PREFIX, ENTRY_PREFIX].iter().any(|prefix| name.starts_with(prefix))
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || OWN.iter().any(|prefix| name.starts_with(prefix)) && !name.ends_with('_')
        || MACRO_STARTS.iter().any(|it| name.starts_with(it))
            && MACRO_ENDS.iter().any(|it| name.ends_with(it))
}

/// The names in C of what a function consists of.
struct Names {
    function: String,
    arguments: Vec<String>,
    sizes: BTreeMap<String, String>,
    /// The functions for extents that are computed, by argument and dimension.
    extent_functions: BTreeMap<(usize, usize), String>,
    /// Of extents that only the caller knows: by argument and dimension.
    unknown: BTreeMap<(usize, usize), String>,
    /// Further parameters, which come last.
    more: Vec<String>,
}

impl Names {
    fn new(
        signature: &Signature,
        function: String,
        guard: &str,
        more: &[&str],
        functions: &mut BTreeSet<String>,
    ) -> Self {
        let mut taken = BTreeSet::from([guard.to_string()]);
        let mut arguments = Vec::new();
        let (mut unknown, mut extent_functions) = (BTreeMap::new(), BTreeMap::new());
        for argument in &signature.arguments {
            arguments.push(identifier(&argument.name, &mut taken));
        }
        let sizes = signature
            .sizes()
            .into_iter()
            .map(|size| (size.to_string(), identifier(size, &mut taken)))
            .collect();
        let mut extents = Vec::new();
        for (number, argument) in signature.arguments.iter().enumerate() {
            for (dim, extent) in argument.shape.iter().enumerate() {
                let name = format!("{}_extent_{dim}", arguments[number]);
                match extent {
                    Extent::Unknown => {
                        unknown.insert((number, dim), identifier(&name, &mut taken));
                    }
                    Extent::Computed(_) => extents.push(((number, dim), name)),
                    Extent::Constant(_) | Extent::Size(_) => {}
                }
            }
        }
        let more = more.iter().map(|name| identifier(name, &mut taken)).collect();
        for (extent, name) in extents {
            let mut called = identifier(&format!("{function}_{name}"), functions);
            // A parameter of that name would hide it.
            while taken.contains(&called) {
                called = identifier(&called, functions);
            }
            extent_functions.insert(extent, called);
        }
        Self { function, arguments, sizes, extent_functions, unknown, more }
    }

    /// The names of all parameters.
    fn parameters(&self) -> impl Iterator<Item = &String> {
        let sizes = self.sizes.values().chain(self.unknown.values());
        self.arguments.iter().chain(sizes).chain(&self.more)
    }

    /// The parameters for sizes, in order of appearance.
    fn size_parameters(&self, signature: &Signature) -> Vec<String> {
        signature.sizes().iter().map(|size| format!("int64_t {}", self.sizes[*size])).collect()
    }

    /// The parameters for extents that only the caller knows.
    fn unknown_parameters(&self) -> impl Iterator<Item = String> {
        self.unknown.values().map(|name| format!("int64_t {name}"))
    }

    fn size_values(&self, signature: &Signature) -> String {
        let values: Vec<_> =
            signature.sizes().iter().map(|size| self.sizes[*size].clone()).collect();
        values.join(", ")
    }

    /// An extent as an expression over the parameters.
    fn extent(&self, signature: &Signature, argument: usize, dim: usize) -> String {
        match &signature.arguments[argument].shape[dim] {
            Extent::Constant(extent) => extent.to_string(),
            Extent::Size(size) => self.sizes[size].clone(),
            Extent::Computed(_) => {
                let function = &self.extent_functions[&(argument, dim)];
                format!("{function}({})", self.size_values(signature))
            }
            Extent::Unknown => self.unknown[&(argument, dim)].clone(),
        }
    }
}

/// A list of parameters.
fn list(parameters: &[String]) -> String {
    if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") }
}

fn c_type(element: ElementType) -> &'static str {
    match element {
        ElementType::Bool => "bool",
        ElementType::U8 => "uint8_t",
        ElementType::U16 | ElementType::Bf16 => "uint16_t",
        ElementType::U32 => "uint32_t",
        ElementType::U64 => "uint64_t",
        ElementType::I8 => "int8_t",
        ElementType::I16 => "int16_t",
        ElementType::I32 => "int32_t",
        ElementType::I64 => "int64_t",
        ElementType::F16 => "_Float16",
        ElementType::F32 => "float",
        ElementType::F64 => "double",
    }
}

/// Functions for the extents that are computed from sizes.
fn write_extents(text: &mut String, signature: &Signature, names: &Names) {
    let ir = Context::new();
    for (number, argument) in signature.arguments.iter().enumerate() {
        let Some(formulas) = &argument.extents else { continue };
        let (map, variables) = formulas.map(&ir);
        for (dim, extent) in argument.shape.iter().enumerate() {
            let (Extent::Computed(result), Some(expr)) = (extent, map.results.get(dim)) else {
                continue;
            };
            debug_assert_eq!(*result, dim);
            let _ = write!(
                text,
                "/* Extent of dimension {dim} of {}: {}. */\nstatic inline int64_t {}({}) {{\n",
                names.arguments[number],
                formula(&ir, *expr, &variables),
                names.extent_functions[&(number, dim)],
                list(&names.size_parameters(signature)),
            );
            for size in names.sizes.values() {
                let _ = writeln!(text, "  (void){size};");
            }
            let result = write_expr(text, &ir, *expr, &|variable| {
                let name = variables.get(variable as usize)?;
                names.sizes.get(name).cloned()
            });
            let _ = write!(text, "  return {result};\n}}\n\n");
        }
    }
}

/// Writes the steps of an expression, each shared step once, and returns its last one.
fn write_expr(
    text: &mut String,
    ir: &Context,
    expr: Expr,
    name_of: &dyn Fn(u32) -> Option<String>,
) -> String {
    let mut number = 0;
    ir.fold_value(expr, |_, node, operands| {
        let pair = operands.map(|(lhs, rhs): (&String, &String)| (lhs.as_str(), rhs.as_str()));
        let (lhs, rhs) = pair.unwrap_or_default();
        let value = match node {
            Node::Const(value) => {
                return format!("INT64_C({value})");
            }
            Node::Var(Var::Runtime(variable)) => {
                return name_of(variable).unwrap_or_else(|| "0".to_string());
            }
            Node::Var(_) => return "0".to_string(),
            Node::Add(..) => format!("{lhs} + {rhs}"),
            Node::Mul(..) => format!("{lhs} * {rhs}"),
            Node::FloorDiv(..) => format!("tc_index_floordiv({lhs}, {rhs})"),
            Node::CeilDiv(..) => format!("tc_index_ceildiv({lhs}, {rhs})"),
            Node::Mod(..) => format!("tc_index_mod({lhs}, {rhs})"),
            Node::Min(..) => format!("tc_index_min({lhs}, {rhs})"),
            Node::Max(..) => format!("tc_index_max({lhs}, {rhs})"),
        };
        let name = format!("tc_step_{number}");
        number += 1;
        let _ = writeln!(text, "  const int64_t {name} = {value};");
        name
    })
}

/// What an argument is, for the comment above its function.
fn describe(signature: &Signature, names: &Names, number: usize) -> String {
    let argument: &Argument = &signature.arguments[number];
    let extents: Vec<_> = (0..argument.shape.len())
        .map(|dim| format!("[{}]", names.extent(signature, number, dim)))
        .collect();
    let role = match argument.role {
        Role::Input => "read",
        Role::Output => "written",
        Role::InOut => "read and written",
    };
    let is_bf16 = argument.element == ElementType::Bf16;
    let encoding = argument.bits_of.as_deref().or(is_bf16.then_some("bf16"));
    let encoding = encoding.map(|it| format!(", the bits of {it}"));
    format!(
        "{}: {} {}{}, {role}{}",
        names.arguments[number],
        c_type(argument.element),
        extents.concat(),
        encoding.unwrap_or_default(),
        argument.origins.as_ref().map(describe_origins).unwrap_or_default()
    )
}

/// The index of the element stored first, if that is not zero in every dimension.
fn describe_origins(origins: &Formulas) -> String {
    let ir = Context::new();
    let (map, names) = origins.map(&ir);
    if map.results.iter().all(|origin| ir.as_constant(*origin) == Some(0)) {
        return String::new();
    }
    let origins: Vec<_> = map.results.iter().map(|it| formula(&ir, *it, &names)).collect();
    format!("; the element stored first has index ({})", origins.join(", "))
}

/// An expression over size variables of these names.
fn formula(ir: &Context, expr: Expr, names: &[String]) -> String {
    polynomial::text(ir, expr, &|var| match var {
        Var::Runtime(number) => names[number as usize].clone(),
        other => tc_ir::text::default_name(other),
    })
}

fn write_declaration(text: &mut String, signature: &Signature, names: &Names) {
    let interface = format!("{INTERFACE_PREFIX}{}", signature.name);
    let symbol = letters(&interface);
    let count = signature.arguments.len();
    let pointers = if count == 0 { "void".to_string() } else { vec!["void *"; count].join(", ") };
    let label = if symbol == interface {
        String::new()
    } else {
        format!(" __asm__({})", quoted(&interface))
    };
    let _ = write!(text, "int32_t {symbol}({pointers}){label};\n\n/*\n");
    for number in 0..count {
        let _ = writeln!(text, " * {}", describe(signature, names, number));
    }
    let _ = write!(
        text,
        " *\n * All arrays are row-major and must not overlap. Returns 0, the number of the check\n \
         * that failed, or {OUT_OF_MEMORY} if there is not enough memory: see {}_error.\n */\n",
        names.function
    );
    let mut parameters = Vec::new();
    for (argument, name) in signature.arguments.iter().zip(&names.arguments) {
        let constant = if argument.role == Role::Input { "const " } else { "" };
        parameters.push(format!("{constant}{} *{name}", c_type(argument.element)));
    }
    parameters.extend(names.size_parameters(signature));
    parameters.extend(names.unknown_parameters());
    let _ = write!(text, "int {}({});\n\n", names.function, list(&parameters));
}

/// Writes the function that gives the message of each error. The last parameter is the error besides failed checks:
/// its code and its message.
fn write_errors(
    text: &mut String,
    signature: &Signature,
    names: &Names,
    (code, message): (i32, &str),
) {
    let _ = write!(
        text,
        "/* What the code returned by {0} means. */\n\
         static inline const char *{0}_error(int code) {{\n  switch (code) {{\n  \
         case 0: return \"success\";\n",
        names.function
    );
    for (number, message) in signature.checks.iter().enumerate() {
        let _ = writeln!(text, "  case {}: return {};", number + 1, quoted(message));
    }
    let _ = write!(
        text,
        "  case {code}: return \"{message}\";\n  \
         default: return \"unknown error\";\n  }}\n}}\n\n"
    );
}

/// A string literal. Bytes other than printable ASCII are escaped in octal, which, unlike
/// hexadecimal, ends after three digits.
fn quoted(message: &str) -> String {
    let mut text = String::from("\"");
    for byte in message.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                text.push('\\');
                text.push(byte.into());
            }
            b' '..=b'~' => text.push(byte.into()),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_made_valid_and_unique() {
        let mut taken = BTreeSet::new();
        let mut make = |name: &str| identifier(name, &mut taken);
        assert_eq!(make("A"), "A");
        assert_eq!(make("A"), "A_");
        assert_eq!(make("float"), "float_");
        assert_eq!(make("a.b"), "a_b");
        assert_eq!(make("3x"), "_3x");
        assert_eq!(make("tc_index_min"), "tc_index_min_");
        assert_eq!(make("INT64_MAX"), "INT64_MAX_");
        assert_eq!(make("INTO"), "INTO");
        assert_eq!(make(""), "_");
        assert_eq!(make("_Alignas"), "x_Alignas");
        assert_eq!(make("__FILE__"), "x__FILE__");
        assert_eq!(make("_mlir_ciface_f"), "x_mlir_ciface_f");
        assert_eq!(make("_a"), "_a");
    }

    #[test]
    fn functions_and_their_errors_have_names_of_their_own() {
        let mut taken = BTreeSet::new();
        let mut make = |name: &str| {
            let arguments = Vec::new();
            let signature = Signature { name: name.to_string(), arguments, checks: Vec::new() };
            take_function_names(&[signature], &mut taken).swap_remove(0)
        };
        assert_eq!(make("f_error"), "f_error");
        assert_eq!(make("f"), "f_");
        assert_eq!(make("g"), "g");
        assert_eq!(make("g_error"), "g_error_");
        assert_eq!(make("expf"), "expf_");
        assert_eq!(make("malloc"), "malloc_");
        assert_eq!(make("errno"), "errno_");
        assert_eq!(make("softmax"), "softmax");
    }

    #[test]
    fn literals_are_escaped() {
        assert_eq!(quoted("a \"b\"\n\u{e9}?"), r#""a \"b\"\012\303\251\?""#);
    }
}
