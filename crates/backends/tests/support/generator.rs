//! Random TC programs that the front end accepts, nearly always.
//!
//! A statement is made in three steps. Each index variable first gets what bounds it: a
//! range in a where clause, or an access that inference can solve, plain, shifted, strided,
//! inverted, divided or a sum with another variable. Then come the right-hand side with
//! these accesses and others whose indices are clamped, wrapped, constant, data-dependent
//! or guarded, and what is left goes to lets and `exists`. Some programs still need more
//! than their sizes give, or have empty ranges; the check skips and counts them.

use super::random::Random;
use std::collections::BTreeMap;

/// A program and the sizes to run it at.
pub struct Generated {
    pub text: String,
    pub sizes: Vec<BTreeMap<String, i64>>,
}

/// The program of a seed.
pub fn generate(seed: u64) -> Generated {
    let mut generator = Generator {
        random: Random::new(seed),
        sizes: Vec::new(),
        tensors: Vec::new(),
        scope: Scope::default(),
        max_variables: 0,
    };
    generator.program()
}

/// Types of scalars, with their widths.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Ty {
    Bool,
    Uint(u32),
    Int(u32),
    Float(u32),
}

const TYPES: [Ty; 12] = [
    Ty::Bool,
    Ty::Uint(8),
    Ty::Uint(16),
    Ty::Uint(32),
    Ty::Uint(64),
    Ty::Int(8),
    Ty::Int(16),
    Ty::Int(32),
    Ty::Int(64),
    Ty::Float(16),
    Ty::Float(32),
    Ty::Float(64),
];

impl Ty {
    fn name(self) -> String {
        match self {
            Self::Bool => "bool".to_string(),
            Self::Uint(width) => format!("uint{width}"),
            Self::Int(width) => format!("int{width}"),
            Self::Float(width) => format!("float{width}"),
        }
    }

    fn width(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Uint(width) | Self::Int(width) | Self::Float(width) => width,
        }
    }

    /// The type that two operands are converted to.
    fn matched(self, other: Self) -> Self {
        let wider = self.width().max(other.width());
        match (self, other) {
            (Self::Bool, other) => other,
            (this, Self::Bool) => this,
            (Self::Float(_), Self::Float(_)) => Self::Float(wider),
            (Self::Float(_), _) => self,
            (_, Self::Float(_)) => other,
            (Self::Uint(_), Self::Uint(_)) => Self::Uint(wider),
            _ => Self::Int(wider),
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::Uint(_) | Self::Int(_))
    }
}

/// An expression, in parentheses if it is compound.
#[derive(Clone)]
struct Value {
    text: String,
    ty: Ty,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    ty: Ty,
    /// The extent of each dimension, where it is a size or a number.
    dims: Vec<Option<String>>,
    /// Whether each dimension starts at 0.
    from_zero: bool,
    /// Whether the head of the function gives the type.
    annotated: bool,
    /// Whether a statement assigns it.
    is_assigned: bool,
    /// Whether it is not an output.
    is_local: bool,
}

#[derive(Clone)]
struct Variable {
    name: String,
    /// The extent, where the range starts at 0.
    extent: Option<String>,
    is_bounded: bool,
    /// Whether a where clause bounds it.
    is_declared: bool,
}

/// What a statement is made of.
#[derive(Default)]
struct Scope {
    variables: Vec<Variable>,
    lets: Vec<Value>,
    clauses: Vec<String>,
}

struct Generator {
    random: Random,
    sizes: Vec<String>,
    tensors: Vec<Tensor>,
    scope: Scope,
    max_variables: usize,
}

const BUILTINS: [(&str, usize); 24] = [
    ("exp", 1),
    ("log", 1),
    ("sqrt", 1),
    ("tanh", 1),
    ("sin", 1),
    ("cos", 1),
    ("fabs", 1),
    ("floor", 1),
    ("ceil", 1),
    ("round", 1),
    ("trunc", 1),
    ("erf", 1),
    ("cbrt", 1),
    ("rsqrt", 1),
    ("log1p", 1),
    ("expm1", 1),
    ("atan2", 2),
    ("fmax", 2),
    ("fmin", 2),
    ("hypot", 2),
    ("pow", 2),
    ("copysign", 2),
    ("fdim", 2),
    ("fma", 3),
];

impl Generator {
    fn program(&mut self) -> Generated {
        self.inputs();
        let count = 1 + self.random.weighted(&[35, 35, 20, 10]);
        let statements: Vec<_> = (0..count).map(|_| self.statement()).collect();
        let inputs: Vec<_> = self
            .tensors
            .iter()
            .filter(|it| !it.is_assigned)
            .map(|it| {
                let dims: Vec<_> = it.dims.iter().flatten().cloned().collect();
                let dims = dims.join(", ");
                let dims = if dims.is_empty() { dims } else { format!("({dims})") };
                format!("{}{dims} {}", it.ty.name(), it.name)
            })
            .collect();
        let mut fresh = 0;
        let outputs: Vec<_> = self
            .tensors
            .iter()
            .filter(|it| it.is_assigned && !it.is_local)
            .map(|it| {
                if !it.annotated {
                    return it.name.clone();
                }
                // A name that no input has stands for the extent that is inferred.
                let dims: Vec<_> = it
                    .dims
                    .iter()
                    .map(|_| {
                        fresh += 1;
                        format!("D{fresh}")
                    })
                    .collect();
                let dims = dims.join(", ");
                let dims = if dims.is_empty() { dims } else { format!("({dims})") };
                format!("{}{dims} {}", it.ty.name(), it.name)
            })
            .collect();
        let text = format!(
            "def f({}) -> ({}) {{\n  {}\n}}\n",
            inputs.join(", "),
            outputs.join(", "),
            statements.join("\n  ")
        );
        let pool: &[i64] = match self.max_variables {
            0..=2 => &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33],
            3 => &[1, 2, 3, 4, 5, 7, 8, 9, 11],
            4 => &[1, 2, 3, 4, 5, 6],
            _ => &[1, 2, 3, 4],
        };
        let sizes = (0..3)
            .map(|_| {
                let random = &mut self.random;
                self.sizes.iter().map(|name| (name.clone(), *random.pick(pool))).collect()
            })
            .collect();
        Generated { text, sizes }
    }

    fn inputs(&mut self) {
        let sizes = 1 + self.random.below(3);
        let names = ["N", "M", "K"];
        let count = 2 + self.random.below(4);
        for number in 0..count {
            let ranks: &[usize] = if number == 0 { &[0, 5, 4, 1] } else { &[12, 38, 33, 12, 5] };
            let rank = self.random.weighted(ranks);
            let dims = (0..rank)
                .map(|_| {
                    if self.random.chance(15) {
                        return Some(self.random.between(1, 6).to_string());
                    }
                    let name = names[self.random.below(sizes)].to_string();
                    if !self.sizes.contains(&name) {
                        self.sizes.push(name.clone());
                    }
                    Some(name)
                })
                .collect();
            let ty = self.ty();
            self.tensors.push(Tensor {
                name: format!("A{number}"),
                ty,
                dims,
                from_zero: true,
                annotated: true,
                is_assigned: false,
                is_local: false,
            });
        }
    }

    fn ty(&mut self) -> Ty {
        match self.random.below(10) {
            0..4 => Ty::Float(32),
            4..6 => Ty::Int(32),
            _ => *self.random.pick(&TYPES),
        }
    }

    fn statement(&mut self) -> String {
        let rank = self.random.weighted(&[12, 38, 32, 13, 5]);
        let known: Vec<_> = (0..self.tensors.len())
            .filter(|at| self.tensors[*at].is_assigned && self.tensors[*at].dims.len() == rank)
            .collect();
        let target = if !known.is_empty() && self.random.chance(40) {
            Some(*self.random.pick(&known))
        } else {
            None
        };
        let init =
            self.random.weighted(if target.is_some() { &[40, 25, 35] } else { &[45, 40, 15] });
        let reductions = if init == 0 { 0 } else { self.random.weighted(&[15, 60, 25]) };
        // The dimensions with an index variable; the indices of the others are computed.
        let is_computed = init != 0 && self.random.chance(25);
        let plain: Vec<_> = (0..rank).filter(|_| !is_computed || self.random.chance(40)).collect();
        let mut names = ["i", "j", "k", "l", "m", "n", "p", "q"].to_vec();
        let variables = (0..plain.len() + reductions)
            .map(|_| Variable {
                name: names.remove(self.random.below(names.len())).to_string(),
                extent: None,
                is_bounded: false,
                is_declared: false,
            })
            .collect();
        self.scope = Scope { variables, ..Scope::default() };
        self.max_variables = self.max_variables.max(rank + reductions);

        self.declare_ranges();
        if let Some(target) = target
            && init == 2
            && 0 < rank
            && self.random.chance(80)
        {
            // What is accumulated must be inside what is there.
            let mut indices = vec!["0".to_string(); rank];
            let tensor = self.tensors[target].clone();
            for (variable, dim) in self.scope.variables.iter_mut().zip(&plain) {
                indices[*dim] = variable.name.clone();
                if !variable.is_declared {
                    variable.extent = tensor.dims[*dim].clone().filter(|_| tensor.from_zero);
                    variable.is_bounded = true;
                }
            }
            self.scope.clauses.push(format!("exists {}({})", tensor.name, indices.join(", ")));
        }
        let accesses = self.bound_variables();
        for number in 0..self.random.weighted(&[70, 20, 10]) {
            let value = self.let_value();
            self.scope.clauses.push(format!("x{number} = {}", value.text));
            self.scope.lets.push(Value { text: format!("x{number}"), ty: value.ty });
        }
        let mut value: Option<Value> = None;
        for access in accesses {
            if self.random.chance(15) {
                self.scope.clauses.push(format!("exists {}", access.text));
                continue;
            }
            let access = if self.random.chance(30) { self.unary(access) } else { access };
            value = Some(match value {
                Some(value) => self.joined(value, access),
                None => access,
            });
        }
        let depth = self.random.below(4);
        let value = match value {
            Some(value) if self.random.chance(40) => value,
            Some(value) => {
                let other = self.value(depth);
                if self.random.chance(50) {
                    self.joined(value, other)
                } else {
                    self.joined(other, value)
                }
            }
            None => self.value(depth + 1),
        };
        let kept = target.filter(|_| init == 2);
        let left = (0..rank)
            .map(|dim| match plain.iter().position(|it| *it == dim) {
                Some(number) => {
                    let variable = &self.scope.variables[number];
                    (variable.name.clone(), variable.extent.clone())
                }
                None => self.computed_index(kept, dim),
            })
            .collect();
        self.finish(target, left, init, value)
    }

    /// An index of the left-hand side that is computed, and the extent.
    fn computed_index(&mut self, kept: Option<usize>, dim: usize) -> (String, Option<String>) {
        if let Some(kept) = kept {
            let tensor = self.tensors[kept].clone();
            return (format!("{} + 0", self.safe_index(&tensor, dim, 1)), tensor.dims[dim].clone());
        }
        let tensor = self.some_tensor();
        let other = self.random.below(tensor.dims.len());
        let (name, index) = (format!("b{dim}"), self.safe_index(&tensor, other, 1));
        self.scope.clauses.push(format!("{name} = {index}"));
        self.scope.clauses.push(format!("{name} in 0:{}.{other}", tensor.name));
        (name, tensor.dims[other].clone())
    }

    /// Writes the statement down, and remembers its tensor. The left-hand side has indices and extents.
    fn finish(
        &mut self,
        target: Option<usize>,
        left: Vec<(String, Option<String>)>,
        init: usize,
        value: Value,
    ) -> String {
        let mut value = value;
        let (names, dims): (Vec<_>, Vec<_>) = left.into_iter().unzip();
        let from_zero = dims.iter().all(Option::is_some);
        let at = match target {
            Some(at) => {
                let tensor = &mut self.tensors[at];
                if (tensor.annotated || init == 2) && value.ty.matched(tensor.ty) != tensor.ty
                    || tensor.ty == Ty::Bool
                {
                    value = Value {
                        text: format!("{}({})", tensor.ty.name(), value.text),
                        ty: tensor.ty,
                    };
                }
                if init != 2 {
                    tensor.dims = dims;
                    tensor.from_zero = from_zero;
                    if !tensor.annotated {
                        tensor.ty = value.ty;
                    }
                }
                at
            }
            None => {
                let assigned = self.tensors.iter().filter(|it| it.is_assigned);
                let outputs = assigned.clone().filter(|it| !it.is_local).count();
                let locals = assigned.count() - outputs;
                // The first tensor is an output, so that there is one.
                let is_local = 0 < outputs && init != 2 && self.random.chance(30);
                let annotated = !is_local && self.random.chance(20);
                let other = self.ty();
                let ty = if annotated { value.ty.matched(other) } else { value.ty };
                self.tensors.push(Tensor {
                    name: if is_local { format!("T{locals}") } else { format!("O{outputs}") },
                    ty,
                    dims,
                    from_zero,
                    annotated,
                    is_assigned: true,
                    is_local,
                });
                self.tensors.len() - 1
            }
        };
        let assign = match init {
            0 => "=".to_string(),
            _ => {
                let op = self.random.pick(&["+", "+", "*", "min", "max"]);
                format!("{op}={}", if init == 1 { "!" } else { "" })
            }
        };
        let indices = match &names[..] {
            [] => String::new(),
            names => format!("({})", names.join(", ")),
        };
        let clauses = if self.scope.clauses.is_empty() {
            String::new()
        } else {
            format!(" where {}", self.scope.clauses.join(", "))
        };
        let tensor = &self.tensors[at];
        let local = if tensor.is_local && target.is_none() { "local " } else { "" };
        format!("{local}{}{indices} {assign} {}{clauses}", tensor.name, value.text)
    }

    fn declare_ranges(&mut self) {
        for at in 0..self.scope.variables.len() {
            if !self.random.chance(22) {
                continue;
            }
            let size = self.size();
            let number = self.random.between(1, 6);
            let low = self.random.between(-3, 3);
            let (range, extent) = match self.random.below(10) {
                0..4 => (format!("0:{size}"), Some(size)),
                4 => (format!("0:{number}"), Some(number.to_string())),
                5 => (format!("{low}:{}", low + number), None),
                6 => (format!("1:{size} + 1"), None),
                7 => (format!("{size} / 2:{size}"), None),
                8 => (format!("0:min({size}, {number})"), None),
                _ => (format!("-1:{size} - 1"), None),
            };
            let variable = &mut self.scope.variables[at];
            variable.extent = extent;
            (variable.is_bounded, variable.is_declared) = (true, true);
            self.scope.clauses.push(format!("{} in {range}", variable.name));
        }
    }

    fn size(&mut self) -> String {
        if self.sizes.is_empty() { "4".to_string() } else { self.random.pick(&self.sizes).clone() }
    }

    /// Accesses that bound the variables which nothing bounds yet.
    fn bound_variables(&mut self) -> Vec<Value> {
        let mut accesses = Vec::new();
        while let Some(first) = self.scope.variables.iter().position(|it| !it.is_bounded) {
            let tensor = self.some_tensor();
            let start = self.random.below(tensor.dims.len());
            let mut open = Some(first);
            let mut indices = Vec::new();
            for dim in 0..tensor.dims.len() {
                let wanted = dim == start || self.random.chance(60);
                let at = if wanted {
                    open.take()
                        .or_else(|| self.scope.variables.iter().position(|it| !it.is_bounded))
                } else {
                    None
                };
                indices.push(match at {
                    Some(at) => self.bounding_index(&tensor, dim, at),
                    None => self.safe_index(&tensor, dim, 1),
                });
            }
            accesses.push(Value {
                text: format!("{}({})", tensor.name, indices.join(", ")),
                ty: tensor.ty,
            });
        }
        accesses
    }

    /// A tensor with dimensions.
    fn some_tensor(&mut self) -> Tensor {
        let candidates: Vec<_> = self.tensors.iter().filter(|it| !it.dims.is_empty()).collect();
        (*self.random.pick(&candidates)).clone()
    }

    /// An index of one variable from which its range follows.
    fn bounding_index(&mut self, tensor: &Tensor, dim: usize, at: usize) -> String {
        let others: Vec<_> = self
            .scope
            .variables
            .iter()
            .filter(|it| it.is_bounded)
            .map(|it| it.name.clone())
            .collect();
        let extent = tensor.dims[dim].clone().filter(|_| tensor.from_zero);
        let variable = &mut self.scope.variables[at];
        variable.is_bounded = true;
        let v = variable.name.clone();
        if self.random.chance(60) {
            self.scope.variables[at].extent = extent;
            return v;
        }
        let number = self.random.between(1, 3);
        if !others.is_empty() && self.random.chance(40) {
            let other = self.random.pick(&others).clone();
            return match self.random.below(6) {
                0..3 => format!("{v} + {other}"),
                3 => format!("2 * {v} + {other}"),
                4 => format!("{v} - {other}"),
                _ => format!("{v} + {number} * {other} + 1"),
            };
        }
        match self.random.below(9) {
            0 => format!("{v} + {number}"),
            1 => format!("{v} - {number}"),
            2 => format!("2 * {v}"),
            3 => format!("{} * {v} + 1", number + 1),
            4 => format!("{} - {v}", self.random.between(0, 9)),
            5 if extent.is_some() => format!("{}.{dim} - 1 - {v}", tensor.name),
            6 => format!("{v} / {}", number + 1),
            7 => format!("({v} + 1) / 2"),
            _ => format!("{} - 2 * {v}", self.size()),
        }
    }

    /// An affine expression of the variables, of whatever value.
    fn affine(&mut self) -> String {
        let mut text = self.random.between(0, 4).to_string();
        for _ in 0..1 + self.random.below(2) {
            if self.scope.variables.is_empty() {
                break;
            }
            let at = self.random.below(self.scope.variables.len());
            let name = self.scope.variables[at].name.clone();
            text = match self.random.below(6) {
                0 => format!("{name} - {text}"),
                1 => format!("{text} - {name}"),
                2 => format!("{text} + 2 * {name}"),
                3 => format!("{text} + {name} / 2"),
                _ => format!("{name} + {text}"),
            };
        }
        text
    }

    /// An index that is inside its dimension, nearly always.
    fn safe_index(&mut self, tensor: &Tensor, dim: usize, depth: usize) -> String {
        let extent = format!("{}.{dim}", tensor.name);
        let same: Vec<_> = self
            .scope
            .variables
            .iter()
            .filter(|it| it.extent.is_some() && it.extent == tensor.dims[dim] && tensor.from_zero)
            .map(|it| it.name.clone())
            .collect();
        if !same.is_empty() && self.random.chance(70) {
            let name = self.random.pick(&same).clone();
            return match self.random.below(10) {
                0 => format!("{extent} - 1 - {name}"),
                1 => format!("{name} / 2"),
                2 => format!("max({name} - 1, 0)"),
                3 => format!("min({name} + 1, {extent} - 1)"),
                _ => name,
            };
        }
        let any: Vec<_> = self.scope.variables.iter().map(|it| it.name.clone()).collect();
        if !tensor.from_zero && !any.is_empty() {
            return self.random.pick(&any).clone();
        }
        match self.random.below(if depth == 0 { 5 } else { 10 }) {
            0 => "0".to_string(),
            1 => format!("{extent} - 1"),
            2 => format!("({}) % {extent}", self.affine()),
            3 if !any.is_empty() && self.random.chance(40) => self.random.pick(&any).clone(),
            3 | 4 => format!("min(max({}, 0), {extent} - 1)", self.affine()),
            5 | 6 => match self.index_read(depth) {
                Some(read) => read,
                None => "0".to_string(),
            },
            7 => match self.index_read(depth) {
                Some(read) => format!("min(max({read}, 0), {extent} - 1)"),
                None => "0".to_string(),
            },
            8 => match self.index_read(depth) {
                Some(read) => format!("{read} % {extent}"),
                None => "0".to_string(),
            },
            _ => {
                let read = self.read(depth - 1);
                format!("min(max(int32({}), 0), {extent} - 1)", read.text)
            }
        }
    }

    /// A read of an input of integers.
    fn index_read(&mut self, depth: usize) -> Option<String> {
        let candidates: Vec<_> = self
            .tensors
            .iter()
            .filter(|it| it.ty.is_integer() && !it.is_assigned)
            .cloned()
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let tensor = self.random.pick(&candidates).clone();
        Some(self.read_of(&tensor, depth.saturating_sub(1)).text)
    }

    fn read(&mut self, depth: usize) -> Value {
        let tensor = self.random.pick(&self.tensors).clone();
        self.read_of(&tensor, depth)
    }

    fn read_of(&mut self, tensor: &Tensor, depth: usize) -> Value {
        let indices: Vec<_> =
            (0..tensor.dims.len()).map(|dim| self.safe_index(tensor, dim, depth)).collect();
        let text = if indices.is_empty() {
            tensor.name.clone()
        } else {
            format!("{}({})", tensor.name, indices.join(", "))
        };
        Value { text, ty: tensor.ty }
    }

    /// A read outside of its tensor at the borders, and what stands there instead.
    fn guarded_read(&mut self) -> Value {
        let tensor = self.some_tensor();
        let guarded = self.random.below(tensor.dims.len());
        let index = match self.random.below(4) {
            0 => self.index_read(1).unwrap_or_else(|| self.affine()),
            _ => self.affine(),
        };
        let indices: Vec<_> = (0..tensor.dims.len())
            .map(
                |dim| if dim == guarded { index.clone() } else { self.safe_index(&tensor, dim, 1) },
            )
            .collect();
        let read = format!("{}({})", tensor.name, indices.join(", "));
        let other = self.value(1);
        let (name, alternative) = (&tensor.name, &other.text);
        let text = match self.random.below(4) {
            0 => {
                format!("(({index}) < 0 || {name}.{guarded} <= ({index}) ? {alternative} : {read})")
            }
            1 => format!(
                "(0 <= ({index}) ? (({index}) < {name}.{guarded} ? {read} : {alternative}) : {alternative})"
            ),
            _ => {
                format!("(0 <= ({index}) && ({index}) < {name}.{guarded} ? {read} : {alternative})")
            }
        };
        Value { text, ty: tensor.ty.matched(other.ty) }
    }

    fn let_value(&mut self) -> Value {
        if self.random.chance(40) && !self.scope.variables.is_empty() {
            return Value { text: format!("({})", self.affine()), ty: Ty::Int(32) };
        }
        self.value(2)
    }

    fn leaf(&mut self) -> Value {
        let int = |text: String| Value { text, ty: Ty::Int(32) };
        match self.random.below(20) {
            0 | 1 => int(self.random.between(0, 9).to_string()),
            2 | 3 => {
                let text = *self.random.pick(&["0.5", "1.0", "2.0", "0.1", "3.25", "1e-3"]);
                Value { text: text.to_string(), ty: Ty::Float(32) }
            }
            4 => Value { text: self.random.pick(&["true", "false"]).to_string(), ty: Ty::Bool },
            5 | 6 if !self.scope.variables.is_empty() => {
                int(self.random.pick(&self.scope.variables).name.clone())
            }
            7 => int(self.size()),
            8 => {
                let tensor = self.some_tensor();
                int(format!("{}.{}", tensor.name, self.random.below(tensor.dims.len())))
            }
            9..12 if !self.scope.lets.is_empty() => self.random.pick(&self.scope.lets).clone(),
            12 => int("2147483647".to_string()),
            _ => self.read(1),
        }
    }

    /// An expression of any type.
    fn value(&mut self, depth: usize) -> Value {
        if depth == 0 {
            return self.leaf();
        }
        let depth = depth - 1;
        match self.random.below(20) {
            0..3 => self.leaf(),
            3..10 => {
                let (lhs, rhs) = (self.value(depth), self.value(depth));
                self.joined(lhs, rhs)
            }
            10 | 11 => {
                let value = self.value(depth);
                self.unary(value)
            }
            12 | 13 => {
                let condition = self.condition(depth);
                let (yes, no) = (self.value(depth), self.value(depth));
                let text = format!("({} ? {} : {})", condition.text, yes.text, no.text);
                Value { text, ty: yes.ty.matched(no.ty) }
            }
            14 => self.condition(depth),
            15 | 16 => self.guarded_read(),
            _ => {
                let (name, arity) = *self.random.pick(&BUILTINS);
                let arguments: Vec<_> = (0..arity).map(|_| self.value(depth)).collect();
                let ty = arguments.iter().fold(Ty::Bool, |ty, it| ty.matched(it.ty));
                let ty = if ty == Ty::Float(64) { ty } else { Ty::Float(32) };
                let texts: Vec<_> = arguments.into_iter().map(|it| it.text).collect();
                Value { text: format!("{name}({})", texts.join(", ")), ty }
            }
        }
    }

    fn condition(&mut self, depth: usize) -> Value {
        let text = match self.random.below(8) {
            0 if 0 < depth => format!("!{}", self.condition(depth - 1).text),
            1 if 0 < depth => {
                let (lhs, rhs) = (self.condition(depth - 1), self.condition(depth - 1));
                let op = self.random.pick(&["&&", "||"]);
                format!("({} {op} {})", lhs.text, rhs.text)
            }
            2 => format!("bool({})", self.value(depth).text),
            _ => {
                let (lhs, rhs) = (self.value(depth), self.value(depth));
                let op = self.random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {op} {})", lhs.text, rhs.text)
            }
        };
        Value { text, ty: Ty::Bool }
    }

    fn joined(&mut self, lhs: Value, rhs: Value) -> Value {
        let ty = lhs.ty.matched(rhs.ty);
        let (lhs, rhs) = (lhs.text, rhs.text);
        let text = match self.random.below(12) {
            0..4 => format!("({lhs} + {rhs})"),
            4..6 => format!("({lhs} * {rhs})"),
            6 | 7 => format!("({lhs} - {rhs})"),
            8 => format!("({lhs} / {rhs})"),
            9 => format!("({lhs} % {rhs})"),
            10 => format!("min({lhs}, {rhs})"),
            _ => format!("max({lhs}, {rhs})"),
        };
        Value { text, ty }
    }

    fn unary(&mut self, value: Value) -> Value {
        if self.random.chance(30) {
            let text = format!("(-{})", value.text);
            return Value { text, ty: value.ty };
        }
        let ty = self.ty();
        Value { text: format!("{}({})", ty.name(), value.text), ty }
    }
}
