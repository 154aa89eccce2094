//! Sums of multiples of atoms, the form that the rules work on.

use smallvec::SmallVec;

use crate::expr::gcd;

/// A term of a sum: a number that the simplifier gives out.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Atom(u32);

impl Atom {
    /// # Panics
    /// There are 2^32 atoms. Each takes an expression's room, of which there are fewer.
    pub(super) fn new(number: usize) -> Self {
        Atom(u32::try_from(number).expect("fewer than 2^32 terms"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// `coefficient * atom + ... + constant`, each atom once and none with coefficient zero.
#[derive(PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct Sum {
    /// By number of the atom.
    terms: SmallVec<[(Atom, i64); 4]>,
    pub(super) constant: i64,
}

impl Clone for Sum {
    fn clone(&self) -> Self {
        // The terms are copied at once, which a derived implementation does one by one.
        Sum { terms: SmallVec::from_slice(&self.terms), constant: self.constant }
    }
}

impl From<Atom> for Sum {
    fn from(atom: Atom) -> Self {
        Sum { terms: SmallVec::from_slice(&[(atom, 1)]), constant: 0 }
    }
}

impl Sum {
    pub(super) fn constant(constant: i64) -> Self {
        Sum { terms: SmallVec::new(), constant }
    }

    pub(super) fn terms(&self) -> &[(Atom, i64)] {
        &self.terms
    }

    pub(super) fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The only term, when it stands alone and once.
    pub(super) fn single(&self) -> Option<Atom> {
        match self.terms[..] {
            [(atom, 1)] if self.constant == 0 => Some(atom),
            _ => None,
        }
    }

    /// The greatest common divisor of the coefficients; 0 where there are none.
    pub(super) fn content(&self) -> u64 {
        self.terms.iter().fold(0, |content, (_, c)| gcd(content, c.unsigned_abs()))
    }

    pub(super) fn coefficient(&self, atom: Atom) -> i64 {
        let place = self.terms.binary_search_by_key(&atom, |&(atom, _)| atom);
        place.map_or(0, |place| self.terms[place].1)
    }

    /// Whether there are all terms of `factor * other`, which has some.
    pub(super) fn has_multiple(&self, other: &Sum, factor: i64) -> bool {
        !other.terms.is_empty()
            && other.terms.iter().all(|&(term, coefficient)| {
                coefficient.checked_mul(factor) == Some(self.coefficient(term))
            })
    }

    /// Adds `factor * atom`; `None` on overflow.
    pub(super) fn add_term(&mut self, atom: Atom, factor: i64) -> Option<()> {
        match self.terms.binary_search_by_key(&atom, |&(atom, _)| atom) {
            Ok(place) => {
                let sum = self.terms[place].1.checked_add(factor)?;
                if sum == 0 {
                    self.terms.remove(place);
                } else {
                    self.terms[place].1 = sum;
                }
            }
            Err(place) if factor != 0 => self.terms.insert(place, (atom, factor)),
            Err(_) => {}
        }
        Some(())
    }

    /// Adds `factor * other`; `None` on overflow.
    pub(super) fn add(&mut self, other: &Sum, factor: i64) -> Option<()> {
        if other.terms.len() <= 4 {
            for &(atom, coefficient) in &other.terms {
                self.add_term(atom, coefficient.checked_mul(factor)?)?;
            }
            self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
            return Some(());
        }
        self.append(other, factor)?;
        self.collect()
    }

    /// Adds `factor * other` without order: [`collect`](Self::collect) has to follow.
    pub(super) fn append(&mut self, other: &Sum, factor: i64) -> Option<()> {
        for &(atom, coefficient) in &other.terms {
            self.terms.push((atom, coefficient.checked_mul(factor)?));
        }
        self.constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        Some(())
    }

    /// Restores the order and adds up equal atoms.
    pub(super) fn collect(&mut self) -> Option<()> {
        self.terms.sort_unstable_by_key(|&(atom, _)| atom);
        let mut kept = 0;
        for place in 0..self.terms.len() {
            let (atom, coefficient) = self.terms[place];
            if 0 < kept && self.terms[kept - 1].0 == atom {
                self.terms[kept - 1].1 = self.terms[kept - 1].1.checked_add(coefficient)?;
            } else {
                self.terms[kept] = (atom, coefficient);
                kept += 1;
            }
        }
        self.terms.truncate(kept);
        self.terms.retain(|&mut (_, coefficient)| coefficient != 0);
        Some(())
    }

    /// `factor * self`; `None` on overflow.
    pub(super) fn scaled(mut self, factor: i64) -> Option<Sum> {
        if factor == 0 {
            return Some(Sum::default());
        }
        for (_, coefficient) in &mut self.terms {
            *coefficient = coefficient.checked_mul(factor)?;
        }
        self.constant = self.constant.checked_mul(factor)?;
        Some(self)
    }

    /// The same sum with coefficients in `[0, divisor)`, but for the constant.
    pub(super) fn modulo(&self, divisor: i64) -> Sum {
        let mut sum = self.clone();
        for (_, coefficient) in &mut sum.terms {
            *coefficient = coefficient.rem_euclid(divisor);
        }
        sum.terms.retain(|&mut (_, coefficient)| coefficient != 0);
        sum
    }

    /// Replaces the coefficient of an atom that is there.
    pub(super) fn set(&mut self, atom: Atom, coefficient: i64) {
        if let Ok(place) = self.terms.binary_search_by_key(&atom, |&(atom, _)| atom) {
            self.terms[place].1 = coefficient;
        }
    }

    /// The quotient by a number that divides every term and the constant, and is not zero.
    pub(super) fn divided(mut self, divisor: i64) -> Sum {
        for (_, coefficient) in &mut self.terms {
            *coefficient /= divisor;
        }
        self.constant /= divisor;
        self
    }

    /// Moves every term to the first or the second sum: `self == factor * first + second`,
    /// where the coefficients of the second are no multiples of the factor. The constant
    /// goes to the second.
    pub(super) fn split(&self, factor: i64) -> (Sum, Sum) {
        let (mut multiples, mut rest) = (Sum::default(), Sum::constant(self.constant));
        for &(atom, coefficient) in &self.terms {
            if coefficient % factor == 0 {
                multiples.terms.push((atom, coefficient / factor));
            } else {
                rest.terms.push((atom, coefficient));
            }
        }
        (multiples, rest)
    }
}
