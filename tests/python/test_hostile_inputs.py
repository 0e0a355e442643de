"""Does every invalid file and argument end at once with an error in four parts?

Inputs are endless, special, deeply nested or inconsistent files, and impossible names and numbers.
Each is tried with every verb that reads such a file, in a process with limits of time and memory:
none may crash, hang, or fill the memory.
"""

import io
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

import pytest
from command_line import uflip, unchanged

from uflip.benchmark import Choices, make_plan, read_plan, write_plan
from uflip.cli.main import main
from uflip.device.catalogue import inspect_device
from uflip.device.url import read_override
from uflip.errors import UflipError, UsageError
from uflip.units import parse_count, parse_duration, parse_number, parse_size

SMALL = "sim:demo?blocks_per_die=64"
# Limits of a command: far above its needs, far below a hang or a leak.
SECONDS, MEMORY_BYTES = 60, 3 << 30

# Reader -> its command line, with {} for the file name; the suffix of the name.
READERS: dict[str, tuple[tuple[str, ...], str]] = {
    "plan": (("plan", SMALL, "--plan", "{}"), ".toml"),
    "run plan": (("run", SMALL, "--plan", "{}", "--out", "never"), ".toml"),
    "profile": (("info", "sim:{}"), ".toml"),
    "open-channel profile": (("oc", "pattern", "sim:{}"), ".toml"),
    "snapshot": (("info", "sim:{}"), ".snapshot"),
    "restored": (("pattern", "sim:{}", "--pattern", "RR"), ".snapshot"),
    "spec": (("pattern", "null", "--spec", "{}"), ".json"),
    "series": (("analyse", "{}"), ".csv"),
    "column": (("analyse", "{}", "--column", "x"), ".csv"),
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command."""

    code: int
    out: str
    err: str


def attempt(*arguments: str | bytes, stdin: bytes = b"") -> Outcome:
    """Run a command in a forked process, within its limits."""
    with TemporaryFile() as out, TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _run_in_child(arguments, stdin, out.fileno(), err.fileno())
        status = os.waitpid(child, 0)[1]
        texts = [os.pread(file.fileno(), 1 << 20, 0).decode() for file in (out, err)]
    return Outcome(os.waitstatus_to_exitcode(status), *texts)


def _run_in_child(arguments: Sequence[str | bytes], stdin: bytes, out: int, err: int) -> NoReturn:
    code = 70
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
        sys.stdout, sys.stderr = (
            open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            for number in (1, 2)
        )
        main([os.fsdecode(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 71
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def check(outcome: Outcome, *codes: int) -> None:
    """Check that a command ended with an error in parts, of the right kind, and no output."""
    assert outcome.code in (codes or (2, 4, 5)), (outcome.code, outcome.err[-2000:])
    assert outcome.err.startswith("error: "), outcome.err[-2000:]
    assert "Traceback" not in outcome.err
    assert len(outcome.err) < 20_000
    assert outcome.out == ""


# Paths that are not regular files


def make_pipe(name: Path) -> Path:
    os.mkfifo(name)
    return name


def make_socket(name: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name.name)
    return name


def make_folder(name: Path) -> Path:
    name.mkdir()
    return name


def link_to_dev_zero(name: Path) -> Path:
    name.symlink_to("/dev/zero")
    return name


def link_to_itself(name: Path) -> Path:
    name.symlink_to(name.name)
    return name


def make_sparse_terabyte(name: Path) -> Path:
    with name.open("wb") as file:
        file.truncate(1 << 40)
    return name


def make_nothing(name: Path) -> Path:
    return name


def make_empty_file(name: Path) -> Path:
    name.touch()
    return name


NO_FILES = [
    make_pipe, make_socket, make_folder, link_to_dev_zero, link_to_itself, make_sparse_terabyte,
    make_nothing, make_empty_file,
]  # fmt: skip


@pytest.mark.parametrize("make", NO_FILES, ids=lambda make: make.__name__)
def test_non_regular_file_is_refused_at_once(workdir: Path, make: Callable[[Path], Path]) -> None:
    for reader, (command, ending) in READERS.items():
        name = make(Path(f"{reader.replace(' ', '-')}{ending}"))
        before = sorted(workdir.iterdir())
        check(attempt(*(word.format(name) for word in command)))
        assert sorted(workdir.iterdir()) == before


# Files that are hostile

NOT_A_TEXT: dict[str, bytes] = {
    "no UTF-8": b"\xff\xfe\x00a = 1",
    "half a character": b'a = "\xed\xa0\x80"',
    "null bytes": b"\0" * 1000,
    "one long line": b"a" * 3_000_000,
    "random bytes": bytes(n * 7919 % 251 for n in range(50_000)),
    "brackets": b"[" * 1_000_000,
    "braces": b'{"a":' * 300_000,
    "quotes": b'"' * 1_000_001,
    "commas": b"," * 2_000_000,
    "a byte order mark": b"\xef\xbb\xbf",
    "ends of lines": b"\r\n" * 500_000,
    "control characters": bytes(range(32)) * 1000,
}
TOML: dict[str, bytes] = {
    "dots": b".".join([b"a"] * 50_000) + b" = 1",
    "dotted keys": b"".join(b"a%d.b.c.d = 1\n" % n for n in range(50_000)),
    "a deep list": b"a = " + b"[" * 50_000 + b"]" * 50_000,
    "a deep table": b"a = " + b"{a = " * 50_000 + b"1" + b"}" * 50_000,
    "a deep header": b"[" + b".".join([b"a"] * 50_000) + b"]",
    "headers": b"".join(b"[[a.b]]\n" for _ in range(100_000)),
    "one key often": b"a = 1\n" * 50_000,
    "digits": b"seed = " + b"9" * 5_000,
    "a long fraction": b"seed = 0." + b"9" * 500_000,
    "a date": b"seed = 1979-05-27T07:32:00Z",
    "not a number": b"seed = nan",
    "infinity": b"seed = inf",
    "a long text": b'scale = "' + b"x" * 3_000_000 + b'"',
    "a long key": b"x" * 3_000_000 + b" = 1",
}
JSON: dict[str, bytes] = {
    "digits": b'{"kind":"basic","mode":"read","location":"random","seed":' + b"9" * 5_000 + b"}",
    "beyond 64 bits": b'{"kind":"basic","mode":"read","location":"random",'
    b'"seed":18446744073709551616}',
    "half a character": b'{"kind":"basic","mode":"read","location":"\\ud800"}',
    "a null byte": b'{"kind":"basic","mode":"read","location":"random\\u0000"}',
    "not a number": b'{"kind":"basic","mode":"read","location":"random","stop":{"confidence":NaN}}',
    "infinity": b'{"kind":"basic","mode":"read","location":"random","stop":{"confidence":1e999}}',
    "a deep pattern": b'{"kind":"parallel","patterns":[' * 60_000,
    "patterns in patterns": b'{"kind":"parallel","patterns":[' * 20 + b"]}" * 20,
    "a list": b"[1, 2]",
    "a text": b'"basic"',
    "nothing": b"null",
    "twice the same key": b'{"kind":"basic","kind":"basic","mode":"read"}',
    "many keys": b"{" + b",".join(b'"a%d":1' % n for n in range(80_000)) + b"}",
    "many patterns": b'{"kind":"parallel","patterns":['
    + b",".join([b'{"kind":"basic","mode":"read","location":"random"}'] * 20_000)
    + b"]}",
    "a huge count": b'{"kind":"basic","mode":"read","location":"random",'
    b'"io_count":18446744073709551615}',
    "a huge degree": b'{"kind":"basic","mode":"read","location":"random",'
    b'"parallel_degree":18446744073709551615}',
    "a huge mix": b'{"kind":"mix","first":{"mode":"read","location":"random"},'
    b'"second":{"mode":"read","location":"random"},"ratio":18446744073709551615,"io_count":9}',
    "a huge place": b'{"kind":"basic","mode":"read","location":"random",'
    b'"target_offset":18446744073709551104,"target_size":1024,"io_size":512}',
    "a huge shift": b'{"kind":"basic","mode":"read","location":"random",'
    b'"io_shift":18446744073709551104,"io_size":512}',
    "a huge increment": b'{"kind":"basic","mode":"read","location":"ordered",'
    b'"incr":-9223372036854775808,"io_size":9223372036854775807}',
}
CSV: dict[str, bytes] = {
    "a long field": b"x" * 200_000 + b",response_time_ns\n" + b"1,2\n" * 40,
    "no numbers": b"x\n" + b"y\n" * 40,
    "digits": b"x\n" + b"9" * 100_000 + b"\n",
    "nothing but a head": b"x\n",
    "quotes without end": b'x\n"' + b"1\n" * 100_000,
    "null bytes": b"x\n" + b"1\0\n" * 40,
    "not a number": b"x\n" + b"1\n2\nnan\n" * 40,
    "infinity": b"x\n" + b"1\n2\ninf\n" * 40,
    "a magic word": b"PAR1" + b"\0" * 100 + b"PAR1",
    "huge streams": b"x,stream,response_time_ns\n"
    + b"".join(b"1,%d,%d\n" % (10**17 * (n % 2), n) for n in range(41)),
}


def contents_for(reader: str) -> dict[str, bytes]:
    ending = READERS[reader][1]
    return NOT_A_TEXT | {".toml": TOML, ".json": JSON, ".csv": CSV}.get(ending, {})


@pytest.mark.parametrize("reader", READERS)
def test_hostile_file_is_an_error(workdir: Path, reader: str) -> None:
    command, ending = READERS[reader]
    path = Path(f"hostile{ending}")
    for name, content in contents_for(reader).items():
        path.write_bytes(content)
        outcome = attempt(*(word.format(path) for word in command))
        try:
            check(outcome)
        except AssertionError as error:
            raise AssertionError(f"{reader}: {name}") from error
    assert sorted(workdir.iterdir()) == [workdir / path], "no file was created"


def test_endless_spec_is_refused(workdir: Path) -> None:
    check(attempt("pattern", "null", "--spec", "-", stdin=b" " * (4 << 20)), 2)
    check(attempt("pattern", "null", "--spec", "-", stdin=b"\xff"), 2)
    check(attempt("pattern", "null", "--spec", "/dev/zero"), 2)


# The plan file


def plan_text() -> str:
    plan = make_plan(inspect_device("null"), "quick", 7, Choices(only=("order",)))
    return write_plan(plan)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("seed = 7", f"seed = {2**64}"),
        ("pause_ns = 0", f"pause_ns = {2**64}"),
        ("pause_ns = 0", f"pause_ns = {2**63}"),
        ("pause_ns = 0", "pause_ns = -1"),
        ("pause_ns = 0", "pause_ns = 1.5"),
        ("pause_ns = 0", 'pause_ns = "1s"'),
        ("repetitions = 1", f"repetitions = {2**62}"),
        ("repetitions = 1", "repetitions = 0"),
        ("target_size_bytes = ", "target_size_bytes = 9"),
        ("value = -1", f"value = {2**63}"),
        ('unit = ""', 'unit = "furlongs"'),
        ('micro_benchmark = "order"', 'micro_benchmark = "x\\"><script>alert(1)</script>"'),
        ('micro_benchmark = "order"', 'micro_benchmark = ""'),
        ('micro_benchmark = "order"', f'micro_benchmark = "{"x" * 101}"'),
        ('micro_benchmark = "order"', 'micro_benchmark = "\\u001b[2J"'),
        ('pattern = "SR"', 'pattern = "=1+1"'),
        ('parameter = "incr"', 'parameter = "a b"'),
        ('id = "0001', f'id = "{"x" * 201}'),
        ('id = "0001', 'id = "..'),
        ('id = "0001', 'id = "/etc/'),
        ('id = "0001', 'id = "\\u0000'),
        ('id = "0001', 'id = "\\n'),
        ('id = "0001', 'id = "ö'),
        ('format = "uflip-plan"', f'format = "{"x" * 100_000}"'),
        ('scale = "quick"', f'scale = "{"x" * 100_000}"'),
        ("seed = 7", "seed = 7\nseed = 7"),
        ("seed = 7", "seed = 7\nmethod = 5"),
        ("seed = 7", "seed = 7\nstate = []"),
        ("io_count = 256", f"io_count = {2**63 - 1}"),
        ("io_count = 256", "io_count = 256, stop = { half_width = 1e308 }"),
        ("[device]\n", "[device]\nnested = { a = { b = 1 } }\n"),
    ],
)  # fmt: skip
def test_invalid_plan_is_refused(workdir: Path, before: str, after: str) -> None:
    text = plan_text()
    assert before in text
    Path("plan.toml").write_text(text.replace(before, after, 1))
    with unchanged(workdir):
        for verb in (("plan", "null"), ("run", "null", "--out", "out")):
            outcome = uflip(*verb, "--plan", "plan.toml")
            assert (outcome.code, outcome.out) == (2, ""), outcome.err
            assert "plan.toml" in outcome.err
            assert len(outcome.err) < 3_000


def test_plan_with_a_byte_order_mark_is_read(workdir: Path) -> None:
    Path("plan.toml").write_text("\ufeff" + plan_text(), encoding="utf-8")
    assert read_plan(Path("plan.toml"), inspect_device("null")).runs


def test_plan_of_many_runs_is_read_quickly(workdir: Path) -> None:
    head, first, *_ = plan_text().split("[[runs]]")
    runs = [first.replace('id = "0001', f'id = "{number}') for number in range(3_000)]
    Path("plan.toml").write_text(head + "".join("[[runs]]" + run for run in runs))
    outcome = attempt("plan", "null", "--plan", "plan.toml", "--json")
    assert outcome.code in (0, 2), outcome.err
    assert "Traceback" not in outcome.err


# Numbers and names on the command line

NO_NUMBERS = [
    "", " ", "-", "+", "x", "1e", "0x10", "1_000", "1 000", "1,000", "٣", "４", "²", "½", "∞",
    "nan", "NaN", "inf", "-inf", "Infinity", "1" * 5_000, "-" + "9" * 5_000, "1e999",
    "1e99999999999",
    "0." + "1" * 5_000, "1\n2", "1\x00", "--1", "1.2.3", "\u2212" + "1", "1K\u212a",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: repr(text[:12]))
def test_number_parsers_refuse_other_text(text: str) -> None:
    for read in (parse_size, parse_duration, parse_count, parse_number):
        with pytest.raises(UsageError):
            read(text, "--option")
    for key in ("channels", "page_bytes", "read_ns"):
        try:
            value = read_override(key, text)
        except UflipError:
            continue
        assert isinstance(value, str), "a word, which the profile's own rules refuse"


OPTIONS: list[tuple[str, ...]] = [
    ("pattern", "null", "--pattern", "RR", "--io-count"),
    ("pattern", "null", "--pattern", "RR", "--seed"),
    ("pattern", "null", "--pattern", "RR", "--io-size"),
    ("pattern", "null", "--pattern", "RR", "--target-offset"),
    ("pattern", "null", "--pattern", "RR", "--queue-depth"),
    ("pattern", "null", "--pattern", "RR", "--parallel-degree"),
    ("pattern", "null", "--pattern", "RR", "--time", "pause", "--pause"),
    ("pattern", "null", "--pattern", "RR", "--until-converged", "--half-width"),
    ("pattern", "null", "--pattern", "RR", "--until-converged", "--confidence"),
    ("pattern", "null", "--mode", "read", "--location", "ordered", "--incr"),
    ("pattern", "null", "--preset", "myers-sinclair", "--batches"),
    ("plan", SMALL, "--seed"),
    ("plan", SMALL, "--repetitions"),
    ("plan", SMALL, "--io-size"),
    ("plan", SMALL, "--pause"),
    ("plan", SMALL, "--max-time"),
    ("plan", SMALL, "--target-size"),
    ("prepare", SMALL, "--seed"),
    ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--warm-up"),
    ("sweep", SMALL, "--vary", "gc=greedy", "--pattern", "RW", "--jobs"),
    ("oc", "pattern", "sim:dfc", "--threads"),
    ("oc", "pattern", "sim:dfc", "--pages"),
    ("oc", "pattern", "sim:dfc", "--read"),
    ("oc", "pattern", "sim:dfc", "--sleep"),
    ("analyse", "series.csv", "--confidence"),
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option[0]} {option[-1]}")
def test_invalid_number_is_a_usage_error(workdir: Path, option: tuple[str, ...]) -> None:
    Path("series.csv").write_text("x\n" + "1\n2\n" * 50)
    with unchanged(workdir):
        for text in NO_NUMBERS:
            if option[-1] == "--seed" and text == "":
                continue
            outcome = uflip(*option, text)
            assert (outcome.code, outcome.out) == (2, ""), (text[:40], outcome.err[-800:])
            # A NUL is refused before options are parsed: no system passes one in an argument.
            assert "\0" in text or option[-1] in outcome.err, outcome.err[:800]
            assert len(outcome.err) < 12_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("oc", "pattern", "sim:dfc", "--pages", 2**64 - 1, "--blocks", 2**64 - 1),
        ("oc", "pattern", "sim:dfc", "--threads", 2**63),
        ("oc", "pattern", "sim:dfc", "--vector", 2**40),
        ("oc", "pattern", "sim:dfc", "--mix", "W" * 500_000),
        ("oc", "pattern", "sim:dfc", "--mix", "WÄR"),
        ("oc", "sim:dfc", "--sacrifice", "9" * 5_000 + ":1:1"),
        ("oc", "sim:dfc", "--sacrifice", "٣:٣:٣"),
        ("oc", "sim:dfc", "--sacrifice", "1:1"),
        ("plan", SMALL, "--repetitions", 10**6),
        ("sweep", SMALL, "--pattern", "RW", *(f"--vary={name}=1,2,3,4,5,6,7" for name in "abcdef")),
        ("sweep", SMALL, "--vary", "seed=" + "9" * 5_000, "--pattern", "RW"),
        ("sweep", SMALL, "--vary", "io_count=" + "9" * 40, "--pattern", "RW"),
        ("info", "sim:demo?channels=" + "9" * 5_000),
        ("info", "sim:demo?channels=nan"),
        ("info", "sim:demo?spare_factor=nan"),
        ("info", "sim:demo?spare_factor=1e999"),
        ("info", "sim:demo?spare_factor=٣"),
        ("info", "sim:demo?" + "&".join(f"a{n}=1" for n in range(5_000))),
        ("info", "sim:demo?" + "a" * 100_000),
        ("info", "sim:" + "a" * 100_000),
        ("info", "sim:" + "../" * 2_000 + "x.toml"),
        ("info", "file:" + "a" * 100_000),
        ("info", "/dev/" + "a" * 100_000),
        ("info", "/dev/../etc/passwd"),
        ("info", ""),
        ("info", "null\n"),
        ("show", "a" * 100_000),
        ("report", "a" * 300),
        ("analyse", "a" * 300),
        ("analyse", ""),
        ("cache", "x"),
        ("x" * 100_000,),
        ("",),
        ("run", "null", "--only", ""),
        ("run", "null", "--only", "x" * 100_000),
        ("run", "null", "--out", "a" * 300),
        ("run", "null", "--state", ""),
        ("plan", "null", "--size", "1" * 50),
        ("plan", "null", "--size", "0"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments))[:60].strip().replace("/", "|"),
)  # fmt: skip
def test_impossible_argument_is_an_error_at_once(
    workdir: Path, arguments: tuple[object, ...]
) -> None:
    check(attempt(*map(str, arguments)))
    assert list(workdir.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        (b"show", b"\xff\xfe"),
        (b"pattern", b"file:\xe4.bin", b"--pattern", b"RW", b"--size", b"1MiB"),
        (b"run", b"null", b"--out", b"\xe4"),
        (b"\xff",),
        (b"plan", b"sim:demo", b"--plan", b"\xe4.toml"),
        (b"report", b"r", b"-o", b"\x80.html"),
    ],
    ids=lambda arguments: repr(b" ".join(arguments))[2:40],
)
def test_argument_that_is_not_utf8_is_a_usage_error(
    workdir: Path, arguments: tuple[bytes, ...]
) -> None:
    check(attempt(*arguments), 2)
    outcome = attempt(*arguments, b"--json")
    assert json.loads(outcome.out)["error"]["exit_code"] == 2
    assert list(workdir.iterdir()) == []
