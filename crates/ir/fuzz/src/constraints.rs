//! Texts as expressions and as constraints in disjunctive form: no panic, and what is printed
//! parses back as the same text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tc_ir::text::{default_name, parse_expr};
use tc_ir::{ConstraintExpression, Context, Var};

fuzz_target!(|text: &str| {
    let ctx = Context::new();
    let name = |name: &str| name.strip_prefix('d')?.parse().ok().map(Var::Dim);
    if let Ok(expr) = parse_expr(&ctx, text, &name) {
        let printed = ctx.display(expr).to_string();
        match parse_expr(&ctx, &printed, &name) {
            Ok(parsed) => assert_eq!(ctx.display(parsed).to_string(), printed, "{text}"),
            Err(error) => panic!("{text}: {printed}: {error}"),
        }
    }
    if let Ok(constraints) = ConstraintExpression::parse(&ctx, text, &name) {
        let printed = constraints.display_with(&ctx, default_name).to_string();
        match ConstraintExpression::parse(&ctx, &printed, &name) {
            Ok(parsed) => {
                assert_eq!(parsed.display_with(&ctx, default_name).to_string(), printed, "{text}");
            }
            Err(error) => panic!("{text}: {printed}: {error}"),
        }
    }
});
