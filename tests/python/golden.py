"""Makes tests/golden/results anew: `python tests/python/golden.py`."""

import shutil
from dataclasses import replace
from pathlib import Path

import stored

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "results"


def make(folder: Path) -> None:
    """Measure two patterns and a mix, one of them twice, on a simulated device."""
    writes = stored.baseline_run(2, "RW", io_ignore=10)
    again = replace(writes, id="0004-baseline-RW-io_size-32768-r2", repetition=2)
    runs = [stored.baseline_run(1, "SR"), writes, stored.mix_run(3, "SR", "RW", 3), again]
    stored.results(folder, runs, host={"kernel": "Linux 6.18", "command_line": ["uflip", "test"]})


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    make(GOLDEN)
