//! Random well-formed programs, with what the ambient application passes to them.

use super::random::Random;
use num_rational::BigRational;
use std::{collections::BTreeMap, fmt::Write};
use tc_dialects::{
    text::SourceFile,
    tml::syntax::{Checked, check, parse_program},
};

/// A program and what its variables hold in the beginning; `None` is undefined.
pub struct Program {
    pub text: String,
    pub checked: Checked,
    /// Per variable, row-major.
    pub initial: Vec<Vec<Option<BigRational>>>,
}

struct Generator {
    random: Random,
    /// Names by their extents.
    names: BTreeMap<Vec<i64>, Vec<String>>,
    /// The extents that dimensions have.
    extents: Vec<i64>,
    max_rank: usize,
    /// Whether divisions occur, which make most numbers undefined sooner or later.
    divides: bool,
}

/// The program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let choices = [1, 2, 3, 4, 5, 7, 9];
    let extents = (0..2 + random.below(2)).map(|_| *random.pick(&choices)).collect();
    let max_rank = 2 + random.below(3);
    let divides = random.chance(50);
    let mut generator = Generator { random, names: BTreeMap::new(), extents, max_rank, divides };
    generator.program()
}

impl Generator {
    fn extent(&mut self) -> i64 {
        *self.random.pick(&self.extents)
    }

    fn program(&mut self) -> Program {
        let mut text = String::new();
        // A scalar and a vector of each extent: everything else is made of them.
        let mut types: Vec<Vec<i64>> = vec![vec![]];
        types.extend(self.extents.iter().map(|extent| vec![*extent]));
        for _ in 0..2 + self.random.below(5) {
            let rank = self.random.below(self.max_rank + 1);
            types.push((0..rank).map(|_| self.extent()).collect());
        }
        let is_qualified = self.random.chance(30);
        let element = if self.random.chance(15) { "f32 " } else { "" };
        for (number, ty) in types.iter().enumerate() {
            let name = format!("x{number}");
            if is_qualified {
                text += ["in ", "in ", "out ", "inout ", ""][self.random.below(5)];
            }
            writeln!(text, "var {name} : {element}[{}]", joined(ty)).expect("strings take text");
            self.names.entry(ty.clone()).or_default().push(name);
        }
        for _ in 0..1 + self.random.below(5) {
            let ty = self.random.pick(&types).clone();
            let target = self.random.pick(&self.names[&ty]).clone();
            let depth = 1 + self.random.below(4);
            writeln!(text, "{target} = {}", self.expr(&ty, depth)).expect("strings take text");
        }
        let (program, mut diagnostics) = parse_program(&SourceFile::new("random.tml", &*text));
        let (checked, found) = check(&program);
        diagnostics.extend(found);
        assert!(!diagnostics.iter().any(|it| it.is_error()), "{text}\n{diagnostics:?}");
        let initial = self.initial(&checked);
        Program { text, checked, initial }
    }

    fn initial(&mut self, checked: &Checked) -> Vec<Vec<Option<BigRational>>> {
        let random = &mut self.random;
        let (any_undefined, zeros) = (random.chance(40), [0, 20, 60][random.below(3)]);
        let variables = checked.variables.iter().map(|variable| {
            let must_be_defined = variable.qualifier.is_some_and(|it| it.name().starts_with("in"));
            let is_undefined = any_undefined && !must_be_defined && random.chance(20);
            let holes = any_undefined && !must_be_defined && random.chance(30);
            let count = variable.ty.num_elements().expect("a small tensor");
            let mut elements = Vec::new();
            for _ in 0..count {
                let number = if random.chance(zeros) { 0 } else { random.between(-4, 4) };
                let divisor = if random.chance(20) { 2 } else { 1 };
                let number = BigRational::new(number.into(), divisor.into());
                // What is local holds nothing that the program was given.
                let hole = !variable.live_in || is_undefined || holes && random.chance(20);
                elements.push((!hole).then_some(number));
            }
            elements
        });
        variables.collect()
    }

    /// An expression of a type, as text that may stand to the left of an operator.
    fn expr(&mut self, ty: &[i64], depth: usize) -> String {
        if depth == 0 || self.random.chance(10) {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        loop {
            match self.random.weighted(&[2, 1, 1, 2, 1, 3]) {
                0 => {
                    let signs = if self.divides { "+-*/" } else { "+-*" };
                    let sign = signs.as_bytes()[self.random.below(signs.len())] as char;
                    let lhs = self.expr(ty, depth);
                    return format!("{lhs} {sign} {}", self.right(ty, depth));
                }
                1 if !ty.is_empty() => {
                    return format!("{} * {}", self.right(&[], depth / 2), self.right(ty, depth));
                }
                2 if !ty.is_empty() && self.divides => {
                    return format!("{} / {}", self.expr(ty, depth), self.right(&[], depth / 2));
                }
                3 => {
                    let (left, right) = ty.split_at(self.random.below(ty.len() + 1));
                    return format!("{} # {}", self.expr(left, depth), self.right(right, depth));
                }
                4 if 2 <= ty.len() => {
                    if 3 <= ty.len() && self.random.chance(50) {
                        return self.permuted(ty, depth);
                    }
                    let (i, j) = (self.random.below(ty.len()), self.random.below(ty.len()));
                    let mut operand = ty.to_vec();
                    operand.swap(i, j);
                    return format!("{} ^ [{} {}]", self.expr(&operand, depth), i + 1, j + 1);
                }
                5 if ty.len() <= self.max_rank => return self.contracted(ty, depth),
                _ => {}
            }
        }
    }

    /// An expression that may stand to the right of an operator.
    fn right(&mut self, ty: &[i64], depth: usize) -> String {
        let text = self.expr(ty, depth);
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            text
        } else {
            format!("({text})")
        }
    }

    fn permuted(&mut self, ty: &[i64], depth: usize) -> String {
        let mut order: Vec<usize> = (0..ty.len()).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, self.random.below(place + 1));
        }
        let mut operand = vec![0; ty.len()];
        for (extent, place) in ty.iter().zip(&order) {
            operand[*place] = *extent;
        }
        let order: Vec<_> = order.iter().map(|it| *it as i64 + 1).collect();
        format!("{} ^ [{}]", self.expr(&operand, depth), joined(&order))
    }

    fn contracted(&mut self, ty: &[i64], depth: usize) -> String {
        let num_pairs = if ty.len() < 2 && self.random.chance(30) { 2 } else { 1 };
        // The dimensions of the operand: those kept, and the pairs.
        let mut dims: Vec<(i64, Option<usize>)> = ty.iter().map(|it| (*it, None)).collect();
        for pair in 0..num_pairs {
            let extent = self.extent();
            for _ in 0..2 {
                let place = self.random.below(dims.len() + 1);
                dims.insert(place, (extent, Some(pair)));
            }
        }
        let places = |pair| {
            let found = dims.iter().enumerate().filter(move |(_, dim)| dim.1 == Some(pair));
            let mut found: Vec<_> = found.map(|(place, _)| place as i64 + 1).collect();
            if pair % 2 == 1 {
                found.reverse();
            }
            joined(&found)
        };
        let pairs: Vec<_> = (0..num_pairs).map(places).collect();
        let operand: Vec<_> = dims.iter().map(|dim| dim.0).collect();
        // Contractions of products are the usual case.
        let inner = match self.random.chance(60) {
            true => {
                let (left, right) = operand.split_at(self.random.below(operand.len() + 1));
                format!("{} # {}", self.expr(left, depth), self.right(right, depth))
            }
            false => self.expr(&operand, depth),
        };
        format!("{inner} . [{}]", pairs.join(", "))
    }

    /// A variable, or a product of variables.
    fn leaf(&mut self, ty: &[i64]) -> String {
        if let Some(names) = self.names.get(ty) {
            return self.random.pick(names).clone();
        }
        let mut cut = 1 + self.random.below(ty.len() - 1);
        if self.names.contains_key(&ty[..2]) {
            cut = 2;
        }
        let (left, right) = ty.split_at(cut);
        let (left, right) = (self.leaf(left), self.leaf(right));
        if right.contains(' ') {
            format!("{left} # ({right})")
        } else {
            format!("{left} # {right}")
        }
    }
}

fn joined(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
}
