"""Does what is said of zones hold on a zoned drive, with a kernel between? Asked under QEMU."""

import os
import re
from pathlib import Path

import pytest

from guest import ROOT, in_guest, pytest_there

TESTS = ROOT / "tests" / "guest" / "zoned_disk.py"


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
def test_what_is_said_of_zones_holds_on_a_zoned_drive(tmp_path: Path) -> None:
    """Every test of `tests/guest/zoned_disk.py` passes there, and none is left out."""
    code, printed = in_guest(pytest_there(TESTS), tmp_path)
    count = len(re.findall(r"^def test_", TESTS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    # One that has parameters counts more than once, one that is skipped would be said beside.
    passed = re.search(r"^(\d+) passed in", printed, flags=re.MULTILINE)
    assert code == 0, printed[-20_000:]
    assert passed is not None, printed[-20_000:]
    assert int(passed[1]) >= count
