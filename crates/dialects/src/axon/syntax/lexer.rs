//! The tokens of Axon.
//!
//! Identifiers are those of figure 1 of the paper. `#` starts a comment.

use crate::{
    axon::syntax::builtins,
    text::{
        Reason,
        tokens::{self, Token, decimal, is_word_byte, run, run_on},
    },
};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A name.
    Ident,
    /// A number without fraction, exponent or `f`.
    Integer,
    /// A number with one of them.
    Float,
    /// `fn`
    Fn,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `=`
    Assign,
    /// `@`
    At,
    /// `->`
    Arrow,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// A character that starts no token.
    Unknown,
    /// Digits that run into letters or a second point.
    BadNumber,
    /// A name or number that is too long.
    TooLong,
    /// More tokens than a program may have; the last token then.
    TooMany,
    /// The end of the text; the last token otherwise.
    End,
}

impl tokens::TokenKind for TokenKind {
    const UNKNOWN: Self = Self::Unknown;
    const BAD_NUMBER: Option<Self> = Some(Self::BadNumber);
    const TOO_LONG: Self = Self::TooLong;
    const TOO_MANY: Self = Self::TooMany;
    const END: Self = Self::End;
    const MAX_TOKENS: usize = 1 << 21;
    const COMMENT: &'static str = "#";
    const PUNCTUATION: &'static [(&'static str, Self)] = &[
        ("->", Self::Arrow),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessEqual),
        (">=", Self::GreaterEqual),
        ("<", Self::Less),
        (">", Self::Greater),
        ("=", Self::Assign),
        ("@", Self::At),
        ("+", Self::Plus),
        ("-", Self::Minus),
        ("*", Self::Star),
        ("/", Self::Slash),
        ("(", Self::LeftParen),
        (")", Self::RightParen),
        ("{", Self::LeftBrace),
        ("}", Self::RightBrace),
        ("[", Self::LeftBracket),
        ("]", Self::RightBracket),
        (",", Self::Comma),
        (";", Self::Semicolon),
        (":", Self::Colon),
    ];
    const SYNTAX: Reason = Reason::AxonSyntax;
    const LIMIT: Reason = Reason::AxonLimit;

    fn scan(text: &str, at: usize, _last: Option<Token<Self>>) -> Option<(Self, usize)> {
        let bytes = text.as_bytes();
        match bytes[at] {
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                let end = run(bytes, at, is_word_byte);
                Some((if &text[at..end] == "fn" { Self::Fn } else { Self::Ident }, end))
            }
            b'0'..=b'9' => Some(number(bytes, at)),
            _ => None,
        }
    }

    fn shown(character: char) -> String {
        character.escape_debug().to_string()
    }

    fn hint(spelling: &str, before: &str, after: &str) -> Option<&'static str> {
        let before = before.trim_end();
        // What was taken for a name, since Axon has no such keyword.
        let word =
            &before[before.bytes().rposition(|byte| !is_word_byte(byte)).map_or(0, |at| at + 1)..];
        let follows_value = !word.is_empty() || before.ends_with([')', ']']);
        let is_call = |word: &str| builtins::is_builtin(word) || builtins::is_in_prelude(word);
        let is_type = before[..before.len() - word.len()].trim_end().ends_with(':');
        let follows_shape = before.ends_with(']')
            && before.rfind('[').is_some_and(|at| {
                let elem = before[..at].trim_end();
                let rest = elem.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                rest.len() < elem.len() && rest.trim_end().ends_with(':')
            });
        match (word, spelling) {
            ("let" | "var" | "val" | "const" | "mut", _) => {
                Some("try 'name = value;' without a keyword")
            }
            ("return", _) => Some("try the value alone: it ends the function"),
            ("def" | "fn", _) => Some("try 'name = fn(..) { .. };'"),
            ("if", _) => Some("try 'select(condition, value, otherwise)'"),
            ("lambda" | "function", _) => Some("try 'fn(x) { value }'"),
            ("import" | "from", _) => Some("try nothing: built-in functions are known everywhere"),
            ("for" | "while", _) => Some("try 'map', 'reduce' or 'loop' over dimension 0"),
            (_, "'") => Some("names have letters, digits and '_'; try '_' for the quote"),
            (_, "->") => Some("try ':' before the type of a result"),
            (_, "=") if before.ends_with(')') => {
                Some("try '{ .. }' around the body: 'fn(x) { value }'")
            }
            (_, "=") if before.ends_with(['+', '-', '*', '/']) => {
                Some("try the whole definition: 'x = x + 1;'")
            }
            (_, ":") if after.starts_with('=') => Some("try 'name = value;'"),
            (_, ":") if follows_value => {
                Some("try the annotation at a parameter or after the parameters, as a result's")
            }
            (_, "{") if before.ends_with(')') => match word_before_parentheses(before) {
                "if" | "elif" => Some("try 'select(condition, value, otherwise)'"),
                "for" | "while" => Some("try 'map', 'reduce' or 'loop' over dimension 0"),
                "" => None,
                _ => Some("try 'name = fn(..) { .. };'"),
            },
            (_, "{") if before.ends_with(':') => Some("try nothing instead of ':' before a body"),
            (_, ".") if after.starts_with(|c: char| c.is_ascii_digit()) => {
                Some("try a digit before the point: '0.5'")
            }
            (_, ".")
                if after
                    .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                    .starts_with('(') =>
            {
                Some("try the name of a function alone: 'exp(x)'")
            }
            (_, ".") => Some("try a function of the value: 'transpose(x)' instead of 'x.T'"),
            (_, size) if is_type && size.starts_with(|c: char| c.is_ascii_digit()) => {
                Some("try brackets around the sizes: 'f32 [3,4]'")
            }
            (_, number) if !follows_value && number.starts_with(|c: char| c.is_ascii_digit()) => {
                match number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.') {
                    "f16" | "f32" | "f64" | "F" | "d" | "D" => {
                        Some("try 'f' alone: a number has the element type that is needed")
                    }
                    _ if number.starts_with("0x") => Some("try a decimal number"),
                    name if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                        Some("try '*' between a number and a name: '2 * x'")
                    }
                    _ => None,
                }
            }
            (_, "(" | "<") if is_type => Some("try brackets around the sizes: 'f32 [3,4]'"),
            (_, "@") if is_type => Some("try a name before '@': 's@[n]'"),
            (_, "@") => Some("try 'matmul' for a product of matrices"),
            (_, "[") if before.ends_with(':') => {
                Some("try an element type before the shape: 'f32 [3,4]'")
            }
            (_, "[") if follows_shape => Some("try one list of sizes, '[3,4]', or '@' between two"),
            (_, "[") if follows_value => {
                Some("try 'gather' for elements, or 'slice' for a range of them")
            }
            (_, "[") if before.ends_with(',') => {
                Some("try 'shape=[..]' for an option; brackets hold sizes, not values")
            }
            (_, "[") => Some("try values without brackets, 'concat(x, y)': these hold sizes"),
            (_, "^") => Some("try a product: 'x * x'"),
            (_, "*") if before.ends_with('*') => Some("try a product: 'x * x'"),
            (_, "/") if before.ends_with('/') || after.starts_with(['/', '*']) => {
                Some("try '#', which starts a comment")
            }
            (_, "%") => Some("try 'x - x / y * y' for a remainder of integers"),
            (_, "and" | "&") => Some("try 'select(a, b, a)' for a and b"),
            (_, "|" | "\\") if !follows_value => Some("try 'fn(x) { value }'"),
            ("not", _) | (_, "!") => Some("try 'select(a, 0 == 1, 0 == 0)' for not a"),
            (_, "\"" | "`") => Some("there are no strings"),
            (_, "or" | "|") => Some("try 'select(a, a, b)' for a or b"),
            (_, "if" | "?") => Some("try 'select(condition, value, otherwise)'"),
            (_, next) if is_call(word) && next.starts_with(|c: char| c.is_ascii_alphanumeric()) => {
                Some("try parentheses around the arguments: 'relu(x)'")
            }
            _ => None,
        }
    }
}

/// The word before the parentheses that a text ends in.
fn word_before_parentheses(text: &str) -> &str {
    let mut depth = 0_usize;
    let open = text.bytes().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let before = text[..open.unwrap_or(0)].trim_end();
    &before[before.bytes().rposition(|byte| !is_word_byte(byte)).map_or(0, |at| at + 1)..]
}

fn number(bytes: &[u8], at: usize) -> (TokenKind, usize) {
    let (mut end, mut float) = decimal(bytes, at);
    if bytes.get(end) == Some(&b'f') {
        float = true;
        end += 1;
    }
    let kind = if float { TokenKind::Float } else { TokenKind::Integer };
    run_on(bytes, end).map_or((kind, end), |end| (TokenKind::BadNumber, end))
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;
    use crate::text::tokens::tokenize;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut kinds: Vec<_> = tokenize(text).iter().map(|token| token.kind).collect();
        assert_eq!(kinds.pop(), Some(End));
        kinds
    }

    #[test]
    fn numbers_say_what_they_are() {
        assert_eq!(kinds("0 12"), [Integer; 2]);
        assert_eq!(kinds("0f 1.5 1.5f 2. 1e3 1e-3f"), [Float; 6]);
        assert_eq!(kinds("1.2.3 3x 0x1 1ff"), [BadNumber; 4]);
    }

    #[test]
    fn longest_match_and_comments() {
        assert_eq!(kinds("-> - > >= = =="), [Arrow, Minus, Greater, GreaterEqual, Assign, Equal]);
        assert_eq!(kinds("fn fn1 # x\n@"), [Fn, Ident, At]);
        assert_eq!(kinds("\u{e9}'"), [Unknown, Unknown]);
        assert_eq!(kinds(&"x".repeat(1025)), [TooLong]);
    }
}
