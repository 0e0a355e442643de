//! The changes of the source that affect the fingerprint of the simulator.

#[allow(dead_code)]
#[path = "../build.rs"]
mod build;

use build::code;

#[test]
fn fingerprint_ignores_comments_and_line_breaks() {
    let plain = "fn f(a: u32) -> u32 { a / 2 }";
    for same in [
        "fn f(a: u32) -> u32 { a / 2 } // half\n",
        "/// Half.\nfn f(a: u32)  -> u32\n{\n    a / 2\n}\n",
        "/* a /* b */ \" */ fn f(a: u32) -> u32 { a /* by */ / 2 }",
    ] {
        assert_eq!(code(same), plain);
    }
}

#[test]
fn fingerprint_includes_code_and_strings() {
    for (text, expected) in [
        ("let a = \"// no  comment\"; // one", "let a = \"// no  comment\";"),
        ("let a = \"\\\" /*\"; b", "let a = \"\\\" /*\"; b"),
        ("let a = r\"\\\"; // c", "let a = r\"\\\";"),
        ("let a = r#\"\" // \"#; // c", "let a = r#\"\" // \"#;"),
        ("let a = br##\"\"# /*\"##; /* c */", "let a = br##\"\"# /*\"##;"),
        ("let q = '\"'; // c", "let q = '\"';"),
        ("let q = '\\''; // c", "let q = '\\'';"),
        ("let q = '\\u{22}'; // c", "let q = '\\u{22}';"),
        ("fn g<'a>(x: &'a str) {} // \"", "fn g<'a>(x: &'a str) {}"),
        ("for r in 0..1 {} \"//\"", "for r in 0..1 {} \"//\""),
        ("#[x] struct S; // c", "#[x] struct S;"),
        ("var\"//\"", "var\"//\""),
        ("let a = 1 / 2; let b = 3 /4;", "let a = 1 / 2; let b = 3 /4;"),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
}

#[test]
fn fingerprint_reads_every_file() {
    // A quote mistaken for the start of a string would hide the rest: the last brace would not be
    // code.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in build::files_below(&folder.join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = code(&text);
        assert!(code.len() < text.len(), "{} has a header", file.display());
        assert!(!code.contains("//!"), "{}", file.display());
        assert_eq!(code.matches("/// ").count(), 0, "{}", file.display());
    }
}
