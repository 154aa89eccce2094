//! What the front ends report about a source file: kinds of mistakes and their codes.

use super::Span;

/// Longest name that similar ones are looked for, in bytes.
const MAX_SIMILAR_BYTES: usize = 32;

/// The severity of a diagnostic. The numbers are those of the C++ bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input has no meaning.
    Error = 0,
    /// The input has a meaning that is probably not the intended one.
    Warning = 1,
    /// A report of a pass on its work.
    Remark = 2,
}

impl Severity {
    /// The name in a printed diagnostic.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Remark => "remark",
        }
    }
}

/// The step that found an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The text is not a program.
    Parse,
    /// The text is one, and its names or types do not fit together.
    Sema,
}

impl Stage {
    /// `parse` or `sema`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Sema => "sema",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $name:literal $code:literal $stage:ident $severity:ident;)*) => {
        /// What kind of mistake a diagnostic reports.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// Every reason, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name of the reason in the conformance data.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Code by which the documentation lists the reason.
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The step that reports it.
            pub fn stage(self) -> Stage {
                match self { $(Self::$variant => Stage::$stage,)* }
            }

            /// Whether it is an error or a warning.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }
        }
    };
}

reasons! {
    /// Axon: the text does not follow the grammar.
    AxonSyntax "axon_syntax" "AX0001" Parse Error;
    /// Axon: a number, a nesting, a type or a file that is larger than what is read.
    AxonLimit "axon_limit" "AX0002" Parse Error;
    /// Axon: a name that nothing defines.
    AxonUndefined "axon_undefined" "AX0101" Sema Error;
    /// Axon: a name that stands for two kinds of things.
    AxonKind "axon_kind" "AX0102" Sema Error;
    /// Axon: a function called with a wrong number of arguments, or a tuple of another size.
    AxonArity "axon_arity" "AX0103" Sema Error;
    /// Axon: an option that a function does not have, or not with this value.
    AxonOption "axon_option" "AX0104" Sema Error;
    /// Axon: a tensor, a tuple or a function where another kind of value is expected.
    AxonType "axon_type" "AX0201" Sema Error;
    /// Axon: element types that differ.
    AxonElement "axon_element" "AX0202" Sema Error;
    /// Axon: shapes that cannot be equal.
    AxonShape "axon_shape" "AX0301" Sema Error;
    /// Axon: names of one signature that inference makes equal.
    AxonEqualNames "axon_equal_names" "AX0302" Sema Warning;
    /// Axon: a size that is needed to run a program and that nothing determines.
    AxonUnknownSize "axon_unknown_size" "AX0401" Sema Error;
    /// Axon: what is inferred but not executed.
    AxonExecution "axon_execution" "AX0402" Sema Error;
    /// HLO: the text does not follow the grammar.
    HloSyntax "hlo_syntax" "HLO0001" Parse Error;
    /// HLO: a number, a nesting or a file that is larger than what is read.
    HloLimit "hlo_limit" "HLO0002" Parse Error;
    /// HLO: an opcode that does not exist.
    HloOpcode "hlo_opcode" "HLO0003" Parse Error;
    /// HLO: an attribute that does not exist, is missing, or has a value of another kind.
    HloAttribute "hlo_attribute" "HLO0004" Parse Error;
    /// HLO: a wrong number of operands.
    HloOperands "hlo_operands" "HLO0005" Parse Error;
    /// HLO: a name that nothing defines.
    HloUndefined "hlo_undefined" "HLO0006" Parse Error;
    /// HLO: a name that is defined twice.
    HloRedefined "hlo_redefined" "HLO0007" Parse Error;
    /// HLO: a constant whose value does not fit its shape.
    HloLiteral "hlo_literal" "HLO0008" Parse Error;
    /// HLO: parameters, roots, entries or calls that make no program.
    HloStructure "hlo_structure" "HLO0009" Parse Error;
    /// HLO: a shape or a layout that cannot be, or is not the one written elsewhere.
    HloShape "hlo_shape" "HLO0010" Parse Error;
    /// HLO: an instruction whose shape, operands and attributes do not fit together.
    HloVerify "hlo_verify" "HLO0101" Sema Error;
    /// The text does not follow the grammar.
    Syntax "syntax" "TC0001" Parse Error;
    /// The text is larger or nested deeper than the front end reads.
    Limit "limit" "TC0002" Parse Error;
    /// A name that nothing declares.
    Undeclared "undeclared" "TC0011" Sema Error;
    /// A name declared twice in one scope.
    Redefined "redefined" "TC0012" Sema Error;
    /// A tensor, size, index or let with the name of a built-in function.
    BuiltinRedefined "builtin_redefined" "TC0013" Sema Error;
    /// A built-in function called with a wrong number of arguments.
    BuiltinArity "builtin_arity" "TC0014" Sema Error;
    /// A tensor used with a number of indices that is not its rank.
    RankMismatch "rank_mismatch" "TC0015" Sema Error;
    /// A tensor with dimensions used without indices.
    ScalarExpected "scalar_expected" "TC0016" Sema Error;
    /// Indices or a dimension selector on something that is not a tensor.
    NotATensor "not_a_tensor" "TC0017" Sema Error;
    /// An index of an access that is a float.
    IndexNotIntegral "index_not_integral" "TC0018" Sema Error;
    /// A condition or logical operand that is not bool.
    NotBool "not_bool" "TC0019" Sema Error;
    /// A bound of a range clause that reads a tensor.
    TensorInWhere "tensor_in_where" "TC0020" Sema Error;
    /// A bound of a range clause that is a float.
    WhereNotIntegral "where_not_integral" "TC0021" Sema Error;
    /// A reduction variable under plain `=`.
    MissingReduction "missing_reduction" "TC0022" Sema Error;
    /// An assignment to an input.
    InputImmutable "input_immutable" "TC0023" Sema Error;
    /// An assignment to a tensor that is neither input nor output, and not declared `local`.
    Temporary "temporary" "TC0024" Sema Error;
    /// A value assigned to a narrower tensor without a cast.
    Narrowing "narrowing" "TC0025" Sema Error;
    /// An output annotated with a rank that its statement does not have.
    AnnotationRank "annotation_rank" "TC0026" Sema Error;
    /// An input without a type.
    UntypedInput "untyped_input" "TC0027" Sema Error;
    /// A literal or an extent that does not fit its type.
    OutOfRange "out_of_range" "TC0028" Sema Error;
    /// `op=` on a local tensor that no statement defined before.
    UninitializedLocal "uninitialized_local" "TC0029" Sema Error;
    /// `op=` on an output that no statement defined before.
    UninitializedReduction "uninitialized_reduction" "TC0204" Sema Warning;
    /// `a < b < c`, which compares a bool with a number.
    ChainedComparison "chained_comparison" "TC0205" Sema Warning;
    /// TML: the text does not follow the grammar.
    TmlSyntax "tml_syntax" "TML0001" Parse Error;
    /// TML: the text is larger or nested deeper than the front end reads, or a type has more than it takes.
    TmlLimit "tml_limit" "TML0002" Parse Error;
    /// TML: a variable declared twice (failure 1, rule s-var).
    TmlRedeclaration "tml_redeclaration" "TML0101" Sema Error;
    /// TML: an assignment to an undeclared variable (failure 2, rule ok-stmt).
    TmlAssignUndeclared "tml_assign_undeclared" "TML0102" Sema Error;
    /// TML: an assignment of a value of another type (failure 3, rule ok-stmt).
    TmlAssignType "tml_assign_type_mismatch" "TML0103" Sema Error;
    /// TML: a use of an undeclared variable (failure 4, rule t-var).
    TmlUseUndeclared "tml_use_undeclared" "TML0104" Sema Error;
    /// TML: operands whose types do not fit together (failure 5, rules t-contr, t-elem, t-smul, t-sdiv).
    TmlExprType "tml_expr_type_mismatch" "TML0105" Sema Error;
    /// TML: an index that is no dimension, or one that is numbered twice (rules t-contr, t-trans).
    TmlIndex "tml_bad_index" "TML0106" Sema Error;
    /// TML: an extent of 0.
    TmlExtent "tml_nonpositive_extent" "TML0107" Sema Error;
    /// TML: a use of a variable that holds nothing yet.
    TmlUninitialized "tml_uninitialized" "TML0201" Sema Warning;
    /// TML: a variable that is taken in the end, and never assigned to.
    TmlUnassigned "tml_unassigned" "TML0202" Sema Warning;
}

/// One report about a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of mistake it is; code, severity and stage follow from it.
    pub reason: Reason,
    /// Where it is.
    pub span: Span,
    /// What was found and what was expected.
    pub message: String,
    /// Related places, and last what to try.
    pub notes: Vec<(Span, String)>,
    /// Whether it is an error although it is a warning by default.
    promoted: bool,
}

impl Diagnostic {
    /// A diagnostic without notes.
    pub fn new(reason: Reason, span: Span, message: impl Into<String>) -> Self {
        Self { reason, span, message: message.into(), notes: Vec::new(), promoted: false }
    }

    /// The same as an error.
    #[must_use]
    pub fn promoted(self) -> Self {
        Self { promoted: true, ..self }
    }

    /// The same with one more note.
    #[must_use]
    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((span, text.into()));
        self
    }

    /// The same with a note of the known name that `name` is most [`similar`] to, if there is one. Time is
    /// linear in the number of known names, so nothing is looked for if `others`, the number of
    /// diagnostics before it, is so large that this one is not shown.
    #[must_use]
    pub(crate) fn try_similar<'n>(
        self,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
        others: usize,
    ) -> Self {
        if MAX_DIAGNOSTICS <= others {
            return self;
        }
        match similar(name, known) {
            Some(known) => {
                let span = self.span;
                self.note(span, format!("try '{known}'"))
            }
            None => self,
        }
    }

    /// Error or warning.
    pub fn severity(&self) -> Severity {
        if self.promoted { Severity::Error } else { self.reason.severity() }
    }

    /// Whether it stops the compilation.
    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }

    /// The code in the documentation, such as `TC0011`.
    pub fn code(&self) -> &'static str {
        self.reason.code()
    }
}

/// The known name that `name` is most like: one that differs in case only, or in at most a third of the
/// letters, where exchanged neighbours count once. `None` if there is none, for long names too.
pub(crate) fn similar<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if MAX_SIMILAR_BYTES < name.len() {
        return None;
    }
    let most = name.len() / 3;
    let distance = |known: &'n str| {
        if known.eq_ignore_ascii_case(name) {
            return Some((0, known));
        }
        let is_near = known.len().abs_diff(name.len()) <= most;
        let distance = is_near.then(|| strsim::osa_distance(known, name));
        distance.filter(|distance| *distance <= most).map(|distance| (distance, known))
    };
    known.into_iter().filter(|known| *known != name).filter_map(distance).min().map(|it| it.1)
}

/// Most diagnostics that one step reports.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Sorts by place and keeps [`MAX_DIAGNOSTICS`]; what is cut is said in one last error.
pub(crate) fn sorted_and_capped(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|each| (each.span, each.severity(), each.reason));
    if MAX_DIAGNOSTICS < diagnostics.len() {
        // Errors must survive the cut, or a broken program would look like a valid one.
        let rest = diagnostics.split_off(MAX_DIAGNOSTICS);
        if let Some(error) = rest.iter().find(|each| each.is_error()) {
            diagnostics.push(Diagnostic::new(
                Reason::Limit,
                error.span,
                format!("too many errors, the other {} are not shown", rest.len()),
            ));
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_tried() {
        let tried = |name: &str, known: &[&str]| {
            let error = Diagnostic::new(Reason::Undeclared, Span::new(0, 1), "");
            error.try_similar(name, known.iter().copied(), 0).notes.pop().map(|(_, text)| text)
        };
        let found = |name: &str| Some(format!("try '{name}'"));
        assert_eq!(tried("inptu", &["output", "input"]), found("input"));
        assert_eq!(tried("rel", &["real", "relu"]), found("real"));
        assert_eq!(tried("INPUT", &["inputs", "input"]), found("input"));
        assert_eq!(tried("a", &["A", "b"]), found("A"));
        assert_eq!(tried("a", &["b"]), None);
        assert_eq!(tried("mean", &["map", "neg"]), None);
        let long = "n".repeat(100_000);
        assert_eq!(tried(&long, &[&long[1..]]), None);
    }

    #[test]
    fn names_and_codes_are_unique() {
        for (position, a) in Reason::ALL.iter().enumerate() {
            for b in &Reason::ALL[position + 1..] {
                assert!(a.code() < b.code());
                assert_ne!(a.name(), b.name());
            }
        }
    }
}
