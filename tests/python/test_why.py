"""`uflip why`: statements about known series, about simulated devices, and about nothing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip
from scipy import stats

from uflip.analysis.files import ReadOptions, SeriesSource
from uflip.explain import slow_ios
from uflip.explain.cliff import best_split
from uflip.explain.explanation import explain
from uflip.explain.finding import ABSENT, FOUND, TOPICS, UNDECIDED, Finding
from uflip.explain.io_log import IoLog, read_io_log
from uflip.explain.nearest_device import distance
from uflip.explain.rhythm import episode_starts
from uflip.explain.slow_ios import compare_with_shifts

ROOT = Path(__file__).parents[2]


def log_of(took: np.ndarray, **columns: np.ndarray) -> IoLog:
    """Return writes of 4 KiB that follow one another, with some columns replaced."""
    n = len(took)
    random = np.random.default_rng(9)
    submitted = np.concatenate([[0], np.cumsum(took)[:-1]]).astype(np.int64)
    defaults = {
        "submitted": submitted,
        "offset": 4096 * random.integers(0, 1 << 16, n),
        "size": np.full(n, 4096),
        "mode": np.ones(n, np.int64),
    }
    return IoLog(took, SeriesSource(format="test"), **(defaults | columns))


def noise(n: int, sigma: float = 0.1, seed: int = 1) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(0, sigma, n))


def found(log: IoLog, topic: str) -> Finding:
    (finding,) = [each for each in explain(log).document.findings if each.topic == topic][:1]
    return finding


def test_cache_is_found_where_the_rate_falls() -> None:
    took = np.where(np.arange(8000) < 3000, 2e4, 4e5) * noise(8000)
    cache = found(log_of(took), "cache")
    assert cache.verdict == FOUND
    assert cache.numbers["bytes"] == 3000 * 4096
    assert cache.numbers["low_bytes"] <= 3000 * 4096 <= cache.numbers["high_bytes"]
    assert cache.numbers["is_buffered"] == 1
    # A twentieth of the bytes flows out while the cache fills at 20 times the later rate.
    assert cache.numbers["holds_at_least_bytes"] == pytest.approx(0.95 * 3000 * 4096, rel=0.01)


def test_rate_that_recovers_has_no_cache() -> None:
    index = np.arange(8000)
    took = np.where(index % 2000 < 1000, 2e4, 4e5) * noise(8000)
    assert found(log_of(took), "cache").verdict == ABSENT


def test_split_is_that_of_all_splits() -> None:
    took = np.exp(np.random.default_rng(4).normal(np.where(np.arange(400) < 150, 0, 1), 0.4))
    logs = np.log(took)
    costs = [logs[:k].var() * k + logs[k:].var() * (400 - k) for k in range(1, 400)]
    assert abs(best_split(took).at - (1 + int(np.argmin(costs)))) <= 4


@pytest.mark.parametrize("sizes", ["equal", "mixed"])
def test_rhythm_is_named_in_its_unit(sizes: str) -> None:
    n = 40_000
    random = np.random.default_rng(2)
    size = np.full(n, 4096) if sizes == "equal" else 4096 * random.choice([1, 64], n)
    # Garbage collection after each 4 MiB written.
    written = np.cumsum(size)
    slow = np.diff(written // (4 << 20), prepend=0) > 0
    rhythm = found(log_of(np.where(slow, 2e6, 1e5) * noise(n), size=size), "rhythm")
    assert rhythm.verdict == FOUND
    assert rhythm.numbers["gap_bytes"] == pytest.approx(4 << 20, rel=0.02)
    assert ("most even in bytes" in rhythm.statement) == (sizes == "mixed")


def test_random_stalls_have_no_rhythm() -> None:
    slow = np.random.default_rng(5).random(20_000) < 0.02
    rhythm = found(log_of(np.where(slow, 2e6, 1e5) * noise(20_000)), "rhythm")
    assert rhythm.verdict == ABSENT
    assert rhythm.numbers["variation"] == pytest.approx(1, abs=0.2)


def test_episode_is_a_row_of_slow_ios() -> None:
    flags = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], bool)
    assert episode_starts(flags).tolist() == [0, 3, 6]


def properties_of(log: IoLog) -> list[Any]:
    (slow,) = [each for each in explain(log).document.findings if each.topic == "slow I/Os"]
    count = sum(name.startswith("property_") and name.count("_") == 1 for name in slow.numbers)
    return [slow.numbers[f"property_{index}"] for index in range(1, count + 1)]


def test_slow_ios_are_the_unaligned_ones() -> None:
    n, random = 10_000, np.random.default_rng(3)
    offset = 512 * random.integers(0, 1 << 20, n)
    offset[random.random(n) < 0.7] //= 32768
    offset = np.where(random.random(n) < 0.8, offset // 4096 * 4096, offset)
    took = np.where(offset % 4096 != 0, 3e5, 1e5) * noise(n)
    assert "not aligned to 4 KiB" in properties_of(log_of(took, offset=offset))


def test_slow_ios_follow_idle_time() -> None:
    n, random = 10_000, np.random.default_rng(3)
    idle = random.random(n) < 0.05
    took = np.where(idle, 2e6, 1e5) * noise(n)
    submitted = np.cumsum(np.where(idle, 5e7, 0)) + np.concatenate([[0], np.cumsum(took)[:-1]])
    log = log_of(took, submitted=submitted.astype(np.int64))
    (only,) = properties_of(log)
    assert only.startswith("after more than 1")
    assert only.endswith("of idle time")


def test_slow_reads_are_near_writes() -> None:
    n, random = 20_000, np.random.default_rng(7)
    mode = (random.random(n) < 0.1).astype(np.int64)
    after = np.concatenate([[0], mode[:-1]])
    took = np.where(after == 1, 9e5, 1e5) * noise(n)
    submitted = (np.arange(n) * 2_000_000).astype(np.int64)
    log = log_of(took, mode=mode, submitted=submitted)
    submitted[1:] -= (after[1:] == 1) * 1_900_000
    reads = [
        each
        for each in explain(log).document.findings
        if each.topic == "slow I/Os" and each.subject == "reads"
    ]
    assert any("of a write" in str(each) for each in reads[0].numbers.values())


def test_a_long_series_is_cut_to_a_fast_length(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    n = 10007  # a prime
    slow, has = random.random(n) < 0.02, random.random(n) < 0.3
    whole = compare_with_shifts("p", has, slow)
    monkeypatch.setattr(slow_ios, "LONG_SERIES", 1000)
    cut = compare_with_shifts("p", has, slow)
    # 10000 = 2^4 5^4; all shifts of the first 10,000 I/Os, counted one by one.
    first = slow[:10000]
    counts = [int((np.roll(first, -shift) & has[:10000]).sum()) for shift in range(200, 9800)]
    counts_at_0 = int((first & has[:10000]).sum())
    expected = (1 + sum(count >= counts_at_0 for count in counts)) / (1 + 9600)
    assert whole is not None
    assert cut is not None
    assert (cut.share, cut.slow_share, cut.ratio) == (whole.share, whole.slow_share, whole.ratio)
    assert cut.p_value == pytest.approx(expected)


def test_shifts_agree_with_the_hypergeometric_distribution() -> None:
    # Independent flags: all shifts together are a sample of that distribution.
    random = np.random.default_rng(11)
    has, slow = random.random(4000) < 0.3, random.random(4000) < 0.05
    slow[:60] |= has[:60]
    tested = compare_with_shifts("p", has, slow)
    assert tested is not None
    count = int((has & slow).sum())
    expected = stats.hypergeom.sf(count - 1, 4000, int(has.sum()), int(slow.sum()))
    assert tested.p_value == pytest.approx(expected, rel=0.5)


def test_shift_keeps_bursts_together() -> None:
    # Two independent bursts, of a quarter each, overlap by chance at every fourth shift or so.
    has, slow = np.zeros(4000, bool), np.zeros(4000, bool)
    has[:1000], slow[500:1500] = True, True
    tested = compare_with_shifts("p", has, slow)
    assert tested is not None
    assert tested.p_value > 0.2


def null_families() -> Iterator[tuple[str, Any]]:
    sys.path.insert(0, str(ROOT / "benches"))
    try:
        import explanations
    finally:
        sys.path.pop(0)
    for name in ("independent, 0.5", "one stall in 200", "bursts of 20, 80 apart",
                 "long memory, 0.4"):  # fmt: skip
        yield name, explanations


def test_statements_about_nothing_are_rare() -> None:
    claims = dict.fromkeys(("start-up", "period", "cache", "rhythm", "slow I/Os"), 0)
    repeats, families = 10, list(null_families())
    for name, bench in families:
        counted = bench.false_claims(bench.FAMILIES[name], 2048, repeats)
        claims = {topic: count + counted[topic] for topic, count in claims.items()}
    # At most 3 of 40 where the documentation has 1 %: chance exceeds that in 1 of 1,000 cases.
    assert max(claims.values()) <= 3, claims


def test_distance_is_the_mean_factor_of_quantiles() -> None:
    took = np.random.default_rng(1).gamma(2, 1e5, 1000)
    assert np.exp(distance(took, 1.3 * took, np.zeros(1000))) == pytest.approx(1.3)


@pytest.fixture(scope="module")
def mtron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("why") / "mtron.csv"
    uflip(
        "pattern", "sim:mtron", "--pattern", "RW", "--io-size", "32KiB", "--io-count", "3000",
        "--trace", str(path), "--quiet",
    )  # fmt: skip
    return path


def test_mtron_is_explained_as_published(mtron: Path) -> None:
    outcome = uflip("why", str(mtron), "--device", "sim:mtron", "--device", "sim:samsung", "--json")
    document = json.loads(outcome.out)
    findings = {each["topic"]: each for each in document["findings"]}
    # uFLIP (CIDR 2009), figure 3: a start-up of 125 I/Os, then every third write is slow.
    assert findings["start-up"]["numbers"]["startup_ios"] == pytest.approx(125, abs=10)
    assert findings["period"]["numbers"]["period_ios"] == 3
    assert findings["rhythm"]["numbers"]["gap_ios"] == 3
    assert findings["device"]["numbers"]["device_1"] == "sim:mtron"
    assert findings["device"]["verdict"] == FOUND
    assert [each["topic"] for each in document["findings"]] == sorted(
        (each["topic"] for each in document["findings"]), key=TOPICS.index
    )


def test_no_device_is_named_if_none_is_near(mtron: Path) -> None:
    outcome = uflip("why", str(mtron), "--device", "sim:demo", "--json")
    (device,) = [each for each in json.loads(outcome.out)["findings"] if each["topic"] == "device"]
    assert device["verdict"] == ABSENT
    assert "none of 1 simulated devices" in device["statement"]


def test_run_of_a_simulated_device_has_its_causes(workdir: Path) -> None:
    uflip(
        "pattern", "sim:mtron", "--pattern", "RW", "--io-size", "32KiB", "--io-count", "600",
        "--inside", "r", "--quiet",
    )  # fmt: skip
    (run,) = (workdir / "r" / "runs").glob("*.parquet")
    causes = found(read_io_log(run, ReadOptions()), "causes")
    extra = {name: value for name, value in causes.numbers.items() if name.startswith("extra_")}
    assert max(extra, key=lambda name: extra[name]) == "extra_merge_ns"
    # A folder with one run stands for this run.
    assert len(read_io_log(workdir / "r", ReadOptions())) == 600


def test_pictures_are_written(mtron: Path, workdir: Path) -> None:
    for name in ("a.html", "a.svg", "a.png"):
        uflip("why", str(mtron), "-o", name)
        assert (workdir / name).stat().st_size > 5000
    page = (workdir / "a.html").read_text()
    assert "slow writes come every 3 writes" in page


def test_response_times_alone_leave_the_rest_undecided(workdir: Path) -> None:
    rows = "\n".join(f"{each:.0f}" for each in 1e5 * noise(500))
    (workdir / "t.csv").write_text(f"response_time_ns\n{rows}\n")
    outcome = uflip("why", "t.csv", "--device", "sim:demo", "--json")
    verdicts = {each["topic"]: each["verdict"] for each in json.loads(outcome.out)["findings"]}
    assert verdicts["cache"] == verdicts["device"] == UNDECIDED
