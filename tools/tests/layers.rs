//! Modules name only modules below them: the table "Who may name whom" of `ARCHITECTURE.md` holds.
//!
//! A row of the table lists the modules of a crate or a folder, the lowest first. A path in a `use`
//! declaration or in code must lead to a module before the last `<` that precedes the one it is in.
//! Tests are exempt, and so are paths between a folder and what is in it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::Path,
    slice,
};

/// The heading above the table.
const HEADING: &str = "### Who may name whom";

/// The path of a module, which begins with the name of its crate.
type ModulePath = Vec<String>;

/// A source file.
struct Source {
    /// The path that errors name.
    file: String,
    module: ModulePath,
    text: String,
}

/// The level of each module of a folder.
type Levels = HashMap<String, usize>;

/// The rows of the table in a text, by the folder that they are about.
fn read_table(text: &str) -> BTreeMap<ModulePath, Levels> {
    let section = text.split_once(HEADING).map_or("", |(_, after)| after);
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &str| {
        let (folder, levels) = row.split_once("` |")?;
        let levels = levels.trim_end_matches('|').split('<').enumerate();
        let levels = levels.flat_map(|(level, modules)| {
            let modules = modules.split(',').map(|it| it.trim().trim_matches('`'));
            modules.map(move |module| (module.to_string(), level))
        });
        Some((path_of(&folder.replace('-', "_")), levels.collect()))
    };
    rows.filter_map(row).collect()
}

fn path_of(text: &str) -> ModulePath {
    text.split("::").map(str::to_string).collect()
}

/// The violations of a table in sources.
fn check(table: &BTreeMap<ModulePath, Levels>, sources: &[Source]) -> Vec<String> {
    let tokens: Vec<_> =
        sources.iter().map(|source| without_tests(&tokenize(&source.text))).collect();
    let mut tests = HashSet::new();
    for (source, (_, modules)) in sources.iter().zip(&tokens) {
        tests.extend(modules.iter().map(|it| [&source.module[..], slice::from_ref(it)].concat()));
    }
    let is_test = |module: &[String]| (1..=module.len()).any(|end| tests.contains(&module[..end]));
    let modules: HashSet<&[String]> =
        sources.iter().map(|it| &it.module[..]).filter(|it| !is_test(it)).collect();
    let mut errors = missing(table, &modules);
    for (source, (tokens, _)) in sources.iter().zip(&tokens) {
        if is_test(&source.module) {
            continue;
        }
        for (line, path) in paths(tokens, &source.module) {
            let target =
                (1..=path.len()).rev().map(|end| &path[..end]).find(|it| modules.contains(it));
            let Some(target) = target else { continue };
            if !is_allowed(table, &source.module, target) {
                errors.push(format!(
                    "{}:{line}: '{}' names '{}', which is not below it",
                    source.file,
                    source.module.join("::"),
                    path.join("::")
                ));
            }
        }
    }
    errors
}

/// Modules that a row lacks, and those that it lists and that do not exist.
fn missing(table: &BTreeMap<ModulePath, Levels>, modules: &HashSet<&[String]>) -> Vec<String> {
    let mut errors = Vec::new();
    let crates: HashSet<_> = modules.iter().map(|module| &module[..1]).collect();
    for folder in crates.into_iter().filter(|folder| !table.contains_key(*folder)) {
        errors.push(format!("the table has no row of '{}'", folder.join("::")));
    }
    for (folder, levels) in table {
        let children = modules.iter().filter(|it| it.len() == folder.len() + 1);
        let children: HashSet<_> =
            children.filter(|it| it.starts_with(folder)).map(|it| &it[folder.len()]).collect();
        let folder = folder.join("::");
        for child in children.iter().filter(|child| !levels.contains_key(**child)) {
            errors.push(format!("the row of '{folder}' lacks '{child}'"));
        }
        for child in levels.keys().filter(|child| !children.contains(*child)) {
            errors.push(format!("the row of '{folder}' has '{child}', which does not exist"));
        }
    }
    errors.sort();
    errors
}

fn is_allowed(table: &BTreeMap<ModulePath, Levels>, from: &[String], to: &[String]) -> bool {
    let common = from.iter().zip(to).take_while(|(x, y)| x == y).count();
    if common == to.len() {
        // The root of a crate exports what is in all of its modules.
        return common == from.len() || 1 < common;
    }
    let Some((level, levels)) = from.get(common).zip(table.get(&from[..common])) else {
        return true;
    };
    levels.get(&to[common]) < levels.get(level)
}

/// A word or a character of source text, and the line that it is on.
#[derive(Clone, Debug, PartialEq)]
struct Token {
    text: String,
    line: usize,
}

/// The tokens of Rust without comments and literals; `::` is one token.
fn tokenize(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut place, mut line) = (Vec::new(), 0, 1);
    while place < chars.len() {
        let start = place;
        match (at(place), at(place + 1)) {
            ('/', '/') => {
                while place < chars.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            ('/', '*') => {
                let mut depth = 0;
                loop {
                    match (at(place), at(place + 1)) {
                        ('/', '*') => (depth, place) = (depth + 1, place + 2),
                        ('*', '/') => (depth, place) = (depth - 1, place + 2),
                        _ => place += 1,
                    }
                    if depth == 0 || chars.len() <= place {
                        break;
                    }
                }
            }
            ('r', '"' | '#') if at(place + 1) == '"' || matches!(at(place + 2), '"' | '#') => {
                let hashes = chars[place + 1..].iter().take_while(|c| **c == '#').count();
                place += hashes + 2;
                let ends = |place: usize| {
                    at(place) == '"' && (1..=hashes).all(|hash| at(place + hash) == '#')
                };
                while place < chars.len() && !ends(place) {
                    place += 1;
                }
                place += hashes + 1;
            }
            ('"', _) => {
                place += 1;
                while place < chars.len() && at(place) != '"' {
                    place += if at(place) == '\\' { 2 } else { 1 };
                }
                place += 1;
            }
            // A character; a lifetime has no quote after its first letter.
            ('\'', '\\') => {
                place += 3;
                while place < chars.len() && at(place) != '\'' {
                    place += 1;
                }
                place += 1;
            }
            ('\'', _) => place += if at(place + 2) == '\'' { 3 } else { 1 },
            (':', ':') => {
                tokens.push(Token { text: "::".into(), line });
                place += 2;
            }
            (c, _) if is_word(c) => {
                while is_word(at(place)) {
                    place += 1;
                }
                tokens.push(Token { text: chars[start..place].iter().collect(), line });
            }
            (c, _) => {
                if !c.is_whitespace() {
                    tokens.push(Token { text: c.into(), line });
                }
                place += 1;
            }
        }
        line += chars[start..place.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

/// The tokens without the items of tests, and the modules of tests that are other files.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    let is = |place: usize, text: &str| tokens.get(place).is_some_and(|it| it.text == text);
    let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut modules, mut place) = (Vec::new(), Vec::new(), 0);
    while place < tokens.len() {
        if !(0..).zip(attribute).all(|(offset, text)| is(place + offset, text)) {
            kept.push(tokens[place].clone());
            place += 1;
            continue;
        }
        place += attribute.len();
        if is(place, "mod") && is(place + 2, ";") {
            modules.push(tokens[place + 1].text.clone());
        }
        // The item ends with a semicolon or a block.
        let mut depth = 0;
        while place < tokens.len() {
            match tokens[place].text.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            place += 1;
            if depth == 0 && (is(place - 1, ";") || is(place - 1, "}")) {
                break;
            }
        }
    }
    (kept, modules)
}

/// The absolute paths in tokens of a module, with their lines.
fn paths(tokens: &[Token], module: &[String]) -> Vec<(usize, ModulePath)> {
    let (mut found, mut names, mut written) = (Vec::new(), HashMap::new(), Vec::new());
    let mut place = 0;
    while place < tokens.len() {
        if tokens[place].text == "use" {
            place += 1;
            let mut leaves = Vec::new();
            use_tree(tokens, &mut place, &mut Vec::new(), &mut leaves);
            for (line, path, name) in leaves {
                if let Some(path) = absolute(&path, module) {
                    names.insert(name, path.clone());
                    found.push((line, path));
                }
            }
            continue;
        }
        let line = tokens[place].line;
        let mut path = vec![tokens[place].text.clone()];
        while tokens.get(place + 1).is_some_and(|it| it.text == "::") && place + 2 < tokens.len() {
            place += 2;
            path.push(tokens[place].text.clone());
        }
        if 1 < path.len() {
            written.push((line, path));
        }
        place += 1;
    }
    for (line, path) in written {
        let imported = names.get(&path[0]).map(|start| [&start[..], &path[1..]].concat());
        found.extend(imported.or_else(|| absolute(&path, module)).map(|path| (line, path)));
    }
    found
}

/// Reads a tree of a `use` declaration: for each leaf its line, its path and the name it gets.
fn use_tree(
    tokens: &[Token],
    place: &mut usize,
    prefix: &mut ModulePath,
    leaves: &mut Vec<(usize, ModulePath, String)>,
) {
    let depth = prefix.len();
    let text = |place: usize| tokens.get(place).map_or(";", |it| it.text.as_str());
    loop {
        match text(*place) {
            "::" => *place += 1,
            "{" => {
                *place += 1;
                while !matches!(text(*place), "}" | ";") {
                    use_tree(tokens, place, prefix, leaves);
                    *place += usize::from(text(*place) == ",");
                }
                *place += usize::from(text(*place) == "}");
                break;
            }
            word @ ("," | "}" | ";" | "as") => {
                let line = tokens[*place - 1].line;
                if 1 < prefix.len() && prefix.last().is_some_and(|last| last == "self") {
                    prefix.pop();
                }
                let mut name = prefix.last().cloned().unwrap_or_default();
                if word == "as" {
                    name = text(*place + 1).to_string();
                    *place += 2;
                }
                leaves.push((line, prefix.clone(), name));
                break;
            }
            word => {
                prefix.push(word.to_string());
                *place += 1;
            }
        }
    }
    prefix.truncate(depth);
}

/// The path from the root of the crate, if it is one in the crate.
fn absolute(path: &[String], module: &[String]) -> Option<ModulePath> {
    let supers = path.iter().take_while(|it| *it == "super").count();
    match path[0].as_str() {
        "crate" => Some([&module[..1], &path[1..]].concat()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([module.get(..module.len() - supers)?, &path[supers..]].concat()),
        _ => None,
    }
}

/// The sources of a crate, below its folder.
fn sources(root: &Path, folder: &str, name: &str) -> Vec<Source> {
    let base = root.join(folder).join("src");
    let (mut sources, mut folders) = (Vec::new(), vec![base.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            let inside = path.strip_prefix(&base).expect("it is inside");
            if path.is_dir() {
                // Binaries are crates of their own.
                folders.extend((!inside.starts_with("bin")).then_some(path));
            } else if inside.extension().is_some_and(|it| it == "rs") {
                let steps = inside.with_extension("");
                let steps = steps.iter().map(|it| it.to_string_lossy().into_owned());
                let steps = steps.filter(|it| !matches!(it.as_str(), "mod" | "lib"));
                sources.push(Source {
                    file: path.strip_prefix(root).expect("it is inside").display().to_string(),
                    module: [name.to_string()].into_iter().chain(steps).collect(),
                    text: fs::read_to_string(&path).expect("the source can be read"),
                });
            }
        }
    }
    sources.sort_by(|x, y| x.file.cmp(&y.file));
    sources
}

#[test]
fn modules_name_only_modules_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page can be read");
    let crates = [
        ("crates/ir", "tc_ir"),
        ("crates/dialects", "tc_dialects"),
        ("crates/passes", "tc_passes"),
        ("crates/backends", "tc_backends"),
        ("tools", "tc_tools"),
    ];
    let sources: Vec<_> =
        crates.iter().flat_map(|(folder, name)| sources(&root, folder, name)).collect();
    let errors = check(&read_table(&text), &sources);
    assert!(errors.is_empty(), "see '{HEADING}' in ARCHITECTURE.md\n{}", errors.join("\n"));
}

const TABLE: &str = "### Who may name whom\n\n| of | modules |\n|---|---|\n\
                     | `a-crate` | `low` < `left`, `right` < `top` |\n\
                     | `a-crate::top` | `inner` < `outer` |\n\n## Next\n| `other` | `x` |\n";

/// The violations in a tree of modules with these texts.
fn errors_in(files: &[(&str, &str)]) -> Vec<String> {
    let all = ["", "low", "left", "right", "top", "top::inner", "top::outer"];
    let text = |module: &str| files.iter().find(|it| it.0 == module).map_or("", |it| it.1);
    let source = |module: &&str| Source {
        file: format!("{}.rs", if module.is_empty() { "lib" } else { module }),
        module: path_of(format!("a_crate::{module}").trim_end_matches("::")),
        text: text(module).to_string(),
    };
    check(&read_table(TABLE), &all.iter().map(source).collect::<Vec<_>>())
}

#[test]
fn lower_modules_may_be_named() {
    let allowed = [
        ("", "pub use top::Everything;\nuse crate::low::Thing;"),
        ("left", "use crate::low::{self, Thing as Other};\nuse std::fmt;\nfn f() { low::g() }"),
        ("top", "mod inner;\nuse inner::X;\nuse crate::{left, right::{A, B}};"),
        ("top::outer", "use super::{Top, inner::X, super::left};\nuse crate::low;"),
        (
            "low",
            "// use crate::top;\n/* /* */ use crate::top; */ const X: &str = \"crate::top::X\";",
        ),
        ("right", "const C: char = '\"'; const R: &str = r#\"\" crate::left::X\"#; fn f<'a>() {}"),
    ];
    assert_eq!(errors_in(&allowed), Vec::<String>::new());
}

#[test]
fn higher_modules_may_not_be_named() {
    let one = |module: &str, text: &str| {
        let [error] = &errors_in(&[(module, text)])[..] else { panic!("{module}: {text}") };
        error.clone()
    };
    assert_eq!(
        one("low", "use std::fmt;\nuse crate::{\n    low::X,\n    top::Y,\n};"),
        "low.rs:4: 'a_crate::low' names 'a_crate::top::Y', which is not below it"
    );
    assert_eq!(
        one("left", "\nfn f() {\n    super::right::g();\n}"),
        "left.rs:3: 'a_crate::left' names 'a_crate::right::g', which is not below it"
    );
    assert_eq!(
        one("top::inner", "use super as up;\nfn f() { up::outer::g() }"),
        "top::inner.rs:2: 'a_crate::top::inner' names 'a_crate::top::outer::g', which is not below it"
    );
    assert_eq!(
        one("top", "use crate::Everything;"),
        "top.rs:1: 'a_crate::top' names 'a_crate::Everything', which is not below it"
    );
}

#[test]
fn tests_may_name_every_module() {
    let text = "#[cfg(test)]\nmod tests {\n    fn f() { crate::top::g() }\n}\nuse crate::right::X;";
    assert_eq!(errors_in(&[("low", text)]).len(), 1);
    assert!(errors_in(&[("low", text)])[0].starts_with("low.rs:5:"));
    let text = "#[cfg(test)]\nmod inner;\n";
    let errors = errors_in(&[("top", text), ("top::inner", "use super::outer::X;")]);
    assert_eq!(errors, ["the row of 'a_crate::top' has 'inner', which does not exist"]);
}

#[test]
fn every_module_has_a_level() {
    let source =
        |module: &str| Source { file: String::new(), module: path_of(module), text: String::new() };
    let modules = ["a_crate", "a_crate::low", "a_crate::left", "a_crate::top", "a_crate::new", "b"];
    let mut sources: Vec<_> = modules.map(source).into_iter().collect();
    sources.extend(["a_crate::top::inner", "a_crate::top::outer"].map(source));
    assert_eq!(
        check(&read_table(TABLE), &sources),
        [
            "the row of 'a_crate' has 'right', which does not exist",
            "the row of 'a_crate' lacks 'new'",
            "the table has no row of 'b'",
        ]
    );
}
