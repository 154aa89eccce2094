//! Makes a failing program smaller, greedily: a change stays if the program still fails in
//! the same way.

use tc_dialects::{
    tc::syntax::{
        Options,
        ast::{Clause, Expr, ExprKind, Program},
        parse_program,
    },
    text::SourceFile,
};

/// The smallest program found for which `fails` holds, within a number of tries.
pub fn shrink(text: &str, tries: usize, fails: impl Fn(&str) -> bool) -> String {
    let mut best = text.to_string();
    let mut tries = tries;
    'restart: loop {
        for candidate in candidates(&best) {
            if tries == 0 {
                return best;
            }
            tries -= 1;
            if candidate.len() < best.len() && fails(&candidate) {
                best = candidate;
                continue 'restart;
            }
        }
        return best;
    }
}

/// Programs with one thing less, large things first.
fn candidates(text: &str) -> Vec<String> {
    let source = SourceFile::new("shrink.tc", text);
    let (program, _) = parse_program(&source, &Options::default());
    let mut found = Vec::new();
    let Some(def) = program.defs.first() else { return found };
    let mut add = |change: &dyn Fn(&mut Program)| {
        let mut changed = program.clone();
        change(&mut changed);
        drop_unused(&mut changed);
        found.push(changed.to_string());
    };
    for (number, statement) in def.statements.iter().enumerate() {
        add(&|program| {
            program.defs[0].statements.remove(number);
        });
        for clause in 0..statement.clauses.len() {
            add(&|program| {
                program.defs[0].statements[number].clauses.remove(clause);
            });
        }
        // The expressions of a statement are numbered in the order of a walk.
        let mut sizes = Vec::new();
        walk_statement(&program, number, &mut |expr| sizes.push(children(expr).len()));
        for (place, count) in sizes.into_iter().enumerate() {
            for child in 0..count {
                add(&|program| {
                    replace(program, number, place, &|expr| children(expr)[child].clone());
                });
            }
            if 0 < count {
                for constant in ["0", "1"] {
                    add(&|program| {
                        replace(program, number, place, &|expr| Expr {
                            kind: ExprKind::Number(constant.to_string()),
                            span: expr.span,
                        });
                    });
                }
            }
        }
    }
    found
}

/// Drops outputs that nothing assigns and inputs that nothing names.
fn drop_unused(program: &mut Program) {
    let def = &mut program.defs[0];
    let text: String = def.statements.iter().map(|it| format!(" {it} ")).collect();
    let names: Vec<_> = text
        .split(|it: char| !it.is_ascii_alphanumeric() && it != '_')
        .map(str::to_string)
        .collect();
    let dims = |param: &tc_dialects::tc::syntax::ast::Param| {
        param.ty.as_ref().map(|it| it.dims.clone()).unwrap_or_default()
    };
    def.outputs
        .retain(|it| def.statements.iter().any(|statement| statement.target.text == it.name.text));
    let is_named = |param: &tc_dialects::tc::syntax::ast::Param| {
        names.contains(&param.name.text)
            || dims(param).iter().any(|dim| match dim {
                tc_dialects::tc::syntax::ast::Dim::Size(name) => names.contains(&name.text),
                tc_dialects::tc::syntax::ast::Dim::Number(_) => false,
            })
    };
    def.inputs.retain(is_named);
}

fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Number(_) | ExprKind::Bool(_) | ExprKind::Name(_) | ExprKind::Extent { .. } => {
            Vec::new()
        }
        ExprKind::Apply { args, .. } => args.iter().collect(),
        ExprKind::Cast { value, .. } | ExprKind::Unary { value, .. } => vec![value],
        ExprKind::Binary { lhs, rhs, .. } => vec![lhs, rhs],
        ExprKind::Select { condition, on_true, on_false } => vec![on_true, on_false, condition],
    }
}

fn children_mut(expr: &mut Expr) -> Vec<&mut Expr> {
    match &mut expr.kind {
        ExprKind::Number(_) | ExprKind::Bool(_) | ExprKind::Name(_) | ExprKind::Extent { .. } => {
            Vec::new()
        }
        ExprKind::Apply { args, .. } => args.iter_mut().collect(),
        ExprKind::Cast { value, .. } | ExprKind::Unary { value, .. } => vec![value],
        ExprKind::Binary { lhs, rhs, .. } => vec![lhs, rhs],
        ExprKind::Select { condition, on_true, on_false } => vec![on_true, on_false, condition],
    }
}

fn roots_mut(program: &mut Program, statement: usize) -> Vec<&mut Expr> {
    let statement = &mut program.defs[0].statements[statement];
    let mut roots = vec![&mut statement.value];
    roots.extend(&mut statement.indices);
    for clause in &mut statement.clauses {
        match clause {
            Clause::Range { lower, upper, .. } => roots.extend([lower, upper]),
            Clause::Let { value, .. } | Clause::Exists(value) => roots.push(value),
        }
    }
    roots
}

fn walk_statement(program: &Program, statement: usize, visit: &mut dyn FnMut(&Expr)) {
    let mut copy = program.clone();
    let mut pending: Vec<&mut Expr> = roots_mut(&mut copy, statement);
    pending.reverse();
    while let Some(expr) = pending.pop() {
        visit(expr);
        pending.extend(children_mut(expr).into_iter().rev());
    }
}

fn replace(program: &mut Program, statement: usize, place: usize, change: &dyn Fn(&Expr) -> Expr) {
    let mut pending: Vec<&mut Expr> = roots_mut(program, statement);
    pending.reverse();
    let mut number = 0;
    while let Some(expr) = pending.pop() {
        if number == place {
            *expr = change(expr);
            return;
        }
        number += 1;
        pending.extend(children_mut(expr).into_iter().rev());
    }
}
