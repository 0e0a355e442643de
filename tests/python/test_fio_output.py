"""The output of fio in all its forms: one run gives the same numbers in each."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip

from uflip.analysis.fio_output import FioOutput, is_fio_output, read_fio_output
from uflip.errors import UsageError

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


def run_fio(name: str, *options: str) -> FioOutput:
    Path("target").write_bytes(bytes(4 << 20))
    job = ["--name=my job", "--rw=randrw", "--filename=target", "--size=4m", "--numjobs=2"]
    subprocess.run(["fio", *job, *options, f"--output={name}"], check=True, capture_output=True)
    assert is_fio_output(Path(name))
    return read_fio_output(Path(name))


@needs_fio
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_terse_has_the_numbers_of_json(version: int, workdir: Path) -> None:
    options = ("--output-format=json,terse", f"--terse-version={version}", "--group_reporting")
    both = run_fio("both", *options)
    lines = [line for line in Path("both").read_text().splitlines() if line[:2] == f"{version};"]
    Path("terse").write_text("\n".join(lines) + "\n")
    terse = read_fio_output(Path("terse"))
    assert (both.format, terse.format) == ("fio json", f"fio terse {version}")
    assert [each.direction for each in terse.summaries] == ["read", "write"]
    for one, other in zip(both.summaries, terse.summaries, strict=True):
        assert (one.job, one.direction, one.bytes) == (other.job, other.direction, other.bytes)
        assert other.iops == pytest.approx(one.iops, abs=1)
        assert other.bytes_per_s == pytest.approx(one.bytes_per_s, rel=0.001)
        assert other.mean_ns == pytest.approx(one.mean_ns, rel=0.001)
        assert one.percentiles.keys() == other.percentiles.keys()
        for share, value in one.percentiles.items():
            assert other.percentiles[share] == pytest.approx(value, abs=1000), share


@needs_fio
def test_json_has_the_numbers_of_fio(workdir: Path) -> None:
    output = run_fio("out.json", "--output-format=json+")
    document = json.loads(Path("out.json").read_text())
    expected: list[Any] = [
        job[direction] for job in document["jobs"] for direction in ("read", "write")
    ]
    assert len(output.summaries) == len(expected) == 4
    for ours, theirs in zip(output.summaries, expected, strict=True):
        assert (ours.ios, ours.bytes) == (theirs["total_ios"], theirs["io_bytes"])
        assert ours.mean_ns == theirs["lat_ns"]["mean"]
        assert ours.percentiles["99"] == theirs["clat_ns"]["percentile"]["99.000000"]
        assert ours.ios is not None
        assert ours.iops == pytest.approx(ours.ios * 1e9 / ours.runtime_ns, rel=0.01)
    text = uflip("show", "out.json").out
    assert "computed by fio" in text
    assert "p99.9" in text
    shown = json.loads(uflip("show", "out.json", "--json").out)
    assert shown["summaries"][0]["mean_ns"] == expected[0]["lat_ns"]["mean"]


def test_microseconds_of_fio_2_are_scaled(workdir: Path) -> None:
    part = {
        "io_bytes": 400, "bw": 4000, "iops": 1000.5, "runtime": 100,
        "clat": {"mean": 90.5, "percentile": {"1.000000": 80, "99.000000": 120, "0.00": 0}},
        "lat": {"min": 70, "max": 130, "mean": 91.5, "stddev": 2.5},
    }  # fmt: skip
    document = {"fio version": "fio-2.16", "jobs": [{"jobname": "a", "read": part, "write": {}}]}
    Path("a.json").write_text("fio: a message before it\n" + json.dumps(document))
    (summary,) = read_fio_output(Path("a.json")).summaries
    assert (summary.bytes, summary.bytes_per_s) == (400 * 1024, 4000 * 1024)
    assert (summary.mean_ns, summary.min_ns) == (91_500, 70_000)
    assert summary.percentiles == {"1": 80_000, "99": 120_000}


@pytest.mark.parametrize(
    "content",
    ['{"fio version": 1}', '{"fio version": "x", "jobs": [3]}', '{"fio version"', "3;fio;j;0;0;x" +
     ";1%=2" * 90, '}{"fio version"'],
)  # fmt: skip
def test_damaged_output_is_refused(content: str, workdir: Path) -> None:
    Path("bad").write_text(content)
    with pytest.raises(UsageError, match="output of fio cannot be read"):
        read_fio_output(Path("bad"))


def test_other_verbs_name_the_one_for_it(workdir: Path) -> None:
    Path("a.json").write_text('{"fio version": "fio-3.33", "jobs": []}')
    for arguments in (("analyse", "a.json"), ("import", "auto", "a.json", "--out", "r")):
        outcome = uflip(*arguments)
        assert outcome.code in (2, 5)
        assert "uflip show a.json" in outcome.err


def test_a_table_with_semicolons_is_not_terse(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("3;233316;0;4096;0\n3;11397;1;4096;0\n")
    assert not is_fio_output(path)


@needs_fio
def test_the_last_report_of_a_status_interval_counts(workdir: Path) -> None:
    every = ("--status-interval=1", "--time_based", "--runtime=2", "--rate_iops=100")
    output = run_fio("out.json", "--output-format=json", *every)
    assert "reports" in output.format
    last = json.loads("{" + Path("out.json").read_text().rpartition("\n{")[2])
    assert output.summaries[0].ios == last["jobs"][0]["read"]["total_ios"]
