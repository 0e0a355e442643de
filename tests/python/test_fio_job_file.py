"""Job files of fio as patterns: fio runs them too, and makes the same I/Os."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import uflip

from uflip.benchmark.fio_job_file import MEANINGS, read_job_file
from uflip.errors import UsageError
from uflip.spec import Basic, Mix, Parallel

SMALL = "sim:demo?blocks_per_die=64"
SPACE = 4 << 20
HEAD = "[global]\nfilename=${UFLIP_TARGET}\nthread=1\nallow_file_create=0\n"


def read(text: str) -> Any:
    Path("job.fio").write_text(text)
    (stage,) = read_job_file(Path("job.fio"), lambda: SPACE)
    return stage


def ios_of_fio(text: str) -> Any:
    """Return (offset, size, 1 for a write) of every I/O that fio makes."""
    Path("job.fio").write_text(HEAD + text)
    Path("scratch").write_bytes(bytes(SPACE))
    for old in Path().glob("run_lat*"):
        old.unlink()
    process = subprocess.run(
        ["fio", "job.fio", "--write_lat_log=run", "--log_offset=1", "--per_job_logs=0"],
        env=os.environ | {"UFLIP_TARGET": "scratch"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    (path,) = Path().glob("run_lat*.log")
    rows = [line.split(", ") for line in path.read_text().splitlines()]
    return np.array([(int(row[4]), int(row[3]), int(row[2])) for row in rows])


def ios_of_uflip(device: str = SMALL, *options: str) -> Any:
    """Return the same of `uflip pattern`, and the times of submission."""
    Path("ios.csv").unlink(missing_ok=True)
    outcome = uflip("pattern", device, "--fio-job", "job.fio", "--trace", "ios.csv", "-q", *options)
    assert outcome.code == 0, outcome.err
    names, *rows = (line.split(",") for line in Path("ios.csv").read_text().splitlines())
    of = {name: [row[names.index(name)] for row in rows] for name in names}
    modes = {"read": 0, "write": 1}
    ios = zip(map(int, of["offset_bytes"]), map(int, of["io_size_bytes"]),
              map(modes.__getitem__, of["mode"]), strict=True)  # fmt: skip
    return np.array(list(ios)), np.array([int(each) for each in of["submit_ns"]])


EXACT = {
    "one pass": "[a]\nrw=write\nbs=16k\nsize=256k\noffset=64k\n",
    "fewer": "[a]\nrw=read\nsize=1m\nnumber_ios=20\n",
    "several passes": "[a]\nrw=read\nsize=64k\nio_size=256k\n",
    "size of reads alone": "[a]\nrw=write\nbs=8k,\nsize=64k\nnumber_ios=0\n",
    "size of writes alone": "[a]\nrw=readwrite\nrwmixread=0\nbs=,8k\nsize=64k\nio_size=0\n",
    "pauses": "[a]\nrw=read\nsize=64k\nthinktime=1ms\nthinktime_blocks=4\n",
    "loops": "[a]\nrw=write\nsize=64k\nloops=3\n",
    "loops of fewer": "[a]\nrw=read\nsize=64k\nnumber_ios=5\nloops=3\n",
    "loops of a share": "[a]\nrw=read\nsize=64k\nio_size=25%\nloops=3\n",
    "part of an I/O": "[a]\nrw=read\nsize=64k\nio_size=10000\n",
    "one pass within runtime": "[a]\nrw=read\nsize=64k\nrate_iops=400\nruntime=30\n",
    "share": "[a]\nrw=write\nsize=33%\nbs=16k\n",
    "share of a part": "[a]\nrw=read\noffset=10%\nsize=50%\nio_size=10%\n",
    "share beyond the end": "[a]\nrw=read\noffset=10%\nsize=95%\nbs=64k\n",
    "rest": "[a]\nrw=read\noffset=75%\n",
    "shares of copies": "[a]\nrw=read\nsize=25%\noffset=33%\nnumjobs=2\noffset_increment=1m\n",
}
RANDOM = {
    "reads": "[a]\nrw=randread\nbs=8k\nsize=1m\nnorandommap\n",
    "mix": "[a]\nrw=randrw\nrwmixread=70\nsize=1m\nnumber_ios=200\nnorandommap\n",
    "sizes": "[a]\nrw=randrw\nbs=4k,16k\nrwmixwrite=30\nsize=1m\nnumber_ios=60\nnorandommap\n",
    "rates": "[a]\nrw=randrw\nrate_iops=700,300\nsize=1m\nnumber_ios=200\nioengine=io_uring\n"
             "iodepth=4\n",
    "zipf": "[a]\nrw=randwrite\nrandom_distribution=zipf:1.2\nsize=1m\n",
    "loops": "[a]\nrw=randrw\nsize=256k\nloops=3\nnorandommap\n",
    "side by side": "[a]\nrw=randread\nsize=1m\n\n[b]\nrw=write\nbs=64k\nsize=1m\noffset=1m\n",
    "copies": "[a]\nrw=write\nsize=256k\noffset_increment=256k\nnumjobs=3\n",
}  # fmt: skip


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", EXACT)
def test_sequences_are_those_of_fio(name: str, workdir: Path) -> None:
    by_fio = ios_of_fio(EXACT[name])
    device = ["file:same", "--buffered", "--size", str(SPACE)] if "%" in EXACT[name] else []
    ours = ios_of_uflip(*device)[0]
    if "numjobs" in EXACT[name]:
        by_fio, ours = np.sort(by_fio, axis=0), np.sort(ours, axis=0)
    np.testing.assert_array_equal(by_fio, ours)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", RANDOM)
def test_random_ios_have_fio_s_numbers(name: str, workdir: Path) -> None:
    by_fio = ios_of_fio(RANDOM[name])
    ours, submitted = ios_of_uflip()
    assert len(by_fio) == pytest.approx(len(ours), abs=len(ours) // 10 if name == "sizes" else 0)
    # Random draws of a mix differ by chance: four standard deviations.
    chance = 4 * np.sqrt(0.21 * len(ours)) if name in ("mix", "sizes", "rates", "loops") else 0
    assert abs(by_fio[:, 2].sum() - ours[:, 2].sum()) <= 2 * chance
    for direction in (0, 1):
        theirs, here = (rows[rows[:, 2] == direction] for rows in (by_fio, ours))
        assert set(theirs[:, 1]) == set(here[:, 1])
        if len(theirs):
            assert abs(int(theirs[:, 0].min()) // 4096 - int(here[:, 0].min()) // 4096) < 100
            assert abs(int(theirs[:, 0].max()) // 4096 - int(here[:, 0].max()) // 4096) < 100
    if name == "rates":
        assert submitted.max() == pytest.approx(199 * 1e6, rel=0.01), "1,000 I/Os a second"


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_time_based_job_has_the_arrivals_of_its_runtime(workdir: Path) -> None:
    """A busy machine makes fewer of them in fio: the others are the same."""
    by_fio = ios_of_fio("[a]\nrw=read\nsize=256k\nrate_iops=200\nruntime=400ms\ntime_based\n")
    ours, submitted = ios_of_uflip()
    assert len(ours) == 80
    assert len(by_fio) <= 81
    common = min(len(by_fio), len(ours))
    np.testing.assert_array_equal(by_fio[:common], ours[:common])
    assert submitted.max() == pytest.approx(79 * 5e6, rel=1e-6)


def test_job_of_a_time_ends_at_it_and_leaves_out_its_ramp(workdir: Path) -> None:
    """The I/Os of a longer job, up to the last one that begins within ramp and time."""
    job = "[a]\nrw=randwrite\nsize=1m\nioengine=libaio\niodepth=4\ntime_based\n"
    Path("job.fio").write_text(job + "runtime=3\n")
    longer, begun = ios_of_uflip()
    Path("job.fio").write_text(job + "runtime=500ms\nramp_time=1\n")
    ours, submitted = ios_of_uflip()
    np.testing.assert_array_equal(submitted, begun[begun < 1.5e9])
    np.testing.assert_array_equal(ours, longer[: len(ours)])
    (shown,) = [json.loads(uflip("pattern", SMALL, "--fio-job", "job.fio", "--json", "-q").out)]
    assert shown["spec"]["io_ignore"] == shown["ignored"] == np.sum(begun < 1e9)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_stages_are_runs_one_after_another(workdir: Path) -> None:
    text = ("[a]\nrw=write\nsize=64k\n[b]\nstonewall\nrw=read\nsize=64k\nloops=2\nnumjobs=2\n"
            "[c]\nrw=read\noffset=1m\nsize=32k ; beside b\n")  # fmt: skip
    by_fio = ios_of_fio(text)
    outcome = uflip("pattern", SMALL, "--fio-job", "job.fio", "--trace", "ios.csv", "-q", "--json")
    ours = []
    for number, run in enumerate(json.loads(outcome.out), 1):
        rows = Path(f"ios-{number}.csv").read_text().splitlines()[1:]
        assert len(rows) == run["ios"]
        ours.append(run["ios"])
    is_write = by_fio[:, 2] == 1
    assert ours == [is_write.sum(), len(by_fio) - is_write.sum()] == [16, 72]
    assert is_write[:16].all(), "the writes come first"
    plan = uflip("plan", SMALL, "--fio-job", "job.fio", "--json")
    assert [run["spec"]["kind"] for run in json.loads(plan.out)["runs"]] == ["basic", "parallel"]
    refused = uflip("pattern", SMALL, "--fio-job", "job.fio", "--inside", "results")
    assert (refused.code, "2 stages" in refused.err) == (2, True)


def test_stages_draw_other_addresses(workdir: Path) -> None:
    """Of 600 draws from 1,024 slots 454 differ on average, in two stages too."""
    job = "rw=randread\nsize=4m\nnumber_ios=300\nnorandommap\n"
    for head in ("[global]\nfilename=x\n", "[global]\nfilename=x\nrandseed=7\n"):
        Path("job.fio").write_text(f"{head}[a]\n{job}[b]\nstonewall\n{job}")
        outcome = uflip(
            "pattern", SMALL, "--fio-job", "job.fio", "--trace", "ios.csv", "-q", "--json"
        )
        seeds = [run["spec"]["seed"] for run in json.loads(outcome.out)]
        assert seeds[0] != seeds[1]
        assert "randseed" not in head or seeds == [7, 8]
        rows = [line for number in (1, 2) for line in
                Path(f"ios-{number}.csv").read_text().splitlines()[1:]]  # fmt: skip
        column = Path("ios-1.csv").read_text().splitlines()[0].split(",").index("offset_bytes")
        assert len({row.split(",")[column] for row in rows}) == pytest.approx(454, abs=40)
        for file in Path().glob("ios-*.csv"):
            file.unlink()
    copies = read("[a]\nrw=randread\nsize=64k\nrandseed=7\nnumjobs=2\n")
    assert (copies.seed, [part.seed for part in copies.patterns]) == (7, [None, None])


def test_files_of_fio_follow_one_another(workdir: Path) -> None:
    """Jobs without a file name have one each, and copies too; jobs with the same name share it."""

    def begins(text: str) -> list[int | None]:
        jobs = read("[global]\nsize=100k\n" + text)
        return [part.target_offset for part in jobs.patterns]

    mib = 1 << 20
    assert begins("[a]\nnumjobs=2\n[b]\noffset=1m\n[c]\n") == [0, mib, 3 * mib, 4 * mib]
    assert begins("[a]\nfilename=x\n[b]\nfilename=y\n[c]\nfilename=x\n") == [0, mib, 0]
    assert begins("filename=x\n[a]\n[b]\noffset=8k\n") == [0, 8192]


def test_rate_in_bytes_is_that_of_its_ios(workdir: Path) -> None:
    """400 KiB/s in I/Os of 4 KiB are 100 a second; each direction has its rate."""
    job = read("[a]\nrw=read\nsize=1m\nrate=400k\n")
    assert (job.time, job.interval) == ("fixed", 10_000_000)
    mix = read("[a]\nrw=randrw\nsize=1m\nbs=4k,8k\nrate=400k,800k\nrwmixread=90\n")
    assert (mix.first_percent, mix.interval) == (50, 5_000_000)


def test_first_ios_of_a_job_are_ignored_on_request(workdir: Path) -> None:
    Path("job.fio").write_text("[a]\nsize=64k\n[b]\nfilename=x\nsize=64k\n")
    shown = uflip("pattern", SMALL, "--fio-job", "job.fio", "--io-ignore", "5", "--json", "-q")
    document = json.loads(shown.out)
    assert (document["ios"], document["ignored"]) == (32, 10)


SPLITS = {
    "sizes by weight": ("[a]\nrw=randread\nbssplit=4k/60:64k/40\n", {4: 0.6, 64: 0.4}),
    "the rest": ("[a]\nrw=randwrite\nbssplit=4k/60:8k:16k/\n", {4: 0.6, 8: 0.2, 16: 0.2}),
    "range": ("[a]\nrw=randread\nbsrange=4k-16k\n", {4: 0.25, 8: 0.25, 12: 0.25, 16: 0.25}),
    "of reads": ("[a]\nrw=randrw\nrwmixread=70\nbssplit=4k/50:16k/50,8k/100\n",
                 {4: 0.35, 16: 0.35, 8: 0.3}),
}  # fmt: skip


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("name", SPLITS)
def test_sizes_of_a_split_are_those_of_fio(name: str, workdir: Path) -> None:
    """Each program draws: the shares of sizes agree with the job within four deviations."""
    text, shares = SPLITS[name]
    by_fio = ios_of_fio(text + "norandommap\nsize=4m\nio_size=16m\n")
    ours, _ = ios_of_uflip()
    mean = sum(size * share for size, share in shares.items()) * 1024
    for rows in (by_fio, ours):
        assert set(rows[:, 1]) == {size * 1024 for size in shares}
        deviation = 4 * np.sqrt(0.25 / len(rows))
        for size, share in shares.items():
            of_size = rows[rows[:, 1] == size * 1024]
            assert len(of_size) / len(rows) == pytest.approx(share, abs=deviation)
            # All sizes are aligned to the smallest one of the direction, and to nothing larger.
            slots, rest = np.divmod(of_size[:, 0], 8192 if of_size[0, 2] and "," in text else 4096)
            assert not rest.any()
            chance = 4 * np.sqrt(0.25 / len(of_size)) + 0.01
            assert np.mean(slots % 2) == pytest.approx(0.5, abs=chance)
        assert (rows[:, 0] + rows[:, 1]).max() <= SPACE
        assert len(rows) == pytest.approx(16 * (1 << 20) / mean, rel=0.2)
    if name == "of reads":
        for rows in (by_fio, ours):
            assert (rows[rows[:, 2] == 1][:, 1] == 8192).all()


def test_options_hold_from_global_on(workdir: Path) -> None:
    jobs = read(
        "; a comment\n[global]\nbs=8k\nsize=1m\n[a]\nrw=randread\n[global]\nbs=4k\n[b]\nrw=write\n"
    )
    assert isinstance(jobs, Parallel)
    assert [part.io_size for part in jobs.patterns if isinstance(part, Basic)] == [8192, 4096]
    mix = read("[a]\nrw=randrw\nsize=1m\nrate_iops=500\nrate_process=poisson\n")
    assert isinstance(mix, Mix)
    # As fio: 500 of each direction.
    assert (mix.first_percent, mix.interval, mix.time) == (50, 1_000_000, "poisson")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\nrw=randread\nsize=1m\nbssplit=4k/50:8k/50\n", ["bssplit", "[a]", "norandommap"]),
        ("[a]\nnorandommap\nrw=randread\nbssplit=4k/50:6k/50\n", ["multiples of the smallest"]),
        ("[a]\nnorandommap\nrw=randread\nbssplit=4k/50:8k/60\n", ["bssplit=4k/50:8k/60"]),
        ("[a]\nnorandommap\nrw=randread\nbsrange=4k-10k\n", ["multiples of the smallest"]),
        ("[a]\nnorandommap\nrw=randread\nbsrange=4k-1m\n", ["bsrange=4k-1m"]),
        ("[a]\nnorandommap\nrw=read\nbsrange=4k-16k\n", ["random I/Os"]),
        ("[a]\nrw=read\nsize=150%\n", ["size=150%"]),
        ("[a]\nrw=read\nsize=1m\n[b]\nstonewall\nrw=write\n", ["[b]", "size", "several files"]),
        ("[a]\nrw=read\nsize=1m\ntime_based\n", ["time_based", "runtime"]),
        ("[a]\nrw=read\nsize=1m\nfilename=/dev/sda:/dev/sdb\n", ["filename", "one file"]),
        ("[a]\nrw=read\nsize=1m\nnrfiles=4\n", ["nrfiles=4"]),
        ("[a]\nrw=read\nsize=1m\nrate=1m\nrate_iops=5\n", ["rate=1m", "rate_iops"]),
        ("[a]\nrw=write\nsize=1m\nfsync=1\n", ["fsync", "--durability flush:N"]),
        ("[a]\nrw=read\nsize=1m\noffset=100%\nsize=100%\n", ["size=100%"]),
        ("[a]\nrw=read\nsize=1m\nio_size=2m\nloops=2\n", ["loops=2"]),
        ("[a]\nrw=read\nsize=1m\nverify=md5\n", ["verify"]),
        ("[a]\nrw=sideways\nsize=1m\n", ["rw=sideways"]),
        ("[a]\nrw=randrw\nsize=1m\nthinktime=5\n", ["thinktime=5"]),
        ("[a]\nsize=1m\niodepth=4\nioengine=libaio\nthinktime=5\n", ["thinktime_blocks_type"]),
        ("[a]\nrw=randrw\nsize=1m\nrate_iops=500,\n", ["rate_iops=500,"]),
        ("[a]\nrw=read\nsize=1m\nrate_iops=500\nthinktime=5\n", ["thinktime=5", "rate_iops"]),
        ("[a]\nrw=read\nsize=1m\nioengine=net\n", ["ioengine=net"]),
        ("rw=read\n", ["line 1", "section"]),
        ("[global]\nrw=read\n", ["no job"]),
        ("[a]\nrw=randread\nsize=1m\nrandom_distribution=pareto:0.9\n", ["pareto"]),
    ],
)
def test_unsupported_options_are_named(text: str, words: list[str], workdir: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read(text)
    for word in ("job.fio", *words):
        assert word in str(raised.value)


def test_job_is_planned_and_excludes_other_options(workdir: Path) -> None:
    Path("job.fio").write_text("[a]\nrw=write\nbs=16k\nsize=1m\n")
    plan = uflip("plan", SMALL, "--fio-job", "job.fio", "--json")
    assert plan.code == 0, plan.err
    (run,) = json.loads(plan.out)["runs"]
    assert (run["spec"]["io_size"], run["spec"]["io_count"]) == (16384, 64)
    refused = uflip("pattern", SMALL, "--fio-job", "job.fio", "--mode", "read")
    assert (refused.code, "--fio-job with --mode" in refused.err) == (2, True)


def test_documented_options_are_those_that_are_read() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/reference/formats.md"
    section = page.read_text().split("## Job files of fio")[1]
    for option in MEANINGS:
        assert f"`{option}" in section, option
