"""Is a plan unchanged after writing, reading and editing, and is every mistake in it reported?"""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import stored
from command_line import uflip, unchanged

from uflip.benchmark import Choices, Plan, make_plan, read_plan, within_limits, write_plan
from uflip.benchmark.estimate import estimate
from uflip.data.plan import PlanFile, PlanRunEntry
from uflip.device.catalogue import inspect_device
from uflip.errors import UsageError
from uflip.results import Results

MIB, GIB = 1 << 20, 1 << 30
SMALL_SIM = "sim:demo?blocks_per_die=64"


def small_plan(**changes: Any) -> Plan:
    return make_plan(inspect_device(SMALL_SIM), "quick", 7, Choices(**changes))


@pytest.mark.parametrize(
    "changes", [{}, {"only": ("mix", "parallelism")}, {"state": "as-is"}, {"repetitions": 2}]
)
def test_plan_round_trips_through_file(tmp_path: Path, changes: dict[str, Any]) -> None:
    plan = small_plan(**changes)
    path = tmp_path / "plan.toml"
    path.write_text(write_plan(plan))
    reread = read_plan(path, plan.device)
    assert reread.runs == plan.runs
    for name in ("scale", "seed", "pause_ns", "target_size", "state", "repetitions"):
        assert getattr(reread, name) == getattr(plan, name)


def edited_plan(tmp_path: Path, edit: Callable[[str], str], **changes: Any) -> Path:
    before = write_plan(small_plan(only=("order",), **changes))
    after = edit(before)
    assert after != before, "the edit changes something"
    path = tmp_path / "plan.toml"
    path.write_text(after)
    return path


def test_excessive_state_is_refused_before_counting(
    tmp_path: Path,
) -> None:
    def with_random_bytes(count: int) -> Callable[[str], str]:
        return lambda text: re.sub(r"random_bytes = \d+", f"random_bytes = {count}", text)

    # 2^34 writes of 1 to 256 sectors of 512 bytes, which are 128.5 sectors on average.
    max_bytes = (1 << 34) * 257 * 512 // 2
    for count in (max_bytes + 257 * 256, 2**63 - 1):
        with pytest.raises(UsageError) as caught:
            read_plan(edited_plan(tmp_path, with_random_bytes(count)), inspect_device(SMALL_SIM))
        assert caught.value.allowed == f"up to {max_bytes}"


def without_first_run(text: str) -> str:
    parts = text.split("[[runs]]")
    return "[[runs]]".join([parts[0], *parts[2:]])


def test_run_may_be_removed(tmp_path: Path) -> None:
    path = edited_plan(tmp_path, without_first_run)
    info = inspect_device(SMALL_SIM)
    assert len(read_plan(path, info).runs) == len(small_plan(only=("order",)).runs) - 1


BAD: list[tuple[Callable[[str], str], list[str]]] = [
    (lambda text: "x = [", ["cannot be read", "not TOML"]),
    (lambda text: text.replace("seed = 7", "seeds = 7", 1), ["unknown key 'seeds'", "scale, seed"]),
    (lambda text: text.replace("seed = 7\n", "", 1), ["no key 'seed'"]),
    (lambda text: text.replace("seed = 7", "seed = true", 1), ["seed = True", "whole number"]),
    (lambda text: text.replace("seed = 7", "seed = -7", 1), ["seed = -7", ">= 0"]),
    (lambda text: text.replace("version = 1", "version = 9", 1), ["format_version 9"]),
    (lambda text: text.replace('unit = ""', 'units = ""', 1), ["unknown key 'units'", "number 1"]),
    (lambda text: text.replace('kind = "sim"', 'kind = "file"'), ["another device", "kind file"]),
    (lambda text: text.replace("incr = -1", "inkr = -1", 1), ["run 0004-order-SR", "inkr"]),
    (lambda text: text.replace("io_count = 256", "io_count = 0", 1), ["run 0004-order-SR"]),
    (
        lambda text: text.replace('id = "0001', 'id = "../0001', 1),
        ["number 1", "id = '../0001", "A-Za-z"],
    ),
    (lambda text: "runs = []\n" + text.split("[[runs]]")[0], ["no run"]),
    (lambda text: text.replace('state = "random"', 'state = "rnd"'), ["rnd", "[state]"]),
    (
        lambda text: text.replace("[state]\n", "[state]\nsize = 1\n"),
        ["plan.toml, [state]", "unknown key `size`", "state, target_offset, target_size"],
    ),
    (lambda text: text.replace("io_size_max = 131072", "io_size_max = 777"), ["[state]", "777"]),
    (lambda text: text.replace("max = 131072", "max = 1073741824"), ["[state]", "largest"]),
    (lambda text: text.replace('scale = "quick"', 'scale = "fast"'), ["'fast'", "quick, standard"]),
    (
        lambda text: text.replace('method = "', 'method = "x'),
        ["Unknown method", "auto, startup"],
    ),
    (lambda text: text.replace("target_size_bytes = ", "target_size_bytes = 9999"), ["multiples"]),
    (lambda text: text.replace("io_count = 256", "count = 256", 1), ["`count`", "io_count,"]),
]


@pytest.mark.parametrize(("edit", "named"), BAD)
def test_mistake_in_file_is_named(
    tmp_path: Path, edit: Callable[[str], str], named: list[str]
) -> None:
    path = edited_plan(tmp_path, edit)
    with pytest.raises(UsageError) as caught:
        read_plan(path, inspect_device(SMALL_SIM))
    for part in named:
        assert part in str(caught.value)


def test_duplicate_run_id_is_refused(tmp_path: Path) -> None:
    plan = small_plan(only=("order",))
    text = write_plan(plan).replace(plan.runs[1].id, plan.runs[0].id, 1)
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        read_plan(tmp_path / "plan.toml", plan.device)
    assert plan.runs[0].id in caught.value.got


def test_overlapping_sequential_writes_need_a_reset(tmp_path: Path) -> None:
    plan = small_plan(only=("order",))
    writes = [run for run in plan.runs if run.pattern == "SW"]
    first, second = writes[1], writes[2]
    assert not second.reset_before
    target = f"target_offset = {second.spec.target_offset}"
    text = write_plan(plan)
    head, tail = text.split(f'id = "{second.id}"')
    moved = tail.replace(target, f"target_offset = {first.spec.target_offset}", 1)
    path = tmp_path / "plan.toml"
    path.write_text(f'{head}id = "{second.id}"{moved}')
    with pytest.raises(UsageError, match="write sequentially to the same target space") as caught:
        read_plan(path, plan.device)
    assert first.id in caught.value.where
    assert second.id in caught.value.where
    marked = f'{head}reset_before = true\nid = "{second.id}"{moved}'
    path.write_text(marked)
    assert read_plan(path, plan.device).resets == plan.resets + 1


def test_plan_for_another_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(write_plan(small_plan(only=("order",))))
    for url in ("sim:demo", f"{SMALL_SIM}&channels=2", "null"):
        with pytest.raises(UsageError, match="another device"):
            read_plan(path, inspect_device(url))


# Limits


def test_plan_stays_within_limits() -> None:
    plan = make_plan(stored.device_info(capacity_bytes=GIB), "quick", 1)
    whole = estimate(plan)
    for bytes_written, time_ns in [(100 * MIB, None), (None, 20 * 10**9), (0, None), (GIB, 10**10)]:
        cut = within_limits(plan, bytes_written, time_ns)
        estimated = estimate(cut)
        if bytes_written is not None:
            assert estimated.bytes_written <= bytes_written < whole.bytes_written
        if time_ns is not None:
            assert estimated.time_ns <= time_ns < whole.time_ns
        assert len(cut.runs) + len(cut.skipped) == len(plan.runs) + len(plan.skipped)
        assert cut.runs
    assert within_limits(plan, None, None) == plan


@pytest.mark.parametrize("capacity", [64 * MIB, 128 * MIB, 256 * MIB])
@pytest.mark.parametrize("limit", [20 * MIB, 200 * MIB, GIB])
def test_limits_hold_after_omitting_runs(capacity: int, limit: int) -> None:
    """On a small device resets cause most writes, and an omitted run may have required one."""
    info = stored.device_info(capacity_bytes=capacity)
    plan = make_plan(info, "quick", 1, Choices(only=("order", "pause", "bursts", "partitioning")))
    assert plan.resets
    assert estimate(within_limits(plan, limit, None)).bytes_written <= limit
    seconds = int(limit / MIB * 1e8)
    assert estimate(within_limits(plan, None, seconds)).time_ns <= seconds


def test_batches_of_one_experiment_are_omitted_together() -> None:
    """One or two of them give no result, and still take time."""
    plan = make_plan(stored.device_info(capacity_bytes=GIB), "quick", 1)
    sizes = set()
    for seconds in range(1, 30):
        cut = within_limits(plan, None, seconds * 10**9)
        batches = [run for run in cut.runs if run.micro_benchmark == "interference"]
        left_out = [skip for skip in cut.skipped if skip.micro_benchmark == "interference"]
        assert (len(batches), len(left_out)) in ((3, 0), (0, 3))
        assert len({skip.reason for skip in left_out}) <= 1
        sizes.add(len(batches))
    assert sizes == {0, 3}


def test_omitted_reset_moves_to_next_sequential_write() -> None:
    plan = make_plan(stored.device_info(capacity_bytes=GIB), "quick", 1)
    cut = within_limits(plan, GIB, None)
    left_out = {run.id for run in plan.runs} - {run.id for run in cut.runs}
    first_reset = next(run for run in plan.runs if run.reset_before)
    assert first_reset.id in left_out
    after = [run for run in cut.runs if run.id > first_reset.id]
    assert all(run.reset_before is False for run in after) == (cut.resets == 0)
    assert not after or cut.resets


# The commands


def test_plan_is_written_edited_and_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = uflip("plan", SMALL_SIM, "--only", "order", "--scale", "quick", "--out", "plan.toml")
    assert outcome.code == 0, outcome.err
    path = tmp_path / "plan.toml"
    path.write_text(without_first_run(path.read_text()))
    with unchanged(tmp_path):
        refused = uflip("plan", SMALL_SIM, "--only", "order", "--out", "plan.toml")
        assert (refused.code, "was changed since" in refused.err) == (3, True)
    planned = [run["id"] for run in tomllib.loads(path.read_text())["runs"]]
    outcome = uflip("run", SMALL_SIM, "--plan", "plan.toml", "--out", "out", "--quiet")
    assert outcome.code == 0, outcome.err
    assert [run.id for run in Results.load("out").runs] == planned


def test_plan_reports_repetitions_as_listed(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    text = write_plan(small_plan(only=("order",), repetitions=2))
    path.write_text(text)
    assert "repetitions: 2 of each run\n" in uflip("plan", SMALL_SIM, "--plan", path).out
    path.write_text(re.sub("^repetitions = 2$", "repetitions = 3", text, flags=re.M))
    outcome = uflip("plan", SMALL_SIM, "--plan", path)
    assert "repetitions: 2 of each run, as listed" in outcome.out, outcome.err


@pytest.mark.parametrize("option", [("--seed", "1"), ("--scale", "quick"), ("--state", "random")])
def test_option_decided_by_plan_file_is_refused(tmp_path: Path, option: tuple[str, str]) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(write_plan(small_plan(only=("order",))))
    with unchanged(tmp_path):
        outcome = uflip("run", SMALL_SIM, "--plan", path, "--out", tmp_path / "out", *option)
    assert (outcome.code, "The plan file contains this setting" in outcome.err) == (2, True)


def test_every_key_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/plan-file.md").read_text()
    for shape in (PlanFile, PlanRunEntry):
        for field in msgspec.structs.fields(shape):
            assert f"`{field.name}`" in page, field.name
