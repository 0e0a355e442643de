"""Hostile inputs: the tables in tests/hostile, and the checks that hold for every case.

`tests/hostile/README.md` describes the tables. A case is one command in a folder of its own, which
holds copies of the files that it names and some unusual files (`_make_special_files`).
"""

import json
import os
import re
import shlex
import shutil
import signal
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fork_server import CPU_S, MEMORY_BYTES, CommandOutcome, Server

from uflip.errors import EXIT_CODES

HOSTILE = Path(__file__).resolve().parents[1] / "hostile"
TINY = HOSTILE / "files" / "profiles" / "tiny.toml"
WORDS = ("accepted", "refused", "either")
PRECIOUS = "Chapter one. Nobody has a copy of this.\n"
# Exit codes of errors, without the one of bugs in uflip.
ERRORS = {code for kind, (code, _) in EXIT_CODES.items() if kind not in ("ok", "internal")}
PARTS = {"what", "where", "do"}
SERVING = {"serve", "explore"}  # these run until a signal
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Edit:
    """Changes of the document at `path`, as lines of a table have them."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A command, what it is expected to do, and the change of a document that it reads."""

    location: str
    """Return its place: FILE:LINE."""
    expected: str
    command: str
    edit: Edit | None = None

    def __str__(self) -> str:
        edit = f"   with {self.edit.path}: {'; '.join(self.edit.lines)}" if self.edit else ""
        return f"{self.location}  uflip {self.command}{edit}"


# Reading the tables


def command_cases() -> list[Case]:
    """All command lines in tests/hostile/commands."""
    cases = []
    for path in sorted((HOSTILE / "commands").glob("*.txt")):
        for number, line in _lines(path):
            expected, _, command = line.partition(" ")
            assert expected in WORDS, f"{path.name}:{number}: must begin with one of {WORDS}"
            cases.append(Case(f"{path.name}:{number}", expected, command.strip()))
    return cases


def documents() -> list[tuple[str, list[str]]]:
    """All documents in tests/hostile/edits, each with the commands that read it."""
    documents_found: list[tuple[str, list[str]]] = []
    for path in sorted((HOSTILE / "edits").glob("*.txt")):
        for _, line in _lines(path):
            word, _, argument = line.partition(" ")
            if word == "document":
                documents_found.append((argument.strip(), []))
            elif word == "try":
                documents_found[-1][1].append(argument.strip())
    return documents_found


def edit_cases() -> list[Case]:
    """All edits in tests/hostile/edits, each with every command that reads the document."""
    cases = []
    for path in sorted((HOSTILE / "edits").glob("*.txt")):
        document, commands = "", []
        for number, line in _lines(path):
            word, _, argument = line.partition(" ")
            if word == "document":
                document, commands = argument.strip(), []
            elif word == "try":
                commands.append(argument.strip())
            else:
                location, edit = f"{path.name}:{number}", Edit(document, (line,))
                cases += [Case(location, "either", command, edit) for command in commands]
    return cases


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


# Macros for long text: {digits 5000}, {deep 9000}, ...

_MACRO = re.compile(r"\{(\w+) (\w+)\}")
_MACROS = {
    "digits": lambda n: "9" * int(n),
    "text": lambda n: "a" * int(n),
    "deep": lambda n: "[" * int(n) + "]" * int(n),
    "open": lambda n: "[" * int(n),
    "tables": lambda n: '{"a":' * int(n) + "1" + "}" * int(n),
    "dotted": lambda n: ".".join("a" for _ in range(int(n))),
    "dots": lambda n: "../" * int(n),
    "items": lambda n: "[" + ",".join("0" for _ in range(int(n))) + "]",
    "keys": lambda n: "{" + ",".join(f'"k{key}":0' for key in range(int(n))) + "}",
    "lines": lambda n: "\n" * int(n),
    "char": lambda code: chr(int(code, 16)),
    "byte": lambda code: os.fsdecode(bytes.fromhex(code)),
}


def expand(text: str) -> str:
    """Expand the macros in braces."""
    return _MACRO.sub(lambda match: _MACROS[match[1]](match[2]), text)


# Valid documents, made by the commands themselves

DOCUMENTS = (
    "plan sim:tiny.toml --only order --scale quick --out whole.toml",
    "run sim:tiny.toml --plan plan.toml --out r -q",
    "pattern sim:tiny.toml --pattern RW --io-count 10 --save device.snapshot",
    "pattern null --pattern SR --io-count 60 --trace trace.csv",
    "pattern sim:tiny.toml --pattern RW --io-count 60 --trace trace.parquet",
    "prepare file:target --size 1MiB --buffered --record record.json -q",
)


def make_documents(folder: Path, server: Server) -> None:
    """Make one of each kind of document that uflip reads."""
    shutil.copy(TINY, folder)
    for command in DOCUMENTS:
        outcome = server.run(
            shlex.split(command), folder, {"UFLIP_CACHE_DIR": str(folder / "cache")}
        )
        assert outcome.code == 0, f"uflip {command}: {outcome.err}"
        if "whole.toml" in command:
            _shorten(folder / "whole.toml", folder / "plan.toml")
    spec = {"kind": "basic", "mode": "write", "location": "random", "io_count": 10}
    (folder / "spec.json").write_text(json.dumps(spec))


def _shorten(plan: Path, to: Path) -> None:
    """Keep the first two runs of a plan: fewer runs read as fast as they fail."""
    head, *runs = plan.read_text().split("[[runs]]")
    to.write_text("[[runs]]".join([head, *runs[:2]]))


# The folder of a case


class Bench:
    """The environment of cases: valid documents, one server, and a new folder for every case."""

    def __init__(self, folder: Path, server: Server, documents_dir: Path) -> None:
        self.folder = folder
        self.server = server
        self.documents_dir = documents_dir
        self.last: CommandOutcome | None = None

    def run(self, case: Case, patience_s: float | None = None) -> list[str]:
        """Run a case; return the faults of its outcome."""
        cwd = self.folder / "case"
        shutil.rmtree(cwd, ignore_errors=True)
        cwd.mkdir(parents=True)
        _make_special_files(cwd)
        arguments, environment, stdin = self._lay_out(case, cwd)
        serves = patience_s is not None and SERVING & set(arguments[:2])
        self.last = outcome = self.server.run(
            arguments, cwd, environment, stdin, patience_s, serves=bool(serves)
        )
        # A finding of `verify` is its result, not an error.
        is_answer = arguments[:1] == ["verify"] and bool(outcome.out)
        as_json = "--json" in arguments
        faults = problems(outcome, case.expected, as_json=as_json, is_answer=is_answer)
        allowed = {"--force", "--destroy"} & set(arguments)
        if not allowed and (cwd / "text").read_bytes() != PRECIOUS.encode():
            faults.append("it changed a file of the user's")
        return faults

    def _lay_out(self, case: Case, cwd: Path) -> tuple[list[str], dict[str, str], Path | None]:
        """Make the files of a case; returns its arguments, environment and standard input."""
        words = shlex.split(case.command)
        environment = {"UFLIP_CACHE_DIR": str(self.folder / "cache")}
        while words and (setting := re.fullmatch(r"([A-Z_]+)=(.*)", words[0], re.DOTALL)):
            environment[setting[1]] = expand(setting[2])
            words.pop(0)
        stdin = None
        if "<" in words:
            at = words.index("<")
            stdin = cwd / self._named(words[at + 1], cwd)
            del words[at : at + 2]
        arguments = [expand(self._named(word, cwd)) for word in words]
        if case.edit:
            inside = case.edit.path.removeprefix("made/")
            top = inside.split("/")[0]
            self._copied(case.edit.path.removesuffix(inside) + top, cwd)
            for number, line in enumerate(case.edit.lines):
                try:
                    change(cwd, cwd / inside, line)
                except (ValueError, LookupError, TypeError):
                    if number == 0:  # later edits may not fit the edited document
                        raise
        return arguments, environment, stdin

    def _named(self, word: str, cwd: Path) -> str:
        """Copy what a word names with @, and name the copy."""
        return re.sub(r"@([\w./+-]+)", lambda match: self._copied(match[1], cwd), word)

    def _copied(self, name: str, cwd: Path) -> str:
        """Copy a file or folder of tests/hostile/files, or a document made beforehand."""
        kind, _, path_below = name.partition("/")
        source = self.documents_dir / path_below if kind == "made" else HOSTILE / "files" / name
        target = cwd / source.name
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)
        return target.name


def _make_special_files(cwd: Path) -> None:
    """Make files of unusual kinds, and one that no case may change."""
    (cwd / "text").write_text(PRECIOUS)
    shutil.copy(TINY, cwd)
    (cwd / "empty").touch()
    (cwd / "folder").mkdir()
    os.mkfifo(cwd / "fifo")
    for name, target in (
        ("zero", "/dev/zero"),
        ("full", "/dev/full"),
        ("loop", "loop"),
        ("dangling", "missing"),
    ):
        (cwd / name).symlink_to(target)


# Changing documents


def change(cwd: Path, path: Path, line: str) -> None:
    """Change a document as a line of a table says."""
    word, _, argument = line.partition(" ")
    if word.startswith("/"):
        _set(path, word, expand(argument.strip().removeprefix("=").strip()))
    elif word == "delete":
        _set(path, argument.strip(), None)
    elif word == "become":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        path.symlink_to(cwd / argument.strip())
    else:
        _CHANGES[word](path, argument.strip())


def _flip(path: Path, argument: str) -> None:
    """Flip a bit; offsets are in millionths of the file, so that they fit any length."""
    at, bit = (int(part) for part in argument.split())
    content = bytearray(path.read_bytes())
    content[at * (len(content) - 1) // 1_000_000] ^= 1 << bit
    path.write_bytes(content)


def _zero(path: Path, argument: str) -> None:
    at, length = (int(part) for part in argument.split())
    content = bytearray(path.read_bytes())
    begin = at * len(content) // 1_000_000
    content[begin : begin + length] = bytes(length)
    path.write_bytes(content)


def _cut(path: Path, argument: str) -> None:
    """Truncate the file to `rest` millionths of its length."""
    content = path.read_bytes()
    path.write_bytes(content[: int(argument) * len(content) // 1_000_000])


def _copy(path: Path, argument: str) -> None:
    """Write a part of the file once more, somewhere else in it."""
    at, length, to = (int(part) for part in argument.split())
    content = bytearray(path.read_bytes())
    begin, target = (position * len(content) // 1_000_000 for position in (at, to))
    content[target:target] = content[begin : begin + length]
    path.write_bytes(content)


def _replace(path: Path, argument: str) -> None:
    old, new = (expand(part) for part in argument.split(" -> "))
    content = path.read_text(encoding="utf-8")
    assert old in content, f"{path.name} holds no {old!r}"
    path.write_bytes(os.fsencode(content.replace(old, new, 1)))


_CHANGES = {
    "whole": lambda path, rest: path.write_bytes(os.fsencode(expand(rest))),
    "append": lambda path, rest: path.write_bytes(path.read_bytes() + os.fsencode(expand(rest))),
    "file": lambda path, rest: shutil.copyfile(HOSTILE / "files" / rest, path),
    "flip": _flip,
    "zero": _zero,
    "cut": _cut,
    "copy": _copy,
    "replace": _replace,
}


@cache
def _parsed(path: Path, _stamp: int) -> str:
    text = path.read_text(encoding="utf-8")
    return json.dumps(tomllib.loads(text) if path.suffix == ".toml" else json.loads(text))


def _set(path: Path, pointer: str, raw: str | None) -> None:
    """Set, add or delete one value; it is written verbatim, valid or not."""
    content = json.loads(_parsed(path, path.stat().st_mtime_ns))
    *steps, last = pointer.strip("/").split("/")
    node: Any = content
    for step in steps:
        node = node[int(step) if isinstance(node, list) else step]
    key = int(last) if isinstance(node, list) else last
    if raw is None:
        del node[key]
    elif isinstance(node, list) and key == len(node):
        node.append(_MARK)
    else:
        node[key] = _MARK
    text = _toml(content) if path.suffix == ".toml" else json.dumps(content)
    path.write_bytes(os.fsencode(text.replace(json.dumps(_MARK), raw or "")))


_MARK = "what stands here is replaced"


def _toml(value: Any, *, top: bool = True) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{json.dumps(key)} = {_toml(each, top=False)}" for key, each in value.items()]
        return "\n".join(pairs) + "\n" if top else "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each, top=False) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


# Expectations


def problems(
    outcome: CommandOutcome,
    expected: str = "either",
    *,
    as_json: bool = False,
    is_answer: bool = False,
) -> list[str]:
    """Return the faults of the outcome of a command; an empty list if it is as expected."""
    if outcome.hung:
        return ["it did not end"]
    faults = []
    if outcome.signal is not None:
        faults.append(f"it was ended by {signal.Signals(outcome.signal).name}")
    elif outcome.code not in ERRORS | {0}:
        faults.append(f"exit code {outcome.code}")
    elif (expected == "accepted" and outcome.code) or (expected == "refused" and not outcome.code):
        faults.append(f"exit code {outcome.code}, but it should be {expected}")
    faults += [
        f"{sign!r} on stderr" for sign in ("Traceback", "panicked at") if sign in outcome.err
    ]
    if outcome.cpu_s > CPU_S:
        faults.append(f"{outcome.cpu_s:.1f} s of processor time")
    if outcome.memory_bytes > MEMORY_BYTES:
        faults.append(f"{outcome.memory_bytes >> 20} MiB of memory")
    if odd := CONTROL.search(outcome.out + outcome.err):
        faults.append(f"U+{ord(odd[0]):04X} on the terminal")
    if outcome.code and not faults and not is_answer:
        faults += _bad_message(outcome, as_json=as_json)
    return faults


def _bad_message(outcome: CommandOutcome, *, as_json: bool) -> list[str]:
    """Return what an error message lacks."""
    if as_json:
        try:
            parts = json.loads(outcome.out)["error"]
        except (ValueError, KeyError, TypeError):
            return [f"no JSON of an error, but {outcome.out[:80]!r}"]
        present = {name for name, text in parts.items() if text}
        present |= {"do"} if parts.get("action") else set()
    else:
        head = re.search("^error: .", outcome.err, re.MULTILINE)
        labels = re.findall(r"^  (where|got|allowed|do) +\S", outcome.err, re.MULTILINE)
        present = {*labels, *(["what"] if head else [])}
    return [f"an error without {part!r}" for part in sorted(PARTS - present)]
