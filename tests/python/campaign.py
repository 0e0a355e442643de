"""Mutates valid documents and command lines at random, and prints the line that repeats a failure.

    python tests/python/campaign.py --cases 10000 --seed 1
    python tests/python/campaign.py --seconds 3600
    python tests/python/campaign.py --again 1:4711       case 4711 of seed 1

A mutation is written in the words of the tables in tests/hostile, and every case follows from its
seed and number alone. A failing case is reduced to its necessary parts, which are printed as
lines for a table, to be added once the defect is fixed.
"""

import argparse
import itertools
import json
import os
import random
import shlex
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fork_server import Server
from hostile_cases import HOSTILE, Bench, Case, Edit, command_cases, documents, make_documents

PATIENCE_S = 3
"""Processor time after which a long command is interrupted, as by Ctrl-C."""

NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "255", "256", "511", "512", "513", "4095", "4096", "65535",
    "65536", "1000000", "2147483647", "2147483648", "4294967295", "4294967296", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
    "18446744073709551616", "0.0", "-0.0", "0.5", "1.5", "1e-320", "1e16", "1e300", "1e999", "NaN",
    "nan", "inf", "Infinity", "{digits 25}", "{digits 400}", "{digits 5000}",
)  # fmt: skip
TEXTS = (
    '""', '" "', '"x"', '"0"', '"4k"', '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', '"\\u202e"',
    '"\\ud83d\\ude00"', '"é"', '"../x"', '"/x"', '"."', '".."', '"a/b"', '"{text 300}"',
    '"{text 20000}"', '"<script>alert(1)</script>"', '"=1+1"', '"%s%n"', '"\\n"', '"nan"',
    '"null"', '"random"', '"read"',
)  # fmt: skip
OTHERS = ("null", "true", "false", "[]", "{}", "[0]", '{"a": 1}', "[[[[[]]]]]", "{deep 200}")
ODD_WORDS = (
    *NUMBERS, "", " ", "-", "--", "=", ",", "4k", "1KiB", "1s", "0s", "1ns", "100ms", "50%", "RW",
    "SR", "text", "fifo", "zero", "full", "folder", "loop", "missing", "tiny.toml", "null",
    "sim:tiny.toml", "x.csv", "x.parquet", "x.html", "x.snapshot", "x.toml", "{byte ff}",
    "{char 0}", "{char 1b}[2J", "{char d7ff}", "{text 300}", "é", "order", "quick", "random",
)  # fmt: skip
APPENDED = ("x", "{byte ff}", "{char 0}", "[", "{", "{lines 50}", "PAR1")
# Random commands do not use these, because a bug could damage the machine.
OUTSIDE = ("/dev", "/proc", "/sys", "HOME", "..", "{dots")


@dataclass
class Tally:
    """The statistics of a campaign."""

    tried: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


# Making cases


def make_case(seed: int, number: int, documents_dir: Path) -> Case:
    """Make case `number` of a seed: a mutated document, or a mutated command line."""
    rng = random.Random(f"{seed}:{number}")
    location = f"{seed}:{number}"
    if rng.random() < 0.35:
        return Case(location, "either", _command(rng))
    path, commands = rng.choice(_files(documents_dir))
    lines = tuple(_edits(rng, _document_path(path, documents_dir)))
    return Case(location, "either", rng.choice(commands), Edit(path, lines))


def _files(documents_dir: Path) -> list[tuple[str, list[str]]]:
    return [
        (path, commands)
        for path, commands in documents()
        if _document_path(path, documents_dir).is_file()
    ]


def _document_path(path: str, documents_dir: Path) -> Path:
    inside = path.removeprefix("made/")
    return (HOSTILE / "files" if inside == path else documents_dir) / inside


def _edits(rng: random.Random, path: Path) -> Iterator[str]:
    """Make a few edits of one document."""
    content = _content(path)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if content is None or rng.random() < 0.25:
            yield _byte_edit(rng)
        else:
            yield _value_edit(rng, content)


def _content(path: Path) -> Any:
    """Return the content of a document; None if it has no names and values."""
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else None


def _byte_edit(rng: random.Random) -> str:
    # Half of all offsets are near the end, where a Parquet file has its footer.
    at = rng.choice((rng.randrange(1_000_001), 1_000_000 - int(rng.expovariate(1 / 30_000))))
    at, to = max(at, 0), rng.randrange(1_000_001)
    length = rng.choice((1, 2, 4, 8, 16, 100, 1000))
    return rng.choice(
        (
            f"flip {at} {rng.randrange(8)}",
            f"flip {at} {rng.randrange(8)}",
            f"zero {at} {length}",
            f"copy {at} {length} {to}",
            f"cut {at}",
            f"append {rng.choice(APPENDED)}",
        )
    )


def _value_edit(rng: random.Random, content: Any) -> str:
    pointers = list(_pointers(content))
    pointer, value = rng.choice(pointers)
    kind = rng.randrange(10)
    if kind == 0:
        return f"delete {pointer}"
    if kind == 1 and not pointer.rpartition("/")[2].isdecimal():  # an unknown key beside it
        return f"{pointer.rpartition('/')[0]}/extra = {_odd_value(rng, value)}"
    if kind == 2:  # the value of another key
        return f"{pointer} = {json.dumps(rng.choice(pointers)[1])}"
    return f"{pointer} = {_odd_value(rng, value)}"


def _pointers(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield f"{pointer}/{key}", inner
        yield from _pointers(inner, f"{pointer}/{key}")


def _odd_value(rng: random.Random, value: Any) -> str:
    """Return an unusual value: near the existing one, or far from it."""
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.4:
        near = (value + 1, value - 1, value * 2, -value, value // 2, value * 1000, float(value))
        return str(rng.choice(near))
    if isinstance(value, str) and rng.random() < 0.3:
        return json.dumps(_scramble(rng, value))
    return rng.choice(rng.choice((NUMBERS, NUMBERS, TEXTS, TEXTS, OTHERS)))


def _scramble(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    inserted = rng.choice(("", "x", "\0", " ", "é", "/", "\n", '"', "<", text))
    return text[:at] + inserted + text[at + rng.randrange(3) :]


def _command(rng: random.Random) -> str:
    """Mutate one of the command lines, maybe with a word of another."""
    words, other = (shlex.split(rng.choice(_commands())) for _ in range(2))
    # The redirection of standard input stays at the end.
    at = words.index("<") if "<" in words else len(words)
    words, redirected = words[:at], words[at:]
    options = [word for word in other if word.startswith("--")]
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(1, len(words) + 1)
        step = rng.randrange(6)
        if step == 0:
            words[at : at + 1] = []
        elif step == 1:
            words[at:at] = words[at : at + rng.choice((1, 2))]
        elif step == 2:
            words[at : at + 2] = reversed(words[at : at + 2])
        elif step == 3 and options:
            words[at:at] = [rng.choice(options), rng.choice(ODD_WORDS)]
        elif step == 4 and at < len(words) and "@" not in words[at] and "{" not in words[at]:
            words[at] = _scramble(rng, words[at]).replace("\0", "{char 0}")
        else:
            words[at : at + 1] = [rng.choice(ODD_WORDS)]
    words = ["<<" if word == "<" else word for word in words]
    return shlex.join([*words, *redirected])


def _commands() -> list[str]:
    if not _COMMANDS:
        lines = [case.command for case in command_cases()]
        _COMMANDS.extend(
            line for line in lines if line and not any(part in line for part in OUTSIDE)
        )
    return _COMMANDS


_COMMANDS: list[str] = []


# Trying them


def campaign(folder: Path, seed: int, numbers: Iterator[int], jobs: int) -> Tally:
    """Try cases until there are no more numbers; `folder` is for what they leave."""
    documents_dir = folder / "made"
    documents_dir.mkdir()
    with Server() as server:
        make_documents(documents_dir, server)
    tally, lock = Tally(), threading.Lock()

    def work(worker: int) -> None:
        with Server() as server:
            bench = Bench(folder / str(worker), server, documents_dir)
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                case = make_case(seed, number, documents_dir)
                try:
                    faults = bench.run(case, PATIENCE_S)
                    outcome = _outcome(bench)
                    report = explain(bench, case, faults) if faults else ""
                except Exception as error:  # a campaign must not stop silently
                    outcome, report = "not tried", f"{case}: cannot be tried: {error!r}"
                with lock:
                    tally.tried += 1
                    tally.codes[outcome] += 1
                    if report:
                        tally.failures.append(report)
                        print(report, flush=True)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return tally


def _outcome(bench: Bench) -> str:
    outcome = bench.last
    assert outcome is not None
    return f"signal {outcome.signal}" if outcome.code is None else str(outcome.code)


def explain(bench: Bench, case: Case, faults: list[str]) -> str:
    """Return the smallest case that still fails, and the line that repeats it."""
    small = _smallest(case, lambda tried: bool(bench.run(tried, PATIENCE_S)))
    bench.run(small, PATIENCE_S)
    last = "\n    ".join(bench.last.err.strip().splitlines()[-6:]) if bench.last else ""
    table = [f"either {small.command}"]
    if small.edit:
        table = [f"document {small.edit.path}", f"try {small.command}", *small.edit.lines]
    return "\n  ".join(
        [
            f"{case.location}: {'; '.join(faults)}",
            *table,
            f"again: python tests/python/campaign.py --again {case.location}",
            f"  {last}",
        ]
    )


def _smallest(case: Case, fails: Callable[[Case], bool]) -> Case:
    """Remove edits, or words, as long as the rest still fails."""
    parts = list(case.edit.lines) if case.edit else shlex.split(case.command)
    at = 0 if case.edit else 1

    def with_parts(parts: list[str]) -> Case:
        if case.edit:
            return replace(case, edit=replace(case.edit, lines=tuple(parts)))
        return replace(case, command=shlex.join(parts))

    while at < len(parts) and len(parts) > 1:
        shorter = parts[:at] + parts[at + 1 :]
        if fails(with_parts(shorter)):
            parts = shorter
        else:
            at += 1
    return with_parts(parts)


# The command line


def _numbers(cases: int | None, seconds: float | None) -> Iterator[int]:
    end = time.monotonic() + seconds if seconds else None
    for number in itertools.count():
        if number == cases or (end is not None and time.monotonic() > end):
            return
        yield number


def main() -> None:
    """Run a campaign, or one case of it again."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--again", metavar="SEED:NUMBER")
    args = parser.parse_args()
    numbers = _numbers(args.cases, args.seconds)
    if args.again:
        args.seed, number = (int(part) for part in args.again.split(":"))
        numbers, args.jobs = iter([number]), 1
    elif args.cases is None and args.seconds is None:
        parser.error("say how long: --cases or --seconds")
    print(f"mutations from seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="uflip-campaign-") as folder:
        tally = campaign(Path(folder), args.seed, numbers, args.jobs)
    print(f"{tally.tried} mutations, {len(tally.failures)} failures; ended with", dict(tally.codes))
    raise SystemExit(1 if tally.failures else 0)


if __name__ == "__main__":
    main()
