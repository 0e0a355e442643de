"""The functions of `uflip` have the options of the command line, with the same defaults."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import uflip as command

import uflip
from uflip import options, pattern_options, spec
from uflip.cli.main import cli
from uflip.options import command_line

DEVICE = "sim:demo?blocks_per_die=64"

# Options of a verb that only the command line has, and why.
PRINTING = {"--json", "--quiet", "--force"}
FILES = {"--out", "--trace", "--csv", "--save"}  # what Python gets as a value
ELSEWHERE = {"--no-cache": "uflip.device.cache.switched_off", "--resume": "uflip.resume"}
LIVE = {"--live", "--every"}  # Device.run
SEVERAL_DEVICES = {"--together", "--jobs", "--workers", "--scheduler"}
ONLY_TYPED: dict[str, set[str]] = {
    "run": SEVERAL_DEVICES | LIVE,
    "replay": LIVE,
    "plan": {"--runs", "--suites", "--fio-job"},
    "pattern": LIVE
    | {
        "--spec",
        "--fio-job",
        "--preset",
        "--batches",
        "--inside",
        "--find",
        "--mean",
        "--p50",
        "--p99",
        "--p999",  # several runs: uflip.benchmark.find_load
    },
    "compare": {"--all", "--fail-if-slower"},
    "analyse": {"--column", "--unit", "--format", "--columns"},  # how to read FILE
}
ONLY_PYTHON = {"out", "on_event"}
FUNCTIONS = {
    "run": uflip.run, "plan": uflip.plan, "replay": uflip.replay, "pattern": uflip.pattern,
    "compare": uflip.compare, "analyse": uflip.analyse,
}  # fmt: skip


def typed_options(verb: str) -> dict[str, object]:
    """Return the options of a verb that Python must have, with their defaults as typed."""
    verb_command = cli.get_command(click.Context(cli), verb)
    assert verb_command is not None
    known = {max(each.opts, key=len): each for each in verb_command.params}
    omitted = PRINTING | FILES | ELSEWHERE.keys() | ONLY_TYPED.get(verb, set())
    return {
        name: _default(each)
        for name, each in known.items()
        if isinstance(each, click.Option) and name not in omitted
    }


def _default(option: click.Option) -> object:
    if option.is_flag:
        return option.default is True
    return option.default if isinstance(option.default, str | int | float) else None


def keywords(function: Callable[..., object]) -> dict[str, object]:
    """Return the optional parameters of a function as options, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return {
        "--" + each.name.replace("_", "-"): each.default
        for each in parameters
        if each.default is not inspect.Parameter.empty and each.name not in ONLY_PYTHON
    }


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_functions_have_the_options_of_their_verb(verb: str) -> None:
    assert keywords(FUNCTIONS[verb]) == typed_options(verb)


def test_resume_has_the_options_that_resuming_allows() -> None:
    allowed = {option.flag: option.default for option in options.RESUME}
    assert keywords(uflip.resume) == {"--device": None, **allowed}
    assert allowed.items() <= typed_options("run").items()


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), uflip.resume, uflip.load])
def test_functions_are_typed_and_documented(function: Callable[..., object]) -> None:
    signature, text = inspect.signature(function), inspect.getdoc(function) or ""
    for name, each in signature.parameters.items():
        assert each.annotation is not inspect.Parameter.empty, name
        assert name in text, name
        assert each.kind is not inspect.Parameter.VAR_KEYWORD, "an editor cannot complete it"
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert section in text or function is uflip.resume, section


def test_builders_have_typed_parameters() -> None:
    for keywords_of, known in (
        (spec.PatternParameters, spec.PARAMETERS),
        (spec.MixParameters, (*spec.MIX_PARAMETERS, *spec.MIX_ARRIVALS)),
        (spec.StopRule, spec.STOP),
    ):
        assert keywords_of.__annotations__.keys() == set(known)


GIVEN: list[tuple[str, list[str], tuple[options.Option, ...], dict[str, Any]]] = [
    ("run", ["sim:demo"], options.RUN,
     {"only": ["order", "mix"], "pause": 1500, "io_size": 4096, "inside": True, "seed": 7,
      "record": Path("a b.json"), "data": "zeros", "io_timeout": "60s", "max_time": "2s"}),
    ("replay", ["trace.csv", "null"], options.REPLAY, {"fit": "wrap", "speed": 2.5}),
    ("plan", ["null"], options.PLAN, {"only": "pause", "plan": "plan.toml", "buffered": False}),
    ("pattern", ["null"], (*pattern_options.PATTERN, *pattern_options.STOPPING),
     {"pattern": "RW", "incr": -1, "until_converged": True, "max_time": 10**9}),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "arguments", "known", "given"), GIVEN)
def test_stored_command_means_what_the_call_meant(
    verb: str, arguments: list[str], known: tuple[options.Option, ...], given: dict[str, Any]
) -> None:
    words = command_line(verb, arguments, known, given)
    assert words[: 2 + len(arguments)] == ["uflip", verb, *arguments]
    verb_command = cli.get_command(click.Context(cli), verb)
    assert verb_command is not None
    typed = verb_command.make_context(verb, words[2:]).params
    for field, value in options.parse_options(known, given).items():
        assert typed[field] == value, field


def test_result_stores_the_command_of_a_call(tmp_path: Path) -> None:
    result = uflip.run(DEVICE, tmp_path / "r", scale="quick", only="pause", pause="1ms")
    stored = json.loads((result.path / "manifest.json").read_text())["host"]["command_line"]
    assert stored == [
        "uflip", "run", DEVICE, "--out", str(tmp_path / "r"), "--scale", "quick",
        "--only", "pause", "--pause", "1000000ns",
    ]  # fmt: skip
    again = command(*stored[1:3], "--out", tmp_path / "again", *stored[5:])
    assert again.code == 0, again.err
    (comparison,) = json.loads(command("compare", result.path, tmp_path / "again", "--json").out)[
        "comparisons"
    ]
    assert {row["ratio"] for row in comparison["rows"]} == {1.0}


def test_replay_equals_the_command_line(tmp_path: Path) -> None:
    result = uflip.run(DEVICE, tmp_path / "r", scale="quick", only="pause", pause="1ms")
    trace = next((result.path / "runs").glob("*.parquet"))
    replayed = uflip.replay(trace, DEVICE, tmp_path / "ours", queue_depth=2)
    typed = command(
        "replay", trace, DEVICE, "--queue-depth", "2", "--out", tmp_path / "theirs", "--json"
    )
    assert typed.code == 0, typed.err
    theirs = uflip.load(tmp_path / "theirs")
    assert replayed.frame().num_rows == theirs.frame().num_rows == 1
    assert replayed.frame()["mean_ns"].to_pylist() == theirs.frame()["mean_ns"].to_pylist()
