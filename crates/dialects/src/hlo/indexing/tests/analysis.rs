//! Whole computations, runtime variables, collectives, utilization.

use super::*;
use crate::element::ElementType;

fn root_texts(text: &str) -> Vec<Vec<String>> {
    let module = parse(text);
    let indexing = Indexing::of(&module);
    let sets = indexing.output_to_input(indexing.root(module.entry), 0);
    sets.iter().map(|set| indexing.set_text(set)).collect()
}

/// Slices of slices: the number of paths doubles with each level, the number of maps grows by one.
fn stencil(levels: i64) -> String {
    let mut text = format!("HloModule m\nf {{\n  x0 = f32[{}] parameter(0)\n", levels + 2);
    for level in 1..=levels {
        let extent = levels + 2 - level;
        for start in 0..2 {
            text += &format!(
                "  s{level}.{start} = f32[{extent}] slice(x{}), slice={{[{start}:{}]}}\n",
                level - 1,
                start + extent
            );
        }
        let root = if level == levels { "ROOT " } else { "" };
        text += &format!("  {root}x{level} = f32[{extent}] add(s{level}.0, s{level}.1)\n");
    }
    text + &format!(
        "}}\nENTRY e {{\n  p = f32[{}] parameter(0)\n  ROOT r = f32[2] fusion(p), kind=kLoop, \
         calls=f\n}}\n",
        levels + 2
    )
}

#[test]
fn exponentially_many_paths() {
    let texts = root_texts(&stencil(40));
    assert_eq!(texts[0].len(), 41);
    let texts = root_texts(&stencil(MAX_MAPS as i64 + 20));
    assert_eq!(texts, [["unknown indexing"]]);
}

#[test]
fn deep_calls_do_not_recurse() {
    let mut text = String::from("HloModule m\nf0 { ROOT p = f32[4] parameter(0) }\n");
    for level in 1..3000 {
        text += &format!(
            "f{level} {{\n p = f32[4] parameter(0)\n r = f32[4] reverse(p), dimensions={{0}}\n \
             ROOT c = f32[4] call(r), to_apply=f{}\n}}\n",
            level - 1
        );
    }
    text += "ENTRY e { p = f32[4] parameter(0)\n ROOT c = f32[4] call(p), to_apply=f2999 }\n";
    let module = parse(&text);
    let indexing = Indexing::of(&module);
    let at = indexing.root(module.entry);
    let expected = ["(d0) -> (-d0 + 3), domain: d0 in [0, 3]"];
    assert_eq!(indexing.set_text(&indexing.output_to_input(at, 0)[0]), expected);
    assert_eq!(indexing.set_text(&indexing.input_to_output(at, 0)[0]), expected);
}

#[test]
fn known_indices_replace_runtime_variables() {
    let gather = |indices: &str, operand: i64| {
        let texts = root_texts(&format!(
            "HloModule m\nENTRY e {{\n  p = f32[{operand},5] parameter(0)\n  {indices}\n  \
             ROOT g = f32[4,5] gather(p, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
             start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,5}}\n}}\n"
        ));
        texts[0][0].lines().next().unwrap_or_default().to_string()
    };
    let domain = "domain: d0 in [0, 3], d1 in [0, 4]";
    assert_eq!(
        gather("i = s32[4,1] iota(), iota_dimension=0", 4),
        format!("(d0, d1) -> (d0, d1), {domain}")
    );
    let arithmetic = "a = s32[4] iota(), iota_dimension=0\n  \
                      b = s32[4] reverse(a), dimensions={0}\n  c = s32[] constant(2)\n  \
                      d = s32[4] broadcast(c), dimensions={}\n  e = s32[4] multiply(b, d)\n  \
                      i = s32[4,1] reshape(e)";
    assert_eq!(gather(arithmetic, 7), format!("(d0, d1) -> (d0 * -2 + 6, d1), {domain}"));
    // One less, and the last index is moved; so it stays a runtime variable.
    assert!(gather(arithmetic, 6).starts_with("(d0, d1){rt0} -> (rt0, d1)"));
    // What does not fit in the type wraps around.
    let narrow = "a = s8[4] iota(), iota_dimension=0\n  c = s8[] constant(100)\n  \
                  d = s8[4] broadcast(c), dimensions={}\n  b = s8[4] multiply(a, d)\n  \
                  i = s8[4,1] reshape(b)";
    assert!(gather(narrow, 999).starts_with("(d0, d1){rt0} -> (rt0, d1)"));
}

#[test]
fn runtime_variables_through_two_gathers() {
    let text = "HloModule m\nf {\n  t = f32[9,3] parameter(0)\n  i = s32[4,1] parameter(1)\n  \
                j = s32[2,1] parameter(2)\n  \
                g = f32[4,3] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, \
                start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n  \
                ROOT h = f32[2,3] gather(g, j), offset_dims={1}, collapsed_slice_dims={0}, \
                start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}\n}\n\
                ENTRY e {\n  t = f32[9,3] parameter(0)\n  i = s32[4,1] parameter(1)\n  \
                j = s32[2,1] parameter(2)\n  \
                ROOT r = f32[2,3] fusion(t, i, j), kind=kLoop, calls=f\n}\n";
    let texts = root_texts(text);
    // Which row of the table: an index that stands where the second runtime variable says.
    assert_eq!(
        texts[0][0].lines().collect::<Vec<_>>(),
        [
            "(d0, d1){rt0, rt1} -> (rt0, d1), domain: d0 in [0, 1], d1 in [0, 2], rt0 in [0, 8], \
             rt1 in [0, 3]",
            "runtime variables:",
            "rt0: parameter(1); (d0, d1){rt0} -> (rt0, 0), domain: d0 in [0, 1], d1 in [0, 2], \
             rt0 in [0, 3]",
            "rt1: parameter(2); (d0, d1) -> (d0, 0), domain: d0 in [0, 1], d1 in [0, 2]",
        ]
    );
}

#[test]
fn tuples_are_looked_through() {
    let text = "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  b = f32[6] parameter(1)\n  \
                t = (f32[4], (f32[6], f32[4])) tuple(a, u)\n}\n";
    let text = text.replace("  t =", "  u = (f32[6], f32[4]) tuple(b, a)\n  t =").replace(
        "}\n",
        "  v = (f32[6], f32[4]) get-tuple-element(t), index=1\n  \
                 w = f32[6] get-tuple-element(v), index=0\n  \
                 ROOT r = f32[6] reverse(w), dimensions={0}\n}\n",
    );
    let module = parse(&text);
    let indexing = Indexing::of(&module);
    let grouped = indexing.grouped(indexing.root(module.entry), 0, None);
    let texts = |name: &str| {
        let set = grouped.get(&module.entry().find(name).unwrap());
        set.map(|set| indexing.set_text(set)).unwrap_or_default()
    };
    assert_eq!(texts("b"), ["(d0) -> (-d0 + 5), domain: d0 in [0, 5]"]);
    assert!(texts("a").is_empty());
    // Array 1 of the outer tuple is the first of the inner one.
    let t = &grouped[&module.entry().find("t").unwrap()];
    assert_eq!(t.maps().iter().map(|it| it.array).collect::<Vec<_>>(), [1]);
    let b = InstructionRef {
        computation: module.entry,
        instruction: module.entry().find("b").unwrap(),
    };
    let epilogue = indexing.epilogue(b, 0, module.entry().root);
    assert_eq!(indexing.set_text(&epilogue), ["(d0) -> (-d0 + 5), domain: d0 in [0, 5]"]);
}

#[test]
fn conditionals_join_their_branches() {
    let text = "HloModule m\nf { p = f32[4] parameter(0)\n ROOT r = f32[4] negate(p) }\n\
                g { p = f32[4] parameter(0)\n ROOT r = f32[4] reverse(p), dimensions={0} }\n\
                ENTRY e {\n  c = s32[] parameter(0)\n  p = f32[4] parameter(1)\n  \
                ROOT r = f32[4] conditional(c, p, p), branch_computations={f, g}\n}\n";
    assert_eq!(
        root_texts(text),
        [
            ["(d0) -> (), domain: d0 in [0, 3]"],
            ["(d0) -> (d0), domain: d0 in [0, 3]"],
            ["(d0) -> (-d0 + 3), domain: d0 in [0, 3]"],
        ]
    );
}

/// The replica is the position in the group; what replica 1 of 2 gets is checked by hand.
#[test]
fn collectives_say_which_replica() {
    let text = |op: &str| {
        format!(
            "HloModule m, replica_count=2\nadd {{\n x = f32[] parameter(0)\n \
             y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}}\n\
             ENTRY e {{\n  p = f32[4] parameter(0)\n  ROOT r = {op}\n}}\n"
        )
    };
    let only = |op: &str| root_texts(&text(op))[0].join("|");
    assert_eq!(
        only("f32[4] all-reduce(p), to_apply=add"),
        "(d0)[s0] -> (d0), domain: d0 in [0, 3], s0 in [0, 1]\n\
         replica id: (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 1]"
    );
    assert_eq!(
        only("f32[2] reduce-scatter(p), dimensions={0}, to_apply=add"),
        "(d0)[s0]{rt0} -> (d0 + rt0 * 2), domain: d0 in [0, 1], s0 in [0, 1], rt0 in [0, 1]\n\
         runtime variables:\n\
         rt0: position in the group of r; (d0)[s0] -> (), domain: d0 in [0, 1], s0 in [0, 1]\n\
         replica id: (d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 1]"
    );
    assert_eq!(
        only("f32[4] all-to-all(p), dimensions={0}"),
        "(d0){rt0} -> (rt0 * 2 + d0 mod 2), domain: d0 in [0, 3], rt0 in [0, 1]\n\
         runtime variables:\n\
         rt0: position in the group of r; (d0) -> (), domain: d0 in [0, 3]\n\
         replica id: (d0) -> (d0 / 2), domain: d0 in [0, 3]"
    );
    assert_eq!(
        only("f32[8] all-gather(p), dimensions={0}"),
        "(d0) -> (d0 mod 4), domain: d0 in [0, 7]\n\
         replica id: (d0) -> (d0 / 4), domain: d0 in [0, 7]"
    );
    // With a channel, partitions belong to the group.
    let size = |header: &str, attributes: &str| {
        let text = text(&format!("f32[4] all-reduce(p), to_apply=add{attributes}"));
        let text = text.replace("replica_count=2", header);
        root_texts(&text)[0][0].lines().next().unwrap_or_default().to_owned()
    };
    let reduced = |last: i64| format!("(d0)[s0] -> (d0), domain: d0 in [0, 3], s0 in [0, {last}]");
    let both = "replica_count=2, num_partitions=4";
    assert_eq!(size(both, ""), reduced(1));
    assert_eq!(size(both, ", channel_id=1"), reduced(7));
    assert_eq!(size(both, ", channel_id=1, replica_groups={{0},{1}}"), reduced(3));
    let devices = ", channel_id=1, replica_groups=[4,2]<=[8], use_global_device_ids=true";
    assert_eq!(size(both, devices), reduced(1));
    assert!(
        only("f32[4] collective-permute(p), source_target_pairs={{0,1}}")
            .contains("rt0: sender of r")
    );
}

#[test]
fn maps_like_those_of_xla() {
    let text = module(&[&[9], &[3], &[]], &[9], "dynamic-update-slice", "");
    let module = parse(&text);
    let exact = Indexing::of(&module);
    let at = exact.root(module.entry);
    let constraint = "d0 - rt0 in [0, 2]";
    assert!(exact.set_text(&exact.output_to_input(at, 0)[1])[0].contains(constraint));
    let xla = exact.like_xla();
    assert!(!xla.set_text(&xla.output_to_input(at, 0)[1])[0].contains(constraint));
}

#[test]
fn hostile_sizes_give_no_map() {
    let large = i64::MAX;
    let text = module(&[&[large, large]], &[large, large], "reshape", "");
    assert_eq!(root_texts(&text), [["unknown indexing"]]);
    let text =
        module(&[&[large]], &[3], "slice", &format!("slice={{[{}:{large}:{large}]}}", large - 1));
    let _ = root_texts(&text);
    let text = module(&[&[4]], &[4], "transpose", "dimensions={7}");
    assert_eq!(root_texts(&text), [["unknown indexing"]]);
}

#[test]
fn utilization_counts_elements() {
    let utilization = |operands: &[&[i64]], output: &[i64], op: &str, attributes: &str| {
        let text = module(operands, output, op, attributes);
        let module = parse(&text);
        let indexing = Indexing::of(&module);
        let sets = indexing.output_to_input(indexing.root(module.entry), 0);
        let shape = ArrayShape::new(ElementType::F32, operands[0]);
        let found = indexing.utilization(&sets[0], 0, &shape).expect("small");
        (found.touched, found.total, found.exact)
    };
    assert_eq!(
        utilization(&[&[10, 20]], &[5, 7], "slice", "slice={[0:10:2], [0:20:3]}"),
        (35, 200, true)
    );
    assert_eq!(utilization(&[&[100]], &[6], "broadcast", "dimensions={}"), (100, 100, false));
    let window = "window={size=2 stride=3}, to_apply=add";
    assert_eq!(utilization(&[&[1000], &[]], &[333], "reduce-window", window), (666, 1000, true));
    let window = "window={size=3 stride=2 pad=1_0}, to_apply=add";
    assert_eq!(utilization(&[&[6], &[]], &[3], "reduce-window", window), (6, 6, true));
    let sizes = "dynamic_slice_sizes={3,4}";
    assert_eq!(utilization(&[&[9, 9], &[], &[]], &[3, 4], "dynamic-slice", sizes), (12, 81, true));
    assert_eq!(utilization(&[&[1 << 20, 64]], &[1 << 26], "reshape", ""), (1 << 26, 1 << 26, true));
    // Two maps of a fusion, which overlap.
    let text = stencil(1);
    let module = parse(&text);
    let indexing = Indexing::of(&module);
    let sets = indexing.output_to_input(indexing.root(module.entry), 0);
    let shape = ArrayShape::new(ElementType::F32, [3]);
    let found = indexing.utilization(&sets[0], 0, &shape).expect("small");
    assert_eq!((found.touched, found.exact), (3, true));
    assert_eq!(found.share(), 1.0);
}

/// Of parameter 0 of a fusion on large arrays: elements read, and whether that is exact.
fn fusion_utilization(shape: &str, inside: &str) -> (i64, bool) {
    let text = format!(
        "HloModule m\nadd {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  \
         ROOT sum = f32[] add(x, y)\n}}\nf {{\n  p = f32[{shape}] parameter(0)\n  i = s32[] parameter(1)\n  \
         j = s32[5,1] parameter(2)\n  zero = f32[] constant(0)\n  one = s32[] constant(1)\n  \
         {inside}\n}}\nENTRY e {{\n  p = f32[{shape}] parameter(0)\n  i = s32[] parameter(1)\n  \
         j = s32[5,1] parameter(2)\n  ROOT r = f32[] fusion(p, i, j), kind=kLoop, calls=f\n}}\n"
    );
    let module = parse(&text);
    let indexing = Indexing::of(&module);
    let at = indexing.root(module.entry);
    let sets = indexing.output_to_input(at, 0);
    let operand = &module.entry()[indexing.instruction(at).operands[0]];
    let shape = operand.array().expect("an array");
    let found = indexing.utilization(&sets[0], 0, shape).expect("a size that fits");
    (found.touched, found.exact)
}

#[test]
fn utilization_of_large_arrays() {
    // What an update replaces is not read, and where two of them stand apart, neither of both.
    let update = "u = f32[16,3] broadcast(zero), dimensions={}\n  ";
    let one = "ROOT r = f32[4096,1024] dynamic-update-slice(p, u, i, one)";
    let total = 4096 * 1024;
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{one}")), (total - 48, true));
    let far = "c = s32[] constant(100)\n  a = f32[4096,1024] dynamic-update-slice(p, u, one, one)\n  \
               ROOT r = f32[4096,1024] dynamic-update-slice(a, u, c, one)";
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{far}")), (total - 96, true));
    let near = far.replace("constant(100)", "constant(9)");
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{near}")), (total - 72, true));
    let unknown = far.replace("u, c, one", "u, i, one");
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{unknown}")), (total - 48, false));
    // A transpose and a reduction of what is left.
    let moved = "a = f32[4096,1024] dynamic-update-slice(p, u, i, one)\n  \
                 b = f32[1024,4096] transpose(a), dimensions={1,0}\n  \
                 ROOT r = f32[4096] reduce(b, zero), dimensions={0}, to_apply=add";
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{moved}")), (total - 48, true));
    // Part of the update is cut away.
    let cut = "a = f32[4096,1024] dynamic-update-slice(p, u, one, one)\n  \
               ROOT r = f32[10,1024] slice(a), slice={[0:10],[0:1024]}";
    assert_eq!(fusion_utilization("4096,1024", &format!("{update}{cut}")), (10 * 1024 - 27, true));
    // Each element is there many times.
    let many = "a = f32[4096,1024] broadcast(p), dimensions={0}\n  \
                ROOT r = f32[4096,1024] dynamic-update-slice(a, u, i, one)";
    assert_eq!(fusion_utilization("4096", &format!("{update}{many}")), (4096, true));

    // Windows that leave gaps, with padding and dilation.
    let window = |window: &str, windows: i64| {
        let inside = format!(
            "ROOT r = f32[{windows}] reduce-window(p, zero), window={{{window}}}, to_apply=add"
        );
        fusion_utilization("1000000", &inside)
    };
    assert_eq!(window("size=2 stride=3 pad=1_0", 333_334), (666_667, true));
    assert_eq!(window("size=2 stride=5 rhs_dilate=3", 200_000), (400_000, true));
    assert_eq!(window("size=3 stride=4 lhs_dilate=2", 500_000), (1_000_000, true));
    assert_eq!(window("size=1 stride=4 lhs_dilate=2", 500_000), (500_000, true));

    // Halves, and overlapping parts.
    let parts = |first: &str, second: &str, size: i64| {
        fusion_utilization(
            "1000000",
            &format!(
                "a = f32[{size}] slice(p), slice={{[{first}]}}\n  \
                 b = f32[{size}] slice(p), slice={{[{second}]}}\n  ROOT r = f32[{size}] add(a, b)"
            ),
        )
    };
    assert_eq!(parts("0:400000", "500000:900000", 400_000), (800_000, true));
    assert_eq!(parts("0:400000", "300000:700000", 400_000), (700_000, true));
    assert_eq!(parts("0:1000000:2", "1:1000000:2", 500_000), (1_000_000, true));
    assert_eq!(parts("0:1000000:4", "0:500000:2", 250_000), (375_000, true));

    // Parts that move together, and two outputs' worth of the same part.
    let moved = "a = f32[9,64] dynamic-slice(p, i, one), dynamic_slice_sizes={9,64}\n  \
                 b = f32[9,64] dynamic-slice(p, i, zero32), dynamic_slice_sizes={9,64}\n  \
                 ROOT r = f32[9,64] add(a, b)";
    let moved = format!("zero32 = s32[] constant(0)\n  {moved}");
    assert_eq!(fusion_utilization("100000,80", &moved), (9 * 65, true));
    let turned = "a = f32[9,64] dynamic-slice(p, i, one), dynamic_slice_sizes={9,64}\n  \
                  b = f32[64,9] transpose(a), dimensions={1,0}\n  \
                  c = f32[9,64] bitcast(b)\n  ROOT r = f32[9,64] add(a, c)";
    assert_eq!(fusion_utilization("100000,80", turned).0, 2 * 9 * 64);

    // No more rows than there are indices; the same row may be read twice.
    let gather = "ROOT r = f32[5,64] gather(p, j), offset_dims={1}, collapsed_slice_dims={0}, \
                  start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}";
    assert_eq!(fusion_utilization("1000,64", gather), (320, false));
}

#[test]
fn a_pad_value_is_read_if_there_is_padding() {
    let pad = |padding: &str, size: i64| {
        let text = module(&[&[8], &[]], &[size], "pad", &format!("padding={padding}"));
        let module = parse(&text);
        let indexing = Indexing::of(&module);
        let sets = indexing.output_to_input(indexing.root(module.entry), 0);
        let value = ArrayShape::new(ElementType::F32, []);
        let found = indexing.utilization(&sets[1], 0, &value).expect("one element");
        (found.touched, found.exact)
    };
    assert_eq!(pad("0_0", 8), (0, true));
    assert_eq!(pad("-2_-1", 5), (0, true));
    assert_eq!(pad("0_0_1", 15), (1, true));
    assert_eq!(pad("-3_1", 6), (1, true));
}

fn written(
    write: impl FnOnce(&Indexing, &mut Vec<u8>) -> std::io::Result<()>,
    text: &str,
) -> String {
    let module = parse(text);
    let mut out = Vec::new();
    write(&Indexing::of(&module), &mut out).expect("memory takes all");
    String::from_utf8(out).expect("names are UTF-8")
}

#[test]
fn text_of_a_module() {
    let text =
        module(&[&[2, 3], &[3]], &[2], "dot", "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    let text =
        written(|it, out| it.write_selection(&it.select(["e"]).expect("it is there"), out), &text);
    let expected = "\
ENTRY e {
  p0 = f32[2,3] parameter(0)
  p1 = f32[3] parameter(1)
  ROOT r = f32[2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    output -> operand 0 (p0): (d0)[s0] -> (d0, s0), domain: d0 in [0, 1], s0 in [0, 2]
    output -> operand 1 (p1): (d0)[s0] -> (s0), domain: d0 in [0, 1], s0 in [0, 2]
    operand 0 (p0) -> output: (d0, d1) -> (d0), domain: d0 in [0, 1], d1 in [0, 2]
    operand 1 (p1) -> output: (d0)[s0] -> (s0), domain: d0 in [0, 2], s0 in [0, 1]
    reads 6 of 6 elements of operand 0 (p0), 100.0%
    reads 3 of 3 elements of operand 1 (p1), 100.0%
}
";
    assert_eq!(text, expected);
}

/// A fusion with so many outputs and instructions inside is not taken apart.
#[test]
fn text_of_a_large_fusion() {
    let count = 300;
    let shapes = vec!["f32[2]"; count].join(", ");
    let names = joined((0..count).map(|it| format!("v{it}")), ", ");
    let inside: String = (0..count).map(|it| format!("  v{it} = f32[2] negate(p)\n")).collect();
    let text = written(
        |it, out| it.write_module(out),
        &format!(
            "HloModule m\nf {{\n  p = f32[2] parameter(0)\n{inside}  \
             ROOT t = ({shapes}) tuple({names})\n}}\nENTRY e {{\n  p = f32[2] parameter(0)\n  \
             ROOT r = ({shapes}) fusion(p), kind=kLoop, calls=f\n}}\n"
        ),
    );
    assert!(text.contains("    output 299 -> operand 0 (p): (d0) -> (d0), domain: d0 in [0, 1]\n"));
    let line = "    300 outputs and 302 instructions in f: too many pairs to list\n";
    assert!(text.contains(line), "{}", &text[text.len() - 200..]);
}

/// The step of a training: a call with as many results as half of its operands, each of which needs
/// two of them.
fn update(count: usize) -> String {
    let shapes = vec!["f32[2,3]"; count].join(", ");
    let list = |prefix: &str| joined((0..count).map(|it| format!("{prefix}{it}")), ", ");
    let lines = |line: &dyn Fn(usize) -> String| joined((0..count).map(line), "\n");
    let parameters = [
        lines(&|it| format!("p{it} = f32[2,3] parameter({it})")),
        lines(&|it| format!("g{it} = f32[2,3] parameter({})", count + it)),
    ];
    let parameters = parameters.join("\n");
    let inside = lines(&|it| format!("n{it} = f32[2,3] subtract(p{it}, g{it})"));
    let (results, operands) = (list("n"), [list("p"), list("g")].join(", "));
    format!(
        "HloModule m\nf {{\n{parameters}\n{inside}\nROOT r = ({shapes}) tuple({results})\n}}\n\
         ENTRY e {{\n{parameters}\nROOT r = ({shapes}) call({operands}), to_apply=f\n}}\n"
    )
}

#[test]
fn text_grows_with_the_module() {
    let texts = [20, 40].map(|count| written(|it, out| it.write_module(out), &update(count)));
    let lines = |text: &str| text.lines().count();
    // Braces, the line between the computations, and the two roots are there once.
    let (few, many) = (lines(&texts[0]), lines(&texts[1]));
    assert_eq!(many - 7, 2 * (few - 7), "{}", texts[0]);
    assert!(texts[1].contains("    output 39 -> operand 79 (g39): (d0, d1) -> (d0, d1), domain:"));
    assert!(texts[1].contains("    operand 79 (g39) -> output 39: (d0, d1) -> (d0, d1), domain:"));
    assert!(!texts[1].contains("output 39 -> operand 0"));
}

#[test]
fn quotes_in_a_graph() {
    let text = written(|it, out| it.write_graph(out), &module(&[&[2]], &[2], "negate", ""));
    let balanced = |line: &str| line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
    assert!(text.lines().all(|line| balanced(line).is_multiple_of(2)), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    let edge = "  i2_0 -> i2_1 [label=\"(d0) -> (d0)\\l  domain: d0 in [0, 1]\\l\"];";
    assert!(text.lines().any(|line| line == edge), "{text}");
}
