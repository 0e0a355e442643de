"""The micro-benchmark of Myers & Sinclair: batches, classes, phases, and the output."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.cli.pattern_preset import _every, preset_batch
from uflip.device.opener import open_device
from uflip.methodology import myers_sinclair
from uflip.reproduce import ms_cliff
from uflip.stats import latency_classes

SMALL = "sim:fast-1gb?blocks_per_die=300&log_blocks=20&spare_factor=0.2&state=sequential"


def test_classes_of_a_series_worked_out_by_hand() -> None:
    # 15 ms every fourth write from the third on, 400 ms once, the rest in the first two bins.
    times = np.full(20, 101_000)
    times[2::4] = 15_000_000
    times[10] = 400_000_000
    times[0] = 300_000
    found = latency_classes(times)
    assert [each.ios for each in found.bins] == [14, 1, 0, 0, 0]
    assert [(peak.ios, peak.share, peak.mean_ns) for peak in found.peaks] == [
        (4, 0.2, 15e6),
        (1, 0.05, 400e6),
    ]
    assert [peak.spacing_ios for peak in found.peaks] == [(4 + 8 + 4) / 3, None]
    assert found.mean_ns == pytest.approx(times.mean())
    assert sum(each.share for each in (*found.bins, *found.peaks)) == pytest.approx(1)


def test_classes_keep_everything_once() -> None:
    rng = np.random.default_rng(1)
    times = np.exp(rng.uniform(np.log(1e5), np.log(1e9), 5_000)).astype(np.int64)
    found = latency_classes(times)
    assert sum(each.ios for each in (*found.bins, *found.peaks)) == len(times)


def test_nothing_has_no_classes() -> None:
    with pytest.raises(ValueError, match="no response times"):
        latency_classes([])


def test_batches_follow_each_other() -> None:
    kept = []
    with open_device(SMALL) as device:
        found = myers_sinclair.run(
            device, batches=3, batch_ios=2_000, on_batch=lambda n, trace: kept.append((n, trace))
        )
    assert [number for number, _ in kept] == [0, 1, 2]
    addresses = [np.asarray(trace.column("offset_bytes")) for _, trace in kept]
    assert len({tuple(each[:10]) for each in addresses}) == 3, "each batch has addresses of its own"
    times = np.concatenate([np.asarray(trace.column("response_time_ns")) for _, trace in kept])
    assert (found.response_time_ns == times).all()
    # Without a pause in between: the next batch begins where the last one ended.
    steady, startup = found.steady.ios, found.startup.ios if found.startup else 0
    assert (steady + startup, startup) == (6_000, found.analysis.startup_ios)


def test_the_command_prints_phases_and_classes(tmp_path: Path) -> None:
    arguments = (
        "pattern",
        SMALL,
        "--preset",
        "myers-sinclair",
        "--batches",
        2,
        "--io-count",
        3_000,
    )
    done = uflip(*arguments, "--trace", tmp_path / "ios.parquet")
    assert done.code == 0, done.err
    assert "2 × 3,000 random writes of 4 KiB" in done.out
    assert "steady state:" in done.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ios-1.parquet", "ios-2.parquet"]
    again = uflip(*arguments, "--trace", tmp_path / "ios.parquet")
    assert again.code == 3
    assert "ios-1.parquet" in again.err
    document = json.loads(uflip(*arguments, "--json").out)
    assert (document["preset"], document["batches"], document["ios"]) == (
        "myers-sinclair",
        2,
        6_000,
    )
    assert document["steady"]["bins"][0]["share"] > 0.9


def test_a_class_that_was_there_for_a_while_is_told_with_how_long() -> None:
    for distance, told in (
        (98, ", every 98 writes, all within 883"),
        (9_000, ", every 9,000 writes"),
    ):
        times = np.full(100_000, 100_000)
        times[5_000 + distance * np.arange(10)] = 400_000_000
        (peak,) = latency_classes(times).peaks
        assert (peak.share, _every(peak, len(times))) == (0.0001, told)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--preset", "myers-sinclair", "--io-size", "8k"),
            "cannot be combined with options of the pattern",
        ),
        (("--batches", 2, "--pattern", "RW"), "--batches needs --preset"),
        (
            ("--preset", "myers-sinclair", "--incr", 0),
            "cannot be combined with options of the pattern",
        ),
        (("--preset", "fio"), "myers-sinclair"),
    ],
)
def test_what_a_preset_does_not_take_is_refused(options: tuple[object, ...], said: str) -> None:
    done = uflip("pattern", SMALL, *options)
    assert done.code != 0
    assert said in done.err


def test_a_start_up_that_lacks_the_long_response_times_alone() -> None:
    """Fast writes and merges of 15 ms from the beginning, merges of 400 ms from write 20,000 on."""
    rng = np.random.default_rng(5)
    times = np.full(120_000, 286_000.0) * rng.normal(1, 0.01, 120_000)
    times[rng.random(len(times)) < 1 / 256] = 15e6
    running = np.arange(len(times)) >= 20_000
    times[running & (rng.random(len(times)) < 1 / 38)] = 400e6
    first = int(np.flatnonzero(times > 100e6)[0])
    found = myers_sinclair.findings(times.astype(np.uint64))
    assert found.startup is not None
    assert found.startup.ios == first, "up to the first long one"
    assert found.steady.mean_ns > 10e6


def test_a_fresh_kingston_falls_when_its_log_is_full_of_rewrites() -> None:
    # Of n writes at random to L pages n - L (1 - exp(-n / L)) go to pages that were written before,
    # and those alone go to the log; a drive that is full sends all of them there.
    full, fresh = ms_cliff.cliff(), ms_cliff.cliff(state="empty")
    pages, ios = fresh.capacity_bytes / myers_sinclair.IO_BYTES, fresh.ios
    rewrites = ios - pages * (1 - np.exp(-ios / pages))
    assert rewrites == pytest.approx(full.ios, rel=0.03)


def test_a_count_and_a_seed_of_0_are_given() -> None:
    """0 == False, and an option that was left out is False for flags."""
    done = uflip("pattern", "sim:demo", "--preset", "myers-sinclair", "--io-count", "0")
    assert done.code == 2, done.out
    batch = preset_batch(None, {"seed": 0, "io_count": 100, "polled": False, "io_size": None})
    assert (batch.seed, batch.io_count) == (0, 100)
