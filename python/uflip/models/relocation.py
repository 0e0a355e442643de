"""Valid pages left in a block when a cyclic buffer collects it, against the spare factor.

**Source**: Pletka et al., OFC, IBM RZ 3795 (2011), section V.C, equations (1) and (2), after Menon
& Stockmeyer (1998).
**Faithful**: both equations as printed, solved for the fixed point that the report names.
**Simplified**: the fixed point is reached by Newton steps; it is the one that plain iteration from
E = 0 climbs to. Spare factors are turned into S_L = (1 - A) S_P without rounding.
**Ambiguous**: (a) E = S_B solves equation (2) as well (nothing is ever invalid); the smaller root
is meant. (b) S_B is 128, but one page of each block holds metadata: with 127 data pages E is
smaller by 1/128. (c) Equation (1) takes i D + S_B R off the host writes of a turn, whole, although
only 1 - E/S_B of the pages programmed meanwhile are host writes; so it overstates both corrections
by 1/(1 - E/S_B), and at 10 % spare 64 of 8192 blocks in reserve leave it without a solution. For
the steady state with blocks in reserve put `write_amplification.pool_spare_factor` into equation
(2): 34.06 pages at 45 % with those 64 blocks, where equation (1) has 34.32 (one die). (d) The
printed numbers do not agree:

The report's text does not follow from its equation (it says "closely match")::

    spare factor          0.30    0.45    0.60
    text                    45      27      15     pages a block: "drops from 45 to 15" in section
                                                   V.C, "stays at 27" in section V.D
    equation (2)          59.8    33.4    13.7     S_B = 128
    E/(S_B - E)          0.876   0.353   0.120     from equation (2)
    "write amplification"          0.5             text at 0.45: neither 0.353 nor 27/101 = 0.267

Nothing here is tuned to hide that. `PRINTED_RELOCATED_PAGES` keeps the text's numbers, so that a
reproduction can put text, equation and simulation side by side.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from uflip.models import _checks, _solve

PRINTED_RELOCATED_PAGES: Mapping[float, int] = MappingProxyType({0.30: 45, 0.45: 27, 0.60: 15})
"""Spare factor to relocated pages a collected block, as OFC's sections V.C and V.D print them."""

PRINTED_WRITE_AMPLIFICATION_FACTOR = 0.5
"""Printed in OFC's section V.C for a spare factor of 45 %: relocated pages per host page."""


def relocated_pages(
    *,
    spare_factor: float,
    pages_per_block: int,
    physical_pages: float,
    dies: int,
    reserved_blocks: float,
) -> float:
    """Return the expected valid pages of a collected block by OFC's equation (1).

    Parameters
    ----------
    spare_factor : float
        A = (S_P - S_L)/S_P, between 0 and 1.
    pages_per_block : int
        S_B [pages].
    physical_pages : float
        S_P [pages].
    dies : int
        D, the dies that the allocator goes round: page i of a block is i D writes younger than
        its first.
    reserved_blocks : float
        R, blocks that stay free: they leave the buffer early.

    Returns
    -------
    float
        E [pages], between 0 and pages_per_block.

    Raises
    ------
    UsageError
        A value out of range, or corrections so large that no steady state exists.

    Notes
    -----
    With q = 1 - 1/S_L the printed sum over q**(S_P (1 - E/S_B) - i D - S_B R) is q**(S_P (1-E/S_B))
    times a factor without E. Both corrections take writes away, so E is never below equation (2).

    Examples
    --------
    OFC's Table II, with 16 reserved blocks:

    >>> ofc = dict(pages_per_block=128, physical_pages=8192 * 128, dies=8, reserved_blocks=16)
    >>> round(relocated_pages(spare_factor=0.45, **ofc), 2)
    33.67
    """
    _checks.spare_factor(spare_factor)
    _checks.count("pages_per_block", pages_per_block)
    _checks.count("dies", dies)
    _checks.not_negative(reserved_blocks=reserved_blocks)
    decay = _decay(spare_factor, physical_pages)
    # ln of the mean over i of q**(-i D - S_B R), a geometric series; decay is -ln q.
    series = math.expm1(decay * dies * pages_per_block) / math.expm1(decay * dies)
    head_start = math.log(series / pages_per_block) + decay * pages_per_block * reserved_blocks
    invalid = _solve.invalid_share(turnover=decay * physical_pages, head_start=head_start)
    return pages_per_block * (1 - invalid)


def relocated_pages_simplified(
    *, spare_factor: float, pages_per_block: int, physical_pages: float | None = None
) -> float:
    """Return the expected valid pages of a collected block by OFC's equation (2).

    Parameters
    ----------
    spare_factor : float
        A = (S_P - S_L)/S_P, between 0 and 1.
    pages_per_block : int
        S_B [pages].
    physical_pages : float, optional
        S_P [pages]; without it the limit of a large device, E = S_B exp(-(1 - E/S_B)/(1 - A)).

    Returns
    -------
    float
        E [pages]; E/S_B does not depend on S_B.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    Valid for uniform random writes in steady state on a device of many blocks. In the limit it is
    the same equation as `write_amplification.fifo`: A_w = 1/(1 - E/S_B).

    Examples
    --------
    >>> [
    ...     round(relocated_pages_simplified(spare_factor=a, pages_per_block=128), 1)
    ...     for a in PRINTED_RELOCATED_PAGES
    ... ]
    [59.8, 33.4, 13.7]
    """
    _checks.spare_factor(spare_factor)
    _checks.count("pages_per_block", pages_per_block)
    if physical_pages is None:
        turnover = 1 / (1 - spare_factor)
    else:
        turnover = _decay(spare_factor, physical_pages) * physical_pages
    return pages_per_block * (1 - _solve.invalid_share(turnover=turnover))


def relocations_per_host_page(*, relocated_pages: float, pages_per_block: float) -> float:
    """Return relocated pages per host page, E/(S_B - E): OFC's way to count amplification.

    Parameters
    ----------
    relocated_pages : float
        E [pages], from 0 to less than pages_per_block.
    pages_per_block : float
        S_B [pages].

    Returns
    -------
    float
        Extra pages programmed for each host page; add 1 to have `write_amplification`.

    Raises
    ------
    UsageError
        Collecting a block frees no page, or a value out of range.

    Notes
    -----
    OFC §V.C names a "write amplification factor" of 0.5 at 45 %. Below 1, it can only be this
    count; it would take E = S_B/3 = 42.7 pages, which neither text (27) nor equation (33.4) has.

    Examples
    --------
    >>> round(relocations_per_host_page(relocated_pages=33.4, pages_per_block=128), 3)
    0.353
    """
    _checks.positive(pages_per_block=pages_per_block)
    _checks.not_negative(relocated_pages=relocated_pages)
    if relocated_pages >= pages_per_block:
        raise _checks.out_of_range(
            what="a block of valid pages only cannot be collected",
            name="relocated_pages",
            got=relocated_pages,
            allowed=f"less than pages_per_block = {pages_per_block}",
            action="give the pages that are relocated from one block",
        )
    return relocated_pages / (pages_per_block - relocated_pages)


def _decay(spare_factor: float, physical_pages: float) -> float:
    """Return -ln(1 - 1/S_L), the loss of validity of a page with each host write."""
    _checks.positive(physical_pages=physical_pages)
    logical_pages = (1 - spare_factor) * physical_pages
    if logical_pages <= 1:
        raise _checks.out_of_range(
            what="the device holds no more than one logical page",
            name="physical_pages",
            got=physical_pages,
            allowed=f"more than {1 / (1 - spare_factor):.6g} at this spare_factor",
            action="give the pages of the whole device, not of one block",
        )
    return -math.log1p(-1 / logical_pages)
