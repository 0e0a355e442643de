"""Do errors carry their four parts, and does every class have its own exit code?"""

import ast
import pickle
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import uflip
from uflip import _native, errors
from uflip.device.opener import open_device
from uflip.errors import (
    EXIT_CODES,
    UflipError,
    UsageError,
    from_native,
    native_errors,
    unknown_name,
)
from uflip.extras import install_command, libraries_of, missing_extra

CLASSES = [
    errors.UflipError,
    errors.UsageError,
    errors.RefusedError,
    errors.DeviceError,
    errors.ResultsError,
    errors.UnavailableError,
    errors.SlowerError,
    errors.InterruptedRun,
    errors.TerminatedRun,
    errors.HungUpRun,
]


@pytest.mark.parametrize("cls", CLASSES)
def test_exit_code_table_matches_the_classes(cls: type[UflipError]) -> None:
    assert EXIT_CODES[cls.kind][0] == cls.exit_code != 0


def test_exit_codes_are_stable() -> None:
    """Scripts rely on them: a change here is a change of the interface."""
    codes = {name: code for name, (code, _) in EXIT_CODES.items()}
    assert codes == {
        "ok": 0,
        "internal": 1,
        "usage": 2,
        "refused": 3,
        "device": 4,
        "results": 5,
        "unavailable": 6,
        "slower": 7,
        "hung_up": 129,
        "interrupted": 130,
        "terminated": 143,
    }


def test_error_prints_all_its_parts() -> None:
    error = UflipError("It failed", where="--x", got="1", allowed="2, 3", action="take 2\nor 3")
    assert str(error).splitlines() == [
        "It failed",
        "  where    --x",
        "  got      1",
        "  allowed  2, 3",
        "  do       take 2",
        "           or 3",
    ]


def error_calls(file: Path) -> Iterator[ast.Call]:
    """Yield the calls in a file that create uflip errors."""
    names = {cls.__name__ for cls in CLASSES}
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def test_every_error_has_an_action() -> None:
    package = Path(errors.__file__).parent
    silent, all_ = [], 0
    for file in sorted(package.rglob("*.py")):
        for call in error_calls(file):
            all_ += 1
            # None is the keyword of `**parts`: an error made of another's parts has them all.
            named = {word.arg for word in call.keywords} & {"action", None}
            if not named and not any(isinstance(each, ast.Starred) for each in call.args):
                silent.append(f"{file.relative_to(package)}:{call.lineno}")
    assert all_ > 200
    assert silent == []


def test_leading_and_trailing_whitespace_is_quoted() -> None:
    assert str(UflipError("It failed", where="\nx", got=" ")).splitlines() == [
        "It failed",
        r"  where    '\nx'",
        "  got      ' '",
    ]


def test_empty_parts_are_not_printed() -> None:
    assert str(UflipError("It failed")) == "It failed"


def test_errors_survive_pickling() -> None:
    error = errors.DeviceError("It failed", where="here", action="try again")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is errors.DeviceError
    assert copy.parts() == error.parts()


@pytest.mark.parametrize("cls", CLASSES)
def test_native_errors_become_the_class_of_their_kind(cls: type[UflipError]) -> None:
    parts = ("what", "where", "got", "allowed", "action")
    with pytest.raises(cls) as caught, native_errors():
        raise _native.NativeError(cls.kind, *parts)
    assert type(caught.value) is cls
    assert caught.value.args == parts


def test_unknown_native_kind_is_an_internal_error() -> None:
    error = from_native(_native.NativeError("new", "what", "", "", "", ""))
    assert type(error) is UflipError
    assert error.exit_code == 1


def test_unknown_name_lists_the_known_ones() -> None:
    error = unknown_name("pattern", "zz", ["SR", "RR"], where="--pattern")
    assert error.allowed == "SR, RR"
    assert "did you mean" not in error.action
    assert "did you mean granularity?" in unknown_name("x", "granularty", ["granularity"]).action


# The advice for a missing library matches how the package was installed.


TOP = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_libraries_are_those_of_the_package(extra: str) -> None:
    expected = [each for each in EXTRAS[extra] if not each.startswith("uflip[")]
    found = [each for each in libraries_of(extra) if not each.startswith("uflip[")]
    assert sorted(each.lower() for each in found) == sorted(each.lower() for each in expected)


def test_all_names_every_extra() -> None:
    (all_of,) = EXTRAS["all"]
    named = all_of.removeprefix("uflip[").removesuffix("]").split(",")
    assert sorted(named) == sorted(EXTRAS.keys() - {"all"})


@pytest.mark.parametrize(
    ("marker", "begin"), [("pipx_metadata.json", "pipx inject"), ("uv-receipt.toml", "uv tool")]
)
def test_tools_that_own_their_environment(
    marker: str, begin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    command = install_command("web", ["starlette>=1.0"])
    assert command.startswith(begin)
    assert "'starlette>=1.0'" in command


def test_checkout_and_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    action = missing_extra("site-s3", "S3 needs obstore").action
    assert action == f"{sys.executable} -m pip install 'obstore>=0.8'"
    about = tmp_path / "uflip-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.4\nName: uflip\nVersion: 0.1.0\n")
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(about))
    assert install_command("web", ["starlette>=1.0"]) == "pip install 'uflip[web]'"


# Errors of Python functions for invalid values: which value, and what is allowed.


SMALL = "sim:demo?blocks_per_die=64"
OPTIONS: Any = {"scale": "quick", "only": ["order"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wrong") / "r"
    uflip.run(SMALL, out, **OPTIONS)
    return out


@pytest.mark.parametrize("name", [name for name in uflip.spec.COUNTS if name != "incr"])
def test_negative_count_is_named(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        uflip.basic("read", "random", **{name: -1})
    assert (raised.value.where, raised.value.got) == (name, "-1")
    assert raised.value.allowed.startswith("0 to ")
    assert uflip.basic("read", "ordered", incr=-1).incr == -1


def test_slice_of_trace_must_be_within_its_ios() -> None:
    trace = uflip.pattern("null", "RR", io_count=10)
    for part in ((-3,), (0, -3), (5, 11)):
        with pytest.raises(UsageError, match="no such I/Os") as raised:
            trace.column("response_time_ns", *part)
        assert raised.value.allowed == "0 to 10, in order"
        assert "a number below 0" in raised.value.got or part == (5, 11)
        assert "1844674407370955" not in raised.value.got


def test_compare_accepts_what_load_accepts(folder: Path) -> None:
    result = uflip.load(folder)
    for other in (folder, str(folder), result):
        comparison = result.compare(other)
        assert comparison == uflip.compare(folder, folder)
    assert comparison.slower_than(0.02) == []
    for share in ("2%", None, -1, float("nan")):
        with pytest.raises(UsageError) as raised:
            comparison.slower_than(share)
        assert raised.value.where == "share"


def test_zone_number_must_be_an_integer() -> None:
    with open_device("sim:zns") as device:
        for number in ("a", 1.5, None):
            with pytest.raises(UsageError) as raised:
                device.zone(number)  # type: ignore[arg-type]
            assert raised.value.where == "number of a zone"
        for number in (-1, 10**9):
            with pytest.raises(UsageError, match="no such zone"):
                device.zone(number)


@pytest.mark.parametrize("switch", ["yes", "no", 2, 0, [], 0.5])
def test_until_converged_must_be_a_boolean(switch: Any) -> None:
    with pytest.raises(UsageError) as raised:
        uflip.pattern("null", "RR", until_converged=switch, max_ios=1000)
    assert (raised.value.where, raised.value.allowed) == ("until_converged", "True or False")
    assert len(uflip.pattern("null", "RR", until_converged=False, io_count=10)) == 10
    assert len(uflip.pattern("null", "RR", until_converged=True, max_ios=1000)) == 1000
