"""BAST, data blocks with log blocks of their own: the cost of its merges under random writes.

D data blocks of B pages, K log blocks, each of one data block at a time; T_r, T_w, T_e to read a
page, program a page, erase a block.

**Source**: Kim et al., "A space-efficient flash translation layer for CompactFlash systems" (2002);
the steady state is derived here.
**Faithful**: merges when a log block is full or another data block needs it, by least recent use;
switch, partial and full merges by what the log block holds.
**Simplified**: uniform random single-page writes to a full device, no time for mapping, commands or
transfers.
**Ambiguous**: a log block is merged when its last page is written, not when the next write comes.
"""

import math
from dataclasses import dataclass

from uflip.models import _checks


@dataclass(frozen=True, kw_only=True)
class BastCost:
    """The steady state of BAST.

    Attributes
    ----------
    switch_merges_per_write, partial_merges_per_write, full_merges_per_write : float
        Merges of each kind for each host write.
    full_merge_ns : float
        Time of a full merge, B (T_r + T_w) + 2 T_e [ns].
    mean_write_ns : float
        Mean time of a host write [ns].
    write_amplification : float
        Pages programmed / host pages written.
    """

    switch_merges_per_write: float
    partial_merges_per_write: float
    full_merges_per_write: float
    full_merge_ns: float
    mean_write_ns: float
    write_amplification: float


def bast(
    *,
    data_blocks: int,
    log_blocks: int,
    pages_per_block: int,
    read_ns: float,
    program_ns: float,
    erase_ns: float,
) -> BastCost:
    """Return the steady state of BAST with least-recently-used log blocks, full device.

    Parameters
    ----------
    data_blocks : int
        D, data blocks that the writes go to.
    log_blocks : int
        K, log blocks, each of one data block at a time: 1 to data_blocks.
    pages_per_block : int
        B, at least 2.
    read_ns, program_ns, erase_ns : float
        T_r, T_w, T_e [ns].

    Returns
    -------
    BastCost
        Merges, times, write amplification.

    Raises
    ------
    UsageError
        A value out of range.

    Notes
    -----
    A write finds a log block of its data block with probability h = K/D; this holds anew after
    every write, so the n-th page of a log block is its last with probability (1 - h) h**(n - 1),
    or it fills up: (1 - h)/(1 - h**B) merges a write, exact for uniform writes and any K. For
    K << D that is 1 - K/D and the write amplification 1 + B (1 - K/D); at K = D it is 1/B.

    The n pages of a log block are in order from page 0 with probability B**-n. Then the merge is
    partial, B - n copies and one erase, or at n = B a switch, one erase. All others are full, B
    copies and two erases. First-in-first-out log blocks: the same while K is below about D/2.

    Examples
    --------
    >>> cost = bast(data_blocks=4096, log_blocks=128, pages_per_block=64,
    ...             read_ns=25_250, program_ns=101_250, erase_ns=1_500_000)
    >>> round(cost.write_amplification, 1), round(cost.mean_write_ns / 1e6, 2)
    (63.0, 10.83)
    """
    _checks.count("data_blocks", data_blocks)
    _checks.count("log_blocks", log_blocks, at_most=data_blocks)
    _checks.count("pages_per_block", pages_per_block, at_least=2)
    _checks.not_negative(read_ns=read_ns, program_ns=program_ns, erase_ns=erase_ns)
    block = pages_per_block
    hit = log_blocks / data_blocks
    merges = 1 / block if hit == 1 else (1 - hit) / -math.expm1(block * math.log(hit))
    partial = spared = 0.0  # a merge: chance that it is partial; copies that order spares
    in_order = 1.0
    for pages in range(1, block):
        in_order /= block
        chance = (1 - hit) * hit ** (pages - 1) * in_order
        partial += chance
        spared += chance * pages
    switch = hit ** (block - 1) * in_order / block
    copies = block - spared - switch * block
    erases = 2 - partial - switch
    merge_ns = copies * (read_ns + program_ns) + erases * erase_ns
    return BastCost(
        switch_merges_per_write=merges * switch,
        partial_merges_per_write=merges * partial,
        full_merges_per_write=merges * (1 - partial - switch),
        full_merge_ns=block * (read_ns + program_ns) + 2 * erase_ns,
        mean_write_ns=program_ns + merges * merge_ns,
        write_amplification=1 + merges * copies,
    )
