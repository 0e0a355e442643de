"""Logs of rates and histograms: against fio's own totals, and against sums by hand."""

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import uflip

from uflip.analysis.rate_logs import RateLog, RateRow, read_rate_logs
from uflip.errors import UsageError

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def read(path: Path, text: str) -> RateLog:
    path.write_text(text)
    log = read_rate_logs([path])
    assert log is not None
    return log


def row_of(log: RateLog, direction: str) -> RateRow:
    (row,) = [each for each in log.rows() if each.direction == direction]
    return row


@needs_fio
@pytest.mark.parametrize("averages", ["", "--log_avg_msec=200"])
def test_logs_of_fio_have_its_totals(averages: str, workdir: Path) -> None:
    """Of all jobs together: rates by bw and iops logs, percentiles by histograms."""
    Path("target").write_bytes(bytes(1 << 20))
    logs = [f"--write_{kind}_log=log" for kind in ("bw", "iops", "lat", "hist")]
    job = ["--name=job", "--rw=randrw", "--filename=target", "--size=1m", "--numjobs=2", "--bs=8k",
           "--time_based", "--runtime=2", "--rate_iops=200", "--log_hist_msec=200",
           "--output-format=json", "--output=out.json", "--group_reporting"]  # fmt: skip
    options = [averages] if averages else []
    subprocess.run(["fio", *job, *logs, *options], check=True, capture_output=True)
    fio = json.loads(Path("out.json").read_text())["jobs"][0]
    for kind in ("bw", "iops", "clat_hist"):
        found = read_rate_logs([Path(f"log_{kind}.1.log"), Path(f"log_{kind}.2.log")])
        assert found is not None
        for direction in ("read", "write"):
            row = row_of(found, direction)
            if kind == "bw":
                assert row.bytes_per_s == pytest.approx(fio[direction]["bw_bytes"], rel=0.06)
                continue
            # The histograms end with the last whole interval, one of ten.
            share = 0.12 if kind == "clat_hist" else 0.06
            assert row.ios_per_s == pytest.approx(fio[direction]["iops"], rel=share)
            if kind == "clat_hist":
                p50 = fio[direction]["clat_ns"]["percentile"]["50.000000"]
                assert row.p50_ns == pytest.approx(p50, rel=0.5)


@needs_fio
def test_histograms_have_the_percentiles_of_the_log_of_each_io(workdir: Path) -> None:
    Path("target").write_bytes(bytes(1 << 20))
    job = ["--name=job", "--rw=randread", "--filename=target", "--size=1m", "--time_based",
           "--runtime=1", "--rate_iops=2000", "--log_hist_msec=100", "--write_hist_log=log",
           "--write_lat_log=log"]  # fmt: skip
    subprocess.run(["fio", *job], check=True, capture_output=True)
    histograms = read_rate_logs([Path("log_clat_hist.1.log")])
    assert histograms is not None
    lines = Path("log_clat.1.log").read_text().splitlines()
    values = np.array([[int(each) for each in line.split(",")[:2]] for line in lines])
    inside = np.sort(values[values[:, 0] <= histograms.end_ns // 10**6, 1])
    row = row_of(histograms, "read")
    assert row.p50_ns is not None
    # A millisecond more or less at the end, and a bin.
    low, high = np.percentile(inside, [49, 51])
    assert low * 0.98 <= row.p50_ns <= high * 1.02


def test_averages_hold_since_the_row_before(tmp_path: Path) -> None:
    """Two seconds at 1 MiB/s, one at 4 MiB/s: on average 2 MiB/s."""
    log = read(tmp_path / "a_bw.log", "1000,1024,0,0\n2000,1024,0,0\n3000,4096,0,0\n")
    assert row_of(log, "read").bytes_per_s == pytest.approx(2 * 2**20)
    rates = [row.bytes_per_s for row in log.rows(1_500_000_000)]
    assert rates == pytest.approx([2**20, 3 * 2**20])
    halves = [row.length_ns for row in log.rows(2_000_000_000)]
    assert halves == [2_000_000_000, 1_000_000_000]


def test_single_ios_are_counted_not_averaged(tmp_path: Path) -> None:
    """Each of 10 I/Os a second took 50 µs: 80 MB/s each, 40 kB/s together."""
    lines = [f"{number * 100},81920,1,4096,0\n" for number in range(31)]
    log = read(tmp_path / "a_bw.1.log", "".join(lines))
    assert row_of(log, "write").bytes_per_s == pytest.approx(31 * 4096 / 3)
    iops = read(tmp_path / "a_iops.1.log", "".join(lines).replace("81920", "1"))
    assert row_of(iops, "write").ios_per_s == pytest.approx(31 / 3)


def test_averages_of_fio_2_have_a_block_size(tmp_path: Path) -> None:
    """fio 2 logs every 500 ms; 100 MiB/s are not one block of 4 KiB in 500 ms."""
    lines = [f"{number * 500 + number % 3},102400,0,4096\n" for number in range(1, 21)]
    log = read(tmp_path / "job_bw.1.log", "".join(lines))
    assert row_of(log, "read").bytes_per_s == pytest.approx(100 * 2**20, rel=0.001)
    assert "averages" in log.form


def test_times_since_1970_are_no_durations(tmp_path: Path) -> None:
    lines = [f"{1_700_000_000_000 + number * 1000},250,0,0,0\n" for number in range(1, 11)]
    log = read(tmp_path / "a_iops.1.log", "".join(lines))
    assert row_of(log, "read").ios_per_s == pytest.approx(250)
    assert row_of(log, "read").length_ns == 10 * 10**9
    with pytest.raises(UsageError, match="begin is unknown"):
        read(tmp_path / "b_iops.1.log", lines[0])


def test_rates_of_several_jobs_are_added(tmp_path: Path) -> None:
    one = "".join(f"{number * 1000},100,0,0,0\n" for number in range(1, 6))
    paths = [tmp_path / f"a_iops.{number}.log" for number in (1, 2, 3)]
    for path in paths:
        path.write_text(one)
    together = read_rate_logs(paths)
    assert together is not None
    assert row_of(together, "read").ios_per_s == pytest.approx(300)
    # per_job_logs=0: the same in one file, with a few milliseconds between the jobs.
    lines = [f"{number * 1000 + job * 3},100,0,0,0\n" for number in range(1, 6) for job in range(3)]
    joined = read(tmp_path / "b_iops.log", "".join(lines))
    assert row_of(joined, "read").ios_per_s == pytest.approx(300, rel=0.01)
    assert "several jobs" in joined.form
    # A short last row of one job is no second job.
    last = read(tmp_path / "c_iops.log", one + "5010,100,0,0,0\n")
    assert row_of(last, "read").ios_per_s == pytest.approx(100)


def test_histograms_of_both_versions_and_coarseness(tmp_path: Path) -> None:
    def line(bins: int, counts: dict[int, int]) -> str:
        return ",".join(str(counts.get(number, 0)) for number in range(bins))

    # 90 I/Os in bin 130 and 10 in bin 640: 132 and 134 ns, 32768 and 33279 ns.
    fine = "".join(f"{t},0,4096,{line(1856, {130: 90, 640: 10})}\n" for t in (500, 1000))
    row = row_of(read(tmp_path / "a_clat_hist.1.log", fine), "read")
    assert (row.ios_per_s, row.p50_ns) == (200, 133)
    assert row.p99_ns == 2 ** (6 + 9) + 2**9 / 2
    old = "".join(f"{t},0,4096,{line(1216, {130: 90, 640: 10})}\n" for t in (500, 1000))
    assert row_of(read(tmp_path / "b_clat_hist.1.log", old), "read").p50_ns == 133_000
    coarse = f"500,0,4096,{line(29, {2: 90})}\n"
    row = row_of(read(tmp_path / "c_clat_hist.1.log", coarse * 2), "read")
    assert row.p50_ns == (128 + 256) / 2
    with pytest.raises(UsageError, match="different bins"):
        read_rate_logs([tmp_path / "a_clat_hist.1.log", tmp_path / "c_clat_hist.1.log"])


def test_show_prints_rows_as_text_csv_and_json(tmp_path: Path) -> None:
    path = tmp_path / "a_bw.1.log"
    path.write_text("".join(f"{number * 1000},1000,0,0,0\n" for number in range(1, 4)))
    assert "averages, in KiB/s" in uflip("show", path).out
    rows = list(csv.DictReader(io.StringIO(uflip("show", path, "--every", "1s", "--csv").out)))
    assert [row["bytes_per_s"] for row in rows] == ["1024000.0"] * 3
    document = json.loads(uflip("show", path, "--every", "2s", "--json").out)
    assert (document["quantity"], len(document["rows"])) == ("bw", 2)
    assert "up to 1000000 rows" in uflip("show", path, "--every", "1ns").err
    other = tmp_path / "a_iops.1.log"
    other.write_text(path.read_text())
    assert "one quantity" in uflip("show", path, other).err
    # They are rates, and never response times.
    assert "uflip show" in uflip("analyse", path).err
    assert uflip("import", "auto", path, "--out", tmp_path / "out").code == 5


def test_response_times_of_several_jobs_are_merged(tmp_path: Path) -> None:
    """Each job alone, all together, and over time."""
    for job, value in ((1, 1_000_000), (2, 3_000_000)):
        lines = [f"{number * 10 + 10},{value},0,4096,0\n" for number in range(100)]
        (tmp_path / f"a_clat.{job}.log").write_text("".join(lines))
    paths = [tmp_path / f"a_clat.{job}.log" for job in (1, 2)]
    text = uflip("show", *paths).out
    assert text.index("a_clat.1.log") < text.index("a_clat.2.log") < text.index("all 2 files")
    assert "mean 1 ms" in text
    assert "mean 3 ms" in text
    assert "mean 2 ms" in text
    document = json.loads(uflip("show", *paths, "--json").out)
    assert (document["ios"], document["response_time_ns"]["mean"]) == (200, 2e6)
    rows = json.loads(uflip("show", *paths, "--every", "500ms", "--json").out)["runs"][0]["rows"]
    assert sum(row["ios"] for row in rows) == 200
    assert rows[0]["ios_per_s"] == pytest.approx(200, rel=0.03)


def test_averages_have_no_rows_over_time(tmp_path: Path) -> None:
    path = tmp_path / "a_clat.1.log"
    path.write_text("".join(f"{number * 500},70000,0,0,0\n" for number in range(1, 40)))
    assert "averages" in uflip("show", path).out
    assert "omit log_avg_msec" in uflip("show", path, "--every", "1s").err
