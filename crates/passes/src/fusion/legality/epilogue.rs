//! A consumer that reads each element of a fold once becomes its epilogue.

use super::Rejection;
use crate::fusion::candidate::Candidate;
use std::collections::{BTreeMap, BTreeSet};
use tc_ir::{
    Context,
    expr::{Expr, Node, Var},
};

/// Whether the consumer can become the epilogue of the producer.
pub(super) fn check_epilogue(
    ir: &Context,
    consumer: &Candidate,
    producer: &Candidate,
    reads: &[usize],
    dims: &[Vec<Expr>],
) -> Result<(), Rejection> {
    if !consumer.view.domain.constraints.is_empty() {
        return Err(Rejection::ConstrainedConsumer);
    }
    if producer.view.accumulators.iter().any(|it| it.destination().is_some()) {
        return Err(Rejection::FoldsIntoTensor);
    }
    let maps: BTreeSet<_> =
        reads.iter().map(|number| &consumer.view.inputs[*number].subscripts).collect();
    if maps.len() != 1 {
        return Err(Rejection::SeveralMaps);
    }
    check_read_once(ir, &dims[0], &consumer.view.looping_dims(ir))
}

/// Whether each point of these variables reads another element: `dims` are the dimension variables of the producer over
/// those of the consumer.
pub(super) fn check_read_once(ir: &Context, dims: &[Expr], vars: &[Var]) -> Result<(), Rejection> {
    let mut read: BTreeMap<Var, Vec<Expr>> = BTreeMap::new();
    for expr in dims {
        let own: Vec<_> =
            ir.vars(*expr).into_iter().filter(|var| !matches!(var, Var::Runtime(_))).collect();
        match own[..] {
            [] => {}
            [var] => read.entry(var).or_default().push(*expr),
            _ => return Err(Rejection::SeveralVariables),
        }
    }
    if !read.iter().all(|(var, exprs)| tells_apart(ir, *var, exprs)) {
        return Err(Rejection::NotOnce);
    }
    if !vars.iter().all(|var| read.contains_key(var)) {
        return Err(Rejection::FoldAgain);
    }
    Ok(())
}

/// Whether values of a variable differ in one of these: it is the variable with an offset, or they are its digits, such
/// as `v floordiv 64` and `v mod 64`.
fn tells_apart(ir: &Context, var: Var, exprs: &[Expr]) -> bool {
    if let [expr] = exprs {
        let offset = ir.canonicalize(ir.sub(*expr, ir.var(var)));
        return !ir.vars(offset).contains(&var);
    }
    let mut known: BTreeSet<Expr> = exprs.iter().map(|it| ir.canonicalize(*it)).collect();
    // A remainder and the quotient by the same divisor give the number, which may be a quotient itself.
    loop {
        let numbers = known.iter().filter_map(|it| match ir.node(*it) {
            Node::Mod(number, divisor) => {
                let quotient = ir.canonicalize(ir.floor_div(number, divisor));
                (known.contains(&quotient) && !known.contains(&number)).then_some(number)
            }
            _ => None,
        });
        match numbers.collect::<Vec<_>>()[..] {
            [] => return known.contains(&ir.var(var)),
            ref numbers => known.extend(numbers),
        }
    }
}
