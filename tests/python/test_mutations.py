"""Do randomly damaged documents and command lines end as hostile ones must?

A few hundred from a fixed seed; the campaign of `make soak` runs for hours with new ones. A
failure prints the minimised case, and the line that reproduces it.
"""

import os
from pathlib import Path

import pytest
from campaign import campaign

SEED = 20_261_122
CASES = 300


@pytest.mark.skipif("UFLIP_SOAK" not in os.environ, reason="part of `make soak` (UFLIP_SOAK=1)")
def test_mutated_inputs_end_with_expected_exit_codes(tmp_path: Path) -> None:
    print(f"mutations from seed {SEED}")
    tally = campaign(tmp_path, SEED, iter(range(CASES)), len(os.sched_getaffinity(0)))
    assert tally.failures == [], "\n".join(["", *tally.failures])
    # If parsing refused every mutation, nothing behind the parsers would be tested.
    assert tally.tried == CASES
    assert tally.codes["0"] >= CASES // 10
    assert {"2", "5"} <= tally.codes.keys()
