//! Folding the values of one element, with a bound for any order of the terms.
//!
//! Sums: whatever the tree, a term meets at most n - 1 roundings, so that the error is at
//! most `((1 + u)^(n - 1) - 1) sum |x|` plus the errors of the terms (Higham, "Accuracy and
//! Stability of Numerical Algorithms", section 4.2). A sum of exact terms is exact in any
//! order if all of them are multiples of one power of two, and the sum of their magnitudes
//! is below that power times 2 to the precision. Products: the same with relative errors;
//! those whose partial products may overflow or underflow in some order are uncertain.
//! The sum itself is kept with Neumaier's compensation.

use super::{
    integer::{self, IntBinary, ScalarType, signed_extreme},
    scalar::{FloatBinary, FloatType, Scalar, two_sum_error},
};
use tc_dialects::imap::CombinerKind;

/// How the values of one element are folded.
#[derive(Copy, Clone, Debug)]
pub(crate) enum FoldKind {
    Sum(FloatType),
    Product(FloatType),
    Int(IntBinary, u32),
    Float(FloatBinary, FloatType),
    /// A combiner of all accumulators: the last value stays.
    Custom,
}

impl FoldKind {
    /// The fold of a combiner on a type; `None` where the combiner does not work on it.
    pub(crate) fn of(kind: CombinerKind, ty: ScalarType) -> Option<Self> {
        Some(match (kind, ty) {
            (CombinerKind::Custom, _) => Self::Custom,
            (CombinerKind::Add, ScalarType::Float(ty)) => Self::Sum(ty),
            (CombinerKind::Mul, ScalarType::Float(ty)) => Self::Product(ty),
            (CombinerKind::MinF, ScalarType::Float(ty)) => Self::Float(FloatBinary::MinNum, ty),
            (CombinerKind::MaxF, ScalarType::Float(ty)) => Self::Float(FloatBinary::MaxNum, ty),
            (CombinerKind::MinimumF, ScalarType::Float(ty)) => {
                Self::Float(FloatBinary::Minimum, ty)
            }
            (CombinerKind::MaximumF, ScalarType::Float(ty)) => {
                Self::Float(FloatBinary::Maximum, ty)
            }
            (kind, ScalarType::Int(width)) => {
                let op = match kind {
                    CombinerKind::Add => IntBinary::Add,
                    CombinerKind::Mul => IntBinary::Mul,
                    CombinerKind::MinS => IntBinary::MinSigned,
                    CombinerKind::MaxS => IntBinary::MaxSigned,
                    CombinerKind::MinU => IntBinary::MinUnsigned,
                    CombinerKind::MaxU => IntBinary::MaxUnsigned,
                    CombinerKind::And => IntBinary::And,
                    CombinerKind::Or => IntBinary::Or,
                    _ => return None,
                };
                Self::Int(op, width)
            }
            _ => return None,
        })
    }

    /// The value that changes nothing.
    pub(crate) fn identity(self) -> Scalar {
        match self {
            Self::Product(_) => Scalar::exact(1.0),
            Self::Float(FloatBinary::MinNum | FloatBinary::Minimum, _) => {
                Scalar::exact(f64::INFINITY)
            }
            Self::Float(..) => Scalar::exact(f64::NEG_INFINITY),
            Self::Int(op, width) => Scalar::int(match op {
                IntBinary::Mul => integer::wrap(1, width),
                IntBinary::MinSigned => signed_extreme(width, true),
                IntBinary::MaxSigned => signed_extreme(width, false),
                IntBinary::MinUnsigned | IntBinary::And => -1,
                _ => 0,
            }),
            Self::Sum(_) | Self::Custom => Scalar::int(0),
        }
    }
}

/// A fold under way.
#[derive(Clone, Debug)]
pub(crate) enum Fold {
    /// A fold whose bound does not depend on the order.
    Plain(FoldKind, Scalar),
    Sum(Sum),
    Product(Product),
    /// A fold of an undefined value.
    Undefined(Scalar),
}

impl Fold {
    /// Starts from a value, or from the identity.
    pub(crate) fn new(kind: FoldKind, start: Option<Scalar>) -> Self {
        let mut fold = match kind {
            FoldKind::Sum(ty) => Self::Sum(Sum::new(ty)),
            FoldKind::Product(ty) => Self::Product(Product::new(ty)),
            _ => match start {
                Some(start) if start.is_undefined() && !matches!(kind, FoldKind::Custom) => {
                    return Self::Undefined(start);
                }
                start => return Self::Plain(kind, start.unwrap_or(kind.identity())),
            },
        };
        if let Some(start) = start {
            fold.add(start);
        }
        fold
    }

    /// Folds one more value in.
    pub(crate) fn add(&mut self, value: Scalar) {
        if value.is_undefined() && !matches!(self, Self::Plain(FoldKind::Custom, _)) {
            *self = Self::Undefined(value);
        }
        match self {
            Self::Undefined(_) => {}
            Self::Plain(FoldKind::Int(op, width), current) => {
                // None of the combiners divides.
                *current = integer::binary(*op, *width, *current, value).unwrap_or(value);
            }
            Self::Plain(FoldKind::Float(op, ty), current) => {
                *current = ty.binary(*op, *current, value);
            }
            Self::Plain(_, current) => *current = value,
            Self::Sum(sum) => sum.add(value),
            Self::Product(product) => product.add(value),
        }
    }

    /// The folded value.
    pub(crate) fn finish(&self) -> Scalar {
        match self {
            Self::Plain(_, current) | Self::Undefined(current) => *current,
            Self::Sum(sum) => sum.finish(),
            Self::Product(product) => product.finish(),
        }
    }
}

/// What the special values among the terms say.
#[derive(Copy, Clone, Debug, Default)]
struct Specials {
    nan: bool,
    positive: bool,
    negative: bool,
}

impl Specials {
    fn note(&mut self, value: f64) {
        self.nan |= value.is_nan();
        self.positive |= value == f64::INFINITY;
        self.negative |= value == f64::NEG_INFINITY;
    }

    fn any(self) -> bool {
        self.nan || self.positive || self.negative
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sum {
    ty: FloatType,
    num_terms: u64,
    sum: f64,
    compensation: f64,
    magnitude: f64,
    error: f64,
    /// The exponent of the largest power of two that divides all terms.
    unit: i32,
    exact: bool,
    positive: bool,
    negative: bool,
    specials: Specials,
    infinities_exact: bool,
}

impl Sum {
    fn new(ty: FloatType) -> Self {
        Self {
            ty,
            num_terms: 0,
            sum: 0.0,
            compensation: 0.0,
            magnitude: 0.0,
            error: 0.0,
            unit: i32::MAX,
            exact: true,
            positive: false,
            negative: false,
            specials: Specials::default(),
            infinities_exact: true,
        }
    }

    fn add(&mut self, term: Scalar) {
        let term = self.ty.flushed(term);
        let value = term.as_float();
        self.error += term.error;
        if !value.is_finite() {
            self.specials.note(value);
            self.infinities_exact &= term.is_exact();
            return;
        }
        self.num_terms += 1;
        let sum = self.sum + value;
        self.compensation += two_sum_error(self.sum, value, sum);
        self.sum = sum;
        self.magnitude += value.abs();
        self.exact &= term.is_exact();
        self.positive |= 0.0 < value + term.error;
        self.negative |= value - term.error < 0.0;
        if self.exact {
            self.unit = self.unit.min(unit(value));
        }
    }

    fn finish(&self) -> Scalar {
        // Compensation is lost to overflow only where the sum itself overflows.
        let corrected = self.sum + self.compensation;
        let value = if corrected.is_finite() { corrected } else { self.sum };
        if self.error.is_nan() || self.error == f64::INFINITY {
            return Scalar::float(value, f64::INFINITY);
        }
        if self.specials.nan || self.specials.positive && self.specials.negative {
            // A product that overflows need not do so as a term.
            let certain = self.specials.nan || self.infinities_exact;
            return Scalar::exact(f64::NAN).certain_if(certain);
        }
        let total = self.magnitude + self.error;
        let growth = growth(self.num_terms, self.ty.roundoff());
        let fits = total * (1.0 + growth) < self.ty.limit();
        let may_overflow = !fits;
        if self.specials.any() {
            let infinity = if self.specials.positive { f64::INFINITY } else { f64::NEG_INFINITY };
            return Scalar::exact(infinity).certain_if(!may_overflow);
        }
        if self.exact && 2 <= self.num_terms {
            // An empty sum and one of zeros have no unit.
            let most = self.unit.saturating_add(self.ty.precision() as i32);
            if self.magnitude <= 2f64.powi(most.min(1023)) && !may_overflow {
                return Scalar::exact(value);
            }
        } else if self.exact {
            return Scalar::exact(value);
        }
        if may_overflow && self.num_terms > 1 {
            // Terms of one sign grow in any order: then at least this is reached.
            let least = (self.magnitude - self.error) * (1.0 - growth);
            let certain = self.positive != self.negative && self.ty.limit() <= least;
            let infinity = if self.positive { f64::INFINITY } else { f64::NEG_INFINITY };
            return Scalar::exact(infinity).certain_if(certain);
        }
        let own = 2.0 * f64::EPSILON * value.abs()
            + (self.num_terms as f64 * f64::EPSILON).powi(2) * self.magnitude;
        // A sum of small terms so far may be subnormal.
        let underflow = self.num_terms as f64 * self.ty.flush_limit();
        self.ty.classify(value, self.error + growth * total + own + underflow)
    }
}

/// `(1 + u)^(n - 1) - 1`.
pub(super) fn growth(num_terms: u64, roundoff: f64) -> f64 {
    (num_terms.saturating_sub(1) as f64 * roundoff.ln_1p()).exp_m1()
}

/// The exponent of the largest power of two that divides a finite number.
fn unit(value: f64) -> i32 {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let (significand, exponent) =
        if exponent == 0 { (fraction, 1) } else { (fraction | 1 << 52, exponent) };
    if significand == 0 { i32::MAX } else { exponent - 1075 + significand.trailing_zeros() as i32 }
}

#[derive(Clone, Debug)]
pub(crate) struct Product {
    ty: FloatType,
    num_terms: u64,
    product: f64,
    /// The product of the largest magnitudes that the terms may have.
    magnitude: f64,
    /// The sum of the positive and of the negative binary logarithms of the magnitudes: how
    /// far a partial product can go up and down.
    up: f64,
    down: f64,
    /// The bits that an exact product has.
    num_bits: u32,
    exact: bool,
    zero: bool,
    maybe_zero: bool,
    certain: bool,
    specials: Specials,
    negative: bool,
}

impl Product {
    fn new(ty: FloatType) -> Self {
        Self {
            ty,
            num_terms: 0,
            product: 1.0,
            magnitude: 1.0,
            up: 0.0,
            down: 0.0,
            num_bits: 0,
            exact: true,
            zero: false,
            maybe_zero: false,
            certain: true,
            specials: Specials::default(),
            negative: false,
        }
    }

    fn add(&mut self, term: Scalar) {
        let term = self.ty.flushed(term);
        let value = term.as_float();
        self.certain &= term.is_certain();
        if !value.is_finite() {
            self.specials.note(value);
            self.negative ^= value < 0.0;
            return;
        }
        self.num_terms += 1;
        self.product *= value;
        self.negative ^= value.is_sign_negative();
        let (largest, smallest) = (value.abs() + term.error, value.abs() - term.error);
        self.magnitude *= largest;
        self.up += largest.log2().max(0.0);
        if value == 0.0 && term.is_exact() {
            self.zero = true;
        } else if smallest <= 0.0 {
            self.maybe_zero = true;
        } else {
            self.down -= smallest.log2().min(0.0);
        }
        self.exact &= term.is_exact();
        if self.exact && value != 0.0 {
            // The number of bits between the first and the last 1.
            let exponent = (value.abs().to_bits() >> 52) as i32 - 1023;
            self.num_bits =
                self.num_bits.saturating_add((exponent - unit(value) + 1).max(1) as u32);
        }
    }

    fn finish(&self) -> Scalar {
        let value = self.product;
        if !self.certain {
            return Scalar::float(value, f64::INFINITY);
        }
        let overflow = self.ty.limit().log2() - 1.0 <= self.up;
        let underflow = -self.ty.min_normal().log2() - 1.0 <= self.down;
        if self.specials.any() {
            if self.specials.nan || self.zero {
                return Scalar::exact(f64::NAN);
            }
            // A partial product that underflows to 0 would give nan.
            let infinity = if self.negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return Scalar::exact(infinity).certain_if(!self.maybe_zero && !underflow);
        }
        if self.zero && !overflow {
            return Scalar::exact(value);
        }
        if self.num_terms <= 1 && self.exact {
            return Scalar::exact(value);
        }
        if overflow || underflow && 0.0 < self.up {
            return Scalar::float(value, f64::INFINITY);
        }
        if self.exact && self.num_bits <= self.ty.precision() && !underflow {
            return Scalar::exact(value);
        }
        // The largest product less the product bounds what the errors of the terms do.
        let num_terms = self.num_terms as f64;
        let propagated =
            (self.magnitude - value.abs()) + 2.0 * num_terms * f64::EPSILON * self.magnitude;
        // LLVM reassociates the factors of a term, too: an exact `a * b`, twice, becomes `(a * a) * (b * b)`.
        let num_factors = self.num_terms.saturating_mul(2);
        let rounding = growth(num_factors, self.ty.roundoff()) * self.magnitude;
        self.ty.classify(value, propagated + rounding + num_terms * self.ty.underflow(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::scalar::SLACK;
    use FloatType::{F16, F32, F64};
    use proptest::prelude::*;

    fn fold(kind: FoldKind, terms: &[f64]) -> Scalar {
        let mut fold = Fold::new(kind, None);
        for term in terms {
            fold.add(Scalar::exact(*term));
        }
        fold.finish()
    }

    fn parts(found: Scalar) -> (f64, f64) {
        (found.as_float(), found.error)
    }

    #[test]
    fn sums_of_few_bits_are_exact_in_any_order() {
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[0.5; 1000])), (500.0, 0.0));
        // Exact from left to right, but not in every order.
        let (value, error) = parts(fold(FoldKind::Sum(F32), &[16777216.0, -16777216.0, 1.0]));
        assert_eq!(value, 1.0);
        assert!(error >= 1.0);
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[])), (0.0, 0.0));
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[0.0, -0.0])), (0.0, 0.0));
        let third = f64::from(1f32 / 3.0);
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[third])), (third, 0.0));
    }

    #[test]
    fn sums_of_specials() {
        let inf = f64::INFINITY;
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[inf, 1.0])), (inf, 0.0));
        assert!(fold(FoldKind::Sum(F32), &[inf, -inf]).as_float().is_nan());
        assert!(!fold(FoldKind::Sum(F32), &[inf, -3e38, -3e38]).is_certain());
        // An infinity with an error is a product that overflows only if it is rounded.
        let mut terms = Fold::new(FoldKind::Sum(F32), Some(Scalar::exact(-inf)));
        terms.add(Scalar::float(inf, 1.0));
        assert!(!terms.finish().is_certain());
        assert_eq!(parts(fold(FoldKind::Sum(F32), &[-3e38, -3e38])), (-inf, 0.0));
        assert!(!fold(FoldKind::Sum(F32), &[3e38, 3e38, -3e38]).is_certain());
        assert_eq!(parts(fold(FoldKind::Sum(F16), &[60000.0, 60000.0])), (inf, 0.0));
        assert_eq!(parts(fold(FoldKind::Sum(F64), &[1e308, 1e308])), (inf, 0.0));
    }

    #[test]
    fn products() {
        assert_eq!(parts(fold(FoldKind::Product(F32), &[3.0, 5.0, 0.25])), (3.75, 0.0));
        assert!(fold(FoldKind::Product(F32), &[1.0 + f64::from(f32::EPSILON); 2]).error > 0.0);
        assert!(!fold(FoldKind::Product(F32), &[1e30, 1e30, 1e-30]).is_certain());
        assert!(!fold(FoldKind::Product(F32), &[1e30, 1e-30, 1e-30]).is_certain());
        assert_eq!(parts(fold(FoldKind::Product(F32), &[0.0, 5.0])), (0.0, 0.0));
        assert!(!fold(FoldKind::Product(F32), &[0.0, 1e30, 1e30]).is_certain());
        let inf = f64::INFINITY;
        assert_eq!(parts(fold(FoldKind::Product(F32), &[inf, -2.0])), (-inf, 0.0));
        assert!(fold(FoldKind::Product(F32), &[inf, 0.0]).as_float().is_nan());
        assert_eq!(parts(fold(FoldKind::Product(F32), &[])), (1.0, 0.0));
        // The terms are exact products, of which the factors are multiplied in another order.
        let (a, b) = (4185f32, 89f32);
        let product = fold(FoldKind::Product(F32), &[f64::from(a * b); 2]);
        assert!(covers(product, (a * a) * (b * b)), "{product:?}");
    }

    #[test]
    fn identities_change_nothing() {
        for (op, width) in [
            (IntBinary::Add, 8),
            (IntBinary::Mul, 1),
            (IntBinary::Mul, 8),
            (IntBinary::MinSigned, 8),
            (IntBinary::MaxSigned, 8),
            (IntBinary::MinUnsigned, 8),
            (IntBinary::MaxUnsigned, 8),
            (IntBinary::And, 1),
            (IntBinary::Or, 1),
        ] {
            for value in if width == 1 { vec![-1, 0] } else { vec![-128, -1, 0, 1, 127] } {
                let mut fold = Fold::new(FoldKind::Int(op, width), None);
                fold.add(Scalar::int(value));
                assert_eq!(fold.finish().as_int(), value, "{op:?}");
            }
        }
        assert_eq!(parts(fold(FoldKind::Float(FloatBinary::MinNum, F32), &[2.0, 1.0])).0, 1.0);
        assert_eq!(parts(fold(FoldKind::Float(FloatBinary::MaxNum, F32), &[2.0, 3.0])).0, 3.0);
    }

    #[test]
    fn what_may_not_belong_makes_a_fold_uncertain() {
        let mut fold = Fold::new(FoldKind::Sum(F32), Some(Scalar::exact(1.0)));
        fold.add(Scalar::exact(1.0).uncertain());
        assert!(!fold.finish().is_certain());
    }

    /// Folds in f32 from the left, from the right, and pairwise.
    fn orders(terms: &[f32], op: fn(f32, f32) -> f32, identity: f32) -> Vec<f32> {
        let mut pairs = terms.to_vec();
        while 1 < pairs.len() {
            pairs = pairs.chunks(2).map(|pair| pair.iter().copied().reduce(op).unwrap()).collect();
        }
        let left = terms.iter().copied().fold(identity, op);
        let right = terms.iter().rev().copied().fold(identity, op);
        vec![left, right, pairs.first().copied().unwrap_or(identity)]
    }

    fn covers(bound: Scalar, found: f32) -> bool {
        let (value, found) = (bound.as_float(), f64::from(found));
        !bound.is_certain()
            || value == found
            || value.is_nan() && found.is_nan()
            || (value - found).abs() <= bound.error * SLACK
    }

    proptest! {
        #[test]
        fn any_order_stays_within_the_bound(
            terms in prop::collection::vec(prop_oneof![
                -1.0f32..1.0,
                (-20i32..20).prop_map(|power| 2f32.powi(power)),
                (-8i8..8).prop_map(f32::from),
                any::<f32>(),
            ], 0..12),
        ) {
            let wide: Vec<f64> = terms.iter().map(|term| (*term).into()).collect();
            let sum = fold(FoldKind::Sum(F32), &wide);
            for found in orders(&terms, |a, b| a + b, 0.0) {
                prop_assert!(covers(sum, found), "{sum:?} {} {found}", sum.as_float());
            }
            let product = fold(FoldKind::Product(F32), &wide);
            for found in orders(&terms, |a, b| a * b, 1.0) {
                prop_assert!(covers(product, found), "{product:?} {} {found}", product.as_float());
            }
        }
    }
}
