"""All parsers of foreign bytes in Python, a function each: it returns or raises an error.

`test_parsers` replays documents and mutations of them; `tools/fuzz_parsers.py` fuzzes with
libFuzzer (`make fuzz`). A target may raise `UflipError`, except of the internal kind. Any other
exception, a hang, and a different result of a second read are findings.
"""

import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from foreign_texts import CONFIGURATIONS, DISKSPD, ELBENCHO, IOSTAT, OCP, SMART

from uflip import durability
from uflip.analysis.files import read_times
from uflip.analysis.fio_output import read_fio_output
from uflip.analysis.tool_results import read_smart_difference, read_tool_result
from uflip.benchmark.fio_job_file import read_job_file
from uflip.benchmark.plan_file import read_plan, write_plan
from uflip.data import ledger, manifest, run, run_summary, state_record
from uflip.device.catalogue import inspect_device
from uflip.device.url import parse_url
from uflip.errors import UflipError
from uflip.profiles import profile_sources
from uflip.profiles.simulators import import_profile
from uflip.units import parse_count, parse_duration, parse_number, parse_size

Target = Callable[[bytes], None]
DOCUMENT_PATH = Path("document")  # the path in errors; it does not exist


@contextmanager
def temporary_file(content: bytes, ending: str = "") -> Iterator[Path]:
    """Make a file with this content, for parsers that open a file."""
    with tempfile.NamedTemporaryFile(suffix=ending, dir="/dev/shm") as file:
        file.write(content)
        file.flush()
        yield Path(file.name)


@cache
def demo() -> Any:
    return inspect_device("sim:demo")


def read_manifest(data: bytes) -> None:
    parsed = manifest.parse(DOCUMENT_PATH, data)
    assert manifest.parse(DOCUMENT_PATH, manifest.encode(parsed)) == parsed


def read_ledger(data: bytes) -> None:
    ledger.parse(DOCUMENT_PATH, data)


def read_summaries(data: bytes) -> None:
    with temporary_file(data) as path:
        parsed = run_summary.read(path)
    with temporary_file(run_summary.encode(parsed)) as path:
        assert run_summary.read(path) == parsed


def read_metadata(data: bytes) -> None:
    run.metadata_of(DOCUMENT_PATH, data.decode(errors="replace"))


def read_ending(data: bytes) -> None:
    run.ended_of(DOCUMENT_PATH, data.decode(errors="replace"))


def read_state(data: bytes) -> None:
    with temporary_file(data) as path:
        parsed = state_record.read(path)
    assert parsed is not None
    with temporary_file(state_record.encode(parsed)) as path:
        assert state_record.read(path) == parsed


def read_plan_file(data: bytes) -> None:
    with temporary_file(data) as path:
        parsed = read_plan(path, demo())
    with temporary_file(write_plan(parsed).encode()) as path:
        assert read_plan(path, demo()).runs == parsed.runs


def read_profile(data: bytes) -> None:
    with temporary_file(data, ".toml") as path:
        profile_sources(str(path))


def read_series(data: bytes) -> None:
    for ending in (".csv", ".parquet"):
        with temporary_file(data, ending) as path:
            read_times(path)


def read_fio_job(data: bytes) -> None:
    with temporary_file(data, ".fio") as path:
        read_job_file(path, lambda: 1 << 30)


def read_results_of_fio(data: bytes) -> None:
    with temporary_file(data) as path:
        read_fio_output(path)


def read_results_of_tools(data: bytes) -> None:
    with temporary_file(data) as path:
        read_tool_result(path)


def read_smart_logs(data: bytes) -> None:
    with temporary_file(data) as path:
        read_smart_difference([path, path])


def read_simulators(data: bytes) -> None:
    """Translate a configuration: the result is TOML."""
    with temporary_file(data) as path:
        tomllib.loads(import_profile(path).text(path.name))


def read_words(data: bytes) -> None:
    """Parse words of a command line, each with every parser that may receive it."""
    for word in data.decode(errors="replace").split("\n")[:20]:
        for parser in (
            parse_size, parse_duration, parse_count, parse_number, parse_url,
            durability.durability_or_default,
        ):  # fmt: skip
            expect_no_internal_error(parser, word)


def expect_no_internal_error(parser: Callable[[Any], Any], data: Any) -> None:
    """Run a parser on an input; raise internal errors only."""
    try:
        parser(data)
    except UflipError as error:
        if error.kind == UflipError.kind:
            raise


TARGETS: dict[str, Target] = {
    "ending": read_ending,
    "fio-job": read_fio_job,
    "fio-output": read_results_of_fio,
    "ledger": read_ledger,
    "manifest": read_manifest,
    "metadata": read_metadata,
    "plan": read_plan_file,
    "profile": read_profile,
    "series": read_series,
    "simulators": read_simulators,
    "smart": read_smart_logs,
    "state": read_state,
    "summaries": read_summaries,
    "tools": read_results_of_tools,
    "words": read_words,
}


def documents(folder: Path) -> dict[str, list[bytes]]:
    """Return valid documents of each kind as seeds; `folder` is empty."""
    from command_line import uflip

    golden = Path(__file__).resolve().parents[1] / "golden"
    plan = folder / "plan.toml"
    outcome = uflip("plan", "sim:demo", "--only", "order", "--scale", "quick", "--out", plan)
    assert outcome.code == 0, outcome.err
    short = b"[[runs]]".join(plan.read_bytes().split(b"[[runs]]")[:3])
    profiles = Path(__file__).resolve().parents[2] / "python" / "uflip" / "profiles"
    runs = sorted(golden.glob("results/runs/*.parquet"))
    documents_by_kind = {
        "ledger": [(golden / "results" / "ledger.jsonl").read_bytes()],
        "manifest": [(golden / "results" / "manifest.json").read_bytes()],
        "metadata": [b'{"id": "1", "counters": {"pages_read": 1}, "elapsed_ns": 5, "pause_ns": 0}'],
        "ending": [
            b'{"converged": true, "startup_ios": 3, "series": [{"half_width_ns": 1.5, '
            b'"period_ios": 1, "reasons": ["a"], "slow_episodes": 2}], "ios": 100}'
        ],
        "fio-job": [
            b"[global]\nsize=1m\nbs=4k,16k\n; two jobs\n[a]\nrw=randrw\nrwmixread=70\n"
            b"rate_iops=700,300\nrate_process=poisson\n[b]\nrw=write\nthinktime=1ms\n"
            b"thinktime_blocks=4\nnumjobs=2\noffset_increment=1m\n",
            b"[c]\nrw=randread\nsize=64k\nrandom_distribution=zoned:80/20:20/80\nrandseed=0x9\n",
        ],
        "fio-output": [
            b'fio: a message\n{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": '
            b'{"io_bytes": 4096, "bw_bytes": 10, "iops": 2.5, "runtime": 3, "total_ios": 1, '
            b'"lat_ns": {"min": 1, "max": 3, "mean": 2.5, "stddev": 0.5}, '
            b'"clat_ns": {"percentile": {"50.000000": 2, "99.000000": 3}}}}]}',
            ("3;fio-3.33;j;0;0;" + ";".join(["40"] * 12 + ["50.0%=7"] * 20 + ["3"] * 9)).encode(),
        ],
        "plan": [short],
        "profile": [(profiles / f"{name}.toml").read_bytes() for name in ("demo", "dfc")],
        "series": [b"time_us\n1\n2\n3.5\n", b"index,response_time_ns,mode\n0,5,read\n1,6,write\n",
                   *(path.read_bytes() for path in runs[:2])],
        "state": [STATE],
        "simulators": [text.encode() for text in CONFIGURATIONS.values()],
        "smart": [SMART.format(written=7).encode(), OCP.format(media=9).encode()],
        "tools": [DISKSPD.encode(), ELBENCHO.encode(), IOSTAT.encode()],
        "summaries": [
            path.read_bytes() for path in sorted(golden.glob("results/summaries/*.json"))
        ],
        "words": [b"4KiB\n1.5ms\n100k\n1e3\nsim:demo?gc=greedy&read_ns=25us\nfile:a/b\nflush:8"],
    }  # fmt: skip
    assert documents_by_kind.keys() == TARGETS.keys()
    return documents_by_kind


STATE = b"""{"format": "uflip-state", "format_version": 1, "uflip_version": "0.1.0",
 "updated_utc": "2026-01-02T03:04:05Z", "device": {"kind": "file", "url": "file:x", "brand": "ab"},
 "request": {"state": "random", "seed": 1, "target_offset": 0, "target_size": 1048576,
             "io_size_max": 131072, "random_bytes": 1048576},
 "total_ios": 20, "done_ios": 20, "state_id": "abc", "written": {"mtime_ns": 5}}"""
