"""Do zones and counters work on drives behind a kernel? Tested under QEMU."""

import os
import re
from pathlib import Path

import pytest

from guest import ROOT, in_guest, places_data, pytest_command

GUEST = ROOT / "tests" / "guest"
FILES = ("zoned_disk.py", "counters_of_drives.py", "nvme_commands.py", "placement_handles.py")


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
@pytest.mark.parametrize("name", FILES)
def test_drives_behind_a_kernel(name: str, tmp_path: Path) -> None:
    """Every test of a file of `tests/guest` passes there, and none is skipped."""
    if name == "placement_handles.py" and not places_data():
        pytest.skip("needs QEMU 8.0 or later: this one has no Flexible Data Placement")
    tests = GUEST / name
    code, printed = in_guest(pytest_command(tests), tmp_path)
    count = len(re.findall(r"^def test_", tests.read_text(encoding="utf-8"), flags=re.MULTILINE))
    # A test with parameters counts more than once; skipped tests would be listed as well.
    passed = re.search(r"^(\d+) passed in", printed, flags=re.MULTILINE)
    assert code == 0, printed[-20_000:]
    assert passed is not None, printed[-20_000:]
    assert int(passed[1]) >= count
