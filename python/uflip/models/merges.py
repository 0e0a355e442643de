"""The time of one merge of a FAST device, and the cost of all its merges.

**Source**: Myers & Sinclair, "Measuring Solid-State Drive Behavior" (2010), section 6.2, equations
(1) and (3).
**Faithful**: `zero_page_merge_ns` and `full_merge_ns` are these equations as printed.
**Simplified**: no time for mapping, commands or transfers.
**Ambiguous**: a zero-page merge copies B - 1 pages (page 0 is in the sequential log block already),
so N_valid of equation (1) is B - 1 for a full device where that of equation (3) is B; the report
uses 32 for both.
"""

import math
from dataclasses import dataclass

from uflip.models import _checks


@dataclass(frozen=True, kw_only=True)
class FastCost:
    """The steady state of FAST: its merges, the cost of each, their frequency.

    Attributes
    ----------
    data_blocks_per_full_merge : float
        N_data, data blocks merged to reclaim one random log block.
    zero_merge_valid_pages, full_merge_valid_pages : float
        N_valid [pages], copied in a zero-page merge and for each data block of a full merge.
    zero_merges_per_write, full_merges_per_write : float
        Merges for each host write.
    zero_merge_ns, full_merge_ns : float
        T_zero and T_full [ns], equations (1) and (3); the write that waits takes T_w longer.
    mean_write_ns : float
        Mean time of a host write [ns].
    write_amplification : float
        Pages programmed / host pages written.
    """

    data_blocks_per_full_merge: float
    zero_merge_valid_pages: float
    full_merge_valid_pages: float
    zero_merges_per_write: float
    full_merges_per_write: float
    zero_merge_ns: float
    full_merge_ns: float
    mean_write_ns: float
    write_amplification: float

    @property
    def zero_merge_share(self) -> float:
        """Share of all time that goes to zero-page merges."""
        return self.zero_merges_per_write * self.zero_merge_ns / self.mean_write_ns

    @property
    def full_merge_share(self) -> float:
        """Share of all time that goes to full merges."""
        return self.full_merges_per_write * self.full_merge_ns / self.mean_write_ns


def zero_page_merge_ns(
    *, valid_pages: float, read_ns: float, program_ns: float, erase_ns: float
) -> float:
    """Return Myers & Sinclair's equation (1), T_zero-page = N_valid (T_r + T_w) + T_e.

    Parameters
    ----------
    valid_pages : float
        N_valid, pages copied to the sequential log block [pages].
    read_ns, program_ns, erase_ns : float
        T_r, T_w, T_e [ns].

    Returns
    -------
    float
        Time of the merge [ns].

    Raises
    ------
    UsageError
        A negative value.

    Examples
    --------
    Their Table 1 with N_valid = 32, printed as 5548 microseconds:

    >>> table_1 = dict(read_ns=25_250, program_ns=101_250, erase_ns=1_500_000)
    >>> zero_page_merge_ns(valid_pages=32, **table_1)
    5548000
    """
    _checks.not_negative(
        valid_pages=valid_pages, read_ns=read_ns, program_ns=program_ns, erase_ns=erase_ns
    )
    return valid_pages * (read_ns + program_ns) + erase_ns


def full_merge_ns(
    *,
    data_blocks: float,
    valid_pages: float,
    read_ns: float,
    program_ns: float,
    erase_ns: float,
) -> float:
    """Return Myers & Sinclair's equation (3), T_full = N_data (N_valid (T_r + T_w) + T_e) + T_e.

    Parameters
    ----------
    data_blocks : float
        N_data, data blocks with pages in the log block.
    valid_pages : float
        N_valid, pages copied for each of them [pages].
    read_ns, program_ns, erase_ns : float
        T_r, T_w, T_e [ns].

    Returns
    -------
    float
        Time of the merge [ns].

    Raises
    ------
    UsageError
        A negative value.

    Examples
    --------
    Their Table 1 with N_data = 64 and N_valid = 32, printed as 356572 microseconds:

    >>> table_1 = dict(read_ns=25_250, program_ns=101_250, erase_ns=1_500_000)
    >>> full_merge_ns(data_blocks=64, valid_pages=32, **table_1)
    356572000
    """
    _checks.not_negative(data_blocks=data_blocks)
    block_ns = zero_page_merge_ns(
        valid_pages=valid_pages, read_ns=read_ns, program_ns=program_ns, erase_ns=erase_ns
    )
    return data_blocks * block_ns + erase_ns


def valid_pages_after(*, writes: float, data_blocks: int, pages_per_block: int) -> float:
    """Return N_valid of correct FAST or BAST after random writes to an empty device.

    Parameters
    ----------
    writes : float
        Host writes of one page each, uniform over the device.
    data_blocks : int
        D.
    pages_per_block : int
        B.

    Returns
    -------
    float
        Mean pages of a block that hold data [pages], B (1 - (1 - 1/(D B))**writes).

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    A page counts from its first write on, wherever its newest version is: a correct merge keeps it.
    So N_valid = 32 of 64 is passed once, on the way to 64, and is not a steady state.

    Examples
    --------
    >>> round(valid_pages_after(writes=182_000, data_blocks=4096, pages_per_block=64), 1)
    32.0
    """
    _checks.not_negative(writes=writes)
    _checks.count("data_blocks", data_blocks)
    _checks.count("pages_per_block", pages_per_block, at_least=2)
    missed = math.log1p(-1 / (data_blocks * pages_per_block))
    return pages_per_block * -math.expm1(writes * missed)


def fast_cost(
    *,
    data_blocks_per_full_merge: float,
    zero_merge_valid_pages: float,
    full_merge_valid_pages: float,
    log_share: float,
    pages_per_block: int,
    times_ns: tuple[float, float, float],
) -> FastCost:
    """Return the cost of merges: times and rates from the pages and blocks of one.

    Parameters
    ----------
    data_blocks_per_full_merge, zero_merge_valid_pages, full_merge_valid_pages : float
        As `FastCost` has them.
    log_share : float
        Share of the writes that go to the random log.
    pages_per_block : int
        B.
    times_ns : tuple of float
        T_r, T_w, T_e [ns].
    """
    read_ns, program_ns, erase_ns = times_ns
    zero_ns = zero_page_merge_ns(
        valid_pages=zero_merge_valid_pages,
        read_ns=read_ns,
        program_ns=program_ns,
        erase_ns=erase_ns,
    )
    full_ns = full_merge_ns(
        data_blocks=data_blocks_per_full_merge,
        valid_pages=full_merge_valid_pages,
        read_ns=read_ns,
        program_ns=program_ns,
        erase_ns=erase_ns,
    )
    zero_merges = 1 / pages_per_block
    full_merges = log_share / pages_per_block
    copies = (
        zero_merges * zero_merge_valid_pages
        + full_merges * data_blocks_per_full_merge * full_merge_valid_pages
    )
    return FastCost(
        data_blocks_per_full_merge=data_blocks_per_full_merge,
        zero_merge_valid_pages=zero_merge_valid_pages,
        full_merge_valid_pages=full_merge_valid_pages,
        zero_merges_per_write=zero_merges,
        full_merges_per_write=full_merges,
        zero_merge_ns=zero_ns,
        full_merge_ns=full_ns,
        mean_write_ns=program_ns + zero_merges * zero_ns + full_merges * full_ns,
        write_amplification=1 + copies,
    )
