//! Decodes operations on scalars, and on vectors lane by lane.

use super::{
    decode::{Decoder, scalar_type},
    error::Error,
    fold::FoldKind,
    function::{self, Function},
    integer::{Division, IntBinary, IntPredicate, IntUnary, ScalarType, wrap},
    program::{Code, Inst, Reg},
    scalar::{FloatBinary, FloatPredicate, FloatUnary, Scalar},
};
use melior::ir::{Attribute, Type, ValueLike, attribute::FloatAttribute, operation::OperationLike};
use tc_dialects::{
    imap::{AnyIndexed, CombinerKind, Indexed},
    mlir::{self, Op, Val},
    tc::Comprehension,
};

impl Decoder {
    /// An operation of `arith`, `math` or `ub`.
    pub(super) fn elementwise(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let name = mlir::name(op);
        let result = mlir::result(op, 0);
        match name {
            "arith.constant" if !mlir::shape(result.r#type()).is_empty() => {
                return self.dense_constant(op, code);
            }
            "arith.constant" if mlir::is_tensor(result.r#type()) => {
                return self.dense_constant(op, code);
            }
            "arith.constant" => return self.scalar_constant(op),
            "arith.select" if mlir::is_memref(result.r#type()) => {
                return self.select_buffer(op, code);
            }
            "ub.poison" => {
                let at = self.at(op);
                for reg in self.new_lanes(op, result)? {
                    self.constants.push((reg, Scalar::undefined(at)));
                }
                return Ok(());
            }
            "arith.mulsi_extended" | "arith.mului_extended" | "arith.addui_extended" => {
                return self.extended(op, name, code);
            }
            _ => {}
        }
        let operands = mlir::operands(op);
        let lanes = operands.iter().map(|it| self.lanes(op, *it)).collect::<Result<Vec<_>, _>>()?;
        let results = self.new_lanes(op, result)?;
        for (number, to) in results.into_iter().enumerate() {
            // A scalar beside vectors is the condition of a selection.
            let regs: Vec<_> = lanes.iter().map(|it| it[number.min(it.len() - 1)]).collect();
            match scalar_type(result.r#type()) {
                Some(ScalarType::Small(ty))
                    if !matches!(name, "arith.select" | "arith.bitcast") =>
                {
                    let from = self.new_reg();
                    let inst = self.lane(op, name, &operands, from, &regs)?;
                    code.extend([inst, Inst::RoundToSmall { ty, to, from }]);
                }
                _ => {
                    let inst = self.lane(op, name, &operands, to, &regs)?;
                    code.push(inst);
                }
            }
        }
        Ok(())
    }

    /// The instruction that computes one lane of a result.
    fn lane<'c>(
        &mut self,
        op: Op<'c>,
        name: &str,
        operands: &[Val<'c>],
        to: Reg,
        regs: &[Reg],
    ) -> Result<Inst, Error> {
        let result = mlir::result(op, 0);
        let from = *regs.first().ok_or_else(|| self.unsupported(op))?;
        let Some(name) = name.strip_prefix("arith.") else {
            return self.math(op, name.strip_prefix("math.").unwrap_or_default(), to, regs);
        };
        if let Some(int) = int_binary(name) {
            let (width, at) = (self.width(op, result)?, self.at(op));
            return Ok(Inst::Int { op: int, width, to, lhs: from, rhs: regs[1], at });
        }
        if let Some(mut float) = float_binary(name) {
            if float == FloatBinary::Mul && goes_into_sum(result) {
                float = FloatBinary::MulIntoSum;
            }
            let ty = self.float_type(op, result)?;
            return Ok(Inst::Float { op: float, ty, to, lhs: from, rhs: regs[1] });
        }
        let predicate = mlir::integer_attr(op, "predicate").unwrap_or(-1);
        let type_of = |value: Val<'c>| {
            scalar_type(value.r#type()).ok_or_else(|| self.unsupported_type(op, value))
        };
        Ok(match name {
            "cmpi" => Inst::IntCompare {
                predicate: IntPredicate::from_number(predicate)
                    .ok_or_else(|| self.unsupported(op))?,
                width: self.width(op, operands[0])?,
                to,
                lhs: from,
                rhs: regs[1],
            },
            "cmpf" => Inst::FloatCompare {
                predicate: FloatPredicate::from_number(predicate)
                    .ok_or_else(|| self.unsupported(op))?,
                ty: self.float_type(op, operands[0])?,
                to,
                lhs: from,
                rhs: regs[1],
            },
            "select" => Inst::Select {
                float: type_of(result)?.is_float(),
                to,
                condition: from,
                yes: regs[1],
                no: regs[2],
            },
            "negf" => {
                Inst::FloatOne { op: FloatUnary::Neg, ty: self.float_type(op, result)?, to, from }
            }
            "extf" | "truncf" => {
                self.float_type(op, operands[0])?;
                let open = self.in_fold;
                Inst::FloatConvert { ty: self.float_type(op, result)?, open, to, from }
            }
            "sitofp" | "uitofp" => Inst::IntToFloat {
                ty: self.float_type(op, result)?,
                width: self.width(op, operands[0])?,
                signed: name == "sitofp",
                to,
                from,
            },
            "fptosi" | "fptoui" => {
                self.float_type(op, operands[0])?;
                Inst::FloatToInt {
                    width: self.width(op, result)?,
                    signed: name == "fptosi",
                    to,
                    from,
                }
            }
            "extsi" | "extui" | "trunci" | "index_cast" | "index_castui" => Inst::IntConvert {
                signed: !matches!(name, "extui" | "index_castui"),
                from_width: self.width(op, operands[0])?,
                to_width: self.width(op, result)?,
                to,
                from,
            },
            "bitcast" => Inst::Bitcast {
                from_type: type_of(operands[0])?,
                to_type: type_of(result)?,
                to,
                from,
            },
            _ => return Err(self.unsupported(op)),
        })
    }

    fn math(&self, op: Op, name: &str, to: Reg, regs: &[Reg]) -> Result<Inst, Error> {
        let result = mlir::result(op, 0);
        let int = match name {
            "absi" => Some(IntUnary::Abs),
            "ctlz" => Some(IntUnary::LeadingZeros),
            "cttz" => Some(IntUnary::TrailingZeros),
            "ctpop" => Some(IntUnary::Ones),
            _ => None,
        };
        if let Some(int) = int {
            return Ok(Inst::IntOne { op: int, width: self.width(op, result)?, to, from: regs[0] });
        }
        let function = function::of_math(name).ok_or_else(|| self.unsupported(op))?;
        self.call_inst(op, &function, to, regs)
    }

    fn call_inst(&self, op: Op, function: &Function, to: Reg, regs: &[Reg]) -> Result<Inst, Error> {
        let ty = self.float_type(op, mlir::result(op, 0))?;
        if regs.len() != function.arity() {
            return Err(self.unsupported(op));
        }
        Ok(Inst::Call { function: function.clone(), ty, to, operands: regs.to_vec() })
    }

    /// A call of a built-in function on scalars.
    pub(super) fn call(
        &mut self,
        op: Op,
        function: &Function,
        code: &mut Code,
    ) -> Result<(), Error> {
        let regs = self.scalars(op, &mlir::operands(op))?;
        let to = self.new_scalar(mlir::result(op, 0));
        code.push(self.call_inst(op, function, to, &regs)?);
        Ok(())
    }

    /// The operations of two results: the low bits, and the high bits or the carry.
    fn extended(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        let at = self.at(op);
        let operands = mlir::operands(op);
        let (lhs, rhs) = (self.lanes(op, operands[0])?, self.lanes(op, operands[1])?);
        let width = self.width(op, operands[0])?;
        let low = self.new_lanes(op, mlir::result(op, 0))?;
        let high = self.new_lanes(op, mlir::result(op, 1))?;
        let (low_op, high_op) = match name {
            "arith.mulsi_extended" => (IntBinary::Mul, Some(IntBinary::MulHighSigned)),
            "arith.mului_extended" => (IntBinary::Mul, Some(IntBinary::MulHighUnsigned)),
            _ => (IntBinary::Add, None),
        };
        for (number, (low, high)) in low.into_iter().zip(high).enumerate() {
            let (lhs, rhs) = (lhs[number], rhs[number]);
            code.push(Inst::Int { op: low_op, width, to: low, lhs, rhs, at });
            code.push(match high_op {
                Some(op) => Inst::Int { op, width, to: high, lhs, rhs, at },
                // The sum wraps exactly if it is below an operand.
                None => {
                    let below = IntPredicate::UNSIGNED_LESS;
                    Inst::IntCompare { predicate: below, width, to: high, lhs: low, rhs: lhs }
                }
            });
        }
        Ok(())
    }

    pub(super) fn scalar_constant(&mut self, op: Op) -> Result<(), Error> {
        let result = mlir::result(op, 0);
        let attribute = op.attribute("value").ok();
        let value = attribute.and_then(|attribute| constant(result.r#type(), attribute));
        let value = value.ok_or_else(|| self.unsupported_type(op, result))?;
        let reg = self.new_scalar(result);
        self.constants.push((reg, value));
        Ok(())
    }

    /// Operations of `vector`, except those on memory.
    pub(super) fn vector(&mut self, op: Op, name: &str, code: &mut Code) -> Result<(), Error> {
        match name {
            "load" | "store" | "maskedload" | "maskedstore" => {
                return self.vector_memory(op, name, code);
            }
            "constant_mask" => {
                let [extent] = mlir::integers_attr(op, "mask_dim_sizes")[..] else {
                    return Err(self.unsupported(op));
                };
                for (number, lane) in
                    self.new_lanes(op, mlir::result(op, 0))?.into_iter().enumerate()
                {
                    self.constants.push((lane, Scalar::bool((number as i64) < extent)));
                }
                return Ok(());
            }
            "create_mask" if op.operand_count() == 1 => {
                let extent = self.scalar(op, mlir::operand(op, 0))?;
                for (number, to) in self.new_lanes(op, mlir::result(op, 0))?.into_iter().enumerate()
                {
                    let lhs = self.constant(number as i64);
                    let predicate = IntPredicate::SIGNED_LESS;
                    code.push(Inst::IntCompare { predicate, width: 64, to, lhs, rhs: extent });
                }
                return Ok(());
            }
            "reduction" => return self.vector_reduction(op, code),
            _ => {}
        }
        let operands = mlir::operands(op);
        let lanes = operands.iter().map(|it| self.lanes(op, *it)).collect::<Result<Vec<_>, _>>()?;
        let all = lanes.concat();
        let from: Vec<_> = match name {
            // Of a vector, the last dimensions; a dimension of extent 1 is not stretched.
            "broadcast" => {
                let count = self.new_lanes(op, mlir::result(op, 0))?.len();
                let (source, shape) =
                    (mlir::shape(operands[0].r#type()), mlir::shape(mlir::result(op, 0).r#type()));
                if !shape.ends_with(&source) {
                    return Err(self.unsupported(op));
                }
                (0..count).map(|lane| all[lane % all.len()]).collect()
            }
            "shuffle" if mlir::shape(operands[0].r#type()).len() == 1 => {
                let mask = mlir::integers_attr(op, "mask");
                let lane = |lane: i64| usize::try_from(lane).ok().and_then(|it| all.get(it));
                let found: Option<Vec<_>> = mask.into_iter().map(|it| lane(it).copied()).collect();
                found.ok_or_else(|| self.unsupported(op))?
            }
            "step" => {
                let count = self.new_lanes(op, mlir::result(op, 0))?.len() as i64;
                (0..count).map(|lane| self.constant(lane)).collect()
            }
            "extract" if operands.len() == 1 => {
                let count = self.new_lanes(op, mlir::result(op, 0))?.len();
                let start = self.position(op, operands[0], count)?;
                all[start..start + count].to_vec()
            }
            "insert" if operands.len() == 2 => {
                let start = self.position(op, operands[1], lanes[0].len())?;
                let mut found = lanes[1].clone();
                found[start..start + lanes[0].len()].copy_from_slice(&lanes[0]);
                found
            }
            "from_elements" | "shape_cast" => all,
            _ => return Err(self.unsupported(op)),
        };
        let results = self.new_lanes(op, mlir::result(op, 0))?;
        code.extend(results.into_iter().zip(from).map(|(to, from)| Inst::Copy { to, from }));
        Ok(())
    }

    /// The first lane of a part of `count` lanes at a static position.
    fn position(&self, op: Op, vector: Val, count: usize) -> Result<usize, Error> {
        let position = mlir::integers_attr(op, "static_position");
        let shape = mlir::shape(vector.r#type());
        let mut start = 0;
        for (index, extent) in position.iter().zip(&shape) {
            let (index, extent) = (usize::try_from(*index).ok(), extent.map(|it| it as usize));
            let (Some(index), Some(extent)) = (index, extent) else {
                return Err(self.unsupported(op));
            };
            start = start * extent + index;
        }
        Ok(start * count)
    }

    fn vector_reduction(&mut self, op: Op, code: &mut Code) -> Result<(), Error> {
        let kind = op.attribute("kind").map(|it| it.to_string()).unwrap_or_default();
        let kind = kind.trim_start_matches("#vector.kind<").trim_end_matches('>').to_string();
        let result = mlir::result(op, 0);
        let ty = scalar_type(result.r#type()).ok_or_else(|| self.unsupported_type(op, result))?;
        let mut lanes = self.lanes(op, mlir::operand(op, 0))?;
        if op.operand_count() == 2 {
            lanes.push(self.scalar(op, mlir::operand(op, 1))?);
        }
        let kind = reduction(&kind, ty).ok_or_else(|| self.unsupported(op))?;
        let to = self.new_scalar(result);
        code.push(Inst::Fold { kind, to, lanes });
        Ok(())
    }
}

/// The fold of a `vector.kind`.
fn reduction(kind: &str, ty: ScalarType) -> Option<FoldKind> {
    let combiner = |kind| FoldKind::of(kind, ty);
    match (kind, ty) {
        ("add", _) => combiner(CombinerKind::Add),
        ("mul", _) => combiner(CombinerKind::Mul),
        ("minsi", _) => combiner(CombinerKind::MinS),
        ("maxsi", _) => combiner(CombinerKind::MaxS),
        ("minui", _) => combiner(CombinerKind::MinU),
        ("maxui", _) => combiner(CombinerKind::MaxU),
        ("minnumf", _) => combiner(CombinerKind::MinF),
        ("maxnumf", _) => combiner(CombinerKind::MaxF),
        ("minimumf", _) => combiner(CombinerKind::MinimumF),
        ("maximumf", _) => combiner(CombinerKind::MaximumF),
        ("and", ScalarType::Int(width)) => Some(FoldKind::Int(IntBinary::And, width)),
        ("or", ScalarType::Int(width)) => Some(FoldKind::Int(IntBinary::Or, width)),
        ("xor", ScalarType::Int(width)) => Some(FoldKind::Int(IntBinary::Xor, width)),
        _ => None,
    }
}

/// The value of a constant of a scalar type.
pub(super) fn constant(ty: Type, attribute: Attribute) -> Option<Scalar> {
    match scalar_type(ty)? {
        ScalarType::Int(width) => Some(Scalar::int(wrap(mlir::integer_of(attribute)?, width))),
        ScalarType::Float(_) | ScalarType::Small(_) => {
            Some(Scalar::exact(FloatAttribute::try_from(attribute).ok()?.value()))
        }
    }
}

/// Whether a product may be contracted with a sum: one that it is a term of, perhaps after a
/// change of sign or a choice.
fn goes_into_sum(product: Val) -> bool {
    mlir::uses(product).into_iter().any(|(user, operand)| match mlir::name(user) {
        "arith.addf" | "arith.subf" | "arith.negf" | "arith.select" | "scf.yield"
        | "vector.reduction" => true,
        "imap.yield" | "tc.yield" => {
            let parent = mlir::parent(user);
            let kind = match parent
                .map(|parent| (AnyIndexed::cast(parent), Comprehension::cast(parent)))
            {
                Some((Some(generic), _)) => generic.accumulators().get(operand).map(|it| it.kind),
                Some((_, Some(statement))) => Some(statement.combiner().kind),
                _ => None,
            };
            kind == Some(CombinerKind::Add)
        }
        _ => false,
    })
}

fn int_binary(name: &str) -> Option<IntBinary> {
    Some(match name {
        "addi" => IntBinary::Add,
        "subi" => IntBinary::Sub,
        "muli" => IntBinary::Mul,
        "divsi" => IntBinary::Divide(Division::Signed),
        "divui" => IntBinary::Divide(Division::Unsigned),
        "floordivsi" => IntBinary::Divide(Division::Floor),
        "ceildivsi" => IntBinary::Divide(Division::Ceil),
        "ceildivui" => IntBinary::Divide(Division::CeilUnsigned),
        "remsi" => IntBinary::Remainder(Division::Signed),
        "remui" => IntBinary::Remainder(Division::Unsigned),
        "andi" => IntBinary::And,
        "ori" => IntBinary::Or,
        "xori" => IntBinary::Xor,
        "shli" => IntBinary::ShiftLeft,
        "shrsi" => IntBinary::ShiftRightSigned,
        "shrui" => IntBinary::ShiftRightUnsigned,
        "minsi" => IntBinary::MinSigned,
        "maxsi" => IntBinary::MaxSigned,
        "minui" => IntBinary::MinUnsigned,
        "maxui" => IntBinary::MaxUnsigned,
        _ => return None,
    })
}

fn float_binary(name: &str) -> Option<FloatBinary> {
    Some(match name {
        "addf" => FloatBinary::Add,
        "subf" => FloatBinary::Sub,
        "mulf" => FloatBinary::Mul,
        "divf" => FloatBinary::Div,
        "remf" => FloatBinary::Rem,
        "minnumf" => FloatBinary::MinNum,
        "maxnumf" => FloatBinary::MaxNum,
        "minimumf" => FloatBinary::Minimum,
        "maximumf" => FloatBinary::Maximum,
        _ => return None,
    })
}
