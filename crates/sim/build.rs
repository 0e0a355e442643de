//! A fingerprint of the simulator's code. Cached results are valid only for exactly the same code.
//! Comments and line breaks do not count.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

fn main() {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for folder in ["src", "../core/src"] {
        println!("cargo:rerun-if-changed={folder}");
        for file in files_below(Path::new(folder)) {
            let text = std::fs::read_to_string(&file).expect("read the source file");
            // FNV-1a: short, portable, and no dependency.
            for byte in file.to_string_lossy().bytes().chain(code(&text).bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    println!("cargo:rustc-env=UFLIP_SIM_FINGERPRINT={hash:016x}");
}

/// Return all files in a folder, recursively.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("list the source folder");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("read the folder entry").path()).collect();
    paths.sort();
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).collect()
}

/// Return the code of a source file without comments, and with single spaces. Literals are
/// unchanged.
pub fn code(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match (next, rest.peek()) {
            ('/', Some('/')) => {
                rest.by_ref().find(|c| *c == '\n');
                blank(&mut out);
            }
            ('/', Some('*')) => {
                skip_block(&mut rest);
                blank(&mut out);
            }
            ('"', _) => {
                let raw = is_raw(&out);
                quoted(&mut out, &mut rest, 0, raw);
            }
            ('#', _) if is_raw(&out) => {
                let mut hashes = 1;
                out.push('#');
                while rest.next_if_eq(&'#').is_some() {
                    hashes += 1;
                    out.push('#');
                }
                if rest.next_if_eq(&'"').is_some() {
                    quoted(&mut out, &mut rest, hashes, true);
                }
            }
            ('\'', _) => character(&mut out, &mut rest),
            (c, _) if c.is_whitespace() => blank(&mut out),
            (c, _) => out.push(c),
        }
    }
    out.trim().to_owned()
}

fn blank(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Return whether the preceding letter begins a raw string: an `r` that ends no identifier.
fn is_raw(out: &str) -> bool {
    let mut before = out.chars().rev();
    let letter = before.next() == Some('r');
    let name = before.find(|c| *c != 'b').is_some_and(|c| c.is_alphanumeric() || c == '_');
    letter && !name
}

/// Skip nested comments up to the end of the outermost.
fn skip_block(rest: &mut Peekable<Chars<'_>>) {
    rest.next();
    let mut depth = 1;
    while depth > 0 {
        match (rest.next(), rest.peek()) {
            (Some('/'), Some('*')) => {
                rest.next();
                depth += 1;
            }
            (Some('*'), Some('/')) => {
                rest.next();
                depth -= 1;
            }
            (Some(_), _) => {}
            (None, _) => return,
        }
    }
}

/// Copy a string up to its closing quote; that of a raw string is followed by as many `#` as its
/// opening.
fn quoted(out: &mut String, rest: &mut Peekable<Chars<'_>>, hashes: usize, raw: bool) {
    out.push('"');
    while let Some(c) = rest.next() {
        out.push(c);
        if c == '\\' && !raw {
            out.extend(rest.next());
        } else if c == '"' {
            let mut closing = 0;
            while closing < hashes && rest.next_if_eq(&'#').is_some() {
                out.push('#');
                closing += 1;
            }
            if closing == hashes {
                return;
            }
        }
    }
}

/// Copy a character literal or a lifetime.
fn character(out: &mut String, rest: &mut Peekable<Chars<'_>>) {
    out.push('\'');
    let Some(first) = rest.next() else { return };
    out.push(first);
    if first == '\\' {
        out.extend(rest.next());
        for c in rest.by_ref() {
            out.push(c);
            if c == '\'' {
                return;
            }
        }
    } else if rest.next_if_eq(&'\'').is_some() {
        out.push('\'');
    }
}
