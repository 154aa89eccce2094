//! Ranges, preconditions, diagnostics and explanations of small statements, and random ones against
//! enumeration.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tc_ir::expr::{Context, Expr, Var};
use tc_ir::interval::Interval;
use tc_ir::polynomial::text;

use super::*;

/// Builds statements over the sizes `N`, `M`, `K` and the index variables `i`, `j`, `k`, which are
/// left-hand indices, and `r`, which is a reduction variable.
struct Setting {
    context: Context,
    scope: Scope,
    statement: Statement,
}

const NAMES: [(&str, Var); 4] =
    [("i", Var::Dim(0)), ("j", Var::Dim(1)), ("k", Var::Dim(2)), ("r", Var::Range(0))];

impl Setting {
    fn new(index_vars: &str) -> Self {
        let sizes = ["N", "M", "K"].map(|name| Value::Size { name: name.to_owned() });
        let used = NAMES.into_iter().filter(|(name, _)| index_vars.contains(name));
        let index_vars =
            used.map(|(name, var)| IndexVar { name: name.to_owned(), var, location: 1 });
        let statement = Statement { index_vars: index_vars.collect(), ..Statement::default() };
        Self { context: Context::new(), scope: Scope { values: sizes.to_vec() }, statement }
    }

    fn c(&self, value: i64) -> Expr {
        self.context.constant(value)
    }

    fn v(&self, name: &str) -> Expr {
        let index_var = NAMES.iter().find(|(known, _)| *known == name);
        match (index_var, name) {
            (Some(&(_, var)), _) => self.context.var(var),
            (None, "N") => self.context.runtime(0),
            (None, "M") => self.context.runtime(1),
            _ => self.context.runtime(2),
        }
    }

    fn data(&mut self, text: &str, interval: Interval, depends_on: &[Var]) -> Expr {
        let depends_on = depends_on.iter().copied().collect();
        self.scope.values.push(Value::Data { text: text.to_owned(), interval, depends_on });
        self.context.runtime(self.scope.values.len() as u32 - 1)
    }

    /// Adds a read of `tensor`, whose dimensions start at 0, with the given sizes.
    fn read(&mut self, tensor: &str, args: &[Expr], sizes: &[Expr]) -> &mut Access {
        let last = |&size: &Expr| (self.c(0), self.context.sub(size, self.c(1)));
        let dims = sizes.iter().map(last).collect();
        self.statement.accesses.push(Access {
            tensor: tensor.to_owned(),
            text: format!("{tensor}(..)"),
            location: 2,
            declared_at: Some(3),
            args: args.to_vec(),
            dims,
            guarded: false,
            from_exists: false,
            is_update: false,
        });
        self.statement.accesses.last_mut().expect("one was just added")
    }

    /// Adds `where name in lower:upper`, the upper bound excluded.
    fn declare(&mut self, name: &str, lower: Expr, upper: Expr) {
        let index_vars = &self.statement.index_vars;
        let index_var = index_vars
            .iter()
            .position(|var| var.name == name)
            .expect("a variable of the statement");
        let upper = self.context.sub(upper, self.c(1));
        self.statement.declared.push(DeclaredRange { index_var, lower, upper });
    }

    fn infer(&self) -> Inference {
        infer(&self.context, &self.scope, &self.statement)
    }

    /// `name in lower:upper` per variable, then the rounds, then preconditions and errors.
    fn shown(&self) -> String {
        let inference = self.infer();
        let name = |var| match var {
            Var::Runtime(number) => ["N", "M", "K"][number as usize].to_owned(),
            _ => "?".to_owned(),
        };
        let mut parts = Vec::new();
        for (index_var, range) in self.statement.index_vars.iter().zip(&inference.ranges) {
            if let Some(range) = range {
                let end = self.context.add(range.upper, self.c(1));
                let (lower, end) =
                    (text(&self.context, range.lower, &name), text(&self.context, end, &name));
                parts.push(format!("{} in {lower}:{end}", index_var.name));
            }
        }
        parts.extend(
            inference.preconditions.iter().map(|precondition| format!("[{}]", precondition.text)),
        );
        let errors =
            inference.diagnostics.iter().filter(|it| it.kind.severity() == Severity::Error);
        parts.extend(errors.map(|error| error.kind.name().to_owned()));
        parts.join(", ")
    }
}

#[test]
fn stencil_resolves_in_two_rounds() {
    // A(i) +=! B(i + r) * K(r)
    let mut s = Setting::new("ir");
    let sum = s.context.add(s.v("i"), s.v("r"));
    s.read("B", &[sum], &[s.v("N")]);
    s.read("K", &[s.v("r")], &[s.v("M")]);
    assert_eq!(s.shown(), "i in 0:N - M + 1, r in 0:M");
    let inference = s.infer();
    assert_eq!(inference.rounds, [["r"], ["i"]]);
    assert!(inference.diagnostics.is_empty());
    assert_eq!(
        explain(&s.context, &s.scope, &s.statement, &inference),
        "\
round 1
  B(..), dimension 0: 0 <= i + r < N waits, i and r are unresolved
  K(..), dimension 0: 0 <= r < M gives 0 <= r < M
  so r in 0:M
round 2
  B(..), dimension 0: 0 <= i + r < N gives 0 <= i < N - M + 1
  so i in 0:N - M + 1
bounds of the reads
  B(..), dimension 0: 0 <= i + r < N holds by construction
  K(..), dimension 0: 0 <= r < M holds by construction
"
    );
}

#[test]
fn leftover_access_is_a_precondition() {
    // A(i, j) = B(i) * C(i + j) * D(j)
    let mut s = Setting::new("ij");
    let sum = s.context.add(s.v("i"), s.v("j"));
    s.read("B", &[s.v("i")], &[s.v("N")]);
    s.read("C", &[sum], &[s.v("K")]);
    s.read("D", &[s.v("j")], &[s.v("M")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:M, [N + M - 1 <= K]");
    let inference = s.infer();
    let [diagnostic] = &inference.diagnostics[..] else {
        panic!("one warning: {:?}", inference.diagnostics)
    };
    assert_eq!(diagnostic.kind, Kind::UncheckedPrecondition);
    assert_eq!(diagnostic.message, "read of 'C' may be out of bounds");
    assert_eq!(
        diagnostic.notes[0].1,
        "'i + j' reaches N + M - 2, but dimension 0 of 'C' ends at K - 1"
    );
    assert_eq!(diagnostic.notes[1].1, "precondition recorded: N + M - 1 <= K");
    let precondition = &inference.preconditions[0];
    assert_eq!((precondition.access, precondition.dim, precondition.refuted), (1, 0, false));
    assert_eq!(precondition.index_vars, BTreeSet::from([0, 1]));
    assert!(precondition.lower.is_none() && precondition.upper.is_some());
}

#[test]
fn refuted_access_is_an_error() {
    let mut s = Setting::new("i");
    s.read("B", &[s.v("i")], &[s.c(6)]);
    s.read("C", &[s.context.add(s.v("i"), s.c(1))], &[s.c(6)]).from_exists = true;
    s.declare("i", s.c(0), s.c(7));
    assert_eq!(s.shown(), "i in 0:7, [6 <= 5], out_of_bounds");
    let inference = s.infer();
    assert!(inference.preconditions[0].refuted);
    assert_eq!(inference.diagnostics[0].message, "read of 'B' is out of bounds");
    assert_eq!(inference.diagnostics.len(), 1);
    assert!(inference.resolved().is_none());
}

#[test]
fn dimensions_that_exclude_each_other_are_an_error() {
    // B(i, N) for i in 0:4, where B is N by 3.
    let mut s = Setting::new("i");
    s.declare("i", s.c(0), s.c(4));
    s.read("B", &[s.v("i"), s.v("N")], &[s.v("N"), s.c(3)]);
    assert_eq!(s.shown(), "i in 0:4, [4 <= N], [N <= 2], out_of_bounds");
    // A read under a condition may never happen.
    s.statement.accesses[0].guarded = true;
    assert_eq!(s.shown(), "i in 0:4, [4 <= N], [N <= 2]");
}

#[test]
fn constant_index_needs_a_large_enough_size() {
    let mut s = Setting::new("i");
    s.read("A", &[s.c(0), s.v("i")], &[s.v("N"), s.v("M")]);
    assert_eq!(s.shown(), "i in 0:M");
    s.read("A", &[s.c(3), s.v("i")], &[s.v("N"), s.v("M")]);
    s.read("A", &[s.c(3), s.v("i")], &[s.v("N"), s.v("M")]);
    // Each access has its precondition, and there is one warning.
    assert_eq!(s.shown(), "i in 0:M, [4 <= N], [4 <= N]");
    let inference = s.infer();
    assert_eq!(inference.diagnostics.len(), 1);
    assert_eq!(
        inference.diagnostics[0].notes[0].1,
        "the index is 3, but dimension 0 of 'A' ends at N - 1"
    );
}

#[test]
fn strides_offsets_and_origins() {
    // A(i) = B(2*i) + B(2*i + 1)
    let mut s = Setting::new("i");
    let twice = s.context.mul(s.v("i"), s.c(2));
    s.read("B", &[twice], &[s.v("N")]);
    assert_eq!(s.shown(), "i in 0:(N + 1) / 2");
    s.read("B", &[s.context.add(twice, s.c(1))], &[s.v("N")]);
    assert_eq!(s.shown(), "i in 0:N / 2");
    // O(i) = T(i) * B(i), where T starts at -1
    let mut s = Setting::new("i");
    s.read("B", &[s.v("i")], &[s.v("M")]);
    s.read("T", &[s.v("i")], &[s.v("N")]).dims[0] = (s.c(-1), s.context.sub(s.v("N"), s.c(2)));
    assert_eq!(s.shown(), "i in 0:min(M, N - 1)");
    let range = s.infer().ranges[0].expect("resolved");
    assert_eq!(s.context.eval(range.extent, &|_| Some(4)), Ok(3));
}

#[test]
fn where_range_with_elimination() {
    // O(i, j) = I(10 + i - j, i + j) where i in 0:10
    let mut s = Setting::new("ij");
    let (i, j) = (s.v("i"), s.v("j"));
    let skew = s.context.add(s.context.sub(i, j), s.c(10));
    s.read("I", &[skew, s.context.add(i, j)], &[s.v("N"), s.v("M")]);
    assert_eq!(s.shown(), "ambiguous");
    s.declare("i", s.c(0), s.c(10));
    assert_eq!(s.shown(), "i in 0:10, j in max(20 - N, 0):min(M - 9, 11)");
}

#[test]
fn data_bounds_nothing() {
    // A(i) = B(C(i))
    let mut s = Setting::new("ij");
    let read = s.data(
        "C(i)",
        Interval { lo: i64::from(i32::MIN), hi: i64::from(i32::MAX) },
        &[Var::Dim(0)],
    );
    s.read("C", &[s.v("i")], &[s.v("N")]);
    s.read("B", &[read], &[s.v("M")]);
    s.read("D", &[s.v("j")], &[s.v("K")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:K, [0 <= C(i) < M]");
    let inference = s.infer();
    assert_eq!(inference.diagnostics[0].kind, Kind::DataDependentAccess);
    assert_eq!(inference.preconditions[0].index_vars, BTreeSet::from([0]));
    // Clamped, it is in bounds, and may even stand beside a variable.
    let clamped = s.context.max(s.context.min(read, s.context.sub(s.v("M"), s.c(1))), s.c(0));
    s.statement.accesses[1].args[0] = clamped;
    assert_eq!(s.shown(), "i in 0:N, j in 0:K");
    s.statement.accesses.pop();
    s.read("D", &[s.context.add(clamped, s.v("j"))], &[s.v("K")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:K - M + 1");
    // Free, it leaves j without a range.
    s.statement.accesses[2].args[0] = s.context.add(read, s.v("j"));
    assert_eq!(s.shown(), "i in 0:N, unknown_range");
    let note = &s.infer().diagnostics[0].notes[0].1;
    assert_eq!(note, "'j + C(i)' in 'D(..)' does not give it: 'C(i)' is known only at run time");
    // The values of a small type can be in bounds by themselves.
    let small = s.data("S(i)", Interval { lo: 0, hi: 255 }, &[Var::Dim(0)]);
    s.statement.accesses.pop();
    s.read("T", &[small, s.v("j")], &[s.c(256), s.v("K")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:K");
}

#[test]
fn dynamic_stride_asks_for_a_range() {
    let mut s = Setting::new("i");
    let stride = s.data("S(0)", Interval { lo: i64::MIN, hi: i64::MAX }, &[]);
    s.read("B", &[s.context.mul(stride, s.v("i"))], &[s.v("N")]);
    assert_eq!(s.shown(), "dynamic_stride");
    let inference = s.infer();
    assert_eq!(
        inference.diagnostics[0].notes[0].1,
        "its stride 'S(0)' in 'B(..)' is known only at run time"
    );
    s.declare("i", s.c(0), s.c(4));
    assert_eq!(s.shown(), "i in 0:4, [0 <= i*S(0) < N]");
}

#[test]
fn ambiguity_names_the_access() {
    let mut s = Setting::new("ir");
    s.read("B", &[s.context.add(s.v("i"), s.v("r"))], &[s.v("N")]);
    let [diagnostic] = &s.infer().diagnostics[..] else { panic!("one error") };
    assert_eq!(diagnostic.message, "cannot infer ranges for index variables 'i', 'r'");
    let notes: Vec<_> =
        diagnostic.notes.iter().map(|(location, note)| (*location, note.as_str())).collect();
    assert_eq!(
        notes,
        [
            (
                2,
                "'B(..)' is the only access that bounds them, and it holds two unresolved variables"
            ),
            (3, "dimension 0 of 'B' has size 'N'"),
            (2, "try a range for one of them: 'where r in 0:R'"),
        ]
    );
}

#[test]
fn groups_of_ambiguous_variables_are_apart() {
    let mut s = Setting::new("ijkr");
    s.read("B", &[s.context.add(s.v("i"), s.v("j"))], &[s.v("N")]);
    s.read("C", &[s.context.add(s.v("k"), s.v("r"))], &[s.v("M")]);
    assert_eq!(s.shown(), "ambiguous, ambiguous");
    s.read("D", &[s.context.add(s.v("k"), s.v("i"))], &[s.v("M")]);
    assert_eq!(s.shown(), "ambiguous");
}

#[test]
fn unknown_range_says_what_is_missing() {
    let mut s = Setting::new("ij");
    s.read("B", &[s.v("i")], &[s.v("N")]);
    assert_eq!(s.shown(), "i in 0:N, unknown_range");
    assert_eq!(s.infer().diagnostics[0].notes[0].1, "no access is indexed by 'j'");
    let square = s.context.mul(s.v("j"), s.v("j"));
    s.read("C", &[square], &[s.v("N")]);
    assert_eq!(
        s.infer().diagnostics[0].notes[0].1,
        "'j*j' in 'C(..)' does not give it: it is not linear in 'j'"
    );
    s.statement.accesses[1].args[0] = s.context.max(s.v("j"), s.c(0));
    assert_eq!(
        s.infer().diagnostics[0].notes[0].1,
        "'max(j, 0)' in 'C(..)' does not give it: it gives an upper bound only"
    );
    // Each of two accesses gives one end.
    s.read("D", &[s.context.min(s.v("j"), s.c(0))], &[s.v("M")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:N");
    assert_eq!(s.infer().rounds, [["i", "j"]]);
}

#[test]
fn empty_and_non_rectangular_ranges_are_errors() {
    let mut s = Setting::new("ij");
    s.declare("i", s.c(8), s.c(4));
    s.declare("j", s.c(0), s.v("N"));
    assert!(s.shown().ends_with("empty_range"));
    let mut s = Setting::new("ij");
    s.declare("i", s.v("N"), s.v("N"));
    assert_eq!(s.shown(), "i in N:N, empty_range");
    assert_eq!(s.infer().diagnostics[0].notes[0].1, "found 'N:N', expected an end above the start");
    let mut s = Setting::new("ij");
    s.declare("i", s.c(0), s.v("N"));
    s.declare("j", s.c(0), s.v("i"));
    assert_eq!(s.shown(), "non_rectangular");
    // An access that can never be in bounds together with another one.
    let mut s = Setting::new("i");
    s.read("B", &[s.v("i")], &[s.c(4)]);
    s.read("C", &[s.context.sub(s.v("i"), s.c(4))], &[s.v("N")]);
    assert!(s.shown().ends_with("empty_range"));
    // Empty for some sizes only is for the caller to see.
    let mut s = Setting::new("i");
    s.declare("i", s.c(1), s.v("N"));
    assert_eq!(s.shown(), "i in 1:N");
}

#[test]
fn guarded_reads_take_part_and_keep_their_guard() {
    let mut s = Setting::new("i");
    s.declare("i", s.c(0), s.v("N"));
    s.read("D", &[s.context.sub(s.v("i"), s.v("M"))], &[s.v("N")]).guarded = true;
    assert_eq!(s.shown(), "i in 0:N, [M <= 0]");
    let inference = s.infer();
    assert!(inference.preconditions[0].guarded && inference.preconditions[0].refuted);
    assert_eq!(inference.diagnostics[0].message, "read of 'D' may be out of bounds");
}

#[test]
fn products_and_remainders_are_checked_exactly() {
    // A(i, j) = B(i) * C(j) * D(i*M + j), where D has N*M elements
    let mut s = Setting::new("ij");
    s.read("B", &[s.v("i")], &[s.v("N")]);
    s.read("C", &[s.v("j")], &[s.v("M")]);
    let flat = s.context.add(s.context.mul(s.v("i"), s.v("M")), s.v("j"));
    s.read("D", &[flat], &[s.context.mul(s.v("N"), s.v("M"))]);
    s.read("E", &[s.context.modulo(s.v("i"), s.v("M"))], &[s.v("M")]);
    s.read("E", &[s.context.floor_div(s.v("j"), s.c(2))], &[s.v("M")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:M");
    s.read("D", &[flat], &[s.v("K")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:M, [N*M <= K]");
    s.read("F", &[s.context.modulo(s.v("i"), s.c(5))], &[s.v("K")]);
    assert_eq!(s.shown(), "i in 0:N, j in 0:M, [N*M <= K], [i % 5 < K]");
    assert!(s.infer().preconditions[1].conditions.is_none());
}

#[test]
fn many_accesses_are_solved_in_time() {
    let mut s = Setting::new("ijkr");
    for step in 0..300 {
        let args = ["i", "j", "k"]
            .map(|name| s.context.add(s.v(name), s.context.mul(s.v("r"), s.c(step % 6 + 1))));
        s.read("B", &args, &[s.v("N"), s.v("M"), s.v("K")]);
        s.read("W", &[s.v("r")], &[s.c(3 + step)]);
    }
    assert_eq!(s.shown(), "i in 0:N - 12, j in 0:M - 12, k in 0:K - 12, r in 0:3");
}

/// One argument `a*i + b*j + c` over a dimension of size `N`, `M` or `K`.
type Argument = (i64, i64, i64, usize);

proptest! {
    #[test]
    fn ranges_keep_reads_in_bounds(
        args in prop::collection::vec((-3i64..4, -2i64..3, -4i64..5, 0usize..3), 1..5),
        where_j in prop::option::of((0i64..3, 1i64..4)),
    ) {
        let args: Vec<Argument> = args;
        let mut s = Setting::new("ij");
        for &(a, b, c, size) in &args {
            let scaled = s.context.add(s.context.mul(s.v("i"), s.c(a)), s.context.mul(s.v("j"), s.c(b)));
            s.read("B", &[s.context.add(scaled, s.c(c))], &[s.v(["N", "M", "K"][size])]);
        }
        if let Some((lower, extent)) = where_j {
            s.declare("j", s.c(lower), s.c(lower + extent));
        }
        let inference = s.infer();
        let Some(ranges) = inference.resolved() else { return Ok(()) };
        for sizes in (0..64).map(|index| [index % 4 + 1, index / 4 % 4 * 2 + 1, index / 16 * 3 + 1]) {
            let at = |expr: Expr| s.context.eval(expr, &|var| match var {
                Var::Runtime(number) => Some(sizes[number as usize]),
                _ => None,
            }).expect("small numbers");
            let bounds: Vec<_> = ranges.iter().map(|range| at(range.lower)..=at(range.upper)).collect();
            if bounds.iter().any(|range| range.is_empty()) {
                continue;
            }
            for (access, &(a, b, c, size)) in args.iter().enumerate() {
                let points = bounds[0].clone().flat_map(|i| bounds[1].clone().map(move |j| (i, j)));
                let in_bounds = points.into_iter().all(|(i, j)| {
                    let index = a * i + b * j + c;
                    0 <= index && index < sizes[size]
                });
                // In bounds exactly where the preconditions of the access hold.
                let conditions = inference.preconditions.iter().filter(|it| it.access == access);
                let promised = conditions.flat_map(|it| it.conditions.iter().flatten()).all(|&it| 0 <= at(it));
                prop_assert_eq!(in_bounds, promised, "access {} at {:?} in {:?}", access, sizes, bounds);
            }
            // Maximal: where nothing is left over, no variable can be extended by one.
            if where_j.is_none() && inference.preconditions.is_empty() {
                let fits = |i: i64, j: i64| args.iter().all(|&(a, b, c, size)| {
                    let index = a * i + b * j + c;
                    0 <= index && index < sizes[size]
                });
                let last = inference.rounds.last().map(Vec::as_slice).unwrap_or_default();
                if last == ["i"] {
                    let (low, high) = (*bounds[0].start() - 1, *bounds[0].end() + 1);
                    for i in [low, high] {
                        prop_assert!(!bounds[1].clone().all(|j| fits(i, j)), "i = {} fits at {:?}", i, sizes);
                    }
                }
            }
        }
    }
}
