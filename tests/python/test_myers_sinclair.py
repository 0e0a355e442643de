"""The micro-benchmark of Myers & Sinclair: batches, classes, phases, and the output."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.benchmark import myers_sinclair
from uflip.cli.preset import _spacing, preset_batch
from uflip.device.opener import open_device
from uflip.reproduce import ms
from uflip.stats import latency_classes

SMALL = "sim:fast-1gb?blocks_per_die=300&log_blocks=20&spare_factor=0.2&state=sequential"


def test_latency_classes_of_hand_worked_series() -> None:
    # 15 ms every fourth write from the third on, 400 ms once, the rest in the first two bins.
    times = np.full(20, 101_000)
    times[2::4] = 15_000_000
    times[10] = 400_000_000
    times[0] = 300_000
    classes = latency_classes(times)
    assert [each.ios for each in classes.bins] == [14, 1, 0, 0, 0]
    assert [(peak.ios, peak.share, peak.mean_ns) for peak in classes.peaks] == [
        (4, 0.2, 15e6),
        (1, 0.05, 400e6),
    ]
    assert [peak.spacing_ios for peak in classes.peaks] == [(4 + 8 + 4) / 3, None]
    assert classes.mean_ns == pytest.approx(times.mean())
    assert sum(each.share for each in (*classes.bins, *classes.peaks)) == pytest.approx(1)


def test_latency_classes_cover_each_io_once() -> None:
    rng = np.random.default_rng(1)
    times = np.exp(rng.uniform(np.log(1e5), np.log(1e9), 5_000)).astype(np.int64)
    classes = latency_classes(times)
    assert sum(each.ios for each in (*classes.bins, *classes.peaks)) == len(times)


def test_empty_series_is_refused() -> None:
    with pytest.raises(ValueError, match="no response times"):
        latency_classes([])


def test_batches_follow_without_pause() -> None:
    traces = []
    with open_device(SMALL) as device:
        result = myers_sinclair.run(
            device, batches=3, batch_ios=2_000, on_batch=lambda n, trace: traces.append((n, trace))
        )
    assert [number for number, _ in traces] == [0, 1, 2]
    addresses = [np.asarray(trace.column("offset_bytes")) for _, trace in traces]
    assert len({tuple(each[:10]) for each in addresses}) == 3, "each batch has different addresses"
    times = np.concatenate([np.asarray(trace.column("response_time_ns")) for _, trace in traces])
    assert (result.response_time_ns == times).all()
    # Without a pause in between: the next batch begins where the last one ended.
    steady, startup = result.steady.ios, result.startup.ios if result.startup else 0
    assert (steady + startup, startup) == (6_000, result.analysis.startup_ios)


def test_preset_prints_phases_and_classes(tmp_path: Path) -> None:
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
    outcome = uflip(*arguments, "--trace", tmp_path / "ios.parquet")
    assert outcome.code == 0, outcome.err
    assert "2 × 3,000 random writes of 4 KiB" in outcome.out
    assert "steady state:" in outcome.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ios-1.parquet", "ios-2.parquet"]
    repeated = uflip(*arguments, "--trace", tmp_path / "ios.parquet")
    assert repeated.code == 3
    assert "ios-1.parquet" in repeated.err
    document = json.loads(uflip(*arguments, "--json").out)
    assert (document["preset"], document["batches"], document["ios"]) == (
        "myers-sinclair",
        2,
        6_000,
    )
    assert document["steady"]["bins"][0]["share"] > 0.9


def test_short_lived_class_reports_its_extent() -> None:
    for distance, text in (
        (98, ", every 98 writes, all within 883"),
        (9_000, ", every 9,000 writes"),
    ):
        times = np.full(100_000, 100_000)
        times[5_000 + distance * np.arange(10)] = 400_000_000
        (peak,) = latency_classes(times).peaks
        assert (peak.share, _spacing(peak, len(times))) == (0.0001, text)


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_preset_refuses_pattern_options(options: tuple[object, ...], message: str) -> None:
    outcome = uflip("pattern", SMALL, *options)
    assert outcome.code != 0
    assert message in outcome.err


def test_startup_without_long_response_times_is_found() -> None:
    """Fast writes and merges of 15 ms from the beginning, merges of 400 ms from write 20,000 on."""
    rng = np.random.default_rng(5)
    times = np.full(120_000, 286_000.0) * rng.normal(1, 0.01, 120_000)
    times[rng.random(len(times)) < 1 / 256] = 15e6
    running = np.arange(len(times)) >= 20_000
    times[running & (rng.random(len(times)) < 1 / 38)] = 400e6
    first = int(np.flatnonzero(times > 100e6)[0])
    findings = myers_sinclair.findings(times.astype(np.uint64))
    assert findings.startup is not None
    assert findings.startup.ios == first, "up to the first long one"
    assert findings.steady.mean_ns > 10e6


def test_fresh_drive_slows_when_log_is_full_of_rewrites() -> None:
    # n random writes to L pages: n - L (1 - exp(-n / L)) of them rewrite pages,
    # and those alone go to the log; a drive that is full sends all of them there.
    full, fresh = ms.cliff(), ms.cliff(state="empty")
    pages, ios = fresh.capacity_bytes / myers_sinclair.IO_BYTES, fresh.ios
    rewrites = ios - pages * (1 - np.exp(-ios / pages))
    assert rewrites == pytest.approx(full.ios, rel=0.03)


def test_zero_count_and_seed_are_not_ignored() -> None:
    """0 == False, and an omitted flag is False."""
    outcome = uflip("pattern", "sim:demo", "--preset", "myers-sinclair", "--io-count", "0")
    assert outcome.code == 2, outcome.out
    batch = preset_batch(None, {"seed": 0, "io_count": 100, "polled": False, "io_size": None})
    assert (batch.seed, batch.io_count) == (0, 100)
