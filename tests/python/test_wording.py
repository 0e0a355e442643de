"""Plain English: phrases that code, comments, messages and pages avoid.

A sentence has a thing as its subject and an active verb. Things store, return, contain and report;
they do not say, tell, hear or know.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Where a comment, a docstring or a sentence begins.
BEGIN = r"(?:^|[.:] |\"\"\"|//[/!]? |# )"
CLAUSE = (
    "is|are|was|were|has|had|does|did|can|may|must"
    "|comes|makes|needs|asks|says|follows|lies|stands|goes"
)
AVOIDED = {
    r"\b(?:is|are|was|were|be|been) (?:told|said|heard)\b": "reports, prints, stores, receives",
    r"\b[Ww]hoever\b": "the caller, the user, the client",
    r"\b[Ss]o many\b": "the number of",
    r"\bhow manyth\b": "the index of",
    r"\b(?:is|are) none\b": "negate the verb: does not, has no",
    r"\b(?:says|tells|said|told) so\b": "reports it",
    r"\blets? be\b": "ignore, keep",
    r"\bis known of\b": "the properties of",
    r"\bgoes without saying\b": "the default",
    r"\bknows? nobody\b|\bis nobody's?\b": "imports nothing, has no owner",
    BEGIN + rf"(?:What|Who) (?:{CLAUSE})\b(?![^.?\n]*\?)": "begin with the thing",
    BEGIN + r"(?:Whose|Whom)\b(?![^.?\n]*\?)": "begin with the thing",
}
PATTERNS = {re.compile(phrase, re.M): instead for phrase, instead in AVOIDED.items()}

GLOBS = (
    "*.md", "Makefile", "Cargo.toml", "pyproject.toml", ".ci/run", "deploy/*", "requirements/*.in",
    "benches/*.py", "crates/*/**/*.rs", "docs/**/*.md", "python/uflip/**/*.py",
    "python/uflip/**/*.pyi", "python/uflip/**/*.html", "python/uflip/**/*.toml",
    "tests/python/*.py", "tools/*.py", "tools/*.sh", "web/src/**/*.ts",
)  # fmt: skip
# Made of other files, which are checked.
GENERATED = {"docs/reference/cli.md", "docs/papers.md"}


def room_of(path: Path) -> str:
    """Return the room of a file: a crate, a package, a folder of pages; else its top folder."""
    parts = path.relative_to(ROOT).parts
    deep = 3 if parts[0] == "python" else 2
    return "/".join(parts[: min(deep, len(parts) - 1)]) or parts[0]


@cache
def files() -> tuple[Path, ...]:
    paths = {path for pattern in GLOBS for path in ROOT.glob(pattern)} - {Path(__file__).resolve()}
    return tuple(sorted(p for p in paths if str(p.relative_to(ROOT)) not in GENERATED))


def rooms() -> list[str]:
    return sorted({room_of(path) for path in files()})


def files_of(room: str) -> list[Path]:
    return [path for path in files() if room_of(path) == room]


def phrases(paths: Iterable[Path]) -> Iterator[str]:
    """Yield each avoided phrase, with its place and what to write."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for pattern, instead in PATTERNS.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                phrase = match[0].strip()
                yield f"{path.relative_to(ROOT)}:{line}: {phrase!r}; rather: {instead}"


@pytest.mark.parametrize("room", rooms())
def test_text_has_no_avoided_phrase(room: str) -> None:
    problems = list(phrases(files_of(room)))
    assert not problems, "\n".join(problems)


def test_avoided_phrases_are_found(tmp_path: Path) -> None:
    path = ROOT / "docs" / "wording-example.md"
    assert room_of(path) == "docs"
    bad = [
        "What is no table is refused.",
        "Whoever asks is told.",
        "So many I/Os.",
        "There is none.",
    ]
    good = ["What is a zone?", "The run stores its trace.", "Print the number of I/Os."]
    for text, expected in [*((t, True) for t in bad), *((t, False) for t in good)]:
        assert any(pattern.search(text) for pattern in PATTERNS) is expected, text
