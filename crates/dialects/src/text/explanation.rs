//! The explanations of diagnostic codes: the page `docs/src/errors.md`, which has a section for each.

/// The page.
const PAGE: &str = include_str!("../../../../docs/src/errors.md");

/// The start of a section.
const HEADING: &str = "\n### ";

/// Returns the explanation of a diagnostic code in Markdown: its cause, an example, and a correction.
///
/// # Errors
/// There is no such code; the text names a similar one if there is one.
///
/// ```
/// let text = tc_dialects::explain("tc0024").unwrap();
/// assert!(text.starts_with("TC0024: tensor is neither an output nor local\n"));
/// assert_eq!(
///     tc_dialects::explain("TC0042").unwrap_err(),
///     "'TC0042' is not a diagnostic code; expected one such as 'TC0002'"
/// );
/// ```
pub fn explain(code: &str) -> Result<&'static str, String> {
    if let Some((_, text)) = sections().find(|(known, _)| known.eq_ignore_ascii_case(code)) {
        return Ok(text);
    }
    let codes = sections().map(|(known, _)| known);
    let similar = crate::text::diagnostic::similar(&code.to_ascii_uppercase(), codes);
    let similar = similar.unwrap_or("TC0024");
    Err(format!("'{code}' is not a diagnostic code; expected one such as '{similar}'"))
}

/// The codes that the page explains, each with its section.
pub fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGE.split(HEADING).skip(1).filter_map(|section| {
        // The heading of the next language is not a part of it.
        let section = section.split("\n## ").next()?;
        Some((section.split_once(':')?.0, section.trim_end()))
    })
}

#[cfg(test)]
mod tests {
    use super::sections;
    use crate::{tc::ranges::Kind, text::Reason};

    #[test]
    fn every_code_has_one_section() {
        let reasons = Reason::ALL.iter().map(|reason| reason.code());
        let mut codes: Vec<_> = reasons.chain(Kind::ALL.map(Kind::code)).collect();
        let mut explained: Vec<_> = sections().map(|(code, _)| code).collect();
        codes.sort_unstable();
        explained.sort_unstable();
        assert_eq!(explained, codes);
    }
}
