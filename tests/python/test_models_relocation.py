"""OFC's equations (1) and (2): the printed sum, plain iteration, Lambert's W, and the text."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from uflip.errors import UsageError
from uflip.models import relocation, write_amplification

OFC: dict[str, Any] = {"pages_per_block": 128, "physical_pages": 8192 * 128}


def printed_sum(
    relocated: float, *, spare_factor: float, dies: int, reserved_blocks: float, first_form: bool
) -> float:
    """Evaluate the right side of equation (1) term by term, in either of its two printed forms."""
    block, physical = OFC["pages_per_block"], OFC["physical_pages"]
    logical = (1 - spare_factor) * physical
    if first_form:
        written = physical - relocated * physical / block
    else:
        written = logical / (1 - spare_factor) * (1 - relocated / block)
    return math.fsum(
        (1 - 1 / logical) ** (written - i * dies - block * reserved_blocks) for i in range(block)
    )


@pytest.mark.parametrize("spare_factor", [0.2, 0.3, 0.45, 0.6])
@pytest.mark.parametrize(("dies", "reserved_blocks"), [(1, 0), (8, 0), (8, 64), (64, 100)])
def test_equation_1_solves_the_printed_sum(
    spare_factor: float, dies: int, reserved_blocks: int
) -> None:
    case = {"spare_factor": spare_factor, "dies": dies, "reserved_blocks": reserved_blocks}
    relocated = relocation.relocated_pages(**OFC, **case)
    for first_form in (True, False):
        assert printed_sum(relocated, **case, first_form=first_form) == pytest.approx(
            relocated, rel=1e-8
        )
    # "This equation can be solved using the fixed point method": from zero, step by step.
    step, previous = 0.0, -1.0
    while step - previous > 1e-9:
        step, previous = printed_sum(step, **case, first_form=True), step
    assert relocated == pytest.approx(step, abs=1e-6)


@pytest.mark.parametrize("spare_factor", [0.01, 0.07, 0.3, 0.45, 0.6, 0.9])
def test_equation_2_matches_lambert_w_and_fifo(spare_factor: float) -> None:
    relocated = relocation.relocated_pages_simplified(
        spare_factor=spare_factor, pages_per_block=128
    )
    alpha = 1 / (1 - spare_factor)
    oracle = -special.lambertw(-alpha * math.exp(-alpha)).real / alpha
    assert relocated / 128 == pytest.approx(oracle, abs=1e-10)
    extra = relocation.relocations_per_host_page(relocated_pages=relocated, pages_per_block=128)
    assert 1 + extra == pytest.approx(write_amplification.fifo(spare_factor=spare_factor))


@pytest.mark.parametrize("spare_factor", [0.3, 0.45, 0.6])
def test_equation_1_without_corrections_tends_to_equation_2(spare_factor: float) -> None:
    plain = relocation.relocated_pages_simplified(spare_factor=spare_factor, pages_per_block=128)
    gaps = [
        relocation.relocated_pages(
            spare_factor=spare_factor,
            pages_per_block=128,
            physical_pages=pages,
            dies=1,
            reserved_blocks=0,
        )
        - plain
        for pages in (1e5, 1e6, 1e7)
    ]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 2e-3
    finite = relocation.relocated_pages_simplified(spare_factor=spare_factor, **OFC)
    assert finite == pytest.approx(plain, abs=1e-3)


def test_equation_contradicts_printed_relocated_pages() -> None:
    computed = {
        a: relocation.relocated_pages_simplified(spare_factor=a, pages_per_block=128)
        for a in relocation.PRINTED_RELOCATED_PAGES
    }
    # By hand: bisection of x = exp(-(1 - x)/(1 - A)) to four digits.
    assert {a: round(e, 1) for a, e in computed.items()} == {0.30: 59.8, 0.45: 33.4, 0.60: 13.7}
    factors = [
        relocation.relocations_per_host_page(relocated_pages=e, pages_per_block=128)
        for e in computed.values()
    ]
    assert [round(f, 3) for f in factors] == [0.876, 0.353, 0.120]
    # No reading of Table II brings the equation to the text: corrections only raise it.
    for spare, text in relocation.PRINTED_RELOCATED_PAGES.items():
        corrected = relocation.relocated_pages(spare_factor=spare, **OFC, dies=8, reserved_blocks=8)
        assert corrected > computed[spare]
        assert abs(computed[spare] / text - 1) > 0.08


@pytest.mark.parametrize(
    "wrong",
    [
        {"spare_factor": 0},
        {"spare_factor": 45},
        {"spare_factor": float("nan")},
        {"pages_per_block": 0},
        {"physical_pages": 1},
        {"physical_pages": -5},
        {"dies": 0},
        {"reserved_blocks": -1},
        {"reserved_blocks": 4000},
    ],
)
def test_values_out_of_range_are_usage_errors(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {**OFC, "spare_factor": 0.45, "dies": 8, "reserved_blocks": 8}
    with pytest.raises(UsageError) as caught:
        relocation.relocated_pages(**(good | wrong))
    assert all(caught.value.parts().values())


def test_equation_1_overstates_cost_of_reserved_blocks() -> None:
    # The pool without the 64 blocks, by the equation without corrections.
    spare = write_amplification.pool_spare_factor(
        physical_blocks=8192,
        pages_per_block=128,
        logical_pages=0.55 * 8192 * 128,
        held_blocks=64,
    )
    pool = relocation.relocated_pages_simplified(spare_factor=spare, pages_per_block=128)
    printed = relocation.relocated_pages(spare_factor=0.45, **OFC, dies=1, reserved_blocks=64)
    assert (round(pool, 2), round(printed, 2)) == (34.06, 34.32)
    with pytest.raises(UsageError, match="no steady state"):
        relocation.relocated_pages(spare_factor=0.1, **OFC, dies=8, reserved_blocks=64)


def test_victim_full_of_valid_pages_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot be collected"):
        relocation.relocations_per_host_page(relocated_pages=128, pages_per_block=128)


def super_fast_hash(counter: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Paul Hsieh's SuperFastHash of four bytes, OFC's source of addresses (Table II)."""

    def shifted(value: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
        return (value << np.uint32(bits)).astype(np.uint32)

    low, high = counter & np.uint32(0xFFFF), counter >> np.uint32(16)
    value = (np.uint32(4) + low).astype(np.uint32)
    value = shifted(value, 16) ^ (shifted(high, 11) ^ value)
    value = value + (value >> np.uint32(11))
    for left, right in ((3, 5), (4, 17), (25, 6)):
        value = value ^ shifted(value, left)
        value = value + (value >> np.uint32(right))
    return value


def cyclic_survivors(addresses: NDArray[np.int64], logical: int, spare_factor: float) -> float:
    """The share x of pages still valid when the oldest block is collected.

    The buffer turns round once in S_P pages written, of which S_P (1 - x) come from the host. So x
    is the share of writes whose address is not written again within that number of host writes.
    """
    order = np.argsort(addresses, kind="stable")
    again = np.full(len(addresses), np.iinfo(np.int64).max)
    same = addresses[order][1:] == addresses[order][:-1]
    again[order[:-1][same]] = np.diff(order)[same]
    turn = logical / (1 - spare_factor)
    observed = again[: len(addresses) - int(turn)]
    share = 0.2
    for _ in range(200):
        share = float((observed > turn * (1 - share)).mean())
    return share


@pytest.mark.parametrize("spare_factor", [0.3, 0.45, 0.6])
def test_addresses_of_super_fast_hash_relocate_as_many_pages(spare_factor: float) -> None:
    """OFC's generator does not explain that it printed fewer pages than equation (2) gives."""
    logical = int(8192 * 128 * (1 - spare_factor))
    counter = np.arange(2_500_000, dtype=np.uint32)
    addresses = super_fast_hash(counter).astype(np.int64) % logical
    relocated = 128 * cyclic_survivors(addresses, logical, spare_factor)
    calculated = relocation.relocated_pages_simplified(
        spare_factor=spare_factor, pages_per_block=128
    )
    assert relocated == pytest.approx(calculated, rel=0.01)
