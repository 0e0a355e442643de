"""The error of a twin: stored in its profile, and shown beside each prediction by it."""

import json
import shlex
import tomllib
from contextlib import closing
from pathlib import Path
from time import sleep

import pytest
from command_line import uflip

from uflip.data.device import TwinErrors, TwinPattern, twin_text
from uflip.device.catalogue import inspect_device
from uflip.device.opener import open_device
from uflip.errors import UsageError
from uflip.inference.twin import Twin, errors_table
from uflip.play.form import form, named_twins, parse_request
from uflip.play.stage import Stage
from uflip.profiles import profile_sources, read_profile, twin_errors, with_twin_errors

ERRORS = TwinErrors(
    "sim:demo",
    (TwinPattern("reads", 0.02, -0.1), TwinPattern("writes", -0.04, 0.3), TwinPattern("x", 0, 0)),
)
KNOWN = (
    "its error on 3 patterns that no probe used: mean 2.0 % (at most 4.0 %), p99 10.0 % "
    "(at most 30.0 %)"
)
UNKNOWN = "its error is unknown"
SMALL = Twin({"blocks_per_die": 64, "pages_per_block": 64, "state": "empty"})


def write_twin(folder: Path, errors: TwinErrors | None = ERRORS) -> Path:
    """Write a twin as `uflip infer -o` does, and with errors as `uflip infer --check` does."""
    path = folder / "twin.toml"
    text = SMALL.text("a twin", "sim:demo")
    path.write_text(text if errors is None else with_twin_errors(text, errors_table(errors)))
    return path


def test_profile_of_a_twin_is_valid_toml_with_its_errors(tmp_path: Path) -> None:
    table = tomllib.loads(write_twin(tmp_path).read_text())["twin_errors"]
    assert table["device"] == "sim:demo"
    assert [one["p99_error"] for one in table["patterns"]] == [-0.1, 0.3, 0]


def test_errors_are_no_part_of_the_device(tmp_path: Path) -> None:
    path = str(write_twin(tmp_path))
    _, text, _ = read_profile(path)
    assert "twin_errors" not in text
    assert text.count("\n") == Path(path).read_text().count("\n")
    assert "read_ns" in profile_sources(path)
    assert inspect_device("sim:demo").details.twin is None
    for found in (inspect_device(f"sim:{path}"), open_device(f"sim:{path}").info):
        assert found.details.twin == ERRORS


def test_new_errors_replace_the_old_ones(tmp_path: Path) -> None:
    path = write_twin(tmp_path)
    other = TwinErrors("sim:demo", (TwinPattern("only", 0.5, 0.5),))
    text = with_twin_errors(path.read_text(), errors_table(other))
    assert text.count("[twin_errors]") == 1
    path.write_text(text)
    assert twin_errors(str(path)) == other
    without = write_twin(tmp_path, errors=None)
    assert twin_errors(str(without)) == TwinErrors("sim:demo")


@pytest.mark.parametrize("table", ['device = "a"\npatterns = 3', "patterns = []", "device ="])
def test_errors_of_another_form_are_refused(tmp_path: Path, table: str) -> None:
    path = write_twin(tmp_path)
    path.write_text(with_twin_errors(path.read_text(), f"[twin_errors]\n{table}\n"))
    outcome = uflip("info", f"sim:{path}")
    assert outcome.code != 0
    assert "[twin_errors]" in outcome.err
    assert "uflip infer --check" in outcome.err


@pytest.mark.parametrize(("errors", "expected"), [(ERRORS, KNOWN), (None, UNKNOWN)])
def test_each_prediction_shows_the_error(
    tmp_path: Path, errors: TwinErrors | None, expected: str
) -> None:
    """`pattern`, `sweep`, `serve`, `run` and `cost` on its result, and the replay of a trace."""
    device = f"sim:{write_twin(tmp_path, errors)}"
    out, trace = tmp_path / "out", tmp_path / "trace.csv"
    pattern = ("--pattern", "RW", "--io-size", "16k", "--io-count", "40")
    plan = ("--only", "granularity", "--scale", "quick", "--state", "as-is")
    served = ("--socket", tmp_path / "s", "--speed", "0", "--run", "true")
    trace.write_text("".join(f"{n},host,0,Write,{n * 4096},4096,0\n" for n in range(64)))
    for command in (
        ("pattern", device, *pattern),
        ("sweep", device, *pattern, "--vary", "queue_depth=1,2"),
        ("serve", device, *served),
        ("run", device, *plan, "--out", out),
        ("show", out),
        ("cost", out),
        ("replay", trace, device, "--fit", "wrap", "--out", tmp_path / "replayed"),
    ):
        outcome = uflip(*command)
        assert outcome.code == 0, outcome.err
        shown = " ".join((outcome.out + outcome.err).split())
        assert expected in shown, shlex.join(map(str, command))
    document = json.loads(uflip("sweep", device, *pattern, "--vary", "io_count=9", "--json").out)
    patterns = () if errors is None else errors.patterns
    assert len(document["twin"]["patterns"]) == len(patterns)
    assert json.loads(uflip("cost", out, "--json").out)["twin"] == document["twin"]
    twins = json.loads(uflip("serve", device, *served, "--json").out)["twins"]
    assert twins == {device: document["twin"]}


def test_a_result_stores_the_error_as_a_warning(tmp_path: Path) -> None:
    device = f"sim:{write_twin(tmp_path)}"
    out = tmp_path / "out"
    plan = ("--only", "granularity", "--scale", "quick", "--state", "as-is")
    assert uflip("run", device, *plan, "--out", out).code == 0
    (tmp_path / "twin.toml").unlink()  # the result keeps it
    warnings = json.loads(uflip("show", out, "--json").out)["warnings"]
    [warning] = [one for one in warnings if one["code"] == "twin"]
    assert warning["numbers"]["largest_p99_error"] == pytest.approx(0.3)
    assert "confirm" in warning["advice"]


def test_check_stores_the_errors_in_the_twin(tmp_path: Path) -> None:
    """A device is its own twin without an error."""
    path = write_twin(tmp_path, errors=None)
    copy = tmp_path / "device.toml"
    copy.write_text(SMALL.text())
    outcome = uflip("infer", "--check", f"sim:{copy}", path)
    assert outcome.code == 0, outcome.err
    found = twin_errors(str(path))
    assert found is not None
    assert found.device == f"sim:{copy}"
    assert len(found.patterns) == 6
    assert all(one.mean_error == one.p99_error == 0 for one in found.patterns)
    assert "mean 0.0 %" in twin_text(found)


def test_play_offers_twins_with_their_error(tmp_path: Path) -> None:
    twins = named_twins([write_twin(tmp_path)])
    shown = form("twin", {}, twins)
    assert KNOWN in dict(shown["facts"])["this is"]
    assert shown["devices"][0]["name"] == "twin"
    assert "this is" not in dict(form("demo", {}, twins)["facts"])
    request = {
        "device": "twin", "keys": {"gc": "cyclic"}, "benchmark": "pattern", "pattern": "RW",
        "options": {"io_size": "16KiB", "io_count": "40"},
    }  # fmt: skip
    with closing(Stage(twins=twins)) as stage:
        played = stage.begin(parse_request(request, stage.twins))
        while played.state == "running":
            sleep(0.05)
        assert played.state == "done", played.error
        found = json.loads(uflip("show", played.folder, "--json").out)
        assert "twin" in [one["code"] for one in found["warnings"]]
    with pytest.raises(UsageError, match="Unknown device"):
        parse_request(request)


def test_explorer_refuses_two_devices_of_one_name(tmp_path: Path) -> None:
    path = write_twin(tmp_path)
    clash = path.rename(tmp_path / "demo.toml")
    outcome = uflip("explore", "--twin", clash, "--no-browser")
    assert outcome.code == 2
    assert "rename the file" in outcome.err
    missing = uflip("explore", "--twin", tmp_path / "none.toml", "--no-browser")
    assert missing.code != 0
    assert "none.toml" in missing.err
