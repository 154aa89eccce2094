//! A consumer that reads each element of a fold once becomes its epilogue.

use super::Rejection;
use crate::fusion::candidate::Candidate;
use std::collections::BTreeSet;
use tc_ir::{
    Context,
    expr::{Expr, Var},
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
    let mut used = BTreeSet::new();
    for expr in dims {
        let own: Vec<_> =
            ir.vars(*expr).into_iter().filter(|var| !matches!(var, Var::Runtime(_))).collect();
        let var = match own[..] {
            [] => continue,
            [var] => var,
            _ => {
                return Err(Rejection::SeveralVariables);
            }
        };
        let offset = ir.canonicalize(ir.sub(*expr, ir.var(var)));
        if ir.vars(offset).contains(&var) || !used.insert(var) {
            return Err(Rejection::NotOnce);
        }
    }
    if !vars.iter().all(|var| used.contains(var)) {
        return Err(Rejection::FoldAgain);
    }
    Ok(())
}
