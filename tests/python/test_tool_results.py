"""Results of other programs: small files whose numbers are computed by hand."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import uflip
from foreign_texts import DISKSPD, ELBENCHO, IOSTAT, OCP, SMART

from uflip.analysis.fio_output import FioOutput, is_fio_output, read_fio_output
from uflip.analysis.tool_results import read_smart_difference, read_tool_result, tool_of
from uflip.errors import UsageError


def test_diskspd_adds_the_targets_of_all_threads(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text(DISKSPD)
    result = read_tool_result(path)
    assert result.tool == "diskspd 2.1.0"
    read, write = result.rows
    assert (read.direction, read.ios_per_s, read.bytes_per_s) == ("read", 2000, 8_192_000)
    assert (write.ios_per_s, write.bytes_per_s) == (100, 409_600)
    assert (read.mean_ns, write.mean_ns) == (250_000, 500_000)
    assert write.percentiles == {"50": 400_000, "99.9": 4_000_000}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_files_of_windows_are_read(encoding: str, tmp_path: Path) -> None:
    """PowerShell writes UTF-16."""
    path = tmp_path / "out.xml"
    path.write_bytes(DISKSPD.replace("\n", "\r\n").encode(encoding))
    assert read_tool_result(path).rows[0].ios_per_s == 2000


def test_elbencho_has_the_rates_of_the_last_thread(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.gz"
    path.write_bytes(gzip.compress(ELBENCHO.encode()))
    assert tool_of(path) == "elbencho"
    write, read = read_tool_result(path).rows
    # 11 MiB in 2 s are known better than 5 MiB/s, which is rounded down.
    assert (write.ios_per_s, write.bytes_per_s) == (1500, 11 * 2**20 / 2)
    assert (read.direction, read.bytes_per_s) == ("read", 31 * 2**20)
    assert (write.mean_ns, read.mean_ns) == (640_000, 120_000)


def test_iostat_leaves_out_the_report_since_boot(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(IOSTAT)
    result = read_tool_result(path)
    read, write = result.rows
    assert (read.name, read.ios_per_s, read.bytes_per_s) == ("sda", 200, 800 * 1024)
    # 100 reads of 1 ms and 300 of 2 ms; all writes are in the second report.
    assert read.mean_ns == pytest.approx((100 * 1 + 300 * 2) / 400 * 1e6)
    assert (write.ios_per_s, write.mean_ns) == (5, 5e6)
    assert read.in_flight == pytest.approx(0.4)
    assert "mean of 2 reports" in uflip("show", path).out


def test_sysstat_11_has_another_name_of_the_queue(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(IOSTAT.replace("aqu-sz", "avgqu-sz"))
    assert read_tool_result(path).rows[0].in_flight == pytest.approx(0.4)


def test_a_mix_of_elbencho_has_reads_and_writes(tmp_path: Path) -> None:
    """As `Statistics.cpp` writes it: the reads of a mix have columns of their own."""
    head, write, _ = ELBENCHO.split("\n", 2)
    names = ("IOPS [last]", "MiB/s [last]", "MiB [last]", "IO lat us [avg]")
    head += "".join(f",rwmix read {name}" for name in names)
    path = tmp_path / "out.csv"
    path.write_text(f"{head}\n{write.replace('WRITE', 'RWMIX70')},3500,13,26,90\n")
    rows = read_tool_result(path).rows
    assert [(row.direction, row.ios_per_s, row.mean_ns) for row in rows] == [
        ("write", 1500, 640_000),
        ("read", 3500, 90_000),
    ]
    assert rows[1].bytes_per_s == 13 * 2**20


def fio_json(version: str, **job: Any) -> str:
    """A report as fio 2 (without a suffix of the latencies) or fio 3 prints it."""
    suffix = "" if version < "fio-3" else "_ns"
    direction = {
        "io_bytes": 40960000, "io_kbytes": 40000, "bw": 4000, "iops": 1000.0, "runtime": 10000,
        "total_ios": 10000, f"lat{suffix}": {"min": 1, "max": 9, "mean": 5.0, "stddev": 1.0},
        f"clat{suffix}": {"percentile": {"50.000000": 4}},
    }  # fmt: skip
    jobs = [{"jobname": "a", "error": 0, "read": direction} | job]
    return json.dumps({"fio version": version, "jobs": jobs}, indent=1)


def fio_output(tmp_path: Path, text: str) -> FioOutput:
    path = tmp_path / "fio.json"
    path.write_text(text)
    return read_fio_output(path)


def test_bytes_of_early_fio_3_are_bytes(tmp_path: Path) -> None:
    """fio 3.0 to 3.6 printed io_bytes in bytes, and no bw_bytes yet; fio 2 printed KiB."""
    (summary,) = fio_output(tmp_path, fio_json("fio-3.1")).summaries
    assert (summary.bytes, summary.bytes_per_s, summary.mean_ns) == (40960000, 4000 * 1024, 5)
    of_fio_2 = fio_json("fio-2.16").replace('"io_kbytes": 40000,', "").replace("40960000", "40000")
    (summary,) = fio_output(tmp_path, of_fio_2).summaries
    assert (summary.bytes, summary.mean_ns) == (40960000, 5000)


def test_jobs_that_failed_have_their_error(tmp_path: Path) -> None:
    zero = {"total_ios": 1, "io_bytes": 0, "io_kbytes": 0, "lat_ns": {"mean": 0.0, "max": 0}}
    output = fio_output(tmp_path, fio_json("fio-3.33", error=28, read={}, write=zero))
    assert output.errors == {"a": 28}
    assert output.summaries[0].mean_ns is None
    shown = uflip("show", tmp_path / "fio.json").out
    assert "a: ended with error 28 (No space left on device)" in shown
    assert "0 ns" not in shown
    # No number of the system.
    assert fio_output(tmp_path, fio_json("fio-3.33", error=10**30)).errors == {}


def test_unified_reports_and_numbers_that_are_none_are_read(tmp_path: Path) -> None:
    text = fio_json("fio-3.33").replace('"read"', '"mixed"')
    assert fio_output(tmp_path, text).summaries[0].direction == "mixed"
    text = fio_json("fio-2.1.3").replace('"stddev": 1.0', '"stddev" : -nan')
    (summary,) = fio_output(tmp_path, text).summaries
    assert (summary.std_ns, summary.mean_ns) == (None, 5000)


def test_write_amplification_follows_from_smart_logs(tmp_path: Path) -> None:
    texts = {
        "a.json": SMART.format(written=1000),
        "b.json": SMART.format(written=3000).replace('"data_units_read": 1000',
                                                     '"data_units_read": 1500'),
        "c.json": OCP.format(media=10**9),
        "d.json": OCP.format(media=10**9 + 3 * 2000 * 512_000),
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    a, b, c, d = (tmp_path / name for name in texts)
    found = read_smart_difference([a, b, c, d])
    assert found.host_bytes_written == 2000 * 512_000
    assert found.host_bytes_read == 500 * 512_000
    assert found.media_bytes_written == 3 * 2000 * 512_000
    assert found.write_amplification == pytest.approx((3 * 2000 / 2001, 3 * 2000 / 1999))
    assert read_smart_difference([a, b]).write_amplification is None
    outcome = uflip("show", a, b, c, d)
    assert "write amplification  2.999 to 3.002" in outcome.out
    document = json.loads(uflip("show", a, b, "--json").out)
    assert document["host_bytes_written"] == 2000 * 512_000
    with pytest.raises(UsageError, match="decreased"):
        read_smart_difference([b, a])
    assert "before and after" in uflip("show", a).err


def test_smartctl_and_intel_s_log_are_read(tmp_path: Path) -> None:
    def log(units: int, serial: str, nand: int) -> str:
        return json.dumps(
            {
                "serial_number": serial,
                "nvme_smart_health_information_log": {
                    "data_units_read": 1, "data_units_written": units, "host_writes": units},
                "Device stats": {"nand_bytes_written": {"normalized": 100, "raw": nand}},
            }
        )  # fmt: skip

    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path, text in zip(paths, (log(0, "X", 5), log(65536, "X", 2005), log(9, "Y", 9)),
                          strict=True):  # fmt: skip
        path.write_text(text)
    found = read_smart_difference(paths[:2])
    assert found.write_commands == 65536
    assert found.media_bytes_written == 2000 * 32 * 2**20
    low, high = found.write_amplification or (0, 0)
    assert low < 2000 / 1000 * (32 * 2**20 * 1000) / (65536 * 512_000) < high
    with pytest.raises(UsageError, match="several drives"):
        read_smart_difference([paths[0], paths[2]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DISKSPD.replace("<TestTimeSeconds>10.00", "<TestTimeSeconds>0"), "not a time"),
        (DISKSPD.replace("</Results>", ""), "ParseError"),
        (DISKSPD.replace("<Results>", '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "y">]>'
                         "<Results>", 1), "document type"),
        (ELBENCHO.replace("1500", "many"), "ValueError"),
        (IOSTAT.replace('"r/s"', '"tps"'), "iostat -x"),
        (IOSTAT[:-40], "DecodeError"),
    ],
)  # fmt: skip
def test_damaged_results_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_tool_result(path)
    assert reason in str(error.value)


def test_results_have_no_rows_over_time(tmp_path: Path) -> None:
    path = tmp_path / "out.xml"
    path.write_text(DISKSPD)
    assert "no values over time" in uflip("show", path, "--every", "1s").err
    assert "one file" in uflip("show", path, path).err


def test_counters_beyond_128_bits_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(OCP.format(media=10**300))
    assert tool_of(path) is None
    path.write_text('{"data_units_written": 1e999}')
    assert tool_of(path) is None


# The output of fio in all its forms: one run gives the same numbers in each.


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
