"""Dependencies between the modules of a crate, read from `use` lines and paths in its files.

Uses by tests do not count, nor do dependencies between a module and its submodules.
"""

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]


def modules_of(crate: Path) -> dict[Module, Path]:
    """Return the modules of a crate with their files; its root is the empty tuple."""
    modules: dict[Module, Path] = {}
    for path in sorted((crate / "src").rglob("*.rs")):
        parts = path.relative_to(crate / "src").with_suffix("").parts
        modules[parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts] = path
    return modules


def dependencies_of(crate: Path) -> set[tuple[Module, Module]]:
    """Return (a, b) where module a uses module b."""
    modules = modules_of(crate)
    text = {module: path.read_text(encoding="utf-8") for module, path in modules.items()}
    only_tests = {
        (*module, name)
        for module, code in text.items()
        for name in re.findall(r"#\[cfg\(test\)\]\s*(?:pub(?:\(\w+\))? )?mod (\w+)", code)
    }
    dependencies: set[tuple[Module, Module]] = set()
    for module, code in text.items():
        if any(module[: len(test)] == test for test in only_tests):
            continue
        for path in _paths(_without_tests(code)):
            target = _resolved(path, module, modules)
            if target[: len(module)] != module and module[: len(target)] != target:
                dependencies.add((module, target))
    return dependencies


def cycle_of(arrows: set[tuple[Module, Module]]) -> list[str]:
    """Return a cycle of modules of one level, each including its submodules."""
    below: dict[tuple[Module, str], set[str]] = {}
    for one, other in arrows:
        shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        below.setdefault((one[:shared], one[shared]), set()).add(other[shared])
    for parent in sorted({parent for parent, _ in below}):
        level = {name: needs for (module, name), needs in below.items() if module == parent}
        while level:
            ready = [name for name, needs in level.items() if not needs & level.keys()]
            if not ready:
                return ["::".join((*parent, name)) for name in sorted(level)]
            for name in ready:
                del level[name]
    return []


def _without_tests(code: str) -> str:
    code = re.sub(r"//[^\n]*", "", code)
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", code)[0]


def _paths(code: str) -> Iterator[list[str]]:
    for use in re.findall(r"\buse\s+((?:crate|super|self)\b[^;]*);", code):
        yield from (path.split("::") for path in _each(use))
    other_code = re.sub(r"\buse\s[^;]*;", "", code)
    yield from (path.split("::") for path in re.findall(r"\b(?:crate|super)(?:::\w+)+", other_code))


def _each(use: str) -> Iterator[str]:
    """Yield the paths of a `use` with braces."""
    start, brace, inner = use.partition("{")
    if not brace:
        yield use.split(" as ", maxsplit=1)[0].strip()
        return
    depth, name = 0, ""
    for letter in inner.rstrip()[:-1] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if name.strip():
                yield from _each(start.strip() + name.strip())
            name = ""
        else:
            name += letter


def _resolved(path: list[str], module: Module, modules: dict[Module, Path]) -> Module:
    """Return the module of a path, or the one that defines its item."""
    at = () if path[0] == "crate" else module
    for step in path:
        if step == "super":
            at = at[:-1]
        elif step not in ("crate", "self"):
            if (*at, step) not in modules:
                break
            at = (*at, step)
    return at
