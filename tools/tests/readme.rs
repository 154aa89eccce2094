//! Runs the commands of the README that start with `tc-`, and compares the output of those that show one.

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// A command of a code block, with the lines below it if it stands after a prompt.
struct Example {
    command: String,
    output: Option<String>,
}

/// The commands in the code blocks of a page.
fn examples(text: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut block = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => block = Some(String::new()),
            Event::Text(text) => {
                if let Some(block) = &mut block {
                    block.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                found.extend(examples_of_block(&block.take().unwrap_or_default()));
            }
            _ => {}
        }
    }
    found
}

fn examples_of_block(block: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Example { command: command.to_string(), output: Some(String::new()) });
        } else if let Some(Example { output: Some(output), .. }) = found.last_mut() {
            output.push_str(line);
            output.push('\n');
        } else if line.starts_with("tc-") {
            found.push(Example { command: line.to_string(), output: None });
        }
    }
    found
}

/// Text with single spaces, and without the numbers of lines that report times.
fn normalized(text: &str) -> String {
    let is_number = |word: &str| word.trim_matches(['(', ')', ',']).parse::<f64>().is_ok();
    let mut words = Vec::new();
    for line in text.lines() {
        let is_timed = line.contains(" ms");
        words.extend(line.split_whitespace().filter(|word| !is_timed || !is_number(word)));
    }
    words.join(" ")
}

/// Whether `text` is what `shown` abbreviates: `..` is any text.
fn matches(shown: &str, text: &str) -> bool {
    let (shown, text) = (normalized(shown), normalized(text));
    let pieces: Vec<_> = shown.split("..").map(str::trim).collect();
    let [first, middle @ .., last] = &pieces[..] else { return shown == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for piece in middle {
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// A folder with the examples, tests and benchmarks of the repository, in which commands may write files.
fn working_folder(root: &Path) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the folder of an earlier run can be removed");
    }
    fs::create_dir(&folder).expect("the folder can be created");
    for name in ["benches", "examples", "tests"] {
        symlink(root.join(name), folder.join(name)).expect("the folder is new");
    }
    folder
}

#[test]
fn commands_of_the_readme_run() {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("it is there");
    let text = fs::read_to_string(root.join("README.md")).expect("it is there");
    let tools = Path::new(env!("CARGO_BIN_EXE_tc-opt")).with_file_name("");
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", tools.display());
    let folder = working_folder(&root);
    let mut compared = 0;
    for Example { command, output } in examples(&text) {
        let run = Command::new("sh")
            .args(["-c", &format!("{{ {command}; }} 2>&1")])
            .current_dir(&folder)
            .env("PATH", &path)
            .output()
            .expect("sh runs");
        let printed = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success(), "'{command}' fails:\n{printed}");
        if let Some(shown) = output {
            assert!(
                matches(&shown, &printed),
                "'{command}' prints\n{printed}\nbut README.md shows\n{shown}"
            );
            compared += 1;
        }
    }
    assert!(3 <= compared, "README.md shows the output of {compared} commands");
}

#[test]
fn dots_abbreviate_text() {
    assert!(matches("a\n  b", "a b"));
    assert!(matches("a .. d\n..", "a b c d e"));
    assert!(matches("0.5 ms, n 3", "12 ms, n 4"));
    assert!(!matches("a .. d", "a b c d e"));
    assert!(!matches("n 3", "n 4"));
}
