//! Small systems, and what is solved of them.

use super::*;

/// Equations, and what each name is; what is left.
fn solved(equations: &[(&str, &str)], names_of: &[&str]) -> Vec<String> {
    let (mut solver, mut names) = Solver::of_shapes(equations);
    solver.solve().unwrap();
    let mut lines: Vec<String> =
        names_of.iter().map(|name| solver.shown(&mut names, name)).collect();
    for left in solver.residuals(Mark::default()) {
        match left.relation {
            Relation::Dims(a, b) => {
                let dim = |dim| names.display_dim(&solver, dim);
                lines.push(format!("{} = {}", dim(&a), dim(&b)));
            }
            Relation::Shapes(a, b) => {
                let shape = |shape| names.display_shape(&solver, shape);
                lines.push(format!("{} = {}", shape(&a), shape(&b)));
            }
            Relation::Positive(_) | Relation::Elements(..) => {}
        }
    }
    lines
}

#[test]
fn what_is_common_is_dropped() {
    assert_eq!(solved(&[("[m + 1]", "[n + 1]"), ("[n]", "[4]")], &["[m]"]), ["[4]"]);
    assert_eq!(solved(&[("p@q", "p@[3]")], &["q"]), ["[3]"]);
    assert_eq!(solved(&[("[10 - d]", "[3]")], &["[d]"]), ["[7]"]);
}

#[test]
fn residuals_rewrite_others() {
    assert_eq!(solved(&[("p@q", "[2,3]"), ("p@q@[4]", "r")], &["r"]), ["[2,3,4]", "p@q = [2,3]"]);
    assert_eq!(
        solved(&[("[x]", "[2*(m + n)*k]"), ("[m + n]", "[4]")], &["[x]"]),
        ["[(* k 8)]", "(+ m n) = 4"]
    );
}

#[test]
fn sides_in_common_equate_the_others() {
    assert_eq!(
        solved(&[("[n]@s", "p@[a,b]"), ("p@[b,c]", "[n]@s")], &["[a,b,c]"]),
        ["[a,a,a]", "[n]@s = p@[a,a]"]
    );
    assert_eq!(
        solved(&[("[a*b]", "[c + d]"), ("[c + e]", "[b*a]")], &["[d,e]"]),
        ["[d,d]", "(* a b) = (+ c d)"]
    );
    assert_eq!(
        solved(&[("[a*b]", "[c + d]"), ("[a*b]", "[e]")], &["[e]"]),
        ["[(* a b)]", "(* a b) = (+ c d)"]
    );
    // Each once, however many say so.
    let three = [("[n]@s", "p@[a]"), ("p@[a]", "q@t"), ("q@t", "[n]@s")];
    assert_eq!(solved(&three, &[]), ["[n]@s = p@[a]", "[n]@s = q@t"]);
    let mut solver = Solver::new();
    let mut names = Names::default();
    let sides = ["[2]@e", "a@[3]", "[5]", "b", "[4]@f"];
    let [first, common, other, value, last] =
        sides.map(|text| names.shape(&mut solver, text).unwrap());
    solver.equate_shapes(first, common.clone(), 1);
    solver.equate_shapes(other, value, 2);
    solver.solve().unwrap();
    solver.equate_shapes(last, common, 3);
    let conflict = solver.solve().unwrap_err();
    assert_eq!(conflict.reason, Reason::Dims(Dim::Constant(4), Dim::Constant(2)));
    assert_eq!((conflict.core, conflict.origin, conflict.minimal), (vec![1, 3], 3, true));
}

/// Classes of more sides than are compared with each other.
#[test]
fn classes_of_any_size_end() {
    let (mut solver, mut names) = (Solver::new(), Names::default());
    let mut read = |solver: &mut Solver, text: String| names.shape(solver, &text).unwrap();
    let whole = read(&mut solver, "s@[k]".to_string());
    for number in 0..40 {
        let other = read(&mut solver, format!("p{number}@b{number}"));
        solver.equate_shapes(other, whole.clone(), number);
    }
    solver.solve().unwrap();
    solver.settle(Mark::default(), 0).unwrap();
    assert_eq!(solver.residuals(Mark::default()).len(), 40);
}

#[test]
fn what_cancels_is_solved() {
    assert_eq!(solved(&[("[a + 4 - b]", "[4]")], &["[b]"]), ["[a]"]);
    assert_eq!(solved(&[("[a + b]", "[10 - a - b]")], &[]), ["(+ a b) = 5"]);
}

#[test]
fn constants_move_to_the_other_side_of_compounds() {
    for (sum, value, residual) in [
        ("(+ (+ m n) 3)", "8", "(+ m n) = 5"),
        ("(+ 1 (- h r))", "30", "(- h r) = 29"),
        ("(- 1 (- h r))", "30", "(- r h) = 29"),
        ("(* (/ d 2) 2)", "8", "(/ d 2) = 4"),
        ("(* (+ m n) 2)", "8", "(+ m n) = 4"),
        ("(* (* m n) 3)", "12", "(* m n) = 4"),
        ("(- (+ m n) 2)", "8", "(+ m n) = 10"),
        ("(+ (/ d 2) 2)", "8", "(/ d 2) = 6"),
        ("(- 10 (* m n))", "4", "(* m n) = 6"),
    ] {
        let (sum, value) = (format!("[{sum}]"), format!("[{value}]"));
        assert_eq!(solved(&[(&sum, &value)], &[]), [residual], "{sum} = {value}");
        assert_eq!(solved(&[(&value, &sum)], &[]), [residual], "{value} = {sum}");
    }
}

#[test]
fn quotients_of_sizes_are_not_negative() {
    for (left, right) in [
        ("(+ (/ d 2) 3)", "2"),
        ("(+ (/ m n) 5)", "4"),
        ("(+ (/ (* 5 d) 3) 3)", "3"),
        ("(- 3 (/ (/ m n) 2))", "4"),
        ("(/ m 3)", "0"),
        ("(- m n)", "0"),
    ] {
        let mut solver = Solver::new();
        let mut names = Names::default();
        let left = names.dim(&mut solver, left).unwrap();
        let right = names.dim(&mut solver, right).unwrap();
        solver.equate_dims(left.clone(), right, 0);
        assert!(solver.solve().is_err(), "{}", names.display_dim(&solver, &left));
    }
}

/// Also where the division is none any more once all is put in.
#[test]
fn divisors_are_positive() {
    let own = ("[(c / b) / (a / b)]", "[d]");
    for (equations, divisor, instance) in [
        (&[own, ("[a]", "[c]")][..], "(/ c b)", ("[b,c]", "[4,3]")),
        (&[("[a / (b - c) + 2]", "[a / (b - d) + 2]"), ("[c]", "[d]")], "(- b c)", ("[b]", "[c]")),
    ] {
        let (mut solver, mut names) = Solver::of_shapes(equations);
        solver.solve().unwrap();
        let left = solver.residuals(Mark::default());
        let [known, sizes] =
            [instance.0, instance.1].map(|text| names.shape(&mut solver, text).unwrap());
        solver.equate_shapes(known, sizes, 0);
        let is_asked = |it: Residual| match it.relation {
            Relation::Positive(dim) => names.display_dim(&solver, &dim) == divisor,
            _ => false,
        };
        assert!(left.into_iter().any(is_asked), "{divisor}");
        let refused = solver.solve().and_then(|()| solver.settle(Mark::default(), 0));
        assert!(refused.is_err(), "{instance:?}");
    }
}

/// Also where what one equation says is put into the other one first, and nothing but ranks tells.
#[test]
fn ranks_that_never_fit_are_refused_in_any_order() {
    let equations = [("p@q", "[5,1]"), ("p@p@q", "[5]@q")];
    for equations in [equations, [equations[1], equations[0]]] {
        let swapped = equations.map(|(left, right)| (right, left));
        for equations in [equations, swapped] {
            let (mut solver, _) = Solver::of_shapes(&equations);
            assert!(solver.solve().is_err(), "{equations:?}");
        }
    }
}

#[test]
fn ranks_decide() {
    for (left, right) in [
        ("[a]@s", "s@[b,c]"),
        ("s@t", "t@s@[a]"),
        ("s@s", "[1,2]"),
        ("s@[a]@s", "[1,2]"),
        ("s@t@s", "t@[a,b,c]"),
    ] {
        let mut solver = Solver::new();
        let mut names = Names::default();
        let sides = [left, right].map(|text| names.shape(&mut solver, text).unwrap());
        let [first, second] = sides;
        solver.equate_shapes(first, second, 0);
        assert!(solver.solve().is_err(), "{left} = {right}");
    }
    assert_eq!(solved(&[("s@s", "[2,n]")], &["s", "[n]"]), ["[2]", "[2]"]);
    assert_eq!(solved(&[("s@[4]@s", "[2,3,a,b,3]")], &["s@[a,b]"]), ["[2,3,4,2]"]);
    assert_eq!(solved(&[("[a]@s@t", "s@[b]")], &["t"])[0], "[]");
}

/// `u@q = q@v`, where `u` and `v` are as long, against all `q` that are shorter, and values of two sizes.
#[test]
fn shapes_that_are_no_rotations_are_refused() {
    for_seeds(|random| {
        let length = 1 + random.below(4);
        let kinds = if random.below(2) == 0 { 2 } else { 4 };
        let [u, v] = [0; 2].map(|_| {
            let kinds: Vec<usize> = (0..length).map(|_| random.below(kinds)).collect();
            kinds
        });
        let mut system = System::new(2, 1);
        let dim = |kind: &usize| match kind {
            0..=1 => Item::Dim(Dim::Constant(1 + *kind as i64)),
            _ => Item::Dim(Dim::Var(DimVar(*kind as u32 - 2))),
        };
        let q = Item::Var(ShapeVar(0));
        let left: Shape = u.iter().map(dim).chain([q.clone()]).collect();
        let right: Shape = [q].into_iter().chain(v.iter().map(dim)).collect();
        let sides = if random.below(2) == 0 { (left, right) } else { (right, left) };
        system.relations.push(sides);
        let (mut solver, solved) = system.solve(&[0]);
        let solution = Solution::of(&system, &mut solver);
        let arithmetic = system.solver.arithmetic();
        let mut is_satisfied = false;
        for (a, b) in (1..=3).flat_map(|a| (1..=3).map(move |b| (a, b))) {
            let dims = HashMap::from([(DimVar(0), a), (DimVar(1), b)]);
            let sizes = |kinds: &[usize]| -> Vec<i64> {
                kinds.iter().map(|kind| [1, 2, a, b][*kind]).collect()
            };
            let (u, v) = (sizes(&u), sizes(&v));
            for rank in 0..length {
                let shapes = HashMap::from([(ShapeVar(0), u[..rank].to_vec())]);
                let values = Values { dims: dims.clone(), shapes };
                let whole = [&u[..], &u[..rank]].concat();
                let holds = whole == [&u[..rank], &v[..]].concat();
                let agrees = solved.is_ok() && solution.agrees(arithmetic, &values);
                assert_eq!(holds, agrees, "{}{values:?}", system.text());
                is_satisfied |= holds;
            }
        }
        assert!(is_satisfied || solved.is_err() || kinds == 4, "{}", system.text());
    });
    assert_eq!(solved(&[("[a,b]@q", "q@[2,a]")], &["[a,b]"]), ["[a,b]", "q@[2,a] = [a,b]@q"]);
    assert_eq!(solved(&[("[a]@q", "q@[b]")], &["[a,b]"]), ["[a,a]", "[a]@q = q@[a]"]);
    assert_eq!(solved(&[("q@[3,b]", "[2,a]@q")], &["[a,b]"]), ["[3,2]", "[2,3]@q = q@[3,2]"]);
}

/// Without the residual both operands could have the shape `s@[m]`.
#[test]
fn what_residuals_forbid_is_broadcast() {
    let mut solver = Solver::new();
    let mut names = Names::default();
    let mut read = |solver: &mut Solver, text| names.shape(solver, text).unwrap();
    let (whole, reduced) = (read(&mut solver, "s@[m]"), read(&mut solver, "b"));
    let (from, result) = (read(&mut solver, "[a]@b"), read(&mut solver, "r"));
    solver.equate_shapes(from, whole.clone(), 0);
    solver.solve_pointwise(0, &[]).unwrap();
    solver.pointwise(vec![whole.clone(), reduced], result.clone(), 1);
    solver.solve_pointwise(0, &[]).unwrap();
    assert_eq!(solver.resolved_shape(&result), whole);
    assert_eq!(solver.residuals(Mark::default()).len(), 1);
}

#[test]
fn variables_change_places() {
    let mut solver = Solver::new();
    let mut names = Names::default();
    let dim = names.dim(&mut solver, "(/ (/ 12 a) b)").unwrap();
    let (a, b) = (names.dims["a"], names.dims["b"]);
    let swapped = solver
        .arithmetic()
        .substitute(&dim, &mut |var| Some(Dim::Var(if var == a { b } else { a })))
        .unwrap();
    assert_eq!(names.display_dim(&solver, &swapped), "(/ (/ 12 b) a)");
}

#[test]
fn chains_of_any_length_are_flat() {
    let mut solver = Solver::new();
    let vars: Vec<DimVar> = (0..20_000).map(|_| solver.dim_var(0)).collect();
    for pair in vars.windows(2) {
        let arithmetic = solver.arithmetic();
        let next = arithmetic.apply(DimOp::Add, &Dim::Var(pair[1]), &Dim::Constant(2)).unwrap();
        solver.equate_dims(Dim::Var(pair[0]), next, 0);
    }
    solver.equate_dims(Dim::Var(vars[19_999]), Dim::Constant(1), 1);
    solver.solve().unwrap();
    assert_eq!(solver.resolved_dim(&Dim::Var(vars[0])), Dim::Constant(39_999));
}

#[test]
fn what_is_too_large_is_an_error() {
    let mut solver = Solver::new();
    let mut names = Names::default();
    let big = i64::MAX.to_string();
    assert!(names.dim(&mut solver, &format!("{big} + 1")).is_err());
    assert!(names.dim(&mut solver, "9223372036854775808").is_err());
    assert!(names.dim(&mut solver, "(/ a 0)").is_err());
    assert!(names.dim(&mut solver, &"(".repeat(100_000)).is_err());
    // A product of two sizes that is known later.
    let left = names.shape(&mut solver, "[a*b]").unwrap();
    let right = names.shape(&mut solver, "[c]").unwrap();
    solver.equate_shapes(left, right, 0);
    for name in ["a", "b"] {
        let dim = names.dim(&mut solver, name).unwrap();
        solver.equate_dims(dim, Dim::Constant(i64::MAX), 1);
    }
    let conflict = solver.solve().unwrap_err();
    assert_eq!(conflict.reason, Reason::Arithmetic(DimError::Overflow));
    // A shape that doubles with every equation.
    let mut solver = Solver::new();
    let mut whole = Shape::var(solver.shape_var(0));
    for _ in 0..40 {
        let double = whole.items.iter().chain(&whole.items).cloned().collect();
        let next = Shape::var(solver.shape_var(0));
        solver.equate_shapes(next.clone(), double, 0);
        whole = next;
    }
    assert_eq!(solver.solve().unwrap_err().reason, Reason::Arithmetic(DimError::TooLarge));
}
