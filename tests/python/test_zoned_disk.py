"""Do the rules of zones hold on a zoned drive behind a kernel? Tested under QEMU."""

import os
import re
from pathlib import Path

import pytest

from guest import ROOT, in_guest, pytest_command

TESTS = ROOT / "tests" / "guest" / "zoned_disk.py"


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
def test_zone_rules_hold_on_a_zoned_drive(tmp_path: Path) -> None:
    """Every test of `tests/guest/zoned_disk.py` passes there, and none is skipped."""
    code, printed = in_guest(pytest_command(TESTS), tmp_path)
    count = len(re.findall(r"^def test_", TESTS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    # A test with parameters counts more than once; skipped tests would be listed as well.
    passed = re.search(r"^(\d+) passed in", printed, flags=re.MULTILINE)
    assert code == 0, printed[-20_000:]
    assert passed is not None, printed[-20_000:]
    assert int(passed[1]) >= count
