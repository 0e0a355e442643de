"""Are simulated devices cached and reused bit for bit, and is a damaged cache detected?"""

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import start, uflip

from uflip import _native
from uflip.device import cache as device_cache
from uflip.device.handle import Device
from uflip.device.opener import open_device, open_sim
from uflip.device.url import parse_url
from uflip.errors import ResultsError, UsageError
from uflip.spec import baseline

URL = "sim:demo?blocks_per_die=64"
STATE = {"state": "random", "seed": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(device_cache.FOLDER, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of devices that were created, and not loaded from the cache."""
    names: list[str] = []
    create = _native.Device.sim

    class Counting:
        restore = _native.Device.restore

        @staticmethod
        def sim(name: str, *more: str) -> _native.Handle[_native.Device]:
            names.append(name)
            return create(name, *more)

    monkeypatch.setattr("uflip.device.opener._native.Device", Counting)
    return names


def behaviour(device: Device) -> dict[str, Any]:
    """Return the description of a device, and every I/O of two runs."""
    observed: dict[str, Any] = {"info": device.info}
    for number, spec in enumerate((baseline("RW", queue_depth=4), baseline("SW", seed=2))):
        trace = device.run(spec)
        columns = {name: np.asarray(trace.column(name)).tolist() for name in trace.columns}
        observed[str(number)] = (columns, trace.counters_json())
    return observed


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


# The cache


def test_cached_device_behaves_the_same(folder: Path, created: list[str]) -> None:
    with device_cache.switched_off():
        expected = behaviour(open_device(URL))
    assert files(folder) == []
    assert behaviour(open_device(URL)) == expected, "a miss"
    assert len(created) == 2
    assert len(files(folder)) == 1
    assert behaviour(open_device(URL)) == expected, "a hit"
    assert len(created) == 2, "no device was created"


def test_enforced_state_is_cached(folder: Path, created: list[str]) -> None:
    def enforced() -> tuple[dict[str, Any], list[int]]:
        device, progress_values = open_device(URL), []
        device.enforce(
            STATE, on_progress=lambda done, total, _: progress_values.extend([done, total])
        )
        return behaviour(device), progress_values[-2:]

    with device_cache.switched_off():
        expected, _ = enforced()
    assert enforced()[0] == expected
    assert len(files(folder)) == 2
    again, progress = enforced()
    assert again == expected
    assert progress[0] == progress[1] > 0, "progress reports completion at once"
    assert len(files(folder)) == 2


def test_used_device_is_not_cached(folder: Path) -> None:
    used = open_device(URL)
    used.run(baseline("RW", io_count=10))
    used.enforce(STATE)
    assert len(files(folder)) == 1, "only the fresh device is cached"
    fresh = open_device(URL)
    fresh.enforce(STATE)
    assert fresh.counters() != used.counters()


def test_cache_key_includes_every_override(folder: Path) -> None:
    for query in ("", "&seed=2", "&spare_factor=0.2", "&gc=greedy", "&random_overwrites=0.5"):
        open_device(URL + query)
    assert len(files(folder)) == 5
    open_device(URL + "&state=empty")
    assert len(files(folder)) == 5, "an empty device is created faster than loaded"


@pytest.mark.parametrize("damage", ["truncated", "changed", "not a snapshot"])
def test_damaged_file_is_recreated(folder: Path, damage: str) -> None:
    open_device(URL)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "truncated": whole[:middle],
            "changed": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "not a snapshot": b"hello",
        }[damage]
    )
    open_device(URL)
    assert path.read_bytes() == whole


def test_least_recently_used_is_evicted_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        open_device(f"{URL}&seed={number}")
        for path in folder.iterdir():  # older, so that the order does not depend on the clock
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 100))
    cached = device_cache.entries()
    open_device(f"{URL}&seed=0")  # used again
    size = sum(entry.size_bytes for entry in cached) + 10_000  # the files differ by some bytes
    monkeypatch.setenv(device_cache.SIZE, str(size))
    open_device(f"{URL}&seed=3")
    remaining = [entry.path for entry in device_cache.entries()]
    assert cached[1].path not in remaining, "seed 1, the least recently used"
    assert cached[0].path in remaining
    assert len(remaining) == 3
    assert sum(entry.size_bytes for entry in device_cache.entries()) <= size


def test_device_larger_than_the_cache_is_not_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(device_cache.SIZE, "10KiB")
    open_device(URL)
    assert files(folder) == []


def test_unusable_cache_folder_is_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(device_cache.FOLDER, str(tmp_path / "file" / "cache"))
    assert open_device(URL).info.simulated


def test_concurrent_opens_get_the_same_device(folder: Path) -> None:
    descriptions: list[str] = []

    def use() -> None:
        native = open_sim(parse_url(URL))
        descriptions.append(native.counters_json() or "" + native.info_json())

    threads = [threading.Thread(target=use) for _ in range(8)]
    processes = [start("pattern", URL, "--pattern", "RW", "--json") for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    printed = [process.communicate()[0] for process in processes]
    assert len(set(descriptions)) == 1
    assert len(descriptions) == 8
    assert len({json.dumps(json.loads(text)["statistics"]) for text in printed}) == 1
    assert len(files(folder)) == 1, "and no partial file"


def test_old_partial_files_are_removed(folder: Path) -> None:
    folder.mkdir()
    old, new = (folder / f".{name * 32}.snapshot.1.partial" for name in "ab")
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    open_device(URL)
    assert not old.exists()
    assert new.exists(), "a process may still write it"
    device_cache.clear()
    assert files(folder) == []


def test_only_cache_files_are_listed_and_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_device(URL)
    (cached,) = folder.iterdir()
    assert cached.read_bytes().startswith(device_cache.MAGIC)
    with open_device(URL) as device:
        device.save(folder / "worn.snapshot")  # the user's own
    (folder / "notes.txt").write_text("mine")
    (folder / f"{'0' * 32}.snapshot").write_text("mine, by an odd name")
    (folder / f"{'1' * 32}.snapshot").symlink_to("worn.snapshot")
    (folder / f"{'2' * 32}.snapshot").mkdir()
    os.mkfifo(folder / f"{'3' * 32}.snapshot")
    (folder / ".half.snapshot.1.partial").write_text("mine")
    mine = sorted(set(folder.iterdir()) - {cached})
    assert [entry.path for entry in device_cache.entries()] == [cached]
    monkeypatch.setenv(device_cache.SIZE, "10KiB")  # too small for any cached device
    open_device(f"{URL}&seed=8")
    assert sorted(folder.iterdir()) == mine
    monkeypatch.delenv(device_cache.SIZE)
    open_device(URL)
    outcome = uflip("cache", "--clear")
    assert (outcome.code, sorted(folder.iterdir())) == (0, mine), outcome.err
    assert "1 devices removed" in outcome.out
    assert f"{len(mine)} other files are not from the cache and stay" in outcome.out


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(device_cache.FOLDER)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert device_cache.folder() == tmp_path / ".cache" / "uflip" / "devices"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert device_cache.folder() == tmp_path / "xdg" / "uflip" / "devices"


# On the command line


def test_cache_is_listed_and_cleared(folder: Path) -> None:
    assert "0 devices" in uflip("cache").out
    assert uflip("pattern", URL, "--pattern", "RR").code == 0
    listed = json.loads(uflip("cache", "--json").out)
    (device,) = listed["devices"]
    assert device["device"] == "sim:demo"
    assert listed["size_bytes"] == device["size_bytes"] > 1000
    assert "sim:demo" in uflip("cache").out
    assert "1 devices removed" in uflip("cache", "--clear").out
    assert files(folder) == []


def test_no_cache_option_stores_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uflip("pattern", URL, "--pattern", "RR", "--no-cache").code == 0
    assert files(folder) == []
    monkeypatch.setenv(device_cache.SIZE, "0")
    assert uflip("pattern", URL, "--pattern", "RR").code == 0
    assert files(folder) == []
    assert "off" in uflip("cache").out
    monkeypatch.setenv(device_cache.SIZE, "plenty")
    wrong = uflip("pattern", URL, "--pattern", "RR")
    assert wrong.code == 2
    assert device_cache.SIZE in wrong.err


# Snapshots


def test_saved_device_continues_from_its_state(folder: Path) -> None:
    device = open_device(URL)
    device.run(baseline("RW", io_count=50))
    device.save("used.snapshot")
    expected = behaviour(device)
    with open_device("sim:used.snapshot") as again:
        restored = behaviour(again)
    assert restored.pop("info").profile_table == expected.pop("info").profile_table
    assert restored == expected


def test_snapshot_is_a_device_for_every_command(folder: Path) -> None:
    saved = uflip("prepare", URL, "--state", "random", "--save", "steady.snapshot")
    assert saved.code == 0
    assert "stored in steady.snapshot" in saved.out
    info = json.loads(uflip("info", "sim:steady.snapshot", "--json").out)
    assert info["details"]["snapshot"]
    assert info["url"] == "sim:steady.snapshot"
    outcome = uflip("pattern", "sim:steady.snapshot", "--pattern", "RW", "--save", "later.snapshot")
    assert outcome.code == 0
    later = json.loads(uflip("info", "sim:later.snapshot", "--json").out)
    assert later["details"]["snapshot"] != info["details"]["snapshot"]


def test_invalid_save_or_restore_is_refused(folder: Path) -> None:
    device = open_device(URL)
    with pytest.raises(UsageError, match=r"FILE\.snapshot"):
        device.save("device.bin")
    device.save("device.snapshot")
    before = Path("device.snapshot").read_bytes()
    with pytest.raises(ResultsError, match="exists"):
        device.save("device.snapshot")
    with pytest.raises(ResultsError, match="cannot be written"):
        device.save("missing/device.snapshot")
    with pytest.raises(UsageError, match="Only a simulated device"), open_device("null") as null:
        null.save("null.snapshot")
    with pytest.raises(UsageError, match="cannot be combined with overrides"):
        open_device("sim:device.snapshot?channels=2")
    Path("cut.snapshot").write_bytes(before[:-1])
    for url, message in (("cut", "damaged"), ("none", "cannot be read")):
        with pytest.raises(ResultsError, match=message):
            open_device(f"sim:{url}.snapshot")
    assert Path("device.snapshot").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "kind"), [("x.bin", 2), ("there.snapshot", 3), ("no/x.snapshot", 2)]
)
def test_invalid_snapshot_name_is_refused_before_opening(
    folder: Path, name: str, kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("there.snapshot").write_text("mine")
    opening = "uflip.benchmark.prepare.open_watched"
    monkeypatch.setattr(opening, lambda *_, **__: pytest.fail("opened"))
    outcome = uflip("pattern", URL, "--pattern", "RW", "--save", name)
    assert outcome.code == kind
    assert Path("there.snapshot").read_text() == "mine"
    assert uflip("pattern", "null", "--pattern", "RR", "--save", "n.snapshot").code == 2


def test_benchmark_of_a_snapshot_records_its_state(folder: Path) -> None:
    open_device("sim:demo?blocks_per_die=64&state=empty").save("empty.snapshot")
    options = ["--only", "baseline", "--scale", "quick", "--quiet"]
    assert uflip("run", "sim:empty.snapshot", *options, "--out", "r").code == 0
    state = json.loads(Path("r/manifest.json").read_text())["state"]
    assert (state["state"], state["known_from"]) == ("as-is", "snapshot")
    assert state["state_id"]
