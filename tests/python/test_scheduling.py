"""Do related tests go to one worker, and does a worker that dies cost only its current test?"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CONFTEST = """
import pytest
from scheduling import RestartingScheduler

@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return RestartingScheduler(config, log)
"""
GOOD = "def test_one():\n    pass\n\ndef test_two():\n    pass\n"
DIES = "import os\n\ndef test_dies():\n    os._exit(1)\n\n"


@pytest.mark.parametrize("workers", [1, 2])
def test_dead_worker_is_replaced_and_its_work_done(tmp_path: Path, workers: int) -> None:
    """The file in which it dies is the last: the other workers have been shut down by then."""
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for name, text in (("a", GOOD), ("b", GOOD), ("c", DIES + GOOD)):
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    chosen = (
        "-n",
        str(workers),
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "-p",
        "no:cacheprovider",
    )
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *chosen, str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert process.returncode == 1, process.stdout + process.stderr
    assert re.search(r"1 failed, 6 passed", process.stdout), process.stdout
    assert "test_dies" in process.stdout


def test_scheduler_groups_tests_that_belong_together(
    request: pytest.FixtureRequest,
) -> None:
    """Without a path pytest reads the conftest.py of `testpaths`, not of folders in them:
    workers, which collect, would read ours, and the process that distributes the tests would not.
    """
    worker_input = getattr(request.config, "workerinput", None)
    if worker_input is None:
        pytest.skip("one process runs all tests")
    assert worker_input.get("shared_out_by") == "ByWork"
