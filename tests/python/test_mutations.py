"""Do randomly damaged documents and command lines end as hostile ones must?

A few hundred from a fixed seed; the campaign of `make soak` goes on for long with new ones. A
failure prints what is left of it after minimising, and the line that brings it back.
"""

import os
from pathlib import Path

import pytest
from campaign import campaign

SEED = 20_261_122
CASES = 300


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
def test_mutated_documents_and_command_lines_end_in_order(tmp_path: Path) -> None:
    print(f"mutations from seed {SEED}")
    tally = campaign(tmp_path, SEED, iter(range(CASES)), len(os.sched_getaffinity(0)))
    assert tally.failures == [], "\n".join(["", *tally.failures])
    # Mutations that are all refused at the door would try nothing but the door.
    assert tally.tried == CASES
    assert tally.codes["0"] >= CASES // 10
    assert {"2", "5"} <= tally.codes.keys()
