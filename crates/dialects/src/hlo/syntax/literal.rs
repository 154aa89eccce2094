//! Parses the value of a constant.
//!
//! Values go straight from the text into the array of bytes; braces are counted, not recursed
//! into. Memory is bounded by the text, whatever the shape says.

use super::lexer::Lexer;
use crate::{
    element::{ElementKind, ElementType},
    hlo::{ArrayLiteral, ArrayShape, Literal, Shape},
    text::{Diagnostic, Reason, Span},
};

type Parsed<T> = Result<T, Diagnostic>;

/// Reads a value of this shape from the current place on. The shape limits the recursion: the
/// parser has limited how deeply tuples nest.
pub fn literal(lexer: &mut Lexer, shape: &Shape) -> Parsed<Literal> {
    match shape {
        Shape::Array(_) if elided(lexer) => Ok(Literal::Elided),
        Shape::Array(array) => array_literal(lexer, array).map(Literal::Array),
        Shape::Token => Err(error(lexer, "a token has no value")),
        Shape::Tuple(elements) => {
            expect(lexer, b'(')?;
            let mut values = Vec::new();
            for (position, element) in elements.iter().enumerate() {
                if 0 < position {
                    expect(lexer, b',')?;
                }
                values.push(literal(lexer, element)?);
            }
            expect(lexer, b')')?;
            Ok(Literal::Tuple(values))
        }
    }
}

/// Reads `{...}`, which XLA prints instead of the elements of large constants. Reads nothing if
/// anything else follows.
fn elided(lexer: &mut Lexer) -> bool {
    let mut ahead = lexer.clone();
    for token in ["{", "...", "}"] {
        ahead.skip_blanks();
        if !ahead.text[ahead.position..].starts_with(token) {
            return false;
        }
        ahead.position += token.len();
    }
    *lexer = ahead;
    true
}

fn array_literal(lexer: &mut Lexer, shape: &ArrayShape) -> Parsed<ArrayLiteral> {
    let mut array = ArrayLiteral::new(shape.element_type);
    lexer.skip_blanks();
    if lexer.byte(0) == Some(b'{') {
        elements(lexer, shape, &mut array)?;
    } else {
        element(lexer, &mut array)?;
        array.is_splat = !shape.is_scalar();
    }
    Ok(array)
}

/// Nested braces with the elements inside.
fn elements(lexer: &mut Lexer, shape: &ArrayShape, array: &mut ArrayLiteral) -> Parsed<()> {
    let rank = shape.rank();
    let is_empty = shape.num_elements() == Some(0);
    // The number of entries so far of each list that is open.
    let mut counts: Vec<i64> = Vec::new();
    let mut after_entry = false;
    loop {
        lexer.skip_blanks();
        let byte = lexer.byte(0);
        match byte {
            Some(b'}') if !counts.is_empty() => {
                let found = counts.pop().unwrap_or(0);
                let dim = counts.len();
                // An array without elements may be written without its inner lists.
                if found != shape.dims[dim] && !(is_empty && found == 0) {
                    return Err(error(lexer, wrong_count(shape, dim, &found.to_string())));
                }
                lexer.position += 1;
                if counts.is_empty() {
                    return Ok(());
                }
                after_entry = true;
            }
            Some(b',') if after_entry => {
                lexer.position += 1;
                after_entry = false;
            }
            _ if after_entry => {
                return Err(unexpected(lexer, "',' or '}' after a value"));
            }
            Some(b'.') if lexer.text[lexer.position..].starts_with("...") => {
                return Err(error(
                    lexer,
                    "the constant lacks some of its elements ('...'); print the module with \
                     print_large_constants",
                ));
            }
            _ => {
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                    let (count, dim) = (*count, counts.len() - 1);
                    if shape.dims[dim] < count {
                        let found = format!("more than {}", count - 1);
                        return Err(error(lexer, wrong_count(shape, dim, &found)));
                    }
                }
                match (byte, counts.len() < rank) {
                    (Some(b'{'), true) => {
                        lexer.position += 1;
                        counts.push(0);
                    }
                    (_, false) => {
                        element(lexer, array)?;
                        after_entry = true;
                    }
                    (_, true) => {
                        let expected = format!("'{{' of dimension {} of {shape}", counts.len());
                        return Err(unexpected(lexer, &expected));
                    }
                }
            }
        }
    }
}

fn wrong_count(shape: &ArrayShape, dim: usize, found: &str) -> String {
    let expected = shape.dims[dim];
    format!("dimension {dim} has {found} values, expected {expected} for {shape}")
}

/// Reads one element.
fn element(lexer: &mut Lexer, array: &mut ArrayLiteral) -> Parsed<()> {
    let ty = array.element_type;
    if !ty.is_complex() {
        array.push_bits(number(lexer, ty)?);
        return Ok(());
    }
    lexer.skip_blanks();
    if lexer.byte(0) != Some(b'(') {
        array.push_bits(number(lexer, ty.part())?);
        array.push_bits(0);
        return Ok(());
    }
    lexer.position += 1;
    array.push_bits(number(lexer, ty.part())?);
    expect(lexer, b',')?;
    array.push_bits(number(lexer, ty.part())?);
    expect(lexer, b')')
}

/// Reads one number, as bits of the type.
fn number(lexer: &mut Lexer, ty: ElementType) -> Parsed<u64> {
    lexer.skip_blanks();
    let start = lexer.position;
    lexer.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'));
    let word = &lexer.text[start..lexer.position];
    if word.ends_with("nan") && lexer.byte(0) == Some(b'(') {
        lexer.skip(|byte| byte != b')' && byte != b'\n');
        lexer.position = (lexer.position + 1).min(lexer.text.len());
    }
    let span = Span::new(start as u32, lexer.position as u32);
    let bits = match ty.kind() {
        _ if word.is_empty() => {
            return Err(unexpected(lexer, &format!("a value of type {ty}")));
        }
        ElementKind::Pred => match word {
            "true" | "1" => Ok(1),
            "false" | "0" => Ok(0),
            _ => Err(None),
        },
        ElementKind::Signed | ElementKind::Unsigned => integer(word, ty),
        _ => float(&lexer.text[start..lexer.position], ty),
    };
    bits.map_err(|reason| {
        let reason = reason.unwrap_or("is no value of type");
        Diagnostic::new(Reason::HloLiteral, span, format!("'{}' {reason} {ty}", shown(word)))
    })
}

/// Why a word is no value of a type; `None` if it does not even look like one.
type Refused = Option<&'static str>;

const OUT_OF_RANGE: Refused = Some("does not fit in");

fn integer(word: &str, ty: ElementType) -> Result<u64, Refused> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(None);
    }
    // Most integers are short, and i64 is read much faster.
    let value = match word.parse::<i64>() {
        Ok(value) => i128::from(value),
        Err(_) => word.parse().map_err(|_| OUT_OF_RANGE)?,
    };
    let (low, high) = ty.integer_range();
    if value < low || high < value {
        return Err(OUT_OF_RANGE);
    }
    let used = u64::MAX >> (64 - ty.bits());
    Ok(value as u64 & used)
}

fn float(word: &str, ty: ElementType) -> Result<u64, Refused> {
    let (sign, magnitude) = match word.strip_prefix('-') {
        Some(magnitude) => (ty.sign_bit(), magnitude),
        None => (0, word),
    };
    let infinity = ty.encode_float(f64::INFINITY);
    match magnitude {
        "nan" => return ty.nan_bits().map(|nan| nan | sign).ok_or(OUT_OF_RANGE),
        "inf" if ty.decode_float(infinity).is_infinite() => return Ok(infinity | sign),
        "inf" => return Err(OUT_OF_RANGE),
        _ => {}
    }
    if let Some(payload) = magnitude.strip_prefix("nan(0x") {
        let payload = u64::from_str_radix(payload.trim_end_matches(')'), 16).map_err(|_| None)?;
        // The bits of the significand; those of the exponent are all set.
        let is_payload = payload != 0 && payload < infinity & infinity.wrapping_neg();
        let bits = infinity | payload;
        let is_nan = is_payload && ty.decode_float(bits).is_nan();
        return if is_nan { Ok(bits | sign) } else { Err(OUT_OF_RANGE) };
    }
    // Rust reads some words as numbers that HLO does not have.
    let is_number = magnitude
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !is_number || !magnitude.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(None);
    }
    let bits = match ty {
        ElementType::F32 => u64::from(word.parse::<f32>().map_err(|_| None)?.to_bits()),
        _ => ty.encode_float(word.parse::<f64>().map_err(|_| None)?),
    };
    if ty.decode_float(bits).is_finite() { Ok(bits) } else { Err(OUT_OF_RANGE) }
}

fn expect(lexer: &mut Lexer, byte: u8) -> Parsed<()> {
    lexer.skip_blanks();
    if lexer.byte(0) != Some(byte) {
        return Err(unexpected(lexer, &format!("'{}'", char::from(byte))));
    }
    lexer.position += 1;
    Ok(())
}

/// An error at the current place.
fn error(lexer: &Lexer, message: impl Into<String>) -> Diagnostic {
    let at = lexer.position as u32;
    Diagnostic::new(Reason::HloLiteral, Span::new(at, at + 1), message)
}

fn unexpected(lexer: &Lexer, expected: &str) -> Diagnostic {
    let mut ahead = lexer.clone();
    let token = ahead.token();
    let found = super::parser::described(lexer.text, token);
    Diagnostic::new(Reason::HloLiteral, token.span, format!("expected {expected}, found {found}"))
}

/// A word cut to a readable length.
fn shown(word: &str) -> String {
    match word.get(..40) {
        Some(head) if 40 < word.len() => format!("{head}..."),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ty: ElementType, dims: &[i64], text: &str) -> Parsed<ArrayLiteral> {
        let mut lexer = Lexer { text, position: 0 };
        match literal(&mut lexer, &Shape::array(ty, dims))? {
            Literal::Array(array) => Ok(array),
            literal => panic!("expected an array, found {literal:?}"),
        }
    }

    fn refused(ty: ElementType, dims: &[i64], text: &str) -> String {
        read(ty, dims, text).expect_err(text).message
    }

    #[test]
    fn nested_lists() {
        let array = read(ElementType::S32, &[2, 2], "{ /*i0=0*/ {1, -2}, {3, 4} }").unwrap();
        let values: Vec<_> = (0..4).filter_map(|position| array.integer(position)).collect();
        assert_eq!(values, [1, -2, 3, 4]);
        for text in ["{ {}, {}, {} }", "{ { }, {  }, {} }", "{ }"] {
            assert_eq!(read(ElementType::F32, &[3, 0], text).unwrap().num_stored(), 0);
        }
        assert!(read(ElementType::F32, &[1 << 40], "7").unwrap().is_splat);
    }

    #[test]
    fn elided_arrays() {
        let read = |text| {
            let pair = Shape::array(ElementType::F32, &[2][..]);
            let shape = Shape::Tuple([pair.clone(), pair].into());
            literal(&mut Lexer { text, position: 0 }, &shape).map(|it| it.has_elided())
        };
        assert_eq!(read("({...}, { /*all*/ ... })"), Ok(true));
        assert_eq!(read("({1, 2}, {3, 4})"), Ok(false));
        assert!(read("({..}, {1, 2})").is_err());
        assert!(read("({...").is_err());
    }

    #[test]
    fn special_values() {
        let floats = "{nan, -nan, inf, -inf, -0, 1e-45, .5, 3.40282347e+38, nan(0x400001)}";
        let array = read(ElementType::F32, &[9], floats).unwrap();
        assert_eq!(array.bits(0), 0x7fc0_0000);
        assert_eq!(array.bits(1), 0xffc0_0000);
        assert_eq!(array.bits(4), 0x8000_0000);
        assert_eq!(array.bits(8), 0x7fc0_0001);
        let array = read(ElementType::C64, &[2], "{(1, -inf), 2}").unwrap();
        assert_eq!(array.complex(0), Some((1.0, f64::NEG_INFINITY)));
        assert_eq!(array.complex(1), Some((2.0, 0.0)));
        assert_eq!(read(ElementType::Pred, &[2], "{true, 0}").unwrap().bytes, [1, 0]);
        assert_eq!(read(ElementType::U4, &[], "15").unwrap().bytes, [15]);
    }

    #[test]
    fn what_is_refused_says_why() {
        use ElementType::{F8E4M3FN, F16, F32, F64, Pred, S8, S32, U64};
        for (ty, dims, text, message) in [
            (S8, &[][..], "300", "'300' does not fit in s8"),
            (S32, &[], "1.5", "'1.5' is no value of type s32"),
            (S32, &[], "true", "'true' is no value of type s32"),
            (Pred, &[], "2", "'2' is no value of type pred"),
            (U64, &[], "-1", "'-1' does not fit in u64"),
            (F32, &[], "1e39", "'1e39' does not fit in f32"),
            (F64, &[], "infinity", "'infinity' is no value of type f64"),
            (F16, &[], "65520", "'65520' does not fit in f16"),
            (F8E4M3FN, &[], "inf", "'inf' does not fit in f8e4m3fn"),
            (F32, &[3], "{1, 2}", "dimension 0 has 2 values, expected 3 for f32[3]"),
            (F32, &[1], "{1, 2}", "dimension 0 has more than 1 values, expected 1 for f32[1]"),
            (
                F32,
                &[2],
                "{1, ...}",
                "the constant lacks some of its elements ('...'); print the module with \
                 print_large_constants",
            ),
            (F32, &[1], "{1", "expected ',' or '}' after a value, found end of text"),
            (F32, &[1], "{,}", "expected a value of type f32, found ','"),
            (F32, &[1, 1], "{1}", "expected '{' of dimension 1 of f32[1,1], found '1'"),
            (F32, &[], "{", "expected a value of type f32, found '{'"),
        ] {
            assert_eq!(refused(ty, dims, text), message);
        }
    }
}
