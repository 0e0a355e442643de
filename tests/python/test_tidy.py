"""Rules of the sources: import directions, layout and length of files and functions, wording."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from rust_modules import cycle_of, dependencies_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "uflip"
LONGEST_FILE = 800
LONGEST_FUNCTION = 70
# Longer functions that are left, with their lines. They may become shorter; none may be added.
LONG_FUNCTIONS: dict[str, int] = {}

# What each part of the package may import; the picture is in ARCHITECTURE.md. The command line,
# and the front of the package, may import everything.
MAY_IMPORT: dict[str, set[str]] = {
    "benchmark_options": set(),
    "errors": {"_native"},
    "stats": {"data"},
    "accuracy": {
        "_native", "api", "benchmark", "data", "device", "executors", "footprint", "microbench",
        "results", "safe_files", "units",
    },
    "analysis": {"_native", "data", "errors", "extras", "stats", "units"},
    "explain": {
        "_native", "analysis", "data", "device", "errors", "flash_waits", "profiles", "report",
        "results", "table", "units",
    },
    "units": {"_native", "errors"},
    "extras": {"errors"},
    "testing": set(),
    "escape": set(),
    "data": {"_native", "durability", "errors", "units"},
    "durability": {"_native", "errors", "units"},
    "footprint": {"data"},
    "table": set(),
    "models": {"errors"},
    "profiles": {"_native", "data", "errors"},
    "spec": {"data", "errors", "units"},
    "pattern_options": {"benchmark_options", "data", "errors", "options", "spec", "units"},
    "startup": {"data"},
    "flash_waits": {"_native", "data", "startup"},
    "executors": {"_native", "device", "signals", "errors", "extras"},
    "safe_files": set(),
    "signals": set(),
    "native_wait": {"_native", "signals", "errors"},
    "device": {
        "_native", "benchmark_options", "data", "durability", "errors", "native_wait", "profiles",
        "spec", "units",
    },
    "trace": {"_native", "data", "microbench", "report", "results", "stats", "units"},
    "arrow_table": {"errors"},
    "result": {
        "arrow_table", "data", "errors", "report", "result_views", "results", "site", "trace",
        "units",
    },
    "options": {"_native", "benchmark_options", "data", "device", "durability", "errors", "units"},
    "api": {
        "benchmark", "data", "device", "errors", "options", "pattern_options", "result", "spec",
        "trace", "units",
    },
    "microbench": {
        "_native", "benchmark_options", "data", "durability", "errors", "spec", "startup", "units",
    },
    "results": {
        "_native", "analysis", "arrow_table", "data", "device", "durability",
        "errors", "flash_waits", "footprint", "safe_files", "signals", "spec", "startup", "stats",
        "units",
    },
    "report": {
        "analysis", "data", "durability", "errors", "extras", "escape", "hints", "microbench",
        "results",
        "stats", "table", "units",
    },
    "oc": {
        "_native", "data", "device", "errors", "microbench", "native_wait", "report", "results",
        "stats", "table", "units",
    },
    "inference": {
        "_native", "data", "device", "errors", "microbench", "native_wait", "profiles",
        "reproduce", "results", "spec", "units",
    },
    "hints": {"data", "errors", "microbench", "results", "units"},
    "cost": {"_native", "data", "device", "errors", "hints", "spec", "units"},
    "result_views": {"data", "oc", "report", "results"},
    "web": {
        "_native", "data", "durability", "errors", "extras", "hints", "microbench", "oc",
        "play", "profiles", "report",
        "result_views", "results", "stats", "sweeping", "units",
    },
    "site": {
        "_native", "benchmark", "benchmark_options", "data", "device", "durability", "errors",
        "extras",
        "escape", "executors", "hints", "profiles", "report", "result_views", "results",
        "safe_files", "units", "web",
    },
    "play": {
        "_native", "benchmark", "benchmark_options", "data", "device", "errors", "microbench",
        "profiles", "signals", "spec", "units",
    },
    "benchmark": {
        "_native", "analysis", "benchmark_options", "data", "device", "durability", "errors",
        "extras",
        "executors", "flash_waits", "footprint", "microbench", "native_wait", "oc", "profiles",
        "results", "safe_files", "signals", "spec", "startup", "stats", "units",
    },
    "reproduce": {
        "_native", "benchmark", "benchmark_options", "data", "device", "durability", "errors",
        "executors", "hints", "microbench", "models", "native_wait", "oc", "profiles", "report",
        "results", "signals", "spec", "stats", "table", "units",
    },
    "sweeping": {
        "_native", "benchmark_options", "data", "device", "durability", "errors", "extras",
        "executors", "results", "safe_files", "spec", "stats", "units",
    },
    "selftest": {
        "analysis", "device", "errors", "executors", "models", "reproduce", "spec", "units",
    },
}  # fmt: skip
EVERYTHING = {"cli", "__init__", "__main__"}
# Imported inside the functions that use them: a command does not wait for what it does not need.
HEAVY = {
    "SALib",
    "arro3",
    "arviz_stats",
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "ruptures",
    "scipy",
    "starlette",
    "statsmodels",
    "uvicorn",
}

CRATES: dict[str, set[str]] = {
    "core": set(),
    "method": {"core"},
    "engine": {"core", "method"},
    "sim": {"core"},
    "host": {"core"},
    "store": {"core", "engine"},
    "foreign": {"core", "engine"},
    "serve": {"core", "host", "sim"},
    "py": {"core", "method", "engine", "sim", "host", "store", "foreign", "serve"},
    "fuzz": {"core", "engine", "sim", "store", "foreign", "serve"},
    "bench": {"core", "method", "engine", "sim", "host", "store"},
}

# The modules of the simulator, and the modules that each may import.
SIMULATOR_IMPORTS: dict[str, set[str]] = {
    "collections": set(),
    "keys": set(),
    "flash": {"collections", "keys"},
    "timeline": {"collections", "flash", "keys"},
    "pool": {"collections", "flash"},
    "ftl": {"collections", "flash", "keys", "pool"},
    "config": {"flash", "ftl", "keys", "pool", "timeline"},
    "snapshot": {"collections", "config"},
    "device": {"collections", "config", "flash", "ftl", "snapshot", "timeline"},
    "open_channel": {"config", "flash", "keys", "snapshot", "timeline"},
    "examine": {"config", "device", "keys", "open_channel", "snapshot"},
}

LABELS = ("Source", "Faithful", "Simplified", "Ambiguous")

UNFINISHED = re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b")


# Words that nobody looks for, with those that people know.
UNUSUAL = {
    r"I/Os per s\b": "IOPS",
    r"\b(is|was|be) made anew": "rebuilt",
    r"\bgone on with": "resumed",
    r"disk that turns": "HDD",
    r"untimed gear|timed gear": "functional mode, timed mode",
    r"to lose everything": "erase confirmation",
    r"glances at": "samples of",
    r"cheap writes in hand": "free blocks",
}


def sources(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


PYTHON = sources("python/**/*.py", "tests/**/*.py", "tools/*.py", "benches/*.py")
RUST = sources("crates/**/*.rs")
PACKAGED = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of_each(paths: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Return a decorator that makes a test of a rule, which names every file that breaks it.

    One test checks all files: a test for each of thousands of files would take much longer.
    """

    def tested(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for path in paths:
                try:
                    rule(path)
                except Exception as error:  # a file that cannot be read or parsed is named as well
                    broken.append(f"{name_of(path)}: {error!r}")
            assert paths
            assert not broken, "\n".join(broken)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return tested


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


# Who imports whom


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST) -> set[str]:
    """Full names of what a module imports, anywhere in it."""
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where something comes from"
            module = node.module or ""
            names = (f"{module}.{alias.name}" for alias in node.names)
            modules.update(names if module == "uflip" else [module])
    return modules


@of_each(PACKAGED)
def test_imports_follow_the_layers(path: Path) -> None:
    part = part_of(path)
    if part in EVERYTHING:
        return
    assert part in MAY_IMPORT, f"{part} is new: say in {Path(__file__).name} what it may import"
    ours = {name for name in imported_modules(tree_of(path)) if name.startswith("uflip")}
    used = {name.split(".")[1] for name in ours if "." in name} - {part}
    assert used <= MAY_IMPORT[part], f"{part} must not import {used - MAY_IMPORT[part]}"


def test_allowed_imports_have_no_cycle() -> None:
    remaining = dict(MAY_IMPORT)
    while remaining:
        ready = [part for part, needs in remaining.items() if not needs & remaining.keys()]
        assert ready, f"these import each other: {sorted(remaining)}"
        for part in ready:
            del remaining[part]


def runtime_imports(node: ast.AST) -> Iterator[str]:
    """Yield the full names that a module imports when it runs, at its top or inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        else:
            yield from runtime_imports(child)


def import_cycle(trees: dict[str, ast.AST]) -> list[str]:
    """Return modules that import each other, from the syntax trees of modules by name."""
    imported = {name: set(runtime_imports(tree)) for name, tree in trees.items()}
    graph = {
        name: {module if module in trees else module.rpartition(".")[0] for module in modules}
        for name, modules in imported.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_python_files_have_no_import_cycle() -> None:
    def module_name(path: Path) -> str:
        return ".".join(path.relative_to(ROOT / "python").with_suffix("").parts)

    trees = {module_name(path).removesuffix(".__init__"): tree_of(path) for path in PACKAGED}
    assert len(trees) > 100
    assert import_cycle(trees) == []


def test_python_import_cycle_is_found() -> None:
    checked_only = "if TYPE_CHECKING:\n    from p.a import x"
    local = "def f():\n    from p import a"
    a, b = ast.parse("from p.b import y"), {"p.b": ast.parse(checked_only)}
    assert import_cycle({"p.a": a, **b}) == []
    assert sorted(set(import_cycle({"p.a": a, "p.b": ast.parse(local)}))) == ["p.a", "p.b"]


@of_each(PACKAGED)
def test_heavy_libraries_are_imported_locally(path: Path) -> None:
    top = [node for node in tree_of(path).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {name.split(".")[0] for node in top for name in imported_modules(node)}
    assert names & HEAVY == set()


def test_crates_have_only_allowed_dependencies() -> None:
    manifests = sources("crates/*/Cargo.toml")
    assert {path.parent.name for path in manifests} == set(CRATES), "a crate is new, or is gone"
    for path in manifests:
        crate = tomllib.loads(path.read_text())
        kinds = ("dependencies", "dev-dependencies", "build-dependencies")
        used = {name for kind in kinds for name in crate.get(kind, {})}
        ours = {name.removeprefix("uflip-") for name in used if name.startswith("uflip-")}
        allowed = CRATES[path.parent.name]
        if path.parent.name == "host":
            assert "uflip-engine" not in crate["dependencies"]
            allowed = {*allowed, "engine"}  # its tests drive an NVMe drive in memory
        assert ours <= allowed, f"{path.parent.name} must not use {ours}"


def test_crates_built_without_tests_contain_none() -> None:
    """`test = false` saves a build; a test in such a crate would never run."""
    without = []
    for manifest in sources("crates/*/Cargo.toml"):
        crate = tomllib.loads(manifest.read_text())
        targets = [crate.get("lib", {}), *crate.get("bin", [])]
        if any(not target.get("test", True) for target in targets):
            without.append(manifest.parent.name)
            for path in manifest.parent.glob("src/**/*.rs"):
                assert not re.search(r"#\[(test|cfg\(test\))\]", path.read_text()), path
    assert without == ["bench", "fuzz", "py"]


def test_simulator_modules_have_only_allowed_imports() -> None:
    dependencies = dependencies_of(ROOT / "crates" / "sim")
    modules = {path.stem for path in sources("crates/sim/src/*")} - {"lib"}
    assert modules == set(SIMULATOR_IMPORTS), "a module was added or removed"
    outgoing: dict[str, set[str]] = {module: set() for module in SIMULATOR_IMPORTS}
    for importer, imported in dependencies:
        if importer[0] != imported[0]:
            outgoing[importer[0]].add(imported[0])
    assert outgoing == SIMULATOR_IMPORTS, "an import was added or removed"


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_crate_modules_have_no_cycle(crate: str) -> None:
    cycle = cycle_of(dependencies_of(ROOT / "crates" / crate))
    assert cycle == [], f"these import each other: {cycle}"


def test_module_cycle_is_found() -> None:
    a, b, c = ("x", "a"), ("x", "b", "low"), ("x", "b", "other")
    assert cycle_of({(a, b), (c, ("y",))}) == []
    assert cycle_of({(a, b), (c, a)}) == ["x::a", "x::b"], "b with all that lies below it"
    assert cycle_of({(b, c), (c, b), (a, b)}) == ["x::b::low", "x::b::other"]


# Has a table whose entries are looked up by their keys, and gone through in the order of these.
HASHED = "crates/sim/src/device/cache.rs"


def test_core_engine_and_sim_use_no_clock_or_hash_order() -> None:
    forbidden = re.compile(r"\b(HashMap|HashSet|SystemTime|Instant|clock_gettime)\b")
    through = re.compile(r"pages\s*\.(?:iter|keys|values|drain|retain|into_)\w*\(\)\s*\.\w+[^(]*")
    for path in sources(
        "crates/core/src/**/*.rs", "crates/engine/src/**/*.rs", "crates/sim/src/**/*.rs"
    ):
        text = path.read_text()
        if name_of(path) == HASHED:
            assert through.findall(text) == ["pages.iter().collect::<BTreeMap<_, _>>"]
            text = text.replace("HashMap", "")
        assert forbidden.search(text) is None, name_of(path)


# How files look


@of_each([*PYTHON, *RUST])
def test_files_are_short_and_open_with_prose(path: Path) -> None:
    text = text_of(path)
    assert text.count("\n") <= LONGEST_FILE
    if path.suffix == ".rs":
        assert text.startswith("//! "), "the first lines say what the file is"
    else:
        assert ast.get_docstring(tree_of(path)), "the first lines say what the file is"


# Released steps of the database schema do not change.
FROZEN = PACKAGE / "site" / "migrations" / "versions"
# The head of a function in Rust, as the formatter lays it out: its first line has the indentation
# of its closing brace.
RUST_FUNCTION = re.compile(
    r"^( *)(?:(?:pub(?:\([^)]*\))?|default|const|async|unsafe|extern \"C\") )*fn (\w+)"
)


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of each function and its number of lines, without its docstring."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = node.body[0].value if isinstance(node.body[0], ast.Expr) else None
            if not isinstance(docstring, ast.Constant) or not isinstance(docstring.value, str):
                docstring = None
            lines = [(node.end_lineno or 0) - node.lineno + 1]
            if docstring:
                lines.append(docstring.lineno - (docstring.end_lineno or 0) - 1)
            yield node.name, sum(lines)


def rust_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of each function with a body and its number of lines."""
    lines = text_of(path).splitlines()
    for first, line in enumerate(lines):
        head = RUST_FUNCTION.match(line)
        if head is None or line.endswith(("}", ";")):
            continue
        # A declaration without a body may end on a later line: with the indentation, too.
        ends = re.compile(rf"{head[1]}(?:\}}|\S.*;$)")
        last = next(n for n in range(first + 1, len(lines)) if ends.match(lines[n]))
        yield head[2], last - first + 1


PACKAGES_WITH_CONTENTS = [
    path
    for path in PACKAGED
    if path.name == "__init__.py"
    # These list micro-benchmarks by their names on the command line.
    and "microbench" not in path.parts
    and re.search(r"^====+ +====+$", text_of(path), re.M)
]


@of_each(PACKAGES_WITH_CONTENTS)
def test_package_lists_its_modules(path: Path) -> None:
    listed = {name.strip("/") for name in re.findall(r"^`([\w/]+)`", text_of(path), re.M)}
    modules = {file.stem for file in path.parent.glob("*.py") if not file.stem.startswith("_")}
    folders = {folder.name for folder in path.parent.iterdir() if folder.is_dir()}
    assert modules <= listed <= modules | folders


def test_functions_are_short() -> None:
    lengths: dict[str, int] = {}
    for path in [*PYTHON, *RUST]:
        of_language = rust_functions if path.suffix == ".rs" else python_functions
        for name, lines in of_language(path) if FROZEN not in path.parents else ():
            key = f"{name_of(path)}:{name}"
            lengths[key] = max(lines, lengths.get(key, 0))
    longer = {key: lines for key, lines in lengths.items() if lines > LONGEST_FUNCTION}
    grown = {key: n for key, n in longer.items() if n > LONG_FUNCTIONS.get(key, 0)}
    assert grown == {}, f"functions have at most {LONGEST_FUNCTION} lines without their docstring"
    assert LONG_FUNCTIONS.keys() <= longer.keys(), "take those that are short out of LONG_FUNCTIONS"


def test_function_lines_are_counted(tmp_path: Path) -> None:
    python, rust = tmp_path / "a.py", tmp_path / "a.rs"
    python.write_text('def f(\n    a: int,\n) -> None:\n    """Do.\n\n    It.\n    """\n    f(a)\n')
    rust.write_text(
        "fn declared(\n    a: u8,\n) -> u8;\nimpl A {\n    pub(crate) const fn f() {\n"
        "        {\n        }\n    }\n    fn g() {}\n}\n"
    )
    assert list(python_functions(python)) == [("f", 4)]
    assert list(rust_functions(rust)) == [("declared", 3), ("f", 4)]


def test_no_file_has_conflict_markers() -> None:
    marker = re.compile(r"^(<{7}|>{7}) ", re.M)
    folders = ("crates", "docs", "python", "tests", "tools", "web/src", "benches")
    kinds = (".md", ".py", ".rs", ".toml", ".ts", ".css", ".html")
    files = [*ROOT.glob("*.*"), *(each for name in folders for each in (ROOT / name).rglob("*"))]
    texts = [each for each in files if each.suffix in kinds and each.is_file()]
    assert len(texts) > 500
    assert [name_of(each) for each in texts if marker.search(each.read_text("utf-8"))] == []


PARAMETERS = re.compile(r"Parameters\n-+\n(.*?)(?:\n\n\w+\n-+|\Z)", re.S)


def unknown_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters that a docstring describes and that the function does not have."""
    arguments = node.args
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
    section = PARAMETERS.search(ast.get_docstring(node) or "")
    heads = re.findall(r"^\S.*", section[1], re.M) if section else []
    described = {name.strip("* ") for head in heads for name in head.split(" :")[0].split(",")}
    return described - names


@of_each(PACKAGED)
def test_documented_parameters_exist(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert not unknown_parameters(node), f"{name_of(path)}:{node.lineno} {node.name}"


def test_unknown_documented_parameter_is_found() -> None:
    docstring = "Add.\n\nParameters\n----------\na, c : int\n*b\n    The numbers."
    (function,) = ast.parse(f"def f(a, *b):\n    {docstring!r}").body
    assert isinstance(function, ast.FunctionDef)
    assert unknown_parameters(function) == {"c"}


# A tag of HTML or SVG. Text that contains one was built by hand, without escaping.
TAG = re.compile(
    r"</?(a|abbr|b|code|details|div|dl|figure|h[1-6]|i|img|li|ol|p|path|pre|rect|script|section"
    r"|small|span|style|summary|svg|table|tbody|td|th|thead|title|tr|ul)[ />]"
)


@of_each(PACKAGED)
def test_only_templates_contain_html(path: Path) -> None:
    tree = tree_of(path)
    in_prose = {
        ast.get_docstring(node, clean=False)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            made = TAG.search(node.value) and node.value not in in_prose
            assert not made, f"line {node.lineno}: {node.value!r}"
    assert {"html", "markupsafe"} & imported_modules(tree) == set(), "templates escape"


def test_templates_escape_everything() -> None:
    templates = sources("python/uflip/report/templates/**/*.*")
    assert len(templates) > 5
    unescaped = [
        name_of(path)
        for path in templates
        for _ in re.findall(r"\|\s*safe\b|autoescape", path.read_text(encoding="utf-8"))
    ]
    assert unescaped == []
    page = (PACKAGE / "report" / "page.py").read_text(encoding="utf-8")
    assert page.count("autoescape=True") == 1


# A document as a dictionary of anything: mypy cannot check its keys.
UNTYPED = re.compile(r"\b(?:dict|Mapping)\[str, Any\]")
# `uflip.data.document.Table` is the only type for data whose keys are defined elsewhere. Maximum
# number of other untyped documents in a package; 0 where a package is not listed.
MAX_UNTYPED = {"data": 1, "site": 0, "sweeping": 0}


def untyped(package: str) -> int:
    """Return their number in a folder of the package, or a file directly in it."""
    paths = (
        (PACKAGE / package).rglob("*.py") if (PACKAGE / package).is_dir() else [PACKAGE / package]
    )
    return sum(len(UNTYPED.findall(path.read_text(encoding="utf-8"))) for path in paths)


def test_documents_have_types() -> None:
    packages = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py")}
    grown = {
        package: count
        for package in packages
        if (count := untyped(package)) > MAX_UNTYPED.get(package, 0)
    }
    assert grown == {}, f"no more than {MAX_UNTYPED}: give these documents types"


def test_only_one_module_lays_out_tables() -> None:
    """Columns of text are as wide as their widest cell: code that pads a cell lays out a table."""
    padding = re.compile(r"\.[lr]just\(")
    allowed = {"table.py": "the printer", "report/text.py": "sparklines are padded to one width"}
    for path in sorted(PACKAGE.rglob("*.py")):
        if str(path.relative_to(PACKAGE)) not in allowed:
            assert padding.search(path.read_text(encoding="utf-8")) is None, name_of(path)
    for template in sources("python/uflip/report/templates/**/*.html"):
        assert ("<table" in template.read_text()) == (template.name == "table.html")


def registered(kind: str) -> list[Path]:
    """Files of the modules in the list of a Rust registry."""
    folder = ROOT / "crates" / "sim" / "src" / kind
    listed = re.findall(
        r'^\s+"\w+" => (\w+)::\w+(?: \[\w+\])?,', (folder / "mod.rs").read_text(), re.M
    )
    assert listed, f"no list in {kind}/mod.rs"
    files = (folder / f"{module}.rs" for module in listed)
    return [file if file.exists() else file.with_suffix("") / "mod.rs" for file in files]


def labelled() -> list[Path]:
    """Everything that claims to implement something from a paper."""
    microbench = set(sources("python/uflip/microbench/*.py")) - {
        PACKAGE / "microbench" / f"{name}.py"
        for name in ("__init__", "experiment", "labels", "layout", "micro_benchmark")
    }
    microbench |= set(sources("python/uflip/microbench/open_channel/oc*.py"))
    microbench |= set(sources("python/uflip/microbench/today/[a-z]*.py"))
    models = [path for path in sources("python/uflip/models/*.py") if path.name[0] != "_"]
    page_map = ROOT / "crates/sim/src/ftl/page_map"
    ftls = [
        *registered("ftl"),
        *(page_map / name for name in ("mod.rs", "dftl.rs", "retirement.rs")),
    ]
    others = (
        "crates/engine/src/pattern.rs",
        "crates/engine/src/spec.rs",
        "crates/engine/src/spec/stop.rs",
        "crates/method/src/analysis.rs",
        "crates/method/src/batch_means.rs",
        "crates/method/src/change_points.rs",
        "crates/method/src/levels.rs",
        "crates/method/src/percentiles.rs",
        "crates/method/src/period.rs",
        "crates/method/src/quantile.rs",
        "crates/method/src/startup.rs",
        "crates/method/src/stationarity.rs",
        "crates/method/src/stop_rule.rs",
        "crates/sim/src/device/cache.rs",
        "crates/sim/src/ftl/mapping_cache.rs",
        "crates/sim/src/device/collector.rs",
        "crates/core/src/preconditioning.rs",
        "crates/sim/src/device/jobs/mod.rs",
        "crates/sim/src/timeline/mod.rs",
        "python/uflip/benchmark/target_spaces.py",
        "python/uflip/benchmark/plan.py",
        "python/uflip/benchmark/state.py",
        "python/uflip/analysis/series.py",
        "benches/generated_series.py",
        "benches/stop_rules.py",
        "python/uflip/results/key_characteristics.py",
        "python/uflip/stats.py",
    )
    policies = [*registered("pool/victim"), *registered("pool/alloc")]
    locations = set(sources("crates/engine/src/location/*.rs"))
    locations -= {ROOT / "crates/engine/src/location/mod.rs"}
    modules = [*microbench, *models, *ftls, *policies, *locations]
    return sorted({*modules, *(ROOT / name for name in others)})


@of_each(labelled())
def test_paper_modules_state_their_reading(path: Path) -> None:
    text = text_of(path)
    places = []
    for label in LABELS:
        match = re.search(rf"^(?://! )?(?:\*\*{label}\*\*|:{label}:)", text, re.M)
        assert match, f"no line {label}"
        places.append(match.start())
    assert places == sorted(places), f"in the order {', '.join(LABELS)}"


@of_each([*PYTHON, *RUST])
def test_no_file_has_unfinished_markers(path: Path) -> None:
    if path == Path(__file__):
        return
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        assert not UNFINISHED.search(line), f"line {number}: open an issue: {line.strip()}"


@of_each(sources("python/**/*.py", "docs/**/*.md", "README.md", "ARCHITECTURE.md"))
def test_text_uses_terms_of_the_field(path: Path) -> None:
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        for unusual, instead in UNUSUAL.items():
            assert not re.search(unusual, line), f"line {number}: say {instead}: {line.strip()}"


def test_fuzz_targets_have_a_current_lock_file() -> None:
    """They are a separate workspace: no other check notices an outdated lock file."""
    locked = {
        package["name"]: {name.split()[0] for name in package.get("dependencies", ())}
        for package in tomllib.loads((ROOT / "fuzz/Cargo.lock").read_text())["package"]
    }
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        crate = tomllib.loads(manifest.read_text())
        if crate["package"]["name"] in locked:
            assert locked[crate["package"]["name"]] == set(crate.get("dependencies", ())), manifest
