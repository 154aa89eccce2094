//! Random HLO modules of odd sizes, as text.
//!
//! Floats hold small integers: the generator knows how large each value can be, and leaves out
//! what would round.

use super::{
    random::Random,
    reference::{Tensor, join},
};
use std::fmt::Write as _;
use tc_dialects::{
    element::{ElementKind, ElementType},
    hlo::ArrayShape,
};

const FLOATS: [ElementType; 6] = [
    ElementType::F32,
    ElementType::F64,
    ElementType::F16,
    ElementType::BF16,
    ElementType::F8E4M3FN,
    ElementType::F8E5M2,
];
const INTEGERS: [ElementType; 9] = [
    ElementType::S32,
    ElementType::U32,
    ElementType::S8,
    ElementType::U8,
    ElementType::S16,
    ElementType::S64,
    ElementType::U64,
    ElementType::S4,
    ElementType::U4,
];
const EXTENTS: [i64; 10] = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17];
const MAX_ELEMENTS: i64 = 1200;
/// How large the values of parameters are.
const FIRST_LIMIT: i128 = 4;

/// A module, and the inputs to run it with.
pub struct Program {
    pub text: String,
    pub inputs: Vec<Tensor>,
}

/// A value that has been defined.
#[derive(Clone)]
struct Var {
    name: String,
    shape: ArrayShape,
    /// No element, and no part of a complex number, is further from 0.
    limit: i128,
    is_used: bool,
}

/// The greatest integer up to which a type holds all.
fn greatest(element: ElementType) -> i128 {
    match element {
        ElementType::F64 | ElementType::C128 => 1 << 50,
        ElementType::F32 | ElementType::C64 => 1 << 24,
        ElementType::F16 => 1 << 11,
        ElementType::BF16 => 1 << 8,
        ElementType::F8E4M3FN => 1 << 4,
        ElementType::F8E5M2 => 1 << 3,
        element => element.integer_range().1,
    }
}

/// Whether operations on large values of a type round.
fn rounds(element: ElementType) -> bool {
    element.is_float() || element.is_complex()
}

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
    numbers.join(",")
}

fn text_of(shape: &ArrayShape) -> String {
    format!("{}[{}]", shape.element_type, list(&shape.dims))
}

struct Generator {
    random: Random,
    /// Whether there may be complex numbers.
    has_complex: bool,
    lines: String,
    computations: Vec<(String, String)>,
    vars: Vec<Var>,
    inputs: Vec<Tensor>,
}

/// A module from a seed.
pub fn generate(seed: u64) -> Program {
    let mut it = Generator {
        random: Random::new(seed),
        has_complex: seed % 4 == 3,
        lines: String::new(),
        computations: Vec::new(),
        vars: Vec::new(),
        inputs: Vec::new(),
    };
    for _ in 0..it.random.between(1, 2) {
        let element = match it.has_complex {
            true => *it.random.pick(&[ElementType::C64, ElementType::C128, ElementType::F32]),
            false => it.element(),
        };
        let dims = it.dims();
        it.parameter(element, dims);
    }
    let wanted = it.random.between(3, 9);
    let mut made = 0;
    for _ in 0..100 {
        made += i64::from(it.instruction().is_some());
        if wanted <= made {
            break;
        }
    }
    it.finish()
}

impl Generator {
    fn element(&mut self) -> ElementType {
        if self.random.chance(55) {
            *self.random.pick(&FLOATS)
        } else if self.random.chance(85) {
            *self.random.pick(&INTEGERS)
        } else {
            ElementType::Pred
        }
    }

    fn dims(&mut self) -> Vec<i64> {
        let rank = self.random.weighted(&[1, 4, 5, 4, 2]);
        let mut dims: Vec<i64> = Vec::new();
        for _ in 0..rank {
            let extent = if self.random.chance(1) { 0 } else { *self.random.pick(&EXTENTS) };
            let count: i64 = dims.iter().product();
            dims.push(if MAX_ELEMENTS < count * extent { 1 } else { extent });
        }
        dims
    }

    fn permutation(&mut self, count: usize) -> Vec<i64> {
        let mut numbers: Vec<_> = (0..count as i64).collect();
        for last in (1..count).rev() {
            numbers.swap(last, self.random.below(last + 1));
        }
        numbers
    }

    /// Some of the numbers below `count`, in order.
    fn subset(&mut self, count: usize, percent: usize) -> Vec<i64> {
        (0..count as i64).filter(|_| self.random.chance(percent)).collect()
    }

    fn parameter(&mut self, element: ElementType, dims: Vec<i64>) -> Var {
        let shape = ArrayShape::new(element, dims);
        let is_wide = element.is_integer() && self.random.chance(30);
        let value = |random: &mut Random| {
            if element.is_complex() {
                let mut part = || random.between(-FIRST_LIMIT as i64, FIRST_LIMIT as i64);
                return join(part(), part());
            }
            if is_wide {
                let (low, _) = element.integer_range();
                return low + i128::from(random.next()) % (1 << element.bits());
            }
            let low = if low_of(element) < 0 { -FIRST_LIMIT } else { 0 };
            let high = if element == ElementType::Pred { 1 } else { FIRST_LIMIT };
            i128::from(random.between(low as i64, high as i64))
        };
        let count = shape.num_elements().expect("a size");
        let elements = (0..count).map(|_| value(&mut self.random)).collect();
        let limit = if is_wide { greatest(element) + 1 } else { FIRST_LIMIT };
        self.indices(Tensor { shape, elements }, limit)
    }

    /// A parameter with these elements.
    fn indices(&mut self, tensor: Tensor, limit: i128) -> Var {
        let number = self.inputs.len();
        let shape = tensor.shape.clone();
        self.inputs.push(tensor);
        self.define(shape, limit, &format!("parameter({number})"), &[])
    }

    fn define(&mut self, shape: ArrayShape, limit: i128, what: &str, uses: &[&Var]) -> Var {
        let name = format!("v{}", self.vars.len());
        writeln!(self.lines, "  {name} = {} {what}", text_of(&shape)).expect("text");
        for used in uses {
            let place = self.vars.iter_mut().find(|var| var.name == used.name);
            place.expect("a value that was defined").is_used = true;
        }
        let limit =
            if rounds(shape.element_type) { limit } else { greatest(shape.element_type) + 1 };
        let var = Var { name, shape, limit, is_used: false };
        self.vars.push(var.clone());
        var
    }

    /// The result of an instruction, unless it is too large or could round.
    fn result(
        &mut self,
        element: ElementType,
        dims: Vec<i64>,
        limit: i128,
        what: &str,
        uses: &[&Var],
    ) -> Option<Var> {
        let shape = ArrayShape::new(element, dims);
        let fits = shape.num_elements().is_some_and(|count| count <= MAX_ELEMENTS);
        let is_exact = !rounds(element) || limit <= greatest(element);
        (fits && is_exact).then(|| self.define(shape, limit, what, uses))
    }

    fn any(&mut self) -> Var {
        // Recent values are taken more often.
        let count = self.vars.len();
        let recent = if self.random.chance(60) { count.saturating_sub(3) } else { 0 };
        self.vars[recent + self.random.below(count - recent)].clone()
    }

    /// A value of this shape: one there is, or a new parameter.
    fn like(&mut self, shape: &ArrayShape) -> Var {
        let fitting: Vec<_> = self.vars.iter().filter(|var| var.shape == *shape).cloned().collect();
        if self.random.chance(60) && !fitting.is_empty() {
            return self.random.pick(&fitting).clone();
        }
        self.parameter(shape.element_type, shape.dims.clone())
    }

    fn scalar(&mut self, element: ElementType, value: i64) -> Var {
        let limit = i128::from(value.abs());
        let text = match element {
            ElementType::Pred => (value != 0).to_string(),
            _ if element.is_complex() => format!("({value}, 0)"),
            _ => value.to_string(),
        };
        self.define(ArrayShape::new(element, vec![]), limit, &format!("constant({text})"), &[])
    }

    /// A computation of two scalars.
    fn combiner(&mut self, element: ElementType, opcode: &str) -> String {
        let name = format!("{}_{element}", opcode.replace('-', "_"));
        let scalar = format!("{element}[]");
        let text = format!(
            "{name} {{\n  x = {scalar} parameter(0)\n  y = {scalar} parameter(1)\n  \
             ROOT z = {scalar} {opcode}(x, y)\n}}\n"
        );
        self.computation(name, text)
    }

    /// A computation that compares two scalars, the first of `count` pairs.
    fn comparison(&mut self, types: &[ElementType], direction: &str) -> String {
        let names: Vec<_> = types.iter().map(|element| element.to_string()).collect();
        let name = format!("{direction}_{}", names.join("_"));
        let mut text = format!("{name} {{\n");
        for (number, element) in types.iter().enumerate() {
            for (side, place) in [("x", 2 * number), ("y", 2 * number + 1)] {
                writeln!(text, "  {side}{number} = {element}[] parameter({place})").expect("text");
            }
        }
        writeln!(text, "  ROOT z = pred[] compare(x0, y0), direction={direction}\n}}")
            .expect("text");
        self.computation(name, text)
    }

    fn computation(&mut self, name: String, text: String) -> String {
        if self.computations.iter().all(|(other, _)| *other != name) {
            self.computations.push((name.clone(), text));
        }
        name
    }

    /// How values of a type are combined, and how large `count` of them can become.
    fn reducer(&mut self, element: ElementType, limit: i128, count: i64) -> (String, i64, i128) {
        let sum = limit.saturating_mul(i128::from(count)) + 1;
        let adds = !rounds(element) || sum <= greatest(element);
        let choices: &[&str] = match element.kind() {
            ElementKind::Pred => &["and", "or"],
            ElementKind::Complex => &["add"],
            _ if adds => &["add", "maximum", "minimum", "add"],
            _ => &["maximum", "minimum"],
        };
        let opcode = *self.random.pick(choices);
        let name = self.combiner(element, opcode);
        let limit = if opcode == "add" { sum } else { limit.max(1) };
        // Elements of few bits and complex numbers are folded by a region, for which the contract of HLO asks
        // for a neutral start.
        let has_few_bits = !element.is_float() && (2..8).contains(&element.bits());
        let is_neutral = has_few_bits || element.is_complex();
        let first = match opcode {
            _ if !is_neutral => 1,
            "add" => 0,
            "maximum" => low_of(element) as i64,
            _ => greatest(element) as i64,
        };
        (name, first, limit)
    }

    /// Adds an instruction, if what was drawn can be done.
    fn instruction(&mut self) -> Option<Var> {
        let x = self.any();
        if x.shape.element_type.is_complex() {
            return self.of_complex(&x);
        }
        if self.has_complex && self.random.chance(40) {
            let complex = match x.shape.element_type {
                ElementType::F32 => ElementType::C64,
                ElementType::F64 => ElementType::C128,
                _ => return None,
            };
            let y = self.like(&x.shape);
            let what = format!("complex({}, {})", x.name, y.name);
            return self.result(
                complex,
                x.shape.dims.clone(),
                x.limit.max(y.limit),
                &what,
                &[&x, &y],
            );
        }
        match self
            .random
            .weighted(&[5, 8, 3, 3, 3, 5, 4, 5, 3, 5, 5, 3, 2, 6, 6, 3, 3, 3, 4, 4, 4, 2, 3, 2, 2])
        {
            0 => self.unary(&x),
            1 => self.binary(&x),
            2 => self.select(&x),
            3 => self.clamp(&x),
            4 => self.convert(&x),
            5 => self.broadcast(&x),
            6 => self.reshape(&x),
            7 => self.transpose(&x),
            8 => self.reverse(&x),
            9 => self.slice(&x),
            10 => self.pad(&x),
            11 => self.concatenate(&x),
            12 => self.iota(),
            13 => self.reduce(&x),
            14 => self.dot(&x),
            15 => self.convolution(),
            16 => self.dynamic_slice(&x),
            17 => self.dynamic_update_slice(&x),
            18 => self.gather(&x),
            19 => self.scatter(&x),
            20 => self.reduce_window(&x),
            21 => self.select_and_scatter(&x),
            22 => self.sort(&x),
            23 => self.while_loop(&x),
            _ => self.conditional(&x),
        }
    }

    /// An instruction on complex numbers.
    fn of_complex(&mut self, x: &Var) -> Option<Var> {
        match self.random.weighted(&[3, 3, 8, 3, 4, 3, 4, 3, 4, 5, 3, 4, 6, 3, 3, 4]) {
            0 => self.same(x, x.limit, &format!("negate({})", x.name), &[x]),
            1 => {
                let opcode = *self.random.pick(&["real", "imag"]);
                let (part, dims) = (x.shape.element_type.part(), x.shape.dims.clone());
                self.result(part, dims, x.limit, &format!("{opcode}({})", x.name), &[x])
            }
            2 => {
                let y = self.like(&x.shape);
                let opcode = *self.random.pick(&["add", "subtract", "multiply"]);
                let limit = match opcode {
                    "multiply" => 2 * x.limit.saturating_mul(y.limit),
                    _ => x.limit + y.limit,
                };
                self.same(x, limit, &format!("{opcode}({}, {})", x.name, y.name), &[x, &y])
            }
            3 => self.select(x),
            4 => self.broadcast(x),
            5 => self.reshape(x),
            6 => self.transpose(x),
            7 => self.reverse(x),
            8 => self.slice(x),
            9 => self.pad(x),
            10 => self.concatenate(x),
            11 => self.reduce(x),
            12 => self.dot(x),
            13 => self.dynamic_slice(x),
            14 => self.dynamic_update_slice(x),
            _ => self.gather(x),
        }
    }

    fn same(&mut self, x: &Var, limit: i128, what: &str, uses: &[&Var]) -> Option<Var> {
        self.result(x.shape.element_type, x.shape.dims.clone(), limit, what, uses)
    }

    fn unary(&mut self, x: &Var) -> Option<Var> {
        let choices: &[&str] = match x.shape.element_type.kind() {
            ElementKind::Pred => &["not"],
            ElementKind::Float => &["abs", "negate", "sign", "floor", "round-nearest-even"],
            ElementKind::Signed => &["abs", "negate", "not", "sign"],
            _ => &["negate", "not"],
        };
        let opcode = *self.random.pick(choices);
        self.same(x, x.limit.max(1), &format!("{opcode}({})", x.name), &[x])
    }

    fn binary(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        let y = self.like(&x.shape);
        let operands = format!("({}, {})", x.name, y.name);
        if self.random.chance(15) {
            let direction = *self.random.pick(&["EQ", "NE", "GE", "GT", "LE", "LT"]);
            let what = format!("compare{operands}, direction={direction}");
            return self.result(ElementType::Pred, x.shape.dims.clone(), 1, &what, &[x, &y]);
        }
        let choices: &[&str] = match element.kind() {
            ElementKind::Pred => &["and", "or", "xor"],
            ElementKind::Float => &["add", "subtract", "multiply", "maximum", "minimum"],
            _ => &[
                "add",
                "subtract",
                "multiply",
                "maximum",
                "minimum",
                "and",
                "or",
                "xor",
                "divide",
                "remainder",
            ],
        };
        let opcode = *self.random.pick(choices);
        let limit = match opcode {
            "add" | "subtract" => x.limit + y.limit,
            "multiply" => x.limit.saturating_mul(y.limit),
            _ => x.limit.max(y.limit),
        };
        self.same(x, limit, &format!("{opcode}{operands}"), &[x, &y])
    }

    fn select(&mut self, x: &Var) -> Option<Var> {
        let y = self.like(&x.shape);
        let p = self.like(&ArrayShape::new(ElementType::Pred, x.shape.dims.clone()));
        let what = format!("select({}, {}, {})", p.name, x.name, y.name);
        self.same(x, x.limit.max(y.limit), &what, &[x, &y, &p])
    }

    fn clamp(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        if element == ElementType::Pred {
            return None;
        }
        let low = if low_of(element) < 0 { -3 } else { 1 };
        let (low, high) = (self.scalar(element, low), self.scalar(element, 4));
        let what = format!("clamp({}, {}, {})", low.name, x.name, high.name);
        self.same(x, 4, &what, &[&low, x, &high])
    }

    fn convert(&mut self, x: &Var) -> Option<Var> {
        let to = self.element();
        // Only integers that both hold; into narrow integers they wrap.
        if x.shape.element_type == to || (to.is_float() && greatest(to) < x.limit) {
            return None;
        }
        let limit = if x.shape.element_type == ElementType::Pred { 1 } else { x.limit };
        let what = format!("convert({})", x.name);
        self.result(to, x.shape.dims.clone(), limit, &what, &[x])
    }

    fn broadcast(&mut self, x: &Var) -> Option<Var> {
        let added = self.random.between(1, 2) as usize;
        let rank = x.shape.rank() + added;
        if 5 < rank {
            return None;
        }
        let mut places = self.permutation(rank);
        places.truncate(x.shape.rank());
        // XLA asks for dimensions in order.
        places.sort_unstable();
        let mut dims: Vec<_> = (0..rank).map(|_| *self.random.pick(&EXTENTS[..6])).collect();
        for (place, extent) in places.iter().zip(&x.shape.dims) {
            dims[*place as usize] = *extent;
        }
        let what = format!("broadcast({}), dimensions={{{}}}", x.name, list(&places));
        self.result(x.shape.element_type, dims, x.limit, &what, &[x])
    }

    fn reshape(&mut self, x: &Var) -> Option<Var> {
        let mut rest = x.shape.num_elements().filter(|count| 0 < *count)?;
        let mut dims = Vec::new();
        for _ in 0..self.random.below(4) {
            let divisors: Vec<_> = (1..=rest).filter(|it| rest % it == 0).collect();
            let divisor = *self.random.pick(&divisors);
            dims.push(divisor);
            rest /= divisor;
        }
        if rest != 1 || (dims.is_empty() && self.random.chance(50)) {
            dims.insert(self.random.below(dims.len() + 1), rest);
        }
        let what = format!("reshape({})", x.name);
        self.result(x.shape.element_type, dims, x.limit, &what, &[x])
    }

    fn transpose(&mut self, x: &Var) -> Option<Var> {
        let order = self.permutation(x.shape.rank());
        let dims = order.iter().map(|dim| x.shape.dims[*dim as usize]).collect();
        let what = format!("transpose({}), dimensions={{{}}}", x.name, list(&order));
        self.result(x.shape.element_type, dims, x.limit, &what, &[x])
    }

    fn reverse(&mut self, x: &Var) -> Option<Var> {
        let dims = self.subset(x.shape.rank(), 60);
        let what = format!("reverse({}), dimensions={{{}}}", x.name, list(&dims));
        self.same(x, x.limit, &what, &[x])
    }

    fn slice(&mut self, x: &Var) -> Option<Var> {
        let (mut dims, mut texts) = (Vec::new(), Vec::new());
        for extent in &x.shape.dims {
            let start = self.random.between(0, (extent - 1).max(0)).min(*extent);
            let limit = self.random.between(start, *extent).max((start + 1).min(*extent));
            let stride = self.random.between(1, 3);
            dims.push((limit - start + stride - 1) / stride);
            texts.push(format!("[{start}:{limit}:{stride}]"));
        }
        let what = format!("slice({}), slice={{{}}}", x.name, texts.join(", "));
        self.result(x.shape.element_type, dims, x.limit, &what, &[x])
    }

    fn pad(&mut self, x: &Var) -> Option<Var> {
        if x.shape.rank() == 0 {
            return None;
        }
        let (mut dims, mut texts) = (Vec::new(), Vec::new());
        for extent in &x.shape.dims {
            let (low, high) = (self.random.between(-2, 3), self.random.between(-2, 3));
            let interior = self.random.weighted(&[4, 1, 1]) as i64;
            let dilated = extent + interior * (extent - 1).max(0);
            dims.push(dilated + low + high);
            texts.push(format!("{low}_{high}_{interior}"));
        }
        if dims.iter().any(|extent| *extent < 0) {
            return None;
        }
        // Zero is the only complex number that a guard has.
        let is_zero = x.shape.element_type.is_complex() && self.random.chance(50);
        let value = self.scalar(x.shape.element_type, i64::from(!is_zero));
        let what = format!("pad({}, {}), padding={}", x.name, value.name, texts.join("x"));
        self.result(x.shape.element_type, dims, x.limit.max(1), &what, &[x, &value])
    }

    fn concatenate(&mut self, x: &Var) -> Option<Var> {
        let rank = x.shape.rank();
        if rank == 0 {
            return None;
        }
        let dim = self.random.below(rank);
        let mut other = x.shape.clone();
        other.dims[dim] = *self.random.pick(&EXTENTS);
        let y = self.like(&other);
        let mut parts = vec![x, &y];
        if self.random.chance(30) {
            parts.push(x);
        }
        let mut dims = x.shape.dims.clone();
        dims[dim] = parts.iter().map(|part| part.shape.dims[dim]).sum();
        let names: Vec<_> = parts.iter().map(|part| part.name.as_str()).collect();
        let what = format!("concatenate({}), dimensions={{{dim}}}", names.join(", "));
        let limit = x.limit.max(y.limit);
        self.result(x.shape.element_type, dims, limit, &what, &[x, &y])
    }

    fn iota(&mut self) -> Option<Var> {
        let (element, dims) = (self.element(), self.dims());
        if dims.is_empty() || element == ElementType::Pred {
            return None;
        }
        let dim = self.random.below(dims.len());
        let limit = i128::from(dims[dim]);
        self.result(element, dims, limit, &format!("iota(), iota_dimension={dim}"), &[])
    }

    fn reduce(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        let reduced = self.subset(x.shape.rank(), 50);
        let kept = (0..x.shape.rank()).filter(|dim| !reduced.contains(&(*dim as i64)));
        let dims: Vec<_> = kept.map(|dim| x.shape.dims[dim]).collect();
        let count = reduced.iter().map(|dim| x.shape.dims[*dim as usize]).product();
        let (name, first, limit) = self.reducer(element, x.limit, count);
        let first = self.scalar(element, first);
        let what = format!(
            "reduce({}, {}), dimensions={{{}}}, to_apply={name}",
            x.name,
            first.name,
            list(&reduced)
        );
        self.result(element, dims, limit, &what, &[x, &first])
    }

    fn dot(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        let rank = x.shape.rank();
        let mut order = self.permutation(rank);
        let num_batch = self.random.below(rank.min(1) + 1);
        let rest = rank - num_batch;
        let num_contracted = self.random.below(rest.min(2) + 1);
        let batch: Vec<_> = order.drain(..num_batch).collect();
        let contracted: Vec<_> = order.drain(..num_contracted).collect();
        // The dimensions of the other operand, in any order.
        let mut roles: Vec<(usize, i64)> = Vec::new();
        roles.extend(batch.iter().map(|dim| (0, x.shape.dims[*dim as usize])));
        roles.extend(contracted.iter().map(|dim| (1, x.shape.dims[*dim as usize])));
        for _ in 0..self.random.below(3) {
            roles.push((2, *self.random.pick(&EXTENTS)));
        }
        let places = self.permutation(roles.len());
        let mut dims = vec![0; roles.len()];
        let (mut rhs_batch, mut rhs_contracted) = (Vec::new(), Vec::new());
        for ((role, extent), place) in roles.iter().zip(&places) {
            dims[*place as usize] = *extent;
            match role {
                0 => rhs_batch.push(*place),
                1 => rhs_contracted.push(*place),
                _ => {}
            }
        }
        let mut result: Vec<_> = batch.iter().map(|dim| x.shape.dims[*dim as usize]).collect();
        let free = |dims: &[i64], taken: [&[i64]; 2]| -> Vec<i64> {
            let is_free = |dim: &usize| taken.iter().all(|list| !list.contains(&(*dim as i64)));
            (0..dims.len()).filter(is_free).map(|dim| dims[dim]).collect()
        };
        result.extend(free(&x.shape.dims, [&batch, &contracted]));
        result.extend(free(&dims, [&rhs_batch, &rhs_contracted]));
        if MAX_ELEMENTS < dims.iter().product::<i64>() || element == ElementType::Pred {
            return None;
        }
        // Products may mix floats and integers.
        let mixes = element.is_float() && self.random.chance(20);
        let other = if mixes { *self.random.pick(&INTEGERS) } else { element };
        let y = self.like(&ArrayShape::new(other, dims));
        let count: i64 = contracted.iter().map(|dim| x.shape.dims[*dim as usize]).product();
        let mut limit = x.limit.saturating_mul(y.limit).saturating_mul(i128::from(count));
        if element.is_complex() {
            limit = limit.saturating_mul(2);
        }
        let mut what = format!("dot({}, {})", x.name, y.name);
        for (name, dims) in [
            ("lhs_batch_dims", &batch),
            ("lhs_contracting_dims", &contracted),
            ("rhs_batch_dims", &rhs_batch),
            ("rhs_contracting_dims", &rhs_contracted),
        ] {
            if !dims.is_empty() {
                write!(what, ", {name}={{{}}}", list(dims)).expect("text");
            }
        }
        self.result(element, result, limit, &what, &[x, &y])
    }

    /// A window over these extents, and how many there are in each dimension.
    fn window(
        &mut self,
        extents: &[i64],
        sizes: &[i64],
        is_dilated: bool,
    ) -> Option<(String, Vec<i64>)> {
        let (mut counts, mut parts) = (Vec::new(), [const { Vec::new() }; 5]);
        for (extent, size) in extents.iter().zip(sizes) {
            let stride = self.random.between(1, 3);
            let mut dilation = || if is_dilated && self.random.chance(25) { 2 } else { 1 };
            let (base, taps) = (dilation(), dilation());
            let (low, high) = (self.random.between(0, 2), self.random.between(0, 2));
            let padded = (extent - 1) * base + 1 + low + high;
            let covered = (size - 1) * taps + 1;
            if *extent == 0 || padded < covered {
                return None;
            }
            counts.push((padded - covered) / stride + 1);
            let texts = [
                size.to_string(),
                stride.to_string(),
                format!("{low}_{high}"),
                base.to_string(),
                taps.to_string(),
            ];
            parts.iter_mut().zip(texts).for_each(|(part, text)| part.push(text));
        }
        let names = ["size", "stride", "pad", "lhs_dilate", "rhs_dilate"];
        let fields =
            names.iter().zip(&parts).map(|(name, part)| format!("{name}={}", part.join("x")));
        Some((fields.collect::<Vec<_>>().join(" "), counts))
    }

    fn convolution(&mut self) -> Option<Var> {
        let element = self.element();
        if element == ElementType::Pred {
            return None;
        }
        let spatial = self.random.between(1, 2) as usize;
        let groups = self.random.between(1, 2);
        let features = self.random.between(1, 3);
        let outputs = groups * self.random.between(1, 3);
        let batch = self.random.between(1, 3);
        let extents: Vec<_> = (0..spatial).map(|_| self.random.between(3, 7)).collect();
        let sizes: Vec<_> = (0..spatial).map(|_| self.random.between(1, 3)).collect();
        let (window, counts) = self.window(&extents, &sizes, true)?;
        // Names of dimensions with their extents, in any order.
        let mut layout = |letters: [(char, i64); 2], extents: &[i64]| {
            let mut all = letters.to_vec();
            all.extend(('0'..).zip(extents.iter().copied()));
            let order = self.permutation(all.len());
            let placed: Vec<_> = order.iter().map(|place| all[*place as usize]).collect();
            let label: String = placed.iter().map(|dim| dim.0).collect();
            (label, placed.iter().map(|dim| dim.1).collect::<Vec<_>>())
        };
        let lhs = layout([('b', batch), ('f', groups * features)], &extents);
        let rhs = layout([('i', features), ('o', outputs)], &sizes);
        let out = layout([('b', batch), ('f', outputs)], &counts);
        let x = self.like(&ArrayShape::new(element, lhs.1));
        let y = self.like(&ArrayShape::new(element, rhs.1));
        let terms = i128::from(features * sizes.iter().product::<i64>());
        let limit = x.limit.saturating_mul(y.limit).saturating_mul(terms);
        let mut what = format!(
            "convolution({}, {}), window={{{window}}}, dim_labels={}_{}->{}",
            x.name, y.name, lhs.0, rhs.0, out.0
        );
        if groups != 1 {
            write!(what, ", feature_group_count={groups}").expect("text");
        }
        self.result(element, out.1, limit, &what, &[&x, &y])
    }

    /// Scalars where a slice may start, some of them outside.
    fn starts(&mut self, dims: &[i64]) -> Vec<Var> {
        let element = *self.random.pick(&[ElementType::S32, ElementType::U8, ElementType::S64]);
        let low = if low_of(element) < 0 { -2 } else { 0 };
        let start = |it: &mut Self, extent: &i64| {
            let shape = ArrayShape::new(element, vec![]);
            let value = i128::from(it.random.between(low, extent + 2)).min(greatest(element));
            it.indices(Tensor { shape, elements: vec![value] }, value)
        };
        dims.iter().map(|extent| start(self, extent)).collect()
    }

    /// The sizes of a part of an array, not empty unless the array is.
    fn sizes_within(&mut self, dims: &[i64]) -> Vec<i64> {
        dims.iter().map(|extent| self.random.between(*extent.min(&1), *extent)).collect()
    }

    fn dynamic_slice(&mut self, x: &Var) -> Option<Var> {
        let sizes = self.sizes_within(&x.shape.dims);
        let starts = self.starts(&x.shape.dims);
        let names: Vec<_> = starts.iter().map(|start| format!(", {}", start.name)).collect();
        let what = format!(
            "dynamic-slice({}{}), dynamic_slice_sizes={{{}}}",
            x.name,
            names.concat(),
            list(&sizes)
        );
        let uses: Vec<_> = std::iter::once(x).chain(&starts).collect();
        self.result(x.shape.element_type, sizes, x.limit, &what, &uses)
    }

    fn dynamic_update_slice(&mut self, x: &Var) -> Option<Var> {
        let sizes = self.sizes_within(&x.shape.dims);
        let update = self.like(&ArrayShape::new(x.shape.element_type, sizes));
        let starts = self.starts(&x.shape.dims);
        let names: Vec<_> = starts.iter().map(|start| format!(", {}", start.name)).collect();
        let what = format!("dynamic-update-slice({}, {}{})", x.name, update.name, names.concat());
        let uses: Vec<_> = [x, &update].into_iter().chain(&starts).collect();
        self.same(x, x.limit.max(update.limit), &what, &uses)
    }

    /// How an array is addressed by index vectors.
    fn addressing(&mut self, x: &Var) -> Option<Addressing> {
        let rank = x.shape.rank();
        if rank == 0 || x.shape.dims.contains(&0) {
            return None;
        }
        let mut order = self.permutation(rank);
        let batching = (2 < rank && self.random.chance(25)).then(|| order.remove(0));
        let num_indexed = self.random.between(1, order.len() as i64) as usize;
        let indexed = order[..num_indexed].to_vec();
        let mut sizes: Vec<_> =
            x.shape.dims.iter().map(|extent| self.random.between(1, *extent)).collect();
        let mut dropped = Vec::new();
        for dim in 0..rank as i64 {
            if Some(dim) == batching {
                sizes[dim as usize] = 1;
            } else if self.random.chance(40) {
                sizes[dim as usize] = 1;
                dropped.push(dim);
            }
        }
        // The batch dimensions of the indices, with the dimension of the components put in.
        let mut batch: Vec<_> =
            (0..self.random.below(3)).map(|_| self.random.between(1, 4)).collect();
        let mut batched_at = None;
        if let Some(dim) = batching {
            let place = self.random.below(batch.len() + 1);
            batch.insert(place, x.shape.dims[dim as usize]);
            batched_at = Some(place as i64);
        }
        let vector_dim = self.random.below(batch.len() + 1);
        let mut dims = batch.clone();
        if num_indexed != 1 || vector_dim < batch.len() || self.random.chance(50) {
            dims.insert(vector_dim, num_indexed as i64);
            batched_at = batched_at.map(|at| at + i64::from(vector_dim as i64 <= at));
        }
        let element = *self.random.pick(&[ElementType::S32, ElementType::U8, ElementType::S64]);
        let low = if low_of(element) < 0 { -1 } else { 0 };
        let shape = ArrayShape::new(element, dims);
        let largest = x.shape.dims.iter().copied().max().unwrap_or(0);
        let highest = largest.min(greatest(element) as i64);
        let count = shape.num_elements().expect("a size");
        let elements = (0..count).map(|_| i128::from(self.random.between(low, highest))).collect();
        let indices = self.indices(Tensor { shape, elements }, i128::from(highest));
        let kept: Vec<_> = (0..rank as i64)
            .filter(|dim| !dropped.contains(dim) && Some(*dim) != batching)
            .map(|dim| sizes[dim as usize])
            .collect();
        // Where the dimensions of the slice stand among those of the batch.
        let total = batch.len() + kept.len();
        let mut places = self.permutation(total);
        places.truncate(kept.len());
        places.sort_unstable();
        let mut rest = batch.into_iter();
        let dims = (0..total as i64).map(|dim| match places.iter().position(|it| *it == dim) {
            Some(number) => kept[number],
            None => rest.next().expect("a batch dimension"),
        });
        let dims: Vec<_> = dims.collect();
        let list_of = |dim: Option<i64>| dim.map_or(String::new(), |dim| dim.to_string());
        Some(Addressing {
            indices,
            dims,
            window_dims: list(&places),
            dropped: list(&dropped),
            indexed: list(&indexed),
            batching: batching.map(|dim| (list_of(Some(dim)), list_of(batched_at))),
            vector_dim,
            sizes: list(&sizes),
        })
    }

    fn gather(&mut self, x: &Var) -> Option<Var> {
        let at = self.addressing(x)?;
        let mut what = format!(
            "gather({}, {}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, \
             start_index_map={{{}}}, index_vector_dim={}, slice_sizes={{{}}}",
            x.name,
            at.indices.name,
            at.window_dims,
            at.dropped,
            at.indexed,
            at.vector_dim,
            at.sizes
        );
        if let Some((of, at)) = &at.batching {
            write!(what, ", operand_batching_dims={{{of}}}, start_indices_batching_dims={{{at}}}")
                .expect("text");
        }
        self.result(x.shape.element_type, at.dims, x.limit, &what, &[x, &at.indices])
    }

    fn scatter(&mut self, x: &Var) -> Option<Var> {
        let at = self.addressing(x)?;
        let element = x.shape.element_type;
        let shape = ArrayShape::new(element, at.dims);
        let count = shape.num_elements().filter(|count| *count <= MAX_ELEMENTS)?;
        let update = self.like(&shape);
        let (name, _, limit) = self.reducer(element, x.limit.max(update.limit), count + 1);
        let mut what = format!(
            "scatter({}, {}, {}), update_window_dims={{{}}}, inserted_window_dims={{{}}}, \
             scatter_dims_to_operand_dims={{{}}}, index_vector_dim={}, to_apply={name}",
            x.name,
            at.indices.name,
            update.name,
            at.window_dims,
            at.dropped,
            at.indexed,
            at.vector_dim
        );
        if let Some((of, at)) = &at.batching {
            write!(what, ", input_batching_dims={{{of}}}, scatter_indices_batching_dims={{{at}}}")
                .expect("text");
        }
        self.same(x, limit, &what, &[x, &at.indices, &update])
    }

    fn reduce_window(&mut self, x: &Var) -> Option<Var> {
        if x.shape.rank() == 0 {
            return None;
        }
        let element = x.shape.element_type;
        let sizes: Vec<_> = x.shape.dims.iter().map(|_| self.random.between(1, 3)).collect();
        let (window, counts) = self.window(&x.shape.dims, &sizes, true)?;
        let (name, first, limit) = self.reducer(element, x.limit, sizes.iter().product());
        let first = self.scalar(element, first);
        let what = format!(
            "reduce-window({}, {}), window={{{window}}}, to_apply={name}",
            x.name, first.name
        );
        self.result(element, counts, limit, &what, &[x, &first])
    }

    fn select_and_scatter(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        if x.shape.rank() == 0 || element == ElementType::Pred {
            return None;
        }
        let sizes: Vec<_> = x.shape.dims.iter().map(|_| self.random.between(1, 3)).collect();
        let (window, counts) = self.window(&x.shape.dims, &sizes, false)?;
        let shape = ArrayShape::new(element, counts);
        let count = shape.num_elements().filter(|count| *count <= MAX_ELEMENTS)?;
        let source = self.like(&shape);
        let select = self.comparison(&[element], "GE");
        let (scatter, first, limit) = self.reducer(element, source.limit, count);
        let first = self.scalar(element, first);
        let window = window.replace(" lhs_dilate=", "|").replace(" rhs_dilate=", "|");
        let window = window.split('|').next().expect("a first part").to_string();
        let what = format!(
            "select-and-scatter({}, {}, {}), window={{{window}}}, select={select}, scatter={scatter}",
            x.name, source.name, first.name
        );
        self.same(x, limit, &what, &[x, &source, &first])
    }

    /// A sort of one array, or of two by the first.
    fn sort(&mut self, x: &Var) -> Option<Var> {
        if x.shape.rank() == 0 {
            return None;
        }
        let dim = self.random.below(x.shape.rank());
        let element = x.shape.element_type;
        let direction = *self.random.pick(&["LT", "GT"]);
        if self.random.chance(50) {
            let name = self.comparison(&[element], direction);
            let what =
                format!("sort({}), dimensions={{{dim}}}, is_stable=true, to_apply={name}", x.name);
            return self.same(x, x.limit, &what, &[x]);
        }
        let other = self.element();
        let y = self.like(&ArrayShape::new(other, x.shape.dims.clone()));
        let name = self.comparison(&[element, other], direction);
        let pair = format!("p{}", self.vars.len());
        writeln!(
            self.lines,
            "  {pair} = ({}, {}) sort({}, {}), dimensions={{{dim}}}, is_stable=true, to_apply={name}",
            text_of(&x.shape), text_of(&y.shape), x.name, y.name
        )
        .expect("text");
        let what = format!("get-tuple-element({pair}), index=1");
        self.result(other, x.shape.dims.clone(), y.limit, &what, &[x, &y])
    }

    /// Adds an array, turned around each time, for some steps.
    fn while_loop(&mut self, x: &Var) -> Option<Var> {
        let element = x.shape.element_type;
        let y = self.like(&x.shape);
        let steps = self.random.between(0, 4);
        let limit = x.limit + y.limit * i128::from(steps);
        if element == ElementType::Pred || (element.is_float() && greatest(element) < limit) {
            return None;
        }
        let number = self.vars.len();
        let (array, dims) =
            (text_of(&x.shape), list(&(0..x.shape.rank() as i64).collect::<Vec<_>>()));
        let state = format!("(s32[], {array}, {array})");
        let name = self.computation(
            format!("body{number}"),
            format!(
                "body{number} {{\n  s = {state} parameter(0)\n  i = s32[] get-tuple-element(s), \
                 index=0\n  x = {array} get-tuple-element(s), index=1\n  y = {array} \
                 get-tuple-element(s), index=2\n  one = s32[] constant(1)\n  next = s32[] add(i, \
                 one)\n  r = {array} reverse(x), dimensions={{{dims}}}\n  z = {array} add(r, y)\n  \
                 ROOT t = {state} tuple(next, z, y)\n}}\n"
            ),
        );
        let condition = self.computation(
            format!("condition{number}"),
            format!(
                "condition{number} {{\n  s = {state} parameter(0)\n  i = s32[] \
                 get-tuple-element(s), index=0\n  n = s32[] constant({steps})\n  ROOT p = pred[] \
                 compare(i, n), direction=LT\n}}\n"
            ),
        );
        let zero = self.scalar(ElementType::S32, 0);
        writeln!(
            self.lines,
            "  t{number} = {state} tuple({}, {}, {})\n  w{number} = {state} while(t{number}), \
             condition={condition}, body={name}",
            zero.name, x.name, y.name
        )
        .expect("text");
        let what = format!("get-tuple-element(w{number}), index=1");
        self.same(x, limit, &what, &[x, &y, &zero])
    }

    fn conditional(&mut self, x: &Var) -> Option<Var> {
        let number = self.vars.len();
        let y = self.like(&x.shape);
        let p = self.like(&ArrayShape::new(ElementType::Pred, vec![]));
        let array = text_of(&x.shape);
        let dims = list(&(0..x.shape.rank() as i64).collect::<Vec<_>>());
        for (name, what) in
            [("yes", format!("reverse(a), dimensions={{{dims}}}")), ("no", "copy(a)".to_string())]
        {
            let name = format!("{name}{number}");
            let text =
                format!("{name} {{\n  a = {array} parameter(0)\n  ROOT b = {array} {what}\n}}\n");
            self.computation(name, text);
        }
        let what = format!(
            "conditional({}, {}, {}), true_computation=yes{number}, false_computation=no{number}",
            p.name, x.name, y.name
        );
        self.same(x, x.limit.max(y.limit), &what, &[x, &y, &p])
    }

    /// The module, whose results are the values that nothing uses.
    fn finish(self) -> Program {
        let results: Vec<_> = self.vars.iter().filter(|var| !var.is_used).collect();
        let shapes: Vec<_> = results.iter().map(|var| text_of(&var.shape)).collect();
        let names: Vec<_> = results.iter().map(|var| var.name.as_str()).collect();
        let mut text = "HloModule random\n\n".to_string();
        for (_, computation) in &self.computations {
            writeln!(text, "{computation}").expect("text");
        }
        write!(
            text,
            "ENTRY main {{\n{}  ROOT results = ({}) tuple({})\n}}\n",
            self.lines,
            shapes.join(", "),
            names.join(", ")
        )
        .expect("text");
        Program { text, inputs: self.inputs }
    }
}

fn low_of(element: ElementType) -> i128 {
    if rounds(element) { -1 } else { element.integer_range().0 }
}

/// How an array is addressed by index vectors: what `gather` and `scatter` share.
struct Addressing {
    indices: Var,
    /// The sizes of what is read or written.
    dims: Vec<i64>,
    window_dims: String,
    dropped: String,
    indexed: String,
    /// A batching dimension, and the one of the indices that belongs to it.
    batching: Option<(String, String)>,
    vector_dim: usize,
    sizes: String,
}
